"""Derivatives of functions of sparse arrays: by their data, and with their indices.

Builds on `bcoo`, `grad`.  In JAX: `jax/experimental/sparse/ad.py`.
"""

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

from minijax import tree_util
from minijax.experimental.sparse.bcoo import BCOO, JAXSparse, like, with_data
from minijax.transforms import gradients, jacobians


Argnums = int | Sequence[int]


def _by_data(derivative: Callable, fun: Callable, argnums: Argnums, has_aux: bool, options: dict,
             with_value: bool = False) -> Callable:
    """The derivative of a function by the buffers of floats of its arguments, in trees like theirs.

    Args:
      with_value: whether `derivative` also returns the value of the function, before it.
    """
    several = argnums if isinstance(argnums, Sequence) else (argnums,)
    numbers = [operator.index(n) for n in several]

    @functools.wraps(fun)
    def of_arrays(*args: Any, **kwargs: Any) -> Any:
        chosen = [args[n] for n in numbers]
        leaves, tree = tree_util.tree_flatten(chosen, lambda x: isinstance(x, JAXSparse))
        data = [x.data if isinstance(x, BCOO) else x for x in leaves]

        def of_data(data: list) -> Any:
            new = [with_data(x, d) if isinstance(x, BCOO) else d
                   for x, d in zip(leaves, data, strict=True)]
            whole = list(args)
            for n, x in zip(numbers, tree_util.tree_unflatten(tree, new), strict=True):
                whole[n] = x
            return fun(*whole, **kwargs)

        def restored(slopes: list) -> Any:
            trees = tree_util.tree_unflatten(tree, [
                _with_indices(x, d) if isinstance(x, BCOO) else d
                for x, d in zip(leaves, slopes, strict=True)])
            return trees[0] if isinstance(argnums, int) else tuple(trees)
        out = derivative(of_data, has_aux=has_aux, **options)(data)
        if with_value:
            return out[0], restored(out[1])
        return (restored(out[0]), out[1]) if has_aux else restored(out)
    return of_arrays


def _with_indices(mat: BCOO, slope: Any) -> Any:
    """A derivative with the indices of the array; axes of the result are batch axes."""
    more = slope.ndim - mat.data.ndim
    indices = mat.indices[(None,) * more]
    return like(mat, (slope, indices), (*slope.shape[:more], *mat.shape), True, True)


def value_and_grad(fun: Callable, argnums: Argnums = 0, has_aux: bool = False, **kwargs: Any
                   ) -> Callable:
    """`jax.value_and_grad`, in which the gradient by a sparse array has its indices.

    >>> from minijax import numpy as jnp
    >>> x = BCOO.fromdense(jnp.array([0., 2., 3.]))
    >>> value_and_grad(lambda x: (x @ jnp.arange(3.)))(x)
    (Array(8., dtype=float32), BCOO(float32[3], nse=2))
    """
    return _by_data(gradients.value_and_grad, fun, argnums, has_aux, kwargs, with_value=True)


def grad(fun: Callable, argnums: Argnums = 0, has_aux: bool = False, **kwargs: Any) -> Callable:
    """`jax.grad`, in which the gradient by a sparse array has its indices."""
    return _by_data(gradients.grad, fun, argnums, has_aux, kwargs)


def jacfwd(fun: Callable, argnums: Argnums = 0, has_aux: bool = False, **kwargs: Any) -> Callable:
    """`jax.jacfwd` of a function whose result is one array."""
    return _by_data(jacobians.jacfwd, fun, argnums, has_aux, kwargs)


def jacrev(fun: Callable, argnums: Argnums = 0, has_aux: bool = False, **kwargs: Any) -> Callable:
    """`jax.jacrev` of a function whose result is one array."""
    return _by_data(jacobians.jacrev, fun, argnums, has_aux, kwargs)


jacobian = jacrev
