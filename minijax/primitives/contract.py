"""Products of arrays: contractions over pairs of axes, with batch axes.

Builds on `families`.  Chapter 24, *Loops and Numba*, shows when a library computes them.
In JAX: `jax/_src/lax/lax.py` (`dot_general`, `ragged_dot_general`).
"""

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax import dtypes
from minijax.core import (Array, Axis, Example, Primitive, ShapedArray, Undefined, as_value,
                          dtype_name, refuse)
from minijax.primitives import ad_util, algebra, comparison, convert, examples, families, summation
from minijax.primitives.axes import (Axes, DotDimensionNumbers, as_dims, axis_names, batched_axes,
                                     without)
from minijax.primitives.precision import canonical_precision, rounds_factors
from minijax.primitives.reduce import cumsum
from minijax.primitives.shape import broadcasted_iota, transpose
from minijax.primitives.slots import Reduction, all_weak, computed_in, in_pairs, layout, real_dtype
from minijax.primitives.summation import LONG, WINDOW

ROW = 8  # elements that fill the vectors in which XLA multiplies rows

# ── The type ─────────────────────────────────────────────────────────────────────────────────

def _check_axes(lhs: ShapedArray, rhs: ShapedArray, dimension_numbers: DotDimensionNumbers) -> None:
    contract, batch = dimension_numbers
    for side, x, summed, batched in zip(("lhs", "rhs"), (lhs, rhs), contract, batch, strict=True):
        refuse((not all(0 <= d < x.ndim for d in summed + batched),
                f"dot_general requires {side} dimension numbers to be nonnegative and less than "
                f"the number of axes of the {side} value, got {side}_batch of {batched} and "
                f"{side}_contracting of {summed} for {side} of rank {x.ndim}"),
               *((len(set(axes)) != len(axes),
                  f"dot_general requires {side} {kind} dimensions to be distinct, "
                  f"got {side}_{kind} {axes}.")
                 for kind, axes in (("batch", batched), ("contracting", summed))),
               (not set(summed).isdisjoint(batched),
                f"dot_general requires {side} batch dimensions to be disjoint from contracting "
                f"dimensions, got {side}_batch {batched} and {side}_contracting {summed}."))
    refuse((len(batch[0]) != len(batch[1]), "dot_general requires equal numbers of lhs_batch and "
            f"rhs_batch dimensions, got lhs_batch {batch[0]} and rhs_batch {batch[1]}."))
    for kind, pair in (("lhs batch dimensions and rhs batch", batch), ("contracting", contract)):
        left, right = (tuple(x.shape[d] for d in axes)
                       for x, axes in zip((lhs, rhs), pair, strict=True))
        refuse((left != right, f"dot_general requires {kind} dimensions to have the same shape, "
                               f"got {left} and {right}."))


def _rank_of_dtype(dtype: Any) -> tuple:
    """The order in which the greater of two dtypes is that of their product."""
    real = real_dtype(dtype)
    info = dtypes.finfo(real) if dtypes.issubdtype(real, np.floating) else None
    return (dtype.kind == "c", *((info.maxexp, info.nmant) if info else (-1, -1)),
            dtype.kind != "b" and dtypes.itemsize_bits(real),
            not dtypes.issubdtype(real, np.unsignedinteger))


def _dot_dtype(x: Any, y: Any, preferred: Any) -> Any:
    if x != y and _rank_of_dtype(x) == _rank_of_dtype(y):
        raise TypeError(f"lax.dot_general argument type error: {dtype_name(x)}, {dtype_name(y)}")
    dtype = x if x == y else max(x, y, key=_rank_of_dtype)
    if preferred is None or preferred == dtype:
        return dtype
    if (not dtypes.issubdtype(dtype, np.floating)
            and dtypes.itemsize_bits(preferred) < dtypes.itemsize_bits(dtype)):
        raise TypeError("`preferred_element_type` must not be narrower than the original type, "
                        f"got preferred_element_type of {dtype_name(preferred)} for result type "
                        f"of {dtype_name(dtype)}.")
    return preferred


def _dot_type(lhs: ShapedArray, rhs: ShapedArray, *, dimension_numbers: DotDimensionNumbers,
              precision: Any, preferred_element_type: Any) -> list[ShapedArray]:
    _check_axes(lhs, rhs, dimension_numbers)
    left, right, names = axis_names(dimension_numbers, lhs.ndim, rhs.ndim)
    sizes = dict(zip(left + right, lhs.shape + rhs.shape, strict=True))
    dtype = _dot_dtype(lhs.dtype, rhs.dtype, preferred_element_type)
    return [ShapedArray(tuple(sizes[name] for name in names), dtype, all_weak([lhs, rhs]))]


# ── The meaning ──────────────────────────────────────────────────────────────────────────────

def _dot_impl(lhs: np.ndarray, rhs: np.ndarray, dimension_numbers: DotDimensionNumbers,
              precision: Any, preferred_element_type: Any) -> list[np.ndarray]:
    contract, batch = dimension_numbers
    free = [without(range(x.ndim), (*summed, *batched))
            for x, summed, batched in zip((lhs, rhs), contract, batch, strict=True)]
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
    """The product of stacks of matrices; BLAS adds up in one chain, so long sums go in parts."""
    *outer, rows, n = x.shape
    columns = y.shape[-1]
    if rows == columns == 1 and n > WINDOW and summation.has_order("add", x):
        return summation.in_order(np.add, x * y.swapaxes(-1, -2), (x.ndim - 1,))[..., None]
    if n <= LONG or rows * columns > LONG * (rows + columns) or x.dtype.kind not in "fc":
        return np.matmul(x, y)
    whole = n - n % LONG
    parts = np.matmul(x[..., :whole].reshape(*outer, rows, -1, LONG).swapaxes(-2, -3),
                      y[..., :whole, :].reshape(*outer, -1, LONG, columns))
    return summation.total(parts, (len(outer),)) + np.matmul(x[..., whole:], y[..., whole:, :])


# ── Lowering ─────────────────────────────────────────────────────────────────────────────────

def _dot_element(s: Any, index: tuple, x: Any, y: Any, dimension_numbers: DotDimensionNumbers,
                 preferred_element_type: Any = None, **_: Any) -> Reduction:
    """A sum of products; of bools a disjunction."""
    left, right, names = axis_names(dimension_numbers, x.ndim, y.ndim)
    dtype = _dot_dtype(x.dtype, y.dtype, preferred_element_type)
    wide, summed = computed_in(dtype), dimension_numbers[0][0]

    def term(*inner: Any) -> Any:
        at = dict(zip((*names, *summed), (*index, *inner), strict=True))
        return s.mul(*(s.convert(v(tuple(map(at.__getitem__, axes))), wide)
                       for v, axes in ((x, left), (y, right))))
    extents = tuple(x.shape[d] for d in summed)
    return Reduction("or" if wide.kind == "b" else "add", wide, extents, term,
                     lambda total: s.convert(total, dtype), _in_order(x, y, dimension_numbers))


def _in_order(x: Any, y: Any, dimension_numbers: DotDimensionNumbers) -> bool:
    """Whether few products are added up one by one, as in XLA: not along rows of a matrix that
    fill its vectors.
    """
    contract, batch = dimension_numbers
    sides = [(v, summed, v.ndim > len(summed) + len(batched))
             for v, summed, batched in zip((x, y), contract, batch, strict=True)]
    return len(contract[0]) == 1 and all(
        summation.has_order("add", v) and not (
            is_matrix and summed == (v.ndim - 1,) and v.shape[-1] >= ROW)
        for v, summed, is_matrix in sides)


# ── Derivatives ──────────────────────────────────────────────────────────────────────────────

def _cotangent(ct: Array, x: Undefined, y: Array, x_is_right: bool, *,
               dimension_numbers: DotDimensionNumbers, **params: Any) -> Array:
    """The cotangent of x: the product of ct with y over the free axes of y."""
    ranks = (y.ndim, x.aval.ndim) if x_is_right else (x.aval.ndim, y.ndim)
    *sides, whole = axis_names(dimension_numbers, *ranks)
    of_x, of_y = sides[::-1] if x_is_right else sides
    batch, summed = ([name for name in whole if name in of_y and (name in of_x) == paired]
                     for paired in (True, False))
    numbers = tuple((tuple(map(whole.index, names)), tuple(map(of_y.index, names)))
                    for names in (summed, batch))
    product = dot_general_p.bind(ct, y, dimension_numbers=numbers, **params)
    free = [name for name in whole if name not in of_y]
    order = tuple(map([*batch, *free, *(name for name in of_y if name not in whole)].index, of_x))
    if order != tuple(range(len(order))):
        product = ad_util.transpose_p.bind(product, permutation=order)
    if product.dtype.kind == "c" and x.aval.dtype.kind != "c":
        product = algebra.real(product)
    return convert.converted(product, x.aval.dtype, product.weak_type)


# ── Batching ─────────────────────────────────────────────────────────────────────────────────

def _dot_batch(axis: Axis, args: list, dims: list, *, dimension_numbers: DotDimensionNumbers,
               **params: Any) -> tuple[list, list]:
    contract, batch = ([axes if d is None else batched_axes(axes, d)
                        for axes, d in zip(pair, dims, strict=True)] for pair in dimension_numbers)
    if None not in dims:  # a new first batch axis; otherwise a free axis of one side
        batch = [(d, *axes) for d, axes in zip(dims, batch, strict=True)]
    numbers: Any = tuple(contract), tuple(batch)
    left, right, names = axis_names(numbers, *(x.ndim for x in args))
    out_dim = names.index(left[dims[0]] if dims[1] is None else right[dims[1]])
    return [dot_general_p.bind(*args, dimension_numbers=numbers, **params)], [out_dim]


# ── The primitive and its functions ──────────────────────────────────────────────────────────

def _dot_examples() -> list[Example]:
    sizes = {"B": 2, "i": 2, "j": 3, "k": 4, "m": 12, "n": 12, "p": 12, "l": 240, "z": 0}

    def array(axes: str, dtype: Any, shift: int) -> np.ndarray:
        x = examples.spaced(-1., 1., tuple(sizes[a] for a in axes), float, shift)
        kind = np.dtype(dtype).kind
        return x > 0 if kind == "b" else (100 * x if kind == "i" else 3 * x).astype(dtype)

    def case(axes: str, *kinds: Any, preferred: Any = None) -> Example:
        """Axes of the same letter are paired; capital letters are batch axes."""
        left, right = axes.split(",")
        pairs = [[a for a in left if a in right and a.isupper() == is_batch]
                 for is_batch in (False, True)]
        numbers = tuple((tuple(map(left.index, names)), tuple(map(right.index, names)))
                        for names in pairs)
        return Example((array(left, kinds[0], 0), array(right, kinds[-1], 1)),
                       {"dimension_numbers": numbers, "precision": None,
                        "preferred_element_type": preferred})

    short, single, whole = dtypes.bfloat16, np.float32, np.int32
    cases = [case(axes, dtype) for dtype in (single, np.float64)
             for axes in ("ij,jk", "jk,ij", "ij,ij", "ij,ji", "Bij,jBk", "iBj,jkB")]
    cases += [case("ij,jk", dtype) for dtype in (np.float16, short, whole, bool)]
    cases += [case("ij,jk", np.int8, preferred=np.dtype(p)) for p in (np.int8, np.int32)]
    cases += [case("mn,np", *two) for two in ([single], [whole], [short, single], [short])]
    return cases + [case(axes, single) for axes in (
        "iz,zj", "j,j", "nm,np", "l,lk", "ml,m", "i,j", ",", "Bij,jk", "Bij,Bkj", "Bnm,Bpn")]


dot_general_p = Primitive(
    "dot_general", impl=_dot_impl, abstract_eval=_dot_type,
    jvp=families.per_argument(lambda t, out, x, y, **params: dot_general_p.bind(t, y, **params),
                              lambda t, out, x, y, **params: dot_general_p.bind(x, t, **params)),
    jet=families.general_leibniz_rule,
    transpose=ad_util.transposed(lambda ct, x, y, **params: _cotangent(ct, x, y, False, **params),
                                 lambda ct, x, y, **params: _cotangent(ct, y, x, True, **params)),
    batch=_dot_batch,
    sharding=layout("dot_general"), may_produce_nan=True, complex_parts=in_pairs("dot_general"),
    library=functools.partial(families.kernel("dot_general"), as_sums=Primitive(
        "dot_general", abstract_eval=_dot_type, element=_dot_element).bind),
    examples=_dot_examples)


def dot_general(lhs: Any, rhs: Any, dimension_numbers: Any, precision: Any = None,
                preferred_element_type: Any = None, *, out_sharding: Any = None) -> Any:
    """A product of arrays, contracted over pairs of axes.

    Args:
      lhs, rhs: arrays.
      dimension_numbers: ``((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))``, each a
        sequence of axes.  Batch axes are paired, and kept.
      precision: on a GPU, ``"highest"`` keeps all digits of float32 factors, which are else
        rounded to TF32 (11 significant bits); the CPU keeps them.
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
    precision = canonical_precision(precision)
    if rounded := rounds_factors(precision, dtypes.dtype(lhs)):
        factors = [convert.converted(x, rounded[0]) for x in (lhs, rhs)]
        product = dot_general_p.bind(*factors, dimension_numbers=numbers, precision=None,
                                     preferred_element_type=rounded[1])
        return convert.converted(product, dtype or dtypes.dtype(lhs))
    return dot_general_p.bind(lhs, rhs, dimension_numbers=numbers, preferred_element_type=dtype,
                              precision=precision)


def _axes(axes: Any) -> Axes:
    return as_dims((axes,) if isinstance(axes, int | np.integer) else axes)


def dot(lhs: Any, rhs: Any, *, dimension_numbers: Any = None, precision: Any = None,
        preferred_element_type: Any = None, out_sharding: Any = None) -> Any:
    """The product of matrices or vectors; with `dimension_numbers`, that of `dot_general`.

    Raises:
      ValueError: for other ranks, and sizes that do not fit.

    >>> import numpy as np
    >>> dot(np.ones((2, 3)), np.ones(3))
    Array([3., 3.], dtype=float32)
    """
    if dimension_numbers is None:
        lhs_shape, rhs_shape = np.shape(lhs), np.shape(rhs)
        if not {len(lhs_shape), len(rhs_shape)} <= {1, 2} or lhs_shape[-1] != rhs_shape[0]:
            raise ValueError("jax.lax.dot: dimension_numbers must be specified when not performing "
                             "simple un-batched matrix-matrix, matrix-vector, or vector-vector "
                             f"products; got lhs_shape={lhs_shape} rhs_shape={rhs_shape}")
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


# ── Products of groups of rows ───────────────────────────────────────────────────────────────

# Each group's rows are masked; one product does the rest.

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
    """A product of arrays, with groups along one axis of the left one.

    If that axis is summed over, the result has one product for each group, along a first axis.  If
    it stays, each group has its own part of the right.  If it is a batch axis, this is
    `dot_general`.

    Args:
      lhs, rhs: arrays.
      group_sizes: (groups,), integers; or with axes in front of that: the batch axes of `lhs`, and
        those of its axes of the same kind as the ragged one that come before it.
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
        raise NotImplementedError("ragged_dot_general takes no group_offset: omit the groups "
                                  "from group_sizes and rhs instead.")
    ((summed, summed_right), (batch, batch_right)), ragged, groups = ragged_dot_dimension_numbers
    summed, summed_right, batch, batch_right, groups = map(
        as_dims, (summed, summed_right, batch, batch_right, groups))
    lhs, rhs, sizes = map(as_value, (lhs, rhs, group_sizes))
    axis, prefix = _ragged_axis(lhs, sizes, tuple(ragged), summed, batch)
    _check_groups(rhs, sizes, groups, axis in (*summed, *batch), (*summed_right, *batch_right))
    options = {"precision": precision, "preferred_element_type": preferred_element_type}

    if axis in batch:
        out = dot_general(lhs, rhs, ((summed, summed_right), (batch, batch_right)), **options)
        return convert.converted(out, out.dtype, out.weak_type and sizes.weak_type)
    parts = _group_parts(lhs, sizes, axis, prefix if sizes.ndim > 1 else ())
    summed, batch = ([d + 1 for d in axes] for axes in (summed, batch))
    if axis + 1 not in summed:
        summed, summed_right = [0, *summed], (*groups, *summed_right)
    out = dot_general(parts, rhs, ((summed, summed_right), (batch, batch_right)), **options)
    return ad_util.move_axis(out, len(batch), 0) if axis + 1 in summed and 0 not in summed else out


def _ragged_axis(lhs: Array, sizes: Array, ragged: tuple[int, ...], summed: Axes, batch: Axes
                 ) -> tuple[int, tuple[int, ...]]:
    """The axis that consists of groups, and those for which there may be rows of sizes."""
    refuse((dtypes.kind(sizes.dtype) not in "iu",
            "ragged_dot_general requires that group_sizes.dtype is subtype of np.integer."),
           (len(ragged) != 1, "ragged_dot_general expects exactly one lhs ragged dimension."),
           (sizes.ndim == 0, "expected rank of group_sizes to be >=1."))
    [axis] = ragged
    refuse((not 0 <= axis < lhs.ndim,
            "ragged_dot_general requires lhs ragged dimension numbers to be nonnegative and less "
            f"than the number of axes of the lhs value, got {axis} for lhs of rank {lhs.ndim}."))
    free = without(tuple(range(lhs.ndim)), (*summed, *batch))
    kind = next(axes for axes in (batch, summed, free) if axis in axes)
    before = tuple(kind[:kind.index(axis)])
    prefix = before if kind is batch else (*batch, *before)
    expected = (*(lhs.shape[d] for d in prefix), sizes.shape[-1])
    refuse((sizes.ndim > 1 and sizes.shape != expected,
            f"expected group_sizes to have shape {expected}, got {sizes.shape}."))
    return axis, prefix


def _check_groups(rhs: Array, sizes: Array, groups: Axes, is_paired: bool, used: Axes) -> None:
    """Refuse axes of the right that cannot be the one with an entry for each group."""
    refuse((is_paired and len(groups) != 0, "ragged_dot_general requires zero group dimensions in "
            "the rhs when lhs ragged dimension is contracting or batch."),
           (not is_paired and len(groups) != 1, "ragged_dot_general requires exactly one rhs group "
            "dimension when lhs ragged dimension is noncontracting."))
    for group in groups:
        refuse((not 0 <= group < rhs.ndim, "ragged_dot_general requires rhs group dimension "
                "numbers to be nonnegative and less than the number of axes of the rhs value, got "
                f"{group} for rhs of rank {rhs.ndim}."),
               (group in used, "ragged_dot_general requires rhs group dimension numbers to be "
                               "distinct from contracting and batch dimensions."))
        refuse((rhs.shape[group] != sizes.shape[-1], "expected rhs group dimension size to be "
                f"{sizes.shape[-1]}, got {rhs.shape[group]}."))


def _group_parts(x: Array, sizes: Array, axis: int, prefix: tuple[int, ...]) -> Array:
    """For each group a copy of the array with zeros in the other groups.

    They are as weak as all operands, the sizes among them, which have a row for each index of the
    axes `prefix`.
    """
    order = sorted(range(len(prefix)), key=prefix.__getitem__)
    sizes = transpose(sizes, (len(prefix), *order)) if prefix else sizes
    shape = (sizes.shape[0], *x.shape)
    ends, kept = cumsum(sizes), (0, *(prefix[k] + 1 for k in order))
    place = broadcasted_iota(sizes.dtype, shape, axis + 1)
    start, end = (ad_util.broadcast_at(x, kept, shape) for x in (algebra.sub(ends, sizes), ends))
    inside = comparison.bitwise_and(comparison.le(start, place), comparison.lt(place, end))
    copies = ad_util.broadcast_at(x, range(1, len(shape)), shape)
    zeros = ad_util.repeated(0, copies.aval.update(weak_type=x.weak_type and sizes.weak_type))
    return comparison.select(inside, copies, zeros)
