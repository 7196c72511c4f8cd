"""The logistic distribution.

Stands on `scipy.special`.  In JAX: `jax/_src/scipy/stats/logistic.py`.
"""

from __future__ import annotations

from typing import Any

from minijax import numpy as jnp
from minijax.core import Array
from minijax.numpy.promotion import ArrayLike, promote_args_inexact
from minijax.scipy.special import expit, logit


def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density at x.

    >>> round(float(logpdf(0.)), 4)
    -1.3863
    """
    x, loc, scale = promote_args_inexact("logistic.logpdf", x, loc, scale)
    z = (x - loc) / scale
    soft: Any = jnp.logaddexp(0, -z)
    return -z - 2 * soft - jnp.log(scale)


def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density at x.

    >>> float(pdf(0.))
    0.25
    """
    return jnp.exp(logpdf(x, loc, scale))


def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of a number below x.

    >>> float(cdf(0.))
    0.5
    """
    x, loc, scale = promote_args_inexact("logistic.cdf", x, loc, scale)
    return expit((x - loc) / scale)


def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of a number above x.

    >>> float(sf(0.))
    0.5
    """
    x, loc, scale = promote_args_inexact("logistic.sf", x, loc, scale)
    return expit(-(x - loc) / scale)


def ppf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The number below which one lies with probability x.

    >>> float(ppf(0.5, 3.))
    3.0
    """
    x, loc, scale = promote_args_inexact("logistic.ppf", x, loc, scale)
    return logit(x) * scale + loc


def isf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The number above which one lies with probability x.

    >>> float(isf(0.5, 3.))
    3.0
    """
    x, loc, scale = promote_args_inexact("logistic.isf", x, loc, scale)
    return loc - logit(x) * scale
