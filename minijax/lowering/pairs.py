"""Complex numbers as pairs of real ones: an equation on them becomes equations on their parts.

Stands on simplify.py, and on the operators of arrays, in which the formulas are written. Loops and
printers see real numbers alone; where a kernel is entered and left, both parts are in one buffer.
Chapter 22. In XLA: the elemental emitter of complex operations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import mul, truediv
from typing import Any

import numpy as np

from minijax import context, core
from minijax.core import Array, ArrayImpl, Primitive, ShapedArray
from minijax.jaxpr import ClosedJaxpr, Environment, Jaxpr, JaxprEqn, subjaxprs, types_in
from minijax.primitives import algebra, analytic, emitted
from minijax.primitives.axes import inverse, without
from minijax.primitives.choice import select
from minijax.primitives.contract import dot_general_p
from minijax.primitives.convert import bitcast_convert_type_p, converted
from minijax.primitives.emitted import filled
from minijax.primitives.gather import Join, scatter_loop
from minijax.primitives.random_bits import fma_p
from minijax.primitives.shape import iota_p, rev, transpose
from minijax.primitives.slicing import concatenate_p, part
from minijax.primitives.slots import extremum_of_nothing, real_dtype
from minijax.stage import DynamicJaxprTrace, stage

from .fusion import called_at
from .simplify import program_called, with_programs

SIDE_BY_SIDE = 1024  # columns of products, and of extrema: they stay in the first-level cache


@dataclass(frozen=True)
class Pair:
    """The real and the imaginary parts of complex numbers, and their arithmetic."""

    re: Any
    im: Any

    def __neg__(self) -> Pair:
        return Pair(-self.re, -self.im)

    def __add__(self, w: Pair) -> Pair:
        return Pair(self.re + w.re, self.im + w.im)

    def __sub__(self, w: Pair) -> Pair:
        return Pair(self.re - w.re, self.im - w.im)

    def __mul__(self, w: Pair) -> Pair:
        return Pair(fma_p.bind(self.re, w.re, -(self.im * w.im)),
                    fma_p.bind(self.im, w.re, self.re * w.im))

    def __truediv__(self, w: Pair) -> Pair:
        return quotient(self, w)

    def conj(self) -> Pair:
        return Pair(self.re, -self.im)

    def times_i(self) -> Pair:
        return Pair(-self.im, self.re)

    def over_i(self) -> Pair:
        return Pair(self.im, -self.re)

    def like(self, x: complex) -> Pair:
        """A number, as many times."""
        return Pair(filled(x.real, self.re), filled(x.imag, self.re))


# -- formulas --------------------------------------------------------------------------------------


def where(test: Any, x: Any, y: Any) -> Any:
    """x where a test holds, else y: pairs, or numbers and bare constants."""
    if isinstance(x, Pair):
        return Pair(where(test, x.re, y.re), where(test, x.im, y.im))
    like = x if isinstance(x, Array) else y
    return select(test, *(v if isinstance(v, Array) else filled(v, like) for v in (x, y)))


def is_infinite(z: Any) -> Any:
    """Whether it is infinite, or one of its parts is."""
    return is_infinite(z.re) | is_infinite(z.im) if isinstance(z, Pair) else abs(z) == np.inf


def infinities(z: Pair) -> Pair:
    """1 for an infinite part, 0 for another, with its sign."""
    return each_of(z, lambda x: copysign(where(is_infinite(x), 1, filled(0, x)), x))


def copysign(x: Any, y: Any) -> Any:
    """The size of x with the sign of y, which may be that of a zero."""
    word = np.dtype(f"i{y.dtype.itemsize}")
    return where(bitcast_convert_type_p.bind(y, new_dtype=word) < 0, -abs(x), abs(x))


def quotient(z: Pair, w: Pair) -> Pair:
    """Smith's, and C's annex G where only one of both is infinite, or w is zero.

    Where the imaginary part of w is larger, both are divided by i before.
    """
    aside = abs(w.re) < abs(w.im)
    above, below = where(aside, z.over_i(), z), where(aside, w.over_i(), w)
    nothing = (below.re == 0) & (below.im == 0)
    ratio = where(nothing, 0, below.im / below.re)
    scale = 1 / where(nothing, abs(below.re), below.re + below.im * ratio)
    found = Pair((above.re + where(nothing, 0, above.im * ratio)) * scale,
                 (above.im - where(nothing, 0, above.re * ratio)) * scale)
    lost = (found.re != found.re) & (found.im != found.im)
    for case, limit, direction in (
            (is_infinite(z) & ~is_infinite(w), np.inf, infinities(z) * w.conj()),
            (is_infinite(w) & ~is_infinite(z), 0, z * infinities(w).conj())):
        found = where(lost & case, Pair(direction.re * limit, direction.im * limit), found)
    return found


def moderating(x: Any, y: Any) -> Callable[[int], Any]:
    """Powers of two, of the 6th by which x and y are multiplied their squares stay in range; of
    the -6th what was multiplied comes back, of the -3rd its root.
    """
    large, k = algebra.max(abs(x), abs(y)), np.finfo(x.dtype).maxexp // 8
    huge, tiny = large > 2. ** (3 * k), large < 2. ** (-3 * k)
    return lambda n: where(huge, 2. ** (-n * k), where(tiny, 2. ** (n * k), filled(1, large)))


def size(z: Pair) -> Any:
    """The absolute value; nan where a part is."""
    power = moderating(z.re, z.im)
    x, y = z.re * power(6), z.im * power(6)
    return algebra.sqrt(x * x + y * y) * power(-6)


def sign(z: Pair) -> Pair:
    length = size(z)
    return where((z.re == 0) & (z.im == 0), z, Pair(z.re / length, z.im / length))


def root(z: Pair) -> Pair:
    """The square root in the right half-plane; the imaginary part keeps its sign."""
    power = moderating(z.re, z.im)
    x, y = abs(z.re) * power(6), abs(z.im) * power(6)
    large = algebra.sqrt((algebra.sqrt(x * x + y * y) + x) * .5)
    small = where((y == large) & (large + large == large), y, y / (large + large))
    large, small = large * power(-3), small * power(-3)
    return Pair(where(z.re < 0, small, large), copysign(where(z.re < 0, large, small), z.im))


def sqrt(z: Pair) -> Pair:
    """The root; of a real number without the sign of an imaginary zero."""
    found = root(z)
    return Pair(found.re, where(z.im == 0, abs(found.im), found.im))


def exp(z: Pair) -> Pair:
    """In two factors, where the first alone would overflow."""
    k = np.finfo(z.re.dtype).maxexp // 2
    large = z.re > k
    grown = analytic.exp(where(large, z.re - k, z.re))
    rest = where(large, math.exp(k), filled(1, z.re))
    return Pair(grown * analytic.cos(z.im) * rest,
                where(z.im == 0, z.im, grown * analytic.sin(z.im) * rest))


def expm1(z: Pair) -> Pair:
    half = analytic.sin(z.im * .5)
    return Pair(analytic.expm1(z.re) * analytic.cos(z.im) - 2 * half * half, exp(z).im)


def log(z: Pair) -> Pair:
    """Near one the logarithm of the size is small, and so is what it is computed from."""
    x, y = abs(z.re), abs(z.im)
    large, small = algebra.max(x, y), algebra.min(x, y)
    near = (large > .5) & (large < 2)
    more = where(near, (large - 1) * (large + 1) + small * small, 0)
    return Pair(where(near, analytic.log1p(more) * .5, analytic.log(size(z))),
                analytic.atan2(z.im, z.re))


def log1p(z: Pair) -> Pair:
    near = algebra.max(abs(z.re), abs(z.im)) < .5
    more = where(near, z.re * (2 + z.re) + z.im * z.im, 0)
    found = log(Pair(1 + z.re, z.im))
    return Pair(where(near, analytic.log1p(more) * .5, found.re), found.im)


def power(z: Pair, w: Any) -> Pair:
    if not isinstance(w, Pair):
        w = Pair(converted(w, z.re.dtype), filled(0, z.re))
    logs = log(z)
    grown = analytic.pow(size(z), w.re) * analytic.exp(-w.im * logs.im)
    turn = where(w.im == 0, 0, w.im * logs.re) + where(w.re == 0, 0, w.re * logs.im)
    found = Pair(grown * analytic.cos(turn), where(turn == 0, turn, grown * analytic.sin(turn)))
    return where((w.re == 0) & (w.im == 0), z.like(1), found)


def integer_pow(z: Pair, y: int) -> Pair:
    found = algebra.product_of_equals(z, abs(y)) if y else z.like(1)
    return found if y >= 0 else z.like(1) / found


def sinh(z: Pair) -> Pair:
    return Pair(analytic.sinh(z.re) * analytic.cos(z.im),
                where(z.im == 0, z.im, analytic.cosh(z.re) * analytic.sin(z.im)))


def cosh(z: Pair) -> Pair:
    flat = z.im * copysign(filled(1, z.re), z.re)
    return Pair(analytic.cosh(z.re) * analytic.cos(z.im),
                where(z.im == 0, flat, analytic.sinh(z.re) * analytic.sin(z.im)))


def tanh(z: Pair) -> Pair:
    """By e = exp(-2|x|), which does not overflow, and 1 - e, which is exact for small x."""
    less = analytic.expm1(-2 * abs(z.re))
    y = where(is_infinite(z.re) & (z.im - z.im != 0), 0, z.im)
    cos, e = analytic.cos(y), 4 * (1 + less)
    below = less * less + e * cos * cos
    return Pair(copysign(less * (2 + less) / below, z.re), e * analytic.sin(y) * cos / below)


def finite(z: Pair) -> Pair:
    """A large number for an infinite one: it has the same angle."""
    most = np.finfo(z.re.dtype).max / 4
    return where(is_infinite(z), each_of(infinities(z), lambda x: x * most), z)


def asin_and_acos(z: Pair) -> tuple[Pair, Pair]:
    """Kahan, *Branch cuts for complex elementary functions* (1987)."""
    x, y = finite(z).re, finite(z).im
    less, more = root(Pair(1 - x, -y)), root(Pair(1 + x, y))
    far = where(is_infinite(z), copysign(filled(np.inf, y), y),
                analytic.asinh(less.re * more.im - less.im * more.re))
    return (Pair(analytic.atan2(x, (less * more).re), far),
            Pair(2 * analytic.atan2(less.re, more.re), -far))


def acosh(z: Pair) -> Pair:
    found = asin_and_acos(z)[1]
    return Pair(abs(found.im), copysign(found.re, z.im))


def atanh(z: Pair) -> Pair:
    x, y = abs(finite(z).re), finite(z).im
    near = analytic.log1p(4 * (x / ((1 - x) * (1 - x) + y * y))) * .25
    return Pair(copysign(near, z.re), analytic.atan2(2 * y, (1 - x) * (1 + x) - y * y) * .5)


def turned(f: Callable[[Pair], Pair]) -> Callable[[Pair], Pair]:
    """The circular function of a hyperbolic one, and the other way round."""
    return lambda z: f(z.times_i()).over_i()


def beyond(op: str) -> Callable[[Pair, Pair], Pair]:
    """The larger of two, or the smaller: by the real parts, then by the imaginary ones."""
    def extremum(z: Pair, w: Pair) -> Pair:
        x, y = (z, w) if op == "max" else (w, z)
        return where((x.re > y.re) | (x.re == y.re) & (x.im > y.im), z, w)
    return extremum


def convert(z: Any, *, new_dtype: Any, weak_type: bool) -> Any:
    if new_dtype.kind != "c":
        return converted(z.re, new_dtype, weak_type)
    x, y = (z.re, z.im) if isinstance(z, Pair) else (z, filled(0, z))
    return Pair(*(converted(v, real_dtype(new_dtype), weak_type) for v in (x, y)))


def dot_general(z: Any, w: Any, *, preferred_element_type: Any, **params: Any) -> Pair:
    dtype = preferred_element_type and real_dtype(preferred_element_type)

    def dot(x: Any, y: Any) -> Any:
        return dot_general_p.bind(x, y, preferred_element_type=dtype, **params)

    if isinstance(z, Pair) and isinstance(w, Pair):
        return Pair(dot(z.re, w.re) - dot(z.im, w.im), dot(z.re, w.im) + dot(z.im, w.re))
    return each_of(z, lambda x: dot(x, w)) if isinstance(z, Pair) else each_of(
        w, lambda y: dot(z, y))


def iota(*, dtype: Any, **params: Any) -> Pair:
    x = iota_p.bind(dtype=real_dtype(dtype), **params)
    return Pair(x, filled(0, x))


# -- algorithms: loops in which two pairs become one -----------------------------------------------


def joined_product(b: Any, z: Sequence[Any], w: Sequence[Any]) -> list[Any]:
    (x, y), (u, v) = z, w
    return [b.fma(x, u, b.neg(b.mul(y, v))), b.fma(y, u, b.mul(x, v))]


def joined_extremum(op: str) -> Join:
    def join(b: Any, z: Sequence[Any], w: Sequence[Any]) -> list[Any]:
        (x, y), (u, v) = (z, w) if op == "max" else (w, z)
        taken = b.or_(b.gt(x, u), b.and_(b.eq(x, u), b.gt(y, v)))
        return [b.select(taken, *both) for both in zip(z, w, strict=True)]
    return join


def row_by_row(join: Join, op: str) -> Primitive:
    """Joins the rows of a matrix in order, and gives the last result, or all of them."""
    def loop(b: Any, outputs: Sequence[Any], operands: Sequence[Any], *, running: bool) -> None:
        (n, m), dtype = operands[0].shape, operands[0].dtype

        def put(i: Any, j: Any, before: Sequence[Any]) -> None:
            new = [x((b.index(i), b.index(j))) for x in operands]
            for out, x in zip(outputs, join(b, before, new) if before else new, strict=True):
                b.store(out, (i, j) if running else (j,), x)

        with b.loop(m, vectorize="parallel") as j:
            put(0, j, [] if op == "mul" else [b.const(extremum_of_nothing(op, dtype), dtype),
                                              b.const(0, dtype)])
        with b.loop(n, start=1) as i, b.loop(m, vectorize="parallel") as j:
            put(i, j, [b.load(out, (b.sub(i, 1), j) if running else (j,)) for out in outputs])

    return Primitive("row by row", multiple_results=True, loop=loop, abstract_eval=lambda x, y, *,
                     running: [x.update(shape=x.shape if running else x.shape[1:])] * 2)


def joining(join: Join, op: str) -> tuple[Callable, Callable]:
    """What joins all numbers along axes, and what keeps each step along one."""
    p = row_by_row(join, op)

    def joined(z: Pair, n: int, m: int) -> Pair:
        return Pair(*p.bind(*(emitted.reshaped(x, (n, m)) for x in (z.re, z.im)), running=False))

    def reduced(z: Pair, *, axes: tuple[int, ...]) -> Pair:
        """Long columns in so many parts side by side, which then are joined."""
        kept = without(range(z.re.ndim), axes)
        shape = tuple(z.re.shape[d] for d in kept)
        n, m = math.prod(z.re.shape[d] for d in axes), math.prod(shape)
        z = each_of(z, lambda x: emitted.reshaped(transpose(x, (*axes, *kept)), (n, m)))
        if not n:
            none = each_of(z, lambda x: emitted.zeros(x.aval.update(shape=shape)))
            return none.like(1 if op == "mul" else extremum_of_nothing(op, z.re.dtype))
        if (count := n // SIDE_BY_SIDE) > 1:
            whole = count * SIDE_BY_SIDE
            most = joined(each_of(z, lambda x: part(x, 0, whole)), count, SIDE_BY_SIDE * m)
            z, n = Pair(*(concatenate_p.bind(emitted.reshaped(x, (SIDE_BY_SIDE, m)),
                                             part(rest, whole, n), dimension=0)
                          for x, rest in ((most.re, z.re), (most.im, z.im)))), (
                              SIDE_BY_SIDE + n - whole)
        return each_of(joined(z, n, m), lambda x: emitted.reshaped(x, shape))

    def running(z: Pair, *, axis: int, reverse: bool) -> Pair:
        shape = z.re.shape
        if not z.re.size:
            return z
        order = (axis, *without(range(len(shape)), (axis,)))
        turned = tuple(shape[d] for d in order)

        def there(x: Any) -> Any:
            x = emitted.reshaped(transpose(x, order), (shape[axis], x.size // shape[axis]))
            return rev(x, (0,)) if reverse else x

        def back(x: Any) -> Any:
            x = emitted.reshaped(rev(x, (0,)) if reverse else x, turned)
            return transpose(x, inverse(order))
        found = each_of(z, there)
        return each_of(Pair(*p.bind(found.re, found.im, running=True)), back)
    return reduced, running


def scattering(join: Join) -> Callable[..., Pair]:
    """What changes both parts at computed places."""
    p = Primitive("scatter of pairs", multiple_results=True, loop=scatter_loop(join),
                  abstract_eval=lambda x, y, *_, **__: [x, y], in_place=lambda k, /, **_: (k,))
    return lambda z, indices, w, **params: Pair(
        *p.bind(z.re, z.im, indices, w.re, w.im, **params))


def each_of(z: Any, f: Callable[[Any], Any]) -> Any:
    """What f makes of both parts, or of what is real."""
    return Pair(f(z.re), f(z.im)) if isinstance(z, Pair) else f(z)


# -- the rules -------------------------------------------------------------------------------------

# What acts on each part alone.
EACH_PART = set(
    "neg add sub add_any reduce_sum cumsum select_n copy stop_gradient broadcast_in_dim reshape "
    "transpose squeeze rev slice pad concatenate dynamic_slice dynamic_update_slice gather scatter "
    "scatter-add scatter-sub".split())

# Element by element, of operands of one shape.
FORMULAS: dict[str, Callable[..., Any]] = {
    "real": lambda z: z.re,
    "imag": lambda z: z.im,
    "complex": Pair,
    "conj": lambda z, input_dtype: z.conj() if isinstance(z, Pair) else Pair(z, filled(0, z)),
    "convert_element_type": convert,
    "mul": mul,
    "div": truediv,
    "square": lambda z: z * z,
    "integer_pow": integer_pow,
    "pow": power,
    "abs": size,
    "sign": sign,
    "sqrt": sqrt,
    "rsqrt": lambda z: z.like(1) / sqrt(z),
    "exp": exp,
    "exp2": lambda z: exp(Pair(z.re * math.log(2), z.im * math.log(2))),
    "expm1": expm1,
    "log": log,
    "log1p": log1p,
    "logistic": lambda z: z.like(1) / (z.like(1) + exp(-z)),
    "sinh": sinh,
    "cosh": cosh,
    "tanh": tanh,
    "sin": turned(sinh),
    "cos": lambda z: cosh(z.times_i()),
    "tan": turned(tanh),
    "asin": lambda z: asin_and_acos(z)[0],
    "acos": lambda z: asin_and_acos(z)[1],
    "atan": turned(atanh),
    "asinh": turned(lambda z: asin_and_acos(z)[0]),
    "acosh": acosh,
    "atanh": atanh,
    "atan2": lambda z, w: log((w + z.times_i()) / root(z * z + w * w)).over_i(),
    "max": beyond("max"),
    "min": beyond("min"),
    "clamp": lambda low, z, high: beyond("min")(beyond("max")(z, low), high),
    "eq": lambda z, w: (z.re == w.re) & (z.im == w.im),
    "ne": lambda z, w: (z.re != w.re) | (z.im != w.im),
}

# Others.
RULES: dict[str, Callable[..., Any]] = {
    "dot_general": dot_general,
    "iota": iota,
    "scatter-mul": scattering(joined_product),
    "scatter-min": scattering(joined_extremum("min")),
    "scatter-max": scattering(joined_extremum("max")),
}
for _name, _op, _join in (("prod", "mul", joined_product), ("max", "max", joined_extremum("max")),
                          ("min", "min", joined_extremum("min"))):
    RULES[f"reduce_{_name}"], RULES[f"cum{_name}"] = joining(_join, _op)

# How many operands are of a kind, in the order of the operands: of loops, and of sorts.
COUNTS = ("num_consts", "num_carry", "cond_nconsts", "body_nconsts", "num_keys")


# -- programs --------------------------------------------------------------------------------------


def is_complex(aval: ShapedArray) -> bool:
    return getattr(aval.dtype, "kind", "") == "c"


def parts_of(avals: Sequence[ShapedArray]) -> list[ShapedArray]:
    """The types of the real values that stand for values of these types."""
    return [each for aval in avals for each in (
        [aval.update(dtype=real_dtype(aval.dtype))] * 2 if is_complex(aval) else [aval])]


def apart(values: Sequence[Any]) -> list[Any]:
    """The values, with the parts of a pair one after the other."""
    return [x for z in values for x in ((z.re, z.im) if isinstance(z, Pair) else (z,))]


def together(parts: Sequence[Any], avals: Sequence[ShapedArray]) -> list[Any]:
    """The values of these types from their parts."""
    rest = iter(parts)
    return [Pair(next(rest), next(rest)) if is_complex(aval) else next(rest) for aval in avals]


def in_pairs(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The same program of the parts of its complex numbers, which stand one after the other.

    >>> import minijax
    >>> in_pairs(minijax.make_jaxpr(lambda z: minijax.lax.conj(z))(1j))
    { lambda ; a:f32[] b:f32[]. let c:f32[] = neg b in (a, c) }
    """
    if not any(map(is_complex, types_in(closed.jaxpr))):
        return closed

    @context.leaving(core.current_source)
    def run(*args: Array) -> list[Array]:
        return apart(_walk(closed.jaxpr, closed.consts, together(args, closed.in_avals)))

    return closed.derived(("in pairs",), lambda: stage(
        run, parts_of(closed.in_avals), closed.jaxpr.debug_info))


def _walk(jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
    """The outputs of a program, of which complex values are pairs."""
    env = Environment(zip(jaxpr.constvars + jaxpr.invars, (*map(_value, consts), *args),
                          strict=True))
    for eqn in jaxpr.eqns:
        core.current_source.set(eqn.source_info)
        outs = _results(eqn, [_value(env[x]) for x in eqn.invars])
        env.update(zip(eqn.outvars, outs, strict=True))
    return [_value(env[v]) for v in jaxpr.outvars]


def _value(x: Any) -> Any:
    """A pair instead of a complex constant."""
    if not (isinstance(x, ArrayImpl) and is_complex(x.aval)):
        return x
    return Pair(*(ArrayImpl(each.copy(), aval, x.is_literal) for each, aval in
                  zip((x._buffer.real, x._buffer.imag), parts_of([x.aval]), strict=True)))


def _results(eqn: JaxprEqn, args: Sequence[Any]) -> Sequence[Any]:
    """The results of an equation."""
    primitive, params, name = eqn.primitive, eqn.params, eqn.primitive.name
    outs = [v.aval for v in eqn.outvars]
    inner = None if name == "scan" else program_called(eqn)  # from which products go later
    if inner is not None:
        return _walk(inner.jaxpr, inner.consts, args)
    if (not any(is_complex(v.aval) for v in (*eqn.invars, *eqn.outvars)) or any(subjaxprs(params))
            or name in ("sort", "debug_callback")):
        trace = core.current_trace.get()
        assert isinstance(trace, DynamicJaxprTrace)
        return together(trace.record(primitive, apart(args), _of_parts(eqn), parts_of(outs)), outs)
    if name in EACH_PART:
        return [Pair(*(_of_part(eqn, args, k) for k in range(2)))]
    if name in FORMULAS:
        return [FORMULAS[name](*(each_of(x, lambda v: emitted.stretched(v, outs[0].shape))
                                 for x in args), **params)]
    if name in RULES:
        return [RULES[name](*args, **params)]
    raise NotImplementedError(
        f"'{name}' on {eqn.invars[0].aval.str_short()} cannot be compiled: it has no formula in "
        f"the parts of complex numbers. Run it under `disable_jit`.{called_at(eqn)}")


def _of_part(eqn: JaxprEqn, args: Sequence[Any], k: int) -> Any:
    """An equation on the real parts, or on the imaginary ones."""
    params = dict(eqn.params)
    if params.get("fill_value") is not None:
        fill = np.asarray(params["fill_value"])
        params["fill_value"] = (fill.imag if k else fill.real).item()
    return eqn.primitive.bind(*(apart([x])[k] if isinstance(x, Pair) else x for x in args),
                              **params)


def _of_parts(eqn: JaxprEqn) -> dict[str, Any]:
    """The parameters of an equation whose operands are both parts of what they were."""
    params, avals = with_programs(eqn.params, in_pairs), [v.aval for v in eqn.invars]
    for name in COUNTS:
        if name in params:
            own, avals = avals[:params[name]], avals[params[name]:]
            params[name] = len(parts_of(own))
    if "callback" in params:
        params["callback"] = _of_whole(params["callback"], avals)
    return params


def _of_whole(callback: Callable[..., Any], avals: Sequence[ShapedArray]) -> Callable[..., Any]:
    """A function of NumPy arrays, called with the parts of complex ones."""
    return lambda *parts: callback(*(
        algebra.in_parts(x.re, x.im) if isinstance(x, Pair) else x
        for x in together(parts, avals)))
