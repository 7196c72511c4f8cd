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
    with (b.loop(-(-nest.turns // TILE), vectorize="apart") as p,
          b.loop(-(-inner.turns // TILE)) as q,
          _stretch(b, p, nest.turns, "") as i, _stretch(b, q, inner.turns, "parallel") as j):
        for child in inner.children:
            run.emit(child, (*prefix, i, j), alone=False)


@contextlib.contextmanager
def _stretch(b: ProgramBuilder, tile: Any, size: int, vectorize: str) -> Iterator[Operand]:
    """The indices of one tile; the last one may be short."""
    start = b.mul(b.index(tile), TILE)
    stop = b.min(b.add(start, TILE), size) if size % TILE else b.add(start, TILE)
    with b.loop(stop, start=start, vectorize=vectorize) as i:
        yield b.index(i)


def emit_column(run: Run, nest: Nest, prefix: tuple[Operand, ...]) -> None:
    """The last axis of reductions, and what stands between them, a stretch of it at a time."""
    b = run.b

    def stretch(start: Operand, width: int) -> None:
        for child in nest.children:
            for task in child.tasks if child.size is not None else ():
                join_rows(task, start, width)
            if child.size is None:
                with b.loop(width, vectorize="parallel") as j:
                    run.leaf(child.tasks, (*prefix, b.add(start, j)))

    def join_rows(task: Node, start: Operand, width: int) -> None:
        """Join all rows, then finish, for some columns from `start`."""
        op, dtype, extents, *_ = task.probe.reduction
        joined = getattr(b, op)

        def join(sums: Sums, before: None, rows: Sequence[Operand]) -> None:
            with b.loop(sums.width, vectorize="parallel") as j:
                index = run.whole((*prefix, b.add(start, j)), task.shape)
                term = run.apply(task.eqn, index).term
                terms = [term(*b.unravel(row, extents)) for row in rows]
                while len(terms) > 1:
                    pairs = list(map(joined, terms[::2], terms[1::2]))
                    terms = [*pairs, *terms[2 * len(pairs):]]
                b.store(*sums.at(j), joined(b.load(*sums.at(j)), *terms))

        sums = b.sums(width, dtype)
        b.in_chains(op, sums, math.prod(extents), join)
        with b.loop(width, vectorize="parallel") as j:
            run.leaf([task], (*prefix, b.add(start, j)), totals={task: b.load(*sums.at(j))})

    width = min(nest.turns, WIDTH)
    whole, rest = divmod(nest.turns, width)
    with b.loop(whole, vectorize="apart") as t:
        stretch(b.mul(b.index(t), width), width)
    if rest:
        stretch(b.index(whole * width), rest)
