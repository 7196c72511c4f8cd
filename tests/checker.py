"""Whether a loop tree is well formed: each kernel that a test makes is checked.

In XLA: the HLO verifier.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np

from minijax.dtypes import computed_in
from minijax.compiler import schedule
from minijax.compiler.duplicates import captures, expanded, is_function
from minijax.compiler.loops import (
    Address, Assign, Buffer, Call, Check, Constant, Declare, Duplicate, For, If, Index, Kernel,
    Let, Load, Read, Scalar, Statement, Store, Variable, While, bodies, structure, used,
)
from minijax.compiler.operands import ProgramBuilder
from minijax.compiler.scalars import BOOL, INT64, OPS, kind_of, result_dtype


class _Checker:
    """Walks a kernel once, knowing what is in scope."""

    def __init__(self, kernel: Kernel) -> None:
        self.buffers = set(kernel.buffers)
        self.known: set[Scalar | Variable] = set()
        self.defined: set[Scalar | Variable] = set()
        self.where = kernel.name
        self.before: dict[Statement, None] = {}  # loops and calls before this statement

    def fail(self, problem: str) -> None:
        raise TypeError(f"malformed kernel {self.where}: {problem}")

    @contextmanager
    def scope(self) -> Iterator[None]:
        outside = set(self.known)
        yield
        self.known = outside

    def define(self, name: Scalar | Variable) -> None:
        if name in self.defined:
            self.fail(f"{name.name} is defined twice")
        self.defined.add(name)
        self.known.add(name)

    def use(self, operand: Any, dtype: np.dtype | None = None) -> np.dtype:
        if isinstance(operand, Scalar):
            if operand not in self.known:
                self.fail(f"{operand.name} is used outside its scope")
        else:
            if not isinstance(operand, Constant):
                self.fail(f"{operand!r} is not an operand")
            given = np.asarray(operand.value).dtype
            if given != operand.dtype:
                self.fail(f"constant {operand.value!r} is of dtype {given}")
        if dtype is not None and operand.dtype != dtype:
            self.fail(f"{operand!r} is not of dtype {dtype}")
        return operand.dtype

    def variable(self, variable: Variable) -> None:
        if variable not in self.known:
            self.fail(f"variable {variable.name} is not declared here")

    def place(self, buffer: Buffer, index: Index) -> None:
        if buffer not in self.buffers:
            self.fail(f"buffer {buffer.name} is not of this kernel")
        if len(index) not in (1, len(buffer.shape)):
            self.fail(f"{buffer.name} of shape {buffer.shape} has an index of {len(index)} axes")
        for position in index:
            self.use(position, INT64)

    def body(self, statements: tuple[Statement, ...]) -> None:
        for statement in statements:
            getattr(self, "check_" + type(statement).__name__.lower())(statement)

    def check_let(self, let: Let) -> None:
        if let.op not in OPS:
            self.fail(f"there is no scalar operation {let.op}")
        dtypes = tuple([self.use(arg) for arg in let.args])
        given = result_dtype(let.op, dtypes, let.target.dtype)
        both = {*dtypes, given}
        if let.op == "convert" and len(both) > 1 and any(computed_in(x) not in both for x in both):
            self.fail(f"{let.target.name} is rounded twice, or not at all")
        if given != let.target.dtype:
            self.fail(f"{let.target.name} = {let.op}(…) gives {given}")
        self.define(let.target)

    def check_load(self, load: Load) -> None:
        self.place(load.buffer, load.index)
        if load.buffer.dtype != load.target.dtype:
            self.fail(f"load of {load.buffer.name}: dtype")
        self.define(load.target)

    def check_store(self, store: Store) -> None:
        self.place(store.buffer, store.index)
        if store.buffer.role not in ("output", "temp"):
            self.fail(f"store to {store.buffer.name}")
        self.use(store.value, store.buffer.dtype)

    def check_declare(self, declare: Declare) -> None:
        self.use(declare.value, declare.variable.dtype)
        self.define(declare.variable)

    def check_assign(self, assign: Assign) -> None:
        self.variable(assign.variable)
        self.use(assign.value, assign.variable.dtype)

    def check_read(self, read: Read) -> None:
        self.variable(read.variable)
        if read.target.dtype != read.variable.dtype:
            self.fail(f"read of {read.variable.name}")
        self.define(read.target)

    def check_duplicate(self, duplicate: Duplicate) -> None:
        if duplicate.first not in self.before or not is_function(duplicate.first):
            self.fail("a duplicate of what is not before it, or no function")
        for own, theirs in zip(duplicate.captures, captures(duplicate.first), strict=True):
            if isinstance(own, Scalar):
                self.use(own, theirs.dtype)
            elif own not in self.buffers:
                self.fail(f"buffer {own.name} is not of this kernel")
            if any(getattr(own, word, None) != getattr(theirs, word, None)
                   for word in ("dtype", "shape", "role")):
                self.fail(f"{own.name} is in place of {theirs.name}, of another type")

    def check_for(self, loop: For) -> None:
        self.before[loop] = None
        self.use(loop.start, INT64)
        self.use(loop.stop, INT64)
        known = ("", "parallel", "apart", "reduce", "running", "chained")
        if loop.vectorize not in known:
            self.fail(f"vectorize={loop.vectorize!r}")
        with self.scope():
            if loop.index.dtype != INT64:
                self.fail(f"loop index {loop.index.name} is not int64")
            self.define(loop.index)
            self.body(loop.body)
        if loop.vectorize == "parallel":
            shared = next(_same_for_all_turns(loop.body, {loop.index}), None)
            if shared is not None:
                self.fail(f"all turns of the parallel loop over {loop.index.name} store at one "
                          f"place of {shared.buffer.name}")

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
        self.before[call] = None
        for arg in call.args:
            if isinstance(arg, Buffer):
                if arg not in self.buffers:
                    self.fail(f"buffer {arg.name} is not of this kernel")
            elif isinstance(arg, Address):
                self.place(arg.buffer, arg.index)
            else:
                self.use(arg)

    def check_mark(self, mark: Any) -> None:
        pass  # the sanitiser's business

    def check_check(self, check: Check) -> None:
        self.use(check.ok, BOOL)
        if check.code <= 0:
            self.fail(f"check code {check.code} is not positive")


def _same_for_all_turns(body: Sequence[Statement], varies: set[Any]) -> Iterator[Store]:
    """The stores whose index does not depend on what varies; what does is added to it."""
    for statement in body:
        match statement:
            case Store(_, index, _) if varies.isdisjoint(index):
                yield statement
            case Read(target):  # of a variable: who knows
                varies.add(target)
            case Let(target) | Load(target) | For(target) if not varies.isdisjoint(used(statement)):
                varies.add(target)
        for inner in bodies(statement):
            yield from _same_for_all_turns(inner, varies)


@contextmanager
def watching() -> Iterator[None]:
    """Meanwhile each kernel is checked when it has been made."""
    honest = schedule.lower_to_kernel

    def checked(*args: Any, **kwargs: Any) -> Kernel:
        kernel = honest(*args, **kwargs)
        check_kernel(kernel)
        return kernel

    schedule.lower_to_kernel = checked
    try:
        yield
    finally:
        schedule.lower_to_kernel = honest


@contextmanager
def each_nest_by_itself() -> Iterator[None]:
    """Meanwhile no nest is a duplicate of another."""
    def by_itself(self: ProgramBuilder, rule: Any, buffers: Any, emit: Any, variables: Any) -> bool:
        emit()
        return False
    with mock.patch.object(ProgramBuilder, "once", by_itself):
        yield


def loops_of(kernel: Kernel) -> list[Any]:
    """What the statements of a kernel say, in place of duplicates too."""
    return [structure(statement)[0] for statement in expanded(kernel).body]


def check_kernel(kernel: Kernel) -> None:
    """Raise TypeError unless the kernel is well formed: scopes, dtypes, ranks, roles, offsets."""
    checker = _Checker(kernel)
    roles = {"input": kernel.inputs, "output": kernel.outputs, "constant": kernel.constants,
             "temp": kernel.temps}
    for role, buffers in roles.items():
        for buffer in buffers:
            kind_of(buffer.dtype)
            if buffer.role != role:
                checker.fail(f"{buffer.name} is not an {role}")
    if len(checker.buffers) != len(kernel.buffers):
        checker.fail("a buffer is listed twice")
    for buffer in kernel.constants:
        if buffer.value is None:
            checker.fail(f"constant {buffer.name} has no value")
    for temp in kernel.temps:
        offset = kernel.offsets.get(temp, -1)
        if offset < 0 or offset % 64 != 0:
            checker.fail(f"offset of {temp.name} is {offset}")
        if offset + temp.nbytes > kernel.workspace_size:
            checker.fail(f"{temp.name} ends outside")
    checker.body(kernel.body)
    if expanded(kernel) is not kernel:
        check_kernel(expanded(kernel))
