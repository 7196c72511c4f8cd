"""Formulas in infix: `x * y + 1.0` writes operations with a builder, or runs them on arrays.

Builds on nothing.  Chapter 25, *exp from scratch*, is written in it.
In JAX: the operators of MLIR's Python bindings.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


class Number:
    """A scalar `value` of the builder `s` (or an array, and `s` computes with NumPy)."""

    __array_ufunc__ = None  # NumPy's numbers leave the operators to this class

    def __init__(self, s: Any, value: Any) -> None:
        self.s, self.value, self.dtype = s, value, value.dtype

    def const(self, value: Any, dtype: Any = None) -> Number:
        """A constant, by default of the same dtype."""
        return Number(self.s, self.s.const(value, dtype or self.dtype))

    def to(self, dtype: Any) -> Number:
        """The number converted."""
        return Number(self.s, self.s.convert(self.value, dtype))

    def bits(self, dtype: Any = None) -> Number:
        """The same bits read as another dtype, by default as a signed integer."""
        return Number(self.s, self.s.bitcast(self.value, dtype or f"i{self.dtype.itemsize}"))

    def __rshift__(self, places: Any) -> Number:
        """Bits shifted to the right; of a signed integer, its sign comes in from the left."""
        return (shr_logical if self.dtype.kind == "u" else shr_arithmetic)(self, places)


def infix(formula: Callable[..., Number]) -> Callable[..., Any]:
    """`f(s, *scalars, **params)` from a formula of numbers.

    >>> from minijax.compiler.scalars import NumpyScalars
    >>> import numpy as np
    >>> infix(lambda x: abs(x) * 2 + 1)(NumpyScalars(), np.float32([-1, 2]))
    array([3., 5.], dtype=float32)
    """
    @functools.wraps(formula)
    def written(s: Any, *scalars: Any, **params: Any) -> Any:
        return formula(*(Number(s, x) for x in scalars), **params).value
    return written


def on_numbers(f: Callable[..., Any]) -> Callable[..., Any]:
    """The inverse of `infix`: a function of `Number` and Python numbers, from `f(s, *scalars)`."""
    def function(*args: Any) -> Number:
        s = [x for x in args if isinstance(x, Number)][0].s
        return Number(s, f(s, *[x.value if isinstance(x, Number) else x for x in args]))
    return function


def _operation(name: str) -> Callable[..., Any]:
    return on_numbers(lambda s, *args: getattr(s, name)(*args))


for _name in "add sub mul truediv and or xor lshift eq ne lt le gt ge neg abs invert".split():
    _function = _operation({"truediv": "div", "lshift": "shl", "invert": "not"}.get(_name, _name))
    setattr(Number, f"__{_name}__", _function)
    setattr(Number, f"__r{_name}__", lambda x, y, function=_function: function(y, x))
fma, select, sqrt, floor, trunc, copysign, round_even = map(
    _operation, ("fma", "select", "sqrt", "floor", "trunc", "copysign", "round_even"))
minimum, maximum, shr_logical, shr_arithmetic = map(
    _operation, ("min", "max", "shr_logical", "shr_arithmetic"))
