"""The loop tree: a small, typed, frozen program over buffers and scalars, and its checker.

Stands on scalars.py. What schedule.py builds and text.py, cpu.py print. Chapter 24.
In JAX this role is played by HLO after fusion and by XLA's own loop emitters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from .scalars import BOOL, INT64, OPS, NumpyScalars, kind_of, result_dtype

__all__ = [
    "Address", "Assign", "BOOL", "Buffer", "Call", "Check", "Constant", "Declare", "Flat", "For",
    "INT64", "If", "Kernel", "Let", "Load", "NumpyScalars", "OPS", "Operand", "Read", "Scalar",
    "Statement", "Store", "Variable", "While", "check_kernel", "format_kernel",
]


@dataclass(frozen=True, eq=False)
class Buffer:
    """A C-contiguous array in memory; role is "input", "output", "constant" or "temp"."""

    name: str
    dtype: np.dtype
    shape: tuple[int, ...]
    role: str
    value: np.ndarray | None = None

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def nbytes(self) -> int:
        """The number of bytes."""
        return self.size * self.dtype.itemsize


@dataclass(frozen=True, eq=False)
class Scalar:
    """A value defined exactly once: by a Let, a Load, a Read, or as the index of a For."""

    name: str
    dtype: np.dtype


@dataclass(frozen=True, eq=False)
class Constant:
    """A literal operand; `value` is a NumPy scalar of `dtype`."""

    value: Any
    dtype: np.dtype


@dataclass(frozen=True, eq=False)
class Variable:
    """A mutable scalar: declared, read and assigned."""

    name: str
    dtype: np.dtype


Operand: TypeAlias = Scalar | Constant


@dataclass(frozen=True, eq=False)
class Flat:
    """A row-major flat position in a buffer, used in place of an index."""

    position: Operand


Index: TypeAlias = tuple[Operand, ...] | Flat


@dataclass(frozen=True, eq=False)
class Address:
    """An argument of a Call: the address of the element of `buffer` at `index`."""

    buffer: Buffer
    index: Index


@dataclass(frozen=True, eq=False)
class Let:
    """target = op(*args); `convert` and `bitcast` go to the target's dtype."""

    target: Scalar
    op: str
    args: tuple[Operand, ...]


@dataclass(frozen=True, eq=False)
class Load:
    """target = buffer[index]; the index must be inside the buffer."""

    target: Scalar
    buffer: Buffer
    index: Index


@dataclass(frozen=True, eq=False)
class Store:
    """buffer[index] = value; the index must be inside the buffer."""

    buffer: Buffer
    index: Index
    value: Operand


@dataclass(frozen=True, eq=False)
class Declare:
    """A new variable, visible to the end of the enclosing body."""

    variable: Variable
    value: Operand


@dataclass(frozen=True, eq=False)
class Assign:
    """variable = value."""

    variable: Variable
    value: Operand


@dataclass(frozen=True, eq=False)
class Read:
    """target = the variable's value now."""

    target: Scalar
    variable: Variable


@dataclass(frozen=True, eq=False)
class For:
    """for index in range(start, stop): body. 0 <= start; an empty range runs nothing.

    vectorize: "" says nothing; "parallel": iterations are independent of each other; "apart": so
    they are if each has its own copy of the temps that are used in this loop alone; "reduce":
    updates `v = v op x` of variables declared outside may be done in any association.
    """

    index: Scalar
    start: Operand
    stop: Operand
    body: tuple[Statement, ...]
    note: str = ""
    vectorize: str = ""


@dataclass(frozen=True, eq=False)
class While:
    """Run `condition`; while its scalar `test` holds run `body`, which sees those scalars."""

    condition: tuple[Statement, ...]
    test: Operand
    body: tuple[Statement, ...]


@dataclass(frozen=True, eq=False)
class If:
    """One of two bodies."""

    test: Operand
    then: tuple[Statement, ...]
    orelse: tuple[Statement, ...] = ()


@dataclass(frozen=True, eq=False)
class Call:
    """A library external on buffers (their addresses), addresses inside them, and scalars."""

    external: str
    args: tuple[Buffer | Address | Scalar | Constant, ...]


@dataclass(frozen=True, eq=False)
class Check:
    """When `ok` is false the kernel returns `code` (positive) at once."""

    ok: Operand
    code: int


Statement: TypeAlias = (
    Let | Load | Store | Declare | Assign | Read | For | While | If | Call | Check
)


@dataclass(frozen=True, eq=False)
class Kernel:
    """A compiled function's body: `int32 name(void** buffers)`.

    The pointers are inputs, outputs, constants in this order, then one workspace of
    `workspace_size` bytes; each temp lies in it at `offsets[temp]`, 64-byte aligned.
    """

    name: str
    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    constants: tuple[Buffer, ...]
    temps: tuple[Buffer, ...]
    workspace_size: int
    offsets: Mapping[Buffer, int]
    body: tuple[Statement, ...]
    notes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """All buffers: inputs, outputs, constants, temps."""
        return self.inputs + self.outputs + self.constants + self.temps

    def __str__(self) -> str:
        return format_kernel(self)


class _Checker:
    """Walks a kernel once, knowing what is in scope."""

    def __init__(self, kernel: Kernel) -> None:
        self.buffers = set(kernel.buffers)
        self.known: set[Scalar | Variable] = set()
        self.defined: set[Scalar | Variable] = set()
        self.where = kernel.name

    def fail(self, problem: str) -> None:
        raise TypeError(f"malformed kernel {self.where}: {problem}")

    def require(self, condition: bool, problem: str) -> None:
        if not condition:
            self.fail(problem)

    @contextmanager
    def scope(self) -> Iterator[None]:
        outside = set(self.known)
        yield
        self.known = outside

    def define(self, name: Scalar | Variable) -> None:
        self.require(name not in self.defined, f"{name.name} is defined twice")
        self.defined.add(name)
        self.known.add(name)

    def use(self, operand: Operand, dtype: np.dtype | None = None) -> np.dtype:
        if isinstance(operand, Scalar):
            self.require(operand in self.known, f"{operand.name} is used outside its scope")
        else:
            self.require(isinstance(operand, Constant), f"{operand!r} is not an operand")
            given = np.asarray(operand.value).dtype
            self.require(given == operand.dtype, f"constant {operand.value!r} is of dtype {given}")
        if dtype is not None:
            self.require(operand.dtype == dtype, f"{operand} is not of dtype {dtype}")
        return operand.dtype

    def variable(self, variable: Variable) -> None:
        self.require(variable in self.known, f"variable {variable.name} is not declared here")

    def place(self, buffer: Buffer, index: Index) -> None:
        self.require(buffer in self.buffers, f"buffer {buffer.name} is not of this kernel")
        if isinstance(index, Flat):
            self.use(index.position, INT64)
            return
        self.require(len(index) == len(buffer.shape),
                     f"{buffer.name} of shape {buffer.shape} has an index of {len(index)} axes")
        for position in index:
            self.use(position, INT64)

    def body(self, statements: tuple[Statement, ...]) -> None:
        for statement in statements:
            getattr(self, "check_" + type(statement).__name__.lower())(statement)

    def check_let(self, let: Let) -> None:
        self.require(let.op in OPS, f"there is no scalar operation {let.op}")
        dtypes = [self.use(arg) for arg in let.args]
        given = result_dtype(let.op, dtypes, let.target.dtype)
        self.require(given == let.target.dtype, f"{let.target.name} = {let.op}(…) gives {given}")
        self.define(let.target)

    def check_load(self, load: Load) -> None:
        self.place(load.buffer, load.index)
        self.require(load.buffer.dtype == load.target.dtype, f"load of {load.buffer.name}: dtype")
        self.define(load.target)

    def check_store(self, store: Store) -> None:
        self.place(store.buffer, store.index)
        self.require(store.buffer.role in ("output", "temp"), f"store to {store.buffer.name}")
        self.use(store.value, store.buffer.dtype)

    def check_declare(self, declare: Declare) -> None:
        self.use(declare.value, declare.variable.dtype)
        self.define(declare.variable)

    def check_assign(self, assign: Assign) -> None:
        self.variable(assign.variable)
        self.use(assign.value, assign.variable.dtype)

    def check_read(self, read: Read) -> None:
        self.variable(read.variable)
        self.require(read.target.dtype == read.variable.dtype, f"read of {read.variable.name}")
        self.define(read.target)

    def check_for(self, loop: For) -> None:
        self.use(loop.start, INT64)
        self.use(loop.stop, INT64)
        known = ("", "parallel", "apart", "reduce")
        self.require(loop.vectorize in known, f"vectorize={loop.vectorize!r}")
        with self.scope():
            self.require(loop.index.dtype == INT64, f"loop index {loop.index.name} is not int64")
            self.define(loop.index)
            self.body(loop.body)

    def check_while(self, loop: While) -> None:
        with self.scope():
            self.body(loop.condition)
            self.use(loop.test, BOOL)
            self.body(loop.body)

    def check_if(self, branch: If) -> None:
        self.use(branch.test, BOOL)
        for body in (branch.then, branch.orelse):
            with self.scope():
                self.body(body)

    def check_call(self, call: Call) -> None:
        for arg in call.args:
            if isinstance(arg, Buffer):
                self.require(arg in self.buffers, f"buffer {arg.name} is not of this kernel")
            elif isinstance(arg, Address):
                self.place(arg.buffer, arg.index)
            else:
                self.use(arg)

    def check_check(self, check: Check) -> None:
        self.use(check.ok, BOOL)
        self.require(check.code > 0, f"check code {check.code} is not positive")


def check_kernel(kernel: Kernel) -> None:
    """Raise TypeError unless the kernel is well formed: scopes, dtypes, ranks, roles, offsets."""
    checker = _Checker(kernel)
    roles = {"input": kernel.inputs, "output": kernel.outputs, "constant": kernel.constants,
             "temp": kernel.temps}
    for role, buffers in roles.items():
        for buffer in buffers:
            kind_of(buffer.dtype)
            checker.require(buffer.role == role, f"{buffer.name} is not an {role}")
    checker.require(len(checker.buffers) == len(kernel.buffers), "a buffer is listed twice")
    for buffer in kernel.constants:
        checker.require(buffer.value is not None, f"constant {buffer.name} has no value")
    for temp in kernel.temps:
        offset = kernel.offsets.get(temp, -1)
        checker.require(offset >= 0 and offset % 64 == 0, f"offset of {temp.name} is {offset}")
        checker.require(offset + temp.nbytes <= kernel.workspace_size, f"{temp.name} ends outside")
    checker.body(kernel.body)


def _place(buffer: Buffer, index: Index) -> str:
    if isinstance(index, Flat):
        return f"{buffer.name}.flat[{_operand(index.position)}]"
    return f"{buffer.name}[{', '.join(map(_operand, index))}]"


def _operand(operand: Operand | Buffer | Address) -> str:
    if isinstance(operand, Address):
        return "&" + _place(operand.buffer, operand.index)
    return repr(operand.value.item()) if isinstance(operand, Constant) else operand.name


def _lines(body: tuple[Statement, ...], indent: str) -> Iterator[str]:
    for statement in body:
        for line in _format(statement):
            yield indent + line


def _format(statement: Statement) -> Iterator[str]:
    match statement:
        case Let(target, op, args):
            yield f"{target.name}: {target.dtype} = {op}({', '.join(map(_operand, args))})"
        case Load(target, buffer, index):
            yield f"{target.name}: {target.dtype} = {_place(buffer, index)}"
        case Store(buffer, index, value):
            yield f"{_place(buffer, index)} = {_operand(value)}"
        case Declare(variable, value):
            yield f"var {variable.name}: {variable.dtype} = {_operand(value)}"
        case Assign(variable, value):
            yield f"{variable.name} := {_operand(value)}"
        case Read(target, variable):
            yield f"{target.name} = {variable.name}"
        case For(index, start, stop, body, note, vectorize):
            if note:
                yield f"# {note}"
            flag = f" {vectorize}" if vectorize else ""
            yield f"for {index.name} in {_operand(start)}..{_operand(stop)}{flag}:"
            yield from _lines(body, "  ")
        case While(condition, test, body):
            yield "while:"
            yield from _lines(condition, "  ")
            yield f"{_operand(test)} do:"
            yield from _lines(body, "  ")
        case If(test, then, orelse):
            yield f"if {_operand(test)}:"
            yield from _lines(then, "  ")
            if orelse:
                yield "else:"
                yield from _lines(orelse, "  ")
        case Call(external, args):
            yield f"call {external}({', '.join(map(_operand, args))})"
        case Check(ok, code):
            yield f"check {_operand(ok)} else return {code}"


def format_kernel(kernel: Kernel) -> str:
    """The tree as text, one statement a line."""

    def declared(buffer: Buffer) -> str:
        return f"{buffer.name}: {buffer.dtype}[{','.join(map(str, buffer.shape))}]"

    lines = [f"kernel {kernel.name}({', '.join(map(declared, kernel.inputs))})"]
    lines += [f"  -> {declared(buffer)}" for buffer in kernel.outputs]
    lines += [f"  constant {declared(buffer)}" for buffer in kernel.constants]
    lines += [f"  temp {declared(buffer)} at {kernel.offsets[buffer]}" for buffer in kernel.temps]
    return "\n".join([*lines, *_lines(kernel.body, "  ")]) + "\n"
