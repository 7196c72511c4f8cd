"""Partial evaluation: run what is known, record the rest.

Stands on `stage`.  Chapter 07, *Reverse derivatives*.
In JAX: `jax/_src/interpreters/partial_eval.py` (`JaxprTrace`, `partial_eval_jaxpr_nounits`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from minijax import core
from minijax.core import Array, Params, Primitive, ShapedArray, Tracer
from minijax.jaxpr import ClosedJaxpr, eval_jaxpr, move_consts_to_inputs, remove_dead_equations
from minijax.stage import DynamicJaxprTrace, stage


@dataclass(frozen=True)
class Halves:
    """An equation cut in two: one runs now, the other when the unknown values are there.

    The known half returns the known outputs, then residuals.  `unknown_args` arranges the
    arguments of the unknown half from all arguments of the equation and the residuals.
    """

    known_args: Sequence[Any]
    known: Params
    unknown_args: Callable[[Sequence[Any]], Sequence[Any]]
    unknown: Params
    unknown_out: Sequence[bool]


class SplitTrace(DynamicJaxprTrace):
    """Records what mentions an unknown; everything else runs in the parent."""

    def process_primitive(self, primitive: Primitive, args: Sequence[Array],
                          params: Params) -> list:
        unknown = [self.owns(x) for x in args]
        if not any(unknown):
            return core.run_with(self.parent, primitive.bind_list, *args, **params)
        if callable(primitive.split) and not all(unknown):
            halves = primitive.split(unknown, args, **params)
            if halves is not None:
                return self.process_halves(primitive, halves)
        return super().process_primitive(primitive, args, params)

    def process_halves(self, primitive: Primitive, halves: Halves) -> list:
        results = core.run_with(self.parent, primitive.bind_list, *halves.known_args,
                                **halves.known)
        count = len(halves.unknown_out) - sum(halves.unknown_out)
        known, residuals = iter(results[:count]), results[count:]
        recorded = super().process_primitive(primitive, halves.unknown_args(residuals),
                                             halves.unknown)
        if len(recorded) == len(halves.unknown_out):  # it computes the known ones once more
            recorded = [x for x, u in zip(recorded, halves.unknown_out, strict=True) if u]
        rest = iter(recorded)
        return [next(rest if u else known) for u in halves.unknown_out]


class SplitProgram(NamedTuple):
    """A program cut in two.

    known: known inputs → known outputs, residuals
    unknown: what it needs of the known half, unknown inputs → unknown outputs

    What the unknown half needs is listed in `needs`: the place of an input that is forwarded as
    it is, or None for the next residual.
    """

    known: ClosedJaxpr
    unknown: ClosedJaxpr
    unknown_out: Sequence[bool]
    needs: Sequence[int | None]
    residual_avals: Sequence[core.ShapedArray]

    def needed(self, args: Sequence[Any], residuals: Sequence[Any]) -> list[Any]:
        """The leading arguments of the unknown half, from all arguments and the residuals."""
        rest = iter(residuals)
        return [next(rest) if place is None else args[place] for place in self.needs]


def split_jaxpr(closed: ClosedJaxpr, unknown_in: Sequence[bool],
                keep_unknown: Sequence[bool] | None = None,
                forwardable: Sequence[bool] | None = None) -> SplitProgram:
    """Cut a program into what can run before its unknown inputs are there, and the rest.

    Args:
      closed: a program.
      unknown_in: which of its inputs are unknown.
      keep_unknown: the outputs that the unknown half must compute.
      forwardable: the inputs that the unknown half may take as they are; others are handed
        over as residuals.
    """
    keep = tuple(keep_unknown) if keep_unknown else (False,) * len(closed.jaxpr.outvars)
    forward = tuple(forwardable) if forwardable else (True,) * len(unknown_in)
    return closed.derived(("split", tuple(unknown_in), keep, forward),
                          lambda: _split_jaxpr(closed, unknown_in, keep, forward))


def _split_jaxpr(closed: ClosedJaxpr, unknown_in: Sequence[bool], keep: Sequence[bool],
                 forwardable: Sequence[bool]) -> SplitProgram:
    # types, not the residuals: those are tracers, which nobody may hold once the program is there
    recorded: list[tuple[ClosedJaxpr, Sequence, Sequence, Sequence[ShapedArray]]] = []

    def known_half(*known_args: Array) -> list[Array]:
        trace = SplitTrace(core.current_trace.get(), closed.jaxpr.debug_info)
        rest = iter(known_args)
        args = [trace.new_arg(aval) if u else next(rest)
                for aval, u in zip(closed.in_avals, unknown_in, strict=True)]
        outs = core.run_with(trace, eval_jaxpr, closed.jaxpr, closed.consts, *args)
        unknown_out = [k or trace.owns(x) for k, x in zip(keep, outs, strict=True)]
        program = trace.program([x for x, u in zip(outs, unknown_out, strict=True) if u])
        program = _without_dead_constants(program)
        places = {id(x): i for i, x in enumerate(args) if forwardable[i]}
        unknown, needs, residuals = _traced_constants_as_inputs(program, places)
        recorded.append((unknown, tuple(unknown_out), tuple(needs),
                         tuple(x.aval for x in residuals)))
        return [x for x, u in zip(outs, unknown_out, strict=True) if not u] + residuals

    known_avals = [a for a, u in zip(closed.in_avals, unknown_in, strict=True) if not u]
    known = stage(known_half, known_avals, closed.jaxpr.debug_info)
    return SplitProgram(known, *recorded[0])


def separated(closed: ClosedJaxpr, unknown_in: Sequence[bool]) -> ClosedJaxpr:
    """The same program, in which no equation computes known and unknown values together."""
    def both(*args: Array) -> list[Array]:
        halves = split_jaxpr(closed, unknown_in)
        outs = eval_jaxpr(halves.known.jaxpr, halves.known.consts,
                          *(x for x, u in zip(args, unknown_in, strict=True) if not u))
        count = len(halves.unknown_out) - sum(halves.unknown_out)
        rest = eval_jaxpr(halves.unknown.jaxpr, halves.unknown.consts,
                          *halves.needed(args, outs[count:]),
                          *(x for x, u in zip(args, unknown_in, strict=True) if u))
        known, unknown = iter(outs[:count]), iter(rest)
        return [next(unknown if u else known) for u in halves.unknown_out]
    return closed.derived(("separated", *unknown_in),
                          lambda: stage(both, closed.in_avals, closed.jaxpr.debug_info))


def _without_dead_constants(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Without dead equations, and without the constants that only they used."""
    jaxpr = remove_dead_equations(closed.jaxpr)
    used = {id(v) for eqn in jaxpr.eqns for v in eqn.invars} | {id(v) for v in jaxpr.outvars}
    pairs = [(v, c) for v, c in zip(jaxpr.constvars, closed.consts, strict=True)
             if id(v) in used]
    return ClosedJaxpr(jaxpr.replace(constvars=tuple(v for v, _ in pairs)),
                       tuple(c for _, c in pairs))


def _traced_constants_as_inputs(program: ClosedJaxpr, places: dict[int, int]
                                ) -> tuple[ClosedJaxpr, list[int | None], list[Any]]:
    """The program with its traced constants as leading inputs; what they are; the residuals."""
    pairs = list(zip(program.jaxpr.constvars, program.consts, strict=True))
    moved = [(v, c) for v, c in pairs if id(c) in places or isinstance(c, Tracer)]
    kept = [(v, c) for v, c in pairs if not (id(c) in places or isinstance(c, Tracer))]
    leading = program.jaxpr.replace(constvars=tuple(v for v, _ in moved))
    jaxpr = move_consts_to_inputs(leading).replace(constvars=tuple(v for v, _ in kept))
    needs = [places.get(id(c)) for _, c in moved]
    residuals = [c for _, c in moved if id(c) not in places]
    return ClosedJaxpr(jaxpr, tuple(c for _, c in kept)), needs, residuals
