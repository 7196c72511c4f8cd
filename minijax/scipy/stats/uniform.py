"""The uniform distribution between `loc` and `loc + scale`.

Stands on `numpy`.  In JAX: `jax/_src/scipy/stats/uniform.py`.
"""

from __future__ import annotations

from minijax import numpy as jnp
from minijax.core import Array
from minijax.numpy.promotion import ArrayLike, promote_args_inexact


def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density at x: -inf outside.

    >>> float(logpdf(2.))
    -inf
    """
    x, loc, scale = promote_args_inexact("uniform.logpdf", x, loc, scale)
    outside = jnp.logical_or(x > loc + scale, x < loc)
    return jnp.where(outside, -jnp.inf, jnp.negative(jnp.log(scale)))


def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density at x.

    >>> float(pdf(1., 0., 4.))
    0.25
    """
    return jnp.exp(logpdf(x, loc, scale))


def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of a number below x.

    >>> float(cdf(1., 0., 4.))
    0.25
    """
    x, loc, scale = promote_args_inexact("uniform.cdf", x, loc, scale)
    inside = (x - loc) / scale
    return jnp.where(x < loc, 0, jnp.where(x > loc + scale, 1, inside))


def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The number below which one lies with probability q; nan outside [0, 1].

    >>> float(ppf(0.25, 0., 4.))
    1.0
    """
    q, loc, scale = promote_args_inexact("uniform.ppf", q, loc, scale)
    valid = jnp.logical_and(q >= 0, q <= 1)
    return jnp.where(valid, q * scale + loc, jnp.nan)
