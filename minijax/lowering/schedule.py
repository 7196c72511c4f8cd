"""From a jaxpr to loops: evaluates the nests that nests.py planned, at every index.

Stands on nests.py, program.py and simplify.py. Chapter 23.
In XLA: the emitters of fused computations; in JAX: `mlir.jaxpr_subcomp`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from minijax.core import Cannot, Primitive
from minijax.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from minijax.primitives.convert import copy_p

from . import operands
from .tiles import emit_column, emit_tiles
from .fusion import Node, choose_tasks, make_nodes
from .loops import Buffer, Kernel, Operand
from .memory import layout
from .nests import Nest, build_nests, paths
from .probe import identity
from .operands import Cell, Computed, Held, Stored, Value
from .program import ProgramBuilder
from .simplify import buffer_of, simplify

Destination = Buffer | Stored | Cell | None  # where an output goes, as a rule says it


def lowering_rule(eqn: JaxprEqn) -> tuple[str, Any]:
    """The kind and the function of an equation's lowering rule.

    Raises:
      NotImplementedError: where there is none, or the dtype has no loops; names the user's line.
    """
    primitive: Primitive = eqn.primitive
    for atom in (*eqn.invars, *eqn.outvars):
        if getattr(atom.aval.dtype, "kind", "") == "c":
            raise NotImplementedError(
                f"'{primitive.name}' on {atom.aval.str_short()} cannot be compiled: loops have no "
                f"complex scalars yet. Run it under `disable_jit`.{_line(eqn)}")
    reason = ""
    for kind in ("element", "loop", "library"):
        rule = getattr(primitive, kind, None)
        if callable(rule):
            return kind, rule
        if isinstance(rule, Cannot):
            reason = f": {rule.reason}"
    cure = "" if reason else (" Give it an element, a loop or a library rule, or run the function "
                              "under jax.disable_jit().")
    raise NotImplementedError(
        f"'{primitive.name}' has no lowering rule{reason}.{_line(eqn)}{cure}")


def _line(eqn: JaxprEqn) -> str:
    source = eqn.source_info
    return "" if source is None else f" It is called at {source.place}."


def note_of(eqn: JaxprEqn) -> str:
    """The user's line that made an equation, with its place."""
    source = eqn.source_info
    if source is None:
        return ""
    return f"{source.text}   {source.short_file}:{source.line}".strip()


def _common(x: tuple[Nest, ...], y: tuple[Nest, ...]) -> tuple[Nest, ...]:
    return tuple(nest for nest in x if nest in y)


def plan(jaxpr: Jaxpr, outs: Sequence[Var]) -> list[Nest]:
    """Decide what is stored and which loops merge; each decision can change the other."""
    nodes = make_nodes(jaxpr.eqns, lowering_rule)
    leaves: dict[Node, Any] = {}

    def leaf_of(node: Node) -> Any:
        return leaves.get(node, ("shape", node.shape))

    stored, nests = None, build_nests(choose_tasks(nodes, outs, leaf_of))
    while stored != {node for node in nodes if node.stored}:
        stored = {node for node in nodes if node.stored}
        leaves.update((task, path[-1]) for task, path in paths(nests))
        nests = build_nests(choose_tasks(nodes, outs, leaf_of))
    return nests


class _TaskValue(Value):
    """A stored value: the scalar itself where it was just computed, else a load.

    What its memory does not hold yet, or no longer, is computed again: where a value is read
    from memory, it is there.
    """

    def __init__(self, run: Run, v: Var, computed: Value, place: Stored | None, skip: int) -> None:
        super().__init__(run.b, computed.shape, computed.dtype)
        self.run, self.v, self.computed, self.place, self.skip = run, v, computed, place, skip

    def __call__(self, index: Sequence[Any] = ()) -> Operand:
        at = self.b.within(index, self.shape)
        found = self.b.find(("value", self, at))
        if found is not None:
            return found
        if self.place is None or not self.run.has_stored(self.v, at):
            return self.computed(at)
        x = self.place(at[self.skip:])
        self.b.mark("reads", self.run, self.v, x, at, self.shape)
        return x


def _in_memory(x: Value) -> Value:
    """A value that has been stored whole, as the buffer it is in."""
    if isinstance(x, _TaskValue) and x.place is not None and x.skip == 0 and x.shape:
        prefix = x.place.prefix
        return Stored(x.b, x.place.buffer, prefix, Held(x.run, x.v, len(prefix)))
    return x


class Run:
    """One program being emitted."""

    def __init__(self, b: ProgramBuilder, jaxpr: Jaxpr, args: Sequence[Value],
                 into: Sequence[Destination]) -> None:
        self.b, self.jaxpr = b, jaxpr
        self.env: dict[Var, Value] = dict(zip((*jaxpr.constvars, *jaxpr.invars), args,
                                              strict=True))
        self.variables = [x if isinstance(x, Cell) and x.variable else None for x in into]
        self.into = [self._place(out, x) for out, x in zip(jaxpr.outvars, into, strict=True)]
        self.evaluating: JaxprEqn | None = None
        self.noted: JaxprEqn | None = None  # the equation whose line stands somewhere already
        self.places: dict[Var, list[Stored]] = {}
        self.turns: dict[Nest, Operand] = {}  # the loops that are open → their indices
        self.closed: set[Nest] = set()
        self.later: list[tuple[Stored, Cell]] = []
        for x in self.env.values():
            buffer = getattr(x, "buffer", None)
            if buffer is not None:
                b.freeze(buffer)

    def _place(self, out: Atom, given: Destination) -> Stored | Cell | None:
        """Where loops store an output: not in a variable, nor where a cell keeps its value."""
        if isinstance(given, Cell):
            own = isinstance(out, Var) and getattr(self.env.get(out), "buffer", None)
            return None if given.buffer is None or own is given.buffer else given
        return Stored(self.b, given) if isinstance(given, Buffer) else given

    def run(self) -> list[Value]:
        owners = self._with_copies()
        self.nests = plan(self.jaxpr, list(owners.values()))
        self.paths = dict(paths(self.nests))
        self.makers = {v: task for task in self.paths for v in task.outvars}
        self.order = {nest: position for position, nest in enumerate(self.nests)}
        for k, v in owners.items():
            self.places.setdefault(v, [])
            if (place := self.into[k]) is not None:
                self.places[v].append(self._destination(v, place))
        self._share_places()
        self._define_values()
        self.b.mark("begins", self)
        for nest in self.nests:
            self.emit(nest, ())
        results = [_in_memory(self.read(out)) for out in self.jaxpr.outvars]
        self._write_cells(results)
        return results

    def _with_copies(self) -> dict[int, Var]:
        """The outputs that are wanted; one that is an input or a literal is copied by an equation.

        Copies of cells are made before the cells are written, copies into cells after.
        """
        first: list[JaxprEqn] = []
        last: list[JaxprEqn] = []
        owners: dict[int, Var] = {}
        for k, (out, place) in enumerate(zip(self.jaxpr.outvars, self.into, strict=True)):
            if isinstance(out, Var) and out not in self.env:
                owners[k] = out
            elif place is not None:
                owners[k] = Var(out.aval)
                copy = JaxprEqn((out,), (owners[k],), copy_p, {})
                (last if isinstance(place, Cell) else first).append(copy)
        self.jaxpr = self.jaxpr.replace(eqns=(*first, *self.jaxpr.eqns, *last))
        return owners

    # -- places --------------------------------------------------------------------------------

    def _share_places(self) -> None:
        """Let a rule that changes its operand do so in place, where nobody reads the old value."""
        for writer in reversed(self.paths):
            at = writer.eqn.primitive.in_place
            old = writer.eqn.invars[at] if at is not None else None
            if (isinstance(old, Var) and old in self.makers and old not in self.places
                    and old.aval.shape and self._updates_last(writer, {old})):
                place = self._whole_place(writer.outvars[0])
                if self._safe_in_place(old, place.buffer):
                    self.places[old] = [place]

    def _updates_last(self, writer: Node, held: set[Var]) -> bool:
        """Whether a task's rule changes this very operand in place, reads none of the others, and
        whoever else reads them has done so before.
        """
        at = writer.eqn.primitive.in_place
        return at is not None and all((x in held) == (k == at)
                                      for k, x in enumerate(writer.eqn.invars)) and all(
            task is writer or held.isdisjoint(task.reads) or self._before(task, writer)
            for task in self.paths)

    def _whole_place(self, v: Var) -> Stored:
        """A place that holds all of an output in one buffer of its own."""
        places = self.places.setdefault(v, [])
        if all(place.prefix for place in places):
            places.insert(0, Stored(self.b, self.b.temp(v.aval.shape, v.aval.dtype)))
        return next(place for place in places if not place.prefix)

    def _destination(self, v: Var, place: Stored | Cell) -> Stored:
        if isinstance(place, Stored):
            return place
        assert place.buffer is not None
        if self._safe_in_place(v, place.buffer):
            return Stored(self.b, place.buffer)
        temp = Stored(self.b, self.b.temp(place.shape, place.dtype))
        self.later.append((temp, place))
        return temp

    def _safe_in_place(self, written: Var, buffer: Buffer) -> bool:
        """Whether everything that reads the buffer has done so when a value is written there."""
        writer = self.makers[written]
        held = {v for v, x in self.env.items() if getattr(x, "buffer", None) is buffer}
        if self._updates_last(writer, held):
            return True
        for task, path in self.paths.items():
            patterns = [p for v in held & set(task.reads) for p in task.reads[v]]
            same_leaf = path[-1] is self.paths[writer][-1] and path[-1].kind in ("", "flat")
            aligned = all(p == identity(buffer.shape) for p in patterns)
            if patterns and not self._before(task, writer) and not (same_leaf and aligned):
                return False
        return True

    def _before(self, task: Node, writer: Node) -> bool:
        """Whether a task is done before another begins."""
        return self.order[self.paths[task][0]] < self.order[self.paths[writer][0]]

    def _define_values(self) -> None:
        """An operand for every variable: stored, or computed where it is asked."""
        readers: dict[Var, list[Node]] = {}
        for task in self.paths:
            for v in task.reads:
                readers.setdefault(v, []).append(task)
        for eqn in self.jaxpr.eqns:
            for k, v in enumerate(eqn.outvars):
                value = self._computed_value(eqn, k)
                if v in self.makers and not self.makers[v].opaque:
                    value = self._stored_value(v, value, readers.get(v, []))
                self.env[v] = value

    def _computed_value(self, eqn: JaxprEqn, k: int) -> Value:
        aval = eqn.outvars[k].aval
        return Computed(self.b, lambda index: self.evaluate(eqn, index)[k], aval.shape, aval.dtype)

    def _stored_value(self, v: Var, computed: Value, readers: Sequence[Node]) -> Value:
        """A value in its destination, or in a temp as small as its readers' loops allow."""
        path, skip = self.paths[self.makers[v]], 0
        if not self.places.get(v):
            outside = v in self.places  # someone will read it there
            shared = () if outside else functools.reduce(
                _common, (self.paths[other] for other in readers), path)
            skip = sum(nest.size is not None for nest in shared)
            rest = computed.shape[skip:]
            if rest and shared[-1:] != path[-1:]:
                buffer = self.b.temp(rest, computed.dtype)
                self.b.origin(buffer, v)
                self.places[v] = [Stored(self.b, buffer)]
        place = next(iter(self.places.get(v, [])), None)
        return _TaskValue(self, v, computed, place, skip)

    # -- loops ---------------------------------------------------------------------------------

    def emit(self, nest: Nest, prefix: tuple[Operand, ...], alone: bool = True) -> None:
        """Emit a nest below the loops whose indices are `prefix`.

        `alone`: not the whole body of a loop, so its lines stand over it and not over the loop.
        """
        match nest.kind:
            case "opaque":
                self._emit_opaque(nest.tasks[0])
            case "flat":
                rest = nest.tasks[0].shape[nest.depth:]
                with self.b.loop(math.prod(rest), vectorize="parallel") as k:
                    self.leaf(nest.tasks, (*prefix, *self.b.unravel(self.b.index(k), rest)))
            case "column":
                emit_column(self, nest.tasks[0], prefix)
            case "tiled":
                emit_tiles(self, nest, prefix)
            case _ if nest.size is None:
                self.leaf(nest.tasks, prefix, alone)
            case _:
                how = "parallel" if nest.innermost else "apart"
                with self.b.loop(nest.size, vectorize=how) as i:
                    self.turns[nest] = self.b.index(i)
                    for child in nest.children:
                        self.emit(child, (*prefix, self.turns[nest]), not nest.innermost)
        self.closed.add(nest)
        for task in nest.tasks:
            for v in task.outvars:
                for place in self.places.get(v, []):
                    self.b.freeze(place.buffer)

    def has_stored(self, v: Var, index: Sequence[Operand]) -> bool:
        """Whether an element of a stored value has been written when this point is reached."""
        for nest in self.paths[self.makers[v]]:
            if nest in self.closed:
                return True
            if nest.size is not None and self.turns.get(nest) is not index[nest.depth]:
                return False
        return False

    def leaf(self, tasks: Sequence[Node], index: tuple[Operand, ...], alone: bool = False) -> None:
        """Compute every task at one index, then store: what they read may change."""
        stores = []
        for task in tasks:
            with self._noting(task if alone else None):
                found = self.evaluate(task.eqn, index)
            for v, x in zip(task.outvars, found, strict=True):
                self.b.remember(("value", self.env[v], index), x)  # for those who ask next
                stores += [(v, place, x) for place in self.places.get(v, [])]
        for v, place, x in stores:
            place.store(index[getattr(self.env[v], "skip", 0):], x)
            shape = tasks[0].shape
            self.b.mark("writes", self, v, place.buffer, self.b.within(index, shape), shape)

    @contextmanager
    def _noting(self, task: Node | None) -> Iterator[None]:
        """Put the user's line over the first statement that is emitted meanwhile."""
        statements = self.b.scopes[-1].statements
        before = len(statements)
        if task is None:
            yield
            return
        self.noted = task.eqn
        yield
        self.noted = None
        if len(statements) > before:
            self.b.lines.setdefault(statements[before], note_of(task.eqn))

    def evaluate(self, eqn: JaxprEqn, index: tuple[Operand, ...]) -> list[Operand]:
        """One element of each output of an equation; once for each index in a scope."""
        key = ("equation", self, eqn, index)
        found = self.b.find(key)
        if found is not None:
            return found
        if eqn is not self.noted:
            self.b.note(note_of(eqn))
        _, rule = lowering_rule(eqn)
        around, self.evaluating = self.evaluating, eqn
        try:
            result = rule(self.b, index, *map(self.read, eqn.invars), **eqn.params)
        finally:
            self.evaluating = around
        found = list(result) if isinstance(result, list | tuple) else [result]
        found = [self.b.actual(self.b.index(x)) for x in found]
        for v, x in zip(eqn.outvars, found, strict=True):
            if x.dtype != v.aval.dtype:
                raise TypeError(f"the element rule of '{eqn.primitive.name}' gives {x.dtype} "
                                f"for {v.aval.str_short()}")
            self.b.origin(x, v)
        self.b.remember(key, found)
        return found

    def read(self, atom: Atom) -> Value:
        """The operand of a variable or literal."""
        if isinstance(atom, Literal):
            return self.b.constant(buffer_of(atom.value))
        return self.env[atom]

    # -- opaque rules --------------------------------------------------------------------------

    def _emit_opaque(self, task: Node) -> None:
        eqn, b = task.eqn, self.b
        values = [_in_memory(self.read(atom)) for atom in eqn.invars]
        for x in values:
            if isinstance(x, Stored) and x.held is not None:
                x.held.mark(b, "expects", x, x.buffer, x.prefix)
        given = [b.materialize(x) for x in values] if task.kind == "library" else values
        outputs = []
        for v in eqn.outvars:
            buffer = self._whole_place(v).buffer
            b.origin(buffer, v)
            b.touch(buffer)  # it may hold the operand that the rule is going to change
            outputs.append(buffer)
        with self._noting(task):
            task.rule(b, outputs, given, **eqn.params)
        for v, buffer in zip(eqn.outvars, outputs, strict=True):
            b.freeze(buffer)
            b.mark("holds", self, v, buffer, (), buffer.shape)
            self.env[v] = Stored(b, buffer, held=Held(self, v))
            for place in self.places[v]:
                if place.buffer is not buffer:
                    operands.copy(b, self.env[v], place)

    # -- cells ---------------------------------------------------------------------------------

    def _write_cells(self, results: Sequence[Value]) -> None:
        """Change the cells at last, scalars and arrays, when all their new values are known."""
        scalars = [(cell.variable, x(())) for cell, x in zip(self.variables, results, strict=True)
                   if cell is not None and cell.variable is not None]
        for variable, x in scalars:
            self.b.assign(variable, x)
        for source, cell in self.later:
            assert cell.buffer is not None
            self.b.freeze(source.buffer)
            operands.copy(self.b, source, Stored(self.b, cell.buffer))
        for place in self.into:
            if isinstance(place, Cell):
                place.mark()


class NestingBuilder(ProgramBuilder):
    """The builder that also lowers programs inside of a program."""

    def jaxpr(self, closed: ClosedJaxpr, args: Sequence[Any],
              into: Sequence[Destination] | None = None) -> list[Value]:
        """Lower a nested program here.

        `into` says for each output where it goes: a buffer, a view, a cell, or None for a
        place of the builder's choice. All cells change together, after everything is read.
        """
        closed = simplify(closed)
        values = [self._snapshot(x) for x in args]
        consts = [self.constant(buffer_of(c)) for c in closed.consts]
        places = list(into) if into is not None else [None] * len(closed.jaxpr.outvars)
        return Run(self, closed.jaxpr, [*consts, *values], places).run()

    def _snapshot(self, x: Any) -> Value:
        """The operand as it is now: a variable's value is read."""
        if isinstance(x, Cell) and x.variable is not None:
            return self.fixed(self.read(x.variable))
        if isinstance(x, Buffer):
            return Stored(self, x)
        return x if isinstance(x, Value) else self.fixed(x)


def lower_to_kernel(closed: ClosedJaxpr, name: str, marking: bool = False) -> Kernel:
    """The loop tree of a whole program; with marks for the sanitiser on request.

    Raises:
      NotImplementedError: for an equation that has no lowering rule; names the user's line.
    """
    b = NestingBuilder()
    b.marking = marking
    jaxpr = closed.jaxpr
    inputs = [_buffer(f"in{k}", v, "input") for k, v in enumerate(jaxpr.invars)]
    outputs = [_buffer(f"out{k}", v, "output") for k, v in enumerate(jaxpr.outvars)]
    b.jaxpr(closed, [Stored(b, buffer) for buffer in inputs], into=outputs)
    for buffer, v in zip((*inputs, *outputs), (*jaxpr.invars, *jaxpr.outvars), strict=True):
        b.origin(buffer, v)
    body = tuple(b.scopes[0].statements)
    offsets, size = layout(b.temps, body)
    notes = {"jaxpr": jaxpr, "origins": b.origins, "lines": b.lines, "finals": b.finals}
    return Kernel(name, tuple(inputs), tuple(outputs), tuple(b.constants), tuple(offsets), size,
                  offsets, body, notes)


def _buffer(name: str, v: Atom, role: str) -> Buffer:
    return Buffer(name, np.dtype(v.aval.dtype), v.aval.shape, role)
