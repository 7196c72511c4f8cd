"""Convolutions: sums of products over the elements of windows and over features.

Stands on `contract` and `windowed_reductions`.  Chapter 24, *Loops and Numba*.
In JAX: `jax/_src/lax/convolution.py`.
"""

import functools
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple, Union

import numpy as np

from minijax import core, dtypes
from minijax.core import Array, Axis, Example, Primitive, ShapedArray
from minijax.primitives import convert, ad_util, families
from minijax.primitives.axes import Axes, Index, Outs, Shape, as_dims, refuse
from minijax.primitives.examples import spaced
from minijax.primitives.precision import canonical_precision
from minijax.primitives.shape import rev_p
from minijax.primitives.slicing import pad_p
from minijax.primitives.windowed_reductions import (Padding, padtype_to_pads, places_in, spanned,
                                                    surrounded, windows_impl, windows_that_fit)
from minijax.primitives.slots import Reduction, all_weak, check_same_dtypes, computed_in


class ConvDimensionNumbers(NamedTuple):
    """Where the axes of a convolution are, by numbers.

    Args:
      lhs_spec: of the left: its batch axis, that of features, and those that windows slide along.
      rhs_spec: of the right: its axis of output features, of input features, and the same.
      out_spec: of the result: batch, features, and the same.
    """

    lhs_spec: Axes
    rhs_spec: Axes
    out_spec: Axes


ConvGeneralDilatedDimensionNumbers = Union[  # noqa: UP007  as JAX's, which prints so
    tuple[str, str, str], ConvDimensionNumbers, None]


# ── Axes by letters ──────────────────────────────────────────────────────────────────────────

def conv_general_permutations(dimension_numbers: Sequence[str]) -> tuple[Axes, Axes, Axes]:
    """The places of batch, features and the rest, from letters: ``("NHWC", "HWIO", "NHWC")``.

    >>> conv_general_permutations(("NHWC", "HWIO", "NHWC"))
    ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))

    Raises:
      ValueError, TypeError: where letters are missing, doubled, or not the same.
    """
    lhs, rhs, out = dimension_numbers
    for i, (letters, needed) in enumerate(zip((lhs, rhs, out), ("NC", "OI", "NC"), strict=True)):
        refuse((len(set(letters)) != len(letters), f"convolution dimension_numbers[{i}] cannot have"
                                                   f" duplicate characters, got {letters}."))
        refuse((not set(needed) <= set(letters),
                f"convolution dimension_numbers[{i}] must contain the characters '{needed[0]}' and "
                f"'{needed[1]}', got {letters}."))
    slid = [c for c in rhs if c not in "OI"]
    refuse((not set(lhs) - set("NC") == set(slid) == set(out) - set("NC"),
            "convolution dimension_numbers elements must each have the same set of spatial "
            f"characters, got {dimension_numbers}."))

    def places(letters: str, first: str) -> Axes:
        return tuple(map(letters.index, (*first, *slid)))
    return places(lhs, "NC"), places(rhs, "OI"), places(out, "NC")


def conv_dimension_numbers(lhs_shape: Shape, rhs_shape: Shape, dimension_numbers: Any
                           ) -> ConvDimensionNumbers:
    """The places of axes, as numbers.

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
    refuse((len(dimension_numbers) != 3, "convolution dimension_numbers list/tuple must be of "
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
    """What a convolution is over.  Groups are parts of the features, or else of the batch.

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
    places = tuple(
        windows_that_fit(spanned(n, base) + sum(around), size, stride, dilation)
        for n, size, stride, around, base, dilation in zip(
            slid, window, window_strides, padding, lhs_dilation, rhs_dilation, strict=True))
    return Sizes(batch // batch_group_count, groups, inside, outputs // groups, tuple(slid),
                 tuple(window), places)


def _conv_type(lhs: ShapedArray, rhs: ShapedArray, *, dimension_numbers: ConvDimensionNumbers,
               preferred_element_type: Any, feature_group_count: int, batch_group_count: int,
               **params: Any) -> list[ShapedArray]:
    name = "conv_general_dilated"
    check_same_dtypes(name, lhs, rhs)
    batch, features = (lhs.shape[d] for d in dimension_numbers.lhs_spec[:2])
    outputs, inside = (rhs.shape[d] for d in dimension_numbers.rhs_spec[:2])
    window = [rhs.shape[d] for d in dimension_numbers.rhs_spec[2:]]
    for kind, count, of, size, argument in (
            ("feature", feature_group_count, "lhs feature", features, "feature_group_count"),
            ("batch", batch_group_count, "lhs batch", batch, "batch_group_count")):
        refuse((count < 1, f"{name} {kind}_group_count must be a positive integer, got {count}."),
               error=ValueError)
        refuse((size % count != 0, f"{name} {argument} must divide {of} dimension size, but "
                                   f"{count} does not divide {size}."), error=ValueError)
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
    for what, given in params.items():
        if what == "precision":
            continue
        refuse((len(given) != len(window), f"{name} window and {what} must have the same number of "
                f"dimensions, but got {len(window)} and {len(given)}"),
               (what != "padding" and min(given, default=1) < 1,
                f"{name} {what} must be positive, got {given}"), error=ValueError)
    sizes = sizes_of(lhs.shape, rhs.shape, dimension_numbers=dimension_numbers,
                     feature_group_count=feature_group_count, batch_group_count=batch_group_count,
                     **params)
    whole = (sizes.batch, sizes.groups * sizes.outputs, *sizes.places)
    shape = tuple(whole[dimension_numbers.out_spec.index(d)] for d in range(lhs.ndim))
    return [ShapedArray(shape, preferred_element_type or lhs.dtype, all_weak([lhs, rhs]))]


# ── The meaning: products of every window ────────────────────────────────────────────────────

def _grouped(x: np.ndarray, spec: Axes, axis: int, groups: int) -> np.ndarray:
    """The axes in the order of `spec`, one of them cut, its groups in front."""
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
    slid = surrounded(x, 0, ((0, 0),) * 3 + padding, (1,) * 3 + lhs_dilation)
    found = windows_impl(slid, window_dimensions=(1, 1, 1, *w.shape[3:]),
                         window_strides=(1, 1, 1, *window_strides),
                         window_dilation=(1, 1, 1, *rhs_dilation))
    found = found.reshape(*found.shape[:3 + rank], *w.shape[3:]).astype(wide)  # g n c s… k…
    names = "gnc" + "stuvw"[:rank] + "klmpq"[:rank]
    out = np.einsum(f"{names},go{names[2]}{names[3 + rank:]}->ngo{names[3:3 + rank]}",
                    found, w.astype(wide))
    out = out.reshape(out.shape[0], rhs.shape[dimension_numbers.rhs_spec[0]], *out.shape[3:])
    return [np.transpose(out, np.argsort(dimension_numbers.out_spec)).astype(dtype)]


def _conv_element(s: Any, index: Index, x: Any, w: Any, *, dimension_numbers: ConvDimensionNumbers,
                  preferred_element_type: Any, **params: Any) -> Reduction:
    """A sum of products over features and windows; what lies outside is zero."""
    dtype = np.dtype(preferred_element_type or x.dtype)
    wide = np.promote_types(computed_in(dtype), computed_in(x.dtype))
    sizes = sizes_of(x.shape, w.shape, dimension_numbers=dimension_numbers, **params)
    n, output, *places = (index[d] for d in dimension_numbers.out_spec)
    group = s.div(output, sizes.outputs) if sizes.groups > 1 else s.const(0, np.int64)
    of_features = params["feature_group_count"] > 1

    def term(feature: Any, *offset: Any) -> Any:
        inside, at = places_in(s, tuple(places), offset, sizes.slid, *(params[name] for name in (
            "window_strides", "padding", "lhs_dilation", "rhs_dilation")))
        channel = s.add(s.mul(group, sizes.features), feature) if of_features else feature
        row = n if of_features else s.add(s.mul(group, sizes.batch), n)
        left, right = [0] * len(index), [0] * len(index)
        for axis, value in zip(dimension_numbers.lhs_spec, (row, channel, *at), strict=True):
            left[axis] = value
        for axis, value in zip(dimension_numbers.rhs_spec, (output, feature, *offset), strict=True):
            right[axis] = value
        return s.choose(inside, lambda: s.mul(s.convert(x(tuple(left)), wide),
                                              s.convert(w(tuple(right)), wide)),
                        lambda: s.const(0, wide))
    return Reduction("or" if wide.kind == "b" else "add", wide, (sizes.features, *sizes.window),
                     term, lambda total: s.convert(total, dtype))


# ── Derivatives: convolutions again ──────────────────────────────────────────────────────────

def _swapped(spec: Axes) -> Axes:
    return (spec[1], spec[0], *spec[2:])


def _regrouped(x: Array, source: int, target: int, groups: int) -> Array:
    """The groups of one axis made groups of another, in front of what that has."""
    size = x.shape[source] // groups
    cut = ad_util.reshaped(x, (*x.shape[:source], groups, size, *x.shape[source + 1:]))
    goal = target + (target > source)
    moved = ad_util.move_axis(cut, source, goal - (goal > source))
    at = moved.shape
    joint = goal - (goal > source)
    return ad_util.reshaped(moved, (*at[:joint], at[joint] * at[joint + 1], *at[joint + 2:]))


def _around(sizes: Sequence[int], stride: Shape, before: Sequence[int], base: Sequence[int],
            n: Sequence[int], windows: Sequence[int], dilation: Shape) -> Padding:
    """The padding with which windows of these sizes, that begin `before`, are so many."""
    return tuple(
        (b, (count - 1) * step + spanned(size, d) - spanned(have, every) - b)
        for size, step, b, every, have, count, d in zip(
            windows, stride, before, base, n, sizes, dilation, strict=True))


def _of_lhs(ct: Array, lhs: Any, rhs: Array, *, dimension_numbers: ConvDimensionNumbers,
            window_strides: Shape, padding: Padding, lhs_dilation: Shape, rhs_dilation: Shape,
            feature_group_count: int, batch_group_count: int, **params: Any) -> Array:
    """The cotangent slides along the windows turned round, as far apart as they were strided."""
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    shape = lhs.aval.shape
    slid, window = [shape[d] for d in lhs_spec[2:]], [rhs.shape[d] for d in rhs_spec[2:]]
    places = [ct.shape[d] for d in out_spec[2:]]
    groups = feature_group_count * batch_group_count
    turned = rev_p.bind(rhs, dimensions=rhs_spec[2:])
    if groups > 1:
        turned = _regrouped(turned, rhs_spec[0], rhs_spec[1], groups)
    before = [spanned(size, d) - 1 - b for size, d, (b, _) in zip(
        window, rhs_dilation, padding, strict=True)]
    out = conv_general_dilated_p.bind(
        ct, turned, window_strides=lhs_dilation, lhs_dilation=window_strides,
        rhs_dilation=rhs_dilation, feature_group_count=groups, batch_group_count=1,
        padding=_around(slid, lhs_dilation, before, window_strides, places, window, rhs_dilation),
        dimension_numbers=ConvDimensionNumbers(out_spec, _swapped(rhs_spec), lhs_spec), **params)
    if batch_group_count > 1:
        out = _regrouped(out, lhs_spec[1], lhs_spec[0], batch_group_count)
    return convert.converted(out, lhs.aval.dtype, out.weak_type)


def _of_rhs(ct: Array, lhs: Array, rhs: Any, *, dimension_numbers: ConvDimensionNumbers,
            window_strides: Shape, padding: Padding, lhs_dilation: Shape, rhs_dilation: Shape,
            feature_group_count: int, batch_group_count: int, **params: Any) -> Array:
    """The cotangent is the window now; what was the batch is summed over as features are."""
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    shape = rhs.aval.shape
    slid, window = [lhs.shape[d] for d in lhs_spec[2:]], [shape[d] for d in rhs_spec[2:]]
    places = [ct.shape[d] for d in out_spec[2:]]
    before = [b for b, _ in padding]
    if feature_group_count > 1:  # groups of features are groups of what now is the batch
        batches, groups = feature_group_count, 1
    else:
        batches, groups = 1, batch_group_count
    out = conv_general_dilated_p.bind(
        lhs, ct, window_strides=rhs_dilation, lhs_dilation=lhs_dilation,
        rhs_dilation=window_strides, feature_group_count=groups, batch_group_count=batches,
        padding=_around(window, rhs_dilation, before, lhs_dilation, slid, places, window_strides),
        dimension_numbers=ConvDimensionNumbers(_swapped(lhs_spec), _swapped(out_spec),
                                               _swapped(rhs_spec)), **params)
    return convert.converted(out, rhs.aval.dtype, out.weak_type)


# ── Batching: an axis more of the batch, of features, or of groups ───────────────────────────

def _into(x: Array, source: int, target: int) -> Array:
    """An axis joined to another, in front of what that has; the result lacks it."""
    size = x.shape[source]
    moved = ad_util.move_axis(x, source, target)
    return ad_util.reshaped(moved, (*moved.shape[:target], size * moved.shape[target + 1],
                                    *moved.shape[target + 2:]))


def _out_of(x: Array, axis: int, size: int) -> Array:
    """The inverse: a new axis at the place of an old one, which is behind it now."""
    return ad_util.reshaped(x, (*x.shape[:axis], size, x.shape[axis] // size, *x.shape[axis + 1:]))


def _conv_batch(axis: Axis, args: list, dims: list, *, dimension_numbers: ConvDimensionNumbers,
                feature_group_count: int, batch_group_count: int, **params: Any) -> Outs:
    lhs, rhs = args
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    counts = {"feature_group_count": feature_group_count, "batch_group_count": batch_group_count}
    same = {"dimension_numbers": dimension_numbers, **params}
    if not axis.size:  # joined to another axis, it would hide how long that one is
        rows = [x.aval.update(shape=tuple(n for i, n in enumerate(x.shape) if i != d))
                for x, d in zip(args, dims, strict=True)]
        [row] = conv_general_dilated_p.type_of(rows, {**same, **counts})
        return [ad_util.zeros(row.update(shape=(0, *row.shape)))], [0]
    if dims[1] is None:
        if batch_group_count == 1:
            out = conv_general_dilated_p.bind(_into(lhs, dims[0], lhs_spec[0]), rhs, **same,
                                              **counts)
            return [_out_of(out, out_spec[0], axis.size)], [out_spec[0]]
    elif dims[0] is None and feature_group_count == batch_group_count == 1:
        out = conv_general_dilated_p.bind(lhs, _into(rhs, dims[1], rhs_spec[0]), **same, **counts)
        return [_out_of(out, out_spec[1], axis.size)], [out_spec[1]]
    lhs, rhs = (ad_util.batched_in_front(x, d, axis.size) for x, d in zip(args, dims, strict=True))
    kind = "batch_group_count" if batch_group_count > 1 else "feature_group_count"
    counts[kind] *= axis.size
    groups_of = lhs_spec[kind == "feature_group_count"]
    out = conv_general_dilated_p.bind(_into(lhs, 0, groups_of), _into(rhs, 0, rhs_spec[0]), **same,
                                      **counts)
    return [_out_of(out, out_spec[1], axis.size)], [out_spec[1]]


# ── The primitive and its functions ──────────────────────────────────────────────────────────

def _conv_examples() -> list[Example]:
    def case(lhs: Shape, rhs: Shape, letters: Any = None, dtype: Any = np.float32, *,
             strides: Any = None, padding: Any = None, base: Any = None, dilation: Any = None,
             features: int = 1, batches: int = 1, preferred: Any = None) -> Example:
        ones = (1,) * (len(lhs) - 2)
        size = 3. if np.dtype(dtype).kind == "i" else .5
        arrays = tuple(spaced(-size, size, shape, float, i).astype(dtype)
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
    "conv_general_dilated",
    impl=_conv_impl,
    abstract_eval=_conv_type,
    jvp=families.per_argument(
        lambda t, out, x, w, **params: conv_general_dilated_p.bind(t, w, **params),
        lambda t, out, x, w, **params: conv_general_dilated_p.bind(x, t, **params)),
    transpose=ad_util.transposed(_of_lhs, _of_rhs),
    batch=_conv_batch,
    library=functools.partial(families.kernel("convolution"), pad=pad_p.bind,
                              sizes_of=sizes_of, as_sums=Primitive(
        "conv_general_dilated", abstract_eval=_conv_type, element=_conv_element).bind),
    examples=_conv_examples)


def each(given: Any, rank: int) -> Shape:
    """One for each axis where nothing is given."""
    return (1,) * rank if given is None else as_dims(given)


def conv_general_dilated(lhs: Any, rhs: Any, window_strides: Sequence[int], padding: Any,
                         lhs_dilation: Sequence[int] | None = None,
                         rhs_dilation: Sequence[int] | None = None, dimension_numbers: Any = None,
                         feature_group_count: int = 1, batch_group_count: int = 1,
                         precision: Any = None, preferred_element_type: Any = None,
                         out_sharding: Any = None) -> Array:
    """Sums over windows and features of an array times weights: a convolution of any kind.

    Args:
      lhs: an array with a batch axis, one of features, and those that windows slide along.
      rhs: the weights: output features, input features, and the sizes of a window.
      window_strides: how many places the windows are apart.
      padding: "SAME", "VALID", "SAME_LOWER", or how many zeros to add before and after each axis.
      lhs_dilation, rhs_dilation: how far apart the elements of lhs, and of a window, are set.
      dimension_numbers: where the axes are: letters, ``("NHWC", "HWIO", "NHWC")``, or numbers.
      feature_group_count, batch_group_count: into how many parts features, or the batch, fall that
        have weights of their own.
      precision: accepted for JAX's sake.
      preferred_element_type: the dtype to sum in and to return.

    Raises:
      TypeError, ValueError: where axes, sizes or groups do not fit.

    >>> import numpy as np
    >>> conv_general_dilated(np.ones((1, 1, 4)), np.ones((1, 1, 3)), (1,), "SAME")
    Array([[[2., 3., 3., 2.]]], dtype=float32)
    """
    lhs, rhs = core.as_value(lhs), core.as_value(rhs)
    numbers = conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    rank = len(numbers.lhs_spec) - 2
    strides = as_dims(window_strides)
    base, dilation = each(lhs_dilation, rank), each(rhs_dilation, rank)
    if isinstance(padding, str):
        refuse((len(strides) != rank, "conv_general_dilated window and window_strides must have the"
                f" same number of dimensions, but got {rank} and {len(strides)}"),
               (len(dilation) != rank, "conv_general_dilated window and rhs_dilation must have the "
                f"same number of dimensions, but got {rank} and {len(dilation)}"),
               (set(base) != {1} and rank > 0, "String padding is not implemented for transposed "
                "convolution using this op. Please either exactly specify the required padding or "
                "use conv_transpose."), error=ValueError)
        around = padtype_to_pads([lhs.shape[d] for d in numbers.lhs_spec[2:]],
                                 [spanned(rhs.shape[d], k) for d, k in zip(
                                     numbers.rhs_spec[2:], dilation, strict=True)],
                                 strides, padding)
    else:
        refuse((len(padding) != rank, "Wrong number of explicit pads for convolution: expected "
                                      f"{rank}, got {len(padding)}."))
        around = padding
    return conv_general_dilated_p.bind(
        lhs, rhs, window_strides=strides, padding=tuple(map(as_dims, around)), lhs_dilation=base,
        rhs_dilation=dilation, dimension_numbers=numbers,
        feature_group_count=operator.index(feature_group_count),
        batch_group_count=operator.index(batch_group_count),
        precision=canonical_precision(precision),
        preferred_element_type=dtypes.check_user_dtype_supported(preferred_element_type, "conv"))
