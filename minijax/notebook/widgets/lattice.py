"""The promotion lattice as a map, with the paths of two dtypes to their promoted dtype.

Builds on `film`; the steps and the promoted dtype are those of `dtypes`.
Chapter 01.  JAX has no counterpart.
"""

import functools
import itertools
from collections.abc import Sequence

import numpy as np

from minijax import config, dtypes
from minijax.notebook.drawing import BLUE, GREEN, ORANGE, arrow, box, line, words
from minijax.notebook.film import Film, Frame

NODES = [low for low, _ in dtypes._STEPS]
NAMES = {dtypes._node(name): name for name in NODES}
COLUMN = {"u": 80, "i": 320, "f": 130, "bfloat16": 60, "float16": 200, "complex*": 340,
          "complex64": 270}  # by name, or by the first letter of it; the others in the middle
ROW, WIDTH, HEIGHT = 46, 98, 28


def steps() -> dict[str, list[str]]:
    """Each type, and those just above it, as the flags are now."""
    strict = config.numpy_dtype_promotion.value == "strict"
    return {NAMES[low]: [NAMES[high] for high in highs if high in NAMES]
            for low, highs in dtypes._steps_up(strict, config.enable_x64.value).items()
            if low in NAMES}


def meeting(a: str, b: str) -> str:
    """Where two of the lattice meet."""
    return NAMES[dtypes.join([dtypes._node(a), dtypes._node(b)])]


def way(above: dict[str, list[str]], start: str, end: str) -> list[str]:
    """A shortest way up."""
    ways = [[start]]
    for found in ways:  # grows while it is read
        if found[-1] == end:
            return found
        ways += [[*found, high] for high in above[found[-1]]]
    raise ValueError(f"no way leads from {start} to {end}")


def place(name: str) -> tuple[float, float]:
    """The middle of a type's box: the further up, the more steps lie below it."""
    by_letter = 200 if "*" in name else COLUMN.get(name[0], 200)
    return COLUMN.get(name, by_letter), 25 + ROW * (_height("complex128") - _height(name))


@functools.cache
def _height(name: str) -> int:
    return 1 + max([_height(low) for low, highs in dtypes._STEPS if name in highs.split()],
                   default=-1)


def lattice(first: str = "int32", second: str = "float16") -> Film:
    """Two dtypes on their way up to the first place above both, for any two.

    A star marks the weak types of written numbers.  Press a dtype, then another.

    >>> lattice("uint8", "int8")
    first: uint8
    second: int8
    1  uint8 and int8 set out.
    2  They meet in int16.
    """
    above = steps()
    ground = "".join([_edge(low, high) for low, highs in above.items() for high in highs]
                     + [_box(name) for name in NODES])
    rows: dict[tuple[str, ...], Sequence[Frame]] = {
        (a, b): _walk(above, a, b, ground) for a, b in itertools.product(NODES, NODES)}
    size = (400, place("bool")[1] + 25)
    return Film(size, rows, {"first": NODES, "second": NODES}, (first, second))


def _walk(above: dict[str, list[str]], a: str, b: str, ground: str) -> Sequence[Frame]:
    end = meeting(a, b)
    ways = way(above, a, end), way(above, b, end)
    frames, trails = [], [ground]
    for moment in range(max(map(len, ways))):
        now = [w[min(moment, len(w) - 1)] for w in ways]
        for shift, colour, walked in zip((-2, 2), (ORANGE, BLUE), ways, strict=True):
            trails += [_edge(walked[moment - 1], walked[moment], colour, shift)
                       ] if 0 < moment < len(walked) else []
        met = now[0] == now[1]
        said = (f"They meet in `{end}`." if met and moment else f"Both are `{end}`." if met else
                f"`{a}` and `{b}` set out." if not moment else f"At `{now[0]}` and `{now[1]}`.")
        tokens = zip([end] if met else now, [GREEN] if met else [ORANGE, BLUE], strict=True)
        frames.append(Frame(said, [*trails, *itertools.starmap(_token, tokens)]))
    return frames


def _edge(low: str, high: str, colour: str = "", shift: float = 0) -> str:
    (x0, y0), (x1, y1) = place(low), place(high)
    if y0 == y1:  # a step to the side
        side = np.sign(x1 - x0) * WIDTH / 2
        start, end = (x0 + side, y0 + shift), (x1 - side, y1 + shift)
    else:
        start, end = (x0 + shift, y0 - HEIGHT / 2), (x1 + shift, y1 + HEIGHT / 2)
    return line([start, end], colour, 4) if colour else arrow(start, end, opacity=0.55, width=1.2)


def _box(name: str) -> str:
    x, y = place(name)
    return (box(x - WIDTH / 2, y - HEIGHT / 2, WIDTH, HEIGHT, fill_opacity=0.04,
                data_choice=NODES.index(name), stroke_dasharray="4 3" if "*" in name else "none")
            + words(x, y + 5, name, size=14, pointer_events="none"))


def _token(name: str, colour: str) -> str:
    x, y = place(name)
    return box(x - WIDTH / 2, y - HEIGHT / 2, WIDTH, HEIGHT, colour, lit=True, stroke_width=4,
               pointer_events="none")
