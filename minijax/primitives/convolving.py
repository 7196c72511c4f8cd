"""Convolutions as users call them: plain, transposed, with weights of each place, as patches.

Stands on `convolution`.  Chapter 24, *Loops and Numba*.
In JAX: `jax/_src/lax/convolution.py`, `jax/_src/lax/other.py`.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import core
from minijax.core import Array
from minijax.primitives import ad_util
from minijax.primitives.axes import Shape, as_dims, inverse
from minijax.primitives.contract import dot_general
from minijax.primitives.convert import converted
from minijax.primitives.convolution import (ConvDimensionNumbers, conv_dimension_numbers,
                                            conv_general_dilated, conv_general_permutations, each)
from minijax.primitives.shape import rev, transpose
from minijax.primitives.windowed_reductions import (in_windows, padtype_to_pads,
                                                    reduce_window_shape_tuple, spanned)


def conv(lhs: Any, rhs: Any, window_strides: Sequence[int], padding: Any, precision: Any = None,
         preferred_element_type: Any = None) -> Array:
    """A convolution of ``(batch, features, …)`` with weights ``(outputs, features, …)``.

    >>> import numpy as np
    >>> conv(np.ones((1, 1, 4)), np.ones((1, 1, 3)), (1,), "VALID")
    Array([[[3., 3.]]], dtype=float32)
    """
    return conv_general_dilated(lhs, rhs, window_strides, padding, precision=precision,
                                preferred_element_type=preferred_element_type)


def conv_with_general_padding(lhs: Any, rhs: Any, window_strides: Sequence[int], padding: Any,
                              lhs_dilation: Sequence[int] | None,
                              rhs_dilation: Sequence[int] | None, precision: Any = None,
                              preferred_element_type: Any = None) -> Array:
    """That of `conv`, with elements set apart, as `conv_general_dilated` explains.

    >>> import numpy as np
    >>> conv_with_general_padding(np.ones((1, 1, 4)), np.ones((1, 1, 3)), (1,), [(1, 1)], (2,),
    ...                           None)
    Array([[[1., 2., 1., 2., 1., 2., 1.]]], dtype=float32)
    """
    return conv_general_dilated(lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation,
                                precision=precision,
                                preferred_element_type=preferred_element_type)


# ── Transposed ───────────────────────────────────────────────────────────────────────────────

def _transposed_padding(size: int, stride: int, padding: str) -> tuple[int, int]:
    """Of a window of that size, so that a plain convolution the other way has this padding."""
    if padding == "SAME":
        whole = size + stride - 2
        before = size - 1 if stride > size - 1 else -(-whole // 2)
    else:
        whole = size + stride - 2 + max(size - stride, 0)
        before = size - 1
    return before, whole - before


def _channels_last(rank: int) -> Any:
    slid = "DHW"[3 - rank:] if rank <= 3 else ""
    return f"N{slid}C", f"{slid}IO", f"N{slid}C"


def conv_transpose(lhs: Any, rhs: Any, strides: Sequence[int], padding: Any,
                   rhs_dilation: Sequence[int] | None = None, dimension_numbers: Any = None,
                   transpose_kernel: bool = False, precision: Any = None,
                   preferred_element_type: Any = None, use_consistent_padding: bool = False
                   ) -> Array:
    """A convolution whose result has `strides` times as many places as its left operand.

    Args:
      lhs, rhs, dimension_numbers: as in `conv_general_dilated`; by default features come last.
      strides: how far apart the elements of lhs are set.
      padding: "SAME" or "VALID", as of the convolution that goes back; or zeros before and after.
      transpose_kernel: whether to turn the weights round, and swap their features, as those of the
        convolution that goes back.
      use_consistent_padding: whether numbers are those of the convolution that goes back, too.

    >>> import numpy as np
    >>> conv_transpose(np.ones((1, 2, 1)), np.ones((3, 1, 1)), (2,), "SAME").ravel()
    Array([1., 1., 2., 1.], dtype=float32)
    """
    lhs, rhs = core.as_value(lhs), core.as_value(rhs)
    if dimension_numbers is None:
        dimension_numbers = _channels_last(lhs.ndim - 2)
    numbers = conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    slid = numbers.rhs_spec[2:]
    sizes = [spanned(rhs.shape[d], k) for d, k in zip(slid, each(rhs_dilation, len(slid)),
                                                      strict=True)]
    if padding in ("SAME", "VALID"):
        around = [_transposed_padding(size, stride, padding)
                  for size, stride in zip(sizes, strides, strict=False)]
    elif use_consistent_padding and not isinstance(padding, str):
        around = [(size - 1 - before, size - 1 - after)
                  for size, (before, after) in zip(sizes, padding, strict=True)]
    else:
        around = padding
    if transpose_kernel:
        out, features, *_ = numbers.rhs_spec
        rhs = ad_util.transpose_p.bind(rev(rhs, slid), permutation=tuple(
            {out: features, features: out}.get(d, d) for d in range(rhs.ndim)))
    return conv_general_dilated(lhs, rhs, (1,) * len(slid), around, strides, rhs_dilation, numbers,
                                precision=precision, preferred_element_type=preferred_element_type)


# ── Shapes ───────────────────────────────────────────────────────────────────────────────────

def conv_shape_tuple(lhs_shape: Shape, rhs_shape: Shape, strides: Sequence[int], pads: Any,
                     batch_group_count: int = 1) -> Shape:
    """The shape of what `conv` returns.

    >>> conv_shape_tuple((1, 2, 5, 5), (4, 2, 3, 3), (1, 2), "SAME")
    (1, 4, 5, 3)
    """
    if isinstance(pads, str):
        pads = padtype_to_pads(lhs_shape[2:], rhs_shape[2:], strides, pads)
    if len(pads) != len(lhs_shape) - 2:
        raise TypeError(f"Wrong number of explicit pads for convolution: expected "
                        f"{len(lhs_shape) - 2}, got {len(pads)}.")
    places = reduce_window_shape_tuple(tuple(lhs_shape[2:]), tuple(rhs_shape[2:]), tuple(strides),
                                       pads)
    return (lhs_shape[0] // batch_group_count, rhs_shape[0], *places)


def _in_order(shape: Shape, axes: Sequence[int]) -> Shape:
    return tuple(shape[d] for d in axes)


def conv_general_shape_tuple(lhs_shape: Shape, rhs_shape: Shape, window_strides: Sequence[int],
                             padding: Any, dimension_numbers: Any) -> Shape:
    """The shape of what `conv_general_dilated` returns.

    >>> conv_general_shape_tuple((1, 5, 5, 2), (3, 3, 2, 4), (1, 2), "VALID",
    ...                          ("NHWC", "HWIO", "NHWC"))
    (1, 3, 2, 4)
    """
    lhs, rhs, out = conv_general_permutations(dimension_numbers)
    found = conv_shape_tuple(_in_order(lhs_shape, lhs), _in_order(rhs_shape, rhs), window_strides,
                             padding)
    return _in_order(found, inverse(out))


def conv_transpose_shape_tuple(lhs_shape: Shape, rhs_shape: Shape, window_strides: Sequence[int],
                               padding: Any, dimension_numbers: Any) -> Shape:
    """The shape of what `conv_transpose` returns.

    >>> conv_transpose_shape_tuple((1, 5, 5, 2), (3, 3, 2, 4), (1, 2), "VALID",
    ...                            ("NHWC", "HWIO", "NHWC"))
    (1, 7, 11, 4)
    """
    lhs, rhs, out = conv_general_permutations(dimension_numbers)
    shape, weights = _in_order(lhs_shape, lhs), _in_order(rhs_shape, rhs)
    if isinstance(padding, str):
        padding = [_transposed_padding(size, stride, padding)
                   for size, stride in zip(weights[2:], window_strides, strict=True)]
    apart = (*shape[:2], *map(spanned, shape[2:], window_strides))
    found = conv_shape_tuple(apart, weights, (1,) * len(padding), padding)
    return _in_order(found, inverse(out))


# ── Windows by themselves, and weights of their own for each place ───────────────────────────

def _patches(lhs: Any, filter_shape: Sequence[int], window_strides: Sequence[int], padding: Any,
             lhs_dilation: Sequence[int] | None, rhs_dilation: Sequence[int] | None,
             dimension_numbers: Any) -> tuple[Array, ConvDimensionNumbers]:
    """Every window in axes (batch, places, features, window), joined in three: the last two."""
    lhs, rank = core.as_value(lhs), np.ndim(lhs) - 2
    numbers = conv_dimension_numbers(lhs.shape, (1,) * lhs.ndim, dimension_numbers)
    x = transpose(lhs, numbers.lhs_spec)
    dilation, sizes = each(rhs_dilation, rank), as_dims(filter_shape)
    if isinstance(padding, str):
        padding = padtype_to_pads(x.shape[2:], list(map(spanned, sizes, dilation)), window_strides,
                                  padding)
    around: Any = map(as_dims, padding)
    found = in_windows(
        x, 0, window_dimensions=(1, 1, *sizes), window_strides=(1, 1, *as_dims(window_strides)),
        padding=((0, 0), (0, 0), *around),
        base_dilation=(1, 1, *each(lhs_dilation, rank)), window_dilation=(1, 1, *dilation))
    places = found.shape[2:rank + 2]
    order = (0, *range(2, rank + 2), 1, *range(rank + 2, 2 * rank + 4))
    joint = (found.shape[0], *places, x.shape[1] * math.prod(sizes))
    out = ad_util.reshaped(transpose(found, order), joint)
    return converted(out, out.dtype), numbers


def conv_general_dilated_patches(lhs: Any, filter_shape: Sequence[int],
                                 window_strides: Sequence[int], padding: Any,
                                 lhs_dilation: Sequence[int] | None = None,
                                 rhs_dilation: Sequence[int] | None = None,
                                 dimension_numbers: Any = None, precision: Any = None,
                                 preferred_element_type: Any = None) -> Array:
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
    found, numbers = _patches(lhs, filter_shape, window_strides, padding, lhs_dilation,
                              rhs_dilation, dimension_numbers)
    found = ad_util.move_axis(found, -1, 1)
    return transpose(found, inverse(numbers.out_spec))


def conv_general_dilated_local(lhs: Any, rhs: Any, window_strides: Sequence[int], padding: Any,
                               filter_shape: Sequence[int],
                               lhs_dilation: Sequence[int] | None = None,
                               rhs_dilation: Sequence[int] | None = None,
                               dimension_numbers: Any = None, precision: Any = None) -> Array:
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
    found, numbers = _patches(lhs, filter_shape, window_strides, padding, lhs_dilation,
                              rhs_dilation, dimension_numbers)
    weights = transpose(rhs, numbers.rhs_spec)
    places = range(1, found.ndim - 1)
    out = dot_general(found, weights, (((found.ndim - 1,), (1,)), (places, range(2, weights.ndim))),
                      precision)
    rank = len(places)  # (places, batch, outputs)
    return transpose(transpose(out, (rank, rank + 1, *range(rank))), inverse(numbers.out_spec))
