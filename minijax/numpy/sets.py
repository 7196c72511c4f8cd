"""Arrays as sets: unique, isin, union1d, intersect1d, unique_all, ….

All compute the distinct elements of a masked array.
Builds on `searching`.  Chapter 18, *Dynamic shapes*.  In JAX: `jax/_src/numpy/setops.py`.
"""

from __future__ import annotations

import math
import operator
from collections import namedtuple
from typing import Any

import numpy as np

from minijax import dtypes, lax
from minijax.core import Array
from minijax.numpy import reductions, searching, shaping, sorting, unary
from minijax.numpy.arguments import (Alike, ArrayLike, as_array, broadcast_to_shape,
                                     check_promotion, choose, convert, promote_dtypes, public,
                                     static_value)


def isin(element: Alike, test_elements: Alike, assume_unique: bool = False,
         invert: bool = False, *, method: str = "auto") -> Array:
    """Whether each element occurs among others.

    >>> isin(np.array([1, 2, 3]), np.array([3, 1]))
    Array([ True, False,  True], dtype=bool)
    """
    # JAX: four methods; here one, which compares with all
    if method not in ("auto", "compare_all", "binary_search", "sort"):
        raise ValueError(f"method={method!r} is not implemented; options are 'compare_all', "
                         "'binary_search', 'sort', and 'auto'")
    tests = lax.broadcast_to_rank(shaping.ravel(test_elements), element.ndim + 1)
    is_member = reductions.any(lax.expand_dims(element, (element.ndim,)) == tests, -1)
    return ~is_member if invert else is_member


def unique(ar: ArrayLike, return_index: bool = False, return_inverse: bool = False,
           return_counts: bool = False, axis: int | None = None, *, equal_nan: bool = True,
           size: int | None = None, fill_value: ArrayLike | None = None,
           sorted: bool = True) -> Any:
    """The different elements, in ascending order.

    >>> unique(np.array([3, 1, 3]), return_counts=True)
    (Array([1, 3], dtype=int32), Array([1, 2], dtype=int32))

    Args:
      return_index: whether to return where each occurs first, too.
      return_inverse: whether to return the place of every element in the result, too.
      return_counts: whether to return how often each occurs, too.
      axis: the axis whose slices are compared; by default the elements of the flat array are.
      size: the static size of the result, for traced arrays.
      fill_value: the padding where there are fewer; by default the smallest.
      sorted: whether they have to be in order; they are in any case.

    Raises:
      ConcretizationTypeError: when the array is traced and `size` is not given.
    """
    of, value = ("first", ar) if size is None else ("size", size)
    static_value(value, f"The error arose for the {of} argument of jnp.unique(). To make "
                 "jnp.unique() compatible with JIT and other transforms, you can specify a "
                 "concrete value for the size argument, which will determine the output size.")
    if ar.dtype.kind == "c" and equal_nan:  # whichever part of it is nan
        ar = choose(unary.isnan(ar), np.nan, ar)
    rows: Any = shaping.ravel(ar)
    if axis is not None:
        rows = shaping.moveaxis(ar, operator.index(axis), 0)
        rows = lax.reshape(rows, (rows.shape[0], math.prod(rows.shape[1:])))
    only_filled = size if size and not rows.shape[0] else 0
    if only_filled and fill_value is None:
        raise ValueError("jnp.unique: for zero-sized input with nonzero size argument, fill_value "
                         "must be specified")
    size = 0 if only_filled else size
    order, first = _sorted_rows(rows, equal_nan)
    size = int(static_value(reductions.sum(first), "size")) if size is None else size
    # one more than `size`: the end of the last run
    bounds = searching.nonzero(first, size=size + 1, fill_value=rows.shape[0])[0]
    starts, ends = lax.slice_in_dim(bounds, 0, size), lax.slice_in_dim(bounds, 1, size + 1)
    filled = starts >= rows.shape[0]
    indices = order.at[choose(filled, 0, starts)].get(mode="clip")
    values = rows.at[indices].get(mode="clip")
    if fill_value is not None:
        fill = convert(as_array("unique", fill_value), values.dtype)
        mask = lax.expand_dims(filled, range(1, values.ndim))
        values = (broadcast_to_shape(fill, (only_filled, *rows.shape[1:])) if only_filled
                  else choose(mask, fill, values))
    if axis is not None:
        values = lax.reshape(values, (values.shape[0], *np.delete(ar.shape, axis).tolist()))
        values = shaping.moveaxis(values, 0, axis)
    outs: list[Any] = [values]
    if return_index:
        outs.append(indices)
    if return_inverse:
        group = lax.cumsum(convert(first, dtypes.default_int_dtype()), 0) - 1
        inverse = lax.full_like(group, 0).at[order].set(group)
        outs.append(lax.reshape(inverse, ar.shape) if axis is None else inverse)
    if return_counts:
        outs.append(choose(filled, 0, ends - starts))
    return outs[0] if len(outs) == 1 else tuple(outs)


def _sorted_rows(rows: Any, equal_nan: bool) -> tuple[Any, Any]:
    """The indices of the rows in ascending order, and whether each differs from the one before."""
    count = rows.shape[0]
    keys = [rows] if rows.ndim == 1 else [
        lax.index_in_dim(rows, i, 1, keepdims=False) for i in range(rows.shape[1])]
    keys = keys or [lax.full((count,), 0, np.dtype("int32"))]  # empty rows are all equal
    *ordered, order = lax.sort((*keys, lax.iota(dtypes.default_int_dtype(), count)), 0,
                               num_keys=len(keys))
    new: Any = lax.full((max(count - 1, 0),), False, np.dtype(bool))
    for key in ordered:
        later, earlier = key[1:], key[:-1]
        differs = later != earlier
        if equal_nan and dtypes.issubdtype(key.dtype, np.inexact):
            differs = differs & ~(unary.isnan(later) & unary.isnan(earlier))
        new = new | differs
    return order, lax.concatenate([lax.full((min(count, 1),), True, new.dtype), new], 0)


# ── Two sets ─────────────────────────────────────────────────────────────────────────────────

def union1d(ar1: ArrayLike, ar2: ArrayLike, *, size: int | None = None,
            fill_value: ArrayLike | None = None) -> Array:
    """The elements of either array, each once, in ascending order.

    >>> union1d(np.array([3, 1]), np.array([2, 3]))
    Array([1, 2, 3], dtype=int32)

    Args:
      size: the static size of the result, for traced arrays.
      fill_value: the padding where there are fewer; by default the smallest.

    Raises:
      ConcretizationTypeError: when an array is traced and `size` is not given.
    """
    both = lax.concatenate(promote_dtypes(*_ravel_operands("union1d", size, ar1, ar2)), 0)
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
      size: the static size of the result, for traced arrays.
      fill_value: the padding where there are fewer; by default the smallest.

    Raises:
      ConcretizationTypeError: when an array is traced and `size` is not given.
    """
    a, b = promote_dtypes(*_ravel_operands("intersect1d", size, ar1, ar2))
    values, number = _unique_where(a, isin(a, b), size, fill_value)
    if not return_indices:
        return values
    is_value = lax.iota(number.dtype, values.size) < number

    def first_indices(x: Any) -> Any:
        same = lax.expand_dims(values, (1,)) == lax.expand_dims(x, (0,))
        index = reductions.argmax(same, 1) if x.size else lax.full_like(is_value, 0, np.int32)
        return choose(is_value, index, x.size)
    return values, first_indices(a), first_indices(b)


def setdiff1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, *,
              size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """The elements of the first array that the second lacks, each once, in ascending order.

    >>> setdiff1d(np.array([3, 1, 2]), np.array([2, 3]))
    Array([1], dtype=int32)

    Args:
      assume_unique: whether the elements differ already; they stay in their order.
      size: the static size of the result, for traced arrays.
      fill_value: the padding where there are fewer; 0 by default.

    Raises:
      ConcretizationTypeError: when an array is traced and `size` is not given.
    """
    a, b = _ravel_operands("setdiff1d", size, ar1, ar2)
    check_promotion(a, b)
    fill, is_other = 0 if fill_value is None else fill_value, isin(a, b, invert=True)
    if assume_unique and a.size:
        return a.at[searching.nonzero(is_other, size=size, fill_value=a.size)].get(
            mode="fill", fill_value=fill)
    return convert(_unique_where(a, is_other, size, fill)[0], a.dtype, a.weak_type)


def setxor1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, *,
             size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """The elements of one array and not of the other, each once, in ascending order.

    >>> setxor1d(np.array([3, 1, 2]), np.array([2, 3, 7]))
    Array([1, 7], dtype=int32)

    Args:
      assume_unique: that neither array has an element twice; one that does leaves it out.
      size: the static size of the result, for traced arrays.
      fill_value: the padding where there are fewer; by default the smallest.

    Raises:
      ConcretizationTypeError: when an array is traced and `size` is not given.
    """
    a, b = promote_dtypes(*_ravel_operands("setxor1d", size, ar1, ar2))
    if assume_unique:
        x: Any = sorting.sort(lax.concatenate([a, b], 0))
        end = convert(np.ones(min(x.size, 1), bool), bool)
        new: Any = lax.concatenate([end, x[1:] != x[:-1], end], 0)
        return _unique_where(x, new[1:] & new[:-1], size, fill_value)[0]
    mask = lax.concatenate([isin(a, b, invert=True), isin(b, a, invert=True)], 0)
    return _unique_where(lax.concatenate([a, b], 0), mask, size, fill_value)[0]


def _ravel_operands(name: str, size: int | None, *arrays: ArrayLike) -> list[Any]:
    """The flat arrays; without a size they must be concrete."""
    if size is None:
        for x in arrays:
            static_value(x, f"The error arose in {name}(). To use it here, say how large the "
                            "result is with the size argument.")
    return [shaping.ravel(x) for x in arrays]


def _unique_where(x: Any, mask: Any, size: int | None, fill_value: Any) -> tuple[Any, Any]:
    """The distinct elements where the mask holds, and their number."""
    count = dtypes.default_int_dtype()
    if size is None:
        values = unique(x[mask])
        return values, convert(values.size, count)
    x = convert(x, x.dtype)  # with a size, the result is never weak
    if x.size == 0:
        fill = 0 if fill_value is None else fill_value
        return lax.full((size,), fill, x.dtype), convert(0, count)
    # masked elements become copies of the first unmasked one
    index = choose(mask, lax.iota(count, x.size), convert(reductions.argmax(mask), count))
    values, numbers = unique(x[index], size=size, fill_value=fill_value, return_counts=True)
    is_any = reductions.any(mask)
    filler = lax.full_like(values, 0 if fill_value is None else fill_value)
    number = reductions.sum(convert(numbers > 0, count))
    return choose(is_any, values, filler), choose(is_any, number, 0)


# ── `unique`, its results by name ────────────────────────────────────────────────────────────


_UniqueAllResult = namedtuple("_UniqueAllResult", "values indices inverse_indices counts")
_UniqueCountsResult = namedtuple("_UniqueCountsResult", "values counts")
_UniqueInverseResult = namedtuple("_UniqueInverseResult", "values inverse_indices")


def unique_all(x: ArrayLike, /, *, size: int | None = None,
               fill_value: ArrayLike | None = None) -> _UniqueAllResult:
    """The different elements, their first places, each element's place among them, and counts.

    >>> unique_all(np.array([3, 1, 3])).counts
    Array([1, 2], dtype=int32)
    """
    return _UniqueAllResult(*unique(x, True, True, True, equal_nan=False, size=size,
                             fill_value=fill_value))


def unique_counts(x: ArrayLike, /, *, size: int | None = None,
                  fill_value: ArrayLike | None = None) -> _UniqueCountsResult:
    """The different elements, and how often each occurs.

    >>> unique_counts(np.array([3, 1, 3]))[1]
    Array([1, 2], dtype=int32)
    """
    return _UniqueCountsResult(*unique(x, return_counts=True, equal_nan=False,
                                size=size, fill_value=fill_value))


def unique_inverse(x: ArrayLike, /, *, size: int | None = None,
                   fill_value: ArrayLike | None = None) -> _UniqueInverseResult:
    """The different elements, and for each element its place among them.

    >>> unique_inverse(np.array([3, 1, 3])).inverse_indices
    Array([1, 0, 1], dtype=int32)
    """
    return _UniqueInverseResult(*unique(x, return_inverse=True,
                                 equal_nan=False, size=size, fill_value=fill_value))


def unique_values(x: ArrayLike, /, *, size: int | None = None,
                  fill_value: ArrayLike | None = None) -> Array:
    """The different elements, in ascending order.

    >>> unique_values(np.array([3, 1, 3]))
    Array([1, 3], dtype=int32)
    """
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)


public(globals())
