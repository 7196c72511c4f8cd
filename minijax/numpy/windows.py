"""Windows: weights of the samples of a segment, for spectra.

Builds on `creation`.
In JAX: `jax/_src/numpy/window_functions.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import dtypes, lax
from minijax.core import Array
from minijax.custom.custom_jvp_vjp import custom_jvp
from minijax.numpy.arguments import ArrayLike, promote_args_inexact, static_int
from minijax.primitives.convert import converted


def _window(name: str, M: Any, formula: Callable[[Any], Any]) -> Array:
    """The window of a function of an angle from 0 to 2 pi."""
    size, dtype = static_int(M, f"M argument of jnp.{name}"), dtypes.default_float_dtype()
    if size <= 1:
        return lax.full((size,), 1, dtype)
    return formula(lax.iota(dtype, size) * (2 * np.pi / (size - 1)))


def bartlett(M: int) -> Array:
    """The window of a triangle: its weights at M places.

    >>> bartlett(5).round(2)
    Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    return _window("bartlett", M, lambda x: 1 - lax.abs(x - np.pi) / np.pi)


def blackman(M: int) -> Array:
    """Blackman's window: its weights at M places.

    >>> blackman(5).round(2)
    Array([-0.  ,  0.34,  1.  ,  0.34, -0.  ], dtype=float32)
    """
    return _window("blackman", M, lambda x: 0.42 - 0.5 * lax.cos(x) + 0.08 * lax.cos(2 * x))


def hamming(M: int) -> Array:
    """Hamming's window: its weights at M places.

    >>> hamming(5).round(2)
    Array([0.08, 0.54, 1.  , 0.54, 0.08], dtype=float32)
    """
    return _window("hamming", M, lambda x: 0.54 - 0.46 * lax.cos(x))


def hanning(M: int) -> Array:
    """Von Hann's window: its weights at M places.

    >>> hanning(5).round(2)
    Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    return _window("hanning", M, lambda x: 0.5 - 0.5 * lax.cos(x))


def i0(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind, of order 0.

    >>> round(float(i0(1.)), 4)
    1.2661
    """
    [x] = promote_args_inexact("i0", x)
    if x.dtype.kind == "c":
        raise ValueError("Unsupported input type to jax.numpy.i0: "
                         f"{np.dtype(x.dtype)}")
    return i0_of_floats(x)


@custom_jvp
def i0_of_floats(x: Array) -> Array:
    """`i0`, whose derivative at 0 is 0, though that of its factor ``exp(|x|)`` is not.

    >>> i0_of_floats(0.)
    Array(1., dtype=float32, weak_type=True)
    """
    return lax.exp(lax.abs(x)) * lax.bessel_i0e(x)


i0_of_floats.defjvps(lambda t, out, x: t * (lax.exp(lax.abs(x)) * lax.bessel_i1e(x)))


def kaiser(M: int, beta: ArrayLike) -> Array:
    """Kaiser's window: its weights at M places; the larger `beta`, the narrower.

    >>> kaiser(5, 2.).round(2)
    Array([0.44, 0.83, 1.  , 0.83, 0.44], dtype=float32)
    """
    size, dtype = static_int(M, "M argument of jnp.kaiser"), dtypes.default_float_dtype()
    if size <= 1:
        return lax.full((size,), 1, dtype)
    middle = .5 * (size - 1)
    position = (lax.iota(dtype, size) - middle) / middle
    beta = converted(beta, dtype)
    return i0(beta * lax.sqrt(1 - position * position)) / i0(beta)


__all__ = ["bartlett", "blackman", "hamming", "hanning", "i0", "kaiser"]
