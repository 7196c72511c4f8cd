"""Sorting rows in loops: radix sort for long rows, rank by counting for short ones.

The `loop` rule of `sort`.  Chapter 24, *Loops and Numba*.
In JAX: XLA's sort on the CPU, a call of C++.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.primitives.axes import without
from minijax.primitives.ad_util import move_axis
from minijax.primitives.slots import computed_in, falling_bits, nest, ordered_bits

from . import merge_sort
from .merge_sort import digit_of, is_before
from .products import computed
from .radix_sort import sorter_of

MIN_RADIX_ROW = 48  # elements in a row; below, clearing the counters costs more than comparing all
CHUNK = 16  # elements that are compared with the threshold at once


def sort(b: Any, outputs: list, operands: list, *, dimension: int, is_stable: bool, num_keys: int
         ) -> None:
    """The `loop` rule of the primitive of that name."""
    if b.on_gpu:
        return _sort_on_gpu(b, outputs, operands, dimension, num_keys)
    size = outputs[0].shape[dimension]
    with nest(b, without(outputs[0].shape, (dimension,)), "parallel") as row:
        place = lambda i: (*row[:dimension], i, *row[dimension:])
        _sort_row(b, outputs, operands, place, size, num_keys)


def _sort_on_gpu(b: Any, outputs: list, operands: list, dimension: int, num_keys: int) -> None:
    """Sort rows by their first operands as keys, other axes after they are moved; stable."""
    shape = outputs[0].shape
    if dimension < len(shape) - 1:
        rows = *without(shape, (dimension,)), shape[dimension]
        moved, sorted_ = ([b.temp(rows, out.dtype) for out in outputs] for _ in range(2))
        for x, into in zip(operands, moved, strict=True):
            computed(b, lambda x: [move_axis(x, dimension, -1)], into, x)
            b.freeze(into)
        _sort_on_gpu(b, sorted_, [*map(b.value, moved)], len(shape) - 1, num_keys)
        for x, out in zip(sorted_, outputs, strict=True):
            computed(b, lambda x: [move_axis(x, -1, dimension)], out, x)
    elif outputs[0].size:
        rows, n = shape[:-1], shape[-1]
        source: Any = lambda row, i: [x((*row, i)) for x in operands]
        sorter_of(b, num_keys, [out.dtype for out in outputs], n).sort_rows(
            rows, n, source, lambda: [b.temp(shape, out.dtype) for out in outputs], outputs)


def _sort_row(b: Any, outputs: list, operands: list, place: Callable, size: int, num_keys: int
                  ) -> None:
    """Sort one row: it is read before anything is written, so outputs may be the operands."""
    # The row moves from one half of each buffer into the other.
    halves = [b.temp((2, size), out.dtype) for out in outputs]
    with b.loop(size, vectorize="parallel") as i:
        for half, x in zip(halves, operands, strict=True):
            b.store(half, (0, i), x(place(i)))
    algorithm = _radix_sort if size >= MIN_RADIX_ROW else _rank_sort
    side = algorithm(b, halves, halves[:num_keys], size)
    with b.loop(size, vectorize="parallel") as i:
        for out, half in zip(outputs, halves, strict=True):
            b.store(out, place(i), b.load(half, (side, i)))


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
        for half in halves:
            b.store(half, (1 - side, target), b.load(half, (side, i)))
        b.store(counts, (d,), b.add(target, 1))


def _rank_sort(b: Any, halves: list, keys: list, size: int) -> int:
    """Rank sort: the target of an element is the number of elements before it; stable."""
    words = [b.temp((size,), f"i{computed_in(key.dtype).itemsize}") for key in keys]
    with b.loop(size, vectorize="parallel") as i:
        for word, key in zip(words, keys, strict=True):
            b.store(word, (i,), ordered_bits(b, b.load(key, (0, i))))

    def row(i: Any) -> list:
        return [*(b.load(word, (i,)) for word in words), b.convert(i, np.int32)]

    with b.loop(size) as i:
        this = row(i)
        at = b.accumulate("add", (size,), lambda k: b.convert(is_before(b, row(k), this), np.int32))
        for half in halves:
            b.store(half, (1, b.convert(at, np.int64)), b.load(half, (0, i)))
    return 1


def top_k(b: Any, outputs: list, operands: list, *, k: int, axis: int) -> None:
    """The `loop` rule of the primitive of that name.

    Candidates above the least of the best k so far are collected in a buffer. When it is full, it
    is sorted, and the first k are kept.
    """
    if b.on_gpu:
        return merge_sort.top_k(b, outputs, operands, k=k, axis=axis)
    [values, indices], [x] = outputs, operands
    size = x.shape[axis]
    if not values.size:
        return
    step = min(max(k, CHUNK), size)
    capacity, blocks = min(k + 2 * step, size), -(-size // step)
    with nest(b, without(x.shape, (axis,)), "parallel") as row:
        place = lambda i: (*row[:axis], i, *row[axis:])
        key = lambda i: falling_bits(b, x(place(i)))
        word = key(0).dtype
        sentinel = b.starting_value("min", word)
        buffers = keys, places = [b.temp((capacity,), dtype) for dtype in (word, np.int32)]
        with b.loop(capacity, vectorize="parallel") as i:
            b.store(keys, (i,), sentinel)
            b.store(places, (i,), 0)
        count, threshold = b.variable(0, np.int64), b.variable(sentinel)
        with b.loop(blocks) as t:
            start = b.mul(t, step)
            stop = b.min(b.add(start, step), size)
            first = b.min(start, size - step)
            best = b.accumulate("min", (step,), lambda i: key(b.add(first, i)))
            with (b.when(b.or_(b.lt(best, b.read(threshold)), b.lt(b.read(count), k))),
                  b.loop(stop, start) as i):
                slot, element = b.read(count), key(i)
                b.store(keys, (slot,), element)
                b.store(places, (slot,), b.convert(i, np.int32))
                is_candidate = b.or_(b.lt(element, b.read(threshold)), b.lt(slot, k))
                b.assign(count, b.add(slot, b.convert(is_candidate, np.int64)))
            with b.when(b.or_(b.gt(b.read(count), k + step), b.eq(t, blocks - 1))):
                _sort_row(b, buffers, [*map(b.value, buffers)], lambda i: (i,), capacity, 1)
                b.assign(count, k)
                b.assign(threshold, b.load(keys, (k - 1,)))
        with b.loop(k) as j:
            at = b.load(places, (j,))
            b.store(indices, place(j), at)
            b.store(values, place(j), x(place(b.convert(at, np.int64))))
