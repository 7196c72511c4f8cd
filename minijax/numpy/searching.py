"""Where things are, and how many: where, nonzero, argwhere, bincount, digitize, histogram.

Stands on `sorting`.  Chapter 18, *Dynamic shapes*: sizes that depend on values.
In JAX: `jax/_src/numpy/lax_numpy.py`.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from minijax import dtypes, lax
from minijax.core import Array
from minijax.numpy import reductions
from minijax.numpy.creation import array, linspace, stacked
from minijax.numpy.arguments import ArrayLike, as_array, check_arraylike, convert, static_value
from minijax.numpy.selection import choose
from minijax.numpy.shaping import ravel
from minijax.numpy.sorting import searchsorted

_INT = np.dtype("int32")


# ── Where things are ─────────────────────────────────────────────────────────────────────────

def nonzero(a: ArrayLike, *, size: int | None = None,
            fill_value: Any = None) -> tuple[Array, ...]:
    """The places of all elements that are not zero, one array for each axis.

    >>> nonzero(np.array([0, 7, 0, 5]))
    (Array([1, 3], dtype=int32),)

    Args:
      size: how many places to give, so that the size is known while tracing.
      fill_value: what to give where there are fewer; 0 by default.

    Raises:
      ConcretizationTypeError: when the array is traced and `size` is not given.
    """
    x = as_array("nonzero", a)
    if x.ndim == 0:
        raise ValueError("Calling nonzero on 0d arrays is not allowed. Use "
                         "jnp.atleast_1d(scalar).nonzero() instead.")
    if size is None:
        found = np.nonzero(static_value(x, "The error arose in jnp.nonzero.\nThe size argument of "
                             "jnp.nonzero must be statically specified to use jnp.nonzero "
                             "within JAX transformations."))
        return tuple(array(places, dtype=dtypes.default_int_dtype()) for places in found)
    return _nonzero_of_size(x, operator.index(size), fill_value)


def _nonzero_of_size(x: Any, size: int, fill_value: Any) -> tuple[Array, ...]:
    number = dtypes.default_int_dtype()
    fill_value = 0 if fill_value is None else fill_value
    fill = fill_value if isinstance(fill_value, tuple) else (fill_value,) * x.ndim
    if x.size == 0 or size == 0:  # as in JAX, nothing is filled in then
        return tuple(lax.full((size,), 0, number) for _ in fill)
    mask = convert(ravel(x != 0 if x.dtype != bool else x), number)
    # the place of the i-th is the number of places that have seen at most i
    seen = lax.cumsum(mask, 0)
    ended: Any = lax.full((size,), 0, number)
    flat = lax.cumsum(ended.at[seen].add(1, mode="drop"), 0)
    missing = lax.iota(number, size) >= reductions.sum(mask)
    strides = [math.prod(x.shape[d + 1:]) for d in range(x.ndim)]
    found = [lax.rem(lax.div(flat, convert(stride, number)), convert(n, number))
             for stride, n in zip(strides, x.shape, strict=True)]
    return tuple(choose(missing, convert(as_array("nonzero", value), number), places)
                 for value, places in zip(fill, found, strict=True))


def where(condition: ArrayLike, x: ArrayLike | None = None, y: ArrayLike | None = None, /, *,
          size: int | None = None, fill_value: Any = None) -> Any:
    """`x` where the condition holds, else `y`; with the condition alone, the places it holds.

    >>> where(np.array([True, False]), 1.5, np.array([2.0, 3.0]))
    Array([1.5, 3. ], dtype=float32)

    Raises:
      ConcretizationTypeError: for a traced condition alone, without `size`.
    """
    if x is None and y is None:
        return nonzero(as_array("where", condition), size=size, fill_value=fill_value)
    check_arraylike("where", condition, x, y)
    if size is not None or fill_value is not None:
        raise ValueError("size and fill_value arguments cannot be used in three-term where "
                         "function.")
    return choose(condition, x, y)


def flatnonzero(a: ArrayLike, *, size: int | None = None, fill_value: Any = None) -> Array:
    """The places of all elements that are not zero, in the flat array.

    >>> flatnonzero(np.array([[0, 7], [0, 5]]))
    Array([1, 3], dtype=int32)
    """
    return nonzero(ravel(a), size=size, fill_value=fill_value)[0]


def argwhere(a: ArrayLike, *, size: int | None = None, fill_value: Any = None) -> Array:
    """The places of all elements that are not zero, one row each.

    >>> argwhere(np.array([[0, 7], [0, 5]]))
    Array([[0, 1],
           [1, 1]], dtype=int32)
    """
    x = as_array("argwhere", a)
    if x.ndim == 0:
        count = nonzero(ravel(x), size=size, fill_value=fill_value)[0].size
        return lax.full((count, 0), 0, _INT)
    return stacked(nonzero(x, size=size, fill_value=fill_value), 1)


# ── Counting ─────────────────────────────────────────────────────────────────────────────────

def bincount(x: ArrayLike, weights: ArrayLike | None = None, minlength: int = 0, *,
             length: int | None = None) -> Array:
    """How often each of 0, 1, 2, … occurs; with weights, the sum of the weights of each.

    >>> bincount(np.array([1, 1, 3]))
    Array([0, 2, 0, 1], dtype=int32)

    Args:
      length: the size of the result; needed where `x` is traced. Larger numbers are dropped.
    """
    x = as_array("bincount", x)
    if not dtypes.issubdtype(x.dtype, np.integer) and x.dtype != bool:
        raise TypeError(f"x argument to bincount must have an integer type; got {x.dtype}")
    if x.ndim != 1:
        raise ValueError("only 1-dimensional input supported.")
    if length is None:
        known = static_value(x, "The error occurred because of argument 'x' of jnp.bincount. "
                             "To avoid this error, pass a static `length` argument.")
        length = max(operator.index(minlength), int(known.max()) + 1 if known.size else 0)
    if weights is None:
        weights = convert(1, dtypes.default_int_dtype())
    elif np.shape(weights) != np.shape(x):
        raise ValueError("shape of weights must match shape of x.")
    weights = as_array("bincount", weights)
    counts: Any = lax.full((operator.index(length),), 0, weights.dtype)
    return counts.at[lax.max(convert(x, _INT), convert(0, _INT))].add(weights, mode="drop")


def digitize(x: ArrayLike, bins: ArrayLike, right: bool = False) -> Array:
    """The number of the bin each value falls into; 0 is below the first edge.

    >>> digitize(np.array([0.5, 2.5]), np.array([0.0, 1.0, 2.0]))
    Array([1, 3], dtype=int32)
    """
    bins = as_array("digitize", bins)
    if bins.ndim != 1:
        raise ValueError(f"digitize: bins must be a 1-dimensional array; got {bins=}")
    if bins.size == 0:
        return lax.full_like(as_array("digitize", x), 0, dtype=_INT)
    side = "left" if right else "right"
    rising = searchsorted(bins, x, side)
    falling = bins.size - searchsorted(lax.rev(bins, (0,)), x, side)
    first, last = (lax.index_in_dim(bins, i, 0, keepdims=False) for i in (0, -1))
    return choose(last >= first, rising, falling)


def histogram_bin_edges(a: ArrayLike, bins: Any = 10, range: Any = None,
                        weights: None = None) -> Array:
    """The edges of bins of equal width over the values, or over the range given.

    >>> histogram_bin_edges(np.array([0., 4.]), 2)
    Array([0., 2., 4.], dtype=float32)
    """
    a = as_array("histogram_bin_edges", a)
    a = convert(a, dtypes.canonicalize_dtype(dtypes.to_inexact_dtype(a.dtype)))
    if np.ndim(bins) == 1:
        return convert(as_array("histogram_bin_edges", bins), a.dtype)
    low, high = (reductions.min(a), reductions.max(a)) if range is None else (
        convert(end, a.dtype) for end in range)
    flat = low == high  # all values equal: one unit around them
    low = choose(flat, low - 0.5, low)
    high = choose(flat, high + 0.5, high)
    return linspace(low, high, operator.index(bins) + 1, dtype=a.dtype)


def histogram(a: ArrayLike, bins: Any = 10, range: Any = None, weights: ArrayLike | None = None,
              density: bool | None = None) -> tuple[Array, Array]:
    """How many values fall into each bin, and the edges of the bins.

    >>> histogram(np.array([0., 1., 1., 4.]), 2)[0]
    Array([3., 1.], dtype=float32)
    """
    a = ravel(as_array("histogram", a))
    edges = histogram_bin_edges(a, bins, range)
    a = convert(a, edges.dtype)
    weights = convert(1, a.dtype) if weights is None else ravel(weights)
    weights = lax.broadcast_in_dim(weights, a.shape, () if weights.ndim == 0 else (0,))
    place = searchsorted(edges, a, side="right")
    last = lax.index_in_dim(edges, -1, 0, keepdims=False)
    place = choose(a == last, edges.size - 1, place)
    counts = bincount(place, weights, length=edges.size)
    counts = lax.slice_in_dim(counts, 1, None)
    if density:
        widths = lax.slice_in_dim(edges, 1, None) - lax.slice_in_dim(edges, 0, -1)
        counts = counts / convert(widths, counts.dtype) / reductions.sum(counts)
    return counts, edges
