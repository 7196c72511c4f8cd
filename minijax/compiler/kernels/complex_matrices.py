"""Triangular solves, and LU factorisation of complex matrices, as loops.

A complex number is two real parts, so a matrix has one buffer or two. The blocks of
`triangular_solve` and `lu` name these rules. Chapter 22.
In JAX: LAPACK's `trsm` and `getrf`, called through jaxlib.
"""

from collections.abc import Sequence
from typing import Any

from minijax.primitives.slots import nest

from ..loops import INT64, Buffer

Matrix = Sequence[Buffer]  # the real parts of its elements, and the imaginary ones if it has any
Parts = Sequence[Any]  # of a number


def load(b: Any, x: Matrix, at: Sequence[Any]) -> Parts:
    return [b.load(part, at) for part in x]


def subtract(b: Any, x: Matrix, at: Sequence[Any], z: Parts, w: Parts) -> None:
    """Subtract the product of two numbers from an element."""
    re, *im = (b.fma(b.neg(z[0]), part, y) for part, y in zip(w, load(b, x, at), strict=True))
    b.store_all(x, at, [b.fma(z[1], w[1], re), b.fma(b.neg(z[1]), w[0], *im)] if im else [re])


def quotient(b: Any, z: Parts, w: Parts) -> Parts:
    """z / w; both parts of w are scaled near 1 first, so that nothing overflows."""
    if len(w) == 1:
        return [b.div(*z, *w)]
    size = b.max(*map(b.abs, w))
    x, y = (b.div(part, size) for part in w)
    denominator = b.mul(size, b.fma(x, x, b.mul(y, y)))
    re, im = z
    return [b.div(b.fma(re, x, b.mul(im, y)), denominator),
            b.div(b.fma(im, x, b.neg(b.mul(re, y))), denominator)]


def triangular_solve(b: Any, outputs: Sequence, operands: Sequence, *, left_side: bool, lower: bool,
                     transpose_a: bool, conjugate_a: bool, unit_diagonal: bool) -> None:
    """Forward or backward substitution, by rows of the solution or by columns."""
    a, x = list(map(b.materialize, operands[:len(outputs)])), outputs
    for part, into in zip(operands[len(outputs):], x, strict=True):
        b.materialize(b.value(part), into=into)
    shape = x[0].shape
    n, columns = a[0].shape[-1], shape[-1 if left_side else -2]
    forward, transposed = (lower != transpose_a) == left_side, transpose_a == left_side
    with nest(b, shape[:-2], "parallel") as place, b.loop(n) as step:
        def row(i: Any) -> Any:
            return i if forward else b.sub(n - 1, i)

        def at(i: Any, j: Any) -> tuple:
            return (*place, i, j) if left_side else (*place, j, i)

        def factor(k: Any) -> Parts:
            re, *im = load(b, a, (*place, k, i) if transposed else (*place, i, k))
            return [re, *map(b.neg, im)] if conjugate_a else [re, *im]
        i = row(step)
        with b.loop(step) as previous, b.loop(columns, vectorize="parallel") as j:
            k = row(previous)
            subtract(b, x, at(i, j), factor(k), load(b, x, at(k, j)))
        with b.loop(0 if unit_diagonal else columns, vectorize="parallel") as j:
            b.store_all(x, at(i, j), quotient(b, load(b, x, at(i, j)), factor(i)))


def lu(b: Any, outputs: Sequence, operands: Sequence) -> None:
    """LU factorisation by columns: exchange rows, divide the column, subtract its multiples.

    The pivot has the largest |re| + |im|, as in LAPACK.
    """
    *factors, pivots = outputs
    for part, into in zip(operands, factors, strict=True):
        b.materialize(part, into=into)
    *batch, m, n = factors[0].shape
    with nest(b, batch, "parallel") as place, b.loop(min(m, n)) as k:
        k = b.index(k)
        largest, pivot_row = b.variable(-1, factors[0].dtype), b.variable(k, INT64)
        with b.loop(m, k) as i:
            re, im = load(b, factors, (*place, i, k))
            size = b.add(b.abs(re), b.abs(im))
            with b.when(b.gt(size, b.read(largest))):
                b.assign(largest, size)
                b.assign(pivot_row, i)
        other = b.read(pivot_row)
        b.store(pivots, (*place, k), b.convert(other, pivots.dtype))
        with b.loop(n, vectorize="parallel") as j:
            here, there = (load(b, factors, (*place, i, j)) for i in (k, other))
            b.store_all(factors, (*place, k, j), there)
            b.store_all(factors, (*place, other, j), here)
        pivot = load(b, factors, (*place, k, k))
        with b.loop(m, b.add(k, 1)) as i:
            with b.when(b.or_(*(b.ne(part, 0) for part in pivot))):
                at = (*place, i, k)
                b.store_all(factors, at, quotient(b, load(b, factors, at), pivot))
            factor = load(b, factors, (*place, i, k))
            with b.loop(n, b.add(k, 1), vectorize="parallel") as j:
                subtract(b, factors, (*place, i, j), factor, load(b, factors, (*place, k, j)))
    b.freeze(pivots)
