"""The builder with programs: cells, rows, views, copies, and nested jaxprs lowered in place.

Stands on operands.py; `jaxpr` hands over to schedule.py. What loop and library rules write
with, control flow above all. Chapter 24. In JAX: `mlir.jaxpr_subcomp` and its context.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from minijax.jaxpr import ClosedJaxpr

from . import operands
from .builder import Builder
from .loops import Buffer, Operand, Scalar
from .operands import Cell, Stored, Value

Destination = Buffer | Stored | Cell | None


class ProgramBuilder(Builder):
    """What a lowering rule is given as `b`."""

    def __init__(self) -> None:
        super().__init__()
        self.constants: list[Buffer] = []
        self.origins: dict[Any, Any] = {}  # scalars and buffers → the jaxpr variable they hold
        self.lines: dict[Any, str] = {}  # statements → the user's line that made them

    def stored(self, buffer: Buffer) -> Stored:
        """A buffer as an operand."""
        return Stored(self, buffer)

    def fixed(self, x: Operand) -> Value:
        """A scalar as a 0-d operand."""
        return operands.fixed(self, x)

    def row(self, x: Value, i: Any) -> Value:
        """The operand without its leading axis, at position i."""
        return operands.row(x, i)

    def view(self, buffer: Buffer | Stored, i: Any) -> Stored:
        """A row of a buffer, to be read or written."""
        whole = buffer if isinstance(buffer, Stored) else Stored(self, buffer)
        return Stored(self, whole.buffer, (*whole.prefix, self.index(i)))

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

    def cell(self, x: Value, buffer: Buffer | Stored | None = None) -> Cell:
        """A mutable operand that begins with x: a variable, or a buffer (`buffer`, if given)."""
        if not x.shape:
            return Cell(self, (), x.dtype, None, self.variable(x(())))
        if not isinstance(buffer, Buffer):
            buffer = self.temp(x.shape, x.dtype)
        cell = Cell(self, x.shape, x.dtype, buffer, None)
        self.materialize(x, into=buffer)
        cell.mark()
        return cell

    def materialize(self, x: Value, into: Buffer | Stored | None = None) -> Buffer:
        """A buffer that holds x: the one it lives in, or a new one, or `into`."""
        buffer = operands.whole_buffer(x)
        if into is None and buffer is not None:
            return buffer
        if into is None:
            into = self.temp(x.shape, x.dtype)
            operands.copy(self, x, Stored(self, into))
            self.freeze(into)
            return into
        target = into if isinstance(into, Stored) else Stored(self, into)
        if buffer is not target.buffer:
            operands.copy(self, x, target)
        return target.buffer

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
        from .loops import Address

        if isinstance(x, Stored) and x.prefix:
            return Address(x.buffer, x.flat_index())
        return self.materialize(x)

    def host_call(self, function: Callable[..., None], args: Sequence[Value]) -> None:
        """Call a Python function with copies of the operands, here and now.

        If it raises, the kernel ends: a loop around might otherwise never do so.
        """
        from .host import RAISED, HostFunction, call_name

        host = HostFunction(function, [(x.shape, x.dtype) for x in args])
        table = self.materialize(self.constant(host.table))
        raised = self.temp((1,), np.int32, self.fresh("raised"))
        self.store(raised, (0,), 0)
        self.call(call_name(len(args)), table, raised, *[self.address(x) for x in args])
        self.check(self.eq(self.load(raised, (0,)), 0), RAISED)

    def jaxpr(self, closed: ClosedJaxpr, args: Sequence[Any],
              into: Sequence[Destination] | None = None) -> list[Value]:
        """Lower a nested program here.

        `into` says for each output where it goes: a buffer, a view, a cell, or None for a
        place of the builder's choice. All cells change together, after everything is read.
        """
        from .schedule import run_program  # it stands on this module
        from .simplify import simplify

        closed = simplify(closed)
        values = [self._snapshot(x) for x in args]
        consts = [self.constant(np.asarray(getattr(c, "_buffer", c))) for c in closed.consts]
        places = list(into) if into is not None else [None] * len(closed.jaxpr.outvars)
        return run_program(self, closed.jaxpr, [*consts, *values], places)

    def _snapshot(self, x: Any) -> Value:
        """The operand as it is now: a variable's value is read."""
        if isinstance(x, Cell) and x.variable is not None:
            return self.fixed(self.read(x.variable))
        if isinstance(x, Buffer):
            return Stored(self, x)
        return x if isinstance(x, Value) else self.fixed(x)

    def origin(self, thing: Scalar | Buffer, variable: Any) -> None:
        """Say which variable of the jaxpr a scalar or buffer holds; the first saying counts."""
        self.origins.setdefault(thing, variable)
