"""Special functions that are integrals: wofz, erfcx, dawsn, fresnel, expi, expn, sici, spence, ….

All use one series, one continued fraction and one rational function, without tables.
Builds on `numpy`.  In JAX: `jax/_src/scipy/special.py`, with tables from Cephes.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import dtypes, lax, numpy as jnp
from minijax.core import Array
from minijax.lax.special import polynomial
from minijax.custom.custom_jvp_vjp import custom_jvp
from minijax.transforms.jit import jit
from minijax.numpy.arguments import ArrayLike, Inexact, convert, promote_args_real, public
from minijax.scipy.arguments import promote_to_real, strong_float
from minijax.scipy.gamma import bernoulli_numbers


def _series(above: Sequence[float], below: Sequence[float], x: Any, terms: int) -> Any:
    """The hypergeometric series, the sum of ``(a)ₖ … / ((b)ₖ … k!) xᵏ`` (DLMF 16.2.1)."""
    k = np.arange(terms - 1.)
    ratios: Any = np.prod([a + k for a in above], 0) / np.prod([k + 1, *(b + k for b in below)], 0)
    return functools.reduce(lambda rest, ratio: 1 + rest * (x * ratio), ratios[::-1].tolist(),
                            jnp.ones_like(x))


# ── The Faddeeva function and its relatives ──────────────────────────────────────────────────

# J. A. C. Weideman, Computation of the complex error function, SIAM J. Numer. Anal. 31 (1994):
# a Fourier series in the angle of (scale + iz) / (scale - iz); to 2e-15 with 40 terms.
_TERMS = 40
_SCALE = math.sqrt(_TERMS / math.sqrt(2))
_ANGLES = np.arange(1 - 2 * _TERMS, 2 * _TERMS) * (math.pi / (2 * _TERMS))
_SQUARES = np.square(_SCALE * np.tan(_ANGLES / 2))
_FOURIER = (np.cos(np.outer(np.arange(1, _TERMS + 1), _ANGLES))
            @ (np.exp(-_SQUARES) * (np.square(_SCALE) + _SQUARES)) / (4 * _TERMS)).tolist()


def _faddeeva_upper(iz: Any) -> Any:
    """The Faddeeva function of z in the upper half plane, as a function of ``iz``."""
    below = _SCALE - iz
    series = polynomial(_FOURIER, 2 * _SCALE / below - 1)
    return (2 * series / below + 1 / math.sqrt(math.pi)) / below


@custom_jvp
@jit
def _wofz(z: Any) -> Any:
    is_above = lax.imag(z) >= 0
    above = jnp.where(is_above, z, -z)
    w = _faddeeva_upper(lax.complex(-lax.imag(above), lax.real(above)))
    return jnp.where(is_above, w, 2 * jnp.exp(-z * z) - w)


_wofz.defjvps(lambda t, w, z: t * (2j / math.sqrt(math.pi) - 2 * z * w))


def wofz(z: Inexact) -> Array:
    """The Faddeeva function ``exp(-z²) erfc(-iz)``, complex.

    >>> print(f"{complex(wofz(1.)):.4f}")
    0.3679+0.6072j
    """
    return _wofz(lax.convert_element_type(z, jnp.promote_types(z.dtype, jnp.complex64)))


@promote_to_real(lambda t, out, x: t * (2 * (x * out) - 2 / math.sqrt(math.pi)))
def _erfcx(x: Any) -> Any:
    w = _faddeeva_upper(-jnp.abs(x))
    return jnp.where(x < 0, 2 * jnp.exp(jnp.square(x)) - w, w)


def erfcx(x: Inexact) -> Array:
    """``exp(x²) erfc(x)``, which does not underflow for large x.

    >>> round(float(erfcx(30.)), 4)
    0.0188
    """
    return wofz(1j * x) if x.dtype.kind == "c" else _erfcx(x)


@promote_to_real(lambda t, out, x: t * (1 - 2 * (x * out)))
def dawsn(x: ArrayLike) -> Array:
    """Dawson's integral: ``exp(-x²)`` times the integral of ``exp(t²)`` from 0 to x.

    >>> round(float(dawsn(1.)), 4)
    0.5381
    """
    outside = lax.imag(_faddeeva_upper(lax.complex(jnp.zeros_like(x), x)))
    near = x * _series([1], [1.5], -jnp.square(jnp.clip(x, -1, 1)), 22)
    return jnp.where(jnp.abs(x) < 1, near, jnp.where(
        jnp.isinf(x), 1 / x, outside * (math.sqrt(math.pi) / 2)))


def _fresnel_waves(x: Any) -> tuple[Any, Any]:
    """Sine and cosine of ``pi x² / 2``, with the angle reduced first: x is 2n + rest."""
    rest = x - 2 * jnp.round(x / 2)
    angle = math.pi * jnp.fmod(rest * (x - rest / 2), 2)
    return jnp.sin(angle), jnp.cos(angle)


@promote_to_real(lambda t, out, x: tuple(t * wave for wave in _fresnel_waves(x)))
def fresnel(x: ArrayLike) -> tuple[Array, Array]:
    """The integrals of ``sin(pi t² / 2)`` and of ``cos(pi t² / 2)`` from 0 to x (DLMF 7.5, 7.6).

    >>> [round(float(each), 4) for each in fresnel(1.)]
    [0.4383, 0.7799]
    """
    near, far = jnp.clip(x, -1.5, 1.5), math.sqrt(math.pi) / 2 * jnp.abs(x)
    fourth = -jnp.square(math.pi / 4 * near * near)
    w, (sine, cosine) = _faddeeva_upper(lax.complex(-far, far)), _fresnel_waves(x)
    f, g = (lax.real(w) + lax.imag(w)) / 2, (lax.real(w) - lax.imag(w)) / 2
    s = math.pi / 6 * near ** 3 * _series([3 / 4], [3 / 2, 7 / 4], fourth, 14)
    c = near * _series([1 / 4], [1 / 2, 5 / 4], fourth, 14)
    ends = [jnp.where(jnp.isinf(x), .5, .5 - each) * jnp.sign(x)
            for each in (f * cosine + g * sine, g * cosine - f * sine)]
    return (jnp.where(jnp.abs(x) < 1.5, s, ends[0]), jnp.where(jnp.abs(x) < 1.5, c, ends[1]))


# ── Exponential integrals ────────────────────────────────────────────────────────────────────

def _scaled_expn(n: Any, z: Any, steps: int = 90) -> Any:
    """``exp(z) Eₙ(z)``: ``1/(z + n - n/(z + n + 2 - 2 (n + 1)/(z + n + 4 - …)))``, DLMF 8.19.17."""
    def outwards(i: Any, below: Any) -> Any:
        k = steps - i
        return z + (n + 2 * (k - 1)) - k * (n + (k - 1)) / below
    return 1 / lax.fori_loop(0, steps, outwards, z + (n + 2. * steps))


@promote_to_real(lambda t, out, x: t * (jnp.exp(x) / x))
def expi(x: ArrayLike) -> Array:
    """The exponential integral Ei: the integral of ``exp(t) / t`` up to x (DLMF 6.6, 6.9, 6.12).

    >>> round(float(expi(1.)), 4)
    1.8951
    """
    near = jnp.clip(x, -1, 40)
    middle = np.euler_gamma + jnp.log(jnp.abs(near)) + near * _series([1, 1], [2, 2], near, 140)
    above = jnp.exp(x) / x * _series([1, 1], [], 1 / jnp.maximum(x, 40), 40)
    below = -jnp.exp(x) * _scaled_expn(1, jnp.maximum(-x, 1))
    return jnp.where(x < -1, below, jnp.where(x < 40, middle, jnp.where(x < jnp.inf, above, x)))


def exp1(x: ArrayLike) -> Array:
    """The exponential integral E₁: the integral of ``exp(-t) / t`` from x on.

    >>> round(float(exp1(1.)), 4)
    0.2194
    """
    return expn(1, x)


@promote_to_real(None, lambda t, out, n, x: -t * expn(n - 1, x))
def expn(n: ArrayLike, x: ArrayLike) -> Array:
    """The exponential integral of whole order n: the integral of ``exp(-x t) / tⁿ`` from 1 on.

    >>> round(float(expn(2, 1.)), 4)
    0.1485

    Args:
      n: the order; as in JAX no derivative is taken by it.
    """
    n, x = jnp.broadcast_arrays(n, x)
    near, total, term = jnp.clip(x, 0, 1), jnp.zeros_like(x), jnp.ones_like(x)
    for k in range(20):  # DLMF 8.19.8, where the term of k = n - 1 has a logarithm
        total += term / jnp.where(n == k + 1, jnp.inf, n - (k + 1))
        term *= -near / (k + 1)
    power = jnp.exp(jnp.where(n == 1, 0, (n - 1) * jnp.log(near)) - lax.lgamma(n))
    at_pole = power * (lax.digamma(n) - jnp.log(near)) * jnp.where(n % 2 == 1, 1, -1)
    near = jnp.where(n == jnp.floor(n), total + at_pole, jnp.nan)
    far = jnp.exp(-x) * _scaled_expn(n, jnp.where(x > 0, x, 1))
    value = jnp.where((x > 1) | (n < 1), far, near)
    at_zero = jnp.where(n > 1, 1 / (n - 1), jnp.inf)
    return jnp.where(x > 0, value, jnp.where(x == 0, at_zero, jnp.nan))


def sici(x: Inexact) -> tuple[Array, Array]:
    """The integrals of ``sin(t) / t`` from 0 to x, and of ``-cos(t) / t`` from x on (DLMF 6.6).

    >>> [round(float(each), 4) for each in sici(1.)]
    [0.9461, 0.3374]
    """
    if x.dtype.kind == "c":
        raise ValueError(f"Argument `x` to sici must be real-valued. Got dtype {x.dtype}.")
    return _sici(x)


@promote_to_real(lambda t, out, x: (t * jnp.sinc(x / math.pi), t * (jnp.cos(x) / x)))
def _sici(x: ArrayLike) -> tuple[Array, Array]:
    size = jnp.abs(x)
    near = jnp.minimum(size, 4)
    square = jnp.square(near) / -4
    sine = near * _series([1 / 2], [3 / 2, 3 / 2], square, 20)
    cosine = np.euler_gamma + jnp.log(near) + square * _series([1, 1], [2, 2, 3 / 2], square, 20)
    far = jnp.clip(size, 4, 1e18)
    tail = _scaled_expn(1, lax.complex(jnp.zeros_like(far), far))
    a, b = lax.real(tail), lax.imag(tail)
    is_far, is_end = size > 4, jnp.isinf(x)
    s = jnp.where(is_far, math.pi / 2 + jnp.where(
        is_end, 0, b * jnp.cos(far) - a * jnp.sin(far)), sine)
    c = jnp.where(is_far, -a * jnp.cos(far) - b * jnp.sin(far), cosine)
    return jnp.sign(x) * s, jnp.where(is_end, jnp.where(x > 0, 0, jnp.nan), c)


# ── The dilogarithm and Owen's function ──────────────────────────────────────────────────────

_DEBYE = [float(b / math.factorial(2 * k + 1)) for k, b in enumerate(bernoulli_numbers(24)[::2])]


def spence(x: Array) -> Array:
    """The dilogarithm of 1 - x: the integral of ``log(t) / (1 - t)`` from 1 to x.

    >>> round(float(spence(2.)), 4)
    -0.8225
    """
    return _spence(strong_float(x))


@custom_jvp
@jit
def _spence(x: Any) -> Any:
    inner = jnp.where(x > 2, 1 / x, x)  # DLMF 25.12.4
    reflected = jnp.where(inner < .5, 1 - inner, inner)  # 25.12.6
    u = -jnp.log(reflected)  # a series in the logarithm: Abramowitz and Stegun, 27.7.7
    value = u * (polynomial(_DEBYE, jnp.square(u)) - u / 4)
    value = jnp.where(inner < .5, math.pi ** 2 / 6 + u * jnp.log(inner) - value, value)
    value = jnp.where(x > 2, jnp.square(jnp.log(x)) / -2 - value, value)
    return jnp.where(x == 0, math.pi ** 2 / 6, value)


_spence.defjvps(lambda t, out, x: t * jnp.where(x == 1, -1, jnp.log(x) / jnp.where(
    x == 1, 1, 1 - x)))

_NODES, _WEIGHTS = ((half + shift) / 2 for half, shift in zip(
    np.polynomial.legendre.leggauss(24), (1, 0), strict=True))
_by_h = lambda t, out, h, a: -t * (jnp.exp(h * h / -2) * lax.erf(a * h / math.sqrt(2))
                                   / math.sqrt(8 * math.pi))
_by_a = lambda t, out, h, a: t * (jnp.exp((a * a + 1) * h * h / -2) / (2 * math.pi * (a * a + 1)))


@promote_to_real(_by_h, _by_a)
def _owens_t(h: ArrayLike, a: ArrayLike) -> Array:
    h, slope = jnp.broadcast_arrays(jnp.abs(h), jnp.abs(a))
    is_steep = slope > 1  # where the axes are exchanged: Owen 1956, (2.3)
    ah = jnp.where(h == 0, 0, slope * h)
    low, height = jnp.where(is_steep, 1 / slope, slope), jnp.where(is_steep, ah, h)
    squares = 1 + jnp.square(low[..., None] * _NODES)
    under = jnp.exp(jnp.square(height)[..., None] * squares / -2) / squares
    integral = low * jnp.sum(under * _WEIGHTS, -1) / (2 * math.pi)
    p, q = lax.erfc(h / math.sqrt(2)), lax.erfc(ah / math.sqrt(2))
    return jnp.sign(a) * jnp.where(is_steep, (p + q - p * q) / 4 - integral, integral)


def owens_t(h: ArrayLike, a: ArrayLike) -> Array:
    """Owen's function: the integral of ``exp(-h² (1 + t²) / 2) / (1 + t²)`` from 0 to a, by 2 pi.

    Of two independent normal numbers it is the probability of ``x > h and 0 < y < a x``.

    >>> round(float(owens_t(1., .5)), 4)
    0.0431
    """
    h, a = promote_args_real("owens_t", h, a)
    wide = np.promote_types(h.dtype, dtypes.default_float_dtype())  # of JAX's sum and result
    return _owens_t(convert(h, wide), convert(a, wide))


public(globals())
