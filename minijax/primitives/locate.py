"""Where the extremum is along an axis.

Stands on `emitted`.  Chapter 23, *An array is a function of an index*.
In JAX: `jax/_src/lax/lax.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core import Primitive, ShapedArray, dtype_name
from minijax.primitives.axes import Axes, keeping, without
from minijax.primitives import emitted, examples, families, slots


def _locator(name: str, op: str, comparison: str, impl: Callable[..., Any]) -> Primitive:
    """A primitive that gives the first place of the extremum, or of the first nan."""
    def abstract_eval(x: ShapedArray, *, axes: Axes, index_dtype: Any) -> list[ShapedArray]:
        [axis] = axes
        if not 0 <= axis < x.ndim:
            raise ValueError(f"Invalid axis {axis} for operand shape {x.shape}")
        if x.shape[axis] < 1:
            raise ValueError("argmin and argmax require non-empty reduced dimension. "
                             f"operand.shape={x.shape} axis={axis}")
        if not dtypes.issubdtype(index_dtype, np.integer):
            raise TypeError("index_dtype must be an integer type, but got "
                            f"{dtype_name(index_dtype)}")
        slots.check_dtypes(comparison, [x, x], [slots.ORDERED, slots.ORDERED])
        return [ShapedArray(without(x.shape, axes), index_dtype)]

    def element(s: Any, index: tuple, x: Any, axes: Axes, index_dtype: Any) -> Any:
        [axis] = axes

        def at(k: Any) -> Any:
            return slots.widened(s, x(keeping(index, axes, [k])))
        in_passes = axis == len(x.shape) - 1 or x.dtype.itemsize == 8
        locate = _place_in_two_passes if in_passes else _place_by_keys
        return s.convert(locate(s, op, x.shape[axis], at), index_dtype)

    return Primitive(
        name,
        impl=slots.in_numpy(lambda x, axes, index_dtype: impl(x, axes[0]).astype(index_dtype)),
        abstract_eval=abstract_eval,
        jvp=families.constant_in_all,
        transpose=slots.NOT_DIFFERENTIABLE,
        batch=emitted.batch_along("axes", removed=True),
        element=element,
        examples=examples.reducible(slots.ORDERED, lambda rank: [
            {"axes": (d,), "index_dtype": np.dtype(np.int32)} for d in range(rank)]))


def _place_in_two_passes(s: Any, op: str, n: int, at: Callable[[Any], Any]) -> Any:
    """Find the extremum, then its first place: both passes run in wide registers."""
    best = s.accumulate(op, None, (n,), at)

    def place(k: Any) -> Any:
        y = at(k)
        found = s.eq(y, best) if y.dtype.kind != "f" else s.or_(s.eq(y, best), s.ne(y, y))
        return s.select(found, s.convert(k, np.int32), s.const(n - 1, np.int32))
    # JAX: counts in 64 bits where an axis needs them.
    return s.accumulate("min", None, (n,), place)


def _place_by_keys(s: Any, op: str, n: int, at: Callable[[Any], Any]) -> Any:
    """One pass over integers that hold the value above and the place below.

    It is a single accumulation, so many columns can be walked row by row.
    """
    def key(k: Any) -> Any:
        place = s.sub(n - 1, k) if op == "max" else k
        value = s.convert(_ordered_bits(s, op, at(k)), np.int64)
        return s.or_(s.shl(value, 32), s.convert(place, np.int64))
    place = s.and_(s.accumulate(op, None, (n,), key), 2**32 - 1)
    return s.sub(n - 1, place) if op == "max" else place


def _ordered_bits(s: Any, op: str, x: Any) -> Any:
    """Signed integers in the order of x, nan beyond the end that is looked for."""
    if x.dtype == np.uint32:
        return s.bitcast(s.xor(x, 1 << 31), np.int32)
    if x.dtype.kind != "f":
        return x
    bits = s.bitcast(s.add(x, 0.), np.int32)  # -0 becomes 0
    limits = np.iinfo(np.int32)
    ordered = s.select(s.lt(bits, 0), s.xor(bits, limits.max), bits)
    return s.select(s.ne(x, x), s.const(limits.max if op == "max" else limits.min, np.int32),
                    ordered)


argmax_p = _locator("argmax", "max", "gt", np.argmax)
argmin_p = _locator("argmin", "min", "lt", np.argmin)


def argmax(operand: Any, axis: int, index_dtype: Any) -> Any:
    """Where the maximum is along an axis: the first place, and that of nan if there is one.

    >>> import numpy as np
    >>> argmax(np.array([1., 3., 3.]), 0, "int32")
    Array(1, dtype=int32)
    """
    dtype = dtypes.check_user_dtype_supported(index_dtype, "argmax")
    return argmax_p.bind(operand, axes=(axis,), index_dtype=dtype)


def argmin(operand: Any, axis: int, index_dtype: Any) -> Any:
    """Where the minimum is along an axis: the first place, and that of nan if there is one.

    >>> import numpy as np
    >>> argmin(np.array([3., 1., 1.]), 0, "int32")
    Array(1, dtype=int32)
    """
    dtype = dtypes.check_user_dtype_supported(index_dtype, "argmin")
    return argmin_p.bind(operand, axes=(axis,), index_dtype=dtype)
