"""Prepared calls: for arrays of types that it has seen, a public function repeats its NumPy calls.

What a function of arrays does outside of all transformations follows from their types and from its
other arguments.  The second such call is recorded, later calls run the record.  Builds on `core`.
Chapter 26, *Threads, caches and dispatch*.  In JAX: most functions are jitted.
"""

import contextvars
import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import core
from minijax.config import prepared_calls, state
from minijax.core import ArrayImpl, base_trace
from minijax.util import caches, exports, lazily, tracebacks

MOST = 4096  # keys

current_trace = core.current_trace.get

# For each function, state of the flags, and arguments: a program, and a copy of the context it runs
# in; or nothing, where there can be none; or False after the first call.
_programs: dict[tuple, Any] = {}
caches.cleared_by(_programs.clear)

_DTYPES: list[type] = [type(np.dtype(code)) for code in "?bBhHiIlLefdFD"]
# What the key of a call has for an argument of each type: the type of an array, other values.
PARTS: dict[type, Callable[[Any], Any]] = {
    ArrayImpl: operator.attrgetter("aval", "is_literal"),
    float: lambda x: (float, x, math.copysign(1.0, x)),  # 0.0 == -0.0, but they differ
    type(None): lambda x: None, type(...): lambda x: ..., str: lambda x: x,
    slice: lambda x: (slice, part(x.start), part(x.stop), part(x.step)),
    **{kind: lambda x: (type(x), x) for kind in (bool, int, type, *_DTYPES)},
    **{kind: lambda xs: (type(xs), *map(part, xs)) for kind in (list, tuple)}}


def part(x: Any) -> Any:
    """The part of a key for an argument.

    Raises:
      KeyError: for an argument of another type, such as a function; its calls are not prepared.
    """
    return PARTS[type(x)](x)


def repeated(fun: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Any:
    """The result of a prepared call, which is never None; or None, where the function has to run.
    """
    if current_trace() is not base_trace:
        return None
    try:
        if kwargs or not 0 < len(args) < 3:
            key = (fun, state(), *map(part, args), *[(name, part(x)) for name, x in kwargs.items()])
        elif len(args) == 2:  # written out: an operator must be fast
            x, y = args
            key = (fun, state(), PARTS[type(x)](x), PARTS[type(y)](y))
        else:
            x, = args
            key = (fun, state(), PARTS[type(x)](x))
        program = _programs.get(key)
    except (KeyError, TypeError):
        return None
    if program is None or program is False:
        program = _programs[key] = _next(program, fun, args, kwargs)
    if program:
        context, run = program
        try:
            return context().run(run, *args, **kwargs)
        except Exception:  # the function itself says what is wrong
            pass
    return None


def prepared(fun: Callable[..., Any]) -> Callable[..., Any]:
    """The function, whose calls on arrays of the same types become quick."""
    @tracebacks.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        out = repeated(fun, args, kwargs)
        return fun(*args, **kwargs) if out is None else out
    return call


def _next(program: Any, fun: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Any:
    """What is kept of a function after its first call, and after the second."""
    if program is None:
        if len(_programs) >= MOST:
            _make_room()
        return False
    if not prepared_calls.value or core.base_trace.checks or core.base_trace.call_checks:
        return ()
    run = lazily.later("minijax.transforms.recording", "recorded")(fun, args, kwargs)
    if run is None:
        return ()
    context = contextvars.Context()
    context.run(np.seterr, all="ignore")
    return context.copy, run


def _make_room() -> None:
    """Forget the calls that came once, or, where these are few, all."""
    for key in [key for key, program in [*_programs.items()] if program is False]:
        _programs.pop(key, None)
    if len(_programs) > MOST // 2:
        _programs.clear()


def boundary(fun: Callable[..., Any], like: Callable[..., Any] | None = None) -> Any:
    """The function, prepared, as a boundary of the API."""
    return tracebacks.api_boundary(fun, like=like, is_whole=True, quick=repeated)


# The public forms of what modules for arrays define.
exported = functools.partial(exports.exported, boundary_of=functools.cache(boundary))
export_all = functools.partial(exports.export_all, export=exported)
