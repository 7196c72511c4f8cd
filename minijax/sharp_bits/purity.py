"""Impure functions: the side effects of tracing, which compiled code does not repeat.

Builds on `captured` (changed values), on Python's profiling hook, which sees every call in this
thread (prints, clocks, random draws, container methods), and on bytecode (the line of a write).
Chapter 12, *Pure functions*. JAX has no counterpart.
"""

import builtins
import datetime
import dis
import inspect
import logging
import random
import re
import sys
import time
import weakref
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import CodeType, FrameType
from typing import Any, TypeVar

import numpy as np

from minijax import config, errors
from minijax.util import context
from minijax.core import Array, ShapedArray, jaxpr
from minijax.sharp_bits.captured import Change, Place, Snapshot, is_own
from minijax.sharp_bits.findings import refuse
from minijax.util.source_info import DebugInfo, SourceInfo, source_of
from minijax.core.tracing import FlatFunction

# ── While a function is traced ───────────────────────────────────────────────────────────────

def watched(stage: Callable, fun: Any, in_avals: Sequence[ShapedArray],
            debug_info: DebugInfo | None) -> jaxpr.ClosedJaxpr:
    """The program of a user's function; a finding for each side effect.

    Args:
      stage: traces a function: ``(fun, in_avals, debug_info) -> program``.
      fun: where it is a `FlatFunction`, its `fun` is the user's.

    Raises:
      ImpureFunctionError: unless findings are collected.
    """
    if not isinstance(fun, FlatFunction):
        return stage(fun, in_avals, debug_info)
    before = Snapshot(fun.fun)
    effects = SideEffects()
    closed = effects.run(stage, fun, in_avals, debug_info)
    after = Snapshot(fun.fun)
    changes = before.changes(after) + effects.advanced(before)
    if any(map(_may_be_harmless, changes)):
        # a second trace reads what the first has cached, and changes nothing
        stage(fun, in_avals, debug_info)
        again = [change.place for change in after.changes(Snapshot(fun.fun))]
        changes = [change for change in changes if any(map(change.place.overlaps, again))]
    codes = sorted({**before.codes, **effects.executed},
                   key=lambda code: code not in effects.executed)
    name = _name(debug_info, codes)
    for message, fix, line in effects.messages:
        _report(message.format(name), fix, line)
    for change in changes:
        source = effects.line_of(change) or write_line(codes, change.place)
        # a body's change is also one of the function around it: the innermost has it reported
        _report(*_words_for(name, change), source, source and (source.code, source.line))
    return closed


def _name(info: DebugInfo | None, codes: list[CodeType]) -> str:
    """The name of the user's function; a loop may wrap it in one of ours."""
    if info is not None and not errors.is_internal(info.func_filename or ""):
        return info.func_name
    return codes[0].co_name if codes else "the function"


def _may_be_harmless(change: Change) -> bool:
    """Whether a change may be one that another trace would not repeat, such as filling a cache."""
    certain = ("number", "NumPy array", "iterator", "random generator")
    return not (change.brings_tracer or change.what in certain and change.old is not None
                and change.old.what == change.what)


def _words_for(name: str, change: Change) -> tuple[str, str]:
    """The message and the fix for a change by a traced function."""
    place, what = change.place, change.what
    once = f"while `{name}` is traced, and not when its compiled code runs"
    if what == "iterator":
        return (f"the {place.kind} `{place}`, an iterator, is advanced {once}: every call uses "
                "the item that was taken then.",
                "Turn the iterator into an array before the call, and pass it as an argument.")
    if what == "random generator":
        return (f"`{place}` is drawn from {once}: the numbers become constants.",
                "Use jax.random with a key that is passed as an argument.")
    old, new = change.texts("nothing")
    from_to = f" (from {old} to {new})" if old != new else ""
    kept = " A tracer is kept there, which has no numbers." if change.brings_tracer else ""
    return (f"the {place.kind} `{place}` is changed {once}{from_to}.{kept}",
            "Return the new value from the function, and store it where the function is called.")


def _report(message: str, fix: str, source: SourceInfo | None, by: object = None) -> None:
    refuse("debug_purity", message, fix, errors.ImpureFunctionError, source, by)


# ── When a traced function is called again ───────────────────────────────────────────────────

# What each trace saw besides its arguments.
_snapshots: weakref.WeakKeyDictionary[Any, Snapshot] = weakref.WeakKeyDictionary()


def check_current(traced: Any, arguments: Any) -> None:
    """Record what a new trace read; a finding if an old trace would give another program by now.

    Args:
      traced: what was traced: has `program` and `debug_info`.
      arguments: those of a call, with the user's function of them, which can be traced anew.

    Raises:
      ImpureFunctionError: when the program would be another one; unless findings are collected.
    """
    fun = arguments.fun
    now, before = Snapshot(fun), _snapshots.get(traced)
    changes = before.changes(now) if before else []
    if changes:
        with config.debug_purity(False):  # side effects were reported the first time
            again = arguments.trace()
        if _form(again.program) != _form(traced.program):
            for change in changes:
                _report(*_words_for_stale(traced.debug_info.func_name, change),
                        read_line([*now.codes], change.place))
            return
        now = Snapshot(fun)
    _snapshots[traced] = now


def _words_for_stale(name: str, change: Change) -> tuple[str, str]:
    place, (old, new) = change.place, change.texts("not there")
    was = f"was {old} when `{name}` was traced and is {new} now" if old != new else (
        f"({old}) has changed since `{name}` was traced")
    return (f"the {place.kind} `{place}` {was}: the compiled function still uses the old value.",
            f"Pass `{place}` to the function as an argument.")


def _form(closed: jaxpr.ClosedJaxpr) -> tuple:
    """A comparable form of a program: its text, and the values of its constants."""
    def numbers(closed: jaxpr.ClosedJaxpr) -> Iterator[Any]:
        for x in closed.consts:
            concrete = x._concrete() if isinstance(x, Array) else None
            yield id(x) if concrete is None else (concrete.aval, concrete._buffer.tobytes())
        for eqn in closed.eqns:
            for inner in jaxpr.subjaxprs(eqn.params):
                yield from numbers(inner)
    return str(closed.jaxpr), *numbers(closed)


# ── What happens while a function is traced ──────────────────────────────────────────────────

T = TypeVar("T")
Message = tuple[str, str, SourceInfo]  # message with a place for the function's name, fix, where

# Functions with side effects: what compiled code will not repeat, and the fix.
_OUTSIDE = "Call it outside, and pass what was read as an argument."
_EFFECTS: dict[Any, tuple[str, str]] = {
    builtins.print: ("print", "Use jax.debug.print, which prints at each call."),
    builtins.input: ("call `input`", _OUTSIDE), builtins.open: ("call `open`", _OUTSIDE)}
_CLOCKS = ("time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns",
           "process_time", "process_time_ns", "thread_time", "localtime", "gmtime")
_NOW = ("now", "utcnow", "today")
_WRITTEN = (list, dict, set, deque, bytearray, np.ndarray, random.Random)
_LOG = logging.Logger._log.__code__


class _Hook:
    """The profiling hook of this thread, set through `with_values`."""

    get, set = staticmethod(sys.getprofile), staticmethod(sys.setprofile)


class SideEffects:
    """Runs a function and records the side effects of the user's code.

    Attributes:
      seen: message, fix and line of each call that has an effect or reads a clock.
      writes: by the id of a container, the first line that calls one of its methods; by that of a
        generator's frame, the first that resumes it.
      executed: the code of the user's functions that ran.
    """

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.writes: dict[int, SourceInfo] = {}
        self.executed: dict[CodeType, None] = {}

    def run(self, fun: Callable[..., T], *args: Any) -> T:
        """``fun(*args)``, recorded. Another active profiler is left alone."""
        outer = sys.getprofile()
        enclosing = getattr(outer, "__self__", None)
        if outer is not None and not isinstance(enclosing, SideEffects):
            return fun(*args)
        try:
            return context.with_values({_Hook: self._on_event}, fun, *args)
        finally:
            if isinstance(enclosing, SideEffects):
                enclosing.executed.update(self.executed)
                enclosing.writes.update(self.writes)

    def advanced(self, before: Snapshot) -> list[Change]:
        """The generators that were resumed, although they may look unchanged."""
        return [Change(place, old, old, False) for place, old in before.contents.items()
                if old.what == "iterator" and old.number in self.writes]

    def line_of(self, change: Change) -> SourceInfo | None:
        """The line that called the method which made a change, if a method did."""
        return self.writes.get(change.new.number) if change.new else None

    def _on_event(self, frame: FrameType, event: str, arg: Any) -> None:
        code = frame.f_code
        if event == "call" and code is _LOG:
            self._on_log(frame)
        elif event == "c_call" and is_own(code.co_filename):
            self._on_builtin(frame, arg)
        elif event == "call" and is_own(code.co_filename):
            self.executed[code] = None
            if code.co_flags & inspect.CO_GENERATOR and frame.f_back:
                self.writes.setdefault(id(frame), source_of(frame.f_back))

    def _on_builtin(self, frame: FrameType, called: Any) -> None:
        owner, name = getattr(called, "__self__", None), called.__name__
        if called in _EFFECTS:
            self._add(frame, f"`{name}` is called", *_EFFECTS[called])
        elif owner is time and name in _CLOCKS or (
                isinstance(owner, type) and issubclass(owner, datetime.date) and name in _NOW):
            message = (f"`{name}` reads the clock while `{{}}` is traced: the compiled function "
                       "has that time as a constant.")
            fix = "Read the clock outside, and pass the time as an argument."
            self.messages.append((message, fix, source_of(frame)))
        elif isinstance(owner, _WRITTEN):
            self.writes.setdefault(id(owner), source_of(frame))

    def _on_log(self, frame: FrameType) -> None:
        caller: FrameType | None = frame
        while caller and caller.f_code.co_filename == _LOG.co_filename:
            caller = caller.f_back
        if caller and is_own(caller.f_code.co_filename):
            self._add(caller, "a message is logged", "log",
                      "Use jax.debug.callback with a function that logs.")

    def _add(self, frame: FrameType, what: str, again: str, fix: str) -> None:
        message = (f"{what} while `{{}}` is traced; when the compiled function runs, it will not "
                   f"{again} again.")
        self.messages.append((message, fix, source_of(frame)))


# ── The line on which a function reads or writes a place ──────────────────────────────────────

WRITES_NAME = ("STORE_GLOBAL", "STORE_DEREF", "STORE_NAME", "DELETE_GLOBAL", "DELETE_DEREF")
WRITES_ATTRIBUTE = ("STORE_ATTR", "DELETE_ATTR")
WRITES_ITEM = ("STORE_SUBSCR", "DELETE_SUBSCR", "STORE_SLICE", "INPLACE")
READS_ATTRIBUTE = ("LOAD_ATTR", "LOAD_METHOD")
READS = ("LOAD_NAME", "LOAD_GLOBAL", "LOAD_DEREF", "LOAD_FAST", *READS_ATTRIBUTE)


def write_line(codes: Iterable[CodeType], place: Place) -> SourceInfo | None:
    """The line that writes to a place; else the first line that mentions it."""
    name, writes = place.last_name, WRITES_ATTRIBUTE if place.attribute else WRITES_NAME
    return (_line(codes, name, writes) or _line(codes, name, READS, WRITES_ITEM)
            or read_line(codes, place))


def read_line(codes: Iterable[CodeType], place: Place) -> SourceInfo | None:
    """The line that reads a place."""
    reads = READS_ATTRIBUTE if place.attribute else READS
    return _line(codes, place.last_name, reads) or _line(codes, place.root, READS)


def _line(codes: Iterable[CodeType], name: str, operations: tuple[str, ...],
          others: tuple[str, ...] = ("",)) -> SourceInfo | None:
    """The first line with one of some operations on a name, and with one of others too."""
    for code in codes:
        lines = defaultdict(list)
        for i in dis.get_instructions(code):
            lines[i.positions and i.positions.lineno].append(i)
        for line, instructions in lines.items():
            if line and any(_operation(i).startswith(others) for i in instructions) and any(
                    operation.startswith(operations) and argument == name
                    for i in instructions for operation, argument in _accesses(i)):
                return SourceInfo(code, line)
    return None


def _accesses(i: dis.Instruction) -> Iterable[tuple[str, Any]]:
    """The operations of an instruction, with names; from Python 3.13 on there may be two."""
    if isinstance(i.argval, tuple):
        return zip(re.findall("(?:LOAD|STORE)_FAST", i.opname), i.argval, strict=False)
    return [(i.opname, i.argval)]


def _operation(i: dis.Instruction) -> str:
    return "INPLACE" if i.opname == "BINARY_OP" and i.argrepr.endswith("=") else i.opname
