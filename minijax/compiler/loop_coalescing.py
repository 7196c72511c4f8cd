"""Loop coalescing: loops over neighbouring axes become one loop.

If an iteration of the outer loop begins where the last one has ended, the inner loop goes on: its
index leaves its axis, but not the buffer.  Builds on steps.py; llvm.py prints the result.
Chapter 26.  In MLIR: `affine-loop-coalescing`.
"""

from collections.abc import Iterable

from .index_set_splitting import specialized
from .loops import (For, Let, Load, Scalar, Statement, Store, changed, innermost_first, integer,
                    used, walk)
from .steps import Steps


@innermost_first
def coalesce_loops(loop: For) -> Iterable[Statement]:
    """Loops of loops over neighbouring axes as one loop."""
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
        body=specialized(body, {loop.index: loop.start}),
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
