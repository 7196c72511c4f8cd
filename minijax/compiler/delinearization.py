"""Delinearization: a loop over merged axes becomes a loop over each of them.

A reshape that merges axes divides the index by the size of an inner one; here the quotient and the
remainder become indices of loops. Builds on index_set_splitting.py; llvm.py prints the result.
Chapter 24. In LLVM: its analysis of that name.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from .arithmetic import Arithmetic
from .index_set_splitting import specialized
from .loop_unrolling import copies
from .loops import (INT64, Constant, For, Let, Scalar, Statement, bodies, defined, walk,
                    with_bodies, with_origin)

MIN_SIZE = 4  # of an inner axis: loops over shorter ones fill no vectors, and are unrolled


def delinearize(body: Iterable[Statement]) -> tuple[Statement, ...]:
    """The same statements, with loops over merged axes as nests of loops."""
    return tuple(_nest(with_bodies(each, delinearize)) if bodies(each) else each for each in body)


def _nest(loop: Statement) -> Statement:
    """A loop whose index is divided by one size as two loops, or the loop itself. Of an axis of two
    or three elements the loop is unrolled: their accesses are interleaved.
    """
    if not isinstance(loop, For) or loop.vectorize != "parallel" or not loop.trip_count or any(
            isinstance(each, For) for each in walk(loop.body)):
        return loop
    divisions = [each for each in walk(loop.body) if isinstance(each, Let)
                 and each.op in ("div", "rem") and each.args[0] is loop.index]
    sizes = {int(x.value) if isinstance(x := each.args[1], Constant) else 0 for each in divisions}
    size = sizes.pop() if len(sizes) == 1 else 0
    starts_at_zero = isinstance(loop.start, Constant) and not loop.start.value
    if not starts_at_zero or size < 2 or loop.trip_count % size or loop.trip_count == size:
        return loop
    b, outer, inner = Arithmetic(), Scalar(loop.index.name, INT64), Scalar(loop.index.name, INT64)
    index = b.actual(b.add(b.mul(outer, size), inner))
    names = {each.target: outer if each.op == "div" else inner for each in divisions}
    body = specialized(loop.body, {loop.index: index, **names}, Arithmetic())
    fixed: list[Statement] = []  # what does not depend on the inner index
    varying: list[Statement] = []
    dependent: set[Any] = {inner}
    for each in (*b.scopes[0].statements, *body):
        if isinstance(each, Let) and each.target.dtype == INT64 and dependent.isdisjoint(each.args):
            fixed.append(each)
        else:
            varying.append(each)
            dependent.add(defined(each))
    stops = [Constant(np.int64(n), INT64) for n in (loop.trip_count // size, size)]
    nested = with_origin(replace(loop, index=inner, stop=stops[1], body=tuple(varying)), loop)
    body = (*fixed, *(copies(nested, Arithmetic()) if size < MIN_SIZE else [_nest(nested)]))
    return with_origin(replace(loop, index=outer, stop=stops[0], body=body), loop)
