"""The code of a thread block for a body of loops.

Builds on loops.py. Parallel iterations and reductions are distributed over threads; shuffles
combine partial results in a fixed order. Every thread runs all other code, but only one stores.
Chapter 27. In Triton: the compiler's lowering of a program.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np

from ..arithmetic import Arithmetic
from ..builder import identity_element, reduce_pairwise
from ..loops import (INT64, WRITES, Assign, Atomic, Barrier, Buffer, Constant, Declare, For, If,
                     Kernel, Let, Load, Operand, Read, Scalar, Shuffle, Statement, Store, Variable,
                     While, accesses, copied, private_temps, substituted, walk, with_bodies)
from ..scalars import BOOL
from ..vectorization import reductions
from .coalescing import collapse_nest, interleaved, is_aligned, is_straight

THREADS = 256       # of a block
WARP = 32           # threads that run together, and can shuffle
ADJACENT = 4, 2, 1  # choices for the iterations of a scan that a thread takes
LOCAL = 1 << 10     # bytes of a thread's private temps
REDUCTIONS = ("reduce", "running")  # loops that reduce or scan


def literal(value: Any, dtype: Any = INT64) -> Constant:
    """A constant."""
    return Constant(np.asarray(value).astype(dtype)[()], np.dtype(dtype))


def has_own_part(loop: For, buffer: Buffer) -> bool:
    """Whether each iteration of a loop accesses a part of a buffer that no other accesses: whether
    coordinates that all accesses have in common determine the loop's index.
    """
    indices = [each.index for each in walk(loop.body) if isinstance(each, Load | Store)
               and each.buffer is buffer]
    if len(indices) != sum(x is buffer for x in accesses(walk(loop.body))) or (
            len(set(map(len, indices))) > 1):  # some are linear: nothing to compare
        return False
    same = {each[0] for each in zip(*indices, strict=True) if len(set(each)) == 1}
    lets = {(each.op, *each.args): each.target for each in loop.body if isinstance(each, Let)}

    def is_determined(x: Any) -> bool:
        if x in same:
            return True
        parts = [(op, args) for op, y, *args in lets if y is x]
        return any(op in ("add", "sub") and isinstance(args[0], Constant)
                   and is_determined(lets[op, x, *args]) for op, args in parts) or any(
            is_determined(lets["div", x, *args]) and is_determined(lets["rem", x, *args])
            for op, args in parts if op == "div" and ("rem", x, *args) in lets)
    return is_determined(loop.index)


class Writer:
    """Appends statements to the innermost open body, and allocates temps for the kernel."""

    def __init__(self, kernel: Kernel) -> None:
        self.uses = Counter(accesses(walk(kernel.body)))
        self.temps: list[Buffer] = []
        self.out: list[Statement] = []

    def temp(self, shape: Sequence[int], dtype: Any, name: str, role: str = "temp",
             value: np.ndarray | None = None) -> Buffer:
        """A new buffer for the kernel."""
        self.temps.append(Buffer(name, np.dtype(dtype), tuple(shape), role, value))
        return self.temps[-1]

    def let(self, op: str, *args: Any, to: Any = None) -> Any:
        """An operation on scalars and Python integers."""
        b = Arithmetic()  # its identity folding knows only its own constants
        args = tuple(b.const(x.value, x.dtype) if isinstance(x, Constant) else x for x in args)
        x = b.operation(op, args) if to is None else getattr(b, op)(*args, to)
        self.out += b.scopes[0].statements
        return x

    @contextmanager
    def inside(self) -> Iterator[list[Statement]]:
        """Open a body."""
        outer, self.out = self.out, []
        try:
            yield self.out
        finally:
            self.out = outer

    # -- private temps -------------------------------------------------------------------------

    def is_independent(self, loop: For) -> bool:
        """Whether the iterations are independent with private copies of their scratch."""
        if loop.vectorize != "apart":
            return loop.vectorize == "parallel"
        loaded, stored = (set(accesses(walk((loop,)), kind)) for kind in (Load, WRITES))
        scratch = {x for x in loaded & stored if x.role in ("temp", "shared")}
        return all(has_own_part(loop, x) for x in scratch - self.private_temps(loop))

    def private_temps(self, loop: For) -> set[Buffer]:
        """The temps that only this loop uses, of which each iteration may have a copy."""
        return set(private_temps(loop, self.uses))

    def fits_local_memory(self, loop: For, private: set[Buffer]) -> bool:
        """Whether a thread may have its private temps to itself; atomic operations need others."""
        return (sum(x.nbytes for x in private) <= LOCAL
                and private.isdisjoint(accesses(walk((loop,)), Atomic)))

    def in_use_order(self, private: Iterable[Buffer]) -> list[Buffer]:
        """Temps in the order of their first use, so that each process makes the same text."""
        return [x for x in self.uses if x in private]

    def in_local_memory(self, private: Iterable[Buffer]) -> dict[Buffer, Buffer]:
        """A copy of each temp in a thread's local memory."""
        return {x: replace(x, role="local") for x in self.in_use_order(private)}

    def privatized(self, body: Iterable[Statement], copies: dict[Buffer, Buffer], block: Scalar
                  ) -> Iterator[Statement]:
        """A body with its scratch elsewhere; a new home with one more axis has a part for each
        block.
        """
        for statement in body:
            if isinstance(statement, Load | WRITES) and statement.buffer in copies:
                old, home, index = statement.buffer, copies[statement.buffer], statement.index
                if len(home.shape) > len(old.shape):
                    with self.inside() as steps:
                        index = (block, *index) if len(index) == len(old.shape) else (
                            self.let("add", self.let("mul", block, old.size), *index),)
                    yield from steps
                yield replace(statement, buffer=home, index=index)
            else:
                yield with_bodies(statement, lambda inner: self.privatized(inner, copies, block))


class ThreadBlock:
    """Emits the code of a thread block."""

    def __init__(self, writer: Writer, thread: Scalar, threads: int) -> None:
        self.writer, self.thread, self.threads = writer, thread, threads
        self.let = writer.let
        # What has been touched since the last barrier.
        self.stored: set[Buffer] = set()
        self.loaded: set[Buffer] = set()

    def add(self, *statements: Statement) -> None:
        self.writer.out.extend(statements)

    def run(self, body: Sequence[Statement]) -> None:
        """Emit the code of the threads for a body."""
        for statement in body:
            if isinstance(statement, For):
                statement = collapse_nest(statement)
            match statement:
                case For() if self.is_distributed(statement):
                    self.barrier_before(statement)
                    temps = self.writer.in_local_memory(self.writer.private_temps(statement))
                    private = self.writer.privatized(statement.body, temps, self.thread)
                    self.block_stride_loop(statement, private)
                case For() if operations := self.reductions(statement):
                    self.barrier_before(statement)
                    emit = self.reduce_loop if statement.vectorize == "reduce" else self.scan_loop
                    emit(statement, operations)
                case For() | While() | If():
                    self.control_flow(statement)
                case Store() | Atomic():
                    self.barrier_before(statement)
                    self.add(If(self.let("eq", self.thread, 0), (statement,)))
                case _:
                    self.barrier_before(statement)
                    self.add(statement)

    # -- barriers ------------------------------------------------------------------------------

    def barrier_before(self, statement: Statement) -> None:
        """A barrier, if a statement depends on what another thread may have stored, or overwrites
        what one may still load.
        """
        loads, stores = ({x for x in accesses(walk((statement,)), kind) if x.role != "local"}
                         for kind in (Load, WRITES))
        if not (loads.isdisjoint(self.stored) and stores.isdisjoint(self.stored | self.loaded)):
            self.barrier()
        self.loaded |= loads
        self.stored |= stores

    def barrier(self) -> None:
        self.add(Barrier())
        self.stored, self.loaded = set(), set()

    def control_flow(self, statement: Statement) -> None:
        """A loop or a branch, with barriers before, between and after its bodies."""
        stores = any(isinstance(each, WRITES) for each in walk((statement,)))

        def synchronized(body: Sequence[Statement]) -> tuple[Statement, ...]:
            with self.writer.inside() as inner:
                self.barrier_if_needed()  # for what the condition has touched
                self.run(body)
                if stores:
                    self.barrier_if_needed()  # the next iteration may touch the same elements
            return tuple(inner)

        self.barrier_if_needed()
        self.add(with_bodies(statement, synchronized))

    def barrier_if_needed(self) -> None:
        """A barrier, if any buffer has been touched since the last one."""
        if self.stored or self.loaded:
            self.barrier()

    # -- sharing -------------------------------------------------------------------------------

    def is_distributed(self, loop: For) -> bool:
        """Whether threads take an iteration each: there are enough iterations, or these contain no
        long loops.
        """
        inner = max((x.trip_count or 0 for x in walk(loop.body) if isinstance(x, For)), default=0)
        fits = self.writer.fits_local_memory(loop, self.writer.private_temps(loop))
        enough = (loop.trip_count or WARP) * 4 >= self.threads or inner < WARP
        return fits and enough and self.writer.is_independent(loop)

    def block_stride_loop(self, loop: For, body: Iterable[Statement]) -> None:
        """A block-stride loop: each thread starts at its own number, with the number of threads as
        stride; or it takes some adjacent iterations, which access 16 bytes at once.
        """
        n, step, turn = loop.trip_count, self.threads, Scalar("turn", INT64)
        loop, each = replace(loop, body=tuple(body)), ADJACENT[0]
        if n and n % (each * step) == 0 and is_straight(loop) and is_aligned(loop, each):
            with self.writer.inside() as inner:
                number = self.let("add", self.let("mul", turn, step), self.thread)
                begin = self.let("add", self.let("mul", number, each), loop.start)
                self.add(*interleaved(loop.body, loop.index, [
                    self.let("add", begin, k) for k in range(each)]))
            self.add(For(turn, literal(0), literal(n // (each * step)), tuple(inner), loop.note))
            return

        def iteration(first: Operand) -> None:
            self.add(*substituted(loop.body, {loop.index: self.let("add", first, loop.start)}))

        if n is not None and n <= step:
            with self.writer.inside() as inner:
                iteration(self.thread)
            self.add(*inner if n == step else [If(self.let("lt", self.thread, n), tuple(inner))])
            return
        if n is not None and n % step == 0:
            stop = literal(n // step)
        else:
            size = self.let("add", self.let("sub", loop.stop, loop.start), step - 1)
            stop = self.let("div", self.let("sub", size, self.thread), step)
        with self.writer.inside() as inner:
            iteration(self.let("add", self.let("mul", turn, step), self.thread))
        self.add(For(turn, literal(0), stop, tuple(inner), loop.note))

    # -- sums, and their like ------------------------------------------------------------------

    def reductions(self, loop: For) -> dict[Variable, str]:
        """The operation that combines each variable of a reduction; empty if one is unknown, or the
        loop is too short.
        """
        if loop.vectorize not in REDUCTIONS or (loop.trip_count or WARP) < WARP:
            return {}
        every = list(walk(loop.body))
        loaded = {(x.buffer, x.index != y.index) for x in every if isinstance(x, Load)
                  for y in every if isinstance(y, WRITES) and y.buffer is x.buffer}
        if loop.vectorize == "reduce" and any(
                loop.index not in each.index or (each.buffer, True) in loaded
                for each in every if isinstance(each, WRITES)):
            return {}
        return reductions(loop)

    def reduce_loop(self, loop: For, operations: dict[Variable, str]) -> None:
        """A reduction: each thread's part, then that of each warp, then that of the block."""
        parts: dict[Any, Any] = {v: Variable("part", v.dtype) for v in operations}
        for v, op in operations.items():
            self.add(Declare(parts[v], literal(identity_element(op, v.dtype), v.dtype)))
        self.block_stride_loop(loop, substituted(loop.body, parts))
        for v, op in operations.items():
            part, before = (Scalar(name, v.dtype) for name in ("part", "before"))
            self.add(Read(part, parts[v]))
            total = self.block_reduce(op, self.warp_reduce(op, part))
            self.add(Read(before, v))
            self.add(Assign(v, self.let(op, before, total)))

    def scan_loop(self, loop: For, operations: dict[Variable, str]) -> None:
        """A scan: in each turn a thread takes some adjacent iterations. Turns that all threads are
        in range of come first.
        """
        n, threads, let = loop.trip_count or 1, self.threads, self.let
        each = next(k for k in ADJACENT if n % k == 0 and (k - 1) * threads < n)
        whole = (loop.trip_count or 0) // (each * threads)
        stop = let("div", let("sub", loop.stop, loop.start), each)
        turns = let("div", let("add", stop, threads - 1), threads)
        for first, last, is_whole in ((0, literal(whole), True), (whole, turns, False)):
            if isinstance(last, Constant) and int(last.value) == first:
                continue
            turn = Scalar("turn", INT64)
            with self.writer.inside() as inner:
                number = let("add", let("mul", turn, threads), self.thread)
                in_range = None if is_whole else let("lt", number, stop)
                place = number if is_whole else let("min", number, let("sub", stop, 1))
                begin = let("add", let("mul", place, each), loop.start)
                self.scan_turn(loop, [let("add", begin, k) for k in range(each)], in_range)
                self.barrier()
            self.add(For(turn, literal(first), last, tuple(inner), loop.note))

    def scan_turn(self, loop: For, indices: Sequence[Any], in_range: Operand | None) -> None:
        """A turn: each thread scans its own iterations, then all threads scan their totals."""
        let, last = self.let, max(k for k, x in enumerate(loop.body) if isinstance(x, Assign))
        combiners: list[Any] = [each for each in loop.body[:last] if isinstance(each, Let) and any(
            each.target is other.value for other in loop.body if isinstance(other, Assign))]
        reads = {x.target: x.variable for x in loop.body[:last] if isinstance(x, Read)}
        first = tuple(each for each in loop.body[:last] if each not in combiners
                      and not isinstance(each, Read | Assign))
        parts: list[dict[Any, Any]] = []
        for index in indices:
            parts.append({loop.index: index})
            self.add(*copied(first, parts[-1]))
        for combiner in combiners:
            v, x = sorted(combiner.args, key=lambda x: x not in reads)
            identity = literal(identity_element(combiner.op, x.dtype), x.dtype)
            sums = [*accumulate((names.get(x, x) for names in parts), partial(let, combiner.op))]
            total = let("select", in_range, sums[-1], identity) if in_range else sums[-1]
            exclusive, total = self.block_scan(combiner.op, total, identity)
            so_far: Any = Scalar("before", x.dtype)
            self.add(Read(so_far, reads[v]))
            before = let(combiner.op, so_far, exclusive)
            for names, each in zip(parts, sums, strict=True):
                names[combiner.target] = let(combiner.op, before, each)
            self.add(Assign(reads[v], let(combiner.op, so_far, total)))
        rest = tuple(x for names in parts for x in substituted(loop.body[last + 1:], names))
        self.add(*[If(in_range, rest)] if in_range else rest)

    def block_scan(self, op: str, x: Any, identity: Operand) -> tuple[Operand, Operand]:
        """An exclusive scan over the threads of a block; and the total."""
        let, total, before = self.let, x, identity
        for bit in range(5):
            other = self.shuffle(total, 1 << bit)
            is_behind = let("ne", let("and", self.thread, 1 << bit), 0)
            before = let("select", is_behind, let(op, other, before) if bit else other, before)
            total = let(op, total, other)
        return self.behind_warps(op, let("div", self.thread, WARP), before, self.warp_values(total))

    def behind_warps(self, op: str, warp: Operand, x: Any, warps: list) -> tuple[Any, Any]:
        """The scan of a warp behind the totals of those before it; and the total of all."""
        block_total = warps[0]
        for k, each in enumerate(warps[1:], 1):
            x = self.let("select", self.let("eq", warp, k), self.let(op, block_total, x), x)
            block_total = self.let(op, block_total, each)
        return x, block_total

    def warp_reduce(self, op: str, x: Operand) -> Operand:
        """A butterfly reduction: each value is combined with that of its neighbour, of the next
        pair, and so on.
        """
        for bit in range(5):
            x = self.let(op, x, self.shuffle(x, 1 << bit))
        return x

    def shuffle(self, x: Operand, lane_mask: int) -> Operand:
        """The value of another thread in the warp, by words of 32 bits, which processors shuffle.
        """
        let, dtype, bits = self.let, x.dtype, 8 * x.dtype.itemsize
        if dtype == BOOL:
            return let("ne", self.shuffle(let("convert", x, to=np.uint32), lane_mask), 0)
        if dtype.kind != "u":
            word = let("bitcast", x, to=np.dtype(f"uint{bits}"))
            return let("bitcast", self.shuffle(word, lane_mask), to=dtype)
        if bits < 32:
            word = self.shuffle(let("convert", x, to=np.uint32), lane_mask)
            return let("convert", word, to=dtype)
        if bits > 32:
            low, high = (self.shuffle(let("convert", part, to=np.uint32), lane_mask)
                         for part in (x, let("shr_logical", x, 32)))
            return let("or", let("convert", low, to=dtype),
                       let("shl", let("convert", high, to=dtype), 32))
        other = Scalar("other", dtype)
        self.add(Shuffle(other, x, lane_mask, (1 << WARP) - 1))
        return other

    def block_reduce(self, op: str, x: Operand) -> Operand:
        """Combine the results of the warps, in a fixed order."""
        return reduce_pairwise(partial(self.let, op), self.warp_values(x))

    def warp_values(self, x: Any) -> list[Any]:
        """The values of the first thread of each warp, through shared memory."""
        warps = self.threads // WARP
        if warps == 1:
            return [x]
        row = self.writer.temp((warps,), x.dtype, "warps", "shared")
        warp = self.let("div", self.thread, WARP)
        is_first = self.let("eq", self.let("rem", self.thread, WARP), 0)
        self.add(If(is_first, (Store(row, (warp,), x),)))
        self.barrier()
        self.loaded.add(row)
        values = [Scalar("warp", x.dtype) for _ in range(warps)]
        self.add(*(Load(value, row, (literal(k),)) for k, value in enumerate(values)))
        return values
