"""Sorting, and what sorted arrays can tell: sort, argsort, lexsort, searchsorted, quantile, ….

Stands on `reductions`.  Chapter 18, *Dynamic shapes*.
In JAX: `jax/_src/numpy/sorting.py`, `reductions.py`, `lax_numpy.py`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minijax import dtypes, lax
from minijax.core import Array
from minijax.numpy import reductions
from minijax.numpy.arguments import (Alike, ArrayLike, Axes, along, as_arrays, canonical_axes,
                                     canonical_axis, choose, convert, promote_dtypes_inexact,
                                     public, static_axes)
from minijax.numpy.unary import isnan
from minijax.primitives.axes import without

_INT = np.dtype("int32")


# ── Sorting ──────────────────────────────────────────────────────────────────────────────────

def _to_sort(name: str, a: Array, axis: int | None, order: Any, kind: Any) -> tuple[Any, int]:
    if kind is not None:
        raise TypeError(f"jax.numpy.{name} has no argument 'kind'; every sort is stable.")
    if order is not None:
        raise TypeError(f"'order' argument to {name} is not supported.")
    return along(name, a, axis)


def sort(a: ArrayLike, axis: int | None = -1, *, kind: None = None, order: None = None,
         stable: bool = True, descending: bool = False) -> Array:
    """The elements in ascending order along an axis; nan at the end.

    >>> sort(np.array([3, 1, 2]))
    Array([1, 2, 3], dtype=int32)
    """
    x, axis = _to_sort("sort", a, axis, order, kind)
    result = lax.sort(x, axis)
    return lax.rev(result, (axis,)) if descending else result


def argsort(a: ArrayLike, axis: int | None = -1, *, kind: None = None, order: None = None,
            stable: bool = True, descending: bool = False) -> Array:
    """The places of the elements in ascending order; equal elements keep their order.

    >>> argsort(np.array([3, 1, 2]))
    Array([1, 2, 0], dtype=int32)
    """
    x, axis = _to_sort("argsort", a, axis, order, kind)
    places = lax.broadcasted_iota(dtypes.default_int_dtype(), x.shape, axis)
    if not descending:
        return lax.sort((x, places), axis, num_keys=1)[1]
    # the last of the reversed array is the first: stability survives the second reversal
    _, found = lax.sort((lax.rev(x, (axis,)), lax.rev(places, (axis,))), axis, num_keys=1)
    return lax.rev(found, (axis,))


def lexsort(keys: Any, axis: int = -1) -> Array:
    """The places in the order of the last key; ties in the order of the key before, and so on.

    >>> lexsort((np.array([1, 0, 2]), np.array([5, 5, 4])))
    Array([2, 1, 0], dtype=int32)
    """
    arrays = as_arrays("lexsort", *keys)
    if not arrays:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    axis = canonical_axis(axis, arrays[0].ndim)
    places = lax.broadcasted_iota(dtypes.default_int_dtype(), arrays[0].shape, axis)
    return lax.sort((*arrays[::-1], places), axis, num_keys=len(arrays))[-1]


def searchsorted(a: Alike, v: Alike, side: str = "left", sorter: ArrayLike | None = None,
                 *, method: str = "scan") -> Array:
    """Where in a sorted array each value belongs, so that it stays sorted.

    >>> searchsorted(np.array([1, 3, 5]), np.array([0, 3, 9]))
    Array([0, 1, 3], dtype=int32)

    Args:
      side: before ("left") or after ("right") equal elements.
    """
    # JAX: a scan, a sort or a comparison with all; here the steps of a binary search, in line.
    if side not in ("left", "right"):
        raise ValueError(f"{side!r} is an invalid value for keyword 'side'. "
                         "Expected one of ['left', 'right'].")
    if a.ndim != 1:
        raise ValueError("a should be 1-dimensional")
    if sorter is not None:
        a = a[sorter]
    low, high = (lax.full(v.shape, n, _INT) for n in (0, a.size))
    for _ in range(a.size.bit_length()):
        middle = lax.shift_right_logical(low + high, convert(1, _INT))
        found = a.at[middle].get(mode="clip", wrap_negative_indices=False)
        is_left = ~_before(found, v) if side == "left" else _before(v, found)
        is_left = is_left | (middle >= high)
        low, high = choose(is_left, low, middle + 1), choose(is_left, middle, high)
    return high


def _before(x: Any, y: Any) -> Any:
    """Whether x comes before y in sorted order: nan comes last."""
    if not dtypes.issubdtype(x.dtype, np.inexact):
        return x < y
    return (x < y) | isnan(y) & ~isnan(x)


# ── Order statistics ─────────────────────────────────────────────────────────────────────────

_METHODS = ("linear", "lower", "higher", "midpoint", "nearest")


def quantile(a: ArrayLike, q: ArrayLike, axis: Axes = None, out: None = None,
             overwrite_input: bool = False, method: str = "linear",
             keepdims: bool = False) -> Array:
    """The number below which the part `q` of the elements lies; nan if there is one.

    >>> quantile(np.array([1., 2., 3.]), 0.25)
    Array(1.5, dtype=float32)

    Args:
      q: between 0 and 1; an array of several adds leading axes.
      method: between two elements: "linear", "lower", "higher", "midpoint" or "nearest".
    """
    if overwrite_input:
        raise ValueError("jnp.quantile does not support overwrite_input=True")
    if method not in _METHODS:
        raise ValueError(f"method can only be {_METHODS}; got {method!r}")
    [x] = promote_dtypes_inexact(a)
    x, q = convert(x, x.dtype), convert(q, x.dtype)
    axes = canonical_axes(static_axes("quantile", axis), x.ndim)
    others = without(range(x.ndim), axes)
    rows = lax.transpose(x, (*others, *axes))
    rows = lax.reshape(rows, (*without(x.shape, axes), math.prod(x.shape[d] for d in axes)))
    has_nan = reductions.any(isnan(rows), -1, keepdims=True)
    rows = lax.sort(choose(has_nan, convert(np.nan, rows.dtype), rows), -1)
    shape = [1 if d in axes else n for d, n in enumerate(x.shape)]
    return lax.reshape(_interpolated(rows, q, method),
                       (*q.shape, *(shape if keepdims else rows.shape[:-1])))


def _interpolated(rows: Any, q: Any, method: str) -> Any:
    """Quantiles of sorted rows, the axes of `q` first."""
    count, others = rows.shape[-1], rows.ndim - 1

    def element(place: Any) -> Any:
        index = lax.clamp(np.int32(0), convert(place, _INT), np.int32(count - 1))
        taken = rows[..., index]
        return lax.transpose(taken, (*range(others, taken.ndim), *range(others)))
    place = q * float(count - 1)
    low, high = lax.floor(place), lax.ceil(place)
    if method == "nearest":
        low = choose(place - low <= 0.5, low, high)
    if method in ("lower", "nearest"):
        return element(low)
    above = element(high)
    if method == "higher":
        return above
    below = element(low)
    if method == "midpoint":
        return (below + above) * .5
    part = place - low
    part = lax.expand_dims(part, range(part.ndim, below.ndim))
    return below * (1 - part) + above * part


def median(a: ArrayLike, axis: Axes = None, out: None = None, overwrite_input: bool = False,
           keepdims: bool = False) -> Array:
    """The element in the middle, or the mean of the two in the middle.

    >>> median(np.array([5., 1., 2.]))
    Array(2., dtype=float32)
    """
    return quantile(a, 0.5, axis, out, overwrite_input, "midpoint", keepdims)


def percentile(a: ArrayLike, q: ArrayLike, axis: Axes = None, out: None = None,
               overwrite_input: bool = False, method: str = "linear",
               keepdims: bool = False) -> Array:
    """The number below which `q` per cent of the elements lie.

    >>> percentile(np.array([1., 2., 3.]), 25)
    Array(1.5, dtype=float32)
    """
    [q] = promote_dtypes_inexact(q)
    q = lax.div(q, convert(100, q.dtype))
    return quantile(a, q, axis, out, overwrite_input, method, keepdims)


public(globals())
