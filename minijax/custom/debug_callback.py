"""Calling Python from traced and compiled code: `debug.callback`, `debug.print`.

Builds on `core`; compiled code calls Python through `compiler.host`.  Chapter 12.
In JAX: `jax/_src/debugging.py`.
"""

import functools
import logging
import string
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import core, errors, tree_util
from minijax.util import lazily, source_info
from minijax.core import Avals, Axis, Effect, ForPrimitive, Outs, Primitive, cannot
from minijax.control_flow.program_rules import batch_axes_first
from minijax.core.jaxpr import merge_lists, partition_list
from minijax.primitives import families, joining, slicing

logger = logging.getLogger("minijax")


class DebugEffect(Effect):
    """Something is shown to the user: the equation stays, in its place."""


class OrderedDebugEffect(DebugEffect):
    """The same with `ordered=True`; here all calls keep the order of the program."""


debug_effect, ordered_debug_effect = DebugEffect(), OrderedDebugEffect()


class HostCallback:
    """A Python function of flat NumPy arrays, as an equation's parameter.

    Where the equation is evaluated, and not compiled, `evaluated` is called instead.
    """

    def __init__(self, function: Callable[..., None], evaluated: Callable[..., None] | None = None):
        self.function, self.evaluated = function, evaluated or function

    def __call__(self, *arrays: np.ndarray) -> list:
        core.base_trace.wrap("callback", self.function)(*arrays)
        return []  # no outputs

    def evaluate(self, *arrays: np.ndarray) -> list:
        core.base_trace.wrap("callback", self.evaluated)(*arrays)
        return []

    def called_where(self, holds: Callable[[], bool]) -> "HostCallback":
        """The same, called only where a condition holds."""
        def only(function: Callable[..., None]) -> Callable[..., None]:
            return functools.wraps(function)(lambda *xs: function(*xs) if holds() else None)
        return HostCallback(only(self.function), only(self.evaluated))

    def __repr__(self) -> str:
        return getattr(self.function, "__name__", "callback")


@ForPrimitive
def batch_unrolled(p: Primitive, axis: Axis, args: list, dims: list, /, **params: Any) -> Outs:
    """One call for each example, one after the other; of an axis that is not empty."""
    rows = batch_axes_first(args, dims)
    results = [p.bind_list(*(x if d is None else slicing.index_leading(x, i)
                             for x, d in zip(rows, dims, strict=True)), **params)
               for i in range(axis.size)]
    outs = [joining.stack(column) for column in zip(*results, strict=True)]
    return outs, [0] * len(outs)


def callback_primitive(name: str, **rules: Any) -> Primitive:
    """A primitive that calls the Python function in its parameter `callback`.

    Args:
      name: as a jaxpr prints it.
      rules: its derivative, batching rule and effects.
    """
    return Primitive(
        name,
        impl=lambda *buffers, callback, **_: callback.evaluate(*buffers),
        abstract_eval=lambda *_, result_avals=(), **__: list(result_avals),
        loop=lambda b, outs, operands, *, callback, **_: b.host_call(callback, operands, outs),
        handles_keys=True,  # compiled code passes their words; evaluated code may pass keys
        examples=list,  # Python computes its results; its tests watch what is called
        sharding=lazily.later("minijax.control_flow.layouts", name),
        multiple_results=True,
        **rules)


debug_callback_p = callback_primitive(
    "debug_callback", jvp=families.constant_in_all, batch=batch_unrolled,
    transpose=cannot("it has no result, and so no cotangent"),
    effects=lambda *, effect, **_: frozenset([effect]))


# ── As users call it ─────────────────────────────────────────────────────────────────────────

def debug_callback(callback: Callable[..., Any] | None = None, *args: Any, ordered: bool = False,
                   partitioned: bool = False, **kwargs: Any) -> Any:
    """Call a Python function with the values that traced arguments have when the program runs.

    It is called each time the compiled code runs, once for each example of a batch, and in each
    step of a loop, in the order of the program.

    Args:
      callback: takes arrays in the trees of the arguments; its result is ignored.
      args, kwargs: trees of arrays.
      ordered, partitioned: accepted for JAX's sake; calls are always in order, and whole, here.

    Returns:
      Nothing; given options alone, a function that takes the callback and its arguments.

    Raises:
      TypeError: when `callback` cannot be called.

    >>> import minijax as jax
    >>> @jax.jit
    ... def f(x):
    ...     debug_callback(lambda v: print("saw", v), x)
    ...     return x * 2
    >>> f(3.0)
    saw 3.0
    Array(6., dtype=float32, weak_type=True)
    """
    def call(callback: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        if not callable(callback):
            raise TypeError("first argument to jax.debug.callback must be callable, but got an "
                            f"object of type {type(callback)}")
        _call_with_values(callback, args, kwargs, ordered)
    return _call_or_decorate("debug_callback", call, callback, args, kwargs)


def _call_or_decorate(name: str, call: Callable[..., None], first: Any, args: tuple,
                      kwargs: dict) -> Any:
    """The call; or, where its first argument was left out, the function that makes it later."""
    if first is not None:
        return call(first, *args, **kwargs)
    if args or kwargs:
        raise TypeError(f"{name} received unexpected arguments in the two-call form: {args=} "
                        f"{kwargs=}")
    return call


def _call_with_values(callback: Callable, args: tuple, kwargs: dict, ordered: bool) -> None:
    leaves, tree = tree_util.tree_flatten((args, kwargs))
    is_array = [core.is_array_like(x) for x in leaves]
    fixed, arrays = partition_list(leaves, is_array)
    avals = list(map(core.get_aval, arrays))

    def call_with(avals: Avals) -> Callable[..., None]:
        def call(*buffers: np.ndarray) -> None:
            values = list(map(core.array_from_buffer, buffers, avals))
            args, kwargs = tree_util.tree_unflatten(tree, merge_lists((fixed, values), is_array))
            callback(*args, **kwargs)
        call.__name__ = source_info.function_name(callback)
        return call
    compiled = call_with([core.physical_aval(aval).update(weak_type=False) for aval in avals])
    debug_callback_p.bind(*arrays, callback=HostCallback(compiled, call_with(avals)),
                          effect=ordered_debug_effect if ordered else debug_effect)


class _CheckingFormatter(string.Formatter):
    """Refuses arguments that the format does not use."""

    def check_unused_args(self, used_args: Any, args: Any, kwargs: Any) -> None:
        unused = [x for i, x in enumerate(args) if i not in used_args]
        unused_names = [k for k in kwargs if k not in used_args]
        core.refuse(
            (bool(unused), f"Unused positional arguments to `jax.debug.print`: {unused}"),
            (bool(unused_names), "Unused keyword arguments to `jax.debug.print`: "
             f'{unused_names}. You may be passing an f-string (i.e, `f"{{x}}"`) into '
             "`jax.debug.print` and instead should pass in a regular string."), error=ValueError)

    def format_field(self, value: Any, format_spec: str) -> str:
        return ""  # while tracing there are no digits


_formatter = _CheckingFormatter()


def debug_print(fmt: str | None = None, *args: Any, ordered: bool = False,
                partitioned: bool = False, skip_format_check: bool = False,
                _use_logging: bool = False, **kwargs: Any) -> Any:
    """Print the values that traced arguments have when the program runs.

    Args:
      fmt: a format as `str.format` takes it: ``"x = {x}"``.
      args, kwargs: the values to format: trees of arrays.
      ordered, partitioned: accepted for JAX's sake; prints are always in order, and whole, here.
      skip_format_check: do not refuse unused arguments.

    Returns:
      Nothing; given options alone, a function that takes the format and its arguments.

    Raises:
      ValueError: when an argument is not used by the format.

    >>> import minijax as jax
    >>> jax.jit(lambda x: debug_print("x = {x}", x=x))(3.0)
    x = 3.0
    """
    def call(fmt: str, *args: Any, **kwargs: Any) -> None:
        if not isinstance(fmt, str):
            raise errors.with_cure(TypeError(f"expected str, got {type(fmt).__name__}"),
                                   "The first argument of jax.debug.print is a format string.")
        if not skip_format_check:
            _formatter.vformat(fmt, args, kwargs)  # refuses now, where the user's line is
        has_places = any(name is not None for _, name, *_ in _formatter.parse(fmt))
        options = np.get_printoptions()

        def show(*values: Any, **named: Any) -> None:
            with np.printoptions(**options):
                text = (fmt.format(*values, **named) if has_places or not values else
                        " ".join((fmt, *map(str, values))))
            if _use_logging:
                logger.info(text)
            else:
                sys.stdout.write(text + "\n")
        _call_with_values(show, args, kwargs, ordered)
    return _call_or_decorate("debug_print", call, fmt, args, kwargs)


debug_log = functools.partial(debug_print, _use_logging=True)
