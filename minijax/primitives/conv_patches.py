"""Windows of an array as features, and convolutions whose weights differ from place to place.

Builds on `convolution`.  Chapter 24, *Loops and Numba*.
In JAX: `jax/_src/lax/other.py`, `jax/_src/lax/convolution.py`.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import core
from minijax.primitives import ad_util
from minijax.primitives.axes import as_dims, inverse
from minijax.primitives.contract import dot_general
from minijax.primitives.convert import converted
from minijax.primitives.convolution import (ConvDimensionNumbers, conv_dimension_numbers,
                                            dilation_or_ones, pairs)
from minijax.primitives.shape import transpose
from minijax.primitives.windowed_reductions import dilate_dim, padtype_to_pads, windows_of


def _patches(lhs: Any, filter_shape: Sequence[int], window_strides: Sequence[int], padding: Any,
             lhs_dilation: Sequence[int] | None, rhs_dilation: Sequence[int] | None,
             dimension_numbers: Any) -> tuple[core.Array, ConvDimensionNumbers]:
    """Every window, in axes (batch, places, features × window)."""
    lhs, rank = core.as_value(lhs), np.ndim(lhs) - 2
    numbers = conv_dimension_numbers(lhs.shape, (1,) * lhs.ndim, dimension_numbers)
    x = transpose(lhs, numbers.lhs_spec)
    dilation, sizes = dilation_or_ones(rhs_dilation, rank), as_dims(filter_shape)
    if isinstance(padding, str):
        padding = padtype_to_pads(x.shape[2:], list(map(dilate_dim, sizes, dilation)),
                                  window_strides, padding)
    around: Any = pairs(padding)
    windows = windows_of(
        x, 0, window_dimensions=(1, 1, *sizes), window_strides=(1, 1, *as_dims(window_strides)),
        padding=((0, 0), (0, 0), *around),
        base_dilation=(1, 1, *dilation_or_ones(lhs_dilation, rank)),
        window_dilation=(1, 1, *dilation))
    order = (0, *range(2, rank + 2), 1, *range(rank + 2, 2 * rank + 4))
    shape = (x.shape[0], *windows.shape[2:rank + 2], x.shape[1] * math.prod(sizes))
    out = ad_util.reshaped(transpose(windows, order), shape)
    return converted(out, out.dtype), numbers


def conv_general_dilated_patches(lhs: Any, filter_shape: Sequence[int],
                                 window_strides: Sequence[int], padding: Any,
                                 lhs_dilation: Sequence[int] | None = None,
                                 rhs_dilation: Sequence[int] | None = None,
                                 dimension_numbers: Any = None, precision: Any = None,
                                 preferred_element_type: Any = None) -> core.Array:
    """Every window of an array as features of its place: the features, and of each the window.

    Args:
      lhs, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers: as in
        `conv_general_dilated`.
      filter_shape: the sizes of a window.

    >>> import numpy as np
    >>> conv_general_dilated_patches(np.arange(4.).reshape(1, 1, 4), (2,), (1,), "VALID")[0]
    Array([[0., 1., 2.],
           [1., 2., 3.]], dtype=float32)
    """
    patches, numbers = _patches(lhs, filter_shape, window_strides, padding, lhs_dilation,
                                rhs_dilation, dimension_numbers)
    return transpose(ad_util.move_axis(patches, -1, 1), inverse(numbers.out_spec))


def conv_general_dilated_local(lhs: Any, rhs: Any, window_strides: Sequence[int], padding: Any,
                               filter_shape: Sequence[int],
                               lhs_dilation: Sequence[int] | None = None,
                               rhs_dilation: Sequence[int] | None = None,
                               dimension_numbers: Any = None, precision: Any = None) -> core.Array:
    """A convolution with weights of its own for each place of the result.

    Args:
      rhs: the weights: output features; input features, and of each the window, as one axis; and
        the places of the result.
      filter_shape: the sizes of a window.
      lhs, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers: as in
        `conv_general_dilated`.

    >>> import numpy as np
    >>> x, weights = np.ones((1, 1, 3)), np.arange(4.).reshape(1, 2, 2)
    >>> conv_general_dilated_local(x, weights, (1,), "VALID", (2,))
    Array([[[2., 4.]]], dtype=float32)
    """
    patches, numbers = _patches(lhs, filter_shape, window_strides, padding, lhs_dilation,
                                rhs_dilation, dimension_numbers)
    weights = transpose(rhs, numbers.rhs_spec)
    places = range(1, patches.ndim - 1)
    out = dot_general(patches, weights, (((patches.ndim - 1,), (1,)),
                                         (places, range(2, weights.ndim))), precision)
    rank = len(places)  # (places, batch, outputs)
    return transpose(transpose(out, (rank, rank + 1, *range(rank))), inverse(numbers.out_spec))
