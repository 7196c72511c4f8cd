"""sin, cos, tan for angles of any size, and their inverses.

Builds on exponential.py for the floating-point formats. Coefficients are minimax fits, as there.
Chapter 25. In JAX: XLA calls libm for most of these, one element at a time.
"""

import functools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from minijax.primitives.infix import copysign, fma, select, sqrt

from .exponential import FLOAT32, FLOAT64, exact_sum, nearest, polynomial

# The first 1280 binary digits.
TWO_OVER_PI = Fraction(int(
    "A2F9836E4E441529FC2757D1F534DDC0DB6295993C439041FE5163ABDEBBC561B7246E3A424DD2E006492EEA"
    "09D1921CFE1DEB1CB129A73EE88235F52EBB4484E99C7026B45F7E413991D639835339F49C845F8BBDF9283B"
    "1FF897FFDE05980FEF2F118B5A0A6D1F6D367ECF27CB09B74F463F669E5FEA2D7527BAC7EBE5F17B3D0739F7"
    "8A5292EA6BFB5FB11F8D5D0856033046FC7B6BABF0CFBC209AF4361D", 16), 1 << 1280)
MODERATE = 2.0**25  # up to such angles a quarter turn is all that is taken off

# (sin(r) / r - 1) / r² and (cos(r) - 1 + r²/2) / r⁴ as polynomials in r², for |r| <= π/4.
SIN = {FLOAT32: (-0.16666655, 0.00833216, -0.0001951525),
       FLOAT64: (-0.1666666666666663, 0.008333333333322113, -0.0001984126982958488,
                 2.7557313619710236e-06, -2.5050747491768068e-08, 1.5896213962259474e-10)}
COS = {FLOAT32: (0.041666646, -0.0013887316, 2.443312e-05),
       FLOAT64: (0.041666666666666595, -0.001388888888887305, 2.480158728884656e-05,
                 -2.755731417777009e-07, 2.0875700629181264e-09, -1.1358525241173783e-11)}


@functools.cache
def _steps(dtype: np.dtype) -> list[list[float]]:
    """Floats near whole numbers of turns, from the largest down, then a quarter turn.

    Each is followed by its excess. A float64 needs the excess in parts, all but the last with so
    few digits that sums of their products with integers are exact.
    """
    largest, bits, places = (76, 34, (200,)) if dtype == FLOAT32 else (972, 24, (75, 100, 200))
    steps = [_step(Fraction(math.pi / 2), 1, places)]
    for e in range(-27, largest, bits):
        turns = Fraction(TWO_OVER_PI.numerator, 1 << 1282 - e).limit_denominator(2**53)
        steps.append(_step(turns.denominator * Fraction(2)**e, 4 * turns.numerator, places))
    return steps[::-1]


def _step(size: Fraction, quarters: int, places: tuple[int, ...]) -> list[float]:
    """A float and its excess over some quarter turns, in parts of so many binary digits."""
    excess, parts = size - quarters / TWO_OVER_PI, [float(size)]
    for place in places:
        parts.append(round(excess * 2**place) / 2**place)
        excess -= Fraction(parts[-1])
    return parts


def _reduced(x: Any, steps: Sequence[list[float]]) -> tuple[Any, Any, Any]:
    """Return n, r and a rest: |x| = n π/2 + r + rest, |r| <= π/4; n counts modulo 4.

    As Cody and Waite do: multiples of floats near whole turns are taken off one by one. That is
    exact, as both sides are multiples of one power of two, and near each other.
    """
    left = abs(x).to(FLOAT64)
    sums = [left.const(0.0)] * len(steps[0][1:])
    for size, *excess in steps:
        multiple, n = nearest(left, 1 / size)
        left = fma(multiple, -size, left)
        sums = [fma(multiple, part, total) for part, total in zip(excess, sums, strict=True)]
    n = n.to(f"i{x.dtype.itemsize}")
    high = left + sums[0]
    if x.dtype == FLOAT32:
        r = high.to(FLOAT32)
        return n, r, (high - r.to(FLOAT64)).to(FLOAT32)
    part = high - left
    low = (left - (high - part)) + (sums[0] - part) + sums[1]
    high, low = exact_sum(high, low)
    return n, *exact_sum(high, low + sums[2])


def _of_angles(finish: Callable[..., Any]) -> Callable[[Any], Any]:
    """A function of x from `finish(x, n, r, rest)`. Angles that are not moderate are a rare case;
    `parts` are the usual formula, the test for the rare case, and its formula.
    """
    usual = lambda x: finish(x, *_reduced(x, _steps(x.dtype)[-1:]))
    rare = lambda x: finish(x, *_reduced(x, _steps(x.dtype)))
    test = lambda x: abs(x) > MODERATE

    @functools.wraps(finish)
    def function(x: Any) -> Any:
        return select(test(x), rare(x), usual(x))
    vars(function).update(parts=(usual, test, rare))
    return function


def _sin_cos(r: Any, rest: Any) -> tuple[Any, Any]:
    """sin(r + rest) and cos(r + rest) for |r| <= π/4; the last operation is what rounds."""
    z = r * r
    half, lost = z * 0.5, fma(r, r, -z)
    near_one = 1.0 - half
    sine = fma(r * z, polynomial(SIN[r.dtype], z), rest) + r
    cosine = fma(z * z, polynomial(COS[r.dtype], z), (1.0 - near_one) - half)
    return sine, (cosine - fma(lost, 0.5, r * rest)) + near_one


def _sin_of(n: Any, r: Any, rest: Any) -> Any:
    """sin(n π/2 + r + rest): in every other quadrant a cosine, in the second half of the turn
    negated.
    """
    sine, cosine = _sin_cos(r, rest)
    y = select((n & 1) != 0, cosine, sine)
    return select((n & 2) != 0, -y, y)


def _odd(x: Any, y: Any) -> Any:
    """y = f(|x|) of an odd function f as f(x)."""
    sign = x.bits() & x.const(-0.0).bits()
    return (sign ^ y.bits()).bits(x.dtype)


@_of_angles
def sin(x: Any, n: Any, r: Any, rest: Any) -> Any:
    """The sine; nan at infinity."""
    return _odd(x, _sin_of(n, r, rest))


@_of_angles
def cos(_x: Any, n: Any, r: Any, rest: Any) -> Any:
    """The cosine; nan at infinity."""
    return _sin_of(n + 1, r, rest)


@_of_angles
def tan(x: Any, n: Any, r: Any, rest: Any) -> Any:
    """sin/cos, or -cos/sin in every other quadrant."""
    sine, cosine = _sin_cos(r, rest)
    turned = (n & 1) != 0
    return _odd(x, select(turned, cosine, sine) / select(turned, -sine, cosine))


# atan, asin, acos

# (atan(x) / x - 1) / x² as a polynomial in x² for |x| <= 1.
ATAN = {FLOAT32: (-0.333333, 0.19998549, -0.14264242, 0.10952187, -0.08403453, 0.05795763,
                  -0.031177875, 0.010914617, -0.0017936236),
        FLOAT64: (-0.33333333333333287, 0.19999999999990448, -0.14285714285036644,
                  0.11111111086448058, -0.09090908547270694, 0.07692299711972024,
                  -0.06666583724427946, 0.058817161635820764, -0.05259433829953184,
                  0.04744926251392186, -0.04286391252012712, 0.03821007018452706,
                  -0.03278543751892481, 0.02615167659217077, -0.018614208349987626,
                  0.011317658142574754, -0.005612392251658259, 0.0021515903594342724,
                  -0.0005928939953371928, 0.00010387203981621884, -8.654218670143439e-06)}
# The nearest float to π/2, and what it lacks.
HALF_PI = {FLOAT32: (1.5707964, -4.371139e-8), FLOAT64: (1.5707963267948966, 6.123233995736766e-17)}


def atan(x: Any) -> Any:
    """The arc tangent; beyond 1 it is π/2 less that of 1/x."""
    return copysign(_atan_of_ratio(abs(x), x.const(1.0)), x)


def _atan_of_ratio(y: Any, x: Any) -> Any:
    """atan(y / x) for y, x >= 0, not both 0 or infinite."""
    swapped = y > x
    ratio = select(swapped, x, y) / select(swapped, y, x)
    square = ratio * ratio
    angle = fma(ratio * square, polynomial(ATAN[x.dtype], square), ratio)
    high, low = HALF_PI[x.dtype]
    return select(swapped, (high - angle) + low, angle)


def atan2(y: Any, x: Any) -> Any:
    """The angle of the point (x, y), with C99's signs of zero and values at infinity."""
    a, b = abs(y), abs(x)
    # (±inf, ±inf) lies on the diagonal; (0, 0) lies on the axis that x's sign names.
    alike = a == b
    angle = _atan_of_ratio(select(alike & (a > 0.0), 1.0, a), select(alike, 1.0, b))
    high, low = HALF_PI[x.dtype]
    left = copysign(1.0, x) < 0.0
    return copysign(select(left, (2 * high - angle) + 2 * low, angle), y)


def asin(x: Any) -> Any:
    """The arc sine, the angle of (√(1 - x²), x); nan outside of [-1, 1]."""
    return copysign(_atan_of_ratio(abs(x), sqrt(fma(-x, x, 1.0))), x)


def acos(x: Any) -> Any:
    """The arc cosine, the angle of (x, √(1 - x²)); nan outside of [-1, 1]."""
    return atan2(sqrt(fma(-x, x, 1.0)), x)
