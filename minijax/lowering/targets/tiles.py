"""Products of matrices on a GPU: a block of threads has a tile of the result, in its registers.

Stands on builder.py. Tiles of both factors pass through shared memory, the next while one is used;
what follows a product is computed on the tile before it is stored. Chapter 27. In CUDA: CUTLASS.
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
from ..loops import (
    INT64, Barrier, Buffer, Call, Constant, For, Launch, Let, Load, Operand, Scalar, Statement,
    Store, renamed, touched, with_bodies,
)
from ..routines import PRODUCT
from ..scalars import BOOL
from .team import Writer

SIDE = 16           # threads beside each other on a tile, and below each other
THREADS = SIDE * SIDE
WARP = 4, 8         # of them: what its threads load at once is in few rows, and few columns
EACH = 2, 4, 8      # rows, and columns, of which a thread may have sums
VECTOR = 16         # bytes that a thread loads at once
DEEP = 32           # bytes of a row that memory gives at once: terms of a tile, at least FEWEST
FEWEST = 8
REGISTERS = 288     # bytes of them for the sums of a thread, and for what it fetches
PARTS = 1, 2, 4, 8, 16  # of the terms of a long sum
PROCESSORS = 108    # of a GPU: less than a tile for each takes as long as that
WRITTEN_OUT = 2     # terms: nobody else does it, and the turns of a loop take time
LOADED = 2          # multiplications in the time of a load from shared memory,
WAITED = 300        # at least in that of a step, till what is fetched is there,
JOINED = 3000       # and in that of one launch more


class Factor(NamedTuple):
    """A stack of matrices: how far it is to the next of them, the next row, the next term."""

    buffer: Buffer
    steps: tuple[int, int, int]


class Product(NamedTuple):
    """What a call asks for: matrices of m rows and n columns, each the sum of k terms."""

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


class After(NamedTuple):
    """A loop over all that a product gave: what a turn does, at an index, with the element there.
    """

    sizes: tuple[int, ...]
    indices: tuple[Scalar, ...]
    elements: tuple[Scalar, ...]  # as it is called
    body: tuple[Statement, ...]


def tiled(body: Sequence[Statement], writer: Writer, is_left: Callable[[Call], bool]
          ) -> Iterator[Statement]:
    """A body whose products are launches, but for those that are left to a library."""
    rest = list(body)
    while rest:
        statement = rest.pop(0)
        if isinstance(statement, Call) and is_product(statement) and not is_left(statement):
            product = Product.of(statement)
            between, after = followed(rest, product)
            yield from between
            del rest[:len(between) + (after is not None)]
            yield from launched(product, after, writer)
        else:
            yield with_bodies(statement, lambda inner: tiled(inner, writer, is_left))


def launched(product: Product, after: After | None, writer: Writer) -> Iterator[Statement]:
    """A launch for a product and what follows it; or else, where its terms are in several parts, a
    loop that joins what these gave.
    """
    z, wide = product.z, computed_in(product.z.dtype)
    used = 1 + len(after.elements) if after is not None else 0
    end = End(z if z.role != "temp" or writer.uses[z] > used else None, z.dtype, after)
    each, parts = plan(product, wide)
    if parts == 1:
        yield Tile(product, each).launch(end)
        return
    sums = writer.temp((parts, z.size), wide, "parts")
    yield Tile(product, each, parts).launch(End(sums, wide))
    b = Builder()
    with b.loop(z.size, vectorize="parallel") as i:
        op = "or" if wide == BOOL else "add"
        end.give(b, i, b.accumulate(op, (parts,), lambda part: b.load(sums, (part, i))))
    yield from b.scopes[0].statements


def is_product(call: Call) -> bool:
    return re.fullmatch(PRODUCT, call.external) is not None


class End(NamedTuple):
    """What is done with each element: where it is stored, and as what; what follows it."""

    into: Buffer | None
    dtype: np.dtype
    after: After | None = None

    def give(self, b: Builder, at: Operand, x: Operand) -> None:
        """What has been summed for the element at a position."""
        x = b.actual(b.convert(x, self.dtype))
        if self.into is not None:
            b.store(self.into, (at,), x)
        if self.after is not None:
            places = map(b.actual, b.unravel(at, self.after.sizes))
            names = dict(zip(self.after.indices, places, strict=True))
            b.scopes[-1].statements += renamed(
                self.after.body, names | dict.fromkeys(self.after.elements, x))


# -- what follows ----------------------------------------------------------------------------------


def followed(rest: Sequence[Statement], product: Product) -> tuple[list[Statement], After | None]:
    """The loop over its elements that follows a product, and what may as well be done before it."""
    between = list(itertools.takewhile(
        lambda each: isinstance(each, Let | Load) and product.z not in touched(each), rest))
    loop = rest[len(between)] if len(rest) > len(between) else None
    after = each_element(loop, product) if isinstance(loop, For) else None
    return (between, after) if after is not None else ([], None)


def each_element(loop: For, product: Product) -> After | None:
    """What a loop does with each element, if it asks for that alone, and changes no factor."""
    loops = [loop]
    while len(inner := loops[-1].body) == 1 and isinstance(inner[0], For):
        loops.append(inner[0])
    z, body, indices = product.z, loops[-1].body, tuple(each.index for each in loops)
    sizes = tuple(each.turns or 0 for each in loops)
    asked = [each for each in body if isinstance(each, Load) and each.buffer is z]
    stored = {each.buffer for each in body if isinstance(each, Store)}
    is_of_all = math.prod(sizes) == z.size and all(
        each.vectorize == "parallel" and isinstance(each.start, Constant) and each.start.value == 0
        for each in loops)
    is_simple = all(isinstance(each, Let | Load | Store) for each in body)
    is_alone = all(is_at(each.index, indices, sizes, z.shape) for each in asked) and (
        stored.isdisjoint((product.x.buffer, product.y.buffer, z)))
    if not (is_of_all and is_simple and asked and is_alone):
        return None
    return After(sizes, indices, tuple(each.target for each in asked),
                 tuple(each for each in body if each not in asked))


def is_at(index: Sequence[Operand], indices: Sequence[Operand], sizes: Sequence[int],
          shape: Sequence[int]) -> bool:
    """Whether an index is the position in some loops, in row-major order."""
    if len(index) == 1:
        return tuple(index) == tuple(indices)
    longer = [(i, n) for i, n in zip(index, shape, strict=True) if n != 1]
    return longer == list(zip(indices, sizes, strict=True))


# -- the launch ------------------------------------------------------------------------------------


def depth_of(product: Product, wide: np.dtype) -> int:
    """How many terms there are in a tile of a factor."""
    narrow = min(factor.buffer.dtype.itemsize for factor in (product.x, product.y))
    return min(max(DEEP // narrow, FEWEST), SIDE, 64 // wide.itemsize)


def plan(product: Product, wide: np.dtype) -> tuple[tuple[int, int], int]:
    """How many rows and columns of sums a thread has, and in how many parts the terms are: what
    takes the least time.

    With more sums a factor is loaded less often; with fewer, and with parts, there are blocks for
    all processors.
    """
    depth = depth_of(product, wide)
    steps = -(-product.k // depth)

    def blocks(each: tuple[int, int]) -> int:
        return product.batch * math.prod(-(-n // (SIDE * count)) for n, count in zip(
            (product.m, product.n), each, strict=True))

    def time(each: tuple[int, int], parts: int) -> int:
        step = max(depth * (math.prod(each) + LOADED * sum(each)), WAITED)
        return (-(-blocks(each) * parts // PROCESSORS) * -(-steps // parts) * step
                + JOINED * (parts > 1))

    def fits(each: tuple[int, int], parts: int) -> bool:
        fetched = SIDE * sum(each) * depth // THREADS
        return (math.prod(each) + fetched) * wide.itemsize <= REGISTERS and (
            parts == 1 or (parts <= steps and blocks(each) * parts <= PROCESSORS))
    choices = itertools.product(itertools.product(EACH, EACH), PARTS)
    return min((each for each in choices if fits(*each)),
               key=lambda each: (time(*each), sum(each[0]), each[1]))


class Side:
    """Rows of x, or columns of y, that belong to a tile: `count` from `first` on, of `end`.

    A thread has `each` of them. As many as a vector has numbers are neighbours; the next are the
    same further on, behind those of the other threads.
    """

    def __init__(self, tile: Tile, factor: Factor, mine: Operand, first: Operand, each: int,
                 end: int) -> None:
        self.tile, self.factor, self.mine, self.first, self.end = tile, factor, mine, first, end
        self.b, self.each, self.count = tile.b, each, SIDE * each
        lanes = VECTOR // max(tile.wide.itemsize, 4)
        self.lanes = min(lanes, each)
        # Threads that store a column lie in different banks of shared memory.
        shape = 2, tile.depth, self.count + lanes
        self.shared = Buffer(factor.buffer.name, tile.wide, shape, "shared")
        self.coming = [self.b.variable(0, tile.wide)
                       for _ in range(self.count * tile.depth // THREADS)]

    def taken(self) -> Iterator[tuple[Operand, Operand, Any]]:
        """Rows and terms that a thread brings, so that neighbours take what are neighbours."""
        b, thread = self.b, self.tile.thread
        along_terms = self.factor.steps[2] == 1
        beside = self.tile.depth if along_terms else self.count
        for k, variable in enumerate(self.coming):
            across = b.rem(thread, beside)
            down = b.add(b.div(thread, beside), k * (THREADS // beside))
            yield (down, across, variable) if along_terms else (across, down, variable)

    def fetch(self, step: Operand) -> None:
        """Load what is for one step: zeros, where there are no such rows or terms."""
        b, tile, buffer = self.b, self.tile, self.factor.buffer
        step = b.add(b.mul(tile.part, tile.steps), step)
        for row, term, variable in self.taken():
            at = tile.matrix, b.add(self.first, row), b.add(b.mul(step, tile.depth), term)
            place = functools.reduce(b.add, map(b.mul, at, self.factor.steps))
            terms = tile.depth * tile.steps * tile.parts
            inside = b.and_(tile.is_inside(at[1], self.end, self.count),
                            tile.is_inside(at[2], tile.product.k, terms))
            load = functools.partial(b.load, buffer, (place,))
            b.assign(variable, b.convert(b.choose(
                inside, load, lambda: b.const(0, buffer.dtype)), tile.wide))

    def put(self, half: Operand) -> None:
        """Store what has come where all threads find it."""
        for row, term, variable in self.taken():
            self.b.store(self.shared, (half, term, row), self.b.read(variable))

    def place(self, mine: Operand, k: Any) -> Operand:
        """Which of the tile is the k-th of a thread."""
        b, k = self.b, self.b.index(k)
        group, lane = b.div(k, self.lanes), b.rem(k, self.lanes)
        return b.add(b.add(b.mul(group, SIDE * self.lanes), b.mul(mine, self.lanes)), lane)

    def terms(self, half: Operand, term: Operand) -> list[Operand]:
        """One of each row of the thread's."""
        return [self.b.load(self.shared, (half, term, self.place(self.mine, k)))
                for k in range(self.each)]


class Tile:
    """What a block does for its tile of a product."""

    def __init__(self, product: Product, each: tuple[int, int], parts: int = 1) -> None:
        self.product, self.b, self.parts = product, Builder(), parts
        b, (x, y, z, batch, m, n, k) = self.b, product
        self.wide = computed_in(z.dtype)
        self.depth = depth_of(product, self.wide)
        self.steps = -(-k // (self.depth * parts))
        counts = -(-m // (SIDE * each[0])), -(-n // (SIDE * each[1]))
        self.block, self.thread = Scalar("block", INT64), Scalar("thread", INT64)
        self.blocks = parts * batch * math.prod(counts)
        self.part, self.matrix, *tile = map(b.actual, b.unravel(
            self.block, (parts, batch, *counts)))
        *group, i, j = map(b.actual, b.unravel(
            self.thread, (*(SIDE // size for size in WARP), *WARP)))
        mine = [b.add(b.mul(g, size), own)
                for g, size, own in zip(group, WARP, (i, j), strict=True)]
        self.left, self.right = (Side(self, *given) for given in zip(
            (x, y), mine, (b.mul(at, SIDE * count) for at, count in zip(tile, each, strict=True)),
            each, (m, n), strict=True))
        self.sides = self.left, self.right
        self.sums = [[b.variable(0, self.wide) for _ in range(each[1])] for _ in range(each[0])]

    def launch(self, end: End) -> Launch:
        """The launch of all blocks."""
        self.add_up()
        self.give(end)
        return Launch(self.block, self.blocks, self.thread, THREADS,
                      tuple(self.b.scopes[0].statements))

    def barrier(self, *shared: Buffer) -> None:
        """Wait; what has been loaded from shared memory is no longer known."""
        self.b.emit(Barrier())
        for x in shared:
            self.b.touch(x)

    def is_inside(self, place: Operand, end: int, size: int) -> Operand:
        """Whether a place is before the end, where tiles of a size do not go up with it."""
        return self.b.lt(place, end) if end % size else self.b.const(True, BOOL)

    def add_up(self) -> None:
        """Go through the terms; while those of one step are added, the next are on their way."""
        b, steps = self.b, self.steps
        tiles = [side.shared for side in self.sides]
        for side in self.sides:
            side.fetch(b.index(0))
            side.put(b.index(0))
        self.barrier(*tiles)
        with b.loop(steps) as step:
            half, following = b.and_(b.index(step), 1), b.add(step, 1)
            is_more = b.lt(following, steps)
            with b.when(is_more):
                for side in self.sides:
                    side.fetch(following)
            with b.loop(self.depth // WRITTEN_OUT) as group:
                for k in range(WRITTEN_OUT):
                    term = b.add(b.mul(b.index(group), WRITTEN_OUT), k)
                    left, right = (side.terms(half, term) for side in self.sides)
                    for row, x in zip(self.sums, left, strict=True):
                        for total, y in zip(row, right, strict=True):
                            b.assign(total, self.added(x, y, b.read(total)))
            with b.when(is_more):
                for side in self.sides:
                    side.put(b.sub(1, half))
            self.barrier(*tiles)

    def added(self, x: Operand, y: Operand, total: Operand) -> Operand:
        """The total with one term more."""
        b = self.b
        return b.fma(x, y, total) if self.wide.kind == "f" else b.add(total, b.mul(x, y))

    def give(self, end: End) -> None:
        """What has been summed, one row of each thread at a time: through shared memory, so that
        neighbours are stored at once, by threads that are neighbours.
        """
        b, (_, _, _, batch, m, n, _) = self.b, self.product
        left, right = self.sides
        strip = Buffer("strip", self.wide, (SIDE, right.count), "shared")
        with b.loop(left.each) as part:
            for k, row in enumerate(self.sums):
                with b.when(b.eq(b.index(part), k)):
                    for c, total in enumerate(row):
                        b.store(strip, (left.mine, right.place(right.mine, c)), b.read(total))
            self.barrier(strip)
            with b.loop(strip.size // THREADS) as turn:
                i, j = map(b.actual, b.unravel(
                    b.add(b.mul(b.index(turn), THREADS), self.thread), strip.shape))
                row, column = b.add(left.first, left.place(i, part)), b.add(right.first, j)
                inside = b.and_(self.is_inside(row, m, left.count),
                                self.is_inside(column, n, right.count))
                with nullcontext() if isinstance(inside, Constant) else b.when(inside):
                    at = self.part, self.matrix, row, column
                    end.give(b, b.ravel(at, (self.parts, batch, m, n)), b.load(strip, (i, j)))
            self.barrier(strip)
