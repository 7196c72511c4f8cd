"""Primitives that write windows at computed places: scatter, scatter-add and their family.

Stands on `gather`, whose walk they follow.  Chapters 13 and 14 (*In-place updates*, *Out-of-bounds
indexing*).  In JAX: `jax/_src/lax/slicing.py`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax import config, dtypes
from minijax.core import Array, Axis, Example, Primitive, ShapedArray, Undefined, Zero, cannot
from minijax.primitives.choice import eq_p, select_n_p
from minijax.primitives.convert import convert_element_type_p
from minijax.primitives.elementwise import (complex_extremum, div_p, mul_p, neg_p,
                                            with_ordered_zeros)
from minijax.primitives.emitted import add_cotangents, instantiate, zeros
from minijax.primitives.families import NUMBER, check_dtypes
from minijax.primitives.gather import (GatherDimensionNumbers, GatherScatterMode, Walk, check_dims,
                                       emit_place, gather_p, places_of, refuse, up, walk_of)
from minijax.primitives.rearranging import Shape, grid
from minijax.primitives.shape import batched_in_front, broadcast_in_dim, iota_p, reshape, to_front
from minijax.primitives.slicing import check_same_dtypes


class ScatterDimensionNumbers(NamedTuple):
    """Which axes of a scatter mean what: those of the gather that reads where it writes.

    Args:
      update_window_dims: the axes of the updates that walk inside a window.
      inserted_window_dims: the axes of the operand, of window size one, missing in the updates.
      scatter_dims_to_operand_dims: the operand's axis that each index component is for.
      operand_batching_dims: axes of the operand that are walked together with …
      scatter_indices_batching_dims: … these axes of the indices.
    """

    update_window_dims: Sequence[int]
    inserted_window_dims: Sequence[int]
    scatter_dims_to_operand_dims: Sequence[int]
    operand_batching_dims: Sequence[int] = ()
    scatter_indices_batching_dims: Sequence[int] = ()


# ── The gather that reads where a scatter writes ─────────────────────────────────────────────

def window_sizes(dnums: ScatterDimensionNumbers, shape: Shape, updates: Shape) -> Shape:
    """The size of a window along every axis of the operand."""
    sizes = iter([updates[d] for d in dnums.update_window_dims])
    hidden = {*dnums.inserted_window_dims, *dnums.operand_batching_dims}
    return tuple(1 if d in hidden else next(sizes) for d in range(len(shape)))


def scatter_walk(dnums: ScatterDimensionNumbers, shape: Shape, updates: Shape) -> Walk:
    return walk_of(GatherDimensionNumbers(*map(tuple, dnums)), shape,
                   window_sizes(dnums, shape, updates), len(updates))


def read_back(x: Array, indices: Array, updates_shape: Shape, params: dict) -> Array:
    """What stands in `x` where a scatter would write; zero where it writes nothing."""
    if 0 in x.shape:  # no gather has a window there
        return _zeros(updates_shape, x.dtype)
    dnums, mode = params["dimension_numbers"], params["mode"]
    dropped = mode is not GatherScatterMode.CLIP
    return gather_p.bind(
        x, indices, dimension_numbers=GatherDimensionNumbers(*map(tuple, dnums)),
        slice_sizes=window_sizes(dnums, x.shape, updates_shape),
        mode=GatherScatterMode.FILL_OR_DROP if dropped else mode,
        fill_value=0 if dropped else None, unique_indices=params["unique_indices"],
        indices_are_sorted=params["indices_are_sorted"])


# ── The family ───────────────────────────────────────────────────────────────────────────────

def _scatter_type(x: ShapedArray, indices: ShapedArray, updates: ShapedArray, *,
                  dimension_numbers: ScatterDimensionNumbers, **_: Any) -> list[ShapedArray]:
    if not dtypes.issubdtype(indices.dtype, np.integer):
        raise ValueError("indices must have an integer type")
    check_same_dtypes("lax.scatter", x, updates)
    check_scatter(x, indices, updates, dimension_numbers)
    return [x]


def check_scatter(x: ShapedArray, indices: ShapedArray, updates: ShapedArray,
                  dnums: ScatterDimensionNumbers) -> None:
    """Refuse dimension numbers that do not fit the three arrays, or each other."""
    window, inserted, components, batching, paired = dnums
    vector_dim, rank = indices.ndim - 1, len(window) + indices.ndim - 1
    refuse("scatter", [
        (indices.ndim == 0,
         "Scatter index leaf dimension must be within [0, rank(indices) + 1). rank(indices) is 0 "
         "and scatter index leaf dimension is -1."),
        (updates.ndim != rank,
         f"Updates tensor must be of rank {rank}; got {updates.ndim}.")])
    check_dims("scatter", "update_window_dims", window, updates.ndim)
    check_dims("scatter", "inserted_window_dims", inserted, x.ndim)
    check_dims("scatter", "operand_batching_dims", batching, x.ndim)
    check_dims("scatter", "scatter_dims_to_operand_dims", components, x.ndim, is_sorted=False)
    check_dims("scatter", "scatter_indices_batching_dims", paired, vector_dim, is_sorted=False)
    refuse("scatter", [
        (not set(batching).isdisjoint((*inserted, *components)),
         "operand_batching_dims in {op} op must be disjoint from inserted_window_dims and "
         f"scatter_dims_to_operand_dims; got: {batching}, {inserted} and {components}."),
        ([x.shape[d] for d in batching] != [indices.shape[d] for d in paired],
         "Scatter op requires operand batching dimensions and indices batching dimensions to "
         f"have the same shape, got {batching} and {paired}."),
        (x.ndim != len(window) + len(inserted) + len(batching),
         f"Scatter op has window of size {len(window) + len(inserted) + len(batching)}; doesn't "
         f"match operand of rank {x.ndim}."),
        (len(components) != indices.shape[-1],
         f"Scatter op has {len(components)} elements in scatter_dims_to_operand_dims and the "
         f"bound of dimension index_vector_dim={vector_dim} of indices is {indices.shape[-1]}. "
         "These two numbers must be equal")])
    sizes = window_sizes(dnums, x.shape, updates.shape)
    for d, (size, n) in enumerate(zip(sizes, x.shape, strict=True)):
        refuse("scatter", [
            (size > n and d not in (*inserted, *batching),
             "Bounds of the window dimensions of updates must not exceed the bounds of the "
             f"corresponding dimensions of operand. For dimension {d}, updates bound is {size}, "
             f"operand bound is {n}.")])
    walked = [d for d in range(updates.ndim) if d not in window]
    for d, n in zip(walked, indices.shape[:-1], strict=True):
        refuse("scatter", [
            (updates.shape[d] != n,
             "Bounds of the scatter dimensions of updates must be the same as the bounds of the "
             f"corresponding dimensions of scatter indices. For scatter dimension {d}, updates "
             f"bound is {updates.shape[d]}, indices bound is {n}.")])


def _impl(write: Callable[[np.ndarray, np.ndarray, np.ndarray], None]) -> Callable[..., list]:
    """The meaning: one update after another, in row-major order."""
    def impl(x: np.ndarray, indices: np.ndarray, updates: np.ndarray, *,
             dimension_numbers: ScatterDimensionNumbers, mode: GatherScatterMode,
             **_: Any) -> list[np.ndarray]:
        out = np.array(x, order="C")
        if updates.size == 0 or out.size == 0:
            return [out]
        walk = scatter_walk(dimension_numbers, x.shape, updates.shape)
        places, inside = places_of(walk, indices, updates.shape)
        flat = np.zeros((1,) * updates.ndim, np.int64)
        for place, n in zip(places, x.shape, strict=True):
            flat = flat * n + place
        kept = np.broadcast_to(inside | (mode is GatherScatterMode.CLIP), updates.shape)
        write(out.reshape(-1), np.broadcast_to(flat, updates.shape)[kept], updates[kept])
        return [out]
    return impl


def _batch(primitive: Callable[[], Primitive]) -> Callable[..., tuple[list, list]]:
    def batch(axis: Axis, args: list, dims: list, *,
              dimension_numbers: ScatterDimensionNumbers, **params: Any) -> tuple[list, list]:
        x, updates = (batched_in_front(args[k], dims[k], axis.size) for k in (0, 2))
        indices = args[1] if dims[1] is None else to_front(args[1], dims[1])
        window, inserted, components, batching, paired = map(tuple, dimension_numbers)
        if dims[1] is None:  # the same places of all operands: a window over the whole batch
            dnums = ScatterDimensionNumbers((0, *up(window)), up(inserted), up(components),
                                            up(batching), paired)
        else:
            dnums = ScatterDimensionNumbers(up(window), up(inserted), up(components),
                                            (0, *up(batching)), (0, *up(paired)))
        return [primitive().bind(x, indices, updates, dimension_numbers=dnums, **params)], [0]
    return batch


def _loop(combine: Callable[[Any, Any, Any], Any]) -> Callable[..., None]:
    """Copy the operand, then visit the updates in order."""
    def loop(b: Any, outputs: list, operands: list, *, dimension_numbers: Any,
             mode: GatherScatterMode, **_: Any) -> None:
        [out], (x, indices, updates) = outputs, operands
        b.materialize(x, into=out)
        if 0 in out.shape:
            return  # no place is inside
        walk = scatter_walk(dimension_numbers, out.shape, updates.shape)
        with contextlib.ExitStack() as loops:
            index = tuple(loops.enter_context(b.loop(n)) for n in updates.shape)
            place, inside = emit_place(b, walk, indices, index)
            if mode is not GatherScatterMode.CLIP:
                loops.enter_context(b.when(inside))
            b.store(out, place, combine(b, lambda: b.load(out, place), updates(index)))
    return loop


def _examples(*dtypes_tried: Any, unique: bool = False) -> Callable[[], list[Example]]:
    rows = ScatterDimensionNumbers((1,), (0,), (0,))
    windows = ScatterDimensionNumbers((1, 2), (), (1, 0))
    paired = ScatterDimensionNumbers((), (1,), (1,), (0,), (0,))
    drop, clip = GatherScatterMode.FILL_OR_DROP, GatherScatterMode.CLIP
    cases = [
        ((4, 3), [[2], [0]], (2, 3), rows, drop), ((4, 3), [[9], [-1]], (2, 3), rows, drop),
        ((4, 3), [[0, 2]], (1, 2, 2), windows, clip), ((2, 3), [[[0], [2]], [[1], [0]]], (2, 2),
                                                       paired, drop),
        ((3, 2), np.zeros((0, 1)), (0, 2), rows, drop),
        ((0, 3), [[0]], (1, 3), rows, drop), ((0, 3), [[0]], (1, 3), rows, clip)]
    if not unique:
        cases += [((4, 3), [[2], [2], [0]], (3, 3), rows, drop),
                  ((4, 3), [[7, 7], [0, 0]], (2, 2, 2), windows, clip)]
    return lambda: [
        Example((grid(*shape, dtype=dtype), np.array(indices, np.int32),
                 (grid(*updates) * 2 - 5).astype(dtype)),
                {"dimension_numbers": dnums, "indices_are_sorted": False,
                 "unique_indices": unique, "mode": mode})
        for dtype in dtypes_tried for shape, indices, updates, dnums, mode in cases]


def scatter_family(name: str, *, write: Callable[[np.ndarray, np.ndarray, np.ndarray], None],
                   combine: Callable[[Any, Any, Any], Any], jvp: Any, transpose: Any,
                   examples: Callable[[], list[Example]], arithmetic: str = "") -> Primitive:
    """A primitive that changes an operand at computed places, one update after another.

    Args:
      name: as a jaxpr prints it.
      write: ``(flat operand, positions, updates)``, in place, in NumPy.
      combine: ``(s, old, update)`` to the new element; `old` is a function.
      jvp, transpose, examples: as in `Primitive`.
      arithmetic: the operation on numbers that combines; it does not take bools.
    """
    def abstract_eval(x: ShapedArray, indices: ShapedArray, updates: ShapedArray,
                      **params: Any) -> list[ShapedArray]:
        found = _scatter_type(x, indices, updates, **params)
        if arithmetic:
            check_dtypes(arithmetic, [x, updates], [NUMBER, NUMBER])
        return found

    primitive = Primitive(
        name,
        impl=_impl(write),
        abstract_eval=abstract_eval,
        jvp=jvp,
        transpose=transpose,
        batch=_batch(lambda: primitive),
        loop=_loop(combine),
        in_place=0,
        examples=examples)
    return primitive


# ── Derivatives ──────────────────────────────────────────────────────────────────────────────

def _linear_jvp(primitive: Callable[[], Primitive]) -> Callable[..., tuple[list, list]]:
    """For what is linear in operand and updates together."""
    def jvp(primals: list, tangents: list, **params: Any) -> tuple[list, list]:
        x, indices, updates = primals
        out = primitive().bind(x, indices, updates, **params)
        if isinstance(tangents[0], Zero) and isinstance(tangents[2], Zero):
            return [out], [Zero(out.aval.to_tangent_aval())]
        t_x, t_updates = instantiate(tangents[0]), instantiate(tangents[2])
        return [out], [primitive().bind(t_x, indices, t_updates, **params)]
    return jvp


def _transpose(for_operand: Callable[..., Any], for_updates: Callable[..., Any]
               ) -> Callable[..., list]:
    """Each function: ``(cotangent, indices, aval of the updates, params, x, updates)``."""
    def transpose(cotangents: list, x: Any, indices: Array, updates: Any, **params: Any) -> list:
        [ct] = cotangents
        results: list[Any] = [None, None, None]
        for k, arg, rule in ((0, x, for_operand), (2, updates, for_updates)):
            if not isinstance(arg, Undefined):
                continue
            zero = isinstance(ct, Zero)
            results[k] = Zero(arg.aval) if zero else rule(ct, indices, updates.aval, params,
                                                          x, updates)
        return results
    return transpose


def _zeros(shape: Shape, dtype: Any) -> Array:
    return zeros(ShapedArray(shape, dtype))


def _masked(keep: Array, x: Array) -> Array:
    return select_n_p.bind(keep, _zeros(x.shape, x.dtype), x)


def _set_updates_cotangent(ct: Array, indices: Array, updates: ShapedArray, params: dict,
                           *_: Any) -> Array:
    """An update gets what stands where it was written, if no later one overwrote it.

    JAX: differentiates by numbering the updates in the forward pass already.
    """
    read = read_back(ct, indices, updates.shape, params)
    if params["unique_indices"]:
        return read
    window = params["dimension_numbers"].update_window_dims
    walked = [n for d, n in enumerate(updates.shape) if d not in window]
    count = int(np.prod(walked, dtype=int))
    order = iota_p.bind(dtype=np.dtype(np.int32), shape=(count,), dimension=0)
    order = broadcast_in_dim(reshape(order, walked), updates.shape,
                             [d for d in range(updates.ndim) if d not in window])
    nobody = _zeros(ct.shape, np.dtype(np.int32))
    last = read_back(scatter_p.bind(nobody, indices, order, **params), indices, updates.shape,
                     params)
    return _masked(eq_p.bind(order, last), read)


def _set_operand_cotangent(ct: Array, indices: Array, updates: ShapedArray, params: dict,
                           *_: Any) -> Array:
    return scatter_p.bind(ct, indices, _zeros(updates.shape, ct.dtype), **params)


def _mul_jvp(primals: list, tangents: list, **params: Any) -> tuple[list, list]:
    x, indices, updates = primals
    out = scatter_mul_p.bind(x, indices, updates, **params)
    total: Any = Zero(out.aval.to_tangent_aval())
    if not isinstance(tangents[0], Zero):
        total = scatter_mul_p.bind(tangents[0], indices, updates, **params)
    if not isinstance(tangents[2], Zero):
        _check_unique(params)
        moved = scatter_add_p.bind(_zeros(x.shape, x.dtype), indices, tangents[2], **params)
        total = add_cotangents(total, mul_p.bind(x, moved))
    return [out], [total]


def _check_unique(params: dict) -> None:
    if not params["unique_indices"]:
        raise NotImplementedError(
            "scatter_mul gradients are only implemented if `unique_indices=True`")


def _mul_updates_cotangent(ct: Array, indices: Array, updates: ShapedArray, params: dict,
                           x: Array, *_: Any) -> Array:
    _check_unique(params)
    return read_back(mul_p.bind(ct, x), indices, updates.shape, params)


def _mul_operand_cotangent(ct: Array, indices: Array, aval: ShapedArray, params: dict, x: Any,
                           updates: Array) -> Array:
    return scatter_mul_p.bind(ct, indices, updates, **params)


def _extremal_jvp(primitive: Callable[[], Primitive]) -> Callable[..., tuple[list, list]]:
    """The mean of the tangents of all that attained the extremum."""
    def jvp(primals: list, tangents: list, **params: Any) -> tuple[list, list]:
        x, indices, updates = primals
        out = primitive().bind(x, indices, updates, **params)
        if isinstance(tangents[0], Zero) and isinstance(tangents[2], Zero):
            return [out], [Zero(out.aval.to_tangent_aval())]
        kept = eq_p.bind(x, out)
        won = eq_p.bind(updates, read_back(out, indices, updates.shape, params))
        count = scatter_add_p.bind(
            *(y if y is indices else
              convert_element_type_p.bind(y, new_dtype=x.dtype, weak_type=False)
              for y in (kept, indices, won)), **params)
        total = scatter_add_p.bind(_masked(kept, instantiate(tangents[0])), indices,
                                   _masked(won, instantiate(tangents[2])), **params)
        return [out], [div_p.bind(total, count)]
    return jvp


# ── The primitives ───────────────────────────────────────────────────────────────────────────

def _write(flat: np.ndarray, places: np.ndarray, updates: np.ndarray) -> None:
    flat[places] = updates


def _by(ufunc: np.ufunc) -> Callable[[np.ndarray, np.ndarray, np.ndarray], None]:
    def write(flat: np.ndarray, places: np.ndarray, updates: np.ndarray) -> None:
        ufunc.at(flat, places, updates)
    return write


def _by_extremum(op: str) -> Callable[[np.ndarray, np.ndarray, np.ndarray], None]:
    ufunc = np.maximum if op == "max" else np.minimum

    def write(flat: np.ndarray, places: np.ndarray, updates: np.ndarray) -> None:
        def anywhere(test: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
            found = test(before)
            np.logical_or.at(found, places, test(updates))
            return found
        if flat.dtype.kind == "c":
            for place, update in zip(places, updates, strict=True):
                flat[place] = complex_extremum(op, flat[place], update)
            return
        before = flat.copy()
        ufunc.at(flat, places, updates)
        flat[...] = with_ordered_zeros(op, flat, anywhere)
    return write


NOT_LINEAR = cannot("which update is taken depends on their values.")

scatter_p = scatter_family(
    "scatter",
    write=_write,
    combine=lambda s, old, new: new,
    jvp=_linear_jvp(lambda: scatter_p),
    transpose=_transpose(_set_operand_cotangent, _set_updates_cotangent),
    examples=_examples(np.float32, np.int32, np.bool_))

scatter_add_p = scatter_family(
    "scatter-add", arithmetic="add",
    write=_by(np.add),
    combine=lambda s, old, new: s.add(old(), new),
    jvp=_linear_jvp(lambda: scatter_add_p),
    transpose=_transpose(
        lambda ct, *_: ct,
        lambda ct, indices, aval, params, *_: read_back(ct, indices, aval.shape, params)),
    examples=_examples(np.float32, np.int32))


def _negated_read(ct: Array, indices: Array, updates: ShapedArray, params: dict,
                  *_: Any) -> Array:
    return neg_p.bind(read_back(ct, indices, updates.shape, params))


scatter_sub_p = scatter_family(
    "scatter-sub", arithmetic="sub",
    write=_by(np.subtract),
    combine=lambda s, old, new: s.sub(old(), new),
    jvp=_linear_jvp(lambda: scatter_sub_p),
    transpose=_transpose(lambda ct, *_: ct, _negated_read),
    examples=_examples(np.float32, np.int32))

scatter_mul_p = scatter_family(
    "scatter-mul", arithmetic="mul",
    write=_by(np.multiply),
    combine=lambda s, old, new: s.mul(old(), new),
    jvp=_mul_jvp,
    transpose=_transpose(_mul_operand_cotangent, _mul_updates_cotangent),
    examples=_examples(np.float32, unique=True))

scatter_min_p = scatter_family(
    "scatter-min",
    write=_by_extremum("min"),
    combine=lambda s, old, new: s.min(old(), new),
    jvp=_extremal_jvp(lambda: scatter_min_p),
    transpose=NOT_LINEAR,
    examples=_examples(np.float32, np.int32))

scatter_max_p = scatter_family(
    "scatter-max",
    write=_by_extremum("max"),
    combine=lambda s, old, new: s.max(old(), new),
    jvp=_extremal_jvp(lambda: scatter_max_p),
    transpose=NOT_LINEAR,
    examples=_examples(np.float32, np.int32))


# ── What users call ──────────────────────────────────────────────────────────────────────────

# The modes of a caller who does not say that an index may be outside.
UNSAID = (None, "promise_in_bounds", GatherScatterMode.PROMISE_IN_BOUNDS)


def _user_function(primitive: Primitive, name: str, what: str) -> Callable[..., Array]:
    def function(operand: Any, scatter_indices: Any, updates: Any,
                 dimension_numbers: ScatterDimensionNumbers, *,
                 indices_are_sorted: bool = False, unique_indices: bool = False,
                 mode: str | GatherScatterMode | None = None) -> Array:
        dnums = ScatterDimensionNumbers(*map(tuple, dimension_numbers))
        if config.debug_out_of_bounds.value and mode in UNSAID:
            from minijax.primitives.checks import check_windows
            shape = np.shape(operand)
            check_windows(scatter_indices, dnums.scatter_dims_to_operand_dims, shape,
                          window_sizes(dnums, shape, np.shape(updates)), kind="window drop")
        return primitive.bind(operand, scatter_indices, updates, dimension_numbers=dnums,
                              indices_are_sorted=bool(indices_are_sorted),
                              unique_indices=bool(unique_indices),
                              mode=GatherScatterMode.from_any(mode))
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""The operand with updates {what} windows at computed places.

    Every vector along the last axis of the indices is the corner of a window; updates are made
    in row-major order, and those whose window sticks out are dropped (`mode="clip"` moves the
    window inside instead).

    >>> import numpy as np
    >>> dims = ScatterDimensionNumbers((), (0,), (0,))
    >>> {name}(np.ones(4), np.array([[1], [9]]), np.array([5.0, 7.0]), dims).shape
    (4,)
    """
    return function


scatter = _user_function(scatter_p, "scatter", "written over")
scatter_add = _user_function(scatter_add_p, "scatter_add", "added to")
scatter_sub = _user_function(scatter_sub_p, "scatter_sub", "subtracted from")
scatter_mul = _user_function(scatter_mul_p, "scatter_mul", "multiplied into")
scatter_min = _user_function(scatter_min_p, "scatter_min", "limiting from above")
scatter_max = _user_function(scatter_max_p, "scatter_max", "limiting from below")
