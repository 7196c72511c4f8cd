"""Which block of each array a rank holds, and what the ranks send each other in a step.

Builds on `placement.communication_costs`, whose plan it draws.  Chapter 11.
JAX has no counterpart.
"""

import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from minijax import tree_util
from minijax.core import ShapedArray
from minijax.notebook.drawing import BLUE, INK, LETTER, ORANGE, box, words
from minijax.notebook.film import Film, Frame
from minijax.placement.across import Grid
from minijax.placement.communication_costs import Transfer, layouts_of, planned, transfers
from minijax.placement.moves import Layout, bytes_of

SHOWN = 4  # ranks
WIDE, HIGH, ROW, TOP, BAND = 64, 30, 44, 34, 40

# Of each kind, what a rank gets from the others.
GETS = {"reduce": "each gets the sum", "gather": "each gets all blocks",
        "exchange": "each gets its part of all blocks", "permute": "each gets that of another"}


class Held(NamedTuple):
    """An array: its name, the type of a block, and how it is cut."""

    name: str
    block: ShapedArray
    layout: Layout

    def part(self, grid: Grid, rank: int) -> list[tuple[float, float]]:
        """Where the block of a rank begins and ends along each axis, as parts of the array."""
        counts = [grid.count(names) for names in self.layout]
        places = [grid.block(rank, names) for names in self.layout]
        return [(k / n, (k + 1) / n) for k, n in zip(places, counts, strict=True)]


def blocks(f: Callable, axes: Mapping[str, int], in_specs: Any, *args: Any, out_specs: Any = None
           ) -> Film:
    """Partition a function, and look at what each rank holds and sends.

    Args:
      f: a function of arrays, in trees.
      axes, in_specs, out_specs: as in `communication_costs.planned`.
      args: its arguments, of which only the types count.

    >>> import numpy as np
    >>> from minijax import P
    >>> blocks(lambda w, x: (x @ w).sum(), {"i": 2}, (P(), P("i")), np.ones(3), np.ones((8, 3)))
    1  Each rank holds its block of x, and all of w: 60 bytes.
    2  For reduce_sum: reduce of 4 bytes, each gets the sum.
    3  Each rank holds all of result: 4 bytes.
    """
    plan = planned(f, axes, in_specs, out_specs)(*args)
    specs = in_specs if type(in_specs) is tuple else (in_specs,) * len(args)
    grid = Grid(tuple(axes.items()), tuple(range(math.prod(axes.values()))))
    names = [*inspect.signature(f).parameters][:len(args)]
    before = held(names_of(names, args), plan.jaxpr.in_avals, layouts_of(specs, args))
    count = len(plan.jaxpr.out_avals)
    results = ["result"] if count == 1 else [f"result {k}" for k in range(count)]
    after = held(results, plan.jaxpr.out_avals, plan.layouts_out)
    left = LETTER * 14 * max(len(x.name) for x in (*before, *after)) + 20
    size = (left + (WIDE + 24) * min(SHOWN, len(grid.ranks)) + 4,
            TOP + ROW * max(len(before), len(after)) + BAND + 8)
    frames = [Frame(said(before), drawn(before, grid, left))]
    frames += [Frame(told(sent), [*drawn(before, grid, left), band(sent, size)])
               for sent in transfers(plan.jaxpr)]
    return Film(size, {(): [*frames, Frame(said(after), drawn(after, grid, left))]})


def names_of(names: Sequence[str], args: tuple) -> list[str]:
    """Those of the leaves of the arguments."""
    paths = tree_util.tree_flatten_with_path(dict(enumerate(args)))[0]
    return [names[path[0].key] + tree_util.keystr(path[1:]) for path, _ in paths]


def held(names: Sequence[str], avals: Sequence[ShapedArray], layouts: Sequence[Layout]
         ) -> list[Held]:
    return list(map(Held, names, avals, layouts))


# ── In words ─────────────────────────────────────────────────────────────────────────────────

def said(arrays: Sequence[Held]) -> str:
    """What a rank holds."""
    cut, whole = ([f"`{x.name}`" for x in arrays if any(x.layout) is is_cut]
                  for is_cut in (True, False))
    parts = [f"{what} {', '.join(some)}" for what, some in (("its block of", cut),
                                                            ("all of", whole)) if some]
    size = sum(bytes_of(x.block) for x in arrays)
    return f"Each rank holds {', and '.join(parts)}: {size:,} bytes."


def told(sent: Transfer) -> str:
    """What is sent."""
    operation = sent.where.partition(" at ")[0]
    often = f" {sent.times} times" if sent.times > 1 else ""
    return f"For `{operation}`: {sent.kind} of {sent.bytes:,} bytes{often}, {GETS[sent.kind]}."


# ── In a drawing ─────────────────────────────────────────────────────────────────────────────

def drawn(arrays: Sequence[Held], grid: Grid, left: float) -> list[str]:
    """A row for each array, a column for each rank."""
    parts = [words(left + (WIDE + 24) * k + WIDE / 2, 20, f"rank {rank}", size=14)
             for k, rank in enumerate(grid.ranks[:SHOWN])]
    for row, x in enumerate(arrays):
        y = TOP + ROW * row
        parts.append(words(left - 12, y + HIGH / 2 + 5, x.name, size=14, code=True, anchor="end"))
        for k, rank in enumerate(grid.ranks[:SHOWN]):
            parts += thumbnail(x, x.part(grid, rank), left + (WIDE + 24) * k, y)
    return parts


def thumbnail(x: Held, part: list[tuple[float, float]], left: float, y: float) -> Iterator[str]:
    """An array, and in it the block that a rank holds: rows downwards, columns to the right."""
    vertical, across = ([(0.0, 1.0)] * 2 + part)[-2:] if len(part) < 2 else part[:2]
    high = HIGH if len(part) > 1 else HIGH / 2.5
    top = y + (HIGH - high) / 2
    yield box(left, top, WIDE, high, INK, round=2, fill_opacity=0.04)
    yield box(left + WIDE * across[0], top + high * vertical[0], WIDE * (across[1] - across[0]),
              high * (vertical[1] - vertical[0]), BLUE, lit=True, round=2, stroke_width=1.5)


def band(sent: Transfer, size: tuple[float, float]) -> str:
    """What is sent, below all ranks."""
    width, height = size
    y = height - BAND
    return (box(6, y, width - 12, BAND - 8, ORANGE)
            + words(width / 2, y + 21, f"{sent.kind}: {sent.bytes:,} bytes", size=14,
                    code=True))
