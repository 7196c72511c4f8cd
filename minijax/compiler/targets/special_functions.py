"""Elementary functions of float32 for NVIDIA's special function unit.

Builds on exponential.py and error_function.py. The unit's results err by a few units: where they
are small beside the rest, formulas become shorter. Chapter 27. In CUDA: libdevice.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import cache
import math
from typing import Any

import numpy as np

from minijax.primitives.infix import copysign, fma, minimum, select

from ..error_function import _erf_inv_of_log
from ..exponential import FLOAT32, FORMATS, LOG_32, polynomial
from ..instructions import _constant_value, plain
from ..scalars import OPS

LN2 = FORMATS[FLOAT32].ln2
LOG2_E, LOG2_E_REST = 1.442695, 1.925963e-08
SIZE = 1 << 24  # integers below are floats
MAGIC = 1.5 * 2.0**23  # a sum with it is rounded to an integer
# (2**x - 1) / x as a polynomial for |x| <= 1.
EXP2 = (0.69314724, 0.24022669, 0.055503666, 0.009616841, 0.0013341551, 0.00015645691, 1.4926466e-5)
# (tanh(x) - x) / x³ as a polynomial in x² for |x| <= NEAR.
NEAR = 0.625
TANH = (-0.3333328, 0.13331433, -0.0537391, 0.020637358, -0.0057032597)
# erf(x) / x - 1 as a polynomial in x² for |x| <= ½; log2(erfc(x)) for ½ <= x <= 4.
ERF = (0.12837917, -0.3761261, 0.1128285, -0.026758259, 0.00471916)
LOG2_ERFC = (5.0075163e-05, -1.6283817, -0.91654378, -0.15251526, 0.033401813, -0.0047495565,
             0.00032177460)


def _unit(name: str) -> Callable[[Any], Any]:
    """An instruction of the unit, which takes a subnormal number for a zero."""
    return lambda x: plain(f"call float @llvm.nvvm.{name}.approx.ftz.f(float {{x}})", x)


_exp2, _log2, _inverse = map(_unit, ("ex2", "lg2", "rcp"))


def exp(x: Any) -> Any:
    """2**(2k) 2**(x log2(e) - 2k): 2**k comes in twice, so that results may end anywhere. The unit
    errs by two floats of its own, so that the fraction, in ±1, goes into a polynomial.
    """
    for word, limit in (("max", -104.0), ("min", 89.0)):  # a nan stays
        x = plain(f"call float @llvm.{word}imum.f32(float {{x}}, float {{y}})", x, x.const(limit))
    bias = MAGIC + FORMATS[FLOAT32].bias  # leaves k + 127 in the low bits
    shifted = fma(x, 0.5 * LOG2_E, bias)
    fraction = fma(x, LOG2_E_REST, fma(x, LOG2_E, fma(shifted, -2.0, 2.0 * bias)))
    scale = (shifted.bits() << 23).bits(FLOAT32)
    return fma(polynomial(EXP2, fraction), fraction, 1.0) * scale * scale


def tanh(x: Any) -> Any:
    """1 - 2 / (e**2|x| + 1) with the sign of x; a polynomial near 0."""
    a, square = abs(x), x * x
    near = fma(a * square, polynomial(TANH, square), a)
    far = fma(_inverse(_exp2(a * (2 * LOG2_E)) + 1.0), -2.0, 1.0)
    return copysign(select(a < NEAR, near, far), x)


def logistic(x: Any) -> Any:
    """1 / (1 + e**-x), written so that e**-|x| never overflows."""
    z = exp(-abs(x))
    part, total = select(x < 0.0, z, 1.0), z + 1.0
    inverse = _inverse(total)
    quotient = part * inverse
    return fma(fma(-quotient, total, part), inverse, quotient)


def _log_of_parts(f: Any, e: Any) -> Any:
    """log(1 + f) - e log 2; e is a float of 2**23 times its value."""
    rest = fma(polynomial(LOG_32, f), f, -0.5)
    return fma(e, -LN2 * 2.0**-23, fma(rest, f * f, f))


def _minus_exponent(x: Any) -> Any:
    """2**23 times the integer -e with √½ <= x / 2**e < √2."""
    root = int(np.float32(math.sqrt(0.5)).view(np.int32))
    return (root + (1 << 23) - 1 - x.bits()) & (-1 << 23)


def _is_positive(x: Any) -> Any:
    """Whether x is positive and finite: its bits are those of 1 to the largest number."""
    return x.bits("u4") - 1 < 0x7F7FFFFF


def log(x: Any) -> Any:
    """The natural logarithm: -inf at 0, nan below."""
    subnormal = x < 2.0**-126
    normal = select(subnormal, x * 2.0**23, x)
    minus_e = _minus_exponent(normal)
    lifted = select(subnormal, 23 * 2.0**23, x.const(0.0))
    y = _log_of_parts((normal.bits() + minus_e).bits(FLOAT32) - 1.0, minus_e.to(FLOAT32) + lifted)
    return select(_is_positive(x), y, _log2(normal))


def log1p(x: Any) -> Any:
    """log(1 + x), exact also where 1 + x rounds: f = (1 + x) / 2**e - 1 is formed from x itself."""
    total = x + 1.0
    minus_e = _minus_exponent(total)
    shrunk = (x.const(4.0).bits() + minus_e).bits(FLOAT32)  # 4 2**-e, a normal number
    f = fma(x, shrunk * 0.25, -fma(shrunk, -0.25, 1.0))
    y = _log_of_parts(f, minus_e.to(FLOAT32))
    return select(_is_positive(total), y, _log2(total))


def erf(x: Any) -> Any:
    """The error function: a polynomial up to ½, then 1 - erfc."""
    near = fma(x, polynomial(ERF, x * x), x)
    far = 1.0 - _exp2(polynomial(LOG2_ERFC, minimum(abs(x), 4.0)))
    return select(abs(x) < 0.5, near, copysign(far, x))


def erf_inv(x: Any) -> Any:
    """The inverse of erf; ±infinity at ±1, nan beyond. Of log(1 - x²) the unit has the fraction,
    which errs as little near 1 as elsewhere; x² is rounded as in the usual formula.
    """
    rest = 1.0 - x * x
    minus_e = _minus_exponent(rest)
    w = fma(minus_e.to(FLOAT32), LN2 * 2.**-23, _log2((rest.bits() + minus_e).bits(FLOAT32)) * -LN2)
    return select(abs(x) > 1.0, x.const(math.nan), _erf_inv_of_log(x, w))


def quotient(x: Any, y: Any) -> Any:
    """x / y for a y whose reciprocal serves many x; the nearest float, unless x is below 2**-100.

    Markstein's theorem: the last of these steps rounds right if the one before errs by a unit.
    """
    if (parts := reciprocal(_constant_value(y))) is not None:
        return fma(x, parts[0], x * parts[1])
    scale = select(abs(y) < 2.0**-100, 2.0**100, y.const(1.0))  # of a small y the reciprocal is inf
    x, y = x * scale, y * scale
    inverse = 1.0 / y
    result = first = x * inverse
    for _ in range(2):
        result = fma(fma(-result, y, x), inverse, result)
    return select(abs(result) > 0.0, result, first)


@cache
def reciprocal(y: float | None) -> tuple[float, float] | None:
    """1 / y in two parts of one sign, where `fma(x, high, x * low)` is the nearest float to x / y
    for every x (Brisebarre and Muller, 2008); None elsewhere.

    It errs by 2**-46. As integers of 24 bits, x / y is so near the middle n / 2**25 between two
    floats only if 2**24 x is y n plus 8 at most: these x are computed, and tried.
    """
    if y is None:
        return None
    exact, divisor = 1 / Fraction(float(y)), int(abs(np.frexp(y)[0]) * SIZE)
    high = np.float32(float(exact))
    if abs(Fraction(float(high))) > abs(exact):
        high = np.nextafter(high, np.float32(0))
    low = np.float32(float(exact - Fraction(float(high))))
    common = divisor & -divisor
    step, odd = SIZE // common, divisor // common
    near = [(divisor * n + k * common) // SIZE for k in range(-8 // common, 8 // common + 1) if k
            for n in range(SIZE + -k * pow(odd, -1, step) % step, 2 * SIZE, step)]
    x = np.array(near, np.float32)
    is_nearest = OPS["fma"].meaning(x, np.full_like(x, high), x * low) == x / np.float32(y)
    return (float(high), float(low)) if is_nearest.all() else None


FORMULAS = {f.__name__: f for f in (exp, tanh, logistic, log, log1p, erf, erf_inv)}
