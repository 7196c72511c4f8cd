"""Numbers as their bits and divisors: frexp, modf, spacing, gcd, lcm, bitwise_count, packbits, ….

Builds on `arithmetic`.  Chapter 20, *Precision, and where NumPy differs*.
In JAX: `jax/_src/numpy/ufuncs.py`, `lax_numpy.py`.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from minijax import dtypes, lax
from minijax.core import Array
from minijax.transforms.jit import jit
from minijax.numpy import arithmetic, joining, reductions, shaping, unary
from minijax.numpy.arguments import (AXIS_INDEX_ERROR, ArrayLike, Inexact, Operand, array_and_axis,
                                     broadcast_arrays_to_one_shape, check_axis_index, choose,
                                     convert, like, public, weak_if_scalar)


# ── The parts of a number ────────────────────────────────────────────────────────────────────

def frexp(x: Inexact, /) -> tuple[Array, Array]:
    """The mantissa, at least 0.5 and below 1, and the exponent of the power of two.

    >>> [float(part) for part in frexp(6.)]
    [0.75, 3.0]
    """
    if dtypes.issubdtype(x.dtype, np.complexfloating):
        raise TypeError("frexp does not support complex-valued inputs")
    x = convert(x, x.dtype)
    power, is_plain = _exponent(x), unary.isfinite(x) & (x != 0)
    # in two steps, as the power itself may overflow
    half = power // 2
    scaled = x * _power_of_two(-half, x) * _power_of_two(half - power, x)
    return choose(is_plain, scaled, x), choose(is_plain, power, 0)


def _exponent(x: Any) -> Any:
    """The exponent of `frexp`, from the bits; subnormal numbers are scaled up first."""
    info = ml_dtypes.finfo(x.dtype)
    small = lax.abs(x) < convert(info.smallest_normal, x.dtype)
    x = lax.stop_gradient(choose(small, x * convert(2.0 ** info.nmant, x.dtype), x))
    bits = lax.bitcast_convert_type(x, np.dtype(f"int{info.bits}"))
    exponents: Any = (convert(bits, np.dtype("int64" if info.bits == 64 else "int32"))
                      >> info.nmant) & (2 ** info.nexp - 1)
    return convert(exponents + (info.minexp - choose(small, info.nmant, 0)), np.dtype("int32"))


def _power_of_two(power: Any, x: Any) -> Any:
    """2 ** power in the dtype of `x`, from its bits; it must be a normal number."""
    info = ml_dtypes.finfo(x.dtype)
    bits = convert(power + (1 - info.minexp), np.dtype(f"int{info.bits}"))
    return lax.bitcast_convert_type(bits << info.nmant, x.dtype)


def modf(x: Inexact, /, out: None = None) -> tuple[Array, Array]:
    """The fractional and the integral part, both with the sign of the number.

    >>> [float(part) for part in modf(2.75)]
    [0.75, 2.0]
    """
    whole = convert(choose(x >= 0, lax.floor(x), lax.ceil(x)), x.dtype, x.weak_type)
    return x - whole, whole


def spacing(x: Inexact, /) -> Array:
    """The distance from a number to the next one of its dtype, away from zero.

    >>> float(spacing(1.)) == 2.0 ** -23
    True
    """
    if dtypes.issubdtype(x.dtype, np.complexfloating):
        raise ValueError("jnp.spacing is not defined for complex inputs.")
    far: Any = like(np.inf, x)
    if x.dtype != np.float16:  # as in NumPy, which there takes the next larger number
        far = arithmetic.copysign(far, x)
    return convert(lax.nextafter(x, far) - x, x.dtype)


# ── Divisors ─────────────────────────────────────────────────────────────────────────────────

def gcd(x1: Operand, x2: Operand) -> Array:
    """The greatest common divisor.

    >>> int(gcd(12, 18))
    6
    """
    _check_integers("gcd", x1)
    divisor = _euclid(*broadcast_arrays_to_one_shape(unary.abs(x1), unary.abs(x2)))
    return weak_if_scalar(convert(divisor, x1.dtype, x1.weak_type and x2.weak_type))


@jit(inline=True)
def _euclid(x: Array, y: Array) -> Array:
    def step(pair: Any) -> Any:
        x, y = pair
        return choose(y != 0, y, x), choose(y != 0, lax.rem(x, choose(y != 0, y, 1)), 0)
    return lax.while_loop(lambda pair: reductions.any(pair[1] != 0), step, (x, y))[0]


def lcm(x1: Operand, x2: Operand) -> Array:
    """The least common multiple; 0 where one is 0.

    >>> int(lcm(4, 6))
    12
    """
    _check_integers("lcm", x1)
    x, y = unary.abs(x1), unary.abs(x2)
    divisor: Any = gcd(x, y)
    multiple = choose(divisor == 0, 0, x * lax.div(*broadcast_arrays_to_one_shape(
        y, choose(divisor == 0, 1, divisor))))
    return weak_if_scalar(convert(multiple, x1.dtype, x1.weak_type and x2.weak_type))


def _check_integers(name: str, x: Any) -> None:
    if dtypes.kind(x.dtype) not in "iu":
        raise ValueError(f"Arguments to jax.numpy.{name} must be integers.")


# ── Bits ─────────────────────────────────────────────────────────────────────────────────────

def bitwise_count(x: ArrayLike, /) -> Array:
    """How many bits of the absolute value are set.

    >>> bitwise_count(np.array([-3, 7]))
    Array([2, 3], dtype=uint8)
    """
    count = x if x.dtype.kind == "b" else lax.population_count(unary.abs(x))
    return convert(count, np.dtype("uint8"))


def _bit_shifts(bitorder: str) -> np.ndarray:
    if bitorder not in ("big", "little"):
        raise ValueError("'order' must be either 'little' or 'big'")
    return np.arange(8, dtype=np.uint8)[::-1 if bitorder == "big" else 1]


def packbits(a: ArrayLike, axis: int | None = None, bitorder: str = "big") -> Array:
    """Bools packed into bytes, the first in the highest bit unless the order is "little".

    >>> packbits(np.array([1, 0, 1]))
    Array([160], dtype=uint8)
    """
    if dtypes.kind(a.dtype) not in "biu":
        raise TypeError("Expected an input array of integer or boolean data type")
    shifts = _bit_shifts(bitorder)
    check_axis_index(axis, ndim=a.ndim, message=AXIS_INDEX_ERROR)
    x, axis = array_and_axis("packbits", a, axis)
    bits: Any = convert(shaping.moveaxis(x, axis, -1) != 0, np.dtype("uint8"))
    bits = joining.pad(bits, [(0, 0)] * (bits.ndim - 1) + [(0, -bits.shape[-1] % 8)])
    bits = lax.reshape(bits, (*bits.shape[:-1], bits.shape[-1] // 8, 8))
    return shaping.moveaxis(reductions.sum(bits << shifts, -1, np.dtype("uint8")), -1, axis)


def unpackbits(a: ArrayLike, axis: int | None = None, count: int | None = None,
               bitorder: str = "big") -> Array:
    """The bits of bytes, 0 and 1.

    >>> unpackbits(np.uint8([160]), count=3)
    Array([1, 0, 1], dtype=uint8)

    Args:
      count: the number of bits, padded with zeros; a negative count drops bits at the end.
    """
    if a.dtype != np.uint8:
        raise TypeError("Expected an input array of unsigned byte data type")
    shifts = _bit_shifts(bitorder)
    check_axis_index(axis, ndim=a.ndim, message=AXIS_INDEX_ERROR)
    x, axis = array_and_axis("unpackbits", a, axis)
    bits: Any = (shaping.moveaxis(x, axis, -1)[..., None] >> shifts) & 1
    bits = lax.reshape(bits, (*bits.shape[:-2], bits.shape[-2] * 8))
    if count is not None:
        missing = max(count - bits.shape[-1], 0)
        bits = joining.pad(bits[..., :count], [(0, 0)] * (bits.ndim - 1) + [(0, missing)])
    return shaping.moveaxis(bits, -1, axis)


public(globals())
