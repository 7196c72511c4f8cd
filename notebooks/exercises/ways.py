"""What the graders of several chapters ask about the way in which an answer computes."""

from __future__ import annotations

import contextlib
import inspect
import signal
import threading
import unittest.mock
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax.notebook.checks import Hint, expect, shown


@contextlib.contextmanager
def without(module: Any, *names: str, why: str) -> Iterator[None]:
    """Inside, these functions of a module raise a hint: they are what the reader should write."""
    def refusing(name: str) -> Any:
        def refused(*args: Any, **options: Any) -> Any:
            raise Hint(f"yours calls `{name}`: {why}")
        return refused
    with contextlib.ExitStack() as stack:
        for name in names:
            stack.enter_context(unittest.mock.patch.object(module, name, refusing(name)))
        yield


def equations(program: Any) -> Iterator[Any]:
    """The equations of a program, and in place of a `jit` those inside of it."""
    for eqn in program.eqns:
        yield from equations(eqn.params["jaxpr"]) if eqn.primitive.name == "jit" else [eqn]


def names_of(answer: Callable) -> dict[str, Any]:
    """The global names that an answer sees, compiled or not."""
    return inspect.unwrap(answer).__globals__


def of_dtype(given: str, found: Any, dtype: Any, hint: str) -> None:
    """Go on if an answer's dtype is this one; otherwise tell both."""
    mine = jnp.asarray(found).dtype
    expect(mine == dtype, f"for {given} the numbers are right; but their dtype is {mine}, and "
           f"{np.dtype(dtype)} is expected: {hint}")


def unchanged(given: str, before: Any, after: Any) -> None:
    """Go on if what an answer was given is as it was before; otherwise tell what it is now."""
    expect(np.array_equal(before, after), f"for {given} the array that your function was given is "
           f"{shown(after)} after the call: its caller may still need it, so make a new one")


def declared(value: Any, slope: Any) -> Any:
    """A function with a declared slope that is not its own: differences of values miss it."""
    f = jax.custom_jvp(value)
    f.defjvp(lambda primals, tangents: (f(*primals), slope(*primals) * tangents[0]))
    return f


FIVES = declared(jnp.sin, lambda x: 5.0 + 0.0 * x)


@contextlib.contextmanager
def ending_within(seconds: float, hint: str) -> Iterator[None]:
    """Stop what computes in Python for some seconds, where signals can."""
    if (threading.current_thread() is not threading.main_thread()
            or not hasattr(signal, "SIGVTALRM")):
        yield
        return

    def stop(signum: int, frame: FrameType | None) -> None:
        raise Hint(hint)
    before = signal.signal(signal.SIGVTALRM, stop)  # the clock of what this process computes
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, 0.2)  # again, where an exception gets lost
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
