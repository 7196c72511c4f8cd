"""Where an index lands: a read and an update at each index, in each mode.

Builds on `film`; `at` computes every element that is shown.  Chapter 14.  JAX has no counterpart.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.notebook.drawing import BLUE, INK, ORANGE, arrow, box, words
from minijax.notebook.film import Film, Frame

SIDE, TOP, LEFT, BEYOND = 44, 92, 20, 3  # pixels; indices beyond either end
MODES = ("not given", "clip", "fill, drop")


def places(n: int = 5) -> Film:
    """An index to drag along an array of n elements and beyond, for each mode.

    >>> print(places(3).rows["clip",][-1].caption)
    `x[5]` reads `x[2]`: 30. `.set(0)` writes `x[2]`.
    """
    from minijax import numpy as jnp
    x = jnp.arange(1.0, n + 1) * 10
    indices = range(-n - BEYOND, n + BEYOND)
    rows: dict[tuple[str, ...], list[Frame]] = {
        (mode,): [_frame(x, i, mode, indices) for i in indices] for mode in MODES}
    width = 2 * LEFT + SIDE * (n + 2 * BEYOND)
    return Film((width, TOP + SIDE + 34), rows, {"mode": MODES}, (MODES[0],),
                opens=n + BEYOND + 1, still=-1)


def landing(x: Any, i: int, mode: str) -> tuple[float, int | None, int | None]:
    """What is read at an index; the place that was read, and that is written, if there is one."""
    read_mode, write_mode = {"not given": (None, None), "clip": ("clip", "clip"),
                             "fill, drop": ("fill", "drop")}[mode]
    value = float(x.at[i].get(mode=read_mode))
    updated = np.asarray(x.at[i].set(0.0, mode=write_mode))
    read, written = (next(iter(np.flatnonzero(where).tolist()), None)
                     for where in (np.asarray(x) == value, updated == 0))
    return value, read, written


def _frame(x: Any, i: int, mode: str, indices: Sequence[int]) -> Frame:
    value, read, written = landing(x, i, mode)
    reads = f"reads `x[{read}]`: {value:g}" if read is not None else f"gives {value:g}"
    writes = f"writes `x[{written}]`" if written is not None else "writes nothing"
    return Frame(f"`x[{i}]` {reads}. `.set(0)` {writes}.",
                 [*_array(x), *_marker(i, len(x), indices), *_arrows(i, len(x), read, written)])


def _at(k: float) -> float:
    return LEFT + SIDE * (k + BEYOND + 0.5)


def _array(x: Any) -> list[str]:
    return [box(_at(k) - SIDE / 2, TOP, SIDE, SIDE, round=0)
            + words(_at(k), TOP + 28, f"{value:g}", code=True)
            + words(_at(k), TOP + SIDE + 20, str(k), size=13, opacity=0.7)
            for k, value in enumerate(np.asarray(x).tolist())]


def _spot(i: int, n: int) -> float:
    """Where an index stands: a negative one above the element that it counts to from the end."""
    return _at(i if i >= 0 else i + n)


def _marker(i: int, n: int, indices: Sequence[int]) -> list[str]:
    """The index, and the spots to which it can be dragged: negative ones above, others below."""
    spots = [box(_spot(k, n) - SIDE / 2, 8 if k < 0 else 34, SIDE, 24, fill_opacity=0.04,
                 stroke="none", round=0, data_place=place) for place, k in enumerate(indices)]
    names = [words(_spot(k, n), 25 if k < 0 else 51, str(k), INK, size=13, code=True,
                   font_weight="bold" if k == i else "normal", opacity=1 if k == i else 0.4,
                   pointer_events="none") for k in indices]
    return spots + names


def _arrows(i: int, n: int, read: int | None, written: int | None) -> list[str]:
    start = _spot(i, n)
    ends = {BLUE: read, ORANGE: written}
    return [arrow((start + side, 60), (_at(to) + side, TOP - 2), colour, 2.5)
            for (colour, to), side in zip(ends.items(), (-5, 5), strict=True) if to is not None]
