"""Sign, absolute value, rounding, remainder, precision, and the neighbours of a float.

Builds on `algebra`.  Chapter 02, *Primitives and tracers*, shows such a block.
In JAX: `jax/_src/lax/lax.py`.
"""

import builtins
import enum
import operator
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core import Array, Example, cannot, refuse
from minijax.primitives.algebra import conj, div, is_complex, mul, neg, real
from minijax.primitives import ad_util, comparison, convert
from minijax.primitives.examples import each_with, points, points_and_integers
from minijax.primitives.families import binary, elementwise, unary
from minijax.primitives.infix import copysign, infix, round_even, select as where, trunc
from minijax.primitives.slots import (COMPLEX, FLOAT, INTEGER, NUMBER, SIGNED, in_pairs,
                                      numpy_scalars, real_dtype, wide)

# ── Sign and absolute value ──────────────────────────────────────────────────────────────────

def _size(x: Any) -> Any:
    """NumPy's absolute value, but nan for a complex number with a part that is nan."""
    size = np.abs(x)
    return np.where(np.isnan(x), np.nan, size).astype(size.dtype) if is_complex(x) else size


def _sign_of_one(x: Any) -> Any:
    if dtypes.kind(x.dtype) == "u":
        return where(x == 0, x, x.const(1))
    if dtypes.kind(x.dtype) == "i":
        return where(x == 0, x, x >> x.dtype.itemsize * 8 - 1 | 1)
    # Zeros keep their sign, nan stays nan.
    return where(builtins.abs(x) > 0, copysign(x.const(1), x), x)


sign_p, sign = unary(
    "sign", "Elementwise sign: -1, 0 or 1; zeros keep their sign.", accepts=NUMBER,
    impl=lambda x: np.copysign(np.sign(x), x) if x.dtype.kind == "f" else np.sign(x),
    may_produce_nan=False, by_parts=True, element=wide(infix(_sign_of_one)),
    examples=points_and_integers((.5, 2.)), shows="-2.5 -> -1.")


def _real_dtype_of_size(dtype: Any) -> Any:
    if dtype in dtypes.SMALL_SIGNED:  # the size of the least of them is none of them
        raise TypeError(f"abs does not accept dtype {dtype.name}. Support for narrow-width "
                        "integers is platform-dependent and limited to a few specific operations, "
                        "e.g. basic arithmetic and type casting.")
    return real_dtype(dtype)


def _abs_tangent(t: Array, z: Array, x: Array) -> Array:
    if is_complex(x):
        z = convert.convert_element_type(z, z.dtype)  # strong, and so is the derivative
        away = comparison.select(comparison.eq(z, ad_util.constant(0, z)), ad_util.filled(1, z), z)
        return div(real(mul(t, conj(x))), away)
    return comparison.select(comparison.ge(x, ad_util.constant(0, x)), t, neg(t))


abs_p, abs = unary(
    "abs", "Elementwise absolute value.", accepts=FLOAT + COMPLEX + SIGNED, shows="-2.5 -> 2.5",
    impl=_size, result=_real_dtype_of_size, may_produce_nan=False, complex_parts=in_pairs("size"),
    derivative=_abs_tangent,
    examples=lambda: [e for e in points_and_integers((.5, 2.))() if e.args[0].dtype.kind != "u"])


# ── Rounding ─────────────────────────────────────────────────────────────────────────────────

floor_p, floor = unary("floor", "The largest integer not above x.", accepts=FLOAT,
                       shows="-2.5 -> -3.", may_produce_nan=False, examples=points((.1, .9)))

ceil_p, ceil = unary("ceil", "The smallest integer not below x.", accepts=FLOAT,
                     shows="-2.5 -> -2.", may_produce_nan=False, examples=points((.1, .9)))


class RoundingMethod(enum.IntEnum):
    """How `round` rounds a number half-way between two integers."""

    AWAY_FROM_ZERO, TO_NEAREST_EVEN = range(2)


def _rounded(x: Any, rounding_method: RoundingMethod) -> Any:
    if rounding_method == RoundingMethod.TO_NEAREST_EVEN:
        return round_even(x)
    # With 0.5 itself, its predecessor would be rounded up.
    return trunc(x + copysign(x.const(np.nextafter(.5, 0, dtype=x.dtype)), x))


round_p = elementwise(
    "round",
    accepts=[FLOAT], may_produce_nan=False,
    element=wide(infix(_rounded)),
    examples=each_with(points((.1, .4)), *({"rounding_method": m} for m in RoundingMethod)))


def round(x: Any, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Any:
    """The nearest integer.

    Args:
      x: an array of a floating dtype.
      rounding_method: where halves go; by default away from zero.

    >>> round(2.5), round(2.5, RoundingMethod.TO_NEAREST_EVEN)
    (Array(3., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
    """
    return round_p.bind(x, rounding_method=RoundingMethod(rounding_method))


rem_p, rem = binary(
    "rem", "Elementwise remainder, with the sign of x; x itself where y is the integer 0.",
    accepts=INTEGER + FLOAT,
    derivatives=(lambda t, z, x, y: t,
                 lambda t, z, x, y: mul(neg(t), mul(sign(div(x, y)), floor(abs(div(x, y)))))),
    examples=points_and_integers((-2., 2.), (3.1, 4.)), shows="-7, 2 -> -1")


# ── Fewer bits ───────────────────────────────────────────────────────────────────────────────

def _reduced(x: Any, exponent_bits: int, mantissa_bits: int) -> Any:
    """The mantissa is rounded to even; an exponent out of range gives infinity, or zero."""
    if x.dtype.itemsize == 1:
        return _reduced(x.to(np.float32), exponent_bits, mantissa_bits).to(x.dtype)
    info = dtypes.finfo(x.dtype)
    bits, dropped = x.bits(), info.nmant - mantissa_bits
    if dropped > 0:
        bits = bits + ((bits >> dropped & 1) + ((1 << dropped - 1) - 1)) & -(1 << dropped)
    if exponent_bits < info.nexp:
        sign, most = bits & np.iinfo(bits.dtype).min, ((1 << info.nexp) - 1) << info.nmant
        middle, reach = (1 << info.nexp - 1) - 1, (1 << exponent_bits - 1) - 1
        exponent = bits & most
        bits = where(exponent > (middle + reach << info.nmant), sign | most,
                     where(exponent <= (middle - reach << info.nmant), sign, bits))
    return where(x != x, x if mantissa_bits else copysign(x.const(np.inf), x), bits.bits(x.dtype))


reduce_precision_p = elementwise(
    "reduce_precision", impl=lambda x, **bits: [infix(_reduced)(numpy_scalars(), x, **bits)],
    accepts=[FLOAT], may_produce_nan=False,
    element=infix(_reduced),
    jvp=ad_util.linear(0),
    transpose=ad_util.transposed(lambda ct, x, **bits: reduce_precision_p.bind(ct, **bits)),
    examples=lambda: [
        Example(e.args, {"exponent_bits": 5, "mantissa_bits": m})
        for m in (19, 40) for e in points((-2., 2.))() if e.args[0].dtype != np.float64])


def reduce_precision(operand: Any, exponent_bits: int, mantissa_bits: int) -> Array:
    """The operand rounded to fewer bits; its dtype stays.

    Args:
      operand: an array of a floating dtype.
      exponent_bits, mantissa_bits: how many bits there are for each; more than the dtype has
        change nothing.

    >>> reduce_precision(1.23456789, 5, 3)
    Array(1.25, dtype=float32, weak_type=True)

    Raises:
      ValueError: when there is no bit for the exponent, or fewer than none for the mantissa.
    """
    exponent_bits, mantissa_bits = operator.index(exponent_bits), operator.index(mantissa_bits)
    refuse((exponent_bits < 1,
            f"reduce_precision: exponent_bits must be positive; got {exponent_bits}"),
           (mantissa_bits < 0,
            f"reduce_precision: mantissa_bits must be non-negative; got {mantissa_bits}"),
           error=ValueError)
    return reduce_precision_p.bind(operand, exponent_bits=exponent_bits,
                                   mantissa_bits=mantissa_bits)


# ── Floats ───────────────────────────────────────────────────────────────────────────────────

is_finite_p, is_finite = unary(
    "is_finite", "Whether x is neither infinite nor nan.", accepts=FLOAT, shows="2.5 -> True",
    impl=np.isfinite, result=lambda d: np.dtype(bool),
    element=wide(lambda s, x: s.lt(s.abs(x), np.inf)),
    examples=points((-2., 2.)))

def _step(x: Any, y: Any) -> Any:
    """A step of one on the bits of a float read as an integer, up to the sign in order."""
    bits = x.bits()
    away = (y > x) == (x > 0)  # whether the step leads away from zero
    stepped = bits + where(away, bits.const(1), bits.const(-1))
    least = (y.bits() & np.iinfo(bits.dtype).min) | 1
    moved = where(x == 0, least, stepped).bits(x.dtype)
    return where(x != x, x, where(y != y, y, where(x == y, y, moved)))


nextafter_p = elementwise(
    "nextafter",
    impl=lambda x, y: [np.where(x == y, y, np.nextafter(x, y))],  # -0 and 0 are equal
    accepts=[FLOAT, FLOAT], may_produce_nan=False,
    jvp=cannot("it is a step function"),
    element=infix(_step),
    examples=points((-2., 2.), (3., 4.)))


def nextafter(x1: Any, x2: Any) -> Any:
    """The next float after x1 towards x2.

    Args:
      x1, x2: arrays of one floating dtype; axes of size one are broadcast.

    >>> nextafter(1.0, 2.0)
    Array(1.0000001, dtype=float32, weak_type=True)
    """
    return nextafter_p.bind(x1, x2)
