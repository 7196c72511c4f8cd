"""`minijax.scipy.sparse.linalg`: iterative solvers of linear equations.

Each method runs on one flat vector; `lax.custom_linear_solve` has the derivatives.
Builds on `lax`, `flatten_util`.  In JAX: `jax/_src/scipy/sparse/linalg.py`.
"""

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import dtypes, lax, numpy as jnp, tree_util
from minijax.core import Array, refuse
from minijax.flatten_util import ravel_pytree
from minijax.primitives.convert import converted
from minijax.transforms.prepared import export_all as _export_all

__all__ = ["bicgstab", "cg", "gmres"]

Operator = Callable[[Any], Any]  # of flat vectors


def cg(A: Any, b: Any, x0: Any = None, *, tol: float = 1e-5, atol: float = 0.0,
       maxiter: int | None = None, M: Any = None) -> tuple[Any, None]:
    """The solution of ``A x = b`` by conjugate gradients, for a positive definite Hermitian A.

    >>> cg(jnp.array([[2., 0.], [0., 4.]]), jnp.array([2., 4.]))[0].round(3)
    Array([1., 1.], dtype=float32)

    Args:
      A: a matrix, or a linear function from trees like `b` to such trees.
      b: an array, or a tree of arrays.
      x0: where to begin, by default at 0.
      tol, atol: when to end: the residual is not longer than ``max(tol * |b|, atol)``.
      maxiter: after how many steps to end in any case, by default ten times the size of `b`.
      M: a matrix or a linear function near the inverse of A, with which there are fewer steps.

    Returns:
      The solution, and None.

    Raises:
      ValueError: for a matrix that is not square, and `x0` that is not like `b`.
      TypeError: when A or M is neither a matrix nor a function.
    """
    return _isolve(_cg, A, b, x0, tol, atol, maxiter, M, can_be_symmetric=True), None


def bicgstab(A: Any, b: Any, x0: Any = None, *, tol: float = 1e-5, atol: float = 0.0,
             maxiter: int | None = None, M: Any = None) -> tuple[Any, None]:
    """The solution of ``A x = b`` by stabilised biconjugate gradients, for any A; see `cg`.

    >>> bicgstab(jnp.array([[2., 0.], [0., 4.]]), jnp.array([2., 4.]))[0].round(3)
    Array([1., 1.], dtype=float32)
    """
    return _as_weak(b, _isolve(_bicgstab, A, b, x0, tol, atol, maxiter, M)), None


def gmres(A: Any, b: Any, x0: Any = None, *, tol: float = 1e-5, atol: float = 0.0,
          restart: int = 20, maxiter: int | None = None, M: Any = None,
          solve_method: str = "batched") -> tuple[Any, Array]:
    """The solution of ``A x = b`` with the smallest residual in a growing space, for any A.

    >>> x, info = gmres(jnp.array([[2., 1.], [0., 4.]]), jnp.array([3., 4.]))
    >>> x.round(3), int(info)
    (Array([1., 1.], dtype=float32), 0)

    Args:
      A, b, x0, tol, atol, M: as those of `cg`.
      restart: how large that space becomes; then one begins anew.
      maxiter: after how many such rounds to end in any case.
      solve_method: "batched" or "incremental"; both complete a round.

    Returns:
      The solution, and -1 where it is nan, otherwise 0.

    Raises:
      ValueError: as `cg`, and for another method.
      TypeError: as `cg`.
    """
    # JAX: "incremental" tests for convergence after each step of a round.
    if solve_method not in ("incremental", "batched"):
        raise ValueError(f"invalid solve_method {solve_method}, must be either 'incremental' or "
                         "'batched'")
    size = sum(jnp.size(x) for x in tree_util.tree_leaves(b))
    method = functools.partial(_gmres, restart=min(restart, size))
    x = _as_weak(b, _isolve(method, A, b, x0, tol, atol, maxiter, M,
                            smallest=lambda dtype: jnp.finfo(dtype).eps))
    is_nan = functools.reduce(operator.or_, (
        jnp.any(jnp.isnan(leaf)) for leaf in tree_util.tree_leaves(x)))
    return x, jnp.where(is_nan, -1, 0)


def _as_weak(b: Any, x: Any) -> Any:
    """The solution, weakly typed where the right side is."""
    return tree_util.tree_map(lambda b, x: converted(x, x.dtype, dtypes.is_weakly_typed(b)), b, x)


def _isolve(method: Callable[..., Array], A: Any, b: Any, x0: Any, tol: float, atol: float,
            maxiter: int | None, M: Any, can_be_symmetric: bool = False,
            smallest: Callable[[Any], Any] = lambda dtype: jnp.finfo(dtype).tiny ** 0.5) -> Any:
    """The solution by a method for flat vectors; a smaller residual counts as 0."""
    b = tree_util.tree_map(jnp.asarray, b)
    x0 = tree_util.tree_map(jnp.zeros_like if x0 is None else jnp.asarray, b if x0 is None else x0)
    apply, near_inverse = _normalize_matvec(A), (lambda x: x) if M is None else _normalize_matvec(M)
    trees = tree_util.tree_structure(x0), tree_util.tree_structure(b)
    shapes = [[x.shape for x in tree_util.tree_leaves(tree)] for tree in (x0, b)]
    refuse((trees[0] != trees[1],
            f"x0 and b must have matching tree structure: {trees[0]} vs {trees[1]}"),
           (shapes[0] != shapes[1], "arrays in x0 and b must have matching shapes: "
            f"{shapes[0]} vs {shapes[1]}"), error=ValueError)
    leaves = tree_util.tree_leaves(b)
    steps = 10 * sum(x.size for x in leaves) if maxiter is None else maxiter

    def solve(apply: Callable, b: Any) -> Any:
        flat, unravel = ravel_pytree(b)
        size = _norm(flat)
        limit = jnp.maximum(jnp.maximum(tol * size, atol), float(smallest(size.dtype)))

        def of_flat(f: Callable) -> Operator:
            return lambda x: ravel_pytree(f(unravel(x)))[0]
        start = ravel_pytree(x0)[0].astype(flat.dtype)
        return unravel(method(of_flat(apply), flat, start, limit, steps, of_flat(near_inverse)))
    symmetric = can_be_symmetric and all(x.dtype.kind != "c" for x in leaves)
    return lax.custom_linear_solve(apply, b, solve, solve, symmetric=symmetric)


def _normalize_matvec(f: Any) -> Callable:
    if callable(f):
        return f
    if not hasattr(f, "__matmul__"):
        raise TypeError(f"linear operator must be either a function or ndarray: {f}")
    if len(f.shape) != 2 or f.shape[0] != f.shape[1]:
        raise ValueError(f"linear operator must be a square matrix, but has shape: {f.shape}")
    if isinstance(f, Array | np.ndarray):
        return functools.partial(jnp.dot, f, precision=lax.Precision.HIGHEST)
    return functools.partial(operator.matmul, f)


def _vdot(x: Any, y: Any) -> Any:
    return jnp.vdot(x, y, precision=lax.Precision.HIGHEST)


def _norm(x: Any) -> Any:
    return jnp.sqrt(jnp.real(_vdot(x, x)))


# ── The methods ──────────────────────────────────────────────────────────────────────────────

def _is_unconverged(limit: Any, maxiter: int) -> Callable[[tuple], Any]:
    """Of a state (x, residual, …, step): whether to go on."""
    return lambda state: (_norm(state[1]) > limit) & (state[-1] < maxiter)


def _cg(A: Operator, b: Any, x: Any, limit: Any, maxiter: int, M: Operator) -> Any:
    """Hestenes and Stiefel: each direction is conjugate to those before."""
    def step(state: tuple) -> tuple:
        x, r, size, p, k = state
        image = A(p)
        alpha = size / jnp.real(_vdot(p, image)).astype(b.dtype)
        r = r - alpha * image
        z = M(r)
        after = jnp.real(_vdot(r, z)).astype(b.dtype)
        return x + alpha * p, r, after, z + after / size * p, k + 1
    r = b - A(x)
    z = M(r)
    start = x, r, jnp.real(_vdot(r, z)).astype(b.dtype), z, 0
    return lax.while_loop(_is_unconverged(limit, maxiter), step, start)[0]


def _bicgstab(A: Operator, b: Any, x: Any, limit: Any, maxiter: int, M: Operator) -> Any:
    """Van der Vorst: half a step of biconjugate gradients, and one that minimises the residual."""
    shadow, is_unconverged = b - A(x), _is_unconverged(limit, maxiter)

    def step(state: tuple) -> tuple:
        x, r, alpha, omega, rho, p, q, _, k = state
        rho, before = _vdot(shadow, r), rho
        p = r + rho / before * alpha / omega * (p - omega * q)
        direction = M(p)
        q = A(direction)
        alpha = rho / _vdot(shadow, q)
        s = r - alpha * q
        other = M(s)
        t = A(other)
        omega = _vdot(t, s) / _vdot(t, t)
        is_enough = _norm(s) < limit  # then t may be 0, and omega nan
        half = x + alpha * direction
        x = jnp.where(is_enough, half, half + omega * other)
        r = jnp.where(is_enough, s, s - omega * t)
        return x, r, alpha, omega, rho, p, q, (omega == 0) | (alpha == 0) | (rho == 0), k + 1
    one = jnp.ones((), b.dtype)
    start = x, shadow, one, one, one, shadow, shadow, jnp.array(False), 0
    return lax.while_loop(lambda state: is_unconverged(state) & ~state[-2], step, start)[0]


def _gmres(A: Operator, b: Any, x: Any, limit: Any, maxiter: int, M: Operator, restart: int) -> Any:
    """Saad and Schultz: each round minimises the residual over a Krylov space."""
    def restart_step(state: tuple) -> tuple:
        x, r, k = state
        basis, images = _arnoldi(lambda v: M(A(v)), r, restart)
        residual = jnp.zeros(restart + 1, b.dtype).at[0].set(_norm(r).astype(b.dtype))
        weights = jnp.linalg.solve(jnp.conj(images) @ images.T, jnp.conj(images) @ residual)
        x = x + jnp.dot(weights, basis[:-1], precision=lax.Precision.HIGHEST)
        return x, M(b - A(x)), k + 1
    return lax.while_loop(_is_unconverged(limit, maxiter), restart_step, (x, M(b - A(x)), 0))[0]


def _arnoldi(A: Operator, start: Any, count: int) -> tuple[Any, Any]:
    """An orthonormal basis of the Krylov space, in rows, and the coordinates of their images.

    Beyond the dimension of the space, rows are 0, and coordinates those of the unit matrix.
    """
    def cond_fun(state: tuple) -> Any:
        _, _, has_ended, k = state
        return (k < count) & ~has_ended

    def grow(state: tuple) -> tuple:
        basis, images, _, k = state
        v = A(basis[k])
        smallest = jnp.finfo(v.dtype).eps * _norm(v)
        coordinates = jnp.zeros(count + 1, v.dtype)
        for _ in range(2):  # twice is enough, by Kahan and Parlett
            part = jnp.dot(jnp.conj(basis), v, precision=lax.Precision.HIGHEST)
            v = v - jnp.dot(part, basis, precision=lax.Precision.HIGHEST)
            coordinates = coordinates + part
        unit, size = _safe_normalize(v, smallest)
        coordinates = coordinates.at[k + 1].set(size.astype(v.dtype))
        return basis.at[k + 1].set(unit), images.at[k].set(coordinates), size == 0, k + 1
    first = _safe_normalize(start, jnp.finfo(start.dtype).eps)[0]
    basis = jnp.zeros((count + 1, start.size), start.dtype).at[0].set(first)
    state = basis, jnp.eye(count, count + 1, dtype=start.dtype), jnp.array(False), 0
    return lax.while_loop(cond_fun, grow, state)[:2]


def _safe_normalize(v: Any, smallest: Any) -> tuple[Any, Any]:
    """A vector divided by its norm, and the norm; both 0 where the norm is too small."""
    size = _norm(v)
    is_some = size > smallest
    return jnp.where(is_some, v / size.astype(v.dtype), 0), jnp.where(is_some, size, 0)


_export_all(globals())
