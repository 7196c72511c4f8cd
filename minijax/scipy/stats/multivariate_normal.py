"""The normal distribution of vectors.

Stands on `lax.linalg`.  Capstones with Gaussian processes.
In JAX: `jax/_src/scipy/stats/multivariate_normal.py`.
"""

from __future__ import annotations

import math
from typing import Any

from minijax import lax
from minijax import numpy as jnp
from minijax.core import Array
from minijax.numpy.promotion import ArrayLike, promote_dtypes_inexact


def logpdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike, allow_singular: None = None) -> Array:
    """The logarithm of the density at vectors x.

    >>> round(float(logpdf(jnp.zeros(2), jnp.zeros(2), jnp.eye(2))), 4)
    -1.8379

    Args:
      x, mean: vectors, in stacks that broadcast.
      cov: a positive definite matrix; or a number, the variance of each component.
      allow_singular: accepted as None.
    """
    if allow_singular is not None:
        raise NotImplementedError("allow_singular argument of multivariate_normal.logpdf")
    x, mean, cov = promote_dtypes_inexact(x, mean, cov)
    if mean.ndim == 0:
        return _of_numbers(jnp.square(x - mean), cov, 1)
    n = mean.shape[-1]
    if cov.ndim == 0:
        return _of_numbers(jnp.vecdot(x - mean, x - mean), cov, n)
    if cov.ndim < 2 or cov.shape[-2:] != (n, n):
        raise ValueError("multivariate_normal.logpdf got incompatible shapes")
    factor: Any = lax.linalg.cholesky(cov)
    whiten = lambda factor, gap: lax.linalg.triangular_solve(
        factor, gap, lower=True, left_side=True)
    y: Any = jnp.vectorize(whiten, signature="(n,n),(n)->(n)")(factor, x - mean)
    size: Any = jnp.sum(jnp.log(jnp.diagonal(factor, axis1=-2, axis2=-1)), -1)
    squares: Any = jnp.vecdot(y, y)
    return -.5 * squares - n / 2 * math.log(2 * math.pi) - size


def _of_numbers(squares: Any, variance: Any, n: int) -> Any:
    """For `n` independent components of one variance."""
    size: Any = jnp.log(2 * math.pi * variance)
    return -.5 * squares / variance - n / 2 * size


def pdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike) -> Array:
    """The density at vectors x.

    >>> round(float(pdf(jnp.zeros(2), jnp.zeros(2), jnp.eye(2))), 4)
    0.1592
    """
    return jnp.exp(logpdf(x, mean, cov))
