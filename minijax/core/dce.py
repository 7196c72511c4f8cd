"""Dead code elimination: removes the equations that no result of a program needs.

Builds on `jaxpr`.  Chapter 22, *Simplifying*.
In JAX: `dce_jaxpr` of `jax/_src/interpreters/partial_eval.py`.
"""

from minijax.core.jaxpr import ClosedJaxpr, Var, effects_of, partition_list


def without_dead_equations(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program without the equations and constants that no result and no effect needs.

    Programs inside stay as they are; `dce_jaxpr` of `custom/remat.py` enters them, too.
    """
    jaxpr = closed.jaxpr
    needed = {v for v in jaxpr.outvars if isinstance(v, Var)}
    kept = []
    for eqn in reversed(jaxpr.eqns):
        if not needed.isdisjoint(eqn.outvars) or any(e.observable for e in eqn.effects):
            needed.update(v for v in eqn.invars if isinstance(v, Var))
            kept.append(eqn)
    is_read = [v in needed for v in jaxpr.constvars]
    live = jaxpr.replace(constvars=partition_list(jaxpr.constvars, is_read)[True],
                         eqns=kept[::-1], effects=effects_of(kept))
    return ClosedJaxpr(live, tuple(partition_list(closed.consts, is_read)[True]))
