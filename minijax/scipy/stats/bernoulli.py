"""The Bernoulli distribution: one with probability p, otherwise zero.

Stands on `scipy.special`.  In JAX: `jax/_src/scipy/stats/bernoulli.py`.
"""

from __future__ import annotations

from minijax import lax
from minijax import numpy as jnp
from minijax.core import Array
from minijax.numpy.promotion import ArrayLike, promote_args_inexact
from minijax.scipy.special import xlog1py, xlogy


def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of k: -inf for what is neither `loc` nor `loc + 1`.

    >>> round(float(logpmf(1, 0.5)), 4)
    -0.6931
    """
    k, p, loc = promote_args_inexact("bernoulli.logpmf", k, p, loc)
    x = k - loc
    value = jnp.add(xlogy(x, p), xlog1py(1 - x, -p))
    return _strong(jnp.where(jnp.logical_or(x == 0, x == 1), value, -jnp.inf))


def pmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of k.

    >>> float(pmf(1, 0.25))
    0.25
    """
    return jnp.exp(logpmf(k, p, loc))


def cdf(k: ArrayLike, p: ArrayLike) -> Array:
    """The probability of at most k.

    >>> float(cdf(0, 0.25))
    0.75
    """
    k, p = promote_args_inexact("bernoulli.cdf", k, p)
    below = jnp.logical_or(jnp.isnan(k), jnp.logical_or(jnp.isnan(p), (p < 0) | (p > 1)))
    value = jnp.where(k < 0, 0, jnp.where(k < 1, 1 - p, 1))
    return _strong(jnp.where(below, jnp.nan, value))


def ppf(q: ArrayLike, p: ArrayLike) -> Array:
    """The least k whose `cdf` is at least q; nan outside [0, 1].

    >>> float(ppf(0.9, 0.25))
    1.0
    """
    q, p = promote_args_inexact("bernoulli.ppf", q, p)
    outside = jnp.logical_or(jnp.isnan(q), jnp.isnan(p)) | (p < 0) | (p > 1) | (q < 0) | (q > 1)
    return _strong(jnp.where(outside, jnp.nan, jnp.where(q <= 1 - p, 0, 1)))


def _strong(x: Array) -> Array:
    return lax.convert_element_type(x, x.dtype)
