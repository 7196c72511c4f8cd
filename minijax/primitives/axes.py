"""Axes, shapes and indices as tuples of numbers: checked, normalised, extended and reduced.

Builds on `core`; the arrays that have these axes come later, in `ad_util`.
In JAX: `jax/_src/lax/utils.py`, `jax/_src/util.py`.
"""

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.core import Tracer

Dim = int | None  # where a batch axis is; None: the same value for the whole batch
Index = tuple[Any, ...]
Shape = tuple[int, ...]
Axes = tuple[int, ...]
# Of a product: (contracted), (batch); left, right
DotDimensionNumbers = tuple[tuple[Axes, Axes], tuple[Axes, Axes]]
LARGEST = np.iinfo(np.int64).max


def check_sizes(fun: str, argument: str, sizes: Any) -> None:
    """Refuse sizes that are not non-negative integers.

    Raises:
      TypeError: naming the function and the argument.
    """
    try:
        numbers = [operator.index(n) for n in sizes]
    except TypeError:
        raise TypeError(f"{fun} {argument} must have every element be an integer type, "
                        f"got {tuple(map(type, sizes))}.") from None
    if any(n < 0 for n in numbers):
        raise TypeError(f"{fun} {argument} must have every element be nonnegative, got {sizes}.")


def canonical_axis(axis: Any, ndim: int) -> int:
    """An axis counted from the front.

    >>> canonical_axis(-1, 3)
    2

    Raises:
      ValueError: when there is no such axis.
    """
    axis = operator.index(axis)
    if not -ndim <= axis < ndim:
        raise ValueError(f"axis {axis} is out of bounds for array of dimension {ndim}")
    return axis % ndim


def canonical_shape(shape: Any, context: str = "") -> Shape:
    """A shape as a tuple of ints.

    Raises:
      TypeError: for what is not a sequence of integers, traced values included.
    """
    shape = (shape,) if isinstance(shape, (int, np.integer)) else shape
    try:
        return tuple(operator.index(n) for n in shape)
    except TypeError:
        pass
    tracers = [n for n in shape if isinstance(n, Tracer)]
    advice = ("\nIf using `jit`, try using `static_argnums` or applying `jit` to smaller "
              "subfunctions.")
    hint = advice + "".join(n._origin_msg() for n in tracers) if tracers else ""
    where = f" {context}" if context else ""
    shown = shape if isinstance(shape, (list, str)) else tuple(shape)
    raise TypeError("Shapes must be 1D sequences of concrete values of integer type, "
                    f"got {shown}.{where}{hint}")


def as_dims(dims: Any) -> tuple[int, ...]:
    return tuple(operator.index(d) for d in dims)


def dilate_dim(size: int, dilation: int) -> int:
    """The size of an axis whose elements are set `dilation` places apart."""
    return (size - 1) * dilation + 1 if size else 0


def without(items: Sequence, places: Sequence[int]) -> tuple:
    return tuple(item for i, item in enumerate(items) if i not in places)


def with_item(items: Sequence, place: int, item: Any) -> tuple:
    return (*items[:place], item, *items[place:])


def replaced(items: Sequence, place: int, item: Any) -> tuple:
    """The items with another one at a position, which may be negative."""
    out = list(items)
    out[place] = item
    return tuple(out)


def batched_axes(dims: Sequence[int], batch_dim: int) -> tuple[int, ...]:
    """Axes of one example as axes of the batch."""
    return tuple(d + (d >= batch_dim) for d in dims)


def inverse(permutation: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted(range(len(permutation)), key=permutation.__getitem__))


def expand_index(index: Sequence[Any], axes: Sequence[int], inner: Sequence[Any]) -> Index:
    """The operand's index from an index of the result and one along the removed axes."""
    outer, removed = iter(index), dict(zip(axes, inner, strict=True))
    return tuple(removed[d] if d in removed else next(outer) for d in range(len(index) + len(axes)))


def axis_names(dimension_numbers: DotDimensionNumbers, lhs_rank: int, rhs_rank: int
               ) -> tuple[Axes, Axes, Axes]:
    """Numbers for the axes of both operands and of their product; paired axes have the same."""
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    pairs = dict(zip(rhs_contract + rhs_batch, lhs_contract + lhs_batch, strict=True))
    lhs = tuple(range(lhs_rank))
    rhs = tuple(pairs.get(d, lhs_rank + d) for d in range(rhs_rank))
    free = (name for name in lhs + rhs if name not in lhs or name not in rhs)
    return lhs, rhs, (*lhs_batch, *free)


# ── Indices of any integer type ──────────────────────────────────────────────────────────────

def as_int64(s: Any, place: Any) -> Any:
    """An index of any integer type as `int64`; one that is too large stays out of bounds."""
    if place.dtype == np.uint64:
        place = s.min(place, s.const(LARGEST, np.uint64))
    return s.convert(place, np.int64)
