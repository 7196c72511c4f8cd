"""`minijax.scipy.cluster.vq`: vector quantisation, the nearest entry of a code book.

Builds on `numpy`.  In JAX: `jax/_src/scipy/cluster/vq.py`.
"""

from minijax import numpy as jnp
from minijax.core import Array
from minijax.numpy.arguments import ArrayLike, promote_dtypes_inexact, promoted
from minijax.transforms.prepared import export_all as _export_all

__all__ = ["vq"]


def vq(obs: ArrayLike, code_book: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """For each observation, which point of the code book is nearest, and how far that is.

    >>> vq(jnp.array([[0., 1.], [4., 4.]]), jnp.array([[0., 0.], [4., 3.]]))
    (Array([0, 1], dtype=int32), Array([1., 1.], dtype=float32))

    Args:
      obs: (n, d) points, or n numbers.
      code_book: (k, d) points, or k numbers.
      check_finite: not looked at.

    Raises:
      ValueError: for different numbers of axes, and more than two.
    """
    points, centers = promoted("scipy.cluster.vq.vq", promote_dtypes_inexact, obs, code_book)
    if points.ndim != centers.ndim:
        raise ValueError("Observation and code_book should have the same rank")
    if points.ndim == 1:
        points, centers = points[:, None], centers[:, None]
    if points.ndim != 2:
        raise ValueError("ndim different than 1 or 2 are not supported")
    distances = jnp.linalg.norm(points[:, None] - centers, axis=-1)
    return jnp.argmin(distances, axis=-1), jnp.min(distances, axis=-1)


_export_all(globals())
