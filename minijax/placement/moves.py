"""Blocks of arrays, and the moves of an array from one layout to another.

Builds on `across`.  Chapter 11, *Named axes and many devices*.  In JAX: XLA's partitioner.
"""

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from minijax import core, dtypes
from minijax.core import Array, ShapedArray
from minijax.placement.across import (Grid, Names, across_exchange_p, across_gather_p,
                                      across_reduce_p, rank_p)
from minijax.primitives import ad_util, algebra, axes, comparison, reduce
from minijax.primitives.convert import converted
from minijax.primitives.dynamic_slice import dynamic_slice_p
from minijax.util.source_info import SourceInfo

Layout = tuple[Names, ...]  # for each axis the mesh axes that cut it, the first of them major

OF_BLOCKS = {"add": ad_util.reduce_sum_p, "mul": reduce.reduce_prod_p, "max": reduce.reduce_max_p,
             "min": reduce.reduce_min_p, "and": reduce.reduce_and_p, "or": reduce.reduce_or_p,
             "xor": reduce.reduce_xor_p}


class Block(NamedTuple):
    """The block of an array that a rank holds; of an axis without names it is all."""

    value: Array
    layout: Layout

    @property
    def is_cut(self) -> bool:
        return any(self.layout)


def whole(x: Any) -> Block:
    """An array that each rank holds whole."""
    value = core.as_value(x)
    if value.aval.explicit_sharding is not None:
        value = core.ArrayImpl(value._buffer, value.aval.update(sharding=None))
    return Block(value, ((),) * value.ndim)


@dataclass(frozen=True)
class Gather:
    """An operand that is gathered for an operation at every call.

    Args:
      operation: the primitive's name.
      source: the user's line.
      bytes: of the gathered array.
      why: what must be whole, or the layouts that contradict each other.
    """

    operation: str
    source: SourceInfo | None
    bytes: int
    why: str

    def __str__(self) -> str:
        place = f" at {self.source.place}" if self.source else ""
        return f"{self.operation}{place} {self.message}"

    @property
    def message(self) -> str:
        size = f"{self.bytes / 1e6:.3g} MB" if self.bytes >= 1e5 else f"{self.bytes} bytes"
        return f"gathers {size} at every call, because {self.why}"


class Step(NamedTuple):
    """One move: "gather" or "take" along an axis; or "exchange": to `split` from `axis`."""

    kind: str
    names: Names
    axis: int
    split: int = 0


class Moves:
    """The moves between layouts on a grid of ranks, and their list."""

    def __init__(self, grid: Grid):
        self.grid = grid
        self.gathers: list[Gather] = []
        self.moved: dict[Any, tuple[Array, Array]] = {}  # what moved already; keeps its key alive

    def count(self, names: Sequence) -> int:
        """The number of blocks that mesh axes make."""
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

    def whole_type(self, x: Block) -> ShapedArray:
        """The type of the array of which this is a block."""
        return x.value.aval.update(shape=tuple(
            n * self.count(names) for n, names in zip(x.value.shape, x.layout, strict=True)))

    def rank(self, names: Names) -> Array:
        """The number of this rank's block along mesh axes."""
        return rank_p.bind(grid=self.grid, names=names)

    # ── Between layouts ──────────────────────────────────────────────────────────────────────

    def gathered(self, x: Block, operation: str, why: str) -> Block:
        """An array that each rank holds whole."""
        return self.relayout(x, ((),) * len(x.layout), why, operation)

    def relayout(self, x: Block, layout: Layout, why: str, operation: str = "") -> Block:
        """The same array in another layout; `why` is for the list of gathers."""
        key = id(x.value), x.layout, layout
        if key not in self.moved:
            value = x.value
            self.local(self.whole_type(x), layout)  # or else ValueError
            for step in self.steps(x.layout, layout):
                value = self._moved_by(value, step, why, operation)
            self.moved[key] = x.value, value
        return Block(self.moved[key][1], layout)

    def steps(self, layout: Layout, target: Layout) -> list[Step]:
        """The moves from one layout to another."""
        now, steps = list(layout), []
        for axis, names in enumerate(target):
            kept = [*map(operator.eq, now[axis], names), False].index(False)
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
        if self.count(names) == 1:
            return x
        if kind == "take":
            return self.own_part(x, axis, names)
        params = {"grid": self.grid, "names": names, "where": where(operation)}
        if kind == "exchange":
            return across_exchange_p.bind(x, split=split, axis=axis, **params)
        out = across_gather_p.bind(x, axis=axis, **params)
        if operation:
            source = core.current_source.get()
            self.gathers.append(Gather(operation, source, bytes_of(out.aval), why))
        return out

    def own_part(self, x: Array, axis: int, names: Names) -> Array:
        """The part along an axis that this rank keeps of an array that it has whole."""
        size = x.shape[axis] // self.count(names)
        start = algebra.mul_p.bind(self.rank(names), np.int32(size))
        starts = axes.replaced([np.int32(0)] * x.ndim, axis, start)
        return dynamic_slice_p.bind(x, *starts, slice_sizes=axes.replaced(x.shape, axis, size))

    def on_first(self, x: Array, names: Names, other: Any) -> Array:
        """An array on the first rank along mesh axes; on the others, all elements are `other`."""
        is_first = comparison.eq_p.bind(self.rank(names), np.int32(0))
        return comparison.select_n_p.bind(is_first, ad_util.filled(other, x), x)

    # ── Reductions ───────────────────────────────────────────────────────────────────────────

    def reduced(self, x: Array, op: str, names: Names, operation: str, axis: int | None = None
                ) -> Array:
        """The reduction over ranks along mesh axes of what each of them has.

        If an axis is given, a rank gets only its part along it: the others send that part alone.
        """
        if self.count(names) == 1:
            return x
        params = {"grid": self.grid, "names": names, "where": where(operation)}
        if axis is None:  # engines reduce no narrow floats
            wide = converted(x, dtypes.computed_in(x.dtype), x.weak_type)
            return converted(across_reduce_p.bind(wide, op=op, **params), x.dtype, x.weak_type)
        stacked = ad_util.broadcast_at(x, range(1, x.ndim + 1), (1, *x.shape))
        parts = across_exchange_p.bind(stacked, split=axis + 1, axis=0, **params)
        return OF_BLOCKS[op].bind(parts, axes=(0,))


# ── Parts ────────────────────────────────────────────────────────────────────────────────────

def bytes_of(aval: ShapedArray) -> int:
    stored = core.physical_aval(aval)
    return stored.size * np.dtype(stored.dtype).itemsize


def where(operation: str) -> str:
    """The operation and the user's line, for messages."""
    source = core.current_source.get()
    return f"{operation or 'a layout'} at {source.place}" if source else operation
