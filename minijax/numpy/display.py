"""The text of arrays, and their conversion to NumPy.

Builds on `core` and `api`.  Chapter 01, *Arrays, dtypes and weak types*.
In JAX: `jax/_src/array.py`.
"""
from typing import Any

import numpy as np

from minijax import core, dtypes, errors
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
    """The text of keys: their dtype, and their words."""
    words = x._buffer.reshape(x.shape + x.dtype.key_shape)
    return f"Array({x.shape}, dtype={x.dtype.name}) overlaying:\n{words}"


def array_str(x: ArrayImpl) -> str:
    return key_text(x) if core.has_key_dtype(x.aval) else str(x._buffer)


def array_format(x: ArrayImpl, spec: str) -> str:
    if not core.has_key_dtype(x.aval):
        return format(x._buffer[()], spec)
    if spec:
        raise TypeError("unsupported format string passed to PRNGKeyArray.__format__")
    return key_text(x)


# ── To NumPy, and to others ──────────────────────────────────────────────────────────────────

def memory_of(x: Any) -> memoryview:
    """The buffer of an array, for readers such as `hashlib`; Python calls this from 3.12 on.

    Raises:
      TypeError: of keys and tracers, which have no numbers to read.
      BufferError: of an array that was deleted, or whose dtype Python does not know.
    """
    if not isinstance(x, ArrayImpl) or core.has_key_dtype(x.aval):
        raise TypeError(f"a bytes-like object is required, not '{type(x).__name__}'")
    if core.is_donated(x):
        raise BufferError("INVALID_ARGUMENT: Array is null")
    if x._buffer.dtype.isbuiltin != 1:
        raise BufferError(f"INVALID_ARGUMENT: Buffers of type {x.dtype.name} are not supported by "
                          "the Python buffer protocol.")
    return x._buffer.data


def numbers_of(x: ArrayImpl) -> np.ndarray:
    """The read-only buffer.

    Raises:
      TypeError: of keys, which are no numbers.
    """
    check_no_keys(x)
    return x._buffer


def check_no_keys(x: ArrayImpl) -> None:
    """Refuse keys in place of numbers.

    Raises:
      TypeError: with the functions that return numbers.
    """
    if core.has_key_dtype(x.aval):
        raise TypeError("JAX array with PRNGKey dtype cannot be converted to a NumPy array. Use "
                        "jax.random.key_data(arr) if you wish to extract the underlying integer "
                        "array.")


def to_numpy(values: np.ndarray, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
    """The result of ``np.asarray(x)``: a read-only view, or a copy of another dtype."""
    if dtype is not None and np.dtype(dtype) != values.dtype:
        if copy is False:
            raise ValueError("Unable to avoid copy while creating an array as requested.")
        return values.astype(dtype)
    return values.copy() if copy else read_only(values)


def read_only(buffer: np.ndarray) -> np.ndarray:
    """A view that cannot be made writeable, as its base is a read-only buffer."""
    if buffer.base is None or not buffer.nbytes:
        return buffer.view()
    memory: Any = buffer.reshape(-1).view(np.uint8)
    fixed = np.frombuffer(memoryview(memory).toreadonly(), np.uint8)
    return fixed.view(buffer.dtype).reshape(buffer.shape)


def reduced(x: Array) -> tuple[Any, tuple]:
    """For pickle: the function that restores the array, and its arguments."""
    concrete = x._concrete()
    if concrete is None or isinstance(x, core.Tracer):
        raise errors.ConcretizationTypeError(x, (
            "The error occurred in the __reduce__ method, which may indicate an attempt to "
            "serialize/pickle a traced value."))
    return _restored, (concrete._buffer, x.aval)


def _restored(buffer: np.ndarray, aval: core.ShapedArray) -> Array:
    """The array of a pickle, with the dtype that it has under the flags of now."""
    dtype = dtypes.canonicalize_dtype(aval.dtype)
    return core.array_from_buffer(buffer, aval) if dtype == aval.dtype else core.array_from_buffer(
        buffer.astype(dtype), aval.update(dtype=dtype))
