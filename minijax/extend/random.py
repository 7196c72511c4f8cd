"""Custom generators of random numbers: `define_prng_impl`; and those of JAX.

Builds on `random`.  Chapter 16, *Random numbers*.  In JAX: `jax/extend/random.py`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import dtypes, numpy as jnp
from minijax.core import Array
from minijax.primitives.threefry import threefry2x32, threefry2x32_p  # noqa: F401
from minijax.random.generators import Generator, PRNGSpec
from minijax.random.keys import resolve_impl, seeded

threefry_prng_impl, rbg_prng_impl, unsafe_rbg_prng_impl = map(
    dtypes.key_dtype, ("threefry2x32", "rbg", "unsafe_rbg"))


def define_prng_impl(*, key_shape: tuple[int, ...], seed: Callable[[Array], Array],
                     split: Callable[[Array, tuple[int, ...]], Array],
                     random_bits: Callable[[Array, int, tuple[int, ...]], Array],
                     fold_in: Callable[[Array, Any], Array], name: str = "<unnamed>",
                     tag: str = "?") -> PRNGSpec:
    """A generator for `random.key`, of functions on a key's words.

    Args:
      key_shape: of the words of a key, which are uint32.
      seed: from an integer to a key's words.
      split: from a key's words and a shape to the words of keys of that shape.
      random_bits: from a key's words, a number of bits and a shape to unsigned integers.
      fold_in: from a key's words and a uint32 to a key's words.
      name, tag: what it is called, and in types: ``key<tag>``.

    >>> from minijax import random
    >>> counts = define_prng_impl(
    ...     key_shape=(1,), seed=lambda seed: jnp.uint32(seed)[None],
    ...     split=lambda key, shape: key + jnp.arange(2, dtype="uint32")[:, None],
    ...     random_bits=lambda key, bit_width, shape: jnp.full(shape, key[0]),
    ...     fold_in=lambda key, data: key + data, name="counts", tag="n")
    >>> random.bits(random.key(3, impl=counts), (2,))
    Array([3, 3], dtype=uint32)
    """
    return PRNGSpec(name, tag, key_shape, Generator(seed, split, random_bits, fold_in))


def random_seed(seeds: Any, impl: Any) -> Array:
    """The key of a generator for a seed.

    >>> random_seed(3, threefry_prng_impl).dtype
    key<fry>
    """
    return seeded("random_seed", seeds, resolve_impl(impl))


def seed_with_impl(impl: Any, seed: Any) -> Array:
    """`random_seed` with its arguments swapped.

    >>> seed_with_impl(threefry_prng_impl, 3).dtype
    key<fry>
    """
    return random_seed(seed, impl)


def threefry_2x32(keypair: Any, count: Any) -> Array:
    """Random words for counters: Threefry of the first half of them with the second.

    Args:
      keypair: two words of uint32.
      count: counters, as uint32.

    Raises:
      TypeError: for another dtype.

    >>> threefry_2x32(jnp.zeros(2, "uint32"), jnp.zeros(2, "uint32"))
    Array([1797259609, 2579123966], dtype=uint32)
    """
    key1, key2 = keypair
    input_dtypes = [jnp.asarray(x).dtype for x in (key1, key2, count)]
    if any(dtype != np.uint32 for dtype in input_dtypes):
        raise TypeError(f"threefry_2x32 requires uint32 arguments, got {input_dtypes}")
    flat = jnp.ravel(count)
    halves = jnp.split(jnp.pad(flat, (0, flat.size % 2)), 2)
    words = jnp.concatenate(threefry2x32(key1, key2, *halves))
    return words[:flat.size].reshape(np.shape(count))
