"""Matrices and grids from indices: eye, tri, tril, diag, meshgrid, indices, ….

Builds on `creation`, `shaping`.  Chapter 18, *Dynamic shapes*.
In JAX: `jax/_src/numpy/lax_numpy.py`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import dtypes, lax
from minijax.core import Array, refuse
from minijax.numpy.arguments import (ArrayLike, as_arrays, check_promotion, choose, convert,
                                     diagonal_offset, indices_along, is_traced_index, like, public,
                                     static_index)
from minijax.numpy import creation, shaping
from minijax.primitives.axes import canonical_shape, check_sizes, replaced


def _on_diagonal(rows: int, columns: int, k: Any) -> Any:
    """True on the diagonal that starts `k` columns to the right."""
    i, j = indices_along((rows, columns), 0, 1)
    return i + diagonal_offset(k) == j


def _below_diagonal(rows: int, columns: int, k: Any) -> Any:
    """True on the diagonal that starts `k` columns to the right, and below."""
    i, j = indices_along((rows, columns), 0, 1)
    return i + k >= j


def eye(N: Any, M: Any = None, k: int = 0, dtype: Any = None, *, device: Any = None) -> Array:
    """Ones on a diagonal, zeros elsewhere.

    >>> eye(2)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)

    Raises:
      TypeError: when a size is traced.
    """
    [rows] = canonical_shape((N,), "argument of 'N' jnp.eye().")
    [columns] = canonical_shape((N if M is None else M,), "argument of 'M' jnp.eye().")
    if rows < 0 or columns < 0:
        raise ValueError(f"negative dimensions are not allowed, got {N} and {M}")
    k = min(max(k, -rows), columns) if isinstance(k, int) else k
    return convert(_on_diagonal(rows, columns, k), dtype or dtypes.default_float_dtype())


def identity(n: Any, dtype: Any = None) -> Array:
    """The identity matrix.

    >>> identity(2, dtype="int32")
    Array([[1, 0],
           [0, 1]], dtype=int32)
    """
    return eye(n, dtype=dtype)


def tri(N: Any, M: Any = None, k: int = 0, dtype: Any = None) -> Array:
    """Ones on a diagonal and below, zeros above.

    >>> tri(2)
    Array([[1., 0.],
           [1., 1.]], dtype=float32)
    """
    rows, columns = _sizes(N, M)
    offset = k if is_traced_index(k) else operator.index(k)
    return convert(_below_diagonal(rows, columns, offset), dtype or np.dtype("float32"))


def tril(m: ArrayLike, k: int = 0) -> Array:
    """The matrix with zeros above a diagonal.

    >>> tril(np.array([[1, 2], [3, 4]]))
    Array([[1, 0],
           [3, 4]], dtype=int32)
    """
    return choose(_below_diagonal(*_matrix("tril", m), operator.index(k)), m, like(0, m))


def triu(m: ArrayLike, k: int = 0) -> Array:
    """The matrix with zeros below a diagonal.

    >>> triu(np.array([[1, 2], [3, 4]]))
    Array([[1, 2],
           [0, 4]], dtype=int32)
    """
    return choose(_below_diagonal(*_matrix("triu", m), operator.index(k - 1)), like(0, m), m)


def _sizes(rows: Any, columns: Any) -> tuple[int, ...]:
    """The numbers of rows and columns of a matrix, square by default."""
    sizes = canonical_shape((rows, rows if columns is None else columns))
    check_sizes("broadcast_in_dim", "shape", sizes)
    return sizes


def _indices_of(numpy: Callable, n: Any, k: Any, m: Any) -> tuple[Array, ...]:
    """NumPy's indices on one side of a diagonal."""
    n, k, m = (static_index(x, f"{name} argument of jnp.{numpy.__name__}")
               for name, x in (("n", n), ("k", k), ("m", n if m is None else m)))
    rows, columns = _sizes(n, m)
    return tuple(map(creation.array, numpy(rows, k, columns)))


def _matrix(name: str, m: Array) -> tuple[int, int]:
    """The numbers of rows and columns."""
    if m.ndim < 2:
        raise ValueError(f"Argument to jax.numpy.{name} must be at least 2D")
    rows, columns = m.shape[-2:]
    return rows, columns


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, ...]:
    """The indices on a diagonal and below.

    >>> [i.tolist() for i in tril_indices(2)]
    [[0, 1, 1], [0, 0, 1]]
    """
    return _indices_of(np.tril_indices, n, k, m)


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, ...]:
    """The indices on a diagonal and above.

    >>> [i.tolist() for i in triu_indices(2)]
    [[0, 0, 1], [0, 1, 1]]
    """
    return _indices_of(np.triu_indices, n, k, m)


def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """The indices of the main diagonal.

    >>> [i.tolist() for i in diag_indices(2)]
    [[0, 1], [0, 1]]
    """
    n, ndim = (static_index(x, f"{argument!r} argument of jnp.diag_indices()")
               for argument, x in (("n", n), ("ndim", ndim)))
    for argument, size in (("n", n), ("ndim", ndim)):
        if size < 0:
            raise ValueError(f"{argument} argument to diag_indices must be nonnegative, got {size}")
    return (lax.iota(dtypes.default_int_dtype(), n),) * ndim


def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The elements of a diagonal, as a new last axis.

    >>> diagonal(np.array([[1, 2], [3, 4]]))
    Array([1, 4], dtype=int32)
    """
    if a.ndim < 2:
        raise ValueError("diagonal requires an array of at least two dimensions.")
    moved: Any = shaping.moveaxis(a, (axis1, axis2), (-2, -1))
    rows, columns = moved.shape[-2:]
    offset = operator.index(offset)
    i = np.arange(max(0, min(rows + min(offset, 0), columns - max(offset, 0)))) + max(-offset, 0)
    return moved[..., i, i + offset]


def diag(v: ArrayLike, k: int = 0) -> Array:
    """The diagonal of a matrix, or the matrix with a vector on its diagonal.

    >>> diag(np.array([1, 2]))
    Array([[1, 0],
           [0, 2]], dtype=int32)
    """
    if v.ndim == 2:
        return diagonal(v, k)
    if v.ndim != 1:
        raise ValueError("diag input must be 1d or 2d")
    k = operator.index(k)
    size = v.shape[0] + abs(k)
    zero = like(0, v)
    row = lax.pad(v, zero, [(max(k, 0), max(-k, 0), 0)])
    return choose(_on_diagonal(size, size, k), lax.expand_dims(row, (0,)), zero)


def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """The matrix with all elements of an array on its diagonal.

    >>> diagflat(np.array([[1, 2]])).shape
    (2, 2)
    """
    return diag(shaping.ravel(convert(v, v.dtype)), k)


def fill_diagonal(a: Any, val: ArrayLike, wrap: bool = False, *, inplace: bool = True) -> Array:
    """The matrix with other values on its diagonal; needs ``inplace=False``.

    >>> fill_diagonal(np.ones((2, 2)), 0, inplace=False)
    Array([[0., 1.],
           [1., 0.]], dtype=float32)
    """
    refuse((inplace, "JAX arrays are immutable, must use inplace=False"),
           (wrap, "wrap=True is not implemented, must use wrap=False"), error=NotImplementedError)
    a, val = as_arrays("fill_diagonal", a, val)
    refuse((a.ndim < 2, "array must be at least 2-d"),
           (a.ndim > 2 and len(set(a.shape)) > 1,
            "All dimensions of input must be of equal length"), error=ValueError)
    flat: Any = shaping.ravel(val)
    check_promotion(a, flat)
    i = np.arange(min(a.shape))
    return a.at[(i,) * a.ndim].set(flat[i % flat.size])


def meshgrid(*xi: ArrayLike, copy: bool = True, sparse: bool = False,
             indexing: str = "xy") -> list[Array]:
    """The coordinates of all points of a grid, one array for each axis.

    >>> [x.tolist() for x in meshgrid(np.array([1, 2]), np.array([3, 4]))]
    [[[1, 2], [1, 2]], [[3, 3], [4, 4]]]
    """
    vectors = as_arrays("meshgrid", *xi)
    refuse((not copy, "jax.numpy.meshgrid only supports copy=True"),
           (indexing not in ("xy", "ij"),
            f"Valid values for indexing are 'xy' and 'ij', got {indexing}"),
           (any(x.ndim != 1 for x in vectors), "Arguments to jax.numpy.meshgrid must be 1D, got "
            f"shapes {[x.shape for x in vectors]}"), error=ValueError)
    axes = list(range(len(vectors)))
    if indexing == "xy" and len(vectors) >= 2:
        axes[:2] = 1, 0  # a permutation that is its own inverse
    shape = [1 if sparse else vectors[axis].size for axis in axes]
    return [lax.broadcast_in_dim(x, replaced(shape, axis, x.size), (axis,))
            for axis, x in zip(axes, vectors, strict=True)]


def indices(dimensions: Any, dtype: Any = None, sparse: bool = False) -> Any:
    """The index along each axis at every place of an array of this shape.

    >>> indices((2, 2)).tolist()
    [[[0, 0], [1, 1]], [[0, 1], [0, 1]]]
    """
    dtype = dtype or dtypes.default_int_dtype()
    shape = tuple(static_index(n, "dimensions argument of jnp.indices") for n in dimensions)
    if sparse:
        ones = (1,) * len(shape)
        return tuple(lax.broadcast_in_dim(lax.iota(dtype, n), replaced(ones, d, n), (d,))
                     for d, n in enumerate(shape))
    if not shape:
        return lax.full((0,), 0, dtype)
    return lax.stack([lax.broadcasted_iota(dtype, shape, d) for d in range(len(shape))])


def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Array:
    """The powers of the elements: one column for each, the highest first.

    >>> vander(np.array([2, 3]), 3)
    Array([[4, 2, 1],
           [9, 3, 1]], dtype=int32)
    """
    x = convert(x, x.dtype)
    count = x.size if N is None else operator.index(N)
    refuse((x.ndim != 1, "x must be a one-dimensional array"),
           (count < 0, "N must be nonnegative"), error=ValueError)
    powers = range(count) if increasing else range(count)[::-1]
    if not count:
        return lax.full((x.shape[0], 0), 0, x.dtype)
    return lax.stack([lax.integer_pow(x, power) for power in powers], 1)


public(globals())
