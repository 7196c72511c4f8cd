"""Operands: an array is a function from an index to a scalar, stored or computed.

Stands on builder.py. What element, loop and library rules are handed. Chapter 23.
In XLA: the generators that the elemental IR emitter passes around.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .builder import Builder
from .loops import Buffer, Index, Operand


class Value:
    """An operand: `x(index)` and `x.flat(position)` are scalars; it has a shape and a dtype."""

    buffer: Buffer | None = None  # where it is stored
    whole: Buffer | None = None   # the buffer that holds exactly this

    def __init__(self, b: Builder, shape: Sequence[int], dtype: np.dtype) -> None:
        self.b, self.shape, self.dtype = b, tuple(shape), np.dtype(dtype)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    def __call__(self, index: Sequence[Any] = ()) -> Operand:
        raise NotImplementedError

    def flat(self, position: Any) -> Operand:
        """The element at a row-major position."""
        return self(self.b.unravel(self.b.index(position), self.shape))

    def row(self, i: Any) -> Value:
        """The operand without its leading axis, at position i of it."""
        position = self.b.index(i)
        return Computed(self.b, lambda index: self((position, *index)), self.shape[1:], self.dtype)


class Stored(Value):
    """The elements of a buffer, or of a part of it: below some first indices, at some last ones."""

    buffer: Buffer

    def __init__(self, b: Builder, buffer: Buffer, prefix: Sequence[Operand] = (),
                 suffix: Sequence[int] = ()) -> None:
        super().__init__(b, buffer.shape[len(prefix):len(buffer.shape) - len(suffix)], buffer.dtype)
        self.buffer, self.prefix, self.suffix = buffer, tuple(prefix), tuple(suffix)
        self.whole = None if prefix or suffix else buffer

    def __call__(self, index: Sequence[Any] = ()) -> Operand:
        return self.b.load(self.buffer, (*self.prefix, *index, *self.suffix))

    def store(self, index: Sequence[Any], x: Any) -> None:
        """Write one element."""
        self.b.store(self.buffer, (*self.prefix, *index, *self.suffix), x)

    def row(self, i: Any) -> Stored:
        return Stored(self.b, self.buffer, (*self.prefix, self.b.index(i)), self.suffix)

    def flat_index(self) -> Index:
        """The position of the first element in the buffer."""
        zeros = (0,) * len(self.shape)
        return (self.b.ravel((*self.prefix, *zeros), self.buffer.shape),)


class Computed(Value):
    """A function of the index, run where it is asked; each (value, index) only once a scope."""

    def __init__(self, b: Builder, f: Callable[[tuple[Operand, ...]], Operand],
                 shape: Sequence[int], dtype: np.dtype) -> None:
        super().__init__(b, shape, dtype)
        self.f = f

    def __call__(self, index: Sequence[Any] = ()) -> Operand:
        at = self.b.within(index, self.shape)
        key = ("value", self, at)
        found = self.b.find(key)
        if found is None:
            found = self.f(at)
            self.b.remember(key, found)
        return found


def copy(b: Builder, x: Value, target: Stored) -> None:
    """Evaluate x at every index, into the target."""
    with b.loop(x.size, vectorize="parallel") as k:
        index = b.unravel(b.index(k), x.shape)
        target.store(index, x(index))
