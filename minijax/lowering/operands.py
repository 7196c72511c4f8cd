"""Operands: an array is a function from an index to a scalar, stored or computed.

Stands on builder.py. What element, loop and library rules are handed. Chapter 23.
In XLA: the generators that the elemental IR emitter passes around.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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

    def flat(self, position: Any) -> Operand:
        index = self.b.unravel(self.b.index(position), self.shape)
        return self(index)

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

    def mark(self) -> None:
        """Tell the sanitiser that its buffer has a new value from here on."""
        if self.buffer is not None:
            self.b.mark("holds", self, self, self.buffer, (), self.shape)


def fixed(b: Builder, x: Operand) -> Computed:
    """A 0-d operand that is one scalar."""
    return Computed(b, lambda index: x, (), x.dtype)


def row(x: Value, i: Any) -> Value:
    """x without its leading axis, at position i of it."""
    position = x.b.index(i)
    if isinstance(x, Cell) and x.buffer is not None:
        return Stored(x.b, x.buffer, (position,))
    if isinstance(x, Stored):
        return Stored(x.b, x.buffer, (*x.prefix, position), x.held)
    return Computed(x.b, lambda index: x((position, *index)), x.shape[1:], x.dtype)


def whole_buffer(x: Value) -> Buffer | None:
    """The buffer that holds exactly x, if there is one."""
    if isinstance(x, Cell):
        return x.buffer
    return x.buffer if isinstance(x, Stored) and not x.prefix else None


def copy(b: Builder, x: Value, target: Stored) -> None:
    """Evaluate x at every index, into the target."""
    if isinstance(x, Stored | Cell) and x.size and len(x.shape) > 1:
        with b.loop(x.size, vectorize="parallel") as k:
            index = b.unravel(b.index(k), x.shape)
            target.store(index, x(index))
        return
    _copy_nest(b, x, target, ())


def _copy_nest(b: Builder, x: Value, target: Stored, index: tuple[Operand, ...]) -> None:
    axis = len(index)
    if axis == len(x.shape):
        target.store(index, x(index))
        return
    innermost = axis == len(x.shape) - 1
    with b.loop(x.shape[axis], vectorize="parallel" if innermost else "apart") as i:
        _copy_nest(b, x, target, (*index, i))
