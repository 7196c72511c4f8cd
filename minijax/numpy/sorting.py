"""Sorting, and searching what is sorted: sort, argsort, lexsort, searchsorted.

Stands on `selection`.  Chapter 18, *Dynamic shapes*.
In JAX: `jax/_src/numpy/sorting.py`, `lax_numpy.py`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minijax import dtypes, lax
from minijax.core import Array
from minijax.numpy.unary import isnan
from minijax.numpy.arguments import (ArrayLike, as_array, as_arrays, canonical_axis, convert,
                                     promote_dtypes, static_axes)
from minijax.numpy.selection import choose
from minijax.numpy.shaping import ravel

_INT = np.dtype("int32")


# ── Sorting ──────────────────────────────────────────────────────────────────────────────────

def _sort_argument(name: str, a: ArrayLike, axis: int | None, order: Any,
                   kind: Any) -> tuple[Any, int]:
    if kind is not None:
        raise TypeError(f"jax.numpy.{name} has no argument 'kind'; every sort is stable.")
    if order is not None:
        raise TypeError(f"'order' argument to {name} is not supported.")
    x = as_array(name, a)
    if axis is None:
        return ravel(x), 0
    return x, canonical_axis(static_axes(name, axis), x.ndim)


def sort(a: ArrayLike, axis: int | None = -1, *, kind: None = None, order: None = None,
         stable: bool = True, descending: bool = False) -> Array:
    """The elements in ascending order along an axis; nan at the end.

    >>> sort(np.array([3, 1, 2]))
    Array([1, 2, 3], dtype=int32)
    """
    x, axis = _sort_argument("sort", a, axis, order, kind)
    result = lax.sort(x, axis)
    return lax.rev(result, (axis,)) if descending else result


def argsort(a: ArrayLike, axis: int | None = -1, *, kind: None = None, order: None = None,
            stable: bool = True, descending: bool = False) -> Array:
    """The places of the elements in ascending order; equal elements keep their order.

    >>> argsort(np.array([3, 1, 2]))
    Array([1, 2, 0], dtype=int32)
    """
    x, axis = _sort_argument("argsort", a, axis, order, kind)
    places = lax.broadcasted_iota(dtypes.default_int_dtype(), x.shape, axis)
    if not descending:
        return lax.sort((x, places), axis, num_keys=1)[1]
    # the last of the reversed array is the first: stability survives the second reversal
    _, found = lax.sort((lax.rev(x, (axis,)), lax.rev(places, (axis,))), axis, num_keys=1)
    return lax.rev(found, (axis,))


def lexsort(keys: Any, axis: int = -1) -> Array:
    """The places in the order of the last key; equal ones in that of the key before, and so on.

    >>> lexsort((np.array([1, 0, 2]), np.array([5, 5, 4])))
    Array([2, 1, 0], dtype=int32)
    """
    arrays = as_arrays("lexsort", *keys)
    if not arrays:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    axis = canonical_axis(axis, arrays[0].ndim)
    places = lax.broadcasted_iota(dtypes.default_int_dtype(), arrays[0].shape, axis)
    return lax.sort((*arrays[::-1], places), axis, num_keys=len(arrays))[-1]


def searchsorted(a: ArrayLike, v: ArrayLike, side: str = "left", sorter: ArrayLike | None = None,
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
    a, v = promote_dtypes(*as_arrays("searchsorted", a, v))
    if a.ndim != 1:
        raise ValueError("a should be 1-dimensional")
    if sorter is not None:
        a = a[sorter]
    low: Any = lax.full(v.shape, 0, _INT)
    high: Any = lax.full(v.shape, a.size, _INT)
    for _ in range(math.ceil(math.log2(a.size + 1)) if a.size else 0):
        middle = lax.div(low + high, convert(2, _INT))
        found = a.at[middle].get(mode="clip")
        to_the_left = _not_after(v, found) if side == "left" else _before(v, found)
        to_the_left = to_the_left | (middle >= high)
        low, high = (choose(to_the_left, low, middle + 1), choose(to_the_left, middle, high))
    return high


def _before(x: Any, y: Any) -> Any:
    """Whether x comes before y in sorted order: nan comes last."""
    if not dtypes.issubdtype(x.dtype, np.inexact):
        return x < y
    return (x < y) | isnan(y) & ~isnan(x)


def _not_after(x: Any, y: Any) -> Any:
    return ~_before(y, x)
