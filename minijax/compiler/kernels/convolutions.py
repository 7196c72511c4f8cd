"""Long convolutions as matrix products, one for each image, or one for each window position.

The `library` rule of `conv_general_dilated`.  Chapter 24, *Loops and Numba*.
In JAX: Eigen's spatial convolutions and oneDNN, behind XLA.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from minijax.primitives.axes import Axes
from minijax.primitives.ad_util import constant
from minijax.primitives.slots import computed_in, nest
from minijax.tree_util import tree_leaves

from ..operands import Computed
from ..routines import product_of
from .products import (LAUNCHED, MAX_INLINE, MIN_SIDE, Matrices, accumulator_dtype, computed,
                       multiply, placed, split_terms, sum_partials)

PASSED = ("feature_group_count", "batch_group_count", "dimension_numbers", "window_strides",
          "padding", "lhs_dilation", "rhs_dilation")  # the parameters that a call has as numbers
CACHED = 1 << 18  # bytes of windows that stay in the cache for a product
FEW = 4  # with fewer features, of windows and of outputs, each element is summed on its own


def convolution(b: Any, outputs: Sequence, operands: Sequence, *, as_sums: Callable[..., Any],
                sizes_of: Callable[..., Any], pad: Callable[..., Any], **params: Any) -> None:
    """The `library` rule of the primitive, which takes each element `as_sums`."""
    [out], [x, w] = outputs, operands
    sizes = sizes_of(x.shape, w.shape, **params)
    terms = math.prod((sizes.features, *sizes.window, sizes.outputs, *sizes.places))
    if b.on_gpu and is_launched(x, w, out, sizes):
        as_one_call(b, out, x, w, params)
    elif b.on_gpu or terms <= MAX_INLINE:
        computed(b, lambda x, w: [as_sums(x, w, **params)], out, x, w)
    elif sizes.outputs < FEW and (sizes.features < FEW or math.prod(sizes.window) == 1):
        plain = params | {"padding": ((0, 0),) * len(sizes.window),
                          "lhs_dilation": (1,) * len(sizes.window)}
        computed(b, lambda x, w: [as_sums(x, w, **plain)], out, padded(
            b, x, params["dimension_numbers"][0], params["padding"], params["lhs_dilation"],
            x.dtype, pad), w)
    else:
        _Convolution(b, out, x, w, sizes, pad, params).products()


def is_launched(x: Any, w: Any, out: Any, sizes: Any) -> bool:
    """Whether a GPU computes a convolution as a product, in a launch of its own."""
    terms, places = sizes.features * math.prod(sizes.window), math.prod(sizes.places)
    sides = sizes.outputs, sizes.batch * places, terms
    return (x.dtype == w.dtype and computed_in(x.dtype) == computed_in(out.dtype)
            and min(sides) >= MIN_SIDE and sizes.groups * math.prod(sides) >= LAUNCHED)


def as_one_call(b: Any, out: Any, x: Any, w: Any, params: Mapping[str, Any]) -> None:
    """One call, whose numbers are the parameters; targets/convolutions.py reads them."""
    routine = product_of(x.dtype, w.dtype, out.dtype, params["precision"], "convolution")
    b.call(routine, x, w, out, *tree_leaves([params[name] for name in PASSED]))


class Geometry:
    """Where the elements of images and weights are, of groups of which features or images have
    some each.
    """

    def __init__(self, sizes: Any, params: Mapping[str, Any]) -> None:
        self.sizes, self.groups_features = sizes, params["feature_group_count"] > 1
        self.lhs_spec, self.rhs_spec, self.out_spec = params["dimension_numbers"]
        self.strides, self.padding = params["window_strides"], params["padding"]
        self.base, self.dilation = params["lhs_dilation"], params["rhs_dilation"]

    def image_index(self, b: Any, group: Any, image: Any, feature: Any, at: Sequence[Any]) -> tuple:
        """The index of an element of an image of a group."""
        if self.groups_features:
            feature = b.add(b.mul(group, self.sizes.features), feature)
        else:
            image = b.add(b.mul(group, self.sizes.batch), image)
        return placed(self.lhs_spec, image, feature, *at)

    def weight_index(self, b: Any, group: Any, output: Any, feature: Any, offset: Sequence[Any]
                     ) -> tuple:
        """The index of a weight for an output feature of a group."""
        output = b.add(b.mul(group, self.sizes.outputs), output)
        return placed(self.rhs_spec, output, feature, *offset)


class _Convolution(Geometry):
    """A product for each image and group: windows (im2col), of which the rows are positions; or,
    where there are few positions, one for each position and group, whose rows are images. That is
    good for the derivative by the weights, whose windows are as large as images.

    `last`: whether the axis that is contiguous for the better (features; or images, which are the
    rows then) is the last one. The weights have the terms of a window as rows then, and as columns
    otherwise.
    """

    def __init__(self, b: Any, out: Any, x: Any, w: Any, sizes: Any, pad: Callable,
                 params: Mapping[str, Any]) -> None:
        super().__init__(sizes, params)
        self.b, self.out, self.dtype = b, out, accumulator_dtype(out.dtype)
        self.places = math.prod(sizes.places)
        self.terms = math.prod((sizes.features, *sizes.window))
        self.rows_are_images = self.places < sizes.batch
        self.last = self.lhs_spec[not self.rows_are_images] == len(x.shape) - 1
        self.max_terms, self.partials = split_terms(self.terms)
        self.x = padded(b, x, self.lhs_spec, self.padding, self.base, self.dtype, pad)
        self.weights = self.weight_matrices(w)

    def products(self) -> None:
        """Multiply windows with weights; or weights with windows, where positions are contiguous.
        """
        b, sizes, last, terms, out = self.b, self.sizes, self.last, self.terms, self.out
        rows, parts = ((sizes.batch,), 1) if self.rows_are_images else positions_in_cache(
            sizes.places, terms * self.dtype.itemsize)
        outer = self.places if self.rows_are_images else sizes.batch
        count, is_transposed = math.prod(rows), not (last or self.rows_are_images)
        sides = (count * parts, sizes.outputs)[::-1 if is_transposed else 1]
        shape = self.partials, outer, sizes.groups, *sides
        spec = self.out_spec
        order = () if self.rows_are_images or last and sizes.groups > 1 else (
            (spec[0], *spec[2:], spec[1]) if last else spec)
        direct = order == tuple(range(len(spec))) and out.dtype == self.dtype and self.partials == 1
        sums = out if direct else b.temp(shape, self.dtype)
        *steps, below, right = np.empty(shape, np.int8).strides
        z = Matrices(sums, (*steps, count * (right if is_transposed else below), below, right))
        weights = Matrices(self.weights, (
            0, sizes.outputs * terms, 0, *((1, sizes.outputs) if last else (terms, 1))))
        window = (*sizes.window, sizes.features) if last else (sizes.features, *sizes.window)
        rows_first = last != self.rows_are_images
        with b.loop(outer * sizes.groups * parts, vectorize="parallel") as i:
            outside, group, part = index = b.unravel(i, (outer, sizes.groups, parts))

            def coordinates(at: tuple) -> tuple:
                split = len(rows) if rows_first else len(window)
                row, term = (at[:split], at[split:])[::1 if rows_first else -1]
                *offset, feature = term if last else (*term[1:], term[0])
                if self.rows_are_images:
                    return row[0], feature, b.unravel(outside, sizes.places), offset
                return outside, feature, (b.add(b.mul(part, rows[0]), row[0]), *row[1:]), offset

            windows = Matrices(
                self.windows((*rows, *window) if rows_first else (*window, *rows), group,
                             coordinates), (0, 0, 0, *((terms, 1) if rows_first else (1, count))))
            x, y = (weights, windows) if is_transposed else (windows, weights)
            multiply(b, z, x, y, index, (
                sizes.outputs if is_transposed else count, terms,
                count if is_transposed else sizes.outputs), self.max_terms)
        if not direct:
            self.collect(sums, is_transposed)

    def windows(self, shape: tuple[int, ...], group: Any, coordinates: Callable) -> Any:
        """A copy of the elements of windows; `coordinates` gives for an index of the copy the
        image, the feature, the position of the window, and the offset in it.
        """
        b, patches = self.b, self.b.temp(shape, self.dtype, "patches")
        with nest(b, shape, "parallel") as at:
            image, feature, place, offset = coordinates(at)
            index = [b.add(b.mul(i, stride), b.mul(k, apart)) for i, k, stride, apart in zip(
                place, offset, self.strides, self.dilation, strict=True)]
            b.store(patches, at, b.load(self.x, self.image_index(b, group, image, feature, index)))
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
            index = self.weight_index(b, group, output, feature, offset)
            b.store(copy, (group, *terms), b.convert(b.load(w, index), self.dtype))
        b.freeze(copy)
        return copy

    def collect(self, sums: Any, is_transposed: bool) -> None:
        """Sum the partial results of every element."""
        b, sizes = self.b, self.sizes

        def place(at: Sequence[Any]) -> tuple:
            n, output, *places = (at[d] for d in self.out_spec)
            group, output = b.unravel(output, (sizes.groups, sizes.outputs))
            flat = b.ravel(places, sizes.places)
            outside, row = (flat, n) if self.rows_are_images else (n, flat)
            return outside, group, *((output, row) if is_transposed else (row, output))
        sum_partials(b, sums, self.partials, self.out, place)


def positions_in_cache(places: Sequence[int], size: int) -> tuple[tuple[int, ...], int]:
    """The number of positions whose windows fit into the cache, and the number of such parts."""
    if not places:
        return (1,), 1
    n, *others = places
    row = math.prod(others) * size
    count = max(k for k in range(1, n + 1) if n % k == 0 and (k == 1 or k * row <= CACHED))
    return (count, *others), n // count


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
