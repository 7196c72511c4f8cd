"""Indexing: `x[idx]` reads and `x.at[idx]` updates, by one parser and one plan.

Builds on `lax`.  Chapters 13 and 14, *In-place updates* and *Out-of-bounds indexing*.
In JAX: `jax/_src/numpy/indexing.py`, `jax/_src/ops/scatter.py`, `array_methods.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from minijax import config, core, dtypes, errors, lax
from minijax.control_flow.reducers import applied_repeatedly
from minijax.core import Array, as_value
from minijax.lax import GatherScatterMode
from minijax.numpy import creation, vectorization
from minijax.placement.out_sharding import with_out_sharding
from minijax.numpy.arguments import broadcast_to_shape, convert, promote_dtypes
from minijax.numpy.index_plan import (Entry, ascending, make_plan, parse, shared_dtype,
                                      signed_indices)
from minijax.primitives.gather_scatter import gather_params
from minijax.transforms.prepared import prepared
from minijax.util import exports

Mode = str | GatherScatterMode | None
PROMISE, FILL = GatherScatterMode.PROMISE_IN_BOUNDS, GatherScatterMode.FILL_OR_DROP


# ── Reading one window: static slices, then a dynamic slice ──────────────────────────────────

def _read_window(x: Array, entries: list[Entry], wrap: bool) -> Array:
    """The elements of one window, by one loop over the entries, as `x[0]` must be fast."""
    window: list[range] = []
    squeezed: list[int] = []
    new_axes: list[int] = []
    dynamic: dict[int, tuple[Array, int]] = {}  # start and size
    for entry in entries:
        kind, value, axis, size, _ = entry
        if axis is None:
            new_axes.append(len(window) - len(squeezed) + len(new_axes))
            continue
        if kind in ("integer", "array"):
            squeezed.append(axis)
        if kind == "integer":
            start = min(max(value + size if wrap and value < 0 else value, 0), size - 1)
            value = range(start, start + 1)
        elif kind != "slice":
            dynamic[axis] = signed_indices(entry, wrap), len(value) if kind == "window" else 1
            value = range(size)
        window.append(value)
    bounds = [(each.start, each.stop, each.step) for each in map(ascending, window)]
    if bounds != [(0, size, 1) for size in x.shape]:
        starts, stops, strides = zip(*bounds, strict=True)
        x = lax.slice(x, starts, stops, strides if any(n > 1 for n in strides) else None)
    backwards = [axis for axis, each in enumerate(window) if each.step < 0]
    x = lax.rev(x, backwards) if backwards else x
    if dynamic:
        dtype = shared_dtype([start for start, _ in dynamic.values()])
        zero = np.zeros((), dtype)[()]
        starts, sizes = zip(*[dynamic.get(axis, (zero, n)) for axis, n in enumerate(x.shape)],
                            strict=True)
        corner = [start if start.dtype == dtype else convert(start, dtype) for start in starts]
        x = lax.dynamic_slice_p.bind(x, *corner, slice_sizes=sizes)
    x = lax.squeeze(x, squeezed)
    return lax.expand_dims(x, new_axes) if new_axes else x


def _is_window(entries: list[Entry]) -> bool:
    """Whether an index selects one window: no entry is an array with axes."""
    return not any(entry.kind == "array" and np.ndim(entry.value)
                   or entry.kind == "window" and not entry.is_box for entry in entries)


def _indices_to_check(entries: list[Entry]) -> Iterator[tuple[Any, int, int]]:
    """Each integer or array of an index, its axis and its extent, for checks of bounds."""
    for entry in entries:
        if entry.axis is not None and entry.kind != "slice":
            yield ((entry.value.start, entry.axis, len(entry.value)) if entry.kind == "window" else
                   (entry.value, entry.axis, 1))


# ── Reading ──────────────────────────────────────────────────────────────────────────────────

def rewriting_take(x: Any, idx: Any, *, indices_are_sorted: bool = False,
                   unique_indices: bool = False, mode: Mode = None, fill_value: Any = None,
                   wrap_negative_indices: bool = True) -> Array:
    """`x[idx]`, with options.

    Args:
      x: an array.
      idx: an index as NumPy takes it; lists only inside of a tuple.
      indices_are_sorted, unique_indices: promises of the caller.
      mode: of indices out of bounds, which are clamped unless it is "fill".
      fill_value: the value at indices out of bounds in mode "fill".
      wrap_negative_indices: whether negative indices count from the end.

    >>> import numpy as np
    >>> rewriting_take(np.arange(10), 11)
    Array(9, dtype=int32)
    >>> rewriting_take(np.arange(6).reshape(2, 3), (slice(None), np.array([2, 0])))
    Array([[2, 0],
           [5, 3]], dtype=int32)

    Raises:
      TypeError, IndexError: for what is no index of `x`.
      NonConcreteBooleanIndexError: for a traced mask.
    """
    x, wrap = as_value(x), wrap_negative_indices
    entries = parse(idx, x.shape)
    gather_mode = PROMISE if mode is None else GatherScatterMode.from_any(mode)
    if gather_mode is PROMISE:
        core.base_trace.notify("index", "read", x.shape, _indices_to_check(entries), wraps=wrap)
    # A gather's derivative is zero out of bounds, as an update there is dropped; a slice's is not.
    is_dropped = gather_mode is PROMISE and any(
        each.kind == "integer" and not -each.size * wrap <= each.value < each.size
        for each in entries)
    if (is_window := _is_window(entries)) and gather_mode is not FILL and not is_dropped:
        return _read_window(x, entries, wrap)
    plan = make_plan(entries, wrap)
    if 0 in plan.shape:
        return lax.reshape(lax.slice(lax.reshape(x, (x.size,)), (0,), (0,)), plan.shape)
    y = lax.gather_p.bind(x, plan.indices, **gather_params(
        x, plan.dimension_numbers, plan.slice_sizes, gather_mode, _static_fill(fill_value),
        unique_indices or is_window, indices_are_sorted or is_window))
    y = lax.rev(y, plan.reversed_axes) if plan.reversed_axes else y
    return lax.expand_dims(y, plan.new_axes) if plan.new_axes else y


def _static_fill(value: Any) -> Any:
    if value is None:
        return None
    if np.ndim(value) != 0:
        raise ValueError("fill_value argument to indexed get() must be a scalar")
    concrete = core.concrete_or_error(value, "fill_value argument to indexed get()")
    return None if concrete is None else concrete.item()


# ── Writing ──────────────────────────────────────────────────────────────────────────────────

def scatter_update(x: Any, idx: Any, y: Any, scatter: Callable[..., Array], *,
                   indices_are_sorted: bool = False, unique_indices: bool = False,
                   mode: Mode = None, wrap_negative_indices: bool = True) -> Array:
    """`x` with the elements `x[idx]` replaced, or updated, by `y`.

    Args:
      x: an array.
      idx: an index as NumPy takes it.
      y: the values, broadcast to the shape of ``x[idx]``.
      scatter: one of the scatter functions of `lax`.
      indices_are_sorted, unique_indices: promises of the caller.
      mode: of indices out of bounds, whose updates are dropped unless it is "clip".
      wrap_negative_indices: whether negative indices count from the end.

    >>> import numpy as np
    >>> scatter_update(np.zeros(3), np.array([0, 0, 9]), 1.0, lax.scatter_add)
    Array([2., 0., 0.], dtype=float32)
    """
    x = as_value(x)
    y = _as_update(y, x.dtype)
    entries = parse(idx, x.shape)
    plan, is_window = make_plan(entries, wrap_negative_indices), _is_window(entries)
    if mode is None:
        core.base_trace.notify("index", "update", x.shape, _indices_to_check(entries),
                           wraps=wrap_negative_indices)
    if not dtypes.safe_to_cast(y, x):
        errors.warn("scatter inputs have incompatible types: cannot safely cast value from "
                    f"dtype={core.dtype_name(y.dtype)} to dtype={core.dtype_name(x.dtype)} with "
                    f"jax_numpy_dtype_promotion={config.numpy_dtype_promotion.value}. In future "
                    "JAX releases this will result in an error.", FutureWarning)
    if 0 in plan.shape:
        return x
    promoted, y = promote_dtypes(x, y)
    y = lax.squeeze(broadcast_to_shape(y, plan.shape), plan.new_axes)
    y = lax.rev(y, plan.reversed_axes) if plan.reversed_axes else y
    out = scatter(promoted, plan.indices, y, lax.ScatterDimensionNumbers(*plan.dimension_numbers),
                  indices_are_sorted=indices_are_sorted or is_window,
                  unique_indices=unique_indices or is_window, mode=GatherScatterMode.from_any(mode))
    return convert(out, x.dtype, x.weak_type)


def _as_update(y: Any, dtype: Any) -> Array:
    if (type(y) is int and dtypes.issubdtype(dtype, np.integer)
            and dtypes.iinfo(dtype).min <= y <= dtypes.iinfo(dtype).max):
        return as_value(np.asarray(y, dtype)[()])
    return as_value(y) if isinstance(y, (bool, int, float, complex)) else creation.asarray(y)


def _resharded(fun: Callable[..., Array]) -> Callable[..., Array]:
    """The function, with an `out_sharding` of its result."""
    def resharded(*args: Any, out_sharding: Any = None, **options: Any) -> Array:
        return with_out_sharding(out_sharding, fun, *args, **options)
    return resharded


_taken = _resharded(prepared(rewriting_take))


@_resharded
@prepared
def _updated(scatter: str, x: Any, index: Any, values: Any, **options: Any) -> Array:
    return scatter_update(x, index, values, getattr(lax, scatter), **options)


# ── The interface: x.at[idx] ─────────────────────────────────────────────────────────────────

def _may_repeat(index: Any) -> bool:
    """Whether an index selects places one by one, and so perhaps one of them twice."""
    return any(isinstance(each, (Array, np.ndarray)) and each.size > 1 and each.dtype != bool
               for each in (index if isinstance(index, tuple) else (index,)))


class _IndexUpdateHelper:
    """`x.at`, which takes an index."""

    __slots__ = ("array",)

    def __init__(self, array: Array):
        self.array = array

    def __getitem__(self, index: Any) -> _IndexUpdateRef:
        return _IndexUpdateRef(self.array, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        raise TypeError("x.at[idx] cannot be assigned to. Write x = x.at[idx].set(y): it returns "
                        "a new array, and x stays as it was.")

    def __repr__(self) -> str:
        return f"_IndexUpdateHelper({self.array!r})"


class _IndexUpdateRef:
    """`x.at[idx]`: every method returns a new array; `x` is unchanged.

    All take the options of `scatter_update`: `indices_are_sorted`, `unique_indices`, `mode`,
    `wrap_negative_indices`; `get` also takes a `fill_value`, and an `out_sharding` of its result,
    as `set` and the sums, products and extremes do.  Where indices repeat, `add` and its
    like apply every update, and `set` keeps the last value.
    """

    __slots__ = ("array", "index")

    def __init__(self, array: Array, index: Any):
        self.array, self.index = array, index

    def __repr__(self) -> str:
        return f"_IndexUpdateRef({self.array!r}, {self.index!r})"

    def _update(self, values: Any, scatter: Callable[..., Array], options: dict) -> Array:
        return _updated(scatter.__name__, self.array, self.index, values, **options)

    def get(self, **options: Any) -> Array:
        """`x[idx]`, with a choice of the value outside of `x`."""
        return _taken(self.array, self.index, **options)

    def set(self, values: Any, **options: Any) -> Array:
        """`x[idx] = values`"""
        return self._update(values, lax.scatter, options)

    def add(self, values: Any, **options: Any) -> Array:
        """`x[idx] += values`"""
        return self._update(values, lax.scatter_add, options)

    def subtract(self, values: Any, **options: Any) -> Array:
        """`x[idx] -= values`"""
        return self._update(values, lax.scatter_sub, options)

    def multiply(self, values: Any, **options: Any) -> Array:
        """`x[idx] *= values`"""
        return self._update(values, lax.scatter_mul, options)

    mul = multiply

    def divide(self, values: Any, **options: Any) -> Array:
        """`x[idx] /= values`"""
        return self.array / self._gathered_factors(values, options)

    def power(self, values: Any, **options: Any) -> Array:
        """`x[idx] **= values`"""
        return self.array ** self._gathered_factors(values, options)

    def _gathered_factors(self, values: Any, options: dict) -> Array:
        """An array of ones, with the products of the values at the index."""
        ones = lax.full_like(self.array, 1)
        return scatter_update(ones, self.index, values, lax.scatter_mul, **options)

    def min(self, values: Any, **options: Any) -> Array:
        """`x[idx] = minimum(x[idx], values)`"""
        return self._update(values, lax.scatter_min, options)

    def max(self, values: Any, **options: Any) -> Array:
        """`x[idx] = maximum(x[idx], values)`"""
        return self._update(values, lax.scatter_max, options)

    def apply(self, func: Callable[[Any], Any], **options: Any) -> Array:
        """`x[idx] = func(x[idx])`, element by element, once more for every time it is repeated."""
        how = {"mode": options.get("mode"),
               "wrap_negative_indices": options.get("wrap_negative_indices", True)}
        old, mapped, new = self.get(**how), vectorization.vectorize(func), None
        if _may_repeat(self.index) and not options.get("unique_indices"):
            none = lax.full(self.array.shape, 0, np.int32)
            times = type(self)(none, self.index).add(1, **options)
            new = applied_repeatedly(mapped, old, type(self)(times, self.index).get(**how))
        return self.set(mapped(old) if new is None else new, **options)

    exports.export_all(locals())  # each method is a boundary of the API


at_property = property(_IndexUpdateHelper, doc="Updated copies: `x.at[idx].set(y)` and its like.")
