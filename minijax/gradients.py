"""Gradients, Jacobians and Hessians, as users call them: `grad`, `jacfwd`, `jacrev`, `hessian`.

Stands on `derivatives`, and for Jacobians on `vmap`.  Chapters 03 and 07.
In JAX: `jax/_src/api.py`.
"""

import operator
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from minijax import api, core, dtypes, errors, tracebacks, tree_util
from minijax.core import Array, dtype_name
from minijax.derivatives import Linearized, at_point, check_arg, jvp, no_reduce_axes, vjp
from minijax.higher_order.arguments import Filled, check_callable
from minijax.higher_order.jit import jit
from minijax.interpreters.linearize import linearize_flat
from minijax.primitives import convert, emitted, slicing

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
    return _by_argnums(fun, argnums, _value_and_gradient(
        argnums, has_aux, holomorphic, allow_int, "grad",
        lambda value, gradients: (gradients, value[1]) if has_aux else gradients))


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
    return _by_argnums(fun, argnums, _value_and_gradient(
        argnums, has_aux, holomorphic, allow_int, "value_and_grad",
        lambda value, gradients: (value, gradients)))


def _value_and_gradient(argnums: Argnums, has_aux: bool, holomorphic: bool, allow_int: bool,
                        name: str, returned: Callable[[Any, Any], Any]
                        ) -> Callable[[Callable, tuple], Any]:
    """What a user's transformation of this name makes of a function and of where it is taken.

    `returned` is what it returns of the value, with aux where there is one, and the gradients.
    """
    def value_and_gradient(partial: Callable, chosen: tuple) -> Any:
        _check_inputs(chosen, name, holomorphic, allow_int)
        point = at_point(partial, chosen, name, has_aux)
        at = Linearized(point, core.leaving_no_tracer(linearize_flat)(*point))
        _check_scalar(at.result)
        aval = at.outs[0].aval
        kind = "integer" if dtypes.issubdtype(aval.dtype, np.integer) else dtype_name(aval.dtype)
        advice = f"For differentiation of functions with {kind} outputs, use jax.vjp directly."
        if aval.dtype.kind == "c":
            advice = NOT_HOLOMORPHIC.format("complex outputs", "jax.vjp")
        _check_real(at.result, name, "outputs", holomorphic, advice)
        one = core.ArrayImpl(np.ones((), aval.dtype), aval, is_literal=True)
        gradients = _as_asked(argnums, at.pull_back([one]))
        return returned(at.flat.with_aux(at.result) if has_aux else at.result, gradients)
    return value_and_gradient


def _by_argnums(fun: Callable, argnums: Any, derive: Callable[[Callable, tuple], Any]) -> Callable:
    """A function of the arguments of `fun`: what `derive` makes of it as a function of the chosen
    arguments alone, and of these.
    """
    check_callable(fun)
    several = (argnums,) if hasattr(argnums, "__index__") else argnums
    numbers = tuple(map(operator.index, several))

    @tracebacks.standing_for(fun)
    def derived(*args: Any, **kwargs: Any) -> Any:
        for i in numbers:
            if not -len(args) <= i < len(args):
                need = i + 1 if i >= 0 else -i
                raise TypeError(f"differentiating with respect to argnums={i} requires at least "
                                f"{need} positional arguments to be passed by the caller, but got "
                                f"only {len(args)} positional arguments.")
        places = [i % len(args) for i in numbers]
        return derive(Filled(fun, args, places, kwargs), tuple(args[i] for i in places))
    return derived


def _as_asked(argnums: Any, of_each: tuple) -> Any:
    """What belongs to the chosen arguments; where one was asked for by its number, its own."""
    return of_each[0] if isinstance(argnums, int) else of_each


def _check_inputs(chosen: tuple, name: str, holomorphic: bool, allow_int: bool) -> None:
    for x in tree_util.tree_leaves(chosen):
        dtype = check_arg(x, ".").dtype
        if holomorphic:
            _check_real(x, name, "inputs", holomorphic)
        elif not dtypes.issubdtype(dtype, np.inexact) and not allow_int:
            raise errors.with_cure(
                TypeError(f"{name} requires real- or complex-valued inputs (input dtype that is a "
                          f"sub-dtype of np.inexact), but got {dtype_name(dtype)}. If you "
                          "want to use Boolean- or integer-valued inputs, use vjp or set "
                          "allow_int to True."),
                "Derivatives are of floats: write 2.0 in place of 2, or x.astype(float).")


NOT_HOLOMORPHIC = ("For holomorphic differentiation, pass holomorphic=True. For differentiation of "
                   "non-holomorphic functions involving {}, use {} directly.")


def _check_real(tree: Any, name: str, what: str, holomorphic: bool, advice: str = "") -> None:
    """Refuse what is not real; or, where a complex function is promised, not complex."""
    for x in tree_util.tree_leaves(tree):
        dtype = check_arg(x, ".").dtype
        if dtypes.issubdtype(dtype, np.complexfloating if holomorphic else np.floating):
            continue
        got = dtype_name(dtype)
        if holomorphic:
            raise TypeError(f"{name} with holomorphic=True requires {what} with complex dtype, "
                            f"but got {got}.")
        raise TypeError(f"{name} requires real-valued {what} ({what[:-1]} dtype that is a "
                        f"sub-dtype of np.floating), but got {got}. {advice}")


def _check_scalar(value: Any) -> None:
    if not isinstance(value, Array):
        raise TypeError("Gradient only defined for scalar-output functions. "
                        f"Output was {value}.")
    if value.shape != ():
        raise errors.with_cure(
            TypeError("Gradient only defined for scalar-output functions. "
                      f"Output had shape: {value.shape}."),
            "Return one number, such as the sum or the mean; or use vmap(grad(f)) for the "
            "derivative of each, jacobian(f) for all of them.")


def fwd_and_bwd(fun: Callable, argnums: Argnums, has_aux: bool = False, jitted: bool = True
                ) -> tuple[Callable, Callable]:
    """The forward and the backward pass of a function, each compiled once.

    Args:
      fun: a function of arrays and trees of arrays.
      argnums: the argument, or the arguments, to differentiate by.
      has_aux: `fun` returns (result, aux); so does the forward pass, behind the residuals.
      jitted: whether to compile both.

    Returns:
      ``fwd(*args) -> (result, residuals)``, and ``bwd(residuals, cotangent) -> cotangents``.

    >>> fwd, bwd = fwd_and_bwd(lambda x, y: x * y, argnums=1)
    >>> y, residuals = fwd(3.0, 4.0)
    >>> bwd(residuals, 1.0)
    Array(3., dtype=float32, weak_type=True)
    """
    fwd = _by_argnums(fun, argnums, lambda partial, chosen: vjp(partial, *chosen, has_aux=has_aux))

    def bwd(residuals: Callable, cotangent: Any) -> Any:
        return _as_asked(argnums, residuals(cotangent))
    return (jit(fwd), jit(bwd)) if jitted else (fwd, bwd)


# ── Jacobians ────────────────────────────────────────────────────────────────────────────────

def jacfwd(fun: Callable, argnums: Argnums = 0, has_aux: bool = False,
           holomorphic: bool = False) -> Callable:
    """The Jacobian, column by column with forward derivatives: good for few inputs.

    Args:
      fun: a function of arrays and trees of arrays.
      argnums: the argument, or the arguments, to differentiate by.
      has_aux: `fun` returns (result, aux); so does the Jacobian function.
      holomorphic: promise that a complex function is holomorphic.

    Returns:
      A function of the same arguments; each leaf has the result's shape, then the argument's.

    >>> jacfwd(lambda x: x ** 2)(np.array([1.0, 2.0], np.float32))
    Array([[2., 0.],
           [0., 4.]], dtype=float32)
    """
    def jacobian(partial: Callable, chosen: tuple) -> Any:
        _check_real(chosen, "jacfwd", "inputs", holomorphic, NOT_HOLOMORPHIC.format(
            "complex inputs or integer inputs", "jax.jvp"))

        def push(direction: Any) -> Any:
            out, tangent, *aux = jvp(partial, chosen, direction, has_aux=has_aux)
            tangent = tree_util.tree_map(_part_of_jacobian, tangent, out)
            return (tangent, *aux) if has_aux else tangent
        out_axes = -1 if not has_aux else (-1, None)
        columns = api.vmap(push, out_axes=out_axes)(_basis(chosen))
        columns, *aux = columns if has_aux else (columns,)
        result = tree_util.tree_map(
            lambda c: _unravel_axis(c, _as_asked(argnums, chosen), -1), columns)
        return (result, *aux) if has_aux else result
    return _by_argnums(fun, argnums, jacobian)


def jacrev(fun: Callable, argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False,
           allow_int: bool = False) -> Callable:
    """The Jacobian, row by row with reverse derivatives: good for few outputs.

    Takes the arguments of `jacfwd` and returns what it returns; with `allow_int`, integer
    arguments have `float0` Jacobians.

    >>> jacrev(lambda x: x ** 2)(np.array([1.0, 2.0], np.float32))
    Array([[2., 0.],
           [0., 4.]], dtype=float32)
    """
    def jacobian(partial: Callable, chosen: tuple) -> Any:
        _check_inputs(chosen, "jacrev", holomorphic, allow_int)
        out, pull, *aux = vjp(partial, *chosen, has_aux=has_aux)
        _check_real(out, "jacrev", "outputs", holomorphic, NOT_HOLOMORPHIC.format(
            "complex outputs or integer outputs", "jax.vjp"))
        rows = api.vmap(pull)(_basis(out))
        rows = _as_asked(argnums, tree_util.tree_map(_as_weak_as, rows, chosen))
        # the result's tree is outside and the argument's inside, as in `jacfwd`
        tree = tree_util.tree_structure(_as_asked(argnums, chosen))
        split = tree_util.tree_map(lambda r: _unravel_axis(r, out, 0), rows)
        result = tree_util.tree_transpose(tree, tree_util.tree_structure(out), split)
        return (result, *aux) if has_aux else result
    return _by_argnums(fun, argnums, jacobian)


jacobian = jacrev


def hessian(fun: Callable, argnums: Argnums = 0, has_aux: bool = False,
            holomorphic: bool = False) -> Callable:
    """The matrix of second derivatives of a function.

    Takes the arguments of `jacfwd`.

    >>> hessian(lambda x: (x ** 3).sum())(np.array([1.0, 2.0], np.float32))
    Array([[ 6.,  0.],
           [ 0., 12.]], dtype=float32)
    """
    return jacfwd(jacrev(fun, argnums, has_aux, holomorphic), argnums, has_aux, holomorphic)


def _part_of_jacobian(tangent: Any, out: Any) -> Any:
    """A tangent as part of a Jacobian: what does not vary has zeros of its own dtype."""
    return emitted.zeros(out.aval) if tangent.dtype == dtypes.float0 else _as_weak_as(tangent, out)


def _as_weak_as(derivative: Any, x: Any) -> Any:
    """A part of a Jacobian, weakly typed where the value that it belongs to is."""
    if derivative.dtype == dtypes.float0:
        return derivative
    return convert.converted(derivative, derivative.dtype, core.get_aval(x).weak_type)


def _basis(tree: Any) -> Any:
    """The unit vectors of a tree of arrays, stacked along a new leading axis of every leaf."""
    leaves, treedef = tree_util.tree_flatten(tree)
    avals = [check_arg(x).aval.to_tangent_aval() for x in leaves]
    total, start = sum(a.size for a in avals), 0
    parts: list[Any] = []
    for aval in avals:
        if aval.dtype == dtypes.float0:
            parts.append(np.zeros((total, *aval.shape), dtypes.float0))
        else:
            block = np.eye(total, aval.size, -start, aval.dtype)
            stacked = aval.update(shape=(total, *aval.shape))
            parts.append(core.array_from_buffer(block.reshape(stacked.shape), stacked))
        start += aval.size
    return tree_util.tree_unflatten(treedef, parts)


def _unravel_axis(x: Any, tree: Any, axis: int) -> Any:
    """Cut an axis over all elements of a tree into the tree's leaves, each in its shape."""
    leaves, treedef = tree_util.tree_flatten(tree)
    axis = axis % x.ndim
    start = 0
    parts: list[Any] = []
    for shape in map(np.shape, leaves):
        stop = start + int(np.prod(shape, dtype=int))
        wanted = (*x.shape[:axis], *shape, *x.shape[axis + 1:])
        if isinstance(x, np.ndarray):  # float0, which only NumPy holds
            parts.append(np.zeros(wanted, x.dtype))
        else:
            parts.append(emitted.reshaped(slicing.slice_in_dim(x, start, stop, axis=axis), wanted))
        start = stop
    return tree_util.tree_unflatten(treedef, parts)
