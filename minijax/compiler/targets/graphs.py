"""A program's launches on a GPU: their parameters in memory, many launches as one CUDA graph.

Builds on ptx.py, which has the parameters of a launch. Chapter 27.
In JAX: XLA's command buffers.
"""

import contextlib
import functools
import itertools
import struct
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..loops import Constant, For, Kernel, Launch, Statement
from . import ptx

FEW = 4  # launches: so few cost the host less one by one than as a graph
MOST = 2048  # launches of a graph: each takes memory, and some microseconds when it is built

Step = tuple[Launch, Mapping[Any, Any]]  # a launch, and the values of the indices around it


class Launches:
    """The launches of one program; for one call at a time.

    All launches read the address of a buffer from one word of `memory`, so a call writes each
    address once. Scalars of the host have words, too: one for each constant value.
    """

    def __init__(self, gpu: Any, kernel: Kernel, functions: Mapping[Launch, Any],
                 steps: Sequence[Step], is_straight: bool = False) -> None:
        self.gpu = gpu
        self.is_straight = is_straight  # whether `all` runs the whole program
        buffers: list[Any] = [*kernel.inputs, *kernel.outputs, *kernel.constants]
        parameters = {launch: ptx.parameters(kernel, launch) for launch in functions}
        scalars = {(x, known.get(x)) for launch, known in steps for x in parameters[launch][2]}
        places = {x: k for k, x in enumerate([*buffers, None, *scalars])}  # None: the workspace
        self.memory = np.zeros(len(places), np.uint64)
        self.write: Callable[..., None] = functools.partial(
            struct.Struct(f"{len(buffers) + 1}Q").pack_into, self.memory.data, 0)
        self.used = [[*(places[x] for x in own), *(places[x, known.get(x)] for x in numbers),
                      *[places[None]] * has_temps]
                     for launch, known in steps
                     for own, has_temps, numbers in [parameters[launch]]]
        first = self.memory.ctypes.data
        self.arguments = [np.array([first + 8 * k for k in used], np.uint64) for used in self.used]
        self.shapes = [(functions[launch], launch.blocks, launch.threads, arguments.ctypes.data)
                       for (launch, _), arguments in zip(steps, self.arguments, strict=True)]
        self.scalars = {x: self.memory[places[x]:].view(np.uint8)[:x[0].dtype.itemsize]
                        .view(x[0].dtype) for x in scalars}
        for (_, value), place in self.scalars.items():
            if value is not None:
                place[0] = value
        self.in_order: list[Callable[[], tuple]] = [functools.partial(
            gpu.cuda.cuLaunchKernel, function, blocks, 1, 1, threads, 1, 1, 0, gpu.stream,
            arguments, 0) for function, blocks, threads, arguments in self.shapes]
        self.calls = {launch: (call, [(x, self.scalars[x, None]) for x in parameters[launch][2]
                                      if x not in known])
                      for (launch, known), call in zip(steps, self.in_order, strict=True)}

    def one(self, launch: Launch, numbers: Mapping[Any, Any]) -> None:
        """One launch, with the addresses of the last `write` and scalars of the host."""
        call, scalars = self.calls[launch]
        for x, place in scalars:
            place[0] = numbers[x]
        if call()[0]:
            self.gpu.ask(call)

    def all(self) -> None:
        """All launches, with the addresses of the last `write`."""
        for call in self.in_order:
            if call()[0]:
                self.gpu.ask(call)


class Graph(Launches):
    """The launches of a program with many of them, as one CUDA graph."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.write_places, self.write = self.write, self.update
        self.addresses: tuple[int, ...] = ()
        self.launch: Callable[[], tuple]
        self.changes: list[Callable[[], tuple]] = []  # of the parameters of each launch
        self.readers: list[list[int]] = [[] for _ in self.memory]  # the launches of each address
        for k, used in enumerate(self.used):
            for place in used:
                self.readers[place].append(k)

    def update(self, *addresses: int) -> None:
        """Write the addresses, and update the nodes that read one that has changed."""
        self.write_places(*addresses)
        if not self.changes:
            self.build()
        elif addresses != self.addresses:
            pairs = zip(self.addresses, addresses, self.readers, strict=False)
            for k in {k for old, new, readers in pairs if old != new for k in readers}:
                if self.changes[k]()[0]:
                    self.gpu.ask(self.changes[k])
        self.addresses = addresses

    def build(self) -> None:
        """Build the graph, with the addresses of the last `write`."""
        ask, cuda = self.gpu.ask, self.gpu.cuda
        self.gpu.enter()
        graph = ask(cuda.cuGraphCreate, 0)
        nodes: list[Any] = []
        every = [self.node(*shape) for shape in self.shapes]
        for each in every:
            before = nodes[-1:]
            nodes.append(ask(cuda.cuGraphAddKernelNode, graph, before or None, len(before), each))
        executable = ask(cuda.cuGraphInstantiate, graph, 0)
        weakref.finalize(self, _destroy, self.gpu, graph, executable).atexit = False
        self.launch = functools.partial(cuda.cuGraphLaunch, executable, self.gpu.stream)
        self.changes = [functools.partial(cuda.cuGraphExecKernelNodeSetParams, executable, *pair)
                        for pair in zip(nodes, every, strict=True)]

    def node(self, function: Any, blocks: int, threads: int, arguments: int) -> Any:
        """The driver's description of a launch."""
        parameters = self.gpu.cuda.CUDA_KERNEL_NODE_PARAMS()
        parameters.func, parameters.ctx = function, self.gpu.context
        parameters.gridDimX, parameters.blockDimX = blocks, threads
        parameters.gridDimY = parameters.gridDimZ = 1
        parameters.blockDimY = parameters.blockDimZ = 1
        parameters.sharedMemBytes, parameters.kernelParams = 0, arguments
        return parameters

    def all(self) -> None:
        """Launch the graph."""
        if self.launch()[0]:
            self.gpu.ask(self.launch)


def _destroy(gpu: Any, graph: Any, executable: Any) -> None:
    gpu.wait()  # for its last launch
    gpu.ask(gpu.cuda.cuGraphExecDestroy, executable)
    gpu.ask(gpu.cuda.cuGraphDestroy, graph)


class _HostDecides(Exception):
    """The host decides between launches what comes next."""


def _unrolled(body: Sequence[Statement], known: Mapping[Any, Any]) -> Iterator[Step]:
    """The launches of a program in order, those of a loop of a known length once an iteration.

    Raises:
      _HostDecides: where there is anything else.
    """
    for statement in body:
        match statement:
            case Launch():
                yield statement, known
            case For(index, Constant(start), Constant(stop), inner):
                for i in range(int(start), int(stop)):
                    yield from _unrolled(inner, {**known, index: i})
            case _:
                raise _HostDecides


def prepared(gpu: Any, kernel: Kernel, functions: Mapping[Launch, Any]) -> Callable[[], Launches]:
    """A constructor of the launches of a kernel: concurrent calls need one each."""
    with contextlib.suppress(_HostDecides):
        steps = [*itertools.islice(_unrolled(kernel.body, {}), MOST + 1)]
        if len(steps) <= MOST:
            kind = Graph if len(steps) > FEW else Launches
            return functools.partial(kind, gpu, kernel, functions, steps, True)
    steps = [(launch, {}) for launch in functions]
    return functools.partial(Launches, gpu, kernel, functions, steps)
