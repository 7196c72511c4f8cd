"""Which loops threads share: the outermost ones that are long and whose turns are independent.

Stands on loops.py. llvm.py prints the body of such a loop as a function of its own, which pool.py
runs block by block. Chapter 26. In XLA: the parallel task assignment of its CPU backend.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .host import is_host_call
from .loops import (
    Address, Assign, Buffer, Call, Check, Constant, Declare, Flat, For, If, Kernel, Let, Load,
    Operand, Read, Scalar, Statement, Store, Variable, While,
)
from .probe import cost_of

LONG = 1 << 19         # simple operations: some 20 µs, twice what waking a thread takes
BLOCK = 1 << 17        # of a block: long against the taking of it
MOST_BLOCKS = 64
LINE = 16              # turns that write one cache line stay in one block
OWN = 256 * 1024       # bytes of temps that each thread has a copy of, in its cache


@dataclass(frozen=True)
class Shared:
    """How threads share a loop: `step` turns are a block; what its body takes from outside."""

    blocks: int
    step: int
    captured: tuple[Buffer | Scalar | Variable, ...]
    private: tuple[Buffer, ...]  # temps that each thread has for itself


def shared_loops(kernel: Kernel) -> dict[For, Shared]:
    """The loops that are worth it. Which they are, and their blocks, never depends on threads."""
    everywhere = Names(kernel.body)
    return dict(_search(kernel.body, everywhere))


def _search(body: Sequence[Statement], everywhere: Names) -> Iterator[tuple[For, Shared]]:
    for statement in body:
        match statement:
            case For():
                found = _share(statement, everywhere)
                if found is not None:
                    yield statement, found
                else:
                    yield from _search(statement.body, everywhere)
            case While(condition, _, inner):
                yield from _search((*condition, *inner), everywhere)
            case If(_, then, orelse):
                yield from _search((*then, *orelse), everywhere)


def _share(loop: For, everywhere: Names) -> Shared | None:
    if loop.vectorize not in ("parallel", "apart"):
        return None
    if not (isinstance(loop.start, Constant) and isinstance(loop.stop, Constant)):
        return None
    turns, cost = int(loop.stop.value), cost_of((loop,))
    if loop.start.value != 0 or turns < 2 or cost < LONG:
        return None
    names = Names(loop.body)
    outside = {v for v in names.assigned if v not in names.defined}
    private = [x for x in names.buffers if x.role == "temp"
               and names.buffers[x] == everywhere.buffers[x] and loop.vectorize == "apart"]
    if names.leaves or outside or sum(x.nbytes for x in private) > OWN:
        return None
    # Turns of an "apart" loop are independent only if each has its own copy of its scratch space.
    scratch = {x for x in names.loaded & names.stored if x.role == "temp"}
    if loop.vectorize == "apart" and not scratch <= set(private):
        return None
    captured = [x for x in (*names.buffers, *names.used)
                if x not in names.defined and x not in private and x is not loop.index]
    wanted = min(max(int(cost) // BLOCK, 2), MOST_BLOCKS, turns)
    step = -(-turns // wanted)
    if turns >= LINE * wanted:
        step = -(-step // LINE) * LINE
    return Shared(-(-turns // step), step, tuple(captured), tuple(private))


class Names:
    """What statements use and define, in the order of first use; buffers with their number of uses.
    """

    def __init__(self, body: Sequence[Statement]) -> None:
        self.buffers: dict[Buffer, int] = {}
        self.used: dict[Scalar | Variable, None] = {}
        self.defined: set[Scalar | Variable] = set()
        self.assigned: set[Variable] = set()
        self.loaded: set[Buffer] = set()
        self.stored: set[Buffer] = set()
        self.leaves = False  # the kernel, or into Python: in a certain order, and one by one
        self.body(body)

    def body(self, statements: Sequence[Statement]) -> None:
        """Note everything, at any depth."""
        for statement in statements:
            self.statement(statement)

    def statement(self, statement: Statement) -> None:
        """Note one statement."""
        match statement:
            case Let(target, _, args):
                self.use(*args)
                self.defined.add(target)
            case Load(target, buffer, index):
                self.place(buffer, index)
                self.loaded.add(buffer)
                self.defined.add(target)
            case Store(buffer, index, value):
                self.place(buffer, index)
                self.stored.add(buffer)
                self.use(value)
            case Declare(variable, value):
                self.use(value)
                self.defined.add(variable)
            case Assign(variable, value):
                self.use(value, variable)
                self.assigned.add(variable)
            case Read(target, variable):
                self.use(variable)
                self.defined.add(target)
            case For(index, start, stop, inner):
                self.use(start, stop)
                self.defined.add(index)
                self.body(inner)
            case While(condition, test, inner):
                self.body(condition)
                self.use(test)
                self.body(inner)
            case If(test, then, orelse):
                self.use(test)
                self.body((*then, *orelse))
            case Call(name, args):
                self.leaves |= is_host_call(name)
                for arg in args:
                    if not isinstance(arg, Address | Buffer):
                        self.use(arg)
                        continue
                    buffer = arg if isinstance(arg, Buffer) else arg.buffer
                    self.place(buffer, () if isinstance(arg, Buffer) else arg.index)
                    self.loaded.add(buffer)
                    self.stored.add(buffer)
            case Check():
                self.leaves = True

    def use(self, *operands: Operand | Variable) -> None:
        """Note scalars and variables."""
        self.used.update((x, None) for x in operands if not isinstance(x, Constant))

    def place(self, buffer: Buffer, index: tuple[Operand, ...] | Flat) -> None:
        """Note a buffer and the index it is used at."""
        self.buffers[buffer] = self.buffers.get(buffer, 0) + 1
        self.use(*([index.position] if isinstance(index, Flat) else index))
