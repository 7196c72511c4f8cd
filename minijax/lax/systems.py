"""Products of reflections, updates of factors, and tridiagonal systems, by products and scans.

Builds on `primitives`, `scan`.  In JAX: `jax/_src/lax/linalg.py`.
"""

import functools
from typing import Any

import numpy as np

from minijax import core, dtypes
from minijax.core import Array, Example, refuse
from minijax.control_flow.loops import scan
from minijax.transforms.derived import derived
from minijax.primitives import ad_util, algebra, joining, rounding, shape
from minijax.primitives.comparison import select
from minijax.primitives.linalg import (adjoint, check_matrix, identity_like, lower_part, matmul,
                                       matrix_transpose)
from minijax.primitives.slots import FLOAT, check_dtypes


def householder_product(a: Any, taus: Any) -> Array:
    """The first columns of a product of reflections: Q, from LAPACK's packed form.

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
    return householder_product_p.bind(a, taus)


def _householder_product(a: Array, taus: Array) -> Array:
    check_matrix("householder_product", a.aval)
    m, n = a.shape[-2:]
    refuse((m < n, "The first argument to householder_product must have at least as many rows as "
            f"columns, got shape {a.shape}"),
           (taus.shape[-1] > n, "The second argument to householder_product must not have more "
            "rows than the minimum of the first argument's rows and columns."), error=ValueError)
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
    return ormqr_p.bind(a, taus, c, left=left, transpose=transpose)


def _ormqr(a: Array, taus: Array, c: Array, *, left: bool, transpose: bool) -> Array:
    check_matrix("ormqr", a.aval)
    if a.shape[-2] != c.shape[-2 if left else -1]:
        raise ValueError(
            f"ormqr with left={left} expects c to have the same number of "
            f"{'rows' if left else 'columns as the number of rows'} "
            f"{'as the Householder matrix a' if left else 'of the Householder matrix a'}. "
            f"Got a shape {a.shape} and c shape {c.shape}.")
    if not left:
        return adjoint(_ormqr(a, taus, adjoint(c), left=True, transpose=not transpose))
    scales = algebra.conj(taus) if transpose and algebra.is_complex(taus) else taus
    return _reflected(a, scales, c, reverse=not transpose)


def _reflected(a: Array, taus: Array, c: Array, reverse: bool) -> Array:
    """``c - τ v (vᴴ c)`` for one reflection after the other, or the last one first."""
    vectors = lower_part(a, -1) + identity_like(a)

    def reflect(c: Any, each: tuple) -> tuple[Any, None]:
        v, tau = (shape.expand_dims(x, (x.ndim,)) for x in each)
        return c - shape.expand_dims(tau, (tau.ndim,)) * matmul(v, matmul(adjoint(v), c)), None
    columns = core.move_axis(vectors, -1, 0)[:taus.shape[-1]]
    return scan(reflect, c, (columns, core.move_axis(taus, -1, 0)), reverse=reverse)[0]


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
    out: Any = symmetric_product_p.bind(a_matrix, c_matrix, alpha=alpha, beta=beta)
    return lower_part(out) + matrix_transpose(lower_part(out, -1)) if symmetrize_output else out


def _symmetric_product(a: Any, c: Any, *, alpha: float, beta: float) -> Array:
    check_dtypes("symmetric_product", [a.aval, c.aval], [FLOAT, FLOAT])
    if a.ndim != c.ndim:
        raise TypeError("All inputs to symmetric_product must have the same number of batch "
                        f"dimensions, but got {[a.ndim - 2, c.ndim - 2]} batch dimensions for the "
                        "inputs.")
    n = a.shape[-2]
    if c.shape[-2:] != (n, n):
        raise ValueError("symmetric_update expects a rectangular matrix of shape (m, n) and a "
                         f"square matrix of shape (n, n). Got shapes {a.shape} and {c.shape}.")
    return alpha * matmul(a, matrix_transpose(a)) + beta * c


def tridiagonal_solve(dl: Any, d: Any, du: Any, b: Any, *, perturb_singular: bool = False) -> Array:
    """The x for which ``a x = b``, a being tridiagonal, by elimination that exchanges rows.

    Args:
      dl, d, du: what stands below, on and above the diagonal, each of shape (…, n); the first of
        `dl` and the last of `du` are not read.
      b: the right sides, of shape (…, n, k).
      perturb_singular: whether pivots that are too small to be divided by are moved away from
        zero; otherwise singular systems give nan.

    Raises:
      TypeError: for shapes that do not fit.

    >>> import numpy as np
    >>> one = np.ones(2)
    >>> tridiagonal_solve(one, 2 * one, one, np.array([[4.], [5.]]))
    Array([[1.],
           [2.]], dtype=float32)
    """
    return tridiagonal_solve_p.bind(dl, d, du, b, perturb_singular=perturb_singular)


def _tridiagonal_solve(dl: Array, d: Array, du: Array, b: Array, *, perturb_singular: bool
                       ) -> Array:
    check_matrix("tridiagonal_solve", b.aval)
    refuse((not dl.shape == d.shape == du.shape, "tridiagonal_solve requires that all diagonal "
            "arguments have the same shape."),
           (b.shape[:-1] != d.shape, "All inputs to tridiagonal_solve must have the same batch "
            f"dimensions and rows, but got shapes {d.shape} and {b.shape}."))
    if not d.shape[-1]:
        return b
    low, mid, high = (core.move_axis(shape.expand_dims(x, (x.ndim,)), -2, 0) for x in (dl, d, du))
    right = core.move_axis(b, -2, 0)
    zero = mid[:1] - mid[:1]
    low, high = (joining.concatenate([x, zero], 0) for x in (low[1:], high[:-1]))
    mid = joining.concatenate([mid, zero + 1], 0)
    right = joining.concatenate([right, right[:1] * 0], 0)
    first = mid[0], high[0], right[0]
    after = joining.concatenate([high[1:], zero], 0)
    eliminate, small = functools.partial(_eliminate, skips_zero=perturb_singular), None
    _, rows = scan(eliminate, first, (low, mid[1:], after, right[1:]))
    if perturb_singular:  # by the rounding error of the largest number
        limits = dtypes.finfo(d.dtype)
        largest = rounding.abs(joining.concatenate(rows[:3], 0)).max(0)
        small = algebra.max(largest * limits.eps, ad_util.filled(limits.tiny, largest))
    _, x = scan(functools.partial(_substitute, small=small), (right[0] * 0, right[0] * 0), rows,
                reverse=True)
    return core.move_axis(x, 0, -2)


def _eliminate(row: tuple, below: tuple, skips_zero: bool) -> tuple[tuple, tuple]:
    """Elimination in two rows: the row of the larger pivot stays, of the other it becomes zero.

    Where both are zero, the other row is unchanged if the elimination `skips_zero`, else nan.
    """
    current = row[0], row[1], row[0] * 0, row[2]
    larger = rounding.abs(below[0]) > rounding.abs(row[0])

    def either(x: Any, y: Any) -> Any:
        return select(ad_util.broadcast_at(larger[..., 0], tuple(range(x.ndim - 1)), x.shape), x, y)
    pivot_row, other = ([either(x, y) for x, y in zip(*pair, strict=True)]
                        for pair in ((below, current), (current, below)))
    is_zero: Any = (pivot_row[0] == 0) & skips_zero
    factor = other[0] / (pivot_row[0] + is_zero)
    reduced: Any = tuple(y - factor * x for x, y in zip(pivot_row[1:], other[1:], strict=True))
    return reduced, tuple(pivot_row)


def _substitute(later: tuple, row: tuple, small: Any = None) -> tuple[tuple, Any]:
    pivot, next, second_next, right = row
    residual = right - next * later[0] - second_next * later[1]
    if small is not None:
        is_too_small = rounding.abs(pivot) * dtypes.finfo(pivot.dtype).max <= rounding.abs(residual)
        pivot = pivot + small * is_too_small * (1 - 2 * (pivot.real < 0))
    x = residual / pivot
    return (x, later[0]), x


def cholesky_update(r_matrix: Any, w_vector: Any) -> Array:
    """The upper triangular factor of ``rᵀ r + w wᵀ``, from the factor r, by rotations.

    Args:
      r_matrix: floats, of shape (n, n).
      w_vector: of shape (n,).

    Raises:
      TypeError, ValueError: for other shapes.

    >>> import numpy as np
    >>> cholesky_update(np.array([[3.]]), np.array([4.]))
    Array([[5.]], dtype=float32)

    Source: Golub and Van Loan, *Matrix computations* (2013), section 6.5.4.
    """
    return cholesky_update_p.bind(r_matrix, w_vector)


def _cholesky_update(r: Array, w: Array) -> Array:
    check_dtypes("cholesky_update", [r.aval, w.aval], [FLOAT, FLOAT])
    if r.ndim != 2:
        raise TypeError("Input 0 to cholesky_update must have a rank of exactly 2, but got "
                        f"shape={r.shape}")
    if r.shape != w.shape * 2:
        raise ValueError(
            "Rank-1 update to Cholesky decomposition takes a square matrix and a vector of the "
            f"same size as input. Got shapes {r.shape} and {w.shape} instead")

    def rotate(w: Any, each: tuple) -> tuple[Any, Any]:
        row, here = each
        x, y = (here * row).sum(), (here * w).sum()
        length = algebra.sqrt(x * x + y * y)
        safe = select(length == 0, length + 1, length)
        cosine, sine = select(length == 0, length + 1, x / safe), y / safe
        return cosine * w - sine * row, cosine * row + sine * w
    return scan(rotate, w, (r, identity_like(r)))[1]


# ── Primitives ───────────────────────────────────────────────────────────────────────────────

def _examples(*shapes: tuple[int, ...], **params: Any) -> list[Example]:
    """Of numbers of these shapes."""
    return [Example(tuple(
        np.cos(3 + np.arange(np.prod(shape)) * (k + 2.)).astype(np.float32).reshape(shape)
        for k, shape in enumerate(shapes)), params)]


_derived = functools.partial(derived, batch=ad_util.batch_in_front())
householder_product_p = _derived(
    "householder_product", _householder_product,
    lambda: [*_examples((3, 2), (2,)), *_examples((2, 3, 3), (2, 1))])
ormqr_p = _derived(
    "ormqr", _ormqr,
    lambda: [*_examples((3, 2), (2,), (3, 2), left=True, transpose=True),
             *_examples((3, 2), (2,), (1, 3), left=False, transpose=False)], linear=[2])
symmetric_product_p = _derived(
    "symmetric_product", _symmetric_product,
    lambda: _examples((2, 3), (2, 2), alpha=.5, beta=2.), linear=[1])
tridiagonal_solve_p = _derived(
    "tridiagonal_solve", _tridiagonal_solve,
    lambda: _examples((3,), (3,), (3,), (3, 2), perturb_singular=False), linear=[3])
cholesky_update_p = derived("cholesky_update", _cholesky_update, lambda: _examples((3, 3), (3,)))
