"""The builder of operands: constants, cells, rows, views, copies, calls of Python.

Stands on operands.py. What loop and library rules write with; schedule.py adds programs inside.
Chapter 24. In JAX: the lowering context of `jax/_src/interpreters/mlir.py`.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from . import host, operands
from .builder import Builder
from .loops import Address, Buffer, Operand, Scalar, Variable
from .operands import Computed, Stored, Value
from .routines import ALONE


class ProgramBuilder(Builder):
    """What a lowering rule is given as `b`."""

    def __init__(self) -> None:
        super().__init__()
        self.constants: list[Buffer] = []
        self.origins: dict[Any, Any] = {}  # scalars and buffers → the jaxpr variable they hold
        self.others: list[tuple[Any, Any]] = []  # the same, of those that hold several
        self.lines: dict[Any, str] = {}  # statements → the user's line that made them

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
        for buffer in self.constants:
            if buffer.value is value:
                return Stored(self, buffer)
        name = f"const{len(self.constants)}"
        buffer = Buffer(name, value.dtype, value.shape, "constant", np.ascontiguousarray(value))
        self.constants.append(buffer)
        return Stored(self, buffer)

    def cell(self, x: Value, buffer: Buffer) -> Variable | Stored:
        """A place for a value that changes, which begins with x: a variable, or in a buffer."""
        if not x.shape:
            return self.variable(x(()))
        return Stored(self, self.materialize(x, into=buffer))

    def materialize(self, x: Value | Variable, into: Buffer | None = None) -> Buffer:
        """A buffer that holds x: `into`, or the one it lives in, or a new one."""
        value = self.value(x)
        if into is None and isinstance(value, Stored) and value.suffix and not value.prefix:
            return self._gathered(value)
        buffer = into or value.whole or self.temp(value.shape, value.dtype)
        if buffer is not value.whole:
            operands.copy(self, value, Stored(self, buffer))
            if into is None:
                self.freeze(buffer)
        return buffer

    def _gathered(self, x: Stored) -> Buffer:
        """A copy of what does not lie together, made once, before the loops that read it."""
        key = ("gathered", x.buffer, x.suffix)
        found = self.find(key)
        if found is None:
            with self.before_loops(x.buffer):
                found = self.temp(x.shape, x.dtype)
                operands.copy(self, x, Stored(self, found))
                self.freeze(found)
                self.remember(key, found)
        return found

    def changes_in_loop(self, buffer: Buffer) -> bool:
        """Whether the innermost loop may write to a buffer; outside of loops, always."""
        return self._buffer_depth(buffer) >= self.scopes[-1].loop_depth

    @contextmanager
    def before_loops(self, buffer: Buffer) -> Iterator[None]:
        """Emit outside of all loops around that do not change a buffer."""
        depth = self._buffer_depth(buffer) + 1
        inner, self.scopes[depth:] = self.scopes[depth:], []
        try:
            yield
        finally:
            self.scopes.extend(inner)

    def address(self, x: Value) -> Any:
        """What a library call is given for an operand: its buffer, or an address inside one."""
        if isinstance(x, Stored) and x.prefix and not x.suffix:
            return Address(x.buffer, x.flat_index())
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
        self.call(host.call_name(len(arrays)), self.materialize(table), raised,
                  *map(self.address, args), *outputs)
        self.check(self.eq(self.load(raised, (0,)), 0), host.RAISED)

    def origin(self, thing: Scalar | Buffer, variable: Any) -> None:
        """Say which variable of the jaxpr a scalar or buffer holds; it bears the first one's name.
        """
        if self.origins.setdefault(thing, variable) is not variable:
            self.others.append((thing, variable))
