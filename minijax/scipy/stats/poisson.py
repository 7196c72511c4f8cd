"""The Poisson distribution: how many events, where `mu` are expected.

Stands on `scipy.special`.  In JAX: `jax/_src/scipy/stats/poisson.py`.
"""

from __future__ import annotations

from minijax import numpy as jnp
from minijax.core import Array
from minijax.numpy.promotion import ArrayLike, promote_args_inexact
from minijax.scipy.special import gammaln, xlogy


def logpmf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of k.

    >>> round(float(logpmf(1, 2.)), 4)
    -1.3069
    """
    k, mu, loc = promote_args_inexact("poisson.logpmf", k, mu, loc)
    x = k - loc
    value = jnp.subtract(xlogy(x, mu), gammaln(x + 1)) - mu
    return jnp.where(jnp.logical_or(x < 0, jnp.round(k) != k), -jnp.inf, value)


def pmf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of k.

    >>> round(float(pmf(1, 2.)), 4)
    0.2707
    """
    return jnp.exp(logpmf(k, mu, loc))
