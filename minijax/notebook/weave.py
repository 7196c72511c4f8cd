"""The weaver: writes live cells and solutions of the chapters from the source.

Builds on `source`, `checks`, `claims`.  `notebooks/run_chapter.py` is its command line.
JAX has no counterpart.
"""

import ast
import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from minijax.notebook import checks, claims, source
from minijax.notebook.library import kept_after

# The tags of cells whose live source differs on purpose.
EDITED = ("live-edit", "raises-exception")

_CODE_CELL = re.compile(r"^(?P<fence>`{3,})\{code-cell\}[^\n]*\n(?P<body>.*?)^(?P=fence)[ ]*$",
                        re.MULTILINE | re.DOTALL)
_SOLUTION = re.compile(r"(<summary>Solution: (?P<name>[^<]+)</summary>\s*\n```python\n)"
                       r"(?P<body>.*?)(^```)", re.MULTILINE | re.DOTALL)


def weave_cell(text: str) -> str:
    """The source of a code cell; if it is a live one, with the package's text.

    >>> print(weave_cell("%%live minijax.core.trace.EvalTrace.__doc__"))
    Traceback (most recent call last):
    ...
    LookupError: minijax.core.trace.EvalTrace does not define __doc__
    """
    names = live_names(text)
    return f"{text.splitlines()[0]}\n{source.cell_text(names)}" if names else text


def live_names(text: str) -> list[str]:
    """What a cell's `%%live` line names, in full.

    >>> live_names("%%live minijax.core.conversion.as_value .get_aval")
    ['minijax.core.conversion.as_value', 'minijax.core.conversion.get_aval']
    """
    words = text.split("\n", 1)[0].split()
    return source.full_names(words[1:]) if words[:1] == ["%%live"] else []


def weave_solutions(text: str) -> str:
    """A piece of prose, its folded solutions as they are registered."""
    def woven(found: re.Match[str]) -> str:
        name = found["name"].strip()
        if name not in checks.exercises():
            raise LookupError(f"a chapter solves {name!r}, and no exercise is called so")
        return found[1] + checks.exercises()[name].solution + found[4]
    return _SOLUTION.sub(woven, text)


def weave_markdown(text: str) -> str:
    """A chapter's `.md`, woven."""
    pieces, end = [], 0
    for found in _CODE_CELL.finditer(text):
        pieces += [weave_solutions(text[end:found.start("body")]), _weave_body(found["body"])]
        end = found.end("body")
    return "".join([*pieces, weave_solutions(text[end:])])


def _is_edited(options: str) -> bool:
    return any(tag in options for tag in EDITED)


def _weave_body(body: str) -> str:
    """What is between the fences of a code cell: options, then its source."""
    start = body.find("%%live ")
    options = body[:max(start, 0)]
    if start < 0 or _is_edited(options) or re.sub(r"^:.*$", "", options, flags=re.M).strip():
        return body
    return options + weave_cell(body[start:].rstrip()) + "\n"


def weave_notebook(notebook: dict[str, Any]) -> dict[str, Any]:
    """A chapter's `.ipynb` as JSON, woven in place; an unchanged live cell has no output."""
    for cell in notebook["cells"]:
        old = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            new = weave_solutions(old)
        else:
            new = old if _is_edited(str(tags(cell))) else weave_cell(old)
        if new != old:
            cell["source"] = new.splitlines(keepends=True)
    return notebook


def tags(cell: dict[str, Any]) -> list[str]:
    return list(cell.get("metadata", {}).get("tags", ()))


def weave(chapter: Path, halves: Sequence[str] = (".md", ".ipynb")) -> list[str]:
    """Write the halves of a chapter anew; returns the names of the files that changed."""
    changed = []
    for path in map(chapter.with_suffix, halves):
        if not path.exists():
            continue
        old = path.read_text(encoding="utf-8")
        if path.suffix == ".md":
            new = weave_markdown(old)
        else:
            notebook = weave_notebook(json.loads(old))
            new = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
            new = old if json.loads(old) == notebook else new
        if new != old:
            path.write_text(new, encoding="utf-8")
            changed.append(path.name)
    return changed


# ---------------------------------------------------------------- the library that is built


def kept_libraries(chapters: Sequence[Path]) -> dict[Path, str]:
    """The files of what `mini` is at the end of each chapter, beside the chapters."""
    cells = [(chapter.stem.partition("_")[0],
              [found["body"][found["body"].find("%%mini\n"):].rstrip()
               for found in _CODE_CELL.finditer(chapter.read_text(encoding="utf-8"))
               if "%%mini\n" in found["body"] and not _is_edited(found["body"])])
             for chapter in sorted(chapters)]
    return {chapters[0].parent / path: text for path, text in kept_after(cells).items()}


# ---------------------------------------------------------------- what is said


def unsaid(chapter: Path) -> list[str]:
    """The claims of a chapter's cells that stand in the prose neither before nor after the cell."""
    text = chapter.read_text(encoding="utf-8")
    cells = list(_CODE_CELL.finditer(text))
    ends = [0, *(cell.end() for cell in cells)]
    starts = [*(cell.start() for cell in cells), len(text)]
    prose = [claims.plain(text[end:start]) for end, start in zip(ends, starts, strict=True)]
    missing = []
    for place, cell in enumerate(cells):
        before = next((p for p in reversed(prose[:place + 1]) if p), "")
        after = next((p for p in prose[place + 1:] if p), "")
        missing += [claim for claim in claims_in(cell["body"])
                    if claims.plain(claim) not in f"{before}\n{after}"]
    return missing


def claims_in(body: str) -> Iterator[str]:
    """What the calls of `says` in a cell claim.

    >>> list(claims_in(":tags: [x]\\n%time f()\\nsays('two of them', 2)"))
    ['two of them']
    """
    if "says(" not in body:
        return
    lines = [line for line in body.splitlines() if line[:1] not in ("%", ":", "!")]
    for node in ast.walk(ast.parse("\n".join(lines))):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "says":
            yield ast.literal_eval(node.args[0])


# ---------------------------------------------------------------- what is explained


@dataclass(frozen=True)
class LiveCell:
    """A live cell of a chapter, and the prose just before and just after it."""

    chapter: str
    names: tuple[str, ...]
    lines: int
    prose: str


def live_cells(chapter: Path) -> Iterator[LiveCell]:
    """The live cells of a chapter's `.md`."""
    text = weave_markdown(chapter.read_text(encoding="utf-8"))
    cells = [(found.start(), found.end(), found["body"]) for found in _CODE_CELL.finditer(text)]
    ends = [0, *(end for _, end, _ in cells)]
    starts = [*(start for start, _, _ in cells), len(text)]
    prose = [text[end:start].strip() for end, start in zip(ends, starts, strict=True)]
    for place, (_, _, body) in enumerate(cells):
        start = body.find("%%live ")
        if start < 0 or _is_edited(body[:start]):
            continue
        before = next((p for p in reversed(prose[:place + 1]) if p), "")
        after = next((p for p in prose[place + 1:] if p), "")
        names = live_names(body[start:])
        yield LiveCell(chapter.stem, tuple(names), body[start:].rstrip().count("\n"),
                       f"{before}\n{after}")


MOST_LIVE = 0.25  # of a chapter's lines of source


def live_share(chapter: Path) -> float:
    """The part of a chapter's lines of source that is the package's, in live cells."""
    counts = {True: 0, False: 0}
    for found in _CODE_CELL.finditer(weave_markdown(chapter.read_text(encoding="utf-8"))):
        options, live, source_text = found["body"].rpartition("%%live ")
        is_live = bool(live) and not _is_edited(options)
        lines = source_text.splitlines()[is_live:]
        counts[is_live] += sum(bool(line.strip()) and line[0] != ":" for line in lines)
    return counts[True] / max(sum(counts.values()), 1)


def report(chapters: Sequence[Path], explained: Path) -> list[str]:
    """What the chapters still have to explain, one line each.

    `explained` is a TOML file: `[chapters]`, each with the modules that it comes nearest to (asked
    for once the chapter exists).  A chapter shows all of a module, or has a link to its file,
    which is in the site a link to the appendix, where the rest stands.
    """
    cells = [cell for chapter in chapters for cell in live_cells(chapter)]
    lines = [f"{cell.chapter}: the cell of {cell.names[0]} has {cell.lines} lines, "
             f"more than {source.MAX_LINES}" for cell in cells if cell.lines > source.MAX_LINES]
    written = {chapter.stem.partition("_")[0]: chapter for chapter in chapters}
    for number, modules in explained_modules(explained).items():
        if number in written:
            text = written[number].read_text(encoding="utf-8")
            for module in modules:
                lines += _unexplained(module, cells, is_linked=_link(module) in text)
    return lines


def explained_modules(explained: Path) -> dict[str, list[str]]:
    """The modules that `explained.toml` asks for, by the number of their chapter."""
    chapters = tomllib.loads(explained.read_text(encoding="utf-8"))["chapters"]
    return {number: [f"minijax.{name}" for name in names] for number, names in chapters.items()}


def _link(module: str) -> str:
    """How a chapter's Markdown points to the file of a module."""
    return f"](../{module.replace('.', '/')}.py)"


def shown_by(definition: source.Definition, cells: Sequence[LiveCell]) -> list[LiveCell]:
    """The live cells that show a definition, by itself or inside the class around it."""
    names = {definition.name, definition.owner} if definition.classes else {definition.name}
    return [cell for cell in cells if names & {*cell.names}]


def _unexplained(module: str, cells: Sequence[LiveCell], is_linked: bool) -> Iterator[str]:
    for definition in source.definitions(module):
        showing = shown_by(definition, cells)
        names = (*definition.classes, definition.short)
        if not showing and not is_linked:
            yield f"{definition.name}: no live cell shows it, and no link leads to its module"
        elif showing and not any(_names(cell.prose, name) for cell in showing for name in names):
            chapter = showing[0].chapter
            yield f"{definition.name}: {chapter} shows it, but the prose beside does not name it"


def _names(prose: str, name: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", prose) is not None
