"""Primitives of the gamma function: its logarithm, and the derivatives of that.

Stands on `families`.  Chapter 25, *exp from scratch*, has the functions these are made of.
In JAX: `jax/_src/lax/special.py`; Lanczos' formula is also XLA's.
"""

from __future__ import annotations

import math
import operator
from typing import Any


from minijax.core import Array
from minijax.primitives.algebra import mul
from minijax.primitives.examples import each_with, points
from minijax.primitives.families import elementwise, unary
from minijax.primitives.slots import FLOAT, elementary, elementwise_type, wide

# Lanczos' approximation with g = 7: gamma(z + 1) = sqrt(2 pi) (z + 7.5)^(z + 0.5) e^-(z + 7.5) A(z)
# with A(z) = a0 + a1 / (z + 1) + a2 / (z + 2) ….
_FIRST = 0.99999999999980993227684700473478
_LANCZOS = [676.520368121885098567009190444019, -1259.13921672240287047156078755283,
            771.3234287776530788486528258894, -176.61502916214059906584551354,
            12.507343278686904814458936853, -0.13857109526572011689554707,
            9.984369578019570859563e-6, 1.50563273514931155834e-7]


def _series(s: Any, z: Any) -> tuple[Any, Any]:
    """A(z) and its derivative."""
    total, slope = s.const(_FIRST, z.dtype), s.const(0, z.dtype)
    for i, coefficient in enumerate(_LANCZOS, 1):
        place = s.add(z, float(i))
        term = s.div(s.const(coefficient, z.dtype), place)
        total, slope = s.add(total, term), s.sub(slope, s.div(term, place))
    return total, slope


def _reflected(s: Any, x: Any) -> tuple[Any, Any]:
    """Whether x is on the left, where it is mirrored; and z, so that gamma(z + 1) serves."""
    left = s.lt(x, .5)
    return left, s.select(left, s.neg(x), s.sub(x, 1.))


def _log_shifted(s: Any, z: Any) -> Any:
    """``log(z + 7.5)``, exact for small z."""
    return s.add(elementary("log1p")(s, s.div(z, 7.5)), math.log(7.5))


def _lgamma(s: Any, x: Any) -> Any:
    left, z = _reflected(s, x)
    shifted, log_shifted = s.add(z, 7.5), _log_shifted(s, z)
    power = s.mul(s.sub(s.add(z, .5), s.div(shifted, log_shifted)), log_shifted)
    total, _ = _series(s, z)
    right = s.add(s.add(power, .5 * math.log(2 * math.pi)), elementary("log")(s, total))
    size = s.abs(x)
    part = s.sub(size, s.floor(size))
    part = s.select(s.gt(part, .5), s.sub(s.const(1., x.dtype), part), part)
    log_sine = elementary("log")(s, elementary("sin")(s, s.mul(part, math.pi)))
    mirrored = s.sub(s.sub(s.const(math.log(math.pi), x.dtype), log_sine), right)
    mirrored = s.select(s.eq(s.abs(log_sine), math.inf), s.neg(log_sine), mirrored)
    found = s.select(left, mirrored, right)
    found = s.select(s.or_(s.eq(x, 1.), s.eq(x, 2.)), s.const(0, x.dtype), found)
    return s.select(s.eq(size, math.inf), s.const(math.inf, x.dtype), found)


def _digamma(s: Any, x: Any) -> Any:
    left, z = _reflected(s, x)
    total, slope = _series(s, z)
    found = s.sub(s.add(_log_shifted(s, z), s.div(slope, total)),
                  s.div(s.const(7., x.dtype), s.add(z, 7.5)))
    nearest = s.floor(s.add(x, .5))
    angle = s.mul(s.sub(x, nearest), math.pi)
    cotangent = s.div(elementary("cos")(s, angle), elementary("sin")(s, angle))
    mirrored = s.sub(found, s.mul(cotangent, math.pi))
    pole = s.and_(s.le(x, 0.), s.eq(x, s.floor(x)))
    return s.select(pole, s.const(math.nan, x.dtype), s.select(left, mirrored, found))


# ── The derivatives of digamma ───────────────────────────────────────────────────────────────

_TERMS = 10
_BERNOULLI = [1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510]


def _polygamma(s: Any, x: Any, *, n: int) -> Any:
    """By the sum of ``(x + k)^-(n + 1)``: some terms, and Euler and Maclaurin for the others."""
    one, order = s.const(1., x.dtype), n + 1

    def inverse_power(y: Any, exponent: int) -> Any:
        power = y
        for _ in range(exponent - 1):
            power = s.mul(power, y)
        return s.div(one, power)

    total = inverse_power(x, order)
    for k in range(1, _TERMS):
        total = s.add(total, inverse_power(s.add(x, float(k)), order))
    last = s.add(x, float(_TERMS))
    term = inverse_power(last, order)
    total = s.add(total, s.add(s.div(s.mul(term, last), float(n)), s.mul(term, .5)))
    inverse_square = s.div(one, s.mul(last, last))
    rest = s.const(0., x.dtype)
    for j in reversed(range(len(_BERNOULLI))):
        factor = math.prod(range(order, order + 2 * j + 1)) / math.factorial(2 * j + 2)
        rest = s.add(s.mul(rest, inverse_square), _BERNOULLI[j] * factor)
    total = s.add(total, s.mul(s.div(term, last), rest))
    found = s.mul(total, float((-1) ** (n + 1) * math.factorial(n)))
    return s.select(s.gt(x, 0.), found, s.const(math.nan, x.dtype))


polygamma_p = elementwise(
    "polygamma",
    abstract_eval=elementwise_type("polygamma", [FLOAT]),
    derivatives=[lambda t, y, x, n: mul(t, polygamma(n + 1, x))],
    element=wide(_polygamma),
    examples=each_with(points((.5, 3.), special=False), {"n": 1}, {"n": 2}))


def polygamma(n: int, x: Any) -> Array:
    """The n-th derivative of digamma, for positive x.

    >>> round(float(polygamma(1, 1.)), 4)
    1.6449
    """
    # JAX: n may be an array, and x negative.
    return polygamma_p.bind(x, n=operator.index(n))


digamma_p, digamma = unary(
    "digamma", "The derivative of the logarithm of the gamma function.", accepts=FLOAT,
    derivative=lambda t, y, x: mul(t, polygamma(1, x)),
    element=wide(_digamma),
    examples=points((.5, 3.)))

lgamma_p, lgamma = unary(
    "lgamma", "The logarithm of the size of the gamma function.", accepts=FLOAT,
    derivative=lambda t, y, x: mul(t, digamma(x)),
    element=wide(_lgamma),
    examples=points((.5, 3.)))
