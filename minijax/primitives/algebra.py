"""Elementwise sums, products, extrema, roots and integer powers; parts of complex numbers.

Builds on `families` and `comparison`.  Chapters 02 to 04 show the columns of its blocks.
In JAX: `jax/_src/lax/lax.py`.
"""

import builtins
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core import Array, Example, Primitive, ShapedArray, Zero, as_value
from minijax.primitives.comparison import eq, select
from minijax.primitives.convert import convert_element_type
from minijax.primitives.ad_util import (coefficient, constant, each_part, filled, repeated,
                                        termwise, transposed)
from minijax.primitives.examples import (
    anything, each_with, integers, points, points_and_integers, table)
from minijax.primitives.families import (binary, combination, elementwise, general_leibniz_rule,
                                         meaning_of_parts, of_one_shape, unary)
from minijax.primitives.infix import infix, shr_logical
from minijax.primitives.slots import (ANYTHING, COMPLEX, FLOAT, INTEGER, NUMBER, check_dtypes,
                                      in_pairs, numpy_scalars, real_dtype, wide)


def is_complex(x: Any) -> bool:
    return x.dtype.kind == "c"


# ── Sums and products ────────────────────────────────────────────────────────────────────────

neg_p, neg = unary(
    "neg", "Elementwise negation; integers wrap around.", accepts=NUMBER, shows="2.5 -> -2.5",
    impl=np.negative, may_produce_nan=False, complex_parts=each_part,
    derivative=lambda t, z, x: neg(t),
    transpose=transposed(lambda ct, x: neg(ct)),
    examples=points_and_integers((-2., 2.)))

add_p, add = binary(
    "add", "Elementwise sum; integers wrap around.", shows="1.5, 2.0 -> 3.5",
    impl=np.add, complex_parts=each_part,
    jvp=termwise(), transpose=transposed(lambda ct, x, y: ct, lambda ct, x, y: ct),
    examples=points_and_integers((-2., 2.), (-2., 2.)))

sub_p, sub = binary(
    "sub", "Elementwise difference; integers wrap around.", shows="1.5, 2.0 -> -0.5",
    impl=np.subtract, complex_parts=each_part,
    jvp=termwise(neg), transpose=transposed(lambda ct, x, y: ct, lambda ct, x, y: neg(ct)),
    examples=points_and_integers((-2., 2.), (-2., 2.)))


def _product(x: np.ndarray, y: np.ndarray) -> Any:
    """NumPy's product; of complex numbers that are not finite, the compiled formula's."""
    z = np.multiply(x, y)
    if z.dtype.kind != "c" or np.isfinite(z).all():
        return z
    fma = numpy_scalars().fma
    return in_parts(fma(x.real, y.real, -(x.imag * y.imag)), fma(x.imag, y.real, x.real * y.imag))


mul_p, _ = binary(
    "mul", "", impl=_product,
    derivatives=(lambda t, z, x, y: mul(t, y), lambda t, z, x, y: mul(x, t)),
    jet=general_leibniz_rule,
    transpose=transposed(lambda ct, x, y: mul(ct, y), lambda ct, x, y: mul(x, ct)),
    examples=points_and_integers((-2., 2.), (-2., 2.)))


def mul(x: Any, y: Any, *, out_dtype: Any = None) -> Array:
    """Elementwise product; integers wrap around.

    Args:
      x, y: arrays of one rank or scalars, whose axes of size one stretch, of one dtype among:
        integer, floating, complexfloating.
      out_dtype: the dtype in which they are multiplied; by default their own.

    Raises:
      TypeError: for other types.

    >>> mul(np.int8(100), np.int8(100), out_dtype=np.int32)
    Array(10000, dtype=int32)
    """
    if out_dtype is not None:
        for each in (x, y):
            check_dtypes("mul", [as_value(each).aval] * 2, [NUMBER] * 2)
        x, y = (convert_element_type(each, out_dtype) for each in (x, y))
    return mul_p.bind(x, y)


def _masked_type(x: ShapedArray, mask: ShapedArray) -> list[ShapedArray]:
    return [x.update(shape=np.broadcast_shapes(x.shape, mask.shape))]


def _product_with(mask: Array, x: Array) -> Array:
    return mul(x, convert_element_type(mask, x.dtype))


# XLA selects what a program multiplies by bools, so a nan times False is 0; derivatives multiply.
masked_p = elementwise(
    "masked", impl=lambda x, mask: [np.where(mask, x, np.zeros((), x.dtype))],
    abstract_eval=_masked_type, complex_parts=each_part,
    derivatives=(lambda t, z, x, mask: _product_with(mask, t), None),
    transpose=transposed(lambda ct, x, mask: _product_with(mask, ct), None),
    element=lambda s, x, mask: s.select(mask, x, s.const(0, x.dtype)),
    examples=table("", (np.array([1, np.nan, np.inf], np.float32), np.array([True, False, False])),
                   (np.array([-2, 3], np.float32), np.array([False, True]))))


def _upper_half(x: Any, y: Any) -> Any:
    """The upper half of a product, from the products of the factors' halves."""
    half = 4 * x.dtype.itemsize
    low = x.const((1 << half) - 1)
    x_low, x_high, y_low, y_high = x & low, x >> half, y & low, y >> half
    middle = x_high * y_low + shr_logical(x_low * y_low, x.const(half))
    return x_high * y_high + (middle >> half) + (x_low * y_high + (middle & low) >> half)


mulhi_p, mulhi = binary(
    "mulhi", "The upper half of the bits of a product of integers.", accepts=INTEGER,
    shows="1073741824, 8 -> 2", element=infix(_upper_half), examples=integers(2))


def quotient(x: Any, y: Any) -> Any:
    """The meaning of `div`, in NumPy; by the reciprocals of a smaller array, as in XLA.

    >>> float(quotient(np.float32(1), np.float32(4)))
    0.25
    """
    if is_complex(x):
        z = np.divide(x, y)
        return z if np.isfinite(z).all() else _complex_quotient(x, y)[0]
    if x.dtype.kind != "f":
        return numpy_scalars().div(x, y)
    is_broadcast = x.size > 1 if y.ndim == 0 else any(map(operator.lt, y.shape, x.shape))
    return np.multiply(x, np.reciprocal(y)) if is_broadcast else np.divide(x, y)


_complex_quotient = meaning_of_parts(of_one_shape(in_pairs("div")))


def in_parts(real: Any, imag: Any) -> Any:
    """Complex numbers part by part: `x + 1j * y` would make nan of an infinite y."""
    real, imag = np.broadcast_arrays(real, imag)
    z = np.empty(real.shape, np.dtype(f"c{2 * real.dtype.itemsize}"))
    z.real, z.imag = real, imag
    return z


def _derivative_of_quotient(n: int, z: Any, x: Any, y: Any) -> Any:
    """By Leibniz's rule of ``x = z y``, solved for z."""
    pairs = ((-math.comb(n, i), z[n - i], y[i]) for i in range(1, n + 1))
    total = combination([(1, x[n]), *((factor, a * b) for factor, a, b in pairs
                                      if Zero not in (type(a), type(b)))], z[0])
    return total if isinstance(total, Zero) else total / y[0]


div_p, div = binary(
    "div", "Elementwise quotient; of integers truncated towards zero, and -1 where y is 0.",
    impl=quotient, takes_halves=True,  # in float16 the reciprocals are rounded, too
    derivatives=(lambda t, z, x, y: div(t, y),
                 lambda t, z, x, y: mul(mul(neg(t), x), integer_pow(y, -2))),
    transpose=transposed(lambda ct, x, y: div(ct, y), None),
    jet=_derivative_of_quotient,
    examples=points_and_integers((-2., 2.), (.5, 2.)), shows="-7, 2 -> -3")


# ── Maximum and minimum ──────────────────────────────────────────────────────────────────────

def _share(t: Array, z: Array, x: Array, y: Array) -> Array:
    """The part of a tangent that reaches the extremum z; halves where x and y are equal."""
    chosen = select(eq(x, z), filled(1, z), filled(0, z))
    return mul(t, div(chosen, select(eq(y, z), filled(2, z), filled(1, z))))


def extremum(op: str, run: Callable[..., Any], *arrays: Any) -> Any:
    """``run(ufunc, *arrays)`` for a ufunc that takes the larger of two numbers, or the smaller.

    To NumPy's ufunc -0 and +0 are equal; here -0 is smaller, as in the compiled form.  Of complex
    numbers NumPy's choice differs where parts are nan or zero.

    Args:
      op: "max" or "min".
      run: calls a method of the ufunc: `reduce`, `accumulate`, `at`.
      arrays: its arguments; a scalar is an initial value.
    """
    if is_complex(arrays[0]) and not all(
            np.all((x == x) & (x.real != 0) & (x.imag != 0)) for x in arrays if x.ndim):
        ufunc = np.frompyfunc(lambda x, y: x if _beyond(op, x, y) else y, 2, 1, identity=None)
        return np.asarray(run(ufunc, *(x.astype(object) for x in arrays)), arrays[0].dtype)
    out = run(np.maximum if op == "max" else np.minimum, *arrays)
    if out.dtype.kind in "biu" or np.count_nonzero(out) == out.size:
        return out
    preferred = np.positive if op == "max" else np.negative
    has_preferred = run(np.logical_or, *((x == 0) & ~np.signbit(preferred(x)) for x in arrays))
    zero = preferred(np.where(has_preferred, out.dtype.type(0), -out.dtype.type(0)))
    return np.where(out == 0, zero, out)


def _beyond(op: str, x: Any, y: Any) -> Any:
    """Whether the complex x is taken and not y: by the real parts, then the imaginary ones."""
    first, second = (x, y) if op == "max" else (y, x)
    return (first.real > second.real) | ((first.real == second.real) & (first.imag > second.imag))


def _extremum(op: str, meaning: str, ufunc: np.ufunc, shown: str) -> tuple[Primitive, Callable]:
    """NumPy's extremum, but -0 is smaller than +0, as in the compiled form."""
    def impl(x: Any, y: Any) -> Any:
        if is_complex(x):
            return np.where(_beyond(op, x, y), x, y)
        out = ufunc(x, y)
        if x.dtype.kind != "f" or np.count_nonzero(out) == out.size:
            return out
        return np.where((x == 0) & (y == 0), x + y if op == "max" else -(-x - y), out)

    return binary(op, meaning, accepts=ANYTHING, impl=impl,
                  derivatives=(_share, lambda t, z, x, y: _share(t, z, y, x)),
                  element=lambda s, x, y: getattr(s, op)(x, y), examples=anything(2),
                  shows=f"1.5, 2.0 -> {shown}", may_produce_nan=False)


max_p, max = _extremum("max", "Elementwise maximum; nan where either is nan.", np.maximum, "2.")
min_p, min = _extremum("min", "Elementwise minimum; nan where either is nan.", np.minimum, "1.5")


# ── Powers and roots ─────────────────────────────────────────────────────────────────────────

square_p, square = unary(
    "square", "Elementwise square.", accepts=NUMBER, shows="1.5 -> 2.25",
    by_parts=True,
    derivative=lambda t, z, x: mul(t, mul(coefficient(2, x), x)),
    element=lambda s, x: s.mul(x, x),
    examples=points_and_integers((-2., 2.)))


sqrt_p, sqrt = unary(
    "sqrt", "Elementwise square root.", shows="2.25 -> 1.5", accurate=True,
    by_parts=True,
    derivative=lambda t, z, x: mul(t, div(coefficient(.5, x), z)),
    examples=points((.5, 2.)))

rsqrt_p, rsqrt = unary(
    "rsqrt", "One over the square root.", shows="4.0 -> 0.5", accurate=True,
    impl=lambda x: quotient(x.dtype.type(1), np.sqrt(x)), by_parts=True,
    derivative=lambda t, z, x: mul(t, mul(coefficient(-.5, x), div(z, x))),
    element=wide(lambda s, x: s.div(1, s.sqrt(x))),
    examples=points((.5, 2.)))

cbrt_p, cbrt = unary(
    "cbrt", "Elementwise cube root.", accepts=FLOAT, shows="8.0 -> 2.", accurate=True,
    in_float64=True,
    derivative=lambda t, z, x: mul(t, mul(coefficient(1 / 3, x), integer_pow(z, -2))),
    examples=points((.5, 2.)))


def power_by_squaring(x: Any, count: int, multiply: Callable[..., Any] = operator.mul) -> Any:
    """x to a positive power, in XLA's order of multiplications."""
    result = None
    while count:
        if count & 1:
            result = x if result is None else multiply(result, x)
        count >>= 1
        x = multiply(x, x) if count else x
    return result


def _integer_power(x: Any, y: int) -> Any:
    power = power_by_squaring(x, builtins.abs(y)) if y else x.const(1)
    return power if y >= 0 else 1. / power


def _integer_pow_type(x: ShapedArray, *, y: int) -> list[ShapedArray]:
    check_dtypes("integer_pow", [x], [NUMBER])
    if y < 0 and dtypes.issubdtype(x.dtype, np.integer):
        raise TypeError("Integers cannot be raised to negative powers, got "
                        f"integer_pow({'~' * x.weak_type}{x.str_long()}, {y})")
    return [x]


def _integer_pow_impl(x: np.ndarray, y: int) -> list[np.ndarray]:
    """Every product of 16-bit floats is rounded, as XLA's are: a square may overflow."""
    power = power_by_squaring(x, builtins.abs(y)) if y else np.ones_like(x)
    return [power if y >= 0 else quotient(x.dtype.type(1), power)]


def _integer_pow_tangent(t: Array, z: Array, x: Array, y: int) -> Array:
    if y in (0, 1):
        return t if y else filled(0, t)
    return mul(t, mul(coefficient(y, x), x if y == 2 else integer_pow(x, y - 1)))


integer_pow_p = elementwise(
    "integer_pow",
    impl=_integer_pow_impl, complex_parts=in_pairs("integer_pow"), by_parts=True,
    abstract_eval=_integer_pow_type,
    derivatives=[_integer_pow_tangent],
    element=infix(_integer_power),
    examples=lambda: [e for y in (-3, -1, 0, 1, 2, 3, 7)
                      for e in each_with(points_and_integers((.5, 2.)), {"y": y})()
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


# ── Complex numbers and their parts ──────────────────────────────────────────────────────────

PARTS = (np.float32, np.float64)


def _complex_examples(count: int) -> list[Example]:
    """Complex arguments, or `count` real ones."""
    examples = []
    for dtype in (np.complex64, np.complex128):
        z: Any = np.array([[1 + 2j, -3j], [4, 0]], dtype)
        parts = (z, z.real.copy(), z.imag.copy())[min(count, 1):][:max(count, 1)]
        examples += [Example(args) for args in (parts, tuple(x[0, 0] for x in parts),
                                                tuple(x[:0] for x in parts))]
    return examples


def strong_zero(x: Array) -> Array:
    """A zero of the dtype of `x` that is not weak."""
    return repeated(0, ShapedArray((), x.dtype))


real_p, real = unary(
    "real", "The real parts of complex numbers.", accepts=COMPLEX, shows="1 + 2j -> 1.",
    result=real_dtype, may_produce_nan=False, complex_parts=lambda c, z: z.re,
    derivative=lambda t, z, x: real(t),
    transpose=transposed(lambda ct, x: complex(ct, strong_zero(ct))),
    examples=lambda: _complex_examples(0))

imag_p, imag = unary(
    "imag", "The imaginary parts of complex numbers.", accepts=COMPLEX, shows="1 + 2j -> 2.",
    result=real_dtype, may_produce_nan=False, complex_parts=lambda c, z: z.im,
    derivative=lambda t, z, x: imag(t),
    transpose=transposed(lambda ct, x: complex(strong_zero(ct), neg(ct))),
    examples=lambda: _complex_examples(0))

complex_p, complex = binary(
    "complex", "Complex numbers from their real and imaginary parts.", accepts=PARTS,
    impl=in_parts, result=dtypes.to_complex_dtype, may_produce_nan=False,
    complex_parts=of_one_shape(lambda c, x, y: c.Pair(x, y)),
    derivatives=(lambda t, z, x, y: complex(t, constant(0, t)),
                 lambda t, z, x, y: complex(constant(0, t), t)),
    transpose=transposed(lambda ct, x, y: real(ct), lambda ct, x, y: imag(neg(ct))),
    examples=lambda: _complex_examples(2), shows="1.0, 2.0 -> 1.+2.j")


conj_p = elementwise(
    "conj", impl=lambda x, input_dtype: [np.conj(x).astype(dtypes.to_complex_dtype(x.dtype))],
    accepts=[(*PARTS, *COMPLEX)], result=dtypes.to_complex_dtype, may_produce_nan=False,
    complex_parts=lambda c, z, input_dtype: z.conj() if isinstance(z, c.Pair) else c.as_pair(z),
    derivatives=[lambda t, z, x, input_dtype: conj_p.bind(t, input_dtype=input_dtype)],
    transpose=transposed(
        lambda ct, x, input_dtype: conj(ct) if input_dtype.kind == "c" else real(ct)),
    examples=lambda: [e._replace(params={"input_dtype": np.asarray(e.args[0]).dtype})
                      for count in (0, 1) for e in _complex_examples(count)])


def conj(x: Any) -> Any:
    """The complex conjugate; of real numbers, too, a complex one.

    >>> conj(1 + 2j)
    Array(1.-2.j, dtype=complex64, weak_type=True)
    """
    x = as_value(x)
    return conj_p.bind(x, input_dtype=x.dtype)
