"""`minijax.scipy.integrate`: integrals of sampled functions.

Builds on `numpy`.  In JAX: `jax/_src/scipy/integrate.py`.
"""

from minijax import numpy as jnp
from minijax.core import Array
from minijax.numpy.arguments import ArrayLike, promote_dtypes_inexact
from minijax.transforms.prepared import export_all as _export_all

__all__ = ["trapezoid"]


def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1
              ) -> Array:
    """The integral along an axis by the trapezoidal rule.

    >>> trapezoid(jnp.array([1., 2., 3.]))
    Array(4., dtype=float32)

    Args:
      y: the values.
      x: the points; by default they are `dx` apart.
      dx: the distance of the points.
      axis: along which.
    """
    if x is not None:
        y, x = promote_dtypes_inexact(y, x)
    return jnp.trapezoid(y, x, dx, axis)


_export_all(globals())
