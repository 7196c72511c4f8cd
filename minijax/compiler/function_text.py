"""One function of a kernel as LLVM assembly: one method for each kind of statement.

Builds on instructions.py (the scalar operations) and routines.py; llvm.py prints modules.
Chapter 24. In JAX this role is played by XLA's IR emitters (xla/service/llvm_ir).
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import accumulate, count
from typing import Any
import struct

import numpy as np

from minijax.primitives.infix import Number

from . import host
from .arithmetic import Arithmetic
from .builder import identity_element
from .calls import Calls
from .cpu import vector_registers
from .elementary import FORMULAS
from .interleaving import groups_in
from .interrupts import POLL_DECLARATION, Poll, Strip, poll_interval, spending, strips
from .loops import (BOOL, INT64, Address, Assign, Buffer, Call, Check, Constant, Declare, Duplicate,
                    For, If, Index, Kernel, Let, Load, Operand, Read, Scalar, Statement, Store,
                    Variable, While, cached_on_node, integer)
from .memory import ALIGNMENT, HEADER, WORD, round_up
from .outlining import Outlined
from .routines import ALONE, LENGTHS, LIBRARY
from .scalars import OPS, kind_of
from .vectorization import Vectorized, lanes_in, lanes_of_sum, may_repeat, reductions
from .vectors import Function, calls, function

MANGLED = {"float": "f32", "double": "f64"}  # in the names of LLVM's overloaded intrinsics


@cache
def llvm_type(dtype: np.dtype, width: int = 0) -> str:
    """The LLVM type of a scalar in a register, or of a vector of so many; narrow numbers travel as
    their bits.

    >>> llvm_type(np.dtype("float32")), llvm_type(np.dtype("uint8")), llvm_type(np.dtype("bool"), 8)
    ('float', 'i8', '<8 x i1>')
    """
    kind, bits = kind_of(dtype), 8 * dtype.itemsize
    number = {"f": "float" if bits == 32 else "double", "b": "i1"}.get(kind, f"i{bits}")
    return in_lanes_of(width, number)


def _stored_type(dtype: np.dtype) -> str:
    """The LLVM type of an element in memory: a bool takes a byte."""
    return "i8" if dtype == BOOL else llvm_type(dtype)


@cached_on_node
def _literal(constant: Constant) -> str:
    """A literal operand; a float or double is written as the bits of the double."""
    kind, value = kind_of(constant.dtype), constant.value
    if kind == "f":
        return "0x" + struct.pack(">d", value).hex().upper()
    return str(int(value.view(f"u{value.itemsize}") if kind == "n" else value))


def in_lanes_of(width: int, t: str) -> str:
    """The type of a vector of so many lanes; of a scalar, if there are none."""
    return f"<{width} x {t}>" if width else t


def mangled(dtype: np.dtype, width: int) -> str:
    """The type of an operand in the names of LLVM's overloaded intrinsics."""
    t = llvm_type(dtype)
    return f"v{width}" * bool(width) + MANGLED.get(t, t)


@cache
def instruction(template: str, dtype: np.dtype, result: np.dtype, width: int) -> str:
    """An instruction on operands of a dtype, for so many lanes; their names go in by position."""
    scalars = llvm_type(dtype), llvm_type(result), "i1", "half"
    types = dict(zip("stbh", (in_lanes_of(width, t) for t in scalars), strict=True))
    return template.format(m=mangled(dtype, width), x="{0}", y="{1}", z="{2}", **types)


class _Instructions(Arithmetic):
    """Emits the formulas of instructions.py."""

    in_vectors = False

    def plain(self, instruction: str, args: tuple[Operand, ...], dtype: Any) -> Operand:
        """Emit a single LLVM instruction in place of an operation."""
        target = self._define(np.dtype(dtype), 0)
        self._append(0, Let(target, instruction, args), target, target)
        return target


class FunctionText:
    """Prints one function; `lines` is its body so far.

    A frame has a slot of eight bytes for each argument, an address or a scalar. Names are numbered
    in order of their use: equal loops give equal text.
    """

    width = 0  # the lanes of what is printed for each scalar; of vectors alone

    def __init__(self, module: Any, lanes: int = 0) -> None:
        self.module, self.lanes = module, lanes
        self.entry: list[str] = []
        self.lines: list[str] = []
        self.names: dict[Operand | Variable | Buffer, str] = {}
        self.numbers = count()
        self.poll = ""  # the function by which long loops poll for signals, if they do
        self.budget = Variable("budget", INT64)  # until the next poll of a while loop, once needed
        self.is_outlined = self.is_shared = self.returns_early = False
        self.memory = ""  # the private temps, freed at the end
        self.thread_limits = 0  # how often the library has been limited to one thread
        # The enclosing serial loops, with their iteration counters.
        self.enclosing: list[tuple[Statement, str]] = []

    def text(self, signature: str, result: str = "void") -> str:
        """The function definition."""
        self.leave(result)
        return "\n".join([f"define {signature} nounwind {{", "entry:", *self.entry,
                          "  br label %start", "start:", *self.lines, "}"])

    def emit(self, instruction: str) -> None:
        """Append an instruction to the current block."""
        self.lines.append("  " + instruction)

    def computed(self, stem: str, expression: str) -> str:
        """The name of the result of an instruction, which is appended."""
        name = self.fresh(stem)
        self.emit(f"{name} = {expression}")
        return name

    def start_block(self, label: str) -> None:
        """Start a basic block."""
        self.lines.append(f"{label}:")

    def fresh(self, stem: str) -> str:
        """A label or name that is unique in the function."""
        return f"{stem}.{next(self.numbers)}"

    def value(self, x: Operand | Variable | Buffer | Address) -> str:
        """The text of an operand without its type."""
        if type(x) is Constant:
            return _literal(x)
        if isinstance(x, Address):
            return self.address(x.buffer, x.index)
        if isinstance(x, Buffer) and x.role == "local" and x not in self.names:
            room = f"alloca [{x.size} x {llvm_type(x.dtype)}], align {ALIGNMENT}"
            self.names[x] = self.at_entry(room)
        return self.names[x]

    def typed(self, x: Operand | Variable | Buffer | Address) -> str:
        """The text of an argument with its type: operands are values, the others are addresses."""
        t = self.type_of(x.dtype) if isinstance(x, Scalar | Constant) else "ptr"
        return f"{t} {self.value(x)}"

    def in_lanes(self, t: str) -> str:
        """The type of what is printed for a scalar of a type."""
        return in_lanes_of(self.width, t)

    def type_of(self, dtype: np.dtype) -> str:
        """The type of an operand."""
        return llvm_type(dtype, self.width)

    def load_buffer_addresses(self, kernel: Kernel, buffers: Collection[Buffer]) -> None:
        """Load the buffers' addresses once, at entry; temps lie in the workspace, the last
        argument.
        """
        arguments = *kernel.inputs, *kernel.outputs, *kernel.constants
        items = self.field("%list", HEADER + WORD)
        array = lambda place: self.field(self.field(items, WORD * place), HEADER)
        self.names |= {x: array(place) for place, x in enumerate(arguments) if x in buffers}
        if temps := {x: kernel.offsets[x] for x in kernel.temps if x in buffers}:
            self.place_temps(array(len(arguments)), temps)

    def field(self, record: str, offset: int, t: str = "ptr") -> str:
        """What stands at an offset of a record, by default an address, loaded at entry."""
        place = self.at_entry(f"getelementptr inbounds i8, ptr {record}, i64 {offset}")
        return self.at_entry(f"load {t}, ptr {place}")

    def place_temps(self, memory: str, offsets: Mapping[Buffer, int]) -> None:
        """Place temps at their offsets from the first cache line of some memory."""
        last = self.at_entry(f"getelementptr inbounds i8, ptr {memory}, i64 {ALIGNMENT - 1}")
        aligned = self.at_entry(f"call ptr @llvm.ptrmask.p0.i64(ptr {last}, i64 {-ALIGNMENT})")
        for temp, offset in offsets.items():
            place = f"getelementptr inbounds i8, ptr {aligned}, i64 {offset}"
            self.names[temp] = self.at_entry(place)

    def at_entry(self, expression: str) -> str:
        """The name of a value that is computed in the entry block."""
        name = self.fresh("%once")
        self.entry.append(f"  {name} = {expression}")
        return name

    def body(self, statements: Iterable[Statement]) -> None:
        """Print statements; each kind has a method below."""
        for statement in statements:
            getattr(self, "print_" + type(statement).__name__.lower())(statement)

    # Scalars

    def define(self, target: Scalar, expression: str) -> None:
        """Define the target by an expression."""
        self.names[target] = self.computed("%local", expression)

    def print_let(self, let: Let) -> None:
        dtype = let.args[-1].dtype
        if let.op in FORMULAS:
            return self.elementary(let, function(let.op, dtype))
        template = OPS[let.op].instructions[kind_of(dtype)] if let.op in OPS else let.op
        if not isinstance(template, str):
            return self.write_formula(let, template)
        text = instruction(template, dtype, let.target.dtype, self.width)
        self.define(let.target, text.format(*map(self.value, let.args)))

    def alias(self, target: Scalar | Variable, x: Operand | Variable) -> None:
        """Another name of an operand."""
        self.names[target] = self.value(x)

    def write_formula(self, let: Let, formula: Callable) -> None:
        """Expand an operation into several instructions."""
        b = _Instructions()
        b.in_vectors = bool(self.width)
        target = [let.target.dtype] if OPS[let.op].result == "target" else []
        result = formula(*(Number(b, x) for x in let.args), *target)
        self.body(b.scopes[0].statements)
        self.alias(let.target, result.value)

    def elementary(self, let: Let, f: Function) -> None:
        """Inline an elementary function, or call it."""
        if f in self.module.called:
            return self.call_elementary(let, f)
        for parameter, x in zip(f.parameters, let.args, strict=True):
            self.alias(parameter, x)
        self.body(f.body)
        self.alias(let.target, f.result)

    def call_elementary(self, let: Let, f: Function) -> None:
        """Call an elementary function of vectors; for scalars, with zeros in the other lanes."""
        name, vector = self.module.elementary_function(f), llvm_type(f.dtype, self.module.lanes)
        arguments = [*map(self.typed, let.args)]
        if not self.width:
            zeros = f"insertelement {vector} zeroinitializer"
            arguments = [f"{vector} {self.computed('%all', f'{zeros}, {x}, i64 0')}"
                         for x in arguments]
        call = f"call {vector} {name}({', '.join(arguments)})"
        self.define(let.target, call if self.width else
                    f"extractelement {vector} {self.computed('%results', call)}, i64 0")

    # Memory

    def address(self, buffer: Buffer, index: Index) -> str:
        """The address of an element."""
        array, data = _stored_type(buffer.dtype), self.value(buffer)
        for size in reversed(buffer.shape[len(buffer.shape) - len(index) + 1:]):
            array = f"[{size} x {array}]"
        steps = "".join(f", {self.typed(x)}" for x in index)
        return self.computed(
            "%at", f"getelementptr inbounds {array}, {self.pointer(buffer)} {data}{steps}")

    def pointer(self, buffer: Buffer) -> str:
        """The pointer type of a buffer."""
        return "ptr"

    def access(self, x: Load | Store, t: str, value: str = "") -> str:
        """The instruction of a load of a type, or of a store of a value."""
        place = f"{self.pointer(x.buffer)} {self.address(x.buffer, x.index)}"
        operation = f"store {value}" if value else f"load {t}"
        return f"{operation}, {place}, align {x.buffer.dtype.itemsize}"

    def print_load(self, load: Load) -> None:
        x = load.target
        if x.dtype != BOOL:
            return self.define(x, self.access(load, self.type_of(x.dtype)))
        t = self.in_lanes("i8")
        byte = self.computed("%byte", self.access(load, t))
        self.define(x, f"icmp ne {t} {byte}, zeroinitializer")

    def print_store(self, store: Store) -> None:
        value = self.typed(store.value)
        if store.value.dtype == BOOL:
            t = self.in_lanes("i8")
            value = f"{t} {self.computed('%byte', f'zext {value} to {t}')}"
        self.emit(self.access(store, "", value))

    def print_declare(self, declare: Declare) -> None:
        x = declare.variable
        self.names[x] = self.at_entry(f"alloca {llvm_type(x.dtype)}")
        self.print_assign(declare)

    def print_assign(self, assign: Assign | Declare) -> None:
        self.emit(f"store {self.typed(assign.value)}, ptr {self.names[assign.variable]}")

    def print_read(self, read: Read) -> None:
        x = read.target
        self.define(x, f"load {llvm_type(x.dtype)}, ptr {self.names[read.variable]}")

    # Control flow

    def print_for(self, loop: For) -> None:
        if loop in self.module.outlined:
            self.outline(loop, self.module.outlined[loop])
        else:
            self.polling_loop(loop, loop.start, loop.stop, loop.trip_count)

    def print_duplicate(self, loop: Duplicate) -> None:
        self.outline(loop, self.module.outlined[loop])

    def print_calls(self, calls: Calls) -> None:
        self.emit(f"call void {self.module.calls(calls.loops)}(ptr %list)")

    def polling_loop(self, loop: For, start: Operand, stop: Operand, trip_count: int | None
                     ) -> None:
        """A loop over a range; a long one polls for signals between strips."""
        if size := poll_interval(loop, trip_count) if self.poll else 0:
            self.loop(strips(loop, start, stop, size), start, stop, size)
        else:
            self.loop_over_range(loop, start, stop)

    def loop_over_range(self, loop: For, start: Operand, stop: Operand) -> None:
        """A loop over a range, without polls."""
        if lanes := self.lanes_in(loop):
            self.loop_in_vectors(loop, start, stop, lanes)
        elif stop is loop.stop and (lanes := lanes_of_sum(loop)):
            self.sum_in_lanes(loop, lanes)
        else:
            self.loop(loop, start, stop)

    def whole_vectors(self, start: Operand, stop: Operand, lanes: int) -> Operand:
        """Where the whole vectors of a range end."""
        b = Arithmetic()
        rest = b.add(start, b.and_(b.sub(stop, start), -lanes))
        self.body(b.scopes[0].statements)
        return b.actual(rest)

    def lanes_in(self, loop: For) -> int:
        """How many iterations are printed at once; 0 for scalars."""
        if self.lanes:
            return self.lanes if loop.vectorize else 0
        lanes = lanes_in(loop, vector_registers()[1])
        if lanes and calls(loop, self.module.called):
            return self.module.lanes if lanes >= self.module.lanes else 0
        return lanes

    def loop_in_vectors(self, loop: For, start: Operand, stop: Operand, lanes: int) -> None:
        """A loop over whole vectors, of which the last two overlap if iterations may repeat; else
        one over the rest, too.
        """
        if loop.trip_count == lanes:
            return self.print_vectorized(Vectorized(loop, start, lanes))
        count = loop.trip_count or 0
        if isinstance(stop, Constant) and count > lanes and count % lanes and may_repeat(loop):
            k, last = Scalar("", INT64), integer(stop.value - lanes)
            body = Let(loop.index, "min", (k, last)), Vectorized(loop, loop.index, lanes)
            return self.loop(replace(loop, index=k, body=body), start, stop, lanes)
        rest = self.whole_vectors(start, stop, lanes)
        self.loop(replace(loop, body=(Vectorized(loop, loop.index, lanes),)), start, rest, lanes)
        if start is not loop.start or stop is not loop.stop or loop.trip_count is None:
            self.loop(loop, rest, stop)
        elif count % lanes:
            self.print_vectorized(Vectorized(loop, rest, lanes, count=count % lanes))

    def print_vectorized(self, vectorized: Vectorized) -> None:
        loop, lanes = vectorized.loop, vectorized.lanes
        first = self.names[loop.index] = self.value(vectorized.first)
        for k, totals in enumerate(vectorized.totals):
            inner = self.module.in_vectors(self, lanes)
            inner.totals, inner.steps[loop.index] = totals, 1
            left = lanes if vectorized.count is None else vectorized.count - k * lanes
            if left < lanes:
                inner.run_first(left)
            else:
                inner.groups = groups_in(loop)
            if k:
                self.define(loop.index, f"add nuw nsw i64 {first}, {k * lanes}")
            inner.body(loop.body)
        self.names[loop.index] = first

    def sum_in_lanes(self, loop: For, lanes: int) -> None:
        """A loop that reduces in lanes: rows of vectors in registers. What does not fill the rows
        is added with masks.
        """
        ops = reductions(loop)
        width = self.module.lanes if calls(loop, self.module.called) else lanes
        rows = tuple({x: self.identities(op, x.dtype, width) for x, op in ops.items()}
                     for _ in range(0, lanes, width))
        rest = self.whole_vectors(loop.start, loop.stop, lanes)
        body = Vectorized(loop, loop.index, width, rows),
        self.loop(replace(loop, body=body), loop.start, rest, lanes)
        if count := (loop.trip_count or 0) % lanes:
            self.print_vectorized(Vectorized(loop, rest, width, rows[:-(-count // width)], count))
        for x, op in ops.items():
            before, vector = Scalar("", x.dtype), llvm_type(x.dtype, width)
            self.print_read(Read(before, x))
            total = self.combined(op, x.dtype, [
                self.computed("%loaded", f"load {vector}, ptr {row[x]}") for row in rows], lanes)
            self.print_let(Let(total, op, (before, total)))
            self.print_assign(Assign(x, total))

    def identities(self, op: str, dtype: np.dtype, width: int) -> str:
        """The address of a vector of so many identity elements, which is stored."""
        vector = llvm_type(dtype, width)
        place = self.at_entry(f"alloca {vector}")
        zero = self.typed(Arithmetic().const(identity_element(op, dtype), dtype))
        self.emit(f"store {vector} splat ({zero}), ptr {place}")
        return place

    def combined(self, op: str, dtype: np.dtype, vectors: Sequence[str], lanes: int) -> Scalar:
        """All lanes combined: the lower half with the upper one, until one lane is left."""
        total, kind, names = Scalar("", dtype), llvm_type(dtype), list(vectors)
        while lanes > 1:
            if dtype == BOOL and len(names) == 1:
                test = f"@llvm.vector.reduce.{'and' if op in ('and', 'min') else 'or'}.v{lanes}i1"
                self.define(total, f"call i1 {test}(<{lanes} x i1> {names[0]})")
                return total
            lanes //= 2
            width = lanes * 2 // max(len(names), 2)
            printer = self.module.in_vectors(self, width)
            if len(names) == 1:
                names = [printer.shuffled(kind, 2 * width, names, range(first, first + width))
                         for first in (0, width)]
            names = [printer.of_names(op, dtype, pair)
                     for pair in zip(names[:len(names) // 2], names[len(names) // 2:], strict=True)]
        self.define(total, f"extractelement <1 x {kind}> {names[0]}, i64 0")
        return total

    def loop(self, loop: For, start: Operand, stop: Operand, step: int = 1) -> None:
        """A counted loop, as a while loop with its index in a variable."""
        variable, test = Variable("", INT64), Scalar("", BOOL)
        successor, one = Scalar("", INT64), integer(step)
        self.print_declare(Declare(variable, start))
        self.enclosing += [(loop, self.names[variable])] * (not loop.vectorize)
        self.while_loop(While(
            (Read(loop.index, variable), Let(test, "lt", (loop.index, stop))), test,
            (*loop.body, Let(successor, "add nuw nsw {s} {x}, {y}", (loop.index, one)),
             Assign(variable, successor))))
        del self.enclosing[len(self.enclosing) - (not loop.vectorize):]

    def allocate_private(self, temps: Sequence[Buffer]) -> None:
        """Allocate the private temps of a thread on the heap; stacks may be very small."""
        if not temps:
            return
        *starts, size = accumulate((round_up(max(x.nbytes, 1)) for x in temps), initial=0)
        memory = self.call("noalias ptr", "PyMem_RawMalloc", f"i64 {size + ALIGNMENT}")
        self.memory = self.at_entry(memory)
        self.place_temps(self.memory, dict(zip(temps, starts, strict=True)))

    def outline(self, loop: For | Duplicate, outlined: Outlined) -> None:
        """Call an outlined loop with a frame of its arguments, and a block number."""
        poll = "" if outlined.blocks else self.poll
        name = self.module.function(loop, poll or "minijax_poll_shared")
        interruptible = name in self.module.interruptible
        frame = self.frame(list(map(self.typed, outlined.captures)))[0]
        if outlined.blocks:
            call = self.call("i32", "minijax_share", f"ptr {name}", frame, f"i64 {outlined.blocks}")
        else:
            call = f"call {'i32' if interruptible else 'void'} {name}({frame}, i64 0)"
        if not (outlined.blocks or interruptible):
            return self.emit(call)
        self.return_if_interrupted(self.computed("%status", call), loop)

    def frame(self, operands: Sequence[str]) -> list[str]:
        """Store values in a frame, one word each; returns the addresses of the slots."""
        n = len(operands)
        frame = self.at_entry(f"alloca [{n} x i64]")
        words = [f"getelementptr inbounds i64, ptr {frame}, i64 {k}" for k in range(1, n)]
        places = [f"ptr {place}" for place in (frame, *map(self.at_entry, words))]
        for operand, place in zip(operands, places, strict=False):
            self.emit(f"store {operand}, {place}")
        return places

    def call(self, result: str, name: str, *operands: str) -> str:
        """A call of a function, declared first if it is defined elsewhere."""
        types = ", ".join(operand.split()[0] for operand in operands)
        self.module.functions.setdefault(name, f"declare {result} @{name}({types})")
        return f"call {result} @{name}({', '.join(operands)})"

    def print_while(self, loop: While) -> None:
        if not self.poll:
            return self.while_loop(loop)
        counter = Variable("", INT64)
        self.print_declare(Declare(counter, integer(0)))
        self.enclosing.append((loop, self.names[counter]))
        self.while_loop(replace(loop, body=(*loop.body, *spending(self, loop, counter))))
        self.enclosing.pop()

    def while_loop(self, loop: While) -> None:
        """A while loop, without polls."""
        label = self.fresh("while")
        self.emit(f"br label %{label}")
        self.start_block(label)
        self.body(loop.condition)
        self.emit(f"br i1 {self.value(loop.test)}, label %{label}.body, label %{label}.end")
        self.start_block(f"{label}.body")
        self.body(loop.body)
        self.emit(f"br label %{label}")
        self.start_block(f"{label}.end")

    def print_strip(self, strip: Strip) -> None:
        self.loop_over_range(strip.loop, strip.first, strip.stop)

    def print_poll(self, poll: Poll) -> None:
        self.module.functions.setdefault(self.poll, POLL_DECLARATION.format(self.poll))
        status = self.computed("%status", f"call i32 @{self.poll}()")
        self.return_if_interrupted(status, poll.loop, self.value(poll.iterations))

    def print_if(self, branch: If) -> None:
        label = self.fresh("if")
        self.emit(f"br i1 {self.value(branch.test)}, label %{label}.then, label %{label}.else")
        for side, statements in (("then", branch.then), ("else", branch.orelse)):
            self.start_block(f"{label}.{side}")
            self.body(statements)
            self.emit(f"br label %{label}.end")
        self.start_block(f"{label}.end")

    def print_check(self, check: Check) -> None:
        label = self.fresh("check")
        self.emit(f"br i1 {self.value(check.ok)}, label %{label}.passed, label %{label}.failed")
        self.start_block(f"{label}.failed")
        self.leave(f"i32 {check.code}")
        self.start_block(f"{label}.passed")

    def return_if_interrupted(self, status: str, loop: Statement, iterations: str = "-1") -> None:
        """Return if a signal handler has raised; the kernel's status says in which loop, and the
        pool after how many iterations.
        """
        label, self.returns_early = self.fresh("told"), True
        test = self.computed("%told", f"icmp ne i32 {status}, 0")
        self.emit(f"br i1 {test}, label %{label}.leave, label %{label}.on")
        self.start_block(f"{label}.leave")
        if self.is_outlined:
            self.leave("void" if self.is_shared else "i32 1")
        else:
            if self.enclosing and not isinstance(loop, While):
                loop, counter = self.enclosing[-1]
                iterations = self.computed("%iterations", f"load i64, ptr {counter}")
            self.emit(self.call("void", "minijax_iterations", f"i64 {iterations}"))
            self.leave(f"i32 {host.INTERRUPTED + self.module.sites[loop]}")
        self.start_block(f"{label}.on")

    def leave(self, result: str) -> None:
        """Return, after undoing what the function has set up."""
        if self.thread_limits:
            self.emit(self.call("void", ALONE, f"i64 {-self.thread_limits}"))
        if self.memory:
            self.emit(self.call("void", "PyMem_RawFree", f"ptr {self.memory}"))
        self.emit(f"ret {result}")

    def print_call(self, call: Call) -> None:
        operands = list(map(self.typed, call.args))
        if call.external == host.CALL:
            function = self.computed("%function", f"load ptr, {operands[0]}")
            frame = self.frame(operands[1:])[0]
            return self.emit(self.call("void", "minijax_host", f"ptr {function}", frame))
        if call.external == ALONE:
            self.thread_limits += int(call.args[0].value)  # type: ignore[union-attr, arg-type]
        if call.external.startswith(LIBRARY):
            slots = zip(operands, self.frame(operands), strict=True)
            operands = [*(x if x.startswith("ptr ") else slot for x, slot in slots), *LENGTHS]
        return self.emit(self.call("void", call.external, *operands))
