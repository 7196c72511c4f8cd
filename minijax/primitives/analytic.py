"""Exponentials, logarithms, powers, circular and hyperbolic functions, and the error function.

Builds on `families` and `algebra`.  Chapter 03 shows their derivatives, 25 how they are
computed.  In JAX: `jax/_src/lax/lax.py`, `jax/_src/lax/special.py`.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core import Array, Primitive, ShapedArray, dtype_name
from minijax.primitives.algebra import add, div, integer_pow, mul, neg, rsqrt, square, sub
from minijax.primitives.comparison import eq, select
from minijax.primitives.ad_util import broadcast_to, coefficient, constant, filled
from minijax.primitives.examples import points
from minijax.primitives.families import binary, by_long_formula, elementwise, of_one_shape
from minijax.primitives.infix import infix, select as infix_select, sqrt as infix_sqrt
from minijax.primitives import convert, families
from minijax.primitives.slots import (COMPLEX, FLOAT, INEXACT, INTEGER, all_weak, broadcast_shapes,
                                      check_dtypes, in_numpy, in_pairs)


unary: Callable[..., tuple[Primitive, Callable[..., Any]]] = functools.partial(
    families.unary, by_parts=True)
# NumPy's functions of float32 are up to four units off, and differ from processor to processor.
precise = functools.partial(unary, in_float64=True)


def one(x: Array) -> Array:
    return constant(1, x)


# ── Exponentials and logarithms ──────────────────────────────────────────────────────────────

exp_p, exp = precise("exp", "e to the power of x.", shows="0.0 -> 1.", accurate=True,
                     derivative=lambda t, y, x: mul(t, y))

exp2_p, exp2 = precise("exp2", "2 to the power of x.", shows="3.0 -> 8.", accurate=True,
                       derivative=lambda t, y, x: mul(log(coefficient(2, x)), mul(t, y)))

log_p, log = precise(
    "log", "The natural logarithm.", shows="1.0 -> 0.", accurate=True,
    derivative=lambda t, y, x: div(t, x),
    examples=points((.5, 2.)))


log1p_p, log1p = precise(
    "log1p", "``log(1 + x)``, exact for small x.", shows="1e-10 -> 1.e-10", accurate=True,
    derivative=lambda t, y, x: div(t, add(x, one(x))),
    examples=points((-.5, 2.)))

expm1_p, expm1 = precise("expm1", "``exp(x) - 1``, exact for small x.", shows="1e-10 -> 1.e-10",
                         accurate=True, derivative=lambda t, y, x: mul(t, add(y, one(x))))


def _logistic(x: np.ndarray) -> np.ndarray:
    """The exponents are not positive, so that nothing overflows."""
    one = x.dtype.type(1)
    return np.divide(np.exp(np.minimum(x, one - one)), one + np.exp(-np.abs(x)))


logistic_p, logistic = unary(
    "logistic", "``1 / (1 + exp(-x))``.", shows="0.0 -> 0.5", accurate=True,
    impl=_logistic,
    derivative=lambda t, y, x: mul(t, mul(y, sub(one(x), y))))


# ── Powers ───────────────────────────────────────────────────────────────────────────────────

def _pow_type(x: ShapedArray, y: ShapedArray) -> list[ShapedArray]:
    check_dtypes("pow", [x, y], [FLOAT + COMPLEX, INTEGER + FLOAT + COMPLEX], same=False)
    if not dtypes.issubdtype(y.dtype, np.integer) and x.dtype != y.dtype:
        raise TypeError("the first argument to pow must have an inexact dtype (float or complex),"
                        " and the second argument must have an inexact or integer dtype, and two "
                        "inexact dtypes must match, but got "
                        f"{dtype_name(x.dtype)} and {dtype_name(y.dtype)} respectively.")
    return [ShapedArray(broadcast_shapes("pow", [x.shape, y.shape]), x.dtype, all_weak([x, y]))]


def _pow_in_x(t: Array, z: Array, x: Array, y: Array) -> Array:
    x = convert.convert_element_type(x, x.dtype)  # strong, and so is the derivative
    integral = dtypes.issubdtype(y.dtype, np.integer)
    y = convert.convert_element_type(y, x.dtype)
    if not integral:
        return mul(t, mul(y, pow(x, sub(y, filled(1, y)))))
    none = eq(y, constant(0, y))
    exponent = select(none, filled(1, y), y)  # avoids 0 * x**-1
    slope = mul(exponent, pow(x, sub(exponent, filled(1, y))))
    none = broadcast_to(none, slope.shape)
    return mul(t, select(none, filled(0, slope), slope))


def _pow_in_y(t: Array, z: Array, x: Array, y: Array) -> Array:
    base = select(eq(x, constant(0, x)), filled(1, x), x)  # 0**y does not vary where y > 0
    return convert.convert_element_type(mul(t, mul(log(base), z)), y.dtype)


_powers = in_numpy(np.power, in_float64=True)


@np.errstate(all="ignore")
def _pow_impl(x: np.ndarray, y: np.ndarray) -> list:
    [powers] = _powers(x, y.astype(x.dtype))
    if x.dtype.kind != "f" or not np.any(y == .5):
        return [powers]
    # NumPy computes some powers of 1/2 as roots, which differ for -0 and -inf
    return [np.where((y == .5) & ((x == 0) | (x == -np.inf)), np.abs(x), powers)]


@infix
def _square_root(x: Any) -> Any:
    """x**.5, which is no root of -0 and of -inf."""
    return infix_select(x == -math.inf, math.inf, abs(infix_sqrt(x)))


def _pow_element(s: Any, x: Any, y: Any) -> Any:
    y = s.convert(y, x.dtype)
    is_root = getattr(y, "value", None) == .5  # a constant of the program
    return _square_root(s, x) if is_root else s.pow(x, y)


pow_p = elementwise(
    "pow", impl=_pow_impl,
    abstract_eval=_pow_type, complex_parts=of_one_shape(in_pairs("power")),
    by_parts=True,
    derivatives=(_pow_in_x, _pow_in_y),
    element=_pow_element,
    examples=lambda: points((.5, 2.), (-2., 2.))() + [
        e._replace(args=(e.args[0], np.array([-2, 0, 3], np.int32)))
        for e in points((.5, 2.), special=False)() if e.args[0].shape == (3,)])


def pow(x: Any, y: Any) -> Any:
    """Elementwise ``x**y``; nan for a negative x and a fractional y.

    Args:
      x: an array of a floating or complex dtype.
      y: an array of the same dtype, or of an integer one.

    >>> pow(2., 0.5)
    Array(1.4142135, dtype=float32, weak_type=True)
    """
    return pow_p.bind(x, y)


# ── Circular functions ───────────────────────────────────────────────────────────────────────
# NumPy's sine and cosine of float32 are one unit off at most; those of float64 take ten times as
# long.

sin_p, sin = unary(
    "sin", "The sine.", shows="0.0 -> 0.", accurate=True,
    impl=np.sin,
    derivative=lambda t, y, x: mul(t, cos(x)))

cos_p, cos = unary(
    "cos", "The cosine.", shows="0.0 -> 1.", accurate=True,
    impl=np.cos,
    derivative=lambda t, y, x: neg(mul(t, sin(x))))

tan_p, tan = precise(
    "tan", "The tangent.", shows="0.0 -> 0.", accurate=True,
    derivative=lambda t, y, x: mul(t, add(coefficient(1, x), square(y))),
    examples=points((-1., 1.)))

asin_p, asin = precise(
    "asin", "The angle in [-pi/2, pi/2] whose sine is x.", shows="0.0 -> 0.",
    derivative=lambda t, y, x: mul(t, rsqrt(sub(coefficient(1, x), square(x)))),
    examples=points((-.9, .9)))

acos_p, acos = precise(
    "acos", "The angle in [0, pi] whose cosine is x.", shows="1.0 -> 0.",
    derivative=lambda t, y, x: mul(t, neg(rsqrt(sub(coefficient(1, x), square(x))))),
    examples=points((-.9, .9)))

atan_p, atan = precise("atan", "The angle in [-pi/2, pi/2] whose tangent is x.", shows="0.0 -> 0.",
                       derivative=lambda t, y, x: div(t, add(coefficient(1, x), square(x))))


def _over_square(t: Array, numerator: Array, x: Array, y: Array) -> Array:
    return mul(t, div(numerator, add(square(x), square(y))))


atan2_p, atan2 = binary(
    "atan2", "The angle of the point (y, x), where x is named first.", accepts=INEXACT,
    impl=np.arctan2, by_parts=True, in_float64=True,
    derivatives=(lambda t, z, x, y: _over_square(t, y, x, y),
                 lambda t, z, x, y: _over_square(t, neg(x), x, y)),
    examples=points((-2., 2.), (.5, 2.)), shows="0.0, 1.0 -> 0.")


# ── Hyperbolic functions ─────────────────────────────────────────────────────────────────────

sinh_p, sinh = precise("sinh", "The hyperbolic sine.", shows="0.0 -> 0.",
                       derivative=lambda t, y, x: mul(t, cosh(x)))

cosh_p, cosh = precise("cosh", "The hyperbolic cosine.", shows="0.0 -> 1.",
                       derivative=lambda t, y, x: mul(t, sinh(x)))

tanh_p, tanh = precise("tanh", "The hyperbolic tangent.", shows="0.0 -> 0.", accurate=True,
                       derivative=lambda t, y, x: mul(add(t, mul(t, y)), sub(one(x), y)))

asinh_p, asinh = precise("asinh", "The number whose hyperbolic sine is x.", shows="0.0 -> 0.",
                         derivative=lambda t, y, x: mul(t, rsqrt(add(square(x), one(x)))))

acosh_p, acosh = precise(
    "acosh", "The positive number whose hyperbolic cosine is x.", shows="1.0 -> 0.",
    derivative=lambda t, y, x: mul(t, rsqrt(sub(square(x), one(x)))),
    examples=points((1.5, 3.)))

atanh_p, atanh = precise(
    "atanh", "The number whose hyperbolic tangent is x.", shows="0.0 -> 0.",
    derivative=lambda t, y, x: mul(integer_pow(add(one(x), x), -1), div(t, sub(one(x), x))),
    examples=points((-.9, .9)))


# ── The error function ───────────────────────────────────────────────────────────────────────

def _bell(t: Array, x: Array, factor: float) -> Array:
    return mul(coefficient(factor, x), mul(t, exp(neg(square(x)))))


erf_p, erf = by_long_formula("erf", "The error function.", shows="0.0 -> 0.",
                             derivative=lambda t, y, x: _bell(t, x, 2 / math.sqrt(math.pi)))

erfc_p, erfc = by_long_formula("erfc", "``1 - erf(x)``, exact for large x.", shows="0.0 -> 1.",
                               derivative=lambda t, y, x: _bell(t, x, -2 / math.sqrt(math.pi)))

erf_inv_p, erf_inv = by_long_formula(
    "erf_inv", "The number whose error function is x.", shows="0.0 -> 0.",
    derivative=lambda t, y, x: mul(coefficient(math.sqrt(math.pi) / 2, x), mul(t, exp(square(y)))),
    examples=points((-.9, .9)))
