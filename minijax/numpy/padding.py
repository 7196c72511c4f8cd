"""Margins around arrays: of a constant, of the array's own elements, of what a function writes.

Stands on `sorting`, `vectorize`.  Chapter 13, *In-place updates*.
In JAX: `jax/_src/numpy/lax_numpy.py` (`pad`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import lax
from minijax.core import Array
from minijax.numpy import reductions, sorting
from minijax.numpy.arguments import (ArrayLike, as_array, broadcast_to_shape, convert, like,
                                     static_value)
from minijax.numpy.creation import linspace
from minijax.numpy.unary import round
from minijax.numpy.vectorize import apply_along_axis

Widths = list[tuple[int, int]]
_BY_INDEX = ("edge", "reflect", "symmetric", "wrap")
_BY_STATISTIC: dict[str, Callable[..., Array]] = {
    "maximum": reductions.max, "minimum": reductions.min, "mean": reductions.mean,
    "median": sorting.median}


def pad(array: ArrayLike, pad_width: Any, mode: str | Callable = "constant",
        **kwargs: Any) -> Array:
    """The array with a margin: of a constant, of its own elements, or of what a function writes.

    >>> pad(np.array([1, 2]), (1, 2), constant_values=9)
    Array([9, 1, 2, 9, 9], dtype=int32)

    Args:
      pad_width: a number, one pair for all axes, or a pair for each.
      mode: "constant" (with `constant_values`), "empty", "linear_ramp" (with `end_values`),
        "edge", "reflect", "symmetric", "wrap", "maximum", "minimum", "mean", "median" (with
        `stat_length`), or a function ``(vector, width, axis, kwargs) -> vector``.
    """
    a: Any = as_array("pad", array)
    widths = _pairs(pad_width, a.ndim)
    if any(n < 0 for pair in widths for n in pair):
        raise ValueError("index can't contain negative values")
    if callable(mode):
        return _pad_by_function(a, widths, mode, kwargs)
    if mode in ("constant", "empty"):
        return _pad_constant(a, widths, kwargs.pop("constant_values", 0))
    if mode in _BY_INDEX:
        return _pad_by_index(a, widths, mode, kwargs)
    if mode in _BY_STATISTIC:
        return _pad_by_statistic(a, widths, mode, kwargs.pop("stat_length", None))
    if mode == "linear_ramp":
        return _pad_ramp(a, widths, kwargs.pop("end_values", 0))
    raise NotImplementedError(f"Unimplemented padding mode '{mode}' for np.pad.")


def _pairs(pad_width: Any, ndim: int) -> Widths:
    given = static_value(pad_width, "`pad_width` argument of jnp.pad")
    widths = np.broadcast_to(given, (ndim, 2))
    return [(operator.index(before), operator.index(after)) for before, after in widths]


def _pad_constant(a: Any, widths: Widths, values: Any) -> Any:
    if np.ndim(values) == 0:
        return lax.pad(a, like(values, a), [(n, m, 0) for n, m in widths])
    each = broadcast_to_shape(as_array("pad", np.asarray(values)), (a.ndim, 2))
    for axis, (before, after) in enumerate(widths):
        for width, side in (((before, 0, 0), 0), ((0, after, 0), 1)):
            config = [(0, 0, 0)] * a.ndim
            config[axis] = width
            a = lax.pad(a, like(each[axis, side], a), config)
    return a


def _pad_by_index(a: Any, widths: Widths, mode: str, options: dict) -> Any:
    """NumPy pads the numbers of the places: these are the elements to show."""
    for axis, pair in enumerate(widths):
        if pair != (0, 0):
            places = np.pad(np.arange(a.shape[axis]), pair, mode,  # type: ignore[call-overload]
                            **options)
            a = a[(slice(None),) * axis + (places,)]
    return a


def _pad_by_statistic(a: Any, widths: Widths, mode: str, length: Any) -> Any:
    lengths = [(None, None)] * a.ndim if length is None else _pairs(length, a.ndim)
    for axis, ((before, after), sizes) in enumerate(zip(widths, lengths, strict=True)):
        n = a.shape[axis]
        first, last = (n if size is None else min(size, n) for size in sizes)
        parts = (lax.slice_in_dim(a, 0, first, axis=axis),
                 lax.slice_in_dim(a, n - last, n, axis=axis))
        margins = [_BY_STATISTIC[mode](part, axis=axis, keepdims=True) for part in parts]
        if a.dtype.kind in "biu":
            margins = [round(margin) for margin in margins]
        a = _between(a, [convert(m, a.dtype, a.weak_type) for m in margins], (before, after), axis)
    return a


def _between(a: Any, margins: list, pair: tuple[int, int], axis: int) -> Any:
    """The array between two slices, each repeated as often as its side is wide."""
    wide = [broadcast_to_shape(margin, (*a.shape[:axis], width, *a.shape[axis + 1:]))
            for margin, width in zip(margins, pair, strict=True)]
    return lax.concatenate([wide[0], a, wide[1]], axis)


def _pad_ramp(a: Any, widths: Widths, end_values: Any) -> Any:
    ends = np.broadcast_to(end_values, (a.ndim, 2))
    for axis, (before, after) in enumerate(widths):
        n = a.shape[axis]
        first = lax.index_in_dim(a, 0, axis, keepdims=False)
        last = lax.index_in_dim(a, n - 1, axis, keepdims=False)
        up = linspace(convert(ends[axis, 0], a.dtype), first, before, endpoint=False,
                      dtype=a.dtype, axis=axis)
        down = linspace(convert(ends[axis, 1], a.dtype), last, after, endpoint=False,
                        dtype=a.dtype, axis=axis)
        weak = a.weak_type
        a = convert(lax.concatenate([up, a, lax.rev(down, (axis,))], axis), a.dtype, weak)
    return a


def _pad_by_function(a: Any, widths: Widths, function: Callable, options: dict) -> Any:
    a = _pad_constant(a, widths, 0)
    for axis, pair in enumerate(widths):
        a = apply_along_axis(function, axis, a, pair, axis, options)
    return a
