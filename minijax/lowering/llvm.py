"""The loop tree as LLVM assembly: a table from scalar operations to instructions, then one method
for each statement.

Stands on loops.py and library.py; it is text from text, and imports no compiler. Chapter 24.
In JAX this role is played by XLA's IR emitters (xla/service/cpu, xla/service/llvm_ir).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator

import numpy as np

from . import library
from .loops import (
    BOOL, Address, Assign, Buffer, Call, Check, Constant, Declare, Flat, For, If, Index, Kernel,
    Let, Load, Operand, Read, Scalar, Statement, Store, Variable, While,
)
from .scalars import BFLOAT16, kind_of

SYMBOL = "kernel"

# One scalar operation is one instruction. The columns are kinds of dtype ("b" bool, "i" signed,
# "u" unsigned, "f" float, "h" 16-bit float); {t} is the LLVM type, {x} {y} {z} are the operands,
# {flags} is empty or "reassoc ". A name with no "llvm." is one of FUNCTIONS below.
INSTRUCTIONS: dict[str, dict[str, str]] = {
    "add": {"iu": "add {t} {x}, {y}", "f": "fadd {flags}{t} {x}, {y}"},
    "sub": {"iu": "sub {t} {x}, {y}", "f": "fsub {t} {x}, {y}"},
    "mul": {"iu": "mul {t} {x}, {y}", "f": "fmul {flags}{t} {x}, {y}"},
    "neg": {"iu": "sub {t} 0, {x}", "f": "fneg {t} {x}"},
    "div": {"i": "call {t} @div_signed.{t}({t} {x}, {t} {y})",
            "u": "call {t} @div_unsigned.{t}({t} {x}, {t} {y})", "f": "fdiv {t} {x}, {y}"},
    "rem": {"i": "call {t} @rem_signed.{t}({t} {x}, {t} {y})",
            "u": "call {t} @rem_unsigned.{t}({t} {x}, {t} {y})", "f": "frem {t} {x}, {y}"},
    "fma": {"f": "call {t} @llvm.fma.{m}({t} {x}, {t} {y}, {t} {z})"},
    "min": {"i": "call {t} @llvm.smin.{m}({t} {x}, {t} {y})",
            "u": "call {t} @llvm.umin.{m}({t} {x}, {t} {y})",
            "f": "call {t} @llvm.minimum.{m}({t} {x}, {t} {y})"},
    "max": {"i": "call {t} @llvm.smax.{m}({t} {x}, {t} {y})",
            "u": "call {t} @llvm.umax.{m}({t} {x}, {t} {y})",
            "f": "call {t} @llvm.maximum.{m}({t} {x}, {t} {y})"},
    "abs": {"i": "call {t} @llvm.abs.{m}({t} {x}, i1 false)", "u": "{x}",
            "f": "call {t} @llvm.fabs.{m}({t} {x})"},
    "sqrt": {"f": "call {t} @llvm.sqrt.{m}({t} {x})"},
    "floor": {"f": "call {t} @llvm.floor.{m}({t} {x})"},
    "ceil": {"f": "call {t} @llvm.ceil.{m}({t} {x})"},
    "trunc": {"f": "call {t} @llvm.trunc.{m}({t} {x})"},
    "round_even": {"f": "call {t} @llvm.roundeven.{m}({t} {x})"},
    "copysign": {"f": "call {t} @llvm.copysign.{m}({t} {x}, {t} {y})"},
    "and": {"biu": "and {t} {x}, {y}"},
    "or": {"biu": "or {t} {x}, {y}"},
    "xor": {"biu": "xor {t} {x}, {y}"},
    "not": {"biu": "xor {t} {x}, -1"},
    "shl": {"iu": "call {t} @shl.{t}({t} {x}, {t} {y})"},
    "shr_logical": {"iu": "call {t} @shr_logical.{t}({t} {x}, {t} {y})"},
    "shr_arithmetic": {"iu": "call {t} @shr_arithmetic.{t}({t} {x}, {t} {y})"},
    "eq": {"biu": "icmp eq {t} {x}, {y}", "f": "fcmp oeq {t} {x}, {y}"},
    "ne": {"biu": "icmp ne {t} {x}, {y}", "f": "fcmp une {t} {x}, {y}"},
    "lt": {"i": "icmp slt {t} {x}, {y}", "bu": "icmp ult {t} {x}, {y}",
           "f": "fcmp olt {t} {x}, {y}"},
    "le": {"i": "icmp sle {t} {x}, {y}", "bu": "icmp ule {t} {x}, {y}",
           "f": "fcmp ole {t} {x}, {y}"},
    "gt": {"i": "icmp sgt {t} {x}, {y}", "bu": "icmp ugt {t} {x}, {y}",
           "f": "fcmp ogt {t} {x}, {y}"},
    "ge": {"i": "icmp sge {t} {x}, {y}", "bu": "icmp uge {t} {x}, {y}",
           "f": "fcmp oge {t} {x}, {y}"},
    "select": {"biufh": "select i1 {x}, {t} {y}, {t} {z}"},
}

# Conversions, by kind of the operand and of the result: {s} → {t}. Where the width of integers or
# floats decides, the template is chosen in `_convert`.
CONVERSIONS: dict[str, str] = {
    "b→i": "zext i1 {x} to {t}", "b→u": "zext i1 {x} to {t}", "b→f": "uitofp i1 {x} to {t}",
    "i→b": "icmp ne {s} {x}, 0", "u→b": "icmp ne {s} {x}, 0", "f→b": "fcmp une {s} {x}, 0.0",
    "i→f": "sitofp {s} {x} to {t}", "u→f": "uitofp {s} {x} to {t}",
    "f→i": "call {t} @llvm.fptosi.sat.{m}.{n}({s} {x})",
    "f→u": "call {t} @llvm.fptoui.sat.{m}.{n}({s} {x})",
}

# What takes more than one instruction, as functions that are always inlined; dead guards (a
# constant divisor or shift) then fold away. {t} is the type, {bits} its width.
FUNCTIONS: dict[str, str] = {
    # x / 0 is all ones; MIN / -1 wraps to MIN: both are undefined for sdiv, so -1 negates instead.
    "div_signed": """
define internal {t} @div_signed.{t}({t} %x, {t} %y) alwaysinline {{
  %zero = icmp eq {t} %y, 0
  %minus_one = icmp eq {t} %y, -1
  %unsafe = or i1 %zero, %minus_one
  %divisor = select i1 %unsafe, {t} 1, {t} %y
  %quotient = sdiv {t} %x, %divisor
  %negated = sub {t} 0, %x
  %result = select i1 %minus_one, {t} %negated, {t} %quotient
  %guarded = select i1 %zero, {t} -1, {t} %result
  ret {t} %guarded
}}""",
    "div_unsigned": """
define internal {t} @div_unsigned.{t}({t} %x, {t} %y) alwaysinline {{
  %zero = icmp eq {t} %y, 0
  %divisor = select i1 %zero, {t} 1, {t} %y
  %quotient = udiv {t} %x, %divisor
  %guarded = select i1 %zero, {t} -1, {t} %quotient
  ret {t} %guarded
}}""",
    # x % 0 is x; x % -1 is 0, also for MIN.
    "rem_signed": """
define internal {t} @rem_signed.{t}({t} %x, {t} %y) alwaysinline {{
  %zero = icmp eq {t} %y, 0
  %minus_one = icmp eq {t} %y, -1
  %unsafe = or i1 %zero, %minus_one
  %divisor = select i1 %unsafe, {t} 1, {t} %y
  %remainder = srem {t} %x, %divisor
  %guarded = select i1 %zero, {t} %x, {t} %remainder
  ret {t} %guarded
}}""",
    "rem_unsigned": """
define internal {t} @rem_unsigned.{t}({t} %x, {t} %y) alwaysinline {{
  %zero = icmp eq {t} %y, 0
  %divisor = select i1 %zero, {t} 1, {t} %y
  %remainder = urem {t} %x, %divisor
  %guarded = select i1 %zero, {t} %x, {t} %remainder
  ret {t} %guarded
}}""",
    # A shift by the width or more is undefined in LLVM; here it shifts everything out.
    "shl": """
define internal {t} @shl.{t}({t} %x, {t} %y) alwaysinline {{
  %inside = icmp ult {t} %y, {bits}
  %shifted = shl {t} %x, %y
  %guarded = select i1 %inside, {t} %shifted, {t} 0
  ret {t} %guarded
}}""",
    "shr_logical": """
define internal {t} @shr_logical.{t}({t} %x, {t} %y) alwaysinline {{
  %inside = icmp ult {t} %y, {bits}
  %shifted = lshr {t} %x, %y
  %guarded = select i1 %inside, {t} %shifted, {t} 0
  ret {t} %guarded
}}""",
    "shr_arithmetic": """
define internal {t} @shr_arithmetic.{t}({t} %x, {t} %y) alwaysinline {{
  %inside = icmp ult {t} %y, {bits}
  %last = sub {t} {bits}, 1
  %by = select i1 %inside, {t} %y, {t} %last
  %shifted = ashr {t} %x, %by
  ret {t} %shifted
}}""",
    # bfloat16 is the upper half of a float32. Rounding to nearest even: add 0x7fff, and one more
    # where the kept part is odd. A nan must not round up to infinity: it gets a quiet bit instead.
    "bfloat16_to_float32": """
define internal float @bfloat16_to_float32(i16 %x) alwaysinline {{
  %low = zext i16 %x to i32
  %bits = shl i32 %low, 16
  %value = bitcast i32 %bits to float
  ret float %value
}}""",
    "float32_to_bfloat16": """
define internal i16 @float32_to_bfloat16(float %x) alwaysinline {{
  %bits = bitcast float %x to i32
  %kept = lshr i32 %bits, 16
  %odd = and i32 %kept, 1
  %half = add i32 %odd, 32767
  %sum = add i32 %bits, %half
  %number = lshr i32 %sum, 16
  %quiet = or i32 %kept, 64
  %is_nan = fcmp uno float %x, %x
  %result = select i1 %is_nan, i32 %quiet, i32 %number
  %stored = trunc i32 %result to i16
  ret i16 %stored
}}""",
    # float16 has 5 bits of exponent: shifted into a float32, the value is too small by 2^112, and
    # one exact multiplication repairs normal and subnormal numbers alike.
    "float16_to_float32": """
define internal float @float16_to_float32(i16 %x) alwaysinline {{
  %wide = zext i16 %x to i32
  %rest = and i32 %wide, 32767
  %sign_bit = and i32 %wide, 32768
  %sign = shl i32 %sign_bit, 16
  %shifted = shl i32 %rest, 13
  %tiny = bitcast i32 %shifted to float
  %value = fmul float %tiny, 0x46F0000000000000
  %finite = bitcast float %value to i32
  %infinite = or i32 %shifted, 2139095040
  %is_infinite = icmp uge i32 %rest, 31744
  %magnitude = select i1 %is_infinite, i32 %infinite, i32 %finite
  %bits = or i32 %magnitude, %sign
  %result = bitcast i32 %bits to float
  ret float %result
}}""",
    # Normal results round as bfloat16 does; adding 0.5, whose last bit is 2^-24, rounds a
    # subnormal one; from 65520 on it is infinity.
    "float32_to_float16": """
define internal i16 @float32_to_float16(float %x) alwaysinline {{
  %bits = bitcast float %x to i32
  %rest = and i32 %bits, 2147483647
  %sign_shifted = lshr i32 %bits, 16
  %sign = and i32 %sign_shifted, 32768
  %kept = lshr i32 %rest, 13
  %odd = and i32 %kept, 1
  %half = add i32 %odd, 4095
  %sum = add i32 %rest, %half
  %rounded = lshr i32 %sum, 13
  %normal = sub i32 %rounded, 114688
  %magnitude = bitcast i32 %rest to float
  %aligned = fadd float %magnitude, 0.5
  %aligned_bits = bitcast float %aligned to i32
  %subnormal = sub i32 %aligned_bits, 1056964608
  %is_subnormal = icmp ult i32 %rest, 947912704
  %finite = select i1 %is_subnormal, i32 %subnormal, i32 %normal
  %is_large = icmp uge i32 %rest, 1199566848
  %number = select i1 %is_large, i32 31744, i32 %finite
  %payload = and i32 %kept, 1023
  %nan = or i32 %payload, 32256
  %is_nan = fcmp uno float %x, %x
  %result = select i1 %is_nan, i32 %nan, i32 %number
  %signed = or i32 %result, %sign
  %stored = trunc i32 %signed to i16
  ret i16 %stored
}}""",
}

REASSOCIABLE = ("add", "mul")


def assembly(kernel: Kernel) -> str:
    """Return the kernel as one LLVM module that defines `int32 kernel(void** buffers)`.

    Equal kernels give equal text, whatever lines of the user's program they came from: the text is
    what the cache on disk is keyed by.
    """
    return _Printer(kernel).module()


def llvm_type(dtype: np.dtype) -> str:
    """The LLVM type of a scalar in a register; 16-bit floats travel as their bits.

    >>> llvm_type(np.dtype("float32")), llvm_type(np.dtype("uint8")), llvm_type(np.dtype("bool"))
    ('float', 'i8', 'i1')
    """
    match kind_of(dtype):
        case "b":
            return "i1"
        case "f":
            return "float" if dtype.itemsize == 4 else "double"
        case _:
            return f"i{8 * dtype.itemsize}"


def _stored_type(dtype: np.dtype) -> str:
    """The LLVM type of an element in memory: a bool takes a byte."""
    return "i8" if dtype == BOOL else llvm_type(dtype)


def _mangled(dtype: np.dtype) -> str:
    """How the names of LLVM's overloaded intrinsics spell a type."""
    return {"float": "f32", "double": "f64"}.get(llvm_type(dtype), llvm_type(dtype))


def _literal(constant: Constant) -> str:
    """A literal operand; floats are written as the bits of the double of the same value."""
    match kind_of(constant.dtype):
        case "b":
            return "true" if constant.value else "false"
        case "f":
            return "0x" + struct.pack(">d", float(constant.value)).hex().upper()
        case "h":
            return str(int(np.asarray(constant.value).view(np.uint16)))
        case _:
            return str(int(constant.value))


def _name(name: str) -> str:
    """A local name of LLVM; anything but plain letters, digits and dots is quoted."""
    return f"%{name}" if re.fullmatch(r"[A-Za-z_.][\w.]*", name, re.ASCII) else f'%"{name}"'


class _Printer:
    """Prints one kernel. `lines` is the body so far, `block` the label of the block it is in."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.entry: list[str] = []
        self.lines: list[str] = []
        self.block = "start"
        self.names: dict[Scalar | Variable | Buffer, str] = {}
        self.functions: dict[str, str] = {}
        self.counts: dict[str, int] = {}
        self.metadata = _Metadata(kernel)
        self.parallel: tuple[str, ...] = ()
        self.reassociated: set[Let] = set()

    def module(self) -> str:
        """The whole text: helpers that were used, the function, its metadata."""
        self.point_at_buffers()
        self.body(self.kernel.body)
        self.emit("ret i32 0")
        function = [f"define i32 @{SYMBOL}(ptr noundef %buffers) nounwind {{", "entry:",
                    *self.entry, "  br label %start", "start:", *self.lines, "}"]
        parts = [*self.functions.values(), "\n".join(function), *self.metadata.lines]
        return "\n".join(parts) + "\n"

    def emit(self, instruction: str) -> None:
        """Append an instruction to the current block."""
        self.lines.append("  " + instruction)

    def begin(self, label: str) -> None:
        """Start a block."""
        self.lines.append(f"{label}:")
        self.block = label

    def fresh(self, stem: str) -> str:
        """A number for a label or a helper name, so that it is unique in the function."""
        self.counts[stem] = self.counts.get(stem, 0) + 1
        return f"{stem}.{self.counts[stem]}"

    def value(self, operand: Operand) -> str:
        """How an operand is written where its type is known."""
        return _literal(operand) if isinstance(operand, Constant) else self.names[operand]

    def typed(self, operand: Operand) -> str:
        """An operand with its type before it."""
        return f"{llvm_type(operand.dtype)} {self.value(operand)}"

    def point_at_buffers(self) -> None:
        """Load every buffer's address once; temps lie in the workspace, the last pointer."""
        kernel = self.kernel
        passed = kernel.inputs + kernel.outputs + kernel.constants
        for position, buffer in enumerate(passed):
            self.names[buffer] = self.pointer(_name(f"{buffer.name}.data"), position)
        if not kernel.temps:
            return
        workspace = self.pointer("%workspace.data", len(passed))
        for temp in kernel.temps:
            name = self.names[temp] = _name(f"{temp.name}.data")
            offset = kernel.offsets[temp]
            self.entry.append(f"  {name} = getelementptr inbounds i8, ptr {workspace}, i64 {offset}")

    def pointer(self, name: str, position: int) -> str:
        slot = f"%slot.{position}"
        self.entry += [f"  {slot} = getelementptr inbounds ptr, ptr %buffers, i64 {position}",
                       f"  {name} = load ptr, ptr {slot}"]
        return name

    def body(self, statements: Iterable[Statement]) -> None:
        """Print statements; each kind of statement has its method below."""
        for statement in statements:
            getattr(self, "print_" + type(statement).__name__.lower())(statement)

    # Scalars

    def define(self, target: Scalar, expression: str) -> None:
        """Give the target a value: an instruction, or another name for a value that exists."""
        if " " in expression:
            self.names[target] = _name(target.name)
            self.emit(f"{self.names[target]} = {expression}")
        else:
            self.names[target] = expression

    def print_let(self, let: Let) -> None:
        dtype = let.args[-1].dtype
        if let.op in ("convert", "bitcast"):
            change = self.convert if let.op == "convert" else self.bitcast
            return self.define(let.target, change(let.args[0], let.target.dtype))
        kind = kind_of(dtype)
        template = next(t for kinds, t in INSTRUCTIONS[let.op].items() if kind in kinds)
        flags = "reassoc " if let in self.reassociated else ""
        self.define(let.target, self.fill(template, dtype, let.args, flags))

    def fill(self, template: str, dtype: np.dtype, args: tuple[Operand, ...], flags: str) -> str:
        """Write operands and types into a template, and keep the function it calls."""
        t = llvm_type(dtype)
        if match := re.search(r"@(?!llvm\.)(\w+)\.", template):
            self.require(match[1], t, 8 * dtype.itemsize)
        operands = dict(zip("xyz", map(self.value, args), strict=False))
        return template.format(t=t, m=_mangled(dtype), flags=flags, **operands)

    def require(self, function: str, t: str = "", bits: int = 0) -> None:
        """Have the module define one of FUNCTIONS for a type."""
        self.functions[f"{function}.{t}"] = FUNCTIONS[function].format(t=t, bits=bits).lstrip()

    def convert(self, x: Operand, dtype: np.dtype) -> str:
        """An expression for x converted to a dtype."""
        if x.dtype == dtype:
            return self.value(x)
        s, t, given, wanted = llvm_type(x.dtype), llvm_type(dtype), kind_of(x.dtype), kind_of(dtype)
        if "h" in (given, wanted):
            return self.convert_half(x, dtype)
        if wanted == "f" == given:
            change = "fpext" if dtype.itemsize > x.dtype.itemsize else "fptrunc"
        elif wanted in "iu" and given in "iu":
            if dtype.itemsize == x.dtype.itemsize:
                return self.value(x)
            widen = "sext" if given == "i" else "zext"
            change = widen if dtype.itemsize > x.dtype.itemsize else "trunc"
        else:
            template = CONVERSIONS[f"{given}→{wanted}"]
            m, n = _mangled(dtype), _mangled(x.dtype)
            return template.format(s=s, t=t, x=self.value(x), m=m, n=n)
        return f"{change} {s} {self.value(x)} to {t}"

    def convert_half(self, x: Operand, dtype: np.dtype) -> str:
        """A 16-bit float converts from and to float32 only."""
        half, wanted = (x.dtype, "float32") if kind_of(dtype) == "f" else (dtype, "")
        name = "bfloat16" if half == BFLOAT16 else "float16"
        function = f"{name}_to_float32" if wanted else f"float32_to_{name}"
        self.require(function)
        return f"call {llvm_type(dtype)} @{function}({self.typed(x)})"

    def bitcast(self, x: Operand, dtype: np.dtype) -> str:
        """An expression for the bits of x as another dtype."""
        if llvm_type(x.dtype) == llvm_type(dtype):
            return self.value(x)
        return f"bitcast {self.typed(x)} to {llvm_type(dtype)}"

    # Memory

    def address(self, buffer: Buffer, index: Index) -> str:
        """The address of an element."""
        stored, data = _stored_type(buffer.dtype), self.names[buffer]
        if index == ():
            return data
        if isinstance(index, Flat):
            array, positions = stored, [index.position]
        else:
            array, positions = stored, list(index)
            for size in reversed(buffer.shape[1:]):
                array = f"[{size} x {array}]"
        place = _name(self.fresh(f"{buffer.name}.at"))
        steps = ", ".join(map(self.typed, positions))
        self.emit(f"{place} = getelementptr inbounds {array}, ptr {data}, {steps}")
        return place

    def print_load(self, load: Load) -> None:
        place = self.address(load.buffer, load.index)
        notes = self.metadata.access(load.buffer, self.parallel)
        size, target = load.buffer.dtype.itemsize, load.target
        name = self.names[target] = _name(target.name)
        if target.dtype != BOOL:
            return self.emit(f"{name} = load {llvm_type(target.dtype)}, ptr {place}, align {size}{notes}")
        byte = _name(f"{target.name}.byte")
        self.emit(f"{byte} = load i8, ptr {place}, align 1{notes}")
        self.emit(f"{name} = icmp ne i8 {byte}, 0")

    def print_store(self, store: Store) -> None:
        value, size = self.typed(store.value), store.buffer.dtype.itemsize
        if store.value.dtype == BOOL:
            byte = _name(self.fresh("byte"))
            self.emit(f"{byte} = zext {value} to i8")
            value = f"i8 {byte}"
        place = self.address(store.buffer, store.index)
        notes = self.metadata.access(store.buffer, self.parallel)
        self.emit(f"store {value}, ptr {place}, align {size}{notes}")

    def print_declare(self, declare: Declare) -> None:
        name = self.names[declare.variable] = _name(f"{declare.variable.name}.variable")
        self.entry.append(f"  {name} = alloca {llvm_type(declare.variable.dtype)}")
        self.emit(f"store {self.typed(declare.value)}, ptr {name}")

    def print_assign(self, assign: Assign) -> None:
        self.emit(f"store {self.typed(assign.value)}, ptr {self.names[assign.variable]}")

    def print_read(self, read: Read) -> None:
        variable = self.names[read.variable]
        self.define(read.target, f"load {llvm_type(read.target.dtype)}, ptr {variable}")

    # Control flow

    def print_for(self, loop: For) -> None:
        label = self.fresh("for")
        index = self.names[loop.index] = _name(loop.index.name)
        outside, before = self.block, self.parallel
        group = self.metadata.group() if loop.vectorize == "parallel" else ""
        self.parallel = (*before, group) if group else before
        if loop.vectorize == "reduce":
            self.reassociated |= set(_accumulations(loop))
        self.emit(f"br label %{label}")
        self.begin(label)
        start, stop = self.value(loop.start), self.value(loop.stop)
        # The incoming block of the second value is known only after the body: its line comes last.
        at = len(self.lines)
        self.emit(f"%{label}.more = icmp slt i64 {index}, {stop}")
        self.emit(f"br i1 %{label}.more, label %{label}.body, label %{label}.end")
        self.begin(f"{label}.body")
        self.body(loop.body)
        self.emit(f"%{label}.next = add nuw nsw i64 {index}, 1")
        self.emit(f"br label %{label}{self.metadata.loop(group)}")
        phi = f"  {index} = phi i64 [ {start}, %{outside} ], [ %{label}.next, %{self.block} ]"
        self.lines.insert(at, phi)
        self.begin(f"{label}.end")
        self.parallel = before

    def print_while(self, loop: While) -> None:
        label = self.fresh("while")
        self.emit(f"br label %{label}")
        self.begin(label)
        self.body(loop.condition)
        self.emit(f"br i1 {self.value(loop.test)}, label %{label}.body, label %{label}.end")
        self.begin(f"{label}.body")
        self.body(loop.body)
        self.emit(f"br label %{label}")
        self.begin(f"{label}.end")

    def print_if(self, branch: If) -> None:
        label = self.fresh("if")
        test = self.value(branch.test)
        self.emit(f"br i1 {test}, label %{label}.then, label %{label}.else")
        for side, statements in (("then", branch.then), ("else", branch.orelse)):
            self.begin(f"{label}.{side}")
            self.body(statements)
            self.emit(f"br label %{label}.end")
        self.begin(f"{label}.end")

    def print_check(self, check: Check) -> None:
        label = self.fresh("check")
        self.emit(f"br i1 {self.value(check.ok)}, label %{label}.passed, label %{label}.failed")
        self.begin(f"{label}.failed")
        self.emit(f"ret i32 {check.code}")
        self.begin(f"{label}.passed")

    def print_call(self, call: Call) -> None:
        external = library.external(call.external)
        self.functions[call.external] = external.definition()
        args = []
        for arg in call.args:
            if isinstance(arg, Buffer):
                args.append(f"ptr {self.names[arg]}")
            elif isinstance(arg, Address):
                args.append(f"ptr {self.address(arg.buffer, arg.index)}")
            else:
                args.append(self.typed(arg))
        self.emit(f"call void @{call.external}({', '.join(args)})")


def _accumulations(loop: For) -> Iterator[Let]:
    """The Lets of `v = v op x` in a loop whose variables may be accumulated in any order."""
    read = {s.target: s.variable for s in loop.body if isinstance(s, Read)}
    assigned = {s.value: s.variable for s in loop.body if isinstance(s, Assign)}
    for let in loop.body:
        if isinstance(let, Let) and let.op in REASSOCIABLE and let.target in assigned:
            variable = assigned[let.target]
            if any(isinstance(x, Scalar) and read.get(x) is variable for x in let.args):
                yield let


class _Metadata:
    """What LLVM may know about memory: which buffers are apart, which loops are parallel."""

    def __init__(self, kernel: Kernel) -> None:
        self.lines: list[str] = []
        self.ids: dict[str, str] = {}
        self.kernel = kernel
        self.scope_of = self.scopes(kernel)
        self.aliases: dict[Buffer, str] = {}

    def add(self, node: str) -> str:
        """Number a node; an equal node is written once (unless it is `distinct`)."""
        if node in self.ids and not node.startswith("distinct"):
            return self.ids[node]
        self.ids[node] = name = f"!{len(self.lines)}"
        self.lines.append(f"{name} = {node}")
        return name

    def scopes(self, kernel: Kernel) -> dict[Buffer, str]:
        """One alias scope per buffer that is written; what is only read shares one."""
        domain = self.add('!{!"buffers"}')
        read_only = self.add(f'!{{!"read only", {domain}}}')
        scopes = dict.fromkeys(kernel.inputs + kernel.constants, read_only)
        for buffer in kernel.outputs + kernel.temps:
            scopes[buffer] = self.add(f'!{{!"{len(scopes)}", {domain}}}')
        return scopes

    def access(self, buffer: Buffer, parallel: tuple[str, ...]) -> str:
        """What stands behind a load or store: where it may be, and in which parallel loops."""
        if buffer not in self.aliases:
            own = self.scope_of[buffer]
            apart = sorted({self.scope_of[other] for other in self.scope_of
                            if self.scope_of[other] != own and not self.overlap(buffer, other)})
            scope = self.add(f"!{{{own}}}")
            self.aliases[buffer] = f", !alias.scope {scope}"
            if apart:
                others = self.add("!{" + ", ".join(apart) + "}")
                self.aliases[buffer] += f", !noalias {others}"
        return self.aliases[buffer] + self.groups(parallel)

    def overlap(self, one: Buffer, other: Buffer) -> bool:
        """Whether two temps share bytes of the workspace; nothing else ever does."""
        if one.role != "temp" or other.role != "temp":
            return one is other
        offsets = self.kernel.offsets
        first, second = sorted((one, other), key=lambda temp: offsets[temp])
        return offsets[second] < offsets[first] + first.nbytes

    def groups(self, parallel: tuple[str, ...]) -> str:
        if not parallel:
            return ""
        group = parallel[0] if len(parallel) == 1 else self.add("!{" + ", ".join(parallel) + "}")
        return f", !llvm.access.group {group}"

    def group(self) -> str:
        """A new group of accesses: those of one parallel loop."""
        return self.add("distinct !{}")

    def loop(self, group: str) -> str:
        """What stands behind the branch that closes a loop whose accesses are independent."""
        if not group:
            return ""
        fact = self.add(f'!{{!"llvm.loop.parallel_accesses", {group}}}')
        identity = f"!{len(self.lines)}"
        return f", !llvm.loop {self.add(f'distinct !{{{identity}, {fact}}}')}"


