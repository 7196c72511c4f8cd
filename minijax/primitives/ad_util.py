"""Operations that rules and interpreters emit: five linear ones, zeros, sums, moved and new axes.

Builds on `axes` and `slots`; all other primitives build on it.  Chapters 03, 04 and 23.
In JAX: `jax/_src/interpreters/ad.py`, `batching.py`, `jax/_src/lax/lax.py`.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import config, core, dtypes
from minijax.core import (Array, ArrayImpl, Axis, ForPrimitive, Outs, Primitive, ShapedArray,
                          Undefined, Zero, refuse)
from minijax.primitives import summation
from minijax.primitives.axes import (Axes, Dim, Index, Shape, batched_axes, check_sizes,
                                     expand_index, inverse, with_item, without)
from minijax.primitives.examples import Examples, axes_of, grid, points, reducible, table
from minijax.primitives.slots import (BITS, NOT_LINEAR, NUMBER, Reduction, as_chain,
                                      broadcast_shapes, check_reducible, computed_in,
                                      extremum_identity, in_numpy, in_pairs, layout, pointwise,
                                      widened)

# ── Zeros and other numbers ──────────────────────────────────────────────────────────────────

def zeros(aval: ShapedArray) -> Array:
    """An array of zeros of this type, as a program makes it: one scalar, broadcast."""
    if aval.dtype == dtypes.float0:
        return ArrayImpl(np.zeros(aval.shape, bool), ShapedArray(aval.shape, aval.dtype))
    return repeated(0, aval)


def filled(value: Any, x: Array) -> Array:
    """An array of one number, with the shape and dtype of `x`."""
    return repeated(value, x.aval)


def constant(value: Any, x: Array) -> Array:
    """A scalar written into the program, of the dtype of `x`, and as weak."""
    return repeated(value, x.aval.update(shape=()))


def coefficient(value: Any, x: Array) -> Array:
    """A constant of a derivative: weak only where `x` is a weak scalar."""
    return repeated(value, x.aval.update(shape=(), weak_type=x.weak_type and not x.shape))


def repeated(value: Any, aval: ShapedArray) -> Array:
    """An array of this type, filled with one number."""
    type_of_one = ShapedArray((), aval.dtype, aval.weak_type)
    scalar = ArrayImpl(np.array(value, aval.dtype), type_of_one, is_literal=True)
    return on_mesh(broadcast_at(scalar, (), aval.shape) if aval.shape else scalar, aval)


def on_mesh(x: Array, aval: ShapedArray) -> Array:
    """An array that varies along axes of a mesh as a type says, and is sharded so if it has its
    shape.
    """
    x = core.pvary(x, aval.vma) if aval.vma else x
    is_sharded = aval.explicit_sharding is not None and x.shape == aval.shape
    return aval.shardings.with_sharding_of(aval, x) if is_sharded else x


def instantiate(x: Any) -> Array:
    """A tangent or cotangent as an array, even if it is a symbolic zero."""
    return zeros(x.aval) if isinstance(x, Zero) else x


def public_tangent(t: Any) -> Any:
    """A tangent or cotangent as users see it: an array of zeros instead of a symbolic one."""
    if isinstance(t, Zero) and t.aval.dtype == dtypes.float0:
        return np.zeros(t.aval.shape, dtypes.float0)
    return instantiate(t)


def add_cotangents(x: Any, y: Any) -> Any:
    """The sum of two cotangents of one value, either of which may be absent or zero."""
    if x is None or isinstance(x, Zero):
        return y
    return x if y is None or isinstance(y, Zero) else add_any_p.bind(x, y)


# ── Axes: moved, new, broadcast ──────────────────────────────────────────────────────────────

def move_axis(x: Array, source: int, destination: int) -> Array:
    source, destination = source % x.ndim, destination % x.ndim
    if source == destination:
        return x
    order = with_item(without(range(x.ndim), (source,)), destination, source)
    return transpose_p.bind(x, permutation=order)


def broadcast_batch(x: Array, dim: int, size: int) -> Array:
    """`x`, broadcast along a new axis at `dim`."""
    return broadcast_at(x, without(range(x.ndim + 1), (dim,)), with_item(x.shape, dim, size))


def batch_to(x: Array, dim: Dim, destination: int, size: int) -> Array:
    """`x` with its batch axis moved there; broadcast along a new one if it has none."""
    return broadcast_batch(x, destination, size) if dim is None else move_axis(x, dim, destination)


def broadcast_at(x: Array, dims: Sequence[int], shape: Shape) -> Array:
    """`x` broadcast to a shape, with its own axes at `dims`."""
    return broadcast_in_dim_p.bind(x, shape=shape, broadcast_dimensions=tuple(dims))


def reshaped(x: Array, shape: Shape) -> Array:
    return x if x.shape == shape else reshape_p.bind(x, new_sizes=shape, dimensions=None)


def in_blocks(x: Array, axis: int, count: int) -> Array:
    """`x` with an axis split in two: blocks, and the elements of each."""
    return reshaped(x, (*x.shape[:axis], count, x.shape[axis] // count, *x.shape[axis + 1:]))


def merged(x: Array, axis: int) -> Array:
    """An axis and the next one as one axis, which `in_blocks` splits."""
    return reshaped(x, (*x.shape[:axis], x.shape[axis] * x.shape[axis + 1], *x.shape[axis + 2:]))


def broadcast_to(x: Array, shape: Shape) -> Array:
    """An operand of an elementwise operation, broadcast to the shape of the result."""
    if x.shape == shape:
        return x
    kept = tuple(d for d in range(x.ndim) if x.shape[d] == shape[d])
    return broadcast_at(reshaped(x, tuple(shape[d] for d in kept)), kept, shape)


def unbroadcast(ct: Array, shape: Shape) -> Array:
    """The cotangent of an operand: the sum over the axes that `broadcast_to` repeated."""
    if ct.shape == shape:
        return ct
    axes = [d for d in range(ct.ndim) if not shape or shape[d] != ct.shape[d]]
    return reshaped(reduce_sum_p.bind(ct, axes=tuple(axes)), shape)


# ── Rules of what is linear ──────────────────────────────────────────────────────────────────

def linear(*places: int, but: Sequence[int] = ()) -> Any:
    """The derivative of an operation that is linear in these arguments jointly.

    Without places, it is linear in all arguments but some.
    """
    @ForPrimitive
    def jvp(p: Primitive, primals: list, tangents: list, **params: Any) -> Outs:
        outs = p.bind_list(*primals, **params)
        args = [instantiate(t) if i in places or not places and i not in but else x
                for i, (x, t) in enumerate(zip(primals, tangents, strict=True))]
        return outs, p.bind_list(*args, **params)
    return jvp


def transposed(*rules: Callable | None) -> Callable[..., list]:
    """A transpose rule from one rule for each argument in which the operation may be linear.

    A rule is ``(cotangent, *arguments, **params) -> cotangent``; None: never linear in it.
    """
    def transpose(cotangents: list, *args: Any, **params: Any) -> list:
        [ct] = cotangents
        arg_cotangents: list[Any] = [None] * len(args)
        for i, x in enumerate(args):
            if isinstance(x, Undefined):
                rule = rules[i] if i < len(rules) else None
                if rule is None:
                    raise NotImplementedError(f"the operation is not linear in argument {i}")
                arg_cotangents[i] = unbroadcast(rule(ct, *args, **params), x.aval.shape)
        return arg_cotangents
    return transpose


@ForPrimitive
def each_part(p: Primitive, c: Any, *args: Any, **params: Any) -> Any:
    """Of complex numbers: the operation on the real parts, and on the imaginary parts."""
    return c.Pair(*(p.bind(*(x.parts[k] if isinstance(x, c.Pair) else x for x in args), **params)
                    for k in (0, 1)))


# ── Rules of batches ─────────────────────────────────────────────────────────────────────────

@ForPrimitive
def batch_elementwise(p: Primitive, axis: Axis, args: list, dims: list, **params: Any) -> Outs:
    """Operands broadcast: align the batch axes, and add axes of size one."""
    ranked = [(x.shape, d) for x, d in zip(args, dims, strict=True) if x.ndim]
    if ranked.count(ranked[0]) == len(ranked):
        return [p.bind(*args, **params)], [ranked[0][1]]
    rank = max(x.ndim + (d is None and x.ndim > 0) for x, d in zip(args, dims, strict=True))
    aligned = [_aligned(x, d, rank) for x, d in zip(args, dims, strict=True)]
    return [p.bind(*aligned, **params)], [0]


def _aligned(x: Array, dim: Dim, rank: int) -> Array:
    """`x` with the batch axis leading, of size one if it had none, and of this rank."""
    if dim is None:
        return broadcast_batch(x, 0, 1) if x.ndim else x
    x = move_axis(x, dim, 0)
    return x if x.ndim == rank else broadcast_at(x, range(x.ndim), x.shape + (1,) * (rank - x.ndim))


def batch_along(name: str, removed: bool = False) -> Any:
    """Batches an operation of one operand along the axes in the parameter `name`.

    The batch axis stays where it is, unless axes below it are removed.
    """
    @ForPrimitive
    def batch(p: Primitive, axis: Axis, args: list, dims: list, /, **params: Any) -> Outs:
        [x], [dim] = args, dims
        axes = params[name]
        is_one = isinstance(axes, int)
        axes = batched_axes((axes,) if is_one else axes, dim)
        outs = p.bind_list(x, **params | {name: axes[0] if is_one else axes})
        return outs, [dim - sum(d < dim for d in axes) if removed else dim] * len(outs)
    return batch


def batch_in_front(name: str = "") -> Any:
    """Batches an operation with every batch axis in front; the axis in parameter `name` shifts."""
    @ForPrimitive
    def batch(p: Primitive, axis: Axis, args: list, dims: list, /, **params: Any) -> Outs:
        args = [batch_to(x, d, 0, axis.size) for x, d in zip(args, dims, strict=True)]
        if name:
            params[name] += 1
        outs = p.bind_list(*args, **params)
        return outs, [0] * len(outs)
    return batch


# ── The families of rearrangements and of reductions ─────────────────────────────────────────

def rearrangement(name: str, *, impl: Callable[..., np.ndarray], shape: Callable[..., Shape],
                  transpose: Callable[..., Array], batch: Any, source: Callable[..., Index | Any],
                  sharding: Callable[..., Any], examples: Examples) -> Primitive:
    """A primitive that rearranges the elements of one array.

    Args:
      name: as a jaxpr prints it.
      impl: its meaning, one NumPy array to one.
      shape: ``(aval, **params)`` to the shape of the result; checks the parameters.
      transpose: ``(cotangent, aval of the argument, **params)`` to the argument's cotangent.
      batch, sharding: as in `Primitive`.
      source: ``(s, index, operand, **params)``: the operand's element shown at an index.
      examples: arguments inside its domain.
    """
    return Primitive(
        name,
        impl=lambda x, **params: [impl(x, **params)],
        abstract_eval=lambda x, **params: [x.update(shape=shape(x, **params))],
        jvp=linear(0),
        transpose=transposed(lambda ct, x, **params: transpose(ct, x.aval, **params)),
        batch=batch,
        element=source,
        sharding=sharding,
        complex_parts=each_part,
        examples=examples)


def reduction(name: str, op: str, *, impl: Callable[..., Any], accepts: tuple = NUMBER, jvp: Any,
              transpose: Any = NOT_LINEAR) -> Primitive:
    """A primitive that reduces along `axes` by an associative operation.

    Args:
      name: as a jaxpr prints it.
      op: the scalar operation.
      impl: a NumPy function of an array and axes.
    """
    def abstract_eval(x: ShapedArray, *, axes: Axes) -> list[ShapedArray]:
        check_reducible(name, x, accepts)
        check_axes(x, axes)
        flag = config.flags.get("allow_f16_reductions")  # absent as long as no program names it
        if flag and not flag.value and op == "add" and x.dtype in (
                np.float16, dtypes.bfloat16) and any(x.shape[d] != 1 for d in axes):
            raise ValueError(f"{name} on operand {x.str_short(True)} is not allowed when "
                             "jax_allow_f16_reductions=False.")
        weak = x.weak_type and accepts is not BITS
        return [x.update(shape=without(x.shape, axes), weak_type=weak)]

    def element(s: Any, index: tuple, x: Any, axes: Axes) -> Any:
        axes = tuple(sorted(axes))
        extents = tuple(x.shape[d] for d in axes)
        term = lambda *inner: widened(s, x(expand_index(index, axes, inner)))
        in_order = summation.has_order(op, x)
        if in_order and len(axes) > 1:
            extents, term = as_chain(s, extents, term)
        return Reduction(op, computed_in(x.dtype), extents, term,
                         lambda total: s.const(extremum_identity(op, x.dtype), x.dtype)
                         if has_none(x, axes) else s.convert(total, x.dtype), in_order)

    def has_none(x: Any, axes: Axes) -> bool:
        return op in ("min", "max") and any(x.shape[d] == 0 for d in axes)

    joined = in_numpy(lambda x, axes: impl(x, axes))

    def meaning(x: np.ndarray, axes: Axes) -> list:
        if has_none(x, axes):
            return [np.full(without(x.shape, axes), extremum_identity(op, x.dtype))]
        return joined(x, axes=axes)

    return Primitive(name, impl=meaning, abstract_eval=abstract_eval, jvp=jvp, transpose=transpose,
                     batch=batch_along("axes", removed=True), element=element,
                     may_produce_nan=op in ("add", "mul"), sharding=layout("reduction", op=op),
                     complex_parts=each_part if op == "add" else in_pairs(name),
                     examples=reducible(accepts, axes_of))


def check_axes(x: ShapedArray, axes: Axes) -> None:
    """Refuse axes that `x` does not have, and repeated ones.

    Raises:
      ValueError: naming the axes.
    """
    refuse((len(axes) != len(set(axes)), f"duplicate value in 'axes' of reduction: {axes}"),
           (not all(0 <= d < x.ndim for d in axes), f"reduction axes {axes} contains out-of-bounds "
            f"indices for {x.str_long()}."), error=ValueError)


# ── transpose ────────────────────────────────────────────────────────────────────────────────

def _transpose_shape(x: ShapedArray, permutation: tuple) -> Shape:
    if sorted(permutation) != list(range(x.ndim)):
        raise TypeError("transpose permutation isn't a permutation of operand dimensions, "
                        f"got permutation {permutation} for operand shape {x.shape}.")
    return tuple(x.shape[d] for d in permutation)


transpose_p = rearrangement(
    "transpose", impl=lambda x, permutation: np.transpose(x, permutation),
    shape=_transpose_shape,
    transpose=lambda ct, x, permutation: transpose_p.bind(ct, permutation=inverse(permutation)),
    batch=lambda axis, args, dims, permutation: (
        [transpose_p.bind(*args, permutation=(*dims, *batched_axes(permutation, *dims)))], [0]),
    source=lambda s, index, x, permutation: x(tuple(index[d] for d in inverse(permutation))),
    sharding=layout("transpose"),
    examples=table("permutation", (grid(2, 3), (1, 0)), (grid(2, 3, 4), (2, 0, 1)), (grid(), ()),
                   (grid(0, 3, dtype=np.int32), (1, 0))))


# ── broadcast_in_dim ─────────────────────────────────────────────────────────────────────────

def _broadcast_shape(x: ShapedArray, shape: Shape, broadcast_dimensions: tuple) -> Shape:
    check_sizes("broadcast_in_dim", "shape", shape)
    check_sizes("broadcast_in_dim", "broadcast_dimensions", broadcast_dimensions)
    if x.ndim != len(broadcast_dimensions):
        raise TypeError(
            "broadcast_in_dim broadcast_dimensions must have length equal to operand ndim; "
            f"got broadcast_dimensions {broadcast_dimensions} for operand ndim {x.ndim}.")
    if len(shape) < x.ndim:
        raise TypeError(
            "broadcast_in_dim target broadcast shape must have equal or higher rank to the "
            f"operand shape; got operand ndim {x.ndim} and target broadcast ndim {len(shape)}.")
    if not set(broadcast_dimensions) <= set(range(len(shape))):
        raise TypeError(
            "broadcast_in_dim broadcast_dimensions must be a subset of output dimensions, got "
            f"{broadcast_dimensions} for operand ndim {x.ndim} and shape {shape}.")
    if any(n not in (1, shape[d]) for n, d in zip(x.shape, broadcast_dimensions, strict=True)):
        raise TypeError("broadcast_in_dim operand dimension sizes must either be 1, or be equal to "
                        "their corresponding dimensions in the target broadcast shape; got operand "
                        f"of shape {x.shape}, target broadcast shape {shape}, broadcast_dimensions "
                        f"{broadcast_dimensions} ")
    if len(set(broadcast_dimensions)) != len(broadcast_dimensions):
        raise TypeError("broadcast_in_dim broadcast_dimensions must not contain duplicates, "
                        f"got broadcast_dimensions {broadcast_dimensions}")
    if list(broadcast_dimensions) != sorted(broadcast_dimensions):
        raise TypeError("broadcast_in_dim broadcast_dimensions must be strictly increasing; "
                        f"got broadcast_dimensions {broadcast_dimensions}")
    return tuple(shape)


def broadcast_along(x: np.ndarray, shape: Shape, broadcast_dimensions: tuple) -> np.ndarray:
    sizes = dict(zip(broadcast_dimensions, x.shape, strict=True))
    x = x.reshape([sizes.get(d, 1) for d in range(len(shape))])
    return x if x.shape == shape else np.broadcast_to(x, shape)


def _transpose_broadcast(ct: Array, x: ShapedArray, broadcast_dimensions: Axes, **_: Any) -> Array:
    ones = [i for i, n in enumerate(x.shape) if n == 1]
    summed = without(range(ct.ndim), without(broadcast_dimensions, ones))
    total = reduce_sum_p.bind(ct, axes=summed) if summed else ct
    return broadcast_at(total, without(range(x.ndim), ones), x.shape) if ones else total


broadcast_in_dim_p = rearrangement(
    "broadcast_in_dim", impl=broadcast_along, shape=_broadcast_shape,
    transpose=_transpose_broadcast,
    batch=lambda axis, args, dims, shape, broadcast_dimensions: (
        [broadcast_at(move_axis(args[0], dims[0], 0), (0, *batched_axes(broadcast_dimensions, 0)),
                      (axis.size, *shape))], [0]),
    source=lambda s, index, x, shape, broadcast_dimensions: x(tuple(
        index[d] if n == shape[d] else s.const(0, np.int64)
        for n, d in zip(x.shape, broadcast_dimensions, strict=True))),
    sharding=layout("broadcast_in_dim"),
    examples=table(
        "shape broadcast_dimensions", (grid(3), (2, 3), (1,)), (grid(3), (3, 2), (0,)),
        (grid(2, 1), (2, 4, 3), (0, 2)), (grid(), (2, 2), ()),
        (grid(1, dtype=np.int32), (0,), (0,))))


# ── reshape ──────────────────────────────────────────────────────────────────────────────────

def _reshape_shape(x: ShapedArray, new_sizes: Shape, dimensions: None) -> Shape:
    refuse((any(n < 0 for n in new_sizes),
            f"reshape new_sizes must all be positive, got {new_sizes}."),
           (np.prod(new_sizes, dtype=int) != x.size, "reshape total size must be unchanged, got "
            f"new_sizes {new_sizes} for shape {x.shape}."))
    return tuple(new_sizes)


reshape_p = rearrangement(
    "reshape",
    impl=lambda x, new_sizes, dimensions: np.reshape(x, new_sizes),
    shape=_reshape_shape,
    transpose=lambda ct, x, **_: reshape_p.bind(ct, new_sizes=x.shape, dimensions=None),
    batch=lambda axis, args, dims, new_sizes, dimensions: (
        [reshape_p.bind(move_axis(args[0], dims[0], 0), new_sizes=(axis.size, *new_sizes),
                        dimensions=None)], [0]),
    source=lambda s, index, x, new_sizes, dimensions: x.flat(s.ravel(index, new_sizes)),
    sharding=layout("reshape"),
    examples=table(
        "new_sizes dimensions", (grid(2, 6), (3, 4), None), (grid(4), (2, 1, 2), None),
        (grid(1, 1), (), None), (grid(0, 3, dtype=np.int32), (5, 0), None)))


# ── reduce_sum, add_any ──────────────────────────────────────────────────────────────────────

reduce_sum_p = reduction(
    "reduce_sum", "add", impl=summation.total,
    jvp=linear(0),
    transpose=transposed(
        lambda ct, x, axes: broadcast_at(ct, without(range(x.aval.ndim), axes), x.aval.shape)))


def termwise(second: Callable[[Array], Array] = lambda t: t) -> Any:
    """The derivative of a sum: one equation for both terms.

    Where the first term is constant, `second` takes the tangent of the other to the result's.
    """
    @ForPrimitive
    def jvp(p: Primitive, primals: list, tangents: list) -> Outs:
        out, (t, u) = p.bind(*primals), tangents
        if isinstance(u, Zero):
            return [out], [broadcast_to(t, out.shape)]
        return [out], [broadcast_to(second(u), out.shape) if isinstance(t, Zero) else p.bind(t, u)]
    return jvp


# Interpreters add tangents and cotangents with it; users write `add`.  Its weak type is that of the
# first operand.
add_any_p = Primitive(
    "add_any", impl=in_numpy(np.add),
    abstract_eval=lambda x, y: [ShapedArray(broadcast_shapes("add_any", [x.shape, y.shape]),
                                            x.dtype, x.weak_type)],
    jvp=termwise(), transpose=transposed(lambda ct, x, y: ct, lambda ct, x, y: ct),
    batch=batch_elementwise,
    element=pointwise(lambda s, x, y: s.add(x, y)), may_produce_nan=True, complex_parts=each_part,
    examples=points((-2., 2.), (-2., 2.)))
