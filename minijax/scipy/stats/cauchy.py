"""The Cauchy distribution, which has no mean.

Stands on `numpy`.  In JAX: `jax/_src/scipy/stats/cauchy.py`.
"""

from __future__ import annotations

import math
from typing import Any

from minijax import numpy as jnp
from minijax.core import Array
from minijax.numpy.promotion import ArrayLike, promote_args_inexact


def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density at x.

    >>> round(float(logpdf(0.)), 4)
    -1.1447
    """
    x, loc, scale = promote_args_inexact("cauchy.logpdf", x, loc, scale)
    size = jnp.log(math.pi * scale)
    return jnp.negative(jnp.add(size, jnp.log1p(jnp.square((x - loc) / scale))))


def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density at x.

    >>> round(float(pdf(0.)), 4)
    0.3183
    """
    return jnp.exp(logpdf(x, loc, scale))


def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of a number below x.

    >>> float(cdf(0.))
    0.5
    """
    x, loc, scale = promote_args_inexact("cauchy.cdf", x, loc, scale)
    turn: Any = jnp.arctan2(x - loc, scale)
    return turn / math.pi + .5


def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of a number above x.

    >>> float(sf(0.))
    0.5
    """
    x, loc, scale = promote_args_inexact("cauchy.sf", x, loc, scale)
    return cdf(-x, -loc, scale)


def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The number below which one lies with probability q.

    >>> float(ppf(0.5, 3.))
    3.0
    """
    q, loc, scale = promote_args_inexact("cauchy.ppf", q, loc, scale)
    return jnp.tan(math.pi * (q - .5)) * scale + loc


def isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The number above which one lies with probability q.

    >>> float(isf(0.5, 3.))
    3.0
    """
    q, loc, scale = promote_args_inexact("cauchy.isf", q, loc, scale)
    return jnp.tan(math.pi * (.5 - q)) * scale + loc
