"""Arrays with elements replaced, inserted or removed: put, place, insert, choose, trim_zeros.

Builds on `searching`.  Chapter 13, *In-place updates*.
In JAX: `jax/_src/numpy/indexing.py`, `lax_numpy.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import dtypes, lax
from minijax.core import Array, refuse, stood_for
from minijax.numpy import arguments, searching
from minijax.numpy.arguments import (ArrayLike, array_and_axis, as_array, as_arrays,
                                     broadcast_arrays_to_one_shape, broadcast_to_shape,
                                     canonical_axes, check_promotion, convert, indices_along,
                                     indices_within, promote_dtypes, public, static_value)
from minijax.numpy.shaping import moveaxis, ravel
from minijax.primitives.axes import canonical_shape


def _check_not_in_place(name: str, inplace: bool) -> None:
    if inplace:
        raise ValueError(f"jax.numpy.{name} cannot modify arrays in-place, because JAX arrays are "
                         "immutable. Pass inplace=False to instead return an updated array.")


def put(a: ArrayLike, ind: ArrayLike, v: ArrayLike, mode: str | None = None, *,
        inplace: bool = True) -> Array:
    """The array with other values at these flat indices; needs ``inplace=False``.

    >>> put(np.array([5, 6, 7]), np.array([0, 2]), np.array([1, 2]), inplace=False)
    Array([1, 6, 2], dtype=int32)

    Args:
      v: the values, again from the first where they are too few.
      mode: "clip" or "wrap" for indices out of bounds; by default they are dropped.
    """
    _check_not_in_place("put", inplace)
    indices, values = ravel(ind), ravel(as_array("put", v))
    if not a.size or not indices.size or not values.size:
        return a
    check_promotion(a, values)
    values = resize(values, indices.shape)
    if mode == "raise":
        raise NotImplementedError("The 'raise' mode to jnp.put is not supported.")
    if mode not in (None, "wrap", "clip"):
        raise ValueError(f"mode should be one of 'wrap' or 'clip'; got mode={mode!r}")
    indices = indices_within(indices, a.size, mode)
    return ravel(a).at[indices].set(values, mode="drop").reshape(a.shape)


def place(arr: ArrayLike, mask: ArrayLike, vals: ArrayLike, *, inplace: bool = True) -> Array:
    """The array with the values, in turn, where the mask holds; needs ``inplace=False``.

    >>> place(np.array([5, 6, 7]), np.array([True, False, True]), np.array([1, 2]), inplace=False)
    Array([1, 6, 2], dtype=int32)
    """
    values = ravel(as_arrays("place", arr, mask, vals)[-1])
    _check_not_in_place("place", inplace)
    check_promotion(arr, values)
    refuse((arr.size != mask.size, "place: arr and mask must be the same size"),
           (not values.size, "Cannot place values from an empty array"), error=ValueError)
    mask = lax.reshape(mask, arr.shape) != 0
    rank = lax.reshape(lax.cumsum(ravel(convert(mask, np.dtype("int32")))), arr.shape) - 1
    out = arguments.choose(mask, convert(values[rank % values.size], arr.dtype), arr)
    return convert(out, arr.dtype, arr.weak_type)


def put_along_axis(arr: ArrayLike, indices: ArrayLike, values: ArrayLike, axis: int | None,
                   inplace: bool = True, *, mode: str | None = None) -> Array:
    """The array with other values at indices along an axis; needs ``inplace=False``.

    >>> put_along_axis(np.array([[1, 2], [3, 4]]), np.array([[1], [0]]), 9, 1, inplace=False)
    Array([[1, 9],
           [9, 4]], dtype=int32)
    """
    _check_not_in_place("put_along_axis", inplace)
    x, x_axis = array_and_axis("put_along_axis", arr, axis)
    values = as_array("put_along_axis", values)
    check_promotion(x, values)
    if axis is None:
        values = ravel(broadcast_to_shape(values, indices.shape))
    elif indices.ndim != x.ndim:
        raise ValueError("put_along_axis: indices and arr must have the same number of dimensions")
    shape = [n if d == x_axis else max(n, m)
             for d, (n, m) in enumerate(zip(indices.shape, x.shape, strict=True))]
    all_indices = indices_along(shape, *range(x.ndim))
    all_indices[x_axis] = broadcast_to_shape(indices, tuple(shape))
    return x.at[tuple(all_indices)].set(values, mode=mode).reshape(arr.shape)


def insert(arr: ArrayLike, obj: ArrayLike | slice, values: ArrayLike, axis: int | None = None
           ) -> Array:
    """The array with values inserted before these indices.

    >>> insert(np.array([5, 6, 7]), 1, 9)
    Array([5, 9, 6, 7], dtype=int32)
    """
    _, indices, new = as_arrays("insert", arr, 0 if isinstance(obj, slice) else obj, values)
    a, axis = array_and_axis("insert", arr, axis)
    new, size = convert(new, a.dtype, a.weak_type), a.shape[axis]
    new = lax.expand_dims(new, range(a.ndim - new.ndim)) if new.ndim < a.ndim else new
    if isinstance(obj, slice):
        indices = np.arange(size, dtype=np.int32)[obj]
    if indices.ndim > 1 or dtypes.kind(indices.dtype) not in "iu":
        raise ValueError("jnp.insert(): obj must be a slice, or an integer array of at most one "
                         f"dimension; got {obj}")
    new = moveaxis(new, 0, axis) if indices.ndim == 0 else new
    if indices.size == 1:
        indices = broadcast_to_shape(indices, (new.shape[axis],))
    count = indices.size
    indices = convert(indices, np.dtype("int32"))
    indices = lax.clamp(np.int32(0), arguments.choose(indices < 0, indices + size, indices),
                       np.int32(size))
    new = moveaxis(broadcast_to_shape(new, (*a.shape[:axis], count, *a.shape[axis + 1:])), axis, 0)
    # a stable sort of all rows by their indices, in which new rows precede old ones
    keys = lax.concatenate([indices, lax.iota(np.dtype("int32"), size)], 0)
    order = lax.sort((keys, lax.iota(np.dtype("int32"), count + size)), 0, num_keys=1)[1]
    return moveaxis(lax.concatenate([new, moveaxis(a, axis, 0)], 0)[order], 0, axis)


def resize(a: ArrayLike, new_shape: Any) -> Array:
    """The elements in this shape, again from the first where they are too few.

    >>> resize(np.array([1, 2, 3]), (2, 2))
    Array([[1, 2],
           [3, 1]], dtype=int32)
    """
    shape = (new_shape,) if np.ndim(new_shape) == 0 else tuple(new_shape)
    if any(n < 0 for n in shape):
        raise ValueError("all elements of `new_shape` must be non-negative")
    size = math.prod(canonical_shape(shape))
    flat: Any = ravel(a)
    if not flat.size:
        return lax.full(shape, 0, a.dtype)
    flat = lax.concatenate([flat] * -(-size // flat.size), 0) if size > flat.size else flat
    return lax.reshape(flat[:size], shape)


def choose(a: ArrayLike, choices: Any, out: None = None, mode: str = "raise") -> Array:
    """Element by element, the choice whose number the array `a` has.

    >>> choose(np.array([1, 0]), [np.array([5, 6]), np.array([7, 8])])
    Array([7, 6], dtype=int32)

    Args:
      mode: for numbers out of bounds: "raise" (of concrete ones), "wrap" or "clip".
    """
    refuse((dtypes.kind(a.dtype) not in "iu", "`a` array must be integer typed"),
           (mode not in ("raise", "wrap", "clip"),
            f"mode={mode!r} not understood. Must be 'raise', 'wrap', or 'clip'"), error=ValueError)
    arrays = as_arrays("choose", *choices)
    which = indices_within(a, len(arrays), mode, "jnp.choose", "choice")
    which, *arrays = broadcast_arrays_to_one_shape(which, *promote_dtypes(*arrays))
    elements = searching.take_along_axis(lax.stack(arrays), which[None], 0)[0]
    return convert(elements, elements.dtype)


def trim_zeros(filt: ArrayLike, trim: str = "fb", axis: int | Sequence[int] | None = None) -> Array:
    """The array without the zeros at its ends; it must be concrete.

    >>> trim_zeros(np.array([0, 1, 0, 2, 0]))
    Array([1, 0, 2], dtype=int32)

    Args:
      trim: of "f", the front, and "b", the back.
    """
    is_set = np.asarray(static_value(filt, "jnp.trim_zeros")) != 0
    axes, cut = canonical_axes(axis, filt.ndim), [slice(None)] * filt.ndim
    for d in axes:
        nonzeros = np.flatnonzero(is_set.any(tuple(e for e in range(filt.ndim) if e != d)))
        bounds = (nonzeros[0], nonzeros[-1] + 1) if nonzeros.size else (filt.shape[d], 0)
        cut[d] = slice(bounds[0] if "f" in trim.lower() else 0,
                       bounds[1] if "b" in trim.lower() else filt.shape[d])
    return filt[tuple(cut)] if axes else filt


def apply_over_axes(func: Callable[..., Any], a: ArrayLike, axes: Any) -> Array:
    """`func(a, axis)` for one axis after the other, which remain with size one.

    >>> from minijax.numpy import sum
    >>> apply_over_axes(sum, np.ones((2, 3)), [0, 1])
    Array([[6.]], dtype=float32)
    """
    a = stood_for(a)
    for axis in axes:
        result = func(a, axis)
        result = result if result.ndim == a.ndim else lax.expand_dims(result, (axis % a.ndim,))
        if result.ndim != a.ndim:
            raise ValueError("function is not returning an array of the correct shape")
        a = result
    return a


public(globals())
