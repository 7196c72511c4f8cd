"""Devices, which hold arrays and run programs: the CPU here, GPUs in gpus.py.

Builds on `core`; modules for a GPU are loaded on first use.  Chapter 27.
In JAX: `jax/_src/xla_bridge.py`, `jax/_src/array.py`, and PJRT's devices.
"""

import contextlib
import dataclasses
import operator
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, ClassVar

from minijax import config, core, errors
from minijax.util import lazily
from minijax.core import ArrayImpl, Primitive, ShapedArray

if TYPE_CHECKING:
    from minijax.placement.gpus import (CudaDevice as CudaDevice, EmulatedDevice as EmulatedDevice,
                                        GpuDevice as GpuDevice)

lazily.attach(globals())


# ── Devices ──────────────────────────────────────────────────────────────────────────────────

@dataclasses.dataclass(frozen=True)
class Device:
    """A processor and its memory.

    >>> CpuDevice()
    CpuDevice(id=0)
    """

    id: int = 0
    platform: ClassVar[str] = "cpu"
    device_kind: ClassVar[str] = "cpu"
    process_index: ClassVar[int] = 0
    is_host: ClassVar[bool] = True  # its memory is that of this process
    interprets: ClassVar[bool] = False  # it runs programs without a compiler
    is_global: ClassVar[bool] = False  # it is all devices of the program

    @classmethod
    def count(cls) -> int:
        """The number of devices: of CPUs that of `num_cpu_devices` or XLA_FLAGS."""
        count = config.num_cpu_devices.value
        if count < 1:
            flag = re.search(r"--xla_force_host_platform_device_count=(\d+)",
                             os.environ.get("XLA_FLAGS", ""))
            count = int(flag[1]) if flag else 1
        return max(1, count)

    @classmethod
    def numbered(cls, number: int) -> "Device":
        """The device with a number: always the same object."""
        return known_by_number.setdefault((cls, number), cls(number))

    @classmethod
    def all(cls) -> list["Device"]:
        """The devices, in the order of their numbers."""
        return list(map(cls.numbered, range(cls.count())))

    @property
    def rank(self) -> int:
        """Its number among the devices of a program: each process has one, or there is one."""
        return self.process_index or self.id

    @property
    def local_hardware_id(self) -> int:
        return self.id

    def memory_stats(self) -> None:
        """Statistics of its memory: none."""

    def operand(self, x: ArrayImpl) -> Any:
        """An array as an argument of a compiled program."""
        return x._buffer

    def operands(self, args: Sequence[Any], of: Any) -> Iterator[Any]:
        """The arguments of a program; `of`, an operation or a `DebugInfo`, names them in errors."""
        return map(self.operand, args)

    def array(self, memory: Any, aval: ShapedArray) -> ArrayImpl:
        """A result of a compiled program as an array."""
        return ArrayImpl(memory, aval)

    def new_array(self, x: ArrayImpl) -> ArrayImpl:
        """A new array of the host, on this device."""
        return self.array(self.operand(x), x.aval)

    # For generated code: whether an array is on another device, and `operand` of an array.
    elsewhere: ClassVar[str] = "type({x}) is not Array"
    passed: ClassVar[str] = "{x}._buffer"
    array_type: ClassVar[type] = ArrayImpl

    def compiled(self, lowered: Any) -> Any:
        """The executable of a lowered program."""
        return lowered.compile()


class CpuDevice(Device):
    """The processor that also runs Python; in a browser there is no compiler for it."""

    interprets = sys.platform == "emscripten"

    def __str__(self) -> str:
        return f"cpu:{self.id}"


class NumpyDevice(CpuDevice):
    """The same processor, with NumPy only: without a compiler."""

    interprets = True


known_by_number: dict[tuple[type, int], Device] = {}
processors: dict[Device, Any] = {}
PLATFORMS = {"cpu": "CpuDevice", "numpy": "NumpyDevice", "cuda": "CudaDevice", "gpu": "CudaDevice",
             "emulator": "EmulatedDevice"}  # the classes' names: those of GPUs load when used


def kind_named(platform: str) -> type[Device]:
    """The kind of device of a platform.

    Raises:
      RuntimeError: for one that does not exist.
    """
    if platform not in PLATFORMS:
        raise errors.with_cure(
            RuntimeError(f"Unknown backend {platform}. Available backends are ['cpu']"),
            "There is 'cuda', too, which needs one of NVIDIA's GPUs and pip install "
            "'minijax[cuda]', and 'emulator', a GPU in NumPy.")
    return getattr(sys.modules[__name__], PLATFORMS[platform])


def kind_in_use() -> type[Device]:
    """The kind of device that comes first in `JAX_PLATFORMS`; the CPU by default.

    Raises:
      RuntimeError: for one that does not exist.
    """
    name = (config.platforms.value or config.platform_name.value or "cpu").split(",")[0]
    if name not in PLATFORMS:
        raise RuntimeError(f"Unknown backend: '{name}' requested, but no platforms that are "
                           "instances of it are present. Platforms present are: "
                           f"{', '.join(PLATFORMS)}")
    return kind_named(name)


def device_of(args: Sequence[Any]) -> Device:
    """The device that runs a program of these arguments: theirs; those on the host are copied.

    Raises:
      ValueError: where they are on different GPUs.
    """
    if _computing_beforehand.get():
        return CPU
    device = None
    for x in args:
        if isinstance(x, DeviceArray):
            if device is not None and x.home is not device and x.home != device:
                raise _incompatible(args)
            device = x.home
    hook = Primitive.eager_dispatch
    return device or (hook.default_device() if hook else CPU)


def _incompatible(args: Sequence[Any]) -> ValueError:
    devices = dict.fromkeys(str(x.device) for x in args if isinstance(x, DeviceArray))
    return ValueError("Received incompatible devices for jitted computation. Got arguments on "
                      f"{' and '.join(devices)}: move them to one with jax.device_put(x, device).")


CPU = CpuDevice.numbered(0)


def first_here(kind: type[Device]) -> Device:
    """The first device of a kind that belongs to this process."""
    return CPU if kind is CpuDevice else kind.numbered(0)


# ── Arrays on a GPU ──────────────────────────────────────────────────────────────────────────

class DeviceArray(ArrayImpl):
    """An array in the memory of a GPU; it is copied to the host when its elements are read.

    `home` is the device that runs programs on it, which to users may have another name.
    """

    __slots__ = ("home", "memory")
    _committed = True
    device = property(operator.attrgetter("home"))

    def __init__(self, memory: Any, aval: ShapedArray, device: Device):
        self.memory, self.aval, self.home, self.is_literal = memory, aval, device, False

    def there(self) -> Any:
        """Its memory on the device."""
        if self.memory is None:
            raise core.deleted(self.aval)
        return self.memory

    _holder = there

    def __getattr__(self, name: str) -> Any:
        if name != "_buffer":
            return super().__getattr__(name)
        physical = core.physical_aval(self.aval)
        buffer = self.there().read(physical.shape, physical.dtype)
        buffer.flags.writeable = False
        self._buffer = buffer
        return buffer

    def _is_deleted(self) -> bool:
        return self.memory is None

    def _delete(self) -> None:
        self.memory = None
        super()._delete()

    def _alias(self) -> "DeviceArray":
        return type(self)(self.there(), self.aval, self.home)


DeviceArray.__name__ = ArrayImpl.__name__  # errors call all arrays by one name


def put(x: Any, device: Device) -> Any:
    """An array on a device; a tracer stays one."""
    if not isinstance(x, ArrayImpl) or x.device == device:
        return x
    return device.array(device.operand(x), x.aval)


def on_default_device(x: Any) -> Any:
    """A new array on the default device."""
    if not (Primitive.eager_dispatch and type(x) is ArrayImpl):
        return x
    device = Primitive.eager_dispatch.default_device()
    return x if device.is_host else device.new_array(x)


# ── Whether to look for devices ──────────────────────────────────────────────────────────────

_computing_beforehand: ContextVar[bool] = ContextVar("minijax_computing_beforehand", default=False)


@contextlib.contextmanager
def on_the_host() -> Iterator[None]:
    """Inside, the compiler folds constants on the host."""
    token = _computing_beforehand.set(True)
    try:
        yield
    finally:
        _computing_beforehand.reset(token)
