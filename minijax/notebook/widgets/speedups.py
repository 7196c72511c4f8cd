"""A training step on many ranks: how many times as fast it is, by the size of the batch.

Builds on `placement.communication_costs`, whose costs it draws.  Chapter 11.
JAX has no counterpart.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

from minijax.notebook.drawing import BLUE, INK, ORANGE, box, dot, line, words
from minijax.notebook.film import Film, Frame
from minijax.placement.communication_costs import Machine

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 460.0, 270.0, 52.0, 24.0, 26.0, 40.0
COUNTS = tuple(4**k for k in range(7))  # of ranks


def scaling(machine: Machine, plan: Callable[[int, int], Any], batches: Sequence[int]) -> Film:
    """The speed of a step on 1 to 4,096 ranks, beside that on one; a frame for each batch.

    Args:
      machine: the ranks.
      plan: from the size of the batch, and the number of ranks, to the plan of the step.
      batches: sizes, each a multiple of 4,096.

    >>> import minijax as jax
    >>> from minijax import P
    >>> from minijax.placement.communication_costs import planned
    >>> def plan(n, ranks):
    ...     x = jax.ShapeDtypeStruct((n, 64), "float32")
    ...     return planned(lambda x: (x * x).sum(0), {"data": ranks}, P("data"))(x)
    >>> scaling(Machine(flops=1e9), plan, [1 << 14, 1 << 18])
    1  A batch of 16,384: 256 ranks are fastest, 24 times one. More ranks wait for messages.
    2  A batch of 262,144: on 4,096 ranks it is 262 times as fast as on one.
    """
    speeds = [_speeds(machine, plan, batch) for batch in batches]
    ground = _ground(len(batches))
    frames = []
    for batch, some in zip(batches, speeds, strict=True):
        best = max(range(len(COUNTS)), key=some.__getitem__)
        others = [line(_points(each), BLUE, 1.2, opacity=0.25) for each in speeds]
        frames.append(Frame(_said(batch, COUNTS[best], some[best]), [
            *ground, *others, line(_points(some), BLUE, 2.5), *[
                dot(*point, 3.5, BLUE) for point in _points(some)],
            dot(*_points(some)[best], 6, ORANGE)]))
    return Film((WIDTH, HEIGHT), {(): frames}, opens=len(frames) // 2, still=len(frames) // 2)


def _speeds(machine: Machine, plan: Callable[[int, int], Any], batch: int) -> list[float]:
    seconds = [machine.cost(plan(batch, count).jaxpr).seconds for count in COUNTS]
    return [seconds[0] / each for each in seconds]


def _said(batch: int, count: int, speed: float) -> str:
    what = f"A batch of {batch:,}: "
    if count == COUNTS[-1]:
        return f"{what}on {count:,} ranks it is {speed:,.0f} times as fast as on one."
    if count == 1:
        return f"{what}one rank is fastest. More ranks wait for messages."
    return (f"{what}{count:,} ranks are fastest, {speed:,.0f} times one. "
            "More ranks wait for messages.")


def _at(count: float, speed: float) -> tuple[float, float]:
    top = math.log2(COUNTS[-1])
    return (LEFT + math.log2(count) / top * (WIDTH - LEFT - RIGHT),
            HEIGHT - BOTTOM - math.log2(max(speed, 1)) / top * (HEIGHT - TOP - BOTTOM))


def _points(speeds: Sequence[float]) -> list[tuple[float, float]]:
    return [_at(*point) for point in zip(COUNTS, speeds, strict=True)]


def _ground(places: int) -> list[str]:
    """The axes, the line where no time is lost, and strips that lead to the frames."""
    left, right = _at(1, 1), _at(COUNTS[-1], COUNTS[-1])
    parts = [line([(left[0], TOP), left, (right[0], left[1])], width=1, opacity=0.5),
             line([left, right], INK, 1, stroke_dasharray="4 3", opacity=0.5),
             words(6, 14, "times as fast as one rank", size=13, anchor="start"),
             words(WIDTH - RIGHT, HEIGHT - 6, "ranks", size=13, anchor="end")]
    for count in COUNTS:
        parts += [words(_at(count, 1)[0], HEIGHT - 24, f"{count:,}", size=12),
                  words(LEFT - 6, _at(1, count)[1] + 4, f"{count:,}", size=12, anchor="end")]
    step = (HEIGHT - TOP - BOTTOM) / places
    return parts + [box(LEFT, HEIGHT - BOTTOM - step * (k + 1), WIDTH - LEFT - RIGHT, step,
                        round=0, fill_opacity=0, stroke="none", data_place=k)
                    for k in range(places)]
