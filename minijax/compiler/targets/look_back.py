"""Chained loops on a GPU: a block for each iteration, which looks back at the blocks before it.

Builds on thread_block.py. A block stores its total, and adds those before it in its group to that
of earlier groups, in one order whichever blocks run first. Chapter 27. In CUDA: CUB's look-back,
whose sums depend on that.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import Any

import numpy as np

from ..builder import identity_element
from ..loops import (INT64, Assign, Atomic, Barrier, Buffer, Constant, Declare, For, If, Launch,
                     Let, Load, Operand, Read, Scalar, Statement, Store, Variable, While, accesses,
                     defined, private_temps, substituted, used, walk)
from .thread_block import THREADS, ThreadBlock, Writer, literal

GROUP = THREADS  # blocks that a block looks back at, with a thread for each
STEP = 4  # blocks that a thread looks back at together
ZERO = literal(0)


def with_rows(body: Iterable[Statement]) -> Iterator[Statement]:
    """Statements in which each chained loop is inside of a loop over rows, maybe of a single one,
    that declares its variable.
    """
    before: list[Statement] = []
    for each in body:
        if is_chained(each):
            for start in [x for x in before if carried_from(x, each)][-1:]:
                before.remove(start)
                each = For(Scalar("row", INT64), ZERO, literal(1), (start, each), "", "apart")
        before.append(each)
    yield from before


def is_chained(loop: Statement) -> bool:
    """Whether it is a chained loop of a known length."""
    return isinstance(loop, For) and loop.vectorize == "chained" and bool(loop.trip_count)


def carried_from(start: Statement, loop: Any) -> Variable | Buffer | None:
    """What a chained loop hands on, a variable or a buffer, if a statement sets it before the loop.
    """
    if isinstance(start, Declare):
        assigned = [x.variable for x in loop.body if isinstance(x, Assign)]
        return start.variable if start.variable in assigned else None
    if not (isinstance(start, For) and len(start.body) == 1 and start.trip_count == THREADS
            and isinstance(store := start.body[0], Store) and isinstance(store.value, Constant)):
        return None
    return store.buffer if store.buffer in set(accesses(walk(loop.body))) else None


def is_chain(rows: Statement) -> bool:
    """Whether a loop over rows contains a chained loop, what this starts with, and little else."""
    if not (isinstance(rows, For) and rows.body and is_chained(rows.body[-1])
            and rows.trip_count and rows.vectorize in ("parallel", "apart")):
        return False
    *before, loop = rows.body
    starts = [x for x in before if carried_from(x, loop)]
    return len(starts) == 1 and all(isinstance(x, Let | Load) for x in before if x not in starts)


def waits(launch: Launch) -> bool:
    """Whether blocks of a launch wait for others: those that have taken a lower number."""
    return any(isinstance(each, While) and not each.body for each in walk(launch.body))


class Chain(ThreadBlock):
    """Emits the code of a block of a chained loop."""

    def __init__(self, writer: Writer, rows: Any) -> None:
        super().__init__(writer, Scalar("thread", INT64), THREADS)
        self.rows, self.loop = rows, rows.body[-1]
        self.n, self.blocks = self.loop.trip_count, self.loop.trip_count * rows.trip_count
        self.flag = np.dtype(np.uint64)
        self.is_first = Scalar("first", np.dtype(bool))

    def launch(self, copies: Callable[[For, Iterable[Buffer]], dict]) -> Launch:
        """The launch; `copies` gives the homes of a loop's private temps."""
        [start] = (x for x in self.rows.body[:-1] if carried_from(x, self.loop))
        carried: Any = carried_from(start, self.loop)
        private = [x for x in private_temps(replace(self.rows, vectorize="apart"), self.writer.uses)
                   if x is not carried]
        homes = copies(replace(self.loop, start=ZERO, stop=literal(self.blocks)), private)
        with self.writer.inside() as body:
            self.add(Let(self.is_first, "eq", (self.thread, ZERO)))
            number, epoch = self.ticket()
            row, i = self.let("div", number, self.n), self.let("rem", number, self.n)
            names = {self.rows.index: self.let("add", row, self.rows.start),
                     self.loop.index: self.let("add", i, self.loop.start)}
            first = [x for x in self.rows.body[:-1] if x is not start]
            statements = substituted((*first, *self.loop.body), names)
            statements = tuple(self.writer.privatized(statements, homes, number))
            if isinstance(carried, Variable):
                read, op, total, before, after = split_at(statements, carried)
                self.run(before)
                total = self.look_back(op, total, row, i, number, epoch)
                self.run(substituted(after, {read: self.let(op, start.value, total)}))
            else:
                [k] = (k for k, x in enumerate(statements) if carried in accesses(walk((x,)), Load))
                self.run(statements[:k])
                self.link(statements[k], start.body[0], i, number, epoch)
                self.run(statements[k + 1:])
        return Launch(Scalar("block", INT64), self.blocks, self.thread, THREADS, tuple(body))

    def ticket(self) -> tuple[Any, Operand]:
        """The number of a block, in the order in which blocks start, so that none waits for one
        that has not; and the number of the launch, from 1 on, which a raised flag has.
        """
        counter = self.shared_by_all((1,), "tickets")
        own = self.writer.temp((1,), self.flag, "ticket", "shared")
        taken, seen = (Scalar("ticket", self.flag) for _ in range(2))
        self.add(If(self.is_first, (
            Atomic(taken, "add", counter, (ZERO,), literal(1, self.flag)),
            Store(own, (ZERO,), taken))), Barrier(), Load(seen, own, (ZERO,)))
        count = literal(self.blocks, self.flag)
        number = self.let("convert", self.let("rem", seen, count), to=INT64)
        return number, self.let("add", self.let("div", seen, count), literal(1, self.flag))

    def shared_by_all(self, shape: tuple[int, ...], name: str) -> Buffer:
        """Counters that start at zero, and stay from launch to launch."""
        return self.writer.temp(shape, self.flag, name, "constant", np.zeros(shape, self.flag))

    # -- looking back --------------------------------------------------------------------------

    def look_back(self, op: str, total: Any, row: Any, i: Any, number: Any, epoch: Any) -> Operand:
        """The total of all iterations of a row before this one."""
        let, dtype, groups = self.let, total.dtype, -(-self.n // GROUP)
        totals = Published(self, self.blocks, dtype, "totals", epoch)
        totals.store(number, total)
        place = let("rem", i, GROUP)
        identity = literal(identity_element(op, dtype), dtype)

        def load_if(test: Operand, published: Published, at: Any) -> Scalar:
            """A published value, or the identity."""
            own, x = Variable("before", dtype), Scalar("before", dtype)
            self.add(Declare(own, identity), If(test, self.inside(
                lambda: self.add(Assign(own, published.load(at))))), Read(x, own))
            return x
        x = load_if(let("lt", self.thread, place), totals,
                    let("add", let("sub", number, place), self.thread))
        before = self.block_reduce(op, self.warp_reduce(op, x))
        if groups == 1:
            return before
        starts = Published(self, self.rows.trip_count * groups, dtype, "starts", epoch)
        group = let("add", let("mul", row, groups), let("div", i, GROUP))
        before = let(op, load_if(let("ge", i, GROUP), starts, group), before)
        is_last = let("and", let("eq", place, GROUP - 1), let("lt", i, self.n - 1))
        self.add(If(is_last, self.inside(lambda: starts.store(
            let("add", group, 1), let(op, before, total)))))
        return before

    # -- walking back --------------------------------------------------------------------------

    def link(self, loop: Any, start: Store, i: Any, number: Any, epoch: Any) -> None:
        """The loop that hands on a buffer of integers, with a thread for each."""
        body = substituted(loop.body, {loop.index: self.thread})
        [load] = (x for x in body if isinstance(x, Load) and x.buffer is start.buffer)
        [store] = (x for x in body if isinstance(x, Store) and x.buffer is start.buffer)
        [let] = (x for x in body if defined(x) is store.value)
        [x] = (x for x in let.args if x is not load.target)
        late: set[Any] = {load.target}
        for each in body:
            late |= {defined(each)} if not late.isdisjoint(used(each)) else set()
        after = [y for y in body if not late.isdisjoint(used(y)) and y not in (let, store)]
        self.barrier_before(loop)
        self.add(*(y for y in body if y not in (load, let, store, *after)))
        before = self.walk_back(let.op, x, i, number, epoch)
        self.add(*substituted(tuple(after), {load.target: self.let(let.op, start.value, before)}))

    def walk_back(self, op: str, x: Any, i: Any, number: Any, epoch: Any) -> Operand:
        """The total of a thread's integers in the blocks before: back from block to block, to the
        first whose total with those before it is stored. The order differs from launch to launch.
        """
        walk = Walk(self, op, x.dtype, i, number, epoch)
        walk.store(0, x)
        before = walk.total()
        walk.store(1, self.let(op, before, x))
        return before

    def publish(self, store: Statement, flags: Buffer, at: Any, flag: Operand) -> None:
        """Store values for other blocks, then raise a flag."""
        self.add(store, Barrier(), If(self.is_first, (
            Atomic(Scalar("old", flags.dtype), "max", flags, (at,), flag, 1),)))

    def wait(self, flags: Buffer, places: Sequence[Any], least: Operand) -> list[Scalar]:
        """Wait until some flags are raised, with one fence for all; returns how high they are."""
        seen = [Scalar("flag", flags.dtype) for _ in places]
        with self.writer.inside() as condition:
            for k, (flag, place) in enumerate(zip(seen, places, strict=True), 1):
                self.add(Atomic(flag, "read", flags, (place,), least, int(k == len(places))))
            is_missing = reduce(partial(self.let, "or"), [self.let("lt", x, least) for x in seen])
        self.add(While(tuple(condition), is_missing, ()))
        return seen

    def inside(self, emit: Callable[[], None]) -> tuple[Statement, ...]:
        """What some code emits."""
        with self.writer.inside() as statements:
            emit()
        return tuple(statements)


class Published:
    """Values that a block stores for others, each with a flag."""

    def __init__(self, block: Chain, size: int, dtype: Any, name: str, epoch: Operand) -> None:
        self.block, self.epoch = block, epoch
        self.values = block.writer.temp((size,), dtype, name)
        self.flags = block.shared_by_all((size,), f"{name}_flags")

    def store(self, at: Any, x: Any) -> None:
        """One thread stores a value, then raises its flag."""
        self.block.publish(If(self.block.is_first, (Store(self.values, (at,), x),)), self.flags, at,
                           self.epoch)

    def load(self, at: Any) -> Scalar:
        """A value, as soon as its flag is raised."""
        x = Scalar("x", self.values.dtype)
        self.block.wait(self.flags, [at], self.epoch)
        self.block.add(Load(x, self.values, (at,)))
        return x


class Walk:
    """How each thread of a block looks back. A flag is 2 `epoch` - 1 where a block has stored its
    own totals, and 2 `epoch` where it has stored those with all before, too.
    """

    def __init__(self, block: Chain, op: str, dtype: Any, i: Any, number: Any, epoch: Any) -> None:
        self.block, self.op, self.number = block, op, number
        let = self.let = block.let
        self.totals = block.writer.temp((2, block.blocks, THREADS), dtype, "totals")
        self.flags = block.shared_by_all((block.blocks,), "totals_flags")
        self.identity = literal(identity_element(op, dtype), dtype)
        self.first = let("sub", number, i)  # of the row
        self.done = let("sub", self.first, 1)
        self.whole = let("add", epoch, epoch)
        self.own = let("sub", self.whole, literal(1, self.flags.dtype))

    def store(self, kind: int, x: Any) -> None:
        """Store a total for each thread, then raise the flag."""
        store = Store(self.totals, (literal(kind), self.number, self.block.thread), x)
        self.block.publish(store, self.flags, self.number, self.whole if kind else self.own)

    def total(self) -> Scalar:
        """The total of all blocks before."""
        add, inside, dtype = self.block.add, self.block.writer.inside, self.totals.dtype
        total, place = Variable("before", dtype), Variable("place", INT64)
        add(Declare(total, self.identity), Declare(place, self.let("sub", self.number, 1)))
        at, before, result = Scalar("place", INT64), *(Scalar("before", dtype) for _ in range(2))
        with inside() as condition:
            add(Read(at, place))
            is_more = self.let("ge", at, self.first)
        with inside() as step:
            add(Read(before, total))
            sum_, is_done = self.step(at, before)
            following = self.let("select", is_done, self.done, self.let("sub", at, STEP))
            add(Assign(total, sum_), Assign(place, following))
        add(While(tuple(condition), is_more, tuple(step)), Read(result, total))
        return result

    def step(self, at: Any, total: Any) -> tuple[Any, Any]:
        """A total with those of some blocks, from `at` back, and whether it is that of all."""
        let, add, dtype = self.let, self.block.add, self.totals.dtype
        places = [let("max", let("sub", at, k), self.first) for k in range(STEP)]
        seen = self.block.wait(self.flags, places, self.own)
        are_whole = [let("eq", flag, self.whole) for flag in seen]
        kinds = [let("convert", is_whole, to=INT64) for is_whole in are_whole]
        others = [Scalar("other", dtype) for _ in places]
        for x, *index in zip(others, kinds, places, strict=True):
            add(Load(x, self.totals, (*index, self.block.thread)))
        is_done = literal(False, bool)
        for k, (x, is_whole) in enumerate(zip(others, are_whole, strict=True)):
            is_over = let("or", is_done, let("lt", let("sub", at, k), self.first))
            total = let(self.op, let("select", is_over, self.identity, x), total)
            is_done = let("or", is_done, is_whole)
        return total, is_done


def split_at(body: Sequence[Statement], carried: Variable) -> tuple[Scalar, str, Any, tuple, tuple]:
    """The body of a chained loop: what its variable is read as, the operation, the other operand,
    the statements before, and those after.
    """
    [assign] = (x for x in body if isinstance(x, Assign) and x.variable is carried)
    [read] = (x for x in body if isinstance(x, Read) and x.variable is carried)
    [let] = (x for x in body if isinstance(x, Let) and x.target is assign.value)
    [total] = (x for x in let.args if x is not read.target)
    k = body.index(read)
    rest = tuple(x for x in body[k:] if x not in (read, let, assign))
    return read.target, let.op, total, tuple(body[:k]), rest
