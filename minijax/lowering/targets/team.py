"""What the threads of one block do for a body of loops.

Stands on loops.py. Independent turns are shared, and so are sums, whose parts shuffles join, always
in one order. All else each thread does alike, but one alone stores; barriers stand where a thread
will touch what another has stored. Chapter 27. In Triton: what its compiler makes of a program.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from minijax.primitives.slots import extremum_of_nothing

from ..arithmetic import Arithmetic
from ..loops import (
    INT64, Assign, Barrier, Buffer, Constant, Declare, For, If, Kernel, Let, Load, Operand,
    Read, Scalar, Shuffle, Statement, Store, Variable, While, renamed, touched, walk, with_bodies,
)
from ..scalars import BOOL
from .turns import as_one

THREADS = 256       # of a block
WARP = 32           # threads that run together, and can shuffle
LOCAL = 1 << 10     # bytes of temps that a thread may have for itself
JOINS = ("reduce", "running")  # loops whose turns join what they find
JOINED = ("add", "mul", "min", "max", "and", "or", "xor")


def literal(value: Any, dtype: Any = INT64) -> Constant:
    """A constant."""
    return Constant(np.asarray(value).astype(dtype)[()], np.dtype(dtype))


class Writer:
    """Writes statements into the innermost open body; knows the temps of the kernel it is for."""

    def __init__(self, kernel: Kernel) -> None:
        self.uses = Counter(x for each in walk(kernel.body) for x in touched(each))
        self.temps: list[Buffer] = []
        self.out: list[Statement] = []

    def temp(self, shape: Sequence[int], dtype: Any, name: str, role: str = "temp") -> Buffer:
        """A buffer that the kernel did not have."""
        self.temps.append(Buffer(name, np.dtype(dtype), tuple(shape), role))
        return self.temps[-1]

    def let(self, op: str, *args: Any, to: Any = None) -> Any:
        """An operation on scalars and Python's integers."""
        b = Arithmetic()  # to which constants of others are no units
        args = tuple(b.const(x.value, x.dtype) if isinstance(x, Constant) else x for x in args)
        x = b.operation(op, args) if to is None else getattr(b, op)(*args, to)
        self.out += b.scopes[0].statements
        return x

    @contextmanager
    def inside(self) -> Iterator[list[Statement]]:
        """A body that is open meanwhile."""
        outer, self.out = self.out, []
        try:
            yield self.out
        finally:
            self.out = outer

    # -- what a loop has for itself ------------------------------------------------------------

    def is_independent(self, loop: For) -> bool:
        """Whether turns can run at the same time, each with its own copy of its scratch."""
        if loop.vectorize != "apart":
            return loop.vectorize == "parallel"
        every = list(walk((loop,)))
        loaded, stored = ({x for each in every if isinstance(each, kind) for x in touched(each)}
                          for kind in (Load, Store))
        scratch = {x for x in loaded & stored if x.role in ("temp", "shared")}
        return self.own(loop) >= scratch

    def own(self, loop: For) -> set[Buffer]:
        """The temps that are used in this loop alone, of which each turn may have a copy."""
        if loop.vectorize != "apart":
            return set()
        here = Counter(x for each in walk((loop,)) for x in touched(each))
        return {x for x in here if here[x] == self.uses[x] and x.role == "temp"}

    def locals(self, own: Iterable[Buffer]) -> dict[Buffer, Buffer]:
        """Where each thread has its scratch."""
        return {x: replace(x, role="local") for x in own}

    def moved(self, body: Iterable[Statement], homes: dict[Buffer, Buffer], block: Scalar
              ) -> Iterator[Statement]:
        """A body whose scratch is elsewhere: what has an axis more has a part for each block."""
        for statement in body:
            if isinstance(statement, Load | Store) and statement.buffer in homes:
                old, home, index = statement.buffer, homes[statement.buffer], statement.index
                if len(home.shape) > len(old.shape):
                    with self.inside() as steps:
                        index = (block, *index) if len(index) == len(old.shape) else (
                            self.let("add", self.let("mul", block, old.size), *index),)
                    yield from steps
                yield replace(statement, buffer=home, index=index)
            else:
                yield with_bodies(statement, lambda inner: self.moved(inner, homes, block))


class Team:
    """The threads of a block."""

    def __init__(self, writer: Writer, thread: Scalar, threads: int) -> None:
        self.writer, self.thread, self.threads = writer, thread, threads
        self.let = writer.let
        # What has been touched since the last barrier.
        self.stored: set[Buffer] = set()
        self.loaded: set[Buffer] = set()

    def add(self, *statements: Statement) -> None:
        self.writer.out.extend(statements)

    def run(self, body: Sequence[Statement]) -> None:
        """Add what the threads do for a body."""
        for statement in body:
            if isinstance(statement, For):
                statement = as_one(statement)
            match statement:
                case For() if self.is_shared(statement):
                    self.wait_for(statement)
                    self.share(statement)
                case For() if operations := self.operations(statement):
                    self.wait_for(statement)
                    if statement.vectorize == "reduce":
                        self.join(statement, operations)
                    else:
                        self.follow(statement, operations)
                case For() | While() | If():
                    self.control(statement)
                case Store():
                    self.wait_for(statement)
                    self.add(If(self.is_first(), (statement,)))
                case _:
                    self.wait_for(statement)
                    self.add(statement)

    def is_first(self) -> Operand:
        return self.let("eq", self.thread, 0)

    # -- barriers ------------------------------------------------------------------------------

    def wait_for(self, statement: Statement) -> None:
        """A barrier, if a statement touches what another thread may have stored, or may still load.
        """
        loads, stores = ({x for each in walk((statement,)) if isinstance(each, kind)
                          for x in touched(each) if x.role != "local"} for kind in (Load, Store))
        if not (loads.isdisjoint(self.stored) and stores.isdisjoint(self.stored | self.loaded)):
            self.wait()
        self.loaded |= loads
        self.stored |= stores

    def wait(self) -> None:
        self.add(Barrier())
        self.stored, self.loaded = set(), set()

    def control(self, statement: Statement) -> None:
        """A loop or a branch: with barriers before, between and behind its bodies."""
        stores = any(isinstance(each, Store) for each in walk((statement,)))

        def again(body: Sequence[Statement]) -> tuple[Statement, ...]:
            with self.writer.inside() as inner:
                self.settle()  # of what the condition has touched
                self.run(body)
                if stores:
                    self.settle()  # the next turn may touch the same places
            return tuple(inner)

        self.settle()
        self.add(with_bodies(statement, again))

    def settle(self) -> None:
        """A barrier, if anything has been touched since the last one."""
        if self.stored or self.loaded:
            self.wait()

    # -- sharing -------------------------------------------------------------------------------

    def is_shared(self, loop: For) -> bool:
        """Whether threads take a turn each: there are enough, or they have no long loops inside."""
        inner = max((each.turns or 0 for each in walk(loop.body) if isinstance(each, For)),
                    default=0)
        fits = sum(x.nbytes for x in self.writer.own(loop)) <= LOCAL
        enough = (loop.turns or WARP) * 4 >= self.threads or inner < WARP
        return fits and enough and self.writer.is_independent(loop)

    def share(self, loop: For) -> None:
        """Independent turns, by all threads."""
        own = self.writer.locals(self.writer.own(loop))
        self.turns(loop, self.writer.moved(loop.body, own, self.thread))

    def turns(self, loop: For, body: Iterable[Statement]) -> None:
        """The turns of a loop that a thread takes: from its own, each that is `threads` later."""
        n, step, turn = loop.turns, self.threads, Scalar("turn", INT64)

        def at(first: Operand) -> tuple[Statement, ...]:
            with self.writer.inside() as inner:
                index = self.let("add", first, loop.start)
                self.add(*renamed(tuple(body), {loop.index: index}))
            return tuple(inner)

        if n is not None and n <= step:
            alone = at(self.thread)
            self.add(*alone if n == step else [If(self.let("lt", self.thread, n), alone)])
            return
        if n is not None and n % step == 0:
            stop = literal(n // step)
        else:
            size = self.let("add", self.let("sub", loop.stop, loop.start), step - 1)
            stop = self.let("div", self.let("sub", size, self.thread), step)
        with self.writer.inside() as inner:
            self.add(*at(self.let("add", self.let("mul", turn, step), self.thread)))
        self.add(For(turn, literal(0), stop, tuple(inner), loop.note))

    # -- sums, and their like ------------------------------------------------------------------

    def operations(self, loop: For) -> dict[Variable, str]:
        """What each variable that a loop changes is joined by; nothing, if that is not known, or
        the loop is not worth sharing.
        """
        every = list(walk(loop.body))
        made: dict[Any, Let] = {each.target: each for each in loop.body if isinstance(each, Let)}
        read: dict[Any, Variable] = {each.target: each.variable for each in loop.body
                                     if isinstance(each, Read)}
        own = {each.variable for each in every if isinstance(each, Declare)}
        loaded = {each.buffer for each in every if isinstance(each, Load)}
        found = {}
        if loop.vectorize not in JOINS or (loop.turns or WARP) < WARP:
            return {}
        for each in every:
            if isinstance(each, Assign) and each.variable not in own:
                let = made.get(each.value)
                if each not in loop.body or let is None or let.op not in JOINED or all(
                        read.get(x) is not each.variable for x in let.args):
                    return {}
                found[each.variable] = let.op
            elif (isinstance(each, Store) and loop.vectorize == "reduce" and (
                    loop.index not in each.index or each.buffer in loaded)):
                return {}
        return found

    def join(self, loop: For, operations: dict[Variable, str]) -> None:
        """Each thread's part of a sum, then those of a warp, then those of the block."""
        parts: dict[Any, Any] = {v: Variable("part", v.dtype) for v in operations}
        for v, op in operations.items():
            self.add(Declare(parts[v], literal(_identity(op, v.dtype), v.dtype)))
        self.turns(loop, renamed(loop.body, parts))
        for v, op in operations.items():
            part, before = (Scalar(name, v.dtype) for name in ("part", "before"))
            self.add(Read(part, parts[v]))
            total = self.across_the_block(op, self.across_a_warp(op, part))
            self.add(Read(before, v))
            self.add(Assign(v, self.let(op, before, total)))

    def follow(self, loop: For, operations: dict[Variable, str]) -> None:
        """Running totals: of the turns that the threads take at once, then of the next ones."""
        last = max(k for k, each in enumerate(loop.body) if isinstance(each, Assign))
        joins: list[Any] = [each for each in loop.body[:last] if isinstance(each, Let) and any(
            each.target is other.value for other in loop.body if isinstance(other, Assign))]
        reads: dict[Any, Variable] = {each.target: each.variable for each in loop.body[:last]
                                      if isinstance(each, Read)}
        first = [each for each in loop.body[:last] if each not in joins
                 and not isinstance(each, Read | Assign)]
        chunk, names = Scalar("turn", INT64), {}
        with self.writer.inside() as inner:
            turn = self.let("add", self.let("mul", chunk, self.threads), self.thread)
            index = self.let("add", turn, loop.start)
            is_there = self.let("lt", index, loop.stop)
            place = {loop.index: self.let("min", index, self.let("sub", loop.stop, 1))}
            self.add(*renamed(tuple(first), place))
            for join in joins:
                v, x = sorted(join.args, key=lambda x: x not in reads)
                nothing = literal(_identity(join.op, x.dtype), x.dtype)
                before = Scalar("before", x.dtype)
                self.add(Read(before, reads[v]))
                total, all_of_them = self.running_across_the_block(
                    join.op, self.let("select", is_there, renamed(x, place), nothing))
                names[join.target] = self.let(join.op, before, total)
                self.add(Assign(reads[v], self.let(join.op, before, all_of_them)))
            self.add(If(is_there, renamed(loop.body[last + 1:], names | {loop.index: index})))
            self.wait()
        stop = self.let("add", self.let("sub", loop.stop, loop.start), self.threads - 1)
        self.add(For(chunk, literal(0), self.let("div", stop, self.threads), tuple(inner),
                     loop.note))

    def running_across_the_block(self, op: str, x: Operand) -> tuple[Operand, Operand]:
        """What threads up to each have, joined; and what all have."""
        let, total = self.let, x
        for bit in range(5):
            other = self.shuffled(total, 1 << bit)
            is_behind = let("ne", let("and", self.thread, 1 << bit), 0)
            x = let("select", is_behind, let(op, other, x), x)
            total = let(op, total, other)
        warps = self.by_warps(total)
        warp, together = let("div", self.thread, WARP), warps[0]
        for k, each in enumerate(warps[1:], 1):
            x = let("select", let("eq", warp, k), let(op, together, x), x)
            together = let(op, together, each)
        return x, together

    def across_a_warp(self, op: str, x: Operand) -> Operand:
        """Every thread's value joined with that of its neighbour, of the next pair, and so on."""
        for bit in range(5):
            x = self.let(op, x, self.shuffled(x, 1 << bit))
        return x

    def shuffled(self, x: Operand, across: int) -> Operand:
        """A value of another thread, by words of 32 bits, which is what processors move."""
        let, dtype, bits = self.let, x.dtype, 8 * x.dtype.itemsize
        if dtype == BOOL:
            return let("ne", self.shuffled(let("convert", x, to=np.uint32), across), 0)
        if dtype.kind != "u":
            word = let("bitcast", x, to=np.dtype(f"uint{bits}"))
            return let("bitcast", self.shuffled(word, across), to=dtype)
        if bits < 32:
            word = self.shuffled(let("convert", x, to=np.uint32), across)
            return let("convert", word, to=dtype)
        if bits > 32:
            low, high = (self.shuffled(let("convert", part, to=np.uint32), across)
                         for part in (x, let("shr_logical", x, 32)))
            return let("or", let("convert", low, to=dtype),
                       let("shl", let("convert", high, to=dtype), 32))
        other = Scalar("other", dtype)
        self.add(Shuffle(other, x, across, (1 << WARP) - 1))
        return other

    def across_the_block(self, op: str, x: Operand) -> Operand:
        """What the warps of a block have, joined in their order."""
        values = self.by_warps(x)
        while len(values) > 1:
            values = [self.let(op, *pair) if len(pair) > 1 else pair[0]
                      for pair in (values[k:k + 2] for k in range(0, len(values), 2))]
        return values[0]

    def by_warps(self, x: Operand) -> list[Any]:
        """What the first thread of each warp has."""
        warps = self.threads // WARP
        if warps == 1:
            return [x]
        row = self.writer.temp((warps,), x.dtype, "warps", "shared")
        warp = self.let("div", self.thread, WARP)
        is_first = self.let("eq", self.let("rem", self.thread, WARP), 0)
        self.add(If(is_first, (Store(row, (warp,), x),)))
        self.wait()
        self.loaded.add(row)
        values: list[Any] = [Scalar("warp", x.dtype) for _ in range(warps)]
        self.add(*(Load(value, row, (literal(k),)) for k, value in enumerate(values)))
        return values


def _identity(op: str, dtype: np.dtype) -> Any:
    """What changes nothing that it is joined with."""
    if op in ("min", "max"):
        return extremum_of_nothing(op, dtype)
    if op == "and":
        return True if dtype == BOOL else -1
    return {"mul": 1}.get(op, 0)
