"""On which line a function's code reads, or writes, what a place names.

Stands on `captured` and Python's bytecode.  Chapter 12, *Pure functions*.
JAX has no counterpart.
"""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterable, Iterator
from types import CodeType

from minijax.sharp_bits.captured import Place
from minijax.source_info import SourceInfo

WRITES_NAME = ("STORE_GLOBAL", "STORE_DEREF", "STORE_NAME", "DELETE_GLOBAL", "DELETE_DEREF")
WRITES_ATTRIBUTE = ("STORE_ATTR", "DELETE_ATTR")
WRITES_ITEM = ("STORE_SUBSCR", "DELETE_SUBSCR", "STORE_SLICE", "BINARY_OP")

Test = Callable[[dis.Instruction], bool]


def write_line(codes: Iterable[CodeType], place: Place) -> SourceInfo | None:
    """The line that writes to a place; the first that mentions it where none is seen to write."""
    codes, name = list(codes), place.last_name
    is_attribute = any(step.startswith(".") for step in place.path)
    if not place.path:
        found = _first(codes, lambda i: i.opname in WRITES_NAME and i.argval == name)
    elif place.path[-1].startswith("."):
        found = _first(codes, lambda i: i.opname in WRITES_ATTRIBUTE and i.argval == name)
    else:
        found = None
    return found or _item_write(codes, name) or _mention(codes, name, is_attribute)


def read_line(codes: Iterable[CodeType], place: Place) -> SourceInfo | None:
    """The line that reads a place."""
    codes = list(codes)
    is_attribute = any(step.startswith(".") for step in place.path)
    return (_mention(codes, place.last_name, is_attribute)
            or _mention(codes, place.root, is_attribute=False))


def _item_write(codes: list[CodeType], name: str) -> SourceInfo | None:
    """The line with ``name[…] = …``, ``name[…] += …`` or ``name += …``."""
    for code in codes:
        lines = {i.positions.lineno for i in dis.get_instructions(code)
                 if i.positions and i.opname in WRITES_ITEM
                 and (i.opname != "BINARY_OP" or i.argrepr.endswith("="))}
        for instruction in dis.get_instructions(code):
            line = instruction.positions and instruction.positions.lineno
            if line in lines and _mentions(instruction, name):
                return _source(code, instruction)
    return None


def _mention(codes: list[CodeType], name: str, is_attribute: bool) -> SourceInfo | None:
    wanted = ("LOAD_ATTR", "LOAD_METHOD") if is_attribute else ()
    return _first(codes, lambda i: _mentions(i, name) and (
        not wanted or i.opname.startswith(wanted))) or (
        _first(codes, lambda i: _mentions(i, name)))


def _mentions(instruction: dis.Instruction, name: str) -> bool:
    return instruction.opname.startswith("LOAD_") and instruction.argval == name and (
        instruction.opname not in ("LOAD_CONST", "LOAD_CLOSURE"))


def _first(codes: list[CodeType], test: Test) -> SourceInfo | None:
    for code in codes:
        for instruction in _instructions(code):
            if test(instruction):
                return _source(code, instruction)
    return None


def _instructions(code: CodeType) -> Iterator[dis.Instruction]:
    return (i for i in dis.get_instructions(code) if i.positions and i.positions.lineno)


def _source(code: CodeType, instruction: dis.Instruction) -> SourceInfo:
    assert instruction.positions is not None and instruction.positions.lineno is not None
    return SourceInfo(code, instruction.positions.lineno, instruction.offset)
