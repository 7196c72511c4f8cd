"""Primitives slice and pad, whose bounds are static.

Builds on `shape`.  Chapter 23, *An array is a function of an index*.
In JAX: `jax/_src/lax/slicing.py` and `lax.py`.
"""

import operator
import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from minijax.core import Array, Axis, Outs, Primitive, ShapedArray, as_value, dtype_name, refuse
from minijax.primitives import ad_util, algebra, comparison, slots
from minijax.primitives.axes import (Index, Shape, as_dims, check_sizes, dilate_dim, replaced,
                                     with_item)
from minijax.primitives.examples import grid, table
from minijax.primitives.shape import squeeze, squeeze_p

_slice_object = slice  # the builtin, before the function of the same name hides it
Padding = tuple[tuple[int, int, int], ...]  # (before, after, between elements) for every axis


def zero_of(dtype: Any) -> Array:
    """The number zero as a program writes it."""
    return ad_util.zeros(ShapedArray((), dtype))


# ── slice ────────────────────────────────────────────────────────────────────────────────────

def _slice_shape(x: ShapedArray, start_indices: tuple, limit_indices: tuple,
                 strides: tuple | None) -> Shape:
    check_sizes("slice", "start_indices", start_indices)
    check_sizes("slice", "limit_indices", limit_indices)
    refuse(
        _of_another_length("start_indices", "indices", start_indices, x),
        (len(start_indices) != len(limit_indices), "slice limit_indices must have the same length "
         f"as start_indices, got start_indices {start_indices} and limit_indices {limit_indices}."),
        (any(map(operator.lt, x.shape, limit_indices)), "slice limit_indices must be less than or "
         f"equal to operand shape, got limit_indices {limit_indices} for operand shape {x.shape}."),
        (any(map(operator.lt, limit_indices, start_indices)),
         "slice limit_indices must be greater than or equal to start_indices, got "
         f"start_indices {start_indices} and limit_indices {limit_indices}."))
    if strides is not None:
        check_sizes("slice", "strides", strides)
        refuse(_of_another_length("strides", "strides", strides, x),
               (0 in strides, f"slice strides must be positive, got {strides}"))
    return tuple(map(len, _ranges(start_indices, limit_indices, strides)))


def _ranges(start_indices: tuple, limit_indices: tuple, strides: tuple | None) -> list[range]:
    """The indices that are taken along each axis."""
    return list(map(range, start_indices, limit_indices, strides or (1,) * len(start_indices)))


def _of_another_length(argument: str, what: str, sizes: tuple, x: ShapedArray) -> tuple[bool, str]:
    return (len(sizes) != x.ndim,
            f"slice {argument} must have length equal to the number of dimensions of the operand, "
            f"got {what} {sizes} for operand shape {x.shape}.")


def _batch_slice(axis: Axis, args: list, dims: list, start_indices: tuple, limit_indices: tuple,
                 strides: tuple | None) -> Outs:
    [x], [dim] = args, dims
    return [slice_p.bind(x, start_indices=with_item(start_indices, dim, 0),
                         limit_indices=with_item(limit_indices, dim, axis.size),
                         strides=None if strides is None else with_item(strides, dim, 1))], [dim]


slice_p = ad_util.rearrangement(
    "slice",
    impl=lambda x, start_indices, limit_indices, strides: x[tuple(
        map(_slice_object, start_indices, limit_indices, strides or itertools.repeat(None)))],
    shape=_slice_shape,
    transpose=lambda ct, x, **bounds: pad_p.bind(ct, zero_of(ct.dtype), padding_config=tuple(
        (taken.start, n - (taken[-1] + 1 if taken else taken.start), taken.step - 1)
        for taken, n in zip(_ranges(**bounds), x.shape, strict=True))),
    batch=_batch_slice, sharding=slots.layout("slice", words={"verb": "slicing"}),
    source=lambda s, index, x, **bounds: x(tuple(
        s.add(s.mul(i, taken.step), taken.start)
        for i, taken in zip(index, _ranges(**bounds), strict=True))),
    examples=table(
        "start_indices limit_indices strides", (grid(5), (1,), (4,), None),
        (grid(5, 4), (0, 1), (5, 4), (2, 3)), (grid(3), (3,), (3,), (2,)),
        (grid(), (), (), None), (grid(2, 3, dtype=np.int32), (0, 0), (2, 3), None)))


def slice(operand: Any, start_indices: Sequence[int],
          limit_indices: Sequence[int], strides: Sequence[int] | None = None) -> Array:
    """The elements from `start_indices` up to `limit_indices`, in steps.

    >>> import numpy as np
    >>> slice(np.arange(6), (1,), (6,), (2,))
    Array([1, 3, 5], dtype=int32)

    Raises:
      TypeError: when the bounds do not lie inside the operand, in this order.
    """
    steps = None if strides is None else as_dims(strides)
    return slice_p.bind(operand, start_indices=as_dims(start_indices),
                        limit_indices=as_dims(limit_indices), strides=steps)


def slice_in_dim(operand: Any, start_index: int | None, limit_index: int | None,
                 stride: int = 1, axis: int = 0) -> Array:
    """A slice along one axis; bounds may be negative or `None`, as in Python.

    >>> import numpy as np
    >>> slice_in_dim(np.arange(5), 1, -1)
    Array([1, 2, 3], dtype=int32)
    """
    shape, axis = np.shape(operand), operator.index(axis)
    size = shape[axis]
    start = 0 if start_index is None else operator.index(start_index)
    limit = size if limit_index is None else operator.index(limit_index)
    return slice(operand, replaced([0] * len(shape), axis, start + size if start < 0 else start),
                 replaced(shape, axis, limit + size if limit < 0 else limit),
                 replaced([1] * len(shape), axis, operator.index(stride)))


def index_in_dim(operand: Any, index: int, axis: int = 0, keepdims: bool = True) -> Array:
    """The element at one place along an axis.

    >>> import numpy as np
    >>> index_in_dim(np.arange(5), -1, keepdims=False)
    Array(4, dtype=int32)

    Raises:
      IndexError: when the place is outside.
    """
    index, axis = operator.index(index), operator.index(axis)
    size = np.shape(operand)[axis]
    place = index + size if index < 0 else index
    if not 0 <= place < size:
        raise IndexError(f"index {index} is out of bounds for axis {axis} with size {size}")
    taken = slice_in_dim(operand, place, place + 1, 1, axis)
    return taken if keepdims else squeeze(taken, (axis,))


# ── pad ──────────────────────────────────────────────────────────────────────────────────────

def _pad_type(x: ShapedArray, value: ShapedArray, padding_config: Padding) -> list[ShapedArray]:
    refuse((x.dtype != value.dtype, "pad operand and padding_value must be same dtype: got "
            f"{dtype_name(x.dtype)} and {dtype_name(value.dtype)}."))
    refuse(
        (value.ndim != 0,
         f"padding_value must be a scalar; got np.shape(padding_value)={value.shape}"),
        (len(padding_config) != x.ndim, "length of padding_config must equal the number of axes of "
         f"operand, got padding_config {padding_config} for operand shape {x.shape}"),
        (any(between < 0 for _, _, between in padding_config), "interior padding in padding_config "
         f"must be nonnegative, got padding_config {padding_config}"), error=ValueError)
    shape = tuple(before + after + dilate_dim(n, between + 1)
                  for n, (before, after, between) in zip(x.shape, padding_config, strict=True))
    refuse((min(shape, default=0) < 0,
            f"Dimension size after padding is not at least 0, got result shape {shape}, for "
            f"padding_config {padding_config} and operand shape {x.shape}"), error=ValueError)
    return [ShapedArray(shape, x.dtype, x.weak_type and value.weak_type)]


def _pad_impl(x: np.ndarray, value: np.ndarray, padding_config: Padding) -> list[np.ndarray]:
    roomy = [dilate_dim(n, between + 1) + max(before, 0) + max(after, 0)
             for n, (before, after, between) in zip(x.shape, padding_config, strict=True)]
    out = np.full(roomy, value, x.dtype)
    out[tuple(np.s_[max(before, 0):max(before, 0) + dilate_dim(n, between + 1):between + 1]
              for n, (before, _, between) in zip(x.shape, padding_config, strict=True))] = x
    return [out[tuple(_slice_object(max(-before, 0), n - max(-after, 0))
                      for n, (before, after, _) in zip(roomy, padding_config, strict=True))]]


def _unpad(ct: Array, padding_config: Padding) -> Array:
    inverse = tuple((-before, -after, 0) for before, after, _ in padding_config)
    bare = pad_p.bind(ct, zero_of(ct.dtype), padding_config=inverse)
    return slice(bare, (0,) * bare.ndim, bare.shape,
                 [between + 1 for _, _, between in padding_config])


def _pad_value_cotangent(ct: Array, x: Any, value: Any, padding_config: Padding) -> Array:
    total, kept = (ad_util.reduce_sum_p.bind(t, axes=tuple(range(t.ndim)))
                   for t in (ct, _unpad(ct, padding_config)))
    return algebra.sub_p.bind(total, kept)


def _batch_pad(axis: Axis, args: list, dims: list, padding_config: Padding) -> Outs:
    x, value = args
    if dims[1] is None:
        config = with_item(padding_config, dims[0], (0, 0, 0))
        return [pad_p.bind(x, value, padding_config=config)], [dims[0]]
    x = ad_util.batch_to(x, dims[0], 0, axis.size)
    config = ((0, 0, 0), *padding_config)
    inside = pad_p.bind(as_value(np.ones(x.shape, bool)), as_value(False), padding_config=config)
    padded = pad_p.bind(x, zero_of(x.dtype), padding_config=config)
    values = ad_util.broadcast_at(value, (0,), padded.shape)
    return [comparison.select_n_p.bind(inside, values, padded)], [0]


def _pad_element(s: Any, index: Index, x: Any, value: Any, padding_config: Padding) -> Any:
    inside, places = unpadded(s, x.shape, padding_config, (
        s.sub(i, before) for i, (before, _, _) in zip(index, padding_config, strict=True)))
    return s.choose(inside, lambda: x(places), lambda: value(()))


def unpadded(s: Any, shape: Shape, padding_config: Sequence[Sequence[int]], places: Iterable
             ) -> tuple[Any, Index]:
    """Whether there is an element at a place of a padded array, counted from its first element,
    and the element's index.
    """
    inside, index = s.const(True, np.bool_), []
    for place, n, (before, after, between) in zip(places, shape, padding_config, strict=True):
        if before > 0:
            inside = s.and_(inside, s.ge(place, 0))
        if after > 0:
            inside = s.and_(inside, s.lt(place, dilate_dim(n, between + 1)))
        if between:
            inside = s.and_(inside, s.eq(s.rem(place, between + 1), 0))
        index.append(s.div(place, between + 1) if between else place)
    return inside, tuple(index)


pad_p = Primitive(
    "pad", impl=_pad_impl, abstract_eval=_pad_type,
    jvp=ad_util.linear(),
    transpose=ad_util.transposed(lambda ct, x, value, padding_config: _unpad(ct, padding_config),
                                 _pad_value_cotangent),
    batch=_batch_pad, sharding=slots.layout("pad", words={"verb": "padding"}),
    may_produce_nan=True,  # its padding may be one
    element=_pad_element, complex_parts=ad_util.each_part,
    examples=table("padding_config", *((x, x.dtype.type(7), config) for x, config in [
        (grid(3), ((1, 2, 0),)), (grid(4), ((-1, -2, 0),)), (grid(3), ((-2, 3, 2),)),
        (grid(2, 3), ((0, 1, 1), (2, -1, 0))), (grid(), ()),
        (grid(0, 2), ((1, 1, 1), (0, 0, 0))), (grid(3, dtype=np.int32), ((1, 0, 1),))])))


def pad(operand: Any, padding_value: Any, padding_config: Sequence[tuple[int, int, int]]) -> Array:
    """The operand with copies of a value before, after and between its elements.

    Args:
      operand: an array.
      padding_value: a scalar of the same dtype.
      padding_config: (before, after, between) for every axis; negative ones take away.

    >>> import numpy as np
    >>> pad(np.arange(3), 9, [(1, -1, 1)])
    Array([9, 0, 9, 1, 9], dtype=int32)
    """
    config = tuple(as_dims(triple) for triple in padding_config)
    return pad_p.bind(operand, padding_value, padding_config=config)


# ── Parts and rows ───────────────────────────────────────────────────────────────────────────

def part(x: Array, start: int, stop: int, axis: int = 0) -> Array:
    """The elements from `start` to `stop` along one axis."""
    return slice_p.bind(x, start_indices=replaced([0] * x.ndim, axis, start),
                        limit_indices=replaced(x.shape, axis, stop), strides=None)


def index_leading(x: Array, i: int) -> Array:
    """Row `i` of `x`."""
    return squeeze_p.bind(part(x, i, i + 1), dimensions=(0,))
