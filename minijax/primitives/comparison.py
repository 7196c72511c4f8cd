"""Comparisons, logic, shifts and counts of bits; select and clamp.

Builds on `families`.  Chapter 17, *Control flow under jit*, selects where Python cannot branch;
chapter 16, *Random numbers*, uses bits.
In JAX: `jax/_src/lax/lax.py`.
"""

import operator
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core import (Array, Axis, Example, ForPrimitive, Outs, Primitive, ShapedArray,
                          Undefined, refuse)
from minijax.primitives.ad_util import (batch_to, broadcast_at, broadcast_to, each_part,
                                        filled, linear)
from minijax.primitives.examples import anything, bits, integers, table
from minijax.primitives.families import binary, elementwise, of_one_shape, per_argument, unary
from minijax.primitives.infix import infix
from minijax.primitives.slots import (ANYTHING, BITS, INTEGER, NOT_LINEAR, ORDERED, all_weak,
                                      by_formula, check_dtypes, check_same_dtypes, layout,
                                      pointwise)

Pair = tuple[Primitive, Callable[[Any, Any], Any]]

# ── Comparisons ──────────────────────────────────────────────────────────────────────────────

def comparison(name: str, meaning: str, impl: np.ufunc, accepts: tuple, shown: bool) -> Pair:
    """A primitive that compares; `shown` is its result for 1.5 and 2."""
    return binary(name, meaning, shows=f"1.5, 2.0 -> {shown}", accepts=accepts, impl=impl,
                  result=lambda dtype: np.dtype(bool), examples=anything(2))


eq_p, eq = comparison("eq", "Whether ``x == y``.", np.equal, ANYTHING, False)
ne_p, ne = comparison("ne", "Whether ``x != y``; true where either is nan.", np.not_equal,
                      ANYTHING, True)
lt_p, lt = comparison("lt", "Whether ``x < y``.", np.less, ORDERED, True)
le_p, le = comparison("le", "Whether ``x <= y``.", np.less_equal, ORDERED, True)
gt_p, gt = comparison("gt", "Whether ``x > y``.", np.greater, ORDERED, False)
ge_p, ge = comparison("ge", "Whether ``x >= y``.", np.greater_equal, ORDERED, False)


def _rank(x: Any) -> Any:
    """An integer for every number, in the same order; of floats, in the order of their bits."""
    if dtypes.kind(x.dtype) != "f":
        return x
    if x.dtype.itemsize == 1:  # not every such float has a bit for the sign
        x = x.to(np.float32)
    bits = x.bits()
    return bits ^ ((bits >> 8 * bits.dtype.itemsize - 1) & np.iinfo(bits.dtype).max)


# Comparisons in the total order of floats: -nan, -inf, …, -0, 0, …, inf, nan.
eq_to_p, lt_to_p, le_to_p = (
    elementwise(f"{compare.__name__}_to", accepts=[ORDERED, ORDERED], examples=anything(2),
                result=lambda dtype: np.dtype(bool),
                element=infix(lambda x, y, compare=compare: compare(_rank(x), _rank(y))))
    for compare in (operator.eq, operator.lt, operator.le))


# ── Logic, bit by bit ────────────────────────────────────────────────────────────────────────

not_p, bitwise_not = unary(
    "not", "Elementwise ``~x``.", accepts=BITS, impl=np.invert, examples=bits(1))

(and_p, bitwise_and), (or_p, bitwise_or), (xor_p, bitwise_xor) = (
    binary(name, f"Elementwise ``x {sign} y``.", shows=f"6, 3 -> {shown}", impl=impl,
           accepts=BITS, examples=bits(2))
    for name, sign, impl, shown in (("and", "&", np.bitwise_and, 2), ("or", "|", np.bitwise_or, 7),
                                    ("xor", "^", np.bitwise_xor, 5)))

shift_left_p, shift_left = binary(
    "shift_left", "Elementwise ``x << y``; 0 where y is not below the number of bits.",
    shows="1, 4 -> 16", accepts=INTEGER, element=lambda s, x, y: s.shl(x, y), examples=integers(2))
shift_right_logical_p, shift_right_logical = binary(
    "shift_right_logical", "Elementwise ``x >> y``, filled with zeros.", shows="-1, 28 -> 15",
    accepts=INTEGER, element=lambda s, x, y: s.shr_logical(x, y), examples=integers(2))
shift_right_arithmetic_p, shift_right_arithmetic = binary(
    "shift_right_arithmetic", "Elementwise ``x >> y``, filled with the sign of x.",
    shows="-16, 2 -> -4",
    accepts=INTEGER, element=lambda s, x, y: s.shr_arithmetic(x, y), examples=integers(2))


# ── Counting bits ────────────────────────────────────────────────────────────────────────────

def _ones(x: Any) -> Any:
    """The number of set bits: sums of neighbours, then of pairs, of nibbles, of bytes."""
    size = x.dtype.itemsize

    def mask(pattern: int) -> int:
        """A byte repeated over the whole word."""
        return int.from_bytes(bytes([pattern]) * size, "little")
    u = x.bits(f"u{size}")
    u -= u >> 1 & mask(0x55)
    u = (u & mask(0x33)) + (u >> 2 & mask(0x33))
    u = (u + (u >> 4)) & mask(0x0f)
    return (u * mask(0x01) >> 8 * size - 8).to(x.dtype)


def _leading_zeros(x: Any) -> Any:
    """The number of clear bits once the highest set bit is copied to all lower ones."""
    size = 8 * x.dtype.itemsize
    u = x.bits(f"u{x.dtype.itemsize}")
    for k in range(size.bit_length() - 1):
        u |= u >> (1 << k)
    return (_ones(~u) - (size - dtypes.itemsize_bits(x.dtype))).to(x.dtype)


population_count_p, population_count = unary(
    "population_count", "The number of set bits.", accepts=INTEGER, shows="255 -> 8",
    element=infix(_ones), examples=integers(1))

clz_p, clz = unary("clz", "The number of leading zero bits.", accepts=INTEGER, shows="255 -> 24",
                   element=infix(_leading_zeros), examples=integers(1))


# ── Selection ────────────────────────────────────────────────────────────────────────────────

def _select_type(which: ShapedArray, *cases: ShapedArray) -> list[ShapedArray]:
    shapes = [case.shape for case in cases]
    refuse(
        (len(set(shapes)) > 1,
         f"select cases must have the same shapes, got [{', '.join(map(str, shapes))}]."),
        (which.shape not in ((), shapes[0]), "select `which` must be scalar or have the same shape "
         f"as cases, got `which` shape {which.shape} but case shape {shapes[0]}."))
    check_same_dtypes("select", *cases)
    refuse(
        (not any(dtypes.issubdtype(which.dtype, kind) for kind in BITS),
         f"select `which` must be boolean or integer type, got {which.dtype}."),
        (which.dtype == bool and len(cases) > 2,
         "select with boolean `which` cannot have > 2 cases."))
    return [cases[0].update(weak_type=all_weak(cases))]


def _chosen(s: Any, which: Any, *cases: Any) -> Any:
    chosen = cases[0]
    for i, case in enumerate(cases[1:], start=1):
        chosen = s.select(which if which.dtype == bool else s.ge(which, i), case, chosen)
    return chosen


_NUMPY = SimpleNamespace(select=np.where, ge=np.greater_equal)


def _select_transpose(cotangents: list, which: Any, *cases: Any) -> list:
    """Each case gets the cotangent where it was selected."""
    [ct] = cotangents
    zeros = filled(0, ct)
    return [None, *(select_n_p.bind(which, *(ct if k == i else zeros for k in range(len(cases))))
                    if isinstance(case, Undefined) else None for i, case in enumerate(cases))]


def _batch_of_one_shape(*may_be_scalar: int) -> Any:
    """Batches an operation on operands of one shape, or scalars.

    Batch axes at different positions move to the front, and a batch of scalars is broadcast; a
    scalar that all examples share stays one.
    """
    @ForPrimitive
    def batch(p: Primitive, axis: Axis, args: list, dims: list) -> Outs:
        scalar = [not x.ndim and i in may_be_scalar for i, x in enumerate(args)]
        if len({(x.ndim, d) for x, d, s in zip(args, dims, scalar, strict=True) if not s}) == 1:
            return [p.bind(*args)], [dims[1]]
        operands = [x if s else batch_to(x, d, 0, axis.size)
                    for x, d, s in zip(args, dims, scalar, strict=True)]
        shape = max((x.shape for x in operands), key=len)
        return [p.bind(*(x if x.ndim in (0, len(shape)) else broadcast_at(x, [0], shape)
                         for x in operands))], [0]
    return batch


def _select_examples() -> list[Example]:
    x, y, z = (np.array([[1, 2, 3], [4, 5, 6]], np.float32) * k for k in (1, -1, 10))
    mask = np.array([[True, False, True], [False, False, True]])
    wide = tuple(a.astype(np.float64) for a in (x, y, z))
    numbers = np.array([[0, 1, 2], [-1, 7, 1]], np.int32)
    return table("", (mask, x, y), (np.array(True), x, y), (mask, *wide[:2]), (numbers, x, y, z),
                 (numbers, *wide), (np.array(False), np.int32(3), np.int32(4)),
                 (np.array(True), x), (mask[:0], x[:0], x[:0]), (mask, mask, ~mask),
                 (mask, np.full_like(x, np.nan), y))()


select_n_p = Primitive(
    "select_n", impl=lambda *args: [_chosen(_NUMPY, *args)], abstract_eval=_select_type,
    jvp=linear(but=[0]), transpose=_select_transpose,
    batch=_batch_of_one_shape(0), sharding=layout("elementwise", words={
        "differ": "select cases must have the same shardings, got {cases}."}),
    element=pointwise(_chosen), complex_parts=each_part,
    examples=_select_examples)


def select_n(which: Any, *cases: Any) -> Any:
    """At each place, the element of the case whose number `which` gives there.

    Args:
      which: bools or integers, of the shape of the cases or a scalar; clamped into range.
      cases: arrays of one shape and dtype.

    Raises:
      TypeError: where they do not fit.

    >>> import numpy as np
    >>> select_n(np.array([0, 1]), np.array([1., 2.]), np.array([10., 20.]))
    Array([ 1., 20.], dtype=float32)
    """
    if not cases:
        raise ValueError("select_n() must have at least one case")
    return select_n_p.bind(which, *cases)


def select(pred: Any, on_true: Any, on_false: Any) -> Any:
    """`on_true` where `pred` holds, `on_false` elsewhere.

    Args:
      pred: bools, of the shape of the others or a scalar.
      on_true, on_false: arrays of one shape and dtype; both are computed.

    Raises:
      TypeError: where they do not fit.

    >>> select(True, 1., 2.)
    Array(1., dtype=float32, weak_type=True)
    """
    return select_n_p.bind(pred, on_false, on_true)


# ── Clamping ─────────────────────────────────────────────────────────────────────────────────

def _clamp_type(min: ShapedArray, x: ShapedArray, max: ShapedArray) -> list[ShapedArray]:
    refuse(*((bound.shape not in ((), x.shape),
              f"clamp requires {name}.shape == operand.shape or {name}.shape == (), got "
              f"{name}.shape={bound.shape}, operand.shape={x.shape}.")
             for name, bound in (("min", min), ("max", max))))
    check_dtypes("clamp", [min, x, max], [ANYTHING] * 3)
    return [x.update(weak_type=all_weak([min, x, max]))]


def _clamped(s: Any, low: Any, x: Any, high: Any) -> Any:
    return s.min(s.max(x, low), high)


def _tangent_where(t: Array, x: Array, chosen: Array) -> Array:
    return select(chosen, broadcast_to(t, x.shape), filled(0, x))


def _clamp_examples() -> list[Example]:
    cases: list[tuple] = []
    for dtype in (np.float32, np.float64, np.int32):
        x = np.array([[-3, 1, 2], [7, -8, 9]], dtype)
        cases += [(dtype(-2), x, dtype(5)), (np.full_like(x, -2), x, np.full_like(x, 5)),
                  (dtype(3), dtype(-2), dtype(4))]
    nan, one = np.array([np.nan, 1, -1, np.inf], np.float32), np.float32(1)
    return table("", *cases, (np.float32(0), nan, one), (nan, nan[::-1].copy(), 2 * one),
                 (2 * one, nan[:0], one))()


clamp_p = Primitive(
    "clamp", impl=by_formula(_clamped), abstract_eval=_clamp_type,
    jvp=per_argument(
        lambda t, z, low, x, high: _tangent_where(t, x, bitwise_and(gt(low, x), lt(low, high))),
        lambda t, z, low, x, high: _tangent_where(t, x, bitwise_and(gt(x, low), lt(x, high))),
        lambda t, z, low, x, high: _tangent_where(t, x, lt(high, x))),
    transpose=NOT_LINEAR,
    batch=_batch_of_one_shape(0, 2), sharding=layout("elementwise"),
    element=pointwise(_clamped),
    complex_parts=of_one_shape(lambda c, low, z, high: c.min(c.max(z, low), high)),
    examples=_clamp_examples)


def clamp(min: Any, x: Any, max: Any) -> Any:
    """`x`, but not below `min` nor above `max`.

    Args:
      x: an array.
      min, max: of the dtype of x, and of its shape or scalars.

    Raises:
      TypeError: where they do not fit.

    >>> clamp(0., 2.5, 1.)
    Array(1., dtype=float32, weak_type=True)
    """
    return clamp_p.bind(min, x, max)
