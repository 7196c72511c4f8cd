"""Statistics of samples: the mode, ranks, the standard error of the mean.

Builds on `numpy`.  In JAX: `jax/_src/scipy/stats/_core.py`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from minijax import lax, numpy as jnp
from minijax.transforms.api import vmap
from minijax.core import Array
from minijax.numpy.arguments import (ArrayLike, as_array, canonical_axes, canonical_axis,
                                     promote_args_inexact)
from minijax.primitives.axes import refuse


class ModeResult(NamedTuple):
    """The commonest values, and how often they occur."""

    mode: Array
    count: Array


def _check_policy(name: str, nan_policy: str) -> None:
    if nan_policy not in ("propagate", "omit", "raise"):
        raise ValueError(f"Illegal nan_policy value {nan_policy!r}; expected one of "
                         "{'propagate', 'omit', 'raise'}")
    refuse((nan_policy == "omit", f"Logic for `nan_policy` of {nan_policy} is not implemented"),
           (nan_policy == "raise", f"In order to best JIT compile `{name}`, we cannot know whether "
            f"`x` contains nans. Please check if nans exist in `x` outside of the `{name}` "
            "function."), error=NotImplementedError)


def mode(a: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate",
         keepdims: bool = False) -> ModeResult:
    """The commonest value along an axis; the least of several.

    Args:
      a: an array.
      axis: along which axis, or None for all values.
      nan_policy: "propagate": nans are values as any other, and alike.
      keepdims: whether the axis stays, with size one.

    Returns:
      The values, and their counts, without that axis.

    >>> mode(jnp.array([3, 1, 4, 1, 3]))
    ModeResult(mode=Array(1, dtype=int32), count=Array(2, dtype=int32))

    Raises:
      NotImplementedError: for the other policies, "omit" and "raise".
    """
    x: Any = as_array("mode", a)
    _check_policy("mode", nan_policy)
    axes = canonical_axes(axis if x.ndim else None, x.ndim)
    shape = [1 if d in axes else n for d, n in enumerate(x.shape) if keepdims or d not in axes]
    if axis is not None and x.ndim:
        x = jnp.moveaxis(x, axes[0], 0)
    sizes = x.shape[:len(axes)], x.shape[len(axes):]
    values, counts = _mode_of_columns(x.reshape([*map(math.prod, sizes)]))
    return ModeResult(values.reshape(shape), counts.reshape(shape))


def _mode_of_columns(rows: Any) -> tuple[Any, Any]:
    """The mode of each column: the longest run of equal values in sorted order."""
    if not rows.shape[0]:
        nans = jnp.full(rows.shape[1:], jnp.nan, float)
        return nans, jnp.zeros_like(nans)
    ordered = jnp.sort(rows, 0)
    starts = _run_starts(ordered)
    indices = jnp.arange(rows.shape[0])[:, None]
    counts = indices - lax.cummax(jnp.where(starts, indices, 0)) + 1
    # the end of the longest run; of several, argmax takes the first
    last = jnp.argmax(counts, 0)[None]
    return tuple(jnp.take_along_axis(x, last, 0)[0] for x in (ordered, counts))


def _run_starts(ordered: Any) -> Any:
    """Whether each value, along the first axis, differs from the one before it; nans are equal."""
    after, before = ordered[1:], ordered[:-1]
    differs = (after != before) & ~((after != after) & (before != before))
    return jnp.concatenate([jnp.ones_like(ordered[:1], bool), differs])


def rankdata(a: ArrayLike, method: str = "average", *, axis: int | None = None,
             nan_policy: str = "propagate") -> Array:
    """The place of each value among all, counted from one.

    Args:
      a: an array.
      method: what equal values get: the "average" of their places, the "min" or the "max"; or
        "dense", the place among different values; or "ordinal", one after the other.
      axis: along which axis; None flattens the array.
      nan_policy: "propagate": where there is a nan, all ranks are nan.

    Returns:
      An array of the default floating dtype.

    >>> rankdata(jnp.array([1, 3, 2, 3]))
    Array([1. , 3.5, 2. , 3.5], dtype=float32)

    Raises:
      ValueError: for another method or policy.
      NotImplementedError: for the policies "omit" and "raise".
    """
    x = as_array("rankdata", a)
    _check_policy("rankdata", nan_policy)
    if method not in ("average", "min", "max", "dense", "ordinal"):
        raise ValueError(f"unknown method '{method}'")
    if axis is None:
        return _ranks(jnp.ravel(x), method)
    axis = canonical_axis(axis, x.ndim)
    rows = jnp.moveaxis(x, axis, -1)
    flat = rows.reshape(math.prod(rows.shape[:-1]), rows.shape[-1])
    ranks = vmap(lambda row: _ranks(row, method))(flat) if flat.size else flat
    return jnp.moveaxis(ranks.astype(float).reshape(rows.shape), -1, axis)


def _ranks(x: Any, method: str) -> Any:
    count = x.shape[0]
    ordered, order = lax.sort_key_val(x, jnp.arange(count))
    starts, indices = _run_starts(ordered), jnp.arange(count)
    first = lax.cummax(jnp.where(starts, indices, 0)) + 1
    ends = jnp.concatenate([starts[1:], jnp.ones_like(starts[:1])])
    last = lax.cummin(jnp.where(ends, indices, count), reverse=True) + 1
    by_place: Any = {"ordinal": indices + 1, "dense": jnp.cumsum(starts), "min": first, "max": last,
                     "average": (first + last) / 2}[method]
    ranks = jnp.zeros(count).at[order].set(by_place.astype(float))
    return jnp.where(jnp.any(jnp.isnan(x)), jnp.nan, ranks)


def sem(a: ArrayLike, axis: int | None = 0, ddof: int = 1, nan_policy: str = "propagate", *,
        keepdims: bool = False) -> Array:
    """The standard error of a mean: the deviation, divided by the root of how many there are.

    Args:
      a: an array.
      axis: along which axis, or None for all values.
      ddof: by how much fewer than the values the squares are divided.
      nan_policy: "propagate", or "omit" to leave nans out.
      keepdims: whether the axis stays, with size one.

    >>> sem(jnp.array([1., 2., 3., 4.])).round(4)
    Array(0.6455, dtype=float32)

    Raises:
      ValueError: for another policy.
    """
    [x] = promote_args_inexact("sem", a)
    if nan_policy == "propagate":
        count: Any = x.size if axis is None else x.shape[axis]
        deviation = jnp.std(x, axis, ddof=ddof, keepdims=keepdims)
    elif nan_policy == "omit":
        count = jnp.sum(~jnp.isnan(x), axis, keepdims=keepdims)
        deviation = jnp.nanstd(x, axis, ddof=ddof, keepdims=keepdims)
    else:
        raise ValueError(f"{nan_policy} is not supported")
    return deviation / jnp.sqrt(count).astype(x.dtype)
