"""Which loops are printed in vectors, and how many lanes they have; sums, how many partial results.

Builds on probe.py, steps.py and interleaving.py; vector_text.py prints them. Chapters 24 and 26.
In XLA: LLVM's loop vectoriser.
"""

import math
from collections.abc import Iterable, Mapping

from minijax.primitives.smooth_lengths import prime_factors

from .elementary import FORMULAS
from .interleaving import groups_in, is_near
from .loops import (BOOL, INT64, Assign, Declare, For, If, Let, Load, Operand, Read, Statement,
                    Store, Variable, accesses, cached_on_node, walk)
from .probe import cost_of
from .steps import Steps

# Operations of a loop, with which it pays to do another access lane by lane, and to shuffle once
# more to sort interleaved ones.
PER_GATHER, PER_SHUFFLE = 8, .5
STRAIGHT = Let | Load | Store | Declare | Read | Assign
# The bytes of the partial sums of so many terms or more: if the terms are cheap, and if they call
# elementary functions, which take long. Short sums are added up one term after the other.
BYTES = {128: (128, 256), 64: (128, 128), 16: (64, 64), 4: (0, 64)}
REGISTER = 64  # bytes of the widest vector register
MIN_BYTES = 4  # bytes of a vector: LLVM may abort where it has two bytes in one
REDUCING = {"add", "mul", "min", "max", "and", "or", "xor"}
# Operations of one short instruction, in whatever order: one register of partial results is enough.
ORDERLESS = {"min", "max", "and", "or"}
SHORT = 4  # terms: fewer are combined one after the other


class Vectorized(Statement):
    """The body of a loop for so many iterations from the first one on; with `totals`, for as many
    more for each next row. A row has the names of the vectors that it adds to.
    """

    loop: For
    first: Operand
    lanes: int
    totals: tuple[Mapping[Variable, str], ...] = ({},)
    count: int | None = None  # of iterations, if they do not fill the rows


@cached_on_node
def lanes_in(loop: For, register: int) -> int:
    """The number of iterations that fill a vector register; 0 for a loop that is not printed in
    vectors: its iterations depend on each other, it has long loops, or it would be no faster.
    """
    if loop.vectorize != "parallel" or not pays(loop):
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
    narrowest = min([*sizes, *(x.dtype.itemsize for x in accesses(walk(loop.body)))], default=8)
    return lanes if lanes > 1 and lanes * narrowest >= MIN_BYTES else 0


def pays(loop: For) -> bool:
    """Whether the iterations of a loop are faster in vectors, if they may be printed so."""
    if not is_straight(loop.body):
        return False
    alone, _ = gathers(loop)
    if groups_in(loop) and not any(isinstance(each, Let) and each.target.dtype != INT64
                                   for each in loop.body):  # it only sorts
        return alone < PER_GATHER
    return cost_of(loop.body) >= max(alone - PER_GATHER, 0) + PER_SHUFFLE * shuffles(loop)


def shuffles(loop: For) -> int:
    """How many times vectors are shuffled to sort interleaved accesses."""
    return sum(p - 1 for group in groups_in(loop).values() for p in prime_factors(len(group)))


def is_straight(body: Iterable[Statement]) -> bool:
    """Whether a body has no loops, and only branches that are printed with masks."""
    return all(is_straight((*each.then, *each.orelse)) if isinstance(each, If)
               else isinstance(each, STRAIGHT) for each in body)


@cached_on_node
def gathers(loop: For) -> tuple[float, Steps]:
    """The operations with which it pays to access in vectors what is neither one element nor
    neighbours; infinite, if a branch has such: its address may be invalid in other lanes. And the
    steps of a loop's numbers.
    """
    groups, steps = groups_in(loop), Steps({loop.index: 1})

    def count(body: Iterable[Statement], masked: bool = False) -> float:
        total = 0.
        for each in body:
            if isinstance(each, Load | Store):
                step = steps.at(each.buffer, each.index)
                if masked and step != 1:
                    return math.inf
                if step not in (-1, 0, 1) and each not in groups:
                    total += PER_SHUFFLE * (step or 0) if is_near(each, step or 0) else PER_GATHER
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
    _, steps = gathers(loop)
    accesses = [each for each in walk(loop.body) if isinstance(each, Load | Store)]
    stored = {each.buffer: each.index for each in accesses if isinstance(each, Store)}
    return all(each.index == stored.get(each.buffer, each.index)
               and (isinstance(each, Load) or steps.at(each.buffer, each.index))
               for each in accesses)


# -- sums in lanes ---------------------------------------------------------------------------------
# The order in which machine code adds up the terms of a loop depends neither on LLVM and its level
# nor on the processor: code that is compiled quickly and code that runs quickly give the same bits.


def lanes_of_sum(loop: For) -> int:
    """How many partial results a loop that reduces has: iteration k belongs to lane k modulo their
    number. 0 for one with loops inside, or with branches between cheap terms.
    """
    if loop.vectorize != "reduce" or loop.trip_count is None:
        return 0
    ops, inside = reductions(loop), [*walk(loop.body)]
    functions = [each.target.dtype.itemsize for each in inside
                 if isinstance(each, Let) and each.op in FORMULAS]
    if (not ops or any(x.dtype == BOOL and op not in ORDERLESS for x, op in ops.items())
            or not functions and any(isinstance(each, Declare | If) for each in inside)
            or not is_straight(loop.body) or not have_own_elements(loop)):
        return 0
    if ORDERLESS.issuperset(ops.values()) and not functions:
        sizes = [x.dtype.itemsize for x in ops] + [x.dtype.itemsize for x in accesses(inside)]
        enough = 1 << (loop.trip_count - 1).bit_length()
        return min(REGISTER // max(sizes), enough) if loop.trip_count >= SHORT else 0
    nbytes = next((sizes[bool(functions)] for least, sizes in BYTES.items()
                   if loop.trip_count >= least), 0)
    lanes = nbytes // max(x.dtype.itemsize for x in ops)
    if functions and nbytes:  # which are called for whole registers
        return max(lanes, REGISTER // max(functions))
    return min(lanes, 1 << loop.trip_count.bit_length() - 1) if lanes else 0


@cached_on_node
def reductions(loop: For) -> dict[Variable, str]:
    """The operation that combines each variable from outside of a loop with a term; empty if one is
    assigned anything else.
    """
    lets: dict[Operand, Let] = {each.target: each for each in loop.body if isinstance(each, Let)}
    variables: dict[Operand, Variable] = {
        each.target: each.variable for each in loop.body if isinstance(each, Read)}
    ops = {}
    for each in assignments(loop):
        let = lets.get(each.value)
        if each not in loop.body or let is None:
            return {}
        op, args = ("add", let.args[2:]) if let.op == "fma" else (let.op, let.args)
        if op not in REDUCING or each.variable not in (variables.get(x) for x in args):
            return {}
        ops[each.variable] = op
    return ops


@cached_on_node
def assignments(loop: For) -> list[Assign]:
    """The assignments in a loop to variables from outside of it."""
    own = {each.variable for each in walk(loop.body) if isinstance(each, Declare)}
    return [each for each in walk(loop.body)
            if isinstance(each, Assign) and each.variable not in own]
