"""The access patterns and the cost of an element rule.

Builds on operands.py. A rule is run once on operands that record at which index they are read, so
the scheduler needs no knowledge of any primitive. Chapter 23. In XLA: HLO cost analysis and the
indexing maps of its fusion passes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from minijax.util.caches import remembered
from minijax.core.jaxpr import JaxprEqn
from minijax.primitives.slots import Reduction, nest

from .elementary import FORMULAS
from .loops import (Call, Constant, Duplicate, For, If, Let, Load, Operand, Statement, While,
                    cached_on_node)
from .operands import ProgramBuilder, Value
from .routines import work
from .vectors import function

# The index along an axis. ("axis", k): that of the k-th loop, over an axis of the result or a
# reduced axis, if it is longer than one; ("at", n): a constant; ("other", token): anything else.
Term = tuple[str, Any]


class Pattern(NamedTuple):
    """At which index an operand is read: a term for each axis that is longer than one, of its own
    shape or of another, in which its elements have the same row-major positions.
    """

    terms: tuple[Term, ...]
    shape: tuple[int, ...]


OPAQUE = Pattern((("opaque", None),), ())  # an index that only the rule itself can interpret

_COST = {"div": 6.0, "rem": 8.0, "sqrt": 6.0, "convert": 1.0, "select": 1.0, "fma": 2.0}
UNKNOWN_TRIP_COUNT = 16
_LIBRARY_COST = 1 << 19  # a call is assumed to be long: a short one is in no parallel loop

NO_REDUCTION = Reduction("", np.dtype(bool), (), tuple, tuple)


@dataclass
class Probe:
    """The facts about one element rule on operands of fixed types."""

    cost: float = 0.0
    # Which operand, at which pattern, how often.
    accesses: list[tuple[int, Pattern, float]] = field(default_factory=list)
    has_loops: bool = False  # has loops inside
    uses_index: bool = False  # computes with its index, as iota does
    is_element: bool = False  # returns an element of an operand unchanged
    # A reduction, whose one term is described here; its axes follow those of the result.
    reduction: Reduction = NO_REDUCTION


def squeezed(terms: Iterable[Any], shape: Sequence[int]) -> list[Any]:
    """The axes that are longer than one."""
    return [t for t, n in zip(terms, shape, strict=True) if n != 1]


def sizes(shape: Sequence[int]) -> tuple[int, ...]:
    """The sizes of the axes that are longer than one."""
    return tuple([n for n in shape if n != 1])


def identity(shape: Sequence[int]) -> Pattern:
    """The pattern of an operand that is read at the index of a result of the same shape.

    >>> identity((5, 1, 4))
    Pattern(terms=(('axis', 0), ('axis', 1)), shape=(5, 4))
    """
    loops = sizes(shape)
    return Pattern(tuple([("axis", k) for k in range(len(loops))]), loops)


def compose(outer: Pattern, inner: Pattern, middle: Sequence[int], operand: Sequence[int],
            reader: Any = None) -> Pattern:
    """The pattern of an operand as seen from a consumer of its consumer.

    `outer` is the pattern in which the result reads the middle, `inner` that in which the middle
    reads the operand, followed by the shapes of these two. What only the `reader` of the operand
    knows of an index is equal to itself.

    >>> row = Pattern((("axis", 0), ("at", 3)), (9, 5))
    >>> compose(Pattern((("axis", 1),), (9,)), row, (9,), (9, 5))
    Pattern(terms=(('axis', 1), ('at', 3)), shape=(9, 5))
    """
    if OPAQUE in (outer, inner):
        return OPAQUE if operand else identity(())
    if inner == identity(middle):  # in whatever shape the middle is read
        return outer
    is_known = outer.shape == sizes(middle)

    def other(*index: Any) -> Term:
        # Hashes, since tokens nest. Those of -1 and -2 are equal, and so are the texts of two
        # scalars of one name, so an index has both.
        return "other", (hash((reader, outer, *index)), hash(repr((outer, *index))))
    return Pattern(tuple([
        (kind, value) if kind == "at" else outer.terms[value] if kind == "axis" and is_known
        else other(kind, value)
        for kind, value in inner.terms]), inner.shape)


class _Recorder(ProgramBuilder):
    """A builder whose program is discarded; it records how operands are read."""

    def __init__(self) -> None:
        super().__init__()
        self.probe, self.elements = Probe(), list[Operand]()

    def start_rule(self, index: tuple[Operand, ...], shape: Sequence[int]) -> None:
        """Start recording a rule, for the element at an index."""
        self.axes = {i: axis for axis, i in enumerate(squeezed(index, shape))}
        self.position, self.flat = self.ravel(index, shape), identity(shape)
        self.base = len(self.scopes)

    def term(self, x: Operand) -> Term:
        if isinstance(x, Constant):
            return ("at", int(x.value))
        return ("axis", self.axes[x]) if x in self.axes else ("other", x)

    def record(self, x: _TracedOperand, key: Any, pattern: Pattern) -> Operand:
        """A scalar that stands for the element; counted once for each index."""
        def element() -> Operand:
            trip_count = math.prod(UNKNOWN_TRIP_COUNT if s.trip_count is None else s.trip_count
                                   for s in self.scopes[self.base:])
            self.probe.accesses.append((x.argument, pattern, trip_count))
            self.elements.append(self._define(x.dtype, len(self.scopes) - 1))
            return self.elements[-1]
        return self.available(("access", x, key), element)


class _TracedOperand(Value):
    """An operand that records how it is read."""

    b: _Recorder
    argument: int

    def __call__(self, index: Sequence[Any] = ()) -> Operand:
        at = self.b.within(index, self.shape)
        terms = tuple(map(self.b.term, squeezed(at, self.shape)))
        return self.b.record(self, at, Pattern(terms, sizes(self.shape)))

    def flat(self, position: Any) -> Operand:
        position = self.b.index(position)
        index = self.b.unravel(position, self.shape)
        if position is self.b.position and any(self.b.term(i)[0] == "other" for i in index):
            return self.b.record(self, (position,), self.b.flat)
        return self(index)


def note_of(eqn: JaxprEqn) -> str:
    """The user's line of an equation."""
    source = eqn.source_info
    return f"{source.text}   {source.short_file}:{source.line}".strip() if source else ""


def probe_element(rule: Any, in_types: Sequence[Any], out_shape: Sequence[int],
                  params: dict[str, Any]) -> Probe:
    """The access patterns and cost of an element rule; `in_types` have a shape and a dtype each.

    Probes are cached, except where a parameter has no hash.
    """
    types = tuple([(t.shape, t.dtype) for t in in_types])
    key = rule, types, tuple(out_shape), tuple(params.items())
    try:
        hash(key)
    except TypeError:
        return _probe(*key)
    return _cached_probe(*key)


def _probe(rule: Any, in_types: Sequence[tuple], out_shape: Sequence[int],
           params: Iterable[tuple[str, Any]]) -> Probe:
    """Run an element rule once on traced operands."""
    b = _Recorder()
    operands = [_TracedOperand(b, *kind) for kind in in_types]
    for k, x in enumerate(operands):
        x.argument = k
    with nest(b, out_shape) as index:
        b.start_rule(index, out_shape)
        start = len(b.scopes[-1].statements)
        result = rule(b, index, *operands, **dict(params))
        statements = b.scopes[-1].statements
        if isinstance(result, Reduction):
            b.probe.reduction = result
            with nest(b, result.extents) as inner:
                b.base = len(b.scopes)
                b.axes |= {k: len(b.axes) + axis
                           for axis, k in enumerate(squeezed(inner, result.extents))}
                result.finish(result.term(*inner))
                statements = [*statements, *(b.scopes[-1].statements if any(
                    n != 1 for n in result.extents) else ())]
    probe = b.probe
    probe.is_element = any(result is x for x in b.elements)
    probe.cost = cost_of(statements)
    probe.has_loops = any(isinstance(s, For | While) for s in statements)
    probe.uses_index = any(isinstance(s, Let) and not b.axes.keys().isdisjoint(s.args)
                           for s in statements[start:])
    return probe


_cached_probe = remembered(maxsize=4096)(_probe)


def cost_of(body: Iterable[Statement], with_calls: bool = True) -> float:
    """The approximate number of simple scalar operations in one run of a body, perhaps without
    those of the functions that it calls.
    """
    return sum([_cost(each, with_calls) for each in body])


@cached_on_node
def _cost(statement: Statement, with_calls: bool) -> float:
    match statement:
        case Let(target, op, _) if op in FORMULAS:
            return cost_of(function(op, target.dtype).body)
        case Let(target, "min" | "max", _) if target.dtype.kind == "f":
            return 3.0  # a nan on either side is the result
        case Let(_, op, _):
            return _COST.get(op, 1.0)
        case Load():
            return 1.0
        case Call():
            return with_calls and (work(statement) or _LIBRARY_COST)
        case For(body=inner, trip_count=trip_count):
            trip_count = UNKNOWN_TRIP_COUNT if trip_count is None else trip_count
            return trip_count * (cost_of(inner, with_calls) + 1.0)
        case While(condition, _, inner):
            return UNKNOWN_TRIP_COUNT * (cost_of((*condition, *inner), with_calls) + 1.0)
        case Duplicate(first):
            return _cost(first, with_calls)
        case If(_, then, orelse):
            return 2.0 + max(cost_of(then, with_calls), cost_of(orelse, with_calls))
    return 0.0
