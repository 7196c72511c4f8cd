"""Primitives on random keys: seed, split, fold_in, bits; each a program over Threefry's words.

Builds on `random_bits`, `shape`.  Chapter 16, *Random numbers*.
In JAX: `jax/_src/prng.py` and `jax/_src/random/threefry2x32.py`.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import config, core, dtypes
from minijax.core import Array, ArrayImpl, Primitive, ShapedArray, cannot, has_key_dtype, refuse
from minijax.primitives import algebra, axes, comparison, convert, families, reduce, slicing, slots
from minijax.primitives.ad_util import batch_elementwise, batch_in_front, broadcast_at, filled
from minijax.primitives.examples import Examples, table
from minijax.primitives.threefry import threefry2x32
from minijax.primitives.shape import broadcast, expand_dims, iota, iota_p, reshape
from minijax.primitives.joining import concatenate, split

MOST_WORDS = 2**32 - 1  # of one key in the original layout, whose counters have 32 bits

# JAX: also holds the functions of its generators, of which here is one.
THREEFRY = dtypes.key_dtype("threefry2x32")


# ── The family: a primitive whose meaning and lowering are one program ───────────────────────

def key_operation(name: str, *, program: Callable[..., Array], type_of: Callable[..., ShapedArray],
                  batch: Any = batch_elementwise, **rules: Any) -> Primitive:
    """A primitive on keys, defined by a program of ordinary operations on their words.

    Args:
      name: as a jaxpr prints it.
      program: from the words of the arguments, a key's in a trailing axis, to those of the result.
      type_of: from the types as programs see them to the type of the result.  The first must be
        that of keys, unless there is a parameter `impl`, the type of the keys that it makes.
      batch, rules: as in `Primitive`.
    """
    def abstract_eval(*avals: ShapedArray, **params: Any) -> list[ShapedArray]:
        refuse(("impl" not in params and not has_key_dtype(avals[0]),
                f"{name} takes key array operand, got keys.dtype={avals[0].dtype!r}"))
        axes.check_sizes(name, "shape", params.get("shape", ()))
        return [type_of(*avals, **params)]

    return Primitive(
        name,
        impl=families.by_program(program), abstract_eval=abstract_eval,
        jvp=families.constant_in_all, transpose=cannot("keys and random bits have no tangents."),
        batch=batch,
        handles_keys=True, program=program,
        printed=lambda **params: {name: getattr(x, "tag", x) for name, x in params.items()},
        **rules)


def _example_words(*shape: int) -> np.ndarray:
    count = 2 * math.prod(shape)
    return (np.arange(count, dtype=np.uint32) * np.uint32(2654435769)).reshape(*shape, 2)


def _example_keys(*shape: int) -> ArrayImpl:
    return ArrayImpl(_example_words(*shape), ShapedArray(shape, THREEFRY))


def _on_keys(names: str, *params: tuple) -> Examples:
    """Examples with a key, three keys and no keys, which exist once they are asked for."""
    return lambda: table(names, *((_example_keys(*shape), *row)
                                  for row in params for shape in [(), (3,), (0,)]))()


# ── Words ────────────────────────────────────────────────────────────────────────────────────

def key_words(keys: Array) -> tuple[Array, Array]:
    """The first and the second words of keys."""
    first, second = (slicing.index_in_dim(keys, i, -1, keepdims=False) for i in (0, 1))
    return first, second


def paired(first: Array, second: Array) -> Array:
    """Keys from their first and second words."""
    last = (first.ndim,)
    return concatenate([expand_dims(first, last), expand_dims(second, last)], first.ndim)


def broadcast_words(word: Array, shape: axes.Shape) -> Array:
    """Words of keys, each repeated over new trailing axes."""
    return broadcast_at(word, range(word.ndim), word.shape + shape)


def as_words(x: Array, bit_width: int) -> Array:
    """The same bits in words of another width, the lowest first, a last axis cut or joined."""
    return convert.bitcast_convert_type_p.bind(x, new_dtype=np.dtype(f"uint{bit_width}"))


def number_words(x: Array) -> tuple[Array, Array]:
    """An integer's upper and lower 32 bits; shorter ones are extended by their sign."""
    if dtypes.itemsize_bits(x.dtype) == 64:
        low, high = key_words(as_words(x, 32))
        return high, low
    low = convert.converted(x, np.dtype(np.uint32), False)
    return filled(0, low), low


def original_words(keys: Array, count: int) -> Array:
    """Each key's first `count` words, in the original layout, along a trailing axis.

    Where a key has not as many counters, it is split into one for each block of them.
    """
    blocks, rest = divmod(count, MOST_WORDS)
    if not blocks:
        return _encrypted_counters(keys, count)
    front = keys.shape[:-1]
    each = reshape(original_words(keys, 2 * (blocks + 1)), (*front, blocks + 1, 2))
    full, last = split(each, (blocks, 1), -2)
    drawn = reshape(_encrypted_counters(full, MOST_WORDS), (*front, blocks * MOST_WORDS))
    return concatenate([drawn, _encrypted_counters(reshape(last, (*front, 2)), rest)], len(front))


def _encrypted_counters(keys: Array, count: int) -> Array:
    """The counters 0, 1, … encrypted in pairs, the first half of them with the second.

    An odd count is filled up with a counter 0.
    """
    half = (count + 1) // 2
    first = iota(np.uint32, half)
    second = algebra.add(first, np.uint32(half))
    if count % 2:
        is_last = comparison.eq(second, np.uint32(count))
        second = comparison.select_n(is_last, second, filled(0, second))
    k1, k2 = (broadcast_words(word, (1,)) for word in key_words(keys))
    words = threefry2x32(k1, k2, first, second)
    return slicing.slice_in_dim(concatenate(words, keys.ndim - 1), 0, count, axis=-1)


def partitionable_words(keys: Array, shape: axes.Shape) -> list[Array]:
    """A pair of words for every element of an array of this shape, in the partitionable layout.

    The pair of counters is the element's row-major number, in 64 bits, so that any part of the
    array can be computed by itself.
    """
    count, ones = math.prod(shape), (1,) * len(shape)
    dtype = np.dtype(np.uint32 if count <= 2**32 else np.uint64)
    place = reshape(iota_p.bind(dtype=dtype, shape=(count,), dimension=0), shape)
    k1, k2 = (broadcast_words(word, ones) for word in key_words(keys))
    return threefry2x32(k1, k2, *number_words(place))


# ── random_seed ──────────────────────────────────────────────────────────────────────────────

random_seed_p = key_operation(
    "random_seed",
    program=lambda seeds, impl: paired(*number_words(seeds)),
    type_of=lambda seeds, impl: ShapedArray(seeds.shape, impl),
    examples=table("impl", *((np.array(seeds, dtype), THREEFRY) for seeds, dtype in [
        (0, np.int32), ([-1, 2**31 - 1], np.int32), ([200], np.uint8), ([-3], np.int8),
        ([], np.uint32)])))


# ── random_wrap, random_unwrap, random_clone ─────────────────────────────────────────────────

def _wrap_type(words: ShapedArray, impl: dtypes.KeyType) -> ShapedArray:
    refuse((words.dtype != np.uint32 or words.shape[-1:] != impl.shape, "random_wrap must get "
            f"uint32 words in a trailing axis of shape {impl.shape}, got {words.str_short(True)}"))
    return ShapedArray(words.shape[:-1], impl)


random_wrap_p = key_operation(
    "random_wrap",
    program=lambda words, impl: words,
    type_of=_wrap_type,
    batch=batch_in_front(), sharding=slots.layout("stacked", rank=1),
    examples=table("impl", *((_example_words(*shape), THREEFRY) for shape in [(), (3,), (0,)])))


random_unwrap_p = key_operation(
    "random_unwrap",
    program=lambda words: words,
    type_of=core.physical_aval,
    examples=_on_keys("", ()))


# The same key; to the check of reused keys, another one.
random_clone_p = key_operation(
    "random_clone",
    program=lambda words: words,
    type_of=lambda keys: keys,
    examples=_on_keys("", ()))


# ── random_split ─────────────────────────────────────────────────────────────────────────────

def _split(keys: Array, shape: axes.Shape) -> Array:
    if config.threefry_partitionable.value:
        return paired(*partitionable_words(keys, shape))
    return reshape(original_words(keys, 2 * math.prod(shape)), (*keys.shape[:-1], *shape, 2))


random_split_p = key_operation(
    "random_split",
    program=_split,
    type_of=lambda keys, shape: keys.update(shape=keys.shape + shape),
    examples=_on_keys("shape", ((2,),), ((3, 1),), ((),), ((0,),)),
    consumes_key=True)


# ── random_fold_in ───────────────────────────────────────────────────────────────────────────

random_fold_in_p = key_operation(
    "random_fold_in",
    program=lambda keys, data: paired(*threefry2x32(*key_words(keys), *number_words(data))),
    type_of=lambda keys, data: keys,
    batch=batch_in_front(), sharding=slots.layout("elementwise"),
    examples=lambda: table("", *((_example_keys(*data.shape), data) for data in (
        np.array(7, np.uint32), np.array([0, -1], np.int32), np.zeros(0, np.uint32),
        np.array([255], np.uint8))))())


# ── random_bits ──────────────────────────────────────────────────────────────────────────────

def _bits(keys: Array, bit_width: int, shape: axes.Shape) -> Array:
    if config.threefry_partitionable.value:
        first, second = partitionable_words(keys, shape)
        return (as_words(paired(second, first), 64) if bit_width == 64
                else convert.converted(comparison.bitwise_xor(first, second),
                                       np.dtype(f"uint{bit_width}"), False))
    size = math.prod(shape)
    words = original_words(keys, -(-size * bit_width // 32))
    if bit_width == 64:  # all upper halves come first
        upper, lower = split(words, (size, size), -1)
        words = as_words(paired(lower, upper), 64)
    elif bit_width < 32:
        parts = as_words(words, bit_width)
        parts = reshape(parts, (*words.shape[:-1], math.prod(parts.shape[-2:])))
        words = slicing.slice_in_dim(parts, 0, size, axis=-1)
    return reshape(words, keys.shape[:-1] + shape)


random_bits_p = key_operation(
    "random_bits",
    program=_bits,
    type_of=lambda keys, bit_width, shape: ShapedArray(
        keys.shape + shape, np.dtype(f"uint{bit_width}")),
    examples=_on_keys("bit_width shape", (32, ()), (32, (3,)), (32, (2, 4)), (8, (5,)), (16, (3,)),
                      (32, (0,)), (64, (3,))),
    consumes_key=True)


# ── Comparisons ──────────────────────────────────────────────────────────────────────────────

def _extended_to_keys(compare: Callable[[Any, Any], Any], join: Callable[[Any, Any], Any]
                      ) -> Callable[[Any, Any], Any]:
    """The comparison extended to keys, which are equal when all of their words are."""
    # JAX: the primitive takes keys; here a comparison of keys is one of their words.
    @functools.wraps(compare)
    def function(x: Any, y: Any) -> Any:
        if not all(isinstance(k, Array) and has_key_dtype(k.aval) for k in (x, y)):
            return compare(x, y)
        words = compare(*(random_unwrap_p.bind(k if k.ndim else broadcast(k, x.shape or y.shape))
                          for k in (x, y)))
        return join(words, (words.ndim - 1,))
    return function


eq = _extended_to_keys(comparison.eq, reduce.reduce_and)
ne = _extended_to_keys(comparison.ne, reduce.reduce_or)
