"""Modified Bessel functions of the first kind, of orders 0 and 1, divided by ``exp(|x|)``.

Builds on `families`.  Chapter 25, *exp from scratch*, shows how such functions are computed.
In JAX: `jax/_src/lax/special.py`.
"""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.core import Array
from minijax.primitives import ad_util, algebra, comparison, examples, families, rounding
from minijax.primitives.infix import infix, on_numbers, select
from minijax.primitives.slots import elementary, wide

sqrt = on_numbers(elementary("sqrt"))

# Chebyshev coefficients, computed from SciPy's functions: up to 8 in x / 4 - 1, there i1 divided by
# x; beyond, in 16 / x - 1, both times sqrt(x).
_I0_SMALL = [0.3383976372047381, -0.30468267234319824, 0.17162090152220863, -0.09490109704804751,
    0.04930528423967051, -0.023737414805899328, 0.010546460394594795, -0.004324309995050398,
    0.0016394756169410604, -0.0005763755745383545, 0.00018850288509549636, -5.754195010052932e-05,
    1.6448448070325935e-05, -4.416738358136306e-06, 1.1173875386692272e-06, -2.670793850422017e-07,
    6.046994978378599e-08, -1.300024975051006e-08, 2.659823334783055e-09, -5.18979298342191e-10,
    9.675780593707418e-11, -1.726806392787184e-11, 2.9547658871612295e-12, -4.85418377196076e-13,
    7.642330761067261e-14, -1.1500308631651354e-14, 1.5266395975632782e-15, -1.7666012570503997e-16]
_I0_LARGE = [0.4022452055070544, 0.0033691164782556956, 6.88975834690795e-05,
    2.8913705208349286e-06, 2.048918588291202e-07, 2.2666689907740395e-08, 3.396231929431582e-09,
    4.94060253613887e-10, 1.1888934281500951e-11, -3.149917048155586e-11, -1.3216220299220275e-11,
    -1.794169751039792e-12, 7.17541252752367e-13, 3.8528028504195523e-13, 1.4876988529977098e-14,
    -4.152028515241673e-14, -1.039703302875818e-14, 3.7922340165205576e-15, 9.88522083681834e-16,
    -3.484866716184519e-16]
_I1_SMALL = [0.1262935932218168, -0.17641651835783403, 0.10264365868984701, -0.052945981208094926,
    0.02472644903062645, -0.010564084894626131, 0.004156422944312806, -0.0015135724506311684,
    0.0005122859561684703, -0.00016176081582579372, 4.7815651075375676e-05,
    -1.3273163655905403e-05, 3.470251307980294e-06, -8.568720262998822e-07, 2.003294751654704e-07,
    -4.445059110516515e-08, 9.381537183825453e-09, -1.8872495649850683e-09, 3.625588469239252e-10,
    -6.663473849995187e-11, 1.1736034031873495e-11, -1.98384533728812e-12, 3.2224148551413327e-13,
    -5.027876924499232e-14, 7.450310778399707e-15, -9.838596878331319e-16, 5.279371908152163e-17]
_I1_LARGE = [0.38928811750914, -0.009761097491361469, -0.00011058893876270949,
    -3.882564808897503e-06, -2.512236238956162e-07, -2.63146884611816e-08, -3.835380474120703e-09,
    -5.589743359537793e-10, -1.8975177396430144e-11, 3.252604276772023e-11,
    1.4125438473221329e-11, 2.035620643241558e-12, -7.203332580624428e-13,
    -4.0833591652000434e-13, -2.152187892921507e-14, 4.273330660524792e-14, 9.589037383058759e-15,
    -3.79840192221292e-15, -2.650574148347824e-15, 3.5979449872111557e-16]


def _clenshaw(t: Any, coefficients: Sequence[float]) -> Any:
    """A Chebyshev series in t."""
    one, two = t.const(0.), t.const(0.)
    for coefficient in reversed(coefficients[1:]):
        one, two = t * 2. * one - two + coefficient, one
    return t * one - two + coefficients[0]


def _scaled(x: Any, *, order: int) -> Any:
    small, large = ((_I0_SMALL, _I0_LARGE), (_I1_SMALL, _I1_LARGE))[order]
    size = abs(x)
    is_small = size <= 8.
    near = _clenshaw(select(is_small, size, 8.) / 4. - 1., small)
    far = select(is_small, 8., size)
    value = select(is_small, near * x if order else near,
                   _clenshaw(16. / far - 1., large) / sqrt(far))
    return select(is_small | (x > 0.), value, -value) if order else value


def _i0e_tangent(t: Array, y: Array, x: Array) -> Array:
    return algebra.mul(t, algebra.sub(bessel_i1e(x), algebra.mul(rounding.sign(x), y)))


def _i1e_tangent(t: Array, y: Array, x: Array) -> Array:
    """The formula divides by x; at zero the derivative is 1/2."""
    eps = ad_util.filled(np.finfo(np.float32).eps, x)
    is_far = comparison.gt(rounding.abs(x), eps)
    safe = comparison.select(is_far, x, eps)
    whole = algebra.add(rounding.sign(safe), algebra.integer_pow(safe, -1))
    derivative = algebra.sub(bessel_i0e(safe), algebra.mul(y, whole))
    return algebra.mul(t, comparison.select(is_far, derivative, ad_util.filled(.5, x)))


(bessel_i0e_p, bessel_i0e), (bessel_i1e_p, bessel_i1e) = (
    families.by_long_formula(
        f"bessel_i{order}e",
        f"The modified Bessel function of order {order}, divided by ``exp(|x|)``.",
        derivative=derivative, examples=examples.points((-3., 12.)),
        element=wide(infix(functools.partial(_scaled, order=order))), shows=f"0.0 -> {1 - order}.")
    for order, derivative in enumerate((_i0e_tangent, _i1e_tangent)))
