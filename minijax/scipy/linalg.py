"""`minijax.scipy.linalg`: SciPy's names for factorisations and systems of equations.

Stands on `numpy.linalg`, `lax.linalg`.  Capstones with Gaussian processes.
In JAX: `jax/_src/scipy/linalg.py`.
"""

from __future__ import annotations

from typing import Any

from minijax import lax
from minijax import numpy as jnp
from minijax.core import Array
from minijax.numpy.promotion import ArrayLike, as_array, promote_dtypes_inexact

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
    [x] = promote_dtypes_inexact(as_array("cholesky", a))
    factor = lax.linalg.cholesky(x if lower else jnp.conj(jnp.matrix_transpose(x)),
                                 symmetrize_input=False)
    return factor if lower else jnp.conj(jnp.matrix_transpose(factor))


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

    def solve(factor: Any, rhs: Any) -> Any:
        triangle = {"left_side": True, "lower": lower, "conjugate_a": True}
        half = lax.linalg.triangular_solve(factor, rhs, transpose_a=not lower, **triangle)
        return lax.linalg.triangular_solve(factor, half, transpose_a=lower, **triangle)
    return _each_system(solve, *promote_dtypes_inexact(c, b))


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
    return _each_system(solve, *promote_dtypes_inexact(a, b))


def _each_system(solve: Any, a: Any, b: Any) -> Array:
    """`solve` for stacks of matrices and right sides that broadcast; b may be a vector."""
    if b.ndim == 1:
        return jnp.vectorize(solve, signature="(n,n),(n)->(n)")(a, b)
    return jnp.vectorize(solve, signature="(n,n),(n,k)->(n,k)")(a, b)
