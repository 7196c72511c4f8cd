"""A jaxpr as JAX prints it, in colour as HTML, and as a picture (SVG).

Stands on `jaxpr`. Knows no primitive: an equation is its name, parameters and operands.
Explained in chapter 06. In JAX: jax/_src/core.py (pp_*) and jax/_src/pretty_printer.py.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from minijax.jaxpr import Atom, ClosedJaxpr, DropVar, Jaxpr, JaxprEqn, Literal, Var
from minijax.source_info import function_name

# ---------------------------------------------------------------- documents
#
# A document says where lines *may* break; `layout` decides where they do. Every document knows
# the width of its text on one line, so a group is laid out flat exactly when that width fits.


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of text; `style` colours it, `note` is a comment for the end of its line."""

    text: str
    style: str = ""
    note: str = ""

    @property
    def width(self) -> int:
        return len(self.text)


@dataclass(frozen=True, slots=True)
class Break:
    """A line break, or `flat` where the group around it fits on one line."""

    flat: str = " "

    @property
    def width(self) -> int:
        return len(self.flat)


@dataclass(frozen=True, slots=True)
class Row:
    """Documents one after the other; their lines are indented by `indent`."""

    parts: tuple[Doc, ...]
    indent: int = 0
    width: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", sum(part.width for part in self.parts))


@dataclass(frozen=True, slots=True)
class Group:
    """A document whose breaks are all flat if it fits on the rest of the line."""

    doc: Doc

    @property
    def width(self) -> int:
        return self.doc.width


Doc = Text | Break | Row | Group


def row(*parts: Doc, indent: int = 0) -> Row:
    return Row(parts, indent)


def join(separator: Doc, parts: Iterable[Doc]) -> Row:
    joined: list[Doc] = []
    for part in parts:
        joined += [separator, part] if joined else [part]
    return Row(tuple(joined))


def layout(doc: Doc, width: int) -> list[Text]:
    """The pieces of text of a document broken to a width, newlines among them.

    >>> fruit = join(Break(), [Text("apple"), Text("pear"), Text("plum")])
    >>> "".join(piece.text for piece in layout(Group(fruit), 20))
    'apple pear plum'
    >>> "".join(piece.text for piece in layout(Group(fruit), 10))
    'apple\\npear\\nplum'
    """
    pieces: list[Text] = []
    column = 0
    todo: list[tuple[int, bool, Doc]] = [(0, False, doc)]
    while todo:
        indent, flat, doc = todo.pop()
        if isinstance(doc, Text):
            pieces.append(doc)
            column += doc.width
        elif isinstance(doc, Break):
            pieces.append(Text(doc.flat if flat else "\n" + " " * indent))
            column = column + doc.width if flat else indent
        elif isinstance(doc, Group):
            todo.append((indent, flat or column + doc.width <= width, doc.doc))
        else:
            todo += [(indent + doc.indent, flat, part) for part in reversed(doc.parts)]
    return _place_notes(pieces)


def _place_notes(pieces: list[Text]) -> list[Text]:
    """Move the notes to the ends of their lines, in one column."""
    if not any(piece.note for piece in pieces):
        return pieces
    lines: list[list[Text]] = [[]]
    for piece in pieces:
        if piece.text.startswith("\n"):
            lines.append([])
        lines[-1].append(piece)
    widths = [sum(piece.width for piece in line) - (place > 0) for place, line in enumerate(lines)]
    column = max(w for w, line in zip(widths, lines, strict=True) if any(p.note for p in line))
    for width, line in zip(widths, lines, strict=True):
        notes = [piece.note for piece in line if piece.note]
        if notes:
            line.append(Text(" " * (column - width) + "  # " + ", ".join(notes), "comment"))
    return [piece for line in lines for piece in line]


# ---------------------------------------------------------------- names


def variable_name(number: int) -> str:
    """The name of the n-th variable.

    >>> [variable_name(n) for n in (0, 25, 26, 27, 26 * 26)]
    ['a', 'z', 'ba', 'bb', 'baa']
    """
    name = ""
    while not name or number:
        number, digit = divmod(number, 26)
        name = chr(ord("a") + digit) + name
    return name


def programs_in(params: dict[str, Any]) -> Iterator[Jaxpr]:
    """The programs among an equation's parameters, in their order."""
    for value in params.values():
        for part in value if isinstance(value, tuple | list) else (value,):
            if isinstance(part, ClosedJaxpr | Jaxpr):
                yield _open(part)


def _open(program: Jaxpr | ClosedJaxpr) -> Jaxpr:
    return program.jaxpr if isinstance(program, ClosedJaxpr) else program


LONG = 10  # an inner program with more equations than this is printed apart


def _shared_names(top: Jaxpr) -> dict[Jaxpr, str]:
    """Names for the inner programs to print first: those used again, and the long ones."""
    uses: Counter[Jaxpr] = Counter()
    called: dict[Jaxpr, str] = {}
    queue = [top]
    for program in queue:  # grows while it is read
        uses[program] += 1
        if uses[program] > 2:
            continue  # what is inside is known to be shared by now
        for eqn in program.eqns:
            for inner in programs_in(eqn.params):
                queue.append(inner)
                if "name" in eqn.params:
                    called.setdefault(inner, str(eqn.params["name"]).strip("<>"))
    taken: Counter[str] = Counter()
    names: dict[Jaxpr, str] = {}
    for program, count in uses.items():
        if program is not top and (count > 1 or len(program.eqns) > LONG):
            stem = called.get(program, "jaxpr")
            name = f"{stem}{taken[stem]}" if taken[stem] else stem
            taken[stem] += 1
            taken[name] += name != stem
            names[program] = name
    return names


class Names:
    """The names of variables and of shared programs while one text is printed."""

    def __init__(self, top: Jaxpr | None = None) -> None:
        self.programs = _shared_names(top) if top else {}
        self.variables = _unread(top) if top else {}
        self._next = 0

    def of(self, atom: Atom) -> str:
        """The name of a variable, given to it at its first sight; a literal's value and type."""
        if isinstance(atom, Literal):
            return _literal_text(atom)
        if isinstance(atom, DropVar):
            return "_"
        if atom not in self.variables:
            self.variables[atom] = self._fresh()
        return self.variables[atom]

    def _fresh(self) -> str:
        name = variable_name(self._next)
        self._next += 1
        return self._fresh() if name in self.programs.values() else name

    def repeat(self, inner: Sequence[Atom], outer: Sequence[Atom]) -> None:
        """Let the variables of a called program bear the names they have at the call."""
        seen: set[Atom] = set()
        for mine, theirs in zip(inner, outer, strict=False):
            named = isinstance(theirs, Literal) or theirs in seen or mine in self.variables
            if isinstance(mine, Var) and not named:
                seen.add(theirs)
                self.variables[mine] = self.of(theirs)


def _unread(program: Jaxpr) -> dict[Atom, str]:
    """The results of equations that nothing reads; they print as `_`."""
    read: set[Atom] = {atom for atom in program.outvars if isinstance(atom, Var)}
    for eqn in program.eqns:
        read.update(atom for atom in eqn.invars if isinstance(atom, Var))
    return {v: "_" for eqn in program.eqns for v in eqn.outvars if v not in read}


def _literal_text(literal: Literal) -> str:
    value = "[...]" if np.shape(literal.val) else str(np.asarray(literal.val).item())
    return f"{value}:{literal.aval.str_short()}"


# ---------------------------------------------------------------- jaxprs as documents


@dataclass(frozen=True)
class Printer:
    """Turns programs into documents."""

    names: Names
    source_info: bool = False
    effects: bool = False

    def top(self, program: Jaxpr) -> Doc:
        """The whole text: shared programs first, each under its name."""
        parts: list[Doc] = []
        for shared, name in self.names.programs.items():
            parts += [Text("let ", "keyword"), Text(name, "program"), Text(" = ")]
            parts += [self.body(shared), Text(" in", "keyword"), Break()]
        return row(*parts, self.body(program))

    def program(self, program: Jaxpr) -> Doc:
        name = self.names.programs.get(program)
        return Text(name, "program") if name else self.body(program)

    def body(self, program: Jaxpr) -> Doc:
        """`{ lambda constants ; inputs. let equations in (outputs) }`."""
        constants, inputs = self.binders(program.constvars), self.binders(program.invars)
        equations = join(Break("; "), [self.equation(eqn) for eqn in program.eqns])
        outputs = self.spaced([Text(self.names.of(v), "variable") for v in program.outvars], ",")
        inside = row(
            Text("{ "), Text("lambda ", "keyword"), constants, Text("; "), inputs,
            Text(". "), Text("let", "keyword"), row(Break(), equations, indent=2), Break(),
            Text("in ", "keyword"), Text("("), outputs,
            Text(",)" if len(program.outvars) == 1 else ")"), self.effects_of(program),
            indent=2,
        )  # fmt: skip
        return Group(row(inside, Text(" }")))

    def effects_of(self, program: Jaxpr) -> Doc:
        names = ", ".join(sorted(map(str, program.effects)))
        return Text(f" : {{ {names} }}" if self.effects else "")

    def equation(self, eqn: JaxprEqn) -> Doc:
        """`outputs = primitive[parameters] operands`."""
        params = printed_params(eqn)
        if "name" in params:
            self.name_as_called(eqn)
        outputs = self.binders(eqn.outvars)
        note = eqn.source_info.summary if self.source_info and eqn.source_info else ""
        equals = [outputs, Text(" = ")] if eqn.outvars else []
        operands = self.spaced([Text(self.names.of(v), "variable") for v in eqn.invars])
        operation = Text(eqn.primitive.name, "primitive", note)
        # The parameters come before the operands, so their variables are named before.
        return row(*equals, operation, self.params(params), Text(" "), operands)

    def name_as_called(self, eqn: JaxprEqn) -> None:
        """A program called by name takes its operands one by one, so its names can be theirs."""
        inner = eqn.params.get("jaxpr")
        if isinstance(inner, ClosedJaxpr) and inner.jaxpr not in self.names.programs:
            self.names.repeat(inner.jaxpr.invars, eqn.invars)
            self.names.repeat(inner.jaxpr.outvars, eqn.outvars)

    def binders(self, variables: Sequence[Var]) -> Doc:
        """Variables with their types, as many to a line as fit."""
        return self.spaced([
            row(Text(self.names.of(v), "variable"), Text(":" + v.aval.str_short(), "type"))
            for v in variables
        ])

    def spaced(self, parts: Sequence[Doc], separator: str = "") -> Doc:
        gap = row(Text(separator), Group(Break()))
        return row(Group(join(gap, parts)), indent=2)

    def params(self, params: dict[str, Any]) -> Doc:
        if not params:
            return Text("")
        pairs = [row(Text(f"{name}="), self.param(value)) for name, value in params.items()]
        listed = row(Text("["), Break(""), join(Break(), pairs), indent=2)
        return Group(row(listed, Break(""), Text("]")))

    def param(self, value: Any) -> Doc:
        if isinstance(value, Jaxpr | ClosedJaxpr):
            return self.program(_open(value))
        if isinstance(value, tuple) and all(isinstance(v, Jaxpr | ClosedJaxpr) for v in value):
            programs = join(Break(), [self.program(_open(v)) for v in value])
            return Group(row(row(Text("("), Break(""), programs, indent=2), Break(""), Text(")")))
        return Text(_param_text(value))


def printed_params(eqn: JaxprEqn) -> dict[str, Any]:
    """The parameters to print, sorted, a `name` first.

    A primitive with parameters that say nothing to a reader has `printed`, a function from the
    parameters to those worth a place.
    """
    printed = eqn.primitive.printed
    params = printed(**eqn.params) if printed else eqn.params
    return {name: params[name] for name in sorted(params, key=lambda name: (name != "name", name))}


def _param_text(value: Any) -> str:
    if isinstance(value, frozenset):
        return f"frozenset({{{', '.join(sorted(map(repr, value)))}}})"
    if isinstance(value, type) and issubclass(value, np.generic):
        return value.__name__
    if callable(value) and not isinstance(value, type):
        return function_name(value)
    return re.sub(r" at 0x[0-9a-fA-F]+", " at 0x...", str(value))


# ---------------------------------------------------------------- text and HTML


def _pieces(
    program: Jaxpr | ClosedJaxpr, width: int, source_info: bool = False, effects: bool = False
) -> list[Text]:
    program = _open(program)
    return layout(Printer(Names(program), source_info, effects).top(program), width)


def jaxpr_text(
    program: Jaxpr | ClosedJaxpr,
    *,
    width: int = 80,
    source_info: bool = False,
    print_effects: bool = False,
) -> str:
    """A program as JAX prints it.

    `source_info` puts the user's line behind each equation, `print_effects` the effects behind
    each program.

    >>> import minijax
    >>> print(jaxpr_text(minijax.make_jaxpr(lambda x: x * 2.0 + 1.0)(3.0)))
    { lambda ; a:f32[]. let
        b:f32[] = mul a 2.0:f32[]
        c:f32[] = add b 1.0:f32[]
      in (c,) }
    """
    pieces = _pieces(program, width, source_info, print_effects)
    return "".join(piece.text for piece in pieces)


def equation_text(eqn: JaxprEqn, *, width: int = 80) -> str:
    """One equation by itself, its variables named from `a` on."""
    pieces = layout(Printer(Names()).equation(eqn), width)
    return "".join(piece.text for piece in pieces).rstrip()


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


def to_html(program: Jaxpr | ClosedJaxpr, *, width: int = 80, source_info: bool = False) -> str:
    """The text of a program in colour, as one `<pre>` element.

    >>> import minijax
    >>> to_html(minijax.make_jaxpr(lambda x: x)(1.0))[-9:]
    ') }</pre>'
    """
    parts = []
    for piece in _pieces(program, width, source_info):
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

    @property
    def width(self) -> float:
        return 0 if self.kind == "bend" else LETTER * len(self.label) + 18

    @property
    def y(self) -> float:
        return MARGIN + self.layer * (LINE + GAP_Y)


def to_svg(program: Jaxpr | ClosedJaxpr) -> str:
    """The graph of a program as an SVG picture: data flows from the top to the bottom.

    Programs inside an equation are not opened. The picture depends on the program alone.

    >>> import minijax
    >>> to_svg(minijax.make_jaxpr(lambda x: x * 2.0)(1.0)).count("<rect")
    3
    """
    nodes = _with_bends(_graph(_open(program)))
    layers = _arrange(nodes)
    width = max((sum(n.width + GAP_X for n in layer) for layer in layers), default=0) + 2 * MARGIN
    _place(layers, width)
    height = len(layers) * (LINE + GAP_Y) - GAP_Y + 2 * MARGIN
    edges = [_edge_svg(source, node) for node in nodes for source in node.sources]
    boxes = [_node_svg(node) for node in nodes if node.kind != "bend"]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="monospace" font-size="12">'
        f"{''.join(edges)}{''.join(boxes)}</svg>"
    )


def _graph(program: Jaxpr) -> list[Node]:
    """The boxes in the program's order, each after those it reads from."""
    names = Names(program)
    made: dict[Atom, Node] = {}
    nodes: list[Node] = []
    for v in (*program.constvars, *program.invars):
        made[v] = Node(f"{names.of(v)}:{v.aval.str_short()}", "an input", "input")
        nodes.append(made[v])
    for eqn in program.eqns:
        called = f" {eqn.params['name']}" if "name" in eqn.params else ""
        literals = "".join(f" {_literal_text(a)}" for a in eqn.invars if isinstance(a, Literal))
        text = "".join(piece.text for piece in layout(Printer(names).equation(eqn), 80))
        node = Node(eqn.primitive.name + called + literals, text, "equation")
        node.sources = _distinct(made[a] for a in eqn.invars if isinstance(a, Var))
        node.layer = 1 + max((source.layer for source in node.sources), default=0)
        made.update((v, node) for v in eqn.outvars)
        nodes.append(node)
    last = 1 + max((node.layer for node in nodes), default=0)
    for a in program.outvars:
        sources = [made[a]] if isinstance(a, Var) else []
        label = f"{names.of(a)}:{a.aval.str_short()}" if isinstance(a, Var) else names.of(a)
        nodes.append(Node(label, "an output", "output", sources, last))
    return nodes


def _distinct(nodes: Iterable[Node]) -> list[Node]:
    return list(dict.fromkeys(nodes))


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
