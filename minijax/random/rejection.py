"""Rejection sampling: gamma, Poisson, binomial and multinomial distributions.

Builds on `samplers`, `while_loop`.  Chapter 16, *Random numbers*.
In JAX: `jax/_src/random/core.py`.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import core, dtypes, lax
from minijax.core import Array
from minijax.custom.custom_jvp_vjp import custom_jvp
from minijax.primitives.convert import converted
from minijax.primitives.ad_util import filled
from minijax.primitives.keys import random_unwrap_p, random_wrap_p
from minijax.primitives.slots import NOT_LINEAR
from minijax.random.keys import check_key, clone, split
from minijax.random.samplers import (Shape, _normal, _uniform, broadcast_to, check_shape, checked,
                                     compiled, supported)
from minijax.transforms.api import vmap
from minijax.transforms.derived import derived

# ── Gamma ────────────────────────────────────────────────────────────────────────────────────

def _marsaglia_tsang(key: Array, d: Array, c: Array) -> Array:
    """`v` such that `d v` has a gamma distribution: Marsaglia's and Tsang's method.

    Source: G. Marsaglia, W. W. Tsang, *A simple method for generating gamma variables* (2000).
    """
    number = functools.partial(filled, x=d)

    def is_rejected(state: tuple) -> Array:
        _, square, v, u = state
        return (u >= 1 - .0331 * (square * square)) & (
            lax.log(u) >= .5 * square + d * (1 - v + lax.log(v)))

    def draw(state: tuple) -> tuple:
        key, normal_key, uniform_key = split(state[0], 3)

        def draw_normal(inner: tuple) -> tuple:
            key, sub = split(inner[0])
            x = _normal(sub, (), d.dtype)
            return key, x, 1 + x * c

        _, x, v = lax.while_loop(lambda inner: inner[2] <= 0, draw_normal,
                                 (normal_key, number(0), number(-1)))
        return key, x * x, v * v * v, _uniform(uniform_key, (), d.dtype, 0., 1.)

    return lax.while_loop(is_rejected, draw, (key, number(0), number(1), number(2)))[2]


def _gamma_one(key: Array, a: Array, log_space: bool) -> Array:
    """A gamma number; for a shape below 1 that of shape + 1, times a power of a uniform number."""
    is_large = a >= 1
    d = lax.select(is_large, a, a + 1) - a.dtype.type(1 / 3)
    key, sub = split(key)
    v = _marsaglia_tsang(key, d, a.dtype.type(1 / 3) / lax.sqrt(d))
    u = 1 - _uniform(sub, (), a.dtype, 0., 1.)
    if log_space:
        boost = lax.select(is_large, filled(0, a), lax.log(u) / a)
        return lax.log(d) + lax.log(v) + boost
    return d * v * lax.select(is_large, filled(1, a), lax.pow(u, 1 / a))


@compiled("shape", "dtype", "log_space")
def _gamma(key: Array, a: Any, shape: Shape, dtype: np.dtype, log_space: bool = True) -> Array:
    a = broadcast_to(converted(a, dtype), shape)
    return random_gamma_p.bind(key, a, log_space=log_space) if a.size else a


def _of_words(words: Array, a: Array, *, log_space: bool, impl: dtypes.KeyType) -> Array:
    """Gamma numbers from the words of one key, or of one for each of the first axes of `a`."""
    if words.ndim > len(impl.shape):
        return vmap(functools.partial(_of_words, log_space=log_space, impl=impl))(words, a)
    keys = split(random_wrap_p.bind(words, impl=impl), a.size)
    return _gammas(lax.reshape(a, (a.size,)), keys, log_space).reshape(a.shape)


def _of_keys(key: Array, a: Array, **params: Any) -> Array:
    return _of_words(random_unwrap_p.bind(key), a, **params)


class _OfKeys(core.Primitive):
    """A primitive whose programs know the type of the keys, which words do not tell."""

    def bind(self, key: Any, *args: Any, **params: Any) -> Any:
        return super().bind(key, *args, **{"impl": key.dtype, **params})


random_gamma_p = derived(
    "random_gamma", _of_keys, lambda: [], lowered=_of_words, handles_keys=True, consumes_key=True,
    printed=lambda impl, **params: params, transpose=NOT_LINEAR, kind=_OfKeys)


@functools.partial(custom_jvp, nondiff_argnums=(2,))
def _gammas(a: Array, keys: Array, log_space: bool) -> Array:
    return lax.map(lambda row: _gamma_one(row[0], row[1], log_space), (keys, a))


@_gammas.defjvp
def _gammas_jvp(log_space: bool, primals: tuple, tangents: tuple) -> tuple:
    """The derivative by the shape parameter, at fixed random bits."""
    (a, keys), (t, _) = primals, tangents
    samples = _gammas(a, keys, log_space)
    if log_space:
        x = lax.exp(samples)
        x = lax.select(x == 0, lax.full_like(x, dtypes.finfo(x.dtype).tiny), x)  # it underflowed
        return samples, t * (lax.random_gamma_grad(a, x) / x)
    return samples, t * lax.random_gamma_grad(a, samples)


# ── Poisson ──────────────────────────────────────────────────────────────────────────────────

def _first_accepted(trial: Callable[[Array, Array, Array], tuple[Array, Array]], key: Array,
                    like: Array) -> Array:
    """The first number of each element that transformed rejection accepts.

    Args:
      trial: from uniform numbers in [-1/2, 1/2) and [0, 1), and the distance of the first to its
        bounds, to a number and whether it is accepted.
    """
    def draw(state: tuple) -> tuple:
        samples, is_done, key = state
        key, first, second = split(key, 3)
        u = _uniform(first, like.shape, like.dtype, 0., 1.) - .5
        v = _uniform(second, like.shape, like.dtype, 0., 1.)
        k, accepted = trial(u, v, .5 - lax.abs(u))
        return lax.select(accepted, k, samples), is_done | accepted, key

    start = lax.full_like(like, -1), lax.full_like(like, False, bool), key
    return lax.while_loop(lambda state: (~state[1]).any(), draw, start)[0]


def _poisson_knuth(key: Array, rate: Array) -> Array:
    """How many exponential waiting times fit into one unit: Knuth's method."""
    def more(state: tuple) -> tuple:
        k, key, log_product = state
        key, sub = split(key)
        u = _uniform(sub, rate.shape, rate.dtype, 0., 1.)
        return (lax.select(log_product > -rate, k + 1, k), key, log_product + lax.log(u))

    start = lax.full_like(rate, 0, np.int32), key, lax.full_like(rate, 0)
    return lax.while_loop(lambda state: (state[2] > -rate).any(), more, start)[0] - 1


def _poisson_rejection(key: Array, rate: Array) -> Array:
    """By transformed rejection: uniform numbers below a hat function over the distribution.

    Source: W. Hörmann, *The transformed rejection method for generating Poisson random variables*
    (1993), algorithm PTRS.
    """
    log_rate = lax.log(rate)
    b = .931 + 2.53 * lax.sqrt(rate)
    a = -.059 + .02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    bound = .9277 - 3.6224 / (b - 2)

    def trial(u: Array, v: Array, edge: Array) -> tuple[Array, Array]:
        k = lax.floor((2 * a / edge + b) * u + rate + .43)
        height = lax.log(v * inverse_alpha / (a / (edge * edge) + b))
        at_once = (edge >= .07) & (v <= bound)
        never = (k < 0) | ((edge < .013) & (v > edge))
        return k, at_once | ~never & (height <= -rate + k * log_rate - lax.lgamma(k + 1))

    return converted(_first_accepted(trial, key, rate), np.dtype(np.int32))


@compiled("shape", "dtype")
def _poisson(key: Array, lam: Any, shape: Shape, dtype: np.dtype) -> Array:
    rate = broadcast_to(converted(lam, np.dtype(np.float32)), shape)
    is_few = (rate != rate) | (rate < 10)
    few = _poisson_knuth(key, lax.select(is_few, rate, lax.full_like(rate, 0)))
    many = _poisson_rejection(clone(key), lax.select(is_few, lax.full_like(rate, 1e5), rate))
    counts = lax.select(is_few, few, many)
    return converted(lax.select(rate == 0, lax.full_like(counts, 0), counts), dtype)


def poisson(key: Any, lam: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
            ) -> Array:
    """How many events of a rate happen in a unit of time.

    Args:
      key: a key, typed or raw.
      lam: the rate, or an array of rates.
      shape: the shape of the result; None is that of `lam`.
      dtype: an integer dtype; None is the default one.
      out_sharding: accepted for compatibility; the result is on one device.

    >>> from minijax.random import key
    >>> poisson(key(0), 4., (3,)).dtype
    dtype('int32')

    Raises:
      ValueError: for shapes that do not fit.
      NotImplementedError: for a key of another generator than Threefry.
    """
    typed = check_key("poisson", key)
    if typed.dtype.tag != "fry":
        raise NotImplementedError("`poisson` is only implemented for the threefry2x32 RNG, not "
                                  f"{typed.dtype.tag}")
    dtype = supported(dtype, dtypes.default_int_dtype())
    return _poisson(typed, lam, check_shape("poisson", shape, np.shape(lam)), dtype)


# ── Binomial ─────────────────────────────────────────────────────────────────────────────────

def _binomial_inversion(key: Array, n: Array, log_failure: Array) -> Array:
    """How many geometric waiting times fit into n trials."""
    def more(state: tuple) -> tuple:
        k, total, key = state
        key, sub = split(key)
        u = _uniform(key, n.shape, n.dtype, 0., 1.)
        return (lax.select(total <= n, k + 1, k), total + lax.ceil(lax.log(u) / log_failure), sub)

    start = lax.full_like(n, 0), lax.full_like(n, 0), key
    return lax.while_loop(lambda state: (state[1] <= n).any(), more, start)[0] - 1


# The remainder of Stirling's formula for log(k!), for k below 10.
_STIRLING_TAIL = np.array([math.lgamma(k + 1) - ((k + .5) * math.log(k + 1) - (k + 1)
                                                 + math.log(2 * math.pi) / 2) for k in range(10)])


def _stirling_tail(k: Array) -> Array:
    clamped = lax.clamp(k.dtype.type(0), k, k.dtype.type(9))
    square = (clamped + 1) * (clamped + 1)
    series = (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (clamped + 1)
    table = core.as_value(_STIRLING_TAIL.astype(k.dtype))
    tabulated = table[converted(lax.floor(clamped), np.dtype(np.int32))]
    return lax.select(k <= 9, tabulated, series)


def _btrs(key: Array, n: Array, p: Array) -> Array:
    """By transformed rejection.

    Source: W. Hörmann, *The generation of binomial random variates* (1993), algorithm BTRS.
    """
    stddev = lax.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * stddev
    a = -.0873 + .0248 * b + .01 * p
    c = n * p + .5
    bound = .92 - 4.2 / b
    odds = p / (1 - p)
    alpha = (2.83 + 5.1 / b) * stddev
    m = lax.floor((n + 1) * p)

    def trial(u: Array, v: Array, edge: Array) -> tuple[Array, Array]:
        k = lax.floor((2 * a / edge + b) * u + c)
        at_once = (edge >= .07) & (v <= bound)
        height = lax.log(v * alpha / (a / (edge * edge) + b))
        most = ((m + .5) * lax.log((m + 1) / (odds * (n - m + 1)))
                + (n + 1) * lax.log((n - m + 1) / (n - k + 1))
                + (k + .5) * lax.log(odds * (n - k + 1) / (k + 1))
                + _stirling_tail(m) + _stirling_tail(n - m)
                - _stirling_tail(k) - _stirling_tail(n - k))
        return k, at_once | ~((k < 0) | (k > n)) & (height <= most)

    return _first_accepted(trial, key, n)


def _binomial_of_arrays(key: Array, n: Array, p: Array) -> Array:
    """Count the rarer of success and failure: few by inversion, many by rejection."""
    invalid_p = (p != p) | (p < 0) | (p > 1)
    p = lax.clamp(p.dtype.type(0), p, p.dtype.type(1))
    rare = lax.select(p < .5, p, 1 - p)
    is_invalid, is_infinite = (n != n) | (n < 0), lax.abs(n) == np.inf
    safe_p = lax.select(invalid_p, lax.full_like(rare, .01), rare)
    is_few = is_invalid | (n * safe_p <= 10)
    trials, zero = lax.floor(n), lax.full_like(n, 0)
    few = _binomial_inversion(key, lax.select(is_few, trials, zero), lax.log1p(-safe_p))
    unused = is_few | ~(n * safe_p > 10)  # rejection would not end for inf trials and p = 0
    many = _btrs(clone(key), lax.select(unused, lax.full_like(n, 1e4), trials),
                 lax.select(unused, lax.full_like(p, .5), safe_p))
    counts = lax.select(is_few, few, many)
    is_invalid = is_invalid | invalid_p
    counts = lax.select(is_invalid, lax.full_like(counts, np.nan), counts)
    counts = lax.select(is_infinite & ~is_invalid, lax.full_like(counts, np.inf), counts)
    return lax.select((p < .5) | is_invalid | is_infinite, counts, trials - counts)


@compiled("shape", "dtype")
def _binomial(key: Array, n: Any, p: Any, shape: Shape, dtype: np.dtype) -> Array:
    real = dtypes.canonicalize_dtype(dtypes.to_inexact_dtype(dtypes.dtype(p)))
    counts = _binomial_of_arrays(key, *(broadcast_to(converted(x, real), shape) for x in (n, p)))
    return converted(counts, dtype)


def binomial(key: Any, n: Any, p: Any, shape: Any = None, dtype: Any = None) -> Array:
    """How many of n trials succeed, each with probability p.

    Args:
      key: a key, typed or raw.
      n, p: numbers or arrays.
      shape: the shape of the result; None is that of `n` and `p` together.
      dtype: the float dtype of the counts.

    >>> from minijax.random import key
    >>> binomial(key(0), 10., .5, (3,)).shape
    (3,)

    Raises:
      ValueError: for a dtype that is no float, or shapes that do not fit.
    """
    typed, sizes, dtype = checked("binomial", key, shape, dtype, np.floating, np.shape(n),
                                  np.shape(p))
    return _binomial(typed, n, p, sizes, dtype)


def multinomial(key: Any, n: Any, p: Any, *, shape: Any = None, dtype: Any = None,
                unroll: int | bool = 1) -> Array:
    """How many of n trials have each of several outcomes.

    Args:
      key: a key, typed or raw.
      n: how many trials; an array of any shape.
      p: the probabilities of the outcomes, along the last axis.
      shape: the shape of the result; None is that of `n` and `p` together.
      dtype: the float dtype of the counts.
      unroll: accepted for compatibility.

    >>> from minijax.random import key
    >>> float(multinomial(key(0), 10., np.array([.2, .3, .5])).sum())
    10.0

    Raises:
      ValueError: for a dtype that is no float, or shapes that do not fit.
    """
    typed, sizes, dtype = checked("multinomial", key, shape, dtype, np.floating,
                                  (*np.shape(n), 1), np.shape(p))
    return _multinomial(typed, n, p, sizes, dtype)


@compiled("shape", "dtype")
def _multinomial(key: Array, n: Any, p: Any, shape: Shape, dtype: np.dtype) -> Array:
    """One outcome after the other, each among those trials that are left."""
    n, p = converted(n, dtype), converted(p, dtype)
    n, p = broadcast_to(n, shape[:-1]), broadcast_to(p, shape)
    left = lax.cumsum(p, len(shape) - 1, reverse=True)
    ratios = p / lax.select(left == 0, lax.full_like(left, 1), left)
    first = (len(shape) - 1, *range(len(shape) - 1))

    def draw(left: Array, row: tuple) -> tuple:
        ratio, sub = row
        count = _binomial_of_arrays(sub, left, ratio)
        return left - count, count

    _, counts = lax.scan(draw, n, (lax.transpose(ratios, first), split(key, shape[-1])))
    return lax.transpose(counts, (*range(1, len(shape)), 0))
