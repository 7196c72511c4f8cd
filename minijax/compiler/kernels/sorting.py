"""Sorting rows in loops: radix sort for long rows, rank by counting for short ones.

The `loop` rule of `sort`.  Chapter 24, *Loops and Numba*.
In JAX: XLA's sort on the CPU, a call of C++.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from minijax.primitives.axes import without
from minijax.primitives.ad_util import move_axis
from minijax.primitives.slots import computed_in, falling_bits, nest, numpy_scalars, ordered_bits

from .merge_sort import digit_of, first_of_rows, is_before
from .products import computed, moved
from .radix_sort import sorter_of

MIN_RADIX_ROW = 48  # elements in a row; below, clearing the counters costs more than comparing all
CHUNK = 16  # elements that are compared with the threshold at once


def sort(b: Any, outputs: list, operands: list, *, dimension: int, is_stable: bool, num_keys: int
         ) -> None:
    """The `loop` rule of the primitive of that name; on a GPU rows are sorted by their first
    operands as keys, other axes after they are moved.
    """
    rows, n = without(outputs[0].shape, (dimension,)), outputs[0].shape[dimension]
    if not b.on_gpu:
        with nest(b, rows, "parallel") as row:
            place = lambda i: (*row[:dimension], i, *row[dimension:])
            _sort_row(b, outputs, operands, place, n, num_keys)
    elif dimension < len(rows):
        source = [b.value(moved(b, x, x.dtype, lambda x: move_axis(x, dimension, -1)))
                  for x in operands]
        sorted_ = [b.temp(x.shape, x.dtype) for x in source]
        sort(b, sorted_, source, dimension=len(rows), is_stable=is_stable, num_keys=num_keys)
        computed(b, lambda *xs: [move_axis(x, -1, dimension) for x in xs], outputs,
                 *map(b.value, sorted_))
    elif outputs[0].size:
        sorter_of(b, num_keys, [out.dtype for out in outputs], n).sort_rows(
            rows, n, lambda row, i: [x((*row, i)) for x in operands], outputs)


def _sort_row(b: Any, outputs: list, operands: list, place: Callable, size: int, num_keys: int
                  ) -> None:
    """Sort one row: it is read before anything is written, so outputs may be the operands."""
    # The row moves from one half of each buffer into the other.
    halves = [b.temp((2, size), out.dtype) for out in outputs]
    with b.loop(size, vectorize="parallel") as i:
        b.store_all(halves, (0, i), [x(place(i)) for x in operands])
    algorithm = _radix_sort if size >= MIN_RADIX_ROW else _rank_sort
    side = algorithm(b, halves, halves[:num_keys], size)
    with b.loop(size, vectorize="parallel") as i:
        b.store_all(outputs, place(i), [b.load(half, (side, i)) for half in halves])


def _radix_sort(b: Any, halves: list, keys: list, size: int) -> int:
    """Radix sort from the least significant digit of the last key; each pass is stable."""
    side = 0
    for key in reversed(keys):
        bits = 8 * computed_in(key.dtype).itemsize
        width = 8 if bits <= 16 or size < 1 << 14 else 11
        counts = b.temp((1 << width,), np.int64)
        for shift in range(0, bits, width):
            _radix_pass(b, halves, key, counts, side, shift, width)
            side = 1 - side
    return side


def _radix_pass(b: Any, halves: list, key: Any, counts: Any, side: int, shift: int, width: int
                ) -> None:
    """Count the digits; their exclusive prefix sum is the target of each bucket; move."""
    buckets, size = counts.shape[0], key.shape[1]

    def digit(i: Any) -> Any:
        return digit_of(b, b.load(key, (side, i)), shift, width)

    with b.loop(buckets) as d:
        b.store(counts, (d,), 0)
    with b.loop(size) as i:
        d = digit(i)
        b.store(counts, (d,), b.add(b.load(counts, (d,)), 1))
    total = b.variable(0, np.int64)
    with b.loop(buckets) as d:
        start, count = b.read(total), b.load(counts, (d,))
        b.store(counts, (d,), start)
        b.assign(total, b.add(start, count))
    with b.loop(size) as i:
        d = digit(i)
        target = b.load(counts, (d,))
        b.store_all(halves, (1 - side, target), [b.load(half, (side, i)) for half in halves])
        b.store(counts, (d,), b.add(target, 1))


def _rank_sort(b: Any, halves: list, keys: list, size: int) -> int:
    """Rank sort: the target of an element is the number of elements before it; stable."""
    words = [b.temp((size,), f"i{computed_in(key.dtype).itemsize}") for key in keys]
    with b.loop(size, vectorize="parallel") as i:
        b.store_all(words, (i,), [ordered_bits(b, b.load(key, (0, i))) for key in keys])

    def row(i: Any) -> list:
        return [*(b.load(word, (i,)) for word in words), b.convert(i, np.int32)]

    with b.loop(size) as i:
        this = row(i)
        at = b.accumulate("add", (size,), lambda k: b.convert(is_before(b, row(k), this), np.int32))
        b.store_all(halves, (1, b.convert(at, np.int64)), [b.load(half, (0, i)) for half in halves])
    return 1


def top_k(b: Any, outputs: list, operands: list, *, k: int, axis: int) -> None:
    """The `loop` rule of the primitive of that name.

    Candidates above the least of the best k so far are collected in a buffer. When it is full, it
    is sorted, and the first k are kept.
    """
    [values, indices], [x] = outputs, operands
    rows, size = without(x.shape, (axis,)), x.shape[axis]
    if not values.size:
        return
    at = lambda row, i: (*row[:axis], i, *row[axis:])
    key_at = lambda row, i: falling_bits(b, x(at(row, i)))

    def put(row: tuple, j: Any, i: Any) -> None:
        """Element i is the j-th of the result."""
        b.store(indices, at(row, j), i)
        b.store(values, at(row, j), x(at(row, b.convert(i, np.int64))))

    word = falling_bits(numpy_scalars(), np.zeros((), x.dtype)).dtype
    if b.on_gpu:
        _, places = first_of_rows(
            b, rows, size, k, lambda row, i: [key_at(row, i), b.convert(i, np.int32)],
            [word, np.dtype(np.int32)])
        with nest(b, rows, "parallel") as row, b.loop(k, vectorize="parallel") as j:
            put(row, j, b.load(places, (*row, j)))
        return
    step = min(max(k, CHUNK), size)
    capacity, blocks = min(k + 2 * step, size), -(-size // step)
    with nest(b, rows, "parallel") as row:
        key = partial(key_at, row)
        sentinel = b.starting_value("min", word)
        buffers = keys, places = [b.temp((capacity,), dtype) for dtype in (word, np.int32)]
        with b.loop(capacity, vectorize="parallel") as i:
            b.store_all(buffers, (i,), (sentinel, 0))
        count, threshold = b.variable(0, np.int64), b.variable(sentinel)
        with b.loop(blocks) as t:
            start = b.mul(t, step)
            stop = b.min(b.add(start, step), size)
            first = b.min(start, size - step)
            best = b.accumulate("min", (step,), lambda i: key(b.add(first, i)))
            with (b.when(b.or_(b.lt(best, b.read(threshold)), b.lt(b.read(count), k))),
                  b.loop(stop, start) as i):
                slot, element = b.read(count), key(i)
                b.store_all(buffers, (slot,), (element, b.convert(i, np.int32)))
                is_candidate = b.or_(b.lt(element, b.read(threshold)), b.lt(slot, k))
                b.assign(count, b.add(slot, b.convert(is_candidate, np.int64)))
            with b.when(b.or_(b.gt(b.read(count), k + step), b.eq(t, blocks - 1))):
                _sort_row(b, buffers, [*map(b.value, buffers)], lambda i: (i,), capacity, 1)
                b.assign(count, k)
                b.assign(threshold, b.load(keys, (k - 1,)))
        with b.loop(k) as j:
            put(row, j, b.load(places, (j,)))
