"""Scheduling for a GPU: the launches of a kernel, with their numbers of blocks and threads.

Builds on thread_block.py. A parallel loop has a thread for each iteration, or a block, where an
iteration contains long loops; code between such loops runs on one block. Launches pass values
through memory. Chapter 27. In XLA: its GPU emitters; in CUDA the programmer's work.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..loops import (INT64, WRITES, Assign, Atomic, Barrier, Buffer, Call, Check, Declare, For, If,
                     Kernel, Launch, Let, Load, Read, Scalar, Statement, Store, Variable, While,
                     accesses, bodies, defined, substituted, used, walk, with_bodies)
from ..memory import layout
from ..outlining import split_body
from ..probe import cost_of
from ..scalars import BOOL
from .coalescing import (MAX_REPEATED, collapse_nest, interleaved, is_aligned, is_memory_bound,
                         uncoalesced)
from .thread_block import REDUCTIONS, THREADS, WARP, ThreadBlock, Writer, literal
from .look_back import Chain, is_chain, is_chained, with_rows
from .convolutions import product_of
from .loop_fusion import fused_loops
from .tensor_cores import choose, choose_without
from .tiles import tiled

SHARED = 44 << 10  # bytes of shared memory for a block's scratch, of 48 KB
WIDE = 1 << 16     # simple operations: a loop with more deserves a launch of its own
UNROLLED = 4       # iterations of a thread in a memory-bound loop: more loads in flight
LARGE = 16         # times WIDE: a loop with more is too much for one block
MIN_BLOCKS = 64    # iterations: a loop with fewer does not fill a GPU with a block for each
# A loop of fewer iterations is distributed over its inner loops, if at most the 16th part of the
# work is outside of them.
MIN_ITERATIONS, OUTSIDE = 1024, 16
MAX_JOINED = 500  # statements: a launch with more needs more registers than the one before
ZERO = literal(0)


def scheduled(kernel: Kernel, has_tensor_cores: bool = True) -> Kernel:
    """The kernel for a GPU: a body of launches, library calls and host control flow."""
    kernel = replace(kernel, body=fused_loops(kernel.body))
    schedule = _Schedule(kernel)
    choice = choose if has_tensor_cores else choose_without
    body = tuple(tiled(kernel.body, schedule, product_of, choice))
    body = pass_through_memory(tuple(schedule.on_the_host(body)), schedule)
    body = tuple(schedule.by_last_blocks(body))
    buffers = set(accesses(walk(body)))
    offsets, size = layout((*kernel.temps, *schedule.temps), body)
    counters = tuple(x for x in schedule.temps if x in buffers and x.role == "constant")
    return replace(kernel, temps=tuple(offsets), offsets=offsets, workspace_size=size, body=body,
                   constants=(*kernel.constants, *counters))


class _Schedule(Writer):
    """Schedules one kernel."""

    def on_the_host(self, body: Sequence[Statement]) -> Iterator[Statement]:
        """The launches for a body, and the statements that the host runs itself."""
        body = [part for each in with_rows(body) for part in (
            self.parts(collapse_nest(each)) if isinstance(each, For) else [each])]
        for runs_on_host, group in itertools.groupby(body, self.runs_on_host):
            if runs_on_host:
                yield from (each if isinstance(each, Launch)
                            else with_bodies(each, self.on_the_host) for each in group)
                continue
            threads = 0
            for is_wide, part in itertools.groupby(group, self.is_wide):
                loops = tuple(part)
                made = [*map(self.grid, loops)] if is_wide else [self.single_block(loops, threads)]
                threads = made[-1].threads
                yield from made

    def runs_on_host(self, statement: Statement) -> bool:
        """Whether the host runs a statement: it calls a library, or contains too much for one
        block.
        """
        if any(isinstance(each, Call | Check | Launch) for each in walk((statement,))):
            return True
        return not self.is_wide(statement) and self.has_large(statement)

    def has_large(self, statement: Statement) -> bool:
        """Whether a loop inside is too large for one block."""
        return any(self.is_wide(each, LARGE) or (
            is_chained(each) and cost_of((each,)) >= LARGE * WIDE)
                   for body in bodies(statement) for each in walk(body))

    def is_wide(self, statement: Statement, least: int = 1) -> bool:
        """Whether a loop deserves a launch of its own: it does much, and has iterations for many
        blocks, or no large loop inside.
        """
        if not (isinstance(statement, For) and statement.trip_count is not None
                and self.is_independent(statement) and cost_of((statement,)) >= least * WIDE):
            return False
        blocks = collapse_nest(statement).trip_count or 0
        return blocks >= MIN_BLOCKS or not self.has_large(statement)

    def parts(self, loop: For) -> list[Statement]:
        """A loop as a chain of blocks, distributed, or as it is."""
        if is_chain(loop) and cost_of((loop,)) >= WIDE:
            return [Chain(self, loop).launch(self.copies)]
        return [*self.distributed(loop)]

    def distributed(self, loop: Any) -> list[For]:
        """Distribute a loop of few iterations, if its parts have more parallelism with their inner
        loops.
        """
        parts, n = split_body(loop.body, 0), loop.trip_count or MIN_ITERATIONS
        if (n >= MIN_ITERATIONS or len(parts) == 1 or not self.is_independent(loop)
                or cost_of((loop,)) < WIDE or int(loop.stop.value) != n):
            return [loop]
        private = self.private_temps(loop).difference(*(
            self.private_temps(each) for each in walk(loop.body) if isinstance(each, For)))
        copies = {x: self.temp((n, *x.shape), x.dtype, x.name) for x in self.in_use_order(private)}
        loops = []
        for part in parts:
            index = Scalar(loop.index.name, INT64)
            body = substituted(tuple(part), {loop.index: index})
            body = tuple(self.privatized(body, copies, index))
            loops.append(collapse_nest(replace(loop, index=index, body=body)))
        outside = sum(cost_of(each.body) for each in loops if each.trip_count == n)
        return [loop] if outside > cost_of(loop.body) / OUTSIDE else loops

    def grid(self, loop: Any) -> Launch:
        """A loop as a grid: an iteration for each block, or for each thread."""
        block, thread = Scalar("block", INT64), Scalar("thread", INT64)
        n, private, let = loop.trip_count, self.private_temps(loop), self.let
        inner = [collapse_nest(each) for each in _inner_loops(loop.body)]
        inner_loops = [each for each in inner if (each.trip_count or 0) >= WARP
                       and (each.vectorize in REDUCTIONS or self.is_independent(each))]
        with self.inside() as body:
            if (not self.fits_local_memory(loop, private)
                    or self.prefers_blocks(loop, inner_loops, private)):
                longest = max((each.trip_count or 0 for each in inner_loops), default=1)
                threads = min(-(-longest // WARP) * WARP, THREADS)
                group = ThreadBlock(self, thread, threads)
                private -= {x for each in walk(loop.body)  # these are private to threads
                            if isinstance(each, For) and group.is_distributed(each)
                            for x in self.private_temps(each)}
                own_body = substituted(loop.body, {loop.index: let("add", block, loop.start)})
                group.run(tuple(self.privatized(own_body, self.copies(loop, private), block)))
                return Launch(block, n, thread, threads, tuple(body))
            copies, step = self.in_local_memory(private), UNROLLED if is_memory_bound(loop) else 1
            own, apart = (step, 1) if is_aligned(loop, step) else (1, THREADS)
            first = let("add", let("mul", block, step * THREADS), let("mul", thread, own))
            starts = [let("add", first, let("add", loop.start, k * apart)) for k in range(step)]
            loop = replace(loop, body=tuple(self.privatized(loop.body, copies, block)))
            iterations = interleaved(loop.body, loop.index, starts)
            if n % (step * THREADS):
                is_full = let("lt", starts[-1], loop.stop)
                iterations = (If(is_full, iterations, tuple(self.remainder(loop, starts[:-1]))),)
            return Launch(block, -(-n // (step * THREADS)), thread, THREADS, (*body, *iterations))

    def remainder(self, loop: For, starts: Sequence[Any]) -> Iterator[Statement]:
        """Guarded iterations at the end of a loop."""
        for index in starts:
            with self.inside() as steps:
                in_range = self.let("lt", index, loop.stop)
            yield from steps
            yield If(in_range, interleaved(loop.body, loop.index, [index]))

    def prefers_blocks(self, loop: For, inner_loops: Sequence[For], private: set[Buffer]) -> bool:
        """Whether accesses are better coalesced along the inner loops than along this one."""
        along_inner = sum(uncoalesced(each.body, each.index, private) * (each.trip_count or 0)
                          for each in inner_loops)
        return bool(inner_loops) and along_inner <= uncoalesced(loop.body, loop.index, private)

    def copies(self, loop: For, private: Iterable[Buffer]) -> dict[Buffer, Buffer]:
        """The home of each block's scratch: shared memory while there is room, else global memory.
        """
        left, copies = SHARED, {}
        hosts = recycled(loop.body, self.in_use_order(private))
        for x in sorted(dict.fromkeys(hosts.values()), key=lambda x: x.nbytes):
            left -= x.nbytes
            copies[x] = replace(x, role="shared") if left >= 0 else self.temp(
                (loop.trip_count or 0, *x.shape), x.dtype, x.name)
        return {x: copies[host] for x, host in hosts.items()}

    def single_block(self, body: tuple[Statement, ...], least: int = 0) -> Launch:
        """A launch of one block, with as many threads as the launch before, if that has more."""
        thread = Scalar("thread", INT64)
        trip_count = max((each.trip_count or 0 for each in walk(body) if isinstance(each, For)
                          and each.vectorize), default=1)
        threads = max(min(max(-(-trip_count // WARP), 1) * WARP, THREADS), least)
        with self.inside() as inner:
            ThreadBlock(self, thread, threads).run(body)
        return Launch(Scalar("block", INT64), 1, thread, threads, tuple(inner))

    # -- the last block ------------------------------------------------------------------------

    def by_last_blocks(self, body: Iterable[Statement]) -> list[Statement]:
        """Statements of the host in which a short launch of one block is done by the last block of
        the launch before.
        """
        result: list[Statement] = []
        for each in body:
            before = result[-1] if result else None
            if isinstance(each, Launch) and isinstance(before, Launch) and can_join(before, each):
                result[-1] = self.by_last_block(before, each)
            else:
                result.append(each if isinstance(each, Launch)
                              else with_bodies(each, self.by_last_blocks))
        return result

    def by_last_block(self, first: Launch, second: Launch) -> Launch:
        """Both launches as one. A block that is done takes a number; the last one sees by it that
        all others are done, and what they have stored.
        """
        counter = self.temp((1,), np.uint32, "turns", "constant", np.zeros(1, np.uint32))
        own, last = self.temp((1,), np.uint32, "turn", "shared"), literal(first.blocks - 1, "u4")
        turn, seen = (Scalar(name, own.dtype) for name in ("turn", "seen"))
        with self.inside() as body:
            take = Atomic(turn, "turn", counter, (ZERO,), last, 1), Store(own, (ZERO,), turn)
            self.out += [Barrier(), If(self.let("eq", first.thread, 0), take), Barrier(),
                         Load(seen, own, (ZERO,))]
            names: dict[Any, Any] = {second.block: ZERO, second.thread: first.thread}
            self.out.append(If(self.let("eq", seen, last), substituted(second.body, names)))
        return replace(first, body=(*first.body, *body))


def _inner_loops(body: Sequence[Statement]) -> Iterator[For]:
    """The loops of a body, and those inside of a short one."""
    for each in body:
        if isinstance(each, For):
            yield each
            if each.trip_count is not None and each.trip_count < WARP:
                yield from _inner_loops(each.body)


def recycled(body: Sequence[Statement], private: Iterable[Buffer]) -> dict[Buffer, Buffer]:
    """For each private buffer one whose memory it reuses: live ranges of the two are disjoint."""
    uses: dict[Buffer, list[int]] = {x: [] for x in private}
    for k, each in enumerate(body):
        for x in uses.keys() & set(accesses(walk((each,)))):
            uses[x].append(k)
    hosts: dict[Buffer, Buffer] = {}
    guests: dict[Buffer, Buffer] = {}  # the last one of each host
    for x in sorted(uses, key=lambda x: uses[x][0]):
        hosts[x] = next((host for host, y in guests.items()
                         if (y.shape, y.dtype) == (x.shape, x.dtype)
                         and (uses[y][-1] < uses[x][0] or (
                             uses[y][-1] == uses[x][0] and replaces(body[uses[y][-1]], x, y)))), x)
        guests[hosts[x]] = x
    return hosts


def replaces(loop: Statement, x: Buffer, y: Buffer) -> bool:
    """Whether each iteration of a loop stores an element of x where it has loaded that of y."""
    if not (isinstance(loop, For) and loop.vectorize in ("parallel", "reduce")):
        return False
    own = [each for each in walk(loop.body) if isinstance(each, Load | WRITES)
           and each.buffer in (x, y)]
    stores = [isinstance(each, Store) for each in own]
    return (all(each in loop.body and each.index == own[0].index and loop.index in each.index
                and isinstance(each, Store) is (each.buffer is x) for each in own)
            and stores == sorted(stores))


def can_join(first: Launch, second: Launch) -> bool:
    """Whether a launch is a short one of a block that another launch of many blocks can do too."""
    shared = [x for x in {*accesses(walk((first, second)))} if x.role == "shared"]
    return (first.blocks > second.blocks == 1 and first.threads == second.threads
            and sum(x.nbytes for x in shared) <= SHARED
            and sum(1 for _ in walk(second.body)) <= MAX_JOINED)


# -- from launch to launch -------------------------------------------------------------------------


def pass_through_memory(body: tuple[Statement, ...], writer: Writer) -> tuple[Statement, ...]:
    """Pass values that one launch defines and another statement uses through memory; a few scalars
    each launch computes itself.
    """
    body = tuple(_with_repeated_scalars(body))
    definitions: dict[Any, Statement] = {}
    uses: dict[Any, set[Statement]] = {}
    for statement in _launches_and_host(body):
        for each in walk(statement.body) if isinstance(statement, Launch) else (statement,):
            definitions[defined(each)] = statement
            for x in used(each):
                uses.setdefault(x, set()).add(statement)
    slots = {x: writer.temp((1,), x.dtype, "handed") for x, statement in definitions.items()
             if isinstance(statement, Launch) and uses.get(x, set()) - {statement}}
    return tuple(_with_loads(body, slots)) if slots else body


def _with_repeated_scalars(body: Sequence[Statement]) -> Iterator[Statement]:
    """Statements in which a launch of cheap scalar code is part of each launch that uses it."""
    scalars: list[Any] = []
    for k, each in enumerate(body):
        if isinstance(each, Launch) and is_scalar_code(each.body) and all(
                isinstance(x, Launch) for x in body[k + 1:]):
            scalars += each.body
            continue
        yield _with_scalars(each, scalars) if isinstance(each, Launch) else each


def _with_scalars(launch: Launch, scalars: Sequence[Any]) -> Launch:
    """A launch that computes those of some scalars that it uses."""
    new: dict[Any, Any] = {x.target: Scalar(x.target.name, x.target.dtype) for x in scalars}
    needed = {x for each in walk(launch.body) for x in used(each)}
    first: list[Statement] = []
    for each in reversed(scalars):
        if each.target in needed:
            needed.update(used(each))
            first.insert(0, substituted(each, new))
    return replace(launch, body=(*first, *substituted(launch.body, new))) if first else launch


def is_scalar_code(body: Sequence[Statement]) -> bool:
    """Whether a body loads some arguments, and computes with them a little."""
    return cost_of(body) <= MAX_REPEATED and all(isinstance(each, Let) or (
        isinstance(each, Load) and each.buffer.role in ("input", "constant")) for each in body)


def _launches_and_host(body: Sequence[Statement]) -> Iterator[Statement]:
    """Launches and host statements, at any depth."""
    for statement in body:
        yield statement
        for inner in () if isinstance(statement, Launch) else bodies(statement):
            yield from _launches_and_host(inner)


def _with_loads(body: Sequence[Statement], slots: dict[Any, Buffer]) -> Iterator[Statement]:
    for statement in body:
        if isinstance(statement, Launch):
            yield _with_transfers(statement, slots)
            continue
        names: dict = {x: Scalar("handed", x.dtype) for x in used(statement) if x in slots}
        loads = tuple(Load(new, slots[x], (ZERO,)) for x, new in names.items())
        new = with_bodies(statement, lambda inner: _with_loads(inner, slots))
        new = substituted(new, names) if names else new
        if isinstance(new, While):  # its condition loads each time
            yield replace(new, condition=(*new.condition, *loads))
        else:
            yield from (*loads, new)


def _with_transfers(launch: Launch, slots: dict[Any, Buffer]) -> Launch:
    """A launch that loads values of other launches, and stores its own."""
    every = list(walk(launch.body))
    live_out: list[Any] = [x for x in map(defined, launch.body) if x in slots]
    live_in: list[Any] = [x for x in dict.fromkeys(x for each in every for x in used(each))
                          if x in slots and x not in live_out]
    assigned = [x.variable for x in every if isinstance(x, Assign) and x.variable in live_in]
    names: dict[Any, Any] = {}
    first: list[Statement] = []
    reads: list[Statement] = []
    stores: list[Statement] = []
    for x in live_in:
        value = names[x] = Scalar(x.name, x.dtype)
        first.append(Load(value, slots[x], (ZERO,)))
        if isinstance(x, Variable):
            names[x] = Variable(x.name, x.dtype)
            first.append(Declare(names[x], value))
    for x in dict.fromkeys((*live_out, *assigned)):
        value = names.get(x, x)
        if isinstance(x, Variable):
            value = Scalar(x.name, x.dtype)
            reads.append(Read(value, names.get(x, x)))
        stores.append(Store(slots[x], (ZERO,), value))
    is_first = Scalar("first", BOOL)
    last = [Let(is_first, "eq", (launch.thread, ZERO)), If(is_first, tuple(stores))]
    body = *substituted(launch.body, names), *reads, *(last if stores else ())
    return replace(launch, body=(*first, *[Barrier()] * bool(first and stores), *body))
