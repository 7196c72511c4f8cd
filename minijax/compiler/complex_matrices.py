"""Complex triangular solves and LU factorisation, as loops over real and imaginary parts.

The blocks of `triangular_solve` and `lu` name them. Chapter 22.
In JAX: LAPACK's `trsm` and `getrf`, called through jaxlib.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from minijax.primitives.slots import nest

from .loops import INT64, Buffer


class Parts(NamedTuple):
    """A complex matrix, as two real buffers."""

    re: Buffer
    im: Buffer

    def load(self, b: Any, at: Sequence[Any]) -> tuple[Any, Any]:
        return b.load(self.re, at), b.load(self.im, at)

    def store(self, b: Any, at: Sequence[Any], z: tuple[Any, Any]) -> None:
        for buffer, x in zip(self, z, strict=True):
            b.store(buffer, at, x)

    def subtract(self, b: Any, at: Sequence[Any], z: tuple[Any, Any], w: tuple[Any, Any]) -> None:
        """Subtract the product of two numbers from an element."""
        re, im = self.load(b, at)
        (a, c), (x, y) = z, w
        self.store(b, at, (b.fma(c, y, b.fma(b.neg(a), x, re)),
                           b.fma(b.neg(c), x, b.fma(b.neg(a), y, im))))


def quotient(b: Any, z: tuple[Any, Any], w: tuple[Any, Any]) -> tuple[Any, Any]:
    """z / w; both parts of w are scaled near 1 first, so that nothing overflows."""
    size = b.max(*map(b.abs, w))
    x, y = (b.div(part, size) for part in w)
    denominator = b.mul(size, b.fma(x, x, b.mul(y, y)))
    re, im = z
    return (b.div(b.fma(re, x, b.mul(im, y)), denominator),
            b.div(b.fma(im, x, b.neg(b.mul(re, y))), denominator))


def triangular_solve(b: Any, outputs: Sequence, operands: Sequence, *, left_side: bool,
                     lower: bool, transpose_a: bool, conjugate_a: bool, unit_diagonal: bool
                     ) -> None:
    """Forward or backward substitution, by rows of the solution or by columns."""
    a, x = Parts(*map(b.materialize, operands[:2])), Parts(*outputs)
    for part, into in zip(operands[2:], x, strict=True):
        b.materialize(part, into=into)
    if 0 in x.re.shape:
        return
    n, columns = a.re.shape[-1], x.re.shape[-1 if left_side else -2]
    forward, transposed = (lower != transpose_a) == left_side, transpose_a == left_side
    with nest(b, x.re.shape[:-2], "parallel") as place, b.loop(n) as step:
        def row(i: Any) -> Any:
            return i if forward else b.sub(n - 1, i)

        def at(i: Any, j: Any) -> tuple:
            return (*place, i, j) if left_side else (*place, j, i)

        def factor(k: Any) -> tuple[Any, Any]:
            re, im = a.load(b, (*place, k, i) if transposed else (*place, i, k))
            return re, b.neg(im) if conjugate_a else im
        i = row(step)
        with b.loop(step) as previous, b.loop(columns, vectorize="parallel") as j:
            k = row(previous)
            x.subtract(b, at(i, j), factor(k), x.load(b, at(k, j)))
        with b.loop(0 if unit_diagonal else columns, vectorize="parallel") as j:
            x.store(b, at(i, j), quotient(b, x.load(b, at(i, j)), factor(i)))


def lu(b: Any, outputs: Sequence, operands: Sequence) -> None:
    """LU factorisation by columns: exchange rows, divide the column, subtract its multiples.

    The pivot has the largest |re| + |im|, as in LAPACK.
    """
    *factors, pivots = outputs
    a = Parts(*factors)
    for part, into in zip(operands, a, strict=True):
        b.materialize(part, into=into)
    *batch, m, n = a.re.shape
    with nest(b, batch, "parallel") as place, b.loop(min(m, n)) as k:
        k = b.index(k)
        largest, pivot_row = b.variable(-1, a.re.dtype), b.variable(k, INT64)
        with b.loop(m, k) as i:
            re, im = a.load(b, (*place, i, k))
            size = b.add(b.abs(re), b.abs(im))
            with b.when(b.gt(size, b.read(largest))):
                b.assign(largest, size)
                b.assign(pivot_row, i)
        other = b.read(pivot_row)
        b.store(pivots, (*place, k), b.convert(other, pivots.dtype))
        with b.loop(n, vectorize="parallel") as j:
            here, there = (a.load(b, (*place, i, j)) for i in (k, other))
            a.store(b, (*place, k, j), there)
            a.store(b, (*place, other, j), here)
        pivot = a.load(b, (*place, k, k))
        with b.loop(m, b.add(k, 1)) as i:
            with b.when(b.or_(*(b.ne(part, 0) for part in pivot))):
                a.store(b, (*place, i, k), quotient(b, a.load(b, (*place, i, k)), pivot))
            factor = a.load(b, (*place, i, k))
            with b.loop(n, b.add(k, 1), vectorize="parallel") as j:
                a.subtract(b, (*place, i, j), factor, a.load(b, (*place, k, j)))
    b.freeze(pivots)
