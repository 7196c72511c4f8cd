"""Context variables with another value for the duration of a call.

The result of a program depends on `core.current_trace` and on flags set by a `with`; two others
serve error messages alone (`core.current_source`, `sharp_bits.findings`).  Builds on nothing.
Chapter 02, *Primitives and tracers*.  In JAX: `jax/_src/config.py`.
"""

import contextvars
import functools
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
Values = Mapping[Any, Any]  # variables, or what is read and set as they are


def with_values(values: Values, f: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """`f(*args, **kwargs)` while each variable holds its value.

    The call runs in the caller's own context: what a user's function sets there, stays.

    >>> depth = contextvars.ContextVar("depth", default=0)
    >>> with_values({depth: 1}, depth.get), depth.get()
    (1, 0)
    """
    before = {variable: variable.get() for variable in values}
    # Set inside `try`, and restore twice: an interrupt may hit one of the two.
    try:
        try:
            _set(values)
            return f(*args, **kwargs)
        finally:
            _set(before)
    finally:
        _set(before)


def _set(values: Values) -> None:
    for variable, value in values.items():
        variable.set(value)


def leaving(variable: contextvars.ContextVar) -> Callable[[F], F]:
    """Wrap a function so that it restores the variable on return."""
    def decorate(f: F) -> F:
        @functools.wraps(f)
        def restoring(*args: Any, **kwargs: Any) -> Any:
            return with_values({variable: variable.get()}, f, *args, **kwargs)
        return cast(F, restoring)
    return decorate
