"""Primitives eig, schur, hessenberg and tridiagonal, by SciPy's LAPACK on the host.

Stands on `linalg`, `spectral`, `lu`.  Chapter 12, for how compiled code calls Python.
In JAX: `jax/_src/lax/linalg.py`.
"""

import enum
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.core import Array, Primitive, ShapedArray, cannot
from minijax.primitives.convert import convert_element_type
from minijax.primitives.emitted import batch_in_front
from minijax.primitives.examples import Examples
from minijax.primitives.linalg import (check_matrix, examples_of_matrices, product, spread_out,
                                       symmetric)
from minijax.primitives.lu import solve
from minijax.primitives.spectral import diagonal_of, inverse_gaps

Types = list[tuple[tuple[int, ...], Any]]


# ── The family ───────────────────────────────────────────────────────────────────────────────

def on_host(name: str, compute: Callable[..., Sequence[np.ndarray]], types: Callable[..., Types],
            *, square: bool = True, iterates: bool = False, jvp: Any, examples: Examples
            ) -> Primitive:
    """A primitive that takes stacks of matrices to what a Python function makes of each.

    Args:
      compute: ``(matrix, **params)``, in NumPy.
      types: ``(m, n, dtype, **params)``: the shape and dtype of each result of one m×n matrix.
      iterates: whether it may fail to converge; all its results are then nan, and so they are
        where a number is not finite.
    """
    def abstract_eval(x: ShapedArray, **params: Any) -> list[ShapedArray]:
        check_matrix(name, x, square)
        *stack, m, n = x.shape
        return [x.update(shape=(*stack, *shape), dtype=np.dtype(dtype))
                for shape, dtype in types(m, n, x.dtype, **params)]

    def impl(x: np.ndarray, **params: Any) -> list[np.ndarray]:
        *stack, m, n = x.shape
        outs = [np.full((*stack, *shape), np.nan if iterates else 0, dtype)
                for shape, dtype in types(m, n, x.dtype, **params)]
        for place in np.ndindex(*stack):
            if iterates and not np.isfinite(x[place]).all():
                continue
            try:
                found = compute(x[place], **params)
            except np.linalg.LinAlgError:
                continue
            for out, each in zip(outs, found, strict=True):
                out[place] = each
        return outs

    return Primitive(
        name, multiple_results=True, impl=impl, abstract_eval=abstract_eval, jvp=jvp,
        transpose=cannot("the factors are not linear in the matrix."), batch=batch_in_front(),
        loop=lambda b, outs, operands, **params: b.host_call(
            functools.partial(impl, **params), operands, outs),
        examples=examples)


def _lapack(routine: str, x: np.ndarray, **options: Any) -> Sequence[np.ndarray]:
    """What a LAPACK routine gives, less the number that tells of failure."""
    from scipy.linalg import lapack
    return lapack.get_lapack_funcs(routine, (x,))(x, **options)[:-1]


def _no_derivative(name: str) -> Any:
    return cannot(f"{name} has no derivative: its factors are not unique.")


# ── eig ──────────────────────────────────────────────────────────────────────────────────────

class EigImplementation(enum.Enum):
    """Who computes `eig`; here it is LAPACK."""

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


def _eig(x: np.ndarray, *, left: bool, right: bool, scaled: bool) -> list[np.ndarray]:
    import scipy.linalg
    if not x.size:
        return [np.zeros(0), *[x] * (left + right)]
    found = scipy.linalg.eig(x, left=left, right=right, check_finite=False)
    return list(found) if left or right else [found]


def _eig_types(m: int, n: int, dtype: Any, *, left: bool, right: bool, scaled: bool) -> Types:
    wide = np.result_type(dtype, np.complex64)
    return [((n,), wide), *[((n, n), wide)] * (left + right)]


def _eig_jvp(primals: list, tangents: list, *, left: bool, right: bool, scaled: bool
             ) -> tuple[list, list]:
    """Each value by what the change does to its vector, whose own length may change.

    Source: M. Giles, *Collected matrix derivative results* (2008), section 3.1.
    """
    if scaled and (left or right):
        raise NotImplementedError(
            "Derivatives of non-symmetric eigenvectors are only valid under assumptions on the "
            "input that cannot be checked; jnp.linalg.eigvals has a derivative, and so has "
            "jnp.linalg.eigh.")
    values, vectors = eig_p.bind(primals[0], left=False, right=True, scaled=False)
    slope = convert_element_type(tangents[0], vectors.dtype)
    inside = solve(vectors, product(slope, vectors))
    turn = product(vectors, inverse_gaps(values, vectors.dtype) * inside)
    return [values, vectors][:1 + right], [diagonal_of(inside), turn][:1 + right]


eig_p = on_host(
    "eig",
    _eig,
    _eig_types,
    iterates=True,
    jvp=_eig_jvp,
    examples=lambda: examples_of_matrices(
        "left right scaled",
        [(spread_out(3, 3), False, False, True), (spread_out(2, 2, 2), False, False, True)],
        [(np.zeros((0, 0)), False, False, True), (np.full((2, 2), np.nan), False, False, True)]))


def eig(x: Any, *, compute_left_eigenvectors: bool = True,
        compute_right_eigenvectors: bool = True, enable_eigvec_derivs: bool = False,
        implementation: EigImplementation | None = None, use_magma: bool | None = None
        ) -> list[Array]:
    """The eigenvalues of square matrices, complex, with left and right eigenvectors as columns.

    Args:
      x: floats or complex numbers, of shape (…, n, n).
      compute_left_eigenvectors: whether the vectors u with ``uᴴ x = w uᴴ`` are wanted.
      compute_right_eigenvectors: whether the vectors v with ``x v = w v`` are wanted.
      implementation: LAPACK, or None.

    >>> eig(np.array([[0., 1.], [-1., 0.]]))[0]
    Array([0.+1.j, 0.-1.j], dtype=complex64)

    Raises:
      NotImplementedError: for derivatives of vectors.
      TypeError, ValueError: for other than square matrices.
    """
    if enable_eigvec_derivs:  # JAX: has them, where the values are distinct.
        raise NotImplementedError("enable_eigvec_derivs is not implemented: eigenvectors have no "
                                  "derivative here; those of eigh have")
    if implementation not in (None, EigImplementation.LAPACK):
        raise ValueError("Only the lapack implementation is supported on CPU.")
    return eig_p.bind(x, left=compute_left_eigenvectors, right=compute_right_eigenvectors,
                      scaled=True)


# ── schur ────────────────────────────────────────────────────────────────────────────────────

def _schur(x: np.ndarray, *, vectors: bool) -> Sequence[np.ndarray]:
    import scipy.linalg
    found = scipy.linalg.schur(x, check_finite=False) if x.size else (x, x)
    return found[:1 + vectors]


schur_p = on_host(
    "schur",
    _schur,
    lambda m, n, dtype, vectors: [((n, n), dtype)] * (1 + vectors),
    iterates=True,
    jvp=_no_derivative("schur"),
    examples=lambda: examples_of_matrices(
        "vectors", [(spread_out(3, 3), True), (spread_out(2, 4, 4), False)],
        [(np.zeros((0, 0)), True), (np.full((2, 2), np.nan), True)]))


def schur(x: Any, *, compute_schur_vectors: bool = True, sort_eig_vals: bool = False,
          select_callable: Callable[..., Any] | None = None) -> list[Array]:
    """T and a unitary Z with ``x = Z T Zᴴ``, T being triangular but for 2×2 blocks of real x.

    Args:
      x: floats or complex numbers, of shape (…, n, n).
      compute_schur_vectors: whether Z is wanted.
      sort_eig_vals, select_callable: taken for JAX's sake; the eigenvalues are in LAPACK's order.

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
        "", [(spread_out(3, 3),), (spread_out(2, 4, 4),)], [(spread_out(1, 1),)]))


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


def _tridiagonal(x: np.ndarray, *, lower: bool) -> Sequence[np.ndarray]:
    return _lapack("hetrd" if np.iscomplexobj(x) else "sytrd", x, lower=lower)


def _tridiagonal_types(m: int, n: int, dtype: Any, *, lower: bool) -> Types:
    real = np.finfo(dtype).dtype
    rest = (max(n - 1, 0),)
    return [((n, n), dtype), ((n,), real), (rest, real), (rest, dtype)]


tridiagonal_p = on_host(
    "tridiagonal",
    _tridiagonal,
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
      An array with the reflections' vectors, the diagonal, what stands beside it, and the scales
      of the reflections.

    >>> tridiagonal(np.array([[2., 1.], [1., 2.]]))[1]
    Array([2., 2.], dtype=float32)

    Raises:
      TypeError, ValueError: for other than square matrices, and empty ones.
    """
    _not_empty("tridiagonal", a)
    return tridiagonal_p.bind(a, lower=lower)
