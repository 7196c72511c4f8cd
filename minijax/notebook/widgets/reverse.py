"""The backward pass over the graph of a linear program; cotangents are added where paths meet.

Builds on `derivatives` and `core.transpose`, whose steps it records, and on `pictures` for
the positions of the boxes.  Chapter 07.  JAX has no counterpart.
"""

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np

from minijax import core
from minijax.transforms.derivatives import Linearized, at_point
from minijax.core.linearize import linearize_flat
from minijax.core import transpose
from minijax.core.jaxpr import Atom, Jaxpr, JaxprEqn, Literal, Var
from minijax.notebook import pictures
from minijax.notebook.drawing import BLUE, INK, LETTER, ORANGE, box, line, words
from minijax.notebook.film import Film, Frame
from minijax.notebook.widgets.step import Names

SIZE, HEIGHT, ROW = 14, 44, 78


@dataclass(frozen=True)
class Moment:
    """One equation turned round: the cotangent it had, and what it sent to each variable."""

    eqn: JaxprEqn
    had: Any
    sent: Sequence[tuple[Var, Any]]


def reverse_pass(fun: Callable, args: Sequence[Any]) -> tuple[Jaxpr, list[Moment], list[Any]]:
    """The linear program of a function at a point; what its reverse pass did; the gradient.

    The numbers that the program holds stand in it as literals.
    """
    point = at_point(fun, tuple(args), "vjp")
    at = Linearized(point, linearize_flat(*point))
    closed, moments = at.program.closed, list[Moment]()
    known: dict[Atom, Literal] = {
        v: Literal(x) for v, x in zip(closed.jaxpr.constvars, closed.consts, strict=True)}
    numbered = {id(eqn): eqn.replace(invars=tuple([known.get(v, v) for v in eqn.invars]))
                for eqn in closed.jaxpr.eqns}
    program = closed.jaxpr.replace(constvars=(), eqns=list(numbered.values()))
    ordinary = transpose.transpose_eqn

    def listening(eqn: JaxprEqn, values: Any, cotangents: Sequence[Any]) -> Sequence[Any]:
        found = ordinary(eqn, values, cotangents)
        sent = [(v, ct) for v, ct in zip(numbered[id(eqn)].invars, found, strict=True)
                if isinstance(v, Var) and isinstance(ct, core.Array)]
        moments.append(Moment(numbered[id(eqn)], cotangents[0], sent))
        return found

    one = core.as_value(np.ones(at.outs[0].shape, at.outs[0].dtype))
    with mock.patch.object(transpose, "transpose_eqn", listening):
        return program, moments, list(at.pull_back([one]))


def reverse(fun: Callable, *args: Any) -> Film:
    """The reverse pass of a function of numbers, from the result back to the arguments.

    >>> reverse(lambda x: x * x, 3.0)
    1  The linear program: the tangents go in at the top; the numbers in it are known.
    2  Now from the end. The cotangent of the result is 1.
    3  add_any has the cotangent 1. It sends 1 to mul 3, 1 to mul 3.
    4  mul 3 has the cotangent 1. It sends 3 to dx.
    5  mul 3 has the cotangent 1. It sends 3 to dx, where it is added: 3 + 3 = 6.
    6  What has arrived at the top is the gradient: 6.
    """
    program, moments, gradient = reverse_pass(fun, args)
    names = Names()
    nodes = pictures.graph(program)
    inputs = dict(zip(program.invars, inspect.signature(fun).parameters, strict=False))
    labels = {node: _label(node, inputs, names) for node in nodes}
    made = {v: node for node in nodes for v in
            (node.about.outvars if isinstance(node.about, JaxprEqn) else [node.about])}
    arrived: dict[pictures.Node, list[Any]] = {node: [] for node in nodes}
    [result] = (node for node in nodes if node.kind == "output")
    arrived[result].append(1.0)

    def came(node: pictures.Node) -> str:
        terms = " + ".join(map(names.of, arrived[node]))
        many = len(arrived[node]) > 1
        total = f" = {names.of(sum(arrived[node][1:], arrived[node][0]))}" * many
        return terms.replace("+ -", "- ") + total

    # ---- what happens: who is lit, where to, what is said, what has come to each box

    shown: list[tuple[list[pictures.Node], list[pictures.Node], str, dict]] = [
        ([], [], "The linear program: the tangents go in at the top; the numbers in it are "
                  "known.", {})]

    def happens(lit: list[pictures.Node], to: list[pictures.Node], said: str) -> None:
        shown.append((lit, to, said, {node: came(node) for node in nodes if arrived[node]}))

    [last] = result.sources
    arrived[last].append(1.0)
    happens([result], [last], "Now from the end. The cotangent of the result is 1.")
    for moment in moments:
        node, to = made[moment.eqn.outvars[0]], []
        sends = []
        for v, ct in moment.sent:
            arrived[made[v]].append(ct)
            to.append(made[v])
            added = f", where it is added: `{came(made[v])}`" * (len(arrived[made[v]]) > 1)
            sends.append(f"`{names.of(ct)}` to `{labels[made[v]]}`{added}")
        happens([node], to, f"`{labels[node]}` has the cotangent `{names.of(moment.had)}`. "
                            f"It sends {', '.join(sends)}.")
    top = "`, `".join(map(names.of, gradient))
    happens([node for node in nodes if node.kind == "input"], [],
            f"What has arrived at the top is the gradient: `{top}`.")

    # ---- and how it looks

    for node in nodes:  # wide enough for all that is ever written in it
        longest = max(labels[node], came(node), key=len)
        node.label = " " * int(len(longest) * LETTER * SIZE / pictures.LETTER + 1)
    placed, width, layers = pictures.arranged(nodes)
    frames = [Frame(said, [*_edges(placed, lit, to), *(
        part for node in nodes
        for part in _box(node, labels[node], texts.get(node, ""), node in lit))])
              for lit, to, said, texts in shown]
    return Film((width, layers * ROW), {(): frames})


def _label(node: pictures.Node, inputs: dict[Var, str], names: Names) -> str:
    """What stands in a box: the tangent's name, or the operation with the numbers it knows."""
    if isinstance(node.about, JaxprEqn):
        known = [names.of(v.value) for v in node.about.invars if isinstance(v, Literal)]
        return " ".join([node.about.primitive.name, *known])
    return "result" if node.about is None else f"d{inputs.get(node.about, '')}"


def _edges(placed: Sequence[pictures.Node], lit: Sequence[Any],
           to: Sequence[Any]) -> Iterator[str]:
    for node in placed:
        if node.kind == "bend":
            continue
        for source in node.sources:
            points = [(node.x, node.layer * ROW + 4.0)]
            while source.kind == "bend":
                top = source.layer * ROW + 4.0  # straight past the boxes of its layer
                points += [(source.x, top + HEIGHT), (source.x, top)]
                [source] = source.sources
            points.append((source.x, source.layer * ROW + 4 + HEIGHT))
            on = node in lit and source in to
            yield line(points, ORANGE if on else INK, 4 if on else 1.2, opacity=1 if on else 0.5)


def _box(node: pictures.Node, label: str, came: str, lit: bool) -> Iterator[str]:
    x, y = node.x - node.width / 2, node.layer * ROW + 4
    yield box(x, y, node.width, HEIGHT, ORANGE if lit else BLUE, lit=lit,
              round=6 if node.kind == "equation" else HEIGHT / 2)
    yield words(node.x, y + (18 if came else 27), label, size=SIZE, code=True)
    if came:
        yield words(node.x, y + 36, came, size=SIZE, code=True, font_weight="bold")
