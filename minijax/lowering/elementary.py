"""Elementary functions as polynomials in the scalar operations: no branch, no call, no table.

Stands on nothing: `s` is the builder of the loop tree, or NumpyScalars. Each function is for float32
and float64; what was not taken from the literature named beside it is a minimax fit (Remez exchange
in 60 digits, relative error below a tenth of a unit in the last place). Chapter 25.
In JAX: XLA's own polynomials (xla/codegen/math, chlo decompositions), for the rest libm.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
INF, NAN = math.inf, math.nan

Coefficients = Sequence[float]


@dataclass(frozen=True)
class Format:
    """How a float is laid out, and its constants; `ln2` and `ln2_rest` sum to log 2."""

    signed: np.dtype
    fraction: int  # bits behind the leading one
    bias: int  # of the exponent
    ln2: float
    ln2_rest: float
    least_normal: float
    exp_least: float  # exp rounds to 0 from here down
    exp_most: float  # and to infinity from here up

    @property
    def magic(self) -> float:
        """Adding it rounds a moderate number to an integer, left in the low bits."""
        return 1.5 * 2.0**self.fraction


FORMATS = {
    FLOAT32: Format(np.dtype(np.int32), 23, 127, 0.6931472, -1.904654299957768e-09,
                    2.0**-126, -104.0, 89.0),
    FLOAT64: Format(np.dtype(np.int64), 52, 1023, 0.6931471805599453, 2.3190468138462996e-17,
                    2.0**-1022, -746.0, 710.0),
}


def polynomial(s: Any, coefficients: Coefficients, x: Any) -> Any:
    """c[0] + c[1] x + c[2] x² + … by Horner's scheme, each step one rounding."""
    total: Any = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        total = s.fma(total, x, coefficient)
    return total


def clamp(s: Any, x: Any, low: float, high: float) -> Any:
    """x held between two bounds; nan stays nan."""
    x = s.select(s.lt(x, low), low, x)
    return s.select(s.gt(x, high), high, x)


def power_of_two(s: Any, k: Any, dtype: np.dtype) -> Any:
    """2**k for an integer k in the range of normal numbers: k goes into the exponent's place."""
    form = FORMATS[dtype]
    return s.bitcast(s.shl(s.add(k, form.bias), form.fraction), dtype)


# exp

# (exp(r) - 1 - r) / r² for |r| <= log(2) / 2.
EXP = {
    FLOAT32: (0.49999997, 0.16666543, 0.041667216, 0.008366577, 0.0013881277),
    FLOAT64: (0.5, 0.16666666666666677, 0.041666666666666505, 0.008333333333321612,
              0.0013888888888965696, 0.00019841269886195596, 2.480158716560958e-05,
              2.7557244118044046e-06, 2.7557408853593504e-07, 2.5109076111451326e-08,
              2.0873325742022046e-09),
}


def _reduced_expm1(s: Any, x: Any, low: Any = None) -> tuple[Any, Any, Any]:
    """Return k, r and expm1(r) - r, where x + low = k log 2 + r and |r| <= log(2) / 2."""
    form = FORMATS[x.dtype]
    shifted = s.fma(x, 1 / math.log(2), form.magic)
    magic = s.const(form.magic, x.dtype)
    k = s.sub(s.bitcast(shifted, form.signed), s.bitcast(magic, form.signed))
    multiple = s.sub(shifted, form.magic)
    r = s.fma(multiple, -form.ln2, x)
    r = s.fma(multiple, -form.ln2_rest, r if low is None else s.add(r, low))
    return k, r, s.mul(s.mul(r, r), polynomial(s, EXP[x.dtype], r))


def _scaled(s: Any, x: Any, k: Any) -> Any:
    """x 2**k in two steps, so that it can end at infinity or in the subnormal numbers."""
    half = s.shr_arithmetic(k, 1)
    once = s.mul(x, power_of_two(s, half, x.dtype))
    return s.mul(once, power_of_two(s, s.sub(k, half), x.dtype))


def exp(s: Any, x: Any) -> Any:
    """e**x.

    >>> from minijax.lowering.scalars import NumpyScalars
    >>> exp(NumpyScalars(), np.float32([0, 1, -np.inf, 100]))
    array([1.       , 2.7182817, 0.       ,       inf], dtype=float32)
    """
    return _exp_of_sum(s, x, None)


def _exp_of_sum(s: Any, x: Any, low: Any) -> Any:
    """exp(x + low), where low is a small correction to x (None: nothing)."""
    form = FORMATS[x.dtype]
    k, r, rest = _reduced_expm1(s, clamp(s, x, form.exp_least, form.exp_most), low)
    return _scaled(s, s.add(s.add(r, rest), 1.0), k)


def exp2(s: Any, x: Any) -> Any:
    """2**x: the integer part is an exponent, the rest goes through exp."""
    form = FORMATS[x.dtype]
    x = clamp(s, x, form.exp_least * 1.5, form.exp_most * 1.5)
    k = s.round_even(x)
    part = s.sub(x, k)
    high = s.mul(part, form.ln2)
    low = s.fma(part, form.ln2_rest, s.fma(part, form.ln2, s.neg(high)))
    p = s.fma(s.mul(high, high), polynomial(s, EXP[x.dtype], high), s.add(high, low))
    return _scaled(s, s.add(p, 1.0), s.convert(k, form.signed))


def expm1(s: Any, x: Any) -> Any:
    """e**x - 1, without cancellation near 0.

    2**k (1 + p) - 1 is 2 (p t + (t - ½)) with t = 2**(k-1), which never overflows too early.
    """
    form = FORMATS[x.dtype]
    k, r, rest = _reduced_expm1(s, clamp(s, x, -form.fraction, form.exp_most))
    t = power_of_two(s, s.sub(k, 1), x.dtype)
    y = s.mul(s.fma(rest, t, s.fma(r, t, s.sub(t, 0.5))), 2.0)
    return s.select(s.eq(x, 0.0), x, y)


def tanh(s: Any, x: Any) -> Any:
    """expm1(2|x|) / (expm1(2|x|) + 2) with the sign of x."""
    e = expm1(s, clamp(s, s.mul(s.abs(x), 2.0), 0.0, 60.0))
    return s.copysign(s.div(e, s.add(e, 2.0)), x)


def logistic(s: Any, x: Any) -> Any:
    """1 / (1 + e**-x), written so that e**-|x| never overflows."""
    z = exp(s, s.neg(s.abs(x)))
    return s.div(s.select(s.lt(x, 0.0), z, 1.0), s.add(z, 1.0))


def sinh(s: Any, x: Any) -> Any:
    """(e + e / (e + 1)) / 2 with e = expm1|x|; large ones as a square, which overflows later."""
    a = s.abs(x)
    limit = FORMATS[x.dtype].exp_most - 2.0
    e = expm1(s, clamp(s, a, 0.0, limit))
    moderate = s.mul(s.add(e, s.div(e, s.add(e, 1.0))), 0.5)
    return s.copysign(s.select(s.gt(a, limit), _half_exp(s, a), moderate), x)


def cosh(s: Any, x: Any) -> Any:
    """(e**|x| + e**-|x|) / 2."""
    a = s.abs(x)
    half = _half_exp(s, a)
    return s.add(half, s.div(0.25, half))


def _half_exp(s: Any, x: Any) -> Any:
    """e**x / 2, finite also where e**x is not."""
    k, r, rest = _reduced_expm1(s, clamp(s, x, 0.0, FORMATS[x.dtype].exp_most + 1.0))
    return _scaled(s, s.add(s.add(r, rest), 1.0), s.sub(k, 1))


# log

# (log(1 + f) - f + f²/2) / f³ for √½ <= 1 + f <= √2.
LOG_32 = (0.3333333, -0.2500082, 0.20001227, -0.16623358, 0.14201751, -0.1316017, 0.12761621,
          -0.07634575)
# (log((1 + t) / (1 - t)) / t - 2) / t² as a polynomial in t² for the same range.
LOG_64 = (0.6666666666666735, 0.39999999999411096, 0.2857142874326231, 0.22222198476003124,
          0.18183569739728042, 0.1531390323321067, 0.14797507964482168)


def _exponent_of(s: Any, x: Any) -> Any:
    """The integer e with √½ <= x / 2**e < √2, for a normal x."""
    form = FORMATS[x.dtype]
    root = s.bitcast(s.const(math.sqrt(0.5), x.dtype), form.signed)
    return s.shr_arithmetic(s.sub(s.bitcast(x, form.signed), root), form.fraction)


def _divided(s: Any, x: Any, e: Any) -> Any:
    """x / 2**e, by taking e from the exponent; both x and the result must be normal."""
    form = FORMATS[x.dtype]
    bits = s.sub(s.bitcast(x, form.signed), s.shl(e, form.fraction))
    return s.bitcast(bits, x.dtype)


def _split(s: Any, x: Any) -> tuple[Any, Any]:
    """Return m - 1 and e as floats, x = m 2**e with √½ <= m < √2, for finite positive x."""
    form = FORMATS[x.dtype]
    subnormal = s.lt(x, form.least_normal)
    normal = s.select(subnormal, s.mul(x, 2.0**form.fraction), x)
    e = _exponent_of(s, normal)
    lifted = s.select(subnormal, float(form.fraction), s.const(0.0, x.dtype))
    return s.sub(_divided(s, normal, e), 1.0), s.sub(s.convert(e, x.dtype), lifted)


def _log_of_parts(s: Any, f: Any, e: Any) -> Any:
    """log(1 + f) + e log 2."""
    form = FORMATS[f.dtype]
    square = s.mul(f, f)
    if f.dtype == FLOAT32:
        rest = s.mul(s.mul(square, f), polynomial(s, LOG_32, f))
        rest = s.fma(square, -0.5, s.fma(e, form.ln2_rest, rest))
        return s.fma(e, form.ln2, s.add(f, rest))
    # As in fdlibm (Sun, 1993): with t = f / (2 + f) fewer terms do.
    t = s.div(f, s.add(f, 2.0))
    z = s.mul(t, t)
    series = s.mul(z, polynomial(s, LOG_64, z))
    half = s.mul(square, 0.5)
    rest = s.sub(half, s.fma(e, form.ln2_rest, s.mul(t, s.add(half, series))))
    return s.fma(e, form.ln2, s.sub(f, rest))


def log(s: Any, x: Any) -> Any:
    """The natural logarithm: -inf at 0, nan below."""
    y = _log_of_parts(s, *_split(s, x))
    y = s.select(s.lt(x, INF), y, x)
    return s.select(s.gt(x, 0.0), y, s.select(s.eq(x, 0.0), -INF, s.const(NAN, x.dtype)))


def log1p(s: Any, x: Any) -> Any:
    """log(1 + x), exact also where 1 + x rounds: f = (1 + x) / 2**e - 1 is formed from x itself."""
    form = FORMATS[x.dtype]
    e = _exponent_of(s, s.add(x, 1.0))
    # 2**-e - 1 through 4 2**-e, which is normal for the largest e as well.
    shrunk = s.fma(_divided(s, s.const(4.0, x.dtype), e), 0.25, -1.0)
    y = _log_of_parts(s, s.add(_divided(s, x, e), shrunk), s.convert(e, x.dtype))
    y = s.select(s.and_(s.lt(x, INF), s.ge(s.abs(x), form.least_normal)), y, x)
    return s.select(s.gt(x, -1.0), y, s.select(s.eq(x, -1.0), -INF, s.const(NAN, x.dtype)))


def asinh(s: Any, x: Any) -> Any:
    """log(a + √(a² + 1)) of a = |x|, arranged for log1p; a large one is log(2a)."""
    a = s.abs(x)
    large = s.gt(a, _LARGE[x.dtype])
    b = s.select(large, 1.0, a)
    square = s.mul(b, b)
    near = s.add(b, s.div(square, s.add(s.sqrt(s.add(square, 1.0)), 1.0)))
    y = log1p(s, s.select(large, a, near))
    return s.copysign(s.select(large, s.add(y, math.log(2)), y), x)


def acosh(s: Any, x: Any) -> Any:
    """log1p(t + √(2t + t²)) with t = x - 1; a large one is log(2x)."""
    large = s.gt(x, _LARGE[x.dtype])
    t = s.sub(x, 1.0)
    near = s.add(t, s.sqrt(s.fma(t, t, s.mul(t, 2.0))))
    y = log1p(s, s.select(large, x, near))
    y = s.select(large, s.add(y, math.log(2)), y)
    return s.select(s.lt(x, 1.0), s.const(NAN, x.dtype), y)


# Beyond it log(1 + x) is log(x) in floating point; its square is still finite.
_LARGE = {FLOAT32: 2.0**26, FLOAT64: 2.0**56}


def atanh(s: Any, x: Any) -> Any:
    """log1p(2a / (1 - a)) / 2 of a = |x|."""
    a = s.abs(x)
    y = s.mul(log1p(s, s.div(s.add(a, a), s.sub(1.0, a))), 0.5)
    return s.copysign(y, x)


# pow

# (atanh(q) / q - 1 - q²/3) / q⁴ as a polynomial in q², for |q| <= (√2 - 1) / (√2 + 1).
ATANH = {
    FLOAT32: (0.20000076, 0.14273542, 0.11709909),
    FLOAT64: (0.20000000000001136, 0.14285714285045947, 0.11111111260676566, 0.0909089211856696,
              0.07693381763419098, 0.06628334479088839, 0.06598874492071004),
}


def _product(s: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """x y as a rounded product and its exact error."""
    high = s.mul(x, y)
    return high, s.fma(x, y, s.neg(high))


def _sum(s: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """x + y as a rounded sum and its exact error, for |x| >= |y|."""
    high = s.add(x, y)
    return high, s.add(s.sub(x, high), y)


def _log_extended(s: Any, x: Any) -> tuple[Any, Any]:
    """log(x) as an unevaluated sum with twice the digits, for finite positive x.

    As Juffa does for CUDA's powf: 2 atanh(q) with q = f / (2 + f), all leading terms in pairs.
    """
    form = FORMATS[x.dtype]
    f, e = _split(s, x)
    inverse = s.div(1.0, s.add(f, 2.0))
    q = s.mul(f, inverse)
    q_low = s.mul(inverse, s.fma(q, s.neg(f), s.fma(q, -2.0, f)))
    z, z_low = _product(s, q, q)
    z_low = s.fma(q, s.add(q_low, q_low), z_low)
    third = float(np.array(1 / 3, x.dtype))
    c, c_low = _sum(s, s.const(third, x.dtype), s.mul(z, polynomial(s, ATANH[x.dtype], z)))
    c_low = s.add(c_low, 1 / 3 - third if x.dtype == FLOAT32 else 1.850371707708594e-17)
    cube, cube_low = _product(s, z, q)
    cube_low = s.fma(z, q_low, s.fma(z_low, q, cube_low))
    term, term_low = _product(s, cube, c)
    term_low = s.fma(cube, c_low, s.fma(cube_low, c, term_low))
    series, series_low = _sum(s, q, term)
    series_low = s.add(series_low, s.add(q_low, term_low))
    whole, whole_low = _product(s, e, s.const(form.ln2, x.dtype))
    high, low = _sum(s, whole, s.add(series, series))
    # With e = 0 the larger term comes second; its sum with 0 is exact all the same.
    low = s.add(low, s.add(s.fma(series_low, 2.0, whole_low), s.mul(e, form.ln2_rest)))
    return _sum(s, high, low)


def pow(s: Any, x: Any, y: Any) -> Any:
    """x**y as C99 has it: 1 for y = 0 or x = 1, odd integers keep the sign, else nan for x < 0."""
    a = s.abs(x)
    high, low = _log_extended(s, a)
    product = s.mul(high, y)
    product_low = s.fma(low, y, s.fma(high, y, s.neg(product)))
    limit = 2 * FORMATS[x.dtype].exp_most
    product_low = s.select(s.lt(s.abs(product), limit), product_low, s.const(0.0, x.dtype))
    size = _exp_of_sum(s, product, product_low)
    zero, infinite = s.const(0.0, x.dtype), s.const(INF, x.dtype)
    grows = s.xor(s.eq(a, 0.0), s.gt(y, 0.0))
    extreme = s.or_(s.eq(a, 0.0), s.eq(a, INF))
    size = s.select(extreme, s.select(grows, infinite, zero), s.select(s.eq(a, 1.0), 1.0, size))
    whole = s.eq(s.floor(y), y)
    half = s.mul(y, 0.5)
    odd = s.and_(whole, s.ne(s.floor(half), half))
    result = s.select(odd, s.copysign(size, x), size)
    bad = s.and_(s.and_(s.lt(x, 0.0), s.gt(x, -INF)), s.not_(whole))
    unordered = s.or_(s.ne(x, x), s.ne(y, y))
    result = s.select(s.or_(bad, unordered), s.const(NAN, x.dtype), result)
    return s.select(s.or_(s.eq(y, 0.0), s.eq(x, 1.0)), s.const(1.0, x.dtype), result)


def cbrt(s: Any, x: Any) -> Any:
    """The cube root: a third of the exponent for a start, then Halley's iteration."""
    form = FORMATS[x.dtype]
    a = s.abs(x)
    # Subnormal numbers have no exponent to divide, and the cubes of the largest overflow.
    up, down = float(form.fraction // 3 + 1), -2.0
    lift = s.select(s.lt(a, form.least_normal), up, s.select(s.gt(a, 1.0), down, s.const(0, x.dtype)))
    lift = s.convert(lift, form.signed)
    a = s.mul(a, power_of_two(s, s.mul(lift, 3), x.dtype))
    # bits/3 + 2/3 of the bias: right to 5 % (Kahan).
    start = int((form.bias * 2 / 3 - 0.033) * 2**form.fraction)
    t = s.bitcast(s.add(s.div(s.bitcast(a, form.signed), 3), start), x.dtype)
    for _ in range(2 if x.dtype == FLOAT32 else 3):
        cube = s.mul(s.mul(t, t), t)
        t = s.mul(t, s.div(s.fma(a, 2.0, cube), s.fma(cube, 2.0, a)))
    square, square_low = _product(s, t, t)
    error = s.fma(s.neg(square_low), t, s.fma(s.neg(square), t, a))
    t = s.fma(error, s.div(1.0, s.mul(square, 3.0)), t)
    t = s.mul(t, power_of_two(s, s.neg(lift), x.dtype))
    usual = s.and_(s.gt(s.abs(x), 0.0), s.lt(s.abs(x), INF))
    return s.select(usual, s.copysign(t, x), x)


# sin, cos, tan

# The binary digits of 2/π in words of 32 bits (Payne and Hanek, 1983).
TWO_OVER_PI = (
    0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041, 0xFE5163AB, 0xDEBBC561,
    0xB7246E3A, 0x424DD2E0, 0x06492EEA, 0x09D1921C, 0xFE1DEB1C, 0xB129A73E, 0xE88235F5, 0x2EBB4484,
    0xE99C7026, 0xB45F7E41, 0x3991D639, 0x835339F4, 0x9C845F8B, 0xBDF9283B, 0x1FF897FF, 0xDE05980F,
    0xEF2F118B, 0x5A0A6D1F, 0x6D367ECF, 0x27CB09B7, 0x4F463F66, 0x9E5FEA2D, 0x7527BAC7, 0xEBE5F17B,
    0x3D0739F7, 0x8A5292EA, 0x6BFB5FB1, 0x1F8D5D08, 0x56033046, 0xFC7B6BAB, 0xF0CFBC20, 0x9AF4361D,
)
WORD, LONG = np.dtype(np.uint32), np.dtype(np.uint64)

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


def _digits_from(s: Any, position: Any, words: Sequence[int], count: int) -> list[Any]:
    """`count` words of a long binary number, starting at a bit position (an int64 scalar).

    A load would need a table in memory. Selecting among constants, one bit of the word's number
    at a time from the highest on, needs about two selects for each word there is.
    """
    number = s.shr_logical(position, 5)
    shift = s.convert(s.and_(position, 31), LONG)
    current: list[Any] = [s.const(word, WORD) for word in words]
    for bit in reversed(range((len(words) - count - 1).bit_length())):
        taken = s.ne(s.and_(number, 1 << bit), 0)
        size = min(len(current), count + 1 + (1 << bit) - 1)
        padded = current + [s.const(0, WORD)] * (1 << bit)
        current = [s.select(taken, padded[i + (1 << bit)], padded[i]) for i in range(size)]
    longs = [s.convert(word, LONG) for word in current[:count + 1]]
    low_half = s.sub(s.const(32, LONG), shift)
    pairs = zip(longs[:-1], longs[1:], strict=True)
    return [s.and_(s.shr_logical(s.or_(s.shl(a, 32), b), low_half), 0xFFFFFFFF) for a, b in pairs]


def _product_digits(s: Any, x: Sequence[Any], y: Sequence[Any]) -> list[Any]:
    """The low len(y) digits of a product of numbers in base 2³²; lowest digit first."""
    digits = []
    carry = s.const(0, LONG)
    products = {(i, j): s.mul(a, b) for i, a in enumerate(x) for j, b in enumerate(y)}
    for column in range(len(y)):
        for (i, j), product in products.items():
            if i + j == column:
                carry = s.add(carry, s.and_(product, 0xFFFFFFFF))
            elif i + j == column - 1:
                carry = s.add(carry, s.shr_logical(product, 32))
        digits.append(s.and_(carry, 0xFFFFFFFF))
        carry = s.shr_logical(carry, 32)
    return digits


def _reduced_angle(s: Any, x: Any) -> tuple[Any, Any, Any]:
    """Return n, r and a rest: |x| = n π/2 + r + rest, |r| <= π/4, n modulo 4, however large x is.

    |x| = m 2**p with an integer m. Of the digits of 2/π those above 2**(2-p) only add whole turns;
    m times the next ones is the fraction of a turn, in fixed point.
    """
    form = FORMATS[x.dtype]
    double = x.dtype == FLOAT64
    count, zeros = (6, 2) if double else (3, 1)
    a = s.abs(x)
    bits = s.bitcast(a, form.signed)
    exponent = s.convert(s.shr_logical(bits, form.fraction), np.int64)
    position = s.sub(exponent, form.bias + form.fraction + 2 - 32 * zeros)
    size = 38 if double else 7
    window = _digits_from(s, position, ((0,) * zeros + TWO_OVER_PI)[:size + 1], count)
    leading = s.or_(s.and_(bits, (1 << form.fraction) - 1), 1 << form.fraction)
    m = s.convert(leading, LONG)
    factors = [s.and_(m, 0xFFFFFFFF), s.shr_logical(m, 32)] if double else [m]
    digits = _product_digits(s, factors, window[::-1])
    turn = s.or_(s.shl(digits[-1], 32), digits[-2])
    n = s.shr_logical(s.add(turn, 1 << 61), 62)
    fraction = s.convert(s.bitcast(s.sub(turn, s.shl(n, 62)), np.int64), FLOAT64)
    if double:
        below = s.convert(s.or_(s.shl(digits[-3], 32), digits[-4]), FLOAT64)
        fraction = s.fma(below, 2.0**-64, fraction)
    unit = math.pi / 2 * 2.0**-62
    exact = s.mul(fraction, unit)
    r = s.convert(exact, x.dtype)
    rest = s.fma(fraction, unit, s.neg(r)) if double else s.sub(exact, s.convert(r, FLOAT64))
    small = s.le(a, math.pi / 4)
    return (s.convert(s.select(small, s.const(0, LONG), n), form.signed), s.select(small, a, r),
            s.select(small, s.const(0.0, x.dtype), s.convert(rest, x.dtype)))


def _sin_cos(s: Any, r: Any) -> tuple[Any, Any]:
    """sin(r) and cos(r) for |r| <= π/4."""
    z = s.mul(r, r)
    sine = s.fma(s.mul(r, z), polynomial(s, SIN[r.dtype], z), r)
    rest = s.fma(s.mul(z, z), polynomial(s, COS[r.dtype], z), s.mul(z, -0.5))
    return sine, s.add(rest, 1.0)


def _signed(s: Any, x: Any, negative: Any) -> Any:
    return s.select(negative, s.neg(x), x)


def _bit(s: Any, n: Any, bit: int) -> Any:
    return s.ne(s.and_(n, bit), 0)


def sin(s: Any, x: Any) -> Any:
    """The sine; nan at infinity."""
    n, r, _ = _reduced_angle(s, x)
    sine, cosine = _sin_cos(s, r)
    y = _signed(s, s.select(_bit(s, n, 1), cosine, sine), _bit(s, n, 2))
    y = s.bitcast(s.xor(*_sign_and_bits(s, x, y)), x.dtype)
    return s.select(s.lt(s.abs(x), INF), y, s.const(NAN, x.dtype))


def _sign_and_bits(s: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """The sign bit of x, and the bits of y."""
    signed = FORMATS[x.dtype].signed
    return s.and_(s.bitcast(x, signed), np.iinfo(signed).min), s.bitcast(y, signed)


def cos(s: Any, x: Any) -> Any:
    """The cosine; nan at infinity."""
    n, r, _ = _reduced_angle(s, x)
    sine, cosine = _sin_cos(s, r)
    y = _signed(s, s.select(_bit(s, n, 1), sine, cosine), _bit(s, s.add(n, 1), 2))
    return s.select(s.lt(s.abs(x), INF), y, s.const(NAN, x.dtype))


def tan(s: Any, x: Any) -> Any:
    """sin/cos, or -cos/sin in every other quadrant; the derivative 1 + y² takes in the rest."""
    n, r, rest = _reduced_angle(s, x)
    sine, cosine = _sin_cos(s, r)
    turned = _bit(s, n, 1)
    y = s.div(s.select(turned, cosine, sine), s.select(turned, s.neg(sine), cosine))
    y = s.fma(rest, s.fma(y, y, 1.0), y)
    y = s.bitcast(s.xor(*_sign_and_bits(s, x, y)), x.dtype)
    return s.select(s.lt(s.abs(x), INF), y, s.const(NAN, x.dtype))


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
HALF_PI = {FLOAT32: (1.5707964, -4.371139e-08), FLOAT64: (math.pi / 2, 6.123233995736766e-17)}


def _odd_polynomial(s: Any, coefficients: Coefficients, x: Any, z: Any) -> Any:
    """x + x z (c[0] + c[1] z + …)."""
    return s.fma(s.mul(x, z), polynomial(s, coefficients, z), x)


def atan(s: Any, x: Any) -> Any:
    """The arc tangent; beyond 1 it is π/2 less that of 1/x."""
    a = s.abs(x)
    one = s.const(1.0, x.dtype)
    return s.copysign(_atan_of_ratio(s, s.select(s.gt(a, INF), a, a), one), x)


def _atan_of_ratio(s: Any, y: Any, x: Any) -> Any:
    """atan(y / x) for y, x >= 0, not both 0 or infinite."""
    swapped = s.gt(y, x)
    ratio = s.div(s.select(swapped, x, y), s.select(swapped, y, x))
    angle = _odd_polynomial(s, ATAN[x.dtype], ratio, s.mul(ratio, ratio))
    high, low = HALF_PI[x.dtype]
    return s.select(swapped, s.add(s.sub(high, angle), low), angle)


def atan2(s: Any, y: Any, x: Any) -> Any:
    """The angle of the point (x, y), with C99's signs of zero and values at infinity."""
    a, b = s.abs(y), s.abs(x)
    one = s.const(1.0, x.dtype)
    both = s.or_(s.and_(s.eq(a, INF), s.eq(b, INF)), s.and_(s.eq(a, 0.0), s.eq(b, 0.0)))
    # (±inf, ±inf) lies on the diagonal; (0, 0) lies on the axis that x's sign names.
    a = s.select(both, s.select(s.eq(a, 0.0), a, one), a)
    angle = _atan_of_ratio(s, a, s.select(both, one, b))
    high, low = HALF_PI[x.dtype]
    left = s.lt(s.copysign(one, x), 0.0)
    angle = s.select(left, s.add(s.sub(2 * high, angle), 2 * low), angle)
    return s.copysign(angle, y)


def _asin_parts(s: Any, x: Any) -> tuple[Any, Any, Any]:
    """Whether |x| > ½; t, which is |x| up to ½ and √((1 - |x|) / 2) beyond; asin(t) - t."""
    a = s.abs(x)
    large = s.gt(a, 0.5)
    z = s.select(large, s.mul(s.sub(1.0, a), 0.5), s.mul(a, a))
    t = s.select(large, s.sqrt(z), a)
    series = s.mul(s.mul(t, z), polynomial(s, ASIN[x.dtype], z))
    # What the square root rounded away, (z - t²) / 2t; z = 0 has none.
    missing = s.div(s.fma(s.neg(t), t, z), s.add(t, t))
    return large, t, s.select(s.and_(large, s.gt(z, 0.0)), s.add(series, missing), series)


def asin(s: Any, x: Any) -> Any:
    """The arc sine; nan outside of [-1, 1]."""
    large, t, rest = _asin_parts(s, x)
    high, low = HALF_PI[x.dtype]
    folded = s.sub(s.fma(t, -2.0, high), s.sub(s.mul(rest, 2.0), low))
    return s.copysign(s.select(large, folded, s.add(t, rest)), x)


def acos(s: Any, x: Any) -> Any:
    """The arc cosine; nan outside of [-1, 1]."""
    large, t, rest = _asin_parts(s, x)
    high, low = HALF_PI[x.dtype]
    angle = s.add(t, rest)
    twice = s.mul(angle, 2.0)
    far = s.select(s.lt(x, 0.0), s.sub(2 * high, s.sub(twice, 2 * low)), twice)
    near = s.sub(high, s.sub(s.copysign(angle, x), low))
    return s.select(large, far, near)


# erf

# erf(x) / x - 1 as a polynomial in x² for |x| <= 1.
ERF = {
    FLOAT32: (0.12837917, -0.37612626, 0.112835854, -0.026853813, 0.0051883277, -0.00080101937,
              7.8538615e-05),
    FLOAT64: (0.1283791670955126, -0.3761263890318375, 0.11283791670954857, -0.026866170645072893,
              0.005223977624780859, -0.0008548326978741747, 0.00012055331036881943,
              -1.4925593506447363e-05, 1.646097280971535e-06, -1.6350025143827995e-07,
              1.4657879308045429e-08, -1.1365663897562766e-09, 5.945258279306209e-11),
}
# (1 + 2x) exp(x²) erfc(x) as a polynomial in (x - c) / (x + c), for ½ <= x until erfc is 0
# (Shepherd and Laframboise, 1981).
ERFC_CENTER = {FLOAT32: 2.0, FLOAT64: 3.75}
ERFC = {
    FLOAT32: (1.2769784, -0.09276377, -0.16603085, 0.16404888, -0.054210775, -0.008007329,
              0.008656724, 0.0011532322, -0.0012617869, -0.00023455701),
    FLOAT64: (1.2375126308378275, -0.140240598585547, 0.0035854154854657954, 0.08227673849014817,
              -0.10880393014185276, 0.09230432116032011, -0.05869339858663336,
              0.028362277419147406, -0.009746579601765601, 0.001755625857716179,
              0.0002937140326649736, -0.00029015414250037303, 5.164719302983809e-05,
              2.2384580576024875e-05, -1.1437815339577411e-05, -9.746228853332465e-07,
              1.7381185202862169e-06, -5.523468065517785e-08, -2.4059877794480187e-07,
              2.1079594963992068e-08, 2.467253424612837e-08, -2.4509110215471315e-09),
}


def _erf_near_zero(s: Any, x: Any) -> Any:
    return s.fma(x, polynomial(s, ERF[x.dtype], s.mul(x, x)), x)


def _erfc_of_positive(s: Any, a: Any) -> Any:
    """erfc(a) for a >= ½; exp(-a²) takes a² in two parts, as its rounding would be magnified."""
    a = clamp(s, a, 0.5, 11.0 if a.dtype == FLOAT32 else 28.0)
    center = ERFC_CENTER[a.dtype]
    scaled = polynomial(s, ERFC[a.dtype], s.div(s.sub(a, center), s.add(a, center)))
    square, low = _product(s, a, a)
    gauss = _exp_of_sum(s, s.neg(square), s.neg(low))
    return s.mul(s.div(scaled, s.fma(a, 2.0, 1.0)), gauss)


def erf(s: Any, x: Any) -> Any:
    """The error function: a polynomial up to 1, then 1 - erfc."""
    a = s.abs(x)
    far = s.copysign(s.sub(1.0, _erfc_of_positive(s, a)), x)
    return s.select(s.lt(a, 1.0), _erf_near_zero(s, x), far)


def erfc(s: Any, x: Any) -> Any:
    """1 - erf(x), without cancellation for large x."""
    a = s.abs(x)
    far = _erfc_of_positive(s, a)
    far = s.select(s.lt(x, 0.0), s.sub(2.0, far), far)
    return s.select(s.lt(a, 0.5), s.sub(1.0, _erf_near_zero(s, x)), far)


# erf_inv: the coefficients of Giles, "Approximating the erfinv function" (2010), in descending
# order there; XLA's own choice, so that normal random numbers agree. Each piece is a polynomial in
# (w - center) or (√w - center), w = -log(1 - x²), for w below its limit.
ERF_INV_32 = (
    (5.0, 2.5, (1.50140941, 0.246640727, -0.00417768164, -0.00125372503, 0.00021858087,
                -4.39150654e-06, -3.5233877e-06, 3.43273939e-07, 2.81022636e-08)),
    (INF, 3.0, (2.83297682, 1.00167406, 0.00943887047, -0.0076224613, 0.00573950773,
                -0.00367342844, 0.00134934322, 0.000100950558, -0.000200214257)),
)
ERF_INV_64 = (
    (6.25, 3.125, (
        1.6536545626831027356, 0.24015818242558961693, -0.0060336708714301490533,
        -0.00074070253416626697512, 0.0001867342080340571352, -1.3882523362786468719e-05,
        -1.3654692000834678645e-06, 4.2347877827932403518e-07, -2.9070369957882005086e-08,
        -4.1126339803469836976e-09, 1.051212273321532285e-09, -5.4151204279262780e-11,
        -1.2975133253453532498e-11, 2.6335093153082322977e-12, -8.1519341976054721522e-14,
        -4.0545662729752068639e-14, 6.6376381343583238325e-15, 2.0972767875968561637e-17,
        -1.333171662854620906e-16, 1.115787767802518096e-17, 1.2858480715256400167e-18,
        -1.685059138182016589e-19, -3.6444120640178196996e-21)),
    (16.0, 3.25, (
        3.0838856104922207635, 1.0052589676941592334, 0.005370914553590063617,
        -0.0037512085075692412107, 0.0024914420961078508066, -0.0016882755560235047313,
        0.00095328937973738049703, -0.0003550375203628474796, 2.4031110387097893999e-05,
        6.8284851459573175448e-05, -4.7318229009055733981e-05, 1.2475304481671778723e-05,
        2.9234449089955446044e-06, -4.013867526981545969e-06, 1.5027403968909827627e-06,
        1.8239629214389227755e-08, -2.7517406297064545428e-07, 9.0756561938885390979e-08,
        2.2137376921775787049e-09)),
    (INF, 5.0, (
        4.8499064014085844221, 1.0103004648645343977, -0.00013871931833623122026,
        -0.00021503011930044477347, 7.5995277030017761139e-05, -1.9681778105531670567e-05,
        4.5260625972231537039e-06, -9.9298272942317002539e-07, 2.2900482228026654717e-07,
        -6.7711997758452339498e-08, 2.9147953450901080826e-08, -1.4960026627149240478e-08,
        7.6157012080783393804e-09, -3.7894654401267369937e-09, 1.5076572693500548083e-09,
        -2.5556418169965252055e-10, -2.7109920616438573243e-11)),
)


def erf_inv(s: Any, x: Any) -> Any:
    """The inverse of erf; ±infinity at ±1, nan beyond."""
    w = s.neg(log1p(s, s.mul(s.neg(x), x)))
    (limit, center, first), *others = ERF_INV_32 if x.dtype == FLOAT32 else ERF_INV_64
    p = polynomial(s, first, s.sub(w, center))
    root = s.sqrt(w)
    for upper, center, coefficients in others:
        p = s.select(s.lt(w, limit), p, polynomial(s, coefficients, s.sub(root, center)))
        limit = upper
    return s.select(s.eq(s.abs(x), 1.0), s.mul(x, INF), s.mul(p, x))
