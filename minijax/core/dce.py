"""Dead code elimination: a program without the equations that none of its results needs.

Stands on `jaxpr`.  Chapter 22, *Simplifying*.
In JAX: `dce_jaxpr` of `jax/_src/interpreters/partial_eval.py`.
"""

from minijax.core.jaxpr import ClosedJaxpr, Jaxpr, Var, effects_of, partition_list


def remove_dead_equations(jaxpr: Jaxpr) -> Jaxpr:
    """Dead code elimination: no equations whose outputs are not read and that have no effect.

    Programs inside stay as they are; `dce_jaxpr` of `custom/remat.py` enters them, too.
    """
    needed = {v for v in jaxpr.outvars if isinstance(v, Var)}
    kept = []
    for eqn in reversed(jaxpr.eqns):
        if not needed.isdisjoint(eqn.outvars) or any(e.observable for e in eqn.effects):
            needed.update(v for v in eqn.invars if isinstance(v, Var))
            kept.append(eqn)
    return jaxpr.replace(eqns=kept[::-1], effects=effects_of(kept))


def without_dead_equations(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Dead code elimination of a closed program: the constants that are not read go, too."""
    jaxpr = remove_dead_equations(closed.jaxpr)
    read = set(jaxpr.outvars).union(*(eqn.invars for eqn in jaxpr.eqns))
    flags = [v in read for v in jaxpr.constvars]
    return ClosedJaxpr(jaxpr.replace(constvars=partition_list(jaxpr.constvars, flags)[True]),
                       tuple(partition_list(closed.consts, flags)[True]))
