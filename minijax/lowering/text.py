"""The loop tree as Python that people read, and that runs: against NumPy buffers, scalar by scalar.

Stands on loops.py and printing.py; names are those of the printed jaxpr, and CALLS are what it may
call. Chapter 24.
In JAX: the HLO dump (`lower(…).compile().as_text()`), which does not run.
"""

from __future__ import annotations

import keyword
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.printing import Names

from .loops import (
    OPS, Address, Assign, Buffer, Call, Check, Constant, Declare, Flat, For, If, Index, Kernel,
    Let, Load, Operand, Read, Scalar, Statement, Store, Variable, While, positions, used, walk,
)
from .scalars import kind_of

_WIDTH = 76  # a longer expression is broken up by giving its parts names

# Operators and how tightly they bind; all other operations are calls.
_BINARY = {"mul": ("*", 7), "add": ("+", 6), "sub": ("-", 6), "and": ("&", 4), "xor": ("^", 3),
           "or": ("|", 2), "eq": ("==", 1), "ne": ("!=", 1), "lt": ("<", 1), "le": ("<=", 1),
           "gt": (">", 1), "ge": (">=", 1)}
_UNARY = {"neg": "-", "not": "~"}
_ATOM, _PREFIX, _SHIFT, _COMPARE = 10, 8, 5, 1

# The names that a text calls: NumPy's words where that of an operation is Python's already, and
# each dtype converts what it is called with.
NUMPYS = {"min": "minimum", "max": "maximum"}
CONVERTERS = [*"bool_ bfloat16 float16 float32 float64".split(),
              *(f"{sign}int{8 << k}" for sign in ("", "u") for k in range(4))]
CALLS = {*(NUMPYS.get(name, name) for name in OPS), *CONVERTERS,
         "inf", "nan", "at", "range", "empty"}


def dtype_name(dtype: np.dtype) -> str:
    return "bool_" if dtype == np.bool_ else dtype.name


class Expression(str):
    """A piece of Python, and how tightly it binds."""

    level: int

    def __new__(cls, text: str, level: int = _ATOM) -> Expression:
        self = super().__new__(cls, text)
        self.level = level
        return self

    def beside(self, level: int) -> str:
        """The text as an operand of what binds so tightly."""
        return self if self.level >= level else f"({self})"


def kernel_text(kernel: Kernel) -> str:
    """The kernel as one Python function of its buffers.

    >>> from minijax import jit
    >>> import numpy as np
    >>> print(jit(lambda x: x * 2.0).lower(np.ones(3, np.float32)).as_text("source"))
    def _lambda_(a, b):
        # a: float32[3]
        # b: float32[3], the result
        # ...
        for i in range(3):
            b[i] = a[i] * 2.0
    <BLANKLINE>
    """
    return KernelText(kernel).text()


class Namer:
    """Gives every scalar, variable and buffer a name of its own, the jaxpr's where it has one."""

    def __init__(self, kernel: Kernel) -> None:
        self.jaxpr_names = Names(kernel.notes.get("jaxpr"))
        origins, finals = kernel.notes.get("origins", {}), kernel.notes.get("finals", {})
        self.origins = {finals[x]: v for x, v in origins.items() if x in finals} | origins
        self.taken = {*CALLS, *keyword.kwlist}
        self.names: dict[Any, str] = {}
        jaxpr = kernel.notes.get("jaxpr")
        if jaxpr is not None:
            for v in (*jaxpr.constvars, *jaxpr.invars, *(v for e in jaxpr.eqns for v in e.outvars)):
                self.jaxpr_names.of(v)
        for buffer in kernel.buffers:
            self.of(buffer)

    def of(self, thing: Any) -> str:
        """The name of a thing, chosen when it is first asked for."""
        if thing not in self.names:
            self.names[thing] = self.unused(self._wish(thing))
        return self.names[thing]

    def _wish(self, thing: Any) -> str:
        if thing in self.origins:
            name = self.jaxpr_names.of(self.origins[thing])
            if name.isidentifier() and name != "_":
                return name
        if isinstance(thing, Buffer):
            return thing.name.rstrip("0123456789")
        return "acc" if isinstance(thing, Variable) else "t"

    def unused(self, wish: str) -> str:
        """The wished name, or that name with the first free number."""
        name, number = wish, 1
        while name in self.taken:
            number += 1
            name = f"{wish}{number}"
        self.taken.add(name)
        return name


# -- the printer -----------------------------------------------------------------------------------


class KernelText:
    """Prints one kernel."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.namer = Namer(kernel)
        every = list(walk(kernel.body))
        self.namer.taken.update(each.external for each in every if isinstance(each, Call))
        wish = re.sub(r"\W", "_", kernel.name) or "kernel"
        self.function = self.namer.unused("_" + wish if wish[0].isdigit() else wish)
        self.note_lines = kernel.notes.get("lines", {})
        self.finals = kernel.notes.get("finals", {})
        self.counts = Counter(x for each in every for x in used(each))
        # What has not been written and goes where its only reader is.
        self.pending: dict[Scalar, Expression] = {}
        self.lines: list[str] = []
        self.indent = 1
        self.notes = [""]  # the last comment of each body that is open

    def text(self) -> str:
        """The whole function."""
        kernel = self.kernel
        arguments = [*kernel.inputs, *kernel.outputs, *kernel.constants]
        self.lines = [f"def {self.function}({', '.join(map(self.namer.of, arguments))}):"]
        words = {"output": ", the result" if len(kernel.outputs) == 1 else ", a result",
                 "constant": ", a constant"}
        for buffer in arguments:
            kind = f"{buffer.dtype.name}[{', '.join(map(str, buffer.shape))}]"
            self.write(f"# {self.namer.of(buffer)}: {kind}{words.get(buffer.role, '')}")
        for buffer in kernel.temps:
            shape = repr(buffer.shape[0]) if len(buffer.shape) == 1 else repr(buffer.shape)
            self.write(f"{self.namer.of(buffer)} = empty({shape}, {dtype_name(buffer.dtype)})")
        self.body(kernel.body)
        if all(line.lstrip().startswith("#") for line in self.lines[1:]):
            self.write("pass")
        return "\n".join(self.lines) + "\n"

    def write(self, line: str) -> None:
        self.lines.append("    " * self.indent + line)

    def note(self, note: str) -> None:
        """Comments, except those that hold here already."""
        lines = [line for line in note.split("\n") if line and line not in self.notes]
        for line in lines:
            self.write(f"# {line}")
        if lines:
            self.notes[-1] = lines[-1]

    def body(self, statements: Sequence[Statement]) -> None:
        for statement in statements:
            line = self.note_lines.get(statement, "")
            if line and not isinstance(statement, For):
                self.note(line)
            self.print(statement)
        self.flush()

    def inner(self, header: str, statements: Sequence[Statement], at: int | None = None) -> None:
        """A body below its header, which stands at the end or before what has been written."""
        at = len(self.lines) if at is None else at
        self.lines.insert(at, "    " * self.indent + header)
        self.indent += 1
        self.notes.append("")
        self.body(statements)
        if len(self.lines) == at + 1:
            self.write("pass")
        self.notes.pop()
        self.indent -= 1

    # -- expressions ---------------------------------------------------------------------------

    def operand(self, x: Operand | Buffer | Address, typed: bool = False) -> Expression:
        """The text of an operand; a constant carries its dtype where nothing else gives it."""
        if isinstance(x, Address):
            return Expression(f"at({self.namer.of(x.buffer)}, {self.operand(x.index.position)})")
        if isinstance(x, Constant):
            number = str(x.value)
            if typed:
                return Expression(f"{dtype_name(x.dtype)}({number})")
            return Expression(number, _PREFIX if number.startswith("-") else _ATOM)
        if isinstance(x, Scalar) and x in self.pending:
            return self.pending.pop(x)
        return Expression(self.namer.of(x))

    def place(self, buffer: Buffer, index: Index) -> Expression:
        name = self.namer.of(buffer)
        at = ", ".join(map(self.operand, positions(index))) or "()"
        return Expression(f"{name}.flat[{at}]" if isinstance(index, Flat) else f"{name}[{at}]")

    def define(self, target: Scalar, expression: Expression) -> None:
        """Keep the expression for its reader, or write it down under a name."""
        self.pending[target] = expression
        if self.counts[target] > 1 or len(expression) > _WIDTH:
            self.name(target)
        elif not self.counts[target]:
            del self.pending[target]

    def name(self, target: Scalar) -> None:
        """Write down what is pending under a name."""
        self.write(f"{self.namer.of(target)} = {self.pending.pop(target)}")

    def flush(self, changed: Buffer | Variable | None = None) -> None:
        """Write down what is pending (and speaks of what has changed, if that is given)."""
        for target, text in list(self.pending.items()):
            if changed is None or re.search(rf"\b{self.namer.of(changed)}\b", text):
                self.name(target)

    def shorten(self, operands: Sequence[Operand]) -> None:
        """Give names to the longest parts of an expression that would be too long."""
        parts = [x for x in operands if isinstance(x, Scalar) and x in self.pending]
        parts.sort(key=lambda x: -len(self.pending[x]))
        while parts and sum(len(self.pending[x]) + 4 for x in parts) > _WIDTH - 12:
            self.name(parts.pop(0))

    # -- statements ----------------------------------------------------------------------------

    def print(self, statement: Statement) -> None:
        """Each kind of statement has its method below."""
        getattr(self, "print_" + type(statement).__name__.lower())(statement)

    def print_let(self, let: Let) -> None:
        self.shorten(let.args)
        self.define(let.target, self.operation(let.target, let.op, let.args))

    def print_load(self, load: Load) -> None:
        self.define(load.target, self.place(load.buffer, load.index))

    def print_read(self, read: Read) -> None:
        name = self.namer.of(read.variable)
        if read.target in self.finals:
            self.namer.names[read.target] = name
        else:
            self.define(read.target, Expression(name))

    def print_store(self, store: Store) -> None:
        text, place = self.operand(store.value), self.place(store.buffer, store.index)
        self.flush(store.buffer)
        self.write(f"{place} = {text}")

    def print_declare(self, declare: Declare) -> None:
        text = self.operand(declare.value, typed=True)
        self.write(f"{self.namer.of(declare.variable)} = {text}")

    def print_assign(self, assign: Assign) -> None:
        text = self.operand(assign.value, typed=True)
        self.flush(assign.variable)
        self.write(_assignment(self.namer.of(assign.variable), text))

    def print_check(self, check: Check) -> None:
        text = self.operand(check.ok)
        self.flush()
        self.write(f"if not ({text}): return {check.code}")

    def print_call(self, call: Call) -> None:
        texts = list(map(self.operand, call.args))
        self.flush()
        self.write(f"{call.external}({', '.join(texts)})")

    def print_for(self, loop: For) -> None:
        """The index is i, j, k … by depth, where the program leaves these names free."""
        start, stop = self.operand(loop.start), self.operand(loop.stop)
        self.flush()
        line = self.note_lines.get(loop, "")
        self.note("\n".join(dict.fromkeys(filter(None, [line, *loop.note.split("\n")]))))
        free = next((c for c in "ijklmn" if c not in self.namer.taken), "i")
        name = self.namer.names[loop.index] = self.namer.unused(free)
        ends = stop if start == "0" else f"{start}, {stop}"
        self.inner(f"for {name} in range({ends}):", loop.body)
        self.namer.taken.discard(name)

    def print_while(self, loop: While) -> None:
        """`while test:` where the condition is one expression, else a loop with a break."""
        self.flush()
        before = len(self.lines)
        self.indent += 1
        for statement in loop.condition:
            self.print(statement)
        text = self.operand(loop.test)
        simple = len(self.lines) == before and not self.pending
        if not simple:
            self.flush()
            self.write(f"if not ({text}): break")
        self.indent -= 1
        self.inner(f"while {text}:" if simple else "while True:", loop.body, before)

    def print_if(self, branch: If) -> None:
        header = f"if {self.operand(branch.test)}:"
        self.flush()
        self.inner(header, branch.then)
        if branch.orelse:
            self.inner("else:", branch.orelse)
            self.join_branches()

    def join_branches(self) -> None:
        """Write `x = 0`, `if c: x = y`, `else: x = z` as one conditional expression."""
        lines = "\n".join(line.strip() for line in self.lines[-5:])
        match = re.fullmatch(r"(\w+) = \w+\((?:0|0\.0|False)\)\n"
                             r"if (.*):\n\1 = (.*)\nelse:\n\1 = (.*)", lines)
        joined = match.expand(r"\1 = \3 if \2 else \4") if match else ""
        if match and len(joined) <= _WIDTH:
            del self.lines[-5:]
            self.write(joined)

    # -- operations ----------------------------------------------------------------------------

    def operation(self, target: Scalar, op: str, args: Sequence[Operand]) -> Expression:
        """The expression of one operation."""
        if op == "div" and kind_of(target.dtype) == "f":
            return self.infix("/", 7, args)
        if op in _BINARY:
            return self.infix(*_BINARY[op], args)
        if op in _UNARY:
            return Expression(_UNARY[op] + self.operand(args[0]).beside(_PREFIX), _PREFIX)
        if op in ("shl", "shr_logical", "shr_arithmetic") and _is_plain_shift(op, args):
            return self.infix("<<" if op == "shl" else ">>", _SHIFT, args)
        texts = [self.operand(x, typed=all(isinstance(a, Constant) for a in args[-2:]))
                 for x in args]
        if op == "convert":
            return Expression(f"{dtype_name(target.dtype)}({texts[0]})")
        if op == "bitcast":
            return Expression(f"bitcast({texts[0]}, {dtype_name(target.dtype)})")
        return Expression(f"{NUMPYS.get(op, op)}({', '.join(texts)})")

    def infix(self, symbol: str, level: int, args: Sequence[Operand]) -> Expression:
        right_constant = args[1]
        if symbol == "+" and isinstance(right_constant, Constant) and right_constant.value < 0:
            opposite = np.negative(right_constant.value)
            if opposite > 0:  # not the least integer
                symbol, args = "-", (args[0], Constant(opposite, right_constant.dtype))
        left, right = (self.operand(x) for x in args)
        # A comparison beside a comparison would chain.
        tight = level + (level == _COMPARE)
        return Expression(f"{left.beside(tight)} {symbol} {right.beside(level + 1)}", level)


def _assignment(name: str, text: str) -> str:
    """`name = name + x` is `name += x`."""
    match = re.match(rf"{re.escape(name)} ([-+*&|^]) (\w+(\[[^\[\]]*\])?|\w+\([^()]*\))$", text)
    return f"{name} {match[1]}= {match[2]}" if match else f"{name} = {text}"


def _is_plain_shift(op: str, args: Sequence[Operand]) -> bool:
    """Whether Python's shift of these NumPy scalars means the same."""
    x, y = args
    inside = isinstance(y, Constant) and 0 <= int(y.value) < 8 * y.dtype.itemsize
    signed = kind_of(x.dtype) == "i"
    return (inside and isinstance(x, Scalar)
            and (op == "shl" or signed == (op == "shr_arithmetic")))
