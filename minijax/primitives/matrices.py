"""What factorisations share: checks, products, transposes and triangles of stacks of matrices.

Stands on `contract`, `choice`, `shape`.  Chapter 24, *Loops and Numba*.
In JAX: helpers of `jax/_src/lax/linalg.py`.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core import (Array, Example, ForPrimitive, Primitive, ShapedArray, Zero, as_value,
                          cannot, dtype_name)
from minijax.primitives.algebra import add
from minijax.primitives.choice import ge, select
from minijax.primitives.complex_numbers import conj
from minijax.primitives.contract import dot_general
from minijax.primitives.emitted import batch_in_front, filled, spread
from minijax.primitives.examples import Examples
from minijax.primitives.shape import broadcasted_iota, transpose
from minijax.primitives.slots import nest

LAPACK_DTYPES = ("float32", "float64", "complex64", "complex128")


# ── Types ────────────────────────────────────────────────────────────────────────────────────

def check_matrix(name: str, x: ShapedArray, square: bool = False) -> None:
    """Refuse what is no stack of matrices of a dtype that LAPACK knows.

    Raises:
      TypeError: for other dtypes and ranks below two.
      NotImplementedError: for 16-bit floats.
      ValueError: for matrices that have to be square and are not.
    """
    if not dtypes.issubdtype(x.dtype, np.inexact):
        raise TypeError(f"{name} does not accept dtype {dtype_name(x.dtype)} at position 0. "
                        "Accepted dtypes at position 0 are subtypes of floating, "
                        "complexfloating.")
    if dtype_name(x.dtype) not in LAPACK_DTYPES:
        raise NotImplementedError(f"Unsupported dtype {dtype_name(x.dtype)}.")
    if x.ndim < 2:
        raise TypeError(f"Input 0 to {name} must have rank at least 2, but got shape={x.shape}")
    if square and x.shape[-1] != x.shape[-2]:
        raise ValueError(f"Argument to {name} must have shape [..., n, n], got shape {x.shape}")


# ── Algebra ──────────────────────────────────────────────────────────────────────────────────

def flipped(x: Array) -> Array:
    """Every matrix transposed."""
    return transpose(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def adjoint(x: Array) -> Array:
    """Every matrix transposed, and conjugated where it is complex."""
    turned = flipped(x)
    return conj(turned) if dtypes.issubdtype(x.dtype, np.complexfloating) else turned


def product(x: Array, y: Array) -> Array:
    """The products of two stacks of matrices."""
    batch = tuple(range(x.ndim - 2))
    return dot_general(x, y, (((x.ndim - 1,), (x.ndim - 2,)), (batch, batch)))


def lower_part(x: Array, offset: int = 0) -> Array:
    """Every matrix with zeros above the diagonal that lies `offset` to the right."""
    return masked(x, lambda rows, columns: ge(add(rows, filled(offset, rows)), columns))


def upper_part(x: Array, offset: int = 0) -> Array:
    """Every matrix with zeros below the diagonal that lies `offset` to the right."""
    return masked(x, lambda rows, columns: ge(columns, add(rows, filled(offset, rows))))


def masked(x: Array, test: Callable[[Array, Array], Array]) -> Array:
    """Every matrix with zeros where the test of row and column says no."""
    rows, columns = (broadcasted_iota(np.int32, x.shape[-2:], d) for d in (0, 1))
    mask = spread(test(rows, columns), (x.ndim - 2, x.ndim - 1), x.shape)
    return select(mask, x, filled(0, x))


def identity_like(x: Array) -> Array:
    """For each matrix the identity of its dtype and shape."""
    one = as_value(np.eye(x.shape[-2], x.shape[-1], dtype=x.dtype))
    return spread(one, (x.ndim - 2, x.ndim - 1), x.shape)


# ── The family ───────────────────────────────────────────────────────────────────────────────

def factorization(name: str, *, impl: Callable[..., list], types: Callable[..., list],
                  square: bool = False, jvp: Any, examples: Examples,
                  multiple_results: bool = True, **lowering: Any) -> Primitive:
    """A primitive that takes matrices, or stacks of them, to their factors.

    Args:
      types: ``(aval, **params)`` to the types of the factors.
      square: whether rows and columns must be as many.
      lowering: its `loop` or its `library`.
    """
    def abstract_eval(x: ShapedArray, **params: Any) -> list[ShapedArray]:
        check_matrix(name, x, square)
        return types(x, **params)

    return Primitive(
        name, multiple_results=multiple_results, impl=impl, abstract_eval=abstract_eval, jvp=jvp,
        transpose=cannot("the factors are not linear in the matrix."), batch=batch_in_front(),
        examples=examples, **lowering)


def factored(slopes: Callable[..., Sequence[Array | Zero]]) -> ForPrimitive:
    """The derivative of a factorisation: ``slopes(tangent, factors, **params)``."""
    @ForPrimitive
    def jvp(p: Primitive, primals: list, tangents: list, **params: Any) -> tuple[list, list]:
        factors = p.bind_list(*primals, **params)
        return factors, list(slopes(tangents[0], factors, **params))
    return jvp


def by_lapack(name: str, *arrays: np.ndarray) -> Any:
    """A function behind `numpy.linalg`, for stacks: nan where there is no result.

    The functions in front of them raise, and compute float32 in float64, where LAPACK may choose
    other signs.
    """
    return getattr(importlib.import_module("numpy.linalg._umath_linalg"), name)(*arrays)


# ── Calls of LAPACK ──────────────────────────────────────────────────────────────────────────

LAPACK = {np.dtype(np.float32): "s", np.dtype(np.float64): "d"}


def address(b: Any, buffer: Any, index: Sequence[Any]) -> Any:
    """Where an external finds the element of a buffer at the leading indices."""
    view = b.stored(buffer)
    for i in index:
        view = b.row(view, i)
    return b.address(view)


@contextlib.contextmanager
def each_turned(b: Any, x: Any, outputs: Sequence) -> Iterator[tuple]:
    """Visit the matrices of a stack, stored column by column, as LAPACK has them.

    Gives the place in the stack, the copy, and where LAPACK says whether it failed: then the
    outputs are nan.
    """
    matrix, info = b.temp((x.shape[-1], x.shape[-2]), x.dtype), b.temp((1,), np.int64)
    with nest(b, x.shape[:-2]) as place:
        with nest(b, matrix.shape) as (j, i):
            b.store(matrix, (j, i), b.load(x, (*place, i, j)))
        b.store(info, (0,), 0)
        yield place, matrix, info
        if outputs:
            with b.when(b.ne(b.load(info, (0,)), 0)):
                for out in outputs:
                    with nest(b, out.shape[len(place):]) as index:
                        b.store(out, (*place, *index), np.nan)


def turn_back(b: Any, matrix: Any, out: Any, place: tuple) -> None:
    with nest(b, out.shape[-2:]) as (i, j):
        b.store(out, (*place, i, j), b.load(matrix, (j, i)))


def fill_with_identities(b: Any, outputs: Sequence) -> None:
    for out in outputs:
        with nest(b, out.shape) as index:
            b.store(out, index, b.select(b.eq(*index[-2:]), b.const(1, out.dtype), 0))


# ── Examples ─────────────────────────────────────────────────────────────────────────────────

def spread_out(*shape: int, dtype: Any = np.float64) -> np.ndarray:
    """Matrices without symmetries whose diagonals keep them far from singular."""
    x = np.cos(1.3 * np.arange(np.prod(shape, dtype=int)) ** 1.1).reshape(shape)
    return (x + 3 * np.eye(shape[-2], shape[-1]) * (1 + np.arange(shape[-1]) / 4)).astype(dtype)


def symmetric(*shape: int, dtype: Any = np.float64) -> np.ndarray:
    """Symmetric positive definite matrices whose eigenvalues lie apart."""
    x = spread_out(*shape)
    return ((x + x.swapaxes(-1, -2)) / 2 + np.diag(2.0 + 1.7 * np.arange(shape[-1]))).astype(dtype)


def examples_of_matrices(cases: Sequence, singles: Sequence = ()) -> list[Example]:
    """Of pairs of a matrix and parameters: in both precisions, and some in float32 alone."""
    single = [(x.astype(np.float32), params) for x, params in (*cases, *singles)]
    return [Example((x,), params) for x, params in (*cases, *single)]
