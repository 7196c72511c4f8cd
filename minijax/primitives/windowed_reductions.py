"""Windows that slide over an array, and reductions in them: pooling, and its transpose.

Builds on `reduce`, `slicing` and `sort`.  Chapter 23, *An array is a function of an index*.
In JAX: `jax/_src/lax/windowed_reductions.py`.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.core import Array, Axis, Example, ForPrimitive, Outs, Primitive, ShapedArray, refuse
from minijax.primitives import ad_util, comparison, families, slicing, sort, summation
from minijax.primitives.axes import Index, Shape, dilate_dim, with_item
from minijax.primitives.examples import Examples, grid, table
from minijax.primitives.shape import broadcasted_iota, squeeze_p
from minijax.primitives.slots import (LEFT_TO_NUMPY, NUMBER, ORDERED, Reduction, all_weak,
                                      as_chain, check_dtypes, computed_in, extremum_identity,
                                      layout, numpy_scalars)

Padding = tuple[tuple[int, int], ...]  # before and after, for each axis


# ── Sizes ────────────────────────────────────────────────────────────────────────────────────

def stride_dim(n: int, size: int, stride: int, dilation: int = 1) -> int:
    """How many windows fit into an axis of size n."""
    return max((n - dilate_dim(size, dilation)) // stride + 1, 0)


def padtype_to_pads(in_shape: Sequence[int], window_shape: Sequence[int],
                    window_strides: Sequence[int], padding: Any) -> list[tuple[int, int]]:
    """The padding before and after each axis; with "SAME" one window begins at every stride.

    Args:
      in_shape, window_shape, window_strides: a number for each axis.
      padding: "VALID", "SAME" or "SAME_LOWER", which puts the odd element before the axis.

    >>> padtype_to_pads((5, 5), (2, 3), (1, 1), "SAME")
    [(0, 1), (1, 1)]

    Raises:
      RuntimeError: for another string.
      TypeError: for what is no string.
    """
    if not isinstance(padding, str):
        raise TypeError(f"Unknown padding type: {padding}.")
    kind = padding.upper()
    if kind == "VALID":
        return [(0, 0)] * len(tuple(in_shape))
    if kind not in ("SAME", "SAME_LOWER"):
        raise RuntimeError("Unrecognized padding type: expected 'VALID', 'SAME', or "
                           f"'SAME_LOWER', got {padding}.")
    pads = []
    for n, size, stride in zip(in_shape, window_shape, window_strides, strict=True):
        total = int(max((-(-n // stride) - 1) * stride + size - n, 0)) if stride else 0
        less, more = total // 2, total - total // 2
        pads.append((less, more) if kind == "SAME" else (more, less))
    return pads


def reduce_window_shape_tuple(operand_shape: Shape, window_dimensions: Shape, window_strides: Shape,
                              padding: Sequence[tuple[int, int]], base_dilation: Any = None,
                              window_dilation: Any = None) -> Shape:
    """The shape of what `reduce_window` returns.

    >>> reduce_window_shape_tuple((4, 4), (2, 2), (1, 1), [(0, 0), (1, 1)])
    (3, 5)
    """
    ones = (1,) * len(operand_shape)
    return tuple(
        stride_dim(dilate_dim(n, base) + sum(around), size, stride, dilation)
        for n, size, stride, around, base, dilation in zip(
            operand_shape, window_dimensions, window_strides, padding, base_dilation or ones,
            window_dilation or ones, strict=True))


# ── Every window, as new axes ────────────────────────────────────────────────────────────────

def _windows_shape(x: ShapedArray | np.ndarray, window_dimensions: Shape, window_strides: Shape,
                   window_dilation: Shape) -> Shape:
    return tuple(map(stride_dim, x.shape, window_dimensions, window_strides,
                     window_dilation)) + window_dimensions


def _windows_element(s: Any, index: Index, x: Callable[[Index], Any], window_dimensions: Shape,
                     window_strides: Shape, window_dilation: Shape) -> Any:
    rank = len(window_dimensions)
    return x(tuple(s.add(s.mul(i, stride), s.mul(k, dilation)) for i, k, stride, dilation in zip(
        index[:rank], index[rank:], window_strides, window_dilation, strict=True)))


def windows_impl(x: np.ndarray, **params: Shape) -> np.ndarray:
    index = np.ix_(*map(np.arange, _windows_shape(x, **params)))
    return np.asarray(_windows_element(numpy_scalars(), index, x.__getitem__, **params))


def _batch_windows(axis: Axis, args: list, dims: list, **params: Shape) -> Outs:
    """The windows have one element along the batch axis; its window axis is squeezed out."""
    [x], [dim] = args, dims
    out = windows_p.bind(x, **{name: with_item(sizes, dim, 1) for name, sizes in params.items()})
    return [squeeze_p.bind(out, dimensions=(x.ndim + dim,))], [dim]


_WINDOWS = table(
    "window_dimensions window_strides window_dilation",
    (grid(5), (2,), (1,), (1,)), (grid(4, 5), (2, 3), (2, 1), (1, 2)), (grid(2), (3,), (1,), (1,)),
    (grid(6, dtype=np.int32), (2,), (3,), (2,)), (grid(), (), (), ()))

windows_p = ad_util.rearrangement(
    "windows", impl=windows_impl, shape=_windows_shape,
    transpose=lambda ct, x, **params: overlap_p.bind(ct, shape=x.shape, **params),
    batch=_batch_windows,
    source=_windows_element,
    sharding=layout("windowed"),
    examples=_WINDOWS)


# ── The transpose: overlapping elements of windows are added up ──────────────────────────────

def _overlap_type(x: ShapedArray, shape: Shape, **params: Shape) -> list[ShapedArray]:
    whole = x.update(shape=shape)
    refuse((x.shape != _windows_shape(whole, **params),
            f"windows of shape {x.shape} do not cover an array of shape {shape}"))
    return [whole]


def _overlap_impl(x: np.ndarray, shape: Shape, window_dimensions: Shape, window_strides: Shape,
                  window_dilation: Shape) -> list[np.ndarray]:
    rank = len(shape)
    out = np.zeros(shape, computed_in(x.dtype))
    for offset in np.ndindex(window_dimensions):
        there = tuple(np.s_[k * dilation:k * dilation + dilate_dim(count, stride):stride]
                      for k, dilation, count, stride in zip(
                          offset, window_dilation, x.shape[:rank], window_strides, strict=True))
        last: Any = (..., *offset)
        out[there] += x[last] if rank else x
    return [out.astype(x.dtype)]


def _overlap_element(s: Any, index: Index, x: Any, shape: Shape, window_dimensions: Shape,
                     window_strides: Shape, window_dilation: Shape) -> Reduction:
    wide = computed_in(x.dtype)

    def term(*offset: Any) -> Any:
        inside, windows = s.const(True, np.bool_), []
        for place, k, dilation, stride, count in zip(
                index, offset, window_dilation, window_strides, x.shape, strict=False):
            start = s.sub(place, s.mul(k, dilation))
            window = start if stride == 1 else s.div(start, stride)
            inside = s.and_(inside, s.and_(s.ge(start, 0), s.lt(window, count)))
            if stride != 1:
                inside = s.and_(inside, s.eq(s.rem(start, stride), 0))
            windows.append(window)
        return s.choose(inside, lambda: s.convert(x((*windows, *offset)), wide),
                        lambda: s.const(0, wide))
    return Reduction("add", wide, window_dimensions, term, lambda total: s.convert(total, x.dtype))


def _batch_overlap(axis: Axis, args: list, dims: list, shape: Shape, **params: Shape) -> Outs:
    x, rank = ad_util.move_axis(args[0], dims[0], 0), len(shape)
    x = ad_util.reshaped(x, (*x.shape[:rank + 1], 1, *x.shape[rank + 1:]))
    return [overlap_p.bind(x, shape=(axis.size, *shape), **{
        name: (1, *sizes) for name, sizes in params.items()})], [0]


overlap_p = Primitive(
    "overlap", impl=_overlap_impl, abstract_eval=_overlap_type,
    jvp=ad_util.linear(0),
    transpose=ad_util.transposed(lambda ct, x, shape, **params: windows_p.bind(ct, **params)),
    batch=_batch_overlap, may_produce_nan=True, complex_loop=LEFT_TO_NUMPY,
    sharding=layout("overlapped"),
    element=_overlap_element,
    examples=lambda: [
        Example((windows_impl(*e.args, **e.params),), {"shape": e.args[0].shape, **e.params})
        for e in _WINDOWS() if np.prod(e.params["window_dimensions"]) > 1])


def windows_of(x: Array, value: Any, *, padding: Padding, base_dilation: Shape, **params: Shape
               ) -> Array:
    """Every window of an array that is padded with a value around and between its elements."""
    config = tuple((*around, base - 1) for around, base in zip(padding, base_dilation, strict=True))
    if any(map(any, config)):
        value = value if isinstance(value, Array) else ad_util.constant(value, x)
        x = slicing.pad_p.bind(x, value, padding_config=config)
    return windows_p.bind(x, **params)


# ── Sums and extrema in windows ──────────────────────────────────────────────────────────────

def check_windows(shape: Shape, sizes: dict[str, Any]) -> None:
    window = sizes["window_dimensions"]
    for name in ("window_dimensions", "window_strides"):
        refuse((any(n < 1 for n in sizes[name]), f"reduce_window {name} must have every element "
                f"be strictly positive, got {sizes[name]}."))
    refuse((len(window) != len(shape), "reduce_window got the wrong number of window_dimensions "
            f"for operand: got operand shape {shape} with window_dimensions {window}."))
    for name in ("window_strides", "base_dilation", "window_dilation"):
        refuse((len(sizes[name]) != len(shape), f"reduce_window got inconsistent {name} and "
                f"window_dimensions: got {name} {sizes[name]} and window_dimensions {window}."),
               (any(n < 1 for n in sizes[name]), f"All dilations must be positive, got "
                f"{sizes[name]}."))


def check_padding(rank: int, padding: Any) -> None:
    refuse((len(padding) != rank, f"reduce_window padding must have one entry for each of the "
            f"{rank} axes of the operand, got {padding}."), error=ValueError)


def _pooled_type(name: str, accepts: tuple) -> Callable[..., list[ShapedArray]]:
    def rule(*avals: ShapedArray, select_prim: Any = None, **sizes: Any) -> list[ShapedArray]:
        x = avals[-1]
        check_dtypes(name, [x], [accepts])
        check_windows(x.shape, sizes)
        check_padding(x.ndim, sizes["padding"])
        return [avals[0].update(shape=reduce_window_shape_tuple(x.shape, **sizes),
                         weak_type=all_weak(avals))]
    return rule


@ForPrimitive
def _batch_pooled(p: Primitive, axis: Axis, args: list, dims: list, **params: Any) -> Outs:
    args = [ad_util.batch_to(x, d, 0, axis.size) for x, d in zip(args, dims, strict=True)]
    more = {name: ((0, 0) if name == "padding" else 1, *sizes) if isinstance(sizes, tuple)
            else sizes for name, sizes in params.items()}
    return [p.bind(*args, **more)], [0]


def pad_array(x: np.ndarray, value: Any, padding: Padding, base_dilation: Shape) -> np.ndarray:
    """An array padded with a value around and between its elements."""
    config = tuple((*around, base - 1) for around, base in zip(padding, base_dilation, strict=True))
    [out] = slicing.pad_p.impl(x, np.asarray(value, x.dtype), config)
    return out


def window_position(s: Any, index: Index, offset: Index, shape: Shape, window_strides: Shape,
                    padding: Padding, base_dilation: Shape, window_dilation: Shape
                    ) -> tuple[Any, Index]:
    """Whether an element of a window lies inside the array, and the array's index of it."""
    config = [(*around, base - 1) for around, base in zip(padding, base_dilation, strict=True)]
    return slicing.unpadded(s, shape, config, (
        s.add(s.mul(i, stride), s.sub(s.mul(k, dilation), before))
        for i, k, stride, (before, _), dilation in zip(
            index, offset, window_strides, padding, window_dilation, strict=True)))


def _pooling(name: str, op: str, reduce: Any, identity: Callable[[Any], Any], *, accepts: tuple,
             jvp: Any, transpose: Any, kinds: Sequence[Any], dilated: Sequence[Any]) -> Primitive:
    """A primitive that reduces each window; padding is the identity of the operation.

    Args:
      op, reduce: the scalar operation by its name, and NumPy's reduction of the last axis.
      identity: the identity of the operation in a dtype.
    """
    def impl(x: np.ndarray, *, padding: Padding, base_dilation: Shape, **params: Shape) -> list:
        wide = computed_in(x.dtype)
        padded = pad_array(x.astype(wide), identity(x.dtype), padding, base_dilation)
        windows = windows_impl(padded, **params)
        rows = windows.reshape(*windows.shape[:x.ndim], math.prod(windows.shape[x.ndim:]))
        return [reduce(rows).astype(x.dtype)]

    def element(s: Any, index: Index, x: Any, *, window_dimensions: Shape, window_strides: Shape,
                padding: Padding, base_dilation: Shape, window_dilation: Shape) -> Reduction:
        wide = computed_in(x.dtype)

        def term(*offset: Any) -> Any:
            inside, places = window_position(s, index, offset, x.shape, window_strides, padding,
                                             base_dilation, window_dilation)
            return s.choose(inside, lambda: s.convert(x(places), wide),
                            lambda: s.const(identity(x.dtype), wide))
        in_order = op == "add"  # as in XLA; an extremum has no order
        extents, terms = as_chain(s, window_dimensions, term) if in_order else (
            window_dimensions, term)
        return Reduction(op, wide, extents, terms, lambda total: s.convert(total, x.dtype),
                         in_order)

    examples = table(
        "window_dimensions window_strides padding base_dilation window_dilation",
        *((grid(4, 5, dtype=kind), (2, 3), (2, 1), ((0, 0), (1, 1)), (1, 1), (1, 1))
          for kind in kinds),
        *((grid(4, 5, dtype=kind), (1, 2), (1, 2), ((1, 0), (-1, 2)), (2, 1), (1, 2))
          for kind in dilated),
        (grid(3), (2,), (1,), ((0, 1),), (1,), (1,)), (grid(2), (3,), (1,), ((0, 0),), (1,), (1,)))
    return Primitive(name, impl=impl, abstract_eval=_pooled_type(name, accepts), jvp=jvp,
                     transpose=transpose, batch=_batch_pooled, element=element, examples=examples,
                     sharding=layout("windowed"), may_produce_nan=op == "add",
                     complex_loop=LEFT_TO_NUMPY)


def _window_sum_cotangent(ct: Array, x: Any, *, window_dimensions: Shape, window_strides: Shape,
                          padding: Padding, base_dilation: Shape, window_dilation: Shape) -> Array:
    """The sum of the cotangents of all windows that hold an element: a windowed sum again."""
    pads = []
    for n, count, size, stride, (before, _), base, dilation in zip(
            x.aval.shape, ct.shape, window_dimensions, window_strides, padding, base_dilation,
            window_dilation, strict=True):
        reach = dilate_dim(size, dilation) - 1
        first = reach - before
        pads.append((first, dilate_dim(n, base) + reach - dilate_dim(count, stride) - first))
    return reduce_window_sum_p.bind(
        ct, window_dimensions=window_dimensions, window_strides=base_dilation,
        padding=tuple(pads), base_dilation=window_strides, window_dilation=window_dilation)


reduce_window_sum_p = _pooling(
    "reduce_window_sum", "add", summation.chain, lambda dtype: 0, accepts=NUMBER,
    jvp=ad_util.linear(0), transpose=ad_util.transposed(_window_sum_cotangent),
    kinds=[np.float32, np.int32, np.float16], dilated=[np.float64, np.int32])


lowest, highest = (functools.partial(extremum_identity, op) for op in ("max", "min"))


# ── The position of each window's extremum, and the elements of another array there ──────────

def _is_first_extremum(operand: Array, select_prim: Primitive, padding: Padding,
                       base_dilation: Shape, **params: Shape) -> Array:
    """For every element of every window whether it is the first extremum."""
    arg_p, identity = ((sort.argmax_p, lowest) if select_prim is comparison.ge_p else
                       (sort.argmin_p, highest))
    rank = operand.ndim
    windows = windows_of(operand, identity(operand.dtype), padding=padding,
                         base_dilation=base_dilation, **params)
    flat = ad_util.reshaped(windows, (*windows.shape[:rank], math.prod(windows.shape[rank:])))
    first = arg_p.bind(flat, axes=(rank,), index_dtype=np.dtype(np.int32))
    is_first = comparison.eq(broadcasted_iota(np.int32, flat.shape, rank),
                             ad_util.broadcast_at(first, range(rank), flat.shape))
    return ad_util.reshaped(is_first, windows.shape)


def _gather_program(tangents: Array, operand: Array, *, select_prim: Primitive, padding: Padding,
                    base_dilation: Shape, **params: Shape) -> Array:
    is_first = _is_first_extremum(operand, select_prim, padding, base_dilation, **params)
    values = windows_of(tangents, 0, padding=padding, base_dilation=base_dilation, **params)
    selected = comparison.select(is_first, values, ad_util.filled(0, values))
    return ad_util.reduce_sum_p.bind(selected, axes=tuple(range(operand.ndim, selected.ndim)))


def _scatter_program(source: Array, operand: Array, *, select_prim: Primitive, padding: Padding,
                     **params: Shape) -> Array:
    ones = (1,) * operand.ndim
    params = {**params, "window_dilation": ones}
    is_first = _is_first_extremum(operand, select_prim, padding, ones, **params)
    values = ad_util.broadcast_at(source, range(source.ndim), is_first.shape)
    selected = comparison.select(is_first, values, ad_util.filled(0, values))
    shape = tuple(n + sum(around) for n, around in zip(operand.shape, padding, strict=True))
    padded = overlap_p.bind(selected, shape=shape, **params)
    return slicing.pad_p.bind(padded, ad_util.constant(0, padded), padding_config=tuple(
        (-before, -after, 0) for before, after in padding))


def _scatter_type(source: ShapedArray, x: ShapedArray, *, select_prim: Primitive, **sizes: Any
                  ) -> list[ShapedArray]:
    check_dtypes(select_prim.name, [x], [ORDERED])
    shape = reduce_window_shape_tuple(x.shape, **sizes)
    refuse((source.shape != shape, "select_and_scatter_add takes one element for each window, "
                                   f"{shape}, but the source has shape {source.shape}"))
    return [source.update(shape=x.shape, weak_type=source.weak_type and x.weak_type)]


def _gather_cotangent(ct: Array, t: Any, x: Array, *, base_dilation: Shape, window_dilation: Shape,
                      **params: Any) -> Array:
    for name, dilation in (("base", base_dilation), ("window", window_dilation)):
        if set(dilation) - {1}:
            raise NotImplementedError("VJP not implemented for select_and_gather (MaxPool) with "
                                      f"{name} dilation, got {name}_dilation={dilation}.")
    return select_and_scatter_add_p.bind(ct, x, **params)


def _selected_examples(scatter: bool) -> list[Example]:
    cases = []
    for prim in (comparison.ge_p, comparison.le_p):
        for size, stride, around in [((2, 3), (2, 1), ((0, 0), (1, 1))),
                                     ((2, 2), (2, 2), ((0, 1), (1, 0)))]:
            x = np.sin(7 * np.arange(20, dtype=np.float32)).reshape(4, 5)
            source = grid(*reduce_window_shape_tuple(x.shape, size, stride, around))
            ones = {} if scatter else {"base_dilation": (1, 1), "window_dilation": (1, 1)}
            cases.append(Example((source if scatter else grid(4, 5), x), {
                "select_prim": prim, "window_dimensions": size, "window_strides": stride,
                "padding": around, **ones}))
    return cases


def _selecting(name: str, program: Callable[..., Array], abstract_eval: Callable[..., list],
               cotangent: Callable[..., Array], examples: Examples) -> Primitive:
    """A primitive of two arrays, linear in the first; the second decides which elements count."""
    return Primitive(
        name, impl=families.by_program(program), program=program, abstract_eval=abstract_eval,
        jvp=ad_util.linear(0), transpose=ad_util.transposed(cotangent), batch=_batch_pooled,
        examples=examples)


select_and_gather_add_p = _selecting(
    "select_and_gather_add", _gather_program, _pooled_type("select_and_gather_add", ORDERED),
    _gather_cotangent, lambda: _selected_examples(False))

select_and_scatter_add_p = _selecting(
    "select_and_scatter_add", _scatter_program, _scatter_type,
    lambda ct, source, x, **params: select_and_gather_add_p.bind(
        ct, x, base_dilation=(1,) * x.ndim, window_dilation=(1,) * x.ndim, **params),
    lambda: _selected_examples(True))


def _extremum(name: str, op: str, select_prim: Primitive, identity: Callable) -> Primitive:
    def jvp(primals: list, tangents: list, **params: Any) -> Outs:
        [x], [t] = primals, tangents
        tangent = select_and_gather_add_p.bind(t, x, select_prim=select_prim, **params)
        return [p.bind(x, **params)], [tangent]

    p = _pooling(name, op, functools.partial(getattr(np, op), axis=-1), identity,
                 accepts=ORDERED, jvp=jvp, transpose=ad_util.NOT_LINEAR,
                 kinds=[np.float32, np.int32, np.float16], dilated=[np.int32])
    return p


reduce_window_max_p = _extremum("reduce_window_max", "max", comparison.ge_p, lowest)
reduce_window_min_p = _extremum("reduce_window_min", "min", comparison.le_p, highest)
