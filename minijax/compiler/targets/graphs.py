"""A program's launches on a GPU: parameters where the driver reads them, many as one CUDA graph.

Stands on ptx.py, which says what each launch is passed. Chapter 27.
In JAX: XLA's command buffers.
"""

from __future__ import annotations

import functools
import struct
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..loops import Kernel, Launch
from . import ptx

FEW = 4  # launches, which cost the host less one by one than as a graph


class Launches:
    """The launches of one program; for one call at a time.

    Launches of one buffer read its address in one place, so a call writes each address once. A
    scalar of the host has a place, too.
    """

    def __init__(self, gpu: Any, kernel: Kernel, functions: Sequence[Any]) -> None:
        self.gpu = gpu
        buffers: list[Any] = [*kernel.inputs, *kernel.outputs, *kernel.constants]
        launches = ptx.launches_of(kernel.body)
        passed = [ptx.parameters(kernel, launch) for launch in launches]
        scalars = dict.fromkeys(x for _, _, numbers in passed for x in numbers)
        places = {x: k for k, x in enumerate([*buffers, None, *scalars])}  # None: the workspace
        self.memory = np.zeros(len(places), np.uint64)
        self.write: Callable[..., None] = functools.partial(
            struct.Struct(f"{len(buffers) + 1}Q").pack_into, self.memory.data, 0)
        first = self.memory.ctypes.data
        self.used = [[places[x] for x in (*own, *numbers, *[None] * has_temps)]
                     for own, has_temps, numbers in passed]  # by each launch, as its arguments
        self.arguments = [np.array([first + 8 * k for k in used], np.uint64) for used in self.used]
        self.shapes = [(function, launch.blocks, launch.threads, arguments.ctypes.data)
                       for function, launch, arguments in zip(
                           functions, launches, self.arguments, strict=True)]
        self.calls = [functools.partial(gpu.cuda.cuLaunchKernel, function, blocks, 1, 1,
                                        threads, 1, 1, 0, gpu.stream, arguments, 0)
                      for function, blocks, threads, arguments in self.shapes]
        views = {x: self.memory[places[x]:].view(np.uint8)[:x.dtype.itemsize].view(x.dtype)
                 for x in scalars}
        self.by_launch = {launch: (call, [(x, views[x]) for x in numbers]) for
                          launch, call, (_, _, numbers) in zip(
                              launches, self.calls, passed, strict=True)}

    def one(self, launch: Launch, numbers: Mapping[Any, Any]) -> None:
        """Launch one part, on the addresses that were written, and on scalars of the host."""
        call, scalars = self.by_launch[launch]
        for x, place in scalars:
            place[0] = numbers[x]
        if call()[0]:
            self.gpu.ask(call)

    def all(self) -> None:
        """Launch all parts, on the addresses that were written."""
        for call in self.calls:
            if call()[0]:
                self.gpu.ask(call)


class Graph(Launches):
    """The launches of a program of nothing else, as one CUDA graph, one after the other."""

    def __init__(self, gpu: Any, kernel: Kernel, functions: Sequence[Any]) -> None:
        super().__init__(gpu, kernel, functions)
        self.write_places, self.write = self.write, self.update
        self.addresses: tuple[int, ...] = ()
        self.launch: Callable[[], tuple]
        self.changes: list[Callable[[], tuple]] = []  # of the parameters of each launch
        # By each address, what is launched with it.
        self.readers = [[k for k, used in enumerate(self.used) if place in used]
                        for place in range(len(self.memory))]

    def update(self, *addresses: int) -> None:
        """Write the addresses, and change the launches where one is another than last time."""
        self.write_places(*addresses)
        if not self.changes:
            self.build()
        elif addresses != self.addresses:
            for k in {k for old, new, readers in zip(
                    self.addresses, addresses, self.readers, strict=False) if old != new
                      for k in readers}:
                if self.changes[k]()[0]:
                    self.gpu.ask(self.changes[k])
        self.addresses = addresses

    def build(self) -> None:
        """Make the graph, with the addresses that were written."""
        ask, cuda = self.gpu.ask, self.gpu.cuda
        graph = ask(cuda.cuGraphCreate, 0)
        nodes: list[Any] = []
        every = [self.node(*shape) for shape in self.shapes]
        for parameters in every:
            nodes.append(ask(cuda.cuGraphAddKernelNode, graph, nodes[-1:] or None,
                             len(nodes[-1:]), parameters))
        executable = ask(cuda.cuGraphInstantiate, graph, 0)
        weakref.finalize(self, _destroy, self.gpu, graph, executable).atexit = False
        self.launch = functools.partial(cuda.cuGraphLaunch, executable, self.gpu.stream)
        self.changes = [functools.partial(cuda.cuGraphExecKernelNodeSetParams, executable, *pair)
                        for pair in zip(nodes, every, strict=True)]

    def node(self, function: Any, blocks: int, threads: int, arguments: int) -> Any:
        """A launch, as the driver describes it."""
        parameters = self.gpu.cuda.CUDA_KERNEL_NODE_PARAMS()
        parameters.func, parameters.ctx = function, self.gpu.context
        parameters.gridDimX, parameters.blockDimX = blocks, threads
        parameters.gridDimY = parameters.gridDimZ = 1
        parameters.blockDimY = parameters.blockDimZ = 1
        parameters.sharedMemBytes, parameters.kernelParams = 0, arguments
        return parameters

    def all(self) -> None:
        if self.launch()[0]:
            self.gpu.ask(self.launch)


def _destroy(gpu: Any, graph: Any, executable: Any) -> None:
    gpu.wait()  # for its last launch
    gpu.ask(gpu.cuda.cuGraphExecDestroy, executable)
    gpu.ask(gpu.cuda.cuGraphDestroy, graph)


def prepared(gpu: Any, kernel: Kernel, functions: Sequence[Any]) -> Callable[[], Launches]:
    """What makes the launches of a kernel, anew for each call that runs beside another."""
    is_straight = all(isinstance(x, Launch) for x in kernel.body)
    kind = Graph if is_straight and len(kernel.body) > FEW else Launches
    return functools.partial(kind, gpu, kernel, functions)
