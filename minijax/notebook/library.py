"""The reader's own library, `mini`: cells that begin with `%%mini` write it, chapter by chapter.

Stands on `source`.  JAX has no counterpart.
"""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from minijax.notebook.source import bound_names, set_on

NAME = "mini"
OWN = "my_mini_{}.py"  # a reader's library at the end of a chapter, where there is one
KEPT = Path("mini")  # the folder, beside the chapters, of what stands at the end of each
_GOES_ON_IN = {"11": "22", "24": "26"}  # the chapters between two only use a library


class Piece(NamedTuple):
    """A statement: the names that it defines, those whose attributes it sets, its text."""

    defines: frozenset[str]
    about: frozenset[str]
    runs_now: bool  # no function or class, whose body may mention what comes later
    stays: bool  # a definition or an import: once is enough, and what stands below may need it
    text: str


def with_cell(text: str, cell: str) -> str:
    """A library's text after a cell.

    A function or class that it defines again takes the place of the old one; a value that it
    defines again comes last, and what was set on the old one goes with it. A definition that
    stands there already, word by word, stays; any other statement comes last, once.

    >>> print(with_cell("def f(): return 1\\na = 1\\na.b = 2", "a = 3\\ndef f(): return 2"), end="")
    def f(): return 2
    <BLANKLINE>
    <BLANKLINE>
    a = 3
    """
    pieces = _pieces(text)
    for new in _pieces(cell):
        if new.stays and any(piece.text == new.text for piece in pieces):
            continue
        old = [piece for piece in pieces if piece.defines & new.defines]
        if old and not new.runs_now:
            pieces[pieces.index(old[0])] = new
            continue
        gone = new.defines if new.runs_now else frozenset()
        pieces = [piece for piece in pieces if piece.text != new.text
                  and (not (piece.defines or piece.about) or (piece.defines | piece.about) - gone)]
        pieces.append(new)
    return _joined([piece.text for piece in pieces])


def _pieces(text: str) -> list[Piece]:
    """The statements of a text, each with the comment above it."""
    lines, pieces, end = text.splitlines(), [], 0
    for node in ast.parse(text).body:
        last = node.end_lineno or node.lineno
        pieces.append(Piece(frozenset(bound_names(node)), frozenset(set_on(node)),
                            not isinstance(node, ast.FunctionDef | ast.ClassDef),
                            isinstance(node, ast.Import | ast.ImportFrom)
                            or bool(bound_names(node)),
                            "\n".join(lines[end:last]).strip("\n")))
        end = last
    return pieces


def _joined(pieces: Sequence[str]) -> str:
    """Statements as a module: functions and classes stand apart, short ones together."""
    text = ""
    for before, piece in zip(["", *pieces], pieces, strict=False):
        apart = any("\n" in one or one.startswith("def ") for one in (before, piece))
        text += ("\n\n\n" if apart else "\n") * bool(before) + piece
    return text + "\n" * bool(text)


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
        try:
            exec(code, names)
        except BaseException:
            names.clear()
            names.update(before)
            raise
        self.text = text
        sys.modules[NAME] = self.module


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
