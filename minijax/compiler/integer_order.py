"""Maxima of floats as maxima of unsigned integers in the same order.

A processor's maximum of floats neither keeps a nan nor tells the zeros apart, and what it takes to
do so waits for the previous term; a maximum of integers is one short instruction.  Builds on
vectorization.py; llvm.py prints the result.  Chapter 26.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from .arithmetic import Arithmetic
from .loops import (Assign, Declare, For, Let, Read, Scalar, Statement, Variable, changed,
                    innermost_first, walk)
from .vectorization import assignments, lanes_of_sum, reductions


@innermost_first
def order_as_integers(loop: For) -> Iterable[Statement]:
    """Loops that find the extrema of floats as those of integers."""
    if not lanes_of_sum(loop):
        return [loop]
    before, after, new = list[Statement](), list[Statement](), loop
    for x, op in reductions(loop).items():
        key = Variable(x.name, _unsigned(x.dtype))
        if op in ("min", "max") and x.dtype.kind == "f":
            b, first, last = Arithmetic(), Scalar(x.name, x.dtype), Scalar(x.name, key.dtype)
            start = key_of(b, first, op)
            before += [Read(first, x), *b.scopes[0].statements, Declare(key, start)]
            b = Arithmetic()
            number = number_of(b, last, op, x.dtype)
            after += [Read(last, key), *b.scopes[0].statements, Assign(x, number)]
            new = changed(new, body=_with_key(new, x, op, key))
    return [*before, new, *after]


def _with_key(loop: For, x: Variable, op: str, key: Variable) -> tuple[Statement, ...]:
    """The body of a loop with a variable for the key of an extremum. In a loop that reduces nothing
    else uses the extremum so far.
    """
    assign, = [each for each in assignments(loop) if each.variable is x]
    reads = {each.target for each in walk(loop.body)
             if isinstance(each, Read) and each.variable is x}
    let, = [each for each in loop.body if isinstance(each, Let) and each.target is assign.value]
    [term] = [arg for arg in let.args if arg not in reads]
    b, old, greatest = Arithmetic(), Scalar("", key.dtype), Scalar("", key.dtype)
    key_of_term = key_of(b, term, op)
    new: dict[Statement, list[Statement]] = {
        let: [*b.scopes[0].statements, Read(old, key), Let(greatest, "max", (old, key_of_term))],
        assign: [Assign(key, greatest)]}
    return tuple(x for each in loop.body if getattr(each, "target", None) not in reads
                 for x in new.get(each, [each]))


# ── Keys ─────────────────────────────────────────────────────────────────────────────────────
# From -inf on: the bits of a positive number grow with it, those of a negative one are reversed.
# The nans, of either sign, come after inf.

def _unsigned(dtype: np.dtype) -> np.dtype:
    return np.dtype(f"u{dtype.itemsize}")


def _ordered(s: Any, x: Any, dtype: np.dtype) -> Any:
    """The bits of x, but inverted behind a sign that is set, as another dtype; its own inverse."""
    size = 8 * dtype.itemsize - 1
    bits = s.bitcast(x, f"i{dtype.itemsize}")
    sign = s.shr_arithmetic(bits, size)
    return s.bitcast(s.xor(bits, s.and_(sign, (1 << size) - 1)), dtype)


def key_of(s: Any, x: Any, op: str) -> Any:
    """An unsigned integer that grows with a number; for the minimum, with its negative.

    >>> s = Arithmetic()
    >>> [key_of(s, s.const(x, np.dtype("float32")), "max").value for x in (-np.inf, 1., np.nan)]
    [np.uint32(0), np.uint32(3204448257), np.uint32(4282384385)]
    """
    x, least = s.neg(x) if op == "min" else x, s.const(-np.inf, x.dtype)
    return s.sub(*(_ordered(s, each, _unsigned(x.dtype)) for each in (x, least)))


def number_of(s: Any, key: Any, op: str, dtype: np.dtype) -> Any:
    """The number of a key."""
    least = _ordered(s, s.const(-np.inf, dtype), key.dtype)
    x = _ordered(s, s.add(key, least), dtype)
    return s.neg(x) if op == "min" else x
