"""The methods and properties of arrays and tracers: mostly a function's name after the dot.

Stands on every family of functions here; `operators` installs them.
Chapter 02, *Primitives and tracers*.  In JAX: `jax/_src/numpy/array_methods.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import config, dtypes, errors, lax
from minijax.core import ArrayImpl, Tracer, another, give_away, is_given_away
from minijax.numpy import (arithmetic, contractions, diagonals, display, joining, reductions,
                           searching, shaping, sorting, unary)
from minijax.numpy.arguments import convert
from minijax.primitives.checks import check_cast

# Methods that are the function of the same name, the array as its first argument.
def _functions() -> tuple[Callable, ...]:
    return (
        reductions.sum, reductions.prod, reductions.mean, reductions.max, reductions.min,
        reductions.argmax, reductions.argmin, reductions.any, reductions.all, reductions.std,
        reductions.var, reductions.ptp, reductions.cumsum, reductions.cumprod, contractions.dot,
        contractions.trace, diagonals.diagonal, unary.conj, unary.conjugate,
        unary.round, searching.take, joining.repeat, searching.nonzero, arithmetic.clip,
        shaping.ravel, shaping.squeeze, shaping.swapaxes, sorting.argsort, sorting.searchsorted,
        sorting.sort,
    )

any = reductions.any


def _method(function: Callable) -> Callable:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return function(self, *args, **kwargs)

    method.__name__ = method.__qualname__ = function.__name__
    summary = (function.__doc__ or "").splitlines()[0]
    method.__doc__ = f"{summary}  See `numpy.{function.__name__}`."
    method.__wrapped__ = function  # type: ignore[attr-defined]  # has the signature
    return method


# ── Methods whose arguments differ from the function's ───────────────────────────────────────

def astype(self: Any, dtype: Any, copy: bool = False, device: Any = None) -> Any:
    """The array with its elements converted.

    >>> import minijax.numpy as jnp
    >>> jnp.array([1.7, -1.7]).astype(int)
    Array([ 1, -1], dtype=int32)
    """
    wanted = dtypes.check_user_dtype_supported(dtype, "astype")
    wanted = dtypes.default_float_dtype() if wanted is None else wanted
    if config.debug_unsafe_casts.value:
        check_cast(self, wanted)
    if isinstance(wanted, np.dtype) and wanted.kind not in "cb" and self.dtype.kind == "c":
        errors.warn("Casting complex values to real discards the imaginary part",
                    np.exceptions.ComplexWarning)
        return convert(lax.real(self), wanted)
    return convert(self, wanted)


def reshape(self: Any, *shape: Any, order: str = "C") -> Any:
    """The same elements in another shape: one tuple, or one argument for each size."""
    return shaping.reshape(self, shape[0] if len(shape) == 1 else shape, order)


def transpose(self: Any, *axes: Any) -> Any:
    """The array with its axes reversed, or in the order given."""
    if not axes or axes == (None,):
        return shaping.transpose(self)
    one_tuple = len(axes) == 1 and np.iterable(axes[0])
    return shaping.transpose(self, tuple(axes[0]) if one_tuple else axes)


def flatten(self: Any, order: str = "C") -> Any:
    """The elements in one axis."""
    return shaping.ravel(self, order)


def copy(self: Any) -> Any:
    """An array of the same numbers: they cannot change, so both have them; it outlives `self`."""
    return another(self)


def view(self: Any, dtype: Any = None) -> Any:
    """The same bits, read as another dtype of the same or another width.

    >>> import minijax.numpy as jnp
    >>> jnp.array(1, dtype="int32").view("uint32")
    Array(1, dtype=uint32)
    """
    if dtype is None:
        return self
    wanted = np.dtype(dtypes.check_user_dtype_supported(dtype, "view"))
    if np.dtype(bool) in (self.dtype, wanted):
        return view(self.astype("uint8") if self.dtype == bool else self, "uint8").astype(wanted)
    before, after = self.dtype.itemsize, wanted.itemsize
    if before > after:
        return lax.reshape(lax.bitcast_convert_type(self, wanted),
                           (*self.shape[:-1], self.shape[-1] * (before // after)))
    if before < after:
        parts = after // before
        if self.shape[-1] % parts:
            raise ValueError("When changing to a larger dtype, its size must be a divisor of the "
                             "total size in bytes of the last axis of the array.")
        grouped = lax.reshape(self, (*self.shape[:-1], self.shape[-1] // parts, parts))
        return lax.bitcast_convert_type(grouped, wanted)
    return lax.bitcast_convert_type(self, wanted)


def compress(self: Any, condition: Any, axis: int | None = None, *, size: int | None = None,
             fill_value: Any = 0) -> Any:
    """The slices along an axis whose condition holds."""
    return searching.compress(condition, self, axis, size=size, fill_value=fill_value)


# ── Numbers for Python ───────────────────────────────────────────────────────────────────────

def _numbers(x: Any, context: str, of_tracers: bool = False) -> np.ndarray:
    known = x._concrete() if of_tracers or isinstance(x, ArrayImpl) else None
    if known is None:
        raise errors.ConcretizationTypeError(x, context)
    return display.numbers_of(known)


def item(self: Any, *args: int) -> Any:
    """The only element, or the one at the place given, as a Python number."""
    context = "This occurred in the item() method of jax.Array"
    return _numbers(self, context, of_tracers=True).item(*args)


def tolist(self: Any) -> Any:
    """The elements as Python numbers in nested lists."""
    return _numbers(self, _called("tolist", self)).tolist()


def tobytes(self: Any, order: str = "C") -> bytes:
    """The elements' bytes."""
    return _numbers(self, _called("tobytes", self)).tobytes(order)  # type: ignore[arg-type]


def _called(name: str, x: Any) -> str:
    return f"The {name}() method was called on traced array with shape {x.aval.str_long()}."


# ── The place of an array ────────────────────────────────────────────────────────────────────

def devices(self: Any) -> set[Any]:
    """The devices that hold the array."""
    if isinstance(self, Tracer):
        raise errors.ConcretizationTypeError(self, _called("devices", self))
    return {display.cpu}


def _nothing(self: Any) -> None:
    return None


def block_until_ready(self: Any) -> Any:
    """The array; nothing runs behind the program's back, so it is ready."""
    return self


def is_deleted(self: Any) -> bool:
    """Whether the buffer was given away."""
    return isinstance(self, ArrayImpl) and is_given_away(self)


def delete(self: Any) -> None:
    """Give the memory back now; the numbers cannot be read any more."""
    give_away(self)


def to_device(self: Any, device: Any, *, stream: None = None) -> Any:
    """The array; there is one device."""
    return self


def _properties() -> dict[str, Callable[[Any], Any]]:
    return {
        "T": shaping.transpose,
        "mT": shaping.matrix_transpose,
        "real": unary.real,
        "imag": unary.imag,
        "nbytes": lambda self: self.size * self.dtype.itemsize,
        "itemsize": lambda self: self.dtype.itemsize,
        "device": lambda self: display.cpu,
        "sharding": lambda self: display.on_cpu,
        "is_fully_addressable": lambda self: isinstance(self, ArrayImpl),
        "is_fully_replicated": lambda self: True,
        "committed": lambda self: False,
    }


def methods() -> dict[str, Any]:
    """All methods and properties, by name."""
    found: dict[str, Any] = {function.__name__: _method(function) for function in _functions()}
    found["conj"] = _method(unary.conj)
    for function in (astype, reshape, transpose, flatten, copy, view, compress, item, tolist,
                     tobytes, devices, block_until_ready, is_deleted, delete, to_device):
        found[function.__name__] = function
    found |= {"copy_to_host_async": _nothing, "addressable_data": lambda self, index: self}
    return found | {name: property(get, doc=_first_sentence(get))
                    for name, get in _properties().items()}


def _first_sentence(function: Callable[..., Any]) -> str | None:
    """What a property says of itself: the examples stay with the function, whose names they use."""
    return function.__doc__ and function.__doc__.partition("\n")[0]
