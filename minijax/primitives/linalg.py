"""Primitives cholesky and triangular_solve, by LAPACK and BLAS.

Stands on `matrices`.  Chapter 24, *Loops and Numba*; capstones with Gaussian processes.
In JAX: `jax/_src/lax/linalg.py`; the other factorisations are in `lu`, `spectral`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core import (Array, Axis, Example, ForPrimitive, Primitive, ShapedArray, Zero,
                          as_value)
from minijax.primitives.algebra import add, div, neg
from minijax.primitives import complex_numbers, convert, families
from minijax.primitives.emitted import batched_in_front, filled, move_axis, transposed
from minijax.primitives.matrices import (LAPACK, address, adjoint, by_lapack, check_matrix,
                                         examples_of_matrices, factored, factorization, flipped,
                                         identity_like, lower_part, product, spread_out, symmetric,
                                         upper_part)
from minijax.primitives.shape import expand_dims, reshape, squeeze
from minijax.primitives.slots import SHORT_FLOATS, check_same_dtypes, nest

# ── cholesky ─────────────────────────────────────────────────────────────────────────────────

def _cholesky_slope(t: Array, outs: Sequence[Array]) -> list[Array]:
    """Murray, *Differentiation of the Cholesky decomposition* (2016), equation 8."""
    [factor] = outs
    half = triangular_solve(factor, t, left_side=False, lower=True, transpose_a=True,
                            conjugate_a=True)
    inside = triangular_solve(factor, half, left_side=True, lower=True)
    one = identity_like(inside)
    halved = div(inside, add(one, filled(1, one)))  # the diagonal counts half
    return [product(factor, lower_part(halved))]


def _cholesky_library(b: Any, outputs: Sequence, operands: Sequence) -> None:
    """LAPACK reads columns where we have rows: its upper factor is our lower one."""
    [x], [out] = operands, outputs
    n = out.shape[-1]
    if 0 in out.shape:
        return
    info = b.temp((1,), np.int64)
    with nest(b, out.shape[:-2]) as place:
        with b.loop(n) as i, b.loop(n, vectorize="parallel") as j:
            value = b.load(x, (*place, i, j))
            b.store(out, (*place, i, j), b.select(b.le(b.index(j), i), value, 0))
        b.store(info, (0,), 0)
        with b.threads_of_ours(n > 64):
            b.call(f"{LAPACK[x.dtype]}potrf", n, address(b, out, place), n, info)
        with b.when(b.ne(b.load(info, (0,)), 0)), b.loop(n) as i, b.loop(b.add(b.index(i), 1)) as j:
            b.store(out, (*place, i, j), np.nan)


def _cholesky_examples() -> list[Example]:
    cases = [symmetric(3, 3), symmetric(2, 3, 3), symmetric(1, 1)]
    singles = [symmetric(0, 0), symmetric(5, 5), symmetric(70, 70) + 70 * np.eye(70),
               -symmetric(3, 3)]
    return examples_of_matrices([(x, {}) for x in cases], [(x, {}) for x in singles])


cholesky_p = factorization(
    "cholesky",
    multiple_results=False,
    impl=lambda x: [np.tril(by_lapack("cholesky_lo", x))],
    types=lambda x: [x],
    square=True,
    jvp=factored(_cholesky_slope),
    library=_cholesky_library,
    examples=_cholesky_examples)


def cholesky(x: Any, *, symmetrize_input: bool = True) -> Array:
    """The lower triangular matrix L with positive diagonal for which ``x = L Lᴴ``.

    Args:
      x: symmetric (Hermitian) positive definite matrices; where one is not, L is nan.
      symmetrize_input: whether ``(x + xᴴ) / 2`` is factored; otherwise only the lower triangle
        of x is read, and derivatives are those along symmetric changes.

    Raises:
      TypeError: for other than matrices.

    >>> import numpy as np
    >>> cholesky(np.array([[4., 2.], [2., 5.]]))
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    x = as_value(x)
    return cholesky_p.bind(symmetrized(x) if symmetrize_input else x)


def symmetrized(x: Array) -> Array:
    """The means of matrices and their adjoints."""
    total = add(x, adjoint(x))
    return div(total, filled(2, total))


# ── triangular_solve: the type and the meaning ───────────────────────────────────────────────

def _solve_type(a: ShapedArray, b: ShapedArray, *, left_side: bool, **params: Any
                ) -> list[ShapedArray]:
    check_same_dtypes("triangular_solve", a, b)
    check_matrix("triangular_solve", a)
    if a.shape[-1] != a.shape[-2]:
        raise ValueError("The first input to triangular_solve must be a square matrix. "
                         f"Got shape {a.shape}.")
    if a.shape[:-2] != b.shape[:-2] or a.shape[-1] != b.shape[-2 if left_side else -1]:
        raise ValueError("Incompatible shapes for arguments to triangular_solve: "
                         f"{a.shape} and {b.shape}.")
    return [b]


def _solve_impl(a: np.ndarray, b: np.ndarray, *, left_side: bool, lower: bool, transpose_a: bool,
                conjugate_a: bool, unit_diagonal: bool) -> list[np.ndarray]:
    """By substitution, one row of the solution after the other."""
    a = a.conj() if conjugate_a else a
    a = a if transpose_a != left_side else a.swapaxes(-1, -2)  # now x op(a) = b has rows of x
    forward = (lower != transpose_a) == left_side
    x = (b if left_side else b.swapaxes(-1, -2)).copy()
    n = x.shape[-2]
    for i in range(n) if forward else reversed(range(n)):
        known = slice(0, i) if forward else slice(i + 1, n)
        x[..., i, :] -= (a[..., None, i, known] @ x[..., known, :])[..., 0, :]
        if not unit_diagonal:
            x[..., i, :] /= a[..., i, i, None]
    return [x if left_side else np.ascontiguousarray(x.swapaxes(-1, -2))]


# ── triangular_solve: derivative, transpose, batch ───────────────────────────────────────────

def of_equations(applied: Callable[..., Array]) -> ForPrimitive:
    """Of ``op(a) x = b``: ``op(a) dx = db - op(da) x`` (Giles 2008, sections 2.2.2, 2.3.1).

    ``applied(da, x, **params)`` is the product.
    """
    @ForPrimitive
    def jvp(p: Primitive, primals: list, tangents: list, **params: Any) -> tuple[list, list]:
        a_dot, b_dot = tangents
        x = p.bind(*primals, **params)
        terms = [] if isinstance(b_dot, Zero) else [b_dot]
        if not isinstance(a_dot, Zero):
            terms.append(neg(applied(a_dot, x, **params)))
        return [x], [p.bind(primals[0], families.sum_of(terms), **params)]
    return jvp


def _applied(a: Array, x: Array, *, left_side: bool, lower: bool, transpose_a: bool,
             conjugate_a: bool, unit_diagonal: bool) -> Array:
    """``op(a) x``, or ``x op(a)``, of the triangle that counts."""
    offset = 1 if unit_diagonal else 0
    a = lower_part(a, -offset) if lower else upper_part(a, offset)
    a = complex_numbers.conj(a) if conjugate_a else a
    a = flipped(a) if transpose_a else a
    return product(a, x) if left_side else product(x, a)


@ForPrimitive
def batched_equations(p: Primitive, axis: Axis, args: list, dims: list, **params: Any
                      ) -> tuple[list, list]:
    if dims[0] is not None:
        in_front = (batched_in_front(x, d, axis.size) for x, d in zip(args, dims, strict=True))
        return [p.bind(*in_front, **params)], [0]
    # One matrix for the whole batch: the right sides of its equations stand beside each other.
    at = args[1].ndim - (2 if params.get("left_side", True) else 3)
    place = at + params.get("left_side", True)
    beside = move_axis(args[1], dims[1], place)
    shape = beside.shape
    joined = reshape(beside, (*shape[:at], shape[at] * shape[at + 1], *shape[at + 2:]))
    return [reshape(p.bind(args[0], joined, **params), shape)], [place]


def _solve_library(b: Any, outputs: Sequence, operands: Sequence, *, left_side: bool, lower: bool,
                   transpose_a: bool, conjugate_a: bool, unit_diagonal: bool) -> None:
    """BLAS reads columns where we have rows: it is told of the other triangle and side."""
    [a, rhs], [x] = operands, outputs
    b.materialize(b.stored(rhs), into=x)
    if 0 in x.shape:
        return
    letters = ("RL"[not left_side], "LU"[lower], "NT"[transpose_a], "NU"[unit_diagonal])
    n, (rows, columns) = a.shape[-1], x.shape[-2:]
    with nest(b, x.shape[:-2]) as place, b.threads_of_ours(n * rows > 64**2):
        b.call(f"{LAPACK[x.dtype]}trsm", *map(ord, letters), columns, rows,
               address(b, a, place), n, address(b, x, place), columns)


def _solve_examples() -> list[Example]:
    def case(a: np.ndarray, b: np.ndarray, flags: str = "") -> Example:
        return Example((a, b), {name: name in flags.split() for name in (
            "left_side", "lower", "transpose_a", "conjugate_a", "unit_diagonal")})
    a, rows, columns = spread_out(3, 3), spread_out(2, 3), spread_out(3, 2)
    sides = [(rows, ""), (columns, "left_side"), (columns[:, :1].copy(), "left_side")]
    found = [case(a, b, f"{side} {flags}") for b, side in sides for flags in (
        "", "lower", "transpose_a", "lower transpose_a", "lower unit_diagonal")]
    single = [x.astype(np.float32) for x in (a, rows, columns)]
    found += [case(single[0], single[2], "left_side lower"), case(single[0], single[1]),
              case(spread_out(2, 3, 3), spread_out(2, 3, 4), "left_side"),
              case(spread_out(2, 3, 3), spread_out(2, 4, 3), "lower transpose_a"),
              case(np.zeros((0, 0), np.float32), np.zeros((0, 2), np.float32), "left_side"),
              case(single[0], np.zeros((3, 0), np.float32), "left_side lower")]
    return found


triangular_solve_p = Primitive(
    "triangular_solve",
    impl=_solve_impl,
    abstract_eval=_solve_type,
    jvp=of_equations(_applied),
    transpose=transposed(None, lambda ct, a, b, transpose_a, **params: triangular_solve_p.bind(
        a, ct, transpose_a=not transpose_a, **params)),
    batch=batched_equations,
    library=_solve_library,
    examples=_solve_examples)


def triangular_solve(a: Any, b: Any, *, left_side: bool = False, lower: bool = False,
                     transpose_a: bool = False, conjugate_a: bool = False,
                     unit_diagonal: bool = False) -> Array:
    """The x for which ``op(a) x = b`` (`left_side`) or ``x op(a) = b``, `a` being triangular.

    Args:
      a: square matrices, of which one triangle is read.
      b: matrices, or vectors, in a stack of the same shape.
      lower: which triangle of `a` is read.
      transpose_a, conjugate_a: what `op` does.
      unit_diagonal: whether the diagonal counts as ones, whatever it holds.

    Raises:
      ValueError: where the shapes do not fit.

    >>> import numpy as np
    >>> triangular_solve(np.array([[2., 0.], [1., 4.]]), np.array([[2.], [9.]]),
    ...                  left_side=True, lower=True)
    Array([[1.],
           [2.]], dtype=float32)
    """
    a, b = as_value(a), as_value(b)
    check_same_dtypes("triangular_solve", a.aval, b.aval)
    if a.dtype in SHORT_FLOATS:
        wide = triangular_solve(
            *(convert.convert_element_type(x, np.float32) for x in (a, b)), left_side=left_side,
            lower=lower, transpose_a=transpose_a, unit_diagonal=unit_diagonal)
        return convert.convert_element_type(wide, a.dtype)
    is_vector = b.ndim == a.ndim - 1
    place = b.ndim if left_side else max(b.ndim - 1, 0)
    x = triangular_solve_p.bind(
        a, expand_dims(b, (place,)) if is_vector else b, left_side=left_side, lower=lower,
        transpose_a=transpose_a, unit_diagonal=unit_diagonal,
        conjugate_a=conjugate_a and dtypes.issubdtype(a.dtype, np.complexfloating))
    return squeeze(x, (place,)) if is_vector else x
