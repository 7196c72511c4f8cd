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
from minijax.jaxpr import ClosedJaxpr, parted
from minijax.stage import check_arg, hoist_tracers


def _computing_again(unknown: Sequence[bool], args: Sequence[Any], *, jaxpr: ClosedJaxpr,
                     **params: Any) -> Halves:
    """The known outputs now; the unknown ones later, with everything they need, from `args`."""
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
      policy: only None: nothing but the arguments is kept.
      static_argnums: positions of arguments that are not arrays.

    Returns:
      A function of the same arguments.

    Raises:
      NotImplementedError: for a policy; leave it out, or checkpoint smaller functions.

    >>> import minijax as jax
    >>> f = checkpoint(lambda x: jax.numpy.sin(jax.numpy.sin(x)))
    >>> jax.grad(f)(0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    if fun is None:
        return functools.partial(checkpoint, prevent_cse=prevent_cse, policy=policy,
                                 static_argnums=static_argnums, concrete=concrete)
    if policy is not None:
        # JAX: a policy says of each equation whether its result may be kept.
        raise NotImplementedError("checkpoint keeps nothing but the arguments; leave `policy` "
                                  "out, or apply checkpoint to smaller functions.")
    static = arguments.as_tuple(static_argnums, int)

    @tracebacks.standing_for(fun)
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        flat, leaves = arguments.flattened(fun, args, "checkpoint / remat", False, kwargs, static)
        values = [check_arg(x) for x in leaves]
        closed, captured = hoist_tracers(flat.staged([x.aval for x in values]))
        outs = compiled.called(lambda: checkpoint_p.bind(
            *captured, *values, jaxpr=closed, name=source_info.function_name(fun),
            differentiated=False), lambda: flat(*values))
        return flat.result(outs)
    return checkpointed


remat = checkpoint
