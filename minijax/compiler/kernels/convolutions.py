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
        plan = _Convolution(b, out, x, w, sizes, pad, params)
        (plan.product_by_parts if plan.by_parts else plan.products)()


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
    a row for each position and image, if these are few.

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
        windows = self.places * sizes.batch
        self.by_parts = (self.places < math.prod(sizes.window)
                        and windows <= min(self.terms // 2, MOST_WINDOWS))
        self.rows_are_images = self.by_parts or self.places < sizes.batch
        self.last = self.lhs_spec[not self.rows_are_images] == len(x.shape) - 1
        self.window = ((*sizes.window, sizes.features) if self.last
                       else (sizes.features, *sizes.window))
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
        max_terms, partials = split_terms(terms)
        sides = (count * parts, sizes.outputs)[::-1 if is_transposed else 1]
        shape = partials, outer, sizes.groups, *sides
        spec = self.out_spec
        order = () if self.rows_are_images or last and sizes.groups > 1 else (
            (spec[0], *spec[2:], spec[1]) if last else spec)
        direct = order == tuple(range(len(spec))) and out.dtype == self.dtype and partials == 1
        sums = out if direct else b.temp(shape, self.dtype)
        *steps, below, right = np.empty(shape, np.int8).strides
        z = Matrices(sums, (*steps, count * (right if is_transposed else below), below, right))
        for_group, *steps = self.weights.steps
        weights = Matrices(self.weights.buffer, (0, for_group, 0, *steps))
        m, n = (sizes.outputs, count) if is_transposed else (count, sizes.outputs)
        with b.loop(outer * sizes.groups * parts, vectorize="parallel") as i:
            outside, group, part = index = b.unravel(i, (outer, sizes.groups, parts))

            def position(row: tuple) -> tuple:
                if self.rows_are_images:
                    return row[0], b.unravel(outside, sizes.places)
                return outside, (b.add(b.mul(part, rows[0]), row[0]), *row[1:])

            windows = self.windows(group, rows, self.window, position, (0, 0, 0))
            x, y = (weights, windows) if is_transposed else (windows, weights)
            multiply(b, z, x, y, index, (m, terms, n), max_terms)

        def index_of(group: Any, output: Any, image: Any, place: Any) -> tuple:
            outside, row = (place, image) if self.rows_are_images else (image, place)
            return outside, group, *((output, row) if is_transposed else (row, output))
        if not direct:
            self.collect(sums, index_of)

    def product_by_parts(self) -> None:
        """Multiply parts of all windows, which stay in the cache, with parts of the weights."""
        b, sizes, count = self.b, self.sizes, self.places * self.sizes.batch
        *lines, length = self.window
        fitting = min(LONG, CACHED // (count * self.dtype.itemsize))
        part = max(fitting // length, 1), length
        max_terms = math.prod(part)
        rows = (*sizes.places, sizes.batch) if self.last else (sizes.batch, *sizes.places)
        sums = b.temp((-(-self.terms // (max_terms * CHAIN)), sizes.groups, count, sizes.outputs),
                      self.dtype)
        z = Matrices(sums, np.empty(sums.shape, np.int8).strides)
        def position(row: tuple) -> tuple:
            *place, image = row if self.last else (*row[1:], row[0])
            return image, place

        with b.loop(sizes.groups, vectorize="parallel") as group:
            def part_of_windows(start: Any, _: Any) -> Matrices:
                def term(line: Any, i: Any) -> tuple:
                    line = b.min(b.add(b.div(start, length), line), math.prod(lines) - 1)
                    return *b.unravel(line, lines), i
                return self.windows(group, rows, part, position, (0,), term)
            multiply(b, z, part_of_windows, self.weights, (group,),
                     (count, self.terms, sizes.outputs), max_terms)

        def index_of(group: Any, output: Any, image: Any, place: Any) -> tuple:
            row = (b.ravel((place, image), (self.places, sizes.batch)) if self.last
                   else b.ravel((image, place), (sizes.batch, self.places)))
            return group, row, output
        self.collect(sums, index_of)

    def windows(self, group: Any, rows: tuple, terms: tuple, position: Callable, steps: tuple,
                term: Callable = lambda *at: at) -> Matrices:
        """A copy of windows, a row for each position: `position` gives the image, and the place in
        it; `term` the position in the window, and the feature.
        """
        b, rows_first = self.b, self.last != self.rows_are_images
        shape = (*rows, *terms) if rows_first else (*terms, *rows)
        patches = b.temp(shape, self.dtype, "patches")
        with nest(b, shape, "parallel") as at:
            row, inside = ((at[:len(rows)], at[len(rows):]) if rows_first else
                           (at[len(terms):], at[:len(terms)]))
            image, place = position(row)
            feature, offset = self.parted(term(*inside))
            index = [b.add(b.mul(i, stride), b.mul(k, apart)) for i, k, stride, apart in zip(
                place, offset, self.strides, self.dilation, strict=True)]
            b.store(patches, at, b.load(self.x, self.image_index(b, group, image, feature, index)))
        b.freeze(patches)
        return Matrices(patches, (*steps, *(
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
        return Matrices(copy, (sizes.outputs * self.terms, *(
            (1, sizes.outputs) if by_terms else (self.terms, 1))))

    def parted(self, term: Sequence[Any]) -> tuple[Any, Sequence[Any]]:
        """The feature, and the position in the window."""
        return (term[-1], term[:-1]) if self.last else (term[0], term[1:])

    def collect(self, sums: Any, index_of: Callable[..., tuple]) -> None:
        """Sum the partial results of every element; `index_of` says where they are."""
        b, sizes = self.b, self.sizes

        def place(at: Sequence[Any]) -> tuple:
            n, output, *places = (at[d] for d in self.out_spec)
            group, output = b.unravel(output, (sizes.groups, sizes.outputs))
            return index_of(group, output, n, b.ravel(places, sizes.places))
        sum_partials(b, sums, sums.shape[0], self.out, place)


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
    return moved(b, x, dtype, lambda x: pad(
        x, constant(0, x), padding_config=tuple(config)), "surrounded")
