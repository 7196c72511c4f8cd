"""The normal distribution.

Stands on `scipy.special`.  In JAX: `jax/_src/scipy/stats/norm.py`.
"""

from __future__ import annotations

import math
from typing import Any

from minijax import numpy as jnp
from minijax.core import Array
from minijax.numpy.promotion import ArrayLike, promote_args_inexact
from minijax.scipy import special


def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density at x, for this mean and standard deviation.

    >>> round(float(logpdf(0.)), 4)
    -0.9189
    """
    x, loc, scale = promote_args_inexact("norm.logpdf", x, loc, scale)
    variance: Any = jnp.square(scale)
    size: Any = jnp.log(2 * math.pi * variance)
    return (size + jnp.square(x - loc) / variance) / -2


def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density at x.

    >>> round(float(pdf(0.)), 4)
    0.3989
    """
    return jnp.exp(logpdf(x, loc, scale))


def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of a number below x.

    >>> float(cdf(0.))
    0.5
    """
    x, loc, scale = promote_args_inexact("norm.cdf", x, loc, scale)
    return special.ndtr((x - loc) / scale)


def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `cdf`, exact in the lower tail, too.

    >>> round(float(logcdf(0.)), 4)
    -0.6931
    """
    x, loc, scale = promote_args_inexact("norm.logcdf", x, loc, scale)
    return special.log_ndtr((x - loc) / scale)


def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of a number above x.

    >>> float(sf(0.))
    0.5
    """
    x, loc, scale = promote_args_inexact("norm.sf", x, loc, scale)
    return cdf(-x, -loc, scale)


def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `sf`.

    >>> round(float(logsf(0.)), 4)
    -0.6931
    """
    x, loc, scale = promote_args_inexact("norm.logsf", x, loc, scale)
    return logcdf(-x, -loc, scale)


def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The number below which one lies with probability q.

    >>> float(ppf(0.5, 3.))
    3.0
    """
    q, loc, scale = promote_args_inexact("norm.ppf", q, loc, scale)
    return special.ndtri(q) * scale + loc


def isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The number above which one lies with probability q.

    >>> float(isf(0.5, 3.))
    3.0
    """
    q, loc, scale = promote_args_inexact("norm.isf", q, loc, scale)
    return ppf(1 - q, loc, scale)
