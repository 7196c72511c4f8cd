"""JAX's own tests on minijax: `python -m tests.jax_suite --checkout FOLDER api nn …`.

The checkout is one of JAX's repository at version 0.10.2, beside this one (also `JAX_CHECKOUT`).
For each file it prints the cases that passed, failed, and need something inside of JAX; `--report`
lists the failures and those names; `reasons.toml` says why what fails fails, and `--table` writes
`results.md`.  With `--beside-jax` the cases run on JAX as well; those that fail or are skipped
there are left out.  It is a tool, no part of `make test`.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
RESULTS = HERE / "results.md"
Outcomes = dict[str, tuple[str, str]]  # of a case: passed, failed, skipped or internals; and a text


def outcomes(checkout: Path, name: str, on: str, options: list[str], verbose: bool) -> Outcomes:
    """Run one file of JAX's tests."""
    path = checkout / "tests" / f"{name}_test.py"
    if not path.exists():
        raise SystemExit(f"{path} is not there")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "outcomes"
        file.touch()
        environment = {
            "JAX_NUM_GENERATED_CASES": "3", "JAX_THREEFRY_PARTITIONABLE": "1",
            "JAX_PLATFORMS": "cpu", "PYTHONDONTWRITEBYTECODE": "1", **os.environ,
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT),
            "JAX_SUITE_CHECKOUT": str(checkout), "JAX_SUITE_ON": on,
            "JAX_SUITE_OUTCOMES": str(file)}
        run = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", folder,
             "--import-mode=importlib", "-p", "no:cacheprovider", "-p", "tests.jax_suite.plugin",
             *([] if verbose else ["--tb=short"]), *options, str(path)],
            cwd=folder, env=environment, text=True, capture_output=not verbose)
        rows = [json.loads(line) for line in file.read_text().splitlines()]
    if not rows and not verbose:
        print(run.stdout[-3000:], run.stderr[-3000:])
    return {case: (outcome, text) for case, outcome, text in rows}


def reasons() -> list[dict]:
    """The rows of `reasons.toml`."""
    rows: list[dict] = tomllib.loads((HERE / "reasons.toml").read_text())["reason"]
    return rows


def with_reasons(name: str, ours: Outcomes) -> Outcomes:
    """The outcomes, where a failed case that needs internals says so, and others say why."""
    def explained(case: str, outcome: tuple[str, str]) -> tuple[str, str]:
        for each in reasons() if outcome[0] == "failed" else ():
            if each["file"] == name and any(fnmatch.fnmatchcase(case, x) for x in each["cases"]):
                return (("internals", each["needs"]) if "needs" in each else
                        ("failed", f"{each['why']}. {outcome[1]}"))
        return outcome
    return {case: explained(case, outcome) for case, outcome in ours.items()}


def stale(name: str, ours: Outcomes) -> list[str]:
    """The patterns of `reasons.toml` for a file that no case of it needs any longer."""
    failed = [case for case, (outcome, _) in ours.items() if outcome == "failed"]
    return [x for each in reasons() if each["file"] == name for x in each["cases"]
            if not fnmatch.filter(failed, x)]


def row(name: str, ours: Outcomes, theirs: Outcomes | None) -> tuple[list[str], Outcomes]:
    """A row of the table, and the cases that count."""
    counted = {case: x for case, x in ours.items()
               if x[0] != "skipped" and (theirs is None or theirs.get(case, [""])[0] == "passed")}
    absent = [case for case, x in (theirs or {}).items()
              if x[0] == "passed" and case not in counted]
    counted |= dict.fromkeys(absent, ("failed", "the case is not there, or skipped"))
    number = Counter(outcome for outcome, _ in counted.values())
    return cells(name, *(number[x] for x in ("passed", "failed", "internals"))), counted


def cells(name: str, passed: int, failed: int, internals: int) -> list[str]:
    """A row of the table; the share is that of the passed among the cases without internals."""
    judged = passed + failed
    share = f"{passed / judged:.1%}" if judged else "-"
    return [name, str(passed), str(failed), str(internals), share]


def with_total(rows: dict[str, list[str]]) -> list[list[str]]:
    """The rows in the order of their names, and a last one of their sums."""
    ordered = [rows[name] for name in sorted(rows)]
    sums = [sum(int(row[column]) for row in ordered) for column in (1, 2, 3)]
    return [*ordered, cells(f"all {len(ordered)} files", *sums)]


COLUMNS = "{:28}{:>8}{:>8}{:>11}{:>9}"
HEAD = COLUMNS.format("file", "passed", "failed", "internals", "passed")


def told(name: str, ours: Outcomes, theirs: Outcomes | None, report: Path | None) -> list[str]:
    """The row of a file, which is printed; what did not pass is added to the report."""
    texts, counted = row(name, ours, theirs)
    print(COLUMNS.format(*texts), flush=True)
    if report:
        with report.open("a") as file:
            for case, (outcome, text) in sorted(counted.items(), key=lambda x: (x[1], x[0])):
                if outcome != "passed":
                    file.write(f"{name}\t{outcome}\t{case}\t{' '.join(text.split())[:300]}\n")
    return texts


HEADING = """# JAX's own tests on minijax

`python -m tests.jax_suite --table --checkout FOLDER FILE…` writes these rows: of
the cases of each of JAX's test files, how many pass, fail, and use something inside
of JAX; the share is that of the first among the first two.  Cases that JAX itself
skips are left out.
"""


def rows_of(results: Path) -> dict[str, list[str]]:
    """The rows of a table of files, by their names, without the last one, of their sums."""
    lines = results.read_text().splitlines() if results.exists() else []
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: row for row in rows
            if len(row) == 5 and row[1].isdigit() and not row[0].startswith("all ")}


def written(rows: list[list[str]], results: Path = RESULTS, heading: str = HEADING) -> None:
    """Write rows of a table, and the reasons of its suite; other rows stay."""
    of_libraries = results != RESULTS  # whose files are named with their repositories
    known = rows_of(results) | {row[0]: row for row in rows}
    lines = [heading, "| file | passed | failed | internals | share |", "|---|---:|---:|---:|---:|",
             *(f"| {' | '.join(row)} |" for row in with_total(known)), "",
             "## What fails, and why", "",
             *(f"- {each['file']}: {', '.join(f'`{case}`' for case in each['cases'])}: "
               f"{each['why']}." for each in reasons()
               if "why" in each and ("/" in each["file"]) == of_libraries)]
    results.write_text("\n".join(lines) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", help="names of test files, such as api or lax_numpy")
    parser.add_argument("--checkout", type=Path, default=os.environ.get("JAX_CHECKOUT"))
    parser.add_argument("--beside-jax", action="store_true", help="run the cases on JAX, too")
    parser.add_argument("--report", type=Path, help="a file for failures and internals")
    parser.add_argument("--table", action="store_true", help="write the rows to results.md")
    parser.add_argument("-k", help="only the cases that match, as in pytest")
    parser.add_argument("-v", action="store_true", help="show what pytest prints")
    arguments = parser.parse_args()
    if arguments.checkout is None:
        raise SystemExit("name a checkout of JAX's repository: --checkout, or JAX_CHECKOUT")
    options = ["-k", arguments.k] if arguments.k else []
    print(HEAD)
    for name in arguments.files:
        theirs = (outcomes(arguments.checkout, name, "jax", options, False)
                  if arguments.beside_jax else None)
        ours = outcomes(arguments.checkout, name, "minijax", options, arguments.v)
        if not arguments.k and (patterns := stale(name, ours)):
            print(f"  no case fails any longer: {', '.join(patterns)}")
        texts = told(name, with_reasons(name, ours), theirs, arguments.report)
        if arguments.table:
            written([texts])


if __name__ == "__main__":
    main()
