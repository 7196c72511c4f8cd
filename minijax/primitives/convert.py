"""Conversions of dtype, constant arrays, copies, and stop_gradient.

Builds on `families`.  Chapter 01, *Arrays, dtypes and weak types*.
In JAX: `jax/_src/lax/lax.py`, `jax/_src/ad_util.py`.
"""

from typing import Any

import numpy as np

from minijax import core, dtypes, errors, tree_util
from minijax.core import Array, ArrayImpl, Example, Primitive, ShapedArray, Zero, dtype_name
from minijax.primitives import ad_util, axes, examples, slots
from minijax.primitives.families import constant_in_all, elementwise
from minijax.primitives.shape import broadcast


# ── Conversion ───────────────────────────────────────────────────────────────────────────────

def _convert_type(x: ShapedArray, *, new_dtype: Any, weak_type: bool) -> list[ShapedArray]:
    if core.has_key_dtype(x):
        raise ValueError(f"Cannot convert_element_type from {x.dtype.name} to "
                         f"{dtype_name(new_dtype)}")
    return [x.update(dtype=new_dtype, weak_type=weak_type)]


def _convert_impl(x: np.ndarray, new_dtype: Any, weak_type: bool) -> list[np.ndarray]:
    if new_dtype == dtypes.float0:
        return [np.zeros(x.shape, bool)]
    return [slots.numpy_scalars().convert(x if new_dtype.kind == "c" else x.real, new_dtype)]


def _convert_jvp(primals: list, tangents: list, **params: Any) -> core.Outs:
    out = convert_element_type_p.bind(*primals, **params)
    varies = dtypes.issubdtype(out.dtype, np.inexact)
    return [out], [convert_element_type_p.bind(*tangents, **params) if varies
                   else Zero(out.aval.to_tangent_aval())]


def _convert_transpose(ct: Array, x: Any, **_: Any) -> Array:
    """The cotangent of a real operand is real: a complex one is converted without a warning."""
    dtype, weak_type = x.aval.dtype, x.aval.weak_type
    if ct.dtype.kind == "c":
        return convert_element_type_p.bind(ct, new_dtype=dtype, weak_type=weak_type)
    return converted(ct, dtype, weak_type)


def _convert_examples() -> list[Example]:
    numbers = [0, 1, -1, 2.5, -2.5, 300, -300, 3e9, 65504]
    arrays: list[np.ndarray] = [
        np.array([*numbers, np.nan, np.inf, -np.inf, -0.], np.float32),
        np.array([0, 1, -1, 300, 2**31 - 1, -2**31], np.int32), np.array([True, False]),
        np.array(2.5, np.float32), np.zeros(0, np.float32), np.array([0, 1, 255], np.uint8),
        np.array([1, 65504, np.nan], np.float16)]
    targets = ["float32", "int32", "int8", "uint8", "bool", "float16", dtypes.bfloat16]
    smooth = np.array([.5, -2], np.float64), np.dtype("float64"), False
    return examples.table("new_dtype weak_type", smooth, *(
        (x, np.dtype(d), False) for x in arrays for d in targets))()


convert_element_type_p = elementwise(
    "convert_element_type", impl=_convert_impl,
    abstract_eval=_convert_type, may_produce_nan=False, complex_parts=slots.in_pairs("convert"),
    jvp=_convert_jvp, transpose=ad_util.transposed(_convert_transpose),
    element=lambda s, x, new_dtype, weak_type: s.convert(x, new_dtype),
    examples=_convert_examples)


def convert_element_type(operand: Any, new_dtype: Any) -> Any:
    """`operand` converted to another dtype: floats become integers by truncation and saturation.

    Args:
      operand: an array or number.
      new_dtype: a dtype; 64 bits become 32 unless jax_enable_x64 is set, with a warning.

    Returns:
      An array of the same shape; the operand itself where nothing changes.

    >>> convert_element_type(2.7, "int32")
    Array(2, dtype=int32)
    """
    dtype = dtypes.check_user_dtype_supported(new_dtype, "convert_element_type")
    core.base_trace.notify("cast", operand, dtype, numbers=True)
    return converted(operand, dtype, False)


def converted(operand: Any, dtype: Any, weak_type: bool = False) -> Any:
    """Convert, unless nothing changes; a scalar of the program stays a literal."""
    value: Any
    if isinstance(operand, Array) or not _is_number(operand):
        operand = value = core.as_value(core.stood_for(operand))
        if operand.dtype == dtype and operand.weak_type == weak_type:
            return operand
        if core.is_literal(operand, core.current_trace.get().staging_level):
            value = operand._buffer
    else:
        value = np.asarray(operand)  # it may be out of range for an array of its own type
    if dtypes.is_key(value.dtype) or dtypes.is_key(dtype):
        raise ValueError(f"Cannot convert_element_type from {dtype_name(value.dtype)} to "
                         f"{dtype_name(dtype)}")
    if value.dtype.kind == "c" and dtype.kind in "biuf":
        errors.warn("Casting complex values to real discards the imaginary part",
                    np.exceptions.ComplexWarning)
    if value is operand:
        return convert_element_type_p.bind(operand, new_dtype=dtype, weak_type=weak_type)
    aval = ShapedArray((), dtype, weak_type)
    if dtype == dtypes.float0:
        return ad_util.zeros(aval)
    number = slots.numpy_scalars().convert(value if dtype.kind in "bc" else value.real, dtype)
    return ArrayImpl(np.asarray(number), aval, is_literal=True)


def _is_number(x: Any) -> bool:
    """Whether `x` is a number of Python or NumPy."""
    return dtypes.python_type(x) is not None or (
        isinstance(x, np.generic) and dtypes.is_valid_dtype(x.dtype))


def full(shape: Any, fill_value: Any, dtype: Any = None) -> Any:
    """An array of one number.

    Args:
      shape: a sequence of sizes.
      fill_value: a scalar.
      dtype: by default that of the scalar, weak if it is.

    Raises:
      TypeError: where `fill_value` is no scalar, or `shape` no sequence of sizes.

    >>> full((2,), 1.5)
    Array([1.5, 1.5], dtype=float32, weak_type=True)
    """
    shape = axes.canonical_shape(shape)
    if np.ndim(fill_value):
        raise TypeError("full must be called with scalar fill_value, got fill_value.shape "
                        f"{np.shape(fill_value)}.")
    weak_type = dtype is None and dtypes.is_weakly_typed(fill_value)
    dtype = (dtypes.dtype(fill_value) if dtype is None
             else dtypes.check_user_dtype_supported(dtype, "full"))
    scalar = filling(fill_value, dtype, weak_type)
    return broadcast(scalar, shape) if shape else scalar


def full_like(x: Any, fill_value: Any, dtype: Any = None, shape: Any = None) -> Any:
    """An array of one number, by default of the shape and dtype of `x`.

    >>> import numpy as np
    >>> full_like(np.zeros(2), 7)
    Array([7., 7.], dtype=float32)
    """
    aval = type_of_template(x)
    shape = aval.shape if shape is None else axes.canonical_shape(shape)
    weak_type = dtype is None and aval.weak_type
    dtype = aval.dtype if dtype is None else dtypes.dtype(dtype)
    out = full(shape, filling(fill_value, dtype, weak_type))
    return ad_util.on_mesh(out, aval)


def type_of_template(x: Any) -> ShapedArray:
    """The type of arrays like `x`, which may be a type itself, or a number out of range.

    >>> type_of_template(1 << 40)
    ShapedArray(int32[], weak_type=True)
    """
    x = x if hasattr(x, "shape") and hasattr(x, "dtype") else core.stood_for(x)
    if isinstance(x, core.Typed | np.ndarray | np.generic):
        return core.get_aval(x)
    return ShapedArray(getattr(x, "shape", ()), dtypes.dtype(x), dtypes.is_weakly_typed(x))


def filling(value: Any, dtype: Any, weak_type: bool = False) -> Array:
    """The element of a constant array; a real one cannot be a complex number of Python."""
    if dtypes.python_type(value) is complex and dtype.kind != "b":
        value = dtypes.scalar_type_of(dtype)(value)
    return converted(value, dtype, weak_type)


# ── The same bits as another dtype ───────────────────────────────────────────────────────────

def _bitcast_type(x: ShapedArray, *, new_dtype: Any) -> list[ShapedArray]:
    old, new = dtypes.itemsize_bits(x.dtype), dtypes.itemsize_bits(new_dtype)
    odd = x.dtype != new_dtype and any(d.kind in "bc" for d in (x.dtype, new_dtype))
    core.refuse((odd, "lax.bitcast_convert_type does not support bool or complex values unless "
                      "the operand and destination types match. Got operand "
                      f"dtype={dtype_name(x.dtype)}, new_dtype={new_dtype!r}. Consider using "
                      "the arr.view() method instead."))
    if old >= new:
        return [ShapedArray(x.shape + (() if old == new else (old // new,)), new_dtype)]
    last = x.shape[-1] if x.shape else 1
    core.refuse((last * old != new,
                 f"Attempting to convert array of shape {x.shape} from {dtype_name(x.dtype)} of "
                 f"size {old} bits to {dtype_name(new_dtype)} of size {new}, bits but "
                 f"{last} * {old} != {new}"), error=ValueError)
    return [ShapedArray(x.shape[:-1], new_dtype)]


def _bitcast_impl(x: np.ndarray, new_dtype: Any) -> list[np.ndarray]:
    old, new = dtypes.itemsize_bits(x.dtype), dtypes.itemsize_bits(new_dtype)
    if old == new:
        return [x.view(new_dtype)]
    few, whole = min(old, new), np.dtype(f"u{max(x.dtype.itemsize, new_dtype.itemsize)}")
    places = np.arange(0, max(old, new), few, dtype=whole)
    if old > new:
        pieces = x.view(whole)[..., None] >> places & (1 << few) - 1
        return [pieces.astype(f"u{new_dtype.itemsize}").view(new_dtype)]
    pieces = x.view(f"u{x.dtype.itemsize}").astype(whole) << places
    together: Any = np.bitwise_or.reduce
    return [together(pieces, axis=-1).view(new_dtype)]


def _bitcast_element(s: Any, index: tuple, x: Any, new_dtype: Any) -> Any:
    old, new = dtypes.itemsize_bits(x.dtype), dtypes.itemsize_bits(new_dtype)
    if old == new:
        return s.bitcast(x(index), new_dtype)
    piece, whole = (np.dtype(f"uint{bits}") for bits in sorted((old, new)))
    if old > new:  # the last axis counts the pieces of an element, the lowest first
        places = s.convert(s.mul(index[-1], new), whole)
        shifted = s.shr_logical(s.bitcast(x(index[:-1]), whole), places)
        return s.bitcast(s.convert(shifted, piece), new_dtype)
    bits = s.const(0, whole)
    for k in range(new // old):
        part = s.bitcast(x((*index, s.const(k, np.int64))), piece)
        bits = s.or_(bits, s.shl(s.convert(part, whole), old * k))
    return s.bitcast(bits, new_dtype)


def _bitcast_examples() -> list[Example]:
    x = np.array([[1.5, -0., np.inf], [2e-40, 3, 1e30]], np.float32)
    return examples.table("new_dtype", *((x, np.dtype(dtype)) for x, dtype in [
        *((x, d) for d in ("uint32", "int32", "uint8", "float16", "float32")),
        (x.view(np.uint16).reshape(2, 3, 2), "float32"), (x.view(np.uint32), "float32"),
        (np.array(1.5, np.float32), "uint16"), (np.array([[1, 2, 3, 4]], np.uint8), "int32"),
        (x[:0], "uint8"), (x > 0, bool), (np.array([1, 2], np.float16), dtypes.bfloat16)]))()


bitcast_convert_type_p = Primitive(
    "bitcast_convert_type", impl=_bitcast_impl, abstract_eval=_bitcast_type,
    jvp=constant_in_all, transpose=slots.NOT_DIFFERENTIABLE,
    batch=ad_util.batch_in_front(), sharding=slots.layout("bitcast"),
    element=_bitcast_element,
    examples=_bitcast_examples)


def bitcast_convert_type(operand: Any, new_dtype: Any) -> Any:
    """The bits of `operand` read as another dtype.

    Args:
      operand: an array.
      new_dtype: a dtype; a shorter one adds a last axis of pieces, a longer one joins the last
        axis, which must then hold the pieces of one element.

    Raises:
      TypeError, ValueError: where the bits do not fit.

    >>> bitcast_convert_type(1., "int32")
    Array(1065353216, dtype=int32)
    """
    dtype = dtypes.check_user_dtype_supported(new_dtype, "bitcast_convert_type")
    return bitcast_convert_type_p.bind(operand, new_dtype=dtype)


# ── Copies ───────────────────────────────────────────────────────────────────────────────────

def copying(name: str, **rules: Any) -> Primitive:
    """A primitive whose result is its operand."""
    rules = {"jvp": ad_util.linear(0), "transpose": ad_util.transposed(lambda ct, x, **_: ct),
             "examples": examples.points((-2., 2.)), **rules}
    return elementwise(name, impl=lambda x, **_: [x.copy()], abstract_eval=lambda x, **_: [x],
                       element=lambda s, x, **_: x, may_produce_nan=False,
                       complex_parts=ad_util.each_part, **rules)


copy_p = copying("copy", transpose=ad_util.transposed(lambda ct, x: copy_p.bind(ct)))
stage_p = copying("stage")


def stage(x: Any, /) -> Array:
    """A number or NumPy array as a value of the program; it writes no equation.

    Raises:
      TypeError: for what is no array.

    >>> stage(2.)
    Array(2., dtype=float32, weak_type=True)
    """
    return core.as_value_or_raise(x, lambda: (
        f"Error interpreting argument to stage as a JAX value. The problematic value is of type "
        f"{type(x)} and was passed to stage at position 0.\n"))


optimization_barrier_p = Primitive(
    "optimization_barrier", multiple_results=True,
    impl=lambda *xs: [x.copy() for x in xs], abstract_eval=lambda *avals: list(avals),
    jvp=ad_util.linear(),
    transpose=lambda cotangents, *args: optimization_barrier_p.bind(
        *map(ad_util.instantiate, cotangents)),
    batch=lambda axis, args, dims: (optimization_barrier_p.bind(*args), list(dims)),
    sharding=slots.layout("each_alone"),
    program=lambda *xs: list(xs),
    examples=examples.table("", *((e.args[0], np.arange(3, dtype=np.int32))
                                  for e in examples.points((-2., 2.))()[:1])))


def optimization_barrier(operand: Any, /) -> Any:
    """The tree itself; JAX's compiler moves no operation across it, and minijax's has no need to.

    Args:
      operand: a tree of arrays.

    >>> optimization_barrier((1., 2.))
    (Array(1., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
    """
    leaves, tree = tree_util.tree_flatten(operand)
    return tree.unflatten(optimization_barrier_p.bind(*leaves) if leaves else [])


def empty(shape: Any, dtype: Any, *, out_sharding: Any = None) -> Array:
    """An uninitialised array, which here holds zeros.

    >>> empty((2,), np.float32)
    Array([0., 0.], dtype=float32)
    """
    return full(shape, 0, dtype)


stop_gradient_p = copying(
    "stop_gradient",
    jvp=constant_in_all, transpose=slots.NOT_LINEAR,
    examples=lambda: [e for e in examples.points((-2., 2.))() if e.args[0].dtype != np.float64])


def stop_gradient(x: Any) -> Any:
    """`x`, as a constant of differentiation.

    Args:
      x: an array or a tree of arrays.

    >>> stop_gradient(2.)
    Array(2., dtype=float32, weak_type=True)
    """
    return tree_util.tree_map(_stop_gradient, x)


def _stop_gradient(x: Any) -> Any:
    x = core.as_value(x)
    return x if core.has_key_dtype(x.aval) else stop_gradient_p.bind(x)
