"""The family of primitives that only move elements, and the checks of axes and shapes they share.

Stands on `core`.  Chapter 23, *An array is a function of an index*: each is a map of indices.
In JAX: `jax/_src/lax/lax.py` and `jax/_src/lax/utils.py`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import core
from minijax.core import Array, Axis, Example, Primitive, Zero

Dim = int | None
Index = tuple[Any, ...]
Shape = tuple[int, ...]


# ── The family: one array in, the same elements out ──────────────────────────────────────────

def rearrangement(name: str, *, impl: Callable[..., np.ndarray], shape: Callable[..., Shape],
                  transpose: Callable[..., Array], batch: Callable[..., tuple[Array, int]],
                  source: Callable[..., Index | Any],
                  examples: Callable[[], list[Example]]) -> Primitive:
    """A primitive that moves the elements of one array.

    Args:
      name: as a jaxpr prints it.
      impl: its meaning, one NumPy array to one.
      shape: ``(aval, **params)`` to the shape of the result; checks the parameters.
      transpose: ``(cotangent, aval of the argument, **params)`` to the argument's cotangent.
      batch: ``(array, batch dimension, size, **params)`` to an array and its batch dimension.
      source: ``(s, index, operand, **params)``: the operand's element shown at an index.
      examples: arguments inside its domain.
    """
    def jvp(primals: list, tangents: list, **params: Any) -> tuple[list, list]:
        out = primitive.bind(*primals, **params)
        return [out], [linear_tangent(primitive, out, tangents, params)]

    def transposed(cotangents: list, x: Any, **params: Any) -> list:
        [ct] = cotangents
        return [Zero(x.aval) if isinstance(ct, Zero) else transpose(ct, x.aval, **params)]

    def batched(axis: Axis, args: list, dims: list, **params: Any) -> tuple[list, list]:
        out, dim = batch(args[0], dims[0], axis.size, **params)
        return [out], [dim]

    primitive = Primitive(
        name,
        impl=lambda x, **params: [impl(x, **params)],
        abstract_eval=lambda x, **params: [x.update(shape=shape(x, **params))],
        jvp=jvp,
        transpose=transposed,
        batch=batched,
        element=source,
        examples=examples)
    return primitive


def linear_tangent(primitive: Primitive, out: Array, tangents: list, params: dict) -> Any:
    """The tangent of a function that is linear in all its arguments together."""
    from minijax.primitives.emitted import instantiate  # it stands on this module
    if all(isinstance(t, Zero) for t in tangents):
        return Zero(out.aval.to_tangent_aval())
    return primitive.bind(*map(instantiate, tangents), **params)


def check_sizes(fun: str, argument: str, sizes: Any) -> None:
    """Refuse what is not a sequence of non-negative integers.

    Raises:
      TypeError: naming the function and the argument.
    """
    if not isinstance(sizes, (tuple, list, np.ndarray)):
        raise TypeError(f"{fun} {argument} must be of type tuple/list/ndarray, "
                        f"got {type(sizes)}.")
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
    return axis % ndim if ndim else 0


def canonical_shape(shape: Any, context: str = "") -> Shape:
    """A shape as a tuple of ints.

    Raises:
      TypeError: for what is not a sequence of integers, traced values included.
    """
    if isinstance(shape, (int, np.integer)):
        shape = (shape,)
    try:
        return tuple(operator.index(n) for n in shape)
    except TypeError:
        pass
    hint = ""
    if any(isinstance(n, core.Tracer) for n in shape):
        hint = ("\nIf using `jit`, try using `static_argnums` or applying `jit` to smaller "
                "subfunctions.")
        hint += "".join(n._origin_msg() for n in shape if isinstance(n, core.Tracer))
    where = f" {context}" if context else ""
    raise TypeError("Shapes must be 1D sequences of concrete values of integer type, "
                    f"got {tuple(shape)}.{where}{hint}")


def as_dims(dims: Any) -> tuple[int, ...]:
    return tuple(operator.index(d) for d in dims)


def without(items: Sequence, places: Sequence[int]) -> tuple:
    dropped = set(places)
    return tuple(item for i, item in enumerate(items) if i not in dropped)


def with_item(items: Sequence, place: int, item: Any) -> tuple:
    return (*items[:place], item, *items[place:])


def above(dims: Sequence[int], batch_dim: int) -> tuple[int, ...]:
    """Axes of one example as axes of the batch."""
    return tuple(d + (d >= batch_dim) for d in dims)


def examples_of(*pairs: tuple[Any, dict]) -> Callable[[], list[Example]]:
    return lambda: [Example((x,), params) for x, params in pairs]


def grid(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    """Numbers that are all different, to be seen moving."""
    return (np.arange(np.prod(shape, dtype=int)).reshape(shape) - 2).astype(dtype)


def zero_index(s: Any) -> Any:
    return s.const(0, np.int64)
