"""Loop-invariant code motion: residuals and linear functions are computed before the loop.

Builds on `jaxpr`; rules of loops call it.  Chapter 09, *Control flow*.
In JAX: `_scan_partial_eval` moves known invariants out, XLA linear ones.
"""

from minijax.control_flow.program_rules import Flags
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr, Var, cached_on_jaxpr, partition_list
from minijax.core.dce import without_dead_equations


@cached_on_jaxpr
def hoist_invariant_outputs(body: ClosedJaxpr, num_consts: int, first: int
                            ) -> tuple[ClosedJaxpr, ClosedJaxpr, Flags]:
    """Move out of a loop the outputs, from the `first` on, that are the same in each iteration.

    Returns:
      The program that computes them from the loop's constants; the body without them; which they
      are.
    """
    jaxpr = body.jaxpr
    varying, hoisted = set(jaxpr.invars[num_consts:]), []
    for eqn in jaxpr.eqns:
        if eqn.effects or not varying.isdisjoint(eqn.invars):
            varying.update(eqn.outvars)
        else:
            hoisted.append(eqn)
    is_invariant = [not isinstance(x, Var) or x not in varying for x in jaxpr.outvars[first:]]
    others, invariant = partition_list(jaxpr.outvars[first:], is_invariant)
    before = jaxpr.replace(invars=jaxpr.invars[:num_consts], outvars=tuple(invariant), eqns=hoisted)
    rest = jaxpr.replace(outvars=(*jaxpr.outvars[:first], *others))
    return _closed(before, body), _closed(rest, body), is_invariant


@cached_on_jaxpr
def hoist_linear_consts(body: ClosedJaxpr, linear: Flags) -> tuple[ClosedJaxpr, ClosedJaxpr]:
    """Move out of a loop the functions of its linear constants that do not have more elements: the
    loop then sums up cotangents of these, and not of the constants.

    Args:
      linear: which constants, the first inputs, the body is linear in.

    Returns:
      The program that computes these functions of the loop's constants; the body, to which they are
      constants after the others.
    """
    jaxpr, count = body.jaxpr, len(linear)
    consts = jaxpr.invars[:count]
    linear_vars, invariant = set(partition_list(consts, linear)[True]), {*consts, *jaxpr.constvars}
    hoisted, remaining = [], []
    for eqn in jaxpr.eqns:
        read = {x for x in eqn.invars if isinstance(x, Var)}
        of_linear = [v.aval for v in read & linear_vars]
        shrinks = sum(v.aval.size for v in eqn.outvars) <= sum(aval.size for aval in of_linear)
        # Cotangents are summed up in the dtype of the constants: a sum of bfloat16 loses terms.
        keeps_dtype = {v.aval.dtype for v in eqn.outvars} == {aval.dtype for aval in of_linear}
        if read <= invariant and not eqn.effects and (
                shrinks and keeps_dtype or read.isdisjoint(linear_vars)):
            hoisted.append(eqn)
            invariant.update(eqn.outvars)
        if eqn not in hoisted or read.isdisjoint(linear_vars):
            remaining.append(eqn)
        else:
            linear_vars.update(eqn.outvars)
    read_later = {*jaxpr.outvars}.union(*(eqn.invars for eqn in remaining))
    new = tuple(v for eqn in hoisted for v in eqn.outvars if v in linear_vars and v in read_later)
    before = jaxpr.replace(invars=consts, outvars=new, eqns=hoisted)
    rest = jaxpr.replace(invars=(*consts, *new, *jaxpr.invars[count:]), eqns=remaining)
    return _closed(before, body), _closed(rest, body)


def _closed(part: Jaxpr, body: ClosedJaxpr) -> ClosedJaxpr:
    return without_dead_equations(ClosedJaxpr(part, body.consts))
