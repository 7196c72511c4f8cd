"""Loops in another order, for the cache: transposed walks in squares, column sums row by row.

Stands on program.py; schedule.py calls it. Walking down one column touches a new cache line each
step; both forms here use the whole line while it is near. Chapter 23.
In XLA: the tiled transpose and column reduction emitters.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from .builder import Sums
from .loops import Operand

if TYPE_CHECKING:
    from .fusion import Node
    from .nests import Nest
    from .program import ProgramBuilder
    from .schedule import Run

WIDTH = 256   # columns at a time: their partial results stay in the first-level cache
TILE = 16     # the side of a square: lines of 64 bytes hold 16 numbers of 4


def emit_tiles(run: Run, nest: Nest, prefix: tuple[Operand, ...]) -> None:
    """Two loops over the last two axes, one square of indices after the other."""
    b, inner = run.b, nest.children[0]
    assert nest.size is not None and inner.size is not None
    with (b.loop(-(-nest.size // TILE), vectorize="apart") as p,
          b.loop(-(-inner.size // TILE)) as q,
          _stretch(b, p, nest.size, "") as i, _stretch(b, q, inner.size, "parallel") as j):
        for child in inner.children:
            run.emit(child, (*prefix, i, j), alone=False)


@contextlib.contextmanager
def _stretch(b: ProgramBuilder, tile: Any, size: int, vectorize: str) -> Iterator[Operand]:
    """The indices of one tile; the last one may be short."""
    start = b.mul(b.index(tile), TILE)
    stop = b.min(b.add(start, TILE), size) if size % TILE else b.add(start, TILE)
    with b.loop(stop, start=start, vectorize=vectorize) as i:
        yield b.index(i)


def emit_column(run: Run, task: Node, prefix: tuple[Operand, ...]) -> None:
    """The last axis of a reduction, a stretch of it at a time."""
    b = run.b
    assert task.probe.reduction is not None
    op, dtype, extents, *_ = task.probe.reduction
    joined = getattr(b, op)

    def stretch(start: Operand, sums: Sums) -> None:
        """Join all rows, then finish, for some columns from `start`."""
        def index(j: Any) -> tuple[Operand, ...]:
            return (*prefix, b.add(start, j))

        def join(sums: Sums, before: None, rows: Sequence[Operand]) -> None:
            with b.loop(sums.width, vectorize="parallel") as j:
                reduction = run.apply(task.eqn, index(j))
                terms = [reduction.term(*b.unravel(row, extents)) for row in rows]
                while len(terms) > 1:
                    pairs = list(map(joined, terms[::2], terms[1::2]))
                    terms = [*pairs, *terms[2 * len(pairs):]]
                b.store(*sums.at(j), joined(b.load(*sums.at(j)), *terms))

        b.in_chains(op, sums, math.prod(extents), join)
        with b.loop(sums.width, vectorize="parallel") as j:
            run.evaluate(task.eqn, index(j), b.load(*sums.at(j)))
            run.leaf([task], index(j))

    width = min(task.shape[-1], WIDTH)
    whole, rest = divmod(task.shape[-1], width)
    sums = b.sums(width, dtype)
    with b.loop(whole, vectorize="apart") as t:
        stretch(b.mul(b.index(t), width), sums)
    if rest:  # with sums of its own: the loop's are each thread's own
        stretch(b.index(whole * width), b.sums(rest, dtype))
