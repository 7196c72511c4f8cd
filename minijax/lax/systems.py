"""Products of reflections, updates of factors, and tridiagonal systems, of products and scans.

Stands on `primitives`, `scan`.  In JAX: `jax/_src/lax/linalg.py`.
"""

from typing import Any


from minijax.core import Array, as_value
from minijax.higher_order.control_flow import scan
from minijax.primitives import shape
from minijax.primitives.algebra import conj, is_complex
from minijax.primitives.emitted import move_axis
from minijax.primitives.linalg import (adjoint, check_matrix, flipped, identity_like, lower_part,
                                       product)
from minijax.primitives.slots import FLOAT, check_dtypes


def householder_product(a: Any, taus: Any) -> Array:
    """The first columns of a product of reflections: Q, from what LAPACK leaves of it.

    Args:
      a: of shape (…, m, n), m ≥ n: column i holds, below the diagonal, the vector of reflection i.
      taus: of shape (…, k), k ≤ n: how far each reflects.

    Returns:
      An array of a's shape.

    Raises:
      ValueError: when there are more columns than rows, or more reflections than columns.

    >>> import numpy as np
    >>> householder_product(np.array([[1.], [0.]]), np.array([2.]))
    Array([[-1.],
           [ 0.]], dtype=float32)
    """
    a, taus = as_value(a), as_value(taus)
    check_matrix("householder_product", a.aval)
    m, n = a.shape[-2:]
    if m < n:
        raise ValueError("The first argument to householder_product must have at least as many "
                         f"rows as columns, got shape {a.shape}")
    if taus.shape[-1] > n:
        raise ValueError("The second argument to householder_product must not have more rows than "
                         "the minimum of the first argument's rows and columns.")
    return _reflected(a, taus, identity_like(a), reverse=True)


def ormqr(a: Any, taus: Any, c: Any, *, left: bool = True, transpose: bool = False) -> Array:
    """``Q c``, Q being the whole square product of reflections that `householder_product` begins.

    Args:
      a, taus: the reflections, of shapes (…, m, k) and (…, k).
      c: matrices with m rows; or with m columns, if not `left`.
      left: False for ``c Q``.
      transpose: whether to multiply by Qᴴ instead.

    Raises:
      ValueError: when the rows do not fit.

    >>> import numpy as np
    >>> ormqr(np.array([[1.], [0.]]), np.array([2.]), np.array([[3.], [4.]]))
    Array([[-3.],
           [ 4.]], dtype=float32)
    """
    a, taus, c = as_value(a), as_value(taus), as_value(c)
    check_matrix("ormqr", a.aval)
    if a.shape[-2] != c.shape[-2 if left else -1]:
        raise ValueError(
            f"ormqr with left={left} expects c to have the same number of "
            f"{'rows' if left else 'columns as the number of rows'} "
            f"{'as the Householder matrix a' if left else 'of the Householder matrix a'}. "
            f"Got a shape {a.shape} and c shape {c.shape}.")
    if not left:
        return adjoint(ormqr(a, taus, adjoint(c), transpose=not transpose))
    scales = conj(taus) if transpose and is_complex(taus) else taus
    return _reflected(a, scales, c, reverse=not transpose)


def _reflected(a: Array, taus: Array, c: Array, reverse: bool) -> Array:
    """``c - τ v (vᴴ c)`` for one reflection after the other, or the last one first."""
    vectors = lower_part(a, -1) + identity_like(a)

    def reflect(c: Any, each: tuple) -> tuple[Any, None]:
        v, tau = (shape.expand_dims(x, (x.ndim,)) for x in each)
        return c - shape.expand_dims(tau, (tau.ndim,)) * product(v, product(adjoint(v), c)), None
    count = taus.shape[-1]
    columns = move_axis(vectors, -1, 0)[:count]
    return scan(reflect, c, (columns, move_axis(taus, -1, 0)), reverse=reverse)[0]


def symmetric_product(a_matrix: Any, c_matrix: Any, *, alpha: float = 1.0, beta: float = 0.0,
                      symmetrize_output: bool = False) -> Array:
    """``alpha a aᵀ + beta c``, c being symmetric.

    Args:
      a_matrix: floats, of shape (…, n, m).
      c_matrix: of shape (…, n, n).
      symmetrize_output: whether the upper triangle is made of the lower one; otherwise only the
        lower one is meant.

    Raises:
      ValueError: for other shapes.

    >>> import numpy as np
    >>> symmetric_product(np.array([[1.], [2.]]), np.zeros((2, 2)))
    Array([[1., 2.],
           [2., 4.]], dtype=float32)
    """
    a, c = as_value(a_matrix), as_value(c_matrix)
    check_dtypes("symmetric_product", [a.aval, c.aval], [FLOAT, FLOAT])
    n = a.shape[-2]
    if c.shape[-2:] != (n, n):
        raise ValueError(
            "symmetric_update expects a rectangular matrix of shape (m, n) and a square matrix of "
            f"shape (n, n). Got shapes {a.shape} and {c.shape}.")
    found: Any = alpha * product(a, flipped(a)) + beta * c
    return lower_part(found) + flipped(lower_part(found, -1)) if symmetrize_output else found
