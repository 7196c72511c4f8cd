"""Cumulative results of any associative function: `associative_scan`.

Stands on `cond_scan_while`, and on the running totals that have names.  Chapter 09, *Control flow*.
In JAX: `jax/_src/lax/control_flow/loops.py`.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import dtypes, tree_util
from minijax.core import Array, Primitive
from minijax.control_flow.cond_scan_while import scan
from minijax.control_flow.reducers import named
from minijax.primitives.convert import converted
from minijax.primitives.ad_util import move_axis, reshaped, broadcast_at
from minijax.primitives.joining import concatenate
from minijax.primitives.reduce import cummax_p, cummin_p, cumprod_p, cumsum_p
from minijax.primitives.shape import expand_dims, rev, squeeze
from minijax.primitives.slicing import slice_in_dim
from minijax.core.tracing import FlatFunction, check_arg


def associative_scan(fn: Callable, elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """The results of combining the first one, two, three … elements along an axis.

    Args:
      fn: ``(a, b) -> c`` on trees like `elems` of any length along the axis; associative.
      elems: a tree of arrays of the same length along the axis.
      reverse: begin with the last element.
      axis: the axis along which the elements stand.

    Returns:
      A tree like `elems`.

    Raises:
      TypeError: when `fn` cannot be called.
      ValueError: when an array has no such axis, or the lengths differ.

    >>> import numpy as np
    >>> associative_scan(lambda a, b: a * b, np.array([1, 2, 3, 4]))
    Array([ 1,  2,  6, 24], dtype=int32)
    """
    if not callable(fn):
        raise TypeError("lax.associative_scan: fn argument should be callable.")
    leaves, tree = tree_util.tree_flatten(elems)
    values = [check_arg(x) for x in leaves]
    for x in values[:1]:
        if not -x.ndim <= axis < x.ndim:
            raise ValueError(f"axis {axis} is out of bounds for array of dimension {x.ndim}")
        axis %= x.ndim
    shapes = [x.shape for x in values]
    lengths = {shape[axis] if axis < len(shape) else None for shape in shapes}
    if len(lengths) > 1:
        raise ValueError("Array inputs to associative_scan must have the same first dimension. "
                         f"(saw: {shapes})")
    if not lengths or lengths <= {0, 1}:
        return tree_util.tree_unflatten(tree, values)

    def combined(before: list, after: list) -> list:
        both = (tree_util.tree_unflatten(tree, [move_axis(x, 0, axis) for x in some])
                for some in (before, after))
        return [move_axis(x, axis, 0) for x in tree.flatten_up_to(fn(*both))]

    def turned(xs: list) -> list:
        return [rev(x, (0,)) for x in xs] if reverse else xs
    total = _with_a_name(fn, tree, values)
    if total is not None:
        return tree.unflatten([total.bind(*strong(values), axis=axis, reverse=bool(reverse))])
    found = turned(_cumulated(combined, turned([move_axis(x, axis, 0) for x in values])))
    return tree_util.tree_unflatten(tree, strong([move_axis(x, 0, axis) for x in found]))


def strong(xs: list) -> list:
    """The same, of types that are not weak, as what is joined piece by piece."""
    return [converted(x, x.dtype) for x in xs]


_TOTALS = {"add": cumsum_p, "mul": cumprod_p, "max": cummax_p, "min": cummin_p}


def _with_a_name(fn: Callable, tree: Any, values: list[Array]) -> Primitive | None:
    """The running total that a function of single arrays of numbers keeps, if it is known."""
    if len(values) > 1 or not dtypes.issubdtype(values[0].dtype, np.number):
        return None
    flat = FlatFunction(fn, tree_util.tree_structure(((tree.unflatten([0]),) * 2, {})))
    return _TOTALS.get(named(flat.staged([values[0].aval] * 2)))


# JAX: a tree of combinations, each level of which is a pass over memory. Here a loop goes along the
# rows; in blocks, so that no result is the sum of very many terms one by one.
ONE_BY_ONE = 128


def _cumulated(combined: Callable[[list, list], list], rows: list) -> list:
    """The cumulative results along leading axes."""
    length = rows[0].shape[0]
    size = length if length <= ONE_BY_ONE else math.isqrt(length)
    count, left = divmod(length, size)

    def onward(before: list, block: list) -> tuple[list, list]:
        """A block after the last result before it."""
        within = _one_by_one(combined, block)
        after = combined([broadcast_at(x, range(x.ndim), (len(b), *x.shape[1:]))
                          for x, b in zip(before, block, strict=True)], within)
        return [slice_in_dim(x, len(x) - 1, len(x)) for x in after], after
    parts = [_one_by_one(combined, [slice_in_dim(x, 0, size) for x in rows])]
    last = [slice_in_dim(x, size - 1, size) for x in parts[0]]
    if count > 1:
        blocks = [reshaped(slice_in_dim(x, size, length - left), (count - 1, size, *x.shape[1:]))
                  for x in rows]
        last, found = scan(onward, last, blocks)
        parts.append([reshaped(x, ((count - 1) * size, *x.shape[2:])) for x in found])
    if left:
        parts.append(onward(last, [slice_in_dim(x, length - left, length) for x in rows])[1])
    return [concatenate(pieces, 0) for pieces in zip(*parts, strict=True)]


def _one_by_one(combined: Callable[[list, list], list], rows: list) -> list:
    def step(before: list, row: list) -> tuple[list, list]:
        after = combined(*([expand_dims(x, (0,)) for x in each] for each in (before, row)))
        after = [squeeze(x, (0,)) for x in after]
        return after, after
    first = [slice_in_dim(x, 0, 1) for x in rows]
    _, found = scan(step, [squeeze(x, (0,)) for x in first],
                    [slice_in_dim(x, 1, len(x)) for x in rows])
    return [concatenate([x, ys], 0) for x, ys in zip(first, found, strict=True)]
