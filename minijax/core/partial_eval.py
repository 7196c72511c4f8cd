"""Partial evaluation: evaluate known values, record the operations on unknown ones.

Builds on `tracing`.  Chapter 07, *Reverse derivatives*.
In JAX: `jax/_src/interpreters/partial_eval.py` (`JaxprTrace`, `partial_eval_jaxpr_nounits`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from minijax.core import (Array, Avals, Params, Primitive, Tracer, current_trace, run_with)
from minijax.core.jaxpr import (ClosedJaxpr, cached_on_jaxpr, jaxpr_as_fun, merge_lists,
                                partition_list)
from minijax.core.dce import without_dead_equations
from minijax.core.tracing import DynamicJaxprTrace, convert_constvars, stage_with_aux


@dataclass(frozen=True)
class PartialEvalResult:
    """An equation split in two: the known half is evaluated, the unknown half recorded.

    The known half returns the known outputs, then residuals.  `unknown_args` arranges the
    arguments of the unknown half from all arguments of the equation and the residuals.
    """

    known_args: Sequence[Any]
    known: Params
    unknown_args: Callable[[Sequence[Any]], Sequence[Any]]
    unknown: Params
    unknown_out: Sequence[bool]


class SplitTrace(DynamicJaxprTrace):
    """Records operations on unknown values; all others run in the parent."""

    def concerns(self, primitive: Primitive, args: Sequence[Array], params: Params) -> bool:
        return any(map(self.owns, args))

    def process_primitive(self, primitive: Primitive, args: Sequence[Array],
                          params: Params) -> list:
        unknown = [self.owns(x) for x in args]
        if callable(primitive.split) and not all(unknown):
            halves = primitive.split(unknown, args, **params)
            if halves is not None:
                return self.process_split(primitive, halves)
        return super().process_primitive(primitive, args, params)

    def process_split(self, primitive: Primitive, halves: PartialEvalResult) -> list:
        results = run_with(self.parent, primitive.bind_list, *halves.known_args, **halves.known)
        count = halves.unknown_out.count(False)
        known, residuals = results[:count], results[count:]
        recorded = super().process_primitive(primitive, halves.unknown_args(residuals),
                                             halves.unknown)
        if len(recorded) == len(halves.unknown_out):  # it recomputes the known outputs
            recorded = partition_list(recorded, halves.unknown_out)[True]
        return merge_lists((known, recorded), halves.unknown_out)


class SplitProgram(NamedTuple):
    """A program split in two.

    known: known inputs → known outputs, residuals
    unknown: forwarded inputs and residuals, unknown inputs → unknown outputs

    `needs` lists the leading inputs of the unknown half: the position of a forwarded input, or
    None for the next residual.
    """

    known: ClosedJaxpr
    unknown: ClosedJaxpr
    unknown_out: Sequence[bool]
    needs: Sequence[int | None]
    residual_avals: Avals

    def needed(self, args: Sequence[Any], residuals: Sequence[Any]) -> list[Any]:
        """The leading arguments of the unknown half, from all arguments and the residuals."""
        rest = iter(residuals)
        return [next(rest) if place is None else args[place] for place in self.needs]


@cached_on_jaxpr
def partial_eval_jaxpr(closed: ClosedJaxpr, unknown_in: Sequence[bool],
                keep_unknown: Sequence[bool] | None = None,
                forwardable: Sequence[bool] | None = None) -> SplitProgram:
    """Split a program into a known half, which needs no unknown input, and the rest.

    Args:
      closed: a program.
      unknown_in: which of its inputs are unknown.
      keep_unknown: the outputs that the unknown half must compute.
      forwardable: the inputs that the unknown half may take directly; others become
        residuals.
    """
    keep = keep_unknown or [False] * len(closed.out_avals)
    forward = forwardable or [True] * len(unknown_in)
    known_avals, unknown_avals = partition_list(closed.in_avals, unknown_in)

    def known_half(*known_args: Array) -> tuple[list[Array], tuple]:
        trace = SplitTrace(current_trace.get(), closed.jaxpr.debug_info)
        args = merge_lists((known_args, [*map(trace.new_arg, unknown_avals)]), unknown_in)
        outs = run_with(trace, jaxpr_as_fun(closed), *args)
        unknown_out = tuple(k or trace.owns(x) for k, x in zip(keep, outs, strict=True))
        known, unknown = partition_list(outs, unknown_out)
        places = {id(x): i for i, x in enumerate(args) if forward[i]}
        second_half, needed = convert_constvars(without_dead_equations(trace.program(unknown)),
                                    lambda c: id(c) in places or isinstance(c, Tracer))
        residuals = [c for c in needed if id(c) not in places]
        # types, not the residuals, which are tracers that must not outlive the trace
        return known + residuals, (second_half, unknown_out,
                                   tuple(places.get(id(c)) for c in needed),
                                   tuple(x.aval for x in residuals))

    known, rest = stage_with_aux(known_half, known_avals, closed.jaxpr.debug_info)
    return SplitProgram(known, *rest)
