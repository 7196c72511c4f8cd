"""erf, erfc and the inverse of erf.

Builds on exponential.py. Coefficients without a name beside them are minimax fits, as there.
Chapter 25. In JAX: erf and erf_inv of XLA's chlo dialect; erf_inv is the same formula.
"""

import math
from typing import Any

from minijax.primitives.infix import copysign, fma, select, sqrt

from .exponential import (FLOAT32, FLOAT64, INF, clamp, exact_product, exp_of_sum, log1p, nearest,
                          polynomial, power_of_two)

# erf(x) / x - 1 as a polynomial in x² for |x| <= 1.
ERF = (0.1283791670955126, -0.3761263890318375, 0.11283791670954857, -0.026866170645072893,
       0.005223977624780859, -0.0008548326978741747, 0.00012055331036881943,
       -1.4925593506447363e-05, 1.646097280971535e-06, -1.6350025143827995e-07,
       1.4657879308045429e-08, -1.1365663897562766e-09, 5.945258279306209e-11)
# The same in float32, in x² - 1.0625 for |x| < 1.42; erf(x) in x - 2.875 for 1.42 <= x <= 4.
ERF_NEAR = (-0.17044355, -0.20687014, 0.05427146, -0.011980901, 0.0022195096, -0.00035127054,
            4.9714243e-05, -6.133807e-06)
ERF_FAR = (0.99995214, 0.00029026173, -0.0008337341, 0.001501976, -0.0018880246, 0.0017153911,
           -0.0011192994, 0.0005266121, -0.00016723684, -1.8074215e-05, 5.67057e-05,
           -1.12230755e-05, -5.543768e-06)
# (1 + 2x) exp(x²) erfc(x) as a polynomial in (x - 3.75) / (x + 3.75), for ½ <= x until erfc is 0
# (Shepherd and Laframboise, 1981).
ERFC = (1.2375126308378275, -0.140240598585547, 0.0035854154854657954, 0.08227673849014817,
        -0.10880393014185276, 0.09230432116032011, -0.05869339858663336, 0.028362277419147406,
        -0.009746579601765601, 0.001755625857716179, 0.0002937140326649736, -0.00029015414250037303,
        5.164719302983809e-05, 2.2384580576024875e-05, -1.1437815339577411e-05,
        -9.746228853332465e-07, 1.7381185202862169e-06, -5.523468065517785e-08,
        -2.4059877794480187e-07, 2.1079594963992068e-08, 2.467253424612837e-08,
        -2.4509110215471315e-09)


def _erf_near_zero(x: Any) -> Any:
    return fma(x, polynomial(ERF, x * x), x)


def _erfc_of_positive(a: Any) -> Any:
    """erfc(a) for a >= ½; exp(-a²) takes a² in two parts, as its rounding would be magnified."""
    a = clamp(a, 0.5, 28.0)
    scaled = polynomial(ERFC, (a - 3.75) / (a + 3.75))
    square, low = exact_product(a, a)
    gauss = exp_of_sum(-square, -low)
    return (scaled / fma(a, 2.0, 1.0)) * gauss


# (2**r - 1) / r for |r| <= ½, to 2e-9.
EXP2 = (0.693147202855, 0.240226479136, 0.0555033247116, 0.00961843735743, 0.00133988744037,
        0.000153533619502)


def _exp2(x: Any, factor: float) -> Any:
    """2**(x factor) to 9 digits, for normal results."""
    multiple, k = nearest(x, factor)
    r = fma(x, factor, -multiple)
    return fma(r, polynomial(EXP2, r), 1.0) * power_of_two(k, x.dtype)


def _erf_of_float32(x: Any) -> Any:
    """One polynomial, whose variable and coefficients depend on the size of x."""
    a = abs(x)
    near = a < 1.42
    variable = select(near, fma(x, x, -1.0625), select(a > 4.0, 4.0, a) - 2.875)
    *few, last = ERF_NEAR
    rest = select(near, last, polynomial(ERF_FAR[len(few):], variable))
    chosen = [select(near, x.const(c), d) for c, d in zip(few, ERF_FAR, strict=False)]
    p = polynomial([*chosen, rest], variable)
    return select(near, fma(x, p, x), copysign(p, x))


def erf(x: Any) -> Any:
    """The error function: of a float64 a polynomial up to 1, then 1 - erfc, which counts for 0.16
    at most.
    """
    if x.dtype == FLOAT32:
        return _erf_of_float32(x)
    a = abs(x)
    return select(a < 1.0, _erf_near_zero(x), copysign(1.0 - _erfc_of_positive(a), x))


# (x + 3.25) exp(x²) erfc(x) as a polynomial in 1 / (x + 3.25) for 0 <= x <= 10.5, to 1e-9.
ERFC_LOW = (0.5642046871, 1.8322153606, 5.7337159298, 15.300599096, 65.152801732, -83.176206875,
            1621.4992048, -5874.0948003, 20041.252946, -33452.393741, 20179.393025)


def erfc(x: Any) -> Any:
    """1 - erf(x), without cancellation for large x.

    That of a float32 is a float64 to 9 digits: the roundings of its many factors would add up.
    """
    a = abs(x)
    if x.dtype == FLOAT32:
        a = clamp(a, 0.0, 10.5).to(FLOAT64)
        inverse = 1.0 / (a + 3.25)
        far = polynomial(ERFC_LOW, inverse) * inverse * _exp2(a * a, -1 / math.log(2))
    else:
        far = _erfc_of_positive(a)
    far = select(x < 0.0, 2.0 - far, far)
    return far.to(FLOAT32) if x.dtype == FLOAT32 else select(a < 0.5, 1.0 - _erf_near_zero(x), far)


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
        -4.1126339803469836976e-09, 1.051212273321532285e-09, -5.4154120542946279317e-11,
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


def erf_inv(x: Any) -> Any:
    """The inverse of erf; ±infinity at ±1, nan beyond."""
    return _erf_inv_of_log(x, -log1p(-x * x))


def _erf_inv_of_log(x: Any, w: Any) -> Any:
    """The inverse of erf from w = -log(1 - x²)."""
    (limit, center, first), *others = ERF_INV_32 if x.dtype == FLOAT32 else ERF_INV_64
    p = polynomial(first, w - center)
    root = sqrt(w)
    for upper, center, coefficients in others:
        p = select(w < limit, p, polynomial(coefficients, root - center))
        limit = upper
    return select(abs(x) == 1.0, x * INF, p * x)
