"""What an argument is: its shape, its size, whether it is a scalar, real, complex.

Stands on `arguments`.  Chapter 01, *Arrays, dtypes and weak types*.
In JAX: `jax/_src/numpy/lax_numpy.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core import Array, another
from minijax.numpy import methods
from minijax.numpy.arguments import ArrayLike, as_array, canonical_axes, like, weak_if_scalar
from minijax.numpy.unary import imag


def shape(a: Any) -> tuple[int, ...]:
    """The sizes of the axes.

    >>> shape(np.ones((2, 3)))
    (2, 3)
    """
    return np.shape(a)


def ndim(a: Any) -> int:
    """The number of axes.

    >>> ndim(np.ones((2, 3)))
    2
    """
    return np.ndim(a)


def size(a: Any, axis: Any = None) -> int:
    """The number of elements, or the size of an axis.

    >>> size(np.ones((2, 3))), size(np.ones((2, 3)), 1)
    (6, 3)
    """
    sizes = np.shape(a)
    return int(np.prod([sizes[d] for d in canonical_axes(axis, len(sizes))], dtype=int))


def isscalar(element: Any) -> bool:
    """Whether it is a number: of Python, of NumPy, or an array without axes.

    >>> isscalar(1.5), isscalar([1.5])
    (True, False)
    """
    if isinstance(element, (np.ndarray, Array)):
        return element.ndim == 0
    return bool(np.isscalar(element))


def iterable(y: Any) -> bool:
    """Whether one can loop over it.

    >>> iterable(np.ones(2)), iterable(2)
    (True, False)
    """
    return bool(np.iterable(y))


def iscomplexobj(x: Any) -> bool:
    """Whether the dtype is complex.

    >>> iscomplexobj(1j), iscomplexobj(1.0)
    (True, False)
    """
    if hasattr(x, "dtype"):
        return dtypes.issubdtype(x.dtype, np.complexfloating)
    return bool(np.iscomplexobj(x))


def isrealobj(x: Any) -> bool:
    """Whether the dtype is not complex.

    >>> isrealobj(1.0)
    True
    """
    return not iscomplexobj(x)


def iscomplex(x: ArrayLike) -> Array:
    """Whether the imaginary part is not zero.

    >>> iscomplex(np.array([1 + 1j, 2]))
    Array([ True, False], dtype=bool)
    """
    part: Any = imag(as_array("iscomplex", x))
    return part != like(0, part)


def isreal(x: ArrayLike) -> Array:
    """Whether the imaginary part is zero.

    >>> isreal(np.array([1 + 1j, 2]))
    Array([False,  True], dtype=bool)
    """
    part: Any = imag(as_array("isreal", x))
    return weak_if_scalar(part == like(0, part))


def astype(x: ArrayLike, dtype: Any, /, *, copy: bool = False, device: Any = None) -> Array:
    """The array with its elements converted.

    >>> astype(np.array([1.7, -1.7]), int)
    Array([ 1, -1], dtype=int32)
    """
    return methods.astype(as_array("astype", x), dtype)


def copy(a: ArrayLike, order: str | None = None) -> Array:
    """An array of these values; it stays when `a` is given away.

    >>> copy(np.array([1, 2]))
    Array([1, 2], dtype=int32)
    """
    return another(as_array("copy", a))
