"""Reductions: many elements to one, along some axes.

Stands on `emitted`, where the sum is, and on `algebra`.  Chapter 23, *An array is a function of
an index*.  In JAX: `jax/_src/lax/lax.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core import Array, Primitive, Zero
from minijax.primitives.algebra import (complex_extremum, div, mul, mul_p, with_ordered_zeros)
from minijax.primitives.axes import Axes, without
from minijax.primitives.choice import eq
from minijax.primitives.convert import converted
from minijax.primitives.emitted import reduce_sum_p, reduction, reshaped
from minijax.primitives.families import constant_in_all, per_argument
from minijax.primitives.slicing import concatenate_p, part
from minijax.primitives.slots import ANYTHING, BITS


# ── Sum and product ──────────────────────────────────────────────────────────────────────────

def reduce_sum(operand: Any, axes: Sequence[int], *, out_sharding: Any = None) -> Any:
    """The sum along axes.

    Args:
      operand: an array of numbers.
      axes: which axes, counted from the front.

    >>> import numpy as np
    >>> reduce_sum(np.ones((2, 3)), (1,))
    Array([3., 3.], dtype=float32)
    """
    return reduce_sum_p.bind(operand, axes=tuple(axes))


Dual = tuple[Array, Array]  # a value and its tangent


def combined(p: Primitive, x: Dual, y: Dual) -> Dual:
    """A binary operation on values with tangents."""
    [out], [tangent] = p.rule("jvp")([x[0], y[0]], [x[1], y[1]])
    return out, tangent


def _prod_jvp(primals: list, tangents: list, axes: Axes) -> tuple[list, list]:
    [x], [t] = primals, tangents
    out = reduce_prod_p.bind(x, axes=axes)
    if not x.size:
        return [out], [Zero(out.aval.to_tangent_aval())]
    for axis in sorted(axes, reverse=True):
        x, t = _folded((x, t), axis)
    return [out], [t]


def _folded(x: Dual, axis: int) -> Dual:
    """The product along an axis with its tangent: one half by the other, until one is left."""
    while (n := x[0].shape[axis]) > 1:
        low, high, rest = ((part(x[0], *ends, axis), part(x[1], *ends, axis))
                           for ends in ((0, n // 2), (n // 2, n - n % 2), (n - n % 2, n)))
        low = combined(mul_p, low, high)
        x = low if n % 2 == 0 else tuple(
            concatenate_p.bind(*ends, dimension=axis) for ends in zip(low, rest, strict=True))
    shape = without(x[0].shape, (axis,))
    return reshaped(x[0], shape), reshaped(x[1], shape)


reduce_prod_p = reduction(
    "reduce_prod", "mul",
    impl=lambda x, axes: np.prod(x, axes, dtype=x.dtype),
    jvp=_prod_jvp)


def reduce_prod(operand: Any, axes: Sequence[int]) -> Any:
    """The product along axes.

    >>> import numpy as np
    >>> reduce_prod(np.array([2., 3.]), (0,))
    Array(6., dtype=float32)
    """
    return reduce_prod_p.bind(operand, axes=tuple(axes))


# ── The largest, the smallest ────────────────────────────────────────────────────────────────

def least_value(dtype: Any) -> Any:
    """What no element of the dtype is below: -inf, the least integer, or False."""
    return _limit(dtype, -np.inf, "min")


def greatest_value(dtype: Any) -> Any:
    """What no element of the dtype is above: inf, the greatest integer, or True."""
    return _limit(dtype, np.inf, "max")


def _limit(dtype: Any, infinity: float, end: str) -> Any:
    if dtypes.issubdtype(dtype, np.integer):
        return dtype.type(getattr(dtypes.iinfo(dtype), end))
    return dtype.type(infinity > 0 if dtype.kind == "b" else infinity)


def _extremum_tangent(t: Array, out: Array, x: Array, axes: Axes) -> Array:
    """The mean of the tangents at the places where the extremum is."""
    kept = tuple(1 if d in axes else n for d, n in enumerate(x.shape))
    places = converted(eq(x, reshaped(out, kept)), t.dtype, False)
    count = reduce_sum_p.bind(places, axes=axes)
    return div(reduce_sum_p.bind(mul(t, places), axes=axes), count)


def _extremum_of(op: str, x: np.ndarray, axes: Axes) -> Any:
    ufunc, start = ((np.maximum, least_value) if op == "max" else (np.minimum, greatest_value))
    if x.dtype.kind == "c" and x.size:
        rows = np.moveaxis(x, axes, range(len(axes))).reshape(-1, *without(x.shape, axes))
        rows = np.concatenate([np.full_like(rows[:1], start(x.dtype)), rows])
        while len(rows) > 1:
            rest = rows[len(rows) & ~1:]
            rows = np.concatenate([complex_extremum(op, rows[:-1:2], rows[1::2]), rest])
        return rows[0]
    found = ufunc.reduce(x, axes, initial=start(x.dtype))
    return with_ordered_zeros(op, found, lambda test: np.any(test(x), axes))


reduce_max_p, reduce_min_p = (
    reduction(f"reduce_{op}", op, accepts=ANYTHING, impl=functools.partial(_extremum_of, op),
              jvp=per_argument(_extremum_tangent)) for op in ("max", "min"))


def reduce_max(operand: Any, axes: Sequence[int]) -> Any:
    """The maximum along axes; nan where there is one; of nothing, the least value.

    >>> import numpy as np
    >>> reduce_max(np.array([2., 3.]), (0,))
    Array(3., dtype=float32)
    """
    return reduce_max_p.bind(operand, axes=tuple(axes))


def reduce_min(operand: Any, axes: Sequence[int]) -> Any:
    """The minimum along axes; nan where there is one; of nothing, the greatest value.

    >>> import numpy as np
    >>> reduce_min(np.array([2., 3.]), (0,))
    Array(2., dtype=float32)
    """
    return reduce_min_p.bind(operand, axes=tuple(axes))


# ── Logic ────────────────────────────────────────────────────────────────────────────────────

reduce_and_p, reduce_or_p, reduce_xor_p = (
    reduction(f"reduce_{op}", op, accepts=BITS, impl=ufunc.reduce, jvp=constant_in_all)
    for op, ufunc in (("and", np.bitwise_and), ("or", np.bitwise_or), ("xor", np.bitwise_xor)))


def reduce_and(operand: Any, axes: Sequence[int]) -> Any:
    """Whether all hold along axes; bit by bit for integers.

    >>> import numpy as np
    >>> reduce_and(np.array([True, False]), (0,))
    Array(False, dtype=bool)
    """
    return reduce_and_p.bind(operand, axes=tuple(axes))


def reduce_or(operand: Any, axes: Sequence[int]) -> Any:
    """Whether any holds along axes; bit by bit for integers.

    >>> import numpy as np
    >>> reduce_or(np.array([True, False]), (0,))
    Array(True, dtype=bool)
    """
    return reduce_or_p.bind(operand, axes=tuple(axes))


def reduce_xor(operand: Any, axes: Sequence[int]) -> Any:
    """Whether an odd number holds along axes; bit by bit for integers.

    >>> import numpy as np
    >>> reduce_xor(np.array([True, True]), (0,))
    Array(False, dtype=bool)
    """
    return reduce_xor_p.bind(operand, axes=tuple(axes))
