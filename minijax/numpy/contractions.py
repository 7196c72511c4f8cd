"""Products of matrices and vectors: dot, matmul, tensordot, outer, cross, trace, ….

Stands on `einsum`.  Chapter 00 multiplies matrices; chapter 20 has their precision.
In JAX: `jax/_src/numpy/tensor_contractions.py`, `lax_numpy.py`.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import dtypes, lax
from minijax.core import Array
from minijax.numpy import reductions
from minijax.numpy.arguments import (ArrayLike, as_array, canonical_axis, check_arraylike, choose,
                                     convert, promote_dtypes)
from minijax.numpy.creation import stacked
from minijax.numpy.einsum import contract, dot_general
from minijax.numpy.shaping import moveaxis, ravel


def dot(a: ArrayLike, b: ArrayLike, *, precision: Any = None,
        preferred_element_type: Any = None) -> Array:
    """The last axis of `a` against the last but one of `b`; with a scalar, the product.

    >>> dot(np.array([1, 2]), np.array([3, 4]))
    Array(11, dtype=int32)

    Raises:
      TypeError: where the sizes differ.
    """
    check_arraylike("dot", a, b)
    a, b = promote_dtypes(a, b)
    if a.ndim == 0 or b.ndim == 0:
        contracted: tuple[list[int], list[int]] = ([], [])
    else:
        contracted = ([a.ndim - 1], [max(b.ndim - 2, 0)])
    return dot_general(a, b, (contracted, ([], [])), precision, preferred_element_type)


def matmul(a: ArrayLike, b: ArrayLike, *, precision: Any = None,
           preferred_element_type: Any = None) -> Array:
    """The product of two matrices, of a matrix and a vector, or of stacks of these.

    >>> matmul(np.array([[1, 0], [1, 1]]), np.array([5, 7]))
    Array([ 5, 12], dtype=int32)

    Raises:
      ValueError: for scalars, and for stacks that do not broadcast.
      TypeError: where the inner sizes differ.
    """
    check_arraylike("matmul", a, b)
    for place, x in enumerate((a, b)):
        if np.ndim(x) == 0:
            raise ValueError(f"matmul input operand {place} must have ndim at least 1, "
                             "but it has ndim 0")
    a, b = promote_dtypes(a, b)
    if a.ndim <= 2 and b.ndim <= 2:
        dims: Any = (([a.ndim - 1], [max(b.ndim - 2, 0)]), ([], []))
        return dot_general(a, b, dims, precision, preferred_element_type)
    stack = lax.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    names = [("stack", d) for d in range(len(stack))]
    labels_a = [*names[len(names) - max(a.ndim - 2, 0):], *(["row"] if a.ndim > 1 else []), "k"]
    labels_b = [*names[len(names) - max(b.ndim - 2, 0):], "k", *(["col"] if b.ndim > 1 else [])]
    out = [*names, *(["row"] if a.ndim > 1 else []), *(["col"] if b.ndim > 1 else [])]
    return contract(a, labels_a, b, labels_b, out, precision, preferred_element_type)


def vdot(a: ArrayLike, b: ArrayLike, *, precision: Any = None,
         preferred_element_type: Any = None) -> Array:
    """The product of two arrays taken as vectors; of complex ones, the first conjugated.

    >>> vdot(np.array([[1, 2]]), np.array([[3], [4]]))
    Array(11, dtype=int32)
    """
    check_arraylike("vdot", a, b)
    first = ravel(a)
    if dtypes.issubdtype(first.dtype, np.complexfloating):
        first = lax.conj(first)
    return dot(first, ravel(b), precision=precision,
               preferred_element_type=preferred_element_type)


def vecdot(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1, precision: Any = None,
           preferred_element_type: Any = None) -> Array:
    """The products of the vectors along an axis of two arrays.

    >>> vecdot(np.array([[1, 2], [3, 4]]), np.array([1, 1]))
    Array([3, 7], dtype=int32)
    """
    a, b = promote_dtypes(as_array("vecdot", x1), as_array("vecdot", x2))
    a, b = (lax.expand_dims(moveaxis(x, axis, -1), (place,))
            for x, place in ((a, a.ndim - 1), (b, b.ndim)))
    if dtypes.issubdtype(a.dtype, np.complexfloating):
        a = lax.conj(a)
    product = matmul(a, b, precision=precision, preferred_element_type=preferred_element_type)
    return lax.squeeze(product, (product.ndim - 2, product.ndim - 1))


def inner(a: ArrayLike, b: ArrayLike, *, precision: Any = None,
          preferred_element_type: Any = None) -> Array:
    """The last axis of `a` against the last axis of `b`.

    >>> inner(np.array([1, 2]), np.array([3, 4]))
    Array(11, dtype=int32)
    """
    a, b = promote_dtypes(as_array("inner", a), as_array("inner", b))
    if a.ndim == 0 or b.ndim == 0:
        return a * b
    dims: Any = (([a.ndim - 1], [b.ndim - 1]), ([], []))
    return dot_general(a, b, dims, precision, preferred_element_type)


def outer(a: ArrayLike, b: ArrayLike, out: None = None) -> Array:
    """All products of an element of `a` and one of `b`.

    >>> outer(np.array([1, 2]), np.array([3, 4]))
    Array([[3, 4],
           [6, 8]], dtype=int32)
    """
    if out is not None:
        raise NotImplementedError("The 'out' argument to jnp.outer is not supported.")
    a, b = promote_dtypes(as_array("outer", a), as_array("outer", b))
    return lax.expand_dims(ravel(a), (1,)) * lax.expand_dims(ravel(b), (0,))


def tensordot(a: ArrayLike, b: ArrayLike, axes: Any = 2, *, precision: Any = None,
              preferred_element_type: Any = None) -> Array:
    """The sum of products over some axes of `a` and as many of `b`.

    >>> tensordot(np.ones((2, 3)), np.ones((3, 4)), 1).shape
    (2, 4)

    Args:
      axes: how many (the last of `a`, the first of `b`), or the axes of `a` and those of `b`.
    """
    a, b = promote_dtypes(as_array("tensordot", a), as_array("tensordot", b))
    if isinstance(axes, (tuple, list)) and len(axes) == 2:
        of_a, of_b = (each if np.iterable(each) else [each] for each in axes)
    elif np.ndim(axes) == 0:
        count = operator.index(axes)
        if count > min(a.ndim, b.ndim):
            raise TypeError(f"Number of tensordot axes (axes {count}) exceeds input ranks "
                            f"({a.shape} and {b.shape})")
        of_a, of_b = range(a.ndim - count, a.ndim), range(count)
    else:
        raise TypeError("tensordot axes argument must be an int, a pair of ints, or a pair of "
                        f"lists/tuples of ints, got {axes}.")
    dims = ([canonical_axis(d, a.ndim) for d in of_a], [canonical_axis(d, b.ndim) for d in of_b])
    if len(dims[0]) != len(dims[1]):
        raise TypeError("tensordot requires axes lists to have equal length, "
                        f"got {list(of_a)} and {list(of_b)}.")
    return dot_general(a, b, (dims, ([], [])), precision, preferred_element_type)


def kron(a: ArrayLike, b: ArrayLike) -> Array:
    """The Kronecker product: `b` in the place of every element of `a`, multiplied by it.

    >>> kron(np.array([1, 10]), np.array([1, 2]))
    Array([ 1,  2, 10, 20], dtype=int32)
    """
    a, b = promote_dtypes(as_array("kron", a), as_array("kron", b))
    rank = max(a.ndim, b.ndim)
    a, b = lax.broadcast_to_rank(a, rank), lax.broadcast_to_rank(b, rank)
    product = (lax.expand_dims(a, range(1, 2 * rank, 2))
               * lax.expand_dims(b, range(0, 2 * rank, 2)))
    return lax.reshape(product, [n * m for n, m in zip(a.shape, b.shape, strict=True)])


def cross(a: ArrayLike, b: ArrayLike, axisa: int = -1, axisb: int = -1, axisc: int = -1,
          axis: int | None = None) -> Array:
    """The cross product of vectors of three (or two) components.

    >>> cross(np.array([1, 0, 0]), np.array([0, 1, 0]))
    Array([0, 0, 1], dtype=int32)
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = promote_dtypes(as_array("cross", a), as_array("cross", b))
    a, b = (moveaxis(convert(x, x.dtype), at, -1) for x, at in ((a, axisa), (b, axisb)))
    if a.shape[-1] not in (2, 3) or b.shape[-1] not in (2, 3):
        raise ValueError("Dimension must be either 2 or 3 for cross product")
    xs, ys = _components(a), _components(b)

    def minor(i: int, j: int) -> Any:
        return xs[i] * ys[j] - xs[j] * ys[i]
    if a.shape[-1] == b.shape[-1] == 2:
        return minor(0, 1)
    parts = [minor(1, 2), minor(2, 0), minor(0, 1)]
    return moveaxis(stacked(parts), 0, axisc)


def _components(x: Any) -> list[Any]:
    """The components along the last axis; a third one of zero where there are two."""
    found = [lax.index_in_dim(x, i, x.ndim - 1, keepdims=False) for i in range(x.shape[-1])]
    return found if len(found) == 3 else [*found, lax.full_like(found[0], 0)]


def trace(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None,
          out: None = None) -> Array:
    """The sum of the diagonal.

    >>> trace(np.array([[1, 2], [3, 4]]))
    Array(5, dtype=int32)
    """
    a = moveaxis(as_array("trace", a), (axis1, axis2), (-2, -1))
    masked = choose(diagonal_mask(a.shape[-2], a.shape[-1], offset), a, convert(0, a.dtype))
    return reductions.sum(masked, axis=(-2, -1), dtype=dtype, out=out)


def diagonal_mask(rows: int, columns: int, offset: int) -> Any:
    """True on the diagonal that starts `offset` columns to the right."""
    i = lax.broadcasted_iota(np.dtype("int32"), (rows, columns), 0)
    j = lax.broadcasted_iota(np.dtype("int32"), (rows, columns), 1)
    return i + operator.index(offset) == j


def matvec(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The products of matrices with vectors, both in stacks.

    >>> matvec(np.array([[1, 0], [1, 1]]), np.array([5, 7]))
    Array([ 5, 12], dtype=int32)
    """
    x2 = as_array("matvec", x2)
    product = matmul(x1, lax.expand_dims(x2, (x2.ndim,)))
    return lax.squeeze(product, (product.ndim - 1,))


def multi_dot(arrays: Sequence[ArrayLike]) -> Array:
    """The product of several matrices, from left to right.

    >>> multi_dot([np.ones((2, 3)), np.ones((3, 4)), np.ones((4, 1))]).shape
    (2, 1)
    """
    # JAX: in the order that costs least.
    product, *others = arrays
    for x in others:
        product = dot(product, x)
    return product
