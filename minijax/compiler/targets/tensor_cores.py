"""Products on tensor cores: a warp multiplies small matrices, and has their elements in registers.

Builds on tiles.py, as another kind of tile. Steps of both factors pass through shared memory in an
order in which no two threads of a warp ask one bank for different words. Chapter 27.
In CUDA: CUTLASS's warp-level products.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..builder import Builder
from ..loops import MMA, Buffer, Call, Operand
from ..routines import PRODUCT
from . import cublas, tiles
from .thread_block import WARP
from .tiles import SIDE, THREADS, Epilogue, Product, Side, Tile

WARPS = THREADS // WARP
ROWS, COLUMNS = 16, 8  # of the product of a warp,
WORDS = 8              # and words of 32 bits along its terms
DEPTH = 16             # terms of a step
MEMBERS = 4            # threads that share a row of a factor
PADDING = 4            # words between rows in shared memory: 8 rows begin at banks 4 apart
SHORT = np.dtype(np.float16), np.dtype("bfloat16")
MIN_TERMS = 8          # a shorter sum leaves most of a step empty
MAX_SUMS = 32          # of a thread: with more, registers are spilled
# Costs in the units of tiles.py: two cycles of a processor.
MMA_COST, ACCESS_COST = 8, 4  # of a thread block, for each instruction of a warp
LIBRARY_RATE = {4: 1300, 2: 2600}  # multiplications of a processor in cuBLAS, by bytes of a factor
BYTES = 4800           # that memory moves


def has_tensor_cores(call: Call, product: Product) -> bool:
    """Whether tensor cores multiply such numbers: short floats, or float32 where TF32 will do."""
    x, y, z = (each.dtype for each in (product.x.buffer, product.y.buffer, product.z))
    if x != y or z not in (x, np.float32) or product.k < MIN_TERMS:
        return False
    return x in SHORT or (call.external.endswith("_tf32") and terms_of(product)
                          >= cublas.MIN_SHORT_TERMS)


def terms_of(product: Product) -> int:
    """The number of multiplications."""
    return product.batch * product.m * product.n * product.k


def choose(call: Call, product: Product, epilogue: Epilogue | None) -> type[Tile] | None:
    """The tiles for a product; None if it is left to the library."""
    tile = choose_without(call, product, epilogue)
    if not has_tensor_cores(call, product):
        return tile
    return TensorTile if tile is not None or epilogue is not None and is_faster(product) else None


def choose_without(call: Call, product: Product, epilogue: Epilogue | None) -> type[Tile] | None:
    """The same where no tensor cores may be used; for convolutions there is no library."""
    return None if re.fullmatch(PRODUCT, call.external) and cublas.has(call) else Tile


def is_faster(product: Product) -> bool:
    """Whether tiles that do what follows a product take less time than cuBLAS and one more launch,
    which loads what cuBLAS has stored.
    """
    rate = LIBRARY_RATE[product.x.buffer.dtype.itemsize] * tiles.PROCESSORS
    library = terms_of(product) / rate + tiles.LAUNCH_COST + 2 * product.z.nbytes / BYTES
    return TensorTile.plan(product)[0] < library


def warps_of(each: tuple[int, int]) -> tuple[int, int]:
    """The warps along each side of a tile: those that load least from shared memory."""
    choices = [(rows, WARPS // rows) for rows in (1, 2, 4, 8)
               if SIDE * each[0] % (ROWS * rows) == 0 and SIDE * each[1] * rows % (
                   COLUMNS * WARPS) == 0]
    return min(choices, key=lambda warps: each[0] / warps[0] + each[1] / warps[1])


def fragments(each: tuple[int, int]) -> tuple[int, int]:
    """The products of a warp along each side of a tile."""
    rows, columns = warps_of(each)
    return SIDE * each[0] // (ROWS * rows), SIDE * each[1] // (COLUMNS * columns)


class Fragments(Side):
    """A side whose rows are words of 32 bits, of which groups of threads have some each."""

    tile: TensorTile

    @property
    def per_word(self) -> int:
        """The numbers in a word."""
        return 4 // self.factor.buffer.dtype.itemsize

    def in_shared_memory(self) -> Buffer:
        """The buffer of two steps; a row's terms are adjacent."""
        x = self.factor.buffer
        shape = 2, self.count, self.tile.depth + PADDING * self.per_word
        return Buffer(x.name, x.dtype, shape, "shared")

    def loads(self) -> Iterator[tuple[Operand, Operand, Any]]:
        """The rows and terms that a thread loads: the halves of a warp are four rows apart."""
        if not self.factor.has_adjacent_terms:
            yield from super().loads()
            return
        b = self.b
        eight, low, half, term = b.divided(self.tile.thread, (THREADS // DEPTH // 8, 4, 2, DEPTH))
        row = b.add(b.add(b.mul(eight, 8), b.mul(half, 4)), low)
        for k, variable in enumerate(self.prefetched):
            yield b.add(row, k * (THREADS // DEPTH)), term, variable

    def store_shared(self, half: Operand) -> None:
        """Store the loaded elements in shared memory, float32 rounded to TF32."""
        b, count = self.b, self.per_word
        for row, term, variable in self.loads():
            x = b.read(variable)
            place = self.place_of(b.div(row, 8), b.div(term, count), b.rem(term, count))
            b.store(self.shared, (half, row, place), rounded_to_tf32(b, x) if count == 1 else x)

    def place_of(self, eight: Operand, word: Operand, part: Any = 0) -> Operand:
        """The place of a number in a row of some eight: those exchange their words whose rows
        begin at the same banks.
        """
        b = self.b
        swizzled = b.xor(word, b.and_(eight, MEMBERS - 1))
        return b.add(b.mul(swizzled, self.per_word), part)

    def words(self, half: Operand, step: int, row: Operand, eight: Operand) -> Iterator[list]:
        """The numbers of a thread in a row of a step: of its two words."""
        b, count = self.b, self.per_word
        for word in (step * WORDS, step * WORDS + MEMBERS):
            place = b.add(self.place_of(eight, self.tile.member), word * count)
            yield [b.load(self.shared, (half, row, b.add(place, k))) for k in range(count)]

    def rows(self, half: Operand, step: int) -> list[list[list]]:
        """The two words of each row of a thread, in each eight rows of its warp."""
        b, (warp, eights) = self.b, self.tile.warps[self is self.tile.right]
        first = b.add(b.mul(warp, 8 * eights), self.tile.group)
        return [[*self.words(half, step, b.add(first, 8 * k), b.index(k) if eights % MEMBERS == 0
                             else b.add(b.mul(warp, eights), k))] for k in range(eights)]

    def place(self, position: Operand, k: Any) -> Operand:
        """The k-th column of a thread in the tile; or the row that is in a strip, the k-th one."""
        b, (_, eights) = self.b, self.tile.warps[self is self.tile.right]
        if self is self.tile.right:
            return b.add(position, k // 2 * 8 + k % 2)
        first = b.add(b.mul(b.div(position, 8), 8 * eights), b.rem(position, 8))
        return b.add(first, b.mul(k, 8))


class TensorTile(Tile):
    """Emits the code of a block for its tile of a product on tensor cores."""

    side = Fragments
    left: Fragments
    right: Fragments
    sides: tuple[Fragments, Fragments]

    @staticmethod
    def plan(product: Product) -> tuple[int, tuple[int, int], int]:
        steps = DEPTH * product.x.buffer.dtype.itemsize // (4 * WORDS)

        def step_cost(each: tuple[int, int]) -> int:
            rows, columns = fragments(each)
            accesses = 2 * sum(each) + steps * (4 * rows + 2 * columns)
            return ACCESS_COST * accesses + MMA_COST * steps * rows * columns
        return tiles.fastest(product, DEPTH, step_cost, lambda each: math.prod(each) <= MAX_SUMS)

    def depth_of(self) -> int:
        return DEPTH

    def position(self, each: tuple[int, int]) -> list[Operand]:
        """The row of a thread in a strip, and its first column in the tile."""
        b, (rows, columns) = self.b, fragments(each)
        row, column, self.group, self.member = b.divided(
            self.thread, (*warps_of(each), WARP // MEMBERS, MEMBERS))
        self.warps = (row, 2 * rows), (column, columns)  # and how often they have eight rows
        return [b.add(b.mul(row, 8), self.group),
                b.add(b.mul(column, COLUMNS * columns), b.mul(self.member, 2))]

    def sums_of_thread(self) -> tuple[int, int]:
        return self.warps[0][1], 2 * self.warps[1][1]

    def multiply(self, half: Operand) -> None:
        """Add the products of one step: of each two times eight rows with eight columns."""
        for step in range(DEPTH // (WORDS * self.left.per_word)):
            left, right = (side.rows(half, step) for side in self.sides)
            for i in range(0, len(left), 2):
                x = tuple(number for word in zip(*left[i:i + 2], strict=True) for row in word
                          for number in row)
                for j, y in enumerate(right):
                    self.mma(i, 2 * j, x, tuple(number for word in y for number in word))

    def mma(self, i: int, j: int, x: Sequence[Operand], y: Sequence[Operand]) -> None:
        """Add one product to the sums from row i and column j of the thread on."""
        sums = tuple(total for row in self.sums[i:i + 2] for total in row[j:j + 2])
        self.b.emit(MMA(sums, tuple(x), tuple(y)))
        for total in sums:
            self.b.invalidate(total)

    def swizzled(self, row: Operand, column: Operand) -> Operand:
        b = self.b
        return b.xor(column, b.mul(b.and_(row, 3), 8))


def rounded_to_tf32(b: Builder, x: Operand) -> Operand:
    """A float32 with 11 significant bits: the nearest one; of two, that of larger size."""
    rounded = b.and_(b.add(b.bitcast(x, np.uint32), 1 << 12), 0xFFFFE000)
    return b.select(b.eq(x, x), b.bitcast(rounded, np.float32), np.float32(np.nan))
