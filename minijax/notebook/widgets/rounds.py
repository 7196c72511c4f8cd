"""The rounds of a scan, forwards and back: carries, what is kept, and cotangents.

Builds on `film`; the step and its `vjp` compute every number shown.  Chapter 09.
JAX has no counterpart.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from minijax.notebook.drawing import BLUE, ORANGE, arrow, box, words
from minijax.notebook.film import Film, Frame

WIDTH, SIDE, ROUND, LEFT = 58, 30, 112, 74  # of a box; from one round to the next
ROWS = {"carry": 12, "round": 62, "row of xs": 112, "cotangents": 168}


def rounds(step: Callable[[Any, Any], Any], init: float, xs: Sequence[float]) -> Film:
    """A scan of numbers and the gradient of its last carry, a round at a time.

    Args:
      step: ``(carry, x) -> carry``.
      init: the carry that comes into the first round.
      xs: a number for each round.

    >>> print(rounds(lambda c, x: c * x, 1.0, [2.0, 3.0]))
    1  Round 0 takes the carry 1 and the row 2, and gives the carry 2. It keeps 1 for the way back.
    2  Round 1 takes the carry 2 and the row 3, and gives the carry 6. It keeps 2 for the way back.
    3  The result is the last carry, 6. Its cotangent is 1.
    4  Back through round 1, which has kept 2: the cotangent of its row is 2, of its carry 3.
    5  Back through round 0, which has kept 1: the cotangent of its row is 3, of its carry 6.
    """
    from minijax import vjp
    carries, pulls = [init], []
    for x in xs:
        out, pull = vjp(step, carries[-1], x)
        carries.append(float(out))
        pulls.append(pull)
    n = len(xs)
    parts = [*_names(), *_number("carry", 0, init)]
    parts += [part for k, x in enumerate(xs) for part in (
        _round(k), *_number("row of xs", k, x, data_place=2 * n - k))]
    frames = []
    for k, x in enumerate(xs):
        parts = [*parts, *_forwards(k), *_number("carry", k + 1, carries[k + 1])]
        frames.append(Frame(
            f"Round {k} takes the carry {carries[k]:.4g} and the row {x:.4g}, and gives the carry "
            f"{carries[k + 1]:.4g}. It keeps {carries[k]:.4g} for the way back.",
            [*parts, _round(k, lit=True)]))
    cotangent = 1.0
    parts = [*parts, *_number("cotangents", n, cotangent, ORANGE)]
    frames.append(Frame(f"The result is the last carry, {carries[n]:.4g}. Its cotangent is 1.",
                        parts))
    for k in reversed(range(n)):
        cotangent, of_row = map(float, pulls[k](type_like(cotangent)))
        parts = [*parts, *_back(k), *_number("cotangents", k, cotangent, ORANGE),
                 words(_middle(k), ROWS["cotangents"] + 52, f"row: {of_row:.4g}", size=13)]
        frames.append(Frame(
            f"Back through round {k}, which has kept {carries[k]:.4g}: the cotangent of its row is "
            f"{of_row:.4g}, of its carry {cotangent:.4g}.", [*parts, _round(k, lit=True)]))
    return Film((LEFT + ROUND * n + WIDTH + 12, 232), {(): frames}, opens=0, still=n)


def type_like(x: float) -> Any:
    from minijax import numpy as jnp
    return jnp.float32(x)


def _place(k: float) -> float:
    """The middle of the carry that comes into round k."""
    return LEFT + WIDTH / 2 + ROUND * k


def _middle(k: int) -> float:
    return _place(k + 0.5)


def _names() -> Iterator[str]:
    for name, y in ROWS.items():
        if name != "round":
            yield words(4, y + 20, name, size=12, anchor="start", opacity=0.7)


def _number(row: str, k: float, value: float, colour: str = BLUE, **facts: Any) -> Iterator[str]:
    x = _middle(int(k)) if row == "row of xs" else _place(k)
    yield box(x - WIDTH / 2, ROWS[row], WIDTH, SIDE, colour, **facts)
    yield words(x, ROWS[row] + 20, f"{value:.4g}", code=True, size=14, pointer_events="none")


def _round(k: int, lit: bool = False) -> str:
    x = _middle(k)
    return box(x - 34, ROWS["round"], 68, SIDE, lit=lit, data_place=k) + words(
        x, ROWS["round"] + 20, f"round {k}", size=13, pointer_events="none")


def _forwards(k: int) -> Iterator[str]:
    top, middle, bottom = ROWS["carry"] + SIDE, ROWS["round"], ROWS["round"] + SIDE
    yield arrow((_place(k) + 8, top), (_middle(k) - 16, middle), BLUE)
    yield arrow((_middle(k) + 16, middle), (_place(k + 1) - 8, top), BLUE)
    yield arrow((_middle(k), ROWS["row of xs"]), (_middle(k), bottom), BLUE)


def _back(k: int) -> Iterator[str]:
    y = ROWS["cotangents"] + SIDE / 2
    yield arrow((_place(k + 1) - WIDTH / 2, y), (_place(k) + WIDTH / 2, y), ORANGE)
    yield arrow((_middle(k), y), (_middle(k), y + 24), ORANGE)
