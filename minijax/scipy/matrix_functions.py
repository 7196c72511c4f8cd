"""Functions of matrices: exponential, square root, any function; Sylvester's equation.
Eigenvalues of tridiagonal matrices by bisection.

Builds on `numpy.linalg`, `lax.linalg`.
In JAX: `jax/_src/scipy/linalg.py`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from minijax import lax, numpy as jnp
from minijax.core import Array, refuse
from minijax.custom.custom_jvp_vjp import custom_jvp
from minijax.transforms.derivatives import jvp
from minijax.transforms.jit import jit
from minijax.numpy.arguments import (ArrayLike, Inexact, promote_dtypes, promote_dtypes_inexact,
                                     public)

# ── Exponentials ─────────────────────────────────────────────────────────────────────────────

# The coefficients of the [13/13] Padé approximation of exp, and the largest 1-norm of a matrix
# for it: Higham, *The scaling and squaring method revisited* (2005).
_PADE = [math.comb(13, k) * math.factorial(26 - k) / math.factorial(26) for k in range(14)]
_MAX_NORM = 5.371920351148152


def expm(A: Inexact, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:
    """The exponential of a square matrix: the sum of its powers ``Aⁿ / n!``.

    >>> expm(jnp.zeros((2, 2)))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)

    Args:
      upper_triangular: whether A is; its lower triangle is then not read.
      max_squarings: a matrix that needs more gives nan.
    """
    # JAX: approximations of lower degree for small matrices.
    if A.ndim < 2 or A.shape[-1] != A.shape[-2]:
        raise ValueError(f"Expected A to be a (batched) square matrix, got A.shape={A.shape}.")
    one = lambda x: _expm(jnp.triu(x) if upper_triangular else x, max_squarings)
    return jnp.vectorize(one, signature="(n,n)->(n,n)")(A)


@jit(static_argnums=1, inline=True)
def _expm(x: Any, max_squarings: int) -> Any:
    """``exp(x) = exp(x / 2ⁿ)`` squared n times."""
    size: Any = jnp.linalg.norm(lax.stop_gradient(x), 1) if x.size else jnp.zeros(())
    count: Any = jnp.maximum(0, jnp.ceil(jnp.log2(size / _MAX_NORM)))
    power, _ = lax.scan(lambda y, i: (lax.cond(i < count, lambda: y @ y, lambda: y), None),
                        _pade(x / jnp.exp2(count)), jnp.arange(max_squarings, dtype=count.dtype))
    return jnp.where(count > max_squarings, jnp.nan, power)


def _pade(x: Any) -> Any:
    one: Any = jnp.eye(x.shape[-1], dtype=x.dtype)
    x2 = x @ x
    x4 = x2 @ x2
    x6 = x4 @ x2

    def even_powers(*c: float) -> Any:
        return (x6 @ (c[6] * x6 + c[5] * x4 + c[4] * x2)
                + c[3] * x6 + c[2] * x4 + c[1] * x2 + c[0] * one)
    odd, even = x @ even_powers(*_PADE[1::2]), even_powers(*_PADE[::2])
    return jnp.linalg.solve(even - odd, even + odd)


def expm_frechet(A: ArrayLike, E: ArrayLike, *, method: str | None = None,
                 compute_expm: bool = True) -> Any:
    """``expm(A)``, and its derivative in the direction E.

    >>> expm_frechet(jnp.zeros((1, 1)), jnp.ones((1, 1)), compute_expm=False)
    Array([[1.]], dtype=float32)

    Args:
      method: taken for SciPy's sake; it is the derivative of `expm`.
      compute_expm: False for the derivative alone.
    """
    for name, x in (("A", A), ("E", E)):
        if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
            raise ValueError(f"expected {name} to be a (batched) square matrix, "
                             f"got {name}.shape={x.shape}")
    exponential, derivative = jvp(expm, (A,), (E,))
    return (exponential, derivative) if compute_expm else derivative


# ── Functions of matrices by their triangular form ───────────────────────────────────────────

def complex_schur(x: Any) -> list[Any]:
    """T and a unitary Z with ``x = Z T Zᴴ``, complex."""
    return lax.linalg.schur(jnp.astype(x, jnp.result_type(x.dtype, jnp.complex64)))


def _back_substitute(a: Any, b: Any) -> Any:
    """The vector x for which ``a x = b``, a being upper triangular."""
    return lax.linalg.triangular_solve(a, b, left_side=True)


def rsf2csf(T: ArrayLike, Z: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """The complex Schur form, and its vectors, from the real one of `schur`.

    >>> jnp.round(rsf2csf(jnp.array([[0., 1.], [-1., 0.]]), jnp.eye(2))[0], 3)
    Array([[0.+1.j, 0.+0.j],
           [0.+0.j, 0.-1.j]], dtype=complex64)
    """
    for name, x in (("T", T), ("Z", Z)):
        if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
            raise ValueError(f"Input '{name}' must be square.")
    if T.shape[-1] != Z.shape[-1]:
        raise ValueError(f"Input array shapes must match: Z: {Z.shape} vs. T: {T.shape}")
    t, z = (jnp.astype(x, jnp.result_type(x.dtype, jnp.complex64)) for x in promote_dtypes(T, Z))
    return jnp.vectorize(_complex_schur_of_real, signature="(n,n),(n,n)->(n,n),(n,n)")(t, z)


def _complex_schur_of_real(t: Any, z: Any) -> Any:
    """From the last row up, a rotation eliminates each nonzero element below the diagonal."""
    def rotate(i: Any, matrices: Any) -> Any:
        t, z = matrices
        k = len(t) - 2 - i
        block = lax.dynamic_slice(t, (k, k), (2, 2))
        (a, _), (c, d) = block
        is_block = abs(c) > jnp.finfo(t.dtype).eps * (abs(a) + abs(d))
        x = jnp.where(is_block, jnp.linalg.eigvals(block)[0] - d, 1)
        y = jnp.where(is_block, c, 0)
        length = jnp.sqrt(jnp.real(x * jnp.conj(x) + y * jnp.conj(y)))
        rotation: Any = jnp.array([[jnp.conj(x), y], [-y, x]]) / length
        places = jnp.arange(len(t))

        def rotated(x: Any, apply: Callable, axis: int, mask: Any = True) -> Any:
            pair = lax.dynamic_slice_in_dim(x, k, 2, axis)
            return lax.dynamic_update_slice_in_dim(x, jnp.where(mask, apply(pair), pair), k, axis)
        columns = lambda x, mask=True: rotated(x, lambda pair: pair @ jnp.conj(rotation.T), 1, mask)
        t = rotated(t, lambda pair: rotation @ pair, 0, places >= k)
        return columns(t, places[:, None] < k + 2), columns(z)
    if len(t) > 1:
        t, z = lax.fori_loop(0, len(t) - 1, rotate, (t, z))
    row, column = jnp.indices(t.shape)
    return jnp.where(row == column + 1, 0, t), z


def sqrtm(A: Inexact, blocksize: int = 1) -> Array:
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
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise ValueError(f"expected a square matrix, got shape {A.shape}")
    return _sqrtm_of_schur(*complex_schur(A))


@jit(inline=True)
def _sqrtm_of_schur(t: Any, z: Any) -> Any:
    """The square root of ``z t z*``, column by column."""
    roots = jnp.sqrt(jnp.diagonal(t))

    def column(root: Any, j: Any) -> tuple[Any, None]:
        """``R r + r_jj r = t`` for the elements above the diagonal in column j."""
        above = jnp.where(jnp.arange(len(t)) < j, t[:, j], 0)
        shifted = root + roots[j] * jnp.eye(len(t), dtype=t.dtype)
        is_zero = jnp.diagonal(shifted) == 0  # of two eigenvalues zero: 0 / 0 counts as 0
        r = _back_substitute(shifted + jnp.diag(jnp.astype(is_zero, t.dtype)), above)
        return root.at[:, j].add(jnp.where(is_zero & (r != 0), jnp.inf, r)), None
    r, _ = lax.scan(column, jnp.diag(roots), jnp.arange(len(t)))
    return z @ r @ jnp.conj(z.T)


def funm(A: ArrayLike, func: Callable[[Any], Any], disp: bool = True) -> Any:
    """A function of a square matrix: what a power series of the function is for the matrix.

    >>> funm(jnp.array([[1., 1.], [0., 2.]]), lambda x: x * x)
    Array([[1.+0.j, 3.+0.j],
           [0.+0.j, 4.+0.j]], dtype=complex64)

    Args:
      func: takes and gives an array of numbers, the eigenvalues.
      disp: False for an estimate of the relative error, too: it is large, and what stands above
        the diagonal wrong, where eigenvalues are alike.

    Source: Parlett, *A recurrence among the elements of functions of triangular matrices* (1976).
    """
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise ValueError("expected square array_like input")
    t, z = rsf2csf(*lax.linalg.schur(A))
    numbers = jnp.diagonal(t)
    values = func(numbers)

    def column(f: Any, j: Any) -> tuple[Any, None]:
        """``T f - f t_jj = F t - t f_jj`` for the elements above the diagonal in column j."""
        above = jnp.where(jnp.arange(len(t)) < j, t[:, j], 0)
        gaps = numbers - numbers[j]
        shifted = t + jnp.diag(jnp.where(gaps == 0, 1, gaps) - numbers)
        return f.at[:, j].add(_back_substitute(shifted, f @ above - above * values[j])), None
    f, _ = lax.scan(column, jnp.diag(values), jnp.arange(len(t)))
    out = z @ f @ jnp.conj(z.T)
    return out if disp else (out, _error_of_function(t))


def _error_of_function(t: Any) -> Any:
    """An estimate of the error from the gaps between eigenvalues."""
    eps = jnp.finfo(t.dtype).eps
    numbers, above = jnp.diagonal(t), jnp.triu(t, 1)
    gaps = jnp.where(jnp.tri(len(t), dtype=bool), jnp.inf, abs(numbers[:, None] - numbers))
    nearest = jnp.min(gaps, initial=abs(t[0, 0]))
    nearest = jnp.where(nearest == 0, eps, nearest)
    return jnp.clip(eps / nearest * jnp.linalg.norm(above, 1), eps, 1)


def solve_sylvester(A: Any, B: Any, C: Any, *, method: str = "schur", tol: float = 1e-8) -> Array:
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
    """By the columns of X, for triangular matrices."""
    (r, u), (s, v) = complex_schur(a), complex_schur(b)
    right = jnp.conj(u.T) @ c @ v

    def column(y: Any, j: Any) -> tuple[Any, None]:
        shifted = r + s[j, j] * jnp.eye(len(r), dtype=r.dtype)
        return y.at[:, j].set(_back_substitute(shifted, right[:, j] - y @ s[:, j])), None
    y, _ = lax.scan(column, jnp.zeros_like(right), jnp.arange(len(s)))
    sums = jnp.abs(jnp.diagonal(r)[:, None] + jnp.diagonal(s))
    return jnp.where(jnp.all(sums > tol), u @ y @ jnp.conj(v.T), jnp.nan)


# ── Tridiagonal matrices ─────────────────────────────────────────────────────────────────────

def eigh_tridiagonal(d: ArrayLike, e: ArrayLike, *, eigvals_only: bool = False, select: str = "a",
                     select_range: tuple[float, float] | None = None, tol: float | None = None,
                     key: Array | None = None) -> Any:
    """The eigenvalues of a symmetric tridiagonal matrix, ascending, and its eigenvectors.

    >>> jnp.round(eigh_tridiagonal(jnp.array([2., 2.]), jnp.array([1.]), eigvals_only=True))
    Array([1., 3.], dtype=float32)

    Args:
      d, e: the diagonal, and the numbers beside it.
      select: "a" for all, "i" for those from one place to another, both of them included.
      select_range: the two places.
      tol: the length of the intervals around the eigenvalues at which bisection ends.
      key: not needed: nothing is random.
    """
    if d.dtype != e.dtype:
        raise TypeError("diagonal and off-diagonal values must have same dtype, "
                        f"got {d.dtype} and {e.dtype}")
    if select == "v":
        raise NotImplementedError("eigh_tridiagonal(..., select='v') is not implemented")
    refuse((select not in ("a", "i"), "'select must have a value in {'a', 'i', 'v'}."),
           (select == "i" and select_range is None,
            "for select='i', select_range must be specified."), error=ValueError)
    refuse((d.ndim != 1 or e.shape != (max(d.size - 1, 0),), "add got incompatible shapes for "
            f"broadcasting: {d.shape}, {e.shape}: beside a diagonal of n numbers the off-diagonal "
            "must have n - 1"),
           (d.dtype not in (jnp.float32, jnp.float64, jnp.complex64, jnp.complex128), "Only "
            "float32 and float64 inputs are supported as inputs to "
            f"jax.scipy.linalg.eigh_tridiagonal, got {d.dtype} and {e.dtype}"))
    first, last = map(int, select_range) if select == "i" and select_range else (0, d.size - 1)
    if last < first and d.size:
        raise ValueError("Got empty index range in select_range.")
    values = _bisected(first, last + 1, tol, jnp.real(d), abs(e) if jnp.iscomplexobj(e) else e)
    return values if eigvals_only else (values, _eigenvectors(jnp.real(d), e)[:, first:last + 1])


def _eigenvectors(d: Any, e: Any) -> Any:
    # JAX: by inverse iteration from a random start, which needs no dense matrix.
    return jnp.linalg.eigh(jnp.diag(d) + jnp.diag(e, 1) + jnp.diag(jnp.conj(e), -1)).eigenvectors


@functools.partial(custom_jvp, nondiff_argnums=(0, 1, 2))
@jit(static_argnums=(0, 1), inline=True)
def _bisected(first: int, stop: int, tol: float | None, d: Any, e: Any) -> Any:
    """Bisection of intervals by the number of eigenvalues below the midpoint.

    Source: Kahan, *Accurate eigenvalues of a symmetric tri-diagonal matrix* (1966).
    """
    if not d.size:
        return d
    eps, zero = jnp.finfo(d.dtype).eps, jnp.zeros(1, d.dtype)
    squares = jnp.concatenate([zero, e * e])
    radius = jnp.append(zero, abs(e)) + jnp.append(abs(e), zero)
    low, high = jnp.min(d - radius), jnp.max(d + radius)
    size = jnp.maximum(abs(low), abs(high))
    margin = 2.1 * eps * len(d) * size
    smallest = jnp.finfo(d.dtype).tiny * jnp.maximum(1, jnp.max(squares))
    index = jnp.arange(first, stop)
    enough: Any = eps * size if tol is None else tol

    def halve(bounds: Any) -> Any:
        low, high = bounds
        middle = (low + high) / 2
        is_below = _count_below(d, squares, smallest, middle) <= index
        return jnp.where(is_below, middle, low), jnp.where(is_below, high, middle)
    low, high = (jnp.full(index.shape, x) for x in (low - margin, high + margin))
    low, high = lax.while_loop(lambda bounds: jnp.max(bounds[1] - bounds[0]) > enough, halve,
                               (low, high))
    return (low + high) / 2


def _count_below(d: Any, squares: Any, smallest: Any, x: Any) -> Any:
    """The number of eigenvalues below each x: that of the negative pivots of the matrix minus x."""
    def pivots(state: Any, row: Any) -> tuple[Any, None]:
        before, count = state
        pivot = row[0] - x - row[1] / before
        pivot = jnp.where(abs(pivot) <= smallest, -smallest, pivot)
        return (pivot, count + (pivot < 0)), None
    return lax.scan(pivots, (jnp.ones_like(x), jnp.zeros(x.shape, jnp.int32)), (d, squares))[0][1]


@_bisected.defjvp
def _bisected_jvp(first: int, stop: int, tol: float | None, primals: Any, tangents: Any) -> tuple:
    """``vᵀ dA v``, by the eigenvector v of each eigenvalue."""
    (d, e), (d_dot, e_dot) = primals, tangents
    v = _eigenvectors(d, e)[:, first:stop]
    return _bisected(first, stop, tol, d, e), d_dot @ v**2 + 2 * e_dot @ (v[1:] * v[:-1])


public(globals())
