"""Sums in lanes: the order in which machine code adds up the terms of a loop.

Builds on builder.py; llvm.py prints with it. The order depends neither on LLVM and its level nor on
the processor: code that is compiled quickly and code that runs quickly give the same bits.
Chapter 24. In XLA: LLVM chooses the order.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from .builder import Builder, identity_element
from .elementary import FORMULAS
from .loops import (BOOL, Assign, Buffer, Declare, For, If, Let, Load, Operand, Read, Statement,
                    Store, Variable, cached_on_node, substituted, walk)

# The bytes of the partial sums of so many terms or more: if the terms are cheap, and if they call
# elementary functions, which take long. Short sums are added up one term after the other.
BYTES = {128: (128, 256), 64: (128, 128), 16: (64, 64)}
REDUCING = {"add", "mul", "min", "max", "and", "or", "xor"}
STRAIGHT = Let | Load | Store | Read | Assign
Partials = Mapping[Variable, tuple[str, Buffer]]  # of each variable: its operation, its lanes


def partials_of(loop: For) -> Partials:
    """The partial results of a loop that reduces in lanes; none for one with loops inside, or with
    branches between cheap terms.
    """
    if loop.vectorize != "reduce":
        return {}
    inside, ops = [*walk(loop.body)], reductions(loop)
    is_heavy = any(isinstance(each, Let) and each.op in FORMULAS for each in inside)
    simple = STRAIGHT | Declare | If if is_heavy else STRAIGHT
    if (not ops or any(x.dtype == BOOL for x in ops)
            or not all(isinstance(each, simple) for each in inside)):
        return {}
    trip_count = max(BYTES) if loop.trip_count is None else loop.trip_count
    nbytes = next((sizes[is_heavy] for least, sizes in BYTES.items() if trip_count >= least), 0)
    lanes = nbytes // max(x.dtype.itemsize for x in ops)
    return {x: (op, Buffer("lanes", x.dtype, (lanes,), "local")) for x, op in ops.items() if lanes}


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


def initial_lanes(partials: Partials) -> list[Statement]:
    """Stores of the identity element in all lanes."""
    b, lanes = Builder(), next(iter(partials.values()))[1].size
    with b.loop(lanes, vectorize="parallel") as j:
        for op, partial in partials.values():
            b.store(partial, (j,), identity_element(op, partial.dtype))
    return list(b.scopes[0].statements)


def in_lanes(loop: For, start: Operand, stop: Operand, partials: Partials) -> list[Statement]:
    """The loop with a partial result in memory for each lane: iteration k belongs to lane k modulo
    their number.
    """
    b, lanes = Builder(), next(iter(partials.values()))[1].size
    # Iterations that store may share scratch space.
    kind = "reduce" if any(isinstance(each, Store) for each in walk(loop.body)) else "parallel"

    def row(first: Operand, count: Any) -> None:
        with b.loop(count, vectorize=kind) as j:
            for statement in iteration(b.actual(b.add(first, j)), j):
                b.emit(statement)

    def iteration(k: Operand, j: Operand) -> Iterator[Statement]:
        for statement in loop.body:
            match statement:
                case Read(target, variable) if variable in partials:
                    yield Load(target, partials[variable][1], (j,))
                case Assign(variable, value) if variable in partials:
                    yield Store(partials[variable][1], (j,), value)
                case _:
                    yield substituted(statement, {loop.index: k})

    count = b.sub(stop, start)
    rest = b.and_(count, lanes - 1)
    with b.loop(b.div(b.sub(count, rest), lanes)) as k:
        row(b.add(start, b.mul(k, lanes)), lanes)
    row(b.sub(stop, rest), rest)
    return list(b.scopes[0].statements)
