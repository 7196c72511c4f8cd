"""Row tiles: of a loop over short rows, so many rows at once as a vector has lanes.

A tile has the first element of each of its rows, then the second, and so on. Each run of straight
code along a row becomes a loop over the lanes; what one run computes for another has a place for
each lane.  Builds on vectorization.py; outer_loop_vectorization.py chooses the loops.  Chapter 26.
"""

import itertools
import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from .arithmetic import Arithmetic
from .loops import (INT64, Address, Assign, Buffer, Call, Constant, Declare, For, Index, Let, Load,
                    Operand, Read, Scalar, Statement, Store, Variable, copied, defined, substituted,
                    integer, used, walk, with_origin)
from .vectorization import STRAIGHT, gathers

Part: TypeAlias = Any  # a list of straight code, or a loop with a list of parts
Row: TypeAlias = tuple[Buffer, Index]  # what its elements have in common of their indices

LONGEST = 64  # elements of a row


def in_tiles(loop: For, lanes: int, private: Collection[Buffer]) -> list[Statement] | None:
    """A loop over rows as one over tiles, and one over the rows that are left; None where rows are
    accessed otherwise than element by element.
    """
    tile = _Tile(loop, private, lanes)
    body = tile.body()
    if body is None:
        return None
    count, rest = divmod(loop.trip_count or 0, lanes)
    tiles = replace(loop, index=tile.index, start=integer(0), stop=integer(count), body=tuple(body))
    first_left = integer(loop.start.value + count * lanes)  # type: ignore[union-attr]
    left = copied((replace(loop, start=first_left),), {})  # with names of its own
    return [with_origin(x, loop) for x in (tiles, *(left if rest else ()))]


def stores_apart(loop: For) -> bool:
    """Whether each lane stores at a place of its own."""
    _, steps = gathers(loop)
    return all(steps.at(each.buffer, each.index) != 0
               for each in walk(loop.body) if isinstance(each, Store))


class _Tile:
    """The body of a loop over rows, for a tile of them."""

    def __init__(self, loop: For, private: Collection[Buffer], lanes: int) -> None:
        self.loop, self.private, self.lanes = loop, set(private), lanes
        self.index = Scalar(loop.index.name, INT64)
        every = list(walk(loop.body))
        self.inside = {defined(each) for each in every}
        self.lets = {each.target: each for each in every if isinstance(each, Let)}
        self.variables = {each.variable for each in every if isinstance(each, Declare)}
        self.loaded, self.stored = ({each.buffer for each in every if isinstance(each, kind)}
                                    for kind in (Load, Store))
        self.runs: dict[Any, list[Statement]] = {}  # what is computed, and the run that does it
        self.shared: set[Any] = set()  # what another run needs
        self.places: dict[Scalar | Variable | Buffer | Row, Buffer] = {}
        self.ranges = {each.index: range(int(each.start.value), int(each.stop.value))  # type: ignore[union-attr]
                       for each in every if isinstance(each, For) and each.trip_count is not None}
        self.written: dict[Buffer, list[Index]] = {}  # places of rows → where they are stored to

    def body(self) -> list[Statement] | None:
        """The statements of a tile: rows are loaded, computed with, and stored; None if they cannot
        be.
        """
        if not all(isinstance(each, For | STRAIGHT) for each in walk(self.loop.body)):
            return None
        parts = self.parts(self.loop.body)
        for each in walk(self.loop.body):
            if (isinstance(each, Load | Store) and each.buffer in self.private
                    and len(each.index) < len(each.buffer.shape)
                    # A total of all rows would be read long before it is assigned.
                    or isinstance(each, Read) and each.variable not in self.variables
                    and each.target in self.shared):
                return None
        inner = list(self.printed(parts))
        rows = [x for x in self.places if isinstance(x, tuple)]
        stores = [each for each in walk(self.loop.body) if isinstance(each, Store)
                  and any(each.buffer is x for x, _ in rows)]
        if (any(x in self.loaded and x in self.stored for x, _ in rows)
                or len(stores) > sum(map(len, self.written.values()))):  # others are in branches
            return None
        body = [*[x for row in rows if not self.is_stored_whole(row)
                  for x in self.copies(row, True)], *inner,
                *[x for row in rows if row[0] in self.stored for x in self.copies(row, False)]]
        runs = [each for each in walk(inner) if isinstance(each, For) and not any(
            isinstance(x, For) for x in each.body)]
        return body if all(map(stores_apart, runs)) and all(
            each in inner or not gathers(each)[0] for each in runs) else None

    def parts(self, body: Iterable[Statement]) -> list[Part]:
        """Loops, and runs of what stands between them; notes what another run has computed."""
        parts: list[Part] = []
        for is_loop, some in itertools.groupby(body, lambda each: isinstance(each, For)):
            if is_loop:
                parts += [(each, self.parts(each.body)) for each in some]  # type: ignore[attr-defined]
                continue
            parts.append(run := list(some))
            for each in run:
                for x in used(each):
                    self.share(x, run)
                self.runs[defined(each)] = run
        return parts

    def share(self, x: Any, run: list[Statement]) -> None:
        """Note that a run needs a number; an index is computed again, from numbers."""
        if self.runs.get(x, run) is not run:
            self.shared.add(x)
            for arg in self.lets[x].args if self.is_index(x) else ():
                self.share(arg, run)

    def is_index(self, x: Any) -> bool:
        return x.dtype == INT64 and x in self.lets

    def printed(self, parts: Iterable[Part]) -> Iterator[Statement]:
        """The statements of parts, for all rows of the tile."""
        for part in parts:
            if isinstance(part, tuple):
                yield replace(part[0], body=tuple(self.printed(part[1])), vectorize="")
            else:
                yield self.over_lanes(part)

    def over_lanes(self, run: list[Statement]) -> For:
        """A run of straight code as a loop over the lanes."""
        lane, b = Scalar("", INT64), Arithmetic()
        names: dict[Any, Any] = {self.loop.index: b.add(self.first_row(b), lane)}
        body = b.scopes[0].statements
        named = lambda x: self.number(x, run, lane, body, names)
        reduces = False
        for each in run:
            for x in used(each):
                named(x)
            new = defined(each)
            match each:
                case Load(target, buffer, index) if place := self.in_tile(buffer, index):
                    body.append(Load(target, place[0], (*substituted(place[1], names), lane)))
                case Store(buffer, index, value) if place := self.in_tile(buffer, index):
                    body.append(Store(
                        place[0], (*substituted(place[1], names), lane), named(value)))
                    if buffer not in self.private:
                        self.written.setdefault(place[0], []).append(place[1])
                case Declare(x, value) | Assign(x, value) if x in self.variables:
                    body.append(Store(self.place_of(x), (lane,), named(value)))
                case Read(target, x) if x in self.variables:
                    body.append(Load(target, self.place_of(x), (lane,)))
                case _:
                    reduces |= isinstance(each, Assign)
                    body.append(substituted(each, names))
            if new in self.shared and isinstance(new, Scalar) and not self.is_index(new):
                body.append(Store(self.place_of(new), (lane,), new))
        return For(lane, integer(0), integer(self.lanes), tuple(body), "",
                   "reduce" if reduces else "parallel")

    def first_row(self, b: Arithmetic) -> Operand:
        """The index of the first row of the tile."""
        return b.add(b.mul(self.index, self.lanes), self.loop.start)

    def number(self, x: Any, run: Any, lane: Scalar, body: list[Statement], names: dict[Any, Any]
               ) -> Any:
        """What a run calls a number: one of another run is loaded, an index computed again."""
        if x in names or self.runs.get(x, run) is run or isinstance(x, Variable):
            return names.get(x, x)
        new = Scalar(x.name, x.dtype)
        body.append(Let(new, self.lets[x].op, tuple(
            self.number(arg, run, lane, body, names) for arg in self.lets[x].args))
            if self.is_index(x) else Load(new, self.place_of(x), (lane,)))
        names[x] = new
        return new

    # Places: a buffer on the stack for a scalar, a variable, a private temp or rows

    def place_of(self, x: Any, *shape: int) -> Buffer:
        thing = x[0] if isinstance(x, tuple) else x
        return self.places.setdefault(
            x, Buffer(thing.name, thing.dtype, (*shape, self.lanes), "local"))

    def in_tile(self, buffer: Buffer, index: Index) -> tuple[Buffer, Index] | None:
        """Where an element of a private temp or of a row is, in each lane."""
        if buffer in self.private:
            return self.place_of(buffer, *buffer.shape), index
        axes = [k for k, x in enumerate(index) if self.is_row(x)]
        last = index[axes[0] + 1:] if axes else ()
        if len(axes) != 1 or not last or self.inside.intersection(index[:axes[0]]):
            return None
        shape = buffer.shape[-len(last):]
        if math.prod(shape) > LONGEST:
            return None
        return self.place_of((buffer, index[:axes[0] + 1]), *shape), last

    def is_row(self, x: Any) -> bool:
        """Whether an index is that of the row, or so much more."""
        let = self.lets.get(x)
        if let is None or let.op != "add":
            return x is self.loop.index
        return sum(map(self.is_row, let.args)) == 1 and all(
            self.is_row(arg) or arg not in self.inside for arg in let.args)

    def is_stored_whole(self, row: Row) -> bool:
        """Whether each element of a row is stored. Otherwise the tile needs those that memory has.
        """
        place = self.places[row]
        elements = {each for index in self.written.get(place, ()) for each in itertools.product(*(
            (int(x.value),) if isinstance(x, Constant) else self.ranges.get(x, ()) for x in index))}
        return len(elements) == math.prod(place.shape[:-1])

    def copies(self, row: Row, is_load: bool) -> Iterator[Statement]:
        """Load the rows of a tile, or store them: so many columns at a time as it has rows."""
        (buffer, (*before, first)), place, lanes = row, self.places[row], self.lanes
        shape, b = buffer.shape[1 - len(place.shape):], Arithmetic()
        length = math.prod(shape)
        names, statements = {self.loop.index: self.first_row(b)}, b.scopes[0].statements
        first = self.number(first, None, self.index, statements, names)
        yield from statements
        bits, count = 8 * buffer.dtype.itemsize, min(length, lanes)
        for column in range(0, length, lanes):
            start = np.unravel_index(min(column, max(length - lanes, 0)), shape)
            index = tuple(integer(int(k)) for k in start)
            rows = Address(buffer, (*before, first, *index)), integer(length)
            columns = Address(place, (*index, integer(0))), integer(lanes)
            yield (Call(f"transpose_{bits}_{lanes}x{count}", (*rows, *columns)) if is_load else
                   Call(f"transpose_{bits}_{count}x{lanes}", (*columns, *rows)))
