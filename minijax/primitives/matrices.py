"""What factorisations share: checks, products, transposes and triangles of stacks of matrices.

Stands on `contract`, `choice`, `shape`.  Chapter 24, *Loops and Numba*.
In JAX: helpers of `jax/_src/lax/linalg.py`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core import Array, ForPrimitive, Primitive, ShapedArray, Zero, as_value, dtype_name
from minijax.primitives.algebra import add
from minijax.primitives.choice import ge, select
from minijax.primitives.complex_numbers import conj
from minijax.primitives.contract import dot_general
from minijax.primitives.emitted import batch_in_front, filled, spread
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
    rows, columns = _coordinates(x)
    return masked(x, ge(add(rows, filled(offset, rows)), columns))


def upper_part(x: Array, offset: int = 0) -> Array:
    """Every matrix with zeros below the diagonal that lies `offset` to the right."""
    rows, columns = _coordinates(x)
    return masked(x, ge(columns, add(rows, filled(offset, rows))))


def _coordinates(x: Array) -> tuple[Array, Array]:
    rows, columns = (broadcasted_iota(np.int32, x.shape[-2:], d) for d in (0, 1))
    return rows, columns


def masked(x: Array, mask: Array) -> Array:
    """Every matrix with zeros where the mask, one matrix, says no."""
    return select(spread(mask, (x.ndim - 2, x.ndim - 1), x.shape), x, filled(0, x))


def identity_like(x: Array) -> Array:
    """For each matrix the identity of its dtype and shape."""
    one = as_value(np.eye(x.shape[-2], x.shape[-1], dtype=x.dtype))
    return spread(one, (x.ndim - 2, x.ndim - 1), x.shape)


# ── Rules that all share ─────────────────────────────────────────────────────────────────────

batch_leading = batch_in_front()  # a primitive takes stacks: one more axis in front of each


def factored(slopes: Callable[..., Sequence[Array | Zero]]) -> ForPrimitive:
    """The derivative of a factorisation: ``slopes(tangent, outs, **params)``."""
    @ForPrimitive
    def jvp(p: Primitive, primals: list, tangents: list, **params: Any) -> tuple[list, list]:
        outs = p.bind_list(*primals, **params)
        return outs, list(slopes(tangents[0], outs, **params))
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
        view = b.view(view, i)
    return b.address(view)


def fill_with_nan(b: Any, buffer: Any, place: tuple) -> None:
    """Say that the matrix or vector at a place of a stack does not exist."""
    def descend(index: tuple) -> None:
        if len(index) == len(buffer.shape):
            b.store(buffer, index, np.nan)
            return
        with b.loop(buffer.shape[len(index)]) as i:
            descend((*index, i))
    descend(place)


def copy_turned(b: Any, x: Any, place: tuple, matrix: Any) -> None:
    """Store a matrix column by column, as LAPACK has them."""
    columns, rows = matrix.shape
    with b.loop(columns) as j, b.loop(rows) as i:
        b.store(matrix, (j, i), b.load(x, (*place, i, j)))


def copy_back(b: Any, matrix: Any, out: Any, place: tuple) -> None:
    with b.loop(out.shape[-2]) as i, b.loop(out.shape[-1]) as j:
        b.store(out, (*place, i, j), b.load(matrix, (j, i)))


def nan_on_failure(b: Any, info: Any, outputs: Sequence, place: tuple) -> None:
    with b.when(b.ne(b.load(info, (0,)), 0)):
        for out in outputs:
            fill_with_nan(b, out, place)


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
