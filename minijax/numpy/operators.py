"""Operators, conversions, iteration, methods and properties of arrays and tracers.

Importing this module puts them on `Array`.  Most are functions of the modules beside it.
Chapter 02, *Primitives and tracers*.  In JAX: `jax/_src/numpy/array_methods.py`.
"""

import importlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from minijax import config, core, dtypes, errors, lax
from minijax.core import Array, ArrayImpl, Tracer, donate, is_donated, refuse
from minijax.placement.device_put import block_until_ready, device_put
from minijax.placement.devices import CPU
from minijax.placement.out_sharding import with_out_sharding
from minijax.placement.resharding import shards
from minijax.placement.named_sharding import SingleDeviceSharding, format_of
from minijax.numpy import (arguments, arithmetic, contractions, creation, diagonals, display,
                           indexing, interchange, joining, logic, putting, reductions, searching,
                           shaping, sorting, unary)
from minijax.transforms.prepared import boundary, prepared
from minijax.util.tracebacks import api_boundary, settle_for_good


# ── Operators and methods that are functions ─────────────────────────────────────────────────

_OPERANDS = (int, float, complex, np.generic, np.ndarray, Array)
_REFUSED = (list, tuple, set, dict)

# Binary operators in Python, and their names in `numpy`; comparisons have no reflected methods.
_OPERATORS = {
    "add": ("+", "add"), "sub": ("-", "subtract"), "mul": ("*", "multiply"),
    "truediv": ("/", "divide"), "floordiv": ("//", "floor_divide"), "mod": ("%", "remainder"),
    "divmod": ("divmod", "divmod"), "pow": ("**", "power"), "matmul": ("@", "matmul"),
    "and": ("&", "bitwise_and"), "or": ("|", "bitwise_or"), "xor": ("^", "bitwise_xor"),
    "lshift": ("<<", "left_shift"), "rshift": (">>", "right_shift")}
_COMPARISONS = {"eq": ("==", "equal"), "ne": ("!=", "not_equal"), "lt": ("<", "less"),
                "le": ("<=", "less_equal"), "gt": (">", "greater"), "ge": (">=", "greater_equal")}
_UNARY = {"neg": "negative", "pos": "positive", "abs": "absolute", "invert": "bitwise_not"}
_METHODS = ("sum prod mean max min argmax argmin any all std var ptp cumsum cumprod dot trace "
            "diagonal conj conjugate round take repeat nonzero clip ravel squeeze swapaxes "
            "argsort searchsorted sort argpartition choose").split()


def _binary_operator(name: str, sign: str, function: Callable[[Any, Any], Any],
                     swapped: bool = False) -> Callable[[Any, Any], Any]:
    """The method of an operator; lists are refused, the methods of unknown operands are tried."""
    def of_operands(self: Any, other: Any) -> Any:
        other = other if isinstance(other, _OPERANDS) else core.stood_for(other)
        if isinstance(other, _OPERANDS):
            operands = (other, self) if swapped else (self, other)
            try:
                return function(*operands)
            except OverflowError as error:
                settle_for_good(error, function, operands)
                raise
            except TypeError:
                if sign not in ("==", "!=") or not all(map(_is_float0, operands)):
                    raise
                # there are no bits to compare
                return np.full(np.broadcast_shapes(*map(np.shape, operands)), sign == "==")
        # of others, and where numbers are ordered, the reflected methods are tried
        if type(other) in _REFUSED and sign not in ("<", "<=", ">", ">="):
            left, right = (other, self) if swapped else (self, other)
            raise TypeError(f"unsupported operand type(s) for {sign}: "
                            f"'{type(left).__name__}' and '{type(right).__name__}'")
        return NotImplemented

    of_operands.__name__ = of_operands.__qualname__ = name
    return of_operands


def _is_float0(x: Any) -> bool:
    return isinstance(x, ArrayImpl | np.ndarray) and x.dtype == dtypes.float0


def _as_pairs(x: Any, dtype: np.dtype) -> Any:
    """`view` from or to complex numbers, as pairs of floats."""
    if x.dtype.kind == "c":
        parts = joining.stack([lax.real(x), lax.imag(x)], -1)
        return shaping.reshape(parts, (*x.shape[:-1], -1)).view(dtype)
    parts = x.view(dtypes.to_floating_dtype(dtype))
    return lax.complex(parts[..., ::2], parts[..., 1::2])


# ── Python numbers ───────────────────────────────────────────────────────────────────────────

def _numbers(x: Any, *details: str, of_tracers: bool = False,
             error: Callable[..., Exception] = errors.ConcretizationTypeError) -> np.ndarray:
    """The concrete values of an array; of a tracer that has them, only if `of_tracers`.

    A float taken out of a tracer would silently lose its derivative.
    """
    concrete = x._concrete() if of_tracers or isinstance(x, ArrayImpl) else None
    if concrete is None:
        raise error(x, *details)
    return display.numbers_of(concrete)


def _number(python_type: type) -> Callable[[Any], Any]:
    """`int(x)`, `float(x)`, `complex(x)`."""
    name = python_type.__name__
    hint = (f"The problem arose with the `{name}` function. If trying to convert the data type "
            f"of a value, try using `x.astype({name})` or `jnp.array(x, {name})` instead.")

    def method(self: Any) -> Any:
        if self.ndim:
            raise TypeError("Only scalar arrays can be converted to Python scalars; "
                            f"got arr.ndim={self.ndim}")
        return python_type(_numbers(self, hint, of_tracers=python_type is int).item())

    method.__name__ = method.__qualname__ = f"__{name}__"
    return method


def _called(name: str, x: Any) -> str:
    return f"The {name}() method was called on traced array with shape {x.aval.str_long()}."


# Methods and properties of concrete arrays, and how a tracer refuses them.
_OF_CONCRETE_ARRAYS = (
    (errors.ConcretizationTypeError, "The {name}() method was called on {x}.",
     "addressable_data delete devices is_deleted on_device_size_in_bytes unsafe_buffer_pointer"),
    (errors.ConcretizationTypeError, "The {name} property was called on {x}.",
     "global_shards is_fully_addressable is_fully_replicated"),
    (errors.ConcretizationTypeError, "The '{name}' attribute is not available on {x}.",
     "addressable_shards committed"),
    (AttributeError, "The '{name}' method is not available on {x}.{origin}",
     "block_until_ready copy_to_host_async"),
    (AttributeError, "The 'sharding' attribute is not available on {x}.\n"
     "To query sharding information on tracers, use `jax.typeof(x)`.", "sharding"),
    (AttributeError, "{kind} has no attribute {name}", "device format is_ready platform"))


def _refused_of_tracers(error: type[Exception], words: str, name: str) -> Any:
    """A method or property of concrete arrays as tracers have it."""
    def refuse(self: Any, *args: Any, **kwargs: Any) -> Any:
        origin = self._origin_msg() if "{origin}" in words else ""  # a search of the whole program
        said = words.format(name=name, kind=type(self).__name__, origin=origin,
                            x=f"traced array with shape {self.aval.str_long()}")
        raise error(self, said) if error is errors.ConcretizationTypeError else error(said)
    return (property if isinstance(getattr(Array, name), property) else api_boundary)(refuse)


def _missing_of_tracers(self: Any, name: str) -> Any:
    if hasattr(type(self), name):  # a property, which raises
        return object.__getattribute__(self, name)
    raise AttributeError(f"{type(self).__name__} has no attribute {name}")


# ── Methods and properties beyond the functions of `numpy` ───────────────────────────────────

def _property(get: Callable[[Any], Any]) -> property:
    """A property computed by a function of the array, with the summary of its docstring."""
    return property(prepared(get), doc=str(get.__doc__).partition("\n")[0])


class _Methods:
    """Further methods and properties of arrays and tracers."""

    def __array_namespace__(self: Any, *, api_version: str | None = None) -> Any:
        """The module `minijax.numpy`, as the array API asks."""
        namespace = importlib.import_module("minijax.numpy")
        if api_version not in (None, namespace.__array_api_version__):
            raise ValueError(f"{api_version=!r} is not available; available versions are: "
                             f"{[namespace.__array_api_version__]}")
        return namespace

    @property
    def __numpy_dtype__(self: Any) -> np.dtype:
        if isinstance(self, ArrayImpl):
            errors.warn("Implicit conversion of an array to a dtype is deprecated; rather than "
                        "dtype=arr use dtype=arr.dtype. In the future this will result in an "
                        "error.", DeprecationWarning)
        return self.dtype

    def __bool__(self: Any) -> bool:
        if self.size == 0:
            raise ValueError("The truth value of an empty array is ambiguous. Use "
                             "`array.size > 0` to check that an array is not empty.")
        if self.size != 1:
            raise ValueError("The truth value of an array with more than one element is ambiguous. "
                             "Use a.any() or a.all()")
        concrete = self._concrete()
        if core.has_key_dtype(self.aval):
            raise TypeError("key array cannot be converted to boolean.")
        if concrete is None:
            raise errors.TracerBoolConversionError(self)
        return bool(concrete._buffer.reshape(())[()])

    __int__, __float__, __complex__ = map(_number, (int, float, complex))

    def __index__(self: Any) -> int:
        if self.ndim or not dtypes.issubdtype(self.dtype, np.integer):
            raise TypeError("Only integer scalar arrays can be converted to a scalar index.")
        return int(_numbers(self, of_tracers=True, error=errors.TracerIntegerConversionError))

    def __round__(self: Any, ndigits: int | None = None) -> Any:
        rounded = unary.round(self, ndigits or 0)
        return creation.astype(rounded, int) if ndigits is None else rounded

    # ── Elements ─────────────────────────────────────────────────────────────────────────────

    at = indexing.at_property

    def __getitem__(self: Any, index: Any) -> Any:
        return indexing.rewriting_take(self, index)

    def __setitem__(self: Any, index: Any, value: Any) -> None:
        raise TypeError(
            f"'{type(self)}' object does not support item assignment. JAX arrays are immutable. "
            "Instead of ``x[idx] = y``, use ``x = x.at[idx].set(y)`` or another .at[] method: "
            "https://jax.readthedocs.io/en/latest/_autosummary/jax.numpy.ndarray.at.html")

    def __iter__(self: Any) -> Iterator[Any]:
        """The slices along the first axis; while tracing, the loop is unrolled."""
        if self.ndim == 0:
            raise TypeError("iteration over a 0-d array")
        if isinstance(self, ArrayImpl) and not config.debug_key_reuse.value and (
                type(self) is ArrayImpl or not self.is_fully_replicated):
            row = self.aval.update(shape=self.shape[1:])
            return (core.array_from_buffer(each, row) for each in self._buffer)
        return (lax.index_in_dim(self, i, 0, keepdims=False) for i in range(self.shape[0]))

    def __reversed__(self: Any) -> Iterator[Any]:
        if self.ndim == 0:
            raise TypeError("reversed() of a 0-d array")
        return iter(lax.rev(self, (0,)))

    def __contains__(self: Any, value: Any) -> bool:
        if value is None or isinstance(value, str):
            raise TypeError(f"Array.__contains__: unsupported operand type {type(value)}.")
        value = arguments.as_array("Array.__contains__", value)
        refuse((self.ndim != 1, "Array.__contains__: search array must be one-dimensional, "
                f"got arr.shape={self.shape}."),
               (value.ndim, "Array.__contains__: query value must be a scalar, "
                f"got query.shape={value.shape}"), error=ValueError)
        return bool(reductions.any(logic.equal(self, value)))

    def item(self: Any, *args: int) -> Any:
        """The only element, or the one at the place given, as a Python number."""
        where = "This occurred in the item() method of jax.Array"
        return _numbers(self, where, of_tracers=True).item(*args)

    def tolist(self: Any) -> Any:
        """The elements as Python numbers in nested lists."""
        return _numbers(self, _called("tolist", self)).tolist()

    def tobytes(self: Any, order: str = "C") -> bytes:
        """The elements' bytes."""
        return _numbers(self, _called("tobytes", self)).tobytes(order)  # type: ignore[arg-type]

    # ── NumPy's and others' protocols ────────────────────────────────────────────────────────

    __reduce__ = display.reduced
    __copy__ = creation.copied
    __deepcopy__ = lambda self, memo: creation.copied(self)

    def __array__(self: Any, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        numbers = _numbers(self, error=errors.TracerArrayConversionError)
        if self.dtype == dtypes.float0:  # whose buffer holds bools
            numbers = np.zeros(self.shape, dtypes.float0)
        return display.to_numpy(numbers, dtype, copy)

    def __buffer__(self: Any, flags: int) -> memoryview:
        return display.memory_of(self)

    def __dlpack__(self: Any, *, stream: Any = None, max_version: tuple[int, int] | None = None,
                   dl_device: tuple[Any, int] | None = None, copy: bool | None = None) -> Any:
        if not isinstance(self, ArrayImpl):
            raise errors.ConcretizationTypeError(self, "The error arose in __dlpack__().")
        return interchange.to_dlpack(self, stream=stream, max_version=max_version,
                                     dl_device=dl_device, copy=copy)

    __dlpack_device__ = interchange.dlpack_device
    __cuda_array_interface__ = property(interchange.cuda_array_interface)

    def __format__(self: Any, spec: str) -> str:
        if isinstance(self, ArrayImpl):
            return display.array_format(self, spec)
        if not spec:
            return repr(self)
        raise TypeError(f"unsupported format string passed to {type(self).__name__}.__format__: "
                        "the value is being traced, and has no digits yet. jax.debug.print("
                        f"\"{{x:{spec}}}\", x=x) prints it when the compiled function runs.")

    # ── Shapes and types ─────────────────────────────────────────────────────────────────────

    T, mT, real, imag = map(_property, (
        shaping.transpose, shaping.matrix_transpose, unary.real, unary.imag))
    itemsize = property(lambda self: self.dtype.itemsize)
    nbytes = property(lambda self: self.size * self.dtype.itemsize)

    def astype(self: Any, dtype: Any, copy: bool = False, device: Any = None) -> Any:
        """The array with its elements converted."""
        return creation.astype(self, dtype, copy=copy, device=device)

    def reshape(self: Any, *shape: Any, order: str = "C", out_sharding: Any = None) -> Any:
        """The same elements in another shape: one tuple, or one argument for each size."""
        new = shape[0] if len(shape) == 1 else shape
        return with_out_sharding(out_sharding, shaping.reshape, self, new, order)

    def transpose(self: Any, *axes: Any) -> Any:
        """The array with its axes reversed, or in the order given."""
        one_argument = len(axes) == 1 and (axes[0] is None or np.iterable(axes[0]))
        return shaping.transpose(self, axes[0] if one_argument else axes or None)

    flatten = shaping.ravel
    copy = clone = creation.copied

    def view(self: Any, dtype: Any = None) -> Any:
        """The same bits, read as another dtype of the same or another width.

        >>> import minijax.numpy as jnp
        >>> jnp.array(1, dtype="int32").view("uint32")
        Array(1, dtype=uint32)
        """
        dtype = self.dtype if dtype is None else np.dtype(
            dtypes.check_user_dtype_supported(dtype, "view"))
        if dtype == self.dtype:
            return self
        if dtype.kind == "b":
            return self.view("uint8").astype(dtype)
        if self.dtype.kind == "b":
            return self.astype("uint8").view(dtype)
        before, after = dtypes.itemsize_bits(self.dtype), dtypes.itemsize_bits(dtype)
        refuse((not self.ndim and before != after,
                "view() of a 0d array is only supported if the itemsize is unchanged."),
               (self.ndim and self.shape[-1] * before % after,
                "When changing to a larger dtype, its size must be a divisor of the total size in "
                "bytes of the last axis of the array."), error=ValueError)
        if "c" in (self.dtype.kind, dtype.kind):
            whole = (-1,) if self.ndim else ()
            pairs = _as_pairs(shaping.reshape(self, (*self.shape[:-1], -1)), dtype)
            return shaping.reshape(pairs, (*self.shape[:-1], *whole))
        if before < after:
            parts = after // before
            self = lax.reshape(self, (*self.shape[:-1], self.shape[-1] // parts, parts))
        bits = lax.bitcast_convert_type(self, dtype)
        return shaping.reshape(bits, (*self.shape[:-1], -1)) if before > after else bits

    def compress(self: Any, condition: Any, axis: int | None = None, *, size: int | None = None,
                 fill_value: Any = 0) -> Any:
        """The slices along an axis whose condition holds."""
        return searching.compress(condition, self, axis, size=size, fill_value=fill_value)

    # ── Devices ──────────────────────────────────────────────────────────────────────────────

    device = property(lambda self: CPU)  # a slot of arrays on other devices
    sharding = property(lambda self: SingleDeviceSharding(self.device))
    addressable_shards = property(lambda self: shards(self))
    global_shards = addressable_shards
    is_fully_addressable = property(lambda self: isinstance(self, ArrayImpl))
    is_fully_replicated = property(lambda self: self.sharding.is_fully_replicated)
    committed = property(lambda self: getattr(self, "_committed", False))

    def devices(self: Any) -> set[Any]:
        """The devices that hold the array."""
        return self.sharding.device_set

    def to_device(self: Any, device: Any, *, stream: None = None) -> Any:
        """The array on a device."""
        return device_put(self, device)

    def addressable_data(self: Any, index: int) -> Any:
        """The part of the array that lies on one of its devices."""
        return shards(self)[index].data

    def block_until_ready(self: Any) -> Any:
        """The array, when it is computed."""
        return block_until_ready(self)

    def copy_to_host_async(self: Any) -> None:
        """Does nothing, as the array is there already."""

    @property
    def format(self: Any) -> Any:
        """The layout of its numbers in memory, and its devices."""
        return format_of(self, self.sharding)

    @property
    def flat(self: Any) -> Any:
        raise NotImplementedError("JAX Arrays do not implement the arr.flat property: consider "
                                  "arr.flatten() instead.")

    @property
    def device_buffer(self: Any) -> Any:
        raise AttributeError("arr.device_buffer has been deprecated. Use arr.addressable_data(0)")

    @property
    def device_buffers(self: Any) -> Any:
        raise AttributeError("arr.device_buffers has been deprecated. Use [x.data for x in "
                             "arr.addressable_shards]")

    def byteswap(self: Any, inplace: bool = False) -> Any:
        """The numbers with their bytes reversed."""
        if inplace:
            raise NotImplementedError("JAX arrays are immutable: byteswap(inplace=True) has "
                                      "nothing to write to.")
        if self.dtype.kind == "c":
            return lax.complex(lax.real(self).byteswap(), lax.imag(self).byteswap())
        if self.dtype.itemsize == 1:
            return creation.array(self)
        octets = lax.bitcast_convert_type(self, np.uint8)
        return lax.bitcast_convert_type(lax.rev(octets, (self.ndim,)), self.dtype)

    def is_ready(self: Any) -> bool:
        """Whether it is computed: yes."""
        return True

    def on_device_size_in_bytes(self: Any) -> int:
        """How much memory its numbers take."""
        return self.nbytes

    def platform(self: Any) -> str:
        """The platform that holds the array."""
        return next(iter(self.devices())).platform

    def unsafe_buffer_pointer(self: Any) -> int:
        """The address of its numbers."""
        if len(self.devices()) > 1:
            raise ValueError("unsafe_buffer_pointer() is supported only for unsharded arrays.")
        return int(self._buffer.ctypes.data)

    def is_deleted(self: Any) -> bool:
        """Whether the buffer was donated, or deleted."""
        return isinstance(self, ArrayImpl) and is_donated(self)

    delete = donate


# ── All of them ──────────────────────────────────────────────────────────────────────────────

def _attributes() -> dict[str, Any]:
    """Operators, methods and properties of arrays and tracers, by name."""
    functions = {name: value for module in (arithmetic, contractions, diagonals, joining, logic,
                                            putting, reductions, searching, shaping, sorting, unary)
                 for name, value in vars(module).items() if name in module.__all__}
    attributes: dict[str, Any] = {}
    for name, (sign, word) in (_OPERATORS | _COMPARISONS).items():
        function, reflected = functions[word], f"__r{name}__"
        attributes[f"__{name}__"] = _binary_operator(f"__{name}__", sign, function)
        if name in _OPERATORS:
            attributes[reflected] = _binary_operator(reflected, sign, function, swapped=True)
    attributes |= {f"__{name}__": functions[function] for name, function in _UNARY.items()}
    attributes |= {name: functions[name] for name in _METHODS}
    return attributes | {name: value for name, value in vars(_Methods).items()
                         if inspect.isfunction(value) or isinstance(value, property)}


for _name, _value in _attributes().items():
    setattr(Array, _name, boundary(_value) if inspect.isfunction(_value) else _value)
for _error, _words, _names in _OF_CONCRETE_ARRAYS:
    for _name in _names.split():
        setattr(Tracer, _name, _refused_of_tracers(_error, _words, _name))
Tracer.__getattr__ = _missing_of_tracers
for _name, _text in {"__repr__": display.array_repr, "__str__": display.array_str}.items():
    setattr(ArrayImpl, _name, _text)
