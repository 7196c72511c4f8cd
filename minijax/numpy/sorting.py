"""Sorting, searching and order statistics: sort, argsort, lexsort, searchsorted, quantile, ….

Builds on `reductions`.  Chapter 18, *Dynamic shapes*.
In JAX: `jax/_src/numpy/sorting.py`, `reductions.py`, `lax_numpy.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import core, dtypes, lax
from minijax.core import Array, refuse
from minijax.transforms.jit import jit
from minijax.numpy import reductions, unary
from minijax.numpy.arguments import (
    Alike, ArrayLike, Axes, array_and_axis, as_arrays, broadcast_along, canonical_axes,
    canonical_axis, check_promotion, choose, convert, divided_by_constant, promote_dtypes_inexact,
    public, static_axes)
from minijax.primitives.axes import without

_INT = np.dtype("int32")


# ── Sorting ──────────────────────────────────────────────────────────────────────────────────

def _sort_operand(name: str, a: Array, axis: int | None, order: Any, kind: Any) -> tuple[Any, int]:
    refuse((kind is not None, f"'kind' argument to {name} is not supported. Use stable=True or "
            "stable=False to specify sort stability."),
           (order is not None, f"'order' argument to {name} is not supported."))
    return array_and_axis(name, a, axis)


def sort(a: ArrayLike, axis: int | None = -1, *, kind: None = None, order: None = None,
         stable: bool = True, descending: bool = False) -> Array:
    """The elements in ascending order along an axis; nan at the end.

    >>> sort(np.array([3, 1, 2]))
    Array([1, 2, 3], dtype=int32)
    """
    x, axis = _sort_operand("sort", a, axis, order, kind)
    result = lax.sort(x, axis)
    return lax.rev(result, (axis,)) if descending else result


def argsort(a: ArrayLike, axis: int | None = -1, *, kind: None = None, order: None = None,
            stable: bool = True, descending: bool = False, dtype: Any = None) -> Array:
    """The indices of the elements in ascending order; equal elements keep their order.

    >>> argsort(np.array([3, 1, 2]))
    Array([1, 2, 0], dtype=int32)
    """
    x, axis = _sort_operand("argsort", a, axis, order, kind)
    indices = lax.broadcasted_iota(dtype or dtypes.default_int_dtype(), x.shape, axis)
    if not descending:
        return lax.sort((x, indices), axis, num_keys=1)[1]
    # both reversals together keep the order of equal elements
    _, ascending = lax.sort((lax.rev(x, (axis,)), lax.rev(indices, (axis,))), axis, num_keys=1)
    return lax.rev(ascending, (axis,))


def lexsort(keys: Any, axis: int = -1) -> Array:
    """The indices in the order of the last key; ties in the order of the key before, and so on.

    >>> lexsort((np.array([1, 0, 2]), np.array([5, 5, 4])))
    Array([2, 1, 0], dtype=int32)
    """
    arrays = as_arrays("lexsort", *keys)
    if not arrays:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    if len({x.shape for x in arrays}) > 1:
        raise ValueError("all keys need to be the same shape")
    if not arrays[0].ndim:
        return convert(0, dtypes.default_int_dtype())
    axis = canonical_axis(axis, arrays[0].ndim)
    indices = lax.broadcasted_iota(dtypes.default_int_dtype(), arrays[0].shape, axis)
    return lax.sort((*arrays[::-1], indices), axis, num_keys=len(arrays))[-1]


_COUNTING = ("compare_all", "sort")


def searchsorted(a: Alike, v: Alike, side: str = "left", sorter: ArrayLike | None = None,
                 *, method: str = "scan") -> Array:
    """The index at which each value can be inserted into a sorted array.

    >>> searchsorted(np.array([1, 3, 5]), np.array([0, 3, 9]))
    Array([0, 1, 3], dtype=int32)

    Args:
      side: before ("left") or after ("right") equal elements.
      method: "scan" and "scan_unrolled" search, "sort" and "compare_all" count what is less, also
        where the array is not sorted.
    """
    # JAX: a scan, a sort or a comparison with all; here an unrolled binary search.
    refuse((side not in ("left", "right"), f"invalid argument {side=}, expected 'left' or 'right'"),
           (method not in (*_COUNTING, "scan", "scan_unrolled"), f"invalid argument {method=}, "
            "expected one of ['compare_all', 'scan', 'scan_unrolled', 'sort']"),
           (a.ndim != 1, "a should be 1-dimensional"), error=ValueError)
    a = a if sorter is None else a[sorter]
    a = lax.sort(a) if method in _COUNTING else a
    index = _INT
    if a.size > np.iinfo(index).max:
        index = dtypes.check_user_dtype_supported(np.int64, "searchsorted")
        np.asarray(a.size, index)  # says that there are too few bits
    return _binary_search(a, v, side=side, index=index)


@jit(static_argnames=("side", "index"), inline=True)
def _binary_search(a: Array, v: Array, side: str, index: Any) -> Array:
    low, high = (lax.full(v.shape, n, index) for n in (0, a.size))
    for _ in range(a.size.bit_length()):
        middle = lax.shift_right_logical(low + high, convert(1, index))
        element = a.at[middle].get(mode="clip", wrap_negative_indices=False)
        is_left = ~_before(element, v) if side == "left" else _before(v, element)
        is_left = is_left | (middle >= high)
        low, high = choose(is_left, low, middle + 1), choose(is_left, middle, high)
    return high


def _before(x: Any, y: Any) -> Any:
    """Whether x precedes y: nan comes last, complex numbers are ordered by real parts first."""
    if x.dtype.kind == "c":
        (x, *rest), (y, *others) = ((lax.real(z), lax.imag(z)) for z in (x, y))
        return _before(x, y) | ~_before(y, x) & _before(*rest, *others)
    if not dtypes.issubdtype(x.dtype, np.inexact):
        return x < y
    return (x < y) | unary.isnan(y) & ~unary.isnan(x)


# ── Partial sorts ────────────────────────────────────────────────────────────────────────────

def partition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """The elements with the k-th at its sorted position, and none before it larger.

    As in JAX, those up to it ascend, and those after it descend.

    >>> partition(np.array([5, 3, 9, 7]), 1)
    Array([3, 5, 9, 7], dtype=int32)
    """
    first, rest, axis = _partitioned("partition", a, kth, axis, sort)
    return lax.concatenate([first, lax.rev(rest, (axis,))], axis)


def argpartition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """The indices of the elements so that the k-th is where sorting puts it, none before it larger.

    As in JAX, elements up to it ascend, and those after it are in the order in which they were.

    >>> argpartition(np.array([5, 3, 9, 7]), 1)
    Array([1, 0, 2, 3], dtype=int32)
    """
    first, rest, axis = _partitioned("argpartition", a, kth, axis, argsort)
    # JAX: int32 even with 64 bits enabled, as of `top_k`
    return convert(lax.concatenate([first, sort(rest, axis)], axis), np.dtype(np.int32))


def _partitioned(name: str, a: Any, kth: int, axis: int, order: Callable
                 ) -> tuple[Array, Array, int]:
    """The sorted array up to the k-th, the rest, and the axis."""
    # JAX: `top_k` from both ends; a sorted array is a valid partition, too
    if a.dtype.kind == "c":
        raise NotImplementedError(f"jnp.{name} for complex dtype is not implemented.")
    axis = canonical_axis(axis, a.ndim)
    in_order, end = order(a, axis), canonical_axis(kth, a.shape[axis]) + 1
    return (lax.slice_in_dim(in_order, 0, end, axis=axis),
            lax.slice_in_dim(in_order, end, None, axis=axis), axis)


def sort_complex(a: ArrayLike) -> Array:
    """The elements in ascending order along the last axis, as complex numbers.

    >>> sort_complex(np.array([2., 1.]))
    Array([1.+0.j, 2.+0.j], dtype=complex64)
    """
    return convert(sort(a, 0 if a.ndim == 0 else -1), dtypes.to_complex_dtype(a.dtype))


# ── Order statistics ─────────────────────────────────────────────────────────────────────────

_METHODS = ("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf")


def quantile(a: ArrayLike, q: ArrayLike, axis: Axes = None, out: None = None,
             overwrite_input: bool = False, method: str = "linear",
             keepdims: bool = False, *, weights: ArrayLike | None = None) -> Array:
    """The number below which the part `q` of the elements lies; nan if there is one.

    >>> quantile(np.array([1., 2., 3.]), 0.25)
    Array(1.5, dtype=float32)

    Args:
      q: between 0 and 1; an array of several adds leading axes.
      method: between two elements: "linear", "lower", "higher", "midpoint" or "nearest"; or
        "inverted_cdf", the first element up to which there is at least that part.
      weights: of the elements, or of the places along the one axis; for "inverted_cdf".
    """
    return _quantile("quantile", a, q, axis, overwrite_input, method, keepdims, weights)


def nanquantile(a: ArrayLike, q: ArrayLike, axis: Axes = None, out: None = None,
                overwrite_input: bool = False, method: str = "linear",
                keepdims: bool = False, *, weights: ArrayLike | None = None) -> Array:
    """The number below which the part `q` of the non-nan elements lies.

    >>> nanquantile(np.array([1., np.nan, 3.]), 0.5)
    Array(2., dtype=float32)
    """
    return _quantile("nanquantile", a, q, axis, overwrite_input, method, keepdims, weights)


def _quantile(name: str, a: Any, q: Any, axis: Axes, overwrite_input: bool, method: str,
              keepdims: bool, weights: Any) -> Array:
    """`quantile`, and `nanquantile`, which ignores nan."""
    refuse((overwrite_input, f"jax.numpy.{name} does not support "
            "overwrite_input=True or out != None"),
           (method not in _METHODS, "method can only be 'linear', 'lower', 'higher', "
            "'midpoint', 'nearest' or 'inverted_cdf'"), error=ValueError)
    if weights is not None and method != "inverted_cdf":
        raise NotImplementedError(f"{method} doesn't support weights. Only method 'inverted_cdf' "
                                  "supports weights.")
    refuse((np.ndim(q) > 1, f"q must be have rank <= 1, got shape {np.shape(q)}"),
           (any(core.get_aval(each).dtype.kind == "c" for each in (a, q)), f"{name} does not "
            "support complex input, as the operation is poorly defined."), error=ValueError)
    [x] = promote_dtypes_inexact(a)
    check_promotion(x, weights)
    x, q = convert(x, x.dtype), convert(q, x.dtype)
    axes = canonical_axes(static_axes(name, axis), x.ndim)
    rows = _axes_last(x, axes)
    is_nan = unary.isnan(rows)
    if name == "quantile":
        rows = choose(reductions.any(is_nan, -1, keepdims=True), convert(np.nan, rows.dtype), rows)
    if method == "inverted_cdf":
        quantiles = _weighted_quantiles(rows, q, _axes_last(_weights(weights, x, axis, axes), axes),
                                        is_nan if name == "nanquantile" else None)
    else:
        count: Any = (float(rows.shape[-1]) if name == "quantile" else
                      reductions.sum(~is_nan, -1, rows.dtype))
        quantiles = _interpolated_quantiles(lax.sort(rows, -1), q, method, count)
    shape = [1 if d in axes else n for d, n in enumerate(x.shape)]
    return lax.reshape(quantiles, (*q.shape, *(shape if keepdims else rows.shape[:-1])))


def _axes_last(x: Any, axes: tuple[int, ...]) -> Any:
    """These axes merged into the last one."""
    rows = lax.transpose(x, (*without(range(x.ndim), axes), *axes))
    return lax.reshape(rows, (*without(x.shape, axes), math.prod(x.shape[d] for d in axes)))


def _weights(weights: Any, x: Any, axis: Axes, axes: tuple[int, ...]) -> Any:
    """A weight for each element."""
    if weights is None:
        return lax.full_like(x, 1)
    [weights] = promote_dtypes_inexact(weights)
    if weights.shape != x.shape:
        refuse((axis is None, "Weights shape must match 'a' shape when axis is None."),
               (weights.shape != tuple(x.shape[d] for d in axes), "Weights shape must match the "
                "shape of 'a' along the specified axis."), error=ValueError)
        weights = broadcast_along(weights, x.shape, axes)
    return weights


def _weighted_quantiles(rows: Any, q: Any, weights: Any, ignored: Any) -> Any:
    """In each row the first element whose share of the cumulative weight is at least q."""
    weights = weights if ignored is None else choose(ignored, 0, weights)
    rows, weights = lax.sort((rows, weights), -1, num_keys=1)
    reached: Any = lax.cumsum(weights, rows.ndim - 1)
    threshold = lax.reshape(q, (*q.shape, *(1,) * rows.ndim)) * reached[..., -1:]
    position = reductions.sum((reached < threshold) | (reached == 0) & (weights == 0), -1)
    position = lax.min(position, convert(rows.shape[-1] - 1, position.dtype))
    return _gather_rows(rows, position, q.ndim)


def _gather_rows(rows: Any, indices: Any, leading: int) -> Any:
    """One element of each row, for each of the indices along the leading axes."""
    flat = lax.reshape(indices, (math.prod(indices.shape[:leading]), *rows.shape[:-1]))
    grid = [lax.broadcasted_iota(_INT, flat.shape, d + 1) for d in range(rows.ndim - 1)]
    return lax.reshape(rows[(*grid, flat)], indices.shape)


def _interpolated_quantiles(rows: Any, q: Any, method: str, count: Any) -> Any:
    """Quantiles of sorted rows, of which `count` elements are not nan; the axes of `q` first."""
    others = rows.ndim - 1
    is_static = isinstance(count, float)

    def element(position: Any) -> Any:
        index = lax.clamp(np.int32(0), convert(position, _INT), np.int32(rows.shape[-1] - 1))
        if not is_static:
            return _gather_rows(rows, index, q.ndim)
        taken = rows[..., index]
        return lax.transpose(taken, (*range(others, taken.ndim), *range(others)))
    position = (q if is_static else lax.reshape(q, (*q.shape, *(1,) * others))) * (count - 1)
    low, high = lax.floor(position), lax.ceil(position)
    low = choose(position - low <= 0.5, low, high) if method == "nearest" else low
    if method in ("lower", "nearest"):
        return element(low)
    if method == "higher":
        return element(high)
    above, below = element(high), element(low)
    if method == "midpoint":
        return (below + above) * .5
    part = position - low
    part = lax.expand_dims(part, range(part.ndim, below.ndim))
    return below * (1 - part) + above * part


def median(a: ArrayLike, axis: Axes = None, out: None = None, overwrite_input: bool = False,
           keepdims: bool = False) -> Array:
    """The element in the middle, or the mean of the two in the middle.

    >>> median(np.array([5., 1., 2.]))
    Array(2., dtype=float32)
    """
    return quantile(a, 0.5, axis, out, overwrite_input, "midpoint", keepdims)


def nanmedian(a: ArrayLike, axis: Axes = None, out: None = None, overwrite_input: bool = False,
              keepdims: bool = False) -> Array:
    """The median of the non-nan elements.

    >>> nanmedian(np.array([5., np.nan, 2.]))
    Array(3.5, dtype=float32)
    """
    return nanquantile(a, 0.5, axis, out, overwrite_input, "midpoint", keepdims)


def percentile(a: ArrayLike, q: ArrayLike, axis: Axes = None, out: None = None,
               overwrite_input: bool = False, method: str = "linear",
               keepdims: bool = False, *, weights: ArrayLike | None = None) -> Array:
    """The number below which `q` per cent of the elements lie.

    >>> percentile(np.array([1., 2., 3.]), 25)
    Array(1.5, dtype=float32)
    """
    return quantile(a, _from_percent(q), axis, out, overwrite_input, method, keepdims,
                    weights=weights)


def nanpercentile(a: ArrayLike, q: ArrayLike, axis: Axes = None, out: None = None,
                  overwrite_input: bool = False, method: str = "linear",
                  keepdims: bool = False, *, weights: ArrayLike | None = None) -> Array:
    """The number below which `q` per cent of the non-nan elements lie.

    >>> nanpercentile(np.array([1., np.nan, 3.]), 50)
    Array(2., dtype=float32)
    """
    return nanquantile(a, _from_percent(q), axis, out, overwrite_input, method, keepdims,
                       weights=weights)


def _from_percent(q: Any) -> Any:
    [q] = promote_dtypes_inexact(q)
    return divided_by_constant(q, 100)


public(globals())
