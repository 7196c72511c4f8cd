"""DLPack: memory handed to other libraries and taken from them, bfloat16 included.

Stands on `core`, `dtypes`.  In JAX: `jax/_src/dlpack.py`.
"""

from __future__ import annotations

import ctypes
from typing import Any

import ml_dtypes
import numpy as np

from minijax.core import ArrayImpl
from minijax.numpy.display import numbers_of

# NumPy knows no bfloat16 in DLPack: it is given, and gives, the same memory as uint16, and the
# code of the type is changed in what they hand over.
UNSIGNED, BFLOAT = 1, 4
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
# Where code and size of the type are, by the name of the capsule.
PLACES = {b"dltensor": 20, b"dltensor_versioned": 52}


def to_dlpack(x: ArrayImpl, **options: Any) -> Any:
    """A DLPack capsule; a copy where the reader knows no read-only memory."""
    values = numbers_of(x)
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
    given = _Given(x)
    values = np.from_dlpack(given)
    return values.view(BFLOAT16) if given.is_bfloat16 else values


class _Given:
    """What hands over bfloat16 as uint16."""

    def __init__(self, x: Any):
        self.x, self.is_bfloat16 = x, False

    def __dlpack_device__(self) -> Any:
        return self.x.__dlpack_device__()

    def __dlpack__(self, **options: Any) -> Any:
        capsule = self.x.__dlpack__(**options)
        kind = _type_in(capsule)
        self.is_bfloat16 = tuple(kind) == (BFLOAT, 16)
        if self.is_bfloat16:
            kind[0] = UNSIGNED
        return capsule


def _type_in(capsule: Any) -> Any:
    """The code and the number of bits of the type in a capsule, as they lie in its memory."""
    get_name = ctypes.pythonapi.PyCapsule_GetName
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype = ctypes.c_void_p
    get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    name = get_name(capsule)
    return (ctypes.c_uint8 * 2).from_address(get_pointer(capsule, name) + PLACES[name])
