"""How an array shows itself, and how it leaves for NumPy and other libraries, by DLPack too.

Stands on `core` and `api`.  Chapter 01, *Arrays, dtypes and weak types*.
In JAX: `jax/_src/array.py`, `dlpack.py`.
"""
import ctypes
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np

from minijax import core, dtypes
from minijax.device import Device
from minijax.core import Array, ArrayImpl


# ── As text ──────────────────────────────────────────────────────────────────────────────────

def array_repr(x: ArrayImpl) -> str:
    """As the prompt shows it: ``Array([1., 2.], dtype=float32)``."""
    if core.has_key_dtype(x.aval):
        return key_text(x)
    if x.dtype == dtypes.float0:
        return f"Array({x._buffer.tolist()}, dtype=float0)"
    kind = f"dtype={x.dtype.name}" + (", weak_type=True" if x.weak_type else "") + ")"
    width = np.get_printoptions()["linewidth"]
    if x.size == 0:
        numbers = f"[], shape={x.shape}"
    else:
        numbers = np.array2string(x._buffer, prefix="Array(", suffix=",", separator=", ",
                                  max_line_width=width)
    last_line = len(numbers) - numbers.rfind("\n") + 1
    gap = " " * len("Array(") if last_line + len(kind) + 1 > width else " "
    return f"Array({numbers},{gap}{kind}"


def key_text(x: ArrayImpl) -> str:
    """Keys show their type, and the words they lie over."""
    return f"Array({x.shape}, dtype={x.dtype.name}) overlaying:\n{x._buffer}"


def array_str(x: ArrayImpl) -> str:
    return key_text(x) if core.has_key_dtype(x.aval) else str(x._buffer)


def array_format(x: ArrayImpl, spec: str) -> str:
    return format(key_text(x) if core.has_key_dtype(x.aval) else x._buffer[()], spec)


# ── To NumPy, and to others ──────────────────────────────────────────────────────────────────

def numbers_of(x: ArrayImpl) -> np.ndarray:
    """The read-only buffer.

    Raises:
      TypeError: of keys, which are no numbers.
    """
    if core.has_key_dtype(x.aval):
        raise TypeError("JAX array with PRNGKey dtype cannot be converted to a NumPy array. Use "
                        "jax.random.key_data(arr) if you wish to extract the underlying integer "
                        "array.")
    return x._buffer


def to_numpy(values: np.ndarray, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
    """What ``np.asarray(x)`` gives: a read-only view, or a copy of another dtype."""
    if dtype is not None and np.dtype(dtype) != values.dtype:
        if copy is False:
            raise ValueError("Unable to avoid copy while creating an array as requested.")
        return values.astype(dtype)
    return values.copy() if copy else read_only(values)


def read_only(buffer: np.ndarray) -> np.ndarray:
    """A view that cannot be made writeable, as an array can whose memory or its owner is."""
    if buffer.base is None or not buffer.size:
        return buffer.view()
    memory: Any = buffer.reshape(-1).view(np.uint8)
    fixed = np.frombuffer(memoryview(memory).toreadonly(), np.uint8)
    return fixed.view(buffer.dtype).reshape(buffer.shape)


def reduced(x: Array) -> tuple[Any, tuple]:
    """For pickle: what makes the array again."""
    known = x._concrete()
    if known is None or isinstance(x, core.Tracer):
        raise TypeError(f"cannot pickle a tracer: {x!r}")
    return core.array_from_buffer, (known._buffer, x.aval)




# ── Where it lies ────────────────────────────────────────────────────────────────────────────

@dataclass(frozen=True)
class SingleDeviceSharding:
    """The whole array lies on one device."""

    device: Device
    memory_kind: str = "device"

    @property
    def device_set(self) -> set[Device]:
        return {self.device}

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={self.device!r}, memory_kind={self.memory_kind})"


# ── To other libraries ───────────────────────────────────────────────────────────────────────────

# NumPy knows no bfloat16 in DLPack: it is given, and gives, the same memory as uint16, and the
# code of the type is changed in what they hand over.
UNSIGNED, BFLOAT = 1, 4
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
# Where code and size of the type are, by the name of the capsule.
PLACES = {b"dltensor": 20, b"dltensor_versioned": 52}


def to_dlpack(values: np.ndarray, **options: Any) -> Any:
    """A DLPack capsule; a copy where the reader knows no read-only memory."""
    version = options.get("max_version")
    if version is None or tuple(version) < (1, 0):
        values = values.copy()
    if values.dtype != BFLOAT16:
        return values.__dlpack__(**options)
    capsule = values.view(np.uint16).__dlpack__(**options)
    _type_in(capsule)[0] = BFLOAT
    return capsule


def from_dlpack(x: Any) -> np.ndarray:
    """The array behind an object with ``__dlpack__``, as NumPy sees it."""
    kinds = []

    def given(**options: Any) -> Any:
        capsule = x.__dlpack__(**options)
        kind = _type_in(capsule)
        kinds.append(tuple(kind))
        if kinds == [(BFLOAT, 16)]:
            kind[0] = UNSIGNED
        return capsule

    values = np.from_dlpack(SimpleNamespace(
        __dlpack__=given, __dlpack_device__=x.__dlpack_device__))
    return values.view(BFLOAT16) if kinds == [(BFLOAT, 16)] else values


def _type_in(capsule: Any) -> Any:
    """The code and the number of bits of the type in a capsule, as they lie in its memory."""
    get_name = ctypes.pythonapi.PyCapsule_GetName
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype = ctypes.c_void_p
    get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    name = get_name(capsule)
    return (ctypes.c_uint8 * 2).from_address(get_pointer(capsule, name) + PLACES[name])
