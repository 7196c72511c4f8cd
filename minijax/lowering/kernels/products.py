"""How a product of arrays is computed: small ones in place, the others by BLAS or row by row.

The `library` rule of `dot_general`.  Chapter 24, *Loops and Numba*, shows where BLAS takes over.
In JAX: XLA's dot emitters, and Eigen and oneDNN behind them.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.primitives.axes import Axes, without
from minijax.primitives.slots import computed_in, nest
from minijax.primitives.summation import LONG

from ..builder import Sums
from ..loops import Address, Flat

INLINE = 8 * 8 * 8  # products of at most so many terms cost less than a call of a library
ADDED_IN_A_ROW = 1 << 20  # a library adds up LONG terms in a row in products of so many or fewer,
LONGER = 1 << 14  # and so many where it has blocks of its own, which it adds up in a row
LARGEST_TURNED = 1 << 18  # elements that are worth a second copy
ALONE = 64**3  # terms: a library does so few in one thread anyway
SHARED = 1 << 20  # terms: about 20 µs, twice what waking a thread takes
LEAST = 64  # rows or columns in a block; fewer waste what BLAS rearranges for each call
BLOCKS = 4  # a thread that the system takes away for a while leaves the rest to others
GEMM = {np.dtype(np.float32): "sgemm", np.dtype(np.float64): "dgemm"}


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

    def at(self, b: Any, wide: np.dtype, batch: tuple, free: tuple, contract: tuple) -> Any:
        """One element, as a number of the dtype that is summed in."""
        axes = (*self.batch, *self.free, *self.contract)
        index = dict(zip(axes, (*batch, *free, *contract), strict=True))
        return b.convert(b.load(self.buffer, tuple(index[d] for d in sorted(axes))), wide)

    @property
    def runs_along_free(self) -> bool:
        """Whether neighbours in memory belong to neighbours in the result."""
        return self.size(self.free) > 1 and self.buffer.shape and (
            len(self.buffer.shape) - 1 in self.free)


def dot_general(b: Any, outputs: Sequence, operands: Sequence, *, dimension_numbers: tuple,
                precision: Any, preferred_element_type: Any) -> None:
    """The `library` rule of the primitive of that name."""
    [out], (contract, batch) = outputs, dimension_numbers
    sides = [Side(x, batch[i], without(range(len(x.shape)), contract[i] + batch[i]), contract[i])
             for i, x in enumerate(operands)]
    left, right = sides
    wide = computed_in(out.dtype)
    terms = left.size(left.free) * right.size(right.free) * left.size(left.contract)
    is_vector = 1 in (left.size(left.free), right.size(right.free))
    if terms > INLINE and is_vector and wide.kind == "f":
        left, right = turned_before_loops(b, left), turned_before_loops(b, right)
    by_blas = wide in GEMM and not is_vector
    if terms <= INLINE or not (by_blas or right.runs_along_free or left.runs_along_free):
        return one_by_one(b, out, left, right, wide)
    sums = out if out.dtype == wide else b.temp(out.shape, wide)
    (by_library if by_blas else by_rows)(b, sums, left, right)
    if sums is not out:
        rearranged(b, sums, out, range(len(out.shape)))


def turned_before_loops(b: Any, side: Side) -> Side:
    """The matrix of a step with its rows as columns, where one turning serves many steps."""
    x = side.buffer
    if (side.batch or side.size(side.free) == 1 or side.runs_along_free
            or x.size > LARGEST_TURNED or b.changes_in_loop(x)):
        return side
    axes = side.contract + side.free
    key = ("turned", x, axes)
    turned = b.find(key)
    if turned is None:
        with b.before_loops(x):
            turned = b.temp(tuple(x.shape[d] for d in axes), x.dtype)
            rearranged(b, x, turned, axes)
            b.freeze(turned)
            b.remember(key, turned)
    contract = tuple(range(len(side.contract)))
    return Side(turned, (), tuple(range(len(contract), len(axes))), contract)


def one_by_one(b: Any, out: Any, left: Side, right: Side, wide: np.dtype) -> None:
    """Every element of the result as a sum of its own."""
    start, middle = len(left.batch), len(left.batch) + len(left.free)
    with nest(b, out.shape) as index:
        batch, i, j = index[:start], index[start:middle], index[middle:]
        total = b.accumulate("add", left.sizes(left.contract), lambda *k: b.mul(
            left.at(b, wide, batch, i, k), right.at(b, wide, batch, j, k)))
        b.store(out, index, b.convert(total, out.dtype))


def by_rows(b: Any, sums: Any, left: Side, right: Side) -> None:
    """Rows of one side, times a number each, added up in the result."""
    wide = sums.dtype
    swapped = not right.runs_along_free
    fixed, moving = (right, left) if swapped else (left, right)
    width = moving.sizes(moving.free)

    with nest(b, left.sizes(left.batch)) as batch, nest(b, fixed.sizes(fixed.free)) as i:
        def place(j: Any) -> tuple[Any, tuple]:
            parts = b.unravel(b.index(j), width)
            return sums, (*batch, *parts, *i) if swapped else (*batch, *i, *parts)

        def add_rows(row: Any, before: None, ks: Sequence) -> None:
            places = [b.unravel(k, fixed.sizes(fixed.contract)) for k in ks]
            with b.loop(row.width, vectorize="parallel") as j:
                total = b.load(*row.at(j))
                for k in places:
                    x = fixed.at(b, wide, batch, i, k)
                    y = moving.at(b, wide, batch, b.unravel(b.index(j), width), k)
                    exact = wide.kind != "f"
                    total = b.add(total, b.mul(x, y)) if exact else b.fma(x, y, total)
                b.store(*row.at(j), total)
        row = Sums(math.prod(width), wide, place)
        b.in_chains("add", row, fixed.size(fixed.contract), add_rows)


# ── BLAS ─────────────────────────────────────────────────────────────────────────────────────

class Matrix(NamedTuple):
    """Numbers in a buffer from a flat position on: a row begins `stride` after the one before it;
    or a column, where they are `turned`.
    """

    buffer: Any
    start: Any
    stride: int
    turned: bool = False

    def part(self, b: Any, row: Any, column: Any) -> Matrix:
        """What lies below and right of an element."""
        down, right = (1, self.stride) if self.turned else (self.stride, 1)
        offset = b.add(b.mul(b.index(row), down), b.mul(b.index(column), right))
        return self._replace(start=b.add(self.start, offset))

    @property
    def argument(self) -> tuple:
        return Address(self.buffer, Flat(self.start)), max(self.stride, 1)  # BLAS refuses a zero


def gemm(b: Any, result: Matrix, left: Matrix, right: Matrix, m: int, n: int, k: int) -> None:
    """One product of matrices by BLAS.

    BLAS reads columns where we have rows: its operands change places. Threads share what is much,
    in blocks of rows or of columns, whichever are more; the blocks do not depend on the threads.
    """
    size, work = max(m, n), m * n * k
    parts = max(min(size // LEAST, BLOCKS), 1) if work >= SHARED else 1
    each = -(-size // parts)
    with b.threads_of_ours(work > ALONE), b.loop(parts, vectorize="parallel") as part:
        first = b.mul(b.index(part), each)
        count = b.min(each, b.sub(size, first))
        row, column = (first, 0) if m >= n else (0, first)
        rows, columns = (count, n) if m >= n else (m, count)
        with contextlib.nullcontext() if parts == 1 else b.when(b.gt(count, 0)):
            b.call(GEMM[result.buffer.dtype], *(ord("NT"[x.turned]) for x in (right, left)),
                   columns, rows, k, *right.part(b, 0, column).argument,
                   *left.part(b, row, 0).argument, *result.part(b, row, column).argument)


def by_library(b: Any, product: Any, left: Side, right: Side) -> None:
    """One product for each place of the batch axes, or a few whose results are added up."""
    m, k, n = left.size(left.free), left.size(left.contract), right.size(right.free)
    stacks = (_as_matrices(b, left, product.dtype, left.free, left.contract),
              _as_matrices(b, right, product.dtype, right.contract, right.free),
              Matrix(product, b.index(0), n))
    batch = left.sizes(left.batch)
    with nest(b, batch) as place:
        here = b.ravel(place, batch)
        x, y, result = (stack._replace(start=b.mul(here, size))
                        for stack, size in zip(stacks, (m * k, k * n, m * n), strict=True))

        def multiply(start: Any, terms: int, into: Matrix) -> None:
            gemm(b, into, x.part(b, 0, start), y.part(b, start, 0), m, n, terms)
        most = LONG if m * n * min(k, LONGER) <= ADDED_IN_A_ROW else LONGER
        if k <= most:
            multiply(0, k, result)
        else:
            _in_parts(b, result, m, n, k, most, multiply)


def _in_parts(b: Any, result: Matrix, m: int, n: int, k: int, most: int, multiply: Any) -> None:
    """A product as a sum of products of `most` columns by rows."""
    dtype = result.buffer.dtype
    part = b.temp((m * n,), dtype)
    row = Sums(m * n, dtype,
               lambda j: (result.buffer, Flat(b.add(result.start, b.index(j)))))

    def add(row: Any, before: None, parts: Sequence, terms: int = most) -> None:
        for i in parts:
            multiply(b.mul(i, most), terms, Matrix(part, b.index(0), n))
            with b.loop(row.width, vectorize="parallel") as j:
                b.store(*row.at(j), b.add(b.load(*row.at(j)), b.load(part, (j,))))

    b.in_chains("add", row, k // most, add)
    if k % most:
        add(row, None, [b.index(k // most)], k % most)


def _as_matrices(b: Any, side: Side, wide: np.dtype, rows: Axes, columns: Axes) -> Matrix:
    """The first of the matrices that lie one after the other, one for each place of the batch."""
    x, order = side.buffer, tuple(range(len(side.buffer.shape)))
    if x.dtype == wide and side.batch + columns + rows == order != side.batch + rows + columns:
        return Matrix(x, b.index(0), side.size(rows), turned=True)
    axes = side.batch + rows + columns
    if x.dtype != wide or axes != order:
        matrices = b.temp(tuple(x.shape[d] for d in axes), wide)
        rearranged(b, x, matrices, axes)
        x = matrices
    return Matrix(x, b.index(0), side.size(columns))


def rearranged(b: Any, x: Any, out: Any, axes: Sequence[int]) -> None:
    """Copy x to a buffer whose axes are these of x."""
    with nest(b, out.shape) as index:
        at = dict(zip(axes, index, strict=True))
        b.store(out, index, b.convert(b.load(x, tuple(at[d] for d in sorted(axes))), out.dtype))
