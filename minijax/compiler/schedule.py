"""From a jaxpr to loops: emits the loop nests that nests.py planned.

Builds on nests.py, operands.py and simplify.py. Chapter 23.
In XLA: the emitters of fused computations; in JAX: `mlir.jaxpr_subcomp`.
"""

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from minijax import config
from minijax.core import Avals, physical_aval
from minijax.core.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from minijax.primitives.algebra import is_complex
from minijax.primitives.convert import copy_p
from minijax.primitives.slots import Reduction, real_dtype

from .builder import LANES
from .digest import Unnameable
from .duplicates import expanded
from .equal_nests import NestKey, repeating
from .fusion import Node, choose_tasks
from .kernels.reductions import with_windows
from .loops import Buffer, Index, Kernel, Operand, Variable
from .memory import layout
from .nests import Nest, build_nests, paths, rows_per_vector, transposed_reads
from .probe import Pattern, identity, note_of, sizes, squeezed
from .operands import Computed, ProgramBuilder, Stored, Value
from .simplify import buffer_of, simplify

# The width of a strip of columns, whose sums stay in the L1 cache; and the number of strips for
# threads to share, unless they share blocks of rows.
STRIP_WIDTH, _STRIPS = 4096, 16
TILE = 64     # the side of a tile, which stays in the cache; its rows are padded by one element, so
WARP = 32     # that a column does not map to one cache set; and the side on a GPU

Terms = dict[Node, Operand]  # of reductions, in one iteration of their common loops
Destination = Buffer | Stored | Variable | None  # of an output of a nested program


def _sides(m: int, n: int) -> tuple[int, int]:
    """The sides of a tile on a GPU: longer along one axis if the other is short."""
    short = min(1 << (min(m, n) - 1).bit_length(), WARP)
    long = WARP * WARP // short
    return (short, long) if m < n else (long, short)


def _common(x: tuple[Nest, ...], y: tuple[Nest, ...]) -> tuple[Nest, ...]:
    return tuple(nest for nest in x if nest in y)


def _overwritten(task: Node, output: Var) -> Sequence[int]:
    """The operands whose memory an output of a task may overwrite."""
    return task.eqn.primitive.in_place(task.outvars.index(output), **task.eqn.params)


def _in_order(tasks: Sequence[Node]) -> bool:
    """Whether the terms of a reduction among tasks have an order."""
    return any(task.probe.reduction.in_order for task in tasks)


class Lowering:
    """The lowering of one program."""

    def __init__(self, b: ProgramBuilder, jaxpr: Jaxpr, args: Sequence[Value],
                 into: Sequence[Destination]) -> None:
        self.b, self.jaxpr = b, jaxpr
        self.env: dict[Var, Value] = dict(zip((*jaxpr.constvars, *jaxpr.invars), args, strict=True))
        self.into = [Stored(b, x) if isinstance(x, Buffer) else x for x in into]
        self.noted_eqn: JaxprEqn | None = None  # the equation whose line is printed already
        self.storage: dict[Var, list[Stored]] = {}
        # Values of the current iteration: fused tasks read only these, whatever their index is,
        # since stores come at the end of the iteration.
        self.current: dict[Var, Operand] = {}
        self.skip: dict[Var, int] = {}  # leading axes without storage: loops around all readers
        self.final_copies: list[tuple[Stored, Stored]] = []
        self.values_in: dict[Buffer | None, set[Var]] = {}  # of each buffer, at the beginning
        for v, x in self.env.items():
            self.values_in.setdefault(x.buffer, set()).add(v)
            if x.buffer is not None:
                b.freeze(x.buffer)

    def run(self) -> list[Value]:
        destinations = self._with_copies()
        self.nests = build_nests(choose_tasks(self.jaxpr.eqns, [v for v, _ in destinations]))
        self.paths = dict(paths(self.nests))
        self.producers = {v: task for task in self.paths for v in task.outvars}
        self.equations = {v: eqn for eqn in self.jaxpr.eqns for v in eqn.outvars}
        self.order = {nest: position for position, nest in enumerate(self.nests)}
        self.readers: dict[Var, list[Node]] = {}
        for task in self.paths:
            for v in task.reads:
                self.readers.setdefault(v, []).append(task)
        for v, place in destinations:
            self.storage.setdefault(v, []).extend(
                [] if place is None else [self._destination(v, place)])
        self._share_storage()
        self._define_values()
        repeats = repeating(self.nests) if len(self.b.scopes) == 1 else ()
        for nest in self.nests:
            (self._emit_once if nest in repeats else self.emit)(nest, ())
        results = [self.in_memory(out) for out in self.jaxpr.outvars]
        # Mutable cells change at the end, when all new values are computed.
        scalars = [(variable, x(())) for variable, x in zip(self.into, results, strict=True)
                   if isinstance(variable, Variable)]
        for variable, x in scalars:
            self.b.assign(variable, x)
        for source, target in self.final_copies:
            self.b.freeze(source.buffer)
            self.b.copy(source, target)
        return results

    def _with_copies(self) -> list[tuple[Var, Stored | None]]:
        """The outputs that loops compute, and their destinations; an input or a literal is copied
        by an equation.

        Copies from memory that will be overwritten come first, copies into it last.
        """
        first: list[JaxprEqn] = []
        last: list[JaxprEqn] = []
        destinations: list[tuple[Var, Stored | None]] = []
        for out, into in zip(self.jaxpr.outvars, self.into, strict=True):
            place = into if isinstance(into, Stored) else None
            if isinstance(out, Var) and out not in self.env:
                destinations.append((out, place))
            elif place is not None and self.read(out).buffer is not place.buffer:
                destinations.append((Var(out.aval), place))
                copy = JaxprEqn([out], [destinations[-1][0]], copy_p, {})
                (last if place.buffer in self.values_in else first).append(copy)
        self.jaxpr = self.jaxpr.replace(eqns=(*first, *self.jaxpr.eqns, *last))
        return destinations

    # -- storage -------------------------------------------------------------------------------

    def _share_storage(self) -> None:
        """Let a rule update its operands in place, if their old values are dead."""
        for writer in reversed(self.paths):
            for output in writer.outvars:
                for operand in (writer.eqn.invars[k] for k in _overwritten(writer, output)):
                    if (isinstance(operand, Var) and operand in self.producers
                            and operand not in self.storage and operand.aval.shape
                            and self._safe_in_place(output, {operand})):
                        place = self._whole_storage(output)
                        if self._safe_in_place(operand, self.values_in.get(place.buffer, set())):
                            self.storage[operand] = [place]
                            break

    def _whole_storage(self, v: Var) -> Stored:
        """A destination with all of an output in one buffer of its own."""
        storage = self.storage.setdefault(v, [])
        if not any(place.whole for place in storage):
            storage.insert(0, Stored(self.b, self.b.temp(v.aval.shape, v.aval.dtype)))
        return next(place for place in storage if place.whole)

    def _destination(self, v: Var, place: Stored) -> Stored:
        """Where loops store an output: directly, or in a temp that is copied at the end."""
        if self._safe_in_place(v, self.values_in.get(place.buffer, set())):
            return place
        temp = Stored(self.b, self.b.temp(place.shape, place.dtype))
        self.final_copies.append((temp, place))
        return temp

    def _safe_in_place(self, output: Var, values: set[Var]) -> bool:
        """Whether all readers of these values are done when a new value overwrites them."""
        # Each reader must be done, or read in the writer's iteration, or be the update itself.
        writer = self.producers[output]
        leaf, changes = self.paths[writer][-1], _overwritten(writer, output)
        reads = {k for k, x in enumerate(writer.eqn.invars) if x in values}
        updates = (reads and reads.issubset(changes)
                   and values.intersection(writer.reads).issubset(writer.eqn.invars))
        for task in dict.fromkeys(task for v in values for task in self.readers.get(v, ())):
            aligned = all(p == identity(v.aval.shape)
                          for v in values.intersection(task.reads) for p in task.reads[v])
            same_iteration = self.paths[task][-1] is leaf and leaf.kind in ("", "flat") and aligned
            if not (same_iteration or self._before(task, writer) or (task is writer and updates)):
                return False
        return True

    def _before(self, task: Node, writer: Node) -> bool:
        """Whether a task ends before another begins."""
        return self.order[self.paths[task][0]] < self.order[self.paths[writer][0]]

    # -- values --------------------------------------------------------------------------------

    def _define_values(self) -> None:
        """An operand for every variable: stored, or computed where it is used."""
        for eqn in self.jaxpr.eqns:
            for k, v in enumerate(eqn.outvars):
                if v in self.producers and not self.producers[v].opaque:
                    self._allocate(v, self.readers.get(v, []))
                self.env[v] = Computed(self.b, functools.partial(self._element, eqn, k),
                                       v.aval.shape, v.aval.dtype)

    def _element(self, eqn: JaxprEqn, k: int, index: tuple[Operand, ...]) -> Operand:
        """An element from memory, if it is stored: its readers come later, or are in the same
        iteration.
        """
        v = eqn.outvars[k]
        if v in self.current:
            return self.current[v]
        return self.load(v, index) if self.storage.get(v) else self.evaluate(eqn, index)[k]

    def load(self, v: Var, index: tuple[Operand, ...]) -> Operand:
        """An element of a stored value, from memory."""
        return self.storage[v][0](self.at(v, index))

    def at(self, v: Var, index: tuple[Operand, ...]) -> Sequence[Operand]:
        """The index of an element in the storage of a value."""
        skip = self.skip.get(v, 0)
        return squeezed(index, v.aval.shape)[skip:] if skip else index

    def _allocate(self, v: Var, readers: Sequence[Node]) -> None:
        """Allocate a temp without the axes of the loops shared with its readers; no temp if they
        share all.
        """
        if self.storage.get(v):
            return
        # An output without a destination is read after all loops.
        path, outside = self.paths[self.producers[v]], v in self.storage
        shared = () if outside else functools.reduce(
            _common, (self.paths[other] for other in readers), path)
        self.skip[v] = sum(nest.size is not None and not nest.column_axes for nest in shared)
        rest = sizes(v.aval.shape)[self.skip[v]:]
        if rest and path[-1] not in shared:
            buffer = self.b.temp(rest if self.skip[v] else v.aval.shape, v.aval.dtype)
            self.b.origin(buffer, v)
            self.storage[v] = [Stored(self.b, buffer)]

    def in_memory(self, atom: Atom) -> Value:
        """The operand of a variable or literal; for a value that is stored whole, its buffer."""
        x = self.read(atom)
        if x.shape and x.buffer is None and isinstance(atom, Var) and not self.skip.get(atom):
            return next(iter(self.storage.get(atom, [])), x)
        return x

    # -- loops ---------------------------------------------------------------------------------

    def _emit_once(self, nest: Nest, prefix: tuple[Operand, ...]) -> None:
        """Emit a nest outside of loops, as duplicates of an earlier one that is equal."""
        for task in nest.tasks:
            if task.opaque:
                self._outputs(task)
            if getattr(task.rule, "anywhere", False):
                self._store_operands(task)
        try:
            key = NestKey(self, nest)
        except Unnameable:
            self.emit(nest, prefix)
            return
        if self.b.once((key.words,), [*key.buffers], lambda: self.emit(nest, prefix),
                       [*key.variables]):
            for place in (x for v in key.own for x in self.storage.get(v, [])):
                self.b.invalidate(place.buffer)
                self.b.freeze(place.buffer)

    def emit(self, nest: Nest, prefix: tuple[Operand, ...], alone: bool = True) -> Terms:
        """Emit a nest inside the loops with indices `prefix`; returns the terms of their
        reductions.

        `alone`: not the whole body of a loop, so comments stand over the statement, not over the
        loop.
        """
        terms: Terms = {}
        match nest.kind:
            case "opaque":
                self._emit_opaque(nest.tasks[0])
            case "tiled":
                self._tiles(nest, prefix)
            case _ if nest.column_axes:
                self._columns(nest, prefix)
            case _ if nest.size is None:
                terms = self.leaf(nest.tasks, prefix, alone)
            case _:
                terms = self._loop(nest, prefix)
        for task in nest.tasks:
            for v in task.outvars:
                for place in self.storage.get(v, []):
                    self.b.freeze(place.buffer)
        return terms

    def _loop(self, nest: Nest, prefix: tuple[Operand, ...]) -> Terms:
        """A loop over straight code or nests; their terms may be reduced."""
        def iteration(k: Operand) -> Terms:
            if nest.kind == "flat":
                return self.leaf(nest.tasks, (*prefix, *self.b.unravel(k, loops)))
            terms: Terms = {}
            for child in nest.children:
                terms |= self.emit(child, (*prefix, k), not nest.innermost)
            return terms

        loops = nest.tasks[0].loops[nest.depth:]
        if not nest.reduced:
            rows = any(self.skip.get(v, 0) > nest.depth and self.storage.get(v)
                       for task in nest.tasks for v in task.outvars)
            with self.b.loop(nest.trip_count, vectorize="apart" if rows else "parallel") as i:
                iteration(i)
            return {}
        inside = 1 if nest.kind == "flat" else max(
            math.prod(task.loops[nest.depth + 1:]) for task in nest.tasks)
        totals = self.b.reduce(
            [task.probe.reduction.op for task in nest.reduced], nest.trip_count,
            lambda k, _: list(map(iteration(k).__getitem__, nest.reduced)), inside,
            in_order=_in_order(nest.reduced))
        terms = dict(zip(nest.reduced, totals, strict=True))
        self.leaf([task for task in terms if task.rank == nest.depth], prefix, totals=terms)
        return terms

    def _columns(self, nest: Nest, prefix: tuple[Operand, ...]) -> None:
        """Reductions down columns, and element-wise code between them, in strips of columns."""
        b, column_axes, n = self.b, nest.column_axes, nest.trip_count
        rows = max(math.prod(task.loops[nest.depth:]) for task in nest.tasks) // n
        share = max(n // _STRIPS // LANES, 1) * LANES
        size = n if n <= min(STRIP_WIDTH, 2 * rows) or b.on_gpu else min(share, STRIP_WIDTH, n)

        def strip(_: Operand, start: Operand, width: int) -> None:
            def at(j: Operand) -> tuple[Operand, ...]:
                return *prefix, *b.unravel(b.add(start, j), column_axes)

            def columns(tasks: list[Node], extents: tuple[int, ...]) -> list:
                """The totals of reductions over rows; several narrow rows are packed into one."""
                def terms(k: Operand, j: Operand) -> list[Operand]:
                    index = *at(j), *b.unravel(k, extents)
                    if packed > 1:
                        place = b.unravel(b.ravel((k, j), (count // packed, n * packed)),
                                          (*extents, *column_axes))
                        index = *prefix, *place[len(extents):], *place[:len(extents)]
                    return list(map(self.leaf(tasks, index).__getitem__, tasks))

                ops = [task.probe.reduction.op for task in tasks]
                in_order = _in_order(tasks)
                packed = rows_per_vector(tasks, nest.depth) if width == n and not in_order else 1
                count = math.prod(extents)
                sums = b.reduce(ops, count // packed, terms, width=width * packed,
                                in_order=in_order)
                return sums if packed == 1 else b.reduce(
                    ops, packed, lambda k, j: [b.at(x, b.add(b.mul(k, width), j)) for x in sums],
                    width=width)

            for child in nest.children:
                for loops in dict.fromkeys(task.loops for task in child.tasks):
                    tasks = [task for task in child.tasks if task.loops == loops]
                    extents = loops[nest.depth + len(column_axes):]
                    sums = columns(tasks, extents) if extents else []
                    with b.loop(width, vectorize="parallel") as j:
                        totals = {task: b.at(x, j) for task, x in zip(tasks, sums, strict=False)}
                        self.leaf(tasks, at(j), totals=totals)

        b.in_blocks(n, size, strip)

    def _tiles(self, nest: Nest, prefix: tuple[Operand, ...]) -> None:
        """A tiled transpose: down a column each access touches another cache line, which a tile
        uses whole while it is cached.

        Operands that are read transposed are copied to a tile first, in the order of their lines.
        """
        b, chain, env = self.b, nest.chain, self.env
        first_count, *middle_counts, last_count = (each.trip_count for each in chain)
        height, width = _sides(first_count, last_count) if b.on_gpu else (TILE, TILE)
        tile_grid = [-(-first_count // height), *middle_counts, -(-last_count // width)]
        with b.loop(math.prod(tile_grid), vectorize="apart") as t:
            tile_row, *middle, tile_column = b.divided(t, tile_grid)
            first, rows = b.strip(tile_row, first_count, height)
            start, columns = b.strip(tile_column, last_count, width)

            def at(i: Operand, j: Operand) -> tuple[Operand, ...]:
                return (*prefix, b.add(first, i), *middle, b.add(start, j))

            def element_index(v: Var, pattern: Pattern, loops: tuple[Operand, ...]) -> tuple:
                index = (loops[x] if kind == "axis" else x for kind, x in pattern.terms)
                return b.within(b.whole(index, v.aval.shape), v.aval.shape)

            tiles = {}
            for v, pattern in transposed_reads(nest.depth, chain[-1]):
                tile = tiles[v, pattern] = b.temp((width, height + 1), v.aval.dtype, "tile")
                with b.rectangle(columns, rows, (width, height)) as (j, i):
                    b.store(tile, (j, i), env[v](element_index(v, pattern, at(i, j))))
            self.env = env | {v: Computed(b, env[v], env[v].shape, env[v].dtype) for v, _ in tiles}
            with b.rectangle(rows, columns, (height, width)) as (i, j):
                loops = at(i, j)
                for (v, pattern), tile in tiles.items():
                    key = ("value", self.env[v], element_index(v, pattern, loops))
                    b.remember(key, b.load(tile, (j, i)))
                for child in chain[-1].children:
                    self.emit(child, loops, alone=False)
            self.env = env

    def leaf(self, tasks: Sequence[Node], index: tuple[Operand, ...], alone: bool = False,
             totals: Mapping[Node, Operand] = {}) -> Terms:
        """Compute every task at one index, then store: stores may overwrite what tasks read.

        For a reduction it returns one term; with the total in `totals` it finishes the reduction.
        """
        terms, stores = {}, []
        for task in tasks:
            at = self.b.whole(index, task.shape)
            with self._noting(task) if alone else nullcontext():
                if task.reduces and task not in totals:
                    _, _, extents, term, *_ = self.apply(task.eqn, at)
                    terms[task] = term(*self.b.whole(index[task.rank:], extents))
                    continue
                results = self.evaluate(task.eqn, at, totals.get(task))
            for v, x in zip(task.outvars, results, strict=True):
                self.current[v] = x
                self.b.remember(("value", self.env[v], at), x)  # for fused readers
                stores += [(place, self.at(v, at), x) for place in self.storage.get(v, [])]
        self.current.clear()
        for place, where, x in stores:
            place.store(where, x)
        return terms

    @contextmanager
    def _noting(self, task: Node) -> Iterator[None]:
        """Attach the user's line to the first statement that the body emits."""
        statements = self.b.scopes[-1].statements
        before = len(statements)
        self.noted_eqn = task.eqn
        yield
        self.noted_eqn = None
        if len(statements) > before:
            self.b.lines.setdefault(statements[before], note_of(task.eqn))

    def apply(self, eqn: JaxprEqn, index: tuple[Operand, ...]) -> Any:
        """The result of an equation's rule for one element."""
        if eqn is not self.noted_eqn:
            self.b.note(note_of(eqn))
        return eqn.primitive.element(self.b, index, *map(self.read, eqn.invars), **eqn.params)

    def evaluate(self, eqn: JaxprEqn, index: Index, total: Operand | None = None) -> list[Operand]:
        """One element of each output of an equation, cached for each index in a scope.

        `total` is the total of a reduction's terms, if it is known.
        """
        key = ("equation", self, eqn, index)
        elements = self.b.lookup(key)
        if elements is not None:
            return elements
        result = self.apply(eqn, index)
        if isinstance(result, Reduction):
            if total is None:
                total = self.b.accumulate(result.op, result.extents, result.term, result.in_order)
            result = result.finish(total)
        elements = list(result) if isinstance(result, list | tuple) else [result]
        elements = [self.b.actual(self.b.index(x)) for x in elements]
        for v, x in zip(eqn.outvars, elements, strict=True):
            if x.dtype != v.aval.dtype:
                raise TypeError(f"the element rule of '{eqn.primitive.name}' gives {x.dtype} "
                                f"for {v.aval.str_short(True)}")
            self.b.origin(x, v)
        self.b.remember(key, elements)
        return elements

    def read(self, atom: Atom) -> Value:
        """The operand of a variable or literal."""
        if isinstance(atom, Literal):
            return self.b.constant(buffer_of(atom.value))
        return self.env[atom]

    # -- opaque rules --------------------------------------------------------------------------

    def _outputs(self, task: Node) -> list[Stored]:
        """Where an opaque rule stores its results."""
        anywhere = getattr(task.rule, "anywhere", False)
        outputs = [self.storage[v][0] if anywhere and self.storage.get(v)
                   else self._whole_storage(v) for v in task.outvars]
        for v, out in zip(task.outvars, outputs, strict=True):
            self.b.origin(out.buffer, v)
            self.env[v] = Stored(self.b, out.buffer, out.prefix, out.suffix)
        return outputs

    def _store_operands(self, task: Node) -> None:
        """Store the operands of a long rule that is repeated: what computes them may differ."""
        for v in task.eqn.invars:
            if isinstance(v, Var) and self.in_memory(v).buffer is None and any(
                    isinstance(x, Var) for x in self.equations[v].invars):
                self.env[v] = Stored(self.b, self.b.materialize(self.env[v]))

    def _emit_opaque(self, task: Node) -> None:
        eqn, b, outputs = task.eqn, self.b, self._outputs(task)
        values = [self.in_memory(atom) for atom in eqn.invars]
        operands = [b.materialize(x) for x in values] if task.kind == "library" else values
        for out in outputs:
            b.invalidate(out.buffer)  # it may hold the operand that the rule is going to change
        start = len(b.scopes[-1].statements)
        anywhere = getattr(task.rule, "anywhere", False)
        with self._noting(task):  # from here: nested programs need each frame
            task.rule(b, outputs if anywhere else [out.buffer for out in outputs], operands,
                      **eqn.params)
        for statement in b.scopes[-1].statements[start:]:
            b.loops.setdefault(statement, note_of(eqn))
        for v, out in zip(eqn.outvars, outputs, strict=True):
            b.freeze(out.buffer)
            for place in self.storage[v]:
                if place is not out:
                    b.copy(out, place)


class NestingBuilder(ProgramBuilder):
    """The builder that also lowers nested programs."""

    def jaxpr(self, closed: ClosedJaxpr, args: Sequence[Any],
              into: Sequence[Destination] | None = None) -> list[Value]:
        """Lower a nested program here.

        `into` has a destination for each output: a buffer, a view, a cell, or None for one of the
        builder's choice. All cells change together, after everything is read.
        """
        closed = simplify(closed)
        if not self.on_gpu:
            closed = with_windows(closed)
        consts = [self.constant(buffer_of(c)) for c in closed.consts]
        destinations = into if into is not None else [None] * len(closed.jaxpr.outvars)
        return Lowering(self, closed.jaxpr, [*consts, *map(self.value, args)], destinations).run()


@config.disable_jit(False)  # loops of rules stay loops, whatever the caller runs in Python
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
             "rounded": b.rounded_products, "finals": b.finals, "loops": b.loops,
             "variables": b.variables}
    kernel = Kernel(name, inputs, outputs, tuple(b.constants), tuple(offsets), size, offsets, body,
                    notes)
    return expanded(kernel) if on_gpu else kernel


def _passed(b: NestingBuilder, role: str, avals: Avals) -> list[Stored]:
    """The arguments of a kernel, inputs or outputs; the parts of a complex array share a buffer."""
    arguments = []
    for k, aval in enumerate(map(physical_aval, avals)):
        shape, parts = ((*aval.shape, 2), [(0,), (1,)]) if is_complex(aval) else (aval.shape, [()])
        buffer = Buffer(f"{role.removesuffix('put')}{k}", real_dtype(aval.dtype), shape, role)
        arguments += [Stored(b, buffer, suffix=part) for part in parts]
    return arguments
