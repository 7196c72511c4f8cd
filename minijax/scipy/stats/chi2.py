"""The distribution of the sum of `df` squares of normal numbers.

Stands on `scipy.special`.  In JAX: `jax/_src/scipy/stats/chi2.py`.
"""

from __future__ import annotations

import math

from minijax import numpy as jnp
from minijax.core import Array
from minijax.numpy.promotion import ArrayLike, promote_args_inexact
from minijax.scipy.special import gammaln, xlogy


def logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density of x.

    >>> round(float(logpdf(2., 2.)), 4)
    -1.6931
    """
    x, df, loc, scale = promote_args_inexact("chi2.logpdf", x, df, loc, scale)
    y, half = (x - loc) / scale, df / 2
    size = gammaln(half) + half * math.log(2) + jnp.log(scale)
    value = xlogy(half - 1, y) - y / 2 - size
    return jnp.where(x >= loc, value, -jnp.inf)


def pdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density of x.

    >>> round(float(pdf(2., 2.)), 4)
    0.1839
    """
    return jnp.exp(logpdf(x, df, loc, scale))
