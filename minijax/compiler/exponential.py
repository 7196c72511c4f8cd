"""exp, log and functions derived from them, as polynomials in the scalar operations.

Builds on `primitives.infix`. Coefficients without a name beside them are minimax fits (Remez
exchange in 60 digits, relative error below a quarter unit in the last place). Chapter 25.
In JAX: XLA's own polynomials for exp and log, libm for the rest.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.primitives.infix import copysign, floor, fma, select, shr_arithmetic, sqrt

FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
INF, NAN = math.inf, math.nan


class Format(NamedTuple):
    """How a float is laid out; `ln2` and `ln2_rest` sum to log 2."""

    fraction: int  # bits behind the leading one
    bias: int  # of the exponent
    ln2: float
    ln2_rest: float

    @property
    def span(self) -> float:
        """An exponent with which 2**span is infinite, and 2**-span rounds to 0."""
        return self.bias + self.fraction + 1.0


FORMATS = {
    FLOAT32: Format(23, 127, 0.6931472, -1.904654299957768e-09),
    FLOAT64: Format(52, 1023, 0.6931471805599453, 2.3190468138462996e-17),
}


def polynomial(coefficients: Sequence[float], x: Any) -> Any:
    """c[0] + c[1] x + c[2] x² + … by Horner's scheme, each step one rounding."""
    total: Any = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        total = fma(total, x, coefficient)
    return total


def clamp(x: Any, low: float, high: float) -> Any:
    """x held between two bounds; nan stays nan."""
    x = select(x < low, low, x)
    return select(x > high, high, x)


def nearest(x: Any, factor: float = 1.0) -> tuple[Any, Any]:
    """The integer next to a moderate x * factor, as a float and as an integer.

    Adding the magic number rounds, and leaves the integer in the low bits.
    """
    magic = 1.5 * 2.0**FORMATS[x.dtype].fraction
    shifted = fma(x, factor, magic)
    return shifted - magic, shifted.bits() - x.const(magic).bits()


def power_of_two(k: Any, dtype: np.dtype) -> Any:
    """2**k for an integer k in the range of normal numbers: k goes into the exponent's place."""
    return ((k + FORMATS[dtype].bias) << FORMATS[dtype].fraction).bits(dtype)


# exp

# (exp(r) - 1 - r) / r² for |r| <= log(2) / 2.
EXP = {FLOAT32: (0.49999997, 0.16666543, 0.041667216, 0.008366577, 0.0013881277),
       FLOAT64: (0.5, 0.16666666666666677, 0.041666666666666505, 0.008333333333321612,
                 0.0013888888888965696, 0.00019841269886195596, 2.480158716560958e-05,
                 2.7557244118044046e-06, 2.7557408853593504e-07, 2.5109076111451326e-08,
                 2.0873325742022046e-09)}


def reduced_expm1(x: Any, low: Any = None) -> tuple[Any, Any, Any]:
    """Return k, r and expm1(r) - r, where x + low = k log 2 + r and |r| <= log(2) / 2."""
    form = FORMATS[x.dtype]
    multiple, k = nearest(x, 1 / math.log(2))
    r = fma(multiple, -form.ln2, x)
    r = fma(multiple, -form.ln2_rest, r if low is None else r + low)
    return k, r, r * r * polynomial(EXP[x.dtype], r)


def _scaled(x: Any, k: Any) -> Any:
    """x 2**k in two steps, so that it can end at infinity or in the subnormal numbers."""
    half = shr_arithmetic(k, 1)
    return x * power_of_two(half, x.dtype) * power_of_two(k - half, x.dtype)


def exp(x: Any) -> Any:
    """e**x.

    >>> from minijax.compiler.scalars import NumpyScalars
    >>> from minijax.primitives.infix import infix
    >>> infix(exp)(NumpyScalars(), np.float32([0, 1, -np.inf, 100]))
    array([1.       , 2.7182817, 0.       ,       inf], dtype=float32)
    """
    return exp_of_sum(x)


def exp_of_sum(x: Any, low: Any = None, doublings: int = 0) -> Any:
    """exp(x + low) 2**doublings, where low is a small correction to x (None: nothing)."""
    form = FORMATS[x.dtype]
    limit = form.span * form.ln2
    k, r, rest = reduced_expm1(clamp(x, -limit, limit), low)
    return _scaled((r + rest) + 1.0, k + doublings)


def exp2(x: Any) -> Any:
    """2**x: the integer part is an exponent, the rest goes through exp."""
    form = FORMATS[x.dtype]
    x = clamp(x, -form.span, form.span)
    multiple, k = nearest(x)
    r = (x - multiple) * form.ln2
    return _scaled(fma(r * r, polynomial(EXP[x.dtype], r), r) + 1.0, k)


def expm1(x: Any) -> Any:
    """e**x - 1, without cancellation near 0.

    2**k (1 + p) - 1 is 2 (p t + (t - ½)) with t = 2**(k-1), which never overflows too early.
    """
    form = FORMATS[x.dtype]
    k, r, rest = reduced_expm1(clamp(x, -form.fraction, form.bias * form.ln2 + 1.0))
    t = power_of_two(k - 1, x.dtype)
    y = fma(rest, t, fma(r, t, t - 0.5)) * 2.0
    return select(abs(x) < 2.0**-(form.fraction + 2), x, y)


def tanh(x: Any) -> Any:
    """expm1(2|x|) / (2 + expm1(2|x|)) with the sign of x."""
    e = expm1(clamp(abs(x) * 2.0, 0.0, 60.0))
    return copysign(_quotient(e, 2.0, e), x)


def logistic(x: Any) -> Any:
    """1 / (1 + e**-x), written so that e**-|x| never overflows."""
    z = exp(-abs(x))
    return _quotient(select(x < 0.0, z, 1.0), 1.0, z)


def _quotient(x: Any, y: float, z: Any) -> Any:
    """x / (y + z), corrected for what the sum and the division rounded away."""
    total = z + y
    inverse = 1.0 / total
    quotient = x * inverse
    low = (y - total) + z
    missing = fma(-quotient, low, fma(-quotient, total, x))
    return fma(missing, inverse, quotient)


def sinh(x: Any) -> Any:
    """(e + e / (e + 1)) / 2 with e = expm1|x|; of a large one e**|x| / 2, which overflows later."""
    a = abs(x)
    large = a > FORMATS[x.dtype].fraction
    e = expm1(select(large, 0.0, a))
    return copysign(select(large, exp_of_sum(a, doublings=-1), (e + e / (e + 1.0)) * 0.5), x)


def cosh(x: Any) -> Any:
    """(e**|x| + e**-|x|) / 2."""
    half = exp_of_sum(abs(x), doublings=-1)
    return half + 0.25 / half


# log

# (log(1 + f) - f + f²/2) / f³ for √½ <= 1 + f <= √2, and log 2 in two parts: those of Cephes
# (Moshier, 1984), as in Eigen and XLA, whose digits these are.
LOG_32 = (3.3333331174e-1, -2.4999993993e-1, 2.0000714765e-1, -1.6668057665e-1, 1.4249322787e-1,
          -1.2420140846e-1, 1.1676998740e-1, -1.1514610310e-1, 7.0376836292e-2)
LN2_32 = 0.693359375, -2.12194440e-4
# (atanh(t) / t - 1 - t²/3) / t⁴ as a polynomial in t², for |t| <= (√2 - 1) / (√2 + 1), in float64.
ATANH_64 = (0.20000000000001136, 0.14285714285045947, 0.11111111260676566, 0.0909089211856696,
            0.07693381763419098, 0.06628334479088839, 0.06598874492071004)


def _exponent_of(x: Any) -> Any:
    """The integer e with √½ <= x / 2**e < √2, for a normal x."""
    root = x.const(math.sqrt(0.5))
    return shr_arithmetic(x.bits() - root.bits(), FORMATS[x.dtype].fraction)


def _divided(x: Any, e: Any) -> Any:
    """x / 2**e, by taking e from the exponent; both x and the result must be normal."""
    return (x.bits() - (e << FORMATS[x.dtype].fraction)).bits(x.dtype)


def _split(x: Any) -> tuple[Any, Any]:
    """Return m - 1 and e as floats, x = m 2**e with √½ <= m < √2, for finite positive x."""
    form = FORMATS[x.dtype]
    subnormal = x < 2.0**(1 - form.bias)
    normal = select(subnormal, x * 2.0**form.fraction, x)
    e = _exponent_of(normal)
    lifted = select(subnormal, float(form.fraction), x.const(0.0))
    return _divided(normal, e) - 1.0, e.to(x.dtype) - lifted


def _log_of_parts(f: Any, e: Any) -> Any:
    """log(1 + f) + e log 2."""
    square = f * f
    if f.dtype == FLOAT32:
        (ln2, ln2_rest), cube = LN2_32, square * f
        series = polynomial([polynomial(LOG_32[k:k + 3], f) for k in (0, 3, 6)], cube)
        return fma(e, ln2, fma(square, -0.5, f) + fma(series, cube, e * ln2_rest))
    # As in fdlibm (Sun, 1993): 2 atanh(t) with t = f / (2 + f), of which fewer terms do.
    form, t = FORMATS[f.dtype], f / (f + 2.0)
    z = t * t
    series = z * polynomial((1 / 3, *ATANH_64), z)
    half = square * 0.5
    rest = half - fma(e, form.ln2_rest, t * fma(series, 2.0, half))
    return fma(e, form.ln2, f - rest)


def log(x: Any) -> Any:
    """The natural logarithm: -inf at 0, nan below."""
    y = _log_of_parts(*_split(x))
    y = select(x < INF, y, x)
    return select(x > 0.0, y, select(x == 0.0, -INF, x.const(NAN)))


# (log(1 + x) - x + x²/2) / x³ for |x| < √2 - 1 as a quotient of polynomials: Cephes', as in XLA.
LOG1P_32 = ((20.03955349920128, 57.11296359058554, 60.94966798098779, 29.911919328553072,
             6.5787325942061045, 0.49854102823193377, 4.5270000862445198e-05),
            (60.11866049760384, 216.42788614495947, 309.0987222531206, 221.76239823732857,
             83.0475659679672, 15.062909083469192, 1.0))


def log1p(x: Any) -> Any:
    """log(1 + x), exact also where 1 + x rounds."""
    if x.dtype == FLOAT64:
        return _log1p_64(x)
    above, below = (polynomial(coefficients, x) for coefficients in LOG1P_32)
    square = x * x
    near = x + fma(square, -0.5, x * square * (above / below))
    return select(abs(x) < math.sqrt(2) - 1, near, log(x + 1.0))


def _log1p_64(x: Any) -> Any:
    """log(1 + x) of a float64, by f = (1 + x) / 2**e - 1, which is formed from x itself."""
    form = FORMATS[x.dtype]
    e = _exponent_of(x + 1.0)
    # 2**-e - 1 through 4 2**-e, which is normal for the largest e as well.
    shrunk = fma(_divided(x.const(4.0), e), 0.25, -1.0)
    y = _log_of_parts(_divided(x, e) + shrunk, e.to(x.dtype))
    y = select((x < INF) & (abs(x) >= 2.0**(1 - form.bias)), y, x)
    return select(x > -1.0, y, select(x == -1.0, -INF, x.const(NAN)))


def asinh(x: Any) -> Any:
    """log(a + √(a² + 1)) of a = |x|, arranged for log1p; a large one is log(2a)."""
    a = abs(x)
    square = a * a
    near = a + square / (sqrt(square + 1.0) + 1.0)
    return copysign(_log1p_or_log_of_twice(near, a), x)


def acosh(x: Any) -> Any:
    """log1p(t + √(2t + t²)) with t = x - 1; a large one is log(2x)."""
    t = x - 1.0
    y = _log1p_or_log_of_twice(t + sqrt(fma(t, t, t * 2.0)), x)
    return select(x < 1.0, x.const(NAN), y)


def _log1p_or_log_of_twice(near: Any, x: Any) -> Any:
    """log(1 + near); log(2x) where the square of x may overflow, and 1 is negligible."""
    large = x > 2.0**(FORMATS[x.dtype].fraction + 3)
    y = log1p(select(large, x, near))
    return select(large, y + math.log(2), y)


def atanh(x: Any) -> Any:
    """(log1p(x) - log1p(-x)) / 2."""
    return (log1p(x) - log1p(-x)) * 0.5


# pow

Pair = tuple[Any, Any]  # an unevaluated sum of a number and a small one, with twice the digits
THIRD = 0.3333333333333333, 1.850371707708594e-17  # of float64


def exact_product(x: Any, y: Any) -> Pair:
    """x y as a rounded product and its exact error."""
    high = x * y
    return high, fma(x, y, -high)


def exact_sum(x: Any, y: Any) -> Pair:
    """x + y as a rounded sum and its exact error, for |x| >= |y|."""
    high = x + y
    return high, (x - high) + y


def _product(x: Pair, y: Pair) -> Pair:
    high, low = exact_product(x[0], y[0])
    return high, fma(x[0], y[1], fma(x[1], y[0], low))


def _log_extended(x: Any) -> Pair:
    """log(x) of a finite positive float64.

    As Juffa does for CUDA's powf: 2 atanh(q) with q = f / (2 + f), all leading terms in pairs.
    """
    form = FORMATS[x.dtype]
    f, e = _split(x)
    inverse = 1.0 / (f + 2.0)
    ratio = f * inverse
    q = ratio, inverse * fma(ratio, -f, fma(ratio, -2.0, f))
    z = _product(q, q)
    cube = _product(z, q)
    third, third_low = THIRD
    c, c_low = exact_sum(third, z[0] * polynomial(ATANH_64, z[0]))
    term, term_low = _product(cube, (c, c_low + third_low))
    series, series_low = exact_sum(ratio, term)
    series_low += (q[1] + term_low)
    whole, whole_low = exact_product(e, form.ln2)
    high, low = exact_sum(whole, series + series)
    # With e = 0 the larger term comes second; its sum with 0 is exact all the same.
    low += (fma(series_low, 2.0, whole_low) + e * form.ln2_rest)
    return exact_sum(high, low)


def _power(a: Any, y: Any, y_low: Any = 0.0) -> Any:
    """a**(y + y_low), for a >= 0 and a finite y; in float64 for float32, which is rounded once."""
    if a.dtype == FLOAT32:
        return exp(log(a.to(FLOAT64)) * (y.to(FLOAT64) + y_low)).to(FLOAT32)
    high, low = _log_extended(a)
    high = select(a == 0.0, -INF, select(a < INF, high, a))
    product, rest = _product((high, low), (y, y_low))
    return exp_of_sum(product, select(abs(product) < 2 * FORMATS[a.dtype].span, rest, 0.0))


def pow(x: Any, y: Any) -> Any:
    """x**y as C99 has it: 1 for y = 0 or x = 1, odd integers keep the sign, else nan for x < 0."""
    size = _power(abs(x), clamp(y, -2.0**64, 2.0**64))
    whole, half = floor(y) == y, y * 0.5
    odd = whole & (floor(half) != half)
    result = select(odd, copysign(size, x), size)
    result = select((x < 0.0) & (x > -INF) & ~whole, NAN, result)
    return select((y == 0.0) | (x == 1.0), 1.0, result)


def cbrt(x: Any) -> Any:
    """The cube root: a power, with the sign of x."""
    third, third_low = THIRD
    return copysign(_power(abs(x), x.to(FLOAT64).const(third), third_low), x)
