"""Products of groups of rows of different sizes with a matrix each: `ragged_dot`.

Builds on `contract`.  Each group's rows are masked; one product does the rest.
In JAX: `jax/_src/lax/lax.py` (`ragged_dot_general`).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple


from minijax import core, dtypes
from minijax.core import Array
from minijax.primitives import algebra, comparison, ad_util, reduce
from minijax.primitives.axes import as_dims, refuse
from minijax.primitives.contract import dot_general
from minijax.primitives.convert import converted
from minijax.primitives.shape import broadcasted_iota


class RaggedDotDimensionNumbers(NamedTuple):
    """The roles of the axes of `ragged_dot_general`.

    Args:
      dot_dimension_numbers: as in `dot_general`.
      lhs_ragged_dimensions: the one axis of the left that consists of groups.
      rhs_group_dimensions: the axis of the right with one entry for each group, if it has one.
    """

    dot_dimension_numbers: Any
    lhs_ragged_dimensions: Sequence[int]
    rhs_group_dimensions: Sequence[int]


def ragged_dot(lhs: Any, rhs: Any, group_sizes: Any, precision: Any = None,
               preferred_element_type: Any = None, group_offset: Any = None,
               out_sharding: Any = None) -> Array:
    """Groups of rows, each times a matrix of its own.

    Args:
      lhs: (m, k).
      rhs: (groups, k, n).
      group_sizes: (groups,), integers: how many rows each has; rows after the last give zeros.

    Returns:
      (m, n).

    >>> import numpy as np
    >>> ragged_dot(np.ones((3, 2)), np.arange(4.).reshape(2, 2, 1), np.array([2, 1]))
    Array([[1.],
           [1.],
           [5.]], dtype=float32)
    """
    numbers = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))
    return ragged_dot_general(lhs, rhs, group_sizes, numbers, precision, preferred_element_type,
                              group_offset, out_sharding)


def ragged_dot_general(lhs: Any, rhs: Any, group_sizes: Any,
                       ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
                       precision: Any = None, preferred_element_type: Any = None,
                       group_offset: Any = None, out_sharding: Any = None) -> Array:
    """A product of arrays, one axis of the left one of which consists of groups.

    If that axis is summed over, the result has one product for each group, along a first axis.  If
    it stays, each group has its own part of the right.  If it is a batch axis, this is
    `dot_general`.

    Args:
      lhs, rhs: arrays.
      group_sizes: (groups,), integers.
      ragged_dot_dimension_numbers: which axes mean what.
      precision, preferred_element_type: as in `dot_general`.
      group_offset: must be None.

    >>> import numpy as np
    >>> dims = RaggedDotDimensionNumbers((((1,), (0,)), ((), ())), (1,), ())
    >>> ragged_dot_general(np.ones((1, 3)), np.ones((3, 1)), np.array([2, 1]), dims).tolist()
    [[[2.0]], [[1.0]]]

    Raises:
      TypeError: where sizes are no integers, or groups do not fit.
      NotImplementedError: with a `group_offset`.
    """
    if group_offset is not None:
        raise NotImplementedError("ragged_dot_general takes no group_offset: leave the groups out "
                                  "of group_sizes and rhs instead.")
    ((summed, summed_right), (batch, batch_right)), [axis], groups = ragged_dot_dimension_numbers
    summed, summed_right, batch, batch_right, groups = map(
        as_dims, (summed, summed_right, batch, batch_right, groups))
    lhs, rhs, sizes = map(core.as_value, (lhs, rhs, group_sizes))
    refuse((dtypes.kind(sizes.dtype) not in "iu",
            "ragged_dot_general requires that group_sizes.dtype is subtype of np.integer."),
           (sizes.ndim != 1, f"ragged_dot_general takes one row of group_sizes, not {sizes.shape}; "
                             "for more, jax.vmap it."),
           *((rhs.shape[g] != sizes.shape[0], "expected rhs group dimension size to be "
              f"{sizes.shape[0]}, got {rhs.shape[g]}.") for g in groups))
    options = {"precision": precision, "preferred_element_type": preferred_element_type}

    if axis in batch:
        out = dot_general(lhs, rhs, ((summed, summed_right), (batch, batch_right)), **options)
        return converted(out, out.dtype, out.weak_type and sizes.weak_type)
    parts = _parts(lhs, sizes, axis)
    summed, batch = ([d + 1 for d in axes] for axes in (summed, batch))
    if axis + 1 not in summed:
        summed, summed_right = [0, *summed], (*groups, *summed_right)
    out = dot_general(parts, rhs, ((summed, summed_right), (batch, batch_right)), **options)
    return ad_util.move_axis(out, len(batch), 0) if axis + 1 in summed and 0 not in summed else out


def _parts(x: Array, sizes: Array, axis: int) -> Array:
    """For each group a copy of the array with zeros in the other groups.

    They are as weak as all operands, the sizes among them.
    """
    shape = (sizes.shape[0], *x.shape)
    ends = reduce.cumsum(sizes)
    place = broadcasted_iota(sizes.dtype, shape, axis + 1)
    start, end = (ad_util.broadcast_at(x, (0,), shape) for x in (algebra.sub(ends, sizes), ends))
    inside = comparison.bitwise_and(comparison.le(start, place), comparison.lt(place, end))
    copies = ad_util.broadcast_at(x, range(1, len(shape)), shape)
    weak = x.weak_type and sizes.weak_type
    zeros = ad_util.repeated(0, copies.aval.update(weak_type=weak))
    return comparison.select(inside, copies, zeros)
