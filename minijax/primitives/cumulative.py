"""Running totals: every partial sum, product, maximum and minimum along an axis.

Stands on `reduce`.  Chapter 09, *Control flow*, writes them as scans.
In JAX: `jax/_src/lax/control_flow/loops.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.core import Array, ForPrimitive, Primitive, ShapedArray, as_value
from minijax.primitives import analytic, choice, examples, reduce, rounding, slots, summation
from minijax.primitives.algebra import (add, complex_extrema, max, max_p, min_p, mul_p, neg, sub,
                                        with_ordered_zeros)
from minijax.primitives.emitted import batch_along, constant, filled, linear, transposed
from minijax.primitives.slicing import concatenate_p, part

Combine = Callable[[Any, Any], Any]


def cumulative(name: str, op: str, running: Callable[[np.ndarray, int], np.ndarray], *,
               jvp: Any, transpose: Any = slots.NOT_LINEAR) -> Primitive:
    """A primitive that keeps every step of a reduction along one axis.

    Args:
      name: as a jaxpr prints it.
      op: the scalar operation.
      running: the meaning, from the start, in NumPy.
    """
    def impl(x: np.ndarray, axis: int, reverse: bool) -> np.ndarray:
        x = np.flip(x, axis) if reverse else x
        out = running(x, axis)
        if op == "add":
            out = out + x.dtype.type(0)  # a total begins with 0, so that it is never -0
        return np.flip(out, axis) if reverse else out

    def abstract_eval(x: ShapedArray, *, axis: int, reverse: bool) -> list[ShapedArray]:
        if axis < 0:
            raise ValueError("XLA operations do not allow negative axes")
        if axis >= x.ndim:
            raise ValueError(f"axis {axis} is out of bounds for array of shape {x.shape}")
        slots.check_reducible(name, x, slots.NUMBER)
        return [x]

    return Primitive(
        name, impl=slots.in_numpy(impl), abstract_eval=abstract_eval, jvp=jvp, transpose=transpose,
        batch=batch_along("axis"), loop=_running_loop(op),
        examples=examples.reducible(slots.NUMBER, lambda rank: [
            {"axis": d, "reverse": r} for d in {0, rank - 1} for r in (False, True)]))


def _every_step(ufunc: np.ufunc) -> Callable[[np.ndarray, int], np.ndarray]:
    return lambda x, axis: ufunc.accumulate(x, axis, dtype=x.dtype)


def _extrema(op: str) -> Callable[[np.ndarray, int], np.ndarray]:
    every_step = _every_step(np.maximum if op == "max" else np.minimum)

    def running(x: np.ndarray, axis: int) -> np.ndarray:
        if x.dtype.kind == "c":
            return np.moveaxis(complex_extrema(op, np.moveaxis(x, axis, 0)), 0, axis)
        return with_ordered_zeros(op, every_step(x, axis),
                                  lambda test: np.logical_or.accumulate(test(x), axis))
    return running


# ── Derivatives ──────────────────────────────────────────────────────────────────────────────

def _by_prefixes(step: Primitive) -> ForPrimitive:
    """The same running total, of values with tangents, which the binary primitive combines."""
    @ForPrimitive
    def jvp(p: Primitive, primals: list, tangents: list, **params: Any) -> tuple[list, list]:
        found = p.bind(*primals, **params)
        pairs = prefixes(lambda x, y: reduce.combined(step, x, y), (*primals, *tangents), **params)
        return [found], [pairs[1]]
    return jvp


def prefixes(combine: Combine, x: reduce.Dual, axis: int, reverse: bool = False) -> reduce.Dual:
    """All partial results of an associative operation on tuples of arrays.

    Each round doubles the length of what every place has seen.
    """
    # JAX: does it with half of the work on the even places.
    n, reach = x[0].shape[axis], 1
    while reach < n:
        early = tuple(part(a, 0, n - reach, axis) for a in x)
        late = tuple(part(a, reach, n, axis) for a in x)
        both = combine(late, early) if reverse else combine(early, late)
        rest = (tuple(part(a, n - reach, n, axis) for a in x) if reverse
                else tuple(part(a, 0, reach, axis) for a in x))
        pairs = zip(both, rest, strict=True) if reverse else zip(rest, both, strict=True)
        x = tuple(concatenate_p.bind(a, b, dimension=axis) for a, b in pairs)
        reach *= 2
    return x


# ── Lowering ─────────────────────────────────────────────────────────────────────────────────

def _running_loop(op: str) -> Callable[..., None]:
    """Along the axis in order; the axes after it run inside as one, each place with its total."""
    def loop(b: Any, outputs: Sequence, operands: Sequence, axis: int, reverse: bool) -> None:
        [x], [out] = operands, outputs
        n, inner = x.shape[axis], x.shape[axis + 1:]
        join = getattr(b, op)
        totals = b.sums(math.prod(inner), slots.computed_in(x.dtype))
        with slots.nest(b, x.shape[:axis]) as outer:
            def step(totals: Any, before: Any, rows: Sequence) -> None:
                with b.loop(totals.width, vectorize="parallel") as j:
                    place = b.unravel(b.index(j), inner)
                    start = b.load(*totals.at(j))
                    if before is not None:
                        start = b.add(b.load(*before.at(j)), start)
                    total = None
                    for k in rows:
                        at = (*outer, b.sub(n - 1, k) if reverse else k, *place)
                        term = slots.widened(b, x(at))
                        total = term if total is None else join(total, term)
                        b.store(out, at, b.convert(join(start, total), x.dtype))
                    b.store(*totals.at(j), join(b.load(*totals.at(j)), total))

            with b.loop(totals.width, vectorize="parallel") as j:
                b.store(*totals.at(j), b.starting_value(op, totals.dtype))
            b.in_chains(op, totals, n, step, prefixes=True)
    return loop


# ── The primitives and their functions ───────────────────────────────────────────────────────

cumsum_p = cumulative(
    "cumsum", "add", summation.running,
    jvp=linear(0),
    transpose=transposed(lambda ct, x, axis, reverse: cumsum_p.bind(
        ct, axis=axis, reverse=not reverse)))
cumprod_p = cumulative("cumprod", "mul", _every_step(np.multiply), jvp=_by_prefixes(mul_p))
cummax_p = cumulative("cummax", "max", _extrema("max"), jvp=_by_prefixes(max_p))
cummin_p = cumulative("cummin", "min", _extrema("min"), jvp=_by_prefixes(min_p))


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
    x = as_value(operand)
    found = prefixes(_log_add, (x,), axis, reverse)[0]  # type: ignore[arg-type]
    return add(found, constant(0, x))  # of a sum that begins with exp(-inf): never -0


def _log_add(x: tuple[Array], y: tuple[Array]) -> tuple[Array]:
    [a], [b] = x, y
    alike = choice.eq(a, b)  # infinities, too, whose difference is nan
    gap = choice.select(alike, filled(0, a), sub(a, b))
    larger = max(a, b)
    return (add(larger, analytic.log1p(analytic.exp(neg(rounding.abs(gap))))),)
