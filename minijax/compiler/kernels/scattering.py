"""Scatters for a GPU: updates are sorted by target, then reduced by segments.

The `loop` rule of `scatter` and its like there. Chapter 27. No atomics: with these the rounding of
float sums depends on the order of threads, while sorted updates give the same bits each time.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from minijax.primitives.slots import nest
from minijax.primitives.windows import GatherScatterMode, place_of, window_sizes

from .merge_sort import MergeSort

STEP = 32  # terms that one thread adds up, in each round


def scatter(b: Any, outputs: list, operands: list, *, dimension_numbers: Any,
            mode: GatherScatterMode, unique_indices: bool, join: Callable | None, op: str) -> None:
    """Apply updates to the operands, in order for equal targets; with an `op` they may be combined
    in any association.
    """
    count = len(outputs)
    for x, out in zip(operands, outputs, strict=False):
        b.materialize(x, into=out)
    updates = _Updates(b, outputs, operands[count], operands[count + 1:], dimension_numbers, mode)
    if not updates.size:
        return
    if unique_indices or updates.many == 1:
        with updates.each() as (i, window), updates.at(i, window) as (place, xs):
            updates.put(place, xs, join)
        return
    updates.sort_by_target()
    if not join:
        with (updates.each() as (i, window), b.when(updates.ends(i)),
              updates.at(updates.number(i), window) as (place, xs)):
            updates.put(place, xs, None)
    elif op:
        updates.segmented_reduce(getattr(b, op), join)
    else:
        updates.apply_in_order(join)


class _Updates:
    """The updates of a scatter: `many` of them, each with a window.

    Windows with one start cover the same elements. Where windows may overlap otherwise, each
    element is a window of its own.
    """

    def __init__(self, b: Any, outputs: list, indices: Any, values: list, numbers: Any,
                 mode: GatherScatterMode) -> None:
        self.b, self.outputs, self.indices, self.values = b, outputs, indices, values
        self.numbers, self.clips = numbers, mode is GatherScatterMode.CLIP
        self.shape, whole = values[0].shape, outputs[0].shape
        self.sizes = window_sizes(numbers, whole, self.shape)
        overlap = any(1 < self.sizes[d] < whole[d] for d in numbers[2])
        self.inside = [d for d in range(len(self.shape)) if d in numbers[0] and not overlap]
        self.outside = [d for d in range(len(self.shape)) if d not in self.inside]
        self.rows = [self.shape[d] for d in self.outside]
        self.window = [self.shape[d] for d in self.inside]
        self.many = int(np.prod(self.rows, dtype=int))
        self.size = outputs[0].size * int(np.prod(self.shape, dtype=int))

    @contextmanager
    def each(self) -> Iterator[tuple[Any, tuple]]:
        """Open loops over all updates and the elements of their windows."""
        with (self.b.loop(self.many, vectorize="parallel") as i,
              nest(self.b, self.window, "parallel") as window):
            yield self.b.index(i), window

    def index(self, i: Any, window: Sequence[Any]) -> tuple:
        """The index in the updates array."""
        components = dict(zip(self.outside, self.b.unravel(i, self.rows), strict=True))
        components |= zip(self.inside, window, strict=True)
        return tuple(components[d] for d in range(len(self.shape)))

    def place(self, index: tuple) -> tuple[tuple, Any]:
        """The target index of an update, and whether it is in bounds."""
        place, inside = place_of(self.b, self.numbers, self.outputs[0].shape, self.sizes,
                                 self.indices, index)
        return place, self.b.const(True, np.bool_) if self.clips else inside

    @contextmanager
    def at(self, i: Any, window: Sequence[Any]) -> Iterator[tuple[tuple, list]]:
        """The target and the values of an update, if it is in bounds."""
        index = self.index(i, window)
        place, inside = self.place(index)
        with self.b.when(inside):
            yield place, [x(index) for x in self.values]

    def put(self, place: tuple, xs: Sequence[Any], join: Callable | None) -> None:
        """Combine values with the elements at a target, or replace these."""
        if join:
            xs = join(self.b, [self.b.load(out, place) for out in self.outputs], xs)
        for out, x in zip(self.outputs, xs, strict=True):
            self.b.store(out, place, x)

    # -- in order ------------------------------------------------------------------------------

    def sort_by_target(self) -> None:
        """Sort the numbers of the updates by target; those out of bounds come last."""
        b, out = self.b, self.outputs[0]
        dtypes = [np.dtype(np.int32 if x < 1 << 31 else np.int64) for x in (out.size, self.many)]

        def key(_: Any, i: Any) -> list:
            place, inside = self.place(self.index(b.index(i), [b.index(0)] * len(self.inside)))
            at = b.select(inside, b.ravel(place, out.shape), b.index(out.size))
            return [b.convert(x, dtype) for x, dtype in zip((at, b.index(i)), dtypes, strict=True)]

        self.places, self.order = (b.temp((self.many,), dtype) for dtype in dtypes)
        MergeSort(b, 1, dtypes).sort_rows(
            (), self.many, key, lambda: [b.temp((self.many,), dtype) for dtype in dtypes],
            [self.places, self.order])
        b.freeze(self.places)
        b.freeze(self.order)

    def number(self, i: Any) -> Any:
        """The update at sorted position i."""
        return self.b.convert(self.b.load(self.order, (i,)), np.int64)

    def alike(self, i: Any, j: Any) -> Any:
        """Whether there is a j-th sorted update, with the target of the i-th."""
        b = self.b
        held = b.clamp(j, 0, self.many - 1)
        here, there = (b.load(self.places, (k,)) for k in (i, held))
        return b.and_(b.eq(held, j), b.eq(here, there))

    def begins(self, i: Any) -> Any:
        return self.b.not_(self.alike(i, self.b.sub(i, 1)))

    def ends(self, i: Any) -> Any:
        return self.b.not_(self.alike(i, self.b.add(i, 1)))

    def apply_in_order(self, join: Callable) -> None:
        """One thread for each target applies its updates in order."""
        b = self.b
        with self.each() as (i, window), b.when(self.begins(i)):
            j = b.variable(i)

            def take() -> None:
                with self.at(self.number(b.read(j)), window) as (place, xs):
                    self.put(place, xs, join)
                b.assign(j, b.add(b.read(j), 1))
            b.while_loop(lambda: self.alike(i, b.read(j)), take)

    def segmented_reduce(self, op: Callable, join: Callable) -> None:
        """A segmented reduction: runs of STEP updates, then of STEP partial results, until each
        target has one.
        """
        b, [values] = self.b, self.values
        sums, near = b.temp((self.many, *self.window), values.dtype, "sums"), 1

        def first(i: Any, window: tuple) -> Any:
            return values(self.index(self.number(i), window))

        def again(i: Any, window: tuple) -> Any:
            return b.load(sums, (i, *window))

        term = first
        while near < self.many:
            far = near * STEP
            with self.each() as (i, window), b.when(
                    b.or_(self.begins(i), b.eq(b.rem(i, far), 0))):
                total = b.variable(term(i, window))
                j = b.variable(b.mul(b.add(b.div(i, near), 1), near))

                def is_left(i: Any = i, j: Any = j, far: int = far) -> Any:
                    return b.and_(b.ne(b.rem(b.read(j), far), 0), self.alike(i, b.read(j)))

                def take(window: tuple = window, j: Any = j, total: Any = total,
                         term: Callable = term, near: int = near) -> None:
                    b.assign(total, op(b.read(total), term(b.read(j), window)))
                    b.assign(j, b.add(b.read(j), near))
                b.while_loop(is_left, take)
                b.store(sums, (i, *window), b.read(total))
            near, term = far, again
        with (self.each() as (i, window), b.when(self.begins(i)),
              self.at(self.number(i), window) as (place, _)):
            self.put(place, [again(i, window)], join)
