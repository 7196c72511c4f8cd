"""Loops in another order, for the cache: transposed walks in squares, column sums row by row.

Stands on program.py; schedule.py calls it. Walking down one column touches a new cache line each
step; both forms here use the whole line while it is near. Chapter 23.
In XLA: the tiled transpose and column reduction emitters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .builder import Sums
from .loops import Operand, Scalar

if TYPE_CHECKING:
    from .fusion import Task
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
        run.turns |= {nest: i, inner: j}
        for child in inner.children:
            run.emit(child, (*prefix, i, j), alone=False)


@contextmanager
def _stretch(b: ProgramBuilder, tile: Any, size: int, vectorize: str) -> Iterator[Operand]:
    """The indices of one tile; the last one may be short."""
    start = b.mul(b.index(tile), TILE)
    stop = b.min(b.add(start, TILE), size) if size % TILE else b.add(start, TILE)
    with b.loop(stop, start=start, vectorize=vectorize) as i:
        yield b.index(i)


class _Taken(Exception):
    """The accumulation has been emitted; the rest of the rule is not wanted."""


def emit_column(run: Run, task: Task, prefix: tuple[Operand, ...]) -> None:
    """The last axis of a task whose rule accumulates exactly once."""
    assert task.node is not None and task.node.probe is not None
    width = min(task.shape[-1], WIDTH)
    dtype = task.node.probe.accumulations[0][-1]

    def column(width: int) -> _Column:
        return _Column(run, task, prefix, run.b.sums(width, dtype))
    whole, rest = divmod(task.shape[-1], width)
    stretch = column(width).stretch
    with run.b.loop(whole, vectorize="apart") as t:
        stretch(run.b.mul(run.b.index(t), width), width)
    if rest:  # with sums of its own: the loop's are each thread's own
        column(rest).stretch(run.b.index(whole * width), rest)


class _Column:
    """One reduction, emitted for a stretch of columns."""

    def __init__(self, run: Run, task: Task, prefix: tuple[Operand, ...], sums: Sums) -> None:
        assert task.node is not None and task.node.probe is not None
        self.run, self.b, self.task, self.prefix, self.sums = run, run.b, task, prefix, sums
        self.op, self.init, self.extents, self.dtype = task.node.probe.accumulations[0]

    def stretch(self, start: Operand, width: int) -> None:
        """Begin, add all rows, finish, for `width` columns from `start`."""
        self.start = start
        sums = self.sums._replace(width=width)
        with self.b.loop(width, vectorize="parallel") as j:
            self.b.store(*sums.at(j), self.b.starting_value(self.op, self.init, self.dtype))
        self.b.in_chains(self.op, sums, math.prod(self.extents), self._join)
        with self.b.loop(width, vectorize="parallel") as j, self._standing_in(
                lambda f: self.b.load(*sums.at(j))):
            self.run.leaf([self.task], self._index(j))

    def _index(self, j: Any) -> tuple[Operand, ...]:
        return (*self.prefix, self.b.add(self.start, j))

    def _join(self, sums: Sums, before: None, rows: Sequence[Operand]) -> None:
        with self.b.loop(sums.width, vectorize="parallel") as j:
            def take(f: Callable[..., Operand]) -> Operand:
                total = self._tree([f(*self.b.unravel(row, self.extents)) for row in rows])
                self.b.store(*sums.at(j), self._combine(self.b.load(*sums.at(j)), total))
                raise _Taken

            with self._standing_in(take):
                try:
                    self.run.evaluate(self._eqn, self._index(j))
                except _Taken:
                    return

    @property
    def _eqn(self) -> Any:
        assert self.task.node is not None
        return self.task.node.eqn

    def _tree(self, terms: list[Operand]) -> Operand:
        while len(terms) > 1:
            pairs = [self._combine(x, y) for x, y in zip(terms[::2], terms[1::2], strict=False)]
            terms = [*pairs, *terms[2 * len(pairs):]]
        return terms[0]

    def _combine(self, x: Operand, y: Operand) -> Operand:
        return getattr(self.b, self.op)(x, y)

    @contextmanager
    def _standing_in(self, answer: Callable[[Callable[..., Operand]], Operand]) -> Iterator[None]:
        """While open, the task's own accumulation is answered by `answer`."""
        b = self.b

        def hook(op: str, init: int | float | Scalar | None, extents: Sequence[int],
                 f: Callable[..., Operand]) -> Operand:
            b.column_hook = None
            try:
                own = self.run.evaluating is self._eqn
                return answer(f) if own else b.accumulate(op, init, extents, f)
            finally:
                b.column_hook = hook

        b.column_hook = hook
        try:
            yield
        finally:
            b.column_hook = None
