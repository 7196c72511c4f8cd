"""Radix sort for a GPU, from the least digit on: after a count of all digits each pass moves the
numbers of each tile, sorted by the digit in shared memory, behind those of the tiles before it.

Builds on merge_sort.py, which sorts short rows. Chapter 27. In CUDA: CUB's `DeviceRadixSort`.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from minijax.primitives.slots import computed_in, nest

from .merge_sort import MergeSort, _loader, digit_of
from .prefix_sums import scan

MIN_ROW, MIN_TILE = 512, 512  # elements: shorter rows, or tiles of large elements, are merged
HISTOGRAM = 8  # tiles whose digits a block counts
TILE_BYTES = 1 << 14  # of the elements of a tile, which has two buffers in shared memory
MAX_BITS = 64         # of all keys together: with more there are too many passes
THREADS = 256         # of a block, each with counters of its own
BITS, WIDE_BITS = 4, 8  # of a digit in shared memory, and of one for all tiles
CELLS = THREADS + THREADS // 16  # of the counters of a digit
DIGITS, WIDE_DIGITS = 1 << BITS, 1 << WIDE_BITS


def sorter_of(b: Any, num_keys: int, dtypes: Sequence[np.dtype], n: int, limit: int = 0
              ) -> MergeSort:
    """What sorts rows of n elements of these dtypes; with a limit the keys are integers from 0 to
    below it.
    """
    sorter = RadixSort(b, num_keys, dtypes, limit)
    fits = sum(sorter.bits) <= MAX_BITS and MIN_ROW <= n < 1 << 31 and sorter.tile >= MIN_TILE
    return sorter if fits else MergeSort(b, num_keys, dtypes)


class RadixSort(MergeSort):
    """A stable sort of tuples by the digits of their keys, the last key first."""

    def __init__(self, b: Any, num_keys: int, dtypes: Sequence[np.dtype], limit: int = 0) -> None:
        super().__init__(b, num_keys, dtypes)
        digits = -(-(limit - 1).bit_length() // WIDE_BITS)  # those that differ
        self.bits = [WIDE_BITS * digits if limit else 8 * computed_in(x).itemsize
                     for x in dtypes[:num_keys]]
        self.tile = 1 << (TILE_BYTES // sum(x.itemsize for x in dtypes)).bit_length() - 1

    def sort_rows(self, rows: tuple, n: int, source: Callable, outs: list) -> None:
        if n <= self.tile:
            return super().sort_rows(rows, n, source, outs)
        places, passes = [self.temps(rows, n) for _ in range(2)], [
            (key, shift) for key in reversed(range(self.num_keys))
            for shift in range(0, self.bits[key], WIDE_BITS)]
        starts = self.histograms(rows, n, source, passes)
        for p in range(len(passes)):
            into = outs if p == len(passes) - 1 else places[0]
            self.pass_by_digit(rows, n, source, into, p, passes, starts)
            source, places = _loader(self.b, into), places[::-1]

    # -- all tiles -----------------------------------------------------------------------------

    def histograms(self, rows: tuple, n: int, source: Callable, passes: list) -> Any:
        """For each pass and digit how many elements of a row have a smaller one."""
        b = self.b
        shape = *rows, len(passes), WIDE_DIGITS
        counts, starts = self.zeros(shape, "counts"), b.temp(shape, np.int32, "starts")
        with self.tiles(rows, n, HISTOGRAM * self.tile) as (row, first, count):
            numbers = self.zeros((len(passes) * WIDE_DIGITS,), "numbers")
            with self.masked_loop(count, min(n, HISTOGRAM * self.tile)) as i:
                xs = source(row, b.add(first, i))
                for p, (key, shift) in enumerate(passes):
                    digit = digit_of(b, xs[key], shift, WIDE_BITS)
                    b.atomic("add", numbers, (b.add(digit, p * WIDE_DIGITS),), 1)
            with b.loop(numbers.size, vectorize="parallel") as d:
                place = *row, b.div(d, WIDE_DIGITS), b.rem(d, WIDE_DIGITS)
                b.atomic("add", counts, place, b.load(numbers, (d,)))
        with nest(b, counts.shape[:-1], "parallel") as place:
            self.running_total(counts, starts, place)
        b.freeze(starts)
        return starts

    def pass_by_digit(self, rows: tuple, n: int, source: Callable, into: list, p: int, passes: list,
                      starts: Any) -> None:
        """Move all elements into the order of one digit: a tile after the other, by blocks that
        look back at how many elements of each digit are in those before.
        """
        b, (key, shift) = self.b, passes[p]
        with nest(b, rows, "parallel") as row:
            before = self.zeros((WIDE_DIGITS,), "before")
            with b.loop(-(-n // self.tile), vectorize="chained") as k:
                first, count = b.strip(k, n, self.tile)
                move = b.temp((WIDE_DIGITS,), np.int32, "move")
                halves = self.loaded(self.tile, source, row, first, count)
                numbers = self.zeros((WIDE_DIGITS,), "numbers")
                with self.masked_loop(count, self.tile) as i:
                    digit = digit_of(b, self.element(halves, 0, i)[key], shift, WIDE_BITS)
                    b.atomic("add", numbers, (digit,), 1)
                self.running_total(numbers, move)
                with b.loop(WIDE_DIGITS, vectorize="parallel") as d:
                    number = b.load(numbers, (d,))
                    own = b.sub(b.load(starts, (*row, p, d)), b.load(move, (d,)))
                    so_far = b.load(before, (d,))
                    b.store(before, (d,), b.add(so_far, number))
                    b.store(move, (d,), b.add(so_far, own))
                self.sort_tile(halves, count, key, shift, WIDE_BITS)
                with self.masked_loop(count, self.tile) as i:
                    xs = self.element(halves, 0, i)
                    by = b.load(move, (digit_of(b, xs[key], shift, WIDE_BITS),))
                    self.b.store_all(into, (*row, b.add(i, b.convert(by, np.int64))), xs)

    def zeros(self, shape: tuple[int, ...], name: str) -> Any:
        """Counters that begin at zero."""
        counters = self.b.temp(shape, np.int32, name)
        with nest(self.b, shape, "parallel") as place:
            self.b.store(counters, place, 0)
        return counters

    def running_total(self, numbers: Any, totals: Any, place: tuple = ()) -> None:
        """Store for each digit the sum of the numbers of all digits before, from a place on."""
        b, number = self.b, lambda d: self.b.load(numbers, (*place, d))
        scan(b, "add", WIDE_DIGITS, b.const(0, np.int32), number, lambda d, total: b.store(
            totals, (*place, d), b.sub(total, number(d))))

    # -- one tile ------------------------------------------------------------------------------

    def sorted_tile(self, size: int, source: Callable, row: tuple, first: Any, count: Any
                    ) -> tuple[list, int]:
        halves = self.loaded(size, source, row, first, count)
        for key in reversed(range(self.num_keys)):
            self.sort_tile(halves, count, key, 0, self.bits[key])
        return halves, 0

    def places(self, size: int) -> int:
        """Every 33rd place stays empty, against bank conflicts."""
        full = THREADS << (-(-size // THREADS) - 1).bit_length()
        return full + full // 32

    def place(self, i: Any) -> Any:
        return self.b.add(i, self.b.shr_logical(i, 5))

    def sort_tile(self, halves: list, count: Any, key: int, shift: int, bits: int) -> None:
        """Sort a tile by some bits of a key, an even number of digits: from its first buffer into
        the second, and back.
        """
        b = self.b
        counts = b.temp((DIGITS * CELLS,), np.uint16, "counts")
        totals = b.temp((THREADS,), np.int32, "totals")
        with b.loop(bits // BITS) as p:
            self.split(halves, b.and_(p, 1), count, counts, totals, lambda xs: digit_of(
                b, xs[key], b.add(b.mul(p, BITS), shift), BITS))

    def cell(self, d: Any, t: Any) -> Any:
        """The place of the counter of a digit and a thread; every 17th stays empty, against bank
        conflicts.
        """
        b = self.b
        return b.add(b.mul(d, CELLS), b.add(t, b.shr_logical(t, 4)))

    def split(self, halves: list, side: Any, count: Any, counts: Any, totals: Any, digit: Callable
              ) -> None:
        """Move a tile into the order of one digit: each thread counts those of its elements, then
        each counter becomes the place of the next element of that digit and thread.
        """
        b, size = self.b, halves[0].shape[1] * 32 // 33
        each = size // THREADS

        def elements(t: Any) -> Iterator[tuple]:
            with b.loop(each) as e:
                first = b.mul(t, each)
                with b.when(count is b.index(size) or b.lt(b.add(first, e), count)):
                    xs = [b.load(x, (side, b.add(self.place(first), e))) for x in halves]
                    at = self.cell(digit(xs), t)
                    yield xs, at, b.convert(b.load(counts, (at,)), np.int64)

        with b.loop(THREADS, vectorize="parallel") as t:
            with b.loop(DIGITS) as d:
                b.store(counts, (self.cell(d, t),), 0)
            for _, at, number in elements(t):
                b.store(counts, (at,), b.convert(b.add(number, 1), np.uint16))
        self.add_up(counts, totals)
        with b.loop(THREADS, vectorize="parallel") as t:
            for xs, at, place in elements(t):
                b.store(counts, (at,), b.convert(b.add(place, 1), np.uint16))
                self.b.store_all(halves, (b.sub(1, side), self.place(place)), xs)

    def add_up(self, counts: Any, totals: Any) -> None:
        """The exclusive prefix sums of the counters, in place."""
        b = self.b
        at = lambda t, k: (b.add(b.mul(t, DIGITS + 1), k),)
        number = lambda t, k: b.convert(b.load(counts, at(t, k)), np.int32)
        with b.loop(THREADS, vectorize="parallel") as t:
            b.store(totals, (t,), b.accumulate("add", (DIGITS,), lambda k: number(t, k)))
        scan(b, "add", THREADS, b.const(0, np.int32), lambda t: b.load(totals, (t,)),
             lambda t, total: b.store(totals, (t,), total))
        with b.loop(THREADS, vectorize="parallel") as t:
            before = b.load(totals, (b.max(b.sub(t, 1), 0),))
            place = b.variable(b.select(b.eq(t, 0), 0, before))
            with b.loop(DIGITS) as k:
                start, count = b.read(place), number(t, k)
                b.store(counts, at(t, k), b.convert(start, np.uint16))
                b.assign(place, b.add(start, count))
