"""The beta distribution on the interval from `loc` to `loc + scale`.

Stands on `scipy.special`.  In JAX: `jax/_src/scipy/stats/beta.py`.
"""

from __future__ import annotations

from minijax import numpy as jnp
from minijax.core import Array
from minijax.numpy.promotion import ArrayLike, promote_args_inexact
from minijax.scipy.special import betaln, xlog1py, xlogy


def logpdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0,
           scale: ArrayLike = 1) -> Array:
    """The logarithm of the density of x.

    >>> round(float(logpdf(.5, 2., 2.)), 4)
    0.4055
    """
    x, a, b, loc, scale = promote_args_inexact("beta.logpdf", x, a, b, loc, scale)
    y = (x - loc) / scale
    powers = jnp.add(xlogy(a - 1, y), xlog1py(b - 1, -y))
    value = jnp.subtract(powers, jnp.add(betaln(a, b), jnp.log(scale)))
    outside = jnp.logical_or(x > loc + scale, x < loc)
    return jnp.where(outside, -jnp.inf, value)


def pdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0,
        scale: ArrayLike = 1) -> Array:
    """The density of x.

    >>> round(float(pdf(.5, 2., 2.)), 4)
    1.5
    """
    return jnp.exp(logpdf(x, a, b, loc, scale))
