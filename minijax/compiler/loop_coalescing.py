"""Loop coalescing: loops over neighbouring axes become one loop; and delinearization, by which a
loop over merged axes becomes a loop over each of them.

Builds on index_set_splitting.py and steps.py; llvm.py prints the result. Chapter 26.
In MLIR: `affine-loop-coalescing`; in LLVM: the analysis `delinearization`.
"""

from collections.abc import Iterable
from typing import Any

from .arithmetic import Arithmetic
from .index_set_splitting import specialized
from .loop_unrolling import copies
from .loops import (INT64, Constant, For, Let, Load, Scalar, Statement, Store, changed, defined,
                    innermost_first, integer, used, walk)
from .steps import Steps

MIN_SIZE = 4  # of an inner axis: loops over shorter ones fill no vectors, and are unrolled


@innermost_first
def coalesce_loops(loop: For) -> Iterable[Statement]:
    """Loops of loops over neighbouring axes as one loop: if an iteration of the outer loop begins
    where the last one has ended, the inner loop goes on, and its index leaves its axis, but not the
    buffer.
    """
    if not loop.body or not isinstance(inner := loop.body[-1], For):
        return [loop]
    *lets, _ = loop.body
    body, kinds = (*lets, *inner.body), {loop.vectorize, inner.vectorize}
    if (not kinds <= {"parallel", "apart"} or not loop.trip_count or not inner.trip_count
            or inner.start.value or not all(isinstance(each, Let) for each in lets)  # type: ignore[union-attr]
            or not _goes_on(body, loop.index, inner.index, inner.trip_count)):
        return [loop]
    return [changed(
        loop, index=inner.index, start=inner.start,
        stop=integer(loop.trip_count * inner.trip_count),
        body=specialized(body, {loop.index: loop.start}, Arithmetic()),
        vectorize="apart" if "apart" in kinds else "parallel")]


def _goes_on(body: Iterable[Statement], outer: Scalar, inner: Scalar, count: int) -> bool:
    """Whether the elements of an iteration of the outer loop follow those of the last one; nothing
    but indices depends on either index.
    """
    far, near = Steps({outer: 1}), Steps({inner: 1})
    for each in walk(body):
        if isinstance(each, Let):
            far[each.target], near[each.target] = far.of(each), near.of(each)
            if None in (far[each.target], near[each.target]):
                return False
            continue
        if isinstance(each, Load | Store):
            step = near.at(each.buffer, each.index)
            if step is None or far.at(each.buffer, each.index) != step * count:
                return False
        values = [each.value] if isinstance(each, Store) else used(each)
        if not isinstance(each, Load) and any(far[x] or near[x] for x in values):
            return False
    return True


# -- delinearization -------------------------------------------------------------------------------


@innermost_first
def delinearize(loop: For) -> Iterable[Statement]:
    """Loops over merged axes as nests of loops: a reshape that merges axes divides the index by the
    size of an inner one; here the quotient and the remainder become indices of loops. Of an axis of
    two or three elements the loop is unrolled: their accesses are interleaved.
    """
    if loop.vectorize != "parallel" or not loop.trip_count or any(
            isinstance(each, For) for each in walk(loop.body)):
        return [loop]
    divisions = [each for each in walk(loop.body) if isinstance(each, Let)
                 and each.op in ("div", "rem") and each.args[0] is loop.index]
    sizes = {int(x.value) if isinstance(x := each.args[1], Constant) else 0 for each in divisions}
    size = sizes.pop() if len(sizes) == 1 else 0
    starts_at_zero = isinstance(loop.start, Constant) and not loop.start.value
    if not starts_at_zero or size < 2 or loop.trip_count % size or loop.trip_count == size:
        return [loop]
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
    nested = changed(loop, index=inner, stop=integer(size), body=tuple(varying))
    body = (*fixed, *(copies(nested, Arithmetic()) if size < MIN_SIZE else delinearize([nested])))
    return [changed(loop, index=outer, stop=integer(loop.trip_count // size), body=body)]
