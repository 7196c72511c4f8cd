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
from .probe import FLAT, Pattern, Term, identity, longer


_FULL = 2000  # statements in one loop: in longer ones the compiler's time grows with the square
_FEW = 4  # rows of a column; fewer are written out
# A transposed walk over fewer elements, or fewer lines, stays in the first-level cache anyway.
_BIG, _WIDE = 4096, 16


@dataclass(eq=False)
class Nest:
    """A loop over axis `depth` of its tasks; without a size, straight code at that depth.

    `kind`: an "opaque" nest is written by its task's rule; a "flat" one runs over all axes from
    `depth` on as one; a "column" computes reductions for a whole stretch of its axis at a time; a
    "tiled" one and the last in its chain go in squares. A loop may reduce for some of its tasks.
    """

    depth: int
    size: int | None
    tasks: list[Node]
    children: list[Nest] = field(default_factory=list)
    kind: str = ""
    behind: set[Node] = field(default_factory=set)  # all that its turns compute,
    statements: int = 0                             # in so many statements

    @property
    def innermost(self) -> bool:
        """Whether it is a loop around straight code only."""
        return self.size is not None and all(child.size is None for child in self.children)

    @property
    def chain(self) -> list[Nest]:
        """It and the loops inside, as long as each is all that is in the one around it."""
        only = self.children[0] if len(self.children) == 1 else self
        return [self] if only is self or only.size is None else [self, *only.chain]

    @property
    def turns(self) -> int:
        """How many it takes."""
        loops = self.tasks[0].loops[self.depth:]
        return math.prod(loops if self.kind == "flat" else loops[:1])

    @property
    def reduced(self) -> list[Node]:
        """The tasks that join what its turns give."""
        return [task for task in self.tasks if task.rank <= self.depth < len(task.loops)]


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
        nests[at].statements += _more(task, nests[at])
        nests[at].behind |= task.behind
        place[task] = at
    for nest in nests:
        _fill(nest)
    return nests


def _size(task: Node, depth: int) -> int | None:
    return None if task.opaque or len(task.loops) <= depth else task.loops[depth]


def _find_place(task: Node, nests: list[Nest], place: dict[Node, int],
                makers: dict[Var, Node], depth: int) -> int:
    earliest = 0
    for v, patterns in task.reads.items():
        if v in makers:
            at = place[makers[v]]
            same = _joins(task, nests[at], depth) and _aligned(patterns, makers[v], v, depth)
            earliest = max(earliest, at if same else at + 1)
    for at in range(earliest, len(nests)):
        if _joins(task, nests[at], depth) and _related(task, nests[at], depth):
            return at
    return len(nests)


def _joins(task: Node, nest: Nest, depth: int) -> bool:
    together = (*nest.tasks, task)
    return (not (task.opaque or nest.kind == "opaque") and nest.size == _size(task, depth)
            and nest.statements + _more(task, nest) <= _FULL
            and (not any(_reduces_columns(each, depth) for each in together)
                 or all(_reduces_columns(each, depth) or len(each.loops) == depth + 1 == each.rank
                        for each in together)))


def _more(task: Node, nest: Nest) -> int:
    """How many statements a task adds to those of a nest."""
    return sum(each.probe.statements for each in task.behind - nest.behind)


def _aligned(patterns: set[Pattern], maker: Node, v: Var, depth: int) -> bool:
    """Whether at each turn of the loop only what that turn produced is asked for."""
    if FLAT in patterns:
        return False
    if maker.rank <= depth:
        return len(maker.loops) <= depth  # else it is still being reduced
    return all(longer(p, v.aval.shape)[depth] == ("axis", depth) for p in patterns)


def _related(task: Node, nest: Nest, depth: int) -> bool:
    """Whether merging saves memory traffic: one reads the other, or both read the same rows."""
    if nest.size is None:
        return True
    made = {v for other in nest.tasks for v in other.outvars}
    if not made.isdisjoint(task.reads):
        return True
    rows = _rows_read(task, depth)
    return any(not rows.isdisjoint(_rows_read(other, depth)) for other in nest.tasks)


def _rows_read(task: Node, depth: int) -> set[tuple[Var, int]]:
    """What it walks along the loop, and along which axis."""
    here = ("axis", depth)
    return {(v, axis) for v, patterns in task.reads.items() for axis in range(v.aval.ndim)
            if FLAT not in patterns and all(p[axis] == here for p in patterns)}


def _fill(nest: Nest) -> None:
    """Decide what is inside a nest."""
    if nest.size is None:
        return
    made = {v: task for task in nest.tasks for v in task.outvars}
    if all(_is_flat(task, nest, made) for task in nest.tasks):
        nest.kind = "flat"
        return
    nest.children = build_nests(nest.tasks, nest.depth + 1)
    chain = nest.chain
    sizes = [each.turns for each in chain]
    if (len(chain) > 1 and chain[-1].innermost and turned_reads(nest.depth, chain[-1])
            and math.prod(sizes) >= _BIG and min(sizes[0], sizes[-1]) >= _WIDE
            and not any(task.reduces or task.probe.heavy for task in nest.tasks)):
        nest.kind = "tiled"
    elif nest.size > 1 and any(_reduces_columns(task, nest.depth) for task in nest.tasks):
        nest.kind = "column"


def _is_flat(task: Node, nest: Nest, made: dict[Var, Node]) -> bool:
    """Whether one loop over all remaining axes can serve: each is asked for as it is or not at all.

    What that loop makes itself is asked for as it is: the rest is not there yet, or overwritten.
    Where an index is computed with, it would have to be divided out of the position.
    """
    depth = nest.depth
    axes = range(depth, len(task.loops))
    if (task.loops != nest.tasks[0].loops or len(axes) < 2 or task.counts
            or depth < task.rank < len(task.loops)):
        return False
    if any(not _aligned(patterns, made[v], v, axis) for v, patterns in task.reads.items()
           if v in made for axis in axes):
        return False
    wanted = [(("axis", k), task.loops[k]) for k in axes]
    for v, patterns in task.reads.items():
        for p in patterns - {FLAT}:
            terms = longer(zip(p, v.aval.shape, strict=True), v.aval.shape)
            tail = [each for each in terms if each[0] not in identity(task.loops[:depth])]
            free = all(kind == "at" for (kind, _), _ in tail)
            if not free and not tail == terms[-len(wanted):] == wanted:
                return False
    return not task.probe.heavy


def turned_reads(axis: int, nest: Nest) -> list[tuple[Var, Pattern]]:
    """What a loop over the last axis reads whose own last axis is that of a loop around."""
    reads = dict.fromkeys((v, p) for task in nest.tasks for v in task.reads for p in task.reads[v])
    return [(v, p) for v, p in reads if all(kind in ("axis", "at") for kind, _ in p)
            and ("axis", nest.depth) in p and longer(p, v.aval.shape)[-1] == ("axis", axis)]


def _memory(task: Node) -> list[list[Term]]:
    """How it walks what it reads, by the axes that are longer than one."""
    return [longer(p, v.aval.shape) for v, patterns in task.reads.items() for p in patterns
            if p != FLAT]


def _reduces_columns(task: Node, axis: int) -> bool:
    """Whether it is a reduction, and what is behind its operands lies along its own last axis."""
    if axis != task.rank - 1 or math.prod(task.loops[task.rank:]) < _FEW:
        return False
    last = [terms[-1] for terms in _memory(task) if len(terms) > 1]
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
