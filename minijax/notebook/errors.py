"""Errors as a cell shows them: what happened, the reader's line, and the cure.

Stands on `source_info`.  The whole traceback is a `%full_error` away.  JAX has no counterpart.
"""

from __future__ import annotations

import inspect
import linecache
import os
import re
import sys
import traceback
from collections.abc import Sequence
from types import TracebackType

from minijax import source_info
from minijax.errors import is_internal

_INSTALLED = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)
_LIBRARY = os.path.dirname(os.__file__) + os.sep
AROUND = 2  # lines shown before the marked one
CURE_LINES = 12


def is_readers_file(filename: str) -> bool:
    """Whether a frame with this file name runs what the reader wrote: a cell, or a file.

    >>> is_readers_file("model.py"), is_readers_file(os.__file__), is_readers_file(__file__)
    (True, False, False)
    """
    if filename.startswith(source_info.LIVE):
        return True
    known = filename.startswith(("<frozen", _LIBRARY)) or any(p in filename for p in _INSTALLED)
    return not known and not is_internal(filename)


def short_error(error: BaseException) -> str:
    """An error in a few lines.

    >>> try:
    ...     1 / 0
    ... except ZeroDivisionError as error:
    ...     print(short_error(error).splitlines()[0])
    ZeroDivisionError: division by zero
    """
    parts = [f"{type(error).__name__}: {error}".rstrip().removesuffix(":")]
    if isinstance(error, SyntaxError) and error.text:
        marker = " " * max((error.offset or 1) - 1, 0) + "^"
        parts = [f"SyntaxError: {error.msg}", f"--> {error.lineno} {error.text.rstrip()}",
                 f"{' ' * len(f'--> {error.lineno} ')}{marker}"]
    frames = _readers_frames(error.__traceback__)
    for frame in frames[-3:]:
        parts += ["", f"{_place(frame)}:", *_marked_lines(frame)]
    if cure := cure_of(type(error)):
        parts += ["", "The fix:", cure] if "\n" in cure else ["", f"The fix: {cure}"]
    return "\n".join(parts)


def _readers_frames(tb: TracebackType | None) -> Sequence[traceback.FrameSummary]:
    return [frame for frame in traceback.extract_tb(tb) if is_readers_file(frame.filename)]


def _place(frame: traceback.FrameSummary) -> str:
    if frame.filename.startswith(source_info.LIVE):
        where = f"in the live cell {frame.filename.removeprefix(source_info.LIVE).rstrip('>')}"
    elif os.path.basename(os.path.dirname(frame.filename)).startswith("ipykernel_"):
        where = "in the cell"
    else:
        where = f"in {os.path.basename(frame.filename)}"
    return where if frame.name == "<module>" else f"{where}, in {frame.name}"


def _marked_lines(frame: traceback.FrameSummary) -> list[str]:
    """The line, marked, with a few before it."""
    last = frame.lineno or 1
    numbers = range(max(1, last - AROUND), last + 1)
    lines = [(number, linecache.getline(frame.filename, number).rstrip()) for number in numbers]
    return [f"{'-->' if number == last else '   '} {number:3} {text}" for number, text in lines]


def cure_of(kind: type[BaseException]) -> str:
    """What an error class of ours advises on its page; empty for another class.

    >>> from minijax.errors import KeyReuseError
    >>> cure_of(KeyReuseError)
    'Split before each use: `key, part = random.split(key)`, and draw from `part`.'
    """
    _, _, advice = (inspect.getdoc(kind) or "").partition("**The fix.**")
    if not kind.__module__.startswith("minijax") or not advice:
        return ""
    advice = re.sub(r":\w+:`(\w+)`", r"`\1`", advice).replace("``", "`").replace("::\n", ":\n")
    lines = advice.strip().splitlines()
    few = lines[:CURE_LINES] + ["…"] * (len(lines) > CURE_LINES)
    return "\n".join(few)


def full_error() -> str:
    """The last error that a cell raised, with every frame."""
    error = getattr(sys, "last_value", None)
    if error is None:
        return "no error yet"
    tb = getattr(error, "full_traceback", None) or error.__traceback__
    return "".join(traceback.format_exception(type(error), error, tb))
