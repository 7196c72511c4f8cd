"""Elementary functions in machine code: written where they stand, or called, a vector at a time.

Stands on arithmetic.py; llvm.py prints with it. A program with many of them would otherwise take
longer to compile for each. Chapter 25. In XLA: `xla/codegen/intrinsic`.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from minijax.primitives.infix import infix

from .arithmetic import Arithmetic
from .elementary import FORMULAS
from .loops import Let, Operand, Scalar, Statement, walk

BYTES = 64  # of a vector: what a processor has no registers for, LLVM cuts into pieces
FEW = 150   # operations: so many are written where they stand, with no call around them


class Written(NamedTuple):
    """A formula as operations on its parameters."""

    parameters: tuple[Scalar, ...]
    body: tuple[Statement, ...]
    result: Operand


@dataclass(frozen=True, eq=False)
class Function:
    """An elementary function for one dtype, in its parts."""

    name: str
    dtype: np.dtype
    usual: Written
    rare: tuple[Written, ...]  # of some: a test of the arguments, and the result where it holds


@cache
def function(name: str, dtype: np.dtype) -> Function:
    """An elementary function as operations.

    >>> len(function("exp", np.dtype("float32")).usual.body)
    28
    """
    formula, arity = FORMULAS[name], FORMULAS[name].__code__.co_argcount
    usual, *rare = (_written(part, arity, dtype)
                    for part in getattr(formula, "parts", (formula,)))
    return Function(name, dtype, usual, tuple(rare))


def _written(formula: Callable, arity: int, dtype: np.dtype) -> Written:
    b = Arithmetic()
    parameters = tuple(Scalar(f"x{k}", dtype) for k in range(arity))
    result = infix(formula)(b, *parameters)
    return Written(parameters, tuple(b.scopes[0].statements), result)


def functions_in(body: Iterable[Statement]) -> Counter[Function]:
    """The elementary functions of a program, and how often each stands there."""
    return Counter(function(each.op, each.target.dtype) for each in walk(body)
                   if isinstance(each, Let) and each.op in FORMULAS)


def called_in(body: Iterable[Statement]) -> set[Function]:
    """Those that are called: long ones, and what has a rare case, which is a branch."""
    return {each for each, count in functions_in(body).items()
            if each.rare or len(each.usual.body) * count > FEW}
