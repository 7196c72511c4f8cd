"""Universal functions as objects: `add.reduce`, `accumulate`, `at`, `outer`, `reduceat`.

Builds on `arithmetic`, `logic`, `reductions`, `vectorization`.  Chapter 20, *Precision, and where
NumPy differs*.  In JAX: `jax/_src/numpy/ufunc_api.py`, `ufuncs.py`.
"""

import functools
import inspect
import math
import operator
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import dtypes, lax
from minijax.core import Array, refuse
from minijax.numpy import arithmetic, logic, reductions, searching, unary
from minijax.numpy.arguments import (ArrayLike, array_and_axis, as_array, as_arrays,
                                     broadcast_to_shape, canonical_axis, check_arraylike, choose,
                                     convert, promote_dtypes_inexact, static_axes)
from minijax.numpy.shaping import moveaxis
from minijax.numpy.vectorization import vectorize
from minijax.transforms.prepared import prepared
from minijax.util.tracebacks import api_boundary, settle_for_good

_api_boundary: Callable[[Callable[..., Any]], Callable[..., Any]] = functools.partial(
    api_boundary, is_whole=True)


# Ufuncs of the same parts are equal.
_Parts = namedtuple(
    "_Parts", "func name nin nout nargs identity call reduce accumulate at reduceat")


class ufunc:
    """An elementwise function, with reductions and the like if it takes two arguments.

    >>> ten = ufunc(lambda x, y: 10 * x + y, 2, 1, name="ten")
    >>> int(ten(1, 2)), ten.accumulate(np.array([1, 2, 3]))
    (12, Array([  1,  12, 123], dtype=int32))

    Args:
      func: a function of scalars.
      nin, nout: the numbers of its arguments and results.
      name: its name; that of `func` by default.
      nargs: the number of its arguments, by default `nin`.
      identity: the identity element; None if there is none.
      call: the same function of arrays; by default `func` is vectorised.
      reduce, accumulate, at, reduceat: quicker implementations than a loop over the elements.
    """

    def __init__(self, func: Callable, /, nin: int, nout: int, *, name: str | None = None,
                 nargs: int | None = None, identity: Any = None, call: Callable | None = None,
                 reduce: Callable | None = None, accumulate: Callable | None = None,
                 at: Callable | None = None, reduceat: Callable | None = None) -> None:
        self.__name__ = self.__qualname__ = str(name or func.__name__)
        self.__doc__, self.__module__ = func.__doc__, ufunc.__module__
        self._parts = _Parts(
            func, self.__name__, operator.index(nin), operator.index(nout),
            operator.index(nin if nargs is None else nargs), identity, call, reduce, accumulate,
            at, reduceat)
        self._call: Callable[..., Any] = functools.partial(self._checked, call or vectorize(func))

    nin, nout, nargs, identity = (property(operator.attrgetter(f"_parts.{name}")) for name in (
        "nin", "nout", "nargs", "identity"))

    def __repr__(self) -> str:
        return f"<jnp.ufunc '{self.__name__}'>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ufunc) and self._parts == other._parts

    def __hash__(self) -> int:
        return hash(self._parts)

    def _checked(self, call: Callable[..., Any], *args: Any) -> Any:
        check_arraylike(self.__name__, *args)
        return call(*args)

    @_api_boundary
    def __call__(self, *args: ArrayLike, out: None = None, where: None = None) -> Any:
        for name, value in (("out", out), ("where", where)):
            if value is not None:
                raise NotImplementedError(f"{name} argument of {self}")
        try:
            return self._call(*args)
        except OverflowError as error:
            settle_for_good(error, self._parts.func, args)
            raise

    def _operand(self, method: str, a: Any, dtype: Any = None, out: Any = None) -> tuple[Any, Any]:
        """The array and dtype of a method that only functions of two arguments have."""
        refuse((self.nin != 2, f"{method} only supported for binary ufuncs"),
               (self.nout != 1, f"{method} only supported for functions returning a single value"),
               error=ValueError)
        name = f"{self.__name__}.{method}"
        if out is not None:
            raise NotImplementedError(f"out argument of {name}()")
        return as_array(name, a), dtypes.check_user_dtype_supported(dtype, name)

    def _result_dtype(self, x: Any) -> Any:
        """The dtype of the function's result for two elements of an array."""
        element = lax.full((), 0, x.dtype)
        return self._call(element, element).dtype

    @_api_boundary
    def reduce(self, a: ArrayLike, axis: Any = 0, dtype: Any = None, out: None = None,
               keepdims: bool = False, initial: ArrayLike | None = None,
               where: ArrayLike | None = None) -> Array:
        """The elements along an axis (None: all), joined from the first to the last.

        >>> ufunc(lambda x, y: x - y, 2, 1).reduce(np.array([9, 2, 3]))
        Array(4, dtype=int32)

        Args:
          initial: what comes before the first.
          where: which elements take part; then there must be an identity, or `initial`.
        """
        (x, dtype), name = self._operand("reduce", a, dtype, out), f"{self.__name__}.reduce"
        if where is not None:
            [mask] = as_arrays(name, where)
            if self.identity is None and initial is None:
                raise ValueError(f"reduction operation '{self.__name__}' does not have an "
                                 "identity, so to use a where mask one has to specify 'initial'.")
            if mask.dtype != bool:
                raise ValueError(f"where argument must have dtype=bool; got dtype={mask.dtype}")
        if self._parts.reduce is not None:
            return self._parts.reduce(x, axis=axis, dtype=dtype,
                                      keepdims=keepdims, initial=initial, where=where)
        if isinstance(axis, tuple):
            raise NotImplementedError("tuple of axes")
        axis = static_axes(name, axis)
        if where is not None:
            where = array_and_axis(name, broadcast_to_shape(where, x.shape), axis)[0]
        rows, at = array_and_axis(name, x, axis)
        result = self._fold(moveaxis(convert(rows, dtype or self._result_dtype(x)), at, 0), initial,
                            None if where is None else moveaxis(where, at, 0))
        return lax.expand_dims(result, range(x.ndim) if axis is None else (at,)) if (
            keepdims) else result

    def _fold(self, rows: Any, initial: Any, mask: Any) -> Any:
        """The fold of the rows from the first to the last; masked ones are left out."""
        initial = self.identity if initial is None else initial
        if initial is None and not len(rows):
            raise ValueError(f"zero-size array to reduction operation {self.__name__} which has "
                             "no identity")
        start = 0 if initial is not None else 1
        first = rows[0] if start else broadcast_to_shape(
            convert(initial, rows.dtype), rows.shape[1:])

        def step(i: Any, value: Any) -> Any:
            result = convert(self._call(value, rows[i]), rows.dtype)
            return result if mask is None else choose(mask[i], result, value)
        return lax.fori_loop(start, len(rows), step, first) if len(rows) else first

    @_api_boundary
    def accumulate(self, a: ArrayLike, axis: Any = 0, dtype: Any = None, out: None = None) -> Array:
        """For each index along an axis, the elements up to there, joined.

        >>> ufunc(lambda x, y: x - y, 2, 1).accumulate(np.array([9, 2, 3]))
        Array([9, 7, 4], dtype=int32)
        """
        x, dtype = self._operand("accumulate", a, dtype, out)
        if self._parts.accumulate is not None:
            return self._parts.accumulate(x, axis=axis, dtype=dtype)
        if axis is None or isinstance(axis, tuple):
            raise ValueError("accumulate does not allow multiple axes")
        at = canonical_axis(axis, x.ndim)
        rows: Any = moveaxis(convert(x, dtype or self._result_dtype(x)), at, 0)
        if not len(rows):
            return convert(x, rows.dtype)

        def step(value: Any, row: Any) -> Any:
            result = convert(self._call(value, row), rows.dtype)
            return result, result
        _, later = lax.scan(step, rows[0], rows[1:])
        return moveaxis(lax.concatenate([rows[:1], later], 0), 0, at)

    @_api_boundary
    def at(self, a: ArrayLike, indices: Any, b: ArrayLike | None = None, /, *,
           inplace: bool = True) -> Array:
        """The array with the elements at these indices joined with `b`, again where one recurs.

        >>> ufunc(lambda x, y: x - y, 2, 1).at(np.array([9, 2]), np.array([0, 0]), 3, inplace=False)
        Array([3, 2], dtype=int32)

        Args:
          inplace: must be False, as no array is ever written to.
        """
        if inplace:
            raise NotImplementedError(
                "Because JAX arrays are immutable, jnp.ufunc.at() cannot operate inplace like "
                "np.ufunc.at(). Instead, you can pass inplace=False and capture the result; e.g.\n"
                ">>> arr = jnp.add.at(arr, ind, val, inplace=False)\n")
        x, *others = as_arrays(f"{self.__name__}.at", *((a,) if b is None else (a, b)))
        if self._parts.at is not None:
            return self._parts.at(x, indices, *others)
        all_indices: Any = lax.reshape(lax.iota(np.int32, x.size), x.shape)
        # those out of bounds are dropped
        selected = all_indices.at[indices].get(mode="fill", fill_value=x.size)
        operands: Any = [broadcast_to_shape(y, selected.shape).ravel() for y in others]
        flat_indices = selected.ravel()
        dtype = self._call(*(lax.full((), 0, y.dtype) if y.ndim or not y.weak_type else y
                             for y in (x, *others))).dtype

        def step(i: Any, flat: Any) -> Any:
            result = self._call(flat[flat_indices[i]], *(y[i] for y in operands))
            return flat.at[flat_indices[i]].set(convert(result, dtype), mode="drop")
        flat = lax.fori_loop(0, len(flat_indices), step, convert(x.ravel(), dtype))
        return lax.reshape(flat, x.shape)

    @_api_boundary
    def reduceat(self, a: ArrayLike, indices: Any, axis: Any = 0, dtype: Any = None,
                 out: None = None) -> Array:
        """From each index to before the next, the elements joined; at least the one there.

        >>> ufunc(lambda x, y: x - y, 2, 1).reduceat(np.array([9, 2, 3]), np.array([0, 2]))
        Array([7, 3], dtype=int32)
        """
        x, dtype = self._operand("reduceat", a, dtype, out)
        if self._parts.reduceat is not None:
            return self._parts.reduceat(x, indices, axis=axis, dtype=dtype)
        starts = as_array(f"{self.__name__}.reduceat", indices)
        refuse((dtypes.kind(starts.dtype) not in "iu", "indices must have an integer type"),
               (not x.ndim, f"reduceat: a must have 1 or more dimension, got a.shape={x.shape}"),
               (starts.ndim != 1, "reduceat: indices must be one-dimensional, got "
                f"indices.shape={starts.shape}"),
               (axis is None or isinstance(axis, tuple | list), "reduceat requires a single "
                "integer axis."), error=ValueError)
        at = canonical_axis(axis, x.ndim)
        rows: Any = moveaxis(x, at, 0)
        ends = lax.concatenate([starts[1:], lax.full((1,), len(rows), starts.dtype)], 0)
        column = (-1,) + (1,) * (x.ndim - 1)
        starts, ends = (lax.reshape(each, (each.size, *column[1:])) for each in (starts, ends))

        def step(value: Any, numbered: Any) -> Any:
            i, row = numbered
            return choose((i > starts) & (i < ends), self._call(value, row), value), None
        numbers = lax.iota(starts.dtype, len(rows))
        segments, _ = lax.scan(step, searching.take(rows, starts.ravel(), 0), (numbers, rows))
        return moveaxis(segments, 0, at)

    @_api_boundary
    def outer(self, A: ArrayLike, B: ArrayLike, /) -> Array:
        """The function of each element of one array and each of another.

        >>> ufunc(lambda x, y: 10 * x + y, 2, 1).outer(np.array([1, 2]), np.array([3, 4]))
        Array([[13, 14],
               [23, 24]], dtype=int32)
        """
        x, y = self._operand("outer", A)[0], as_array(f"{self.__name__}.outer", B)
        return self._call(lax.expand_dims(x, range(x.ndim, x.ndim + y.ndim)), y)


def frompyfunc(func: Callable[..., Any], /, nin: int, nout: int, *, identity: Any = None) -> ufunc:
    """A ufunc from a function of scalars.

    >>> frompyfunc(lambda x, y: 10 * x + y, 2, 1).reduce(np.array([1, 2, 3]))
    Array(123, dtype=int32)

    Args:
      nin, nout: the numbers of its arguments and results.
      identity: the identity element, if there is one.
    """
    return ufunc(func, nin, nout, identity=identity)


# ── The ufuncs of `numpy` ────────────────────────────────────────────────────────────────────

def _reduction(reduce: Callable, join: Callable, identity: Any, prepare: Callable) -> Callable:
    """A reduction of `lax` with an initial value and a mask."""
    reduction = reductions.Reduction(reduce, join, lambda dtype: identity)

    def reduced(a: Any, axis: Any, dtype: Any, **options: Any) -> Any:
        x = prepare(a)
        return reductions.reduced("reduce", convert(x, dtype or x.dtype), axis,
                                  reduction=reduction, **options)
    return reduced


def _check_integer(x: Any) -> Any:
    if dtypes.kind(x.dtype) not in "biu":
        raise ValueError(f"integer argument required; got dtype={x.dtype}")
    return x


def _log_of_sum(x: Any, axes: tuple[int, ...]) -> Any:
    """The logarithm of the sum of exponentials; -inf for no elements."""
    largest = lax.stop_gradient(reductions.max(unary.real(x), axes, keepdims=True, initial=-np.inf))
    largest = choose(lax.is_finite(largest), largest, 0)
    return lax.log(lax.reduce_sum(lax.exp(x - largest), axes)) + lax.squeeze(largest, axes)


def _extremum(reduce: Callable[..., Any]) -> Callable[..., Array]:
    return lambda a, dtype, **options: reduce(convert(a, dtype or a.dtype), **options)


def _ufunc(function: Callable[..., Any], identity: Any = None, **ways: Any) -> ufunc:
    """A function of this package, which checks its arguments itself, as a ufunc."""
    out = ufunc(function, len(inspect.signature(function).parameters), 1, identity=identity,
                call=function, **ways)
    out._call, out.__module__ = prepared(function), "minijax.numpy"
    return out


def _scatter_method(of_numbers: str, of_truths: str) -> Callable[..., Array]:
    return lambda x, indices, b: getattr(
        x.at[indices], of_truths if x.dtype == bool else of_numbers)(b)


_inexact, _is_nonzero = lambda x: promote_dtypes_inexact(x)[0], lambda x: x != 0

add = _ufunc(arithmetic.add, 0, reduce=reductions.sum, accumulate=reductions.cumsum,
             at=_scatter_method("add", "max"))
multiply = _ufunc(arithmetic.multiply, 1, reduce=reductions.prod, accumulate=reductions.cumprod,
                  at=_scatter_method("mul", "min"))
subtract = _ufunc(arithmetic.subtract, at=_scatter_method("subtract", "subtract"))
negative = _ufunc(unary.negative)
maximum: Any = _ufunc(arithmetic.maximum, reduce=_extremum(reductions.max))
minimum = _ufunc(arithmetic.minimum, reduce=_extremum(reductions.min))
bitwise_and, bitwise_or, bitwise_xor, logical_and, logical_or, logical_xor = (
    _ufunc(function, e, reduce=_reduction(reduce, join, e, prepare))
    for function, reduce, join, e, prepare in (
        (logic.bitwise_and, lax.reduce_and, lax.bitwise_and, -1, _check_integer),
        (logic.bitwise_or, lax.reduce_or, lax.bitwise_or, 0, _check_integer),
        (logic.bitwise_xor, lax.reduce_xor, lax.bitwise_xor, 0, _check_integer),
        (logic.logical_and, lax.reduce_and, lax.bitwise_and, True, _is_nonzero),
        (logic.logical_or, lax.reduce_or, lax.bitwise_or, False, _is_nonzero),
        (logic.logical_xor, lax.reduce_xor, lax.bitwise_xor, False, _is_nonzero)))
logaddexp = _ufunc(arithmetic.logaddexp, -np.inf, reduce=_reduction(
    _log_of_sum, arithmetic.logaddexp, -np.inf, _inexact))
logaddexp2 = _ufunc(arithmetic.logaddexp2, -np.inf, reduce=_reduction(
    lambda x, axes: _log_of_sum(x * math.log(2), axes) / math.log(2), arithmetic.logaddexp2,
    -np.inf, _inexact))
