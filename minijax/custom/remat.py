"""Partial evaluation with a policy that selects the residuals of the backward pass.

Builds on `program_rules`.  Chapter 10, *Your own rules and checkpointing*.
In JAX: `jax/_src/interpreters/partial_eval.py` (`partial_eval_jaxpr_custom`, `dce_jaxpr`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from minijax.core import Primitive, current_source, dce, tracing
from minijax.control_flow.program_rules import (Flags, Halves, elementwise_or, join_residuals,
                                                rearranged, split_half)
from minijax.transforms.compiled import jit_p
from minijax.core.vmap import with_axis
from minijax.core.jaxpr import ClosedJaxpr, Environment, JaxprEqn, Var
from minijax.util import context

Policy = Callable[..., Any]


@context.leaving(current_source)
def eval_jaxpr_with(evaluate: Callable[[JaxprEqn, list], list], closed: ClosedJaxpr,
                    args: Sequence[Any]) -> list[Any]:
    """Run a program by an interpreter: a function of each equation and of its operands' values."""
    jaxpr = closed.jaxpr
    env = Environment(zip(jaxpr.constvars + jaxpr.invars, (*closed.consts, *args), strict=True))
    for eqn in jaxpr.eqns:
        current_source.set(eqn.source_info)
        env.update(zip(eqn.outvars, evaluate(eqn, [env[x] for x in eqn.invars]), strict=True))
    return [env[x] for x in jaxpr.outvars]


def inline_calls(closed: ClosedJaxpr, call: Primitive = jit_p) -> ClosedJaxpr:
    """The same program, with the equations of called programs in place of the calls.

    Args:
      closed: a program.
      call: the primitive whose calls are inlined.
    """
    def evaluate(eqn: JaxprEqn, values: list) -> list:
        if eqn.primitive is call:
            return eval_jaxpr_with(evaluate, eqn.params["jaxpr"], values)
        return eqn.primitive.bind_list(*values, **eqn.params)
    return tracing.stage(lambda *args: eval_jaxpr_with(evaluate, closed, args), closed.in_avals,
                         closed.jaxpr.debug_info)


# ── Equations with programs inside ───────────────────────────────────────────────────────────

class _InnerPrograms:
    """The programs of an equation that runs one of them, once or in each iteration of a loop."""

    def __init__(self, eqn: JaxprEqn):
        params = eqn.params
        self.eqn, self.field = eqn, "branches" if "branches" in params else "jaxpr"
        self.programs: Sequence[ClosedJaxpr] = params.get("branches") or (params["jaxpr"],)
        self.leading = len(eqn.invars) - len(self.programs[0].in_avals)  # they choose one
        self.num_consts = params.get("num_consts", 0)
        self.num_carry = params.get("num_carry", 0)

    @classmethod
    def of(cls, eqn: JaxprEqn) -> _InnerPrograms | None:
        known = callable(eqn.primitive.split) and not {"branches", "jaxpr"}.isdisjoint(eqn.params)
        return cls(eqn) if known and not eqn.effects else None

    def unknown(self, unknown: Flags, unknown_out: Flags) -> list[bool]:
        """Which inputs of the programs are unknown: a carry is, where it becomes so."""
        flags = list(unknown[self.leading:])
        flags[self.num_consts:self.num_consts + self.num_carry] = unknown_out[:self.num_carry]
        return flags

    def replaced(self, programs: Sequence[ClosedJaxpr], sizes: Mapping[str, int] | None = None,
                 **changes: Any) -> JaxprEqn:
        new = tuple(programs) if self.field == "branches" else programs[0]
        params = {**self.eqn.params, self.field: new}
        params |= {name: size for name, size in (sizes or {}).items() if name in params}
        return self.eqn.replace(params=params, **changes)

    def partial_eval(self, unknown: Flags, unknown_out: Flags, policy: Policy
                     ) -> tuple[JaxprEqn, JaxprEqn, tuple[Var, ...]]:
        """The equations of the forward pass and of its repetition, and the residuals between."""
        flags = self.unknown(unknown, unknown_out)
        forward, again, avals = zip(*join_residuals(
            [partial_eval_with_policy(inline_calls(p), flags, policy) for p in self.programs],
            start=len(flags)), strict=True)
        length = self.eqn.params.get("length")  # a loop stacks the residuals of its iterations
        residuals = tuple(Var(a if length is None else with_axis(a, 0, length)) for a in avals[0])
        return (self.replaced(forward, outvars=(*self.eqn.outvars, *residuals)),
                self.replaced(again, invars=(*self.eqn.invars, *residuals)), residuals)


def _with_rule(eqn: JaxprEqn, live: set) -> JaxprEqn:
    """The call of a function with a derivative rule, without unused results; others as they are."""
    outputs = [i for i, v in enumerate(eqn.outvars) if v in live]
    if "call_jaxpr" not in eqn.params or len(outputs) == len(eqn.outvars):
        return eqn
    rule, program = eqn.params["jvp"], eqn.params["call_jaxpr"]

    return eqn.replace(outvars=tuple(eqn.outvars[i] for i in outputs), params={
        **eqn.params, "call_jaxpr": dce_jaxpr(rearranged(program, outputs=outputs)),
        "jvp": rule.with_call(lambda *args: [
            outs[i] for outs in split_half(rule(*args)) for i in outputs])})


def _shrunk(eqn: JaxprEqn, live: set) -> JaxprEqn:
    """The equation without unused results and operands, and parts of a carry."""
    inner = _InnerPrograms.of(eqn)
    if inner is None:
        return _with_rule(eqn, live)
    used, before = [v in live for v in eqn.outvars], None
    while used != before:  # what the next iteration reads of the carry is a result of this one
        before, outputs = used, [i for i, u in enumerate(used) if u]
        programs = [dce.without_dead_equations(rearranged(p, outputs=outputs), _shrunk)
                    for p in inner.programs]
        inputs = elementwise_or(map(dce.used_inputs, programs))
        carry_end = inner.num_consts + inner.num_carry
        carry = elementwise_or((used[:inner.num_carry], inputs[inner.num_consts:carry_end]))
        used = [*carry, *used[inner.num_carry:]]
    inputs[inner.num_consts:carry_end] = carry
    kept = [i for i, u in enumerate(inputs) if u]
    first, rest = eqn.invars[:inner.leading], eqn.invars[inner.leading:]
    return inner.replaced([rearranged(p, kept) for p in programs],
                          {"num_consts": sum(inputs[:inner.num_consts]), "num_carry": sum(carry)},
                          invars=(*first, *(rest[i] for i in kept)),
                          outvars=tuple(eqn.outvars[i] for i in outputs))


# ── Whole programs ───────────────────────────────────────────────────────────────────────────

def dce_jaxpr(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program without dead equations, also inside of loops, branches and calls."""
    return dce.without_dead_equations(closed, _shrunk)


def partial_eval_with_policy(closed: ClosedJaxpr, unknown: Flags, policy: Policy) -> Halves:
    """A program for the forward pass, and one for its repetition in the backward pass.

    Args:
      closed: a program.
      unknown: which of its inputs are unknown in the forward pass.
      policy: says of an equation whether its results are saved.

    Returns:
      The first program, whose last outputs are the saved residuals; the second program, whose last
      inputs they are; and their types.
    """
    jaxpr = closed.jaxpr
    unknown_vars = {v for v, u in zip(jaxpr.invars, unknown, strict=True) if u}
    saved: list[Var] = []
    forward: list[JaxprEqn] = []
    again: list[JaxprEqn] = []
    for eqn in jaxpr.eqns:
        flags = [v in unknown_vars for v in eqn.invars]
        unknown_out = _unknown_out(eqn, flags)
        unknown_vars.update(v for v, u in zip(eqn.outvars, unknown_out, strict=True) if u)
        inner = _InnerPrograms.of(eqn) if not all(unknown_out) else None  # else nothing is known
        if not any(flags) and not eqn.effects and policy(
                eqn.primitive, *(v.aval for v in eqn.invars), **eqn.params):
            forward.append(eqn)
            saved += eqn.outvars
        elif inner:
            forward_eqn, eqn_again, residuals = inner.partial_eval(flags, unknown_out, policy)
            forward.append(forward_eqn)
            again.append(eqn_again)
            saved += residuals
        else:
            forward.append(eqn)
            again.append(eqn)
    first = jaxpr.replace(eqns=tuple(forward), outvars=(*jaxpr.outvars, *saved))
    second = jaxpr.replace(eqns=tuple(again), invars=(*jaxpr.invars, *saved))
    return (ClosedJaxpr(first, closed.consts), ClosedJaxpr(second, closed.consts),
            [v.aval for v in saved])


def _unknown_out(eqn: JaxprEqn, unknown: Flags) -> Sequence[bool]:
    """Which results of an equation are unknown."""
    if any(unknown) and not all(unknown) and callable(eqn.primitive.split):
        halves = eqn.primitive.split(unknown, eqn.invars, **eqn.params)
        if halves is not None:
            return halves.unknown_out
    return [any(unknown)] * len(eqn.outvars)
