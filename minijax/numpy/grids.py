"""Index expressions such as `r_[1:4, 7]` and `mgrid[:3, :4]`, and flat indices.

Builds on `joining`, `diagonals`.  Chapter 14, *Out-of-bounds indexing*.
In JAX: `jax/_src/numpy/index_tricks.py`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import config, core, dtypes, lax
from minijax.core import Array, refuse
from minijax.numpy import creation, diagonals, joining, searching, shaping
from minijax.numpy.arguments import (ArrayLike, as_arrays, check_promotion, choose, convert,
                                     indices_within, promote_dtypes, public, result_dtype,
                                     static_value)
from minijax.primitives.axes import replaced

s_, index_exp = np.s_, np.index_exp


def _slice_values(name: str, part: slice) -> Any:
    """The numbers of a slice; an imaginary step is their count, both ends included."""
    start, stop, step = (
        None if x is None else static_value(x, f"slice {end} of jnp.{name}").item()
        for end in ("start", "stop", "step") for x in (getattr(part, end),))
    if isinstance(step, complex):
        return creation.linspace(start or 0, stop, int(abs(step)))
    return creation.arange(start or 0, stop, step or 1)


class _MeshGrid:
    """`mgrid` and `ogrid`: the coordinates of a grid, dense or open."""

    def __init__(self, name: str, sparse: bool) -> None:
        self.name, self.sparse = name, sparse

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return _slice_values(self.name, key)
        rows = [_slice_values(self.name, part) for part in key]
        with config.numpy_dtype_promotion("standard"):  # the user names no dtypes
            rows = promote_dtypes(*rows) if rows else rows
        coordinates = diagonals.meshgrid(*rows, sparse=self.sparse, indexing="ij")
        return coordinates if self.sparse else (
            lax.stack(coordinates) if rows else creation.zeros(0, int))


mgrid, ogrid = _MeshGrid("mgrid", False), _MeshGrid("ogrid", True)


class _Concatenator:
    """`r_` and `c_`: slices, numbers and arrays, concatenated.

    A leading string, the directive, sets up to three numbers: the axis of the concatenation, the
    least rank, and the position of the axes of operands of a lower rank.
    """

    def __init__(self, name: str, *defaults: int) -> None:
        self.name, self.defaults = name, defaults

    def __getitem__(self, key: Any) -> Array:
        first, *rest = items = key if isinstance(key, tuple) and key else [key]
        directive, items = (first, rest) if isinstance(first, str) else (None, items)
        axis, least_rank, position = self._directive_numbers(directive)
        operands = [self._operand(item, least_rank, position) for item in items]
        check_promotion(*operands)
        out = joining.concatenate(operands, axis)
        is_matrix = directive in ("r", "c") and out.ndim == 1
        return lax.expand_dims(out, (directive == "c",)) if is_matrix else out

    def _directive_numbers(self, directive: str | None) -> tuple[int, ...]:
        if directive in (None, "r", "c"):
            return self.defaults
        numbers: list[Any] = [*directive.split(","), *self.defaults[directive.count(",") + 1:]]
        try:
            return tuple(map(int, numbers[:3]))
        except ValueError:
            raise ValueError(f"could not understand directive {directive!r}") from None

    def _operand(self, item: Any, least_rank: int, position: int) -> Any:
        if isinstance(item, str):
            raise ValueError("string directive must be placed at the beginning")
        is_slice = isinstance(item, slice)
        x: Any = _slice_values(self.name, item) if is_slice else creation.asarray(item)
        x, rank = lax.broadcast_to_rank(x, max(x.ndim, least_rank)), 0 if is_slice else x.ndim
        if position == -1 or least_rank <= rank:
            return x
        shift = least_rank - abs(least_rank + position + 1) % least_rank
        axes = range(least_rank)
        return shaping.transpose(x, (*axes[shift:], *axes[:shift]))


r_, c_ = _Concatenator("r_", 0, 1, -1), _Concatenator("c_", -1, 2, 0)


def ix_(*args: ArrayLike) -> tuple[Array, ...]:
    """An open mesh of indices, one axis for each argument.

    >>> [i.shape for i in ix_(np.array([0, 2]), np.array([1, 3, 4]))]
    [(2, 1), (1, 3)]
    """
    indices = []
    for d, x in enumerate(as_arrays("ix", *args)):
        if x.ndim != 1:
            raise ValueError("Arguments to jax.numpy.ix_ must be 1-dimensional, got shape "
                             f"{x.shape}")
        if x.dtype == bool:
            raise NotImplementedError("Boolean arguments to jax.numpy.ix_ are not implemented; "
                                      "take jnp.nonzero(x)[0] of them.")
        x = x if x.size else convert(x, dtypes.default_int_dtype())
        indices.append(lax.broadcast_in_dim(x, replaced((1,) * len(args), d, x.size), (d,)))
    return tuple(indices)


# ── Indices of a matrix ──────────────────────────────────────────────────────────────────────

def tril_indices_from(arr: Any, k: int = 0) -> tuple[Array, Array]:
    """The indices on the k-th diagonal of this matrix, and below.

    >>> [i.tolist() for i in tril_indices_from(np.ones((2, 2)))]
    [[0, 1, 1], [0, 0, 1]]
    """
    return _indices_from(diagonals.tril_indices, arr, k)


def triu_indices_from(arr: Any, k: int = 0) -> tuple[Array, Array]:
    """The indices on the k-th diagonal of this matrix, and above.

    >>> [i.tolist() for i in triu_indices_from(np.ones((2, 2)))]
    [[0, 0, 1], [0, 1, 1]]
    """
    return _indices_from(diagonals.triu_indices, arr, k)


def _indices_from(indices_of: Callable[..., Any], arr: Any, k: int) -> tuple[Array, Array]:
    shape = np.shape(core.stood_for(arr))
    if len(shape) != 2:
        raise ValueError("Only 2-D inputs are accepted")
    return indices_of(shape[0], k=k, m=shape[1])


def diag_indices_from(arr: ArrayLike) -> tuple[Array, ...]:
    """The indices of the diagonal of this array.

    >>> [i.tolist() for i in diag_indices_from(np.ones((2, 2)))]
    [[0, 1], [0, 1]]
    """
    if arr.ndim < 2 or len(set(arr.shape)) != 1:
        raise ValueError("All dimensions of input must be of equal length" if arr.ndim >= 2 else
                         "input array must be at least 2-d")
    return diagonals.diag_indices(arr.shape[0], arr.ndim)


def mask_indices(n: int, mask_func: Callable[[Any, int], Any], k: int = 0, *,
                 size: int | None = None) -> tuple[Array, ...]:
    """The indices of an n × n matrix that are not zero after `mask_func`, such as `triu`.

    >>> [i.tolist() for i in mask_indices(2, diagonals.triu)]
    [[0, 0, 1], [0, 1, 1]]
    """
    ones: Any = creation.ones((n, n), dtypes.default_int_dtype())
    return searching.nonzero(mask_func(ones, k), size=size)


# ── Flat indices ─────────────────────────────────────────────────────────────────────────────

def unravel_index(indices: ArrayLike, shape: Any) -> tuple[Array, ...]:
    """The indices into an array of this shape for flat indices; those out of bounds are clipped.

    >>> [int(i) for i in unravel_index(np.int32(5), (2, 3))]
    [1, 2]
    """
    rank = 1 if isinstance(shape, tuple | list) and not any(map(np.ndim, shape)) else (
        np.ndim(shape))  # its sizes may be traced
    if rank > 1:
        raise ValueError("unravel_index: shape should be a scalar or 1D sequence.")
    sizes, quotient, remainders = shape if rank else (shape,), indices, []
    for size in reversed(sizes):
        remainders.append(quotient % size)
        quotient = quotient // size
    return tuple(choose(quotient > 0, size - 1, choose(quotient + 1 < 0, 0, index))
                 for size, index in zip(sizes, reversed(remainders), strict=True))


def ravel_multi_index(multi_index: Sequence[ArrayLike], dims: Sequence[int], mode: str = "raise",
                      order: str = "C", *, dtype: Any = None) -> Array:
    """The flat indices for indices into an array of the shape `dims`.

    >>> ravel_multi_index((np.array([0, 1]), np.array([2, 0])), (2, 3))
    Array([2, 3], dtype=int32)

    Args:
      mode: for indices out of bounds: "raise" (of concrete ones), "wrap", "clip" or "ignore".
    """
    if len(multi_index) != len(dims):
        raise AssertionError(f"len(multi_index)={len(multi_index)} != len(dims)={len(dims)}")
    refuse((order not in ("C", "F"), f"invalid order={order!r}. Expected 'C' or 'F'"),
           (mode not in ("raise", "wrap", "clip", "ignore"), f"invalid mode={mode!r}. Expected "
            "'raise', 'wrap', 'clip', or 'ignore'."), error=ValueError)
    multi_index = [*map(core.stood_for, multi_index)]
    indices = as_arrays("ravel_multi_index", *multi_index)
    dtype = dtype or (result_dtype(*multi_index)[0] if indices else dtypes.default_int_dtype())
    for each in (*(x.dtype for x in indices), np.dtype(dtype)):
        if dtypes.kind(each) not in "iu":
            raise ValueError(f"dtype={each!r} is not an integer type.")
    sizes = [operator.index(size) for size in dims]
    if math.prod(sizes) - 1 > np.iinfo(dtype).max:
        raise ValueError(f"jnp.ravel_multi_index: dtype={dtype!r} not large enough to hold "
                         f"flattened index for dims={tuple(sizes)}. Use the dtype argument to pass "
                         "a suitable one.")
    result: Any = creation.array(0, dtype)
    pairs, stride = list(zip(indices, sizes, strict=True)), 1
    for x, size in pairs[::-1] if order == "C" else pairs:
        x = indices_within(x, size, mode, "ravel_multi_index", "coordinates")
        result = result + convert(x, result.dtype) * stride
        stride *= size
    return result


public(globals())
