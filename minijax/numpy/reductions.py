"""Reductions: sum, mean, var, max, argmax, any, …, and running sums.

Stands on `arithmetic`, `selection`.  Chapter 20, *Precision, and where NumPy differs*.
In JAX: `jax/_src/numpy/reductions.py`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import dtypes, lax
from minijax.core import Array
from minijax.numpy.arguments import (ArrayLike, Axes, as_array, broadcast_to_shape,
                                     canonical_axes, canonical_axis, check_arraylike, convert,
                                     promote_dtypes_inexact, refuse_out, static_axes)
from minijax.numpy.selection import choose

Reduce = Callable[[Any, tuple[int, ...]], Any]


# ── What all reductions share ────────────────────────────────────────────────────────────────

def _kept(x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """The reduced axes back, with size one."""
    return lax.expand_dims(x, axes) if keepdims and axes else x


def _number_of(a: Any, axes: tuple[int, ...], names: tuple[str, ...] = ()) -> int:
    count = 1
    for axis in axes:
        count *= a.shape[axis]
    for name in names:
        count *= lax.axis_size(name)
    return count


def _places_and_names(axis: Any) -> tuple[Any, tuple[str, ...]]:
    """An argument `axis` as axes of the array, and the names of mapped axes around it."""
    given = axis if isinstance(axis, (tuple, list)) else (axis,)
    names = tuple(each for each in given if isinstance(each, str))
    return (tuple(each for each in given if each not in names), names) if names else (axis, ())


def _begun(name: str, a: ArrayLike, axis: Axes, out: None
           ) -> tuple[Any, tuple[int, ...], tuple[str, ...]]:
    """The array of a reduction, its axes, and the names of mapped axes around it."""
    refuse_out(name, out)
    array = as_array(name, a)
    axis, names = _places_and_names(axis)
    return array, canonical_axes(static_axes(name, axis), array.ndim), names


def _over_names(name: str, x: Any, names: tuple[str, ...]) -> Any:
    """What is reduced already, reduced over mapped axes as well."""
    if not names:
        return x
    collectives = {"sum": lax.psum, "max": lax.pmax, "min": lax.pmin}
    if name not in collectives:
        raise NotImplementedError(f"Named reductions not implemented for jnp.{name}()")
    return collectives[name](x, names)


def _promoted_integer(dtype: Any) -> Any:
    """The dtype in which integers are summed: at least as wide as the default."""
    if dtype.kind not in "biu":
        return dtype
    wide = dtypes.default_uint_dtype() if dtype.kind == "u" else dtypes.default_int_dtype()
    return dtype if dtype.itemsize > wide.itemsize else wide


def _is_short_float(dtype: Any) -> bool:
    return dtypes.issubdtype(dtype, np.floating) and np.dtype(dtype).itemsize < 4


def _masked(name: str, a: Any, where: Any, identity: Any) -> Any:
    if where is None:
        return a
    check_arraylike(name, where)
    return choose(where, a, convert(identity, a.dtype))


def _accumulate(name: str, reduce: Reduce, combine: Callable[[Any, Any], Any], identity: int,
                a: ArrayLike, axis: Axes, dtype: Any, out: None, keepdims: bool,
                initial: ArrayLike | None, where: ArrayLike | None,
                promote_integers: bool) -> Array:
    """`sum` and `prod`."""
    dtype = dtypes.check_user_dtype_supported(dtype, name)
    a, axes, names = _begun(name, a, axis, out)
    result_dtype = dtype or (_promoted_integer(a.dtype) if promote_integers else a.dtype)
    wide = np.dtype("float32") if _is_short_float(result_dtype) else result_dtype
    a = _masked(name, convert(a, wide), where, identity)
    result = _over_names(name, reduce(a, axes), names)
    if initial is not None:
        result = combine(convert(as_array(name, initial), wide), result)
    return convert(_kept(result, axes, keepdims), result_dtype)


def sum(a: ArrayLike, axis: Axes = None, dtype: Any = None, out: None = None,
        keepdims: bool = False, initial: ArrayLike | None = None,
        where: ArrayLike | None = None, promote_integers: bool = True) -> Array:
    """The sum over all axes, or over some; small integers are summed as int32.

    >>> x = np.array([[1, 2], [3, 4]])
    >>> sum(x), sum(x, axis=0)
    (Array(10, dtype=int32), Array([4, 6], dtype=int32))

    Raises:
      TypeError: for a list. ConcretizationTypeError: for a traced axis.
    """
    return _accumulate("sum", lax.reduce_sum, lax.add, 0, a, axis, dtype, out, keepdims,
                       initial, where, promote_integers)


def prod(a: ArrayLike, axis: Axes = None, dtype: Any = None, out: None = None,
         keepdims: bool = False, initial: ArrayLike | None = None,
         where: ArrayLike | None = None, promote_integers: bool = True) -> Array:
    """The product over all axes, or over some.

    >>> prod(np.array([2, 3, 4]))
    Array(24, dtype=int32)
    """
    return _accumulate("prod", lax.reduce_prod, lax.mul, 1, a, axis, dtype, out, keepdims,
                       initial, where, promote_integers)


# ── Extremes ─────────────────────────────────────────────────────────────────────────────────

def _extreme(name: str, reduce: Reduce, combine: Callable[[Any, Any], Any],
             identity: Callable[[Any], Any], a: ArrayLike, axis: Axes, out: None,
             keepdims: bool, initial: ArrayLike | None, where: ArrayLike | None) -> Array:
    a, axes, names = _begun(name, a, axis, out)
    if where is not None and initial is None:
        raise ValueError(f"reduction operation {name} does not have an identity, so to use a "
                         "where mask one has to specify 'initial'")
    if initial is None and _number_of(a, axes) == 0:
        raise ValueError(f"zero-size array to reduction operation {name} which has no identity")
    a = convert(a, a.dtype)
    result = _over_names(name, reduce(_masked(name, a, where, identity(a.dtype)), axes), names)
    if initial is not None:
        result = combine(convert(as_array(name, initial), a.dtype), result)
    return _kept(result, axes, keepdims)


def _lowest(dtype: Any) -> Any:
    if dtypes.issubdtype(dtype, np.inexact):
        return -np.inf
    return False if dtype.kind == "b" else dtypes.iinfo(dtype).min


def _highest(dtype: Any) -> Any:
    if dtypes.issubdtype(dtype, np.inexact):
        return np.inf
    return True if dtype.kind == "b" else dtypes.iinfo(dtype).max


def _reduce_max(x: Any, axes: tuple[int, ...]) -> Any:
    return (lax.reduce_or if x.dtype == bool else lax.reduce_max)(x, axes)


def _reduce_min(x: Any, axes: tuple[int, ...]) -> Any:
    return (lax.reduce_and if x.dtype == bool else lax.reduce_min)(x, axes)


def max(a: ArrayLike, axis: Axes = None, out: None = None, keepdims: bool = False,
        initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array:
    """The largest element; nan where there is one.

    >>> max(np.array([[1, 5], [3, 4]]), axis=1)
    Array([5, 4], dtype=int32)

    Raises:
      ValueError: when there is nothing to reduce over.
    """
    return _extreme("max", _reduce_max, lax.max, _lowest, a, axis, out, keepdims, initial, where)


def min(a: ArrayLike, axis: Axes = None, out: None = None, keepdims: bool = False,
        initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array:
    """The smallest element; nan where there is one.

    >>> min(np.array([[1, 5], [3, 4]]), axis=1)
    Array([1, 3], dtype=int32)

    Raises:
      ValueError: when there is nothing to reduce over.
    """
    return _extreme("min", _reduce_min, lax.min, _highest, a, axis, out, keepdims, initial,
                    where)


amax, amin = max, min


def ptp(a: ArrayLike, axis: Axes = None, out: None = None, keepdims: bool = False) -> Array:
    """The distance from the smallest to the largest element.

    >>> ptp(np.array([3, 1, 7]))
    Array(6, dtype=int32)
    """
    refuse_out("ptp", out)
    return max(a, axis, keepdims=keepdims) - min(a, axis, keepdims=keepdims)


def _place_of(name: str, find: Callable[..., Any], a: ArrayLike, axis: Any, out: None,
              keepdims: bool | None) -> Array:
    """`argmax` and `argmin`."""
    refuse_out(name, out)
    a = as_array(name, a)
    axis = static_axes(name, axis)
    if axis is None:
        flat: Any = lax.reshape(a, (a.size,))
        place, axes = 0, tuple(range(a.ndim))
    else:
        flat, place = a, canonical_axis(operator.index(axis), a.ndim)
        axes = (place,)
    if flat.shape[place] == 0:
        raise ValueError(f"attempt to get {name} of an empty sequence")
    return _kept(find(flat, place, dtypes.default_int_dtype()), axes, bool(keepdims))


def argmax(a: ArrayLike, axis: int | None = None, out: None = None,
           keepdims: bool | None = None) -> Array:
    """Where the largest element is: the first such place, in the flat array or along an axis.

    >>> argmax(np.array([1, 7, 7]))
    Array(1, dtype=int32)
    """
    return _place_of("argmax", lax.argmax, a, axis, out, keepdims)


def argmin(a: ArrayLike, axis: int | None = None, out: None = None,
           keepdims: bool | None = None) -> Array:
    """Where the smallest element is: the first such place, in the flat array or along an axis.

    >>> argmin(np.array([3, 1, 1]))
    Array(1, dtype=int32)
    """
    return _place_of("argmin", lax.argmin, a, axis, out, keepdims)


# ── Truth ────────────────────────────────────────────────────────────────────────────────────

def _truth(name: str, reduce: Reduce, identity: bool, a: ArrayLike, axis: Axes, out: None,
           keepdims: bool, where: ArrayLike | None) -> Array:
    a, axes, names = _begun(name, a, axis, out)
    mask = _masked(name, convert(a, np.dtype(bool)), where, identity)
    return _kept(_over_names(name, reduce(mask, axes), names), axes, keepdims)


def all(a: ArrayLike, axis: Axes = None, out: None = None, keepdims: bool = False, *,
        where: ArrayLike | None = None) -> Array:
    """Whether all elements are true (not zero).

    >>> all(np.array([1, 0]))
    Array(False, dtype=bool)
    """
    return _truth("all", lax.reduce_and, True, a, axis, out, keepdims, where)


def any(a: ArrayLike, axis: Axes = None, out: None = None, keepdims: bool = False, *,
        where: ArrayLike | None = None) -> Array:
    """Whether some element is true (not zero).

    >>> any(np.array([1, 0]))
    Array(True, dtype=bool)
    """
    return _truth("any", lax.reduce_or, False, a, axis, out, keepdims, where)


def count_nonzero(a: ArrayLike, axis: Axes = None, keepdims: bool = False) -> Array:
    """How many elements are not zero.

    >>> count_nonzero(np.array([3, 0, 4]))
    Array(2, dtype=int32)
    """
    a = as_array("count_nonzero", a)
    nonzero = a != convert(0, a.dtype)
    return sum(nonzero, axis, dtypes.default_int_dtype(), keepdims=keepdims)


# ── Averages ─────────────────────────────────────────────────────────────────────────────────

def mean(a: ArrayLike, axis: Axes = None, dtype: Any = None, out: None = None,
         keepdims: bool = False, *, where: ArrayLike | None = None) -> Array:
    """The arithmetic mean, as a float.

    >>> mean(np.array([1, 2, 6]))
    Array(3., dtype=float32)
    """
    dtype = dtypes.check_user_dtype_supported(dtype, "mean")
    a, axes, names = _begun("mean", a, axis, out)
    result_dtype = dtype or dtypes.canonicalize_dtype(dtypes.to_inexact_dtype(a.dtype))
    wide = np.dtype("float32") if _is_short_float(result_dtype) else result_dtype
    total: Any = sum(a, (*axes, *names), wide, keepdims=keepdims, where=where)
    if where is None:
        count: Any = convert(float(_number_of(a, axes, names)), wide)
    else:
        taken = broadcast_to_shape(where, a.shape)
        count = sum(taken, (*axes, *names), wide, keepdims=keepdims)
    return convert(total / count, result_dtype)


def var(a: ArrayLike, axis: Axes = None, dtype: Any = None, out: None = None, ddof: int = 0,
        keepdims: bool = False, *, where: ArrayLike | None = None,
        correction: int | float | None = None) -> Array:
    """The variance: the mean squared distance from the mean.

    >>> var(np.array([1, 3]))
    Array(1., dtype=float32)

    Args:
      ddof: how many less than the number of elements to divide by (1: of a sample).
    """
    dtype = dtypes.check_user_dtype_supported(dtype, "var")
    a, axes, names = _begun("var", a, axis, out)
    a = promote_dtypes_inexact(a)[0] if dtype is None else convert(a, dtype)
    result_dtype = dtypes.to_floating_dtype(a.dtype) if dtype is None else dtype
    a = convert(a, np.dtype("float32") if _is_short_float(a.dtype) else a.dtype)
    squared = _squared_size(a - mean(a, (*axes, *names), keepdims=True, where=where))
    total: Any = sum(squared, (*axes, *names), keepdims=keepdims, where=where)
    ddof = ddof if correction is None else correction  # type: ignore[assignment]
    if where is None:
        left = float(_number_of(a, axes, names)) - ddof
        divisor: Any = convert(left if left > 0 else np.nan, total.dtype)
    else:
        count: Any = sum(broadcast_to_shape(where, a.shape), (*axes, *names), total.dtype,
                         keepdims=keepdims)
        divisor = count - convert(ddof, total.dtype)
        divisor = choose(divisor > 0, divisor, np.nan)
    return convert(total / divisor, result_dtype)


def _squared_size(x: Any) -> Any:
    if dtypes.issubdtype(x.dtype, np.complexfloating):
        return lax.square(lax.real(x)) + lax.square(lax.imag(x))
    return lax.square(x)


def std(a: ArrayLike, axis: Axes = None, dtype: Any = None, out: None = None, ddof: int = 0,
        keepdims: bool = False, *, where: ArrayLike | None = None,
        correction: int | float | None = None) -> Array:
    """The standard deviation: the square root of the variance.

    >>> std(np.array([1, 3]))
    Array(1., dtype=float32)
    """
    refuse_out("std", out)
    return lax.sqrt(var(a, axis, dtype, None, ddof, keepdims, where=where,
                        correction=correction))


def average(a: ArrayLike, axis: Axes = None, weights: ArrayLike | None = None,
            returned: bool = False, keepdims: bool = False) -> Any:
    """The mean, weighted if weights are given; with `returned`, the sum of weights as well.

    >>> average(np.array([1., 2.]), weights=np.array([3., 1.]))
    Array(1.25, dtype=float32)
    """
    a = as_array("average", a)
    axes = canonical_axes(static_axes("average", axis), a.ndim)
    if weights is None:
        result = mean(a, axes, keepdims=keepdims)
        total: Any = convert(float(_number_of(a, axes)), result.dtype)
    else:
        a, w = promote_dtypes_inexact(a, as_array("average", weights))
        if w.shape != a.shape:
            if axis is None:
                raise ValueError("Axis must be specified when shapes of a and weights differ.")
            if w.shape != tuple(a.shape[d] for d in axes):
                raise ValueError("Shape of weights must be consistent with shape of a along "
                                 "specified axis.")
            order = np.argsort(axes)
            w = lax.broadcast_in_dim(lax.transpose(w, order), a.shape, sorted(axes))
        total = sum(w, axes, keepdims=keepdims)
        result = sum(a * w, axes, keepdims=keepdims) / total
    return (result, broadcast_to_shape(total, result.shape)) if returned else result
