"""Loops in another order, for the cache: transposed walks in squares, column sums row by row.

Stands on program.py; schedule.py calls it. Walking down one column touches a new cache line each
step; both forms here use the whole line while it is near. Chapter 23.
In XLA: the tiled transpose and column reduction emitters.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

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
            for loops in dict.fromkeys(task.loops for task in child.tasks):
                tasks = [task for task in child.tasks if task.loops == loops]
                some_columns(tasks, start, width, math.prod(loops[nest.depth + 1:]))

    def some_columns(tasks: list[Node], start: Operand, width: int, rows: int) -> None:
        """Straight code, or what joins all rows, for the columns from `start`."""
        def terms(k: Operand, j: Operand) -> list[Operand]:
            found = run.leaf(tasks, (*prefix, b.add(start, j), *b.unravel(k, extents)))
            return [found[task] for task in tasks]

        extents = tasks[0].loops[nest.depth + 1:]
        given = [task.probe.reduction for task in tasks]
        sums = b.join_rows([x.op for x in given], [x.dtype for x in given], rows, width,
                           terms) if extents else []
        with b.loop(width, vectorize="parallel") as j:
            totals = {task: b.load(x, (j,)) for task, x in zip(tasks, sums, strict=False)}
            run.leaf(tasks, (*prefix, b.add(start, j)), totals=totals)

    width = min(nest.turns, WIDTH)
    whole, rest = divmod(nest.turns, width)
    with b.loop(whole, vectorize="apart") as t:
        stretch(b.mul(b.index(t), width), width)
    if rest:
        stretch(b.index(whole * width), rest)
