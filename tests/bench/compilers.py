"""Both compilers on the same loops: LLVM from our text, and Numba from the program it prints.

`python -m tests.bench.compilers [part of a name …]` times first calls and later ones, beside JAX.
With `--alone PYTHON` it has the printed programs of all rows, and of `tests/programs`, run by
another Python that needs NumPy and Numba alone, and compares their results with those of `jit`.
"""

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import minijax
from minijax import config
from minijax.compiler import lowered
from minijax.compiler.numba_text import NotInNumba
from tests.bench._report import chosen, geometric_mean
from tests.bench._row import arguments
from tests.bench._workloads import SUBJECTS, rows
from tests.written_for_jax import with_minijax

PROGRAMS = Path(__file__).parents[1] / "programs"
TIMED = ("elementwise", "reductions", "ordering", "products", "loops", "training")
TOLERANCE = 1e-4  # of the largest number of an array


# ── Programs that run alone ──────────────────────────────────────────────────────────────────

@contextmanager
def recorded(folder: Path) -> Iterator[list[str]]:
    """Meanwhile each kernel's Numba program is kept, with the arrays of its first call."""
    usual, names = lowered.Lowered.compile, []

    def compiled(self: lowered.Lowered) -> Callable[..., list]:
        run, calls = usual(self), []

        def call(*inputs: np.ndarray) -> list[np.ndarray]:
            outs = run(*inputs)
            if not calls:
                calls.append(keep(self, inputs, outs))
            return outs
        return call

    def keep(self: lowered.Lowered, inputs: Any, outs: Any) -> None:
        try:
            text = self.as_text("numba")
        except NotInNumba as error:
            names.append(f"refused: {error}")
            return
        name = f"program{len(names)}"
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
        arrays = {f"x{k}": stored(x) for k, x in enumerate(inputs)}
        arrays |= {f"y{k}": stored(y) for k, y in enumerate(outs)}
        np.savez(folder / f"{name}.npz", **arrays)
        names.append(name)
    with mock.patch.object(lowered.Lowered, "compile", compiled):
        yield names


def stored(x: Any) -> np.ndarray:
    """An array that NumPy alone can read: bfloat16 as its bits, as a program takes and gives it."""
    x = np.asarray(x)
    return x.view(np.uint16) if x.dtype.name == "bfloat16" else x


ALONE = """
import json, runpy, sys
from importlib.util import find_spec
import numpy as np
assert not any(map(find_spec, ("minijax", "jax", "ml_dtypes", "scipy"))), "not alone"
for line in sys.stdin:
    path = line.strip()
    main = runpy.run_path(path + ".py")["main"]
    worst = 0.0
    with np.load(path + ".npz") as arrays:
        outs = main(*(arrays[f"x{k}"] for k in range(sum(x[0] == "x" for x in arrays))))
        outs = outs if isinstance(outs, tuple) else (outs,)
        for k, out in enumerate(outs):
            expected = arrays[f"y{k}"]
            assert (out.shape, out.dtype) == (expected.shape, expected.dtype)
            if out.dtype.kind in "biu":
                worst = max(worst, float(np.max(out != expected, initial=0)))
                continue
            both = np.isfinite(expected)
            assert np.array_equal(both, np.isfinite(out))
            out, expected = out[both].astype(complex), expected[both].astype(complex)
            most = np.max(np.abs(expected), initial=1e-30)
            worst = max(worst, float(np.max(np.abs(out - expected), initial=0) / most))
    print(json.dumps(worst), flush=True)
"""


def subjects() -> Iterator[tuple[str, Callable[[], Any]]]:
    """The name of each program, and what runs it once."""
    for row in rows("minijax", SUBJECTS):
        yield row.name, lambda row=row: minijax.block_until_ready(
            row.run(*arguments(row, minijax)))
    for path in sorted(PROGRAMS.glob("*.py")):
        if path.name.startswith("test_"):
            continue
        names: dict[str, Any] = {"__name__": path.stem}
        source = with_minijax(path.read_text(encoding="utf-8"))
        exec(compile(source, str(path), "exec"), names)
        yield f"tests/programs/{path.name}", names["main"]


def alone(python: str, words: list[str]) -> int:
    """Print a table; the number of programs that do not agree."""
    wrong = 0
    print(f"{'program':48}{'kernels':>8}{'lines':>7}  largest difference, of the largest number")
    with tempfile.TemporaryDirectory() as directory:
        for count, (name, run) in enumerate(subjects()):
            if not chosen(name, words):
                continue
            folder = Path(directory, str(count))
            folder.mkdir()
            with recorded(folder) as found, redirect_stdout(StringIO()):
                minijax.clear_caches()
                run()
            kept = [x for x in found if not x.startswith("refused")]
            refused = {x for x in found if x.startswith("refused")}
            lines = sum(len((folder / f"{x}.py").read_text("utf-8").splitlines()) for x in kept)
            done = subprocess.run([python, "-c", ALONE], text=True, capture_output=True, cwd=folder,
                                  input="\n".join(kept), env={"PATH": os.environ["PATH"]})
            worst = max(map(json.loads, done.stdout.split()), default=0.0)
            good = done.returncode == 0 and worst <= TOLERANCE
            wrong += not good
            said = f"{worst:.1e}" if good else f"WRONG {worst} {done.stderr[-300:]}"
            print(f"{name:48}{len(kept):8}{lines:7}  {said if kept else ''}"
                  f"{'; ' * bool(kept and refused)}{'; '.join(refused)[:150]}", flush=True)
    print(f"{wrong} do not agree")
    return wrong


# ── Times ────────────────────────────────────────────────────────────────────────────────────

def seconds(run: Callable[[], Any]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def beside(lib: Any, row: Any) -> Callable[[], Any]:
    args = arguments(row, lib)
    return lambda: lib.block_until_ready(row.run(*args))


def under(compiler: str, row: Any) -> Callable[[], Any]:
    run = beside(minijax, row)

    def compiled() -> Any:
        with config.compiler(compiler):
            return run()
    return compiled


def times(words: list[str], most: int) -> None:
    """First calls, and the medians of later ones in turns: LLVM, Numba, JAX."""
    import jax

    print(f"import of Numba: {seconds(lambda: importlib.import_module('numba')):.2f} s")
    head = "".join(f"{x:>10}" for x in ("llvm", "numba", "JAX"))
    print(f"{'':36}{'first call, s':^30}{'later calls, ms':^30}\n{'':36}{head}{head}")
    ratios: list[list[float]] = []
    for ours, theirs in zip(rows("minijax", TIMED), rows("jax", TIMED), strict=True):
        if not chosen(ours.name, words) or not hasattr(ours.run, "lower"):
            continue

        runs = [under("llvm", ours), under("numba", ours), beside(jax, theirs)]
        try:
            first = [seconds(run) for run in runs]
        except NotInNumba:
            continue
        turns = max(5, min(most, int(0.5 / max(first[0] / 50, 1e-4))))
        later = [[seconds(run) for run in runs] for _ in range(turns)]
        medians = [statistics.median(x) * 1e3 for x in zip(*later, strict=True)]
        ratios.append([first[1] / first[0], first[0] / first[2], medians[1] / medians[0],
                       medians[0] / medians[2]])
        print(f"{ours.name:36}" + "".join(f"{x:10.2f}" for x in first)
              + "".join(f"{x:10.3f}" for x in medians), flush=True)
    for name, column in zip(("numba / llvm, first", "llvm / JAX, first", "numba / llvm, later",
                             "llvm / JAX, later"), zip(*ratios, strict=True), strict=True):
        print(f"{name:28}{geometric_mean(column):8.2f}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", help="only rows whose name holds one of these")
    parser.add_argument("--alone", default="", help="another Python, with NumPy and Numba alone")
    parser.add_argument("--quick", action="store_true", help="five later calls of each")
    options = parser.parse_args()
    os.environ["MINIJAX_CACHE_DIR"] = ""
    if options.alone:
        return alone(options.alone, options.words)
    times(options.words, 5 if options.quick else 200)
    return 0


if __name__ == "__main__":
    sys.exit(main())
