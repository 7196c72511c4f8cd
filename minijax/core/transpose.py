"""Transposition: run a linear program backwards and accumulate cotangents.

Builds on `jaxpr`, `tracing`.  Chapter 07, *Reverse derivatives*.
In JAX: `jax/_src/interpreters/ad.py` (`backward_pass`).
"""

from collections.abc import Sequence
from typing import Any

from minijax.util import context
from minijax import core
from minijax.core import Array, ShapedArray, Undefined, Zero
from minijax.core.jvp import instantiate_nonzero
from minijax.core.jaxpr import (Atom, ClosedJaxpr, Environment, Jaxpr, JaxprEqn, Var,
                                cached_on_jaxpr, merge_lists, partition_list)
from minijax.core.tracing import stage_with_aux


@context.leaving(core.current_source)
def backward_pass(jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any],
                  cotangents: Sequence[Any], accumulators: Sequence[Any] = ()) -> list[Any]:
    """The cotangents of the inputs a program is linear in.

    Equations that do not depend on these inputs are evaluated first; then the others are
    transposed, from the last to the first.  A rule is skipped if all its cotangents are symbolic
    zeros, so that the rule of an operation of one result always gets an array; a user's
    rule is skipped only if all cotangents of the program are zeros.

    Args:
      jaxpr: the program.
      consts: values of its constants.
      args: for each input its value; `Undefined` where the program is linear in it; None where it
        is linear and the cotangent is unwanted.
      cotangents: for each output an array or `Zero`.
      accumulators: for each input the array to which its cotangents are added, or None.

    Returns:
      For each input an array or `Zero`; None where it is not linear, or unwanted.
    """
    inputs = [Undefined(v.aval) if x is None else x
             for v, x in zip(jaxpr.invars, args, strict=True)]
    values = Environment(zip(jaxpr.constvars + jaxpr.invars, (*consts, *inputs), strict=True))
    linear = {v for v, x in zip(jaxpr.invars, args, strict=True) if isinstance(x, Undefined)}
    unwanted = {v for v, x in zip(jaxpr.invars, args, strict=True) if x is None}
    linear_eqns = []
    for eqn in jaxpr.eqns:
        if linear.isdisjoint(eqn.invars) and unwanted.isdisjoint(eqn.invars):
            values.run(eqn)
            continue
        values.update((v, Undefined(v.aval)) for v in eqn.outvars)
        if linear.isdisjoint(eqn.invars):
            unwanted.update(eqn.outvars)
        else:
            linear.update(eqn.outvars)
            linear_eqns.append(eqn)
    # partial sums of the cotangents of each variable
    sums: dict[Var, Any] = {
        v: x for v, x in zip(jaxpr.invars, accumulators, strict=False) if x is not None}

    def accumulate(atoms: Sequence[Atom], new: Sequence[Any]) -> None:
        for v, ct in zip(atoms, new, strict=True):
            if isinstance(v, Var) and v in linear:
                if getattr(ct, "aval", v.aval).explicit_sharding != v.aval.explicit_sharding:
                    ct = v.aval.shardings.with_sharding_of(v.aval, ct)
                total = core.add_cotangents(sums.get(v), ct)
                if total is not None and not isinstance(total, Zero):
                    sums[v] = total

    accumulate(jaxpr.outvars, cotangents)
    for eqn in reversed(linear_eqns if has_any(cotangents) else ()):
        out_cotangents = [sums.pop(v, Zero(v.aval)) for v in eqn.outvars]
        if eqn.primitive.users_transpose or has_any(out_cotangents):
            accumulate(eqn.invars, transpose_eqn(eqn, values, out_cotangents))
    return [sums.get(v, Zero(v.aval)) if v in linear else None for v in jaxpr.invars]


def has_any(cotangents: Sequence[Any]) -> bool:
    return not all(isinstance(ct, Zero) for ct in cotangents)


def transpose_eqn(eqn: JaxprEqn, values: Environment, cotangents: Sequence[Any]) -> Sequence[Any]:
    """The cotangents of an equation's operands; arbitrary for those that it is not linear in."""
    core.current_source.set(eqn.source_info and eqn.source_info.reversed())
    args = [cotangents, *map(values.__getitem__, eqn.invars)]
    if any(x.aval.explicit_sharding is not None for x in (*eqn.invars, *eqn.outvars)):
        args = ShapedArray.shardings.to_transpose(eqn, *args)
    return eqn.primitive.rule("transpose")(*args, **eqn.params)


@cached_on_jaxpr
def transpose_jaxpr(closed: ClosedJaxpr, linear_in: Sequence[bool],
                    ct_avals: Sequence[ShapedArray | None], keep: Sequence[bool] | None = None
                    ) -> tuple[ClosedJaxpr, Sequence[bool]]:
    """The program from (non-linear inputs, cotangents that exist) to cotangents of linear inputs.

    Args:
      closed: a program.
      linear_in: the inputs that it is linear in.
      ct_avals: for each output the type of its cotangent, which may be weak where that of the
        output is not; None where it has none.
      keep: the linear inputs with a cotangent even when it is zero.

    Returns:
      The program, and for each linear input whether its cotangent is among the outputs.
    """
    fixed_avals, linear_avals = partition_list(closed.in_avals, linear_in)

    def backwards(*values: Array) -> tuple[list[Array], tuple[bool, ...]]:
        args = merge_lists((values[:len(fixed_avals)], [*map(Undefined, linear_avals)]), linear_in)
        known_cts = iter(values[len(fixed_avals):])
        cts = [Zero(out) if ct is None else next(known_cts)
               for out, ct in zip(closed.out_avals, ct_avals, strict=True)]
        in_cts = backward_pass(closed.jaxpr, closed.consts, args, cts)
        return instantiate_nonzero(partition_list(in_cts, linear_in)[True], keep)

    in_avals = fixed_avals + [ct for ct in ct_avals if ct is not None]
    return stage_with_aux(backwards, in_avals, closed.jaxpr.debug_info)
