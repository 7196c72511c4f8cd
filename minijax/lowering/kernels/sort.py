"""Sorting rows in loops: long ones digit by digit, short ones by moving each element up.

The `loop` rule of `sort`.  Chapter 24, *Loops and Numba*.
In JAX: XLA's sort on the CPU, a call of C++.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.primitives.axes import without
from minijax.primitives.slots import nest, ordered_bits

RADIX_FROM = 32  # elements in a row; below, clearing the counters costs more than comparing


def sort(b: Any, outputs: list, operands: list, *, dimension: int, is_stable: bool, num_keys: int
         ) -> None:
    """The `loop` rule of the primitive of that name."""
    size = outputs[0].shape[dimension]
    # Every pass moves the row from one half of each buffer into the other.
    halves = [b.temp((2, size), out.dtype) for out in outputs]
    with nest(b, without(outputs[0].shape, (dimension,))) as row:
        place = lambda i: (*row[:dimension], i, *row[dimension:])
        with b.loop(size) as i:
            for half, x in zip(halves, operands, strict=True):
                b.store(half, (0, i), x(place(i)))
        by_radix = size >= RADIX_FROM
        side = (_radix_passes if by_radix else _insertions)(b, halves, num_keys)
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


def _insertions(b: Any, halves: list, num_keys: int) -> int:
    """Each in its turn moves up to where nothing before it is greater."""
    keys = halves[:num_keys]
    with b.loop(halves[0].shape[1], start=1) as i:
        taken = [b.load(half, (0, i)) for half in halves]
        words = [ordered_bits(b, x) for x in taken[:num_keys]]
        at = b.variable(i)

        def is_before() -> Any:
            above = b.max(b.sub(b.read(at), 1), 0)
            others = [ordered_bits(b, b.load(key, (0, above))) for key in keys]
            return b.and_(b.gt(b.read(at), 0), _all_before(b, words, others))

        def move() -> None:
            place = b.read(at)
            for half in halves:
                b.store(half, (0, place), b.load(half, (0, b.sub(place, 1))))
            b.assign(at, b.sub(place, 1))

        b.while_loop(is_before, move)
        for half, x in zip(halves, taken, strict=True):
            b.store(half, (0, b.read(at)), x)
    return 0


def _all_before(s: Any, xs: Sequence[Any], ys: Sequence[Any]) -> Any:
    """Whether the row of keys `xs` is to stand strictly before `ys`: the first to differ decide."""
    (x, *xs), (y, *ys) = xs, ys
    before = s.lt(x, y)
    return s.or_(before, s.and_(s.eq(x, y), _all_before(s, xs, ys))) if xs else before
