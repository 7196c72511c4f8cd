"""What is the same in each turn of a loop, taken out before it: residuals, and linear functions.

Stands on `jaxpr`; the rules of loops ask.  Chapter 09, *Control flow*.
In JAX: `_scan_partial_eval` moves known invariants out; of linear ones XLA has to.
"""

from minijax.control_flow.program_rules import Flags
from minijax.core.jaxpr import (ClosedJaxpr, Var, cached_on_jaxpr, partition_list,
                                without_dead_equations)


@cached_on_jaxpr
def with_fixed_outputs_before(body: ClosedJaxpr, num_consts: int, first: int
                               ) -> tuple[ClosedJaxpr, ClosedJaxpr, Flags]:
    """Take out of a loop the outputs, from the `first` on, that are the same in each turn.

    Returns:
      The program of these, of the loop's constants; the body without them; which they are.
    """
    jaxpr = body.jaxpr
    varying, same = set(jaxpr.invars[num_consts:]), []
    for eqn in jaxpr.eqns:
        if eqn.effects or not varying.isdisjoint(eqn.invars):
            varying.update(eqn.outvars)
        else:
            same.append(eqn)
    is_fixed = [not isinstance(x, Var) or x not in varying for x in jaxpr.outvars[first:]]
    loose, fixed = partition_list(jaxpr.outvars[first:], is_fixed)
    before = jaxpr.replace(invars=jaxpr.invars[:num_consts], outvars=tuple(fixed), eqns=same)
    rest = jaxpr.replace(outvars=(*jaxpr.outvars[:first], *loose))
    program, body = (without_dead_equations(ClosedJaxpr(part, body.consts))
                     for part in (before, rest))
    return program, body, is_fixed


@cached_on_jaxpr
def with_linear_constants_before(body: ClosedJaxpr, linear: Flags
                                  ) -> tuple[ClosedJaxpr, ClosedJaxpr]:
    """Take out of a loop what makes less or other numbers of its linear constants alone: cotangents
    are then summed up in these, not in what they come from.

    Args:
      linear: of the constants, which come first, those that the body is linear in.

    Returns:
      The program of such numbers, of the loop's constants; the body, to which they are constants,
      after the others.
    """
    jaxpr, count = body.jaxpr, len(linear)
    consts = jaxpr.invars[:count]
    sides, known = set(partition_list(consts, linear)[True]), {*consts, *jaxpr.constvars}
    moved, left = [], []
    for eqn in jaxpr.eqns:
        read = {x for x in eqn.invars if isinstance(x, Var)}
        shrinks = sum(v.aval.size for v in eqn.outvars) <= sum(v.aval.size for v in read & sides)
        if read <= known and not eqn.effects and (shrinks or read.isdisjoint(sides)):
            moved.append(eqn)
            known.update(eqn.outvars)
        if eqn not in moved or read.isdisjoint(sides):
            left.append(eqn)
        else:
            sides.update(eqn.outvars)
    wanted = {*jaxpr.outvars}.union(*(eqn.invars for eqn in left))
    new = tuple(v for eqn in moved for v in eqn.outvars if v in sides and v in wanted)
    before = jaxpr.replace(invars=consts, outvars=new, eqns=moved)
    rest = jaxpr.replace(invars=(*consts, *new, *jaxpr.invars[count:]), eqns=left)
    first, last = (without_dead_equations(ClosedJaxpr(part, body.consts))
                   for part in (before, rest))
    return first, last
