"""Order: sort of one or several arrays, top_k, and the index of an extremum.

Builds on `gather`, for derivatives.  Chapter 23, *An array is a function of an index*.
In JAX: `jax/_src/lax/lax.py`.
"""

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core import (Array, Avals, Axis, ForPrimitive, Outs, Primitive, ShapedArray, Zero,
                          cannot, dtype_name, has_key_dtype, refuse)
from minijax.primitives import (ad_util, algebra, comparison, dynamic_slice, families,
                                gather_scatter, reduce)
from minijax.primitives.axes import Axes, canonical_axis, replaced, without
from minijax.primitives.convert import bitcast_convert_type, converted
from minijax.primitives.examples import grid, reducible, table
from minijax.primitives.shape import broadcasted_iota, expand_dims
from minijax.primitives.slots import (LEFT_TO_NUMPY, NOT_DIFFERENTIABLE, ORDERED, check_dtypes,
                                      falling_bits, in_numpy, layout, numpy_scalars)


def _sort_type(*avals: ShapedArray, dimension: int, is_stable: bool, num_keys: int) -> Avals:
    refuse((any(aval.shape != avals[0].shape for aval in avals), "Arguments to sort must have "
            f"equal shapes, got: {' '.join(str(aval.shape) for aval in avals)}"),
           *((has_key_dtype(aval), f"sort does not accept dtype {dtype_name(aval.dtype)}: keys "
              "have no order. Sort the words of one, jax.random.key_data(keys)[:, 0].")
             for aval in avals[:num_keys]))
    return list(avals)


# ── The meaning ──────────────────────────────────────────────────────────────────────────────

def _keys(x: np.ndarray) -> list[np.ndarray]:
    """Keys that NumPy sorts as XLA does: nan last, zeros equal, complex numbers by their parts."""
    if x.dtype.kind == "c":
        return [np.ascontiguousarray(x.real), np.ascontiguousarray(x.imag)]
    return [x.astype(dtypes.computed_in(x.dtype), copy=False)]


def _sort_impl(*xs: np.ndarray, dimension: int, is_stable: bool, num_keys: int) -> list[np.ndarray]:
    if len(xs) == 1 and not dtypes.is_narrow(xs[0].dtype) and xs[0].dtype.kind != "c":
        return [np.sort(xs[0], dimension, kind="stable")]
    keys = [key for x in xs[:num_keys] for key in _keys(x)]
    order = np.lexsort(keys[::-1], dimension)
    return [np.take_along_axis(x, order, dimension) for x in xs]


# ── Derivative and batch ─────────────────────────────────────────────────────────────────────

def _sort_jvp(primals: list, tangents: list, *, dimension: int, is_stable: bool,
              num_keys: int) -> Outs:
    """The tangents are permuted as the elements are."""
    indices = broadcasted_iota(np.int32, primals[0].shape, dimension)
    *outs, order = sort_p.bind(*primals, indices, dimension=dimension, is_stable=is_stable,
                               num_keys=num_keys)
    return outs, [t if isinstance(t, Zero) else gather_scatter.take_along_axis(t, order, dimension)
                  for t in tangents]


_FLOATS = np.array([[2.0, np.nan, -0.0, 0.0], [-np.inf, 1.0, np.inf, 1.0]], np.float32)
_INTS = np.array([3, -1, 3, 2, 3, 0, -1], np.int32)

sort_p = Primitive(
    "sort", multiple_results=True,
    impl=_sort_impl, abstract_eval=_sort_type,
    jvp=_sort_jvp, transpose=cannot("the order depends on the values."),
    batch=ad_util.batch_in_front("dimension"), sharding=layout("sorting", words={
        "whole": "Arguments to sort must be unsharded over the sorting dimension. Got arg "
                 "sharding={sharding} and sorting dimension={axis}"}),
    loop=families.kernel("sort"), can_fuse_operands=True,
    examples=table(
        "dimension is_stable num_keys", (_FLOATS, 1, True, 1), (_FLOATS, 0, True, 1),
        (_INTS, grid(7), 0, True, 1), (_INTS % 3, np.flip(_INTS), grid(7), 0, True, 2),
        (grid(0, 2), 0, True, 1), (grid(2, 1, dtype=np.uint8), 1, True, 1),
        (np.array([True, False, True]), 0, True, 1)))


# ── The largest ──────────────────────────────────────────────────────────────────────────────

def _top_k_impl(x: np.ndarray, k: int, axis: int) -> list[np.ndarray]:
    """All elements above the k-th largest, then as many of those equal to it as fit."""
    x = np.moveaxis(x, axis, -1)
    indices = np.zeros((*x.shape[:-1], k), np.int32)
    if indices.size:
        keys = falling_bits(numpy_scalars(), x)
        last = np.partition(keys, k - 1)[..., k - 1:k]
        above, equal = keys < last, keys == last
        room = k - np.count_nonzero(above, -1, keepdims=True)
        taken = np.nonzero(above | equal & (np.cumsum(equal, -1) <= room))[-1]
        indices[...] = taken.reshape(indices.shape)
        order = np.argsort(np.take_along_axis(keys, indices, -1), kind="stable")
        indices = np.take_along_axis(indices, order, -1)
    return [np.moveaxis(out, -1, axis) for out in (np.take_along_axis(x, indices, -1), indices)]


def _selection_jvp(axis_name: str) -> ForPrimitive:
    """The tangents of the elements at the indices along the axis in that parameter."""
    @ForPrimitive
    def jvp(p: Primitive, primals: list, tangents: list, **params: Any) -> Outs:
        values, indices = p.bind(*primals, **params)
        axis = canonical_axis(params[axis_name], values.ndim)
        return [values, indices], [gather_scatter.take_along_axis(tangents[0], indices, axis),
                                   Zero(indices.aval.to_tangent_aval())]
    return jvp


top_k_p = Primitive(
    "top_k", multiple_results=True, impl=_top_k_impl,
    abstract_eval=lambda x, k, axis: [
        x.update(shape=replaced(x.shape, axis, k), dtype=dtype)
        for dtype in (x.dtype, np.dtype(np.int32))],
    jvp=_selection_jvp("axis"), transpose=cannot("the order depends on the values."),
    batch=ad_util.batch_along("axis"), sharding=layout("along", name="axis", words={
        "whole": "The input should be unsharded over the axis along which to compute the top_k "
                 "values. Got input type={type} and axis={axis}"}),
    loop=families.kernel("top_k"), complex_loop=LEFT_TO_NUMPY,
    examples=table(
        "k axis", (_FLOATS, 2, 1), (_FLOATS, 1, 0), (_INTS, 7, 0), (grid(3, 0), 1, 0),
        (grid(3, 0), 0, 1), (np.tile(_FLOATS, 40), 3, 1), (grid(2, 3, dtype=np.uint8), 0, 1),
        (np.array([True, False, True]), 3, 0)))


# ── What users call ──────────────────────────────────────────────────────────────────────────

def sort(operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Any:
    """The operand in ascending order along an axis; nan comes last.

    Args:
      operand: an array; or a sequence of arrays of one shape, reordered together.
      dimension: the axis.
      is_stable: whether equal elements keep their order; here they always do.
      num_keys: how many of the arrays, from the first on, decide the order.

    Returns:
      An array, or a tuple of arrays.

    >>> import numpy as np
    >>> sort((np.array([3, 1, 2]), np.array([7, 8, 9])))
    (Array([1, 2, 3], dtype=int32), Array([8, 9, 7], dtype=int32))

    Raises:
      ValueError: when there are not that many keys.
    """
    operands = tuple(operand) if isinstance(operand, Sequence) else (operand,)
    if len(operands) == 0:
        raise TypeError("Sort requires at least one operand")
    if not isinstance(operand, Sequence) and num_keys != 1:
        raise ValueError(f"{num_keys=} must equal 1 for a single operand.")
    if not 1 <= num_keys <= len(operands):
        raise ValueError(f"{num_keys=} must be between 1 and len(operand)={len(operands)}")
    outs = sort_p.bind(*operands, dimension=canonical_axis(dimension, np.ndim(operands[0])),
                       is_stable=is_stable, num_keys=num_keys)
    return tuple(outs) if isinstance(operand, Sequence) else outs[0]


def sort_key_val(keys: Any, values: Any, dimension: int = -1,
                 is_stable: bool = True) -> tuple[Array, Array]:
    """The keys in ascending order, and the values permuted with them.

    >>> import numpy as np
    >>> sort_key_val(np.array([2, 1]), np.array([5, 6]))
    (Array([1, 2], dtype=int32), Array([6, 5], dtype=int32))
    """
    return sort((keys, values), dimension, is_stable)


def top_k(operand: Any, k: int, *, axis: int = -1) -> list[Array]:
    """The `k` largest elements along an axis, largest first, and their indices.

    Of equal elements the earlier comes first; +0 is larger than -0, and nan is the largest, or the
    smallest if its sign is set.

    >>> import numpy as np
    >>> top_k(np.array([3, 1, 4, 1, 5]), 2)
    [Array([5, 4], dtype=int32), Array([4, 2], dtype=int32)]

    Raises:
      ValueError: when there are fewer than `k`, or `k` is negative.
    """
    k, shape = operator.index(k), list(np.shape(operand))
    if k < 0:
        raise ValueError(f"k argument to top_k must be nonnegative, got {k}")
    axis = canonical_axis(axis, len(shape))
    refuse((dtypes.issubdtype(dtypes.dtype(operand), np.complexfloating),
            "top_k is not compatible with complex inputs."),
           (shape[axis] < k, "k argument to top_k must be no larger than size along axis; got "
                             f"{k=} with {shape=} and {axis=}"),
           (shape[axis] > 2 ** 31, "top_k returns int32 indices, which will overflow for array "
            f"dimensions larger than the maximum int32 ({2 ** 31 - 1}). Got operand.shape="
            f"{tuple(shape)}; take the largest of each part first."), error=ValueError)
    return top_k_p.bind(operand, k=k, axis=axis)


# ── The index of the extremum ────────────────────────────────────────────────────────────────

LONG_ROW, MAX_BLOCK = 1 << 21, 1 << 13  # elements


def _arg_reduction(name: str, extremum_p: Primitive, relation: str) -> Primitive:
    """A primitive that gives the first index of the extremum, or of nan."""
    def abstract_eval(x: ShapedArray, *, axes: Axes, index_dtype: Any) -> list[ShapedArray]:
        [axis] = axes
        if not 0 <= axis < x.ndim:
            raise ValueError(f"Invalid axis {axis} for operand shape {x.shape}")
        if x.shape[axis] < 1:
            raise ValueError("argmin and argmax require non-empty reduced dimension. "
                             f"operand.shape={x.shape} axis={axis}")
        if not dtypes.issubdtype(index_dtype, np.integer):
            raise TypeError("index_dtype must be an integer type, but got "
                            f"{dtype_name(index_dtype)}")
        check_dtypes(relation, [x, x], [ORDERED, ORDERED])
        return [ShapedArray(without(x.shape, axes), index_dtype)]

    def program(x: Array, axes: Axes, index_dtype: Any) -> Array:
        """A single long row is read once: the extrema of its blocks lead to the block."""
        n = x.shape[axes[0]]
        # A divisor of n for its blocks; n itself where there is none.
        size = next((k for k in range(MAX_BLOCK, MAX_BLOCK // 8, -1) if n % k == 0), n)
        if not x.size == n >= LONG_ROW or size == n:
            return converted(first_index(x, axes), index_dtype)
        blocks = ad_util.reshaped(x, (n // size, size))
        block = first_index(extremum_p.bind(blocks, axes=(1,)), (0,))
        start = algebra.mul(block, np.int32(size))
        row = dynamic_slice.dynamic_slice_in_dim(ad_util.reshaped(x, (n,)), start, size)
        index = algebra.add(start, first_index(row, (0,)))
        return converted(ad_util.reshaped(index, without(x.shape, axes)), index_dtype)

    def first_index(x: Array, axes: Axes) -> Array:
        """Reduce to the extremum, then to its first index."""
        # JAX: counts in 64 bits where an axis needs them.
        indices = broadcasted_iota(np.int32, x.shape, *axes)
        extremum = expand_dims(extremum_p.bind(x, axes=axes), axes)
        attained = comparison.bitwise_or(comparison.eq(x, extremum), comparison.ne(x, x))  # or nan
        last = ad_util.filled(x.shape[axes[0]] - 1, indices)
        return reduce.reduce_min(comparison.select(attained, indices, last), axes)

    return Primitive(
        name,
        impl=in_numpy(lambda x, axes, index_dtype: getattr(np, name)(
            x, axes[0]).astype(index_dtype)),
        abstract_eval=abstract_eval,
        jvp=families.constant_in_all, transpose=NOT_DIFFERENTIABLE,
        batch=ad_util.batch_along("axes", removed=True),
        sharding=layout("along", name="axes", removed=True),
        program=program,
        examples=reducible(ORDERED, lambda rank: [
            {"axes": (d,), "index_dtype": np.dtype(np.int32)} for d in range(rank)]))


argmax_p = _arg_reduction("argmax", reduce.reduce_max_p, "gt")
argmin_p = _arg_reduction("argmin", reduce.reduce_min_p, "lt")


def argmax(operand: Any, axis: int, index_dtype: Any) -> Any:
    """The index of the maximum along an axis: the first one, or the first nan's.

    >>> import numpy as np
    >>> argmax(np.array([1., 3., 3.]), 0, "int32")
    Array(1, dtype=int32)
    """
    dtype = dtypes.check_user_dtype_supported(index_dtype, "argmax")
    return argmax_p.bind(operand, axes=(axis,), index_dtype=dtype)


def argmin(operand: Any, axis: int, index_dtype: Any) -> Any:
    """The index of the minimum along an axis: the first one, or the first nan's.

    >>> import numpy as np
    >>> argmin(np.array([3., 1., 1.]), 0, "int32")
    Array(1, dtype=int32)
    """
    dtype = dtypes.check_user_dtype_supported(index_dtype, "argmin")
    return argmin_p.bind(operand, axes=(axis,), index_dtype=dtype)


# ── top_k that may be approximate on accelerators ────────────────────────────────────────────

def _approx_type(x: ShapedArray, *, k: int, reduction_dimension: int, recall_target: float,
                 reduction_input_size_override: int, aggregate_to_topk: bool, is_max_k: bool
                 ) -> list[ShapedArray]:
    axis = canonical_axis(reduction_dimension, x.ndim)
    refuse((k <= 0, f"k must be positive, got {k}"),
           (not dtypes.issubdtype(x.dtype, np.floating), "operand must be a floating type"),
           (x.shape[axis] < k,
            f"k must be smaller than the size of reduction_dim {x.shape[axis]}, got {k}"),
           (not 0 < recall_target < 1,
            f"recall_target must lie between 0 and 1, got {recall_target}"), error=ValueError)
    size = k if aggregate_to_topk else _candidates(
        x.shape[axis], x.ndim, k, recall_target, reduction_input_size_override)
    return [x.update(shape=replaced(x.shape, axis, size), dtype=dtype)
            for dtype in (x.dtype, np.dtype(np.int32))]


def _approx_program(x: Array, **params: Any) -> list[Array]:
    [aval, _] = _approx_type(x.aval, **params)
    axis = canonical_axis(params["reduction_dimension"], x.ndim)
    if params["is_max_k"]:
        return top_k(x, aval.shape[axis], axis=axis)
    # As integers, in the opposite order: processors differ in the sign of -nan, which counts there.
    wide = converted(x, np.dtype(np.float32)) if x.dtype.itemsize == 1 else x
    keys = _in_order(bitcast_convert_type(wide, np.dtype(f"i{wide.dtype.itemsize}")))
    keys, indices = top_k(comparison.bitwise_not(keys), aval.shape[axis], axis=axis)
    values = bitcast_convert_type(_in_order(comparison.bitwise_not(keys)), wide.dtype)
    return [converted(values, x.dtype), indices]


def _in_order(bits: Array) -> Array:
    """The bits of floats as integers in their order, and the other way round."""
    signs: Any = bits >> 8 * bits.dtype.itemsize - 1
    return bits ^ (signs & np.iinfo(bits.dtype).max)


def _approx_batch(_: Axis, args: list, dims: list, **params: Any) -> Outs:
    [x], [dim] = args, dims
    axis = canonical_axis(params["reduction_dimension"], x.ndim - 1)
    shifted = params | {"reduction_dimension": ad_util.batched_axes((axis,), dim)[0]}
    return approx_top_k_p.bind(x, **shifted), [dim, dim]


approx_top_k_p = Primitive(
    "approx_top_k", multiple_results=True, impl=families.by_program(_approx_program),
    program=_approx_program,
    abstract_eval=_approx_type,
    jvp=_selection_jvp("reduction_dimension"), transpose=cannot("the order depends on the values."),
    batch=_approx_batch, sharding=layout("along", name="reduction_dimension"),
    examples=table(
        "k reduction_dimension recall_target is_max_k reduction_input_size_override "
        "aggregate_to_topk", (_FLOATS, 2, 1, .95, True, -1, True),
        (_FLOATS, 1, 0, .95, False, -1, True), (np.tile(_FLOATS, 70), 3, -1, .5, True, -1, False)))


def approx_max_k(operand: Any, k: int, reduction_dimension: int = -1, recall_target: float = .95,
                 reduction_input_size_override: int = -1, aggregate_to_topk: bool = True
                 ) -> list[Array]:
    """The `k` largest elements along an axis, largest first, and their indices.

    On accelerators JAX may miss some; on the CPU it returns all, and so does minijax.

    Args:
      operand: an array of a floating dtype.
      recall_target: the fraction of the `k` largest that the result must contain.
      reduction_input_size_override: the size of the axis that the target refers to.
      aggregate_to_topk: whether to return `k` elements, or all candidates of JAX's search.

    >>> import numpy as np
    >>> approx_max_k(np.array([3., 1., 4.]), 2)
    [Array([4., 3.], dtype=float32), Array([2, 0], dtype=int32)]

    Raises:
      ValueError: when `k` is not positive, or larger than the axis; for other dtypes.

    Source: Chern et al., *TPU-KNN: K Nearest Neighbor Search at Peak FLOP/s* (2022).
    """
    return approx_top_k_p.bind(
        operand, k=k, reduction_dimension=reduction_dimension, recall_target=recall_target,
        is_max_k=True, reduction_input_size_override=reduction_input_size_override,
        aggregate_to_topk=aggregate_to_topk)


def approx_min_k(operand: Any, k: int, reduction_dimension: int = -1, recall_target: float = .95,
                 reduction_input_size_override: int = -1, aggregate_to_topk: bool = True
                 ) -> list[Array]:
    """The `k` smallest elements along an axis, smallest first; the rest as in `approx_max_k`.

    >>> import numpy as np
    >>> approx_min_k(np.array([3., 1., 4.]), 2)
    [Array([1., 3.], dtype=float32), Array([1, 0], dtype=int32)]
    """
    return approx_top_k_p.bind(
        operand, k=k, reduction_dimension=reduction_dimension, recall_target=recall_target,
        is_max_k=False, reduction_input_size_override=reduction_input_size_override,
        aggregate_to_topk=aggregate_to_topk)


def _candidates(size: int, rank: int, k: int, recall_target: float, override: int) -> int:
    """The number of candidates that the paper's search keeps of `size` elements."""
    tile = 1024 if rank == 1 else 128
    whole = size if override < 0 else override
    if size <= tile:
        return size
    tiles = -(-size // tile)
    halvings = (tiles - 1).bit_length()
    if k > 1:
        least = min(max(int((1 - k) / math.log(recall_target)), tile), whole)
        halvings = min(halvings, (whole // least).bit_length() - 1)
    return -(-tiles // 2 ** halvings) * tile if halvings else size
