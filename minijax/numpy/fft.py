"""`minijax.numpy.fft`: Fourier transforms along any axes, their frequencies and shifts.

Builds on `lax.fft`, which transforms the last axes.
In JAX: `jax/_src/numpy/fft.py`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import dtypes, lax
from minijax.core import Array
from minijax.numpy import creation, joining, shaping, unary
from minijax.numpy.arguments import ArrayLike, Axes, as_array, public
from minijax.primitives.fft import FftType
from minijax.transforms.prepared import export_all as _export_all

Shape = Sequence[int] | None
Sizes = tuple[int, ...] | None

# ── The implementation of all transforms ─────────────────────────────────────────────────────

def _transform(name: str, fft_type: FftType, a: Any, s: Any, axes: Any, norm: str | None) -> Any:
    """The axes are moved last, cut or padded to the sizes `s`, transformed, and moved back."""
    if name.endswith("fft"):  # one size and one axis
        _check_one_axis(name, axes)
        s, axes = (None if each is None else [each] for each in (s, axes))
    elif name.endswith("2") and len(axes) != 2:
        raise ValueError(f"jax.numpy.fft.{name} only supports 2 axes. Got axes = {axes!r}.")
    x, sizes = as_array(f"jax.numpy.fft.{name}", a), _sizes(s)
    axes = _transform_axes(name, x.ndim, sizes, axes)
    last = tuple(range(-len(axes), 0))
    x = shaping.moveaxis(x, axes, last)
    in_sizes, fft_lengths = _lengths(fft_type, x.shape[x.ndim - len(axes):], sizes)
    out: Any = lax.fft(_resize_axes(x, in_sizes), fft_type, fft_lengths)
    scale = _scale(norm, math.prod(fft_lengths), name.startswith("i"))
    return shaping.moveaxis(out if scale == 1 else out * scale, last, axes)


def _sizes(s: Shape) -> Sizes:
    if s is None:
        return None
    sizes = tuple(map(operator.index, s))
    if any(n <= 0 for n in sizes):
        raise ValueError("Shape should be positive.")
    return sizes


def _transform_axes(name: str, ndim: int, sizes: Sizes, axes: Shape) -> tuple[int, ...]:
    """The axes that are transformed: by default the last ones, as many as there are sizes."""
    if axes is None:
        return tuple(range(ndim - (ndim if sizes is None else len(sizes)), ndim))
    if sizes is not None and len(sizes) != len(axes):
        raise ValueError("Shape and axes have different lengths.")
    if len(axes) != len(set(axes)):
        raise ValueError(f"jax.numpy.fft.{name} does not support repeated axes. Got axes {axes}.")
    return tuple(axes)


def _lengths(fft_type: FftType, shape: tuple[int, ...], sizes: Sizes) -> Sequence[tuple[int, ...]]:
    """The sizes of the input, half a spectrum for `irfft`, and the lengths of the transform."""
    if fft_type is not FftType.IRFFT or not shape:
        return sizes or shape, sizes or shape
    if sizes is None:
        return shape, (*shape[:-1], max(0, 2 * (shape[-1] - 1)))
    return (*sizes[:-1], sizes[-1] // 2 + 1), sizes


def _resize_axes(x: Array, sizes: tuple[int, ...]) -> Array:
    """The last axes cut, or padded with zeros, to these sizes."""
    rest = x.ndim - len(sizes)
    if x.shape[rest:] == sizes:
        return x
    x = x[(..., *(slice(n) for n in sizes))]
    missing = [n - old for n, old in zip(sizes, x.shape[rest:], strict=True)]
    return joining.pad(x, [(0, 0)] * rest + [(0, n) for n in missing]) if any(missing) else x


def _scale(norm: str | None, n: int, inverse: bool) -> float:
    """The factor of a normalisation, in addition to the division of the inverse by its size."""
    if norm is None or norm == "backward":
        return 1
    if norm not in ("ortho", "forward"):
        raise ValueError(f'Invalid norm value {norm}; should be "backward","ortho" or "forward".')
    size = math.sqrt(n) if norm == "ortho" else n
    return size if inverse else 1 / size if size else math.inf


def _check_one_axis(name: str, axis: Any) -> None:
    if isinstance(axis, list | tuple):
        raise ValueError(f"jax.numpy.fft.{name} does not support multiple axes. Please use "
                         f"jax.numpy.fft.{name}n. Got axis = {axis!r}.")


# ── Along one axis ──────────────────────────────────────────────────────────────────────────────

def fft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The discrete Fourier transform along an axis.

    Args:
      a: an array.
      n: the size of the axis, to which it is cut or filled with zeros; by default that of
        `a`.
      axis: which one.
      norm: what is divided by the size: "backward", the inverse; "forward", the other; "ortho",
        both by its root.

    Raises:
      ValueError: for sizes that are not positive, an unknown norm.

    >>> import numpy as np
    >>> fft(np.array([1., 0., 0., 0.]))
    Array([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)
    """
    return _transform("fft", FftType.FFT, a, n, axis, norm)


def ifft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of the discrete Fourier transform along an axis.

    Args:
      a: an array.
      n: the size of the axis, to which it is cut or filled with zeros; by default that of
        `a`.
      axis: which one.
      norm: what is divided by the size: "backward", the inverse; "forward", the other; "ortho",
        both by its root.

    Raises:
      ValueError: for sizes that are not positive, an unknown norm.

    >>> import numpy as np
    >>> ifft(np.array([4., 0., 0., 0.]))
    Array([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)
    """
    return _transform("ifft", FftType.IFFT, a, n, axis, norm)


def rfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The first half of the spectrum of real numbers: the rest is its conjugate, in reverse.

    Args:
      a: a real array.
      n: the size of the axis, to which it is cut or filled with zeros; by default that of
        `a`.
      axis: which one.
      norm: what is divided by the size: "backward", the inverse; "forward", the other; "ortho",
        both by its root.

    Raises:
      ValueError: for complex numbers, sizes that are not positive, an unknown norm.

    >>> import numpy as np
    >>> rfft(np.array([1., 0., 0., 0.]))
    Array([1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)
    """
    return _transform("rfft", FftType.RFFT, a, n, axis, norm)


def irfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Real numbers from the first half of their spectrum: the inverse of `rfft`.

    Args:
      a: an array.
      n: the size of the result, to which it is cut or filled with zeros; by default twice that of
        `a`, less two.
      axis: which one.
      norm: what is divided by the size: "backward", the inverse; "forward", the other; "ortho",
        both by its root.

    Raises:
      ValueError: for sizes that are not positive, an unknown norm.

    >>> import numpy as np
    >>> irfft(np.array([4., 0., 0.]))
    Array([1., 1., 1., 1.], dtype=float32)
    """
    return _transform("irfft", FftType.IRFFT, a, n, axis, norm)


# ── Along two axes ──────────────────────────────────────────────────────────────────────────────

def fft2(a: ArrayLike, s: Shape = None, axes: Axes = (-2, -1), norm: str | None = None) -> Array:
    """The discrete Fourier transform along two axes.

    Args:
      a: an array.
      s: the sizes of the axes.
      axes: which ones, the last of them last; by default the last two.
      norm: as of `fft`.

    Raises:
      ValueError: for other than two axes, sizes that are not positive, an unknown norm.

    >>> import numpy as np
    >>> fft2(np.ones((3, 4))).shape
    (3, 4)
    """
    return _transform("fft2", FftType.FFT, a, s, axes, norm)


def ifft2(a: ArrayLike, s: Shape = None, axes: Axes = (-2, -1), norm: str | None = None) -> Array:
    """The inverse of the discrete Fourier transform along two axes.

    Args:
      a: an array.
      s: the sizes of the axes.
      axes: which ones, the last of them last; by default the last two.
      norm: as of `ifft`.

    Raises:
      ValueError: for other than two axes, sizes that are not positive, an unknown norm.

    >>> import numpy as np
    >>> ifft2(np.ones((3, 4))).shape
    (3, 4)
    """
    return _transform("ifft2", FftType.IFFT, a, s, axes, norm)


def rfft2(a: ArrayLike, s: Shape = None, axes: Axes = (-2, -1), norm: str | None = None) -> Array:
    """The transform of real numbers along two axes: of the last, half of the spectrum.

    Args:
      a: a real array.
      s: the sizes of the axes.
      axes: which ones, the last of them last; by default the last two.
      norm: as of `rfft`.

    Raises:
      ValueError: for complex numbers, other than two axes, sizes below one, an unknown norm.

    >>> import numpy as np
    >>> rfft2(np.ones((3, 4))).shape
    (3, 3)
    """
    return _transform("rfft2", FftType.RFFT, a, s, axes, norm)


def irfft2(a: ArrayLike, s: Shape = None, axes: Axes = (-2, -1), norm: str | None = None) -> Array:
    """Real numbers from their spectrum along two axes: the inverse of `rfft2`.

    Args:
      a: an array.
      s: the sizes of the axes, as they are in the result.
      axes: which ones, the last of them last; by default the last two.
      norm: as of `irfft`.

    Raises:
      ValueError: for other than two axes, sizes that are not positive, an unknown norm.

    >>> import numpy as np
    >>> irfft2(np.ones((3, 4))).shape
    (3, 6)
    """
    return _transform("irfft2", FftType.IRFFT, a, s, axes, norm)


# ── Along any axes ──────────────────────────────────────────────────────────────────────────────

def fftn(a: ArrayLike, s: Shape = None, axes: Shape = None, norm: str | None = None) -> Array:
    """The discrete Fourier transform along axes.

    Args:
      a: an array.
      s: the sizes of the axes.
      axes: which ones, the last of them last; by default all, or as many as
        there are sizes.
      norm: as of `fft`.

    Raises:
      ValueError: for repeated axes, other than one size an axis, an unknown norm.

    >>> import numpy as np
    >>> fftn(np.ones((3, 4))).shape
    (3, 4)
    """
    return _transform("fftn", FftType.FFT, a, s, axes, norm)


def ifftn(a: ArrayLike, s: Shape = None, axes: Shape = None, norm: str | None = None) -> Array:
    """The inverse of the discrete Fourier transform along axes.

    Args:
      a: an array.
      s: the sizes of the axes.
      axes: which ones, the last of them last; by default all, or as many as
        there are sizes.
      norm: as of `ifft`.

    Raises:
      ValueError: for repeated axes, other than one size an axis, an unknown norm.

    >>> import numpy as np
    >>> ifftn(np.ones((3, 4))).shape
    (3, 4)
    """
    return _transform("ifftn", FftType.IFFT, a, s, axes, norm)


def rfftn(a: ArrayLike, s: Shape = None, axes: Shape = None, norm: str | None = None) -> Array:
    """The transform of real numbers along axes: of the last, half of the spectrum.

    Args:
      a: a real array.
      s: the sizes of the axes.
      axes: which ones, the last of them last; by default all, or as many as
        there are sizes.
      norm: as of `rfft`.

    Raises:
      ValueError: for complex numbers, repeated axes, other than one size an axis, an unknown norm.

    >>> import numpy as np
    >>> rfftn(np.ones((3, 4))).shape
    (3, 3)
    """
    return _transform("rfftn", FftType.RFFT, a, s, axes, norm)


def irfftn(a: ArrayLike, s: Shape = None, axes: Shape = None, norm: str | None = None) -> Array:
    """Real numbers from their spectrum along axes: the inverse of `rfftn`.

    Args:
      a: an array.
      s: the sizes of the axes, as they are in the result.
      axes: which ones, the last of them last; by default all, or as many as
        there are sizes.
      norm: as of `irfft`.

    Raises:
      ValueError: for repeated axes, other than one size an axis, an unknown norm.

    >>> import numpy as np
    >>> irfftn(np.ones((3, 4))).shape
    (3, 6)
    """
    return _transform("irfftn", FftType.IRFFT, a, s, axes, norm)

# ── Hermitian symmetry ───────────────────────────────────────────────────────────────────────

def hfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The real spectrum of a signal that is symmetric, from its first half.

    Args:
      a: the first half, of which the rest is the conjugate, in reverse.
      n: the size of the result; by default twice that of `a` less one.
      axis, norm: as of `fft`.

    Raises:
      ValueError: for several axes, sizes that are not positive, an unknown norm.

    >>> import numpy as np
    >>> hfft(np.array([1., 2., 1.]))
    Array([ 6.,  0., -2.,  0.], dtype=float32)
    """
    out = _transform("hfft", FftType.IRFFT, unary.conj(a), n, axis, norm)
    return out * out.shape[axis]


def ihfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The first half of the symmetric signal whose spectrum is real: the inverse of `hfft`.

    Args:
      a: a real array.
      n, axis, norm: as of `fft`.

    Raises:
      ValueError: for several axes, complex numbers, sizes that are not positive, an unknown norm.

    >>> import numpy as np
    >>> ihfft(np.array([6., 0., -2., 0.])).real
    Array([1., 2., 1.], dtype=float32)
    """
    a = creation.asarray(a)
    _check_one_axis("ihfft", axis)
    size = a.shape[axis] if n is None else n
    return lax.conj(_transform("ihfft", FftType.RFFT, a, n, axis, norm)) * (1 / size)


# ── Frequencies and shifts ───────────────────────────────────────────────────────────────────

def fftfreq(n: int, d: Any = 1.0, *, dtype: Any = None, device: Any = None) -> Array:
    """The frequency of each number of a spectrum: from 0 up, then the negative ones.

    Args:
      n: how many.
      d: the time between two samples.
      dtype: of the result; by default float32, or float64 with 64 bits.

    Raises:
      ValueError: for several n or d.

    >>> fftfreq(4)
    Array([ 0.  ,  0.25, -0.5 , -0.25], dtype=float32)
    """
    _check_scalars("fftfreq", n, d)
    dtype = dtype or dtypes.default_float_dtype()
    computed = dtypes.to_floating_dtype(np.dtype(dtype))
    multiples: Any = (creation.arange(n, dtype=computed) + n // 2) % n - n // 2
    return (multiples / creation.array(d * n, dtype=computed)).astype(dtype)


def rfftfreq(n: int, d: Any = 1.0, *, dtype: Any = None, device: Any = None) -> Array:
    """The frequency of each number of the spectrum of n real ones: from 0 up.

    Args:
      n, d, dtype: as of `fftfreq`.

    Raises:
      ValueError: for several n or d.

    >>> rfftfreq(4)
    Array([0.  , 0.25, 0.5 ], dtype=float32)
    """
    _check_scalars("rfftfreq", n, d)
    dtype = dtype or dtypes.default_float_dtype()
    return creation.arange(n // 2 + 1, dtype=dtype) / creation.array(d * n, dtype=dtype)


def _check_scalars(name: str, n: Any, d: Any) -> None:
    for argument, value, what in (("n", n, "an int"), ("d", d, "a single value")):
        if isinstance(value, list | tuple):
            raise ValueError(f"The {argument} argument of jax.numpy.fft.{name} only takes {what}. "
                             f"Got {argument} = {list(value)}.")


def fftshift(x: Any, axes: int | Sequence[int] | None = None) -> Array:
    """The array turned by half its size, so that the frequency zero is in the middle.

    Args:
      x: an array.
      axes: which axes are turned; by default all.

    >>> fftshift(fftfreq(4))
    Array([-0.5 , -0.25,  0.  ,  0.25], dtype=float32)
    """
    return _roll_by_half("fftshift", x, axes, lambda n: n // 2)


def ifftshift(x: Any, axes: int | Sequence[int] | None = None) -> Array:
    """The inverse of `fftshift`.

    Args:
      x: an array.
      axes: which axes are turned; by default all.

    >>> ifftshift(fftshift(fftfreq(5))) == fftfreq(5)
    Array([ True,  True,  True,  True,  True], dtype=bool)
    """
    return _roll_by_half("ifftshift", x, axes, lambda n: -(n // 2))


def _roll_by_half(name: str, x: Any, axes: Any, by: Any) -> Array:
    x = as_array(name, x)
    axes = range(x.ndim) if axes is None else axes
    axes = tuple(axes) if np.iterable(axes) else (axes,)
    return shaping.roll(x, [by(x.shape[axis]) for axis in axes], axes)


public(globals(), "jax.numpy.fft.")


_export_all(globals())
