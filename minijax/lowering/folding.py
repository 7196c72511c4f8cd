"""Scalar expressions that need no code: constants, units, and sums of constants.

Stands on loops.py; the builder asks it before it emits an operation. Chapter 23.
In XLA: the algebraic simplifier, of which this is the part that index arithmetic needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .loops import OPS, Constant, Operand, Scalar

if TYPE_CHECKING:
    from .arithmetic import Arithmetic

# By kind of dtype ("i": signed or not): the constant on the right, or on the left of what commutes,
# that leaves the other operand as it is, and the constant that is the result itself. Only what is
# exact: x + 0.0 is not x for x = -0.0, x - 0.0 is.
_LOGIC = {"and": 1, "or": 0}
_UNITS = {
    "b": _LOGIC, "f": {"mul": 1, "div": 1, "sub": 0},
    "i": {"mul": 1, "div": 1, "sub": 0, "add": 0, "or": 0, "xor": 0, "shl": 0, "shr_logical": 0,
          "shr_arithmetic": 0}}
_COMMUTING = ("add", "mul", "and", "or", "xor")
_ABSORBING = {"b": {"and": 0, "or": 1}, "f": {}, "i": {"mul": 0, "and": 0}}


def fold(b: Arithmetic, op: str, args: tuple[Operand, ...], dtype: np.dtype) -> Operand | None:
    """The operand that equals op(*args), where no operation is needed; None elsewhere."""
    if all(isinstance(x, Constant) for x in args):
        values = [np.asarray(x.value)[()] for x in args]  # type: ignore[union-attr]
        target = [dtype] if OPS[op].result == "target" else []
        return b.const(OPS[op].meaning(*values, *target), dtype)
    if op == "select":
        condition, x, y = args
        if isinstance(condition, Constant):
            return x if condition.value else y
        return x if x is y else None
    return _fold_pair(b, op, *args) if len(args) == 2 else None


def _fold_pair(b: Arithmetic, op: str, x: Operand, y: Operand) -> Operand | None:
    kind = "i" if x.dtype.kind == "u" else x.dtype.kind
    for constant, other in ((y, x), (x, y)):
        if _is(constant, _UNITS[kind].get(op)) and (constant is y or op in _COMMUTING):
            return other
        if _is(constant, _ABSORBING[kind].get(op)):
            return constant
    if kind == "i" and (x is y and op == "sub" or op == "rem" and _is(y, 1)):
        return b.const(0, x.dtype)
    if kind == "b" and x is y and op in _LOGIC:
        return x
    if kind == "i" and op in ("add", "sub") and isinstance(y, Constant):
        return _sum_of_constants(b, op, x, y)
    return None


def _is(x: Operand, number: int | None) -> bool:
    return isinstance(x, Constant) and bool(x.value == number) and not np.signbit(x.value)


def _sum_of_constants(b: Arithmetic, op: str, x: Operand, y: Constant) -> Operand | None:
    """(z + c) + d is z + (c + d), which wraps the same way."""
    inner = b.definition(x) if isinstance(x, Scalar) else None
    if inner is None or inner.op not in ("add", "sub"):
        return None
    z, c = inner.args
    if not isinstance(c, Constant):
        return None
    signed = [v.value if o == "add" else -v.value for v, o in ((c, inner.op), (y, op))]
    with np.errstate(over="ignore"):
        total = signed[0] + signed[1]
        return b.sub(z, -total) if total < 0 else b.add(z, total)
