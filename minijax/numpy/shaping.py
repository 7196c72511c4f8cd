"""The same elements in another shape or order: reshape, transpose, broadcast, flip, roll, ….

Builds on `arguments` and `lax`.  Chapter 18, *Dynamic shapes*.
In JAX: `jax/_src/numpy/lax_numpy.py`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import errors, lax
from minijax.core import Array, Tracer, alias, refuse_mask, stood_for
from minijax.numpy.arguments import (AXIS_INDEX_ERROR, ArrayLike, Axes, as_arrays,
                                     broadcast_arrays_to_one_shape, broadcast_to_shape,
                                     canonical_axes, canonical_axis, check_axis_index, convert,
                                     public, shape_of_argument, static_axes)
from minijax.primitives.axes import canonical_shape, replaced


# ── Shapes ───────────────────────────────────────────────────────────────────────────────────

def shape(a: Any) -> tuple[int, ...]:
    """The sizes of the axes.

    >>> shape(np.ones((2, 3)))
    (2, 3)
    """
    return _shape("shape", a)


def _shape(name: str, a: Any) -> tuple[int, ...]:
    """The sizes of the axes, of sequences too, as long as JAX takes them."""
    if isinstance(a, (list, tuple)):
        errors.warn(f"{name} requires ndarray or scalar arguments, got {type(a)} at position 0. In "
                    "a future JAX release this will be an error.", DeprecationWarning)
    return np.shape(stood_for(a))


def ndim(a: Any) -> int:
    """The number of axes.

    >>> ndim(np.ones((2, 3)))
    2
    """
    return len(_shape("ndim", a))


def size(a: Any, axis: Any = None) -> int:
    """The number of elements, or the size of an axis.

    >>> size(np.ones((2, 3))), size(np.ones((2, 3)), 1)
    (6, 3)
    """
    sizes = _shape("size", a)
    axes = [canonical_axis(d, len(sizes)) for d in axis] if isinstance(axis, Sequence) else (
        canonical_axes(axis, len(sizes)))
    if len(set(axes)) != len(axes):
        raise ValueError(f"repeated axis: {tuple(axes)}")
    return int(np.prod([sizes[d] for d in axes], dtype=int))


def reshape(a: ArrayLike, shape: Any, order: str = "C", *, copy: bool | None = None) -> Array:
    """The same elements in another shape; one size may be -1, and is then inferred.

    >>> reshape(np.arange(6), (2, -1))
    Array([[0, 1, 2],
           [3, 4, 5]], dtype=int32)

    Raises:
      TypeError: when the number of elements does not fit, or the shape is traced.
    """
    new = canonical_shape(shape if np.iterable(shape) else [shape])
    sizes = _with_unknown_size(a.shape, new, shape)
    if order == "F":
        return transpose(lax.reshape(transpose(a), sizes[::-1]))
    if order == "A":
        raise NotImplementedError(f"np.reshape order={order} is not implemented.")
    if order != "C":
        raise ValueError(f"Unexpected value for 'order' argument: {order}.")
    return lax.reshape(a, sizes)


def _with_unknown_size(old: tuple[int, ...], new: tuple[int, ...], shape: Any) -> tuple[int, ...]:
    """A new shape with -1 inferred; errors show the argument `shape`."""
    total, product = math.prod(old), math.prod(n for n in new if n != -1)
    if new.count(-1) > 1:
        raise TypeError(f"can only specify one unknown axis size with a `-1` value, got {new}")
    shown = new if np.iterable(shape) else shape
    what = f"cannot reshape array of shape {old} (size {total}) into shape {shown}"
    if -1 in new:
        if product == 0 or total % product:
            raise TypeError(f"{what} because the product of specified axis sizes ({product}) does "
                            f"not evenly divide {total}")
        return replaced(new, new.index(-1), total // product)
    if product != total:
        raise TypeError(f"{what} (size {product})")
    return new


def ravel(a: ArrayLike, order: str = "C") -> Array:
    """The elements in one axis.

    >>> ravel(np.ones((2, 2)))
    Array([1., 1., 1., 1.], dtype=float32)
    """
    if order == "K":
        raise NotImplementedError(f"Ravel not implemented for order='{order}'.")
    return alias(reshape(a, (np.size(a),), order))


def squeeze(a: ArrayLike, axis: Axes = None) -> Array:
    """The array without its axes of size one, or without those named.

    >>> squeeze(np.ones((1, 2, 1))).shape
    (2,)
    """
    axes: Any = static_axes("squeeze", axis)
    if axes is None:
        axes = tuple(d for d, size in enumerate(a.shape) if size == 1)
    axes = axes if isinstance(axes, tuple) else (axes,)
    return lax.squeeze(a, axes) if axes else alias(a)


def expand_dims(a: ArrayLike, axis: Any) -> Array:
    """The array with new axes of size one at the given places.

    >>> expand_dims(np.ones(3), 0).shape
    (1, 3)
    """
    axis = static_axes("expand_dims", axis)
    return lax.expand_dims(a, axis if isinstance(axis, tuple) else (axis,))


def atleast_1d(*arys: ArrayLike) -> Any:
    """Scalars as arrays of one axis.

    >>> atleast_1d(3).shape
    (1,)
    """
    return _each("atleast_1d", arys, lambda x: alias(x) if x.ndim else lax.reshape(x, (1,)))


def atleast_2d(*arys: ArrayLike) -> Any:
    """Arrays with leading axes of size one, so that there are two.

    >>> atleast_2d(np.ones(3)).shape
    (1, 3)
    """
    return _each("atleast_2d", arys, lambda x: lax.broadcast_to_rank(x, max(x.ndim, 2)))


def atleast_3d(*arys: ArrayLike) -> Any:
    """Arrays with axes of size one, so that there are three: vectors in the middle one.

    >>> atleast_3d(np.ones(3)).shape
    (1, 3, 1)
    """
    def deepen(x: Any) -> Any:
        if x.ndim < 2:
            return lax.reshape(x, (1, x.size, 1))
        return lax.expand_dims(x, (2,)) if x.ndim == 2 else x
    return _each("atleast_3d", arys, deepen)


def _each(name: str, arrays: Sequence, function: Any) -> Any:
    results = [function(x) for x in as_arrays(name, *arrays)]
    return results[0] if len(results) == 1 else results


# ── Orders of axes ───────────────────────────────────────────────────────────────────────────

def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """The array with its axes reversed, or in the order given.

    >>> transpose(np.ones((2, 3))).shape
    (3, 2)
    """
    if axes is None:
        return lax.transpose(a, range(a.ndim)[::-1])
    return lax.transpose(a, [canonical_axis(axis, a.ndim) for axis in axes])


def permute_dims(a: ArrayLike, /, axes: Any) -> Array:
    """The array with its axes in another order.

    >>> permute_dims(np.ones((2, 3)), (1, 0)).shape
    (3, 2)
    """
    return transpose(a, axes)


def matrix_transpose(x: ArrayLike, /) -> Array:
    """The array with its last two axes exchanged.

    >>> matrix_transpose(np.ones((4, 2, 3))).shape
    (4, 3, 2)
    """
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose requires at least 2 dimensions; got ndim={x.ndim}")
    return swapaxes(x, -1, -2)


def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """The array with two axes exchanged.

    >>> swapaxes(np.ones((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    check_axis_index(axis1, axis2, ndim=a.ndim, message=AXIS_INDEX_ERROR)
    i, j = (canonical_axis(axis, a.ndim) for axis in (axis1, axis2))
    return alias(lax.transpose(a, replaced(replaced(range(a.ndim), i, j), j, i)))


def moveaxis(a: ArrayLike, source: Any, destination: Any) -> Array:
    """The array with some axes moved to other places; the others keep their order.

    >>> moveaxis(np.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    sources = canonical_axes(source, a.ndim)
    destinations = canonical_axes(destination, a.ndim)
    if len(sources) != len(destinations):
        raise ValueError(f"Inconsistent number of elements: {len(sources)} vs {len(destinations)}")
    order = [d for d in range(a.ndim) if d not in sources]
    for position, axis in sorted(zip(destinations, sources, strict=True)):
        order.insert(position, axis)
    return alias(lax.transpose(a, order))


def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Array:
    """The array with one axis moved to before `start`.

    >>> rollaxis(np.ones((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    axis = canonical_axis(axis, a.ndim)
    start = start + a.ndim if start < 0 else start
    return moveaxis(a, axis, start - 1 if start > axis else start)


# ── Broadcasting ─────────────────────────────────────────────────────────────────────────────

def broadcast_to(array: ArrayLike, shape: Any) -> Array:
    """The array repeated to a larger shape, by NumPy's rules.

    >>> broadcast_to(np.array([1, 2]), (2, 2))
    Array([[1, 2],
           [1, 2]], dtype=int32)

    Raises:
      ValueError: where the shapes do not fit.
    """
    return broadcast_to_shape(array, shape_of_argument(shape))


def broadcast_arrays(*args: ArrayLike) -> list[Array]:
    """The arrays, each repeated to the shape they share.

    >>> [x.shape for x in broadcast_arrays(np.ones((2, 1)), np.ones(3))]
    [(2, 3), (2, 3)]
    """
    return [*map(alias, broadcast_arrays_to_one_shape(*as_arrays("broadcast_arrays", *args)))]


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape that arrays of these shapes broadcast to.

    >>> broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    return lax.broadcast_shapes(*(canonical_shape(
        (shape,) if np.ndim(shape) == 0 else shape) for shape in shapes))


# ── Orders of elements ───────────────────────────────────────────────────────────────────────

def flip(m: ArrayLike, axis: Axes = None) -> Array:
    """The array reversed along all axes, or along those named.

    >>> flip(np.array([1, 2, 3]))
    Array([3, 2, 1], dtype=int32)
    """
    axes = static_axes("flip", range(m.ndim) if axis is None else axis)
    return lax.rev(m, [canonical_axis(d, m.ndim) for d in (axes if np.iterable(axes) else [axes])])


def fliplr(m: ArrayLike) -> Array:
    """The array reversed along its second axis.

    >>> fliplr(np.array([[1, 2], [3, 4]]))
    Array([[2, 1],
           [4, 3]], dtype=int32)
    """
    return flip(m, 1)


def flipud(m: ArrayLike) -> Array:
    """The array reversed along its first axis.

    >>> flipud(np.array([[1, 2], [3, 4]]))
    Array([[3, 4],
           [1, 2]], dtype=int32)
    """
    return flip(m, 0)


def rot90(m: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """The array turned by quarter turns, from the first axis named towards the second.

    >>> rot90(np.array([[1, 2], [3, 4]]))
    Array([[2, 4],
           [1, 3]], dtype=int32)
    """
    if m.ndim < 2:
        raise ValueError("rot90 requires its first argument to have ndim at least two, but got "
                         f"first argument of shape {m.shape}, which has ndim {m.ndim}")
    one, other = axes
    first, second = canonical_axis(one, m.ndim), canonical_axis(other, m.ndim)
    if first == second:
        raise ValueError("Axes must be different")
    turns = operator.index(k) % 4
    if turns == 2:
        return flip(m, (first, second))
    if turns == 1:
        return swapaxes(flip(m, second), first, second)
    return flip(swapaxes(m, first, second), second) if turns else m


def roll(a: ArrayLike, shift: Any, axis: Axes = None) -> Array:
    """The array shifted along an axis, or flat; elements beyond the end re-enter at the start.

    >>> roll(np.arange(4), 1)
    Array([3, 0, 1, 2], dtype=int32)
    """
    axis = static_axes("roll", axis)
    refuse_mask(shift)
    shift = stood_for(shift)
    if axis is None:
        return lax.reshape(roll(lax.reshape(a, (a.size,)), shift, 0), a.shape)
    axes = [canonical_axis(each, a.ndim) for each in (axis if np.iterable(axis) else [axis])]
    several = isinstance(shift, (tuple, list)) or np.ndim(shift)
    shifts = [shift[i] for i in range(len(shift))] if several else [shift] * len(axes)
    for each, position in zip(shifts, axes * len(shifts) if len(axes) == 1 else axes, strict=True):
        a = _rolled(a, each, position)
    return alias(a)


def _rolled(a: Any, shift: Any, axis: int) -> Any:
    size = a.shape[axis]
    if size == 0:
        return a
    if isinstance(shift, Tracer):
        count: Any = convert(size, np.dtype("int32"))
        start = lax.rem(count - lax.rem(convert(shift, count.dtype), count), count)
        return lax.dynamic_slice_in_dim(lax.concatenate([a, a], axis), start, size, axis)
    cut = -int(shift) % size
    return lax.concatenate(lax.split(a, (cut, size - cut), axis)[::-1], axis) if cut else a


public(globals())
