"""Equal nests, as of the layers of a network: the key of all that the loops of a nest depend on.

Builds on nests.py, operands.py and digest.py; schedule.py emits equal nests once. Chapter 23. In
JAX: users write `scan` over layers, so that one layer is compiled."""

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

from minijax.core.jaxpr import Atom, JaxprEqn, Literal, Var, subjaxprs

from .digest import Unnameable, canonical
from .loops import Buffer, Constant
from .nests import Nest
from .operands import Stored, Value
from .probe import note_of


def repeating(nests: Sequence[Nest]) -> set[Nest]:
    """The nests that may be equal to others: those with the same operations on the same types."""
    words = [tuple((task.eqn.primitive, *(v.aval for v in (*task.eqn.invars, *task.outvars)))
                   for task in nest.tasks) for nest in nests]
    counts = Counter(words)
    return {nest for nest, key in zip(nests, words, strict=True) if counts[key] > 1}


class NestKey:
    """The key of a nest: equal keys stand for equal loops, on corresponding buffers.

    Args:
      lowering: has the equations, and where values are stored.

    Raises:
      Unnameable: where the loops depend on something else.
    """

    def __init__(self, lowering: Any, nest: Nest) -> None:
        self.lowering = lowering
        self.buffers: dict[Buffer, int] = {}
        self.variables: dict[Var, int] = {}
        self.own = {v for task in nest.tasks for v in task.outvars}
        numbers = {task: k for k, task in enumerate(nest.tasks)}
        tasks = tuple((self.equation(task.eqn), *map(self.result, task.outvars))
                      for task in nest.tasks)
        self.words: Hashable = _tree(nest, numbers), tasks, lowering.b.scopes[0].load_floor

    def equation(self, eqn: JaxprEqn) -> Hashable:
        """An equation with what it reads; not one with programs inside, whose frames are few."""
        if any(subjaxprs(eqn.params)):
            raise Unnameable
        return (eqn.primitive, canonical([*eqn.params.items()]), note_of(eqn),
                *map(self.value, eqn.invars))

    def result(self, v: Var) -> Hashable:
        """What a task computes, and where it is stored."""
        places = self.lowering.storage.get(v, [])
        if not places and self.is_read_outside(v):
            raise Unnameable
        return (self.number(v), v.aval.shape, v.aval.dtype, self.lowering.skip.get(v, 0),
                *map(self.place, places))

    def is_read_outside(self, v: Var) -> bool:
        """Whether other nests read a value, or it is a result of the program."""
        readers = self.lowering.readers.get(v, ())
        return v in self.lowering.jaxpr.outvars or any(
            self.own.isdisjoint(task.outvars) for task in readers)

    def number(self, v: Var) -> int:
        return self.variables.setdefault(v, len(self.variables))

    def value(self, atom: Atom) -> Hashable:
        """What an equation reads: a constant, memory, or what other equations compute of these."""
        if isinstance(atom, Literal):
            return "literal", canonical(atom.value), atom.aval.dtype
        known = atom in self.variables or atom in self.own
        number = self.number(atom)
        if known:
            return "value", number
        types = number, atom.aval.shape, atom.aval.dtype
        places, operand = self.lowering.storage.get(atom), self.lowering.env[atom]
        if places:
            return *types, "stored", self.place(places[0]), self.lowering.skip.get(atom, 0)
        if isinstance(operand, Stored):
            return *types, "operand", self.place(operand)
        eqn = self.lowering.equations.get(atom)
        if eqn is None or atom in self.lowering.producers:
            raise Unnameable
        return *types, "computed", eqn.outvars.index(atom), self.equation(eqn)

    def place(self, x: Value) -> Hashable:
        """A buffer, and the part of it that is meant."""
        if not isinstance(x, Stored) or not all(isinstance(k, int | Constant)
                                                for k in (*x.prefix, *x.suffix)):
            raise Unnameable
        index = [int(k.value if isinstance(k, Constant) else k)  # type: ignore[arg-type]
                 for k in (*x.prefix, *x.suffix)]
        buffer = x.buffer
        number = self.buffers.setdefault(buffer, len(self.buffers))
        return number, len(x.prefix), *index, self.lowering.b.is_frozen(buffer)


def _tree(nest: Nest, numbers: dict[Any, int]) -> Hashable:
    """The loops of a nest, and which of its tasks they run."""
    inside = [_tree(child, numbers) for child in nest.children] or [
        (numbers[task], task.loops, task.rank) for task in nest.tasks]
    return nest.kind, nest.depth, nest.size, nest.column_axes, tuple(inside)
