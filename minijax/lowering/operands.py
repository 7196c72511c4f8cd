"""Operands: an array is a function from an index to a scalar, stored or computed.

Stands on builder.py. What element, loop and library rules are handed. Chapter 23.
In XLA: the generators that the elemental IR emitter passes around.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np

from .builder import Builder
from .loops import Buffer, Flat, Operand, Variable

Shape = tuple[int, ...]


class Value:
    """An operand: `x(index)` and `x.flat(position)` are scalars; it has a shape and a dtype."""

    def __init__(self, b: Builder, shape: Sequence[int], dtype: np.dtype) -> None:
        self.b, self.shape, self.dtype = b, tuple(shape), np.dtype(dtype)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    def __call__(self, index: Sequence[Any] = ()) -> Operand:
        raise NotImplementedError

    def flat(self, position: Any) -> Operand:
        """The element at a row-major position."""
        return self(self.b.unravel(self.b.index(position), self.shape))

    def row(self, i: Any) -> Value:
        """The operand without its leading axis, at position i of it."""
        position = self.b.index(i)
        return Computed(self.b, lambda index: self((position, *index)), self.shape[1:], self.dtype)

    @property
    def whole(self) -> Buffer | None:
        """The buffer that holds exactly this, if there is one."""
        return None


class Held(NamedTuple):
    """For the sanitiser: what lies in memory below the first `outer` indices."""

    owner: Any
    value: Any
    outer: int = 0

    def mark(self, b: Builder, what: str, at: Stored, target: Any, index: Sequence[Any]) -> None:
        """Say it of an element, or of the part of a buffer below an index."""
        shape = at.buffer.shape
        whole = b.within((*index, *shape[len(index):]), shape)[:len(index)]
        skip = self.outer if what == "reads" else 0
        b.mark(what, self.owner, self.value, target, whole[skip:], shape[self.outer:])


class Stored(Value):
    """The elements of a buffer, or of the part of it below some leading indices."""

    def __init__(self, b: Builder, buffer: Buffer, prefix: Sequence[Operand] = (),
                 held: Held | None = None) -> None:
        super().__init__(b, buffer.shape[len(prefix):], buffer.dtype)
        self.buffer, self.prefix = buffer, tuple(prefix)
        self.held = held

    def __call__(self, index: Sequence[Any] = ()) -> Operand:
        at = (*self.prefix, *index)
        x = self.b.load(self.buffer, at)
        if self.held is not None:
            self.held.mark(self.b, "reads", self, x, at)
        return x

    def store(self, index: Sequence[Any], x: Any) -> None:
        """Write one element."""
        self.b.store(self.buffer, (*self.prefix, *index), x)

    def row(self, i: Any) -> Stored:
        return Stored(self.b, self.buffer, (*self.prefix, self.b.index(i)), self.held)

    @property
    def whole(self) -> Buffer | None:
        return None if self.prefix else self.buffer

    def flat_index(self) -> Flat:
        """The position of the first element in the buffer."""
        zeros = (0,) * len(self.shape)
        return Flat(self.b.actual(self.b.ravel((*self.prefix, *zeros), self.buffer.shape)))


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


class Cell(Value):
    """A mutable operand: a variable where it is a scalar, else a buffer."""

    def __init__(self, b: Builder, shape: Sequence[int], dtype: np.dtype,
                 buffer: Buffer | None, variable: Variable | None) -> None:
        super().__init__(b, shape, dtype)
        self.buffer, self.variable = buffer, variable

    def __call__(self, index: Sequence[Any] = ()) -> Operand:
        if self.variable is not None:
            return self.b.read(self.variable)
        assert self.buffer is not None
        at = self.b.within(index, self.shape)
        x = self.b.load(self.buffer, at)
        self.b.mark("reads", self, self, x, at, self.shape)
        return x

    def row(self, i: Any) -> Stored:
        assert self.buffer is not None
        return Stored(self.b, self.buffer, (self.b.index(i),))

    @property
    def whole(self) -> Buffer | None:
        return self.buffer

    def mark(self) -> None:
        """Tell the sanitiser that its buffer has a new value from here on."""
        if self.buffer is not None:
            self.b.mark("holds", self, self, self.buffer, (), self.shape)


def copy(b: Builder, x: Value, target: Stored) -> None:
    """Evaluate x at every index, into the target."""
    if isinstance(x, Stored | Cell) and x.size and x.ndim > 1:
        with b.loop(x.size, vectorize="parallel") as k:
            index = b.unravel(b.index(k), x.shape)
            target.store(index, x(index))
        return
    with ExitStack() as loops:
        index = tuple(loops.enter_context(b.loop(
            n, vectorize="parallel" if axis == x.ndim - 1 else "apart"))
            for axis, n in enumerate(x.shape))
        target.store(index, x(index))
