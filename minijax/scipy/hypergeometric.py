"""Special functions by series and recurrences: hyp1f1, hyp2f1, bessel_jn, sph_harm_y.

Builds on `gamma`.  In JAX: `jax/_src/scipy/special.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import lax, numpy as jnp
from minijax.core import Array
from minijax.transforms.jit import jit
from minijax.transforms.derivatives import jvp
from minijax.numpy.arguments import (ArrayLike, as_array, promote_dtypes_inexact, public,
                                     static_index, static_int)
from minijax.scipy.arguments import promote_to_real
from minijax.scipy.gamma import gamma_ratio


def _series_sums(ratio: Callable[[Any], Any], start: Any, max_terms: int = 100_000) -> Any:
    """The sum of a series whose term 0 is 1, and the sum of k times term k.

    `ratio(k)` is term k + 1 divided by term k; `start` has the shape of the sums.
    """
    tolerance = float(jnp.finfo(start.dtype).eps) / 64

    def cond_fun(state: Any) -> Any:
        k, term, total, _ = state
        return (k < max_terms) & jnp.any(jnp.abs(term) > tolerance * jnp.abs(total))

    def step(state: Any) -> Any:
        k, term, total, weighted = state
        return k + 1, term * ratio(k), total + term, weighted + term * k
    zero = jnp.zeros_like(start)
    first = jnp.zeros((), start.dtype), jnp.ones_like(start), zero, zero
    return lax.while_loop(cond_fun, step, first)[2:]


def _derivative_by(function: Callable, position: int) -> Callable:
    """The derivative by one argument, in forward mode, as the loops have no static length."""
    def slope(t: Any, out: Any, *args: Any) -> Any:
        of_one = lambda x: function(*args[:position], x, *args[position + 1:])
        return t * jvp(of_one, (args[position],), (jnp.ones_like(args[position]),))[1]
    return slope


def _is_nonpositive_integer(x: Any) -> Any:
    """Whether ``(x)ₖ`` is 0 from some k on."""
    return (x <= 0) & (x == jnp.floor(x))


# ── Confluent ────────────────────────────────────────────────────────────────────────────────

def _hyp1f1(a: Any, b: Any, x: Any) -> Any:
    a, b, x = jnp.broadcast_arrays(a, b, x)
    a = jnp.where(x < 0, b - a, a)  # Kummer: all terms have one sign (DLMF 13.2.39)
    size = jnp.abs(x)
    is_far = (size > .9 * math.log(float(jnp.finfo(x.dtype).max))) & ~_is_nonpositive_integer(a)
    y = jnp.where(is_far, 1, size)
    near, _ = _series_sums(lambda k: (a + k) / (b + k) * y / (k + 1), y)
    w = jnp.where(is_far, 1 / size, 0)
    far, _ = _series_sums(lambda k: (b - a + k) * (1 - a + k) * w / (k + 1), w, 60)  # DLMF 13.7.1
    scale = gamma_ratio([b], [jnp.where(is_far, a, 1)]) * jnp.exp(
        (a - b) * jnp.log(jnp.where(is_far, size, 1)) + jnp.maximum(x, 0))
    value = jnp.where(is_far, scale * far, near * jnp.exp(jnp.minimum(x, 0)))
    return jnp.where(b == 0, jnp.inf, value)


@promote_to_real(_derivative_by(_hyp1f1, 0), _derivative_by(_hyp1f1, 1),
                 lambda t, out, a, b, x: t * (a / b * hyp1f1(a + 1, b + 1, x)))
def hyp1f1(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Kummer's function, the sum of ``(a)ₖ / (b)ₖ xᵏ / k!``.

    >>> round(float(hyp1f1(1., 2., 3.)), 4)
    6.3618
    """
    return jnp.where(a == 0, 1, _hyp1f1(a, b, x))


# ── Of Gauss ─────────────────────────────────────────────────────────────────────────────────

def _near_one(a: Any, b: Any, c: Any, s: Any, f: Any, slope: Any, to: Any) -> Any:
    """The function at ``1 - to``, from its value and its derivative at ``1 - s``.

    Its differential equation (DLMF 15.10.1) gives Taylor series around any point. As 1 is
    singular, each series is used for at most half the distance to it.
    """
    terms = 60

    def step(state: Any) -> Any:
        s, f, slope = state
        h = jnp.minimum(jnp.maximum(s - to, 0), s / 2)
        x, p = 1 - s, s * (1 - s)

        def term(k: Any, carry: Any) -> Any:
            last, this, total, weighted = carry
            k = jnp.asarray(k, s.dtype)
            after = ((k + a) * (k + b) * h * h * last - (k + 1) * h * this * (
                (2 * s - 1) * k + c - (a + b + 1) * x)) / (p * (k + 1) * (k + 2))
            return this, after, total + after, weighted + (k + 2) * after
        _, _, total, weighted = lax.fori_loop(0, terms, term, (f, h * slope, f + h * slope,
                                                               h * slope))
        return (jnp.where(h > 0, jnp.where(h < s / 2, to, s / 2), s), total,
                jnp.where(h > 0, weighted / jnp.where(h > 0, h, 1), slope))
    return lax.while_loop(lambda state: jnp.any(state[0] > to), step, (s, f, slope))[1]


def _hyp2f1(a: Any, b: Any, c: Any, x: Any) -> Any:
    a, b, c, x = jnp.broadcast_arrays(a, b, c, x)
    terminates = _is_nonpositive_integer(a) | _is_nonpositive_integer(b)
    s = 1 - x  # the distance from 1
    is_negative = (x < 0) & ~terminates
    scale = jnp.where(is_negative, jnp.where(is_negative, s, 1) ** -a, 1)  # Pfaff, DLMF 15.8.1
    b, s = jnp.where(is_negative, c - b, b), jnp.where(is_negative, 1 / s, s)
    d = c - a - b
    steep = (d < 0) & (s > 0) & ~terminates
    scale *= jnp.where(steep, s, 1) ** d  # Euler: otherwise the derivative is infinite at 1
    a, b = jnp.where(steep, c - a, a), jnp.where(steep, c - b, b)
    y = jnp.where(terminates, x, jnp.clip(jnp.where(is_negative, x / (x - 1), x), 0, .5))
    f, weighted = _series_sums(lambda k: (a + k) * (b + k) / (c + k) * y / (k + 1), y)
    is_inside = (s > 0) & (s < .5) & ~terminates
    one = jnp.ones_like(x)
    near_one = _near_one(a, b, c, jnp.where(is_inside, .5, one), f, weighted / jnp.where(
        is_inside, y, one), jnp.where(is_inside, s, one))
    value = scale * jnp.where(is_inside, near_one, f)
    at_one = jnp.where(d > 0, gamma_ratio([c, d], [c - a, c - b]), jnp.inf)
    value = jnp.where((s > 0) | terminates, value, jnp.where(s == 0, scale * at_one, jnp.inf))
    value = jnp.where(jnp.isnan(x), x, value)
    return jnp.where(_is_nonpositive_integer(c) & ~terminates, jnp.inf, value)


@promote_to_real(*(_derivative_by(_hyp2f1, position) for position in range(3)),
                 lambda t, out, a, b, c, x: t * (a * b / c * hyp2f1(a + 1, b + 1, c + 1, x)))
def hyp2f1(a: ArrayLike, b: ArrayLike, c: ArrayLike, x: ArrayLike) -> Array:
    """The function of Gauss, the sum of ``(a)ₖ (b)ₖ / (c)ₖ xᵏ / k!``, continued to all x below 1.

    >>> round(float(hyp2f1(1., 2., 3., .5)), 4)
    1.5452
    """
    return _hyp2f1(a, b, c, x)


# ── Recurrences ──────────────────────────────────────────────────────────────────────────────

def bessel_jn(z: Array, *, v: int, n_iter: int = 50) -> Array:
    """The Bessel functions of the first kind of the orders 0 to v.

    >>> bessel_jn(jnp.array(0.), v=2)
    Array([1., 0., 0.], dtype=float32)

    Args:
      z: real numbers, of shape (…).
      v: the largest order; the result is of shape (v + 1, …).
      n_iter: from which order on the recurrence goes down; larger than `v` and z.
    """
    [z] = promote_dtypes_inexact(jnp.asarray(z))
    if z.dtype.kind == "c":
        raise ValueError("complex input not supported.")
    v = static_index(v, "Argument v of bessel_jn.")
    return _bessel_jn(z, v, static_int(n_iter, "Argument n_iter of bessel_jn."))


@jit(static_argnums=(1, 2), inline=True)
def _bessel_jn(z: Array, v: int, n_iter: int) -> Array:
    orders = np.arange(n_iter, 0, -1)

    def down(above: Any, k: Any) -> Any:  # the ratio of orders k and k - 1; DLMF 10.33
        quotient = z / (2 * k - z * above)
        return quotient, quotient
    _, quotients = lax.scan(down, jnp.zeros_like(z), orders.astype(z.dtype))
    ratios = jnp.concatenate([jnp.ones_like(z)[None], jnp.cumprod(quotients[::-1], 0)])
    return ratios[:v + 1] / (2 * ratios[::2].sum(0) - 1)  # DLMF 10.12.4


def sph_harm_y(n: Array, m: Array, theta: Array, phi: Array, diff_n: int | None = None,
               n_max: int | None = None) -> Array:
    """Spherical harmonics of degree n and order m, complex, at arrays of angles (DLMF 14.30).

    >>> degree, angle = jnp.array([1]), jnp.array([0.])
    >>> sph_harm_y(degree, 0 * degree, angle, angle).real.round(4)
    Array([0.4886], dtype=float32)

    Args:
      n, m: integers, ``|m| <= n``.
      theta, phi: the angle from the pole, from 0 to pi, and that around it.
      diff_n: not supported.
      n_max: the largest n, to be given where n is traced; a larger n counts as this.
    """
    if diff_n is not None:
        raise NotImplementedError(
            "The 'diff_n' argument to jax.scipy.special.sph_harm_y is not supported.")
    n, m, phi = (as_array("sph_harm_y", x) for x in (n, m, phi))
    [theta] = promote_dtypes_inexact(jnp.atleast_1d(theta))
    n_max = static_int(jnp.max(n) if n_max is None else n_max,
                       "The `n_max` argument of `jnp.scipy.special.sph_harm` must be statically "
                       "specified to use `sph_harm` within JAX transformations.")
    order = jnp.abs(m).astype(theta.dtype)
    legendre = _legendre(jnp.minimum(n, n_max), order, jnp.cos(theta),
                         jnp.abs(jnp.sin(theta)), n_max)  # of the cosine alone, as in SciPy
    harmonic = lax.complex(*(legendre * wave(order * phi) for wave in (jnp.cos, jnp.sin)))
    return jnp.where(m < 0, jnp.where(m % 2 == 0, 1, -1) * jnp.conj(harmonic), harmonic)


def lpmn_values(m: int, n: int, z: Array, is_normalized: bool) -> Array:
    """Legendre functions of all orders and degrees up to m = n, at numbers between -1 and 1.

    >>> lpmn_values(1, 1, jnp.array([0.]), False)[..., 0].round(3)
    Array([[ 1.,  0.],
           [ 0., -1.]], dtype=float32)

    Args:
      m, n: the highest order and degree.
      z: the numbers, of one axis.
      is_normalized: whether with the factor of the spherical harmonics.

    Returns:
      An array of the axes order, degree, number.
    """
    z = as_array("lpmn_values", z)
    if z.dtype not in (np.float32, np.float64):
        raise TypeError(f"z.dtype={z.dtype} is not supported, see docstring for supported types.")
    if z.ndim != 1:
        raise ValueError("z must be a 1D array.")
    m, n = (static_int(x, f"Argument {name} of lpmn.") for x, name in ((m, "m"), (n, "n")))
    if m != n:
        raise NotImplementedError("Computations for m!=n are not yet supported.")
    order, degree = np.ogrid[:n + 1, :n + 1]
    values = _legendre(degree[..., None].astype(z.dtype), order[..., None].astype(z.dtype), z,
                       jnp.sqrt(1 - z * z), n)
    factors = [[0.] * i + [1. if is_normalized else math.sqrt(
        4 * math.pi / (2 * j + 1) * math.perm(i + j, 2 * i)) for j in range(i, n + 1)]
        for i in range(n + 1)]
    scaled = values * np.array(factors, z.dtype)[..., None]
    return jnp.where((order <= degree)[..., None], scaled, 0)


@jit(static_argnums=4, inline=True)
def _legendre(n: Any, m: Any, cosine: Any, sine: Any, n_max: int) -> Any:
    """Legendre functions of a cosine, normalised as for spherical harmonics; DLMF 14.10.3."""
    def upwards(k: Any, state: Any) -> Any:
        below, this = state
        k = jnp.asarray(k + 1, cosine.dtype)
        on_diagonal = -jnp.sqrt((2 * k + 1) / (2 * k)) * sine * this
        gap = jnp.where(k > m, k * k - m * m, 1)
        after = jnp.sqrt((4 * k * k - 1) / gap) * (cosine * this - below * jnp.sqrt(
            jnp.maximum((k - 1) ** 2 - m * m, 0) / (4 * (k - 1) ** 2 - 1)))
        new = jnp.where(k <= m, on_diagonal, after)
        return jnp.where(k <= n, jnp.where(k <= m, 0, this), below), jnp.where(k <= n, new, this)
    first = jnp.full(jnp.broadcast_shapes(n.shape, m.shape, cosine.shape),
                     math.sqrt(1 / (4 * math.pi)), cosine.dtype)
    return lax.fori_loop(0, n_max, upwards, (jnp.zeros_like(first), first))[1]


public(globals())
