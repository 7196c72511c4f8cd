"""`minijax.image`: resized images, each pixel of which is a weighted sum of pixels.

Builds on `numpy`.  In JAX: `jax/_src/image/scale.py`.
"""

import enum
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import lax, numpy as jnp
from minijax.core import Array
from minijax.numpy.arguments import promote_dtypes_inexact

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]


class ResizeMethod(enum.Enum):
    """The interpolation of a pixel from its neighbours."""

    NEAREST, LINEAR, LANCZOS3, LANCZOS5, CUBIC, CUBIC_PYTORCH, AREA = range(7)

    @staticmethod
    def from_string(s: str) -> "ResizeMethod":
        """The method of this name, or one of its other names.

        >>> ResizeMethod.from_string("bilinear")
        <ResizeMethod.LINEAR: 1>
        """
        if s not in _NAMES:
            raise ValueError(f'Unknown resize method "{s}"')
        return _NAMES[s]


_NAMES = {name: method for method, names in {
    ResizeMethod.NEAREST: "nearest", ResizeMethod.LINEAR: "linear bilinear trilinear triangle",
    ResizeMethod.LANCZOS3: "lanczos3", ResizeMethod.LANCZOS5: "lanczos5",
    ResizeMethod.CUBIC: "cubic bicubic tricubic", ResizeMethod.AREA: "area",
    ResizeMethod.CUBIC_PYTORCH: "cubic-pytorch bicubic-pytorch"}.items() for name in names.split()}


def resize(image: Any, shape: Sequence[int], method: str | ResizeMethod, antialias: bool = True,
           precision: Any = lax.Precision.HIGHEST) -> Array:
    """An image, of any number of axes, in another size.

    >>> resize(jnp.array([0., 1.]), (4,), "linear")
    Array([0.  , 0.25, 0.75, 1.  ], dtype=float32)

    Args:
      image: an array.
      shape: its new shape; axes of the same size are unchanged.
      method: the interpolation, or its name.
      antialias: whether a pixel of a smaller image is a mean of all pixels that it covers.
      precision: of the products.

    Raises:
      ValueError: for another number of axes, and an unknown method.
    """
    shape, method = _shape_of(image, shape), _as_method(method)
    axes = [d for d, (old, new) in enumerate(zip(image.shape, shape, strict=True)) if old != new]
    if method is ResizeMethod.NEAREST:
        return _nearest(jnp.asarray(image), shape, axes)
    scale = [shape[d] / image.shape[d] if shape[d] else 1. for d in axes]
    return _resampled(image, shape, axes, scale, [0.] * len(axes), method, antialias, precision)


def scale_and_translate(image: Any, shape: Sequence[int], spatial_dims: Sequence[int], scale: Any,
                        translation: Any, method: str | ResizeMethod, antialias: bool = True,
                        precision: Any = lax.Precision.HIGHEST) -> Array:
    """An image scaled and moved: what was at x is at ``x * scale + translation``.

    The center of a pixel is half a pixel from its start. Outside the image everything is 0.

    >>> scale_and_translate(jnp.array([1., 2.]), (3,), (0,), jnp.ones(1), jnp.ones(1), "linear")
    Array([0., 1., 2.], dtype=float32)

    Args:
      image: an array.
      shape: the shape of the result.
      spatial_dims: k axes; the others are unchanged.
      scale, translation: (k,) floats, which may be traced and differentiated.
      method: the interpolation, or its name; not `NEAREST`.
      antialias: whether a pixel of a smaller image is a mean of all pixels that it covers.
      precision: of the products.

    Raises:
      ValueError: for another number of axes, an unknown method, and `NEAREST`.
    """
    shape, method = _shape_of(image, shape), _as_method(method)
    if method is ResizeMethod.NEAREST:
        raise ValueError("Nearest neighbor resampling is not currently supported for "
                         "scale_and_translate.")
    scale, translation = promote_dtypes_inexact(scale, translation)
    return _resampled(image, shape, spatial_dims, scale, translation, method, antialias, precision)


def _shape_of(image: Any, shape: Sequence[int]) -> tuple[int, ...]:
    shape = tuple(map(operator.index, shape))
    if len(shape) != image.ndim:
        raise ValueError("shape must have length equal to the number of dimensions of x;  "
                         f"{shape} vs {image.shape}")
    return shape


def _as_method(method: str | ResizeMethod) -> ResizeMethod:
    return ResizeMethod.from_string(method) if isinstance(method, str) else method


def _nearest(image: Array, shape: Sequence[int], axes: Sequence[int]) -> Array:
    for d in axes:
        old, new = image.shape[d], shape[d]
        indices = np.floor((np.arange(new, dtype=np.float32) + np.float32(.5))
                           * np.float32(old) / np.float32(new)).astype(np.int32)
        image = jnp.take(image, indices, axis=d)
    return image


def _resampled(image: Any, shape: Sequence[int], axes: Sequence[int], scale: Any, translation: Any,
               method: ResizeMethod, antialias: bool, precision: Any) -> Array:
    [image] = promote_dtypes_inexact(image)
    if antialias and method is ResizeMethod.CUBIC_PYTORCH:
        method = ResizeMethod.CUBIC
    for d, s, t in zip(axes, scale, translation, strict=True):
        weights = _weights(image.shape[d], shape[d], s, t, method, antialias)
        product = jnp.tensordot(image, weights.astype(image.dtype), (d, 0), precision=precision)
        image = jnp.moveaxis(product, -1, d)
    return image


# ── Weights of the input pixels ──────────────────────────────────────────────────────────────

def _weights(size: int, new_size: int, scale: Any, translation: Any, method: ResizeMethod,
             antialias: bool) -> Array:
    """(size, new_size) weights, which add up to one for each new pixel inside the old image."""
    dtype = jnp.result_type(scale, translation)
    step: Any = 1. / scale
    starts = jnp.arange(new_size, dtype=dtype) * step - translation * step
    centers = (jnp.arange(new_size, dtype=dtype) + .5) * step - translation * step - .5
    padding = 2 if method is ResizeMethod.CUBIC_PYTORCH else 0  # by copies of the edges
    pixels = jnp.arange(-padding, size + padding, dtype=dtype)[:, None]
    if method is ResizeMethod.AREA:
        overlap = jnp.minimum(starts + step, pixels + 1.) - jnp.maximum(starts, pixels)
        weights = jnp.maximum(0., overlap)
    else:
        width = jnp.maximum(step, 1.) if antialias else 1.
        weights = _KERNELS[method](abs(centers - pixels) / width)
    if padding:
        nearest = np.clip(np.arange(-padding, size + padding), 0, size - 1)
        weights = jnp.zeros((size, new_size), dtype).at[nearest].add(weights)
    total = jnp.sum(weights, axis=0)
    is_nonzero = abs(total) > 1000. * float(np.finfo(np.float32).eps)
    weights = jnp.where(is_nonzero, weights / jnp.where(total != 0, total, 1), 0)
    is_inside = (centers >= -.5) & (centers <= size - .5)
    return weights if padding else jnp.where(is_inside, weights, 0)


def _lanczos(radius: float) -> Callable[[Any], Any]:
    """sinc(x), windowed by sinc(x / radius) up to the radius."""
    def kernel(x: Any) -> Any:
        y = radius * jnp.sin(math.pi * x) * jnp.sin(math.pi * x / radius)
        ratio = y / jnp.where(x != 0, math.pi ** 2 * x ** 2, 1)
        return jnp.where(x > radius, 0., jnp.where(x > 1e-3, ratio, 1))
    return kernel


def _keys(a: float) -> Callable[[Any], Any]:
    """Keys' cubic kernels; a is the slope at 1."""
    def kernel(x: Any) -> Any:
        near = ((a + 2.) * x - (a + 3.)) * x * x + 1.
        far = ((a * x - 5. * a) * x + 8. * a) * x - 4. * a
        return jnp.where(x >= 2., 0., jnp.where(x >= 1., far, near))
    return kernel


_KERNELS = {ResizeMethod.LINEAR: lambda x: jnp.maximum(0, 1 - x),
            ResizeMethod.LANCZOS3: _lanczos(3.), ResizeMethod.LANCZOS5: _lanczos(5.),
            ResizeMethod.CUBIC: _keys(-.5), ResizeMethod.CUBIC_PYTORCH: _keys(-.75)}
