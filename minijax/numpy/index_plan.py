"""NumPy's indices: parsed into one entry for each axis, and planned as a gather.

Builds on `lax`; `indexing` reads and writes by it.  Chapter 14, *Out-of-bounds indexing*.
In JAX: `NDIndexer` in `jax/_src/numpy/indexing.py`.
"""

import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from minijax import config, core, dtypes, errors, lax
from minijax.core import Array, Tracer, as_value
from minijax.numpy.arguments import convert, promote_dtypes
from minijax.primitives.axes import as_int64, canonical_shape
from minijax.primitives.dynamic_slice import wrapped
from minijax.primitives.slots import numpy_scalars


# ── Parsing: the kind and the axis of each part of an index ──────────────────────────────────

class Entry(NamedTuple):
    """One part of an index, for one axis of the operand; a new axis and a scalar mask have none."""

    kind: Literal["new axis", "slice", "window", "integer", "array"]
    value: Any = None  # of a slice, the range of its indices; of a window, a `Slice`
    axis: int | None = None
    size: int = 1  # of the axis
    position: int = -1  # in the index of the user

    @property
    def is_box(self) -> bool:
        """Whether it selects contiguous elements, as one window."""
        return self.has_steps and abs(self.value.step) == 1

    @property
    def has_steps(self) -> bool:
        """Whether it selects equally spaced elements, along an axis of their own."""
        return self.kind in ("slice", "window")


def parse(index: Any, shape: Sequence[int]) -> list[Entry]:
    """An index as entries: one for each axis of the operand, in order, and for each new axis.

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
    entries, axis = [], 0
    for position, (item, count) in enumerate(zip(items, taken, strict=True)):
        count = len(shape) - sum(taken) if item is Ellipsis else count
        for k, (kind, value) in enumerate(_meanings(item, shape[axis:axis + count], position)):
            at, size = (axis + k, shape[axis + k]) if count else (None, 1)
            if size == 0 and kind in ("integer", "array") and np.ndim(value) == 0:
                raise IndexError(f"index is out of bounds for axis {at} with size 0")
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
    """A list inside an index as an array of integers."""
    if isinstance(item, Sequence) and not isinstance(item, str):
        if any(isinstance(each, Array) for each in item):
            return lax.stack(promote_dtypes(*map(_as_array, item)))
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
    return 0 if item is None or item is Ellipsis else np.ndim(item) if _is_mask(item) else 1


def _meanings(item: Any, sizes: Sequence[int], position: int) -> list[tuple[Any, Any]]:
    """The kinds and values of the entries of an item."""
    if item is Ellipsis:
        return [("slice", range(size)) for size in sizes]
    if item is None:
        return [("new axis", None)]
    if _is_mask(item):
        return [("array", indices) for indices in _places_of_mask(item, sizes, position)]
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
    """The indices at which a mask is true; a scalar mask is an axis of size one or zero."""
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
    """The kind and value of an integer, or of an array of them."""
    if isinstance(item, (int, np.integer)):
        if not -1 << 31 <= item < 1 << 31 and not config.debug_out_of_bounds.value:
            as_value(int(item))  # raises where it does not fit
        return "integer", int(item)
    core.refuse_mask(item)
    if isinstance(item, str):
        raise TypeError(f"JAX does not support string indexing; got idx={item!r}")
    if not isinstance(item, (Array, np.ndarray, float, complex, np.generic)):
        if hasattr(item, "__jax_array__"):
            as_value(item)  # raises
        raise IndexError("only integers, slices (`:`), ellipsis (`...`), newaxis (`None`) and "
                         f"integer or boolean arrays are valid indices. Got {item}")
    dtype = item.dtype if hasattr(item, "dtype") else np.dtype(type(item))
    if not dtypes.issubdtype(dtype, np.integer):
        raise TypeError(f"Indexer must have integer or boolean type, got indexer with type {dtype}")
    if isinstance(item, np.ndarray) and item.ndim == 0:
        return "integer", int(item)
    return "array", item


# ── Indices along one axis ───────────────────────────────────────────────────────────────────

def ascending(steps: range) -> range:
    """The same indices in ascending order, with the bounds that JAX's jaxprs have."""
    start, stop = steps.start, steps.stop
    if steps.step < 0:
        start, stop = steps[-1] if steps else stop + 1, start + 1
    return range(start, max(start, stop), abs(steps.step))


def signed_indices(entry: Entry, wrap: bool) -> Any:
    """Indices in a signed dtype that can hold the size; if `wrap`, negative ones made positive."""
    value, size = entry.value.start if entry.kind == "window" else entry.value, entry.size
    if isinstance(value, int):
        return np.int32(value + size if wrap and value < 0 else value)
    if not isinstance(value, Array):  # a constant, computed by NumPy
        indices = as_int64(numpy_scalars(), np.asarray(value))
        indices = np.where(wrap & (indices < 0), indices + size, indices)
        return np.clip(indices, -1, size).astype(np.int32)
    is_unsigned = dtypes.issubdtype(value.dtype, np.unsignedinteger)
    signed = np.dtype(np.int64 if value.dtype == np.int64 else np.int32)
    is_narrow = value.dtype.itemsize < 4
    if is_unsigned and not is_narrow:
        value = lax.min(value, as_value(np.asarray(size, value.dtype)[()]))  # might overflow
    if not is_narrow or size > dtypes.iinfo(value.dtype).max:  # to which the size is added
        value = convert(value, signed)
    return convert(wrapped(value, size) if wrap and not is_unsigned else value, signed)


def shared_dtype(columns: Sequence[Any]) -> np.dtype:
    """The dtype of the indices along several axes."""
    return np.result_type(np.int32, *(indices.dtype for indices in columns))


# ── Planning: the gather of an index ─────────────────────────────────────────────────────────

class Plan(NamedTuple):
    """The parameters of the gather that reads at an index, or of the scatter that writes there."""

    indices: Any
    dimension_numbers: lax.GatherDimensionNumbers
    slice_sizes: tuple[int, ...]
    shape: tuple[int, ...]  # of the result, new axes included
    new_axes: list[int]
    reversed_axes: list[int]  # counted without the new axes


def make_plan(entries: Sequence[Entry], wrap: bool) -> Plan:
    """The gather of an index: the size of its windows, and a table of their corners."""
    axes = _result_axes(entries)
    kept = [(n, entry) for n, entry in axes if entry is None or entry.has_steps]
    batch = [(n, entry) for n, entry in kept if entry is None or not entry.is_box]
    together = [i for i, (_, entry) in enumerate(batch) if entry is None]
    operand = [entry for entry in entries if entry.axis is not None]
    columns: dict[Any, tuple[Any, Sequence[int]]] = {}  # corners, and their axes in the batch
    for entry in operand:
        axis, value = entry.axis, entry.value
        if entry.kind == "slice":
            steps = ascending(value)
            if not entry.is_box:
                columns[axis] = np.array(steps, np.int32), [batch.index((len(value), entry))]
            elif len(value) != entry.size:
                columns[axis] = np.int32(steps.start), []
        elif entry.kind == "window":
            start = signed_indices(entry, wrap=False)  # JAX: wraps it only where it reads
            columns[axis] = (start, []) if entry.is_box else (
                start + value.stride * np.arange(len(value), dtype=start.dtype),
                [batch.index((len(value), entry))])
        else:
            columns[axis] = signed_indices(entry, wrap), together[len(together) - np.ndim(value):]
    return Plan(
        _table([*columns.values()], tuple(n for n, _ in batch)),
        lax.GatherDimensionNumbers(
            offset_dims=tuple(i for i, (_, entry) in enumerate(kept) if entry and entry.is_box),
            collapsed_slice_dims=tuple(i for i, entry in enumerate(operand) if not entry.is_box),
            start_index_map=tuple(columns)),
        tuple(len(entry.value) if entry.is_box else 1 for entry in operand),
        tuple(n for n, _ in axes),
        [i for i, (_, entry) in enumerate(axes) if entry and entry.kind == "new axis"],
        [i for i, (_, entry) in enumerate(kept) if entry and entry.value.step < 0])


def _result_axes(entries: Sequence[Entry]) -> list[tuple[int, Entry | None]]:
    """The axes of the result, each with its entry; those of index arrays are adjacent, without one.

    As in NumPy they replace the arrays if these are adjacent in the index, else they come first.
    """
    arrays = [i for i, entry in enumerate(entries) if entry.kind in ("integer", "array")]
    block = [(n, None) for n in lax.broadcast_shapes(*[np.shape(entries[i].value) for i in arrays])]
    axes = [(1 if entry.kind == "new axis" else len(entry.value), entry)
            for i, entry in enumerate(entries) if i not in arrays]
    positions = sorted({entries[i].position for i in arrays})
    are_adjacent = arrays and positions[-1] - positions[0] == len(positions) - 1
    first = arrays[0] if are_adjacent else 0
    return [*axes[:first], *block, *axes[first:]]


def _table(columns: Sequence[tuple[Any, Sequence[int]]], batch: tuple[int, ...]) -> Any:
    """The columns, each of which has some axes of the batch, stacked along a new last axis."""
    shape = (*batch, 1)
    if not any(isinstance(column, Array) for column, _ in columns):
        full_columns = [np.broadcast_to(np.expand_dims(
            column, tuple({*range(len(shape))} - {*dims})), shape) for column, dims in columns]
        return np.concatenate([np.zeros((*batch, 0), np.int32), *full_columns], -1)
    dtype = shared_dtype([column for column, _ in columns])
    return lax.concatenate([lax.broadcast_in_dim(convert(column, dtype), shape, dims)
                            for column, dims in columns], len(batch))
