"""What an index means: parsed entry by entry, and planned as a gather.

Stands on `lax`; `indexing` reads and writes by it.  Chapter 14, *Out-of-bounds indexing*.
In JAX: `NDIndexer` in `jax/_src/numpy/indexing.py`.
"""

import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from minijax import config, core, dtypes, errors, lax
from minijax.core import Array, Tracer, as_value
from minijax.lax import GatherDimensionNumbers
from minijax.numpy.arguments import convert
from minijax.primitives.axes import as_int64, canonical_shape
from minijax.primitives.dynamic_slice import wrapped
from minijax.primitives.slots import numpy_scalars


# ── Parsing: what each part of an index is, and which axis it is for ─────────────────────────

class Entry(NamedTuple):
    """One part of an index, for one axis of the operand; a new axis and a scalar mask have none."""

    kind: Literal["new axis", "slice", "window", "integer", "array"]
    value: Any = None  # of a slice, the range of its places; of a window, a `Slice`
    axis: int | None = None
    size: int = 1  # of the axis
    position: int = -1  # in the index as it was written

    @property
    def is_box(self) -> bool:
        """Whether it selects contiguous elements, as one window."""
        return self.has_steps and abs(self.value.step) == 1

    @property
    def has_steps(self) -> bool:
        """Whether it selects equally spaced elements, along an axis of their own."""
        return self.kind in ("slice", "window")


def parse(index: Any, shape: Sequence[int]) -> list[Entry]:
    """An index as NumPy takes it, made explicit: every axis of the operand has an entry, in order.

    >>> [entry.kind for entry in parse((0, ..., None), (2, 3))]
    ['integer', 'slice', 'new axis']

    Raises:
      TypeError, IndexError: for what is no index of such an operand.
    """
    items = [_as_array(item) for item in _as_tuple(index)]
    taken = [_axes_taken(item) for item in items]
    if sum(item is Ellipsis for item in items) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if sum(taken) > len(shape):
        raise IndexError(f"Too many indices: array is {len(shape)}-dimensional, "
                         f"but {sum(taken)} were indexed")
    if not any(item is Ellipsis for item in items):
        items, taken = [*items, Ellipsis], [*taken, 0]
    rest = len(shape) - sum(taken)
    entries, axis = [], 0
    for position, (item, count) in enumerate(zip(items, taken, strict=True)):
        count = rest if item is Ellipsis else count
        for k, (kind, value) in enumerate(_meanings(item, shape[axis:axis + count], position)):
            at, size = (axis + k, shape[axis + k]) if count else (None, 1)
            entries.append(Entry(kind, value, at, size, position))
        axis += count
    return entries


def _as_tuple(index: Any) -> tuple:
    if isinstance(index, tuple):
        return index
    if not isinstance(index, Sequence) or isinstance(index, str):
        return (index,)
    nested = any(isinstance(item, (Sequence, Array, slice, np.ndarray)) or item is None
                 or item is Ellipsis for item in index)
    how = "tuple" if nested else "array"
    raise TypeError("Using a non-tuple sequence for multidimensional indexing is not allowed; "
                    f"use `arr[{how}(seq)]` instead of `arr[seq]`. "
                    "See https://github.com/jax-ml/jax/issues/4564 for more information.")


def _as_array(item: Any) -> Any:
    """A list inside of an index is an array; one of nothing, of no places."""
    if isinstance(item, Sequence) and not isinstance(item, str):
        return as_value(np.asarray(item, None if len(item) else np.int32))
    return item


@dataclass(frozen=True)
class Slice:
    """A slice of static size, as `ds` makes it; its start may be traced.

    Raises:
      TypeError: for a size that is traced.
      ValueError: for a stride that is traced, or negative.
    """

    start: Any
    size: int
    stride: int = 1

    def __post_init__(self) -> None:
        canonical_shape((self.size,))
        if isinstance(self.stride, Tracer):
            raise errors.with_cure(
                ValueError("Non-static stride in `dslice`"),
                "x[start + stride * jnp.arange(size)] reads with a stride that is traced.")
        if self.stride < 0:
            raise ValueError("`stride` must be >= 0.")

    def __len__(self) -> int:
        return self.size

    @property
    def step(self) -> int:
        return self.stride


def ds(start: Any, size: int | None = None, stride: int | None = None) -> slice | Slice:
    """A slice by its start and its size, rather than its end.

    Args:
      start: the first index, which may be traced; None for the whole axis.
      size: the number of elements; if None, `start` is the size, and the slice begins at 0.
      stride: the step from each to the next.

    Raises:
      TypeError: for a size that is traced.
      ValueError: for a stride that is traced, or negative.

    >>> import minijax as jax
    >>> jax.jit(lambda x, i: x[ds(i, 2)])(jax.numpy.arange(10), 4)
    Array([4, 5], dtype=int32)
    """
    if start is None:
        return slice(None)
    start, size = (0, start) if size is None else (start, size)
    return Slice(start, size, 1 if stride is None else stride)


def _is_mask(item: Any) -> bool:
    return isinstance(item, (bool, np.bool_)) or (
        isinstance(item, (Array, np.ndarray)) and item.dtype == np.bool_)


def _axes_taken(item: Any) -> int:
    if item is None or item is Ellipsis:
        return 0
    return np.ndim(item) if _is_mask(item) else 1


def _meanings(item: Any, sizes: Sequence[int], position: int) -> list[tuple[Any, Any]]:
    """The kinds and values of the entries that an item stands for."""
    if item is Ellipsis:
        return [("slice", range(size)) for size in sizes]
    if item is None:
        return [("new axis", None)]
    if _is_mask(item):
        return [("array", places) for places in _places_of_mask(item, sizes, position)]
    if isinstance(item, Slice):
        return [("window", _checked_window(item, sizes[0]))]
    if isinstance(item, slice):
        return [("slice", range(*_static_slice(item, position).indices(sizes[0])))]
    return [_meaning(item)]


def _checked_window(item: Slice, size: int) -> Slice:
    dtype = np.result_type(dtypes.dtype(item.start))
    if np.ndim(item.start) or not dtypes.issubdtype(dtype, np.integer):
        raise TypeError("index arguments to dynamic_slice must be integers of the same type, got: "
                        f"{core.get_aval(item.start).str_short(True)}")
    if item.stride == 1 and item.size > size:
        raise TypeError("slice slice_sizes must be less than or equal to operand shape, got "
                        f"slice_sizes ({item.size},) for operand shape ({size},).")
    if isinstance(item.start, (np.integer, np.ndarray)):
        item = replace(item, start=int(item.start))
    return item


def _places_of_mask(mask: Any, sizes: Sequence[int], position: int) -> Sequence[np.ndarray]:
    """The indices where a mask is true; a scalar mask is an axis of size one or zero."""
    if isinstance(mask, Tracer) and not core.is_concrete(mask):
        raise errors.NonConcreteBooleanIndexError(mask)
    values = core.concrete_or_error(mask)
    if values is None or values.ndim == 0:
        return [np.arange(int(np.asarray(values)))]
    if any(n not in (0, m) for n, m in zip(values.shape, sizes, strict=True)):
        raise IndexError("boolean index did not match shape of indexed array in index "
                         f"{position}: got {values.shape}, expected {[*sizes]}")
    return np.nonzero(values)


def _static_slice(item: slice, position: int) -> slice:
    bounds = item.start, item.stop, item.step
    if any(isinstance(bound, Tracer) and not core.is_concrete(bound) for bound in bounds):
        raise IndexError(
            f"Slice entries must be static integers. Got {item} at position {position}. An array's "
            "size cannot depend on a traced value, but where it begins can: use "
            "lax.dynamic_slice_in_dim(x, start, size), with a size that is a plain integer.")
    return slice(*(None if bound is None else operator.index(bound) for bound in bounds))


def _meaning(item: Any) -> tuple[str, Any]:
    """One place, or an array of places."""
    if isinstance(item, (int, np.integer)):
        if not -1 << 31 <= item < 1 << 31 and not config.debug_out_of_bounds.value:
            as_value(int(item))  # refuses what has no place in an array of places
        return "integer", int(item)
    core.refuse_mask(item)
    if isinstance(item, str):
        raise TypeError(f"JAX does not support string indexing; got idx={item!r}")
    if not isinstance(item, (Array, np.ndarray, float, complex, np.generic)):
        raise IndexError("only integers, slices (`:`), ellipsis (`...`), newaxis (`None`) and "
                         f"integer or boolean arrays are valid indices. Got {item}")
    dtype = item.dtype if hasattr(item, "dtype") else np.dtype(type(item))
    if not dtypes.issubdtype(dtype, np.integer):
        raise TypeError(f"Indexer must have integer or boolean type, got indexer with type {dtype}")
    if isinstance(item, np.ndarray) and item.ndim == 0:
        return "integer", int(item)
    return "array", item


# ── Places along one axis ────────────────────────────────────────────────────────────────────

def check_not_empty(entry: Entry) -> None:
    """Refuse one place of an axis that has none."""
    if entry.size == 0:
        raise IndexError(f"index is out of bounds for axis {entry.axis} with size 0")


def ascending(steps: range) -> range:
    """The same places from the lowest on; between the bounds that JAX prints, empty or not."""
    start, stop = steps.start, steps.stop
    if steps.step < 0:
        start, stop = steps[-1] if steps else stop + 1, start + 1
    return range(start, max(start, stop), abs(steps.step))


def signed_places(entry: Entry, wrap: bool) -> Any:
    """Places in a signed type that can hold the size; negative ones counted from the end."""
    value, size = entry.value, entry.size
    if entry.kind == "window":  # where it begins
        value = value.start
    if isinstance(value, int):
        return np.int32(value + size if wrap and value < 0 else value)
    if not isinstance(value, Array):  # a constant of the program, so it is prepared in NumPy
        places = as_int64(numpy_scalars(), np.asarray(value))
        places = np.where(wrap & (places < 0), places + size, places)
        return np.clip(places, -1, size).astype(np.int32)
    if dtypes.issubdtype(value.dtype, np.unsignedinteger) and value.dtype.itemsize >= 4:
        limit = as_value(np.asarray(size, value.dtype)[()])
        value = lax.min(value, lax.broadcast(limit, value.shape))  # the largest would wrap
    value = convert(value, np.dtype(np.int64 if value.dtype == np.int64 else np.int32))
    return wrapped(value, size) if wrap else value


def shared_dtype(columns: Sequence[Any]) -> np.dtype:
    """The dtype in which places along several axes stand side by side."""
    is_wide = any(places.dtype == np.int64 for places in columns)
    return np.dtype(np.int64 if is_wide else np.int32)


# ── Planning: the gather that reads what an index shows ──────────────────────────────────────

class Plan(NamedTuple):
    """The gather that reads an index; a scatter writes by the same numbers."""

    indices: Any
    dimension_numbers: GatherDimensionNumbers
    slice_sizes: tuple[int, ...]
    shape: tuple[int, ...]  # of what is read, new axes included
    new_axes: list[int]
    reversed_axes: list[int]  # counted without the new ones


def make_plan(entries: Sequence[Entry], wrap: bool) -> Plan:
    """The gather of an index: windows of one size, and a table of their corners."""
    axes = _result_axes(entries)
    kept = [(n, entry) for n, entry in axes if entry is None or entry.has_steps]
    batch = [(n, entry) for n, entry in kept if entry is None or not entry.is_box]
    together = [i for i, (_, entry) in enumerate(batch) if entry is None]
    columns: dict[int, tuple[Any, Sequence[int]]] = {}  # corners, and along which axes of the batch
    for entry in entries:
        axis, value = entry.axis, entry.value
        if axis is None:
            continue
        if entry.kind == "slice":
            steps = ascending(value)
            if not entry.is_box:
                columns[axis] = np.array(steps, np.int32), [batch.index((len(value), entry))]
            elif len(value) != entry.size:
                columns[axis] = np.int32(steps.start), []
        elif entry.kind == "window":
            start = signed_places(entry, wrap=False)  # JAX: counts from the end only to read it
            columns[axis] = (start, []) if entry.is_box else (
                start + value.stride * np.arange(len(value), dtype=start.dtype),
                [batch.index((len(value), entry))])
        else:
            rank = np.ndim(value)
            if rank == 0:
                check_not_empty(entry)
            columns[axis] = signed_places(entry, wrap), together[len(together) - rank:]
    operand = [entry for entry in entries if entry.axis is not None]
    return Plan(
        _table([*columns.values()], tuple(n for n, _ in batch)),
        GatherDimensionNumbers(
            offset_dims=tuple(i for i, (_, entry) in enumerate(kept) if entry and entry.is_box),
            collapsed_slice_dims=tuple(i for i, entry in enumerate(operand) if not entry.is_box),
            start_index_map=tuple(columns)),
        tuple(len(entry.value) if entry.is_box else 1 for entry in operand),
        tuple(n for n, _ in axes),
        [i for i, (_, entry) in enumerate(axes) if entry and entry.kind == "new axis"],
        [i for i, (_, entry) in enumerate(kept) if entry and entry.value.step < 0])


def _result_axes(entries: Sequence[Entry]) -> list[tuple[int, Entry | None]]:
    """The axes of what is read, each with its entry; index arrays have theirs together, with none.

    As in NumPy these stand where the arrays stood, if those stood side by side; otherwise in front.
    """
    arrays = [i for i, entry in enumerate(entries) if entry.kind in ("integer", "array")]
    block = [(n, None) for n in lax.broadcast_shapes(
        *[np.shape(entries[i].value) for i in arrays])]
    axes = [(1 if entry.kind == "new axis" else len(entry.value), entry)
            for i, entry in enumerate(entries) if i not in arrays]
    written = sorted({entries[i].position for i in arrays})
    side_by_side = arrays and written[-1] - written[0] == len(written) - 1
    place = arrays[0] if side_by_side else 0
    return [*axes[:place], *block, *axes[place:]]


def _table(columns: Sequence[tuple[Any, Sequence[int]]], batch: tuple[int, ...]) -> Any:
    """The columns side by side along a new last axis; each lies along some axes of the batch."""
    shape = (*batch, 1)
    if not any(isinstance(places, Array) for places, _ in columns):
        full_columns = [np.broadcast_to(np.expand_dims(
            places, tuple({*range(len(shape))} - {*dims})), shape) for places, dims in columns]
        return np.concatenate([np.zeros((*batch, 0), np.int32), *full_columns], -1)
    dtype = shared_dtype([places for places, _ in columns])
    return lax.concatenate([lax.broadcast_in_dim(convert(places, dtype), shape, dims)
                            for places, dims in columns], len(batch))
