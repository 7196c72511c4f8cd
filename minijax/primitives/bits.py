"""Counting the bits of integers.

Stands on `families`.  Chapter 16, *Random numbers*, is made of bits.
In JAX: `jax/_src/lax/lax.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.primitives.examples import integers
from minijax.primitives.families import unary
from minijax.primitives.slots import INTEGER


def _unsigned(s: Any, x: Any) -> Any:
    return s.bitcast(x, f"u{x.dtype.itemsize}") if x.dtype.kind == "i" else x


def _every(pattern: int, dtype: np.dtype) -> int:
    """A byte repeated over the whole word."""
    return int.from_bytes(bytes([pattern]) * dtype.itemsize, "little")


def _ones(s: Any, x: Any) -> Any:
    """How many bits are set: sums of neighbours, then of pairs, of nibbles, of bytes."""
    u = _unsigned(s, x)
    word = u.dtype

    def mask(pattern: int) -> Any:
        return s.const(_every(pattern, word), word)
    u = s.sub(u, s.and_(s.shr_logical(u, 1), mask(0x55)))
    u = s.add(s.and_(u, mask(0x33)), s.and_(s.shr_logical(u, 2), mask(0x33)))
    u = s.and_(s.add(u, s.shr_logical(u, 4)), mask(0x0f))
    total = s.shr_logical(s.mul(u, mask(0x01)), 8 * word.itemsize - 8)
    return s.convert(total, x.dtype)


def _leading_zeros(s: Any, x: Any) -> Any:
    """The bits that stay clear when the highest one is smeared downwards."""
    u = _unsigned(s, x)
    shift = 1
    while shift < 8 * u.dtype.itemsize:
        u = s.or_(u, s.shr_logical(u, shift))
        shift *= 2
    return s.convert(_ones(s, s.not_(u)), x.dtype)


population_count_p, population_count = unary(
    "population_count", "How many bits of each integer are set.", accepts=INTEGER,
    derivative=None,
    element=_ones,
    examples=integers(1),
    shows="255 -> Array(8, dtype=int32, weak_type=True)")

clz_p, clz = unary(
    "clz", "How many of the highest bits of each integer are clear.", accepts=INTEGER,
    derivative=None,
    element=_leading_zeros,
    examples=integers(1),
    shows="255 -> Array(24, dtype=int32, weak_type=True)")
