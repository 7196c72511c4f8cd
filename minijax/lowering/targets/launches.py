"""The same loops on a GPU: what is launched, and what each thread of a launch does.

Stands on loops.py. Three rules make launches of a tree. A loop whose turns are independent is
spread over a grid: a thread takes a turn, or a block of threads where a turn has long loops of its
own. Inside of a block, independent turns are shared by its threads, and so are sums: each thread
adds up its part, and shuffles join the parts, always in the same order. All else is done by every
thread alike, but one alone stores; barriers stand where a thread is going to touch what another has
stored.
Chapter 27. In XLA: its GPU emitters; in Triton and CUDA this is what the programmer writes.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from minijax.primitives.slots import extremum_of_nothing

from ..loops import (
    INT64, Assign, Barrier, Buffer, Call, Check, Constant, Declare, For, If, Kernel, Launch,
    Let, Load, Operand, Read, Scalar, Shuffle, Statement, Store, Variable, While, bodies, defined,
    renamed, touched, used, walk,
)
from ..arithmetic import Arithmetic
from ..memory import layout
from ..probe import cost_of
from ..scalars import BOOL

THREADS = 256       # of a block
WARP = 32           # threads that run together, and can shuffle
SHARED = 48 << 10   # bytes that every block may have for itself
LOCAL = 1 << 10     # bytes of temps that a thread may have for itself
WIDE = 1 << 16      # simple operations: what has more is worth launches of its own
JOINED = ("add", "mul", "min", "max", "and", "or", "xor")


def constant(value: Any, dtype: Any = INT64) -> Constant:
    """A literal."""
    return Constant(np.asarray(value).astype(dtype)[()], np.dtype(dtype))


def scheduled(kernel: Kernel) -> Kernel:
    """The kernel for a GPU: its body is launches, calls of libraries, and the host's control flow.
    """
    return _Schedule(kernel).kernel()


class _Schedule:
    """One kernel being scheduled; what is added goes to the innermost open body."""

    def __init__(self, source: Kernel) -> None:
        self.source = source
        self.temps = list(source.temps)
        self.uses = Counter(x for each in walk(source.body) for x in touched(each))
        codes = [each.code for each in walk(source.body) if isinstance(each, Check)]
        self.errors = self.temp((max(codes) + 1,), np.int32, "errors") if codes else None
        self.out: list[Statement] = []

    def kernel(self) -> Kernel:
        """The whole."""
        body = self.handing_over(tuple(self.on_the_host(self.source.body)))
        every = {x for each in walk(body) for x in touched(each)}
        temps = [x for x in self.temps if x in every and x.role == "temp"]
        offsets, size = layout(temps, body)
        return replace(self.source, temps=tuple(offsets), offsets=offsets, workspace_size=size,
                       body=body)

    # -- writing -------------------------------------------------------------------------------

    def temp(self, shape: Sequence[int], dtype: Any, name: str, role: str = "temp") -> Buffer:
        """A buffer that the source does not have."""
        self.temps.append(Buffer(name, np.dtype(dtype), tuple(shape), role))
        return self.temps[-1]

    def let(self, op: str, *args: Any, to: Any = None) -> Operand:
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

    # -- the host ------------------------------------------------------------------------------

    def on_the_host(self, body: Sequence[Statement]) -> Iterator[Statement]:
        """Launches for a body, and what the host itself must do."""
        for is_launched, group in itertools.groupby(body, lambda s: not _asks_the_host(s)):
            if is_launched:
                yield from self.launched(list(group))
                continue
            for statement in group:
                match statement:
                    case For(index, start, stop, inner, note, _):
                        yield For(index, start, stop, tuple(self.on_the_host(inner)), note)
                    case While(condition, test, inner):
                        yield While(tuple(self.on_the_host(condition)), test,
                                    tuple(self.on_the_host(inner)))
                    case If(test, then, orelse):
                        yield If(test, tuple(self.on_the_host(then)),
                                 tuple(self.on_the_host(orelse)))
                    case _:
                        yield statement

    def launched(self, body: list[Statement]) -> Iterator[Statement]:
        """Launches for what needs no host: a grid for each wide loop, a block for what is between.
        """
        for is_wide, group in itertools.groupby(body, self.is_wide):
            if not is_wide:
                yield self.block_of(list(group))
                continue
            for loop in group:
                yield self.grid(loop)

    def is_wide(self, statement: Statement) -> bool:
        """Whether a loop is worth a launch of its own."""
        return (isinstance(statement, For) and self.is_independent(statement)
                and isinstance(statement.start, Constant) and isinstance(statement.stop, Constant)
                and cost_of((statement,)) >= WIDE)

    def is_independent(self, loop: For) -> bool:
        """Whether turns can run at the same time, each with its own copy of its scratch."""
        return loop.vectorize == "parallel" or (
            loop.vectorize == "apart" and self.own(loop) >= self.scratch(loop))

    def scratch(self, loop: For) -> set[Buffer]:
        """The temps that a loop both stores to and loads from."""
        every = list(walk((loop,)))
        return ({x for each in every if isinstance(each, Store) for x in touched(each)}
                & {x for each in every if isinstance(each, Load) for x in touched(each)
                   if x.role in ("temp", "shared")})

    def own(self, loop: For) -> set[Buffer]:
        """The temps that are used in this loop alone."""
        here = Counter(x for each in walk((loop,)) for x in touched(each))
        own = {x for x in here if here[x] == self.uses[x] and x.role == "temp"}
        return own if loop.vectorize == "apart" else set()

    def grid(self, loop: For) -> Launch:
        """A loop spread over a grid."""
        block, thread = Scalar("block", INT64), Scalar("thread", INT64)
        n, own = int(loop.stop.value - loop.start.value), self.own(loop)  # type: ignore[union-attr]
        longest = max((each.turns or 0 for each in loop.body if isinstance(each, For)
                       and (each.vectorize == "reduce" or self.is_independent(each))), default=0)
        with self.inside() as body:
            if longest >= WARP or sum(x.nbytes for x in own) > LOCAL:
                threads = min(-(-longest // WARP) * WARP or WARP, THREADS)
                team = _Team(self, thread, threads)
                own -= {x for each in walk(loop.body) if isinstance(each, For)
                        and each.vectorize == "apart" and team.are_many(each)
                        for x in self.own(each)}  # of which each thread will have a copy
                turn = renamed(loop.body, {loop.index: self.let("add", block, loop.start)})
                team.run(tuple(self.moved(turn, self.homes(own, block, n), block)))
            else:
                threads = THREADS
                first = self.let("add", self.let("mul", block, threads), thread)
                index = self.let("add", first, loop.start)
                turn = renamed(loop.body, {loop.index: index})
                alone = tuple(self.by_one_thread(self.moved(turn, self.locals(own), block)))
                if n % threads:
                    alone = (If(self.let("lt", index, loop.stop), alone),)
                body.extend(alone)
                n = -(-n // threads)
        return Launch(block, n, thread, threads, tuple(body))

    def homes(self, own: Iterable[Buffer], block: Scalar, blocks: int) -> dict[Buffer, Buffer]:
        """Where each block has its scratch: shared memory as long as there is some."""
        left, found = SHARED - 4096, {}
        for x in sorted(own, key=lambda x: (x.nbytes, x.name)):
            left -= x.nbytes
            found[x] = (replace(x, role="shared") if left >= 0
                        else self.temp((blocks, *x.shape), x.dtype, x.name))
        return found

    def locals(self, own: Iterable[Buffer]) -> dict[Buffer, Buffer]:
        """Where each thread has its scratch."""
        return {x: replace(x, role="local") for x in own}

    def moved(self, body: Iterable[Statement], homes: dict[Buffer, Buffer], block: Scalar
              ) -> Iterator[Statement]:
        """A body whose scratch is elsewhere: what has an axis more has a part for each block."""
        def inner(part: Iterable[Statement]) -> tuple[Statement, ...]:
            return tuple(self.moved(part, homes, block))

        for statement in body:
            match statement:
                case Load(buffer=buffer) | Store(buffer=buffer) if buffer in homes:
                    home, index = homes[buffer], statement.index
                    if len(home.shape) > len(buffer.shape):
                        if len(index) != len(buffer.shape):
                            with self.inside() as steps:
                                index = self.let("add", self.let("mul", block, buffer.size),
                                                 *index),
                            yield from steps
                        else:
                            index = (block, *index)
                    yield replace(statement, buffer=home, index=index)
                case For(index, start, stop, inside, note, how):
                    yield For(index, start, stop, inner(inside), note, how)
                case While(condition, test, inside):
                    yield While(inner(condition), test, inner(inside))
                case If(test, then, orelse):
                    yield If(test, inner(then), inner(orelse))
                case _:
                    yield statement

    def block_of(self, body: list[Statement]) -> Launch:
        """One block for a body."""
        block, thread = Scalar("block", INT64), Scalar("thread", INT64)
        turns = max((each.turns or 0 for each in walk(body) if isinstance(each, For)
                     and each.vectorize), default=1)
        threads = min(max(-(-turns // WARP), 1) * WARP, THREADS)
        with self.inside() as inner:
            _Team(self, thread, threads).run(body)
        return Launch(block, 1, thread, threads, tuple(inner))

    def by_one_thread(self, body: Iterable[Statement]) -> Iterator[Statement]:
        """What one thread does alone: as it stands, but a check goes on."""
        for statement in body:
            match statement:
                case Check():
                    yield self.error(statement)
                case For(index, start, stop, inner, note, _):
                    yield For(index, start, stop, tuple(self.by_one_thread(inner)), note)
                case While(condition, test, inner):
                    yield While(tuple(self.by_one_thread(condition)), test,
                                tuple(self.by_one_thread(inner)))
                case If(test, then, orelse):
                    yield If(test, tuple(self.by_one_thread(then)),
                             tuple(self.by_one_thread(orelse)))
                case _:
                    yield statement

    def error(self, check: Check) -> If:
        """A check that fails is written down: the host asks when a result is read."""
        assert self.errors is not None
        word = Store(self.errors, (constant(check.code),), constant(1, np.int32))
        return If(check.ok, (), (word,))

    # -- from launch to launch -----------------------------------------------------------------

    def handing_over(self, body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        """Have what is defined in one launch, and used elsewhere, pass through memory."""
        makers: dict[Any, Any] = {}
        users: dict[Any, set] = {}
        for place in _places(body):
            inner = place.body if isinstance(place, Launch) else (place,)
            for each in walk(inner) if isinstance(place, Launch) else inner:
                if (x := defined(each)) is not None:
                    makers[x] = place
                for x in used(each):
                    users.setdefault(x, set()).add(place)
        rows = {x: self.temp((1,), x.dtype, "handed") for x, place in makers.items()
                if isinstance(place, Launch) and users.get(x, set()) - {place}}
        return tuple(self.passing(body, rows)) if rows else body

    def passing(self, body: Sequence[Statement], rows: dict[Any, Buffer]) -> Iterator[Statement]:
        zero = (constant(0),)
        for place in body:
            if isinstance(place, Launch):
                makes = [x for x in map(defined, place.body) if x in rows]
                asks = dict.fromkeys(x for each in walk(place.body) for x in used(each)
                                     if x in rows and x not in makes)
                known, first, last = {}, [], []
                for x in asks:
                    value = known[x] = Scalar(x.name, x.dtype)
                    first.append(Load(value, rows[x], zero))
                    if isinstance(x, Variable):
                        known[x] = Variable(x.name, x.dtype)
                        first.append(Declare(known[x], value))
                changed = [x for x in asks if isinstance(x, Variable) and any(
                    isinstance(each, Assign) and each.variable is x for each in walk(place.body))]
                for x in (*makes, *changed):
                    value = known.get(x, x)
                    if isinstance(x, Variable):
                        last.append(Read(Scalar(x.name, x.dtype), value))
                        value = last[-1].target
                    last.append(If(self.first_of(place), (Store(rows[x], zero, value),)))
                test = [Let(self.first_of(place), "eq", (place.thread, constant(0)))]
                barrier = [Barrier()] if first and last else []
                yield replace(place, body=(*first, *barrier, *renamed(place.body, known),
                                           *(test if last else ()), *last))
                del self._first
                continue
            asks = [x for x in used(place) if x in rows]
            known = {x: Scalar(x.name, x.dtype) for x in asks}
            loads = [Load(known[x], rows[x], zero) for x in asks]
            match place:
                case While(condition, test, inner):
                    value = renamed(test, known)
                    yield While((*self.passing(condition, rows), *loads), value,
                                tuple(self.passing(inner, rows)))
                    continue
                case For(index, start, stop, inner, note, how):
                    new: Any = For(index, renamed(start, known), renamed(stop, known),
                                   tuple(self.passing(inner, rows)), note, how)
                case If(test, then, orelse):
                    new = If(renamed(test, known), tuple(self.passing(then, rows)),
                             tuple(self.passing(orelse, rows)))
                case _:
                    new = renamed(place, known)
            yield from (*loads, new)

    def first_of(self, place: Launch) -> Scalar:
        """Whether a thread is the first of its block."""
        if not hasattr(self, "_first"):
            self._first = Scalar("first", BOOL)
        return self._first


def _places(body: Sequence[Statement]) -> Iterator[Statement]:
    """Launches, and what the host does itself, at any depth."""
    for statement in body:
        yield statement
        if not isinstance(statement, Launch):
            for inner in bodies(statement):
                yield from _places(inner)


def _asks_the_host(statement: Statement) -> bool:
    return any(isinstance(each, Call) for each in walk((statement,)))


class _Team:
    """The threads of a block, which share the work of a body."""

    def __init__(self, schedule: _Schedule, thread: Scalar, threads: int) -> None:
        self.s, self.thread, self.threads = schedule, thread, threads
        # What has been touched since the last barrier.
        self.stored: set[Buffer] = set()
        self.loaded: set[Buffer] = set()

    def run(self, body: Sequence[Statement]) -> None:
        """Add what the threads do for a body."""
        for statement in body:
            match statement:
                case For() if self.s.is_independent(statement) and self.are_many(statement):
                    self.wait_for(statement)
                    self.share(statement)
                case For(vectorize="reduce") if self.operations(statement):
                    self.wait_for(statement)
                    self.join(statement)
                case For(index, start, stop, inner, note, _):
                    self.s.out.append(For(index, start, stop, self.again(inner), note))
                case While(condition, test, inner):
                    first = self.again(condition)
                    self.s.out.append(While(first, test, self.again(inner)))
                case If(test, then, orelse):
                    self.s.out.append(If(test, self.again(then), self.again(orelse)))
                case Store():
                    self.wait_for(statement)
                    self.s.out.append(If(self.is_first(), (statement,)))
                case Check():
                    self.s.out.append(If(self.is_first(), (self.s.error(statement),)))
                case _:
                    self.wait_for(statement)
                    self.s.out.append(statement)

    def is_first(self) -> Operand:
        return self.s.let("eq", self.thread, 0)

    # -- barriers ------------------------------------------------------------------------------

    def wait_for(self, statement: Statement) -> None:
        """A barrier, if a statement touches what another thread may have stored, or may still load.
        """
        every = list(walk((statement,)))
        loads = {x for each in every if isinstance(each, Load) for x in touched(each)}
        stores = {x for each in every if isinstance(each, Store) for x in touched(each)}
        if not (loads.isdisjoint(self.stored) and stores.isdisjoint(self.stored | self.loaded)):
            self.wait()
        self.loaded |= {x for x in loads if x.role != "local"}
        self.stored |= {x for x in stores if x.role != "local"}

    def wait(self) -> None:
        self.s.out.append(Barrier())
        self.stored, self.loaded = set(), set()

    def again(self, body: Sequence[Statement]) -> tuple[Statement, ...]:
        """The body of a loop or a branch: with barriers before and behind what it stores."""
        if self.stored or self.loaded:
            self.wait()
        with self.s.inside() as inner:
            self.run(body)
            if any(isinstance(each, Store) for each in walk(body)):
                self.wait()  # the next turn may touch the same places
        return tuple(inner)

    # -- sharing -------------------------------------------------------------------------------

    def are_many(self, loop: For) -> bool:
        """Whether the turns are enough for the threads, or have no long loops of their own."""
        inner = max((each.turns or 0 for each in walk(loop.body) if isinstance(each, For)),
                    default=0)
        fits = sum(x.nbytes for x in self.s.own(loop)) <= LOCAL
        return fits and ((loop.turns or WARP) * 4 >= self.threads or inner < WARP)

    def turns(self, loop: For, body: Iterable[Statement]) -> None:
        """The turns of a loop that a thread takes: from its own, each that is `threads` later."""
        n, step, let = loop.turns, self.threads, self.s.let
        turn = Scalar("turn", INT64)

        def at(first: Operand) -> tuple[Statement, ...]:
            with self.s.inside() as inner:
                index = let("add", first, loop.start)
                inner.extend(renamed(tuple(body), {loop.index: index}))
            return tuple(inner)

        if n is not None and n <= step:
            alone = at(self.thread)
            self.s.out.extend([If(let("lt", self.thread, n), alone)] if n < step else alone)
            return
        stop = constant(n // step) if n is not None and n % step == 0 else let(
            "div", let("sub", let("add", let("sub", loop.stop, loop.start), step - 1),
                       self.thread), step)
        with self.s.inside() as inner:
            inner.extend(at(let("add", let("mul", turn, step), self.thread)))
        self.s.out.append(For(turn, constant(0), stop, tuple(inner), loop.note))

    def share(self, loop: For) -> None:
        """Independent turns, by all threads."""
        body = self.s.moved(loop.body, self.s.locals(self.s.own(loop)), self.thread)
        self.turns(loop, self.s.by_one_thread(body))

    def operations(self, loop: For) -> dict[Variable, str]:
        """What each variable that a loop changes is joined by; nothing, if that is not known, or
        the loop is not worth sharing.
        """
        made = {each.target: each for each in loop.body if isinstance(each, Let)}
        read = {each.target: each.variable for each in loop.body if isinstance(each, Read)}
        own = {each.variable for each in walk(loop.body) if isinstance(each, Declare)}
        loaded = {each.buffer for each in walk(loop.body) if isinstance(each, Load)}
        found = {}
        for each in walk(loop.body):
            if isinstance(each, Assign) and each.variable not in own:
                let = made.get(each.value)  # type: ignore[call-overload]
                if each not in loop.body or let is None or let.op not in JOINED or all(
                        read.get(x) is not each.variable for x in let.args):
                    return {}
                found[each.variable] = let.op
            elif isinstance(each, Check) or (isinstance(each, Store) and (
                    loop.index not in each.index or each.buffer in loaded)):
                return {}
        return found if (loop.turns or WARP) >= WARP else {}

    def join(self, loop: For) -> None:
        """A sum, or its like: each thread's part, then those of a warp, then those of the block."""
        operations = self.operations(loop)
        parts = {v: Variable("part", v.dtype) for v in operations}
        for v, op in operations.items():
            self.s.out.append(Declare(parts[v], constant(_identity(op, v.dtype), v.dtype)))
        self.turns(loop, renamed(loop.body, parts))
        for v, op in operations.items():
            part = Scalar("part", v.dtype)
            self.s.out.append(Read(part, parts[v]))
            total = self.across_the_block(op, self.across_a_warp(op, part))
            before = Scalar("before", v.dtype)
            self.s.out.append(Read(before, v))
            self.s.out.append(Assign(v, self.s.let(op, before, total)))

    def across_a_warp(self, op: str, x: Operand) -> Operand:
        """Every thread's value joined with that of its neighbour, of the next pair, and so on."""
        for bit in range(5):
            x = self.s.let(op, x, self.shuffled(x, 1 << bit))
        return x

    def shuffled(self, x: Operand, across: int) -> Operand:
        """A value of another thread, by words of 32 bits, which is what processors move."""
        let, dtype, bits = self.s.let, x.dtype, 8 * x.dtype.itemsize
        if dtype == BOOL:
            return let("ne", self.shuffled(let("convert", x, to=np.uint32), across), 0)
        if dtype.kind != "u":
            word = np.dtype(f"uint{bits}")
            return let("bitcast", self.shuffled(let("bitcast", x, to=word), across), to=dtype)
        if bits < 32:
            word = self.shuffled(let("convert", x, to=np.uint32), across)
            return let("convert", word, to=dtype)
        if bits > 32:
            low, high = (self.shuffled(let("convert", part, to=np.uint32), across)
                         for part in (x, let("shr_logical", x, 32)))
            return let("or", let("convert", low, to=dtype),
                       let("shl", let("convert", high, to=dtype), 32))
        other = Scalar("other", dtype)
        self.s.out.append(Shuffle(other, x, across, (1 << WARP) - 1))
        return other

    def across_the_block(self, op: str, x: Operand) -> Operand:
        """What the warps of a block have, joined in their order."""
        warps = self.threads // WARP
        if warps == 1:
            return x
        row = self.s.temp((warps,), x.dtype, "warps", "shared")
        lane = self.s.let("rem", self.thread, WARP)
        warp = self.s.let("div", self.thread, WARP)
        self.s.out.append(If(self.s.let("eq", lane, 0), (Store(row, (warp,), x),)))
        self.wait()
        self.loaded.add(row)
        values = [Scalar("warp", x.dtype) for _ in range(warps)]
        for k, value in enumerate(values):
            self.s.out.append(Load(value, row, (constant(k),)))
        while len(values) > 1:
            values = [self.s.let(op, *pair) if len(pair) > 1 else pair[0]
                      for pair in (values[k:k + 2] for k in range(0, len(values), 2))]
        return values[0]


def _identity(op: str, dtype: np.dtype) -> Any:
    if op in ("min", "max"):
        return extremum_of_nothing(op, dtype)
    if op == "and":
        return True if dtype == BOOL else -1
    return {"mul": 1}.get(op, 0)
