"""Scheduling for a GPU: the launches of a kernel, with their numbers of blocks and threads.

Stands on thread_block.py. A parallel loop has a thread for each iteration, or a block, where an
iteration contains long loops; code between such loops runs on one block. Launches pass values
through memory. Chapter 27. In XLA: its GPU emitters; in CUDA the programmer's work.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from ..function_splitting import split_body
from ..loops import (
    INT64, Assign, Barrier, Buffer, Call, Check, Declare, For, If, Kernel, Launch, Let,
    Load, Read, Scalar, Statement, Store, Variable, While, bodies, defined, renamed, touched, used,
    walk, with_bodies,
)
from ..memory import layout
from ..probe import cost_of
from ..scalars import BOOL
from . import cublas
from .coalescing import collapse_nest, interleaved, is_memory_bound, uncoalesced
from .thread_block import LOCAL, REDUCTIONS, THREADS, WARP, ThreadBlock, Writer, literal
from .tiles import tiled

SHARED = 44 << 10  # bytes of shared memory for a block's scratch, of 48 KB
WIDE = 1 << 16     # simple operations: a loop with more deserves a launch of its own
TOGETHER = 4       # iterations of a thread in a memory-bound loop: more loads in flight
LARGE = 16         # times WIDE: a loop with more is too much for one block
MANY = 64          # iterations: a loop with fewer does not fill a GPU with a block for each
FEW = 1024         # iterations: below, inner loops are taken too, if at most
LEFT = 16          # the 16th part of the work is outside of them
ZERO = literal(0)


def scheduled(kernel: Kernel) -> Kernel:
    """The kernel for a GPU: a body of launches, library calls and host control flow."""
    schedule = _Schedule(kernel)
    body = tuple(tiled(kernel.body, schedule, cublas.has))
    body = through_memory(tuple(schedule.on_the_host(body)), schedule)
    every = {x for each in walk(body) for x in touched(each)}
    temps = [x for x in (*kernel.temps, *schedule.temps) if x in every and x.role == "temp"]
    offsets, size = layout(temps, body)
    return replace(kernel, temps=tuple(offsets), offsets=offsets, workspace_size=size, body=body)


class _Schedule(Writer):
    """Schedules one kernel."""

    def on_the_host(self, body: Sequence[Statement]) -> Iterator[Statement]:
        """The launches for a body, and the statements that the host runs itself."""
        body = [part for each in body for part in (
            self.parts(collapse_nest(each)) if isinstance(each, For) else [each])]
        for runs_on_host, group in itertools.groupby(body, self.runs_on_host):
            if runs_on_host:
                yield from (each if isinstance(each, Launch)
                            else with_bodies(each, self.on_the_host) for each in group)
                continue
            for is_wide, part in itertools.groupby(group, self.is_wide):
                some = tuple(part)
                yield from map(self.grid, some) if is_wide else [self.block_of(some)]

    def runs_on_host(self, statement: Statement) -> bool:
        """Whether the host runs a statement: it calls a library, or contains too much for one
        block.
        """
        if any(isinstance(each, Call | Check | Launch) for each in walk((statement,))):
            return True
        return not self.is_wide(statement) and self.has_large(statement)

    def has_large(self, statement: Statement) -> bool:
        """Whether a loop inside is too large for one block."""
        return any(self.is_wide(each, LARGE) for body in bodies(statement) for each in walk(body))

    def is_wide(self, statement: Statement, least: int = 1) -> bool:
        """Whether a loop deserves a launch of its own: it does much, and has iterations for many
        blocks, or no large loop inside.
        """
        if not (isinstance(statement, For) and statement.turns is not None
                and self.is_independent(statement) and cost_of((statement,)) >= least * WIDE):
            return False
        return (collapse_nest(statement).turns or 0) >= MANY or not self.has_large(statement)

    def parts(self, loop: Any) -> list[For]:
        """Distribute a loop of few iterations, if its parts have more parallelism with their inner
        loops.
        """
        parts, n = split_body(loop.body, 0), loop.turns or FEW
        if (n >= FEW or len(parts) == 1 or not self.is_independent(loop)
                or cost_of((loop,)) < WIDE or int(loop.stop.value) != n):
            return [loop]
        own = self.private_temps(loop).difference(*(
            self.private_temps(each) for each in walk(loop.body) if isinstance(each, For)))
        homes = {x: self.temp((n, *x.shape), x.dtype, x.name) for x in self.in_order(own)}
        loops = []
        for part in parts:
            turn = Scalar(loop.index.name, INT64)
            body = tuple(self.relocated(renamed(tuple(part), {loop.index: turn}), homes, turn))
            loops.append(collapse_nest(replace(loop, index=turn, body=body)))
        left = sum(cost_of(each.body) for each in loops if each.turns == n)
        return [loop] if left > cost_of(loop.body) / LEFT else loops

    def grid(self, loop: Any) -> Launch:
        """A loop as a grid: an iteration for each block, or for each thread."""
        block, thread = Scalar("block", INT64), Scalar("thread", INT64)
        n, own = loop.turns, self.private_temps(loop)
        inner = [collapse_nest(each) for each in loop.body if isinstance(each, For)]
        long = [each for each in inner if (each.turns or 0) >= WARP
                and (each.vectorize in REDUCTIONS or self.is_independent(each))]
        with self.inside() as body:
            if sum(x.nbytes for x in own) > LOCAL or self.prefers_blocks(loop, long, own):
                longest = max((each.turns or 0 for each in long), default=1)
                threads = min(-(-longest // WARP) * WARP, THREADS)
                group = ThreadBlock(self, thread, threads)
                own -= {x for each in walk(loop.body)  # these are private to threads
                        if isinstance(each, For) and group.is_distributed(each)
                        for x in self.private_temps(each)}
                turn = renamed(loop.body, {loop.index: self.let("add", block, loop.start)})
                group.run(tuple(self.relocated(turn, self.homes(own, n), block)))
                return Launch(block, n, thread, threads, tuple(body))
            homes, step = self.in_local_memory(own), TOGETHER if is_memory_bound(loop) else 1
            first = self.let("add", self.let("mul", block, step * THREADS), thread)
            starts = [self.let("add", first, self.let("add", loop.start, k * THREADS))
                      for k in range(step)]
            loop = replace(loop, body=tuple(self.relocated(loop.body, homes, block)))
            turns = interleaved(loop.body, loop.index, starts)
            if n % (step * THREADS):
                is_whole = self.let("lt", starts[-1], loop.stop)
                turns = (If(is_whole, turns, tuple(self.rest(loop, starts[:-1]))),)
            return Launch(block, -(-n // (step * THREADS)), thread, THREADS, (*body, *turns))

    def rest(self, loop: For, starts: Sequence[Any]) -> Iterator[Statement]:
        """Guarded iterations at the end of a loop."""
        for index in starts:
            with self.inside() as steps:
                is_there = self.let("lt", index, loop.stop)
            yield from steps
            yield If(is_there, interleaved(loop.body, loop.index, [index]))

    def prefers_blocks(self, loop: For, long: Sequence[For], own: set[Buffer]) -> bool:
        """Whether accesses are better coalesced along the inner loops than along this one."""
        return bool(long) and sum(uncoalesced(each.body, each.index, own) * (each.turns or 0)
                                  for each in long) <= uncoalesced(loop.body, loop.index, own)

    def homes(self, own: Iterable[Buffer], blocks: int) -> dict[Buffer, Buffer]:
        """The home of each block's scratch: shared memory while there is room, else global memory.
        """
        left, homes = SHARED, {}
        for x in sorted(self.in_order(own), key=lambda x: x.nbytes):
            left -= x.nbytes
            homes[x] = replace(x, role="shared") if left >= 0 else self.temp(
                (blocks, *x.shape), x.dtype, x.name)
        return homes

    def block_of(self, body: tuple[Statement, ...]) -> Launch:
        """A launch of one block."""
        thread = Scalar("thread", INT64)
        turns = max((each.turns or 0 for each in walk(body) if isinstance(each, For)
                     and each.vectorize), default=1)
        threads = min(max(-(-turns // WARP), 1) * WARP, THREADS)
        with self.inside() as inner:
            ThreadBlock(self, thread, threads).run(body)
        return Launch(Scalar("block", INT64), 1, thread, threads, tuple(inner))


# -- from launch to launch -------------------------------------------------------------------------


def through_memory(body: tuple[Statement, ...], writer: Writer) -> tuple[Statement, ...]:
    """Pass values that one launch defines and another statement uses through memory."""
    makers: dict[Any, Statement] = {}
    users: dict[Any, set[Statement]] = {}
    for place in _places(body):
        for each in walk(place.body) if isinstance(place, Launch) else (place,):
            makers[defined(each)] = place
            for x in used(each):
                users.setdefault(x, set()).add(place)
    rows = {x: writer.temp((1,), x.dtype, "handed") for x, place in makers.items()
            if isinstance(place, Launch) and users.get(x, set()) - {place}}
    return tuple(_with_loads(body, rows)) if rows else body


def _places(body: Sequence[Statement]) -> Iterator[Statement]:
    """Launches and host statements, at any depth."""
    for statement in body:
        yield statement
        for inner in () if isinstance(statement, Launch) else bodies(statement):
            yield from _places(inner)


def _with_loads(body: Sequence[Statement], rows: dict[Any, Buffer]) -> Iterator[Statement]:
    for place in body:
        if isinstance(place, Launch):
            yield _with_transfers(place, rows)
            continue
        scalars: list[Any] = [x for x in used(place) if x in rows]
        names = {x: Scalar(x.name, x.dtype) for x in scalars}
        loads = tuple(Load(new, rows[x], (ZERO,)) for x, new in names.items())
        new = with_bodies(place, lambda inner: _with_loads(inner, rows))
        if isinstance(new, While):  # its condition loads each time
            yield replace(new, condition=(*new.condition, *loads), test=renamed(new.test, names))
            continue
        parts = {name: renamed(value, names) for name, value in vars(new).items()
                 if name in ("start", "stop", "test", "ok", "args")}
        yield from (*loads, replace(new, **parts) if names else new)


def _with_transfers(launch: Launch, rows: dict[Any, Buffer]) -> Launch:
    """A launch that loads values of other launches, and stores its own."""
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
