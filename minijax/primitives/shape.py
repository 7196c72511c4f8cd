"""Primitives that only move elements: broadcast, reshape, transpose, squeeze, reverse; and iota.

Stands on `rearranging`.  Chapter 23, *An array is a function of an index*.
In JAX: `jax/_src/lax/lax.py`.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import core, dtypes
from minijax.core import Array, Example, Primitive, ShapedArray, Zero, cannot
from minijax.primitives.rearranging import (Dim, Index, Shape, above, as_dims, canonical_axis,
                                            canonical_shape, check_sizes, examples_of, grid,
                                            rearrangement, without, zero_index)

# ── transpose ────────────────────────────────────────────────────────────────────────────────

def _transpose_shape(x: ShapedArray, permutation: tuple) -> Shape:
    if not isinstance(permutation, (tuple, list, np.ndarray)):
        raise TypeError(f"transpose permutation must be a tuple/list/ndarray, "
                        f"got {type(permutation)}.")
    if sorted(permutation) != list(range(x.ndim)):
        raise TypeError("transpose permutation isn't a permutation of operand dimensions, "
                        f"got permutation {permutation} for operand shape {x.shape}.")
    return tuple(x.shape[d] for d in permutation)


def inverse(permutation: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted(range(len(permutation)), key=permutation.__getitem__))


def _batch_transpose(x: Array, dim: int, size: int, permutation: tuple) -> tuple[Array, int]:
    return transpose_p.bind(x, permutation=(dim, *above(permutation, dim))), 0


transpose_p = rearrangement(
    "transpose",
    impl=lambda x, permutation: np.transpose(x, permutation),
    shape=_transpose_shape,
    transpose=lambda ct, x, permutation: transpose_p.bind(ct, permutation=inverse(permutation)),
    batch=_batch_transpose,
    source=lambda s, index, x, permutation: x(tuple(index[d] for d in inverse(permutation))),
    examples=examples_of(
        (grid(2, 3), {"permutation": (1, 0)}), (grid(2, 3, 4), {"permutation": (2, 0, 1)}),
        (grid(), {"permutation": ()}), (grid(0, 3, dtype=np.int32), {"permutation": (1, 0)})))


def transpose(operand: Any, permutation: Sequence[int] | np.ndarray) -> Array:
    """The array with its axes in another order.

    >>> import numpy as np
    >>> transpose(np.ones((2, 3)), (1, 0)).shape
    (3, 2)
    """
    permutation = as_dims(permutation)
    if permutation == tuple(range(np.ndim(operand))) and isinstance(operand, Array):
        return operand
    return transpose_p.bind(operand, permutation=permutation)


# ── broadcast_in_dim ─────────────────────────────────────────────────────────────────────────

def _broadcast_shape(x: ShapedArray, shape: Shape, broadcast_dimensions: tuple) -> Shape:
    check_sizes("broadcast_in_dim", "shape", shape)
    check_sizes("broadcast_in_dim", "broadcast_dimensions", broadcast_dimensions)
    if x.ndim != len(broadcast_dimensions):
        raise TypeError(
            "broadcast_in_dim broadcast_dimensions must have length equal to operand ndim; "
            f"got broadcast_dimensions {broadcast_dimensions} for operand ndim {x.ndim}.")
    if len(shape) < x.ndim:
        raise TypeError(
            "broadcast_in_dim target broadcast shape must have equal or higher rank to the "
            f"operand shape; got operand ndim {x.ndim} and target broadcast ndim {len(shape)}.")
    if not set(broadcast_dimensions) <= set(range(len(shape))):
        raise TypeError(
            "broadcast_in_dim broadcast_dimensions must be a subset of output dimensions, got "
            f"{broadcast_dimensions} for operand ndim {x.ndim} and shape {shape}.")
    if any(n not in (1, shape[d]) for n, d in zip(x.shape, broadcast_dimensions, strict=True)):
        raise TypeError(
            "broadcast_in_dim operand dimension sizes must either be 1, or be equal to their "
            "corresponding dimensions in the target broadcast shape; got operand of shape "
            f"{x.shape}, target broadcast shape {shape}, "
            f"broadcast_dimensions {broadcast_dimensions} ")
    if len(set(broadcast_dimensions)) != len(broadcast_dimensions):
        raise TypeError("broadcast_in_dim broadcast_dimensions must not contain duplicates, "
                        f"got broadcast_dimensions {broadcast_dimensions}")
    if list(broadcast_dimensions) != sorted(broadcast_dimensions):
        raise TypeError("broadcast_in_dim broadcast_dimensions must be strictly increasing; "
                        f"got broadcast_dimensions {broadcast_dimensions}")
    return tuple(shape)


def _broadcast_impl(x: np.ndarray, shape: Shape, broadcast_dimensions: tuple) -> np.ndarray:
    aligned = [1] * len(shape)
    for n, d in zip(x.shape, broadcast_dimensions, strict=True):
        aligned[d] = n
    return np.broadcast_to(x.reshape(aligned), shape)


def _transpose_broadcast(ct: Array, x: ShapedArray, shape: Shape,
                         broadcast_dimensions: tuple) -> Array:
    from minijax.primitives.reduce import reduce_sum_p  # it stands on this module
    ones = [i for i, n in enumerate(x.shape) if n == 1]
    kept = without(broadcast_dimensions, ones)
    summed = without(range(len(shape)), kept)
    total = reduce_sum_p.bind(ct, axes=summed) if summed else ct
    return expand_dims(total, ones) if ones else total


def _batch_broadcast(x: Array, dim: int, size: int, shape: Shape,
                     broadcast_dimensions: tuple) -> tuple[Array, int]:
    axes = (0, *(d + 1 for d in broadcast_dimensions))
    out = broadcast_in_dim_p.bind(to_front(x, dim), shape=(size, *shape),
                                  broadcast_dimensions=axes)
    return out, 0


def _broadcast_element(s: Any, index: Index, x: Any, shape: Shape,
                       broadcast_dimensions: tuple) -> Any:
    places = [index[d] if n == shape[d] else zero_index(s)
              for n, d in zip(x.shape, broadcast_dimensions, strict=True)]
    return x(tuple(places))


broadcast_in_dim_p = rearrangement(
    "broadcast_in_dim",
    impl=_broadcast_impl,
    shape=_broadcast_shape,
    transpose=_transpose_broadcast,
    batch=_batch_broadcast,
    source=_broadcast_element,
    examples=examples_of(
        (grid(3), {"shape": (2, 3), "broadcast_dimensions": (1,)}),
        (grid(3), {"shape": (3, 2), "broadcast_dimensions": (0,)}),
        (grid(2, 1), {"shape": (2, 4, 3), "broadcast_dimensions": (0, 2)}),
        (grid(), {"shape": (2, 2), "broadcast_dimensions": ()}),
        (grid(1, dtype=np.int32), {"shape": (0,), "broadcast_dimensions": (0,)})))


def broadcast_in_dim(operand: Any, shape: Sequence[int],
                     broadcast_dimensions: Sequence[int]) -> Array:
    """An array of a larger shape; axis `i` of the operand becomes `broadcast_dimensions[i]`.

    >>> import numpy as np
    >>> broadcast_in_dim(np.arange(3), (2, 3), (1,)).shape
    (2, 3)
    """
    if (np.ndim(operand) == len(shape) and not len(broadcast_dimensions)
            and isinstance(operand, Array)):
        return operand
    dims = as_dims(broadcast_dimensions)
    if len(set(dims)) == len(dims) == np.ndim(operand) and list(dims) != sorted(dims):
        # JAX: the primitive takes the axes in any order.
        operand = transpose(operand, sorted(range(len(dims)), key=dims.__getitem__))
        dims = tuple(sorted(dims))
    return broadcast_in_dim_p.bind(operand, shape=canonical_shape(shape),
                                   broadcast_dimensions=dims)


def broadcast(operand: Any, sizes: Sequence[int]) -> Array:
    """The operand repeated along new leading axes of the given sizes.

    >>> import numpy as np
    >>> broadcast(np.ones(3), (2, 4)).shape
    (2, 4, 3)
    """
    if len(sizes) == 0:
        return core.as_value(operand)
    axes = tuple(range(len(sizes), len(sizes) + np.ndim(operand)))
    return broadcast_in_dim(operand, (*sizes, *np.shape(operand)), axes)


def broadcast_to_rank(x: Any, rank: int) -> Array:
    """`x` with axes of size one added in front, up to `rank` axes."""
    missing = rank - np.ndim(x)
    return core.as_value(x) if missing == 0 else broadcast(x, (1,) * missing)


def broadcast_shapes(*shapes: Sequence[int]) -> Shape:
    """The shape that arrays of these shapes broadcast to, by NumPy's rules.

    >>> broadcast_shapes((3, 1), (2,), ())
    (3, 2)

    Raises:
      ValueError: when two sizes differ and neither is one.
    """
    rank = max(map(len, shapes), default=0)
    aligned = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    result = tuple(next((n for n in sizes if n != 1), 1)
                   for sizes in zip(*aligned, strict=True))
    for shape in aligned:
        if any(n not in (1, m) for n, m in zip(shape, result, strict=True)):
            raise ValueError("Incompatible shapes for broadcasting: shapes="
                             f"{[tuple(shape) for shape in shapes]}")
    return result


def expand_dims(array: Any, dimensions: Sequence[int]) -> Array:
    """The array with new axes of size one at the given places of the result.

    >>> import numpy as np
    >>> expand_dims(np.ones((2, 3)), (0, -1)).shape
    (1, 2, 3, 1)

    Raises:
      ValueError: when a place is named twice.
    """
    if len(set(dimensions)) != len(dimensions):
        raise ValueError(f"repeated axis in lax.expand_dims: {dimensions}")
    ndim = np.ndim(array) + len(dimensions)
    places = [canonical_axis(d, ndim) for d in dimensions]
    if len(set(places)) != len(places):
        raise ValueError(f"repeated axis in lax.expand_dims: {places}")
    sizes = iter(np.shape(array))
    shape = tuple(1 if d in places else next(sizes) for d in range(ndim))
    return broadcast_in_dim(array, shape, without(range(ndim), places))


# ── Moving the batch axis ────────────────────────────────────────────────────────────────────

def to_front(x: Array, dim: int) -> Array:
    """`x` with axis `dim` first."""
    if dim == 0:
        return x
    return transpose_p.bind(x, permutation=(dim, *without(range(x.ndim), (dim,))))


def batched_in_front(x: Array, dim: Dim, size: int) -> Array:
    """`x` with its batch axis first; repeated along a new one if it had none."""
    return broadcast(x, (size,)) if dim is None else to_front(x, dim)


# ── reshape ──────────────────────────────────────────────────────────────────────────────────

def _reshape_shape(x: ShapedArray, new_sizes: Shape, dimensions: None) -> Shape:
    if any(n < 0 for n in new_sizes):
        raise TypeError(f"reshape new_sizes must all be positive, got {new_sizes}.")
    if np.prod(new_sizes, dtype=int) != x.size:
        raise TypeError("reshape total size must be unchanged, got new_sizes "
                        f"{new_sizes} for shape {x.shape}.")
    return tuple(new_sizes)


def _batch_reshape(x: Array, dim: int, size: int, new_sizes: Shape,
                   dimensions: None) -> tuple[Array, int]:
    return reshape_p.bind(to_front(x, dim), new_sizes=(size, *new_sizes), dimensions=None), 0


reshape_p = rearrangement(
    "reshape",
    impl=lambda x, new_sizes, dimensions: np.reshape(x, new_sizes),
    shape=_reshape_shape,
    transpose=lambda ct, x, **_: reshape_p.bind(ct, new_sizes=x.shape, dimensions=None),
    batch=_batch_reshape,
    source=lambda s, index, x, new_sizes, dimensions: x.flat(s.ravel(index, new_sizes)),
    examples=examples_of(
        (grid(2, 6), {"new_sizes": (3, 4), "dimensions": None}),
        (grid(4), {"new_sizes": (2, 1, 2), "dimensions": None}),
        (grid(1, 1), {"new_sizes": (), "dimensions": None}),
        (grid(0, 3, dtype=np.int32), {"new_sizes": (5, 0), "dimensions": None})))


def reshape(operand: Any, new_sizes: Sequence[int],
            dimensions: Sequence[int] | None = None) -> Array:
    """The same elements in row-major order, under another shape.

    Args:
      operand: an array.
      new_sizes: the shape of the result.
      dimensions: the order in which the operand's axes are read; by default as they are.

    >>> import numpy as np
    >>> reshape(np.arange(6), (2, 3)).shape
    (2, 3)

    Raises:
      TypeError: when the number of elements would change.
    """
    sizes = canonical_shape(new_sizes)
    if dimensions is not None:
        dims = as_dims(dimensions)
        if set(dims) != set(range(np.ndim(operand))):
            raise TypeError("reshape dimensions must be a permutation of operand dimensions, "
                            f"got dimensions {dims} for shape {np.shape(operand)}.")
        operand = transpose(operand, dims)  # JAX: the primitive takes the permutation itself
    if np.shape(operand) and np.shape(operand) == sizes and isinstance(operand, Array):
        return operand
    return reshape_p.bind(operand, new_sizes=sizes, dimensions=None)


# ── squeeze ──────────────────────────────────────────────────────────────────────────────────

def _squeeze_shape(x: ShapedArray, dimensions: tuple) -> Shape:
    shape = x.shape
    if len(set(dimensions)) != len(dimensions):
        raise ValueError(f"dimensions are not unique: {dimensions}")
    if not all(0 <= d < x.ndim for d in dimensions):
        raise ValueError(f"dimensions outside range [0, ndim): {dimensions}")
    if any(shape[d] != 1 for d in dimensions):
        raise ValueError("cannot select an axis to squeeze out which has size not equal to one, "
                         f"got {shape=} and {dimensions=}")
    return without(shape, dimensions)


def _batch_squeeze(x: Array, dim: int, size: int, dimensions: tuple) -> tuple[Array, int]:
    places = above(dimensions, dim)
    return squeeze_p.bind(x, dimensions=places), dim - sum(d < dim for d in places)


def _squeeze_element(s: Any, index: Index, x: Any, dimensions: tuple) -> Any:
    rest = iter(index)
    return x(tuple(zero_index(s) if d in dimensions else next(rest)
                   for d in range(len(x.shape))))


squeeze_p = rearrangement(
    "squeeze",
    impl=lambda x, dimensions: np.squeeze(x, dimensions),
    shape=_squeeze_shape,
    transpose=lambda ct, x, dimensions: reshape_p.bind(ct, new_sizes=x.shape, dimensions=None),
    batch=_batch_squeeze,
    source=_squeeze_element,
    examples=examples_of(
        (grid(1, 3, 1), {"dimensions": (0, 2)}), (grid(2, 1, 3), {"dimensions": (1,)}),
        (grid(1), {"dimensions": (0,)}), (grid(0, 1, dtype=np.int32), {"dimensions": (1,)})))


def squeeze(array: Any, dimensions: Sequence[int]) -> Array:
    """The array without some of its axes of size one.

    >>> import numpy as np
    >>> squeeze(np.ones((1, 3, 1)), (0, -1)).shape
    (3,)

    Raises:
      ValueError: when one of the axes has another size.
    """
    places = tuple(sorted(canonical_axis(d, np.ndim(array)) for d in dimensions))
    if not places and isinstance(array, Array):
        return array
    return squeeze_p.bind(array, dimensions=places)


# ── rev ──────────────────────────────────────────────────────────────────────────────────────

def _rev_shape(x: ShapedArray, dimensions: tuple) -> Shape:
    check_sizes("rev", "dimensions", dimensions)
    if len(set(dimensions)) != len(dimensions):
        raise TypeError(f"rev dimensions must be unique, got {dimensions}.")
    if dimensions and not max(dimensions) < x.ndim:
        raise TypeError("rev dimensions must all be less than operand ndim, got dimensions "
                        f"{dimensions} for operand ndim {x.ndim}.")
    return x.shape


def _rev_element(s: Any, index: Index, x: Any, dimensions: tuple) -> Any:
    return x(tuple(s.sub(x.shape[d] - 1, i) if d in dimensions else i
                   for d, i in enumerate(index)))


rev_p = rearrangement(
    "rev",
    impl=lambda x, dimensions: np.flip(x, dimensions),
    shape=_rev_shape,
    transpose=lambda ct, x, dimensions: rev_p.bind(ct, dimensions=dimensions),
    batch=lambda x, dim, size, dimensions: (
        rev_p.bind(x, dimensions=above(dimensions, dim)), dim),
    source=_rev_element,
    examples=examples_of(
        (grid(4), {"dimensions": (0,)}), (grid(2, 3), {"dimensions": (1,)}),
        (grid(2, 3), {"dimensions": (0, 1)}), (grid(0, 2), {"dimensions": (0,)}),
        (grid(), {"dimensions": ()}), (grid(1, 2, dtype=np.int32), {"dimensions": (0, 1)})))


def rev(operand: Any, dimensions: Sequence[int]) -> Array:
    """The array with the order of elements reversed along some axes.

    >>> import numpy as np
    >>> rev(np.arange(3), (0,))
    Array([2, 1, 0], dtype=int32)
    """
    return rev_p.bind(operand, dimensions=tuple(dimensions))


# ── iota ─────────────────────────────────────────────────────────────────────────────────────

def _iota_type(dtype: Any, shape: Shape, dimension: int) -> list[ShapedArray]:
    check_sizes("iota", "shape", shape)
    if not dtypes.issubdtype(dtype, np.number):
        raise TypeError(f"iota does not accept dtype {dtype}. Accepted dtypes are subtypes of "
                        "integer, floating, complexfloating.")
    if not 0 <= dimension < len(shape):
        raise ValueError(f"iota dimension must be between 0 and len(shape), got {dimension=} "
                         f"for {shape=}")
    return [ShapedArray(shape, dtype)]


def _iota_impl(dtype: Any, shape: Shape, dimension: int) -> list[np.ndarray]:
    counts = np.arange(shape[dimension]).astype(dtype)
    return [_broadcast_impl(counts, shape, (dimension,))]


def _iota_jvp(primals: list, tangents: list, **params: Any) -> tuple[list, list]:
    out = iota_p.bind(**params)
    return [out], [Zero(out.aval.to_tangent_aval())]


iota_p = Primitive(
    "iota",
    impl=_iota_impl,
    abstract_eval=_iota_type,
    jvp=_iota_jvp,
    transpose=cannot("it has no argument."),
    batch=lambda axis, args, dims, **params: ([iota_p.bind(**params)], [None]),
    element=lambda s, index, dtype, shape, dimension: s.convert(index[dimension], dtype),
    examples=lambda: [
        Example((), {"dtype": np.dtype(dtype), "shape": shape, "dimension": dimension})
        for dtype, shape, dimension in [(np.int32, (4,), 0), (np.float32, (2, 3), 1),
                                        (np.uint8, (300,), 0), (np.float32, (2, 3), 0)]])


def iota(dtype: Any, size: int) -> Array:
    """The numbers 0, 1, … in an array of one axis.

    >>> iota(np.float32, 3)
    Array([0., 1., 2.], dtype=float32)
    """
    return broadcasted_iota(dtype, (size,), 0)


def broadcasted_iota(dtype: Any, shape: Sequence[int], dimension: int) -> Array:
    """The numbers 0, 1, … along one axis, the same along all others.

    >>> broadcasted_iota(np.int32, (2, 3), 0)
    Array([[0, 0, 0],
           [1, 1, 1]], dtype=int32)
    """
    dtype = dtypes.check_user_dtype_supported(dtype, "broadcasted_iota")
    sizes = canonical_shape(shape)
    return iota_p.bind(dtype=dtype, shape=sizes, dimension=operator.index(dimension))
