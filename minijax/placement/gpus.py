"""GPUs as devices: NVIDIA's, and the emulated one.

Builds on devices.py; the driver and the emulator are loaded on first use.  Chapter 27.
In JAX: PJRT's devices of `jax_plugins/cuda`.
"""

import functools
from typing import Any, Self, cast

from minijax.core import ArrayImpl, ShapedArray, base_trace
from minijax.placement import devices
from minijax.util import lazily

_count, _number_of, _gpu = (lazily.later("minijax.compiler.targets.driver", name)
                            for name in ("count", "number_of", "Gpu"))
_emulator = lazily.later("minijax.compiler.targets.emulator", "Emulator")


class GpuDevice(devices.Device):
    """A processor with memory of its own."""

    platform = "gpu"
    is_host = False
    array_type = devices.DeviceArray
    elsewhere = "type({x}) is not Array or {x}.home is not device"
    passed = "{x}.there()"

    @property
    def processor(self) -> Any:
        """The driver, which allocates, copies and launches.

        Raises:
          NoGpu: where it cannot be used, with advice.
        """
        if (processor := devices.processors.get(self)) is None:
            processor = devices.processors[self] = self.start()
        return processor

    def start(self) -> Any:
        """A new driver."""
        raise NotImplementedError

    def operand(self, x: ArrayImpl) -> Any:
        if type(x) is devices.DeviceArray and (x.home is self or x.home == self):
            return x.there()
        return _memory().of(self.processor, x._buffer)

    def array(self, memory: Any, aval: ShapedArray) -> ArrayImpl:
        return devices.DeviceArray(memory, aval, self)

    def borrowed(self, address: int, aval: ShapedArray, owner: Any) -> ArrayImpl:
        """An array over memory of another owner, which is kept alive."""
        nbytes = aval.size * aval.dtype.itemsize
        return self.array(_memory().borrowed(self.processor, address, nbytes, owner), aval)

    def compiled(self, lowered: Any) -> Any:
        with devices.on_the_host():
            return lowered.compile_for(self.processor)


class CudaDevice(GpuDevice):
    """An NVIDIA GPU."""

    device_kind = property(lambda self: self.processor.name)

    @classmethod
    def count(cls) -> int:
        return _count()

    def start(self) -> Any:
        return _gpu(self.id)

    def compiled(self, lowered: Any) -> Any:
        base_trace.notify("gpu", lowered.jaxpr)
        return super().compiled(lowered)

    @classmethod
    def with_address(cls, address: int) -> Self:
        """The device whose memory contains an address."""
        return cast(Self, cls.numbered(_number_of(address)))

    def __str__(self) -> str:
        return f"cuda:{self.id}"


class EmulatedDevice(GpuDevice):
    """A GPU in NumPy: slow, and refuses races and accesses out of bounds."""

    device_kind = "emulator"

    count = classmethod(lambda cls: 1)

    def start(self) -> Any:
        return _emulator()

    def __str__(self) -> str:
        return f"emulator:{self.id}"


@functools.cache
def _memory() -> Any:
    """The class of memory on a device."""
    with lazily.importing:
        from minijax.compiler.targets.programs import Memory
    return Memory
