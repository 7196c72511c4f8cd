"""The exponential distribution, from `loc` on, of mean `loc + scale`.

Stands on `numpy`.  In JAX: `jax/_src/scipy/stats/expon.py`.
"""

from __future__ import annotations

from minijax import numpy as jnp
from minijax.core import Array
from minijax.numpy.promotion import ArrayLike, promote_args_inexact


def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density at x: -inf below `loc`.

    >>> float(logpdf(2.))
    -2.0
    """
    x, loc, scale = promote_args_inexact("expon.logpdf", x, loc, scale)
    value = jnp.negative(jnp.log(scale) + (x - loc) / scale)
    return jnp.where(x < loc, -jnp.inf, value)


def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density at x.

    >>> float(pdf(0., 0., 4.))
    0.25
    """
    return jnp.exp(logpdf(x, loc, scale))


def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of a number below x.

    >>> float(cdf(0.))
    0.0
    """
    x, loc, scale = promote_args_inexact("expon.cdf", x, loc, scale)
    return jnp.where(x < loc, 0, jnp.negative(jnp.expm1(-(x - loc) / scale)))


def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the probability of a number above x.

    >>> float(logsf(2.))
    -2.0
    """
    x, loc, scale = promote_args_inexact("expon.logsf", x, loc, scale)
    return jnp.where(x < loc, 0, -(x - loc) / scale)


def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of a number above x.

    >>> float(sf(0.))
    1.0
    """
    return jnp.exp(logsf(x, loc, scale))
