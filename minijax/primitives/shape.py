"""Rearrangements: broadcast, reshape, transpose, squeeze, rev; and iota.

Builds on `ad_util`, where three of the primitives are.  Chapter 23, *An array is a function of an
index*.  In JAX: `jax/_src/lax/lax.py`.
"""

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import core, dtypes
from minijax.core import Array, Primitive, ShapedArray, cannot, refuse
from minijax.primitives.axes import (Axes, Shape, as_dims, canonical_axis, canonical_shape,
                                     check_sizes, expand_index, inverse, without)
from minijax.primitives.ad_util import (batch_along, broadcast_along, broadcast_in_dim_p,
                                        rearrangement, reshape_p, reshaped, transpose_p)
from minijax.primitives.examples import grid, table
from minijax.primitives import families, slots

# ── transpose, broadcast_in_dim, reshape ─────────────────────────────────────────────────────

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
        operand = transpose(operand, inverse(dims))
        dims = tuple(sorted(dims))
    return broadcast_in_dim_p.bind(operand, shape=canonical_shape(shape), broadcast_dimensions=dims)


def broadcast(operand: Any, sizes: Sequence[int]) -> Array:
    """The operand repeated along new leading axes of these sizes.

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
      TypeError: for what is no sequence of non-negative integers.
      ValueError: when two sizes differ and neither is one.
    """
    sizes = [*map(canonical_shape, shapes)]
    for shape in sizes:
        refuse((min(shape, default=0) < 0, "Only non-negative indices are allowed when "
                f"broadcasting static shapes, but got shape {shape!r}."))
    try:
        return np.broadcast_shapes(*sizes)
    except ValueError:
        raise ValueError("Incompatible shapes for broadcasting: shapes="
                         f"{[tuple(shape) for shape in shapes]}") from None


def expand_dims(array: Any, dimensions: Sequence[int]) -> Array:
    """The array with new axes of size one, numbered as in the result.

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

def squeezed_shape(x: Any, dimensions: Axes) -> Shape:
    """The shape of an array without these axes, which must have size one."""
    shape = x.shape
    refuse((len(set(dimensions)) != len(dimensions), f"dimensions are not unique: {dimensions}"),
           (any(shape[d] != 1 for d in dimensions), "cannot select an axis to squeeze out which "
            f"has size not equal to one, got {shape=} and {dimensions=}"), error=ValueError)
    return without(shape, dimensions)


squeeze_p = rearrangement(
    "squeeze", impl=lambda x, dimensions: np.squeeze(x, dimensions),
    shape=squeezed_shape,
    transpose=lambda ct, x, dimensions: reshaped(ct, x.shape),
    batch=batch_along("dimensions", removed=True),
    source=lambda s, index, x, dimensions: x(expand_index(
        index, dimensions, [s.const(0, np.int64)] * len(dimensions))),
    sharding=slots.layout("squeeze"),
    examples=table("dimensions", (grid(1, 3, 1), (0, 2)), (grid(2, 1, 3), (1,)), (grid(1), (0,)),
                   (grid(0, 1, dtype=np.int32), (1,))))


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

def _rev_shape(x: ShapedArray, dimensions: Axes) -> Shape:
    check_sizes("rev", "dimensions", dimensions)
    refuse(
        (len(set(dimensions)) != len(dimensions),
         f"rev dimensions must be unique, got {dimensions}."),
        (max(dimensions, default=-1) >= x.ndim, "rev dimensions must all be less than operand "
         f"ndim, got dimensions {dimensions} for operand ndim {x.ndim}."))
    return x.shape


rev_p = rearrangement(
    "rev", impl=lambda x, dimensions: np.flip(x, dimensions),
    shape=_rev_shape,
    transpose=lambda ct, x, dimensions: rev_p.bind(ct, dimensions=dimensions),
    batch=batch_along("dimensions"), sharding=slots.layout("along", name="dimensions"),
    source=lambda s, index, x, dimensions: x(tuple(
        s.sub(x.shape[d] - 1, i) if d in dimensions else i for d, i in enumerate(index))),
    examples=table(
        "dimensions", (grid(4), (0,)), (grid(2, 3), (1,)), (grid(2, 3), (0, 1)),
        (grid(0, 2), (0,)), (grid(), ()), (grid(1, 2, dtype=np.int32), (0, 1))))


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


iota_p = Primitive(
    "iota",
    impl=lambda dtype, shape, dimension: [broadcast_along(
        np.arange(shape[dimension]).astype(dtype), shape, (dimension,))],
    abstract_eval=_iota_type,
    jvp=families.constant_in_all, transpose=cannot("it has no argument."),
    batch=lambda axis, args, dims, **params: ([iota_p.bind(**params)], [None]),
    sharding=slots.layout("iota"),
    element=lambda s, index, dtype, shape, dimension: s.convert(index[dimension], dtype),
    complex_parts=slots.in_pairs("iota"),
    examples=table("dtype shape dimension", (np.dtype(np.int32), (4,), 0),
                   *((np.dtype(np.float32), (2, 3), axis) for axis in (0, 1)),
                   (np.dtype(np.uint8), (300,), 0)))


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


# ── Shapes of other shapes ───────────────────────────────────────────────────────────────────

def collapse(operand: Any, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """The array with some adjacent axes merged into one.

    Args:
      operand: an array.
      start_dimension, stop_dimension: the axes, as a Python slice would take them.

    >>> collapse(np.ones((2, 3, 4)), 1).shape
    (2, 12)

    Raises:
      ValueError: when the slice runs backwards.
    """
    shape = np.shape(operand)
    start, stop, _ = slice(start_dimension, stop_dimension).indices(len(shape))
    if start > stop:
        raise ValueError(f"Invalid dimension range passed to collapse: {shape}"
                         f"[{start_dimension}:{stop_dimension}]")
    return reshape(operand, (*shape[:start], math.prod(shape[start:stop]), *shape[stop:]))


def broadcast_like(arr: Any, like_arr: Any) -> Array:
    """An array repeated to the shape of another, which has the same last axes.

    >>> broadcast_like(np.arange(2), np.ones((3, 2))).shape
    (3, 2)

    Raises:
      ValueError: when the other has fewer axes.
    """
    arr_shape, shape = np.shape(arr), np.shape(like_arr)
    if len(shape) < len(arr_shape):
        raise ValueError(f"Cannot broadcast to shape with fewer dimensions: {arr_shape=} {shape=}")
    return broadcast_in_dim(arr, shape, range(len(shape) - len(arr_shape), len(shape)))


def shape_as_value(shape: Sequence[int]) -> Array:
    """A shape as an array of integers.

    >>> shape_as_value((2, 3))
    Array([2, 3], dtype=int32)
    """
    return core.as_value(np.array(canonical_shape(shape), np.int32))
