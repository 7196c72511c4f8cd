"""Reductions: many elements to one, along some axes; and the same with every step kept.

Stands on `families` and `elementwise`.  Chapter 23, *An array is a function of an index*.
In JAX: `jax/_src/lax/lax.py`, `jax/_src/lax/control_flow/loops.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core import (Array, Axis, Example, Primitive, ShapedArray, Zero, dtype_name)
from minijax.primitives import summation
from minijax.primitives.choice import eq
from minijax.primitives.convert import converted
from minijax.primitives.elementwise import complex_extremum, div, mul, mul_p, with_ordered_zeros
from minijax.primitives.families import (ANYTHING, BITS, NOT_LINEAR, NUMBER,
                                         SHORT_FLOATS, check_dtypes, in_numpy, linearly,
                                         per_argument, reshaped, spread, transposed)
from minijax.primitives.shape import above, without
from minijax.primitives.slicing import concatenate_p, slice_p

Axes = tuple[int, ...]
_ARITHMETIC = ("reduce_sum", "reduce_prod", "cumsum", "cumprod", "cummax", "cummin")


# ── The family ───────────────────────────────────────────────────────────────────────────────

def check_axes(x: ShapedArray, axes: Axes) -> None:
    """Refuse axes that `x` does not have, or has once.

    Raises:
      ValueError: naming the axes.
    """
    if len(axes) != len(set(axes)):
        raise ValueError(f"duplicate value in 'axes' of reduction: {axes}")
    if not all(0 <= d < x.ndim for d in axes):
        raise ValueError(f"reduction axes {axes} contains out-of-bounds indices for "
                         f"{x.str_long()}.")


def check_reducible(name: str, x: ShapedArray, accepts: tuple) -> None:
    if accepts == BITS and not any(dtypes.issubdtype(x.dtype, kind) for kind in BITS):
        raise TypeError("logical reduction requires operand dtype bool or int, got "
                        f"{dtype_name(x.dtype)}.")
    if accepts == NUMBER and not dtypes.issubdtype(x.dtype, np.number):
        raise TypeError(f"{name} does not accept dtype {dtype_name(x.dtype)}. "
                        "Accepted dtypes are subtypes of number.")
    check_dtypes(name, [x], [accepts])


def keeping(index: Sequence[Any], axes: Axes, inner: Sequence[Any]) -> tuple:
    """An index of the operand, from one of the result and one of the reduced axes."""
    outer, reduced = iter(index), dict(zip(axes, inner, strict=True))
    rank = len(index) + len(axes)
    return tuple(reduced[d] if d in reduced else next(outer) for d in range(rank))


def widened(s: Any, x: Any) -> Any:
    """A 16-bit float as float32, in which it is accumulated."""
    return s.convert(x, np.float32) if x.dtype in SHORT_FLOATS else x


def reduction(name: str, op: str, *, impl: Callable[..., Any], accepts: tuple = NUMBER,
              transpose: Any = NOT_LINEAR, examples: Callable[[], list[Example]]) -> Primitive:
    """A primitive that joins all elements along `axes` by one associative operation.

    Args:
      name: as a jaxpr prints it.
      op: the scalar operation.
      impl: a NumPy function of an array and axes.
    """
    def abstract_eval(x: ShapedArray, *, axes: Axes) -> list[ShapedArray]:
        check_reducible(name, x, accepts)
        check_axes(x, axes)
        weak = x.weak_type and accepts is not BITS
        return [x.update(shape=without(x.shape, axes), weak_type=weak)]

    def element(s: Any, index: tuple, x: Any, axes: Axes) -> Any:
        total = s.accumulate(op, None, tuple(x.shape[d] for d in axes),
                             lambda *inner: widened(s, x(keeping(index, axes, inner))))
        return s.convert(total, x.dtype)

    p = Primitive(name, impl=in_numpy(lambda x, axes: impl(x, axes)),
                  abstract_eval=abstract_eval, transpose=transpose, element=element,
                  examples=examples)
    p.batch = batch_reduction(p)
    return p


def batch_reduction(p: Primitive) -> Callable[..., tuple[list, list]]:
    def batch(axis: Axis, args: list, dims: list, axes: Axes, **params: Any) -> tuple[list, list]:
        [x], [dim] = args, dims
        axes = above(axes, dim)
        return [p.bind(x, axes=axes, **params)], [dim - sum(d < dim for d in axes)]
    return batch


def reducible_examples(accepts: tuple, params: Callable[[int], list[dict]],
              smooth: bool = True) -> Callable[[], list[Example]]:
    """Arrays of rank up to three; `params` lists the parameters that a rank allows."""
    def examples() -> list[Example]:
        x = np.array([[[3, 1, -2], [.5, 2, 7]], [[4, -5, .25], [6, -1, 1.5]]], np.float32)
        arrays: list[Any] = []
        if np.floating in accepts:
            arrays += [x, x[0], x[0, 0], np.array([2.5], np.float32),
                       np.array([[1, np.nan], [np.inf, 3]], np.float32), x[0].astype(np.float16),
                       x[0].astype(dtypes.bfloat16)]
            arrays += [x[0].astype(np.float64)] * smooth
        if np.integer in accepts:
            arrays += [(4 * x).astype(np.int32), np.array([[100, 100], [-128, 3]], np.int8),
                       np.array([200, 100], np.uint8)]
        if np.bool_ in accepts:
            arrays += [x > 1]
        return [Example((a,), p) for a in arrays for p in params(a.ndim)]
    return examples


def axes_of(rank: int) -> list[dict]:
    return [{"axes": axes} for axes in
            {(0,), (rank - 1,), tuple(range(rank)), (), tuple(range(0, rank, 2))}]


# ── Sum and product ──────────────────────────────────────────────────────────────────────────

def _sum_transpose(ct: Array, x: Any, axes: Axes) -> Array:
    return spread(ct, without(range(x.aval.ndim), axes), x.aval.shape)


reduce_sum_p = reduction(
    "reduce_sum", "add",
    impl=summation.total,
    transpose=transposed(_sum_transpose),
    examples=reducible_examples(NUMBER, axes_of))
reduce_sum_p.jvp = linearly(reduce_sum_p)


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


reduce_prod_p = reduction(
    "reduce_prod", "mul",
    impl=lambda x, axes: np.prod(x, axes, dtype=x.dtype),
    examples=reducible_examples(NUMBER, axes_of))


Dual = tuple[Array, Array]  # a value and its tangent


def combined(p: Primitive, x: Dual, y: Dual) -> Dual:
    """A binary operation on values with tangents."""
    [out], [tangent] = p.rule("jvp")([x[0], y[0]], [x[1], y[1]])
    return out, tangent


def part(x: Array, start: int, stop: int, axis: int = 0) -> Array:
    starts, stops = [0] * x.ndim, list(x.shape)
    starts[axis], stops[axis] = start, stop
    return slice_p.bind(x, start_indices=tuple(starts), limit_indices=tuple(stops), strides=None)


def _prod_jvp(primals: list, tangents: list, axes: Axes) -> tuple[list, list]:
    [x], [t] = primals, tangents
    out = reduce_prod_p.bind(x, axes=axes)
    if isinstance(t, Zero) or not x.size:
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
        x = low if n % 2 == 0 else (joined(low[0], rest[0], axis), joined(low[1], rest[1], axis))
    shape = without(x[0].shape, (axis,))
    return reshaped(x[0], shape), reshaped(x[1], shape)


def joined(x: Array, y: Array, axis: int) -> Array:
    return concatenate_p.bind(x, y, dimension=axis)


reduce_prod_p.jvp = _prod_jvp


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
    if dtypes.issubdtype(dtype, np.bool_):
        return np.bool_(end == "max")
    if dtypes.issubdtype(dtype, np.integer):
        return dtype.type(getattr(dtypes.iinfo(dtype), end))
    return dtype.type(infinity)


def _extremum_jvp(p: Primitive) -> Callable[..., tuple[list, list]]:
    """The mean of the tangents at the places where the extremum is."""
    def tangent(t: Array, out: Array, x: Array, axes: Axes) -> Array:
        kept = tuple(1 if d in axes else n for d, n in enumerate(x.shape))
        places = converted(eq(x, reshaped(out, kept)), t.dtype, False)
        count = reduce_sum_p.bind(places, axes=axes)
        return div(reduce_sum_p.bind(mul(t, places), axes=axes), count)
    return per_argument(p, tangent)


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


reduce_max_p = reduction(
    "reduce_max", "max", accepts=ANYTHING,
    impl=lambda x, axes: _extremum_of("max", x, axes),
    examples=reducible_examples(ANYTHING, axes_of))
reduce_max_p.jvp = _extremum_jvp(reduce_max_p)


def reduce_max(operand: Any, axes: Sequence[int]) -> Any:
    """The maximum along axes; nan where there is one; of nothing, the least value.

    >>> import numpy as np
    >>> reduce_max(np.array([2., 3.]), (0,))
    Array(3., dtype=float32)
    """
    return reduce_max_p.bind(operand, axes=tuple(axes))


reduce_min_p = reduction(
    "reduce_min", "min", accepts=ANYTHING,
    impl=lambda x, axes: _extremum_of("min", x, axes),
    examples=reducible_examples(ANYTHING, axes_of))
reduce_min_p.jvp = _extremum_jvp(reduce_min_p)


def reduce_min(operand: Any, axes: Sequence[int]) -> Any:
    """The minimum along axes; nan where there is one; of nothing, the greatest value.

    >>> import numpy as np
    >>> reduce_min(np.array([2., 3.]), (0,))
    Array(2., dtype=float32)
    """
    return reduce_min_p.bind(operand, axes=tuple(axes))


# ── Logic ────────────────────────────────────────────────────────────────────────────────────

reduce_and_p = reduction(
    "reduce_and", "and", accepts=BITS,
    impl=lambda x, axes: np.bitwise_and.reduce(x, axes),
    examples=reducible_examples(BITS, axes_of))
reduce_and_p.jvp = per_argument(reduce_and_p, None)


def reduce_and(operand: Any, axes: Sequence[int]) -> Any:
    """Whether all hold along axes; bit by bit for integers.

    >>> import numpy as np
    >>> reduce_and(np.array([True, False]), (0,))
    Array(False, dtype=bool)
    """
    return reduce_and_p.bind(operand, axes=tuple(axes))


reduce_or_p = reduction(
    "reduce_or", "or", accepts=BITS,
    impl=lambda x, axes: np.bitwise_or.reduce(x, axes),
    examples=reducible_examples(BITS, axes_of))
reduce_or_p.jvp = per_argument(reduce_or_p, None)


def reduce_or(operand: Any, axes: Sequence[int]) -> Any:
    """Whether any holds along axes; bit by bit for integers.

    >>> import numpy as np
    >>> reduce_or(np.array([True, False]), (0,))
    Array(True, dtype=bool)
    """
    return reduce_or_p.bind(operand, axes=tuple(axes))


reduce_xor_p = reduction(
    "reduce_xor", "xor", accepts=BITS,
    impl=lambda x, axes: np.bitwise_xor.reduce(x, axes),
    examples=reducible_examples(BITS, axes_of))
reduce_xor_p.jvp = per_argument(reduce_xor_p, None)


def reduce_xor(operand: Any, axes: Sequence[int]) -> Any:
    """Whether an odd number holds along axes; bit by bit for integers.

    >>> import numpy as np
    >>> reduce_xor(np.array([True, True]), (0,))
    Array(False, dtype=bool)
    """
    return reduce_xor_p.bind(operand, axes=tuple(axes))
