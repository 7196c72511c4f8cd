"""Derivatives as users call them: `grad`, `vjp`, `jvp`, `linearize`, Jacobians and Hessians.

Stands on the interpreters.  Chapters 03 and 07.  In JAX: `jax/_src/api.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import core, dtypes, errors, source_info, tree_util
from minijax.core import Array, ShapedArray, Zero
from minijax.higher_order.arguments import Filled
from minijax.interpreters.jvp import jvp_flat
from minijax.interpreters.linearize import LinearProgram, linearize_flat
from minijax.interpreters.split import separated
from minijax.interpreters.transpose import backward_pass
from minijax.primitives.emitted import instantiate
from minijax.source_info import DebugInfo
from minijax.stage import FlatFunction, stage
from minijax.tracebacks import api_boundary
from minijax.tree_util import equality_errors_pytreedef

Argnums = int | Sequence[int]


# ── Flat arguments and the trees around them ─────────────────────────────────────────────────

def check_callable(fun: Any) -> None:
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun}")


def check_arg(x: Any) -> Array:
    """`x` as an array, or the error that says what it is instead."""
    try:
        return core.as_value(x)
    except TypeError:
        raise TypeError(f"Argument '{x}' of type {type(x)} is not a valid JAX type") from None


class AuxFunction:
    """A function that returns (result, aux) as one that returns its result; keeps the aux."""

    def __init__(self, fun: Callable):
        functools.update_wrapper(self, fun)
        self.fun, self.aux = fun, None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        pair = self.fun(*args, **kwargs)
        if not (isinstance(pair, tuple | list) and len(pair) == 2):
            raise TypeError("expected function with aux output to return a two-element tuple, "
                            f"but got type {type(pair)} with value {pair!r}")
        result, aux = pair
        # without the wrapping of the transformation that runs the function
        trace = core.current_trace.get()
        self.aux = tree_util.tree_map(lambda x: x.primal if trace.owns(x) else x, aux)
        return result


# ── Forward ──────────────────────────────────────────────────────────────────────────────────

def jvp(fun: Callable, primals: Sequence[Any], tangents: Sequence[Any],
        has_aux: bool = False) -> Any:
    """A function's value and its derivative along a direction.

    Args:
      fun: a function of arrays and trees of arrays.
      primals: the point: a tuple or list of arguments.
      tangents: the direction: the same trees, shapes and dtypes (`float0` for integers).
      has_aux: `fun` returns (result, aux); aux is passed through.

    Returns:
      ``(result, tangent of the result)``, and aux if asked for.

    Raises:
      TypeError: when primals and tangents differ in tree or dtype.
      ValueError: when they differ in shape.

    >>> jvp(lambda x: x * x, (3.0,), (1.0,))
    (Array(9., dtype=float32, weak_type=True), Array(6., dtype=float32, weak_type=True))
    """
    check_callable(fun)
    if not (isinstance(primals, tuple | list) and isinstance(tangents, tuple | list)):
        raise TypeError("primal and tangent arguments to jax.jvp must be tuples or lists; found "
                        f"{type(primals).__name__} and {type(tangents).__name__}.")
    leaves, in_tree = tree_util.tree_flatten(tuple(primals))
    dots, dot_tree = tree_util.tree_flatten(tuple(tangents))
    if in_tree != dot_tree:
        raise TypeError("primal and tangent arguments to jax.jvp must have the same tree "
                        f"structure; primals have tree structure {in_tree} whereas tangents "
                        f"have tree structure {dot_tree}.")
    points = [check_arg(x) for x in leaves]
    directions = [_check_direction(x, check_arg(t)) for x, t in zip(points, dots, strict=True)]
    aux_fun: Any = AuxFunction(fun) if has_aux else fun
    info = source_info.describe(fun, tuple(primals), {}, "jvp")
    flat = FlatFunction(aux_fun, _with_no_keywords(in_tree), info)
    outs, out_dots = jvp_flat(flat, points, directions, info)
    assert flat.out_tree is not None
    result = tree_util.tree_unflatten(flat.out_tree, outs)
    tangent = tree_util.tree_unflatten(flat.out_tree, map(public_tangent, out_dots))
    if has_aux:
        return result, tangent, aux_fun.aux
    return result, tangent


def _with_no_keywords(args_tree: tree_util.PyTreeDef) -> tree_util.PyTreeDef:
    return tree_util.treedef_tuple([args_tree, tree_util.tree_structure({})])


def _check_direction(x: Array, t: Array) -> Array | Zero:
    want = x.aval.to_tangent_aval()
    if want.dtype != t.dtype:
        raise TypeError(
            "primal and tangent arguments to jax.jvp do not match; dtypes must be equal, or in "
            "case of int/bool primal dtype the tangent dtype must be float0."
            f"Got primal dtype {x.dtype} and so expected tangent dtype {want.dtype}, but got "
            f"tangent dtype {t.dtype} instead.")
    if x.shape != t.shape:
        raise ValueError("jvp called with different primal and tangent shapes;"
                         f"Got primal shape {x.shape} and tangent shape as {t.shape}")
    return Zero(want) if t.dtype == dtypes.float0 else t


def public_tangent(t: Any) -> Any:
    """A tangent or cotangent as users see it: an array of zeros instead of a symbolic one."""
    if isinstance(t, Zero) and t.aval.dtype == dtypes.float0:
        return np.zeros(t.aval.shape, dtypes.float0)
    return instantiate(t)


# ── Linearize, vjp ───────────────────────────────────────────────────────────────────────────

class Linearized:
    """A function at a point: value, derivative as a program, and the trees around them."""

    def __init__(self, fun: Callable, args: tuple, kwargs: dict, traced_for: str,
                 has_aux: bool = False):
        check_callable(fun)
        self.info: DebugInfo = source_info.describe(fun, args, kwargs, traced_for)
        leaves, self.in_tree = tree_util.tree_flatten(args)
        self.primals = [check_arg(x) for x in leaves]
        target: Any = AuxFunction(fun) if has_aux else fun
        filled = functools.partial(target, **kwargs) if kwargs else target
        flat = FlatFunction(filled, _with_no_keywords(self.in_tree), self.info)
        self.outs, self.program = linearize_flat(flat, self.primals, self.info)
        assert flat.out_tree is not None
        self.out_tree = flat.out_tree
        self.aux = target.aux if has_aux else None

    @property
    def result(self) -> Any:
        return tree_util.tree_unflatten(self.out_tree, self.outs)


def linearize(fun: Callable, *primals: Any, has_aux: bool = False) -> Any:
    """A function's value, and its derivative there as a function of tangents.

    Args:
      fun: a function of arrays and trees of arrays.
      primals: the point.
      has_aux: `fun` returns (result, aux); aux is passed through.

    Returns:
      ``(result, derivative)``, and aux if asked for; the derivative repeats no primal work.

    Raises:
      ValueError: when the derivative is given tangents of other types.

    >>> y, dy = linearize(lambda x: x * x, 3.0)
    >>> y, dy(1.0)
    (Array(9., dtype=float32, weak_type=True), Array(6., dtype=float32, weak_type=True))
    """
    at = Linearized(fun, primals, {}, "linearize", has_aux)

    @api_boundary
    def derivative(*tangents: Any) -> Any:
        dots, tree = tree_util.tree_flatten(tangents)
        if tree != at.in_tree:
            raise ValueError("unexpected tree structure of the tangents of a linearized "
                             f"function: expected {at.in_tree}, got {tree}.")
        values = [check_arg(t) for t in dots]
        for x, t in zip(at.primals, values, strict=True):
            _check_linear_input(x.aval, t.aval)
        return tree_util.tree_unflatten(at.out_tree, at.program(*values))

    return (at.result, derivative, at.aux) if has_aux else (at.result, derivative)


def _check_linear_input(primal: ShapedArray, got: ShapedArray) -> None:
    want = primal.to_tangent_aval()
    if (want.shape, want.dtype) != (got.shape, got.dtype):
        raise ValueError("linearized function called on tangent values inconsistent with the "
                         f"original primal values:\nGot tangent aval {got.str_long()} for primal "
                         f"aval {primal.str_long()} but expected {want.str_long()}.")


def vjp(fun: Callable, *primals: Any, has_aux: bool = False) -> Any:
    """A function's value, and the transpose of its derivative there.

    Args:
      fun: a function of arrays and trees of arrays.
      primals: the point.
      has_aux: `fun` returns (result, aux); aux is passed through.

    Returns:
      ``(result, pull)``, and aux if asked for.  `pull` takes a cotangent of the result's tree and
      types, and returns a tuple with a cotangent for each argument.

    Raises:
      ValueError: when `pull` is given a cotangent of another tree or type.

    >>> y, pull = vjp(lambda x, z: x * z, 3.0, 4.0)
    >>> pull(1.0)
    (Array(4., dtype=float32, weak_type=True), Array(3., dtype=float32, weak_type=True))
    """
    at = Linearized(fun, primals, {}, "vjp", has_aux)

    @api_boundary
    def pull(cotangent: Any) -> tuple:
        cts, tree = tree_util.tree_flatten(cotangent)
        if tree != at.out_tree:
            raise ValueError(_tree_message(at, tree))
        values = [_check_cotangent(x.aval, check_arg(ct))
                  for x, ct in zip(at.outs, cts, strict=True)]
        found = pull_back(at.program, [x.aval for x in at.primals], values)
        return tree_util.tree_unflatten(at.in_tree, map(public_tangent, found))

    return (at.result, pull, at.aux) if has_aux else (at.result, pull)


def pull_back(program: LinearProgram, in_avals: Sequence[ShapedArray],
              cotangents: Sequence[Any]) -> list[Any]:
    """Cotangents of the inputs of a derivative, arrays or `Zero`."""
    jaxpr = program.closed.jaxpr
    given = [ct for ct, zero in zip(cotangents, program.out_zeros, strict=True) if zero is None]
    linear = [core.Undefined(v.aval) for v in jaxpr.invars]
    found = iter(backward_pass(jaxpr, program.closed.consts, linear, given))
    return [next(found) if has else Zero(aval.to_tangent_aval())
            for aval, has in zip(in_avals, program.in_has_tangent, strict=True)]


def _check_cotangent(out: ShapedArray, ct: Array) -> Any:
    want = out.to_tangent_aval()
    if (want.shape, want.dtype) != (ct.shape, ct.dtype):
        raise ValueError(
            "unexpected JAX type (e.g. shape/dtype) for argument to VJP function: got "
            f"{ct.aval.str_long()}, but expected {want.str_long()} because the corresponding "
            f"output of the differentiated function had JAX type {out.str_long()}")
    return Zero(want) if ct.dtype == dtypes.float0 else ct


def _tree_message(at: Linearized, got: tree_util.PyTreeDef) -> str:
    differences = equality_errors_pytreedef(at.out_tree, got)
    return ("unexpected tree structure.\n\nThe argument to a VJP function returned by `jax.vjp` "
            "must match the pytree\nstructure of the differentiated function "
            f"{at.info.func_src_info}.\n\nBut the tree structures differ:\n" + "\n".join(
                f"  * out{tree_util.keystr(path)} was a {was} in the original output, but a {now} "
                f"here, so {why}." for path, was, now, why in differences))


def linear_transpose(fun: Callable, *primals: Any) -> Callable:
    """The transpose of a function that is linear.

    Args:
      fun: a linear function of arrays and trees of arrays.
      primals: arguments, or only their types (`ShapeDtypeStruct`).

    Returns:
      A function from a cotangent of the result to a tuple of cotangents of the arguments.

    >>> linear_transpose(lambda x: 2.0 * x, 1.0)(3.0)
    (Array(6., dtype=float32, weak_type=True),)
    """
    check_callable(fun)
    types, in_tree = tree_util.tree_flatten(primals)
    avals = [getattr(x, "aval", None) or core.get_aval(x) for x in types]
    info = source_info.describe(fun, primals, {}, "linear_transpose")
    flat = FlatFunction(fun, _with_no_keywords(in_tree), info)
    closed = stage(flat, avals, info)

    @api_boundary
    def transposed(cotangent: Any) -> tuple:
        cts, tree = tree_util.tree_flatten(cotangent)
        if tree != flat.out_tree:
            raise TypeError("cotangent tree does not match function output, "
                            f"expected {flat.out_tree} but got {tree}")
        values = [_check_cotangent(a, check_arg(ct))
                  for a, ct in zip(closed.out_avals, cts, strict=True)]
        linear = [core.Undefined(a) for a in avals]
        program = separated(closed, [True] * len(avals))
        found = backward_pass(program.jaxpr, program.consts, linear, values)
        return tree_util.tree_unflatten(in_tree, map(public_tangent, found))
    return transposed


# ── Gradients ────────────────────────────────────────────────────────────────────────────────

def grad(fun: Callable, argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False,
         allow_int: bool = False) -> Callable:
    """The gradient of a function with a scalar result.

    Args:
      fun: returns a real scalar (with `has_aux` a pair of it and anything).
      argnums: the argument, or the arguments, to differentiate by.
      has_aux: `fun` returns (scalar, aux); the gradient function returns (gradient, aux).
      holomorphic: promise that a complex function is holomorphic.
      allow_int: let integer arguments have `float0` gradients.

    Returns:
      A function of the same arguments that returns the gradient, in the argument's tree.

    Raises:
      TypeError: on call, when the result is no real scalar, or an argument no real array.

    >>> grad(lambda x: x ** 2)(3.0)
    Array(6., dtype=float32, weak_type=True)
    """
    with_value = value_and_grad(fun, argnums, has_aux, holomorphic, allow_int, _name="grad")

    @api_boundary
    @functools.wraps(fun)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, found = with_value(*args, **kwargs)
        return (found, value[1]) if has_aux else found
    return gradient


def value_and_grad(fun: Callable, argnums: Argnums = 0, has_aux: bool = False,
                   holomorphic: bool = False, allow_int: bool = False, *,
                   _name: str = "value_and_grad") -> Callable:
    """A function's scalar value and its gradient, in one pass.

    Takes the arguments of `grad`, and raises what `grad` raises.

    Returns:
      A function of the same arguments that returns ``(value, gradient)``, or
      ``((value, aux), gradient)``.

    >>> value_and_grad(lambda x: x ** 2)(3.0)
    (Array(9., dtype=float32, weak_type=True), Array(6., dtype=float32, weak_type=True))
    """
    check_callable(fun)
    places = _check_argnums(argnums)

    @api_boundary
    @functools.wraps(fun)
    def value_and_gradient(*args: Any, **kwargs: Any) -> Any:
        partial, chosen = partial_by_argnums(fun, places, args, kwargs)
        for x in tree_util.tree_leaves(chosen):
            check_input(x, _name, holomorphic, allow_int)
        at = Linearized(partial, chosen, {}, _name, has_aux)
        value = at.result
        _check_scalar(value)
        _check_output(at.outs[0].dtype, _name, holomorphic)
        one = core.ArrayImpl(np.ones((), at.outs[0].dtype), at.outs[0].aval, is_literal=True)
        found = pull_back(at.program, [x.aval for x in at.primals], [one])
        gradients = tree_util.tree_unflatten(at.in_tree, map(public_tangent, found))
        result = gradients[0] if isinstance(argnums, int) else gradients
        return ((value, at.aux), result) if has_aux else (value, result)
    return value_and_gradient


def _check_argnums(argnums: Any) -> Any:
    if isinstance(argnums, int) or hasattr(argnums, "__index__"):
        return (argnums.__index__(),)
    if isinstance(argnums, str):
        raise TypeError("'str' object cannot be interpreted as an integer")
    return tuple(i.__index__() for i in argnums)


def partial_by_argnums(fun: Callable, argnums: Sequence[int], args: tuple, kwargs: dict
                       ) -> tuple[Callable, tuple]:
    for i in argnums:
        if not -len(args) <= i < len(args):
            need = i + 1 if i >= 0 else -i
            raise TypeError(f"differentiating with respect to argnums={i} requires at least "
                            f"{need} positional arguments to be passed by the caller, but got "
                            f"only {len(args)} positional arguments.")
    places = [i % len(args) for i in argnums]
    return Filled(fun, args, places, kwargs), tuple(args[i] for i in places)


def check_input(x: Any, name: str, holomorphic: bool, allow_int: bool) -> None:
    try:
        dtype = core.get_aval(x).dtype
    except TypeError:
        raise TypeError(f"Argument '{x}' of type {type(x)} is not a valid JAX type.") from None
    if holomorphic:
        if not dtypes.issubdtype(dtype, np.complexfloating):
            raise TypeError(f"{name} with holomorphic=True requires inputs with complex dtype, "
                            f"but got {core.dtype_name(dtype)}.")
    elif not dtypes.issubdtype(dtype, np.inexact) and not allow_int:
        raise errors.with_cure(
            TypeError(f"{name} requires real- or complex-valued inputs (input dtype that is a "
                      f"sub-dtype of np.inexact), but got {core.dtype_name(dtype)}. If you "
                      "want to use Boolean- or integer-valued inputs, use vjp or set "
                      "allow_int to True."),
            "Derivatives are of floats: write 2.0 in place of 2, or x.astype(float).")


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


def _check_output(dtype: Any, name: str, holomorphic: bool) -> None:
    if holomorphic:
        if not dtypes.issubdtype(dtype, np.complexfloating):
            raise TypeError(f"{name} with holomorphic=True requires outputs with complex dtype, "
                            f"but got {core.dtype_name(dtype)}.")
    elif dtypes.issubdtype(dtype, np.complexfloating):
        raise TypeError(f"{name} requires real-valued outputs (output dtype that is a sub-dtype "
                        f"of np.floating), but got {core.dtype_name(dtype)}. For holomorphic "
                        "differentiation, pass holomorphic=True. For differentiation of "
                        "non-holomorphic functions involving complex outputs, use jax.vjp "
                        "directly.")
    elif not dtypes.issubdtype(dtype, np.floating):
        kind = "integer" if dtypes.issubdtype(dtype, np.integer) else core.dtype_name(dtype)
        raise TypeError(f"{name} requires real-valued outputs (output dtype that is a sub-dtype "
                        f"of np.floating), but got {core.dtype_name(dtype)}. For differentiation "
                        f"of functions with {kind} outputs, use jax.vjp directly.")
