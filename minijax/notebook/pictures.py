"""A jaxpr in colour as HTML, and as a picture (SVG).

Builds on `jaxpr_text`.  Explained in chapter 06.  JAX prints jaxprs.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, field

from minijax.core import Program
from minijax.core.jaxpr import Atom, Jaxpr, JaxprEqn, Var
from minijax.util.jaxpr_text import (Names, Printer, Text, equation_text, inner_jaxpr, layout,
                                     pieces_of)

# A page's own style for outputs may break lines and take another font.
PRE = ("margin:0;white-space:pre;overflow-x:auto;text-align:left;font-family:monospace;"
       "background:none")

# Middle tones, readable on a light and on a dark page.
COLOURS = {
    "keyword": "#8250df",
    "program": "#8250df",
    "variable": "#0969da",
    "type": "#7d8590",
    "primitive": "#bc4c00",
    "comment": "#1a7f37",
}


@dataclass(frozen=True)
class LinePrinter(Printer):
    """Remembers for the name of each equation's operation the user's line that it comes from."""

    lines: dict[int, tuple[Text, str]] = field(default_factory=dict)

    def operation(self, eqn: JaxprEqn) -> Text:
        text = super().operation(eqn)
        if eqn.source_info:
            self.lines[id(text)] = text, eqn.source_info.summary
        return text


def pieces_with_lines(program: Program, width: int = 80) -> list[Text]:
    """A program as pieces of text, with the user's line behind each equation."""
    printer = LinePrinter(Names(inner_jaxpr(program)))
    rows: list[list[Text]] = [[]]
    for piece in layout(printer.top(inner_jaxpr(program)), width):
        if piece.text.startswith("\n"):
            rows.append([])
        rows[-1].append(piece)
    widths = [sum(len(piece.text.strip("\n")) for piece in row) for row in rows]
    notes = [[printer.lines[id(piece)][1] for piece in row if id(piece) in printer.lines]
             for row in rows]
    column = max((w for w, note in zip(widths, notes, strict=True) if note), default=0)
    for width, note, row in zip(widths, notes, rows, strict=True):
        if note:
            row.append(Text(" " * (column - width) + "  # " + ", ".join(note), "comment"))
    return [piece for row in rows for piece in row]


def text_with_lines(program: Program, width: int = 80) -> str:
    return "".join(piece.text for piece in pieces_with_lines(program, width))


def to_html(program: Program, *, width: int = 80, source_info: bool = False) -> str:
    """The text of a program in colour, as one `<pre>` element.

    >>> import minijax
    >>> to_html(minijax.make_jaxpr(lambda x: x)(1.0))[-9:]
    ') }</pre>'
    """
    pieces = (pieces_with_lines(program, width) if source_info
              else pieces_of(program, width=width))
    parts = []
    for piece in pieces:
        text, colour = html.escape(piece.text), COLOURS.get(piece.style)
        parts.append(f'<span style="color:{colour}">{text}</span>' if colour else text)
    return f'<pre class="minijax-jaxpr" style="{PRE}">{"".join(parts)}</pre>'


# ---------------------------------------------------------------- a picture

LETTER, LINE, GAP_X, GAP_Y, MARGIN = 7.3, 26, 18, 30, 12  # pixels; letters are monospaced


@dataclass(eq=False)
class Node:
    """A box of the picture: an input, an equation, an output; or a bend of a long edge."""

    label: str
    title: str
    kind: str
    sources: list[Node] = field(default_factory=list)
    layer: int = 0
    x: float = 0.0  # of its middle
    about: Var | JaxprEqn | None = None

    @property
    def width(self) -> float:
        return 0 if self.kind == "bend" else LETTER * len(self.label) + 18

    @property
    def y(self) -> float:
        return MARGIN + self.layer * (LINE + GAP_Y)


def to_svg(program: Program) -> str:
    """The graph of a program as an SVG picture: data flows from the top to the bottom.

    Programs inside an equation are not inner_jaxpr. The picture depends on the program alone.

    >>> import minijax
    >>> to_svg(minijax.make_jaxpr(lambda x: x * 2.0)(1.0)).count("<rect")
    3
    """
    nodes, width, layers = arranged(graph(inner_jaxpr(program)))
    height = layers * (LINE + GAP_Y) - GAP_Y + 2 * MARGIN
    edges = [_edge_svg(source, node) for node in nodes for source in node.sources]
    boxes = [_node_svg(node) for node in nodes if node.kind != "bend"]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="monospace" font-size="12">'
        f"{''.join(edges)}{''.join(boxes)}</svg>"
    )


def arranged(nodes: Sequence[Node]) -> tuple[list[Node], float, int]:
    """The boxes and the bends of long edges, each in its place; the width; how many layers."""
    nodes = _with_bends(nodes)
    layers = _arrange(nodes)
    width = max((sum(n.width + GAP_X for n in layer) for layer in layers), default=0) + 2 * MARGIN
    _place(layers, width)
    return nodes, width, len(layers)


def graph(program: Jaxpr) -> list[Node]:
    """The boxes in the program's order, each after those it reads from."""
    names = Names(program)
    made: dict[Atom, Node] = {}
    nodes: list[Node] = []
    for v in (*program.constvars, *program.invars):
        made[v] = Node(f"{names.of(v)}:{v.aval.str_short(True)}", "an input", "input", about=v)
        nodes.append(made[v])
    for eqn in program.eqns:
        called = f" {eqn.params['name']}" if "name" in eqn.params else ""
        literals = "".join(f" {a.text}" for a in eqn.invars if a.text)
        text = equation_text(eqn, names=names)
        node = Node(eqn.primitive.name + called + literals, text, "equation", about=eqn)
        node.sources = list(dict.fromkeys(made[a] for a in eqn.invars if a.text is None))
        node.layer = 1 + max((source.layer for source in node.sources), default=0)
        made.update((v, node) for v in eqn.outvars)
        nodes.append(node)
    last = 1 + max((node.layer for node in nodes), default=0)
    for a in program.outvars:
        sources = [made[a]] if a.text is None else []
        label = f"{names.of(a)}:{a.aval.str_short(True)}" if a.text is None else names.of(a)
        nodes.append(Node(label, "an output", "output", sources, last))
    return nodes


def _with_bends(nodes: Sequence[Node]) -> list[Node]:
    """The graph with every edge cut at each layer it passes, so that it has a place there."""
    found: list[Node] = []
    bends: dict[tuple[Node, int], Node] = {}
    for node in nodes:
        for place, source in enumerate(node.sources):
            last = source
            for layer in range(source.layer + 1, node.layer):
                if (source, layer) not in bends:
                    bends[source, layer] = Node("", "", "bend", [last], layer)
                    found.append(bends[source, layer])
                last = bends[source, layer]
            node.sources[place] = last
        found.append(node)
    return found


def _arrange(nodes: Sequence[Node]) -> list[list[Node]]:
    """The layers from the top, each ordered so that few edges cross."""
    layers: list[list[Node]] = [[] for _ in range(1 + max((n.layer for n in nodes), default=-1))]
    for node in nodes:
        layers[node.layer].append(node)
    readers: dict[Node, list[Node]] = {node: [] for node in nodes}
    for node in nodes:
        for source in node.sources:
            readers[source].append(node)
    for _ in range(4):  # down and up again: each box moves to the mean of its neighbours
        _sort_by_neighbours(layers, {node: node.sources for node in nodes})
        _sort_by_neighbours(layers[::-1], readers)
    return layers


def _sort_by_neighbours(layers: list[list[Node]], neighbours: dict[Node, list[Node]]) -> None:
    place = {node: k / len(layer) for layer in layers for k, node in enumerate(layer)}

    def mean_place(node: Node) -> float:
        near = [place[other] for other in neighbours[node]] or [place[node]]
        return sum(near) / len(near)

    for layer in layers:
        layer.sort(key=mean_place)
        place.update((node, k / len(layer)) for k, node in enumerate(layer))


def _place(layers: Sequence[Sequence[Node]], width: float) -> None:
    """Put each layer's boxes side by side, the layer in the middle."""
    for layer in layers:
        x = (width - sum(n.width + GAP_X for n in layer) + GAP_X) / 2
        for node in layer:
            node.x = x + node.width / 2
            x += node.width + GAP_X


def _edge_svg(source: Node, node: Node) -> str:
    top, bottom = source.y + LINE, node.y
    middle = (top + bottom) / 2
    start = source.y if source.kind == "bend" else top
    path = f"M{source.x:.1f} {start} L{source.x:.1f} {top} C{source.x:.1f} {middle:.1f} "
    path += f"{node.x:.1f} {middle:.1f} {node.x:.1f} {bottom}"
    return f'<path d="{path}" fill="none" stroke="#8b949e"/>'


FILL = {"input": "#ddf4ff", "equation": "#fff8e5", "output": "#dafbe1"}


def _node_svg(node: Node) -> str:
    corner = 4 if node.kind == "equation" else LINE / 2
    return (
        f"<g><title>{html.escape(node.title)}</title>"
        f'<rect x="{node.x - node.width / 2:.1f}" y="{node.y}" width="{node.width:.1f}" '
        f'height="{LINE}" rx="{corner}" fill="{FILL[node.kind]}" stroke="#57606a"/>'
        f'<text x="{node.x:.1f}" y="{node.y + 17}" text-anchor="middle" fill="#1f2328">'
        f"{html.escape(node.label)}</text></g>"
    )
