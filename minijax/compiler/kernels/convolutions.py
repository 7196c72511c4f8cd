"""Long convolutions as matrix products, one for each image, or one for each window position.

The `library` rule of `conv_general_dilated`.  Chapter 24, *Loops and Numba*.
In JAX: Eigen's spatial convolutions and oneDNN, behind XLA.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.primitives.axes import Axes
from minijax.primitives.ad_util import constant
from minijax.primitives.slots import computed_in, nest

from ..operands import Computed
from ..routines import product_of
from .products import (LAUNCHED, MAX_INLINE, MIN_SIDE, Matrices, accumulator_dtype, computed,
                       multiply, split_terms, sum_partials)

CACHED = 1 << 18  # bytes of windows that stay in the cache for a product
MIN_OUTPUTS = 4  # output features: with fewer, each element is summed on its own


def convolution(b: Any, outputs: Sequence, operands: Sequence, *, as_sums: Callable[..., Any],
                sizes_of: Callable[..., Any], pad: Callable[..., Any], **params: Any) -> None:
    """The `library` rule of the primitive, which takes each element `as_sums`."""
    [out], [x, w] = outputs, operands
    sizes = sizes_of(x.shape, w.shape, **params)
    terms = math.prod((sizes.features, *sizes.window, sizes.outputs, *sizes.places))
    if b.on_gpu and is_launched(x, w, out, sizes):
        as_one_call(b, out, x, w, **params)
    elif b.on_gpu or sizes.outputs < MIN_OUTPUTS or terms <= MAX_INLINE:
        computed(b, lambda x, w: [as_sums(x, w, **params)], out, x, w)
    elif math.prod(sizes.places) < sizes.batch:
        _Convolution(b, out, x, w, sizes, pad, 0, **params).by_places()
    else:
        _Convolution(b, out, x, w, sizes, pad, 1, **params).by_images()


def is_launched(x: Any, w: Any, out: Any, sizes: Any) -> bool:
    """Whether a GPU computes a convolution as a product, in a launch of its own."""
    terms, places = sizes.features * math.prod(sizes.window), math.prod(sizes.places)
    sides = sizes.outputs, sizes.batch * places, terms
    return (x.dtype == w.dtype and computed_in(x.dtype) == computed_in(out.dtype)
            and min(sides) >= MIN_SIDE and sizes.groups * math.prod(sides) >= LAUNCHED)


def as_one_call(b: Any, out: Any, x: Any, w: Any, *, dimension_numbers: tuple[Axes, Axes, Axes],
                window_strides: Sequence[int], padding: Sequence, lhs_dilation: Sequence[int],
                rhs_dilation: Sequence[int], feature_group_count: int, batch_group_count: int,
                precision: Any, **_: Any) -> None:
    """One call, whose numbers are the parameters: targets/convolutions.py has their order."""
    numbers = (feature_group_count, batch_group_count, *itertools.chain(
        *dimension_numbers, window_strides, *padding, lhs_dilation, rhs_dilation))
    b.call(product_of(x.dtype, w.dtype, out.dtype, precision, "convolution"), x, w, out, *numbers)


class _Convolution:
    """Windows of the images, padded as needed, and the weights of each group, as matrices.

    `last`: whether the axis `contiguous` of the images (0: images, 1: features) is the last one.
    The weights have the terms of a window as rows then, and as columns otherwise.
    """

    def __init__(self, b: Any, out: Any, x: Any, w: Any, sizes: Any, pad: Callable,
                 contiguous: int, *, dimension_numbers: tuple[Axes, Axes, Axes],
                 window_strides: Sequence[int], padding: Sequence, lhs_dilation: Sequence[int],
                 rhs_dilation: Sequence[int], feature_group_count: int, **_: Any) -> None:
        self.b, self.out, self.sizes, self.dtype = b, out, sizes, accumulator_dtype(out.dtype)
        self.lhs_spec, self.rhs_spec, self.out_spec = dimension_numbers
        self.strides, self.dilation = window_strides, rhs_dilation
        self.groups_features = feature_group_count > 1  # or else images
        self.rank, self.places = len(sizes.slid), math.prod(sizes.places)
        self.terms = math.prod((sizes.features, *sizes.window))
        self.last = self.lhs_spec[contiguous] == len(x.shape) - 1
        self.max_terms, self.partials = split_terms(self.terms)
        self.x = padded(b, x, self.lhs_spec, padding, lhs_dilation, self.dtype, pad)
        self.weights = self.weight_matrices(w)

    def by_images(self) -> None:
        """A product for each image and group: windows (im2col) with weights.

        If features are contiguous, windows are rows; if positions are, they are columns.
        """
        b, sizes, last, rank, terms = self.b, self.sizes, self.last, self.rank, self.terms
        out, spec = self.out, self.out_spec
        rows, columns = (self.places, sizes.outputs)[::1 if last else -1]
        shape = self.partials, sizes.batch, sizes.groups, rows, columns
        order = spec if not last else ((spec[0], *spec[2:], spec[1]) if sizes.groups == 1 else ())
        direct = (order == tuple(range(rank + 2)) and out.dtype == self.dtype
                  and self.partials == 1)
        sums = out if direct else b.temp(shape, self.dtype)
        positions, parts = positions_in_cache(sizes.places, terms * self.dtype.itemsize)
        count = math.prod(positions)
        *outer, below, right = np.empty(shape, np.int8).strides
        z = Matrices(sums, (*outer, count * (below if last else right), below, right))
        weights = Matrices(self.weights, (
            0, sizes.outputs * terms, 0, *((1, sizes.outputs) if last else (terms, 1))))
        inner = ((*positions, *sizes.window, sizes.features) if last
                 else (sizes.features, *sizes.window, *positions))
        with b.loop(sizes.batch * sizes.groups * parts, vectorize="parallel") as i:
            image, group, part = index = b.unravel(i, (sizes.batch, sizes.groups, parts))

            def coordinates(at: tuple) -> tuple:
                if last:
                    place, offset, feature = at[:rank], at[rank:2 * rank], at[-1]
                else:
                    feature, offset, place = at[0], at[1:rank + 1], at[rank + 1:]
                place = b.add(b.mul(part, positions[0]), place[0]), *place[1:]
                return image, feature, place, offset

            windows = Matrices(self.windows(inner, group, coordinates), (
                0, 0, 0, *((terms, 1) if last else (1, count))))
            if last:
                multiply(b, z, windows, weights, index, (count, terms, columns), self.max_terms)
            else:
                multiply(b, z, weights, windows, index, (rows, terms, count), self.max_terms)
        if not direct:
            self.collect(sums, lambda n, group, output, place: (
                (n, group, place, output) if last else (n, group, output, place)))

    def by_places(self) -> None:
        """A product for each window position and group: the windows of all images with weights.

        Good for the derivative by the weights: it has few positions, with windows as large as
        images.
        """
        b, sizes, last, rank, terms = self.b, self.sizes, self.last, self.rank, self.terms
        shape = self.partials, self.places, sizes.groups, sizes.batch, sizes.outputs
        sums = b.temp(shape, self.dtype)
        z = Matrices(sums, np.empty(shape, np.int8).strides)
        weights = Matrices(self.weights, (
            0, sizes.outputs * terms, *((1, sizes.outputs) if last else (terms, 1))))
        inner = ((*sizes.window, sizes.features, sizes.batch) if last
                 else (sizes.batch, sizes.features, *sizes.window))
        with b.loop(self.places * sizes.groups, vectorize="parallel") as i:
            flat, group = index = b.unravel(i, (self.places, sizes.groups))
            place = b.unravel(flat, sizes.places)
            patches = self.windows(inner, group, lambda at: (
                (at[-1], at[-2], place, at[:rank]) if last else (at[0], at[1], place, at[2:])))
            windows = Matrices(patches, (0, 0, *((1, sizes.batch) if last else (terms, 1))))
            multiply(b, z, windows, weights, index, (sizes.batch, terms, sizes.outputs),
                     self.max_terms)
        self.collect(sums, lambda n, group, output, place: (place, group, n, output))

    def windows(self, shape: tuple[int, ...], group: Any, coordinates: Callable) -> Any:
        """A copy of the elements of windows; `coordinates` gives for an index of the copy the
        image, the feature, the position of the window, and the offset in it.
        """
        b, patches = self.b, self.b.temp(shape, self.dtype, "patches")
        with nest(b, shape, "parallel") as at:
            image, feature, place, offset = coordinates(at)
            index = [b.add(b.mul(i, stride), b.mul(k, apart)) for i, k, stride, apart in zip(
                place, offset, self.strides, self.dilation, strict=True)]
            if self.groups_features:
                feature = b.add(b.mul(group, self.sizes.features), feature)
            else:
                image = b.add(b.mul(group, self.sizes.batch), image)
            b.store(patches, at, b.load(self.x, placed(self.lhs_spec, image, feature, *index)))
        b.freeze(patches)
        return patches

    def weight_matrices(self, w: Any) -> Any:
        """The weights of each group as a matrix, with terms in the order of the windows."""
        b, sizes = self.b, self.sizes
        shape = ((sizes.groups, *sizes.window, sizes.features, sizes.outputs) if self.last
                 else (sizes.groups, sizes.outputs, sizes.features, *sizes.window))
        copy = b.temp(shape, self.dtype, "weights")
        with nest(b, shape, "parallel") as at:
            group, *terms = at
            *offset, feature, output = terms if self.last else (*terms[2:], terms[1], terms[0])
            index = placed(self.rhs_spec, b.add(b.mul(group, sizes.outputs), output), feature,
                           *offset)
            b.store(copy, (group, *terms), b.convert(b.load(w, index), self.dtype))
        b.freeze(copy)
        return copy

    def collect(self, sums: Any, place_of: Callable[..., tuple]) -> None:
        """Sum the partial results of every element; `place_of` gives its position from those of
        the image, the group, the output feature and the window.
        """
        b, sizes = self.b, self.sizes

        def place(at: Sequence[Any]) -> tuple:
            n, output, *places = (at[d] for d in self.out_spec)
            group, output = b.unravel(output, (sizes.groups, sizes.outputs))
            flat = b.index(0)
            for i, size in zip(places, sizes.places, strict=True):
                flat = b.add(b.mul(flat, size), i)
            return place_of(n, group, output, flat)
        sum_partials(b, sums, self.partials, self.out, place)


def positions_in_cache(places: Sequence[int], size: int) -> tuple[tuple[int, ...], int]:
    """The number of positions whose windows fit into the cache, and the number of such parts."""
    if not places:
        return (1,), 1
    n, *others = places
    row = math.prod(others) * size
    count = max(k for k in range(1, n + 1) if n % k == 0 and (k == 1 or k * row <= CACHED))
    return (count, *others), n // count


def placed(spec: Axes, *values: Any) -> tuple:
    """An index with its values reordered as in `spec`."""
    return tuple(x for _, x in sorted(zip(spec, values, strict=True), key=lambda pair: pair[0]))


def padded(b: Any, x: Any, spec: Axes, padding: Sequence, dilation: Sequence[int],
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
