"""Runs scheduled kernels on a device: the host's statements between launches.

Builds on launches.py; a device is a driver.Gpu or an emulator.Emulator. The host runs on copies
the calls that no launch can run. Chapter 27. In JAX: XLA's thunks and PJRT's buffers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import host
from ..loops import (Address, Buffer, Call, Check, Constant, For, If, Kernel, Launch, Load, Operand,
                     Statement, While, accessed)
from ..memory import addresses
from .calls import meaning
from .coalescing import ALIGNMENT
from .emulator import Emulator, Watch


def copy_of(device: Any, address: int, shape: Sequence[int], dtype: Any) -> np.ndarray:
    """A copy of device memory in the host's."""
    data = np.empty(shape, dtype)
    device.load(address, data)
    return data


class Memory:
    """Device memory, freed with the last reference."""

    __slots__ = ("__weakref__", "address", "device", "nbytes", "owner")

    def __init__(self, device: Any, nbytes: int, address: int | None = None, owner: Any = None):
        self.device, self.nbytes, self.owner = device, nbytes, owner
        self.address = device.allocate(nbytes) if address is None else address

    @classmethod
    def of(cls, device: Any, x: np.ndarray) -> Memory:
        """Device memory with a copy of an array."""
        memory = cls(device, x.nbytes)
        device.store(memory.address, np.ascontiguousarray(x))
        return memory

    @classmethod
    def borrowed(cls, device: Any, address: int, nbytes: int, owner: Any) -> Memory:
        """Memory of another owner, who keeps it alive; it is read-only. Launches access several
        numbers at once: a copy, where it is not aligned.
        """
        memory = cls(device, nbytes, address, owner)
        return memory.copy() if address % ALIGNMENT else memory

    def copy(self) -> Memory:
        """A copy on the same device."""
        copy = Memory(self.device, self.nbytes)
        self.device.copy(copy.address, self.address, self.nbytes)
        return copy

    def read(self, shape: Sequence[int], dtype: Any) -> np.ndarray:
        """A copy of its contents in host memory."""
        return copy_of(self.device, self.address, shape, dtype)

    def __del__(self) -> None:
        try:
            if self.owner is None:
                self.device.free(self.address, self.nbytes)
            else:
                self.device.wait()  # earlier work may still read it
        except Exception:  # noqa: SIM105  at the end of a process all has gone before, contextlib too
            pass


class Program:
    """A scheduled kernel, ready to run on a device."""

    def __init__(self, kernel: Kernel, device: Any) -> None:
        self.kernel, self.device = kernel, device
        self.prepared = device.prepared(kernel)
        self.idle: list[Any] = []  # launches, each for one call at a time; one, without threads
        self.sizes = [x.nbytes for x in kernel.outputs]
        self.constants = [Memory.of(device, np.asarray(x.value)) for x in kernel.constants]

    def __call__(self, *inputs: Memory) -> list[Memory]:
        """Launch the program; returns output memory, which is filled asynchronously."""
        device, size = self.device, self.kernel.workspace_size
        outputs = [Memory(device, nbytes) for nbytes in self.sizes]
        workspace = Memory(device, size) if size else None
        places = [x.address for x in (*inputs, *outputs, *self.constants)]
        places.append(workspace.address if workspace is not None else 0)
        try:
            launches = self.idle.pop()
        except IndexError:
            launches = self.prepared()
        launches.write(*places)
        if launches.is_straight:
            launches.all()
        else:
            Run(self, launches, places).body(self.kernel.body)
        self.idle.append(launches)  # unless it failed, and left half of what it was to write
        return outputs


class Run:
    """One run of a program: the addresses of its buffers, and the host's scalars."""

    def __init__(self, program: Program, launches: Any, places: Sequence[int]) -> None:
        self.device, self.launch = program.device, launches.one
        self.addresses = addresses(program.kernel, places)
        self.scalars: dict[Any, Any] = {}

    def body(self, statements: Sequence[Statement]) -> None:
        """Run the host's statements."""
        for statement in statements:
            match statement:
                case Launch():
                    self.launch(statement, self.scalars)
                case Load(target, buffer, index):
                    address = self.passed(Address(buffer, index))
                    self.scalars[target] = copy_of(self.device, address, (), buffer.dtype)[()]
                case For(index, start, stop, inner):
                    for i in range(int(self.value(start)), int(self.value(stop))):
                        self.scalars[index] = np.int64(i)
                        self.body(inner)
                case While(condition, test, inner):
                    self.body(condition)
                    while self.value(test):
                        self.body(inner)
                        self.body(condition)
                case If(test, then, orelse):
                    self.body(then if self.value(test) else orelse)
                case Call():
                    self.call(statement)
                case Check(ok):
                    if not self.value(ok):
                        host.reraise()
                case _:
                    raise TypeError(f"the host cannot run {statement}")

    def value(self, x: Operand) -> Any:
        """A scalar that the host knows."""
        return x.value if isinstance(x, Constant) else self.scalars[x]

    def call(self, call: Call) -> None:
        """Run a call: on the device if it can, else on the host, on copies that are written back.
        """
        routine: Callable | None = self.device.routine(call.external)
        if routine is not None:
            routine(*map(self.passed, call.args))
            return
        copies = {x: copy_of(self.device, self.addresses[x], x.shape, x.dtype)
                  for x in dict.fromkeys(accessed(call))}

        def argument(x: Any) -> Any:
            if isinstance(x, Address):
                return copies[x.buffer].reshape(-1)[self.offset(x):]
            return copies[x].reshape(-1) if isinstance(x, Buffer) else self.value(x)
        meaning(call.external)(*map(argument, call.args))
        for x, copy in copies.items():
            if x.role not in ("input", "constant"):
                self.device.store(self.addresses[x], copy)

    def offset(self, x: Address) -> int:
        """The linear index of an address in its buffer."""
        index = [int(self.value(i)) for i in x.index]
        if len(index) < 2:
            return index[0] if index else 0
        return int(np.ravel_multi_index(index, x.buffer.shape))

    def passed(self, x: Any) -> Any:
        """The argument of a device routine: an address, or a number."""
        if isinstance(x, Address):
            return self.addresses[x.buffer] + self.offset(x) * x.buffer.dtype.itemsize
        return self.addresses[x] if isinstance(x, Buffer) else self.value(x)


def emulate(kernel: Kernel, inputs: Sequence[np.ndarray], seed: int = 0,
            watch: Watch | None = None) -> list[np.ndarray]:
    """Run a scheduled kernel on an emulated device; returns its outputs.

    Args:
      watch: what is told of each load and store of a launch: the statement, the block, the numbers
        of the threads, and the place in the buffer that each of these has.

    Raises:
      Refused: for what a GPU would get wrong, with the statement.
    """
    device = Emulator(seed, watch)
    arguments = [Memory.of(device, np.asarray(x, buffer.dtype).reshape(buffer.shape))
                 for x, buffer in zip(inputs, kernel.inputs, strict=True)]
    outputs = Program(kernel, device)(*arguments)
    return [out.read(x.shape, x.dtype) for out, x in zip(outputs, kernel.outputs, strict=True)]
