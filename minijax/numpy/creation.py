"""Creation of arrays: from Python and NumPy values, from a shape, from a range.

Builds on `shaping` and `interchange`.  Chapters 01 and 15, *Non-array inputs*.
In JAX: `jax/_src/numpy/array_constructors.py`, `array_creation.py`, `lax_numpy.py`.
"""

from __future__ import annotations

import functools
import math
import operator
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from minijax import config, core, dtypes, errors, lax, tree_util
from minijax.core import Array, ArrayImpl, ShapedArray, Tracer, alias, refuse
from minijax.placement import named_sharding, resharding
from minijax.numpy import interchange, shaping
from minijax.numpy.arguments import (
    ArrayLike, Inexact, Template, as_array, broadcast_arrays_to_one_shape, broadcast_to_shape,
    check_arraylike, check_promotion, convert, divided_by_constant, promote_shapes, public,
    shape_of_argument, static_index, static_value)
from minijax.primitives.ad_util import on_mesh
from minijax.primitives.convert import copy_p, filling
from minijax.primitives.keys import random_wrap_p
from minijax.primitives.threefry import fused_multiply_add


# ── From values ──────────────────────────────────────────────────────────────────────────────

def array(object: Any, dtype: Any = None, *args: Any, copy: bool = True,
          order: str | None = "K", ndmin: int = 0, device: Any = None) -> Array:
    """An array of these values: numbers, arrays, or lists of lists of them.

    >>> array([1, 2, 3])
    Array([1, 2, 3], dtype=int32)
    >>> array(1.5)
    Array(1.5, dtype=float32, weak_type=True)

    Raises:
      TypeError: for what is no number. ValueError: for lists of uneven lengths, and None.
    """
    if args:
        return _array_of_positional(object, dtype, *args, copy=copy, order=order, ndmin=ndmin)
    if order not in ("K", "C", None):
        raise NotImplementedError("Only implemented for order='K'")
    core.base_trace.notify("cast", object, dtype)
    out = _array(copied(object) if copy and isinstance(object, Array) else object, dtype)
    return lax.broadcast_to_rank(out, ndmin) if out.ndim < ndmin else out


def _array_of_positional(object: Any, dtype: Any, *args: Any, **named: Any) -> Array:
    """`array` with options by position, of which none may be named as well."""
    options = dict(zip(named, args, strict=False))
    if len(args) > len(named):
        raise TypeError(f"array() takes at most {2 + len(named)} positional arguments ("
                        f"{2 + len(args)} given)")
    for name in options:
        if named[name] != _DEFAULTS[name]:
            raise TypeError(f"array() got multiple values for argument '{name}'")
    errors.warn("Passing the copy, order, and ndmin arguments to jnp.array positionally is "
                "deprecated. Use keyword arguments instead.", DeprecationWarning)
    return array(object, dtype, **{**named, **options})


_DEFAULTS = {"copy": True, "order": "K", "ndmin": 0}


def asarray(a: Any, dtype: Any = None, order: str | None = None, *,
            copy: bool | None = None, device: Any = None) -> Array:
    """An array of these values; an array is returned unchanged.

    Another library's array on a GPU is read where it lies, so do not change it afterwards.

    >>> x = asarray([1.0, 2.0])
    >>> asarray(x) is x
    True
    """
    if not copy and interchange.is_on_gpu(a):
        a = _narrowed(interchange.from_gpu(a))
    core.refuse_mask(a)  # which `array` drops
    return array(a, dtype, order=order, copy=bool(copy))


def astype(x: ArrayLike, dtype: Any, /, *, copy: bool = False, device: Any = None) -> Array:
    """The array with its elements converted.

    >>> astype(np.array([1.7, -1.7]), int)
    Array([ 1, -1], dtype=int32)
    """
    dtype = dtype or dtypes.default_float_dtype()
    core.base_trace.notify("cast", x, dtype)
    is_complex = dtypes.issubdtype(core.get_aval(x).dtype, np.complexfloating)
    if is_complex and np.dtype(dtype).kind == "b":
        return lax.ne(x, lax.full_like(x, 0))
    if is_complex and np.dtype(dtype).kind != "c":
        errors.warn("Casting from complex to real dtypes will soon raise a ValueError. Please "
                    "first use jnp.real or jnp.imag to take the real/imaginary component of your "
                    "input.", DeprecationWarning)
        x = lax.real(x)
    converted = convert(x, dtype)
    return copied(converted) if copy else converted


def copy(a: ArrayLike, order: str | None = None) -> Array:
    """A new array of these values, which stays when `a` is donated.

    >>> copy(np.array([1, 2]))
    Array([1, 2], dtype=int32)
    """
    if order not in (None, "K"):
        raise NotImplementedError("Only implemented for order='K'")
    return copied(a)


def copied(x: Any) -> Any:
    """Another array: one with the same buffer, which is immutable; of a tracer, a copy."""
    return copy_p.bind(x) if isinstance(x, Tracer) else alias(x)


def _array(x: Any, dtype: Any) -> Any:
    if isinstance(x, (list, tuple)):
        return _array_of_sequence(x, dtype)
    x = _as_typed(x)
    if isinstance(x, Array):
        return x if dtype is None else convert(x, dtype)
    return _array_of_numpy(x, dtype)


def _as_typed(x: Any) -> Any:
    """A scalar or an array for `x`, by `__jax_array__`, `__array__`, a buffer or a sequence."""
    if dtypes.python_type(x) is not None:
        return x
    x = x.__jax_array__() if hasattr(x, "__jax_array__") else x
    if x is None:
        raise ValueError("None is not a valid value for jnp.array")
    if interchange.is_on_gpu(x):
        return _narrowed(interchange.copied(interchange.from_gpu(x)))
    return x if isinstance(x, np.generic | Array) else np.asarray(x)  # without a mask


def _narrowed(x: Any) -> Any:
    """The array with 64 bits narrowed to 32, unless 64 bits are enabled."""
    dtype = dtypes.canonicalize_dtype(x.dtype)
    core.base_trace.notify("narrow", x, dtype)
    return x if x.dtype == dtype else convert(x, dtype)


def _array_of_numpy(x: Any, dtype: Any) -> ArrayImpl:
    if dtype is None:
        value = core.as_value(x)
        if dtypes.python_type(x) is not None:  # of others `as_value` notifies
            core.base_trace.notify("narrow", x, value.dtype)
        return _constant_of_program(value)
    if dtypes.python_type(x) is None:
        with np.errstate(all="ignore"):
            x = np.asarray(x).astype(dtype)
    elif dtype == dtypes.dtype(x):
        core.as_value(x)  # raises for an integer that does not fit
    values = np.array(x, dtype=dtype, order="C")
    dtypes.checked(values.dtype, x)
    return _constant_of_program(core.array_from_buffer(values, ShapedArray(values.shape, dtype)))


def _constant_of_program(x: Any) -> Any:
    """A scalar made while a program is traced is a literal of it, and a constant of inner ones."""
    x, level = alias(x), core.current_trace.get().staging_level
    if isinstance(x, ArrayImpl) and level is not None and not (
            x.ndim or dtypes.is_key(x.dtype) or x.dtype == dtypes.float0):
        x._level = weakref.ref(level)
    return x


def _array_of_sequence(items: Sequence, dtype: Any) -> Any:
    leaves = list(_leaves(items))
    if dtype is None:
        dtype = dtypes.lattice_result_type(*leaves)[0] if leaves else dtypes.default_float_dtype()
    if not isinstance(dtype, np.dtype) or any(isinstance(leaf, Tracer) for leaf in leaves):
        return _stacked(items, dtype)
    if any(isinstance(leaf, Array) for leaf in leaves):
        numbers = (leaf._buffer if isinstance(leaf, Array) else leaf for leaf in leaves)
        buffers = tree_util.tree_map(lambda _: next(numbers), items,
                           is_leaf=lambda x: not isinstance(x, (list, tuple)))
        try:
            values = np.array(buffers, dtype=dtype)
        except ValueError:  # of shapes that differ: lax says which
            return _stacked(items, dtype)
    else:
        values = np.array(items, dtype=dtype)
    has_numpy = config.debug_dtype_truncation.value and any(
        isinstance(x, np.generic | np.ndarray) for x in leaves)
    core.base_trace.notify("narrow", np.array(items) if has_numpy else values, dtype)
    return _array_of_numpy(values, dtype)


def _stacked(items: Sequence, dtype: Any) -> Any:
    parts = [convert(_array(item, dtype), dtype) for item in items]
    return lax.concatenate([lax.expand_dims(x, (0,)) for x in parts], 0)


def _leaves(items: Sequence) -> Iterator[Any]:
    for item in items:
        if isinstance(item, (list, tuple)):
            yield from _leaves(item)
        else:
            yield _as_typed(item)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """An array from an array of another library, through the DLPack protocol.

    Memory of a GPU is shared, so do not change it afterwards; memory of the host is copied.

    Args:
      x: an object with ``__dlpack__`` and ``__dlpack_device__``.
      device: the device of the result; by default that of `x`.
      copy: True copies on a GPU, too; False shares memory of the host, which must not be changed
        afterwards.

    Raises:
      BufferError: for a device, strides or a dtype that cannot be taken.
      ValueError: for memory of the host that cannot be shared, with `copy=False`.

    >>> from_dlpack(np.arange(2, dtype="int32"))
    Array([0, 1], dtype=int32)
    """
    values = interchange.from_dlpack(x)
    if isinstance(values, np.ndarray):
        return asarray(values) if copy is not False else interchange.shared(values)
    return _narrowed(interchange.copied(values) if copy else values)


# ── From a shape ─────────────────────────────────────────────────────────────────────────────

def full(shape: Any, fill_value: ArrayLike, dtype: Any = None, *, device: Any = None) -> Array:
    """An array of this shape, filled with one value.

    >>> full((2,), 7, dtype="int8")
    Array([7, 7], dtype=int8)

    Raises:
      TypeError: when the shape is traced.
    """
    check_arraylike("full", fill_value)
    return _full(shape, _element(fill_value, dtype or dtypes.dtype(fill_value),
                                 dtype is None and dtypes.is_weakly_typed(fill_value)))


def _element(value: Any, dtype: Any, weak_type: bool) -> Any:
    """The element of a constant array; a number stands for all words of a key."""
    if isinstance(dtype, dtypes.KeyType) and dtypes.dtype(value) != dtype:
        return random_wrap_p.bind(lax.full(dtype.shape, value, np.uint32), impl=dtype)
    return value if dtypes.is_key(dtype) else filling(value, dtype, weak_type)


def _full(shape: Any, value: Any) -> Array:
    shape = shape_of_argument(shape)
    return _constant_of_program(value) if value.shape == shape else broadcast_to_shape(value, shape)


def _constant(shape: Any, number: int, dtype: Any) -> Array:
    dtype = dtype or dtypes.default_float_dtype()
    make = _element if isinstance(dtype, dtypes.KeyType) else convert  # which is cached
    return _full(shape, make(number, dtype, False))


def zeros(shape: Any, dtype: Any = None, *, device: Any = None) -> Array:
    """An array of zeros; float32 by default.

    >>> zeros((2, 2), dtype="int32")
    Array([[0, 0],
           [0, 0]], dtype=int32)
    """
    return _constant(shape, 0, dtype)


def ones(shape: Any, dtype: Any = None, *, device: Any = None) -> Array:
    """An array of ones; float32 by default.

    >>> ones(3)
    Array([1., 1., 1.], dtype=float32)
    """
    return _constant(shape, 1, dtype)


def empty(shape: Any, dtype: Any = None, *, device: Any = None) -> Array:
    """An uninitialised array, which here is all zeros.

    >>> empty(2)
    Array([0., 0.], dtype=float32)
    """
    return zeros(shape, dtype)


def full_like(a: Template, fill_value: ArrayLike, dtype: Any = None, shape: Any = None,
              *, device: Any = None) -> Array:
    """An array of one value, with the shape and dtype of another.

    >>> full_like(array([1, 2]), 7)
    Array([7, 7], dtype=int32)
    """
    return _like(a, fill_value, dtype, shape)


def _like(a: Any, value: Any, dtype: Any, shape: Any) -> Array:
    kept = a.dtype if isinstance(a, Array) else dtypes.canonicalize_dtype(a.dtype)
    value = _element(value, dtype or kept, dtype is None and a.weak_type)
    out = _full(a.shape if shape is None else shape, value)
    if isinstance(a, Tracer):
        return on_mesh(out, a.aval)
    return resharding.shard_value(out, named_sharding.sharding_like(a, out.shape))


def zeros_like(a: Template, dtype: Any = None, shape: Any = None, *, device: Any = None) -> Array:
    """An array of zeros, with the shape and dtype of another.

    >>> zeros_like(array([1, 2]))
    Array([0, 0], dtype=int32)
    """
    return _like(a, 0, dtype, shape)


def ones_like(a: Template, dtype: Any = None, shape: Any = None, *, device: Any = None) -> Array:
    """An array of ones, with the shape and dtype of another.

    >>> ones_like(array([1.5, 2]))
    Array([1., 1.], dtype=float32)
    """
    return _like(a, 1, dtype, shape)


def empty_like(prototype: Template, dtype: Any = None, shape: Any = None, *,
               device: Any = None) -> Array:
    """An uninitialised array with the shape and dtype of another; here it is all zeros.

    >>> empty_like(array([1, 2]))
    Array([0, 0], dtype=int32)
    """
    return _like(prototype, 0, dtype, shape)


# ── Ranges ───────────────────────────────────────────────────────────────────────────────────

def arange(start: Any, stop: Any = None, step: Any = None, dtype: Any = None, *,
           device: Any = None) -> Array:
    """Evenly spaced numbers from `start`, by default 0, up to but not including `stop`.

    >>> arange(4), arange(1, 2, 0.5)
    (Array([0, 1, 2, 3], dtype=int32), Array([1. , 1.5], dtype=float32))

    Raises:
      ConcretizationTypeError: when an argument is traced: the length depends on it.
    """
    if start is None:
        raise TypeError("must be real number, not NoneType")
    if stop is None and step is None:
        start, stop = None, start
    arguments = {name: x for name, x in (("start", start), ("stop", stop), ("step", step))
                 if x is not None}
    values = {name: static_value(x, f"It arose in the jnp.arange argument {name!r}")[()]
              for name, x in arguments.items()}
    refuse(*((np.ndim(x) > 0, f"jax.numpy.arange: arguments must be scalars; got {name}={x}")
             for name, x in values.items()), error=ValueError)
    dtype = dtypes.result_type(*arguments.values()) if dtype is None else dtype
    if any(np.iscomplexobj(x) for x in values.values()):
        raise ValueError("Passing complex start/stop/step to jnp.arange is no longer supported "
                         "starting in JAX v0.10.0.")
    if "stop" not in values:
        values["stop"] = values.pop("start")
    first, last, stride = values.get("start", 0), values["stop"], values.get("step")
    if stride is None:
        numbers = lax.iota(dtype, max(0, math.ceil(last - first)))
        return convert(first, dtype) + numbers if first else numbers
    if stride == 0:
        raise ZeroDivisionError("division by zero")
    return array(np.arange(first, last, stride), dtype=dtype)


def linspace(start: ArrayLike, stop: ArrayLike, num: Any = 50, endpoint: bool = True,
             retstep: bool = False, dtype: Any = None, axis: int = 0, *, device: Any = None) -> Any:
    """`num` evenly spaced numbers from `start` to `stop`, both included.

    >>> linspace(0, 1, 5)
    Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)

    Raises:
      ConcretizationTypeError: when `num` is traced.
    """
    num = static_index(num, "'num' argument of jnp.linspace")
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    if dtype is None:
        dtype = dtypes.to_inexact_dtype(dtypes.result_type(start, stop))
    dtype = dtypes.canonicalize_dtype(dtype)
    first, last = (astype(x, dtypes.to_inexact_dtype(dtype)) for x in (start, stop))
    first, last = broadcast_arrays_to_one_shape(first, last)
    steps = num - 1 if endpoint else num
    out = _interpolated(first, last, num, steps, endpoint)
    step = divided_by_constant(last - first, steps) if steps > 0 else convert(np.nan, first.dtype)
    out = convert(lax.floor(out) if dtypes.issubdtype(dtype, np.integer) else out, dtype)
    out = shaping.moveaxis(out, 0, operator.index(axis))
    return (out, step) if retstep else out


def _interpolated(first: Any, last: Any, num: int, steps: int, endpoint: bool) -> Any:
    """``first * (1 - t) + last * t`` along a new leading axis; the last number is exact."""
    rank = first.ndim + 1
    first, last = lax.expand_dims(first, (0,)), lax.expand_dims(last, (0,))
    if num < 2:
        return lax.broadcast_in_dim(first, (num, *first.shape[1:]), range(rank))
    count: Any = lax.reshape(lax.iota(first.dtype, steps), (steps, *(1,) * (rank - 1)))
    if rank == 1 and first.dtype.kind == "f" and not core.current_trace.get().staging_level:
        # The rounding of XLA, which multiplies by the reciprocal; a staged program has JAX's steps.
        part = first.dtype.type(1) / first.dtype.type(steps)
        out = fused_multiply_add(count, last * part, first * (1.0 - count * part))
    else:
        t = count / float(steps)
        out = first * (1.0 - t) + last * t
    return lax.concatenate([out, last], 0) if endpoint else out


def logspace(start: ArrayLike, stop: ArrayLike, num: Any = 50, endpoint: bool = True,
             base: ArrayLike = 10.0, dtype: Any = None, axis: int = 0) -> Array:
    """`num` numbers whose logarithms are evenly spaced: powers of `base`.

    >>> logspace(0, 2, 3)
    Array([  1.,  10., 100.], dtype=float32)
    """
    check_promotion(start, stop)
    exponents: Any = linspace(start, stop, num, endpoint)
    bases = convert(as_array("logspace", base), exponents.dtype)
    powers = lax.pow(*promote_shapes("logspace", bases, exponents))
    return shaping.moveaxis(convert(powers, dtype or powers.dtype), 0, operator.index(axis))


def geomspace(start: Inexact, stop: Inexact, num: Any = 50, endpoint: bool = True,
              dtype: Any = None, axis: int = 0) -> Array:
    """`num` numbers, each a constant multiple of the one before; all of one sign.

    >>> geomspace(1, 8, 4)
    Array([1., 2., 4., 8.], dtype=float32)
    """
    sign = lax.sign(start)
    logs = linspace(lax.log(sign * start), lax.log(sign * stop), num, endpoint)
    out = lax.mul(*promote_shapes("geomspace", lax.exp(logs), sign))
    return shaping.moveaxis(convert(out, dtype or out.dtype), 0, operator.index(axis))


public(globals())


def _refusing_sizes_apart(function: Callable[..., Array]) -> Callable[..., Array]:
    """The function, with JAX's words about a second size in the place of a dtype."""
    @functools.wraps(function)
    def of_shape(*args: Any, **named: Any) -> Array:
        if len(args) > 1 and isinstance(args[0], int) and isinstance(args[1], int):
            name, sizes = f"jax.numpy.{function.__name__}", f"({args[0]}, {args[1]})"
            raise TypeError(f"Cannot interpret '{args[1]}' as a data type.\n\nDid you accidentally "
                            f"write `{name}{sizes}` when you meant `{name}({sizes})`, i.e. with a "
                            "single tuple argument for the shape?")
        return function(*args, **named)
    return of_shape


# Around what `public` makes, which refuses the number as a dtype before the function runs.
zeros, ones, empty = map(_refusing_sizes_apart, (zeros, ones, empty))
