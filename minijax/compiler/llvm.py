"""The loop tree as LLVM assembly: one method for each kind of statement.

Stands on instructions.py (the scalar operations) and routines.py; imports no compiler. Chapter 24.
In JAX this role is played by XLA's IR emitters (xla/service/cpu, xla/service/llvm_ir).
"""

import struct
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, count
from typing import Any

import numpy as np

from minijax.primitives.infix import Number

from . import host
from .arithmetic import Arithmetic
from .cpu import vector_registers
from .elementary import FORMULAS
from .function_splitting import LONG, split_body
from .index_set_splitting import split_loops
from .interrupts import SignalPolls, sites, poll_interval
from .loops import (
    BOOL, INT64, Address, Assign, Buffer, Call, Check, Constant, Declare, For, If, Index, Kernel,
    Let, Load, Operand, Read, Scalar, Statement, Store, Variable, While, touched, walk,
)
from .memory import ALIGNMENT, round_up
from .metadata import Aliases, Metadata
from .outlining import Outlined, outlined_loops
from .routines import ALONE, LENGTHS, block, is_library_call
from .scalars import OPS, kind_of
from .tables import Entry, Table, calls_of, table_of, with_tables
from .vectors import Function, called_in, calls, function, lanes_of, of_vectors

MANGLED = {"float": "f32", "double": "f64"}  # in the names of LLVM's overloaded intrinsics
SYMBOL = "kernel"
POLL = "minijax_ask"  # polls for signals outside of parallel loops
# The kernel is called with a list of NumPy arrays. Behind the object header a list has its length
# and the address of its items, an array the address of its elements: C's public layout.
HEADER, WORD = object.__basicsize__, 8
MANY_ARRAYS = 16  # with more, their addresses are loaded by a function that is not inlined
ARRAY = f"""\
define internal ptr @array(ptr %list, i64 %k) HOW nounwind willreturn memory(read) {{
  %items.at = getelementptr inbounds i8, ptr %list, i64 {HEADER + WORD}
  %items = load ptr, ptr %items.at
  %array.at = getelementptr inbounds ptr, ptr %items, i64 %k
  %array = load ptr, ptr %array.at
  %elements.at = getelementptr inbounds i8, ptr %array, i64 {HEADER}
  %elements = load ptr, ptr %elements.at
  ret ptr %elements
}}"""
# Trip counts: LLVM would unroll a loop of FEW or more before vectorising it; one of more than SHORT
# also afterwards, which takes time and helps only sums, for which MANY is enough.
FEW, MANY, SHORT = 9, 99, 256
ABREAST = 64  # bytes of partial sums in a long reduction, with an interleave count of two
# Loop metadata: no unrolling; unrolling after vectorisation only; no interleaving; no
# vectorisation. Attributes of a function: PURE.
WHOLE = '!"llvm.loop.unroll.disable"'
ONE_VECTOR = '!"llvm.loop.interleave.count", i32 1'
NO_LONGER = '!"llvm.loop.vectorize.followup_vectorized", !{!"llvm.loop.isvectorized", i32 1}'
NO_VECTOR = '!"llvm.loop.vectorize.enable", i1 false'
PURE = "noinline nounwind willreturn memory(none)"
# `halves` of vectors, in the pattern that LLVM selects a single instruction for. It is inlined
# after vectorisation: in a scalar loop LLVM would not recognise the pattern.
HALVES = """\
define hidden <{lanes} x {t}> {name}(<{lanes} x {t}> %x, <{lanes} x {t}> %y)
alwaysinline nounwind willreturn memory(none) {{
  %x.halves = bitcast <{lanes} x {t}> %x to <{parts} x {half}>
  %y.halves = bitcast <{lanes} x {t}> %y to <{parts} x {half}>
  %x.wide = sext <{parts} x {half}> %x.halves to <{parts} x {t}>
  %y.wide = sext <{parts} x {half}> %y.halves to <{parts} x {t}>
  %products = mul <{parts} x {t}> %x.wide, %y.wide
  %low = shufflevector <{parts} x {t}> %products, <{parts} x {t}> poison, <{lanes} x i32> <{even}>
  %high = shufflevector <{parts} x {t}> %products, <{parts} x {t}> poison, <{lanes} x i32> <{odd}>
  %result = add <{lanes} x {t}> %low, %high
  ret <{lanes} x {t}> %result
}}"""


def assembly(kernel: Kernel) -> str:
    """Return the kernel as one LLVM module that defines `int32 kernel(PyObject* list)`.

    Equal kernels give equal text, whatever lines of the user's program they came from: the text is
    what the cache on disk is keyed by.
    """
    return ModuleText(replace(kernel, body=split_loops(kernel.body))).text()


def llvm_type(dtype: np.dtype) -> str:
    """The LLVM type of a scalar in a register; narrow numbers travel as their bits.

    >>> llvm_type(np.dtype("float32")), llvm_type(np.dtype("uint8")), llvm_type(np.dtype("bool"))
    ('float', 'i8', 'i1')
    """
    kind = kind_of(dtype)
    if kind == "f":
        return "float" if dtype.itemsize == 4 else "double"
    return "i1" if kind == "b" else f"i{8 * dtype.itemsize}"


def _stored_type(dtype: np.dtype) -> str:
    """The LLVM type of an element in memory: a bool takes a byte."""
    return "i8" if dtype == BOOL else llvm_type(dtype)


def _literal(constant: Constant) -> str:
    """A literal operand; a float or double is written as the bits of the double."""
    kind, value = kind_of(constant.dtype), constant.value
    if kind == "f":
        return "0x" + struct.pack(">d", value).hex().upper()
    return str(int(value.view(f"u{value.itemsize}") if kind == "n" else value))


def _passed_as(x: Operand | Variable | Buffer | Address) -> str:
    """The LLVM type of an argument: operands are values, the others are addresses."""
    return llvm_type(x.dtype) if isinstance(x, Scalar | Constant) else "ptr"


def taking(of: str, x: str, count: int) -> str:
    """A list of parameters or arguments of one type, named x0, x1 and so on."""
    return "(" + ", ".join(f"{of} %{x}{k}" for k in range(count)) + ")"


def abreast(loop: For) -> list[str]:
    """Loop metadata for a long sum where vector registers are few: as many partial sums as
    elsewhere, since longer chains of additions round more often.
    """
    widest = max((each.value.dtype.itemsize for each in loop.body if isinstance(each, Assign)),
                 default=ABREAST)
    width = ABREAST // widest
    if loop.vectorize != "reduce" or (loop.turns or 0) < 2 * width or vector_registers()[1] >= 32:
        return []
    return [f'!"llvm.loop.vectorize.width", i32 {width}', '!"llvm.loop.interleave.count", i32 2']


class ModuleText:
    """Prints one kernel: its function, the outlined loops, the helpers that they call."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.outlined = outlined_loops(kernel)
        self.printed: dict[str, str] = {}  # texts of outlined functions → their names
        self.function_names: dict[tuple[For, str], str] = {}  # a loop, its poll → the name
        self.saying: set[str] = set()  # functions that return whether they were interrupted
        self.functions: dict[str, str] = {}
        self.called = called_in(kernel.body)
        self.lanes = lanes_of(self.called)
        self.metadata = Metadata()
        self.sites = sites(kernel)
        self.most = 0  # arguments of a call in a table

    def printer(self, buffers: Collection[Buffer], lanes: int = 0) -> "FunctionText":
        """A printer of one function."""
        return FunctionText(self, buffers, lanes)

    def text(self) -> str:
        """The module: helpers in use, the functions, the metadata."""
        bodies = split_body(with_tables(self.kernel.body, self.entry), LONG)
        names = [f"i32 @{SYMBOL}", *(f"i32 @stretch.{k}" for k in range(1, len(bodies))), ""]
        parts = [*map(self.kernel_part, names, bodies, names[1:])]
        return "\n".join([*self.functions.values(), *parts, *self.metadata.lines]) + "\n"

    def kernel_part(self, name: str, body: Sequence[Statement], following: str) -> str:
        """One part of the kernel as a function that tail-calls the next."""
        buffers = dict.fromkeys(x for each in walk(body) for x in touched(each))
        inner = self.printer(buffers)
        inner.point_at_buffers(self.kernel, buffers)
        inner.polls = SignalPolls(inner, POLL)
        inner.body(body)
        if following:
            inner.emit(f"%status = tail call {following}(ptr %list)")
        status = "i32 %status" if following else "i32 0"
        return inner.text(f"{name}(ptr noundef %list) noinline", status)

    def entry(self, statement: Statement) -> Entry | None:
        """The entry of a loop in a call table, if its function takes only buffers and never returns
        early.
        """
        how = self.outlined.get(statement) if isinstance(statement, For) else None
        buffers = tuple(x for x in how.taken if isinstance(x, Buffer)) if how else ()
        if not how or how.blocks or not buffers or len(buffers) < len(how.taken):
            return None
        name = self.function(statement, POLL)  # type: ignore[arg-type]
        return None if name in self.saying else Entry(statement, name, buffers)

    def table(self, table: Table) -> str:
        """A call of the interpreter of a call table."""
        self.most = max(self.most, *(len(call.taken) for call in table.calls))
        name = f"@table.{sum(x.startswith('@table') for x in self.functions) + 1}"
        self.functions[name] = f"{name} = internal constant {table_of(table, self.kernel)}"
        self.functions["@calls"] = calls_of(self.kernel, self.most)
        return f"call void @calls(ptr %list, ptr {name})"

    def function(self, loop: For, ask: str) -> str:
        """The name of an outlined loop's function, which polls for signals with `ask`."""
        first = self.outlined[loop].first or loop
        key = first, ask
        if key not in self.function_names:
            self.function_names[key] = self.printed_function(first, self.outlined[first], ask)
        return self.function_names[key]

    def printed_function(self, loop: For, how: Outlined, ask: str) -> str:
        """The name of an outlined function; equal texts share one."""
        inner = self.printer([x for x in (*how.taken, *how.private) if isinstance(x, Buffer)])
        inner.polls = SignalPolls(inner, ask)
        inner.is_outlined, inner.is_shared = True, bool(how.blocks)
        for position, thing in enumerate(how.taken):
            inner.names[thing] = inner.load_field("%frame", WORD * position, _passed_as(thing))
        inner.own(how.private)
        start, stop, turns = loop.start, loop.stop, how.step or loop.turns
        if how.blocks:
            b, number = Arithmetic(), Scalar("", INT64)
            inner.names[number] = "%block"
            start = b.mul(number, how.step)
            stop = b.min(b.add(start, how.step), stop)
            inner.body(b.scopes[0].statements)
        inner.turns(loop, start, stop, turns)
        inner.free()
        says = inner.leaves and not inner.is_shared
        kind, status = ("i32", "i32 0") if says else ("void", "void")
        text = inner.text(f"internal {kind} @loop(ptr noundef %frame, i64 %block) noinline", status)
        if text not in self.printed:
            name = self.printed[text] = f"@loop.{len(self.printed) + 1}"
            self.functions[name] = text.replace("@loop", name, 1)
            self.saying |= {name} if says else set()
        return self.printed[text]

    def function_of(self, f: Function) -> tuple[str, str]:
        """The names of an elementary function, scalar and vectorised.

        The scalar function computes zeros in the other lanes. It is not internal: LLVM would drop a
        parameter that is the same constant everywhere, and the signatures would no longer match.
        """
        t = llvm_type(f.dtype)
        v, name, vector = f"<{self.lanes} x {t}>", f"@{f.name}.{t}", f"@{f.name}.{self.lanes}.{t}"
        if name not in self.functions:
            buffers, body = of_vectors(f, self.lanes)
            inner = self.printer(buffers, self.lanes)
            inner.make_room(buffers)
            for k in range(len(f.parameters)):
                inner.emit(f"store {v} %x{k}, ptr {inner.names[buffers[k]]}")
            inner.body(body)
            inner.emit(f"%result = load {v}, ptr {inner.names[buffers[-1]]}")
            self.functions[vector] = inner.text(
                f"internal {v} {vector}{taking(v, 'x', len(f.parameters))} {PURE}", f"{v} %result")
            self.of_one(name, vector, self.lanes, t, len(f.parameters))
        return name, vector

    def of_one(self, name: str, vector: str, lanes: int, t: str, count: int) -> None:
        """Define a scalar function by its vector variant, with zeros in the other lanes."""
        v = f"<{lanes} x {t}>"
        self.functions[name] = "\n".join([
            f"define hidden {t} {name}{taking(t, 'x', count)} {PURE} {{",
            *(f"  %all{k} = insertelement {v} zeroinitializer, {t} %x{k}, i64 0"
              for k in range(count)),
            f"  %results = call {v} {vector}{taking(v, 'all', count)}",
            f"  %result = extractelement {v} %results, i64 0", f"  ret {t} %result", "}"])

    def halves(self, dtype: np.dtype, lanes: int) -> tuple[str, str]:
        """The names of the operation `halves`, scalar and vectorised."""
        t, half = llvm_type(dtype), f"i{4 * dtype.itemsize}"
        name, vector = f"@halves.{t}.{lanes}", f"@halves.{lanes}.{t}"
        if name not in self.functions:
            even, odd = (", ".join(f"i32 {k}" for k in range(first, 2 * lanes, 2))
                         for first in (0, 1))
            self.functions[vector] = HALVES.format(
                name=vector, lanes=lanes, parts=2 * lanes, t=t, half=half, even=even, odd=odd)
            self.of_one(name, vector, lanes, t, 2)
        return name, vector

    def block(self, name: str) -> None:
        """Define the microkernel of a matrix product."""
        taken, sums, body = block(name)
        buffers = [x for x in (*taken, *sums) if isinstance(x, Buffer)]
        inner = self.printer(buffers, sums[0].size)
        inner.names |= {x: f"%given.{k}" for k, x in enumerate(taken)}
        inner.make_room(sums)
        inner.body(body)
        signature = ", ".join(map(inner.typed, taken))
        self.functions[name] = inner.text(f"internal void @{name}({signature}) noinline optsize")


class _Instructions(Arithmetic):
    """Emits the formulas of instructions.py."""

    in_vectors = False

    def plain(self, instruction: str, args: tuple[Operand, ...], dtype: Any) -> Operand:
        """Emit a single LLVM instruction in place of an operation."""
        target = self._define(np.dtype(dtype), 0)
        self._put(0, Let(target, instruction, args), target, target)
        return target


class FunctionText:
    """Prints one function; `lines` is its body so far.

    A frame has a slot of eight bytes for each argument, an address or a scalar. Names are numbered
    in order of their use: equal loops give equal text.
    """

    def __init__(self, module: ModuleText, buffers: Collection[Buffer], lanes: int = 0) -> None:
        self.module, self.lanes = module, lanes
        self.aliases = Aliases(module.metadata, buffers, module.kernel.offsets)
        self.entry: list[str] = []
        self.lines: list[str] = []
        self.names: dict[Operand | Variable | Buffer, str] = {}
        self.numbers = count()
        self.parallel: tuple[str, ...] = ()
        self.joined: set[Operand] = set()  # values that a reduction assigns: reassociable
        self.polls: SignalPolls | None = None  # the polls of long loops, if they poll
        self.is_outlined = self.is_shared = self.leaves = False
        self.memory = ""  # the private temps, freed at the end
        self.alone = 0  # how often the library has been limited to one thread
        # The enclosing serial loops, with their iteration counters.
        self.around: list[tuple[Statement, str]] = []

    def text(self, signature: str, result: str = "void") -> str:
        """The function definition."""
        return "\n".join([f"define {signature} nounwind {{", "entry:", *self.entry,
                          "  br label %start", "start:", *self.lines, f"  ret {result}", "}"])

    def emit(self, instruction: str) -> None:
        """Append an instruction to the current block."""
        self.lines.append("  " + instruction)

    def begin(self, label: str) -> None:
        """Start a basic block."""
        self.lines.append(f"{label}:")

    def fresh(self, stem: str) -> str:
        """A label or name that is unique in the function."""
        return f"{stem}.{next(self.numbers)}"

    def value(self, x: Operand | Variable | Buffer | Address) -> str:
        """A thing as an operand without its type."""
        if isinstance(x, Address):
            return self.address(x.buffer, x.index)
        return _literal(x) if isinstance(x, Constant) else self.names[x]

    def typed(self, x: Operand | Variable | Buffer | Address) -> str:
        """A thing as an operand with its type."""
        return f"{_passed_as(x)} {self.value(x)}"

    def point_at_buffers(self, kernel: Kernel, buffers: Collection[Buffer]) -> None:
        """Load the buffers' addresses once, at entry; temps lie in the workspace, the last
        argument.
        """
        passed = kernel.inputs + kernel.outputs + kernel.constants
        how = "noinline" if len(passed) > MANY_ARRAYS else "alwaysinline"
        self.module.functions["array"] = ARRAY.replace("HOW", how)
        array = lambda position: self.at_entry(f"call ptr @array(ptr %list, i64 {position})")
        self.names |= {buffer: array(position)
                       for position, buffer in enumerate(passed) if buffer in buffers}
        temps = {temp: offset for temp, offset in kernel.offsets.items() if temp in buffers}
        if temps:
            self.place_temps(array(len(passed)), temps)

    def load_field(self, memory: str, offset: int, t: str = "ptr") -> str:
        """The field at an offset from an address, loaded once at entry."""
        place = self.at_entry(f"getelementptr inbounds i8, ptr {memory}, i64 {offset}")
        return self.at_entry(f"load {t}, ptr {place}")

    def place_temps(self, memory: str, offsets: Mapping[Buffer, int]) -> None:
        """Place temps at their offsets from the first cache line of some memory."""
        last = self.at_entry(f"getelementptr inbounds i8, ptr {memory}, i64 {ALIGNMENT - 1}")
        aligned = self.at_entry(f"call ptr @llvm.ptrmask.p0.i64(ptr {last}, i64 {-ALIGNMENT})")
        for temp, offset in offsets.items():
            place = f"getelementptr inbounds i8, ptr {aligned}, i64 {offset}"
            self.names[temp] = self.at_entry(place)

    def make_room(self, buffers: Iterable[Buffer]) -> None:
        """Allocate buffers on the stack."""
        for x in buffers:
            room = f"alloca [{x.size} x {llvm_type(x.dtype)}], align {ALIGNMENT}"
            self.names[x] = self.at_entry(room)

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
        self.names[target] = self.fresh("%local")
        self.emit(f"{self.names[target]} = {expression}")

    def print_let(self, let: Let) -> None:
        dtype = let.args[-1].dtype
        if let.op in FORMULAS:
            return self.elementary(let, function(let.op, dtype))
        if let.op == "halves" and self.lanes:
            return self.call_of_vectors(let, *self.module.halves(dtype, self.lanes), self.lanes)
        how = OPS[let.op].instructions[kind_of(dtype)] if let.op in OPS else let.op
        if not isinstance(how, str):
            return self.write_formula(let, how)
        operands = dict(zip("xyz", map(self.value, let.args), strict=False))
        taken = llvm_type(dtype)
        self.define(let.target, how.format(
            s=taken, t=llvm_type(let.target.dtype), m=MANGLED.get(taken, taken),
            flags="reassoc " if let.target in self.joined else "", **operands))

    def write_formula(self, let: Let, formula: Callable) -> None:
        """Expand an operation into several instructions."""
        b = _Instructions()
        b.in_vectors = bool(self.parallel)
        target = [let.target.dtype] if OPS[let.op].result == "target" else []
        result = formula(*(Number(b, x) for x in let.args), *target)
        self.body(b.scopes[0].statements)
        self.names[let.target] = self.value(result.value)

    def elementary(self, let: Let, f: Function) -> None:
        """Inline an elementary function, or call it in a form that LLVM can vectorise."""
        if f in self.module.called:
            return self.call_of_vectors(let, *self.module.function_of(f), self.module.lanes)
        self.names.update(zip(f.parameters, map(self.value, let.args), strict=True))
        self.body(f.body)
        self.names[let.target] = self.value(f.result)

    def call_of_vectors(self, let: Let, name: str, vector: str, lanes: int) -> None:
        """A call of a scalar function with a vector variant that LLVM may choose."""
        call = f"call {llvm_type(let.target.dtype)} {name}({', '.join(map(self.typed, let.args))})"
        variant = f"_ZGV_LLVM_N{lanes}{'v' * len(let.args)}_{name[1:]}({vector[1:]})"
        self.define(let.target, f'{call} "vector-function-abi-variant"="{variant}"')

    # Memory

    def address(self, buffer: Buffer, index: Index) -> str:
        """The address of an element."""
        array, data = _stored_type(buffer.dtype), self.names[buffer]
        for size in reversed(buffer.shape[1:len(index)]):
            array = f"[{size} x {array}]"
        place = self.fresh("%at")
        steps = "".join(f", {self.typed(x)}" for x in index)
        self.emit(f"{place} = getelementptr inbounds {array}, {self.pointer(buffer)} {data}{steps}")
        return place

    def pointer(self, buffer: Buffer) -> str:
        """The pointer type of a buffer."""
        return "ptr"

    def place(self, x: Load | Store) -> str:
        """The address of an element with its alignment and alias metadata."""
        notes = self.aliases.access(x.buffer, self.parallel)
        address = f"{self.pointer(x.buffer)} {self.address(x.buffer, x.index)}"
        return f"{address}, align {x.buffer.dtype.itemsize}{notes}"

    def print_load(self, load: Load) -> None:
        x = load.target
        self.define(x, f"load {_stored_type(x.dtype)}, {self.place(load)}")
        if x.dtype == BOOL:
            self.define(x, f"icmp ne i8 {self.names[x]}, 0")

    def print_store(self, store: Store) -> None:
        value = self.typed(store.value)
        if store.value.dtype == BOOL:
            byte = self.fresh("%byte")
            self.emit(f"{byte} = zext {value} to i8")
            value = f"i8 {byte}"
        self.emit(f"store {value}, {self.place(store)}")

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
            self.turns(loop, loop.start, loop.stop, loop.turns)

    def turns(self, loop: For, start: Operand, stop: Operand, count: int | None) -> None:
        """A loop over a range; a long one polls for signals between strips."""
        size = poll_interval(loop, count) if self.polls else 0
        if self.polls and size:
            self.polls.strip_mine(loop, start, stop, size)
        else:
            self.loop_over_range(loop, start, stop)

    def loop_over_range(self, loop: For, start: Operand, stop: Operand) -> None:
        """A loop over a range, without polls. If its body calls vectorisable functions, whole
        vectors come first and a scalar remainder after: LLVM would unroll the remainder.
        """
        side_by_side, turns = loop.vectorize in ("parallel", "reduce"), loop.turns or 0
        lanes = self.lanes or self.module.lanes
        of_lanes = [f'!"llvm.loop.vectorize.width", i32 {lanes}', ONE_VECTOR, WHOLE]
        if self.lanes:
            self.loop(loop, start, stop, of_lanes)
        elif side_by_side and calls(loop, self.module.called):
            b = Arithmetic()
            rest = b.add(start, b.and_(b.sub(stop, start), -lanes))
            self.body(b.scopes[0].statements)
            self.loop(loop, start, rest, of_lanes)
            self.loop(loop, rest, stop, [WHOLE, NO_VECTOR])
        else:
            long_sum = loop.vectorize == "reduce" and turns > MANY
            is_around = any(isinstance(each, Call) for each in walk(loop.body))
            whole = is_around or side_by_side and turns >= FEW and not long_sum
            until = [WHOLE] if is_around or turns > SHORT else [WHOLE, NO_LONGER]
            self.loop(loop, start, stop, [*(until if whole else []), *abreast(loop)])

    def loop(self, loop: For, start: Operand, stop: Operand, facts: Sequence[str]) -> None:
        """A counted loop, as a while loop with its index in a variable."""
        before = self.parallel
        if loop.vectorize == "parallel":
            self.parallel = (*before, self.module.metadata.group(len(before)))
            facts = [f'!"llvm.loop.parallel_accesses", {self.parallel[-1]}', *facts]
        if loop.vectorize == "reduce":
            self.joined |= {each.value for each in loop.body if isinstance(each, Assign)}
        variable, again = Variable("", INT64), Scalar("", BOOL)
        following, one = Scalar("", INT64), Constant(np.int64(1), INT64)
        self.print_declare(Declare(variable, start))
        self.around += [(loop, self.names[variable])] * (not loop.vectorize)
        self.while_loop(While(
            (Read(loop.index, variable), Let(again, "lt", (loop.index, stop))), again,
            (*loop.body, Let(following, "add nuw nsw {s} {x}, {y}", (loop.index, one)),
             Assign(variable, following))), facts)
        self.parallel = before
        del self.around[len(self.around) - (not loop.vectorize):]

    def own(self, temps: Sequence[Buffer]) -> None:
        """Allocate the private temps of a thread on the heap; stacks may be very small."""
        if not temps:
            return
        *starts, size = accumulate((round_up(max(x.nbytes, 1)) for x in temps), initial=0)
        memory = self.call("noalias ptr", "PyMem_RawMalloc", f"i64 {size + ALIGNMENT}")
        self.memory = self.at_entry(memory)
        self.place_temps(self.memory, dict(zip(temps, starts, strict=True)))

    def free(self) -> None:
        """Free the private temps."""
        if self.memory:
            self.emit(self.call("void", "PyMem_RawFree", f"ptr {self.memory}"))

    def outline(self, loop: For, how: Outlined) -> None:
        """Call an outlined loop with a frame of its arguments, and a block number."""
        ask = "minijax_ask_sharing" if how.blocks or not self.polls else self.polls.name
        name = self.module.function(loop, ask)
        says = name in self.module.saying
        frame = self.frame(list(map(self.typed, how.taken)))[0]
        call = (self.call("i32", "minijax_share", f"ptr {name}", frame, f"i64 {how.blocks}")
                if how.blocks else f"call {'i32' if says else 'void'} {name}({frame}, i64 0)")
        if not (how.blocks or says):
            return self.emit(call)
        status = self.fresh("%status")
        self.emit(f"{status} = {call}")
        self.leave_if(status, loop)

    def frame(self, operands: Sequence[str]) -> list[str]:
        """Store values in a frame, one word each; returns the addresses of the slots."""
        n = len(operands)
        frame = self.at_entry(f"alloca [{n} x i64]")
        words = [f"getelementptr inbounds i64, ptr {frame}, i64 {k}" for k in range(1, n)]
        places = [f"ptr {place}" for place in (frame, *map(self.at_entry, words))]
        for thing, place in zip(operands, places, strict=False):
            self.emit(f"store {thing}, {place}")
        return places

    def call(self, result: str, name: str, *operands: str) -> str:
        """A call of a function, declared first if it is defined elsewhere."""
        types = ", ".join(thing.split()[0] for thing in operands)
        self.module.functions.setdefault(name, f"declare {result} @{name}({types})")
        return f"call {result} @{name}({', '.join(operands)})"

    def print_table(self, table: Table) -> None:
        self.emit(self.module.table(table))

    def print_while(self, loop: While) -> None:
        counter = self.at_entry("alloca i64") if self.polls else ""
        if counter:
            self.emit(f"store i64 0, ptr {counter}")
        self.around += [(loop, counter)] * bool(counter)
        self.while_loop(loop, counter=counter)
        del self.around[len(self.around) - bool(counter):]

    def while_loop(self, loop: While, facts: Sequence[str] = (), counter: str = "") -> None:
        """A while loop; it polls for signals if its iterations are counted."""
        label = self.fresh("while")
        self.emit(f"br label %{label}")
        self.begin(label)
        self.body(loop.condition)
        self.emit(f"br i1 {self.value(loop.test)}, label %{label}.body, label %{label}.end")
        self.begin(f"{label}.body")
        self.body(loop.body)
        if self.polls and counter:
            self.polls.spend(loop, counter)
        self.emit(f"br label %{label}{self.module.metadata.loop(facts)}")
        self.begin(f"{label}.end")

    def print_if(self, branch: If) -> None:
        label = self.fresh("if")
        self.emit(f"br i1 {self.value(branch.test)}, label %{label}.then, label %{label}.else")
        for side, statements in (("then", branch.then), ("else", branch.orelse)):
            self.begin(f"{label}.{side}")
            self.body(statements)
            self.emit(f"br label %{label}.end")
        self.begin(f"{label}.end")

    def print_check(self, check: Check) -> None:
        label = self.fresh("check")
        self.emit(f"br i1 {self.value(check.ok)}, label %{label}.passed, label %{label}.failed")
        self.begin(f"{label}.failed")
        self.leave(f"i32 {check.code}")
        self.begin(f"{label}.passed")

    def leave_if(self, status: str, loop: Statement, turns: str = "-1") -> None:
        """Return if a signal handler has raised; the kernel's status says in which loop, and the
        pool after how many iterations.
        """
        label, test, self.leaves = self.fresh("told"), self.fresh("%told"), True
        self.emit(f"{test} = icmp ne i32 {status}, 0")
        self.emit(f"br i1 {test}, label %{label}.leave, label %{label}.on")
        self.begin(f"{label}.leave")
        if self.is_outlined:
            self.leave("void" if self.is_shared else "i32 1")
        else:
            if self.around and not isinstance(loop, While):
                (loop, counter), turns = self.around[-1], self.fresh("%turns")
                self.emit(f"{turns} = load i64, ptr {counter}")
            self.emit(self.call("void", "minijax_turns", f"i64 {turns}"))
            self.leave(f"i32 {host.INTERRUPTED + self.module.sites[loop]}")
        self.begin(f"{label}.on")

    def leave(self, status: str) -> None:
        """Return early, after undoing what the function has set up."""
        if self.alone:
            self.emit(self.call("void", ALONE, f"i64 {-self.alone}"))
        self.free()
        self.emit(f"ret {status}")

    def print_call(self, call: Call) -> None:
        operands = list(map(self.typed, call.args))
        if call.external == host.CALL:
            function = self.fresh("%function")
            self.emit(f"{function} = load ptr, {operands[0]}")
            frame = self.frame(operands[1:])[0]
            return self.emit(self.call("void", "minijax_host", f"ptr {function}", frame))
        if call.external == ALONE:
            self.alone += int(call.args[0].value)  # type: ignore[union-attr, arg-type]
        if is_library_call(call.external):
            slots = zip(operands, self.frame(operands), strict=True)
            operands = [*(x if x.startswith("ptr ") else slot for x, slot in slots), *LENGTHS]
        elif call.external not in {ALONE, *self.module.functions}:
            self.module.block(call.external)
        return self.emit(self.call("void", call.external, *operands))
