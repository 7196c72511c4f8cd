"""NVIDIA's driver, played: memory of this process, launches that do nothing, calls counted."""

import collections
import ctypes
import functools
import re
import threading
import types

INVALID_CONTEXT, INVALID_HANDLE, OUT_OF_MEMORY = 201, 400, 2


def words(address, count):
    return list((ctypes.c_uint64 * count).from_address(address))


class Played:
    """The bindings that `driver.bindings` returns, with one GPU of some capability or more.

    `asked` counts the calls, and `launched` has the blocks, the threads and the arguments of each
    launch. A thread whose current GPU is another, or none, is refused, as the driver does.
    """

    def __init__(self, capability=(9, 0), count=1, starts=True, room=1 << 20):
        self.capability, self.count, self.starts, self.room = capability, count, starts, room
        self.memory, self.freed = {}, collections.defaultdict(list)
        self.launched, self.asked = [], collections.Counter()
        self.graphs, self.current = {}, threading.local()
        self.CUresult = types.SimpleNamespace(CUDA_ERROR_OUT_OF_MEMORY=OUT_OF_MEMORY)
        self.CUdevice_attribute = types.SimpleNamespace(
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR=0,
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR=1)
        self.CUmemPool_attribute = types.SimpleNamespace(
            CU_MEMPOOL_ATTR_RELEASE_THRESHOLD=4)
        self.CUstream_flags = types.SimpleNamespace(CU_STREAM_NON_BLOCKING=1)
        self.CUDA_KERNEL_NODE_PARAMS = types.SimpleNamespace
        for name in dir(type(self)):
            if name.startswith("cu") and callable(getattr(self, name)):
                setattr(self, name, self.counted(name, getattr(self, name)))

    def counted(self, name, function):
        @functools.wraps(function)
        def call(*args):
            self.asked[name] += 1
            return function(*args)
        return call

    def __getattr__(self, name):  # what only has to succeed
        if not name.startswith("cu"):
            raise AttributeError(name)
        return self.counted(name, lambda *args: (0, name))

    def refuses(self, stream):
        """The status where the calling thread has no current GPU, or another one than a stream."""
        current = getattr(self.current, "context", None)
        if current is None:
            return INVALID_CONTEXT
        return INVALID_HANDLE * (current != f"context {stream}")

    # -- what there is -------------------------------------------------------------------------

    def cuInit(self, flags):
        return (0,) if self.starts else (100,)

    def cuGetErrorString(self, status):
        return 0, b"no CUDA-capable device is detected"

    def cuDeviceGetCount(self):
        return 0, self.count

    def cuDeviceGet(self, number):
        return 0, number

    def cuDeviceGetAttribute(self, kind, device):
        return 0, self.capability[kind]

    def cuDeviceGetName(self, size, device):
        return 0, b"GPU of a test\0\0"

    def cuDevicePrimaryCtxRetain(self, device):
        return 0, f"context {device}"

    def cuStreamCreate(self, flags):  # each GPU has one, of the same number
        return 0, int(self.current.context.split()[1])

    def cuCtxSetCurrent(self, context):
        self.current.context = context
        return (0,)

    # -- memory --------------------------------------------------------------------------------

    def cuMemAllocAsync(self, nbytes, stream):
        if self.refuses(stream):
            return self.refuses(stream), None
        if nbytes > self.room:
            return OUT_OF_MEMORY, None
        memory = (self.freed[nbytes] or [ctypes.create_string_buffer(nbytes)]).pop()
        self.memory[ctypes.addressof(memory)] = memory
        return 0, ctypes.addressof(memory)

    def cuMemFreeAsync(self, address, stream):
        if not self.refuses(stream):
            memory = self.memory.pop(address)
            self.freed[len(memory)].append(memory)
        return (self.refuses(stream),)

    def cuMemGetInfo(self):
        return 0, 10, self.room

    def copied(self, into, source, nbytes, stream):
        if not self.refuses(stream):
            ctypes.memmove(into, source, nbytes)
        return (self.refuses(stream),)

    def cuMemcpyHtoDAsync(self, *args):
        return self.copied(*args)

    cuMemcpyDtoHAsync = cuMemcpyDtoDAsync = cuMemcpyHtoDAsync

    def cuMemsetD8Async(self, address, byte, nbytes, stream):
        ctypes.memset(address, byte, nbytes)
        return (0,)

    # -- launches ------------------------------------------------------------------------------

    def cuModuleLoadData(self, text):
        return 0, {name: parameters.count(".param") for name, parameters in re.findall(
            r"\.entry (\w+)\(([^)]*)\)", text.decode())}

    def cuModuleGetFunction(self, module, name):
        return 0, (name.decode(), module[name.decode()])

    def launch(self, function, blocks, threads, arguments):
        """A launch, as it was asked for: the words behind its arguments."""
        return function[0], blocks, threads, [words(each, 1)[0]
                                              for each in words(arguments, function[1])]

    def cuLaunchKernel(self, function, blocks, _, __, threads, *rest):
        stream, arguments = rest[-3:-1]
        if not self.refuses(stream):
            self.launched.append(self.launch(function, blocks, threads, arguments))
        return (self.refuses(stream),)

    def cuGraphCreate(self, flags):
        self.graphs[len(self.graphs)] = []
        return 0, len(self.graphs) - 1

    def described(self, parameters):
        return self.launch(parameters.func, parameters.gridDimX, parameters.blockDimX,
                           parameters.kernelParams)

    def cuGraphAddKernelNode(self, graph, after, count, parameters):
        nodes = self.graphs[graph]
        assert (after or []) == ([len(nodes) - 1] if nodes else []) and count == len(after or [])
        nodes.append(self.described(parameters))
        return 0, len(nodes) - 1

    def cuGraphInstantiate(self, graph, flags):
        return 0, graph

    def cuGraphExecKernelNodeSetParams(self, graph, node, parameters):
        stream = parameters.ctx.split()[1]
        if not self.refuses(stream):
            self.graphs[graph][node] = self.described(parameters)
        return (self.refuses(stream),)

    def cuGraphLaunch(self, graph, stream):
        if not self.refuses(stream):
            self.launched += self.graphs[graph]
        return (self.refuses(stream),)

    def cuGraphExecDestroy(self, graph):
        del self.graphs[graph]
        return (0,)
