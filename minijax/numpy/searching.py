"""Selecting, finding, counting and taking elements: where, select, nonzero, bincount, take, ….

Builds on `sorting`, `indexing`.  Chapter 18, *Dynamic shapes*: sizes that depend on values.
In JAX: `jax/_src/numpy/lax_numpy.py`, `indexing.py`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import core, dtypes, lax
from minijax.core import Array, refuse, stood_for
from minijax.numpy import creation, reductions, sorting
from minijax.numpy.arguments import (ArrayLike, array_and_axis, as_array, broadcast_to_shape,
                                     check_arraylike, check_promotion, choose, convert,
                                     promote_dtypes, promote_dtypes_inexact, public, static_index,
                                     static_value)
from minijax.numpy.index_plan import Entry, signed_indices
from minijax.numpy.shaping import ravel
from minijax.numpy.vectorization import vectorize
from minijax.primitives import axes, gather_scatter

_INT = np.dtype("int32")


# ── Selection by conditions ──────────────────────────────────────────────────────────────────

def where(condition: ArrayLike, x: ArrayLike | None = None, y: ArrayLike | None = None, /, *,
          size: int | None = None, fill_value: Any = None) -> Any:
    """`x` where the condition holds, else `y`; with the condition alone, its true indices.

    >>> where(np.array([True, False]), 1.5, np.array([2.0, 3.0]))
    Array([1.5, 3. ], dtype=float32)

    Raises:
      ConcretizationTypeError: for a traced condition alone, without `size`.
    """
    if x is None and y is None:
        return nonzero(condition, size=size, fill_value=fill_value)
    check_arraylike("where", condition, x, y)
    if size is not None or fill_value is not None:
        raise ValueError("size and fill_value arguments cannot be used in three-term where "
                         "function.")
    return choose(*map(stood_for, (condition, x, y)))


def select(condlist: Sequence[ArrayLike], choicelist: Sequence[ArrayLike],
           default: ArrayLike = 0) -> Array:
    """At each place, the choice whose condition is the first to hold.

    >>> x = np.arange(4)
    >>> select([x < 1, x > 2], [x - 10, x + 10], default=5)
    Array([-10,   5,   5,  13], dtype=int32)
    """
    refuse((len(condlist) != len(choicelist), "condlist must have length equal to choicelist "
            f"({len(condlist)} vs {len(choicelist)})"),
           (not len(condlist), "condlist must be non-empty"), error=ValueError)
    check_arraylike("select", *condlist, *choicelist, default)
    return _select_first_true([*map(stood_for, condlist)],
                              promote_dtypes(*map(stood_for, [*choicelist, default])))


def piecewise(x: ArrayLike, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Array:
    """A function given in pieces: where a condition holds, the function that belongs to it.

    Each function takes one element, and `args` and `kw`.  Where several conditions hold, the last
    counts; one function more than conditions is the default, which otherwise is zero.  A function
    may be a number.

    >>> x = np.array([-2.0, 3.0])
    >>> piecewise(x, [x < 0, x >= 0], [lambda x: -x, 1])
    Array([2., 1.], dtype=float32)
    """
    # JAX: a switch for each element; here all functions run, and `where` chooses.
    condlist, functions = [creation.asarray(c, bool) for c in condlist], list(funclist)
    if len(functions) not in (len(condlist), len(condlist) + 1):
        raise ValueError(f"with {len(condlist)} condition(s), either {len(condlist)} or "
                         f"{len(condlist) + 1} functions are expected; got {len(functions)}")
    pieces = functions if len(functions) > len(condlist) else [*functions, 0]
    values = [convert(vectorize(lambda v, f=piece: f(v, *args, **kw))(x) if callable(piece)
                      else piece, x.dtype) for piece in pieces]
    values = [broadcast_to_shape(value, x.shape) for value in values]
    return _select_first_true(condlist[::-1], [*values[-2::-1], values[-1]])


def _select_first_true(conditions: Sequence[Any], choices: list[Any]) -> Any:
    """The choice of the first condition that holds; the last choice where none does."""
    *choices, result = choices
    for condition, choice in reversed(list(zip(conditions, choices, strict=True))):
        result = choose(condition, choice, result)
    return result


# ── Indices of elements ──────────────────────────────────────────────────────────────────────

_STATIC_SIZE = ("The size argument of jnp.nonzero must be statically specified to use jnp.nonzero "
                "within JAX transformations.")


def nonzero(a: ArrayLike, *, size: int | None = None, fill_value: Any = None) -> tuple[Array, ...]:
    """The indices of all elements that are not zero, one array for each axis.

    >>> nonzero(np.array([0, 7, 0, 5]))
    (Array([1, 3], dtype=int32),)

    Args:
      size: the static number of indices, for traced arrays.
      fill_value: the padding where there are fewer; 0 by default.

    Raises:
      ConcretizationTypeError: when the array is traced and `size` is not given.
    """
    if a.ndim == 0:
        raise ValueError("Calling nonzero on 0d arrays is not allowed. Use "
                         "jnp.atleast_1d(scalar).nonzero() instead.")
    if size is None:
        indices = np.nonzero(static_value(a, f"The error arose in jnp.nonzero.\n{_STATIC_SIZE}"))
        return tuple(creation.array(each, dtype=dtypes.default_int_dtype()) for each in indices)
    return _nonzero_of_size(a, static_index(size, _STATIC_SIZE), fill_value)


def _nonzero_of_size(x: Any, size: int, fill_value: Any) -> tuple[Array, ...]:
    number = dtypes.default_int_dtype()
    fill_value = 0 if fill_value is None else fill_value
    fill = fill_value if isinstance(fill_value, tuple) else (fill_value,) * x.ndim
    if x.size == 0 or size == 0:  # as in JAX, zeros whatever `fill_value` is
        return tuple(lax.full((size,), 0, number) for _ in fill)
    mask = convert(ravel(x != 0 if x.dtype != bool else x), number)
    # the place of the i-th is the number of places that have seen at most i
    seen = lax.cumsum(mask, 0)
    ended: Any = lax.full((size,), 0, number)
    flat = lax.cumsum(ended.at[seen].add(1, mode="drop"), 0)
    missing = lax.iota(number, size) >= reductions.sum(mask)
    strides = [math.prod(x.shape[d + 1:]) for d in range(x.ndim)]
    indices = [lax.rem(lax.div(flat, convert(stride, number)), convert(n, number))
               for stride, n in zip(strides, x.shape, strict=True)]
    return tuple(choose(missing, as_array("nonzero", value), places)
                 for value, places in zip(fill, indices, strict=True))


def flatnonzero(a: ArrayLike, *, size: int | None = None, fill_value: Any = None) -> Array:
    """The flat indices of all elements that are not zero.

    >>> flatnonzero(np.array([[0, 7], [0, 5]]))
    Array([1, 3], dtype=int32)
    """
    return nonzero(ravel(a), size=size, fill_value=fill_value)[0]


def argwhere(a: ArrayLike, *, size: int | None = None, fill_value: Any = None) -> Array:
    """The indices of all elements that are not zero, one row each.

    >>> argwhere(np.array([[0, 7], [0, 5]]))
    Array([[0, 1],
           [1, 1]], dtype=int32)
    """
    if a.ndim == 0:
        return lax.full((flatnonzero(a, size=size, fill_value=fill_value).size, 0), 0,
                        dtypes.default_int_dtype())
    return lax.stack(nonzero(a, size=size, fill_value=fill_value), 1)


# ── Counting ─────────────────────────────────────────────────────────────────────────────────

def bincount(x: ArrayLike, weights: ArrayLike | None = None, minlength: int = 0, *,
             length: int | None = None) -> Array:
    """How often each of 0, 1, 2, … occurs; with weights, the sum of the weights of each.

    >>> bincount(np.array([1, 1, 3]))
    Array([0, 2, 0, 1], dtype=int32)

    Args:
      length: the size of the result; needed where `x` is traced. Larger numbers are dropped.
    """
    if dtypes.kind(x.dtype) not in "biu":
        raise TypeError(f"x argument to bincount must have an integer type; got {x.dtype}")
    if x.ndim != 1:
        raise ValueError("only 1-dimensional input supported.")
    context = "The error occurred because of argument '{}' of jnp.bincount."
    least = static_index(minlength, context.format("minlength"))
    if length is None:
        values = static_value(x, context.format("x") + " To avoid this error, pass a static "
                              "`length` argument.")
        length = max(least, int(values.max()) + 1 if values.size else 0)
    if weights is None:
        weights = convert(1, dtypes.default_int_dtype())
    elif np.shape(weights) != np.shape(x):
        raise ValueError("shape of weights must match shape of x.")
    weights = as_array("bincount", weights)
    length = static_index(length, context.format("length"))
    counts: Any = lax.full((length,), 0, weights.dtype)
    return counts.at[lax.max(convert(x, _INT), convert(0, _INT))].add(weights, mode="drop")


def digitize(x: ArrayLike, bins: ArrayLike, right: bool = False, *, method: str | None = None
             ) -> Array:
    """The number of the bin each value falls into; 0 is below the first edge.

    >>> digitize(np.array([0.5, 2.5]), np.array([0.0, 1.0, 2.0]))
    Array([1, 3], dtype=int32)
    """
    if bins.ndim != 1:
        raise ValueError(f"digitize: bins must be a 1-dimensional array; got bins={bins!r}")
    if bins.size == 0:
        return lax.full_like(x, 0, dtype=_INT)
    search = functools.partial(sorting.searchsorted, side="left" if right else "right",
                               method=method or "scan")
    check_promotion(x, bins)
    return choose(bins[-1] >= bins[0], search(bins, x), bins.size - search(lax.rev(bins, (0,)), x))


def histogram_bin_edges(a: ArrayLike, bins: Any = 10, range: Any = None,
                        weights: None = None) -> Array:
    """The edges of bins of equal width over the values, or over the range given.

    >>> histogram_bin_edges(np.array([0., 4.]), 2)
    Array([0., 2., 4.], dtype=float32)
    """
    if isinstance(bins, str):
        raise NotImplementedError("string values for `bins` not implemented.")
    a = convert(a, dtypes.canonicalize_dtype(dtypes.to_inexact_dtype(a.dtype)))
    if np.ndim(bins) == 1:
        return convert(as_array("histogram_bin_edges", bins), a.dtype)
    if range is not None and (range := creation.array(range, a.dtype)).shape != (2,):
        raise ValueError(f"`range` must be either None or a sequence of scalars, got {range}")
    low, high = (reductions.min(a), reductions.max(a)) if range is None else range
    flat = low == high  # equal values get an interval of length one
    low, high = choose(flat, low - 0.5, low), choose(flat, high + 0.5, high)
    count = static_index(bins, "bins argument of histogram_bin_edges")
    return creation.linspace(low, high, count + 1, dtype=a.dtype)


def histogram(a: ArrayLike, bins: Any = 10, range: Any = None, weights: ArrayLike | None = None,
              density: bool | None = None) -> tuple[Array, Array]:
    """How many values fall into each bin, and the edges of the bins.

    >>> histogram(np.array([0., 1., 1., 4.]), 2)[0]
    Array([3., 1.], dtype=float32)
    """
    if weights is not None and np.shape(a) != np.shape(weights):
        raise ValueError("weights should have the same shape as a.")
    weights = lax.full_like(a, 1) if weights is None else weights
    a, weights = map(ravel, promote_dtypes_inexact(a, weights))
    edges: Any = histogram_bin_edges(a, bins, range)
    counts: Any = bincount(_bin_of(a, edges), weights, length=edges.size)[1:]
    if density:
        counts = counts / convert(edges[1:] - edges[:-1], counts.dtype) / reductions.sum(counts)
    return counts, edges


def _bin_of(x: Any, edges: Any) -> Any:
    """The number of edges before and at x: of the last edge one less, as it belongs to its bin."""
    return choose(x == edges[-1], edges.size - 1, sorting.searchsorted(edges, x, side="right"))


def histogram2d(x: ArrayLike, y: ArrayLike, bins: Any = 10, range: Any = None,
                weights: ArrayLike | None = None, density: bool | None = None
                ) -> tuple[Array, Array, Array]:
    """How many points (x, y) fall into each bin, and the edges of the bins along both axes.

    >>> histogram2d(np.array([0., 2.]), np.array([0., 2.]), 2)[0].tolist()
    [[1, 0], [0, 1]]

    Args:
      bins: how many, or their edges; a pair where they differ.
    """
    if (isinstance(bins, Sequence) or getattr(bins, "ndim", False)) and len(bins) not in (1, 2):
        bins = [creation.asarray(bins)] * 2
    counts, (x_edges, y_edges) = histogramdd(lax.stack(promote_dtypes(x, y), 1), bins, range,
                                             weights, density)
    return counts, x_edges, y_edges


def histogramdd(sample: ArrayLike, bins: Any = 10, range: Any = None,
                weights: ArrayLike | None = None, density: bool | None = None
                ) -> tuple[Array, list[Array]]:
    """How many points, the rows of `sample`, fall into each bin, and the edges along each axis.

    >>> histogramdd(np.array([[0., 0.], [2., 2.]]), 2)[0].tolist()
    [[1, 0], [0, 1]]
    """
    if weights is not None:
        if np.shape(weights) != np.shape(sample)[:1]:
            raise ValueError("should have one weight for each sample.")
        sample, weights = promote_dtypes_inexact(sample, weights)
    size, rank = sample.shape
    if range is not None and (
            len(range) != rank or any(r is not None and np.shape(r)[0] != 2 for r in range)):
        raise ValueError(f"For sample.shape={sample.shape}, range must be a sequence of {rank} "
                         f"pairs or Nones; got {range=}")
    bins = [bins] * rank if not isinstance(bins, Sequence) and np.ndim(bins) == 0 else bins
    if len(bins) != rank:
        raise ValueError("should be a bin for each dimension.")
    flat_bin: Any = convert(0, _INT)
    edges: list[Any] = []
    for d, x in enumerate(lax.unstack(sample, 1)):
        edges.append(histogram_bin_edges(x, bins[d], None if range is None else range[d]))
        # with a bin at each end for values out of range
        flat_bin = flat_bin * (edges[d].size + 1) + _bin_of(convert(x, edges[d].dtype), edges[d])
    shape = [each.size + 1 for each in edges]
    counts: Any = lax.reshape(bincount(flat_bin, weights, length=math.prod(shape)), shape)
    counts = counts[(slice(1, -1),) * rank]
    if density:
        counts = convert(counts, edges[0].dtype)
        counts = counts / reductions.sum(counts)
        for d, each in enumerate(edges):
            counts = counts / lax.broadcast_in_dim(each[1:] - each[:-1], counts.shape, (d,))
    return counts, edges


# ── Taking ───────────────────────────────────────────────────────────────────────────────────

def take(a: ArrayLike, indices: ArrayLike, axis: int | None = None, out: None = None,
         mode: str | None = None, unique_indices: bool = False, indices_are_sorted: bool = False,
         fill_value: Any = None) -> Array:
    """The elements at these flat indices, or the slices along an axis.

    >>> take(np.array([5., 6., 7.]), np.array([2, 0, 9]))
    Array([ 7.,  5., nan], dtype=float32)

    Args:
      mode: the result for indices out of bounds: with "fill", the default, nan or the smallest
        integer; "clip" moves it inside, also from below 0, and "wrap" around.

    Raises:
      ValueError: when the indices are not integers; booleans count as such, but for "clip".
      IndexError: when the axis is empty, and the indices are not.
    """
    kinds = "iu" if mode == "clip" else "biu"  # in JAX, "clip" takes no booleans
    if dtypes.kind(indices.dtype) not in kinds:
        raise ValueError("indices must have an integer type")
    indices = convert(indices, _INT) if indices.dtype == bool else indices
    x, axis = array_and_axis("take", a, axis)
    if mode == "raise":
        raise NotImplementedError("The 'raise' mode to jnp.take is not supported.")
    if mode not in (None, "fill", "clip", "wrap"):
        raise ValueError(f"Invalid mode '{mode}' for np.take")
    if x.shape[axis] == 0:
        if indices.size:
            raise IndexError("Cannot do a non-empty jnp.take() from an empty axis.")
        return x  # as in JAX; NumPy's result has the axes of the indices
    indices = indices % x.shape[axis] if mode == "wrap" else indices
    if mode is None:
        core.base_trace.notify("index", "take", x.shape, [(indices, axis, 1)])
    return x.at[(slice(None),) * axis + (indices,)].get(
        mode="clip" if mode == "clip" else "fill", fill_value=fill_value,
        unique_indices=unique_indices, indices_are_sorted=indices_are_sorted,
        wrap_negative_indices=mode != "clip")


def take_along_axis(arr: ArrayLike, indices: ArrayLike, axis: int | None = -1,
                    mode: str | lax.GatherScatterMode | None = None, fill_value: Any = None, *,
                    wrap_negative_indices: bool | None = None) -> Array:
    """The elements at indices along an axis, row by row.

    Negative indices count from the end, unless the mode is "promise_in_bounds".

    >>> take_along_axis(np.array([[1, 2], [3, 4]]), np.array([[1], [0]]), axis=1)
    Array([[2],
           [3]], dtype=int32)
    """
    if dtypes.kind(indices.dtype) not in "iu":
        raise TypeError("take_along_axis indices must be of integer type, "
                        f"got {indices.dtype.name}")
    refuse((axis is None and indices.ndim != 1, "take_along_axis indices must be 1D if axis=None, "
            f"got shape {indices.shape}"),
           (axis is not None and arr.ndim != indices.ndim, "indices and arr must have the same "
            f"number of dimensions; {indices.ndim} vs. {arr.ndim}"), error=ValueError)
    x, axis = array_and_axis("take_along_axis", arr, axis)
    if mode is None:
        core.base_trace.notify("index", "take", x.shape, [(indices, axis, 1)])
    rows = lax.broadcast_shapes(*(axes.replaced(each.shape, axis, 1) for each in (x, indices)))
    if x.shape[axis] == 0:
        return lax.full(axes.replaced(rows, axis, indices.shape[axis]), 0, x.dtype)
    if mode == "one_hot":  # where indices out of bounds select nothing
        mode, fill_value = "fill", 0
    wrap = mode != "promise_in_bounds" if wrap_negative_indices is None else wrap_negative_indices
    indices = signed_indices(Entry("array", indices, axis, x.shape[axis]), wrap)
    x, indices = (broadcast_to_shape(each, axes.replaced(rows, axis, each.shape[axis]))
                 for each in (x, indices))
    return gather_scatter.take_along_axis(
        x, indices, axis, lax.GatherScatterMode.from_any(mode or "fill"), fill_value)


def compress(condition: ArrayLike, a: ArrayLike, axis: int | None = None, *,
             size: int | None = None, fill_value: ArrayLike = 0, out: None = None) -> Array:
    """The slices along an axis whose condition holds.

    >>> compress(np.array([True, False, True]), np.array([5, 6, 7]))
    Array([5, 7], dtype=int32)
    """
    x, axis = array_and_axis("compress", a, axis)
    return _compress(condition, x, axis, size, fill_value)


def _compress(condition: Any, x: Any, axis: int, size: int | None, fill_value: ArrayLike) -> Array:
    """The slices whose condition holds; a concrete condition is checked to be in bounds."""
    most = min(x.shape[axis], condition.size)
    refuse((condition.ndim != 1, "condition must be a 1D array"),
           (size is not None and not 0 <= size <= most,
            "size must be positive and not greater than the size of the array axis; "
            f"got {size=} for a.shape[axis]={most}"), error=ValueError)
    [indices] = nonzero(condition, size=size, fill_value=x.shape[axis])
    x = x if size is None else convert(x, x.dtype)  # with a size, the result is never weak
    if size is None and np.any(static_value(indices, "") >= x.shape[axis]):
        raise ValueError("condition contains entries that are out of bounds")
    return take(x, indices, axis, mode="fill", fill_value=fill_value)


def extract(condition: ArrayLike, arr: ArrayLike, *, size: int | None = None,
            fill_value: ArrayLike = 0) -> Array:
    """The elements whose condition holds, flat.

    >>> extract(np.array([True, False]), np.array([5, 6]))
    Array([5], dtype=int32)
    """
    return _compress(ravel(condition), ravel(arr), 0, size, fill_value)


public(globals())
