"""Primitives of the gamma function: its logarithm, and the derivatives of the logarithm.

Builds on `families`.  Chapter 25, *exp from scratch*, has the functions that these use.
In JAX: `jax/_src/lax/special.py`; Lanczos' formula is also XLA's.
"""

import math
import operator
from typing import Any

from minijax.core import Array, cannot
from minijax.primitives import algebra, examples, families
from minijax.primitives.infix import floor, infix, on_numbers, select
from minijax.primitives.slots import FLOAT, elementary, wide

log, log1p, sin, cos, power = (on_numbers(elementary(name))
                               for name in ("log", "log1p", "sin", "cos", "pow"))

# Lanczos' approximation with g = 7: gamma(z + 1) = sqrt(2 pi) (z + 7.5)^(z + 0.5) e^-(z + 7.5) A(z)
# with A(z) = a0 + a1 / (z + 1) + a2 / (z + 2) ….
_FIRST = 0.99999999999980993227684700473478
_LANCZOS = [676.520368121885098567009190444019, -1259.13921672240287047156078755283,
            771.3234287776530788486528258894, -176.61502916214059906584551354,
            12.507343278686904814458936853, -0.13857109526572011689554707,
            9.984369578019570859563e-6, 1.50563273514931155834e-7]


def _series(z: Any) -> tuple[Any, Any]:
    """A(z) and its derivative."""
    total, slope = z.const(_FIRST), z.const(0)
    for i, coefficient in enumerate(_LANCZOS, 1):
        place = z + float(i)
        term = coefficient / place
        total, slope = total + term, slope - term / place
    return total, slope


def _reflected(x: Any) -> tuple[Any, Any]:
    """Whether x is reflected, being below 1/2; and z, for which gamma(z + 1) is computed."""
    left = x < .5
    return left, select(left, -x, x - 1.)


def _log_shifted(z: Any) -> Any:
    """``log(z + 7.5)``, exact for small z."""
    return log1p(z / 7.5) + math.log(7.5)


def _lgamma(x: Any) -> Any:
    left, z = _reflected(x)
    shifted, log_shifted = z + 7.5, _log_shifted(z)
    power = ((z + .5) - shifted / log_shifted) * log_shifted
    right = power + .5 * math.log(2 * math.pi) + log(_series(z)[0])
    size = abs(x)
    part = size - floor(size)
    log_sine = log(sin(select(part > .5, 1. - part, part) * math.pi))
    mirrored = math.log(math.pi) - log_sine - right
    mirrored = select(abs(log_sine) == math.inf, -log_sine, mirrored)
    finite = select((x == 1.) | (x == 2.), 0., select(left, mirrored, right))
    return select(size == math.inf, math.inf, finite)


def _digamma(x: Any) -> Any:
    left, z = _reflected(x)
    total, slope = _series(z)
    right = _log_shifted(z) + slope / total - 7. / (z + 7.5)
    angle = (x - floor(x + .5)) * math.pi
    mirrored = right - cos(angle) / sin(angle) * math.pi
    pole = (x <= 0.) & (x == floor(x))
    return select(pole, math.nan, select(left, mirrored, right))


# ── The derivatives of digamma ───────────────────────────────────────────────────────────────

_TERMS = 10
_BERNOULLI = [1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510]


def _polygamma(x: Any, *, n: int) -> Any:
    """Where x is negative, by reflection, with a derivative of the cotangent (DLMF 5.15.6)."""
    left, sign = x <= 0., float((-1) ** n)
    right = _polygamma_of_positive(select(left, 1. - x, x), n)
    angle = (x - floor(x + .5)) * math.pi
    cotangent, slope = cos(angle) / sin(angle), x.const(0.)
    for coefficient in reversed(_cotangent_derivative(n)):
        slope = slope * cotangent + float(coefficient)
    mirrored = right * sign - slope * math.pi ** (n + 1)
    pole = left & (x == floor(x))
    return select(pole, -sign * math.inf, select(left, mirrored, right))


def _cotangent_derivative(n: int) -> list[int]:
    """The n-th derivative of the cotangent, as a polynomial in it, lowest power first."""
    powers = [0, 1]
    for _ in range(n):
        slopes = [k * coefficient for k, coefficient in enumerate(powers)][1:]
        powers = [-a - b for a, b in zip([*slopes, 0, 0], [0, 0, *slopes], strict=True)]
    return powers


def _polygamma_of_positive(x: Any, n: int) -> Any:
    """The sum of ``(x + k)^-(n + 1)``: ten terms, and Euler-Maclaurin's formula for the rest."""
    def inverse_power(y: Any) -> Any:
        return 1. / math.prod([y] * n, start=y)

    total = inverse_power(x)
    for k in range(1, _TERMS):
        total += inverse_power(x + float(k))
    last = x + float(_TERMS)
    term = inverse_power(last)
    total += 1. / math.prod([last] * (n - 1), start=last) / float(n) + term * .5
    inverse_square = 1. / (last * last)
    rest = x.const(0.)
    for j in reversed(range(len(_BERNOULLI))):
        factor = math.prod(range(n + 1, n + 2 * j + 2)) / math.factorial(2 * j + 2)
        rest = rest * inverse_square + _BERNOULLI[j] * factor
    total += term / last * rest
    return total * float((-1) ** (n + 1) * math.factorial(n))


polygamma_p = families.elementwise(
    "polygamma",
    accepts=[FLOAT], primitive_class=families.FormulaPrimitive,
    derivatives=[lambda t, y, x, n: algebra.mul(t, polygamma(n + 1, x))],
    element=wide(infix(_polygamma)),
    examples=examples.each_with(examples.points((.5, 3.), special=False), {"n": 1}, {"n": 2}))


def polygamma(n: int, x: Any) -> Array:
    """The n-th derivative of digamma.

    >>> round(float(polygamma(1, 1.)), 4)
    1.6449
    """
    # JAX: n may be an array.
    return polygamma_p.bind(x, n=operator.index(n))


# ── Hurwitz' zeta function ───────────────────────────────────────────────────────────────────

def zeta_series(s: Any, q: Any, power: Any) -> Any:
    """The sum of ``(q + k)^-s``: ten terms, and Euler and Maclaurin's formula for the rest."""
    total = power(q, -s)
    for k in range(1, _TERMS):
        total += power(q + float(k), -s)
    last = q + float(_TERMS)
    term = power(last, -s)
    total += term * last / (s - 1.) + term * .5
    rest = term * (s / last)
    for j, bernoulli in enumerate(_BERNOULLI, 1):
        total += rest * (bernoulli / math.factorial(2 * j))
        rest = rest * (s + float(2 * j - 1)) / last * ((s + float(2 * j)) / last)
    return total


def _zeta(s: Any, q: Any) -> Any:
    total = zeta_series(s, q, power)
    pole = (q <= 0.) & (q == floor(q))
    out = select(pole, math.inf, total)
    out = select((q < 0.) & ~pole & (s != floor(s)), math.nan, out)
    out = select(q == math.inf, 0., out)
    out = select((s < 1.) | (s != s) | (q != q), math.nan, out)
    return select(s == 1., math.inf, out)


zeta_p = families.elementwise(
    "zeta", accepts=[FLOAT, FLOAT], primitive_class=families.FormulaPrimitive,
    jvp=cannot("its derivative with respect to x has no formula"),
    element=wide(infix(_zeta)), examples=examples.points((1.5, 4.), (.5, 3.)))


def zeta(x: Any, q: Any) -> Array:
    """Hurwitz' zeta function: the sum of ``(q + k)^-x`` over all integers k from 0 on.

    Args:
      x: the exponent, above 1: an array of a floating dtype.
      q: the offset: an array of the same dtype.

    >>> zeta(2., 1.)
    Array(1.6449339, dtype=float32, weak_type=True)

    Raises:
      TypeError: for other dtypes.
    """
    return zeta_p.bind(x, q)


digamma_p, digamma = families.by_long_formula(
    "digamma", "The derivative of the logarithm of the gamma function.",
    derivative=lambda t, y, x: algebra.mul(t, polygamma(1, x)),
    element=wide(infix(_digamma)),
    examples=examples.points((.5, 3.)))

lgamma_p, lgamma = families.by_long_formula(
    "lgamma", "The logarithm of the absolute value of the gamma function.",
    derivative=lambda t, y, x: algebra.mul(t, digamma(x)),
    element=wide(infix(_lgamma)),
    examples=examples.points((.5, 3.)))
