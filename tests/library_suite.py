"""Libraries' own tests on minijax: `python -m tests.library_suite FILE_OR_FOLDER…`.

The files are in a checkout of the library's repository, at the version that is installed; each
runs through `minijax.as_jax` in a process of its own, or `--together` with the others.  It prints
what `tests.jax_suite` prints; with `--beside-jax` the cases that fail or are skipped run on JAX,
too, and those that do not pass there are left out; `--table` writes rows to `library_suite.md`.
`--share` draws that share of the cases at random (`0.2-0.4` others than `0.2`); of files that take
longer than `LIBRARY_SUITE_SECONDS` those cases count that came first.  Why what fails fails is in
`jax_suite/reasons.toml`, by repository and file.  It is a tool, no part of `make test`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.jax_suite.__main__ import HEAD, ROOT, Outcomes, rows_of, told, with_reasons, written

RESULTS = Path(__file__).with_suffix(".md")
SECONDS = float(os.environ.get("LIBRARY_SUITE_SECONDS", "3600"))  # for one file


def checkout_of(path: Path) -> Path:
    """The folder of the library's repository."""
    return next(x for x in path.resolve().parents if (x / "pyproject.toml").exists())


def outcomes(paths: list[Path], on: str, options: list[str], drawn: dict[str, str], verbose: bool
             ) -> dict[str, Outcomes]:
    """Run files of tests from their checkout: the cases that the plugin's variables draw."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "outcomes"
        file.touch()
        environment = {
            "JAX_THREEFRY_PARTITIONABLE": "0", "JAX_PLATFORMS": "cpu",
            "PYTHONDONTWRITEBYTECODE": "1", **os.environ,
            # the library's tests may be a package named `tests`, too: the plugin is not in ours
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests/jax_suite"),
                                           os.environ.get("PYTHONPATH", "")]),
            "JAX_SUITE_ON": "library", "JAX_SUITE_OUTCOMES": str(file),
            **drawn}
        command = [
            sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
            "--continue-on-collection-errors",
            *(["-p", "minijax.as_jax"] if on == "minijax" else []), "-p", "plugin",
            *([] if verbose else ["--tb=short"]), *options, *map(str, paths)]
        try:
            run = subprocess.run(command, cwd=checkout_of(paths[0]), env=environment, text=True,
                                 capture_output=not verbose, timeout=SECONDS)
            if run.returncode not in (0, 1, 5) and not verbose:
                print(run.stdout[-2000:], run.stderr[-2000:])
        except subprocess.TimeoutExpired:
            print(f"{paths[0].name} … {paths[-1].name} stopped after {SECONDS:.0f} seconds:")
            paths = [path for path in paths if f"{path}::" in file.read_text()]
        rows = [json.loads(line) for line in file.read_text().splitlines()]
    return {str(path): {name.removeprefix(f"{path}::"): (outcome, text)
                        for name, outcome, text in rows if name.startswith(f"{path}::")}
            for path in paths}


def on_jax(ours: dict[str, Outcomes], options: list[str], share: dict[str, str]
           ) -> dict[str, Outcomes]:
    """The outcomes on JAX, where what passes here is taken to pass there."""
    asked = [f"{path}::{case}" for path, of_file in ours.items()
             for case, (outcome, _) in of_file.items() if outcome in ("failed", "skipped")]
    asked += [path for path, of_file in ours.items() if not of_file]  # it could not be imported
    paths = [Path(path) for path in ours if any(x.startswith(path) for x in asked)]
    theirs = outcomes(paths, "jax", options, share | {"JAX_SUITE_CASES": "\n".join(asked)}, False
                      ) if paths else {}
    return {path: {case: x for case, x in of_file.items() if x[0] == "passed"}
            | theirs.get(path, {}) for path, of_file in ours.items()}


def name_of(path: Path) -> str:
    """A file by its place in the repository, without the folder of all tests: flax/nnx/ids_test."""
    checkout = checkout_of(path)
    return "/".join([checkout.name, *path.relative_to(checkout).with_suffix("").parts[1:]])


def files(path: Path) -> list[Path]:
    """A file of tests, or those in a folder."""
    return [path] if path.is_file() else sorted(
        {*path.rglob("test_*.py"), *path.rglob("*_test.py")})


HEADING = """# Libraries' own tests on minijax

`python -m tests.library_suite --beside-jax --table FOLDER` writes the rows of files: of the
cases that pass on JAX how many pass, fail, and use something inside of JAX; the share is that
of the first among the first two.  Files that need TensorFlow or ONNX are not in the table, and
of some libraries only a share of the cases is.  These are sums, and the share of all that pass
on JAX:

| library | on JAX | passed | share |
|:--|---:|---:|---:|
"""


def with_sums(rows: list[list[str]]) -> None:
    """Write rows to the table, with the sums of each library before them; other rows stay."""
    known = rows_of(RESULTS) | {row[0]: row for row in rows}
    lines = []
    for library in sorted({name.split("/")[0] for name in known}):
        of_library = [row for name, row in known.items() if name.startswith(library + "/")]
        passed, *others = (sum(int(row[column]) for row in of_library) for column in (1, 2, 3))
        all_of_them = passed + sum(others)
        lines.append(f"| {library} | {all_of_them} | {passed} | {passed / all_of_them:.1%} |\n")
    written(rows, RESULTS, HEADING + "".join(lines))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="+", type=Path, help="files of tests, or folders of them")
    parser.add_argument("--beside-jax", action="store_true", help="run failures on JAX, too")
    parser.add_argument("--share", default="1", help="the share of cases to draw")
    parser.add_argument("--report", type=Path, help="a file for failures")
    parser.add_argument("--together", action="store_true", help="run all files in one process")
    parser.add_argument("--table", action="store_true", help="write the rows to the table")
    parser.add_argument("-k", help="only the cases that match, as in pytest")
    parser.add_argument("-v", action="store_true", help="show what pytest prints")
    arguments = parser.parse_args()
    options = ["-k", arguments.k] if arguments.k else []
    share = {"JAX_SUITE_SHARE": arguments.share}
    print(HEAD)
    every = [x.resolve() for path in arguments.paths for x in files(path)]
    for paths in [every] if arguments.together else [[x] for x in every]:
        ours = outcomes(paths, "minijax", options, share, arguments.v)
        theirs = on_jax(ours, options, share) if arguments.beside_jax else {}
        rows = []
        for path, of_file in ours.items():
            name = name_of(Path(path))
            drawn = f" ({arguments.share} of the cases)" if arguments.share != "1" else ""
            rows.append(told(name + drawn, with_reasons(name, of_file), theirs.get(path),
                             arguments.report))
        if arguments.table:
            with_sums([row for row in rows if row[-1] != "-"])  # of the others nothing ran


if __name__ == "__main__":
    main()
