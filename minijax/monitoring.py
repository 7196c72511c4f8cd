"""Events of a program, such as tracing and compilation, sent to listeners.

Builds on nothing.  In JAX: `jax/_src/monitoring.py`.
"""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

Listener = Callable[..., Any]
_listeners: defaultdict[str, list[Listener]] = defaultdict(list)  # by what they listen to


def record_event(event: str, **kwargs: str | int) -> None:
    """Send an event to its listeners.

    Args:
      event: its name, such as ``"/training/checkpoint"``.
      kwargs: its details.

    >>> register_event_listener(print)
    >>> record_event("/training/checkpoint")
    /training/checkpoint
    >>> unregister_event_listener(print)
    """
    _send("events", event, **kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: str | int) -> None:
    """Send the duration of something.

    >>> record_event_duration_secs("/training/step", 0.25)
    """
    _send("durations", event, duration, **kwargs)


def record_event_time_span(event: str, start_time: float, end_time: float, **kwargs: str | int
                           ) -> None:
    """Send the time of the start and of the end of something.

    >>> record_event_time_span("/training/step", 1.0, 1.25)
    """
    _send("time spans", event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float | int, **kwargs: str | int) -> None:
    """Send a number.

    >>> record_scalar("/training/loss", 0.5)
    """
    _send("scalars", event, value, **kwargs)


def _send(what: str, *args: Any, **details: Any) -> None:
    for listener in _listeners[what]:
        listener(*args, **details)


def _registration(what: str, call: str) -> tuple[Callable, Callable]:
    """The functions that add a listener, and remove it."""
    listeners = _listeners[what]

    def register(callback: Listener) -> None:
        listeners.append(callback)

    def unregister(callback: Listener) -> None:
        if callback not in listeners:
            raise AssertionError(f"{callback} does not listen: it was not registered")
        listeners.remove(callback)
    register.__doc__ = f"Add a listener, called as ``callback{call}``."
    unregister.__doc__ = ("Remove a listener.\n\nRaises:\n  AssertionError: where it was not "
                          "registered.")
    return register, unregister


register_event_listener, unregister_event_listener = _registration("events", "(event, **details)")
register_event_duration_secs_listener, unregister_event_duration_listener = _registration(
    "durations", "(event, duration, **details)")
register_event_time_span_listener, unregister_event_time_span_listener = _registration(
    "time spans", "(event, start_time, end_time, **details)")
register_scalar_listener, unregister_scalar_listener = _registration(
    "scalars", "(event, value, **details)")


def clear_event_listeners() -> None:
    """Remove all listeners but those of numbers, as JAX does.

    >>> clear_event_listeners()
    """
    for what in ("events", "durations", "time spans"):
        _listeners[what].clear()
