"""Primitives gather and the scatters: windows read and written at computed positions.

Builds on `windows`.  Chapters 13 and 14 (*In-place updates*, *Out-of-bounds indexing*).
In JAX: `jax/_src/lax/slicing.py`.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from minijax import core, dtypes
from minijax.core import Array, Axis, Example, ForPrimitive, Outs, Primitive, ShapedArray, cannot
from minijax.primitives.algebra import add, div_p, extremum, mul_p, neg_p
from minijax.primitives.axes import Index, Shape, as_dims, canonical_shape, without
from minijax.primitives import comparison, convert, families, joining, rounding, slots
from minijax.primitives.ad_util import (batch_to, each_part, filled, instantiate, linear,
                                        move_axis, transposed, zeros)
from minijax.primitives.examples import Examples, grid, table
from minijax.primitives.shape import expand_dims, iota, reshape
from minijax.primitives.slicing import part
from minijax.primitives.windows import (
    GatherDimensionNumbers, GatherScatterMode, Numbers, ScatterDimensionNumbers, batched_numbers,
    check_gather, check_scatter, gathered_shape, place_of, places_of, whole_axes, window_sizes)

CLIP, FILL_OR_DROP = GatherScatterMode.CLIP, GatherScatterMode.FILL_OR_DROP
PROMISE = GatherScatterMode.PROMISE_IN_BOUNDS


def _examples() -> list[tuple]:
    """Operand shape, indices, dimension numbers, window sizes, mode; whether places are unique."""
    rows, windows = ((1,), (0,), (0,)), ((1, 2), (), (1, 0))
    cases = [
        ((4, 3), [[2], [0]], rows, (1, 3), FILL_OR_DROP, True),
        ((4, 3), [[9], [-1]], rows, (1, 3), FILL_OR_DROP, True),
        ((4, 3), [[0, 2]], windows, (2, 2), CLIP, True),
        ((2, 3), [[[0], [2]], [[1], [0]]], ((), (1,), (1,), (0,), (0,)), (1, 1),
         PROMISE, True),
        ((3, 2), np.zeros((0, 1)), rows, (1, 2), FILL_OR_DROP, True),
        ((4, 3), [[2], [2], [0]], rows, (1, 3), FILL_OR_DROP, False),
        ((4, 3), [[7, 7], [0, 0]], windows, (2, 2), CLIP, False)]
    return [(shape, np.array(indices, np.int32), *rest) for shape, indices, *rest in cases]


# ── gather ───────────────────────────────────────────────────────────────────────────────────

def _gather_type(x: ShapedArray, indices: ShapedArray, *, dimension_numbers: Numbers,
                 slice_sizes: Shape, **_: Any) -> list[ShapedArray]:
    check_gather(x, indices, dimension_numbers, slice_sizes)
    return [x.update(shape=gathered_shape(dimension_numbers, slice_sizes, indices.shape))]


def _gather_impl(x: np.ndarray, indices: np.ndarray, *, dimension_numbers: Numbers,
                 slice_sizes: Shape, mode: GatherScatterMode, fill_value: Any, **_: Any
                 ) -> list[np.ndarray]:
    shape = gathered_shape(dimension_numbers, slice_sizes, indices.shape)
    if 0 in shape:
        return [np.zeros(shape, x.dtype)]
    places, inside = places_of(dimension_numbers, x.shape, slice_sizes, indices, shape)
    whole = whole_axes(dimension_numbers, x.shape, slice_sizes, len(shape))
    outer, rows = x.ndim - whole, shape[:len(shape) - whole]
    at = np.broadcast_to(_flat(places[:outer], x.shape), (*rows, *[1] * whole)).reshape(rows)
    taken = x.reshape(-1, *x.shape[outer:]).take(at.astype(np.intp, copy=False), 0, mode="clip")
    if mode is FILL_OR_DROP and not np.all(inside):
        taken = np.where(inside, taken, np.asarray(fill_value).astype(x.dtype))
    return [taken]


def _flat(places: Sequence[Any], shape: Shape) -> Any:
    """The row-major positions of places along the first axes of an array of this shape."""
    return functools.reduce(lambda flat, pair: flat * pair[0] + pair[1],
                            zip(shape, places, strict=False), 0)


def _gather_tangent(t: Array, out: Array, x: Array, indices: Array, *, fill_value: Any,
                    **params: Any) -> Array:
    """The tangent of a fill value is zero."""
    return gather_p.bind(t, indices, fill_value=None if fill_value is None else 0, **params)


def _transpose_gather(ct: Array, x: Any, indices: Array, *, fill_value: Any, slice_sizes: Shape,
                      dimension_numbers: Numbers, **params: Any) -> Array:
    return scatter_add_p.bind(
        zeros(ShapedArray(x.aval.shape, ct.dtype)), indices, ct,
        dimension_numbers=ScatterDimensionNumbers(*dimension_numbers), **params)


def _batch_gather(axis: Axis, args: list, dims: list, *, dimension_numbers: Numbers,
                  slice_sizes: Shape, **params: Any) -> Outs:
    args = [a if d is None else move_axis(a, d, 0) for a, d in zip(args, dims, strict=True)]
    operand_too, indices_too = (d is not None for d in dims)
    if operand_too:
        slice_sizes = (min(axis.size, 1) if indices_too else axis.size, *slice_sizes)
    else:
        params |= {"unique_indices": False, "indices_are_sorted": False}
    dnums = batched_numbers(dimension_numbers, operand_too, indices_too)
    return [gather_p.bind(*args, dimension_numbers=dnums, slice_sizes=slice_sizes, **params)], [0]


def _gather_element(s: Any, index: Index, x: Any, indices: Any, *, dimension_numbers: Numbers,
                    slice_sizes: Shape, mode: GatherScatterMode, fill_value: Any, **_: Any) -> Any:
    place, inside = place_of(s, dimension_numbers, x.shape, slice_sizes, indices, index)
    taken = x(place)
    if mode is not FILL_OR_DROP:
        return taken
    return s.select(inside, taken, s.const(np.asarray(fill_value).astype(x.dtype)[()], x.dtype))


def gather_params(x: Any, dnums: Numbers, sizes: Sequence[int], mode: GatherScatterMode,
                  fill_value: Any = None, unique_indices: bool = False,
                  indices_are_sorted: bool = False) -> dict[str, Any]:
    """The parameters of a gather from `x`; by default indices may repeat and be unsorted."""
    if mode is not FILL_OR_DROP:
        fill_value = None
    elif fill_value is None:
        fill_value = default_fill(core.get_aval(x).dtype)
    return {"dimension_numbers": dnums, "slice_sizes": canonical_shape(sizes), "mode": mode,
            "fill_value": fill_value, "unique_indices": bool(unique_indices),
            "indices_are_sorted": bool(indices_are_sorted)}


def _gather_examples() -> list[Example]:
    rows: list[tuple] = [(grid(*shape), indices, numbers, sizes, mode)
                         for shape, indices, numbers, sizes, mode, _ in _examples()]
    scalars = (grid(3, dtype=np.int32), np.array([[1], [5]], np.uint8), ((), (0,), (0,)), (1,),
               FILL_OR_DROP, -1)
    return [Example((x, indices), gather_params(x, GatherDimensionNumbers(*numbers), *told))
            for x, indices, numbers, *told in [*rows, scalars]]


def _gather_parts(c: Any, z: Any, indices: Array, *, fill_value: Any, **params: Any) -> Any:
    fills = [None] * 2 if fill_value is None else [
        float(part) for part in (np.real(fill_value), np.imag(fill_value))]
    return c.Pair(*(gather_p.bind(x, indices, fill_value=fill, **params)
                    for x, fill in zip(z.parts, fills, strict=True)))


gather_p = Primitive(
    "gather", impl=_gather_impl, abstract_eval=_gather_type,
    jvp=families.per_argument(_gather_tangent, None), transpose=transposed(_transpose_gather),
    batch=_batch_gather, sharding=slots.layout("gather"),
    element=_gather_element, complex_parts=_gather_parts,
    examples=_gather_examples)


def take_along_axis(x: Array, places: Array, axis: int, mode: GatherScatterMode = PROMISE,
                    fill_value: Any = None) -> Array:
    """The elements at places along an axis; the other axes of the places are batch axes of `x`.

    >>> take_along_axis(core.as_value(np.arange(3)), core.as_value(np.array([2, 0])), 0)
    Array([2, 0], dtype=int32)
    """
    paired = without(range(places.ndim), (axis,))
    window = tuple(range(places.ndim, x.ndim))
    sizes = (1,) * places.ndim + x.shape[places.ndim:]
    dnums = GatherDimensionNumbers(window, (axis,), (axis,), paired, paired)
    return gather_p.bind(x, expand_dims(places, (places.ndim,)), **gather_params(
        x, dnums, sizes, mode, fill_value))


# ── The family of scatters ───────────────────────────────────────────────────────────────────

Write = Callable[[np.ndarray, np.ndarray, np.ndarray], Any]  # (flat operand, places, updates)


def _impl(write: Write) -> Callable[..., list]:
    """The meaning: one update after another, in row-major order."""
    def impl(x: np.ndarray, indices: np.ndarray, updates: np.ndarray, *,
             dimension_numbers: Numbers, mode: GatherScatterMode, **_: Any) -> list[np.ndarray]:
        out, shape = np.array(x, order="C"), updates.shape
        if out.size == 0:
            return [out]
        sizes = window_sizes(dimension_numbers, x.shape, shape)
        places, inside = places_of(dimension_numbers, x.shape, sizes, indices, shape)
        flat = np.broadcast_to(_flat(places, x.shape), shape)
        kept = np.broadcast_to(mode is CLIP or inside, shape)
        write(out.reshape(-1), flat[kept].astype(np.intp, copy=False), updates[kept])
        return [out]
    return impl


@ForPrimitive
def _batch_scatter(p: Primitive, axis: Axis, args: list, dims: list, *,
                   dimension_numbers: Numbers, **params: Any) -> Outs:
    x, updates = (batch_to(args[k], dims[k], 0, axis.size) for k in (0, 2))
    indices = args[1] if dims[1] is None else move_axis(args[1], dims[1], 0)
    dnums = batched_numbers(dimension_numbers, True, dims[1] is not None)
    return [p.bind(x, indices, updates, dimension_numbers=dnums, **params)], [0]


Join = Callable[[Any, Sequence[Any], Sequence[Any]], Sequence[Any]]

BLOCKS = 8      # of many updates of few places, each with its own partial result
MANY = 1 << 16
COLUMNS = 32    # of many updates of rows, one part of the rows for a thread


def scatter_loop(join: Join | None, op: str = "") -> Callable[..., None]:
    """Copy the operands, then visit the updates; ``join(b, old, updates)`` is written back.

    With an associative `op`, updates may be combined in blocks first.
    """
    def loop(b: Any, outputs: list, operands: list, *, dimension_numbers: Any,
             mode: GatherScatterMode, unique_indices: bool, indices_are_sorted: bool) -> None:
        if b.on_gpu:
            families.kernel("scatter")(
                b, outputs, operands, dimension_numbers=dimension_numbers, mode=mode, join=join,
                op=op, unique_indices=unique_indices, indices_are_sorted=indices_are_sorted)
            return
        count, out = len(outputs), outputs[0]
        olds, (indices, *updates) = operands[:count], operands[count:]
        rank, shape = updates[0].ndim, updates[0].shape or (1,)
        sizes = window_sizes(dimension_numbers, out.shape, updates[0].shape)
        few = op and updates[0].size >= max(MANY, 4 * BLOCKS * out.size)
        step = shape[0] // BLOCKS if few else 0
        # Trailing window axes lead to different places, and need one bounds check together.
        last = max((d + 1 for d in range(len(shape)) if d not in dimension_numbers[0]), default=1)
        # Updates of whole rows are independent in each column.
        in_columns = (not few and updates[0].size >= MANY and last < len(shape)
                      and shape[-1] == sizes[-1] == out.shape[-1] and shape[-1] % COLUMNS == 0)
        extents = (*shape[last:-1], COLUMNS) if in_columns else shape[last:]

        def place_at(*index: Any) -> tuple:
            return place_of(b, dimension_numbers, out.shape, sizes, indices, index[:rank])

        def visit(into: list, prefix: Index, i: Any, first: Any = 0) -> None:
            with slots.nest(b, shape[1:last]) as rest:
                _, inside = place_at(i, *rest, *[b.index(0)] * (len(shape) - last))
                with (contextlib.nullcontext() if mode is CLIP else b.when(inside),
                      slots.nest(b, extents, "parallel") as window):
                    if in_columns:
                        window = *window[:-1], b.add(first, window[-1])
                    place = (*prefix, *place_at(i, *rest, *window)[0])
                    new: Sequence[Any] = [x((i, *rest, *window)[:rank]) for x in updates]
                    if join:
                        new = join(b, [b.load(each, place) for each in into], new)
                    for each, x in zip(into, new, strict=True):
                        b.store(each, place, x)

        if 0 in out.shape:
            return  # no place is inside
        if step:
            partial = b.temp((BLOCKS, *out.shape), out.dtype, "partial")
            with b.loop(BLOCKS, vectorize="parallel") as block:
                with slots.nest(b, out.shape) as place:
                    b.store(partial, (block, *place), b.starting_value(op, out.dtype))
                with b.loop(step) as k:
                    visit([partial], (block,), b.add(b.mul(block, step), k))
            with slots.nest(b, out.shape, "parallel") as place:
                totals = (b.load(partial, (block, *place)) for block in range(BLOCKS))
                b.store(out, place, functools.reduce(getattr(b, op), totals, olds[0](place)))
        else:
            for x, each in zip(olds, outputs, strict=True):
                b.materialize(x, into=each)
        with (b.loop(shape[-1] // COLUMNS if in_columns else 1, vectorize="parallel") as part,
              b.loop(shape[0], BLOCKS * step) as i):
            visit(outputs, (), i, b.mul(part, COLUMNS))
    return loop


def scatter_examples(*dtypes_tried: Any, unique: bool = False) -> Examples:
    """Examples with several updates of one place, unless each place must be `unique`."""
    nowhere = [((0, 3), np.zeros((1, 1), np.int32), ((1,), (0,), (0,)), (1, 3), mode, True)
               for mode in (FILL_OR_DROP, CLIP)]
    return lambda: table("dimension_numbers indices_are_sorted unique_indices mode", *(
        (grid(*shape, dtype=dtype), indices,
         (grid(*gathered_shape(dnums, sizes, indices.shape)) * 2 - 5).astype(dtype),
         dnums, False, unique, mode)
        for dtype in dtypes_tried
        for shape, indices, numbers, sizes, mode, are_unique in _examples() + nowhere
        for dnums in [ScatterDimensionNumbers(*numbers)] if are_unique >= unique))()


def scatter_family(op: str, *, write: Write, jvp: Any = None, transpose: Any,
                   examples: Examples | None = None) -> Primitive:
    """A primitive that updates an operand at computed places, one update after another.

    Args:
      op: the scalar operation of the old element and an update; "": the update replaces it.
      write: ``(flat operand, positions, updates)``, in place, in NumPy.
      jvp: by default that of an operation linear in operand and updates.
      transpose, examples: as in `Primitive`.
    """
    def abstract_eval(x: ShapedArray, indices: ShapedArray, updates: ShapedArray, *,
                      dimension_numbers: Numbers, **_: Any) -> list[ShapedArray]:
        check_scatter(x, indices, updates, dimension_numbers)
        if op in ("add", "sub", "mul"):
            slots.check_dtypes(op, [x, updates], [slots.NUMBER, slots.NUMBER])
        return [x]

    return Primitive(
        f"scatter-{op}" if op else "scatter",
        impl=_impl(write), abstract_eval=abstract_eval,
        jvp=jvp or linear(0, 2), transpose=transpose,
        batch=_batch_scatter, sharding=slots.layout("scatter", op=op),
        loop=scatter_loop((lambda b, there, new: [getattr(b, op)(*there, *new)]) if op else None,
                          op.replace("sub", "")),
        can_fuse_operands=True, may_produce_nan=True,
        complex_parts=each_part if op in ("", "add", "sub") else slots.in_pairs(f"scatter_{op}"),
        in_place=lambda k, /, **params: (k,),
        examples=examples or scatter_examples(np.float32, np.int32))


# ── Derivatives of scatters ──────────────────────────────────────────────────────────────────

def gather_at_updates(source: Array, x: Any, indices: Array, updates: Any, *,
                      dimension_numbers: Numbers, mode: GatherScatterMode, **params: Any) -> Array:
    """The elements of `source` where a scatter into `x` would write; zero where it drops one."""
    shape = updates.aval.shape
    if 0 in source.shape:  # no gather has a window there
        return zeros(ShapedArray(shape, source.dtype))
    return gather_p.bind(source, indices, **gather_params(
        source, GatherDimensionNumbers(*map(tuple, dimension_numbers)),
        window_sizes(dimension_numbers, source.shape, shape),
        CLIP if mode is CLIP else FILL_OR_DROP, 0, **params))


def _masked(keep: Array, x: Array) -> Array:
    return comparison.select_n_p.bind(keep, filled(0, x), x)


def _set_updates_cotangent(ct: Array, x: Any, indices: Array, updates: Any, **params: Any) -> Array:
    """An update gets the cotangent of the place where it was written, unless a later overwrote it.

    JAX: differentiates by numbering the updates in the forward pass already.
    """
    read = gather_at_updates(ct, x, indices, updates, **params)
    if params["unique_indices"]:
        return read
    numbers = reshape(iota(np.int32, read.size), read.shape)
    written = scatter_p.bind(zeros(ShapedArray(ct.shape, np.int32)), indices, numbers, **params)
    last = gather_at_updates(written, x, indices, numbers, **params)
    return _masked(comparison.eq_p.bind(numbers, last), read)


def _set_operand_cotangent(ct: Array, x: Any, indices: Array, updates: Any, **params: Any) -> Array:
    return scatter_p.bind(ct, indices, zeros(ShapedArray(updates.aval.shape, ct.dtype)), **params)


def _check_unique(params: dict) -> None:
    if not params["unique_indices"]:
        raise NotImplementedError(
            "scatter_mul gradients are only implemented if `unique_indices=True`")


def _mul_in_updates(t: Array, out: Array, x: Array, indices: Array, updates: Array, **params: Any
                    ) -> Array:
    _check_unique(params)
    return mul_p.bind(x, scatter_add_p.bind(filled(0, x), indices, t, **params))


def _mul_updates_cotangent(ct: Array, x: Any, indices: Array, updates: Any, **params: Any) -> Array:
    _check_unique(params)
    return gather_at_updates(mul_p.bind(ct, x), x, indices, updates, **params)


@ForPrimitive
def _extremal_jvp(p: Primitive, primals: list, tangents: list, **params: Any) -> Outs:
    """The mean of the tangents of all elements and updates that attain the extremum."""
    x, indices, updates = primals
    out = p.bind(x, indices, updates, **params)
    kept = comparison.eq_p.bind(x, out)
    won = comparison.eq_p.bind(updates, gather_at_updates(out, *primals, **params))
    count = scatter_add_p.bind(convert.converted(kept, x.dtype, False), indices,
                               convert.converted(won, x.dtype, False), **params)
    total = scatter_add_p.bind(_masked(kept, instantiate(tangents[0])), indices,
                               _masked(won, instantiate(tangents[2])), **params)
    return [out], [div_p.bind(total, count)]


# ── The primitives ───────────────────────────────────────────────────────────────────────────

def _by_extremum(op: str) -> Write:
    def write(flat: np.ndarray, places: np.ndarray, updates: np.ndarray) -> None:
        def run(ufunc: np.ufunc, operand: np.ndarray, updates: np.ndarray) -> np.ndarray:
            out = operand.copy()
            ufunc.at(out, places, updates)
            return out
        flat[...] = extremum(op, run, flat, updates)
    return write


scatter_p = scatter_family(
    "",
    write=np.put,
    transpose=transposed(_set_operand_cotangent, None, _set_updates_cotangent),
    examples=scatter_examples(np.float32, np.int32, np.bool_))

scatter_add_p = scatter_family(
    "add",
    write=np.add.at,
    transpose=transposed(lambda ct, *_, **__: ct, None, gather_at_updates))

scatter_sub_p = scatter_family(
    "sub",
    write=np.subtract.at,
    transpose=transposed(
        lambda ct, *_, **__: ct, None,
        lambda ct, *args, **params: neg_p.bind(gather_at_updates(ct, *args, **params))))

scatter_mul_p = scatter_family(
    "mul",
    write=np.multiply.at,
    jvp=families.per_argument(
        lambda t, out, x, indices, updates, **params: scatter_mul_p.bind(
            t, indices, updates, **params), None, _mul_in_updates),
    transpose=transposed(
        lambda ct, x, indices, updates, **params: scatter_mul_p.bind(
            ct, indices, updates, **params), None, _mul_updates_cotangent),
    examples=scatter_examples(np.float32, unique=True))

scatter_min_p, scatter_max_p = (
    scatter_family(op, write=_by_extremum(op), jvp=_extremal_jvp,
                   transpose=cannot("which update is taken depends on their values."))
    for op in ("min", "max"))


# ── Public functions ─────────────────────────────────────────────────────────────────────────

def default_fill(dtype: Any) -> Any:
    """The fill value of reads out of bounds: nan, or an extreme integer."""
    if dtypes.issubdtype(dtype, np.inexact):
        return np.nan
    if dtype == np.bool_:
        return True
    dtype = np.dtype(np.uint32) if isinstance(dtype, dtypes.KeyType) else dtype
    if not dtypes.issubdtype(dtype, np.integer):
        raise ValueError(f"Unsupported dtype for gather fill_value {dtype}")
    limits = dtypes.iinfo(dtype)
    return int(limits.min or limits.max)


def gather(operand: Any, start_indices: Any, dimension_numbers: GatherDimensionNumbers,
           slice_sizes: Sequence[int], *, unique_indices: bool = False,
           indices_are_sorted: bool = False, mode: str | GatherScatterMode | None = None,
           fill_value: Any = None) -> Array:
    """Windows of the operand, one for each vector along the last axis of the indices.

    Args:
      operand: an array.
      start_indices: integers; every vector along the last axis is the corner of a window.
      dimension_numbers: which axes mean what.
      slice_sizes: the size of a window, for every axis of the operand.
      unique_indices, indices_are_sorted: promises of the caller.
      mode: what to do with windows that are out of bounds.
      fill_value: their elements in mode "fill"; by default nan or an extreme integer.

    >>> import numpy as np
    >>> rows = GatherDimensionNumbers((1,), (0,), (0,))
    >>> gather(np.arange(6).reshape(3, 2), np.array([[2], [0]]), rows, (1, 2))
    Array([[4, 5],
           [0, 1]], dtype=int32)
    """
    parsed = GatherScatterMode.from_any("promise_in_bounds" if mode is None else mode)
    if parsed is PROMISE:
        core.base_trace.notify("index", "window read", np.shape(operand), _corners(
            operand, start_indices, dimension_numbers, slice_sizes), wraps=False)
    return gather_p.bind(operand, start_indices, **gather_params(
        operand, dimension_numbers, slice_sizes, parsed, fill_value, unique_indices,
        indices_are_sorted))


def _corners(operand: Any, indices: Any, dnums: Numbers, sizes: Sequence[int] | None = None,
             updates: Any = None) -> Iterator[tuple[Array, int, int]]:
    """The places along each axis where windows start, for the check of bounds."""
    shape, indices = np.shape(operand), core.as_value(indices)
    sizes = window_sizes(dnums, shape, np.shape(updates)) if sizes is None else sizes
    for k, axis in enumerate(dnums[2]):
        yield part(indices, k, k + 1, -1), axis, sizes[axis]


def _user_function(primitive: Primitive, name: str, what: str) -> Callable[..., Array]:
    def function(operand: Any, scatter_indices: Any, updates: Any,
                 dimension_numbers: ScatterDimensionNumbers, *,
                 indices_are_sorted: bool = False, unique_indices: bool = False,
                 mode: str | GatherScatterMode | None = None) -> Array:
        """The operand with updates {what} windows at computed places.

        Every vector along the last axis of the indices is the first corner of a window; updates
        are made in row-major order, and those out of bounds are dropped (`mode="clip"` moves them
        inside instead).

        >>> import numpy as np
        >>> dims = ScatterDimensionNumbers((), (0,), (0,))
        >>> {name}(np.ones(4), np.array([[1], [9]]), np.array([5.0, 7.0]), dims).shape
        (4,)
        """
        dnums = ScatterDimensionNumbers(*map(tuple, dimension_numbers))
        parsed = GatherScatterMode.from_any(mode)
        if mode is None or parsed is PROMISE:
            core.base_trace.notify("index", "window drop", np.shape(operand), _corners(
                operand, scatter_indices, dnums, updates=updates), wraps=False)
        return primitive.bind(operand, scatter_indices, updates, dimension_numbers=dnums,
                              indices_are_sorted=bool(indices_are_sorted),
                              unique_indices=bool(unique_indices), mode=parsed)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = str(function.__doc__).format(what=what, name=name)
    return function


scatter = _user_function(scatter_p, "scatter", "written over")
scatter_add = _user_function(scatter_add_p, "scatter_add", "added to")
scatter_sub = _user_function(scatter_sub_p, "scatter_sub", "subtracted from")
scatter_mul = _user_function(scatter_mul_p, "scatter_mul", "multiplied into")
scatter_min = _user_function(scatter_min_p, "scatter_min", "limiting from above")
scatter_max = _user_function(scatter_max_p, "scatter_max", "limiting from below")


def index_take(src: Any, idxs: Sequence[Any], axes: Sequence[int]) -> Array:
    """The parts of an array at indices along some of its axes; negative ones count from the end.

    Args:
      src: an array.
      idxs: for each of the axes an array of integers; all have one shape.
      axes: the axes.

    >>> import numpy as np
    >>> index_take(np.arange(6).reshape(2, 3), np.array([[0, 1], [-1, 0]]), (0, 1))
    Array([2, 3], dtype=int32)
    """
    shape, axes, places = np.shape(src), as_dims(axes), [core.as_value(i) for i in idxs]
    rank, wrapped = places[0].ndim, []
    for i, axis in zip(places, axes, strict=True):
        size = filled(shape[axis], i)
        wrapped.append(rounding.rem(add(rounding.rem(i, size), size), size))
    windows = tuple(range(rank, rank + len(shape) - len(axes)))
    return gather(src, joining.stack(wrapped, rank), GatherDimensionNumbers(windows, axes, axes),
                  [1 if d in axes else n for d, n in enumerate(shape)])
