"""Complex arithmetic in real arithmetic: formulas for real and imaginary parts.

Builds on `analytic` and `contract`.  The compiler lowers complex numbers by these formulas alone.
Chapter 22.  In XLA: the elemental emitter of complex operations.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import mul, truediv as div  # noqa: F401  the formulas of `mul` and `div`
from typing import Any

import numpy as np

from minijax.core import Array, Primitive, ShapedArray, tracing
from minijax.primitives import algebra, analytic, contract, gather_scatter, slicing, slots, threefry
from minijax.primitives.axes import replaced, without
from minijax.primitives.comparison import select
from minijax.primitives.convert import bitcast_convert_type_p, converted
from minijax.primitives.ad_util import constant, filled, reshaped
from minijax.primitives.shape import iota_p, rev


@dataclass(frozen=True)
class Pair:
    """The real and imaginary parts of complex numbers, and their arithmetic."""

    re: Any
    im: Any

    @property
    def parts(self) -> tuple[Any, Any]:
        return self.re, self.im

    @property
    def shape(self) -> tuple[int, ...]:
        return self.re.shape

    def __neg__(self) -> Pair:
        return Pair(-self.re, -self.im)

    def __add__(self, w: Pair) -> Pair:
        return Pair(self.re + w.re, self.im + w.im)

    def __mul__(self, w: Pair) -> Pair:
        return Pair(threefry.fma_p.bind(self.re, w.re, -(self.im * w.im)),
                    threefry.fma_p.bind(self.im, w.re, self.re * w.im))

    def __truediv__(self, w: Pair) -> Pair:
        return quotient(self, w)

    def conj(self) -> Pair:
        return Pair(self.re, -self.im)

    def times_i(self) -> Pair:
        return Pair(-self.im, self.re)

    def over_i(self) -> Pair:
        return Pair(self.im, -self.re)

    def like(self, x: complex) -> Pair:
        """One number, of the same shape and dtype."""
        return Pair(filled(x.real, self.re), filled(x.imag, self.re))


def map_parts(z: Any, f: Callable[[Any], Any]) -> Any:
    """f of both parts, or of a real number."""
    return Pair(f(z.re), f(z.im)) if isinstance(z, Pair) else f(z)


def as_pair(z: Any) -> Pair:
    return z if isinstance(z, Pair) else Pair(z, filled(0, z))


def where(test: Any, x: Any, y: Any) -> Any:
    """x where a test holds, else y: pairs, or arrays and Python numbers."""
    if isinstance(x, Pair):
        return Pair(where(test, x.re, y.re), where(test, x.im, y.im))
    like = x if isinstance(x, Array) else y
    return select(test, *(v if isinstance(v, Array) else filled(v, like) for v in (x, y)))


def copysign(x: Any, y: Any) -> Any:
    """The absolute value of x with the sign of y, even of a zero."""
    word = np.dtype(f"i{y.dtype.itemsize}")
    return where(bitcast_convert_type_p.bind(y, new_dtype=word) < 0, -abs(x), abs(x))


def applied(formula: Callable[..., Any], *xs: Any, **params: Any) -> Any:
    """The array of a formula on arrays."""
    pairs = [Pair(algebra.real(x), algebra.imag(x)) if algebra.is_complex(x) else x for x in xs]
    out = formula(sys.modules[__name__], *pairs, **params)
    return algebra.complex(*out.parts) if isinstance(out, Pair) else out


# ── Infinities and quotients ─────────────────────────────────────────────────────────────────

def is_infinite(z: Any) -> Any:
    """Whether it is infinite, or one of its parts is."""
    return is_infinite(z.re) | is_infinite(z.im) if isinstance(z, Pair) else abs(z) == np.inf


def infinities(z: Pair) -> Pair:
    """1 for an infinite part, 0 for another, with its sign."""
    return map_parts(z, lambda x: copysign(where(is_infinite(x), 1, filled(0, x)), x))


def finite(z: Pair) -> Pair:
    """A large number of the same angle for an infinite one."""
    most = np.finfo(z.re.dtype).max / 4
    return where(is_infinite(z), map_parts(infinities(z), lambda x: x * most), z)


def quotient(z: Pair, w: Pair) -> Pair:
    """Smith's formula, and C's annex G where only one of both is infinite, or w is zero.

    Where the imaginary part of w is larger, both are divided by i first.
    """
    swapped = abs(w.re) < abs(w.im)
    numerator, divisor = where(swapped, z.over_i(), z), where(swapped, w.over_i(), w)
    is_zero = (divisor.re == 0) & (divisor.im == 0)
    ratio = where(is_zero, 0, divisor.im / divisor.re)
    scale = 1 / where(is_zero, divisor.re, divisor.re + divisor.im * ratio)
    out = Pair((numerator.re + where(is_zero, 0, numerator.im * ratio)) * scale,
               (numerator.im - where(is_zero, 0, numerator.re * ratio)) * scale)
    is_nan = (out.re != out.re) & (out.im != out.im)
    for case, limit, direction in (
            (is_infinite(z) & ~is_infinite(w), np.inf, infinities(z) * w.conj()),
            (is_infinite(w) & ~is_infinite(z), 0, z * infinities(w).conj())):
        out = where(is_nan & case, Pair(direction.re * limit, direction.im * limit), out)
    return out


# ── Absolute values, roots and powers ────────────────────────────────────────────────────────

def scaling(x: Any, y: Any, of: Callable[[int], float] = lambda n: 2. ** n) -> Callable[[int], Any]:
    """Powers of two: times the 6th, x and y have squares in range; the -6th undoes it, and the
    -3rd does so for a root of what was scaled.  `of` may give their logarithm.
    """
    large, k = algebra.max(abs(x), abs(y)), np.finfo(x.dtype).maxexp // 8
    huge, tiny = large > 2. ** (3 * k), large < 2. ** (-3 * k)
    return lambda n: where(huge, of(-n * k), where(tiny, of(n * k), filled(of(0), large)))


def size(z: Pair) -> Any:
    """The absolute value; nan where a part is."""
    power = scaling(z.re, z.im)
    x, y = z.re * power(6), z.im * power(6)
    return algebra.sqrt(x * x + y * y) * power(-6)


def sign(z: Pair) -> Pair:
    length = size(z)
    return where((z.re == 0) & (z.im == 0), z, map_parts(z, lambda x: x / length))


def root(z: Pair) -> Pair:
    """The square root in the right half-plane; the imaginary part keeps its sign."""
    power = scaling(z.re, z.im)
    x, y = abs(z.re) * power(6), abs(z.im) * power(6)
    large = algebra.sqrt((algebra.sqrt(x * x + y * y) + x) * .5)
    small = where((y == large) & (large + large == large), y, y / (large + large))
    large, small = large * power(-3), small * power(-3)
    return Pair(where(z.re < 0, small, large), copysign(where(z.re < 0, large, small), z.im))


def sqrt(z: Pair) -> Pair:
    """The root; of a real number without the sign of an imaginary zero."""
    w = root(z)
    return Pair(w.re, where(z.im == 0, abs(w.im), w.im))


def rsqrt(z: Pair) -> Pair:
    return z.like(1) / sqrt(z)


def integer_pow(z: Pair, y: int) -> Pair:
    positive = algebra.power_by_squaring(z, abs(y)) if y else z.like(1)
    return positive if y >= 0 else z.like(1) / positive


def power(z: Pair, w: Any) -> Pair:
    """Kahan, *Branch cuts for complex elementary functions* (1987), section 10."""
    w = w if isinstance(w, Pair) else as_pair(converted(w, z.re.dtype))
    (a, b), (c, d), length = z.parts, w.parts, size(z)
    angle = analytic.atan2(b, a)
    grown = analytic.pow(length, c) * analytic.exp(-d * angle)
    turn = c * angle + d * analytic.log(length)
    out = Pair(grown * analytic.cos(turn), grown * analytic.sin(turn))
    infinite = (a == np.inf) & (b == 0) & (d == 0)
    for case, value in (
            ((length == 0) & (d == 0) & (c >= 0) | infinite & (c < 0), 0.),
            ((c == 0) & (d == 0) | (a == 1) & (b == 0), 1.), (infinite & (c > 0), np.inf)):
        out = where(case, out.like(value), out)
    return out


def square(z: Pair) -> Pair:
    """By factors, whose difference does not overflow."""
    same = (abs(z.re) == abs(z.im)) & (abs(z.re) < np.inf)
    return Pair(where(same, 0, (z.re - z.im) * (z.re + z.im)), z.re * z.im * 2)


# ── Exponentials and logarithms ──────────────────────────────────────────────────────────────

def on_ellipse(x: Any, y: Any, angle: Any) -> Pair:
    """x times the cosine and y times the sine, which is zero at zero even if y is infinite."""
    return Pair(x * analytic.cos(angle), where(angle == 0, angle, y * analytic.sin(angle)))


def exp(z: Pair) -> Pair:
    """In two factors, where one alone would overflow."""
    k = np.finfo(z.re.dtype).maxexp // 2
    large = z.re > k
    length = analytic.exp(where(large, z.re - k, z.re))
    rest = where(large, math.exp(k), filled(1, z.re))
    return map_parts(on_ellipse(length, length, z.im), lambda x: x * rest)


def exp2(z: Pair) -> Pair:
    return exp(map_parts(z, lambda x: x * math.log(2)))


def logistic(z: Pair) -> Pair:
    return z.like(1) / (z.like(1) + exp(-z))


def expm1(z: Pair) -> Pair:
    half = analytic.sin(z.im * .5)
    return Pair(analytic.expm1(z.re) * analytic.cos(z.im) - 2 * half * half, exp(z).im)


def log_of(z: Pair, near_one: Any, square_less_one: Any) -> Pair:
    """The logarithm; where the absolute value is near one, from its square less one."""
    power = scaling(z.re, z.im)
    x, y = z.re * power(6), z.im * power(6)
    far = analytic.log(x * x + y * y) * .5 + scaling(z.re, z.im, lambda n: n * math.log(2))(-6)
    near = analytic.log1p(square_less_one) * .5
    return Pair(where(near_one, near, far), analytic.atan2(z.im, z.re))


def log(z: Pair) -> Pair:
    x, y = abs(z.re), abs(z.im)
    large, small = algebra.max(x, y), algebra.min(x, y)
    return log_of(z, (large > .5) & (large < 2), (large - 1) * (large + 1) + small * small)


def log1p(z: Pair) -> Pair:
    return log_of(Pair(1 + z.re, z.im), algebra.max(abs(z.re), abs(z.im)) < .5,
                  z.re * (2 + z.re) + z.im * z.im)


# ── Hyperbolic functions, and the circular ones ──────────────────────────────────────────────

def sinh(z: Pair) -> Pair:
    return on_ellipse(analytic.sinh(z.re), analytic.cosh(z.re), z.im)


def cosh(z: Pair) -> Pair:
    angle = z.im * copysign(filled(1, z.re), z.re)
    return on_ellipse(analytic.cosh(z.re), analytic.sinh(abs(z.re)), angle)


def tanh(z: Pair) -> Pair:
    """By e = exp(-2|x|), which does not overflow, and 1 - e, which is exact for small x."""
    less = analytic.expm1(-2 * abs(z.re))
    y = where(is_infinite(z.re) & (z.im - z.im != 0), 0, z.im)
    cos, e = analytic.cos(y), 4 * (1 + less)
    divisor = less * less + e * cos * cos
    return Pair(copysign(less * (2 + less) / divisor, z.re),
                where(z.im == 0, z.im, e * analytic.sin(y) * cos / divisor))


def asin_and_acos(z: Pair) -> tuple[Pair, Pair]:
    """Kahan, *Branch cuts for complex elementary functions* (1987)."""
    x, y = finite(z).re, finite(z).im
    less, more = root(Pair(1 - x, -y)), root(Pair(1 + x, y))
    far = where(is_infinite(z), copysign(filled(np.inf, y), y),
                analytic.asinh(less.re * more.im - less.im * more.re))
    unknown = (z.re != z.re) | (z.im != z.im)
    return (Pair(where(unknown, np.nan, analytic.atan2(x, (less * more).re)), far),
            Pair(where(unknown, np.nan, 2 * analytic.atan2(less.re, more.re)), -far))


asin, acos = (lambda z, k=k: asin_and_acos(z)[k] for k in (0, 1))


def acosh(z: Pair) -> Pair:
    w = acos(z)
    return Pair(abs(w.im), copysign(w.re, z.im))


def atanh(z: Pair) -> Pair:
    x, y = abs(finite(z).re), finite(z).im
    near = analytic.log1p(4 * (x / ((1 - x) * (1 - x) + y * y))) * .25
    angle = analytic.atan2(y, ((1 - x) * (1 + x) - y * y) * .5) * .5
    return Pair(copysign(near, z.re), where(z.im != z.im, np.nan, angle))


def circular(f: Callable[[Pair], Pair]) -> Callable[[Pair], Pair]:
    """The circular function of a hyperbolic one, and the other way round."""
    return lambda z: f(z.times_i()).over_i()


sin, tan, atan, asinh = map(circular, (sinh, tanh, atanh, asin))


def cos(z: Pair) -> Pair:
    return cosh(z.times_i())


def atan2(z: Pair, w: Pair) -> Pair:
    return log((w + z.times_i()) / root(z * z + w * w)).over_i()


# ── Order, conversions, products of arrays ───────────────────────────────────────────────────

def greater(z: Pair, w: Pair) -> Any:
    """Whether z is greater by its real part, or else by its imaginary part."""
    return (z.re > w.re) | (z.re == w.re) & (z.im > w.im)


def max(z: Pair, w: Pair) -> Pair:
    return where(greater(z, w), z, w)


def min(z: Pair, w: Pair) -> Pair:
    return where(greater(w, z), z, w)


def eq(z: Pair, w: Pair) -> Any:
    return (z.re == w.re) & (z.im == w.im)


def ne(z: Pair, w: Pair) -> Any:
    return (z.re != w.re) | (z.im != w.im)


def convert(z: Any, *, new_dtype: Any, weak_type: bool) -> Any:
    if new_dtype.kind != "c":
        return converted(z.re, new_dtype, weak_type)
    return map_parts(as_pair(z), lambda x: converted(x, slots.real_dtype(new_dtype), weak_type))


def dot_general(z: Any, w: Any, *, preferred_element_type: Any, **params: Any) -> Pair:
    dtype = preferred_element_type and slots.real_dtype(preferred_element_type)
    out = map_parts(z, lambda x: map_parts(w, lambda y: contract.dot_general_p.bind(
        x, y, preferred_element_type=dtype, **params)))
    return out.re + out.im.times_i() if isinstance(out.re, Pair) else out


def iota(*, dtype: Any, **params: Any) -> Pair:
    return as_pair(iota_p.bind(dtype=slots.real_dtype(dtype), **params))


# ── Reductions, cumulative reductions and scatters, one number after the other ───────────────

Formula = Callable[[Pair, Pair], Pair]
COLUMNS = 1024  # partial results of a reduction side by side: they stay in the first-level cache


def combined_by(formula: Formula) -> gather_scatter.Join:
    """The code of a loop that combines the parts of two numbers."""
    def join(b: Any, z: Sequence[Any], w: Sequence[Any]) -> list[Any]:
        program = tracing.stage(lambda *x: list(formula(Pair(*x[:2]), Pair(*x[2:])).parts),
                                [ShapedArray((), z[0].dtype)] * 4)
        return [x(()) for x in b.jaxpr(program, [*map(b.fixed, (*z, *w))])]
    return join


def reductions_by(formula: Formula, identity: float) -> tuple[Callable, Callable, Callable]:
    """The reduction, the cumulative reduction and the scatter by a binary formula."""
    join = combined_by(formula)

    def loop(b: Any, outputs: Sequence, operands: Sequence, *, axis: int) -> None:
        for x, out in zip(operands, outputs, strict=True):
            b.materialize(x, into=out)
        with (slots.nest(b, x.shape[:axis], "parallel") as outer, b.loop(x.shape[axis] - 1) as k,
              slots.nest(b, x.shape[axis + 1:], "parallel") as inner):
            last, here = ((*outer, i, *inner) for i in (k, b.add(k, 1)))
            total = join(b, *([b.load(out, at) for out in outputs] for at in (last, here)))
            for out, x in zip(outputs, total, strict=True):
                b.store(out, here, x)

    two: dict[str, Any] = {"abstract_eval": lambda x, y, *_, **__: [x, y], "multiple_results": True,
                           "can_fuse_operands": True, "in_place": lambda k, /, **_: (k,)}
    in_order, scatter = Primitive("in_order", loop=loop, **two), Primitive(
        "scatter", loop=gather_scatter.scatter_loop(join), **two)

    def steps(z: Pair, axis: int) -> Pair:
        in_front = {"padding_config": replaced([(0, 0, 0)] * z.re.ndim, axis, (1, 0, 0))}
        padded = (slicing.pad_p.bind(x, constant(n, x), **in_front)
                  for x, n in ((z.re, identity), (z.im, 0)))
        return Pair(*in_order.bind(*padded, axis=axis))

    def last(z: Pair, axis: int, shape: tuple[int, ...]) -> Pair:
        n = z.re.shape[axis]
        return map_parts(steps(z, axis), lambda x: reshaped(slicing.part(x, n, n + 1, axis), shape))

    def reduced(z: Pair, *, axes: tuple[int, ...]) -> Pair:
        """A long axis is first reduced to `COLUMNS` partial results."""
        for axis in sorted(axes, reverse=True):
            shape, n = z.re.shape, z.re.shape[axis]
            if n > COLUMNS:
                width = math.gcd(n, COLUMNS)
                rows = (*shape[:axis], n // width, width, *shape[axis + 1:])
                columns = Pair(reshaped(z.re, rows), reshaped(z.im, rows))
                z = last(columns, axis, replaced(shape, axis, width))
            z = last(z, axis, without(shape, (axis,)))
        return z

    def running(z: Pair, *, axis: int, reverse: bool) -> Pair:
        def reversed_if(x: Array) -> Array:
            return rev(x, (axis,)) if reverse else x
        return map_parts(steps(map_parts(z, reversed_if), axis),
                         lambda x: reversed_if(slicing.part(x, 1, x.shape[axis], axis)))

    def scattered(z: Pair, indices: Array, w: Pair, **params: Any) -> Pair:
        return Pair(*scatter.bind(*z.parts, indices, *w.parts, **params))
    return reduced, running, scattered


reduce_prod, cumprod, scatter_mul = reductions_by(mul, 1)
reduce_max, cummax, scatter_max = reductions_by(max, -math.inf)
reduce_min, cummin, scatter_min = reductions_by(min, math.inf)
