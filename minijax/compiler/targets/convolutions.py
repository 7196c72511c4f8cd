"""Convolutions on a GPU as matrix products (implicit GEMM): of the windows with the weights.

Builds on tiles.py: a factor of a product is a function of an index, so no window is ever copied.
Chapter 27. In JAX: cuDNN, behind XLA.
"""

import math
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from minijax.primitives.convolution import ConvDimensionNumbers, sizes_of
from minijax.primitives.windowed_reductions import window_position
from minijax.tree_util import tree_structure, tree_unflatten

from ..builder import Builder
from ..kernels.convolutions import PASSED, Geometry
from ..kernels.products import placed
from ..loops import Buffer, Call, Constant, Operand
from ..routines import CONVOLUTION, PRODUCT
from .tiles import THREAD_TILES, Product


def product_of(call: Call) -> Product | None:
    """The product that a call asks for, if it does: of matrices, or of windows with weights."""
    if re.fullmatch(PRODUCT, call.external):
        return Product.of(call)
    return Windows(call).product() if re.fullmatch(CONVOLUTION, call.external) else None


Element = tuple[Operand, Sequence[Operand]]  # whether it exists, and its index


class Gathered(NamedTuple):
    """A factor of a product whose elements lie where a function says."""

    buffer: Buffer
    has_adjacent_terms: bool
    max_each: int
    index_of: Callable[..., Element]

    def at(self, b: Builder, *at: Operand) -> tuple[Operand, Operand]:
        """Whether a matrix, row and term have an element there, and its linear index."""
        exists, index = self.index_of(b, *at)
        return exists, b.ravel(index, self.buffer.shape)


class Windows(Geometry):
    """The geometry of a convolution: a matrix for each group, a row for each window of each image,
    a column for each output feature, a term for each feature and position in the window.
    """

    def __init__(self, call: Call) -> None:
        args: list[Any] = [int(x.value) if isinstance(x, Constant) else x for x in call.args]
        self.x, self.w, self.z, *numbers = args
        rank = len(self.x.shape)
        axes, sizes, pairs = (0,) * rank, (0,) * (rank - 2), [(0, 0)] * (rank - 2)
        like = 0, 0, ConvDimensionNumbers(axes, axes, axes), sizes, pairs, sizes, sizes
        params = dict(zip(PASSED, tree_unflatten(tree_structure(like), numbers), strict=True))
        super().__init__(sizes_of(self.x.shape, self.w.shape, **params), params)
        self.features_last = self.lhs_spec[1] == rank - 1
        # The sizes of the axes of the terms; the axis is last that is contiguous in images.
        features, window = self.sizes.features, self.sizes.window
        self.terms = (*window, features) if self.features_last else (features, *window)

    def product(self) -> Product:
        """The product; its rows are windows if features come last in the result, or columns."""
        sizes, last = self.sizes, len(self.x.shape) - 1
        # Of each window a thread keeps the place: they take its registers.
        windows = Gathered(self.x, self.features_last, 4 if last < 4 else 2, self.image)
        inner = self.rhs_spec[1] if self.features_last else self.rhs_spec[-1]
        weights = Gathered(self.w, inner == last, max(THREAD_TILES), self.weight)
        places, terms = sizes.batch * math.prod(sizes.places), math.prod(self.terms)
        if self.out_spec[1] == last:
            return Product(windows, weights, self.z, sizes.groups, places, sizes.outputs, terms,
                           self.element)
        return Product(weights, windows, self.z, sizes.groups, sizes.outputs, places, terms,
                       lambda b, group, output, place: self.element(b, group, place, output))

    def term(self, b: Builder, term: Operand) -> tuple[Operand, Sequence[Operand]]:
        """The feature and the position in the window."""
        parts = b.unravel(term, self.terms)
        return (parts[-1], parts[:-1]) if self.features_last else (parts[0], parts[1:])

    def image(self, b: Builder, group: Operand, row: Operand, term: Operand) -> Element:
        """Whether an element of a window is in the image, and where; around it are zeros."""
        sizes, (n, *places) = self.sizes, b.unravel(row, (self.sizes.batch, *self.sizes.places))
        feature, offset = self.term(b, term)
        inside, at = window_position(b, tuple(places), tuple(offset), sizes.slid, self.strides,
                                     self.padding, self.base, self.dilation)
        return inside, self.image_index(b, group, n, feature, at)

    def weight(self, b: Builder, group: Operand, output: Operand, term: Operand) -> Element:
        """Where a weight is."""
        return b.const(True, bool), self.weight_index(b, group, output, *self.term(b, term))

    def element(self, b: Builder, group: Operand, row: Operand, output: Operand) -> Operand:
        """The linear index of an element of the result."""
        n, *places = b.unravel(row, (self.sizes.batch, *self.sizes.places))
        output = b.add(b.mul(group, self.sizes.outputs), output)
        return b.ravel(placed(self.out_spec, n, output, *places), self.z.shape)
