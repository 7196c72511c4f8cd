"""Where temps lie in the workspace: those that are never needed together share memory.

Stands on loops.py. Chapter 24. In XLA: buffer assignment.
"""

import itertools
from bisect import insort
from collections.abc import Iterator, Sequence

from .loops import Buffer, Statement, bodies, touched

ALIGNMENT = 64

# From when to when something is needed: moments, of which each statement has a first and a last.
Span = tuple[int, int]


def layout(temps: Sequence[Buffer], body: Sequence[Statement]) -> tuple[dict[Buffer, int], int]:
    """Offsets of the temps that are used, and the size of the workspace."""
    spans = _spans(body, itertools.count())
    offsets: dict[Buffer, int] = {}
    placed: list[tuple[int, int, int, int]] = []  # from byte to byte, from moment to moment
    size = 0
    for temp in sorted((t for t in temps if t in spans), key=lambda t: -t.nbytes):
        begin, end = spans[temp]
        nbytes = max(temp.nbytes, 1)
        taken = [(low, high) for low, high, first, last in placed if first <= end and begin <= last]
        offset = offsets[temp] = _first_gap(taken, nbytes)
        insort(placed, (offset, offset + nbytes, begin, end))
        size = max(size, offset + _round_up(nbytes))
    return offsets, size


def _round_up(n: int) -> int:
    return -(-n // ALIGNMENT) * ALIGNMENT


def _first_gap(taken: Sequence[tuple[int, int]], nbytes: int) -> int:
    start = 0
    for first, last in taken:
        if start + nbytes <= first:
            break
        start = max(start, _round_up(last))
    return start


def _spans(body: Sequence[Statement], clock: Iterator[int]) -> dict[Buffer, Span]:
    """When each temp is needed: as long as the statements, of the innermost body around all its
    uses, that hold them: a loop is lived through whole.
    """
    begins: dict[Buffer, int] = {}
    spans: dict[Buffer, Span] = {}
    for statement in body:
        begin = next(clock)
        if inner := bodies(statement):
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
