"""Leaked tracers: who still holds a tracer when its transformation ends, and through what.

Stands on `core`, `findings`.  Chapter 12, *Pure functions*.
In JAX: `jax/_src/core.py` (`maybe_find_leaked_tracers`, `leaked_tracer_error`).
"""

from __future__ import annotations

import contextvars
import gc
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

from minijax import context, errors, jaxpr, source_info
from minijax.core import Level, Trace, Tracer
from minijax.sharp_bits.findings import finding, report
from minijax.sharp_bits.holders import Heap, Ours, Step, chain_of_holders

FIX = "Return the value from the function, and store what the call returns."
MOST_SHOWN = 10
# Who may hold a tracer: other tracers and their traces (which are looked at themselves), and
# equations, whose derivative rules may be functions that close over one.
MAY_HOLD = (Tracer, Trace, jaxpr.JaxprEqn)

# The levels entered since the innermost transformation that is being checked began.
_levels: contextvars.ContextVar[list[weakref.ref[Level]] | None] = contextvars.ContextVar(
    "minijax_levels", default=None)


def watch(level: Level) -> None:
    """Have a new level looked at when the transformation that made it ends."""
    level.is_watched = True
    levels = _levels.get()
    if levels is not None:
        levels.append(weakref.ref(level))


def checked(enter: Callable, *args: Any, **kwargs: Any) -> Any:
    """``enter(*args, **kwargs)``; a finding when a tracer of a level made meanwhile is left.

    Raises:
      TracerLeakError: unless findings are collected.
    """
    levels: list[weakref.ref[Level]] = []
    result = context.with_values({_levels: levels}, enter, *args, **kwargs)
    for level in levels:
        _check(level)
    return result


def _check(ref: weakref.ref[Level]) -> None:
    """Report the tracers of a level that ended, where anything but ourselves holds them.

    A level is held by its tracers and its trace alone: nearly always it is gone by now.
    """
    leaks = _leaks(ref)
    if not all(leak.is_certain for leak in leaks):
        gc.unfreeze()  # what a program has frozen, the collector does not look into
        gc.collect()   # and what only refers to itself, a recursive function say, holds nothing
        leaks = _leaks(ref)
    level = ref()
    if not leaks or level is None:
        return
    shown = [leak.text for leak in leaks[:MOST_SHOWN]]
    if len(leaks) > MOST_SHOWN:
        shown.append(f"… and {len(leaks) - MOST_SHOWN} more")
    error = errors.TracerLeakError(leaks[0].trace_name, shown)
    function = level.debug_info.func_name if level.debug_info else "the function"
    message = f"`{function}` has ended, and a tracer of it is left: {leaks[0].text}"
    report(finding("check_tracer_leaks", message, FIX, leaks[0].made), error)


class Leak(NamedTuple):
    """One tracer that is left: what is said of it, and where it was made."""

    text: str
    is_certain: bool
    trace_name: str
    made: source_info.SourceInfo | None


def _leaks(ref: weakref.ref[Level]) -> list[Leak]:
    left = _tracers_of(ref)
    if not left:
        return []
    heap = Heap()
    heap.holders(Ours(step.object for step in left))
    found = [leak for step in left if (leak := _leak(step, heap)) is not None]
    return sorted(found, key=lambda leak: leak.text.count(" <- "))  # what is held directly first


def _tracers_of(ref: weakref.ref[Level]) -> list[Step]:
    level = ref()
    if level is None:
        return []
    return [Step(x) for x in gc.get_referrers(level) if isinstance(x, Tracer)]


def _leak(left: Step, heap: Heap) -> Leak | None:
    """What keeps a tracer alive in words; None where nothing of the user's does."""
    chain = chain_of_holders(left, heap, MAY_HOLD)
    if chain is None:
        return None
    tracer: Tracer = left.object
    frames, info = tracer.creation_frames(), tracer.level.debug_info
    made = frames[-1] if frames else None
    lines = [f"{type(tracer).__name__} of type {tracer.aval.str_long()}"
             + (f", from {info.func_src_info} traced for {info.traced_for}" if info else ""),
             f"  held by: {' <- '.join(chain.words)}"]
    if made is not None:
        lines.insert(1, f"  made at: {made.summary}: {made.text}")
    return Leak("\n".join(lines), chain.is_certain, tracer.trace_name(), made)
