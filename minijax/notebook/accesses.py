"""The memory accesses of a warp, as pictures of the emulator's records.

Builds on `compiler.targets`.  Chapter 27.  In JAX: nothing; NVIDIA's Nsight Compute counts sectors.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from minijax import tree_util
from minijax.compiler.loops import Launch, Load, Statement, Store, walk
from minijax.compiler.schedule import lower_to_kernel
from minijax.compiler.targets import programs
from minijax.compiler.targets.launches import scheduled
from minijax.compiler.targets.thread_block import WARP
from minijax.notebook import drawing
from minijax.notebook.show import Shown, picture

SECTOR = 32                       # bytes that memory sends at once
WIDEST = 16                       # bytes that a thread asks for at once
FULL = "▁▂▃▄▅▆▇█"                 # how much of a sector is asked for
ON_CHIP = ("shared", "local")     # what is no memory of the device's
EDGE, SIDE, GAP, WIDTH = 10, 14, 1, 500  # pixels


@dataclass(eq=False)
class Access:
    """A load or a store of a launch: what its first warp touches at once, and what all have."""

    statement: Load | Store
    whose: tuple[int, int]  # block and warp
    first: np.ndarray       # places in the buffer
    asked: int = 0          # bytes
    sent: int = 0           # sectors

    @property
    def name(self) -> str:
        kind = "load" if isinstance(self.statement, Load) else "store"
        return f"{kind} {self.statement.buffer.name}"

    @property
    def percent(self) -> int:
        """Of the bytes that are sent, how many are asked for."""
        return round(100 * self.asked / (self.sent * SECTOR))

    def sectors(self) -> list[set[int]]:
        """The sectors of the first access, in order: which bytes of each are asked for."""
        size = self.statement.buffer.dtype.itemsize
        found: dict[int, set[int]] = {}
        for byte in (self.first[:, None] * size + np.arange(size)).ravel().tolist():
            found.setdefault(byte // SECTOR, set()).add(byte % SECTOR)
        return [found[k] for k in sorted(found)]


def show_accesses(fun: Callable, *args: Any) -> Shown:
    """What the threads 0 to 31 of a block load and store at once, on an emulated GPU.

    Memory sends sectors of 32 bytes. Each line is a load or a store of the program: for how many
    numbers the first 32 threads ask when they first come there, in how many sectors these lie, and
    how much of each is asked for. The percentage is of all bytes that are sent there, by the whole
    launch.

    Args:
      fun: a function, which may be a jitted one.
      args: its arguments; small ones, since the emulator runs all of the program.

    Raises:
      Refused: if the program does what a GPU would get wrong.

    >>> show_accesses(lambda x: x * 2, np.ones((8, 32), np.float32))
    launch 0: 1 block of 256 threads
      load in0    32 numbers in  4 sectors  ████  100%
      store out0  32 numbers in  4 sectors  ████  100%
    """
    found = accesses(fun, *args)
    text = "\n".join(line for number, (launch, some) in enumerate(found)
                     for line in (_title(number, launch), *_lines(some)))
    return Shown(text, picture(_svg(found), text))


def accesses(fun: Callable, *args: Any) -> list[tuple[Launch, list[Access]]]:
    """For each launch of a function that runs, the accesses to the device's memory, in order."""
    from minijax.transforms.api import jit
    lowered = (fun if hasattr(fun, "lower") else jit(fun)).lower(*args)._lowered
    kernel = scheduled(lower_to_kernel(lowered.jaxpr, lowered.name, on_gpu=True))
    found: dict[Statement, Access] = {}

    def watch(statement: Any, block: int, threads: np.ndarray, places: np.ndarray) -> None:
        for warp in np.unique(threads // WARP) if statement.buffer.role not in ON_CHIP else ():
            mine, size = places[threads // WARP == warp], statement.buffer.dtype.itemsize
            whose = block, int(warp)
            access = found.setdefault(statement, Access(statement, whose, mine))
            if whose < access.whose:
                access.whose, access.first = whose, mine
            access.asked += len(np.unique(mine)) * size
            access.sent += len(np.unique(mine * size // SECTOR))

    programs.emulate(kernel, [np.asarray(x) for x in tree_util.tree_leaves(args)], watch=watch)
    launches = [each for each in walk(kernel.body) if isinstance(each, Launch)]
    rows = [(launch, _joined(found[each] for each in walk(launch.body) if each in found))
            for launch in launches]
    return [(launch, some) for launch, some in rows if some]


def _joined(some: Iterable[Access]) -> list[Access]:
    """The accesses, where those of each thread's neighbouring numbers are one, of 16 bytes at most.

    LLVM joins them so; since they are aligned, one number lies in the sector of all.
    """
    joined: list[Access] = []
    for access in some:
        last = joined[-1] if joined else access
        count, size = len(access.first), access.statement.buffer.dtype.itemsize
        start, width = last.first[:count], len(last.first) // count * size
        if (access.name == last.name and access.whose == last.whose and width < WIDEST
                and not np.any(start * size % WIDEST) and len(last.first) % count == 0
                and np.array_equal(access.first * size, start * size + width)):
            last.first = np.concatenate([last.first, access.first])
            last.asked += access.asked
        else:
            joined.append(access)
    return joined


def _title(number: int, launch: Launch) -> str:
    return f"launch {number}: {_count(launch.blocks, 'block')} of {launch.threads} threads"


def _count(n: int, what: str, width: int = 0) -> str:
    """So many of something; in a column, if it has a width."""
    return f"{n:{width}} {what}{'s' if n != 1 else ' ' if width else ''}"


def _lines(some: list[Access]) -> Iterator[str]:
    width = max(len(access.name) for access in some)
    for access in some:
        parts = "".join(FULL[len(each) * len(FULL) // SECTOR - 1] for each in access.sectors())
        yield (f"  {access.name:{width}}  {_count(len(access.first), 'number', 2)} in "
               f"{_count(len(parts), 'sector', 2)}  {parts}  {access.percent}%")


def _svg(found: list[tuple[Launch, list[Access]]]) -> str:
    """A row of sectors for each access; what is asked for of a sector is full."""
    pieces: list[str] = []
    y = 0
    for number, (launch, some) in enumerate(found):
        y += 24
        pieces.append(drawing.words(EDGE, y, _title(number, launch), size=15, anchor="start",
                                    font_weight="bold"))
        for access in some:
            sectors = access.sectors()
            y += 28
            label = (f"{access.name}: {_count(len(access.first), 'number')} in "
                     f"{_count(len(sectors), 'sector')}")
            pieces += [drawing.words(EDGE, y, label, size=14, anchor="start"),
                       drawing.words(WIDTH - EDGE, y, f"{access.percent}%", size=14, anchor="end")]
            for k, asked in enumerate(sectors):
                row, column = divmod(k, WARP)
                pieces += _sector(EDGE + column * (SIDE + GAP), y + 6 + row * (SIDE + 3), asked,
                                  isinstance(access.statement, Store))
            y += 6 + -(-len(sectors) // WARP) * (SIDE + 3)
        y += 12
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y}" '
            f'viewBox="0 0 {WIDTH} {y}" font-family="sans-serif">{"".join(pieces)}</svg>')


def _sector(x: float, y: float, asked: set[int], stores: bool) -> Iterator[str]:
    colour = drawing.ORANGE if stores else drawing.BLUE
    yield drawing.box(x, y, SIDE, SIDE, colour, round=0, stroke_width=0.7)
    starts = [byte for byte in sorted(asked) if byte - 1 not in asked]
    for start in starts:
        stop = next(byte for byte in range(start, SECTOR + 1) if byte not in asked)
        yield drawing.box(x + start * SIDE / SECTOR, y, (stop - start) * SIDE / SECTOR, SIDE,
                          colour, round=0, stroke="none", fill_opacity=1)
