"""The arguments of `numpy` functions: checked, promoted to one dtype and one rank.

Builds on `lax`.  Chapter 01, *Arrays, dtypes and weak types*.
In JAX: `jax/_src/numpy/util.py`.
"""

import functools
import inspect
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from minijax.util import caches, users_calls
from minijax import config, core, dtypes, errors, lax
from minijax.core import Array, Tracer, as_value
from minijax.placement.device_put import device_put
from minijax.placement.devices import on_default_device
from minijax.primitives.axes import canonical_axis, canonical_shape
from minijax.primitives.convert import converted, type_of_template
from minijax.primitives.families import documented as documented
from minijax.primitives.slots import float0_message

ArrayLike: TypeAlias = Any  # an array, a tracer, a NumPy array or a scalar; never a list
Alike: TypeAlias = Any  # of the operands' common dtype
Operand: TypeAlias = Any  # of the common dtype and rank: `promote_args`
Inexact: TypeAlias = Any  # of a common floating dtype and rank
Real: TypeAlias = Any  # of a common real floating dtype and rank
Numeric: TypeAlias = Any  # of a common numeric dtype and rank: bools become integers
Axes: TypeAlias = "int | str | Sequence[int | str] | None"

_PYTHON_SCALARS = (bool, int, float, complex)
_ARRAYS = (Array, *_PYTHON_SCALARS, np.ndarray, np.generic)


# ── Array-like arguments ─────────────────────────────────────────────────────────────────────

def is_array_like(x: Any) -> bool:
    """Whether functions accept `x` as an array; lists and tuples are not accepted.

    >>> is_array_like(1.5), is_array_like([1.5])
    (True, False)
    """
    return (isinstance(x, _ARRAYS) or hasattr(x, "__jax_array__")
            or hasattr(x, "struct")  # a ShapeDtypeStruct, which is an array while one traces
            or isinstance(x, tuple(core.stand_ins)))


def check_arraylike(name: str, *args: Any) -> None:
    """Refuse lists, tuples, strings and other objects that are no arrays.

    Raises:
      TypeError: naming the function and the position of the argument.

    >>> check_arraylike("sum", [1, 2])
    Traceback (most recent call last):
    ...
    TypeError: sum requires ndarray or scalar arguments, got <class 'list'> at position 0.
    """
    for position, x in enumerate(args):
        if not is_array_like(x):
            raise TypeError(f"{name} requires ndarray or scalar arguments, "
                            f"got {type(x)} at position {position}.")


def as_array(name: str, x: Any) -> Array:
    """`x` as an array or tracer, after `check_arraylike`."""
    return x if isinstance(x, Array) else as_arrays(name, x)[0]


def as_arrays(name: str, *args: Any) -> list[Any]:
    check_arraylike(name, *args)
    return [x if isinstance(x, Array) else as_value(core.stood_for(x)) for x in args]


def _templates(name: str, x: Any) -> list[Any]:
    if not isinstance(x, core.Typed):
        check_arraylike(name, x)
    if not (hasattr(x, "shape") and hasattr(x, "dtype")):
        x = core.stood_for(x)
    return [x if isinstance(x, Array) or getattr(x, "sharding", None) else type_of_template(x)]


# ── One dtype ────────────────────────────────────────────────────────────────────────────────

def convert(x: Any, dtype: Any, weak_type: bool = False) -> Any:
    """`x` with this dtype and weak type; a Python scalar stays a literal.

    >>> convert(1, np.dtype("float32"))
    Array(1., dtype=float32)
    """
    kind = type(x)
    if kind is int or kind is bool or kind is float:
        sign = math.copysign(1.0, x) if kind is float else 1.0  # 0.0 == -0.0, but they differ
        return _literal(x, kind, sign, config.enable_x64.value, dtype, weak_type)
    return converted(as_value(x), dtype, weak_type)


@caches.remembered(maxsize=4096)
def _literal(x: Any, kind: type, sign: float, x64: bool, dtype: Any, weak_type: bool) -> Any:
    """A Python number as a literal, cached: a program uses few of them, but often."""
    return converted(as_value(x), dtype, weak_type)


def like(value: Any, x: Any) -> Any:
    """A number with the dtype and weak type of `x`.

    >>> like(0, as_value(2.5))
    Array(0., dtype=float32, weak_type=True)
    """
    return convert(value, x.dtype, x.weak_type)


def weak_if_scalar(x: Any) -> Any:
    """`x`, which keeps its weak type only if it is a scalar, as JAX's functions of constants do.

    >>> weak_if_scalar(like(np.array([1, 2]), as_value(2.5)))
    Array([1., 2.], dtype=float32)
    """
    return x if x.ndim == 0 else convert(x, x.dtype)


@caches.remembered(maxsize=4096)
def _cached_result_type(parts: tuple, flags: tuple) -> tuple[Any, bool]:
    return dtypes.lattice_result_type(*parts)


def result_dtype(*args: Any) -> tuple[Any, bool]:
    """The result dtype of an operation on `args`, and its weak type.

    >>> result_dtype(np.float16(1), 2)
    (dtype('float16'), False)
    """
    if len(args) == 1 and isinstance(args[0], Array):
        return args[0].dtype, args[0].weak_type
    parts = tuple(type(x) if type(x) in _PYTHON_SCALARS else core.get_aval(x) for x in args)
    return _cached_result_type(parts, (config.enable_x64.value, dtypes.is_strict()))


def check_promotion(*args: Any) -> None:
    """Refuse arguments whose promotion the user forbids, in a function that hands them on; None is
    no argument.

    What it calls promotes them, but is not what the user called.
    """
    if dtypes.is_strict():
        result_dtype(*(x for x in args if x is not None))


def promote_dtypes(*args: Any) -> list[Any]:
    """The arguments, promoted to their result dtype."""
    first = getattr(args[0], "aval", None)
    if first is not None and all(
            isinstance(x, Array) and x.dtype == first.dtype and x.weak_type == first.weak_type
            for x in args):
        return list(args)
    dtype, weak_type = result_dtype(*args)
    return [convert(x, dtype, weak_type) for x in args]


def _promote_dtypes_to(kind: Callable[[Any], Any], *args: Any) -> list[Any]:
    """The arguments in the dtype to which `kind` maps their result dtype."""
    shared, weak_type = result_dtype(*args)
    dtype = dtypes.canonicalize_dtype(kind(shared))
    weak_type = weak_type and shared != dtypes.BOOL  # bools have no weak type
    return [convert(x, dtype, weak_type) for x in args]


promote_dtypes_inexact = functools.partial(_promote_dtypes_to, dtypes.to_inexact_dtype)
promote_dtypes_complex = functools.partial(_promote_dtypes_to, dtypes.to_complex_dtype)
promote_dtypes_numeric = functools.partial(_promote_dtypes_to, dtypes.to_numeric_dtype)  # not bool


def promoted(name: str, promote: Callable[..., list[Any]], *args: Any) -> list[Any]:
    """The arguments of a function, checked and promoted.

    Raises:
      TypeError: for anything but arrays, and for PRNG keys.
    """
    check_arraylike(name, *args)
    args = tuple(x if isinstance(x, Array) else core.stood_for(x) for x in args)
    try:
        return promote(*args)
    except (TypeError, ValueError):
        avals = [core.get_aval(x) for x in args]
        if any(map(core.has_key_dtype, avals)):
            listed = ", ".join(core.dtype_name(aval.dtype) for aval in avals)
            raise TypeError(f"{name} does not accept dtypes {listed}. A key is not a number: "
                            "draw numbers from it with jax.random, or take its words with "
                            "jax.random.key_data.") from None
        raise


def divided_by_constant(x: Any, number: float) -> Any:
    """``x / number`` in a function that JAX compiles, where XLA multiplies by the reciprocal.

    >>> divided_by_constant(np.float32(7), 3)
    Array(2.3333335, dtype=float32)
    """
    x = as_value(x)
    if x.dtype.kind != "f" or core.current_trace.get().staging_level:
        return lax.div(x, convert(number, x.dtype))  # a program shows the quotient
    with np.errstate(divide="ignore"):
        return lax.mul(x, as_value(np.reciprocal(x.dtype.type(number))))


def selects(mask: Any, x: Any) -> bool:
    """Whether a product with `x` is a selection, as XLA compiles it: `algebraic_simplification`.

    >>> selects(np.array([True, False]), as_value(np.float32([2, np.nan])))
    True
    """
    return (getattr(mask, "dtype", None) == dtypes.BOOL and mask.shape == x.shape
            and x.dtype.kind in "fc" and not core.current_trace.get().staging_level)


# ── One rank ─────────────────────────────────────────────────────────────────────────────────

def promote_shapes(name: str, *args: Array) -> list[Any]:
    """The arguments with leading axes of size one up to one rank; scalars stay scalars.

    Raises:
      ValueError: where the shapes do not broadcast.
    """
    if len({x.ndim for x in args} - {0}) < 2:  # elementwise primitives take scalars beside arrays
        return list(args)
    shapes = [x.shape for x in args]
    if config.numpy_rank_promotion.value != "allow":
        where = f"for {name} on shapes {' '.join(map(str, shapes))}"
        _check_rank_promotion(
            f"Following NumPy automatic rank promotion {where}. Set the jax_numpy_rank_promotion "
            f"config option to 'allow' to disable this warning; for more information, {_PAGE}",
            f"Operands could not be broadcast together {where} and with the config option "
            f"jax_numpy_rank_promotion='raise'. For more information, {_PAGE}")
    rank = len(lax.broadcast_shapes(*shapes))
    return [lax.broadcast_to_rank(x, rank) if x.ndim else x for x in args]


def _check_rank_promotion(warning: str, error: str) -> None:
    """Warn of a promotion of ranks, or refuse it, if the user's flag says so."""
    mode = config.numpy_rank_promotion.value
    if mode != "allow" and users_calls.is_asked_by_user():
        if mode == "raise":
            raise ValueError(error)
        errors.warn(warning)


_PAGE = "see https://docs.jax.dev/en/latest/rank_promotion_warning.html."


def check_loop_ranks(signature: str, loops: Sequence[tuple[int, ...]], args: Sequence[Any]) -> None:
    """Refuse arguments of a vectorized function whose loops are of several ranks, if forbidden."""
    ranks = {len(loop) for loop, x in zip(loops, args, strict=True) if x.ndim}
    if len(ranks) > 1:
        message = (f"operands with shapes {[x.shape for x in args]} require rank promotion for "
                   f"jnp.vectorize function with signature {signature}. Set the "
                   "jax_numpy_rank_promotion config option to 'allow' to disable this message; "
                   f"for more information, {_PAGE}")
        _check_rank_promotion(message, message)


def promote_args(name: str, *args: Any) -> list[Any]:
    """The arguments of a binary function: checked, converted, aligned."""
    if len(args) == 2:  # the usual case: two arrays of one type, which need nothing
        x, y = args
        if isinstance(x, Array) and isinstance(y, Array) and x.aval is y.aval:
            return [x, y]
    return _promote_args_to(promote_dtypes, name, *args)


def _promote_args_to(promote: Callable[..., list[Any]], name: str, *args: Any) -> list[Any]:
    try:
        return promote_shapes(name, *promoted(name, promote, *args))
    except ValueError:
        if any(core.get_aval(x).dtype == dtypes.float0 for x in args):
            raise TypeError(float0_message(name)) from None
        raise


promote_args_inexact = functools.partial(_promote_args_to, promote_dtypes_inexact)
promote_args_numeric = functools.partial(_promote_args_to, promote_dtypes_numeric)


def promote_args_real(name: str, *args: Any) -> list[Any]:
    """The arguments of a function in one real floating dtype, aligned.

    Raises:
      ValueError: for complex numbers.
    """
    floats = promote_args_inexact(name, *args)
    if floats[0].dtype.kind == "c":
        raise ValueError(f"{name} does not support complex-valued inputs.")
    return floats


def broadcast_arrays_to_one_shape(*args: Any) -> list[Any]:
    """The arguments, broadcast to their common shape.

    Raises:
      ValueError: where the shapes do not broadcast.
    """
    shapes = [np.shape(x) for x in args]
    if len(set(shapes)) == 1:
        return [as_value(x) for x in args]
    shape = lax.broadcast_shapes(*shapes)
    return [broadcast_to_shape(x, shape) for x in args]


def broadcast_to_shape(x: Any, shape: tuple[int, ...]) -> Any:
    """`x` broadcast to `shape`, by NumPy's rules.

    Raises:
      ValueError: where it cannot be.
    """
    x = as_value(x)
    if x.shape == shape:
        return x
    missing = len(shape) - x.ndim
    if missing < 0:
        raise ValueError("Cannot broadcast to shape with fewer dimensions: "
                         f"arr_shape={x.shape} shape={shape}")
    if any(n not in (1, m) for n, m in zip(x.shape, shape[missing:], strict=True)):
        raise ValueError(f"Incompatible types for broadcasting: input type={x.aval.str_long()} and "
                         f"requested type={x.aval.update(shape=shape).str_long()}")
    return lax.broadcast_in_dim(x, shape, range(missing, len(shape)))


# ── Static arguments ─────────────────────────────────────────────────────────────────────────

def static_axes(name: str, axis: Any) -> Any:
    """An axis argument as None, an int, or, from any iterable, a tuple of ints.

    Raises:
      ConcretizationTypeError: when it is traced.
    """
    if axis is None or type(axis) is int:
        return axis
    if isinstance(axis, Tracer):
        return int(static_value(axis, f"axis argument to jnp.{name}()."))
    return tuple(map(operator.index, axis)) if np.iterable(axis) else operator.index(axis)


def static_value(x: Any, context: str) -> Any:
    """The value of `x` as a NumPy array.

    Raises:
      ConcretizationTypeError: when it is traced; `context` is part of the message.
    """
    return core.concrete_or_error(x, context)


def static_index(x: Any, context: str) -> int:
    """A static count or index: of any integer type, or a bool.

    Raises:
      ConcretizationTypeError: when it is traced; `context` is part of the message.
      TypeError: for what is no integer.
    """
    return operator.index(static_value(x, context).tolist())


def is_traced_index(k: Any) -> bool:
    """Whether `k` is a traced scalar of an integer type."""
    return isinstance(k, core.Tracer) and not k.ndim and dtypes.kind(k.dtype) in "iu"


def diagonal_offset(k: Any) -> Any:
    """The offset of a diagonal, to the right of the main one, which may be traced.

    Raises:
      ValueError: for what is no integer.
    """
    if is_traced_index(k):
        return k
    try:
        return operator.index(core.stood_for(k))
    except TypeError:
        raise ValueError(f"k must be a scalar integer; got {k}") from None


def static_int(x: Any, context: str) -> int:
    """A static number truncated to an integer, as JAX does by `int`.

    >>> static_int(2.5, "the size")
    2
    """
    return int(static_value(x, context).tolist())


def shape_of_argument(shape: Any) -> tuple[int, ...]:
    """A shape argument (an int, or a sequence of ints) as a tuple.

    Raises:
      TypeError: for traced sizes, and for sizes that are no integers.
    """
    is_sequence = np.iterable(shape) and not isinstance(shape, str)
    return canonical_shape(tuple(shape) if is_sequence else (shape,))


def canonical_axes(axis: Axes, ndim: int) -> tuple[int, ...]:
    """Axes counted from the front, without duplicates; all of them for None.

    >>> canonical_axes(-1, 3), canonical_axes(None, 2)
    ((2,), (0, 1))
    """
    if axis is None:
        return tuple(range(ndim))
    axes = tuple(canonical_axis(each, ndim) for each in (axis if np.iterable(axis) else [axis]))
    if len(set(axes)) != len(axes):
        raise ValueError(f"duplicate value in 'axis': {axes}")
    return axes


def check_axis_index(*axes: Any, ndim: int, message: str = "tuple index out of range") -> None:
    """Refuse an axis out of bounds with the IndexError of JAX's functions that index the shape.

    Raises:
      IndexError: where other functions raise ValueError.
    """
    for axis in axes:
        if isinstance(axis, int) and not -ndim <= axis < ndim:
            raise errors.with_cure(IndexError(message.format(axis=axis, ndim=ndim)),
                                   f"axis {axis} is out of bounds for array of dimension {ndim}")


AXIS_INDEX_ERROR = "index {axis} is out of bounds for axis 0 with size {ndim}"


def array_and_axis(name: str, x: Any, axis: Any) -> tuple[Any, int]:
    """An array and an axis, counted from the front; for the axis None, the flat array and 0."""
    x, axis = as_array(name, x), static_axes(name, axis)
    return (lax.reshape(x, (x.size,)), 0) if axis is None else (x, canonical_axis(axis, x.ndim))


def initial_value(name: str, initial: Any) -> Array:
    """The initial value of a reduction.

    Raises:
      ValueError: for more than a scalar.
    """
    value = as_array(name, initial)
    if value.ndim:
        raise ValueError(f"initial value must be a scalar. Got array of shape {value.shape}")
    return value


def refuse_out(name: str, out: Any) -> None:
    """Refuse the argument `out`: arrays are immutable."""
    if out is not None:
        raise NotImplementedError(f"The 'out' argument to jnp.{name} is not supported.")


# ── Public functions ─────────────────────────────────────────────────────────────────────────

# Only the type of a `Template` is read, so it may be a ShapeDtypeStruct.
Template = Any
_PREPARE: dict[str, Callable[..., list[Any]]] = {
    "Template": _templates, "ArrayLike": as_arrays,
    "Alike": lambda name, *args: promoted(name, promote_dtypes, *args),
    "Operand": promote_args, "Inexact": promote_args_inexact, "Real": promote_args_real,
    "Numeric": promote_args_numeric}
_OPTIONS: dict[str, Callable[[str, Any], Any]] = {
    "dtype": lambda name, dtype: dtypes.check_user_dtype_supported(dtype, name), "out": refuse_out}


def public(names: dict[str, Any], prefix: str = "") -> None:
    """Publish the functions of a module of `numpy`: they become its `__all__`.

    Their first two required arguments are converted to arrays as the annotation says, or refused
    by an error that names the function, with the `prefix`. A `dtype` must be None or a dtype of
    arrays; `out` must be None.
    """
    functions = {name: value for name, value in names.items() if inspect.isfunction(value)
                 and not name.startswith("_") and value.__module__ == names["__name__"]}
    wrapped = {each: with_device(with_arrays(each, prefix)) for each in functions.values()}
    names.update((name, wrapped[function]) for name, function in functions.items())
    names["__all__"] = list(functions)


def with_arrays(function: Callable, prefix: str = "") -> Callable:
    """The function, with its first arguments converted to arrays; the usual call is fast."""
    code, kinds, name = function.__code__, function.__annotations__, prefix + function.__name__
    positional = code.co_varnames[:code.co_argcount]
    required = positional[:code.co_argcount - len(function.__defaults__ or ())][:2]
    kind = str(kinds.get(required[0])) if required else ""
    arrays = [each for each in required if kinds.get(each) == kind] if kind in _PREPARE else []
    options = {each: check for each, check in _OPTIONS.items() if each in kinds}
    if not arrays and not options:
        return function
    prepare, first, count = _PREPARE.get(kind, as_arrays), code.co_posonlyargcount, len(arrays)
    is_ready, are_left_out = kind == "ArrayLike", options.keys().isdisjoint
    least = min([i for i, each in enumerate(positional) if each in options], default=math.inf)

    def of_one(x: Any, /) -> Any:
        return function(x if is_ready and isinstance(x, Array) else prepare(name, x)[0])

    def of_two(x1: Any, x2: Any, /) -> Any:
        return function(*prepare(name, x1, x2))

    def of_arrays(*args: Any, **named: Any) -> Any:
        while first <= len(args) < count and arrays[len(args)] in named:
            args += (named.pop(arrays[len(args)]),)
        if 0 < count <= len(args) and not (is_ready and isinstance(args[0], Array)
                                           and isinstance(args[count - 1], Array)):
            args = (*prepare(name, *args[:count]), *args[count:])
        if len(args) > least or not are_left_out(named):
            args = (*(options[each](name, x) if each in options else x
                      for each, x in zip(positional, args, strict=False)), *args[len(positional):])
            named = {each: options[each](name, x) if each in options else x
                     for each, x in named.items()}
        return function(*args, **named)

    is_plain = first == count == code.co_argcount + code.co_kwonlyargcount
    return functools.wraps(function)((of_one, of_two)[count - 1] if is_plain else of_arrays)


def with_device(function: Callable) -> Callable:
    """The function, with its results moved to its argument `device`, if it has one."""
    if "device" not in function.__annotations__:
        return function

    def on_device(*args: Any, device: Any = None, **named: Any) -> Any:
        out = function(*args, **named)
        return on_default_device(out) if device is None else device_put(out, device)
    return functools.wraps(function)(on_device)


# ── Building blocks ──────────────────────────────────────────────────────────────────────────

def from_lax(function: Callable, name: str = "", *, prepare: Callable[..., list[Any]],
             note: str = "") -> Callable[..., Array]:
    """A function of `lax` that promotes its arguments, with the docstring of the original."""
    name, text = name or function.__name__, inspect.getdoc(function) or ""
    summary, _, rest = text.replace(f"{function.__name__}(", f"{name}(").partition("\n")
    shows = rest.partition(">>> ")[2].strip().replace("\n", " -> ")

    def of_one(x: Any, /) -> Array:
        return function(*prepare(name, x))

    def of_two(x: Any, y: Any, /) -> Array:
        return function(*prepare(name, x, y))

    operands = [p for p in inspect.signature(function).parameters.values()
                if p.kind is not p.KEYWORD_ONLY]
    apply = (of_one, of_two)[len(operands) - 1]
    return documented(apply, name, f"{summary}\n\n    {note}" if note else summary, shows)


def choose(condition: Any, x: Any, y: Any) -> Any:
    """`x` where the condition is not zero, else `y`: `where` of three arguments."""
    condition = as_value(condition)
    condition = condition if condition.dtype == bool else condition != 0
    x, y = promote_dtypes(x, y)
    if condition.ndim:
        condition, x, y = broadcast_arrays_to_one_shape(condition, x, y)
    else:
        x, y = broadcast_arrays_to_one_shape(x, y)
    # an empty result depends on neither operand, so it has no derivative
    return lax.select(condition, x, y) if x.size else x


def broadcast_along(x: Any, shape: tuple[int, ...], axes: Sequence[int]) -> Any:
    """`x`, whose axes are these axes of the shape, broadcast to it."""
    return lax.broadcast_in_dim(lax.transpose(x, np.argsort(axes)), shape, sorted(axes))


def indices_along(shape: Sequence[int], *axes: int) -> list[Any]:
    """For each of these axes, the index of every element along it."""
    return [lax.broadcasted_iota(np.dtype("int32"), shape, axis % len(shape)) for axis in axes]


def indices_within(indices: Any, size: int, mode: str | None, name: str = "", what: str = ""
                   ) -> Any:
    """Indices of an axis; those out of bounds are refused, wrapped or clipped, as `mode` says.

    Raises:
      ValueError: for the mode "raise", where an index is out of bounds.
      ConcretizationTypeError: for this mode, where the indices are traced.
    """
    if mode == "raise":
        values = static_value(indices, f"The error occurred because {name} was jit-compiled with "
                              "mode='raise'. Use mode='wrap' or mode='clip' instead.")
        if np.any((values < 0) | (values >= size)):
            raise ValueError(f"invalid entry in {what} array")
    if mode == "clip":
        return lax.clamp(like(0, indices), indices, like(size - 1, indices))
    return indices % size if mode == "wrap" else indices
