"""Memory against time: a chain of operations forwards and back, with and without checkpoints.

Builds on `film`; a test compares its counts with those of `checkpoint`.  Chapter 10.
JAX has no counterpart.
"""

from collections.abc import Iterator
from typing import NamedTuple

from minijax.notebook.drawing import BLUE, INK, ORANGE, dot, line, words
from minijax.notebook.film import Film, Frame

WIDTH, TOP, BOTTOM, LEFT = 420, 80, 226, 30


class Moment(NamedTuple):
    """After one operation: what was done to which sine of the chain, and which numbers are held."""

    does: str  # "sin", "again" or "back"
    place: int
    arguments: frozenset[int]  # of blocks, kept since the way forward
    residuals: frozenset[int]  # of single sines

    @property
    def held(self) -> int:
        return len(self.arguments) + len(self.residuals)


def moments(n: int, size: int) -> Iterator[Moment]:
    """The way forward and back through n sines, in blocks of a size; 0: without checkpoints.

    >>> [moment.held for moment in moments(4, 0)]
    [1, 2, 3, 4, 3, 2, 1, 0]
    >>> [moment.held for moment in moments(4, 2)]
    [1, 1, 2, 2, 4, 3, 1, 3, 2, 0]
    """
    arguments, residuals = set[int](), set[int]()

    def now(does: str, place: int) -> Moment:
        return Moment(does, place, frozenset(arguments), frozenset(residuals))

    for place in range(n):
        if not size:
            residuals.add(place)
        elif place % size == 0:
            arguments.add(place)
        yield now("sin", place)
    for first in reversed(range(0, n, size or n)):
        if size:  # every sine of the block but the last is needed again
            residuals.update(range(first, first + (size == 1)))
            for place in range(first, first + size - 1):
                residuals.update((place, place + 1))
                yield now("again", place)
        for place in reversed(range(first, first + (size or n))):
            residuals.discard(place)
            arguments -= {first} if place == first else set()
            yield now("back", place)


def checkpointing(n: int = 16) -> Film:
    """A chain of n sines and its gradient, for each size of blocks that divides n.

    >>> print(checkpointing(4).rows["blocks of 2",][-1].caption)
    Done: 6 sines, and never more than 4 numbers at once.
    """
    sizes = {"no checkpoints": 0} | {f"blocks of {size}": size for size in range(2, n + 1)
                                     if n % size == 0}
    ways = {name: list(moments(n, size)) for name, size in sizes.items()}
    longest = max(map(len, ways.values()))

    def at(time: int, held: int) -> tuple[float, float]:
        return (LEFT + time / longest * (WIDTH - LEFT - 8),
                BOTTOM - held / (n + 1) * (BOTTOM - TOP))

    def curve(name: str) -> list[tuple[float, float]]:
        return [at(0, 0), *(at(k, moment.held) for k, moment in enumerate(ways[name], 1))]

    axes = (line([at(0, n + 1), at(0, 0), at(longest, 0)], width=1)
            + words(LEFT, TOP - 6, "numbers held", size=13, anchor="start")
            + words(WIDTH - 8, BOTTOM + 18, "operations done", size=13, anchor="end")
            + words(LEFT - 6, at(0, n)[1] + 5, str(n), size=13, anchor="end")
            + "".join(line(curve(name), width=1, opacity=0.25) for name in ways))
    rows: dict[tuple[str, ...], list[Frame]] = {}
    for name, way in ways.items():
        ground = [axes, line(curve(name), BLUE, 2)]
        rows[name,] = [
            Frame(_said(k, n, way), [*ground, dot(*at(k, way[k - 1].held), 5, ORANGE),
                                     *(_cell(place, n, way[k - 1]) for place in range(n))])
            for k in range(1, len(way) + 1)]
    return Film((WIDTH, BOTTOM + 26), rows, {"chain": list(ways)}, ("no checkpoints",))


def _said(k: int, n: int, way: list[Moment]) -> str:
    moment = way[k - 1]
    if k == len(way):
        sines = sum(one.does != "back" for one in way)
        most = max(one.held for one in way)
        return f"Done: {sines} sines, and never more than {most} numbers at once."
    does = {"sin": "Forwards through", "again": "The block is open; again",
            "back": "Backwards through"}[moment.does]
    held = "1 number is held" if moment.held == 1 else f"{moment.held} numbers are held"
    return f"{does} sine {moment.place + 1} of {n}: {held}."


def _cell(place: int, n: int, moment: Moment) -> str:
    """A sine of the chain: blue with a block's argument, orange with a number of its own."""
    x, radius = LEFT + (place + 0.5) * (WIDTH - LEFT - 8) / n, min(9, 150 / n)
    colour = ORANGE if place in moment.residuals else BLUE if place in moment.arguments else "none"
    ring = dot(x, 28, radius + 4, "none", stroke=INK, stroke_width=2) * (place == moment.place)
    return dot(x, 28, radius, colour, stroke=INK, stroke_width=1) + ring
