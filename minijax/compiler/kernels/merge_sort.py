"""Merge sort for a GPU: thread blocks sort tiles, then launches merge runs. A stable merge by
binary search places each element independently.

Builds on the primitives for the order of numbers. Chapter 27. In CUDA: CUB's `DeviceMergeSort`.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from minijax.primitives.slots import nest, ordered_bits

MAX_TILE, MIN_TILE, TILE_BYTES = 2048, 256, 1 << 15  # elements that a block sorts, and their bytes
MIN_TILED_ROW = 128  # elements: shorter rows are merged in launches only

LoadElement = Callable[[Any], list]  # loads the element at an index, of each operand


def first_of_rows(b: Any, rows: tuple, n: int, k: int, key: Callable, dtypes: list) -> list:
    """Buffers whose rows begin with the first k of n elements, in order: those of each block's
    tile, repeated until one block has them all; then a sort of these.
    """
    sorter = MergeSort(b, 1, dtypes)
    while n > sorter.tile and 2 * k <= sorter.tile:
        key, n = sorter.top_of_tiles(rows, n, k, key)
    buffers = sorter.temps(rows, n)
    sorter.sort_rows(rows, n, key, buffers)
    return buffers


class MergeSort:
    """A sort of tuples, some of whose parts are keys."""

    def __init__(self, b: Any, num_keys: int, dtypes: Sequence[np.dtype]) -> None:
        self.b, self.num_keys, self.dtypes = b, num_keys, dtypes
        capacity = TILE_BYTES // (2 * sum(dtype.itemsize for dtype in dtypes))
        self.tile = min(max(1 << capacity.bit_length() - 1, MIN_TILE), MAX_TILE)

    def temps(self, rows: tuple, n: int) -> list:
        """Buffers for rows of n elements."""
        return [self.b.temp((*rows, n), dtype) for dtype in self.dtypes]

    def sort_rows(self, rows: tuple, n: int, source: Callable, outs: list) -> None:
        """Sort rows of n elements, which ``source(row, i)`` loads: tiles in blocks, then runs
        merged in launches, from one buffer to the other.
        """
        b, run = self.b, 1 if 1 < n < MIN_TILED_ROW else self.tile
        places = [self.temps(rows, n) for _ in range(2)] if run < n else []
        if run > 1:
            into, tile = outs if run >= n else places[0], min(n, self.tile)
            with self.tiles(rows, n) as (row, first, count):
                halves, side = self.sorted_tile(tile, source, row, first, count)
                with self.masked_loop(count, tile) as i:
                    b.store_all(into, (*row, b.add(first, i)), self.element(halves, side, i))
            source = _loader(b, into)
        while run < n:
            into = outs if 2 * run >= n else places[1]
            with nest(b, rows, "parallel") as row, b.loop(n, vectorize="parallel") as i:
                load = functools.partial(source, row)
                at = self.merge_position(load, i, n, b.index(run), run.bit_length())
                b.store_all(into, (*row, at), load(i))
            source, places, run = _loader(b, into), places[::-1], 2 * run

    def top_of_tiles(self, rows: tuple, n: int, k: int, source: Callable) -> tuple[Callable, int]:
        """The first k of each sorted tile; and how many these are in all."""
        b, tiles = self.b, -(-n // self.tile)
        into = self.temps(rows, tiles * k)
        sentinel = [b.starting_value("min", self.dtypes[0]), b.const(0, self.dtypes[1])]
        with self.tiles(rows, n) as (row, first, count):
            halves, side = self.sorted_tile(self.tile, source, row, first, count)
            start = b.mul(b.div(first, self.tile), k)
            with b.loop(k, vectorize="parallel") as i:
                in_range = b.lt(i, count)
                at = b.min(i, b.sub(count, 1))
                xs = [b.select(in_range, b.load(x, (side, at)), other)
                      for x, other in zip(halves, sentinel, strict=True)]
                b.store_all(into, (*row, b.add(start, i)), xs)
        return _loader(b, into), tiles * k

    # -- one block -----------------------------------------------------------------------------

    @contextlib.contextmanager
    def tiles(self, rows: tuple, n: int, size: int = 0) -> Iterator[tuple]:
        """Open loops over tiles of one size: the row, the tile's first index, its length."""
        b, tile = self.b, size or self.tile
        with nest(b, rows, "parallel") as row, b.loop(-(-n // tile), vectorize="parallel") as k:
            yield row, *b.strip(k, n, tile)

    def sorted_tile(self, size: int, source: Callable, row: tuple, first: Any, count: Any
                    ) -> tuple[list, int]:
        """Sort `count` elements of a row from `first` on, at most `size`, in scratch; returns the
        buffers, and the half with the result.
        """
        b, passes = self.b, (size - 1).bit_length()
        halves = self.loaded(size, source, row, first, count)
        with b.loop(passes) as p:
            side, run = b.and_(p, 1), b.shl(b.index(1), p)
            with self.masked_loop(count, size) as i:
                element = functools.partial(self.element, halves, side)
                at = self.merge_position(element, i, count, run, b.add(p, 1))
                b.store_all(halves, (b.sub(1, side), at), element(i))
        return halves, passes % 2

    def loaded(self, size: int, source: Callable, row: tuple, first: Any, count: Any) -> list:
        """Two buffers for a tile of at most `size` elements, which are loaded into the first."""
        halves = self.temps((2,), self.places(size))
        with self.masked_loop(count, size) as i:
            self.b.store_all(halves, (0, self.place(i)), source(row, self.b.add(first, i)))
        return halves

    def places(self, size: int) -> int:
        """How many places of a buffer hold a tile."""
        return size

    def place(self, i: Any) -> Any:
        """The place of the i-th element of a tile."""
        return i

    def element(self, halves: list, side: Any, i: Any) -> list:
        return [self.b.load(x, (side, self.place(i))) for x in halves]

    @contextlib.contextmanager
    def masked_loop(self, count: Any, size: int) -> Iterator[Any]:
        """A loop of constant length, masked beyond `count`."""
        with self.b.loop(size, vectorize="parallel") as i, (
                self.b.when(count is self.b.index(size) or self.b.lt(i, count))):
            yield i

    # -- merging -------------------------------------------------------------------------------

    def merge_position(self, load: LoadElement, i: Any, n: Any, run: Any, steps: Any) -> Any:
        """The index of element i after a pairwise merge of runs: i, plus its rank in the other run,
        by binary search. The last of n elements form a shorter run.
        """
        b, n = self.b, self.b.index(n)
        middle = b.add(b.and_(i, b.neg(b.mul(run, 2))), run)
        start, stop = b.sub(middle, run), b.min(b.add(middle, run), n)
        middle = b.min(middle, n)
        is_left, keys = b.lt(i, middle), self.keys(load(i))
        low = b.variable(b.select(is_left, middle, start))
        high = b.variable(b.select(is_left, stop, middle))
        with b.loop(steps):
            first, last = b.read(low), b.read(high)
            half = b.shr_logical(b.add(first, last), 1)
            other = self.keys(load(b.min(half, b.sub(n, 1))))
            before = b.select(is_left, is_before(b, other, keys), b.not_(is_before(b, keys, other)))
            is_open = b.lt(first, last)
            b.assign(low, b.select(b.and_(is_open, before), b.add(half, 1), first))
            b.assign(high, b.select(b.and_(is_open, b.not_(before)), half, last))
        return b.sub(b.add(i, b.read(low)), middle)

    def keys(self, xs: list) -> list:
        return [ordered_bits(self.b, x) for x in xs[:self.num_keys]]


def _loader(b: Any, buffers: list) -> Callable:
    """Loads the elements of buffers that have been written."""
    for x in buffers:
        b.freeze(x)
    return lambda row, i: [b.load(x, (*row, i)) for x in buffers]


def digit_of(b: Any, x: Any, shift: Any, bits: int) -> Any:
    """A digit of a key, whose first bit is at `shift`."""
    word = ordered_bits(b, x)
    word = b.xor(word, np.iinfo(word.dtype).min)
    shifted = b.shr_logical(word, b.convert(b.index(shift), word.dtype))
    return b.and_(b.convert(shifted, np.int64), (1 << bits) - 1)


def is_before(s: Any, xs: Sequence[Any], ys: Sequence[Any]) -> Any:
    """Whether the keys `xs` come strictly before `ys`, in lexicographic order."""
    (x, *xs), (y, *ys) = xs, ys
    before = s.lt(x, y)
    return s.or_(before, s.and_(s.eq(x, y), is_before(s, xs, ys))) if xs else before
