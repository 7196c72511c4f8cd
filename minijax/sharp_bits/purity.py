"""Functions that are not pure: what they did while they were traced, and will not do again.

Stands on `captured` (what changed), on Python's profiling hook, which is told of every call on this
thread (prints, clocks, draws, and writes into containers), and on its bytecode (which line it was).
Chapter 12, *Pure functions*.  JAX has no counterpart.
"""

from __future__ import annotations

import builtins
import datetime
import dis
import itertools
import logging
import random
import sys
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import CodeType, FrameType
from typing import Any, TypeVar

import numpy as np

from minijax import config, errors, jaxpr
from minijax.core import Array, ShapedArray
from minijax.sharp_bits.captured import Change, Place, Snapshot, is_own
from minijax.sharp_bits.findings import refuse
from minijax.source_info import DebugInfo, SourceInfo, source_of
from minijax.stage import FlatFunction

# ── While a function is traced ───────────────────────────────────────────────────────────────

def watched(stage: Callable, fun: Any, in_avals: Sequence[ShapedArray],
            debug_info: DebugInfo | None) -> jaxpr.ClosedJaxpr:
    """The program of a user's function; a finding for each thing that it did besides.

    Args:
      stage: traces a function: ``(fun, in_avals, debug_info) -> program``.
      fun: where it is a `FlatFunction`, its `fun` is the user's.

    Raises:
      ImpureFunctionError: unless findings are collected.
    """
    if not isinstance(fun, FlatFunction):
        return stage(fun, in_avals, debug_info)
    before = Snapshot(fun.fun)
    happenings = Happenings(before)
    closed = happenings.run(stage, fun, in_avals, debug_info)
    after = Snapshot(fun.fun)
    changes = happenings.changes(before, after)
    if any(map(_may_be_harmless, changes)):
        # what is computed once and kept is found there by the second trace, which keeps nothing
        stage(fun, in_avals, debug_info)
        again = [change.place for change in after.changes(Snapshot(fun.fun))]
        changes = [change for change in changes if any(map(change.place.overlaps, again))]
    ran = [code for code in before.codes if code in happenings.executed]
    codes = [*ran, *happenings.executed, *before.codes]
    name = _name(debug_info, codes)
    for message, fix, source in happenings.seen:
        _report(message.format(name), fix, source)
    for change in changes:
        _report_once(happenings, name, change,
                     happenings.line_of(change) or write_line(codes, change.place))
    return closed


def _name(info: DebugInfo | None, codes: list[CodeType]) -> str:
    """The user's function; a loop may have one of ours around it."""
    if info is not None and not errors.is_internal(info.func_filename or ""):
        return info.func_name
    return codes[0].co_name if codes else "the function"


def _may_be_harmless(change: Change) -> bool:
    """Whether a change may be one that another trace would not repeat."""
    certain = ("number", "NumPy array", "iterator", "random generator")
    return not (change.brings_tracer or change.what in certain and change.old is not None
                and change.old.what == change.what)


def _report_once(happenings: Happenings, name: str, change: Change, source: SourceInfo | None
                 ) -> None:
    """A body's change is also one of the function around it: the innermost has it reported."""
    place = source and (source.code, source.line)
    if place is None or place not in happenings.reported:
        happenings.reported.add(place)
        _report(*_words_for(name, change), source)


def _words_for(name: str, change: Change) -> tuple[str, str]:
    """Message and fix for something that a traced function changed."""
    place, what = change.place, change.what
    once = f"while `{name}` is traced, and not when its compiled code runs"
    if what == "iterator":
        return (f"the {place.kind} `{place}`, an iterator, is advanced {once}: every call uses "
                "the item that was taken then.",
                "Turn the iterator into an array before the call, and pass it as an argument.")
    if what == "random generator":
        return (f"`{place}` is drawn from {once}: the numbers become constants.",
                "Use jax.random with a key that is passed as an argument.")
    kept = " A tracer is kept there, which has no numbers." if change.brings_tracer else ""
    return (f"the {place.kind} `{place}` is changed {once}{_from_to(change)}.{kept}",
            "Return the new value from the function, and store it where the function is called.")


def _from_to(change: Change) -> str:
    old, new = (part.text if part else "nothing" for part in (change.old, change.new))
    return f" (from {old} to {new})" if old != new else ""


def _report(message: str, fix: str, source: SourceInfo | None) -> None:
    refuse("debug_purity", message, fix, errors.ImpureFunctionError, source)


# ── When a traced function is called again ───────────────────────────────────────────────────

# What each trace saw besides its arguments.
_seen_by: weakref.WeakKeyDictionary[Any, Snapshot] = weakref.WeakKeyDictionary()


def check_current(traced: Any, given: Any) -> None:
    """Note what a new trace saw; a finding when an old one would be another program by now.

    Args:
      traced: what was traced: has `program` and `debug_info`.
      given: the arguments of a call, with the user's function of them, which can be traced anew.

    Raises:
      ImpureFunctionError: when the program would be another one; unless findings are collected.
    """
    fun = given.fun
    now, before = Snapshot(fun), _seen_by.get(traced)
    changes = before.changes(now) if before else []
    if changes:
        with config.debug_purity(False):  # what it does besides was found the first time
            again = given.trace()
        if _form(again.program) != _form(traced.program):
            for change in changes:
                _report(*_words_for_stale(traced.debug_info.func_name, change),
                        read_line([*now.codes], change.place))
            return
        now = Snapshot(fun)
    _seen_by[traced] = now


def _words_for_stale(name: str, change: Change) -> tuple[str, str]:
    place = change.place
    old, new = (part.text if part else "not there" for part in (change.old, change.new))
    was = f"was {old} when `{name}` was traced and is {new} now" if old != new else (
        f"({old}) has changed since `{name}` was traced")
    return (f"the {place.kind} `{place}` {was}: the compiled function still uses the old value.",
            f"Pass `{place}` to the function as an argument.")


def _form(closed: jaxpr.ClosedJaxpr) -> tuple:
    """A program as data that can be compared: its text, and the numbers of its constants."""
    def numbers(closed: jaxpr.ClosedJaxpr) -> Iterator[Any]:
        for x in closed.consts:
            known = x._concrete() if isinstance(x, Array) else None
            yield id(x) if known is None else (known.aval, known._buffer.tobytes())
        for eqn in closed.eqns:
            for inner in jaxpr.subjaxprs(eqn.params):
                yield from numbers(inner)
    return str(closed.jaxpr), *numbers(closed)


# ── What happens while a function is traced ──────────────────────────────────────────────────

T = TypeVar("T")
Seen = tuple[str, str, SourceInfo]  # message with a place for the function's name, fix, where

_CLOCKS = ("time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns",
           "process_time", "process_time_ns", "thread_time", "localtime", "gmtime")
_NOW = ("now", "utcnow", "today")
_WRITTEN = (list, dict, set, deque, bytearray, np.ndarray, random.Random)
_LOG = logging.Logger._log.__code__
_AGAIN = "while `{{}}` is traced; when the compiled function runs, it {} again."


class Happenings:
    """Runs a function and notes what the user's code in it does that will not happen again.

    Attributes:
      seen: message, fix and line of each call that has an effect or reads a clock.
      writes: by the id of a container, the first line that calls one of its methods.
      advanced: the places of generators that were resumed, and the first line that did it.
      executed: the code of the user's functions that ran.
      reported: places that a function inside has reported.
    """

    def __init__(self, before: Snapshot):
        self.seen: list[Seen] = []
        self.writes: dict[int, SourceInfo] = {}
        self.advanced: dict[Place, SourceInfo] = {}
        self.executed: dict[CodeType, None] = {}
        self.reported: set[Any] = set()
        frames = [(generator.gi_frame, place) for ref, place in before.generators
                  if (generator := ref()) is not None]
        self._generators = {id(frame): (frame, place) for frame, place in frames if frame}
        self._running = False

    def run(self, fun: Callable[..., T], *args: Any) -> T:
        """``fun(*args)``, watched.  Another profiler that is at work is left alone."""
        outer = sys.getprofile()
        around = getattr(outer, "__self__", None)
        if outer is not None and not isinstance(around, Happenings):
            return fun(*args)
        # Restored twice: an interrupt may hit one of the two.
        try:
            try:
                self._running = True
                sys.setprofile(self._notice)
                return fun(*args)
            finally:
                sys.setprofile(outer)
        finally:
            self._running = False
            sys.setprofile(outer)
            if isinstance(around, Happenings):
                self._hand_over(around)

    def changes(self, before: Snapshot, after: Snapshot) -> list[Change]:
        """What differs, and the generators that went on and look as they did."""
        found = before.changes(after)
        known = {change.place for change in found}
        return found + [Change(place, before.contents[place], after.contents.get(place), False)
                        for place in self.advanced if place not in known]

    def line_of(self, change: Change) -> SourceInfo | None:
        """The line that called the method which made a change, where it was a method."""
        return self.advanced.get(change.place) or (
            self.writes.get(change.new.number) if change.new else None)

    def _hand_over(self, around: Happenings) -> None:
        around.executed.update(self.executed)
        around.writes.update(self.writes)
        around.reported |= self.reported
        self.reported = around.reported  # the same set: what is reported from now on counts, too

    def _notice(self, frame: FrameType, event: str, arg: Any) -> None:
        if not self._running:
            sys.setprofile(None)
        elif event == "c_call":
            if is_own(frame.f_code.co_filename):
                self._notice_builtin(frame, arg)
        elif event == "call":
            code = frame.f_code
            if is_own(code.co_filename):
                self.executed[code] = None
                if id(frame) in self._generators and frame.f_back:
                    place = self._generators[id(frame)][1]
                    self.advanced.setdefault(place, source_of(frame.f_back))
            elif code is _LOG:
                self._notice_log(frame)

    def _notice_builtin(self, frame: FrameType, called: Any) -> None:
        owner = getattr(called, "__self__", None)
        if called is builtins.print:
            self._add(frame, f"`print` is called {_AGAIN.format('will not print')}",
                      "Use jax.debug.print, which prints at each call.")
        elif called is builtins.input or called is builtins.open:
            self._add(frame, f"`{called.__name__}` is called "
                      + _AGAIN.format(f"will not call `{called.__name__}`"),
                      "Call it outside, and pass what was read as an argument.")
        elif owner is time and called.__name__ in _CLOCKS or (
                isinstance(owner, type) and issubclass(owner, datetime.date)
                and called.__name__ in _NOW):
            self._add(frame, f"`{called.__name__}` reads the clock while `{{}}` is traced: the "
                      "compiled function has that time as a constant.",
                      "Read the clock outside, and pass the time as an argument.")
        elif isinstance(owner, _WRITTEN):
            self.writes.setdefault(id(owner), source_of(frame))

    def _notice_log(self, frame: FrameType) -> None:
        caller: FrameType | None = frame
        while caller and caller.f_code.co_filename == _LOG.co_filename:
            caller = caller.f_back
        if caller and is_own(caller.f_code.co_filename):
            self._add(caller, f"a message is logged {_AGAIN.format('will not log')}",
                      "Use jax.debug.callback with a function that logs.")

    def _add(self, frame: FrameType, message: str, fix: str) -> None:
        self.seen.append((message, fix, source_of(frame)))


# ── On which line a function's code reads, or writes, what a place names ─────────────────────

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
