"""Functions that are not pure: what they did while they were traced, and will not do again.

Stands on `captured` (what changed), `happenings` (what was called), `code_lines` (where).
Chapter 12, *Pure functions*.  JAX has no counterpart.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from types import CodeType
from typing import Any

from minijax import config, errors, jaxpr
from minijax.core import Array, ShapedArray
from minijax.sharp_bits.captured import Change, Snapshot
from minijax.sharp_bits import code_lines, findings
from minijax.sharp_bits.happenings import Happenings
from minijax.source_info import DebugInfo, SourceInfo
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
                     happenings.line_of(change) or code_lines.write_line(codes, change.place))
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
    findings.refuse("debug_purity", message, fix, errors.ImpureFunctionError, source)


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
                        code_lines.read_line([*now.codes], change.place))
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
