"""Structured matrices: toeplitz, companion, hilbert, ….

Builds on `numpy`.  In JAX: `jax/_src/scipy/linalg.py`.
"""

import functools
import math
import operator
from typing import Any

import numpy as np

from minijax import dtypes, numpy as jnp
from minijax.core import Array, refuse
from minijax.numpy.arguments import (ArrayLike, as_array, as_arrays, promote_dtypes,
                                     promote_dtypes_inexact)


# ── Matrices by their first rows and columns ─────────────────────────────────────────────────

def toeplitz(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """The matrix whose diagonals are constant, with this first column and row.

    >>> toeplitz(jnp.array([1, 2]), jnp.array([0, 3, 4]))
    Array([[1, 3, 4],
           [2, 1, 3]], dtype=int32)

    Args:
      c: columns, of shape (…, m).
      r: rows, of shape (…, n), whose first number is not read; the conjugates of `c` by default.
    """
    column, row = promote_dtypes(*(jnp.atleast_1d(jnp.array(x, x.dtype)) for x in as_arrays(
        "toeplitz", c, jnp.conj(c) if r is None else r)))
    return _hankel(column[..., ::-1], row)[..., ::-1, :]


def hankel(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """The matrix whose antidiagonals are constant, with this first column and last row.

    >>> hankel(jnp.array([1, 2]), jnp.array([0, 3, 4]))
    Array([[1, 2, 3],
           [2, 3, 4]], dtype=int32)

    Args:
      c: columns, of shape (…, m).
      r: rows, of shape (…, n), whose first number is not read; zeros by default.

    Raises:
      ValueError: for scalars.
    """
    column, row = promote_dtypes(*as_arrays("hankel", c, jnp.zeros_like(c) if r is None else r))
    for name, x in (("c", column), ("r", row)):
        if x.ndim == 0:
            raise ValueError(f"hankel: {name} must be at least 1-dimensional, got a scalar.")
    return _hankel(column, row)


@functools.partial(jnp.vectorize, signature="(m),(n)->(m,n)")
def _hankel(column: Any, row: Any) -> Any:
    m, n = column.size, row.size
    return jnp.concatenate([column, row[1:]])[np.arange(m)[:, None] + np.arange(n)]


def circulant(c: ArrayLike) -> Array:
    """The square matrix whose columns are turns of the first.

    >>> circulant(jnp.array([1, 2, 3]))
    Array([[1, 3, 2],
           [2, 1, 3],
           [3, 2, 1]], dtype=int32)
    """
    column = jnp.atleast_1d(as_array("circulant", c))
    indices = np.arange(column.shape[-1])
    return column[..., (indices[:, None] - indices) % max(1, len(indices))]


def convolution_matrix(a: ArrayLike, n: int, mode: str = "full") -> Array:
    """The matrix whose product with a vector of n numbers is the convolution with `a`.

    >>> convolution_matrix(jnp.array([1, 2]), 2)
    Array([[1, 0],
           [2, 1],
           [0, 2]], dtype=int32)

    Args:
      a: vectors, of shape (…, m).
      mode: "full", "same" or "valid", as in `jnp.convolve`.

    Raises:
      ValueError: for another mode, a scalar, and where there is nothing to convolve.
    """
    if (n := operator.index(n)) <= 0:
        raise ValueError(f"n must be a positive integer; got {n}.")
    x = as_array("convolution_matrix", a)
    refuse((x.ndim == 0, "convolution_matrix: a must be at least 1-dimensional, got a scalar."),
           (0 in x.shape[-1:], f"len(a) must be at least 1; got shape {x.shape}."),
           (mode not in ("full", "valid", "same"),
            f"mode must be one of 'full', 'valid', 'same'; got {mode!r}."), error=ValueError)
    zeros = jnp.zeros((*x.shape[:-1], n - 1), x.dtype)
    full = toeplitz(jnp.concatenate([x, zeros], -1), jnp.concatenate([x[..., :1], zeros], -1))
    least = min(x.shape[-1], n) - 1
    cut = {"full": 0, "same": least, "valid": 2 * least}[mode]
    return full[..., cut // 2:full.shape[-2] - (cut - cut // 2), :]


def block_diag(*arrs: ArrayLike) -> Array:
    """A matrix with the given matrices along its diagonal, and zeros elsewhere.

    >>> block_diag(jnp.array([[1, 2]]), 3)
    Array([[1, 2, 0],
           [0, 0, 3]], dtype=int32)
    """
    if not arrs:
        return jnp.zeros((1, 0))
    blocks: list[Any] = [jnp.atleast_2d(x) for x in promote_dtypes(*arrs)]
    if bad := [i for i, x in enumerate(blocks) if x.ndim > 2]:
        raise ValueError("Arguments to jax.scipy.linalg.block_diag must have at most 2 "
                         f"dimensions, got {blocks[bad[0]]} at argument {bad[0]}.")
    *starts, width = np.cumsum([0, *(x.shape[1] for x in blocks)]).tolist()
    return jnp.concatenate([jnp.pad(x, ((0, 0), (start, width - start - x.shape[1])))
                            for x, start in zip(blocks, starts, strict=True)], 0)


# ── Matrices of populations and polynomials ──────────────────────────────────────────────────

def leslie(f: ArrayLike, s: ArrayLike) -> Array:
    """The matrix of a population's growth: births in the first row, survivors below the diagonal.

    >>> leslie(jnp.array([1, 2, 3]), jnp.array([4, 5]))
    Array([[1, 2, 3],
           [4, 0, 0],
           [0, 5, 0]], dtype=int32)

    Raises:
      ValueError: where `f` has fewer than two numbers, or `s` not one fewer than `f`.
    """
    births, survivors = map(jnp.atleast_1d, promote_dtypes(*as_arrays("leslie", f, s)))
    refuse((births.shape[-1] < 2, "The length of f along the last axis must be at least 2; got "
            f"shape {births.shape}."),
           (survivors.shape[-1] != births.shape[-1] - 1, "Incorrect lengths for f and s. The "
            "length of s along the last axis must be one less than the length of f; got f shape "
            f"{births.shape} and s shape {survivors.shape}."), error=ValueError)
    return _row_and_subdiagonal(births, survivors)


@functools.partial(jnp.vectorize, signature="(n),(m)->(n,n)")
def _row_and_subdiagonal(row: Any, below: Any) -> Any:
    """The square matrix with this first row and this subdiagonal."""
    return jnp.diag(below, -1).at[0].set(row)


def companion(a: ArrayLike) -> Array:
    """The matrix whose eigenvalues are the roots of a polynomial.

    >>> companion(jnp.array([1., -3., 2.]))
    Array([[ 3., -2.],
           [ 1.,  0.]], dtype=float32)

    Args:
      a: coefficients, that of the highest power first.

    Raises:
      ValueError: for fewer than two coefficients.
    """
    x = jnp.atleast_1d(*promote_dtypes_inexact(as_array("companion", a)))
    if x.shape[-1] < 2:
        raise ValueError("The length of `a` along the last axis must be at least 2; "
                         f"got shape {x.shape}.")
    return _row_and_subdiagonal(-x[..., 1:] / x[..., :1], jnp.ones(x.shape[-1] - 2, x.dtype))


def fiedler(a: ArrayLike) -> Array:
    """The matrix of the distances of all pairs of numbers.

    >>> fiedler(jnp.array([1, 4]))
    Array([[0, 3],
           [3, 0]], dtype=int32)
    """
    x = jnp.atleast_1d(as_array("fiedler", a))
    return jnp.abs(x[..., None] - x[..., None, :])


def fiedler_companion(a: ArrayLike) -> Array:
    """A matrix of five diagonals, with the eigenvalues of `companion(a)`; empty for one number.

    >>> fiedler_companion(jnp.array([1., -3., 2.]))
    Array([[ 3., -2.],
           [ 1.,  0.]], dtype=float32)

    Raises:
      ValueError: for no coefficients.

    Source: M. Fiedler, *A note on companion matrices* (2003).
    """
    x = jnp.atleast_1d(*promote_dtypes_inexact(as_array("fiedler_companion", a)))
    n = x.shape[-1] - 1
    if n < 0:
        raise ValueError("fiedler_companion requires the last axis of 'a' to have nonzero length, "
                         f"but got an array of shape {x.shape}.")
    # each pair of rows is the one before, shifted: [.., -a[i], 0, -a[i+1], 1], [.., 1, 0, 0, 0]
    rows, columns = np.indices((n, n))
    even, gap = rows % 2 == 0, columns - rows
    ones = np.where(even, gap == 2, gap == -2) | ((rows == 1) & (columns == 0))
    which = np.where(even & (abs(gap) == 1), rows + 1 + (gap > 0), 0)
    which[:1, :1] = 1
    return jnp.where(ones, 1, jnp.where(which > 0, -(x / x[..., :1])[..., which], 0))


# ── Constant matrices ────────────────────────────────────────────────────────────────────────

def _constant(x: Any) -> Array:
    """Exact numbers as an array of floats."""
    return jnp.asarray(np.array(x, np.float64), dtypes.canonicalize_dtype(np.float64))


def _of_kind(kind: str | None, lower: Any, symmetric: Any, one: str = "one") -> Any:
    valid = {"symmetric": symmetric, "lower": lower, "upper": lower.T}
    if kind not in (None, *valid):
        raise ValueError(f"Expected kind to be {one} of: {list(valid)}; got {kind}")
    return valid[kind or "symmetric"]


def _binomials(n: int) -> np.ndarray:
    """Pascal's triangle, in Python's integers."""
    return np.array([[math.comb(i, j) for j in range(n)] for i in range(n)], object).reshape(n, n)


def hilbert(n: int) -> Array:
    """The matrix of ``1 / (i + j + 1)``, which is hard to invert.

    >>> hilbert(2)
    Array([[1.        , 0.5       ],
           [0.5       , 0.33333334]], dtype=float32)
    """
    return _constant(1 / (np.add.outer(np.arange(n), np.arange(n)) + 1.0))


def invhilbert(n: int) -> Array:
    """The inverse of `hilbert`, whose numbers are whole.

    >>> invhilbert(2)
    Array([[ 4., -6.],
           [-6., 12.]], dtype=float32)
    """
    comb, n = math.comb, int(n)
    return _constant([[(-1) ** (i + j) * (i + j + 1) * comb(n + i, n - j - 1)
                       * comb(n + j, n - i - 1) * comb(i + j, i) ** 2
                       for j in range(n)] for i in range(n)]).reshape(n, n)


def pascal(n: int, kind: str | None = None) -> Array:
    """The matrix of Pascal's triangle.

    >>> pascal(3)
    Array([[1., 1., 1.],
           [1., 2., 3.],
           [1., 3., 6.]], dtype=float32)

    Args:
      kind: "symmetric", the default, for the product of "lower" and "upper".

    Raises:
      ValueError: for another kind.
    """
    lower = _binomials(int(n))
    return jnp.asarray(_of_kind(kind, lower, lower @ lower.T, "on").astype(np.float32))


def invpascal(n: int, kind: str | None = None) -> Array:
    """The inverse of `pascal`, whose numbers are whole.

    >>> invpascal(3, "lower")
    Array([[ 1.,  0.,  0.],
           [-1.,  1.,  0.],
           [ 1., -2.,  1.]], dtype=float32)

    Raises:
      ValueError: for another kind.
    """
    rows, columns = np.indices((int(n), int(n)))
    lower = _binomials(int(n)) * (1 - 2 * ((rows - columns) % 2))
    return _constant(_of_kind(kind, lower, lower.T @ lower))


def helmert(n: int, full: bool = False) -> Array:
    """Orthogonal rows, each of which compares a number with the mean of those before.

    >>> helmert(2)
    Array([[ 0.70710677, -0.70710677]], dtype=float32)

    Args:
      full: whether a first row takes the mean of all.

    Raises:
      ValueError: for n < 1.
    """
    if n < 1:
        raise ValueError(f"n must be a positive integer; got {n}.")
    rows, columns = np.indices((int(n), int(n)))
    compared = np.where(columns < rows, 1.0, np.where(columns == rows, -1.0 * rows, 0.0))
    compared[0] = 1
    unit = compared / np.linalg.norm(compared, axis=1, keepdims=True)
    return _constant(unit if full else unit[1:])


def hadamard(n: int, dtype: Any = int) -> Array:
    """Orthogonal rows of ones and minus ones.

    >>> hadamard(2)
    Array([[ 1,  1],
           [ 1, -1]], dtype=int32)

    Raises:
      ValueError: where n is no power of two.
    """
    if n < 1 or not math.log2(n).is_integer():
        raise ValueError(f"n must be a positive power of 2; got {n}.")
    doubled = np.array([[1, 1], [1, -1]])
    whole = functools.reduce(np.kron, [doubled] * int(math.log2(n)), np.ones((1, 1), int))
    return jnp.asarray(whole).astype(dtype)


def dft(n: int, scale: str | None = None, *, dtype: Any = None) -> Array:
    """The matrix of the discrete Fourier transform.

    >>> jnp.round(dft(2).real)
    Array([[ 1.,  1.],
           [ 1., -1.]], dtype=float32)

    Args:
      scale: "sqrtn" or "n", by which the matrix is divided.
      dtype: complex; that of complex numbers by default.

    Raises:
      ValueError: for another scale, and dtypes that are not complex.
    """
    dtype = dtypes.canonicalize_dtype(np.complex128 if dtype is None else dtype)
    refuse((scale not in (None, "sqrtn", "n"),
            f"scale must be None, 'sqrtn', or 'n'; got {scale!r}."),
           (not dtypes.issubdtype(dtype, np.complexfloating),
            f"dtype must be a complex floating-point type; got {dtype}."), error=ValueError)
    n = int(n)
    phases = np.outer(np.arange(n), np.arange(n)) % max(1, n) / max(1, n)
    return jnp.asarray(np.exp(-2j * np.pi * phases)
                       / {None: 1, "sqrtn": math.sqrt(n), "n": max(1, n)}[scale], dtype)
