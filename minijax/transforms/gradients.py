"""The public gradients: `grad`, `value_and_grad`.

Builds on `derivatives`.  Chapter 07, *Reverse derivatives*.  In JAX: `jax/_src/api.py`.
"""

import operator
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from minijax import core, dtypes, errors, tree_util
from minijax.core import Array, dtype_name
from minijax.core.linearize import linearize_flat
from minijax.transforms.arguments import Filled, check_function
from minijax.transforms.derivatives import Linearized, at_point, check_arg, no_reduce_axes
from minijax.util import tracebacks

Argnums = int | Sequence[int]


# ── Gradients ────────────────────────────────────────────────────────────────────────────────

def grad(fun: Callable, argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False,
         allow_int: bool = False, reduce_axes: Sequence[Hashable] = ()) -> Callable:
    """The gradient of a function with a scalar result.

    Args:
      fun: returns a real scalar; with `has_aux`, a pair of it and anything.
      argnums: the argument, or the arguments, to differentiate by.
      has_aux: `fun` returns (scalar, aux); the gradient function returns (gradient, aux).
      holomorphic: promise that a complex function is holomorphic.
      allow_int: let integer arguments have `float0` gradients.
      reduce_axes: empty; JAX refuses others, too.

    Returns:
      A function of the same arguments that returns the gradient, in the argument's tree.

    Raises:
      TypeError: on call, when the result is no real scalar, or an argument no real array.

    >>> grad(lambda x: x ** 2)(3.0)
    Array(6., dtype=float32, weak_type=True)
    """
    no_reduce_axes("grad", reduce_axes)
    return by_argnums(fun, argnums, _value_and_gradient(
        argnums, has_aux, holomorphic, allow_int, "grad",
        lambda value, gradients: (gradients, value[1]) if has_aux else gradients),
        "Gradient", "the gradient, which has the same shape as the arguments")


def value_and_grad(fun: Callable, argnums: Argnums = 0, has_aux: bool = False,
                   holomorphic: bool = False, allow_int: bool = False,
                   reduce_axes: Sequence[Hashable] = ()) -> Callable:
    """A function's scalar value and its gradient, in one pass.

    Takes the arguments of `grad`, and raises what `grad` raises.

    Returns:
      A function of the same arguments that returns ``(value, gradient)``, or
      ``((value, aux), gradient)``.

    >>> value_and_grad(lambda x: x ** 2)(3.0)
    (Array(9., dtype=float32, weak_type=True), Array(6., dtype=float32, weak_type=True))
    """
    no_reduce_axes("grad", reduce_axes)
    return by_argnums(fun, argnums, _value_and_gradient(
        argnums, has_aux, holomorphic, allow_int, "value_and_grad",
        lambda value, gradients: (value, gradients)), "Value and gradient",
        "a two-element tuple where the first element is the value of {fun} and the second element "
        "is the gradient, which has the same shape as the arguments")


def _value_and_gradient(argnums: Argnums, has_aux: bool, holomorphic: bool, allow_int: bool,
                        name: str, returned: Callable[[Any, Any], Any]
                        ) -> Callable[[Callable, tuple], Any]:
    """The public transformation of this name, from a function and a point to its results.

    `returned` selects these from the value (with aux, if there is one) and the gradients.
    """
    def value_and_gradient(partial: Callable, chosen: tuple) -> Any:
        check_inputs(chosen, "grad", holomorphic, allow_int)
        point = at_point(partial, chosen, name, has_aux)
        at = Linearized(point, core.leaving_no_tracer(linearize_flat)(*point))
        _check_scalar(at.result)
        check_real(at.result, "grad", "outputs", holomorphic)
        gradients = as_chosen(argnums, at.pull_back([core.repeated(1, at.outs[0].aval)]))
        return returned(at.flat.with_aux(at.result) if has_aux else at.result, gradients)
    return value_and_gradient


def by_argnums(fun: Callable, argnums: Any, derive: Callable[[Callable, tuple], Any], what: str,
               returned: str) -> Callable:
    """A function of the arguments of `fun` that returns `derive` of `fun`, as a function of the
    chosen arguments alone, and of these arguments.

    Its docstring says `what` it is and what is `returned`.
    """
    check_function(fun)
    several = (argnums,) if hasattr(argnums, "__index__") else argnums
    numbers = tuple(map(operator.index, several))

    @tracebacks.standing_for(fun)
    def derived(*args: Any, **kwargs: Any) -> Any:
        for i in numbers:
            if not -len(args) <= i < len(args):
                need = max(numbers) + 1 if i >= 0 else -i
                raise TypeError(f"differentiating with respect to {argnums=} requires at least "
                                f"{need} positional arguments to be passed by the caller, but got "
                                f"only {len(args)} positional arguments.")
        places = [i % len(args) for i in numbers]
        if len({*places}) < len(places):
            raise TypeError(f"an argument is chosen once at most, got {argnums=} for "
                            f"{len(args)} positional arguments.")
        return derive(Filled(fun, args, places, kwargs), tuple(args[i] for i in places))
    name = derived.__name__
    derived.__doc__ = (
        f"{what} of {name} with respect to positional argument(s) {argnums}. Takes the same "
        f"arguments as {name} but returns {returned.format(fun=name)} at positions {argnums}.")
    return derived


def as_chosen(argnums: Any, of_each: tuple) -> Any:
    """The values for the chosen arguments; a single one if `argnums` is an integer."""
    return of_each[0] if hasattr(argnums, "__index__") else of_each


def check_inputs(chosen: tuple, name: str, holomorphic: bool, allow_int: bool) -> None:
    for x in tree_util.tree_leaves(chosen):
        dtype = check_arg(x, ".").dtype
        if holomorphic:
            check_real(x, name, "inputs", holomorphic)
        elif not dtypes.issubdtype(dtype, np.inexact) and not allow_int:
            raise errors.with_cure(
                TypeError(f"{name} requires real- or complex-valued inputs (input dtype that is a "
                          f"sub-dtype of np.inexact), but got {dtype_name(dtype)}. If you "
                          "want to use Boolean- or integer-valued inputs, use vjp or set "
                          "allow_int to True."),
                "Derivatives are of floats: write 2.0 in place of 2, or x.astype(float).")


_NOT_HOLOMORPHIC = ("holomorphic differentiation, pass holomorphic=True. For differentiation of "
                    "non-holomorphic functions involving complex ")


def check_real(tree: Any, name: str, what: str, holomorphic: bool) -> None:
    """Refuse values that are not real; for a holomorphic function, not complex."""
    for x in tree_util.tree_leaves(tree):
        dtype = check_arg(x, ".").dtype
        if dtypes.issubdtype(dtype, np.complexfloating if holomorphic else np.floating):
            continue
        got = dtype_name(dtype)
        if holomorphic:
            raise TypeError(f"{name} with holomorphic=True requires {what} with complex dtype, "
                            f"but got {got}.")
        cure = (_NOT_HOLOMORPHIC + "inputs or integer inputs, use jax.jvp" if what == "inputs" else
                _NOT_HOLOMORPHIC + "outputs, use jax.vjp" if dtype.kind == "c" else
                "differentiation of functions with integer outputs, use jax.vjp")
        raise TypeError(f"{name} requires real-valued {what} ({what[:-1]} dtype that is a "
                        f"sub-dtype of np.floating), but got {got}. For {cure} directly.")


def _check_scalar(value: Any) -> None:
    if not isinstance(value, Array):
        raise TypeError(f"Gradient only defined for scalar-output functions. Output was {value}.")
    if value.shape != ():
        raise errors.with_cure(
            TypeError("Gradient only defined for scalar-output functions. "
                      f"Output had shape: {value.shape}."),
            "Return one number, such as the sum or the mean; or use vmap(grad(f)) for the "
            "derivative of each, jacobian(f) for all of them.")
