"""Integers, booleans, choices and permutations.

Builds on `samplers`, `lax`, `jit`.  Chapter 16, *Random numbers*.
In JAX: `jax/_src/random/core.py`.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import core, dtypes, lax, numpy as jnp
from minijax.core import Array, refuse
from minijax.numpy.arguments import as_array, static_value
from minijax.primitives.axes import canonical_axis, canonical_shape
from minijax.primitives.convert import converted
from minijax.random import samplers
from minijax.random.keys import check_key, split
from minijax.random.samplers import Shape, bits, check_shape, compiled, gumbel, supported


# ── Integers ─────────────────────────────────────────────────────────────────────────────────

def randint(key: Any, shape: Any, minval: Any, maxval: Any, dtype: Any = None, *,
            out_sharding: Any = None) -> Array:
    """Integers from minval up to, but not including, maxval.

    Args:
      key: a key, typed or raw.
      shape: the shape of the result.
      minval, maxval: integers, or arrays that broadcast to `shape`.
      dtype: an integer dtype; None is the default one.
      out_sharding: accepted for compatibility; the result is on one device.

    Raises:
      TypeError: for a dtype that is no integer.
      ValueError: for shapes that do not fit.

    >>> from minijax.random import key
    >>> randint(key(0), (3,), 0, 10)
    Array([8, 1, 7], dtype=int32)
    """
    typed = check_key("randint", key)
    dtype = supported(dtype, dtypes.default_int_dtype())
    if not dtypes.issubdtype(dtype, np.integer):
        raise TypeError(f"randint only accepts integer dtypes, got {dtype}")
    sizes = check_shape("randint", canonical_shape(shape), np.shape(minval), np.shape(maxval))
    if dtype.itemsize >= 4:
        return _randint(typed, sizes, minval, maxval, dtype)
    limits, wide = dtypes.iinfo(dtype), np.dtype(np.int32)
    minval = clip_to_dtype(as_integers(minval), wide, limits.min, limits.max)
    maxval = clip_to_dtype(as_integers(maxval), wide, limits.min, limits.max + 1)
    return lax.convert_element_type(_randint(typed, sizes, minval, maxval, wide), dtype)


def as_integers(x: Any) -> Array:
    """A bound as an integer array; floats are truncated."""
    x = core.as_value(x)
    is_integer = dtypes.issubdtype(x.dtype, np.integer)
    return x if is_integer else lax.convert_element_type(x, dtypes.default_int_dtype())


def clip_to_dtype(x: Array, dtype: np.dtype, low: int, high: int) -> Array:
    """`x` clipped to bounds, which its own dtype need not hold, in an integer dtype."""
    limits, scalar = dtypes.iinfo(x.dtype), x.dtype.type
    clipped = lax.min(lax.max(x, scalar(max(low, limits.min))), scalar(min(high, limits.max)))
    return lax.convert_element_type(clipped, dtype)


@compiled("shape", "dtype")
def _randint(key: Array, shape: Shape, minval: Any, maxval: Any, dtype: np.dtype) -> Array:
    limits, word = dtypes.iinfo(dtype), np.dtype(f"uint{8 * dtype.itemsize}")
    bottom, top = map(as_integers, (minval, maxval))
    # where maxval is one more than the dtype can hold, the largest integer is drawn, too
    exceeds = top > top.dtype.type(min(limits.max, dtypes.iinfo(top.dtype).max))
    low, high = (lax.broadcast_to_rank(clip_to_dtype(x, dtype, limits.min, limits.max), len(shape))
                 for x in (bottom, top))
    count = converted(high - low, word, False)
    count = lax.select(high <= low, lax.full_like(count, 1), count)
    count = lax.select(exceeds & (high > low), count + 1, count)  # of all integers it wraps to 0
    return low + converted(_below(count, key, shape, word), dtype, False)


def _below(count: Array, key: Array, shape: Shape, word: np.dtype) -> Array:
    """Integers in [0, count): an integer of two random words, modulo the count."""
    first, second = split(key)
    upper, lower = bits(first, shape, word), bits(second, shape, word)
    weight = lax.rem(word.type(2 ** (word.itemsize * 4)), count)
    weight = lax.rem(weight * weight, count)
    return lax.rem(lax.rem(upper, count) * weight + lax.rem(lower, count), count)


# ── Booleans ─────────────────────────────────────────────────────────────────────────────────

def bernoulli(key: Any, p: Any = 0.5, shape: Any = None, mode: str = "low", *,
              out_sharding: Any = None) -> Array:
    """Booleans that are true with probability p.

    Args:
      key: a key, typed or raw.
      p: a probability, or an array of them.
      shape: the shape of the result; None is that of p.
      mode: "low", or "high" to distinguish very small probabilities.
      out_sharding: accepted for compatibility; the result is on one device.

    Raises:
      TypeError: when p is no float.
      ValueError: for another mode, or shapes that do not fit.

    >>> from minijax.random import key
    >>> bernoulli(key(0), 0.3, (2,))
    Array([ True, False], dtype=bool)
    """
    if mode not in ("high", "low"):
        raise ValueError(f"got {mode=}, expected 'high' or 'low'")
    typed = check_key("bernoulli", key)
    dtype = core.as_value(p).dtype
    if not dtypes.issubdtype(dtype, np.floating):
        raise TypeError(f"bernoulli probability `p` must have a floating dtype, got {dtype}.")
    sizes = check_shape("bernoulli", shape, np.shape(p))
    return _bernoulli(typed, lax.convert_element_type(p, dtype), sizes, mode)


@compiled("shape", "mode")
def _bernoulli(key: Array, p: Array, shape: Shape, mode: str) -> Array:
    dtype = np.dtype(p.dtype)
    p = lax.broadcast_to_rank(p, len(shape)) if p.ndim else p
    if mode == "low":
        return samplers._uniform(key, shape, dtype, 0.0, 1.0) < p
    coarse, fine = samplers._uniform(key, (2, *shape), dtype, 0.0, 1.0)
    return fine * dtypes.finfo(dtype).eps < p - coarse


def rademacher(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Numbers -1 and 1, equally likely.

    Args:
      key: a key, typed or raw.
      shape: the shape of the result.
      dtype: any dtype; None is the default integer dtype.
      out_sharding: accepted for compatibility; the result is on one device.

    >>> from minijax.random import key
    >>> rademacher(key(0), (3,))
    Array([-1,  1, -1], dtype=int32)
    """
    dtype = supported(dtype, dtypes.default_int_dtype())
    return _rademacher(check_key("rademacher", key), canonical_shape(shape), dtype)


@compiled("shape", "dtype")
def _rademacher(key: Array, shape: Shape, dtype: np.dtype) -> Array:
    integer = dtypes.default_int_dtype()
    half = dtypes.default_float_dtype().type(0.5)
    signs = 2 * lax.convert_element_type(_bernoulli(key, half, shape, "low"), integer) - 1
    return lax.convert_element_type(signs, dtype)


# ── Choices ──────────────────────────────────────────────────────────────────────────────────

def categorical(key: Any, logits: Any, axis: int = -1, shape: Any = None, replace: bool = True,
                mode: str | None = None, *, out_sharding: Any = None) -> Array:
    """Indices of categories, chosen with the probabilities softmax(logits).

    The category whose logit plus Gumbel noise is the largest is chosen.

    Args:
      key: a key, typed or raw.
      logits: unnormalised log probabilities along `axis`.
      axis: the axis of categories.
      shape: the shape of the result; its last axes are those of `logits` without `axis`.
      replace: whether one category may be drawn again for the leading axes of `shape`.
      mode: as for `gumbel`.
      out_sharding: accepted for compatibility; the result is on one device.

    Raises:
      ValueError: for shapes that do not fit, or more draws than categories without replacement.

    >>> from minijax.random import key
    >>> import numpy as np
    >>> categorical(key(0), np.zeros((3, 4), np.float32))
    Array([0, 1, 3], dtype=int32)
    """
    typed = check_key("categorical", key)
    logits = as_array("categorical", logits)
    if not -logits.ndim <= axis < logits.ndim:
        raise IndexError(f"index {axis} is out of bounds for axis 0 with size {logits.ndim}")
    axis %= logits.ndim
    batch_shape = logits.shape[:axis] + logits.shape[axis + 1:]
    sizes = check_shape("categorical", shape, batch_shape)
    leading = sizes[:len(sizes) - len(batch_shape)]
    if replace:
        out_axis = len(leading) + axis
        noise_shape = (*sizes[:out_axis], logits.shape[axis], *sizes[out_axis:])
        noise = gumbel(typed, noise_shape, logits.dtype, mode)
        total = noise + lax.broadcast_to_rank(logits, noise.ndim)
        return lax.argmax(total, out_axis, dtypes.default_int_dtype())
    count = math.prod(leading)
    if count > logits.shape[axis]:
        raise ValueError(f"Number of samples without replacement ({count}) cannot exceed number "
                         f"of categories ({logits.shape[axis]}).")
    total = logits + gumbel(typed, logits.shape, logits.dtype, mode)
    _, winners = lax.top_k(total, count, axis=axis)
    return lax.reshape(winners, sizes, (axis, *(d for d in range(logits.ndim) if d != axis)))


def choice(key: Any, a: Any, shape: Sequence[int] = (), replace: bool = True, p: Any = None,
           axis: int = 0, mode: str | None = None) -> Array:
    """Elements of an array, or integers below a number, chosen at random.

    Args:
      key: a key, typed or raw.
      a: an array, or an integer n for 0 … n-1.
      shape: how many to choose.
      replace: whether one may be chosen again.
      p: the probability of each; None if all are equal.
      axis: the axis of `a` along which to choose.
      mode: as for `gumbel`.

    Raises:
      TypeError: when `a` is no array or `shape` no sequence.
      ValueError: for more choices than there are elements, or `p` of another shape.

    >>> from minijax.random import key
    >>> choice(key(0), 5, (2,))
    Array([1, 2], dtype=int32)
    """
    typed = check_key("choice", key)
    if not isinstance(shape, Sequence):
        raise TypeError(f"shape argument of jax.random.choice must be a sequence, got {shape}")
    sizes = canonical_shape(shape)
    array = as_array("choice", a)
    axis = canonical_axis(axis, array.ndim) if array.ndim else axis
    count = array.shape[axis] if array.ndim else int(
        static_value(array, "The error occurred in jax.random.choice()"))
    draws = math.prod(sizes)
    if draws == 0:
        return lax.full(sizes, 0, array.dtype)
    refuse((count <= 0, "a must be greater than 0 unless no samples are taken"),
           (not replace and draws > count, f"Cannot take a larger sample (size {draws}) than "
            f"population (size {count}) when 'replace=False'"), error=ValueError)
    if p is None and not replace:
        shuffled = permutation(typed, array if array.ndim else count, axis)
        sample = lax.slice_in_dim(shuffled, 0, draws, axis=axis)
    else:
        indices = _chosen(typed, count, sizes, replace, p, mode)
        sample = jnp.take(array, indices, axis=axis) if array.ndim else converted(
            indices, dtypes.default_int_dtype())
    return lax.reshape(sample, array.shape[:axis] + sizes + array.shape[axis + 1:])


def _chosen(key: Array, count: int, shape: Shape, replace: bool, p: Any, mode: str | None) -> Array:
    """The indices of the chosen elements among `count`."""
    if p is None:
        return randint(key, shape, 0, count)
    p = as_array("choice", p)
    if p.shape != (count,):
        raise ValueError("p must be None or a 1D vector with the same size as a.shape[axis]. "
                         f"p has shape {p.shape} and a.shape[axis] is {count}.")
    dtype = dtypes.to_inexact_dtype(p.dtype)
    p = lax.convert_element_type(p, dtype)
    if not replace:
        noise = samplers._gumbel(key, (count,), dtype, mode or "low")
        return lax.top_k(noise + lax.log(p), math.prod(shape))[1]
    sums = lax.cumsum(p)
    return jnp.searchsorted(sums, sums[-1] * (1 - samplers._uniform(key, shape, dtype, 0.0, 1.0)))


# ── Permutations ─────────────────────────────────────────────────────────────────────────────

def permutation(key: Any, x: Any, axis: int = 0, independent: bool = False, *,
                out_sharding: Any = None) -> Array:
    """An array with its elements in random order along an axis.

    Args:
      key: a key, typed or raw.
      x: an array, or an integer n for 0 … n-1.
      axis: the axis along which to shuffle.
      independent: whether each row along it is shuffled on its own.
      out_sharding: accepted for compatibility; the result is on one device.

    Raises:
      TypeError: for a scalar that is no integer.
      ConcretizationTypeError: for an integer that is traced.

    >>> from minijax.random import key
    >>> permutation(key(0), 5)
    Array([1, 0, 4, 3, 2], dtype=int32)
    """
    typed = check_key("permutation", key)
    array = as_array("permutation", x)
    if not array.ndim:
        if not dtypes.issubdtype(array.dtype, np.integer):
            raise TypeError("x must be an integer or at least 1-dimensional")
        size = int(static_value(array, "argument x of jax.random.permutation()"))
        array = lax.iota(dtypes.default_int_dtype(), max(size, 0))
    axis = canonical_axis(axis, array.ndim)
    if independent or array.ndim == 1:
        return _shuffle(typed, array, axis)
    order = _shuffle(typed, lax.iota(dtypes.default_int_dtype(), array.shape[axis]), 0)
    return jnp.take(array, order, axis=axis)


@compiled("axis")
def _shuffle(key: Array, x: Array, axis: int) -> Array:
    """Sort by random words, in so many rounds that ties hardly ever bias the order.

    With n elements, words of 32 bits and r rounds, the probability of a biased pair is about
    n^2 / 2^(32 r); the number of rounds is the least that makes it smaller than 1 / n.
    """
    rounds = math.ceil(3 * math.log(max(1, x.size)) / math.log(2**32 - 1))
    for _ in range(rounds):
        key, spent = split(key)
        words = bits(spent, x.shape, np.uint32)
        _, x = lax.sort([words, x], dimension=axis, is_stable=True, num_keys=1)
    return x
