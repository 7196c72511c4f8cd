"""Joining, splitting, repeating and padding arrays.

Builds on `shaping`, `sorting`.  Chapter 13, *In-place updates*.
In JAX: `jax/_src/numpy/lax_numpy.py`.
"""
from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import dtypes, lax, tree_util
from minijax.core import Array, refuse, stood_for
from minijax.numpy import creation, reductions, searching, sorting, unary, vectorization
from minijax.numpy.arguments import (ArrayLike, array_and_axis, as_array, as_arrays, choose,
                                     broadcast_to_shape, canonical_axis, check_arraylike,
                                     check_axis_index, convert, like, promote_dtypes, public,
                                     static_axes, static_index, static_value, static_int)
from minijax.numpy.shaping import atleast_1d, atleast_2d, atleast_3d, moveaxis, ravel
from minijax.transforms.api import vmap
from minijax.primitives.axes import as_dims, replaced, with_item, without


# ── Joining ──────────────────────────────────────────────────────────────────────────────────

def _promoted_operands(name: str, arrays: Any, dtype: Any) -> list[Any]:
    """The arrays, promoted to one dtype."""
    if isinstance(arrays, (Array, np.ndarray)):
        arrays = list(as_array(name, arrays))
    if not len(arrays):
        raise ValueError(f"Need at least one array to {name}.")
    parts = as_arrays(name, *arrays)
    return promote_dtypes(*parts) if dtype is None else [convert(x, dtype) for x in parts]


def concatenate(arrays: Any, axis: int | None = 0, dtype: Any = None) -> Array:
    """Arrays one after the other, along an axis they have.

    >>> concatenate([np.array([1, 2]), np.array([3])])
    Array([1, 2, 3], dtype=int32)

    Raises:
      TypeError: where the other axes differ.
    """
    return _joined(arrays, axis, dtype)


def _joined(arrays: Any, axis: int | None, dtype: Any = None) -> Any:
    """`concatenate`, of arrays that the user may have given to another function."""
    axis = static_axes("concatenate", axis)
    if isinstance(arrays, (Array, np.ndarray)) and axis is not None and (
            np.ndim(arrays) > 1 and len(arrays)):
        axis = canonical_axis(axis, np.ndim(arrays) - 1)
        rows = _stacked_rows("concatenate", arrays, axis, dtype)
        n, size = rows.shape[axis:axis + 2]
        return lax.reshape(rows, (*rows.shape[:axis], n * size, *rows.shape[axis + 2:]))
    parts = _promoted_operands("concatenate", arrays, dtype)
    if axis is None:
        return _joined([ravel(x) for x in parts], 0)
    if parts[0].ndim == 0:
        raise ValueError("Zero-dimensional arrays cannot be concatenated.")
    return lax.concatenate(parts, canonical_axis(axis, parts[0].ndim))


def _stacked_rows(name: str, rows: Any, axis: int, dtype: Any) -> Any:
    """The rows of an array, side by side along a new axis."""
    x = as_array(name, rows)
    if not len(x):
        raise ValueError(f"Need at least one array to {name}.")
    return moveaxis(x if dtype is None else convert(x, dtype), 0, canonical_axis(axis, x.ndim))


def _mapped(name: str, fun: Callable[[Array], Array], arrays: Any) -> Any:
    """A function of each of some arrays, which may be the rows of one."""
    if isinstance(arrays, (Array, np.ndarray)):
        return vmap(fun)(as_array(name, arrays)) if len(arrays) else []
    return list(map(fun, as_arrays(name, *arrays)))


def concat(arrays: Any, /, *, axis: int | None = 0) -> Array:
    """The arrays one after the other, under the name that the array API standard has for it.

    >>> concat([np.array([1, 2]), np.array([3])])
    Array([1, 2, 3], dtype=int32)
    """
    return _joined(arrays, axis)


def stack(arrays: Any, axis: int = 0, out: None = None, dtype: Any = None) -> Array:
    """Arrays of one shape, side by side along a new axis.

    >>> stack([np.array([1, 2]), np.array([3, 4])])
    Array([[1, 2],
           [3, 4]], dtype=int32)
    """
    if isinstance(arrays, (Array, np.ndarray)):
        return _stacked_rows("stack", arrays, static_axes("stack", axis), dtype)
    parts = _promoted_operands("stack", arrays, dtype)
    shapes = [x.shape for x in parts]
    listed = ", ".join(map(str, shapes))
    refuse((len({len(shape) for shape in shapes}) > 1,
            f"Cannot stack arrays with different numbers of dimensions: got {listed}."),
           (len(set(shapes)) > 1, f"All input arrays must have the same shape. Got {listed}."),
           error=ValueError)
    return lax.stack(parts, canonical_axis(static_axes("stack", axis), parts[0].ndim + 1))


def vstack(tup: Any, dtype: Any = None) -> Array:
    """Arrays as rows, one below the other.

    >>> vstack([np.array([1, 2]), np.array([3, 4])]).shape
    (2, 2)
    """
    return _joined(_mapped("vstack", atleast_2d, tup), 0, dtype)


def hstack(tup: Any, dtype: Any = None) -> Array:
    """Arrays beside each other: along the second axis; vectors along their only one.

    >>> hstack([np.array([1, 2]), np.array([3])])
    Array([1, 2, 3], dtype=int32)
    """
    parts = _mapped("hstack", atleast_1d, tup)
    rank = parts.ndim - 1 if isinstance(parts, Array) else parts[0].ndim if parts else 1
    return _joined(parts, 0 if rank == 1 else 1, dtype)


def dstack(tup: Any, dtype: Any = None) -> Array:
    """Arrays one behind the other: along the third axis.

    >>> dstack([np.array([1, 2]), np.array([3, 4])]).shape
    (1, 2, 2)
    """
    return _joined(_mapped("dstack", atleast_3d, tup), 2, dtype)


def column_stack(tup: Any) -> Array:
    """Vectors as the columns of a matrix.

    >>> column_stack([np.array([1, 2]), np.array([3, 4])])
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    return _joined(_mapped(
        "column_stack", lambda x: lax.reshape(x, (x.size, 1)) if x.ndim < 2 else x, tup), 1)


def block(arrays: Any) -> Array:
    """Blocks side by side: lists in lists, the innermost along the last axis.

    >>> block([[np.ones((1, 1)), np.zeros((1, 1))], [np.array([[2., 3.]])]])
    Array([[1., 0.],
           [2., 3.]], dtype=float32)
    """
    depth = _depth(arrays)
    rank = max([depth, *(as_array("block", x).ndim for x in tree_util.tree_leaves(arrays))])

    def joined(x: Any, axis: int) -> Any:
        if isinstance(x, list):
            return _joined([joined(each, axis + 1) for each in x], axis)
        x = as_array("block", x)
        return lax.expand_dims(x, range(rank - x.ndim)) if x.ndim < rank else x
    return joined(arrays, -depth)


def _depth(arrays: Any) -> int:
    """The depth of nested lists, which must be uniform."""
    if isinstance(arrays, tuple):
        raise ValueError(f"jax.numpy.block does not allow tuples, got {arrays}")
    if not isinstance(arrays, list):
        return 0
    if not arrays:
        raise ValueError("jax.numpy.block does not allow empty list arguments")
    first, *others = map(_depth, arrays)
    if any(each != first for each in others):
        raise ValueError("Mismatched list depths in jax.numpy.block")
    return first + 1


def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Array:
    """The array with values after it; both flat where no axis is given.

    >>> append(np.array([1, 2]), 3)
    Array([1, 2, 3], dtype=int32)
    """
    return _joined([arr, values], axis)


# ── Splitting ────────────────────────────────────────────────────────────────────────────────

def split(ary: ArrayLike, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """The array cut into a number of equal parts, or at the given places.

    >>> split(np.arange(4), 2)
    [Array([0, 1], dtype=int32), Array([2, 3], dtype=int32)]

    Raises:
      ValueError: where the parts would not be equal.
    """
    return _split("split", ary, indices_or_sections, axis)


def array_split(ary: ArrayLike, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """The array cut into nearly equal parts; the first may be longer by one.

    >>> [x.shape for x in array_split(np.arange(5), 2)]
    [(3,), (2,)]
    """
    return _split("array_split", ary, indices_or_sections, axis)


def _split(name: str, a: Array, indices_or_sections: Any, axis: int) -> list[Array]:
    check_axis_index(axis, ndim=a.ndim)
    axis = canonical_axis(static_axes(name, axis), a.ndim)
    size, context = a.shape[axis], f"in jax.numpy.{name} argument 1"
    if isinstance(indices_or_sections, list | tuple) or np.ndim(indices_or_sections):
        indices = [static_index(i, context) for i in indices_or_sections]
        return lax.split(a, list(np.diff([0, *indices, size])), axis)
    sections = static_int(indices_or_sections, context)
    section_size, rest = divmod(size, sections)
    if rest and name == "split":
        raise ValueError(f"array split does not result in an equal division: rest is {rest}")
    return lax.split(a, list(section_size + (np.arange(sections) < rest)), axis)


def vsplit(ary: ArrayLike, indices_or_sections: Any) -> list[Array]:
    """The array cut along its first axis.

    >>> [x.shape for x in vsplit(np.ones((4, 2)), 2)]
    [(2, 2), (2, 2)]
    """
    return split(ary, indices_or_sections, 0)


def hsplit(ary: ArrayLike, indices_or_sections: Any) -> list[Array]:
    """The array cut along its second axis; a vector along its only one.

    >>> [x.shape for x in hsplit(np.ones((4, 2)), 2)]
    [(4, 1), (4, 1)]
    """
    return split(ary, indices_or_sections, 0 if np.ndim(ary) == 1 else 1)


def dsplit(ary: ArrayLike, indices_or_sections: Any) -> list[Array]:
    """The array cut along its third axis.

    >>> [x.shape for x in dsplit(np.ones((1, 1, 4)), 2)]
    [(1, 1, 2), (1, 1, 2)]
    """
    return split(ary, indices_or_sections, 2)


def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The slices along an axis.

    >>> [part.tolist() for part in unstack(np.array([[1, 2], [3, 4]]))]
    [[1, 2], [3, 4]]
    """
    return lax.unstack(x, canonical_axis(static_axes("unstack", axis), x.ndim))


def delete(arr: ArrayLike, obj: Any, axis: int | None = None, *,
           assume_unique_indices: bool = False) -> Array:
    """The array without the elements at the given places.

    >>> delete(np.array([5, 6, 7]), 1)
    Array([5, 7], dtype=int32)

    Args:
      assume_unique_indices: a promise that the places differ, with which they may be traced.
    """
    a, axis = array_and_axis("delete", arr, axis)
    size = a.shape[axis]
    if assume_unique_indices and not isinstance(obj, slice):
        indices = ravel(as_array("delete", obj))
        mask = lax.full((size,), True, np.dtype(bool)).at[indices].set(False)
        return _index_along(a, searching.nonzero(mask, size=size - indices.size)[0], axis)
    if not isinstance(obj, slice):
        check_arraylike("delete", arr, obj)
        obj = static_value(stood_for(obj), "'obj' argument of jnp.delete")
        if obj.dtype.kind not in "iub":
            raise ValueError(f"np.delete(arr, obj): got obj.dtype={obj.dtype}; must be integer or "
                             "bool.")
        if obj.ndim == 0 and obj.dtype != bool:
            canonical_axis(obj.item(), size)  # or else ValueError
        obj = int(obj) if obj.ndim == 0 and obj.dtype == bool else obj  # one bool is an index
    return _index_along(a, np.delete(np.arange(size), obj), axis)


def _index_along(a: Any, indices: Any, axis: int) -> Array:
    return a[(slice(None),) * axis + (indices,)]


# ── Repeating ────────────────────────────────────────────────────────────────────────────────

def tile(A: ArrayLike, reps: Any) -> Array:
    """The array as a tile, laid a number of times along each axis.

    >>> tile(np.array([1, 2]), 2)
    Array([1, 2, 1, 2], dtype=int32)
    """
    times = as_dims(reps if np.iterable(reps) else (reps,))
    rank = max(A.ndim, len(times))
    return lax.tile(lax.broadcast_to_rank(A, rank), (1,) * (rank - len(times)) + times)


def repeat(a: ArrayLike, repeats: Any, axis: int | None = None, *,
           total_repeat_length: int | None = None) -> Array:
    """Each element several times: one number for all, or one for each.

    >>> repeat(np.array([3, 4]), np.array([1, 2]))
    Array([3, 4, 4], dtype=int32)

    Args:
      total_repeat_length: the size of the result; needed where `repeats` is traced.

    Raises:
      ConcretizationTypeError: when `repeats` is traced and the size is not given.
    """
    check_arraylike("repeat", a, repeats)
    x, axis = array_and_axis("repeat", a, axis if a.ndim else None)
    if total_repeat_length is not None:
        return _repeat_to_length(x, ravel(repeats), axis, operator.index(total_repeat_length))
    times = static_value(repeats, "When jit-compiling jnp.repeat, the total number of repeats "
                         "must be static. To fix this, either specify a static value for "
                         "`repeats`, or pass a static value to `total_repeat_length`.")
    if times.size != 1:
        if times.dtype.kind == "u":  # NumPy takes no uint64
            times = times.astype(np.int64)
        size = x.shape[axis]
        of_each = np.broadcast_to(times.ravel(), size)
        return _index_along(x, np.repeat(np.arange(size), of_each), axis)
    count = operator.index(times.item())
    repeated = lax.broadcast_in_dim(x, with_item(x.shape, axis + 1, count),
                                    without(range(x.ndim + 1), [axis + 1]))
    return lax.reshape(repeated, replaced(x.shape, axis, x.shape[axis] * count))


def _repeat_to_length(x: Any, repeats: Any, axis: int, length: int) -> Any:
    """The source of each element is the first whose repeats end after it."""
    if length == 0 or x.shape[axis] == 0:
        return lax.slice_in_dim(x, 0, 0, axis=axis)
    number = np.dtype("int32")
    times = broadcast_to_shape(as_array("repeat", repeats), (x.shape[axis],))
    ends = lax.cumsum(convert(times, number), 0)
    source = sorting.searchsorted(ends, lax.iota(number, length), "right")
    return _index_along(x, lax.min(source, convert(x.shape[axis] - 1, number)), axis)


# ── Padding ──────────────────────────────────────────────────────────────────────────────────────

Widths = list[tuple[int, int]]

def pad(array: ArrayLike, pad_width: Any, mode: str | Callable = "constant",
        **kwargs: Any) -> Array:
    """The array with a margin: of a constant, of its own elements, or of what a function writes.

    >>> pad(np.array([1, 2]), (1, 2), constant_values=9)
    Array([9, 1, 2, 9, 9], dtype=int32)

    Args:
      pad_width: a number, one pair for all axes, or a pair for each.
      mode: "constant" (with `constant_values`), "empty", "linear_ramp" (with `end_values`),
        "edge", "reflect", "symmetric", "wrap", "maximum", "minimum", "mean", "median" (with
        `stat_length`), or a function ``(vector, width, axis, kwargs) -> vector``.
    """
    widths = _pad_pairs(pad_width, array.ndim, "pad_width")
    if any(n < 0 for pair in widths for n in pair):
        raise ValueError("index can't contain negative values")
    if callable(mode):
        array = _pad_constant(array, widths, 0)
        for axis, pair in enumerate(widths):
            array = vectorization.apply_along_axis(mode, axis, array, pair, axis, kwargs)
        return array
    if mode not in (*_ALONG_AXIS, "constant", "empty"):
        raise NotImplementedError(f"Unimplemented padding mode '{mode}' for np.pad.")
    if others := kwargs.keys() - {_PAD_OPTION.get(mode)}:
        raise ValueError(f"unsupported keyword arguments for mode '{mode}': {others}")
    if mode in ("constant", "empty"):
        return _pad_constant(array, widths, kwargs.pop("constant_values", 0))
    for axis, pair in enumerate(widths):
        array = _ALONG_AXIS[mode](array, axis, pair, mode, **kwargs)
    return array


def _pad_pairs(pad_width: Any, ndim: int, name: str) -> Widths:
    widths = static_value(pad_width, f"{name} argument of jnp.pad")
    if widths.shape not in ((ndim, 2), (1, 2), (2,), (1,), ()):
        raise ValueError(f"jnp.pad: {name} with nd={ndim} has unsupported shape {widths.shape}. "
                         f"Valid shapes are ({ndim}, 2), (1, 2), (2,), (1,), or ().")
    if widths.dtype.kind not in "iub":
        raise TypeError(f"`{name}` must be of integral type.")
    return [(int(before), int(after)) for before, after in np.broadcast_to(widths, (ndim, 2))]


def _pad_constant(a: Any, widths: Widths, values: Any) -> Any:
    if np.ndim(values) == 0:
        return lax.pad(a, like(values, a), [(n, m, 0) for n, m in widths])
    each = broadcast_to_shape(as_array("pad", np.asarray(values)), (a.ndim, 2))
    for axis, (before, after) in enumerate(widths):
        for side, width in enumerate([(before, 0, 0), (0, after, 0)]):
            a = lax.pad(a, like(each[axis, side], a), replaced([(0, 0, 0)] * a.ndim, axis, width))
    return a


def _pad_by_index(a: Any, axis: int, pair: tuple[int, int], mode: Any,
                  reflect_type: str = "even") -> Any:
    """By the indices of the axis, padded by NumPy."""
    if pair == (0, 0):
        return a
    if reflect_type == "odd":
        return _pad_odd(a, axis, pair, repeats_edge=mode == "symmetric")
    places = np.pad(np.arange(a.shape[axis]), pair, mode)
    few = np.count_nonzero(np.diff(places, 2)) <= 8  # changes of direction
    return (_joined_slices if few else _index_along)(a, places, axis)


def _joined_slices(a: Any, places: np.ndarray, axis: int) -> Array:
    """The elements at places: a slice for each run of neighbours, also backwards, or repeated."""
    parts = []
    while places.size:
        step = int(places[1] - places[0]) if places.size > 1 else 1
        step = step if abs(step) <= 1 else 1
        run = places[0] + step * np.arange(places.size)
        run = run[:np.argmax(np.append(run != places, True))]
        low, high = sorted((int(run[0]), int(run[-1])))
        part = lax.slice_in_dim(a, low, high + 1, axis=axis)
        if step == 0:
            part = broadcast_to_shape(part, replaced(a.shape, axis, run.size))
        parts.append(lax.rev(part, (axis,)) if step < 0 else part)
        places = places[run.size:]
    return lax.concatenate(parts, axis)


def _pad_odd(a: Any, axis: int, pair: tuple[int, int], repeats_edge: bool) -> Any:
    """Reflected at the point of its first element, and continued so that each period rises as much.

    Where ``x(-i) = 2 x(0) - x(i)`` and the same at the end, a period adds ``2 (x(end) - x(0))``.
    """
    size = a.shape[axis]
    half = size if repeats_edge else size - 1
    periods, place = np.divmod(np.arange(-pair[0], size + pair[1]) + half, max(2 * half, 1))
    place = place - half  # from -half up: reflected where it is negative
    source = _index_along(a, np.where(place < 0, -place - repeats_edge, place), axis)
    first, last = (lax.slice_in_dim(a, i, i + 1, axis=axis) for i in (0, size - 1))
    along = replaced((1,) * a.ndim, axis, -1)
    rise = convert(2 * periods.reshape(along), a.dtype) * (last - first)
    return choose(place.reshape(along) < 0, first + first - source, source) + rise


def _pad_statistic(a: Any, axis: int, pair: tuple[int, int], mode: str, stat_length: Any = None
                   ) -> Any:
    n = a.shape[axis]
    first, last = (n, n) if stat_length is None else _pad_pairs(
        stat_length, a.ndim, "stat_length")[axis]
    margins = []
    if not first or not last:
        raise ValueError("stat_length of 0 yields no value for padding")
    for start, stop, width in ((0, min(first, n), pair[0]), (max(n - last, 0), n, pair[1])):
        margin = _STATISTICS[mode](lax.slice_in_dim(a, start, stop, axis=axis), axis=axis,
                                   keepdims=True)
        margin = unary.round(margin) if dtypes.kind(a.dtype) in "biu" else margin
        margin = convert(margin, a.dtype, a.weak_type)
        margins.append(broadcast_to_shape(margin, replaced(a.shape, axis, width)))
    return lax.concatenate([margins[0], a, margins[1]], axis)


def _pad_ramp(a: Any, axis: int, pair: tuple[int, int], mode: str, end_values: Any = 0) -> Any:
    ends = np.broadcast_to(end_values, (a.ndim, 2))[axis]
    up, down = (creation.linspace(
                    convert(end, a.dtype), lax.index_in_dim(a, index, axis, keepdims=False), width,
                    endpoint=False, dtype=a.dtype, axis=axis)
                for end, index, width in zip(ends, (0, -1), pair, strict=True))
    return convert(lax.concatenate([up, a, lax.rev(down, (axis,))], axis), a.dtype, a.weak_type)


_STATISTICS: dict[str, Callable[..., Array]] = {
    "maximum": reductions.max, "minimum": reductions.min, "mean": reductions.mean,
    "median": sorting.median}
_PAD_OPTION = {"constant": "constant_values", "linear_ramp": "end_values",
               **dict.fromkeys(_STATISTICS, "stat_length"),
               **dict.fromkeys(("reflect", "symmetric"), "reflect_type")}
_ALONG_AXIS: dict[str, Callable[..., Any]] = {
    "linear_ramp": _pad_ramp, **dict.fromkeys(_STATISTICS, _pad_statistic),
    **dict.fromkeys(("edge", "reflect", "symmetric", "wrap"), _pad_by_index)}


public(globals())
