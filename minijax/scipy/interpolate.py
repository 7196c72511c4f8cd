"""`minijax.scipy.interpolate`: interpolation of functions on a grid.

Builds on `numpy`, `tree_util`.  In JAX: `jax/_src/third_party/scipy/interpolate.py`.
"""

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import numpy as jnp, tree_util
from minijax.core import Array
from minijax.numpy.arguments import ArrayLike, as_array, promote_dtypes_inexact

__all__ = ["RegularGridInterpolator"]


class RegularGridInterpolator:
    """A function of n numbers, interpolated from its values on a rectangular grid.

    >>> f = RegularGridInterpolator((jnp.array([0., 1., 3.]),), jnp.array([0., 10., 30.]))
    >>> f(jnp.array([[0.5], [2.], [4.]]))
    Array([ 5., 20., nan], dtype=float32)

    Args:
      points: the ascending coordinates along each axis of the grid.
      values: the values there, with an axis for each of the grid's, and maybe more.
      method: "linear" between the points, or the value at the "nearest" one.
      bounds_error: False, no other: compiled code raises no errors.
      fill_value: the result outside of the grid; None: that goes on as inside.

    Raises:
      ValueError: for an unknown method, too few axes, and a fill value of another kind.
      NotImplementedError: with `bounds_error`.
    """

    bounds_error = False

    def __init__(self, points: Sequence[Any], values: Any, method: str = "linear",
                 bounds_error: bool = False, fill_value: Any = np.nan):
        self.method = _check_method(method)
        if bounds_error:
            raise NotImplementedError("`bounds_error` takes no effect under JIT")
        values = as_array("RegularGridInterpolator", values)
        if len(points) > values.ndim:
            raise ValueError(f"there are {len(points)} point arrays, but values has {values.ndim} "
                             "dimensions")
        [self.values] = promote_dtypes_inexact(values)
        if fill_value is not None:
            fill_value = as_array("RegularGridInterpolator", fill_value)
            if not np.can_cast(fill_value.dtype, self.values.dtype, "same_kind"):
                raise ValueError(
                    "fill_value must be either 'None' or of a type compatible with values")
        self.fill_value = fill_value
        self.grid = tuple(as_array("RegularGridInterpolator", p) for p in points)

    def __call__(self, xi: Any, method: str | None = None) -> Array:
        """The function at points: (…, n), or a tuple of n arrays that broadcast."""
        method = self.method if method is None else _check_method(method)
        ndim = len(self.grid)
        xi = _as_points(xi, ndim)
        if xi.shape[-1] != ndim:
            raise ValueError(f"the requested sample points xi have dimension {xi.shape[1]}, but "
                             f"this RegularGridInterpolator has dimension {ndim}")
        columns = jnp.reshape(xi, (math.prod(xi.shape[:-1]), ndim)).T
        cells, fractions = zip(*map(_find_cell, self.grid, columns), strict=True)
        values = self._evaluate_linear(cells, fractions) if method == "linear" else self.values[
            tuple(jnp.where(f <= .5, i, i + 1) for i, f in zip(cells, fractions, strict=True))]
        if self.fill_value is not None:
            outside = functools.reduce(jnp.logical_or, (
                (x < g[0]) | (x > g[-1]) for x, g in zip(columns, self.grid, strict=True)))
            values = jnp.where(self._expand_dims(outside), self.fill_value, values)
        return jnp.reshape(values, (*xi.shape[:-1], *self.values.shape[ndim:]))

    def _expand_dims(self, x: Any) -> Any:
        """One number a point, broadcast to the values at the point."""
        return x[(slice(None), *[None] * (self.values.ndim - len(self.grid)))]

    def _evaluate_linear(self, cells: Sequence[Any], fractions: Sequence[Any]) -> Any:
        """The values at the corners of the cells, weighted."""
        total: Any = 0.
        for corner in itertools.product((0, 1), repeat=len(cells)):
            at = tuple(i + side for i, side in zip(cells, corner, strict=True))
            weights = (f if side else 1 - f for f, side in zip(fractions, corner, strict=True))
            total += self.values[at] * self._expand_dims(functools.reduce(jnp.multiply, weights))
        return total


def _check_method(method: str) -> str:
    if method not in ("linear", "nearest"):
        raise ValueError(f"method {method!r} is not defined")
    return method


def _as_points(xi: Any, ndim: int) -> Any:
    if isinstance(xi, tuple) and len(xi) > 1:
        return jnp.stack(jnp.broadcast_arrays(*xi), axis=-1)
    points = as_array("_ndim_coords_from_arrays", xi[0] if isinstance(xi, tuple) else xi)
    return jnp.reshape(points, (-1, ndim)) if points.ndim == 1 else points


def _find_cell(grid: Any, x: ArrayLike) -> tuple[Any, Any]:
    """The cell of the grid that contains x, or the nearest one, and the position of x within it."""
    cell = jnp.clip(jnp.searchsorted(grid, x) - 1, 0, grid.size - 2)
    return cell, (x - grid[cell]) / (grid[cell + 1] - grid[cell])


def _unflatten(settings: tuple, arrays: tuple) -> RegularGridInterpolator:
    new = object.__new__(RegularGridInterpolator)
    [new.method] = settings
    new.grid, new.values, new.fill_value = arrays
    return new


tree_util.register_pytree_node(
    RegularGridInterpolator, lambda f: ((f.grid, f.values, f.fill_value), (f.method,)), _unflatten)
