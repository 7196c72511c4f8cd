"""Comparisons, truth and bits: equal, less, isclose, logical_and, bitwise_xor, left_shift, ….

Builds on `arithmetic`.  Chapter 20, *Precision, and where NumPy differs*.
In JAX: `jax/_src/numpy/ufuncs.py`, `lax_numpy.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import dtypes, lax
from minijax.core import Array, as_value
from minijax.numpy.arguments import (ArrayLike, Numeric, Operand, check_promotion, choose, convert,
                                     from_lax, promote_args, promote_args_numeric, promote_shapes,
                                     public, weak_if_scalar)
from minijax.numpy import creation, unary


def _lexicographic(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A comparison; complex numbers are ordered by real part, then imaginary part."""
    @functools.wraps(compare)
    def ordered(x: Any, y: Any) -> Any:
        if x.dtype.kind != "c":
            return compare(x, y)
        same = lax.real(x) == lax.real(y)
        return choose(same, compare(lax.imag(x), lax.imag(y)), compare(lax.real(x), lax.real(y)))
    return ordered


_binary = functools.partial(from_lax, prepare=promote_args)

equal, not_equal, less, less_equal, greater, greater_equal = map(
    _binary, (lax.eq, lax.ne, *map(_lexicographic, (lax.lt, lax.le, lax.gt, lax.ge))),
    ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"))


# ── Bits and truth ───────────────────────────────────────────────────────────────────────────

bitwise_and, bitwise_or, bitwise_xor = map(
    _binary, (lax.bitwise_and, lax.bitwise_or, lax.bitwise_xor))
left_shift = from_lax(lax.shift_left, "left_shift", prepare=promote_args_numeric)


def right_shift(x1: Numeric, x2: Numeric, /) -> Array:
    """``x >> y``; the sign is kept.

    >>> int(right_shift(-8, 1))
    -4
    """
    is_unsigned = dtypes.kind(x1.dtype) == "u"
    return (lax.shift_right_logical if is_unsigned else lax.shift_right_arithmetic)(x1, x2)


bitwise_left_shift, bitwise_right_shift = left_shift, right_shift


def bitwise_not(x: ArrayLike, /) -> Array:
    """``~x``: every bit flipped; of bools, ``not x``.

    >>> int(bitwise_not(5))
    -6
    """
    return lax.bitwise_not(x)


invert = bitwise_invert = bitwise_not


def _truth(x: Any) -> Any:
    return x if x.dtype == bool else weak_if_scalar(x != 0)


def _truths(name: str, *args: Array) -> list[Any]:
    check_promotion(*args)
    return promote_shapes(name, *map(_truth, args))


def logical_and(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether both are true (not zero).

    >>> bool(logical_and(1, 0))
    False
    """
    return lax.bitwise_and(*_truths("logical_and", x, y))


def logical_or(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether either is true (not zero).

    >>> bool(logical_or(1, 0))
    True
    """
    return lax.bitwise_or(*_truths("logical_or", x, y))


def logical_xor(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether exactly one is true (not zero).

    >>> bool(logical_xor(1, 0))
    True
    """
    return lax.bitwise_xor(*_truths("logical_xor", x, y))


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
    if dtypes.issubdtype(a.dtype, dtypes.extended):  # PRNG keys
        return lax.eq(a, b)
    if not dtypes.issubdtype(a.dtype, np.inexact):
        a, b = (convert(x, dtypes.default_float_dtype()) for x in (a, b))
    real = dtypes.to_floating_dtype(a.dtype)
    allowed = lax.add(convert(atol, real), lax.mul(convert(rtol, real), lax.abs(b)))
    near = lax.le(lax.abs(lax.sub(a, b)), allowed)
    close = lax.bitwise_or(lax.bitwise_and(unary.isfinite(b), near), lax.eq(a, b))
    return close | unary.isnan(a) & unary.isnan(b) if equal_nan else close


def allclose(a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-05, atol: ArrayLike = 1e-08,
             equal_nan: bool = False) -> Array:
    """Whether `isclose` holds everywhere.

    >>> allclose(np.array([1.0, 2.0]), np.array([1.0, 2.0]))
    Array(True, dtype=bool)
    """
    a, b = promote_args("isclose", a, b)
    return _all(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Array:
    """Whether two arrays have one shape and equal elements.

    >>> array_equal(np.array([1, 2]), np.array([1, 2])), array_equal(np.array([1, 2]), 1)
    (Array(True, dtype=bool), Array(False, dtype=bool))
    """
    a1, a2 = creation.asarray(a1), creation.asarray(a2)
    if a1.shape != a2.shape:
        return as_value(False)
    check_promotion(a1, a2)
    same = equal(a1, a2)
    return _all(same | unary.isnan(a1) & unary.isnan(a2) if equal_nan else same)


def array_equiv(a1: Any, a2: Any) -> Array:
    """Whether two arrays have equal elements once broadcast to one shape.

    >>> bool(array_equiv(np.array([2, 2]), 2))
    True
    """
    a1, a2 = creation.asarray(a1), creation.asarray(a2)
    try:
        np.broadcast_shapes(a1.shape, a2.shape)
        return _all(equal(a1, a2))
    except ValueError:  # shapes or dtypes that do not fit
        return as_value(False)


def _all(mask: Any) -> Any:
    return lax.reduce_and(mask, tuple(range(mask.ndim)))


public(globals())
