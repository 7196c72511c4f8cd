"""Arithmetic, place by place: sums, products, extrema, roots and powers.

Stands on `families`.  Chapters 02 to 04 show the columns of its blocks.
In JAX: `jax/_src/lax/lax.py`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core import Array, Primitive, ShapedArray, Zero, dtype_name
from minijax.primitives.families import (COMPLEX, FLOAT, INTEGER, NUMBER, SHORT_FLOATS, SIGNED,
                                         ANYTHING, all_weak, anything, binary, broadcast_shapes,
                                         by_formula, check_dtypes, constant, elementary,
                                         elementwise, filled, in_numpy,
                                         numpy_scalars, points, points_and_integers, stretched,
                                         transposed, unary)

Formula = Any


def is_complex(x: Any) -> bool:
    return x.dtype.kind == "c"


# ── Sums and products ────────────────────────────────────────────────────────────────────────

neg_p, neg = unary(
    "neg", "Elementwise negation; integers wrap around.", accepts=NUMBER,
    impl=np.negative,
    derivative=lambda t, z, x: neg(t),
    transpose=transposed(lambda ct, x: neg(ct)),
    element=lambda s, x: s.neg(x),
    examples=points_and_integers((-2., 2.)),
    shows="2.5 -> Array(-2.5, dtype=float32, weak_type=True)")

add_p, add = binary(
    "add", "Elementwise sum; integers wrap around.",
    impl=in_numpy(np.add),
    derivatives=(lambda t, z, x, y: t, lambda t, z, x, y: t),
    transpose=transposed(lambda ct, x, y: ct, lambda ct, x, y: ct),
    element=lambda s, x, y: s.add(x, y),
    examples=points_and_integers((-2., 2.), (-2., 2.)),
    shows="1.5, 2.0 -> Array(3.5, dtype=float32, weak_type=True)")

sub_p, sub = binary(
    "sub", "Elementwise difference; integers wrap around.",
    impl=in_numpy(np.subtract),
    derivatives=(lambda t, z, x, y: t, lambda t, z, x, y: neg(t)),
    transpose=transposed(lambda ct, x, y: ct, lambda ct, x, y: neg(ct)),
    element=lambda s, x, y: s.sub(x, y),
    examples=points_and_integers((-2., 2.), (-2., 2.)),
    shows="1.5, 2.0 -> Array(-0.5, dtype=float32, weak_type=True)")


def _termwise(p: Primitive) -> Any:
    """The derivative of a sum, as one equation where both terms vary."""
    by_argument = p.jvp

    def jvp(primals: list, tangents: list) -> tuple[list, list]:
        if any(isinstance(t, Zero) for t in tangents):
            return by_argument(primals, tangents)
        return [p.bind(*primals)], [p.bind(*tangents)]
    return jvp


add_p.jvp, sub_p.jvp = _termwise(add_p), _termwise(sub_p)

# What interpreters add cotangents and tangents with; users write `add`.
add_any_p = elementwise(
    "add_any",
    impl=in_numpy(np.add),
    abstract_eval=lambda x, y: [ShapedArray(broadcast_shapes("add_any", [x.shape, y.shape]),
                                            x.dtype, all_weak([x, y]))],
    derivatives=(lambda t, z, x, y: t, lambda t, z, x, y: t),
    transpose=transposed(lambda ct, x, y: ct, lambda ct, x, y: ct),
    element=lambda s, x, y: s.add(x, y),
    examples=points((-2., 2.), (-2., 2.)))
add_any_p.jvp = _termwise(add_any_p)

mul_p, mul = binary(
    "mul", "Elementwise product; integers wrap around.",
    impl=in_numpy(np.multiply),
    derivatives=(lambda t, z, x, y: mul(t, y), lambda t, z, x, y: mul(x, t)),
    transpose=transposed(lambda ct, x, y: mul(ct, y), lambda ct, x, y: mul(x, ct)),
    element=lambda s, x, y: s.mul(x, y),
    examples=points_and_integers((-2., 2.), (-2., 2.)),
    shows="1.5, 2.0 -> Array(3., dtype=float32, weak_type=True)")


def _quotient(x: Any, y: Any) -> Any:
    if is_complex(x):
        return _complex_quotient(x, y)
    return np.divide(x, y) if x.dtype.kind == "f" else numpy_scalars().div(x, y)


def in_parts(real: Any, imag: Any) -> Any:
    """Complex numbers part by part: `x + 1j * y` would make nan of an infinite y."""
    real, imag = np.broadcast_arrays(real, imag)
    z = np.empty(real.shape, np.dtype(f"c{2 * real.dtype.itemsize}"))
    z.real, z.imag = real, imag
    return z


def _complex_quotient(x: Any, y: Any) -> Any:
    """NumPy's, but infinite where only x is or y is zero, and zero where only y is infinite.

    NumPy gives nan + nan j there; C's annex G has these numbers.
    """
    found = np.divide(x, y)
    lost = np.isnan(found.real) & np.isnan(found.imag)
    if not lost.any():
        return found
    a, b, c, d = np.broadcast_arrays(x.real, x.imag, y.real, y.imag)
    inf = found.real.dtype.type(np.inf)
    units = [np.copysign(np.isinf(part), part).astype(part.dtype) for part in (a, b, c, d)]
    by_zero = lost & (y == 0) & ~(np.isnan(a) & np.isnan(b))
    x_only = lost & np.isinf(x) & np.isfinite(y)
    y_only = lost & np.isfinite(x) & np.isinf(y)
    away = np.copysign(inf, c)
    for case, size, (p, q, r, s) in ((x_only, inf, (units[0], units[1], c, d)),
                                     (y_only, inf.dtype.type(0), (a, b, units[2], units[3]))):
        found = np.where(case, in_parts(size * (p * r + q * s), size * (q * r - p * s)), found)
    return np.where(by_zero, in_parts(away * a, away * b), found)


div_p, div = binary(
    "div", "Elementwise quotient; of integers truncated towards zero, and -1 where y is 0.",
    impl=in_numpy(_quotient),
    derivatives=(lambda t, z, x, y: div(t, y),
                 lambda t, z, x, y: mul(mul(neg(t), x), integer_pow(y, -2))),
    transpose=transposed(lambda ct, x, y: div(ct, y), None),
    element=lambda s, x, y: s.div(x, y),
    examples=points_and_integers((-2., 2.), (.5, 2.)),
    shows="-7, 2 -> Array(-3, dtype=int32, weak_type=True)")


def _rem_in_y(t: Array, z: Array, x: Array, y: Array) -> Array:
    from minijax.primitives.rounding import floor
    return mul(neg(t), mul(sign(div(x, y)), floor(abs(div(x, y)))))


rem_p, rem = binary(
    "rem", "Elementwise remainder, with the sign of x; x itself where y is the integer 0.",
    accepts=INTEGER + FLOAT,
    impl=by_formula(lambda s, x, y: s.rem(x, y)),
    derivatives=(lambda t, z, x, y: t, _rem_in_y),
    element=lambda s, x, y: s.rem(x, y),
    examples=points_and_integers((-2., 2.), (3.1, 4.)),
    shows="-7, 2 -> Array(-1, dtype=int32, weak_type=True)")


# ── The larger, the smaller ──────────────────────────────────────────────────────────────────

def _share(t: Array, z: Array, x: Array, y: Array) -> Array:
    """The part of a tangent that reaches the extremum z; halves where x and y are equal."""
    from minijax.primitives.choice import eq, select
    chosen = select(eq(x, z), filled(1, z), filled(0, z))
    return mul(t, div(chosen, select(eq(y, z), filled(2, z), filled(1, z))))


def _extremum(op: str, other: Any) -> Any:
    """NumPy's, but it orders -0 below +0, as the compiled form does."""
    def impl(x: Any, y: Any) -> Any:
        if is_complex(x):
            return complex_extremum(op, x, y)
        return getattr(numpy_scalars(), op)(x, y) if x.dtype.kind == "f" else other(x, y)
    return in_numpy(impl)


def complex_extrema(op: str, x: Any) -> Any:
    """Along the first axis: all the extrema so far."""
    found = np.empty_like(x)
    last = x.dtype.type(-np.inf if op == "max" else np.inf)
    for k in range(len(x)):
        last = found[k] = complex_extremum(op, last, x[k])
    return found


def complex_extremum(op: str, x: Any, y: Any) -> Any:
    """By the real parts, then the imaginary ones; the second where neither comes before."""
    first, second = (x, y) if op == "max" else (y, x)
    beyond = (first.real > second.real) | (
        (first.real == second.real) & (first.imag > second.imag))
    return np.where(beyond, x, y)


def with_ordered_zeros(op: str, found: Any, anywhere: Callable[[Callable], Any]) -> Any:
    """Extrema that NumPy found, with -0 below +0, which it takes for equal.

    Args:
      op: "max" or "min".
      found: the extrema.
      anywhere: for each of them, whether a test holds for any of the elements it stands for.
    """
    if not dtypes.issubdtype(found.dtype, np.floating) or not np.any(found == 0):
        return found
    wins = np.positive if op == "max" else np.negative
    won = anywhere(lambda x: (x == 0) & ~np.signbit(wins(x)))
    zero = wins(np.where(won, found.dtype.type(0), -found.dtype.type(0)))
    return np.where(found == 0, zero, found)


max_p, max = binary(
    "max", "Elementwise maximum; nan where either is nan.", accepts=ANYTHING,
    impl=_extremum("max", np.maximum),
    derivatives=(lambda t, z, x, y: _share(t, z, x, y), lambda t, z, x, y: _share(t, z, y, x)),
    element=lambda s, x, y: s.max(x, y),
    examples=anything(2),
    shows="1.5, 2.0 -> Array(2., dtype=float32, weak_type=True)")

min_p, min = binary(
    "min", "Elementwise minimum; nan where either is nan.", accepts=ANYTHING,
    impl=_extremum("min", np.minimum),
    derivatives=(lambda t, z, x, y: _share(t, z, x, y), lambda t, z, x, y: _share(t, z, y, x)),
    element=lambda s, x, y: s.min(x, y),
    examples=anything(2),
    shows="1.5, 2.0 -> Array(1.5, dtype=float32, weak_type=True)")


# ── Sign and size ────────────────────────────────────────────────────────────────────────────

def _size(x: Any) -> Any:
    """NumPy's absolute value, but nan of a complex number of which either part is."""
    size = np.abs(x)
    return np.where(np.isnan(x), np.nan, size).astype(size.dtype) if is_complex(x) else size


def _sign(x: Any) -> Any:
    if is_complex(x):
        size = _size(x)
        return np.where(x == 0, x, in_parts(x.real / size, x.imag / size))
    return np.where(x == 0, x, np.sign(x)) if x.dtype.kind == "f" else np.sign(x)


def _sign_of_one(s: Any, x: Any) -> Any:
    if x.dtype.kind in "iu":
        some = s.const(1, x.dtype)
        return s.select(s.eq(x, 0), x, some if x.dtype.kind == "u"
                        else s.or_(s.shr_arithmetic(x, x.dtype.itemsize * 8 - 1), some))
    wide = s.convert(x, np.float32) if x.dtype.itemsize == 2 else x
    unit = s.convert(s.copysign(s.const(1, wide.dtype), wide), x.dtype)
    return s.select(s.gt(s.abs(x), 0), unit, x)  # zeros keep their sign, nan stays nan


sign_p, sign = unary(
    "sign", "Elementwise sign: -1, 0 or 1; zeros keep their sign.", accepts=NUMBER,
    impl=_sign,
    derivative=None,
    element=_sign_of_one,
    examples=points_and_integers((.5, 2.)),
    shows="-2.5 -> Array(-1., dtype=float32, weak_type=True)")


def _abs_tangent(t: Array, z: Array, x: Array) -> Array:
    from minijax.primitives.choice import eq, ge, select
    from minijax.primitives.complex_numbers import conj, real
    if is_complex(x):
        away = select(eq(z, constant(0, z)), filled(1, z), z)
        return div(real(mul(t, conj(x))), away)
    return select(ge(x, constant(0, x)), t, neg(t))


abs_p, abs = unary(
    "abs", "Elementwise absolute value.", accepts=SIGNED + FLOAT + COMPLEX,
    impl=_size, result=lambda d: np.dtype(f"f{d.itemsize // 2}") if d.kind == "c" else d,
    derivative=_abs_tangent,
    element=lambda s, x: s.abs(x),
    examples=lambda: [e for e in points_and_integers((.5, 2.))() if e.args[0].dtype.kind != "u"],
    shows="-2.5 -> Array(2.5, dtype=float32, weak_type=True)")


# ── Powers and roots ─────────────────────────────────────────────────────────────────────────

square_p, square = unary(
    "square", "Elementwise square.", accepts=NUMBER,
    impl=np.square,
    derivative=lambda t, z, x: mul(t, mul(constant(2, x), x)),
    element=lambda s, x: s.mul(x, x),
    examples=points_and_integers((-2., 2.)),
    shows="1.5 -> Array(2.25, dtype=float32, weak_type=True)")

def _square_root(x: Any) -> Any:
    """NumPy's, but that of a real number has no sign of an imaginary zero."""
    root = np.sqrt(x)
    if not is_complex(x):
        return root
    root = np.where(x.imag == 0, in_parts(root.real, np.abs(root.imag)), root)
    return np.where(np.isnan(x), x.dtype.type(complex(np.nan, np.nan)), root)


sqrt_p, sqrt = unary(
    "sqrt", "Elementwise square root.",
    impl=_square_root,
    derivative=lambda t, z, x: mul(t, div(constant(.5, x), z)),
    element=lambda s, x: s.sqrt(x),
    examples=points((.5, 2.)),
    shows="2.25 -> Array(1.5, dtype=float32, weak_type=True)")

rsqrt_p, rsqrt = unary(
    "rsqrt", "One over the square root.",
    impl=lambda x: np.divide(x.dtype.type(1), _square_root(x)),
    derivative=lambda t, z, x: mul(t, mul(constant(-.5, x), div(z, x))),
    element=lambda s, x: s.div(s.const(1, x.dtype), s.sqrt(x)),
    examples=points((.5, 2.)),
    shows="4.0 -> Array(0.5, dtype=float32, weak_type=True)")

cbrt_p, cbrt = unary(
    "cbrt", "Elementwise cube root.", accepts=FLOAT,
    impl=np.cbrt,
    derivative=lambda t, z, x: mul(t, mul(constant(1 / 3, x), integer_pow(z, -2))),
    element=elementary("cbrt"),
    examples=points((.5, 2.)),
    shows="8.0 -> Array(2., dtype=float32, weak_type=True)")


def _power(multiply: Any, x: Any, y: int) -> Any:
    """x**y for y > 0 by squaring, in XLA's order of multiplications."""
    result = None
    while True:
        if y & 1:
            result = x if result is None else multiply(result, x)
        y >>= 1
        if not y:
            return result
        x = multiply(x, x)


def _integer_power(s: Any, x: Any, y: int) -> Any:
    one = s.const(1, x.dtype)
    if not y:
        return one
    power = _power(s.mul, x, y if y > 0 else -y)
    return power if y > 0 else s.div(one, power)


def _integer_pow_type(x: ShapedArray, *, y: int) -> list[ShapedArray]:
    check_dtypes("integer_pow", [x], [NUMBER])
    if y < 0 and dtypes.issubdtype(x.dtype, np.integer):
        raise TypeError("Integers cannot be raised to negative powers, got "
                        f"integer_pow({'~' * x.weak_type}{x.str_long()}, {y})")
    return [x]


def _integer_pow_impl(x: np.ndarray, y: int) -> list[np.ndarray]:
    """Every product of 16-bit floats is rounded, as XLA's are: a square may overflow."""
    if not y:
        return [np.ones_like(x)]
    if x.dtype in SHORT_FLOATS:
        return [_integer_power(numpy_scalars(), x, y)]
    power = _power(np.multiply, x, y if y > 0 else -y)
    return [power if y > 0 else _quotient(x.dtype.type(1), power)]


def _integer_pow_tangent(t: Array, z: Array, x: Array, y: int) -> Array:
    return filled(0, t) if not y else mul(t, mul(constant(y, x), integer_pow(x, y - 1)))


integer_pow_p = elementwise(
    "integer_pow",
    impl=_integer_pow_impl,
    abstract_eval=_integer_pow_type,
    derivatives=[_integer_pow_tangent],
    element=_integer_power,
    examples=lambda: [e._replace(params={"y": y}) for y in (-3, -1, 0, 1, 2, 3, 7)
                      for e in points_and_integers((.5, 2.))()
                      if y >= 0 or e.args[0].dtype.kind not in "iu"])


def integer_pow(x: Any, y: int) -> Any:
    """``x**y`` for a Python integer y, by repeated multiplication.

    Raises:
      TypeError: for integers and a negative y.

    >>> integer_pow(2., 5)
    Array(32., dtype=float32, weak_type=True)
    """
    return integer_pow_p.bind(x, y=operator.index(y))


def reciprocal(x: Any) -> Any:
    """``1 / x``.

    >>> reciprocal(2.)
    Array(0.5, dtype=float32, weak_type=True)
    """
    return integer_pow(x, -1)


def _pow_type(x: ShapedArray, y: ShapedArray) -> list[ShapedArray]:
    check_dtypes("pow", [x, y], [FLOAT + COMPLEX, INTEGER + FLOAT + COMPLEX], same=False)
    if not dtypes.issubdtype(y.dtype, np.integer) and x.dtype != y.dtype:
        raise TypeError("the first argument to pow must have an inexact dtype (float or complex),"
                        " and the second argument must have an inexact or integer dtype, and two "
                        "inexact dtypes must match, but got "
                        f"{dtype_name(x.dtype)} and {dtype_name(y.dtype)} respectively.")
    return [ShapedArray(broadcast_shapes("pow", [x.shape, y.shape]), x.dtype, all_weak([x, y]))]


def _pow_in_x(t: Array, z: Array, x: Array, y: Array) -> Array:
    from minijax.primitives.choice import eq, select
    from minijax.primitives.convert import convert_element_type
    x = convert_element_type(x, x.dtype)  # strong, and so is the slope
    integral = dtypes.issubdtype(y.dtype, np.integer)
    y = convert_element_type(y, x.dtype)
    if not integral:
        return mul(t, mul(y, pow(x, sub(y, filled(1, y)))))
    none = eq(y, constant(0, y))
    exponent = select(none, filled(1, y), y)  # away from 0 * x**-1
    slope = mul(exponent, pow(x, sub(exponent, filled(1, y))))
    none = stretched(none, slope.shape)
    return mul(t, select(none, filled(0, slope), slope))


def _pow_in_y(t: Array, z: Array, x: Array, y: Array) -> Array:
    from minijax.primitives.choice import eq, select
    from minijax.primitives.convert import convert_element_type
    base = select(eq(x, constant(0, x)), filled(1, x), x)  # 0**y does not vary where y > 0
    return convert_element_type(mul(t, mul(log(base), z)), y.dtype)


def _float_power(s: Any, x: Any, y: Any) -> Any:
    return elementary("pow")(s, x, s.convert(y, x.dtype))


def _pow_impl(x: np.ndarray, y: np.ndarray) -> Any:
    y = y.astype(x.dtype)
    found = np.power(x, y)
    if x.dtype.kind != "f" or not np.any(y == .5):
        return found
    # NumPy takes some powers of 1/2 for roots, and others not: of -0 and -inf they differ
    root = (y == .5) & ((x == 0) | (x == -np.inf))
    return np.where(root, np.abs(x), found)


pow_p = elementwise(
    "pow",
    impl=in_numpy(_pow_impl),
    abstract_eval=_pow_type,
    derivatives=(_pow_in_x, _pow_in_y),
    element=_float_power,
    examples=lambda: points((.5, 2.), (-2., 2.))() + [
        e._replace(args=(e.args[0], np.array([-2, 0, 3], np.int32)))
        for e in points((.5, 2.), special=False)() if e.args[0].shape == (3,)])


def pow(x: Any, y: Any) -> Any:
    """Elementwise ``x**y``; nan for a negative x and a fractional y.

    Args:
      x: an array of a floating or complex dtype.
      y: an array of the same dtype, or of an integer one.

    >>> pow(2., 0.5)
    Array(1.4142135, dtype=float32, weak_type=True)
    """
    return pow_p.bind(x, y)


def log(x: Any) -> Any:
    from minijax.primitives import analytic
    return analytic.log(x)
