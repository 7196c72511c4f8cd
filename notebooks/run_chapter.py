"""Execute chapters without a browser.

`check CHAPTER.ipynb` runs one and prints what its cells tagged `finding` print; the exit status
is 1 if a cell fails. `weave [CHAPTER.md …]` writes live cells and solutions from the package into
both halves, into `mini/` what the reader's library is at the end of each, and the table of
`write_your_own.md`; `refresh
[CHAPTER.md …]` weaves, and writes each `.ipynb` anew from its `.md` half.
`report` prints how much of each chapter's source is live, and lists what `explained.toml` asks for
and no chapter shows; `grade COPY` runs every `check` of a student's copy and prints the score.
It stands beside the chapters, and not in the package: the library needs no Jupyter.
"""

from __future__ import annotations

import argparse
import configparser
import itertools
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from tqdm import tqdm

from minijax.notebook import slots_page
from minijax.notebook import weave as weaving

HERE = Path(__file__).parent
FINDING = "finding"
# The output depends on the machine (a time, assembly, a picture): our word, and nbval's, which
# the executed half bears besides.
MACHINE, NBVAL_IGNORE = "machine-dependent", "nbval-ignore-output"
COMPARED = "compared"  # rules for nbval alone: outputs are stored with all their digits
FOLDED = "hide-output"  # "predict, then run": the site's word; JupyterLab has one of its own


def execute(notebook: Any, name: str, **options: Any) -> None:
    """Run a notebook's cells in place, with a progress bar; raises CellExecutionError."""
    total = sum(cell.cell_type == "code" for cell in notebook.cells)
    headings = dict(_headings(notebook))
    with tqdm(total=total, unit="cell", desc=name, mininterval=1.0) as bar:

        def started(cell: Any, cell_index: int) -> None:
            bar.set_postfix_str(headings.get(cell_index, ""), refresh=False)

        def finished(cell: Any, cell_index: int, execute_reply: Any) -> None:
            bar.update(cell.cell_type == "code")

        client = NotebookClient(
            notebook,
            timeout=options.pop("timeout", 600),
            kernel_name="python3",
            record_timing=False,
            extra_arguments=["--IPKernelApp.log_level=40"],  # no word about transports
            resources={"metadata": {"path": str(HERE)}},
            on_cell_start=started,
            on_cell_executed=finished,
            **options,
        )
        client.execute()


def _headings(notebook: Any) -> Iterator[tuple[int, str]]:
    """For each cell's place, the heading it stands under."""
    heading = ""
    for place, cell in enumerate(notebook.cells):
        if cell.cell_type == "markdown":
            found = re.findall(r"^#+ (.*)$", cell.source, re.MULTILINE)
            heading = found[-1][:40] if found else heading
        yield place, heading


def printed(cell: Any) -> str:
    """What a cell printed or showed, as plain text."""
    parts = []
    for output in cell.get("outputs", ()):
        if output.output_type == "stream":
            parts.append(output.text)
        elif "data" in output:
            parts.append(output.data.get("text/plain", "") + "\n")
    return "".join(parts)


def check(chapter: Path) -> int:
    """Execute a chapter and print what it found; 0 if every cell ran."""
    notebook = nbformat.read(chapter, as_version=4)
    start = time.perf_counter()
    try:
        execute(notebook, chapter.stem)
    except CellExecutionError as error:
        print(f"\n{chapter.name}: a cell failed\n{error}")
        return 1
    seconds = time.perf_counter() - start
    findings = [cell for cell in notebook.cells if FINDING in cell.metadata.get("tags", ())]
    print(f"\n{chapter.name}: all cells ran, in {seconds:.1f} s; it found")
    for cell in findings:
        print(printed(cell).rstrip())
    return 0


def refresh(source: Path) -> int:
    """Write a chapter's `.ipynb` from its `.md`, woven and executed; 0 if every cell ran."""
    weave(source, [".md"])  # the other half is written from it, and may show what is no more
    if missing := weaving.unsaid(source):
        print(f"{source.name}: no sentence beside the cell says", *missing, sep="\n  ")
        return 1
    target = source.with_suffix(".ipynb")
    notebook = jupytext.read(source)
    for place, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{place}"
        tags = cell.metadata.get("tags", [])
        if MACHINE in tags and NBVAL_IGNORE not in tags:
            tags.append(NBVAL_IGNORE)
        if FOLDED in tags:
            cell.metadata["jupyter"] = {"outputs_hidden": True}
    try:
        execute(notebook, source.stem)
    except CellExecutionError as error:
        print(f"\n{source.name}: a cell failed, {target.name} is as it was\n{error}")
        return 1
    if target.exists():
        _keep_machine_outputs(notebook, nbformat.read(target, as_version=4))
    _make_stable(notebook)
    nbformat.write(notebook, target)
    return 0


def _keep_machine_outputs(notebook: Any, old: Any) -> None:
    """A cell whose output depends on the machine keeps it while its source is the same."""
    kept = {cell.source: cell.outputs for cell in old.cells if cell.cell_type == "code"}
    for cell in notebook.cells:
        if NBVAL_IGNORE in cell.metadata.get("tags", ()) and cell.source in kept:
            cell.outputs = kept[cell.source]


def _make_stable(notebook: Any) -> None:
    """Take out what differs between two executions of the same chapter."""
    notebook.metadata.get("language_info", {}).pop("version", None)
    rules = configparser.RawConfigParser()
    rules.read(HERE / "sanitize.cfg")
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = _joined(cell.outputs)
        for output in cell.get("outputs", ()):
            for rule in rules.sections():
                if not rule.startswith(COMPARED):
                    _replace(output, re.compile(rules[rule]["regex"]), rules[rule]["replace"])


def _joined(outputs: list[Any]) -> list[Any]:
    """The pieces of a stream as one: where they are cut depends on the machine's mood."""
    joined: list[Any] = []
    for is_stream, run in itertools.groupby(outputs, lambda o: o.output_type == "stream"):
        pieces = list(run)
        joined += _streams(pieces) if is_stream else pieces
    return joined


def _streams(pieces: list[Any]) -> Iterator[Any]:
    """What was printed, then the warnings; of a line that was written over only the last."""
    for name in ("stdout", "stderr"):
        text = "".join(piece.text for piece in pieces if piece.name == name)
        if text:
            text = re.sub(r"^.*\r(?!\n)", "", text, flags=re.MULTILINE)
            yield nbformat.v4.new_output("stream", name=name, text=text)


def _replace(output: Any, pattern: re.Pattern[str], text: str) -> None:
    """Replace a pattern in everything textual of one output."""
    for key, value in output.items():
        if isinstance(value, dict):
            _replace(value, pattern, text)
        elif isinstance(value, list):
            output[key] = [pattern.sub(text, v) if isinstance(v, str) else v for v in value]
        elif isinstance(value, str) and key not in ("output_type", "name", "image/png"):
            output[key] = pattern.sub(text, value)


def weave(source: Path, halves: Sequence[str] = (".md", ".ipynb")) -> int:
    """Write a chapter's live cells and solutions anew; says what changed."""
    for name in weaving.weave(source, halves):
        print(f"{name}: woven anew")
    return 0


def keep_libraries() -> None:
    """Write what `mini` is at the end of each chapter, from which the next ones begin."""
    for path, text in weaving.kept_libraries(sorted(HERE.glob("[0-9]*.md"))).items():
        path.parent.mkdir(exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(f"{path.name}: written anew")


def weave_slots() -> None:
    """Write the table of the page *Write your own*."""
    page = HERE / "write_your_own.md"
    old = page.read_text(encoding="utf-8")
    if (new := slots_page.woven(old)) != old:
        page.write_text(new, encoding="utf-8")
        print(f"{page.name}: written anew")


def report() -> int:
    """Print what the chapters still have to explain; 0 if there is nothing."""
    chapters = sorted(HERE.glob("[0-9]*.md"))
    for chapter in chapters:
        share = weaving.live_share(chapter)
        print(f"{chapter.stem:36} {share:4.0%} of its source is live"
              + f", more than {weaving.MOST_LIVE:.0%}" * (share > weaving.MOST_LIVE))
    missing = weaving.report(chapters, HERE / "explained.toml")
    print("\n".join(missing) or "every definition is explained")
    return bool(missing)


def grade(copy: Path, seed: int = 0) -> int:
    """Run a student's copy to its end, whatever fails, and print how its exercises stand.

    With a seed, each answer is also checked on two draws of hidden inputs.
    """
    notebook = jupytext.read(copy)
    asked = re.findall(r"""^check\(["']([^"']+)["']""",
                       "\n".join(cell.source for cell in notebook.cells), re.MULTILINE)
    summing_up = f"from minijax.notebook import checks\nprint(checks.score({asked!r}))"
    notebook.cells.append(nbformat.v4.new_code_cell(summing_up))
    if seed:
        hidden = f"from minijax.notebook import checks\nchecks.grade_on([{seed}, {seed + 1}])"
        notebook.cells.insert(0, nbformat.v4.new_code_cell(hidden))
    execute(notebook, copy.stem, allow_errors=True, timeout=120, interrupt_on_timeout=True)
    print(f"\n{copy.name}\n{printed(notebook.cells[-1]).rstrip()}")
    return 0


COMMANDS: dict[str, tuple[Callable[[Path], int], str]] = {
    "check": (check, ".ipynb"), "refresh": (refresh, ".md"), "weave": (weave, ".md"),
}  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    """The command line; see the top of this file."""
    parser = argparse.ArgumentParser(description="Execute chapters without a browser.")
    parser.add_argument("command", choices=[*COMMANDS, "report", "grade"])
    parser.add_argument("chapters", nargs="*", type=Path)
    parser.add_argument("--seed", type=int, default=0, help="of hidden inputs, for grade")
    options = parser.parse_args(arguments)
    if options.command == "report":
        return report()
    if options.command == "grade":
        if not options.chapters:
            parser.error("say which copy to grade: make grade FILE=…")
        return max(grade(copy, options.seed) for copy in options.chapters)
    if options.command in ("weave", "refresh"):
        keep_libraries()
        weave_slots()
    command, suffix = COMMANDS[options.command]
    chapters = options.chapters or sorted(HERE.glob("[0-9]*.md"))
    return max((command(chapter.with_suffix(suffix)) for chapter in chapters), default=0)


if __name__ == "__main__":
    sys.exit(main())
