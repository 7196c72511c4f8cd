"""The conversion of values to arrays: numbers, NumPy arrays, and objects with `__jax_array__`.

Builds on `trace`.  Chapter 15, *Non-array inputs*.
In JAX: `jax/_src/abstract_arrays.py`, `jax/_src/api_util.py` (`shaped_abstractify`).
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.util import caches, lazily
from minijax import config, dtypes
from minijax.core.array import AbstractArray, Array, ArrayImpl, Typed, array_from_buffer
from minijax.core.trace import base_trace, current_trace, is_ref
from minijax.core.types import ShapedArray

_too_large = lazily.later("minijax.util.overflow_errors", "too_large")


# Scalars are converted so often that the arrays of small ones are cached.
@caches.remembered(maxsize=4096)
def _scalar_array(value: Any, kind: str, sign: float, x64: bool) -> ArrayImpl:
    dtype = dtypes.dtype(value)
    aval = ShapedArray((), dtype, dtypes.is_weakly_typed(value))
    return ArrayImpl(np.asarray(value, dtype), aval, is_literal=True)


def as_value(x: Any) -> Array:
    """`x` as an array or tracer: scalars and NumPy arrays are converted, the rest refused.

    Raises:
      TypeError: for other values than numbers and arrays of numbers.
    """
    if isinstance(x, Array):
        return x
    kind = type(x)
    if kind in (bool, int, float):
        try:
            sign = math.copysign(1.0, x) if kind is float else 1.0  # 0.0 == -0.0, yet differ
            return _scalar_array(x, kind.__name__, sign, config.enable_x64.value)
        except OverflowError:
            raise _too_large(x, dtypes.default_int_dtype()) from None
    return _as_value_slow(x)


def stood_for(x: Any) -> Any:
    """The array of an object with `__jax_array__`; any other value unchanged."""
    if isinstance(x, Array) or not hasattr(x, "__jax_array__"):
        return x
    return x.__jax_array__()


def as_value_or_raise(x: Any, refusal: Callable[[], str]) -> Array:
    """`x` as an array or tracer; the message for other values is the caller's."""
    try:
        return as_value(x)
    except TypeError:
        raise TypeError(refusal()) from None


# Converters of classes that are no arrays: each returns an array or a number.
stand_ins: dict[type, Callable[[Any], Any]] = {}


def _as_value_slow(x: Any) -> Array:
    for kind in type(x).__mro__ if stand_ins else ():
        if kind in stand_ins:
            return as_value(stand_ins[kind](x))
    python = dtypes.python_type(x)
    if python is not None and python is not type(x):  # a subclass, such as an IntEnum
        return as_value(python(x))
    if python is not None or isinstance(x, (np.ndarray, np.generic)):
        aval = _type_of_numbers(x)
        if aval.dtype == dtypes.float0:
            return ArrayImpl(np.zeros(x.shape, bool), aval)
        base_trace.notify("narrow", x, aval.dtype)
        if isinstance(x, np.ndarray):
            return array_from_buffer(x, aval)
        return ArrayImpl(np.array(x, aval.dtype), aval, is_literal=True)
    if hasattr(x, "__jax_array__"):
        raise ValueError("Triggering __jax_array__() during abstractification is no longer "
                         "supported. To avoid this error, either explicitly convert your object "
                         "using jax.numpy.array(), or register your object as a pytree.")
    if hasattr(x, "struct") and current_trace.get() is not base_trace:  # a ShapeDtypeStruct
        return AbstractArray(x.aval)
    raise _no_array(x)


def _no_array(x: Any) -> Exception:
    shown = f"'{x}' with dtype {x.dtype}" if hasattr(x, "dtype") else repr(x)
    return TypeError(f"Value {shown} is not a valid JAX array type. "
                     "Only arrays of numeric types are supported by JAX.")


def _type_of_numbers(x: Any) -> ShapedArray:
    """The type of the array that a number or a NumPy array becomes.

    Raises:
      ValueError: for a masked array, whose mask would be lost.
      TypeError: for values without numbers, or with numbers of an unsupported dtype.
    """
    if python := dtypes.python_type(x):
        return ShapedArray((), dtypes.dtype(python), python is not bool)
    refuse_mask(x)
    if x.dtype != dtypes.float0 and not dtypes.is_valid_dtype(x.dtype):
        raise _no_array(x)
    return ShapedArray(x.shape, dtypes.canonicalize_dtype(x.dtype))


def refuse(*checks: tuple[bool, str], error: type[Exception] = TypeError) -> None:
    """Raise for the first check that failed.

    Raises:
      TypeError: or another error, with the message beside the check.
    """
    for failed, message in checks:
        if failed:
            raise error(message)


def refuse_mask(x: Any) -> None:
    """Refuse NumPy's masked arrays: arrays have no mask."""
    if isinstance(x, np.ndarray) and type(x) is not np.ndarray and isinstance(x, np.ma.MaskedArray):
        raise ValueError("numpy masked arrays are not supported as direct inputs to JAX functions. "
                         "Use arr.filled() to convert the value to a standard numpy array.")


def get_aval(x: Any) -> ShapedArray:
    """The type of a value.

    >>> get_aval(1.5)
    ShapedArray(float32[], weak_type=True)
    """
    if isinstance(x, Typed):
        return x.aval
    return _type_of_numbers(x) if isinstance(x, np.ndarray | np.generic) else as_value(x).aval


def typeof(x: Any) -> Any:
    """The type of a value, or of an array reference.

    >>> typeof(np.zeros(3, np.int32))
    ShapedArray(int32[3])
    """
    return x.aval if is_ref(x) else get_aval(x)


def is_array_like(x: Any) -> bool:
    """Whether `as_value` accepts `x`."""
    try:
        get_aval(x)
    except (TypeError, ValueError, OverflowError):
        return False
    return True
