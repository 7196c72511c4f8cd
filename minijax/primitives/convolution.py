"""Convolutions: conv_general_dilated, its variants, their windows, and the shapes of results.

Builds on `contract` and `windowed_reductions`.  Chapter 24, *Loops and Numba*.
In JAX: `jax/_src/lax/convolution.py`, `other.py`.
"""

import functools
import math
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple, Union

import numpy as np

from minijax import core, dtypes
from minijax.core import Array, Axis, Example, Outs, Primitive, ShapedArray, refuse
from minijax.primitives import ad_util, contract, convert, examples, families, slicing, slots
from minijax.primitives.axes import Axes, Index, Shape, as_dims, dilate_dim, inverse, without
from minijax.primitives.precision import canonical_precision
from minijax.primitives.shape import rev_p, transpose
from minijax.primitives.windowed_reductions import (Padding, pad_array, padtype_to_pads,
                                                    reduce_window_shape_tuple, window_position,
                                                    windows_impl, windows_of)
from minijax.primitives.slots import Reduction, all_weak, check_same_dtypes, computed_in


class ConvDimensionNumbers(NamedTuple):
    """The axes of a convolution, by number.

    Args:
      lhs_spec: the batch, feature and spatial axes of the left operand.
      rhs_spec: the axes of output features and input features, and the spatial axes, of the right.
      out_spec: the batch, feature and spatial axes of the result.
    """

    lhs_spec: Axes
    rhs_spec: Axes
    out_spec: Axes


ConvGeneralDilatedDimensionNumbers = Union[  # noqa: UP007  as JAX's, which prints so
    tuple[str, str, str], ConvDimensionNumbers, None]


# ── Axes in another order, and by letters ─────────────────────────────────────────────────────

def _in_order(items: Sequence[Any], axes: Axes) -> tuple:
    return tuple(items[d] for d in axes)


def conv_general_permutations(dimension_numbers: Sequence[str]) -> tuple[Axes, Axes, Axes]:
    """The batch, feature and spatial axes from letters: ``("NHWC", "HWIO", "NHWC")``.

    >>> conv_general_permutations(("NHWC", "HWIO", "NHWC"))
    ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))

    Raises:
      ValueError, TypeError: where letters are missing, doubled, or not the same.
    """
    lhs, rhs, out = dimension_numbers
    for i, (letters, needed) in enumerate(zip((lhs, rhs, out), ("NC", "OI", "NC"), strict=True)):
        refuse(([letters.count(c) for c in needed] != [1, 1],
                f"convolution dimension_numbers[{i}] must contain the characters '{needed[0]}' and "
                f"'{needed[1]}' exactly once, got {letters}."),
               (len(set(letters)) != len(letters), f"convolution dimension_numbers[{i}] cannot have"
                                                   f" duplicate characters, got {letters}."))
    slid = [c for c in rhs if c not in "OI"]
    refuse((not set(lhs) - set("NC") == set(slid) == set(out) - set("NC"),
            "convolution dimension_numbers elements must each have the same set of spatial "
            f"characters, got {dimension_numbers}."))

    def places(letters: str, first: str) -> Axes:
        return tuple(map(letters.index, (*first, *slid)))
    return places(lhs, "NC"), places(rhs, "OI"), places(out, "NC")


def conv_dimension_numbers(lhs_shape: Shape, rhs_shape: Shape, dimension_numbers: Any
                           ) -> ConvDimensionNumbers:
    """The axes of a convolution as numbers.

    Args:
      dimension_numbers: None for ``("NCHW", "OIHW", "NCHW")`` and so on; letters; or numbers.

    >>> conv_dimension_numbers((1, 2, 3), (1, 2, 3), None).rhs_spec
    (0, 1, 2)

    Raises:
      TypeError, ValueError: where ranks differ, and for what names no axes.
    """
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    rank = len(lhs_shape)
    refuse((rank != len(rhs_shape), "convolution requires lhs and rhs ndim to be equal, got "
                                    f"{rank} and {len(rhs_shape)}."))
    if dimension_numbers is None:
        return ConvDimensionNumbers(*[tuple(range(rank))] * 3)
    refuse((not isinstance(dimension_numbers, list | tuple), "convolution dimension_numbers must be"
            f" tuple/list or None, got {type(dimension_numbers)}."))
    refuse((len(dimension_numbers) != 3, "convolution dimension_numbers list/tuple must be "
                                         f"length 3, got {len(dimension_numbers)}."))
    if not all(isinstance(letters, str) for letters in dimension_numbers):
        return ConvDimensionNumbers(*map(as_dims, dimension_numbers))
    for i, letters in enumerate(dimension_numbers):
        refuse((len(letters) != rank, f"convolution dimension_numbers[{i}] must have len equal to "
                f"the ndim of lhs and rhs, got {len(letters)} for lhs and rhs shapes {lhs_shape} "
                f"and {rhs_shape}."))
    return ConvDimensionNumbers(*conv_general_permutations(dimension_numbers))


# ── The geometry ─────────────────────────────────────────────────────────────────────────────

class Sizes(NamedTuple):
    """The sizes of a convolution's loops.  Groups split the features, or else the batch.

    Either kind is an axis of its own, along which there are separate convolutions.
    """

    batch: int
    groups: int
    features: int  # of the input, in a group
    outputs: int   # of the result, in a group
    slid: Shape
    window: Shape
    places: Shape


def sizes_of(lhs: Shape, rhs: Shape, *, dimension_numbers: ConvDimensionNumbers,
             window_strides: Shape, padding: Padding, lhs_dilation: Shape, rhs_dilation: Shape,
             feature_group_count: int, batch_group_count: int, **_: Any) -> Sizes:
    batch, features, *slid = (lhs[d] for d in dimension_numbers.lhs_spec)
    outputs, inside, *window = (rhs[d] for d in dimension_numbers.rhs_spec)
    groups = feature_group_count * batch_group_count
    places = reduce_window_shape_tuple(tuple(slid), tuple(window), window_strides, padding,
                                       lhs_dilation, rhs_dilation)
    return Sizes(batch // batch_group_count, groups, inside, outputs // groups, tuple(slid),
                 tuple(window), places)


def _conv_type(lhs: ShapedArray, rhs: ShapedArray, *, dimension_numbers: ConvDimensionNumbers,
               preferred_element_type: Any, feature_group_count: int, batch_group_count: int,
               precision: Any, **params: Any) -> list[ShapedArray]:
    name = "conv_general_dilated"
    check_same_dtypes(name, lhs, rhs)
    batch, features = (lhs.shape[d] for d in dimension_numbers.lhs_spec[:2])
    outputs, inside = (rhs.shape[d] for d in dimension_numbers.rhs_spec[:2])
    window = [rhs.shape[d] for d in dimension_numbers.rhs_spec[2:]]
    for kind, count, size in (("feature", feature_group_count, features),
                              ("batch", batch_group_count, batch)):
        refuse((count < 1, f"{name} {kind}_group_count must be a positive integer, got {count}."),
               error=ValueError)
        refuse((size % count != 0, f"{name} {kind}_group_count must divide lhs {kind} dimension "
                                   f"size, but {count} does not divide {size}."), error=ValueError)
    refuse(
        (features // feature_group_count != inside,
         f"{name} lhs feature dimension size divided by feature_group_count must equal the rhs "
         f"input feature dimension size, but {features} // {feature_group_count} != {inside}."),
        *((outputs % count != 0,
           f"{name} rhs output feature dimension size must be a multiple of {kind}_group_count, "
           f"but {outputs} is not a multiple of {count}.")
          for kind, count in (("feature", feature_group_count), ("batch", batch_group_count))),
        (min(feature_group_count, batch_group_count) > 1,
         "At most one of batch_group_count and feature_group_count may be > 1, got "
         f"batch_group_count={batch_group_count} and feature_group_count={feature_group_count}"),
        error=ValueError)
    for parameter, value in params.items():
        refuse((len(value) != len(window), f"{name} window and {parameter} must have the same "
                f"number of dimensions, but got {len(window)} and {len(value)}"),
               (parameter != "padding" and min(value, default=1) < 1,
                f"{name} {parameter} must be positive, got {value}"), error=ValueError)
    sizes = sizes_of(lhs.shape, rhs.shape, dimension_numbers=dimension_numbers,
                     feature_group_count=feature_group_count, batch_group_count=batch_group_count,
                     **params)
    whole = (sizes.batch, sizes.groups * sizes.outputs, *sizes.places)
    shape = _in_order(whole, inverse(dimension_numbers.out_spec))
    return [ShapedArray(shape, preferred_element_type or lhs.dtype, all_weak([lhs, rhs]))]


# ── The meaning: products of every window ────────────────────────────────────────────────────

def _grouped(x: np.ndarray, spec: Axes, axis: int, groups: int) -> np.ndarray:
    """The axes in the order of `spec`, one of them split, with its groups in front."""
    x = np.transpose(x, spec)
    size = x.shape[axis] // groups
    return np.moveaxis(x.reshape(*x.shape[:axis], groups, size, *x.shape[axis + 1:]), axis, 0)


def _conv_impl(lhs: np.ndarray, rhs: np.ndarray, *, dimension_numbers: ConvDimensionNumbers,
               window_strides: Shape, padding: Padding, lhs_dilation: Shape, rhs_dilation: Shape,
               feature_group_count: int, batch_group_count: int, preferred_element_type: Any,
               **_: Any) -> list[np.ndarray]:
    dtype = np.dtype(preferred_element_type or lhs.dtype)
    groups, rank = feature_group_count * batch_group_count, lhs.ndim - 2
    wide = np.promote_types(computed_in(dtype), computed_in(lhs.dtype))
    x = _grouped(lhs, dimension_numbers.lhs_spec, int(feature_group_count > 1), groups)
    w = _grouped(rhs, dimension_numbers.rhs_spec, 0, groups)
    padded = pad_array(x, 0, ((0, 0),) * 3 + padding, (1,) * 3 + lhs_dilation)
    windows = windows_impl(padded, window_dimensions=(1, 1, 1, *w.shape[3:]),
                           window_strides=(1, 1, 1, *window_strides),
                           window_dilation=(1, 1, 1, *rhs_dilation))
    windows = windows.reshape(*windows.shape[:3 + rank], *w.shape[3:]).astype(wide)  # g n c s… k…
    names = "gnc" + "stuvw"[:rank] + "klmpq"[:rank]
    out = np.einsum(f"{names},go{names[2]}{names[3 + rank:]}->ngo{names[3:3 + rank]}",
                    windows, w.astype(wide))
    out = out.reshape(out.shape[0], rhs.shape[dimension_numbers.rhs_spec[0]], *out.shape[3:])
    return [np.transpose(out, np.argsort(dimension_numbers.out_spec)).astype(dtype)]


def _conv_element(s: Any, index: Index, x: Any, w: Any, *, dimension_numbers: ConvDimensionNumbers,
                  preferred_element_type: Any, **params: Any) -> Reduction:
    """A sum of products over features and windows; the padding is zero."""
    dtype = np.dtype(preferred_element_type or x.dtype)
    wide = np.promote_types(computed_in(dtype), computed_in(x.dtype))
    sizes = sizes_of(x.shape, w.shape, dimension_numbers=dimension_numbers, **params)
    n, output, *places = (index[d] for d in dimension_numbers.out_spec)
    group = s.div(output, sizes.outputs) if sizes.groups > 1 else s.const(0, np.int64)
    of_features = params["feature_group_count"] > 1

    def term(feature: Any, *offset: Any) -> Any:
        inside, at = window_position(
            s, tuple(places), offset, sizes.slid, *(params[name] for name in (
                "window_strides", "padding", "lhs_dilation", "rhs_dilation")))
        channel = s.add(s.mul(group, sizes.features), feature) if of_features else feature
        row = n if of_features else s.add(s.mul(group, sizes.batch), n)
        left = _in_order((row, channel, *at), inverse(dimension_numbers.lhs_spec))
        right = _in_order((output, feature, *offset), inverse(dimension_numbers.rhs_spec))
        return s.choose(inside, lambda: s.mul(s.convert(x(left), wide), s.convert(w(right), wide)),
                        lambda: s.const(0, wide))
    return Reduction("or" if wide.kind == "b" else "add", wide, (sizes.features, *sizes.window),
                     term, lambda total: s.convert(total, dtype))


# ── Axes merged and split ────────────────────────────────────────────────────────────────────

def _merge_axis(x: Array, source: int, target: int) -> Array:
    """Move an axis in front of another and join the two; the result has one axis less."""
    return ad_util.merged(ad_util.move_axis(x, source, target), target)


# ── Derivatives: convolutions again ──────────────────────────────────────────────────────────

def _swapped(spec: Axes) -> Axes:
    return (spec[1], spec[0], *spec[2:])


def _conv_to_sizes(lhs: Array, rhs: Array, sizes: Sequence[int], before: Sequence[int],
                   dimension_numbers: ConvDimensionNumbers, *, window_strides: Shape,
                   lhs_dilation: Shape, rhs_dilation: Shape, **params: Any) -> Array:
    """The convolution with a result of these sizes whose first windows begin `before` the array."""
    lhs_spec, rhs_spec, _ = dimension_numbers
    after = [(n - 1) * stride + dilate_dim(rhs.shape[k], dilation)
             - dilate_dim(lhs.shape[d], base) - start
             for n, stride, k, dilation, d, base, start in zip(
                 sizes, window_strides, rhs_spec[2:], rhs_dilation, lhs_spec[2:], lhs_dilation,
                 before, strict=True)]
    return conv_general_dilated_p.bind(
        lhs, rhs, dimension_numbers=dimension_numbers, window_strides=window_strides,
        padding=tuple(zip(before, after, strict=True)), lhs_dilation=lhs_dilation,
        rhs_dilation=rhs_dilation, **params)


def _lhs_cotangent(ct: Array, lhs: Any, rhs: Array, *, dimension_numbers: ConvDimensionNumbers,
                   window_strides: Shape, padding: Padding, lhs_dilation: Shape,
                   rhs_dilation: Shape, feature_group_count: int, batch_group_count: int,
                   **params: Any) -> Array:
    """The convolution of the cotangent, dilated by the strides, with the reversed weights."""
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    groups = feature_group_count * batch_group_count
    before = [dilate_dim(rhs.shape[k], dilation) - 1 - start for k, dilation, (start, _) in zip(
        rhs_spec[2:], rhs_dilation, padding, strict=True)]
    rhs = convert.converted(rev_p.bind(rhs, dimensions=rhs_spec[2:]), ct.dtype, rhs.weak_type)
    if groups > 1:
        rhs = _merge_axis(ad_util.in_blocks(rhs, rhs_spec[0], groups), *rhs_spec[:2])
    out = _conv_to_sizes(
        ct, rhs, [lhs.aval.shape[d] for d in lhs_spec[2:]], before,
        ConvDimensionNumbers(out_spec, _swapped(rhs_spec), lhs_spec), window_strides=lhs_dilation,
        lhs_dilation=window_strides, rhs_dilation=rhs_dilation, feature_group_count=groups,
        batch_group_count=1, **params)
    if batch_group_count > 1:
        out = _merge_axis(ad_util.in_blocks(out, lhs_spec[1], batch_group_count), *lhs_spec[1::-1])
    return convert.converted(out, lhs.aval.dtype, out.weak_type)


def _rhs_cotangent(ct: Array, lhs: Array, rhs: Any, *, dimension_numbers: ConvDimensionNumbers,
                   window_strides: Shape, padding: Padding, lhs_dilation: Shape,
                   rhs_dilation: Shape, feature_group_count: int, batch_group_count: int,
                   **params: Any) -> Array:
    """The convolution of lhs with the cotangent: batch and features change places."""
    _, rhs_spec, _ = dimension_numbers
    out = _conv_to_sizes(
        convert.converted(lhs, ct.dtype, lhs.weak_type), ct,
        [rhs.aval.shape[k] for k in rhs_spec[2:]], [start for start, _ in padding],
        ConvDimensionNumbers(*(_swapped(dimension_numbers[k]) for k in (0, 2, 1))),
        window_strides=rhs_dilation, lhs_dilation=lhs_dilation, rhs_dilation=window_strides,
        feature_group_count=batch_group_count, batch_group_count=feature_group_count, **params)
    return convert.converted(out, rhs.aval.dtype, out.weak_type)


# ── Batching: the batch axis joins the batch, the features, or the groups ────────────────────

def _conv_batch(axis: Axis, args: list, dims: list, *, dimension_numbers: ConvDimensionNumbers,
                feature_group_count: int, batch_group_count: int, **params: Any) -> Outs:
    lhs, rhs = args
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    counts = {"feature_group_count": feature_group_count, "batch_group_count": batch_group_count}
    same = {"dimension_numbers": dimension_numbers, **params}
    if not axis.size:  # joined to another axis, it would hide how long that one is
        avals = [x.aval.update(shape=without(x.shape, (d,)))
                 for x, d in zip(args, dims, strict=True)]
        [out] = conv_general_dilated_p.type_of(avals, {**same, **counts})
        return [ad_util.zeros(out.update(shape=(0, *out.shape)))], [0]
    if dims[1] is None:
        if batch_group_count == 1:
            out = conv_general_dilated_p.bind(_merge_axis(lhs, dims[0], lhs_spec[0]), rhs, **same,
                                              **counts)
            return [ad_util.in_blocks(out, out_spec[0], axis.size)], [out_spec[0]]
    elif dims[0] is None and feature_group_count == batch_group_count == 1:
        out = conv_general_dilated_p.bind(lhs, _merge_axis(rhs, dims[1], rhs_spec[0]), **same,
                                          **counts)
        return [ad_util.in_blocks(out, out_spec[1], axis.size)], [out_spec[1]]
    lhs, rhs = (ad_util.batch_to(x, d, 0, axis.size) for x, d in zip(args, dims, strict=True))
    kind = "batch_group_count" if batch_group_count > 1 else "feature_group_count"
    counts[kind] *= axis.size
    lhs = _merge_axis(lhs, 0, lhs_spec[kind == "feature_group_count"])
    rhs = _merge_axis(rhs, 0, rhs_spec[0])
    out = conv_general_dilated_p.bind(lhs, rhs, **same, **counts)
    return [ad_util.in_blocks(out, out_spec[1], axis.size)], [out_spec[1]]


# ── The primitive and its functions ──────────────────────────────────────────────────────────

def _conv_examples() -> list[Example]:
    def case(lhs: Shape, rhs: Shape, letters: Any = None, dtype: Any = np.float32, *,
             strides: Any = None, padding: Any = None, base: Any = None, dilation: Any = None,
             features: int = 1, batches: int = 1, preferred: Any = None) -> Example:
        ones = (1,) * (len(lhs) - 2)
        size = 3. if np.dtype(dtype).kind == "i" else .5
        arrays = tuple(examples.spaced(-size, size, shape, float, i).astype(dtype)
                       for i, shape in enumerate((lhs, rhs)))
        return Example(arrays, {
            "dimension_numbers": conv_dimension_numbers(lhs, rhs, letters), "precision": None,
            "window_strides": strides or ones, "padding": padding or ((0, 0),) * len(ones),
            "lhs_dilation": base or ones, "rhs_dilation": dilation or ones,
            "feature_group_count": features, "batch_group_count": batches,
            "preferred_element_type": preferred})

    last = ("NHWC", "HWIO", "NHWC")
    return [
        case((2, 2, 5), (3, 2, 2)), case((2, 2, 5), (3, 2, 2), dtype=np.float64, strides=(2,)),
        case((1, 2, 4, 5), (2, 2, 2, 3), padding=((1, 0), (1, 1))),
        case((2, 4, 5, 2), (2, 3, 2, 3), last, strides=(2, 1), padding=((0, 1), (-1, 2))),
        case((1, 4, 4, 2), (2, 2, 2, 2), last, base=(2, 1), dilation=(1, 2)),
        case((2, 4, 5), (6, 2, 2), features=2), case((4, 2, 5), (4, 2, 2), batches=2),
        case((2, 3, 6), (3, 1, 3), features=3, padding=((1, 1),)),
        case((2, 3), (4, 3)), case((2, 2, 5), (3, 2, 2), dtype=np.int32),
        case((2, 2, 5), (3, 2, 2), dtype=np.float16),
        case((2, 2, 5), (3, 2, 2), dtype=np.int8, preferred=np.dtype(np.int32)),
        case((1, 2, 1), (1, 2, 3)), case((2, 8, 6, 6), (8, 8, 3, 3), padding=((1, 1), (1, 1))),
        case((2, 6, 6, 8), (3, 3, 8, 12), last),
        # fewer places than images
        case((5, 20, 9), (18, 5, 4), ("CWN", "WIO", "NWC"), dilation=(1,), strides=(2,)),
        case((9, 4, 20), (8, 2, 18), features=2), case((8, 3, 20), (8, 3, 9), batches=2,
                                                       dilation=(2,))]


conv_general_dilated_p = Primitive(
    "conv_general_dilated", impl=_conv_impl, abstract_eval=_conv_type,
    jvp=families.per_argument(
        lambda t, out, x, w, **params: conv_general_dilated_p.bind(t, w, **params),
        lambda t, out, x, w, **params: conv_general_dilated_p.bind(x, t, **params)),
    jet=families.general_leibniz_rule,
    transpose=ad_util.transposed(_lhs_cotangent, _rhs_cotangent),
    batch=_conv_batch, sharding=slots.layout("convolution"), may_produce_nan=True,
    complex_loop=slots.LEFT_TO_NUMPY,
    library=functools.partial(families.kernel("convolution"), pad=slicing.pad_p.bind,
                              sizes_of=sizes_of, as_sums=Primitive(
        "conv_general_dilated", abstract_eval=_conv_type, element=_conv_element).bind),
    examples=_conv_examples)


def dilation_or_ones(dilation: Any, rank: int) -> Shape:
    """A dilation for each axis; without any, one."""
    return (1,) * rank if dilation is None else as_dims(dilation)


def pairs(padding: Any) -> list[tuple[int, int]]:
    """How much to add before and after each axis."""
    try:
        return [(operator.index(low), operator.index(high)) for low, high in padding]
    except (TypeError, ValueError):
        raise ValueError("padding argument to conv_general_dilated should be a string or a "
                         f"sequence of (low, high) pairs, got {padding}") from None


_COMPATIBLE = ((np.integer, np.integer), (np.integer, np.floating), (np.floating, np.floating),
               (np.complexfloating, np.complexfloating))


def conv_general_dilated(lhs: Any, rhs: Any, window_strides: Sequence[int], padding: Any,
                         lhs_dilation: Sequence[int] | None = None,
                         rhs_dilation: Sequence[int] | None = None, dimension_numbers: Any = None,
                         feature_group_count: int = 1, batch_group_count: int = 1,
                         precision: Any = None, preferred_element_type: Any = None,
                         out_sharding: Any = None) -> Array:
    """A convolution of any kind: sums over windows and features of an array times weights.

    Args:
      lhs: an array with a batch axis, a feature axis, and spatial axes.
      rhs: the weights: output features, input features, and the window.
      window_strides: the distances between windows.
      padding: "SAME", "VALID", "SAME_LOWER", or how many zeros to add before and after each axis.
      lhs_dilation, rhs_dilation: the distances between elements of lhs, and of a window.
      dimension_numbers: the order of axes: letters, ``("NHWC", "HWIO", "NHWC")``, or numbers.
      feature_group_count, batch_group_count: the number of groups of features, or of the batch,
        with weights of their own.
      precision: as of `dot_general`: on a GPU float32 factors of a large convolution are rounded
        to TF32 (11 significant bits) unless it is "highest"; the CPU keeps them.
      preferred_element_type: the dtype of the sum and of the result.

    Raises:
      TypeError, ValueError: where axes, sizes or groups do not fit.

    >>> import numpy as np
    >>> conv_general_dilated(np.ones((1, 1, 4)), np.ones((1, 1, 3)), (1,), "SAME")
    Array([[[2., 3., 3., 2.]]], dtype=float32)
    """
    lhs, rhs = core.as_value(lhs), core.as_value(rhs)
    numbers = conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    refuse((lhs.ndim != rhs.ndim, "conv_general_dilated lhs and rhs must have the same number of "
            f"dimensions, but got {lhs.shape} and {rhs.shape}."), error=ValueError)
    rank = len(numbers.lhs_spec) - 2
    strides = as_dims(window_strides)
    base, dilation = (dilation_or_ones(d, rank) for d in (lhs_dilation, rhs_dilation))
    if isinstance(padding, str):
        refuse((len(strides) != rank, "conv_general_dilated window and window_strides must have the"
                f" same number of dimensions, but got {rank} and {len(strides)}"),
               (len(dilation) != rank, "conv_general_dilated window and rhs_dilation must have the "
                f"same number of dimensions, but got {rank} and {len(dilation)}"),
               (set(base) != {1} and rank > 0, "String padding is not implemented for transposed "
                "convolution using this op. Please either exactly specify the required padding or "
                "use conv_transpose."), error=ValueError)
        around = padtype_to_pads([lhs.shape[d] for d in numbers.lhs_spec[2:]],
                                 [dilate_dim(rhs.shape[d], k) for d, k in zip(
                                     numbers.rhs_spec[2:], dilation, strict=True)],
                                 strides, padding)
    else:
        refuse((len(padding) != rank, "Wrong number of explicit pads for convolution: expected "
                                      f"{rank}, got {len(padding)}."))
        around = pairs(padding)
    dtype = dtypes.check_user_dtype_supported(preferred_element_type, "conv")
    is_compatible = dtype is None or any(
        dtypes.issubdtype(lhs.dtype, one) and dtypes.issubdtype(dtype, other)
        for one, other in _COMPATIBLE)
    refuse((not is_compatible, "Input type is incompatible with `preferred_element_type`. The "
            "compatible combinations of (input_type, preferred_element_type) are (integral, "
            "integral), (integral, floating), (floating, floating), (complex, complex."),
           (dtype is not None and dtype.itemsize < lhs.dtype.itemsize,
            "`preferred_element_type` must not be narrower than the original type."))
    return conv_general_dilated_p.bind(
        lhs, rhs, window_strides=strides, padding=tuple(map(as_dims, around)), lhs_dilation=base,
        rhs_dilation=dilation, dimension_numbers=numbers,
        feature_group_count=operator.index(feature_group_count),
        batch_group_count=operator.index(batch_group_count),
        precision=canonical_precision(precision), preferred_element_type=dtype)


def conv(lhs: Any, rhs: Any, window_strides: Sequence[int], padding: Any, precision: Any = None,
         preferred_element_type: Any = None) -> Array:
    """A convolution of ``(batch, features, …)`` with weights ``(outputs, features, …)``.

    >>> import numpy as np
    >>> conv(np.ones((1, 1, 4)), np.ones((1, 1, 3)), (1,), "VALID")
    Array([[[3., 3.]]], dtype=float32)
    """
    return conv_general_dilated(lhs, rhs, window_strides, padding, precision=precision,
                                preferred_element_type=preferred_element_type)


def conv_with_general_padding(lhs: Any, rhs: Any, window_strides: Sequence[int], padding: Any,
                              lhs_dilation: Sequence[int] | None,
                              rhs_dilation: Sequence[int] | None, precision: Any = None,
                              preferred_element_type: Any = None) -> Array:
    """A convolution as of `conv`, with the dilations of `conv_general_dilated`.

    >>> import numpy as np
    >>> conv_with_general_padding(np.ones((1, 1, 4)), np.ones((1, 1, 3)), (1,), [(1, 1)], (2,),
    ...                           None)
    Array([[[1., 2., 1., 2., 1., 2., 1.]]], dtype=float32)
    """
    return conv_general_dilated(lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation,
                                precision=precision, preferred_element_type=preferred_element_type)


# ── Transposed ───────────────────────────────────────────────────────────────────────────────

def _transposed_padding(size: int, stride: int, padding: str) -> tuple[int, int]:
    """The explicit padding that transposes a convolution with "SAME" or "VALID" windows."""
    if padding == "SAME":
        whole = size + stride - 2
        before = size - 1 if stride > size - 1 else -(-whole // 2)
    else:
        whole = size + stride - 2 + max(size - stride, 0)
        before = size - 1
    return before, whole - before


def conv_transpose(lhs: Any, rhs: Any, strides: Sequence[int], padding: Any,
                   rhs_dilation: Sequence[int] | None = None, dimension_numbers: Any = None,
                   transpose_kernel: bool = False, precision: Any = None,
                   preferred_element_type: Any = None, use_consistent_padding: bool = False
                   ) -> Array:
    """A transposed convolution: its result is `strides` times as large as its left operand.

    Args:
      lhs, rhs, dimension_numbers: as in `conv_general_dilated`; by default features come last.
      strides: the dilation of lhs.
      padding: "SAME" or "VALID", as of the convolution that is transposed; or zeros before and
        after.
      transpose_kernel: whether to reverse the weights and swap their features, to transpose the
        convolution with the same weights.
      use_consistent_padding: whether numbers, too, are the padding of the transposed convolution.

    >>> import numpy as np
    >>> conv_transpose(np.ones((1, 2, 1)), np.ones((3, 1, 1)), (2,), "SAME").ravel()
    Array([1., 1., 2., 1.], dtype=float32)
    """
    lhs, rhs = core.as_value(lhs), core.as_value(rhs)
    if dimension_numbers is None:  # channels last
        letters = "DHW"[5 - lhs.ndim:] if lhs.ndim <= 5 else ""
        dimension_numbers = f"N{letters}C", f"{letters}IO", f"N{letters}C"
    numbers = conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    slid = numbers.rhs_spec[2:]
    sizes = map(dilate_dim, [rhs.shape[d] for d in slid], dilation_or_ones(rhs_dilation, len(slid)))
    if padding in ("SAME", "VALID"):
        around = [_transposed_padding(size, stride, padding)
                  for size, stride in zip(sizes, strides, strict=False)]
    elif use_consistent_padding and not isinstance(padding, str):
        around = [(size - 1 - before, size - 1 - after)
                  for size, (before, after) in zip(sizes, padding, strict=True)]
    else:
        around = padding
    if transpose_kernel:
        out, features, *_ = numbers.rhs_spec
        rhs = ad_util.transpose_p.bind(rev_p.bind(rhs, dimensions=slid), permutation=tuple(
            {out: features, features: out}.get(d, d) for d in range(rhs.ndim)))
    return conv_general_dilated(lhs, rhs, (1,) * len(slid), around, strides, rhs_dilation, numbers,
                                precision=precision, preferred_element_type=preferred_element_type)


# ── Windows as features, and weights that differ from place to place ─────────────────────────────

def _patches(lhs: Any, filter_shape: Sequence[int], window_strides: Sequence[int], padding: Any,
             lhs_dilation: Sequence[int] | None, rhs_dilation: Sequence[int] | None,
             dimension_numbers: Any) -> tuple[Array, ConvDimensionNumbers]:
    """Every window, in axes (batch, places, features × window)."""
    lhs, rank = core.as_value(lhs), np.ndim(lhs) - 2
    numbers = conv_dimension_numbers(lhs.shape, (1,) * lhs.ndim, dimension_numbers)
    x = transpose(lhs, numbers.lhs_spec)
    dilation, sizes = dilation_or_ones(rhs_dilation, rank), as_dims(filter_shape)
    if isinstance(padding, str):
        padding = padtype_to_pads(x.shape[2:], list(map(dilate_dim, sizes, dilation)),
                                  window_strides, padding)
    around: Any = pairs(padding)
    windows = windows_of(
        x, 0, window_dimensions=(1, 1, *sizes), window_strides=(1, 1, *as_dims(window_strides)),
        padding=((0, 0), (0, 0), *around),
        base_dilation=(1, 1, *dilation_or_ones(lhs_dilation, rank)),
        window_dilation=(1, 1, *dilation))
    order = (0, *range(2, rank + 2), 1, *range(rank + 2, 2 * rank + 4))
    shape = (x.shape[0], *windows.shape[2:rank + 2], x.shape[1] * math.prod(sizes))
    out = ad_util.reshaped(transpose(windows, order), shape)
    return convert.converted(out, out.dtype), numbers


def conv_general_dilated_patches(
        lhs: Any, filter_shape: Sequence[int], window_strides: Sequence[int], padding: Any,
        lhs_dilation: Sequence[int] | None = None, rhs_dilation: Sequence[int] | None = None,
        dimension_numbers: Any = None, precision: Any = None,
        preferred_element_type: Any = None) -> Array:
    """Every window of an array as features of its place: the features, and of each the window.

    Args:
      lhs, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers: as in
        `conv_general_dilated`.
      filter_shape: the sizes of a window.

    >>> import numpy as np
    >>> conv_general_dilated_patches(np.arange(4.).reshape(1, 1, 4), (2,), (1,), "VALID")[0]
    Array([[0., 1., 2.],
           [1., 2., 3.]], dtype=float32)
    """
    patches, numbers = _patches(lhs, filter_shape, window_strides, padding, lhs_dilation,
                                rhs_dilation, dimension_numbers)
    return transpose(ad_util.move_axis(patches, -1, 1), inverse(numbers.out_spec))


def conv_general_dilated_local(lhs: Any, rhs: Any, window_strides: Sequence[int], padding: Any,
                               filter_shape: Sequence[int],
                               lhs_dilation: Sequence[int] | None = None,
                               rhs_dilation: Sequence[int] | None = None,
                               dimension_numbers: Any = None, precision: Any = None) -> Array:
    """A convolution with weights of its own for each place of the result.

    Args:
      rhs: the weights: output features; input features, and of each the window, as one axis; and
        the places of the result.
      filter_shape: the sizes of a window.
      lhs, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers: as in
        `conv_general_dilated`.

    >>> import numpy as np
    >>> x, weights = np.ones((1, 1, 3)), np.arange(4.).reshape(1, 2, 2)
    >>> conv_general_dilated_local(x, weights, (1,), "VALID", (2,))
    Array([[[2., 4.]]], dtype=float32)
    """
    patches, numbers = _patches(lhs, filter_shape, window_strides, padding, lhs_dilation,
                                rhs_dilation, dimension_numbers)
    weights = transpose(rhs, numbers.rhs_spec)
    places = range(1, patches.ndim - 1)
    out = contract.dot_general(patches, weights, (((patches.ndim - 1,), (1,)),
                                                  (places, range(2, weights.ndim))), precision)
    rank = len(places)  # (places, batch, outputs)
    return transpose(transpose(out, (rank, rank + 1, *range(rank))), inverse(numbers.out_spec))


# ── Shapes ───────────────────────────────────────────────────────────────────────────────────

def conv_shape_tuple(lhs_shape: Shape, rhs_shape: Shape, strides: Sequence[int], pads: Any,
                     batch_group_count: int = 1) -> Shape:
    """The shape of what `conv` returns.

    >>> conv_shape_tuple((1, 2, 5, 5), (4, 2, 3, 3), (1, 2), "SAME")
    (1, 4, 5, 3)
    """
    if isinstance(pads, str):
        pads = padtype_to_pads(lhs_shape[2:], rhs_shape[2:], strides, pads)
    if len(pads) != len(lhs_shape) - 2:
        raise TypeError(f"Wrong number of explicit pads for convolution: expected "
                        f"{len(lhs_shape) - 2}, got {len(pads)}.")
    return (lhs_shape[0] // batch_group_count, rhs_shape[0], *reduce_window_shape_tuple(
        tuple(lhs_shape[2:]), tuple(rhs_shape[2:]), tuple(strides), pads))


def conv_general_shape_tuple(lhs_shape: Shape, rhs_shape: Shape, window_strides: Sequence[int],
                             padding: Any, dimension_numbers: Any) -> Shape:
    """The shape of what `conv_general_dilated` returns.

    >>> conv_general_shape_tuple((1, 5, 5, 2), (3, 3, 2, 4), (1, 2), "VALID",
    ...                          ("NHWC", "HWIO", "NHWC"))
    (1, 3, 2, 4)
    """
    lhs, rhs, out = conv_general_permutations(dimension_numbers)
    return _in_order(conv_shape_tuple(_in_order(lhs_shape, lhs), _in_order(rhs_shape, rhs),
                                      window_strides, padding), inverse(out))


def conv_transpose_shape_tuple(lhs_shape: Shape, rhs_shape: Shape, window_strides: Sequence[int],
                               padding: Any, dimension_numbers: Any) -> Shape:
    """The shape of what `conv_transpose` returns.

    >>> conv_transpose_shape_tuple((1, 5, 5, 2), (3, 3, 2, 4), (1, 2), "VALID",
    ...                            ("NHWC", "HWIO", "NHWC"))
    (1, 7, 11, 4)
    """
    lhs, rhs, out = conv_general_permutations(dimension_numbers)
    shape, weights = _in_order(lhs_shape, lhs), _in_order(rhs_shape, rhs)
    if isinstance(padding, str):
        padding = [_transposed_padding(size, stride, padding)
                   for size, stride in zip(weights[2:], window_strides, strict=True)]
    dilated = (*shape[:2], *map(dilate_dim, shape[2:], window_strides))
    return _in_order(conv_shape_tuple(dilated, weights, (1,) * len(padding), padding), inverse(out))
