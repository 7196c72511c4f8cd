"""sin, cos, tan for angles of any size, and their inverses.

Stands on exponential.py for the floating-point formats. Coefficients are minimax fits, as there.
Chapter 25. In JAX: XLA calls libm for most of these, one element at a time.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.primitives.infix import copysign, fma, select, shr_logical, sqrt

from .exponential import FLOAT32, FLOAT64, FORMATS, INF, NAN, exact_product, nearest, polynomial

# The binary digits of 2/π in words of 32 bits (Payne and Hanek, 1983).
TWO_OVER_PI = (
    0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041, 0xFE5163AB, 0xDEBBC561,
    0xB7246E3A, 0x424DD2E0, 0x06492EEA, 0x09D1921C, 0xFE1DEB1C, 0xB129A73E, 0xE88235F5, 0x2EBB4484,
    0xE99C7026, 0xB45F7E41, 0x3991D639, 0x835339F4, 0x9C845F8B, 0xBDF9283B, 0x1FF897FF, 0xDE05980F,
    0xEF2F118B, 0x5A0A6D1F, 0x6D367ECF, 0x27CB09B7, 0x4F463F66, 0x9E5FEA2D, 0x7527BAC7, 0xEBE5F17B,
    0x3D0739F7, 0x8A5292EA, 0x6BFB5FB1, 0x1F8D5D08, 0x56033046, 0xFC7B6BAB, 0xF0CFBC20, 0x9AF4361D,
)
# π/2 as a sum of three float64.
HALF_PI_DIGITS = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33)
MODERATE = 2.0**25  # up to such angles these are enough
WORD, LONG = np.dtype(np.uint32), np.dtype(np.uint64)
LOW = 0xFFFFFFFF

# (sin(r) / r - 1) / r² and (cos(r) - 1 + r²/2) / r⁴ as polynomials in r², for |r| <= π/4.
SIN = {
    FLOAT32: (-0.16666655, 0.00833216, -0.0001951525),
    FLOAT64: (-0.1666666666666663, 0.008333333333322113, -0.0001984126982958488,
              2.7557313619710236e-06, -2.5050747491768068e-08, 1.5896213962259474e-10),
}
COS = {
    FLOAT32: (0.041666646, -0.0013887316, 2.443312e-05),
    FLOAT64: (0.041666666666666595, -0.001388888888887305, 2.480158728884656e-05,
              -2.755731417777009e-07, 2.0875700629181264e-09, -1.1358525241173783e-11),
}


def _digits_from(position: Any, words: Sequence[int], count: int) -> list[Any]:
    """`count` words of a long binary number, starting at a bit position (an int64 scalar).

    A load would need a table in memory. Selecting among constants, one bit of the word's number
    at a time from the highest on, needs about two selects for each word there is.
    """
    number = shr_logical(position, 5)
    shift = (position & 31).to(LONG)
    current: list[Any] = [position.const(word, WORD) for word in words]
    for bit in reversed(range((len(words) - count - 1).bit_length())):
        taken = (number & (1 << bit)) != 0
        size = min(len(current), count + 1 + (1 << bit) - 1)
        padded = current + [position.const(0, WORD)] * (1 << bit)
        current = [select(taken, padded[i + (1 << bit)], padded[i]) for i in range(size)]
    longs = [word.to(LONG) for word in current[:count + 1]]
    low_half = shift.const(32) - shift
    pairs = zip(longs[:-1], longs[1:], strict=True)
    return [shr_logical((a << 32) | b, low_half) & LOW for a, b in pairs]


def _product_digits(x: Sequence[Any], y: Sequence[Any]) -> list[Any]:
    """The low len(y) digits of a product of numbers in base 2³²; lowest digit first."""
    digits = []
    carry = x[0].const(0)
    products = {(i, j): a * b for i, a in enumerate(x) for j, b in enumerate(y)}
    for column in range(len(y)):
        for (i, j), product in products.items():
            if i + j == column:
                carry += (product & LOW)
            elif i + j == column - 1:
                carry += shr_logical(product, 32)
        digits.append(carry & LOW)
        carry = shr_logical(carry, 32)
    return digits


def _moderate_angle(x: Any) -> tuple[Any, Any, Any]:
    """Return n, r and a rest: |x| = n π/2 + r + rest, |r| <= π/4, for |x| up to MODERATE.

    Cody and Waite: multiples of the digits of π/2 are taken off one by one. The first step is
    exact, as both sides are multiples of one power of two, and near each other.
    """
    a = abs(x).to(FLOAT64)
    multiple, n = nearest(a, 2 / math.pi)
    n = n.to(FORMATS[x.dtype].signed)
    first, second, third = HALF_PI_DIGITS
    left = fma(multiple, -first, a)
    if x.dtype == FLOAT32:
        exact = fma(multiple, -second, left)
        r = exact.to(FLOAT32)
        return n, r, (exact - r.to(FLOAT64)).to(FLOAT32)
    product, missing = exact_product(multiple, multiple.const(second))
    high = left - product
    part = high - left
    low = (left - (high - part)) - (product + part)
    low = fma(multiple, -third, low - missing)
    r = high + low
    return n, r, (high - r) + low


def _any_angle(x: Any) -> tuple[Any, Any, Any]:
    """The same, n modulo 4, however large x is.

    |x| = m 2**p with an integer m. Of the digits of 2/π those above 2**(2-p) only add whole turns;
    m times the next ones is the fraction of a turn, in fixed point.
    """
    form = FORMATS[x.dtype]
    double = x.dtype == FLOAT64
    count, zeros = (6, 2) if double else (3, 1)
    bits = abs(x).bits()
    exponent = shr_logical(bits, form.fraction).to(np.int64)
    position = exponent - (form.bias + form.fraction + 2 - 32 * zeros)
    size = 38 if double else 7
    window = _digits_from(position, ((0,) * zeros + TWO_OVER_PI)[:size + 1], count)
    one = 1 << form.fraction
    leading = (bits & (one - 1)) | one
    m = leading.to(LONG)
    factors = [m & LOW, shr_logical(m, 32)] if double else [m]
    digits = _product_digits(factors, window[::-1])
    turn = (digits[-1] << 32) | digits[-2]
    n = shr_logical(turn + (1 << 61), 62)
    fraction = (turn - (n << 62)).bits().to(FLOAT64)
    if double:
        below = ((digits[-3] << 32) | digits[-4]).to(FLOAT64)
        fraction = fma(below, 2.0**-64, fraction)
    unit = math.pi / 2 * 2.0**-62
    exact = fraction * unit
    r = exact.to(x.dtype)
    rest = fma(fraction, unit, -r) if double else exact - r.to(FLOAT64)
    return n.to(form.signed), r, rest.to(x.dtype)


def _of_angles(finish: Callable[..., Any]) -> Callable[[Any], Any]:
    """A function of x from `finish(x, n, r, rest)`. Angles that are not moderate are a rare case;
    as `parts` stand the usual formula, the test of that case, and the formula there.
    """
    def usual(x: Any) -> Any:
        return finish(x, *_moderate_angle(x))

    def rare(x: Any) -> Any:
        return finish(x, *_any_angle(x))

    def test(x: Any) -> Any:
        return abs(x) > MODERATE

    def function(x: Any) -> Any:
        return select(test(x), rare(x), usual(x))
    function.__name__, function.__doc__ = finish.__name__, finish.__doc__
    vars(function).update(parts=(usual, test, rare))
    return function


def _sin_cos(r: Any) -> tuple[Any, Any]:
    """sin(r) and cos(r) for |r| <= π/4."""
    z = r * r
    sine = fma(r * z, polynomial(SIN[r.dtype], z), r)
    rest = fma(z * z, polynomial(COS[r.dtype], z), z * -0.5)
    return sine, rest + 1.0


def _sin_of(n: Any, r: Any) -> Any:
    """sin(n π/2 + r): in every other quadrant a cosine, in the second half of the turn negated."""
    sine, cosine = _sin_cos(r)
    y = select((n & 1) != 0, cosine, sine)
    return select((n & 2) != 0, -y, y)


def _odd(x: Any, y: Any) -> Any:
    """y = f(|x|) of an odd function f as f(x); nan at infinity."""
    sign = x.bits() & np.iinfo(FORMATS[x.dtype].signed).min
    y = (sign ^ y.bits()).bits(x.dtype)
    return select(abs(x) < INF, y, x.const(NAN))


@_of_angles
def sin(x: Any, n: Any, r: Any, _rest: Any) -> Any:
    """The sine; nan at infinity."""
    return _odd(x, _sin_of(n, r))


@_of_angles
def cos(x: Any, n: Any, r: Any, _rest: Any) -> Any:
    """The cosine; nan at infinity."""
    return select(abs(x) < INF, _sin_of(n + 1, r), x.const(NAN))


@_of_angles
def tan(x: Any, n: Any, r: Any, rest: Any) -> Any:
    """sin/cos, or -cos/sin in every other quadrant; the derivative 1 + y² takes in the rest."""
    sine, cosine = _sin_cos(r)
    turned = (n & 1) != 0
    y = select(turned, cosine, sine) / select(turned, -sine, cosine)
    return _odd(x, fma(rest, fma(y, y, 1.0), y))


# atan, asin, acos

# (atan(x) / x - 1) / x² as a polynomial in x² for |x| <= 1.
ATAN = {
    FLOAT32: (-0.333333, 0.19998549, -0.14264242, 0.10952187, -0.08403453, 0.05795763,
              -0.031177875, 0.010914617, -0.0017936236),
    FLOAT64: (-0.33333333333333287, 0.19999999999990448, -0.14285714285036644,
              0.11111111086448058, -0.09090908547270694, 0.07692299711972024,
              -0.06666583724427946, 0.058817161635820764, -0.05259433829953184,
              0.04744926251392186, -0.04286391252012712, 0.03821007018452706,
              -0.03278543751892481, 0.02615167659217077, -0.018614208349987626,
              0.011317658142574754, -0.005612392251658259, 0.0021515903594342724,
              -0.0005928939953371928, 0.00010387203981621884, -8.654218670143439e-06),
}
# (asin(x) / x - 1) / x² as a polynomial in x² for |x| <= ½.
ASIN = {
    FLOAT32: (0.16666752, 0.074952975, 0.045470376, 0.02417951, 0.042166315),
    FLOAT64: (0.16666666666665408, 0.07500000000337, 0.0446428568283393, 0.030381959136550615,
              0.02237175805979482, 0.017359704628917373, 0.01388523674904418,
              0.012169203417632283, 0.006528010080512205, 0.019528172105463745,
              -0.01622411038464979, 0.03191217485978631),
}
# π/2 and π, and what is missing from their nearest floats.
HALF_PI = {FLOAT32: (1.5707964, -4.371139e-08), FLOAT64: HALF_PI_DIGITS[:2]}


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
    one = x.const(1.0)
    both = ((a == INF) & (b == INF)) | ((a == 0.0) & (b == 0.0))
    # (±inf, ±inf) lies on the diagonal; (0, 0) lies on the axis that x's sign names.
    a = select(both, select(a == 0.0, a, one), a)
    angle = _atan_of_ratio(a, select(both, one, b))
    high, low = HALF_PI[x.dtype]
    left = copysign(one, x) < 0.0
    return copysign(select(left, (2 * high - angle) + 2 * low, angle), y)


def _asin_parts(x: Any) -> tuple[Any, Any, Any]:
    """Whether |x| > ½; t, which is |x| up to ½ and √((1 - |x|) / 2) beyond; asin(t) - t."""
    a = abs(x)
    large = a > 0.5
    z = select(large, (1.0 - a) * 0.5, a * a)
    t = select(large, sqrt(z), a)
    series = t * z * polynomial(ASIN[x.dtype], z)
    # What the square root rounded away, (z - t²) / 2t; z = 0 has none.
    missing = fma(-t, t, z) / (t + t)
    return large, t, select(large & (z > 0.0), series + missing, series)


def asin(x: Any) -> Any:
    """The arc sine; nan outside of [-1, 1]."""
    large, t, rest = _asin_parts(x)
    high, low = HALF_PI[x.dtype]
    folded = fma(t, -2.0, high) - (rest * 2.0 - low)
    return copysign(select(large, folded, t + rest), x)


def acos(x: Any) -> Any:
    """The arc cosine; nan outside of [-1, 1]."""
    large, t, rest = _asin_parts(x)
    high, low = HALF_PI[x.dtype]
    angle = t + rest
    twice = angle * 2.0
    far = select(x < 0.0, 2 * high - (twice - 2 * low), twice)
    near = high - (copysign(angle, x) - low)
    return select(large, far, near)
