"""A machine for PTX in NumPy: it runs the text that LLVM gives us, as NVIDIA's manual has it.

The emulator runs the loop tree, and each operation there is its meaning; here instructions are
theirs, at their ends too: shifts by the width and more, conversions out of range, division by zero,
the last bits of what is approximate. Threads of several blocks run side by side, as arrays; where
they part, those at the least place in the program go on. Races are the emulator's business.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from minijax.compiler.loops import Buffer, Kernel, Launch
from minijax.compiler.scalars import OPS
from minijax.compiler.targets import driver, ptx
from minijax.compiler.targets.emulator import (MAX_THREADS, POISON, RESIDENT, Emulator, Launches,
                                               Refused)
from minijax.compiler.targets.look_back import waits
from minijax.compiler.targets.programs import Memory, Program
from minijax.compiler.targets.thread_block import WARP
from minijax.placement import devices

LOCAL_WINDOW = 1 << 61  # generic addresses from here on are those of local memory
DTYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
          "pred": np.bool_, **{f"{kind}{8 * size}": f"{'i' if kind == 's' else 'u'}{size}"
                               for kind in "usb" for size in (1, 2, 4, 8)}}
# The nans that arithmetic gives: the manual promises the first; the sign of the second is free.
NANS = {"f32": np.uint32(0x7FFFFFFF).view(np.float32),
        "f64": np.uint64(0xFFF8 << 48).view(np.float64)}


def dtype_of(kind: str) -> np.dtype:
    """The NumPy dtype of a type of PTX."""
    return np.dtype(DTYPES[kind])


# -- what each instruction means -------------------------------------------------------------------


class Row(NamedTuple):
    """A family of instructions: types of the result and of the operands, and its meaning."""

    pattern: re.Pattern
    types: Sequence[str]
    meaning: Callable[..., Any]
    processor: int  # the first that has it
    is_arithmetic: bool  # what it computes: a nan has the payload that it likes


ROWS: list[Row] = []


def row(pattern: str, types: str, meaning: Callable[..., Any], processor: int = 50,
        arithmetic: bool = False) -> None:
    """Add a row; {t} is what the pattern calls t, and the meaning is told of the match."""
    ROWS.append(Row(re.compile(pattern), types.split(), meaning, processor, arithmetic))


def undefined(x: Any) -> Any:
    """What nobody may use."""
    return np.frombuffer(bytes([POISON]) * x.dtype.itemsize, x.dtype)[0]


def divided(ufunc: Callable[..., Any]) -> Callable[..., Any]:
    """Integer division, truncated; by zero, and of the least number by -1, it is unspecified."""
    def meaning(m: re.Match, x: Any, y: Any) -> Any:
        wrong = (y == 0) | ((x == np.iinfo(x.dtype).min) & (y == -1) if x.dtype.kind == "i"
                            else False)
        divisor = np.where(wrong, 1, y).astype(x.dtype)
        remainder = np.fmod(x, divisor)
        return np.where(wrong, undefined(x), ufunc(x, divisor, remainder))
    return meaning


def high_product(x: Any, y: Any) -> Any:
    """The upper half of a product."""
    bits = 8 * x.dtype.itemsize
    if bits < 64:
        wide = f"{x.dtype.kind}8"
        return (x.astype(wide) * y.astype(wide) >> bits).astype(x.dtype)
    a, b, low, half = x.view("u8"), y.view("u8"), np.uint64(0xFFFFFFFF), np.uint64(32)
    (ah, al), (bh, bl) = ((each >> half, each & low) for each in (a, b))
    middle = ah * bl + (al * bl >> half)
    high = ah * bh + (middle >> half) + ((middle & low) + al * bh >> half)
    if x.dtype.kind == "i":
        high = high - np.where(x < 0, b, 0) - np.where(y < 0, a, 0)
    return high.view(x.dtype)


def wide_product(x: Any, y: Any) -> Any:
    wide = f"{x.dtype.kind}{2 * x.dtype.itemsize}"
    return x.astype(wide) * y.astype(wide)


def shifted_left(x: Any, count: Any) -> Any:
    """A count of more than the width is the width."""
    bits = 8 * x.dtype.itemsize
    return np.where(count < bits, x << np.minimum(count, bits - 1).astype(x.dtype), 0)


def shifted_right(x: Any, count: Any) -> Any:
    """A count of more than the width is the width: what is left is the sign, or zeros."""
    bits = 8 * x.dtype.itemsize
    shifted = x >> np.minimum(count, bits - 1).astype(x.dtype)
    return shifted if x.dtype.kind == "i" else np.where(count < bits, shifted, 0)


def funnel(m: re.Match, low: Any, high: Any, count: Any) -> Any:
    """A shift of two words, of which one is left."""
    count = count & np.uint32(31) if m["mode"] == "wrap" else np.minimum(count, np.uint32(32))
    both, count = high.astype("u8") << np.uint64(32) | low, count.astype("u8")
    return (both << count >> np.uint64(32) if m["way"] == "l" else both >> count).astype("u4")


def field_of(m: re.Match, x: Any, start: Any, length: Any) -> Any:
    """Some bits of a number, the last repeated where it is signed."""
    bits, start, length = 8 * x.dtype.itemsize, start & 255, length & 255
    up = np.minimum(start + length, bits)  # where it ends
    size = np.maximum(up.astype(int) - start, 0)
    left = shifted_left(x, (bits - up).astype("u4"))
    value = shifted_right(left, (bits - size).astype("u4"))
    if x.dtype.kind == "u":
        return np.where(size > 0, value, 0)
    sign = -(shifted_right(x, np.minimum(start + length - 1, bits - 1)) & 1)
    return np.where(length == 0, 0, np.where(size > 0, value, sign))


def inserted(m: re.Match, x: Any, into: Any, start: Any, length: Any) -> Any:
    """A number with its bits from `start` on replaced by so many of another one."""
    ones = ~shifted_left(~np.zeros_like(x), length & 255)
    mask = shifted_left(ones, start & 255)
    return into & ~mask | shifted_left(x, start & 255) & mask


def permuted(m: re.Match, low: Any, high: Any, choice: Any) -> Any:
    """Four of eight bytes, each chosen by a digit; with its upper bit, the byte's sign."""
    both, result = high.astype("u8") << np.uint64(32) | low, np.zeros_like(choice)
    for k in range(4):
        digit = choice >> np.uint32(4 * k) & 15
        byte = (both >> ((digit & 7) * 8).astype("u8") & np.uint64(255)).astype("u4")
        byte = np.where(digit & 8, np.where(byte & 128, 255, 0), byte).astype("u4")
        result = result | byte << np.uint32(8 * k)
    return result


def product_of_bytes(m: re.Match, x: Any, y: Any, z: Any) -> Any:
    """A number plus the products of the four bytes of two others."""
    x, y = (np.atleast_1d(word).view(dtype_of(f"{m[kind]}8")).reshape(-1, 4).astype("i4")
            for word, kind in ((x, "x"), (y, "y")))
    return z + (x * y).sum(axis=1, dtype="i4").view("u4")


def counted(m: re.Match, x: Any) -> Any:
    """The bits that are set, or the zeros before the first."""
    bits = 8 * x.dtype.itemsize
    if m["op"] == "popc":
        return np.bitwise_count(x).astype("u4")
    for k in (1, 2, 4, 8, 16, 32)[:bits.bit_length() - 1]:
        x = x | x >> x.dtype.type(k)
    return (bits - np.bitwise_count(x).astype("u4")).astype("u4")


def reversed_bits(m: re.Match, x: Any) -> Any:
    bits = np.unpackbits(np.atleast_1d(x).view("u1").reshape(-1, x.dtype.itemsize), axis=1,
                         bitorder="little")
    return np.packbits(bits[:, ::-1], axis=1, bitorder="little").view(x.dtype)[:, 0].reshape(
        x.shape)


def extremum(m: re.Match, x: Any, y: Any) -> Any:
    """Of a nan and a number it is the number, unless it is to be nan; -0 is less than +0."""
    ufunc = np.minimum if m["op"] == "min" else np.maximum
    if x.dtype.kind in "iu":
        return ufunc(x, y)
    result = np.where(x == y, np.where(np.signbit(x) == (m["op"] == "min"), x, y), ufunc(x, y))
    return result if m["nan"] else np.where(np.isnan(x), y, np.where(np.isnan(y), x, result))


COMPARISONS = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
               "gt": np.greater, "ge": np.greater_equal, "lo": np.less, "ls": np.less_equal,
               "hi": np.greater, "hs": np.greater_equal}


def compared(m: re.Match, x: Any, y: Any) -> Any:
    """Of floats "lt" is false where there is a nan, "ltu" true."""
    if x.dtype.kind in "iu":
        return COMPARISONS[m["op"]](x, y)
    either, name = np.isnan(x) | np.isnan(y), m["op"]
    if name in ("num", "nan"):
        return either == (name == "nan")
    if name.endswith("u"):
        return COMPARISONS[name[:-1]](x, y) | either
    return COMPARISONS[name](x, y) & ~either


def truncated_fma(x: Any, y: Any, z: Any) -> Any:
    """x * y + z of float32, rounded toward zero."""
    product = x.astype(np.float64) * y
    total = product + z
    back = total - product
    error = (product - (total - back)) + (z - back)  # total + error is exact
    nearest = total.astype(np.float32)
    rest = np.where(total == nearest, error, total - nearest)
    return np.where(rest * np.sign(nearest) < 0, np.nextafter(nearest, np.float32(0)), nearest)


TESTS = {"infinite": np.isinf, "finite": np.isfinite, "notanumber": np.isnan,
         "number": lambda x: ~np.isnan(x),
         "normal": lambda x: np.isfinite(x) & (np.abs(x) >= np.finfo(x.dtype).tiny),
         "subnormal": lambda x: (x != 0) & (np.abs(x) < np.finfo(x.dtype).tiny)}
ROUNDED = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


def converted(m: re.Match, x: Any) -> Any:
    """Of floats integers hold to their limits; a nan is 0, or 1 << width - 1 where 64 bits are in
    it.
    """
    target, rounding = dtype_of(m["to"]), m["rounding"]
    to_float, of_float = "f" in m["to"], "f" in m["of"]
    if to_float:
        x = ROUNDED[rounding](x) if of_float and rounding in ROUNDED else x
        wide = x.astype(np.float64) if target.itemsize < 4 else x
        result = wide.astype(target)
        if m["sat"]:
            result = np.where(np.isnan(result), 0, np.clip(result, 0, 1)).astype(target)
        return result
    if not of_float:
        return np.clip(x, np.iinfo(target).min, np.iinfo(target).max).astype(target) if (
            m["sat"]) else x.astype(target)
    limits, x = np.iinfo(target), ROUNDED[rounding](x.astype(np.float64))
    above, below = x >= float(limits.max), x <= float(limits.min)
    inside = np.where(above | below | np.isnan(x), 0, x).astype(target)
    large = target.itemsize == 8 or m["of"] == "f64"
    nan = (-1 if target.kind == "i" else 1) << 8 * target.itemsize - 1 if large else 0
    result = np.where(above, limits.max, np.where(below, limits.min, inside)).astype(target)
    return np.where(np.isnan(x), np.array(nan, target), result)


def packed(m: re.Match, high: Any, low: Any) -> Any:
    """Two floats in a short format, in one word."""
    short = [x.astype(dtype_of(m["to"])).view("u2").astype("u4") for x in (high, low)]
    return short[0] << np.uint32(16) | short[1]


def units(count: int) -> Callable[..., Any]:
    """The error of so many units in the last place."""
    return lambda y, *_: count * np.spacing(np.abs(y))


def relative(bits: float) -> Callable[..., Any]:
    """The error of a share of the result."""
    return lambda y, *_: np.abs(y) * 2.0**-bits


def of_logarithm(y: Any, x: Any) -> Any:
    """Absolute near 1, relative elsewhere."""
    return np.where((x > 0.5) & (x < 2), 2.0**-22, relative(22)(y))


def approximate(error: Callable[..., Any], function: Callable[..., Any]) -> Callable[..., Any]:
    """A function with all the error that the manual allows, this way or that, or none."""
    def meaning(m: re.Match, *operands: Any) -> Any:
        exact = function(*(x.astype(np.float64) for x in operands)).astype(np.float32)
        way = (operands[-1].view("u4") * np.uint32(2654435761) >> np.uint32(16)).astype(int) % 3 - 1
        moved = (exact + way * error(exact, *operands)).astype(np.float32)
        usual = (np.isfinite(exact) & (np.abs(exact) >= np.finfo("f4").tiny) & np.isfinite(moved)
                 & (operands[-1] != 0))
        return np.where(usual, moved, exact)
    return meaning


INT, UINT, BITS = (f"(?P<t>[{kinds}](?:16|32|64))" for kinds in ("us", "u", "b"))
FLOAT = "(?P<ftz>[.]ftz)?[.](?P<t>f32|f64)"
SHORT = "[.](?P<t>f16|bf16)"
_UFUNCS = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "and": np.bitwise_and,
           "or": np.bitwise_or, "xor": np.bitwise_xor}

row(f"(?P<op>add|sub)[.]{INT}", "{t} {t} {t}", lambda m, x, y: _UFUNCS[m["op"]](x, y))
row(f"mul[.]lo[.]{INT}", "{t} {t} {t}", lambda m, x, y: x * y)
row(f"mul[.]hi[.]{INT}", "{t} {t} {t}", lambda m, x, y: high_product(x, y))
row("mul[.]wide[.](?P<t>[us]16)", "b32 {t} {t}", lambda m, x, y: wide_product(x, y))
row("mul[.]wide[.](?P<t>[us]32)", "b64 {t} {t}", lambda m, x, y: wide_product(x, y))
row(f"mad[.]lo[.]{INT}", "{t} {t} {t} {t}", lambda m, x, y, z: x * y + z)
row("mad[.]wide[.](?P<k>[us])32", "{k}64 {k}32 {k}32 {k}64",
    lambda m, x, y, z: wide_product(x, y) + z)
row(f"div[.]{INT}", "{t} {t} {t}", divided(lambda x, y, rest: (x - rest) // y))
row(f"rem[.]{INT}", "{t} {t} {t}", divided(lambda x, y, rest: rest))
row("(?P<op>abs|neg)[.](?P<t>s(?:16|32|64))", "{t} {t}",
    lambda m, x: np.abs(x) if m["op"] == "abs" else np.negative(x))
row("(?P<op>min|max)(?P<nan>x)?[.](?P<t>[us](?:16|32|64))", "{t} {t} {t}", extremum)
row("(?P<op>and|or|xor)[.](?P<t>b16|b32|b64|pred)", "{t} {t} {t}",
    lambda m, x, y: _UFUNCS[m["op"]](x, y))
row("not[.](?P<t>b16|b32|b64|pred)", "{t} {t}", lambda m, x: np.invert(x))
row(f"shl[.]{BITS}", "{t} {t} u32", lambda m, x, y: shifted_left(x, y))
row(f"shr[.]{INT}", "{t} {t} u32", lambda m, x, y: shifted_right(x, y))
row("shf[.](?P<way>[lr])[.](?P<mode>wrap|clamp)[.]b32", "b32 b32 b32 u32", funnel)
row("bfe[.](?P<t>[us](?:32|64))", "{t} {t} u32 u32", field_of)
row("bfi[.](?P<t>b32|b64)", "{t} {t} {t} u32 u32", inserted)
row("dp4a[.](?P<x>[us])32[.](?P<y>[us])32", "b32 b32 b32 b32", product_of_bytes)
row("prmt[.]b32", "b32 b32 b32 b32", permuted)
row("(?P<op>popc|clz)[.](?P<t>b32|b64)", "u32 {t}", counted)
row("brev[.](?P<t>b32|b64)", "{t} {t}", reversed_bits)
row("setp[.](?P<op>eq|ne|lt|le|gt|ge|lo|ls|hi|hs)[.](?P<t>[usb](?:16|32|64))", "pred {t} {t}",
    compared)
row(f"setp[.](?P<op>(?:eq|ne|lt|le|gt|ge)u?|num|nan){FLOAT}", "pred {t} {t}", compared)
row(f"setp[.](?P<op>(?:eq|ne|lt|le|gt|ge)u?|num|nan){SHORT}", "pred {t} {t}", compared, 53)
row("selp[.](?P<t>[usbf](?:16|32|64))", "{t} {t} {t} pred", lambda m, x, y, p: np.where(p, x, y))
row("mov[.](?P<t>[usbf](?:16|32|64)|pred)", "{t} {t}", lambda m, x: x)

row(f"(?P<op>add|sub|mul)(?:[.]rn)?{FLOAT}", "{t} {t} {t}",
    lambda m, x, y: _UFUNCS[m["op"]](x, y), arithmetic=True)
for _short, _processor in (("f16", 53), ("bf16", 90)):
    row(f"(?P<op>add|sub|mul)(?:[.]rn)?[.](?P<t>{_short})", "{t} {t} {t}",
        lambda m, x, y: _UFUNCS[m["op"]](x, y), _processor, arithmetic=True)
row(f"fma[.]rn{FLOAT}", "{t} {t} {t} {t}",
    lambda m, *xyz: OPS["fma"].meaning(*np.broadcast_arrays(*xyz)), arithmetic=True)
row("fma[.]rz[.](?P<t>f32)", "{t} {t} {t} {t}", lambda m, *xyz: truncated_fma(*xyz),
    arithmetic=True)
row(f"div[.]rn{FLOAT}", "{t} {t} {t}", lambda m, x, y: np.divide(x, y), arithmetic=True)
row(f"rcp[.]rn{FLOAT}", "{t} {t}", lambda m, x: x.dtype.type(1) / x, arithmetic=True)
row(f"sqrt[.]rn{FLOAT}", "{t} {t}", lambda m, x: np.sqrt(x), arithmetic=True)
for _short, _processor in (("f16", 53), ("bf16", 80)):
    row(f"(?P<op>abs|neg)[.](?P<t>{_short})", "{t} {t}",
        lambda m, x: np.abs(x) if m["op"] == "abs" else np.negative(x), _processor,
        arithmetic=True)
    row(f"(?P<op>min|max)(?P<nan>[.]NaN)?[.](?P<t>{_short})", "{t} {t} {t}", extremum, 80)
row(f"(?P<op>abs|neg){FLOAT}", "{t} {t}",
    lambda m, x: np.abs(x) if m["op"] == "abs" else np.negative(x), arithmetic=True)
row(f"(?P<op>min|max){FLOAT}(?P<nan>x)?", "{t} {t} {t}", extremum, arithmetic=True)
row("(?P<op>min|max)(?P<ftz>[.]ftz)?(?P<nan>[.]NaN)[.](?P<t>f32)", "{t} {t} {t}", extremum, 80,
    arithmetic=True)
row("copysign[.](?P<t>f32|f64)", "{t} {t} {t}", lambda m, sign, x: np.copysign(x, sign))
row(f"testp[.](?P<op>{'|'.join(TESTS)})[.](?P<t>f32|f64)", "pred {t}",
    lambda m, x: TESTS[m["op"]](x))
row("cvt(?:[.](?P<rounding>rn|r[nzmp]i))?(?P<ftz>[.]ftz)?(?P<sat>[.]sat)?"
    "[.](?P<to>[usf](?:8|16|32|64))[.](?P<of>[usf](?:8|16|32|64))", "{to} {of}", converted,
    arithmetic=True)
row("cvt(?:[.](?P<rounding>rn))?(?P<ftz>x)?(?P<sat>x)?[.](?P<to>bf16)[.](?P<of>f32)", "{to} {of}",
    converted, 80)
row("cvt(?P<rounding>x)?(?P<ftz>x)?(?P<sat>x)?[.](?P<to>f32)[.](?P<of>bf16)", "{to} {of}",
    converted, 90)
row("cvt[.]rn[.](?P<to>f16|bf16)x2[.]f32", "b32 f32 f32", packed, 80)
for _name, _error, _function, _processor in (
        ("ex2", units(2), np.exp2, 50), ("lg2", of_logarithm, np.log2, 50),
        ("rcp", units(1), lambda x: 1 / x, 50), ("sqrt", relative(23), np.sqrt, 50),
        ("rsqrt", relative(22.9), lambda x: 1 / np.sqrt(x), 50),
        ("tanh", relative(11), np.tanh, 75)):
    row(f"{_name}[.]approx(?P<ftz>[.]ftz)?[.](?P<t>f32)", "{t} {t}",
        approximate(_error, _function), _processor, True)
row("div[.](?:approx|full)(?P<ftz>[.]ftz)?[.](?P<t>f32)", "{t} {t} {t}",
    approximate(units(2), np.divide), arithmetic=True)


def flushed(x: Any) -> Any:
    """Subnormal numbers become zeros of their sign."""
    if x.dtype != np.float32:
        return x
    return np.where(np.abs(x) < np.finfo(x.dtype).tiny, np.copysign(np.float32(0), x), x)


def flushing(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that takes and gives no subnormal numbers."""
    return lambda *xs: flushed(np.asarray(function(*map(flushed, xs))))


def giving(nan: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose nans are all this one."""
    def run(*xs: Any) -> Any:
        y = np.asarray(function(*xs))
        return np.where(np.isnan(y), nan, y)
    return run


@cache
def meaning(name: str, processor: int) -> tuple[str, list[str], Callable[..., Any]]:
    """The type of an instruction's result, those of its operands, and what it computes.

    Raises:
      Refused: for one that is not in the table, or not in this processor.
    """
    for pattern, types, function, first, is_arithmetic in ROWS:
        if (m := pattern.fullmatch(name)) is None:
            continue
        if processor < first:
            raise Refused(f"sm_{processor} has no {name}; the first that has is sm_{first}")
        result, *operands = (each.format(**m.groupdict()) for each in types)
        nan = NANS.get(result) if is_arithmetic else None
        function = partial(function, m)
        if m.groupdict().get("ftz"):
            function = flushing(function)
        return result, operands, function if nan is None else giving(nan, function)
    raise Refused(f"no row says what {name} means")


# -- programs --------------------------------------------------------------------------------------


class Instruction(NamedTuple):
    """One instruction: the predicate it runs under, with whether that must hold, and operands."""

    name: str
    operands: tuple[str, ...]
    guard: str = ""
    holds: bool = True


@dataclass
class Function:
    """The basic blocks of a kernel function, its parameters, the sizes of its registers."""

    parameters: list[str] = field(default_factory=list)
    registers: dict[str, str] = field(default_factory=dict)  # prefix → type
    labels: dict[str, int] = field(default_factory=dict)
    targets: dict[str, list[str]] = field(default_factory=dict)  # of a jump by number
    blocks: list[list[Instruction]] = field(default_factory=lambda: [[]])
    local: dict[str, tuple[int, int]] = field(default_factory=dict)  # symbol → place, bytes

    def add(self, instruction: Instruction) -> None:
        """Append an instruction; what parts or gathers threads stands at the end of its block."""
        if instruction.name.startswith("mma") and self.blocks[-1] and not self.gathers(-1):
            self.blocks.append([])
        self.blocks[-1].append(instruction)
        if instruction.name.split(".")[0] in ("bra", "brx", "ret", "exit", "bar", "barrier"):
            self.blocks.append([])

    def gathers(self, block: int) -> bool:
        """Whether a block begins with what all threads of a warp do together: before it they wait
        for each other, as the assembler arranges where they have parted.
        """
        return self.blocks[block][0].name.startswith("mma") if self.blocks[block] else False

    def label(self, name: str) -> None:
        """Begin a block."""
        if self.blocks[-1]:
            self.blocks.append([])
        self.labels[name] = len(self.blocks) - 1


@dataclass
class Module:
    """A PTX text in parts."""

    processor: int = 0
    functions: dict[str, Function] = field(default_factory=dict)
    shared: dict[str, tuple[int, int]] = field(default_factory=dict)
    constants: dict[str, np.ndarray] = field(default_factory=dict)


ARRAY = re.compile(r"(?:[.](?:visible|internal|extern|weak|common) )?"
                   r"[.](shared|local|global|const) [.]align (\d+) [.](\w+)\s+([\w$.]+)"
                   r"(?:\[(\d+)\])?(?: = \{(.*)\})?;")
STATEMENT = re.compile(r"(?:@(!?)(%p\d+)\s+)?([a-z][\w.:]*)\s*([^;]*);")
OPERAND = re.compile(r"\{[^}]*\}|\[[^\]]*\]|[^,\s]+")
DIRECTIVE = re.compile(r"[.](version|address_size|maxntid|minnctapersm|reqntid|pragma)\b|[{}]?$")


def one_line(m: re.Match) -> str:
    """What LLVM writes on several lines."""
    return re.sub(r"\s+", " ", m[0]).replace(": .branchtargets", ".branchtargets")


def parsed(text: str) -> Module:
    """A PTX text as instructions.

    Raises:
      Refused: for a line that it cannot read.
    """
    module, function = Module(), Function()
    text = re.sub(r"//.*", "", text)
    text = re.sub(r"\{\s+[.]reg [.]b(?:16|32) (%?te?mp);\s+(mov[^;]*;)\s*\}",
                  lambda m: m[2].replace(m[1], "_"), text)
    text = re.sub(r"[.]entry \w+\(.*?\)|mma[.]sync[^;]*;|\$L_brx_\d+:\s*[.]branchtargets.*?;",
                  one_line, text, flags=re.S)
    for line in map(str.strip, text.splitlines()):
        if DIRECTIVE.match(line):
            continue
        if m := re.match(r"[.]target sm_(\d+)", line):
            module.processor = int(m[1])
        elif m := re.match(r"[.]visible [.]entry (\w+)\((.*)\)", line):
            function = module.functions[m[1]] = Function(re.findall(r"\w+_param_\d+", m[2]))
        elif m := re.match(r"[.]reg [.](\w+)\s+(%[A-Za-z]+)(<\d+>)?;", line):
            function.registers[m[2]] = m[1]
        elif m := ARRAY.fullmatch(line):
            declare(module, function, *m.groups())
        elif m := re.match(r"(\$L_brx_\d+)[.]branchtargets(.*);", line):
            function.targets[m[1]] = re.findall(r"\$\w+", m[2])
        elif m := re.fullmatch(r"(\$\w+):", line):
            function.label(m[1])
        elif m := STATEMENT.fullmatch(line):
            function.add(Instruction(m[3], tuple(OPERAND.findall(m[4])), m[2] or "", not m[1]))
        else:
            raise Refused(f"this line of PTX is not understood: {line}")
    return module


def declare(module: Module, function: Function, space: str, align: str, kind: str, name: str,
            count: str | None, values: str | None) -> None:
    """Place an array of a memory space."""
    size = int(count or 1) * dtype_of(kind).itemsize
    if space in ("global", "const"):
        numbers = [int(x) for x in (values or "0").split(",")]
        module.constants[name] = np.array(numbers, object).astype(dtype_of(kind))
        return
    symbols = module.shared if space == "shared" else function.local
    end = max((first + length for first, length in symbols.values()), default=0)
    symbols[name] = -(-end // int(align)) * int(align), size


# -- threads ---------------------------------------------------------------------------------------


class PtxMachine(Emulator):
    """An emulated GPU whose launches run as PTX."""

    name = "PTX machine"
    processor = "sm_80"

    def allocate(self, nbytes: int) -> int:
        """As the driver does: the bytes of whole accesses."""
        return super().allocate(driver.whole(nbytes))

    def free(self, address: int, nbytes: int) -> None:
        super().free(address, driver.whole(nbytes))

    def prepared(self, kernel: Kernel) -> Callable[[], Launches]:
        """What makes the launches of a kernel; each is for one call at a time."""
        launches = ptx.launches_of(kernel.body)
        functions = {}
        for module in map(parsed, self.texts(kernel) if launches else ()):
            addresses = {}
            for name, values in module.constants.items():
                addresses[name] = self.allocate(values.nbytes)
                self.store(addresses[name], values)
            functions |= {name: (module, function, addresses)
                          for name, function in module.functions.items()}
        first = [x for x, offset in kernel.offsets.items() if not offset][:1]  # of the workspace

        def run(launch: Launch, places: Mapping[Buffer, int], numbers: Mapping[Any, Any]) -> None:
            buffers, has_temps, scalars = ptx.parameters(kernel, launch)
            module, function, addresses = functions[f"launch_{launches.index(launch)}"]
            values = [*(np.uint64(places[x]) for x in buffers),
                      *(np.asarray(numbers[x], x.dtype) for x in scalars),
                      *(np.uint64(places[x]) for x in (first if has_temps else []))]
            self.run(module, function, launch, values, addresses)
        return lambda: Launches(SimpleNamespace(launch=run), kernel)

    def texts(self, kernel: Kernel) -> list[str]:
        """PTX of all launches, by the compiler that is chosen."""
        return driver.ptx_of(kernel, self.processor)

    def run(self, module: Module, function: Function, launch: Launch, values: Sequence[Any],
            addresses: Mapping[str, int]) -> None:
        """Run the blocks of a launch, in any order."""
        parameters = {name: np.frombuffer(value.tobytes().ljust(8, b"\0"), np.uint8)
                      for name, value in zip(function.parameters, values, strict=True)}
        blocks = self.random.permutation(launch.blocks)
        some = 1 if waits(launch) else max(1, MAX_THREADS // launch.threads)
        every = (Threads(self, module, function, blocks[first:first + some], launch, parameters,
                         addresses).run() for first in range(0, launch.blocks, some))
        with np.errstate(all="ignore"):
            resident = list(itertools.islice(every, RESIDENT if some == 1 else 1))
            while resident:  # a few instructions of one, then of another
                k = self.random.integers(len(resident))
                if next(resident[k], self) is self:
                    resident[k:k + 1] = itertools.islice(every, 1)


class PtxDevice(devices.EmulatedDevice):
    """An emulated GPU whose launches run as PTX, for tests under the platform of this name."""

    device_kind = "PTX machine"

    @staticmethod
    def register() -> None:
        """Let programs name it."""
        devices.PLATFORMS["ptx"], devices.PtxDevice = "PtxDevice", PtxDevice

    def start(self) -> PtxMachine:
        return PtxMachine()

    def __str__(self) -> str:
        return f"ptx:{self.id}"


class Threads:
    """The threads of some blocks, side by side: where each is, its registers, its memory."""

    def __init__(self, machine: PtxMachine, module: Module, function: Function, blocks: np.ndarray,
                 launch: Launch, parameters: Mapping[str, np.ndarray], addresses: Mapping[str, int]
                 ) -> None:
        self.machine, self.module, self.function = machine, module, function
        self.parameters, self.per_block = parameters, launch.threads
        self.count = launch.threads * len(blocks)
        thread = np.arange(self.count)
        self.group = thread // launch.threads
        self.registers: dict[str, np.ndarray] = {}
        self.special = {"%tid.x": (thread % launch.threads).astype("u4"),
                        "%ctaid.x": blocks[self.group].astype("u4"),
                        "%ntid.x": np.uint32(launch.threads)}
        self.symbols = {**addresses, **{name: first for symbols in (module.shared, function.local)
                                        for name, (first, _) in symbols.items()}}
        self.spaces = {space: np.full((rows, sum(map(sum, symbols.values())) + 16 & -16), POISON,
                                      np.uint8)
                       for space, rows, symbols in (("shared", len(blocks), module.shared),
                                                    ("local", self.count, function.local))}
        self.at = np.zeros(self.count, int)  # the basic block of each thread
        self.waiting = np.zeros(self.count, bool)  # at a barrier
        self.here: Any = slice(None)  # the threads that run

    # -- which run -----------------------------------------------------------------------------

    def run(self) -> Iterator[None]:
        """Run the threads that are furthest behind, until all are at the end; others may go on
        between two basic blocks.
        """
        end = len(self.function.blocks)
        while True:
            at = np.where(self.waiting, end, self.at)
            place = int(at.min())
            if place == end:
                if not self.waiting.any():
                    return
                missing = self.per_block - self.waiting.sum() % self.per_block
                raise Refused(f"{missing} threads do not reach a barrier")
            active = np.flatnonzero(at == place)
            if self.function.gathers(place):
                place, active = self.whole_warps(at)
            self.here = slice(None) if len(active) == self.count else active
            self.at[active] = place + 1
            for instruction in self.function.blocks[place]:
                self.step(instruction)
            yield

    def whole_warps(self, at: np.ndarray) -> tuple[int, np.ndarray]:
        """The first place where threads can go on, in whole warps where these gather."""
        for place in np.unique(at[at < len(self.function.blocks)]):
            active = at == place
            if self.function.gathers(place):
                active &= np.repeat(active.reshape(-1, WARP).all(axis=1), WARP)
            if active.any():
                return int(place), np.flatnonzero(active)
        raise Refused("threads of a warp do not multiply with the others")

    def step(self, instruction: Instruction) -> None:
        """Run an instruction on the threads that are here, or that its predicate names."""
        before = self.here
        if instruction.guard:
            holds = self.registers[instruction.guard][before] == instruction.holds
            self.here = np.arange(self.count)[before][holds]
            if not len(self.here):
                self.here = before
                return
        word = instruction.name.split(".")[0]
        special = getattr(self, f"run_{word}", None)
        if special is None:
            self.compute(instruction)
        else:
            special(instruction.name, *instruction.operands)
        self.here = before

    def run_bra(self, name: str, label: str) -> None:
        self.at[self.here] = self.function.labels[label]

    def run_brx(self, name: str, number: str, table: str) -> None:
        places = np.array([self.function.labels[x] for x in self.function.targets[table]])
        self.at[self.here] = places[self.read(number, "u32")]

    def run_ret(self, name: str) -> None:
        self.at[self.here] = len(self.function.blocks)

    def run_bar(self, name: str, number: str) -> None:
        """A barrier that all threads of a block have reached lets them go on."""
        self.waiting[self.here] = True
        is_full = self.waiting.reshape(-1, self.per_block).all(axis=1)
        self.waiting[is_full[self.group]] = False

    run_barrier = run_bar

    # -- registers -----------------------------------------------------------------------------

    def compute(self, instruction: Instruction) -> None:
        target, *operands = instruction.operands
        result, kinds, function = meaning(instruction.name, self.module.processor)
        if target.startswith("{"):
            return self.unpack(target, operands[0], kinds[0])
        self.write(target, result, function(*(
            self.read(x, kind) for x, kind in zip(operands, kinds, strict=True))))

    def unpack(self, target: str, source: str, kind: str) -> None:
        names = target.strip("{} ").replace(" ", "").split(",")
        part = f"b{8 * dtype_of(kind).itemsize // len(names)}"
        words = np.ascontiguousarray(np.broadcast_to(self.read(source, kind), self.size()))
        for name, word in zip(names, words.view(dtype_of(part)).reshape(-1, len(names)).T,
                              strict=True):
            if name != "_":
                self.write(name, part, word)

    def size(self) -> int:
        """How many threads run."""
        return self.count if isinstance(self.here, slice) else len(self.here)

    def read(self, operand: str, kind: str) -> np.ndarray:
        """The value of an operand for the threads that run."""
        dtype = dtype_of(kind)
        if operand.startswith("{"):
            names = operand.strip("{} ").replace(" ", "").split(",")
            part = f"b{8 * dtype.itemsize // len(names)}"
            words = [np.broadcast_to(self.read(x, part), self.size()) for x in names]
            return np.stack(words, 1).view(dtype)[:, 0]
        if operand in self.special:
            return np.broadcast_to(self.special[operand], self.count)[self.here]
        if operand.startswith("%"):
            bits = self.registers[operand][self.here]
            return bits if kind == "pred" else bits.astype(f"u{dtype.itemsize}").view(dtype)
        if operand in self.symbols:
            return np.array(self.symbols[operand], dtype)
        return literal(operand, dtype)

    def write(self, register: str, kind: str, value: Any) -> None:
        """Write a register; a signed number is extended to its width."""
        dtype = dtype_of(kind)
        of_register = self.function.registers[re.match(r"%[A-Za-z]+", register)[0]]  # type: ignore
        value = np.ascontiguousarray(np.broadcast_to(np.asarray(value).astype(
            dtype, copy=False), self.size()))
        if kind != "pred":
            value = value if dtype.kind in "iu" else value.view(f"u{dtype.itemsize}")
            value = value.astype(f"u{dtype_of(of_register).itemsize}")
        if not isinstance(self.here, slice):
            before = self.registers.get(register)
            whole = np.full(self.count, undefined(value)) if before is None else before.copy()
            whole[self.here], value = value, whole
        self.registers[register] = value

    # -- memory --------------------------------------------------------------------------------

    def run_ld(self, name: str, target: str, place: str) -> None:
        space, width, kind = split(name)
        for k, register in enumerate(target.strip("{} ").replace(" ", "").split(",")):
            result = np.zeros(self.size(), dtype_of(kind))
            for memory, index, which in self.memory(space, place, kind, width, k):
                result[which] = memory[index]
            self.write(register, kind, result)

    def run_st(self, name: str, place: str, source: str) -> None:
        space, width, kind = split(name)
        for k, operand in enumerate(source.strip("{} ").replace(" ", "").split(",")):
            value = np.broadcast_to(self.read(operand, kind), self.size())
            for memory, index, which in self.memory(space, place, kind, width, k):
                memory[index] = value[which]

    def run_atom(self, name: str, target: str, place: str, source: str) -> None:
        """Read, compute, write: one thread after the other, in any order."""
        _, space, op, kind = name.split(".")
        compute = ATOMIC[op]
        value = np.broadcast_to(self.read(source, kind), self.size())
        result = np.zeros(self.size(), dtype_of(kind))
        for memory, index, which in self.memory(space, place, kind, 1, 0):
            index = np.stack(np.broadcast_arrays(*(index if isinstance(index, tuple) else [index])))
            threads = np.arange(self.size())[which]
            for k in self.machine.random.permutation(len(threads)):
                at, thread = tuple(index[:, k]), threads[k]
                result[thread] = memory[at]
                memory[at] = compute(memory[at], value[thread])
        self.write(target, kind, result)

    def run_membar(self, name: str) -> None:
        """Memory has no order of its own here."""

    def memory(self, space: str, place: str, kind: str, width: int, k: int
               ) -> Iterator[tuple[np.ndarray, Any, Any]]:
        """Arrays, the indices there of what some of the threads access, and which these are."""
        base, _, offset = place.strip("[]").partition("+")
        dtype = dtype_of(kind)
        if base in self.parameters:
            yield self.parameters[base].view(dtype), int(offset or 0) // dtype.itemsize, slice(None)
            return
        first = np.broadcast_to(self.read(base, "s64"), self.size()) + int(offset or 0)
        if (first % (width * dtype.itemsize)).any():
            raise Refused(f"a misaligned address of {space} memory")
        addresses = (first + k * dtype.itemsize).view("u8")
        if space in ("shared", "local"):
            yield self.own(space, dtype, addresses, slice(None))
            return
        is_local = addresses >= LOCAL_WINDOW
        if is_local.any():
            yield self.own("local", dtype, addresses[is_local] - np.uint64(LOCAL_WINDOW), is_local)
        yield from self.allocated(dtype, addresses, ~is_local)

    def own(self, space: str, dtype: np.dtype, addresses: np.ndarray, which: Any
            ) -> tuple[np.ndarray, Any, Any]:
        """Memory of a block or a thread."""
        memory = self.spaces[space].view(dtype)
        rows = (self.group if space == "shared" else np.arange(self.count))[self.here][which]
        index = addresses.astype(int) // dtype.itemsize
        if (index >= memory.shape[1]).any():
            raise Refused(f"an address outside of {space} memory")
        return memory, (rows, index), which

    def allocated(self, dtype: np.dtype, addresses: np.ndarray, left: np.ndarray
                  ) -> Iterator[tuple[np.ndarray, Any, Any]]:
        """The parts of global memory with some addresses."""
        machine = self.machine
        while left.any():
            lowest = int(addresses[left].min())
            allocation, offset = machine.allocation(lowest)
            start, size = lowest - offset, len(allocation.bytes) // dtype.itemsize
            which = left & (addresses < start + size * dtype.itemsize)
            if not which.any():
                raise Refused(f"nothing is allocated at address {lowest}")
            index = (addresses[which] - np.uint64(start)).astype(int) // dtype.itemsize
            yield allocation.bytes[:size * dtype.itemsize].view(dtype), index, which
            left = left & ~which

    def run_cvta(self, name: str, target: str, source: str) -> None:
        """Addresses of global memory are generic; those of local memory lie in a window."""
        space, moved = name.split(".")[-2], np.uint64(0)
        if space == "local":
            moved = np.uint64(-LOCAL_WINDOW % (1 << 64) if ".to." in name else LOCAL_WINDOW)
        elif space != "global":
            raise Refused(f"no row says what {name} means")
        self.write(target, "u64", self.read(source, "u64") + moved)

    # -- together ------------------------------------------------------------------------------

    def run_shfl(self, name: str, target: str, source: str, lanes: str, clamp: str, mask: str
                 ) -> None:
        """Each thread has the value of another one in its warp."""
        target, _, is_valid = target.partition("|")  # the second says that there is such a thread
        distance, last, members = map(self.number, (lanes, clamp, mask))
        if name != "shfl.sync.bfly.b32" or last != WARP - 1:
            raise Refused(f"no row says what {name} means")
        is_here = np.zeros(self.count, bool)
        is_here[self.here] = True
        named = (members >> np.arange(WARP) & 1).astype(bool)
        warps = is_here.reshape(-1, WARP)
        if (warps.any(axis=1) & (warps != named).any(axis=1)).any():
            raise Refused("the threads of a shuffle are not those of its mask")
        whole = np.zeros(self.count, "u4")
        whole[self.here] = self.read(source, "u32")
        self.write(target, "u32", whole[np.arange(self.count) ^ distance][self.here])
        if is_valid:
            self.write(is_valid, "pred", True)

    def run_mma(self, name: str, sums: str, x: str, y: str, before: str) -> None:
        """Each warp multiplies two matrices of which its threads have parts, as the manual says.

        In what order terms are added, and how the sum is rounded, it leaves open.
        """
        m = MATRICES.fullmatch(name)
        if m is None:
            raise Refused(f"no row says what {name} means")
        terms, kind = int(m["k"]), m["kind"]
        lane = np.arange(self.size()) % WARP
        group, member, warp = lane >> 2, lane % 4, np.arange(self.size()) // WARP

        def matrix(operand: str, shape: tuple[int, int], kind: str, place: Any) -> np.ndarray:
            result = np.zeros((self.size() // WARP, *shape))
            registers = operand.strip("{} ").replace(" ", "").split(",")
            for k, number in enumerate(self.numbers(registers, kind)):
                result[warp, *place(k)] = number
            return result
        if kind == "tf32":
            of_x = lambda k: (group + 8 * (k in (1, 3)), member + 4 * (k in (2, 3)))
            of_y = lambda k: (member + 4 * k, group)
        else:
            of_x = lambda k: (group + 8 * (k in (2, 3, 6, 7)), 2 * member + (k & 1) + 8 * (k >= 4))
            of_y = lambda k: (2 * member + (k & 1) + 8 * (k >= 2), group)
        of_sum = lambda k: (group + 8 * (k >= 2), 2 * member + (k & 1))
        exact = (matrix(x, (16, terms), kind, of_x) @ matrix(y, (terms, 8), kind, of_y)
                 + matrix(before, (16, 8), "f32", of_sum))
        total = exact.astype(np.float32)
        toward_zero = np.where(np.abs(total) > np.abs(exact), np.nextafter(total, np.float32(0)),
                               total)
        for k, register in enumerate(sums.strip("{} ").replace(" ", "").split(",")):
            self.write(register, "f32", toward_zero[warp, *of_sum(k)])

    def numbers(self, registers: Sequence[str], kind: str) -> Iterator[np.ndarray]:
        """The numbers in some registers, of which a word has one or two."""
        for register in registers:
            if kind in ("f32", "tf32"):
                word = self.read(register, "f32")
                if kind == "tf32" and (word.view("u4") & ((1 << 13) - 1)).any():
                    raise Refused("a factor has more digits than TF32")
                yield word
            else:
                yield from np.ascontiguousarray(self.read(register, "b32")).view(
                    dtype_of(kind)).reshape(-1, 2).T

    def number(self, operand: str) -> int:
        """A number that all threads have."""
        [number] = np.unique(self.read(operand, "u32"))
        return int(number)


MATRICES = re.compile(r"mma[.]sync[.]aligned[.]m16n8k(?P<k>8|16)[.]row[.]col"
                      r"[.]f32[.](?P<kind>tf32|bf16|f16)[.](?P=kind)[.]f32")
ATOMIC: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add, "min": np.minimum, "max": np.maximum,
    "inc": lambda old, last: 0 if old >= last else old + 1}


def split(name: str) -> tuple[str, int, str]:
    """The memory space of a load or store, how many numbers it moves, and their type."""
    word, *rest, kind = name.split(".")
    left = [x for x in rest if x not in ("nc", "volatile", "relaxed", "sys")]
    width = next((int(x[1]) for x in left if x in ("v2", "v4")), 1)
    space = next((x for x in left if x in ("global", "shared", "local", "param", "const")), "")
    if len(left) != (width > 1) + bool(space):
        raise Refused(f"no row says what {name} means")
    return space, width, kind


@cache
def literal(text: str, dtype: np.dtype) -> np.ndarray:
    """A number as PTX writes it, of some type."""
    if text[:2] in ("0f", "0d"):
        bits = np.array(int(text[2:], 16), "u4" if text[1] == "f" else "u8")
        return bits.view(dtype)
    value = int(text.rstrip("U"), 0)
    whole = np.array(value % (1 << 8 * dtype.itemsize), f"u{dtype.itemsize}")
    return whole.view(dtype) if dtype != np.bool_ else whole.astype(bool)


def run_ptx(kernel: Kernel, inputs: Sequence[np.ndarray], seed: int = 0,
            machine: PtxMachine | None = None) -> list[np.ndarray]:
    """Run a scheduled kernel as PTX; its outputs."""
    machine = machine or PtxMachine(seed)
    arguments = [Memory.of(machine, np.asarray(x, buffer.dtype).reshape(buffer.shape))
                 for x, buffer in zip(inputs, kernel.inputs, strict=True)]
    outputs = Program(kernel, machine)(*arguments)
    return [memory.read(x.shape, x.dtype)
            for memory, x in zip(outputs, kernel.outputs, strict=True)]
