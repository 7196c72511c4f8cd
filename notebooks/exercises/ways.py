"""What the graders of several chapters ask about the way in which an answer computes."""

from __future__ import annotations

import contextlib
import signal
import threading
import unittest.mock
from collections.abc import Iterator
from types import FrameType
from typing import Any

import minijax as jax
import minijax.numpy as jnp
from minijax.notebook.checks import Hint


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
