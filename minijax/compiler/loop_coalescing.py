"""Loop coalescing: loops over neighbouring axes become one loop.

If an iteration of the outer loop begins where the last one has ended, the inner loop goes on: its
index leaves its axis, but not the buffer.  Builds on steps.py; llvm.py prints the result.
Chapter 26.  In MLIR: `affine-loop-coalescing`.
"""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from .arithmetic import Arithmetic
from .index_set_splitting import specialized
from .loops import (INT64, Constant, For, Let, Load, Scalar, Statement, Store, bodies, used, walk,
                    with_bodies, with_origin)
from .steps import Steps


def coalesce_loops(body: Iterable[Statement]) -> tuple[Statement, ...]:
    """The same statements, with loops over neighbouring axes as one."""
    return tuple(_coalesced(with_bodies(each, coalesce_loops)) if bodies(each) else each
                 for each in body)


def _coalesced(loop: Statement) -> Statement:
    """A loop of a loop as one loop, or the loop itself."""
    if not isinstance(loop, For) or not loop.body or not isinstance(inner := loop.body[-1], For):
        return loop
    *lets, _ = loop.body
    body, kinds = (*lets, *inner.body), {loop.vectorize, inner.vectorize}
    if (not kinds <= {"parallel", "apart"} or not loop.trip_count or not inner.trip_count
            or inner.start.value or not all(isinstance(each, Let) for each in lets)  # type: ignore[union-attr]
            or not _goes_on(body, loop.index, inner.index, inner.trip_count)):
        return loop
    stop = Constant(np.int64(loop.trip_count * inner.trip_count), INT64)
    return with_origin(replace(
        inner, stop=stop, body=specialized(body, {loop.index: loop.start}, Arithmetic()),
        note=loop.note, vectorize="apart" if "apart" in kinds else "parallel"), loop)


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
