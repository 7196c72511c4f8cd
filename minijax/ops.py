"""Updates by functions, as programs wrote them before `x.at`, and sums over segments.

Stands on `numpy.indexing`.  Chapter 13, *In-place updates*.
In JAX: `jax/ops/__init__.py`; the `index_` functions were removed from it in 0.3.2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import core, dtypes, lax
from minijax import numpy as jnp
from minijax.core import Array
from minijax.numpy.arguments import ArrayLike, as_array, check_arraylike
from minijax.numpy.indexing import Mode, scatter_update

Scatter = Callable[..., Array]


# ── Updates at an index ──────────────────────────────────────────────────────────────────────

class _Index:
    """Writes an index as between brackets: `index[:, 1]`."""

    def __getitem__(self, index: Any) -> Any:
        return index

    def __repr__(self) -> str:
        return "index"


index = _Index()


def _update(x: ArrayLike, idx: Any, y: ArrayLike, scatter: Scatter, is_sorted: bool,
            is_unique: bool) -> Array:
    return scatter_update(jnp.asarray(x), idx, y, scatter, indices_are_sorted=is_sorted,
                          unique_indices=is_unique)


def index_update(x: ArrayLike, idx: Any, y: ArrayLike, indices_are_sorted: bool = False,
                 unique_indices: bool = False) -> Array:
    """`x` with `x[idx]` replaced by `y`: today `x.at[idx].set(y)`.

    >>> index_update(jnp.zeros(3), index[1:], 7.)
    Array([0., 7., 7.], dtype=float32)
    """
    return _update(x, idx, y, lax.scatter, indices_are_sorted, unique_indices)


def index_add(x: ArrayLike, idx: Any, y: ArrayLike, indices_are_sorted: bool = False,
              unique_indices: bool = False) -> Array:
    """`x` with `y` added at `idx`, once for every mention: today `x.at[idx].add(y)`.

    >>> index_add(jnp.zeros(3), jnp.array([0, 0, 2]), 1.)
    Array([2., 0., 1.], dtype=float32)
    """
    return _update(x, idx, y, lax.scatter_add, indices_are_sorted, unique_indices)


def index_mul(x: ArrayLike, idx: Any, y: ArrayLike, indices_are_sorted: bool = False,
              unique_indices: bool = False) -> Array:
    """`x` with `x[idx]` multiplied by `y`: today `x.at[idx].multiply(y)`.

    >>> index_mul(jnp.arange(3.), index[-1], 10.)
    Array([ 0.,  1., 20.], dtype=float32)
    """
    return _update(x, idx, y, lax.scatter_mul, indices_are_sorted, unique_indices)


def index_min(x: ArrayLike, idx: Any, y: ArrayLike, indices_are_sorted: bool = False,
              unique_indices: bool = False) -> Array:
    """`x` with the smaller of `x[idx]` and `y` at `idx`: today `x.at[idx].min(y)`.

    >>> index_min(jnp.arange(3.), index[:], 1.)
    Array([0., 1., 1.], dtype=float32)
    """
    return _update(x, idx, y, lax.scatter_min, indices_are_sorted, unique_indices)


def index_max(x: ArrayLike, idx: Any, y: ArrayLike, indices_are_sorted: bool = False,
              unique_indices: bool = False) -> Array:
    """`x` with the larger of `x[idx]` and `y` at `idx`: today `x.at[idx].max(y)`.

    >>> index_max(jnp.arange(3.), index[:], 1.)
    Array([1., 1., 2.], dtype=float32)
    """
    return _update(x, idx, y, lax.scatter_max, indices_are_sorted, unique_indices)


# ── Segments ─────────────────────────────────────────────────────────────────────────────────

def segment_sum(data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None,
                indices_are_sorted: bool = False, unique_indices: bool = False,
                bucket_size: int | None = None, mode: Mode = None) -> Array:
    """For each segment, the sum of the rows that belong to it.

    >>> segment_sum(jnp.array([1, 2, 3]), jnp.array([0, 1, 0]))
    Array([4, 2], dtype=int32)

    Args:
      segment_ids: for each row of `data` its segment; rows of a segment outside are left out.
      num_segments: how many there are; needed where the ids are traced.
      indices_are_sorted, unique_indices: promises of the caller.
      bucket_size: rows are first combined in groups of so many, which loses fewer digits.
      mode: what happens to a segment outside: see `x.at`.
    """
    return _by_segment("segment_sum", data, segment_ids, num_segments, bucket_size, 0,
                       lax.scatter_add, jnp.sum,
                       _options(indices_are_sorted, unique_indices, mode))


def segment_prod(data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None,
                 indices_are_sorted: bool = False, unique_indices: bool = False,
                 bucket_size: int | None = None, mode: Mode = None) -> Array:
    """For each segment, the product of its rows; arguments as in `segment_sum`.

    >>> segment_prod(jnp.array([1, 2, 3]), jnp.array([0, 1, 0]))
    Array([3, 2], dtype=int32)
    """
    return _by_segment("segment_prod", data, segment_ids, num_segments, bucket_size, 1,
                       lax.scatter_mul, jnp.prod,
                       _options(indices_are_sorted, unique_indices, mode))


def segment_max(data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None,
                indices_are_sorted: bool = False, unique_indices: bool = False,
                bucket_size: int | None = None, mode: Mode = None) -> Array:
    """For each segment, the largest of its rows; arguments as in `segment_sum`.

    >>> segment_max(jnp.array([1, 2, 3]), jnp.array([0, 1, 0]))
    Array([3, 2], dtype=int32)
    """
    return _by_segment("segment_max", data, segment_ids, num_segments, bucket_size,
                       _extreme(data, "min"), lax.scatter_max, jnp.max,
                       _options(indices_are_sorted, unique_indices, mode))


def segment_min(data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None,
                indices_are_sorted: bool = False, unique_indices: bool = False,
                bucket_size: int | None = None, mode: Mode = None) -> Array:
    """For each segment, the smallest of its rows; arguments as in `segment_sum`.

    >>> segment_min(jnp.array([1, 2, 3]), jnp.array([0, 1, 0]))
    Array([1, 2], dtype=int32)
    """
    return _by_segment("segment_min", data, segment_ids, num_segments, bucket_size,
                       _extreme(data, "max"), lax.scatter_min, jnp.min,
                       _options(indices_are_sorted, unique_indices, mode))


def _options(is_sorted: bool, is_unique: bool, mode: Mode) -> dict[str, Any]:
    return {"indices_are_sorted": is_sorted, "unique_indices": is_unique,
            # segments that are not there are dropped: that is documented, not an accident
            "mode": "drop" if mode is None else mode}


def _extreme(data: ArrayLike, which: str) -> Any:
    """The smallest or largest value of the dtype of `data`: what an empty segment holds."""
    dtype = dtypes.dtype(data)
    if dtypes.issubdtype(dtype, np.bool_):
        return which == "max"
    if dtypes.issubdtype(dtype, np.integer):
        return getattr(dtypes.iinfo(dtype), which)
    return np.inf if which == "max" else -np.inf


def _by_segment(name: str, data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None,
                bucket_size: int | None, empty: Any, scatter: Scatter,
                combine: Callable[..., Array], options: dict[str, Any]) -> Array:
    check_arraylike(name, data, segment_ids)
    data, ids = as_array(name, data), as_array(name, segment_ids)
    count = _segment_count(name, ids, num_segments)
    if bucket_size is None:
        start = jnp.full((count, *data.shape[1:]), empty, data.dtype)
        return scatter_update(start, ids, data, scatter, wrap_negative_indices=False, **options)
    buckets = -(-ids.size // bucket_size)
    start = jnp.full((buckets, count, *data.shape[1:]), empty, data.dtype)
    place = (np.arange(ids.size) // bucket_size, ids)
    each = scatter_update(start, place, data, scatter, wrap_negative_indices=False, **options)
    return jnp.astype(combine(each, axis=0), data.dtype)


def _segment_count(name: str, ids: Array, given: int | None) -> int:
    if given is None:
        largest = core.concrete_or_error(jnp.max(ids), f"{name}() `num_segments` argument.")
        return int(largest) + 1  # type: ignore[arg-type]
    known = core.concrete_or_error(given, f"{name}() `num_segments` argument.")
    count = int(known)  # type: ignore[arg-type]
    if count < 0:
        raise ValueError("num_segments must be non-negative.")
    return count
