"""What takes more than one LLVM instruction: formulas of numbers, with instructions among them.

Stands on infix.py. The operations of one instruction are in scalars.py, llvm.py prints. Chapter 24.
In JAX: xla/service/elemental_ir_emitter and MLIR's arith-to-LLVM lowering play this role.
"""

import operator
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

from minijax.primitives.infix import Number, on_numbers, select

FLOAT16 = np.dtype(np.float16)
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)

# By kind of the operand and of the result: an instruction; to a narrower, and to a wider type.
WORDS = {"bi": "zext", "bu": "zext", "bf": "uitofp", "if": "sitofp", "uf": "uitofp"}
SIGNS = {"i": "s", "u": "u"}
CHANGES = {"f": ("fptrunc", "fpext"), "i": ("trunc", "sext"), "u": ("trunc", "zext")}


@cache
def kind_of(dtype: np.dtype) -> str:
    """The class of a dtype: "b" bool, "i" signed, "u" unsigned, "h" 16-bit float, "f" float.

    >>> kind_of(np.dtype("float32")), kind_of(BFLOAT16), kind_of(np.dtype("uint8"))
    ('f', 'h', 'u')
    """
    if dtype in (FLOAT16, BFLOAT16):
        return "h"
    if dtype.kind in "biuf" and dtype.itemsize <= 8 and dtype.isbuiltin == 1:
        return dtype.kind
    raise NotImplementedError(f"the loop tree has no scalars of dtype {dtype}")


def plain(instruction: str, *args: Number, dtype: Any = None) -> Number:
    """An instruction as it is: what it gives has a dtype, that of its operands if none is given."""
    return on_numbers(lambda s, *given: s.plain(instruction, given, dtype or args[0].dtype))(*args)


def _known(x: Any) -> Any:
    """The value of a constant, else None."""
    return getattr(x.value, "value", None)


# -- integers --------------------------------------------------------------------------------------


def _guarded(x: Any, y: Any) -> tuple[Any, Any, Any]:
    """Where y is 0, where it is -1, and 1 in these places: x / 0 is undefined for LLVM, and so is
    MIN / -1. Of a constant nothing of this is left.
    """
    zero, minus_one = y == 0, y == -1 if x.dtype.kind == "i" else y.const(False, bool)
    return zero, minus_one, select(zero | minus_one, 1, y)


def _quotient(x: Any, y: Any) -> Any:
    """Processors divide vectors of floats, and none of integers. In float64 a quotient of integers
    of 32 bits is so far from the next integer that it may be cut off at its point.
    """
    sign = SIGNS[x.dtype.kind]
    if not x.s.in_vectors or x.dtype.itemsize > 4 or _known(y) is not None:
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
    """By the width or more, which LLVM leaves undefined, everything but the sign is shifted out."""
    size = x.dtype.itemsize
    inside = y.bits(f"u{size}") < 8 * size
    if instruction == "ashr":
        return plain("ashr {s} {x}, {y}", x, select(inside, y, 8 * size - 1))
    return select(inside, plain(f"{instruction} {{s}} {{x}}, {{y}}", x, y), 0)


# -- floats ----------------------------------------------------------------------------------------


def extremum(word: str, x: Any, y: Any) -> Any:
    """Of a number and a constant a choice: half as many instructions, as the constant is no nan,
    and the sign of a zero among them is known.
    """
    if _known(y) is None:
        x, y = y, x
    if (limit := _known(y)) is None or np.isnan(limit):
        return plain(f"call {{t}} @llvm.{word}imum.{{m}}({{s}} {{x}}, {{s}} {{y}})", x, y)
    beyond = bool(limit or np.signbit(limit) == (word == "max"))
    compare = {"min": (operator.ge, operator.gt), "max": (operator.le, operator.lt)}[word][beyond]
    return select(compare(x, y), y, x)


def converted(x: Any, dtype: np.dtype) -> Any:
    """A number of another dtype."""
    given, wanted = kind_of(x.dtype), kind_of(dtype)
    kinds, wider = given + wanted, dtype.itemsize - x.dtype.itemsize
    if x.dtype == dtype or not wider and {given, wanted} <= {"i", "u"}:
        return x.bits(dtype)
    if "h" in kinds:
        return _to_half(x, dtype) if wanted == "h" else _from_half(x, dtype)
    if wanted == "b":
        return x != 0
    if kinds in ("fi", "fu"):
        return _saturated(x, dtype)
    word = WORDS.get(kinds) or CHANGES[given][wider > 0]
    return plain(f"{word} {{s}} {{x}} to {{t}}", x, dtype=dtype)


def _saturated(x: Any, dtype: np.dtype) -> Any:
    """What does not fit is poison for fptosi, and then not selected: x saturates, nan gives 0.

    (LLVM has llvm.fptosi.sat for this, which keeps a loop from using vector instructions.)
    """
    limits = np.iinfo(dtype)
    inside = plain(f"fpto{SIGNS[dtype.kind]}i {{s}} {{x}} to {{t}}", x, dtype=dtype)
    above = select(x < float(limits.min), int(limits.min), inside)
    limited = select(x >= float(int(limits.max) + 1), int(limits.max), above)
    return select(x != x, 0, limited)


# LLVM has float16 as `half`: on all but very old processors a conversion is one instruction.
# bfloat16 is the upper half of a float32. Rounding to nearest even: add 0x7fff, and one more
# where the kept part is odd. A nan must not round up to infinity: it gets a quiet bit instead.


def _from_half(x: Any, dtype: np.dtype) -> Any:
    if x.dtype == FLOAT16:
        return plain("fpext half {x} to {t}", plain("bitcast i16 {x} to half", x), dtype=dtype)
    return (x.bits("u2").to("u4") << 16).bits(dtype)


def _to_half(x: Any, dtype: np.dtype) -> Any:
    if dtype == FLOAT16:
        return plain("bitcast half {x} to i16", plain("fptrunc {s} {x} to half", x), dtype=dtype)
    bits = x.bits("u4")
    kept = bits >> 16
    number = (bits + ((kept & 1) + 0x7FFF)) >> 16
    return select(x != x, kept | 64, number).to("u2").bits(dtype)
