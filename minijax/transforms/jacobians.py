"""The public Jacobians and Hessians: `jacfwd`, `jacrev`, `hessian`.

Builds on `gradients`, and on `vmap` of `api`.  Chapters 03 and 07.  In JAX: `jax/_src/api.py`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import core, dtypes, tree_util
from minijax.primitives import ad_util, convert, slicing
from minijax.transforms import api
from minijax.transforms.derivatives import check_arg, jvp, vjp
from minijax.transforms.gradients import (Argnums, as_chosen, by_argnums, check_inputs,
                                          check_real)

_RETURNED = "the jacobian of the output with respect to the arguments"


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
        check_real(chosen, "jacfwd", "inputs", holomorphic)

        def push(direction: Any) -> Any:
            out, tangent, *aux = jvp(partial, chosen, direction, has_aux=has_aux)
            # the derivative of a constant has zeros of its own dtype
            tangent = tree_util.tree_map(lambda t, y: ad_util.zeros(y.aval) if (
                t.dtype == dtypes.float0) else _as_weak_as(t, y), tangent, out)
            return (tangent, *aux) if has_aux else tangent
        out_axes = -1 if not has_aux else (-1, None)
        columns = api.vmap(push, out_axes=out_axes)(_basis(chosen))
        columns, *aux = columns if has_aux else (columns,)
        result = tree_util.tree_map(
            lambda c: _unravel_axis(c, as_chosen(argnums, chosen), -1), columns)
        return (result, *aux) if has_aux else result
    return by_argnums(fun, argnums, jacobian, "Jacobian", _RETURNED)


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
        check_inputs(chosen, "jacrev", holomorphic, allow_int)
        out, pull, *aux = vjp(partial, *chosen, has_aux=has_aux)
        check_real(out, "jacrev", "outputs", holomorphic)
        rows = api.vmap(pull)(_basis(out))
        rows = as_chosen(argnums, tree_util.tree_map(_as_weak_as, rows, chosen))
        # the result's tree is outside and the argument's inside, as in `jacfwd`
        tree = tree_util.tree_structure(as_chosen(argnums, chosen))
        split = tree_util.tree_map(lambda r: _unravel_axis(r, out, 0), rows)
        result = tree_util.tree_transpose(tree, tree_util.tree_structure(out), split)
        return (result, *aux) if has_aux else result
    return by_argnums(fun, argnums, jacobian, "Jacobian", _RETURNED)


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


def _as_weak_as(derivative: Any, x: Any) -> Any:
    """A part of a Jacobian, weakly typed where the value that it belongs to is."""
    if derivative.dtype == dtypes.float0:
        return derivative
    return convert.converted(derivative, derivative.dtype, core.get_aval(x).weak_type)


def _basis(tree: Any) -> Any:
    """The unit vectors of a tree of arrays, stacked along a new leading axis of every leaf."""
    leaves, treedef = tree_util.tree_flatten(tree)
    avals = [check_arg(x).aval.to_tangent_aval() for x in leaves]
    if dtypes.is_strict() and leaves:
        dtypes.result_type(*leaves)  # as in JAX, which makes the basis in one dtype
    total, start = sum(a.size for a in avals), 0
    parts: list[Any] = []
    for aval in avals:
        if aval.dtype == dtypes.float0:
            parts.append(np.zeros((total, *aval.shape), dtypes.float0))
        else:
            block = np.eye(total, aval.size, -start, aval.dtype)
            stacked = aval.update(shape=(total, *aval.shape), vma=frozenset())
            part = core.array_from_buffer(block.reshape(stacked.shape), stacked)
            parts.append(core.pvary(part, aval.vma) if aval.vma else part)
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
        sizes = (*x.shape[:axis], *shape, *x.shape[axis + 1:])
        if isinstance(x, np.ndarray):  # float0, which only NumPy arrays have
            parts.append(np.zeros(sizes, x.dtype))
        else:
            parts.append(ad_util.reshaped(slicing.slice_in_dim(x, start, stop, axis=axis), sizes))
        start = stop
    return tree_util.tree_unflatten(treedef, parts)
