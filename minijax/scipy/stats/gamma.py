"""The gamma distribution of shape `a`.

Stands on `scipy.special`.  In JAX: `jax/_src/scipy/stats/gamma.py`.
"""

from __future__ import annotations

from minijax import numpy as jnp
from minijax.core import Array
from minijax.numpy.promotion import ArrayLike, promote_args_inexact
from minijax.scipy.special import gammaln, xlogy


def logpdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density of x.

    >>> round(float(logpdf(2., 1.)), 4)
    -2.0
    """
    x, a, loc, scale = promote_args_inexact("gamma.logpdf", x, a, loc, scale)
    y = (x - loc) / scale
    value = xlogy(a - 1, y) - y - gammaln(a) - jnp.log(scale)
    return jnp.where(x >= loc, value, -jnp.inf)


def pdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density of x.

    >>> round(float(pdf(2., 1.)), 4)
    0.1353
    """
    return jnp.exp(logpdf(x, a, loc, scale))
