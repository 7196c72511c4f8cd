"""Primitives cholesky and triangular_solve: loops of their own, products of blocks by BLAS.

Stands on `matrices`.  Chapter 24, *Loops and Numba*; capstones with Gaussian processes.
In JAX: `jax/_src/lax/linalg.py`; the other factorisations are in `lu`, `spectral`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core import (Array, Axis, Example, Primitive, ShapedArray, Undefined, Zero, as_value,
                          cannot)
from minijax.primitives.algebra import add, div, neg
from minijax.primitives.complex_numbers import conj
from minijax.primitives.convert import convert_element_type
from minijax.primitives.cumulative import nest
from minijax.primitives.emitted import add_any_p, batched_in_front, filled
from minijax.primitives.matrices import (address, adjoint, batch_leading, by_lapack, check_matrix,
                                         dot, factored, flipped, identity_like, lower_part, product,
                                         spread_out, symmetric, upper_part)
from minijax.primitives.products import GEMM
from minijax.primitives.shape import expand_dims, reshape, squeeze, transpose
from minijax.primitives.slots import SHORT_FLOATS, check_same_dtypes

BLOCK = 64  # rows and columns that are worked on without BLAS


# ── cholesky: the meaning ────────────────────────────────────────────────────────────────────

def _cholesky_type(x: ShapedArray) -> list[ShapedArray]:
    check_matrix("cholesky", x, square=True)
    return [x]


def _cholesky_impl(x: np.ndarray) -> list[np.ndarray]:
    return [np.tril(by_lapack("cholesky_lo", x))]


def _cholesky_slope(t: Array, outs: Sequence[Array]) -> list[Array]:
    """Murray, *Differentiation of the Cholesky decomposition* (2016), equation 8."""
    [factor] = outs
    half = triangular_solve(factor, t, left_side=False, lower=True, transpose_a=True,
                            conjugate_a=True)
    inside = triangular_solve(factor, half, left_side=True, lower=True)
    one = identity_like(inside)
    halved = div(inside, add(one, filled(1, one)))  # the diagonal counts half
    return [product(factor, lower_part(halved))]


# ── cholesky: the loops ──────────────────────────────────────────────────────────────────────

def _cholesky_loop(b: Any, outputs: Sequence, operands: Sequence) -> None:
    """Blocks of columns from left to right: subtract what is known, then factor row by row."""
    [x], [out] = operands, outputs
    n = out.shape[-1]
    width = min(n, BLOCK)
    panel = b.temp((n, width), out.dtype) if n > width else None
    with nest(b, out.shape[:-2]) as place:
        _copy_lower(b, x, out, place)
        ok = b.variable(True, np.bool_)
        with b.loop(-(-n // width) if n else 0) as block:
            start = b.mul(b.index(block), width)
            stop = b.min(b.add(start, width), n)
            if panel is not None:
                _subtract_known(b, out, panel, place, start, stop)
            with b.loop(n, start=start) as i:
                _factor_row(b, out, place, i, start, stop, ok)
        with b.when(b.not_(b.read(ok))), b.loop(n) as i, b.loop(b.add(b.index(i), 1)) as j:
            b.store(out, (*place, i, j), np.nan)


def _copy_lower(b: Any, x: Any, out: Any, place: tuple) -> None:
    with b.loop(out.shape[-1]) as i, b.loop(out.shape[-1], vectorize="parallel") as j:
        value = x((*place, i, j))
        b.store(out, (*place, i, j), b.select(b.le(b.index(j), i), value, 0))


def _subtract_known(b: Any, out: Any, panel: Any, place: tuple, start: Any, stop: Any) -> None:
    """From the columns [start, stop) the products of the rows' parts left of them."""
    n, width = panel.shape
    rows, columns = b.sub(b.index(n), start), b.sub(stop, start)
    left = address(b, out, (*place, start, 0))
    b.call(GEMM[out.dtype], 0, 1, rows, columns, start, left, n, left, n, panel, width)
    with b.loop(n, start=start) as i, b.loop(b.min(b.add(i, 1), stop), start=start,
                                             vectorize="parallel") as j:
        known = b.load(panel, (b.sub(i, start), b.sub(j, start)))
        b.store(out, (*place, i, j), b.sub(b.load(out, (*place, i, j)), known))


def _factor_row(b: Any, out: Any, place: tuple, i: Any, start: Any, stop: Any, ok: Any) -> None:
    """Row i of the factor in the columns [start, stop), from the rows above and left to right."""
    def at(row: Any, column: Any) -> Any:
        return b.load(out, (*place, row, column))

    with b.loop(b.min(i, stop), start=start) as j:
        known = dot(b, out.dtype, start, j, lambda k: b.mul(at(i, k), at(j, k)))
        b.store(out, (*place, i, j), b.div(b.sub(at(i, j), known), at(j, j)))
    with b.when(b.lt(b.index(i), stop)):
        known = dot(b, out.dtype, start, i, lambda k: b.mul(at(i, k), at(i, k)))
        pivot = b.sub(at(i, i), known)
        b.assign(ok, b.and_(b.read(ok), b.gt(pivot, 0)))
        b.store(out, (*place, i, i), b.sqrt(pivot))


def _cholesky_examples() -> list[Example]:
    cases = [symmetric(3, 3), symmetric(2, 3, 3), symmetric(1, 1), symmetric(0, 0),
             symmetric(5, 5), symmetric(70, 70) + 70 * np.eye(70)]
    cases = cases[:3] + [x.astype(np.float32) for x in cases]
    return [Example((x,)) for x in [*cases, -symmetric(3, 3, dtype=np.float32)]]


cholesky_p = Primitive(
    "cholesky",
    impl=_cholesky_impl,
    abstract_eval=_cholesky_type,
    transpose=cannot("the factor is not linear in the matrix."),
    loop=_cholesky_loop,
    examples=_cholesky_examples)
cholesky_p.jvp = factored(cholesky_p, _cholesky_slope)
cholesky_p.batch = batch_leading(cholesky_p)


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

def _solve_jvp(primals: list, tangents: list, **params: Any) -> tuple[list, list]:
    """Of ``op(a) x = b``: ``op(a) dx = db - op(da) x`` (Giles 2008, section 2.2.2)."""
    (a, b), (a_dot, b_dot) = primals, tangents
    x = triangular_solve_p.bind(a, b, **params)
    terms = [] if isinstance(b_dot, Zero) else [b_dot]
    if not isinstance(a_dot, Zero):
        terms.append(neg(_applied(a_dot, x, **params)))
    if not terms:
        return [x], [Zero(x.aval.to_tangent_aval())]
    total = terms[0] if len(terms) == 1 else add_any_p.bind(*terms)
    return [x], [triangular_solve_p.bind(a, total, **params)]


def _applied(a: Array, x: Array, *, left_side: bool, lower: bool, transpose_a: bool,
             conjugate_a: bool, unit_diagonal: bool) -> Array:
    """``op(a) x``, or ``x op(a)``, of the triangle that counts."""
    offset = 1 if unit_diagonal else 0
    a = lower_part(a, -offset) if lower else upper_part(a, offset)
    a = conj(a) if conjugate_a else a
    a = flipped(a) if transpose_a else a
    return product(a, x) if left_side else product(x, a)


def _solve_transpose(cotangents: list, a: Any, b: Any, *, transpose_a: bool, **params: Any
                     ) -> list:
    [ct] = cotangents
    if isinstance(a, Undefined):
        raise NotImplementedError("triangular_solve is not linear in its first argument")
    if isinstance(ct, Zero):
        return [None, Zero(b.aval)]
    return [None, triangular_solve_p.bind(a, ct, transpose_a=not transpose_a, **params)]


def _solve_batch(axis: Axis, args: list, dims: list, **params: Any) -> tuple[list, list]:
    (a, b), (a_dim, b_dim) = args, dims
    if a_dim is None:
        return side_by_side(lambda b: triangular_solve_p.bind(a, b, **params),
                            batched_in_front(b, b_dim, axis.size), params["left_side"])
    x = triangular_solve_p.bind(*(batched_in_front(y, d, axis.size)
                                  for y, d in zip(args, dims, strict=True)), **params)
    return [x], [0]


def side_by_side(solve: Callable[[Array], Array], b: Array, left_side: bool = True
                 ) -> tuple[list, list]:
    """One matrix for a whole batch: the right sides of its equations stand beside each other."""
    place = b.ndim - 1 if left_side else b.ndim - 3
    order = [*range(1, b.ndim)]
    order.insert(place, 0)
    beside = transpose(b, order)
    rows, columns = b.shape[-2:]
    joined = (rows, columns * b.shape[0]) if left_side else (rows * b.shape[0], columns)
    return [reshape(solve(reshape(beside, (*b.shape[1:-2], *joined))), beside.shape)], [place]


# ── triangular_solve: the loops ──────────────────────────────────────────────────────────────

def _solve_loop(b: Any, outputs: Sequence, operands: Sequence, *, left_side: bool, lower: bool,
                transpose_a: bool, conjugate_a: bool, unit_diagonal: bool) -> None:
    [a, rhs], [out] = operands, outputs
    system = Triangular(b, a, out, left_side == transpose_a,
                     (lower != transpose_a) == left_side, unit_diagonal)
    b.materialize(rhs, into=out)
    with nest(b, out.shape[:-2]) as place:
        if left_side:
            system.solve_columns(place)
        else:
            with b.loop(out.shape[-2]) as row:
                system.solve_vector(place, lambda i: (*place, row, i))


class Triangular:
    """A triangular matrix T and the unknowns x of ``T x = b``, which overwrite b."""

    def __init__(self, b: Any, a: Any, x: Any, turned: bool, forward: bool, unit: bool):
        self.b, self.a, self.x = b, a, x
        self.turned, self.forward, self.unit = turned, forward, unit
        self.size = a.shape[-1]

    def matrix(self, place: tuple, i: Any, k: Any) -> Any:
        return self.a((*place, k, i) if self.turned else (*place, i, k))

    def in_order(self, step: Any) -> Any:
        return step if self.forward else self.b.sub(self.size - 1, self.b.index(step))

    def known(self, i: Any) -> tuple[Any, Any]:
        """The range of the unknowns that are solved for before the i-th."""
        return (0, i) if self.forward else (self.b.add(self.b.index(i), 1), self.size)

    def waiting(self, i: Any) -> tuple[Any, Any]:
        return (self.b.add(self.b.index(i), 1), self.size) if self.forward else (0, i)

    def solve_columns(self, place: tuple) -> None:
        """Every column of x is a solution of its own."""
        if self.x.shape[-1] == 1:
            self.solve_vector(place, lambda i: (*place, i, 0))
        else:
            self.solve_rows(place)

    def solve_rows(self, place: tuple) -> None:
        """Every unknown is a row: whole rows are subtracted from it and divided."""
        b, x = self.b, self.x
        with b.loop(self.size) as step:
            i = self.in_order(step)
            start, stop = self.known(i)
            with b.loop(stop, start=start) as k:
                factor = self.matrix(place, i, k)
                with b.loop(x.shape[-1], vectorize="parallel") as j:
                    term = b.mul(factor, b.load(x, (*place, k, j)))
                    b.store(x, (*place, i, j), b.sub(b.load(x, (*place, i, j)), term))
            if not self.unit:
                pivot = self.matrix(place, i, i)
                with b.loop(x.shape[-1], vectorize="parallel") as j:
                    b.store(x, (*place, i, j), b.div(b.load(x, (*place, i, j)), pivot))

    def solve_vector(self, place: tuple, at: Any) -> None:
        """Every unknown is a number; the inner loop runs along the rows of the matrix."""
        b, x = self.b, self.x
        with b.loop(self.size) as step:
            i = self.in_order(step)
            if not self.turned:
                start, stop = self.known(i)
                known = dot(b, x.dtype, start, stop, lambda k: b.mul(
                    self.matrix(place, i, k), b.load(x, at(k))))
                b.store(x, at(i), b.sub(b.load(x, at(i)), known))
            if not self.unit:
                b.store(x, at(i), b.div(b.load(x, at(i)), self.matrix(place, i, i)))
            if self.turned:
                value, (start, stop) = b.load(x, at(i)), self.waiting(i)
                with b.loop(stop, start=start, vectorize="parallel") as k:
                    term = b.mul(self.matrix(place, k, i), value)
                    b.store(x, at(k), b.sub(b.load(x, at(k)), term))


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
    jvp=_solve_jvp,
    transpose=_solve_transpose,
    batch=_solve_batch,
    loop=_solve_loop,
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
            *(convert_element_type(x, np.float32) for x in (a, b)), left_side=left_side,
            lower=lower, transpose_a=transpose_a, unit_diagonal=unit_diagonal)
        return convert_element_type(wide, a.dtype)
    is_vector = b.ndim == a.ndim - 1
    place = b.ndim if left_side else max(b.ndim - 1, 0)
    x = triangular_solve_p.bind(
        a, expand_dims(b, (place,)) if is_vector else b, left_side=left_side, lower=lower,
        transpose_a=transpose_a, unit_diagonal=unit_diagonal,
        conjugate_a=conjugate_a and dtypes.issubdtype(a.dtype, np.complexfloating))
    return squeeze(x, (place,)) if is_vector else x
