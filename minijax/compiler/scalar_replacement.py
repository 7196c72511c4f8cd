"""Scalar replacement: what a body has computed, loaded or stored is not computed or loaded again.

Builds on steps.py; loop_unrolling.py and outer_loop_vectorization.py use it. Chapter 26.
In LLVM: its passes `early-cse`, `gvn` and `sroa`.
"""

import operator
from collections.abc import Collection, Iterable
from typing import Any

from .loops import (Assign, Buffer, Constant, Declare, Let, Load, Operand, Read, Statement, Store,
                    accesses, bodies, substituted, walk, with_origin)
from .steps import strides


def replace_by_scalars(body: Iterable[Statement], private: Collection[Buffer] = (),
                       needed: Collection[Any] = ()) -> tuple[Statement, ...] | None:
    """The statements with scalars in place of what is known: operations, elements of memory, and
    variables that no inner body accesses.

    Nothing is stored in `private` temps, which only this body accesses. None if one of their
    elements is not known. Scalars that others need keep their names.
    """
    body = tuple(body)
    names: dict[Any, Operand] = {}
    known: dict[tuple, Operand] = {}  # operations, variables and elements
    inner = [*walk(each for each in body if bodies(each))]
    own = {each.variable for each in body if isinstance(each, Declare)}.difference(
        each.variable for each in inner if isinstance(each, Assign | Read)).difference(
        each.variable for each in body if isinstance(each, Read) and each.target in needed)
    result: list[Statement] = []
    for old in body:
        each = with_origin(substituted(old, names), old)
        is_kept = True
        match each:
            case Let(target, op, args):
                key: tuple = op, target.dtype, *map(_name, args)
            case Load(target, buffer, index) | Store(buffer, index, target):
                key = _element(buffer, index)
                is_kept = buffer not in private
                if isinstance(each, Load) and not (is_kept or key in known):
                    return None
            case Declare(variable, target) | Assign(variable, target) | Read(target, variable) if (
                    variable in own):
                key, is_kept = (variable,), False
            case _:
                changed = {*accesses(walk((each,)))}
                if not changed.isdisjoint(private):
                    return None
                known = {x: value for x, value in known.items() if x[0] not in changed}
                result.append(each)
                continue
        if isinstance(each, Let | Load | Read) and key in known and target not in needed:
            names[target] = known[key]
            continue
        if isinstance(each, Store):
            known = {x: value for x, value in known.items() if x[0] is not each.buffer
                     or isinstance(x[1], int) and isinstance(key[1], int)}
        known[key] = target
        if is_kept:
            result.append(each)
    return tuple(result)


def _element(buffer: Buffer, index: tuple[Operand, ...]) -> tuple:
    """A buffer, and which of its elements: a number, or names."""
    at = [int(x.value) for x in index if isinstance(x, Constant)]
    if len(at) < len(index):
        return buffer, *map(_name, index)
    return buffer, sum(map(operator.mul, at, strides(buffer, len(at))))


def _name(x: Any) -> Any:
    return (x.dtype, x.value.tobytes()) if isinstance(x, Constant) else x
