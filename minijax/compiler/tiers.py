"""Tiered compilation: a program first runs code that took little time to compile.

Builds on probe.py; cache.py makes both tiers. Chapter 26.
In JAX: no counterpart; JavaScript engines have tiers.
"""

import contextlib
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from .loops import Kernel, While, walk
from .probe import cost_of

# Seconds that quick code loses with each operation; what a call of it may lose, and more of them
# for each statement: what optimising one takes.
PER_OPERATION, LONGEST, PER_STATEMENT = 0.03e-9, 0.01, 0.1e-3


def is_short(kernel: Kernel) -> bool:
    """Whether a call of quick code loses less time than optimising takes. A while loop may run for
    ever. The code of the functions that it calls is the same.
    """
    statements = list(walk(kernel.body))
    return not any(isinstance(each, While) for each in statements) and (
        cost_of(kernel.body, False) * PER_OPERATION < LONGEST + len(statements) * PER_STATEMENT)


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
