"""Loop unswitching: a loop whose body asks what it does not change becomes a branch with two loops.

Builds on index_set_splitting.py; llvm.py prints the result. Chapter 24.
In LLVM: its pass `simple-loop-unswitch`.
"""

import math
from collections.abc import Iterable

from .arithmetic import Arithmetic
from .index_set_splitting import MAX_LOOPS, MAX_STATEMENTS, MIN_ITERATIONS, specialized
from .loops import (BOOL, INT64, Constant, For, If, Let, Load, Operand, Scalar, Statement, bodies,
                    changed, defined, innermost_first, used, walk)
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
        sides = [_with_test(loop, test, value) for value in (True, False)]
        if min(cost_of(side.body) for side in sides) < most:
            return [If(test, *(unswitch_loops([side]) for side in sides))]
    return [loop]


def _with_test(loop: For, test: Operand, value: bool) -> For:
    """The loop where a test is known."""
    b, index = Arithmetic(), Scalar(loop.index.name, INT64)
    body = specialized(loop.body, {loop.index: index, test: b.const(value, BOOL)}, b)
    return changed(loop, index=index, body=without_unused(body))


def without_unused(body: Iterable[Statement]) -> tuple[Statement, ...]:
    """The statements without operations and loads whose results nothing uses."""
    kept: list[Statement] = []
    every = tuple(body)
    needed = {x for outer in every if bodies(outer) for each in walk((outer,)) for x in used(each)}
    for each in reversed(every):
        if not isinstance(each, Let | Load) or each.target in needed:
            kept.append(each)
            needed.update(used(each))
    return tuple(reversed(kept))
