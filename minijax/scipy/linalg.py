"""`minijax.scipy.linalg`: factorisations and linear equations by SciPy's names.

Builds on `lax.linalg`, `matrix_functions`, `special_matrices`.  Capstones with Gaussian processes.
In JAX: `jax/_src/scipy/linalg.py`.
"""

import functools
from typing import Any

import numpy as np

from minijax import errors, lax, numpy as jnp
from minijax.core import Array, refuse
from minijax.custom.custom_jvp_vjp import custom_jvp
from minijax.numpy.arguments import ArrayLike, as_array, promote_dtypes_inexact
from minijax.scipy.matrix_functions import (eigh_tridiagonal, expm, expm_frechet, funm, rsf2csf,
                                            solve_sylvester, sqrtm)
from minijax.scipy.matrix_functions import complex_schur as _complex_schur
from minijax.scipy.special_matrices import (
    block_diag, circulant, companion, convolution_matrix, dft, fiedler, fiedler_companion, hadamard,
    hankel, helmert, hilbert, invhilbert, invpascal, leslie, pascal, toeplitz)
from minijax.primitives.linalg import adjoint as _adjoint
from minijax.transforms.prepared import export_all as _export_all

# `overwrite_a`, `overwrite_b`, `check_finite` and `debug` have no effect: arrays are immutable, and
# traced values cannot be checked.


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
    """The factor of `cholesky`, and which triangle holds it, for `cho_solve`.

    >>> cho_factor(jnp.array([[4.]]))
    (Array([[2.]], dtype=float32), False)
    """
    return cholesky(a, lower), lower


def cho_solve(c_and_lower: tuple[ArrayLike, bool], b: ArrayLike, overwrite_b: bool = False,
              check_finite: bool = True) -> Array:
    """The x for which ``a x = b``, from the result of `cho_factor`.

    >>> cho_solve(cho_factor(jnp.array([[4., 2.], [2., 5.]])), jnp.array([8., 8.]))
    Array([1.5, 1. ], dtype=float32)
    """
    c, lower = c_and_lower
    if np.ndim(b) > 1 and np.ndim(c) == np.ndim(b) + 1 and np.shape(c)[-1] == np.shape(b)[-1]:
        errors.warn("jax.scipy.linalg.cho_solve: batched 1D solves with b.ndim > 1 are deprecated, "
                    "and in the future will be treated as a batched 2D solve. Use "
                    "cho_solve(c_and_lower, b[..., None]).squeeze(-1) to avoid this warning.",
                    FutureWarning)
        return cho_solve(c_and_lower, jnp.expand_dims(b, -1)).squeeze(-1)
    if np.ndim(b) == 1 and np.ndim(c) > 2:
        return cho_solve(c_and_lower, jnp.expand_dims(b, -1)).squeeze(-1)
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

    solve = functools.partial(
        lax.linalg.triangular_solve, left_side=True, lower=lower, unit_diagonal=unit_diagonal,
        transpose_a=trans not in (0, "N"), conjugate_a=trans in (2, "C"))
    a, b = promote_dtypes_inexact(a, b)
    return jnp.vectorize(solve, signature=f"(n,n),{_columns(b)}->{_columns(b)}")(a, b)


def _columns(b: Any) -> str:
    """The core dimensions of right-hand sides: one vector, or stacks of matrices."""
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
    a, b = promote_dtypes_inexact(a, b)
    return _solve_positive(lower, a, b) if assume_a == "pos" else jnp.linalg.solve(a, b)


@functools.partial(custom_jvp, nondiff_argnums=(0,))
def _solve_positive(lower: bool, a: Any, b: Any) -> Any:
    return cho_solve(cho_factor(a, lower), b)


@_solve_positive.defjvp
def _solve_positive_jvp(lower: bool, primals: tuple, tangents: tuple) -> tuple:
    """``a dx = db - da x``, without the derivative of the factor."""
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
    """Both triangles in one array, and the exchanges of rows, for `lu_solve`.

    >>> lu_factor(jnp.array([[1., 2.], [4., 4.]]))[1]
    Array([1, 1], dtype=int32)
    """
    factors, pivots, _ = lax.linalg.lu(*promote_dtypes_inexact(as_array("lu_factor", a)))
    return factors, pivots


def lu_solve(lu_and_piv: tuple[Array, ArrayLike], b: ArrayLike, trans: int = 0,
             overwrite_b: bool = False, check_finite: bool = True) -> Array:
    """The x for which ``a x = b``, from the result of `lu_factor`.

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

def eigh(a: ArrayLike, b: ArrayLike | None = None, lower: bool = True, eigvals_only: bool = False,
         overwrite_a: bool = False, overwrite_b: bool = False, turbo: bool = True,
         eigvals: None = None, type: int = 1, check_finite: bool = True) -> Any:
    """The eigenvalues of symmetric or Hermitian matrices, and their eigenvectors.

    >>> eigh(jnp.array([[2., 0.], [0., 1.]]), eigvals_only=True)
    Array([1., 2.], dtype=float32)
    """
    refuse((b is not None, "Only the b=None case of eigh is implemented"),
           (type != 1, "Only the type=1 case of eigh is implemented."),
           (eigvals is not None, "Only the eigvals=None case of eigh is implemented."),
           error=NotImplementedError)
    eigenpairs = jnp.linalg.eigh(a, "L" if lower else "U")
    return eigenpairs.eigenvalues if eigvals_only else tuple(eigenpairs)


def qr(a: ArrayLike, overwrite_a: bool = False, lwork: Any = None, mode: str = "full",
       pivoting: bool = False, check_finite: bool = True) -> tuple[Array, ...]:
    """Orthogonal Q and upper triangular R with ``a = Q R``.

    >>> qr(jnp.array([[3.], [4.]]), mode="economic")[1]
    Array([[-5.]], dtype=float32)

    Args:
      mode: "full" for a square Q, "economic", or "r" without Q.
      pivoting: whether columns are exchanged so that the diagonal of R falls in size; their order
        is the last result.
    """
    if mode not in ("full", "r", "economic"):
        raise ValueError(f"Unsupported QR decomposition mode '{mode}'")
    [x] = promote_dtypes_inexact(as_array("qr", a))
    factors = lax.linalg.qr(x, pivoting=pivoting, full_matrices=mode != "economic")
    return factors[1:] if mode == "r" else factors


def qr_multiply(a: ArrayLike, c: ArrayLike, mode: str = "right", pivoting: bool = False,
                conjugate: bool = False, overwrite_a: bool = False, overwrite_c: bool = False
                ) -> tuple[Array, ...]:
    """``c Q`` and R, where ``a = Q R``; with `pivoting` the order of columns, too.

    >>> qr_multiply(jnp.array([[3.], [4.]]), jnp.array([5., 10.]))
    (Array([-11.], dtype=float32), Array([[-5.]], dtype=float32))

    Args:
      a: of shape (…, m, n); Q has as many columns as the smaller of the two.
      c: matrices, or one vector.
      mode: "left" for ``Q c``.
      conjugate: whether to multiply by the conjugate of Q.
    """
    if mode not in ("left", "right"):
        raise ValueError(f"mode must be 'right' or 'left', got '{mode}'")
    x, y = promote_dtypes_inexact(as_array("qr_multiply", a), as_array("qr_multiply", c))
    is_left, matrix = mode == "left", jnp.atleast_2d(y)
    matrix = matrix.mT if is_left and y.ndim == 1 else matrix
    x = jnp.broadcast_to(x, jnp.broadcast_shapes(x.shape[:-2], matrix.shape[:-2]) + x.shape[-2:])
    q, *rest = lax.linalg.qr(x, pivoting=pivoting, full_matrices=False)
    size_c, size_q = ((matrix.shape[-2], q.shape[-1]) if is_left else
                      (matrix.shape[-1], q.shape[-2]))
    if size_c != size_q:
        side, other = ("columns", "rows") if is_left else ("rows", "columns")
        raise ValueError(f"Array shapes are not compatible for {'Q @ c' if is_left else 'c @ Q'} "
                         f"operation: a has shape {x.shape} so Q has {size_q} {side}, but c has "
                         f"{size_c} {other} (expected {size_q}).")
    q = jnp.conj(q) if conjugate else q
    product = q @ matrix if is_left else matrix @ q
    return (product.ravel() if y.ndim == 1 else product, *rest)


def svd(a: ArrayLike, full_matrices: bool = True, compute_uv: bool = True,
        overwrite_a: bool = False, check_finite: bool = True, lapack_driver: str = "gesdd") -> Any:
    """Orthogonal U and V, and singular values s, largest first, with ``a = U diag(s) Vᴴ``.

    >>> svd(jnp.array([[0., 2.], [1., 0.]]), compute_uv=False)
    Array([2., 1.], dtype=float32)
    """
    factors = jnp.linalg.svd(a, full_matrices, compute_uv)
    return tuple(factors) if compute_uv else factors


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
    return (_complex_schur if output == "complex" else lax.linalg.schur)(as_array("schur", a))


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
    return h, jnp.pad(inner, pad) + jnp.zeros_like(packed).at[..., 0, 0].set(1)


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
    refuse((not jnp.issubdtype(x.dtype, jnp.inexact), f"data type {x.dtype.type} not inexact"),
           (side not in ("right", "left"), "The argument `side` must be either 'right' or 'left'."),
           (method not in ("qdwh", "svd"), f"Unknown polar decomposition method {method}."),
           error=ValueError)
    m, n = x.shape[-2:]
    if method == "qdwh" and (m < n if side == "right" else m > n):
        raise NotImplementedError("method='qdwh' needs as many rows as columns or more where "
                                  f"side='right', fewer where side='left', got {x.shape} with "
                                  f"{side=}; take method='svd'")
    if side == "left":
        u, p = _polar(_adjoint(x))
        return _adjoint(u), p
    return _polar(x)


@custom_jvp
def _polar(x: Any) -> Any:
    left, values, right = jnp.linalg.svd(x, full_matrices=False)
    return left @ right, (_adjoint(right) * values[..., None, :]) @ right


@_polar.defjvp
def _polar_jvp(primals: tuple, tangents: tuple) -> tuple:
    """``P Ω + Ω P = …`` for the rotation Ω of U, by division by sums of singular values."""
    [x], [t] = primals, tangents
    left, values, right = jnp.linalg.svd(x, full_matrices=False)
    sums = values[..., :, None] + values[..., None, :]
    across, down = t @ _adjoint(right), _adjoint(left) @ t
    inside = _adjoint(left) @ across
    rotation = _safe_divide(inside - _adjoint(inside), sums)
    left_part = _safe_divide(across - left @ inside, values[..., None, :])
    right_part = _safe_divide(down - inside @ right, values[..., :, None])
    u_dot = (left @ rotation + left_part) @ right + left @ right_part
    u, p = _polar(x)
    return (u, p), (u_dot, _adjoint(u_dot) @ x + _adjoint(u) @ t)


def _safe_divide(x: Any, y: Any) -> Any:
    """``x / y``, and 0 where y is 0."""
    return jnp.where(y == 0, 0, x / jnp.where(y == 0, 1, y))


_export_all(globals())
