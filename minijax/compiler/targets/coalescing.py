"""Memory coalescing: nests collapsed into one loop, and strides between neighbouring iterations.

Builds on loops.py. Neighbouring threads should access neighbouring elements: a warp's load takes as
many transactions as it touches sectors of 32 bytes. Chapter 27. In XLA: its indexing maps, from
which GPU emitters choose their tiles.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from ..arithmetic import Arithmetic
from ..index_set_splitting import affine_functions
from ..loops import (INT64, WRITES, Assign, Atomic, Buffer, Constant, Declare, For, If, Let, Load,
                     Read, Scalar, Shuffle, Statement, Store, While, accesses, bodies, copied,
                     substituted, walk)
from ..probe import cost_of
from ..steps import Steps

MAX_REPEATED = 24  # simple operations that each iteration of a collapsed nest may repeat
# A loop with many iterations of not too many operations waits for memory; a thread takes several.
MAX_COST, MIN_MEMORY_BOUND = 384, 1 << 18
ALIGNMENT = 16  # bytes of an address, and of an access at most
TRIPS = 16  # assumed for a loop of unknown length


def collapse_nest(loop: For) -> For:
    """Collapse a loop whose body is one other loop; each iteration repeats the code between them.
    """
    last = loop.body[-1] if loop.body else None
    if not (isinstance(last, For) and _is_parallel(loop)):
        return loop
    before, inner, b = loop.body[:-1], collapse_nest(last), Arithmetic()
    if (not _is_parallel(inner) or cost_of(before) > MAX_REPEATED
            or not all(isinstance(each, Let | Load) for each in before)
            or not set(accesses(before, Load)).isdisjoint(accesses(walk(inner.body), WRITES))):
        return loop
    index, m, n = Scalar("i", INT64), loop.trip_count or 0, inner.trip_count or 0
    names = {loop.index: b.add(b.div(index, n), loop.start),
             inner.index: b.add(b.rem(index, n), inner.start)}
    body = substituted((*before, *inner.body), names)
    vectorize = "apart" if "apart" in (loop.vectorize, inner.vectorize) else "parallel"
    note = "\n".join(filter(None, dict.fromkeys((loop.note, inner.note))))
    return replace(loop, index=index, start=b.index(0), stop=b.index(m * n),
                   body=(*b.scopes[0].statements, *body), note=note, vectorize=vectorize)


def _is_parallel(loop: For) -> bool:
    return bool(loop.trip_count) and loop.vectorize in ("parallel", "apart")


def is_memory_bound(loop: For) -> bool:
    """Whether a loop has many iterations that wait for loads, with straight code between them."""
    return ((loop.trip_count or 0) >= MIN_MEMORY_BOUND and cost_of(loop.body) <= MAX_COST
            and all(isinstance(each, Let | Load | Store) for each in loop.body))


def is_straight(loop: For) -> bool:
    """Whether each iteration is straight code."""
    return all(isinstance(each, Let | Load | Store | Read | Assign) for each in loop.body)


def is_aligned(loop: For, count: int) -> bool:
    """Whether so many adjacent iterations access 16 aligned bytes or less of each buffer at once,
    or one element.
    """
    affine, strides = affine_functions(loop.body, loop.index), _Strides(loop.index, set())
    strides.count(loop.body, 1)

    def fits(access: Any) -> bool:
        *outer, last = access.index
        slope, offset = affine.get(last, (0, 1))
        row = access.buffer.shape[-1] if outer else count
        is_constant = isinstance(access, Load) and all(strides[i] == 0 for i in access.index)
        return is_constant or (slope == 1 and offset % count == row % count == 0
                               and all(strides[i] == 0 for i in outer)
                               and count * access.buffer.dtype.itemsize <= ALIGNMENT)
    start = int(loop.start.value) if isinstance(loop.start, Constant) else 1
    return start % count == 0 and all(fits(x) for x in loop.body if isinstance(x, Load | Store))


def interleaved(body: tuple[Statement, ...], index: Scalar, places: Sequence[Any]
                ) -> tuple[Statement, ...]:
    """Iterations of a loop, interleaved statement by statement: all loads are issued before the
    first store. Variables are assigned by one after the other.
    """
    copies = [copied(body, {index: place}) for place in places]
    if any(isinstance(each, Assign) for each in body):
        return tuple(each for copy in copies for each in copy)
    return tuple(each for some in zip(*copies, strict=True) for each in some)


def uncoalesced(body: Sequence[Statement], index: Scalar, private: Iterable[Buffer] = ()) -> float:
    """How many accesses of a body are not adjacent at neighbouring values of an index."""
    return _Strides(index, set(private)).count(body, 1)


class _Strides(Steps):
    """The stride of each scalar: its change from one value of an index to the next; None if
    unknown.
    """

    def __init__(self, index: Scalar, private: set[Buffer]) -> None:
        super().__init__({index: 1})
        self.private = private

    def count(self, body: Sequence[Statement], times: float) -> float:
        """The number of uncoalesced accesses in a body."""
        total = 0.0
        for each in body:
            match each:
                case Let(target, op, args):
                    self[target] = self.operation(op, args)
                case (Load(target, buffer, at) | Store(buffer, at, target)
                      | Atomic(target, _, buffer, at)):
                    distance = self.at(buffer, at)
                    if buffer not in self.private and distance not in (-1, 0, 1):
                        total += times
                    if isinstance(each, Load):
                        self[target] = None if distance else 0
                case Declare(target) | Shuffle(target):
                    self[target] = None
                case Read(target, variable):
                    self[target] = self[variable]
                case For(trip_count=n):
                    total += self.count(each.body, times * (TRIPS if n is None else n))
                case While() | If():
                    many = TRIPS if isinstance(each, While) else 1
                    total += sum(self.count(inner, times * many) for inner in bodies(each))
        return total

    def operation(self, op: str, args: Sequence[Any]) -> int | None:
        """The stride of a result for most neighbours; where a quotient changes is ignored."""
        parts = [self[x] for x in args]
        if not any(d is None or d for d in parts):
            return 0
        match op, parts, args:
            case ("convert" | "bitcast"), [d], _:
                return d
            case ("add", [int(x), int(y)], _):
                return x + y
            case ("sub", [int(x), int(y)], _):
                return x - y
            case ("mul", [int(x), 0], [_, Constant(c)]) | ("mul", [0, int(x)], [Constant(c), _]):
                return x * int(c)
            case ("div", [int(x), 0], [_, Constant(c)]) if abs(x) < c or x % c == 0:
                return x // int(c) if x % c == 0 else 0
            case ("rem", [int(x), 0], [_, Constant(c)]) if abs(x) < c or x % c == 0:
                return x % int(c) if x >= 0 else x
            case (("min" | "max" | "select"), _, _):
                several = {d for d in parts if d != 0}
                return several.pop() if len(several) == 1 else None
        return None
