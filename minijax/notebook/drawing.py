"""Pieces of SVG for films: boxes, words, lines, arrows.

Their colours are that of the page's text (`INK`) and translucent middle tones, so they
are readable on a light and on a dark page.  Builds on nothing.  JAX has no counterpart.
"""

import html
import math
from collections.abc import Iterable
from typing import Any

INK = "currentColor"
BLUE, ORANGE, GREEN, VIOLET = "#3c7fc4", "#d9822f", "#3f9a57", "#8a56ac"
MONO = "DejaVu Sans Mono, Menlo, Consolas, monospace"
LETTER = 0.605  # the width of a letter of that, in parts of its size


def attributes(**facts: Any) -> str:
    return "".join(f' {name.replace("_", "-")}="{html.escape(str(fact), quote=True)}"'
                   for name, fact in facts.items())


def words(x: float, y: float, text: str, colour: str = INK, *, size: float = 15,
          anchor: str = "middle", code: bool = False, **facts: Any) -> str:
    """A line of text; y is where its letters stand."""
    if code:
        facts["font_family"] = MONO
    given = attributes(x=f"{x:.4g}", y=f"{y:.4g}", fill=colour, font_size=size,
                       text_anchor=anchor, **facts)
    return f'<text{given} xml:space="preserve">{html.escape(text)}</text>'


def box(x: float, y: float, width: float, height: float, colour: str = INK, *,
        lit: bool = False, round: float = 6, **facts: Any) -> str:
    """A box, of which one sees at once whether it is lit."""
    given = {"fill": colour, "fill_opacity": 0.4 if lit else 0.12, "stroke": colour,
             "stroke_width": 2.5 if lit else 1, "rx": round, **facts}
    return (f'<rect x="{x:.4g}" y="{y:.4g}" width="{width:.4g}" height="{height:.4g}"'
            f"{attributes(**given)}/>")


def dot(x: float, y: float, radius: float, colour: str = INK, **facts: Any) -> str:
    return f'<circle cx="{x:.4g}" cy="{y:.4g}" r="{radius:g}"{attributes(fill=colour, **facts)}/>'


def line(points: Iterable[tuple[float, float]], colour: str = INK, width: float = 1.5,
         **facts: Any) -> str:
    """A line through points."""
    way = " ".join(f"{x:.4g},{y:.4g}" for x, y in points)
    given = attributes(points=way, fill="none", stroke=colour, stroke_width=width, **facts)
    return f"<polyline{given}/>"


def arrow(start: tuple[float, float], end: tuple[float, float], colour: str = INK,
          width: float = 1.5, **facts: Any) -> str:
    """A straight line with a head at its end."""
    (x0, y0), (x1, y1) = start, end
    length = math.hypot(x1 - x0, y1 - y0) or 1
    dx, dy, head = (x1 - x0) / length, (y1 - y0) / length, 5 + 1.5 * width
    bx, by = x1 - head * dx, y1 - head * dy
    corners = [(x1, y1), (bx - head * dy / 2, by + head * dx / 2),
               (bx + head * dy / 2, by - head * dx / 2)]
    tip = " ".join(f"{x:.4g},{y:.4g}" for x, y in corners)
    return (line([start, (bx, by)], colour, width, **facts)
            + f"<polygon{attributes(points=tip, fill=colour, **facts)}/>")
