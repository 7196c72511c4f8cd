"""exp, log and what follows from them, as polynomials in the scalar operations.

Stands on nothing: `s` is the builder of the loop tree, or NumpyScalars. Coefficients without a name
beside them are minimax fits (Remez exchange in 60 digits, relative error below a quarter unit in
the last place). Chapter 25. In JAX: XLA's own polynomials for exp and log, libm for the rest.
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


def reduced_expm1(s: Any, x: Any, low: Any = None) -> tuple[Any, Any, Any]:
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
    return exp_of_sum(s, x, None)


def exp_of_sum(s: Any, x: Any, low: Any) -> Any:
    """exp(x + low), where low is a small correction to x (None: nothing)."""
    form = FORMATS[x.dtype]
    k, r, rest = reduced_expm1(s, clamp(s, x, form.exp_least, form.exp_most), low)
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
    k, r, rest = reduced_expm1(s, clamp(s, x, -form.fraction, form.exp_most))
    t = power_of_two(s, s.sub(k, 1), x.dtype)
    y = s.mul(s.fma(rest, t, s.fma(r, t, s.sub(t, 0.5))), 2.0)
    return s.select(s.lt(s.abs(x), 2.0 ** -(form.fraction + 2)), x, y)


def tanh(s: Any, x: Any) -> Any:
    """expm1(2|x|) / (2 + expm1(2|x|)) with the sign of x."""
    e = expm1(s, clamp(s, s.mul(s.abs(x), 2.0), 0.0, 60.0))
    return s.copysign(_quotient(s, e, 2.0, e), x)


def logistic(s: Any, x: Any) -> Any:
    """1 / (1 + e**-x), written so that e**-|x| never overflows."""
    z = exp(s, s.neg(s.abs(x)))
    return _quotient(s, s.select(s.lt(x, 0.0), z, 1.0), 1.0, z)


def _quotient(s: Any, x: Any, y: float, z: Any) -> Any:
    """x / (y + z), corrected for what the sum and the division rounded away."""
    total = s.add(z, y)
    inverse = s.div(1.0, total)
    quotient = s.mul(x, inverse)
    low = s.add(s.sub(y, total), z)
    missing = s.fma(s.neg(quotient), low, s.fma(s.neg(quotient), total, x))
    return s.fma(missing, inverse, quotient)


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
    k, r, rest = reduced_expm1(s, clamp(s, x, 0.0, FORMATS[x.dtype].exp_most + 1.0))
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


def exact_product(s: Any, x: Any, y: Any) -> tuple[Any, Any]:
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
    z, z_low = exact_product(s, q, q)
    z_low = s.fma(q, s.add(q_low, q_low), z_low)
    third = float(np.array(1 / 3, x.dtype))
    c, c_low = _sum(s, s.const(third, x.dtype), s.mul(z, polynomial(s, ATANH[x.dtype], z)))
    c_low = s.add(c_low, 1 / 3 - third if x.dtype == FLOAT32 else 1.850371707708594e-17)
    cube, cube_low = exact_product(s, z, q)
    cube_low = s.fma(z, q_low, s.fma(z_low, q, cube_low))
    term, term_low = exact_product(s, cube, c)
    term_low = s.fma(cube, c_low, s.fma(cube_low, c, term_low))
    series, series_low = _sum(s, q, term)
    series_low = s.add(series_low, s.add(q_low, term_low))
    whole, whole_low = exact_product(s, e, s.const(form.ln2, x.dtype))
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
    size = exp_of_sum(s, product, product_low)
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
    lift = s.select(s.gt(a, 1.0), down, s.const(0.0, x.dtype))
    lift = s.convert(s.select(s.lt(a, form.least_normal), up, lift), form.signed)
    a = s.mul(a, power_of_two(s, s.mul(lift, 3), x.dtype))
    # bits/3 + 2/3 of the bias: right to 5 % (Kahan).
    start = int((form.bias * 2 / 3 - 0.033) * 2**form.fraction)
    t = s.bitcast(s.add(s.div(s.bitcast(a, form.signed), 3), start), x.dtype)
    for _ in range(2 if x.dtype == FLOAT32 else 3):
        cube = s.mul(s.mul(t, t), t)
        t = s.mul(t, s.div(s.fma(a, 2.0, cube), s.fma(cube, 2.0, a)))
    square, square_low = exact_product(s, t, t)
    error = s.fma(s.neg(square_low), t, s.fma(s.neg(square), t, a))
    t = s.fma(error, s.div(1.0, s.mul(square, 3.0)), t)
    t = s.mul(t, power_of_two(s, s.neg(lift), x.dtype))
    usual = s.and_(s.gt(s.abs(x), 0.0), s.lt(s.abs(x), INF))
    return s.select(usual, s.copysign(t, x), x)
