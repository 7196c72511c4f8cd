"""Sorting rows in loops: long ones digit by digit, short ones by merging.

The `loop` rule of `sort`.  Chapter 24, *Loops and Numba*.
In JAX: XLA's sort on the CPU, a call of C++.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.primitives.axes import without
from minijax.primitives.slots import ordered_bits

RADIX_FROM = 512  # elements in a row; below, clearing the counters costs more than comparing


def sort(b: Any, outputs: list, operands: list, *, dimension: int, is_stable: bool,
               num_keys: int) -> None:
    size = outputs[0].shape[dimension]
    # Every pass moves the row from one half of each buffer into the other.
    halves = [b.temp((2, size), out.dtype) for out in outputs]
    with contextlib.ExitStack() as loops:
        row = [loops.enter_context(b.loop(n)) for n in without(outputs[0].shape, (dimension,))]
        place = lambda i: (*row[:dimension], i, *row[dimension:])
        with b.loop(size) as i:
            for half, x in zip(halves, operands, strict=True):
                b.store(half, (0, i), x(place(i)))
        by_radix = size >= RADIX_FROM
        side = (_radix_passes if by_radix else _merge_passes)(b, halves, num_keys)
        with b.loop(size) as i:
            for out, half in zip(outputs, halves, strict=True):
                b.store(out, place(i), b.load(half, (side, i)))


def _radix_passes(b: Any, halves: list, num_keys: int) -> int:
    """The last digit of the last key first; each pass keeps the order of equal digits."""
    side = 0
    size = halves[0].shape[1]
    for key in reversed(halves[:num_keys]):
        bits = 8 * key.dtype.itemsize
        bits = bits if key.dtype.kind in "biu" else max(bits, 32)  # 16-bit floats are widened
        width = 8 if bits <= 16 or size < 1 << 14 else 11
        counts = b.temp((1 << width,), np.int64)
        for shift in range(0, bits, width):
            _radix_pass(b, halves, key, counts, side, shift)
            side = 1 - side
    return side


def _radix_pass(b: Any, halves: list, key: Any, counts: Any, side: int, shift: int) -> None:
    """Count the digits; their running sum is where each goes; move."""
    buckets, size = counts.shape[0], key.shape[1]

    def digit(i: Any) -> Any:
        signed = ordered_bits(b, b.load(key, (side, i)))
        word = b.bitcast(signed, f"u{signed.dtype.itemsize}")
        word = b.shr_logical(b.xor(word, 1 << 8 * word.dtype.itemsize - 1), shift)
        return b.convert(b.and_(word, min(buckets - 1, int(np.iinfo(word.dtype).max))), np.int64)

    with b.loop(buckets) as d:
        b.store(counts, (d,), b.const(0, np.int64))
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


def _merge_passes(b: Any, halves: list, num_keys: int) -> Any:
    """Runs of 1, 2, 4 … elements in order, two by two."""
    size = halves[0].shape[1]
    width, side = b.variable(1, np.int64), b.variable(0, np.int64)

    def merge_all() -> None:
        w, source = b.read(width), b.read(side)
        runs = b.div(b.add(b.mul(w, 2), size - 1), b.mul(w, 2))
        with b.loop(runs) as run:
            start = b.mul(run, b.mul(w, 2))
            middle = b.min(b.add(start, w), size)
            _merge(b, halves, num_keys, source, start, middle, b.min(b.add(middle, w), size))
        b.assign(width, b.mul(w, 2))
        b.assign(side, b.sub(1, source))

    b.while_loop(lambda: b.lt(b.read(width), size), merge_all)
    return b.read(side)


def _merge(b: Any, halves: list, num_keys: int, source: Any, start: Any, middle: Any,
           end: Any) -> None:
    """Two sorted runs, [start, middle) and [middle, end), into one on the other side."""
    size = halves[0].shape[1]
    left, right = b.variable(start), b.variable(middle)
    with b.loop(end, start=start) as k:
        i, j = b.read(left), b.read(right)
        first, second = ([b.load(half, (source, b.min(place, size - 1)))
                          for half in halves[:num_keys]] for place in (i, j))
        take_right = b.and_(b.lt(j, end), b.or_(b.ge(i, middle), _all_before(b, second, first)))
        taken = b.select(take_right, j, i)
        for half in halves:
            b.store(half, (b.sub(1, source), k), b.load(half, (source, taken)))
        step = b.convert(take_right, np.int64)
        b.assign(left, b.add(i, b.sub(1, step)))
        b.assign(right, b.add(j, step))


def _all_before(s: Any, xs: Sequence[Any], ys: Sequence[Any]) -> Any:
    """Whether the row of keys `xs` is to stand strictly before `ys`: the first to differ decide."""
    before = _comes_before(s, xs[0], ys[0])
    if len(xs) == 1:
        return before
    after = _comes_before(s, ys[0], xs[0])
    return s.or_(before, s.and_(s.not_(after), _all_before(s, xs[1:], ys[1:])))


def _comes_before(s: Any, x: Any, y: Any) -> Any:
    if x.dtype.kind in "biu":
        return s.lt(x, y)
    x, y = (s.convert(z, np.float32) if z.dtype.itemsize == 2 else z for z in (x, y))
    return s.or_(s.lt(x, y), s.and_(s.eq(x, x), s.ne(y, y)))
