"""Factorisations of matrices, and norms: cholesky, eig, eigh, qr, svd, norm, ….

Builds on `reductions`, `lax.linalg`.  Chapter 20, *Precision*; capstones with Gaussian processes.
In JAX: `jax/_src/numpy/linalg.py`.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

from minijax import dtypes, lax
from minijax.core import Array
from minijax.numpy import diagonals, reductions, searching, shaping, sorting
from minijax.numpy.arguments import (Axes, Inexact, canonical_axes, choose, convert, indices_along,
                                     public)
from minijax.primitives.linalg import adjoint


EigResult = namedtuple("EigResult", "eigenvalues eigenvectors")
EighResult = namedtuple("EighResult", "eigenvalues eigenvectors")
QRResult = namedtuple("QRResult", "Q R")
SVDResult = namedtuple("SVDResult", "U S Vh")


def cholesky(a: Inexact, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """The triangular L with positive diagonal for which ``a = L Lᴴ``; nan where there is none.

    >>> cholesky(np.array([[4., 2.], [2., 5.]]))
    Array([[2., 0.],
           [1., 2.]], dtype=float32)

    Args:
      upper: whether to return ``Lᴴ``.
      symmetrize_input: whether ``(a + aᴴ) / 2`` is factored; otherwise one triangle is read.
    """
    factor = lax.linalg.cholesky(adjoint(a) if upper else a, symmetrize_input=symmetrize_input)
    return adjoint(factor) if upper else factor


def eig(a: Inexact) -> EigResult:
    """The eigenvalues and eigenvectors of matrices: ``a @ v[:, i] = w[i] * v[:, i]``.

    Args:
      a: square matrices, floats or complex, of shape (…, n, n).

    Returns:
      Complex numbers: eigenvalues of shape (…, n), in LAPACK's order, and vectors of length 1 as
      columns, of shape (…, n, n).  The numbers are computed on the host.

    >>> import numpy as np
    >>> eig(np.array([[0., 1.], [-1., 0.]])).eigenvalues
    Array([0.+1.j, 0.-1.j], dtype=complex64)

    Raises:
      ValueError, TypeError: for other than square matrices.
      NotImplementedError: for derivatives of the vectors, and for 16-bit floats.
    """
    return EigResult(*lax.linalg.eig(a, compute_left_eigenvectors=False))


def eigvals(a: Inexact) -> Array:
    """The eigenvalues of matrices, as complex numbers.

    Args:
      a: square matrices, floats or complex, of shape (…, n, n).

    >>> import numpy as np
    >>> eigvals(np.array([[2., 0.], [0., 3.]]))
    Array([2.+0.j, 3.+0.j], dtype=complex64)

    Raises:
      ValueError, TypeError: for other than square matrices.
    """
    return lax.linalg.eig(a, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0]


def eigh(a: Inexact, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """The eigenvalues, ascending, and eigenvectors of symmetric or Hermitian matrices.

    >>> eigh(np.array([[2., 0.], [0., 1.]])).eigenvalues
    Array([1., 2.], dtype=float32)

    Args:
      UPLO: "L" or "U": the triangle that is read, where the input is not symmetrized.
      symmetrize_input: whether ``(a + aᴴ) / 2`` is taken.
    """
    if UPLO not in (None, "L", "U"):
        raise ValueError(f"UPLO must be one of None, 'L', or 'U', got {UPLO}")
    vectors, values = lax.linalg.eigh(a, lower=UPLO != "U", symmetrize_input=symmetrize_input)
    return EighResult(values, vectors)


def eigvalsh(a: Inexact, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Array:
    """The eigenvalues of symmetric or Hermitian matrices, ascending.

    >>> eigvalsh(np.array([[2., 0.], [0., 1.]]))
    Array([1., 2.], dtype=float32)
    """
    return eigh(a, UPLO, symmetrize_input).eigenvalues


def qr(a: Inexact, mode: str = "reduced") -> Any:
    """Orthogonal Q and upper triangular R with ``a = Q R``.

    >>> qr(np.array([[3., 1.], [4., 1.]])).R.shape
    (2, 2)

    Args:
      mode: "reduced" (also "full"); "complete" for a square Q; "r" for R alone; "raw" for
        LAPACK's own form, transposed, and the factors of its reflections.
    """
    if mode not in ("reduced", "complete", "full", "r", "raw"):
        raise ValueError(f"Unsupported QR decomposition mode '{mode}'")
    q, r = lax.linalg.qr(a, full_matrices=mode == "complete")
    return r if mode == "r" else QRResult(*(_reflections(q, r) if mode == "raw" else (q, r)))


def _reflections(q: Any, r: Any) -> tuple[Any, Any]:
    """R, below it the vectors of the Householder reflections whose product is Q; their factors.

    Q is ``I - V T Vᴴ`` with V lower and T upper triangular, so V and T Vᴴ are the L and U of I - Q.
    """
    m, k = q.shape[-2:]
    rows, columns = indices_along((m, k), 0, 1)
    below: Any = rows[:, 0]

    def eliminate(j: Any, a: Any) -> Any:
        row, column = a[..., j, :], a[..., j]
        pivot = row[..., j, None]
        # a factor is 0 or at least 1: smaller ones are rounding errors
        is_some = (lax.abs(pivot) > .5) & (below > j)
        vector: Any = choose(is_some, column / choose(is_some, pivot, 1), 0)
        a = choose(columns > j, a - vector[..., None] * row[..., None, :], a)
        return a.at[..., j].set(choose(below > j, vector, column))

    a = lax.fori_loop(0, k, eliminate, convert(rows == columns, q.dtype) - q)
    factors = diagonals.diagonal(a, axis1=-2, axis2=-1)
    lower: Any = diagonals.tril(a, -1)
    packed = lower.at[..., :k, :].add(r) if m >= r.shape[-1] else r.at[..., :k].add(lower)
    return shaping.matrix_transpose(packed), choose(lax.abs(factors) > .5, factors, 0)


def svd(a: Inexact, full_matrices: bool = True, compute_uv: bool = True,
        hermitian: bool = False, subset_by_index: tuple[int, int] | None = None) -> Any:
    """Orthogonal U and V, and singular values S, largest first, with ``a = U diag(S) Vᴴ``.

    >>> svd(np.array([[0., 2.], [1., 0.]]), compute_uv=False)
    Array([2., 1.], dtype=float32)

    Args:
      full_matrices: whether U and V are square.
      compute_uv: whether to return U and V, too; otherwise S alone.
      hermitian: whether `a` is symmetric, or Hermitian; then its eigenvectors are used.
      subset_by_index: the range of the singular values: all of them, like None.
    """
    if hermitian:
        return _svd_of_symmetric(a, compute_uv, subset_by_index)
    factors = lax.linalg.svd(a, full_matrices=full_matrices, compute_uv=compute_uv,
                             subset_by_index=subset_by_index)
    return SVDResult(*factors) if compute_uv else factors


def _svd_of_symmetric(x: Any, compute_uv: bool, subset: tuple[int, int] | None) -> Any:
    """Singular values are the absolute eigenvalues; V takes their signs."""
    vectors, values = lax.linalg.eigh(x, subset_by_index=subset)
    order: Any = shaping.flip(sorting.argsort(lax.abs(values), -1), -1)
    values = searching.take_along_axis(values, order, -1)
    if not compute_uv:
        return lax.abs(values)
    u = searching.take_along_axis(vectors, order[..., None, :], -1)
    return SVDResult(u, lax.abs(values), adjoint(u * lax.sign(values)[..., None, :]))


def svdvals(x: Inexact, /) -> Array:
    """The singular values of matrices, largest first.

    >>> svdvals(np.array([[0., 2.], [1., 0.]]))
    Array([2., 1.], dtype=float32)
    """
    return svd(x, compute_uv=False)


# ── Norms ────────────────────────────────────────────────────────────────────────────────────────

def norm(x: Inexact, ord: Any = None, axis: Axes = None, keepdims: bool = False) -> Array:
    """The length of a vector, or the size of a matrix; without `ord` the Euclidean one.

    >>> norm(np.array([3., 4.]))
    Array(5., dtype=float32)

    Args:
      ord: of vectors: a number p, inf, -inf or 0; of matrices: "fro", "nuc", 1, -1, 2, -2, inf
        or -inf.
      axis: one axis for vectors, two for matrices; all by default.

    Raises:
      ValueError: for other orders and numbers of axes.
    """
    axes = canonical_axes(axis, x.ndim)
    if ord is None and (axis is None or len(axes) in (1, 2)):
        return _euclidean(x, axes, keepdims)
    if len(axes) in (1, 2):
        return (_vector_norm if len(axes) == 1 else _matrix_norm)(x, ord, axes, keepdims)
    raise ValueError(f"Improper number of axes for norm: axis={axes}. Pass one axis to compute a "
                     "vector-norm, or two axes to compute a matrix-norm.")


def vector_norm(x: Inexact, /, *, axis: Axes = None, keepdims: bool = False, ord: Any = 2) -> Array:
    """The length of vectors; their components may lie along several axes.

    >>> vector_norm(np.array([[3., 0.], [0., 4.]]))
    Array(5., dtype=float32)
    """
    return _vector_norm(x, ord, canonical_axes(axis, x.ndim), keepdims)


def matrix_norm(x: Inexact, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    """The size of every matrix in a stack; the orders are those of `norm`.

    >>> matrix_norm(np.array([[3., 0.], [0., 4.]]), ord=2)
    Array(4., dtype=float32)
    """
    return norm(x, ord, (-2, -1), keepdims)


def _euclidean(x: Any, axes: tuple[int, ...], keepdims: bool) -> Array:
    is_complex = dtypes.issubdtype(x.dtype, np.complexfloating)
    squares = lax.real(x * lax.conj(x)) if is_complex else lax.square(x)
    return lax.sqrt(reductions.sum(squares, axes, keepdims=keepdims))


def _vector_norm(x: Any, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Array:
    if ord is None or ord == 2:
        return _euclidean(x, axes, keepdims)
    size = lax.abs(x)
    if ord in (np.inf, -np.inf):
        return _extreme(ord, size, axes, keepdims=keepdims)
    if ord == 0:
        return reductions.sum(x != 0, axes, dtype=size.dtype, keepdims=keepdims)
    if ord == 1:
        return reductions.sum(size, axes, keepdims=keepdims)
    if isinstance(ord, str):
        raise ValueError(f"Invalid order '{ord}' for vector norm.")
    powers = lax.pow(size, convert(ord, size.dtype))
    return lax.pow(reductions.sum(powers, axes, keepdims=keepdims), convert(1 / ord, size.dtype))


def _extreme(ord: Any, sizes: Any, axes: Any, **keywords: Any) -> Array:
    """The largest size for a positive order, 0 where there is none; otherwise the smallest."""
    if ord < 0:
        return reductions.min(sizes, axes, **keywords)
    return reductions.max(sizes, axes, initial=None if sizes.size else 0, **keywords)


def _matrix_norm(x: Any, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Array:
    if ord in ("f", "fro"):
        return _euclidean(x, axes, keepdims)
    if ord in (1, -1, np.inf, -np.inf):
        summed, taken = axes if abs(ord) == 1 else axes[::-1]
        sums = reductions.sum(lax.abs(x), summed, keepdims=True)
        norms = _extreme(ord, sums, taken, keepdims=True)
        return norms if keepdims else lax.squeeze(norms, axes)
    if ord not in (2, -2, "nuc"):
        raise ValueError(f"Invalid order '{ord}' for matrix norm.")
    values = lax.linalg.svd(shaping.moveaxis(x, axes, (-2, -1)), compute_uv=False)
    norms = reductions.sum(values, -1) if ord == "nuc" else _extreme(ord, values, -1)
    return lax.expand_dims(norms, axes) if keepdims else norms


public(globals(), "jnp.linalg.")
