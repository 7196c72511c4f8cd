"""Loop fusion: tasks over the same rows share one loop, as deep as their indices agree.

Builds on fusion.py. Softmax becomes one loop over rows with three small loops inside.
Chapter 23. In XLA: multi-output fusion; in the polyhedral books: loop fusion.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from minijax.core.jaxpr import Var

from .builder import CHEAP, LANES, ROWS, SHORT_ROW
from .fusion import MIDDLING, MIN_ROWS, SLOW, Node
from .probe import Pattern, identity, sizes


# Rows of a column, and their cost: shorter reductions are unrolled.
_MIN_ROWS, _MIN_COST = 9, 100
_LONG = 128  # the cost of more code than rows in lanes may have
_MOST_MOVED = 32  # tasks of a loop that joins an earlier one: each is looked at again
# A transposed traversal of fewer elements, or fewer cache lines, stays in the L1 cache anyway.
_MIN_ELEMENTS, _MIN_LINES = 4096, 16


@dataclass(eq=False)
class Nest:
    """A loop over axis `depth` of its tasks; without a size, straight code at that depth.

    `kind`: an "opaque" nest is written by its task's rule; a "flat" one runs over all axes from
    `depth` on as one; a "tiled" one is tiled with the last loop in its chain. A loop may reduce for
    some of its tasks; one over `column_axes` does so for whole strips of columns at a time.
    """

    depth: int
    size: int | None
    tasks: list[Node]
    children: list[Nest] = field(default_factory=list)
    kind: str = ""
    column_axes: tuple[int, ...] = ()  # the sizes of the axes that reductions down columns keep
    # Of its tasks: the most iterations inside, whether one reduces, and one needs a flat loop.
    inner: int = 0
    reduces: bool = False
    needs_flat_loop: bool = False

    @property
    def innermost(self) -> bool:
        """Whether it is a loop around straight code only."""
        return self.size is not None and all(child.size is None for child in self.children)

    @property
    def chain(self) -> list[Nest]:
        """It and the loops inside, as long as they are perfectly nested."""
        only = self.children[0] if len(self.children) == 1 else self
        return [self] if only is self or only.size is None else [self, *only.chain]

    @property
    def trip_count(self) -> int:
        """The trip count."""
        loops = self.tasks[0].loops[self.depth:]
        return math.prod(self.column_axes or (loops if self.kind == "flat" else loops[:1]))

    @property
    def reduced(self) -> list[Node]:
        """The tasks whose terms this loop reduces."""
        return [task for task in self.tasks if task.rank <= self.depth < len(task.loops)]


def build_nests(tasks: Sequence[Node], depth: int = 0) -> list[Nest]:
    """Group tasks, in an order that respects their dependences, into nests to run in order."""
    fusion = Fusion(tasks, depth)
    for task in tasks:
        fusion.add(task)
    nests = [nest for nest in fusion.nests if nest.tasks]
    for nest in nests:
        _plan(nest)
    return nests


class Fusion:
    """The nests of the tasks so far."""

    def __init__(self, tasks: Sequence[Node], depth: int) -> None:
        self.depth, self.nests = depth, list[Nest]()
        self.producers = {v: task for task in tasks for v in task.outvars}
        self.positions: dict[Node, int] = {}
        # for each affinity the nests with a task that has it, in order
        self.affinities: defaultdict[Any, list[int]] = defaultdict(list)

    def add(self, task: Node) -> None:
        """Put a task into the first nest that it can be fused with to advantage, or a new one."""
        depth, constant = self.depth, (True, False) if task.is_constant else (True,)
        affinities = list(_affinities(task, task.reads, constant, depth))
        position = next((k for k in self.candidates(affinities, self.earliest(task))
                         if _can_fuse(task, self.nests[k], depth)), len(self.nests))
        if position == len(self.nests):
            self.nests.append(
                Nest(depth, _size(task, depth), [], kind="opaque" if task.opaque else ""))
        self.join([task], position)
        tasks = self.nests[position].tasks
        if 1 < len(tasks) <= _MOST_MOVED and any(
                self.join(tasks, k)
                for k in self.candidates(affinities, self.earliest(tasks[0]), position)):
            self.nests[position].tasks = []

    def candidates(self, affinities: Iterable[Any], first: int, end: int | None = None
                   ) -> list[int]:
        """The nests from `first` on, and before `end`, with a task that has one of the affinities.
        """
        each = (self.affinities[a] for a in affinities if a in self.affinities)
        found = {k for nests in each for k in nests[bisect_left(nests, first):]}
        return sorted(k for k in found if (end is None or k < end) and self.nests[k].tasks)

    def earliest(self, task: Node) -> int:
        """The first nest after, or with, what a task reads."""
        earliest = 0
        for v, patterns in task.reads.items():
            if v in self.producers:
                position = self.positions[self.producers[v]]
                nest = self.nests[position]
                fusible = _can_fuse(task, nest, self.depth) and all(
                    _aligned(patterns, self.producers[v], v, axis)
                    for axis in range(self.depth, self.depth + max(len(nest.column_axes), 1)))
                earliest = max(earliest, position if fusible else position + 1)
        return earliest

    def join(self, tasks: list[Node], position: int) -> bool:
        """Put tasks into a nest, perhaps from a later one that has no others, if all can be fused
        with it.
        """
        nest, old_position = self.nests[position], self.positions.get(tasks[-1], position)
        facts = vars(nest) | {"tasks": list(nest.tasks)} if len(tasks) > 1 else {}
        for task in tasks:
            if self.earliest(task) > position or nest.tasks and not _can_fuse(
                    task, nest, self.depth):
                vars(nest).update(facts)
                self.positions.update(dict.fromkeys(tasks, old_position))
                return False
            nest.tasks.append(task)
            nest.column_axes = nest.column_axes or _columns(task, self.depth)
            nest.inner = max(nest.inner, _inner(task, self.depth))
            nest.reduces |= task.reduces
            nest.needs_flat_loop |= _needs_flat_loop(task, self.depth)
            self.positions[task] = position
        for task in tasks:
            for affinity in _affinities(task, task.outvars, (task.is_constant,), self.depth):
                nests = self.affinities[affinity]
                at = bisect_left(nests, position)
                if nests[at:at + 1] != [position]:
                    nests.insert(at, position)
        return True


def _size(task: Node, depth: int) -> int | None:
    return None if task.opaque or len(task.loops) <= depth else task.loops[depth]


def _can_fuse(task: Node, nest: Nest, depth: int) -> bool:
    if task.opaque or nest.kind == "opaque" or nest.size != _size(task, depth):
        return False
    if (nest.inner in MIDDLING and not nest.column_axes and len(task.loops) == depth + 1
            and task.cost >= SLOW and task.loops[depth] >= MIN_ROWS):
        return False  # in a loop of its own it is computed in vectors
    if (task.reduces or nest.reduces) and (nest.needs_flat_loop or _needs_flat_loop(task, depth)):
        return False
    axes = nest.column_axes or _columns(task, depth)
    return not axes or all(
        axes == (_columns(each, depth) if each.reduces else each.loops[depth:])
        for each in (*(() if nest.column_axes else nest.tasks), task))


def _needs_flat_loop(task: Node, depth: int) -> bool:
    """Whether its short rows would fill no vectors, and have too much code to be put in lanes."""
    return (task.uses_index and task.cost >= _LONG and not task.reduces
            and 0 < _inner(task, depth) <= SHORT_ROW)


def _inner(task: Node, depth: int) -> int:
    """The iterations of the loops inside of the one at `depth`; 0 without any."""
    return math.prod(task.loops[depth + 1:]) if task.loops[depth + 1:] else 0


def _columns(task: Node, depth: int) -> tuple[int, ...]:
    """The axes from `depth` on that a reduction down columns keeps; else nothing.

    All its operands must be contiguous along these axes, or constant.
    """
    axes = [("axis", k) for k in range(depth, task.rank)]
    rows = math.prod(task.loops[task.rank:])
    is_long = rows >= _MIN_ROWS or rows * task.cost >= _MIN_COST
    if axes and task.reduces and is_long and 0 not in task.loops:
        row_axes = {("axis", k) for k in (*range(depth), *range(task.rank, len(task.loops)))}
        last = [[*p.terms[-len(axes):]] for patterns in task.reads.values() for p in patterns
                if len(p.terms) > 1 and not row_axes.issuperset(p.terms)]
        if last and all(terms == axes for terms in last):
            return task.loops[depth:task.rank]
    return ()


def _aligned(patterns: set[Pattern], producer: Node, v: Var, depth: int) -> bool:
    """Whether an iteration reads only what the same iteration has produced."""
    if producer.rank <= depth:
        return len(producer.loops) <= depth  # else it is still being reduced
    return all(_term(p, v, depth) == ("axis", depth) for p in patterns)


def _term(pattern: Pattern, v: Var, axis: int) -> Any:
    """The index with which a value is read along an axis, if it is read in its own shape."""
    return pattern.terms[axis] if pattern.shape == sizes(v.aval.shape) else None


def _affinities(task: Node, values: Iterable[Var], constant: Iterable[bool], depth: int
          ) -> Iterator[Any]:
    """What tasks have in common if fusing them saves memory traffic: one reads the other, or both
    read the same rows.

    A task that reads nothing has no traffic to save: it is fused with loops of the same shape.
    """
    if _size(task, depth) is None:
        yield None
        return
    yield from values
    for v, patterns in task.reads.items():  # along the loop
        yield from ((v, axis) for axis in range(len(sizes(v.aval.shape)))
                    if all(_term(p, v, axis) == ("axis", depth) for p in patterns))
    for flag in constant:
        yield task.loops, task.rank, flag


def _plan(nest: Nest) -> None:
    """Plan the inside of a nest."""
    if nest.size is None:
        return
    producers = {v: task for task in nest.tasks for v in task.outvars}
    if all(_is_flat(task, nest, producers) for task in nest.tasks):
        nest.kind, nest.column_axes = "flat", ()
        return
    nest.children = build_nests(nest.tasks, nest.depth + max(len(nest.column_axes), 1))
    chain = nest.chain
    sizes = [each.trip_count for each in chain]
    if (len(chain) > 1 and chain[-1].innermost and transposed_reads(nest.depth, chain[-1])
            and math.prod(sizes) >= _MIN_ELEMENTS and min(sizes[0], sizes[-1]) >= _MIN_LINES
            and not any(task.reduces or task.probe.has_loops for task in nest.tasks)):
        nest.kind = "tiled"


def _is_flat(task: Node, nest: Nest, producers: dict[Var, Node]) -> bool:
    """Whether one collapsed loop over all remaining axes will do: all reads are contiguous along
    them.

    Values that the loop itself produces must be read at the same index. An index that is used in
    arithmetic would have to be divided out of the linear one.
    """
    depth = nest.depth
    axes = range(depth, len(task.loops))
    if (task.loops != nest.tasks[0].loops or len(axes) < 2 or depth < task.rank < len(task.loops)):
        return False
    if any(not _aligned(patterns, producers[v], v, axis) for v, patterns in task.reads.items()
           if v in producers for axis in axes):
        return False
    return _is_contiguous(task, depth, axes)


def _is_contiguous(task: Node, depth: int, axes: Sequence[int], columns: int = 0) -> bool:
    """Whether a collapsed loop over these axes reads each operand contiguously, or at a fixed
    place, or, again and again, along so many last axes.
    """
    axis_terms = [(("axis", k), task.loops[k]) for k in axes]
    for patterns in task.reads.values():
        for p in patterns:
            terms = [*zip(*p, strict=True)]
            tail = [each for each in terms if each[0] not in identity(task.loops[:depth]).terms]
            free = all(kind == "at" for (kind, _), _ in tail)
            if not free and not tail == terms[-len(tail):] in (
                    axis_terms, axis_terms[len(axes) - columns:]):
                return False
    return not (task.probe.has_loops or task.uses_index)


def rows_per_vector(tasks: Sequence[Node], depth: int) -> int:
    """How many rows a reduction down columns can take as one, to fill vectors."""
    loops, rank = tasks[0].loops, tasks[0].rank
    permuted = [*range(rank, len(loops)), *range(depth, rank)]
    several = any(task.probe.reduction.op in CHEAP for task in tasks)  # rows at a time
    rows = LANES // math.prod(loops[depth:rank]) // (2 * ROWS if several else 1)
    unpacked = not rows or not all(
        _is_contiguous(task, depth, permuted, rank - depth) for task in tasks)
    return 1 if unpacked else math.gcd(math.prod(loops[rank:]), 1 << rows.bit_length() - 1)


def transposed_reads(axis: int, nest: Nest) -> list[tuple[Var, Pattern]]:
    """The reads of a loop over the last axis that are transposed: contiguous along an outer loop.
    """
    reads = dict.fromkeys((v, p) for task in nest.tasks for v in task.reads for p in task.reads[v])
    return [(v, p) for v, p in reads if all(kind in ("axis", "at") for kind, _ in p.terms)
            and ("axis", nest.depth) in p.terms and _term(p, v, -1) == ("axis", axis)]


def paths(nests: Sequence[Nest], enclosing: tuple[Nest, ...] = ()) -> Iterator[tuple[Node, tuple]]:
    """Each task with its enclosing nests, outermost first."""
    for nest in nests:
        path = (*enclosing, nest)
        if nest.children:
            yield from paths(nest.children, path)
        else:
            for task in nest.tasks:
                yield task, path
