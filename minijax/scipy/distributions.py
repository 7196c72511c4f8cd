"""Densities, probabilities and quantiles: the distributions of `minijax.scipy.stats`.

Each is written as a class of functions; what follows from them is made.
Stands on `scipy.special`.  In JAX: `jax/_src/scipy/stats/`, a file each.
"""

from __future__ import annotations

import functools
import inspect
import math
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from minijax import lax
from minijax import numpy as jnp
from minijax.core import Array
from minijax.numpy.arguments import ArrayLike, promote_args_inexact, promote_dtypes_inexact
from minijax.scipy.special import (betaln, expit, gammaln, log_ndtr, logit, ndtr, ndtri, xlog1py,
                                   xlogy)
from minijax.tracebacks import guard

__test__: dict[str, Callable] = {}  # where doctest looks for the functions


# ── How a class of functions becomes a distribution ──────────────────────────────────────────

def module_of(functions: type) -> Any:
    """The functions of a class as a module, which is found under its name as any other."""
    module = ModuleType(f"minijax.scipy.stats.{functions.__name__}", functions.__doc__)
    for name, function in vars(functions).items():
        if inspect.isfunction(function):
            __test__[f"{functions.__name__}.{name}"] = function
            function.__module__, function.__qualname__ = module.__name__, name
            setattr(module, name, function)
    guard(vars(module))
    sys.modules[module.__name__] = module
    return module


def distribution(functions: type) -> Any:
    """`module_of` functions whose arguments are brought to one floating dtype first."""
    for name, function in list(vars(functions).items()):
        if inspect.isfunction(function):
            setattr(functions, name, _promoting(function))
    return module_of(functions)


def _promoting(function: Callable) -> Callable:
    name, signature = function.__qualname__, inspect.signature(function)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Array:
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        return function(*promote_args_inexact(name, *given.args))
    return call


_SUMMARIES = {"pdf": "The density at x.", "pmf": "The probability of k.",
              "sf": "The probability of a number above x."}


def exp_of(logarithm: Callable, example: str, result: str) -> Callable:
    """The function that `logpdf`, `logpmf` or `logsf` is the logarithm of."""
    promoting = _promoting(logarithm)

    @functools.wraps(logarithm)
    def exp(*args: Any, **kwargs: Any) -> Array:
        return jnp.exp(promoting(*args, **kwargs))
    exp.__name__ = logarithm.__name__.removeprefix("log")
    exp.__doc__ = f"{_SUMMARIES[exp.__name__]}\n\n    >>> {example}\n    {result}\n    "
    return exp


# ── The normal distribution and others on the whole line ─────────────────────────────────────

@distribution
class norm:
    """The normal distribution."""

    def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
        """The logarithm of the density at x, for this mean and standard deviation.

        >>> round(float(norm.logpdf(0.)), 4)
        -0.9189
        """
        variance = jnp.square(scale)
        return (jnp.log(2 * math.pi * variance) + jnp.square(x - loc) / variance) / -2

    pdf = exp_of(logpdf, "round(float(norm.pdf(0.)), 4)", "0.3989")

    def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
        """The probability of a number below x.

        >>> float(norm.cdf(0.))
        0.5
        """
        return ndtr((x - loc) / scale)

    def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
        """The logarithm of `cdf`, exact in the lower tail, too.

        >>> round(float(norm.logcdf(0.)), 4)
        -0.6931
        """
        return log_ndtr((x - loc) / scale)

    def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
        """The probability of a number above x.

        >>> float(norm.sf(0.))
        0.5
        """
        return norm.cdf(-x, -loc, scale)

    def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
        """The logarithm of `sf`.

        >>> round(float(norm.logsf(0.)), 4)
        -0.6931
        """
        return norm.logcdf(-x, -loc, scale)

    def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
        """The number below which one lies with probability q.

        >>> float(norm.ppf(0.5, 3.))
        3.0
        """
        return ndtri(q) * scale + loc

    def isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
        """The number above which one lies with probability q.

        >>> float(norm.isf(0.5, 3.))
        3.0
        """
        return norm.ppf(1 - q, loc, scale)


@module_of
class multivariate_normal:
    """The normal distribution of vectors."""

    def logpdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike, allow_singular: None = None
               ) -> Array:
        """The logarithm of the density at vectors x.

        >>> round(float(multivariate_normal.logpdf(jnp.zeros(2), jnp.zeros(2), jnp.eye(2))), 4)
        -1.8379

        Args:
          x, mean: vectors, in stacks that broadcast.
          cov: a positive definite matrix; or a number, the variance of each component.
          allow_singular: accepted as None.
        """
        if allow_singular is not None:
            raise NotImplementedError("allow_singular argument of multivariate_normal.logpdf")
        x, mean, cov = promote_dtypes_inexact(x, mean, cov)
        if mean.ndim == 0:
            return _of_numbers(jnp.square(x - mean), cov, 1)
        n = mean.shape[-1]
        if cov.ndim == 0:
            return _of_numbers(jnp.vecdot(x - mean, x - mean), cov, n)
        if cov.ndim < 2 or cov.shape[-2:] != (n, n):
            raise ValueError("multivariate_normal.logpdf got incompatible shapes")
        factor = lax.linalg.cholesky(cov)
        whiten = lambda factor, gap: lax.linalg.triangular_solve(
            factor, gap, lower=True, left_side=True)
        y = jnp.vectorize(whiten, signature="(n,n),(n)->(n)")(factor, x - mean)
        size = jnp.sum(jnp.log(jnp.diagonal(factor, axis1=-2, axis2=-1)), -1)
        squares: Any = jnp.vecdot(y, y)
        return -.5 * squares - n / 2 * math.log(2 * math.pi) - size

    def pdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike) -> Array:
        """The density at vectors x.

        >>> round(float(multivariate_normal.pdf(jnp.zeros(2), jnp.zeros(2), jnp.eye(2))), 4)
        0.1592
        """
        return jnp.exp(multivariate_normal.logpdf(x, mean, cov))


def _of_numbers(squares: Any, variance: Any, n: int) -> Any:
    """For `n` independent components of one variance."""
    size = jnp.log(2 * math.pi * variance)
    return -.5 * squares / variance - n / 2 * size


@distribution
class cauchy:
    """The Cauchy distribution, which has no mean."""

    def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
        """The logarithm of the density at x.

        >>> round(float(cauchy.logpdf(0.)), 4)
        -1.1447
        """
        return -(jnp.log(math.pi * scale) + jnp.log1p(jnp.square((x - loc) / scale)))

    pdf = exp_of(logpdf, "round(float(cauchy.pdf(0.)), 4)", "0.3183")

    def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
        """The probability of a number below x.

        >>> float(cauchy.cdf(0.))
        0.5
        """
        turn: Any = jnp.arctan2(x - loc, scale)
        return turn / math.pi + .5

    def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
        """The probability of a number above x.

        >>> float(cauchy.sf(0.))
        0.5
        """
        return cauchy.cdf(-x, -loc, scale)

    def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
        """The number below which one lies with probability q.

        >>> float(cauchy.ppf(0.5, 3.))
        3.0
        """
        return jnp.tan(math.pi * (q - .5)) * scale + loc

    def isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
        """The number above which one lies with probability q.

        >>> float(cauchy.isf(0.5, 3.))
        3.0
        """
        return jnp.tan(math.pi * (.5 - q)) * scale + loc


@distribution
class laplace:
    """The Laplace distribution: exponential to both sides of `loc`."""

    def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
        """The logarithm of the density at x.

        >>> round(float(laplace.logpdf(0.)), 4)
        -0.6931
        """
        return -(jnp.abs(x - loc) / scale + jnp.log(2 * scale))

    pdf = exp_of(logpdf, "float(laplace.pdf(0.))", "0.5")

    def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
        """The probability of a number below x.

        >>> float(laplace.cdf(0.))
        0.5
        """
        z = (x - loc) / scale
        tail = jnp.exp(-jnp.abs(z)) / 2
        return jnp.where(z <= 0, tail, 1 - tail)


@distribution
class logistic:
    """The logistic distribution."""

    def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
        """The logarithm of the density at x.

        >>> round(float(logistic.logpdf(0.)), 4)
        -1.3863
        """
        z = (x - loc) / scale
        soft = jnp.logaddexp(0, -z)
        return -z - 2 * soft - jnp.log(scale)

    pdf = exp_of(logpdf, "float(logistic.pdf(0.))", "0.25")

    def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
        """The probability of a number below x.

        >>> float(logistic.cdf(0.))
        0.5
        """
        return expit((x - loc) / scale)

    def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
        """The probability of a number above x.

        >>> float(logistic.sf(0.))
        0.5
        """
        return expit(-(x - loc) / scale)

    def ppf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
        """The number below which one lies with probability x.

        >>> float(logistic.ppf(0.5, 3.))
        3.0
        """
        return logit(x) * scale + loc

    def isf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
        """The number above which one lies with probability x.

        >>> float(logistic.isf(0.5, 3.))
        3.0
        """
        return loc - logit(x) * scale


@distribution
class t:
    """Student's distribution with `df` degrees of freedom."""

    def logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
        """The logarithm of the density of x.

        >>> round(float(t.logpdf(0., 1.)), 4)
        -1.1447
        """
        y = (x - loc) / scale
        half = df / 2
        ratio = gammaln(half + .5) - gammaln(half)
        size = jnp.log(jnp.sqrt(math.pi * df) * scale)
        tail = (half + .5) * jnp.log1p(jnp.square(y) / df)
        return ratio - size - tail

    pdf = exp_of(logpdf, "round(float(t.pdf(0., 1.)), 4)", "0.3183")


# ── Distributions that begin or end somewhere ────────────────────────────────────────────────

@distribution
class uniform:
    """The uniform distribution between `loc` and `loc + scale`."""

    def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
        """The logarithm of the density at x: -inf outside.

        >>> float(uniform.logpdf(2.))
        -inf
        """
        return jnp.where((x > loc + scale) | (x < loc), -jnp.inf, -jnp.log(scale))

    pdf = exp_of(logpdf, "float(uniform.pdf(1., 0., 4.))", "0.25")

    def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
        """The probability of a number below x.

        >>> float(uniform.cdf(1., 0., 4.))
        0.25
        """
        inside = (x - loc) / scale
        return jnp.where(x < loc, 0, jnp.where(x > loc + scale, 1, inside))

    def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
        """The number below which one lies with probability q; nan outside [0, 1].

        >>> float(uniform.ppf(0.25, 0., 4.))
        1.0
        """
        return jnp.where((q >= 0) & (q <= 1), q * scale + loc, jnp.nan)


@distribution
class expon:
    """The exponential distribution, from `loc` on, of mean `loc + scale`."""

    def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
        """The logarithm of the density at x: -inf below `loc`.

        >>> float(expon.logpdf(2.))
        -2.0
        """
        value = -(jnp.log(scale) + (x - loc) / scale)
        return jnp.where(x < loc, -jnp.inf, value)

    pdf = exp_of(logpdf, "float(expon.pdf(0., 0., 4.))", "0.25")

    def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
        """The probability of a number below x.

        >>> float(expon.cdf(0.))
        0.0
        """
        return jnp.where(x < loc, 0, -jnp.expm1(-(x - loc) / scale))

    def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
        """The logarithm of the probability of a number above x.

        >>> float(expon.logsf(2.))
        -2.0
        """
        return jnp.where(x < loc, 0, -(x - loc) / scale)

    sf = exp_of(logsf, "float(expon.sf(0.))", "1.0")


@distribution
class gamma:
    """The gamma distribution of shape `a`."""

    def logpdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
        """The logarithm of the density of x.

        >>> round(float(gamma.logpdf(2., 1.)), 4)
        -2.0
        """
        y = (x - loc) / scale
        value = xlogy(a - 1, y) - y - gammaln(a) - jnp.log(scale)
        return jnp.where(x >= loc, value, -jnp.inf)

    pdf = exp_of(logpdf, "round(float(gamma.pdf(2., 1.)), 4)", "0.1353")


@distribution
class chi2:
    """The distribution of the sum of `df` squares of normal numbers."""

    def logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
        """The logarithm of the density of x.

        >>> round(float(chi2.logpdf(2., 2.)), 4)
        -1.6931
        """
        y, half = (x - loc) / scale, df / 2
        size = gammaln(half) + half * math.log(2) + jnp.log(scale)
        value = xlogy(half - 1, y) - y / 2 - size
        return jnp.where(x >= loc, value, -jnp.inf)

    pdf = exp_of(logpdf, "round(float(chi2.pdf(2., 2.)), 4)", "0.1839")


@distribution
class beta:
    """The beta distribution on the interval from `loc` to `loc + scale`."""

    def logpdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0,
               scale: ArrayLike = 1) -> Array:
        """The logarithm of the density of x.

        >>> round(float(beta.logpdf(.5, 2., 2.)), 4)
        0.4055
        """
        y = (x - loc) / scale
        powers = xlogy(a - 1, y) + xlog1py(b - 1, -y)
        value = powers - (betaln(a, b) + jnp.log(scale))
        return jnp.where((x > loc + scale) | (x < loc), -jnp.inf, value)

    pdf = exp_of(logpdf, "round(float(beta.pdf(.5, 2., 2.)), 4)", "1.5")


# ── Whole numbers ────────────────────────────────────────────────────────────────────────────

@distribution
class bernoulli:
    """The Bernoulli distribution: one with probability p, otherwise zero."""

    def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
        """The logarithm of the probability of k: -inf for what is neither `loc` nor `loc + 1`.

        >>> round(float(bernoulli.logpmf(1, 0.5)), 4)
        -0.6931
        """
        x = k - loc
        value = xlogy(x, p) + xlog1py(1 - x, -p)
        return _strong(jnp.where((x == 0) | (x == 1), value, -jnp.inf))

    pmf = exp_of(logpmf, "float(bernoulli.pmf(1, 0.25))", "0.25")

    def cdf(k: ArrayLike, p: ArrayLike) -> Array:
        """The probability of at most k.

        >>> float(bernoulli.cdf(0, 0.25))
        0.75
        """
        outside = jnp.isnan(k) | (jnp.isnan(p) | ((p < 0) | (p > 1)))
        value = jnp.where(k < 0, 0, jnp.where(k < 1, 1 - p, 1))
        return _strong(jnp.where(outside, jnp.nan, value))

    def ppf(q: ArrayLike, p: ArrayLike) -> Array:
        """The least k whose `cdf` is at least q; nan outside [0, 1].

        >>> float(bernoulli.ppf(0.9, 0.25))
        1.0
        """
        outside = jnp.isnan(q) | jnp.isnan(p) | (p < 0) | (p > 1) | (q < 0) | (q > 1)
        return _strong(jnp.where(outside, jnp.nan, jnp.where(q <= 1 - p, 0, 1)))


def _strong(x: Array) -> Array:
    return lax.convert_element_type(x, x.dtype)


@distribution
class binom:
    """The binomial distribution: successes in `n` trials."""

    def logpmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
        """The logarithm of the probability of k.

        >>> round(float(binom.logpmf(1, 2, .5)), 4)
        -0.6931
        """
        y = k - loc
        ways = gammaln(n + 1) - (gammaln(y + 1) + gammaln(n - y + 1))
        value = ways + (xlogy(y, p) + xlog1py(n - y, -p))
        return jnp.where((y >= 0) & (y <= n), value, -jnp.inf)

    pmf = exp_of(logpmf, "round(float(binom.pmf(1, 2, .5)), 4)", "0.5")


@distribution
class poisson:
    """The Poisson distribution: how many events, where `mu` are expected."""

    def logpmf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
        """The logarithm of the probability of k.

        >>> round(float(poisson.logpmf(1, 2.)), 4)
        -1.3069
        """
        x = k - loc
        value = xlogy(x, mu) - gammaln(x + 1) - mu
        return jnp.where((x < 0) | (jnp.round(k) != k), -jnp.inf, value)

    pmf = exp_of(logpmf, "round(float(poisson.pmf(1, 2.)), 4)", "0.2707")
