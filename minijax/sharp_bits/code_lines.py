"""On which line a function's code reads, or writes, what a place names.

Stands on `captured` and Python's bytecode.  Chapter 12, *Pure functions*.
JAX has no counterpart.
"""

from __future__ import annotations

import dis
import itertools
from collections.abc import Iterable, Iterator
from types import CodeType

from minijax.sharp_bits.captured import Place
from minijax.source_info import SourceInfo

WRITES_NAME = ("STORE_GLOBAL", "STORE_DEREF", "STORE_NAME", "DELETE_GLOBAL", "DELETE_DEREF")
WRITES_ATTRIBUTE = ("STORE_ATTR", "DELETE_ATTR")
WRITES_ITEM = ("STORE_SUBSCR", "DELETE_SUBSCR", "STORE_SLICE", "BINARY_OP")

LOADS, CONSTANT = ("LOAD_",), ("LOAD_CONST", "LOAD_CLOSURE")

Found = Iterator[SourceInfo]


def write_line(codes: Iterable[CodeType], place: Place) -> SourceInfo | None:
    """The line that writes to a place; the first that mentions it where none is seen to write."""
    codes, name = list(codes), place.last_name
    written: tuple[str, ...] = ()
    if not place.path:
        written = WRITES_NAME
    elif place.path[-1].startswith("."):
        written = WRITES_ATTRIBUTE
    return next(itertools.chain(_lines(codes, name, written), _item_writes(codes, name),
                                _mentions(codes, place)), None)


def read_line(codes: Iterable[CodeType], place: Place) -> SourceInfo | None:
    """The line that reads a place."""
    codes = list(codes)
    return next(itertools.chain(_mentions(codes, place), _lines(codes, place.root, LOADS)), None)


def _mentions(codes: list[CodeType], place: Place) -> Found:
    """The lines that read the last name of a place, as an attribute if it is one."""
    if any(step.startswith(".") for step in place.path):
        yield from _lines(codes, place.last_name, ("LOAD_ATTR", "LOAD_METHOD"))
    yield from _lines(codes, place.last_name, LOADS)


def _item_writes(codes: list[CodeType], name: str) -> Found:
    """The lines with ``name[…] = …``, ``name[…] += …`` or ``name += …``."""
    for code in codes:
        lines = {line for i, line in _instructions(code) if i.opname in WRITES_ITEM
                 and (i.opname != "BINARY_OP" or i.argrepr.endswith("="))}
        yield from (found for found in _lines([code], name, LOADS) if found.line in lines)


def _lines(codes: list[CodeType], name: str, operations: tuple[str, ...]) -> Found:
    """The lines on which one of some operations is done on a name."""
    for code in codes:
        for i, line in _instructions(code):
            if i.opname.startswith(operations) and i.argval == name and i.opname not in CONSTANT:
                yield SourceInfo(code, line, i.offset)


def _instructions(code: CodeType) -> Iterator[tuple[dis.Instruction, int]]:
    return ((i, i.positions.lineno) for i in dis.get_instructions(code)
            if i.positions and i.positions.lineno)
