"""The binomial distribution: successes in `n` trials.

Stands on `scipy.special`.  In JAX: `jax/_src/scipy/stats/binom.py`.
"""

from __future__ import annotations

from minijax import numpy as jnp
from minijax.core import Array
from minijax.numpy.promotion import ArrayLike, promote_args_inexact
from minijax.scipy.special import gammaln, xlog1py, xlogy


def logpmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of k.

    >>> round(float(logpmf(1, 2, .5)), 4)
    -0.6931
    """
    k, n, p, loc = promote_args_inexact("binom.logpmf", k, n, p, loc)
    y = k - loc
    ways = jnp.subtract(gammaln(n + 1), jnp.add(gammaln(y + 1), gammaln(n - y + 1)))
    value = jnp.add(ways, jnp.add(xlogy(y, p), xlog1py(n - y, -p)))
    return jnp.where(jnp.logical_and(y >= 0, y <= n), value, -jnp.inf)


def pmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of k.

    >>> round(float(pmf(1, 2, .5)), 4)
    0.5
    """
    return jnp.exp(logpmf(k, n, p, loc))
