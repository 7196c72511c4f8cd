"""The Laplace distribution: exponential to both sides of `loc`.

Stands on `numpy`.  In JAX: `jax/_src/scipy/stats/laplace.py`.
"""

from __future__ import annotations

from minijax import numpy as jnp
from minijax.core import Array
from minijax.numpy.promotion import ArrayLike, promote_args_inexact


def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density at x.

    >>> round(float(logpdf(0.)), 4)
    -0.6931
    """
    x, loc, scale = promote_args_inexact("laplace.logpdf", x, loc, scale)
    return jnp.negative(jnp.abs(x - loc) / scale + jnp.log(2 * scale))


def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density at x.

    >>> float(pdf(0.))
    0.5
    """
    return jnp.exp(logpdf(x, loc, scale))


def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of a number below x.

    >>> float(cdf(0.))
    0.5
    """
    x, loc, scale = promote_args_inexact("laplace.cdf", x, loc, scale)
    z = (x - loc) / scale
    tail = jnp.exp(-jnp.abs(z)) / 2
    return jnp.where(z <= 0, tail, 1 - tail)
