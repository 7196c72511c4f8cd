"""How a product of arrays is computed: small ones in place, the others row by row or in blocks.

The `library` rule of `dot_general`.  Chapter 24, *Loops and Numba*.
In JAX: XLA's dot emitters, and Eigen and oneDNN behind them.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.primitives.axes import Axes, without
from minijax.primitives.slots import computed_in, nest
from minijax.primitives.summation import LONG

from .. import cpu
from ..builder import Sums
from ..loops import Address, Flat

INLINE = 8 * 8 * 8  # terms: a product of so many is over before a block has begun
INLINE_VECTOR = 32  # and so of a matrix and a vector
LARGEST_TURNED = 1 << 18  # elements that are worth a second copy
ENOUGH = 8  # panels, the columns of a block each, for threads to share, or else the blocks of
SHARED = 1 << 22  # terms in a panel: some 40 µs
MANY = 4  # blocks below each other for which the columns are brought near each other


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
    short = terms <= (INLINE_VECTOR if is_vector and wide.kind == "f" else INLINE)
    if not short and is_vector and wide.kind == "f":
        left, right = turned_before_loops(b, left), turned_before_loops(b, right)
    if not short and not is_vector and wide.kind == "f":
        return by_blocks(b, out, left, right, wide)
    if short or not (right.runs_along_free or left.runs_along_free):
        return one_by_one(b, out, left, right, wide)
    sums = out if out.dtype == wide else b.temp(out.shape, wide)
    by_rows(b, sums, left, right)
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


# ── Blocks ───────────────────────────────────────────────────────────────────────────────────

class Matrix(NamedTuple):
    """Numbers in a buffer: from one to that below it, and to the right, are so many places."""

    buffer: Any
    down: int
    right: int
    start: Any = 0

    def at(self, b: Any, i: Any, j: Any) -> tuple:
        """Where the element in row i, column j is."""
        steps = b.add(b.mul(b.index(i), self.down), b.mul(b.index(j), self.right))
        return self.buffer, Flat(b.add(steps, self.start))


def by_blocks(b: Any, out: Any, left: Side, right: Side, wide: np.dtype) -> None:
    """One product of matrices for each place of the batch axes."""
    m, k, n = left.size(left.free), left.size(left.contract), right.size(right.free)
    x, of_x = as_matrices(b, left, left.free, left.contract, wide)
    y, of_y = as_matrices(b, right, right.contract, right.free, None)
    sums = out if out.dtype == wide else b.temp(out.shape, wide)
    batch = left.sizes(left.batch)
    with b.loop(math.prod(batch), vectorize="parallel") as place:
        here = b.unravel(b.index(place), batch)
        x, y = (matrix._replace(start=functools.reduce(b.add, map(b.mul, here, steps), b.index(0)))
                for matrix, steps in ((x, of_x), (y, of_y)))
        start = b.mul(b.index(place), m * n)
        row = Sums(m * n, sums.dtype, lambda j: (sums, Flat(b.add(start, b.index(j)))))
        if k <= LONG:
            multiply(b, row, x, y, (m, k, n))
        else:
            in_parts(b, row, x, y, (m, k, n))
    if sums is not out:
        rearranged(b, sums, out, range(len(out.shape)))


def as_matrices(b: Any, side: Side, rows: Axes, columns: Axes, wide: np.dtype | None
                ) -> tuple[Matrix, list[int]]:
    """The first matrix of a batch, and how far the next is along each batch axis; a copy of them
    where they have another dtype, or axes that are not one after the other.
    """
    x = side.buffer
    steps = [math.prod(x.shape[d + 1:]) for d in range(len(x.shape))]

    def step(axes: Axes) -> int | None:
        """Between neighbours, where all that lie along these axes are equally far apart."""
        long = [d for d in axes if x.shape[d] > 1]
        joined = all(steps[d] == steps[e] * x.shape[e] for d, e in itertools.pairwise(long))
        return (steps[long[-1]] if long else 0) if joined else None

    down, right = step(rows), step(columns)
    if down is not None and right is not None and wide in (None, x.dtype):
        return Matrix(x, down, right), [steps[d] for d in side.batch]
    axes = side.batch + rows + columns
    copy = b.temp(tuple(x.shape[d] for d in axes), wide or x.dtype)
    rearranged(b, x, copy, axes)
    b.freeze(copy)
    order = tuple(range(len(axes)))
    first, second = len(side.batch), len(side.batch + rows)
    return as_matrices(b, Side(copy, order[:first], (), ()), order[first:second], order[second:],
                       None)


def in_parts(b: Any, row: Sums, x: Matrix, y: Matrix, sizes: tuple[int, int, int]) -> None:
    """A product as a sum of products of some columns by as many rows."""
    m, k, n = sizes
    least = -(-k // LONG)
    most = next((k // parts for parts in range(least, 2 * least) if k % parts == 0), LONG)

    def join(row: Sums, before: None, parts: Sequence, terms: int = most) -> None:
        with b.loop(len(parts)) as part:
            first = b.mul(b.add(parts[0], b.index(part)), most)
            multiply(b, row, x._replace(start=b.add(x.start, b.mul(first, x.right))),
                     y._replace(start=b.add(y.start, b.mul(first, y.down))), (m, terms, n), True)

    b.in_chains("add", row, k // most, join)
    if k % most:
        join(row, None, [b.index(k // most)], k % most)


def multiply(b: Any, row: Sums, x: Matrix, y: Matrix, sizes: tuple[int, int, int],
             added: bool = False) -> None:
    """Put a product into a row of numbers, or add it to them, block by block.

    The columns of y that belong to a block are first brought near each other, where they serve for
    many rows. The last blocks may overlap those before them, and there give nothing.
    """
    m, k, n = sizes
    routine, height, width = block_routine(m, n, row.dtype)
    strips, panels, taken = -(-m // height), -(-n // width), min(n, width)
    whole = panels >= ENOUGH or m * k * width < SHARED
    with b.loop(panels, vectorize="parallel" * whole) as panel:
        left = b.mul(b.index(panel), width)
        first = b.min(left, n - taken) if n % width else left
        near, column = y, first
        if y.right != 1 or (panels > 1 and strips >= MANY) or y.buffer.dtype != row.dtype:
            near, column = Matrix(b.temp((k, taken), row.dtype, "near"), taken, 1), b.index(0)
            with nest(b, (k, taken), "parallel") as (t, j):
                term = b.load(*y.at(b, t, b.add(first, j)))
                b.store(near.buffer, (t, j), b.convert(term, row.dtype))
            b.freeze(near.buffer)
        with b.loop(strips, vectorize="parallel") as strip:
            top = b.mul(b.index(strip), height)
            start = b.min(top, m - height) if m % height else top
            b.call(routine + "_added" * added, Address(*x.at(b, start, 0)), x.down, x.right,
                   Address(*near.at(b, 0, column)), near.down, k,
                   Address(*row.at(b.add(b.mul(start, n), first))), n,  # type: ignore[arg-type]
                   b.sub(top, start), b.sub(left, first), taken)


def block_routine(m: int, n: int, dtype: np.dtype) -> tuple[str, int, int]:
    """The routine of a block, with its rows and columns: as many as fit into registers."""
    count, size = cpu.vector_registers()
    most = 2 * size // dtype.itemsize
    width = min((most, most // 2, most // 4), key=lambda w: (-(-n // w) * (w + 4), -w))
    height = min(count // 4, m)
    height = min(range(-(-height // 2), height + 1), key=lambda h: (-m % h, -h))
    return f"block_{dtype.name}_{height}x{width}", height, width


def rearranged(b: Any, x: Any, out: Any, axes: Sequence[int]) -> None:
    """Copy x to a buffer whose axes are these of x."""
    with nest(b, out.shape) as index:
        at = dict(zip(axes, index, strict=True))
        b.store(out, index, b.convert(b.load(x, tuple(at[d] for d in sorted(axes))), out.dtype))
