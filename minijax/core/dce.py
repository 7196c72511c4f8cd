"""Dead code elimination: removes the equations that no result of a program needs.

Builds on `jaxpr`.  Chapter 22, *Simplifying*.
In JAX: `dce_jaxpr` of `jax/_src/interpreters/partial_eval.py`.
"""

from collections.abc import Callable

from minijax.core.jaxpr import ClosedJaxpr, JaxprEqn, Var, effects_of, partition_list


def without_dead_equations(closed: ClosedJaxpr,
                           shrink: Callable[[JaxprEqn, set], JaxprEqn] = lambda eqn, needed: eqn
                           ) -> ClosedJaxpr:
    """The program without the equations and constants that no result and no effect needs.

    Programs inside stay as they are, unless ``shrink(eqn, needed variables)`` enters them, too.
    """
    jaxpr = closed.jaxpr
    needed = {v for v in jaxpr.outvars if isinstance(v, Var)}
    kept = []
    for eqn in reversed(jaxpr.eqns):
        if not needed.isdisjoint(eqn.outvars) or any(e.observable for e in eqn.effects):
            kept.append(shrink(eqn, needed))
            needed.update(v for v in kept[-1].invars if isinstance(v, Var))
    is_read = [v in needed for v in jaxpr.constvars]
    live = jaxpr.replace(constvars=partition_list(jaxpr.constvars, is_read)[True],
                         eqns=kept[::-1], effects=effects_of(kept))
    return ClosedJaxpr(live, tuple(partition_list(closed.consts, is_read)[True]))


def used_inputs(closed: ClosedJaxpr) -> list[bool]:
    """Which inputs a program reads."""
    read = {*closed.jaxpr.outvars}.union(*(eqn.invars for eqn in closed.eqns))
    return [v in read for v in closed.jaxpr.invars]
