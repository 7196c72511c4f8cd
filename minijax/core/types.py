"""The types of values: shape, dtype and weakness; zero tangents; effects of equations.

Builds on `dtypes`.  Chapter 01, *Arrays, dtypes and weak types*.
In JAX: `ShapedArray` and `Effect` of `jax/_src/core.py`, `jax/_src/effects.py`.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from minijax import dtypes
from minijax.util import lazily

Params = dict[str, Any]
Outs = tuple[list, list]  # a rule's outputs, and the tangent or the batch axis of each


class ShapedArray:
    """The type of an array: its shape, dtype, whether the dtype is weak, its `vma`: the axes of a
    mesh along which it varies, inside of `shard_map`; and its sharding along explicit axes of a
    mesh, or None where it is replicated.

    Equal types are the same object, so types compare and hash by identity; an
    unreferenced type is dropped.

    >>> ShapedArray((2, 3), np.float32)
    ShapedArray(float32[2,3])
    >>> ShapedArray((), np.int32, weak_type=True) is ShapedArray((), np.int32, weak_type=True)
    True
    """

    __slots__ = ("__weakref__", "dtype", "explicit_sharding", "shape", "vma", "weak_type")
    _interned: weakref.WeakValueDictionary[tuple, ShapedArray] = weakref.WeakValueDictionary()
    _interning = threading.RLock()

    shape: tuple[int, ...]
    dtype: Any
    weak_type: bool
    vma: frozenset
    explicit_sharding: Any
    # the hooks: functions of shardings in types; the sharding, or an empty one
    shardings: Any
    sharding: Any

    # JAX: types have memory spaces. Here arrays have them.
    def __new__(cls, shape: Sequence[int], dtype: Any, weak_type: bool = False,
                vma: frozenset = frozenset(), sharding: Any = None, *, memory_space: Any = None
                ) -> ShapedArray:
        if not isinstance(dtype, (np.dtype, dtypes.KeyType)):
            dtype = np.dtype(dtype)
        key = (tuple(shape), dtype, bool(weak_type), vma,
               sharding and cls.shardings.explicit_sharding(sharding, len(shape)))
        interned = cls._interned.get(key)
        if interned is None:
            new = object.__new__(cls)
            for name, part in zip(_PARTS, key, strict=True):
                object.__setattr__(new, name, part)
            with cls._interning:  # one winner among threads
                interned = cls._interned.setdefault(key, new)
        return interned

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a ShapedArray is immutable; use .update({name}=...)")

    def __reduce__(self) -> tuple:
        return ShapedArray, tuple(getattr(self, name) for name in _PARTS)

    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: math.prod(self.shape))

    def update(self, **changes: Any) -> ShapedArray:
        """The same type with some of its parts replaced; another shape has no sharding."""
        parts = {name: getattr(self, name) for name in _PARTS[:4]}
        where = None if "shape" in changes else self.explicit_sharding
        return ShapedArray(**{**parts, "sharding": where, **changes})

    def strip_weak_type(self) -> ShapedArray:
        return self.update(weak_type=False) if self.weak_type else self

    def to_tangent_aval(self) -> ShapedArray:
        """The type of its tangents: itself, or `float0` for integers and booleans."""
        inexact = dtypes.issubdtype(self.dtype, np.inexact)
        return self if inexact else self.update(dtype=dtypes.float0, weak_type=False)

    at_least_vspace = to_tangent_aval  # its former name in JAX

    def str_short(self, short_dtypes: bool = False) -> str:
        """As an error message writes it, ``float32[2,3]``; or as a jaxpr does: ``f32[2,3]``."""
        name = dtypes.short_name if short_dtypes else dtype_name
        if self.vma or self.explicit_sharding is not None:
            return name(self.dtype) + self.shardings.axes_text(self)
        return f"{name(self.dtype)}[{','.join(map(str, self.shape))}]"

    def str_long(self) -> str:
        """As an error message writes it: ``float32[2,3]``."""
        return self.str_short()

    def __str__(self) -> str:
        return "~" * self.weak_type + self.str_short()

    def __repr__(self) -> str:
        return f"ShapedArray({self.str_long()}{', weak_type=True' * self.weak_type})"


_PARTS = ("shape", "dtype", "weak_type", "vma", "explicit_sharding")


lazily.hold_over_forks(ShapedArray._interning)
Avals = Sequence[ShapedArray]  # the types of an operation's operands, or of its results


def dtype_name(dtype: Any) -> str:
    if dtype == dtypes.float0:
        return "float0"
    return dtype.name if isinstance(dtype, dtypes.KeyType) else str(np.dtype(dtype))


def has_key_dtype(aval: ShapedArray) -> bool:
    return isinstance(aval.dtype, dtypes.KeyType)


def physical_aval(aval: ShapedArray) -> ShapedArray:
    """The type of the buffer behind a value: keys are `uint32` words in a trailing axis, and
    `float0` is stored as `bool`, all False.
    """
    if aval.dtype == dtypes.float0:
        return aval.update(dtype=np.dtype(bool))
    if has_key_dtype(aval):
        return aval.update(shape=(*aval.shape, *aval.dtype.shape), dtype=np.dtype(np.uint32),
                           weak_type=False)
    return aval


class Zero(NamedTuple):
    """A symbolic zero: a tangent or cotangent known to be zero."""

    aval: ShapedArray


class Undefined(NamedTuple):
    """In a transpose rule: an argument in which the operation is linear."""

    aval: ShapedArray


class Effect:
    """An action of an equation besides computing its outputs.

    An `observable` effect keeps the equation: no pass drops, merges or reorders it.
    """

    observable = True

    def __repr__(self) -> str:
        return type(self).__name__.removesuffix("Effect")


@dataclass(frozen=True, repr=False)
class NamedAxisEffect(Effect):
    """The equation refers to a named axis, so it must be batched along it."""

    name: Any
    observable = False

    def __repr__(self) -> str:
        return f"NamedAxisEffect({self.name!r})"


Effects = frozenset[Effect]

no_effects: Effects = frozenset()


class Program:
    """Base of jaxprs: a program in an equation's parameters, whose effects the equation has."""

    effects: Effects


def programs_in(params: Params) -> Iterator[Program]:
    """The programs among an equation's parameters, in their order."""
    for value in params.values():
        parts = value if isinstance(value, (tuple, list)) else (value,)
        yield from [part for part in parts if isinstance(part, Program)]
