"""The incomplete gamma functions, their derivatives, and that of a gamma number in its shape.

Stands on `while_loop` and `custom_jvp`: each is a series or a continued fraction, summed until
nothing changes.  Chapter 16, *Random numbers*.
In JAX: `jax/_src/lax/special.py`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import core, dtypes
from minijax.core import Array
from minijax.derivatives import jvp
from minijax.higher_order.control_flow import while_loop
from minijax.higher_order.custom_derivatives import custom_jvp
from minijax.primitives import algebra, analytic, choice, emitted, gamma
from minijax.primitives.convert import converted
from minijax.primitives.rounding import abs
from minijax.primitives.shape import broadcast_shapes
from minijax.primitives.slots import FLOAT, check_dtypes


def _series(a: Array, x: Array) -> Array:
    """1 + x/(a+1) + x²/((a+1)(a+2)) + …, for x below a + 1."""
    def more(state: tuple) -> tuple:
        n, term, total = state
        term = algebra.mul(term, algebra.div(x, algebra.add(a, n)))
        return n + 1, term, algebra.add(total, term)

    tiny = emitted.filled(dtypes.finfo(x.dtype).eps / 32, x)
    one = emitted.filled(1, x)
    return while_loop(lambda state: (state[1] > algebra.mul(tiny, state[2])).any(), more,
                      (one, one, one))[2]


def _fraction(a: Array, x: Array, sloped: bool = False) -> tuple[Array, Array]:
    """1/(x+1-a- 1(1-a)/(x+3-a- 2(2-a)/(…))), for x above a + 1, by Lentz's method; and, if asked
    for, its derivative in a, which goes on changing where a is whole and the fraction ends.
    """
    least = emitted.filled(dtypes.finfo(x.dtype).tiny * 1e8, x)
    eps, one, zero = emitted.filled(dtypes.finfo(x.dtype).eps / 4, x), *(
        emitted.filled(k, x) for k in (1, 0))

    def kept_from_zero(y: Any) -> Any:
        return choice.select(abs(y) < least, least, y)

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
        n, now, slopes, _ = state
        if not sloped:
            after, moves = turn(n, a, now), slopes
        else:
            after, moves = jvp(lambda a, *now: turn(n, a, now), (a, *now), (one, *slopes))
        change = sum(abs(new[3] - old[3]) / kept_from_zero(abs(new[3]))
                     for old, new in ((now, after), (slopes, moves)))
        return n + 1, after, moves, change

    start, slopes = (jvp(begin, (a,), (one,)) if sloped else (begin(a), (zero,) * 4))
    _, (*_, h), (*_, slope), _ = while_loop(
        lambda state: ((state[3] > eps) & (state[0] < 10_000)).any(), more,
        (one, start, slopes, one))
    return h, slope


def _parts(a: Array, x: Array) -> tuple[Array, ...]:
    """Where the series serves, and the arguments of either, harmless where the other serves."""
    is_low, one = (x <= 1) | (x <= a), emitted.filled(1, x)
    low = choice.select(is_low, x, one), choice.select(is_low, a, one)
    high = choice.select(is_low, one * 3, x), choice.select(is_low, one, a)
    return is_low, *low[::-1], *high[::-1]


def _log_density(a: Array, x: Array) -> Array:
    """Of x^a exp(-x) / gamma(a) the logarithm."""
    return a * analytic.log(x) - x - gamma.lgamma(a)


def _lower(a: Array, x: Array, upper: bool) -> Array:
    is_low, low_a, low_x, high_a, high_x = _parts(a, x)
    below = analytic.exp(_log_density(low_a, low_x)) / low_a * _series(low_a, low_x)
    above = analytic.exp(_log_density(high_a, high_x)) * _fraction(high_a, high_x)[0]
    found = (choice.select(is_low, 1 - below, above) if upper
             else choice.select(is_low, below, 1 - above))
    at_zero, at_end = (1., 0.) if upper else (0., 1.)
    found = choice.select(x == 0, emitted.filled(at_zero, x), found)
    found = choice.select((x == np.inf) | (a == 0) & (x > 0), emitted.filled(at_end, x), found)
    return choice.select((x < 0) | (a < 0) | (a == 0) & (x == 0) | (x != x) | (a != a),
                         emitted.filled(np.nan, x), found)


def _slope_in_a(a: Array, x: Array, of_number: bool) -> Array:
    """Of the lower function, or (with the sign changed, by the density) of a gamma number."""
    is_low, low_a, low_x, high_a, high_x = _parts(a, x)

    total, slope = jvp(lambda a: _series(a, low_x), (low_a,), (emitted.filled(1, a),))
    below = -(total * (analytic.log(low_x) - gamma.digamma(low_a + 1)) + slope) / low_a
    fraction, slope = _fraction(high_a, high_x, sloped=True)
    above = fraction * (analytic.log(high_x) - gamma.digamma(high_a)) + slope
    by_density = choice.select(is_low, below, above)  # over x^a exp(-x) / gamma(a)
    if of_number:
        found = choice.select(x == 0, x, by_density * x)
    else:
        found = -by_density * analytic.exp(_log_density(a, x))
        found = choice.select((x == 0) | (x == np.inf), emitted.filled(0, x), found)
    return choice.select((x < 0) | (a <= 0) | (x != x) | (a != a),
                         emitted.filled(np.nan, x), found)


def _of_two(name: str, formula: Callable[[Array, Array], Array], meaning: str, shown: str,
            slopes: Callable[[Array, Array], tuple] | None = None, keeps_weak: bool = True
            ) -> Callable[[Any, Any], Array]:
    """A function of a shape and a place: checked, in one shape, 16-bit floats in 32 bits."""
    def computed(a: Array, x: Array) -> Array:
        wide = np.promote_types(a.dtype, np.float32)
        return converted(formula(converted(a, wide), converted(x, wide)), a.dtype)

    ruled = custom_jvp(computed)

    @ruled.defjvp
    def rule(primals: tuple, tangents: tuple) -> tuple:
        if slopes is None:
            raise NotImplementedError(f"Differentiation rule for '{name}' not implemented")
        of_a, of_x = slopes(*primals)
        return ruled(*primals), of_a * tangents[0] + of_x * tangents[1]

    def function(a: Any, x: Any) -> Array:
        a, x = core.as_value(a), core.as_value(x)
        check_dtypes(name, [a.aval, x.aval], [FLOAT, FLOAT])
        weak = keeps_weak and a.weak_type and x.weak_type
        shape = broadcast_shapes(a.shape, x.shape)
        a, x = (converted(emitted.stretched(v, shape) if v.ndim else emitted.spread(v, (), shape),
                          v.dtype) for v in (a, x))
        return converted(ruled(a, x), a.dtype, weak)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{meaning}

    Args:
      a: the shape, positive: an array of a floating dtype.
      x: where, not negative: an array of the same dtype.

    >>> round(float({name}(2., 1.)), 4)
    {shown}

    Raises:
      TypeError: for other dtypes.
    """
    return function


def _by_x(a: Array, x: Array) -> Array:
    return analytic.exp(_log_density(a, x)) / x


igamma_grad_a = _of_two(
    "igamma_grad_a", lambda a, x: _slope_in_a(a, x, False),
    "The derivative of `igamma` in its first argument.", "-0.2762")
igamma = _of_two(
    "igamma", lambda a, x: _lower(a, x, False),
    "The lower incomplete gamma function, divided by the whole one.", "0.2642",
    lambda a, x: (igamma_grad_a(a, x), _by_x(a, x)))
igammac = _of_two(
    "igammac", lambda a, x: _lower(a, x, True),
    "The upper incomplete gamma function, divided by the whole one.", "0.7358",
    lambda a, x: (-igamma_grad_a(a, x), -_by_x(a, x)))
random_gamma_grad = _of_two(
    "random_gamma_grad", lambda a, x: _slope_in_a(a, x, True),
    "How a gamma number x moves with the shape a of its distribution.", "0.7508",
    keeps_weak=False)
