"""Which loops merge: tasks over the same rows share one loop, as deep as their indices agree.

Stands on fusion.py. Softmax becomes one loop over rows with three small loops inside.
Chapter 23. In XLA: multi-output fusion; in the polyhedral books: loop fusion.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from minijax.jaxpr import Var

from .fusion import Node
from .probe import FLAT, Pattern, identity


_FULL = 2000  # statements in one loop: in longer ones the compiler's time grows with the square
_BIG = 4096  # a transposed walk over fewer elements stays in the first-level cache anyway


@dataclass(eq=False)
class Nest:
    """A loop over axis `depth` of its tasks; without a size, straight code at that depth.

    `kind`: an "opaque" nest is written by its task's rule; a "flat" one runs over all axes from
    `depth` on as one; a "column" computes reductions for a whole stretch of its axis at a time; a
    "tiled" one runs over two axes in squares.
    """

    depth: int
    size: int | None
    tasks: list[Node]
    children: list[Nest] = field(default_factory=list)
    kind: str = ""

    @property
    def innermost(self) -> bool:
        """Whether it is a loop around straight code only."""
        return self.size is not None and all(child.size is None for child in self.children)


def build_nests(tasks: Sequence[Node], depth: int = 0) -> list[Nest]:
    """Group tasks, given in an order that respects their reads, into nests to run in order."""
    makers = {v: task for task in tasks for v in task.outvars}
    nests: list[Nest] = []
    place: dict[Node, int] = {}
    for task in tasks:
        at = _find_place(task, nests, place, makers, depth)
        if at == len(nests):
            nests.append(Nest(depth, _size(task, depth), [], kind="opaque" if task.opaque else ""))
        nests[at].tasks.append(task)
        place[task] = at
    for nest in nests:
        _fill(nest)
    return nests


def _size(task: Node, depth: int) -> int | None:
    return None if task.opaque or len(task.shape) <= depth else task.shape[depth]


def _find_place(task: Node, nests: list[Nest], place: dict[Node, int],
                makers: dict[Var, Node], depth: int) -> int:
    earliest = 0
    for v, patterns in task.reads.items():
        if v in makers:
            at = place[makers[v]]
            same = _joins(task, nests[at], depth) and _aligned(patterns, v, depth)
            earliest = max(earliest, at if same else at + 1)
    for at in range(earliest, len(nests)):
        if _joins(task, nests[at], depth) and _related(task, nests[at], depth):
            return at
    return len(nests)


def _joins(task: Node, nest: Nest, depth: int) -> bool:
    alone = any(_reduces_columns(t, depth) for t in (task, nest.tasks[0]))
    return (not (task.opaque or nest.kind == "opaque" or alone) and nest.size == _size(task, depth)
            and sum(each.statements for each in (*nest.tasks, task)) <= _FULL)


def _aligned(patterns: set[Pattern], v: Var, depth: int) -> bool:
    """Whether at each turn of the loop only what that turn produced is asked for."""
    if FLAT in patterns:
        return False
    if v.aval.ndim <= depth:
        return True
    here = identity(v.aval.shape)[depth]
    return all(p[depth] == here for p in patterns)


def _related(task: Node, nest: Nest, depth: int) -> bool:
    """Whether merging saves memory traffic: one reads the other, or both read the same rows."""
    if nest.size is None:
        return True
    made = {v for other in nest.tasks for v in other.outvars}
    if not made.isdisjoint(task.reads):
        return True
    rows = _rows_read(task, depth)
    return any(not rows.isdisjoint(_rows_read(other, depth)) for other in nest.tasks)


def _rows_read(task: Node, depth: int) -> set[Var]:
    return {v for v, patterns in task.reads.items()
            if v.aval.ndim > depth and v.aval.size > 1 and _aligned(patterns, v, depth)}


def _fill(nest: Nest) -> None:
    """Decide what is inside a nest."""
    if nest.size is None:
        return
    made = {v for task in nest.tasks for v in task.outvars}
    if all(_is_flat(task, nest, made) for task in nest.tasks):
        nest.kind = "flat"
        return
    nest.children = build_nests(nest.tasks, nest.depth + 1)
    if (len(nest.children) == 1 and nest.children[0].innermost
            and any(_transposes(task, nest.depth) for task in nest.tasks)):
        nest.kind = "tiled"
    elif (nest.innermost and len(nest.tasks) == 1 and nest.size > 1
            and _reduces_columns(nest.tasks[0], nest.depth)):
        nest.kind = "column"


def _is_flat(task: Node, nest: Nest, made: set[Var]) -> bool:
    """Whether one loop over all remaining axes can serve: each is asked for as it is or not at all.

    What that loop makes itself is asked for as it is: the rest is not there yet, or overwritten.
    """
    depth = nest.depth
    rest = [(k, n) for k, n in enumerate(task.shape) if k >= depth and n != 1]
    if task.shape != nest.tasks[0].shape or len(rest) < 2:
        return False
    if any(not _aligned(patterns, v, axis) for v, patterns in task.reads.items() if v in made
           for axis in range(depth, len(task.shape))):
        return False
    outer, wanted = [("axis", k) for k in range(depth)], [(("axis", k), n) for k, n in rest]
    for v, patterns in task.reads.items():
        for p in patterns:
            if p == FLAT:
                continue
            terms = [(t, n) for t, n in zip(p, v.aval.shape, strict=False) if n != 1]
            tail = [(t, n) for t, n in terms if t not in outer]
            free = all(t[0] == "at" for t, _ in tail)
            if not free and not tail == terms[-len(wanted):] == wanted:
                return False
    return not task.probe.heavy


def _transposes(task: Node, depth: int) -> bool:
    """Whether its last axis but one runs along the last axis of something big that it reads."""
    return (depth == len(task.shape) - 2 and math.prod(task.shape[depth:]) >= _BIG
            and not task.probe.heavy and any(p[-1] == ("axis", depth) and ("axis", depth + 1) in p
                    for patterns in task.reads.values() for p in patterns if p))


def _reduces_columns(task: Node, axis: int) -> bool:
    """Whether it is one reduction, and what is behind its operands lies along this last axis."""
    if not task.probe.reduces_columns or axis != len(task.shape) - 1:
        return False
    last = [p[-1] for v, patterns in task.reads.items() for p in patterns if v.aval.ndim > 1]
    return bool(last) and all(term == ("axis", axis) for term in last)


def paths(nests: Sequence[Nest], above: tuple[Nest, ...] = ()) -> Iterator[tuple[Node, tuple]]:
    """Each task with the nests around it, outermost first."""
    for nest in nests:
        here = (*above, nest)
        if nest.children:
            yield from paths(nest.children, here)
        else:
            for task in nest.tasks:
                yield task, here
