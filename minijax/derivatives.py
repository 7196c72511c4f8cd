"""Derivatives along directions, as users call them: `jvp`, `linearize`, `vjp`.

Stands on the interpreters.  Chapters 03 and 07.  In JAX: `jax/_src/api.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import core, dtypes, source_info, tree_util
from minijax.core import Array, ShapedArray, Zero
from minijax.interpreters.jvp import jvp_flat
from minijax.interpreters.linearize import LinearProgram, linearize_flat
from minijax.interpreters.split import separated
from minijax.interpreters.transpose import backward_pass
from minijax.primitives.emitted import instantiate
from minijax.source_info import DebugInfo
from minijax.stage import FlatFunction, stage
from minijax.tracebacks import api_boundary
from minijax.tree_util import equality_errors_pytreedef


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
