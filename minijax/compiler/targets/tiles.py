"""Matrix products on a GPU: each thread block computes a tile of the result in registers.

Builds on builder.py. Tiles of both factors pass through shared memory, double-buffered. The
epilogue is computed on the tile before it is stored. Chapter 27. In CUDA: CUTLASS.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np

from minijax.primitives.slots import computed_in

from ..builder import Builder
from ..loops import (INT64, Barrier, Buffer, Call, Constant, For, Launch, Let, Load, Operand,
                     Scalar, Statement, Store, accessed, substituted, with_bodies)
from ..routines import PRODUCT
from ..scalars import BOOL
from .thread_block import Writer

SIDE = 16               # threads along each side of a tile
THREADS = SIDE * SIDE
WARP = 4, 8             # the shape of a warp in a tile, which loads few rows and columns of factors
THREAD_TILES = 2, 4, 8  # choices for the rows, and the columns, of a thread
VECTOR = 16             # bytes of a vector load
SECTOR = 32             # bytes of a memory sector: the depth of a tile, at least MIN_DEPTH terms
MIN_DEPTH = 8
REGISTERS = 288         # bytes of a thread's accumulators and prefetched elements
SPLITS = 1, 2, 4, 8, 16  # choices for split-K
PROCESSORS = 108        # of a GPU: fewer tiles take as long as one on each
UNROLL = 2              # the unrolling of the loop over terms
LOAD_COST = 2           # the cost of a load from shared memory, in multiplications,
MIN_STEP_COST = 300     # the least cost of a step, with the latency of its loads,
LAUNCH_COST = 3000      # and the cost of another launch


class Factor(NamedTuple):
    """A stack of matrices, with the strides of its matrices, rows and terms."""

    buffer: Buffer
    steps: tuple[int, int, int]


class Product(NamedTuple):
    """The arguments of a call: matrices of m rows and n columns, each element a sum of k terms."""

    x: Factor
    y: Factor
    z: Buffer
    batch: int
    m: int
    n: int
    k: int

    @classmethod
    def of(cls, call: Call) -> Product:
        args: list[Any] = [int(x.value) if isinstance(x, Constant) else x for x in call.args]
        x, a, b, c, y, d, e, f, z, *sizes = args
        return cls(Factor(x, (a, b, c)), Factor(y, (d, e, f)), z, *sizes)


class Epilogue(NamedTuple):
    """The epilogue: an element-wise loop over the product, with its body."""

    sizes: tuple[int, ...]
    indices: tuple[Scalar, ...]
    elements: tuple[Scalar, ...]  # as it is called
    body: tuple[Statement, ...]


def tiled(body: Sequence[Statement], writer: Writer, uses_library: Callable[[Call], bool]
          ) -> Iterator[Statement]:
    """A body with its products as launches, except those that are left to a library."""
    rest = list(body)
    while rest:
        statement = rest.pop(0)
        if (isinstance(statement, Call) and re.fullmatch(PRODUCT, statement.external)
                and not uses_library(statement)):
            product = Product.of(statement)
            between, epilogue = find_epilogue(rest, product)
            yield from between
            del rest[:len(between) + (epilogue is not None)]
            yield from launched(product, epilogue, writer)
        else:
            yield with_bodies(statement, lambda inner: tiled(inner, writer, uses_library))


def launched(product: Product, epilogue: Epilogue | None, writer: Writer) -> Iterator[Statement]:
    """The launches of a product and its epilogue. A product with few tiles is split along its terms
    (split-K), and a loop sums the parts.
    """
    z, acc_dtype = product.z, computed_in(product.z.dtype)
    used = 1 + len(epilogue.elements) if epilogue is not None else 0
    output = Output(z if z.role != "temp" or writer.uses[z] > used else None, z.dtype, epilogue)
    each, parts = plan(product, acc_dtype)
    if parts == 1:
        yield Tile(product, each).launch(output)
        return
    sums = writer.temp((parts, z.size), acc_dtype, "parts")
    yield Tile(product, each, parts).launch(Output(sums, acc_dtype))
    b = Builder()
    with b.loop(z.size, vectorize="parallel") as i:
        op = "or" if acc_dtype == BOOL else "add"
        output.store(b, i, b.accumulate(op, (parts,), lambda part: b.load(sums, (part, i))))
    yield from b.scopes[0].statements


class Output(NamedTuple):
    """What happens to each element: its destination, its dtype, its epilogue."""

    into: Buffer | None
    dtype: np.dtype
    epilogue: Epilogue | None = None

    def store(self, b: Builder, at: Operand, x: Operand) -> None:
        """Store the element at a linear index, and run the epilogue."""
        x = b.actual(b.convert(x, self.dtype))
        if self.into is not None:
            b.store(self.into, (at,), x)
        if self.epilogue is not None:
            places = map(b.actual, b.unravel(at, self.epilogue.sizes))
            names = dict(zip(self.epilogue.indices, places, strict=True))
            b.scopes[-1].statements += substituted(
                self.epilogue.body, names | dict.fromkeys(self.epilogue.elements, x))


# -- epilogues -------------------------------------------------------------------------------------


def find_epilogue(rest: Sequence[Statement], product: Product
                  ) -> tuple[list[Statement], Epilogue | None]:
    """The epilogue that follows a product, and the statements between, which can run before it."""
    between = list(itertools.takewhile(
        lambda each: isinstance(each, Let | Load) and product.z not in accessed(each), rest))
    loop = rest[len(between)] if len(rest) > len(between) else None
    epilogue = as_epilogue(loop, product) if isinstance(loop, For) else None
    return (between, epilogue) if epilogue is not None else ([], None)


def as_epilogue(loop: For, product: Product) -> Epilogue | None:
    """The epilogue, if a loop reads only its own element of the product, and writes to no factor.
    """
    loops = [loop]
    while len(inner := loops[-1].body) == 1 and isinstance(inner[0], For):
        loops.append(inner[0])
    z, body, indices = product.z, loops[-1].body, tuple(each.index for each in loops)
    sizes = tuple(each.trip_count or 0 for each in loops)
    loads = [each for each in body if isinstance(each, Load) and each.buffer is z]
    stored = {each.buffer for each in body if isinstance(each, Store)}
    is_of_all = math.prod(sizes) == z.size and all(
        each.vectorize == "parallel" and isinstance(each.start, Constant) and each.start.value == 0
        for each in loops)
    is_simple = all(isinstance(each, Let | Load | Store) for each in body)
    is_alone = all(is_at(each.index, indices, sizes, z.shape) for each in loads) and (
        stored.isdisjoint((product.x.buffer, product.y.buffer, z)))
    if not (is_of_all and is_simple and loads and is_alone):
        return None
    return Epilogue(sizes, indices, tuple(each.target for each in loads),
                 tuple(each for each in body if each not in loads))


def is_at(index: Sequence[Operand], indices: Sequence[Operand], sizes: Sequence[int],
          shape: Sequence[int]) -> bool:
    """Whether an index is the row-major position of some loops."""
    if len(index) == 1:
        return tuple(index) == tuple(indices)
    squeezed = [(i, n) for i, n in zip(index, shape, strict=True) if n != 1]
    return squeezed == list(zip(indices, sizes, strict=True))


# -- the launch ------------------------------------------------------------------------------------


def depth_of(product: Product, acc_dtype: np.dtype) -> int:
    """The number of terms in a tile of a factor."""
    narrow = min(factor.buffer.dtype.itemsize for factor in (product.x, product.y))
    return min(max(SECTOR // narrow, MIN_DEPTH), SIDE, 64 // acc_dtype.itemsize)


def plan(product: Product, acc_dtype: np.dtype) -> tuple[tuple[int, int], int]:
    """The tile shape of a thread, and the number of parts of the terms, by the least estimated
    time.

    Larger tiles load factors less often; smaller ones, and parts, give work to all processors.
    """
    depth = depth_of(product, acc_dtype)
    steps = -(-product.k // depth)

    def blocks(each: tuple[int, int]) -> int:
        return product.batch * math.prod(-(-n // (SIDE * count)) for n, count in zip(
            (product.m, product.n), each, strict=True))

    def time(each: tuple[int, int], parts: int) -> int:
        step = max(depth * (math.prod(each) + LOAD_COST * sum(each)), MIN_STEP_COST)
        return (-(-blocks(each) * parts // PROCESSORS) * -(-steps // parts) * step
                + LAUNCH_COST * (parts > 1))

    def fits(each: tuple[int, int], parts: int) -> bool:
        fetched = SIDE * sum(each) * depth // THREADS
        return (math.prod(each) + fetched) * acc_dtype.itemsize <= REGISTERS and (
            parts == 1 or (parts <= steps and blocks(each) * parts <= PROCESSORS))
    choices = itertools.product(itertools.product(THREAD_TILES, THREAD_TILES), SPLITS)
    return min((each for each in choices if fits(*each)),
               key=lambda each: (time(*each), sum(each[0]), each[1]))


class Side:
    """Rows of x, or columns of y, of a tile: `count` from `first` on, at most to `extent`.

    A thread has `each` of them: vectors of adjacent ones, a tile's stride apart.
    """

    def __init__(self, tile: Tile, factor: Factor, position: Operand, first: Operand, each: int,
                 extent: int) -> None:
        self.tile, self.factor, self.position = tile, factor, position
        self.first, self.extent = first, extent
        self.b, self.each, self.count = tile.b, each, SIDE * each
        lanes = VECTOR // max(tile.acc_dtype.itemsize, 4)
        self.lanes = min(lanes, each)
        # Padded, so that threads that store a column hit different banks of shared memory.
        shape = 2, tile.depth, self.count + lanes
        self.shared = Buffer(factor.buffer.name, tile.acc_dtype, shape, "shared")
        self.prefetched = [self.b.variable(0, tile.acc_dtype)
                           for _ in range(self.count * tile.depth // THREADS)]

    def loads(self) -> Iterator[tuple[Operand, Operand, Any]]:
        """The rows and terms that a thread loads, coalesced along the contiguous axis."""
        b, thread = self.b, self.tile.thread
        along_terms = self.factor.steps[2] == 1
        contiguous = self.tile.depth if along_terms else self.count
        for k, variable in enumerate(self.prefetched):
            across = b.rem(thread, contiguous)
            down = b.add(b.div(thread, contiguous), k * (THREADS // contiguous))
            yield (down, across, variable) if along_terms else (across, down, variable)

    def fetch(self, step: Operand) -> None:
        """Load the elements of one step into registers: zeros beyond the matrix."""
        b, tile, buffer = self.b, self.tile, self.factor.buffer
        step = b.add(b.mul(tile.part, tile.steps), step)
        for row, term, variable in self.loads():
            at = tile.matrix, b.add(self.first, row), b.add(b.mul(step, tile.depth), term)
            place = functools.reduce(b.add, map(b.mul, at, self.factor.steps))
            terms = tile.depth * tile.steps * tile.parts
            inside = b.and_(tile.is_inside(at[1], self.extent, self.count),
                            tile.is_inside(at[2], tile.product.k, terms))
            load = functools.partial(b.load, buffer, (place,))
            b.assign(variable, b.convert(b.choose(
                inside, load, lambda: b.const(0, buffer.dtype)), tile.acc_dtype))

    def store_shared(self, half: Operand) -> None:
        """Store the loaded elements in shared memory."""
        for row, term, variable in self.loads():
            self.b.store(self.shared, (half, term, row), self.b.read(variable))

    def place(self, position: Operand, k: Any) -> Operand:
        """The row in the tile that is the k-th of a thread."""
        b, k = self.b, self.b.index(k)
        group, lane = b.div(k, self.lanes), b.rem(k, self.lanes)
        return b.add(b.add(b.mul(group, SIDE * self.lanes), b.mul(position, self.lanes)), lane)

    def terms(self, half: Operand, term: Operand) -> list[Operand]:
        """One term for each row of the thread."""
        return [self.b.load(self.shared, (half, term, self.place(self.position, k)))
                for k in range(self.each)]


class Tile:
    """Emits the code of a block for its tile of a product."""

    def __init__(self, product: Product, each: tuple[int, int], parts: int = 1) -> None:
        self.product, self.b, self.parts = product, Builder(), parts
        b, (x, y, z, batch, m, n, k) = self.b, product
        self.acc_dtype = computed_in(z.dtype)
        self.depth = depth_of(product, self.acc_dtype)
        self.steps = -(-k // (self.depth * parts))
        counts = -(-m // (SIDE * each[0])), -(-n // (SIDE * each[1]))
        self.block, self.thread = Scalar("block", INT64), Scalar("thread", INT64)
        self.blocks = parts * batch * math.prod(counts)
        self.part, self.matrix, *tile = map(b.actual, b.unravel(
            self.block, (parts, batch, *counts)))
        *group, i, j = map(b.actual, b.unravel(
            self.thread, (*(SIDE // size for size in WARP), *WARP)))
        position = [b.add(b.mul(g, size), k)
                    for g, size, k in zip(group, WARP, (i, j), strict=True)]
        self.left, self.right = (Side(self, *side) for side in zip(
            (x, y), position,
            (b.mul(at, SIDE * count) for at, count in zip(tile, each, strict=True)),
            each, (m, n), strict=True))
        self.sides = self.left, self.right
        self.sums = [[b.variable(0, self.acc_dtype) for _ in range(each[1])]
                     for _ in range(each[0])]

    def launch(self, output: Output) -> Launch:
        """The launch of the grid."""
        self.main_loop()
        self.store(output)
        return Launch(self.block, self.blocks, self.thread, THREADS,
                      tuple(self.b.scopes[0].statements))

    def barrier(self, *shared: Buffer) -> None:
        """A barrier, which invalidates loads from shared memory."""
        self.b.emit(Barrier())
        for x in shared:
            self.b.invalidate(x)

    def is_inside(self, place: Operand, extent: int, size: int) -> Operand:
        """Whether a row is inside the matrix; constant if tiles fit exactly."""
        return self.b.lt(place, extent) if extent % size else self.b.const(True, BOOL)

    def main_loop(self) -> None:
        """The main loop over terms: while one step is added up, the next is loaded."""
        b, steps = self.b, self.steps
        tiles = [side.shared for side in self.sides]
        for side in self.sides:
            side.fetch(b.index(0))
            side.store_shared(b.index(0))
        self.barrier(*tiles)
        with b.loop(steps) as step:
            half, following = b.and_(step, 1), b.add(step, 1)
            is_more = b.lt(following, steps)
            with b.when(is_more):
                for side in self.sides:
                    side.fetch(following)
            with b.loop(self.depth // UNROLL) as group:
                for k in range(UNROLL):
                    term = b.add(b.mul(group, UNROLL), k)
                    left, right = (side.terms(half, term) for side in self.sides)
                    for row, x in zip(self.sums, left, strict=True):
                        for total, y in zip(row, right, strict=True):
                            b.assign(total, self.added(x, y, b.read(total)))
            with b.when(is_more):
                for side in self.sides:
                    side.store_shared(b.sub(1, half))
            self.barrier(*tiles)

    def added(self, x: Operand, y: Operand, total: Operand) -> Operand:
        """The total plus one product."""
        b = self.b
        return b.fma(x, y, total) if self.acc_dtype.kind == "f" else b.add(total, b.mul(x, y))

    def store(self, output: Output) -> None:
        """Store the tile through shared memory, one row of each thread at a time, so that stores
        are coalesced.
        """
        b, (_, _, _, batch, m, n, _) = self.b, self.product
        left, right = self.sides
        strip = Buffer("strip", self.acc_dtype, (SIDE, right.count), "shared")
        with b.loop(left.each) as part:
            for k, row in enumerate(self.sums):
                with b.when(b.eq(part, k)):
                    for c, total in enumerate(row):
                        column = right.place(right.position, c)
                        b.store(strip, (left.position, column), b.read(total))
            self.barrier(strip)
            with b.loop(strip.size // THREADS) as step:
                i, j = map(b.actual, b.unravel(
                    b.add(b.mul(step, THREADS), self.thread), strip.shape))
                row, column = b.add(left.first, left.place(i, part)), b.add(right.first, j)
                inside = b.and_(self.is_inside(row, m, left.count),
                                self.is_inside(column, n, right.count))
                with nullcontext() if isinstance(inside, Constant) else b.when(inside):
                    at = self.part, self.matrix, row, column
                    output.store(b, b.ravel(at, (self.parts, batch, m, n)), b.load(strip, (i, j)))
            self.barrier(strip)
