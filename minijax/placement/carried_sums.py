"""Sums over ranks moved out of loops: each rank keeps its own terms, which are added at the end.

So a gradient that a loop accumulates is sent once, and so are the losses of all steps.
Builds on `across`.
Chapter 11, *Named axes and many devices*.  In JAX: XLA's `WhileLoopAllReduceCodeMotion`.
"""

import itertools
from collections import Counter
from collections.abc import Sequence
from typing import Any

from minijax.core.jaxpr import ClosedJaxpr, JaxprEqn, Literal, Var, effects_of
from minijax.placement.across import Names, across_reduce_p
from minijax.primitives.ad_util import add_any_p
from minijax.primitives.algebra import add_p, div_p, mul_p, neg_p
from minijax.primitives.shape import reshape_p, transpose_p

LINEAR = frozenset([reshape_p, transpose_p, neg_p, mul_p, div_p])  # in the first operand


def with_own_sums(body: ClosedJaxpr, layouts: Sequence[Sequence[Names]], num_consts: int,
                  num_carry: int) -> tuple[ClosedJaxpr, list[Names]]:
    """The body of a loop whose results are sums of its own rank's terms, where they can be.

    Args:
      layouts: those of the results: ranks that have different blocks do not add them.

    Returns:
      The body; and for each result the mesh axes along which those of all ranks have to be added
      after the loop: none for a value that is no such sum.
    """
    carried = body.jaxpr.invars[num_consts:num_consts + num_carry]
    producers = {v: eqn for eqn in body.eqns for v in eqn.outvars}
    uses = Counter(x for atoms in (*(eqn.invars for eqn in body.eqns), body.jaxpr.outvars)
                   for x in atoms if isinstance(x, Var))
    reductions = [
        _summed(_added(out, carry, producers, uses) if carry else out, producers, uses)
        for out, carry in itertools.zip_longest(body.jaxpr.outvars, carried)]
    reductions = [
        eqn if eqn and {*eqn.params["names"]}.isdisjoint(itertools.chain(*layout)) else None
        for eqn, layout in zip(reductions, layouts, strict=True)]
    skipped = {eqn for eqn in reductions if eqn is not None}
    if not skipped:
        return body, [()] * len(reductions)

    terms: dict[Any, Any] = {eqn.outvars[0]: eqn.invars[0] for eqn in skipped}
    eqns = [eqn.replace(invars=tuple(terms.get(x, x) for x in eqn.invars))
            for eqn in body.eqns if eqn not in skipped]
    own = body.jaxpr.replace(eqns=eqns, effects=effects_of(eqns),
                             outvars=[terms.get(x, x) for x in body.jaxpr.outvars])
    return ClosedJaxpr(own, body.consts), [eqn.params["names"] if eqn else () for eqn in reductions]


Producers = dict[Var, JaxprEqn]


def _added(out: Any, carry: Var, producers: Producers, uses: Counter) -> Any:
    """What a body adds to a carried value, which it uses for nothing else; otherwise None."""
    eqn = producers.get(out) if isinstance(out, Var) else None
    if (eqn is None or eqn.primitive not in (add_p, add_any_p) or carry not in eqn.invars
            or uses[carry] != 1 or uses[out] != 1):
        return None
    return next(x for x in eqn.invars if x is not carry)


def _summed(x: Any, producers: Producers, uses: Counter) -> JaxprEqn | None:
    """The sum over ranks of which a value is a linear function, and which is used once."""
    eqn = producers.get(x) if isinstance(x, Var) and uses[x] == 1 else None
    if eqn is None:
        return None
    if eqn.primitive is across_reduce_p:
        return eqn if eqn.params["op"] == "add" else None
    is_linear = eqn.primitive in LINEAR and all(isinstance(y, Literal) for y in eqn.invars[1:])
    return _summed(eqn.invars[0], producers, uses) if is_linear else None
