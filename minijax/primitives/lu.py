"""Primitives lu and solve: elimination with row exchanges, and linear systems.

Builds on `linalg`.  Chapter 24, *Loops and Numba*.
In JAX: `jax/_src/lax/linalg.py`; for solve, `lax.custom_linear_solve` around `lu`.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.core import Array, Primitive, ShapedArray, Zero, cannot
from minijax.primitives import ad_util, families, gather_scatter, slots
from minijax.primitives.examples import table
from minijax.primitives.linalg import (by_lapack, equations, examples_of_matrices, factored,
                                       factorization, identity_like, lower_part, masked, matmul,
                                       matrix_transpose, nonsingular, of_each_matrix,
                                       store_transposed, triangular_solve, upper_part)
from minijax.primitives.slicing import pad, zero_of

INT32 = np.dtype("int32")


# ── lu: the meaning ──────────────────────────────────────────────────────────────────────────

def _lu_impl(x: np.ndarray) -> list[np.ndarray]:
    """Column by column: exchange rows, divide the column, subtract its multiples."""
    *batch, m, n = x.shape
    a = x.reshape(math.prod(batch), m, n).copy()
    pivots = np.zeros((len(a), min(m, n)), INT32)
    for k in range(min(m, n)):
        column = a[:, k:, k]  # of complex numbers LAPACK adds up the parts
        pivots[:, k] = place = k + np.argmax(abs(column.real) + abs(column.imag), axis=1)
        _exchange_rows(a, k, place)
        a[:, k + 1:, k] /= np.where(a[:, k, k, None] == 0, 1, a[:, k, k, None])
        a[:, k + 1:, k + 1:] -= a[:, k + 1:, k, None] * a[:, k, None, k + 1:]
    pivots = pivots.reshape(*batch, min(m, n))
    return [a.reshape(x.shape), pivots, *_permutation_impl(pivots, permutation_size=m)]


def _exchange_rows(stack: np.ndarray, k: int, places: np.ndarray) -> None:
    """Exchange row k of each matrix (or element k of each vector) with another row."""
    each = np.arange(len(stack))
    stack[each, k], stack[each, places] = stack[each, places], stack[each, k].copy()


# ── lu: the derivative ───────────────────────────────────────────────────────────────────────

def _lu_tangents(t: Array, outs: Sequence[Array]) -> list:
    """With F = L⁻¹ P dA U⁻¹: dL = L (F below the diagonal), dU = (the rest of F) U."""
    factors, pivots, permutation = outs
    lower, upper = _square_factors(factors)
    rows = gather_scatter.take_along_axis(t, permutation, t.ndim - 2)
    left = triangular_solve(lower, rows, left_side=True, lower=True, unit_diagonal=True)
    inside = triangular_solve(upper, left)
    tangent = matmul(lower, lower_part(inside, -1)) + matmul(upper_part(inside), upper)
    return [tangent, *(Zero(x.aval.to_tangent_aval()) for x in (pivots, permutation))]


def _square_factors(factors: Array) -> tuple[Array, Array]:
    """L and U, with columns and rows of the identity where a matrix is not square."""
    m, n = factors.shape[-2:]
    as_is = [(0, 0, 0)] * (factors.ndim - 1)
    lower = lower_part(pad(factors, zero_of(factors.dtype), [*as_is, (0, m - n, 0)]), -1)
    upper = upper_part(pad(factors, zero_of(factors.dtype), [*as_is[1:], (0, n - m, 0), as_is[0]]))
    one = identity_like(upper)
    return lower + identity_like(lower), upper + masked(one, lambda rows, columns: rows >= m)


# ── lu: by LAPACK ────────────────────────────────────────────────────────────────────────────

def _factor_lu(b: Any, lapack: Callable, matrix: Any, factors: Any, pivots: Any) -> None:
    n, m = matrix.shape
    exchanges = b.temp((2 * min(m, n),), INT32)
    b.store(exchanges, (1,), 0)
    with b.threads_of_ours(m * n > 64**2):
        lapack("getrf", m, n, matrix, m, exchanges)
    store_transposed(b, matrix, factors)
    # Pivots count from 1: a zero can only be the upper half of a library's 64-bit integer.
    width = b.select(b.eq(b.load(exchanges, (1,)), 0), b.index(2), 1)
    with b.loop(min(m, n)) as k:
        pivots.store((k,), b.sub(b.load(exchanges, (b.mul(k, width),)), 1))


def _with_permutation(factor: Callable[..., None]) -> Callable[..., None]:
    """A rule of `lu` from one that writes the factors and the pivots."""
    def rule(b: Any, outputs: Sequence, operands: Sequence) -> None:
        *factors, permutation = outputs
        factor(b, factors, operands)
        permutation_loop(b, [permutation], [b.value(factors[-1])],
                         permutation_size=factors[0].shape[-2])
    return rule


lu_p = factorization(
    "lu", impl=_lu_impl,
    jvp=factored(_lu_tangents),
    # LAPACK's error code for a zero pivot is no failure: elimination continues
    library=_with_permutation(of_each_matrix(_factor_lu, fails=False)),
    complex_loop=_with_permutation(families.kernel("complex_lu")),
    examples=lambda: examples_of_matrices(
        "", [(nonsingular(*shape)[..., ::-1, :].copy(),)
             for shape in ((3, 3), (2, 4, 4), (4, 2), (2, 4), (1, 1))],
        [(nonsingular(80, 80),), (nonsingular(90, 70),), (nonsingular(40, 100),),
         (np.zeros((2, 2)),), (np.zeros((0, 0)),), (np.zeros((2, 0)),)]))


def lu(x: Any) -> list[Array]:
    """The factors of matrices with rows exchanged: ``x[permutation] = L U``.

    Returns:
      L, whose diagonal of ones is left out, and U, in one array; for each column the row it was
      exchanged with; and the permutation of rows that this amounts to.

    >>> lu(np.array([[1., 2.], [4., 4.]]))
    [Array([[4.  , 4.  ],
           [0.25, 1.  ]], dtype=float32), Array([1, 1], dtype=int32), Array([1, 0], dtype=int32)]

    Raises:
      TypeError: for other than matrices.
    """
    return lu_p.bind(x)


# ── lu_pivots_to_permutation ─────────────────────────────────────────────────────────────────

def _permutation_type(pivots: ShapedArray, *, permutation_size: int) -> list[ShapedArray]:
    slots.check_dtypes("lu_pivots_to_permutation", [pivots, pivots], [(np.int32,), (np.int32,)])
    if pivots.ndim < 1:
        raise TypeError("Input 0 to lu_pivots_to_permutation must have rank at least 1, but got "
                        f"shape={pivots.shape}")
    if permutation_size < pivots.shape[-1]:
        raise ValueError(f"Output permutation size {permutation_size} has to exceed the trailing "
                         f"dimension of the pivots. Got pivots size {pivots.shape[-1]}")
    return [pivots.update(shape=(*pivots.shape[:-1], permutation_size))]


def _permutation_impl(pivots: np.ndarray, *, permutation_size: int) -> list[np.ndarray]:
    flat = pivots.reshape(math.prod(pivots.shape[:-1]), pivots.shape[-1])
    order = np.tile(np.arange(permutation_size, dtype=INT32), (len(flat), 1))
    for k, places in enumerate(np.clip(flat, 0, permutation_size - 1).T):
        _exchange_rows(order, k, places)
    return [order.reshape(*pivots.shape[:-1], permutation_size)]


def permutation_loop(b: Any, outs: Sequence, operands: Sequence, *, permutation_size: int) -> None:
    [pivots], [out] = operands, outs
    with slots.nest(b, pivots.shape[:-1]) as place:
        with b.loop(permutation_size) as i:
            b.store(out, (*place, i), b.convert(b.index(i), INT32))
        with b.loop(pivots.shape[-1]) as i:
            j = b.convert(b.clamp(pivots((*place, i)), 0, permutation_size - 1), np.int64)
            x, y = (b.load(out, (*place, k)) for k in (i, j))
            b.store(out, (*place, i), y)
            b.store(out, (*place, j), x)


lu_pivots_to_permutation_p = Primitive(
    "lu_pivots_to_permutation", impl=_permutation_impl, abstract_eval=_permutation_type,
    jvp=families.constant_in_all, transpose=cannot("integers have no derivative."),
    batch=ad_util.batch_in_front(), sharding=slots.layout("stacked", rank=1),
    loop=permutation_loop,
    examples=table("permutation_size", (np.array([2, 2, 2], INT32), 3), (np.array([], INT32), 2),
                   (np.array([1, 3], INT32), 4), (np.array([[0, 1], [1, 1]], INT32), 2)))


def lu_pivots_to_permutation(pivots: Any, permutation_size: int) -> Array:
    """The permutation of rows that a sequence of exchanges amounts to.

    >>> lu_pivots_to_permutation(np.array([2, 2, 2]), 3)
    Array([2, 0, 1], dtype=int32)

    Raises:
      ValueError: when there are more exchanges than rows.
    """
    return lu_pivots_to_permutation_p.bind(pivots, permutation_size=int(permutation_size))


# ── solve ────────────────────────────────────────────────────────────────────────────────────

# JAX: a program whose derivative reuses the factors; here each direction factorises again.

def _solve_program(a: Array, b: Array) -> Array:
    factors, _, permutation = lu(a)
    rows = gather_scatter.take_along_axis(b, permutation, b.ndim - 2)
    inside = triangular_solve(factors, rows, left_side=True, lower=True, unit_diagonal=True)
    return triangular_solve(factors, inside, left_side=True)


def _solve_impl(a: np.ndarray, b: np.ndarray) -> list[np.ndarray]:
    """LAPACK gives nan for a singular matrix; substitution gives the infinite elements."""
    x = by_lapack("solve", a, b)
    return families.by_program(_solve_program)(a, b) if np.isnan(x).any() else [x]


solve_p = equations(
    "solve", impl=_solve_impl,
    applied=matmul,
    transpose=ad_util.transposed(None, lambda ct, a, b: solve_p.bind(matrix_transpose(a), ct)),
    program=_solve_program,
    examples=lambda: examples_of_matrices(
        "", [(nonsingular(3, 3)[::-1].copy(), nonsingular(3, 2)),
             (nonsingular(2, 3, 3)[:, ::-1].copy(), nonsingular(2, 3, 1))],
        [(np.zeros((0, 0)), np.zeros((0, 2))), (nonsingular(3, 3), np.zeros((3, 0))),
         (nonsingular(70, 70), nonsingular(70, 3))]))


def solve(a: Array, b: Array) -> Array:
    """The x for which ``a x = b``, of stacks of matrices of one shape.

    >>> from minijax.core import as_value
    >>> solve(as_value(np.float32([[0, 2], [1, 0]])), as_value(np.float32([[4], [3]])))
    Array([[3.],
           [2.]], dtype=float32)
    """
    return solve_p.bind(a, b)
