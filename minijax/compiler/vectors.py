"""Elementary functions in machine code: inlined, or called in a vectorised variant.

Builds on arithmetic.py; function_text.py prints with it. A program with many of them would
otherwise take longer to compile for each. Chapter 25. In XLA: `xla/codegen/intrinsic`.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from minijax.primitives.infix import infix

from .arithmetic import Arithmetic
from .builder import Builder
from .elementary import FORMULAS
from .loops import OPS, For, Let, Operand, Scalar, Statement, walk

MAX_INLINED = 150  # operations of an elementary function that are inlined


@dataclass(frozen=True, eq=False)
class Function:
    """An elementary function of one dtype, as operations on its parameters."""

    name: str
    dtype: np.dtype
    formulas: tuple[Callable, ...]  # the usual one; of some, the test of a rare case and that case
    parameters: tuple[Scalar, ...]
    body: tuple[Statement, ...]
    result: Operand

    def with_branch(self, b: Builder, args: Sequence[Operand]) -> Operand:
        """The result for some arguments; the rare case is a branch."""
        usual, *rest = self.formulas
        value = usual(b, *args)
        if not rest:
            return value
        needs_it, rare = rest
        result = b.variable(value)
        with b.when(needs_it(b, *args)):
            b.assign(result, rare(b, *args))
        return b.read(result)


@cache
def function(name: str, dtype: np.dtype) -> Function:
    """An elementary function as operations.

    >>> len(function("exp", np.dtype("float32")).body)
    28
    """
    formulas = tuple(map(infix, getattr(FORMULAS[name], "parts", (FORMULAS[name],))))
    parameters = tuple(Scalar(x, dtype) for x in "xy"[:OPS[name].arity])
    b = Arithmetic()
    result = formulas[0](b, *parameters)
    return Function(name, dtype, formulas, parameters, tuple(b.scopes[0].statements), result)


def functions_in(body: Iterable[Statement]) -> Iterator[Function]:
    """The elementary functions of a program, as often as they occur."""
    return (function(each.op, each.target.dtype) for each in walk(body)
            if isinstance(each, Let) and each.op in FORMULAS)


def called_in(body: Iterable[Statement]) -> set[Function]:
    """The elementary functions that a program calls: those with many uses, and those with a rare
    case, which is a branch.
    """
    uses = Counter(functions_in(body))
    return {f for f, count in uses.items() if f.formulas[1:] or len(f.body) * count > MAX_INLINED}


def calls(loop: For, called: Collection[Function]) -> bool:
    """Whether the body of a loop calls such functions."""
    return any(f in called for f in functions_in(loop.body))
