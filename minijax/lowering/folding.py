"""Scalar expressions that need no code: constants, units, and sums of constants.

Stands on loops.py; the builder asks it before it emits an operation. Chapter 23.
In XLA: the algebraic simplifier, of which this is the part that index arithmetic needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .loops import OPS, Constant, Let, Operand, Scalar
from .scalars import BOOL

if TYPE_CHECKING:
    from .arithmetic import Arithmetic


def fold(b: Arithmetic, op: str, args: tuple[Operand, ...], dtype: np.dtype) -> Operand | None:
    """The operand that equals op(*args), where no operation is needed; None elsewhere."""
    if all(isinstance(x, Constant) for x in args):
        return _evaluate(b, op, args, dtype)
    if op == "select":
        return _select(*args)
    if op in ("and", "or") and dtype == BOOL:
        return _logic(op, *args)
    if len(args) == 2:
        return _arithmetic(b, op, *args)
    return None


def _evaluate(b: Arithmetic, op: str, args: Any, dtype: np.dtype) -> Constant:
    values = [np.asarray(x.value) for x in args]
    if OPS[op].result == "target":
        return b.const(OPS[op].meaning(values[0], dtype), dtype)
    return b.const(OPS[op].meaning(*(v[()] for v in values)), dtype)


def _select(condition: Operand, x: Operand, y: Operand) -> Operand | None:
    if isinstance(condition, Constant):
        return x if condition.value else y
    return x if x is y else None


def _logic(op: str, x: Operand, y: Operand) -> Operand | None:
    for constant, other in ((x, y), (y, x)):
        if isinstance(constant, Constant):
            absorbing = bool(constant.value) == (op == "or")
            return constant if absorbing else other
    return x if x is y else None


def _is(x: Operand, number: int) -> bool:
    return isinstance(x, Constant) and bool(x.value == number)


def _arithmetic(b: Arithmetic, op: str, x: Operand, y: Operand) -> Operand | None:
    """Units and zeros. Only what is exact: x + 0.0 is not x for x = -0.0, x - 0.0 is."""
    integer = x.dtype.kind in "iu"
    if op in ("mul", "div") and _is(y, 1):
        return x
    if op == "sub" and _is(y, 0) and (integer or not np.signbit(y.value)):  # type: ignore[union-attr]
        return x
    if op == "mul" and _is(x, 1):
        return y
    return _integer(b, op, x, y) if integer else None


def _integer(b: Arithmetic, op: str, x: Operand, y: Operand) -> Operand | None:
    if op in ("add", "or", "xor", "shl", "shr_logical", "shr_arithmetic") and _is(y, 0):
        return x
    if op in ("add", "or", "xor") and _is(x, 0):
        return y
    if (op in ("mul", "and") and (_is(x, 0) or _is(y, 0))) or (op == "rem" and _is(y, 1)):
        return b.const(0, x.dtype)
    if op == "sub" and x is y:
        return b.const(0, x.dtype)
    if op in ("add", "sub") and isinstance(y, Constant):
        return _sum_of_constants(b, op, x, y)
    return None


def _sum_of_constants(b: Arithmetic, op: str, x: Operand, y: Constant) -> Operand | None:
    """(z + c) + d is z + (c + d), which wraps the same way."""
    inner = b.definition(x) if isinstance(x, Scalar) else None
    if not isinstance(inner, Let) or inner.op not in ("add", "sub"):
        return None
    z, c = inner.args
    if not isinstance(c, Constant):
        return None
    signed = [v.value if o == "add" else -v.value for v, o in ((c, inner.op), (y, op))]
    with np.errstate(over="ignore"):
        return b.add(z, b.const(signed[0] + signed[1], x.dtype))
