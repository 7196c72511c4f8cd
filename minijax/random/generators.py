"""Generators besides `threefry2x32`, as functions on words, and those of users.

Builds on `primitives/keys.py` and `bit_generators.py`.  Chapter 16, *Random numbers*.  In JAX:
`jax/_src/random/rbg.py`, `philox4x32.py`.  Source of the ciphers: Salmon, Moraes, Dror and Shaw,
*Parallel Random Numbers: As Easy as 1, 2, 3*, 2011.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax import dtypes, lax
from minijax.core import Array
from minijax.primitives.axes import Shape
from minijax.primitives.keys import (THREEFRY, number_words, random_fold_in_p, random_seed_p,
                                     random_split_p, random_unwrap_p, random_wrap_p)
from minijax.primitives.threefry import philox4x32
from minijax.transforms.jit import jit


class Generator(NamedTuple):
    """Functions on the words of a key, with the names of the primitives that they stand for."""

    seed: Callable[[Array], Array]
    random_split: Callable[[Array, Shape], Array]
    random_bits: Callable[[Array, int, Shape], Array]
    random_fold_in: Callable[[Array, Array], Array]


class PRNGSpec:
    """A user's generator: its names and its functions."""

    def __init__(self, name: str, tag: str, key_shape: Shape, functions: Generator):
        self.name, self.tag, self.functions = name, tag, functions
        self.key_type = dtypes.KeyType(self, tag, *key_shape)

    def __str__(self) -> str:
        return self.tag

    def __repr__(self) -> str:
        return f"PRNGSpec({self.name!r})"


def functions(dtype: dtypes.KeyType) -> Generator | None:
    """The functions of the generator of a key dtype; None for Threefry, which has primitives."""
    return getattr(dtype.impl, "functions", None) or _BY_NAME.get(str(dtype.impl))


# ── rbg: XLA's generator draws, Threefry derives keys from both halves of a key ──────────────

def _halves(words: Array) -> Array:
    """Two Threefry keys, of a key's upper and lower words."""
    return random_wrap_p.bind(lax.reshape(words, (2, 2)), impl=THREEFRY)


def _joined(halves: Array) -> Array:
    """Keys of four words, from an array of their halves with the halves in front."""
    words = random_unwrap_p.bind(halves)
    axes = (*range(1, words.ndim - 1), 0, words.ndim - 1)
    return lax.reshape(lax.transpose(words, axes), (*words.shape[1:-1], 4))


@jit
def _seed(seed: Array) -> Array:
    half = random_unwrap_p.bind(random_seed_p.bind(seed, impl=THREEFRY))
    return lax.concatenate([half, half], 0)


@jit(static_argnums=1)
def _split(words: Array, shape: Shape) -> Array:
    return _joined(random_split_p.bind(_halves(words), shape=shape))


@jit(static_argnums=(1, 2))
def _bits(words: Array, bit_width: int, shape: Shape) -> Array:
    return lax.rng_bit_generator(words, shape, np.dtype(f"uint{bit_width}"))[1]


@jit
def _fold_in(words: Array, data: Array) -> Array:
    return _joined(random_fold_in_p.bind(_halves(words), lax.broadcast(data, (2,))))


# ── unsafe_rbg: every tenth key that XLA's generator draws ───────────────────────────────────

@jit(static_argnums=1)
def _unsafe_split(words: Array, shape: Shape) -> Array:
    _, drawn = lax.rng_bit_generator(words, (10 * math.prod(shape), 4))
    return lax.reshape(lax.slice_in_dim(drawn, None, None, 10), (*shape, 4))


@jit
def _unsafe_fold_in(words: Array, data: Array) -> Array:
    return words ^ lax.rng_bit_generator(_seed(data), (10, 4))[1][-1]


# ── Ciphers of a counter: the places of the numbers are encrypted by the key ─────────────────

Words = list[Any]
Cipher = Callable[[Words, Words], Words]  # the words of a key, and of a counter
_ROTATIONS = ((10, 26), (11, 21), (13, 27), (23, 5), (6, 20), (17, 11), (25, 10), (18, 20))
_PARITY = np.uint32(0x1BD11BDA)


def _rotated(x: Any, bits: int) -> Any:
    return x << np.uint32(bits) | x >> np.uint32(32 - bits)


def _threefry4x32(key: Words, counter: Words) -> Words:
    """Twenty rounds that mix two pairs of words; each fourth adds a part of the key."""
    schedule = [*key, key[0] ^ key[1] ^ key[2] ^ key[3] ^ _PARITY]
    x = [a + b for a, b in zip(counter, key, strict=True)]
    for i in range(20):
        for (a, b), bits in zip(((0, 3), (2, 1)) if i % 2 else ((0, 1), (2, 3)),
                                _ROTATIONS[i % 8], strict=True):
            x[a] = x[a] + x[b]
            x[b] = x[a] ^ _rotated(x[b], bits)
        if i % 4 == 3:
            step = i // 4 + 1
            x = [word + schedule[(k + step) % 5] for k, word in enumerate(x)]
            x[3] = x[3] + np.uint32(step)
    return x


def _philox2x32(key: Words, counter: Words) -> Words:
    """Ten rounds that multiply one word, and exchange the halves of the product."""
    [k], (x, y) = key, counter
    for _ in range(10):
        x, y = lax.mulhi(x, lax.full_like(x, 0xD256D193)) ^ y ^ k, x * np.uint32(0xD256D193)
        k = k + np.uint32(0x9E3779B9)
    return [x, y]


def _places(shape: Shape) -> Words:
    """The row-major number of each element, as its upper and its lower word."""
    place = lax.reshape(lax.iota(np.uint32, math.prod(shape)), shape)
    return [lax.full_like(place, 0), place]


def _mixed(words: Words) -> Any:
    return functools.reduce(lambda x, y: x ^ y, words)


def _generator(cipher: Cipher, words: int, counters: int, pairs: Sequence[Sequence[int]],
               seeds_key: bool = False) -> Generator:
    """A generator of keys of some words.

    Args:
      cipher: its function.
      words: of a key.
      counters: how many words a counter has.
      pairs: the words of the result that make the upper and the lower half of 64 bits; shorter
        numbers are made of all words.
      seeds_key: whether a seed is the key and not the counter.
    """
    none = [np.uint32(0)] * (counters - 2)

    def encrypted(key: Array, counter: Words) -> Words:
        shape = np.broadcast_shapes(*map(np.shape, counter))
        every = [lax.convert_element_type(x, np.uint32) for x in (*lax.unstack(key), *counter)]
        wide = [lax.broadcast(x, shape[:len(shape) - x.ndim]) for x in every]
        return cipher(wide[:words], wide[words:])

    @jit
    def seed(number: Array) -> Array:
        high, low = number_words(number)
        zeros = lax.full((words,), 0, np.uint32)
        key = lax.concatenate([lax.stack([high, low]), zeros[2:]], 0) if seeds_key else zeros
        counter = [np.uint32(0)] * counters if seeds_key else [high, low, *none]
        return lax.stack(encrypted(key, counter)[:words])

    @jit(static_argnums=1)
    def split(key: Array, shape: Shape) -> Array:
        return lax.stack(encrypted(key, [*none, *_places(shape)])[:words], len(shape))

    @jit(static_argnums=(1, 2))
    def bits(key: Array, bit_width: int, shape: Shape) -> Array:
        x = encrypted(key, [*_places(shape), *none])
        if bit_width < 64:
            return lax.convert_element_type(_mixed(x), np.dtype(f"uint{bit_width}"))
        halves = [_mixed([x[k] for k in each]) for each in reversed(pairs)]
        return lax.bitcast_convert_type(lax.stack(halves, len(shape)), np.uint64)

    @jit
    def fold_in(key: Array, data: Array) -> Array:
        return lax.stack(encrypted(key, [*none, np.uint32(0), data])[:words])
    return Generator(seed, split, bits, fold_in)


_BY_NAME = {
    "rbg": Generator(_seed, _split, _bits, _fold_in),
    "unsafe_rbg": Generator(_seed, _unsafe_split, _bits, _unsafe_fold_in),
    "threefry4x32": _generator(_threefry4x32, 4, 4, [(0, 2), (1, 3)], seeds_key=True),
    "philox2x32": _generator(_philox2x32, 1, 2, [(0,), (1,)]),
    "philox4x32": _generator(lambda key, counter: philox4x32(*key, *counter), 2, 4,
                             [(0,), (1,)])}
