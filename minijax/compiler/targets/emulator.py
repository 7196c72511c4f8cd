"""A GPU emulator in NumPy: it runs launches block by block, and refuses undefined behaviour.

Builds on loops.py. Threads run side by side, as arrays, and blocks in a random order. It refuses
races, accesses out of bounds, loads of uninitialised memory, and barriers and shuffles that not all
threads reach. Chapter 27. In CUDA: compute-sanitizer.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..loops import (OPS, Assign, Barrier, Buffer, Constant, Declare, For, If, Kernel, Launch, Let,
                     Load, Operand, Read, Shuffle, Statement, Store, While)
from ..memory import round_up
from .thread_block import WARP

MAX_THREADS = 1 << 14  # threads, or those of one block
# Who has touched an element since a barrier: nobody, several threads, or one.
WHO_BITS, SEVERAL, FIRST_WHO = 40, 1, 2
POISON = 0xA5  # the contents of uninitialised memory
FIRST = 1 << 32  # address

# Called for each load and store: the statement, the block, the threads, the elements' indices.
Watch = Callable[[Statement, int, np.ndarray, np.ndarray], None]


class Refused(RuntimeError):
    """A launch has a race, an access out of bounds, or other undefined behaviour."""


class Emulator:
    """The interface of driver.Gpu, in this process's memory; no address is ever reused."""

    name = "emulator"

    def __init__(self, seed: int = 0, watch: Watch | None = None) -> None:
        self.watch = watch
        self.random = np.random.default_rng(seed)
        self.starts: list[int] = []
        self.allocations: list[Allocation] = []
        self.next, self.held = FIRST, 0

    # -- memory --------------------------------------------------------------------------------

    def allocate(self, nbytes: int) -> int:
        """The address of new memory."""
        address, self.next = self.next, self.next + round_up(nbytes + 1)
        self.starts.append(address)
        self.allocations.append(Allocation(nbytes))
        self.held += nbytes
        return address

    def free(self, address: int, nbytes: int) -> None:
        """Give memory back."""
        place = self.starts.index(address)
        del self.starts[place], self.allocations[place]
        self.held -= nbytes

    def allocation(self, address: int) -> tuple[Allocation, int]:
        """The allocation with an address, and the offset in it."""
        place = bisect(self.starts, address) - 1
        if place < 0 or address - self.starts[place] > len(self.allocations[place].bytes):
            raise Refused(f"nothing is allocated at address {address}")
        return self.allocations[place], address - self.starts[place]

    def store(self, address: int, x: np.ndarray) -> None:
        """Copy an array to the device."""
        allocation, offset = self.allocation(address)
        data = np.ascontiguousarray(x).reshape(-1).view(np.uint8)
        allocation.bytes[offset:offset + x.nbytes] = data
        allocation.note_stored(offset, x.nbytes)

    def load(self, address: int, into: np.ndarray) -> None:
        """Copy from the device."""
        allocation, offset = self.allocation(address)
        into.reshape(-1).view(np.uint8)[...] = allocation.bytes[offset:offset + into.nbytes]

    def copy(self, into: int, source: int, nbytes: int) -> None:
        """Copy on the device."""
        data = np.empty(nbytes, np.uint8)
        self.load(source, data)
        self.store(into, data)

    number = 1  # of the stream, among all of CUDA's

    def wait(self, stream: int | None = None) -> None:
        """Wait for earlier work; here it is always done."""

    wait_for_all = wait

    # -- launches ------------------------------------------------------------------------------

    def routine(self, external: str) -> Callable[..., None] | None:
        """The device implementation of a call: none, the host runs them all."""
        return None

    def prepared(self, kernel: Kernel) -> Callable[..., None]:
        """A function that launches the parts of a kernel on buffer addresses and host scalars."""
        return self.launch

    def launch(self, launch: Launch, indices: Mapping[Buffer, int], names: Mapping[Any, Any]
               ) -> None:
        """Run the blocks of a launch, in any order."""
        memory: dict[Buffer, Memory] = {}

        def memory_of(buffer: Buffer) -> Memory:
            if buffer not in memory:
                allocation, offset = self.allocation(indices[buffer])
                memory[buffer] = allocation.memory(buffer, offset)
            return memory[buffer]

        with np.errstate(all="ignore"):
            blocks = self.random.permutation(launch.blocks)
            some = max(1, MAX_THREADS // launch.threads)
            for first in range(0, launch.blocks, some):
                Blocks(launch, blocks[first:first + some], names, memory_of, self.watch
                       ).run(launch.body)


class Allocation:
    """One allocation: its bytes, and which of them are initialised."""

    def __init__(self, nbytes: int) -> None:
        self.bytes, self.initialized = np.full(nbytes, POISON, np.uint8), np.zeros(nbytes, bool)
        # Temps share memory, one after the other: each starts uninitialised.
        self.temps: dict[tuple[int, Buffer], np.ndarray] = {}

    def note_stored(self, offset: int, nbytes: int) -> None:
        """Record a store by the host."""
        self.initialized[offset:offset + nbytes] = True
        for (where, _), initialized in self.temps.items():
            if where == offset:
                initialized[...] = True

    def memory(self, buffer: Buffer, offset: int) -> Memory:
        """The buffer at an offset."""
        end = offset + buffer.nbytes
        values = self.bytes[offset:end].view(buffer.dtype)
        if buffer.role != "temp":
            return Memory(buffer, values, self.initialized[offset:end:buffer.dtype.itemsize])
        stored = self.initialized[offset:end:buffer.dtype.itemsize]  # by the host
        initialized = self.temps.setdefault((offset, buffer), stored.copy())
        return Memory(buffer, values, initialized)


class Memory:
    """A buffer during one launch: its elements, which are initialised, and who has touched each
    since the last barrier (`by` threads of a block) or in this launch (by blocks).
    """

    def __init__(self, buffer: Buffer, values: np.ndarray, initialized: np.ndarray) -> None:
        self.buffer, self.values, self.initialized = buffer, values, initialized
        self.stored: dict[str, np.ndarray] = {}
        self.loaded: dict[str, np.ndarray] = {}

    def note(self, by: str, who: np.ndarray, when: np.ndarray, indices: np.ndarray, stores: bool
             ) -> np.ndarray:
        """Record loads or stores; returns which of them are races.

        An access before another barrier (`when`) is no race any more.
        """
        for table in (self.stored, self.loaded):
            if by not in table:
                table[by] = np.zeros(len(self.values), np.int64)
        own_entry, now = who + FIRST_WHO, when << WHO_BITS

        def others(row: np.ndarray) -> np.ndarray:
            before = row[indices]
            return (before >= now) & (before < now + (1 << WHO_BITS)) & (
                before != now) & (before != now + own_entry)
        race = others(self.stored[by])
        if stores:
            race |= others(self.loaded[by])
        row = (self.stored if stores else self.loaded)[by]
        row[indices] = now + np.where(others(row), SEVERAL, own_entry)
        # Of several at once only the last has been written down.
        meanwhile = row[indices] != now + own_entry
        row[indices[meanwhile]] = now[meanwhile] + SEVERAL
        return race | meanwhile if stores else race


class Blocks:
    """Some blocks of a launch, side by side: an array has a number for each of their threads.

    `here` is the mask of the active threads.
    """

    def __init__(self, launch: Launch, blocks: np.ndarray, names: Mapping[Any, Any],
                 memory_of: Callable[[Buffer], Memory], watch: Watch | None = None) -> None:
        self.memory_of, self.watch, self.blocks = memory_of, watch, blocks
        self.each, self.count = launch.threads, launch.threads * len(blocks)
        self.thread_positions = np.arange(self.count)
        self.group = self.thread_positions // self.each  # the block of each thread
        self.block = blocks[self.group].astype(np.int64)
        self.thread = self.thread_positions % self.each
        self.who = self.block * self.each + self.thread
        self.barriers = np.zeros(self.count, np.int64)  # that a thread has passed
        self.here = np.ones(self.count, bool)
        self.names = {**names, launch.block: self.block, launch.thread: self.thread}
        self.shared: dict[Buffer, Memory] = {}
        self.local: dict[Buffer, tuple[np.ndarray, np.ndarray]] = {}

    def run(self, body: Sequence[Statement]) -> None:
        """Run statements on all active threads."""
        for statement in body:
            getattr(self, "run_" + type(statement).__name__.lower())(statement)

    def value(self, x: Operand) -> np.ndarray:
        """The values of an operand, one for each thread."""
        value = x.value if isinstance(x, Constant) else self.names[x]
        if type(value) is np.ndarray and value.shape == self.here.shape:
            return value
        return np.broadcast_to(np.asarray(value), self.count)

    @contextmanager
    def only(self, some: np.ndarray) -> Iterator[bool]:
        """Narrow the mask in the body; yields whether any thread is active."""
        before, self.here = self.here, self.here & some
        try:
            yield bool(self.here.any())
        finally:
            self.here = before

    def refuse_if(self, wrong: np.ndarray, statement: Statement, why: str) -> None:
        """Refuse a statement if some active threads are `wrong`."""
        if wrong.any():
            raise Refused(f"{why} in block {self.block[self.here][wrong][0]}: {statement}")

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

    def indices(self, statement: Load | Store) -> np.ndarray:
        """The linear indices that the active threads access."""
        buffer, index = statement.buffer, statement.index
        if len(index) == 1:
            indices = self.value(index[0])[self.here]
            inside = (indices >= 0) & (indices < buffer.size)
        else:
            at = [self.value(i)[self.here] for i in index]
            inside = np.all([(i >= 0) & (i < n) for i, n in zip(at, buffer.shape, strict=True)],
                            axis=0) if at else np.ones(self.here.sum(), bool)
            indices = sum((i * np.prod(buffer.shape[k + 1:], dtype=int)
                           for k, i in enumerate(at)), np.zeros(self.here.sum(), int))
        self.refuse_if(~inside, statement, f"an index outside of {buffer.name}")
        if self.watch is not None:
            self.report(self.watch, statement, indices)
        return indices

    def report(self, watch: Watch, statement: Statement, indices: np.ndarray) -> None:
        """Report the accesses of each block to the watcher."""
        for k, block in enumerate(self.blocks):
            mine = self.group[self.here] == k
            if mine.any():
                watch(statement, int(block), self.thread[self.here][mine], indices[mine])

    def shared_memory(self, buffer: Buffer) -> Memory:
        """A shared buffer, with a copy for each block."""
        if buffer not in self.shared:
            size = buffer.size * len(self.blocks)
            self.shared[buffer] = Memory(buffer, np.zeros(size, buffer.dtype), np.zeros(size, bool))
        return self.shared[buffer]

    def touch(self, statement: Load | Store, stores: bool) -> tuple[Memory, np.ndarray]:
        buffer, indices, here = statement.buffer, self.indices(statement), self.here
        if buffer.role == "shared":
            memory, indices = self.shared_memory(buffer), indices + self.group[here] * buffer.size
        else:
            memory = self.memory_of(buffer)
        if buffer.role in ("input", "constant") and not stores:  # as nothing ever stores there
            return memory, indices
        race = memory.note("threads", self.who[here], self.barriers[here], indices, stores)
        if buffer.role != "shared":
            race |= memory.note("blocks", self.block[here], 0 * indices, indices, stores)
        self.refuse_if(race, statement, f"a race for {buffer.name}")
        return memory, indices

    def run_load(self, load: Load) -> None:
        result = np.zeros(self.count, load.target.dtype)
        if load.buffer.role == "local":
            values, initialized = self.own(load.buffer)
            at = self.thread_positions[self.here], self.indices(load)
            result[self.here], well = values[at], initialized[at]
        else:
            memory, indices = self.touch(load, False)
            result[self.here], well = memory.values[indices], memory.initialized[indices]
        self.refuse_if(~well, load, f"nothing has been stored in {load.buffer.name}")
        self.names[load.target] = result

    def run_store(self, store: Store) -> None:
        new = self.value(store.value)[self.here]
        if store.buffer.role == "local":
            at = self.thread_positions[self.here], self.indices(store)
            for row, value in zip(self.own(store.buffer), (new, True), strict=True):
                row[at] = value
            return
        memory, indices = self.touch(store, True)
        memory.values[indices], memory.initialized[indices] = new, True

    def own(self, buffer: Buffer) -> tuple[np.ndarray, np.ndarray]:
        """A local buffer: the elements of each thread, and which of them are initialised."""
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
        here = self.here.reshape(-1, self.each)
        missing = np.repeat((~here).sum(axis=1), self.each)[self.here]
        self.refuse_if(missing > 0, barrier,
                       f"{missing.max(initial=0)} threads do not reach a barrier")
        self.barriers += self.here

    def run_shuffle(self, shuffle: Shuffle) -> None:
        warps = self.here.reshape(-1, WARP)
        named = (shuffle.mask >> np.arange(WARP) & 1).astype(bool)
        wrong = np.repeat((warps != named).any(axis=1), WARP)[self.here]
        self.refuse_if(wrong, shuffle, "the threads of a shuffle are not those of its mask")
        lane_mask = self.thread_positions ^ shuffle.lane_mask
        self.names[shuffle.target] = self.value(shuffle.value)[lane_mask]
