"""Loop unrolling: a short loop becomes as many copies of its body.

Variables of the copies become registers, and accesses of several copies may be interleaved. Builds
on index_set_splitting.py and vectorization.py; llvm.py prints the result. Chapter 24.
In LLVM: its pass `loop-unroll`.
"""

from collections.abc import Collection, Iterable
from functools import partial
from typing import Any

from .cpu import vector_registers
from .index_set_splitting import specialized
from .loops import Call, For, Statement, bodies, integer, used, walk, with_bodies
from .scalar_replacement import replace_by_scalars
from .vectorization import lanes_in, lanes_of_sum

MAX_ITERATIONS = 15  # longer sums have their terms in lanes
MAX_COPIED = 200  # statements of all copies
MAX_FOLDED = 800  # before what an iteration knows is folded


def unroll_loops(body: Iterable[Statement], needed: Collection[Any] = ()) -> tuple[Statement, ...]:
    """The same statements, with short loops unrolled, from the innermost on: those that are not
    printed in vectors. Scalars that others need keep their names.
    """
    register, old = vector_registers()[1], tuple(body)
    new = tuple(each for statement in old for each in (
        _unrolled(with_bodies(statement, partial(unroll_loops, needed=used(statement))), register)
        if bodies(statement) else (statement,)))
    if len(new) == len(old):  # no copies, in which something would be known
        return new
    return replace_by_scalars(new, needed=needed) or ()


def _unrolled(loop: Statement, register: int) -> tuple[Statement, ...]:
    """The copies of a loop's body, or the loop itself."""
    if not isinstance(loop, For) or loop.trip_count is None:
        return (loop,)
    inside = list(walk(loop.body))
    if (loop.trip_count > MAX_ITERATIONS or loop.trip_count * len(inside) > MAX_FOLDED
            or any(isinstance(each, For | Call) for each in inside) or lanes_in(loop, register)
            or lanes_of_sum(loop)):
        return (loop,)
    result = copies(loop)
    return result if len([*walk(result)]) <= MAX_COPIED else (loop,)


def copies(loop: For) -> tuple[Statement, ...]:
    """The copies of a loop's body, one for each iteration."""
    first = int(loop.start.value)  # type: ignore[union-attr]
    return tuple(each for k in range(first, first + (loop.trip_count or 0)) for each in specialized(
        loop.body, {loop.index: integer(k)}))
