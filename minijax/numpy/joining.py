"""Joining, cutting, repeating and padding arrays.

Stands on `shaping`, `sorting`.  Chapter 13, *In-place updates*, uses them in place of assignments.
In JAX: `jax/_src/numpy/lax_numpy.py`.
"""
from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import dtypes, lax
from minijax.core import Array
from minijax.numpy import reductions, sorting
from minijax.primitives.axes import with_item, without
from minijax.numpy.arguments import (ArrayLike, along, as_array, as_arrays, broadcast_to_shape,
                                     canonical_axis, convert, like, promote_dtypes, stacked,
                                     static_axes, static_value)
from minijax.numpy.creation import linspace
from minijax.numpy.shaping import atleast_1d, atleast_2d, atleast_3d, ravel
from minijax.numpy.unary import round
from minijax.numpy.vectorize import apply_along_axis


# ── Joining ──────────────────────────────────────────────────────────────────────────────────

def _several(name: str, arrays: Any, dtype: Any) -> list[Any]:
    """The arrays to be joined, of one dtype."""
    if isinstance(arrays, (Array, np.ndarray)):
        arrays = list(as_array(name, arrays))
    if not len(arrays):
        raise ValueError(f"Need at least one array to {name}.")
    parts = promote_dtypes(*as_arrays(name, *arrays))
    dtype = dtypes.check_user_dtype_supported(dtype, name)
    return parts if dtype is None else [convert(x, dtype) for x in parts]


def concatenate(arrays: Any, axis: int | None = 0, dtype: Any = None) -> Array:
    """Arrays one after the other, along an axis they have.

    >>> concatenate([np.array([1, 2]), np.array([3])])
    Array([1, 2, 3], dtype=int32)

    Raises:
      TypeError: where the other axes differ.
    """
    parts = _several("concatenate", arrays, dtype)
    axis = static_axes("concatenate", axis)
    if axis is None:
        return concatenate([ravel(x) for x in parts], 0)
    if parts[0].ndim == 0:
        raise ValueError("Zero-dimensional arrays cannot be concatenated.")
    return lax.concatenate(parts, canonical_axis(axis, parts[0].ndim))


concat = concatenate


def stack(arrays: Any, axis: int = 0, out: None = None, dtype: Any = None) -> Array:
    """Arrays of one shape, side by side along a new axis.

    >>> stack([np.array([1, 2]), np.array([3, 4])])
    Array([[1, 2],
           [3, 4]], dtype=int32)
    """
    parts = _several("stack", arrays, dtype)
    shapes = [x.shape for x in parts]
    if len(set(shapes)) > 1:
        raise ValueError("All input arrays must have the same shape. Got "
                         + ", ".join(map(str, shapes)) + ".")
    return stacked(parts, canonical_axis(static_axes("stack", axis), parts[0].ndim + 1))


def vstack(tup: Any, dtype: Any = None) -> Array:
    """Arrays as rows, one below the other.

    >>> vstack([np.array([1, 2]), np.array([3, 4])]).shape
    (2, 2)
    """
    return concatenate([atleast_2d(x) for x in tup], 0, dtype)


def hstack(tup: Any, dtype: Any = None) -> Array:
    """Arrays beside each other: along the second axis; vectors along their only one.

    >>> hstack([np.array([1, 2]), np.array([3])])
    Array([1, 2, 3], dtype=int32)
    """
    parts = [atleast_1d(x) for x in tup]
    return concatenate(parts, 0 if parts and parts[0].ndim == 1 else 1, dtype)


def dstack(tup: Any, dtype: Any = None) -> Array:
    """Arrays one behind the other: along the third axis.

    >>> dstack([np.array([1, 2]), np.array([3, 4])]).shape
    (1, 2, 2)
    """
    return concatenate([atleast_3d(x) for x in tup], 2, dtype)


def column_stack(tup: Any) -> Array:
    """Vectors as the columns of a matrix.

    >>> column_stack([np.array([1, 2]), np.array([3, 4])])
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    def column(x: Any) -> Any:
        x = as_array("column_stack", x)
        return lax.reshape(x, (x.size, 1)) if x.ndim < 2 else x
    return concatenate([column(x) for x in tup], 1)


def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Array:
    """The array with values after it; both flat where no axis is given.

    >>> append(np.array([1, 2]), 3)
    Array([1, 2, 3], dtype=int32)
    """
    return concatenate(as_arrays("append", arr, values), axis)


# ── Cutting ──────────────────────────────────────────────────────────────────────────────────

def split(ary: ArrayLike, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """The array cut into equal parts (an int), or at the places named.

    >>> split(np.arange(4), 2)
    [Array([0, 1], dtype=int32), Array([2, 3], dtype=int32)]

    Raises:
      ValueError: where the parts would not be equal.
    """
    return _cut("split", ary, indices_or_sections, axis)


def array_split(ary: ArrayLike, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """The array cut into nearly equal parts; the first may be longer by one.

    >>> [x.shape for x in array_split(np.arange(5), 2)]
    [(3,), (2,)]
    """
    return _cut("array_split", ary, indices_or_sections, axis)


def _cut(name: str, ary: ArrayLike, indices_or_sections: Any, axis: int) -> list[Array]:
    a = as_array(name, ary)
    axis = canonical_axis(static_axes(name, axis), a.ndim)
    size, context = a.shape[axis], f"in jax.numpy.{name} argument 1"
    if np.ndim(indices_or_sections):
        cuts = [0, *(int(static_value(i, context)) for i in indices_or_sections), size]
        sizes = np.diff(cuts).tolist()
        if min(sizes) < 0:
            raise ValueError(f"Sizes passed to split must be nonnegative, got {sizes}")
    else:
        parts = operator.index(static_value(indices_or_sections, context)[()])
        each, left = divmod(size, parts)
        if left and name == "split":
            raise ValueError(f"array split does not result in an equal division: rest is {left}")
        cuts = [0, *np.cumsum([each + (i < left) for i in range(parts)]).tolist()]
    return [lax.slice_in_dim(a, start, stop, axis=axis)
            for start, stop in zip(cuts, cuts[1:], strict=False)]


def vsplit(ary: ArrayLike, indices_or_sections: Any) -> list[Array]:
    """The array cut along its first axis.

    >>> [x.shape for x in vsplit(np.ones((4, 2)), 2)]
    [(2, 2), (2, 2)]
    """
    return split(ary, indices_or_sections, 0)


def hsplit(ary: ArrayLike, indices_or_sections: Any) -> list[Array]:
    """The array cut along its second axis (a vector along its only one).

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
    a = as_array("unstack", x)
    if a.ndim == 0:
        raise ValueError("Unstack requires arrays with rank > 0, however a scalar array was "
                         "passed.")
    axis = canonical_axis(static_axes("unstack", axis), a.ndim)
    return tuple(lax.index_in_dim(a, i, axis, keepdims=False) for i in range(a.shape[axis]))


def delete(arr: ArrayLike, obj: Any, axis: int | None = None, *,
           assume_unique_indices: bool = False) -> Array:
    """The array without the elements at the places named.

    >>> delete(np.array([5, 6, 7]), 1)
    Array([5, 7], dtype=int32)

    Args:
      assume_unique_indices: a promise that the places differ, with which they may be traced.
    """
    a, axis = along("delete", arr, axis)
    size, places = a.shape[axis], obj
    if assume_unique_indices and not isinstance(obj, slice):
        return a[(slice(None),) * axis + (_all_but(ravel(as_array("delete", obj)), size),)]
    if not isinstance(obj, slice):
        places = static_value(obj, "'obj' argument of jnp.delete")
    return a[(slice(None),) * axis + (np.delete(np.arange(size), places),)]


def _all_but(places: Any, size: int) -> Any:
    """The numbers below `size` that are not among the places, which differ."""
    number = np.dtype("int32")
    places = convert(places, number)
    places = lax.sort(places + convert(places < 0, number) * size)
    # the i-th place leaves i places fewer before it: what comes from there on moves up
    before = places - lax.iota(number, places.size)
    kept = lax.iota(number, size - places.size)
    moved = lax.expand_dims(kept, (1,)) >= lax.expand_dims(before, (0,))
    return kept + lax.reduce_sum(convert(moved, number), (1,))


# ── Repeating ────────────────────────────────────────────────────────────────────────────────

def tile(A: ArrayLike, reps: Any) -> Array:
    """The array laid out again and again, so often along each axis.

    >>> tile(np.array([1, 2]), 2)
    Array([1, 2, 1, 2], dtype=int32)
    """
    a: Any = as_array("tile", A)
    times = tuple(operator.index(n) for n in (reps if np.iterable(reps) else (reps,)))
    rank = max(a.ndim, len(times))
    a = lax.broadcast_to_rank(a, rank)
    times = (1,) * (rank - len(times)) + times
    spread = [size for pair in zip(times, a.shape, strict=True) for size in pair]
    out = lax.broadcast_in_dim(a, spread, range(1, 2 * rank, 2))
    return lax.reshape(out, [n * m for n, m in zip(times, a.shape, strict=True)])


def repeat(a: ArrayLike, repeats: ArrayLike, axis: int | None = None, *,
           total_repeat_length: int | None = None) -> Array:
    """Each element several times: one number for all, or one for each.

    >>> repeat(np.array([3, 4]), np.array([1, 2]))
    Array([3, 4, 4], dtype=int32)

    Args:
      total_repeat_length: the size of the result; needed where `repeats` is traced.

    Raises:
      ConcretizationTypeError: when `repeats` is traced and the size is not given.
    """
    x: Any = as_array("repeat", a)
    x, axis = along("repeat", x, axis if x.ndim else None)
    if total_repeat_length is not None:
        return _repeat_to_length(x, repeats, axis, operator.index(total_repeat_length))
    times = static_value(repeats, "When jit-compiling jnp.repeat, the total number of repeats "
                         "must be static. To fix this, either specify a static value for "
                         "`repeats`, or pass a static value to `total_repeat_length`.")
    if times.size == 1:
        count = operator.index(times.reshape(())[()])
        spread = lax.broadcast_in_dim(x, with_item(x.shape, axis + 1, count),
                                      [d for d in range(x.ndim + 1) if d != axis + 1])
        return lax.reshape(spread, [n * count if d == axis else n for d, n in enumerate(x.shape)])
    places = np.repeat(np.arange(x.shape[axis]), times)
    return x[(slice(None),) * axis + (places,)]


def _repeat_to_length(x: Any, repeats: Any, axis: int, length: int) -> Any:
    """Which element stands at each place: as many as have ended before it."""
    if length == 0 or x.shape[axis] == 0:
        return lax.slice_in_dim(x, 0, 0, axis=axis)
    number = np.dtype("int32")
    times = broadcast_to_shape(as_array("repeat", repeats), (x.shape[axis],))
    ends = lax.expand_dims(lax.cumsum(convert(times, number), 0), (0,))
    over = convert(lax.expand_dims(lax.iota(number, length), (1,)) >= ends, number)
    source = lax.min(lax.reduce_sum(over, (1,)), convert(x.shape[axis] - 1, over.dtype))
    return x[(slice(None),) * axis + (source,)]


# ── Margins ──────────────────────────────────────────────────────────────────────────────────────

Widths = list[tuple[int, int]]
_BY_STATISTIC: dict[str, Callable[..., Array]] = {
    "maximum": reductions.max, "minimum": reductions.min, "mean": reductions.mean,
    "median": sorting.median}


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
    a: Any = as_array("pad", array)
    widths = _pairs(pad_width, a.ndim)
    if any(n < 0 for pair in widths for n in pair):
        raise ValueError("index can't contain negative values")
    if callable(mode):
        return _pad_by_function(a, widths, mode, kwargs)
    if mode in ("constant", "empty"):
        return _pad_constant(a, widths, kwargs.pop("constant_values", 0))
    if mode in ("edge", "reflect", "symmetric", "wrap"):
        return _pad_by_index(a, widths, mode, kwargs)
    if mode in _BY_STATISTIC:
        return _pad_by_statistic(a, widths, mode, kwargs.pop("stat_length", None))
    if mode == "linear_ramp":
        return _pad_ramp(a, widths, kwargs.pop("end_values", 0))
    raise NotImplementedError(f"Unimplemented padding mode '{mode}' for np.pad.")


def _pairs(pad_width: Any, ndim: int) -> Widths:
    given = static_value(pad_width, "`pad_width` argument of jnp.pad")
    widths = np.broadcast_to(given, (ndim, 2))
    return [(operator.index(before), operator.index(after)) for before, after in widths]


def _pad_constant(a: Any, widths: Widths, values: Any) -> Any:
    if np.ndim(values) == 0:
        return lax.pad(a, like(values, a), [(n, m, 0) for n, m in widths])
    each = broadcast_to_shape(as_array("pad", np.asarray(values)), (a.ndim, 2))
    for axis, (before, after) in enumerate(widths):
        for width, side in (((before, 0, 0), 0), ((0, after, 0), 1)):
            config = [(0, 0, 0)] * a.ndim
            config[axis] = width
            a = lax.pad(a, like(each[axis, side], a), config)
    return a


def _pad_by_index(a: Any, widths: Widths, mode: str, options: dict) -> Any:
    """NumPy pads the numbers of the places: these are the elements to show."""
    for axis, pair in enumerate(widths):
        if pair != (0, 0):
            places = np.pad(np.arange(a.shape[axis]), pair, mode,  # type: ignore[call-overload]
                            **options)
            a = a[(slice(None),) * axis + (places,)]
    return a


def _pad_by_statistic(a: Any, widths: Widths, mode: str, length: Any) -> Any:
    lengths = [(None, None)] * a.ndim if length is None else _pairs(length, a.ndim)
    for axis, (pair, sizes) in enumerate(zip(widths, lengths, strict=True)):
        n = a.shape[axis]
        first, last = (n if size is None else min(size, n) for size in sizes)
        parts = (lax.slice_in_dim(a, 0, first, axis=axis),
                 lax.slice_in_dim(a, n - last, n, axis=axis))
        margins = [_BY_STATISTIC[mode](part, axis=axis, keepdims=True) for part in parts]
        if a.dtype.kind in "biu":
            margins = [round(margin) for margin in margins]
        margins = [convert(margin, a.dtype, a.weak_type) for margin in margins]
        before, after = (broadcast_to_shape(m, with_item(without(m.shape, [axis]), axis, width))
                         for m, width in zip(margins, pair, strict=True))
        a = lax.concatenate([before, a, after], axis)
    return a


def _pad_ramp(a: Any, widths: Widths, end_values: Any) -> Any:
    ends = np.broadcast_to(end_values, (a.ndim, 2))
    for axis, pair in enumerate(widths):
        sides = [lax.index_in_dim(a, place, axis, keepdims=False) for place in (0, -1)]
        up, down = (linspace(convert(end, a.dtype), side, width, endpoint=False, dtype=a.dtype,
                             axis=axis)
                    for end, side, width in zip(ends[axis], sides, pair, strict=True))
        ramps = lax.concatenate([up, a, lax.rev(down, (axis,))], axis)
        a = convert(ramps, a.dtype, a.weak_type)
    return a


def _pad_by_function(a: Any, widths: Widths, function: Callable, options: dict) -> Any:
    a = _pad_constant(a, widths, 0)
    for axis, pair in enumerate(widths):
        a = apply_along_axis(function, axis, a, pair, axis, options)
    return a
