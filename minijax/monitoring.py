"""Events of a program, told to whoever listens; tracing and compilation are among them.

Stands on nothing.  In JAX: `jax/_src/monitoring.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Listener = Callable[..., Any]
_OF_EVENTS: list[Listener] = []
_OF_DURATIONS: list[Listener] = []
_OF_TIME_SPANS: list[Listener] = []
_OF_SCALARS: list[Listener] = []


def record_event(event: str, **kwargs: str | int) -> None:
    """Tell of something that has happened.

    Args:
      event: its name, such as ``"/training/checkpoint"``.
      kwargs: its details.

    >>> register_event_listener(print)
    >>> record_event("/training/checkpoint")
    /training/checkpoint
    >>> unregister_event_listener(print)
    """
    _tell(_OF_EVENTS, event, **kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: str | int) -> None:
    """Tell how long something took.

    >>> record_event_duration_secs("/training/step", 0.25)
    """
    _tell(_OF_DURATIONS, event, duration, **kwargs)


def record_event_time_span(event: str, start_time: float, end_time: float, **kwargs: str | int
                           ) -> None:
    """Tell when something began and ended.

    >>> record_event_time_span("/training/step", 1.0, 1.25)
    """
    _tell(_OF_TIME_SPANS, event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float | int, **kwargs: str | int) -> None:
    """Tell of a number.

    >>> record_scalar("/training/loss", 0.5)
    """
    _tell(_OF_SCALARS, event, value, **kwargs)


def _tell(listeners: list[Listener], *facts: Any, **details: Any) -> None:
    for listener in listeners:
        listener(*facts, **details)


def _registers(listeners: list[Listener], told: str) -> tuple[Callable[[Listener], None],
                                                              Callable[[Listener], None]]:
    def register(callback: Listener) -> None:
        listeners.append(callback)

    def unregister(callback: Listener) -> None:
        if callback not in listeners:
            raise AssertionError(f"{callback} does not listen: it was not registered")
        listeners.remove(callback)
    register.__doc__ = f"Call a function ``{told}`` whenever a program tells of one."
    unregister.__doc__ = "Call it no more.\n\nRaises:\n  AssertionError: if it does not listen."
    return register, unregister


register_event_listener, unregister_event_listener = _registers(
    _OF_EVENTS, "(event, **details)")
register_event_duration_secs_listener, unregister_event_duration_listener = _registers(
    _OF_DURATIONS, "(event, duration, **details)")
register_event_time_span_listener, unregister_event_time_span_listener = _registers(
    _OF_TIME_SPANS, "(event, start_time, end_time, **details)")
register_scalar_listener, unregister_scalar_listener = _registers(
    _OF_SCALARS, "(event, value, **details)")


def clear_event_listeners() -> None:
    """Forget all listeners but those of numbers, as JAX does.

    >>> clear_event_listeners()
    """
    for listeners in (_OF_EVENTS, _OF_DURATIONS, _OF_TIME_SPANS):
        listeners.clear()
