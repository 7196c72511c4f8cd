"""NVIDIA's driver: memory, copies and launches on one GPU, in the order of one stream.

Builds on ptx.py, and on NVIDIA's own bindings, which the first use of a GPU loads. Chapter 27.
In JAX: `xla/stream_executor/cuda`.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from minijax import config, errors

from ..loops import Kernel
from . import cublas, graphs, ptx
from .coalescing import ALIGNMENT

TENSOR_CORES = 8, 0  # the first that multiplies bfloat16 and TF32 there
OLDEST = 7, 0  # the first compute capability with independent thread scheduling


ON_THE_CPU = "with jax.config.update('jax_platforms', 'cpu') programs run on the CPU"


class NoGpu(errors.JaxRuntimeError):
    """No usable GPU; the message says what would help."""


@cache
def bindings() -> Any:
    """The module with the driver's functions.

    Raises:
      NoGpu: where it is not installed.
    """
    try:
        from cuda.bindings import driver
    except ImportError as error:
        raise NoGpu(f"A GPU needs NVIDIA's bindings ({error}): pip install 'minijax[cuda]'; "
                    f"{ON_THE_CPU}.") from error
    return driver


def done(result: tuple) -> Any:
    """The results of a driver function, after its status.

    Raises:
      JaxRuntimeError: with the driver's own words, where it failed.
    """
    status, *values = result
    if int(status):
        words = bindings().cuGetErrorString(status)[1]
        raise errors.JaxRuntimeError(f"INTERNAL: CUDA: {words.decode() if words else status}")
    return values[0] if len(values) == 1 else values


def count() -> int:
    """The number of GPUs that the driver sees.

    Raises:
      NoGpu: where there is none, no driver, or one that does not start.
    """
    cuda = bindings()
    try:
        done(cuda.cuInit(0))
        gpus = int(done(cuda.cuDeviceGetCount()))
    except RuntimeError as error:
        raise NoGpu("NVIDIA's driver does not start on this machine, which has no GPU, or no "
                    f"driver for it ({str(error).rstrip('.')}): nvidia-smi tells more; "
                    f"{ON_THE_CPU}.") from error
    if not gpus:
        raise NoGpu("NVIDIA's driver sees no GPU, among those of CUDA_VISIBLE_DEVICES where that "
                    f"is set: nvidia-smi tells more; {ON_THE_CPU}.")
    return gpus


def number_of(address: int) -> int:
    """The number of the GPU that owns an address.

    Raises:
      JaxRuntimeError: where no GPU's has it.
    """
    cuda = bindings()
    kind = cuda.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
    return int(done(cuda.cuPointerGetAttribute(kind, address)))


def ptx_of(kernel: Kernel, processor: str) -> list[str]:
    """PTX of the launches of a kernel, in their order, by the compiler of the configuration."""
    if config.compiler.value == "numba":
        from . import numba_nvvm  # which most programs never need

        return numba_nvvm.compile_cached(kernel, processor)
    return [ptx.compile_cached(ptx.assembly(kernel), processor)]


def whole(nbytes: int) -> int:
    """The bytes of some accesses of 16: LLVM loads four numbers where three are asked for."""
    return max(nbytes + ALIGNMENT - 1 & -ALIGNMENT, ALIGNMENT)


class Gpu:
    """One GPU. Calls are asynchronous, except `load`: the driver runs them in order.

    Raises:
      NoGpu: no driver, no GPU of that number, or one that is too old.
    """

    def __init__(self, number: int = 0) -> None:
        self.cuda = cuda = bindings()
        if number >= count():
            raise NoGpu(f"There is no GPU {number}: the driver sees {count()}, with numbers from 0 "
                        "on.")
        device = done(cuda.cuDeviceGet(number))
        kinds = cuda.CUdevice_attribute
        self.capability = tuple(done(cuda.cuDeviceGetAttribute(kind, device)) for kind in (
            kinds.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
            kinds.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR))
        self.processor = "sm_{}{}".format(*self.capability)  # as LLVM and the assembler name it
        self.has_tensor_cores = self.capability >= TENSOR_CORES  # for bfloat16, float16 and TF32
        self.name = done(cuda.cuDeviceGetName(256, device)).rstrip(b"\0").decode()
        if self.capability < OLDEST:
            raise NoGpu(f"{self.name} is too old: it has compute capability "
                        f"{'.'.join(map(str, self.capability))}, and {'.'.join(map(str, OLDEST))} "
                        f"is the first that will do; {ON_THE_CPU}.")
        self.context = done(cuda.cuDevicePrimaryCtxRetain(device))
        self.enter()
        self.stream = done(cuda.cuStreamCreate(int(cuda.CUstream_flags.CU_STREAM_NON_BLOCKING)))
        self.held = 0
        # Freed memory stays in the pool: otherwise each synchronisation would release it.
        done(cuda.cuMemPoolSetAttribute(
            done(cuda.cuDeviceGetDefaultMemPool(device)),
            cuda.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
            cuda.cuuint64_t((1 << 64) - 1)))

    def enter(self) -> None:
        """Make this GPU current in the calling thread."""
        done(self.cuda.cuCtxSetCurrent(self.context))

    def ask(self, function: Callable[..., tuple], *arguments: Any) -> Any:
        """The results of a function of the driver.

        The driver refuses a thread whose current context belongs to another GPU, or that has
        none. The context is set only then, and the call repeated: setting it before each call
        would cost as much as a launch.

        Raises:
          JaxRuntimeError: with the driver's own words, where it failed.
        """
        result = function(*arguments)
        if result[0]:
            self.enter()
            result = function(*arguments)
        return done(result)

    # -- memory --------------------------------------------------------------------------------

    def allocate(self, nbytes: int) -> int:
        """The address of new memory, from the driver's pool.

        Raises:
          JaxRuntimeError: RESOURCE_EXHAUSTED, with the bytes requested and the bytes in use.
        """
        status, address = self.cuda.cuMemAllocAsync(whole(nbytes), self.stream)
        if status:
            self.enter()
            result = self.cuda.cuMemAllocAsync(whole(nbytes), self.stream)
            if result[0] == self.cuda.CUresult.CUDA_ERROR_OUT_OF_MEMORY:
                free, total = done(self.cuda.cuMemGetInfo())
                raise errors.JaxRuntimeError(
                    f"RESOURCE_EXHAUSTED: Out of memory while trying to allocate {nbytes} bytes on "
                    f"{self.name}: this program holds {self.held}, {free} of {total} are free. "
                    "Delete arrays (x.delete()), or donate them (donate_argnums).")
            address = done(result)
        self.held += nbytes
        return int(address)

    def free(self, address: int, nbytes: int) -> None:
        """Free memory, in stream order: earlier work still has it."""
        self.held -= nbytes
        if self.cuda.cuMemFreeAsync(address, self.stream)[0]:
            self.ask(self.cuda.cuMemFreeAsync, address, self.stream)

    def store(self, address: int, x: np.ndarray) -> None:
        """Copy an array to the GPU."""
        if x.nbytes:
            self.ask(self.cuda.cuMemcpyHtoDAsync, address, x.ctypes.data, x.nbytes, self.stream)

    def load(self, address: int, into: np.ndarray) -> None:
        """Copy from the GPU, after all earlier work."""
        if into.nbytes:
            self.ask(self.cuda.cuMemcpyDtoHAsync, into.ctypes.data, address, into.nbytes,
                     self.stream)
        self.wait()

    def copy(self, into: int, source: int, nbytes: int) -> None:
        """Copy on the GPU."""
        if nbytes:
            self.ask(self.cuda.cuMemcpyDtoDAsync, into, source, nbytes, self.stream)

    def clear(self, address: int, nbytes: int) -> None:
        """Make memory zeros."""
        self.ask(self.cuda.cuMemsetD8Async, address, 0, nbytes, self.stream)

    @property
    def number(self) -> int:
        """The handle of the stream, for other libraries."""
        return int(self.stream)

    def wait(self, stream: int | None = None) -> None:
        """Wait for all earlier work; with a stream of another library, for the work there."""
        self.ask(self.cuda.cuStreamSynchronize, self.stream if stream is None else stream)

    def wait_for_all(self) -> None:
        """Wait for all work of this process on this GPU."""
        self.enter()  # `cuCtxSynchronize` waits for the current context, whichever it is
        done(self.cuda.cuCtxSynchronize())

    # -- launches ------------------------------------------------------------------------------

    def routine(self, external: str) -> Callable[..., None] | None:
        """The device implementation of a call; None if the host runs it on copies."""
        return cublas.routine(external, self)

    def prepared(self, kernel: Kernel) -> Callable[[], graphs.Launches]:
        """A constructor of the launches of a kernel: concurrent calls need one each."""
        functions = self.functions(ptx_of(kernel, self.processor))
        launches = ptx.launches_of(kernel.body)
        return graphs.prepared(self, kernel, dict(zip(launches, functions, strict=True)))

    def functions(self, texts: Sequence[str]) -> list[Any]:
        """The launches in PTX programs, which the driver assembles and caches on disk."""
        self.enter()
        functions = {}
        for text in texts:
            module = done(self.cuda.cuModuleLoadData(text.encode() + b"\0"))
            for name in re.findall(r"[.]entry (\w+)", text):
                functions[name] = done(self.cuda.cuModuleGetFunction(module, name.encode()))
        return [functions[f"launch_{k}"] for k in range(len(functions))]
