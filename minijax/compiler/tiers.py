"""Tiered compilation: a program first runs code that took little time to compile.

Builds on probe.py and vectorization.py; cache.py makes both tiers. Chapter 26.
In JAX: no counterpart; JavaScript engines have tiers.
"""

import contextlib
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .cpu import vector_registers
from .elementary import FORMULAS
from .lanes import partials_of
from .loops import Assign, Call, For, If, Kernel, Let, Statement, While, walk
from .probe import UNKNOWN_TRIP_COUNT, cost_of
from .vectorization import lanes_in
from .vectors import called_in, function, lanes_of

# Seconds that quick code loses with each operation, on numbers or on vectors; and with each new
# value of a variable, which is stored in memory. The index of a loop is one.
PER_OPERATION, PER_VARIABLE = 0.25e-9, 2e-9

# Seconds that a call of quick code may lose, and more of them for each statement: what optimising
# one takes.
LONGEST, PER_STATEMENT = 0.01, 0.1e-3

RARE = 1 / 8  # how often a branch is taken that has loops, and no other side


def is_short(kernel: Kernel) -> bool:
    """Whether a call of quick code takes little longer than one of optimised code. A while loop may
    run for ever.
    """
    statements = list(walk(kernel.body))
    limit = LONGEST + len(statements) * PER_STATEMENT
    return not any(isinstance(each, While) for each in statements) and (
        cost_of(kernel.body) * PER_VARIABLE < limit  # without vectors
        or Estimate(kernel).seconds(kernel.body) < limit)


class Estimate:
    """Estimates how much longer quick code of a kernel takes than optimised code."""

    def __init__(self, kernel: Kernel) -> None:
        self.register = vector_registers()[1]
        self.called = called_in(kernel.body)
        self.lanes = lanes_of(self.called)  # which a function computes even for a single number

    def seconds(self, body: Iterable[Statement]) -> float:
        """About how much longer a body takes."""
        return sum(map(self.of_statement, body))

    def of_statement(self, statement: Statement) -> float:
        match statement:
            case For():
                return self.of_loop(statement)
            case If(_, then, orelse):
                is_rare = not orelse and any(isinstance(each, For) for each in then)
                return self.seconds((*then, *orelse)) * (RARE if is_rare else 1 / 2)
            case Assign():
                return PER_VARIABLE
            case Call():
                return 0.  # of the same code
        calls = isinstance(statement, Let) and statement.op in FORMULAS and function(
            statement.op, statement.target.dtype) in self.called
        return cost_of((statement,)) * PER_OPERATION * (self.lanes if calls else 1)

    def of_loop(self, loop: For) -> float:
        iterations = UNKNOWN_TRIP_COUNT if loop.trip_count is None else loop.trip_count
        lanes = lanes_in(loop, self.register)
        for x in partials_of(loop):
            lanes = self.register // x.dtype.itemsize
        body = cost_of(loop.body) * PER_OPERATION if lanes else self.seconds(loop.body)
        return iterations / max(lanes, 1) * (PER_VARIABLE + body)


class QuickCode:
    """A kernel's function in its first tier. Its second call compiles optimised code, to which all
    callers switch.
    """

    def __init__(self, run: Callable[[list], int], optimised: Callable[[], Any]) -> None:
        self.run, self.optimised = run, optimised
        self.has_run = False
        self.callers: weakref.WeakSet[Any] = weakref.WeakSet()

    def __call__(self, arrays: list[np.ndarray]) -> int:
        if self.has_run:
            self.improve()
        self.has_run = True
        return self.run(arrays)

    def improve(self) -> None:
        """Switch to optimised code; if compiling fails, stay with quick code for good."""
        with contextlib.suppress(Exception):
            self.run = self.optimised()
        for call in list(self.callers):
            call.__globals__["run"] = self.run
            call.__dict__.pop("improve", None)
