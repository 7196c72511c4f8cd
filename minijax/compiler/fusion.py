"""Fusion: a value is materialised in a buffer where recomputing it would cost more.

Builds on probe.py. Walks a program backwards, counting how often each value is evaluated. Chapter
23. In XLA: instruction fusion and its cost model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from minijax.core import Cannot
from minijax.core.jaxpr import JaxprEqn, Literal, Var
from minijax.util.lazily import cached_property

from .builder import MIDDLING_ROW
from .probe import OPAQUE, Pattern, Probe, compose, identity, probe_element, sizes

_STORE_COST = 3.0
_LOAD_COST = 1.0
_MAX_DEPTH = 50  # rules call one another: a longer chain is cut by a stored value
_LAZY_READS = 1.5  # how often a loop rule may read an element of an operand that is not stored
SLOW = 16.  # the cost of an elementary function
MIN_ROWS = 64  # fewer are worth neither a loop of their own nor lanes
MIDDLING = range(MIDDLING_ROW + 1, 129)  # elements of a row
_MAX_ACCESSES = 16  # a value with so many different accesses is stored


@dataclass(eq=False)
class Node:
    """An equation with the facts about its lowering rule; a task is one that is stored in memory.
    """

    eqn: JaxprEqn
    kind: str  # "element", "loop" or "library"
    rule: Callable[..., Any]
    probe: Probe = field(default_factory=Probe)
    loops: tuple[int, ...] = ()  # trip counts: over the result, then over reduced axes
    rank: int = 0          # how many of them are over the result
    cost: float = 0.0      # of one element, operands included
    depth: int = 0         # how many rules call one another for one element
    fused: set[Node] = field(default_factory=set)  # the nodes fused into one element, and itself
    from_scalars: bool = False  # reads nothing but scalars, so costs no memory traffic
    uses_index: bool = False   # uses its index in arithmetic, or fuses a node that does
    stored: bool = False
    reads: dict[Var, set[Pattern]] = field(default_factory=dict)  # of a task: its reads from memory

    @property
    def opaque(self) -> bool:
        """Whether only its own rule can emit its loops."""
        return self.kind != "element"

    @property
    def outvars(self) -> list[Var]:
        """The variables it computes."""
        return self.eqn.outvars

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the (first) result."""
        return self.outvars[0].aval.shape if self.outvars else ()

    @cached_property
    def space(self) -> tuple[int, ...]:
        """The iteration space: the axes of its result, then those that it reduces."""
        return (*self.shape, *sizes(self.probe.reduction.extents))

    @property
    def is_constant(self) -> bool:
        """Whether all its elements are equal."""
        return self.from_scalars and not self.uses_index

    @property
    def reduces(self) -> bool:
        """Whether it is a reduction: loops over the terms of each element."""
        return self.rank < len(self.loops)


Uses = dict[tuple[Node, Pattern], float]


def lowering_rule(eqn: JaxprEqn) -> tuple[str, Any]:
    """The kind and the function of an equation's lowering rule.

    Raises:
      NotImplementedError: where there is none; names the user's line.
    """
    primitive = eqn.primitive
    reason = ""
    for kind in ("element", "loop", "library"):
        rule = getattr(primitive, kind, None)
        if callable(rule):
            return kind, rule
        if isinstance(rule, Cannot):
            reason = f": {rule.reason}"
    advice = "" if reason else (" Give it an element, a loop or a library rule, or run the "
                                "function under jax.disable_jit().")
    site = f" It is called at {eqn.source_info.place}." if eqn.source_info else ""
    raise NotImplementedError(f"Lowering rule for primitive '{primitive.name}' not found"
                              f"{reason}.{site}{advice}")


def choose_tasks(eqns: Sequence[JaxprEqn], outs: Sequence[Var]) -> list[Node]:
    """The equations whose results are stored, in order; the others are fused into their consumers.
    """
    producers: dict[Var, Node] = {}
    nodes = [_probed(Node(eqn, *lowering_rule(eqn)), producers) for eqn in eqns]
    for v in outs:
        producers[v].stored = True
    uses: dict[Var, Uses] = {}
    for node in reversed(nodes):
        _visit(node, uses, producers)
    for v, accesses in uses.items():  # memory: inputs and stored values
        if v not in producers or producers[v].stored:
            for task, pattern in accesses:
                task.reads.setdefault(v, set()).add(pattern)
    return [node for node in nodes if node.stored]


def _probed(node: Node, producers: dict[Var, Node]) -> Node:
    """A node with the probe of its rule and its cost, including fused operands."""
    producers.update(dict.fromkeys(node.outvars, node))
    if node.opaque:
        node.stored = True
        node.probe.accesses = [(k, OPAQUE, _LAZY_READS * atom.aval.size)
                               for k, atom in enumerate(node.eqn.invars)]
        return node
    node.probe = probe_element(node.rule, [v.aval for v in node.eqn.invars], node.shape,
                               node.eqn.params)
    node.rank, node.loops = len(sizes(node.shape)), sizes(node.space)
    node.cost, node.from_scalars, node.uses_index = node.probe.cost, True, node.probe.uses_index
    node.fused = {node}
    for position, _, count in node.probe.accesses:
        atom = node.eqn.invars[position]
        source = producers.get(atom) if isinstance(atom, Var) else None
        if source is not None and not source.stored:
            node.cost += count * source.cost
            node.depth = max(node.depth, source.depth + 1)
            node.fused |= source.fused
            node.from_scalars &= source.from_scalars
            node.uses_index |= source.uses_index
        elif atom.aval.shape:
            node.cost += count * _LOAD_COST
            node.from_scalars = False
    node.cost = min(node.cost, 1e9)
    node.stored = node.reduces or node.depth >= _MAX_DEPTH
    return node


def _visit(node: Node, uses: dict[Var, Uses], producers: dict[Var, Node]) -> None:
    accesses: Uses = {}
    for v in node.outvars:
        for key, count in uses.get(v, {}).items():
            accesses[key] = max(accesses.get(key, 0), count)
    node.stored = node.stored or _worth_storing(node, accesses)
    if node.stored:
        accesses = {(node, identity(node.space)): 1}
    for position, pattern, count in node.probe.accesses:
        atom = node.eqn.invars[position]
        if isinstance(atom, Literal):
            continue
        accesses_of_operand = uses.setdefault(atom, {})
        for (root, outer), times in accesses.items():
            key = (root, compose(outer, pattern, node.space, atom.aval.shape, node))
            accesses_of_operand[key] = max(accesses_of_operand.get(key, 0), times * count)
        source = producers.get(atom)
        if node.opaque and source is not None and not _may_fuse(node, position, source):
            source.stored = True


def _may_fuse(node: Node, position: int, source: Node) -> bool:
    """Whether a rule may take an operand that is not stored: a loop rule, if the operand is cheap
    or only moves rows; or a rule that reads an element once or twice.
    """
    eqn = node.eqn
    changed = {eqn.invars[k] for place in range(len(eqn.outvars))
               for k in eqn.primitive.in_place(place, **eqn.params)}
    is_unchanged = not changed or changed.isdisjoint(
        x for each in source.fused for x in each.eqn.invars)
    if eqn.primitive.can_fuse_operands:
        return is_unchanged
    if node.kind != "loop" or source.cost > _STORE_COST + _LOAD_COST:
        return False
    if source.from_scalars and source.cost <= 2:
        return True
    return (is_unchanged and position in eqn.primitive.rows(**eqn.params)
            and all(map(_keeps_rows, source.fused)))


def _keeps_rows(node: Node) -> bool:
    """Whether it only moves elements, and keeps contiguous rows together."""
    axes = [[value for kind, value in pattern.terms if kind == "axis"]
            for _, pattern, _ in node.probe.accesses]
    return node.probe.is_element and all(each == sorted(each) for each in axes)


def _worth_storing(node: Node, accesses: Uses) -> bool:
    """Whether recomputing a value costs more than a store and the loads.

    If all consumers end up in its loop, the value is computed there and gets no memory.
    """
    if len(accesses) > _MAX_ACCESSES or _fills_vectors_alone(node, accesses):
        return True
    evaluations = sum(_evaluations(task.loops, pattern, count, node.probe.has_loops)
                      for (task, pattern), count in accesses.items())
    size = math.prod(node.shape)
    if node.probe.has_loops:
        return evaluations > size
    savings = (evaluations - size) * node.cost
    return savings > size * _STORE_COST + evaluations * _LOAD_COST


def _fills_vectors_alone(node: Node, accesses: Uses) -> bool:
    """Whether elementary functions of one number for each row are computed in a loop of their own:
    these are too long to put rows in lanes, and so short that it is cheap to read them again.
    """
    for task, pattern in accesses if node.cost >= SLOW else ():
        depth = _deepest(pattern)
        if (depth and task.loops[depth - 1] >= MIN_ROWS
                and math.prod(task.loops[depth:]) in MIDDLING):
            return True
    return False


def _evaluations(shape: tuple[int, ...], pattern: Pattern, count: float, has_loops: bool) -> float:
    """How often a loop over `shape` evaluates a value; cheap code is hoisted out of loops."""
    if pattern == OPAQUE:
        return count  # over all iterations already
    if has_loops or any(kind == "other" for kind, _ in pattern.terms):
        return math.prod(shape) * count
    return math.prod(shape[:_deepest(pattern)])


def _deepest(pattern: Pattern) -> int:
    """How many loops there are down to the last one with whose index an operand is read."""
    return max((value + 1 for kind, value in pattern.terms if kind == "axis"), default=0)
