"""A program over whole arrays as one over the blocks of each rank, with its communication.

Runs below all transformations, when a program is compiled.  Builds on `aligned` and `moves`.
Chapter 11, *Named axes and many devices*.  In JAX: XLA's partitioner.
"""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from minijax import core
from minijax.core import Array, ArrayImpl, Avals, Params, Primitive, dce
from minijax.custom.remat import eval_jaxpr_with
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, subjaxprs
from minijax.core.tracing import stage, stage_with_aux
from minijax.placement.across import Grid, Names
from minijax.placement.aligned import CHOSEN, Aligned
from minijax.placement.carried_sums import with_own_sums
from minijax.placement.joined import with_joined_reductions
from minijax.placement.moves import Block, Gather, Layout, Moves, whole
from minijax.primitives.ad_util import batch_elementwise
from minijax.primitives.layouts import Alignment, OnBlocks, elementwise, on_blocks
from minijax.sharp_bits.findings import finding, report, sharp_bits
from minijax.util import context

LARGEST_FOLDED = 4096  # elements of a table of indices that is computed now
LARGE_GATHER = 1 << 20  # bytes, of which a check of silent traps tells


Layouts = Sequence[Layout | None]  # None where it is left open


class Partitioned(NamedTuple):
    """A program over blocks.

    Args:
      jaxpr: takes and returns blocks.
      layouts_in: those of its inputs.
      layouts_out: those of its results.
      gathers: what each call moves only because an operation needs an axis whole.
    """

    jaxpr: ClosedJaxpr
    layouts_in: list[Layout]
    layouts_out: list[Layout]
    gathers: list[Gather]


def partition(closed: ClosedJaxpr, mesh: Any, layouts_in: Layouts,
              layouts_out: Layouts | None = None) -> Partitioned:
    """A program over whole arrays as one over the blocks of each rank.

    Args:
      closed: the program.
      mesh: a mesh; the numbers of its devices are those of ranks.
      layouts_in: for each input, and each of its axes, the mesh axes that cut it; None for one that
        the partitioner chooses.
      layouts_out: likewise of the outputs.

    Raises:
      ValueError: for an axis that its mesh axes do not cut evenly.
    """
    partitioner = Partitioner(Grid.of(mesh))
    known = [((),) * aval.ndim if layout is None else layout
             for layout, aval in zip(layouts_in, closed.in_avals, strict=True)]
    if None in layouts_in:
        uses = partitioner.uses_of_inputs(closed, known, layouts_out)
        known = [use if own is None else own for own, use in zip(layouts_in, uses, strict=True)]
    layouts_out = layouts_out or partitioner.kept(closed, known)
    program, layouts = partitioner.program(closed, known, layouts_out)
    gathers = list(dict.fromkeys(partitioner.gathers_of[program]))
    if sharp_bits.value:
        for gather in gathers:
            report_gather(gather)
    return Partitioned(program, known, layouts, gathers)


def report_gather(gather: Gather) -> None:
    """Report a large gather that is a limit of its operation."""
    if gather.bytes >= LARGE_GATHER and CHOSEN not in gather.why and (
            gather.operation != "sharding_constraint"):  # which the user asks for
        report(finding("gathers", f"{gather.operation} {gather.message}.",
                       "Cut the array along another axis before, by with_sharding_constraint.",
                       gather.source))


class Record(NamedTuple):
    """One run over a program: the layouts of its values, those in which equations took them, and
    those that results keep.
    """

    layouts: dict[Var, Layout]
    taken: dict[JaxprEqn, tuple[list[Layout], Aligned | None]]
    kept: dict[Var, Layout]


# A program over blocks; the layouts of its results; those in which inputs are used; those that its
# results would keep.
Staged = tuple[ClosedJaxpr, list[Layout], list[Layout], list[Layout]]


class Partitioner(Moves):
    """Rewrites programs for the ranks of a grid."""

    def __init__(self, grid: Grid):
        super().__init__(grid)
        self._programs: dict[Any, Staged] = {}
        self.gathers_of: dict[ClosedJaxpr, list[Gather]] = {}
        self.record = Record({}, {}, {})
        self.uses: dict[Var, Layout] = {}

    # ── Programs ─────────────────────────────────────────────────────────────────────────────

    def program(self, closed: ClosedJaxpr, layouts_in: Sequence[Layout],
                layouts_out: Layouts | None = None) -> tuple[ClosedJaxpr, list[Layout]]:
        """A program over blocks, and the layouts of its results."""
        program, layouts, *_ = self._partitioned(closed, layouts_in, layouts_out)
        return self.joined(program), layouts

    def loop_body(self, body: ClosedJaxpr, layouts_in: Sequence[Layout],
                  layouts_out: Layouts, num_consts: int, num_carry: int,
                  sums_after: bool) -> tuple[ClosedJaxpr, list[Layout], list[Names]]:
        """The same of a loop's body; and along which mesh axes its results are summed after it."""
        program, layouts, *_ = self._partitioned(body, layouts_in, layouts_out)
        own, names = (with_own_sums(program, layouts, num_consts, num_carry) if sums_after else
                      (program, []))
        self.gathers_of[own] = self.gathers_of[program]
        return self.joined(own), layouts, names

    def joined(self, program: ClosedJaxpr) -> ClosedJaxpr:
        """A program over blocks with its small reductions joined."""
        joined: ClosedJaxpr = program.derived(("joined",), lambda: with_joined_reductions(program))
        self.gathers_of[joined] = self.gathers_of[program]
        return joined

    def uses_of_inputs(self, closed: ClosedJaxpr, layouts_in: Sequence[Layout],
                       layouts_out: Layouts | None) -> list[Layout]:
        """The layout in which the program uses each input, if it is one; else its own."""
        return self._partitioned(closed, layouts_in, layouts_out)[2]

    def kept(self, closed: ClosedJaxpr, layouts_in: Sequence[Layout]) -> list[Layout]:
        """The layouts of the results, which keep cuts of operands that were needed whole."""
        return self._partitioned(closed, layouts_in, None)[3]

    def _partitioned(self, closed: ClosedJaxpr, layouts_in: Sequence[Layout],
                     layouts_out: Layouts | None) -> Staged:
        """Staged twice: the second time, results are made in the layouts in which they are used."""
        layouts_out = tuple(layouts_out or [None] * len(closed.out_avals))
        key = closed, tuple(layouts_in), layouts_out
        if key in self._programs:
            return self._programs[key]
        flat = closed.derived(("flat",), lambda: flattened(closed))
        program, layouts, record = self._staged(flat, layouts_in, layouts_out, {})
        used = layouts_used(flat.jaxpr, record, layouts_out)
        uses = {v: layout for v, some in used.items()
                if (layout := only(some)) and adds_axes(layout, record.layouts[v])}
        if uses:
            program, layouts, record = self._staged(flat, layouts_in, layouts_out, uses)
            used = layouts_used(flat.jaxpr, record, layouts_out)
        in_use = [only(used.get(v, ())) or own
                  for v, own in zip(flat.jaxpr.invars, layouts_in, strict=True)]
        kept = [record.kept.get(v, own) if isinstance(v, Var) else own
                for v, own in zip(flat.jaxpr.outvars, layouts, strict=True)]
        return self._programs.setdefault(key, (program, layouts, in_use, kept))

    def _staged(self, flat: ClosedJaxpr, layouts_in: Sequence[Layout], layouts_out: Layouts,
                uses: dict[Var, Layout]) -> tuple[ClosedJaxpr, list[Layout], Record]:
        avals = list(map(self.local, flat.in_avals, layouts_in))

        def of_blocks(*values: Array) -> tuple[list[Array], list[Layout]]:
            blocks = self._run(flat, list(map(Block, values, layouts_in)))
            blocks = [x if layout is None else self.relayout(x, layout, "a result has that layout")
                      for x, layout in zip(blocks, layouts_out, strict=True)]
            self.moved.clear()
            for _, aligned in self.record.taken.values():
                if aligned:
                    aligned.blocks.clear()  # no tracer may outlive its trace
            return [x.value for x in blocks], [x.layout for x in blocks]
        outer = self.moved, self.uses, self.record, self.gathers
        self.moved, self.uses, self.record, self.gathers = {}, uses, Record({}, {}, {}), []
        try:
            program, layouts = stage_with_aux(of_blocks, avals, flat.jaxpr.debug_info)
            self.gathers_of[program] = self.gathers
            return program, layouts, self.record
        finally:
            self.moved, self.uses, self.record, self.gathers = outer

    @context.leaving(core.current_source)
    def _run(self, flat: ClosedJaxpr, blocks: Sequence[Block]) -> list[Block]:
        """The results of a program on blocks, recorded by the current trace."""
        jaxpr, env = flat.jaxpr, dict[Any, Block]()

        def define(variables: Sequence[Var], blocks: Sequence[Block]) -> None:
            env.update(zip(variables, blocks, strict=True))
            self.record.layouts.update(zip(variables, (x.layout for x in blocks), strict=True))
        define(jaxpr.constvars, list(map(whole, flat.consts)))
        define(jaxpr.invars, blocks)
        for eqn in jaxpr.eqns:
            core.current_source.set(eqn.source_info)
            define(eqn.outvars, self._equation(eqn, [read(env, x) for x in eqn.invars]))
        return [read(env, x) for x in jaxpr.outvars]

    def _equation(self, eqn: JaxprEqn, blocks: list[Block]) -> list[Block]:
        """The results of an equation on blocks of its operands."""
        p, rule, self.eqn = eqn.primitive, rule_of(eqn), eqn
        if isinstance(rule, OnBlocks):
            return rule.rule(self, p, blocks, **eqn.params)  # type: ignore[misc]
        uses = [self.uses.get(v) for v in eqn.outvars]
        if rule is not None:
            aligned = Aligned(self, eqn, blocks, rule, uses)
            self.record.taken[eqn] = aligned.layouts, aligned
            self.record.kept.update(zip(eqn.outvars, aligned.kept(), strict=True))
            return aligned.results()
        blocks = [self.gathered(x, p.name, f"no rule says how {p.name} may be cut") for x in blocks]
        return self.bound(p, blocks, [((),) * v.aval.ndim for v in eqn.outvars], **eqn.params)

    def bound(self, p: Primitive, blocks: Sequence[Block], layouts: Sequence[Layout],
              **params: Any) -> list[Block]:
        """The current equation's operation on blocks; its results have these layouts."""
        self.record.taken[self.eqn] = [x.layout for x in blocks], None
        for program in subjaxprs(params):
            self.gathers += self.gathers_of.get(program, [])
        return list(map(Block, p.bind_list(*(x.value for x in blocks), **params), layouts))


def read(env: dict[Any, Block], atom: Any) -> Block:
    return whole(atom.value) if isinstance(atom, Literal) else env[atom]


def rule_of(eqn: JaxprEqn) -> Alignment | OnBlocks | None:
    """How cut axes go through an equation."""
    return alignment_of(eqn.primitive, [x.aval for x in eqn.invars],
                        [x.aval for x in eqn.outvars], eqn.params)


def alignment_of(p: Primitive, ins: Avals, outs: Avals, params: Params
                 ) -> Alignment | OnBlocks | None:
    """How cut axes go through an operation; what is batched elementwise is cut elementwise."""
    if p.sharding is not None:
        return p.sharding(ins, outs, **params)
    is_elementwise = getattr(p.batch, "__func__", None) is batch_elementwise.rule
    return elementwise(ins, outs) if is_elementwise else None


# ── Uses ─────────────────────────────────────────────────────────────────────────────────────

def layouts_used(jaxpr: Jaxpr, record: Record, layouts_out: Layouts) -> dict[Var, set[Layout]]:
    """The layouts in which values are used.

    From the last equation to the first: what a result is used in, its operands are used in.
    """
    used: dict[Var, set[Layout]] = {}
    for x, layout in zip(jaxpr.outvars, layouts_out, strict=True):
        if isinstance(x, Var):
            used.setdefault(x, set()).add(layout or record.layouts[x])
    for eqn in reversed(jaxpr.eqns):
        own = [only(used.get(v, ())) for v in eqn.outvars]
        own = [x if x and adds_axes(x, record.layouts[v]) else None
               for x, v in zip(own, eqn.outvars, strict=True)]
        taken, aligned = record.taken.get(eqn, ([], None))
        taken = aligned.layouts_for(own) if aligned and any(own) else taken
        for x, layout in zip(eqn.invars, taken, strict=False):
            if isinstance(x, Var):
                used.setdefault(x, set()).add(layout)
    return used


def only(layouts: Collection[Layout]) -> Layout | None:
    """The layout of these, if it is one."""
    return next(iter(layouts)) if len(layouts) == 1 else None


def adds_axes(layout: Layout, now: Layout) -> bool:
    """Whether a layout has mesh axes where another has not."""
    return any(set(new) - set(old) for new, old in zip(layout, now, strict=True))


# ── Flat programs ────────────────────────────────────────────────────────────────────────────

def flattened(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program with calls inlined, tables of indices computed, and without dead equations."""
    return dce.without_dead_equations(stage(lambda *args: eval_jaxpr_with(_inlined, closed, args),
                                            closed.in_avals, closed.jaxpr.debug_info))


def _inlined(eqn: JaxprEqn, args: Sequence[Any]) -> list[Array]:
    if program := program_of(eqn):
        return eval_jaxpr_with(_inlined, program, args)
    values = list(map(core.as_value, args))
    trace = core.base_trace if is_table(eqn, values) else core.current_trace.get()
    return core.run_with(trace, eqn.primitive.bind_list, *values, **eqn.params)


def program_of(eqn: JaxprEqn) -> ClosedJaxpr | None:
    """The program that an equation only runs, or that it is where no rule says how it is cut."""
    p, rule = eqn.primitive, rule_of(eqn)
    if isinstance(rule, OnBlocks):
        return rule.program
    if rule is not None or not callable(p.program) or p.handles_keys:
        return None
    return stage(lambda *args: p.listed(p.program(*args, **eqn.params)),
                 [x.aval for x in eqn.invars])


def is_table(eqn: JaxprEqn, values: Sequence[Array]) -> bool:
    """Whether an equation computes indices from constants."""
    return (all(type(x) is ArrayImpl for x in values) and not eqn.effects
            and not isinstance(rule_of(eqn), OnBlocks)
            and all(v.aval.size <= LARGEST_FOLDED and getattr(v.aval.dtype, "kind", "") in "biu"
                    for v in eqn.outvars))


# ── Constraints ──────────────────────────────────────────────────────────────────────────────

@on_blocks
def constrained(ranks: Partitioner, p: Primitive, blocks: list[Block], *, sharding: Any) -> list:
    """The rule of a sharding constraint: the layout that it names."""
    [x], spec = blocks, sharding.spec
    free = [part is spec.UNCONSTRAINED for part in spec] + [False] * len(x.layout)
    shape = [n * ranks.count(own) for n, own in zip(x.value.shape, x.layout, strict=True)]
    layout = tuple(
        own if is_free else names if n % ranks.count(names) == 0 else ()  # JAX: it pads them
        for n, own, names, is_free in zip(
            shape, x.layout, ranks.grid.layout_of(sharding, len(x.layout)), free, strict=False))
    out = ranks.relayout(x, layout, f"its constraint is {spec}", p.name)
    ranks.record.taken[ranks.eqn] = [layout], None
    return [out]
