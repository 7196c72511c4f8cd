"""Function splitting: LLVM's compile time is superlinear in the length of a function.

Builds on loops.py. A kernel is split where no scalar or variable is live. A long loop is
strip-mined, and each strip distributed over several loops that pass live values in temps. Chapter
24. In XLA: the limits of fusion.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .loops import (Call, Check, For, Scalar, Statement, Store, Variable, defined, substituted,
                    used, walk)

if TYPE_CHECKING:
    from .builder import Builder

# In statements: a function, a part of a loop's body, and a body that is split. Equal functions, as
# of the layers of a network, are compiled once, and a call costs a nanosecond. Parts of a loop pass
# more live values: they are longer, and only very long bodies are split.
MAX_FUNCTION, MAX_PART, MIN_SPLIT = 200, 400, 4000
# Bytes of live values of a strip, which stay in the cache; the least and the most iterations of it.
STRIP_BYTES, MIN_STRIP, MAX_STRIP = 1 << 17, 16, 1024


def split_body(body: Sequence[Statement], longest: int, kinds: Any = Scalar | Variable
               ) -> list[list[Statement]]:
    """Split a body into parts of about `longest` statements, at points where nothing of these kinds
    is live.
    """
    walks = [[*walk((statement,))] for statement in body]
    if sum(map(len, walks)) <= longest:
        return [[*body]]
    last: dict[Any, int] = {}
    definitions = {defined(each) for statements in walks for each in statements}
    for k, statements in enumerate(walks):
        last |= {x: k for each in statements for x in used(each)
                 if isinstance(x, kinds) and (x in definitions or isinstance(x, Variable))}
    parts: list[list[Statement]] = [[]]
    length = last_live = 0
    for k, statements in enumerate(walks):
        if length > longest and last_live < k:
            parts.append([])
            length = 0
        length += len(statements)
        last_live = max(last_live, *(last.get(x, 0) for each in statements
                                     for x in (defined(each), *used(each))))
        parts[-1].append(body[k])
    return parts


def split_loop(b: Builder, loop: For) -> bool:
    """Emit a very long loop as strips of several loops (loop distribution). Returns False for a
    loop that is short or cannot be split.

    Values that are live across a split pass through temps with room for one strip.
    """
    n = loop.trip_count
    # Iterations of a reduction may share their scratch, so these may not store.
    pinned = {"parallel": Call | Check, "reduce": Call | Check | Store}.get(loop.vectorize)
    if pinned is None or not n or len(loop.body) < MIN_SPLIT:
        return False
    parts = split_body(loop.body, MAX_PART, Variable)
    if len(parts) == 1 or any(isinstance(each, pinned) for each in walk(loop.body)):
        return False
    part_of: dict[Any, int] = {defined(each): k for k, part in enumerate(parts) for each in part}
    uses: list[dict[Any, None]] = [
        dict.fromkeys(x for each in walk(part) for x in used(each)) for part in parts]
    live = dict.fromkeys(x for k, xs in enumerate(uses) for x in xs if part_of.get(x, k) != k)
    nbytes = sum(x.dtype.itemsize for x in live) or 1
    size = min(max(STRIP_BYTES // nbytes // MIN_STRIP * MIN_STRIP, MIN_STRIP), MAX_STRIP, n)
    rows: dict[Any, tuple] = {}  # one temp for each dtype: LLVM's time is quadratic in temps
    for dtype in dict.fromkeys(x.dtype for x in live):
        same_dtype = [x for x in live if x.dtype == dtype]
        temp = b.temp((len(same_dtype), size), dtype, "handed")
        rows |= {x: (temp, row) for row, x in enumerate(same_dtype)}
    with b.loop(-(-n // size), vectorize="apart" if loop.vectorize == "parallel" else "") as block:
        b.note(loop.note)
        first = b.mul(block, size)
        count = b.operation("min", (b.index(size), b.sub(n, first))) if n % size else size
        for k, part in enumerate(parts):
            reduces = any(isinstance(x, Variable) for x in uses[k])
            with b.loop(count, 0, loop.vectorize if reduces else "parallel", whole=True) as j:
                names = {loop.index: b.actual(b.add(first, j))}
                for x in uses[k]:
                    if part_of.get(x, k) != k:
                        temp, row = rows[x]
                        names[x] = b.load(temp, (row, j))
                for statement in part:
                    b.emit(substituted(statement, names))
                for x, (temp, row) in rows.items():
                    if part_of[x] == k:
                        b.store(temp, (row, j), x)
    return True
