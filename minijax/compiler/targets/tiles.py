"""Matrix products on a GPU: each thread block computes a tile of the result in registers.

Builds on builder.py. Tiles of both factors pass through shared memory, double-buffered. The
epilogue is computed on the tile before it is stored. Chapter 27. In CUDA: CUTLASS.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.primitives.slots import computed_in

from ..builder import Builder
from ..loops import (INT64, Barrier, Buffer, Call, Constant, For, Index, Launch, Let, Load, Operand,
                     Scalar, Statement, Store, accessed, substituted, with_bodies)
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

    @property
    def max_each(self) -> int:
        """The most rows of a thread."""
        return max(THREAD_TILES)

    @property
    def has_adjacent_terms(self) -> bool:
        return self.steps[2] == 1

    def at(self, b: Builder, *at: Operand) -> tuple[Operand, Operand]:
        """Whether a matrix, row and term have an element there, and its linear index."""
        return b.const(True, BOOL), functools.reduce(b.add, map(b.mul, at, self.steps))


class Product(NamedTuple):
    """The arguments of a call: matrices of m rows and n columns, each element a sum of k terms."""

    x: Any  # a Factor, or what has its methods
    y: Any
    z: Buffer
    batch: int
    m: int
    n: int
    k: int
    # The linear index of an element; of matrix, row and column.
    element: Callable[..., Operand] | None = None

    def place(self, b: Builder, parts: int, part: Operand, *at: Operand) -> Operand:
        """The linear index of an element in a part of the sums."""
        if self.element is None:
            return b.ravel((part, *at), (parts, self.batch, self.m, self.n))
        return b.add(b.mul(part, self.z.size), self.element(b, *at))

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


# The product that a call asks for, if it does; the tiles for it, or None for a library.
ProductOf = Callable[[Call], Product | None]
Choice = Callable[[Call, Product, Epilogue | None], "type[Tile] | None"]


def tiled(body: Sequence[Statement], writer: Writer, product_of: ProductOf, choose: Choice
          ) -> Iterator[Statement]:
    """A body with its products as launches, except those that are left to a library."""
    rest = list(body)
    while rest:
        statement = rest.pop(0)
        if isinstance(statement, Call) and (product := product_of(statement)) is not None:
            between, epilogue = find_epilogue(rest, product)
            if (tile := choose(statement, product, epilogue)) is not None:
                yield from between
                del rest[:len(between) + (epilogue is not None)]
                yield from launched(tile, product, epilogue, writer)
                continue
        yield with_bodies(statement, lambda inner: tiled(inner, writer, product_of, choose))


def launched(tile: type[Tile], product: Product, epilogue: Epilogue | None, writer: Writer
             ) -> Iterator[Statement]:
    """The launches of a product and its epilogue. A product with few tiles is split along its terms
    (split-K), and a loop sums the parts.
    """
    z, acc_dtype = product.z, computed_in(product.z.dtype)
    used = 1 + len(epilogue.elements) if epilogue is not None else 0
    output = Output(z if z.role != "temp" or writer.uses[z] > used else None, z.dtype, epilogue)
    _, each, parts = tile.plan(product)
    if parts == 1:
        yield tile(product, each).launch(output)
        return
    sums = writer.temp((parts, z.size), acc_dtype, "parts")
    yield tile(product, each, parts).launch(Output(sums, acc_dtype))
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
            places = b.divided(at, self.epilogue.sizes)
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


def is_at(index: Index, indices: Index, sizes: Sequence[int], shape: Sequence[int]) -> bool:
    """Whether an index is the row-major position of some loops."""
    if len(index) == 1:
        return index == indices
    squeezed = [(i, n) for i, n in zip(index, shape, strict=True) if n != 1]
    return squeezed == list(zip(indices, sizes, strict=True))


# -- the launch ------------------------------------------------------------------------------------


def depth_of(product: Product, acc_dtype: np.dtype) -> int:
    """The number of terms in a tile of a factor."""
    narrow = min(factor.buffer.dtype.itemsize for factor in (product.x, product.y))
    return min(max(SECTOR // narrow, MIN_DEPTH), SIDE, 64 // acc_dtype.itemsize)


def fastest(product: Product, depth: int, step_cost: Callable[[tuple[int, int]], int],
            fits: Callable[[tuple[int, int]], bool]) -> tuple[int, tuple[int, int], int]:
    """The least estimated time, with the tile shape of a thread, and the number of parts of the
    terms, that take it.

    Larger tiles load factors less often; smaller ones, and parts, give work to all processors.
    """
    steps = -(-product.k // depth)

    def blocks(each: tuple[int, int]) -> int:
        return product.batch * math.prod(-(-n // (SIDE * count)) for n, count in zip(
            (product.m, product.n), each, strict=True))

    def time(each: tuple[int, int], parts: int) -> int:
        step = max(step_cost(each), MIN_STEP_COST)
        return (-(-blocks(each) * parts // PROCESSORS) * -(-steps // parts) * step
                + LAUNCH_COST * (parts > 1))

    choices = [(time(each, parts), sum(each), parts, each)
               for each in itertools.product(THREAD_TILES, THREAD_TILES) for parts in SPLITS
               if each[0] <= product.x.max_each and each[1] <= product.y.max_each
               and fits(each) and (parts == 1 or (
                   parts <= steps and blocks(each) * parts <= PROCESSORS))]
    least, _, parts, each = min(choices)
    return least, each, parts


class Side:
    """Rows of x, or columns of y, of a tile: `count` from `first` on, at most to `extent`.

    A thread has `each` of them: vectors of adjacent ones, a tile's stride apart.
    """

    def __init__(self, tile: Tile, factor: Factor, position: Operand, first: Operand, each: int,
                 extent: int) -> None:
        self.tile, self.factor, self.position = tile, factor, position
        self.first, self.extent = first, extent
        self.b, self.each, self.count = tile.b, each, SIDE * each
        self.shared = self.in_shared_memory()
        self.prefetched = [self.b.variable(0, self.shared.dtype)
                           for _ in range(self.count * tile.depth // THREADS)]

    def in_shared_memory(self) -> Buffer:
        """The buffer of two steps."""
        tile = self.tile
        lanes = VECTOR // max(tile.acc_dtype.itemsize, 4)
        self.lanes = min(lanes, self.each)
        # Padded, so that threads that store a column hit different banks of shared memory.
        shape = 2, tile.depth, self.count + lanes
        return Buffer(self.factor.buffer.name, tile.acc_dtype, shape, "shared")

    def loads(self) -> Iterator[tuple[Operand, Operand, Any]]:
        """The rows and terms that a thread loads, coalesced along the contiguous axis."""
        b, thread = self.b, self.tile.thread
        along_terms = self.factor.has_adjacent_terms
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
            exists, place = self.factor.at(b, *at)
            terms = tile.depth * tile.steps * tile.parts
            inside = b.and_(exists, b.and_(tile.is_inside(at[1], self.extent, self.count),
                                           tile.is_inside(at[2], tile.product.k, terms)))
            load = functools.partial(b.load, buffer, (place,))
            b.assign(variable, b.convert(b.choose(
                inside, load, lambda: b.const(0, buffer.dtype)), self.shared.dtype))

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

    side: type[Side] = Side

    @staticmethod
    def plan(product: Product) -> tuple[int, tuple[int, int], int]:
        """The least estimated time, with the tile shape of a thread, and the number of parts."""
        acc_dtype = computed_in(product.z.dtype)
        depth = depth_of(product, acc_dtype)

        def step_cost(each: tuple[int, int]) -> int:
            return depth * (math.prod(each) + LOAD_COST * sum(each))

        def fits(each: tuple[int, int]) -> bool:
            fetched = SIDE * sum(each) * depth // THREADS
            return (math.prod(each) + fetched) * acc_dtype.itemsize <= REGISTERS
        return fastest(product, depth, step_cost, fits)

    def __init__(self, product: Product, each: tuple[int, int], parts: int = 1) -> None:
        self.product, self.b, self.parts = product, Builder(), parts
        b, (x, y, z, batch, m, n, k, _) = self.b, product
        self.acc_dtype = computed_in(z.dtype)
        self.depth = self.depth_of()
        self.steps = -(-k // (self.depth * parts))
        counts = -(-m // (SIDE * each[0])), -(-n // (SIDE * each[1]))
        self.block, self.thread = Scalar("block", INT64), Scalar("thread", INT64)
        self.blocks = parts * batch * math.prod(counts)
        self.part, self.matrix, *tile = b.divided(self.block, (parts, batch, *counts))
        row, column = self.position(each)
        self.left = self.side(self, x, row, b.mul(tile[0], SIDE * each[0]), each[0], m)
        self.right = self.side(self, y, column, b.mul(tile[1], SIDE * each[1]), each[1], n)
        self.sides = self.left, self.right
        rows, columns = self.sums_of_thread()
        self.sums = [[b.variable(0, self.acc_dtype) for _ in range(columns)] for _ in range(rows)]

    def depth_of(self) -> int:
        """The number of terms of a step."""
        return depth_of(self.product, self.acc_dtype)

    def position(self, each: tuple[int, int]) -> list[Operand]:
        """The row and column of a thread."""
        b = self.b
        *group, i, j = b.divided(self.thread, (*(SIDE // size for size in WARP), *WARP))
        return [b.add(b.mul(g, size), k) for g, size, k in zip(group, WARP, (i, j), strict=True)]

    def sums_of_thread(self) -> tuple[int, int]:
        """The rows and columns of a thread."""
        return self.left.each, self.right.each

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
            self.multiply(half)
            with b.when(is_more):
                for side in self.sides:
                    side.store_shared(b.sub(1, half))
            self.barrier(*tiles)

    def multiply(self, half: Operand) -> None:
        """Add the products of one step."""
        b = self.b
        with b.loop(self.depth // UNROLL) as group:
            for k in range(UNROLL):
                term = b.add(b.mul(group, UNROLL), k)
                left, right = (side.terms(half, term) for side in self.sides)
                for row, x in zip(self.sums, left, strict=True):
                    for total, y in zip(row, right, strict=True):
                        b.assign(total, self.added(x, y, b.read(total)))

    def added(self, x: Operand, y: Operand, total: Operand) -> Operand:
        """The total plus one product."""
        b = self.b
        return b.fma(x, y, total) if self.acc_dtype.kind == "f" else b.add(total, b.mul(x, y))

    def store(self, output: Output) -> None:
        """Store the tile through shared memory, one row of each thread at a time, so that stores
        are coalesced.
        """
        b, product, (left, right) = self.b, self.product, self.sides
        strip = Buffer("strip", self.acc_dtype, (left.count // len(self.sums), right.count),
                       "shared")
        with b.loop(len(self.sums)) as part:
            for k, row in enumerate(self.sums):
                with b.when(b.eq(part, k)):
                    for c, total in enumerate(row):
                        column = right.place(right.position, c)
                        at = left.position, self.swizzled(left.position, column)
                        b.store(strip, at, b.read(total))
            self.barrier(strip)
            with b.loop(strip.size // THREADS) as step:
                i, j = b.divided(b.add(b.mul(step, THREADS), self.thread), strip.shape)
                row, column = b.add(left.first, left.place(i, part)), b.add(right.first, j)
                inside = b.and_(self.is_inside(row, product.m, left.count),
                                self.is_inside(column, product.n, right.count))
                with b.when(inside):
                    place = product.place(b, self.parts, self.part, self.matrix, row, column)
                    output.store(b, place, b.load(strip, (i, self.swizzled(i, j))))
            self.barrier(strip)

    def swizzled(self, row: Operand, column: Operand) -> Operand:
        """The column in the strip, by which threads that store at once hit different banks."""
        return column
