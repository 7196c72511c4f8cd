"""Long products: reductions for vectors, blocked products for matrices.

The `library` rule of `dot_general`.  Chapter 24, *Loops and Numba*.
In JAX: XLA's dot emitters, and Eigen and oneDNN behind them.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.core import ShapedArray, tracing
from minijax.primitives.axes import Axes, without
from minijax.primitives.ad_util import reduce_sum_p, transpose_p
from minijax.primitives.algebra import mul_p
from minijax.primitives.slots import computed_in, nest
from minijax.primitives.summation import LONG, WINDOW, has_order

from .. import cpu
from ..builder import CHAIN
from ..loops import Address
from ..operands import Computed
from ..routines import product_of

MAX_INLINE = 8 * 8 * 8  # terms: a smaller product is faster without blocks
MAX_INLINE_VECTOR = 32  # the same for a matrix and a vector
MAX_TRANSPOSED = 1 << 18  # elements of a matrix that is copied to be transposed once
TILES = 16  # parts of a large product for threads to share, which may differ in speed
STRIPS = 32  # strips of rows that a tile has at least: they pay for the packing of its panels
PANELS = 8  # panels (each has the columns of a block) of a tile, which stay in the cache
MIN_STRIPS = 4  # strips of rows: from here on panels are packed
LAUNCHED = 1 << 16  # terms of a product that deserves a launch of its own, on a GPU,
MIN_SIDE = 8  # unless it has so few rows or columns that most of a tile would be empty


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
        copy = moved(b, self.buffer, dtype, lambda x: transpose_p.bind(x, permutation=axes))
        return Side(copy, *(tuple(map(axes.index, part)) for part in self[1:]))


def dot_general(b: Any, outputs: Sequence, operands: Sequence, *, dimension_numbers: tuple,
                as_sums: Callable[..., Any], **params: Any) -> None:
    """The `library` rule of the primitive of that name, which takes each element `as_sums`."""
    [out], (contract, batch) = outputs, dimension_numbers
    left, right = (Side(x, batch[i], without(range(len(x.shape)), contract[i] + batch[i]),
                        contract[i]) for i, x in enumerate(operands))
    rows, columns = left.size(left.free), right.size(right.free)
    terms = rows * left.size(left.contract) * columns
    if terms > WINDOW and not (left.free + right.free or b.on_gpu) and is_sum_of_products(
            out, *operands):
        return computed(b, lambda x, y: [sum_of_products(x, y, left, right)], [out], *operands)
    if 1 in (rows, columns) and terms > MAX_INLINE_VECTOR:
        left, right = hoisted_transpose(b, left), hoisted_transpose(b, right)
    elif b.on_gpu and terms >= LAUNCHED and min(rows, columns) >= MIN_SIDE:
        return as_one_call(b, out, left, right, params["precision"])
    elif terms > MAX_INLINE and not b.on_gpu:
        return by_blocks(b, out, left, right)
    params["dimension_numbers"] = (left.contract, right.contract), (left.batch, right.batch)
    computed(b, lambda x, y: [as_sums(x, y, **params)], [out], left.buffer, right.buffer)


def is_sum_of_products(out: Any, x: Any, y: Any) -> bool:
    """Whether XLA computes all products first: of vectors of not so many floats."""
    return x.dtype == y.dtype == out.dtype == computed_in(out.dtype) and has_order("add", x)


def sum_of_products(x: Any, y: Any, left: Side, right: Side) -> Any:
    """A batch of products of vectors, as two operations."""
    x, y = (transpose_p.bind(v, permutation=side.batch + side.contract)
            for v, side in ((x, left), (y, right)))
    return reduce_sum_p.bind(mul_p.bind(x, y), axes=tuple(range(len(left.batch), x.ndim)))


def hoisted_transpose(b: Any, side: Side) -> Side:
    """The transposed matrix, hoisted out of loops that do not change it."""
    x = side.buffer
    if (side.batch or side.size(side.free) == 1 or len(x.shape) - 1 in side.free
            or x.size > MAX_TRANSPOSED or b.changes_in_loop(x)):
        return side
    axes = side.contract + side.free
    return b.before_loops(x, axes, lambda: side.copied(b, axes, x.dtype))


def placed(axes: Sequence[int], *values: Any) -> tuple:
    """An index from its values along these axes."""
    return tuple(x for _, x in sorted(zip(axes, values, strict=True), key=lambda pair: pair[0]))


def computed(b: Any, f: Any, outputs: Sequence, *operands: Any) -> None:
    """Write the results of a function of arrays into buffers."""
    avals = [ShapedArray(x.shape, x.dtype) for x in operands]
    b.jaxpr(tracing.stage(f, avals), operands, into=outputs)


def moved(b: Any, x: Any, dtype: np.dtype, f: Callable, hint: str = "temp") -> Any:
    """A buffer with the elements of x in this dtype, where a function of the array moves them."""
    converted = Computed(b, lambda at: b.convert(b.value(x)(at), dtype), x.shape, dtype)
    program = tracing.stage(lambda x: [f(x)], [ShapedArray(x.shape, dtype)])
    copy = b.temp(program.out_avals[0].shape, dtype, hint)
    b.jaxpr(program, [converted], into=[copy])
    b.freeze(copy)
    return copy


# ── All at once ──────────────────────────────────────────────────────────────────────────────

def as_one_call(b: Any, out: Any, left: Side, right: Side, precision: Any) -> None:
    """One call for a batch of matrices: of a library, or a launch, as its scheduler decides."""
    sizes = *map(left.size, (left.batch, left.free)), *map(right.size, (right.free, right.contract))
    dtypes = {side.buffer.dtype for side in (left, right)}  # libraries take one
    dtype = dtypes.pop() if len(dtypes) == 1 else computed_in(out.dtype)
    x, y = (as_matrices(b, side, dtype, in_one_stack=True) for side in (left, right))
    b.call(product_of(dtype, dtype, out.dtype, precision), x.buffer, *x.steps, y.buffer, *y.steps,
           out, *sizes)


# ── Blocks ───────────────────────────────────────────────────────────────────────────────────

class Matrices(NamedTuple):
    """A strided view of a buffer. The last two axes are those of a matrix, the others those of a
    batch.
    """

    buffer: Any
    steps: tuple[int, ...]

    def at(self, b: Any, *index: Any) -> tuple:
        """The address of an element."""
        places = map(b.mul, index, self.steps)
        return self.buffer, (functools.reduce(b.add, places),)


def by_blocks(b: Any, out: Any, left: Side, right: Side) -> None:
    """A matrix product for each position of the batch axes.

    Long sums are split into parts of the terms, in groups.
    """
    acc_dtype, sides = accumulator_dtype(out.dtype), (left, right)
    halves = fit_in_halves(acc_dtype, out.dtype, *(side.buffer.dtype for side in sides))
    if halves:
        left, right = (in_halves(b, side, acc_dtype) for side in sides)
    m, k, n = left.size(left.free), left.size(left.contract), right.size(right.free)
    max_terms, groups = split_terms(k)
    x = as_matrices(b, left, acc_dtype)
    y = as_matrices(b, hoisted_transpose(b, right), right.buffer.dtype)
    batch = left.sizes(left.batch)
    direct = out.dtype == acc_dtype and groups == 1
    partials = out if direct else b.temp((groups, *out.shape), acc_dtype)
    z = Matrices(partials, np.empty((groups, *batch, m, n), np.int8).strides)
    with b.loop(math.prod(batch), vectorize="parallel") as place:
        multiply(b, z, x, y, b.unravel(place, batch), (m, k, n), max_terms, halves)
    if not direct:
        sum_partials(b, partials, groups, out, lambda at: at)


def accumulator_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype of accumulators; for integers only the bits of the result count."""
    narrow = dtype.kind in "biu" and dtype.itemsize < 4
    return np.dtype(np.int32) if narrow else computed_in(dtype)


def fit_in_halves(acc_dtype: np.dtype, out: np.dtype, *operand_dtypes: np.dtype) -> bool:
    """Whether two terms fit into one number: bits beyond 16 are zero, or do not reach the result.
    """
    return acc_dtype == np.int32 and all(x.kind in "biu" for x in operand_dtypes) and (
        out.itemsize < 4 or all(x.itemsize == 1 or x == np.int16 for x in operand_dtypes))


def in_halves(b: Any, side: Side, dtype: np.dtype) -> Side:
    """A copy with two adjacent terms in each number, the first in the lower half."""
    x, inner, k = side.buffer, side.sizes(side.contract), side.size(side.contract)
    start, stop = len(side.batch), len(side.batch) + len(side.free)
    by_terms = len(x.shape) - 1 in side.free
    pair_axis = start if by_terms else stop
    sizes, half = side.sizes(side.batch + side.free), 4 * dtype.itemsize
    copy = b.temp((*sizes[:pair_axis], -(-k // 2), *sizes[pair_axis:]), dtype, "halves")

    def term(at: Sequence[Any], place: Any) -> Any:
        axes = side.batch + side.free + side.contract
        return b.convert(b.load(x, placed(axes, *at, *b.unravel(place, inner))), dtype)

    with nest(b, copy.shape, "parallel") as at:
        others, first = at[:pair_axis] + at[pair_axis + 1:], b.mul(at[pair_axis], 2)
        lower, second = term(others, first), b.add(first, 1)
        upper = term(others, b.min(second, k - 1) if k % 2 else second)
        if k % 2:
            upper = b.select(b.lt(second, k), upper, 0)
        b.store(copy, at, b.or_(b.and_(lower, (1 << half) - 1), b.shl(upper, half)))
    b.freeze(copy)
    free = tuple(range(start + by_terms, stop + by_terms))
    return Side(copy, tuple(range(start)), free, (pair_axis,))


def split_terms(terms: int) -> tuple[int, int]:
    """The most terms in a part of a sum, and the number of groups of parts."""
    least = -(-terms // LONG)
    max_terms = next((terms // n for n in range(least, 2 * least) if terms % n == 0), LONG)
    return max_terms, -(-terms // (max_terms * CHAIN))


def sum_partials(b: Any, partials: Any, groups: int, out: Any, place: Callable[[Any], Any]) -> None:
    """Sum the groups of every element; `place` gives the position for an index of the result."""
    total = lambda at: b.accumulate("add", (groups,), lambda k: b.load(partials, (k, *place(at))))
    short = Computed(b, lambda at: b.convert(total(at), out.dtype), out.shape, out.dtype)
    b.materialize(short, into=out)


def as_matrices(b: Any, side: Side, dtype: np.dtype, in_one_stack: bool = False) -> Matrices:
    """A row for each position of the free axes, a matrix for each of the batch axes; a copy if axes
    cannot be merged, or if in one stack neither rows nor terms are contiguous.
    """
    x, order = side.buffer, side.batch + side.free + side.contract
    batch = (side.size(side.batch),) if in_one_stack else side.sizes(side.batch)
    view: Any = np.empty(x.shape, np.int8).transpose(order)  # with strides of elements
    with contextlib.suppress(ValueError):  # axes that cannot be merged
        steps = view.reshape((*batch, side.size(side.free), side.size(side.contract)),
                             copy=False).strides
        if x.dtype == dtype and not (in_one_stack and 1 not in steps[1:]):
            return Matrices(x, steps)
    return as_matrices(b, side.copied(b, order, dtype), dtype, in_one_stack)


def multiply(b: Any, z: Matrices, x: Matrices | Callable[..., Matrices], y: Matrices,
             batch_index: Sequence[Any], sizes: tuple[int, int, int], max_terms: int,
             halves: bool = False) -> None:
    """Store the product of the rows of x with those of y in z, block by block, for one batch
    element. A function x copies its rows for a part of the terms.

    Panels of y are packed first, if they serve for many rows of x. The last blocks may overlap
    those before them, and skip the overlap.
    """
    m, k, n = sizes
    dtype, parts, chains = z.buffer.dtype, -(-k // max_terms), -(-k // (max_terms * CHAIN))
    routine, height, width = block_routine(m, n, dtype, halves)
    strips, panels, width = -(-m // height), -(-n // width), min(n, width)
    packs = y.steps[-2] != 1 or (panels > 1 and strips >= MIN_STRIPS) or y.buffer.dtype != dtype
    tile_strips = -(-strips // (1 if callable(x) else max(strips // STRIPS, 1)))
    tile_rows = -(-strips // tile_strips)
    tile_panels = min(max(panels * tile_rows // TILES, 1) if chains == 1 else panels, PANELS)
    tile_panels = next(count for count in range(tile_panels, 0, -1) if panels % count == 0)

    def block_start(block: Any, size: int, of: int) -> tuple[Any, Any]:
        """The start of a block, and its overlap with the block before it."""
        offset = b.mul(block, size)
        start = b.min(offset, of - size) if of % size else offset
        return start, b.sub(offset, start)

    with nest(b, (chains, panels // tile_panels * tile_rows), "parallel") as (chain, tile):
        group, above = b.unravel(tile, (panels // tile_panels, tile_rows))
        first, left = b.mul(chain, CHAIN), b.mul(group, tile_panels)
        top, rest = b.strip(above, strips, tile_strips)
        with b.loop(b.min(b.sub(parts, first), min(parts, CHAIN))) as part:
            t, terms = b.strip(b.add(first, part), k, max_terms)
            rows, start = (x(t, terms), b.const(0, np.int64)) if callable(x) else (x, t)
            if packs:
                packed = b.temp((tile_panels, max_terms, width), dtype, "near")
                with b.loop(tile_panels) as panel, nest(b, (terms, width), "parallel") as (i, j):
                    column = b.add(block_start(b.add(left, panel), width, n)[0], j)
                    term = b.load(*y.at(b, *batch_index, column, b.add(t, i)))
                    b.store(packed, (panel, i, j), b.convert(term, dtype))
                b.freeze(packed)
            with b.loop(rest, vectorize="parallel") as strip, b.loop(tile_panels) as panel:
                row, skipped_rows = block_start(b.add(top, strip), height, m)
                column, skipped_columns = block_start(b.add(left, panel), width, n)
                terms_of_y = ((packed, (b.mul(panel, max_terms * width),)) if packs
                              else y.at(b, *batch_index, column, t))
                b.call(routine, Address(*rows.at(b, *batch_index, row, start)), *rows.steps[-2:],
                       Address(*terms_of_y), width if packs else y.steps[-1], terms,
                       Address(*z.at(b, chain, *batch_index, row, column)), z.steps[-2],
                       skipped_rows, skipped_columns, width, part)


def block_routine(m: int, n: int, dtype: np.dtype, halves: bool) -> tuple[str, int, int]:
    """The microkernel of a block, with its rows and columns: as many as fit into registers."""
    count, size = cpu.vector_registers()
    widest = 2 * size // dtype.itemsize
    width = min((widest, widest // 2, widest // 4), key=lambda w: (-(-n // w) * (w + 4), -w))
    most = min(8 if count >= 32 else 5, m)  # with more LLVM would spill
    height = min(range(-(-most // 2), most + 1), key=lambda h: (-(-m // h) * (h + 2), -h))
    whole = "_whole" * (m % height == n % width == 0)
    return f"block_{'halves_' * halves}{dtype.name}_{height}x{width}{whole}", height, width
