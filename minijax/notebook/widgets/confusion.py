"""Perturbation confusion: two tangents in two colours, and their confusion without levels.

Builds on `film`; `jvp` computes the values shown.  Chapter 03.  JAX has no counterpart.
"""

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any, NamedTuple
from unittest import mock

from minijax.core import Zero
from minijax.core.jvp import JVPTrace, JVPTracer
from minijax.notebook.drawing import BLUE, ORANGE, arrow, box, dot, words
from minijax.notebook.film import Film, Frame

COLOURS = {1: ORANGE, 2: BLUE}  # by level
PLACES = {"x": (8, 8), "y": (8, 148), "x + y": (150, 78), "slope by y": (292, 148),
          "x · slope": (292, 8)}
ARROWS = {"x + y": [((128, 60), (150, 92)), ((128, 160), (150, 128))],
          "slope by y": [((270, 128), (292, 160))],
          "x · slope": [((128, 34), (292, 34)), ((352, 148), (352, 70))]}
WIDTH, HEIGHT = 120, 62


class Seen(NamedTuple):
    """A value, and how fast it moves for each level."""

    value: float
    speeds: dict[int, float]


def speeds(x: Any) -> Seen:
    """What is in a tracer, down to the numbers."""
    found = {}
    while isinstance(x, JVPTracer):
        found[x.level.depth] = speeds(x.tangent).value
        x = x.primal
    return Seen(float(x), found)


def any_level(self: JVPTrace, x: Any) -> tuple[Any, Any]:
    """`JVPTrace.split` without levels: it takes every tracer for its own."""
    return (x.primal, x.tangent) if isinstance(x, JVPTracer) else (x, Zero(x.aval))


def observed(levels: bool) -> dict[str, Seen]:
    """Each value on the way to the slope of x · d/dy (x + y), at x = y = 1."""
    from minijax import jvp
    seen: dict[str, Seen] = {}

    def outer(x: Any) -> Any:
        def inner(y: Any) -> Any:
            seen.update({"x": speeds(x), "y": speeds(y), "x + y": speeds(x + y)})
            return x + y
        slope = jvp(inner, (1.0,), (1.0,))[1]
        seen.update({"slope by y": speeds(slope), "x · slope": speeds(x * slope)})
        return x * slope

    with nullcontext() if levels else mock.patch.object(JVPTrace, "split", any_level):
        jvp(outer, (1.0,), (1.0,))
    return seen


def said(levels: bool, seen: dict[str, Seen]) -> dict[str, str]:
    blue, slope = seen["x + y"].speeds[2], seen["x · slope"].speeds[1]
    return {
        "x": f"The outer `jvp` lets `x` move: level 1, orange, speed {seen['x'].speeds[1]:g}.",
        "y": f"The inner `jvp` lets `y` move, and only `y`: level 2, blue, speed "
             f"{seen['y'].speeds[2]:g}.",
        "x + y": (f"For level 2, `x` is not its own and stands still: the blue speed of `x + y` is "
                  f"{blue:g}. The orange one is added up on level 1." if levels else
                  f"Level 2 takes every speed for its own, and adds the orange 1 to the blue 1: "
                  f"the blue speed of `x + y` is {blue:g}, and nothing orange is left."),
        "slope by y": f"The derivative by `y` is the blue speed, {seen['slope by y'].value:g}.",
        "x · slope": f"Times `x`, which is orange: the slope is {slope:g}. "
                     + ("That is right: the function is `x`." if slope == 1 else
                        "That is wrong: the function is `x`, and its slope is 1."),
    }


def confusion() -> Film:
    """The slope of `x · d/dy (x + y)`, computed with levels and without.

    >>> print(confusion().rows["off",][2].caption)
    Level 2 takes every speed for its own, and adds the orange 1 to the blue 1: the blue speed of \
`x + y` is 2, and nothing orange is left.
    """
    rows: dict[tuple[str, ...], list[Frame]] = {}
    for option in ("on", "off"):
        seen = observed(option == "on")
        captions = said(option == "on", seen)
        parts: list[str] = []
        row = []
        for name in PLACES:
            parts += [arrow(*ends) for ends in ARROWS.get(name, ())]
            row.append(Frame(captions[name], [*parts, *_drawn(name, seen[name], lit=True)]))
            parts += _drawn(name, seen[name])
        rows[option,] = row
    return Film((420, 218), rows, {"levels": ("on", "off")}, ("on",))


def _drawn(name: str, seen: Seen, lit: bool = False) -> Iterator[str]:
    """A box: the name of a value, the value, and a dot with each of its speeds."""
    x, y = PLACES[name]
    yield box(x, y, WIDTH, HEIGHT, lit=lit, fill_opacity=0.18 if lit else 0.05,
              data_place=list(PLACES).index(name))
    yield words(x + WIDTH / 2, y + 22, name, size=14, font_weight="bold")
    yield words(x + 14, y + 47, f"{seen.value:g}", anchor="start", code=True)
    for k, (level, speed) in enumerate(sorted(seen.speeds.items())):
        yield dot(x + 50 + 36 * k, y + 42, 7, COLOURS[level])
        yield words(x + 62 + 36 * k, y + 47, f"{speed:g}", anchor="start", code=True)
