"""Primitive solve: systems of equations, by elimination and substitution.

Stands on `lu`, `linalg`.  Chapter 24, *Loops and Numba*.
In JAX: `lax.custom_linear_solve` around the primitive `lu`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.core import Array, Example, Primitive, ShapedArray
from minijax.primitives.linalg import (batched_equations, of_equations, solve_triangles,
                                       transposed_equations, triangular_solve_p)
from minijax.primitives.lu import INT32, lu_p
from minijax.primitives.matrices import by_lapack, check_matrix, flipped, product, spread_out
from minijax.primitives.slots import check_same_dtypes, nest

# JAX: a program whose derivative uses the factors again; here each direction factors anew.


def _type(a: ShapedArray, b: ShapedArray, *, transpose_a: bool) -> list[ShapedArray]:
    check_same_dtypes("solve", a, b)
    check_matrix("solve", a, square=True)
    if a.shape[:-2] != b.shape[:-2] or a.shape[-1] != b.shape[-2]:
        raise ValueError(f"Incompatible shapes for arguments to solve: {a.shape} and {b.shape}.")
    return [b]


def _impl(a: np.ndarray, b: np.ndarray, *, transpose_a: bool) -> list[np.ndarray]:
    x = by_lapack("solve", a.swapaxes(-1, -2) if transpose_a else a, b)
    return [x] if not np.isnan(x).any() else [_substituted(a, b, transpose_a)]


def _substituted(a: np.ndarray, b: np.ndarray, transpose_a: bool) -> np.ndarray:
    """Where the matrix is singular: LAPACK gives up, substitution shows what is infinite."""
    factors, _, order = lu_p.impl(a)

    def triangle(x: np.ndarray, lower: bool) -> np.ndarray:
        return triangular_solve_p.impl(
            factors, x, left_side=True, lower=lower, transpose_a=transpose_a, conjugate_a=False,
            unit_diagonal=lower)[0]
    if not transpose_a:
        rows = np.take_along_axis(b, order[..., None], -2)
        return triangle(triangle(rows, True), False)
    back = np.argsort(order, -1)
    return np.take_along_axis(triangle(triangle(b, False), True), back[..., None], -2)


# ── The loops ────────────────────────────────────────────────────────────────────────────────

def _library(b: Any, outputs: Sequence, operands: Sequence, *, transpose_a: bool) -> None:
    """Factor all matrices; then substitute in both triangles, with rows exchanged."""
    [a, rhs], [out] = operands, outputs
    factors, order = b.temp(a.shape, out.dtype), b.temp(a.shape[:-1], INT32)
    lu_p.loop(b, [factors, b.temp(a.shape[:-1], INT32), order], [b.stored(a)])
    b.freeze(factors)
    x = b.temp(out.shape, out.dtype) if transpose_a else out
    if transpose_a:
        b.materialize(b.stored(rhs), into=x)
    else:
        _move_rows(b, order, out.shape, lambda place, i, at: (x, (*place, i), rhs, (*place, at)))
    for lower in (not transpose_a, transpose_a):
        solve_triangles(b, factors, x, True, lower, transpose_a, unit_diagonal=lower)
    if transpose_a:
        _move_rows(b, order, out.shape, lambda place, i, at: (out, (*place, at), x, (*place, i)))


def _move_rows(b: Any, order: Any, shape: tuple[int, ...], move: Callable[..., tuple]) -> None:
    """Copy matrices row by row: ``move(place, i, order[i])`` says from where to where."""
    with nest(b, shape[:-2]) as place, b.loop(shape[-2]) as i:
        at = b.convert(b.load(order, (*place, i)), np.int64)
        target, row, source, other = move(place, i, at)
        with b.loop(shape[-1], vectorize="parallel") as j:
            b.store(target, (*row, j), b.load(source, (*other, j)))


def _examples() -> list[Example]:
    def case(a: np.ndarray, b: np.ndarray, transpose_a: bool = False) -> Example:
        return Example((a, b), {"transpose_a": transpose_a})
    a, b = spread_out(3, 3)[::-1].copy(), spread_out(3, 2)
    found = [case(x, y, turned) for turned in (False, True) for x, y in (
        (a, b), (spread_out(2, 3, 3)[:, ::-1].copy(), spread_out(2, 3, 1)),
        (a.astype(np.float32), b.astype(np.float32)))]
    empty = np.zeros((0, 0), np.float32)
    return [*found, case(empty, np.zeros((0, 2), np.float32)),
            case(a.astype(np.float32), np.zeros((3, 0), np.float32), True),
            case(spread_out(70, 70, dtype=np.float32), spread_out(70, 3, dtype=np.float32), True)]


solve_p = Primitive(
    "solve",
    impl=_impl,
    abstract_eval=_type,
    jvp=of_equations(lambda a_dot, x, transpose_a: product(
        flipped(a_dot) if transpose_a else a_dot, x)),
    transpose=transposed_equations,
    batch=batched_equations,
    library=_library,
    examples=_examples)


def solve(a: Array, b: Array, transpose_a: bool = False) -> Array:
    """The x for which ``a x = b``, or ``aᵀ x = b``, of stacks of matrices of one shape.

    >>> from minijax.core import as_value
    >>> solve(as_value(np.float32([[0, 2], [1, 0]])), as_value(np.float32([[4], [3]])))
    Array([[3.],
           [2.]], dtype=float32)
    """
    return solve_p.bind(a, b, transpose_a=transpose_a)
