"""Student's distribution with `df` degrees of freedom.

Stands on `scipy.special`.  In JAX: `jax/_src/scipy/stats/t.py`.
"""

from __future__ import annotations

import math

from minijax import numpy as jnp
from minijax.core import Array
from minijax.numpy.promotion import ArrayLike, promote_args_inexact
from minijax.scipy.special import gammaln


def logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density of x.

    >>> round(float(logpdf(0., 1.)), 4)
    -1.1447
    """
    x, df, loc, scale = promote_args_inexact("t.logpdf", x, df, loc, scale)
    y = (x - loc) / scale
    half = df / 2
    ratio = jnp.subtract(gammaln(half + .5), gammaln(half))
    size = jnp.log(jnp.sqrt(math.pi * df) * scale)
    tail = (half + .5) * jnp.log1p(jnp.square(y) / df)
    return jnp.subtract(jnp.subtract(ratio, size), tail)


def pdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density of x.

    >>> round(float(pdf(0., 1.)), 4)
    0.3183
    """
    return jnp.exp(logpdf(x, df, loc, scale))
