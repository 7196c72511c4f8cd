"""Pictures of a benchmark as SVG, in the colours of a light or a dark page."""

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

STYLE = """<style>
svg { --page: #ffffff; --ink: #222222; --grid: #d0d0d0; --ahead: #0072b2; --behind: #d55e00;
      --line0: #0072b2; --line1: #d55e00; --line2: #009e73; --line3: #aa4499; }
@media (prefers-color-scheme: dark) {
  svg { --page: #16181d; --ink: #e6e6e6; --grid: #454a55; --ahead: #56b4e9; --behind: #ff9a52;
        --line0: #56b4e9; --line1: #ff9a52; --line2: #4fd1a5; --line3: #e29ad6; } }
.page { fill: var(--page) } text { fill: var(--ink); font: 13px sans-serif }
.title { font-size: 16px; font-weight: bold } .end { text-anchor: end } .mid { text-anchor: middle }
.grid { stroke: var(--grid) } .one { stroke: var(--ink) }
.ahead { fill: var(--ahead) } .behind { fill: var(--behind) }
polyline { fill: none } polyline, .key { stroke-width: 2 } .theirs { stroke-dasharray: 5 4 }
.line0 { stroke: var(--line0) } .line1 { stroke: var(--line1) }
.line2 { stroke: var(--line2) } .line3 { stroke: var(--line3) }
</style>"""


def _svg(width: float, height: float, parts: list[str]) -> str:
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
            f'width="{width:.0f}" height="{height:.0f}">')
    return "\n".join([head, STYLE, '<rect class="page" width="100%" height="100%"/>',
                      *parts, "</svg>\n"])


def _text(x: float, y: float, words: str, kind: str = "") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(words)}</text>'


def _line(kind: str, x: float, y: float, x2: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x:.1f}" y1="{y:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def bars(title: str, entries: Sequence[tuple[str, float | None]]) -> str:
    """A bar for each ratio, to the right of 1 or to the left of it; None did not run."""
    left, wide, top, step = 300, 400, 70, 19
    ratios = [ratio for _, ratio in entries if ratio]
    low = math.floor(math.log2(min([0.5, *ratios])))
    high = math.ceil(math.log2(max([2.0, *ratios])))

    def across(ratio: float) -> float:
        return left + wide * (math.log2(ratio) - low) / (high - low)

    bottom = top + step * len(entries)
    parts = [_text(16, 28, title, "title")]
    for power in range(low, high + 1):
        at = across(2.0 ** power)
        parts += [_line("grid" if power else "one", at, top - 8, at, bottom),
                  _text(at, top - 14, f"{2.0 ** power:.3g}", "mid")]
    for place, (name, ratio) in enumerate(entries):
        y = top + step * place
        parts.append(_text(left - 12, y + 13, name, "end"))
        if not ratio:
            parts.append(_text(across(1) + 6, y + 13, "did not run"))
            continue
        begin, end = sorted((across(1), across(ratio)))
        kind = "ahead" if ratio >= 1 else "behind"
        parts += [f'<rect class="{kind}" x="{begin:.1f}" y="{y + 2}" width="{end - begin:.1f}" '
                  f'height="{step - 4}"/>', _text(left + wide + 12, y + 13, f"{ratio:.2f}")]
    return _svg(left + wide + 70, bottom + 16, parts)


class Curve(NamedTuple):
    """Points of a panel; `kind` chooses the colour, a dashed one is JAX's."""

    kind: int
    theirs: bool
    points: list[tuple[float, float]]


class Panel(NamedTuple):
    """A square with logarithmic axes."""

    title: str
    unit: str
    curves: list[Curve]


def _decades(values: list[float]) -> tuple[int, int]:
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


def _panel(panel: Panel, left: float, top: float, size: float) -> list[str]:
    points = [point for curve in panel.curves for point in curve.points if point[1] > 0]
    parts = [_text(left, top - 12, f"{panel.title}, {panel.unit}")]
    if not points:
        return parts
    (x0, x1), (y0, y1) = (_decades([p[k] for p in points]) for k in (0, 1))

    def at(x: float, y: float) -> tuple[float, float]:
        return (left + size * (math.log10(x) - x0) / (x1 - x0),
                top + size * (1 - (math.log10(max(y, 10.0 ** y0)) - y0) / (y1 - y0)))

    for power in range(x0, x1 + 1):
        x, y = at(10.0 ** power, 10.0 ** y0)
        parts += [_line("grid", x, top, x, y), _text(x, y + 17, f"{10 ** power:,}", "mid")]
    for power in range(y0, y1 + 1):
        x, y = at(10.0 ** x0, 10.0 ** power)
        parts += [_line("grid", x, y, left + size, y),
                  _text(x - 6, y + 4, f"{10.0 ** power:g}", "end")]
    for curve in panel.curves:
        places = " ".join("{:.1f},{:.1f}".format(*at(*point)) for point in curve.points)
        dashed = " theirs" if curve.theirs else ""
        parts.append(f'<polyline class="line{curve.kind}{dashed}" points="{places}"/>')
    return parts


def panels(title: str, kinds: Sequence[str], rows: Sequence[Sequence[Panel]]) -> str:
    """Panels in rows; `kinds` name the colours."""
    size, gap_x, gap_y, top = 230, 80, 70, 110
    parts = [_text(16, 28, title, "title")]
    for kind, name in enumerate(kinds):
        x = 16 + 150 * kind
        parts += [_line(f"key line{kind}", x, 50, x + 26, 50), _text(x + 34, 55, name)]
    for i, row in enumerate(rows):
        for j, panel in enumerate(row):
            parts += _panel(panel, 70 + j * (size + gap_x), top + i * (size + gap_y), size)
    width = max(map(len, rows))
    return _svg(70 + width * (size + gap_x), top + len(rows) * (size + gap_y), parts)
