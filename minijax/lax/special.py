"""The incomplete gamma and beta functions, their derivatives, and those of digamma.

Builds on `while_loop`: each is a program that sums a series or a continued fraction until it
converges.  Chapter 16, *Random numbers*.
In JAX: `jax/_src/lax/special.py`.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import core, dtypes
from minijax.core import Array, Primitive, cannot
from minijax.transforms import eager_strips
from minijax.control_flow.loops import while_loop
from minijax.custom.custom_jvp_vjp import SymbolicZero, custom_jvp
from minijax.transforms.jit import jit
from minijax.core.jvp import jvp_flat
from minijax.primitives import families
from minijax.primitives.ad_util import batch_elementwise, broadcast_to, filled, instantiate
from minijax.primitives.algebra import add, div, mul, sqrt
from minijax.primitives.analytic import erfc, exp, log, log1p
from minijax.primitives.comparison import clamp, select
from minijax.primitives.convert import converted
from minijax.primitives.examples import Examples, points
from minijax.primitives.gamma import digamma, lgamma, zeta
from minijax.primitives.rounding import abs, floor
from minijax.primitives.slots import (FLOAT, NOT_LINEAR, all_weak, broadcast_shapes, check_dtypes,
                                      elementwise_type)


def _jvp(f: Callable[..., Sequence], primals: Sequence, tangents: Sequence) -> tuple[tuple, tuple]:
    """The outputs of a function and their tangents, none of which is a `Zero`."""
    outs, out_tangents = jvp_flat(f, primals, tangents)
    return tuple(outs), tuple(map(instantiate, out_tangents))


def polynomial(coefficients: Sequence[float], x: Array) -> Array:
    """Horner's rule; the first coefficient is the constant."""
    total = filled(0, x)
    for c in reversed(coefficients):
        total = total * x + c
    return total


def _lentz_limits(x: Array) -> tuple[Array, Callable[[Any], Any]]:
    """The relative change at which Lentz's method ends, and a guard against division by zero."""
    limits = dtypes.finfo(x.dtype)
    tiny = filled(limits.tiny * 1e8, x)
    return filled(2 * limits.eps, x), lambda y: select(abs(y) < tiny, tiny, y)


def _series(a: Array, x: Array) -> Array:
    """1 + x/(a+1) + x²/((a+1)(a+2)) + …, for x below a + 1."""
    def step(state: tuple) -> tuple:
        n, term, total = state
        term = mul(term, div(x, add(a, n)))
        return n + 1, term, add(total, term)

    tiny = filled(dtypes.finfo(x.dtype).eps / 32, x)
    one = filled(1, x)
    return while_loop(lambda state: (state[1] > mul(tiny, state[2])).any(), step,
                      (one, one, one))[2]


def _fraction(a: Array, x: Array, with_grad: bool = False) -> tuple[Array, Array]:
    """1/(x+1-a- 1(1-a)/(x+3-a- 2(2-a)/(…))), for x above a + 1, by Lentz's method; and, on request,
    its derivative in a, which may still change where a is whole and the fraction has ended.
    """
    eps, nonzero = _lentz_limits(x)
    one, zero = filled(1, x), filled(0, x)

    def first(a: Array) -> tuple:
        b = x + 1 - a
        d = 1 / nonzero(b)
        return b, 1 / nonzero(zero), d, d

    def following(n: Array, a: Array, state: tuple) -> tuple:
        b, c, d, h = state
        factor = -n * (n - a)
        b = b + 2
        d = 1 / nonzero(factor * d + b)
        c = nonzero(b + factor / c)
        return b, c, d, h * (c * d)

    def step(carry: tuple) -> tuple:
        n, state, tangents, change = carry
        if with_grad:
            new, new_tangents = _jvp(lambda a, *state: following(n, a, state), (a, *state),
                                     (one, *tangents))
        else:
            new, new_tangents = following(n, a, state), tangents
        new_change = sum(abs(after[3] - before[3]) / nonzero(abs(after[3]))
                         for before, after in ((state, new), (tangents, new_tangents)))
        # converged elements stay, while others change: each step would round them once more
        update = functools.partial(select, change > eps)
        return (n + 1, tuple(map(update, new, state)),
                tuple(map(update, new_tangents, tangents)), update(new_change, change))

    start, tangents = _jvp(first, (a,), (one,)) if with_grad else (first(a), (zero,) * 4)
    _, (*_, h), (*_, tangent), _ = while_loop(
        lambda carry: ((carry[3] > eps) & (carry[0] < 10_000)).any(), step,
        (one, start, tangents, one))
    return h, tangent


def _series_and_fraction_args(a: Array, x: Array) -> tuple[Array, ...]:
    """Where the series converges, and arguments of the series and of the fraction.

    Where one is not used its arguments are safe: of others the series may never end.
    """
    one, is_used = filled(1, x), ~_large(a, x)[0] & (a > 0) & (x > 0) & (x < np.inf) & (a < np.inf)
    a, x = select(is_used, a, one), select(is_used, x, one)
    is_series = (x <= 1) | (x <= a)
    return (is_series, select(is_series, a, one), select(is_series, x, one),
            select(is_series, one, a), select(is_series, one * 3, x))


def _log_density(a: Array, x: Array) -> Array:
    """The logarithm of x^a exp(-x) / gamma(a)."""
    is_large, large_a, large_x = _large(a, x)
    near = .5 * log(large_a / (2 * np.pi)) - 1 / (12 * large_a)
    return select(is_large, near - .5 * large_a * _eta(large_a, large_x) ** 2,
                  a * log(x) - x - lgamma(a))


# ── Large shapes: series and fraction would take as many steps as the root of the shape ──────

def _large(a: Array, x: Array) -> tuple[Array, Array, Array]:
    """Where the shape is large, and the arguments, which are safe where it is not."""
    least = filled(1e4 if x.dtype == np.float32 else 1e6, x)
    is_large = (a >= least) & (a < np.inf) & (x >= 0) & (x < np.inf)
    return is_large, select(is_large, a, least), select(is_large, x, least)


def _eta(a: Array, x: Array) -> Array:
    """The number of the sign of x - a, half of whose square is x/a - 1 - log(x/a)."""
    mu = (x - a) / a
    is_near = abs(mu) < .1
    near, far = (select(is_near, *pair) for pair in ((mu, filled(.05, x)), (filled(1, x), mu)))
    logarithm = select(is_near, filled(0, x), log(x) - log(a))
    by_series = near * sqrt(polynomial([2 / k for k in range(2, 16)], -near))
    direct = sqrt(2 * (far - logarithm))
    return select(is_near, by_series, select(far < 0, -direct, direct))


# Coefficients of a^-k in powers of eta.  Source: N. M. Temme, *The asymptotic expansion of the
# incomplete gamma functions* (1979).
_TEMME = ((-1 / 3, 1 / 12, -2 / 135, 1 / 864, 1 / 2835, -139 / 777600, 1 / 25515),
          (-1 / 540, -1 / 288, 1 / 378, -77 / 77760))


def _temme_expansion(a: Array, x: Array, upper: bool) -> Array:
    eta = _eta(a, x)
    total, clamped = filled(0, x), clamp(x.dtype.type(-1), eta, x.dtype.type(1))
    for row in reversed(_TEMME):
        total = total / a + polynomial(row, clamped)
    correction = exp(-.5 * a * eta * eta) * total / sqrt(2 * np.pi * a)
    sign = 1 if upper else -1
    return .5 * erfc(sign * eta * sqrt(a / 2)) + sign * correction


def _igamma(a: Array, x: Array, upper: bool) -> Array:
    is_large, large_a, large_x = _large(a, x)
    is_series, series_a, series_x, fraction_a, fraction_x = _series_and_fraction_args(a, x)
    lower = exp(_log_density(series_a, series_x)) / series_a * _series(series_a, series_x)
    higher = exp(_log_density(fraction_a, fraction_x)) * _fraction(fraction_a, fraction_x)[0]
    result = select(is_series, *((1 - lower, higher) if upper else (lower, 1 - higher)))
    result = select(is_large, _temme_expansion(large_a, large_x, upper), result)
    at_zero, at_infinity = (1., 0.) if upper else (0., 1.)
    result = select((x == 0) | (a == np.inf), filled(at_zero, x), result)
    result = select((x == np.inf) | (a == 0) & (x > 0), filled(at_infinity, x), result)
    no_limit = (a == 0) & (x == 0) | (a == np.inf) & (x == np.inf)
    return select((x < 0) | (a < 0) | no_limit | (x != x) | (a != a), filled(np.nan, x), result)


def _grad_of_large(a: Array, x: Array) -> Array:
    """The derivative of a gamma sample in a large shape, divided by the sample."""
    mu, one = (x - a) / a, filled(1, x)
    is_near, eta = abs(mu) < .1, _eta(a, x)
    eta_over_mu = select(mu == 0, one, eta / select(mu == 0, one, mu))
    leading = select(is_near, 1 - .5 * eta_over_mu * eta,
                     (log(x) - log(a)) / select(is_near, one, mu))
    return (leading + .5 * eta_over_mu * (1 / 3 - eta / 18) / a) / a


def _grad_a(a: Array, x: Array, of_sample: bool) -> Array:
    """The derivative in a of the lower function, or of a gamma sample at fixed random bits.

    The second is minus the first, divided by the density at x.
    """
    is_large, large_a, large_x = _large(a, x)
    is_series, series_a, series_x, fraction_a, fraction_x = _series_and_fraction_args(a, x)

    (total,), (slope,) = _jvp(lambda a: [_series(a, series_x)], (series_a,), (filled(1, a),))
    lower = -(total * (log(series_x) - digamma(series_a + 1)) + slope) / series_a
    fraction, slope = _fraction(fraction_a, fraction_x, with_grad=True)
    higher = fraction * (log(fraction_x) - digamma(fraction_a)) + slope
    ratio = select(is_series, lower, higher)  # to x^a exp(-x) / gamma(a)
    ratio = select(is_large, _grad_of_large(large_a, large_x), ratio)
    if of_sample:
        result = select(x == 0, x, ratio * x)
    else:
        result = -ratio * exp(_log_density(a, x))
        result = select((x == 0) | (x == np.inf), filled(0, x), result)
    return select((x < 0) | (a <= 0) | (x != x) | (a != a) | (a == np.inf) & (x > 0),
                  filled(np.nan, x), result)


# ── Primitives ───────────────────────────────────────────────────────────────────────────────

def _wide(formula: Callable[..., Array]) -> Callable[..., Array]:
    """A formula with its arguments broadcast to one shape, and 16-bit floats computed in 32."""
    def computed(*args: Array) -> Array:
        shape, dtype = np.broadcast_shapes(*(x.shape for x in args)), args[0].dtype
        wide = np.promote_types(dtype, np.float32)
        result = formula(*(converted(broadcast_to(x, shape), wide) for x in args))
        return converted(result, dtype, all_weak([x.aval for x in args]))
    return computed


def _primitive(name: str, count: int, formula: Callable[..., Array], jvp: Any, examples: Examples
           ) -> Primitive:
    """An elementwise primitive that is a program with loops; eager evaluation compiles it, too."""
    program = _wide(formula)
    return Primitive(
        name, impl=families.by_program(jit(program)), program=program, jvp=jvp,
        abstract_eval=elementwise_type(name, [FLOAT] * count), transpose=NOT_LINEAR,
        batch=batch_elementwise, may_produce_nan=True,
        examples=lambda: examples()[::3])  # each is compiled


def _of_two(name: str, meaning: str, shown: str, formula: Callable[..., Array], jvp: Any
            ) -> tuple[Primitive, Callable[[Any, Any], Array]]:
    """A primitive of a shape and a point, and its function."""
    p = _primitive(name, 2, formula, jvp, points((.5, 4.), (.3, 5.)))

    def function(a: Any, x: Any) -> Array:
        return p.bind(a, x)
    return p, families.documented(
        function, name, f"{meaning}\n\n    Args:\n      a: the shape, positive: an array of a "
        "floating dtype.\n      x: where, not negative: an array of the same dtype.",
        f"round(float({name}(2., 1.)), 4) -> {shown}", "TypeError: for other dtypes.")


@_wide
def _grad_x(a: Array, x: Array) -> Array:
    small = exp((a - 1) * log(x) - x - lgamma(a))
    return select(_large(a, x)[0], exp(_log_density(a, x)) / x, small)


igamma_grad_a_p, igamma_grad_a = _of_two(
    "igamma_grad_a", "The derivative of `igamma` in its first argument.", "-0.2762",
    lambda a, x: _grad_a(a, x, False), cannot("`igamma` has no second derivative by `a`"))
igamma_p, igamma = _of_two(
    "igamma", "The lower incomplete gamma function, divided by the whole one.", "0.2642",
    lambda a, x: _igamma(a, x, False), families.per_argument(
        lambda t, y, a, x: t * igamma_grad_a(a, x), lambda t, y, a, x: t * _grad_x(a, x)))
igammac_p, igammac = _of_two(
    "igammac", "The upper incomplete gamma function, divided by the whole one.", "0.7358",
    lambda a, x: _igamma(a, x, True), families.per_argument(
        lambda t, y, a, x: -t * igamma_grad_a(a, x), lambda t, y, a, x: -t * _grad_x(a, x)))


# Its derivative is that of its loops, in forward mode, so that it is no primitive.
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
    a, x = _broadcast_args("random_gamma_grad", a, x)
    return converted(_sample_grad(a, x), x.dtype)


_sample_grad = jit(_wide(functools.partial(_grad_a, of_sample=True)), inline=True)


# ── The incomplete beta function ─────────────────────────────────────────────────────────────

def _beta_fraction(a: Array, b: Array, x: Array) -> Array:
    """1 / (1 + d1 / (1 + d2 / …)) by Lentz's method, for x below (a + 1) / (a + b + 2).

    Source: DLMF, 8.17.22.
    """
    (eps, nonzero), one = _lentz_limits(x), filled(1, x)

    def step(state: tuple) -> tuple:
        m, c, d, h, error = state
        change = one
        for factor in (m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
                       -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))):
            d = 1 / nonzero(1 + factor * d)
            c = nonzero(1 + factor / c)
            change = change * (c * d)
        # converged elements stay, while others change: each step would round them once more
        h = select(error > eps, h * change, h)
        return m + 1, c, d, h, select(error > eps, abs(change - 1), error)

    first = 1 / nonzero(1 - (a + b) * x / (a + 1))
    return while_loop(lambda state: ((state[4] > eps) & (state[0] < 10_000)).any(), step,
                      (one, one, first, first, one))[3]


def _log_beta(a: Array, b: Array) -> Array:
    return lgamma(a) + lgamma(b) - lgamma(a + b)


# Bernoulli numbers, 2k (2k - 1) below.
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)


def beyond_stirling(z: Any) -> Any:
    """The remainder of Stirling's formula for log(gamma(z)), for large z.

    >>> from minijax.core import as_value
    >>> beyond_stirling(as_value(np.float32(10))).round(6)
    Array(0.008331, dtype=float32)
    """
    inverse = 1 / z
    return polynomial(_STIRLING, inverse * inverse) * inverse


def _beta_powers(a: Array, b: Array, x: Array) -> Array:
    """x^a (1 - x)^b / beta(a, b); where a and b are large, logarithms of what is near 1 are taken.
    """
    n, y = a + b, 1 - x
    are_large = (a >= 10) & (b >= 10)
    plain = exp(a * log(x) + b * log1p(-x) - _log_beta(a, b))
    exponent = a * log(x * (n / a)) + b * log(y * (n / b))
    exponent = exponent - (beyond_stirling(a) + beyond_stirling(b) - beyond_stirling(n))
    return select(are_large, exp(exponent) * sqrt(a / n * b / (2 * np.pi)), plain)


def _betainc(a: Array, b: Array, x: Array) -> Array:
    inside = (x > 0) & (x < 1) & (a > 0) & (b > 0) & (a < np.inf) & (b < np.inf)
    safe, half = functools.partial(select, inside), filled(.5, x)
    a0, b0, x0 = safe(a, half), safe(b, half), safe(x, half)
    is_swapped = x0 > (a0 + 1) / (a0 + b0 + 2)  # betainc(a, b, x) is 1 - betainc(b, a, 1 - x)
    p, q = select(is_swapped, b0, a0), select(is_swapped, a0, b0)
    result = _beta_powers(a0, b0, x0) / p * _beta_fraction(p, q, select(is_swapped, 1 - x0, x0))
    result = select(is_swapped, 1 - result, result)
    # in the limits the whole distribution is at 0, or at 1
    at_zero, at_one = (a == 0) | (b == np.inf), (b == 0) | (a == np.inf)
    limit = select(at_zero & (x > 0), filled(1, x), select(at_one & (x < 1), filled(0, x), x))
    is_invalid = ~((x >= 0) & (x <= 1) & (a >= 0) & (b >= 0)) | at_zero & at_one
    return safe(result, select(is_invalid, filled(np.nan, x), limit))


def _refused(t: Array, *args: Array) -> Array:
    raise ValueError("Betainc gradient with respect to a and b not supported.")


@_wide
def _beta_density(a: Array, b: Array, x: Array) -> Array:
    return exp((b - 1) * log1p(-x) + (a - 1) * log(x) - _log_beta(a, b))


regularized_incomplete_beta_p = _primitive(
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

def _broadcast_args(name: str, *args: Any) -> list[Array]:
    """The arguments, of one floating dtype, broadcast to one shape."""
    arrays = [core.as_value(x) for x in args]
    check_dtypes(name, [x.aval for x in arrays], [FLOAT] * len(arrays))
    shape = broadcast_shapes(name, [x.shape for x in arrays])
    return [broadcast_to(x, shape) for x in arrays]


@custom_jvp
@_wide
def _ruled_polygamma(m: Array, x: Array) -> Array:
    sign = select(m == 2 * floor(m / 2), filled(-1, m), filled(1, m))
    result = sign * exp(lgamma(m + 1)) * zeta(m + 1, x)
    result = select(m == 0, digamma(x), result)
    return select((m < 0) | (m != floor(m)), filled(np.nan, m), result)


@functools.partial(_ruled_polygamma.defjvp, symbolic_zeros=True)
def _polygamma_rule(primals: tuple, tangents: tuple) -> tuple:
    (m, x), (m_dot, x_dot) = primals, tangents
    if not isinstance(m_dot, SymbolicZero):
        raise ValueError("polygamma gradient with respect to m is not supported")
    return _ruled_polygamma(m, x), _ruled_polygamma(m + 1, x) * x_dot


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
    return _ruled_polygamma(*_broadcast_args("polygamma", m, x))


# Eager evaluation compiles primitives of one formula, too.
families.FormulaPrimitive.compiled = staticmethod(eager_strips.evaluated)
