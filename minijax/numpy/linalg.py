"""`minijax.numpy.linalg`: norms and products of vectors and matrices.

Stands on `contractions`, `reductions`.  Chapter 20.
In JAX: `jax/_src/numpy/linalg.py`; factorisations belong to the primitives of `linalg`.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from minijax import dtypes, lax
from minijax.core import Array
from minijax.numpy import contractions, diagonals, reductions
from minijax.numpy.contractions import cross as cross
from minijax.numpy.contractions import matmul as matmul
from minijax.numpy.contractions import multi_dot as multi_dot
from minijax.numpy.contractions import outer as outer
from minijax.numpy.contractions import tensordot as tensordot
from minijax.numpy.contractions import vecdot as vecdot
from minijax.numpy.promotion import (ArrayLike, as_array, canonical_axes, convert,
                                     promote_dtypes_inexact)
from minijax.numpy.shaping import matrix_transpose as matrix_transpose


def norm(x: ArrayLike, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Array:
    """The length of a vector, or the size of a matrix; without `ord` the Euclidean one.

    >>> norm(np.array([3., 4.]))
    Array(5., dtype=float32)

    Args:
      ord: of vectors: a number p, inf, -inf or 0; of matrices: "fro", 1, -1, inf or -inf.
      axis: one axis for vectors, two for matrices; all by default.
    """
    # JAX: also the norms by singular values.
    [x] = promote_dtypes_inexact(as_array("norm", x))
    axes = canonical_axes(axis, x.ndim)
    if ord is None or (len(axes) == 2 and ord in ("f", "fro")):
        squares = (lax.square(x) if not dtypes.issubdtype(x.dtype, np.complexfloating)
                   else lax.real(lax.mul(x, lax.conj(x))))
        return lax.sqrt(reductions.sum(squares, axes, keepdims=keepdims))
    if len(axes) == 1:
        return _vector_norm(x, ord, axes, keepdims)
    if len(axes) == 2 and ord in (1, -1, np.inf, -np.inf):
        summed, taken = axes if abs(ord) == 1 else axes[::-1]
        sums = reductions.sum(lax.abs(x), summed, keepdims=True)
        found = (reductions.max if ord > 0 else reductions.min)(sums, taken, keepdims=True)
        return found if keepdims else lax.squeeze(found, axes)
    raise ValueError(f"Invalid order {ord!r} for the norm over {len(axes)} axes.")


def _vector_norm(x: Any, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Array:
    size = lax.abs(x)
    if ord == np.inf:
        return reductions.max(size, axes, keepdims=keepdims)
    if ord == -np.inf:
        return reductions.min(size, axes, keepdims=keepdims)
    if ord == 0:
        return reductions.sum(lax.ne(x, convert(0, x.dtype)), axes, dtype=size.dtype,
                              keepdims=keepdims)
    if ord == 1:
        return reductions.sum(size, axes, keepdims=keepdims)
    if ord == 2:
        return lax.sqrt(reductions.sum(lax.square(size), axes, keepdims=keepdims))
    if isinstance(ord, str):
        raise ValueError(f"Invalid order '{ord}' for vector norm.")
    powers = lax.pow(size, convert(ord, size.dtype))
    return lax.pow(reductions.sum(powers, axes, keepdims=keepdims), convert(1 / ord, size.dtype))


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """The diagonals of a stack of matrices.

    >>> diagonal(np.ones((4, 2, 2))).shape
    (4, 2)
    """
    return diagonals.diagonal(x, offset, -2, -1)


def vector_norm(x: ArrayLike, /, *, axis: Any = None, keepdims: bool = False,
                ord: Any = 2) -> Array:
    """The lengths of vectors; over all elements where no axis is given.

    >>> vector_norm(np.array([[3., 4.], [0., 5.]]), axis=1)
    Array([5., 5.], dtype=float32)
    """
    [x] = promote_dtypes_inexact(as_array("vector_norm", x))
    return _vector_norm(x, ord, canonical_axes(axis, x.ndim), keepdims)


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: Any = None) -> Array:
    """The sums of the diagonals of a stack of matrices.

    >>> trace(np.ones((4, 2, 2))).shape
    (4,)
    """
    return contractions.trace(x, offset, -2, -1, dtype)


def matrix_power(a: ArrayLike, n: int) -> Array:
    """A square matrix multiplied by itself, `n` times in all.

    >>> matrix_power(np.array([[1, 1], [0, 1]]), 5)
    Array([[1, 5],
           [0, 1]], dtype=int32)
    """
    x = as_array("matrix_power", a)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise TypeError("Last 2 dimensions of the array must be square; "
                        f"got a shape of {x.shape}")
    n = operator.index(n)
    if n < 0:
        raise NotImplementedError("matrix_power: negative powers need an inverse.")
    result: Any = None
    while n:
        if n % 2:
            result = x if result is None else contractions.matmul(result, x)
        n //= 2
        x = contractions.matmul(x, x) if n else x
    if result is None:
        one = diagonals.eye(x.shape[-1], dtype=x.dtype)
        return lax.broadcast(one, x.shape[:-2])
    return result
