"""Arrays: the base class of arrays and tracers, and concrete arrays.

Builds on `types`.  Chapter 01, *Arrays, dtypes and weak types*.
In JAX: `jax/_src/array.py`.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from minijax import errors
from minijax.core.types import ShapedArray, physical_aval
from minijax.util.operators import Methods


class Typed:
    """A value with a type, and the properties of its type."""

    __slots__ = ()
    aval: ShapedArray

    shape = property(operator.attrgetter("aval.shape"))
    dtype = property(operator.attrgetter("aval.dtype"))
    weak_type = property(operator.attrgetter("aval.weak_type"))
    ndim = property(operator.attrgetter("aval.ndim"))
    size = property(operator.attrgetter("aval.size"))


class Array(Typed, Methods):
    """The base class of concrete arrays and of tracers.

    Its operators and methods are those of `minijax.numpy`.
    """

    __slots__ = ("__weakref__",)
    __array_priority__ = 100

    def __len__(self) -> int:
        if not self.aval.shape:
            raise TypeError("len() of unsized object")
        return self.aval.shape[0]

    __hash__ = None  # type: ignore[assignment]


class ArrayImpl(Array):
    """A concrete array: an immutable C-contiguous buffer and its type.

    The buffer of a key array has the words of its keys in a trailing axis.
    """

    __slots__ = ("__dict__", "_buffer", "aval", "is_literal")  # the first: for user attributes
    _buffer: np.ndarray
    is_literal: bool  # from a Python or NumPy scalar: prints as a literal
    _committed = False  # whether its device was chosen explicitly
    _level: Any = None  # a weak reference: to that of the program whose literal it is

    def __init__(self, buffer: np.ndarray, aval: ShapedArray, is_literal: bool = False):
        buffer.setflags(False)  # type: ignore[call-arg]  # quicker by position
        self._buffer = buffer
        self.aval = aval
        self.is_literal = is_literal

    def _concrete(self) -> ArrayImpl:
        return self

    def __getattr__(self, name: str) -> Any:
        """Called for missing attributes only: the buffer of a deleted array."""
        if name == "_buffer":
            raise deleted(self.aval)
        return super().__getattr__(name)

    def _is_deleted(self) -> bool:
        try:
            self._buffer  # noqa: B018
        except RuntimeError:
            return True
        return False

    def _delete(self) -> None:
        if not self._is_deleted():
            del self._buffer

    def _alias(self) -> ArrayImpl:
        return ArrayImpl(self._buffer, self.aval)

    def _holder(self) -> Any:  # one object for all arrays that share the buffer
        return self._buffer


class AbstractArray(Array):
    """An array with a type and no elements, in a program: it can be passed on, but not read."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    @property
    def _buffer(self) -> np.ndarray:
        raise TypeError("A ShapeDtypeStruct does not have a value and cannot be used as a constant "
                        "in a JAX function.")

    def _concrete(self) -> None:
        return None


def deleted(aval: ShapedArray) -> Exception:
    """The error of reading a donated or deleted array of this type."""
    return errors.with_cure(
        RuntimeError(f"Array has been deleted with shape={aval.str_long()}."),
        "It was donated to a jitted function (donate_argnums), or deleted by x.delete().")


def donate(x: Any) -> None:
    """Release an array's buffer; later reads raise."""
    if isinstance(x, ArrayImpl):
        x._delete()


def alias(x: Any) -> Any:
    """An array of the same buffer, which survives the donation of `x`."""
    return x._alias() if isinstance(x, ArrayImpl) else x


def level_of(x: Any) -> Any:
    """The level of a tracer, or of the program whose literal an array is; None of other values."""
    return x._level and x._level() if isinstance(x, ArrayImpl) else getattr(x, "level", None)


def is_literal(x: Any, level: Any) -> bool:
    """Whether an array is a literal of the program of a level, or of any."""
    return isinstance(x, ArrayImpl) and (
        x.is_literal or level is not None and level_of(x) is level)


def is_donated(x: ArrayImpl) -> bool:
    return x._is_deleted()


def array_from_buffer(buffer: np.ndarray, aval: ShapedArray) -> ArrayImpl:
    """An array of this type, which shares no writeable memory with the caller."""
    physical = physical_aval(aval)
    owned = np.array(buffer, dtype=physical.dtype, order="C", copy=True)
    return ArrayImpl(owned.reshape(physical.shape), aval)
