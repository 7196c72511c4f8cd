"""Products of matrices on a GPU: a block of threads has a tile of the result, in its registers.

Stands on builder.py. Tiles of both factors pass through shared memory, the next while one is used;
what follows a product is computed on the tile before it is stored. Chapter 27. In CUDA: CUTLASS.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
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

SIDE = 16           # threads beside each other on a tile, and below each other
THREADS = SIDE * SIDE
WARP = 4, 8         # of them: what its threads load at once is in few rows, and few columns
EACH = 8, 4, 2      # rows, and columns, of which a thread may have sums
VECTOR = 16         # bytes that a thread loads at once
DEEP = 32           # bytes of a row that memory gives at once: terms of a tile, at least FEWEST
FEWEST = 8
REGISTERS = 288     # bytes of them for the sums of a thread, and for what it fetches
PROCESSORS = 108    # of a GPU: less than a tile for each takes as long as that
WRITTEN_OUT = 4     # terms: nobody else does it, and the turns of a loop take time
LOADED = 2          # multiplications in the time of a load from shared memory


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


def tiled(body: Sequence[Statement], uses: Mapping[Buffer, int],
          is_left: Callable[[Call], bool]) -> Iterator[Statement]:
    """A body whose products are launches, but for those that are left to a library.

    `uses`: how many statements of the whole program touch a buffer.
    """
    rest = list(body)
    while rest:
        statement = rest.pop(0)
        if isinstance(statement, Call) and is_product(statement) and not is_left(statement):
            product = Product.of(statement)
            between, after = followed(rest, product)
            yield from between
            del rest[:len(between) + (after is not None)]
            yield Tile(product).launch(after, uses)
        else:
            yield with_bodies(statement, lambda inner: tiled(inner, uses, is_left))


def is_product(call: Call) -> bool:
    return re.fullmatch(PRODUCT, call.external) is not None


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


def sums_of_a_thread(product: Product, wide: np.dtype, depth: int) -> tuple[int, int]:
    """How many rows and columns of sums a thread has: those that take the least time.

    With more of them a factor is loaded less often; with fewer there are tiles for all processors.
    """
    def time(each: tuple[int, int]) -> int:
        tiles = product.batch * math.prod(
            -(-n // (SIDE * count)) for n, count in zip((product.m, product.n), each, strict=True))
        return -(-tiles // PROCESSORS) * (math.prod(each) + LOADED * sum(each))

    def fits(each: tuple[int, int]) -> bool:
        fetched = SIDE * sum(each) * depth // THREADS
        return (math.prod(each) + fetched) * wide.itemsize <= REGISTERS
    return min(filter(fits, itertools.product(EACH, EACH)), key=time)


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
        for row, term, variable in self.taken():
            at = tile.matrix, b.add(self.first, row), b.add(b.mul(step, tile.depth), term)
            place = functools.reduce(b.add, map(b.mul, at, self.factor.steps))
            inside = b.and_(tile.is_inside(at[1], self.end, self.count),
                            tile.is_inside(at[2], tile.product.k, tile.depth))
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

    def __init__(self, product: Product) -> None:
        self.product, self.b = product, Builder()
        b, (x, y, z, batch, m, n, _) = self.b, product
        self.wide = computed_in(z.dtype)
        narrow = min(x.buffer.dtype.itemsize, y.buffer.dtype.itemsize)
        self.depth = min(max(DEEP // narrow, FEWEST), SIDE, 64 // self.wide.itemsize)
        each = sums_of_a_thread(product, self.wide, self.depth)
        counts = -(-m // (SIDE * each[0])), -(-n // (SIDE * each[1]))
        self.block, self.thread = Scalar("block", INT64), Scalar("thread", INT64)
        self.blocks = batch * math.prod(counts)
        self.matrix, *tile = map(b.actual, b.unravel(self.block, (batch, *counts)))
        *group, i, j = map(b.actual, b.unravel(
            self.thread, (*(SIDE // size for size in WARP), *WARP)))
        mine = [b.add(b.mul(g, size), own)
                for g, size, own in zip(group, WARP, (i, j), strict=True)]
        self.left, self.right = (Side(self, *given) for given in zip(
            (x, y), mine, (b.mul(at, SIDE * count) for at, count in zip(tile, each, strict=True)),
            each, (m, n), strict=True))
        self.sides = self.left, self.right
        self.sums = [[b.variable(0, self.wide) for _ in range(each[1])] for _ in range(each[0])]

    def launch(self, after: After | None, uses: Mapping[Buffer, int]) -> Launch:
        """A launch for the product and what follows it; it is stored if something else asks for it.
        """
        z = self.product.z
        all_uses = 1 + len(after.elements) if after is not None else 0
        self.add_up()
        self.give(after, z.role != "temp" or uses[z] > all_uses)
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
        b, steps = self.b, -(-self.product.k // self.depth)
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

    def give(self, after: After | None, stores: bool) -> None:
        """What has been summed, one row of each thread at a time: through shared memory, so that
        neighbours are stored at once, by threads that are neighbours.
        """
        b, (_, _, z, batch, m, n, _) = self.b, self.product
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
                    x = b.actual(b.convert(b.load(strip, (i, j)), z.dtype))
                    at = b.ravel((self.matrix, row, column), (batch, m, n))
                    if stores:
                        b.store(z, (at,), x)
                    if after is not None:
                        places = map(b.actual, b.unravel(at, after.sizes))
                        names = dict(zip(after.indices, places, strict=True))
                        b.scopes[-1].statements += renamed(
                            after.body, names | dict.fromkeys(after.elements, x))
            self.barrier(strip)
