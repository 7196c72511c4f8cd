"""Buffer assignment: temps whose live ranges do not overlap share memory in the workspace.

Stands on loops.py. Chapter 24. In XLA: buffer assignment.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from .loops import Buffer, Launch, Statement, bodies, touched, walk

ALIGNMENT = 64  # of a cache line

# A live range: from one program point to another; each statement has a first and a last point.
Span = tuple[int, int]


def layout(temps: Sequence[Buffer], body: Sequence[Statement]) -> tuple[dict[Buffer, int], int]:
    """The offsets of the temps in use, and the size of the workspace."""
    spans = _spans(body, itertools.count())
    largest_first = sorted((t for t in temps if t in spans), key=lambda t: -t.nbytes)
    # Of each that has its place: from byte to byte, from moment to moment.
    low, high, first, last = np.zeros((4, len(largest_first)), np.int64)
    for k, temp in enumerate(largest_first):
        first[k], last[k] = spans[temp]
        meanwhile = (first[:k] <= last[k]) & (first[k] <= last[:k])
        nbytes = round_up(max(temp.nbytes, 1))
        low[k] = _first_gap(low[:k][meanwhile], high[:k][meanwhile], nbytes)
        high[k] = low[k] + nbytes
    offsets = dict(zip(largest_first, low.tolist(), strict=True))
    return offsets, int(np.max(high, initial=0))


def overlap(one: Buffer, other: Buffer, offsets: Mapping[Buffer, int]) -> bool:
    """Whether two temps share bytes of the workspace; no other buffers do."""
    if one.role != "temp" or other.role != "temp":
        return one is other
    first, second = sorted((one, other), key=offsets.__getitem__)
    return offsets[second] < offsets[first] + first.nbytes


def round_up(n: int) -> int:
    """Round up to whole cache lines."""
    return -(-n // ALIGNMENT) * ALIGNMENT


def _first_gap(low: np.ndarray, high: np.ndarray, nbytes: int) -> int:
    """The first offset with so many free bytes."""
    order = np.argsort(low)
    free = np.maximum.accumulate(np.concatenate([[0], high[order]]))  # from here to the next
    fits = free[:-1] + nbytes <= low[order]
    return int(free[np.argmax(fits) if fits.any() else -1])


def _spans(body: Sequence[Statement], clock: Iterator[int]) -> dict[Buffer, Span]:
    """The live range of each temp: the statements, of the innermost body around all its uses, that
    contain them. A loop counts as a whole.
    """
    begins: dict[Buffer, int] = {}
    spans: dict[Buffer, Span] = {}
    for statement in body:
        begin = next(clock)
        if isinstance(statement, Launch):  # its blocks run concurrently: one program point
            temps = {x for each in walk(statement.body) for x in touched(each) if x.role == "temp"}
            inside = dict.fromkeys(temps, (begin, next(clock)))
        elif inner := bodies(statement):
            inside = _spans([each for body in inner for each in body], clock)
        else:
            inside = {x: (begin, begin) for x in touched(statement) if x.role == "temp"}
        end = next(clock)
        for temp, span in inside.items():
            if temp in begins:
                spans[temp] = begins[temp], end
            else:
                begins[temp], spans[temp] = begin, span
    return spans
