"""The gamma function and related ones: beta, binomial coefficients, zeta, Bernoulli numbers.

Builds on `lax`.  Chapter 20, *Precision*.  In JAX: `jax/_src/scipy/special.py`.
"""

from __future__ import annotations

import functools
import math
import operator
import sys
from fractions import Fraction
from typing import Any

from minijax import lax, numpy as jnp
from minijax.core import Array
from minijax.transforms.derivatives import jvp
from minijax.lax.special import beyond_stirling
from minijax.numpy.arguments import (ArrayLike, Inexact, Real, promote_args_inexact,
                                     promote_args_real, public, static_index, static_value)
from minijax.primitives.gamma import zeta_series
from minijax.scipy.arguments import differentiable, promote_to_float, promote_to_real


def gammaln(x: Inexact) -> Array:
    """The logarithm of the absolute value of the gamma function.

    >>> round(float(gammaln(5.)), 4)  # log(4!)
    3.1781
    """
    return lax.lgamma(x)


def _upper_loggamma(z: Array) -> Array:
    """For real parts that are not negative: Stirling's formula at z + 7, and the recurrence."""
    far = z + 7
    total: Any = (far - .5) * jnp.log(far) - far + .5 * math.log(2 * math.pi)
    total += beyond_stirling(far)
    return total - functools.reduce(jnp.add, [jnp.log(z + k) for k in range(7)])


def _complex_loggamma(z: Array) -> Array:
    """By reflection (DLMF 5.5.3), with the logarithm of the sine in the upper half plane."""
    above = jnp.where(z.imag < 0, jnp.conj(z), z)
    remainder = above - jnp.round(above.real)
    log_sine = jnp.log1p(-jnp.exp(2j * math.pi * remainder)) - 1j * math.pi * (above - .5)
    reflected = math.log(2 * math.pi) - log_sine - _upper_loggamma(1 - above)
    log_gamma = jnp.where(z.real < 0, reflected, _upper_loggamma(above))
    pole = (z.imag == 0) & (z.real <= 0) & (z.real == jnp.round(z.real))
    return jnp.where(pole, math.nan, jnp.where(z.imag < 0, jnp.conj(log_gamma), log_gamma))


@promote_to_float
def loggamma(x: Inexact) -> Array:
    """The logarithm of the gamma function, continuous but for the negative numbers.

    Of real numbers it is nan where these are negative; complex ones have values there, too.

    >>> jnp.exp(loggamma(jnp.array([5., -0.5]))).round()
    Array([24., nan], dtype=float32)
    >>> import numpy as np
    >>> np.asarray(loggamma(jnp.array([1 + 1j]))).round(4)
    array([-0.6509-0.3016j], dtype=complex64)
    """
    if jnp.iscomplexobj(x):
        return _complex_loggamma(x)
    return jnp.where(x > 0, lax.lgamma(x), math.nan)


def gammainc(a: Inexact, x: Inexact) -> Array:
    """The lower incomplete gamma function, divided by the whole one.

    >>> round(float(gammainc(2., 1.)), 4)
    0.2642
    """
    return lax.igamma(a, x)


def gammaincc(a: Inexact, x: Inexact) -> Array:
    """The upper incomplete gamma function, divided by the whole one.

    >>> round(float(gammaincc(2., 1.)), 4)
    0.7358
    """
    return lax.igammac(a, x)


def gammasgn(x: Real) -> Array:
    """The sign of the gamma function; nan at its poles below zero.

    >>> float(gammasgn(-0.5))
    -1.0
    """
    floor = jnp.floor(x)
    is_pole = jnp.isnan(x) | (x < 0) & (x == floor)
    is_negative = jnp.signbit(x) & ((x == 0) | (jnp.mod(floor, 2) != 0))
    sign = jnp.where(is_pole, jnp.nan, jnp.where(is_negative, -1., 1.))
    return lax.convert_element_type(sign, x.dtype)


def gamma(x: Inexact) -> Array:
    """The gamma function: ``(x - 1)!``, continued to all numbers.

    >>> round(float(gamma(5.)), 3)
    24.0
    """
    if jnp.iscomplexobj(x):
        value = jnp.exp(_complex_loggamma(x))
        return jnp.where(jnp.isnan(value), complex(math.nan, math.nan), value).astype(x.dtype)
    return gammasgn(x) * jnp.exp(lax.lgamma(x))


def factorial(n: Inexact, exact: bool = False) -> Array:
    """The factorial; 0 for negative n.

    >>> round(float(factorial(4)), 3)
    24.0
    """
    if exact:
        raise NotImplementedError("factorial with exact=True")
    return jnp.where(n < 0, 0, jnp.exp(lax.lgamma(n + 1)))


def digamma(x: Inexact) -> Array:
    """The derivative of `gammaln`.

    >>> round(float(digamma(1.)), 4)
    -0.5772
    """
    return lax.digamma(x)


def polygamma(n: ArrayLike, x: ArrayLike) -> Array:
    """The n-th derivative of `digamma`.

    >>> round(float(polygamma(1, 1.)), 4)
    1.6449
    """
    dtype = jnp.result_type(n)
    if dtype.kind not in "iu":
        raise ValueError(f"Argument `n` to polygamma must be of integer type. Got dtype {dtype}.")
    return lax.polygamma(*promote_args_real("polygamma", n, x))


def zeta(x: ArrayLike, q: ArrayLike | None = None) -> Array:
    """The sum of ``(q + k)^-x`` over all whole k from 0 on.

    >>> round(float(zeta(2., 1.)), 4)
    1.6449

    Raises:
      NotImplementedError: without `q`.
    """
    if q is None:
        raise NotImplementedError("Riemann zeta function not implemented; pass q != None to "
                                  "compute the Hurwitz Zeta function.")
    return _zeta(*promote_args_inexact("zeta", x, q))


_zeta: Any = differentiable(
    lambda x, q: lax.zeta(x, q),
    lambda t, _, x, q: jvp(lambda x: zeta_series(x, q, lax.pow), (x,), (t,))[1],
    lambda t, _, x, q: t * (0 - x * _zeta(x + 1, q)))


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The incomplete beta function, divided by the whole one.

    >>> round(float(betainc(2., 3., .25)), 4)
    0.2617
    """
    return lax.betainc(*promote_args_real("betainc", a, b, x))


def betaln(a: Inexact, b: Inexact) -> Array:
    """The logarithm of the beta function.

    >>> round(float(betaln(1., 2.)), 4)
    -0.6931
    """
    a, b = jnp.minimum(a, b), jnp.maximum(a, b)
    is_large = (b >= 10) & (a > 0)
    large = lax.lgamma(a) - _log_gamma_quotient(*(jnp.where(is_large, x, 10) for x in (a, b)))
    small = lax.lgamma(a) + lax.lgamma(b) - lax.lgamma(a + b)
    large = jnp.where((a + b == math.inf) & (a < math.inf), -math.inf, large)
    return jnp.where((a == 0) & (b == b), math.inf, jnp.where(is_large, large, small))


def _log_gamma_quotient(a: Any, b: Any) -> Any:
    """``log(gamma(a + b) / gamma(b))`` for a > 0 and a large b: two logarithms would cancel."""
    n = a + b
    return (a * jnp.log(b) - a + (n - .5) * jnp.log1p(a / b)
            + beyond_stirling(n) - beyond_stirling(b))


def beta(a: Real, b: Real) -> Array:
    """The beta function ``gamma(a) gamma(b) / gamma(a + b)``.

    >>> round(float(beta(1., 2.)), 4)
    0.5
    """
    return gammasgn(a) * gammasgn(b) * gammasgn(a + b) * jnp.exp(betaln(a, b))


def multigammaln(a: ArrayLike, d: int) -> Array:
    """The logarithm of the gamma function of d by d matrices.

    >>> bool(multigammaln(3., 1) == gammaln(3.))
    True
    """
    order = int(static_value(d, "The dimension of multigammaln.") if isinstance(d, Array) else d)
    a = promote_args_inexact("multigammaln", a, order)[0]
    a = lax.convert_element_type(a, a.dtype)
    return functools.reduce(jnp.add, [lax.lgamma(a - i / 2) for i in range(order)],
                            jnp.full_like(a, order * (order - 1) / 4 * math.log(math.pi)))


def comb(N: Inexact, k: Inexact, *, repetition: bool = False) -> Array:
    """In how many ways k of N things are taken, each once or, with `repetition`, often.

    >>> round(float(comb(5, 2)), 3), round(float(comb(5, 2, repetition=True)), 3)
    (10.0, 15.0)
    """
    if repetition:
        return jnp.where((k == 0) & (N >= 0), 1, comb(N + k - 1, k))
    is_possible = (k <= N) & (N >= 0) & (k >= 0)
    n, k = jnp.where(is_possible, N, 0), jnp.where(is_possible, k, 0)
    return jnp.where(is_possible, jnp.exp(-betaln(n - k + 1, k + 1) - jnp.log1p(n)), 0)


@promote_to_real(lambda t, out, z, m: t * (out * (lax.digamma(z + m) - lax.digamma(z))),
                 lambda t, out, z, m: t * (out * lax.digamma(z + m)))
def poch(z: ArrayLike, m: ArrayLike) -> Array:
    """Pochhammer's symbol: ``gamma(z + m) / gamma(z)``.

    >>> round(float(poch(2., 3.)), 3)
    24.0
    """
    low = jnp.minimum(z, z + m)
    is_large, sign = low >= 10, jnp.where(m < 0, -1, 1)
    large = jnp.exp(sign * _log_gamma_quotient(jnp.abs(m), jnp.where(is_large, low, 10)))
    return jnp.where(m == 0, 1, jnp.where(is_large, large, gamma_ratio([z + m], [z])))


def gamma_ratio(above: list, below: list) -> Any:
    """A product of values of the gamma function, divided by another; 0 at a pole below."""
    logarithm = sum(map(lax.lgamma, above)) - sum(map(lax.lgamma, below))
    return functools.reduce(operator.mul, map(gammasgn, above + below), jnp.exp(logarithm))


def bernoulli_numbers(n: int) -> list[Fraction]:
    """The Bernoulli numbers 0 to n, exactly; number 1 is -1/2.

    >>> bernoulli_numbers(2)
    [Fraction(1, 1), Fraction(-1, 2), Fraction(1, 6)]
    """
    numbers = [Fraction(1)]
    for m in range(1, n + 1):
        numbers.append(-sum((math.comb(m + 1, k) * b for k, b in enumerate(numbers) if b),
                            Fraction(0)) / (m + 1))
    return numbers


def bernoulli(n: int) -> Array:
    """The Bernoulli numbers 0 to n; number 1 is -1/2.

    >>> bernoulli(2)
    Array([ 1.        , -0.5       ,  0.16666667], dtype=float32)

    Raises:
      ValueError: for a negative n.
    """
    n = static_index(n, "Argument n of bernoulli")
    if n < 0:
        raise ValueError("n must be a non-negative integer.")
    return jnp.array([float(b) if abs(b) < sys.float_info.max else (1 if b > 0 else -1) * math.inf
                      for b in bernoulli_numbers(n)], float)


public(globals())
