"""Tiered compilation: a program first runs code that took little time to compile.

Builds on probe.py and vectors.py; cache.py makes both tiers, of one text. Chapter 26.
In JAX: no counterpart; JavaScript engines have tiers.
"""

import contextlib
import weakref
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from .loops import Call, For, Kernel, Statement, While, walk
from .probe import cost_of
from .vectors import called_in, lanes_of

# Seconds: of LLVM's optimiser for a character of a text; of quick code for a simple operation, and
# for one of a sum or a product, whose terms wait for each other.
PER_CHARACTER, PER_OPERATION, PER_TERM = 2.5e-6, 0.35e-9, 1.5e-9

# Seconds of a call of quick code, at most. A later process runs it from disk, and must not be slow.
LONGEST = 0.01


def is_short(kernel: Kernel, text: str) -> bool:
    """Whether a call of quick code takes less time than optimising it. A while loop may run for
    ever.
    """
    called = called_in(kernel.body)
    lanes = lanes_of(called) if called else 1  # of which quick code needs one
    return (lanes * seconds_of(kernel.body) < min(len(text) * PER_CHARACTER, LONGEST)
            and not any(isinstance(each, While) for each in walk(kernel.body)))


def seconds_of(body: Iterable[Statement]) -> float:
    """About how long quick code takes for a body."""
    total = 0.
    for statement in body:
        if isinstance(statement, For) and statement.vectorize != "reduce":
            iterations = cost_of((replace(statement, body=()),))
            total += iterations * (PER_OPERATION + seconds_of(statement.body))
        else:
            is_of_terms = isinstance(statement, Call | For)
            total += cost_of((statement,)) * (PER_TERM if is_of_terms else PER_OPERATION)
    return total


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
