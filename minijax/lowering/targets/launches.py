"""The same loops on a GPU: what is launched, on how many blocks of how many threads.

Stands on team.py. Of a loop whose turns are independent a thread takes a turn, or a block where a
turn has long loops of its own; one block does what is between such loops. What one launch makes for
another passes through memory. Chapter 27. In XLA: its GPU emitters; in CUDA the programmer's work.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any


from ..loops import (
    INT64, Assign, Barrier, Buffer, Call, Check, Declare, For, If, Kernel, Launch, Let,
    Load, Read, Scalar, Statement, Store, Variable, While, bodies, defined, renamed, touched, used,
    walk, with_bodies,
)
from ..memory import layout
from ..probe import cost_of
from ..scalars import BOOL
from ..stretches import stretches
from . import cublas
from .team import JOINS, LOCAL, THREADS, WARP, Team, Writer, literal
from .tiles import tiled
from .turns import as_one, is_thin, scattered, side_by_side

SHARED = 44 << 10  # bytes of the 48 KB that every block may have for itself
WIDE = 1 << 16     # simple operations: what has more is worth launches of its own
TOGETHER = 4       # turns of a thread where it has little to do in each: more loads on their way
LARGE = 16         # times that: what has more is too much for one block
MANY = 64          # turns: what has fewer does not fill a GPU with a block for each;
FEW = 1024         # these do, but turns of loops inside are taken too, where no more than the
LEFT = 16          # 16th part of the work is in other loops
ZERO = literal(0)


def scheduled(kernel: Kernel) -> Kernel:
    """The kernel for a GPU: its body is launches, calls of libraries, and the host's control flow.
    """
    schedule = _Schedule(kernel)
    body = tuple(tiled(kernel.body, schedule, cublas.has))
    body = handed_over(tuple(schedule.on_the_host(body)), schedule)
    every = {x for each in walk(body) for x in touched(each)}
    temps = [x for x in (*kernel.temps, *schedule.temps) if x in every and x.role == "temp"]
    offsets, size = layout(temps, body)
    return replace(kernel, temps=tuple(offsets), offsets=offsets, workspace_size=size, body=body)


class _Schedule(Writer):
    """One kernel being scheduled."""

    def on_the_host(self, body: Sequence[Statement]) -> Iterator[Statement]:
        """Launches for a body, and what the host itself must do."""
        body = [part for each in body for part in (
            self.parts(as_one(each)) if isinstance(each, For) else [each])]
        for is_hosts, group in itertools.groupby(body, self.is_hosts):
            if is_hosts:
                yield from (each if isinstance(each, Launch)
                            else with_bodies(each, self.on_the_host) for each in group)
                continue
            for is_wide, part in itertools.groupby(group, self.is_wide):
                some = tuple(part)
                yield from map(self.grid, some) if is_wide else [self.block_of(some)]

    def is_hosts(self, statement: Statement) -> bool:
        """Whether a statement asks a library, or is around what is too large for one block."""
        if any(isinstance(each, Call | Check | Launch) for each in walk((statement,))):
            return True
        return not self.is_wide(statement) and self.has_large(statement)

    def has_large(self, statement: Statement) -> bool:
        """Whether there are loops inside that have more to do than one block should."""
        return any(self.is_wide(each, LARGE) for body in bodies(statement) for each in walk(body))

    def is_wide(self, statement: Statement, least: int = 1) -> bool:
        """Whether a loop is worth a launch of its own: it has much to do, and turns for many
        blocks, or else none inside that is large.
        """
        if not (isinstance(statement, For) and statement.turns is not None
                and self.is_independent(statement) and cost_of((statement,)) >= least * WIDE):
            return False
        return (as_one(statement).turns or 0) >= MANY or not self.has_large(statement)

    def parts(self, loop: Any) -> list[For]:
        """A loop of few turns as several, if these have more turns with those of the loops inside.
        """
        parts, n = stretches(loop.body, 0), loop.turns or FEW
        if (n >= FEW or len(parts) == 1 or not self.is_independent(loop)
                or cost_of((loop,)) < WIDE or int(loop.stop.value) != n):
            return [loop]
        own = self.own(loop).difference(*(self.own(each) for each in walk(loop.body)
                                          if isinstance(each, For)))
        homes = {x: self.temp((n, *x.shape), x.dtype, x.name) for x in own}
        found = []
        for part in parts:
            turn = Scalar(loop.index.name, INT64)
            body = tuple(self.moved(renamed(tuple(part), {loop.index: turn}), homes, turn))
            found.append(as_one(replace(loop, index=turn, body=body)))
        left = sum(cost_of(each.body) for each in found if each.turns == n)
        return [loop] if left > cost_of(loop.body) / LEFT else found

    def grid(self, loop: Any) -> Launch:
        """A loop spread over a grid: a turn for each block, or for each thread."""
        block, thread = Scalar("block", INT64), Scalar("thread", INT64)
        n, own = loop.turns, self.own(loop)
        inner = [as_one(each) for each in loop.body if isinstance(each, For)]
        long = [each for each in inner if (each.turns or 0) >= WARP
                and (each.vectorize in JOINS or self.is_independent(each))]
        with self.inside() as body:
            if sum(x.nbytes for x in own) > LOCAL or self.is_for_blocks(loop, long, own):
                longest = max((each.turns or 0 for each in long), default=1)
                threads = min(-(-longest // WARP) * WARP, THREADS)
                team = Team(self, thread, threads)
                own -= {x for each in walk(loop.body) if isinstance(each, For)
                        and team.is_shared(each) for x in self.own(each)}  # each thread has these
                turn = renamed(loop.body, {loop.index: self.let("add", block, loop.start)})
                team.run(tuple(self.moved(turn, self.homes(own, n), block)))
                return Launch(block, n, thread, threads, tuple(body))
            homes, step = self.locals(own), TOGETHER if is_thin(loop) else 1
            first = self.let("add", self.let("mul", block, step * THREADS), thread)
            starts = [self.let("add", first, self.let("add", loop.start, k * THREADS))
                      for k in range(step)]
            loop = replace(loop, body=tuple(self.moved(loop.body, homes, block)))
            turns = side_by_side(loop.body, loop.index, starts)
            if n % (step * THREADS):
                is_whole = self.let("lt", starts[-1], loop.stop)
                turns = (If(is_whole, turns, tuple(self.rest(loop, starts[:-1]))),)
            return Launch(block, -(-n // (step * THREADS)), thread, THREADS, (*body, *turns))

    def rest(self, loop: For, starts: Sequence[Any]) -> Iterator[Statement]:
        """Turns of which the last may not be there."""
        for index in starts:
            with self.inside() as steps:
                is_there = self.let("lt", index, loop.stop)
            yield from steps
            yield If(is_there, side_by_side(loop.body, loop.index, [index]))

    def is_for_blocks(self, loop: For, long: Sequence[For], own: set[Buffer]) -> bool:
        """Whether neighbours in the long loops of a turn lie closer than neighbouring turns."""
        return bool(long) and sum(scattered(each.body, each.index, own) * (each.turns or 0)
                                  for each in long) <= scattered(loop.body, loop.index, own)

    def homes(self, own: Iterable[Buffer], blocks: int) -> dict[Buffer, Buffer]:
        """Where each block has its scratch: shared memory as long as there is some."""
        left, found = SHARED, {}
        for x in sorted(own, key=lambda x: x.nbytes):
            left -= x.nbytes
            found[x] = replace(x, role="shared") if left >= 0 else self.temp(
                (blocks, *x.shape), x.dtype, x.name)
        return found

    def block_of(self, body: tuple[Statement, ...]) -> Launch:
        """One block for a body."""
        thread = Scalar("thread", INT64)
        turns = max((each.turns or 0 for each in walk(body) if isinstance(each, For)
                     and each.vectorize), default=1)
        threads = min(max(-(-turns // WARP), 1) * WARP, THREADS)
        with self.inside() as inner:
            Team(self, thread, threads).run(body)
        return Launch(Scalar("block", INT64), 1, thread, threads, tuple(inner))


# -- from launch to launch -------------------------------------------------------------------------


def handed_over(body: tuple[Statement, ...], writer: Writer) -> tuple[Statement, ...]:
    """A body in which what one launch defines, and something else uses, passes through memory."""
    makers: dict[Any, Statement] = {}
    users: dict[Any, set[Statement]] = {}
    for place in _places(body):
        for each in walk(place.body) if isinstance(place, Launch) else (place,):
            makers[defined(each)] = place
            for x in used(each):
                users.setdefault(x, set()).add(place)
    rows = {x: writer.temp((1,), x.dtype, "handed") for x, place in makers.items()
            if isinstance(place, Launch) and users.get(x, set()) - {place}}
    return tuple(_passing(body, rows)) if rows else body


def _places(body: Sequence[Statement]) -> Iterator[Statement]:
    """Launches, and what the host does itself, at any depth."""
    for statement in body:
        yield statement
        for inner in () if isinstance(statement, Launch) else bodies(statement):
            yield from _places(inner)


def _passing(body: Sequence[Statement], rows: dict[Any, Buffer]) -> Iterator[Statement]:
    for place in body:
        if isinstance(place, Launch):
            yield _taking_and_giving(place, rows)
            continue
        asked: list[Any] = [x for x in used(place) if x in rows]
        names = {x: Scalar(x.name, x.dtype) for x in asked}
        loads = tuple(Load(new, rows[x], (ZERO,)) for x, new in names.items())
        new = with_bodies(place, lambda inner: _passing(inner, rows))
        if isinstance(new, While):  # whose condition asks each time
            yield replace(new, condition=(*new.condition, *loads), test=renamed(new.test, names))
            continue
        parts = {name: renamed(value, names) for name, value in vars(new).items()
                 if name in ("start", "stop", "test", "ok", "args")}
        yield from (*loads, replace(new, **parts) if names else new)


def _taking_and_giving(launch: Launch, rows: dict[Any, Buffer]) -> Launch:
    """A launch that loads what others have made, and stores what it makes itself."""
    every = list(walk(launch.body))
    makes: list[Any] = [x for x in map(defined, launch.body) if x in rows]
    takes: list[Any] = [x for x in dict.fromkeys(x for each in every for x in used(each))
             if x in rows and x not in makes]
    changes = [each.variable for each in every if isinstance(each, Assign)
               and each.variable in takes]
    names: dict[Any, Any] = {}
    first: list[Statement] = []
    last: list[Statement] = []
    for x in takes:
        value = names[x] = Scalar(x.name, x.dtype)
        first.append(Load(value, rows[x], (ZERO,)))
        if isinstance(x, Variable):
            names[x] = Variable(x.name, x.dtype)
            first.append(Declare(names[x], value))
    for x in dict.fromkeys((*makes, *changes)):
        value = names.get(x, x)
        if isinstance(x, Variable):
            value = Scalar(x.name, x.dtype)
            last.append(Read(value, names.get(x, x)))
        last.append(Store(rows[x], (ZERO,), value))
    if last:
        is_first = Scalar("first", BOOL)
        reads = [each for each in last if isinstance(each, Read)]
        stores = tuple(each for each in last if isinstance(each, Store))
        last = [*reads, Let(is_first, "eq", (launch.thread, ZERO)), If(is_first, stores)]
    barrier = [Barrier()] if first and last else []
    return replace(launch, body=(*first, *barrier, *renamed(launch.body, names), *last))
