"""Sums in lanes: the order in which machine code adds up the terms of a loop.

Builds on vectorization.py; function_text.py prints with it. The order depends neither on LLVM and
its level nor on the processor: code that is compiled quickly and code that runs quickly give the
same bits. Chapter 24. In XLA: LLVM chooses the order.
"""

from .elementary import FORMULAS
from .loops import (BOOL, Assign, Declare, For, If, Let, Operand, Read, Variable, accesses,
                    cached_on_node, walk)
from .vectorization import have_own_elements, is_straight

# The bytes of the partial sums of so many terms or more: if the terms are cheap, and if they call
# elementary functions, which take long. Short sums are added up one term after the other.
BYTES = {128: (128, 256), 64: (128, 128), 16: (64, 64), 4: (0, 64)}
REGISTER = 64  # bytes of the widest vector register
REDUCING = {"add", "mul", "min", "max", "and", "or", "xor"}
# Operations of one short instruction, in whatever order: one register of partial results is enough.
ORDERLESS = {"min", "max", "and", "or"}
SHORT = 4  # terms: fewer are combined one after the other


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
        if each not in loop.body or let is None or let.op not in REDUCING or each.variable not in (
                variables.get(x) for x in let.args):
            return {}
        ops[each.variable] = let.op
    return ops


@cached_on_node
def assignments(loop: For) -> list[Assign]:
    """The assignments in a loop to variables from outside of it."""
    own = {each.variable for each in walk(loop.body) if isinstance(each, Declare)}
    return [each for each in walk(loop.body)
            if isinstance(each, Assign) and each.variable not in own]
