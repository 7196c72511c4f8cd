"""Decorators of special functions: promotion of the arguments, and derivatives.

Builds on `numpy`, `custom_jvp_vjp`.
In JAX: `promote_args_inexact` and `defjvps` in `jax/_src/scipy/special.py`.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import lax, numpy as jnp, tree_util
from minijax.transforms.arguments import bound
from minijax.custom.custom_jvp_vjp import SymbolicZero, custom_jvp, sum_of_tangents
from minijax.transforms.jit import jit
from minijax.numpy.arguments import ArrayLike, promote_args_inexact, promote_args_real


def promote_to_float(function: Callable, promote: Callable[..., list[Any]] = promote_args_inexact
                     ) -> Callable[..., Any]:
    """The function, with its arguments promoted to one floating dtype and one rank."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        binding = bound(signature, function.__name__, args, kwargs)
        binding.apply_defaults()
        return function(*promote(function.__qualname__, *binding.args))
    return call


def differentiable(function: Callable, *slopes: Callable | None) -> Any:
    """The function with a derivative rule for each argument, None where there is none.

    A rule is not called for a symbolic zero tangent: where the derivative is infinite, its product
    with zero would be nan.
    """
    defined = custom_jvp(function)

    def jvp(primals: tuple, tangents: tuple) -> tuple:
        out = defined(*primals)
        terms = [slope(t, out, *primals) for slope, t in zip(slopes, tangents, strict=True)
                 if slope and not isinstance(t, SymbolicZero)]
        return out, sum_of_tangents(terms, out)
    defined.defjvp(jvp, symbolic_zeros=True)
    return defined


def with_derivatives(*slopes: Callable) -> Callable[[Callable], Any]:
    """`promote_to_float` with derivatives: a rule ``(tangent, result, *arguments)`` an argument."""
    return lambda function: promote_to_float(differentiable(function, *slopes))


def promote_to_real(*slopes: Callable | None) -> Callable[[Callable], Any]:
    """The same for real numbers, jitted; half precision is computed in float32.

    Raises:
      ValueError: for complex numbers.
    """
    def decorate(function: Callable) -> Any:
        compiled = differentiable(jit(function), *slopes)

        @functools.wraps(function)
        def call(*args: Any) -> Any:
            dtype = args[0].dtype
            wide = np.promote_types(dtype, np.float32)
            result = compiled(*(lax.convert_element_type(x, wide) for x in args))
            return tree_util.tree_map(lambda x: lax.convert_element_type(x, dtype), result)
        return promote_to_float(call, promote_args_real)
    return decorate


def strong_float(x: ArrayLike) -> Any:
    """x as a float32 or float64 array of no weak type.

    Raises:
      TypeError: for other dtypes.
    """
    x = jnp.asarray(x)
    if x.dtype not in (jnp.float32, jnp.float64):
        raise TypeError(f"x.dtype={x.dtype} is not supported, see docstring for supported types.")
    return lax.convert_element_type(x, x.dtype)
