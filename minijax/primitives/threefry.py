"""Sources of random bits: Threefry-2x32, Philox-4x32; and fused multiply-add.

Builds on `core`.  Chapter 16, *Random numbers*.  In JAX: `jax/_src/random/threefry2x32.py`.
Source: Salmon, Moraes, Dror and Shaw, *Parallel Random Numbers: As Easy as 1, 2, 3*, 2011.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from minijax import dtypes
from minijax.core import Array, Primitive, ShapedArray, cannot, refuse
from minijax.primitives import ad_util, families, infix, slots
from minijax.primitives.algebra import add, mul
from minijax.primitives.examples import Examples, table
from minijax.primitives.shape import broadcast_in_dim, broadcast_shapes

# The paper's constants for two words of 32 bits: the rotations of rounds 1-4 and of rounds 5-8,
# which alternate, and the word that makes the third key word (Skein's parity constant).
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA
# And those of Philox for four words: the multipliers of two of them, and the increments of the key
# words from round to round (the fractions of the golden ratio and of the root of three).
FACTORS = (0xD2511F53, 0xCD9E8D57)
STEPS = (0x9E3779B9, 0xBB67AE85)


# ── threefry2x32 ─────────────────────────────────────────────────────────────────────────────

def rounds(k1: Any, k2: Any, x1: Any, x2: Any) -> list[Any]:
    """The twenty rounds, of words of 32 bits.

    Each round mixes the words; after every fourth, key words are added to both.
    """
    keys = (k1, k2, k1 ^ k2 ^ PARITY)
    x1, x2 = x1 + k1, x2 + k2
    for group in range(5):
        for distance in ROTATIONS[group % 2]:
            x1 = x1 + x2
            x2 = (x2 << distance | x2 >> 32 - distance) ^ x1
        x1 = x1 + keys[(group + 1) % 3]
        x2 = x2 + keys[(group + 2) % 3] + (group + 1)
    return [x1, x2]


def block_cipher(name: str, formula: Callable[..., list], count: int, outputs: int,
                 *examples: Iterable, impl: Callable[..., list] | None = None) -> Primitive:
    """A primitive that encrypts words, element by element, by the formula of one block.

    Args:
      count, outputs: how many words it takes, key words first, and how many it gives.
      examples: rows of words.
      impl: the meaning; by default the formula with NumPy's scalar operations.
    """
    def abstract_eval(*words: ShapedArray) -> list[ShapedArray]:
        refuse((len(words) != count or any(word.dtype != np.uint32 for word in words), "Arguments "
                f"to {name} must have uint32 type, got {[word.str_short(True) for word in words]}"),
               (len({word.shape for word in words}) != 1, f"Arguments to {name} must have equal "
                f"shapes, got {[word.shape for word in words]}"))
        return [words[0]] * outputs

    def encrypted(s: Any, *words: Any) -> list[Any]:
        return [word.value for word in formula(*(infix.Number(s, word) for word in words))]

    return Primitive(
        name,
        impl=impl or (lambda *words: encrypted(slots.numpy_scalars(), *words)),
        abstract_eval=abstract_eval,
        jvp=families.constant_in_all,
        transpose=cannot("its words are integers, which have no cotangents."),
        batch=ad_util.batch_in_front(), sharding=slots.layout("elementwise"),
        element=lambda s, index, *words: encrypted(s, *(word(index) for word in words)),
        examples=_arrays(np.uint32, [(0,)] * count, [(2**32 - 1,) * 3] * count, [()] * count,
                         range(count), *examples),
        multiple_results=True)


def _arrays(dtype: Any, *rows: Iterable) -> Examples:
    return table("", *(tuple(np.array(x, dtype) for x in row) for row in rows))


threefry2x32_p = block_cipher(
    "threefry2x32", rounds, 4, 2,
    [(0x13198A2E, 5), (0x03707344, 6), (0x243F6A88, 7), (0x85A308D3, 2**32 - 1)], impl=rounds)


def threefry2x32(k1: Array, k2: Array, x1: Array, x2: Array) -> list[Array]:
    """Encrypt the pair of counters `x1`, `x2` with the key words `k1`, `k2`.

    Args:
      k1, k2, x1, x2: uint32 arrays of shapes that broadcast.

    Returns:
      Two uint32 arrays: random words, the same for the same input.

    >>> import numpy as np
    >>> first, second = threefry2x32(*map(np.uint32, (0, 0, 0, 0)))
    >>> f"{int(first):08x} {int(second):08x}"
    '6b200159 99ba4efe'
    """
    return threefry2x32_p.bind(*_of_one_shape((k1, k2, x1, x2)))


def _of_one_shape(words: Sequence[Array]) -> list[Array]:
    shape = broadcast_shapes(*map(np.shape, words))
    return [x if np.shape(x) == shape else broadcast_in_dim(
        x, shape, range(len(shape) - np.ndim(x), len(shape))) for x in words]


# ── philox4x32 ───────────────────────────────────────────────────────────────────────────────

def philox_rounds(*words: Any) -> list[Any]:
    """The ten rounds, of two key words and four words of a counter.

    Each round multiplies two words by constants and exchanges the halves of the products.
    """
    (k1, k2), (x1, x2, x3, x4) = words[:2], words[2:]
    for _ in range(10):
        one, two = (x.to(np.uint64) * factor for x, factor in zip((x1, x3), FACTORS, strict=True))
        x1, x2 = (two >> 32).to(np.uint32) ^ x2 ^ k1, two.to(np.uint32)
        x3, x4 = (one >> 32).to(np.uint32) ^ x4 ^ k2, one.to(np.uint32)
        k1, k2 = k1 + STEPS[0], k2 + STEPS[1]
    return [x1, x2, x3, x4]


# JAX: has it inside rng_bit_generator alone.
philox4x32_p = block_cipher(
    "philox4x32", philox_rounds, 6, 4,
    [(0xA4093822, 5), (0x299F31D0, 6), (0x243F6A88, 7), (0x85A308D3, 8), (0x13198A2E, 9),
     (0x03707344, 2**32 - 1)])


def philox4x32(*words: Array) -> list[Array]:
    """Encrypt a counter of four words with two key words, which come first.

    >>> import numpy as np
    >>> [f"{int(word):08x}" for word in philox4x32(*[np.uint32(0)] * 6)]
    ['6627e8d5', 'e169c58d', 'bc57ac4c', '9b00dbd8']
    """
    return philox4x32_p.bind(*_of_one_shape(words))


# ── fma ──────────────────────────────────────────────────────────────────────────────────────

# XLA compiles the product and the sum in `uniform` to one instruction with one rounding; to give
# the same bits, programs here say so.
# JAX: writes mul and add, and leaves the fusing to LLVM.
fma_p = families.elementwise(
    "fma", accepts=[slots.FLOAT] * 3,
    derivatives=[lambda t, out, x, y, z: mul(t, y), lambda t, out, x, y, z: mul(x, t),
                 lambda t, out, x, y, z: t],
    transpose=ad_util.transposed(lambda ct, x, y, z: mul(ct, y), lambda ct, x, y, z: mul(x, ct),
                                 lambda ct, x, y, z: ct),
    element=lambda s, x, y, z: s.fma(x, y, z),
    examples=_arrays(
        np.float32, ([1 + 2**-12], [1 + 2**-12], [-1 - 2**-11]), ([], [], []),
        ([[0.5], [-2.0]], [[3.0, 0.1, -1.0]], 0.25),
        ([np.inf, np.nan, -0.0, 3e38], [2, 1, 0, 10], [-1, 1, -0.0, -3e38])))


def fused_multiply_add(x: Any, y: Any, z: Any) -> Array:
    """`x * y + z` with a single rounding, as in compiled programs.

    Args:
      x, y, z: arrays of one float dtype, of shapes that stretch to one.  Shorter floats than
        float32 are multiplied and added in two steps, as XLA does.

    >>> import numpy as np
    >>> fused_multiply_add(np.float32(0.1), np.float32(10), np.float32(-1))
    Array(1.4901161e-08, dtype=float32)
    """
    return add(mul(x, y), z) if dtypes.finfo(dtypes.dtype(x)).bits < 32 else fma_p.bind(x, y, z)
