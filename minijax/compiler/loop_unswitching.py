"""Loop unswitching: a loop whose body asks what it does not change becomes a branch with two loops.

Builds on index_set_splitting.py; llvm.py prints the result. Chapter 24.
In LLVM: its pass `simple-loop-unswitch`.
"""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from .index_set_splitting import MAX_LOOPS, MAX_STATEMENTS, MIN_ITERATIONS, specialized_loop
from .loops import (BOOL, Constant, For, If, Let, Load, Statement, changed, defined,
                    innermost_first, used, walk)
from .probe import cost_of

SAVED = 2 / 3  # of the loop's operations that one side of a choice must do without


@innermost_first
def unswitch_loops(loop: For) -> Iterable[Statement]:
    """Loops inside of the branches on which they depend."""
    inside = list(walk(loop.body))
    if (loop.trip_count or MIN_ITERATIONS) < MIN_ITERATIONS or len(inside) > MAX_STATEMENTS or any(
            isinstance(each, For) for each in inside):
        return [loop]
    own = {defined(each) for each in inside}
    # Each branch would be in a copy of the loop for both values of each test.
    if 2 ** len({each.test for each in loop.body if isinstance(each, If)} - own) > MAX_LOOPS:
        return [loop]
    for each in loop.body:
        match each:
            case If(test):
                most = math.inf
            case Let(_, "select", (test, *_)):
                most = (1 - SAVED) * cost_of(loop.body)
            case _:
                continue
        if isinstance(test, Constant) or test in own:
            continue
        sides = [without_unused(specialized_loop(loop, {test: Constant(np.bool_(value), BOOL)}))
                 for value in (True, False)]
        if min(cost_of(side.body) for side in sides) < most:
            return [If(test, *(unswitch_loops([side]) for side in sides))]
    return [loop]


def without_unused(loop: For) -> For:
    """A loop without operations and loads whose results nothing uses."""
    kept: list[Statement] = []
    needed: set[Any] = set()
    for each in reversed(loop.body):
        if not isinstance(each, Let | Load) or each.target in needed:
            kept.append(each)
            needed.update(x for inner in walk((each,)) for x in used(inner))
    return changed(loop, body=tuple(reversed(kept)))
