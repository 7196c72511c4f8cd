"""The incomplete gamma and beta functions, their derivatives, and those of digamma.

Stands on `while_loop`: each block becomes a program, of a series or a continued fraction that is
summed until nothing changes.  Chapter 16, *Random numbers*.
In JAX: `jax/_src/lax/special.py`.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import core, dtypes
from minijax.core import Array, Primitive, cannot
from minijax.transforms import eager_strips
from minijax.control_flow.cond_scan_while import while_loop
from minijax.custom.custom_jvp_vjp import SymbolicZero, custom_jvp
from minijax.transforms.jit import jit
from minijax.core.jvp import jvp_flat
from minijax.primitives import algebra, analytic, comparison, ad_util, families, gamma, rounding
from minijax.primitives.convert import converted
from minijax.primitives.examples import Examples, points
from minijax.primitives.families import FormulaPrimitive
from minijax.primitives.rounding import abs
from minijax.primitives.slots import (FLOAT, NOT_LINEAR, all_weak, broadcast_shapes, check_dtypes,
                                      elementwise_type)


def _moving(f: Callable[..., Sequence], primals: Sequence, tangents: Sequence
            ) -> tuple[tuple, tuple]:
    """What a function gives, and how that moves with its arguments."""
    outs, moves = jvp_flat(f, primals, tangents)
    return tuple(outs), tuple(map(ad_util.instantiate, moves))


def _series(a: Array, x: Array) -> Array:
    """1 + x/(a+1) + x²/((a+1)(a+2)) + …, for x below a + 1."""
    def more(state: tuple) -> tuple:
        n, term, total = state
        term = algebra.mul(term, algebra.div(x, algebra.add(a, n)))
        return n + 1, term, algebra.add(total, term)

    tiny = ad_util.filled(dtypes.finfo(x.dtype).eps / 32, x)
    one = ad_util.filled(1, x)
    return while_loop(lambda state: (state[1] > algebra.mul(tiny, state[2])).any(), more,
                      (one, one, one))[2]


def _fraction(a: Array, x: Array, sloped: bool = False) -> tuple[Array, Array]:
    """1/(x+1-a- 1(1-a)/(x+3-a- 2(2-a)/(…))), for x above a + 1, by Lentz's method; and, if asked
    for, its derivative in a, which goes on changing where a is whole and the fraction ends.
    """
    least = ad_util.filled(dtypes.finfo(x.dtype).tiny * 1e8, x)
    eps, one, zero = ad_util.filled(2 * dtypes.finfo(x.dtype).eps, x), *(
        ad_util.filled(k, x) for k in (1, 0))

    def kept_from_zero(y: Any) -> Any:
        return comparison.select(abs(y) < least, least, y)

    def begin(a: Array) -> tuple:
        b = x + 1 - a
        d = 1 / kept_from_zero(b)
        return b, 1 / least, d, d

    def turn(n: Array, a: Array, state: tuple) -> tuple:
        b, c, d, h = state
        factor = -n * (n - a)
        b = b + 2
        d = 1 / kept_from_zero(factor * d + b)
        c = kept_from_zero(b + factor / c)
        return b, c, d, h * (c * d)

    def more(state: tuple) -> tuple:
        n, now, slopes, left = state
        if not sloped:
            after, moves = turn(n, a, now), slopes
        else:
            after, moves = _moving(lambda a, *now: turn(n, a, now), (a, *now), (one, *slopes))
        change = sum(abs(new[3] - old[3]) / kept_from_zero(abs(new[3]))
                     for old, new in ((now, after), (slopes, moves)))
        # one that has ended stays, while others go on: each turn would round it once more
        goes_on = functools.partial(comparison.select, left > eps)
        return (n + 1, tuple(map(goes_on, after, now)), tuple(map(goes_on, moves, slopes)),
                goes_on(change, left))

    start, slopes = (_moving(begin, (a,), (one,)) if sloped else (begin(a), (zero,) * 4))
    _, (*_, h), (*_, slope), _ = while_loop(
        lambda state: ((state[3] > eps) & (state[0] < 10_000)).any(), more,
        (one, start, slopes, one))
    return h, slope


def _parts(a: Array, x: Array) -> tuple[Array, ...]:
    """Where the series serves, and the arguments of either, harmless where the other serves, or
    neither: from others than these the series may never end.
    """
    one, serve = ad_util.filled(1, x), ~_large(a, x)[0] & (a > 0) & (x > 0) & (x < np.inf)
    serve = serve & (a < np.inf)
    a, x = comparison.select(serve, a, one), comparison.select(serve, x, one)
    is_low = (x <= 1) | (x <= a)
    low = comparison.select(is_low, x, one), comparison.select(is_low, a, one)
    high = comparison.select(is_low, one * 3, x), comparison.select(is_low, one, a)
    return is_low, *low[::-1], *high[::-1]


def _log_density(a: Array, x: Array) -> Array:
    """Of x^a exp(-x) / gamma(a) the logarithm."""
    is_large, large_a, large_x = _large(a, x)
    near = .5 * analytic.log(large_a / (2 * np.pi)) - 1 / (12 * large_a)
    return comparison.select(is_large, near - .5 * large_a * _eta(large_a, large_x) ** 2,
                         a * analytic.log(x) - x - gamma.lgamma(a))


# ── Where the shape is large, series and fraction would take as many turns as its root ────────

def _large(a: Array, x: Array) -> tuple[Array, Array, Array]:
    """Where the shape is large, and the arguments, harmless where it is not."""
    least = ad_util.filled(1e4 if x.dtype == np.float32 else 1e6, x)
    is_large = (a >= least) & (a < np.inf) & (x >= 0) & (x < np.inf)
    return is_large, comparison.select(is_large, a, least), comparison.select(is_large, x, least)


def _eta(a: Array, x: Array) -> Array:
    """Half its square is x/a - 1 - log(x/a), and its sign that of x - a."""
    mu = (x - a) / a
    is_near = abs(mu) < .1
    near, far = (comparison.select(is_near, *pair) for pair in (
        (mu, ad_util.filled(.05, x)), (ad_util.filled(1, x), mu)))
    logarithm = comparison.select(is_near, ad_util.filled(0, x), analytic.log(x) - analytic.log(a))
    total = ad_util.filled(0, x)
    for k in reversed(range(2, 16)):
        total = total * -near + 2 / k
    direct = algebra.sqrt(2 * (far - logarithm))
    return comparison.select(is_near, near * algebra.sqrt(total),
                         comparison.select(far < 0, -direct, direct))


# Coefficients of a^-k in powers of eta.  Source: N. M. Temme, *The asymptotic expansion of the
# incomplete gamma functions* (1979).
_TEMME = ((-1 / 3, 1 / 12, -2 / 135, 1 / 864, 1 / 2835, -139 / 777600, 1 / 25515),
          (-1 / 540, -1 / 288, 1 / 378, -77 / 77760))


def _of_large(a: Array, x: Array, upper: bool) -> Array:
    eta = _eta(a, x)
    total, short = ad_util.filled(0, x), comparison.clamp(x.dtype.type(-1), eta, x.dtype.type(1))
    for row in reversed(_TEMME):
        power = ad_util.filled(0, x)
        for c in reversed(row):
            power = power * short + c
        total = total / a + power
    rest = analytic.exp(-.5 * a * eta * eta) * total / algebra.sqrt(2 * np.pi * a)
    sign = 1 if upper else -1
    return .5 * analytic.erfc(sign * eta * algebra.sqrt(a / 2)) + sign * rest


def _lower(a: Array, x: Array, upper: bool) -> Array:
    is_large, large_a, large_x = _large(a, x)
    is_low, low_a, low_x, high_a, high_x = _parts(a, x)
    below = analytic.exp(_log_density(low_a, low_x)) / low_a * _series(low_a, low_x)
    above = analytic.exp(_log_density(high_a, high_x)) * _fraction(high_a, high_x)[0]
    found = (comparison.select(is_low, 1 - below, above) if upper
             else comparison.select(is_low, below, 1 - above))
    found = comparison.select(is_large, _of_large(large_a, large_x, upper), found)
    at_zero, at_end = (1., 0.) if upper else (0., 1.)
    found = comparison.select((x == 0) | (a == np.inf), ad_util.filled(at_zero, x), found)
    found = comparison.select((x == np.inf) | (a == 0) & (x > 0), ad_util.filled(at_end, x), found)
    no_limit = (a == 0) & (x == 0) | (a == np.inf) & (x == np.inf)
    return comparison.select((x < 0) | (a < 0) | no_limit | (x != x) | (a != a),
                         ad_util.filled(np.nan, x), found)


def _slope_of_large(a: Array, x: Array) -> Array:
    """How a gamma number moves, over the number itself: eta goes with the root of the shape."""
    mu, one = (x - a) / a, ad_util.filled(1, x)
    is_near, eta = abs(mu) < .1, _eta(a, x)
    over_mu = comparison.select(mu == 0, one, eta / comparison.select(mu == 0, one, mu))
    apart = comparison.select(is_near, one, mu)
    whole = comparison.select(is_near, 1 - .5 * over_mu * eta,
                          (analytic.log(x) - analytic.log(a)) / apart)
    return (whole + .5 * over_mu * (1 / 3 - eta / 18) / a) / a


def _slope_in_a(a: Array, x: Array, of_number: bool) -> Array:
    """Of the lower function, or (with the sign changed, by the density) of a gamma number."""
    is_large, large_a, large_x = _large(a, x)
    is_low, low_a, low_x, high_a, high_x = _parts(a, x)

    (total,), (slope,) = _moving(lambda a: [_series(a, low_x)], (low_a,), (ad_util.filled(1, a),))
    below = -(total * (analytic.log(low_x) - gamma.digamma(low_a + 1)) + slope) / low_a
    fraction, slope = _fraction(high_a, high_x, sloped=True)
    above = fraction * (analytic.log(high_x) - gamma.digamma(high_a)) + slope
    by_density = comparison.select(is_low, below, above)  # over x^a exp(-x) / gamma(a)
    by_density = comparison.select(is_large, _slope_of_large(large_a, large_x), by_density)
    if of_number:
        found = comparison.select(x == 0, x, by_density * x)
    else:
        found = -by_density * analytic.exp(_log_density(a, x))
        found = comparison.select((x == 0) | (x == np.inf), ad_util.filled(0, x), found)
    return comparison.select((x < 0) | (a <= 0) | (x != x) | (a != a) | (a == np.inf) & (x > 0),
                         ad_util.filled(np.nan, x), found)


# ── The blocks ───────────────────────────────────────────────────────────────────────────────

def _wide(formula: Callable[..., Array]) -> Callable[..., Array]:
    """A formula whose arguments are stretched to one shape, and 16-bit floats computed in 32."""
    def computed(*args: Array) -> Array:
        shape, dtype = np.broadcast_shapes(*(x.shape for x in args)), args[0].dtype
        wide = np.promote_types(dtype, np.float32)
        found = formula(*(converted(ad_util.broadcast_to(x, shape), wide) for x in args))
        return converted(found, dtype, all_weak([x.aval for x in args]))
    return computed


def _block(name: str, count: int, formula: Callable[..., Array], jvp: Any, examples: Examples
           ) -> Primitive:
    """An elementwise operation that is a program with loops: it is compiled when evaluated, too."""
    program = _wide(formula)
    return Primitive(
        name, impl=families.by_program(jit(program)), program=program, jvp=jvp,
        abstract_eval=elementwise_type(name, [FLOAT] * count), transpose=NOT_LINEAR,
        batch=ad_util.batch_elementwise, examples=lambda: examples()[::3])  # each is compiled


def _of_two(name: str, meaning: str, shown: str, formula: Callable[..., Array], jvp: Any
            ) -> tuple[Primitive, Callable[[Any, Any], Array]]:
    """A function of a shape and a place, and its block."""
    p = _block(name, 2, formula, jvp, points((.5, 4.), (.3, 5.)))

    def function(a: Any, x: Any) -> Array:
        return p.bind(a, x)
    return p, families.documented(
        function, name, f"{meaning}\n\n    Args:\n      a: the shape, positive: an array of a "
        "floating dtype.\n      x: where, not negative: an array of the same dtype.",
        f"round(float({name}(2., 1.)), 4) -> {shown}", "TypeError: for other dtypes.")


@_wide
def _by_x(a: Array, x: Array) -> Array:
    is_large, _, _ = _large(a, x)
    small = (a - 1) * analytic.log(x) - x - gamma.lgamma(a)
    return comparison.select(is_large, analytic.exp(_log_density(a, x)) / x, analytic.exp(small))


igamma_grad_a_p, igamma_grad_a = _of_two(
    "igamma_grad_a", "The derivative of `igamma` in its first argument.", "-0.2762",
    lambda a, x: _slope_in_a(a, x, False), cannot("it is a derivative that has none"))
igamma_p, igamma = _of_two(
    "igamma", "The lower incomplete gamma function, divided by the whole one.", "0.2642",
    lambda a, x: _lower(a, x, False), families.per_argument(
        lambda t, y, a, x: t * igamma_grad_a(a, x), lambda t, y, a, x: t * _by_x(a, x)))
igammac_p, igammac = _of_two(
    "igammac", "The upper incomplete gamma function, divided by the whole one.", "0.7358",
    lambda a, x: _lower(a, x, True), families.per_argument(
        lambda t, y, a, x: -t * igamma_grad_a(a, x), lambda t, y, a, x: -t * _by_x(a, x)))


# Itself it is derived as it is summed, in forward mode, so it is no block.
def random_gamma_grad(a: Any, x: Any) -> Array:
    """How a gamma number x moves with the shape a of its distribution.

    Args:
      a: the shape, positive: an array of a floating dtype.
      x: the number: an array of the same dtype.

    >>> round(float(random_gamma_grad(2., 1.)), 4)
    0.7508

    Raises:
      TypeError: for other dtypes.
    """
    a, x = _alike("random_gamma_grad", a, x)
    return converted(_slope_of_number(a, x), x.dtype)


@functools.partial(jit, inline=True)
@_wide
def _slope_of_number(a: Array, x: Array) -> Array:
    return _slope_in_a(a, x, True)


# ── The incomplete beta function ─────────────────────────────────────────────────────────────

def _beta_fraction(a: Array, b: Array, x: Array) -> Array:
    """1 / (1 + d1 / (1 + d2 / …)) by Lentz's method, for x below (a + 1) / (a + b + 2).

    Source: DLMF, 8.17.22.
    """
    least = ad_util.filled(dtypes.finfo(x.dtype).tiny * 1e8, x)
    eps, one = ad_util.filled(2 * dtypes.finfo(x.dtype).eps, x), ad_util.filled(1, x)

    def kept_from_zero(y: Any) -> Any:
        return comparison.select(abs(y) < least, least, y)

    def more(state: tuple) -> tuple:
        m, c, d, h, left = state
        change = one
        for factor in (m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
                       -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))):
            d = 1 / kept_from_zero(1 + factor * d)
            c = kept_from_zero(1 + factor / c)
            change = change * (c * d)
        # one that has ended stays, while others go on: each turn would round it once more
        h = comparison.select(left > eps, h * change, h)
        return m + 1, c, d, h, comparison.select(left > eps, abs(change - 1), left)

    first = 1 / kept_from_zero(1 - (a + b) * x / (a + 1))
    return while_loop(lambda state: ((state[4] > eps) & (state[0] < 10_000)).any(), more,
                      (one, one, first, first, one))[3]


def _log_beta(a: Array, b: Array) -> Array:
    return gamma.lgamma(a) + gamma.lgamma(b) - gamma.lgamma(a + b)


# Bernoulli numbers, 2k (2k - 1) below.
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)


def beyond_stirling(z: Any) -> Any:
    """What Stirling's formula for log(gamma(z)) leaves over, for large z.

    >>> from minijax.core import as_value
    >>> beyond_stirling(as_value(np.float32(10))).round(6)
    Array(0.008331, dtype=float32)
    """
    inverse = 1 / z
    square = inverse * inverse
    total = ad_util.filled(0, z)
    for term in reversed(_STIRLING):
        total = total * square + term
    return total * inverse


def _beta_powers(a: Array, b: Array, x: Array) -> Array:
    """x^a (1 - x)^b / beta(a, b); where a and b are large, logarithms of what is near 1 are taken.
    """
    n, y = a + b, 1 - x
    are_large = (a >= 10) & (b >= 10)
    plain = analytic.exp(a * analytic.log(x) + b * analytic.log1p(-x) - _log_beta(a, b))
    exponent = a * analytic.log(x * (n / a)) + b * analytic.log(y * (n / b))
    exponent = exponent - (beyond_stirling(a) + beyond_stirling(b) - beyond_stirling(n))
    near = analytic.exp(exponent) * algebra.sqrt(a / n * b / (2 * np.pi))
    return comparison.select(are_large, near, plain)


def _betainc(a: Array, b: Array, x: Array) -> Array:
    inside = (x > 0) & (x < 1) & (a > 0) & (b > 0) & (a < np.inf) & (b < np.inf)
    safe, half = functools.partial(comparison.select, inside), ad_util.filled(.5, x)
    a0, b0, x0 = safe(a, half), safe(b, half), safe(x, half)
    turned = x0 > (a0 + 1) / (a0 + b0 + 2)  # there it is one less the other way round
    p, q = comparison.select(turned, b0, a0), comparison.select(turned, a0, b0)
    y = comparison.select(turned, 1 - x0, x0)
    found = _beta_powers(a0, b0, x0) / p * _beta_fraction(p, q, y)
    found = comparison.select(turned, 1 - found, found)
    # without a width all of it lies at an end
    low, high = (a == 0) | (b == np.inf), (b == 0) | (a == np.inf)
    end = comparison.select(low & (x > 0), ad_util.filled(1, x),
                        comparison.select(high & (x < 1), ad_util.filled(0, x), x))
    is_wrong = ~((x >= 0) & (x <= 1) & (a >= 0) & (b >= 0)) | low & high
    return safe(found, comparison.select(is_wrong, ad_util.filled(np.nan, x), end))


def _refused(t: Array, *args: Array) -> Array:
    raise ValueError("Betainc gradient with respect to a and b not supported.")


@_wide
def _beta_density(a: Array, b: Array, x: Array) -> Array:
    return analytic.exp((b - 1) * analytic.log1p(-x) + (a - 1) * analytic.log(x) - _log_beta(a, b))


regularized_incomplete_beta_p = _block(
    "regularized_incomplete_beta", 3, _betainc, families.per_argument(
        _refused, _refused, lambda t, y, *args: t * _beta_density(*args)),
    points((.5, 4.), (.5, 4.), (.1, .9)))


def betainc(a: Any, b: Any, x: Any) -> Array:
    """The incomplete beta function, divided by the whole one.

    Args:
      a, b: the parameters, positive: arrays of a floating dtype.
      x: where, from 0 to 1: an array of the same dtype.

    >>> round(float(betainc(2., 3., .25)), 4)
    0.2617

    Raises:
      TypeError: for other dtypes.
      ValueError: for its derivative in a or b.
    """
    return regularized_incomplete_beta_p.bind(a, b, x)


# ── The derivatives of digamma ───────────────────────────────────────────────────────────────

def _alike(name: str, *args: Any) -> list[Array]:
    """The arguments, of one floating dtype, in one shape."""
    arrays = [core.as_value(x) for x in args]
    check_dtypes(name, [x.aval for x in arrays], [FLOAT] * len(arrays))
    shape = broadcast_shapes(name, [x.shape for x in arrays])
    return [ad_util.broadcast_to(x, shape) for x in arrays]


@custom_jvp
@_wide
def _ruled_polygamma(m: Array, x: Array) -> Array:
    is_even = m == 2 * rounding.floor(m / 2)
    sign = comparison.select(is_even, ad_util.filled(-1, m), ad_util.filled(1, m))
    found = sign * analytic.exp(gamma.lgamma(m + 1)) * gamma.zeta(m + 1, x)
    found = comparison.select(m == 0, gamma.digamma(x), found)
    return comparison.select((m < 0) | (m != rounding.floor(m)), ad_util.filled(np.nan, m), found)


@functools.partial(_ruled_polygamma.defjvp, symbolic_zeros=True)
def _polygamma_rule(primals: tuple, tangents: tuple) -> tuple:
    (m, x), (of_m, of_x) = primals, tangents
    if not isinstance(of_m, SymbolicZero):
        raise ValueError("polygamma gradient with respect to m is not supported")
    return _ruled_polygamma(m, x), _ruled_polygamma(m + 1, x) * of_x


def polygamma(m: Any, x: Any) -> Array:
    """The m-th derivative of digamma; digamma itself for 0.

    Args:
      m: whole numbers, as an array of a floating dtype.
      x: where: an array of the same dtype.

    >>> round(float(polygamma(1., 1.)), 4)
    1.6449

    Raises:
      TypeError: for other dtypes.
      ValueError: for its derivative in m.
    """
    return _ruled_polygamma(*_alike("polygamma", m, x))


# Functions of one formula are compiled, too, where they are evaluated.
FormulaPrimitive.compiled = staticmethod(eager_strips.evaluated)
