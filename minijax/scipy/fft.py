"""`minijax.scipy.fft`: cosine transforms, each by a Fourier transform of the same length.

Builds on `numpy.fft`.  In JAX: `jax/_src/scipy/fft.py`.
"""

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import lax, numpy as jnp
from minijax.core import Array
from minijax.numpy.arguments import as_array, canonical_axes, promote_dtypes_inexact
from minijax.transforms.prepared import export_all as _export_all

__all__ = ["dct", "dctn", "idct", "idctn"]


def dct(x: Array, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None
        ) -> Array:
    """The cosine transform: ``2 sum(x[j] cos(π k (2j + 1) / 2n))`` for each k.

    >>> dct(jnp.array([1., 1.]))
    Array([4., 0.], dtype=float32)

    Args:
      x: an array of numbers; complex ones are transformed by their parts.
      type: 2, no other.
      n: the length, to which `x` is cut or filled up with zeros; by default that of `x`.
      axis: along which.
      norm: None or "backward", or "ortho", which makes it orthonormal.
    """
    return _transform_axes("dct", _forward, x, type, [axis], None if n is None else [n], norm)


def idct(x: Array, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None
         ) -> Array:
    """The inverse of `dct`, which takes the same arguments.

    >>> idct(jnp.array([4., 0.]))
    Array([1., 1.], dtype=float32)
    """
    return _transform_axes("idct", _inverse, x, type, [axis], None if n is None else [n], norm)


def dctn(x: Array, type: int = 2, s: Sequence[int] | None = None,
         axes: Sequence[int] | None = None, norm: str | None = None) -> Array:
    """`dct` along several axes: the last ones that `s` has lengths for, all by default.

    >>> dctn(jnp.ones((2, 2)))
    Array([[16.,  0.],
           [ 0.,  0.]], dtype=float32)
    """
    return _transform_axes("dctn", _forward, x, type, axes, s, norm)


def idctn(x: Array, type: int = 2, s: Sequence[int] | None = None,
          axes: Sequence[int] | None = None, norm: str | None = None) -> Array:
    """The inverse of `dctn`, which takes the same arguments.

    >>> idctn(dctn(jnp.ones((2, 2))))
    Array([[1., 1.],
           [1., 1.]], dtype=float32)
    """
    return _transform_axes("idctn", _inverse, x, type, axes, s, norm)


def _transform_axes(name: str, transform: Callable[[Any, bool], Any], x: Any, type: int,
                    axes: Sequence[int] | None, s: Any, norm: str | None) -> Array:
    """The transform along each of the axes, of these lengths."""
    x = as_array(name, x)
    if type != 2:
        raise NotImplementedError("Only DCT type 2 is implemented.")
    if norm not in (None, "backward", "ortho"):
        raise ValueError(f"jax.scipy.fft.{name}: {norm=!r} is not implemented")
    if x.dtype.kind == "c":
        return lax.complex(*(_transform_axes(name, transform, part, type, axes, s, norm)
                             for part in (x.real, x.imag)))
    [x] = promote_dtypes_inexact(x)
    sizes = s if s is None or isinstance(s, Sequence) else [operator.index(s)]
    if sizes is not None and len(sizes) > x.ndim:
        raise ValueError(f"s must have at most x.ndim ({x.ndim}) elements, got {len(sizes)}")
    if axes is None and sizes is not None:
        axes = range(x.ndim - len(sizes), x.ndim)
    axes = canonical_axes(axes, x.ndim)
    for i, axis in enumerate(axes):
        x = jnp.moveaxis(x, axis, -1)
        if sizes is not None and i < len(sizes):
            after = [(0, 0, 0)] * (x.ndim - 1) + [(0, sizes[i] - x.shape[-1], 0)]
            x = lax.pad(x, jnp.zeros((), x.dtype), after)
        x = jnp.moveaxis(transform(x, norm == "ortho"), -1, axis)
    return x


def _twiddles(n: int, dtype: Any) -> tuple[Any, Any]:
    """The twiddle factors of a quarter of a circle, and the norms of the basis vectors of `dct`."""
    twiddles = np.exp(-.5j * math.pi * np.arange(n) / max(n, 1))
    norms = np.sqrt(np.where(np.arange(n) == 0, 4., 2.) * n)
    return jnp.array(twiddles, jnp.result_type(dtype, np.complex64)), jnp.array(norms, dtype)


def _forward(x: Any, ortho: bool) -> Any:
    twiddles, norms = _twiddles(x.shape[-1], x.dtype)
    reordered = jnp.concatenate([x[..., ::2], x[..., 1::2][..., ::-1]], axis=-1)
    coefficients = 2 * jnp.real(jnp.fft.fft(reordered) * twiddles)
    return coefficients / norms if ortho else coefficients


def _inverse(x: Any, ortho: bool) -> Any:
    twiddles, norms = _twiddles(x.shape[-1], x.dtype)
    x = x * norms if ortho else x
    reordered = jnp.real(jnp.fft.ifft(x.at[..., 0].multiply(.5) * jnp.conj(twiddles)))
    half = (x.shape[-1] + 1) // 2
    out = jnp.zeros_like(reordered).at[..., ::2].set(reordered[..., :half])
    return out.at[..., 1::2].set(reordered[..., half:][..., ::-1])


_export_all(globals())
