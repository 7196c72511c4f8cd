"""Forward derivatives: carry a tangent beside every primal.

Builds on `core`, `tracing`.  Chapter 03, *Forward derivatives*.
In JAX: `jax/_src/interpreters/ad.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minijax import core, dtypes
from minijax.util import source_info
from minijax.core import Array, ArrayImpl, Level, Primitive, RuleTrace, Trace, Tracer, Zero, tracing
from minijax.core.jaxpr import ClosedJaxpr, cached_on_jaxpr, jaxpr_as_fun, partition_list

Tangent = Any  # an array, or Zero


class JVPTracer(Tracer):
    """A primal with its tangent."""

    __slots__ = ("primal", "tangent")

    def __init__(self, trace: JVPTrace, primal: Array, tangent: Array):
        super().__init__(trace, primal.aval)
        self.primal, self.tangent = primal, tangent

    def _concrete(self) -> ArrayImpl | None:
        return self.primal._concrete()

    def __repr__(self) -> str:
        return (f"{super().__repr__()} with\n  primal = {self.primal!r}\n"
                f"  tangent = {self.tangent!r}")


class JVPTrace(RuleTrace):
    """Runs a primitive's derivative rule in place of the primitive.

    A tracer's tangent is never `Zero`, so at least one tangent of a rule is an array.
    """

    def __init__(self, parent: Trace, debug_info: source_info.DebugInfo | None = None):
        super().__init__(Level(parent, debug_info), parent)

    def join(self, primal: Array, tangent: Tangent) -> Array:
        return primal if is_symbolic_zero(tangent) else JVPTracer(self, primal, tangent)

    def split(self, x: Array) -> tuple[Array, Tangent]:
        return (x.primal, x.tangent) if self.owns(x) else (x, Zero(x.aval.to_tangent_aval()))

    def join_all(self, primals: Sequence[Array], tangents: Sequence[Tangent]) -> list[Array]:
        return [self.join(p, t) for p, t in zip(primals, tangents, strict=True)]

    def split_all(self, xs: Sequence[Array]) -> tuple[list[Array], list[Tangent]]:
        pairs = [self.split(x) for x in xs]
        return [p for p, _ in pairs], [t for _, t in pairs]

    def process_primitive(self, primitive: Primitive, args: Sequence[Array],
                          params: dict[str, Any]) -> list:
        primals, tangents = zip(*map(self.split, args), strict=True)
        outs, out_tangents = primitive.rule("jvp")(list(primals), list(tangents), **params)
        return [self.join(x, t) for x, t in zip(outs, out_tangents, strict=True)]


def is_symbolic_zero(tangent: Any) -> bool:
    return isinstance(tangent, Zero) or tangent.dtype == dtypes.float0


def jvp_flat(fun: Callable[..., Sequence[Any]], primals: Sequence[Array],
             tangents: Sequence[Tangent], debug_info: source_info.DebugInfo | None = None
             ) -> tuple[list[Array], list[Tangent]]:
    """Outputs and output tangents of a function of flat arguments."""
    trace = JVPTrace(core.current_trace.get(), debug_info)
    return trace.split_all(tracing.run_flat(trace, fun, trace.join_all(primals, tangents)))


@cached_on_jaxpr
def jvp_jaxpr(closed: ClosedJaxpr, has_tangent: Sequence[bool],
              keep: Sequence[bool] | None = None) -> tuple[ClosedJaxpr, Sequence[bool]]:
    """The program that computes primals and tangents.

    Args:
      closed: a program.
      has_tangent: which of its inputs have a tangent.
      keep: the outputs with a tangent even when it is zero.

    Returns:
      A program from (inputs, tangents that exist) to (outputs, tangents that exist), and which
      outputs have one.
    """
    in_avals = closed.in_avals
    tangent_avals = [aval.to_tangent_aval() for aval in in_avals]
    run = jaxpr_as_fun(closed)

    def with_tangents(*args: Array) -> tuple[list[Array], tuple[bool, ...]]:
        tangent_args = iter(args[len(in_avals):])
        tangents = [next(tangent_args) if has else Zero(aval)
                    for has, aval in zip(has_tangent, tangent_avals, strict=True)]
        outs, out_tangents = jvp_flat(run, args[:len(in_avals)], tangents)
        returned, out_has = instantiate_nonzero(out_tangents, keep)
        return outs + returned, out_has

    all_avals = in_avals + partition_list(tangent_avals, has_tangent)[True]
    return tracing.stage_with_aux(with_tangents, all_avals, closed.jaxpr.debug_info)


def instantiate_nonzero(tangents: Sequence[Tangent], keep: Sequence[bool] | None
                    ) -> tuple[list[Array], tuple[bool, ...]]:
    """The tangents that are not zero, or must be kept, as arrays; and their flags."""
    kept = keep or [False] * len(tangents)
    flags = tuple(k or not isinstance(t, Zero) for k, t in zip(kept, tangents, strict=True))
    return [core.instantiate(t) for t in partition_list(tangents, flags)[True]], flags
