"""From a jaxpr to loops: evaluates the nests that nests.py planned, at every index.

Stands on nests.py, operands.py and simplify.py. Chapter 23.
In XLA: the emitters of fused computations; in JAX: `mlir.jaxpr_subcomp`.
"""

import functools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any


from minijax.core import ShapedArray, physical_aval
from minijax.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from minijax.primitives.algebra import is_complex
from minijax.primitives.convert import copy_p
from minijax.primitives.slots import Reduction, real_dtype

from .builder import LANES
from .fusion import Node, choose_tasks
from .loops import Buffer, Kernel, Operand, Variable
from .memory import layout
from .nests import Nest, build_nests, paths, rows_beside, turned_reads
from .probe import Pattern, identity, longer, note_of
from .operands import Computed, ProgramBuilder, Stored, Value
from .simplify import buffer_of, simplify

# Columns at a time, whose sums stay in the first-level cache; but threads share either these
# stretches or blocks of rows.
WIDTH, _SHARES = 4096, 16
TILE = 64     # the side of a square: some lines of each row, which are in the cache together,
PADDED = 65   # where one of a column is not in the place of another
WARP = 32     # the side on a GPU

Terms = dict[Node, Operand]  # of reductions, at one turn of the loops they share
Destination = Buffer | Stored | Variable | None  # where an output goes, as a rule says it


def _stretch(b: ProgramBuilder, k: Operand, n: int, side: int) -> tuple[Operand, Operand | int]:
    """Where the k-th stretch of n indices begins, and how many it has: the last may be short."""
    first = b.mul(k, side)
    return first, b.min(b.sub(n, first), side) if n % side else side


def _common(x: tuple[Nest, ...], y: tuple[Nest, ...]) -> tuple[Nest, ...]:
    return tuple(nest for nest in x if nest in y)


def _may_change(task: Node, new: Var) -> Sequence[int]:
    """The places of the operands whose memory an output of a task may be written to."""
    return task.eqn.primitive.in_place(task.outvars.index(new), **task.eqn.params)


class Run:
    """One program being emitted."""

    def __init__(self, b: ProgramBuilder, jaxpr: Jaxpr, args: Sequence[Value],
                 into: Sequence[Destination]) -> None:
        self.b, self.jaxpr = b, jaxpr
        self.env: dict[Var, Value] = dict(zip((*jaxpr.constvars, *jaxpr.invars), args,
                                              strict=True))
        self.into = [Stored(b, x) if isinstance(x, Buffer) else x for x in into]
        self.noted: JaxprEqn | None = None  # the equation whose line stands somewhere already
        self.places: dict[Var, list[Stored]] = {}
        # What a turn of a loop has made: those beside it ask for that alone, however they say it,
        # and it is not in memory before the turn ends.
        self.turn: dict[Var, Operand] = {}
        self.skip: dict[Var, int] = {}  # how many axes a place lacks: loops around its readers
        self.later: list[tuple[Stored, Stored]] = []
        self.held: dict[Buffer | None, set[Var]] = {}  # the values in each buffer at the beginning
        for v, x in self.env.items():
            self.held.setdefault(x.buffer, set()).add(v)
            if x.buffer is not None:
                b.freeze(x.buffer)

    def run(self) -> list[Value]:
        wanted = self._with_copies()
        self.nests = build_nests(choose_tasks(self.jaxpr.eqns, [v for v, _ in wanted]))
        self.paths = dict(paths(self.nests))
        self.makers = {v: task for task in self.paths for v in task.outvars}
        self.order = {nest: position for position, nest in enumerate(self.nests)}
        self.readers: dict[Var, list[Node]] = {}
        for task in self.paths:
            for v in task.reads:
                self.readers.setdefault(v, []).append(task)
        for v, place in wanted:
            self.places.setdefault(v, []).extend(
                [] if place is None else [self._destination(v, place)])
        self._share_places()
        self._define_values()
        for nest in self.nests:
            self.emit(nest, ())
        results = [self.in_memory(out) for out in self.jaxpr.outvars]
        self._write_cells(results)
        return results

    def _with_copies(self) -> list[tuple[Var, Stored | None]]:
        """The outputs that loops compute, and where; an equation copies an input or a literal.

        Copies of what is going to be overwritten are made before that, copies over it after.
        """
        first: list[JaxprEqn] = []
        last: list[JaxprEqn] = []
        wanted: list[tuple[Var, Stored | None]] = []
        for out, into in zip(self.jaxpr.outvars, self.into, strict=True):
            place = into if isinstance(into, Stored) else None
            if isinstance(out, Var) and out not in self.env:
                wanted.append((out, place))
            elif place is not None and self.read(out).buffer is not place.buffer:
                wanted.append((Var(out.aval), place))
                copy = JaxprEqn((out,), (wanted[-1][0],), copy_p, {})
                (last if place.buffer in self.held else first).append(copy)
        self.jaxpr = self.jaxpr.replace(eqns=(*first, *self.jaxpr.eqns, *last))
        return wanted

    # -- places --------------------------------------------------------------------------------

    def _share_places(self) -> None:
        """Let a rule that changes its operands do so in place, if the old values are not read."""
        for writer in reversed(self.paths):
            for new in writer.outvars:
                for old in (writer.eqn.invars[k] for k in _may_change(writer, new)):
                    if (isinstance(old, Var) and old in self.makers and old not in self.places
                            and old.aval.shape and self._safe_in_place(new, {old})):
                        place = self._whole_place(new)
                        if self._safe_in_place(old, self.held.get(place.buffer, set())):
                            self.places[old] = [place]
                            break

    def _whole_place(self, v: Var) -> Stored:
        """A place that holds all of an output in one buffer of its own."""
        places = self.places.setdefault(v, [])
        if not any(place.whole for place in places):
            places.insert(0, Stored(self.b, self.b.temp(v.aval.shape, v.aval.dtype)))
        return next(place for place in places if place.whole)

    def _destination(self, v: Var, place: Stored) -> Stored:
        """Where loops store an output: in its place, or first elsewhere."""
        if self._safe_in_place(v, self.held.get(place.buffer, set())):
            return place
        temp = Stored(self.b, self.b.temp(place.shape, place.dtype))
        self.later.append((temp, place))
        return temp

    def _safe_in_place(self, new: Var, held: set[Var]) -> bool:
        """Whether everything that reads these values has done so when a new one takes their place.
        """
        # Each reader must be done, or beside the writer in one turn, or be the update itself.
        writer = self.makers[new]
        leaf, changes = self.paths[writer][-1], _may_change(writer, new)
        reads = {k for k, x in enumerate(writer.eqn.invars) if x in held}
        updates = (reads and reads.issubset(changes)
                   and held.intersection(writer.reads).issubset(writer.eqn.invars))
        for task in dict.fromkeys(task for v in held for task in self.readers.get(v, ())):
            aligned = all(p == identity(v.aval.shape) for v in held.intersection(task.reads)
                          for p in task.reads[v])
            beside = self.paths[task][-1] is leaf and leaf.kind in ("", "flat") and aligned
            if not (beside or self._before(task, writer) or (task is writer and updates)):
                return False
        return True

    def _before(self, task: Node, writer: Node) -> bool:
        """Whether a task is done before another begins."""
        return self.order[self.paths[task][0]] < self.order[self.paths[writer][0]]

    # -- values --------------------------------------------------------------------------------

    def _define_values(self) -> None:
        """An operand for every variable: stored, or computed where it is asked."""
        for eqn in self.jaxpr.eqns:
            for k, v in enumerate(eqn.outvars):
                if v in self.makers and not self.makers[v].opaque:
                    self._find_room(v, self.readers.get(v, []))
                self.env[v] = Computed(self.b, functools.partial(self._element, eqn, k),
                                       v.aval.shape, v.aval.dtype)

    def _element(self, eqn: JaxprEqn, k: int, index: tuple[Operand, ...]) -> Operand:
        """From memory, if it has a place: what reads it comes later, or in its turn of a loop."""
        v = eqn.outvars[k]
        if v in self.turn:
            return self.turn[v]
        return self.load(v, index) if self.places.get(v) else self.evaluate(eqn, index)[k]

    def load(self, v: Var, index: tuple[Operand, ...]) -> Operand:
        """An element of a stored value, from memory."""
        return self.places[v][0](self.at(v, index))

    def at(self, v: Var, index: tuple[Operand, ...]) -> Sequence[Operand]:
        """Where an element lies in the places of a value."""
        skip = self.skip.get(v, 0)
        return longer(index, v.aval.shape)[skip:] if skip else index

    def _find_room(self, v: Var, readers: Sequence[Node]) -> None:
        """Where nothing is said, a temp as small as the readers' loops allow, or none."""
        if self.places.get(v):
            return
        # An output without a place of its own is read when all loops have ended.
        path, outside = self.paths[self.makers[v]], v in self.places
        shared = () if outside else functools.reduce(
            _common, (self.paths[other] for other in readers), path)
        self.skip[v] = sum(nest.size is not None and not nest.kept for nest in shared)
        rest = longer(v.aval.shape, v.aval.shape)[self.skip[v]:]
        if rest and shared[-1:] != path[-1:]:
            buffer = self.b.temp(rest if self.skip[v] else v.aval.shape, v.aval.dtype)
            self.b.origin(buffer, v)
            self.places[v] = [Stored(self.b, buffer)]

    def in_memory(self, atom: Atom) -> Value:
        """The operand of a variable or literal; what has been stored whole, as its buffer."""
        x = self.read(atom)
        if x.shape and x.buffer is None and isinstance(atom, Var) and not self.skip.get(atom):
            return next(iter(self.places.get(atom, [])), x)
        return x

    # -- loops ---------------------------------------------------------------------------------

    def emit(self, nest: Nest, prefix: tuple[Operand, ...], alone: bool = True) -> Terms:
        """Emit a nest below the loops whose indices are `prefix`; what these reduce is returned.

        `alone`: not the whole body of a loop, so its lines stand over it and not over the loop.
        """
        terms: Terms = {}
        match nest.kind:
            case "opaque":
                self._emit_opaque(nest.tasks[0])
            case "tiled":
                self._squares(nest, prefix)
            case _ if nest.kept:
                self._columns(nest, prefix)
            case _ if nest.size is None:
                terms = self.leaf(nest.tasks, prefix, alone)
            case _:
                terms = self._loop(nest, prefix)
        for task in nest.tasks:
            for v in task.outvars:
                for place in self.places.get(v, []):
                    self.b.freeze(place.buffer)
        return terms

    def _loop(self, nest: Nest, prefix: tuple[Operand, ...]) -> Terms:
        """A loop over straight code or other nests, which may join terms of theirs to totals."""
        def turn(k: Operand) -> Terms:
            if nest.kind == "flat":
                return self.leaf(nest.tasks, (*prefix, *self.b.unravel(k, loops)))
            terms: Terms = {}
            for child in nest.children:
                terms |= self.emit(child, (*prefix, k), not nest.innermost)
            return terms

        loops = nest.tasks[0].loops[nest.depth:]
        if not nest.reduced:
            rows = any(self.skip.get(v, 0) > nest.depth and self.places.get(v)
                       for task in nest.tasks for v in task.outvars)
            with self.b.loop(nest.turns, vectorize="apart" if rows else "parallel") as i:
                turn(self.b.index(i))
            return {}
        inside = 1 if nest.kind == "flat" else max(
            math.prod(task.loops[nest.depth + 1:]) for task in nest.tasks)
        totals = self.b.join([task.probe.reduction.op for task in nest.reduced], nest.turns,
                             lambda k, _: list(map(turn(k).__getitem__, nest.reduced)), inside)
        terms = dict(zip(nest.reduced, totals, strict=True))
        self.leaf([task for task in terms if task.rank == nest.depth], prefix, totals=terms)
        return terms

    def _columns(self, nest: Nest, prefix: tuple[Operand, ...]) -> None:
        """What lies side by side in reductions, and what stands between them, in stretches."""
        b, kept, n = self.b, nest.kept, nest.turns
        rows = max(math.prod(task.loops[nest.depth:]) for task in nest.tasks) // n
        share = max(n // _SHARES // LANES, 1) * LANES
        size = n if n <= min(WIDTH, 2 * rows) or b.on_gpu else min(share, WIDTH, n)

        def stretch(_: Operand, start: Operand, width: int) -> None:
            def at(j: Operand) -> tuple[Operand, ...]:
                return *prefix, *b.unravel(b.add(start, j), kept)

            def columns(tasks: list[Node], extents: tuple[int, ...]) -> list:
                """What reductions make of their rows, of narrow ones of several side by side."""
                def terms(k: Operand, j: Operand) -> list[Operand]:
                    index = *at(j), *b.unravel(k, extents)
                    if beside > 1:
                        place = b.unravel(b.add(b.mul(k, n * beside), j), (*extents, *kept))
                        index = *prefix, *place[len(extents):], *place[:len(extents)]
                    return list(map(self.leaf(tasks, index).__getitem__, tasks))

                ops = [task.probe.reduction.op for task in tasks]
                beside = rows_beside(tasks, nest.depth) if width == n else 1
                sums = b.join(ops, math.prod(extents) // beside, terms, width=width * beside)
                return sums if beside == 1 else b.join(
                    ops, beside, lambda k, j: [b.at(x, b.add(b.mul(k, width), j)) for x in sums],
                    width=width)

            for child in nest.children:
                for loops in dict.fromkeys(task.loops for task in child.tasks):
                    tasks = [task for task in child.tasks if task.loops == loops]
                    extents = loops[nest.depth + len(kept):]
                    sums = columns(tasks, extents) if extents else []
                    with b.loop(width, vectorize="parallel") as j:
                        totals = {task: b.at(x, j) for task, x in zip(tasks, sums, strict=False)}
                        self.leaf(tasks, at(b.index(j)), totals=totals)

        b.in_blocks(n, size, stretch)

    def _squares(self, nest: Nest, prefix: tuple[Operand, ...]) -> None:
        """A loop and the last one inside of it, one square of their indices after the other: down a
        column each step touches a new cache line, which a square uses whole while it is near.

        What is asked for with these two the other way round is copied first, by lines of its own.
        """
        b, chain, env = self.b, nest.chain, self.env
        turns = [each.turns for each in chain]
        side, padded = (WARP, WARP + 1) if b.on_gpu else (TILE, PADDED)
        squares = [-(-turns[0] // side), *turns[1:-1], -(-turns[-1] // side)]
        with b.loop(math.prod(squares), vectorize="apart") as t:
            p, *middle, q = map(b.actual, b.unravel(b.index(t), squares))
            (first, rows), (start, columns) = (
                _stretch(b, p, turns[0], side), _stretch(b, q, turns[-1], side))

            def at(i: Operand, j: Operand) -> tuple[Operand, ...]:
                return (*prefix, b.add(first, i), *middle, b.add(start, j))

            def asked(v: Var, pattern: Pattern, loops: tuple[Operand, ...]) -> tuple:
                return b.within([loops[x] if kind == "axis" else x for kind, x in pattern],
                                v.aval.shape)

            tiles = {}
            for v, pattern in turned_reads(nest.depth, chain[-1]):
                tile = tiles[v, pattern] = b.temp((side, padded), v.aval.dtype, "tile")
                with b.square(columns, rows, side) as (j, i):
                    b.store(tile, (j, i), env[v](asked(v, pattern, at(i, j))))
            self.env = env | {v: Computed(b, env[v], env[v].shape, env[v].dtype) for v, _ in tiles}
            with b.square(rows, columns, side) as (i, j):
                loops = at(i, j)
                for (v, pattern), tile in tiles.items():
                    key = ("value", self.env[v], asked(v, pattern, loops))
                    b.remember(key, b.load(tile, (j, i)))
                for child in chain[-1].children:
                    self.emit(child, loops, alone=False)
            self.env = env

    def leaf(self, tasks: Sequence[Node], index: tuple[Operand, ...], alone: bool = False,
             totals: Mapping[Node, Operand] = {}) -> Terms:
        """Compute every task at one index, then store: what they read may change.

        Of a reduction it is one term, which is returned; or else what the total of all gives.
        """
        terms, stores = {}, []
        for task in tasks:
            at = self.whole(index, task.shape)
            with self._noting(task) if alone else nullcontext():
                if task.reduces and task not in totals:
                    _, _, extents, term, _ = self.apply(task.eqn, at)
                    terms[task] = term(*self.whole(index[task.rank:], extents))
                    continue
                found = self.evaluate(task.eqn, at, totals.get(task))
            for v, x in zip(task.outvars, found, strict=True):
                self.turn[v] = x
                self.b.remember(("value", self.env[v], at), x)  # for the next that asks
                stores += [(place, self.at(v, at), x) for place in self.places.get(v, [])]
        self.turn.clear()
        for place, where, x in stores:
            place.store(where, x)
        return terms

    def whole(self, loops: Iterable[Operand], shape: Sequence[int]) -> tuple[Operand, ...]:
        """The index in the turns of some loops: over an axis of length one there is none."""
        turns = iter(loops)
        return tuple(next(turns) if n != 1 else self.b.index(0) for n in shape)

    @contextmanager
    def _noting(self, task: Node) -> Iterator[None]:
        """Put the user's line over the first statement that is emitted meanwhile."""
        statements = self.b.scopes[-1].statements
        before = len(statements)
        self.noted = task.eqn
        yield
        self.noted = None
        if len(statements) > before:
            self.b.lines.setdefault(statements[before], note_of(task.eqn))

    def apply(self, eqn: JaxprEqn, index: tuple[Operand, ...]) -> Any:
        """What an equation's rule gives for one element."""
        if eqn is not self.noted:
            self.b.note(note_of(eqn))
        return eqn.primitive.element(self.b, index, *map(self.read, eqn.invars), **eqn.params)

    def evaluate(self, eqn: JaxprEqn, index: tuple[Operand, ...], total: Operand | None = None
                 ) -> list[Operand]:
        """One element of each output of an equation; once for each index in a scope.

        `total` is what a reduction's terms give, where it is known.
        """
        key = ("equation", self, eqn, index)
        found = self.b.find(key)
        if found is not None:
            return found
        result = self.apply(eqn, index)
        if isinstance(result, Reduction):
            if total is None:
                total = self.b.accumulate(result.op, result.extents, result.term)
            result = result.finish(total)
        found = list(result) if isinstance(result, list | tuple) else [result]
        found = [self.b.actual(self.b.index(x)) for x in found]
        for v, x in zip(eqn.outvars, found, strict=True):
            if x.dtype != v.aval.dtype:
                raise TypeError(f"the element rule of '{eqn.primitive.name}' gives {x.dtype} "
                                f"for {v.aval.str_short(True)}")
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
        values = [self.in_memory(atom) for atom in eqn.invars]
        given = [b.materialize(x) for x in values] if task.kind == "library" else values
        anywhere = getattr(task.rule, "anywhere", False)
        outputs = [self.places[v][0] if anywhere and self.places.get(v) else self._whole_place(v)
                   for v in eqn.outvars]
        for v, out in zip(eqn.outvars, outputs, strict=True):
            b.origin(out.buffer, v)
            b.touch(out.buffer)  # it may hold the operand that the rule is going to change
        begun = len(b.scopes[-1].statements)
        with self._noting(task):
            task.rule(b, outputs if anywhere else [out.buffer for out in outputs], given,
                      **eqn.params)
        for statement in b.scopes[-1].statements[begun:]:
            b.loops.setdefault(statement, note_of(eqn))
        for v, out in zip(eqn.outvars, outputs, strict=True):
            b.freeze(out.buffer)
            self.env[v] = Stored(b, out.buffer, out.prefix, out.suffix)
            for place in self.places[v]:
                if place is not out:
                    b.copy(out, place)

    # -- cells ---------------------------------------------------------------------------------

    def _write_cells(self, results: Sequence[Value]) -> None:
        """Change the cells at last, scalars and arrays, when all their new values are known."""
        scalars = [(variable, x(())) for variable, x in zip(self.into, results, strict=True)
                   if isinstance(variable, Variable)]
        for variable, x in scalars:
            self.b.assign(variable, x)
        for source, target in self.later:
            self.b.freeze(source.buffer)
            self.b.copy(source, target)


class NestingBuilder(ProgramBuilder):
    """The builder that also lowers programs inside of a program."""

    def jaxpr(self, closed: ClosedJaxpr, args: Sequence[Any],
              into: Sequence[Destination] | None = None) -> list[Value]:
        """Lower a nested program here.

        `into` says for each output where it goes: a buffer, a view, a cell, or None for a
        place of the builder's choice. All cells change together, after everything is read.
        """
        closed = simplify(closed)
        consts = [self.constant(buffer_of(c)) for c in closed.consts]
        places = into if into is not None else [None] * len(closed.jaxpr.outvars)
        return Run(self, closed.jaxpr, [*consts, *map(self.value, args)], places).run()


def lower_to_kernel(closed: ClosedJaxpr, name: str, on_gpu: bool = False) -> Kernel:
    """The loop tree of a whole program.

    Raises:
      NotImplementedError: for an equation that has no lowering rule; names the user's line.
    """
    b, jaxpr = NestingBuilder(), simplify(closed).jaxpr
    b.on_gpu = on_gpu
    args, into = _passed(b, "input", closed.in_avals), _passed(b, "output", closed.out_avals)
    b.jaxpr(closed, args, into=into)
    for x, v in zip((*args, *into), (*jaxpr.invars, *jaxpr.outvars), strict=True):
        b.origin(x.buffer, v)
    inputs, outputs = (tuple(dict.fromkeys(x.buffer for x in each)) for each in (args, into))
    body = tuple(b.scopes[0].statements)
    offsets, size = layout(b.temps, body)
    notes = {"jaxpr": jaxpr, "origins": b.origins, "others": b.others, "lines": b.lines,
             "finals": b.finals, "loops": b.loops}
    return Kernel(name, inputs, outputs, tuple(b.constants), tuple(offsets), size, offsets, body,
                  notes)


def _passed(b: NestingBuilder, role: str, avals: Sequence[ShapedArray]) -> list[Stored]:
    """What is passed to a kernel, or by it: of complex numbers both parts, which lie side by side.
    """
    found = []
    for k, aval in enumerate(map(physical_aval, avals)):
        shape, parts = ((*aval.shape, 2), [(0,), (1,)]) if is_complex(aval) else (aval.shape, [()])
        buffer = Buffer(f"{role.removesuffix('put')}{k}", real_dtype(aval.dtype), shape, role)
        found += [Stored(b, buffer, suffix=part) for part in parts]
    return found
