"""What takes more than one LLVM instruction: conversions, and functions that operations call.

Stands on nothing: it is LLVM assembly with holes for types. The operations of one instruction are
in scalars.py. Chapter 24.
In JAX: xla/service/elemental_ir_emitter and MLIR's arith-to-LLVM lowering play this role.
"""

import re

# To a narrower and to a wider type of the same kind; integers with and without a sign are one.
CHANGES = {"f": ("fptrunc", "fpext"), "i": ("trunc", "sext"), "u": ("trunc", "zext")}

# By kind of the operand and of the result: {s} → {t}.
CONVERSIONS: dict[str, str] = {
    "b→i": "zext i1 {x} to {t}", "b→u": "zext i1 {x} to {t}", "b→f": "uitofp i1 {x} to {t}",
    "i→b": "icmp ne {s} {x}, 0", "u→b": "icmp ne {s} {x}, 0", "f→b": "fcmp une {s} {x}, 0.0",
    "i→f": "sitofp {s} {x} to {t}", "u→f": "uitofp {s} {x} to {t}",
    "f→i": "call {t} @saturated_{s}_fptosi.{t}({s} {x})",
    "f→u": "call {t} @saturated_{s}_fptoui.{t}({s} {x})",
}

FUNCTIONS: dict[str, str] = {}


def _function(signature: str, body: str) -> None:
    """A function that is always inlined, and returns what its last line defines.

    Dead guards (a constant divisor or shift) then fold away. {t} is the type, {bits} its width; a
    conversion from a float of type {s} has the integer's limits {least} and {most}, and as floats
    {low} and {beyond}.
    """
    result, last = signature.split()[0], body.split("\n")[-1].split()[0]
    name = re.split(r"@|_\{|\.|\(", signature)[1]
    FUNCTIONS[name] = (f"define internal {signature} alwaysinline "
                       f"{{{{{body}\n  ret {result} {last}\n}}}}")


# Both are undefined for sdiv: x / 0, and MIN / -1, which is why -1 never divides.
_SAFE_DIVISOR = """
  %zero = icmp eq {t} %y, 0
  %minus_one = icmp eq {t} %y, -1
  %unsafe = or i1 %zero, %minus_one
  %divisor = select i1 %unsafe, {t} 1, {t} %y"""
_SAFE_UNSIGNED = """
  %zero = icmp eq {t} %y, 0
  %divisor = select i1 %zero, {t} 1, {t} %y"""

# Processors divide vectors of floats, and none of integers. In float64 a quotient of integers of 32
# bits is so far from the next integer that it may be cut off at its point.
_QUOTIENTS = {"": "\n  %quotient = {s}div {t} %x, %divisor", "_by_floats": """
  %above = {s}itofp {t} %x to double
  %below = {s}itofp {t} %divisor to double
  %ratio = fdiv double %above, %below
  %quotient = fpto{s}i double %ratio to {t}"""}
for _how, _quotient in _QUOTIENTS.items():
    _signed, _unsigned = (_quotient.replace("{s}", _s) for _s in "su")
    _remainder = """
  %part = mul {t} %quotient, %divisor
  %remainder = sub {t} %x, %part"""
    # x / 0 is all ones; MIN / -1 wraps to MIN.
    _function("{t} @div_signed" + _how + ".{t}({t} %x, {t} %y)", _SAFE_DIVISOR + _signed + """
  %negated = sub {t} 0, %x
  %result = select i1 %minus_one, {t} %negated, {t} %quotient
  %guarded = select i1 %zero, {t} -1, {t} %result""")
    _function("{t} @div_unsigned" + _how + ".{t}({t} %x, {t} %y)", _SAFE_UNSIGNED + _unsigned + """
  %guarded = select i1 %zero, {t} -1, {t} %quotient""")
    # x % 0 is x; x % -1 is 0, also for MIN.
    _function("{t} @rem_signed" + _how + ".{t}({t} %x, {t} %y)", _SAFE_DIVISOR + _signed
              + _remainder + """
  %guarded = select i1 %zero, {t} %x, {t} %remainder""")
    _function("{t} @rem_unsigned" + _how + ".{t}({t} %x, {t} %y)", _SAFE_UNSIGNED + _unsigned
              + _remainder + """
  %guarded = select i1 %zero, {t} %x, {t} %remainder""")
# A shift by the width or more is undefined in LLVM; here it shifts everything out.
for _name, _instruction in (("shl", "shl"), ("shr_logical", "lshr")):
    _function(f"{{t}} @{_name}.{{t}}({{t}} %x, {{t}} %y)", f"""
  %inside = icmp ult {{t}} %y, {{bits}}
  %shifted = {_instruction} {{t}} %x, %y
  %guarded = select i1 %inside, {{t}} %shifted, {{t}} 0""")
_function("{t} @shr_arithmetic.{t}({t} %x, {t} %y)", """
  %inside = icmp ult {t} %y, {bits}
  %last = sub {t} {bits}, 1
  %by = select i1 %inside, {t} %y, {t} %last
  %shifted = ashr {t} %x, %by""")
# What does not fit is poison for fptosi, and then not selected: x saturates, nan gives 0.
# (LLVM has llvm.fptosi.sat for this, which keeps a loop from using vector instructions.)
_function("{t} @saturated_{s}_{convert}.{t}({s} %x)", """
  %inside = {convert} {s} %x to {t}
  %is_small = fcmp olt {s} %x, {low}
  %is_large = fcmp oge {s} %x, {beyond}
  %is_nan = fcmp uno {s} %x, %x
  %above = select i1 %is_small, {t} {least}, {t} %inside
  %limited = select i1 %is_large, {t} {most}, {t} %above
  %result = select i1 %is_nan, {t} 0, {t} %limited""")
# bfloat16 is the upper half of a float32. Rounding to nearest even: add 0x7fff, and one more
# where the kept part is odd. A nan must not round up to infinity: it gets a quiet bit instead.
_function("float @bfloat16_to_float32(i16 %x)", """
  %low = zext i16 %x to i32
  %bits = shl i32 %low, 16
  %value = bitcast i32 %bits to float""")
_function("i16 @float32_to_bfloat16(float %x)", """
  %bits = bitcast float %x to i32
  %kept = lshr i32 %bits, 16
  %odd = and i32 %kept, 1
  %half = add i32 %odd, 32767
  %sum = add i32 %bits, %half
  %number = lshr i32 %sum, 16
  %quiet = or i32 %kept, 64
  %is_nan = fcmp uno float %x, %x
  %result = select i1 %is_nan, i32 %quiet, i32 %number
  %stored = trunc i32 %result to i16""")
# LLVM has float16 as `half`: on all but very old processors a conversion is one instruction.
_function("float @float16_to_float32(i16 %x)", """
  %half = bitcast i16 %x to half
  %value = fpext half %half to float""")
_function("i16 @float32_to_float16(float %x)", """
  %half = fptrunc float %x to half
  %bits = bitcast half %half to i16""")

# What LLVM may know of an elementary function.
PURE = "noinline nounwind willreturn memory(none)"


def one_of_many(name: str, vector: str, count: int, t: str, lanes: int) -> str:
    """A function of `count` numbers that calls the one of vectors with vectors full of them.

    Were it internal, LLVM would drop a parameter that is the same number everywhere: then it would
    no longer go with the one of vectors.
    """
    v, numbers = f"<{lanes} x {t}>", range(count)
    return "\n".join([
        f"define hidden {t} {name}({', '.join(f'{t} %x{k}' for k in numbers)}) {PURE} {{",
        *(f"  %one{k} = insertelement {v} poison, {t} %x{k}, i64 0\n"
          f"  %all{k} = shufflevector {v} %one{k}, {v} poison, <{lanes} x i32> zeroinitializer"
          for k in numbers),
        f"  %results = call {v} {vector}({', '.join(f'{v} %all{k}' for k in numbers)})",
        f"  %result = extractelement {v} %results, i64 0", f"  ret {t} %result", "}"])
