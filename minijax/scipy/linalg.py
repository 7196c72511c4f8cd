"""`minijax.scipy.linalg`: SciPy's names for factorisations and systems of equations.

Stands on `numpy.linalg`, `lax.linalg`, `special_matrices`.  Capstones with Gaussian processes.
In JAX: `jax/_src/scipy/linalg.py`.
"""

import functools
from typing import Any

from minijax import lax, numpy as jnp
from minijax.core import Array
from minijax.derivatives import jvp
from minijax.higher_order.custom_derivatives import custom_jvp
from minijax.numpy.arguments import ArrayLike, as_array, promote_dtypes_inexact
from minijax.scipy.special_matrices import (block_diag, circulant, companion, convolution_matrix,
                                            dft, fiedler, fiedler_companion, hadamard, hankel,
                                            helmert, hilbert, invhilbert, invpascal, leslie,
                                            pascal, toeplitz)

# `overwrite_a`, `overwrite_b`, `check_finite`, `debug` are taken, for programs that pass them:
# arrays are never overwritten, and traced numbers cannot be checked.


# ── Triangular systems and Cholesky factors ──────────────────────────────────────────────────

def cholesky(a: ArrayLike, lower: bool = False, overwrite_a: bool = False,
             check_finite: bool = True) -> Array:
    """The triangular factor of positive definite matrices: ``a = Uᴴ U``, or ``L Lᴴ`` if `lower`.

    >>> cholesky(jnp.array([[4., 2.], [2., 5.]]))
    Array([[2., 1.],
           [0., 2.]], dtype=float32)
    """
    return jnp.linalg.cholesky(a, upper=not lower, symmetrize_input=False)


def cho_factor(a: ArrayLike, lower: bool = False, overwrite_a: bool = False,
               check_finite: bool = True) -> tuple[Array, bool]:
    """What `cho_solve` takes: the factor of `cholesky`, and which triangle holds it.

    >>> cho_factor(jnp.array([[4.]]))
    (Array([[2.]], dtype=float32), False)
    """
    return cholesky(a, lower), lower


def cho_solve(c_and_lower: tuple[ArrayLike, bool], b: ArrayLike, overwrite_b: bool = False,
              check_finite: bool = True) -> Array:
    """The x for which ``a x = b``, from what `cho_factor` made of `a`.

    >>> cho_solve(cho_factor(jnp.array([[4., 2.], [2., 5.]])), jnp.array([8., 8.]))
    Array([1.5, 1. ], dtype=float32)
    """
    c, lower = c_and_lower
    first, second = ("N", "C") if lower else ("C", "N")
    return solve_triangular(c, solve_triangular(c, b, first, lower), second, lower)


def solve_triangular(a: ArrayLike, b: ArrayLike, trans: int | str = 0, lower: bool = False,
                     unit_diagonal: bool = False, overwrite_b: bool = False, debug: Any = None,
                     check_finite: bool = True) -> Array:
    """The x for which ``a x = b``, `a` being triangular.

    >>> solve_triangular(jnp.array([[2., 0.], [1., 4.]]), jnp.array([2., 9.]), lower=True)
    Array([1., 2.], dtype=float32)

    Args:
      trans: 0 or "N" as it stands, 1 or "T" for ``aᵀ x = b``, 2 or "C" for ``aᴴ x = b``.
      lower: which triangle of `a` is read.
      unit_diagonal: whether the diagonal of `a` counts as ones.
    """
    if trans not in (0, "N", 1, "T", 2, "C"):
        raise ValueError(f"Invalid 'trans' value {trans}")

    def solve(matrix: Any, rhs: Any) -> Any:
        return lax.linalg.triangular_solve(
            matrix, rhs, left_side=True, lower=lower, transpose_a=trans not in (0, "N"),
            conjugate_a=trans in (2, "C"), unit_diagonal=unit_diagonal)
    a, b = promote_dtypes_inexact(a, b)
    return jnp.vectorize(solve, signature=f"(n,n),{_columns(b)}->{_columns(b)}")(a, b)


def _columns(b: Any) -> str:
    """The axes of the right sides of systems: one vector, or stacks of matrices."""
    return "(n)" if b.ndim == 1 else "(n,k)"


# ── Systems, inverses, determinants ──────────────────────────────────────────────────────────

def solve(a: ArrayLike, b: ArrayLike, lower: bool = False, overwrite_a: bool = False,
          overwrite_b: bool = False, debug: bool = False, check_finite: bool = True,
          assume_a: str = "gen") -> Array:
    """The x for which ``a x = b``.

    >>> solve(jnp.array([[2., 0.], [0., 4.]]), jnp.array([2., 2.]), assume_a="pos")
    Array([1. , 0.5], dtype=float32)

    Args:
      lower: which triangle of `a` is read, where it is positive definite.
      assume_a: "gen", "sym", "her", or "pos" for positive definite, which Cholesky solves.
    """
    if assume_a not in (valid := ["gen", "sym", "her", "pos"]):
        raise ValueError(f"Expected assume_a to be one of {valid}; got {assume_a!r}")
    if assume_a == "pos":
        return _solve_positive(lower, *promote_dtypes_inexact(a, b))
    return jnp.linalg.solve(a, b)


@functools.partial(custom_jvp, nondiff_argnums=(0,))
def _solve_positive(lower: bool, a: Any, b: Any) -> Any:
    return cho_solve(cho_factor(a, lower), b)


@_solve_positive.defjvp
def _solve_positive_jvp(lower: bool, primals: tuple, tangents: tuple) -> tuple:
    """``a dx = db - da x``: the factor itself need not be differentiated."""
    (a, b), (a_dot, b_dot) = primals, tangents
    factor = cho_factor(a, lower)
    x = cho_solve(factor, b)
    return x, cho_solve(factor, b_dot - a_dot @ x)


def inv(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The inverses of square matrices.

    >>> inv(jnp.array([[4.]]))
    Array([[0.25]], dtype=float32)
    """
    return jnp.linalg.inv(a)


def det(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The determinants of square matrices.

    >>> det(jnp.array([[1., 2.], [3., 4.]]))
    Array(-2., dtype=float32)
    """
    return jnp.linalg.det(a)


def lu(a: ArrayLike, permute_l: bool = False, overwrite_a: bool = False,
       check_finite: bool = True) -> tuple[Array, ...]:
    """A permutation P, a lower and an upper triangular matrix with ``a = P L U``.

    >>> lu(jnp.array([[1., 2.], [4., 4.]]))[0]
    Array([[0., 1.],
           [1., 0.]], dtype=float32)

    Args:
      permute_l: whether to return ``P L`` and U instead.
    """
    [x] = promote_dtypes_inexact(as_array("lu", a))
    factors, _, permutation = lax.linalg.lu(x)
    m, n = x.shape[-2:]
    p = jnp.astype(permutation[..., None, :] == jnp.arange(m)[:, None], jnp.real(x).dtype)
    lower = jnp.tril(factors[..., :min(m, n)], -1) + jnp.eye(m, min(m, n), dtype=x.dtype)
    upper = jnp.triu(factors[..., :min(m, n), :])
    return (p @ lower, upper) if permute_l else (p, lower, upper)


def lu_factor(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True
              ) -> tuple[Array, Array]:
    """What `lu_solve` takes: both triangles in one array, and the exchanges of rows.

    >>> lu_factor(jnp.array([[1., 2.], [4., 4.]]))[1]
    Array([1, 1], dtype=int32)
    """
    factors, pivots, _ = lax.linalg.lu(*promote_dtypes_inexact(as_array("lu_factor", a)))
    return factors, pivots


def lu_solve(lu_and_piv: tuple[Array, ArrayLike], b: ArrayLike, trans: int = 0,
             overwrite_b: bool = False, check_finite: bool = True) -> Array:
    """The x for which ``a x = b``, from what `lu_factor` made of `a`.

    >>> lu_solve(lu_factor(jnp.array([[1., 2.], [4., 4.]])), jnp.array([3., 8.]))
    Array([1., 1.], dtype=float32)

    Args:
      trans: 1 for ``aᵀ x = b``, 2 for ``aᴴ x = b``.
    """
    factors, pivots = lu_and_piv
    if trans not in (0, 1, 2):
        raise ValueError(f"'trans' value must be 0, 1, or 2, got {trans}")
    factors, b = promote_dtypes_inexact(factors, b)
    permutation = lax.linalg.lu_pivots_to_permutation(pivots, factors.shape[-1])

    def one(factors: Any, permutation: Any, x: Any) -> Any:
        if trans == 0:
            x = solve_triangular(factors, x[permutation], lower=True, unit_diagonal=True)
            return solve_triangular(factors, x)
        x = solve_triangular(factors, x, trans)
        x = solve_triangular(factors, x, trans, lower=True, unit_diagonal=True)
        return x[jnp.argsort(permutation)]
    signature = f"(n,n),(n),{_columns(b)}->{_columns(b)}"
    return jnp.vectorize(one, signature=signature)(factors, permutation, b)


# ── Spectra ──────────────────────────────────────────────────────────────────────────────────

def eigh(a: ArrayLike, b: ArrayLike | None = None, lower: bool = True,
         eigvals_only: bool = False, overwrite_a: bool = False, overwrite_b: bool = False,
         turbo: bool = True, eigvals: None = None, type: int = 1,
         check_finite: bool = True) -> Any:
    """The eigenvalues of symmetric or Hermitian matrices, and their eigenvectors.

    >>> eigh(jnp.array([[2., 0.], [0., 1.]]), eigvals_only=True)
    Array([1., 2.], dtype=float32)
    """
    if b is not None:
        raise NotImplementedError("Only the b=None case of eigh is implemented")
    if type != 1:
        raise NotImplementedError("Only the type=1 case of eigh is implemented.")
    if eigvals is not None:
        raise NotImplementedError("Only the eigvals=None case of eigh is implemented.")
    found = jnp.linalg.eigh(a, "L" if lower else "U")
    return found.eigenvalues if eigvals_only else tuple(found)


def qr(a: ArrayLike, overwrite_a: bool = False, lwork: Any = None, mode: str = "full",
       pivoting: bool = False, check_finite: bool = True) -> tuple[Array, ...]:
    """Orthogonal Q and upper triangular R with ``a = Q R``.

    >>> qr(jnp.array([[3.], [4.]]), mode="economic")[1]
    Array([[-5.]], dtype=float32)

    Args:
      mode: "full" for a square Q, "economic", or "r" for R alone.
    """
    if mode not in ("full", "r", "economic"):
        raise ValueError(f"Unsupported QR decomposition mode '{mode}'")
    [x] = promote_dtypes_inexact(as_array("qr", a))
    q, r = lax.linalg.qr(x, pivoting=pivoting, full_matrices=mode != "economic")
    return (r,) if mode == "r" else (q, r)


def svd(a: ArrayLike, full_matrices: bool = True, compute_uv: bool = True,
        overwrite_a: bool = False, check_finite: bool = True,
        lapack_driver: str = "gesdd") -> Any:
    """Orthogonal U and V, and singular values s, largest first, with ``a = U diag(s) Vᴴ``.

    >>> svd(jnp.array([[0., 2.], [1., 0.]]), compute_uv=False)
    Array([2., 1.], dtype=float32)
    """
    found = jnp.linalg.svd(a, full_matrices, compute_uv)
    return tuple(found) if compute_uv else found


def schur(a: ArrayLike, output: str = "real") -> list[Array]:
    """T and a unitary Z with ``a = Z T Zᴴ``, T being triangular, but for 2×2 blocks where real.

    >>> schur(jnp.array([[1., 2.], [0., 3.]]))[1]
    Array([[1., 0.],
           [0., 1.]], dtype=float32)

    Args:
      output: "real", or "complex" for a T without blocks.
    """
    if output not in ("real", "complex"):
        raise ValueError(f"Expected 'output' to be either 'real' or 'complex', got {output=}.")
    x = as_array("schur", a)
    if output == "complex":
        x = jnp.astype(x, jnp.result_type(x.dtype, jnp.complex64))
    return lax.linalg.schur(x)


def hessenberg(a: ArrayLike, *, calc_q: bool = False, overwrite_a: bool = False,
               check_finite: bool = True) -> Any:
    """H, zero below the first subdiagonal, with ``a = Q H Qᴴ``; and the unitary Q if `calc_q`.

    >>> hessenberg(jnp.array([[1., 2.], [3., 4.]]))
    Array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    packed, scales = lax.linalg.hessenberg(as_array("hessenberg", a))
    h = jnp.triu(packed, -1)
    if not calc_q:
        return h
    inner = lax.linalg.householder_product(packed[..., 1:, :-1], scales)
    pad = [(0, 0)] * (packed.ndim - 2) + [(1, 0), (1, 0)]
    corner = jnp.zeros_like(packed).at[..., 0, 0].set(1)
    return h, jnp.pad(inner, pad) + corner


def eigh_tridiagonal(d: ArrayLike, e: ArrayLike, *, eigvals_only: bool = False, select: str = "a",
                     select_range: tuple[float, float] | None = None, tol: float | None = None,
                     key: Array | None = None) -> Any:
    """The eigenvalues of a symmetric tridiagonal matrix, ascending, and its eigenvectors.

    >>> eigh_tridiagonal(jnp.array([2., 2.]), jnp.array([1.]), eigvals_only=True)
    Array([1., 3.], dtype=float32)

    Args:
      d, e: the diagonal, and the numbers beside it.
      select: "a" for all, "i" for those from one place to another, both of them included.
      select_range: the two places.
      tol, key: not needed: the whole matrix is factored.
    """
    # JAX: bisection, which needs no whole matrix, and vectors from a random start.
    d, e = as_array("eigh_tridiagonal", d), as_array("eigh_tridiagonal", e)
    if d.dtype != e.dtype:
        raise TypeError("diagonal and off-diagonal values must have same dtype, "
                        f"got {d.dtype} and {e.dtype}")
    if select not in ("a", "i", "v"):
        raise ValueError("'select must have a value in {'a', 'i', 'v'}.")
    if select == "v":
        raise NotImplementedError("eigh_tridiagonal(..., select='v') is not implemented")
    if select == "i" and select_range is None:
        raise ValueError("for select='i', select_range must be specified.")
    if d.ndim != 1 or e.shape != (max(d.size - 1, 0),):
        raise TypeError(f"add got incompatible shapes for broadcasting: {d.shape}, {e.shape}: "
                        "a diagonal of n numbers has n - 1 beside it")
    values, vectors = eigh(jnp.diag(d) + jnp.diag(e, -1) + jnp.diag(jnp.conj(e), 1))
    if select == "i" and select_range is not None:
        wanted = slice(int(select_range[0]), int(select_range[1]) + 1)
        values, vectors = values[wanted], vectors[:, wanted]
    return values if eigvals_only else (values, vectors)


def polar(a: ArrayLike, side: str = "right", *, method: str = "qdwh", eps: float | None = None,
          max_iterations: int | None = None) -> tuple[Array, Array]:
    """U with orthonormal columns and a positive semidefinite P with ``a = U P``.

    >>> polar(jnp.array([[0., 2.], [1., 0.]]))[1]
    Array([[1., 0.],
           [0., 2.]], dtype=float32)

    Args:
      side: "left" for ``a = P U``.
      method: "qdwh" or "svd"; both go by the singular values here.
      eps, max_iterations: taken for JAX's sake; nothing is iterated.
    """
    # JAX: qdwh iterates products and solutions.
    x = as_array("polar", a)
    if not jnp.issubdtype(x.dtype, jnp.inexact):
        raise ValueError(f"data type {x.dtype} not inexact")
    if side not in ("right", "left"):
        raise ValueError("The argument `side` must be either 'right' or 'left'.")
    if method not in ("qdwh", "svd"):
        raise ValueError(f"Unknown polar decomposition method {method}.")
    m, n = x.shape[-2:]
    if method == "qdwh" and (m < n if side == "right" else m > n):
        raise NotImplementedError("method='qdwh' needs as many rows as columns or more where "
                                  f"side='right', fewer where side='left', got {x.shape} with "
                                  f"{side=}; take method='svd'")
    left, values, right = jnp.linalg.svd(x, full_matrices=False)
    basis = jnp.conj(right.mT) if side == "right" else left
    return left @ right, (basis * values[..., None, :]) @ jnp.conj(basis.mT)


# ── Matrices made of others ──────────────────────────────────────────────────────────────────

# The coefficients of the [13/13] Padé approximation of exp, and how large a matrix (in its
# 1-norm) may be for it: Higham, *The scaling and squaring method revisited* (2005).
_PADE = [64764752532480000., 32382376266240000., 7771770303897600., 1187353796428800.,
         129060195264000., 10559470521600., 670442572800., 33522128640., 1323241920., 40840800.,
         960960., 16380., 182., 1.]
_LARGEST = 5.371920351148152


def expm(A: ArrayLike, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:
    """The exponential of a square matrix: the sum of its powers ``Aⁿ / n!``.

    >>> expm(jnp.zeros((2, 2)))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)

    Args:
      upper_triangular: whether A is; its lower triangle is then not read.
      max_squarings: a matrix that needs more gives nan.
    """
    # JAX: approximations of lower degree for small matrices.
    [x] = promote_dtypes_inexact(as_array("expm", A))
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(f"Expected A to be a (batched) square matrix, got {x.shape=}.")
    one = lambda x: _expm(jnp.triu(x) if upper_triangular else x, max_squarings)
    return jnp.vectorize(one, signature="(n,n)->(n,n)")(x)


def _expm(x: Any, max_squarings: int) -> Any:
    """``exp(x) = exp(x / 2ⁿ)`` squared n times."""
    size: Any = jnp.linalg.norm(lax.stop_gradient(x), 1) if x.size else jnp.zeros(())
    count: Any = jnp.maximum(0, jnp.ceil(jnp.log2(size / _LARGEST)))
    root = _rational(x / jnp.exp2(count))
    power, _ = lax.scan(lambda y, i: (lax.cond(i < count, lambda: y @ y, lambda: y), None),
                        root, jnp.arange(max_squarings, dtype=count.dtype))
    return jnp.where(count > max_squarings, jnp.nan, power)


def _rational(x: Any) -> Any:
    one: Any = jnp.eye(x.shape[-1], dtype=x.dtype)
    x2 = x @ x
    x4 = x2 @ x2
    x6 = x4 @ x2

    def even_powers(*c: float) -> Any:
        return (x6 @ (c[6] * x6 + c[5] * x4 + c[4] * x2)
                + c[3] * x6 + c[2] * x4 + c[1] * x2 + c[0] * one)
    scale = [c / _PADE[0] for c in _PADE]
    odd, even = x @ even_powers(*scale[1::2]), even_powers(*scale[::2])
    return jnp.linalg.solve(even - odd, even + odd)


def expm_frechet(A: ArrayLike, E: ArrayLike, *, method: str | None = None,
                 compute_expm: bool = True) -> Any:
    """``expm(A)``, and how it changes where A changes by E.

    >>> expm_frechet(jnp.zeros((1, 1)), jnp.ones((1, 1)), compute_expm=False)
    Array([[1.]], dtype=float32)

    Args:
      method: taken for SciPy's sake; it is the derivative of `expm`.
      compute_expm: False for the change alone.
    """
    a, e = as_array("expm_frechet", A), as_array("expm_frechet", E)
    for name, x in (("A", a), ("E", e)):
        if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
            raise ValueError(f"expected {name} to be a (batched) square matrix, "
                             f"got {name}.shape={x.shape}")
    found = jvp(expm, (a,), (e,))
    return found if compute_expm else found[1]


# ── Functions of matrices by their triangular form ───────────────────────────────────────────

def sqrtm(A: ArrayLike, blocksize: int = 1) -> Array:
    """The principal square root of a square matrix, complex: ``sqrtm(A) @ sqrtm(A) = A``.

    >>> sqrtm(jnp.array([[4., 0.], [0., 9.]]))
    Array([[2.+0.j, 0.+0.j],
           [0.+0.j, 3.+0.j]], dtype=complex64)

    Args:
      blocksize: 1; others are not implemented.

    Source: Björck and Hammarling, *A Schur method for the square root of a matrix* (1983).
    """
    if blocksize > 1:
        raise NotImplementedError("Blocked version is not implemented yet.")
    [x] = promote_dtypes_inexact(as_array("sqrtm", A))
    if x.ndim != 2 or x.shape[0] != x.shape[1]:
        raise ValueError(f"expected a square matrix, got shape {x.shape}")
    t, z = schur(x, output="complex")
    roots = jnp.sqrt(jnp.diagonal(t))

    def column(known: Any, j: Any) -> tuple[Any, None]:
        """``R r + r_jj r = t`` for what stands above the diagonal in column j."""
        above = jnp.where(jnp.arange(len(t)) < j, t[:, j], 0)
        shifted = known + roots[j] * jnp.eye(len(t), dtype=t.dtype)
        return known.at[:, j].add(solve_triangular(shifted, above)), None
    r, _ = lax.scan(column, jnp.diag(roots), jnp.arange(len(t)))
    return z @ r @ jnp.conj(z.T)


def solve_sylvester(A: ArrayLike, B: ArrayLike, C: ArrayLike, *, method: str = "schur",
                    tol: float = 1e-8) -> Array:
    """The X for which ``A X + X B = C``; nan where an eigenvalue of A is one of -B.

    >>> solve_sylvester(jnp.array([[1.]]), jnp.array([[2.]]), jnp.array([[6.]]))
    Array([[2.]], dtype=float32)

    Args:
      method: "schur" or "eigen"; both take the triangular forms here.
      tol: how near to zero a sum of eigenvalues may come.

    Source: Bartels and Stewart, *Solution of the matrix equation AX + XB = C* (1972).
    """
    if method not in ("schur", "eigen"):
        raise ValueError(f"Unrecognized method {method}. The two valid methods are either "
                         '"schur" or "eigen".')
    a, b, c = promote_dtypes_inexact(A, B, C)
    (m, n), rows = c.shape[-2:], a.shape[-2:]
    if rows != (m, m) or b.shape[-2:] != (n, n):
        raise ValueError("Incompatible shapes for Sylvester equation:\n"
                         f"A: {a.shape}\nB: {b.shape}\nC: {c.shape}")
    solved = functools.partial(_sylvester, tol)
    x = jnp.vectorize(solved, signature="(m,m),(n,n),(m,n)->(m,n)")(a, b, c)
    return x if jnp.iscomplexobj(c) else jnp.real(x)


def _sylvester(tol: float, a: Any, b: Any, c: Any) -> Any:
    """By the columns of X, where both matrices are triangular."""
    (r, u), (s, v) = schur(a, "complex"), schur(b, "complex")
    right = jnp.conj(u.T) @ c @ v

    def column(known: Any, j: Any) -> tuple[Any, None]:
        shifted = r + s[j, j] * jnp.eye(len(r), dtype=r.dtype)
        found = solve_triangular(shifted, right[:, j] - known @ s[:, j])
        return known.at[:, j].set(found), None
    y, _ = lax.scan(column, jnp.zeros_like(right), jnp.arange(len(s)))
    sums = jnp.abs(jnp.diagonal(r)[:, None] + jnp.diagonal(s))
    return jnp.where(jnp.all(sums > tol), u @ y @ jnp.conj(v.T), jnp.nan)
