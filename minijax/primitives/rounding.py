"""Whole numbers near a float, and floats near a float.

Stands on `families`.  Chapter 02, *Primitives and tracers*, shows such a block.
In JAX: `jax/_src/lax/lax.py`.
"""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from minijax.core import cannot
from minijax.primitives.families import (FLOAT, binary, by_formula, elementwise,
                                         elementwise_type, points, unary)

floor_p, floor = unary(
    "floor", "The largest integer not above x.", accepts=FLOAT,
    impl=np.floor,
    derivative=None,
    element=lambda s, x: s.floor(x),
    examples=points((.1, .9)),
    shows="-2.5 -> Array(-3., dtype=float32, weak_type=True)")

ceil_p, ceil = unary(
    "ceil", "The smallest integer not below x.", accepts=FLOAT,
    impl=np.ceil,
    derivative=None,
    element=lambda s, x: s.ceil(x),
    examples=points((.1, .9)),
    shows="-2.5 -> Array(-2., dtype=float32, weak_type=True)")


class RoundingMethod(enum.IntEnum):
    """Where `round` takes a number half-way between two integers."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def _rounded(s: Any, x: Any, rounding_method: RoundingMethod) -> Any:
    if rounding_method == RoundingMethod.TO_NEAREST_EVEN:
        return s.round_even(x)
    if x.dtype.itemsize == 2:
        return s.convert(_rounded(s, s.convert(x, np.float32), rounding_method), x.dtype)
    whole = s.trunc(x)
    away = s.ge(s.abs(s.sub(x, whole)), .5)
    return s.add(whole, s.select(away, s.copysign(s.const(1, x.dtype), x),
                                 s.copysign(s.const(0, x.dtype), x)))


round_p = elementwise(
    "round",
    impl=by_formula(_rounded),
    abstract_eval=elementwise_type("round", [FLOAT]),
    derivatives=[None],
    element=_rounded,
    examples=lambda: [e._replace(params={"rounding_method": m}) for m in RoundingMethod
                      for e in points((.1, .4))()])


def round(x: Any, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Any:
    """The nearest integer.

    Args:
      x: an array of a floating dtype.
      rounding_method: where halves go; by default away from zero.

    >>> round(2.5), round(2.5, RoundingMethod.TO_NEAREST_EVEN)
    (Array(3., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
    """
    return round_p.bind(x, rounding_method=RoundingMethod(rounding_method))


is_finite_p, is_finite = unary(
    "is_finite", "Whether x is neither infinite nor nan.", accepts=FLOAT,
    impl=np.isfinite, result=lambda d: np.dtype(bool),
    derivative=None,
    element=lambda s, x: s.lt(s.abs(x), np.inf),
    examples=points((-2., 2.)),
    shows="2.5 -> Array(True, dtype=bool, weak_type=True)")

nextafter_p, nextafter = binary(
    "nextafter", "The next float after x towards y.", accepts=FLOAT,
    impl=lambda x, y: [np.where(x == y, y, np.nextafter(x, y))],  # -0 and 0 are equal
    derivatives=(None, None),
    element=lambda s, x, y: _step(s, x, y),
    examples=points((-2., 2.), (3., 4.)),
    shows="1.0, 2.0 -> Array(1.0000001, dtype=float32, weak_type=True)")
nextafter_p.jvp = cannot("it is a step function")


def _step(s: Any, x: Any, y: Any) -> Any:
    """As on the integers that the bits of floats are, in order, sign aside."""
    word = np.dtype(f"i{x.dtype.itemsize}")
    bits = s.bitcast(x, word)
    zero = s.eq(x, 0)
    up = s.eq(s.gt(y, x), s.gt(x, 0))  # whether the step leads away from zero
    stepped = s.add(bits, s.select(up, s.const(1, word), s.const(-1, word)))
    least = s.or_(s.and_(s.bitcast(y, word), np.iinfo(word).min), 1)
    moved = s.bitcast(s.select(zero, least, stepped), x.dtype)
    return s.select(s.ne(x, x), x, s.select(s.ne(y, y), y, s.select(s.eq(x, y), y, moved)))
