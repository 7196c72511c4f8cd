"""Comparisons, truth and bits: equal, less, isclose, logical_and, bitwise_xor, left_shift, ….

Stands on `arithmetic`.  Chapter 20, *Precision, and where NumPy differs*.
In JAX: `jax/_src/numpy/ufuncs.py`, `lax_numpy.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import dtypes, lax
from minijax.core import Array, as_value
from minijax.numpy.arguments import (ArrayLike, Operand, as_arrays, binary, choose, convert,
                                     promote_args, promote_args_numeric, promote_shapes, public,
                                     weak_if_scalar)
from minijax.numpy.creation import asarray
from minijax.numpy.unary import isfinite, isnan


# ── Comparisons ──────────────────────────────────────────────────────────────────────────────

def _comparison(name: str, function: Callable[[Any, Any], Any], sign: str) -> Callable:
    """A comparison; complex numbers are ordered by real part, then imaginary part."""
    def compare(x: Any, y: Any) -> Any:
        if sign in ("==", "!=") or x.dtype.kind != "c":
            return function(x, y)
        same = lax.real(x) == lax.real(y)
        return choose(same, function(lax.imag(x), lax.imag(y)), function(lax.real(x), lax.real(y)))

    return binary(compare, name, f"Whether ``x {sign} y``.",
                  f"bool({name}(2, 3)) -> {sign in ('!=', '<', '<=')}", names=("x", "y"))


equal = _comparison("equal", lax.eq, "==")
not_equal = _comparison("not_equal", lax.ne, "!=")
less = _comparison("less", lax.lt, "<")
less_equal = _comparison("less_equal", lax.le, "<=")
greater = _comparison("greater", lax.gt, ">")
greater_equal = _comparison("greater_equal", lax.ge, ">=")


# ── Bits and truth ───────────────────────────────────────────────────────────────────────────

bitwise_and = binary(lax.bitwise_and, "bitwise_and", "``x & y``, bit by bit.",
                     "int(bitwise_and(6, 3)) -> 2")
bitwise_or = binary(lax.bitwise_or, "bitwise_or", "``x | y``, bit by bit.",
                    "int(bitwise_or(6, 3)) -> 7")
bitwise_xor = binary(lax.bitwise_xor, "bitwise_xor", "``x ^ y``, bit by bit.",
                     "int(bitwise_xor(6, 3)) -> 5")
left_shift = bitwise_left_shift = binary(lax.shift_left, "left_shift",
                                         promote=promote_args_numeric, names=("x", "y"))


def _shift_right(x: Any, y: Any) -> Any:
    is_signed = x.dtype.kind != "u"
    return (lax.shift_right_arithmetic if is_signed else lax.shift_right_logical)(x, y)


right_shift = bitwise_right_shift = binary(
    _shift_right, "right_shift", "``x >> y``; the sign is kept.", "int(right_shift(-8, 1)) -> -4",
    promote_args_numeric)


def bitwise_not(x: ArrayLike, /) -> Array:
    """``~x``: every bit turned; of bools, ``not x``.

    >>> int(bitwise_not(5))
    -6
    """
    return lax.bitwise_not(x)


invert = bitwise_invert = bitwise_not


def _truth(x: Any) -> Any:
    return x if x.dtype == bool else weak_if_scalar(x != 0)


def _truths(name: str, *args: Any) -> list:
    return promote_shapes(name, *map(_truth, as_arrays(name, *args)))


logical_and = binary(lax.bitwise_and, "logical_and", "Whether both are true (not zero).",
                     "bool(logical_and(1, 0)) -> False", _truths)
logical_or = binary(lax.bitwise_or, "logical_or", "Whether either is true (not zero).",
                    "bool(logical_or(1, 0)) -> True", _truths)
logical_xor = binary(lax.bitwise_xor, "logical_xor", "Whether just one is true (not zero).",
                     "bool(logical_xor(1, 0)) -> True", _truths)


def logical_not(x: ArrayLike, /) -> Array:
    """Whether false (zero).

    >>> bool(logical_not(0))
    True
    """
    return ~_truth(x)


# ── Nearly, and all over ─────────────────────────────────────────────────────────────────────

def isclose(a: Operand, b: Operand, rtol: ArrayLike = 1e-05, atol: ArrayLike = 1e-08,
            equal_nan: bool = False) -> Array:
    """Whether ``abs(a - b) <= atol + rtol * abs(b)``; infinities only equal themselves.

    >>> isclose(np.array([1.0, 2.0]), 1.000001)
    Array([ True, False], dtype=bool)
    """
    a, b = promote_args("isclose", a, b)
    if not dtypes.issubdtype(a.dtype, np.inexact):
        a, b = (convert(x, dtypes.default_float_dtype()) for x in (a, b))
    real = dtypes.to_floating_dtype(a.dtype)
    allowed = lax.add(convert(atol, real), lax.mul(convert(rtol, real), lax.abs(b)))
    near = lax.le(lax.abs(lax.sub(a, b)), allowed)
    close = lax.bitwise_or(lax.bitwise_and(isfinite(b), near), lax.eq(a, b))
    return close | isnan(a) & isnan(b) if equal_nan else close


def allclose(a: Operand, b: Operand, rtol: ArrayLike = 1e-05, atol: ArrayLike = 1e-08,
             equal_nan: bool = False) -> Array:
    """Whether `isclose` holds everywhere.

    >>> allclose(np.array([1.0, 2.0]), np.array([1.0, 2.0]))
    Array(True, dtype=bool)
    """
    return _everywhere(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Array:
    """Whether two arrays have one shape and equal elements.

    >>> array_equal(np.array([1, 2]), np.array([1, 2])), array_equal(np.array([1, 2]), 1)
    (Array(True, dtype=bool), Array(False, dtype=bool))
    """
    a1, a2 = asarray(a1), asarray(a2)
    if a1.shape != a2.shape:
        return as_value(False)
    same = equal(a1, a2)
    return _everywhere(same | isnan(a1) & isnan(a2) if equal_nan else same)


def array_equiv(a1: Any, a2: Any) -> Array:
    """Whether two arrays have equal elements once broadcast to one shape.

    >>> bool(array_equiv(np.array([2, 2]), 2))
    True
    """
    a1, a2 = asarray(a1), asarray(a2)
    try:
        np.broadcast_shapes(a1.shape, a2.shape)
    except ValueError:
        return as_value(False)
    return _everywhere(equal(a1, a2))


def _everywhere(mask: Any) -> Any:
    return lax.reduce_and(mask, tuple(range(mask.ndim)))


public(globals())
