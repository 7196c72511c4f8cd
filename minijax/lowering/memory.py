"""Where temps lie in the workspace: those that are never needed together share memory.

Stands on loops.py. Chapter 24. In XLA: buffer assignment.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .loops import Address, Buffer, Call, For, If, Load, Statement, Store, While

ALIGNMENT = 64

# Where something stands: the positions of the statements around it, outermost first.
Place = tuple[int, ...]


def layout(temps: Sequence[Buffer], body: Sequence[Statement]) -> tuple[dict[Buffer, int], int]:
    """Offsets of the temps that are used, and the size of the workspace."""
    spans = _spans(body)
    offsets: dict[Buffer, int] = {}
    size = 0
    for temp in sorted((t for t in temps if t in spans), key=lambda t: -t.nbytes):
        taken = sorted((offsets[other], offsets[other] + max(other.nbytes, 1))
                       for other in offsets if _overlap(spans[temp], spans[other]))
        offsets[temp] = _first_gap(taken, max(temp.nbytes, 1))
        size = max(size, offsets[temp] + _round_up(max(temp.nbytes, 1)))
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


def _spans(body: Sequence[Statement]) -> dict[Buffer, tuple[Place, Place]]:
    """For each temp the stretch of statements, of the innermost body around all its uses."""
    places: dict[Buffer, list[Place]] = {}
    for buffer, place in _uses(body, ()):
        if buffer.role == "temp":
            places.setdefault(buffer, []).append(place)
    return {buffer: _stretch(found) for buffer, found in places.items()}


def _stretch(places: Sequence[Place]) -> tuple[Place, Place]:
    """From the first to the last, cut where they first differ: loops are lived through whole."""
    first, last = min(places), max(places)
    common = next((k for k, (a, c) in enumerate(zip(first, last, strict=False)) if a != c),
                  min(len(first), len(last)))
    return first[:common + 1], last[:common + 1]


def _overlap(x: tuple[Place, Place], y: tuple[Place, Place]) -> bool:
    """Whether two stretches share a statement (one may lie inside a statement of the other)."""

    def ends_before(last: Place, first: Place) -> bool:
        depth = min(len(last), len(first))
        return last[:depth] < first[:depth]

    return not (ends_before(x[1], y[0]) or ends_before(y[1], x[0]))


def _uses(body: Sequence[Statement], above: Place) -> Iterator[tuple[Buffer, Place]]:
    for k, statement in enumerate(body):
        here = (*above, k)
        match statement:
            case Load(_, buffer, _) | Store(buffer, _, _):
                yield buffer, here
            case Call(_, args):
                for arg in args:
                    if isinstance(arg, Buffer | Address):
                        yield (arg.buffer if isinstance(arg, Address) else arg), here
            case For():
                yield from _uses(statement.body, here)
            case While(condition, _, inner):
                yield from _uses((*condition, *inner), here)
            case If(_, then, orelse):
                yield from _uses((*then, *orelse), here)
