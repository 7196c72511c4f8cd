"""`minijax.scipy.stats`: densities, probabilities and quantiles, a module for each distribution.

A distribution is a class of formulas, from which other functions are derived.
Builds on `special`; `kernels` and `ranks` have the statistics of samples.
In JAX: `jax/_src/scipy/stats/`, a file each.
"""

import functools
import inspect
import math
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from minijax import lax, numpy as jnp
from minijax.core import Array
from minijax.numpy.arguments import ArrayLike, promote_dtypes_inexact
from minijax.scipy import special
from minijax.scipy.samples import gaussian_kde, mode, rankdata, sem
from minijax.transforms.prepared import export_all

__test__: dict[str, Any] = {}  # the examples, for doctest


# ── From a class of formulas to a module ─────────────────────────────────────────────────────

_SUMMARIES = {
    "logpdf": "The logarithm of the density at x.", "pdf": "The density at x.",
    "logpmf": "The logarithm of the probability of k.", "pmf": "The probability of k.",
    "cdf": "The probability of a number of at most x.", "logcdf": "The logarithm of `cdf`.",
    "sf": "The probability of a number above x.", "logsf": "The logarithm of `sf`.",
    "ppf": "The number below which one lies with probability q.",
    "isf": "The number above which one lies with probability q.",
    "entropy": "The mean of what is learnt from a number; where it lies does not matter."}


def distribution(block: type, prepare: Callable = special.promote_to_float) -> Any:
    """A class of formulas as a module that can be imported by its name.

    Arguments are promoted to one floating dtype; a missing `pdf`, `pmf` or `sf` is the exponential
    of its logarithm.
    """
    formulas: dict[str, Callable] = {
        name: f for name, f in vars(block).items() if inspect.isfunction(f)}
    for name in ("logpdf", "logpmf", "logsf", "logcdf"):
        if name in formulas:
            formulas.setdefault(name.removeprefix("log"), _after(jnp.exp, formulas[name]))
    module = ModuleType(f"{__name__}.{block.__name__}", block.__doc__)
    for name, formula in formulas.items():
        formula.__name__, formula.__qualname__ = name, f"{block.__name__}.{name}"
        function = prepare(formula)
        function.__module__, function.__name__, function.__qualname__ = module.__name__, name, name
        function.__doc__ = function.__doc__ or _SUMMARIES[name]
        setattr(module, name, function)
    export_all(vars(module))
    sys.modules[module.__name__], __test__[block.__name__] = module, block.__doc__
    return module


def _after(outer: Callable, formula: Callable) -> Callable:
    """A function of the result of a formula."""
    @functools.wraps(formula, assigned=())  # but not the docstring
    def composed(*args: Any) -> Array:
        return outer(formula(*args))
    return composed


# ── The normal distribution and others on the whole line ─────────────────────────────────────

@distribution
class norm:
    """The normal distribution of this mean and standard deviation.

    >>> round(float(norm.logpdf(0.)), 4), round(float(norm.pdf(0.)), 4)
    (-0.9189, 0.3989)
    >>> float(norm.cdf(0.)), float(norm.sf(0.))
    (0.5, 0.5)
    >>> round(float(norm.logcdf(0.)), 4), round(float(norm.logsf(0.)), 4)
    (-0.6931, -0.6931)
    >>> float(norm.ppf(0.5, 3.)), float(norm.isf(0.5, 3.))
    (3.0, 3.0)
    """

    def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
        variance = jnp.square(scale)
        return (jnp.log(2 * math.pi * variance) + jnp.square(x - loc) / variance) / -2

    cdf = lambda x, loc=0, scale=1: special.ndtr((x - loc) / scale)
    logcdf = lambda x, loc=0, scale=1: special.log_ndtr((x - loc) / scale)
    sf = lambda x, loc=0, scale=1: norm.cdf(-x, -loc, scale)
    logsf = lambda x, loc=0, scale=1: norm.logcdf(-x, -loc, scale)
    ppf = lambda q, loc=0, scale=1: special.ndtri(q) * scale + loc
    isf = lambda q, loc=0, scale=1: norm.ppf(1 - q, loc, scale)


@distribution
class truncnorm:
    """The normal distribution between `a` and `b` standard deviations from its mean `loc`.

    >>> round(float(truncnorm.logpdf(0., -1., 1.)), 4), round(float(truncnorm.pdf(0., -1., 1.)), 4)
    (-0.5372, 0.5844)
    >>> round(float(truncnorm.cdf(0., -1., 2.)), 4), round(float(truncnorm.sf(0., -1., 2.)), 4)
    (0.417, 0.583)
    >>> [round(float(f(0., -1., 2.)), 4) for f in (truncnorm.logcdf, truncnorm.logsf)]
    [-0.8747, -0.5395]
    """

    def logpdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
               ) -> Array:
        value, y = norm.logpdf(x, loc, scale) - _log_normal_between(a, b), (x - loc) / scale
        return jnp.where(a >= b, jnp.nan, jnp.where((y < a) | (y > b), -jnp.inf, value))

    def logcdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
               ) -> Array:
        y = (x - loc) / scale
        inside = jnp.where((y <= a) | (y >= b), (a + b) / 2, y)
        below, above = (_log_normal_between(*ends) - _log_normal_between(a, b)
                        for ends in ((a, inside), (inside, b)))
        value = jnp.where(below > -.1, jnp.log1p(-jnp.exp(above)), below)
        value = jnp.where(y >= b, 0, jnp.where(y <= a, -jnp.inf, value))
        return jnp.where(a >= b, jnp.nan, value)

    logsf = lambda x, a, b, loc=0, scale=1: truncnorm.logcdf(-x, -b, -a, -loc, scale)


def _log_normal_between(a: Any, b: Any) -> Any:
    """The logarithm of the normal probability of the interval; accurate in both tails."""
    low, high = jnp.where(a > 0, -b, a), jnp.where(a > 0, -a, b)
    larger, smaller = special.log_ndtr(high), special.log_ndtr(low)
    in_tail = larger + jnp.log1p(-jnp.exp(smaller - larger))
    return jnp.where((a > 0) | (b <= 0), in_tail, jnp.log1p(-special.ndtr(a) - special.ndtr(-b)))


@functools.partial(distribution, prepare=lambda formula: formula)
class multivariate_normal:
    """The normal distribution of vectors.

    >>> round(float(multivariate_normal.logpdf(jnp.zeros(2), jnp.zeros(2), jnp.eye(2))), 4)
    -1.8379
    >>> round(float(multivariate_normal.pdf(jnp.zeros(2), jnp.zeros(2), jnp.eye(2))), 4)
    0.1592
    """

    def logpdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike, allow_singular: None = None) -> Any:
        """The logarithm of the density at vectors x.

        Args:
          x, mean: vectors, in stacks that broadcast.
          cov: a positive definite matrix; or a number, the variance of each component.
          allow_singular: accepted as None.
        """
        if allow_singular is not None:
            raise NotImplementedError("allow_singular argument of multivariate_normal.logpdf")
        x, mean, cov = promote_dtypes_inexact(x, mean, cov)
        n = mean.shape[-1] if mean.ndim else 1
        if cov.ndim == 0 or mean.ndim == 0:
            squares = jnp.vecdot(x - mean, x - mean) if mean.ndim else jnp.square(x - mean)
            return -.5 * squares / cov - n / 2 * jnp.log(2 * math.pi * cov)
        if cov.ndim < 2 or cov.shape[-2:] != (n, n):
            raise ValueError("multivariate_normal.logpdf got incompatible shapes")
        factor = lax.linalg.cholesky(cov)
        whiten = functools.partial(lax.linalg.triangular_solve, lower=True, left_side=True)
        y = jnp.vectorize(whiten, signature="(n,n),(n)->(n)")(factor, x - mean)
        size = jnp.sum(jnp.log(jnp.diagonal(factor, axis1=-2, axis2=-1)), -1)
        return -.5 * jnp.vecdot(y, y) - n / 2 * math.log(2 * math.pi) - size

    pdf = lambda x, mean, cov: jnp.exp(multivariate_normal.logpdf(
        *promote_dtypes_inexact(x, mean, cov)))


@distribution
class cauchy:
    """The Cauchy distribution, which has no mean.

    >>> round(float(cauchy.logpdf(0.)), 4), round(float(cauchy.pdf(0.)), 4)
    (-1.1447, 0.3183)
    >>> float(cauchy.cdf(0.)), float(cauchy.sf(0.))
    (0.5, 0.5)
    >>> float(cauchy.ppf(0.5, 3.)), float(cauchy.isf(0.5, 3.))
    (3.0, 3.0)
    """

    logpdf = lambda x, loc=0, scale=1: -(
        jnp.log(math.pi * scale) + jnp.log1p(jnp.square((x - loc) / scale)))
    cdf = lambda x, loc=0, scale=1: jnp.arctan2(x - loc, scale) / math.pi + .5
    sf = lambda x, loc=0, scale=1: cauchy.cdf(-x, -loc, scale)
    logcdf, logsf = (_after(jnp.log, formula) for formula in (cdf, sf))
    ppf = lambda q, loc=0, scale=1: jnp.tan(math.pi * (q - .5)) * scale + loc
    isf = lambda q, loc=0, scale=1: jnp.tan(math.pi * (.5 - q)) * scale + loc


@distribution
class laplace:
    """The Laplace distribution: exponential to both sides of `loc`.

    >>> round(float(laplace.logpdf(0.)), 4), float(laplace.pdf(0.)), float(laplace.cdf(0.))
    (-0.6931, 0.5, 0.5)
    """

    logpdf = lambda x, loc=0, scale=1: -(jnp.abs(x - loc) / scale + jnp.log(2 * scale))

    def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
        z = (x - loc) / scale
        tail = jnp.exp(-jnp.abs(z)) / 2
        return jnp.where(z <= 0, tail, 1 - tail)


@distribution
class logistic:
    """The logistic distribution.

    >>> round(float(logistic.logpdf(0.)), 4), float(logistic.pdf(0.))
    (-1.3863, 0.25)
    >>> float(logistic.cdf(0.)), float(logistic.sf(0.))
    (0.5, 0.5)
    >>> float(logistic.ppf(0.5, 3.)), float(logistic.isf(0.5, 3.))
    (3.0, 3.0)
    """

    def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
        half = (x - loc) / scale / 2
        return -2 * jnp.logaddexp(half, -half) - jnp.log(scale)

    cdf = lambda x, loc=0, scale=1: special.expit((x - loc) / scale)
    sf = lambda x, loc=0, scale=1: special.expit(-(x - loc) / scale)
    ppf = lambda x, loc=0, scale=1: special.logit(x) * scale + loc
    isf = lambda x, loc=0, scale=1: loc - special.logit(x) * scale


@distribution
class t:
    """Student's distribution with `df` degrees of freedom.

    >>> round(float(t.logpdf(0., 1.)), 4), round(float(t.pdf(0., 1.)), 4)
    (-1.1447, 0.3183)
    """

    def logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
        half = df / 2
        size = jnp.log(jnp.sqrt(math.pi * df) * scale)
        tail = (half + .5) * jnp.log1p(jnp.square((x - loc) / scale) / df)
        return special.gammaln(half + .5) - special.gammaln(half) - size - tail


# ── Distributions with bounded support ───────────────────────────────────────────────────────

@distribution
class uniform:
    """The uniform distribution between `loc` and `loc + scale`; `ppf` is nan outside [0, 1].

    >>> float(uniform.logpdf(2.)), float(uniform.pdf(1., 0., 4.))
    (-inf, 0.25)
    >>> float(uniform.cdf(1., 0., 4.)), float(uniform.ppf(0.25, 0., 4.))
    (0.25, 1.0)
    """

    logpdf = lambda x, loc=0, scale=1: jnp.where(
        (x > loc + scale) | (x < loc), -jnp.inf, -jnp.log(scale))
    cdf = lambda x, loc=0, scale=1: jnp.select(
        [x < loc, x > loc + scale], [0, 1], (x - loc) / scale)
    ppf = lambda q, loc=0, scale=1: jnp.where((q >= 0) & (q <= 1), q * scale + loc, jnp.nan)


@distribution
class expon:
    """The exponential distribution, from `loc` on, of mean `loc + scale`.

    >>> float(expon.logpdf(2.)), float(expon.pdf(0., 0., 4.)), float(expon.cdf(0.))
    (-2.0, 0.25, 0.0)
    >>> float(expon.logsf(2.)), float(expon.sf(0.))
    (-2.0, 1.0)
    """

    logpdf = lambda x, loc=0, scale=1: jnp.where(
        x < loc, -jnp.inf, -(jnp.log(scale) + (x - loc) / scale))
    cdf = lambda x, loc=0, scale=1: jnp.where(x < loc, 0, -jnp.expm1(-(x - loc) / scale))
    logcdf = lambda x, loc=0, scale=1: jnp.where(
        x < loc, -jnp.inf, jnp.log1p(-jnp.exp(-(x - loc) / scale)))
    logsf = lambda x, loc=0, scale=1: jnp.where(x < loc, 0, -(x - loc) / scale)
    ppf = lambda q, loc=0, scale=1: jnp.where(
        (q < 0) | (q > 1) | (scale <= 0), jnp.nan, loc - jnp.log1p(-q) * scale)


def _igamma_arguments(x: Array, a: Array, loc: Array, scale: Array) -> list[Array]:
    """The arguments of the incomplete gamma functions, broadcast; x is clamped at `loc`."""
    return jnp.broadcast_arrays(a, jnp.maximum((x - loc) / scale, 0))


@distribution
class pareto:
    """The Pareto distribution, from `loc + scale` on.

    >>> round(float(pareto.logpdf(2., 1.)), 4), float(pareto.cdf(2., 1.)), float(pareto.sf(2., 1.))
    (-1.3863, 0.5, 0.5)
    >>> round(float(pareto.logcdf(2., 1.)), 4), float(pareto.ppf(0.5, 1.))
    (-0.6931, 2.0)
    """

    def logpdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
        y = (x - loc) / scale
        return jnp.where(y < 1, -jnp.inf, jnp.log(b / scale) - (b + 1) * jnp.log(y))

    cdf = lambda x, b, loc=0, scale=1: jnp.where(
        x < loc + scale, 0, 1 - jnp.power(scale / (x - loc), b))
    logcdf = lambda x, b, loc=0, scale=1: jnp.where(
        x < loc + scale, -jnp.inf, jnp.log1p(-jnp.power(scale / (x - loc), b)))
    logsf = lambda x, b, loc=0, scale=1: jnp.where(
        x < loc + scale, 0, b * jnp.log(scale / (x - loc)))
    ppf = lambda q, b, loc=0, scale=1: jnp.where(
        (q < 0) | (q > 1), jnp.nan, loc + scale * jnp.power(1 - q, -1 / b))


@distribution
class gumbel_r:
    """Gumbel's distribution of the largest of many numbers.

    >>> float(gumbel_r.logpdf(0.)), round(float(gumbel_r.cdf(0.)), 4)
    (-1.0, 0.3679)
    >>> float(gumbel_r.logcdf(0.)), round(float(gumbel_r.sf(0.)), 4)
    (-1.0, 0.6321)
    """

    def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
        z = (x - loc) / scale
        return jnp.where(scale > 0, -(z + jnp.exp(-z)) - jnp.log(scale), jnp.nan)

    logcdf = lambda x, loc=0, scale=1: -jnp.exp(-(x - loc) / scale)
    sf = lambda x, loc=0, scale=1: -jnp.expm1(-jnp.exp(-(x - loc) / scale))
    logsf = lambda x, loc=0, scale=1: jnp.log(gumbel_r.sf(x, loc, scale))
    ppf = lambda p, loc=0, scale=1: jnp.where(
        (p > 0) & (p < 1), loc - scale * jnp.log(-jnp.log(p)), jnp.nan)


@distribution
class gumbel_l:
    """Gumbel's distribution of the smallest of many numbers.

    >>> float(gumbel_l.logpdf(0.)), round(float(gumbel_l.cdf(0.)), 4)
    (-1.0, 0.6321)
    >>> float(gumbel_l.logsf(0.)), round(float(gumbel_l.sf(0.)), 4)
    (-1.0, 0.3679)
    """

    logpdf = lambda x, loc=0, scale=1: gumbel_r.logpdf(-x, -loc, scale)
    logcdf = lambda x, loc=0, scale=1: gumbel_r.logsf(-x, -loc, scale)
    cdf = lambda x, loc=0, scale=1: gumbel_r.sf(-x, -loc, scale)
    logsf = lambda x, loc=0, scale=1: gumbel_r.logcdf(-x, -loc, scale)
    ppf = lambda p, loc=0, scale=1: jnp.where(
        (p > 0) & (p < 1), loc + scale * jnp.log(-jnp.log1p(-p)), jnp.nan)


@distribution
class gennorm:
    """The distribution with density proportional to ``exp(-|x|^beta)``.

    >>> round(float(gennorm.logpdf(0., 1.)), 4), float(gennorm.pdf(0., 1.))
    (-0.6931, 0.5)
    >>> float(gennorm.cdf(0., 2.))
    0.5
    """

    logpdf = lambda x, beta: jnp.log(.5 * beta) - special.gammaln(1 / beta) - jnp.abs(x) ** beta

    cdf = lambda x, beta: .5 * (1 + jnp.sign(x) * lax.igamma(
        *jnp.broadcast_arrays(1 / beta, jnp.abs(x) ** beta)))


@distribution
class wrapcauchy:
    """The Cauchy distribution wrapped round a circle.

    >>> round(float(wrapcauchy.logpdf(0., .5)), 4), round(float(wrapcauchy.pdf(0., .5)), 4)
    (-0.7393, 0.4775)
    """

    def logpdf(x: ArrayLike, c: ArrayLike) -> Array:
        value = jnp.log(1 - c * c) - jnp.log(2 * math.pi) - jnp.log(1 + c * c - 2 * c * jnp.cos(x))
        value = jnp.where((x >= 0) & (x <= 2 * math.pi), value, -jnp.inf)
        return jnp.where((c > 0) & (c < 1), value, jnp.nan)


@distribution
class vonmises:
    """The distribution on a circle that is like the normal one; `kappa` is one over its variance.

    >>> round(float(vonmises.logpdf(0., 1.)), 4), round(float(vonmises.pdf(0., 1.)), 4)
    (-1.0738, 0.3417)
    """

    def logpdf(x: ArrayLike, kappa: ArrayLike) -> Array:
        value = kappa * (jnp.cos(x) - 1) - jnp.log(2 * math.pi * lax.bessel_i0e(kappa))
        return jnp.where(kappa > 0, value, jnp.nan)


@distribution
class gamma:
    """The gamma distribution of shape `a`.

    >>> round(float(gamma.logpdf(2., 1.)), 4), round(float(gamma.pdf(2., 1.)), 4)
    (-2.0, 0.1353)
    """

    def logpdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
        y = (x - loc) / scale
        value = special.xlogy(a - 1, y) - y - special.gammaln(a) - jnp.log(scale)
        return jnp.where(x < loc, -jnp.inf, value)

    cdf = lambda x, a, loc=0, scale=1: lax.igamma(*_igamma_arguments(x, a, loc, scale))
    sf = lambda x, a, loc=0, scale=1: lax.igammac(*_igamma_arguments(x, a, loc, scale))
    logcdf, logsf = (_after(jnp.log, formula) for formula in (cdf, sf))


def _as_gamma(formula: Callable) -> Callable:
    return lambda x, df, loc=0, scale=1: formula(x, df / 2, loc, 2 * scale)


@distribution
class chi2:
    """The distribution of the sum of `df` squares of normal numbers, a gamma distribution.

    >>> round(float(chi2.logpdf(2., 2.)), 4), round(float(chi2.pdf(2., 2.)), 4)
    (-1.6931, 0.1839)
    """

    logpdf, cdf, logcdf, sf, logsf = map(_as_gamma, (
        gamma.logpdf, gamma.cdf, gamma.logcdf, gamma.sf, gamma.logsf))


@distribution
class beta:
    """The beta distribution on the interval from `loc` to `loc + scale`.

    >>> round(float(beta.logpdf(.5, 2., 2.)), 4), round(float(beta.pdf(.5, 2., 2.)), 4)
    (0.4055, 1.5)
    >>> round(float(beta.cdf(.25, 2., 3.)), 4), round(float(beta.sf(.25, 2., 3.)), 4)
    (0.2617, 0.7383)
    >>> round(float(beta.logcdf(.5, 2., 2.)), 4), round(float(beta.logsf(.5, 2., 2.)), 4)
    (-0.6931, -0.6931)
    """

    def logpdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0,
               scale: ArrayLike = 1) -> Array:
        y = (x - loc) / scale
        powers = special.xlogy(a - 1, y) + special.xlog1py(b - 1, -y)
        value = powers - (special.betaln(a, b) + jnp.log(scale))
        value = jnp.where((x > loc + scale) | (x < loc), -jnp.inf, value)
        return jnp.where((a <= 0) | (b <= 0) | (scale <= 0), jnp.nan, value)

    cdf = lambda x, a, b, loc=0, scale=1: special.betainc(a, b, jnp.clip((x - loc) / scale, 0, 1))
    sf = lambda x, a, b, loc=0, scale=1: special.betainc(
        b, a, 1 - jnp.clip((x - loc) / scale, 0, 1))
    logcdf, logsf = (_after(jnp.log, formula) for formula in (cdf, sf))


# ── Discrete distributions ───────────────────────────────────────────────────────────────────

@distribution
class bernoulli:
    """The Bernoulli distribution: one with probability p, otherwise zero.

    >>> round(float(bernoulli.logpmf(1, 0.5)), 4), float(bernoulli.pmf(1, 0.25))
    (-0.6931, 0.25)
    >>> float(bernoulli.cdf(0, 0.25)), float(bernoulli.ppf(0.9, 0.25))
    (0.75, 1.0)
    """

    def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
        x = k - loc
        value = special.xlogy(x, p) + special.xlog1py(1 - x, -p)
        return _not_weak(jnp.where((x == 0) | (x == 1), value, -jnp.inf), k)

    def cdf(k: ArrayLike, p: ArrayLike) -> Array:
        outside = jnp.isnan(k) | (jnp.isnan(p) | ((p < 0) | (p > 1)))
        value = jnp.where(k < 0, 0, jnp.where(k < 1, 1 - p, 1))
        return _not_weak(jnp.where(outside, jnp.nan, value), k)

    def ppf(q: ArrayLike, p: ArrayLike) -> Array:
        """The least k whose `cdf` is at least q; nan outside [0, 1]."""
        outside = jnp.isnan(q) | jnp.isnan(p) | (p < 0) | (p > 1) | (q < 0) | (q > 1)
        return _not_weak(jnp.where(outside, jnp.nan, jnp.where(q <= 1 - p, 0, 1)), q)


def _not_weak(x: Array, k: Array) -> Array:
    """The result without a weak type, unless `k` is a weak scalar."""
    return x if k.weak_type and not k.ndim else lax.convert_element_type(x, x.dtype)


@distribution
class binom:
    """The binomial distribution: successes in `n` trials.

    >>> round(float(binom.logpmf(1, 2, .5)), 4), round(float(binom.pmf(1, 2, .5)), 4)
    (-0.6931, 0.5)
    """

    def logpmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
        y = k - loc
        ways = special.gammaln(n + 1) - (special.gammaln(y + 1) + special.gammaln(n - y + 1))
        value = ways + (special.xlogy(y, p) + special.xlog1py(n - y, -p))
        return jnp.where((y >= 0) & (y <= n), value, -jnp.inf)


@distribution
class poisson:
    """The Poisson distribution: how many events, where `mu` are expected.

    >>> round(float(poisson.logpmf(1, 2.)), 4), round(float(poisson.pmf(1, 2.)), 4)
    (-1.3069, 0.2707)
    >>> round(float(poisson.entropy(2.)), 4)
    1.7049
    """

    def logpmf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
        x = k - loc
        value = special.xlogy(x, mu) - special.gammaln(x + 1) - mu
        return jnp.where((x < 0) | (jnp.round(k) != k), -jnp.inf, value)

    cdf = lambda k, mu, loc=0: _not_weak(jnp.where(k < loc, 0, lax.igammac(*jnp.broadcast_arrays(
        jnp.maximum(jnp.floor(k - loc) + 1, 1), mu + 0 * k))), k)

    def entropy(mu: ArrayLike, loc: ArrayLike = 0) -> Array:
        mu = jnp.broadcast_to(mu, jnp.broadcast_shapes(mu.shape, loc.shape))
        few = jnp.where(mu == 0, 1, jnp.minimum(mu, 100))[..., None]
        logarithm = poisson.logpmf(jnp.arange(250, dtype=mu.dtype), few)
        summed = -jnp.sum(jnp.exp(logarithm) * logarithm, -1)
        many = jnp.maximum(mu, 100)
        series = jnp.log(2 * math.pi * math.e * many) / 2 - (1 + .5 / many) / (12 * many)
        return jnp.where(mu == 0, 0, jnp.where(mu < 100, summed, series))


@distribution
class geom:
    """How many trials there are until the first success, each of probability p.

    >>> round(float(geom.logpmf(2., .5)), 4), float(geom.pmf(2., .5))
    (-1.3863, 0.25)
    """

    def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
        x = k - loc
        return _not_weak(jnp.where(x <= 0, -jnp.inf, special.xlog1py(x - 1, -p) + jnp.log(p)), k)


@distribution
class nbinom:
    """How many failures there are before the n-th success, each of probability p.

    >>> round(float(nbinom.logpmf(1., 2., .5)), 4), round(float(nbinom.pmf(1., 2., .5)), 4)
    (-1.3863, 0.25)
    """

    def logpmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
        y = k - loc
        ways = special.gammaln(y + n) - special.gammaln(n) - special.gammaln(y + 1)
        value = ways + special.xlogy(n, p) + special.xlogy(y, 1 - p)
        return _not_weak(jnp.where(y < 0, -jnp.inf, value), k)


@distribution
class betabinom:
    """Successes in `n` trials, whose probability has a beta distribution.

    >>> round(float(betabinom.logpmf(1., 2., 1., 1.)), 4)
    -1.0986
    >>> round(float(betabinom.pmf(1., 2., 1., 1.)), 4)
    0.3333
    """

    def logpmf(k: ArrayLike, n: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0) -> Array:
        y = jnp.floor(k - loc)
        value = (special.betaln(y + a, n - y + b) - special.betaln(a, b)
                 - jnp.log(n + 1) - special.betaln(n - y + 1, y + 1))
        value = jnp.where((y >= 0) & (y <= n), value, -jnp.inf)
        return _not_weak(jnp.where((n < 0) | (a <= 0) | (b <= 0), jnp.nan, value), k)


# ── Multivariate distributions ───────────────────────────────────────────────────────────────

@functools.partial(distribution, prepare=lambda formula: formula)
class multinomial:
    """How many of `n` trials have each outcome, of the probabilities along the last axis of p.

    >>> x, p = jnp.array([1, 1]), jnp.array([.5, .5])
    >>> round(float(multinomial.logpmf(x, 2, p)), 4), round(float(multinomial.pmf(x, 2, p)), 4)
    (-0.6931, 0.5)
    """

    def logpmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
        """The logarithm of the probability of the whole numbers x."""
        [p], x, n = promote_dtypes_inexact(p), jnp.asarray(x), jnp.asarray(n)
        if x.dtype.kind not in "iu" or n.dtype.kind not in "iu":
            raise ValueError(f"x and n must be of integer type; got x.dtype={x.dtype}, "
                             f"n.dtype={n.dtype}")
        counts, trials = x.astype(p.dtype), n.astype(p.dtype)
        ways = special.gammaln(trials + 1) - jnp.sum(special.gammaln(counts + 1), -1)
        value = ways + jnp.sum(special.xlogy(counts, p), -1)
        return jnp.where(jnp.sum(x, -1) == n, value, -jnp.inf)


@functools.partial(distribution, prepare=lambda formula: formula)
class dirichlet:
    """The distribution of probabilities, along the first axis of x.

    >>> x, alpha = jnp.array([.5, .5]), jnp.array([2., 2.])
    >>> round(float(dirichlet.logpdf(x, alpha)), 4), round(float(dirichlet.pdf(x, alpha)), 4)
    (0.4055, 1.5)
    """

    def logpdf(x: ArrayLike, alpha: ArrayLike) -> Array:
        x, alpha = promote_dtypes_inexact(x, alpha)
        if alpha.ndim != 1:
            raise ValueError(f"`alpha` must be one-dimensional; got alpha.shape={alpha.shape}")
        if x.shape[0] not in (alpha.shape[0], alpha.shape[0] - 1):
            raise ValueError("`x` must have either the same number of entries as `alpha` or one "
                             f"entry fewer; got x.shape={x.shape}, alpha.shape={alpha.shape}")
        if x.shape[0] != alpha.shape[0]:
            x = jnp.concatenate([x, 1 - x.sum(0, keepdims=True)])
        alpha = jnp.reshape(alpha, (-1,) + (1,) * (x.ndim - 1))
        size = special.gammaln(alpha).sum(0) - special.gammaln(alpha.sum(0))
        value = special.xlogy(alpha - 1, x).sum(0) - size
        return jnp.where(jnp.all(x > 0, 0) & (jnp.abs(x.sum(0) - 1) < 1e-6), value, -jnp.inf)
