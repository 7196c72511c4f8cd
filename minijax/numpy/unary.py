"""Functions of one array, element by element: exp, sin, floor, abs, isnan, real, ….

Builds on `arguments` and `lax`.  Chapter 20, *Precision, and where NumPy differs*.
In JAX: `jax/_src/numpy/ufuncs.py`.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import core, dtypes, lax
from minijax.core import Array, alias
from minijax.numpy.arguments import (ArrayLike, Inexact, as_array, choose, convert,
                                     divided_by_constant, from_lax, like, promote_args_numeric,
                                     promote_dtypes_inexact, promoted, public, weak_if_scalar)


# ── Functions that are one primitive, in floating point ──────────────────────────────────────

_inexact = functools.partial(from_lax, note="Integers are taken as floats.",
                             prepare=lambda name, x: promoted(name, promote_dtypes_inexact, x))

exp, exp2, expm1, log, log1p, sqrt, cbrt = map(_inexact, (
    lax.exp, lax.exp2, lax.expm1, lax.log, lax.log1p, lax.sqrt, lax.cbrt))
sin, cos, tan, sinh, cosh, tanh = map(_inexact, (
    lax.sin, lax.cos, lax.tan, lax.sinh, lax.cosh, lax.tanh))
arcsin, arccos, arctan, arcsinh, arccosh, arctanh = map(
    _inexact, (lax.asin, lax.acos, lax.atan, lax.asinh, lax.acosh, lax.atanh),
    ("arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh"))
asin, acos, atan, asinh, acosh, atanh = arcsin, arccos, arctan, arcsinh, arccosh, arctanh


def fabs(x: Inexact, /) -> Array:
    """The absolute value, as a float.

    >>> float(fabs(-2))
    2.0
    """
    if x.dtype.kind == "c":
        raise TypeError("ufunc 'fabs' does not support complex dtypes")
    return lax.abs(x)


def reciprocal(x: Inexact, /) -> Array:
    """``1 / x``, as a float.

    >>> float(reciprocal(4))
    0.25
    """
    return lax.integer_pow(x, -1)


def log2(x: Inexact, /) -> Array:
    """The logarithm to the base 2.

    >>> float(log2(8))
    3.0
    """
    return _part_by_part(lambda part: divided_by_constant(part, float(np.log(2))), lax.log(x))


def log10(x: Inexact, /) -> Array:
    """The logarithm to the base 10.

    >>> float(log10(1))
    0.0
    """
    factor = 1 / float(np.log(10))
    return _part_by_part(lambda part: lax.mul(part, convert(factor, part.dtype)), lax.log(x))


def _part_by_part(f: Callable[[Any], Any], z: Any) -> Any:
    return lax.complex(f(lax.real(z)), f(lax.imag(z))) if z.dtype.kind == "c" else f(z)


def deg2rad(x: Inexact, /) -> Array:
    """Radians from degrees.

    >>> float(deg2rad(0))
    0.0
    """
    return weak_if_scalar(lax.mul(x, like(float(np.pi / 180), x)))


def rad2deg(x: Inexact, /) -> Array:
    """Degrees from radians.

    >>> float(rad2deg(0))
    0.0
    """
    return weak_if_scalar(lax.mul(x, like(float(180 / np.pi), x)))


radians, degrees = deg2rad, rad2deg


# ── Signs, squares ───────────────────────────────────────────────────────────────────────────

def absolute(x: ArrayLike, /) -> Array:
    """The absolute value; of complex numbers, the distance from zero.

    >>> absolute(np.array([-1.5, 2]))
    Array([1.5, 2. ], dtype=float32)
    """
    return x if dtypes.kind(x.dtype) in "bu" else lax.abs(x)


abs = absolute
negative, sign = map(functools.partial(from_lax, prepare=lambda name, x: [as_array(name, x)]),
                     (lax.neg, lax.sign), ("negative", "sign"))
square = from_lax(lax.square, prepare=promote_args_numeric)


def positive(x: ArrayLike, /) -> Array:
    """``+x``: the array itself.

    >>> positive(2.)
    Array(2., dtype=float32, weak_type=True)
    """
    return alias(x)


def signbit(x: ArrayLike, /) -> Array:
    """Whether the sign bit is set; true of -0.0, too.

    >>> signbit(np.array([-0.0, 0.0]))
    Array([ True, False], dtype=bool)
    """
    if dtypes.kind(x.dtype) in "bu":
        return _full_bool(x, False)
    if dtypes.kind(x.dtype) in "iu":
        return x < convert(0, x.dtype)
    if x.dtype.kind == "c":
        raise ValueError(f"jax.numpy.signbit is not well defined for {x.dtype.name}")
    return lax.bitcast_convert_type(x, np.dtype(f"int{8 * x.dtype.itemsize}")) < 0


# ── Rounding ─────────────────────────────────────────────────────────────────────────────────

def floor(x: ArrayLike, /) -> Array:
    """The largest integer that is not above x.

    >>> float(floor(-1.5))
    -2.0
    """
    return x if dtypes.kind(x.dtype) in "biu" else lax.floor(x)


def ceil(x: ArrayLike, /) -> Array:
    """The smallest integer that is not below x.

    >>> float(ceil(1.2))
    2.0
    """
    return x if dtypes.kind(x.dtype) in "biu" else lax.ceil(x)


def trunc(x: ArrayLike) -> Array:
    """The integer part: rounded towards zero.

    >>> float(trunc(-1.5))
    -1.0
    """
    if dtypes.kind(x.dtype) in "biu":
        return x
    return lax.select(lax.lt(x, like(0, x)), lax.ceil(x), lax.floor(x))


def rint(x: ArrayLike, /) -> Array:
    """The nearest integer, halves to the even one, as a float.

    >>> float(rint(2.5))
    2.0
    """
    return convert(x, dtypes.default_float_dtype()) if dtypes.kind(x.dtype) in "biu" else round(x)


def round(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """The numbers rounded to a number of decimals, halves to the even digit.

    >>> round(np.array([2.5, 3.5]))
    Array([2., 4.], dtype=float32)
    """
    decimals = operator.index(decimals)
    if dtypes.kind(a.dtype) in "biu":
        if decimals < 0:
            raise NotImplementedError("integer np.round not implemented for decimals < 0")
        return a
    if a.dtype.kind == "c":
        return lax.complex(round(lax.real(a), decimals), round(lax.imag(a), decimals))
    if decimals == 0:
        return lax.round(a, lax.RoundingMethod.TO_NEAREST_EVEN)
    wide = convert(a, np.dtype("float32")) if a.dtype.itemsize < 4 else a
    factor = float(10.0 ** decimals)
    rounded = lax.round(wide * factor, lax.RoundingMethod.TO_NEAREST_EVEN)
    return weak_if_scalar(convert(divided_by_constant(rounded, factor), a.dtype, a.weak_type))


around = round


# ── Questions about floats ───────────────────────────────────────────────────────────────────

def _is_float(x: Any) -> bool:
    return dtypes.issubdtype(x.dtype, np.floating)


def _equals_constant(x: Any, number: float) -> Any:
    return lax.eq(x, convert(number, x.dtype))


def _full_bool(x: Any, answer: bool) -> Any:
    return lax.full_like(x, answer, dtype=np.dtype(bool))


def isfinite(x: ArrayLike, /) -> Array:
    """Whether neither nan nor infinite.

    >>> isfinite(np.array([1.0, np.inf, np.nan]))
    Array([ True, False, False], dtype=bool)
    """
    if x.dtype.kind == "c":
        return lax.is_finite(lax.real(x)) & lax.is_finite(lax.imag(x))
    return lax.is_finite(x) if _is_float(x) else _full_bool(x, True)


def isinf(x: ArrayLike, /) -> Array:
    """Whether infinite, of either sign.

    >>> isinf(np.array([1.0, -np.inf, np.nan]))
    Array([False,  True, False], dtype=bool)
    """
    if x.dtype.kind == "c":
        return isinf(lax.real(x)) | isinf(lax.imag(x))
    return _equals_constant(lax.abs(x), np.inf) if _is_float(x) else _full_bool(x, False)


def isnan(x: ArrayLike, /) -> Array:
    """Whether not a number.

    >>> isnan(np.array([1.0, np.nan]))
    Array([False,  True], dtype=bool)
    """
    return x != x


def isposinf(x: ArrayLike, /, out: None = None) -> Array:
    """Whether plus infinity.

    >>> isposinf(np.array([np.inf, -np.inf]))
    Array([ True, False], dtype=bool)
    """
    return _is_infinity(x, np.inf)


def isneginf(x: ArrayLike, /, out: None = None) -> Array:
    """Whether minus infinity.

    >>> isneginf(np.array([np.inf, -np.inf]))
    Array([False,  True], dtype=bool)
    """
    return _is_infinity(x, -np.inf)


def _is_infinity(x: Array, infinity: float) -> Array:
    if x.dtype.kind == "c":
        raise ValueError("isposinf/isneginf are not well defined for complex types")
    return _equals_constant(x, infinity) if _is_float(x) else _full_bool(x, False)


def nan_to_num(x: ArrayLike, copy: bool = True, nan: ArrayLike = 0.0,
               posinf: ArrayLike | None = None, neginf: ArrayLike | None = None) -> Array:
    """The array with nan replaced by zero, and infinities by the largest finite numbers.

    >>> nan_to_num(np.array([np.nan, 1.0]))
    Array([0., 1.], dtype=float32)
    """
    if x.dtype.kind == "c":
        parts = (nan_to_num(part, copy, nan, posinf, neginf) for part in (x.real, x.imag))
        return lax.complex(*parts)
    if not _is_float(x):
        return x
    limits = dtypes.finfo(x.dtype)
    x = choose(isnan(x), like(nan, x), x)
    x = choose(isposinf(x), convert(limits.max if posinf is None else posinf, x.dtype), x)
    return choose(isneginf(x), convert(limits.min if neginf is None else neginf, x.dtype), x)


# ── Complex numbers ──────────────────────────────────────────────────────────────────────────

def real(val: ArrayLike, /) -> Array:
    """The real part.

    >>> real(1 + 2j)
    Array(1., dtype=float32, weak_type=True)
    """
    return lax.real(val) if val.dtype.kind == "c" else alias(val)


def imag(val: ArrayLike, /) -> Array:
    """The imaginary part; zero of real numbers.

    >>> imag(1 + 2j)
    Array(2., dtype=float32, weak_type=True)
    """
    return lax.imag(val) if val.dtype.kind == "c" else lax.full_like(val, 0)


def conjugate(x: ArrayLike, /) -> Array:
    """The complex conjugate.

    >>> complex(conjugate(1 + 2j))
    (1-2j)
    """
    return lax.conj(x) if x.dtype.kind == "c" else alias(x)


conj = conjugate


def angle(z: ArrayLike, deg: bool = False) -> Array:
    """The angle of a complex number, in radians (or degrees).

    >>> angle(-1.0)
    Array(3.1415927, dtype=float32)
    """
    x, y = real(z), imag(z)
    if dtypes.kind(z.dtype) in "biu" or z.ndim == 0 and z.dtype.kind != "c":
        x, y = (convert(part, dtypes.default_float_dtype()) for part in (x, y))
    result = lax.atan2(y, x)
    return rad2deg(result) if deg else result


def iscomplexobj(x: Any) -> bool:
    """Whether the dtype is complex.

    >>> iscomplexobj(1j), iscomplexobj(1.0)
    (True, False)
    """
    x = core.stood_for(x)
    if hasattr(x, "dtype"):
        return x.dtype.kind == "c"
    return any(map(iscomplexobj, x)) if isinstance(x, list | tuple) else bool(np.iscomplexobj(x))


def isrealobj(x: Any) -> bool:
    """Whether the dtype is not complex.

    >>> isrealobj(1.0)
    True
    """
    return not iscomplexobj(x)


def iscomplex(x: ArrayLike) -> Array:
    """Whether the imaginary part is not zero.

    >>> iscomplex(np.array([1 + 1j, 2]))
    Array([ True, False], dtype=bool)
    """
    part: Any = imag(x)
    return part != like(0, part)


def isreal(x: ArrayLike) -> Array:
    """Whether the imaginary part is zero.

    >>> isreal(np.array([1 + 1j, 2]))
    Array([False,  True], dtype=bool)
    """
    part: Any = imag(x)
    return weak_if_scalar(part == like(0, part))


# ── Questions about one object ───────────────────────────────────────────────────────────────────

def isscalar(element: Any) -> bool:
    """Whether x is a number, of Python or NumPy, or an array without axes.

    >>> isscalar(1.5), isscalar([1.5])
    (True, False)
    """
    element = core.stood_for(element)
    if isinstance(element, (np.ndarray, Array)):
        return element.ndim == 0
    return bool(np.isscalar(element))


def iterable(y: Any) -> bool:
    """Whether x can be looped over.

    >>> iterable(np.ones(2)), iterable(2)
    (True, False)
    """
    return bool(np.iterable(y))


public(globals())
