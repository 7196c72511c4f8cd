"""Delinearization: a loop over merged axes becomes a loop over each of them.

A reshape that merges axes divides the index by the size of an inner one; here the quotient and the
remainder become indices of loops. Builds on index_set_splitting.py; llvm.py prints the result.
Chapter 24. In LLVM: its analysis of that name.
"""

from collections.abc import Iterable
from typing import Any

from .arithmetic import Arithmetic
from .elementary import FORMULAS
from .index_set_splitting import specialized
from .loop_unrolling import copies
from .loops import (INT64, Constant, For, Let, Scalar, Statement, changed, defined, innermost_first,
                    integer, walk)

MIN_SIZE = 4  # of an inner axis: loops over shorter ones fill no vectors, and are unrolled
MIN_LANES = 16  # of an inner axis over which elementary functions fill vectors


@innermost_first
def delinearize(loop: For) -> Iterable[Statement]:
    """Loops over merged axes as nests of loops: one whose index is divided by one size is two. Of
    an axis of two or three elements the loop is unrolled: their accesses are interleaved. One that
    calls elementary functions and takes only remainders, by few, stays: it fills vectors.
    """
    if loop.vectorize != "parallel" or not loop.trip_count or any(
            isinstance(each, For) for each in walk(loop.body)):
        return [loop]
    divisions = [each for each in walk(loop.body) if isinstance(each, Let)
                 and each.op in ("div", "rem") and each.args[0] is loop.index]
    sizes = {int(x.value) if isinstance(x := each.args[1], Constant) else 0 for each in divisions}
    size = sizes.pop() if len(sizes) == 1 else 0
    if size < MIN_LANES and all(each.op == "rem" for each in divisions) and any(
            isinstance(each, Let) and each.op in FORMULAS for each in walk(loop.body)):
        return [loop]
    starts_at_zero = isinstance(loop.start, Constant) and not loop.start.value
    if not starts_at_zero or size < 2 or loop.trip_count % size or loop.trip_count == size:
        return [loop]
    b, outer, inner = Arithmetic(), Scalar(loop.index.name, INT64), Scalar(loop.index.name, INT64)
    index = b.actual(b.add(b.mul(outer, size), inner))
    names = {each.target: outer if each.op == "div" else inner for each in divisions}
    body = specialized(loop.body, {loop.index: index, **names})
    fixed: list[Statement] = []  # what does not depend on the inner index
    varying: list[Statement] = []
    dependent: set[Any] = {inner}
    for each in (*b.scopes[0].statements, *body):
        if isinstance(each, Let) and each.target.dtype == INT64 and dependent.isdisjoint(each.args):
            fixed.append(each)
        else:
            varying.append(each)
            dependent.add(defined(each))
    nested = changed(loop, index=inner, stop=integer(size), body=tuple(varying))
    body = (*fixed, *(copies(nested) if size < MIN_SIZE else delinearize([nested])))
    return [changed(loop, index=outer, stop=integer(loop.trip_count // size), body=body)]
