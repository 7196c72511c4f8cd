"""A roof, and a program to move along under it: what limits it, by its operations per byte.

Builds on `film`.  Chapter 28.  JAX has no counterpart.
"""

import math

from minijax.notebook.drawing import BLUE, INK, ORANGE, box, dot, line, words
from minijax.notebook.film import Film, Frame

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 460.0, 250.0, 62.0, 14.0, 18.0, 40.0
LOW, HIGH = -3, 7  # powers of two: operations per byte


def roof(bandwidth: float, rate: float, places: int = 21) -> Film:
    """The limit of a program for each number of operations per byte.

    Args:
      bandwidth: bytes a second.
      rate: operations a second.
      places: how many numbers of operations per byte, from an eighth to 128.

    >>> print(roof(50e9, 100e9, places=11).frames[4].caption)
    2 operations per byte: memory allows 100 billion a second, as many as there can be: the edge.
    """
    powers = [LOW + (HIGH - LOW) * k / (places - 1) for k in range(places)]
    limits = [min(bandwidth * 2**power, rate) for power in powers]
    top, bottom = math.log2(rate) + 0.7, math.log2(bandwidth) + LOW - 0.3

    def at(power: float, limit: float) -> tuple[float, float]:
        return (LEFT + (power - LOW) / (HIGH - LOW) * (WIDTH - LEFT - RIGHT),
                TOP + (top - math.log2(limit)) / (top - bottom) * (HEIGHT - TOP - BOTTOM))

    edge = min(max(math.log2(rate / bandwidth), LOW), HIGH)
    corners = [(power, min(bandwidth * 2**power, rate)) for power in (LOW, edge, HIGH)]
    ground = line([at(*corner) for corner in corners], BLUE, 2.5)
    ground += words(WIDTH - RIGHT, HEIGHT - 6, "operations per byte", size=13, anchor="end")
    ground += words(LEFT - 6, at(HIGH, rate)[1] + 5, f"{rate / 1e9:.3g}", size=13, anchor="end")
    ground += words(6, 12, "billion operations a second", size=13, anchor="start")
    ground += line([(LEFT, TOP + 4), (LEFT, HEIGHT - BOTTOM), (WIDTH - RIGHT, HEIGHT - BOTTOM)],
                   width=1, opacity=0.5)
    ground += "".join(words(at(power, rate)[0], HEIGHT - 24, _ratio(power), INK, size=12)
                      for power in range(LOW, HIGH + 1, 2))
    step = (WIDTH - LEFT - RIGHT) / (places - 1)
    ground += "".join(box(at(power, rate)[0] - step / 2, TOP, step, HEIGHT - TOP - BOTTOM, round=0,
                          fill_opacity=0, stroke="none", data_place=k)
                      for k, power in enumerate(powers))
    frames = []
    for power, limit in zip(powers, limits, strict=True):
        x, y = at(power, limit)
        frames.append(Frame(_said(power, bandwidth, rate), [
            ground, line([(x, y), (x, HEIGHT - BOTTOM)], ORANGE, 1.5, stroke_dasharray="4 3"),
            dot(x, y, 6, ORANGE)]))
    return Film((WIDTH, HEIGHT), {(): frames}, opens=places // 4, still=places // 4)


def _ratio(power: float) -> str:
    return f"1/{2**-power:.3g}" if power < 0 and power % 1 == 0 else (
        f"{2**power:.{3 if power > 0 else 2}g}")


def _said(power: float, bandwidth: float, rate: float) -> str:
    allowed = bandwidth * 2**power
    ops = f"{_ratio(power)} operations per byte"
    if math.isclose(allowed, rate, rel_tol=1e-6):
        return (f"{ops}: memory allows {allowed / 1e9:.3g} billion a second, as many as there can "
                "be: the edge.")
    if allowed < rate:
        return (f"{ops}: memory is the limit. It allows {allowed / 1e9:.3g} billion a second, "
                f"{allowed / rate:.0%} of what arithmetic could do. Move fewer bytes.")
    return (f"{ops}: arithmetic is the limit, {rate / 1e9:.3g} billion a second, and memory waits "
            f"{1 - rate / allowed:.0%} of the time. Do fewer operations.")
