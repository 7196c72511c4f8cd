"""Scatters for a GPU: atomic operations, or updates sorted by target and reduced by segments.

The `loop` rule of `scatter` and its like there. Chapter 27. With atomic operations the rounding of
float sums depends on the order of threads, as in JAX; sorted updates give the same bits each time,
and take several times as long: the flag `jax_deterministic_ops` selects them.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from minijax import config
from minijax.primitives.slots import nest
from minijax.primitives.windows import GatherScatterMode, place_of, window_sizes

from .products import placed
from .radix_sort import sorter_of

FEW = 16  # of so many times fewer updates than elements the numbers are sorted
SEGMENT_STEP = 32  # terms that one thread adds up, in each round


def scatter(b: Any, outputs: list, operands: list, *, dimension_numbers: Any,
            mode: GatherScatterMode, unique_indices: bool, indices_are_sorted: bool,
            join: Callable | None, op: str) -> None:
    """Apply updates to the operands, in order for equal targets; with an `op` they may be combined
    in any association, and of equal ones in any order.
    """
    count = len(outputs)
    for x, out in zip(operands, outputs, strict=False):
        b.materialize(x, into=out)
    updates = _Updates(b, outputs, operands[count], operands[count + 1:], dimension_numbers, mode)
    if not updates.size:
        return
    are_alone = unique_indices or updates.count == 1
    are_sorted = indices_are_sorted and not updates.overlap
    if are_alone or not are_sorted and is_atomic(op, outputs[0].dtype):
        with updates.each() as (i, window), updates.at(i, window) as (target, xs):
            if are_alone:
                updates.store(target, xs, join)
            else:
                b.atomic(op, outputs[0], target, *xs)
    elif not join and updates.count > outputs[0].size // FEW:
        updates.store_last()
    else:
        updates.sort_by_target(are_sorted)
        if not join:
            with (updates.each(updates.ends_segment) as (i, window),
                  updates.at(updates.update_at(i), window) as (target, xs)):
                updates.store(target, xs, None)
        elif op:
            updates.segmented_reduce(getattr(b, op), join)
        else:
            updates.apply_in_order(join)


def is_atomic(op: str, dtype: np.dtype) -> bool:
    """Whether a GPU has an atomic operation for it, deterministic if the flag requires it."""
    if dtype.kind == "f":  # of float32 a GPU takes subnormals for zeros here: PTX ISA, `atom`
        return op == "add" and dtype.itemsize >= 4 and not config.deterministic_ops.value
    return op in ("add", "min", "max") and dtype.kind in "iu" and dtype.itemsize >= 4


class _Updates:
    """The updates of a scatter: `count` of them, each with a window.

    Windows with one start cover the same elements. Where windows may overlap otherwise, each
    element is a window of its own.
    """

    def __init__(self, b: Any, outputs: list, indices: Any, values: list, dimension_numbers: Any,
                 mode: GatherScatterMode) -> None:
        self.b, self.outputs, self.indices, self.values = b, outputs, indices, values
        self.dimension_numbers, self.clips = dimension_numbers, mode is GatherScatterMode.CLIP
        self.shape, whole = values[0].shape, outputs[0].shape
        self.sizes = window_sizes(dimension_numbers, whole, self.shape)
        self.overlap = any(1 < self.sizes[d] < whole[d] for d in dimension_numbers[2])
        axes = range(len(self.shape))
        self.window_axes = [d for d in axes if d in dimension_numbers[0] and not self.overlap]
        self.batch_axes = [d for d in axes if d not in self.window_axes]
        self.batch_shape = [self.shape[d] for d in self.batch_axes]
        self.window = [self.shape[d] for d in self.window_axes]
        self.count = int(np.prod(self.batch_shape, dtype=int))
        self.size = outputs[0].size * int(np.prod(self.shape, dtype=int))

    @contextmanager
    def each(self, where: Callable[[Any], Any] = lambda i: True) -> Iterator[tuple[Any, tuple]]:
        """Open loops over the updates for which a condition holds, and elements of their windows.
        """
        with (nest(self.b, (self.count, *self.window), "parallel") as (i, *window),
              self.b.when(where(i))):
            yield i, tuple(window)

    def index(self, i: Any, window: Sequence[Any]) -> tuple:
        """The index in the updates array."""
        axes = self.batch_axes + self.window_axes
        return placed(axes, *self.b.unravel(i, self.batch_shape), *window)

    def target(self, index: tuple) -> tuple[tuple, Any]:
        """The target index of an update, and whether it is in bounds."""
        target, in_bounds = place_of(self.b, self.dimension_numbers, self.outputs[0].shape,
                                     self.sizes, self.indices, index)
        return target, self.b.const(True, np.bool_) if self.clips else in_bounds

    @contextmanager
    def at(self, i: Any, window: Sequence[Any]) -> Iterator[tuple[tuple, list]]:
        """The target and the values of an update, if it is in bounds."""
        index = self.index(i, window)
        target, in_bounds = self.target(index)
        with self.b.when(in_bounds):
            yield target, [x(index) for x in self.values]

    def store(self, target: tuple, xs: Sequence[Any], join: Callable | None) -> None:
        """Combine values with the elements at a target, or replace these."""
        if join:
            xs = join(self.b, [self.b.load(out, target) for out in self.outputs], xs)
        self.b.store_all(self.outputs, target, xs)

    def store_last(self) -> None:
        """Store the last update of each target: the one with the greatest number."""
        b, out = self.b, self.outputs[0]
        winners = b.temp(out.shape, np.dtype(np.int32 if self.count < 1 << 31 else np.int64))
        with nest(b, out.shape, "parallel") as place:
            b.store(winners, place, -1)
        with self.each() as (i, window), self.at(i, window) as (target, _):
            b.atomic("max", winners, target, b.convert(i, winners.dtype))
        with self.each() as (i, window), self.at(i, window) as (target, xs), b.when(
                b.eq(b.load(winners, target), b.convert(i, winners.dtype))):
            self.store(target, xs, None)

    # -- in order ------------------------------------------------------------------------------

    def sort_by_target(self, are_sorted: bool) -> None:
        """Sort the numbers of the updates by target, unless they are; out of bounds is last."""
        b, out = self.b, self.outputs[0]
        dtypes = [np.dtype(np.int32 if x < 1 << 31 else np.int64) for x in (out.size, self.count)]

        def key(_: Any, i: Any) -> list:
            index = self.index(i, [b.index(0)] * len(self.window_axes))
            target, in_bounds = self.target(index)
            at = b.select(in_bounds, b.ravel(target, out.shape), b.index(out.size))
            return [b.convert(x, dtype) for x, dtype in zip((at, i), dtypes, strict=True)]

        self.places, self.order = (b.temp((self.count,), dtype) for dtype in dtypes)
        if are_sorted:
            with b.loop(self.count, vectorize="parallel") as i:
                b.store_all((self.places, self.order), (i,), key((), i))
        else:
            sorter_of(b, 1, dtypes, self.count, out.size + 1).sort_rows(
                (), self.count, key, [self.places, self.order])
        b.freeze(self.places)
        b.freeze(self.order)

    def update_at(self, i: Any) -> Any:
        """The update at sorted position i."""
        return self.b.convert(self.b.load(self.order, (i,)), np.int64)

    def same_target(self, i: Any, j: Any) -> Any:
        """Whether there is a j-th sorted update, with the target of the i-th."""
        b = self.b
        clamped = b.clamp(j, 0, self.count - 1)
        here, there = (b.load(self.places, (k,)) for k in (i, clamped))
        return b.and_(b.eq(clamped, j), b.eq(here, there))

    def starts_segment(self, i: Any) -> Any:
        return self.b.not_(self.same_target(i, self.b.sub(i, 1)))

    def ends_segment(self, i: Any) -> Any:
        return self.b.not_(self.same_target(i, self.b.add(i, 1)))

    def apply_in_order(self, join: Callable) -> None:
        """One thread for each target applies its updates in order."""
        b = self.b
        with self.each(self.starts_segment) as (i, window):
            j = b.variable(i)

            def step() -> None:
                with self.at(self.update_at(b.read(j)), window) as (target, xs):
                    self.store(target, xs, join)
                b.assign(j, b.add(b.read(j), 1))
            b.while_loop(lambda: self.same_target(i, b.read(j)), step)

    def segmented_reduce(self, op: Callable, join: Callable) -> None:
        """A segmented reduction: runs of updates, at most SEGMENT_STEP, then runs of partial
        results, until each target has one.
        """
        b, [values] = self.b, self.values
        partials, stride = b.temp((self.count, *self.window), values.dtype, "sums"), 1

        term: Callable = lambda i, window: values(self.index(self.update_at(i), window))
        partial: Callable = lambda i, window: b.load(partials, (i, *window))
        while stride < self.count:
            self.reduce_runs(op, term, stride, partials)
            stride, term = stride * SEGMENT_STEP, partial
        with (self.each(self.starts_segment) as (i, window),
              self.at(self.update_at(i), window) as (target, _)):
            self.store(target, [partial(i, window)], join)

    def reduce_runs(self, op: Callable, term: Callable, stride: int, partials: Any) -> None:
        """Of the terms at every stride reduce runs into the first of each."""
        b, stop = self.b, stride * SEGMENT_STEP
        with self.each(lambda i: b.or_(self.starts_segment(i), b.eq(b.rem(i, stop), 0))) as (
                i, window):
            total = b.variable(term(i, window))
            j = b.variable(b.mul(b.add(b.div(i, stride), 1), stride))

            def step() -> None:
                b.assign(total, op(b.read(total), term(b.read(j), window)))
                b.assign(j, b.add(b.read(j), stride))
            b.while_loop(lambda: b.and_(b.ne(b.rem(b.read(j), stop), 0),
                                        self.same_target(i, b.read(j))), step)
            b.store(partials, (i, *window), b.read(total))
