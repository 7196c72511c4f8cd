"""How long products are computed: of a vector as sums, of matrices in blocks.

The `library` rule of `dot_general`.  Chapter 24, *Loops and Numba*.
In JAX: XLA's dot emitters, and Eigen and oneDNN behind them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax import stage
from minijax.core import ShapedArray
from minijax.primitives.axes import Axes, without
from minijax.primitives.emitted import transpose_p
from minijax.primitives.slots import computed_in, nest
from minijax.primitives.summation import LONG

from .. import cpu
from ..builder import CHAIN
from ..loops import Address
from ..operands import Computed
from ..routines import product_of

INLINE = 8 * 8 * 8  # terms: a product of so many is over before a block has begun
INLINE_VECTOR = 32  # and so of a matrix and a vector
LARGEST_TURNED = 1 << 18  # elements that are worth a second copy
ENOUGH = 8  # panels, the columns of a block each, for threads to share, or else the blocks of
SHARED = 1 << 22  # terms in a panel: some 40 µs
BESIDE = 8  # panels, for which some rows are read while they are in the cache
MANY = 4  # blocks below each other for which the columns are brought near each other
LAUNCHED = 1 << 16  # terms that are worth a launch of their own, where there are launches,
NARROW = 8  # unless in rows or columns so few that a square would be empty for the most part


class Side(NamedTuple):
    """One operand, and what its axes are for."""

    buffer: Any
    batch: Axes
    free: Axes
    contract: Axes

    def sizes(self, axes: Axes) -> tuple[int, ...]:
        return tuple(self.buffer.shape[d] for d in axes)

    def size(self, axes: Axes) -> int:
        return math.prod(self.sizes(axes))

    def copied(self, b: Any, axes: Axes, dtype: np.dtype) -> Side:
        """A copy whose axes are these."""
        x, copy = self.buffer, b.temp(self.sizes(axes), dtype)
        wide = Computed(b, lambda at: b.convert(b.load(x, at), dtype), x.shape, dtype)
        computed(b, lambda x: [transpose_p.bind(x, permutation=axes)], copy, wide)
        return Side(copy, *(tuple(map(axes.index, part))
                            for part in (self.batch, self.free, self.contract)))


def dot_general(b: Any, outputs: Sequence, operands: Sequence, *, dimension_numbers: tuple,
                as_sums: Callable[..., Any], **params: Any) -> None:
    """The `library` rule of the primitive of that name, which takes each element `as_sums`."""
    [out], (contract, batch) = outputs, dimension_numbers
    left, right = (Side(x, batch[i], without(range(len(x.shape)), contract[i] + batch[i]),
                        contract[i]) for i, x in enumerate(operands))
    rows, columns = left.size(left.free), right.size(right.free)
    terms = rows * left.size(left.contract) * columns
    if 1 in (rows, columns) and terms > INLINE_VECTOR:
        left, right = turned_before_loops(b, left), turned_before_loops(b, right)
    elif b.on_gpu and terms >= LAUNCHED and min(rows, columns) >= NARROW:
        return at_once(b, out, left, right, params["precision"])
    elif terms > INLINE and not b.on_gpu:
        return by_blocks(b, out, left, right)
    params["dimension_numbers"] = (left.contract, right.contract), (left.batch, right.batch)
    computed(b, lambda x, y: [as_sums(x, y, **params)], out, left.buffer, right.buffer)


def turned_before_loops(b: Any, side: Side) -> Side:
    """The matrix of a step with its rows as columns, where one turning serves many steps."""
    x = side.buffer
    if (side.batch or side.size(side.free) == 1 or len(x.shape) - 1 in side.free
            or x.size > LARGEST_TURNED or b.changes_in_loop(x)):
        return side
    axes = side.contract + side.free
    return b.before_loops(x, axes, lambda: side.copied(b, axes, x.dtype))


def computed(b: Any, f: Any, out: Any, *given: Any) -> None:
    """Write into a buffer what a function of arrays makes of those in others."""
    b.jaxpr(stage.stage(f, [ShapedArray(x.shape, x.dtype) for x in given]), given, into=[out])


# ── All at once ──────────────────────────────────────────────────────────────────────────────

def at_once(b: Any, out: Any, left: Side, right: Side, precision: Any) -> None:
    """One call for all matrices of a batch: of a library, or a launch, as its scheduler decides."""
    batch, k = left.size(left.batch), left.size(left.contract)
    (x, steps_of_x), (y, steps_of_y) = as_stack(b, left), as_stack(b, right)
    b.call(product_of(x.dtype, y.dtype, out.dtype, precision), x, *steps_of_x, y, *steps_of_y, out,
           batch, left.size(left.free), right.size(right.free), k)


def as_stack(b: Any, side: Side) -> tuple[Any, tuple[int, ...]]:
    """Where its matrices are, a row for each place of the free axes, and how many places apart: the
    matrices, their rows, and the numbers in these. Either are neighbours, or else it is a copy.
    """
    x, order = side.buffer, side.batch + side.free + side.contract
    view = reshaped(x, order, tuple(map(side.size, (side.batch, side.free, side.contract))))
    if view is None or 1 not in view.strides[1:]:
        return as_stack(b, side.copied(b, order, x.dtype))
    return x, view.strides


def reshaped(x: Any, order: Axes, shape: Sequence[int]) -> Any:
    """An array of bytes that lies as one with these axes and then this shape does in a buffer; None
    where those to become one do not lie together.
    """
    laid: Any = np.empty(x.shape, np.int8).transpose(order)
    try:
        return laid.reshape(shape, copy=False)
    except ValueError:
        return None


# ── Blocks ───────────────────────────────────────────────────────────────────────────────────

class Matrices(NamedTuple):
    """Numbers in a buffer: neighbours along an axis are so many places apart. The last two axes are
    those of a matrix, what is before them says of which.
    """

    buffer: Any
    steps: tuple[int, ...]

    def at(self, b: Any, *index: Any) -> tuple:
        """Where an element is."""
        places = map(b.mul, map(b.index, index), self.steps)
        return self.buffer, (functools.reduce(b.add, places),)


def by_blocks(b: Any, out: Any, left: Side, right: Side) -> None:
    """One product of matrices for each place of the batch axes.

    Long sums are those of parts of the terms, in groups of parts.
    """
    wide, sides = summed_in(out.dtype), (left, right)
    halves = fit_in_halves(wide, out.dtype, *(side.buffer.dtype for side in sides))
    if halves:
        left, right = (in_halves(b, side, wide) for side in sides)
    m, k, n = left.size(left.free), left.size(left.contract), right.size(right.free)
    most, groups = parts_of(k)
    x = as_matrices(b, left, wide)
    y = as_matrices(b, turned_before_loops(b, right), right.buffer.dtype)
    batch = left.sizes(left.batch)
    sums = out if out.dtype == wide and groups == 1 else b.temp((groups, *out.shape), wide)
    z = Matrices(sums, np.empty((groups, *batch, m, n), np.int8).strides)
    with b.loop(math.prod(batch), vectorize="parallel") as place:
        multiply(b, z, x, y, b.unravel(b.index(place), batch), (m, k, n), most, halves)
    if sums is not out:
        collected(b, sums, groups, out, lambda at: at)


def summed_in(dtype: np.dtype) -> np.dtype:
    """The dtype in which blocks add up what gives numbers of another one: of integers only the
    bits that are left count, whatever is beyond them.
    """
    narrow = dtype.kind in "biu" and dtype.itemsize < 4
    return np.dtype(np.int32) if narrow else computed_in(dtype)


def fit_in_halves(wide: np.dtype, out: np.dtype, *given: np.dtype) -> bool:
    """Whether two terms may share a number: what is beyond 16 bits is nothing, or is not asked for.
    """
    return wide == np.int32 and all(x.kind in "biu" for x in given) and (
        out.itemsize < 4 or all(x.itemsize == 1 or x == np.int16 for x in given))


def in_halves(b: Any, side: Side, dtype: np.dtype) -> Side:
    """A copy with two neighbouring terms in each number, the first in the lower half of its bits.
    """
    x, inner, k = side.buffer, side.sizes(side.contract), side.size(side.contract)
    start, stop = len(side.batch), len(side.batch) + len(side.free)
    by_terms = len(x.shape) - 1 in side.free
    at_pair = start if by_terms else stop
    sizes, half = side.sizes(side.batch + side.free), 4 * dtype.itemsize
    copy = b.temp((*sizes[:at_pair], -(-k // 2), *sizes[at_pair:]), dtype, "halves")

    def term(at: Sequence[Any], place: Any) -> Any:
        axes = side.batch + side.free + side.contract
        index = dict(zip(axes, (*at, *b.unravel(place, inner)), strict=True))
        return b.convert(b.load(x, tuple(map(index.get, range(len(x.shape))))), dtype)

    with nest(b, copy.shape, "parallel") as at:
        others, first = at[:at_pair] + at[at_pair + 1:], b.mul(b.index(at[at_pair]), 2)
        lower, second = term(others, first), b.add(first, 1)
        upper = term(others, b.min(second, k - 1) if k % 2 else second)
        if k % 2:
            upper = b.select(b.lt(second, k), upper, 0)
        b.store(copy, at, b.or_(b.and_(lower, (1 << half) - 1), b.shl(upper, half)))
    b.freeze(copy)
    free = tuple(range(start + by_terms, stop + by_terms))
    return Side(copy, tuple(range(start)), free, (at_pair,))


def parts_of(terms: int) -> tuple[int, int]:
    """How many terms a part of a sum has at most, and how many groups of parts there are."""
    least = -(-terms // LONG)
    most = next((terms // parts for parts in range(least, 2 * least) if terms % parts == 0), LONG)
    return most, -(-terms // (most * CHAIN))


def collected(b: Any, sums: Any, groups: int, out: Any, place: Callable[[Any], Any]) -> None:
    """Add up the groups of every sum, which for an index of the result stand at a `place`."""
    total = lambda at: b.accumulate("add", (groups,), lambda part: b.load(sums, (part, *place(at))))
    short = Computed(b, lambda at: b.convert(total(at), out.dtype), out.shape, out.dtype)
    b.materialize(short, into=out)


def as_matrices(b: Any, side: Side, dtype: np.dtype) -> Matrices:
    """A row for each place of the free axes, a matrix for each of the batch axes; a copy of them
    where axes are not one after the other.
    """
    x, order = side.buffer, side.batch + side.free + side.contract
    shape = *side.sizes(side.batch), side.size(side.free), side.size(side.contract)
    view = reshaped(x, order, shape)
    if view is None or x.dtype != dtype:
        return as_matrices(b, side.copied(b, order, dtype), dtype)
    return Matrices(x, view.strides)


def multiply(b: Any, z: Matrices, x: Matrices, y: Matrices, here: Sequence[Any],
             sizes: tuple[int, int, int], most: int, halves: bool = False) -> None:
    """Put the product of the rows of x with those of y into z, block by block, here in a batch.

    The rows of y that belong to some blocks are first brought near each other, where they serve for
    many rows of x. The last blocks may overlap those before them, and there give nothing.
    """
    m, k, n = sizes
    dtype, parts, chains = z.buffer.dtype, -(-k // most), -(-k // (most * CHAIN))
    routine, height, width = block_routine(m, n, dtype, halves)
    strips, panels, width = -(-m // height), -(-n // width), min(n, width)
    is_far = y.steps[-2] != 1 or (panels > 1 and strips >= MANY) or y.buffer.dtype != dtype
    whole = panels >= ENOUGH or m * k * width < SHARED
    beside = min(panels // ENOUGH or 1 if whole and chains == 1 else panels, BESIDE)
    beside = next(count for count in range(beside, 0, -1) if panels % count == 0)

    def top(block: Any, size: int, of: int) -> tuple[Any, Any]:
        """Where a block begins, and how far that is in the one before it."""
        wanted = b.mul(b.index(block), size)
        start = b.min(wanted, of - size) if of % size else wanted
        return start, b.sub(wanted, start)

    with (b.loop(chains, vectorize="parallel") as chain,
          b.loop(panels // beside, vectorize="parallel" * whole) as group):
        first, left = b.mul(b.index(chain), CHAIN), b.mul(b.index(group), beside)
        with b.loop(b.min(b.sub(parts, first), min(parts, CHAIN))) as part:
            t = b.mul(b.add(first, part), most)
            terms = b.min(b.sub(k, t), most) if k % most else b.index(most)
            if is_far:
                near = b.temp((beside, most, width), dtype, "near")
                with b.loop(beside) as panel, nest(b, (terms, width), "parallel") as (i, j):
                    column = b.add(top(b.add(left, panel), width, n)[0], j)
                    term = b.load(*y.at(b, *here, column, b.add(t, i)))
                    b.store(near, (panel, i, j), b.convert(term, dtype))
                b.freeze(near)
            with b.loop(strips, vectorize="parallel") as strip, b.loop(beside) as panel:
                row, above = top(strip, height, m)
                column, before = top(b.add(left, panel), width, n)
                terms_of_y = ((near, (b.mul(b.index(panel), most * width),)) if is_far
                              else y.at(b, *here, column, t))
                b.call(routine, Address(*x.at(b, *here, row, t)), *x.steps[-2:],
                       Address(*terms_of_y), width if is_far else y.steps[-1], terms,
                       Address(*z.at(b, chain, *here, row, column)), z.steps[-2], above, before,
                       width, part)


def block_routine(m: int, n: int, dtype: np.dtype, halves: bool) -> tuple[str, int, int]:
    """The routine of a block, with its rows and columns: as many as fit into registers."""
    count, size = cpu.vector_registers()
    most = 2 * size // dtype.itemsize
    width = min((most, most // 2, most // 4), key=lambda w: (-(-n // w) * (w + 4), -w))
    height = min(count // 4, m)
    height = min(range(-(-height // 2), height + 1), key=lambda h: (-m % h, -h))
    return f"block_{'halves_' * halves}{dtype.name}_{height}x{width}", height, width
