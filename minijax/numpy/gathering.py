"""Picking elements by arrays of places: take, take_along_axis, compress, extract, ….

Stands on `indexing`.  Chapter 14, *Out-of-bounds indexing*.
In JAX: `jax/_src/numpy/indexing.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax import config, dtypes, lax
from minijax.core import Array
from minijax.lax import GatherScatterMode
from minijax.numpy.arguments import (ArrayLike, as_array, as_arrays, broadcast_to_shape,
                                     canonical_axis, convert, static_axes)
from minijax.numpy.searching import nonzero
from minijax.numpy.shaping import ravel
from minijax.primitives.checks import check_index


def take(a: ArrayLike, indices: ArrayLike, axis: int | None = None, out: None = None,
         mode: str | None = None, unique_indices: bool = False, indices_are_sorted: bool = False,
         fill_value: Any = None) -> Array:
    """The elements at these places of the flat array, or the slices along an axis.

    >>> take(np.array([5., 6., 7.]), np.array([2, 0, 9]))
    Array([ 7.,  5., nan], dtype=float32)

    Args:
      mode: what a place out of bounds gives: "fill" (nan, or the smallest integer; the
        default), "clip" (which moves negative places to 0) or "wrap".
    """
    if out is not None:
        raise NotImplementedError("The 'out' argument to jnp.take is not supported.")
    x, places = as_arrays("take", a, indices)
    if not dtypes.issubdtype(places.dtype, np.integer) and places.dtype != bool:
        raise ValueError("indices must have an integer type")
    if axis is None:
        x, axis = ravel(x), 0
    axis = canonical_axis(static_axes("take", axis), x.ndim)
    if mode == "raise":
        raise NotImplementedError("The 'raise' mode to jnp.take is not supported.")
    if mode not in (None, "fill", "clip", "wrap"):
        raise ValueError(f"Invalid mode '{mode}' for np.take")
    if x.shape[axis] == 0 and places.size:
        raise IndexError("Cannot do a non-empty jnp.take() from an empty axis.")
    if mode == "wrap":
        places = places % x.shape[axis]
    if config.debug_out_of_bounds.value and mode is None:
        check_index(places, axis, x.shape[axis], kind="take")
    return x.at[(slice(None),) * axis + (places,)].get(
        mode="clip" if mode == "clip" else "fill", fill_value=fill_value,
        unique_indices=unique_indices, indices_are_sorted=indices_are_sorted,
        wrap_negative_indices=mode != "clip")


def take_along_axis(arr: ArrayLike, indices: ArrayLike, axis: int | None = -1,
                    mode: str | GatherScatterMode | None = None, fill_value: Any = None, *,
                    wrap_negative_indices: bool | None = None) -> Array:
    """From every row along an axis, the elements at that row's places.

    Negative places count from the end, unless the mode is "promise_in_bounds".

    >>> take_along_axis(np.array([[1, 2], [3, 4]]), np.array([[1], [0]]), axis=1)
    Array([[2],
           [3]], dtype=int32)
    """
    x, places = as_arrays("take_along_axis", arr, indices)
    if not dtypes.issubdtype(places.dtype, np.integer):
        raise TypeError("take_along_axis indices must be of integer type, "
                        f"got {places.dtype.name}")
    if axis is None:
        if places.ndim != 1:
            raise ValueError("take_along_axis indices must be 1D if axis=None, "
                             f"got shape {places.shape}")
        x, axis = ravel(x), 0
    if x.ndim != places.ndim:
        raise ValueError("indices and arr must have the same number of dimensions; "
                         f"{places.ndim} vs. {x.ndim}")
    axis = canonical_axis(static_axes("take_along_axis", axis), x.ndim)
    shape = lax.broadcast_shapes(*([*s[:axis], 1, *s[axis + 1:]] for s in (x.shape,
                                                                          places.shape)))
    if config.debug_out_of_bounds.value and mode is None:
        check_index(places, axis, x.shape[axis], kind="take")
    shown = (*shape[:axis], places.shape[axis], *shape[axis + 1:])
    if x.shape[axis] == 0:
        return lax.full(shown, 0, x.dtype)
    places = broadcast_to_shape(places, shown)
    x = broadcast_to_shape(x, (*shape[:axis], x.shape[axis], *shape[axis + 1:]))
    index = tuple(places if d == axis else _rows(d, places.shape) for d in range(x.ndim))
    if mode == "one_hot":  # no place outside is hot
        mode, fill_value = "fill", 0
    wrap = mode != "promise_in_bounds" if wrap_negative_indices is None else wrap_negative_indices
    return x.at[index].get(mode=mode or "fill", fill_value=fill_value,
                           wrap_negative_indices=wrap)


def _rows(axis: int, shape: tuple[int, ...]) -> Any:
    """The row's own number along another axis, to stretch over all places."""
    numbers = lax.iota(np.dtype("int32"), shape[axis])
    return lax.reshape(numbers, [n if d == axis else 1 for d, n in enumerate(shape)])


def compress(condition: ArrayLike, a: ArrayLike, axis: int | None = None, *,
             size: int | None = None, fill_value: ArrayLike = 0) -> Array:
    """The slices along an axis whose condition holds.

    >>> compress(np.array([True, False, True]), np.array([5, 6, 7]))
    Array([5, 7], dtype=int32)
    """
    x: Any = as_array("compress", a)
    x = convert(x, x.dtype)
    if axis is None:
        x, axis = ravel(x), 0
    axis = canonical_axis(axis, x.ndim)
    mask = as_array("compress", condition)
    if mask.ndim != 1:
        raise ValueError("condition must be a 1D array")
    [places] = nonzero(mask, size=size, fill_value=x.shape[axis])
    return take(x, places, axis, mode="fill", fill_value=fill_value)


def extract(condition: ArrayLike, arr: ArrayLike, *, size: int | None = None,
            fill_value: ArrayLike = 0) -> Array:
    """The elements whose condition holds, flat.

    >>> extract(np.array([True, False]), np.array([5, 6]))
    Array([5], dtype=int32)
    """
    return compress(ravel(condition), ravel(arr), size=size, fill_value=fill_value)
