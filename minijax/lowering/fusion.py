"""Which values live in buffers: those that are asked for too often to be computed each time.

Stands on probe.py. Walks a program backwards, counting how often each value is evaluated.
Chapter 23. In XLA: instruction fusion and its cost model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from minijax.jaxpr import Atom, JaxprEqn, Literal, Var

from .probe import OPAQUE, Pattern, Probe, compose, identity, probe_element

_STORE_COST = 3.0
_LOAD_COST = 1.0
_DEEP = 50  # a chain of so many rules is cut by a stored value: they call one another
_MANY = 16  # a value asked at so many different places is stored without counting further


@dataclass(eq=False)
class Node:
    """An equation, with what its lowering rule does."""

    eqn: JaxprEqn
    kind: str  # "element", "loop" or "library"
    rule: Callable[..., Any]
    probe: Probe | None
    cost: float = 0.0      # of one element, operands included
    depth: int = 0         # how many rules ask one another for one element
    statements: int = 0    # how many are written, those of the operands included
    from_scalars: bool = False  # reads nothing but scalars, so costs no memory traffic
    stored: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the (first) result."""
        return self.eqn.outvars[0].aval.shape if self.eqn.outvars else ()


@dataclass(eq=False)
class Task:
    """Something to compute into memory: a stored value, an opaque equation, or a copy."""

    node: Node | None
    source: Atom | None
    shape: tuple[int, ...]
    output: int = 0  # of a copy: which of the wanted outputs it serves
    reads: dict[Var, set[Pattern]] = field(default_factory=dict)

    @property
    def opaque(self) -> bool:
        """Whether only its own rule can write its loops."""
        return self.node is not None and self.node.kind != "element"

    @property
    def outvars(self) -> tuple[Var, ...]:
        """The variables it computes."""
        return self.node.eqn.outvars if self.node is not None else ()


Uses = dict[tuple[Task, Pattern], int]


def make_nodes(eqns: Sequence[JaxprEqn], rule_of: Callable[[JaxprEqn], tuple[str, Any]]
               ) -> list[Node]:
    """Probe every equation, and add up the costs along the program."""
    nodes: list[Node] = []
    producers: dict[Var, Node] = {}
    for eqn in eqns:
        kind, rule = rule_of(eqn)
        node = Node(eqn, kind, rule, None)
        if kind == "element":
            node.probe = probe_element(rule, [v.aval for v in eqn.invars], node.shape, eqn.params)
            _add_costs(node, producers)
        nodes.append(node)
        producers.update(dict.fromkeys(eqn.outvars, node))
    return nodes


def _add_costs(node: Node, producers: dict[Var, Node]) -> None:
    assert node.probe is not None
    node.cost, node.from_scalars = node.probe.cost, True
    node.statements = node.probe.statements
    for position, _, trips in node.probe.accesses:
        atom = node.eqn.invars[position]
        source = producers.get(atom) if isinstance(atom, Var) else None
        if source is not None and source.kind == "element" and not source.stored:
            node.cost += trips * source.cost
            node.depth = max(node.depth, source.depth + 1)
            node.statements += source.statements
            node.from_scalars &= source.from_scalars
        elif atom.aval.shape:
            node.cost += trips * _LOAD_COST
            node.from_scalars = False
    node.cost = min(node.cost, 1e9)
    node.stored = node.depth >= _DEEP


def choose_tasks(nodes: Sequence[Node], outs: Sequence[Atom], early: frozenset[int],
                 leaf_of: Callable[[Node], Hashable]) -> list[Task]:
    """The tasks of a program in order; marks the nodes that must be stored.

    Outputs that are inputs are copied: those at positions in `early` first, the others last.
    `leaf_of` names the loop in which a stored node is computed: what several tasks of one loop
    ask for at one index is computed once.
    """
    made = {v: node for node in nodes for v in node.eqn.outvars}
    uses: dict[Var, Uses] = {}
    copies = []
    for output, atom in enumerate(outs):
        if isinstance(atom, Var) and atom in made:
            made[atom].stored = True
            continue
        task = Task(None, atom, atom.aval.shape, output)
        copies.append(task)
        if isinstance(atom, Var):
            uses.setdefault(atom, {})[task, identity(task.shape)] = 1
    tasks = []
    for node in reversed(nodes):
        made_task = _visit(node, uses, made, leaf_of)
        if made_task is not None:
            tasks.append(made_task)
    first = [task for task in copies if task.output in early]
    tasks = [*first, *reversed(tasks), *(task for task in copies if task.output not in early)]
    _record_reads(uses, made)
    return tasks


def _visit(node: Node, uses: dict[Var, Uses], made: dict[Var, Node],
           leaf_of: Callable[[Node], Hashable]) -> Task | None:
    asked: Uses = {}
    for v in node.eqn.outvars:
        for key, trips in uses.get(v, {}).items():
            asked[key] = max(asked.get(key, 0), trips)
    if node.kind != "element":
        return _visit_opaque(node, uses, made)
    assert node.probe is not None
    task = None
    if node.stored or _worth_storing(node, asked, leaf_of):
        node.stored = True
        task = Task(node, None, node.shape)
        asked = {(task, identity(node.shape)): 1}
    for position, pattern, trips in node.probe.accesses:
        atom = node.eqn.invars[position]
        if isinstance(atom, Literal):
            continue
        entry = uses.setdefault(atom, {})
        for (root, outer), times in asked.items():
            key = (root, compose(outer, pattern, root.shape, node.shape, atom.aval.shape))
            entry[key] = max(entry.get(key, 0), times * trips)
    return task


def _visit_opaque(node: Node, uses: dict[Var, Uses], made: dict[Var, Node]) -> Task:
    task = Task(node, None, node.shape)
    for atom in node.eqn.invars:
        if isinstance(atom, Literal):
            continue
        uses.setdefault(atom, {})[task, OPAQUE] = 1
        source = made.get(atom)
        lazy = source is not None and source.from_scalars and source.cost <= 2
        if source is not None and not (lazy and node.kind == "loop"):
            source.stored = True
    return task


def _worth_storing(node: Node, asked: Uses, leaf_of: Callable[[Node], Hashable]) -> bool:
    """Whether computing it each time costs more than a store and the loads."""
    assert node.probe is not None
    if len(asked) > _MANY or node.probe.reduces_columns:
        return True
    seen = set()
    evaluations = 0.0
    for (task, pattern), trips in asked.items():
        key = (leaf_of(task.node) if task.node is not None else task, pattern)
        if key not in seen and pattern != OPAQUE:
            seen.add(key)
            evaluations += _evaluations(task.shape, pattern, trips, node.probe.heavy)
    size = math.prod(node.shape)
    if node.probe.heavy:
        return evaluations > size
    saved = (evaluations - size) * node.cost
    return saved > size * _STORE_COST + evaluations * _LOAD_COST


def _evaluations(shape: tuple[int, ...], pattern: Pattern, trips: int, heavy: bool) -> float:
    """How often a loop over `shape` evaluates a value; light code moves out of loops."""
    if heavy or any(kind not in ("axis", "at") for kind, _ in pattern):
        return math.prod(shape) * trips
    deepest = max((value + 1 for kind, value in pattern if kind == "axis"), default=0)
    return math.prod(shape[:deepest])


def _record_reads(uses: dict[Var, Uses], made: dict[Var, Node]) -> None:
    """Give each task the memory it reads: inputs and stored values, with the patterns."""
    for v, asked in uses.items():
        if v in made and not (made[v].stored or made[v].kind != "element"):
            continue
        for task, pattern in asked:
            task.reads.setdefault(v, set()).add(pattern)
