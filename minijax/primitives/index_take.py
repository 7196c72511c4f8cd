"""Windows taken and changed by what other functions say: `index_take`, `scatter_apply`.

Builds on `gather`.  Chapter 14, *Out-of-bounds indexing*.
In JAX: `jax/_src/lax/slicing.py`.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import core
from minijax.core import Array
from minijax.primitives import algebra, ad_util
from minijax.primitives.axes import Shape, as_dims
from minijax.primitives.gather import gather, scatter
from minijax.primitives.joining import stack
from minijax.primitives.rounding import rem
from minijax.primitives.windows import (GatherDimensionNumbers, GatherScatterMode,
                                        ScatterDimensionNumbers, window_sizes)


def scatter_apply(operand: Any, scatter_indices: Any, func: Callable[[Array], Array],
                  dimension_numbers: ScatterDimensionNumbers, *, update_shape: Shape = (),
                  indices_are_sorted: bool = False, unique_indices: bool = False,
                  mode: str | GatherScatterMode | None = None) -> Array:
    """The operand with a function applied to windows at computed places, element by element.

    JAX: applies it once more for every time that a place is repeated.

    Args:
      func: one element to one.
      update_shape: the shape that updates would have.

    >>> import numpy as np
    >>> dims = ScatterDimensionNumbers((), (0,), (0,))
    >>> scatter_apply(np.ones(3), np.array([[1]]), lambda x: 5 * x, dims, update_shape=(1,))
    Array([1., 5., 1.], dtype=float32)
    """
    axes = list(map(tuple, dimension_numbers))
    read, written = GatherDimensionNumbers(*axes), ScatterDimensionNumbers(*axes)
    sizes = window_sizes(written, np.shape(operand), tuple(update_shape))
    old = gather(operand, scatter_indices, read, sizes, mode=mode or "fill")
    return scatter(operand, scatter_indices, func(old), written, mode=mode,
                   indices_are_sorted=indices_are_sorted, unique_indices=unique_indices)


def index_take(src: Any, idxs: Sequence[Any], axes: Sequence[int]) -> Array:
    """The parts of an array at indices along some of its axes; negative ones count from the end.

    Args:
      src: an array.
      idxs: for each of the axes an array of integers; all have one shape.
      axes: the axes.

    >>> import numpy as np
    >>> index_take(np.arange(6).reshape(2, 3), np.array([[0, 1], [-1, 0]]), (0, 1))
    Array([2, 3], dtype=int32)
    """
    shape, axes, places = np.shape(src), as_dims(axes), [core.as_value(i) for i in idxs]
    rank, wrapped = places[0].ndim, []
    for i, axis in zip(places, axes, strict=True):
        size = ad_util.filled(shape[axis], i)
        wrapped.append(rem(algebra.add(rem(i, size), size), size))
    windows = tuple(range(rank, rank + len(shape) - len(axes)))
    return gather(src, stack(wrapped, rank), GatherDimensionNumbers(windows, axes, axes),
                  [1 if d in axes else n for d, n in enumerate(shape)])
