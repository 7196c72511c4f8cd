"""What a warp asks of memory, by its stride: which sectors are sent, and how much of each is used.

Builds on `film`; a test compares its counts with those of the emulator.  Chapter 27.
JAX has no counterpart.
"""

import itertools
from collections.abc import Iterator

from minijax.notebook.accesses import SECTOR
from minijax.notebook.drawing import BLUE, attributes, box, words
from minijax.notebook.film import Film, Frame

WARP, STRIDES, ACROSS, ROWS = 32, range(1, 17), 16, 8  # threads; sectors in a row, and rows
DTYPES = {"float16": 2, "float32": 4, "float64": 8}


def sectors(offset: int = 0) -> Film:
    """The sectors that a load of a warp touches: a stride to drag, for numbers of each size.

    Args:
      offset: the number with which thread 0 begins.

    >>> print(sectors().rows["float32",][1].caption)
    Stride 2: the 32 numbers lie in 8 sectors, and 50% of what memory sends is used.
    """
    rows: dict[tuple[str, ...], list[Frame]] = {
        (name,): [_frame(stride, size, offset) for stride in STRIDES]
        for name, size in DTYPES.items()}
    return Film((16 + 32 * ACROSS, 50 + 17 * ROWS), rows, {"dtype": list(DTYPES)}, ("float32",),
                still=1)


def touched(stride: int, size: int, offset: int) -> dict[int, set[int]]:
    """The requested bytes of each sector."""
    requested: dict[int, set[int]] = {}
    for thread in range(WARP):
        first = (offset + stride * thread) * size
        for byte in range(first, first + size):
            requested.setdefault(byte // SECTOR, set()).add(byte % SECTOR)
    return requested


def _frame(stride: int, size: int, offset: int) -> Frame:
    requested = touched(stride, size, offset)
    used = WARP * size / (len(requested) * SECTOR)
    count = f"{len(requested)} sector{'s' * (len(requested) > 1)}"
    return Frame(f"Stride {stride}: the 32 numbers lie in {count}, and {used:.0%} of what memory "
                 "sends is used.", [*_strides(stride), *_drawn(requested)])


def _strides(stride: int) -> Iterator[str]:
    """The strides, to press or drag along."""
    yield words(10, 22, "stride", size=13, anchor="start")
    for place, k in enumerate(STRIDES):
        x = 64 + 28 * place
        yield box(x, 6, 28, 24, round=0, stroke="none", data_place=place,
                  fill_opacity=0.4 if k == stride else 0.06)
        yield words(x + 14, 22, str(k), size=12, pointer_events="none")


def _drawn(requested: dict[int, set[int]]) -> Iterator[str]:
    """All sectors; those that are sent; the requested bytes."""
    every = [(sector, 0, SECTOR) for sector in range(ROWS * ACROSS)]
    runs = [(sector, first, len(list(run))) for sector, some in sorted(requested.items())
            for first, run in _runs(sorted(some))]
    yield _blocks(every, 0.05)
    yield _blocks([each for each in every if each[0] in requested], 0.25)
    yield _blocks(runs, 0.9)


def _runs(some: list[int]) -> Iterator[tuple[int, list[int]]]:
    """Consecutive numbers, and the first of each run."""
    for _, run in itertools.groupby(enumerate(some), lambda pair: pair[1] - pair[0]):
        members = [number for _, number in run]
        yield members[0], members


def _blocks(blocks: list[tuple[int, int, int]], opacity: float) -> str:
    """Parts of sectors, of so many bytes from a first one on, as one path."""
    way = ""
    for sector, first, count in blocks:
        row, column = divmod(sector, ACROSS)
        if row < ROWS:
            way += f"M{10 + column * 32 + first * 28 / SECTOR:g} {44 + row * 17}" \
                   f"h{count * 28 / SECTOR:g}v12h{-count * 28 / SECTOR:g}z"
    return f"<path{attributes(d=way, fill=BLUE, fill_opacity=opacity)}/>"
