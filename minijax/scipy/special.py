"""`minijax.scipy.special`: functions of probability and information theory, Bessel functions.

Builds on `nn`, `gamma`, `integrals`, `hypergeometric`.  Chapter 20, *Precision*; chapter 10 for
their own derivative rules.
In JAX: `jax/_src/scipy/special.py`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

from minijax import lax, numpy as jnp
from minijax.core import Array, refuse
from minijax.custom.custom_jvp_vjp import custom_jvp
from minijax.lax.special import polynomial
from minijax.nn import normalisers
from minijax.nn.normalisers import logsumexp as logsumexp
from minijax.numpy.arguments import ArrayLike, Axes, Inexact, Real, public, weak_if_scalar
from minijax.numpy.sequences import i0_of_floats
from minijax.scipy.arguments import (promote_to_float as promote_to_float, strong_float,
                                     with_derivatives)
from minijax.scipy.gamma import (bernoulli, beta, betainc, betaln, comb, digamma, factorial, gamma,
                                 gammainc, gammaincc, gammaln, gammasgn, loggamma, multigammaln,
                                 poch, polygamma, zeta)
from minijax.scipy.hypergeometric import bessel_jn, hyp1f1, hyp2f1, lpmn_values, sph_harm_y
from minijax.scipy.integrals import (dawsn, erfcx, exp1, expi, expn, fresnel, owens_t, sici, spence,
                                     wofz)
from minijax.transforms.prepared import export_all as _export_all


def softmax(x: ArrayLike, /, *, axis: Axes = None) -> Array:
    """``exp(x)``, divided by its sum along the axis; over all axes by default.

    >>> softmax(jnp.array([1., 1.]))
    Array([0.5, 0.5], dtype=float32)
    """
    return normalisers.softmax(x, axis)


def log_softmax(x: ArrayLike, /, *, axis: Axes = None) -> Array:
    """The logarithm of the softmax, without underflow; over all axes by default.

    >>> log_softmax(jnp.array([0.]))
    Array([0.], dtype=float32)
    """
    return normalisers.log_softmax(x, axis)


# ── The error function and the logistic function ─────────────────────────────────────────────

def erf(x: Inexact) -> Array:
    """The error function: ``2 / sqrt(pi)`` times the integral of ``exp(-t²)`` from 0 to x.

    >>> erf(0.)
    Array(0., dtype=float32, weak_type=True)
    """
    return lax.erf(x)


def erfc(x: Inexact) -> Array:
    """``1 - erf(x)``, exact where erf is near one.

    >>> erfc(0.)
    Array(1., dtype=float32, weak_type=True)
    """
    return lax.erfc(x)


def erfinv(x: Inexact) -> Array:
    """The y for which ``erf(y) = x``.

    >>> erfinv(0.)
    Array(0., dtype=float32, weak_type=True)
    """
    return lax.erf_inv(x)


def expit(x: Inexact) -> Array:
    """The logistic function ``1 / (1 + exp(-x))``.

    >>> expit(0.)
    Array(0.5, dtype=float32, weak_type=True)
    """
    return lax.logistic(x)


@with_derivatives(lambda t, out, x: t / (x * (1 - x)))  # simpler than that of the quotient
def logit(x: ArrayLike) -> Array:
    """The inverse of the logistic function: ``log(x / (1 - x))``.

    >>> logit(0.5)
    Array(0., dtype=float32, weak_type=True)
    """
    x = weak_if_scalar(x)
    return jnp.log(x / (1 - x))


# ── x log y and relatives, where zero times infinity is zero ─────────────────────────────────

def _zero_where_zero(x: Any, y: Any, product: Any) -> Any:
    is_zero = (x == 0) & (y == y)  # but nan for nan
    return jnp.where(is_zero, jnp.zeros_like(product), product)


@with_derivatives(lambda t, out, x, y: t * jnp.log(y), lambda t, out, x, y: t * (x / y))
def xlogy(x: ArrayLike, y: ArrayLike) -> Array:
    """``x log(y)``, and 0 where x is 0.

    >>> xlogy(0., 0.)
    Array(0., dtype=float32, weak_type=True)
    """
    return _zero_where_zero(x, y, x * jnp.log(y))


@with_derivatives(lambda t, out, x, y: t * jnp.log1p(y), lambda t, out, x, y: t * (x / (1 + y)))
def xlog1py(x: ArrayLike, y: ArrayLike) -> Array:
    """``x log(1 + y)``, and 0 where x is 0.

    >>> xlog1py(0., -1.)
    Array(0., dtype=float32, weak_type=True)
    """
    return _zero_where_zero(x, y, x * jnp.log1p(y))


@with_derivatives(lambda t, out, x: t * (jnp.log(x) + 1))
def _xlogx(x: Any) -> Any:
    return _zero_where_zero(x, x, x * jnp.log(x))


def entr(x: Real) -> Array:
    """The summand of an entropy: ``-x log(x)``, 0 at 0, and -inf below.

    >>> entr(1.)
    Array(-0., dtype=float32, weak_type=True)
    """
    return jnp.where(x < 0, -jnp.inf, -_xlogx(x))


def rel_entr(p: Real, q: Real) -> Array:
    """The summand of a relative entropy: ``p log(p / q)``, 0 at p = 0, inf outside.

    >>> rel_entr(0., 1.)
    Array(0., dtype=float32, weak_type=True)
    """
    p, q = weak_if_scalar(p), weak_if_scalar(q)
    inside = (p > 0) & (q > 0)
    p_inside, q_inside = jnp.where(inside, p, 1), jnp.where(inside, q, 1)
    value = p_inside * (jnp.log(p_inside) - jnp.log(q_inside))  # p / q may overflow
    outside = jnp.where((p == 0) & (q >= 0), jnp.zeros_like(value), jnp.inf)
    return jnp.where(inside, value, jnp.where((p == p) & (q == q), outside, jnp.nan))


def kl_div(p: Real, q: Real) -> Array:
    """``p log(p / q) - p + q``: its sum is the Kullback-Leibler divergence.

    >>> kl_div(1., 1.)
    Array(0., dtype=float32, weak_type=True)
    """
    entropy = rel_entr(p, q)
    value = entropy - p + q
    outside = (entropy == jnp.inf) & (jnp.minimum(p, q) <= 0)
    return jnp.where(outside & jnp.isnan(value), jnp.inf, value)  # of infinite p or q


def boxcox(x: Inexact, lmbda: Inexact) -> Array:
    """``(x ** lmbda - 1) / lmbda``, and ``log(x)`` where lmbda is 0.

    >>> boxcox(3., 1.)
    Array(2., dtype=float32, weak_type=True)
    """
    return _boxcox(jnp.log(x), lmbda)


def boxcox1p(x: Inexact, lmbda: Inexact) -> Array:
    """``((1 + x) ** lmbda - 1) / lmbda``, and ``log(1 + x)`` where lmbda is 0.

    >>> boxcox1p(2., 1.)
    Array(2., dtype=float32, weak_type=True)
    """
    return _boxcox(jnp.log1p(x), lmbda)


def _boxcox(logarithm: Any, lmbda: Any) -> Any:
    is_log = lmbda == 0
    safe = jnp.where(is_log, jnp.ones_like(lmbda), lmbda)
    return jnp.where(is_log, logarithm, jnp.expm1(safe * logarithm) / safe)


# ── Bessel functions ─────────────────────────────────────────────────────────────────────────

def i0e(x: Inexact) -> Array:
    """The modified Bessel function of order 0, divided by ``exp(|x|)``.

    >>> round(float(i0e(1.)), 4)
    0.4658
    """
    return lax.bessel_i0e(x)


def i1e(x: Inexact) -> Array:
    """The modified Bessel function of order 1, divided by ``exp(|x|)``.

    >>> round(float(i1e(1.)), 4)
    0.2079
    """
    return lax.bessel_i1e(x)


def i0(x: Inexact) -> Array:
    """The modified Bessel function of order 0.

    >>> round(float(i0(1.)), 4)
    1.2661
    """
    return i0_of_floats(x)


def i1(x: Inexact) -> Array:
    """The modified Bessel function of order 1.

    >>> round(float(i1(1.)), 4)
    0.5652
    """
    return jnp.exp(jnp.abs(x)) * lax.bessel_i1e(x)


# ── The normal distribution ──────────────────────────────────────────────────────────────────

def ndtr(x: ArrayLike) -> Array:
    """The probability that a standard normal number is below x.

    >>> ndtr(0.)
    Array(0.5, dtype=float32)
    """
    # JAX: one of three formulas by the size of x; our erfc is accurate everywhere.
    return .5 * lax.erfc(strong_float(x) * -math.sqrt(.5))


# Polynomials of Wichura's algorithm AS 241 (Applied Statistics 37, 1988): the middle, the tails,
# the far tails; numerator and denominator, lowest power first, rounded to float64.
_MIDDLE = ([3.3871328727963665, 133.14166789178438, 1971.5909503065513, 13731.69376550946,
            45921.95393154987, 67265.7709270087, 33430.57558358813, 2509.0809287301227],
           [1., 42.31333070160091, 687.1870074920579, 5394.196021424751, 21213.794301586597,
            39307.89580009271, 28729.085735721943, 5226.495278852854])
_TAIL = ([1.4234371107496835, 4.630337846156546, 5.769497221460691, 3.6478483247632045,
          1.2704582524523684, 0.2417807251774506, 0.022723844989269184, 0.0007745450142783414],
         [1., 2.053191626637759, 1.6763848301838038, 0.6897673349851, 0.14810397642748008,
          0.015198666563616457, 0.0005475938084995345, 1.0507500716444169e-09])
_FAR = ([6.657904643501103, 5.463784911164114, 1.7848265399172913, 0.29656057182850487,
         0.026532189526576124, 0.0012426609473880784, 2.7115555687434876e-05,
         2.0103343992922881e-07],
        [1., 0.599832206555888, 0.1369298809227358, 0.014875361290850615, 0.0007868691311456133,
         1.8463183175100548e-05, 1.421511758316446e-07, 2.0442631033899397e-15])


def ndtri(p: ArrayLike) -> Array:
    """The number below which a standard normal number lies with probability p.

    >>> ndtri(0.5)
    Array(0., dtype=float32)
    """
    return _ndtri(strong_float(p))


@custom_jvp
def _ndtri(p: Any) -> Any:
    q = p - .5
    middle = q * _ratio(_MIDDLE, .180625 - jnp.square(q))
    smaller = jnp.where(q < 0, p, 1 - p)
    r = jnp.sqrt(-jnp.log(smaller))
    tail = jnp.where(r <= 5, _ratio(_TAIL, r - 1.6), _ratio(_FAR, r - 5))
    tail = jnp.where(smaller == 0, jnp.inf, tail)
    return jnp.where(jnp.abs(q) <= .425, middle, jnp.where(q < 0, -tail, tail))


# The reciprocal of the density.
_ndtri.defjvps(lambda t, x, p: t * (math.sqrt(2 * math.pi) * jnp.exp(.5 * jnp.square(x))))


def _ratio(polynomials: Sequence[Sequence[float]], x: Any) -> Any:
    """The ratio of two polynomials, lowest powers first, by Horner's rule."""
    return jnp.divide(*(polynomial(coefficients, x) for coefficients in polynomials))


@functools.partial(custom_jvp, nondiff_argnums=(1,))
def log_ndtr(x: ArrayLike, series_order: int = 3) -> Array:
    """The logarithm of `ndtr`, exact in the lower tail, too.

    >>> float(log_ndtr(-40.)) < -800
    True

    Args:
      series_order: how many terms of the series for the far tail are summed.
    """
    x = strong_float(x)
    refuse((not isinstance(series_order, int), "series_order must be a Python integer."))
    refuse((series_order < 0, "series_order must be non-negative."),
           (series_order > 30, "series_order must be <= 30."), error=ValueError)
    low, high = (-10., 5.) if x.dtype == jnp.float32 else (-20., 8.)
    middle = jnp.log(ndtr(jnp.maximum(x, low)))
    lower = _log_ndtr_lower(jnp.minimum(x, low), series_order)
    return jnp.where(x > high, -ndtr(-x), jnp.where(x > low, middle, lower))


@log_ndtr.defjvp
def _log_ndtr_jvp(series_order: int, primals: tuple, tangents: tuple) -> tuple:
    [x], [t] = primals, tangents
    out = log_ndtr(x, series_order)
    density = -(.5 * jnp.square(x) + .5 * math.log(2 * math.pi))
    low = jnp.minimum(x, -100.)  # where both logarithms are large and their difference is small
    slope = jnp.where(x < -100, -low / _tail_series(low, series_order), jnp.exp(density - out))
    return out, t * slope


def _log_ndtr_lower(x: Any, series_order: int) -> Any:
    """``-x²/2 - log(-x) - log(2 pi)/2``, plus the logarithm of the series."""
    scale = jnp.log(-x) + .5 * math.log(2 * math.pi)
    return jnp.log(_tail_series(x, series_order)) - (.5 * jnp.square(x) + scale)


def _tail_series(x: Any, series_order: int) -> Any:
    """``1 - 1/x² + 3/x⁴ - 15/x⁶ …``."""
    square: Any = jnp.square(x)
    term = total = jnp.ones_like(x)
    for n in range(1, series_order + 1):
        term = term * (1 - 2 * n) / square
        total = total + term
    return total


public(globals())


_export_all(globals())
