"""Covariances and correlations of quantities.

Builds on `reductions`, `contractions`.  Chapter 20, *Precision, and where NumPy differs*.
In JAX: `jax/_src/numpy/lax_numpy.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax import dtypes, lax
from minijax.core import Array, refuse
from minijax.numpy import contractions, diagonals, joining, reductions, unary
from minijax.numpy.arguments import (ArrayLike, as_array, check_promotion, convert,
                                     promote_args_inexact, public)


def _rows(x: Any, rowvar: bool, is_second: bool) -> Any:
    """The quantities as rows of a matrix; one row of more quantities stays, as in NumPy."""
    if x.ndim < 2:
        return lax.reshape(x, (1, x.size))
    return x if rowvar or is_second and x.shape[0] == 1 else lax.transpose(x, (1, 0))


def _weights(kind: str, values: ArrayLike, count: int) -> Any:
    """A weight, never negative, for each observation."""
    weights = as_array("cov", values)
    if kind == "fweights" and not dtypes.issubdtype(weights.dtype, np.integer):
        raise TypeError("fweights must be integer.")
    refuse((weights.ndim > 1, f"cannot handle multidimensional {kind}"),
           (weights.shape[0] != count, f"incompatible numbers of samples and {kind}"),
           error=RuntimeError)
    return unary.abs(weights)


def cov(m: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, bias: bool = False,
        ddof: int | None = None, fweights: ArrayLike | None = None,
        aweights: ArrayLike | None = None, dtype: Any = None) -> Array:
    """The covariances of quantities, from observations of them.

    Args:
      m: observations: a row for each quantity, of shape (quantities, observations).
      y: more quantities.
      rowvar: whether rows are quantities; otherwise columns are.
      bias: whether to divide by the number of observations; otherwise by one less.
      ddof: by how much less instead.
      fweights: how often each observation was made: integers of shape (observations,).
      aweights: how much each counts, of shape (observations,).

    Returns:
      A matrix of shape (quantities, quantities); a number where there is one quantity.

    >>> cov(np.array([[1., 2., 3.], [3., 2., 1.]]))
    Array([[ 1., -1.],
           [-1.,  1.]], dtype=float32)

    Raises:
      ValueError: for more than two axes.
      RuntimeError, TypeError: for weights that do not fit.
    """
    _check_dtype("cov", dtype)
    observations = promote_args_inexact("cov", *(x for x in (m, y) if x is not None))
    for name, quantity in (("m", m), ("y", y)):
        if quantity is not None and np.ndim(quantity) > 2:
            raise ValueError(f"{name} has more than 2 dimensions")
    parts = [_rows(x, rowvar, k == 1) for k, x in enumerate(observations)]
    if parts[0].shape[0] == 0:
        return lax.full((0, 0), 0, dtypes.default_float_dtype())
    x: Any = joining.concatenate(parts) if len(parts) > 1 else parts[0]
    quantities, count = x.shape
    if count == 0:
        return lax.full((quantities, quantities) if quantities > 1 else (), np.nan, x.dtype)
    x = convert(x, dtypes.dtype(dtype or x.dtype))
    if ddof is None:
        ddof = 0 if bias else 1
    weights: Any = None if fweights is None else _weights("fweights", fweights, count)
    if aweights is not None:
        also = convert(_weights("aweights", aweights, count), x.real.dtype)
        weights = also if weights is None else weights * also
    check_promotion(x, aweights)
    mean, total = reductions.average(x, 1, weights, returned=True)
    total, x = total[0], x - mean[:, None]
    if weights is None:
        freedom: Any = count - ddof
    elif aweights is None:
        freedom = total - ddof
    else:
        freedom = total - ddof * reductions.sum(weights * also) / total
    weighted = x if weights is None else x * weights
    products: Any = contractions.dot(weighted, lax.conj(x.T) if x.dtype.kind == "c" else x.T)
    return lax.squeeze(products / freedom, [d for d in (0, 1) if products.shape[d] == 1])


def _check_dtype(name: str, dtype: Any) -> None:
    if dtype is not None and not dtypes.issubdtype(dtype, np.inexact):
        raise ValueError(f"{name}: dtype must be a subclass of float or complex; got {dtype=}")


def corrcoef(x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, dtype: Any = None
             ) -> Array:
    """The correlations of quantities: their covariances over their standard deviations.

    Args:
      x, y, rowvar, dtype: as for `cov`.

    >>> corrcoef(np.array([[1., 2., 4.], [3., 2., 0.]])).round(4)
    Array([[ 1., -1.],
           [-1.,  1.]], dtype=float32)
    """
    _check_dtype("corrcoef", dtype)
    y = y if y is None else as_array("corrcoef", y)
    check_promotion(x, y)
    covariances: Any = cov(x, y, rowvar, dtype=dtype)
    if not covariances.shape:
        return covariances / covariances
    deviations = lax.sqrt(diagonals.diagonal(covariances).real)
    correlations = covariances / deviations[:, None] / deviations[None, :]
    low, high = (convert(x, deviations.dtype) for x in (-1, 1))
    parts = [lax.clamp(low, x, high) for x in (correlations.real, correlations.imag)]
    return lax.complex(*parts) if correlations.dtype.kind == "c" else parts[0]


public(globals())
