"""Exponentials, logarithms, circular and hyperbolic functions, and the error function.

Stands on `families` and `elementwise`.  Chapter 03 shows their derivatives, 25 how they are
computed.  In JAX: `jax/_src/lax/lax.py`, `jax/_src/lax/special.py`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minijax.core import Array
from minijax.primitives.elementwise import (add, div, integer_pow, mul, neg, rsqrt, square, sub)
from minijax.primitives.families import (FLOAT, INEXACT, binary, constant, elementary, in_numpy,
                                         numpy_scalars, points, unary)


def one(x: Array) -> Array:
    return constant(1, x)


# ── Exponentials and logarithms ──────────────────────────────────────────────────────────────

exp_p, exp = unary(
    "exp", "e to the power of x.",
    impl=np.exp,
    derivative=lambda t, y, x: mul(t, y),
    element=elementary("exp"),
    examples=points((-2., 2.)),
    shows="0.0 -> Array(1., dtype=float32, weak_type=True)")

exp2_p, exp2 = unary(
    "exp2", "2 to the power of x.",
    impl=np.exp2,
    derivative=lambda t, y, x: mul(log(constant(2, x)), mul(t, y)),
    element=elementary("exp2"),
    examples=points((-2., 2.)),
    shows="3.0 -> Array(8., dtype=float32, weak_type=True)")

log_p, log = unary(
    "log", "The natural logarithm.",
    impl=np.log,
    derivative=lambda t, y, x: div(t, x),
    element=elementary("log"),
    examples=points((.5, 2.)),
    shows="1.0 -> Array(0., dtype=float32, weak_type=True)")

log1p_p, log1p = unary(
    "log1p", "``log(1 + x)``, exact for small x.",
    impl=np.log1p,
    derivative=lambda t, y, x: div(t, add(x, one(x))),
    element=elementary("log1p"),
    examples=points((-.5, 2.)),
    shows="1e-10 -> Array(1.e-10, dtype=float32, weak_type=True)")

expm1_p, expm1 = unary(
    "expm1", "``exp(x) - 1``, exact for small x.",
    impl=np.expm1,
    derivative=lambda t, y, x: mul(t, add(y, one(x))),
    element=elementary("expm1"),
    examples=points((-2., 2.)),
    shows="1e-10 -> Array(1.e-10, dtype=float32, weak_type=True)")


def _logistic(x: np.ndarray) -> np.ndarray:
    """With exponentials of what is negative, which do not overflow."""
    one = x.dtype.type(1)
    if x.dtype.kind == "c":
        return np.divide(one, one + np.exp(-x))
    return np.divide(np.exp(np.minimum(x, one - one)), one + np.exp(-np.abs(x)))


logistic_p, logistic = unary(
    "logistic", "``1 / (1 + exp(-x))``.",
    impl=_logistic,
    derivative=lambda t, y, x: mul(t, mul(y, sub(one(x), y))),
    element=elementary("logistic"),
    examples=points((-2., 2.)),
    shows="0.0 -> Array(0.5, dtype=float32, weak_type=True)")


# ── Circular functions ───────────────────────────────────────────────────────────────────────

sin_p, sin = unary(
    "sin", "The sine.",
    impl=np.sin,
    derivative=lambda t, y, x: mul(t, cos(x)),
    element=elementary("sin"),
    examples=points((-2., 2.)),
    shows="0.0 -> Array(0., dtype=float32, weak_type=True)")

cos_p, cos = unary(
    "cos", "The cosine.",
    impl=np.cos,
    derivative=lambda t, y, x: neg(mul(t, sin(x))),
    element=elementary("cos"),
    examples=points((-2., 2.)),
    shows="0.0 -> Array(1., dtype=float32, weak_type=True)")

tan_p, tan = unary(
    "tan", "The tangent.",
    impl=np.tan,
    derivative=lambda t, y, x: mul(t, add(one(x), square(y))),
    element=elementary("tan"),
    examples=points((-1., 1.)),
    shows="0.0 -> Array(0., dtype=float32, weak_type=True)")

asin_p, asin = unary(
    "asin", "The angle in [-pi/2, pi/2] whose sine is x.",
    impl=np.arcsin,
    derivative=lambda t, y, x: mul(t, rsqrt(sub(one(x), square(x)))),
    element=elementary("asin"),
    examples=points((-.9, .9)),
    shows="0.0 -> Array(0., dtype=float32, weak_type=True)")

acos_p, acos = unary(
    "acos", "The angle in [0, pi] whose cosine is x.",
    impl=np.arccos,
    derivative=lambda t, y, x: mul(t, neg(rsqrt(sub(one(x), square(x))))),
    element=elementary("acos"),
    examples=points((-.9, .9)),
    shows="1.0 -> Array(0., dtype=float32, weak_type=True)")

atan_p, atan = unary(
    "atan", "The angle in [-pi/2, pi/2] whose tangent is x.",
    impl=np.arctan,
    derivative=lambda t, y, x: div(t, add(one(x), square(x))),
    element=elementary("atan"),
    examples=points((-2., 2.)),
    shows="0.0 -> Array(0., dtype=float32, weak_type=True)")


def _over_square(t: Array, numerator: Array, x: Array, y: Array) -> Array:
    return mul(t, div(numerator, add(square(x), square(y))))


def _angle(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """NumPy's, and for complex numbers the formula that it comes from."""
    if x.dtype.kind != "c":
        return np.arctan2(x, y)
    return -1j * np.log((y + 1j * x) / np.sqrt(x * x + y * y))


atan2_p, atan2 = binary(
    "atan2", "The angle of the point (y, x), where x is named first.", accepts=INEXACT,
    impl=in_numpy(_angle),
    derivatives=(lambda t, z, x, y: _over_square(t, y, x, y),
                 lambda t, z, x, y: _over_square(t, neg(x), x, y)),
    element=elementary("atan2"),
    examples=points((-2., 2.), (.5, 2.)),
    shows="0.0, 1.0 -> Array(0., dtype=float32, weak_type=True)")


# ── Hyperbolic functions ─────────────────────────────────────────────────────────────────────

sinh_p, sinh = unary(
    "sinh", "The hyperbolic sine.",
    impl=np.sinh,
    derivative=lambda t, y, x: mul(t, cosh(x)),
    element=elementary("sinh"),
    examples=points((-2., 2.)),
    shows="0.0 -> Array(0., dtype=float32, weak_type=True)")

cosh_p, cosh = unary(
    "cosh", "The hyperbolic cosine.",
    impl=np.cosh,
    derivative=lambda t, y, x: mul(t, sinh(x)),
    element=elementary("cosh"),
    examples=points((-2., 2.)),
    shows="0.0 -> Array(1., dtype=float32, weak_type=True)")

tanh_p, tanh = unary(
    "tanh", "The hyperbolic tangent.",
    impl=np.tanh,
    derivative=lambda t, y, x: mul(add(t, mul(t, y)), sub(one(x), y)),
    element=elementary("tanh"),
    examples=points((-2., 2.)),
    shows="0.0 -> Array(0., dtype=float32, weak_type=True)")

asinh_p, asinh = unary(
    "asinh", "The number whose hyperbolic sine is x.",
    impl=np.arcsinh,
    derivative=lambda t, y, x: mul(t, rsqrt(add(square(x), one(x)))),
    element=elementary("asinh"),
    examples=points((-2., 2.)),
    shows="0.0 -> Array(0., dtype=float32, weak_type=True)")

acosh_p, acosh = unary(
    "acosh", "The positive number whose hyperbolic cosine is x.",
    impl=np.arccosh,
    derivative=lambda t, y, x: mul(t, rsqrt(sub(square(x), one(x)))),
    element=elementary("acosh"),
    examples=points((1.5, 3.)),
    shows="1.0 -> Array(0., dtype=float32, weak_type=True)")

atanh_p, atanh = unary(
    "atanh", "The number whose hyperbolic tangent is x.",
    impl=np.arctanh,
    derivative=lambda t, y, x: mul(integer_pow(add(one(x), x), -1), div(t, sub(one(x), x))),
    element=elementary("atanh"),
    examples=points((-.9, .9)),
    shows="0.0 -> Array(0., dtype=float32, weak_type=True)")


# ── The error function ───────────────────────────────────────────────────────────────────────

def _bell(t: Array, x: Array, factor: float) -> Array:
    return mul(constant(factor, x), mul(t, exp(neg(square(x)))))


def _over_arrays(name: str) -> Any:
    """NumPy has none: the formula, over whole arrays."""
    return lambda x: elementary(name)(numpy_scalars(), x)


erf_p, erf = unary(
    "erf", "The error function.", accepts=FLOAT,
    impl=_over_arrays("erf"),
    derivative=lambda t, y, x: _bell(t, x, 2 / math.sqrt(math.pi)),
    element=elementary("erf"),
    examples=points((-2., 2.)),
    shows="0.0 -> Array(0., dtype=float32, weak_type=True)")

erfc_p, erfc = unary(
    "erfc", "``1 - erf(x)``, exact for large x.", accepts=FLOAT,
    impl=_over_arrays("erfc"),
    derivative=lambda t, y, x: _bell(t, x, -2 / math.sqrt(math.pi)),
    element=elementary("erfc"),
    examples=points((-2., 2.)),
    shows="0.0 -> Array(1., dtype=float32, weak_type=True)")

erf_inv_p, erf_inv = unary(
    "erf_inv", "The number whose error function is x.", accepts=FLOAT,
    impl=_over_arrays("erf_inv"),
    derivative=lambda t, y, x: mul(constant(math.sqrt(math.pi) / 2, x), mul(t, exp(square(y)))),
    element=elementary("erf_inv"),
    examples=points((-.9, .9)),
    shows="0.0 -> Array(0., dtype=float32, weak_type=True)")
