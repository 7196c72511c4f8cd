"""Reductions along axes, and cumulative reductions along one axis.

Builds on `ad_util`, where the sum is, and on `algebra`.  Chapter 23, *An array is a function of
an index*.  In JAX: `jax/_src/lax/lax.py`, `jax/_src/lax/control_flow/loops.py`.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.core import Array, ForPrimitive, Outs, Primitive, ShapedArray, Zero, refuse
from minijax.primitives import analytic, comparison, examples, joining, rounding, slicing, summation
from minijax.primitives.algebra import (add, complex, div, extremum, imag, max, max_p, min_p, mul,
                                        mul_p, neg, real, sub)
from minijax.primitives.axes import Axes, replaced
from minijax.primitives.convert import converted
from minijax.primitives.ad_util import (batch_along, constant, each_part, filled, linear,
                                        reduce_sum_p, reduction, reshaped, transposed)
from minijax.primitives.families import by_program, constant_in_all, kernel, per_argument
from minijax.primitives.slots import (ANYTHING, BITS, INEXACT, NOT_LINEAR, NUMBER, check_reducible,
                                      computed_in, extremum_identity, in_numpy, in_pairs, layout,
                                      nest, widened)

# ── Sum and product ──────────────────────────────────────────────────────────────────────────

def reduce_sum(operand: Any, axes: Sequence[int], *, out_sharding: Any = None) -> Any:
    """The sum along axes.

    Args:
      operand: an array of numbers.
      axes: which axes, counted from the front.

    >>> import numpy as np
    >>> reduce_sum(np.ones((2, 3)), (1,))
    Array([3., 3.], dtype=float32)
    """
    return reduce_sum_p.bind(operand, axes=tuple(axes))


@ForPrimitive
def _prod_jvp(p: Primitive, primals: list, tangents: list, axes: Axes) -> Outs:
    """The sum of the tangents, each times all other factors: those before it and after it."""
    (x,), (t,) = primals, tangents
    out = p.bind(x, axes=axes)
    if any(x.shape[axis] == 0 for axis in axes):
        return [out], [Zero(out.aval.to_tangent_aval())]
    for axis in sorted(axes, reverse=True):
        before, after = (_exclusive_products(x, axis, reverse) for reverse in (False, True))
        t = reduce_sum_p.bind(mul(t, mul(before, after)), axes=(axis,))
        x = reduce_prod_p.bind(x, axes=(axis,))
    return [out], [t]


def _exclusive_products(x: Array, axis: int, reverse: bool) -> Array:
    """For each element, the product of those before it along an axis, or after it."""
    by_one = replaced([(0, 0, 0)] * x.ndim, axis, (-1, 1, 0) if reverse else (1, -1, 0))
    shifted = slicing.pad_p.bind(x, constant(1, x), padding_config=by_one)
    return cumprod_p.bind(shifted, axis=axis, reverse=reverse)


reduce_prod_p = reduction(
    "reduce_prod", "mul",
    impl=summation.product,
    jvp=_prod_jvp)


def reduce_prod(operand: Any, axes: Sequence[int]) -> Any:
    """The product along axes.

    >>> import numpy as np
    >>> reduce_prod(np.array([2., 3.]), (0,))
    Array(6., dtype=float32)
    """
    return reduce_prod_p.bind(operand, axes=tuple(axes))


# ── Maximum and minimum ──────────────────────────────────────────────────────────────────────

def _extremum_tangent(t: Array, out: Array, x: Array, axes: Axes) -> Array:
    """The mean of the tangents of all elements that attain the extremum."""
    keepdims = tuple(1 if d in axes else n for d, n in enumerate(x.shape))
    attained = converted(comparison.eq(x, reshaped(out, keepdims)), t.dtype, False)
    count = reduce_sum_p.bind(attained, axes=axes)
    return div(reduce_sum_p.bind(mul(t, attained), axes=axes), count)


def _extremum_of(op: str, x: np.ndarray, axes: Axes) -> Any:
    if x.dtype.kind != "c":
        return extremum(op, lambda ufunc, x: ufunc.reduce(x, axes), x)
    start = extremum_identity(op, x.dtype)
    return extremum(op, lambda ufunc, x, start: ufunc.reduce(x, axes, initial=start), x, start)


reduce_max_p, reduce_min_p = (
    reduction(f"reduce_{op}", op, accepts=ANYTHING, impl=functools.partial(_extremum_of, op),
              jvp=per_argument(_extremum_tangent)) for op in ("max", "min"))


def reduce_max(operand: Any, axes: Sequence[int]) -> Any:
    """The maximum along axes; nan if there is one; of no elements, the least value.

    >>> import numpy as np
    >>> reduce_max(np.array([2., 3.]), (0,))
    Array(3., dtype=float32)
    """
    return reduce_max_p.bind(operand, axes=tuple(axes))


def reduce_min(operand: Any, axes: Sequence[int]) -> Any:
    """The minimum along axes; nan if there is one; of no elements, the greatest value.

    >>> import numpy as np
    >>> reduce_min(np.array([2., 3.]), (0,))
    Array(2., dtype=float32)
    """
    return reduce_min_p.bind(operand, axes=tuple(axes))


# ── Logic ────────────────────────────────────────────────────────────────────────────────────

reduce_and_p, reduce_or_p, reduce_xor_p = (
    reduction(f"reduce_{op}", op, accepts=BITS, impl=ufunc.reduce, jvp=constant_in_all)
    for op, ufunc in (("and", np.bitwise_and), ("or", np.bitwise_or), ("xor", np.bitwise_xor)))


def reduce_and(operand: Any, axes: Sequence[int]) -> Any:
    """Whether all hold along axes; bit by bit for integers.

    >>> import numpy as np
    >>> reduce_and(np.array([True, False]), (0,))
    Array(False, dtype=bool)
    """
    return reduce_and_p.bind(operand, axes=tuple(axes))


def reduce_or(operand: Any, axes: Sequence[int]) -> Any:
    """Whether any holds along axes; bit by bit for integers.

    >>> import numpy as np
    >>> reduce_or(np.array([True, False]), (0,))
    Array(True, dtype=bool)
    """
    return reduce_or_p.bind(operand, axes=tuple(axes))


def reduce_xor(operand: Any, axes: Sequence[int]) -> Any:
    """Whether an odd number holds along axes; bit by bit for integers.

    >>> import numpy as np
    >>> reduce_xor(np.array([True, True]), (0,))
    Array(False, dtype=bool)
    """
    return reduce_xor_p.bind(operand, axes=tuple(axes))


# ── Cumulative reductions ────────────────────────────────────────────────────────────────────

MANY = 1 << 16  # elements that pay for chains in vectors, which take long to compile


def cumulative(name: str, op: str, running: Callable[[np.ndarray, int], np.ndarray], *,
               jvp: Any, transpose: Any = NOT_LINEAR) -> Primitive:
    """A primitive that gives every partial result of a reduction along one axis.

    Args:
      name: as a jaxpr prints it.
      op: the scalar operation.
      running: the meaning in NumPy, from the first element on.
    """
    def impl(x: np.ndarray, axis: int, reverse: bool) -> np.ndarray:
        x = np.flip(x, axis) if reverse else x
        out = running(x, axis)
        return np.flip(out, axis) if reverse else out

    return _along_an_axis(name, NUMBER, impl=in_numpy(impl), jvp=jvp, transpose=transpose,
                          loop=_running_loop(op), can_fuse_operands=True,
                          complex_parts=each_part if op == "add" else in_pairs(name))


def _along_an_axis(name: str, accepts: tuple, **slots: Any) -> Primitive:
    def abstract_eval(x: ShapedArray, *, axis: int, reverse: bool) -> list[ShapedArray]:
        refuse((axis < 0, "XLA operations do not allow negative axes"), (axis >= x.ndim, (
            f"axis {axis} is out of bounds for array of shape {x.shape}")), error=ValueError)
        check_reducible(name, x, accepts)
        return [x]

    return Primitive(
        name, abstract_eval=abstract_eval, batch=batch_along("axis"), may_produce_nan=True,
        sharding=layout("along", name="axis", words={
            "whole": "Input should be unsharded over the axis being reduced. Got input "
                     "type={type} and axis={axis}"}),
        examples=examples.reducible(accepts, lambda rank: [
            {"axis": d, "reverse": r} for d in {0, rank - 1} for r in (False, True)]), **slots)


# ── Derivatives ──────────────────────────────────────────────────────────────────────────────

Dual = tuple[Array, Array]  # a value and its tangent


def _by_prefixes(step: Primitive) -> ForPrimitive:
    """The derivative of the cumulative reduction by a binary primitive."""
    def combined(x: Dual, y: Dual) -> Dual:
        [out], [tangent] = step.rule("jvp")([x[0], y[0]], [x[1], y[1]])
        return out, tangent
    return _of_duals(combined)


def _of_duals(combined: Callable[[Dual, Dual], Dual]) -> ForPrimitive:
    """The derivative as the same cumulative reduction of pairs of values and tangents."""
    @ForPrimitive
    def jvp(p: Primitive, primals: list, tangents: list, **params: Any) -> Outs:
        out = p.bind(*primals, **params)
        _, tangent = prefixes(combined, (*primals, *tangents), **params)
        return [out], [tangent]
    return jvp


def prefixes(combine: Callable, x: tuple[Array, ...], axis: int, reverse: bool = False) -> Any:
    """All partial results of an associative operation on tuples of arrays.

    Each round doubles the number of elements that a partial result combines.
    """
    # JAX: does half of the work, on the even indices.
    n: int = x[0].shape[axis]
    reach = 1
    while reach < n:
        early, late, rest = (
            tuple(slicing.part(a, *ends, axis) for a in x)
            for ends in ((0, n - reach), (reach, n), (n - reach, n) if reverse else (0, reach)))
        both = combine(late, early) if reverse else combine(early, late)
        x = tuple(joining.concatenate_p.bind(*(ends[::-1] if reverse else ends), dimension=axis)
                  for ends in zip(rest, both, strict=True))
        reach *= 2
    return x


# ── Lowering ─────────────────────────────────────────────────────────────────────────────────

def _running_loop(op: str) -> Callable[..., None]:
    """Along the axis in order; the axes after it are one inner loop of independent totals."""
    def loop(b: Any, outputs: Sequence, operands: Sequence, axis: int, reverse: bool) -> None:
        if b.on_gpu:
            kernel("running")(b, outputs, operands, op=op, axis=axis, reverse=reverse)
            return
        [x], [out] = operands, outputs
        n, inner = x.shape[axis], x.shape[axis + 1:]
        with nest(b, x.shape[:axis], "parallel") as outer:
            def at(k: Any, j: Any) -> tuple:
                return *outer, b.sub(n - 1, k) if reverse else k, *b.unravel(j, inner)

            if x.size:
                _run(b, op, computed_in(x.dtype), n, math.prod(inner), math.prod(x.shape[:axis]),
                     lambda k, j: b.rounded(widened(b, x(at(k, j)))),
                     lambda k, j, total: b.store(out, at(k, j), b.convert(total, x.dtype)))
    return loop


def _run(b: Any, op: str, dtype: np.dtype, n: int, width: int, rows: int, term: Callable,
         store: Callable) -> None:
    """``store(k, j, total of term(i, j) for i <= k)`` for all k < n and j < `width`.

    The totals of chains come first, then their own running totals, to which each chain adds its
    own, in registers. So does `summation.running`. The program does so many such scans (`rows`).
    """
    join, whole = getattr(b, op), (n - 1) // summation.CHAIN
    before, rest = b.temp((whole + 1, width), dtype, "before"), b.temp((1, width), dtype, "rest")

    def chain(i: Any, j: Any, use: Callable = lambda k, total: None) -> Any:
        """The total of a chain, after ``use(k, total so far)``; a loop, if there are few chains."""
        if rows * n * width >= MANY:
            total = None
            for u in range(summation.CHAIN):
                k = b.add(b.mul(i, summation.CHAIN), u)
                total = term(k, j) if total is None else join(total, term(k, j))
                use(k, total)
            return total
        so_far = b.variable(b.starting_value(op, dtype))
        with b.loop(summation.CHAIN) as u:
            k = b.add(b.mul(i, summation.CHAIN), u)
            b.assign(so_far, join(b.read(so_far), term(k, j)))
            use(k, b.read(so_far))
        return b.read(so_far)

    with b.loop(width, vectorize="parallel") as j:
        b.store_all([before, rest], (0, j), [b.starting_value(op, dtype)] * 2)
    if whole:
        with nest(b, (whole, width), "parallel") as (i, j):
            b.store(before, (b.add(i, 1), j), chain(i, j))
        _run(b, op, dtype, whole, width, rows, lambda i, j: b.load(before, (b.add(i, 1), j)),
             lambda i, j, total: b.store(before, (b.add(i, 1), j), total))
        with nest(b, (whole, width), "parallel") as (i, j):
            start = b.load(before, (i, j))
            chain(i, j, lambda k, total: store(k, j, join(start, total)))
    with b.loop(n - whole * summation.CHAIN) as i, b.loop(width, vectorize="parallel") as j:
        k = b.add(whole * summation.CHAIN, b.index(i))
        total = join(b.load(rest, (0, j)), term(k, j))
        b.store(rest, (0, j), total)
        store(k, j, join(b.load(before, (whole, j)), total))


# ── The primitives and their functions ───────────────────────────────────────────────────────

def _extrema(op: str, x: np.ndarray, axis: int) -> Any:
    start = np.full(replaced(x.shape, axis, 1), extremum_identity(op, x.dtype))
    return np.delete(extremum(op, lambda ufunc, x: ufunc.accumulate(x, axis),
                              np.concatenate([start, x], axis)), 0, axis)


cumsum_p = cumulative(
    "cumsum", "add",
    lambda x, axis: summation.running(np.add, x, axis) + x.dtype.type(0),  # never -0
    jvp=linear(0),
    transpose=transposed(lambda ct, x, axis, reverse: cumsum_p.bind(
        ct, axis=axis, reverse=not reverse)))
cumprod_p = cumulative(
    "cumprod", "mul", lambda x, axis: summation.running(np.multiply, x, axis),
    jvp=_by_prefixes(mul_p))
cummax_p, cummin_p = (
    cumulative(f"cum{op}", op, functools.partial(_extrema, op), jvp=_by_prefixes(step))
    for op, step in (("max", max_p), ("min", min_p)))


def cumsum(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """The running sum along an axis.

    Args:
      operand: an array of numbers.
      axis: counted from the front.
      reverse: run from the end.

    >>> import numpy as np
    >>> cumsum(np.arange(4)), cumsum(np.arange(4), reverse=True)
    (Array([0, 1, 3, 6], dtype=int32), Array([6, 6, 5, 3], dtype=int32))
    """
    return cumsum_p.bind(operand, axis=int(axis), reverse=bool(reverse))


def cumprod(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """The running product along an axis.

    >>> import numpy as np
    >>> cumprod(np.array([1, 2, 3, 4]))
    Array([ 1,  2,  6, 24], dtype=int32)
    """
    return cumprod_p.bind(operand, axis=int(axis), reverse=bool(reverse))


def cummax(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """The running maximum along an axis.

    >>> import numpy as np
    >>> cummax(np.array([1, 3, 2]))
    Array([1, 3, 3], dtype=int32)
    """
    return cummax_p.bind(operand, axis=int(axis), reverse=bool(reverse))


def cummin(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """The running minimum along an axis.

    >>> import numpy as np
    >>> cummin(np.array([3, 1, 2]))
    Array([3, 1, 1], dtype=int32)
    """
    return cummin_p.bind(operand, axis=int(axis), reverse=bool(reverse))


def cumlogsumexp(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """The running ``log(sum(exp(x)))`` along an axis.

    >>> import numpy as np
    >>> cumlogsumexp(np.zeros(1))
    Array([0.], dtype=float32)
    """
    return cumlogsumexp_p.bind(operand, axis=int(axis), reverse=bool(reverse))


def _running_logs(x: Array, axis: int, reverse: bool) -> Array:
    [logs] = prefixes(lambda a, b: (_log_add(*a, *b),), (x,), axis, reverse)
    return add(logs, constant(0, x))  # the sum begins with exp(-inf), so that no log is -0


def _log_add(a: Array, b: Array) -> Array:
    if a.dtype.kind == "c":
        is_first = comparison.ge(real(a), real(b))
        larger, smaller = comparison.select(is_first, a, b), comparison.select(is_first, b, a)
        log = add(larger, analytic.log1p(analytic.exp(sub(smaller, larger))))
        angle: Any = imag(log)  # to be brought between -pi and pi
        turns = rounding.floor((angle + np.pi) / (2 * np.pi))
        return complex(real(log), angle - turns * (2 * np.pi))
    equal = comparison.eq(a, b)  # so are infinities, whose difference is nan
    gap = comparison.select(equal, filled(0, a), sub(a, b))
    return add(max(a, b), analytic.log1p(analytic.exp(neg(rounding.abs(gap)))))


def _log_add_of_duals(x: Dual, y: Dual) -> Dual:
    """Each tangent, weighted by its term's part of the sum; infinite terms weigh nothing."""
    whole = _log_add(x[0], y[0])
    finite = [comparison.select(comparison.eq(a, filled(np.inf, a)), filled(0, a), a)
              for a in (x[0], y[0], whole)]
    parts = [analytic.exp(sub(a, finite[2])) for a in finite[:2]]
    return whole, add(mul(x[1], parts[0]), mul(y[1], parts[1]))


cumlogsumexp_p = _along_an_axis(
    "cumlogsumexp", INEXACT, impl=by_program(_running_logs), program=_running_logs,
    jvp=_of_duals(_log_add_of_duals), transpose=NOT_LINEAR)
