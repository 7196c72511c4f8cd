"""Tracebacks of the user's lines: frames of the package are removed at its boundaries.

Builds on `config`.  A boundary is a function that users call: the results of `jit`, `grad`, …, and
every function of a public module such as `minijax.numpy`.  Chapter 21, *The errors, one by one*.
In JAX: `jax/_src/traceback_util.py`.
"""

import builtins
import functools
from collections.abc import Callable, Iterator, Sequence
from types import FrameType, FunctionType, TracebackType
from typing import Any, TypeVar

from minijax import config
from minijax.errors import UnfilteredStackTrace, is_internal

F = TypeVar("F", bound=Callable[..., Any])

# The package's code as a reader of the course has edited it: ours, but shown when it fails.
LIVE = "<minijax live "
HIDDEN_NOTE = ("For simplicity, JAX has removed its internal frames from the traceback. "
               "Set JAX_TRACEBACK_FILTERING=off to include these.")

TOO_DEEP = ("minijax: functions, transformed or not, are nested too deeply for Python's recursion "
            "limit. Each jit takes about 10 frames, other transformations up to 20; "
            "sys.setrecursionlimit raises the limit.")


def is_user_frame(frame: FrameType) -> bool:
    """Whether a frame runs code from outside the package.

    >>> import sys
    >>> is_user_frame(sys._getframe())
    True
    """
    return not is_internal(frame.f_code.co_filename)


def _is_shown(frame: FrameType) -> bool:
    return is_user_frame(frame) or frame.f_code.co_filename.startswith(LIVE)


def filter_traceback(tb: TracebackType | None) -> TracebackType | None:
    """A copy of a traceback with the frames of the user's program only; None if there are none."""
    return _chain([entry for entry in _entries(tb) if _is_shown(entry.tb_frame)])


def mark_traceback(tb: TracebackType | None) -> TracebackType | None:
    """A copy that ends at the user's last line, the package's frames above it marked as hidden.

    IPython and pytest pass over a frame with a variable `__tracebackhide__`, the last one excepted.
    """
    entries = list(_entries(tb))
    while entries and not _is_shown(entries[-1].tb_frame):
        entries.pop()
    for entry in entries:
        if not _is_shown(entry.tb_frame):
            variables = entry.tb_frame.f_locals
            # before Python 3.13 a copy, which would keep the error alive that has this traceback
            getattr(variables, "clear", dict)()
            variables["__tracebackhide__"] = True
    return _chain(entries)


def _entries(tb: TracebackType | None) -> Iterator[TracebackType]:
    while tb is not None:
        yield tb
        tb = tb.tb_next


def _chain(entries: Sequence[TracebackType]) -> TracebackType | None:
    chain: TracebackType | None = None
    for entry in reversed(entries):
        chain = TracebackType(chain, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return chain


# ── What each mode of `traceback_filtering` does ─────────────────────────────────────────────


def hide_internal_frames(error: BaseException) -> None:
    """Take the package's frames out of an exception's traceback; `full_traceback` keeps them all.

    To be called in an `except` block that ends with a bare `raise`: Python then adds no entry for
    the frame of that block itself.  How they are taken out, the flag `traceback_filtering` says.
    """
    mode: str = config.traceback_filtering.value
    if mode == "auto":
        mode = "tracebackhide" if hasattr(builtins, "get_ipython") else "quiet_remove_frames"
    is_first = not hasattr(error, "full_traceback")
    if isinstance(error, RecursionError) and TOO_DEEP not in getattr(error, "__notes__", ()):
        error.add_note(TOO_DEEP)
    if mode == "off":
        return
    _replace_traceback(error, mark_traceback if mode == "tracebackhide" else filter_traceback)
    if mode == "remove_frames":
        _keep_as_cause(error)
    elif is_first and mode != "tracebackhide":
        error.add_note(HIDDEN_NOTE)


def _replace_traceback(error: BaseException, shorter: Callable[..., TracebackType | None]) -> None:
    entries = list(_entries(error.__traceback__))
    # What a boundary further inside has hidden stands where its first shown entry stands.
    shown, hidden = getattr(error, "_hidden_frames", (None, []))
    place = next((n for n, entry in enumerate(entries) if entry is shown), len(entries))
    full = entries[:place] + hidden
    error.__traceback__ = shorter(error.__traceback__)
    error._hidden_frames = (error.__traceback__, full)  # type: ignore[attr-defined]
    error.full_traceback = _chain(full)  # type: ignore[attr-defined]


def _keep_as_cause(error: BaseException) -> None:
    """Chain what has the full traceback before the error, as what it was raised from."""
    cause = error.__cause__
    if not isinstance(cause, UnfilteredStackTrace):
        before = cause
        cause = UnfilteredStackTrace(f"{type(error).__name__}: {error}")
        cause.__cause__, cause.__context__ = before, error.__context__
        cause.__suppress_context__ = error.__suppress_context__
        error.__cause__ = cause
    cause.__traceback__ = error.full_traceback  # type: ignore[attr-defined]


# ── What stands for a callable ───────────────────────────────────────────────────────────────

# What a function has, and of which types; an object that can be called may have anything there.
_ASSIGNED = {"__name__": str, "__qualname__": str, "__annotations__": dict,
             "__type_params__": tuple}


def name_of(fun: Any) -> str:
    """The name of a callable, for its wrappers.

    >>> name_of(functools.partial(max, 1)), name_of(object())
    ('max', '<unnamed function>')
    """
    if isinstance(fun, functools.partial):
        return name_of(fun.func)
    name = getattr(fun, "__name__", None)
    return name if isinstance(name, str) else "<unnamed function>"


def update_wrapper(made: Any, fun: Callable[..., Any],
                   updated: Sequence[str] = functools.WRAPPER_UPDATES) -> Any:
    """`functools.update_wrapper` for any callable: what cannot be a function's is left out.

    >>> class Layer:
    ...     __name__ = None
    >>> update_wrapper(lambda x: x, Layer()).__name__
    '<unnamed function>'
    """
    if isinstance(fun, FunctionType):
        return functools.update_wrapper(made, fun, updated=updated)
    assigned = [name for name in functools.WRAPPER_ASSIGNMENTS
                if isinstance(getattr(fun, name, None), _ASSIGNED.get(name, object))]
    made.__name__ = made.__qualname__ = name_of(fun)
    return functools.update_wrapper(made, fun, assigned, updated)


def wraps(fun: Callable[..., Any]) -> Callable[[F], F]:
    """Decorates what stands for a callable; see `update_wrapper`."""
    return lambda made: update_wrapper(made, fun)


# ── Boundaries ───────────────────────────────────────────────────────────────────────────────


def api_boundary(fun: F, *, like: Callable[..., Any] | None = None, is_whole: bool = False,
                 quick: Callable[..., Any] = lambda fun, args, kwargs: None) -> F:
    """The function, whose errors show the frames of the user's program only.

    It goes by the name of the one that it is `like`.

    A function that `is_whole` is one operation to its user.  An error with an attribute `settle`
    is to be raised only if it still is one when the function is seen as a whole: `settle` then
    returns None, and otherwise the function's result in a tuple.  Where `quick(fun, args, kwargs)`
    has the result, the function is not called.

    >>> api_boundary(len)([1, 2])
    2
    """
    @wraps(like or fun)
    def boundary(*args: Any, **kwargs: Any) -> Any:
        try:
            out = quick(fun, args, kwargs)
            return fun(*args, **kwargs) if out is None else out
        except Exception as error:
            whole = is_whole or isinstance(error, OverflowError)
            if whole and (result := settled(error, fun, args, kwargs)) is not None:
                return result[0]
            hide_internal_frames(error)
            raise
    return boundary  # type: ignore[return-value]


def settled(error: Exception, fun: Callable[..., Any], args: tuple, kwargs: dict) -> Any:
    """The result of an error's `settle` for a function as a whole; None without one."""
    settle = getattr(error, "settle", None)
    return None if settle is None else settle(fun, args, kwargs)


def settle_for_good(error: Exception, fun: Callable[..., Any], args: tuple) -> None:
    """Settle an error for a function, and for none of the enclosing ones."""
    settled(error, fun, args, {})
    error.settle = None  # type: ignore[attr-defined]


def standing_for(fun: Callable[..., Any]) -> Callable[[F], F]:
    """Decorates the transform of a user's function: a boundary with the function's name.

    >>> @standing_for(abs)
    ... def derivative(x):
    ...     return x / abs(x)
    >>> derivative.__name__, derivative(-2)
    ('abs', -1.0)
    """
    return functools.partial(api_boundary, like=fun)


def is_boundary(fun: Any) -> bool:
    """Whether a function is what `api_boundary` returns.

    >>> is_boundary(api_boundary(len)), is_boundary(len)
    (True, False)
    """
    return getattr(fun, "__globals__", None) is globals()
