"""Loop coalescing: loops with nothing between them, over neighbouring axes, become one loop.

Builds on loops.py; outer_loop_vectorization.py uses it. Chapter 26.
In MLIR: `affine-loop-coalescing`.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from .loops import (INT64, Buffer, Constant, For, Index, Load, Scalar, Statement, Store, bodies,
                    used, with_bodies, with_origin)


class _OtherwiseUsed(Exception):
    """An index that is not that of one of the first axes."""


def coalesced(loop: For) -> For:
    """As many of the loops that begin with this one as one loop as possible."""
    loops = [loop]
    while len(loops[-1].body) == 1 and isinstance(inner := loops[-1].body[0], For):
        loops.append(inner)
    for count in range(len(loops), 1, -1):
        if all(x.vectorize in ("parallel", "apart") and x.trip_count for x in loops[:count]):
            try:
                return with_origin(_as_one(loops[:count]), loop)
            except _OtherwiseUsed:
                pass
    return loop


def _as_one(loops: Sequence[For]) -> For:
    """Nested loops as one loop, whose index is the position in all their axes.

    Raises:
      _OtherwiseUsed: an index is used otherwise.
    """
    first, *others = loops
    position = Scalar(first.index.name, INT64)
    indices = [x.index for x in loops]

    def body(statements: Iterable[Statement]) -> tuple[Statement, ...]:
        return tuple(map(changed, statements))

    def changed(each: Statement) -> Statement:
        if bodies(each):
            each = with_bodies(each, body)
        if isinstance(each, Load | Store) and not used_here.isdisjoint(each.index):
            each = replace(each, index=together(each.buffer, each.index))
        if not used_here.isdisjoint(used(each)):
            raise _OtherwiseUsed
        return each

    def together(buffer: Buffer, index: Index) -> Index:
        axes = [k for k, n in enumerate(buffer.shape) if n != 1][:len(loops)]
        if (len(index) < len(buffer.shape) or [index[k] for k in axes] != indices
                or [buffer.shape[k] for k in axes[1:]] != [x.trip_count for x in others]):
            raise _OtherwiseUsed
        return position, *index[axes[-1] + 1:]

    used_here = {*indices}
    stop = Constant(np.int64(math.prod(x.trip_count or 0 for x in loops)), INT64)
    kind = "apart" if any(x.vectorize == "apart" for x in loops) else "parallel"
    return replace(first, index=position, stop=stop, body=body(loops[-1].body), vectorize=kind)
