"""What an index means: parsed entry by entry, and planned as a gather.

Stands on `lax`; `indexing` reads and writes by it.  Chapter 14, *Out-of-bounds indexing*.
In JAX: `NDIndexer` in `jax/_src/numpy/indexing.py`.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from minijax import core, dtypes, errors, lax
from minijax.core import Array, Tracer, as_value
from minijax.lax import GatherDimensionNumbers
from minijax.numpy.arguments import convert
from minijax.primitives.index import wrapped


# ── Parsing: what each part of an index is, and which axes it takes ──────────────────────────

class Entry(NamedTuple):
    """One part of an index; all but a new axis is for exactly one axis of the operand."""

    kind: Literal["new axis", "slice", "integer", "array"]
    value: Any = None
    axis: int = -1
    position: int = -1  # in the index as it was written


class Parsed(NamedTuple):
    """An index that is complete: every axis of the operand has its entry, in order."""

    entries: tuple[Entry, ...]
    shape: tuple[int, ...]  # of the operand, with an axis of one for every scalar mask
    inserted: tuple[int, ...]  # where these axes are

    @property
    def is_window(self) -> bool:
        """Whether what is read is one window: no entry is an array with axes."""
        return not any(e.kind == "array" and np.ndim(e.value) for e in self.entries)

    def is_outside(self, wrap: bool) -> bool:
        """Whether some place that is known lies outside of the operand."""
        return any(e.kind == "integer"
                   and not -self.shape[e.axis] * wrap <= e.value < self.shape[e.axis]
                   for e in self.entries)


def parse(index: Any, shape: Sequence[int]) -> Parsed:
    """An index as NumPy takes it, made explicit for an operand of this shape.

    >>> [entry.kind for entry in parse((0, ..., None), (2, 3)).entries]
    ['integer', 'slice', 'new axis']

    Raises:
      TypeError, IndexError: for what is no index of such an operand.
    """
    items = _as_tuple(index)
    taken = [_axes_taken(item) for item in items]
    if sum(item is Ellipsis for item in items) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if sum(taken) > len(shape):
        raise IndexError(f"Too many indices: array is {len(shape)}-dimensional, "
                         f"but {sum(taken)} were indexed")
    if not any(item is Ellipsis for item in items):
        items, taken = (*items, Ellipsis), [*taken, 0]
    rest = len(shape) - sum(taken)
    sizes, entries, inserted = list(shape), [], []
    axis = 0
    for position, (item, count) in enumerate(zip(items, taken, strict=True)):
        if item is Ellipsis:
            found = [Entry("slice", slice(None), axis + k) for k in range(rest)]
        elif _is_mask(item):
            if count == 0:
                sizes.insert(axis, 1)
                inserted.append(axis)
            found = _mask_entries(item, position, axis, sizes[axis:axis + count])
        else:
            found = [_entry(item, position, axis)]
        entries += [entry._replace(position=position) for entry in found]
        axis += sum(entry.kind != "new axis" for entry in found)
    return Parsed(tuple(entries), tuple(sizes), tuple(inserted))


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


def _is_mask(item: Any) -> bool:
    if isinstance(item, Sequence) and not isinstance(item, str) and len(item):
        return np.asarray(item).dtype == bool
    return isinstance(item, (bool, np.bool_)) or (
        isinstance(item, (Array, np.ndarray)) and item.dtype == np.bool_)


def _axes_taken(item: Any) -> int:
    if item is None or item is Ellipsis:
        return 0
    return np.ndim(item) if _is_mask(item) else 1


def _mask_entries(mask: Any, position: int, axis: int, sizes: list[int]) -> list[Entry]:
    """A mask is the places where it is true; a scalar mask takes an axis of one, or nothing."""
    if isinstance(mask, Tracer) and not core.is_concrete(mask):
        raise errors.NonConcreteBooleanIndexError(mask)
    known = core.concrete_or_error(mask)
    if known is None or known.ndim == 0:
        return [Entry("array", np.arange(int(np.asarray(known))), axis)]
    if any(n not in (0, m) for n, m in zip(known.shape, sizes, strict=True)):
        raise IndexError("boolean index did not match shape of indexed array in index "
                         f"{position}: got {known.shape}, expected {sizes}")
    return [Entry("array", places, axis + k) for k, places in enumerate(np.nonzero(known))]


def _entry(item: Any, position: int, axis: int) -> Entry:
    if item is None:
        return Entry("new axis")
    if isinstance(item, slice):
        return Entry("slice", _static_slice(item, position), axis)
    if isinstance(item, (int, np.integer)):
        return Entry("integer", int(item), axis)
    if isinstance(item, str):
        raise TypeError(f"JAX does not support string indexing; got idx={item!r}")
    if isinstance(item, Sequence):
        item = as_value(np.asarray(item, None if len(item) else np.int32))
    if isinstance(item, (Array, np.ndarray, float, complex, np.generic)):
        dtype = item.dtype if hasattr(item, "dtype") else np.dtype(type(item))
        if not dtypes.issubdtype(dtype, np.integer):
            raise TypeError("Indexer must have integer or boolean type, got indexer with type "
                            f"{dtype}")
        if isinstance(item, np.ndarray) and item.ndim == 0:
            return Entry("integer", int(item), axis)
        return Entry("array", item, axis)
    raise IndexError("only integers, slices (`:`), ellipsis (`...`), newaxis (`None`) and "
                     f"integer or boolean arrays are valid indices. Got {item}")


def _static_slice(item: slice, position: int) -> slice:
    bounds = []
    for bound in (item.start, item.stop, item.step):
        if isinstance(bound, Tracer):
            if not core.is_concrete(bound):
                raise IndexError(
                    "Slice entries must be static integers. "
                    f"Got {item} at position {position}. An array's size cannot depend on a "
                    "traced value, but where it begins can: use lax.dynamic_slice_in_dim(x, "
                    "start, size), with a size that is a plain integer.")
            bound = core.concrete_or_error(bound)
        bounds.append(None if bound is None else operator.index(bound))
    return slice(*bounds)


# ── Places along one axis ────────────────────────────────────────────────────────────────────

def check_not_empty(axis: int, size: int) -> None:
    if size == 0:
        raise IndexError(f"index is out of bounds for axis {axis} with size 0")


def forwards(item: slice, size: int) -> tuple[int, int, int, bool]:
    """Start, limit and stride of a slice read forwards, and whether it was backwards."""
    start, stop, step = item.indices(size)
    count = len(range(start, stop, step))
    if step > 0:
        return (start, max(start, stop), step, False) if count else (0, 0, 1, False)
    last = start + (count - 1) * step
    return (last, start + 1, -step, True) if count else (0, 0, 1, False)


def as_int(places: Any, size: int, wrap: bool) -> Array:
    """Places in a signed type that can hold the size; negative ones counted from the end."""
    places = as_value(places)
    if dtypes.issubdtype(places.dtype, np.unsignedinteger) and places.dtype.itemsize >= 4:
        limit = as_value(np.asarray(size, places.dtype)[()])
        places = lax.min(places, lax.broadcast(limit, places.shape))  # the largest would wrap
    places = convert(places, np.dtype(np.int64 if places.dtype == np.int64 else np.int32))
    return wrapped(places, size) if wrap else places


# ── Planning: the gather that reads what an index shows ──────────────────────────────────────

class Plan(NamedTuple):
    """The gather that reads what an index shows; a scatter writes by the same numbers."""

    indices: Any
    dimension_numbers: GatherDimensionNumbers
    slice_sizes: tuple[int, ...]
    shape: tuple[int, ...]  # of what is read, new axes included
    new_axes: tuple[int, ...]
    reversed_axes: tuple[int, ...]  # counted without the new ones
    all_different: bool  # the windows are, and in order


class Axis(NamedTuple):
    """One axis of what is read."""

    kind: Literal["new", "window", "places"]
    size: int
    axis: int = -1  # of the operand; -1 for axes that the index arrays have together
    slice: tuple[int, int, int, bool] = (0, 0, 1, False)


def make_plan(parsed: Parsed, wrap: bool) -> Plan:
    """How to gather what an index shows."""
    axes = _result_axes(parsed)
    kept = [a for a in axes if a.kind != "new"]
    batch = [a for a in kept if a.kind == "places"]
    columns = _index_columns(parsed, kept, batch, wrap)
    windows = {a.axis: (place, a.size) for place, a in enumerate(kept) if a.kind == "window"}
    dnums = GatherDimensionNumbers(
        offset_dims=tuple(place for place, _ in windows.values()),
        collapsed_slice_dims=tuple(d for d in range(len(parsed.shape)) if d not in windows),
        start_index_map=tuple(columns))
    return Plan(
        _stacked([*columns.values()], tuple(a.size for a in batch)), dnums,
        tuple(windows[d][1] if d in windows else 1 for d in range(len(parsed.shape))),
        tuple(a.size for a in axes), tuple(i for i, a in enumerate(axes) if a.kind == "new"),
        tuple(i for i, a in enumerate(kept) if a.slice[3]), parsed.is_window)


def _result_axes(parsed: Parsed) -> list[Axis]:
    """The axes of what is read; first those that the index arrays have together.

    As in NumPy they stand where the arrays stood, if those stood side by side.
    """
    advanced = [e for e in parsed.entries if e.kind in ("integer", "array")]
    written = sorted({e.position for e in advanced})
    together = not advanced or written[-1] - written[0] == len(written) - 1
    block = [Axis("places", n) for n in lax.broadcast_shapes(
        *[np.shape(e.value) for e in advanced])]
    axes = [] if together else list(block)
    for entry in parsed.entries:
        if together and advanced and entry is advanced[0]:
            axes += block
        if entry.kind == "new axis":
            axes.append(Axis("new", 1))
        elif entry.kind == "slice":
            bounds = start, limit, stride, _ = forwards(entry.value, parsed.shape[entry.axis])
            axes.append(Axis("window" if stride == 1 else "places",
                             len(range(start, limit, stride)), entry.axis, bounds))
    return axes


def _index_columns(parsed: Parsed, kept: list[Axis], batch: list[Axis],
                   wrap: bool) -> dict[int, Any]:
    """For every axis of the operand that needs one, its indices, with the batch's axes."""
    in_block = [i for i, a in enumerate(batch) if a.axis < 0]
    columns: dict[int, Any] = {}
    for kind, value, axis, _ in parsed.entries:
        if kind not in ("integer", "array"):
            continue
        size, rank = parsed.shape[axis], np.ndim(value)
        if not rank:
            check_not_empty(axis, size)
        if kind == "integer":
            columns[axis] = np.int32(value + size if wrap and value < 0 else value)
        else:
            dims = in_block[len(in_block) - rank:]
            columns[axis] = _spread(_places(value, size, wrap), dims, batch)
    for a in kept:
        start, _, stride, _ = a.slice
        if a.kind == "window" and a.size != parsed.shape[a.axis]:
            columns[a.axis] = np.int32(start)
        elif a.kind == "places" and a.axis >= 0:
            places = np.arange(start, start + a.size * stride, stride, dtype=np.int32)
            columns[a.axis] = _spread(places, [batch.index(a)], batch)
    return columns


def _places(value: Any, size: int, wrap: bool) -> Any:
    """Index arrays of NumPy's are prepared in NumPy: they are constants of the program."""
    if not isinstance(value, np.ndarray):
        return as_int(value, size, wrap)
    if value.dtype.kind == "u":
        return np.minimum(value, size).astype(np.int32)
    return np.clip(np.where(wrap & (value < 0), value + size, value), -1, size).astype(np.int32)


def _spread(places: Any, dims: Sequence[int], batch: list[Axis]) -> Any:
    """An array along some axes of the batch, broadcastable along the others."""
    shape = [1] * len(batch)
    for dim, n in zip(dims, np.shape(places), strict=True):
        shape[dim] = n
    if isinstance(places, np.ndarray):
        return places.reshape(shape)
    full = tuple(n if n == 1 else a.size for n, a in zip(shape, batch, strict=True))
    return lax.broadcast_in_dim(places, full, dims)


def _stacked(columns: list[Any], batch: tuple[int, ...]) -> Any:
    """The columns side by side, along a new last axis."""
    if all(isinstance(c, (np.ndarray, np.generic)) for c in columns):
        rows = [np.broadcast_to(c, batch) for c in columns]
        return np.stack(rows, -1) if rows else np.zeros((*batch, 0), np.int32)
    wide = np.int64 if any(c.dtype == np.int64 for c in columns) else np.int32
    parts = [lax.broadcast_in_dim(convert(c, np.dtype(wide)), (*batch, 1),
                                  range(len(batch)) if np.ndim(c) else ()) for c in columns]
    return lax.concatenate(parts, len(batch))
