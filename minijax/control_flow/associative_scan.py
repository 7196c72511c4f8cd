"""Cumulative results of an associative function: `associative_scan`.

Builds on `loops`, and on the cumulative primitives.  Chapter 09, *Control flow*.
In JAX: `jax/_src/lax/control_flow/loops.py`.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import dtypes, tree_util
from minijax.core import Array, Primitive, tracing
from minijax.control_flow import loops, reducers, traced_functions
from minijax.primitives.axes import canonical_axis
from minijax.primitives.convert import converted
from minijax.primitives.ad_util import broadcast_at, move_axis, reshaped
from minijax.primitives.joining import concatenate
from minijax.primitives.reduce import cummax_p, cummin_p, cumprod_p, cumsum_p
from minijax.primitives.shape import expand_dims, rev, squeeze
from minijax.primitives.slicing import slice_in_dim


def associative_scan(fn: Callable, elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """The combinations of the first one, two, three … elements along an axis.

    Args:
      fn: ``(a, b) -> c`` on trees like `elems` of any length along the axis; associative.
      elems: a tree of arrays of the same length along the axis.
      reverse: begin with the last element.
      axis: the axis of the elements.

    Returns:
      A tree like `elems`.

    Raises:
      TypeError: when `fn` is not callable.
      ValueError: when an array has no such axis, or the lengths differ.

    >>> import numpy as np
    >>> associative_scan(lambda a, b: a * b, np.array([1, 2, 3, 4]))
    Array([ 1,  2,  6, 24], dtype=int32)
    """
    if not callable(fn):
        raise TypeError("lax.associative_scan: fn argument should be callable.")
    operands = traced_functions.Operands(elems)
    tree, values = operands.tree, operands.values
    axis = canonical_axis(axis, values[0].ndim) if values else axis
    shapes = [x.shape for x in values]
    lengths = {shape[axis] if axis < len(shape) else None for shape in shapes}
    if len(lengths) > 1:
        raise ValueError("Array inputs to associative_scan must have the same first dimension. "
                         f"(saw: {shapes})")
    if not lengths or lengths <= {0, 1}:
        return tree_util.tree_unflatten(tree, values)

    def combine(*rows: list) -> list:
        elements = (tree_util.tree_unflatten(tree, [move_axis(x, 0, axis) for x in each])
                    for each in rows)
        outs = tree_util.tree_leaves(fn(*elements))
        return [move_axis(x, axis, 0) for x in tree_util.tree_leaves(tree.unflatten(outs))]

    def in_direction(xs: list) -> list:
        return [rev(x, (0,)) for x in xs] if reverse else xs
    if (primitive := _cumulative_primitive(fn, tree, values)) is not None:
        return tree.unflatten([primitive.bind(*strong(values), axis=axis, reverse=bool(reverse))])
    outs = in_direction(_cumulate(combine, in_direction([move_axis(x, axis, 0) for x in values])))
    return tree_util.tree_unflatten(tree, strong([move_axis(x, 0, axis) for x in outs]))


def strong(xs: list) -> list:
    """The arrays with types that are not weak."""
    return [converted(x, x.dtype) for x in xs]


_CUMULATIVE = {"add": cumsum_p, "mul": cumprod_p, "max": cummax_p, "min": cummin_p}


def _cumulative_primitive(fn: Callable, tree: Any, values: list[Array]) -> Primitive | None:
    """The primitive for a function that is an addition, a product or an extremum."""
    if len(values) > 1 or not dtypes.issubdtype(values[0].dtype, np.number):
        return None
    flat = tracing.FlatFunction(fn, tree_util.tree_structure(((tree.unflatten([0]),) * 2, {})))
    return _CUMULATIVE.get(reducers.primitive_name(flat.staged([values[0].aval] * 2)))


# JAX: a tree of combinations, each level of which is a pass over memory. Here a loop iterates over
# the rows, in blocks, so that a result is not a sum of very many terms, whose errors add up.
LARGEST_BLOCK = 128


def _cumulate(combine: Callable[..., list], rows: list) -> list:
    """The cumulative results along leading axes."""
    length = rows[0].shape[0]
    size = length if length <= LARGEST_BLOCK else math.isqrt(length)
    count, rest = divmod(length, size)

    def next_block(last: list, block: list) -> tuple[list, list]:
        """The results of a block, from the last result before it."""
        before = [broadcast_at(x, range(x.ndim), (len(b), *x.shape[1:]))
                  for x, b in zip(last, block, strict=True)]
        outs = combine(before, _cumulate_block(combine, block))
        return [slice_in_dim(x, len(x) - 1, len(x)) for x in outs], outs
    parts = [_cumulate_block(combine, [slice_in_dim(x, 0, size) for x in rows])]
    last = [slice_in_dim(x, size - 1, size) for x in parts[0]]
    if count > 1:
        blocks = [reshaped(slice_in_dim(x, size, length - rest), (count - 1, size, *x.shape[1:]))
                  for x in rows]
        last, outs = loops.scan(next_block, last, blocks)
        parts.append([reshaped(x, ((count - 1) * size, *x.shape[2:])) for x in outs])
    if rest:
        parts.append(next_block(last, [slice_in_dim(x, length - rest, length) for x in rows])[1])
    return [concatenate(pieces, 0) for pieces in zip(*parts, strict=True)]


def _cumulate_block(combine: Callable[..., list], rows: list) -> list:
    def step(last: list, row: list) -> tuple[list, list]:
        outs = combine(*([expand_dims(x, (0,)) for x in each] for each in (last, row)))
        outs = [squeeze(x, (0,)) for x in outs]
        return outs, outs
    first = [slice_in_dim(x, 0, 1) for x in rows]
    _, outs = loops.scan(step, [squeeze(x, (0,)) for x in first],
                         [slice_in_dim(x, 1, len(x)) for x in rows])
    return [concatenate([x, ys], 0) for x, ys in zip(first, outs, strict=True)]
