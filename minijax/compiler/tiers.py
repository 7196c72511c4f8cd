"""Tiered compilation: a program first runs code that took little time to compile.

Builds on probe.py and vectorization.py; cache.py makes both tiers. Chapter 26.
In JAX: no counterpart; JavaScript engines have tiers.
"""

import contextlib
import weakref
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from .cpu import vector_registers
from .elementary import FORMULAS
from .lanes import partials_of
from .loops import Call, For, Kernel, Let, Statement, While, walk
from .probe import cost_of
from .vectorization import lanes_in
from .vectors import called_in, function, lanes_of

# Seconds: of LLVM's optimiser for a kernel and for each of its statements; of quick code for a
# simple operation on numbers or on vectors, and for one of a product.
PER_KERNEL, PER_STATEMENT, PER_OPERATION, PER_TERM = 5e-3, 0.5e-3, 1e-9, 0.6e-9

# Seconds of a call of quick code, at most, besides a tenth of what optimising takes: a later
# process runs it from disk, and must not be slow.
LONGEST = 0.02


def is_short(kernel: Kernel) -> bool:
    """Whether a call of quick code takes less time than optimising it. A while loop may run for
    ever.
    """
    statements = list(walk(kernel.body))
    optimising = PER_KERNEL + len(statements) * PER_STATEMENT
    return (not any(isinstance(each, While) for each in statements)
            and Estimate(kernel).seconds(kernel.body) < min(optimising, LONGEST + optimising / 10))


class Estimate:
    """Estimates how long quick code of a kernel takes."""

    def __init__(self, kernel: Kernel) -> None:
        self.register = vector_registers()[1]
        self.called = called_in(kernel.body)
        self.lanes = lanes_of(self.called)  # which a function computes even for a single number

    def seconds(self, body: Iterable[Statement]) -> float:
        """About how long a body takes."""
        return sum(map(self.of_statement, body))

    def of_statement(self, statement: Statement) -> float:
        if isinstance(statement, For):
            return self.of_loop(statement)
        calls = isinstance(statement, Let) and statement.op in FORMULAS and function(
            statement.op, statement.target.dtype) in self.called
        return cost_of((statement,)) * (PER_TERM if isinstance(statement, Call) else
                                        PER_OPERATION * (self.lanes if calls else 1))

    def of_loop(self, loop: For) -> float:
        iterations = cost_of((replace(loop, body=()),))
        lanes = lanes_in(loop, self.register)
        for x in partials_of(loop, all_kinds=True):
            lanes = self.register // x.dtype.itemsize
        if lanes:
            return iterations / lanes * (1 + cost_of(loop.body)) * PER_OPERATION
        return iterations * (PER_OPERATION + self.seconds(loop.body))


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
