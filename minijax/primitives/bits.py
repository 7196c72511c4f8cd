"""Counting the bits of integers.

Stands on `families`.  Chapter 16, *Random numbers*, is made of bits.
In JAX: `jax/_src/lax/lax.py`.
"""

from __future__ import annotations

from typing import Any

from minijax.primitives.examples import integers
from minijax.primitives.families import unary
from minijax.primitives.infix import infix
from minijax.primitives.slots import INTEGER


def _ones(x: Any) -> Any:
    """How many bits are set: sums of neighbours, then of pairs, of nibbles, of bytes."""
    size = x.dtype.itemsize

    def mask(pattern: int) -> int:
        """A byte repeated over the whole word."""
        return int.from_bytes(bytes([pattern]) * size, "little")
    u = x.bits(f"u{size}")
    u -= u >> 1 & mask(0x55)
    u = (u & mask(0x33)) + (u >> 2 & mask(0x33))
    u = (u + (u >> 4)) & mask(0x0f)
    return (u * mask(0x01) >> 8 * size - 8).to(x.dtype)


def _leading_zeros(x: Any) -> Any:
    """The bits that stay clear when the highest one is smeared downwards."""
    u = x.bits(f"u{x.dtype.itemsize}")
    for k in range((8 * x.dtype.itemsize).bit_length() - 1):
        u |= u >> (1 << k)
    return _ones(~u).to(x.dtype)


population_count_p, population_count = unary(
    "population_count", "How many bits of each integer are set.", accepts=INTEGER, shows="255 -> 8",
    derivative=None,
    element=infix(_ones),
    examples=integers(1))

clz_p, clz = unary(
    "clz", "How many of the highest bits of each integer are clear.", accepts=INTEGER,
    derivative=None,
    element=infix(_leading_zeros),
    examples=integers(1),
    shows="255 -> 24")
