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
from minijax.primitives.summation import LONG
from minijax.tree_util import tree_leaves

from ..builder import CHAIN
from ..routines import product_of
from .products import (LAUNCHED, MAX_INLINE, MIN_SIDE, Matrices, accumulator_dtype, computed,
                       moved, multiply, placed, split_terms, sum_partials)

PASSED = ("feature_group_count", "batch_group_count", "dimension_numbers", "window_strides",
          "padding", "lhs_dilation", "rhs_dilation")  # the parameters that a call has as numbers
CACHED = 1 << 18  # bytes of windows that stay in the cache for a product
MOST_WINDOWS = 1 << 10  # that are copied by parts
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
        computed(b, lambda x, w: [as_sums(x, w, **params)], [out], x, w)
    elif sizes.outputs < FEW and (sizes.features < FEW or math.prod(sizes.window) == 1):
        plain = params | {"padding": ((0, 0),) * len(sizes.window),
                          "lhs_dilation": (1,) * len(sizes.window)}
        computed(b, lambda x, w: [as_sums(x, w, **plain)], [out], padded(
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
    where there are few positions, one for each position and group, whose rows are images. For the
    derivative by the weights, whose windows are as large as images, a product for each group with
    a row for each position and image, if these are few: it is a sum by parts of the windows.

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
        self.by_parts = (self.places < math.prod(sizes.window)
                         and self.places * sizes.batch <= min(self.terms // 2, MOST_WINDOWS))
        self.rows_are_images = self.by_parts or self.places < sizes.batch or not sizes.places
        self.last = self.lhs_spec[not self.rows_are_images] == len(x.shape) - 1
        self.window = ((*sizes.window, sizes.features) if self.last
                       else (sizes.features, *sizes.window))
        # How many products there are for a group: outer ones, each for parts of the positions.
        self.outer, self.parts = self.places, 1
        self.rows: tuple[int, ...] = (sizes.batch,)
        if self.by_parts:
            self.outer = 1
            self.rows = (*sizes.places, sizes.batch) if self.last else (sizes.batch, *sizes.places)
        elif not self.rows_are_images:
            self.outer, size = sizes.batch, self.terms * self.dtype.itemsize
            self.rows, self.parts = positions_in_cache(sizes.places, size)
        self.x = padded(b, x, self.lhs_spec, self.padding, self.base, self.dtype, pad)
        self.weights = self.weight_matrices(w)

    def products(self) -> None:
        """Multiply windows with weights; or weights with windows, where positions are contiguous.
        Of a product by parts a part of the windows, which stays in the cache, at a time.
        """
        b, sizes, last, out, count = self.b, self.sizes, self.last, self.out, math.prod(self.rows)
        is_transposed, lines = not (last or self.rows_are_images), 0
        max_terms, partials = split_terms(self.terms)
        if self.by_parts:
            length = self.window[-1]
            lines = max(min(LONG, CACHED // (count * self.dtype.itemsize)) // length, 1)
            max_terms, partials = lines * length, -(-self.terms // (lines * length * CHAIN))
        sides = (count * self.parts, sizes.outputs)[::-1 if is_transposed else 1]
        shape = partials, self.outer, sizes.groups, *sides
        spec = self.out_spec
        order = () if self.rows_are_images or last and sizes.groups > 1 else (
            (spec[0], *spec[2:], spec[1]) if last else spec)
        direct = order == tuple(range(len(spec))) and out.dtype == self.dtype and partials == 1
        sums = out if direct else b.temp(shape, self.dtype)
        *steps, below, right = np.empty(shape, np.int8).strides
        z = Matrices(sums, (*steps, count * (right if is_transposed else below), below, right))
        m, n = (sizes.outputs, count) if is_transposed else (count, sizes.outputs)
        outside = self.outer, sizes.groups, self.parts
        with b.loop(math.prod(outside), vectorize="parallel") as i:
            index = b.unravel(i, outside)
            windows: Any = (lambda start, _: self.windows(index, lines, start)
                            ) if lines else self.windows(index)
            x, y = (self.weights, windows) if is_transposed else (windows, self.weights)
            multiply(b, z, x, y, index, (m, self.terms, n), max_terms)

        def place_of(at: Sequence[Any]) -> tuple:
            image, output, *place = (at[d] for d in self.out_spec)
            group, output = b.unravel(output, (sizes.groups, sizes.outputs))
            outer, row = self.row(image, b.ravel(place, sizes.places))
            return outer, group, *((output, row) if is_transposed else (row, output))
        if not direct:
            sum_partials(b, sums, partials, out, place_of)

    def position(self, outer: Any, part: Any, row: tuple) -> tuple:
        """The image of a row, and the place in it."""
        if self.by_parts:
            return (row[-1], row[:-1]) if self.last else (row[0], row[1:])
        if self.rows_are_images:
            return row[0], self.b.unravel(outer, self.sizes.places)
        return outer, (self.b.add(self.b.mul(part, self.rows[0]), row[0]), *row[1:])

    def row(self, image: Any, place: Any) -> tuple:
        """The inverse: the outer product, and the row of all its parts."""
        if self.by_parts:
            axes = ((place, self.places), (image, self.sizes.batch))[::1 if self.last else -1]
            return 0, self.b.ravel(*zip(*axes, strict=True))
        return (place, image) if self.rows_are_images else (image, place)

    def windows(self, index: tuple, lines: int = 0, start: Any = 0) -> Matrices:
        """A copy of the windows of a product; with a number of lines of that part of their terms,
        from one on.
        """
        b, (outer, group, part), rows = self.b, index, self.rows
        terms = (lines, self.window[-1]) if lines else self.window
        rows_first = self.last != self.rows_are_images
        shape = (*rows, *terms) if rows_first else (*terms, *rows)
        patches = b.temp(shape, self.dtype, "patches")
        with nest(b, shape, "parallel") as at:
            row, term = ((at[:len(rows)], at[len(rows):]) if rows_first else
                         (at[len(terms):], at[:len(terms)]))
            if lines:
                *above, length = self.window
                line = b.min(b.add(b.div(start, length), term[0]), math.prod(above) - 1)
                term = *b.unravel(line, above), term[1]
            image, place = self.position(outer, part, row)
            feature, offset = self.parted(term)
            source = [b.add(b.mul(i, stride), b.mul(k, apart)) for i, k, stride, apart in zip(
                place, offset, self.strides, self.dilation, strict=True)]
            b.store(patches, at, b.load(self.x, self.image_index(b, group, image, feature, source)))
        b.freeze(patches)
        return Matrices(patches, (0, 0, 0, *(
            (math.prod(terms), 1) if rows_first else (1, math.prod(rows)))))

    def weight_matrices(self, w: Any) -> Matrices:
        """The weights of each group as a matrix, with terms in the order of the windows."""
        b, sizes = self.b, self.sizes
        by_terms = self.last or self.by_parts
        copy = b.temp((sizes.groups, *((*self.window, sizes.outputs) if by_terms
                                       else (sizes.outputs, *self.window))), self.dtype, "weights")
        with nest(b, copy.shape, "parallel") as (group, *at):
            *term, output = at if by_terms else (*at[1:], at[0])
            index = self.weight_index(b, group, output, *self.parted(term))
            b.store(copy, (group, *at), b.convert(b.load(w, index), self.dtype))
        b.freeze(copy)
        return Matrices(copy, (0, sizes.outputs * self.terms, 0, *(
            (1, sizes.outputs) if by_terms else (self.terms, 1))))

    def parted(self, term: Sequence[Any]) -> tuple[Any, Sequence[Any]]:
        """The feature, and the position in the window."""
        return (term[-1], term[:-1]) if self.last else (term[0], term[1:])


def positions_in_cache(places: Sequence[int], size: int) -> tuple[tuple[int, ...], int]:
    """The number of positions whose windows fit into the cache, and the number of such parts."""
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
    return moved(b, x, dtype, lambda x: pad(
        x, constant(0, x), padding_config=tuple(config)), "surrounded")
