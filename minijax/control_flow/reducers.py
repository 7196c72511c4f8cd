"""A function of the user's that reduces along axes or in sliding windows, or changes elements.

Builds on `loops`, and on the reductions that are primitives.  Chapter 09, *Control flow*.
In JAX: `jax/_src/lax/lax.py` (`reduce`), `jax/_src/lax/windowed_reductions.py`.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import core, tree_util
from minijax.core import (Array, ArrayImpl, Avals, Axis, Example, ForPrimitive, Outs, Params,
                          Primitive, ShapedArray, cannot, refuse, tracing)
from minijax.control_flow.loops import scan, while_loop
from minijax.control_flow.program_rules import split_half
from minijax.core.jvp import jvp_flat
from minijax.core.vmap import vmap_flat
from minijax.core.jaxpr import ClosedJaxpr, jaxpr_as_fun
from minijax.primitives import (ad_util, comparison, families, reduce as reductions, slots,
                                windowed_reductions)
from minijax.primitives.axes import Shape, as_dims, dilate_dim, without
from minijax.primitives.convert import converted
from minijax.primitives.gather_scatter import gather, scatter, scatter_add
from minijax.primitives.windowed_reductions import (
    padtype_to_pads, reduce_window_max_p, reduce_window_min_p, reduce_window_shape_tuple,
    reduce_window_sum_p, windows_of)
from minijax.primitives.windows import (GatherDimensionNumbers, GatherScatterMode,
                                        ScatterDimensionNumbers, window_sizes)
from minijax.transforms.arguments import flattened


def primitive_name(jaxpr: ClosedJaxpr) -> str:
    """The name of the primitive that a function of two elements is, if it is one."""
    if len(jaxpr.eqns) != 1 or jaxpr.jaxpr.outvars != jaxpr.eqns[0].outvars or (
            set(jaxpr.eqns[0].invars) != set(jaxpr.jaxpr.invars)):
        return ""
    return jaxpr.eqns[0].primitive.name


_SIZES = ("window_dimensions", "window_strides", "base_dilation", "window_dilation")


# ── The blocks ───────────────────────────────────────────────────────────────────────────────

def _reduced(arrays: Sequence[Array], inits: Sequence[Array], axes: Sequence[int],
             jaxpr: ClosedJaxpr) -> list[Array]:
    """What lies along the axes is combined one after the other, element by element."""
    kept = without(range(arrays[0].ndim), axes)
    length, size = (math.prod(arrays[0].shape[d] for d in some) for some in (axes, kept))
    axes_first = [ad_util.transpose_p.bind(x, permutation=(*axes, *kept)) for x in arrays]

    def step(carry: list, row: list) -> tuple[list, None]:
        outs, dims = vmap_flat(jaxpr_as_fun(jaxpr), size, None, [*carry, *row], [0] * 2 * len(row))
        return [ad_util.batch_to(y, d, 0, size) for y, d in zip(outs, dims, strict=True)], None

    outs, _ = scan(step, [ad_util.broadcast_at(x, (), (size,)) for x in inits],
                   [ad_util.reshaped(x, (length, size)) for x in axes_first])
    return [ad_util.reshaped(x, axes_first[0].shape[len(axes):]) for x in outs]


def _along(*args: Array, jaxpr: ClosedJaxpr, dimensions: Sequence[int], computation: Any
           ) -> list[Array]:
    operands, inits = split_half(args)
    return _reduced(operands, inits, dimensions, jaxpr)


def _in_windows(*args: Array, jaxpr: ClosedJaxpr, consts: tuple, **sizes: Any) -> list[Array]:
    operands, inits = split_half(args)
    windows = [windows_of(x, init, **sizes) for x, init in zip(operands, inits, strict=True)]
    rank = operands[0].ndim
    return _reduced(windows, inits, range(rank, 2 * rank), jaxpr)


def _check_computation(name: str, operands: Avals, jaxpr: ClosedJaxpr) -> None:
    refuse(
        (len({x.shape for x in operands}) > 1,
         f"{name} expected all operands to have one shape, got {[x.shape for x in operands]}."),
        # JAX: both are found by the compiler.
        ([x.dtype for x in operands] != [x.dtype for x in jaxpr.out_avals]
         or any(x.shape for x in jaxpr.out_avals),
         f"{name} expected the computation to return elements of the types that it takes, "
         f"{[x.dtype.name for x in operands]}, but it returns "
         f"{[x.str_short(True) for x in jaxpr.out_avals]}."), error=ValueError)


def _types_along(*args: ShapedArray, jaxpr: ClosedJaxpr, dimensions: Sequence[int],
                 computation: Any) -> list[ShapedArray]:
    operands, inits = split_half(args)
    refuse((any(x.shape for x in inits),
            f"reduce found non-scalar initial value: {[x.shape for x in inits]}"),
           error=ValueError)
    refuse(([x.dtype for x in operands] != [x.dtype for x in inits],
            "reduce operand dtypes should match corresponding initial value dtypes, got "
            f"operands={list(operands)} and initial_values={list(inits)}"))
    _check_computation("reduce", operands, jaxpr)
    shape = tuple(without(operands[0].shape, dimensions))
    return [ShapedArray(shape, x.dtype, x.weak_type and init.weak_type)
            for x, init in zip(operands, inits, strict=True)]


def _types_in_windows(*args: ShapedArray, jaxpr: ClosedJaxpr, consts: tuple,
                      window_dimensions: Sequence[int], **sizes: Any) -> list[ShapedArray]:
    operands, inits = split_half(args)
    refuse(([x.dtype for x in operands] != [x.dtype for x in inits],
            "reduce_window got inconsistent dtypes for operands and init_values: got operand "
            f"dtypes {[x.dtype for x in operands]} and init_value dtypes "
            f"{[x.dtype for x in inits]}."))
    _check_computation("reduce_window", operands, jaxpr)
    shape = reduce_window_shape_tuple(operands[0].shape, tuple(window_dimensions), **sizes)
    return [ShapedArray(shape, x.dtype) for x in operands]


def _reducer(name: str, program: Callable[..., list[Array]], types: Callable[..., list],
             in_a_batch: Callable[[Params], Params], examples: Callable) -> Primitive:
    """A primitive that is a program of others, with parameters to be printed.

    Args:
      in_a_batch: changes parameters to those for operands with one more leading axis.
    """
    def jvp(primals: list, tangents: list, **params: Any) -> Outs:
        return jvp_flat(functools.partial(program, **params), primals, tangents)

    @ForPrimitive
    def batch(p: Primitive, axis: Axis, args: list, dims: list, **params: Any) -> Outs:
        operands, inits = split_half(args)
        if any(d is not None for d in split_half(dims)[1]):  # JAX: not implemented
            return vmap_flat(functools.partial(program, **params), axis.size, axis.name, args, dims)
        moved = [ad_util.batch_to(x, d, 0, axis.size) for x, d in zip(operands, dims, strict=False)]
        return p.bind(*moved, *inits, **params | in_a_batch(params)), [0] * len(moved)

    return Primitive(
        name, impl=families.by_program(program), program=program, abstract_eval=types, jvp=jvp,
        batch=batch, examples=examples, multiple_results=True, may_produce_nan=True,
        transpose=cannot("it is not linear; its derivative is a loop, which has a transpose."))


def _examples(inits: Sequence[float], join: Callable, **params: Any) -> list[Example]:
    x = np.linspace(-1., 1., 24, dtype=np.float32).reshape(2, 3, 4)
    operands = [x + k for k in range(len(inits))]
    program = tracing.stage(join, [ShapedArray((), np.float32)] * 2 * len(inits))
    return [Example((*operands, *map(np.float32, inits)), {"jaxpr": program, **params})]


reduce_p = _reducer(
    "reduce", _along, _types_along,
    lambda params: {"dimensions": tuple(d + 1 for d in params["dimensions"])},
    lambda: [*_examples([2.], lambda a, b: [a * b + a], dimensions=(0, 2), computation=None),
             *_examples([1., 0.], lambda a, b, x, y: [a * x, b + a * y], dimensions=(1,),
                        computation=None)])
reduce_window_p = _reducer(
    "reduce_window", _in_windows, _types_in_windows,
    lambda params: {name: (((0, 0) if name == "padding" else 1), *params[name])
                    for name in ("padding", *_SIZES)},
    lambda: _examples([2.], lambda a, b: [a * b + a], consts=(), padding=((0, 0), (1, 0), (0, 1)),
                      window_dimensions=(1, 2, 2), window_strides=(1, 1, 2),
                      base_dilation=(1, 1, 1), window_dilation=(1, 1, 1)))


# ── As users call them ───────────────────────────────────────────────────────────────────────

class _Reduction:
    """The operands, the initial values, and the function of two elements or trees of them."""

    def __init__(self, name: str, operands: Any, init_values: Any, computation: Callable) -> None:
        leaves, tree = tree_util.tree_flatten(operands)
        inits, init_tree = tree_util.tree_flatten(init_values)
        if tree != init_tree:
            raise ValueError("Operands must have the same tree structure as init_values: "
                             f"{tree} vs. {init_tree}")
        refuse((not leaves, f"{name} must have at least one operand."), error=ValueError)
        self.operands = [core.as_value(x) for x in leaves]
        self.inits = [core.as_value(x) for x in inits]
        self.flat, _ = flattened(computation, (operands, operands), f"{name} comp")
        self.jaxpr = self.flat.staged(
            [ShapedArray((), x.dtype) for x in (*self.operands, *self.operands)])
        if name == "reduce_window" and tree != self.flat.out_tree:
            raise ValueError(f"{name} output must have the same tree structure as the operands "
                             f"{tree} vs. {self.flat.out_tree}")
        if any(map(tracing.is_tracer, self.jaxpr.consts)):
            raise NotImplementedError(
                "Reduction computations can't close over Tracers: make them operands, of which "
                "there may be a tree.")

    def primitive_name(self) -> str:
        """The name of the primitive that the function is, if the initial value is its identity."""
        [init, *more] = self.inits
        if more or not isinstance(init, ArrayImpl) or init.ndim:
            return ""
        start: np.ndarray = np.asarray(init)
        dtype, name = self.operands[0].dtype, primitive_name(self.jaxpr)
        if name in ("max", "min"):
            infinite = -np.inf if name == "max" else np.inf
            same = start == infinite or start == slots.extremum_identity(name, dtype)
        else:
            identities = {"add": 0, "mul": 1, "or": 0, "xor": 0,
                          "and": True if dtype.kind == "b" else -1}
            same = name in identities and start == np.array(identities[name]).astype(dtype)
        return name if same else ""

    def bind(self, p: Primitive, **params: Any) -> Any:
        return self.flat.result(p.bind(*self.operands, *self.inits, jaxpr=self.jaxpr, **params))


def reduce(operands: Any, init_values: Any, computation: Callable[[Any, Any], Any],
           dimensions: Sequence[int], out_sharding: Any = None) -> Any:
    """All elements along some axes, combined by a function of two.

    Args:
      operands: an array, or a tree of arrays of one shape.
      init_values: the initial value: a scalar, or a tree of them.
      computation: takes two elements, or two trees of them, and returns one; it must be associative
        and commutative.
      dimensions: the axes.

    Returns:
      An array, or a tree of them, without these axes.

    Raises:
      NotImplementedError: for a function that closes over tracers.
      TypeError: for initial values of other dtypes.
      ValueError: for axes out of bounds, and for different trees.

    >>> reduce(np.array([[1, 2], [3, 4]]), 0, lambda x, y: x + y, (0,))
    Array([4, 6], dtype=int32)
    """
    reduction, axes = _Reduction("reduce", operands, init_values, computation), as_dims(dimensions)
    ad_util.check_axes(reduction.operands[0].aval, axes)
    name = reduction.primitive_name()
    if name:
        primitive = ad_util.reduce_sum_p if name == "add" else getattr(
            reductions, f"reduce_{'prod' if name == 'mul' else name}_p")
        out = primitive.bind(reduction.operands[0], axes=axes)
        strong = out if reduction.inits[0].weak_type else converted(out, out.dtype)
        return reduction.flat.result([strong])
    return reduction.bind(reduce_p, computation=computation, dimensions=axes)


_POOLS = {"add": reduce_window_sum_p, "max": reduce_window_max_p, "min": reduce_window_min_p}


def reduce_window(operand: Any, init_value: Any, computation: Callable,
                  window_dimensions: Sequence[int], window_strides: Sequence[int] | None = None,
                  padding: Any = "VALID", base_dilation: Sequence[int] | None = None,
                  window_dilation: Sequence[int] | None = None) -> Any:
    """The elements of each window of an array, combined by a function of two.

    Args:
      operand: an array, or a tree of arrays of one shape.
      init_value: the initial value, also of padding: a scalar, or a tree of them.
      computation: takes two elements, or two trees of them, and returns one.
      window_dimensions: the size of a window, along every axis.
      window_strides: the distance of windows along every axis; one by default.
      padding: "VALID", "SAME", "SAME_LOWER", or how much to add before and after each axis.
      base_dilation, window_dilation: the distance of elements of the operand, and of a window.

    Returns:
      An array, or a tree of them, with an element for each window.

    Raises:
      NotImplementedError: for a function that closes over tracers.
      TypeError, ValueError: for types, trees or sizes that do not agree.

    >>> from minijax import lax
    >>> reduce_window(np.array([1., 3., 2., 5.]), -np.inf, lax.max, (2,), (2,))
    Array([3., 5.], dtype=float32)
    """
    reduction = _Reduction("reduce_window", operand, init_value, computation)
    init_shapes = [x.shape for x in reduction.inits]
    refuse((any(init_shapes), "reduce_window expected init_values to be scalars but init_values "
            f"have shapes {init_shapes}."))
    first = reduction.operands[0]
    shape, ones = first.shape, (1,) * first.ndim
    values = (window_dimensions, window_strides, base_dilation, window_dilation)
    sizes = {name: as_dims(x or ones) for name, x in zip(_SIZES, values, strict=True)}
    windowed_reductions.check_windows(shape, sizes)
    if isinstance(padding, str):
        padding = padtype_to_pads(
            list(map(dilate_dim, shape, sizes["base_dilation"])),
            list(map(dilate_dim, sizes["window_dimensions"], sizes["window_dilation"])),
            sizes["window_strides"], padding)
    pads: Any = tuple(map(as_dims, padding))
    windowed_reductions.check_padding(len(shape), pads)
    pool = _POOLS.get(reduction.primitive_name())
    if pool and first.dtype.kind not in ("b" if pool is reduce_window_sum_p else "bc"):
        return pool.bind(first, padding=pads, **sizes)
    return reduction.bind(
        reduce_window_p, consts=tuple(reduction.jaxpr.consts), padding=pads, **sizes)


# ── A function of the elements at computed places ────────────────────────────────────────────

def scatter_apply(operand: Any, scatter_indices: Any, func: Callable[[Array], Array],
                  dimension_numbers: ScatterDimensionNumbers, *, update_shape: Shape = (),
                  indices_are_sorted: bool = False, unique_indices: bool = False,
                  mode: str | GatherScatterMode | None = None) -> Array:
    """The operand with a function applied to windows at computed places, element by element.

    Where a place is repeated, the function is applied once more for every time; it has no gradient
    there.

    Args:
      func: one element to one.
      update_shape: the shape that updates would have.

    >>> dims = ScatterDimensionNumbers((), (0,), (0,))
    >>> scatter_apply(np.ones(3), np.array([[1], [1]]), lambda x: 5 * x, dims, update_shape=(2,))
    Array([ 1., 25.,  1.], dtype=float32)
    """
    axes = list(map(tuple, dimension_numbers))
    read, written = GatherDimensionNumbers(*axes), ScatterDimensionNumbers(*axes)
    sizes = window_sizes(written, np.shape(operand), tuple(update_shape))
    old = gather(operand, scatter_indices, read, sizes, mode=mode or "fill")
    new = None
    if not unique_indices and math.prod(np.shape(scatter_indices)[:-1]) > 1:
        times = scatter_add(np.zeros(np.shape(operand), np.int32), scatter_indices,
                            np.ones(tuple(update_shape), np.int32), written, mode=mode)
        new = applied_repeatedly(func, old, gather(
            times, scatter_indices, read, sizes, mode=mode or "fill", fill_value=0))
    return scatter(operand, scatter_indices, func(old) if new is None else new, written, mode=mode,
                   indices_are_sorted=indices_are_sorted, unique_indices=unique_indices)


def applied_repeatedly(func: Callable[[Array], Array], x: Array, times: Array) -> Array | None:
    """The function applied to each element this many times; None for once at most."""
    most: Any = reductions.reduce_max(times, range(times.ndim))
    if not tracing.is_tracer(most) and most <= 1:
        return None

    def once_more(state: tuple) -> tuple:
        k, y = state
        return k + 1, comparison.select(k < times, converted(func(y), y.dtype), y)
    return while_loop(lambda state: state[0] < most, once_more, (0, x))[1]
