"""Primitives that write windows at computed places: scatter and its family but the sum.

Stands on `gather`, whose walk they follow.  Chapters 13 and 14 (*In-place updates*, *Out-of-bounds
indexing*).  In JAX: `jax/_src/lax/slicing.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import config
from minijax.core import Array, ForPrimitive, Primitive, ShapedArray, cannot
from minijax.primitives.algebra import complex_extremum, div_p, mul_p, neg_p, with_ordered_zeros
from minijax.primitives.axes import Shape, without
from minijax.primitives.checks import check_windows
from minijax.primitives.choice import eq_p, select_n_p
from minijax.primitives.convert import converted
from minijax.primitives.emitted import instantiate, linear, transposed, zeros
from minijax.primitives.families import per_argument
from minijax.primitives.gather import (by_ufunc, read_back, scatter_add_p, scatter_examples,
                                       scatter_family)
from minijax.primitives.shape import broadcast_in_dim, iota_p, reshape
from minijax.primitives.windows import GatherScatterMode, ScatterDimensionNumbers, window_sizes


# ── Derivatives ──────────────────────────────────────────────────────────────────────────────

def _zeros(shape: Shape, dtype: Any) -> Array:
    return zeros(ShapedArray(shape, dtype))


def _masked(keep: Array, x: Array) -> Array:
    return select_n_p.bind(keep, _zeros(x.shape, x.dtype), x)


def _set_updates_cotangent(ct: Array, x: Any, indices: Array, updates: Any, **params: Any
                           ) -> Array:
    """An update gets what stands where it was written, if no later one overwrote it.

    JAX: differentiates by numbering the updates in the forward pass already.
    """
    shape = updates.aval.shape
    read = read_back(ct, indices, shape, params)
    if params["unique_indices"]:
        return read
    window = params["dimension_numbers"].update_window_dims
    walked = without(shape, window)
    order = iota_p.bind(dtype=np.dtype(np.int32), shape=(math.prod(walked),), dimension=0)
    order = broadcast_in_dim(reshape(order, walked), shape, without(range(len(shape)), window))
    nobody = _zeros(ct.shape, np.dtype(np.int32))
    last = read_back(scatter_p.bind(nobody, indices, order, **params), indices, shape, params)
    return _masked(eq_p.bind(order, last), read)


def _set_operand_cotangent(ct: Array, x: Any, indices: Array, updates: Any, **params: Any
                           ) -> Array:
    return scatter_p.bind(ct, indices, _zeros(updates.aval.shape, ct.dtype), **params)


def _check_unique(params: dict) -> None:
    if not params["unique_indices"]:
        raise NotImplementedError(
            "scatter_mul gradients are only implemented if `unique_indices=True`")


def _mul_in_updates(t: Array, out: Array, x: Array, indices: Array, updates: Array, **params: Any
                    ) -> Array:
    _check_unique(params)
    moved = scatter_add_p.bind(_zeros(x.shape, x.dtype), indices, t, **params)
    return mul_p.bind(x, moved)


def _mul_updates_cotangent(ct: Array, x: Array, indices: Array, updates: Any, **params: Any
                           ) -> Array:
    _check_unique(params)
    return read_back(mul_p.bind(ct, x), indices, updates.aval.shape, params)


@ForPrimitive
def _extremal_jvp(p: Primitive, primals: list, tangents: list, **params: Any
                  ) -> tuple[list, list]:
    """The mean of the tangents of all that attained the extremum."""
    x, indices, updates = primals
    out = p.bind(x, indices, updates, **params)
    kept = eq_p.bind(x, out)
    won = eq_p.bind(updates, read_back(out, indices, updates.shape, params))
    count = scatter_add_p.bind(converted(kept, x.dtype, False), indices,
                               converted(won, x.dtype, False), **params)
    total = scatter_add_p.bind(_masked(kept, instantiate(tangents[0])), indices,
                               _masked(won, instantiate(tangents[2])), **params)
    return [out], [div_p.bind(total, count)]


# ── The primitives ───────────────────────────────────────────────────────────────────────────

def _write(flat: np.ndarray, places: np.ndarray, updates: np.ndarray) -> None:
    flat[places] = updates


def _by_extremum(op: str) -> Callable[[np.ndarray, np.ndarray, np.ndarray], None]:
    ufunc = np.maximum if op == "max" else np.minimum

    def write(flat: np.ndarray, places: np.ndarray, updates: np.ndarray) -> None:
        def anywhere(test: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
            found = test(before)
            np.logical_or.at(found, places, test(updates))
            return found
        if flat.dtype.kind == "c":
            for place, update in zip(places, updates, strict=True):
                flat[place] = complex_extremum(op, flat[place], update)
            return
        before = flat.copy()
        ufunc.at(flat, places, updates)
        flat[...] = with_ordered_zeros(op, flat, anywhere)
    return write


NOT_LINEAR = cannot("which update is taken depends on their values.")

scatter_p = scatter_family(
    "scatter",
    write=_write,
    combine=lambda s, old, new: new,
    jvp=linear(0, 2),
    transpose=transposed(_set_operand_cotangent, None, _set_updates_cotangent),
    examples=scatter_examples(np.float32, np.int32, np.bool_))

scatter_sub_p = scatter_family(
    "scatter-sub", arithmetic="sub",
    write=by_ufunc(np.subtract),
    combine=lambda s, old, new: s.sub(old(), new),
    jvp=linear(0, 2),
    transpose=transposed(
        lambda ct, *_, **__: ct, None,
        lambda ct, x, indices, updates, **params: neg_p.bind(
            read_back(ct, indices, updates.aval.shape, params))),
    examples=scatter_examples(np.float32, np.int32))

scatter_mul_p = scatter_family(
    "scatter-mul", arithmetic="mul",
    write=by_ufunc(np.multiply),
    combine=lambda s, old, new: s.mul(old(), new),
    jvp=per_argument(
        lambda t, out, x, indices, updates, **params: scatter_mul_p.bind(
            t, indices, updates, **params), None, _mul_in_updates),
    transpose=transposed(
        lambda ct, x, indices, updates, **params: scatter_mul_p.bind(
            ct, indices, updates, **params), None, _mul_updates_cotangent),
    examples=scatter_examples(np.float32, unique=True))

scatter_min_p = scatter_family(
    "scatter-min",
    write=_by_extremum("min"),
    combine=lambda s, old, new: s.min(old(), new),
    jvp=_extremal_jvp,
    transpose=NOT_LINEAR,
    examples=scatter_examples(np.float32, np.int32))

scatter_max_p = scatter_family(
    "scatter-max",
    write=_by_extremum("max"),
    combine=lambda s, old, new: s.max(old(), new),
    jvp=_extremal_jvp,
    transpose=NOT_LINEAR,
    examples=scatter_examples(np.float32, np.int32))


# ── What users call ──────────────────────────────────────────────────────────────────────────

# The modes of a caller who does not say that an index may be outside.
UNSAID = (None, "promise_in_bounds", GatherScatterMode.PROMISE_IN_BOUNDS)


def _user_function(primitive: Primitive, name: str, what: str) -> Callable[..., Array]:
    def function(operand: Any, scatter_indices: Any, updates: Any,
                 dimension_numbers: ScatterDimensionNumbers, *,
                 indices_are_sorted: bool = False, unique_indices: bool = False,
                 mode: str | GatherScatterMode | None = None) -> Array:
        dnums = ScatterDimensionNumbers(*map(tuple, dimension_numbers))
        if config.debug_out_of_bounds.value and mode in UNSAID:
            shape = np.shape(operand)
            check_windows(scatter_indices, dnums.scatter_dims_to_operand_dims, shape,
                          window_sizes(dnums, shape, np.shape(updates)), kind="window drop")
        return primitive.bind(operand, scatter_indices, updates, dimension_numbers=dnums,
                              indices_are_sorted=bool(indices_are_sorted),
                              unique_indices=bool(unique_indices),
                              mode=GatherScatterMode.from_any(mode))
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""The operand with updates {what} windows at computed places.

    Every vector along the last axis of the indices is the corner of a window; updates are made
    in row-major order, and those whose window sticks out are dropped (`mode="clip"` moves the
    window inside instead).

    >>> import numpy as np
    >>> dims = ScatterDimensionNumbers((), (0,), (0,))
    >>> {name}(np.ones(4), np.array([[1], [9]]), np.array([5.0, 7.0]), dims).shape
    (4,)
    """
    return function


scatter = _user_function(scatter_p, "scatter", "written over")
scatter_add = _user_function(scatter_add_p, "scatter_add", "added to")
scatter_sub = _user_function(scatter_sub_p, "scatter_sub", "subtracted from")
scatter_mul = _user_function(scatter_mul_p, "scatter_mul", "multiplied into")
scatter_min = _user_function(scatter_min_p, "scatter_min", "limiting from above")
scatter_max = _user_function(scatter_max_p, "scatter_max", "limiting from below")
