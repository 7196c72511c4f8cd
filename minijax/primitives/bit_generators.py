"""Generators whose key holds their position in the stream: `lax.rng_bit_generator`.

Builds on `random_bits`, `keys`, `shape`.  In JAX: `jax/_src/lax/lax.py`, and the generators are
XLA's; here they are programs over the block functions of Threefry and Philox.
Source: Salmon, Moraes, Dror and Shaw, *Parallel Random Numbers: As Easy as 1, 2, 3*, 2011.
"""

import enum
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core import Array, Axis, Outs, Primitive, ShapedArray, cannot, refuse
from minijax.primitives import ad_util, algebra, comparison, convert, examples, families, threefry
from minijax.primitives.axes import Shape, canonical_shape, check_sizes, replaced
from minijax.primitives.joining import concatenate, stack, unstack
from minijax.primitives.keys import as_words, paired
from minijax.primitives.shape import expand_dims, iota, reshape
from minijax.primitives.slicing import index_leading, part, slice_in_dim

UNSIGNED = tuple(np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64))
KEYS = ((np.dtype(np.uint32), (4,)), (np.dtype(np.uint64), (2,)))


class RandomAlgorithm(enum.IntEnum):
    """The generator of `rng_bit_generator`; the default one is Philox, as of JAX on a CPU."""

    RNG_DEFAULT, RNG_THREE_FRY, RNG_PHILOX = range(3)

    def __str__(self) -> str:
        return self.name


# ── The stream: two key words, then the counter of the next block, lowest word first ─────────

def _plus(number: Array, words: Sequence[Array]) -> list[Array]:
    """The sum of numbers and a multi-word number, with carries."""
    sums = []
    for word in words:
        total = algebra.add(ad_util.broadcast_at(word, (), number.shape), number)
        number = convert.converted(comparison.lt(total, number), np.dtype(np.uint32), False)
        sums.append(total)
    return sums


def _halved(shape: Shape) -> tuple[int, Shape]:
    """The axis along which Threefry's first and second words alternate, and the shape of each.

    It is the first axis of even size, or else the longest.
    """
    even = [d for d, size in enumerate(shape) if size % 2 == 0]
    axis = even[0] if even else shape.index(max(shape))
    return axis, replaced(shape, axis, -(-shape[axis] // 2))


def _blocks(shape: Shape, dtype: np.dtype, algorithm: int) -> int:
    """The number of encrypted counters."""
    wide = dtype.itemsize == 8
    if algorithm == RandomAlgorithm.RNG_THREE_FRY:
        return math.prod(shape if wide or not shape else _halved(shape)[1])
    return -(-math.prod(shape) // (2 if wide else 4))


def _by_threefry(words: Sequence[Array], places: Array, shape: Shape, wide: bool) -> Array:
    first, second = threefry.threefry2x32(*words[:2], *_plus(places, words[2:]))
    if wide:
        return reshape(as_words(paired(first, second), 64), shape)
    whole = shape or (1,)
    axis, half = _halved(whole)
    full = ad_util.merged(stack([reshape(first, half), reshape(second, half)], axis + 1), axis)
    return reshape(slice_in_dim(full, 0, whole[axis], axis=axis), shape)


def _by_philox(words: Sequence[Array], places: Array, shape: Shape, wide: bool) -> Array:
    """The upper words of the counter are the key words, into which it carries."""
    drawn = stack(threefry.philox4x32(*words[:2], *_plus(places, [*words[2:], *words[:2]])), 1)
    drawn = as_words(reshape(drawn, (*places.shape, 2, 2)), 64) if wide else drawn
    return reshape(part(reshape(drawn, (math.prod(drawn.shape),)), 0, math.prod(shape)), shape)


def _draw(key: Array, shape: Shape, dtype: np.dtype, algorithm: int, **_: Any) -> list[Array]:
    """The next key of the stream, and the bits; those of short dtypes are the low ends of words."""
    count = _blocks(shape, dtype, algorithm)
    words = unstack(reshape(key if key.dtype == np.uint32 else as_words(key, 32), (4,)))
    after = stack([*words[:2], *_plus(ad_util.filled(count, words[2]), words[2:])])
    new = after if key.dtype == np.uint32 else as_words(reshape(after, (2, 2)), 64)
    draw = _by_threefry if algorithm == RandomAlgorithm.RNG_THREE_FRY else _by_philox
    refuse((count > 2**32, "rng_bit_generator encrypts at most 2**32 numbers in a call, not "
                           f"{count}: draw in pieces"))
    bits = draw(words, iota(np.uint32, count), shape, dtype.itemsize == 8)
    return [new, convert.converted(bits, dtype, False)]


# ── rng_bit_generator ────────────────────────────────────────────────────────────────────────

def _types(key: ShapedArray, shape: Shape, dtype: np.dtype, **_: Any) -> list[ShapedArray]:
    refuse((dtype not in UNSIGNED, f"rng_bit_generator: unsupported dtype {dtype}"),
           ((key.dtype, key.shape) not in KEYS,  # JAX: fails an assertion, where it compiles
            "rng_bit_generator must get a key of type u32[4] or u64[2], "
            f"got {key.str_short(True)}"))
    check_sizes("rng_bit_generator", "shape", shape)
    return [key, ShapedArray(shape, dtype)]


def _batch(axis: Axis, args: list, dims: list, shape: Shape, **params: Any) -> Outs:
    """As in JAX, the first key draws for the whole batch, and only it advances."""
    [keys] = [ad_util.batch_to(x, d, 0, axis.size) for x, d in zip(args, dims, strict=True)]
    shape = (axis.size, *shape)
    if not axis.size:  # JAX: there is no first one, so it fails
        return [keys, convert.full(shape, 0, params["dtype"])], [0, 0]
    new, bits = rng_bit_generator_p.bind(index_leading(keys, 0), shape=shape, **params)
    return [concatenate([expand_dims(new, (0,)), part(keys, 1, axis.size)], 0), bits], [0, 0]


def _examples() -> examples.Examples:
    keys = [np.array(words, np.uint32) for words in [(1, 2, 3, 4), (5, *[2**32 - 1] * 3)]]
    rows = [(key, shape, np.dtype(dtype), algorithm, None)
            for algorithm in RandomAlgorithm for key, shape, dtype in [
                (keys[0], (3,), np.uint32), (keys[1], (9,), np.uint32), (keys[0], (), np.uint8),
                (keys[1], (2, 5), np.uint16), (keys[0], (0, 3), np.uint32),
                (keys[0].view(np.uint64), (3, 3), np.uint64),
                (keys[1].view(np.uint64), (3, 3), np.uint32)]]
    return examples.table("shape dtype algorithm out_sharding", *rows)


rng_bit_generator_p = Primitive(
    "rng_bit_generator", impl=families.by_program(_draw), abstract_eval=_types,
    jvp=families.constant_in_all,
    transpose=cannot("its key and its bits are integers, which have no cotangents."),
    batch=_batch,
    program=_draw,
    examples=_examples(), multiple_results=True)


def rng_bit_generator(key: Any, shape: Any, dtype: Any = np.uint32,
                      algorithm: int = RandomAlgorithm.RNG_DEFAULT, *, out_sharding: Any = None
                      ) -> tuple[Array, Array]:
    """Random bits, and the next key of the stream; `jax.random` is easier to use.

    Under `vmap`, the first key draws for the whole batch, and only it advances, as in JAX.

    Args:
      key: uint32 of shape (4,) or uint64 of shape (2,): the lower half is the key proper, the upper
        half counts the blocks that were drawn.
      shape: of the bits.
      dtype: uint8, uint16, uint32 or uint64.
      algorithm: one of `RandomAlgorithm`, or its number.
      out_sharding: accepted for JAX's sake.

    Raises:
      TypeError: for a key or a dtype of another kind, or a shape that is none.
      ValueError: for an unknown algorithm.

    >>> rng_bit_generator(np.uint32([1, 2, 3, 4]), (2,))
    (Array([1, 2, 4, 4], dtype=uint32), Array([ 512747620, 1298009047], dtype=uint32))
    """
    # JAX: fails an assertion, where it compiles
    refuse((dtype is None, "dtype must be specified."),
           (algorithm not in list(RandomAlgorithm), "rng_bit_generator: algorithm must be one of "
            f"lax.RandomAlgorithm, got {algorithm!r}"), error=ValueError)
    new, bits = rng_bit_generator_p.bind(
        key, shape=canonical_shape(shape), algorithm=algorithm, out_sharding=None,
        dtype=dtypes.check_user_dtype_supported(dtype, "rng_bit_generator"))
    return new, bits
