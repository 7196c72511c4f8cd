"""Libraries' own tests on minijax: `python -m tests.library_suite FILE_OR_FOLDER…`.

The files are in a checkout of the library's repository, at the version that is installed; each runs
through `minijax.as_jax` in a process of its own.  It prints what `tests.jax_suite` prints; with
`--beside-jax` the cases that fail or are skipped run on JAX, too, and those that do not pass there
are left out.  `--share` draws that share of the cases at random (`0.2-0.4` others than `0.2`); of a
file that takes longer than `LIBRARY_SUITE_SECONDS` those count that came first.  Why what fails
fails is in `jax_suite/reasons.toml`, by the names of repository and file.  It is a tool, no part of
`make test`.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.jax_suite.__main__ import HEAD, ROOT, Outcomes, told, with_reasons

SECONDS = float(os.environ.get("LIBRARY_SUITE_SECONDS", "3600"))  # for one file


def checkout_of(path: Path) -> Path:
    """The folder of the library's repository."""
    return next(x for x in path.resolve().parents if (x / "pyproject.toml").exists())


def outcomes(path: Path, on: str, options: list[str], drawn: dict[str, str], verbose: bool
             ) -> Outcomes:
    """Run one file of tests, from its checkout: the cases that the plugin's variables draw."""
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
            *(["-p", "minijax.as_jax"] if on == "minijax" else []), "-p", "plugin",
            *([] if verbose else ["--tb=short"]), *options, str(path.resolve())]
        try:
            run = subprocess.run(command, cwd=checkout_of(path), env=environment, text=True,
                                 capture_output=not verbose, timeout=SECONDS)
            if run.returncode not in (0, 1, 5) and not verbose:
                print(run.stdout[-2000:], run.stderr[-2000:])
        except subprocess.TimeoutExpired:
            print(f"{path.name} was stopped after {SECONDS:.0f} seconds:")
        rows = [json.loads(line) for line in file.read_text().splitlines()]
    return {case: (outcome, text) for case, outcome, text in rows}


def files(path: Path) -> list[Path]:
    """A file of tests, or those in a folder."""
    return [path] if path.is_file() else sorted(
        {*path.rglob("test_*.py"), *path.rglob("*_test.py")})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="+", type=Path, help="files of tests, or folders of them")
    parser.add_argument("--beside-jax", action="store_true", help="run failures on JAX, too")
    parser.add_argument("--share", default="1", help="the share of cases to draw")
    parser.add_argument("--report", type=Path, help="a file for failures")
    parser.add_argument("-k", help="only the cases that match, as in pytest")
    parser.add_argument("-v", action="store_true", help="show what pytest prints")
    arguments = parser.parse_args()
    options = ["-k", arguments.k] if arguments.k else []
    share = {"JAX_SUITE_SHARE": arguments.share}
    print(HEAD)
    for path in itertools.chain.from_iterable(map(files, arguments.paths)):
        ours = outcomes(path, "minijax", options, share, arguments.v)
        failed = [case for case, (outcome, _) in ours.items() if outcome in ("failed", "skipped")]
        theirs = None
        if arguments.beside_jax:
            theirs = dict.fromkeys(ours, ("passed", "")) | dict.fromkeys(failed, ("", ""))
            if failed or not ours:  # nothing runs of a file that cannot be imported
                theirs |= outcomes(path, "jax", options, {
                    "JAX_SUITE_CASES": "\n".join(failed)} if failed else share, False)
        ours = with_reasons(f"{checkout_of(path).name}/{path.stem}", ours)
        told(path.stem, ours, theirs, arguments.report)


if __name__ == "__main__":
    main()
