"""The different elements of an array, and which occur among others: unique, isin.

Stands on `searching`.  Chapter 18, *Dynamic shapes*.
In JAX: `jax/_src/numpy/setops.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax import core, dtypes, lax
from minijax.numpy import reductions
from minijax.core import Array
from minijax.numpy.unary import isnan
from minijax.numpy.arguments import (ArrayLike, as_array, as_arrays, canonical_axis, convert,
                                     promote_dtypes, static_value)
from minijax.numpy.searching import nonzero
from minijax.numpy.selection import choose
from minijax.numpy.shaping import ravel


def isin(element: ArrayLike, test_elements: ArrayLike, assume_unique: bool = False,
         invert: bool = False) -> Array:
    """Which elements occur among others.

    >>> isin(np.array([1, 2, 3]), np.array([3, 1]))
    Array([ True, False,  True], dtype=bool)
    """
    x, tests = promote_dtypes(*as_arrays("isin", element, test_elements))
    same = lax.expand_dims(x, (x.ndim,)) == lax.broadcast_to_rank(ravel(tests), x.ndim + 1)
    found = reductions.any(same, -1)
    return ~found if invert else found


def unique(ar: ArrayLike, return_index: bool = False, return_inverse: bool = False,
           return_counts: bool = False, axis: int | None = None, *, equal_nan: bool = True,
           size: int | None = None, fill_value: ArrayLike | None = None) -> Any:
    """The different elements, in ascending order.

    >>> unique(np.array([3, 1, 3]), return_counts=True)
    (Array([1, 3], dtype=int32), Array([1, 2], dtype=int32))

    Args:
      return_index: also where each occurs first; `return_inverse`: also the place of every
        element in the result; `return_counts`: also how often each occurs.
      axis: the slices of which axis to compare; by default the elements of the flat array.
      size: how many to give, so that the size is known while tracing.
      fill_value: what to give where there are fewer; by default the smallest.

    Raises:
      ConcretizationTypeError: when the array is traced and `size` is not given.
    """
    x = as_array("unique", ar)
    if size is None and not core.is_concrete(x):
        static_value(x, "The error arose for the first argument of jnp.unique(). To make "
                     "jnp.unique() compatible with JIT and other transforms, you can specify a "
                     "concrete value for the size argument, which will determine the output "
                     "size.")
    rows, axis = _rows(x, axis)
    order, first = _sorted_rows(rows, equal_nan)
    size = int(static_value(reductions.sum(first), "size")) if size is None else size
    # one more than asked for, where the last one ends
    bounds = nonzero(first, size=size + 1, fill_value=rows.shape[0])[0]
    starts, ends = lax.slice_in_dim(bounds, 0, size), lax.slice_in_dim(bounds, 1, size + 1)
    filled = starts >= rows.shape[0]
    places = order.at[choose(filled, 0, starts)].get(mode="clip")
    values = rows.at[places].get(mode="clip") if rows.shape[0] else rows
    if fill_value is not None:
        mask = lax.expand_dims(filled, range(1, values.ndim))
        values = choose(mask, convert(as_array("unique", fill_value), values.dtype), values)
    outs: list[Any] = [_unrows(values, x, axis)]
    if return_index:
        outs.append(places)
    if return_inverse:
        number = dtypes.default_int_dtype()
        group = lax.cumsum(convert(first, number), 0) - 1
        inverse = lax.full_like(group, 0).at[order].set(group)
        outs.append(lax.reshape(inverse, x.shape) if axis is None else inverse)
    if return_counts:
        outs.append(choose(filled, 0, ends - starts))
    return outs[0] if len(outs) == 1 else tuple(outs)


def _rows(x: Any, axis: int | None) -> tuple[Any, int | None]:
    """What is compared, as rows along the first axis."""
    if axis is None:
        return ravel(x), None
    axis = canonical_axis(axis, x.ndim)
    moved = lax.transpose(x, (axis, *(d for d in range(x.ndim) if d != axis)))
    return lax.reshape(moved, (x.shape[axis], x.size // max(x.shape[axis], 1))), axis


def _unrows(rows: Any, x: Any, axis: int | None) -> Any:
    if axis is None:
        return rows
    others = [d for d in range(x.ndim) if d != axis]
    shaped = lax.reshape(rows, (rows.shape[0], *(x.shape[d] for d in others)))
    return lax.transpose(shaped, (*range(1, axis + 1), 0, *range(axis + 1, x.ndim)))


def _sorted_rows(rows: Any, equal_nan: bool) -> tuple[Any, Any]:
    """The places of the rows in ascending order, and which of those are new."""
    count = rows.shape[0]
    keys = [rows] if rows.ndim == 1 else [
        lax.index_in_dim(rows, i, 1, keepdims=False) for i in range(rows.shape[1])]
    *ordered, order = lax.sort((*keys, lax.iota(dtypes.default_int_dtype(), count)), 0,
                               num_keys=len(keys))
    if count == 0:
        return order, lax.full((0,), False, np.dtype(bool))
    new: Any = lax.full((count - 1,), False, np.dtype(bool))
    for key in ordered:
        later, earlier = lax.slice_in_dim(key, 1, None), lax.slice_in_dim(key, 0, count - 1)
        differs = later != earlier
        if equal_nan and dtypes.issubdtype(key.dtype, np.inexact):
            differs = differs & ~(isnan(later) & isnan(earlier))
        new = new | differs
    return order, lax.concatenate([lax.full((1,), True, new.dtype), new], 0)
