"""Steps: by how much the numbers of a loop's iteration grow to the next one.

Builds on loops.py; vectorization.py and vector_text.py use them, and coalescing.py for a GPU.
Chapter 26. In LLVM: scalar evolution.
"""

import math
from collections.abc import Sequence
from typing import Any

from .loops import (INT64, Assign, Buffer, Constant, Declare, Let, Load, Operand, Read, Statement)


class Steps(dict[Any, int | None]):
    """How much larger each number is in the next lane: None if it is in no such order.

    Only integers of 64 bits have steps other than 0; indices do.
    """

    def __missing__(self, x: Any) -> int:
        return 0

    def enter(self, statement: Statement, masked: bool = False) -> None:
        """Take in what a statement defines or assigns; with a mask, only in some lanes."""
        match statement:
            case Let(target):
                self[target] = self.of(statement)
            case Load(target, buffer, index):
                self[target] = 0 if self.at(buffer, index) == 0 else None
            case Declare(target, value) | Assign(target, value):
                self[target] = None if masked and isinstance(statement, Assign) else self[value]
            case Read(target, variable):
                self[target] = self[variable]

    def of(self, let: Let) -> int | None:
        """The step of an operation's result."""
        steps = [step for x in let.args if (step := self[x]) is not None]
        if len(steps) < len(let.args) or any(steps) and let.target.dtype != INT64:
            return None
        if not any(steps):
            return 0
        factors = [x for x in let.args if isinstance(x, Constant)]
        match let.op:
            case "add":
                return sum(steps)
            case "sub":
                return steps[0] - steps[1]
            case "mul" if factors:
                return sum(steps) * int(factors[0].value)
        return None

    def at(self, buffer: Buffer, index: Sequence[Operand]) -> int | None:
        """How many elements of a buffer an index is further on in the next lane."""
        steps = [step for x in index if (step := self[x]) is not None]
        return None if len(steps) < len(index) else sum(
            step * size for step, size in zip(steps, strides(buffer, len(index)), strict=True))


def strides(buffer: Buffer, count: int) -> list[int]:
    """How many elements of a buffer it is from one to the next by each number of an index."""
    last = buffer.shape[len(buffer.shape) - count + 1:]
    return [math.prod(last[k:]) for k in range(count)]
