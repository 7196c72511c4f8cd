"""The loop tree as readable Python, which also runs: on NumPy buffers, scalar by scalar.

Builds on loops.py and printing.py; names are those of the printed jaxpr, and CALLS are its
helpers. Chapter 24.
In JAX: the HLO dump (`lower(…).compile().as_text()`), which does not run.
"""

import ast
import itertools
import keyword
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.util.jaxpr_text import Names

from .loops import (MMA, OPS, Address, Assign, Atomic, Barrier, Buffer, Call, Check, Constant,
                    Declare, For, If, Index, Kernel, Launch, Let, Load, Operand, Read, Scalar,
                    Shuffle, Statement, Store, Variable, While, accesses, origin, used, walk)
from .scalars import kind_of

_WIDTH = 76  # a longer expression is broken up by giving its parts names

# What Python has operators for, some of it for one kind of numbers; all other operations are calls.
OPERATORS = {"mul": "*", "div f": "/", "add": "+", "sub": "-", "neg": "-", "not": "~",
              "shl": "<<", "shr_logical u": ">>", "shr_arithmetic i": ">>", "and": "&", "xor": "^",
              "or": "|", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}

# The names that a text calls: NumPy's names for operations whose own names are Python's, and
# dtypes for conversions.
NUMPYS = {"min": "minimum", "max": "maximum"}
CONVERTERS = ["bool", *(dtype.name for dtype in dtypes.FLOATS + dtypes.SIGNED + dtypes.UNSIGNED)]
CALLS = {*(NUMPYS.get(x, x) for x in OPS), *CONVERTERS, "inf", "nan", "at", "range", "empty"}


def plain(expression: str) -> str:
    """An expression without redundant parentheses.

    >>> plain("(a) - ((b) * (c))"), plain("(a) - ((b) - (c))")
    ('a - b * c', 'a - (b - c)')
    """
    return ast.unparse(ast.parse(expression, mode="eval"))


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


def is_comment(line: str) -> bool:
    return line.lstrip().startswith("#")


# -- the printer -----------------------------------------------------------------------------------


class KernelText:
    """Prints one kernel."""

    name_of: Callable[[np.dtype], str] = staticmethod(str)  # the name of the dtype of a buffer

    def __init__(self, kernel: Kernel, reserved: Iterable[str] = ()) -> None:
        self.kernel = kernel
        every = list(walk(kernel.body))
        self.counts = Counter(x for each in every for x in used(each))
        self.note_lines = kernel.notes.get("lines", {})
        # Pending expressions, each to be printed inside its only reader.
        self.pending: dict[Any, str] = {}
        self.lines: list[str] = []
        self.indent = 0
        self.notes: list[str] = []  # the last comment of each body that is open
        # Names are unique; they are those of the jaxpr where it has one.
        self.finals = kernel.notes.get("finals", {})
        self.origins = {self.finals.get(x, x): v
                        for x, v in kernel.notes.get("origins", {}).items()}
        self.names: dict[Any, str] = {}
        self.used_names = {*CALLS, *keyword.kwlist, *reserved}
        self.numbers: dict[str, Iterator[int]] = {}
        jaxpr = kernel.notes.get("jaxpr")
        self.jaxpr_names = Names(jaxpr)
        if jaxpr is not None:
            for v in (*jaxpr.constvars, *jaxpr.invars, *(v for e in jaxpr.eqns for v in e.outvars)):
                self.jaxpr_names.of(v)
        for buffer in kernel.buffers:
            self.named(buffer)
        self.used_names.update(each.external for each in every if isinstance(each, Call))
        self.entry = self.unused(re.sub(r"\W|^(?=\d|$)", "_", kernel.name))

    def text(self, private: Collection[Buffer] = (), calls: Sequence[str] = ()) -> str:
        """The whole function, with some calls before its body; private temps are not its own."""
        arguments = [*self.kernel.inputs, *self.kernel.outputs, *self.kernel.constants]
        temps = self.temps(x for x in self.kernel.temps if x not in private)
        return self.function(self.entry, arguments, [*self.described(arguments), *temps, *calls])

    def function(self, name: str, parameters: Iterable[Any], first: Sequence[str] = ()) -> str:
        """The text of a function, with some lines before its body."""
        names = ", ".join(map(self.named, parameters))
        self.inner(f"def {name}({names}):", self.kernel.body, first)
        return "\n".join(self.lines) + "\n"

    def described(self, arguments: Sequence[Buffer]) -> list[str]:
        """Comments with the types of the arguments."""
        words = {"output": ", the result" if len(self.kernel.outputs) == 1 else ", a result",
                 "constant": ", a constant"}
        return [f"# {self.named(x)}: {x.dtype}[{', '.join(map(str, x.shape))}]"
                f"{words.get(x.role, '')}" for x in arguments]

    def temps(self, buffers: Iterable[Buffer]) -> list[str]:
        """The allocations of temps."""
        return [f"{self.named(x)} = empty({x.shape[0] if len(x.shape) == 1 else x.shape}, "
                f"{self.name_of(x.dtype)})" for x in buffers]

    # -- names ---------------------------------------------------------------------------------

    def named(self, value: Any) -> str:
        """The name of a scalar, variable or buffer, chosen on first use."""
        value = self.finals.get(value, value)
        if value not in self.names:
            preferred = self.jaxpr_names.of(self.origins[value]) if value in self.origins else "_"
            if not preferred.isidentifier() or preferred == "_":
                preferred = value.name.rstrip("0123456789")
            self.names[value] = self.unused(preferred)
        return self.names[value]

    def unused(self, *names: str) -> str:
        """The first of some names that is unused, or the first one with a number."""
        counter = self.numbers.setdefault(names[0], itertools.count(2))  # smaller ones are in use
        numbered = (f"{names[0]}{number}" for number in counter)
        name = next(x for x in itertools.chain(names, numbered) if x not in self.used_names)
        self.used_names.add(name)
        return name

    # -- lines ---------------------------------------------------------------------------------

    def write(self, line: str) -> None:
        self.lines.append("    " * self.indent + line)

    def note(self, note: str) -> None:
        """Print comments, except those that an enclosing body has."""
        lines = [x for x in dict.fromkeys(note.split("\n")) if x and x not in self.notes]
        for line in lines:
            self.write(f"# {line}")
        self.notes[-1:] = lines[-1:] or self.notes[-1:]

    def body(self, statements: Sequence[Statement]) -> None:
        for statement in statements:
            if not isinstance(statement, For):
                self.note(self.note_lines.get(origin(statement), ""))
            self.print(statement)
        self.flush()

    def inner(self, header: str, body: Sequence[Statement], first: Sequence[str] = ()) -> None:
        """An indented body after its header and first lines."""
        self.write(header)
        start = len(self.lines)
        self.indent += 1
        self.notes.append("")
        for line in first:
            self.write(line)
        self.body(body)
        if all(map(is_comment, self.lines[start:])):
            self.write("pass")
        self.notes.pop()
        self.indent -= 1

    # -- expressions ---------------------------------------------------------------------------

    def operand(self, x: Operand | Buffer | Address, typed: bool = False) -> str:
        """The text of an operand; a constant carries its dtype where nothing else gives it."""
        if isinstance(x, Address):
            return f"at({self.named(x.buffer)}, {self.operands(x.index)})"
        if isinstance(x, Constant):
            return f"{x.dtype}({x.value!s})" if typed else str(x.value)
        return self.pending.pop(x) if x in self.pending else self.named(x)

    def operands(self, operands: Sequence[Operand | Buffer | Address]) -> str:
        return ", ".join(map(self.operand, operands))

    def place(self, buffer: Buffer, index: Index) -> str:
        flat = ".flat" * (len(index) < len(buffer.shape))
        return f"{self.named(buffer)}{flat}[{', '.join(map(self.subscript, index)) or '()'}]"

    def subscript(self, x: Operand) -> str:
        """The text of one number of an index."""
        return self.operand(x)

    def define(self, target: Scalar, expression: str) -> None:
        """Keep the expression pending for its only reader, or assign it to a name."""
        self.pending[target] = expression
        if self.counts[target] > 1 or len(expression) > _WIDTH:
            self.name(target)
        elif not self.counts[target]:
            del self.pending[target]

    def name(self, target: Scalar) -> None:
        """Assign a pending expression to a name."""
        self.write(f"{self.named(target)} = {self.pending.pop(target)}")

    def flush(self, changed: Buffer | Variable | None = None) -> None:
        """Assign what is pending to names, or only what depends on what has changed."""
        name = "" if changed is None else self.named(changed)
        for target, text in list(self.pending.items()):
            if not name or name in text and name in re.findall(r"\w+", text):
                self.name(target)

    def shorten(self, operands: Sequence[Any]) -> None:
        """Assign the longest parts of an expression that is too long to names."""
        pending = (x for x in operands if x in self.pending)
        parts = sorted(pending, key=lambda x: -len(self.pending[x]))
        while parts and sum(len(self.pending[x]) + 4 for x in parts) > _WIDTH - 12:
            self.name(parts.pop(0))

    # -- statements ----------------------------------------------------------------------------

    def print(self, statement: Statement) -> None:
        """Print a statement; each kind has a method below."""
        getattr(self, "print_" + type(statement).__name__.lower())(statement)

    def print_let(self, let: Let) -> None:
        self.shorten(let.args)
        untyped = not self.symbol(let) and all(isinstance(x, Constant) for x in let.args[-2:])
        texts = [self.operand(x, typed=untyped) for x in let.args]
        self.define(let.target, plain(self.expression(let, texts)))

    def symbol(self, let: Let) -> str | None:
        """The operator of an operation that has one."""
        return OPERATORS.get(let.op) or OPERATORS.get(f"{let.op} {kind_of(let.args[-1].dtype)}")

    def expression(self, let: Let, texts: Sequence[str]) -> str:
        """An operation on operands: an operator, or a call."""
        if symbol := self.symbol(let):
            *left, right = (f"({text})" for text in texts)
            return " ".join([*left, symbol, right])
        dtype = let.target.dtype
        if let.op == "convert":
            return f"{dtype}({texts[0]})"
        dtypes = [str(dtype)] * (let.op == "bitcast")
        return f"{NUMPYS.get(let.op, let.op)}({', '.join([*texts, *dtypes])})"

    def print_load(self, load: Load) -> None:
        self.define(load.target, self.place(load.buffer, load.index))

    def print_read(self, read: Read) -> None:
        if read.target not in self.finals:
            self.define(read.target, self.named(read.variable))

    def print_store(self, store: Store) -> None:
        text = self.operand(store.value)
        self.assign(store.buffer, self.place(store.buffer, store.index), text)

    def print_assign(self, assign: Assign | Declare) -> None:
        text = self.operand(assign.value, typed=True)
        self.assign(assign.variable, self.named(assign.variable), text)

    print_declare = print_assign

    def assign(self, changed: Buffer | Variable, place: str, text: str) -> None:
        """`x = x + y` is `x += y`."""
        self.flush(changed)
        rest = text.removeprefix(f"{place} ")
        match = len(rest) < len(text) and re.fullmatch(r"([-+*/&|^]) (.*)", rest)
        whole = match and plain(f"{place} {match[1]} ({match[2]})") == text
        self.write(f"{place} {match[1]}= {plain(match[2])}" if match and whole
                   else f"{place} = {text}")

    def print_check(self, check: Check) -> None:
        """The code of a condition that ends a loop is 0."""
        text = self.operand(check.ok)
        self.flush()
        self.write(f"if not ({text}): {f'return {check.code}' if check.code else 'break'}")

    def print_call(self, call: Call) -> None:
        text = self.operands(call.args)
        self.flush()
        self.write(f"{call.external}({text})")

    def print_for(self, loop: For) -> None:
        """The index is i, j, k … by depth, where the program leaves these names free."""
        ends = self.operands([loop.start, loop.stop]).removeprefix("0, ")
        self.flush()
        self.note(f"{self.note_lines.get(origin(loop), '')}\n{loop.note}")
        name = self.names[loop.index] = self.unused(*"ijklmn")
        self.inner(f"for {name} in range({ends}):", loop.body)
        self.used_names.discard(name)

    def print_launch(self, launch: Launch) -> None:
        """Blocks and threads as two loops, whose iterations are unordered."""
        self.flush()
        block, thread = (self.unused(word) for word in ("block", "thread"))
        self.names |= {launch.block: block, launch.thread: thread}
        own = dict.fromkeys(x for x in accesses(walk(launch.body)) if x.role in ("shared", "local"))
        first = [f"{self.named(x)} = {x.role}({x.shape}, {x.dtype})" for x in own]
        self.write(f"for {block} in range({launch.blocks}):")
        self.indent += 1
        self.inner(f"for {thread} in range({launch.threads}):", launch.body, first)
        self.indent -= 1

    def print_barrier(self, barrier: Barrier) -> None:
        self.flush()
        self.write("barrier()")

    def print_shuffle(self, shuffle: Shuffle) -> None:
        self.define(shuffle.target, f"shuffle({self.operand(shuffle.value)}, {shuffle.lane_mask})")
        self.flush()

    def print_mma(self, mma: MMA) -> None:
        """The sums, which change, and the parts of both factors."""
        factors = ", ".join(f"({self.operands(part)})" for part in (mma.x, mma.y))
        self.flush()
        self.write(f"mma(({', '.join(map(self.named, mma.sums))}), {factors})")

    def print_atomic(self, atomic: Atomic) -> None:
        """A call, and a name for the old value where somebody asks for it."""
        text = self.place(atomic.buffer, atomic.index)
        text += f", {self.operand(atomic.value)}" * (atomic.op != "read")
        self.flush()
        target = f"{self.named(atomic.target)} = " * bool(self.counts[atomic.target])
        self.write(f"{target}atomic_{atomic.op}({text})")

    def print_while(self, loop: While) -> None:
        """`while test:` where the condition is one expression, else a loop with a break."""
        self.flush()
        start = len(self.lines)
        self.inner("while True:", (*loop.condition, Check(loop.test, 0), *loop.body))
        test, *rest = itertools.dropwhile(is_comment, self.lines[start + 1:])
        if rest and (match := re.fullmatch(r" *if not \((.*)\): break", test)):
            del self.lines[start:]
            self.write(f"while {match[1]}:")
            self.lines += rest

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
