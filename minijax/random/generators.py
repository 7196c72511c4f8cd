"""Generators besides Threefry, as functions on words: `rbg`, `unsafe_rbg`, and those of users.

Builds on `primitives/keys.py` and `bit_generators.py`.  Chapter 16, *Random numbers*.
In JAX: `jax/_src/random/rbg.py`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from minijax import dtypes
from minijax.core import Array
from minijax.primitives.axes import Shape
from minijax.primitives.bit_generators import rng_bit_generator
from minijax.primitives.joining import concatenate
from minijax.primitives.keys import (THREEFRY, random_fold_in_p, random_seed_p, random_split_p,
                                     random_unwrap_p, random_wrap_p)
from minijax.primitives.shape import broadcast, reshape, transpose
from minijax.primitives.slicing import slice_in_dim
from minijax.transforms.jit import jit


class Generator(NamedTuple):
    """Functions on the words of a key, with the names of the primitives that they stand for."""

    seed: Callable[[Array], Array]
    random_split: Callable[[Array, Shape], Array]
    random_bits: Callable[[Array, int, Shape], Array]
    random_fold_in: Callable[[Array, Array], Array]


class PRNGSpec:
    """A user's generator: its names and its functions."""

    def __init__(self, name: str, tag: str, words: int, functions: Generator):
        self.name, self.tag, self.functions = name, tag, functions
        self.key_type = dtypes.KeyType(self, tag, words)

    def __str__(self) -> str:
        return self.tag

    def __repr__(self) -> str:
        return f"PRNGSpec({self.name!r})"


def functions(dtype: dtypes.KeyType) -> Generator | None:
    """The functions of the generator of a key dtype; None for Threefry, which has primitives."""
    return getattr(dtype.impl, "functions", None) or _OF_XLA.get(str(dtype.impl))


# ── rbg: XLA's generator draws, Threefry derives keys from both halves of a key ──────────────

def _halves(words: Array) -> Array:
    """Two Threefry keys, of a key's upper and lower words."""
    return random_wrap_p.bind(reshape(words, (2, 2)), impl=THREEFRY)


def _joined(halves: Array) -> Array:
    """Keys of four words, from an array of their halves with the halves in front."""
    words = random_unwrap_p.bind(halves)
    axes = (*range(1, words.ndim - 1), 0, words.ndim - 1)
    return reshape(transpose(words, axes), (*words.shape[1:-1], 4))


@jit
def _seed(seed: Array) -> Array:
    half = random_unwrap_p.bind(random_seed_p.bind(seed, impl=THREEFRY))
    return concatenate([half, half], 0)


@functools.partial(jit, static_argnums=1)
def _split(words: Array, shape: Shape) -> Array:
    return _joined(random_split_p.bind(_halves(words), shape=shape))


@functools.partial(jit, static_argnums=(1, 2))
def _bits(words: Array, bit_width: int, shape: Shape) -> Array:
    return rng_bit_generator(words, shape, np.dtype(f"uint{bit_width}"))[1]


@jit
def _fold_in(words: Array, data: Array) -> Array:
    return _joined(random_fold_in_p.bind(_halves(words), broadcast(data, (2,))))


# ── unsafe_rbg: every tenth key that XLA's generator draws ───────────────────────────────────

@functools.partial(jit, static_argnums=1)
def _unsafe_split(words: Array, shape: Shape) -> Array:
    _, drawn = rng_bit_generator(words, (10 * math.prod(shape), 4))
    return reshape(slice_in_dim(drawn, None, None, 10), (*shape, 4))


@jit
def _unsafe_fold_in(words: Array, data: Array) -> Array:
    return words ^ rng_bit_generator(_seed(data), (10, 4))[1][-1]


_OF_XLA = {"rbg": Generator(_seed, _split, _bits, _fold_in),
           "unsafe_rbg": Generator(_seed, _unsafe_split, _bits, _unsafe_fold_in)}
