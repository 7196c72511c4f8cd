"""What Python's own syntax means for arrays and tracers: operators, conversions, iteration.

Stands on every file of this folder; `numpy/__init__` calls `install_operators` once.
Chapter 02, *Primitives and tracers*.  In JAX: `jax/_src/numpy/array_methods.py`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from minijax import config, core, dtypes, errors, lax
from minijax.core import Array, ArrayImpl
from minijax.numpy import (arithmetic, contractions, display, dlpack, unary, indexing, logic,
                           methods)
from minijax.tracebacks import api_boundary


# ── Operators ────────────────────────────────────────────────────────────────────────────────

_OPERANDS = (int, float, complex, np.generic, np.ndarray, Array)
_REFUSED = (list, tuple, set, dict)


# How Python writes a function of two arrays, and what it is called; comparisons are not turned.
_OPERATORS: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "add": ("+", arithmetic.add), "sub": ("-", arithmetic.subtract),
    "mul": ("*", arithmetic.multiply), "truediv": ("/", arithmetic.divide),
    "floordiv": ("//", arithmetic.floor_divide), "mod": ("%", arithmetic.remainder),
    "divmod": ("divmod", arithmetic.divmod), "pow": ("**", arithmetic.power),
    "matmul": ("@", contractions.matmul), "and": ("&", logic.bitwise_and),
    "or": ("|", logic.bitwise_or), "xor": ("^", logic.bitwise_xor),
    "lshift": ("<<", logic.left_shift), "rshift": (">>", logic.right_shift),
}
_COMPARISONS: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "eq": ("==", logic.equal), "ne": ("!=", logic.not_equal), "lt": ("<", logic.less),
    "le": ("<=", logic.less_equal), "gt": (">", logic.greater), "ge": (">=", logic.greater_equal),
}
_UNARY: dict[str, Callable[[Any], Any]] = {
    "neg": unary.negative, "pos": unary.positive, "abs": unary.absolute,
    "invert": logic.bitwise_not,
}


def _binary_operator(name: str, sign: str, function: Callable[[Any, Any], Any],
                     swapped: bool = False) -> Callable[[Any, Any], Any]:
    """The method behind an operator; unknown operands get their turn, lists are refused."""
    def method(self: Any, other: Any) -> Any:
        if isinstance(other, _OPERANDS) or hasattr(other, "__jax_array__"):
            return function(other, self) if swapped else function(self, other)
        if isinstance(other, _REFUSED):
            left, right = (other, self) if swapped else (self, other)
            raise TypeError(f"unsupported operand type(s) for {sign}: "
                            f"'{type(left).__name__}' and '{type(right).__name__}'")
        return NotImplemented

    method.__name__ = method.__qualname__ = name
    return method


def _unary_operator(name: str, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def method(self: Any) -> Any:
        return function(self)

    method.__name__ = method.__qualname__ = name
    return method


def _power(self: Any, exponent: Any, modulus: None = None) -> Any:
    """``x ** y``; Python's third argument has no meaning here."""
    if modulus is not None:
        return NotImplemented
    return _plain_power(self, exponent)


_plain_power = _binary_operator("__pow__", "**", arithmetic.power)


# ── A number for Python ──────────────────────────────────────────────────────────────────────

def _known(x: Any) -> ArrayImpl | None:
    """The numbers behind an array or tracer, where they are known."""
    return x._concrete()


def _untraced(x: Any) -> ArrayImpl | None:
    """An array itself; None for a tracer, though its numbers may be known."""
    return x if isinstance(x, ArrayImpl) else None


def _bool(self: Any) -> bool:
    if self.size != 1:
        _refuse_truth(self)
    known = _known(self)
    if core.has_key_dtype(self.aval):
        raise TypeError("key array cannot be converted to boolean.")
    if known is None:
        raise errors.TracerBoolConversionError(self)
    return bool(known._buffer.reshape(())[()])


def _refuse_truth(x: Any) -> None:
    if x.size == 0:
        raise ValueError("The truth value of an empty array is ambiguous. Use "
                         "`array.size > 0` to check that an array is not empty.")
    raise ValueError("The truth value of an array with more than one element is ambiguous. "
                     "Use a.any() or a.all()")


def _number(python_type: type) -> Callable[[Any], Any]:
    """`int(x)`, `float(x)`, `complex(x)`."""
    name = python_type.__name__
    hint = (f"The problem arose with the `{name}` function. If trying to convert the data type "
            f"of a value, try using `x.astype({name})` or `jnp.array(x, {name})` instead.")

    def method(self: Any) -> Any:
        if self.ndim:
            raise TypeError("Only scalar arrays can be converted to Python scalars; "
                            f"got arr.ndim={self.ndim}")
        # A float taken out of a tracer would have no derivative any more, in silence.
        known = _known(self) if python_type is int else _untraced(self)
        if known is None:
            raise errors.ConcretizationTypeError(self, hint)
        return python_type(display.numbers_of(known).item())

    method.__name__ = method.__qualname__ = f"__{name}__"
    return method


def _index(self: Any) -> int:
    if self.ndim or not dtypes.issubdtype(self.dtype, np.integer):
        raise TypeError("Only integer scalar arrays can be converted to a scalar index.")
    known = _known(self)
    if known is None:
        raise errors.TracerIntegerConversionError(self)
    return int(known._buffer)


def _round(self: Any, ndigits: int | None = None) -> Any:
    rounded = unary.round(self, ndigits or 0)
    return methods.astype(rounded, int) if ndigits is None else rounded


# ── Elements ─────────────────────────────────────────────────────────────────────────────────

def _getitem(self: Any, index: Any) -> Any:
    return indexing.rewriting_take(self, index)


_NO_ASSIGNMENT = (
    "'{}' object does not support item assignment. JAX arrays are immutable. Instead of "
    "``x[idx] = y``, use ``x = x.at[idx].set(y)`` or another .at[] method: "
    "https://jax.readthedocs.io/en/latest/_autosummary/jax.numpy.ndarray.at.html")


def _setitem(self: Any, index: Any, value: Any) -> None:
    kind = type(self)
    raise TypeError(_NO_ASSIGNMENT.format(kind))


def _iter(self: Any) -> Iterator[Any]:
    """The slices along the first axis; while tracing, the loop is unrolled."""
    if self.ndim == 0:
        raise TypeError("iteration over a 0-d array")
    if isinstance(self, ArrayImpl) and not config.debug_key_reuse.value:
        row = self.aval.update(shape=self.shape[1:])
        return (core.array_from_buffer(each, row) for each in self._buffer)
    return (lax.index_in_dim(self, i, 0, keepdims=False) for i in range(self.shape[0]))


def _reversed(self: Any) -> Iterator[Any]:
    if self.ndim == 0:
        raise TypeError("reversed() of a 0-d array")
    return _iter(lax.rev(self, (0,)))


def _contains(self: Any, value: Any) -> bool:
    return bool(methods.any(logic.equal(self, value)))


# ── NumPy's and others' protocols ────────────────────────────────────────────────────────────

def _array(self: Any, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
    known = _untraced(self)
    if known is None:
        raise errors.TracerArrayConversionError(self)
    return display.to_numpy(known, dtype, copy)


def _format(self: Any, spec: str) -> str:
    if isinstance(self, ArrayImpl):
        return display.array_format(self, spec)
    if not spec:
        return repr(self)
    raise TypeError(f"unsupported format string passed to {type(self).__name__}.__format__: the "
                    "value is being traced, and has no digits yet. jax.debug.print(\"{x:"
                    f"{spec}}}\", x=x) prints it when the compiled function runs.")


def _dlpack(self: Any, **options: Any) -> Any:
    known = _untraced(self)
    if known is None:
        raise errors.ConcretizationTypeError(self, "The error arose in __dlpack__().")
    return dlpack.to_dlpack(known, **options)


def install_operators(namespace: Any) -> None:
    """Put operators, methods and `.at` on `Array`, for arrays and tracers alike.

    Args:
      namespace: the module that ``x.__array_namespace__()`` gives.
    """
    found: dict[str, Any] = {}
    for name, (sign, function) in _OPERATORS.items():
        found[f"__{name}__"] = _binary_operator(f"__{name}__", sign, function)
        found[f"__r{name}__"] = _binary_operator(f"__r{name}__", sign, function, swapped=True)
    for name, (sign, function) in _COMPARISONS.items():
        found[f"__{name}__"] = _binary_operator(f"__{name}__", sign, function)
    for name, of_one in _UNARY.items():
        found[f"__{name}__"] = _unary_operator(f"__{name}__", of_one)
    found |= {
        "__pow__": _power, "__round__": _round, "__bool__": _bool, "__index__": _index,
        "__int__": _number(int), "__float__": _number(float), "__complex__": _number(complex),
        "__getitem__": _getitem, "__setitem__": _setitem, "__iter__": _iter,
        "__reversed__": _reversed, "__contains__": _contains,
        "__array__": _array, "__dlpack__": _dlpack, "__dlpack_device__": lambda self: (1, 0),
        "__array_namespace__": lambda self, *, api_version=None: namespace,
        "__format__": _format, "__reduce__": display.reduced, "__copy__": core.another,
        "__deepcopy__": lambda self, memo: core.another(self), "at": indexing.at_property,
        **methods.methods(),
    }
    for name, value in found.items():
        setattr(Array, name, api_boundary(value) if inspect.isfunction(value) else value)
    texts = {"__repr__": display.array_repr, "__str__": display.array_str}
    for name, value in texts.items():
        setattr(ArrayImpl, name, value)
