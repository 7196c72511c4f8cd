"""Statistics of samples: the mode, ranks, the standard error of the mean.

Stands on `numpy`.  In JAX: `jax/_src/scipy/stats/_core.py`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from minijax import lax, numpy as jnp
from minijax.transforms.api import vmap
from minijax.core import Array
from minijax.numpy.arguments import ArrayLike, as_array, canonical_axis, promote_args_inexact


class ModeResult(NamedTuple):
    """The commonest values, and how often they occur."""

    mode: Array
    count: Array


def _check_policy(name: str, nan_policy: str) -> None:
    if nan_policy not in ("propagate", "omit", "raise"):
        raise ValueError(f"Illegal nan_policy value {nan_policy!r}; expected one of "
                         "{'propagate', 'omit', 'raise'}")
    if nan_policy == "omit":
        raise NotImplementedError(f"Logic for `nan_policy` of {nan_policy} is not implemented")
    if nan_policy == "raise":
        raise NotImplementedError(
            f"In order to best JIT compile `{name}`, we cannot know whether `x` contains nans. "
            f"Please check if nans exist in `x` outside of the `{name}` function.")


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
    kept = [1] * x.ndim if axis is None else list(x.shape)
    if axis is not None and x.ndim:
        place = canonical_axis(axis, x.ndim)
        kept[place] = 1
        x = jnp.moveaxis(x, place, 0)
    rows = x.reshape(x.shape[0], math.prod(x.shape[1:])) if axis is not None and x.ndim else (
        x.reshape(x.size, 1))
    shape = kept if keepdims else [n for i, n in enumerate(kept)
                                   if axis is not None and x.ndim and i != place]
    values, counts = _commonest(rows)
    return ModeResult(values.reshape(shape), counts.reshape(shape))


def _commonest(rows: Any) -> tuple[Any, Any]:
    """The mode of each column: in sorted order, equal values lie side by side."""
    if not rows.shape[0]:
        nothing = jnp.full(rows.shape[1:], jnp.nan, float)
        return nothing, jnp.zeros_like(nothing)
    ordered = jnp.sort(rows, 0)
    begins = _begins(ordered)
    places = jnp.arange(rows.shape[0])[:, None]
    counts = places - lax.cummax(jnp.where(begins, places, 0)) + 1
    # The end of the longest run; of several, argmax takes the first.
    last = jnp.argmax(counts, 0)[None]
    return tuple(jnp.take_along_axis(x, last, 0)[0] for x in (ordered, counts))


def _begins(ordered: Any) -> Any:
    """Where, along the first axis, a value differs from that before it; nans do not differ."""
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
    place = canonical_axis(axis, x.ndim)
    rows = jnp.moveaxis(x, place, -1)
    flat = rows.reshape(-1, rows.shape[-1])
    ranks = vmap(lambda row: _ranks(row, method))(flat) if flat.size else flat
    return jnp.moveaxis(ranks.astype(float).reshape(rows.shape), -1, place)


def _ranks(x: Any, method: str) -> Any:
    count = x.shape[0]
    ordered, order = lax.sort_key_val(x, jnp.arange(count))
    begins, places = _begins(ordered), jnp.arange(count)
    first = lax.cummax(jnp.where(begins, places, 0)) + 1
    ends = jnp.concatenate([begins[1:], jnp.ones_like(begins[:1])])
    last = lax.cummin(jnp.where(ends, places, count), reverse=True) + 1
    by_place: Any = {"ordinal": places + 1, "dense": jnp.cumsum(begins), "min": first, "max": last,
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
