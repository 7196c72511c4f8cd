"""Chained loops on a GPU: a block for each iteration, which looks back at the blocks before it.

Builds on thread_block.py. A block stores its total, and adds those before it in its group to that
of earlier groups, in one order whichever blocks run first. Chapter 27. In CUDA: CUB's look-back,
whose sums depend on that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..builder import identity_element
from ..loops import (INT64, Assign, Atomic, Barrier, Buffer, Declare, For, If, Launch, Let, Load,
                     Operand, Read, Scalar, Statement, Store, Variable, While, private_temps,
                     substituted, walk)
from .thread_block import THREADS, ThreadBlock, Writer, literal

GROUP = THREADS  # blocks that a block looks back at, with a thread for each
ZERO = literal(0)


def with_rows(body: Iterable[Statement]) -> Iterator[Statement]:
    """Statements in which each chained loop is inside of a loop over rows, maybe of a single one,
    that declares its variable.
    """
    before: list[Statement] = []
    for each in body:
        if isinstance(each, For) and each.vectorize == "chained":
            variable = next(x.variable for x in each.body if isinstance(x, Assign))
            [declare] = (x for x in before if isinstance(x, Declare) and x.variable is variable)
            before.remove(declare)
            each = For(Scalar("row", INT64), ZERO, literal(1), (declare, each), "", "apart")
        before.append(each)
    yield from before


def is_chain(rows: Statement) -> bool:
    """Whether a loop over rows contains a chained loop, and little else."""
    last = rows.body[-1] if isinstance(rows, For) and rows.body else None
    return (isinstance(last, For) and last.vectorize == "chained" and bool(last.trip_count)
            and isinstance(rows, For) and rows.vectorize in ("parallel", "apart")
            and bool(rows.trip_count)
            and all(isinstance(each, Let | Load | Declare) for each in rows.body[:-1]))


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
        private = private_temps(replace(self.rows, vectorize="apart"), self.writer.uses)
        homes = copies(replace(self.rows, start=ZERO, stop=literal(self.blocks)), private)
        with self.writer.inside() as body:
            self.add(Let(self.is_first, "eq", (self.thread, ZERO)))
            number, epoch = self.ticket()
            row, i = self.let("div", number, self.n), self.let("rem", number, self.n)
            names = {self.rows.index: self.let("add", row, self.rows.start),
                     self.loop.index: self.let("add", i, self.loop.start)}
            [declare] = (x for x in self.rows.body if isinstance(x, Declare))
            first = [x for x in self.rows.body[:-1] if x is not declare]
            statements = substituted((*first, *self.loop.body), names)
            statements = tuple(self.writer.privatized(statements, homes, number))
            read, op, total, before, after = split_at(statements, declare.variable)
            self.run(before)
            start = self.let(op, declare.value, self.look_back(op, total, row, i, number, epoch))
            self.run(substituted(after, {read: start}))
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

    def look_back(self, op: str, total: Any, row: Any, i: Any, number: Any, epoch: Operand
                  ) -> Operand:
        """The total of all iterations of a row before this one."""
        let, dtype, groups = self.let, total.dtype, -(-self.n // GROUP)
        totals = Published(self, self.blocks, dtype, "totals", epoch)
        totals.store(number, total)
        place = let("rem", i, GROUP)
        identity = literal(identity_element(op, dtype), dtype)
        own = Variable("before", dtype)
        at = let("add", let("sub", number, place), self.thread)
        self.add(Declare(own, identity), If(let("lt", self.thread, place), self.inside(
            lambda: self.add(Assign(own, totals.load(at))))))
        x = Scalar("before", dtype)
        self.add(Read(x, own))
        before = self.block_reduce(op, self.warp_reduce(op, x))
        if groups == 1:
            return before
        starts = Published(self, self.rows.trip_count * groups, dtype, "starts", epoch)
        group = let("add", let("mul", row, groups), let("div", i, GROUP))
        start, y = Variable("start", dtype), Scalar("start", dtype)
        self.add(Declare(start, identity), If(let("ge", i, GROUP), self.inside(
            lambda: self.add(Assign(start, starts.load(group))))), Read(y, start))
        before = let(op, y, before)
        is_last = let("and", let("eq", place, GROUP - 1), let("lt", i, self.n - 1))
        self.add(If(is_last, self.inside(lambda: starts.store(
            let("add", group, 1), let(op, before, total)))))
        return before

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
        old = Scalar("old", self.flags.dtype)
        self.block.add(
            If(self.block.is_first, (Store(self.values, (at,), x),)), Barrier(),
            If(self.block.is_first, (Atomic(old, "max", self.flags, (at,), self.epoch, 1),)))

    def load(self, at: Any) -> Scalar:
        """A value, as soon as its flag is raised."""
        flag, x = Scalar("flag", self.flags.dtype), Scalar("x", self.values.dtype)
        with self.block.writer.inside() as condition:
            self.block.add(Atomic(flag, "read", self.flags, (at,), self.epoch, 1))
            is_missing = self.block.let("ne", flag, self.epoch)
        self.block.add(While(tuple(condition), is_missing, ()), Load(x, self.values, (at,)))
        return x


def split_at(body: Sequence[Statement], variable: Variable
             ) -> tuple[Scalar, str, Any, tuple, tuple]:
    """The body of a chained loop: what its variable is read as, the operation, the other operand,
    the statements before, and those after.
    """
    [assign] = (x for x in body if isinstance(x, Assign) and x.variable is variable)
    [read] = (x for x in body if isinstance(x, Read) and x.variable is variable)
    [let] = (x for x in body if isinstance(x, Let) and x.target is assign.value)
    [total] = (x for x in let.args if x is not read.target)
    k = body.index(read)
    rest = tuple(x for x in body[k:] if x not in (read, let, assign))
    return read.target, let.op, total, tuple(body[:k]), rest
