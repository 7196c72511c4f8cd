"""Which loops are printed in vectors, and how many lanes they have.

Builds on probe.py, steps.py and interleaving.py; vector_text.py prints them. Chapter 26.
In XLA: LLVM's loop vectoriser.
"""

import math
from collections.abc import Iterable, Mapping

from minijax.primitives.smooth_lengths import prime_factors

from .elementary import FORMULAS
from .interleaving import groups_in
from .loops import (BOOL, INT64, Assign, Declare, For, If, Let, Load, Read, Statement, Store,
                    Variable, accesses, cached_on_node, walk)
from .probe import cost_of
from .steps import Steps

# Operations of a loop, with which it pays to do another access lane by lane, and to shuffle once
# more to sort interleaved ones.
PER_GATHER, PER_SHUFFLE = 8, .5
STRAIGHT = Let | Load | Store | Declare | Read | Assign


class Vectorized(Statement):
    """The body of a loop for so many iterations, from the one of its index on; with `totals`, for
    as many more for each next row. A row has the names of the vectors that it adds to.
    """

    loop: For
    lanes: int
    totals: tuple[Mapping[Variable, str], ...] = ({},)
    count: int | None = None  # of iterations, if they do not fill the rows


@cached_on_node
def lanes_in(loop: For, register: int) -> int:
    """The number of iterations that fill a vector register; 0 for a loop that is not printed in
    vectors: its iterations depend on each other, it has long loops, or it would be no faster.
    """
    if loop.vectorize not in ("parallel", "reduce") or not pays(loop) or (
            loop.vectorize == "reduce" and not (
                all(isinstance(each, Let | Load | Store) for each in loop.body)
                and have_own_elements(loop))):
        return 0
    values = [each.value if isinstance(each, Store) else each.target for each in walk(loop.body)
              if isinstance(each, Let | Load | Store)]
    sizes = [x.dtype.itemsize for x in values if x.dtype not in (INT64, BOOL)]
    lanes = register // max(sizes, default=8)
    if (count := loop.trip_count) is not None:
        filled = 1 << max(count, 1).bit_length() - 1
        # Functions of some lanes take as long as those of all.
        calls = any(isinstance(each, Let) and each.op in FORMULAS for each in walk(loop.body))
        lanes = min(lanes, 2 * filled if calls and filled < count else filled)
    return lanes if lanes > 1 else 0


def pays(loop: For) -> bool:
    """Whether the iterations of a loop are faster in vectors, if they may be printed so."""
    if not is_straight(loop.body):
        return False
    groups = groups_in(loop)
    alone = gathers(loop)[0] - len(groups)
    if groups and not any(isinstance(each, Let) and each.target.dtype != INT64
                          for each in loop.body):  # it only sorts
        return alone < 1
    return cost_of(loop.body) >= PER_GATHER * max(alone - 1, 0) + PER_SHUFFLE * shuffles(loop)


def shuffles(loop: For) -> int:
    """How many times vectors are shuffled to sort interleaved accesses."""
    return sum(p - 1 for group in groups_in(loop).values() for p in prime_factors(len(group)))


def is_straight(body: Iterable[Statement]) -> bool:
    """Whether a body has no loops, and only branches that are printed with masks."""
    return all(is_straight((*each.then, *each.orelse)) if isinstance(each, If)
               else isinstance(each, STRAIGHT) for each in body)


@cached_on_node
def gathers(loop: For) -> tuple[float, Steps]:
    """The number of accesses in a loop that are neither of one element nor of neighbours; infinite,
    if a branch has one that is not of neighbours: its address may be invalid in other lanes. And
    the steps of its numbers.
    """
    steps = Steps({loop.index: 1})

    def count(body: Iterable[Statement], masked: bool = False) -> float:
        total = 0.
        for each in body:
            if isinstance(each, Load | Store):
                step = steps.at(each.buffer, each.index)
                if masked and step != 1:
                    return math.inf
                total += step not in (-1, 0, 1)
            elif isinstance(each, If):
                total += count((*each.then, *each.orelse), masked=True)
            steps.enter(each, masked)
        return total
    return count(loop.body), steps


def may_repeat(loop: For) -> bool:
    """Whether an iteration may run twice: it loads nothing that the loop stores."""
    return loop.vectorize == "parallel" and set(accesses(walk(loop.body), Load)).isdisjoint(
        accesses(walk(loop.body), Store))


def have_own_elements(loop: For) -> bool:
    """Whether the iterations of a loop may run statement by statement: what one stores, no other
    one accesses.
    """
    (_, steps), stored = gathers(loop), {}
    accesses = [each for each in walk(loop.body) if isinstance(each, Load | Store)]
    for each in accesses:
        if isinstance(each, Store):
            stored[each.buffer] = each.index
    return all(each.index == stored.get(each.buffer, each.index)
               and (isinstance(each, Load) or steps.at(each.buffer, each.index))
               for each in accesses)
