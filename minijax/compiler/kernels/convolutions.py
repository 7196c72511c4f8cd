"""Long convolutions as matrix products, one for each image, or one for each window position.

The `library` rule of `conv_general_dilated`.  Chapter 24, *Loops and Numba*.
In JAX: Eigen's spatial convolutions and oneDNN, behind XLA.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.primitives.axes import Axes
from minijax.primitives.ad_util import constant
from minijax.primitives.slots import nest

from ..operands import Computed
from .products import INLINE, Matrices, collected, computed, multiply, parts_of, summed_in

NEAR = 1 << 18  # bytes of windows that stay in the cache for a product
FEW = 4  # outputs: too few for a block, each is a sum of its own


def convolution(b: Any, outputs: Sequence, operands: Sequence, *, as_sums: Callable[..., Any],
                sizes_of: Callable[..., Any], pad: Callable[..., Any], **params: Any) -> None:
    """The `library` rule of the primitive, which takes each element `as_sums`."""
    [out], [x, w] = outputs, operands
    sizes = sizes_of(x.shape, w.shape, **params)
    terms = math.prod((sizes.features, *sizes.window))
    wide = summed_in(out.dtype)
    long = sizes.outputs >= FEW and math.prod((terms, sizes.outputs, *sizes.places)) > INLINE
    if long and not b.on_gpu:
        by = by_places if math.prod(sizes.places) < sizes.batch else by_images
        by(b, out, x, w, sizes, wide, pad, **params)
    else:
        computed(b, lambda x, w: [as_sums(x, w, **params)], out, x, w)


def by_images(b: Any, out: Any, x: Any, w: Any, sizes: Any, wide: np.dtype, pad: Callable, *,
              dimension_numbers: tuple[Axes, Axes, Axes], window_strides: Sequence[int],
              padding: Sequence, lhs_dilation: Sequence[int], rhs_dilation: Sequence[int],
              feature_group_count: int, **_: Any) -> None:
    """A product for each image and group: windows (im2col) with weights.

    If features are contiguous, windows are rows; if positions are, they are columns.
    """
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    rank, last = len(sizes.slid), lhs_spec[1] == len(x.shape) - 1
    terms, places = math.prod((sizes.features, *sizes.window)), math.prod(sizes.places)
    x = surrounded(b, x, lhs_spec, padding, lhs_dilation, wide, pad)
    weights = arranged(b, w, rhs_spec, sizes, last, wide)
    rows, columns = (places, sizes.outputs) if last else (sizes.outputs, places)
    most, groups = parts_of(terms)
    shape = groups, sizes.batch, sizes.groups, rows, columns
    order = ((out_spec[0], *out_spec[2:], out_spec[1]) if last and sizes.groups == 1 else out_spec
             if not last else ())
    direct = order == tuple(range(rank + 2)) and out.dtype == wide and groups == 1
    sums = out if direct else b.temp(shape, wide)
    near, parts = near_each_other(sizes.places, terms * wide.itemsize)
    some = math.prod(near)
    *outer, below, right = np.empty(shape, np.int8).strides
    z = Matrices(sums, (*outer, some * (below if last else right), below, right))
    of_weights = (0, sizes.outputs * terms, 0, *((1, sizes.outputs) if last else (terms, 1)))
    with b.loop(sizes.batch * sizes.groups * parts, vectorize="parallel") as turn:
        image, group, nth = here = b.unravel(b.index(turn), (sizes.batch, sizes.groups, parts))
        row = image if feature_group_count > 1 else b.add(b.mul(group, sizes.batch), image)
        first = b.mul(group, sizes.features) if feature_group_count > 1 else b.index(0)
        inner = (*near, *sizes.window, sizes.features)
        if not last:
            inner = (sizes.features, *sizes.window, *near)
        patches = b.temp(inner, wide, "patches")
        with nest(b, inner, "parallel") as at:
            at = tuple(map(b.index, at))
            if last:
                place, offset, feature = at[:rank], at[rank:2 * rank], at[-1]
            else:
                feature, offset, place = at[0], at[1:rank + 1], at[rank + 1:]
            place = b.add(b.mul(nth, near[0]), place[0]), *place[1:]
            seen = along(b, place, offset, window_strides, rhs_dilation)
            b.store(patches, at, b.load(x, placed(lhs_spec, row, b.add(first, feature), *seen)))
        b.freeze(patches)
        windows = Matrices(patches, (0, 0, 0, *((terms, 1) if last else (1, some))))
        factors, multiplied = Matrices(weights, of_weights), (
            (some, terms, columns) if last else (rows, terms, some))
        multiply(b, z, *((windows, factors) if last else (factors, windows)), here, multiplied,
                 most)
    if not direct:
        def place_of(at: Sequence[Any]) -> tuple:
            n, output, *places = (at[d] for d in out_spec)
            group, output = b.unravel(output, (sizes.groups, sizes.outputs))
            flat = raveled(b, places, sizes.places)
            return (n, group, flat, output) if last else (n, group, output, flat)
        collected(b, sums, groups, out, place_of)


def near_each_other(places: Sequence[int], size: int) -> tuple[tuple[int, ...], int]:
    """The number of positions whose windows fit into the cache, and the number of such parts."""
    if not places:
        return (1,), 1
    n, *others = places
    row = math.prod(others) * size
    some = max(k for k in range(1, n + 1) if n % k == 0 and (k == 1 or k * row <= NEAR))
    return (some, *others), n // some


def by_places(b: Any, out: Any, x: Any, w: Any, sizes: Any, wide: np.dtype, pad: Callable, *,
              dimension_numbers: tuple[Axes, Axes, Axes], window_strides: Sequence[int],
              padding: Sequence, lhs_dilation: Sequence[int], rhs_dilation: Sequence[int],
              feature_group_count: int, **_: Any) -> None:
    """A product for each window position and group: the windows of all images with weights.

    Good for the derivative by the weights: it has few positions, with windows as large as images.
    """
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    rank, last = len(sizes.slid), lhs_spec[0] == len(x.shape) - 1
    terms, places = math.prod((sizes.features, *sizes.window)), math.prod(sizes.places)
    x = surrounded(b, x, lhs_spec, padding, lhs_dilation, wide, pad)
    weights = arranged(b, w, rhs_spec, sizes, last, wide)
    most, groups = parts_of(terms)
    sums = b.temp((groups, places, sizes.groups, sizes.batch, sizes.outputs), wide)
    z = Matrices(sums, np.empty(sums.shape, np.int8).strides)
    right = Matrices(weights, (0, sizes.outputs * terms, *((1, sizes.outputs) if last
                                                           else (terms, 1))))
    with b.loop(places * sizes.groups, vectorize="parallel") as turn:
        flat, group = here = b.unravel(b.index(turn), (places, sizes.groups))
        place = b.unravel(flat, sizes.places)
        inner = (*sizes.window, sizes.features, sizes.batch)
        if not last:
            inner = (sizes.batch, sizes.features, *sizes.window)
        patches = b.temp(inner, wide, "patches")
        with nest(b, inner, "parallel") as at:
            at = tuple(map(b.index, at))
            image, feature, offset = ((at[-1], at[-2], at[:rank]) if last
                                      else (at[0], at[1], at[2:]))
            if feature_group_count > 1:
                feature = b.add(b.mul(group, sizes.features), feature)
            else:
                image = b.add(b.mul(group, sizes.batch), image)
            seen = along(b, place, offset, window_strides, rhs_dilation)
            b.store(patches, at, b.load(x, placed(lhs_spec, image, feature, *seen)))
        b.freeze(patches)
        left = Matrices(patches, (0, 0, *((1, sizes.batch) if last else (terms, 1))))
        multiply(b, z, left, right, here, (sizes.batch, terms, sizes.outputs), most)

    def place_of(at: Sequence[Any]) -> tuple:
        n, output, *places = (at[d] for d in out_spec)
        group, output = b.unravel(output, (sizes.groups, sizes.outputs))
        return raveled(b, places, sizes.places), group, n, output
    collected(b, sums, groups, out, place_of)


def along(b: Any, place: Sequence[Any], offset: Sequence[Any], strides: Sequence[int],
          dilation: Sequence[int]) -> list[Any]:
    """The array index of a window's element, along each spatial axis."""
    return [b.add(b.mul(i, stride), b.mul(k, apart))
            for i, k, stride, apart in zip(place, offset, strides, dilation, strict=True)]


def raveled(b: Any, index: Sequence[Any], shape: Sequence[int]) -> Any:
    """The row-major number of a position."""
    flat = b.index(0)
    for i, size in zip(index, shape, strict=True):
        flat = b.add(b.mul(flat, size), i)
    return flat


def placed(spec: Axes, *values: Any) -> tuple:
    """An index with its values reordered as in `spec`."""
    index: list[Any] = [None] * len(spec)
    for axis, value in zip(spec, values, strict=True):
        index[axis] = value
    return tuple(index)


def surrounded(b: Any, x: Any, spec: Axes, padding: Sequence, dilation: Sequence[int],
               dtype: np.dtype, pad: Callable) -> Any:
    """The array padded and dilated with zeros; the array itself if nothing is to be done."""
    config = [(0, 0, 0)] * len(spec)
    for axis, (before, after), base in zip(spec[2:], padding, dilation, strict=True):
        config[axis] = (before, after, base - 1)
    if not any(map(any, config)) and x.dtype == dtype:
        return x
    shape = tuple(max((n - 1) * (between + 1) + 1 if n else 0, 0) + before + after
                  for n, (before, after, between) in zip(x.shape, config, strict=True))
    copy = b.temp(shape, dtype, "surrounded")
    computed(b, lambda x: [pad(x, constant(0, x), padding_config=tuple(config))], copy,
             Computed(b, lambda at: b.convert(b.load(x, at), dtype), x.shape, dtype))
    b.freeze(copy)
    return copy


def arranged(b: Any, w: Any, spec: Axes, sizes: Any, last: bool, dtype: np.dtype) -> Any:
    """The weights of each group as a matrix, with terms in the order of the windows."""
    inner = (*sizes.window, sizes.features) if last else (sizes.features, *sizes.window)
    shape = ((sizes.groups, *inner, sizes.outputs) if last
             else (sizes.groups, sizes.outputs, *inner))
    copy = b.temp(shape, dtype, "weights")
    with nest(b, shape, "parallel") as at:
        at = tuple(map(b.index, at))
        group, output, term = (at[0], at[-1], at[1:-1]) if last else (at[0], at[1], at[2:])
        feature, offset = (term[-1], term[:-1]) if last else (term[0], term[1:])
        index = placed(spec, b.add(b.mul(group, sizes.outputs), output), feature, *offset)
        b.store(copy, at, b.convert(b.load(w, index), dtype))
    b.freeze(copy)
    return copy
