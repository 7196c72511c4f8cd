"""Choosing between arrays, element by element: by a mask, by many masks, by limits.

Stands on `arguments`.  Chapter 17, *Control flow under jit*.
In JAX: `jax/_src/numpy/util.py` (`_where`), `lax_numpy.py` (`select`, `piecewise`, `clip`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


from minijax import dtypes, lax
from minijax.core import Array, as_value
from minijax.numpy.arguments import (ArrayLike, as_arrays, broadcast_arrays_to_one_shape,
                                     broadcast_to_shape, check_arraylike, convert, promote_args,
                                     promote_dtypes)


def choose(condition: Any, x: Any, y: Any) -> Any:
    """`x` where the condition holds (is not zero), else `y`: `where` with three arguments."""
    condition = as_value(condition)
    if condition.dtype != bool:
        condition = condition != 0
    x, y = promote_dtypes(x, y)
    if condition.ndim:
        condition, x, y = broadcast_arrays_to_one_shape(condition, x, y)
    else:
        x, y = broadcast_arrays_to_one_shape(x, y)
    return lax.select(condition, x, y)


def select(condlist: Sequence[ArrayLike], choicelist: Sequence[ArrayLike],
           default: ArrayLike = 0) -> Array:
    """From each place, the choice whose condition is the first to hold there.

    >>> import numpy as np
    >>> x = np.arange(4)
    >>> select([x < 1, x > 2], [x - 10, x + 10], default=5)
    Array([-10,   5,   5,  13], dtype=int32)
    """
    if len(condlist) != len(choicelist):
        raise ValueError("condlist must have length equal to choicelist "
                         f"({len(condlist)} vs {len(choicelist)})")
    if not len(condlist):
        raise ValueError("condlist must be non-empty")
    check_arraylike("select", *condlist, *choicelist, default)
    *choices, result = promote_dtypes(*choicelist, default)
    for condition, choice in reversed(list(zip(condlist, choices, strict=True))):
        result = choose(condition, choice, result)
    return result


def piecewise(x: ArrayLike, condlist: Any, funclist: Sequence[Any], *args: Any,
              **kwargs: Any) -> Array:
    """A function given in pieces: where a condition holds, the function that belongs to it.

    Where several conditions hold, the first counts; one function more than conditions is the
    default, which otherwise is zero.  A function may be a number.

    >>> import numpy as np
    >>> x = np.array([-2.0, 3.0])
    >>> piecewise(x, [x < 0, x >= 0], [lambda x: -x, 1])
    Array([2., 1.], dtype=float32)
    """
    # JAX: a switch for each element; here all functions run, and `where` chooses.
    [x] = as_arrays("piecewise", x)
    condlist, functions = list(condlist), list(funclist)
    if len(functions) not in (len(condlist), len(condlist) + 1):
        raise ValueError(f"with {len(condlist)} condition(s), either {len(condlist)} or "
                         f"{len(condlist) + 1} functions are expected; got {len(functions)}")
    values = [_piece(f, x, args, kwargs) for f in functions]
    if len(values) == len(condlist):
        values.append(_piece(0, x, args, kwargs))
    *choices, result = values
    for condition, choice in reversed(list(zip(condlist, choices, strict=True))):
        result = choose(condition, choice, result)
    return result


def _piece(function: Callable | Any, x: Any, args: tuple, kwargs: dict) -> Any:
    value = function(x, *args, **kwargs) if callable(function) else convert(function, x.dtype)
    return broadcast_to_shape(value, x.shape)


def clip(arr: ArrayLike, /, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Array:
    """The numbers, kept within limits; None is no limit.

    >>> import numpy as np
    >>> clip(np.array([-1, 0, 5]), 0, 3)
    Array([0, 0, 3], dtype=int32)
    """
    check_arraylike("clip", arr, *(x for x in (min, max) if x is not None))
    result = as_value(arr)
    if any(dtypes.dtype(x).kind == "c" for x in (result, min, max) if x is not None):
        raise ValueError("Clip received a complex value either through the input or the min/max "
                         "keywords. Complex values have no ordering and cannot be clipped. "
                         "Please convert to a real value or array by taking the real or "
                         "imaginary components via jax.numpy.real/imag respectively.")
    if min is not None:
        result = lax.max(*promote_args("clip", min, result))
    if max is not None:
        result = lax.min(*promote_args("clip", max, result))
    return result
