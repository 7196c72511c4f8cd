"""Primitives gather and scatter-add, each the other's transpose, and the family of scatters.

Stands on `windows`; the other scatters are in `scatter`.  Chapter 14, *Out-of-bounds indexing*.
In JAX: `jax/_src/lax/slicing.py`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import config, core, dtypes
from minijax.core import Array, Axis, Example, ForPrimitive, Primitive, ShapedArray
from minijax.primitives.axes import Index, Shape, canonical_shape
from minijax.primitives.checks import check_windows
from minijax.primitives.emitted import batched_in_front, linear, move_axis, transposed, zeros
from minijax.primitives.examples import Examples, grid
from minijax.primitives.slots import NUMBER, check_dtypes
from minijax.primitives.windows import (GatherDimensionNumbers, GatherScatterMode,
                                        ScatterDimensionNumbers, Walk, batched_numbers,
                                        check_gather, check_scatter, emit_place, places_of,
                                        read_numbers, up, walk_of, window_sizes)

# ── gather ───────────────────────────────────────────────────────────────────────────────────

def _gather_type(x: ShapedArray, indices: ShapedArray, *,
                 dimension_numbers: GatherDimensionNumbers, slice_sizes: Shape,
                 **_: Any) -> list[ShapedArray]:
    check_gather(x, indices, dimension_numbers, slice_sizes)
    dnums = dimension_numbers
    hidden = {*dnums.collapsed_slice_dims, *dnums.operand_batching_dims}
    window = iter([n for d, n in enumerate(slice_sizes) if d not in hidden])
    batch = iter(indices.shape[:-1])
    ndim = len(dnums.offset_dims) + indices.ndim - 1
    return [x.update(shape=tuple(next(window) if d in dnums.offset_dims else next(batch)
                                 for d in range(ndim)))]


def _gather_impl(x: np.ndarray, indices: np.ndarray, *,
                 dimension_numbers: GatherDimensionNumbers, slice_sizes: Shape,
                 mode: GatherScatterMode, fill_value: Any, **_: Any) -> list[np.ndarray]:
    avals = [ShapedArray(a.shape, a.dtype) for a in (x, indices)]
    [out] = _gather_type(*avals, dimension_numbers=dimension_numbers, slice_sizes=slice_sizes)
    if out.size == 0:
        return [np.zeros(out.shape, x.dtype)]
    walk = walk_of(dimension_numbers, x.shape, slice_sizes, out.ndim)
    places, inside = places_of(walk, indices, out.shape)
    taken = np.broadcast_to(x[tuple(places)], out.shape)
    if mode is GatherScatterMode.FILL_OR_DROP:
        taken = np.where(inside, taken, np.asarray(fill_value).astype(x.dtype))
    return [taken]


def _gather_jvp(primals: list, tangents: list, **params: Any) -> tuple[list, list]:
    out = gather_p.bind(*primals, **params)
    if params["mode"] is GatherScatterMode.FILL_OR_DROP:
        params["fill_value"] = 0
    return [out], [gather_p.bind(tangents[0], primals[1], **params)]


def _transpose_gather(ct: Array, x: Any, indices: Array, *, fill_value: Any, slice_sizes: Shape,
                      dimension_numbers: GatherDimensionNumbers, **params: Any) -> Array:
    return scatter_add_p.bind(
        zeros(x.aval.strip_weak_type()), indices, ct,
        dimension_numbers=ScatterDimensionNumbers(*dimension_numbers), **params)


def _batch_gather(axis: Axis, args: list, dims: list, *,
                  dimension_numbers: GatherDimensionNumbers, slice_sizes: Shape,
                  unique_indices: bool, indices_are_sorted: bool,
                  **params: Any) -> tuple[list, list]:
    x, indices = (a if d is None else move_axis(a, d, 0) for a, d in zip(args, dims, strict=True))
    if dims[0] is None:  # the same operand for all: the batch is one more axis of indices
        dnums = dimension_numbers._replace(
            offset_dims=up(dimension_numbers.offset_dims),
            start_indices_batching_dims=up(dimension_numbers.start_indices_batching_dims))
        unique_indices = indices_are_sorted = False
    else:
        indices_too = dims[1] is not None
        dnums = batched_numbers(dimension_numbers, indices_too)
        slice_sizes = (min(axis.size, 1) if indices_too else axis.size, *slice_sizes)
    out = gather_p.bind(x, indices, dimension_numbers=dnums, slice_sizes=slice_sizes,
                        unique_indices=unique_indices, indices_are_sorted=indices_are_sorted,
                        **params)
    return [out], [0]


def _gather_element(s: Any, index: Index, x: Any, indices: Any, *,
                    dimension_numbers: GatherDimensionNumbers, slice_sizes: Shape,
                    mode: GatherScatterMode, fill_value: Any, **_: Any) -> Any:
    walk = walk_of(dimension_numbers, x.shape, slice_sizes, len(index))
    place, inside = emit_place(s, walk, indices, index)
    taken = x(place)
    if mode is not GatherScatterMode.FILL_OR_DROP:
        return taken
    return s.select(inside, taken, s.const(np.asarray(fill_value).astype(x.dtype)[()], x.dtype))


def gather_params(dnums: GatherDimensionNumbers, slice_sizes: Shape,
                  mode: GatherScatterMode = GatherScatterMode.CLIP,
                  fill_value: Any = None) -> dict[str, Any]:
    """The parameters of a gather of which nothing is promised."""
    return {"dimension_numbers": dnums, "slice_sizes": slice_sizes, "mode": mode,
            "fill_value": fill_value, "unique_indices": False, "indices_are_sorted": False}


def _gather_examples() -> list[Example]:
    rows = GatherDimensionNumbers((1,), (0,), (0,))
    windows = GatherDimensionNumbers((1, 2), (), (1, 0))
    paired = GatherDimensionNumbers((), (1,), (1,), (0,), (0,))
    scalars = GatherDimensionNumbers((), (0,), (0,))
    fill = GatherScatterMode.FILL_OR_DROP
    return [
        Example((grid(4, 3), np.array([[2], [0], [2]], np.int32)), gather_params(rows, (1, 3))),
        Example((grid(4, 3), np.array([[9], [-1]], np.int32)),
                gather_params(rows, (1, 3), fill, np.nan)),
        Example((grid(4, 3), np.array([[0, 1], [7, 7]], np.int32)),
                gather_params(windows, (2, 2))),
        Example((grid(2, 3), np.array([[[0], [2]], [[1], [1]]], np.int32)),
                gather_params(paired, (1, 1), GatherScatterMode.PROMISE_IN_BOUNDS)),
        Example((grid(3, dtype=np.int32), np.array([[1], [5]], np.uint8)),
                gather_params(scalars, (1,), fill, -1)),
        Example((grid(3), np.zeros((0, 1), np.int32)), gather_params(scalars, (1,)))]


gather_p = Primitive(
    "gather",
    impl=_gather_impl,
    abstract_eval=_gather_type,
    jvp=_gather_jvp,
    transpose=transposed(_transpose_gather),
    batch=_batch_gather,
    element=_gather_element,
    examples=_gather_examples)


# ── The family of scatters ─────────────────────────────────────────────────────────────────────

def _scatter_walk(dnums: ScatterDimensionNumbers, shape: Shape, updates: Shape) -> Walk:
    return walk_of(read_numbers(dnums), shape,
                   window_sizes(dnums, shape, updates), len(updates))


def _impl(write: Callable[[np.ndarray, np.ndarray, np.ndarray], None]) -> Callable[..., list]:
    """The meaning: one update after another, in row-major order."""
    def impl(x: np.ndarray, indices: np.ndarray, updates: np.ndarray, *,
             dimension_numbers: ScatterDimensionNumbers, mode: GatherScatterMode,
             **_: Any) -> list[np.ndarray]:
        out = np.array(x, order="C")
        if updates.size == 0 or out.size == 0:
            return [out]
        walk = _scatter_walk(dimension_numbers, x.shape, updates.shape)
        places, inside = places_of(walk, indices, updates.shape)
        flat = np.zeros((1,) * updates.ndim, np.int64)
        for place, n in zip(places, x.shape, strict=True):
            flat = flat * n + place
        kept = np.broadcast_to(inside | (mode is GatherScatterMode.CLIP), updates.shape)
        write(out.reshape(-1), np.broadcast_to(flat, updates.shape)[kept], updates[kept])
        return [out]
    return impl


@ForPrimitive
def _batch_scatter(p: Primitive, axis: Axis, args: list, dims: list, *,
                   dimension_numbers: ScatterDimensionNumbers, **params: Any) -> tuple[list, list]:
    x, updates = (batched_in_front(args[k], dims[k], axis.size) for k in (0, 2))
    indices_too = dims[1] is not None
    indices = move_axis(args[1], dims[1], 0) if indices_too else args[1]
    dnums = batched_numbers(dimension_numbers, indices_too)
    return [p.bind(x, indices, updates, dimension_numbers=dnums, **params)], [0]


def _loop(combine: Callable[[Any, Any, Any], Any]) -> Callable[..., None]:
    """Copy the operand, then visit the updates in order."""
    def loop(b: Any, outputs: list, operands: list, *, dimension_numbers: Any,
             mode: GatherScatterMode, **_: Any) -> None:
        [out], (x, indices, updates) = outputs, operands
        b.materialize(x, into=out)
        if 0 in out.shape:
            return  # no place is inside
        walk = _scatter_walk(dimension_numbers, out.shape, updates.shape)
        with contextlib.ExitStack() as loops:
            index = tuple(loops.enter_context(b.loop(n)) for n in updates.shape)
            place, inside = emit_place(b, walk, indices, index)
            if mode is not GatherScatterMode.CLIP:
                loops.enter_context(b.when(inside))
            b.store(out, place, combine(b, lambda: b.load(out, place), updates(index)))
    return loop


def by_ufunc(ufunc: np.ufunc) -> Callable[[np.ndarray, np.ndarray, np.ndarray], None]:
    """One update after another."""
    def write(flat: np.ndarray, places: np.ndarray, updates: np.ndarray) -> None:
        ufunc.at(flat, places, updates)
    return write


def scatter_examples(*dtypes_tried: Any, unique: bool = False) -> Examples:
    rows = ScatterDimensionNumbers((1,), (0,), (0,))
    windows = ScatterDimensionNumbers((1, 2), (), (1, 0))
    paired = ScatterDimensionNumbers((), (1,), (1,), (0,), (0,))
    drop, clip = GatherScatterMode.FILL_OR_DROP, GatherScatterMode.CLIP
    cases = [
        ((4, 3), [[2], [0]], (2, 3), rows, drop), ((4, 3), [[9], [-1]], (2, 3), rows, drop),
        ((4, 3), [[0, 2]], (1, 2, 2), windows, clip), ((2, 3), [[[0], [2]], [[1], [0]]], (2, 2),
                                                       paired, drop),
        ((3, 2), np.zeros((0, 1)), (0, 2), rows, drop),
        ((0, 3), [[0]], (1, 3), rows, drop), ((0, 3), [[0]], (1, 3), rows, clip)]
    if not unique:
        cases += [((4, 3), [[2], [2], [0]], (3, 3), rows, drop),
                  ((4, 3), [[7, 7], [0, 0]], (2, 2, 2), windows, clip)]
    return lambda: [
        Example((grid(*shape, dtype=dtype), np.array(indices, np.int32),
                 (grid(*updates) * 2 - 5).astype(dtype)),
                {"dimension_numbers": dnums, "indices_are_sorted": False,
                 "unique_indices": unique, "mode": mode})
        for dtype in dtypes_tried for shape, indices, updates, dnums, mode in cases]


def scatter_family(name: str, *, write: Callable[[np.ndarray, np.ndarray, np.ndarray], None],
                   combine: Callable[[Any, Any, Any], Any], jvp: Any, transpose: Any,
                   examples: Examples, arithmetic: str = "") -> Primitive:
    """A primitive that changes an operand at computed places, one update after another.

    Args:
      name: as a jaxpr prints it.
      write: ``(flat operand, positions, updates)``, in place, in NumPy.
      combine: ``(s, old, update)`` to the new element; `old` is a function.
      jvp, transpose, examples: as in `Primitive`.
      arithmetic: the operation on numbers that combines; it does not take bools.
    """
    def abstract_eval(x: ShapedArray, indices: ShapedArray, updates: ShapedArray, *,
                      dimension_numbers: ScatterDimensionNumbers, **_: Any) -> list[ShapedArray]:
        check_scatter(x, indices, updates, dimension_numbers)
        if arithmetic:
            check_dtypes(arithmetic, [x, updates], [NUMBER, NUMBER])
        return [x]

    return Primitive(
        name,
        impl=_impl(write),
        abstract_eval=abstract_eval,
        jvp=jvp,
        transpose=transpose,
        batch=_batch_scatter,
        loop=_loop(combine),
        in_place=0,
        examples=examples)


# ── scatter-add ──────────────────────────────────────────────────────────────────────────────

def read_back(x: Array, indices: Array, updates_shape: Shape, params: dict) -> Array:
    """What stands in `x` where a scatter would write; zero where it writes nothing."""
    if 0 in x.shape:  # no gather has a window there
        return zeros(ShapedArray(updates_shape, x.dtype))
    dnums, mode = params["dimension_numbers"], params["mode"]
    dropped = mode is not GatherScatterMode.CLIP
    return gather_p.bind(
        x, indices, dimension_numbers=read_numbers(dnums),
        slice_sizes=window_sizes(dnums, x.shape, updates_shape),
        mode=GatherScatterMode.FILL_OR_DROP if dropped else mode,
        fill_value=0 if dropped else None, unique_indices=params["unique_indices"],
        indices_are_sorted=params["indices_are_sorted"])


scatter_add_p = scatter_family(
    "scatter-add", arithmetic="add",
    write=by_ufunc(np.add),
    combine=lambda s, old, new: s.add(old(), new),
    jvp=linear(0, 2),
    transpose=transposed(
        lambda ct, *_, **__: ct, None,
        lambda ct, x, indices, updates, **params: read_back(ct, indices, updates.aval.shape,
                                                            params)),
    examples=scatter_examples(np.float32, np.int32))


# ── What users call ──────────────────────────────────────────────────────────────────────────

def default_fill(dtype: Any) -> Any:
    """What a read outside gives where it is to be seen: nan, or an extreme integer."""
    if dtypes.issubdtype(dtype, np.inexact):
        return np.nan
    if dtypes.issubdtype(dtype, np.signedinteger):
        return int(dtypes.iinfo(dtype).min)
    if dtypes.issubdtype(dtype, np.unsignedinteger):
        return int(dtypes.iinfo(dtype).max)
    if dtype == np.bool_:
        return True
    if isinstance(dtype, dtypes.KeyType):
        return int(np.iinfo(np.uint32).max)
    raise ValueError(f"Unsupported dtype for gather fill_value {dtype}")


def gather(operand: Any, start_indices: Any, dimension_numbers: GatherDimensionNumbers,
           slice_sizes: Sequence[int], *, unique_indices: bool = False,
           indices_are_sorted: bool = False, mode: str | GatherScatterMode | None = None,
           fill_value: Any = None) -> Array:
    """Windows of the operand, one for each vector along the last axis of the indices.

    Args:
      operand: an array.
      start_indices: integers; every vector along the last axis is the corner of a window.
      dimension_numbers: which axes mean what.
      slice_sizes: the size of a window, for every axis of the operand.
      unique_indices, indices_are_sorted: promises of the caller.
      mode: what to do with windows that stick out.
      fill_value: what they read in mode "fill"; by default nan or an extreme integer.

    >>> import numpy as np
    >>> rows = GatherDimensionNumbers((1,), (0,), (0,))
    >>> gather(np.arange(6).reshape(3, 2), np.array([[2], [0]]), rows, (1, 2))
    Array([[4, 5],
           [0, 1]], dtype=int32)
    """
    parsed = GatherScatterMode.from_any("promise_in_bounds" if mode is None else mode)
    if config.debug_out_of_bounds.value and parsed is GatherScatterMode.PROMISE_IN_BOUNDS:
        check_windows(start_indices, dimension_numbers.start_index_map, np.shape(operand),
                      slice_sizes, kind="window read")
    return gathered(operand, start_indices, dimension_numbers, slice_sizes,
                    unique_indices=unique_indices, indices_are_sorted=indices_are_sorted,
                    mode=parsed, fill_value=fill_value)


def gathered(operand: Any, start_indices: Any, dimension_numbers: GatherDimensionNumbers,
             slice_sizes: Sequence[int], *, unique_indices: bool, indices_are_sorted: bool,
             mode: GatherScatterMode, fill_value: Any) -> Array:
    """The same, of indices that were checked where the user wrote them."""
    if mode is not GatherScatterMode.FILL_OR_DROP:
        fill_value = None
    elif fill_value is None:
        fill_value = default_fill(core.get_aval(operand).dtype)
    return gather_p.bind(operand, start_indices, dimension_numbers=dimension_numbers,
                         slice_sizes=canonical_shape(slice_sizes),
                         unique_indices=bool(unique_indices),
                         indices_are_sorted=bool(indices_are_sorted), mode=mode,
                         fill_value=fill_value)
