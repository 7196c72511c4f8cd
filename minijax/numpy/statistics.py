"""Reductions that skip nan, running sums, and order statistics.

Stands on `reductions`.  Chapter 19, *NaNs*.
In JAX: `jax/_src/numpy/reductions.py`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import dtypes, lax
from minijax.core import Array
from minijax.numpy import reductions
from minijax.numpy.unary import isnan
from minijax.numpy.logic import logical_and
from minijax.numpy.arguments import (ArrayLike, Axes, as_array, canonical_axes, canonical_axis,
                                     convert, promote_dtypes_inexact, refuse_out, static_axes)
from minijax.numpy.selection import choose


# ── Running sums ─────────────────────────────────────────────────────────────────────────────

def _running(name: str, run: Callable[..., Any], a: ArrayLike, axis: int | None, dtype: Any,
             out: None) -> Array:
    refuse_out(name, out)
    dtype = dtypes.check_user_dtype_supported(dtype, name)
    x: Any = as_array(name, a)
    axis = static_axes(name, axis)
    if axis is None or x.ndim == 0:
        x = lax.reshape(x, (x.size,))
        axis = 0
    axis = canonical_axis(operator.index(axis), x.ndim)
    if dtype is None:
        dtype = dtypes.default_int_dtype() if x.dtype == bool else x.dtype
    return run(convert(x, dtype), axis)


def cumsum(a: ArrayLike, axis: int | None = None, dtype: Any = None, out: None = None) -> Array:
    """The running sum along an axis, or over the flat array.

    >>> cumsum(np.array([1, 2, 3]))
    Array([1, 3, 6], dtype=int32)
    """
    return _running("cumsum", lax.cumsum, a, axis, dtype, out)


def cumprod(a: ArrayLike, axis: int | None = None, dtype: Any = None, out: None = None) -> Array:
    """The running product along an axis, or over the flat array.

    >>> cumprod(np.array([1, 2, 3]))
    Array([1, 2, 6], dtype=int32)
    """
    return _running("cumprod", lax.cumprod, a, axis, dtype, out)


def nancumsum(a: ArrayLike, axis: int | None = None, dtype: Any = None,
              out: None = None) -> Array:
    """The running sum, nan counted as 0.

    >>> nancumsum(np.array([1, np.nan, 3]))
    Array([1., 1., 4.], dtype=float32)
    """
    return cumsum(_without_nan("nancumsum", a, 0), axis, dtype, out)


# ── Without nan ──────────────────────────────────────────────────────────────────────────────

def _without_nan(name: str, a: ArrayLike, instead: Any) -> Any:
    a = as_array(name, a)
    if not dtypes.issubdtype(a.dtype, np.inexact):
        return a
    return choose(isnan(a), convert(instead, a.dtype), a)


def nansum(a: ArrayLike, axis: Axes = None, dtype: Any = None, out: None = None,
           keepdims: bool = False, initial: ArrayLike | None = None,
           where: ArrayLike | None = None) -> Array:
    """The sum of what is not nan.

    >>> nansum(np.array([1, np.nan, 3]))
    Array(4., dtype=float32)
    """
    return reductions.sum(_without_nan("nansum", a, 0), axis, dtype, out, keepdims, initial,
                          where)


def nanprod(a: ArrayLike, axis: Axes = None, dtype: Any = None, out: None = None,
            keepdims: bool = False, initial: ArrayLike | None = None,
            where: ArrayLike | None = None) -> Array:
    """The product of what is not nan.

    >>> nanprod(np.array([2, np.nan, 3]))
    Array(6., dtype=float32)
    """
    return reductions.prod(_without_nan("nanprod", a, 1), axis, dtype, out, keepdims, initial,
                           where)


def nanmax(a: ArrayLike, axis: Axes = None, out: None = None, keepdims: bool = False,
           initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array:
    """The largest of what is not nan; nan where all are.

    >>> nanmax(np.array([1, np.nan, 3]))
    Array(3., dtype=float32)
    """
    return _nan_extreme("nanmax", reductions.max, -np.inf, a, axis, out, keepdims, initial,
                        where)


def nanmin(a: ArrayLike, axis: Axes = None, out: None = None, keepdims: bool = False,
           initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array:
    """The smallest of what is not nan; nan where all are.

    >>> nanmin(np.array([1, np.nan, 3]))
    Array(1., dtype=float32)
    """
    return _nan_extreme("nanmin", reductions.min, np.inf, a, axis, out, keepdims, initial, where)


def _nan_extreme(name: str, extreme: Callable[..., Array], instead: float, a: ArrayLike,
                 axis: Axes, out: None, keepdims: bool, initial: ArrayLike | None,
                 where: ArrayLike | None) -> Array:
    a = as_array(name, a)
    result = extreme(_without_nan(name, a, instead), axis, out, keepdims, initial, where)
    if not dtypes.issubdtype(a.dtype, np.inexact) or initial is not None:
        return result
    nothing = reductions.all(isnan(a), axis, keepdims=keepdims)
    return choose(nothing, np.nan, result)


def _known(a: Any, where: ArrayLike | None) -> Any:
    """Where an element takes part: it is asked for, and not nan."""
    known = ~isnan(a)
    return known if where is None else logical_and(known, where)


def nanmean(a: ArrayLike, axis: Axes = None, dtype: Any = None, out: None = None,
            keepdims: bool = False, where: ArrayLike | None = None) -> Array:
    """The mean of what is not nan.

    >>> nanmean(np.array([1, np.nan, 3]))
    Array(2., dtype=float32)
    """
    a = as_array("nanmean", a)
    if not dtypes.issubdtype(a.dtype, np.inexact):
        return reductions.mean(a, axis, dtype, out, keepdims, where=where)
    refuse_out("nanmean", out)
    dtype = dtypes.check_user_dtype_supported(dtype, "nanmean") or a.dtype
    count = reductions.sum(_known(a, where), axis, dtype, keepdims=keepdims)
    return nansum(a, axis, dtype, keepdims=keepdims, where=where) / count


def nanvar(a: ArrayLike, axis: Axes = None, dtype: Any = None, out: None = None, ddof: int = 0,
           keepdims: bool = False, where: ArrayLike | None = None) -> Array:
    """The variance of what is not nan.

    >>> nanvar(np.array([1, np.nan, 3]))
    Array(1., dtype=float32)
    """
    a = as_array("nanvar", a)
    if not dtypes.issubdtype(a.dtype, np.inexact):
        return reductions.var(a, axis, dtype, out, ddof, keepdims, where=where)
    return reductions.var(_without_nan("nanvar", a, 0), axis, dtype, out, ddof, keepdims,
                          where=_known(a, where))


def nanstd(a: ArrayLike, axis: Axes = None, dtype: Any = None, out: None = None, ddof: int = 0,
           keepdims: bool = False, where: ArrayLike | None = None) -> Array:
    """The standard deviation of what is not nan.

    >>> nanstd(np.array([1, np.nan, 3]))
    Array(1., dtype=float32)
    """
    return lax.sqrt(nanvar(a, axis, dtype, out, ddof, keepdims, where))


def nanargmax(a: ArrayLike, axis: int | None = None, out: None = None,
              keepdims: bool | None = None) -> Array:
    """Where the largest of what is not nan is; -1 where all are nan.

    >>> nanargmax(np.array([np.nan, 1]))
    Array(1, dtype=int32)
    """
    return _nan_place("nanargmax", reductions.argmax, -np.inf, a, axis, out, keepdims)


def nanargmin(a: ArrayLike, axis: int | None = None, out: None = None,
              keepdims: bool | None = None) -> Array:
    """Where the smallest of what is not nan is; -1 where all are nan.

    >>> nanargmin(np.array([np.nan, 1]))
    Array(1, dtype=int32)
    """
    return _nan_place("nanargmin", reductions.argmin, np.inf, a, axis, out, keepdims)


def _nan_place(name: str, find: Callable[..., Array], instead: float, a: ArrayLike,
               axis: int | None, out: None, keepdims: bool | None) -> Array:
    a = as_array(name, a)
    place = find(_without_nan(name, a, instead), axis, out, keepdims)
    if not dtypes.issubdtype(a.dtype, np.inexact):
        return place
    nothing = reductions.all(isnan(a), axis, keepdims=bool(keepdims))
    return choose(nothing, -1, place)


# ── Order statistics ─────────────────────────────────────────────────────────────────────────

_METHODS = ("linear", "lower", "higher", "midpoint", "nearest")


def quantile(a: ArrayLike, q: ArrayLike, axis: Axes = None, out: None = None,
             overwrite_input: bool = False, method: str = "linear",
             keepdims: bool = False) -> Array:
    """The number below which the part `q` of the elements lies; nan where there is a nan.

    >>> quantile(np.array([1., 2., 3.]), 0.25)
    Array(1.5, dtype=float32)

    Args:
      q: between 0 and 1; an array of several adds leading axes.
      method: between two elements: "linear", "lower", "higher", "midpoint" or "nearest".
    """
    refuse_out("quantile", out)
    if overwrite_input:
        raise ValueError("jnp.quantile does not support overwrite_input=True")
    if method not in _METHODS:
        raise ValueError(f"method can only be {_METHODS}; got {method!r}")
    [x] = promote_dtypes_inexact(as_array("quantile", a))
    x, q = convert(x, x.dtype), convert(as_array("quantile", q), x.dtype)
    axes = canonical_axes(static_axes("quantile", axis), x.ndim)
    rows = _flattened_last(x, axes)
    rows = choose(reductions.any(isnan(rows), -1, keepdims=True),
                  convert(np.nan, rows.dtype), rows)
    found = _interpolate(lax.sort(rows, -1), q, method)
    kept_shape = tuple(1 if d in axes else n for d, n in enumerate(x.shape))
    shape = kept_shape if keepdims else rows.shape[:-1]
    return lax.reshape(found, (*q.shape, *shape))


def _flattened_last(x: Any, axes: tuple[int, ...]) -> Any:
    """The given axes as one, at the end."""
    others = [d for d in range(x.ndim) if d not in axes]
    moved = lax.transpose(x, (*others, *axes))
    count = int(np.prod([x.shape[d] for d in axes], dtype=int))
    return lax.reshape(moved, (*(x.shape[d] for d in others), count))


def _interpolate(rows: Any, q: Any, method: str) -> Any:
    """Quantiles of sorted rows, the axes of `q` first."""
    count = rows.shape[-1]
    place = q * float(count - 1)
    low, high = lax.floor(place), lax.ceil(place)
    if method == "nearest":
        nearer_low = place - low <= 0.5
        low = high = choose(nearer_low, low, high)
    below, above = (_element(rows, each, count) for each in (low, high))
    if method in ("lower", "nearest"):
        return below
    if method == "higher":
        return above
    if method == "midpoint":
        return (below + above) * .5
    part = place - low
    part = lax.expand_dims(part, range(part.ndim, below.ndim))
    return below * (1 - part) + above * part


def _element(rows: Any, place: Any, count: int) -> Any:
    """The element at `place` of every row; the axes of `place` come first."""
    index = lax.clamp(np.int32(0), convert(place, np.dtype("int32")), np.int32(count - 1))
    taken = rows[(..., index)]
    last = range(rows.ndim - 1, taken.ndim)
    return lax.transpose(taken, (*last, *range(rows.ndim - 1)))


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
    [q] = promote_dtypes_inexact(as_array("percentile", q))
    q = lax.div(q, convert(100, q.dtype))
    return quantile(a, q, axis, out, overwrite_input, method, keepdims)
