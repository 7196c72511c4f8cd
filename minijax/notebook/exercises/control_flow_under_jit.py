"""The exercises of chapter 17, *Control flow under jit*."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax.notebook.checks import agree, exercise, expect, near, numbers, shown

CHAPTER = "17_control_flow_under_jit"


def grade_runs(answer: Any) -> None:
    expect(isinstance(answer, str), 'a string of letters is wanted, such as "abc"')
    letters = set(answer) - set(" ,")
    expect(letters <= set("abcdefgh"), "the letters are a to h")
    expect("b" not in letters, "b asks for a value: x[0] > 0 is either")
    expect("c" not in letters, "in c Python's range wants a number, and n is traced")
    expect("e" not in letters, "is there a question hidden in e? Think of what `or` must know")
    expect("h" not in letters, "sorting in Python compares values, and float(v) asks for one")
    expect("a" in letters, "a asks for the number of dimensions, which is known")
    expect("f" in letters, "how often does the loop in f go round? The shape knows")
    expect({"d", "g"} <= letters, "d and g ask no question while tracing: the choice is in the "
           "program")


exercise(
    "runs", chapter=CHAPTER, grade=grade_runs, solution='"adfg"',
    wrong=[
        ('"abdfg"', "asks for a value"),
        ('"adefg"', "what `or` must know"),
        ('"acdfg"', "wants a number"),
        ('"adg"', "The shape knows"),
        ('"af"', "the choice is in the program"),
        ('["a"]', "a string of letters"),
    ],
    hints=["who needs a number now, and who can wait until the program runs?"])


def _collatz(n: int) -> int:
    count = 0
    while n > 1:
        n, count = (n // 2 if n % 2 == 0 else 3 * n + 1), count + 1
    return count


def grade_collatz(collatz: Callable) -> None:
    compiled = jax.jit(collatz)
    for n in (7, *range(1, 30), 97):
        out, wanted = numbers(compiled(n)), _collatz(n)
        agree(f"n = {n}", out, wanted,
              (np.shape(out) != () or isinstance(out, tuple), "one number is wanted: if the carry "
               "is a pair, take the count"),
              (n == 7 and near(out, 1), "that is where it ends; how many steps was it?"),
              (near(out, wanted + 1) or near(out, wanted - 1), "one too many, or one too few: "
               "from 1 it takes no step, from 2 it takes one"),
              "halve an even number, make 3 n + 1 of an odd one, and count until it is 1",
              tolerance=1e-6)
    try:
        strong = compiled(np.int32(27))
    except TypeError:
        expect(False, "right for Python's 7, but an int32 must stay an int32: `/` makes a float")
    agree("n = np.int32(27)", strong, 111)


exercise(
    "collatz", chapter=CHAPTER, grade=grade_collatz,
    solution="""
def collatz(n):
    def step(carry):
        n, count = carry
        return jnp.where(n % 2 == 0, n // 2, 3 * n + 1), count + 1
    return lax.while_loop(lambda carry: carry[0] > 1, step, (n, 0))[1]
""",
    wrong=[
        ("def collatz(n):\n    count = 0\n    while n > 1:\n"
         "        n, count = (n // 2 if n % 2 == 0 else 3 * n + 1), count + 1\n"
         "    return count", "TracerBoolConversionError"),
        ("def collatz(n):\n    return lax.while_loop(\n        lambda n: n > 1,\n"
         "        lambda n: jnp.where(n % 2 == 0, n // 2, 3 * n + 1), n)", "where it ends"),
        ("def collatz(n):\n    def step(c):\n        n, k = c\n"
         "        return jnp.where(n % 2 == 0, n // 2, 3 * n + 1), k + 1\n"
         "    return lax.while_loop(lambda c: c[0] > 1, step, (n, 1))[1]", "one too many"),
        ("def collatz(n):\n    def step(c):\n        n, k = c\n"
         "        return jnp.where(n % 2 == 0, n // 2, 3 * n + 1), k + 1\n"
         "    return lax.while_loop(lambda c: c[0] > 1, step, (n, 0))", "take the count"),
        ("def collatz(n):\n    def step(c):\n        n, k = c\n"
         "        return jnp.where(n % 2 == 0, n / 2, 3 * n + 1), k + 1\n"
         "    return lax.while_loop(lambda c: c[0] > 1, step, (n, 0))[1]", "makes a float"),
    ],
    afterthought="the whole loop is machine code; try it on 77031, and then on 837799, "
                 "whose numbers grow beyond an int32 (chapter 20)",
    hints=["carry the number and the count together, as a pair"])


def grade_highest(highest: Callable) -> None:
    random = np.random.default_rng(0)
    for values in ([-3, -5, 2, 1, 7, 0], *random.integers(-9, 10, (5, 6)).tolist()):
        x = np.array(values, np.float32)
        wanted = np.maximum.accumulate(x)
        out = highest(jnp.asarray(x))
        expect(not isinstance(out, tuple), f"for x = {values} the answer is {shown(wanted)}, and "
               f"yours is {out}\n`scan` returns two things: the last carry, and all that was given "
               "out; one of them is wanted")
        agree(f"x = {values}", numbers(out), wanted,
              (np.shape(out) != x.shape, "one number for each place is wanted"),
              (near(out, np.maximum(wanted, 0)), f"the largest of ({values[0]},) is {values[0]}: "
               "where does the carry start?"),
              (near(np.ravel(out)[1:], wanted[:-1]), "each place should count itself: give out "
               "the new carry"),
              "each place has the largest of all up to it")
    names = [eqn.primitive.name for eqn in jax.make_jaxpr(highest)(jnp.zeros(50)).eqns]
    expect(len(names) < 20, f"right, but a program of {len(names)} equations: the loop was "
           "unrolled")
    expect("scan" in names, "right; but do it with `lax.scan` this time")


exercise(
    "highest", chapter=CHAPTER, grade=grade_highest,
    solution="""
def highest(x):
    def step(largest, value):
        largest = jnp.maximum(largest, value)
        return largest, largest
    return lax.scan(step, -jnp.inf, x)[1]
""",
    wrong=[
        ("def highest(x):\n    return jnp.stack([jnp.max(x[:i + 1]) for i in range(len(x))])",
         "unrolled"),
        ("def highest(x):\n    s = lambda c, v: (jnp.maximum(c, v), jnp.maximum(c, v))\n"
         "    return lax.scan(s, 0.0, x)[1]", "where does the carry start"),
        ("def highest(x):\n    s = lambda c, v: (jnp.maximum(c, v), c)\n"
         "    return lax.scan(s, -jnp.inf, x)[1]", "count itself"),
        ("def highest(x):\n    s = lambda c, v: (jnp.maximum(c, v), jnp.maximum(c, v))\n"
         "    return lax.scan(s, -jnp.inf, x)", "two things"),
        ("def highest(x):\n    return lax.cummax(x)", "this time"),
    ],
    hints=["the body gets (carry, value) and returns (carry, what to give out)"])


def grade_log_or_zero(log_or_zero: Callable) -> None:
    compiled, slope = jax.jit(log_or_zero), jax.jit(jax.grad(log_or_zero))
    numbers = [1.0, np.e, 0.0, -2.0, 2.0, 1e-3, 40.0, -1e-3]
    for x in numbers:
        for f in (compiled, log_or_zero):
            agree(f"x = {x:.4g}", f(x), np.log(x) if x > 0 else 0.0,
                  (x > 0, "for positive numbers it is the logarithm"), "for 0 and below it is 0")
    for x in numbers:
        found = slope(x)
        agree(f"x = {x:.4g}", found, 1 / x if x > 0 else 0.0,
              (x > 0, "the slope of the logarithm is 1 / x"),
              (np.isnan(found), "the logarithm of 0 is computed too, and its slope is infinite"),
              "where it is 0, it should be flat", what="the slope")
    x = jnp.array([0.0, 2.0, -2.0])
    out = jax.grad(lambda x: jnp.sum(jax.vmap(log_or_zero)(x)))(x)
    agree("the batch [0, 2, -2]", out, [0.0, 0.5, 0.0],
          "right for one number, but not for a batch", what="the gradient")


exercise(
    "log_or_zero", chapter=CHAPTER, grade=grade_log_or_zero,
    solution="""
def log_or_zero(x):
    safe = jnp.where(x > 0, x, 1.0)
    return jnp.where(x > 0, jnp.log(safe), 0.0)
""",
    wrong=[
        ("def log_or_zero(x):\n    return jnp.log(x) if x > 0 else 0.0",
         "TracerBoolConversionError"),
        ("def log_or_zero(x):\n    return jnp.where(x > 0, jnp.log(x), 0.0)",
         "is computed too"),
        ("def log_or_zero(x):\n    return jnp.log(jnp.where(x > 0, x, 1e-6))", "for 0 and below"),
        ("def log_or_zero(x):\n    return lax.stop_gradient(jnp.where(x > 0, jnp.log(x), 0.0))",
         "is 1 / x"),
        ("def log_or_zero(x):\n    return jnp.log(jnp.maximum(x, 1e-30))", "for 0 and below"),
    ],
    hints=["give the logarithm a harmless number where x is not positive"])


def _halved(x: float) -> tuple[float, float]:
    slope = 1.0
    while x > 1.0:
        x, slope = x / 2, slope / 2
    return x, slope


def grade_halved_bounded(halved_bounded: Callable) -> None:
    numbers = [12.0, 0.3, 1.0, -5.0, 1.5, 1000.0, 2.0 ** 20]
    for x in numbers:
        agree(f"x = {x}", halved_bounded(x), _halved(x)[0],
              (x <= 1, "it is not above 1, and should stay"),
              (x > 1e5, "too few rounds for 2 to the 20th"),
              "halve it until it is not above 1, and stop there", tolerance=1e-6)
    try:
        slope = jax.grad(halved_bounded)(12.0)
    except ValueError as error:
        expect("Reverse-mode" not in str(error), "a `while_loop` still: the number of rounds must "
               "be known beforehand")
        raise
    agree("x = 12.0", slope, 1 / 16, "it was halved four times", what="the slope")
    for x in numbers[1:]:
        agree(f"x = {x}", jax.jit(jax.grad(halved_bounded))(x), _halved(x)[1],
              "each halving halves the slope", what="the slope under jit", tolerance=1e-6)


exercise(
    "halved_bounded", chapter=CHAPTER, grade=grade_halved_bounded,
    solution="""
def halved_bounded(x):
    return lax.fori_loop(0, 20, lambda i, x: jnp.where(x > 1.0, x / 2, x), x)
""",
    wrong=[
        ("def halved_bounded(x):\n"
         "    return lax.while_loop(lambda x: x > 1.0, lambda x: x / 2, x)", "still"),
        ("def halved_bounded(x):\n    return lax.fori_loop(0, 20, lambda i, x: x / 2, x)",
         "stop there"),
        ("def halved_bounded(x):\n    while x > 1.0:\n        x = x / 2\n    return x",
         "TracerBoolConversionError"),
        ("def halved_bounded(x):\n    return lax.fori_loop(\n"
         "        0, 10, lambda i, x: jnp.where(x > 1.0, x / 2, x), x)", "too few"),
    ],
    hints=["a round in which nothing is to be done returns x as it is"])
