"""`minijax.scipy.ndimage`: interpolation between the elements of an array.

Builds on `numpy`.  In JAX: `jax/_src/scipy/ndimage.py`.
"""

import functools
import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import lax, numpy as jnp
from minijax.core import Array, refuse
from minijax.transforms.jit import jit
from minijax.numpy.arguments import ArrayLike
from minijax.transforms.prepared import export_all as _export_all

__all__ = ["map_coordinates"]


def map_coordinates(input: ArrayLike, coordinates: Sequence[ArrayLike], order: int,
                    mode: str = "constant", cval: ArrayLike = 0.0) -> Array:
    """The array at fractional coordinates.

    >>> map_coordinates(jnp.array([0., 10., 20.]), [jnp.array([0.5, 1.5])], order=1)
    Array([ 5., 15.], dtype=float32)

    Args:
      input: an array of n axes.
      coordinates: n arrays of one shape: the coordinates along each axis.
      order: 0 takes the nearest element, 1 is linear between them.
      mode: what is beyond the edges: "constant", "nearest", "wrap", "mirror" or "reflect".
      cval: the element beyond the edges, in the mode "constant".

    Raises:
      ValueError: for another number of coordinates than of axes.
      NotImplementedError: for other orders and modes.
    """
    array: Any = jnp.asarray(input)
    coordinates = [jnp.asarray(c) for c in coordinates]
    if len(coordinates) != array.ndim:
        raise ValueError("coordinates must be a sequence of length input.ndim, but "
                         f"{len(coordinates)} != {array.ndim}")
    refuse((mode not in _INDEX_FIXERS, "jax.scipy.ndimage.map_coordinates does not yet support "
            f"mode {mode}. Currently supported modes are {set(_INDEX_FIXERS)}."),
           (order not in (0, 1), "jax.scipy.ndimage.map_coordinates currently requires order<=1"),
           error=NotImplementedError)
    return _map_coordinates(array, coordinates, cval, order, mode)


@jit(static_argnames=("order", "mode"), inline=True)
def _map_coordinates(array: Any, coordinates: list, cval: Any, order: int, mode: str) -> Array:
    neighbours_of = (_nearest_indices_and_weights, _linear_indices_and_weights)[order]

    def contribution(corner: tuple) -> Any:
        indices, weights = zip(*corner, strict=True)
        inside = [_INDEX_FIXERS[mode](i, n) for i, n in zip(indices, array.shape, strict=True)]
        element = array[tuple(inside)]
        if mode == "constant":
            valid = [(i >= 0) & (i < n) for i, n in zip(indices, array.shape, strict=True)]
            element = jnp.where(functools.reduce(operator.and_, valid), element, cval)
        return functools.reduce(operator.mul, weights) * element
    corners = itertools.product(*map(neighbours_of, coordinates))
    values = functools.reduce(operator.add, map(contribution, corners))
    if array.dtype.kind in "iu" and values.dtype.kind == "f":
        values = lax.round(values)
    return values.astype(array.dtype)


def _nearest_indices_and_weights(coordinate: Any) -> list[tuple[Any, Any]]:
    rounded = lax.round(coordinate) if coordinate.dtype.kind == "f" else coordinate
    return [(rounded.astype(np.int32), coordinate.dtype.type(1))]


def _linear_indices_and_weights(coordinate: Any) -> list[tuple[Any, Any]]:
    """The two indices around a coordinate, and their weights."""
    lower = jnp.floor(coordinate)
    index, weight = lower.astype(np.int32), coordinate - lower
    return [(index, 1 - weight), (index + 1, weight)]


def _mirror_index_fixer(index: Any, size: int) -> Any:
    """Indices reflected at the edge elements, which are not repeated."""
    last = size - 1
    return abs((index + last) % (2 * last) - last)


# Maps an index beyond the edges of an axis to one inside.
_INDEX_FIXERS: dict[str, Callable[[Any, int], Any]] = {
    "constant": lambda index, size: index,
    "nearest": lambda index, size: jnp.clip(index, 0, size - 1),
    "wrap": lambda index, size: index % size,
    "mirror": _mirror_index_fixer,
    # at the edges, so that the edge elements are repeated
    "reflect": lambda index, size: (_mirror_index_fixer(2 * index + 1, 2 * size + 1) - 1) // 2}


_export_all(globals())
