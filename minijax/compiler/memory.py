"""Buffer assignment: temps whose live ranges do not overlap share memory in the workspace.

Builds on loops.py. Chapter 24. In XLA: buffer assignment.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from .loops import Buffer, Kernel, Launch, Let, Statement, accessed, accesses, bodies, walk

ALIGNMENT = 64  # of a cache line
# The kernel is called with a list of NumPy arrays. Behind the object header a list has its length
# and the address of its items, an array the address of its elements: C's public layout.
HEADER, WORD = object.__basicsize__, 8

# A live range: from one program point to another; each statement has a first and a last point.
LiveRange = tuple[int, int]


def layout(temps: Sequence[Buffer], body: Sequence[Statement]) -> tuple[dict[Buffer, int], int]:
    """The offsets of the temps in use, and the size of the workspace."""
    ranges = _live_ranges(body, itertools.count())
    by_size = sorted((t for t in temps if t in ranges), key=lambda t: -t.nbytes)
    # The bytes of each placed temp, and its live range.
    starts, ends, first, last = np.zeros((4, len(by_size)), np.int64)
    for k, temp in enumerate(by_size):
        first[k], last[k] = ranges[temp]
        overlapping = (first[:k] <= last[k]) & (first[k] <= last[:k])
        nbytes = round_up(max(temp.nbytes, 1))
        starts[k] = _first_gap(starts[:k][overlapping], ends[:k][overlapping], nbytes)
        ends[k] = starts[k] + nbytes
    offsets = dict(zip(by_size, starts.tolist(), strict=True))
    return offsets, int(np.max(ends, initial=0))


def addresses(kernel: Kernel, places: Sequence[int]) -> dict[Buffer, int]:
    """The address of each buffer, from those of inputs, outputs, constants and the workspace."""
    *others, workspace = places
    passed = zip((*kernel.inputs, *kernel.outputs, *kernel.constants), others, strict=True)
    return {**dict(passed), **{x: workspace + offset for x, offset in kernel.offsets.items()}}


def overlap(one: Buffer, other: Buffer, offsets: Mapping[Buffer, int]) -> bool:
    """Whether two temps share bytes of the workspace; no other buffers do."""
    if one.role != "temp" or other.role != "temp":
        return one is other
    first, second = sorted((one, other), key=offsets.__getitem__)
    return offsets[second] < offsets[first] + first.nbytes


def overlapping(temps: Iterable[Buffer], offsets: Mapping[Buffer, int]
                ) -> frozenset[tuple[int, int]]:
    """The pairs of positions of temps that share bytes of the workspace."""
    pairs, live = set[tuple[int, int]](), list[tuple[int, int]]()
    for start, k, nbytes in sorted((offsets[x], k, x.nbytes) for k, x in enumerate(temps)):
        live = [(j, end) for j, end in live if start < end]
        pairs.update((min(j, k), max(j, k)) for j, _ in live)
        live.append((k, start + nbytes))
    return frozenset(pairs)


def round_up(n: int) -> int:
    """Round up to whole cache lines."""
    return -(-n // ALIGNMENT) * ALIGNMENT


def _first_gap(starts: np.ndarray, ends: np.ndarray, nbytes: int) -> int:
    """The first offset with `nbytes` free bytes."""
    order = np.argsort(starts)
    free = np.maximum.accumulate(np.concatenate([[0], ends[order]]))  # from here to the next
    fits = free[:-1] + nbytes <= starts[order]
    return int(free[np.argmax(fits) if fits.any() else -1])


def _live_ranges(body: Sequence[Statement], points: Iterator[int]) -> dict[Buffer, LiveRange]:
    """The live range of each temp: the statements, of the innermost body around all its uses, that
    contain them. A loop counts as a whole.
    """
    first_use: dict[Buffer, int] = {}
    ranges: dict[Buffer, LiveRange] = {}
    for statement in body:
        if type(statement) is Let:  # which most statements are
            continue
        begin, nested = next(points), bodies(statement)
        if nested and not isinstance(statement, Launch):
            inner = _live_ranges([each for body in nested for each in body], points)
        else:  # the blocks of a launch run concurrently: one program point
            every = accesses(walk((statement,))) if nested else accessed(statement)
            inner = {x: (begin, begin) for x in every if x.role == "temp"}
        end = next(points)
        for temp, live_range in inner.items():
            if temp in first_use:
                ranges[temp] = first_use[temp], end
            else:
                first_use[temp], ranges[temp] = begin, live_range
    return ranges
