"""A GPU in NumPy: runs launches block by block, and refuses what a real one would get wrong.

Stands on team.py. The threads of a block run side by side, as arrays, and blocks in a random order.
Refused are races, strays outside of a buffer, loads of what was never stored, and barriers and
shuffles that not all threads reach. Chapter 27. In CUDA: compute-sanitizer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..loops import (
    OPS, Address, Assign, Barrier, Buffer, Call, Constant, Declare, For, If, Kernel,
    Launch, Let, Load, Operand, Read, Shuffle, Statement, Store, While,
)
from .team import WARP

Meaning = Callable[[str], Callable[..., None]]  # of the routines that the host calls
NOBODY, SEVERAL = -1, -2


class Refused(RuntimeError):
    """What a launch does would not be the same on each run, or is outside of its memory."""


def emulate(kernel: Kernel, inputs: Sequence[np.ndarray], meaning: Meaning, seed: int = 0
            ) -> list[np.ndarray]:
    """Run a scheduled kernel; returns its outputs.

    Raises:
      Refused: for what a GPU would get wrong, with the statement.
      RuntimeError: where a check of the kernel fails.
    """
    device = Device(kernel, inputs, meaning, np.random.default_rng(seed))
    with np.errstate(all="ignore"):
        device.run(kernel.body)
    for memory in device.memory.values():
        if memory.buffer.name.startswith("errors") and memory.values.any():
            raise RuntimeError(f"{kernel.name}: check {int(np.argmax(memory.values))} failed")
    return [device.memory[x].values.reshape(x.shape) for x in kernel.outputs]


class Memory:
    """The elements of a buffer, which of them have been stored to, and who has touched them since
    the last barrier (`by` threads of a block) or in this launch (by blocks).
    """

    def __init__(self, buffer: Buffer, values: np.ndarray | None = None) -> None:
        self.buffer = buffer
        self.values = np.zeros(buffer.size, buffer.dtype) if values is None else values.ravel()
        self.known = np.full(buffer.size, values is not None)
        self.touched: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    def note(self, by: str, who: np.ndarray, places: np.ndarray, stores: bool) -> bool:
        """Write down who loads from some places, or stores to them; whether that is a race."""
        if by not in self.touched:
            nobody = np.full(self.buffer.size, NOBODY)
            self.touched[by] = nobody, nobody.copy()
        stored, loaded = self.touched[by]

        def others(row: np.ndarray) -> bool:
            return bool(((row[places] != NOBODY) & (row[places] != who)).any())
        race = others(stored) or (stores and others(loaded))
        row = stored if stores else loaded
        before = row[places]
        row[places] = np.where((before == NOBODY) | (before == who), who, SEVERAL)
        # Of several at once only the last has been written down.
        meanwhile = row[places] != who
        race |= stores and bool(meanwhile.any())
        row[places[meanwhile]] = SEVERAL
        return race


class Device:
    """The memory of a GPU, and what the host does with it."""

    def __init__(self, kernel: Kernel, inputs: Sequence[np.ndarray], meaning: Meaning,
                 random: np.random.Generator) -> None:
        self.meaning, self.random = meaning, random
        given: dict[Buffer, Any] = dict(zip(kernel.inputs, inputs, strict=True))
        given |= {x: x.value for x in kernel.constants}
        self.memory = {x: Memory(x, np.array(given[x], x.dtype) if x in given else None)
                       for x in kernel.buffers}
        for x, memory in self.memory.items():
            memory.known |= x.name.startswith("errors")  # which begin as zeros
        self.names: dict[Any, Any] = {}

    def run(self, body: Sequence[Statement]) -> None:
        """What the host does, statement by statement."""
        for statement in body:
            match statement:
                case Launch():
                    self.launch(statement)
                case Load(target, buffer, index):
                    [place] = map(self.value, index)
                    self.names[target] = self.memory[buffer].values[place]
                case For(index, start, stop, inner):
                    for i in range(int(self.value(start)), int(self.value(stop))):
                        self.names[index] = np.int64(i)
                        self.run(inner)
                case While(condition, test, inner):
                    self.run(condition)
                    while self.value(test):
                        self.run(inner)
                        self.run(condition)
                case If(test, then, orelse):
                    self.run(then if self.value(test) else orelse)
                case Call(external, args):
                    self.meaning(external)(*map(self.argument, args))
                case _:
                    raise Refused(f"the host cannot run {statement}")

    def value(self, x: Operand) -> Any:
        return x.value if isinstance(x, Constant) else self.names[x]

    def argument(self, x: Any) -> Any:
        if isinstance(x, Address):
            memory, place = self.memory[x.buffer], int(self.value(x.index[0]))
            memory.known[:] = True
            return memory.values[place:]
        if isinstance(x, Buffer):
            self.memory[x].known[:] = True
            return self.memory[x].values
        return self.value(x)

    def launch(self, launch: Launch) -> None:
        """Run the blocks of a launch, in any order."""
        for memory in self.memory.values():
            memory.touched.clear()
        for block in self.random.permutation(launch.blocks):
            Block(self, launch, int(block)).run(launch.body)


class Block:
    """The threads of one block; `here` says which of them run the present statement."""

    def __init__(self, device: Device, launch: Launch, block: int) -> None:
        self.device, self.block, self.count = device, block, launch.threads
        self.threads = np.arange(launch.threads)
        self.here = np.ones(launch.threads, bool)
        self.names = {**device.names, launch.block: np.int64(block), launch.thread: self.threads}
        self.shared: dict[Buffer, Memory] = {}
        self.local: dict[Buffer, tuple[np.ndarray, np.ndarray]] = {}
        self.open: set[Memory] = set()  # what was touched since the last barrier

    def run(self, body: Sequence[Statement]) -> None:
        """Run statements, on all threads that are here."""
        for statement in body:
            getattr(self, "run_" + type(statement).__name__.lower())(statement)

    def value(self, x: Operand) -> np.ndarray:
        """What each thread has under a name."""
        value = x.value if isinstance(x, Constant) else self.names[x]
        return np.broadcast_to(np.asarray(value), self.count)

    @contextmanager
    def only(self, some: np.ndarray) -> Iterator[bool]:
        """Meanwhile some threads are here; whether there are any."""
        before, self.here = self.here, self.here & some
        try:
            yield bool(self.here.any())
        finally:
            self.here = before

    def refuse(self, statement: Statement, why: str) -> None:
        raise Refused(f"{why} in block {self.block}: {statement}")

    # -- scalars -------------------------------------------------------------------------------

    def run_let(self, let: Let) -> None:
        target = [let.target.dtype] if OPS[let.op].result == "target" else []
        self.names[let.target] = OPS[let.op].meaning(*map(self.value, let.args), *target)

    def run_declare(self, declare: Declare) -> None:
        self.names[declare.variable] = np.array(self.value(declare.value))

    def run_assign(self, assign: Assign) -> None:
        old = self.names[assign.variable]
        self.names[assign.variable] = np.where(self.here, self.value(assign.value), old)

    def run_read(self, read: Read) -> None:
        self.names[read.target] = self.names[read.variable]

    # -- memory --------------------------------------------------------------------------------

    def places(self, statement: Load | Store) -> np.ndarray:
        """Where in a buffer the threads that are here load or store."""
        buffer, index = statement.buffer, statement.index
        if len(index) == 1:
            places = self.value(index[0])[self.here]
            inside = (places >= 0) & (places < buffer.size)
        else:
            at = [self.value(i)[self.here] for i in index]
            inside = np.all([(i >= 0) & (i < n) for i, n in zip(at, buffer.shape, strict=True)],
                            axis=0) if at else np.ones(self.here.sum(), bool)
            places = sum((i * np.prod(buffer.shape[k + 1:], dtype=int)
                          for k, i in enumerate(at)), np.zeros(self.here.sum(), int))
        if not inside.all():
            self.refuse(statement, f"an index outside of {buffer.name}")
        return places

    def memory(self, buffer: Buffer) -> Memory:
        if buffer.role == "shared":
            return self.shared.setdefault(buffer, Memory(buffer))
        return self.device.memory[buffer]

    def touch(self, statement: Load | Store, stores: bool) -> tuple[Memory, np.ndarray]:
        memory, places = self.memory(statement.buffer), self.places(statement)
        self.open.add(memory)
        race = memory.note("threads", self.threads[self.here], places, stores)
        if memory.buffer.role != "shared":
            race |= memory.note("blocks", np.full(len(places), self.block), places, stores)
        if race and not memory.buffer.name.startswith("errors"):
            self.refuse(statement, f"a race for {memory.buffer.name}")
        return memory, places

    def run_load(self, load: Load) -> None:
        found = np.zeros(self.count, load.target.dtype)
        if load.buffer.role == "local":
            values, known = self.own(load.buffer)
            at = self.threads[self.here], self.places(load)
            found[self.here], well = values[at], known[at]
        else:
            memory, places = self.touch(load, False)
            found[self.here], well = memory.values[places], memory.known[places]
        if not well.all():
            self.refuse(load, f"nothing has been stored in {load.buffer.name}")
        self.names[load.target] = found

    def run_store(self, store: Store) -> None:
        new = self.value(store.value)[self.here]
        if store.buffer.role == "local":
            at = self.threads[self.here], self.places(store)
            for row, value in zip(self.own(store.buffer), (new, True), strict=True):
                row[at] = value
            return
        memory, places = self.touch(store, True)
        memory.values[places], memory.known[places] = new, True

    def own(self, buffer: Buffer) -> tuple[np.ndarray, np.ndarray]:
        """What each thread has for itself, and what of it has been stored to."""
        shape = self.count, buffer.size
        return self.local.setdefault(buffer, (np.zeros(shape, buffer.dtype), np.zeros(shape, bool)))

    # -- control -------------------------------------------------------------------------------

    def run_for(self, loop: For) -> None:
        index, stop = np.array(self.value(loop.start)), self.value(loop.stop)
        while True:
            with self.only(index < stop) as any_left:
                if not any_left:
                    return
                self.names[loop.index] = index
                self.run(loop.body)
            index = index + 1

    def run_while(self, loop: While) -> None:
        before = self.here
        while True:
            self.run(loop.condition)
            self.here = self.here & self.value(loop.test)
            if not self.here.any():
                break
            self.run(loop.body)
        self.here = before

    def run_if(self, branch: If) -> None:
        test = self.value(branch.test)
        for side, body in ((test, branch.then), (~test, branch.orelse)):
            with self.only(side) as any_here:
                if any_here:
                    self.run(body)

    # -- together ------------------------------------------------------------------------------

    def run_barrier(self, barrier: Barrier) -> None:
        if not self.here.all():
            self.refuse(barrier, f"{(~self.here).sum()} threads do not reach a barrier")
        for memory in self.open:
            memory.touched.pop("threads", None)
        self.open.clear()

    def run_shuffle(self, shuffle: Shuffle) -> None:
        warps = self.here.reshape(-1, WARP)
        named = (shuffle.mask >> np.arange(WARP) & 1).astype(bool)
        if ((warps != named).any(axis=1) & warps.any(axis=1)).any():
            self.refuse(shuffle, "the threads of a shuffle are not those of its mask")
        self.names[shuffle.target] = self.value(shuffle.value)[self.threads ^ shuffle.across]
