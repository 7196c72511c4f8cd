"""The reader's own library, `mini`: cells that begin with `%%mini` write it, chapter by chapter.

Builds on `source`.  JAX has no counterpart.
"""

import ast
import linecache
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from minijax.notebook.source import bound_names, set_on

NAME = "mini"
OWN = "my_mini_{}.py"  # a reader's library at the end of a chapter, where there is one
KEPT = Path("mini")  # the folder, beside the chapters, of what stands at the end of each
_GOES_ON_IN = {"11": "22", "24": "26", "27": "29"}  # the chapters between two only use a library


# The library's sections in reading order; one that is not listed comes after them.
SECTIONS = ("Types", "Primitives and traces", "Trees", "Forward derivatives", "Vectorising",
            "Programs", "Reverse derivatives", "Operations", "Programs as parameters",
            "The loop tree", "Loops as text", "Compiling", "Control flow", "Rules of your own",
            "Named axes", "Simplifying", "Parts of arrays", "Threads", "Launches")
_HEADER, _IMPORTS, _UNNAMED = -3, -2, -1  # what comes before the sections
_SECTION_LINE = re.compile(r"# ── (?P<title>.+?) ─+\s*")
_WIDTH = 100


class Piece(NamedTuple):
    """A statement: the names that it defines, those whose attributes it sets, its text."""

    defines: frozenset[str]
    about: frozenset[str]
    runs_now: bool  # no function or class, whose body may mention what comes later
    stays: bool  # a definition or an import: once is enough, and what stands below may need it
    text: str
    section: str  # the title of the one it stands in, or "" where no line says so
    needs: frozenset[str]  # the names that must stand above it
    part: int | None = None  # of the module: its header or its imports


def with_cell(text: str, cell: str) -> str:
    """A library's text after a cell.

    A function or class that it defines again takes the place of the old one; a value that it
    defines again comes last, and what was set on the old one goes with it. A definition that
    stands there already, word by word, stays; any other statement comes last, once. A docstring
    at its top is that of the library. Last is the end of the section that a line ``# ── Title ──``
    above it names, or else of the library; but what is new, and stands in the cell above a function
    of that section, goes above it in the library, too.

    >>> print(with_cell("def f(): return 1\\na = 1\\na.b = 2", "a = 3\\ndef f(): return 2"), end="")
    def f(): return 2
    <BLANKLINE>
    <BLANKLINE>
    a = 3
    """
    pieces, written = _pieces(text), _pieces(cell)
    for k, new in enumerate(written):
        if new.stays and any(piece.text == new.text for piece in pieces):
            continue
        old = [piece for piece in pieces if piece.defines & new.defines]
        if old and not new.runs_now:
            pieces[pieces.index(old[0])] = new._replace(section=old[0].section)
            continue
        if new.defines and not old and (below := _stands_below(new, pieces, written[k + 1:])):
            pieces.insert(pieces.index(below), new)
            continue
        gone = new.defines if new.runs_now else frozenset()
        pieces = [piece for piece in pieces if piece.text != new.text
                  and (not (piece.defines or piece.about) or (piece.defines | piece.about) - gone)]
        last = pieces[-1].section if pieces else ""
        pieces = _in_order([*pieces, new if new.section else new._replace(section=last)])
    return _joined(pieces)


def _stands_below(new: Piece, pieces: Sequence[Piece], following: Sequence[Piece]) -> Piece | None:
    """The function of its section that follows it in its cell, if it can be put above that."""
    for piece in following:
        if piece.runs_now or new.part is not None or piece.section != new.section:
            continue
        for place, old in enumerate(pieces):
            if old.defines & piece.defines:
                later = frozenset[str]().union(*(below.defines for below in pieces[place:]))
                in_section = new.section in ("", old.section)
                return old if in_section and not new.needs & later else None
    return None


def _needs(node: ast.stmt) -> frozenset[str]:
    """The names that a statement reads as it is run."""
    parts: list[ast.AST] = [node]
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        runs_now = (node.args.defaults if isinstance(node, ast.FunctionDef) else
                    [*node.bases, *(x for x in node.body if not isinstance(x, ast.FunctionDef))])
        parts = [*node.decorator_list, *runs_now]
    return frozenset(name.id for part in parts for name in ast.walk(part)
                     if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Load))


def _pieces(text: str) -> list[Piece]:
    """The statements of a text, each with the comment above it."""
    lines, pieces, section, end = text.splitlines(), list[Piece](), "", 0
    for node in ast.parse(text).body:
        last = node.end_lineno or node.lineno
        kept = []
        for line in lines[end:last]:
            if title := _SECTION_LINE.fullmatch(line):
                section = title["title"]
            else:
                kept.append(line)
        is_import = isinstance(node, ast.Import | ast.ImportFrom)
        is_header = not pieces and _is_docstring(node)
        defines = {"__doc__"} if is_header else {*bound_names(node)}
        pieces.append(Piece(frozenset(defines), frozenset(set_on(node)),
                            not isinstance(node, ast.FunctionDef | ast.ClassDef),
                            is_import or bool(defines), "\n".join(kept).strip("\n"), section,
                            _needs(node),
                            _HEADER if is_header else _IMPORTS if is_import else None))
        end = last
    return _in_order(pieces)


def _is_docstring(node: ast.stmt) -> bool:
    return (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str))


def _in_order(pieces: Sequence[Piece]) -> list[Piece]:
    """The header, the imports, and the sections one after the other."""
    titles = list(dict.fromkeys([*SECTIONS, *(piece.section for piece in pieces)]))

    def place(piece: Piece) -> tuple[int, bool, bool, str]:
        if piece.part == _IMPORTS:
            is_from = piece.text.startswith("from")
            return _IMPORTS, not _is_of_python(piece), is_from, piece.text
        section = titles.index(piece.section) if piece.section else _UNNAMED
        return section if piece.part is None else piece.part, False, False, ""
    return sorted(pieces, key=place)


def _joined(pieces: Sequence[Piece]) -> str:
    """Statements as a module: functions and classes stand apart, short ones together."""
    text, before = "", None
    for piece in pieces:
        if before is not None:
            text += "\n" * (1 + _blank_lines(before, piece))
        section = "" if piece.part is not None else piece.section
        if section and (before is None or before.part is not None or before.section != section):
            text += f"# ── {section} ".ljust(_WIDTH - 1, "─") + "\n\n"
        text += piece.text
        before = piece
    return text + "\n" * bool(text)


def _blank_lines(before: Piece, piece: Piece) -> int:
    """How many blank lines part two statements."""
    if before.part != piece.part:
        return 1 if before.part == _HEADER else 2
    if piece.part == _IMPORTS:
        return int(_is_of_python(before) and not _is_of_python(piece))
    if before.section != piece.section or not (before.runs_now and piece.runs_now):
        return 2
    return 0


def _is_of_python(piece: Piece) -> bool:
    return re.split(r"[\s.]+", piece.text)[1] in sys.stdlib_module_names


class Library:
    """A module that is written while it is used.

    Each cell puts its definitions into the text, and the whole text is run anew: what stands
    earlier sees what was written later, as in a file.
    """

    def __init__(self) -> None:
        self.text = ""
        self.chapter = "02"  # the one that is being read
        self.module = ModuleType(NAME, "The library that the reader writes.")

    def begin(self, chapter: str = "") -> str:
        """Begin from what stands after a chapter, the reader's or else ours; says which."""
        if not chapter:
            self._become("")
            self.chapter = "02"
            return "mini: empty"
        own, kept = Path(OWN.format(chapter)), KEPT / f"after_{chapter}.py"
        file = own if own.exists() else kept if kept.exists() else "notebooks" / kept
        self._become(file.read_text(encoding="utf-8"))
        self.chapter = _GOES_ON_IN.get(chapter, f"{int(chapter) + 1:02}")
        if file == own:
            return f"mini: yours, from {own}"
        return f"mini: as it stands after chapter {chapter}"

    def write(self, cell: str) -> None:
        """Put what a cell defines into the library; one that cannot be run changes nothing."""
        self._become(with_cell(self.text, cell))

    def save(self) -> str:
        """Write the library into a file of the reader's, from which the next chapter begins."""
        own = Path(OWN.format(self.chapter))
        own.write_text(self.text, encoding="utf-8")
        return f"mini: written to {own}"

    def _become(self, text: str) -> None:
        """Run a text as the library; what was made of it before lives in the new one's names."""
        code = compile(text, f"{NAME}.py", "exec")
        names = vars(self.module)
        before = dict(names)
        names.clear()
        names.update(__name__=NAME, __file__=f"{NAME}.py")
        linecache.cache[f"{NAME}.py"] = (len(text), None, text.splitlines(keepends=True), NAME)
        sys.modules[NAME] = self.module  # where what a cell runs, such as `dataclass`, looks
        try:
            exec(code, names)
        except BaseException:
            names.clear()
            names.update(before)
            raise
        self.text = text


library = Library()


def kept_after(chapters: Sequence[tuple[str, Sequence[str]]]) -> dict[Path, str]:
    """What stands at the end of each chapter, from the cells of all in order.

    Args:
      chapters: the number of each, and its cells.
    """
    text, kept = "", {}
    for number, cells in chapters:
        building = [cell.split("\n", 1)[1] for cell in cells if cell.startswith("%%mini\n")]
        for cell in building:
            text = with_cell(text, cell)
        if building:
            kept[KEPT / f"after_{number}.py"] = text
    return kept
