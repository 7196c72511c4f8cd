"""Short errors in a cell: what happened, the reader's line, and the cure.

Builds on `error_pages`.  `%full_error` shows the whole traceback.  JAX has no counterpart.
"""

import html
import linecache
import os
import re
import sys
import traceback
from collections.abc import Sequence
from types import TracebackType

from minijax.util import source_info, tracebacks
from minijax.sharp_bits.captured import is_own
from minijax.notebook.error_pages import parts_of

AROUND = 2  # lines shown before the marked one
FRAMES = 3


def is_readers_file(filename: str) -> bool:
    """Whether a frame with this file name runs what the reader wrote: a cell, or a file.

    >>> is_readers_file("model.py"), is_readers_file(os.__file__), is_readers_file(__file__)
    (True, False, False)
    """
    return filename.startswith(tracebacks.LIVE) or is_own(filename)


# ── In a few lines ───────────────────────────────────────────────────────────────────────────


def short_error(error: BaseException) -> str:
    """An error in a few lines of text.

    >>> try:
    ...     1 / 0
    ... except ZeroDivisionError as error:
    ...     print(short_error(error).splitlines()[0])
    ZeroDivisionError: division by zero
    """
    parts = [_headline(error)]
    if isinstance(error, SyntaxError) and error.text:
        parts += _place_in_text(error)
    parts += _frames_in_text(error)
    if cause := _cause(error):
        parts += ["", f"It was raised from {_headline(cause)}", *_frames_in_text(cause)]
    if cure := cure_of(error):
        parts += ["", f"The fix: {cure}"]
    return "\n".join(parts)


def short_error_html(error: BaseException) -> str:
    """The same in HTML: it wraps on a phone, and is readable on a light and on a dark page."""
    said, _, more = _headline(error).partition("\n")
    name, colon, message = said.partition(":")
    parts = [f'<div style="overflow-wrap:anywhere"><b>{html.escape(name)}</b>'
             f"{html.escape(colon + message)}</div>"]
    if more:
        parts.append(f'<div style="font-size:.85em;opacity:.75;overflow-wrap:anywhere">'
                     f"{_linked(more)}</div>")
    parts += _frames_in_html(error)
    if cause := _cause(error):
        parts.append('<div style="margin-top:.5em;overflow-wrap:anywhere">It was raised from '
                     f"{html.escape(_headline(cause))}</div>")
        parts += _frames_in_html(cause)
    if cure := cure_of(error):
        parts.append(f'<div style="margin-top:.5em"><b>The fix:</b> {with_code(cure)}</div>')
    return ('<div style="border-left:4px solid #cf222e;padding:.2em .8em;text-align:left">'
            f'{"".join(parts)}</div>')


def _cause(error: BaseException) -> BaseException | None:
    """What an error was raised from, where the reader has a line in it."""
    cause = error.__cause__
    return cause if cause is not None and _readers_frames(cause.__traceback__) else None


def _frames_in_text(error: BaseException) -> list[str]:
    return [line for frame in _readers_frames(error.__traceback__)[-FRAMES:]
            for line in ("", f"{_place(frame)}:", *_marked_lines(frame))]


def _frames_in_html(error: BaseException) -> list[str]:
    return [f'<div style="margin-top:.5em;opacity:.75">{html.escape(_place(frame))}</div>'
            + _marked_html(frame) for frame in _readers_frames(error.__traceback__)[-FRAMES:]]


def with_code(text: str) -> str:
    """Text as HTML, what stands between backquotes as code.

    >>> with_code("`a < b`")
    '<code>a &lt; b</code>'
    """
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape(text, quote=False))


def _linked(text: str) -> str:
    lines = re.sub(r"(https?://\S+)", r'<a href="\1">\1</a>', html.escape(text, quote=False))
    return lines.strip().replace("\n", "<br>")


def _headline(error: BaseException) -> str:
    if isinstance(error, SyntaxError) and error.text:
        return f"SyntaxError: {error.msg}"
    said = f"{type(error).__name__}: {error}".rstrip().removesuffix(":")
    return "\n".join([said, *filter(_is_news, getattr(error, "__notes__", ()))])


def _is_news(note: str) -> bool:
    """Whether a note says more than where it happened, which is shown, and what is hidden."""
    return not note.startswith((source_info.PLACE_NOTE, tracebacks.HIDDEN_NOTE))


def _place_in_text(error: SyntaxError) -> list[str]:
    marker = " " * max((error.offset or 1) - 1, 0) + "^"
    number = f"--> {error.lineno} "
    return [f"{number}{(error.text or '').rstrip()}", f"{' ' * len(number)}{marker}"]


# ── The reader's lines ───────────────────────────────────────────────────────────────────────


def _readers_frames(tb: TracebackType | None) -> Sequence[traceback.FrameSummary]:
    return [frame for frame in traceback.extract_tb(tb) if is_readers_file(frame.filename)]


def _place(frame: traceback.FrameSummary) -> str:
    if frame.filename.startswith(tracebacks.LIVE):
        where = f"in the live cell {frame.filename.removeprefix(tracebacks.LIVE).rstrip('>')}"
    elif os.path.basename(os.path.dirname(frame.filename)).startswith("ipykernel_"):
        where = "in the cell"
    else:
        where = f"in {os.path.basename(frame.filename)}"
    return where if frame.name == "<module>" else f"{where}, in {frame.name}"


def _lines(frame: traceback.FrameSummary) -> list[tuple[bool, str]]:
    """The line where it happened, with a few before it: (is it the line, number and text)."""
    last = frame.lineno or 1
    numbers = range(max(1, last - AROUND), last + 1)
    return [(n == last, f"{n:3} {linecache.getline(frame.filename, n).rstrip()}")
            for n in numbers]


def _marked_lines(frame: traceback.FrameSummary) -> list[str]:
    return [f"{'-->' if is_it else '   '} {text}" for is_it, text in _lines(frame)]


def _marked_html(frame: traceback.FrameSummary) -> str:
    mark = "background:rgba(255,80,80,.22)"
    rows = "".join(f'<div style="{mark if is_it else ""}">{html.escape(text)}</div>'
                   for is_it, text in _lines(frame))
    return (f'<pre style="margin:0;background:none;overflow-x:auto;text-align:left">{rows}'
            "</pre>")


# ── The cure ─────────────────────────────────────────────────────────────────────────────────


def cure_of(error: BaseException) -> str:
    """What to do about an error, in a sentence; empty where its message says so, or nobody knows.

    It is the cure of the check that found it, or the one on the page of its class.

    >>> from minijax.errors import KeyReuseError
    >>> cure_of(KeyReuseError("used twice"))
    'Split the key, and draw from each part once.'
    """
    found = getattr(error, "finding", None)
    if found is not None:
        return "" if found.fix in str(error) else str(found.fix)
    fix = parts_of(type(error)).get("The fix")
    if fix is None or not type(error).__module__.startswith("minijax"):
        return ""
    which = getattr(error, "which_fix", 0)
    return "" if which is None else fix.sentence(which)


def full_error() -> str:
    """The last error that a cell raised, with every frame."""
    error = getattr(sys, "last_value", None)
    if error is None:
        return "no error yet"
    tb = getattr(error, "full_traceback", None) or error.__traceback__
    return "".join(traceback.format_exception(type(error), error, tb))
