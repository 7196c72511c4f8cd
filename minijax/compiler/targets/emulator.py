"""A GPU emulator in NumPy: it runs launches block by block, and refuses undefined behaviour.

Builds on loops.py. Threads run side by side, as arrays, and blocks in a random order. It refuses
races, accesses out of bounds, loads of uninitialised memory, and barriers and shuffles that not all
threads reach. Chapter 27. In CUDA: compute-sanitizer.
"""

from __future__ import annotations

from bisect import bisect
import itertools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..loops import (MMA, OPS, WRITES, Assign, Atomic, Barrier, Buffer, Constant, Declare, For, If,
                     Kernel, Launch, Let, Load, Operand, Read, Shuffle, Statement, Store, While)
from ..memory import addresses, round_up
from .look_back import waits
from .thread_block import WARP

MAX_THREADS = 1 << 14  # threads, or those of one block
RESIDENT = 8  # blocks that run side by side, if they wait for each other
# Who has touched an element since a barrier: nobody, several threads, or one.
WHO_BITS, SEVERAL, FIRST_WHO = 40, 1, 2
ATOMICS: dict[str, Callable] = {
    **{op: OPS[op].meaning for op in ("add", "min", "max")},
    "turn": lambda old, last: np.where(old >= last, 0, old + 1), "read": lambda old, _: old}
TF32_REST = (1 << 13) - 1  # the bits of a float32 that TF32 has not
POISON = 0xA5  # the contents of uninitialised memory
FIRST = 1 << 32  # address

# Called for each load and store: the statement, the block, the threads, the elements' indices.
Watch = Callable[[Statement, int, np.ndarray, np.ndarray], None]


class Refused(RuntimeError):
    """A launch has a race, an access out of bounds, or other undefined behaviour."""


class Emulator:
    """The interface of driver.Gpu, in this process's memory; no address is ever reused."""

    name = "emulator"
    has_tensor_cores = True

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

    def prepared(self, kernel: Kernel) -> Callable[[], Launches]:
        """A constructor of the launches of a kernel."""
        return lambda: Launches(self, kernel)

    def launch(self, launch: Launch, indices: Mapping[Buffer, int], names: Mapping) -> None:
        """Run the blocks of a launch, in any order."""
        memory: dict[Buffer, Memory] = {}
        clocks = VectorClocks(launch.blocks)

        def memory_of(buffer: Buffer) -> Memory:
            if buffer not in memory:
                allocation, offset = self.allocation(indices[buffer])
                memory[buffer] = allocation.memory(buffer, offset)
            return memory[buffer]

        with np.errstate(all="ignore"):
            blocks = self.random.permutation(launch.blocks)
            some = 1 if waits(launch) else max(1, MAX_THREADS // launch.threads)
            groups = (Blocks(self, launch, blocks[first:first + some], names, memory_of, clocks)
                      for first in range(0, launch.blocks, some))
            if waits(launch):
                SideBySide(self.random, launch.body).run(groups)
            else:
                for group in groups:
                    group.run(launch.body)


class SideBySide:
    """Runs blocks that wait for each other, in threads of which one runs at a time: at a barrier,
    or while it waits, a block may have to let others go on.
    """

    def __init__(self, random: np.random.Generator, body: Sequence[Statement]) -> None:
        self.random, self.body = random, body
        self.turn = threading.Semaphore(0)  # of this thread
        self.turns: dict[Blocks, threading.Semaphore] = {}  # of each block's
        self.waiting: set[Blocks] = set()  # since another one has last gone on
        self.errors: list[BaseException] = []

    def run(self, blocks: Iterator[Blocks]) -> None:
        """Run all, some at a time."""
        for block in itertools.islice(blocks, RESIDENT):
            self.start(block)
        while self.turns:
            able = [x for x in self.turns if x not in self.waiting or self.errors]
            if not able:
                self.errors.append(Refused("all blocks wait for what none of them will store"))
                continue
            self.turns[able[self.random.integers(len(able))]].release()
            self.turn.acquire()
            for block in itertools.islice(blocks, len(self.turns) < RESIDENT):
                self.start(block)
        if self.errors:
            raise self.errors[0]

    def start(self, block: Blocks) -> None:
        block.pause, self.turns[block] = self.pause, threading.Semaphore(0)
        threading.Thread(target=self.run_one, args=(block,), daemon=True).start()

    def run_one(self, block: Blocks) -> None:
        self.turns[block].acquire()
        try:
            with np.errstate(all="ignore"):
                if not self.errors:
                    block.run(self.body)
        except BaseException as error:
            self.errors.append(error)
        self.waiting.clear()
        del self.turns[block]
        self.turn.release()

    def pause(self, block: Blocks, is_waiting: bool) -> None:
        """Let others go on."""
        self.waiting = self.waiting | {block} if is_waiting else set()
        self.turn.release()
        self.turns[block].acquire()
        if self.errors:
            raise self.errors[0]


class Launches:
    """The launches of one program, with the interface of graphs.Launches."""

    is_straight = False

    def __init__(self, device: Emulator, kernel: Kernel) -> None:
        self.device, self.kernel = device, kernel
        self.addresses: Mapping[Buffer, int] = {}

    def write(self, *places: int) -> None:
        """Set the addresses of inputs, outputs, constants and the workspace."""
        self.addresses = addresses(self.kernel, places)

    def one(self, launch: Launch, numbers: Mapping[Any, Any]) -> None:
        """One launch, with these addresses and scalars of the host."""
        self.device.launch(launch, self.addresses, numbers)


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
        initialized = self.initialized[offset:end:buffer.dtype.itemsize]  # by the host
        if buffer.role == "temp":
            initialized = self.temps.setdefault((offset, buffer), initialized.copy())
        return Memory(buffer, values, initialized)


class Memory:
    """A buffer during one launch: its elements, which are initialised, and who has touched each
    since the last barrier (`by` threads of a block) or in this launch (by blocks).
    """

    def __init__(self, buffer: Buffer, values: np.ndarray, initialized: np.ndarray) -> None:
        self.buffer, self.values, self.initialized = buffer, values, initialized
        self.touched: dict[Any, np.ndarray] = {}

    def note(self, by: str, who: np.ndarray, when: np.ndarray, indices: np.ndarray, kind: Any,
             happens_before: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> np.ndarray:
        """Record accesses of one kind; returns which of them are races.

        Two accesses race unless one happens before the other: `happens_before` takes the thread of
        the earlier access and its number of barriers (`when`).
        """
        rows = {each: self.touched.setdefault((by, each), np.zeros(len(self.values), np.int64))
                for each in (Load, Store, Atomic)}
        own_entry = (when << WHO_BITS) + who + FIRST_WHO

        def others(row: np.ndarray) -> np.ndarray:
            before = row[indices]
            other, then = (before & ((1 << WHO_BITS) - 1)) - FIRST_WHO, before >> WHO_BITS
            return (before != 0) & (other != who) & ~happens_before(other, then)
        race = np.any([others(row) for each, row in rows.items()
                       if kind is Store or kind is not each], axis=0)
        row = rows[kind]
        several = (when << WHO_BITS) + SEVERAL
        row[indices] = np.where(others(row), several, own_entry)
        # Of several accesses at once the assignment kept the last.
        meanwhile = row[indices] != own_entry
        row[indices[meanwhile]] = several[meanwhile]
        return race | meanwhile if kind is Store else race


class VectorClocks:
    """Happens-before between blocks, by ordered atomic operations: for each block a clock, with the
    number of barriers of each other block whose earlier stores it sees.
    """

    def __init__(self, blocks: int) -> None:
        self.blocks = blocks
        self.clocks: dict[int, np.ndarray] = {}  # of blocks with ordered operations
        self.released: dict[Any, np.ndarray] = {}  # by the last operation at each place
        self.read: dict[int, list[np.ndarray]] = {}  # by a block since its last fence

    def synchronize(self, at: Any, block: int, barriers: int, writes: bool, ordered: int) -> None:
        """An atomic operation of a block, with a fence after it if it is ordered: acquire the clock
        released at its place and where the block has read before; if it writes, release its own.
        """
        start = np.zeros(self.blocks, np.int64)
        self.read.setdefault(block, []).append(self.released.get(at, start))
        if ordered:
            clock = self.clocks.setdefault(block, start)
            clock[block] = barriers
            np.max([clock, *self.read.pop(block)], axis=0, out=clock)
            if writes:
                self.released[at] = clock.copy()

    def happens_before(self, block: np.ndarray, other: np.ndarray, then: np.ndarray) -> np.ndarray:
        """Whether accesses of `other` blocks, after `then` of their barriers, happen before those
        of `block` now. An `other` below 0 is several blocks, and all must.
        """
        before = np.zeros(len(block), bool)
        for each in np.unique(block) if self.clocks else ():
            clock = self.clocks.get(each)
            if clock is not None:
                own = block == each
                everyone = np.delete(clock, each).min(initial=1 << 40)
                before[own] = then[own] < np.where(
                    other[own] < 0, everyone, clock[np.maximum(other[own], 0)])
        return before


class Blocks:
    """Some blocks of a launch, side by side: an array has a number for each of their threads.

    `here` is the mask of the active threads.
    """

    def __init__(self, device: Emulator, launch: Launch, blocks: np.ndarray, names: Mapping,
                 memory_of: Callable[[Buffer], Memory], clocks: VectorClocks) -> None:
        self.device, self.memory_of, self.blocks, self.clocks = device, memory_of, blocks, clocks
        self.each, self.count = launch.threads, launch.threads * len(blocks)
        self.pause: Callable[[Blocks, bool], None] = lambda block, is_waiting: None
        self.thread_positions = np.arange(self.count, dtype=np.int64)
        self.group = self.thread_positions // self.each  # the block of each thread
        self.block = blocks[self.group].astype(np.int64)
        self.thread = self.thread_positions % self.each
        self.who = self.block * self.each + self.thread
        self.barriers = np.zeros(self.count, np.int64)  # that a thread has passed
        self.here = np.ones(self.count, bool)
        self.names = {**names, launch.block: self.block, launch.thread: self.thread}
        self.copies: dict[Buffer, Memory] = {}  # of shared and local buffers

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

    def indices(self, statement: Load | WRITES) -> np.ndarray:
        """The linear indices that the active threads access."""
        buffer, index, count = statement.buffer, statement.index, self.here.sum()
        indices, inside = np.zeros(count, np.int64), np.ones(count, bool)
        shape = (buffer.size,) if len(index) == 1 else buffer.shape
        for i, n in zip(index, shape, strict=True):
            at = self.value(i)[self.here]
            indices, inside = indices * n + at, inside & (at >= 0) & (at < n)
        self.refuse_if(~inside, statement, f"an index outside of {buffer.name}")
        if self.device.watch is not None:
            self.report(self.device.watch, statement, indices)
        return indices

    def report(self, watch: Watch, statement: Statement, indices: np.ndarray) -> None:
        """Report the accesses of each block to the watcher."""
        for k, block in enumerate(self.blocks):
            mine = self.group[self.here] == k
            if mine.any():
                watch(statement, int(block), self.thread[self.here][mine], indices[mine])

    def copy(self, buffer: Buffer, owners: np.ndarray) -> Memory:
        """A shared or local buffer, with a copy for each of its owners."""
        if buffer not in self.copies:
            size = buffer.size * (owners[-1] + 1)
            self.copies[buffer] = Memory(buffer, np.zeros(size, buffer.dtype), np.zeros(size, bool))
        return self.copies[buffer]

    def touch(self, statement: Load | WRITES) -> tuple[Memory, np.ndarray]:
        buffer, indices, here = statement.buffer, self.indices(statement), self.here
        owners = {"shared": self.group, "local": self.thread_positions}.get(buffer.role)
        memory = self.memory_of(buffer) if owners is None else self.copy(buffer, owners)
        if owners is not None:
            indices = indices + owners[here] * buffer.size
        kind, block, now = type(statement), self.block[here], self.barriers[here]
        # Nothing ever stores in the first ones, and no other thread has the last.
        if not (buffer.role in ("input", "constant") and kind is Load or buffer.role == "local"):
            race = memory.note(
                "threads", self.who[here], now, indices, kind, lambda other, then: (then < now) | (
                    (other >= 0) & (other // self.each != block)))
            if buffer.role != "shared":
                race |= memory.note("blocks", block, now, indices, kind, lambda other, then: (
                    self.clocks.happens_before(block, other, then)))
            self.refuse_if(race, statement, f"a race for {buffer.name}")
        if kind is not Store:
            self.refuse_if(~memory.initialized[indices], statement,
                           f"nothing has been stored in {buffer.name}")
        return memory, indices

    def run_load(self, load: Load) -> None:
        result, (memory, indices) = np.zeros(self.count, load.target.dtype), self.touch(load)
        result[self.here] = memory.values[indices]
        self.names[load.target] = result

    def run_store(self, store: Store) -> None:
        memory, indices = self.touch(store)
        memory.values[indices] = self.value(store.value)[self.here]
        memory.initialized[indices] = True

    def run_atomic(self, atomic: Atomic) -> None:
        """One thread after the other, in a random order."""
        memory, indices = self.touch(atomic)
        new, threads = self.value(atomic.value)[self.here], np.flatnonzero(self.here)
        old = np.zeros(self.count, atomic.target.dtype)
        for k in self.device.random.permutation(len(threads)):
            at, thread = indices[k], threads[k]
            old[thread] = memory.values[at]
            memory.values[at] = ATOMICS[atomic.op](old[thread], new[k])
            if atomic.ordered or atomic.op == "read":
                self.clocks.synchronize((atomic.buffer, at), int(self.block[thread]), int(
                    self.barriers[thread]), atomic.op != "read", atomic.ordered)
        self.names[atomic.target] = old

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
            if not loop.body:
                self.pause(self, True)
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
        self.pause(self, False)

    def run_shuffle(self, shuffle: Shuffle) -> None:
        warps = self.here.reshape(-1, WARP)
        named = (shuffle.mask >> np.arange(WARP, dtype=np.int64) & 1).astype(bool)
        wrong = np.repeat((warps != named).any(axis=1), WARP)[self.here]
        self.refuse_if(wrong, shuffle, "the threads of a shuffle are not those of its mask")
        lane_mask = self.thread_positions ^ shuffle.lane_mask
        self.names[shuffle.target] = self.value(shuffle.value)[lane_mask]

    def run_mma(self, mma: MMA) -> None:
        """The terms one after the other, in float32."""
        warps = self.here.reshape(-1, WARP)
        self.refuse_if(np.repeat(~warps.all(axis=1), WARP)[self.here], mma,
                       "threads of a warp do not multiply with the others")
        words = len(mma.y) // 2  # of one or two numbers

        def parts(numbers: Sequence[Any], *axes: int) -> np.ndarray:
            rows = np.stack([*map(self.value, numbers)]).astype(np.float32)
            return rows.reshape(*axes, -1, WARP // 4, 4)
        x = parts(mma.x, 2, 2, words).transpose(3, 1, 4, 0, 5, 2).reshape(-1, 16, 8 * words)
        y = parts(mma.y, 2, words).transpose(2, 0, 4, 1, 3).reshape(-1, 8 * words, 8)
        if words == 1:
            own = warps.all(axis=1)
            digits = np.concatenate([x[own].ravel(), y[own].ravel()]).view(np.uint32) & TF32_REST
            self.refuse_if(np.full(self.here.sum(), digits.any()), mma,
                           "a factor has more digits than TF32")
        sums = parts(mma.sums, 2, 2).transpose(2, 0, 3, 4, 1).reshape(-1, 16, 8)
        for k in range(8 * words):
            sums = sums + x[:, :, k, None] * y[:, None, k]
        rows = sums.reshape(-1, 2, 8, 4, 2).transpose(1, 4, 0, 2, 3).reshape(4, -1)
        for variable, total in zip(mma.sums, rows, strict=True):
            self.names[variable] = np.where(self.here, total, self.names[variable])
