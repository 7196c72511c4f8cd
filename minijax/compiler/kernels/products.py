"""Long products: reductions for vectors, blocked products for matrices.

The `library` rule of `dot_general`.  Chapter 24, *Loops and Numba*.
In JAX: XLA's dot emitters, and Eigen and oneDNN behind them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.core import tracing, ShapedArray
from minijax.primitives.axes import Axes, without
from minijax.primitives.ad_util import transpose_p
from minijax.primitives.slots import computed_in, nest
from minijax.primitives.summation import LONG

from .. import cpu
from ..builder import CHAIN
from ..loops import Address
from ..operands import Computed
from ..routines import product_of

INLINE = 8 * 8 * 8  # terms: a product of so many is faster without blocks
INLINE_VECTOR = 32  # and so of a matrix and a vector
LARGEST_TURNED = 1 << 18  # elements of a matrix that is copied to be transposed once
ENOUGH = 8  # panels (each has the columns of a block): with fewer, threads share the blocks of
SHARED = 1 << 22  # terms in a panel: some 40 µs
BESIDE = 8  # panels of one pass over the rows, which stay in the cache
MANY = 4  # strips of rows: with so many, panels are packed
LAUNCHED = 1 << 16  # terms of a product that deserves a launch of its own, on a GPU,
NARROW = 8  # unless it has so few rows or columns that most of a tile would be empty


class Side(NamedTuple):
    """One operand, and the role of its axes."""

    buffer: Any
    batch: Axes
    free: Axes
    contract: Axes

    def sizes(self, axes: Axes) -> tuple[int, ...]:
        return tuple(self.buffer.shape[d] for d in axes)

    def size(self, axes: Axes) -> int:
        return math.prod(self.sizes(axes))

    def copied(self, b: Any, axes: Axes, dtype: np.dtype) -> Side:
        """A copy with its axes in this order."""
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
        left, right = hoisted_transpose(b, left), hoisted_transpose(b, right)
    elif b.on_gpu and terms >= LAUNCHED and min(rows, columns) >= NARROW:
        return at_once(b, out, left, right, params["precision"])
    elif terms > INLINE and not b.on_gpu:
        return by_blocks(b, out, left, right)
    params["dimension_numbers"] = (left.contract, right.contract), (left.batch, right.batch)
    computed(b, lambda x, y: [as_sums(x, y, **params)], out, left.buffer, right.buffer)


def hoisted_transpose(b: Any, side: Side) -> Side:
    """The transposed matrix, hoisted out of loops that do not change it."""
    x = side.buffer
    if (side.batch or side.size(side.free) == 1 or len(x.shape) - 1 in side.free
            or x.size > LARGEST_TURNED or b.changes_in_loop(x)):
        return side
    axes = side.contract + side.free
    return b.before_loops(x, axes, lambda: side.copied(b, axes, x.dtype))


def computed(b: Any, f: Any, out: Any, *operands: Any) -> None:
    """Write the result of a function of arrays into a buffer."""
    avals = [ShapedArray(x.shape, x.dtype) for x in operands]
    b.jaxpr(tracing.stage(f, avals), operands, into=[out])


# ── All at once ──────────────────────────────────────────────────────────────────────────────

def at_once(b: Any, out: Any, left: Side, right: Side, precision: Any) -> None:
    """One call for a batch of matrices: of a library, or a launch, as its scheduler decides."""
    batch, k = left.size(left.batch), left.size(left.contract)
    (x, steps_of_x), (y, steps_of_y) = as_stack(b, left), as_stack(b, right)
    b.call(product_of(x.dtype, y.dtype, out.dtype, precision), x, *steps_of_x, y, *steps_of_y, out,
           batch, left.size(left.free), right.size(right.free), k)


def as_stack(b: Any, side: Side) -> tuple[Any, tuple[int, ...]]:
    """The operand as a stack of matrices, with a row for each position of the free axes, and its
    strides; a copy if neither rows nor terms are contiguous.
    """
    x, order = side.buffer, side.batch + side.free + side.contract
    view = reshaped(x, order, tuple(map(side.size, (side.batch, side.free, side.contract))))
    if view is None or 1 not in view.strides[1:]:
        return as_stack(b, side.copied(b, order, x.dtype))
    return x, view.strides


def reshaped(x: Any, order: Axes, shape: Sequence[int]) -> Any:
    """A byte array with the strides of a buffer's view, axes merged into this shape; None where
    they cannot be merged.
    """
    laid: Any = np.empty(x.shape, np.int8).transpose(order)
    try:
        return laid.reshape(shape, copy=False)
    except ValueError:
        return None


# ── Blocks ───────────────────────────────────────────────────────────────────────────────────

class Matrices(NamedTuple):
    """A strided view of a buffer. The last two axes are those of a matrix, the others those of a
    batch.
    """

    buffer: Any
    steps: tuple[int, ...]

    def at(self, b: Any, *index: Any) -> tuple:
        """The address of an element."""
        places = map(b.mul, map(b.index, index), self.steps)
        return self.buffer, (functools.reduce(b.add, places),)


def by_blocks(b: Any, out: Any, left: Side, right: Side) -> None:
    """A matrix product for each position of the batch axes.

    Long sums are split into parts of the terms, in groups.
    """
    wide, sides = summed_in(out.dtype), (left, right)
    halves = fit_in_halves(wide, out.dtype, *(side.buffer.dtype for side in sides))
    if halves:
        left, right = (in_halves(b, side, wide) for side in sides)
    m, k, n = left.size(left.free), left.size(left.contract), right.size(right.free)
    most, groups = parts_of(k)
    x = as_matrices(b, left, wide)
    y = as_matrices(b, hoisted_transpose(b, right), right.buffer.dtype)
    batch = left.sizes(left.batch)
    sums = out if out.dtype == wide and groups == 1 else b.temp((groups, *out.shape), wide)
    z = Matrices(sums, np.empty((groups, *batch, m, n), np.int8).strides)
    with b.loop(math.prod(batch), vectorize="parallel") as place:
        multiply(b, z, x, y, b.unravel(b.index(place), batch), (m, k, n), most, halves)
    if sums is not out:
        collected(b, sums, groups, out, lambda at: at)


def summed_in(dtype: np.dtype) -> np.dtype:
    """The dtype of accumulators; for integers only the bits of the result count."""
    narrow = dtype.kind in "biu" and dtype.itemsize < 4
    return np.dtype(np.int32) if narrow else computed_in(dtype)


def fit_in_halves(wide: np.dtype, out: np.dtype, *operand_dtypes: np.dtype) -> bool:
    """Whether two terms fit into one number: bits beyond 16 are zero, or do not reach the result.
    """
    return wide == np.int32 and all(x.kind in "biu" for x in operand_dtypes) and (
        out.itemsize < 4 or all(x.itemsize == 1 or x == np.int16 for x in operand_dtypes))


def in_halves(b: Any, side: Side, dtype: np.dtype) -> Side:
    """A copy with two adjacent terms in each number, the first in the lower half."""
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
    """The most terms in a part of a sum, and the number of groups of parts."""
    least = -(-terms // LONG)
    most = next((terms // parts for parts in range(least, 2 * least) if terms % parts == 0), LONG)
    return most, -(-terms // (most * CHAIN))


def collected(b: Any, sums: Any, groups: int, out: Any, place: Callable[[Any], Any]) -> None:
    """Sum the groups of every element; `place` gives the position for an index of the result."""
    total = lambda at: b.accumulate("add", (groups,), lambda part: b.load(sums, (part, *place(at))))
    short = Computed(b, lambda at: b.convert(total(at), out.dtype), out.shape, out.dtype)
    b.materialize(short, into=out)


def as_matrices(b: Any, side: Side, dtype: np.dtype) -> Matrices:
    """A row for each position of the free axes, a matrix for each of the batch axes; a copy if axes
    cannot be merged.
    """
    x, order = side.buffer, side.batch + side.free + side.contract
    shape = *side.sizes(side.batch), side.size(side.free), side.size(side.contract)
    view = reshaped(x, order, shape)
    if view is None or x.dtype != dtype:
        return as_matrices(b, side.copied(b, order, dtype), dtype)
    return Matrices(x, view.strides)


def multiply(b: Any, z: Matrices, x: Matrices, y: Matrices, here: Sequence[Any],
             sizes: tuple[int, int, int], most: int, halves: bool = False) -> None:
    """Store the product of the rows of x with those of y in z, block by block, for one batch
    element.

    Panels of y are packed first, if they serve for many rows of x. The last blocks may overlap
    those before them, and skip the overlap.
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
        """The start of a block, and its overlap with the block before it."""
        offset = b.mul(b.index(block), size)
        start = b.min(offset, of - size) if of % size else offset
        return start, b.sub(offset, start)

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
    """The microkernel of a block, with its rows and columns: as many as fit into registers."""
    count, size = cpu.vector_registers()
    most = 2 * size // dtype.itemsize
    width = min((most, most // 2, most // 4), key=lambda w: (-(-n // w) * (w + 4), -w))
    height = min(count // 4, m)
    height = min(range(-(-height // 2), height + 1), key=lambda h: (-m % h, -h))
    return f"block_{'halves_' * halves}{dtype.name}_{height}x{width}", height, width
