"""Function splitting: LLVM's compile time is superlinear in the length of a function.

Stands on loops.py. A kernel is split where no scalar or variable is live. A long loop is
strip-mined, and each strip distributed over several loops that pass live values in temps. Chapter
24. In XLA: the limits of fusion.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .loops import (
    Call, Check, For, Scalar, Statement, Store, Variable, defined, renamed, used, walk,
)

if TYPE_CHECKING:
    from .builder import Builder

# In statements: a function, a part of a loop's body, and a body that is split. Equal functions, as
# of the layers of a network, are compiled once, and a call costs a nanosecond. Parts of a loop pass
# more live values: they are longer, and only very long bodies are split.
LONG, LONGER, TOO_LONG = 200, 400, 4000
# Bytes of live values of a strip, which stay in the cache; the least and the most iterations of it.
HANDED, FEWEST, MOST = 1 << 17, 16, 1024


def split_body(body: Sequence[Statement], longest: int, kinds: Any = Scalar | Variable
               ) -> list[list[Statement]]:
    """Split a body into parts of about `longest` statements, at points where nothing of these kinds
    is live.
    """
    inside = [[*walk((statement,))] for statement in body]
    last: dict[Any, int] = {}
    made = {defined(each) for statements in inside for each in statements}
    for k, statements in enumerate(inside):
        last |= {x: k for each in statements for x in used(each)
                 if isinstance(x, kinds) and (x in made or isinstance(x, Variable))}
    parts: list[list[Statement]] = [[]]
    length = until = 0
    for k, statements in enumerate(inside):
        if length > longest and until < k:
            parts.append([])
            length = 0
        length += len(statements)
        until = max(until, *(last.get(x, 0) for each in statements
                             for x in (defined(each), *used(each))))
        parts[-1].append(body[k])
    return parts


def split_loop(b: Builder, loop: For) -> bool:
    """Emit a very long loop as strips of several loops (loop distribution). Returns False for a
    loop that is short or cannot be split.

    Values that are live across a split pass through temps with room for one strip.
    """
    n = loop.turns
    # Iterations of a reduction may share their scratch, so these may not store.
    fixed = {"parallel": Call | Check, "reduce": Call | Check | Store}.get(loop.vectorize)
    if fixed is None or not n or len(loop.body) < TOO_LONG:
        return False
    parts = split_body(loop.body, LONGER, Variable)
    if len(parts) == 1 or any(isinstance(each, fixed) for each in walk(loop.body)):
        return False
    made: dict[Any, int] = {defined(each): k for k, part in enumerate(parts) for each in part}
    needed: list[dict[Any, None]] = [
        dict.fromkeys(x for each in walk(part) for x in used(each)) for part in parts]
    handed = dict.fromkeys(x for k, xs in enumerate(needed) for x in xs if made.get(x, k) != k)
    nbytes = sum(x.dtype.itemsize for x in handed) or 1
    size = min(max(HANDED // nbytes // FEWEST * FEWEST, FEWEST), MOST, n)
    rows: dict[Any, tuple] = {}  # one temp for each dtype: LLVM's time is quadratic in temps
    for dtype in dict.fromkeys(x.dtype for x in handed):
        alike = [x for x in handed if x.dtype == dtype]
        temp = b.temp((len(alike), size), dtype, "handed")
        rows |= {x: (temp, row) for row, x in enumerate(alike)}
    with b.loop(-(-n // size), vectorize="apart" if loop.vectorize == "parallel" else "") as block:
        b.note(loop.note)
        first = b.mul(b.index(block), size)
        count = b.operation("min", (b.index(size), b.sub(n, first))) if n % size else size
        for k, part in enumerate(parts):
            joins = any(isinstance(x, Variable) for x in needed[k])
            with b.loop(count, 0, loop.vectorize if joins else "parallel", whole=True) as j:
                names = {loop.index: b.actual(b.add(first, b.index(j)))}
                for x in needed[k]:
                    if made.get(x, k) != k:
                        temp, row = rows[x]
                        names[x] = b.load(temp, (row, j))
                for statement in part:
                    b.emit(renamed(statement, names))
                for x, (temp, row) in rows.items():
                    if made[x] == k:
                        b.store(temp, (row, j), x)
    return True
