"""Custom derivative rules, and functions that help to write them.

Builds on `custom.custom_jvp_vjp`.  Chapter 10, *Your own rules*.
In JAX: `jax/custom_derivatives.py`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import core, dtypes, tree_util
from minijax.transforms.arguments import flattened
from minijax.custom.custom_jvp_vjp import (CustomVJPPrimal, SymbolicZero, custom_jvp,
                                           custom_jvp_call_p, custom_vjp, custom_vjp_call_p,
                                           custom_vjp_primal_tree_values, zero_from_primal)
from minijax.custom.linear_solve import linear_call
from minijax.core.jaxpr import jaxpr_as_fun
from minijax.core.tracing import convert_constvars

__all__ = ["CustomVJPPrimal", "SymbolicZero", "closure_convert", "custom_gradient", "custom_jvp",
           "custom_jvp_call_p", "custom_vjp", "custom_vjp_call_p", "custom_vjp_primal_tree_values",
           "linear_call", "zero_from_primal"]


def closure_convert(fun: Callable, *example_args: Any) -> tuple[Callable, list[Any]]:
    """A function whose differentiable closed-over values are arguments.

    Args:
      fun: a function of arrays and trees of arrays.
      example_args: arguments of the types that it will be called with.

    Returns:
      A function of the same arguments followed by the tracers of inexact dtypes that it closed
      over; and these tracers.

    Raises:
      TypeError: on call, when the arguments are of another tree.

    >>> closure_convert(lambda x: x * 2.0, 1.0)[1]
    []
    """
    return _converted(fun, example_args, lambda x: (
        isinstance(x, core.Tracer) and dtypes.issubdtype(x.dtype, np.inexact)))


def _converted(fun: Callable, args: tuple, moves: Callable[[Any], bool]) -> tuple[Callable, list]:
    flat, leaves = flattened(fun, args, "closure_convert")
    closed, consts = convert_constvars(flat.staged(list(map(core.get_aval, leaves))), moves)
    in_tree, out_tree, num = tree_util.tree_structure(args), flat.out_tree, len(consts)

    def converted(*args_and_consts: Any) -> Any:
        count = len(args_and_consts) - num
        leaves, tree = tree_util.tree_flatten(args_and_consts[:count])
        if tree != in_tree:
            raise TypeError("The inputs to the closure produced by closure_convert must have the "
                            "same Pytree structure as the example arguments passed when "
                            f"closure_convert was called. Expected: {in_tree}, but got {tree}")
        return out_tree.unflatten(jaxpr_as_fun(closed)(*args_and_consts[count:], *leaves))
    return converted, list(consts)


def custom_gradient(fun: Callable) -> Callable:
    """A function that also returns its reverse derivative.

    Args:
      fun: returns ``(result, vjp)``, where `vjp` takes a cotangent of the result and returns a
        tuple of the arguments' cotangents, or that of a single argument.

    Returns:
      A function of the same arguments that returns the result.

    >>> import minijax
    >>> f = custom_gradient(lambda x: (x * x, lambda ct: (10.0 * x * ct,)))
    >>> minijax.grad(f)(3.0)
    Array(30., dtype=float32, weak_type=True)
    """
    @custom_vjp
    def wrapped_fun(*args: Any, **kwargs: Any) -> Any:
        result, _ = fun(*args, **kwargs)
        return result

    def fwd(*args: Any, **kwargs: Any) -> tuple[Any, tree_util.Partial]:
        result, vjp = fun(*args, **kwargs)
        converted, consts = _converted(vjp, (result,), lambda x: True)
        return result, tree_util.Partial(lambda consts, ct: converted(ct, *consts), consts)

    def bwd(vjp: Callable, cotangent: Any) -> tuple:
        cotangents = vjp(cotangent)
        return (cotangents,) if tree_util.all_leaves([cotangents]) else cotangents
    wrapped_fun.defvjp(fwd, bwd)
    return wrapped_fun
