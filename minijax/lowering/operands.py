"""Operands: an array is a function from an index to a scalar, stored or computed; their builder.

Stands on builder.py. What rules are handed, and what loop and library rules write with; schedule.py
adds programs inside. Chapter 23. In XLA: the generators that the elemental IR emitter passes
around; in JAX: the lowering context of `jax/_src/interpreters/mlir.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from . import host
from .builder import Builder
from .loops import Address, Buffer, Operand, Scalar, Variable
from .routines import ALONE


class Value:
    """An operand: `x(index)` and `x.flat(position)` are scalars; it has a shape and a dtype."""

    buffer: Buffer | None = None  # where it is stored
    whole: Buffer | None = None   # the buffer that holds exactly this

    def __init__(self, b: Builder, shape: Sequence[int], dtype: np.dtype) -> None:
        self.b, self.shape, self.dtype = b, tuple(shape), np.dtype(dtype)
        self.ndim, self.size = len(self.shape), math.prod(self.shape)

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


class ProgramBuilder(Builder):
    """What a lowering rule is given as `b`."""

    def __init__(self) -> None:
        super().__init__()
        self.constants: list[Buffer] = []
        self.origins: dict[Any, Any] = {}  # scalars and buffers → the jaxpr variable they hold
        self.others: list[tuple[Any, Any]] = []  # the same, of those that hold several
        self.lines: dict[Any, str] = {}  # statements → the user's line that made them
        self.loops: dict[Any, str] = {}  # those of an operation that is loops → its line

    def value(self, x: Value | Buffer | Variable) -> Value:
        """An operand as it is now: the elements of a buffer, what a variable holds."""
        if isinstance(x, Variable):
            return self.fixed(self.read(x))
        return Stored(self, x) if isinstance(x, Buffer) else x

    def fixed(self, x: Operand) -> Value:
        """A scalar as a 0-d operand."""
        return Computed(self, lambda index: x, (), x.dtype)

    def row(self, x: Value | Buffer, i: Any) -> Any:
        """An operand without its leading axis, at position i; what is stored may be written too."""
        return self.value(x).row(i)

    def constant(self, value: np.ndarray) -> Value:
        """An array known at compile time."""
        value = np.asarray(value)
        if value.ndim == 0:
            return self.fixed(self.const(value[()], value.dtype))
        found = next((each for each in self.constants if each.value is value), None)
        if found is None:
            found = Buffer(f"const{len(self.constants)}", value.dtype, value.shape, "constant",
                           np.ascontiguousarray(value))
            self.constants.append(found)
        return Stored(self, found)

    def cell(self, x: Value, buffer: Buffer) -> Variable | Stored:
        """A place for a value that changes, which begins with x: a variable, or in a buffer."""
        if not x.shape:
            return self.variable(x(()))
        return Stored(self, self.materialize(x, into=buffer))

    def materialize(self, x: Value | Variable, into: Buffer | None = None) -> Buffer:
        """A buffer that holds x: `into`, or the one it lives in, or a new one."""
        value = self.value(x)
        if into is not None:
            if into is not value.whole:
                self.copy(value, Stored(self, into))
            return into
        if value.whole is not None:
            return value.whole
        if isinstance(value, Stored) and not value.prefix:  # its elements do not lie together
            return self.before_loops(value.buffer, value.suffix, lambda: self._copied(value))
        return self._copied(value)

    def _copied(self, x: Value) -> Buffer:
        buffer = self.temp(x.shape, x.dtype)
        self.copy(x, Stored(self, buffer))
        self.freeze(buffer)
        return buffer

    def copy(self, x: Value, target: Stored) -> None:
        """Evaluate x at every index, into the target."""
        with self.loop(x.size, vectorize="parallel") as k:
            index = self.unravel(self.index(k), x.shape)
            target.store(index, x(index))

    @contextmanager
    def square(self, rows: Any, columns: Any, side: int) -> Iterator[tuple[Operand, Operand]]:
        """Loops over rows and columns, of which there are at most as many as the sides have: on a
        GPU all threads of a block take some, and leave out what is not there.
        """
        with ExitStack() as stack:
            enter = stack.enter_context
            if not self.on_gpu:
                yield enter(self.loop(rows)), enter(self.loop(columns, vectorize="parallel"))
                return
            k = enter(self.loop(side * side, vectorize="parallel"))
            i, j = map(self.actual, self.unravel(k, (side, side)))
            if (rows, columns) != (side, side):
                enter(self.when(self.and_(self.lt(i, rows), self.lt(j, columns))))
            yield i, j

    def changes_in_loop(self, buffer: Buffer) -> bool:
        """Whether the innermost loop may write to a buffer; outside of loops, always."""
        return self._buffer_depth(buffer) >= self.scopes[-1].loop_depth

    def before_loops(self, buffer: Buffer, what: Any, make: Callable[[], Any]) -> Any:
        """What `make` gives, once, outside of all loops around that do not change a buffer."""
        key = ("before loops", buffer, what)
        found = self.find(key)
        if found is None:
            depth = self._buffer_depth(buffer) + 1
            inner, self.scopes[depth:] = self.scopes[depth:], []
            found = make()
            self.remember(key, found)
            self.scopes.extend(inner)
        return found

    def address(self, x: Value) -> Any:
        """What a library call is given for an operand: its buffer, or an address inside one."""
        if isinstance(x, Stored) and x.prefix and not x.suffix:
            return Address(x.buffer, (*x.prefix, *[self.index(0)] * x.ndim))
        return self.materialize(x)

    @contextmanager
    def threads_of_ours(self, large: bool) -> Iterator[None]:
        """While it is open the library has no threads of its own: they and ours would be in each
        other's way. A problem that is not `large` it gives to one thread anyway.
        """
        if large:
            self.call(ALONE, 1)
        yield
        if large:
            self.call(ALONE, -1)

    def host_call(self, function: Callable[..., Any], args: Sequence[Value],
                  outputs: Sequence[Buffer] = ()) -> None:
        """Call a Python function with copies of the operands, here and now; it gives the outputs.

        If it raises, the kernel ends: a loop around might otherwise never do so.
        """
        arrays: list[Any] = [*args, *outputs]
        table = self.constant(host.table(function, [(x.shape, x.dtype) for x in arrays],
                                         len(args)))
        raised = self.temp((1,), np.int32, "raised")
        self.store(raised, (0,), 0)
        self.call(host.CALL, self.materialize(table), raised,
                  *map(self.address, args), *outputs)
        self.check(self.eq(self.load(raised, (0,)), 0), host.RAISED)

    def origin(self, thing: Scalar | Buffer, variable: Any) -> None:
        """Say which variable of the jaxpr a scalar or buffer holds; it bears the first one's name.
        """
        if self.origins.setdefault(thing, variable) is not variable:
            self.others.append((thing, variable))
