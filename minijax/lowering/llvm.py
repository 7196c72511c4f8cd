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
from .interrupts import Questions, sites, turns_between
from .loops import (
    BOOL, INT64, Address, Assign, Buffer, Call, Check, Constant, Declare, For, If, Index, Kernel,
    Let, Load, Operand, Read, Scalar, Statement, Store, Variable, While, touched, walk,
)
from .memory import ALIGNMENT, round_up
from .metadata import Aliases, Metadata
from .outlined import Outlined, outlined_loops
from .routines import ALONE, LENGTHS, block, is_library_call
from .scalars import OPS, kind_of
from .segments import in_segments
from .stretches import LONG, stretches
from .tables import Entry, Table, calls_of, table_of, with_tables
from .vectors import Function, called_in, calls, function, lanes_of, of_vectors

MANGLED = {"float": "f32", "double": "f64"}  # in the names of LLVM's overloaded intrinsics
SYMBOL = "kernel"
ASKING = "minijax_ask"  # what the functions ask that no threads share
# What Python calls is given a list of NumPy arrays. Both have a header, and then, in C's public
# layout, a list its length and the address of its items, an array the address of its elements.
HEADER, WORD = object.__basicsize__, 8
MANY_ARRAYS = 16  # of which no function holds the instructions for each
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
# Turns: a loop of FEW and more LLVM would write out before it looked for vectors; one of more than
# SHORT also after that, which takes time and helps none but sums, of which MANY is enough.
FEW, MANY, SHORT = 9, 99, 256
ABREAST = 64  # bytes of terms that a sum takes side by side, and as many again
# What LLVM is told of a loop: not to write it out turn by turn; this only until it has vectors; to
# have one vector of turns at a time, or none. Of a function: PURE.
WHOLE = '!"llvm.loop.unroll.disable"'
ONE_VECTOR = '!"llvm.loop.interleave.count", i32 1'
NO_LONGER = '!"llvm.loop.vectorize.followup_vectorized", !{!"llvm.loop.isvectorized", i32 1}'
NO_VECTOR = '!"llvm.loop.vectorize.enable", i1 false'
PURE = "noinline nounwind willreturn memory(none)"
# `halves` of vectors, as LLVM knows it from the processor's one instruction. It stands where it is
# called once loops are vectors: written out in a loop of scalars LLVM would take it for two.
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
    return ModuleText(replace(kernel, body=in_segments(kernel.body))).text()


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
    """A literal operand; a float or double is the bits of the double of the same value."""
    kind, value = kind_of(constant.dtype), constant.value
    if kind == "f":
        return "0x" + struct.pack(">d", value).hex().upper()
    return str(int(value.view(f"u{value.itemsize}") if kind == "n" else value))


def _passed_as(x: Operand | Variable | Buffer | Address) -> str:
    """The type of what stands for a thing: operands are values, the others are in memory."""
    return llvm_type(x.dtype) if isinstance(x, Scalar | Constant) else "ptr"


def taking(of: str, x: str, count: int) -> str:
    """So many parameters or arguments of a type, which are called x."""
    return "(" + ", ".join(f"{of} %{x}{k}" for k in range(count)) + ")"


def abreast(loop: For) -> list[str]:
    """What is said of a long sum where vectors are short: as many terms abreast as elsewhere, since
    the more terms come one after another, the more often a number is rounded.
    """
    widest = max((each.value.dtype.itemsize for each in loop.body if isinstance(each, Assign)),
                 default=ABREAST)
    width = ABREAST // widest
    if loop.vectorize != "reduce" or (loop.turns or 0) < 2 * width or vector_registers()[1] >= 32:
        return []
    return [f'!"llvm.loop.vectorize.width", i32 {width}', '!"llvm.loop.interleave.count", i32 2']


class ModuleText:
    """Prints one kernel: its own function, the loops that are functions, the helpers they call."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.outlined = outlined_loops(kernel)
        self.printed: dict[str, str] = {}  # the texts of those loops → their names
        self.known: dict[tuple[For, str], str] = {}  # a loop, how it asks → the name
        self.saying: set[str] = set()  # those that say whether they were interrupted
        self.functions: dict[str, str] = {}
        self.called = called_in(kernel.body)
        self.lanes = lanes_of(self.called)
        self.metadata = Metadata()
        self.sites = sites(kernel)
        self.most = 0  # things that a call in a table takes

    def printer(self, buffers: Collection[Buffer], lanes: int = 0) -> "FunctionText":
        """What prints one function."""
        return FunctionText(self, buffers, lanes)

    def text(self) -> str:
        """The whole: helpers that were used, the function, its metadata."""
        bodies = stretches(with_tables(self.kernel.body, self.entry), LONG)
        names = [f"i32 @{SYMBOL}", *(f"i32 @stretch.{k}" for k in range(1, len(bodies))), ""]
        stretched = [*map(self.stretch, names, bodies, names[1:])]
        return "\n".join([*self.functions.values(), *stretched, *self.metadata.lines]) + "\n"

    def stretch(self, name: str, body: Sequence[Statement], following: str) -> str:
        """A part of the kernel, which gives what the rest of it does."""
        wanted = dict.fromkeys(x for each in walk(body) for x in touched(each))
        inner = self.printer(wanted)
        inner.point_at_buffers(self.kernel, wanted)
        inner.questions = Questions(inner, ASKING)
        inner.body(body)
        if following:
            inner.emit(f"%status = tail call {following}(ptr %list)")
        status = "i32 %status" if following else "i32 0"
        return inner.text(f"{name}(ptr noundef %list) noinline", status)

    def entry(self, statement: Statement) -> Entry | None:
        """What stands for a loop in a table, if it is a function of buffers that always ends."""
        how = self.outlined.get(statement) if isinstance(statement, For) else None
        buffers = tuple(x for x in how.taken if isinstance(x, Buffer)) if how else ()
        if not how or how.blocks or not buffers or len(buffers) < len(how.taken):
            return None
        name = self.function(statement, ASKING)  # type: ignore[arg-type]
        return None if name in self.saying else Entry(statement, name, buffers)

    def table(self, table: Table) -> str:
        """A call of what makes the calls of a table."""
        self.most = max(self.most, *(len(call.taken) for call in table.calls))
        name = f"@table.{sum(x.startswith('@table') for x in self.functions) + 1}"
        self.functions[name] = f"{name} = internal constant {table_of(table, self.kernel)}"
        self.functions["@calls"] = calls_of(self.kernel, self.most)
        return f"call void @calls(ptr %list, ptr {name})"

    def function(self, loop: For, ask: str) -> str:
        """The name of the function that a loop is, which asks for signals by this name."""
        first = self.outlined[loop].first or loop
        if (first, ask) not in self.known:
            self.known[first, ask] = self.printed_function(first, self.outlined[first], ask)
        return self.known[first, ask]

    def printed_function(self, loop: For, how: Outlined, ask: str) -> str:
        """Its name, that of another where the texts are equal."""
        inner = self.printer([x for x in (*how.taken, *how.private) if isinstance(x, Buffer)])
        inner.questions = Questions(inner, ask)
        inner.is_outlined, inner.is_shared = True, bool(how.blocks)
        for position, thing in enumerate(how.taken):
            inner.names[thing] = inner.found("%frame", WORD * position, _passed_as(thing))
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
        """The names of an elementary function of one number, and of vectors of them.

        That of one number computes zeros beside it. Were it internal, LLVM would drop a parameter
        that is the same number everywhere: then it would no longer go with the other.
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
        """Define a function of numbers by that of vectors, with zeros beside them."""
        v = f"<{lanes} x {t}>"
        self.functions[name] = "\n".join([
            f"define hidden {t} {name}{taking(t, 'x', count)} {PURE} {{",
            *(f"  %all{k} = insertelement {v} zeroinitializer, {t} %x{k}, i64 0"
              for k in range(count)),
            f"  %results = call {v} {vector}{taking(v, 'all', count)}",
            f"  %result = extractelement {v} %results, i64 0", f"  ret {t} %result", "}"])

    def halves(self, dtype: np.dtype, lanes: int) -> tuple[str, str]:
        """The names of the operation `halves` as a function of numbers, and of vectors."""
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
        """Define what gives a block of a product."""
        taken, sums, body = block(name)
        buffers = [x for x in (*taken, *sums) if isinstance(x, Buffer)]
        inner = self.printer(buffers, sums[0].size)
        inner.names |= {x: f"%given.{k}" for k, x in enumerate(taken)}
        inner.make_room(sums)
        inner.body(body)
        given = ", ".join(map(inner.typed, taken))
        self.functions[name] = inner.text(f"internal void @{name}({given}) noinline optsize")


class _Instructions(Arithmetic):
    """Writes the formulas of instructions.py."""

    in_vectors = False

    def plain(self, instruction: str, args: tuple[Operand, ...], dtype: Any) -> Operand:
        """An instruction as it is, in place of an operation."""
        target = self._define(np.dtype(dtype), 0)
        self._put(0, Let(target, instruction, args), target, target)
        return target


class FunctionText:
    """Prints one function. `lines` is its body so far.

    A frame has a slot of eight bytes for each thing that is given, an address or a scalar. Names
    are numbers in order of their use: equal loops give equal text.
    """

    def __init__(self, module: ModuleText, buffers: Collection[Buffer], lanes: int = 0) -> None:
        self.module, self.lanes = module, lanes
        self.aliases = Aliases(module.metadata, buffers, module.kernel.offsets)
        self.entry: list[str] = []
        self.lines: list[str] = []
        self.names: dict[Operand | Variable | Buffer, str] = {}
        self.numbers = count()
        self.parallel: tuple[str, ...] = ()
        self.joined: set[Operand] = set()  # what a reduction assigns, in any order
        self.questions: Questions | None = None  # those of long loops, where there are any
        self.is_outlined = self.is_shared = self.leaves = False
        self.memory = ""  # which is given back at the end
        self.alone = 0  # how often the library was told to use one thread
        # The loops around whose turns come in order, and how many they have made.
        self.around: list[tuple[Statement, str]] = []

    def text(self, signature: str, result: str = "void") -> str:
        """What has been printed, as a function that gives a result."""
        return "\n".join([f"define {signature} nounwind {{", "entry:", *self.entry,
                          "  br label %start", "start:", *self.lines, f"  ret {result}", "}"])

    def emit(self, instruction: str) -> None:
        """Append an instruction to the current block."""
        self.lines.append("  " + instruction)

    def begin(self, label: str) -> None:
        """Start a block."""
        self.lines.append(f"{label}:")

    def fresh(self, stem: str) -> str:
        """A number for a label or a helper name, so that it is unique in the function."""
        return f"{stem}.{next(self.numbers)}"

    def value(self, x: Operand | Variable | Buffer | Address) -> str:
        """How a thing is written where its type is known."""
        if isinstance(x, Address):
            return self.address(x.buffer, x.index)
        return _literal(x) if isinstance(x, Constant) else self.names[x]

    def typed(self, x: Operand | Variable | Buffer | Address) -> str:
        """A thing with its type before it."""
        return f"{_passed_as(x)} {self.value(x)}"

    def point_at_buffers(self, kernel: Kernel, wanted: Collection[Buffer]) -> None:
        """Load a buffer's address once; temps lie in the workspace, the last pointer."""
        passed = kernel.inputs + kernel.outputs + kernel.constants
        how = "noinline" if len(passed) > MANY_ARRAYS else "alwaysinline"
        self.module.functions["array"] = ARRAY.replace("HOW", how)
        array = lambda position: self.at_entry(f"call ptr @array(ptr %list, i64 {position})")
        self.names |= {buffer: array(position)
                       for position, buffer in enumerate(passed) if buffer in wanted}
        temps = {temp: offset for temp, offset in kernel.offsets.items() if temp in wanted}
        if temps:
            self.place_temps(array(len(passed)), temps)

    def found(self, memory: str, offset: int, t: str = "ptr") -> str:
        """What stands so many bytes behind an address, loaded once."""
        place = self.at_entry(f"getelementptr inbounds i8, ptr {memory}, i64 {offset}")
        return self.at_entry(f"load {t}, ptr {place}")

    def place_temps(self, memory: str, offsets: Mapping[Buffer, int]) -> None:
        """Temps lie at their offsets in memory, from where its first cache line begins."""
        last = self.at_entry(f"getelementptr inbounds i8, ptr {memory}, i64 {ALIGNMENT - 1}")
        aligned = self.at_entry(f"call ptr @llvm.ptrmask.p0.i64(ptr {last}, i64 {-ALIGNMENT})")
        for temp, offset in offsets.items():
            place = f"getelementptr inbounds i8, ptr {aligned}, i64 {offset}"
            self.names[temp] = self.at_entry(place)

    def make_room(self, buffers: Iterable[Buffer]) -> None:
        """Place buffers in the memory of a call."""
        for x in buffers:
            room = f"alloca [{x.size} x {llvm_type(x.dtype)}], align {ALIGNMENT}"
            self.names[x] = self.at_entry(room)

    def at_entry(self, expression: str) -> str:
        """The name of a value that is computed once, when the function begins."""
        name = self.fresh("%once")
        self.entry.append(f"  {name} = {expression}")
        return name

    def body(self, statements: Iterable[Statement]) -> None:
        """Print statements; each kind of statement has its method below."""
        for statement in statements:
            getattr(self, "print_" + type(statement).__name__.lower())(statement)

    # Scalars

    def define(self, target: Scalar, expression: str) -> None:
        """Give the target a value."""
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
        """An operation as several."""
        b = _Instructions()
        b.in_vectors = bool(self.parallel)
        target = [let.target.dtype] if OPS[let.op].result == "target" else []
        result = formula(*(Number(b, x) for x in let.args), *target)
        self.body(b.scopes[0].statements)
        self.names[let.target] = self.value(result.value)

    def elementary(self, let: Let, f: Function) -> None:
        """A function written here, or a call of it; of that of vectors, where LLVM makes some."""
        if f in self.module.called:
            return self.call_of_vectors(let, *self.module.function_of(f), self.module.lanes)
        self.names.update(zip(f.parameters, map(self.value, let.args), strict=True))
        self.body(f.body)
        self.names[let.target] = self.value(f.result)

    def call_of_vectors(self, let: Let, name: str, vector: str, lanes: int) -> None:
        """A call of a function, for which LLVM may take that of vectors."""
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
        """The type of the addresses in a buffer."""
        return "ptr"

    def place(self, x: Load | Store) -> str:
        """Where an element is, and what LLVM may know of that."""
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
        """The turns of a loop from start to stop, with questions between those of a long one."""
        size = turns_between(loop, count) if self.questions else 0
        if self.questions and size:
            self.questions.strips(loop, start, stop, size)
        else:
            self.some_turns(loop, start, stop)

    def some_turns(self, loop: For, start: Operand, stop: Operand) -> None:
        """The turns of a loop from start to stop. If functions are called, those turns come first
        that fill vectors: LLVM would write the others out, with a call for each element.
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
        """A loop from start to stop as one whose index is a variable."""
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
        self.as_long_as(While(
            (Read(loop.index, variable), Let(again, "lt", (loop.index, stop))), again,
            (*loop.body, Let(following, "add nuw nsw {s} {x}, {y}", (loop.index, one)),
             Assign(variable, following))), facts)
        self.parallel = before
        del self.around[len(self.around) - (not loop.vectorize):]

    def own(self, temps: Sequence[Buffer]) -> None:
        """Memory for the temps that each thread has for itself; stacks may be very small."""
        if not temps:
            return
        *starts, size = accumulate((round_up(max(x.nbytes, 1)) for x in temps), initial=0)
        memory = self.call("noalias ptr", "PyMem_RawMalloc", f"i64 {size + ALIGNMENT}")
        self.memory = self.at_entry(memory)
        self.place_temps(self.memory, dict(zip(temps, starts, strict=True)))

    def free(self) -> None:
        """Give that memory back."""
        if self.memory:
            self.emit(self.call("void", "PyMem_RawFree", f"ptr {self.memory}"))

    def outline(self, loop: For, how: Outlined) -> None:
        """A loop that is a function of a frame with what it takes, and of a block's number."""
        ask = "minijax_ask_sharing" if how.blocks or not self.questions else self.questions.name
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

    def frame(self, given: Sequence[str]) -> list[str]:
        """The addresses of things that are now in memory, a word each, one behind the other."""
        frame = self.at_entry(f"alloca [{len(given)} x i64]")
        words = [f"getelementptr inbounds i64, ptr {frame}, i64 {k}" for k in range(1, len(given))]
        places = [f"ptr {place}" for place in (frame, *map(self.at_entry, words))]
        for thing, place in zip(given, places, strict=False):
            self.emit(f"store {thing}, {place}")
        return places

    def call(self, result: str, name: str, *given: str) -> str:
        """A call of a function, which this declares if it is defined elsewhere."""
        types = ", ".join(thing.split()[0] for thing in given)
        self.module.functions.setdefault(name, f"declare {result} @{name}({types})")
        return f"call {result} @{name}({', '.join(given)})"

    def print_table(self, table: Table) -> None:
        self.emit(self.module.table(table))

    def print_while(self, loop: While) -> None:
        counter = self.at_entry("alloca i64") if self.questions else ""
        if counter:
            self.emit(f"store i64 0, ptr {counter}")
        self.around += [(loop, counter)] * bool(counter)
        self.as_long_as(loop, counter=counter)
        del self.around[len(self.around) - bool(counter):]

    def as_long_as(self, loop: While, facts: Sequence[str] = (), counter: str = "") -> None:
        """A loop, with questions if its turns are counted."""
        label = self.fresh("while")
        self.emit(f"br label %{label}")
        self.begin(label)
        self.body(loop.condition)
        self.emit(f"br i1 {self.value(loop.test)}, label %{label}.body, label %{label}.end")
        self.begin(f"{label}.body")
        self.body(loop.body)
        if self.questions and counter:
            self.questions.spend(loop, counter)
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
        """Leave the function, if a signal's handler has raised; the kernel says in which loop, and
        after how many turns.
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
        """Return from within, and leave things as they were."""
        if self.alone:
            self.emit(self.call("void", ALONE, f"i64 {-self.alone}"))
        self.free()
        self.emit(f"ret {status}")

    def print_call(self, call: Call) -> None:
        given = list(map(self.typed, call.args))
        if call.external == host.CALL:
            function = self.fresh("%function")
            self.emit(f"{function} = load ptr, {given[0]}")
            frame = self.frame(given[1:])[0]
            return self.emit(self.call("void", "minijax_host", f"ptr {function}", frame))
        if call.external == ALONE:
            self.alone += int(call.args[0].value)  # type: ignore[union-attr, arg-type]
        if is_library_call(call.external):
            slots = zip(given, self.frame(given), strict=True)
            given = [*(x if x.startswith("ptr ") else slot for x, slot in slots), *LENGTHS]
        elif call.external not in {ALONE, *self.module.functions}:
            self.module.block(call.external)
        return self.emit(self.call("void", call.external, *given))
