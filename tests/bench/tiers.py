"""The two tiers of machine code: `python -m tests.bench tiers [part of a name …] [--beside FILE]`.

For quick and for optimised code it prints the milliseconds that LLVM takes, and those of the
fastest call on one thread. With FILE, the JSON of an earlier run, it also prints the ratios to it.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

os.environ["MINIJAX_NUM_THREADS"], os.environ["MINIJAX_CACHE_DIR"] = "1", ""

import minijax  # noqa: E402  it reads the environment when it is imported
from minijax.compiler import cache, cpu  # noqa: E402
from tests.bench._report import chosen, geometric_mean  # noqa: E402
from tests.bench._row import arguments  # noqa: E402
from tests.bench._workloads import SUBJECTS, rows  # noqa: E402

NUMBERS = Path("build/bench/tiers.json")
KINDS = "quick: compile", "quick: call", "optimised: compile", "optimised: call"
SECONDS, CALLS = 0.1, 5  # of the calls that are timed: how long, and the least number of them


def milliseconds(run: Callable[[], Any]) -> float:
    start = time.perf_counter()
    run()
    return 1e3 * (time.perf_counter() - start)


def fastest(run: Callable[[], Any], seconds: float) -> float:
    """The shortest of several calls."""
    times, end = [milliseconds(run)], time.perf_counter() + seconds
    while len(times) < CALLS or time.perf_counter() < end:
        times.append(milliseconds(run))
    return min(times)


def measured(row: Any, level: int, seconds: float) -> tuple[float, float]:
    """The compile time of a row's kernels at a level, and the time of a call."""
    compiled: list[float] = []
    compile_text = cpu.compile

    def timed(*args: Any, **options: Any) -> Any:
        found: list[Any] = []
        compiled.append(milliseconds(
            lambda: found.append(compile_text(*args, **options | {"level": level}))))
        return found[0]
    minijax.clear_caches()
    cache._loaded.clear()
    args = arguments(row, minijax)
    with mock.patch.object(cpu, "compile", timed), mock.patch.object(
            cache, "is_short", lambda kernel: False):
        run = lambda: minijax.block_until_ready(row.run(*args))
        run()
        return sum(compiled), fastest(run, seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", help="only rows whose name holds one of these")
    parser.add_argument("--beside", default="", help="the JSON of an earlier run")
    parser.add_argument("--out", default=str(NUMBERS), help="where the numbers are written")
    parser.add_argument("--quick", action="store_true", help="the least number of calls")
    options = parser.parse_args()
    seconds = 0.0 if options.quick else SECONDS
    earlier = json.loads(Path(options.beside).read_text()) if options.beside else {}
    numbers: dict[str, list[float]] = {}
    print(" " * 36 + "".join(f"{kind:>20}" for kind in KINDS))
    for row in rows("minijax", SUBJECTS):
        if not chosen(row.name, options.words):
            continue
        found = numbers[row.name] = [x for level in (0, 1) for x in measured(row, level, seconds)]
        print(f"{row.name:36}" + "".join(f"{x:12.3f}" + (
            f"{x / max(y, 1e-9):8.2f}" if y else " " * 8) for x, y in zip(
                found, earlier.get(row.name, [0.0] * 4), strict=True)), flush=True)
    both = [name for name in numbers if name in earlier]
    for place, kind in enumerate(KINDS):
        column = [x[place] for x in numbers.values()]
        print(f"{kind:24} in all {sum(column) / 1e3:8.2f} s", end="")
        pairs = [(numbers[name][place], earlier[name][place]) for name in both]
        print(f"; {geometric_mean([x / y for x, y in pairs if x and y]):6.3f} of before"
              if pairs else "")
    path = Path(options.out)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(numbers))


if __name__ == "__main__":
    sys.exit(main())
