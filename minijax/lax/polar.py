"""The polar decomposition by iteration.

Builds on `scan` and `while_loop`.  In JAX: `jax/_src/tpu/linalg/qdwh.py`.
"""

import math
from typing import Any

from minijax import dtypes
from minijax.core import Array, as_value, refuse
from minijax.control_flow.loops import while_loop
from minijax.primitives import ad_util, algebra, comparison, eigh_svd, joining, rounding, shape
from minijax.primitives.linalg import adjoint, cholesky, identity_like, matmul, triangular_solve


def qdwh(x: Any, *, is_hermitian: bool = False, max_iterations: int | None = None,
         eps: float | None = None, dynamic_shape: tuple[Any, Any] | None = None
         ) -> tuple[Array, Array, Any, Any]:
    """U with orthonormal columns, a positive semidefinite H with ``x = U H``, by Halley's method.

    Args:
      x: floats or complex numbers, of shape (m, n), m ≥ n.
      is_hermitian: accepted for compatibility; it changes nothing.
      max_iterations: the largest number of iterations, 10 by default.
      eps: the smallest singular value expected, relative to the largest; the iteration ends when U
        changes by less than the cube root of a multiple of it. By default the machine epsilon.
      dynamic_shape: the number of rows and of columns of x that count.

    Returns:
      U, H, the number of iterations, and whether they converged.

    Raises:
      ValueError: for other dtypes and shapes.

    >>> import numpy as np
    >>> u, h, count, converged = qdwh(np.array([[0., 2.], [3., 4.]]))
    >>> np.round(np.asarray(h), 1)
    array([[2.3, 1.9],
           [1.9, 4.1]], dtype=float32)

    Source: Nakatsukasa, Bai and Gygi, *Optimizing Halley's iteration for computing the matrix
    polar decomposition* (2010).
    """
    x = as_value(x)
    refuse((x.ndim != 2 or x.shape[0] < x.shape[1],
            "The input matrix of shape M x N must have M >= N."),
           (x.dtype.kind not in "fc", f"data type {x.dtype.type} not inexact"), error=ValueError)
    x = x if dynamic_shape is None else _masked(x, *dynamic_shape)
    limit = 10 if max_iterations is None else max_iterations
    eps = float(dtypes.finfo(x.dtype).eps) if eps is None else eps
    steps = _weights(eps, limit)
    rows, columns = (rounding.abs(x).sum(axis).max(initial=0) for axis in (1, 0))
    # one over an upper bound of the largest singular value; of zeros, one
    scale = comparison.select(rows == 0, ad_util.filled(1, rows),
                              1 / (algebra.sqrt(rows) * algebra.sqrt(columns)))
    u, changes = x * scale, as_value(True)
    for weights in steps:
        u, changes = _step(u, weights, eps)
    u, changes, count = while_loop(
        lambda state: state[1] & (state[2] < limit),
        lambda state: (*_step(state[0], (3, 1, 3), eps), state[2] + 1), (u, changes, len(steps)))
    u = 1.5 * u - 0.5 * matmul(u, matmul(adjoint(u), u))
    h = matmul(adjoint(u), x)
    return u, (h + adjoint(h)) / 2, count, ~changes


def _weights(low: float, limit: int) -> list[tuple[float, float, float]]:
    """The weights of the steps that lift singular values from `low` to nearly 1."""
    weights: list = []
    near = 5 * low
    while 1 - low > near and len(weights) < limit:
        square = low * low
        root = math.sqrt(1 + (4 * (1 - square) / square**2) ** (1 / 3))
        a = root + math.sqrt(3 - root**2 + 2 * (2 - square) / (square * root))
        b = (a - 1) ** 2 / 4
        c = a + b - 1
        weights.append((a, b, c))
        low *= (a + b * square) / (1 + c * square)
    return weights


def _step(u: Any, weights: tuple[float, float, float], eps: float) -> tuple[Any, Any]:
    """``u (a + b uᴴ u) / (1 + c uᴴ u)``, and whether that differs from u."""
    a, b, c = weights
    one, weight = identity_like(u[:u.shape[1]]), a - b / c
    if is_ill := c > 100:  # normal equations would lose too many digits
        q, _ = eigh_svd.qr_p.bind(
            joining.concatenate([math.sqrt(c) * u, one], 0), full_matrices=False)
        quotient = matmul(q[:len(u)], adjoint(q[len(u):])) / math.sqrt(c)
    else:
        factor = cholesky(one + c * matmul(adjoint(u), u))
        half = triangular_solve(factor, adjoint(u), left_side=True, lower=True)
        quotient = adjoint(triangular_solve(factor, half, left_side=True, lower=True,
                                            transpose_a=True, conjugate_a=True))
    after: Any = b / c * u + weight * quotient
    change = rounding.abs(after - u)
    return after, is_ill | ((change * change).sum() > (5 * eps) ** (2 / 3))


def _masked(x: Any, m: Any, n: Any) -> Any:
    rows, columns = (shape.broadcasted_iota("int32", x.shape, axis) for axis in (0, 1))
    return comparison.select((rows < m) & (columns < n), x, ad_util.filled(0, x))
