"""The exercises of chapter 16, *Random numbers*."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax import errors, random
from minijax.notebook.checks import agree, exercise, expect, near, numbers, shown

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


def _round(x1: int, x2: int, distance: int) -> tuple[int, int]:
    x1, x2 = (x1 + x2) % 2**32, (x2 << distance | x2 >> 32 - distance) % 2**32
    return x1, x2 ^ x1


def grade_round_of(round_of: Callable) -> None:
    random = np.random.default_rng(0)
    for x1, x2 in ((1, 2), (2**32 - 1, 2**31 + 5), *random.integers(0, 2**32, (20, 2)).tolist()):
        for distance in (13, 15, 26, 6):
            wanted, out = _round(x1, x2, distance), round_of(x1, x2, distance)
            told = f"round_of({x1}, {x2}, {distance}) should be {wanted}, and yours is {out}\n"
            expect(isinstance(out, tuple | list) and len(out) == 2,
                   told + "return both words, x1 and x2")
            expect(tuple(out) != (wanted[0], wanted[1] ^ wanted[0] ^ x1),
                   told + "the second word is mixed with the *new* first word")
            expect(out[0] == wanted[0], told + "the first word is the sum of both, and has 32 "
                   "bits: 2**32 - 1 and 1 make 0")
            lost = (x2 << distance) % 2**32 ^ wanted[0]
            expect(out[1] == wanted[1] or out[1] != lost,
                   told + "what is pushed out at the left comes in again at the right")
            expect(out[1] < 2**32, told + "a word has 32 bits: cut off what is pushed out at the "
                   "left")
            expect(tuple(out) == wanted, told + f"rotate the second word to the left by {distance} "
                   "bits, then xor it with the new first word")


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
    for sizes in ([4, 4, 4, 2], [3, 5], [2, 6, 2]):
        wanted = list(zip(sizes, sizes[1:], strict=False))
        out = _without_reuse(weights, random.key(3), sizes)
        shapes = [jnp.shape(w) for w in out] if isinstance(out, list | tuple) else "no list"
        expect(shapes == wanted, f"for the sizes {sizes} the shapes should be {wanted}, and yours "
               f"are {shapes}\na matrix is wanted for each pair of neighbouring sizes")
    out = weights(random.key(3), [4, 4, 4, 2])
    told = f"for random.key(3) and the sizes [4, 4, 4, 2] the first rows are {shown(out[0][0])}"
    expect(not near(out[0], out[1]), f"{told} and {shown(out[1][0])}\nthe first two matrices "
           "have the same numbers")
    every = np.concatenate([np.ravel(w) for w in out])
    expect((every < 0).any(), f"{told}, and no number is negative\nnormal numbers are wanted: half "
           "of them are negative")
    again, other = weights(random.key(3), [4, 4, 4, 2]), weights(random.key(4), [4, 4, 4, 2])
    expect(near(out[0], again[0]), f"{told}, and asked again {shown(again[0][0])}\nthe same key "
           "should give the same weights")
    expect(not near(out[0], other[0]), f"{told}, and for random.key(4) as well\nanother key should "
           "give other weights")


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
         "    return [random.normal(k, (n, n)) for k, n in zip(keys, sizes)]",
         "neighbouring sizes"),
        ("def weights(key, sizes):\n    keys = random.split(key, len(sizes) - 1)\n"
         "    return [random.uniform(k, (m, n)) for k, m, n in zip(keys, sizes, sizes[1:])]",
         "half of them"),
    ],
    hints=["one `split` can give as many keys as there are matrices",
           "`zip(sizes, sizes[1:])` gives the pairs (4, 3) and (3, 2)"])


def grade_order_of(order_of: Callable) -> None:
    key = random.key(1)
    first = np.asarray(numbers(_without_reuse(order_of, key, 0, 8)))
    told = f"for epoch 0 of 8 examples yours is {shown(first)}"
    expect(sorted(first.tolist()) == list(range(8)), f"{told}\neach of 0, …, 7 should come once")
    again = order_of(key, 0, 8)
    expect(near(first, again), f"{told}, and then {shown(again)}\nasked again for epoch 0, it "
           "should be the same")
    orders = {tuple(np.asarray(order_of(key, epoch, 8)).tolist()) for epoch in range(6)}
    expect(len(orders) > 1, f"{told}, and so it is for epochs 1 to 5\nepoch 1 has the order of "
           "epoch 0")
    expect(len(orders) > 4, f"of six epochs only {len(orders)} differ\neach epoch should have an "
           "order of its own")
    others = [np.asarray(order_of(random.key(seed), 0, 8)) for seed in (2, 3, 4)]
    expect(not all(near(first, other) for other in others), f"{told}, for each of the keys 1 to 4\n"
           "another key should give another order")
    traced = jax.jit(lambda key, epoch: order_of(key, epoch, 8))
    for epoch in range(6):
        try:
            compiled = traced(key, epoch)
        except (errors.ConcretizationTypeError, errors.TracerIntegerConversionError):
            expect(False, "under jit the epoch has no value, so it cannot be a number of keys: "
                          "fold it in")
        agree(f"epoch {epoch} of 8 examples, under jit,", compiled, order_of(key, epoch, 8),
              "under jit the order is another one")


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
    told = f"for random.key(6) and 8 steps yours is {shown(out)}\n"
    expect(jnp.shape(out) == (8,), told + "return the 8 places, an array")
    expect(not near(out[0], 0.0), told + "the place *after* each step is wanted: give out the new "
           "one")
    moves = np.diff(np.asarray(out, float))
    expect(not near(moves[1:], moves[:-1]), told + "each step is as long as the one before: the "
           "key is the same in each round")
    many = np.diff(np.asarray(steps_of(random.key(6), 40)))
    expect((many < 0).any() and (many > 0).any(), told + "it goes in one direction only: normal "
           "steps go both ways")
    program = str(jax.make_jaxpr(lambda key: steps_of(key, 8))(random.key(6)))
    expect("scan" in program, "write it with lax.scan, so that the program is as long for a "
           "thousand steps as for eight")
    lengths = {count: jnp.shape(steps_of(random.key(6), count)) for count in (1, 3)}
    expect(lengths == {1: (1,), 3: (3,)}, f"for 1 and 3 steps the shapes are {lengths}")
    expect(not near(out, steps_of(random.key(7), 8)), told + "and so it is for random.key(7): "
           "another key should give another walk")


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
        ("def steps_of(key, count):\n    def step(place, key):\n"
         "        place = place + random.uniform(key)\n        return place, place\n"
         "    return lax.scan(step, 0.0, random.split(key, count))[1]", "go both ways"),
    ],
    hints=["run over keys as over any array: lax.scan(step, 0.0, keys)",
           "`step` gets a place and a key, and returns the new place twice"])
