"""Functions for updates, the predecessors of `x.at`; and reductions of segments.

Builds on `numpy.indexing`.  Chapter 13, *In-place updates*.
In JAX: `jax/ops/__init__.py`; the `index_` functions were removed from it in 0.3.2.
"""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import core, numpy as jnp
from minijax.core import Array
from minijax.numpy.arguments import ArrayLike, as_arrays, documented
from minijax.numpy.indexing import Mode
from minijax.primitives.slots import extremum_identity
from minijax.placement.out_sharding import exported as _exported
from minijax.util.exports import export_all as _export_all


# ── Updates at an index ──────────────────────────────────────────────────────────────────────

index = np.s_  # writes an index as between brackets: `index[:, 1]`


def _update_function(name: str, method: str, summary: str, shows: str) -> Callable[..., Array]:
    call, _, shown = shows.partition(" -> ")

    def update(x: ArrayLike, idx: Any, y: ArrayLike, indices_are_sorted: bool = False,
               unique_indices: bool = False) -> Array:
        return getattr(jnp.asarray(x).at[idx], method)(
            y, indices_are_sorted=indices_are_sorted, unique_indices=unique_indices)

    return documented(update, name, f"`x` with {summary}: today `x.at[idx].{method}(y)`.",
                      f"{name}({call}) -> Array({shown}, dtype=float32)")


index_update = _update_function("index_update", "set", "`x[idx]` replaced by `y`",
                                "jnp.zeros(3), index[1:], 7. -> [0., 7., 7.]")
index_add = _update_function("index_add", "add", "`y` added at `idx`, once for every mention",
                             "jnp.zeros(3), jnp.array([0, 0, 2]), 1. -> [2., 0., 1.]")
index_mul = _update_function("index_mul", "multiply", "`x[idx]` multiplied by `y`",
                             "jnp.arange(3.), index[-1], 10. -> [ 0.,  1., 20.]")
index_min = _update_function("index_min", "min", "the smaller of `x[idx]` and `y` at `idx`",
                             "jnp.arange(3.), index[:], 1. -> [0., 1., 1.]")
index_max = _update_function("index_max", "max", "the larger of `x[idx]` and `y` at `idx`",
                             "jnp.arange(3.), index[:], 1. -> [1., 1., 2.]")


# ── Segments ─────────────────────────────────────────────────────────────────────────────────

def _segment(name: str, method: str, combine: Callable[..., Array], summary: str, result: str
             ) -> Callable[..., Array]:
    """A reduction of the rows of each segment; that of an empty one is the identity element."""
    def combined(data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None,
                 indices_are_sorted: bool = False, unique_indices: bool = False,
                 bucket_size: int | None = None, mode: Mode = None,
                 out_sharding: Any = None) -> Array:
        """For each segment, the {} of its rows.

        Args:
          segment_ids: the segment of each row of `data`; rows of segments out of bounds are
            dropped.
          num_segments: the number of segments; required where the ids are traced.
          indices_are_sorted, unique_indices: promises of the caller.
          bucket_size: the size of groups of rows that are reduced first, which loses fewer digits.
          mode: for segments out of bounds, as in `x.at`.
          out_sharding: accepted for compatibility; the result is on one device.
        """
        data, ids = as_arrays(name, data, segment_ids)
        shape = (_segment_count(name, ids, num_segments), *data.shape[1:])
        index: Any = ids
        if bucket_size is not None:
            shape = (-(-ids.size // bucket_size), *shape)
            index = (np.arange(ids.size) // bucket_size, ids)
        empty = {"add": 0, "mul": 1}.get(method, extremum_identity(method, data.dtype))
        out = getattr(jnp.full(shape, empty, data.dtype).at[index], method)(
            data, wrap_negative_indices=False, indices_are_sorted=indices_are_sorted,
            # segments out of bounds are dropped on purpose: that is documented
            unique_indices=unique_indices, mode="drop" if mode is None else mode)
        return out if bucket_size is None else jnp.astype(combine(out, axis=0), data.dtype)

    text = str(inspect.getdoc(combined)).format(summary).replace("\n", "\n    ")
    return documented(combined, name, text, f"{name}(jnp.array([1, 2, 3]), jnp.array([0, 1, 0]))"
                      f" -> Array({result}, dtype=int32)")


segment_sum = _segment("segment_sum", "add", jnp.sum, "sum", "[4, 2]")
segment_prod = _segment("segment_prod", "mul", jnp.prod, "product", "[3, 2]")
segment_max = _segment("segment_max", "max", jnp.max, "largest", "[3, 2]")
segment_min = _segment("segment_min", "min", jnp.min, "smallest", "[1, 2]")


def _segment_count(name: str, ids: Array, num_segments: int | None) -> int:
    where = f"{name}() `num_segments` argument."
    if num_segments is None:
        return int(core.concrete_or_error(jnp.max(ids), where)) + 1  # type: ignore[arg-type]
    count = int(core.concrete_or_error(num_segments, where))  # type: ignore[arg-type]
    if count < 0:
        raise ValueError("num_segments must be non-negative.")
    return count


_export_all(globals(), _exported(__name__))
