"""A tangent to drag along a curve: the value and the slope that `jvp` computes there.

Builds on `film`.  Chapter 03.  JAX has no counterpart.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.notebook.drawing import BLUE, INK, ORANGE, box, dot, line, words
from minijax.notebook.film import Film, Frame

WIDTH, HEIGHT, EDGE = 420.0, 240.0, 14.0


def tangent(fun: Callable[[Any], Any], low: float, high: float, places: int = 41) -> Film:
    """The graph of a function of one number, and its tangent at each of some places.

    >>> print(tangent(lambda x: x * x, 0.0, 2.0, places=3))
    1  At x = 0.00 the value is 0.000, and the slope 0.000.
    2  At x = 1.00 the value is 1.000, and the slope 2.000.
    3  At x = 2.00 the value is 4.000, and the slope 4.000.
    """
    from minijax import jvp, vmap
    xs = np.linspace(low, high, places, dtype=np.float32)
    ys, slopes = map(np.asarray, vmap(lambda x: jvp(fun, (x,), (1.0,)))(xs))
    fine = np.linspace(low, high, 101, dtype=np.float32)
    curve = np.asarray(vmap(fun)(fine))
    bottom, top = min(curve.min(), 0.0), max(curve.max(), 0.0)

    def at(x: float, y: float) -> tuple[float, float]:
        return (EDGE + (x - low) / (high - low) * (WIDTH - 2 * EDGE),
                HEIGHT - EDGE - (y - bottom) / (top - bottom or 1.0) * (HEIGHT - 2 * EDGE))

    ground = line([at(low, 0), at(high, 0)], width=1, opacity=0.5)
    ground += line([at(*place) for place in zip(fine.tolist(), curve.tolist(), strict=True)],
                   BLUE, 2.5)
    step = (WIDTH - 2 * EDGE) / (places - 1 or 1)
    strips = "".join(
        box(at(x, 0)[0] - step / 2, 0, step, HEIGHT, fill="transparent", stroke="none",
            data_place=k, style="touch-action:pan-y;cursor:ew-resize")
        for k, x in enumerate(xs.tolist()))
    frames = []
    for x, y, slope in zip(*(values.tolist() for values in (xs, ys, slopes)), strict=True):
        (x0, y0), (x1, y1), reach = at(x, y), at(x + 1, y + slope), high - low
        touching = line([at(x - reach, y - reach * slope), at(x + reach, y + reach * slope)],
                        ORANGE, 2)
        one = line([(x0, y0), (x1, y0), (x1, y1)], ORANGE, stroke_dasharray="4 3")
        one += words((x0 + x1) / 2, y0 + (14 if slope >= 0 else -5), "1", size=13)
        one += words(x1 + 4, (y0 + y1) / 2 + 5, f"{slope:.2f}", size=13, anchor="start")
        frames.append(Frame(
            f"At `x = {x:.2f}` the value is {y:.3f}, and the slope {slope:.3f}.".replace("-", "−"),
            [ground, touching, one, dot(x0, y0, 6, INK), strips]))
    middle = places // 2
    return Film((WIDTH, HEIGHT), {(): frames}, opens=middle, still=middle)
