"""Policies of checkpointing, names of values for them, and the residuals of a derivative.

Builds on `derivatives`, `custom.checkpoint`.  Chapter 10.  In JAX: `jax/ad_checkpoint.py`.
"""

from collections.abc import Callable
from typing import Any

from minijax.transforms import api, derivatives
from minijax.util import source_info
from minijax import tree_util
from minijax.core import ShapedArray
from minijax.custom.checkpoint import checkpoint, checkpoint_p, remat
from minijax.transforms.compiled import jit_p
from minijax.custom.checkpoint_policies import (Offloadable, Recompute, Saveable, checkpoint_name,
                                                checkpoint_policies, name_p)
from minijax.custom.remat import inline_calls
from minijax.core.jaxpr import Jaxpr, JaxprEqn, Literal

__all__ = ["Offloadable", "Recompute", "Saveable", "checkpoint", "checkpoint_name",
           "checkpoint_policies", "print_saved_residuals", "remat"]


def saved_residuals(f: Callable, *args: Any, **kwargs: Any) -> list[tuple[ShapedArray, str]]:
    """The types of the residuals that a derivative saves for its backward pass, and their origins.

    >>> from minijax import numpy as jnp
    >>> ones = jnp.ones(3)
    >>> saved_residuals(lambda x: x * ones, 2.0)
    [(ShapedArray(float32[3]), 'from a constant')]
    """
    leaves, tree = tree_util.tree_flatten((args, kwargs))

    def residuals(*leaves: Any) -> list:
        def of_leaves(*leaves: Any) -> Any:
            args, kwargs = tree_util.tree_unflatten(tree, leaves)
            return f(*args, **kwargs)
        return tree_util.tree_leaves(derivatives.vjp(of_leaves, *leaves)[1])
    names = source_info.describe(f, args, kwargs, "saved_residuals").arg_names
    return _origins(inline_calls(api.make_jaxpr(residuals)(*leaves), checkpoint_p).jaxpr, names)


def print_saved_residuals(f: Callable, *args: Any, **kwargs: Any) -> None:
    """Print the types of the residuals that a derivative saves for its backward pass.

    Args:
      f: a function of arrays and trees of arrays.
      args, kwargs: its arguments.

    >>> from minijax import numpy as jnp
    >>> def f(x, weights):
    ...     return jnp.sin(x * 2) @ weights["w"]
    >>> print_saved_residuals(f, jnp.ones(3), {"w": jnp.ones((3, 4))})
    f32[3,4] from the argument weights['w']
    f32[3] output of sin from <doctest minijax.ad_checkpoint.print_saved_residuals[1]>:2:11 (f)
    f32[3] output of cos from <doctest minijax.ad_checkpoint.print_saved_residuals[1]>:2:11 (f)
    """
    for aval, origin in saved_residuals(f, *args, **kwargs):
        print(aval.str_short(True), origin)


def _origins(jaxpr: Jaxpr, names: source_info.Names) -> list[tuple[ShapedArray, str]]:
    """The types of a program's outputs, and where they come from, in its order."""
    outvars = set(jaxpr.outvars)
    return [*((x.aval, "from a literal") for x in jaxpr.outvars if isinstance(x, Literal)),
            *((v.aval, "from a constant") for v in jaxpr.constvars if v in outvars),
            *((v.aval, f"from the argument {name}")
              for v, name in zip(jaxpr.invars, names, strict=True) if v in outvars),
            *((v.aval, _origin(eqn)) for eqn in jaxpr.eqns for v in eqn.outvars if v in outvars)]


def _origin(eqn: JaxprEqn) -> str:
    """The operation that computed a value, and its line."""
    place = eqn.source_info.place if eqn.source_info else "unknown"
    operation = (f"named {eqn.params['name']!r}" if eqn.primitive is name_p else
                 f"output of jitted function {eqn.params['name']!r}" if eqn.primitive is jit_p else
                 f"output of {eqn.primitive}")
    return f"{operation} from {place}"
