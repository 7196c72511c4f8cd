"""Primitives that join arrays and split them: concatenate, stack, tile, split, unstack.

Builds on `slicing`.  Chapter 23, *An array is a function of an index*.
In JAX: `jax/_src/lax/lax.py`.
"""

import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.core import Array, Primitive, ShapedArray, Undefined, refuse
from minijax.primitives import ad_util, slots
from minijax.primitives.axes import (Index, Shape, as_dims, canonical_axis, replaced, with_item,
                                     without)
from minijax.primitives.examples import grid, table
from minijax.primitives.shape import squeeze_p
from minijax.primitives.slicing import part, slice_in_dim


def _element_of_piece(s: Any, position: Any, ends: Sequence[int], element: Callable[[int], Any]
                      ) -> Any:
    """The element of the piece that holds a position, by binary search.

    Args:
      ends: where each piece ends.
      element: the number of a piece to its element.
    """
    def within(first: int, last: int) -> Any:
        if last - first == 1:
            return element(first)
        middle = (first + last) // 2
        return s.choose(s.lt(position, ends[middle - 1]), lambda: within(first, middle),
                        lambda: within(middle, last))
    return within(0, len(ends))


# ── concatenate ──────────────────────────────────────────────────────────────────────────────

def _concatenate_type(*avals: ShapedArray, dimension: int) -> list[ShapedArray]:
    first, shapes = avals[0], ", ".join(str(aval.shape) for aval in avals)
    refuse(
        (any(aval.ndim != first.ndim for aval in avals),
         f"Cannot concatenate arrays with different numbers of dimensions: got {shapes}."),
        (not 0 <= dimension < first.ndim,
         f"concatenate dimension out of bounds: dimension {dimension} for shapes {shapes}."))
    total = sum(aval.shape[dimension] for aval in avals)
    outs = {replaced(aval.shape, dimension, total) for aval in avals}
    refuse((len(outs) != 1,
            "Cannot concatenate arrays with shapes that differ in dimensions other than the one "
            f"being concatenated: concatenating along dimension {dimension} for shapes {shapes}."))
    slots.check_same_dtypes("concatenate", *avals)
    return [ShapedArray(outs.pop(), first.dtype, slots.all_weak(avals))]


def _transpose_concatenate(cotangents: list, *args: Any, dimension: int) -> list:
    [ct] = cotangents
    ends = itertools.accumulate(x.aval.shape[dimension] for x in args)
    return [slice_in_dim(ct, end - x.aval.shape[dimension], end, axis=dimension)
            if isinstance(x, Undefined) else None for x, end in zip(args, ends, strict=True)]


def _concatenate_element(s: Any, index: Index, *xs: Any, dimension: int) -> Any:
    position = index[dimension]
    operands = [x for x in xs if x.shape[dimension]] or xs[:1]
    ends = list(itertools.accumulate(x.shape[dimension] for x in operands))
    return _element_of_piece(s, position, ends, lambda i: operands[i](replaced(
        index, dimension, s.sub(position, ends[i] - operands[i].shape[dimension]))))


concatenate_p = Primitive(
    "concatenate", impl=lambda *xs, dimension: [np.concatenate(xs, dimension)],
    abstract_eval=_concatenate_type,
    jvp=ad_util.linear(), transpose=_transpose_concatenate,
    batch=ad_util.batch_in_front("dimension"), sharding=slots.layout(
        "along", name="dimension", words={
            "differ": "All operands should have the same sharding. Got shardings {shardings}"}),
    element=_concatenate_element, complex_parts=ad_util.each_part,
    examples=table(
        "dimension", (grid(2), grid(3), 0), (grid(2, 1), grid(2, 0), grid(2, 3), 1),
        (grid(1, 2, dtype=np.int32), 0), (grid(0), grid(0), 0)))


def concatenate(operands: Sequence[Any], dimension: int) -> Array:
    """The operands one after the other along an axis.

    >>> import numpy as np
    >>> concatenate([np.arange(2), np.arange(3)], 0)
    Array([0, 1, 0, 1, 2], dtype=int32)

    Raises:
      TypeError: when shapes differ along another axis, or dtypes differ.
    """
    if len(operands) == 0:
        raise ValueError("concatenate requires a non-empty sequences of arrays")
    if len(operands) == 1 and isinstance(operands[0], Array):
        return operands[0]
    return concatenate_p.bind(*operands, dimension=operator.index(dimension))


# ── stack ────────────────────────────────────────────────────────────────────────────────────

def _stack_type(*avals: ShapedArray, axis: int) -> list[ShapedArray]:
    first, shapes = avals[0], ", ".join(str(aval.shape) for aval in avals)
    refuse((any(aval.ndim != first.ndim for aval in avals),
            f"Cannot stack arrays with different numbers of dimensions: got {shapes}."),
           (any(aval.shape != first.shape for aval in avals),
            f"All input arrays to stack must have the same shape, got {shapes}."), error=ValueError)
    slots.check_same_dtypes("stack", *avals)
    return [ShapedArray(with_item(first.shape, axis, len(avals)), first.dtype,
                        slots.all_weak(avals))]


stack_p = Primitive(
    "stack", impl=lambda *xs, axis: [np.stack(xs, axis)],
    abstract_eval=_stack_type,
    jvp=ad_util.linear(),
    transpose=lambda cotangents, *_, axis: unstack_p.bind(cotangents[0], axis=axis),
    batch=ad_util.batch_in_front("axis"), sharding=slots.layout("stack"),
    element=lambda s, index, *xs, axis: _element_of_piece(
        s, index[axis], range(1, len(xs) + 1), lambda i: xs[i](without(index, (axis,)))),
    complex_parts=ad_util.each_part,
    examples=table("axis", (grid(2), grid(2), 0), (grid(2, 3), grid(2, 3), grid(2, 3), 1),
                   (grid(dtype=np.int32), 0), (grid(0, 2), grid(0, 2), 2)))


def stack(operands: Sequence[Any], axis: int = 0) -> Array:
    """Arrays of one shape and dtype, side by side along a new axis.

    >>> import numpy as np
    >>> stack([np.arange(2), np.arange(2)], 1)
    Array([[0, 0],
           [1, 1]], dtype=int32)

    Raises:
      ValueError: when shapes differ, or the result has no such axis.
      TypeError: when dtypes differ.
    """
    if not len(operands):
        raise ValueError("stack requires at least one array.")
    return stack_p.bind(*operands, axis=canonical_axis(axis, np.ndim(operands[0]) + 1))


# ── tile ─────────────────────────────────────────────────────────────────────────────────────

def _tile_shape(x: ShapedArray, reps: tuple[int, ...]) -> Shape:
    refuse((len(reps) != x.ndim, "reps length must be equal to the ndim of x, got "
            f"len(reps)={len(reps)} and x.ndim={x.ndim}."))
    refuse((min(reps, default=0) < 0, f"reps must be nonnegative, got {reps}"), error=ValueError)
    return tuple(n * times for n, times in zip(x.shape, reps, strict=True))


def _untile(ct: Array, x: ShapedArray, reps: tuple[int, ...]) -> Array:
    pairs = [size for pair in zip(reps, x.shape, strict=True) for size in pair]
    return ad_util.reduce_sum_p.bind(ad_util.reshaped(ct, tuple(pairs)),
                                     axes=tuple(range(0, 2 * x.ndim, 2)))


tile_p = ad_util.rearrangement(
    "tile", impl=lambda x, reps: np.tile(x, reps),
    shape=_tile_shape,
    transpose=_untile,
    batch=lambda axis, args, dims, reps: (
        [tile_p.bind(*args, reps=with_item(reps, dims[0], 1))], dims),
    sharding=slots.layout("tile", words={
        "whole": "Operand cannot be sharded on dimension {axis} when the tiling is non-trivial. "
                 "Got input type: {type} with reps: {reps}"}),
    source=lambda s, index, x, reps: x(tuple(
        i if times == 1 else s.rem(i, n)
        for i, n, times in zip(index, x.shape, reps, strict=True))),
    examples=table("reps", (grid(3), (2,)), (grid(2, 3), (3, 1)), (grid(2, 3), (1, 2)),
                   (grid(0, 2), (2, 2)), (grid(2), (0,)), (grid(), ()),
                   (grid(1, 2, dtype=np.int32), (2, 2))))


def tile(operand: Any, reps: Sequence[int]) -> Array:
    """The array repeated a number of times along each of its axes.

    >>> import numpy as np
    >>> tile(np.arange(2), (2,))
    Array([0, 1, 0, 1], dtype=int32)

    Raises:
      TypeError: when there is not one number for each axis.
    """
    return tile_p.bind(operand, reps=as_dims(reps))


# ── split, unstack ───────────────────────────────────────────────────────────────────────────

def _splitting(name: str, *, shapes: Any, join: Any, removed: bool = False, **rules: Any
               ) -> Primitive:
    """A primitive whose results are the pieces of its operand; compiled, each is a slice.

    Args:
      shapes: ``(shape, **params)`` to the shapes of the pieces.
      join: ``(pieces, axis)`` to the whole.
      removed: whether the pieces lack the axis.
      rules: as in `Primitive`; the `program` computes each piece by operations of its own.
    """
    return Primitive(
        name, multiple_results=True, **rules,
        sharding=slots.layout("along", name="axis", removed=removed, words={
            "whole": "unstack operand cannot be sharded on the unstacking axis {axis}. Got "
                     "operand type={short_type}"} if removed else {"verb": "slicing"}),
        abstract_eval=lambda x, **params: [x.update(shape=shape)
                                           for shape in shapes(x.shape, **params)],
        jvp=ad_util.linear(0),
        transpose=lambda cotangents, x, axis, **params: [
            join(list(map(ad_util.instantiate, cotangents)), axis)],
        batch=ad_util.batch_along("axis", removed))


def _split_shapes(shape: Shape, sizes: Sequence[int], axis: int) -> list[Shape]:
    sizes = list(sizes)
    refuse(
        (min(sizes, default=0) < 0, f"Sizes passed to split must be nonnegative, got {sizes}"),
        (sum(sizes) != shape[axis], f"Sum of sizes {sum(sizes)} must be equal to dimension {axis} "
         f"of the operand shape {list(shape)}"), error=ValueError)
    return [replaced(shape, axis, int(n)) for n in sizes]


split_p = _splitting(
    "split",
    impl=lambda x, sizes, axis: np.split(x, np.cumsum(sizes)[:-1], axis)[:len(sizes)],
    shapes=_split_shapes,
    program=lambda x, sizes, axis: [part(x, int(start), int(end), axis) for start, end in
                                    itertools.pairwise(itertools.accumulate(sizes, initial=0))],
    join=concatenate,
    examples=table("sizes axis", (grid(5), (2, 0, 3), 0), (grid(2, 3), (1, 2), 1),
                   (grid(2, 3, dtype=np.int32), (2,), 0)))


def split(operand: Any, sizes: Sequence[int], axis: int = 0) -> list[Array]:
    """The operand split into pieces of these sizes along an axis.

    >>> import numpy as np
    >>> split(np.arange(3), (1, 2))
    [Array([0], dtype=int32), Array([1, 2], dtype=int32)]

    Raises:
      ValueError: when the sizes are negative, or do not add up to the axis.
    """
    return split_p.bind(operand, sizes=tuple(sizes), axis=canonical_axis(axis, np.ndim(operand)))


unstack_p = _splitting(
    "unstack", impl=lambda x, axis: [np.asarray(np.take(x, i, axis)) for i in range(x.shape[axis])],
    shapes=lambda shape, axis: [without(shape, (axis,))] * shape[axis],
    program=lambda x, axis: [
        squeeze_p.bind(part(x, i, i + 1, axis), dimensions=(axis,)) for i in range(x.shape[axis])],
    join=stack,
    removed=True,
    examples=table("axis", (grid(3), 0), (grid(2, 3), 1), (grid(2, 3, dtype=np.int32), 0)))


def unstack(x: Any, axis: int = 0) -> tuple[Array, ...]:
    """The pieces of an array along an axis, which they lack.

    >>> import numpy as np
    >>> unstack(np.array([[1, 2], [3, 4]]), 1)
    (Array([1, 3], dtype=int32), Array([2, 4], dtype=int32))

    Raises:
      ValueError: when there is no such axis.
    """
    return tuple(unstack_p.bind(x, axis=canonical_axis(axis, np.ndim(x))))
