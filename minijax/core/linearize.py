"""Linearization: `jvp` under a trace that runs the primal part and records the tangent part.

Builds on `jvp`, `partial_eval`.  Chapter 07, *Reverse derivatives*.
In JAX: `jax/_src/interpreters/ad.py` (`linearize`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from minijax import core, dtypes
from minijax.core import Array, Zero, dce, jaxpr, partial_eval, tracing
from minijax.core.jvp import JVPTrace
from minijax.util.source_info import DebugInfo


@dataclass(frozen=True)
class LinearProgram:
    """The derivative of a function at a point: a program linear in its inputs.

    Its constants are the residuals.  Inputs without a tangent (integers) and outputs whose
    tangent is a symbolic zero are left out; `out_zeros` has that zero for each output, or None.
    """

    closed: jaxpr.ClosedJaxpr
    in_has_tangent: tuple[bool, ...]
    out_zeros: tuple[Zero | None, ...]

    def __call__(self, *tangents: Any) -> list[Array]:
        """Output tangents for input tangents."""
        inputs = [t for t, has in zip(tangents, self.in_has_tangent, strict=True) if has]
        outs = iter(core.base_trace.wrap("again", jaxpr.jaxpr_as_fun(self.closed))(*inputs))
        return [next(outs) if zero is None else core.instantiate(zero) for zero in self.out_zeros]


def linearize_flat(fun: Callable[..., Sequence[Any]], primals: Sequence[Array],
                   debug_info: DebugInfo | None = None) -> tuple[list[Array], LinearProgram]:
    """The outputs of a function of flat arguments, and its derivative there."""
    recorder = partial_eval.SplitTrace(core.current_trace.get(), debug_info)
    tangent_avals = [x.aval.to_tangent_aval() for x in primals]
    has_tangent = tuple(aval.dtype != dtypes.float0 for aval in tangent_avals)
    tangents = [recorder.new_arg(aval) if has else Zero(aval)
                for aval, has in zip(tangent_avals, has_tangent, strict=True)]
    trace = JVPTrace(recorder, debug_info)  # inlined `jvp_flat`, to save a frame
    outs, out_tangents = trace.split_all(
        tracing.run_flat(trace, fun, trace.join_all(primals, tangents)))
    zeros = tuple(t if isinstance(t, Zero) else None for t in out_tangents)
    program = recorder.program([t for t in out_tangents if not isinstance(t, Zero)])
    return outs, LinearProgram(dce.without_dead_equations(program), has_tangent, zeros)
