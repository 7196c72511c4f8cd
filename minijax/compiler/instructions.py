"""Operations that take more than one LLVM instruction, as formulas of numbers.

Builds on infix.py. The operations of one instruction are in scalars.py, llvm.py prints. Chapter 24.
In JAX: xla/service/elemental_ir_emitter and MLIR's arith-to-LLVM lowering play this role.
"""

import operator
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from minijax.dtypes import BFLOAT16, finfo, is_narrow, itemsize_bits
from minijax.primitives.infix import Number, on_numbers, select

from . import cpu

FLOAT16 = np.dtype(np.float16)

# The conversion instruction for the kinds of operand and result; to a narrower or a wider type.
CONVERSIONS = {"bi": "zext", "bu": "zext", "bf": "uitofp", "if": "sitofp", "uf": "uitofp"}
SIGNS = {"i": "s", "u": "u"}
RESIZINGS = {"f": ("fptrunc", "fpext"), "i": ("trunc", "sext"), "u": ("trunc", "zext")}


@cache
def kind_of(dtype: np.dtype) -> str:
    """The class of a dtype: "b" bool, "i" signed, "u" unsigned, "f" float; "n" narrow: stored as
    its bits, and computed in a wider dtype.

    >>> kind_of(np.dtype("float32")), kind_of(BFLOAT16), kind_of(np.dtype("uint8"))
    ('f', 'n', 'u')
    """
    if is_narrow(dtype):
        return "n"
    if dtype.kind in "biuf" and dtype.itemsize <= 8 and dtype.isbuiltin == 1:
        return dtype.kind
    raise NotImplementedError(f"the loop tree has no scalars of dtype {dtype}")


def plain(instruction: str, *args: Number, dtype: Any = None) -> Number:
    """A single instruction; the dtype of its result defaults to that of its operands."""
    return on_numbers(lambda s, *xs: s.plain(instruction, xs, dtype or args[0].dtype))(*args)


def _constant_value(x: Any) -> Any:
    """The value of a constant, else None."""
    return getattr(x.value, "value", None)


# -- integers --------------------------------------------------------------------------------------


def _guarded(x: Any, y: Any) -> tuple[Any, Any, Any]:
    """Tests for y = 0 and for y = -1, and y with 1 in these places: x / 0 and MIN / -1 are
    undefined in LLVM. For a constant y no test is needed.
    """
    zero, minus_one = y == 0, y == -1 if x.dtype.kind == "i" else y.const(False, bool)
    return zero, minus_one, select(zero | minus_one, 1, y)


def _quotient(x: Any, y: Any) -> Any:
    """Processors have vector division for floats only. In float64 a quotient of 32-bit integers is
    far enough from the next integer to be truncated.
    """
    sign = SIGNS[x.dtype.kind]
    if not x.s.in_vectors or x.dtype.itemsize > 4 or _constant_value(y) is not None:
        return plain(f"{sign}div {{s}} {{x}}, {{y}}", x, y)
    ratio = x.to(np.float64) / y.to(np.float64)
    return plain(f"fpto{sign}i {{s}} {{x}} to {{t}}", ratio, dtype=x.dtype)


def div(x: Any, y: Any) -> Any:
    """x / 0 is all ones; MIN / -1 wraps to MIN."""
    zero, minus_one, divisor = _guarded(x, y)
    return select(zero, -1, select(minus_one, -x, _quotient(x, divisor)))


def rem(x: Any, y: Any) -> Any:
    """x % 0 is x; x % -1 is 0, also for MIN."""
    zero, _, divisor = _guarded(x, y)
    return select(zero, x, x - _quotient(x, divisor) * divisor)


def shifted(instruction: str, x: Any, y: Any) -> Any:
    """A shift by the width or more, which LLVM leaves undefined, shifts out everything but the
    sign.
    """
    size = x.dtype.itemsize
    inside = y.bits(f"u{size}") < 8 * size
    if instruction == "ashr":
        return plain("ashr {s} {x}, {y}", x, select(inside, y, 8 * size - 1))
    return select(inside, plain(f"{instruction} {{s}} {{x}}, {{y}}", x, y), 0)


def halves(x: Any, y: Any) -> Any:
    """The product of the lower halves plus that of the upper ones: a single vector instruction, if
    LLVM recognises the pattern (see `HALVES`).
    """
    half = 4 * x.dtype.itemsize
    low, high = (((x << half) >> half, x >> half) for x in (x, y))
    return low[0] * high[0] + low[1] * high[1]


# -- floats ----------------------------------------------------------------------------------------


def extremum(word: str, x: Any, y: Any) -> Any:
    """With a constant one comparison and select, half as many instructions: the constant is no nan,
    and the sign of its zero is known.
    """
    if _constant_value(y) is None:
        x, y = y, x
    if (limit := _constant_value(y)) is None or np.isnan(limit):
        return plain(f"call {{t}} @llvm.{word}imum.{{m}}({{s}} {{x}}, {{s}} {{y}})", x, y)
    strictly = bool(limit or np.signbit(limit) == (word == "max"))
    compare = {"min": (operator.ge, operator.gt), "max": (operator.le, operator.lt)}[word][strictly]
    return select(compare(x, y), y, x)


def converted(x: Any, dtype: np.dtype) -> Any:
    """A number in another dtype."""
    source, target = kind_of(x.dtype), kind_of(dtype)
    kinds, widening = source + target, dtype.itemsize - x.dtype.itemsize
    if x.dtype == dtype or not widening and {source, target} <= {"i", "u"}:
        return x.bits(dtype)
    if "n" in kinds:
        return _to_narrow(x, dtype) if target == "n" else _from_narrow(x, dtype)
    if target == "b":
        return x != 0
    if kinds in ("fi", "fu"):
        return _saturated(x, dtype)
    word = CONVERSIONS.get(kinds) or RESIZINGS[source][widening > 0]
    return plain(f"{word} {{s}} {{x}} to {{t}}", x, dtype=dtype)


def _saturated(x: Any, dtype: np.dtype) -> Any:
    """Float to integer. fptosi gives poison for what does not fit; the select discards it: x
    saturates, nan gives 0.

    (LLVM has llvm.fptosi.sat for this, which keeps a loop from using vector instructions.)
    """
    limits = np.iinfo(dtype)
    inside = plain(f"fpto{SIGNS[dtype.kind]}i {{s}} {{x}} to {{t}}", x, dtype=dtype)
    above = select(x < float(limits.min), int(limits.min), inside)
    limited = select(x >= float(int(limits.max) + 1), int(limits.max), above)
    return select(x != x, 0, limited)


# -- narrow numbers --------------------------------------------------------------------------------


def _from_narrow(x: Any, dtype: np.dtype) -> Any:
    """The wide number of a narrow one; a small integer uses only some bits of its byte.

    LLVM has float16 as `half`: where the processor does, a conversion is one instruction; where
    it does not, LLVM would call a function that no library has.  bfloat16 is the upper half of a
    float32.
    """
    if dtype.kind in "iu":
        unused = 8 - itemsize_bits(x.dtype)
        return x.bits(dtype) << unused >> unused
    if x.dtype == FLOAT16 and cpu.has("f16c"):
        return plain("fpext {h} {x} to {t}", plain("bitcast {s} {x} to {h}", x), dtype=dtype)
    return widened(x, x.dtype)


def widened(x: Any, dtype: np.dtype) -> Any:
    """The float32 of a narrow float of a dtype, by operations on its bits."""
    if dtype == BFLOAT16:
        return (x.bits("u2").to("u4") << 16).bits("f4")
    form = layout(dtype)
    return _from_code(x, form) if form.mantissa else _from_exponent(x)


def _to_narrow(x: Any, dtype: np.dtype) -> Any:
    """The nearest narrow number, ties to even."""
    if x.dtype.kind in "iu":
        return (x.bits("u1") & (1 << itemsize_bits(dtype)) - 1).bits(dtype)
    if dtype == FLOAT16 and cpu.has("f16c"):
        return plain("bitcast {h} {x} to {t}", plain("fptrunc {s} {x} to {h}", x), dtype=dtype)
    return rounded_to(x, dtype)


def rounded_to(x: Any, dtype: np.dtype) -> Any:
    """The narrow float of a dtype next to a float32, by operations on its bits.

    For bfloat16 add 0x7fff, and one more where the kept part is odd. A nan must not round up to
    infinity: it gets a quiet bit instead.
    """
    if dtype == BFLOAT16:
        bits = x.bits("u4")
        kept = bits >> 16
        return select(x != x, kept | 64, _rounded_off(bits, 16)).to("u2").bits(dtype)
    form = layout(dtype)
    code = _to_code(x, form) if form.mantissa else _to_exponent(x)
    return code.to(f"u{dtype.itemsize}").bits(dtype)


class Layout(NamedTuple):
    """The layout of a float of two bytes or less: sign, exponent, mantissa.

    A code is the bits as an integer. Up to `most`, codes are numbers in their order.
    """

    mantissa: int  # how many bits it has
    least: int  # the exponent of the smallest normal number
    sign: int  # the code of a sign alone: of -0, or, where there is no -0, of nan
    most: int  # the codes of the largest number, of what is above it, and of nan
    above: int
    nan: int

    @property
    def bias_shift(self) -> int:
        """The difference between the exponent biases of float32 and this format."""
        return self.least + 126


@cache
def layout(dtype: np.dtype) -> Layout:
    """The layout of a dtype.

    >>> layout(np.dtype("float8_e5m2"))
    Layout(mantissa=2, least=-14, sign=128, most=123, above=124, nan=126)
    """
    info = finfo(dtype)
    values = np.array([-1, 1, info.max, np.inf, np.nan], np.float32).astype(dtype)
    minus_one, one, *codes = map(int, values.view(f"u{values.itemsize}"))
    return Layout(info.nmant, int(info.minexp), minus_one ^ one, *codes)


def _from_code(x: Any, form: Layout) -> Any:
    """The float32 of a code; subnormal numbers become normal."""
    code = x.bits(f"u{x.dtype.itemsize}").to("u4")
    size, sign = code & form.sign - 1, code & form.sign
    normal = ((size << 23 - form.mantissa) + (form.bias_shift << 23)).bits("f4")
    number = select(size < 1 << form.mantissa,
                    size.to("f4") * 2.**(form.least - form.mantissa), normal)
    if form.above not in (form.most, form.nan):
        number = select(size == form.above, np.inf, number)
        number = select(size > form.above, np.nan, number)
    elif form.above == form.sign:
        number = select(code == form.nan, np.nan, number)
    elif form.above != form.most:
        number = select(size > form.most, np.nan, number)
    return (number.bits("u4") ^ sign << 32 - form.sign.bit_length()).bits("f4")


def _to_code(x: Any, form: Layout) -> Any:
    """The code of a float32, rounded once; a subnormal one is rounded by adding a large number."""
    bits = x.bits("u4")
    size, sign = bits & 0x7FFFFFFF, bits >> 31 << form.sign.bit_length() - 1
    large = x.const(2.**(form.least - form.mantissa + 23))
    small = (size.bits("f4") + large).bits("u4") - large.bits("u4")
    normal = _rounded_off(size, 23 - form.mantissa) - (form.bias_shift << form.mantissa)
    code = select(size.bits("f4") < 2.**form.least, small, normal)
    code = select(x != x, form.nan, select(code > form.most, form.above, code))
    if form.above == form.sign:  # neither 0 nor nan has a sign
        sign = select(code & form.sign - 1 == 0, 0, sign)
    return code ^ sign


# float8_e8m0fnu has neither sign nor mantissa nor zero: it is the exponent of a float32.


def _from_exponent(x: Any) -> Any:
    code = x.bits("u1").to("u4")
    number = select(code == 0, 2.**-127, (code << 23).bits("f4"))
    return select(code == 255, np.nan, number)


def _to_exponent(x: Any) -> Any:
    """Rounds half up; what is no positive number becomes nan."""
    bits = x.bits("u4")
    code = select(bits < 1 << 23, (bits > 1 << 22).to("u4"), (bits + (1 << 22)) >> 23)
    return select(x > 0, code, 255)


def _rounded_off(bits: Any, count: int) -> Any:
    """Unsigned bits without the last ones, rounded to nearest, ties to even."""
    return (bits + ((bits >> count & 1) + ((1 << count - 1) - 1))) >> count
