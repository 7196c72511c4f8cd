"""Prefix sums for a GPU: a long row in one pass, from part to part; of columns first the totals of
parts, then a scan of these, and a scan of each part.

The `loop` rule of `cumsum` and its like. Chapter 27.
In JAX: `associative_scan` in rounds; in CUDA: CUB's `DeviceScan`.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.primitives.slots import computed_in, nest, widened

from ..builder import block_size

ROW, COLUMN = 1 << 13, 128  # terms in a part of a row, for a block; of a column, for a thread
TILE_BYTES = 1 << 15  # of a part in shared memory


def running(b: Any, outputs: list, operands: list, *, op: str, axis: int, reverse: bool) -> None:
    """The `loop` rule: an inclusive scan along an axis."""
    [x], [out] = operands, outputs
    n, inner = x.shape[axis], x.shape[axis + 1:]

    def at(above: tuple, k: Any, j: Any) -> tuple:
        return *above, b.sub(n - 1, k) if reverse else k, *b.unravel(j, inner)

    if x.size:
        _Scan(b, op, computed_in(x.dtype), x.shape[:axis], math.prod(inner)).run(
            n, lambda *place: widened(b, x(at(*place))),
            lambda total, *place: b.store(out, at(*place), b.convert(total, x.dtype)))


def scan(b: Any, op: str, n: Any, start: Any, term: Callable, store: Callable) -> None:
    """``store(k, total)`` for each k below n: the total of `start` and the terms up to this one."""
    so_far = b.variable(start)
    with b.loop(n, vectorize="running") as k:
        total = getattr(b, op)(b.read(so_far), term(k))
        b.assign(so_far, total)
        store(k, total)


class _Scan:
    """A scan along the middle axis of three: `above`, n, and `width`."""

    def __init__(self, b: Any, op: str, dtype: np.dtype, above: tuple, width: int) -> None:
        self.b, self.op, self.dtype, self.above, self.width = b, op, dtype, above, width

    def run(self, n: int, term: Callable, store: Callable) -> None:
        """``store(total of term(above, i, j) for i = 0…k, above, k, j)`` for all positions.

        Of rows in one pass; of columns first the total of each part, then a scan of the totals.
        """
        b, size = self.b, min(n, block_size(n, ROW if self.width == 1 else COLUMN))
        parts = -(-n // size)
        if self.width == 1 and parts > 1 and size * self.dtype.itemsize <= TILE_BYTES:
            return self.in_chain(n, size, term, store)
        before = b.temp((*self.above, parts, self.width), self.dtype, "before")

        def reduce_part(above: tuple, i: Any, j: Any, first: Any, count: int) -> None:
            total = b.accumulate(self.op, (count,), lambda k: term(above, b.add(first, k), j))
            b.store(before, (*above, i, j), total)

        def scan_part(above: tuple, i: Any, j: Any, first: Any, count: int) -> None:
            start = b.starting_value(self.op, self.dtype)
            if parts > 1:
                exclusive = b.load(before, (*above, b.max(b.sub(i, 1), 0), j))
                start = b.select(b.eq(i, 0), start, exclusive)
            scan(b, self.op, count, start, lambda k: term(above, b.add(first, k), j),
                 lambda k, total: store(total, above, b.add(first, k), j))

        if parts > 1:
            self.in_parts(n, size, reduce_part)
            self.run(parts, lambda above, i, j: b.load(before, (*above, i, j)),
                     lambda total, above, i, j: b.store(before, (*above, i, j), total))
        self.in_parts(n, size, scan_part)

    def in_chain(self, n: int, size: int, term: Callable, store: Callable) -> None:
        """The same with one pass over the terms: a part is kept until the total before is known."""
        b, op, j = self.b, getattr(self.b, self.op), self.b.index(0)
        identity = b.starting_value(self.op, self.dtype)
        with nest(b, self.above, "parallel") as above:
            total = b.variable(identity)
            with b.loop(-(-n // size), vectorize="chained") as i:
                first, tile = b.mul(i, size), b.temp((size,), self.dtype, "tile")

                def staged(k: Any) -> Any:
                    place = b.add(first, k)
                    x = term(above, place, j) if n % size == 0 else b.choose(
                        b.lt(place, n), lambda: term(above, place, j), lambda: identity)
                    b.store(tile, (k,), x)
                    return x
                part = b.accumulate(self.op, (size,), staged)
                before = b.read(total)
                b.assign(total, op(before, part))
                so_far = b.variable(before)
                with b.loop(size, vectorize="running") as k:
                    result, place = op(b.read(so_far), b.load(tile, (k,))), b.add(first, k)
                    b.assign(so_far, result)
                    with b.when(n % size == 0 or b.lt(place, n)):
                        store(result, above, place, j)

    def in_parts(self, n: int, size: int, emit: Callable) -> None:
        """``emit(above, i, j, first, count)`` for each part, from its first index on."""
        b = self.b
        with nest(b, self.above, "parallel") as above:
            def part(i: Any, first: Any, count: int) -> None:
                with b.loop(self.width, vectorize="parallel") as j:
                    emit(above, i, j, first, count)
            b.in_blocks(n, size, part)
