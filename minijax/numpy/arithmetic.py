"""Arithmetic of two arrays, element by element: add, remainder, power, maximum, hypot, ….

Builds on `arguments`, `unary`.  Chapters 01 and 20.
In JAX: `jax/_src/numpy/ufuncs.py`.
"""

from __future__ import annotations

import functools
import math
import operator
from typing import Any

import numpy as np

from minijax import core, dtypes, lax
from minijax.core import Array, as_value, stood_for
from minijax.custom.custom_jvp_vjp import custom_jvp
from minijax.numpy.arguments import (
    ArrayLike, Inexact, Numeric, Operand, as_array, check_arraylike, choose, convert, from_lax,
    like, promote_args, promote_args_inexact, promote_args_numeric, promote_dtypes_inexact,
    promote_dtypes_numeric, promote_shapes, promoted, public, result_dtype, selects,
    weak_if_scalar)
from minijax.numpy.unary import isinf, isnan, signbit
from minijax.primitives.algebra import masked_p


# `//` and `%` call `lax` directly, as operators must be fast.

# ── Arithmetic ───────────────────────────────────────────────────────────────────────────────

def add(x: Operand, y: Operand, /) -> Array:
    """``x + y``; of bools, ``x or y``.

    >>> int(add(2, 3))
    5
    """
    return (lax.bitwise_or if x.dtype == bool else lax.add)(x, y)


def multiply(x: Any, y: Any, /) -> Array:
    """``x * y``; of bools, ``x and y``. Of a number and False it is 0, even if the number is nan.

    >>> int(multiply(2, 3))
    6
    """
    a, b = promote_args("multiply", x, y)
    if a.dtype == bool:
        return lax.bitwise_and(a, b)
    for mask, number in (x, b), (y, a):
        if selects(mask, number):
            return masked_p.bind(number, as_value(mask))
    return lax.mul(a, b)


def divide(x1: Inexact, x2: Inexact, /) -> Array:
    """``x / y``, as floats.

    >>> float(divide(3, 2))
    1.5
    """
    return lax.div(x1, x2)


true_divide = divide


def fmax(x1: Operand, x2: Operand) -> Array:
    """The larger of two; where one is nan, the other.

    >>> float(fmax(np.nan, 3.))
    3.0
    """
    return choose((x1 > x2) | isnan(x2), x1, x2)


def fmin(x1: Operand, x2: Operand) -> Array:
    """The smaller of two; where one is nan, the other.

    >>> float(fmin(np.nan, 3.))
    3.0
    """
    return choose((x1 < x2) | isnan(x2), x1, x2)


subtract, maximum, minimum = map(functools.partial(from_lax, prepare=promote_args),
                                 (lax.sub, lax.max, lax.min), ("subtract", "maximum", "minimum"))
nextafter, float_power = map(functools.partial(from_lax, prepare=promote_args_inexact),
                             (lax.nextafter, lax.pow), ("nextafter", "float_power"))


def arctan2(x1: Inexact, x2: Inexact, /) -> Array:
    """The angle of the point (x, y), whose y is the first argument.

    >>> round(float(arctan2(1., 1.)), 4)
    0.7854
    """
    return lax.atan2(x1, x2)


atan2 = arctan2


def fmod(x1: Operand, x2: Operand, /) -> Array:
    """The remainder of x / y, with the sign of x.

    >>> float(fmod(-5., 3.))
    -2.0
    """
    x2 = choose(x2 == 0, 1, x2) if dtypes.kind(x1.dtype) in "iu" else x2
    return lax.rem(*promote_dtypes_numeric(x1, x2))


def clip(arr: ArrayLike | None = None, /, min: ArrayLike | None = None,
         max: ArrayLike | None = None) -> Array:
    """The numbers, kept within limits; None stands for no limit.

    >>> clip(np.array([-1, 0, 5]), 0, 3)
    Array([0, 0, 3], dtype=int32)
    """
    if arr is None:
        raise ValueError("No input was provided to the clip function.")
    check_arraylike("clip", *(x for x in (arr, min, max) if x is not None))
    arr, min, max = map(stood_for, (arr, min, max))
    if any(x is not None and dtypes.dtype(x).kind == "c" for x in (arr, min, max)):
        raise ValueError("Clip received a complex value either through the input or the min/max "
                         "keywords. Complex values have no ordering and cannot be clipped. "
                         "Please convert to a real value or array by taking the real or "
                         "imaginary components via jax.numpy.real/imag respectively.")
    if min is not None:
        arr = lax.max(*promote_args("clip", min, arr))
    return as_array("clip", arr) if max is None else lax.min(*promote_args("clip", max, arr))


def floor_divide(x1: Numeric, x2: Numeric, /) -> Array:
    """``x // y``: the quotient, rounded down.

    >>> floor_divide(np.array([7, -7]), 2)
    Array([ 3, -4], dtype=int32)
    """
    if x1.dtype.kind == "c":
        raise TypeError("floor_divide does not support complex-valued inputs")
    if dtypes.kind(x1.dtype) == "u":
        return lax.div(x1, x2)
    if dtypes.kind(x1.dtype) in "iu":
        quotient = lax.div(x1, x2)
        inexact = lax.ne(lax.rem(x1, x2), like(0, x1))
        lower = lax.bitwise_and(lax.ne(lax.sign(x1), lax.sign(x2)), inexact)
        return choose(lower, quotient - 1, quotient)
    return _float_divmod(x1, x2)[0]


def _float_divmod(x: Any, y: Any) -> tuple[Any, Any]:
    """The floored quotient and the remainder, both exact, by `rem`."""
    rest = lax.rem(x, y)
    # x / 0 must stay infinite, where (x - rest) / 0 would be nan
    quotient = choose(y == 0, x, x - rest) / y
    wrong_sign = (rest != 0) & (lax.sign(y) != lax.sign(rest))
    rest = choose(wrong_sign, rest + y, rest)
    quotient = choose(wrong_sign, quotient - 1, quotient)
    return lax.round(quotient), rest


def remainder(x1: Numeric, x2: Numeric, /) -> Array:
    """``x % y``: the remainder of the division, with the sign of y.

    >>> remainder(np.array([7, -7]), 4)
    Array([3, 1], dtype=int32)
    """
    x2 = choose(x2 == 0, 1, x2) if dtypes.kind(x1.dtype) in "iu" else x2
    rest, zero = lax.rem(x1, x2), like(0, x1)
    wrong_sign = lax.bitwise_and(lax.ne(lax.lt(rest, zero), lax.lt(x2, zero)), lax.ne(rest, zero))
    return choose(wrong_sign, rest + x2, rest)


mod = remainder


def divmod(x1: Numeric, x2: Numeric, /) -> tuple[Array, Array]:
    """``(x // y, x % y)``.

    >>> [int(part) for part in divmod(7, 4)]
    [1, 3]
    """
    if dtypes.kind(x1.dtype) in "iu":
        return floor_divide(x1, x2), remainder(x1, x2)
    return _float_divmod(x1, x2)


# ── Powers and logarithms ────────────────────────────────────────────────────────────────────

def power(x1: Any, x2: Any, /) -> Array:
    """``x ** y``; a static integer exponent becomes repeated multiplication.

    >>> power(np.array([1.5, 2]), 2)
    Array([2.25, 4.  ], dtype=float32)

    Raises:
      TypeError: for an integer to a negative power.
    """
    check_arraylike("power", x1, x2)
    x1, x2 = map(stood_for, (x1, x2))
    exponent = _known_integer(x2)
    if exponent is not None:
        [base] = promote_dtypes_numeric(x1)
        return lax.integer_pow(base, exponent)
    x, y = promote_shapes("power", as_value(x1), as_value(x2))
    if dtypes.kind(y.dtype) in "biu" and dtypes.issubdtype(x.dtype, np.inexact):
        # an integer exponent is not converted, so that the derivative by x is correct at x = 0
        dtype, weak = result_dtype(x, y)
        if dtype == x.dtype:
            y = convert(y, np.dtype("int32")) if y.dtype == bool else y
            return lax.pow(convert(x, dtype, weak), y)
    x, y = promote_args_numeric("power", x, y)
    return (_integer_power if dtypes.kind(x.dtype) in "iu" else lax.pow)(x, y)


def _known_integer(x: Any) -> int | None:
    if np.ndim(x) or not core.is_concrete(x) or isinstance(x, (bool, np.bool_)):
        return None
    try:
        return operator.index(x)
    except TypeError:
        return None


def _integer_power(x: Any, y: Any) -> Any:
    """Powers of integers by repeated squaring."""
    # as in JAX, 0 to the power of anything but 0 is 0, even of negative numbers
    result: Any = choose((x == 0) & (y != 0), like(0, x), like(1, x))
    for _ in range(6):
        result = choose(y & 1, result * x, result)
        x = x * x
        y = lax.shift_right_logical(y, like(1, y))
    return weak_if_scalar(result)


pow = power


def logaddexp(x1: Inexact, x2: Inexact, /) -> Array:
    """``log(exp(x) + exp(y))``, without overflow.

    >>> round(float(logaddexp(1000., 1000.)), 3)
    1000.693
    """
    return _logaddexp(x1, x2)


@custom_jvp
def _logaddexp(x: Any, y: Any) -> Any:
    difference = x - y
    far = difference != difference  # for equal infinities, and nan
    if x.dtype.kind != "c":
        size = lax.abs(difference)
        near = lax.max(x, y) + lax.log1p(lax.exp(-size))
        return lax.select(far, x + y, near)
    size = choose(lax.real(difference) < 0, -difference, difference)
    near = choose(lax.real(x) >= lax.real(y), x, y) + lax.log1p(lax.exp(-size))
    z = choose(far, x + y, near)
    angle = lax.imag(z)  # reduced to between -pi and pi
    turns = lax.floor((angle + np.pi) / (2 * np.pi))
    return lax.complex(lax.real(z), angle - turns * (2 * np.pi))


@_logaddexp.defjvp
def _logaddexp_jvp(primals: tuple, tangents: tuple) -> tuple:
    out = _logaddexp(*primals)
    finite = _without_infinity(out)
    x, y = (t * lax.exp(_without_infinity(x) - finite)
            for x, t in zip(primals, tangents, strict=True))
    return out, x + y


def _without_infinity(x: Any) -> Any:
    return choose(x == np.inf, 0, x)


def logaddexp2(x1: Inexact, x2: Inexact, /) -> Array:
    """``log2(2 ** x + 2 ** y)``, without overflow.

    >>> float(logaddexp2(3., 3.))
    4.0
    """
    log_of_2 = _filled(float(np.log(2)), x1 if x1.ndim else x2)
    return logaddexp(x1 * log_of_2, x2 * log_of_2) / log_of_2


def _filled(value: Any, x: Any) -> Any:
    """A constant of the dtype of x, weakly typed only if x is a scalar, as of `full_like`."""
    return convert(value, x.dtype, x.weak_type and x.ndim == 0)


def hypot(x1: Inexact, x2: Inexact, /) -> Array:
    """``sqrt(x * x + y * y)``, without overflow.

    >>> float(hypot(3, 4))
    5.0
    """
    if x1.dtype.kind == "c":
        raise ValueError("jnp.hypot is not well defined for complex-valued inputs. "
                         "Please convert to real values first, such as by using abs(x)")
    x, y = lax.abs(x1), lax.abs(x2)
    longer, shorter = lax.max(x, y), lax.min(x, y)
    zero, one = _filled(0, longer), _filled(1, longer)
    ratio = lax.div(shorter, choose(longer == zero, one, longer))
    length = longer * lax.sqrt(one + lax.square(ratio))
    length = choose(longer == zero, longer, length)
    return choose(isinf(x) | isinf(y), _filled(np.inf, longer), length)


def copysign(x1: Inexact, x2: Inexact, /) -> Array:
    """The magnitude of x with the sign of y.

    >>> float(copysign(2., -0.))
    -2.0
    """
    if x1.dtype.kind == "c":
        raise TypeError("copysign does not support complex-valued inputs")
    return choose(signbit(x2), -lax.abs(x1), lax.abs(x1))


def heaviside(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The step function: 0 below zero, 1 above, and y at zero.

    >>> [float(heaviside(x, 0.5)) for x in (-1., 0., 1.)]
    [0.0, 0.5, 1.0]
    """
    x1, x2 = promoted("heaviside", promote_dtypes_inexact, x1, x2)
    at_zero = choose(isnan(x1), x1, x2)
    zero, one = _filled(0, x1), _filled(1, x1)
    return choose(lax.lt(x1, zero), zero, choose(lax.gt(x1, zero), one, at_zero))


def ldexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """``x * 2 ** n``.

    >>> float(ldexp(1.5, 3))
    12.0
    """
    if x1.dtype.kind == "c" or dtypes.issubdtype(x2.dtype, np.inexact):
        raise ValueError(f"ldexp not supported for input types {(x1.dtype, x2.dtype)}")
    [x] = promote_dtypes_inexact(x1)
    short = x.dtype.itemsize == 2
    wide, n = promote_shapes("ldexp", convert(x, np.dtype(np.float32)) if short else x,
                             _within_32_bits(x2))
    limits = dtypes.finfo(wide.dtype)
    least, most = int(limits.minexp), int(limits.maxexp) - 1
    # In steps with finite factors; a step down is so long that the last one is exact.
    for _ in range(2):
        step = choose(n < least, least + int(limits.nmant) + 1, lax.min(n, like(most, n)))
        wide, n = wide * lax.pow(like(2, wide), step), n - step
    last = lax.clamp(like(least, n), n, like(most, n))
    return convert(wide * lax.pow(like(2, wide), last), x.dtype)


def _within_32_bits(n: Any) -> Any:
    """An exponent as int32, clamped to limits far beyond those of floats."""
    if n.dtype.itemsize >= 4:
        far = 1 << 24
        n = lax.clamp(like(0 if dtypes.kind(n.dtype) == "u" else -far, n), n, like(far, n))
    return convert(n, np.dtype(np.int32))


def sinc(x: Inexact, /) -> Array:
    """``sin(pi x) / (pi x)``, and 1 at zero.

    >>> float(sinc(0.))
    1.0
    """
    angle = float(np.pi) * x
    near_zero = lax.abs(angle) < 0.1
    safe = choose(near_zero, 1, angle)
    # the series near zero, so that all derivatives are correct there
    series: Any = like(0, angle)
    for n in (11, 9, 7, 5, 3, 1):
        series = like((-1) ** (n // 2) / math.factorial(n), angle) + lax.square(angle) * series
    return weak_if_scalar(choose(near_zero, series, lax.sin(safe) / safe))


public(globals())
