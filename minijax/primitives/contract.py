"""Products of arrays: sums over paired axes, with batch axes carried along.

Stands on `families`.  Chapter 24, *Loops and Numba*, shows where a library takes over.
In JAX: `jax/_src/lax/lax.py` (`dot_general`).
"""

from __future__ import annotations

import enum
import math
import operator
from typing import Any

import numpy as np

from minijax import config, dtypes
from minijax.core import Array, Axis, Example, Primitive, ShapedArray, Undefined, dtype_name
from minijax.primitives import convert, emitted, families, kernels, summation
from minijax.primitives.axes import Axes, above, inverse, without
from minijax.primitives.slots import all_weak, computed_in, real_dtype
from minijax.primitives.summation import LONG

Dimensions = tuple[tuple[Axes, Axes], tuple[Axes, Axes]]  # (contracted), (batch); left, right


class Precision(enum.Enum):
    """How exactly products are computed; float32 is always exact to float32 here."""

    # JAX: lower precisions are faster on accelerators.
    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    __str__ = __repr__


_NAMES = {"highest": Precision.HIGHEST, "float32": Precision.HIGHEST, "high": Precision.HIGH,
          "bfloat16_3x": Precision.HIGH, "tensorfloat32": Precision.HIGH,
          "default": Precision.DEFAULT, "bfloat16": Precision.DEFAULT,
          "fastest": Precision.DEFAULT, None: Precision.DEFAULT}


def canonical_precision(precision: Any) -> tuple[Precision, Precision] | None:
    """A precision as a pair for the two operands, or None.

    Raises:
      ValueError: for what is none.

    >>> canonical_precision("highest")
    (Precision.HIGHEST, Precision.HIGHEST)
    """
    if precision is None:
        precision = config.default_matmul_precision.value
        if precision is None:
            return None
    pair = precision if isinstance(precision, (tuple, list)) else (precision, precision)
    named = [_NAMES.get(p) if isinstance(p, str) else p for p in pair]
    known = [p for p in named if isinstance(p, Precision)]
    if len(known) == len(named) == 2:
        return known[0], known[1]
    raise ValueError("Precision argument must be one of:\n- None,\n"
                     f"- a string in {list(_NAMES)},\n- a lax.Precision value,\n"
                     "- a tuple of two lax.Precision values or strings,\n"
                     "- a lax.DotAlgorithmPreset or the name of one of these presets, or\n"
                     f"- a lax.DotAlgorithm value;\nbut got {precision}.")


# ── The type ─────────────────────────────────────────────────────────────────────────────────

def free_axes(rank: int, contract: Axes, batch: Axes) -> Axes:
    return without(range(rank), contract + batch)


def _check_axes(lhs: ShapedArray, rhs: ShapedArray, dimension_numbers: Dimensions) -> None:
    names = "lhs", "rhs"
    sides = list(zip(names, (lhs, rhs), *dimension_numbers, strict=True))
    contract, batch = dimension_numbers
    for side, x, contracting, batched in sides:
        if not all(0 <= d < x.ndim for d in contracting + batched):
            raise TypeError(
                f"dot_general requires {side} dimension numbers to be nonnegative and less than "
                f"the number of axes of the {side} value, got {side}_batch of {batched} and "
                f"{side}_contracting of {contracting} for {side} of rank {x.ndim}")
    if len(batch[0]) != len(batch[1]):
        raise TypeError("dot_general requires equal numbers of lhs_batch and rhs_batch "
                        f"dimensions, got lhs_batch {batch[0]} and rhs_batch {batch[1]}.")
    for kind, pair in (("batch", batch), ("contracting", contract)):
        for side, axes in zip(names, pair, strict=True):
            if len(set(axes)) != len(axes):
                raise TypeError(f"dot_general requires {side} {kind} dimensions to be distinct, "
                                f"got {side}_{kind} {axes}.")
    for side, _, contracting, batched in sides:
        if set(contracting) & set(batched):
            raise TypeError(f"dot_general requires {side} batch dimensions to be disjoint from "
                            f"contracting dimensions, got {side}_batch {batched} and "
                            f"{side}_contracting {contracting}.")
    for kind, pair in (("lhs batch dimensions and rhs batch", batch), ("contracting", contract)):
        left, right = (tuple(x.shape[d] for d in axes)
                       for x, axes in zip((lhs, rhs), pair, strict=True))
        if left != right:
            raise TypeError(f"dot_general requires {kind} dimensions to have the same shape, "
                            f"got {left} and {right}.")


def _rank_of_dtype(dtype: Any) -> tuple:
    """What decides which of two dtypes a product has."""
    real = real_dtype(dtype)
    floating = dtypes.issubdtype(real, np.floating)
    info = dtypes.finfo(real) if floating else None
    return (dtype.kind == "c", info.maxexp if info else -1, info.nmant if info else -1,
            dtypes.itemsize_bits(real), not dtypes.issubdtype(real, np.unsignedinteger))


def _dot_dtype(x: Any, y: Any, preferred: Any) -> Any:
    left, right = _rank_of_dtype(x), _rank_of_dtype(y)
    if left == right and x != y:
        raise TypeError("lax.dot_general argument type error: "
                        f"{dtype_name(x)}, {dtype_name(y)}")
    dtype = x if left >= right else y
    if preferred is None or preferred == dtype:
        return dtype
    if (not dtypes.issubdtype(dtype, np.floating)
            and dtypes.itemsize_bits(preferred) < dtypes.itemsize_bits(dtype)):
        raise TypeError("`preferred_element_type` must not be narrower than the original type, "
                        f"got preferred_element_type of {dtype_name(preferred)} for result type "
                        f"of {dtype_name(dtype)}.")
    return preferred


def _dot_type(lhs: ShapedArray, rhs: ShapedArray, *, dimension_numbers: Dimensions,
              precision: Any, preferred_element_type: Any) -> list[ShapedArray]:
    _check_axes(lhs, rhs, dimension_numbers)
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    shape = (tuple(lhs.shape[d] for d in lhs_batch)
             + without(lhs.shape, lhs_contract + lhs_batch)
             + without(rhs.shape, rhs_contract + rhs_batch))
    dtype = _dot_dtype(lhs.dtype, rhs.dtype, preferred_element_type)
    return [ShapedArray(shape, dtype, all_weak([lhs, rhs]))]


# ── The meaning ──────────────────────────────────────────────────────────────────────────────

def _dot_impl(lhs: np.ndarray, rhs: np.ndarray, dimension_numbers: Dimensions, precision: Any,
              preferred_element_type: Any) -> list[np.ndarray]:
    contract, batch = dimension_numbers
    free = [free_axes(x.ndim, *axes)
            for x, *axes in zip((lhs, rhs), contract, batch, strict=True)]
    out = _dot_dtype(lhs.dtype, rhs.dtype, preferred_element_type)
    x = lhs.transpose(batch[0] + free[0] + contract[0]).astype(computed_in(out))
    y = rhs.transpose(batch[1] + contract[1] + free[1]).astype(computed_in(out))
    start, stop = len(batch[0]), len(batch[0]) + len(contract[0])
    stack, summed, columns = y.shape[:start], math.prod(y.shape[start:stop]), y.shape[stop:]
    rows = x.shape[start:start + len(free[0])]
    product = _matrix_product(x.reshape(*stack, math.prod(rows), summed),
                              y.reshape(*stack, summed, math.prod(columns)))
    return [product.reshape(stack + rows + columns).astype(out)]


def _matrix_product(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Of stacks of matrices; in parts where those take no more room: BLAS adds up in a row."""
    *outer, rows, n = x.shape
    columns = y.shape[-1]
    if n <= LONG or rows * columns > LONG * (rows + columns) or x.dtype.kind not in "fc":
        return np.matmul(x, y)
    whole = n - n % LONG
    parts = np.matmul(x[..., :whole].reshape(*outer, rows, -1, LONG).swapaxes(-2, -3),
                      y[..., :whole, :].reshape(*outer, -1, LONG, columns))
    return summation.total(parts, (len(outer),)) + np.matmul(x[..., whole:], y[..., whole:, :])


# ── Derivatives ──────────────────────────────────────────────────────────────────────────────

def _cotangent(ct: Array, x: Undefined, y: Array, x_is_right: bool, *,
               dimension_numbers: Dimensions, **params: Any) -> Array:
    """Of the unknown side: the product of ct with the other, over the other's free axes."""
    (x_contract, y_contract), (x_batch, y_batch) = (
        pair[::-1] if x_is_right else pair for pair in dimension_numbers)
    x_free = free_axes(x.aval.ndim, x_contract, x_batch)
    y_free = free_axes(y.ndim, y_contract, y_batch)
    ct_batch = tuple(range(len(x_batch)))
    start = len(x_batch) + (0 if x_is_right else len(x_free))
    ct_y = tuple(range(start, start + len(y_free)))
    product = dot_general_p.bind(ct, y, **params,
                                 dimension_numbers=((ct_y, y_free), (ct_batch, y_batch)))
    # Its axes are now: batch, free in x, and the contracted ones in the order y has them.
    by_y = [x_contract[i] for i in sorted(range(len(y_contract)), key=y_contract.__getitem__)]
    order = inverse((*x_batch, *x_free, *by_y))
    if order != tuple(range(len(order))):
        product = emitted.transpose_p.bind(product, permutation=order)
    return convert.converted(product, x.aval.dtype, product.weak_type)


# ── Batching ─────────────────────────────────────────────────────────────────────────────────

def _dot_batch(axis: Axis, args: list, dims: list, *, dimension_numbers: Dimensions,
               **params: Any) -> tuple[list, list]:
    contract, batch = ([axes if d is None else above(axes, d)
                        for axes, d in zip(pair, dims, strict=True)] for pair in dimension_numbers)
    if None not in dims:  # one more batch axis, the first
        batch, out_dim = [(d, *axes) for d, axes in zip(dims, batch, strict=True)], 0
    else:  # a free axis of one side
        free = [free_axes(x.ndim, *axes)
                for x, *axes in zip(args, contract, batch, strict=True)]
        at = free[0].index(dims[0]) if dims[1] is None else len(free[0]) + free[1].index(dims[1])
        out_dim = len(batch[0]) + at
    numbers = tuple(contract), tuple(batch)
    return [dot_general_p.bind(*args, dimension_numbers=numbers, **params)], [out_dim]


# ── The primitive and its functions ──────────────────────────────────────────────────────────

def _dot_examples() -> list[Example]:
    def case(x: Any, y: Any, contract: tuple, batch: tuple = ((), ()), preferred: Any = None
             ) -> Example:
        return Example((x, y), {"dimension_numbers": (contract, batch), "precision": None,
                                "preferred_element_type": preferred})
    x = np.array([[1, -2, .5], [3, .25, -1]], np.float32)
    y = np.array([[2, 1, 0, -1], [.5, 3, -2, 1], [1, 1, 4, 2]], np.float32)
    stack = np.stack([x, 2 * x])
    large = np.linspace(-1, 1, 144, dtype=np.float32).reshape(12, 12)
    last_first, first_first, nothing = ((1,), (0,)), ((0,), (0,)), ((), ())
    both: list[tuple] = [
        (x, y, last_first), (y, x, ((0,), (1,))), (x, x, ((0, 1), (0, 1))),
        (x, x.T, ((0, 1), (1, 0))), (stack, stack.transpose(1, 2, 0), ((2,), (1,)), ((0,), (2,)))]
    found = [case(left.astype(d), right.astype(d), *axes)
             for d in (np.float32, np.float64) for left, right, *axes in both]
    found += [case(x.astype(d), y.astype(d), last_first)
              for d in (np.float16, dtypes.bfloat16, np.int32, bool)]
    found += [case((100 * x).astype(np.int8), (100 * y).astype(np.int8), last_first,
                   preferred=np.dtype(p)) for p in (np.int8, np.int32)]
    short, whole = large.astype(dtypes.bfloat16), (100 * large).astype(np.int32)
    found += [case(left, right, last_first) for left, right in (
        (large, large), (whole, whole), (short, large), (short, short),
        (np.zeros((2, 0), np.float32), np.zeros((0, 3), np.float32)))]
    found += [case(left, right, first_first) for left, right in (
        (x[0], x[1]), (large, large), (large[0].repeat(20), large[:, :4].repeat(20, 0)),
        (large.repeat(5, 1), large[0]))]
    return [*found, case(x[0], x[1], nothing), case(np.float32(2), np.float32(3), nothing),
            case(stack, y, ((2,), (0,))), case(stack, stack, ((2,), (2,)), first_first),
            case(np.stack([large, -large]), np.stack([large, large]), ((1,), (2,)), first_first)]


dot_general_p = Primitive(
    "dot_general",
    impl=_dot_impl,
    abstract_eval=_dot_type,
    jvp=families.per_argument(lambda t, out, x, y, **params: dot_general_p.bind(t, y, **params),
                              lambda t, out, x, y, **params: dot_general_p.bind(x, t, **params)),
    transpose=emitted.transposed(lambda ct, x, y, **params: _cotangent(ct, x, y, False, **params),
                                 lambda ct, x, y, **params: _cotangent(ct, y, x, True, **params)),
    batch=_dot_batch,
    library=kernels.kernel("dot_general"),
    examples=_dot_examples)


def dot_general(lhs: Any, rhs: Any, dimension_numbers: Any, precision: Any = None,
                preferred_element_type: Any = None, *, out_sharding: Any = None) -> Any:
    """A product of arrays, summed over pairs of axes, one of each side.

    Args:
      lhs, rhs: arrays.
      dimension_numbers: ``((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))``, each a
        sequence of axes.  Batch axes are paired, and kept.
      precision: accepted for programs that set it; the CPU has one.
      preferred_element_type: the dtype to sum in and to return.

    Returns:
      An array whose axes are the batch, the remaining ones of lhs, and those of rhs.

    Raises:
      TypeError: where the axes do not fit.

    >>> import numpy as np
    >>> dot_general(np.ones((2, 3)), np.ones((3, 4)), (((1,), (0,)), ((), ()))).shape
    (2, 4)
    """
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    numbers = ((_axes(lhs_contract), _axes(rhs_contract)), (_axes(lhs_batch), _axes(rhs_batch)))
    dtype = dtypes.check_user_dtype_supported(preferred_element_type, "dot_general")
    return dot_general_p.bind(lhs, rhs, dimension_numbers=numbers, preferred_element_type=dtype,
                              precision=canonical_precision(precision))


def _axes(axes: Any) -> Axes:
    return tuple(operator.index(d) for d in (axes if np.ndim(axes) else (axes,)))


def dot(lhs: Any, rhs: Any, *, dimension_numbers: Any = None, precision: Any = None,
        preferred_element_type: Any = None, out_sharding: Any = None) -> Any:
    """The product of matrices or vectors, or, with `dimension_numbers`, what `dot_general` does.

    Raises:
      ValueError: for other ranks, and sizes that do not fit.

    >>> import numpy as np
    >>> dot(np.ones((2, 3)), np.ones(3))
    Array([3., 3.], dtype=float32)
    """
    if dimension_numbers is None:
        lhs_shape, rhs_shape = np.shape(lhs), np.shape(rhs)
        fits = {1, 2}.issuperset({len(lhs_shape), len(rhs_shape)})
        if not fits or lhs_shape[-1] != rhs_shape[0]:
            raise ValueError(
                "jax.lax.dot: dimension_numbers must be specified when not performing simple "
                "un-batched matrix-matrix, matrix-vector, or vector-vector products; got "
                f"lhs_shape={lhs_shape} rhs_shape={rhs_shape}")
        dimension_numbers = (((len(lhs_shape) - 1,), (0,)), ((), ()))
    return dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type)


def batch_matmul(lhs: Any, rhs: Any, precision: Any = None) -> Any:
    """The products of two stacks of matrices.

    Raises:
      ValueError: where the ranks differ or are below two.

    >>> import numpy as np
    >>> batch_matmul(np.ones((5, 2, 3)), np.ones((5, 3, 4))).shape
    (5, 2, 4)
    """
    ranks = np.ndim(lhs), np.ndim(rhs)
    for fits, must in ((min(ranks) > 1, "be at least 2D"), (len(set(ranks)) < 2, "have same ndim")):
        if not fits:
            raise ValueError(f"Arguments to batch_matmul must {must}, got {ranks[0]}, {ranks[1]}")
    batch = tuple(range(ranks[0] - 2))
    return dot_general(lhs, rhs, (((ranks[0] - 1,), (ranks[0] - 2,)), (batch, batch)), precision)
