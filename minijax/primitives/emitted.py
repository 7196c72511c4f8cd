"""What interpreters themselves emit: zeros, sums of cotangents, moved and new batch axes.

Stands on the primitives it names.  Chapter 04.  In JAX: `interpreters/ad.py`, `batching.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core import Array, ArrayImpl, ShapedArray, Zero
from minijax.primitives.elementwise import add_any_p
from minijax.primitives.shape import broadcast_in_dim_p, squeeze_p, transpose_p
from minijax.primitives.slicing import concatenate_p, slice_p


def zeros(aval: ShapedArray) -> Array:
    """An array of zeros of the given type, as a program makes it: one scalar, broadcast."""
    if aval.dtype == dtypes.float0:
        return ArrayImpl(np.zeros(aval.shape, bool), aval)
    scalar = ArrayImpl(np.zeros((), aval.dtype), aval.update(shape=()), is_literal=True)
    if not aval.shape:
        return scalar
    return broadcast_in_dim_p.bind(scalar, shape=aval.shape, broadcast_dimensions=())


def instantiate(x: Any) -> Array:
    """A tangent or cotangent as an array, even if it is a symbolic zero."""
    return zeros(x.aval) if isinstance(x, Zero) else x


def add_cotangents(x: Any, y: Any) -> Any:
    """The sum of two cotangents of one value, either of which may be absent or zero."""
    if x is None or isinstance(x, Zero):
        return y
    if y is None or isinstance(y, Zero):
        return x
    return add_any_p.bind(x, y)


def move_axis(x: Array, source: int, destination: int) -> Array:
    source, destination = source % x.ndim, destination % x.ndim
    if source == destination:
        return x
    order = [d for d in range(x.ndim) if d != source]
    order.insert(destination, source)
    return transpose_p.bind(x, permutation=tuple(order))


def broadcast_batch(x: Array, dim: int, size: int) -> Array:
    """`x`, repeated along a new axis at `dim`."""
    shape = (*x.shape[:dim], size, *x.shape[dim:])
    kept = tuple(d for d in range(len(shape)) if d != dim)
    return broadcast_in_dim_p.bind(x, shape=shape, broadcast_dimensions=kept)


def index_leading(x: Array, i: int) -> Array:
    """Row `i` of `x`."""
    row = slice_p.bind(x, start_indices=(i, *[0] * (x.ndim - 1)),
                       limit_indices=(i + 1, *x.shape[1:]), strides=None)
    return squeeze_p.bind(row, dimensions=(0,))


def stack(rows: Sequence[Array]) -> Array:
    """Arrays of one shape along a new leading axis."""
    return concatenate_p.bind(*[broadcast_batch(x, 0, 1) for x in rows], dimension=0)
