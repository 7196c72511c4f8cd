"""Eigenvalues of tridiagonal matrices by bisection.

Builds on `scan`, `while_loop`, `custom_jvp`.
In JAX: `eigh_tridiagonal` of `jax/_src/scipy/linalg.py`.
"""

import functools
from typing import Any

from minijax import lax, numpy as jnp
from minijax.core import Array
from minijax.custom.custom_jvp_vjp import custom_jvp
from minijax.transforms.jit import jit
from minijax.numpy.arguments import ArrayLike, as_array


def eigh_tridiagonal(d: ArrayLike, e: ArrayLike, *, eigvals_only: bool = False, select: str = "a",
                     select_range: tuple[float, float] | None = None, tol: float | None = None,
                     key: Array | None = None) -> Any:
    """The eigenvalues of a symmetric tridiagonal matrix, ascending, and its eigenvectors.

    >>> jnp.round(eigh_tridiagonal(jnp.array([2., 2.]), jnp.array([1.]), eigvals_only=True), 3)
    Array([1., 3.], dtype=float32)

    Args:
      d, e: the diagonal, and the numbers beside it.
      select: "a" for all, "i" for those from one place to another, both of them included.
      select_range: the two places.
      tol: the length of the intervals around the eigenvalues at which bisection ends.
      key: not needed: nothing is random.
    """
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
                        "beside a diagonal of n numbers the off-diagonal must have n - 1")
    if d.dtype not in (jnp.float32, jnp.float64, jnp.complex64, jnp.complex128):
        raise TypeError("Only float32 and float64 inputs are supported as inputs to "
                        f"jax.scipy.linalg.eigh_tridiagonal, got {d.dtype} and {e.dtype}")
    first, last = map(int, select_range) if select == "i" and select_range else (0, d.size - 1)
    if last < first and d.size:
        raise ValueError("Got empty index range in select_range.")
    off_diagonal = abs(e) if jnp.iscomplexobj(e) else e
    values = _bisected(first, last + 1, tol, jnp.real(d), off_diagonal)
    return values if eigvals_only else (values, _eigenvectors(jnp.real(d), e)[:, first:last + 1])


def _eigenvectors(d: Any, e: Any) -> Any:
    # JAX: by inverse iteration from a random start, which needs no dense matrix.
    whole = jnp.diag(d) + jnp.diag(e, 1) + jnp.diag(jnp.conj(e), -1)
    return jnp.linalg.eigh(whole).eigenvectors


@functools.partial(custom_jvp, nondiff_argnums=(0, 1, 2))
@functools.partial(jit, static_argnums=(0, 1), inline=True)
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
    start = jnp.ones_like(x), jnp.zeros(x.shape, jnp.int32)
    return lax.scan(pivots, start, (d, squares))[0][1]


@_bisected.defjvp
def _bisected_jvp(first: int, stop: int, tol: float | None, primals: tuple, tangents: tuple
                  ) -> tuple:
    """``vᵀ dA v``, by the eigenvector v of each eigenvalue."""
    (d, e), (d_dot, e_dot) = primals, tangents
    v = _eigenvectors(d, e)[:, first:stop]
    slopes = d_dot @ v**2 + 2 * e_dot @ (v[1:] * v[:-1])
    return _bisected(first, stop, tol, d, e), slopes
