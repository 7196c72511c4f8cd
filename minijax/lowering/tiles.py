"""Loops in another order, for the cache: transposed walks in squares.

Stands on operands.py; schedule.py calls it. Walking down one column touches a new cache line each
step; a square uses the whole line while it is near. Chapter 23.
In XLA: the tiled transpose emitter.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from minijax.jaxpr import Var

from .loops import Operand
from .nests import Nest, turned_reads
from .operands import Computed, ProgramBuilder
from .probe import Pattern

if TYPE_CHECKING:
    from .schedule import Run

TILE = 64     # the side of a square: some lines of each row, which are in the cache together,
PADDED = 65   # where one of a column is not in the place of another


def emit_tiles(run: Run, nest: Nest, prefix: tuple[Operand, ...]) -> None:
    """A loop and the last one inside of it, one square of their indices after the other.

    What is asked for with these two the other way round is copied first, by lines of its own.
    """
    b, chain = run.b, nest.chain
    turns = [each.turns for each in chain]
    squares = [-(-turns[0] // TILE), *turns[1:-1], -(-turns[-1] // TILE)]
    with b.loop(math.prod(squares), vectorize="apart") as t:
        p, *middle, q = map(b.actual, b.unravel(b.index(t), squares))
        (first, rows), (start, columns) = _stretch(b, p, turns[0]), _stretch(b, q, turns[-1])

        def at(i: Operand, j: Operand) -> tuple[Operand, ...]:
            return (*prefix, b.add(first, i), *middle, b.add(start, j))

        def asked(v: Var, pattern: Pattern, loops: tuple[Operand, ...]) -> tuple[Operand, ...]:
            return b.within([loops[x] if kind == "axis" else x for kind, x in pattern],
                            v.aval.shape)

        env, tiles = run.env, {}
        for v, pattern in turned_reads(nest.depth, chain[-1]):
            tile = tiles[v, pattern] = b.temp((TILE, PADDED), v.aval.dtype, "tile")
            with b.loop(columns) as j, b.loop(rows, vectorize="parallel") as i:
                b.store(tile, (j, i), env[v](asked(v, pattern, at(i, j))))
        run.env = env | {v: Computed(b, env[v], v.aval.shape, v.aval.dtype) for v, _ in tiles}
        with b.loop(rows) as i, b.loop(columns, vectorize="parallel") as j:
            loops = at(i, j)
            for (v, pattern), tile in tiles.items():
                b.remember(("value", run.env[v], asked(v, pattern, loops)), b.load(tile, (j, i)))
            for child in chain[-1].children:
                run.emit(child, loops, alone=False)
        run.env = env


def _stretch(b: ProgramBuilder, k: Operand, n: int) -> tuple[Operand, Operand | int]:
    """Where the k-th stretch of n indices begins, and how many it has: the last may be short."""
    first = b.mul(k, TILE)
    return first, b.min(b.sub(n, first), TILE) if n % TILE else TILE
