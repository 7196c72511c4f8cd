"""The exercises of chapter 16, *Random numbers*."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax import errors, random
from minijax.notebook.checks import exercise, expect, near

CHAPTER = "16_random_numbers"
GIVEN = "from minijax import lax, random"


def _without_reuse(fun: Callable, *args: Any) -> Any:
    """What a function gives; its keys must not be consumed twice."""
    try:
        with jax.debug_key_reuse(True):
            return fun(*args)
    except errors.KeyReuseError as error:
        expect(False, f"a key is used twice: line {error.finding.line} "  # type: ignore[attr-defined]
                      "uses one that is used up already")


def grade_round_of(round_of: Callable) -> None:
    out = round_of(1, 2, 13)
    expect(isinstance(out, tuple | list) and len(out) == 2, "return both words, x1 and x2")
    expect(out[0] == 3, "the first word is the sum of both: round_of(1, 2, 13) begins with 3")
    expect(out[1] != 2 << 13 ^ 1, "the second word is mixed with the *new* first word")
    expect(out[1] == 2 << 13 ^ 3, "turn the second word left by 13 bits, then xor it with the "
           f"new first word: {2 << 13 ^ 3}, not {out[1]}")
    large = round_of(2**32 - 1, 2**31 + 5, 17)
    expect(large[0] == 2**31 + 4, "a word has 32 bits: 2**32 - 1 and 1 make 0")
    expect(large[1] < 2**32, "a word has 32 bits: cut off what is pushed out at the left")
    expect(large[1] == ((2**31 + 5 << 17 | 2**31 + 5 >> 15) % 2**32) ^ large[0],
           "what is pushed out at the left comes in again at the right")


exercise(
    "round_of", chapter=CHAPTER, grade=grade_round_of,
    solution="""
def round_of(x1, x2, distance):
    x1 = (x1 + x2) % 2**32
    x2 = (x2 << distance | x2 >> 32 - distance) % 2**32
    return x1, x2 ^ x1
""",
    wrong=[
        ("def round_of(x1, x2, d):\n    x1 = x1 + x2\n    x2 = x2 << d | x2 >> 32 - d\n"
         "    return x1, x2 ^ x1", "2**32 - 1 and 1 make 0"),
        ("def round_of(x1, x2, d):\n    x2n = (x2 << d | x2 >> 32 - d) % 2**32\n"
         "    return (x1 + x2) % 2**32, x2n ^ x1", "new* first word"),
        ("def round_of(x1, x2, d):\n    x1 = (x1 + x2) % 2**32\n"
         "    return x1, (x2 << d) % 2**32 ^ x1", "comes in again"),
        ("def round_of(x1, x2, d):\n    return (x1 + x2) % 2**32", "both words"),
    ],
    hints=["`%` binds more strongly than `+`, `<<`, `|` and `^`: mind the brackets"])


def grade_weights(weights: Callable) -> None:
    out = _without_reuse(weights, random.key(3), [4, 4, 4, 2])
    expect(isinstance(out, list | tuple) and len(out) == 3, "three matrices are wanted: from 4 to "
           "4, from 4 to 4, from 4 to 2")
    shapes = [jnp.shape(w) for w in out]
    expect(shapes == [(4, 4), (4, 4), (4, 2)], f"the shapes are {shapes}")
    expect(not near(out[0], out[1]), "the first two matrices have the same numbers")
    expect(any(bool(jnp.any(w < 0)) for w in out), "normal numbers are wanted: half of them are "
           "negative")
    again = weights(random.key(3), [4, 4, 4, 2])
    expect(near(out[0], again[0]), "the same key should give the same weights")
    other = weights(random.key(4), [4, 4, 4, 2])
    expect(not near(out[0], other[0]), "another key should give other weights")


exercise(
    "weights", chapter=CHAPTER, grade=grade_weights, given=GIVEN,
    solution="""
def weights(key, sizes):
    keys = random.split(key, len(sizes) - 1)
    return [random.normal(k, (m, n)) for k, m, n in zip(keys, sizes, sizes[1:])]
""",
    wrong=[
        ("def weights(key, sizes):\n"
         "    return [random.normal(key, (m, n)) for m, n in zip(sizes, sizes[1:])]",
         "a key is used twice"),
        ("def weights(key, sizes):\n    found = []\n    for m, n in zip(sizes, sizes[1:]):\n"
         "        found.append(random.normal(key, (m, n)))\n"
         "        key, _ = random.split(key)\n    return found", "a key is used twice"),
        ("def weights(key, sizes):\n    return [random.normal(random.key(i), (m, n))\n"
         "            for i, (m, n) in enumerate(zip(sizes, sizes[1:]))]", "another key"),
        ("def weights(key, sizes):\n    keys = random.split(key, len(sizes))\n"
         "    return [random.normal(k, (n, n)) for k, n in zip(keys, sizes)]", "three matrices"),
        ("def weights(key, sizes):\n    keys = random.split(key, len(sizes) - 1)\n"
         "    return [random.uniform(k, (m, n)) for k, m, n in zip(keys, sizes, sizes[1:])]",
         "half of them"),
    ],
    hints=["one `split` can give as many keys as there are matrices",
           "`zip(sizes, sizes[1:])` gives the pairs (4, 3) and (3, 2)"])


def grade_order_of(order_of: Callable) -> None:
    key = random.key(1)
    first = _without_reuse(order_of, key, 0, 20)
    expect(sorted(np.asarray(first).tolist()) == list(range(20)),
           "each of 0, …, 19 should come once")
    expect(near(first, order_of(key, 0, 20)), "asked again for epoch 0, it should be the same")
    expect(not near(first, order_of(key, 1, 20)), "epoch 1 has the order of epoch 0")
    expect(not near(first, order_of(random.key(2), 0, 20)), "another key should give another "
           "order")
    traced = jax.jit(lambda key, epoch: order_of(key, epoch, 20))
    try:
        compiled = traced(key, 5)
    except (errors.ConcretizationTypeError, errors.TracerIntegerConversionError):
        expect(False, "under jit the epoch has no value, so it cannot be a number of keys: fold "
                      "it in")
    expect(near(compiled, order_of(key, 5, 20)), "under jit the order is another one")


exercise(
    "order_of", chapter=CHAPTER, grade=grade_order_of, given=GIVEN,
    solution="""
def order_of(key, epoch, n):
    return random.permutation(random.fold_in(key, epoch), n)
""",
    wrong=[
        ("def order_of(key, epoch, n):\n    return random.permutation(key, n)",
         "has the order of epoch 0"),
        ("def order_of(key, epoch, n):\n    return np.random.permutation(n)", "asked again"),
        ("def order_of(key, epoch, n):\n"
         "    return random.permutation(random.key(epoch), n)", "another key"),
        ("def order_of(key, epoch, n):\n"
         "    return random.permutation(random.split(key, epoch + 1)[epoch], n)", "fold it in"),
    ],
    hints=["a key and a number make a key"])


def grade_steps_of(steps_of: Callable) -> None:
    out = _without_reuse(steps_of, random.key(6), 8)
    expect(not isinstance(out, tuple | list), "`scan` returns two things, the last carry and all "
           "that was given out; one of them is wanted")
    expect(jnp.shape(out) == (8,), "return the 8 places, an array")
    expect(not near(out[0], 0.0), "the place *after* each step is wanted: give out the new one")
    moves = np.diff(np.asarray(out, float))
    expect(not near(moves[1:], moves[:-1]), "each step is as long as the one before: the key "
           "is the same in each turn")
    program = str(jax.make_jaxpr(lambda key: steps_of(key, 8))(random.key(6)))
    expect("scan" in program, "write it with lax.scan, so that the program is as long for a "
           "thousand steps as for eight")
    expect(not near(out, steps_of(random.key(7), 8)), "another key should give another walk")


exercise(
    "steps_of", chapter=CHAPTER, grade=grade_steps_of, given=GIVEN,
    solution="""
def steps_of(key, count):
    def step(place, key):
        place = place + random.normal(key)
        return place, place
    return lax.scan(step, 0.0, random.split(key, count))[1]
""",
    wrong=[
        ("def steps_of(key, count):\n    def step(place, _):\n"
         "        place = place + random.normal(key)\n        return place, place\n"
         "    return lax.scan(step, 0.0, None, length=count)[1]", "a key is used twice"),
        ("def steps_of(key, count):\n    def step(carry, _):\n        place, key = carry\n"
         "        place = place + random.normal(key)\n        return (place, key), place\n"
         "    return lax.scan(step, (0.0, key), None, length=count)[1]", "a key is used twice"),
        ("def steps_of(key, count):\n"
         "    return jnp.cumsum(random.normal(key, (count,)))", "lax.scan"),
        ("def steps_of(key, count):\n    step = random.normal(key)\n"
         "    return lax.scan(lambda place, _: (place + step, place + step), 0.0, None,\n"
         "                    length=count)[1]", "as long as the one before"),
        ("def steps_of(key, count):\n    def step(place, key):\n"
         "        return place + random.normal(key), place\n"
         "    return lax.scan(step, 0.0, random.split(key, count))[1]", "give out the new one"),
        ("def steps_of(key, count):\n    def step(place, key):\n"
         "        place = place + random.normal(key)\n        return place, place\n"
         "    return lax.scan(step, 0.0, random.split(key, count))", "two things"),
    ],
    hints=["run over keys as over any array: lax.scan(step, 0.0, keys)",
           "`step` gets a place and a key, and returns the new place twice"])
