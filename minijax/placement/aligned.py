"""Equations on blocks whose rules say which axes are the same: what is cut, and what is sent.

Builds on `moves`, `primitives.layouts`.  Chapter 11, *Named axes and many devices*.
In JAX: XLA's partitioner.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from minijax import core, dtypes
from minijax.core import Array, Params
from minijax.core.jaxpr import JaxprEqn
from minijax.placement.across import Names, across_permute_p
from minijax.placement.moves import Block, Layout, Moves, bytes_of, where
from minijax.primitives import algebra, comparison
from minijax.primitives.ad_util import broadcast_at, move_axis, reshaped
from minijax.primitives.axes import replaced
from minijax.primitives.convert import converted
from minijax.primitives.dynamic_slice import dynamic_slice_p
from minijax.primitives.layouts import Alignment, Factor, Labels
from minijax.primitives.shape import squeeze

Axes = list[tuple[Factor, ...]]  # the factors of each axis that may be cut
Cut = Mapping[Any, Names]  # the mesh axes of each factor

FEW = 4  # layouts whose orders are all tried
CHOSEN = "cut along different axes, or unevenly"  # a gather that follows from the user's layouts


class Aligned:
    """An equation on blocks of its operands.

    Args:
      uses: the layouts in which the results are used, as far as they are known.
    """

    def __init__(self, ranks: Moves, eqn: JaxprEqn, blocks: list[Block], rule: Alignment,
                 uses: Sequence[Layout | None]):
        self.ranks, self.eqn, self.blocks, self.uses = ranks, eqn, blocks, uses
        self.sources = sources_of(rule, blocks, eqn)
        self.rule = rule = in_order(rule) if is_identity(self.sources) else rule
        self.operands = [axes_of(x.aval.shape, labels)
                         for x, labels in zip(eqn.invars, rule.operands, strict=True)]
        self.outs = [axes_of(x.aval.shape, labels)
                     for x, labels in zip(eqn.outvars, rule.results, strict=True)]
        self.may_be_cut = {label for factors in itertools.chain(*self.operands, *(
            axes_of(eqn.params[name], labels) for name, labels in rule.sizes.items()))
            for label, _ in factors}
        self.cut: Cut = min(self.candidates(), key=self.cost)
        self.layouts = [self.layout(axes, self.cut) for axes in self.operands]

    # ── The equation ─────────────────────────────────────────────────────────────────────────

    def results(self) -> list[Block]:
        """The results, from operands in the layouts that cost least."""
        p, cut = self.eqn.primitive, self.cut
        if self.sources and (permuted := self.permuted(self.sources)):
            return [permuted]
        blocks = [self.ranks.relayout(x, layout, self.why(k, layout), p.name)
                  for k, (x, layout) in enumerate(zip(self.blocks, self.layouts, strict=True))]
        values = [x.value for x in blocks]
        if self.rule.start is not None and self.reduced:
            names = tuple(itertools.chain(*(names for _, names in self.reduced)))
            k, other = self.rule.start
            values[k] = self.ranks.on_first(values[k], names, other)
        params = self.eqn.params | self.local_sizes()
        if any(op in ("add", "mul") for op, _ in self.reduced):
            values, params = self.widened(values, params)
        outs = p.bind_list(*values, **params)
        if names := cut.get(self.rule.counted, ()):
            outs = [self.counted_on(outs[0], self.outs[0], names)]
        return [self.joined(Block(x, self.layout(axes, cut)), use)
                for x, axes, use in zip(outs, self.outs, self.uses, strict=True)]

    def kept(self) -> list[Layout]:
        """The layouts that results of the whole program have, as in XLA: their own, and of an
        operand of the same shape the cuts along axes that the operation needs whole.
        """
        out = [list(self.layout(axes, self.cut)) for axes in self.outs]
        for layout, v in zip(out, self.eqn.outvars, strict=True):
            for block, x, taken in zip(self.blocks, self.eqn.invars, self.layouts, strict=True):
                is_alike = self.rule.keeps and x.aval.shape == v.aval.shape
                for d, names in enumerate(block.layout if is_alike else ()):
                    if not (taken[d] or layout[d] or {*names} & {*itertools.chain(*layout)}):
                        layout[d] = names
        return list(map(tuple, out))

    @property
    def reduced(self) -> list[tuple[str, Names]]:
        """The operations that join the results of ranks, and along which mesh axes."""
        ops: dict[str, Names] = {}
        for label, names in self.cut.items():
            if op := self.rule.reduced.get(label):
                ops[op] = (*ops.get(op, ()), *names)
        return list(ops.items())

    def joined(self, x: Block, use: Layout | None) -> Block:
        """A result over all ranks, or the part of it in which it is used."""
        for op, names in self.reduced:
            axis = scattered(x.layout, use, names)
            value = self.ranks.reduced(x.value, op, names, self.eqn.primitive.name, axis)
            value = converted(value, self.eqn.outvars[0].aval.dtype, value.weak_type)
            x = Block(value, x.layout if axis is None else use)  # type: ignore[arg-type]
        return x

    def widened(self, values: Sequence[Array], params: Params) -> tuple[list[Array], Params]:
        """Operands and parameters of narrow floats in the dtype in which ranks add them up."""
        dtype = self.eqn.outvars[0].aval.dtype
        wide = dtypes.computed_in(dtype)
        return ([converted(x, wide, x.weak_type) if x.dtype == dtype else x for x in values],
                {name: wide if isinstance(x, np.dtype) and x == dtype else x
                 for name, x in params.items()})

    def counted_on(self, x: Array, axes: Axes, names: Names) -> Array:
        """Numbers in order, from the first that this rank has."""
        axis = next(d for d, factors in enumerate(axes)
                    if self.rule.counted in [label for label, _ in factors])
        start = algebra.mul_p.bind(self.ranks.rank(names), np.int32(x.shape[axis]))
        return algebra.add_p.bind(x, broadcast_at(converted(start, x.dtype, False), (), x.shape))

    def local_sizes(self) -> dict[str, Any]:
        """The parameters that are sizes, for blocks."""
        changed = {}
        for name, labels in self.rule.sizes.items():
            sizes = self.eqn.params[name]
            layout = self.layout(axes_of(sizes, labels), self.cut)
            changed[name] = tuple(n // self.ranks.count(names)
                                  for n, names in zip(sizes, layout, strict=True))
        return changed

    def permuted(self, sources: list[int]) -> Block | None:
        """A gather of rows, each on one rank, by constant indices: the ranks send them."""
        x, (axis, to) = self.blocks[0], self.rule.taken  # type: ignore[misc]
        names, layout = x.layout[axis], self.layout(self.outs[0], self.cut)
        if is_identity(sources):
            out = self.ranks.relayout(x, self.layouts[0], self.why(0, self.layouts[0]), "gather"
                                      ).value
        elif not names or self.ranks.count(names) != len(sources) or any(
                own for d, own in enumerate(x.layout) if d != axis):
            return None
        else:
            out = self.sent_by(x.value, sources, names)
            layout = tuple(names if d == to else () for d in range(len(self.outs[0])))
        shape = self.ranks.local(self.eqn.outvars[0].aval, layout).shape
        return Block(reshaped(move_axis(out, axis, to), shape), layout)

    def sent_by(self, x: Array, sources: list[int], names: Names) -> Array:
        """What the rank has that is the source of this one."""
        out = x
        for pairs in rounds([(s, k) for k, s in enumerate(sources) if s != k]):
            sent = across_permute_p.bind(x, pairs=tuple(pairs), grid=self.ranks.grid,
                                         names=names, where=where("ppermute"))
            arrives = np.isin(range(len(sources)), [k for _, k in pairs])
            here = dynamic_slice_p.bind(arrives, self.ranks.rank(names), slice_sizes=(1,))
            out = comparison.select_n_p.bind(squeeze(here, (0,)), out, sent)
        return out

    # ── The choice ───────────────────────────────────────────────────────────────────────────

    def candidates(self) -> Iterator[Cut]:
        """Mesh axes for factors, from the layouts of operands and uses, which may contradict."""
        layouts = [(x.layout, axes) for x, axes in zip(self.blocks, self.operands, strict=True)
                   if x.is_cut]
        layouts += [(layout, axes) for layout, axes in zip(self.uses, self.outs, strict=True)
                    if layout]
        orders: Iterable = (itertools.permutations(layouts) if len(layouts) <= FEW else
                            (layouts, layouts[::-1]))
        return map(self.cut_by, orders)

    def cut_by(self, layouts: Sequence[tuple[Layout, Axes]]) -> Cut:
        """The mesh axes of each factor, where the first layout that has some decides."""
        cut: dict[Any, Names] = {}
        used: set = set()
        for layout, axes in layouts:
            for names, factors in zip(layout, axes, strict=True):
                for label, some in self.spread(names, factors).items():
                    some = tuple(itertools.takewhile(lambda name: name not in used, some))
                    if label not in cut and label in self.may_be_cut and some:
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

    def representable(self, cut: Cut) -> Cut:
        """Without factors that are cut where a larger part of the same axis is not cut up."""
        for factors in itertools.chain(*self.operands, *self.outs):
            for k, (label, _) in enumerate(factors):
                if label in cut and any(self.ranks.count(cut.get(major, ())) < size
                                        for major, size in factors[:k]):
                    return self.representable({x: cut[x] for x in cut if x != label})
        return cut

    def layout(self, axes: Axes, cut: Cut) -> Layout:
        return tuple(tuple(itertools.chain(*(cut.get(label, ()) for label, _ in factors)))
                     for factors in axes)

    def layouts_for(self, uses: Sequence[Layout | None]) -> list[Layout]:
        """The layouts of operands from which results have these."""
        layouts = [(layout, axes) for layout, axes in zip(uses, self.outs, strict=True) if layout]
        reduced = {x: names for x, names in self.cut.items() if x in self.rule.reduced}
        cut = reduced | {x: names for x, names in self.cut_by(layouts).items()
                         if not {*itertools.chain(*reduced.values())} & {*names}}
        return [self.layout(axes, cut) for axes in self.operands]

    def cost(self, cut: Cut) -> tuple[float, int]:
        """How many bytes each rank sends for a choice; then how many it computes."""
        layouts = [self.layout(axes, cut) for axes in self.outs]
        made = [bytes_of(self.ranks.local(x.aval, layout))
                for x, layout in zip(self.eqn.outvars, layouts, strict=True)]
        sent = sum(self.sent(x.layout, self.layout(axes, cut), bytes_of(x.value.aval))
                   for x, axes in zip(self.blocks, self.operands, strict=True))
        over = tuple(name for x, names in cut.items() if x in self.rule.reduced for name in names)
        for layout, use, size in zip(layouts, self.uses, made, strict=True):
            is_scattered = over and scattered(layout, use, over) is not None
            sent += size * (1 if is_scattered else 2 if over else 0)
            if use and not is_scattered:
                sent += self.sent(layout, use, size)
        return sent, sum(made)

    def sent(self, layout: Layout, target: Layout, size: int) -> float:
        """How many bytes each rank sends between two layouts of an array of blocks of a size."""
        total = 0.
        for kind, names, *_ in self.ranks.steps(layout, target):
            count = self.ranks.count(names)
            total += {"gather": size * (count - 1), "exchange": size * (count - 1) / count}.get(
                kind, 0)
            size = size * count if kind == "gather" else size // count if kind == "take" else size
        return total

    def why(self, k: int, target: Layout) -> str:
        """The reason why an operand is gathered."""
        name = self.eqn.primitive.name
        lost = [d for d, (own, new) in enumerate(zip(self.blocks[k].layout, target, strict=True))
                if own != new[:len(own)]]
        if lost and not self.operands[k][lost[0]]:
            return f"{name} needs axis {lost[0]} of operand {k} whole"
        is_alone = not any(x.is_cut for i, x in enumerate(self.blocks) if i != k)
        if lost and is_alone and not any(self.uses):
            return f"{name} does not keep axis {lost[0]} of operand {k} in equal blocks"
        return f"the operands of {name}, or the uses of its result, are {CHOSEN}"


# ── Rows in another order ────────────────────────────────────────────────────────────────────

def sources_of(rule: Alignment, blocks: Sequence[Block], eqn: JaxprEqn) -> list[int]:
    """The constant indices of a gather of as many rows as there are; otherwise none."""
    if rule.taken is None or type(blocks[1].value) is not core.ArrayImpl:
        return []
    axis, _ = rule.taken
    columns = {d: blocks[1].value._buffer[:, k]
               for k, d in enumerate(eqn.params["dimension_numbers"][2])}
    sources: list[int] = columns.pop(axis, np.zeros(0)).tolist()
    size = eqn.invars[0].aval.shape[axis]
    is_plain = len(sources) == size and all(0 <= s < size for s in sources)
    return sources if is_plain and not any(map(np.any, columns.values())) else []


def is_identity(sources: list[int]) -> bool:
    return bool(sources) and sources == [*range(len(sources))]


def in_order(rule: Alignment) -> Alignment:
    """The rule of a gather of all rows in their order: the axis is that of the operand."""
    [operand, _], [result], (axis, to) = rule.operands, rule.results, rule.taken  # type: ignore[misc]
    return rule._replace(operands=[replaced(operand, axis, result[to]), [None] * 2])


# ── Parts ────────────────────────────────────────────────────────────────────────────────────

def axes_of(shape: Sequence[int], labels: Labels) -> Axes:
    """The factors of axes: none of one that must be whole."""
    return [() if label is None else factors_of(label, n)
            for n, label in zip(shape, labels, strict=True)]


def factors_of(label: Any, size: int) -> tuple[Factor, ...]:
    is_split = type(label) is tuple and all(type(x) is Factor for x in label)
    return label if is_split else (Factor(label, size),)


def scattered(layout: Layout, use: Layout | None, names: Names) -> int | None:
    """The axis along which a result is used that would be cut by the mesh axes it is reduced over.
    """
    if use is None:
        return None
    changed = [d for d, (own, new) in enumerate(zip(layout, use, strict=True)) if own != new]
    return changed[0] if len(changed) == 1 and use[changed[0]] == (
        *layout[changed[0]], *names) else None


def rounds(pairs: Sequence[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """Pairs in rounds, in each of which a rank sends at most once."""
    out: list[list[tuple[int, int]]] = []
    for pair in pairs:
        free = next((some for some in out if pair[0] not in [s for s, _ in some]), None)
        if free is None:
            out.append(free := [])
        free.append(pair)
    return out
