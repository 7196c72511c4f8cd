"""For teachers: what a course is given with, made from the chapters.

`assignments` writes the chapters without solutions, a bank of all exercises, a midterm drawn from
it, and the solutions in files of their own; `slides` a page of slides for each week of the plan in
README.md; `progress` the page of one reader's progress. Everything is written below `build/course`.
"""

from __future__ import annotations

import argparse
import html
import json
import random
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from minijax.notebook import checks

HERE = Path(__file__).parent
COURSE = HERE.parent / "build" / "course"
_SOLUTION = re.compile(
    r"<details><summary>Solution: (?P<name>[^<]+)</summary>\s*\n.*?</details>\n*", re.DOTALL)


def chapters() -> list[Path]:
    """The chapters, in reading order."""
    return sorted(HERE.glob("[0-9][0-9]_*.ipynb"))


def cells_of(chapter: Path) -> list[tuple[str, str, list[str]]]:
    """The kind, the source and the tags of each cell."""
    return [(cell["cell_type"], "".join(cell["source"]), cell["metadata"].get("tags", []))
            for cell in json.loads(chapter.read_text(encoding="utf-8"))["cells"]]


# ── Assignments ──────────────────────────────────────────────────────────────────────────────

def without_solutions(text: str) -> str:
    """A chapter's `.ipynb` whose folded solutions are gone."""
    notebook = json.loads(text)
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            source = _SOLUTION.sub("", "".join(cell["source"]))
            cell["source"] = source.splitlines(True)
    notebook["cells"] = [cell for cell in notebook["cells"] if "".join(cell["source"]).strip()]
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


class Assignment(NamedTuple):
    """An exercise with the text that asks for it."""

    name: str
    asked: str
    start: str


def assignments(chapter: Path) -> Iterator[Assignment]:
    """The exercises of a chapter: what stands above each check, from the last heading on."""
    asked, start = "", ""
    for kind, source, _ in cells_of(chapter):
        source = _SOLUTION.sub("", source) if kind == "markdown" else source
        if kind == "markdown":
            last = [m.start() for m in re.finditer(r"^#+ ", source, re.MULTILINE)]
            asked, start = (source[last[-1]:] if last else f"{asked}\n\n{source}"), ""
        elif check := re.match(r"check\([\"']([^\"']+)[\"']", source):
            yield Assignment(check[1], re.sub(r"^#+ ", "### ", asked.strip()), start)
        else:
            start = source


def bank() -> dict[str, str]:
    """The bank: for each chapter a file of exercises, and one of solutions."""
    files = {}
    for chapter in chapters():
        rows = list(assignments(chapter))
        if rows:
            files[f"bank/{chapter.stem}.md"] = _titled(chapter, (
                f"{row.asked}\n\nThe check is called `{row.name}`.\n\n```python\n{row.start}\n```"
                for row in rows))
            files[f"solutions/{chapter.stem}.md"] = _titled(chapter, (
                f"### {row.name}\n\n```python\n{checks.exercises()[row.name].solution}```"
                for row in rows))
    return files


def _titled(chapter: Path, parts: Iterator[str]) -> str:
    return "\n\n".join([f"# {chapter.stem[:2]} {title(chapter)}", *parts]) + "\n"


def midterm(seed: int = 0) -> str:
    """One exercise of each chapter before the midterm of the plan, drawn with a seed."""
    week = next(week for week, numbers in weeks().items() if not numbers)
    numbers = {n for before, those in weeks().items() if before < week for n in those}
    draw = random.Random(seed)
    drawn = [draw.choice(rows) for chapter in chapters()
             if chapter.stem[:2] in numbers and (rows := list(assignments(chapter)))]
    return "\n\n".join(["# Midterm", *(f"{row.asked}\n\nThe check is called `{row.name}`."
                                       for row in drawn)]) + "\n"


def write_assignments(seed: int) -> None:
    """Write the bank, a midterm, the solutions, and the chapters without them."""
    files = bank() | {"bank/midterm.md": midterm(seed)}
    files |= {f"chapters/{c.name}": without_solutions(c.read_text()) for c in chapters()}
    for place, text in files.items():
        _write(COURSE / place, text)
    for folder in ("exercises", "mini", "data", "pictures"):
        shutil.copytree(HERE / folder, COURSE / "chapters" / folder, dirs_exist_ok=True,
                        ignore=shutil.ignore_patterns("__pycache__"))
    print(f"{len(files)} files in {COURSE}; keep `solutions`, and grade with make grade SEED=…")


# ── Slides ───────────────────────────────────────────────────────────────────────────────────

def weeks() -> dict[int, list[str]]:
    """The numbers of the chapters of each week, from the plan in README.md; of a midterm, none."""
    rows = re.findall(r"^\| (\d+) \| ([^|]+) \|", (HERE / "README.md").read_text().partition(
        "## One semester")[2], re.MULTILINE)
    return {int(week): [f"{number:02}" for first, _, last in re.findall(
        r"(\d\d)(–(\d\d))?", listed) for number in range(int(first), int(last or first) + 1)]
        for week, listed in rows}


def minutes() -> dict[str, int]:
    """The minutes of each chapter with its exercises, from the table in README.md."""
    rows = re.findall(r"^\| (\d\d) \|[^|]+\|[^|]+\| (\d+)(?: \+ (\d+))? \|",
                      (HERE / "README.md").read_text(), re.MULTILINE)
    return {number: int(reading) + int(solving or 0) for number, reading, solving in rows}


def title(chapter: Path) -> str:
    """The first heading of a chapter."""
    return next(re.search(r"^# +(.+)$", source, re.MULTILINE)[1]  # type: ignore[index]
                for kind, source, _ in cells_of(chapter) if kind == "markdown")


_QUESTION = re.compile(r"\*\*The question\.\*\* (.*?)\n\n", re.DOTALL)


def slides(chapter: Path) -> Iterator[str]:
    """A chapter's slides: the question, then for each section its picture and its first code."""
    heading, shown = title(chapter), False
    for kind, source, tags in cells_of(chapter):
        if kind == "markdown":
            if question := _QUESTION.search(source + "\n\n"):
                yield _slide(heading, f"<p class=question>{_inline(question[1])}</p>")
            for line in re.findall(r"^(?:#{2,3} .+|!\[[^\]]*\]\([^)]+\))$", source, re.MULTILINE):
                if line.startswith("#"):
                    heading, shown = line.lstrip("# "), False
                elif image := re.match(r"!\[([^\]]*)\]\((pictures/[^)]+\.svg)\)", line):
                    picture = (HERE / image[2]).read_text(encoding="utf-8")
                    yield _slide(heading, f"<figure>{picture}</figure>")
        elif not shown and heading != title(chapter) and _fits(source, tags):
            shown = True
            yield _slide(heading, f"<pre>{html.escape(source)}</pre>")


def _fits(source: str, tags: list[str]) -> bool:
    """Whether a code cell is short enough for a slide, and no exercise."""
    return (0 < len(source.splitlines()) <= 18 and not {"exercise", "check"} & {*tags}
            and not source.startswith(("check(", "%load")))


def _slide(heading: str, body: str) -> str:
    return f"<section><h2>{_inline(heading)}</h2>{body}</section>"


def _inline(text: str) -> str:
    text = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", html.escape(text))
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
    return re.sub(r"\*{1,2}([^*]+)\*{1,2}", r"<em>\1</em>", text)


STYLE = """
body { margin: 0; font: 22px/1.4 system-ui, sans-serif }
section { min-height: 100vh; padding: 5vh 8vw; box-sizing: border-box; break-after: page }
h2 { margin-top: 0 } .question { font-size: 1.7em } pre { font-size: .75em; white-space: pre-wrap }
figure { margin: 0 } figure svg { max-width: 100%; max-height: 70vh; background: white }
table { border-collapse: collapse } td, th { padding: .2em .8em; text-align: left }
"""
KEYS = """
addEventListener("keydown", e => {
  const step = {ArrowRight: 1, PageDown: 1, " ": 1, ArrowLeft: -1, PageUp: -1}[e.key];
  if (!step) return;
  e.preventDefault();
  scrollTo(0, (Math.round(scrollY / innerHeight) + step) * innerHeight);
});
"""


def page(name: str, body: str, script: str = "") -> str:
    """A page that needs no other file."""
    return (f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{name}</title>'
            f"<style>{STYLE}</style>{body}<script>{script}</script></html>\n")


def write_slides(seed: int) -> None:
    """Write one page for each week; a browser prints it as PDF, one slide on each sheet."""
    by_number = {chapter.stem[:2]: chapter for chapter in chapters()}
    for week, numbers in weeks().items():
        shown = [slide for n in numbers if n in by_number for slide in slides(by_number[n])]
        _write(COURSE / "slides" / f"week_{week:02}.html",
               page(f"Week {week}", "".join(shown) or _slide("Midterm", ""), KEYS))
    print(f"{len(weeks())} weeks in {COURSE / 'slides'}")


# ── Progress ─────────────────────────────────────────────────────────────────────────────────

def progress_page(kept: dict[str, dict]) -> str:
    """The page of a reader's progress: what is done, with how many tries, and what comes next."""
    every = sorted(checks.exercises().values(), key=lambda one: one.chapter)
    unsolved = [one for one in every if kept.get(one.name, {}).get("state") != checks.RIGHT]
    rows = "".join(
        f"<tr><td>{one.chapter[:2]}<td>{one.name}<td>{state['state']}<td>{state['tries']}"
        for one in every if (state := kept.get(one.name)))
    following = (f"Next: <code>{unsolved[0].name}</code>, in {unsolved[0].chapter}.ipynb"
                 if unsolved else "All are done.")
    return page("Progress", f"<section><h2>{len(every) - len(unsolved)} of {len(every)} exercises"
                f"</h2><p>{following}</p><table><tr><th>chapter<th>exercise<th>state<th>tries{rows}"
                "</table></section>")


def write_progress(seed: int) -> None:
    """Write the page; from the first time on, checks are recorded in a file beside the chapters."""
    path = HERE / checks.PROGRESS
    if not path.exists():
        path.write_text("{}\n")
        print(f"from now on checks are recorded in {path}, and nowhere else")
    _write(COURSE / "progress.html", progress_page(json.loads(path.read_text())))
    print(COURSE / "progress.html")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


COMMANDS: dict[str, Callable[[int], None]] = {
    "assignments": write_assignments, "slides": write_slides, "progress": write_progress}


def main(arguments: list[str] | None = None) -> int:
    """The command line; see the top of this file."""
    parser = argparse.ArgumentParser(description="What a course is given with.")
    parser.add_argument("commands", nargs="+", choices=COMMANDS)
    parser.add_argument("--seed", type=int, default=0, help="of the midterm")
    options = parser.parse_args(arguments)
    for command in options.commands:
        COMMANDS[command](options.seed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
