"""A program over whole arrays as one over the blocks of each rank, with its communication.

Runs below all transformations, when a program is compiled.  Builds on `across` and on the rules of
`primitives.layouts`.  Chapter 11, *Named axes and many devices*.  In JAX: XLA's partitioner.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from minijax import core, dtypes
from minijax.core import Array, Primitive, ShapedArray
from minijax.core.jaxpr import ClosedJaxpr, JaxprEqn, Literal
from minijax.core.tracing import stage, stage_with_aux
from minijax.placement.across import (Grid, Names, across_exchange_p, across_gather_p,
                                      across_reduce_p, rank_p)
from minijax.primitives import algebra, comparison
from minijax.primitives.ad_util import batch_elementwise, filled
from minijax.primitives.axes import replaced
from minijax.primitives.convert import converted
from minijax.primitives.dynamic_slice import dynamic_slice_p
from minijax.primitives.layouts import Alignment, Factor, Labels, OnBlocks, elementwise
from minijax.util import context

Layout = tuple[Names, ...]  # for each axis the mesh axes that cut it, the first of them major
Axes = list[tuple[Factor, ...]]  # the factors of each axis that may be cut

FEW = 3  # operands whose orders are all tried


class Block(NamedTuple):
    """The block of an array that a rank holds; of an axis without names it is all."""

    value: Array
    layout: Layout

    @property
    def is_cut(self) -> bool:
        return any(self.layout)


class Partitioned(NamedTuple):
    """A program over blocks.

    Args:
      jaxpr: takes and returns blocks.
      layouts_out: those of its results.
      gathers: what each call moves only because an operation needs an axis whole.
    """

    jaxpr: ClosedJaxpr
    layouts_out: list[Layout]
    gathers: list[Gather]


@dataclass(frozen=True)
class Gather:
    """An operand that is gathered for an operation at every call.

    Args:
      operation: the primitive's name.
      where: the user's line.
      bytes: of the gathered array.
      why: the axes that must be whole.
    """

    operation: str
    where: str
    bytes: int
    why: str

    def __str__(self) -> str:
        size = f"{self.bytes / 1e6:.3g} MB" if self.bytes >= 1e5 else f"{self.bytes} bytes"
        return f"{self.operation} at {self.where} gathers {size} at every call, because {self.why}"


class Step(NamedTuple):
    """One move from a layout to another: "gather", "exchange" or "take" along an axis."""

    kind: str
    names: Names
    axis: int
    split: int = 0


def partition(closed: ClosedJaxpr, mesh: Any, layouts_in: Sequence[Layout],
              layouts_out: Sequence[Layout | None] | None = None) -> Partitioned:
    """A program over whole arrays as one over the blocks of each rank.

    Args:
      closed: the program.
      mesh: a mesh; the numbers of its devices are those of ranks.
      layouts_in: for each input, and each of its axes, the mesh axes that cut it.
      layouts_out: of the outputs; None for one that the partitioner chooses.

    Raises:
      ValueError: for an axis that its mesh axes do not cut evenly.
    """
    partitioner = Partitioner(Grid.of(mesh))
    program, layouts = partitioner.program(closed, layouts_in, layouts_out)
    return Partitioned(program, layouts, list(dict.fromkeys(partitioner.gathers)))


class Partitioner:
    """Rewrites programs for the ranks of a grid."""

    def __init__(self, grid: Grid):
        self.grid = grid
        self.gathers: list[Gather] = []
        self._programs: dict[Any, tuple] = {}
        self._moved: dict[Any, tuple[Array, Array]] = {}

    # ── Programs ─────────────────────────────────────────────────────────────────────────────

    def program(self, closed: ClosedJaxpr, layouts_in: Sequence[Layout],
                layouts_out: Sequence[Layout | None] | None = None
                ) -> tuple[ClosedJaxpr, list[Layout]]:
        """A program over blocks, and the layouts of its results."""
        key = closed, tuple(layouts_in), layouts_out and tuple(layouts_out)
        if key not in self._programs:
            self._programs[key] = self._program(closed, layouts_in, layouts_out)
        return self._programs[key]

    def _program(self, closed: ClosedJaxpr, layouts_in: Sequence[Layout],
                 layouts_out: Sequence[Layout | None] | None) -> tuple[ClosedJaxpr, list[Layout]]:
        avals = [self.local(aval, layout)
                 for aval, layout in zip(closed.in_avals, layouts_in, strict=True)]
        wanted = layouts_out or [None] * len(closed.out_avals)

        def of_blocks(*values: Array) -> tuple[list[Array], list[Layout]]:
            blocks = self.run(closed, list(map(Block, values, layouts_in)))
            blocks = [x if layout is None else self.relayout(x, layout, "the layout of a result")
                      for x, layout in zip(blocks, wanted, strict=True)]
            return [x.value for x in blocks], [x.layout for x in blocks]
        outer, self._moved = self._moved, {}
        try:
            program, layouts = stage_with_aux(of_blocks, avals, closed.jaxpr.debug_info)
        finally:
            self._moved = outer
        return program, layouts

    @context.leaving(core.current_source)
    def run(self, closed: ClosedJaxpr, blocks: Sequence[Block]) -> list[Block]:
        """The results of a program, recorded by the current trace."""
        jaxpr = closed.jaxpr
        consts = [whole(x) for x in closed.consts]
        env: dict[Any, Block] = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*consts, *blocks),
                                         strict=True))

        def read(atom: Any) -> Block:
            return whole(atom.value) if isinstance(atom, Literal) else env[atom]
        for eqn in jaxpr.eqns:
            core.current_source.set(eqn.source_info)
            outs = self.equation(eqn, list(map(read, eqn.invars)))
            env.update(zip(eqn.outvars, outs, strict=True))
        return list(map(read, jaxpr.outvars))

    def equation(self, eqn: JaxprEqn, blocks: list[Block]) -> list[Block]:
        """The results of an equation on blocks of its operands."""
        p, params = eqn.primitive, eqn.params
        rule = self.rule_of(eqn)
        if isinstance(rule, OnBlocks):
            return rule.rule(self, p, blocks, **params)
        if not any(x.is_cut for x in blocks):
            return [whole(x) for x in p.bind_list(*(x.value for x in blocks), **params)]
        if rule is None and callable(p.program):
            return self.run(program_of(eqn), blocks)
        if rule is None:
            blocks = [self.gathered(x, p.name, "no rule says how its axes may be cut")
                      for x in blocks]
            return [whole(x) for x in p.bind_list(*(x.value for x in blocks), **params)]
        return Aligned(self, eqn, blocks, rule).results()

    def bound(self, p: Primitive, blocks: Sequence[Block], layouts: Sequence[Layout],
              **params: Any) -> list[Block]:
        """An operation on blocks, whose results have these layouts."""
        outs = p.bind_list(*(x.value for x in blocks), **params)
        return list(map(Block, outs, layouts))

    def rule_of(self, eqn: JaxprEqn) -> Alignment | OnBlocks | None:
        """How cut axes go through an equation."""
        p = eqn.primitive
        types = [x.aval for x in eqn.invars], [x.aval for x in eqn.outvars]
        if p.sharding is not None:
            return p.sharding(*types, **eqn.params)
        if getattr(p.batch, "__func__", None) is batch_elementwise.rule:
            return elementwise(*types)
        return None

    # ── Layouts ──────────────────────────────────────────────────────────────────────────────

    def count(self, names: Sequence) -> int:
        return self.grid.count(names)

    def local(self, aval: ShapedArray, layout: Layout) -> ShapedArray:
        """The type of a block.

        Raises:
          ValueError: where it is not cut evenly.
        """
        for n, names in zip(aval.shape, layout, strict=True):
            if n % self.count(names):
                raise ValueError(
                    f"an axis of size {n} of {aval.str_long()} cannot be cut along {names} into "
                    f"{self.count(names)} equal blocks: pad it, or leave it whole.")
        return aval.update(shape=tuple(n // self.count(names) for n, names in
                                       zip(aval.shape, layout, strict=True)))

    def gathered(self, x: Block, operation: str, why: str) -> Block:
        """An array that each rank holds whole."""
        return self.relayout(x, ((),) * len(x.layout), why, operation)

    def relayout(self, x: Block, layout: Layout, why: str, operation: str = "") -> Block:
        """The same array in another layout; `why` is for the list of gathers."""
        key = id(x.value), x.layout, layout
        if key not in self._moved:
            value = x.value
            for step in self.steps(x.layout, layout):
                value = self._moved_by(value, step, why, operation)
            self._moved[key] = x.value, value
        return Block(self._moved[key][1], layout)

    def steps(self, layout: Layout, target: Layout) -> list[Step]:
        """The moves from one layout to another."""
        now, steps = list(layout), []
        for axis, names in enumerate(target):
            kept = common_prefix(now[axis], names)
            while len(now[axis]) > kept:
                name = now[axis][-1]
                to = next((d for d, other in enumerate(target) if d != axis and
                           other[:len(now[d]) + 1] == (*now[d], name)), None)
                surplus = (name,) if to is not None else now[axis][kept:]
                now[axis] = now[axis][:-len(surplus)]
                if to is None:
                    steps.append(Step("gather", surplus, axis))
                else:
                    steps.append(Step("exchange", surplus, axis, to))
                    now[to] = (*now[to], name)
        return steps + [Step("take", names[len(now[axis]):], axis)
                        for axis, names in enumerate(target) if len(names) > len(now[axis])]

    def _moved_by(self, x: Array, step: Step, why: str, operation: str) -> Array:
        kind, names, axis, split = step
        if kind == "take":
            return self.own_block(x, axis, names)
        params = {"grid": self.grid, "names": names, "where": where(operation)}
        if kind == "exchange":
            return across_exchange_p.bind(x, split=split, axis=axis, **params)
        out = across_gather_p.bind(x, axis=axis, **params)
        if operation:
            self.gathers.append(Gather(operation, where(), bytes_of(out.aval), why))
        return out

    def own_block(self, x: Array, axis: int, names: Names) -> Array:
        """The part along an axis that this rank holds of an array that it has whole."""
        size = x.shape[axis] // self.count(names)
        start = algebra.mul_p.bind(self.rank(names), np.int32(size))
        starts = replaced([np.int32(0)] * x.ndim, axis, start)
        return dynamic_slice_p.bind(x, *starts, slice_sizes=replaced(x.shape, axis, size))

    def rank(self, names: Names) -> Array:
        """The number of this rank's block along mesh axes."""
        return rank_p.bind(grid=self.grid, names=names)

    def reduced(self, x: Array, op: str, names: Names, operation: str) -> Array:
        """The reduction over the ranks along mesh axes of what each of them has."""
        wide = dtypes.computed_in(x.dtype)
        out = across_reduce_p.bind(converted(x, wide, x.weak_type), op=op, grid=self.grid,
                                   names=names, where=where(operation))
        return converted(out, x.dtype, x.weak_type)


class Aligned:
    """An equation whose rule says which axes are the same: chooses what is cut, and runs it."""

    def __init__(self, partitioner: Partitioner, eqn: JaxprEqn, blocks: list[Block],
                 rule: Alignment):
        self.ranks, self.eqn, self.blocks, self.rule = partitioner, eqn, blocks, rule
        self.operands = [axes_of(x.aval.shape, labels)
                         for x, labels in zip(eqn.invars, rule.operands, strict=True)]
        self.outs = [axes_of(x.aval.shape, labels)
                     for x, labels in zip(eqn.outvars, rule.results, strict=True)]

    def results(self) -> list[Block]:
        """The results, from operands in the layouts that cost least."""
        p = self.eqn.primitive
        cut = min(self.candidates(), key=self.cost)
        blocks = [self.ranks.relayout(x, self.layout(axes, cut), self.why(k, cut), p.name)
                  for k, (x, axes) in enumerate(zip(self.blocks, self.operands, strict=True))]
        over = {label: names for label, names in cut.items() if label in self.rule.reduced}
        values = [x.value for x in blocks]
        if self.rule.start is not None and over:
            self.start_once(values, tuple(itertools.chain(*over.values())), *self.rule.start)
        outs = p.bind_list(*values, **self.eqn.params | self.local_sizes(cut))
        for op in dict.fromkeys(self.rule.reduced[label] for label in over):
            names = tuple(n for label, some in over.items() if self.rule.reduced[label] == op
                          for n in some)
            outs = [self.ranks.reduced(x, op, names, p.name) for x in outs]
        return [Block(x, self.layout(axes, cut)) for x, axes in zip(outs, self.outs, strict=True)]

    def start_once(self, values: list[Array], names: Names, k: int, other: Any) -> None:
        """Leave operand k to the first of the ranks, whose results are joined."""
        is_first = comparison.eq_p.bind(self.ranks.rank(names), np.int32(0))
        values[k] = comparison.select_n_p.bind(is_first, filled(other, values[k]), values[k])

    def local_sizes(self, cut: Mapping) -> dict[str, Any]:
        """The parameters that are sizes, for blocks."""
        changed = {}
        for name, labels in self.rule.sizes.items():
            sizes = self.eqn.params[name]
            layout = self.layout(axes_of(sizes, labels), cut)
            changed[name] = tuple(n // self.ranks.count(names)
                                  for n, names in zip(sizes, layout, strict=True))
        return changed

    # ── The choice ───────────────────────────────────────────────────────────────────────────

    def candidates(self) -> Iterator[dict]:
        """Mesh axes for factors, from the operands' layouts, which may contradict each other."""
        own = [k for k, x in enumerate(self.blocks) if x.is_cut]
        own.sort(key=lambda k: -bytes_of(self.eqn.invars[k].aval))
        orders = itertools.permutations(own) if len(own) <= FEW else [own, own[::-1]]
        return map(self.cut_by, orders)

    def cut_by(self, order: Sequence[int]) -> dict:
        """The mesh axes of each factor, where the first operand that has some decides."""
        cut: dict[Any, Names] = {}
        used: set = set()
        for k in order:
            for names, factors in zip(self.blocks[k].layout, self.operands[k], strict=True):
                for label, some in self.spread(names, factors).items():
                    some = tuple(itertools.takewhile(lambda name: name not in used, some))
                    if label not in cut and some:
                        cut[label] = some
                        used.update(some)
        return self.representable(cut)

    def spread(self, names: Names, factors: Sequence[Factor]) -> dict[Any, Names]:
        """The mesh axes of an axis as those of its factors."""
        out, rest = {}, list(names)
        for label, size in factors:
            taken: list = []
            while rest and size % self.ranks.count([*taken, rest[0]]) == 0:
                taken.append(rest.pop(0))
            out[label] = tuple(taken)
            if self.ranks.count(taken) < size:
                break
        return out

    def representable(self, cut: dict) -> dict:
        """Without factors that are cut where a larger part of the same axis is not cut up."""
        for factors in itertools.chain(*self.operands, *self.outs):
            for k, (label, _) in enumerate(factors):
                if label in cut and any(self.ranks.count(cut.get(major, ())) < size
                                        for major, size in factors[:k]):
                    return self.representable({x: cut[x] for x in cut if x != label})
        return cut

    def layout(self, axes: Axes, cut: Mapping) -> Layout:
        return tuple(tuple(itertools.chain(*(cut.get(label, ()) for label, _ in factors)))
                     for factors in axes)

    def cost(self, cut: Mapping) -> tuple[float, int]:
        """How many bytes are sent for a choice; then how many each rank computes."""
        sent, ranks = 0., self.ranks
        for x, axes in zip(self.blocks, self.operands, strict=True):
            size = bytes_of(x.value.aval)
            for step in ranks.steps(x.layout, self.layout(axes, cut)):
                count = ranks.count(step.names)
                sent += size * (count - 1) / (1 if step.kind == "gather" else count) * (
                    step.kind != "take")
                size = size * count if step.kind == "gather" else (
                    size // count if step.kind == "take" else size)
        made = sum(bytes_of(ranks.local(x.aval, self.layout(axes, cut)))
                   for x, axes in zip(self.eqn.outvars, self.outs, strict=True))
        if any(label in self.rule.reduced for label in cut):
            sent += 2 * made
        return sent, made

    def why(self, k: int, cut: Mapping) -> str:
        """The reason why an operand is gathered."""
        return f"{self.eqn.primitive.name} needs it in another layout"


# ── Parts ────────────────────────────────────────────────────────────────────────────────────

def whole(x: Any) -> Block:
    """An array that each rank holds whole."""
    value = core.as_value(x)
    return Block(value, ((),) * value.ndim)


def axes_of(shape: Sequence[int], labels: Labels) -> Axes:
    """The factors of axes: none of one that must be whole."""
    return [() if label is None else factors_of(label, n)
            for n, label in zip(shape, labels, strict=True)]


def factors_of(label: Any, size: int) -> tuple[Factor, ...]:
    is_split = type(label) is tuple and all(type(x) is Factor for x in label)
    return label if is_split else (Factor(label, size),)


def common_prefix(x: Sequence, y: Sequence) -> int:
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1],
                                              zip(x, y, strict=False)))


def bytes_of(aval: ShapedArray) -> int:
    stored = core.physical_aval(aval)
    return stored.size * np.dtype(stored.dtype).itemsize


def where(operation: str = "") -> str:
    """The operation and the user's line, for messages."""
    source = core.current_source.get()
    place = source.place if source is not None else "an unknown line"
    return f"{operation} at {place}" if operation else place


def program_of(eqn: JaxprEqn) -> ClosedJaxpr:
    """The program that an equation is."""
    return stage(lambda *args: eqn.primitive.listed(eqn.primitive.program(*args, **eqn.params)),
                 [x.aval for x in eqn.invars])
