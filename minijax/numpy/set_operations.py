"""Two arrays as sets, and what `unique` tells by name: union1d, intersect1d, unique_all, ….

Stands on `sets`.  All are one idea: the different ones among the elements that are kept.
Chapter 18, *Dynamic shapes*.  In JAX: `jax/_src/numpy/setops.py`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from minijax import core, dtypes, lax
from minijax.core import Array
from minijax.numpy import reductions
from minijax.numpy.arguments import (ArrayLike, as_array, as_arrays, convert, promote_dtypes,
                                     static_value)
from minijax.numpy.selection import choose
from minijax.numpy.sets import isin, unique
from minijax.numpy.shaping import ravel


def union1d(ar1: ArrayLike, ar2: ArrayLike, *, size: int | None = None,
            fill_value: ArrayLike | None = None) -> Array:
    """The elements of either array, each once, in ascending order.

    >>> union1d(np.array([3, 1]), np.array([2, 3]))
    Array([1, 2, 3], dtype=int32)

    Args:
      size: how many to give, so that the size is known while tracing.
      fill_value: what to give where there are fewer; by default the smallest.

    Raises:
      ConcretizationTypeError: when an array is traced and `size` is not given.
    """
    both = lax.concatenate(promote_dtypes(*_flat("union1d", size, ar1, ar2)), 0)
    return unique(both, size=size, fill_value=fill_value)


def intersect1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False,
                return_indices: bool = False, *, size: int | None = None,
                fill_value: ArrayLike | None = None) -> Any:
    """The elements of both arrays, each once, in ascending order.

    >>> intersect1d(np.array([3, 1, 2]), np.array([2, 3]))
    Array([2, 3], dtype=int32)

    Args:
      assume_unique: accepted for NumPy's sake.
      return_indices: also where each occurs first in either array.
      size: how many to give, so that the size is known while tracing.
      fill_value: what to give where there are fewer; by default the smallest.

    Raises:
      ConcretizationTypeError: when an array is traced and `size` is not given.
    """
    a, b = promote_dtypes(*_flat("intersect1d", size, ar1, ar2))
    values, number = _different(a, isin(a, b), size, fill_value)
    if not return_indices:
        return values
    is_there = lax.iota(number.dtype, values.size) < number
    return values, *(_first_places(values, x, is_there) for x in (a, b))


def setdiff1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, *,
              size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """The elements of the first array that the second has not, each once, in ascending order.

    >>> setdiff1d(np.array([3, 1, 2]), np.array([2, 3]))
    Array([1], dtype=int32)

    Args:
      assume_unique: accepted for NumPy's sake.
      size: how many to give, so that the size is known while tracing.
      fill_value: what to give where there are fewer; 0 by default.

    Raises:
      ConcretizationTypeError: when an array is traced and `size` is not given.
    """
    a, b = _flat("setdiff1d", size, ar1, ar2)
    fill = 0 if fill_value is None else fill_value
    return _different(a, isin(a, b, invert=True), size, fill)[0]


def setxor1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, *,
             size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """The elements of one array and not of the other, each once, in ascending order.

    >>> setxor1d(np.array([3, 1, 2]), np.array([2, 3, 7]))
    Array([1, 7], dtype=int32)

    Args:
      assume_unique: accepted for NumPy's sake.
      size: how many to give, so that the size is known while tracing.
      fill_value: what to give where there are fewer; by default the smallest.

    Raises:
      ConcretizationTypeError: when an array is traced and `size` is not given.
    """
    a, b = promote_dtypes(*_flat("setxor1d", size, ar1, ar2))
    kept = lax.concatenate([isin(a, b, invert=True), isin(b, a, invert=True)], 0)
    return _different(lax.concatenate([a, b], 0), kept, size, fill_value)[0]


def _flat(name: str, size: int | None, *arrays: ArrayLike) -> list[Any]:
    """The arrays in a row each; their values must be known where no size is given."""
    values = [ravel(x) for x in as_arrays(name, *arrays)]
    if size is None:
        for x in values:
            if not core.is_concrete(x):
                static_value(x, f"The error arose in {name}(). To use it here, say how large the "
                                "result is with the size argument.")
    return values


def _different(x: Any, kept: Any, size: int | None, fill_value: Any) -> tuple[Any, Any]:
    """The different ones among the elements that are kept, and how many there are."""
    count = dtypes.default_int_dtype()
    if size is None:
        values = unique(x[kept])
        return values, convert(values.size, count)
    if x.size == 0:
        fill = 0 if fill_value is None else fill_value
        return lax.full((size,), fill, x.dtype), convert(0, count)
    # what is not kept becomes one more of the first that is
    place = choose(kept, lax.iota(count, x.size), convert(reductions.argmax(kept), count))
    values, numbers = unique(x[place], size=size, fill_value=fill_value, return_counts=True)
    any_kept = reductions.any(kept)
    nothing = lax.full_like(values, 0 if fill_value is None else fill_value)
    number = reductions.sum(convert(numbers > 0, count))
    return choose(any_kept, values, nothing), choose(any_kept, number, 0)


def _first_places(values: Any, x: Any, is_there: Any) -> Any:
    """Where each value occurs first in `x`; the size of `x` where there is none."""
    same = lax.expand_dims(values, (1,)) == lax.expand_dims(x, (0,))
    place = reductions.argmax(same, 1) if x.size else lax.full(values.shape, 0, np.dtype("int32"))
    return choose(is_there, place, x.size)


# ── `unique`, its results by name ────────────────────────────────────────────────────────────


class UniqueAll(NamedTuple):
    """What `unique_all` returns."""

    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


class UniqueCounts(NamedTuple):
    """What `unique_counts` returns."""

    values: Any
    counts: Any


class UniqueInverse(NamedTuple):
    """What `unique_inverse` returns."""

    values: Any
    inverse_indices: Any


def unique_all(x: ArrayLike, /, *, size: int | None = None,
               fill_value: ArrayLike | None = None) -> UniqueAll:
    """The different elements; where each is first, its place for each element, how often it is.

    >>> unique_all(np.array([3, 1, 3])).counts
    Array([1, 2], dtype=int32)
    """
    return UniqueAll(*unique(as_array("unique_all", x), True, True, True, equal_nan=False,
                             size=size, fill_value=fill_value))


def unique_counts(x: ArrayLike, /, *, size: int | None = None,
                  fill_value: ArrayLike | None = None) -> UniqueCounts:
    """The different elements, and how often each occurs.

    >>> unique_counts(np.array([3, 1, 3]))[1]
    Array([1, 2], dtype=int32)
    """
    return UniqueCounts(*unique(as_array("unique_counts", x), return_counts=True, equal_nan=False,
                                size=size, fill_value=fill_value))


def unique_inverse(x: ArrayLike, /, *, size: int | None = None,
                   fill_value: ArrayLike | None = None) -> UniqueInverse:
    """The different elements, and for each element its place among them.

    >>> unique_inverse(np.array([3, 1, 3])).inverse_indices
    Array([1, 0, 1], dtype=int32)
    """
    return UniqueInverse(*unique(as_array("unique_inverse", x), return_inverse=True,
                                 equal_nan=False, size=size, fill_value=fill_value))


def unique_values(x: ArrayLike, /, *, size: int | None = None,
                  fill_value: ArrayLike | None = None) -> Array:
    """The different elements, in ascending order.

    >>> unique_values(np.array([3, 1, 3]))
    Array([1, 3], dtype=int32)
    """
    return unique(as_array("unique_values", x), equal_nan=False, size=size, fill_value=fill_value)
