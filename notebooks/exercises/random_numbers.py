"""The exercises of chapter 16, *Random numbers*."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax import errors, random
from minijax.notebook.checks import agree, exercise, expect, instead_of, near, numbers, shown
from minijax.primitives.threefry import rounds

CHAPTER = "16_random_numbers"
GIVEN = "from minijax import lax, random"


def _without_reuse(inputs: str, fun: Callable, *args: Any) -> Any:
    """The result of a function; a hint where it uses a key twice."""
    try:
        with jax.debug_key_reuse(True):
            return fun(*args)
    except errors.KeyReuseError as error:
        line = error.finding.line  # type: ignore[attr-defined]
        expect(False, f"for {inputs} each key may be used once, and yours uses one again in "
                      f"line {line}")


# -- round_of --------------------------------------------------------------------------------------

def _round(x1: int, x2: int, distance: int) -> tuple[int, int]:
    x1, x2 = (x1 + x2) % 2**32, (x2 << distance | x2 >> 32 - distance) % 2**32
    return x1, x2 ^ x1


def grade_round_of(round_of: Callable) -> None:
    random = np.random.default_rng(0)
    for x1, x2 in ((1, 2), (2**32 - 1, 2**31 + 5), *random.integers(0, 2**32, (20, 2)).tolist()):
        for distance in (13, 15, 26, 6):
            expected, out = _round(x1, x2, distance), round_of(x1, x2, distance)
            message = f"round_of({x1}, {x2}, {distance}) should be {expected}, and yours is {out}\n"
            expect(isinstance(out, tuple | list) and len(out) == 2,
                   message + "return both words, x1 and x2")
            expect(tuple(out) != (expected[0], expected[1] ^ expected[0] ^ x1),
                   message + "the second word is mixed with the *new* first word")
            expect(out[0] == expected[0], message + "the first word is the sum of both, and has 32 "
                   "bits: 2**32 - 1 and 1 make 0")
            lost = (x2 << distance) % 2**32 ^ expected[0]
            expect(out[1] == expected[1] or out[1] != lost,
                   message + "what is pushed out at the left comes in again at the right")
            expect(out[1] < 2**32, message + "a word has 32 bits: cut off what is pushed out at "
                   "the left")
            expect(tuple(out) == expected, message + f"rotate the second word to the left by "
                   f"{distance} bits, then xor it with the new first word")
    for distance in range(1, 32):
        expected, out = _round(x1, x2, distance), round_of(x1, x2, distance)
        expect(tuple(out) == expected, f"round_of({x1}, {x2}, {distance}) should be {expected}, "
               f"and yours is {out}\nthe distance may be any number from 1 to 31")


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
        ("def round_of(x1, x2, d):\n    x1 = (x1 + x2) % 2**32\n"
         "    return x1, (x2 << d % 31 | x2 >> 32 - d) % 2**32 ^ x1", "any number from 1 to 31"),
    ],
    hints=["`%` binds more strongly than `+`, `<<`, `|` and `^`: mind the parentheses"])


# -- word_at ---------------------------------------------------------------------------------------

def _pair(key: Any, high: int, low: int) -> tuple[int, int]:
    words = (np.array([word], np.uint32) for word in (*random.key_data(key), high, low))
    first, second = rounds(*words)
    return int(first[0]), int(second[0])


def grade_word_at(word_at: Callable) -> None:
    cases = np.random.default_rng(0).integers(0, 100, (12, 2)).tolist()
    for seed, place in ((0, 3), (1, 0), *cases):
        key = random.key(seed)
        first, second = _pair(key, 0, place)
        turned = _pair(key, place, 0)
        backwards = _pair(random.wrap_key_data(random.key_data(key)[::-1]), 0, place)
        inputs = f"random.key({seed}) and place {place}"
        with instead_of(TypeError, "uint32", f"for {inputs} the answer is {first ^ second}, and "
                        "yours raised TypeError\nthe words of the counter must be `uint32`s, as "
                        "those of the key are"):
            result = numbers(word_at(key, place))
        agree(inputs, result, first ^ second,
              (np.shape(result) == (2,), "two words come out of Threefry; their xor is expected"),
              (near(result, turned[0] ^ turned[1], 0), "the number of the place is the *second* "
               "word of the counter; the first is 0, until there are more than 2**32 places"),
              (near(result, backwards[0] ^ backwards[1], 0) and seed, "the first word of the key "
               "is the first argument, and the second one the second"),
              (near(result, first, 0) or near(result, second, 0), "two words come out; take the "
               "xor (`^`) of both"),
              (near(result, (first + second) % 2**32, 0), "the xor is expected, not the sum"),
              "the counter has two words, 0 and the place", tolerance=0)
    program = str(jax.make_jaxpr(lambda key: word_at(key, 10**6))(random.key(0)))
    expect("100000" not in program.replace("1000000:", ""), "right, but for place 1000000 your "
           "program has an array of 1000001 words, and 1 is expected: encrypt the one counter")
    key = random.split(random.key(1))[0]
    first, second = _pair(key, 0, 5)
    agree("the first key of random.split(random.key(1)) and place 5", word_at(key, 5),
          first ^ second, "the first word of a key need not be 0", tolerance=0)
    first, second = _pair(random.key(0), 0, 2**31 + 70000)
    agree("random.key(0) and place 2147553648", word_at(random.key(0), 2**31 + 70000),
          first ^ second, "places go up to 2**32 - 1", tolerance=0)


_WORD_AT = """
def word_at(key, place):
    k1, k2 = random.key_data(key)
    first, second = threefry2x32(k1, k2, {})
    return {}
"""
_COUNTER = "jnp.uint32(0), jnp.uint32(place)"

exercise(
    "word_at", chapter=CHAPTER, grade=grade_word_at,
    given=GIVEN + "\nfrom minijax.primitives.threefry import threefry2x32",
    solution=_WORD_AT.format(_COUNTER, "first ^ second"),
    wrong=[
        (_WORD_AT.format("jnp.uint32(place), jnp.uint32(0)", "first ^ second"),
         "the *second* word of the counter"),
        (_WORD_AT.format(_COUNTER, "first"), "two words come out"),
        (_WORD_AT.format(_COUNTER, "first ^ second").replace("(k1,", "(jnp.uint32(0),"),
         "need not be 0"),
        (_WORD_AT.format(_COUNTER, "first + second"), "not the sum"),
        (_WORD_AT.format("jnp.uint32(0), jnp.uint32(place & 0xffff)", "first ^ second"),
         "places go up to"),
        (_WORD_AT.format(_COUNTER, "jnp.stack([first, second])"), "their xor is expected"),
        (_WORD_AT.format("0, place", "first ^ second"), "must be `uint32`s"),
        ("def word_at(key, place):\n    return random.bits(key, (place + 1,))[place]",
         "for random.key(0) and place 3 the answer is"),
        ("def word_at(key, place):\n    with jax.threefry_partitionable(True):\n"
         "        return random.bits(key, (place + 1,))[place]", "encrypt the one counter"),
    ],
    afterthought="place 4294967295 costs no more than place 0",
    hints=["`random.key_data(key)` gives the two words of the key",
           "`threefry2x32` needs `uint32`s: `jnp.uint32(place)`"])


# -- waiting ---------------------------------------------------------------------------------------

def grade_waiting(waiting: Callable) -> None:
    shares = np.array([0.5, 0.0, 0.75, 1 - 2.0**-23, *np.random.default_rng(0).uniform(0, 1, 12)],
                      np.float32)
    for u in shares:
        result = numbers(waiting(jnp.asarray(u)))
        expected = -np.log1p(-float(u))
        agree(f"u = {u:.9g}", result, expected,
              (near(result, -expected), "a time is positive: mind the sign"),
              (u == 0 and result > 5, "u can be 0, and never is 1: which of the two should the "
               "logarithm not see?"),
              (near(result, 1 - np.exp(-float(u))), "that is the share for a time of u; solve for "
               "the time"),
              "the share that has come by the time t is 1 - exp(-t); solve for t")
    inputs, expected = shown(shares[:3]), -np.log1p(-shares[:3].astype(float))
    with instead_of(TypeError, "scalar", f"for the array {inputs} the answer is {shown(expected)}, "
                    "and yours raised TypeError\nright for one number, but not for an array"):
        result = waiting(jnp.asarray(shares[:3]))
    agree(f"the array {inputs}", result, expected, "right for one number, but not for an array")


exercise(
    "waiting", chapter=CHAPTER, grade=grade_waiting,
    solution="def waiting(u):\n    return -jnp.log(1 - u)",
    wrong=[
        ("def waiting(u):\n    return -jnp.log(u)", "u can be 0"),
        ("def waiting(u):\n    return jnp.log(1 - u)", "mind the sign"),
        ("def waiting(u):\n    return 1 - jnp.exp(-u)", "solve for the time"),
        ("def waiting(u):\n    return -jnp.log(jnp.where(u > 0, u, 1e-7))",
         "should the logarithm not see"),
        ("def waiting(u):\n    return -np.log(1 - float(u))", "but not for an array"),
    ],
    afterthought="`-jnp.log1p(-u)` keeps more digits where u is small; `random.exponential` has it",
    hints=["from u = 1 - exp(-t) follows exp(-t) = 1 - u"])


# -- two_dice --------------------------------------------------------------------------------------

def grade_two_dice(two_dice: Callable) -> None:
    inputs = "random.key(3) and 3000 throws"
    out = np.asarray(numbers(two_dice(random.key(3), 3000)))
    expect(out.shape == (3000,), f"for {inputs} the shape is (3000,), and yours is {out.shape}\n"
           "one sum for each throw is expected")
    expect(out.dtype.kind in "iu", f"for {inputs} whole numbers are expected, and yours have the "
           f"dtype {out.dtype}: `randint` draws integers")
    message = f"for {inputs} yours begins with {shown(out[:8])}\n"
    expect((out % 2).any(), message + "all 3000 sums are even, and half of them should be odd: "
           "both dice show the same: one of them counts twice, or both are thrown with one key")
    expect(out.min() >= 2 and out.max() <= 12, f"for {inputs} the sums should lie from 2 to 12, "
           f"and yours lie from {out.min()} to {out.max()}\na die has the numbers 1 to 6")
    counts = np.bincount(out, minlength=13)
    expect(out.max() == 12, f"for {inputs} 12 should come about 83 times, and yours has it 0 "
           "times: " + ("`randint` leaves out its upper end, as `range` does" if out.max() == 10
                        else "each throw should have two numbers from 1 to 6 of its own"))
    expect(430 < counts[7] < 570, f"for {inputs} 7 should come about 500 times, and yours has it "
           f"{counts[7]} times: not all sums are equally likely")
    many = np.bincount(two_dice(random.key(3), 300_000), minlength=13)
    for total in range(2, 13):
        chance = 300_000 * (6 - abs(total - 7)) / 36
        expect(abs(many[total] - chance) < 5 * chance**0.5, f"for random.key(3) and 300000 throws "
               f"{total} should come about {chance:.0f} times, and yours has it {many[total]} "
               "times: each number of a die is equally likely")
    centred = out - out.mean()
    for other, where in ((np.roll(centred, 1), "next to it"), (np.roll(centred, 2), "two places "
                          "away"), (np.roll(centred, 1500), "1500 places away"),
                         (centred[::-1], "as far from the other end")):
        linked = float(np.mean(centred * other) / np.mean(centred**2))
        expect(abs(linked) < 0.12, message + f"each sum is linked with the one {where} "
               f"(correlation {linked:.2f}): no die should be in two throws")
    _without_reuse(inputs, two_dice, random.key(3), 3000)
    expect(not near(out, two_dice(random.key(4), 3000)), message + "and so it does for "
           "random.key(4): another key should give other throws")
    agree(inputs, two_dice(random.key(3), 3000), out, "the same key should give the same throws")


_TWO_DICE = """
def two_dice(key, count):
    first, second = random.split(key)
    return random.randint(first, (count,), 1, {}) + random.randint(second, (count,), 1, {})
"""

exercise(
    "two_dice", chapter=CHAPTER, grade=grade_two_dice, given=GIVEN,
    solution=_TWO_DICE.format(7, 7),
    wrong=[
        ("def two_dice(key, count):\n    first = random.randint(key, (count,), 1, 7)\n"
         "    return first + jnp.roll(first, 1)", "no die should be in two throws"),
        ("def two_dice(key, count):\n    first = random.randint(key, (count,), 1, 7)\n"
         "    return first + first[::-1]", "no die should be in two throws"),
        ("def two_dice(key, count):\n    sums = 7 + 2.415 * random.normal(key, (count,))\n"
         "    return jnp.clip(jnp.round(sums), 2, 12).astype(int)", "is equally likely"),
        ("def two_dice(key, count):\n"
         "    both = random.uniform(key, (2, count), minval=1, maxval=6)\n"
         "    return jnp.round(both).astype(int).sum(0)", "is equally likely"),
        (_TWO_DICE.format(7, 7).replace("second, (count,)", "second, ()"), "of its own"),
        ("def two_dice(key, count):\n    return (random.randint(key, (count,), 1, 7)\n"
         "            + random.randint(key, (count,), 1, 7))", "all 3000 sums are even"),
        (_TWO_DICE.format(6, 6), "leaves out its upper end"),
        ("def two_dice(key, count):\n    return random.randint(key, (count,), 2, 13)",
         "not all sums are equally likely"),
        ("def two_dice(key, count):\n    second, _ = random.split(key)\n"
         "    return (random.randint(key, (count,), 1, 7)\n"
         "            + random.randint(second, (count,), 1, 7))", "each key may be used once"),
        ("def two_dice(key, count):\n"
         "    return random.randint(key, (2, count), 1, 7)", "one sum for each throw"),
        ("def two_dice(key, count):\n    first, second = random.split(random.key(0))\n"
         "    return (random.randint(first, (count,), 1, 7)\n"
         "            + random.randint(second, (count,), 1, 7))", "another key"),
        ("def two_dice(key, count):\n    both = random.uniform(key, (2, count), minval=1, maxval=7)"
         "\n    return both.sum(0)", "draws integers"),
    ],
    hints=["a key for each die"])


# -- order_of --------------------------------------------------------------------------------------

def grade_order_of(order_of: Callable) -> None:
    key = random.key(1)
    first = np.asarray(numbers(_without_reuse("random.key(1), epoch 0 and 8 examples", order_of,
                                              key, 0, 8)))
    message = f"for epoch 0 of 8 examples yours is {shown(first)}"
    expect(sorted(first.tolist()) == list(range(8)), f"{message}\neach of 0, …, 7 should come once")
    again = order_of(key, 0, 8)
    expect(near(first, again), f"{message}, and then {shown(again)}\nasked again for epoch 0, it "
           "should be the same")
    orders = {tuple(np.asarray(order_of(key, epoch, 8)).tolist()) for epoch in range(6)}
    expect(len(orders) > 1, f"{message}, and so it is for epochs 1 to 5\nepoch 1 has the order of "
           "epoch 0")
    expect(len(orders) > 4, f"epochs 0 to 5 should have 6 orders, and yours have {len(orders)}\n"
           "each epoch should have an order of its own")
    turned = {order[(k := order.index(0)):] + order[:k] for order in orders}
    expect(len(turned) > 1, "the orders of epochs 0 to 5 differ only in where they begin: each "
           "should be drawn anew")
    others = [np.asarray(order_of(random.key(seed), 0, 8)) for seed in (2, 3, 4)]
    expect(not all(near(first, other) for other in others),
           f"{message}, for each of the keys 1 to 4\n"
           "another key should give another order")
    traced = jax.jit(lambda key, epoch: order_of(key, epoch, 8))
    for epoch in range(6):
        expected = order_of(key, epoch, 8)
        try:
            compiled = traced(key, epoch)
        except (errors.ConcretizationTypeError, errors.TracerIntegerConversionError) as error:
            expect(False, f"for epoch {epoch} of 8 examples, under jit, the answer is "
                          f"{shown(expected)}, and yours raised {type(error).__name__}\nunder jit "
                          "the epoch has no value, so it cannot be a number of keys: fold it in")
        agree(f"epoch {epoch} of 8 examples, under jit,", compiled, expected,
              "under jit the order is another one")
    later = {tuple(np.asarray(traced(key, epoch)).tolist()) for epoch in (999, 10**6, 10**6 + 1)}
    again = 3 + len(orders) - len(later | orders)
    expect(again == 0, "epochs 999, 1,000,000 and 1,000,001 should have new orders, and in yours "
           f"{again} of them has been there before\nthere is no last epoch: a key and any number "
           "make a new key")


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
        ("def order_of(key, epoch, n):\n"
         "    return random.permutation(random.split(key, 1000)[epoch], n)", "no last epoch"),
        ("def order_of(key, epoch, n):\n"
         "    return random.permutation(random.fold_in(key, epoch % 7), n)", "no last epoch"),
        ("def order_of(key, epoch, n):\n"
         "    return jnp.roll(random.permutation(key, n), epoch)", "where they begin"),
    ],
    hints=["a key and a number make a key"])


# -- rows_of ---------------------------------------------------------------------------------------

def grade_rows_of(rows_of: Callable) -> None:
    key = random.key(8)
    few = np.asarray(numbers(_without_reuse("random.key(8), 3 rows of 4", rows_of, key, 3, 4)))
    expect(few.shape == (3, 4), f"for random.key(8), 3 rows of 4, the shape is (3, 4), and yours "
           f"is {few.shape}")
    expect(not near(few[0], few[1]), f"for random.key(8) yours has the rows {shown(few[0])} and "
           f"{shown(few[1])}\neach row should have numbers of its own")
    for count in (1, 2, 4, 5, 9):
        more = np.asarray(rows_of(key, count, 4))
        expect(more.shape == (count, 4), f"for random.key(8), {count} rows of 4, the shape is "
               f"{(count, 4)}, and yours is {more.shape}")
        for k in range(min(count, 3)):
            expect(near(more[k], few[k]), f"for random.key(8) row {k} of 3 is {shown(few[k])}, and "
                   f"yours, if there are {count}, is {shown(more[k])}\nthe number of rows should "
                   "not matter for a row: which way to make keys knows nothing about how many "
                   "there will be?")
    spent = np.asarray(random.normal(key, (4,)))
    expect(not any(near(row, spent) for row in few), f"for random.key(8) a row is {shown(spent)}, "
           "the numbers of the key itself, from which the others' keys are made: a key is either "
           "split, or spent on numbers")
    every = np.asarray(rows_of(key, 400, 4))
    expect(every.shape == (400, 4), f"for random.key(8), 400 rows of 4, the shape is (400, 4), and "
           f"yours is {every.shape}: there is no largest number of rows")
    for count, width in ((2000, 2), (3, 7)):
        shape = jax.eval_shape(lambda key, n=count, m=width: rows_of(key, n, m), key).shape
        expect(shape == (count, width), f"for random.key(8), {count} rows of {width}, the shape is "
               f"{(count, width)}, and yours is {shape}: any number of rows, of any width")
    expect((every < 0).any(), f"for random.key(8) and 400 rows no number is negative, and the "
           f"smallest of yours is {every.min():.3g}\nnormal numbers are expected: half of them are "
           "negative")
    expect(len(np.unique(every[0])) > 1, f"for random.key(8) the numbers of a row are all the "
           f"same, {shown(every[0])}: a row has several numbers")
    mean, variance = every.mean(), every.var()
    expect(abs(mean) < 0.13 and abs(variance - 1) < 0.18, "for random.key(8) and 400 rows of 4 the "
           f"mean is {mean:.2f} and the variance {variance:.2f}: those of normal numbers are 0 and "
           "1")
    fourth = np.mean((every - mean)**4) / variance**2
    expect(abs(fourth - 3) < 0.7, f"for random.key(8) and 400 rows of 4 the mean fourth power is "
           f"{fourth:.1f}, and of normal numbers it is 3: another distribution")
    distinct = len(np.unique(every))
    expect(distinct > 1580, f"for random.key(8) and 400 rows of 4 there should be 1600 numbers, "
           f"and yours has {distinct} different ones: two rows have a key in common")
    expect(not near(few, rows_of(random.key(9), 3, 4)), "for random.key(8) and random.key(9) yours "
           f"has the same rows, {shown(few[0])} first: another key should give other numbers")


exercise(
    "rows_of", chapter=CHAPTER, grade=grade_rows_of, given=GIVEN,
    solution="""
def rows_of(key, count, width):
    def row(i):
        return random.normal(random.fold_in(key, i), (width,))
    return jax.vmap(row)(jnp.arange(count))
""",
    wrong=[
        ("def rows_of(key, count, width):\n    return random.normal(key, (count, width))",
         "should not matter"),
        ("def rows_of(key, count, width):\n    keys = random.split(key, count)\n"
         "    return jax.vmap(lambda key: random.normal(key, (width,)))(keys)",
         "should not matter"),
        ("def rows_of(key, count, width):\n"
         "    return jnp.tile(random.normal(key, (width,)), (count, 1))", "of its own"),
        ("def rows_of(key, count, width):\n"
         "    return jax.vmap(lambda i: random.normal(random.key(i), (width,)))("
         "jnp.arange(count))", "another key"),
        ("def rows_of(key, count, width):\n"
         "    return jax.vmap(lambda i: random.uniform(random.fold_in(key, i), (width,)))("
         "jnp.arange(count))", "half of them"),
        ("def rows_of(key, count, width):\n    rows = []\n    for _ in range(count):\n"
         "        rows.append(random.normal(key, (width,)))\n    return jnp.stack(rows)",
         "each key may be used once"),
        ("def rows_of(key, count, width):\n"
         "    keys = [key, *(random.fold_in(key, i) for i in range(1, count))]\n"
         "    return jnp.stack([random.normal(key, (width,)) for key in keys])",
         "the numbers of the key itself"),
        ("def rows_of(key, count, width):\n    return jax.vmap(lambda i: 2 * random.normal("
         "random.fold_in(key, i), (width,)))(jnp.arange(count))", "those of normal numbers"),
        ("def rows_of(key, count, width):\n    return jax.vmap(lambda i: 0.5**0.5 * random.laplace("
         "random.fold_in(key, i), (width,)))(jnp.arange(count))", "another distribution"),
        ("def rows_of(key, count, width):\n    return jax.vmap(lambda i: jnp.full(width, "
         "random.normal(random.fold_in(key, i))))(jnp.arange(count))", "are all the same"),
        ("def rows_of(key, count, width):\n    return random.normal(key, (1000, width))[:count]",
         "for random.key(8), 2000 rows"),
        ("def rows_of(key, count, width):\n    return jax.vmap(lambda i: random.normal("
         "random.fold_in(key, i), (4,)))(jnp.arange(count))", "of any width"),
        ("def rows_of(key, count, width):\n    keys = random.split(key, 300)[:count]\n"
         "    return jax.vmap(lambda key: random.normal(key, (width,)))(keys)",
         "no largest number of rows"),
    ],
    right=["def rows_of(key, count, width):\n    rows = []\n    for _ in range(count):\n"
           "        key, now = random.split(key)\n"
           "        rows.append(random.normal(now, (width,)))\n    return jnp.stack(rows)"],
    hints=["row i can have a key of its own, made from `key` and i"])


# -- steps_of --------------------------------------------------------------------------------------

def grade_steps_of(steps_of: Callable) -> None:
    inputs = "random.key(6) and 8 steps"
    out = _without_reuse(inputs, steps_of, random.key(6), 8)
    expect(not isinstance(out, tuple | list), f"for {inputs} an array of shape (8,) is expected, "
           "and yours is a pair: `scan` returns two things, the last carry and the stacked "
           "results of all rounds")
    message = f"for {inputs} yours is {shown(out)}\n"
    expect(jnp.shape(out) == (8,), message + "return the 8 places, an array")
    expect(not near(out[0], 0.0), message + "the place *after* each step is expected: give out the "
           "new one")
    moves = np.diff(np.asarray(out, float))
    expect(not near(moves[1:], moves[:-1]), message + "each step is as long as the one before: the "
           "key is the same in each round")
    many = np.diff(np.asarray(steps_of(random.key(6), 40)))
    expect((many < 0).any() and (many > 0).any(), message + "it goes in one direction only: normal "
           "steps go both ways")
    moves = abs(np.diff(np.asarray(steps_of(random.key(6), 400))))
    expect((moves > 2).any() and (moves < 0.5).any() or moves.var() > 1.5, message + "of 400 "
           f"normal steps some twenty are longer than 2, and yours are between {moves.min():.3g} "
           f"and {moves.max():.3g} long: another distribution")
    spread = np.var(np.diff(np.asarray(steps_of(random.key(6), 400))))
    expect(spread < 1.5, message + f"of 400 steps the variance should be about 1, and is "
           f"{spread:.1f}: these are the steps, and not their sums, or the steps are too long")
    program = jax.make_jaxpr(lambda key: steps_of(key, 8))(random.key(6))
    names = sorted({eqn.primitive.name for eqn in program.eqns})
    expect("scan[" in str(program), f"for {inputs} the program should have a `scan`, and yours has "
           f"{', '.join(names)}\nright, but write it with lax.scan this time")
    lengths = {count: jnp.shape(steps_of(random.key(6), count)) for count in (1, 3)}
    expect(lengths == {1: (1,), 3: (3,)}, f"for 1 and 3 steps the shapes are (1,) and (3,), and "
           f"yours are {lengths[1]} and {lengths[3]}")
    expect(not near(out, steps_of(random.key(7), 8)), message + "and so it is for random.key(7): "
           "another key should give another walk")
    firsts = jax.vmap(lambda key: steps_of(key, 1))(random.split(random.key(5), 400))
    first, varied = float(np.mean(firsts[:60])), float(np.var(firsts))
    expect(0.7 < varied < 1.4, "of 400 keys the places after one step have the variance "
           f"{varied:.1f}, and one normal step from 0 has 1: where does your walk begin?")
    expect(abs(first) < 0.6, f"of 60 keys the places after one step are on average {first:.1f}: a "
           "walk begins at 0, from where a step goes as often up as down")
    places = np.asarray(steps_of(random.key(8), 20_000), float)
    moves = np.diff(places)
    linked = float(np.corrcoef(moves, places[:-1])[0, 1])
    expect(abs(linked) < 0.05, "of 20000 steps each is linked with the place from which it starts "
           f"(correlation {linked:.2f}): a step should not depend on that")
    told = f"of 20000 steps the mean is {moves.mean():.2f} and the variance {moves.var():.2f}"
    expect(abs(moves.mean()) < 0.04 and abs(moves.var() - 1) < 0.06, told + ": those of normal "
           "steps are 0 and 1")


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
        ("def steps_of(key, count):\n    def step(carry, _):\n        place, key = carry\n"
         "        key, sub = random.split(key)\n        place = place + random.normal(sub)\n"
         "        return (place, key), place\n    first, rest = random.split(key)\n"
         "    start = random.normal(first), rest\n"
         "    return lax.scan(step, start, None, length=count)[1]", "where does your walk begin"),
        ("def steps_of(key, count):\n    def step(place, key):\n"
         "        place = place + random.normal(key)\n        return place, place\n"
         "    return lax.scan(step, 1.0, random.split(key, count))[1]", "a walk begins at 0"),
        ("def steps_of(key, count):\n    def step(place, key):\n"
         "        place = 0.9 * place + random.normal(key)\n        return place, place\n"
         "    return lax.scan(step, 0.0, random.split(key, count))[1]", "should not depend on"),
        ("def steps_of(key, count):\n    def step(place, key):\n"
         "        place = place + 1.1 * random.normal(key)\n        return place, place\n"
         "    return lax.scan(step, 0.0, random.split(key, count))[1]", "those of normal steps"),
        ("def steps_of(key, count):\n    def step(place, _):\n"
         "        place = place + random.normal(key)\n        return place, place\n"
         "    return lax.scan(step, 0.0, None, length=count)[1]", "each key may be used once"),
        ("def steps_of(key, count):\n    def step(carry, _):\n        place, key = carry\n"
         "        place = place + random.normal(key)\n        return (place, key), place\n"
         "    return lax.scan(step, (0.0, key), None, length=count)[1]",
         "each key may be used once"),
        ("def steps_of(key, count):\n"
         "    return jnp.cumsum(random.normal(key, (count,)))", "lax.scan"),
        ("def steps_of(key, count):\n    step = random.normal(key)\n"
         "    return lax.scan(lambda place, _: (place + step, place + step), 0.0, None,\n"
         "                    length=count)[1]", "as long as the one before"),
        ("def steps_of(key, count):\n    def step(place, key):\n"
         "        return place + random.normal(key), place\n"
         "    return lax.scan(step, 0.0, random.split(key, count))[1]", "give out the new one"),
        ("def steps_of(key, count):\n    def step(place, key):\n"
         "        move = random.normal(key)\n        return place + move, move\n"
         "    return lax.scan(step, 0.0, random.split(key, count))[1]", "these are the steps"),
        ("def steps_of(key, count):\n    def step(place, key):\n"
         "        place = place + random.normal(key)\n        return place, place\n"
         "    return lax.scan(step, 0.0, random.split(key, count))", "two things"),
        ("def steps_of(key, count):\n    def step(place, key):\n"
         "        place = place + random.uniform(key)\n        return place, place\n"
         "    return lax.scan(step, 0.0, random.split(key, count))[1]", "go both ways"),
        ("def steps_of(key, count):\n    def step(place, key):\n"
         "        place = place + random.rademacher(key, (), jnp.float32)\n"
         "        return place, place\n"
         "    return lax.scan(step, 0.0, random.split(key, count))[1]", "another distribution"),
    ],
    hints=["run over keys as over any array: lax.scan(step, 0.0, keys)",
           "`step` gets a place and a key, and returns the new place twice"])


# -- weights ---------------------------------------------------------------------------------------

def grade_weights(weights: Callable) -> None:
    for sizes in ([4, 4, 4, 2], [3, 5], [2, 6, 2]):
        expected = list(zip(sizes, sizes[1:], strict=False))
        out = _without_reuse(f"random.key(3) and the sizes {sizes}", weights, random.key(3), sizes)
        shapes = [jnp.shape(w) for w in out] if isinstance(out, list | tuple) else "no list"
        expect(shapes == expected, f"for the sizes {sizes} the shapes should be {expected}, and "
               f"yours are {shapes}\na matrix is expected for each pair of neighbouring sizes")
    out = weights(random.key(3), [4, 4, 4, 2])
    message = f"for random.key(3) and the sizes [4, 4, 4, 2] the first rows are {shown(out[0][0])}"
    expect(not near(out[0], out[1]), f"{message} and {shown(out[1][0])}\nthe first two matrices "
           "have the same numbers")
    every = np.concatenate([np.ravel(w) for w in out])
    expect((every < 0).any(), f"{message}, and no number is negative\nnormal numbers are expected: "
           "half of them are negative")
    large = np.asarray(weights(random.key(3), [60, 60])[0])
    far = float(np.mean(abs(large) > 2 * large.std()))
    expect(0.03 < far < 0.06, "of 3600 normal numbers 4.6 % lie beyond two standard deviations, "
           f"and of yours {100 * far:.1f} %: another distribution")
    sizes = [4, 3, 2]
    weights(random.key(3), sizes)
    expect(sizes == [4, 3, 2], f"after a call the list of the sizes is {sizes}, and was [4, 3, 2]: "
           "leave it as it is")
    again, other = weights(random.key(3), [4, 4, 4, 2]), weights(random.key(4), [4, 4, 4, 2])
    expect(near(out[0], again[0]), f"{message}, and asked again {shown(again[0][0])}\nthe same key "
           "should give the same weights")
    expect(not near(out[0], other[0]), f"{message}, and for random.key(4) as well\nanother key "
           "should give other weights")


exercise(
    "weights", chapter=CHAPTER, grade=grade_weights, given=GIVEN,
    solution="""
def weights(key, sizes):
    keys = random.split(key, len(sizes) - 1)
    return [random.normal(k, (m, n)) for k, m, n in zip(keys, sizes, sizes[1:])]
""",
    wrong=[
        ("def weights(key, sizes):\n"
         "    return [random.uniform(random.fold_in(key, k), (m, n), minval=-2, maxval=2)\n"
         "            for k, (m, n) in enumerate(zip(sizes, sizes[1:]))]", "another distribution"),
        ("def weights(key, sizes):\n"
         "    return [random.normal(key, (m, n)) for m, n in zip(sizes, sizes[1:])]",
         "each key may be used once"),
        ("def weights(key, sizes):\n    found = []\n    for m, n in zip(sizes, sizes[1:]):\n"
         "        found.append(random.normal(key, (m, n)))\n"
         "        key, _ = random.split(key)\n    return found", "each key may be used once"),
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


# -- shuffled --------------------------------------------------------------------------------------

def grade_shuffled(shuffled: Callable) -> None:
    for seed, n in ((1, 6), (2, 9), (3, 20)):
        xs = jnp.arange(n)
        inputs = f"random.key({seed}), xs = {shown(xs)} and ys = 10 * xs"
        out = _without_reuse(inputs, shuffled, random.key(seed), xs, 10 * xs)
        expect(isinstance(out, tuple | list) and len(out) == 2, f"for {inputs} a pair is expected, "
               f"the new xs and the new ys, and yours is {shown(out)}")
        x, y = map(np.asarray, out)
        message = f"for {inputs} yours is {shown(x)} and {shown(y)}\n"
        expect(sorted(x.tolist()) == list(range(n)), message + "each example should come once")
        agree(f"{inputs}, with your new xs {shown(x)},", y, 10 * x,
              "the y of an example has gone elsewhere: one order for both is expected",
              what="the array of ys")
        expect(not near(x, xs), message + "nothing was shuffled")
        expect(n < 20 or len(np.unique(np.diff(x) % n)) > 1, message + "they stand in a ring as "
               "they stood before: this begins elsewhere, and shuffles nothing")
        again = shuffled(random.key(seed), xs, 10 * xs)
        expect(near(again[0], x), message + f"and then {shown(again[0])}: the same key should give "
               "the same order")
    orders = [np.asarray(shuffled(random.key(s), xs, xs)[0]).tolist() for s in (3, 4)]
    expect(orders[0] != orders[1], f"for random.key(3) and random.key(4) yours is {orders[0]}: "
           "another key should give another order")
    xs = jnp.arange(20)
    means = np.mean([shuffled(random.key(seed), xs, xs)[0] for seed in range(60)], axis=0)
    expect(means.min() > 3 and means.max() < 16, "for xs = [0, …, 19] and 60 keys the mean at each "
           f"place should be about 9.5, and yours go from {means.min():.1f} to {means.max():.1f}: "
           "an example may go to any place")
    labels = jnp.array([3, 1, 2, 0, 5, 4])
    x, y = shuffled(random.key(1), jnp.arange(6), labels)
    agree("xs = [0, …, 5] and ys = [3, 1, 2, 0, 5, 4]", y, np.asarray(labels)[np.asarray(x)],
          "labels need not be sorted", what="the array of ys")
    pictures = jnp.arange(12.0).reshape(6, 2)
    x, y = shuffled(random.key(1), pictures, jnp.arange(6))
    expect(jnp.asarray(y).dtype == jnp.int32, f"for xs of float32 and ys of int32 the new ys are "
           f"of int32, and yours are of {jnp.asarray(y).dtype}: move the rows, and keep what they "
           "are")
    agree("xs of shape (6, 2) and ys of shape (6,)", x, np.asarray(pictures)[np.asarray(y)],
          "an example is a row: the order is one of rows", what="the array of xs")


exercise(
    "shuffled", chapter=CHAPTER, grade=grade_shuffled, given=GIVEN,
    solution="""
def shuffled(key, xs, ys):
    order = random.permutation(key, len(xs))
    return xs[order], ys[order]
""",
    wrong=[
        ("def shuffled(key, xs, ys):\n    order = random.permutation(key, len(xs))\n"
         "    return xs[order], jnp.sort(ys)[order]", "need not be sorted"),
        ("def shuffled(key, xs, ys):\n"
         "    return random.permutation(key, xs), random.permutation(key, ys)",
         "each key may be used once"),
        ("def shuffled(key, xs, ys):\n    first, second = random.split(key)\n"
         "    return random.permutation(first, xs), random.permutation(second, ys)",
         "has gone elsewhere"),
        ("def shuffled(key, xs, ys):\n    return random.permutation(key, xs), ys",
         "has gone elsewhere"),
        ("def shuffled(key, xs, ys):\n    order = random.randint(key, (len(xs),), 0, len(xs))\n"
         "    return xs[order], ys[order]", "should come once"),
        ("def shuffled(key, xs, ys):\n    order = random.permutation(random.key(0), len(xs))\n"
         "    return xs[order], ys[order]", "another key should give another order"),
        ("def shuffled(key, xs, ys):\n"
         "    order = jnp.argsort(random.bernoulli(key, 0.5, (len(xs),)))\n"
         "    return xs[order], ys[order]", "may go to any place"),
        ("def shuffled(key, xs, ys):\n    order = np.random.permutation(len(xs))\n"
         "    return xs[order], ys[order]", "the same order"),
        ("def shuffled(key, xs, ys):\n    order = random.permutation(key, len(xs))\n"
         "    return xs[order]", "a pair is expected"),
        ("def shuffled(key, xs, ys):\n    k = random.randint(key, (), 0, len(xs))\n"
         "    return jnp.roll(xs, k, 0), jnp.roll(ys, k, 0)", "shuffles nothing"),
        ("def shuffled(key, xs, ys):\n    n = len(xs)\n"
         "    both = jnp.concatenate([xs.reshape(n, -1), ys.reshape(n, -1)], axis=1)\n"
         "    both, k = random.permutation(key, both), xs.reshape(n, -1).shape[1]\n"
         "    return both[:, :k].reshape(xs.shape), both[:, k:].reshape(ys.shape)",
         "keep what they are"),
    ],
    afterthought="`random.permutation(random.clone(key), ys)` would do as well: `clone` says that "
                 "the same numbers are expected again",
    hints=["draw the order once: `random.permutation(key, 6)` gives the numbers 0 to 5 in some "
           "order"])


# -- reused ----------------------------------------------------------------------------------------

_PROGRAMS = """
import numpy as np
from minijax import lax, numpy as jnp, random

def pair(key):
    return random.normal(key) + random.uniform(key)

def careful(key):
    first, second = random.split(key)
    return random.normal(first) + random.uniform(second)

def looped(key):
    def step(i, x):
        return x + random.normal(key)
    return lax.fori_loop(0, 10, step, 0.0)

def both(key):
    first, second = random.split(key)
    return pair(first) + looped(second)

def half_nan(key):
    first, second = random.split(key)
    return pair(first) + logarithm(random.normal(second))

def logarithm(x):
    return jnp.log(-abs(x))

def only_nan(key):
    return logarithm(random.normal(key))

def outside(x):
    return x[7]

def and_outside(key):
    return pair(key) + outside(jnp.arange(3.0))

def cut(x):
    return jnp.asarray(x)

def and_cut(key):
    return pair(key) + cut(np.array([2**40]))
"""
_WANTED = {"pair": {"pair"}, "careful": set(), "looped": {"step"},
           "both": {"pair", "step"}, "half_nan": {"pair"}, "only_nan": set(),
           "and_outside": {"pair"}, "and_cut": {"pair"}}


def grade_reused(reused: Callable) -> None:
    programs: dict[str, Any] = {}
    exec(compile(_PROGRAMS, "<programs>", "exec"), programs)
    for name, expected in _WANTED.items():
        inputs = f"reused({name}, random.key(0))"
        with instead_of(errors.KeyReuseError, "", f"{inputs} should be {expected or 'set()'}, and "
                        "yours raised KeyReuseError\na list of findings is expected, not the first "
                        "error: `collect=True`"):
            result = reused(programs[name], random.key(0))
        message = f"{inputs} should be {expected or 'set()'}, and yours is {result!r}\n"
        expect(isinstance(result, set), message + "a set of names is expected")
        expect("logarithm" not in result, message + "`logarithm` makes a nan, and uses no key: a "
               "finding has a `kind`")
        expect("outside" not in result, message + "`outside` reads outside of an array, and uses "
               "no key: a finding has a `kind`")
        expect("cut" not in result, message + "`cut` loses digits, and uses no key: of all kinds "
               "of findings one is asked for")
        expect(not result or not result < expected, message + "one was found, and the program went "
               "no further: an error ends it, a list does not")
        expect(result == expected,
               message + "the functions in which a key is used again are expected")
    with jax.checking_sharp_bits(collect=True) as rest:
        programs["pair"](random.key(0))
    expect(len(rest) == 1, "right, but the check is not as it was before your function ran")


exercise(
    "reused", chapter=CHAPTER, grade=grade_reused, given=GIVEN,
    solution="""
def reused(f, *args):
    with jax.checking_sharp_bits(collect=True) as findings:
        f(*args)
    return {finding.function for finding in findings if finding.kind == "debug_key_reuse"}
""",
    wrong=[
        ("def reused(f, *args):\n    with jax.checking_sharp_bits(collect=True) as findings:\n"
         "        f(*args)\n    return {finding.function for finding in findings}",
         "a finding has a `kind`"),
        ("def reused(f, *args):\n    with jax.checking_sharp_bits(collect=True) as findings:\n"
         "        f(*args)\n    return {f.function for f in findings if 'nan' not in f.kind}",
         "reads outside of an array"),
        ("def reused(f, *args):\n    with jax.checking_sharp_bits(collect=True) as findings:\n"
         "        f(*args)\n    others = 'debug_nans', 'debug_out_of_bounds'\n"
         "    return {f.function for f in findings if f.kind not in others}", "loses digits"),
        ("def reused(f, *args):\n    with jax.debug_key_reuse(True):\n        f(*args)\n"
         "    return set()", "collect=True"),
        ("def reused(f, *args):\n    try:\n        with jax.debug_key_reuse(True):\n"
         "            f(*args)\n    except jax.errors.KeyReuseError as error:\n"
         "        return {error.finding.function}\n    return set()", "went no further"),
        ("def reused(f, *args):\n    with jax.checking_sharp_bits(collect=True) as findings:\n"
         "        f(*args)\n    return [f.function for f in findings\n"
         "            if f.kind == 'debug_key_reuse']", "a set of names"),
        ("def reused(f, *args):\n    with jax.checking_sharp_bits(collect=True) as findings:\n"
         "        f(*args)\n    return set()", "should be {'pair'}, and yours is set()"),
    ],
    hints=["`jax.checking_sharp_bits`, with `collect=True`, goes on after a finding",
           "a finding has a `kind`, a `function` and a `line`"])
