"""Arrays from files, buffers, texts and functions, and into files.

Builds on `creation`.  Chapter 01, *Arrays, dtypes and weak types*.
In JAX: `jax/_src/numpy/lax_numpy.py`, `array_creation.py`.
"""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from minijax.transforms.api import vmap
from minijax.core import Array
from minijax.numpy.arguments import shape_of_argument
from minijax.numpy.creation import arange, asarray

save, savez, array_repr, array_str = np.save, np.savez, np.array_repr, np.array_str


def load(file: Any, *args: Any, **kwargs: Any) -> Any:
    """The array of a file that `save` wrote, or any other object that NumPy reads.

    >>> import io
    >>> file = io.BytesIO()
    >>> save(file, asarray([1, 2]))
    >>> _ = file.seek(0)
    >>> load(file)
    Array([1, 2], dtype=int32)
    """
    contents = np.load(file, *args, **kwargs)
    if not isinstance(contents, np.ndarray):
        return contents
    # NumPy's files store bfloat16 as void
    return asarray(contents.view(ml_dtypes.bfloat16) if contents.dtype == "V2" else contents)


def frombuffer(buffer: Any, dtype: Any = float, count: int = -1, offset: int = 0) -> Array:
    """The bytes of a buffer as numbers.

    >>> frombuffer(b"ab", np.uint8)
    Array([97, 98], dtype=uint8)
    """
    return asarray(np.frombuffer(buffer, dtype, count, offset))


def fromstring(string: str, dtype: Any = float, count: int = -1, *, sep: str) -> Array:
    """The numbers that a text names, with `sep` between them.

    >>> fromstring("1 2", int, sep=" ")
    Array([1, 2], dtype=int32)
    """
    return asarray(np.fromstring(string, dtype, count, sep=sep))


def fromfunction(function: Callable, shape: Any, *, dtype: Any = float, **kwargs: Any) -> Any:
    """The values of a function of the indices along each axis, one argument for each.

    >>> fromfunction(lambda i, j: 10 * i + j, (2, 2), dtype=int)
    Array([[ 0,  1],
           [10, 11]], dtype=int32)
    """
    sizes = shape_of_argument(shape)
    for d in reversed(range(len(sizes))):
        function = vmap(function, in_axes=tuple(0 if i == d else None for i in range(len(sizes))))
    return function(*(arange(n, dtype=dtype) for n in sizes), **kwargs)


def fromfile(*args: Any, **kwargs: Any) -> Any:
    """Refused: take ``asarray(numpy.fromfile(...))``.

    Raises:
      NotImplementedError: always, since what it reads may change.

    >>> fromfile('x')
    Traceback (most recent call last):
    ...
    NotImplementedError: jnp.fromfile() is not implemented ...
    """
    raise _impure("fromfile")


def fromiter(*args: Any, **kwargs: Any) -> Any:
    """Refused: take ``asarray(numpy.fromiter(...))``.

    Raises:
      NotImplementedError: always, since what it reads may change.

    >>> fromiter('x')
    Traceback (most recent call last):
    ...
    NotImplementedError: jnp.fromiter() is not implemented ...
    """
    raise _impure("fromiter")


def _impure(name: str) -> NotImplementedError:
    return NotImplementedError(
        f"jnp.{name}() is not implemented because it may be non-pure and thus unsafe for use with "
        "JIT and other JAX transformations. Consider using jnp.asarray(np."
        f"{name}(...)) instead, outside of what is transformed.")
