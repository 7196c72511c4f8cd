"""Primitives qr, eigh and svd, by LAPACK.

Builds on `linalg`, `lu`.  Chapter 24, *Loops and Numba*.
In JAX: `jax/_src/lax/linalg.py`.
"""

import enum
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.core import Array, Outs, as_value
from minijax.primitives import ad_util, comparison, convert, joining, linalg, lu, shape, slots
from minijax.primitives.algebra import conj, is_complex, real
from minijax.primitives.linalg import (adjoint, by_lapack, examples_of_matrices, factored,
                                       factorization, identity_like, lower_part, masked, matmul,
                                       nonsingular, of_each_matrix, store_transposed, symmetric)

# ── Diagonals ────────────────────────────────────────────────────────────────────────────────

def diagonal_of(x: Array) -> Array:
    """The diagonals of square matrices."""
    return ad_util.reduce_sum_p.bind(masked(x, comparison.eq), axes=(x.ndim - 1,))


def as_row(w: Array) -> Array:
    """Vectors as rows, with a number for each column of a matrix."""
    return shape.expand_dims(w, (w.ndim - 1,))


def as_column(w: Array) -> Array:
    """Vectors as columns, with a number for each row of a matrix."""
    return shape.expand_dims(w, (w.ndim,))


def inverse_gaps(w: Array, dtype: Any) -> Array:
    """``1 / (w[j] - w[i])`` in row i and column j, and zeros on the diagonal."""
    gaps = as_row(w) - as_column(w)
    one = identity_like(gaps)
    return convert.convert_element_type(1 / (gaps + one) - one, dtype)


# ── qr ───────────────────────────────────────────────────────────────────────────────────────

def _qr_tangents(t: Any, outs: Sequence[Any], *, full_matrices: bool) -> list[Array]:
    """Walter and Lehmann, *Algorithmic differentiation of linear algebra functions* (2010).

    The tangents of a wide matrix's last columns follow from those of its square part.
    """
    whole, r = outs
    height, n, axis = whole.shape[-2], r.shape[-1], r.ndim - 1
    size = min(height, n)
    q, square = whole[..., :size], r[..., :size, :size]
    x = linalg.triangular_solve(square, t[..., :size])
    inside = matmul(adjoint(q), x)
    below = lower_part(inside, -1)
    turn = below - adjoint(below)  # how Q turns: antisymmetric
    if is_complex(q):
        turn = turn + (inside - conj(inside)) / 2 * identity_like(inside)
    q_dot = matmul(q, turn - inside) + x
    r_dot = matmul(inside - turn, square)
    if n > size:
        r_rest = matmul(adjoint(q), t[..., size:] - matmul(q_dot, r[..., size:]))
        return [q_dot, joining.concatenate([r_dot, r_rest], axis)]
    if full_matrices and height > size:
        return [joining.concatenate([q_dot, _last_columns_tangent(whole, q, q_dot)], axis),
                joining.concatenate([r_dot, ad_util.filled(0, r[..., size:, :])], axis - 1)]
    return [q_dot, r_dot]


def _last_columns_tangent(whole: Any, q: Any, q_dot: Array) -> Array:
    """The tangents of the last columns of a full Q, which come from the same reflections.

    Q is ``I - V T Vᴴ``, so that those columns are the identity's and ``(I - Q) M``.
    """
    size, axis = q.shape[-1], q.ndim - 2
    gap: Any = identity_like(q) - q
    corner = gap[..., :size, :]
    m = lu.solve(corner, whole[..., :size, size:])
    one = identity_like(whole[..., size:, size:])
    back = matmul(adjoint(q_dot), joining.concatenate([m, one], axis))
    return matmul(gap, lu.solve(adjoint(corner), back)) - matmul(q_dot, m)


def _factor_qr(b: Any, lapack: Callable, matrix: Any, q: Any, r: Any, *, full_matrices: bool
               ) -> None:
    """geqrf gives R with Householder's reflectors below it, orgqr their product, which is Q."""
    (n, m), width = matrix.shape, q.shape[1]
    size, floats = min(m, n), 32 * max(n, width)  # blocks of as many columns as LAPACK likes
    turned, scales = b.temp((width, m), matrix.dtype), b.temp((size,), matrix.dtype)
    work = b.temp((floats,), matrix.dtype)
    with b.threads_of_ours(m * n > 64**2):
        lapack("geqrf", m, n, matrix, m, scales, work, floats)
        with slots.nest(b, r.shape) as (i, j):
            r.store((i, j), b.select(b.le(b.index(i), j), b.load(matrix, (j, b.min(i, m - 1))), 0))
        with b.loop(size) as j, b.loop(m, vectorize="parallel") as i:
            b.store(turned, (j, i), b.load(matrix, (j, i)))
        lapack("orgqr", m, width, size, turned, m, scales, work, floats)
    store_transposed(b, turned, q)


qr_p = factorization(
    "qr",
    impl=lambda x, full_matrices: list(np.linalg.qr(
        x, "complete" if full_matrices else "reduced")),
    jvp=factored(_qr_tangents),
    library=of_each_matrix(_factor_qr),
    examples=lambda: examples_of_matrices(
        "full_matrices", [(nonsingular(3, 3), True), (nonsingular(2, 4, 2), False),
                          (nonsingular(2, 3), False), (nonsingular(2, 3), True),
                          (nonsingular(1, 1), False), (nonsingular(4, 2), True)],
        [(nonsingular(5, 2), False), (np.zeros((0, 0)), True), (np.zeros((0, 2)), False)]))


# ── eigh ─────────────────────────────────────────────────────────────────────────────────────


def _eigh_tangents(t: Array, outs: Sequence[Array], *, lower: bool) -> list[Array]:
    """Giles, *Collected matrix derivative results* (2008), section 3.1."""
    vectors, values = outs
    inside = matmul(matmul(adjoint(vectors), t), vectors)
    turn = inverse_gaps(values, t.dtype)
    return [matmul(vectors, turn * inside), _real_part(diagonal_of(inside))]


def _real_part(x: Array) -> Array:
    return real(x) if is_complex(x) else x


def _factor_eigh(b: Any, lapack: Callable, matrix: Any, vectors: Any, values: Any, *, lower: bool
                 ) -> None:
    n = matrix.shape[0]
    floats, integers = 1 + 6 * n + 2 * n * n, 3 + 5 * n  # what ?syevd asks for
    work, iwork = b.temp((floats,), matrix.dtype), b.temp((integers,), np.int64)
    lapack("syevd", ord("V"), ord("L" if lower else "U"), n, matrix, n, b.address(values), work,
           floats, iwork, integers)
    store_transposed(b, matrix, vectors)


eigh_p = factorization(
    "eigh", impl=lambda x, lower: list(by_lapack("eigh_lo" if lower else "eigh_up", x)[::-1]),
    square=True,
    jvp=factored(_eigh_tangents),
    library=of_each_matrix(_factor_eigh),
    examples=lambda: examples_of_matrices(
        "lower", [(symmetric(3, 3), True), (symmetric(2, 4, 4), False), (symmetric(1, 1), True)],
        [(symmetric(9, 9), True), (np.zeros((0, 0)), True), (np.zeros((2, 0, 0)), True)]))


class EighImplementation(enum.Enum):
    """The implementation of `eigh`: QR is LAPACK, the others are for GPUs and TPUs."""

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


def eigh(x: Any, *, lower: bool = True, symmetrize_input: bool = True,
         sort_eigenvalues: bool = True, subset_by_index: tuple[int, int] | None = None,
         implementation: EighImplementation | None = None) -> tuple[Array, ...]:
    """Eigenvectors and eigenvalues of symmetric or Hermitian matrices, in ascending order.

    Args:
      lower: which triangle is read, where the input is not symmetrized.
      symmetrize_input: whether ``(x + xᴴ) / 2`` is taken; otherwise derivatives are those along
        symmetric changes.
      sort_eigenvalues: accepted for JAX's sake; they always are sorted.
      subset_by_index: None, or (0, n), which is all of them.
      implementation: None, or QR.

    Returns:
      The matrix whose columns are the eigenvectors, and the eigenvalues.

    >>> eigh(np.array([[2., 0.], [0., 1.]]))[1]
    Array([1., 2.], dtype=float32)

    Raises:
      NotImplementedError: for a subset of the eigenvalues, and for another implementation.
      TypeError: for other than matrices.
    """
    x = as_value(x)
    if implementation is EighImplementation.JACOBI:
        raise NotImplementedError("Jacobi implementation is not supported on CPU")
    if implementation is EighImplementation.QDWH:
        raise NotImplementedError("QDWH implementation is only supported on TPU")
    if subset_by_index is not None and subset_by_index != (0, x.shape[-1]):
        raise NotImplementedError("subset_by_index not supported on CPU and GPU")
    return tuple(eigh_p.bind(linalg.symmetrized(x) if symmetrize_input else x, lower=lower))


# ── svd ──────────────────────────────────────────────────────────────────────────────────────

def _svd_impl(x: np.ndarray, *, full_matrices: bool, compute_uv: bool) -> list[np.ndarray]:
    if not compute_uv:
        return [by_lapack("svd", x)]
    left, values, right = by_lapack("svd_f" if full_matrices else "svd_s", x)
    return [values, left, right]


def _svd_jvp(primals: list, tangents: list, *, full_matrices: bool, compute_uv: bool) -> Outs:
    """The derivative of singular values needs their vectors, which are computed in any case."""
    [x] = primals
    if compute_uv and full_matrices and x.shape[-1] != x.shape[-2]:
        raise NotImplementedError(
            "Singular value decomposition JVP not implemented for full matrices")
    factors = svd_p.bind(x, full_matrices=False, compute_uv=True)
    count = 3 if compute_uv else 1
    return factors[:count], _svd_tangents(tangents[0], *factors)[:count]


def _svd_tangents(t: Array, values: Array, left: Array, right: Array) -> list[Array]:
    """Giles, *Collected matrix derivative results* (2008), section 3.2."""
    v, scale = adjoint(right), convert.convert_element_type(values, t.dtype)
    inside = matmul(matmul(adjoint(left), t), v)
    gaps = inverse_gaps(values * values, t.dtype)
    scaled, turned = inside * as_row(scale), as_column(scale) * inside
    left_turn = gaps * (scaled + adjoint(scaled))
    v_dot = matmul(v, gaps * (turned + adjoint(turned)))
    zero = convert.convert_element_type(comparison.eq(values, ad_util.filled(0, values)), t.dtype)
    inverse = as_row(1 / (scale + zero) - zero)
    if is_complex(t):  # the phases of the vectors
        imaginary = (inside - conj(inside)) / 2 * identity_like(inside)
        left_turn = left_turn + imaginary * inverse
    left_dot = matmul(left, left_turn)
    if left.shape[-2] > left.shape[-1]:
        left_dot = left_dot + _orthogonal_part(left, matmul(t, v)) * inverse
    if v.shape[-2] > v.shape[-1]:
        v_dot = v_dot + _orthogonal_part(v, matmul(adjoint(t), left)) * inverse
    return [_real_part(diagonal_of(inside)), left_dot, adjoint(v_dot)]


def _orthogonal_part(basis: Array, x: Array) -> Array:
    """The part of x that is orthogonal to the columns of an orthonormal basis."""
    return x - matmul(basis, matmul(adjoint(basis), x))


def _factor_svd(b: Any, lapack: Callable, matrix: Any, values: Any, *vectors: Any,
                full_matrices: bool, compute_uv: bool) -> None:
    n, m = matrix.shape
    size, large = sorted((m, n))
    left, right = (vectors[0].shape[1], vectors[1].shape[0]) if compute_uv else (1, 1)
    floats, integers = 4 * size * size + 7 * size + large, 8 * size  # what ?gesdd asks for
    u, vt = b.temp((left, m), matrix.dtype), b.temp((n, right), matrix.dtype)
    work, iwork = b.temp((floats,), matrix.dtype), b.temp((integers,), np.int64)
    job = ord("N" if not compute_uv else "A" if full_matrices else "S")
    lapack("gesdd", job, m, n, matrix, m, b.address(values), u, m, vt, right, work, floats, iwork)
    for matrix, out in zip((u, vt), vectors, strict=False):
        store_transposed(b, matrix, out)


svd_p = factorization(
    "svd", impl=_svd_impl,
    jvp=_svd_jvp,
    library=of_each_matrix(_factor_svd),
    examples=lambda: examples_of_matrices(
        "full_matrices compute_uv",
        [(nonsingular(3, 3), True, True), (nonsingular(2, 4, 2), False, True),
         (nonsingular(2, 3), False, True), (nonsingular(2, 3), False, False)],
        [(np.zeros((0, 0)), True, True), (np.zeros((2, 0)), False, True),
         (np.zeros((0, 2)), False, False)]))


class SvdAlgorithm(enum.Enum):
    """The algorithm of `svd`; DEFAULT and QR, too, are LAPACK's divide and conquer."""

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


def svd(x: Any, *, full_matrices: bool = True, compute_uv: bool = True,
        subset_by_index: tuple[int, int] | None = None, algorithm: SvdAlgorithm | None = None
        ) -> Any:
    """Orthogonal U and V, and singular values s, largest first, with ``x = U diag(s) Vᴴ``.

    Args:
      full_matrices: whether U and V are square; otherwise they have as many columns as s has
        numbers.
      compute_uv: whether to return U and V.
      subset_by_index: None, or the whole range of singular values, from 0 to their number.
      algorithm: None, or one that a CPU has: not JACOBI or POLAR.

    Returns:
      U, s and Vᴴ; or s alone.

    >>> svd(np.array([[0., 2.], [1., 0.]]), compute_uv=False)
    Array([2., 1.], dtype=float32)

    Raises:
      NotImplementedError: for a subset of the singular values, and for another algorithm.
      TypeError: for other than matrices.
    """
    x = as_value(x)
    if algorithm not in (None, SvdAlgorithm.DEFAULT, SvdAlgorithm.QR,
                         SvdAlgorithm.DIVIDE_AND_CONQUER):
        raise NotImplementedError("The SVD Jacobi and Polar algorithms are not implemented on CPU.")
    if subset_by_index is not None and subset_by_index != (0, min(x.shape[-2:])):
        if full_matrices:
            raise ValueError("full_matrices and subset_by_index cannot both be set")
        raise NotImplementedError("subset_by_index not implemented for CPU and GPU")
    outs = svd_p.bind(x, full_matrices=full_matrices, compute_uv=compute_uv)
    return (outs[1], outs[0], outs[2]) if compute_uv else outs[0]
