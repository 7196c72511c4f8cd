"""Windows at traced positions: dynamic_slice and dynamic_update_slice.

Builds on `gather`: batched windows are gathers and scatters.  Chapter 14, *Out-of-bounds indexing*.
In JAX: `jax/_src/lax/slicing.py`.
"""

import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import core, dtypes
from minijax.core import Array, Avals, Axis, Outs, Primitive, ShapedArray, refuse
from minijax.primitives import algebra, comparison, gather_scatter, joining, slots, windows
from minijax.primitives.axes import Dim, Shape, as_int64, canonical_shape, replaced, with_item
from minijax.primitives.ad_util import (batch_to, broadcast_at, each_part, linear, repeated,
                                        transposed, zeros)
from minijax.primitives.examples import grid, table
from minijax.primitives.shape import expand_dims, squeeze


# ── Where a window starts ────────────────────────────────────────────────────────────────────

# As in JAX, a window out of bounds is moved inside.

def _window(x: np.ndarray, starts: Sequence[np.ndarray], sizes: Shape) -> np.ndarray:
    """The view of the window in a NumPy array."""
    places = [min(max(int(i), 0), n - size)
              for i, n, size in zip(starts, x.shape, sizes, strict=True)]
    window: tuple = tuple(slice(i, i + n) for i, n in zip(places, sizes, strict=True))
    return x[window + (...,)]


def _emit_inside(s: Any, starts: Sequence[Any], shape: Shape, sizes: Shape) -> Callable:
    """A function from an index of the window to one of the operand."""
    places = [s.clamp(as_int64(s, i(())), 0, n - size)
              for i, n, size in zip(starts, shape, sizes, strict=True)]
    return lambda index: tuple(s.add(start, i) for start, i in zip(places, index, strict=True))


def check_starts(fun: str, starts: Avals, colon: str) -> None:
    """Refuse start indices that are not integer scalars of one type.

    Raises:
      TypeError: naming the function.
    """
    kinds = {i.dtype for i in starts}
    refuse(
        (any(i.ndim != 0 for i in starts),
         f"start_indices arguments to {fun} must be scalars, got indices {tuple(starts)}"),
        (len(kinds) > 1 or not all(dtypes.issubdtype(kind, np.integer) for kind in kinds),
         f"index arguments to {fun} must be integers of the same type, "
         f"got{colon} {', '.join(core.dtype_name(i.dtype) for i in starts)}"))


def canonical_starts(operand: Any, start_indices: Any, sizes: Shape,
                     allow_negative_indices: bool | Sequence[bool], kind: str) -> list[Array]:
    """One scalar per axis; negative ones count from the end of the axis.

    Args:
      sizes, kind: of the window, for the check of bounds.

    Raises:
      ValueError: when their number is not the number of axes.
    """
    shape = np.shape(operand)
    if len(start_indices) != len(shape):
        raise ValueError("Length of slice indices must match number of operand dimensions "
                         f"({len(start_indices)} vs {shape})")
    if not isinstance(start_indices, Sequence) and np.ndim(start_indices) != 1:
        raise ValueError(f"Slice indices must be a 1D sequence, got {np.shape(start_indices)}")
    if isinstance(allow_negative_indices, bool):
        allow_negative_indices = [allow_negative_indices] * len(shape)
    starts = [_canonical_start(i, n, wrap)
              for i, n, wrap in zip(start_indices, shape, allow_negative_indices, strict=True)]
    core.base_trace.notify("index", kind, shape,
                           zip(starts, itertools.count(), sizes, strict=False), normalized=True)
    return starts


def _canonical_start(i: Any, size: int, wrap: bool) -> Array:
    if isinstance(i, (int, np.integer)) and not isinstance(i, bool):
        if i < 0 and not wrap:
            raise ValueError(f"Index {i} is out of bounds for dimension {size} if "
                             "allow_negative_indices=False")
        return core.as_value(np.asarray(i + size if i < 0 else i, dtypes.dtype(i))[()])
    i = core.as_value(i)
    return wrapped(i, size) if wrap else i


def wrapped(i: Array, size: int) -> Array:
    """Indices with negative ones counted from the end."""
    if not dtypes.issubdtype(i.dtype, np.signedinteger):
        return i
    zero, count = (core.as_value(np.asarray(n).astype(i.dtype)[()]) for n in (0, size))
    is_negative = comparison.lt_p.bind(i, zero)
    return comparison.select_n_p.bind(is_negative, i, algebra.add_p.bind(i, count))


# ── dynamic_slice ────────────────────────────────────────────────────────────────────────────

def _dynamic_slice_type(x: ShapedArray, *starts: ShapedArray, slice_sizes: Shape) -> Avals:
    refuse(
        (any(map(operator.lt, x.shape, slice_sizes)), "slice slice_sizes must be less than or "
         f"equal to operand shape, got slice_sizes {slice_sizes} for operand shape {x.shape}."),
        (min(slice_sizes, default=0) < 0, "slice slice_sizes must be greater than or equal to "
         f"zero, got slice_sizes of {slice_sizes}."))
    check_starts("dynamic_slice", starts, ":")
    return [x.update(shape=slice_sizes)]


def one_window(numbers: type, rank: int) -> dict[str, Any]:
    """The parameters of a gather or scatter of one window an example, along all axes."""
    window = tuple(range(rank))
    return {"dimension_numbers": numbers(window, (), window), "unique_indices": True,
            "indices_are_sorted": True, "mode": windows.GatherScatterMode.CLIP}


def start_vectors(starts: Sequence[Array], dims: Sequence[Dim], axis: Axis) -> Array:
    """Scalar start indices, some of them batched, as one index vector for each example."""
    return joining.concatenate([broadcast_at(i, () if d is None else (0,), (axis.size, 1))
                                for i, d in zip(starts, dims, strict=True)], 1)


def _first_place(starts: Sequence[Any]) -> Array:
    """The start index zero, of the type the others have."""
    return repeated(0, starts[0].aval if starts else ShapedArray((), np.int32))


def _batch_dynamic_slice(axis: Axis, args: list, dims: list, slice_sizes: Shape) -> Outs:
    (x, *starts), (x_dim, *start_dims) = args, dims
    if all(d is None for d in start_dims):
        starts = list(with_item(starts, x_dim, _first_place(starts)))
        sizes = with_item(slice_sizes, x_dim, axis.size)
        return [dynamic_slice_p.bind(x, *starts, slice_sizes=sizes)], [x_dim]
    return gather_scatter.gather_p.rule("batch")(
        axis, [x, start_vectors(starts, start_dims, axis)], [x_dim, 0], slice_sizes=slice_sizes,
        fill_value=None, **one_window(windows.GatherDimensionNumbers, len(starts)))


dynamic_slice_p = Primitive(
    "dynamic_slice",
    impl=lambda x, *starts, slice_sizes: [_window(x, starts, slice_sizes)],
    abstract_eval=_dynamic_slice_type,
    jvp=linear(0),
    transpose=transposed(lambda ct, x, *starts, slice_sizes: dynamic_update_slice_p.bind(
        zeros(x.aval.strip_weak_type()), ct, *starts)),
    batch=_batch_dynamic_slice, sharding=slots.layout("dynamic_slice"), complex_parts=each_part,
    element=lambda s, index, x, *starts, slice_sizes: x(
        _emit_inside(s, starts, x.shape, slice_sizes)(index)),
    examples=table(
        "slice_sizes", (grid(5), np.int32(1), (3,)), (grid(5), np.int32(9), (2,)),
        (grid(4, 3), np.int32(-7), np.int32(1), (2, 2)), (grid(), ()),
        (grid(4), np.uint8(250), (1,)), (grid(2, 3), np.int32(0), np.int32(0), (0, 3))))


def dynamic_slice(operand: Any, start_indices: Any, slice_sizes: Sequence[int], *,
                  allow_negative_indices: bool | Sequence[bool] = True) -> Array:
    """A window of static size at a position that may be traced.

    A window out of bounds is moved inside.

    >>> import numpy as np
    >>> dynamic_slice(np.arange(5), (4,), (2,))
    Array([3, 4], dtype=int32)
    """
    sizes = canonical_shape(slice_sizes)
    starts = canonical_starts(operand, start_indices, sizes, allow_negative_indices, "window read")
    return dynamic_slice_p.bind(operand, *starts, slice_sizes=sizes)


def dynamic_slice_in_dim(operand: Any, start_index: Any, slice_size: int, axis: int = 0, *,
                         allow_negative_indices: bool = True) -> Array:
    """A window along one axis.

    >>> import numpy as np
    >>> dynamic_slice_in_dim(np.arange(5), 1, 2)
    Array([1, 2], dtype=int32)
    """
    starts, wrap = along(operand, start_index, axis, allow_negative_indices)
    sizes = replaced(np.shape(operand), operator.index(axis), operator.index(slice_size))
    return dynamic_slice(operand, starts, sizes, allow_negative_indices=wrap)


def along(operand: Any, start_index: Any, axis: int, allow_negative: bool) -> tuple[tuple, tuple]:
    """Start indices of a window along one axis, zero along the others; which may be negative."""
    ndim, axis = np.ndim(operand), operator.index(axis)
    zero = np.zeros((), dtypes.dtype(start_index))[()]
    return (replaced([zero] * ndim, axis, start_index),
            replaced([False] * ndim, axis, allow_negative))


def dynamic_index_in_dim(operand: Any, index: Any, axis: int = 0, keepdims: bool = True, *,
                         allow_negative_indices: bool = True) -> Array:
    """The element at one index along an axis, which may be traced.

    >>> import numpy as np
    >>> dynamic_index_in_dim(np.arange(5), 3, keepdims=False)
    Array(3, dtype=int32)
    """
    taken = dynamic_slice_in_dim(operand, index, 1, axis,
                                 allow_negative_indices=allow_negative_indices)
    return taken if keepdims else squeeze(taken, (axis,))


def with_batch_axis(x: Array, old: Dim, new: Dim, size: int) -> Array:
    """A batch with its axis at `new`; where that is None, all examples are the same."""
    if new is not None:
        return batch_to(x, old, new, size)
    return x if old is None else dynamic_index_in_dim(x, 0, old, keepdims=False)


# ── dynamic_update_slice ─────────────────────────────────────────────────────────────────────

def _update_type(x: ShapedArray, update: ShapedArray, *starts: ShapedArray) -> list[ShapedArray]:
    name = "dynamic_update_slice"
    refuse(
        (x.ndim != update.ndim, f"{name} update must have the same rank as operand, got update "
         f"shape {update.shape} for operand shape {x.shape}."),
        (any(map(operator.lt, x.shape, update.shape)), f"{name} update shape must be smaller than "
         f"operand shape, got update shape {update.shape} for operand shape {x.shape}."))
    slots.check_same_dtypes(name, x, update)
    check_starts(name, starts, "")
    return [x.update(weak_type=slots.all_weak([x, update, *starts]))]


def _update_impl(x: np.ndarray, update: np.ndarray, *starts: np.ndarray) -> list[np.ndarray]:
    out = np.array(x)
    _window(out, starts, update.shape)[...] = update
    return [out]


def _batch_update(axis: Axis, args: list, dims: list) -> Outs:
    (x, update, *starts), (x_dim, update_dim, *start_dims) = args, dims
    x, update = (batch_to(a, d, 0, axis.size) for a, d in ((x, x_dim), (update, update_dim)))
    if all(d is None for d in start_dims):
        return [dynamic_update_slice_p.bind(x, update, _first_place(starts), *starts)], [0]
    return gather_scatter.scatter_p.rule("batch")(
        axis, [x, start_vectors(starts, start_dims, axis), update], [0, 0, 0],
        **one_window(windows.ScatterDimensionNumbers, len(starts)))


def _update_loop(b: Any, outputs: list, operands: list) -> None:
    [out], (x, update, *starts) = outputs, operands
    b.materialize(x, into=out)
    place = _emit_inside(b, starts, out.shape, update.shape)
    with slots.nest(b, update.shape, "parallel") as index:
        b.store(out, place(index), update(index))


dynamic_update_slice_p = Primitive(
    "dynamic_update_slice", impl=_update_impl, abstract_eval=_update_type,
    jvp=linear(0, 1),
    transpose=transposed(
        lambda ct, x, update, *starts: dynamic_update_slice_p.bind(
            ct, zeros(update.aval.update(dtype=ct.dtype)), *starts),
        lambda ct, x, update, *starts: dynamic_slice_p.bind(
            ct, *starts, slice_sizes=update.aval.shape)),
    batch=_batch_update, sharding=slots.layout("dynamic_update_slice"), complex_parts=each_part,
    loop=_update_loop,
    can_fuse_operands=True,
    in_place=lambda k, /, **params: (0,),
    examples=table(
        "", (grid(5), grid(2) + 20, np.int32(1)), (grid(5), grid(2) + 20, np.int32(9)),
        (grid(4, 3), grid(2, 2) + 20, np.int32(-7), np.int32(1)), (grid(), grid() + 9),
        (grid(3, dtype=np.int32), grid(0, dtype=np.int32), np.uint8(250))))


def dynamic_update_slice(operand: Any, update: Any, start_indices: Any, *,
                         allow_negative_indices: bool | Sequence[bool] = True) -> Array:
    """The operand with a window replaced, at a position that may be traced.

    A window out of bounds is moved inside.

    >>> import numpy as np
    >>> dynamic_update_slice(np.arange(5), np.array([7, 8]), (9,))
    Array([0, 1, 2, 7, 8], dtype=int32)
    """
    return dynamic_update_slice_p.bind(operand, update, *canonical_starts(
        operand, start_indices, np.shape(update), allow_negative_indices, "window update"))


def dynamic_update_slice_in_dim(operand: Any, update: Any, start_index: Any, axis: int, *,
                                allow_negative_indices: bool = True) -> Array:
    """The operand with a window along one axis replaced.

    >>> import numpy as np
    >>> dynamic_update_slice_in_dim(np.arange(5), np.array([7, 8]), 1, 0)
    Array([0, 7, 8, 3, 4], dtype=int32)
    """
    starts, wrap = along(operand, start_index, axis, allow_negative_indices)
    return dynamic_update_slice(operand, update, starts, allow_negative_indices=wrap)


def dynamic_update_index_in_dim(operand: Any, update: Any, index: Any, axis: int, *,
                                allow_negative_indices: bool = True) -> Array:
    """The operand with the element at one index along an axis replaced.

    >>> import numpy as np
    >>> dynamic_update_index_in_dim(np.arange(4), 9, 2, 0)
    Array([0, 1, 9, 3], dtype=int32)
    """
    if np.ndim(update) != np.ndim(operand):
        update = expand_dims(update, (operator.index(axis),))
    return dynamic_update_slice_in_dim(operand, update, index, axis,
                                       allow_negative_indices=allow_negative_indices)
