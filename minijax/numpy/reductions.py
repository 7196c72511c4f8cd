"""Reductions: sum, mean, var, max, argmax, any, …, their forms that ignore nan, running sums.

Builds on `unary`, `logic`.  Chapter 20, *Precision, and where NumPy differs*.
In JAX: `jax/_src/numpy/reductions.py`.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax import core, dtypes, lax
from minijax.core import Array, refuse
from minijax.transforms.arguments import bound
from minijax.numpy.arguments import (
    ArrayLike, Axes, array_and_axis, as_array, broadcast_along, broadcast_to_shape, canonical_axes,
    canonical_axis, check_arraylike, check_axis_index, choose, convert, divided_by_constant,
    documented, initial_value, promote_dtypes_inexact, public, static_axes, with_arrays)
from minijax.numpy import logic, unary
from minijax.primitives.axes import replaced
from minijax.primitives.slots import extremum_identity


# ── What all reductions share ────────────────────────────────────────────────────────────────

class Reduction(NamedTuple):
    """The functions of a reduction."""

    reduce: Callable[[Any, tuple[int, ...]], Any]  # over axes
    combine: Callable[[Any, Any], Any]  # of two elements
    identity: Callable[[Any], Any]  # of a dtype
    collective: Callable[..., Any] | None = None  # over mapped axes


def _by_dtype(of_numbers: Callable[..., Any], of_bools: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, y: (of_bools if x.dtype == bool else of_numbers)(x, y)


_REDUCTIONS = {
    "sum": Reduction(_by_dtype(lax.reduce_sum, lax.reduce_or),
                     _by_dtype(lax.add, lax.bitwise_or), lambda dtype: 0, lax.psum),
    "prod": Reduction(_by_dtype(lax.reduce_prod, lax.reduce_and),
                      _by_dtype(lax.mul, lax.bitwise_and), lambda dtype: 1),
    "max": Reduction(_by_dtype(lax.reduce_max, lax.reduce_or), lax.max,
                     lambda dtype: extremum_identity("max", dtype), lax.pmax),
    "min": Reduction(_by_dtype(lax.reduce_min, lax.reduce_and), lax.min,
                     lambda dtype: extremum_identity("min", dtype), lax.pmin),
    "all": Reduction(lax.reduce_and, lax.bitwise_and, lambda dtype: True),
    "any": Reduction(lax.reduce_or, lax.bitwise_or, lambda dtype: False)}


def _reduction_axes(name: str, a: Array, axis: Axes) -> tuple[int | str, ...]:
    """The axes of a reduction, followed by the names of mapped axes."""
    if not (axis is None or isinstance(axis, (int, tuple, str))) and np.iterable(axis):
        axis = tuple(axis)
    axes = axis if isinstance(axis, tuple) else (axis,)
    names = tuple(each for each in axes if isinstance(each, str))
    axis = tuple(each for each in axes if each not in names) if names else axis
    return *canonical_axes(static_axes(name, axis), a.ndim), *names


def _mean_axes(name: str, a: Array, axis: Axes, where: Any) -> tuple[int | str, ...]:
    """The axes of a mean, which without a mask are looked up in the shape first."""
    if _where_mask(name, where) is None:
        check_axis_index(*(axis if isinstance(axis, (tuple, list)) else (axis,)), ndim=a.ndim)
    return _reduction_axes(name, a, axis)


def reduced(name: str, a: Any, axis: Axes, keepdims: bool, initial: Any, where: Any,
            reduction: Reduction | None = None) -> Any:
    """The reduction, by default that of the name, in the dtype of the array."""
    reduction, over = reduction or _REDUCTIONS[name], _reduction_axes(name, a, axis)
    axes = tuple(each for each in over if not isinstance(each, str))
    needs_initial = initial is None and name in ("max", "min")
    if _where_mask(name, where) is not None:
        if needs_initial:
            raise ValueError(f"reduction operation {name} does not have an identity, so to use a "
                             "where mask one has to specify 'initial'")
        a = choose(where, a, convert(reduction.identity(a.dtype), a.dtype))
    if needs_initial and 0 in [a.shape[d] for d in axes]:
        raise ValueError(f"zero-size array to reduction operation {name} which has no identity")
    result = reduction.reduce(a, axes)
    if axis_names := over[len(axes):]:
        if reduction.collective is None:
            raise NotImplementedError(f"Named reductions not implemented for jnp.{name}()")
        result = reduction.collective(result, axis_names)
    if initial is not None:
        result = reduction.combine(convert(initial_value(name, initial), a.dtype), result)
    return lax.expand_dims(result, axes) if keepdims and axes else result


def _where_mask(name: str, where: ArrayLike | None) -> ArrayLike | None:
    """The argument `where`, which must be a mask."""
    if where is not None:
        check_arraylike(name, where)
        dtype = core.get_aval(where).dtype
        if dtype != np.dtype(bool):
            shown = core.dtype_name(dtype) if dtypes.is_key(dtype) else repr(dtype)
            raise ValueError(f"jnp.{name}: where must be None or a boolean array; "
                             f"got where.dtype={shown}.")
    return where


def _axes_size(a: Any, over: Sequence[int | str]) -> int:
    return math.prod(lax.axis_size(each) if isinstance(each, str) else a.shape[each]
                     for each in over)


def _accumulation_dtype(dtype: Any) -> Any:
    """The dtype to add up in: short floats are added up in float32."""
    is_short = dtypes.issubdtype(dtype, np.floating) and np.dtype(dtype).itemsize < 4
    return np.dtype("float32") if is_short else dtype


def _promoted_integer(dtype: Any) -> Any:
    """The dtype in which integers are summed: at least as wide as the default."""
    if dtypes.kind(dtype) not in "biu":
        return dtype
    wide = dtypes.default_uint_dtype() if dtypes.kind(dtype) == "u" else dtypes.default_int_dtype()
    return dtype if dtype.itemsize > wide.itemsize else wide


# ── Sums and products ────────────────────────────────────────────────────────────────────────

def sum(a: ArrayLike, axis: Axes = None, dtype: Any = None, out: None = None,
        keepdims: bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None,
        promote_integers: bool = True) -> Array:
    """The sum over all axes, or over some; small integers are summed as int32.

    >>> sum(np.array([[1, 2], [3, 4]]), axis=0)
    Array([4, 6], dtype=int32)

    Raises:
      TypeError: for a list.
      ConcretizationTypeError: for a traced axis.
    """
    return _sum_or_prod("sum", a, axis, dtype, keepdims, initial, where, promote_integers)


def prod(a: ArrayLike, axis: Axes = None, dtype: Any = None, out: None = None,
         keepdims: bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None,
         promote_integers: bool = True) -> Array:
    """The product over all axes, or over some.

    >>> prod(np.array([2, 3, 4]))
    Array(24, dtype=int32)

    Raises:
      TypeError: for a list.
      ConcretizationTypeError: for a traced axis.
    """
    return _sum_or_prod("prod", a, axis, dtype, keepdims, initial, where, promote_integers)


def _sum_or_prod(name: str, a: Any, axis: Axes, dtype: Any, keepdims: bool, initial: Any,
                 where: Any, promote_integers: bool = True) -> Array:
    if dtype is not None:  # the user's choice is the dtype of every step
        return reduced(name, convert(a, dtype), axis, keepdims, initial, where)
    numeric = _promoted_integer if promote_integers else dtypes.to_numeric_dtype
    dtype = numeric(dtypes.canonicalize_dtype(a.dtype))
    x = convert(a, _accumulation_dtype(dtype))
    return convert(reduced(name, x, axis, keepdims, initial, where), dtype)


# ── Extremes ─────────────────────────────────────────────────────────────────────────────────

def max(a: ArrayLike, axis: Axes = None, out: None = None, keepdims: bool = False,
        initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array:
    """The largest element; nan if there is one.

    >>> max(np.array([[1, 5], [3, 4]]), axis=1)
    Array([5, 4], dtype=int32)

    Raises:
      ValueError: when there is nothing to reduce over.
    """
    a = convert(a, dtypes.canonicalize_dtype(a.dtype))
    return reduced("max", a, axis, keepdims, initial, where)


def min(a: ArrayLike, axis: Axes = None, out: None = None, keepdims: bool = False,
        initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array:
    """The smallest element; nan if there is one.

    >>> min(np.array([[1, 5], [3, 4]]), axis=1)
    Array([1, 3], dtype=int32)

    Raises:
      ValueError: when there is nothing to reduce over.
    """
    a = convert(a, dtypes.canonicalize_dtype(a.dtype))
    return reduced("min", a, axis, keepdims, initial, where)


amax, amin = max, min


def ptp(a: ArrayLike, axis: Axes = None, out: None = None, keepdims: bool = False) -> Array:
    """The distance from the smallest to the largest element.

    >>> ptp(np.array([3, 1, 7]))
    Array(6, dtype=int32)
    """
    axes = _reduction_axes("ptp", a, axis)
    return max(a, axes, keepdims=keepdims) - min(a, axes, keepdims=keepdims)


def argmax(a: ArrayLike, axis: int | None = None, out: None = None,
           keepdims: bool | None = None) -> Array:
    """Where the largest element is: the first such place, in the flat array or along an axis.

    >>> argmax(np.array([1, 7, 7]))
    Array(1, dtype=int32)
    """
    return _index_of("argmax", lax.argmax, a, axis, keepdims)


def argmin(a: ArrayLike, axis: int | None = None, out: None = None,
           keepdims: bool | None = None) -> Array:
    """Where the smallest element is: the first such place, in the flat array or along an axis.

    >>> argmin(np.array([3, 1, 1]))
    Array(1, dtype=int32)
    """
    return _index_of("argmin", lax.argmin, a, axis, keepdims)


def _index_of(name: str, find: Callable[..., Any], a: Any, axis: Any, keepdims: Any) -> Array:
    check_axis_index(axis, ndim=a.ndim)
    x, reduced_axis = array_and_axis(name, a, axis)
    if x.shape[reduced_axis] == 0:
        raise ValueError(f"attempt to get {name} of an empty sequence")
    index = find(x, reduced_axis, dtypes.default_int_dtype())
    axes = range(a.ndim) if axis is None else (reduced_axis,)
    return lax.expand_dims(index, axes) if keepdims and axes else index


# ── Truth ────────────────────────────────────────────────────────────────────────────────────

def all(a: ArrayLike, axis: Axes = None, out: None = None, keepdims: bool = False, *,
        where: ArrayLike | None = None) -> Array:
    """Whether all elements are true (not zero).

    >>> all(np.array([1, 0]))
    Array(False, dtype=bool)
    """
    return reduced("all", a.astype(bool), axis, keepdims, None, where)


def any(a: ArrayLike, axis: Axes = None, out: None = None, keepdims: bool = False, *,
        where: ArrayLike | None = None) -> Array:
    """Whether some element is true (not zero).

    >>> any(np.array([1, 0]))
    Array(True, dtype=bool)
    """
    return reduced("any", a.astype(bool), axis, keepdims, None, where)


def count_nonzero(a: ArrayLike, axis: Axes = None, keepdims: bool = False) -> Array:
    """How many elements are not zero.

    >>> count_nonzero(np.array([3, 0, 4]))
    Array(2, dtype=int32)
    """
    return sum(a != convert(0, a.dtype), axis, dtypes.default_int_dtype(), keepdims=keepdims)


# ── Averages ─────────────────────────────────────────────────────────────────────────────────

def mean(a: ArrayLike, axis: Axes = None, dtype: Any = None, out: None = None,
         keepdims: bool = False, *, where: ArrayLike | None = None) -> Array:
    """The arithmetic mean, as a float.

    >>> mean(np.array([1, 2, 6]))
    Array(3., dtype=float32)
    """
    axes = _mean_axes("mean", a, axis, where)
    result_dtype = dtype or dtypes.canonicalize_dtype(dtypes.to_inexact_dtype(a.dtype))
    wide = dtype or _accumulation_dtype(result_dtype)
    total: Any = _sum_or_prod("sum", a, axes, wide, keepdims, None, where)
    count = _count(a, axes, wide, keepdims, where)
    return convert(divided_by_constant(total, count) if where is None else
                   lax.div(total, convert(count, wide)), result_dtype)


_mean = mean  # for `var`, which has a parameter `mean`


def _count(a: Any, axes: Sequence[int | str], dtype: Any, keepdims: bool, where: Any) -> Any:
    """The number of reduced elements; a literal where there is no mask."""
    if where is None:
        return float(_axes_size(a, axes))
    return sum(broadcast_to_shape(where, a.shape), axes, dtype, keepdims=keepdims)


def var(a: ArrayLike, axis: Axes = None, dtype: Any = None, out: None = None, ddof: int = 0,
        keepdims: bool = False, *, where: ArrayLike | None = None,
        mean: ArrayLike | None = None, correction: int | float | None = None) -> Array:
    """The variance: the mean squared distance from the mean.

    >>> var(np.array([1, 3]))
    Array(1., dtype=float32)

    Args:
      ddof: how much less than the number of elements to divide by; 1 for a sample.
      mean: the mean, if it is computed already, with `keepdims`.
    """
    if correction is not None and (not isinstance(ddof, int) or ddof != 0):
        raise ValueError("ddof and correction can't be provided simultaneously.")
    axes = _mean_axes("var", a, axis, where)
    if dtype is not None and a.dtype.kind == "c" and np.dtype(dtype).kind != "c":
        raise ValueError(_REAL_VARIANCE)
    a = promote_dtypes_inexact(a)[0] if dtype is None else a
    result_dtype = dtypes.to_floating_dtype(a.dtype) if dtype is None else dtype
    a = convert(a, _accumulation_dtype(dtype or a.dtype))
    mean = _mean(a, axes, keepdims=True, where=where) if mean is None else convert(mean, a.dtype)
    distance = a - mean
    square = lax.square(distance) if a.dtype.kind != "c" else (
        lax.square(lax.real(distance)) + lax.square(lax.imag(distance)))
    total: Any = sum(square, axes, keepdims=keepdims, where=where)
    freedom = _count(a, axes, total.dtype, keepdims, where) - (
        ddof if correction is None else correction)
    divisor = choose(freedom > 0, freedom, np.nan) if where is not None else (
        freedom if freedom > 0 else np.nan)
    return convert(total / divisor, result_dtype)


_REAL_VARIANCE = (
    "jax.numpy.var does not yet support real dtype parameters when computing the variance of an "
    "array of complex values. The semantics of numpy.var seem unclear in this case. Please comment "
    "on https://github.com/jax-ml/jax/issues/2283 if this behavior is important to you.")


def std(a: ArrayLike, axis: Axes = None, dtype: Any = None, out: None = None, ddof: int = 0,
        keepdims: bool = False, *, where: ArrayLike | None = None,
        mean: ArrayLike | None = None, correction: int | float | None = None) -> Array:
    """The standard deviation: the square root of the variance.

    >>> std(np.array([1, 3]))
    Array(1., dtype=float32)
    """
    where = _where_mask("std", where)
    if dtype is not None and not dtypes.issubdtype(dtype, np.inexact):
        raise ValueError(f"dtype argument to jnp.std must be inexact; got {dtype}")
    return lax.sqrt(var(a, axis, dtype, None, ddof, keepdims, where=where, mean=mean,
                        correction=correction))


def average(a: ArrayLike, axis: Axes = None, weights: ArrayLike | None = None,
            returned: bool = False, keepdims: bool = False) -> Any:
    """The mean, weighted if weights are given; with `returned`, the sum of weights as well.

    >>> average(np.array([1., 2.]), weights=np.array([3., 1.]))
    Array(1.25, dtype=float32)
    """
    axes = canonical_axes(static_axes("average", axis), a.ndim)
    if weights is None:
        result = mean(a, axes, keepdims=keepdims)
        total: Any = convert(float(_axes_size(a, axes)), result.dtype)
    else:
        a, w = promote_dtypes_inexact(a, as_array("average", weights))
        if w.shape != a.shape:
            refuse((axis is None, "Axis must be specified when shapes of a and weights differ."),
                   (w.shape != tuple(a.shape[d] for d in axes), "Shape of weights must be "
                    "consistent with shape of a along specified axis."), error=ValueError)
            w = broadcast_along(w, a.shape, axes)
        total = sum(w, axes, keepdims=keepdims)
        result = sum(a * w, axes, keepdims=keepdims) / total
    return (result, broadcast_to_shape(total, result.shape)) if returned else result


# ── Cumulative reductions ─────────────────────────────────────────────────────────────────────

def cumsum(a: ArrayLike, axis: int | None = None, dtype: Any = None, out: None = None) -> Array:
    """The running sum along an axis, or over the flat array.

    >>> cumsum(np.array([1, 2, 3]))
    Array([1, 3, 6], dtype=int32)
    """
    return _cumulate("cumsum", lax.cumsum, a, axis, dtype)


def cumprod(a: ArrayLike, axis: int | None = None, dtype: Any = None, out: None = None) -> Array:
    """The running product along an axis, or over the flat array.

    >>> cumprod(np.array([1, 2, 3]))
    Array([1, 2, 6], dtype=int32)
    """
    return _cumulate("cumprod", lax.cumprod, a, axis, dtype)


def _cumulate(name: str, run: Callable[..., Any], a: Any, axis: int | None, dtype: Any) -> Array:
    x, axis = array_and_axis(name, a if a.ndim else lax.reshape(a, (1,)), axis)
    if dtype is None:
        dtype = dtypes.canonicalize_dtype(int if x.dtype == bool else x.dtype)
    if dtype == dtypes.BOOL:  # counted, since the numbers themselves may cancel
        return convert(run(convert(convert(x, dtype), dtypes.default_int_dtype()), axis), dtype)
    return run(convert(x, dtype), axis)


def cumulative_sum(x: ArrayLike, /, *, axis: int | None = None, dtype: Any = None,
                   include_initial: bool = False) -> Array:
    """The running sum along an axis, which must be given where there are several.

    >>> cumulative_sum(np.array([1, 2, 3]), include_initial=True)
    Array([0, 1, 3, 6], dtype=int32)
    """
    return _cumulative("sum", cumsum, x, axis, dtype or _promoted_integer(x.dtype), include_initial)


def cumulative_prod(x: ArrayLike, /, *, axis: int | None = None, dtype: Any = None,
                    include_initial: bool = False) -> Array:
    """The running product along an axis, which must be given where there are several.

    >>> cumulative_prod(np.array([1, 2, 3]))
    Array([1, 2, 6], dtype=int32)
    """
    return _cumulative("prod", cumprod, x, axis, dtype, include_initial)


def _cumulative(name: str, run: Callable[..., Any], x: Any, axis: int | None, dtype: Any,
                include_initial: bool) -> Array:
    refuse((x.ndim == 0, f"The input must be non-scalar to take a cumulative {name}, however a "
            "scalar value or scalar array was given."),
           (axis is None and x.ndim > 1, f"The input array has rank {x.ndim}, however axis was not "
            "set to an explicit value. The axis argument is only optional for one-dimensional "
            "arrays."), error=ValueError)
    axis = canonical_axis(0 if axis is None else axis, x.ndim)
    out = run(x, axis, dtype)
    if not include_initial:
        return out
    first = lax.full(replaced(out.shape, axis, 1), _REDUCTIONS[name].identity(out.dtype), out.dtype)
    return lax.concatenate([first, out], axis)


# ── Reductions that ignore nan ───────────────────────────────────────────────────────────────

def _nan_reduction(function: Callable[..., Array], identity: float, summary: str, shows: str,
                   of_all_nan: float | None = None) -> Callable[..., Array]:
    """A reduction in which the identity replaces nan; of nan alone it is `of_all_nan`.

    A variance counts elements, so it takes a mask instead.
    """
    function = with_arrays(function)
    parameters = inspect.signature(function).parameters.values()
    signature = inspect.Signature([  # as in JAX
        each.replace(kind=inspect.Parameter.POSITIONAL_OR_KEYWORD)
        for each in parameters if each.name not in ("promote_integers", "correction")],
        return_annotation=Array)
    name, dtype = f"nan{function.__name__}", "float32" if "." in shows else "int32"

    def reduce(*args: Any, **kwargs: Any) -> Array:
        arguments = bound(signature, name, args, kwargs).arguments
        a = as_array(name, arguments.pop("a"))
        _where_mask(name, arguments.get("where"))
        if not dtypes.issubdtype(a.dtype, np.inexact):
            return function(a, **arguments)
        if function.__name__ in ("var", "std"):
            arguments["where"] = _not_nan(a, arguments.get("where"))
        is_nan = unary.isnan(a)
        filler = (convert(identity, a.dtype) if np.isfinite(identity) else
                  extremum_identity("max" if identity < 0 else "min", a.dtype))
        out = function(choose(is_nan, filler, a), **arguments)
        if of_all_nan is None or arguments.get("initial") is not None:
            return out
        are_nan = all(is_nan, arguments.get("axis"), keepdims=bool(arguments.get("keepdims")))
        return choose(are_nan, of_all_nan, out)

    reduce.__signature__ = signature  # type: ignore[attr-defined]
    return documented(reduce, name, summary,
                      f"{name}(np.array([1, np.nan, 3])) -> Array({shows}, dtype={dtype})")


nansum = _nan_reduction(sum, 0, "The sum of non-nan elements.", "4.")
nanprod = _nan_reduction(prod, 1, "The product of non-nan elements.", "3.")
nancumsum = _nan_reduction(cumsum, 0, "The running sum, nan counted as 0.", "[1., 1., 4.]")
nancumprod = _nan_reduction(cumprod, 1, "The running product, nan counted as 1.", "[1., 1., 3.]")
nanmax = _nan_reduction(
    max, -np.inf, "The largest non-nan element; nan where all are.", "3.", np.nan)
nanmin = _nan_reduction(
    min, np.inf, "The smallest non-nan element; nan where all are.", "1.", np.nan)
nanargmax = _nan_reduction(
    argmax, -np.inf, "The index of the largest non-nan element; -1 where all are nan.", "2", -1)
nanargmin = _nan_reduction(
    argmin, np.inf, "The index of the smallest non-nan element; -1 where all are nan.", "0", -1)
nanvar = _nan_reduction(var, 0, "The variance of the non-nan elements.", "1.")
nanstd = _nan_reduction(std, 0, "The standard deviation of the non-nan elements.", "1.")


def nanmean(a: ArrayLike, axis: Axes = None, dtype: Any = None, out: None = None,
            keepdims: bool = False, where: ArrayLike | None = None) -> Array:
    """The mean of the non-nan elements.

    >>> nanmean(np.array([1, np.nan, 3]))
    Array(2., dtype=float32)
    """
    if not dtypes.issubdtype(a.dtype, np.inexact):
        return mean(a, axis, dtype, out, keepdims, where=where)
    dtype, where = dtype or a.dtype, _where_mask("nanmean", where)
    count = sum(_not_nan(a, where), axis, dtype, keepdims=keepdims)
    return nansum(a, axis, dtype, keepdims=keepdims, where=where) / count


def _not_nan(a: Any, where: ArrayLike | None) -> Any:
    """The mask of the non-nan elements and not masked by `where`."""
    is_number = ~unary.isnan(a)
    return is_number if where is None else logic.logical_and(is_number, where)


public(globals())
