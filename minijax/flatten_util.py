"""`ravel_pytree`: a tree of arrays as one vector, and back.

Builds on `numpy`.  Chapter 05, *Trees*.
In JAX: `jax/_src/flatten_util.py`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
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
    arrays = [as_value(x) for x in leaves]
    if not arrays:
        return jnp.zeros(0), _Unravel(tree, (), (), np.dtype(np.float32))
    dtype = dtypes.result_type(*arrays)
    flat = jnp.concatenate([jnp.ravel(lax.convert_element_type(x, dtype)) for x in arrays])
    return flat, _Unravel(tree, tuple(x.shape for x in arrays), tuple(x.dtype for x in arrays),
                          dtype)


@dataclass(frozen=True)
class _Unravel:
    """The function from a vector to a tree of these shapes; equal ones are one static argument."""

    tree: tree_util.PyTreeDef
    shapes: tuple[tuple[int, ...], ...]
    kinds: tuple[Any, ...]
    dtype: Any

    def __call__(self, vector: Array) -> Any:
        leaves = self._leaves(jnp.asarray(vector)) if self.shapes else []
        return tree_util.tree_unflatten(self.tree, leaves)

    def _leaves(self, vector: Array) -> list[Array]:
        is_one_dtype = all(kind == self.dtype for kind in self.kinds)
        if not is_one_dtype and vector.dtype != self.dtype:
            raise TypeError(f"unravel function given array of dtype {vector.dtype}, but expected "
                            f"dtype {self.dtype}")
        xs = list(map(lax.reshape, lax.split(vector, [*map(math.prod, self.shapes)]), self.shapes))
        return xs if is_one_dtype else list(map(_converted, xs, self.kinds))


def _converted(x: Array, dtype: Any) -> Array:
    """The array in the dtype of its leaf, without a warning."""
    is_real = x.dtype.kind == "c" and np.dtype(dtype).kind != "c"
    return lax.convert_element_type(lax.real(x) if is_real else x, dtype)
