"""Arrays to and from other libraries: DLPack on every device, and CUDA's array interface.

Builds on `core` and `devices`.  Memory of a GPU is shared in both directions, not copied; its owner
is kept alive.  Chapter 27.  In JAX: `jax/_src/dlpack.py`, `jax/_src/array.py`.
"""

import ctypes
import math
import sys
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import ml_dtypes
import numpy as np

from minijax.core import Array, ArrayImpl, ShapedArray, dtype_name, get_aval
from minijax.errors import JaxRuntimeError
from minijax.placement.devices import CudaDevice, Device, DeviceArray, EmulatedDevice, GpuDevice
from minijax.numpy import display

# ── DLPack's structures in memory ────────────────────────────────────────────────────────────


class Tensor(ctypes.Structure):
    """DLTensor: the address of an array, its device, dtype, shape and strides."""

    _fields_ = [("data", ctypes.c_void_p), ("platform", ctypes.c_int32), ("id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("offset", ctypes.c_uint64)]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Managed(ctypes.Structure):
    """DLManagedTensor: a tensor and its deleter, without a flag for read-only memory."""

    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", DELETER)]


class Versioned(ctypes.Structure):
    """DLManagedTensorVersioned: the same since version 1, with flags."""

    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32),
                ("context", ctypes.c_void_p), ("deleter", DELETER), ("flags", ctypes.c_uint64),
                ("tensor", Tensor)]


OLD, NEW = b"dltensor", b"dltensor_versioned"  # constants: a capsule holds its name's address
KINDS: dict[bytes, type[Managed | Versioned]] = {OLD: Managed, NEW: Versioned}
USED = {OLD: b"used_dltensor", NEW: b"used_dltensor_versioned"}
READ_ONLY, IS_COPY = 1, 2  # flags

UNSIGNED, BFLOAT = 1, 4
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
CODES = {np.dtype(kind): (code, 8 * np.dtype(kind).itemsize) for code, kinds in (
    (0, ("i1", "i2", "i4", "i8")), (UNSIGNED, ("u1", "u2", "u4", "u8")), (2, ("f2", "f4", "f8")),
    (BFLOAT, (BFLOAT16,)), (5, ("c8", "c16")), (6, ("?",))) for kind in kinds}
DTYPES = {code: dtype for dtype, code in CODES.items()}

ON_HOST, ON_CUDA, ELSEWHERE = 1, 2, 12  # platforms; the last is unknown to other libraries
HOST_MEMORY = {ON_HOST, 3, 11, 13}  # also pinned and managed memory of CUDA and ROCm
PLATFORMS: dict[type[Device], int] = {CudaDevice: ON_CUDA, EmulatedDevice: ELSEWHERE}


def _python_api(name: str, result: Any, *kinds: Any) -> Callable:
    return ctypes.PYFUNCTYPE(result, *kinds)((f"PyCapsule_{name}", ctypes.pythonapi))


_name_of = _python_api("GetName", ctypes.c_char_p, ctypes.py_object)
_pointer_in = _python_api("GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
_rename = _python_api("SetName", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
_new = _python_api("New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)


def managed_in(capsule: Any) -> Any:
    """The managed tensor in a capsule."""
    name = _name_of(capsule)
    if name not in KINDS:
        raise BufferError(f"a DLPack capsule can be read only once; this one is named {name!r}")
    return KINDS[name].from_address(_pointer_in(capsule, name))


# ── Devices ──────────────────────────────────────────────────────────────────────────────────

def dlpack_device(x: Any) -> tuple[int, int]:
    """The platform and number of an array's device: CUDA is platform 2, the host is (1, 0)."""
    return (PLATFORMS[type(x.device)], x.device.id) if isinstance(x, DeviceArray) else (ON_HOST, 0)


def device_numbered(platform: int, number: int) -> GpuDevice | None:
    """The device of a platform and a number; None for the host.

    Raises:
      BufferError: for one that is not ours.
    """
    if platform in HOST_MEMORY:
        return None
    for kind, of_kind in PLATFORMS.items():
        if platform == of_kind:
            return cast(GpuDevice, kind.numbered(number))
    raise BufferError(f"DLPack's device {(platform, number)} is not supported: move the array "
                      "to the CPU or to an NVIDIA GPU first.")


def is_on_gpu(x: Any) -> bool:
    """Whether an object of another library is in the memory of a GPU."""
    if isinstance(x, Array | np.ndarray | np.generic):
        return False
    return hasattr(x, "__cuda_array_interface__") or (
        hasattr(x, "__dlpack_device__") and int(x.__dlpack_device__()[0]) == ON_CUDA)


# ── Export ───────────────────────────────────────────────────────────────────────────────────

def to_dlpack(x: ArrayImpl, stream: Any = None, **options: Any) -> Any:
    """A DLPack capsule of an array's memory, or of a copy for consumers without read-only memory.

    Args:
      options: ``max_version``, ``dl_device`` and ``copy`` of the protocol.

    Raises:
      BufferError: where that needs a copy that ``copy=False`` forbids, or another device.
      JaxRuntimeError: for a stream of an array on the host, which has none.
    """
    display.check_no_keys(x)
    dl_device, copy = options.get("dl_device"), options.get("copy")
    knows_read_only = tuple(options.get("max_version") or (0, 0)) >= (1, 0)
    here = dlpack_device(x)
    if here[0] == ON_HOST and stream is not None:
        raise JaxRuntimeError(
            "UNIMPLEMENTED: WaitUntilBufferReadyOnStream is only implemented for GPU.")
    if here[0] == ON_HOST or copy is not False and tuple(dl_device or here) == (ON_HOST, 0):
        return _of_host(x._buffer, options, knows_read_only)
    if dl_device is not None and tuple(dl_device) != here:
        raise BufferError(f"the array is on {x.device}, DLPack's device {here}, but was requested "
                          f"on {tuple(dl_device)}: jax.device_put(x, device) moves it there.")
    if not knows_read_only and copy is False:
        raise BufferError("arrays are immutable, and DLPack has no read-only memory before version "
                          "1: pass max_version=(1, 0), or allow a copy instead of copy=False.")
    copies = copy or not knows_read_only
    memory = x.there().copy() if copies else x.there()
    if stream != -1:  # with -1 the consumer synchronises
        memory.device.wait()
    flags = IS_COPY if copies else READ_ONLY
    return capsule(memory.address, x.aval, here, memory, flags if knows_read_only else None)


def _of_host(values: np.ndarray, options: dict[str, Any], knows_read_only: bool) -> Any:
    """By NumPy, which has no bfloat16: its type code is set in the capsule."""
    values = values if knows_read_only else values.copy()
    if values.dtype != BFLOAT16:
        return values.__dlpack__(**options)
    capsule = values.view(np.uint16).__dlpack__(**options)
    managed_in(capsule).tensor.code = BFLOAT
    return capsule


_exported: dict[int, tuple] = {}  # by the address of the managed tensor: all that keeps it alive


def capsule(address: int, aval: ShapedArray, device: tuple[int, int], owner: Any,
            flags: int | None) -> Any:
    """A capsule of memory that has an owner; without flags, one of a version before 1."""
    if aval.dtype not in CODES:
        raise BufferError(f"DLPack has no type for {dtype_name(aval.dtype)}")
    lengths = (ctypes.c_int64 * aval.ndim)(*aval.shape)
    strides = (ctypes.c_int64 * aval.ndim)(
        *(math.prod(aval.shape[i + 1:]) for i in range(aval.ndim)))
    tensor = Tensor(address, *device, aval.ndim, *CODES[aval.dtype], 1, lengths, strides, 0)
    managed: Any = (Managed(tensor, None, _deleter) if flags is None
                    else Versioned(1, 0, None, _deleter, flags, tensor))
    address = ctypes.addressof(managed)
    out = _new(address, OLD if flags is None else NEW, None)
    forget_unread()
    _exported[address] = out, owner, managed, lengths, strides
    return out


@DELETER
def _deleter(address: int) -> None:
    """The consumer has released the array, but its kernels may still run."""
    _, owner, *_ = _exported.pop(address)
    owner.device.wait_for_all()


def forget_unread() -> None:
    """Drop the capsules that were not consumed and have no other owner."""
    # JAX: a destructor in C; in Python it would run while an error of the consumer propagates.
    for address, entry in list(_exported.items()):
        if _references(entry) == _ONE_REFERENCE and _name_of(entry[0]) in KINDS:
            del _exported[address]


def _references(entry: tuple) -> int:
    return sys.getrefcount(entry[0])


_ONE_REFERENCE = _references((object(),))


def cuda_array_interface(x: Any) -> dict[str, Any]:
    """The CUDA array interface of an array on a GPU of NVIDIA's, for Numba, CuPy and others.

    Raises:
      AttributeError: for other arrays, and for bfloat16, for which it has no type.
    """
    if not isinstance(x, DeviceArray) or not isinstance(x.device, CudaDevice):
        raise AttributeError("__cuda_array_interface__ is only defined for GPU buffers.")
    display.check_no_keys(x)
    if x.dtype not in CODES or x.dtype == BFLOAT16:
        raise AttributeError(f"__cuda_array_interface__ has no type for {x.dtype}; try DLPack")
    memory = x.there()
    memory.device.wait()  # so that the consumer need not wait for a stream
    return {"version": 3, "shape": x.shape, "typestr": x.dtype.str, "strides": None,
            "data": (memory.address if x.size else 0, True), "stream": None}


# ── Import ───────────────────────────────────────────────────────────────────────────────────

def shared(values: np.ndarray) -> Array:
    """An array in this memory of the host.

    Raises:
      ValueError: where it must be copied, as it is not aligned, in another order, or narrowed.
    """
    aval = get_aval(values)
    why = ("is not aligned to 64 bytes" if values.ctypes.data % 64 else
           "is not in row-major order" if not values.flags.c_contiguous else
           f"has {values.dtype} and not {aval.dtype}" if values.dtype != aval.dtype else "")
    if why:
        raise ValueError("Specified input which requires a copy since the source data buffer "
                         f"{why}.  However copy=False. Set copy=True or copy=None to perform the "
                         "requested operation.")
    return ArrayImpl(values.view(), aval)


def from_dlpack(x: Any) -> Any:
    """The array of an object with `__dlpack__`: NumPy's on the host; on a GPU it shares memory.

    Raises:
      BufferError: for a device, strides or a dtype that is not ours.
    """
    if not hasattr(x, "__dlpack_device__"):
        raise TypeError("The array passed to from_dlpack must have __dlpack__ and "
                        "__dlpack_device__ methods.")
    device = device_numbered(*map(int, x.__dlpack_device__()))
    if device is None:
        return _on_host(x)
    ours = {"stream": device.processor.number} if isinstance(device, CudaDevice) else {}
    try:
        capsule = x.__dlpack__(max_version=(1, 0), **ours)
    except TypeError:  # a producer without versions
        capsule = x.__dlpack__(**ours)
    name, managed = _name_of(capsule), managed_in(capsule)
    _rename(capsule, USED[name])
    owner, tensor = _Imported(managed), managed.tensor
    shape, code = tuple(tensor.shape[:tensor.ndim]), (tensor.code, tensor.bits)
    if code not in DTYPES or tensor.lanes != 1:
        raise BufferError(f"no dtype matches DLPack's type {code} with {tensor.lanes} lanes")
    dtype = DTYPES[code]
    if tensor.ndim and tensor.strides:
        check_contiguous(shape, [n * dtype.itemsize for n in tensor.strides[:tensor.ndim]], dtype)
    return device.borrowed((tensor.data or 0) + tensor.offset, ShapedArray(shape, dtype), owner)


class _Imported:
    """The owner of an imported tensor, whose deleter it calls when it is collected."""

    def __init__(self, managed: Any) -> None:
        self.managed = managed

    def __del__(self) -> None:
        if self.managed.deleter:
            self.managed.deleter(ctypes.addressof(self.managed))


def check_contiguous(shape: Sequence[int], strides: Sequence[int], dtype: np.dtype) -> None:
    """Refuse memory that is not contiguous in row-major order.

    Raises:
      BufferError: with advice.
    """
    step = dtype.itemsize
    for length, stride in zip(reversed(shape), reversed(strides), strict=True):
        if length > 1 and stride != step and 0 not in shape:
            raise BufferError(f"an array of shape {tuple(shape)} with strides of "
                              f"{tuple(strides)} bytes is not contiguous in row-major order: "
                              "make it contiguous first.")
        step *= length


def _on_host(x: Any) -> np.ndarray:
    """By NumPy, with bfloat16 passed as uint16."""
    kinds = []

    def export(**options: Any) -> Any:
        capsule = x.__dlpack__(**options)
        tensor = managed_in(capsule).tensor
        kinds.append((tensor.code, tensor.bits))
        if kinds == [CODES[BFLOAT16]]:
            tensor.code = UNSIGNED
        return capsule

    values = np.from_dlpack(SimpleNamespace(
        __dlpack__=export, __dlpack_device__=x.__dlpack_device__))
    return values.view(BFLOAT16) if kinds == [CODES[BFLOAT16]] else values


def copied(x: Any) -> ArrayImpl:
    """An array on a GPU with memory of its own."""
    return x.device.array(x.there().copy(), x.aval)


def from_gpu(x: Any) -> ArrayImpl:
    """An array that shares the memory of an object on a GPU.

    Raises:
      BufferError: for strides, masks and dtypes that are not ours.
    """
    interface = getattr(x, "__cuda_array_interface__", None)
    if interface is None:
        return from_dlpack(x)
    shape, dtype = tuple(interface["shape"]), np.dtype(interface["typestr"])
    mask, strides, stream = (interface.get(key) for key in ("mask", "strides", "stream"))
    if mask is not None or dtype not in CODES:
        raise BufferError(f"an array of {dtype} in __cuda_array_interface__, with the mask {mask}, "
                          "is not supported")
    if strides is not None:
        check_contiguous(shape, strides, dtype)
    address = interface["data"][0]
    device = CudaDevice.with_address(address) if address else CudaDevice()
    if stream is not None:
        device.processor.wait(stream)
    return device.borrowed(address, ShapedArray(shape, dtype), x)
