"""`ravel_pytree`: a tree of arrays as one vector, and back.

Builds on `numpy`.  Chapter 05, *Trees*.
In JAX: `jax/_src/flatten_util.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import dtypes, lax, tree_util, numpy as jnp
from minijax.core import Array, as_value


def ravel_pytree(pytree: Any) -> tuple[Array, Callable[[Array], Any]]:
    """A tree of arrays as one vector, and the function from such a vector to such a tree.

    Args:
      pytree: a tree of arrays and numbers.

    Returns:
      The vector of all elements, leaf by leaf, of the dtype that all leaves promote to; and a
      function from a vector of this size and dtype to a tree of these shapes and dtypes.  It raises
      a ValueError for another size; and a TypeError for another dtype, unless all leaves had one
      dtype, in which case they all take the vector's.

    >>> flat, unravel = ravel_pytree({"w": jnp.ones((2, 2)), "b": jnp.int32(3)})
    >>> flat
    Array([3., 1., 1., 1., 1.], dtype=float32)
    >>> unravel(2 * flat)["b"]
    Array(6, dtype=int32)
    """
    leaves, tree = tree_util.tree_flatten(pytree)
    flat, unravel = _ravelled([as_value(x) for x in leaves])
    return flat, lambda vector: tree_util.tree_unflatten(tree, unravel(vector))


def _ravelled(leaves: list[Array]) -> tuple[Array, Callable[[Array], list[Array]]]:
    if not leaves:
        return jnp.zeros(0), lambda vector: []
    shapes, kinds = [x.shape for x in leaves], [x.dtype for x in leaves]
    dtype = dtypes.result_type(*leaves)
    flat = jnp.concatenate([jnp.ravel(lax.convert_element_type(x, dtype)) for x in leaves])

    def unravel(vector: Array) -> list[Array]:
        vector = jnp.asarray(vector)
        is_one_dtype = all(kind == dtype for kind in kinds)
        if not is_one_dtype and vector.dtype != dtype:
            raise TypeError(f"unravel function given array of dtype {vector.dtype}, but expected "
                            f"dtype {dtype}")
        parts = [lax.reshape(x, shape) for x, shape in zip(
            lax.split(vector, [math.prod(shape) for shape in shapes]), shapes, strict=True)]
        return parts if is_one_dtype else list(map(_converted, parts, kinds))
    return flat, unravel


def _converted(x: Array, dtype: Any) -> Array:
    """The array in the dtype of its leaf, without a warning."""
    is_real = x.dtype.kind == "c" and np.dtype(dtype).kind != "c"
    return lax.convert_element_type(lax.real(x) if is_real else x, dtype)
