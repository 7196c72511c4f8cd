"""Stacks of matrices: the family of their factorisations, cholesky, and triangular_solve.

Builds on `contract`; the other factorisations are in `lu`, `eigh_svd`.  Chapter 24, *Loops and
Numba*; capstones with Gaussian processes.  In JAX: `jax/_src/lax/linalg.py`.
"""

import functools
import importlib
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.core import (Array, Avals, Axis, Example, ForPrimitive, Outs, Primitive, ShapedArray,
                          Zero, as_value, cannot, dtype_name)
from minijax.primitives import algebra, comparison, contract, convert, examples, families
from minijax.primitives.ad_util import (add_cotangents, batch_in_front, broadcast_at, filled,
                                        merged, move_axis, transposed)
from minijax.primitives.shape import broadcasted_iota, expand_dims, reshape, squeeze, transpose
from minijax.primitives.slots import (INEXACT, LEFT_TO_NUMPY, check_dtypes, check_same_dtypes,
                                      is_narrow, layout, nest)


# ── Types ────────────────────────────────────────────────────────────────────────────────────

def check_matrix(name: str, x: ShapedArray, square: bool = False) -> None:
    """Refuse other arrays than stacks of matrices of a dtype of LAPACK's.

    Raises:
      TypeError: for other dtypes and ranks below two.
      NotImplementedError: for floats of fewer than 32 bits.
      ValueError: for matrices that have to be square and are not.
    """
    check_dtypes(name, [x, x], [INEXACT, INEXACT])
    if is_narrow(x.dtype):
        raise NotImplementedError(f"Unsupported dtype {dtype_name(x.dtype)}.")
    if x.ndim < 2:
        raise TypeError(f"Input 0 to {name} must have rank at least 2, but got shape={x.shape}")
    if square and x.shape[-1] != x.shape[-2]:
        shape = x.shape[-2:]
        raise ValueError(
            f"Argument to {_REDUCTIONS[name]} must have shape [..., n, n], got shape {shape}"
            if name in _REDUCTIONS else
            f"The input to {name} must be a square matrix. Got shape {shape}.")


_REDUCTIONS = {"eigh": "symmetric eigendecomposition", "hessenberg": "Hessenberg reduction"}


# ── Algebra ──────────────────────────────────────────────────────────────────────────────────

def matrix_transpose(x: Array) -> Array:
    """Every matrix transposed."""
    return transpose(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def adjoint(x: Array) -> Array:
    """Every matrix transposed, and conjugated where it is complex."""
    x = matrix_transpose(x)
    return algebra.conj(x) if algebra.is_complex(x) else x


def matmul(x: Array, y: Array) -> Array:
    """The products of two stacks of matrices."""
    return contract.batch_matmul(x, y, precision="highest")


def lower_part(x: Array, offset: int = 0) -> Array:
    """Every matrix with zeros above its diagonal number `offset`."""
    return masked(x, lambda rows, columns: rows + offset >= columns)


def upper_part(x: Array, offset: int = 0) -> Array:
    """Every matrix with zeros below its diagonal number `offset`."""
    return masked(x, lambda rows, columns: columns >= rows + offset)


def masked(x: Array, test: Callable[[Any, Any], Any]) -> Array:
    """Every matrix with zeros where a test of row and column fails."""
    rows, columns = (broadcasted_iota(np.int32, x.shape[-2:], d) for d in (0, 1))
    mask = broadcast_at(test(rows, columns), (x.ndim - 2, x.ndim - 1), x.shape)
    return comparison.select(mask, x, filled(0, x))


def identity_like(x: Array) -> Array:
    """For each matrix the identity of its dtype and shape."""
    one = as_value(np.eye(x.shape[-2], x.shape[-1], dtype=x.dtype))
    return broadcast_at(one, (x.ndim - 2, x.ndim - 1), x.shape)


# ── The family ───────────────────────────────────────────────────────────────────────────────

def factorization(name: str, *, impl: Callable[..., list], square: bool = False,
                  multiple_results: bool = True, complex_loop: Any = LEFT_TO_NUMPY, **slots: Any
                  ) -> Primitive:
    """A primitive that takes matrices, or stacks of them, to their factors.

    Args:
      impl: the meaning; of an empty stack it also says what types the factors have.
      square: whether rows and columns must be as many.
      complex_loop: as of `Primitive`.
      slots: the derivative, the calls of LAPACK, and the examples.
    """
    def abstract_eval(x: ShapedArray, **params: Any) -> list[ShapedArray]:
        check_matrix(name, x, square)
        *stack, m, n = x.shape
        return [x.update(shape=(*stack, *factor.shape[1:]), dtype=factor.dtype)
                for factor in impl(np.empty((0, m, n), x.dtype), **params)]

    return Primitive(
        name, multiple_results=multiple_results, impl=impl, abstract_eval=abstract_eval,
        transpose=cannot("the factors are not linear in the matrix."), batch=batch_in_front(),
        complex_loop=complex_loop, may_produce_nan=True, sharding=layout("stacked", words={
            "whole": "Input 0 to {name} must be unsharded on non-batch dimensions, but got {spec}."
        }), **slots)


def factored(tangent_rule: Callable[..., Sequence[Array | Zero]]) -> ForPrimitive:
    """The derivative of a factorisation: ``tangent_rule(tangent, factors, **params)``."""
    @ForPrimitive
    def jvp(p: Primitive, primals: list, tangents: list, **params: Any) -> Outs:
        factors = p.bind_list(*primals, **params)
        return factors, list(tangent_rule(tangents[0], factors, **params))
    return jvp


def by_lapack(name: str, *arrays: np.ndarray) -> Any:
    """A function behind `numpy.linalg`, for stacks: nan where there is no result.

    Those of `numpy.linalg` itself raise, and compute float32 in float64, where LAPACK may choose
    other signs.
    """
    return getattr(importlib.import_module("numpy.linalg._umath_linalg"), name)(*arrays)


# ── Calls of LAPACK ──────────────────────────────────────────────────────────────────────────

SMALL = 16  # rows: with so few, a call costs more than the substitution
SHARED = 1 << 18  # terms of the products in factorisations of all matrices: some 50 µs
LAPACK = {np.dtype(np.float32): "blas_s", np.dtype(np.float64): "blas_d"}


def each_matrix(b: Any, shape: Sequence[int]) -> Any:
    """A loop over the matrices of a stack, whose work threads share unless there is little."""
    *batch, _, n = shape
    return nest(b, batch, "parallel" * (math.prod(shape) * n >= SHARED))


def address(b: Any, buffer: Any, index: Sequence[Any]) -> Any:
    """The address of a buffer's element at the leading indices, for external calls."""
    return b.address(functools.reduce(b.row, index, b.value(buffer)))


def of_each_matrix(factor: Callable[..., None], fails: bool = True) -> Callable[..., None]:
    """A `library` rule from LAPACK's calls for one matrix; where it `fails` the factors are nan.

    Args:
      factor: ``(b, lapack, matrix, *factors, **params)``; `matrix` is a copy in column-major
        order, and ``lapack(routine, *arguments)`` calls a routine of its dtype.
    """
    def rule(b: Any, outputs: Sequence, operands: Sequence, **params: Any) -> None:
        [x] = operands
        if 0 in x.shape:  # LAPACK takes no empty matrices
            return fill_with_identities(b, [out for out in outputs if 0 not in out.shape])
        with each_matrix(b, x.shape) as place:
            matrix, info = b.temp((x.shape[-1], x.shape[-2]), x.dtype), b.temp((1,), np.int64)

            def lapack(routine: str, *args: Any) -> None:
                b.call(f"{LAPACK[x.dtype]}{routine}", *args, info)
            factors = [functools.reduce(b.row, place, b.value(out)) for out in outputs]
            with nest(b, matrix.shape) as (j, i):
                b.store(matrix, (j, i), b.load(x, (*place, i, j)))
            b.store(info, (0,), 0)
            factor(b, lapack, matrix, *factors, **params)
            with b.when(b.ne(b.load(info, (0,)), 0)):
                for out in factors if fails else ():
                    with nest(b, out.shape) as index:
                        out.store(index, np.nan)
    return rule


def fill_with_identities(b: Any, outputs: Sequence) -> None:
    for out in outputs:
        with nest(b, out.shape) as index:
            b.store(out, index, b.select(b.eq(*index[-2:]), b.const(1, out.dtype), 0))


def store_transposed(b: Any, matrix: Any, out: Any) -> None:
    with nest(b, out.shape) as (i, j):
        out.store((i, j), b.load(matrix, (j, i)))


# ── Examples ─────────────────────────────────────────────────────────────────────────────────

def nonsingular(*shape: int, dtype: Any = np.float64) -> np.ndarray:
    """Unsymmetric matrices with dominant diagonals."""
    x = np.cos(1.3 * np.arange(np.prod(shape, dtype=int)) ** 1.1).reshape(shape)
    return (x + 3 * np.eye(shape[-2], shape[-1]) * (1 + np.arange(shape[-1]) / 4)).astype(dtype)


def symmetric(*shape: int, dtype: Any = np.float64) -> np.ndarray:
    """Symmetric positive definite matrices with well separated eigenvalues."""
    x = nonsingular(*shape)
    return ((x + x.swapaxes(-1, -2)) / 2 + np.diag(2.0 + 1.7 * np.arange(shape[-1]))).astype(dtype)


def examples_of_matrices(names: str, cases: Sequence, singles: Sequence) -> list[Example]:
    """Rows of `table`, matrices first: in both precisions, and some in float32 alone."""
    single = [tuple(x.astype(np.float32) if isinstance(x, np.ndarray) else x for x in row)
              for row in (*cases, *singles)]
    return examples.table(names, *cases, *single)()


# ── cholesky ─────────────────────────────────────────────────────────────────────────────────

def _cholesky_tangent(t: Array, outs: Sequence[Array]) -> list[Array]:
    """Murray, *Differentiation of the Cholesky decomposition* (2016), equation 8."""
    [factor] = outs
    half = triangular_solve(factor, t, left_side=False, lower=True, transpose_a=True,
                            conjugate_a=True)
    inside = triangular_solve(factor, half, left_side=True, lower=True)
    halved: Any = inside / (identity_like(inside) + 1)  # the diagonal counts half
    return [matmul(factor, lower_part(halved))]


def _cholesky_library(b: Any, outputs: Sequence, operands: Sequence) -> None:
    """LAPACK is column-major: its upper factor is our lower one."""
    [x], [out] = operands, outputs
    n = out.shape[-1]
    if 0 in out.shape:
        return
    with each_matrix(b, out.shape) as place:
        info = b.temp((1,), np.int64)
        with b.loop(n) as i, b.loop(n, vectorize="parallel") as j:
            value = b.load(x, (*place, i, j))
            b.store(out, (*place, i, j), b.select(b.le(b.index(j), i), value, 0))
        b.store(info, (0,), 0)
        with b.threads_of_ours(n > 64):
            b.call(f"{LAPACK[x.dtype]}potrf", ord("U"), n, address(b, out, place), n, info)
        with b.when(b.ne(b.load(info, (0,)), 0)), b.loop(n) as i, b.loop(b.add(b.index(i), 1)) as j:
            b.store(out, (*place, i, j), np.nan)


cholesky_p = factorization(
    "cholesky", multiple_results=False, impl=lambda x: [np.tril(by_lapack("cholesky_lo", x))],
    square=True,
    jvp=factored(_cholesky_tangent),
    library=_cholesky_library,
    examples=lambda: examples_of_matrices(
        "", [(symmetric(3, 3),), (symmetric(2, 3, 3),), (symmetric(1, 1),)],
        [(symmetric(0, 0),), (symmetric(5, 5),), (-symmetric(3, 3),),
         (symmetric(70, 70) + 70 * np.eye(70),)]))


def cholesky(x: Any, *, symmetrize_input: bool = True) -> Array:
    """The lower triangular matrix L with positive diagonal for which ``x = L Lᴴ``.

    Args:
      x: symmetric or Hermitian, positive definite matrices; where one is not, L is nan.
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
    return (x + adjoint(x)) / 2


# ── The family of systems of equations ───────────────────────────────────────────────────────

def equations(name: str, *, applied: Callable[..., Array], **slots: Any) -> Primitive:
    """A primitive that gives the x for which ``op(a) x = b``, or ``x op(a) = b``.

    Args:
      applied: ``(a, x, **params)`` to the left side, linear in both.
      slots: as in `Primitive`: meaning, transpose, lowering, examples.
    """
    def abstract_eval(a: ShapedArray, b: ShapedArray, *, left_side: bool = True, **_: Any) -> Avals:
        check_same_dtypes(name, a, b)
        check_matrix(name, a)
        if a.shape[-1] != a.shape[-2]:
            raise ValueError(f"The first input to {name} must be a square matrix. "
                             f"Got shape {a.shape}.")
        if a.shape[:-2] != b.shape[:-2] or a.shape[-1] != b.shape[-2 if left_side else -1]:
            raise ValueError(f"Incompatible shapes for arguments to {name}: "
                             f"{a.shape} and {b.shape}.")
        return [b.update(weak_type=a.weak_type and b.weak_type)]

    def jvp(primals: list, tangents: list, **params: Any) -> Outs:
        """``op(a) dx = db - op(da) x`` (Giles 2008, sections 2.2.2, 2.3.1)."""
        a_dot, b_dot = tangents
        x = p.bind(*primals, **params)
        change = None if isinstance(a_dot, Zero) else -applied(a_dot, x, **params)
        return [x], [p.bind(primals[0], add_cotangents(b_dot, change), **params)]

    p = Primitive(name, abstract_eval=abstract_eval, jvp=jvp, batch=_batch_of_equations,
                  sharding=layout("stacked"), may_produce_nan=True, **slots)
    return p


@ForPrimitive
def _batch_of_equations(p: Primitive, axis: Axis, args: list, dims: list, **params: Any) -> Outs:
    if dims[0] is not None:
        return batch_in_front().rule(p, axis, args, dims, **params)
    # One matrix for the whole batch: the right sides become columns of one system.
    place = args[1].ndim - (1 if params.get("left_side", True) else 2)
    rhs = move_axis(args[1], dims[1], place)
    return [reshape(p.bind(args[0], merged(rhs, place - 1), **params), rhs.shape)], [place]


# ── triangular_solve ─────────────────────────────────────────────────────────────────────────

def _solve_impl(a: np.ndarray, b: np.ndarray, *, left_side: bool, lower: bool, transpose_a: bool,
                conjugate_a: bool, unit_diagonal: bool) -> list[np.ndarray]:
    """By substitution, one row of the solution after the other."""
    a = a.conj() if conjugate_a else a
    a = a if transpose_a != left_side else a.swapaxes(-1, -2)  # now x op(a) = b has rows of x
    forward = (lower != transpose_a) == left_side
    x = (b if left_side else b.swapaxes(-1, -2)).copy()
    n = x.shape[-2]
    for i in range(n) if forward else reversed(range(n)):
        solved = slice(0, i) if forward else slice(i + 1, n)
        x[..., i, :] -= (a[..., None, i, solved] @ x[..., solved, :])[..., 0, :]
        if not unit_diagonal:
            x[..., i, :] /= a[..., i, i, None]
    return [x if left_side else np.ascontiguousarray(x.swapaxes(-1, -2))]


def _applied(a: Array, x: Array, *, left_side: bool, lower: bool, transpose_a: bool,
             conjugate_a: bool, unit_diagonal: bool) -> Array:
    """``op(a) x``, or ``x op(a)``, for the triangle that is read."""
    offset = 1 if unit_diagonal else 0
    a = lower_part(a, -offset) if lower else upper_part(a, offset)
    a = algebra.conj(a) if conjugate_a else a
    a = matrix_transpose(a) if transpose_a else a
    return matmul(a, x) if left_side else matmul(x, a)


_substitution = families.kernel("triangular_solve")


def _solve_library(b: Any, outputs: Sequence, operands: Sequence, **params: Any) -> None:
    """BLAS is column-major: it gets the other triangle and the other side."""
    [a, rhs], [x] = operands, outputs
    if a.shape[-1] <= SMALL or 0 in x.shape:
        return _substitution(b, outputs, operands, **params)
    b.materialize(b.value(rhs), into=x)
    letters = [letter[params[name]] for letter, name in (
        ("LR", "left_side"), ("LU", "lower"), ("NT", "transpose_a"), ("NU", "unit_diagonal"))]
    n, (rows, columns) = a.shape[-1], x.shape[-2:]
    with each_matrix(b, x.shape) as place, b.threads_of_ours(n * rows > 64**2):
        b.call(f"{LAPACK[x.dtype]}trsm", *map(ord, letters), columns, rows,
               b.const(1, x.dtype), address(b, a, place), n, address(b, x, place), columns)


def _solve_examples() -> list[Example]:
    names = "left_side lower transpose_a conjugate_a unit_diagonal"

    def case(a: np.ndarray, b: np.ndarray, flags: str = "", dtype: Any = np.float64) -> tuple:
        return a.astype(dtype), b.astype(dtype), *(name in flags.split() for name in names.split())
    a, single = nonsingular(3, 3), np.float32
    sides = [(nonsingular(2, 3), ""), (nonsingular(3, 2), "left_side"),
             (nonsingular(3, 1), "left_side")]
    return examples.table(
        names, *(case(a, b, f"{side} {flags}") for b, side in sides for flags in (
            "", "lower", "transpose_a", "lower transpose_a", "lower unit_diagonal")),
        case(a, nonsingular(3, 2), "left_side lower", single),
        case(a, nonsingular(2, 3), "", single),
        case(nonsingular(2, 3, 3), nonsingular(2, 3, 4), "left_side"),
        case(nonsingular(2, 3, 3), nonsingular(2, 4, 3), "lower transpose_a"),
        case(np.zeros((0, 0)), np.zeros((0, 2)), "left_side", single),
        case(a, np.zeros((3, 0)), "left_side lower", single))()


triangular_solve_p = equations(
    "triangular_solve", impl=_solve_impl,
    applied=_applied,
    transpose=transposed(None, lambda ct, a, b, transpose_a, **params: triangular_solve_p.bind(
        a, ct, transpose_a=not transpose_a, **params)),
    library=_solve_library,
    complex_loop=_substitution,
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
    dtype = a.dtype
    if dtype == b.dtype and is_narrow(dtype):
        a, b = (convert.convert_element_type(x, np.float32) for x in (a, b))
    is_vector = b.ndim == a.ndim - 1
    place = b.ndim if left_side else max(b.ndim - 1, 0)
    x = triangular_solve_p.bind(
        a, expand_dims(b, (place,)) if is_vector else b, left_side=left_side, lower=lower,
        transpose_a=transpose_a, unit_diagonal=unit_diagonal,
        conjugate_a=conjugate_a and algebra.is_complex(a))
    x = squeeze(x, (place,)) if is_vector else x
    return x if x.dtype == dtype else convert.convert_element_type(x, dtype)
