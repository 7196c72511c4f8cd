"""Primitive gather: windows of an array at computed places; and how places are walked.

Stands on `shape`; `scatter` writes where gather reads.  Chapter 14, *Out-of-bounds indexing*.
In JAX: `jax/_src/lax/slicing.py`.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax import config, core, dtypes
from minijax.core import Array, Axis, Example, Primitive, ShapedArray, Zero
from minijax.primitives.emitted import zeros
from minijax.primitives.rearranging import Index, Shape, canonical_shape, grid
from minijax.primitives.shape import to_front

LARGEST = np.iinfo(np.int64).max


# ── Places of any integer type ───────────────────────────────────────────────────────────────

def as_int64(places: np.ndarray) -> np.ndarray:
    """Indices of any integer type as `int64`; what does not fit stays far outside."""
    if places.dtype == np.uint64:
        places = np.minimum(places, np.uint64(LARGEST))
    return places.astype(np.int64)


def emit_int64(s: Any, place: Any) -> Any:
    """The same, emitted for one index."""
    if place.dtype == np.uint64:
        place = s.min(place, s.const(LARGEST, np.uint64))
    return s.convert(place, np.int64)


# ── What the axes mean, and what is done outside ─────────────────────────────────────────────

class GatherDimensionNumbers(NamedTuple):
    """Which axes of a gather mean what.

    Every vector along the last axis of the indices is the corner of a window of the operand.

    Args:
      offset_dims: the axes of the result that walk inside a window.
      collapsed_slice_dims: the axes of the operand, of window size one, missing in the result.
      start_index_map: the axis of the operand that each component of an index vector is for.
      operand_batching_dims: axes of the operand that are walked together with …
      start_indices_batching_dims: … these axes of the indices.
    """

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()


class GatherScatterMode(enum.Enum):
    """What to do with windows that are not inside the operand.

    CLIP moves them inside; FILL_OR_DROP reads a fill value, or writes nothing;
    PROMISE_IN_BOUNDS is the caller's word that there are none: should it be broken, reads are
    moved inside and writes dropped, and no memory outside the operand is touched.
    """

    CLIP = enum.auto()
    FILL_OR_DROP = enum.auto()
    PROMISE_IN_BOUNDS = enum.auto()
    ONE_HOT = enum.auto()

    @staticmethod
    def from_any(mode: str | GatherScatterMode | None) -> GatherScatterMode:
        """The mode of a name.

        >>> GatherScatterMode.from_any("drop")
        <GatherScatterMode.FILL_OR_DROP: 2>
        """
        if isinstance(mode, GatherScatterMode):
            return mode
        names = {"clip": GatherScatterMode.CLIP, None: GatherScatterMode.FILL_OR_DROP,
                 "fill": GatherScatterMode.FILL_OR_DROP, "drop": GatherScatterMode.FILL_OR_DROP,
                 "promise_in_bounds": GatherScatterMode.PROMISE_IN_BOUNDS,
                 "one_hot": GatherScatterMode.ONE_HOT}
        if mode not in names:
            raise ValueError(f'Unknown gather mode "{mode}"')
        return names[mode]


# ── The walk from an element of the result to an element of the operand ──────────────────────

class Walk(NamedTuple):
    """How an index of the result (or of the updates) leads to an element of the operand.

    Along axis `d` of the operand the place is `start + inside`, where `start` is component
    `component[d]` of the index vector (zero if None) and `inside` is the index along axis
    `result_axis[d]` of the result (zero if None).
    """

    component: tuple[int | None, ...]
    result_axis: tuple[int | None, ...]
    index_axes: tuple[int, ...]  # the axes of the result that walk over index vectors
    last_start: tuple[int, ...]  # along every axis of the operand, the last place for a window


def walk_of(dnums: GatherDimensionNumbers, shape: Shape, sizes: Shape, ndim: int) -> Walk:
    """The walk over an operand of a given shape, from a result with `ndim` axes."""
    index_axes = tuple(d for d in range(ndim) if d not in dnums.offset_dims)
    hidden = {*dnums.collapsed_slice_dims, *dnums.operand_batching_dims}
    result_axis: list[int | None] = [None] * len(shape)
    for d, axis in zip([d for d in range(len(shape)) if d not in hidden], dnums.offset_dims,
                       strict=True):
        result_axis[d] = axis
    for d, i in zip(dnums.operand_batching_dims, dnums.start_indices_batching_dims, strict=True):
        result_axis[d] = index_axes[i]
    component = {d: k for k, d in enumerate(dnums.start_index_map)}
    return Walk(tuple(map(component.get, range(len(shape)))), tuple(result_axis), index_axes,
                tuple(n - size for n, size in zip(shape, sizes, strict=True)))


def places_of(walk: Walk, indices: np.ndarray, out_shape: Shape
              ) -> tuple[list[np.ndarray], np.ndarray]:
    """In NumPy: the place along every axis of the operand, and where the window was inside.

    Windows that stick out are moved inside; the arrays broadcast to the result's shape.
    """
    indices = as_int64(indices)
    ndim = len(out_shape)
    inside_window = np.ones((1,) * ndim, bool)
    places = []
    for k, axis, last in zip(walk.component, walk.result_axis, walk.last_start, strict=True):
        place = np.zeros((1,) * ndim, np.int64)
        if k is not None:
            start = indices[..., k].reshape([out_shape[d] if d in walk.index_axes else 1
                                             for d in range(ndim)])
            place = np.clip(start, 0, max(last, 0))
            inside_window = inside_window & (place == start)
        if axis is not None:
            place = place + np.arange(out_shape[axis]).reshape(
                [-1 if d == axis else 1 for d in range(ndim)])
        places.append(place)
    return places, inside_window


def emit_place(s: Any, walk: Walk, indices: Any, index: Index) -> tuple[Index, Any]:
    """The same, emitted for one element of the result."""
    vector = tuple(index[d] for d in walk.index_axes)
    inside_window, places = s.const(True, np.bool_), []
    for k, axis, last in zip(walk.component, walk.result_axis, walk.last_start, strict=True):
        place = s.const(0, np.int64)
        if k is not None:
            start = emit_int64(s, indices((*vector, s.const(k, np.int64))))
            place = s.clamp(start, 0, max(last, 0))
            inside_window = s.and_(inside_window, s.eq(place, start))
        places.append(place if axis is None else s.add(place, index[axis]))
    return tuple(places), inside_window


# ── The type of a gather ─────────────────────────────────────────────────────────────────────

def refuse(op: str, checks: Sequence[tuple[bool, str]]) -> None:
    """Raise for the first check that failed.

    Raises:
      TypeError: naming the operation.
    """
    for failed, message in checks:
        if failed:
            raise TypeError(message.format(op=op))


def check_dims(op: str, name: str, dims: Sequence[int], ndim: int, is_sorted: bool = True) -> None:
    """Refuse axes that are not different, in order, and there."""
    outside = [d for d in dims if not 0 <= d < ndim]
    refuse(op, [
        (is_sorted and list(dims) != sorted(dims), f"{name} in {{op}} op must be sorted; "
                                                   f"got {dims}"),
        (bool(outside), f"Invalid {name} set in {{op}} op; valid range is [0, {ndim}); "
                        f"got: {outside[:1]}."),
        (len(set(dims)) != len(dims), f"{name} in {{op}} op must not repeat; got: {dims}.")])


def _gather_type(x: ShapedArray, indices: ShapedArray, *,
                 dimension_numbers: GatherDimensionNumbers, slice_sizes: Shape,
                 **_: Any) -> list[ShapedArray]:
    if not dtypes.issubdtype(indices.dtype, np.integer):
        raise ValueError("indices must have an integer type")
    check_gather(x, indices, dimension_numbers, slice_sizes)
    dnums = dimension_numbers
    hidden = {*dnums.collapsed_slice_dims, *dnums.operand_batching_dims}
    window = iter([n for d, n in enumerate(slice_sizes) if d not in hidden])
    batch = iter(indices.shape[:-1])
    ndim = len(dnums.offset_dims) + indices.ndim - 1
    return [x.update(shape=tuple(next(window) if d in dnums.offset_dims else next(batch)
                                 for d in range(ndim)))]


def check_gather(x: ShapedArray, indices: ShapedArray, dnums: GatherDimensionNumbers,
                 sizes: Shape) -> None:
    """Refuse dimension numbers that do not fit the operand, the indices, or each other."""
    if indices.ndim == 0:
        raise TypeError("Gather index leaf dimension must be within [0, rank(indices) + 1). "
                        "rank(indices) is 0 and gather index leaf dimension is -1.")
    batching, paired = dnums.operand_batching_dims, dnums.start_indices_batching_dims
    vector_dim, length = indices.ndim - 1, indices.shape[-1]
    check_dims("gather", "offset_dims", dnums.offset_dims,
               len(dnums.offset_dims) + indices.ndim - 1)
    check_dims("gather", "collapsed_slice_dims", dnums.collapsed_slice_dims, x.ndim)
    check_dims("gather", "operand_batching_dims", batching, x.ndim)
    check_dims("gather", "start_index_map", dnums.start_index_map, x.ndim, is_sorted=False)
    check_dims("gather", "start_indices_batching_dims", paired, vector_dim, is_sorted=False)
    refuse("gather", [
        (len(dnums.start_index_map) != length,
         f"Gather op has {len(dnums.start_index_map)} elements in start_index_map and the bound "
         f"of dimension index_vector_dim={vector_dim} of indices is {length}. These two numbers "
         "must be equal."),
        (not set(dnums.collapsed_slice_dims).isdisjoint(batching),
         "collapsed_slice_dims and operand_batching_dims in {op} op must be disjoint; got: "
         f"{dnums.collapsed_slice_dims} and {batching}."),
        (not set(dnums.start_index_map).isdisjoint(batching),
         "start_index_map and operand_batching_dims in {op} op must be disjoint; got: "
         f"{dnums.start_index_map} and {batching}."),
        ([x.shape[d] for d in batching] != [indices.shape[d] for d in paired],
         "Gather op requires operand batching dimensions and indices batching dimensions to "
         f"have the same shape, got {batching} and {paired}."),
        (x.ndim != len(sizes),
         "Gather op must have one slice size for every input dimension; got: "
         f"len(slice_sizes)={len(sizes)}, input_shape.rank={x.ndim}"),
        (len(sizes) != len(dnums.offset_dims) + len(dnums.collapsed_slice_dims) + len(batching),
         "All components of the offset index in a gather op must either be a offset dimension "
         f"or explicitly collapsed/batching; got len(slice_sizes)={len(sizes)}, "
         f"output_slice_sizes={dnums.offset_dims}, "
         f"collapsed_slice_dims={dnums.collapsed_slice_dims}, "
         f"operand_batching_dims={batching}.")])
    for d, (size, n) in enumerate(zip(sizes, x.shape, strict=True)):
        one = d in dnums.collapsed_slice_dims
        refuse("gather", [
            (not 0 <= size <= n and indices.size > 0,
             f"Slice size at index {d} in gather op is out of range, must be within "
             f"[0, {n} + 1), got {size}."),
            (one and size != 1,
             f"Gather op can only collapse slice dims with bound 1, but bound is {size} for "
             f"index {d}."),
            (d in batching and size > 1,
             "Gather op can only have operand batching dims with bound 0/1, but bound is "
             f"{size} for index {d}.")])


# ── gather ───────────────────────────────────────────────────────────────────────────────────

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
    if isinstance(tangents[0], Zero):
        return [out], [Zero(out.aval.to_tangent_aval())]
    if params["mode"] is GatherScatterMode.FILL_OR_DROP:
        params["fill_value"] = 0
    return [out], [gather_p.bind(tangents[0], primals[1], **params)]


def _transpose_gather(cotangents: list, x: Any, indices: Array, *,
                      dimension_numbers: GatherDimensionNumbers, slice_sizes: Shape,
                      unique_indices: bool, indices_are_sorted: bool, mode: GatherScatterMode,
                      fill_value: Any) -> list:
    from minijax.primitives.scatter import ScatterDimensionNumbers, scatter_add_p  # on this module
    [ct] = cotangents
    if isinstance(ct, Zero):
        return [Zero(x.aval), None]
    return [scatter_add_p.bind(
        zeros(x.aval), indices, ct,
        dimension_numbers=ScatterDimensionNumbers(*dimension_numbers),
        indices_are_sorted=indices_are_sorted, unique_indices=unique_indices, mode=mode), None]


def up(dims: Sequence[int]) -> tuple[int, ...]:
    """Axes after a new one in front."""
    return tuple(d + 1 for d in dims)


def _batch_gather(axis: Axis, args: list, dims: list, *,
                  dimension_numbers: GatherDimensionNumbers, slice_sizes: Shape,
                  unique_indices: bool, indices_are_sorted: bool,
                  **params: Any) -> tuple[list, list]:
    x, indices = (a if d is None else to_front(a, d) for a, d in zip(args, dims, strict=True))
    dnums = dimension_numbers
    if dims[0] is None:  # the same operand for all: the batch is one more axis of indices
        dnums = dnums._replace(
            offset_dims=up(dnums.offset_dims),
            start_indices_batching_dims=up(dnums.start_indices_batching_dims))
        unique_indices = indices_are_sorted = False
    else:
        dnums = dnums._replace(
            collapsed_slice_dims=up(dnums.collapsed_slice_dims),
            start_index_map=up(dnums.start_index_map),
            operand_batching_dims=up(dnums.operand_batching_dims),
            offset_dims=up(dnums.offset_dims))
        if dims[1] is None:  # the same places of all operands: a window over the whole batch
            dnums = dnums._replace(offset_dims=(0, *dnums.offset_dims))
            slice_sizes = (axis.size, *slice_sizes)
        else:
            dnums = dnums._replace(
                operand_batching_dims=(0, *dnums.operand_batching_dims),
                start_indices_batching_dims=(0, *up(dnums.start_indices_batching_dims)))
            slice_sizes = (min(axis.size, 1), *slice_sizes)
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
    transpose=_transpose_gather,
    batch=_batch_gather,
    element=_gather_element,
    examples=_gather_examples)


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
        from minijax.primitives.checks import check_windows
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
