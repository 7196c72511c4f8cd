"""The loop tree as Python that people read, and that runs: against NumPy buffers, scalar by scalar.

Stands on loops.py; names are those of the printed jaxpr. Chapter 24.
In JAX: the HLO dump (`lower(…).compile().as_text()`), which does not run.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from .loops import (
    Address,
    Assign,
    Buffer,
    Call,
    Check,
    Constant,
    Declare,
    Flat,
    For,
    If,
    Index,
    Kernel,
    Let,
    Load,
    Operand,
    Read,
    Scalar,
    Statement,
    Store,
    Variable,
    While,
    positions,
    used,
    walk,
)
from .scalars import kind_of
from .text_names import CALLED, Namer, dtype_name, runtime

_WIDTH = 76  # a longer expression is broken up by giving its parts names

# Operators and how tightly they bind; all other operations are calls.
_BINARY = {"mul": ("*", 7), "add": ("+", 6), "sub": ("-", 6), "and": ("&", 4), "xor": ("^", 3),
           "or": ("|", 2), "eq": ("==", 1), "ne": ("!=", 1), "lt": ("<", 1), "le": ("<=", 1),
           "gt": (">", 1), "ge": (">=", 1)}
_UNARY = {"neg": "-", "not": "~"}
_ATOM, _PREFIX, _SHIFT, _COMPARE = 10, 8, 5, 1

Expression = tuple[str, int]  # its text, and how tightly it binds


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
    return _Printer(kernel).text()


def run_text(kernel: Kernel, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Run the text of a kernel as Python; returns the outputs.

    Raises:
      RuntimeError: where a check of the kernel fails.
    """
    printer = _Printer(kernel)
    namespace = runtime()
    exec(compile(printer.text(), f"<minijax {kernel.name}>", "exec"), namespace)
    outputs = [np.zeros(buffer.shape, buffer.dtype) for buffer in kernel.outputs]
    constants = [buffer.value for buffer in kernel.constants]
    with np.errstate(all="ignore"):
        status = namespace[printer.function](*inputs, *outputs, *constants)
    if status:
        raise RuntimeError(f"{kernel.name}: check {status} failed")
    return outputs


# -- the printer -----------------------------------------------------------------------------------


class _Pending:
    """An expression that has not been written: it goes where its only reader is."""

    def __init__(self, expression: Expression, sources: frozenset[Any]) -> None:
        self.expression, self.sources = expression, sources


class _Printer:
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
        self.pending: dict[Scalar, _Pending] = {}
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
            self.write(f"# {self.namer.of(buffer)}: {_type(buffer)}{words.get(buffer.role, '')}")
        for buffer in kernel.temps:
            shape = repr(buffer.shape[0]) if len(buffer.shape) == 1 else repr(buffer.shape)
            self.write(f"{self.namer.of(buffer)} = empty({shape}, {dtype_name(buffer.dtype)})")
        self.body(kernel.body)
        if len(self.lines) == 1 or all(line.lstrip().startswith("#") for line in self.lines[1:]):
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
            self.statement(statement)
        self.flush()

    def inner(self, header: str, statements: Sequence[Statement]) -> None:
        self.write(header)
        self.indent += 1
        self.notes.append("")
        before = len(self.lines)
        self.body(statements)
        if len(self.lines) == before:
            self.write("pass")
        self.notes.pop()
        self.indent -= 1

    # -- expressions ---------------------------------------------------------------------------

    def operand(self, x: Operand, typed: bool = False) -> Expression:
        """The text of an operand; a constant carries its dtype where nothing else gives it."""
        if isinstance(x, Constant):
            number = _number(x)
            if typed:
                return f"{dtype_name(x.dtype)}({number})", _ATOM
            return number, _PREFIX if number.startswith("-") else _ATOM
        if x in self.pending:
            return self.pending.pop(x).expression
        return self.namer.of(x), _ATOM

    def sources(self, operands: Sequence[Any]) -> frozenset[Any]:
        """What the pending expressions behind these operands read."""
        return frozenset().union(*(self.pending[x].sources for x in operands if x in self.pending))

    def place(self, buffer: Buffer, index: Index) -> str:
        name = self.namer.of(buffer)
        if isinstance(index, Flat):
            return f"{name}.flat[{self.operand(index.position)[0]}]"
        return f"{name}[{', '.join(self.operand(i)[0] for i in index) or '()'}]"

    def define(self, target: Scalar, expression: Expression, sources: frozenset[Any]) -> None:
        """Keep the expression for its reader, or write it down under a name."""
        if not self.counts[target]:
            return
        if self.counts[target] == 1 and len(expression[0]) <= _WIDTH:
            self.pending[target] = _Pending(expression, sources)
        else:
            self.write(f"{self.namer.of(target)} = {expression[0]}")

    def flush(self, source: Any = None) -> None:
        """Write down what is pending (and reads `source`, if that is given)."""
        for target in list(self.pending):
            waiting = self.pending[target]
            if source is None or source in waiting.sources:
                del self.pending[target]
                self.write(f"{self.namer.of(target)} = {waiting.expression[0]}")

    def shorten(self, operands: Sequence[Any]) -> None:
        """Give names to the longest parts of an expression that would be too long."""
        parts = [x for x in operands if isinstance(x, Scalar) and x in self.pending]
        parts.sort(key=lambda x: -len(self.pending[x].expression[0]))
        while parts and sum(len(self.pending[x].expression[0]) + 4 for x in parts) > _WIDTH - 12:
            longest = parts.pop(0)
            self.write(f"{self.namer.of(longest)} = {self.pending.pop(longest).expression[0]}")

    # -- statements ----------------------------------------------------------------------------

    def statement(self, statement: Statement) -> None:
        match statement:
            case Let(target, op, args):
                self.shorten(args)
                sources = self.sources(args)
                self.define(target, self.operation(target, op, args), sources)
            case Load(target, buffer, index):
                sources = self.sources(positions(index)) | {buffer}
                self.define(target, (self.place(buffer, index), _ATOM), sources)
            case Read(target, variable):
                if target in self.finals:
                    self.namer.names[target] = self.namer.of(variable)
                else:
                    self.define(target, (self.namer.of(variable), _ATOM), frozenset([variable]))
            case Store(buffer, index, value):
                self.store(buffer, index, value)
            case Declare(variable, value):
                text = self.operand(value, typed=True)[0]
                self.write(f"{self.namer.of(variable)} = {text}")
            case Assign(variable, value):
                self.assign(variable, value)
            case Call() | Check():
                self.effect(statement)
            case For() | While() | If():
                self.control(statement)

    def store(self, buffer: Buffer, index: Index, value: Operand) -> None:
        text = self.operand(value)[0]
        place = self.place(buffer, index)
        self.flush(buffer)
        self.write(f"{place} = {text}")

    def assign(self, variable: Variable, value: Operand) -> None:
        text = self.operand(value, typed=True)[0]
        self.flush(variable)
        name = self.namer.of(variable)
        match = re.match(rf"{re.escape(name)} ([-+*&|^]) (\w+(\[[^\[\]]*\])?|\w+\([^()]*\))$", text)
        self.write(f"{name} {match[1]}= {match[2]}" if match else f"{name} = {text}")

    def effect(self, statement: Call | Check) -> None:
        if isinstance(statement, Check):
            ok = self.operand(statement.ok)[0]
            self.flush()
            self.write(f"if not ({ok}): return {statement.code}")
            return
        args = [self.argument(x) for x in statement.args]
        self.flush()
        self.write(f"{statement.external}({', '.join(args)})")

    def argument(self, x: Buffer | Address | Operand) -> str:
        if isinstance(x, Buffer):
            return self.namer.of(x)
        if not isinstance(x, Address):
            return self.operand(x)[0]
        strides = [int(np.prod(x.buffer.shape[k + 1:])) for k in range(len(x.buffer.shape))]
        if isinstance(x.index, Flat):
            position = self.operand(x.index.position)[0]
        else:
            terms = [_times(self.operand(i), n) for i, n in zip(x.index, strides, strict=True)]
            position = " + ".join(term for term in terms if term != "0") or "0"
        return f"at({self.namer.of(x.buffer)}, {position})"

    def control(self, statement: For | While | If) -> None:
        match statement:
            case For(index, start, stop, body, note, _):
                ends = [self.operand(x)[0] for x in (start, stop)]
                self.flush()
                line = self.note_lines.get(statement, "")
                self.note("\n".join(dict.fromkeys(filter(None, [line, *note.split("\n")]))))
                name = self.index_name(index)
                ends = ends[1:] if ends[0] == "0" else ends
                self.inner(f"for {name} in range({', '.join(ends)}):", body)
                self.namer.taken.discard(name)
            case While(condition, test, body):
                self.flush()
                self.loop(condition, test, body)
            case If(test, then, orelse):
                header = f"if {self.operand(test)[0]}:"
                self.flush()
                self.inner(header, then)
                if orelse:
                    self.inner("else:", orelse)
                    self.join_branches()

    def join_branches(self) -> None:
        """Write `x = 0`, `if c: x = y`, `else: x = z` as one conditional expression."""
        lines = [line.strip() for line in self.lines[-5:]]
        if len(lines) < 5 or lines[3] != "else:" or not lines[1].startswith("if "):
            return
        name, _, start = lines[0].partition(" = ")
        sides = [line.removeprefix(f"{name} = ") for line in (lines[2], lines[4])]
        joined = f"{name} = {sides[0]} if {lines[1][3:-1]} else {sides[1]}"
        if (re.fullmatch(r"\w+\((0|0\.0|False)\)", start) and len(joined) <= _WIDTH
                and [lines[2], lines[4]] == [f"{name} = {side}" for side in sides]):
            del self.lines[-5:]
            self.write(joined)

    def index_name(self, index: Scalar) -> str:
        """i, j, k … by depth, where the program leaves these names free."""
        free = next((c for c in "ijklmn" if c not in self.namer.taken), "i")
        self.namer.names[index] = name = self.namer.unused(free)
        return name

    def loop(self, condition: Sequence[Statement], test: Operand,
             body: Sequence[Statement]) -> None:
        """`while test:` where the condition is one expression, else a loop with a break."""
        before = len(self.lines)
        self.indent += 1
        for statement in condition:
            self.statement(statement)
        text = self.operand(test)[0]
        simple = len(self.lines) == before and not self.pending
        if not simple:
            self.flush()
            self.write(f"if not ({text}): break")
        self.indent -= 1
        header = "    " * self.indent + (f"while {text}:" if simple else "while True:")
        self.lines.insert(before, header)
        self.indent += 1
        self.body(body)
        if len(self.lines) == before + 1:
            self.write("pass")
        self.indent -= 1

    # -- operations ----------------------------------------------------------------------------

    def operation(self, target: Scalar, op: str, args: Sequence[Operand]) -> Expression:
        """The expression of one operation."""
        if op == "div" and kind_of(target.dtype) == "f":
            return self.infix("/", 7, args)
        if op in _BINARY:
            return self.infix(*_BINARY[op], args)
        if op in _UNARY:
            return _UNARY[op] + _bracketed(self.operand(args[0]), _PREFIX), _PREFIX
        if op in ("shl", "shr_logical", "shr_arithmetic") and _is_plain_shift(op, args):
            return self.infix("<<" if op == "shl" else ">>", _SHIFT, args)
        texts = [self.operand(x, typed=all(isinstance(a, Constant) for a in args[-2:]))[0]
                 for x in args]
        if op == "convert":
            return f"{dtype_name(target.dtype)}({texts[0]})", _ATOM
        if op == "bitcast":
            return f"bitcast({texts[0]}, {dtype_name(target.dtype)})", _ATOM
        return f"{CALLED.get(op, op)}({', '.join(texts)})", _ATOM

    def infix(self, symbol: str, level: int, args: Sequence[Operand]) -> Expression:
        right_constant = args[1]
        if symbol == "+" and isinstance(right_constant, Constant) and right_constant.value < 0:
            opposite = np.negative(right_constant.value)
            if opposite > 0:  # not the least integer
                symbol, args = "-", (args[0], Constant(opposite, right_constant.dtype))
        left, right = (self.operand(x) for x in args)
        # A comparison beside a comparison would chain.
        tight = level + (level == _COMPARE)
        return f"{_bracketed(left, tight)} {symbol} {_bracketed(right, level + 1)}", level


def _bracketed(expression: Expression, level: int) -> str:
    text, own = expression
    return text if own >= level else f"({text})"


def _times(expression: Expression, factor: int) -> str:
    if factor == 1 or expression[0] == "0":
        return expression[0]
    return f"{_bracketed(expression, 7)} * {factor}"


def _is_plain_shift(op: str, args: Sequence[Operand]) -> bool:
    """Whether Python's shift of these NumPy scalars means the same."""
    x, y = args
    inside = isinstance(y, Constant) and 0 <= int(y.value) < 8 * y.dtype.itemsize
    signed = kind_of(x.dtype) == "i"
    return (inside and isinstance(x, Scalar)
            and (op == "shl" or signed == (op == "shr_arithmetic")))


def _number(x: Constant) -> str:
    """A literal that gives the same value when it takes the dtype of its neighbour."""
    if kind_of(x.dtype) in "fh":
        value = float(x.value)
        return repr(value) if not np.isfinite(value) else str(x.value)
    return repr(x.value.item())


def _type(buffer: Buffer) -> str:
    return f"{buffer.dtype.name}[{', '.join(map(str, buffer.shape))}]"
