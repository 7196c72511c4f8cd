"""Primitives eig, schur, hessenberg, tridiagonal, column_order, by SciPy's LAPACK on the host.

Builds on `linalg`, `eigh_svd`, `lu`.  Chapter 12, for how compiled code calls Python.
In JAX: `jax/_src/lax/linalg.py`.
"""

import enum
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.core import Array, Outs, Primitive, as_value, cannot
from minijax.primitives.algebra import complex, conj, imag, real
from minijax.primitives import comparison, convert, eigh_svd, families, gather_scatter, lu, rounding
from minijax.primitives.ad_util import filled
from minijax.primitives.linalg import (adjoint, check_matrix, examples_of_matrices, factorization,
                                       matmul, matrix_transpose, nonsingular, symmetric)

Types = list[tuple[tuple[int, ...], Any]]


# ── The family ───────────────────────────────────────────────────────────────────────────────

def on_host(name: str, compute: Callable[..., Sequence[np.ndarray]], types: Callable[..., Types],
            *, square: bool = True, iterates: bool = False, **slots: Any) -> Primitive:
    """A factorization that applies a Python function to every matrix of a stack.

    Args:
      compute: ``(matrix, **params)``, in NumPy.
      types: ``(m, n, dtype, **params)``: the shape and dtype of each result of one m×n matrix.
      iterates: whether it may fail to converge; its results are then nan, as they are for a
        matrix with an element that is not finite.
    """
    def impl(x: np.ndarray, **params: Any) -> list[np.ndarray]:
        *stack, m, n = x.shape
        outs = [np.zeros((*stack, *shape), kind) for shape, kind in types(m, n, x.dtype, **params)]
        if iterates:
            for out in outs:
                out.view(np.finfo(out.dtype).dtype)[...] = np.nan  # in both parts
        for place in np.ndindex(*stack):
            if iterates and not np.isfinite(x[place]).all():
                continue
            try:
                results = compute(x[place], **params)
            except np.linalg.LinAlgError:
                continue
            for out, result in zip(outs, results, strict=True):
                out[place] = result
        return outs

    return factorization(
        name, impl=impl, square=square, loop=lambda b, outs, operands, **params: b.host_call(
            functools.partial(impl, **params), operands, outs), **slots)


def _lapack(routine: str, x: np.ndarray, **options: Any) -> Sequence[np.ndarray]:
    """The results of a LAPACK routine, without its error code."""
    from scipy.linalg import lapack
    return lapack.get_lapack_funcs(routine, (x,))(x, **options)[:-1]


def _no_derivative(name: str) -> Any:
    return cannot(f"{name} has no derivative: its factors are not unique.")


# ── eig ──────────────────────────────────────────────────────────────────────────────────────

class EigImplementation(enum.Enum):
    """The implementation of `eig`, which here is LAPACK."""

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


def _eig(x: np.ndarray, *, left: bool, right: bool, varies: bool) -> list[np.ndarray]:
    import scipy.linalg
    if not x.size:
        return [np.zeros(0), *[x] * (left + right)]
    results = scipy.linalg.eig(x, left=left, right=right, check_finite=False)
    return list(results) if left or right else [results]


def _eig_jvp(primals: list, tangents: list, *, left: bool, right: bool, varies: bool) -> Outs:
    """Giles, *Collected matrix derivative results* (2008), section 3.1."""
    if (left or right) and not varies:
        raise NotImplementedError(
            "Derivatives of non-symmetric eigenvectors are only valid under assumptions on the "
            "input that JAX cannot check (see the enable_eigvec_derivs argument to "
            "jax.lax.linalg.eig). Pass enable_eigvec_derivs=True to jax.lax.linalg.eig to opt in. "
            "See https://github.com/jax-ml/jax/issues/2748 for discussion.")
    values, *vectors = eig_p.bind(primals[0], left=left, right=True, varies=True)
    t = convert.convert_element_type(tangents[0], values.dtype)
    values_dot, turn = _eig_tangents(t, values, vectors[-1])
    left_dots = [_eig_tangents(adjoint(t), conj(values), u)[1] for u in vectors[:left]]
    return [values, *vectors][:1 + left + right], [values_dot, *left_dots, turn][:1 + left + right]


def _eig_tangents(t: Array, values: Array, vectors: Array) -> tuple[Array, Array]:
    """The tangents of values and vectors, whose length stays 1 and largest element real."""
    inside = lu.solve(vectors, matmul(t, vectors))
    turn: Any = matmul(vectors, eigh_svd.inverse_gaps(values, vectors.dtype) * inside)
    sizes: Any = rounding.abs(vectors)
    largest: Any = sizes == sizes.max(-2, keepdims=True, initial=0)
    here, there = (comparison.select(largest, x, filled(0, x)).sum(-2) for x in (vectors, turn))
    excess = complex(real((conj(vectors) * turn).sum(-2)), imag(there / here))
    return eigh_svd.diagonal_of(inside), turn - vectors * eigh_svd.as_row(excess)


eig_p = on_host(
    "eig",
    _eig,
    lambda m, n, dtype, left, right, varies: [
        (shape, np.result_type(dtype, np.complex64))
        for shape in [(n,), *[(n, n)] * (left + right)]],
    iterates=True,
    jvp=_eig_jvp,
    examples=lambda: examples_of_matrices(
        "left right varies",
        [(nonsingular(3, 3), False, False, False), (nonsingular(2, 2, 2), True, True, True)],
        [(np.zeros((0, 0)), False, True, True), (np.full((2, 2), np.nan), False, False, False)]))


def eig(x: Any, *, compute_left_eigenvectors: bool = True, compute_right_eigenvectors: bool = True,
        enable_eigvec_derivs: bool = False, implementation: EigImplementation | None = None,
        use_magma: bool | None = None) -> list[Array]:
    """The eigenvalues of square matrices, complex, with left and right eigenvectors as columns.

    Args:
      x: floats or complex numbers, of shape (…, n, n).
      compute_left_eigenvectors: whether to return the vectors u with ``uᴴ x = w uᴴ``.
      compute_right_eigenvectors: whether to return the vectors v with ``x v = w v``.
      enable_eigvec_derivs: whether vectors have a derivative, which is right where the values
        differ from each other, and the elements of a vector in size.
      implementation: LAPACK, or None.

    >>> eig(np.array([[0., 1.], [-1., 0.]]))[0]
    Array([0.+1.j, 0.-1.j], dtype=complex64)

    Raises:
      NotImplementedError: for derivatives of vectors without `enable_eigvec_derivs`.
      TypeError, ValueError: for other than square matrices.
    """
    if implementation not in (None, EigImplementation.LAPACK):
        raise ValueError("Only the lapack implementation is supported on CPU.")
    return eig_p.bind(x, left=compute_left_eigenvectors, right=compute_right_eigenvectors,
                      varies=enable_eigvec_derivs)


# ── schur ────────────────────────────────────────────────────────────────────────────────────

def _schur(x: np.ndarray, *, vectors: bool) -> Sequence[np.ndarray]:
    import scipy.linalg
    return (scipy.linalg.schur(x, check_finite=False) if x.size else (x, x))[:1 + vectors]


schur_p = on_host(
    "schur",
    _schur,
    lambda m, n, dtype, vectors: [((n, n), dtype)] * (1 + vectors),
    iterates=True,
    jvp=_no_derivative("schur"),
    examples=lambda: examples_of_matrices(
        "vectors", [(nonsingular(3, 3), True), (nonsingular(2, 4, 4), False)],
        [(np.zeros((0, 0)), True), (np.full((2, 2), np.nan), True)]))


def schur(x: Any, *, compute_schur_vectors: bool = True, sort_eig_vals: bool = False,
          select_callable: Callable[..., Any] | None = None) -> list[Array]:
    """T and a unitary Z with ``x = Z T Zᴴ``, T being triangular but for 2×2 blocks of real x.

    Args:
      x: floats or complex numbers, of shape (…, n, n).
      compute_schur_vectors: whether to return Z.
      sort_eig_vals, select_callable: accepted for JAX's sake; eigenvalues are in LAPACK's order.

    >>> schur(np.array([[1., 2.], [0., 3.]]))[0]
    Array([[1., 2.],
           [0., 3.]], dtype=float32)

    Raises:
      NotImplementedError: with `sort_eig_vals`.
      TypeError, ValueError: for other than square matrices.
    """
    if sort_eig_vals:
        raise NotImplementedError("The sort feature of LAPACK's gees routine is not implemented.")
    return schur_p.bind(x, vectors=compute_schur_vectors)


# ── qr ───────────────────────────────────────────────────────────────────────────────────────

column_order_p = on_host(
    "column_order",
    lambda x: [_lapack("geqp3", x)[1] - 1 if x.size else np.arange(x.shape[1])],
    lambda m, n, dtype: [((n,), np.int32)],
    square=False,
    jvp=families.constant_in_all,
    examples=lambda: examples_of_matrices(
        "", [(nonsingular(3, 3)[:, ::-1].copy(),), (nonsingular(2, 2, 4),), (nonsingular(4, 2),)],
        [(np.zeros((0, 2)),), (np.zeros((2, 0)),), (np.full((2, 2), np.nan),)]))


def qr(x: Any, *, pivoting: bool = False, full_matrices: bool = True,
       use_magma: bool | None = None) -> tuple[Array, ...]:
    """Orthogonal Q and upper triangular R with ``x = Q R``.

    Args:
      pivoting: whether columns are exchanged so that the diagonal of R falls in size; their order
        p, with ``x[:, p] = Q R``, is the third result.
      full_matrices: whether Q is square; otherwise it has no more columns than x.
      use_magma: a choice for GPUs; it is LAPACK here.

    Raises:
      TypeError: for other than matrices.

    >>> q, r = qr(np.array([[3., 1.], [4., 1.]]))
    >>> np.round(np.asarray(r), 3)
    array([[-5. , -1.4],
           [ 0. , -0.2]], dtype=float32)
    """
    x = as_value(x)
    check_matrix("qr", x.aval)
    if not pivoting:
        return tuple(eigh_svd.qr_p.bind(x, full_matrices=full_matrices))
    # JAX: one factorisation; here the second, of columns in order, is the one with a derivative.
    [order] = column_order_p.bind(x)
    columns = gather_scatter.take_along_axis(matrix_transpose(x), order, x.ndim - 2)
    return (*eigh_svd.qr_p.bind(matrix_transpose(columns), full_matrices=full_matrices), order)


# ── hessenberg and tridiagonal ───────────────────────────────────────────────────────────────

def _not_empty(name: str, x: Any) -> None:
    if 0 in np.shape(x)[-2:]:
        raise ValueError(f"{name} takes no empty matrices, got shape {np.shape(x)}")


hessenberg_p = on_host(
    "hessenberg",
    lambda x: _lapack("gehrd", x),
    lambda m, n, dtype: [((n, n), dtype), ((max(n - 1, 0),), dtype)],
    jvp=_no_derivative("hessenberg"),
    examples=lambda: examples_of_matrices(
        "", [(nonsingular(3, 3),), (nonsingular(2, 4, 4),)], [(nonsingular(1, 1),)]))


def hessenberg(a: Any) -> list[Array]:
    """Square matrices made zero below the first subdiagonal by reflections from both sides.

    Args:
      a: floats or complex numbers, of shape (…, n, n).

    Returns:
      The result, with the reflections' vectors where its zeros are, and their n - 1 scales: what
      `householder_product` takes.

    >>> hessenberg(np.array([[1., 2.], [3., 4.]]))[0]
    Array([[1., 2.],
           [3., 4.]], dtype=float32)

    Raises:
      TypeError, ValueError: for other than square matrices, and empty ones.
    """
    _not_empty("hessenberg", a)
    return hessenberg_p.bind(a)


def _tridiagonal_types(m: int, n: int, dtype: Any, *, lower: bool) -> Types:
    real = np.finfo(dtype).dtype
    rest = (max(n - 1, 0),)
    return [((n, n), dtype), ((n,), real), (rest, real), (rest, dtype)]


tridiagonal_p = on_host(
    "tridiagonal",
    lambda x, lower: _lapack("hetrd" if np.iscomplexobj(x) else "sytrd", x, lower=lower),
    _tridiagonal_types,
    jvp=_no_derivative("tridiagonal"),
    examples=lambda: examples_of_matrices(
        "lower", [(symmetric(3, 3), True), (symmetric(2, 4, 4), False)],
        [(symmetric(1, 1), True)]))


def tridiagonal(a: Any, *, lower: bool = True) -> list[Array]:
    """Symmetric or Hermitian matrices made tridiagonal by reflections from both sides.

    Args:
      a: floats or complex numbers, of shape (…, n, n).
      lower: which triangle is read.

    Returns:
      An array with the reflectors, the diagonal, the off-diagonal, and the scales of the
      reflectors.

    >>> tridiagonal(np.array([[2., 1.], [1., 2.]]))[1]
    Array([2., 2.], dtype=float32)

    Raises:
      TypeError, ValueError: for other than square matrices, and empty ones.
    """
    _not_empty("tridiagonal", a)
    return tridiagonal_p.bind(a, lower=lower)
