"""Reductions: sum, mean, var, max, argmax, any, …, their forms that skip nan, and running sums.

Stands on `unary`, `logic`.  Chapter 20, *Precision, and where NumPy differs*.
In JAX: `jax/_src/numpy/reductions.py`.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax import core, dtypes, lax
from minijax.core import Array
from minijax.transforms.arguments import bound
from minijax.numpy.arguments import (ArrayLike, Axes, along, as_array, broadcast_to_shape,
                                     canonical_axes, canonical_axis, check_arraylike,
                                     check_looked_up, choose,
                                     convert, documented, first_value, prepared,
                                     promote_dtypes_inexact, public, static_axes)
from minijax.numpy.logic import logical_and
from minijax.numpy.unary import isnan
from minijax.primitives.axes import replaced
from minijax.primitives.slots import extremum_identity


# ── What all reductions share ────────────────────────────────────────────────────────────────

class _Kind(NamedTuple):
    """The parts of a reduction: along axes, of two elements, its identity, along mapped axes."""

    reduce: Callable[[Any, tuple[int, ...]], Any]
    combine: Callable[[Any, Any], Any]
    identity: Callable[[Any], Any]  # of a dtype
    over_names: Callable[..., Any] | None = None


_KINDS = {
    "sum": _Kind(lax.reduce_sum, lax.add, lambda dtype: 0, lax.psum),
    "prod": _Kind(lax.reduce_prod, lax.mul, lambda dtype: 1),
    "max": _Kind(lambda x, axes: (lax.reduce_or if x.dtype == bool else lax.reduce_max)(x, axes),
                 lax.max, lambda dtype: extremum_identity("max", dtype), lax.pmax),
    "min": _Kind(lambda x, axes: (lax.reduce_and if x.dtype == bool else lax.reduce_min)(x, axes),
                 lax.min, lambda dtype: extremum_identity("min", dtype), lax.pmin),
    "all": _Kind(lax.reduce_and, lax.bitwise_and, lambda dtype: True),
    "any": _Kind(lax.reduce_or, lax.bitwise_or, lambda dtype: False),
}


def _over(name: str, a: Array, axis: Axes) -> tuple[int | str, ...]:
    """The axes of a reduction; behind them the names of mapped axes around it."""
    if not (axis is None or isinstance(axis, (int, tuple, str))) and np.iterable(axis):
        axis = tuple(axis)
    axes = axis if isinstance(axis, tuple) else (axis,)
    names = tuple(each for each in axes if isinstance(each, str))
    axis = tuple(each for each in axes if each not in names) if names else axis
    return *canonical_axes(static_axes(name, axis), a.ndim), *names


def _over_looked_up(name: str, a: Array, axis: Axes, where: Any) -> tuple[int | str, ...]:
    """The same for a mean, which divides by the size of the axes."""
    if where is None:
        check_looked_up(*(axis if isinstance(axis, (tuple, list)) else (axis,)), ndim=a.ndim)
    return _over(name, a, axis)


def _reduced(name: str, a: Any, over: tuple[int | str, ...], keepdims: bool,
             initial: ArrayLike | None, where: ArrayLike | None) -> Any:
    """The reduction, in the dtype of the array."""
    kind = _KINDS[name]
    if where is not None:
        a = choose(where, a, convert(kind.identity(a.dtype), a.dtype))
    axes = tuple(each for each in over if not isinstance(each, str))
    result = kind.reduce(a, axes)
    if names := over[len(axes):]:
        if kind.over_names is None:
            raise NotImplementedError(f"Named reductions not implemented for jnp.{name}()")
        result = kind.over_names(result, names)
    if initial is not None:
        result = kind.combine(convert(first_value(name, initial), a.dtype), result)
    return lax.expand_dims(result, axes) if keepdims and axes else result


def _mask(name: str, where: ArrayLike | None) -> ArrayLike | None:
    """The argument `where`, checked."""
    if where is not None:
        check_arraylike(name, where)
        dtype = core.get_aval(where).dtype
        if dtype != np.dtype(bool):
            shown = core.dtype_name(dtype) if dtypes.is_key(dtype) else repr(dtype)
            raise ValueError(f"jnp.{name}: where must be None or a boolean array; "
                             f"got where.dtype={shown}.")
    return where


def _number_of(a: Any, over: Sequence[int | str]) -> int:
    return math.prod(lax.axis_size(each) if isinstance(each, str) else a.shape[each]
                     for each in over)


def _wide(dtype: Any) -> Any:
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
    return _accumulated("sum", a, axis, dtype, keepdims, initial, where, promote_integers)


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
    return _accumulated("prod", a, axis, dtype, keepdims, initial, where, promote_integers)


def _accumulated(name: str, a: Any, axis: Axes, dtype: Any, keepdims: bool,
                 initial: ArrayLike | None, where: ArrayLike | None,
                 promote_integers: bool = True) -> Array:
    over, where = _over(name, a, axis), _mask(name, where)
    dtype = dtype or (_promoted_integer(a.dtype) if promote_integers else a.dtype)
    result = _reduced(name, convert(a, _wide(dtype)), over, keepdims, initial, where)
    return convert(result, dtype)


# ── Extremes ─────────────────────────────────────────────────────────────────────────────────

def max(a: ArrayLike, axis: Axes = None, out: None = None, keepdims: bool = False,
        initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array:
    """The largest element; nan if there is one.

    >>> max(np.array([[1, 5], [3, 4]]), axis=1)
    Array([5, 4], dtype=int32)

    Raises:
      ValueError: when there is nothing to reduce over.
    """
    return _extreme("max", a, axis, keepdims, initial, where)


def min(a: ArrayLike, axis: Axes = None, out: None = None, keepdims: bool = False,
        initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array:
    """The smallest element; nan if there is one.

    >>> min(np.array([[1, 5], [3, 4]]), axis=1)
    Array([1, 3], dtype=int32)

    Raises:
      ValueError: when there is nothing to reduce over.
    """
    return _extreme("min", a, axis, keepdims, initial, where)


amax, amin = max, min


def _extreme(name: str, a: Any, axis: Axes, keepdims: bool, initial: ArrayLike | None,
             where: ArrayLike | None) -> Array:
    over, where = _over(name, a, axis), _mask(name, where)
    if where is not None and initial is None:
        raise ValueError(f"reduction operation {name} does not have an identity, so to use a "
                         "where mask one has to specify 'initial'")
    if initial is None and 0 in [a.shape[each] for each in over if not isinstance(each, str)]:
        raise ValueError(f"zero-size array to reduction operation {name} which has no identity")
    return _reduced(name, convert(a, a.dtype), over, keepdims, initial, where)


def ptp(a: ArrayLike, axis: Axes = None, out: None = None, keepdims: bool = False) -> Array:
    """The distance from the smallest to the largest element.

    >>> ptp(np.array([3, 1, 7]))
    Array(6, dtype=int32)
    """
    over = _over("ptp", a, axis)
    return max(a, over, keepdims=keepdims) - min(a, over, keepdims=keepdims)


def _place(name: str, find: Callable[..., Any], summary: str, shows: str) -> Callable[..., Array]:
    def place(a: ArrayLike, axis: int | None = None, out: None = None,
              keepdims: bool | None = None) -> Array:
        check_looked_up(axis, ndim=np.ndim(a))
        x, at = along(name, a, axis)
        if x.shape[at] == 0:
            raise ValueError(f"attempt to get {name} of an empty sequence")
        index = find(x, at, dtypes.default_int_dtype())
        axes = range(np.ndim(a)) if axis is None else (at,)
        return lax.expand_dims(index, axes) if keepdims and axes else index

    return documented(place, name, summary + ": the first such place, in the flat array or along "
                      "an axis.", shows)


argmax = _place("argmax", lax.argmax, "Where the largest element is",
                "argmax(np.array([1, 7, 7])) -> Array(1, dtype=int32)")
argmin = _place("argmin", lax.argmin, "Where the smallest element is",
                "argmin(np.array([3, 1, 1])) -> Array(1, dtype=int32)")


# ── Truth ────────────────────────────────────────────────────────────────────────────────────

def all(a: ArrayLike, axis: Axes = None, out: None = None, keepdims: bool = False, *,
        where: ArrayLike | None = None) -> Array:
    """Whether all elements are true (not zero).

    >>> all(np.array([1, 0]))
    Array(False, dtype=bool)
    """
    over = _over("all", a, axis)
    return _reduced("all", convert(a, np.dtype(bool)), over, keepdims, None, _mask("all", where))


def any(a: ArrayLike, axis: Axes = None, out: None = None, keepdims: bool = False, *,
        where: ArrayLike | None = None) -> Array:
    """Whether some element is true (not zero).

    >>> any(np.array([1, 0]))
    Array(True, dtype=bool)
    """
    over = _over("any", a, axis)
    return _reduced("any", convert(a, np.dtype(bool)), over, keepdims, None, _mask("any", where))


def count_nonzero(a: ArrayLike, axis: Axes = None, keepdims: bool = False) -> Array:
    """How many elements are not zero.

    >>> count_nonzero(np.array([3, 0, 4]))
    Array(2, dtype=int32)
    """
    nonzero = a != convert(0, a.dtype)
    return sum(nonzero, axis, dtypes.default_int_dtype(), keepdims=keepdims)


# ── Averages ─────────────────────────────────────────────────────────────────────────────────

def mean(a: ArrayLike, axis: Axes = None, dtype: Any = None, out: None = None,
         keepdims: bool = False, *, where: ArrayLike | None = None) -> Array:
    """The arithmetic mean, as a float.

    >>> mean(np.array([1, 2, 6]))
    Array(3., dtype=float32)
    """
    over = _over_looked_up("mean", a, axis, where)
    result_dtype = dtype or dtypes.canonicalize_dtype(dtypes.to_inexact_dtype(a.dtype))
    wide = _wide(result_dtype)
    total: Any = _accumulated("sum", a, over, wide, keepdims, None, where)
    return convert(total / _count(a, over, wide, keepdims, where), result_dtype)


_mean = mean  # for functions with an argument `mean`


def _count(a: Any, over: Sequence[int | str], dtype: Any, keepdims: bool,
           where: ArrayLike | None) -> Any:
    """The number of elements that take part; a literal where all do."""
    if where is None:
        return float(_number_of(a, over))
    return sum(broadcast_to_shape(where, a.shape), over, dtype, keepdims=keepdims)


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
    over = _over_looked_up("var", a, axis, where)
    a = promote_dtypes_inexact(a)[0] if dtype is None else convert(a, dtype)
    result_dtype = dtypes.to_floating_dtype(a.dtype) if dtype is None else dtype
    a = convert(a, _wide(a.dtype))
    middle = _mean(a, over, keepdims=True, where=where) if mean is None else convert(mean, a.dtype)
    squared = _squared_size(a - middle)
    total: Any = sum(squared, over, keepdims=keepdims, where=where)
    left = _count(a, over, total.dtype, keepdims, where) - (
        ddof if correction is None else correction)
    if where is None:
        divisor = left if left > 0 else np.nan
    else:
        divisor = choose(left > 0, left, np.nan)
    return convert(total / divisor, result_dtype)


def _squared_size(x: Any) -> Any:
    if dtypes.issubdtype(x.dtype, np.complexfloating):
        return lax.square(lax.real(x)) + lax.square(lax.imag(x))
    return lax.square(x)


def std(a: ArrayLike, axis: Axes = None, dtype: Any = None, out: None = None, ddof: int = 0,
        keepdims: bool = False, *, where: ArrayLike | None = None,
        mean: ArrayLike | None = None, correction: int | float | None = None) -> Array:
    """The standard deviation: the square root of the variance.

    >>> std(np.array([1, 3]))
    Array(1., dtype=float32)
    """
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


# ── Running sums ─────────────────────────────────────────────────────────────────────────────

def _running(name: str, run: Callable[..., Any], summary: str, shows: str) -> Callable[..., Array]:
    def running(a: ArrayLike, axis: int | None = None, dtype: Any = None,
                out: None = None) -> Array:
        a = as_array(name, a)
        x, at = along(name, a if a.ndim else lax.reshape(a, (1,)), axis)
        if dtype is None:
            dtype = dtypes.default_int_dtype() if x.dtype == bool else x.dtype
        return run(convert(x, dtype), at)

    return documented(running, name, summary + " along an axis, or over the flat array.", shows)


cumsum = _running("cumsum", lax.cumsum, "The running sum",
                  "cumsum(np.array([1, 2, 3])) -> Array([1, 3, 6], dtype=int32)")
cumprod = _running("cumprod", lax.cumprod, "The running product",
                   "cumprod(np.array([1, 2, 3])) -> Array([1, 2, 6], dtype=int32)")


def cumulative_sum(x: ArrayLike, /, *, axis: int | None = None, dtype: Any = None,
                   include_initial: bool = False) -> Array:
    """The running sum along an axis, which must be given where there are several.

    >>> cumulative_sum(np.array([1, 2, 3]), include_initial=True)
    Array([0, 1, 3, 6], dtype=int32)
    """
    return _cumulative("sum", cumsum, x, axis, dtype or _promoted_integer(x.dtype),
                       include_initial)


def cumulative_prod(x: ArrayLike, /, *, axis: int | None = None, dtype: Any = None,
                    include_initial: bool = False) -> Array:
    """The running product along an axis, which must be given where there are several.

    >>> cumulative_prod(np.array([1, 2, 3]))
    Array([1, 2, 6], dtype=int32)
    """
    return _cumulative("prod", cumprod, x, axis, dtype, include_initial)


def _cumulative(name: str, run: Callable[..., Any], x: Any, axis: int | None, dtype: Any,
                include_initial: bool) -> Array:
    if x.ndim == 0:
        raise ValueError(f"The input must be non-scalar to take a cumulative {name}, however a "
                         "scalar value or scalar array was given.")
    if axis is None and x.ndim > 1:
        raise ValueError(f"The input array has rank {x.ndim}, however axis was not set to an "
                         "explicit value. The axis argument is only optional for one-dimensional "
                         "arrays.")
    at = canonical_axis(0 if axis is None else axis, x.ndim)
    out = run(x, at, dtype)
    if not include_initial:
        return out
    first = lax.full(replaced(out.shape, at, 1), _KINDS[name].identity(out.dtype), out.dtype)
    return lax.concatenate([first, out], at)


# ── Without nan ──────────────────────────────────────────────────────────────────────────────

def _without_nan(function: Callable[..., Array], instead: float, summary: str, result: str,
                 nothing: float | None = None) -> Callable[..., Array]:
    """A reduction with `instead` in place of every nan; where all are nan, `nothing`.

    A variance counts elements, so from it nan is masked.
    """
    function = prepared(function)
    parameters = inspect.signature(function).parameters.values()
    signature = inspect.Signature([  # as in JAX
        each.replace(kind=inspect.Parameter.POSITIONAL_OR_KEYWORD)
        for each in parameters if each.name not in ("promote_integers", "correction")],
        return_annotation=Array)
    name = f"nan{function.__name__}"

    def skipping(*args: Any, **kwargs: Any) -> Array:
        arguments = bound(signature, name, args, kwargs).arguments
        a = as_array(name, arguments.pop("a"))
        if not dtypes.issubdtype(a.dtype, np.inexact):
            return function(a, **arguments)
        if function.__name__ in ("var", "std"):
            arguments["where"] = _not_nan(a, arguments.get("where"))
        is_nan = isnan(a)
        filler = (convert(instead, a.dtype) if np.isfinite(instead) else
                  extremum_identity("max" if instead < 0 else "min", a.dtype))
        out = function(choose(is_nan, filler, a), **arguments)
        if nothing is None or arguments.get("initial") is not None:
            return out
        are_nan = all(is_nan, arguments.get("axis"), keepdims=bool(arguments.get("keepdims")))
        return choose(are_nan, nothing, out)

    skipping.__signature__ = signature  # type: ignore[attr-defined]
    return documented(skipping, name, summary, f"{name}(np.array([1, np.nan, 3])) -> {result}")


nansum = _without_nan(sum, 0, "The sum of what is not nan.", "Array(4., dtype=float32)")
nanprod = _without_nan(prod, 1, "The product of what is not nan.", "Array(3., dtype=float32)")
nancumsum = _without_nan(cumsum, 0, "The running sum, nan counted as 0.",
                         "Array([1., 1., 4.], dtype=float32)")
nancumprod = _without_nan(cumprod, 1, "The running product, nan counted as 1.",
                          "Array([1., 1., 3.], dtype=float32)")
nanmax = _without_nan(max, -np.inf, "The largest of what is not nan; nan where all are.",
                      "Array(3., dtype=float32)", np.nan)
nanmin = _without_nan(min, np.inf, "The smallest of what is not nan; nan where all are.",
                      "Array(1., dtype=float32)", np.nan)
nanargmax = _without_nan(argmax, -np.inf, "Where the largest of what is not nan is; -1 where all "
                         "are nan.", "Array(2, dtype=int32)", -1)
nanargmin = _without_nan(argmin, np.inf, "Where the smallest of what is not nan is; -1 where all "
                         "are nan.", "Array(0, dtype=int32)", -1)
nanvar = _without_nan(var, 0, "The variance of what is not nan.", "Array(1., dtype=float32)")
nanstd = _without_nan(std, 0, "The standard deviation of what is not nan.",
                      "Array(1., dtype=float32)")


def nanmean(a: ArrayLike, axis: Axes = None, dtype: Any = None, out: None = None,
            keepdims: bool = False, where: ArrayLike | None = None) -> Array:
    """The mean of what is not nan.

    >>> nanmean(np.array([1, np.nan, 3]))
    Array(2., dtype=float32)
    """
    if not dtypes.issubdtype(a.dtype, np.inexact):
        return mean(a, axis, dtype, out, keepdims, where=where)
    dtype = dtype or a.dtype
    count = sum(_not_nan(a, where), axis, dtype, keepdims=keepdims)
    return nansum(a, axis, dtype, keepdims=keepdims, where=where) / count


def _not_nan(a: Any, where: ArrayLike | None) -> Any:
    """The mask of the elements that are not nan, and in `where`."""
    is_number = ~isnan(a)
    return is_number if where is None else logical_and(is_number, where)


public(globals())
