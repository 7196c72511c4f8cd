"""Windows at computed positions: dimension numbers, modes out of bounds, indices of elements.

Builds on `axes`; gathers read windows, scatters write them.  Chapter 14, *Out-of-bounds
indexing*.  In JAX: `jax/_src/lax/slicing.py`.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax import dtypes
from minijax.core import ShapedArray, refuse
from minijax.primitives.axes import Index, Shape, batched_axes, as_int64, without
from minijax.primitives.slots import check_same_dtypes, numpy_scalars


# ── Dimension numbers and modes ──────────────────────────────────────────────────────────────

class GatherDimensionNumbers(NamedTuple):
    """The roles of the axes of a gather.

    Every vector along the last axis of the indices is the first corner of a window of the operand.

    Args:
      offset_dims: the axes of the result that run within a window.
      collapsed_slice_dims: the axes of the operand, of window size one, missing in the result.
      start_index_map: the axis of the operand that each component of an index vector indexes.
      operand_batching_dims: batch axes of the operand, paired with …
      start_indices_batching_dims: … these axes of the indices.
    """

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()


class ScatterDimensionNumbers(NamedTuple):
    """The roles of the axes of a scatter: those of the gather that reads the same elements.

    Args:
      update_window_dims: the axes of the updates that run within a window.
      inserted_window_dims: the axes of the operand, of window size one, missing in the updates.
      scatter_dims_to_operand_dims: the operand's axis that each index component indexes.
      operand_batching_dims: batch axes of the operand, paired with …
      scatter_indices_batching_dims: … these axes of the indices.
    """

    update_window_dims: Sequence[int]
    inserted_window_dims: Sequence[int]
    scatter_dims_to_operand_dims: Sequence[int]
    operand_batching_dims: Sequence[int] = ()
    scatter_indices_batching_dims: Sequence[int] = ()


Numbers = GatherDimensionNumbers | ScatterDimensionNumbers


def batched_numbers(dnums: Numbers, operand_batched: bool, indices_batched: bool) -> Numbers:
    """The numbers for a result with a leading batch axis, which operand or indices have, too.

    Indices shared by all operands give a window over the whole batch; an operand shared by all
    indices gives one more axis of the indices.
    """
    window, hidden, components, batching, paired = (
        batched_axes(dims, 0) if is_batched else tuple(dims) for dims, is_batched in zip(
            dnums, (True, *[operand_batched] * 3, indices_batched), strict=True))
    if operand_batched and indices_batched:
        batching, paired = (0, *batching), (0, *paired)
    elif operand_batched:
        window = (0, *window)
    return type(dnums)(window, hidden, components, batching, paired)


class GatherScatterMode(enum.Enum):
    """The treatment of windows that are out of bounds.

    CLIP moves them inside; FILL_OR_DROP reads a fill value, or drops the update;
    PROMISE_IN_BOUNDS is the caller's promise that there are none: if it is broken, reads are
    moved inside and updates dropped, and no memory outside the operand is accessed.
    """

    CLIP, FILL_OR_DROP, PROMISE_IN_BOUNDS, ONE_HOT = range(1, 5)

    @staticmethod
    def from_any(mode: str | GatherScatterMode | None) -> GatherScatterMode:
        """The mode of a name.

        >>> GatherScatterMode.from_any("drop")
        <GatherScatterMode.FILL_OR_DROP: 2>
        """
        if isinstance(mode, GatherScatterMode):
            return mode
        names = {None: "FILL_OR_DROP", "fill": "FILL_OR_DROP", "drop": "FILL_OR_DROP",
                 "clip": "CLIP", "promise_in_bounds": "PROMISE_IN_BOUNDS", "one_hot": "ONE_HOT"}
        if mode not in names:
            raise ValueError(f'Unknown gather mode "{mode}"')
        return GatherScatterMode[names[mode]]


# ── From an element of the result to an element of the operand ───────────────────────────────

def place_of(s: Any, dnums: Numbers, shape: Shape, sizes: Shape, indices: Callable[[Index], Any],
             index: Index) -> tuple[Index, Any]:
    """The operand's index for an index of the result (or of the updates), and whether in bounds.

    Along an axis it is the start of the window plus the offset within it.  A window out of bounds
    is moved inside.  `s` are the operations on scalars: compiled code emits them, and the meaning
    runs them over whole arrays.
    """
    window, hidden, components, batching, paired = dnums
    vector = tuple(i for d, i in enumerate(index) if d not in window)
    offsets = iter(index[d] for d in window)
    places, inside = [], s.const(True, np.bool_)
    for d, (n, size) in enumerate(zip(shape, sizes, strict=True)):
        place = s.const(0, np.int64)
        if d in components:
            component = s.const(components.index(d), np.int64)
            start, last = indices((*vector, component)), max(n - size, 0)
            if start.dtype.kind != "i" or last > np.iinfo(start.dtype).max:
                start = as_int64(s, start)
            held = s.clamp(start, 0, last)
            place, inside = as_int64(s, held), s.and_(inside, s.eq(held, start))
        if d in batching:
            place = s.add(place, vector[paired[batching.index(d)]])
        elif d not in hidden:
            place = s.add(place, next(offsets))
        places.append(place)
    return tuple(places), inside


def places_of(dnums: Numbers, shape: Shape, sizes: Shape, indices: np.ndarray, result: Shape
              ) -> tuple[Index, Any]:
    """The same for all elements of the result at once, in arrays that broadcast to its shape."""
    window, paired = dnums[0], dnums[4]
    vectors = [1 if d in window else n for d, n in enumerate(result)]
    extents = [n if d in window or paired else 1 for d, n in enumerate(result)]
    return place_of(numpy_scalars(), dnums, shape, sizes,
                    lambda vector: indices[..., vector[-1]].reshape(vectors),
                    np.ix_(*map(np.arange, extents)))


def gathered_shape(dnums: Numbers, sizes: Shape, indices: Shape) -> Shape:
    """The shape of the result of a gather, or of the updates of a scatter."""
    window, hidden, _, batching, _ = dnums
    inner = iter(without(sizes, (*hidden, *batching)))
    outer = iter(indices[:-1])
    rank = len(window) + len(indices) - 1
    return tuple(next(inner if d in window else outer) for d in range(rank))


def window_sizes(dnums: Numbers, shape: Shape, updates: Shape) -> Shape:
    """The size of a window along every axis of the operand of a scatter."""
    window, hidden, _, batching, _ = dnums
    sizes = iter([updates[d] for d in window])
    return tuple(1 if d in (*hidden, *batching) else next(sizes) for d in range(len(shape)))


def whole_axes(dnums: Numbers, shape: Shape, sizes: Shape, rank: int) -> int:
    """The number of the operand's last axes that each window spans, as the last of the result.

    Elements along them are copied as one block.
    """
    window, hidden, components, batching, _ = dnums
    spanned = set(range(len(shape))) - {*hidden, *components, *batching}
    count = 0
    while (len(shape) - 1 - count in spanned and rank - 1 - count in window
            and sizes[-1 - count] == shape[-1 - count]):
        count += 1
    return count


# ── Checks ───────────────────────────────────────────────────────────────────────────────────

def _check_numbers(op: str, x: ShapedArray, indices: ShapedArray, dnums: Numbers,
                   *of_scatter: tuple[bool, str]) -> None:
    """Refuse axes that are out of bounds, repeated or unsorted, or do not fit each other."""
    names, (window, _, components, batching, paired) = dnums._fields, dnums
    last = indices.ndim - 1
    refuse((not dtypes.issubdtype(indices.dtype, np.integer),
            "indices must have an integer type"), error=ValueError)
    refuse((last < 0, f"{op.title()} index leaf dimension must be within [0, rank(indices) + 1). "
                      f"rank(indices) is 0 and {op} index leaf dimension is -1."))
    for k, limit, is_sorted in ((0, len(window) + last, True), (1, x.ndim, True),
                                (3, x.ndim, True), (2, x.ndim, False), (4, last + 1, False)):
        name, dims = names[k], dnums[k]
        refuse(
            (is_sorted and list(dims) != sorted(dims),
             f"{name} in {op} op must be sorted; got {dims}"),
            *((not 0 <= d < limit, _out_of_bounds(op, name, n, d, limit))
              for n, d in enumerate(dims)),
            (len(set(dims)) != len(dims), f"{name} in {op} op must not repeat; got: {dims}."))
    rows, columns = tuple(x.shape[d] for d in batching), tuple(indices.shape[d] for d in paired)
    refuse(
        *((not set(dnums[k]).isdisjoint(batching),
           f"{names[k]} and {names[3]} in {op} op must be disjoint; got: {dnums[k]} and "
           f"{batching}.") for k in (1, 2)),
        (last in paired, f"{op.title()} op cannot have the index vector dimension as a batching "
                         f"dimension; got {paired}."),
        (len(batching) != len(paired), f"{op.title()} op requires equal numbers of {names[3]} and "
         f"{names[4]}, got {batching} and {paired}."),
        (rows != columns, f"{op.title()} op requires operand batching dimensions and indices "
         f"batching dimensions to have the same shape, got {rows} and {columns}."),
        *of_scatter,
        (len(components) != indices.shape[-1], f"{op.title()} op has {len(components)} elements in "
         f"{names[2]} and the bound of dimension index_vector_dim={last} of indices is "
         f"{indices.shape[-1]}. These two numbers must be equal{'' if of_scatter else '.'}"))


def _out_of_bounds(op: str, name: str, position: int, dim: int, limit: int) -> str:
    """JAX's words about one axis of dimension numbers."""
    if name == "offset_dims":
        return (f"Offset dimension {position} in gather op is out of bounds; got {dim}, but "
                f"should have been in [0, {limit})")
    if name in ("start_index_map", "scatter_dims_to_operand_dims"):
        return (f"Invalid {name}{' mapping' if op == 'scatter' else ''}; domain is [0, {limit}), "
                f"got: {position}->{dim}.")
    return f"Invalid {name} set in {op} op; valid range is [0, {limit}); got: {dim}."


def check_gather(x: ShapedArray, indices: ShapedArray, dnums: Numbers, sizes: Shape) -> None:
    """Refuse dimension numbers that do not fit the operand, the indices, or each other."""
    window, collapsed, _, batching, _ = dnums
    _check_numbers("gather", x, indices, dnums)
    refuse(
        (x.ndim != len(sizes), "Gather op must have one slice size for every input dimension; got: "
         f"len(slice_sizes)={len(sizes)}, input_shape.rank={x.ndim}"),
        (len(sizes) != len(window) + len(collapsed) + len(batching), "All components of the offset "
         "index in a gather op must either be a offset dimension or explicitly collapsed/batching; "
         f"got len(slice_sizes)={len(sizes)}, output_slice_sizes={window}, "
         f"collapsed_slice_dims={collapsed}, operand_batching_dims={batching}."))
    refuse(
        *((not 0 <= size <= n and indices.size > 0,
           f"Slice size at index {d} in gather op is out of range, must be within "
           f"[0, {n} + 1), got {size}.")
          for d, (size, n) in enumerate(zip(sizes, x.shape, strict=True))),
        *((sizes[d] != 1, "Gather op can only collapse slice dims with bound 1, but bound is "
                          f"{sizes[d]} for index {d} at position {k}.")
          for k, d in enumerate(collapsed)),
        *((sizes[d] > 1, "Gather op can only have operand batching dims with bound 0/1, but "
                         f"bound is {sizes[d]} for index {d} at position {k}.")
          for k, d in enumerate(batching)))


def check_scatter(x: ShapedArray, indices: ShapedArray, updates: ShapedArray,
                  dnums: Numbers) -> None:
    """Refuse dimension numbers that do not fit the three arrays, or each other."""
    check_same_dtypes("scatter", x, updates)
    window, inserted, _, batching, _ = dnums
    rank, size = len(window) + indices.ndim - 1, len(window) + len(inserted) + len(batching)
    _check_numbers(
        "scatter", x, indices, dnums,
        (updates.ndim != rank, f"Updates tensor must be of rank {rank}; got {updates.ndim}."),
        (x.ndim != size,
         f"Scatter op has window of size {size}; doesn't match operand of rank {x.ndim}."))
    refuse(*((updates.shape[d] > bound,
              "Bounds of the window dimensions of updates must not exceed the bounds of the "
              f"corresponding dimensions of operand. For dimension {d}, updates bound is "
              f"{updates.shape[d]}, operand bound is {bound}.")
             for d, bound in zip(window, without(x.shape, (*inserted, *batching)), strict=True)))
    outer = without(range(updates.ndim), window)
    refuse(*((updates.shape[d] != bound,
              "Bounds of the scatter dimensions of updates must be the same as the bounds of "
              f"the corresponding dimensions of scatter indices. For scatter dimension {d}, "
              f"updates bound is {updates.shape[d]}, indices bound is {bound}.")
             for d, bound in zip(outer, indices.shape[:-1], strict=True)))
