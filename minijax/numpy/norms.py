"""Norms of vectors and matrices.

Stands on `reductions`, `lax.linalg`.  Chapter 20, *Precision*.
In JAX: `jax/_src/numpy/linalg.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax import dtypes, lax
from minijax.core import Array
from minijax.numpy import reductions
from minijax.numpy.arguments import (ArrayLike, Axes, as_array, canonical_axes, canonical_axis,
                                     convert, promote_dtypes_inexact)
from minijax.numpy.equations import inv
from minijax.numpy.shaping import moveaxis


def norm(x: ArrayLike, ord: Any = None, axis: Axes = None, keepdims: bool = False) -> Array:
    """The length of a vector, or the size of a matrix; without `ord` the Euclidean one.

    >>> norm(np.array([3., 4.]))
    Array(5., dtype=float32)

    Args:
      ord: of vectors: a number p, inf, -inf or 0; of matrices: "fro", "nuc", 1, -1, 2, -2, inf
        or -inf.
      axis: one axis for vectors, two for matrices; all by default.

    Raises:
      ValueError: for other orders and numbers of axes.
    """
    [x] = promote_dtypes_inexact(as_array("norm", x))
    if ord is None:
        return _euclidean(x, canonical_axes(axis, x.ndim), keepdims)
    axes = canonical_axes(axis, x.ndim)
    if len(axes) == 1:
        return _vector_norm(x, ord, axes, keepdims)
    if len(axes) == 2:
        return _matrix_norm(x, ord, axes, keepdims)
    raise ValueError(f"Improper number of axes for norm: axis={axes}. Pass one axis to compute a "
                     "vector-norm, or two axes to compute a matrix-norm.")


def vector_norm(x: ArrayLike, /, *, axis: Axes = None, keepdims: bool = False,
                ord: Any = 2) -> Array:
    """The length of vectors; their components may lie along several axes.

    >>> vector_norm(np.array([[3., 0.], [0., 4.]]))
    Array(5., dtype=float32)
    """
    [x] = promote_dtypes_inexact(as_array("vector_norm", x))
    return _vector_norm(x, ord, canonical_axes(axis, x.ndim), keepdims)


def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    """The size of every matrix in a stack; the orders are those of `norm`.

    >>> matrix_norm(np.array([[3., 0.], [0., 4.]]), ord=2)
    Array(4., dtype=float32)
    """
    return norm(x, ord, (-2, -1), keepdims)


def cond(x: ArrayLike, p: Any = None) -> Array:
    """How many times relative errors may grow in a system of equations with this matrix.

    >>> cond(np.array([[2., 0.], [0., 1.]]))
    Array(2., dtype=float32)

    Args:
      p: the order of the norm, as in `norm`; 2 by default.
    """
    [x] = promote_dtypes_inexact(as_array("cond", x))
    if x.ndim < 2:
        raise ValueError(f"jnp.linalg.cond: input array must be at least 2D; got {x.shape=}")
    if p in (None, 2, -2):
        values = lax.linalg.svd(x, compute_uv=False)
        if values.shape[-1] == 0:
            raise ValueError("jnp.linalg.cond: input array must not be empty; "
                             f"got {x.shape=}")
        ends = [lax.index_in_dim(values, i, values.ndim - 1, keepdims=False) for i in (0, -1)]
        return lax.div(*(ends if p != -2 else ends[::-1]))
    if x.shape[-2] != x.shape[-1]:
        raise ValueError("jnp.linalg.cond: for p != 2 and p != -2, array must be square; "
                         f"got {x.shape=}")
    return norm(x, p, (-2, -1)) * norm(inv(x), p, (-2, -1))


def _euclidean(x: Any, axes: tuple[int, ...], keepdims: bool) -> Array:
    is_complex = dtypes.issubdtype(x.dtype, np.complexfloating)
    squares = lax.real(x * lax.conj(x)) if is_complex else lax.square(x)
    return lax.sqrt(reductions.sum(squares, axes, keepdims=keepdims))


def _vector_norm(x: Any, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Array:
    if ord is None or ord == 2:
        return _euclidean(x, axes, keepdims)
    size = lax.abs(x)
    if ord in (np.inf, -np.inf):
        return (reductions.max if ord > 0 else reductions.min)(size, axes, keepdims=keepdims)
    if ord == 0:
        return reductions.sum(x != 0, axes, dtype=size.dtype, keepdims=keepdims)
    if ord == 1:
        return reductions.sum(size, axes, keepdims=keepdims)
    if isinstance(ord, str):
        raise ValueError(f"Invalid order '{ord}' for vector norm.")
    powers = lax.pow(size, convert(ord, size.dtype))
    return lax.pow(reductions.sum(powers, axes, keepdims=keepdims), convert(1 / ord, size.dtype))


def _matrix_norm(x: Any, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Array:
    if ord in ("f", "fro"):
        return _euclidean(x, axes, keepdims)
    if ord in (1, -1, np.inf, -np.inf):
        summed, taken = axes if abs(ord) == 1 else axes[::-1]
        sums = reductions.sum(lax.abs(x), summed, keepdims=True)
        found = (reductions.max if ord > 0 else reductions.min)(sums, taken, keepdims=True)
        return found if keepdims else lax.squeeze(found, axes)
    if ord not in (2, -2, "nuc"):
        raise ValueError(f"Invalid order '{ord}' for matrix norm.")
    values = lax.linalg.svd(moveaxis(x, axes, (-2, -1)), compute_uv=False)
    combine: Any = {2: reductions.max, -2: reductions.min, "nuc": reductions.sum}[ord]
    found = combine(values, canonical_axis(-1, values.ndim))
    return lax.expand_dims(found, axes) if keepdims else found
