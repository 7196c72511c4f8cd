"""`checkpoint`: keep no intermediate values for the backward pass, compute them once more.

Stands on `compiled`.  Chapter 10, *Your own rules and checkpointing*.
In JAX: `jax/_src/ad_checkpoint.py`.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from minijax import source_info, tracebacks
from minijax.higher_order import arguments, compiled, rules
from minijax.interpreters.split import Halves, split_jaxpr
from minijax.jaxpr import ClosedJaxpr, Literal, Var, parted
from minijax.stage import check_arg, hoist_tracers, stage


def opened(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The same program, with the equations of compiled functions in place of their calls."""
    def run(closed: ClosedJaxpr, args: Sequence[Any]) -> list:
        values = dict(zip(closed.jaxpr.constvars, closed.consts, strict=True))
        values |= zip(closed.jaxpr.invars, args, strict=True)

        def of(atoms: Sequence[Any]) -> list:
            return [atom.value if isinstance(atom, Literal) else values[atom] for atom in atoms]

        for eqn in closed.jaxpr.eqns:
            given = of(eqn.invars)
            outs = (run(eqn.params["jaxpr"], given) if eqn.primitive is compiled.jit_p
                    else eqn.primitive.bind_list(*given, **eqn.params))
            values |= zip(eqn.outvars, outs, strict=True)
        return of(closed.jaxpr.outvars)
    return stage(lambda *args: run(closed, args), closed.in_avals, closed.jaxpr.debug_info)


def _keeping(unknown: Sequence[bool], args: Sequence[Any], *, jaxpr: ClosedJaxpr,
             policy: Callable[..., bool], **params: Any) -> Halves:
    """As without a policy, but what it keeps are more outputs now, and more inputs later."""
    flat = opened(jaxpr)
    inner = flat.jaxpr
    later = {v for v, u in zip(inner.invars, unknown, strict=True) if u}
    rest: list = []
    kept: list = []
    for eqn in inner.eqns:
        if later.intersection(v for v in eqn.invars if isinstance(v, Var)):
            later.update(eqn.outvars)
        elif not eqn.effects and policy(eqn.primitive, *(v.aval for v in eqn.invars),
                                        **eqn.params):
            kept += eqn.outvars
            continue
        rest.append(eqn)
    before = ClosedJaxpr(inner.replace(outvars=(*inner.outvars, *kept)), flat.consts)
    after = ClosedJaxpr(inner.replace(invars=(*inner.invars, *kept), eqns=rest), flat.consts)
    halves = split_jaxpr(before, unknown)
    outputs = rules.rearranged(halves.known, outputs=range(halves.unknown_out.count(False)))
    again = {"policy": policy, **params}
    return Halves(parted(args, unknown)[False], {"jaxpr": outputs, **again},
                  lambda residuals: [*args, *residuals],
                  {"jaxpr": after, **again, "differentiated": True},
                  halves.unknown_out[:len(inner.outvars)])


def _computing_again(unknown: Sequence[bool], args: Sequence[Any], *, jaxpr: ClosedJaxpr,
                     policy: Callable[..., bool] | None = None, **params: Any) -> Halves:
    """The known outputs now; the unknown ones later, with everything they need, from `args`."""
    if policy is not None:
        return _keeping(unknown, args, jaxpr=jaxpr, policy=policy, **params)
    params["policy"] = policy
    halves = split_jaxpr(jaxpr, unknown)
    outputs = rules.rearranged(halves.known, outputs=range(halves.unknown_out.count(False)))
    return Halves(parted(args, unknown)[False], {"jaxpr": outputs, **params},
                  lambda residuals: args, {"jaxpr": jaxpr, **params, "differentiated": True},
                  halves.unknown_out)


checkpoint_p = compiled.call_of_program("checkpoint", _computing_again, computes_again=True)


def checkpoint(fun: Callable | None = None, *, prevent_cse: bool = True,
               policy: Callable[..., bool] | None = None, static_argnums: Any = (),
               concrete: bool = False) -> Any:
    """A function whose backward pass computes its intermediate values again.

    Its derivative needs memory for the arguments only, and the time of a second forward pass.

    Args:
      fun: a function of arrays and trees of arrays.
      prevent_cse: accepted for JAX's sake; the second computation is never merged with the first.
      policy: says of a primitive, the types of its arguments and its parameters whether the
        result may be kept; `checkpoint_policies` has some.  None: nothing but the arguments.
      static_argnums: positions of arguments that are not arrays.

    Returns:
      A function of the same arguments.

    >>> import minijax as jax
    >>> f = checkpoint(lambda x: jax.numpy.sin(jax.numpy.sin(x)))
    >>> jax.grad(f)(0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    if fun is None:
        return functools.partial(checkpoint, prevent_cse=prevent_cse, policy=policy,
                                 static_argnums=static_argnums, concrete=concrete)
    static = arguments.as_tuple(static_argnums, int)

    @tracebacks.standing_for(fun)
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        flat, leaves = arguments.flattened(fun, args, "checkpoint / remat", False, kwargs, static)
        values = [check_arg(x) for x in leaves]
        closed, captured = hoist_tracers(flat.staged([x.aval for x in values]))
        outs = compiled.called(lambda: checkpoint_p.bind(
            *captured, *values, jaxpr=closed, name=source_info.function_name(fun),
            differentiated=False, policy=policy), lambda: flat(*values))
        return flat.result(outs)
    return checkpointed


remat = checkpoint
