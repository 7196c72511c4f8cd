"""Operands: an array is a function from an index to a scalar, stored or computed; their builder.

Builds on builder.py. Rules take operands; loop and library rules take the builder, to which
schedule.py adds nested programs. Chapter 23. In XLA: the generators of the elemental IR emitter;
in JAX: the lowering context of `jax/_src/interpreters/mlir.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from . import host
from .builder import Builder
from .duplicates import captures, is_function, repeated
from .loops import (Address, Buffer, Call, Constant, Let, Load, Operand, Scalar, Variable, defined)
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
        """The operand at position i of its leading axis."""
        position = self.b.index(i)
        return Computed(self.b, lambda index: self((position, *index)), self.shape[1:], self.dtype)


class Stored(Value):
    """The elements of a buffer, or of a part of it: with fixed first and last indices."""

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
    """A function of the index, evaluated where it is used; once for each index in a scope."""

    def __init__(self, b: Builder, f: Callable[[tuple[Operand, ...]], Operand],
                 shape: Sequence[int], dtype: np.dtype) -> None:
        super().__init__(b, shape, dtype)
        self.f = f

    def __call__(self, index: Sequence[Any] = ()) -> Operand:
        at = self.b.within(index, self.shape)
        return self.b.available(("value", self, at), lambda: self.f(at))


class ProgramBuilder(Builder):
    """The builder `b` that lowering rules take."""

    def __init__(self) -> None:
        super().__init__()
        self.constants: list[Buffer] = []
        self._buffers: dict[int, tuple[Buffer, Any]] = {}  # of constants, by the ids of the arrays
        self._kernels: dict[Any, Any] = {}  # their statements, and the places of their buffers
        self.origins: dict[Any, Any] = {}  # scalars and buffers → the jaxpr variable they hold
        self.others: list[tuple[Any, Any]] = []  # further variables that these hold
        self.rounded_products: list[Operand] = []  # which contraction leaves alone
        self.variables: dict[Any, dict] = {}  # duplicates → their variables by those of the first
        self.lines: dict[Any, str] = {}  # statements → the user's line that made them
        self.loops: dict[Any, str] = {}  # statements of an opaque operation → its line

    def value(self, x: Value | Buffer | Variable) -> Value:
        """An operand for the current elements of a buffer, or the current value of a variable."""
        if isinstance(x, Variable):
            return self.fixed(self.read(x))
        return Stored(self, x) if isinstance(x, Buffer) else x

    def fixed(self, x: Operand) -> Value:
        """A scalar as a 0-d operand."""
        return Computed(self, lambda index: x, (), x.dtype)

    def row(self, x: Value | Buffer, i: Any) -> Any:
        """The operand at position i of the leading axis; a stored one can be written to."""
        return self.value(x).row(i)

    def constant(self, value: np.ndarray) -> Value:
        """An array known at compile time."""
        value = np.asarray(value)
        if value.ndim == 0:
            return self.fixed(self.const(value[()], value.dtype))
        if id(value) not in self._buffers:
            buffer = Buffer(f"const{len(self.constants)}", value.dtype, value.shape, "constant",
                            np.ascontiguousarray(value))
            self.constants.append(buffer)
            self._buffers[id(value)] = buffer, value
        return Stored(self, self._buffers[id(value)][0])

    def once(self, rule: tuple, buffers: Sequence[Buffer], emit: Callable[[], Any],
             variables: Sequence[Any]) -> bool:
        """Emit the statements of a rule on some buffers, outside of loops; if it has emitted such
        before, on others of the same types, duplicates of these. Returns whether it has.

        `variables`: those of the jaxpr that the statements compute.
        """
        body, places = self.scopes[0].statements, {x: k for k, x in enumerate(buffers)}
        key = *rule, *((places[x], x.shape, x.dtype, x.role) for x in buffers)
        if key in self._kernels:
            statements, where, theirs = self._kernels[key]
            names: dict[Any, Any] = {x: self.temp(x.shape, x.dtype, x.name) if k is None
                                     else buffers[k] for x, k in where.items()}
            own = dict(zip(theirs, variables, strict=True))
            for old, new in zip(statements, repeated(statements, names), strict=True):
                body.append(new)
                self.variables[new] = own
                for lines in (self.lines, self.loops):
                    if old in lines:
                        lines[new] = lines[old]
            for x in [x for x in names if x in self.origins]:
                self.origins.setdefault(names[x], own.get(self.origins[x], self.origins[x]))
            return True
        start, temps = len(body), len(self.temps)
        emit()
        where = {**dict.fromkeys(self.temps[temps:]), **places}
        made = body[start:]
        known = {*where, *self.constants, *map(defined, made)}
        if all(is_function(x) or isinstance(x, Call | Let | Load) for x in made) and all(
                isinstance(x, Constant) or x in known for each in made for x in captures(each)):
            self._kernels[key] = made, where, variables
        return False

    def cell(self, x: Value, buffer: Buffer) -> Variable | Stored:
        """A mutable value that starts as x: a variable, or a buffer."""
        if not x.shape:
            return self.variable(x(()))
        return Stored(self, self.materialize(x, into=buffer))

    def materialize(self, x: Value | Variable, into: Buffer | None = None) -> Buffer:
        """A buffer that holds x: `into`, or its own, or a new one."""
        value = self.value(x)
        if into is not None:
            if into is not value.whole:
                self.copy(value, Stored(self, into))
            return into
        if value.whole is not None:
            return value.whole
        if isinstance(value, Stored) and not value.prefix:  # its elements are not contiguous
            return self.before_loops(value.buffer, value.suffix, lambda: self._copied(value))
        return self._copied(value)

    def _copied(self, x: Value) -> Buffer:
        buffer = self.temp(x.shape, x.dtype)
        self.copy(x, Stored(self, buffer))
        self.freeze(buffer)
        return buffer

    def copy(self, x: Value, target: Stored) -> None:
        """Evaluate x at every index, and store it in the target."""
        with self.loop(x.size, vectorize="parallel") as k:
            index = self.unravel(k, x.shape)
            target.store(index, x(index))

    @contextmanager
    def rectangle(self, rows: Any, columns: Any, sides: tuple[int, int]
                  ) -> Iterator[tuple[Operand, Operand]]:
        """Loops over the rows and columns of a tile, at most those of `sides`. On a GPU the loops
        have full length, for all threads of a block, and mask what is out of range.
        """
        with ExitStack() as stack:
            enter = stack.enter_context
            if not self.on_gpu:
                yield enter(self.loop(rows)), enter(self.loop(columns, vectorize="parallel"))
                return
            k = enter(self.loop(math.prod(sides), vectorize="parallel"))
            i, j = self.divided(k, sides)
            enter(self.when([rows, columns] == [*map(self.index, sides)] or self.and_(
                self.lt(i, rows), self.lt(j, columns))))
            yield i, j

    def changes_in_loop(self, buffer: Buffer) -> bool:
        """Whether the innermost loop may write to a buffer; true outside of loops."""
        return self._buffer_depth(buffer) >= self.scopes[-1].loop_depth

    def before_loops(self, buffer: Buffer, what: Any, make: Callable[[], Any]) -> Any:
        """The result of `make`, hoisted out of all enclosing loops that do not change a buffer."""
        depth = self._buffer_depth(buffer) + 1
        inner, self.scopes[depth:] = self.scopes[depth:], []
        result = self.available(("before loops", buffer, what), make)
        self.scopes.extend(inner)
        return result

    def address(self, x: Value) -> Any:
        """The argument of a library call for an operand: its buffer, or an address inside one."""
        if isinstance(x, Stored) and x.prefix and not x.suffix:
            return Address(x.buffer, (*x.prefix, *[self.index(0)] * x.ndim))
        return self.materialize(x)

    @contextmanager
    def threads_of_ours(self, large: bool) -> Iterator[None]:
        """Limit the library to one thread in the body: its threads would compete with ours. For a
        problem that is not `large` it takes one thread anyway.
        """
        if large:
            self.call(ALONE, 1)
        yield
        if large:
            self.call(ALONE, -1)

    def host_call(self, function: Callable[..., Any], args: Sequence[Value],
                  outputs: Sequence[Buffer] = (), views: bool = False) -> None:
        """Call a Python function with copies of the operands; it returns the outputs.

        With `views` it takes the operands themselves, and only reads them. If it raises, the kernel
        returns: an enclosing loop might otherwise never end.
        """
        arrays: list[Any] = [*args, *outputs]
        types = [(x.shape, x.dtype) for x in arrays]
        table = self.constant(host.table(function, types, len(args), views))
        raised = self.temp((1,), np.int64, "raised")
        self.store(raised, (0,), 0)
        self.call(host.CALL, self.materialize(table), raised, *map(self.address, args), *outputs)
        self.check(self.eq(self.load(raised, (0,)), 0), host.RAISED)

    def rounded(self, x: Operand) -> Operand:
        """x, rounded before it is added: contraction leaves it alone."""
        self.rounded_products.append(x)
        return x

    def origin(self, value: Scalar | Buffer, variable: Any) -> None:
        """Record which variable of the jaxpr a scalar or buffer holds; it is named after the first.
        """
        if self.origins.setdefault(value, variable) is not variable:
            self.others.append((value, variable))
