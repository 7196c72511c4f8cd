"""The exercises of chapter 13, *In-place updates*."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax.notebook.checks import agree, exercise, expect, near, numbers, shown

CHAPTER = "13_in_place_updates"


def grade_framed(framed: Callable) -> None:
    random = np.random.default_rng(0)
    for shape in ((3, 3), (4, 5), (1, 4), (2, 2), (5, 1)):
        x = random.integers(2, 10, shape).astype(np.float32)
        wanted = np.ones(shape, np.float32)
        wanted[1:-1, 1:-1] = x[1:-1, 1:-1]
        for f in (framed, jax.jit(framed)):
            out = numbers(f(jnp.asarray(x)))
            agree(f"x = {shown(x)}", out, wanted,
                  (np.shape(out) != shape, "return the whole matrix, in its size; an update that "
                   "is not returned is lost"),
                  (near(out, x), "this is the matrix as it was: an update returns a new one, so "
                   "give it a name"),
                  (near(out, np.ones(shape)), "the inside should stay as it was"),
                  "look at the edges one by one: the first and last row, the first and last "
                  "column")


exercise(
    "framed", chapter=CHAPTER, grade=grade_framed,
    solution="""
def framed(x):
    ends = jnp.array([0, -1])
    return x.at[ends].set(1.0).at[:, ends].set(1.0)
""",
    wrong=[
        ("def framed(x):\n    x.at[0].set(1.0)\n    x.at[-1].set(1.0)\n    return x",
         "give it a name"),
        ("def framed(x):\n    return x.at[jnp.array([0, -1])].set(1.0)", "one by one"),
        ("def framed(x):\n    x[0] = 1.0\n    return x", "does not support item assignment"),
        ("def framed(x):\n    return jnp.ones_like(x)", "stay as it was"),
        ("def framed(x):\n    return jnp.pad(x, 1, constant_values=1.0)", "whole matrix"),
    ],
    hints=["an index may be a list of places, as in x.at[jnp.array([0, -1])]"])


def grade_exchanged(exchanged: Callable) -> None:
    x, compiled = np.array([5.0, 6.0, 7.0, 8.0], np.float32), jax.jit(exchanged)
    pairs = [(i, j) for i in range(4) for j in range(4)]
    for f, asked in ((exchanged, pairs[1:4]), (compiled, pairs)):
        for i, j in asked:
            wanted, once, twice = x.copy(), x.copy(), x.copy()
            wanted[[i, j]] = x[[j, i]]
            once[i], twice[j] = x[j], x[i]
            out = numbers(f(jnp.asarray(x), i, j))
            agree(f"x = {shown(x)}, i = {i}, j = {j}", out, wanted,
                  (np.shape(out) != (4,), "return the whole vector"),
                  (near(out, x), "this is the vector as it was"),
                  (near(out, once) or near(out, twice), "one of the two values is there twice "
                   "now, and the other is lost: which `x` is read for the second update?"),
                  "only the elements at i and j change")


exercise(
    "exchanged", chapter=CHAPTER, grade=grade_exchanged,
    solution="""
def exchanged(x, i, j):
    return x.at[i].set(x[j]).at[j].set(x[i])
""",
    wrong=[
        ("def exchanged(x, i, j):\n    x = x.at[i].set(x[j])\n    x = x.at[j].set(x[i])\n"
         "    return x", "which `x` is read"),
        ("def exchanged(x, i, j):\n    return x.at[[i, j]].set(x[[j, i]])", "raised TypeError"),
        ("def exchanged(x, i, j):\n    x[i], x[j] = x[j], x[i]\n    return x",
         "does not support item assignment"),
        ("def exchanged(x, i, j):\n    x.at[i].set(x[j])\n    x.at[j].set(x[i])\n    return x",
         "as it was"),
        ("def exchanged(x, i, j):\n    y = np.array(x)\n    y[[i, j]] = y[[j, i]]\n"
         "    return jnp.asarray(y)", "TracerArrayConversionError"),
    ],
    hints=["the old array is still there after an update"])


def grade_group_means(group_means: Callable) -> None:
    jitted = jax.jit(lambda v, g: group_means(v, g, 3))
    random = np.random.default_rng(0)
    for trial in range(6):
        groups = random.permutation([0, 1, 2, *random.integers(0, 3, 3)])
        values = random.integers(1, 30, 6).astype(np.float32)
        members = [values[groups == k] for k in range(3)]
        sums, sizes = np.array([m.sum() for m in members]), np.array([len(m) for m in members])
        f = jitted if trial else lambda v, g: group_means(v, g, 3)
        out = numbers(f(jnp.asarray(values), jnp.asarray(groups)))
        agree(f"the values {shown(values)} in the groups {shown(groups)}", out, sums / sizes,
              (np.shape(out) != (3,), "one number for each group is wanted"),
              (near(out, [m[-1] for m in members]), "these are the last values of each group: a "
               "later `set` overwrites an earlier one"),
              (near(out, sums), "these are the sums; how many values has each group?"),
              (near(out, sizes), "these are the numbers of values; what is their sum?"),
              (near(out, np.zeros(3)), "nothing has arrived: an update that is not returned is "
               "lost"),
              "each sum is to be divided by the number of values in its own group")


exercise(
    "group_means", chapter=CHAPTER, grade=grade_group_means,
    solution="""
def group_means(values, groups, count):
    zeros = jnp.zeros(count)
    return zeros.at[groups].add(values) / zeros.at[groups].add(1.0)
""",
    wrong=[
        ("def group_means(values, groups, count):\n"
         "    return jnp.zeros(count).at[groups].set(values)", "overwrites"),
        ("def group_means(values, groups, count):\n"
         "    return jnp.zeros(count).at[groups].add(values)", "these are the sums"),
        ("def group_means(values, groups, count):\n"
         "    return jnp.zeros(count).at[groups].add(values) / len(values)", "in its own group"),
        ("def group_means(values, groups, count):\n"
         "    return jnp.zeros(count).at[groups].add(values / count)", "in its own group"),
        ("def group_means(values, groups, count):\n    sums = jnp.zeros(count)\n"
         "    sums.at[groups].add(values)\n    return sums", "nothing has arrived"),
        ("def group_means(values, groups, count):\n"
         "    return jnp.stack([values[groups == k].mean() for k in range(count)])",
         "NonConcreteBooleanIndexError"),
    ],
    afterthought="an empty group would give 0 / 0, which is nan (chapter 19)",
    hints=["two additions into zeros: one of the values, one of ones"])


PRIMES = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29]


def grade_sieve(sieve: Callable) -> None:
    out = numbers(sieve())
    expect(jnp.shape(out) == (30,), "an array of thirty booleans, one for each number below 30")
    out = np.asarray(out)
    told = (f"the primes below 30 are {PRIMES}, and yours are "
            f"{np.flatnonzero(out).tolist()}\n")
    expect(out.dtype == bool, f"booleans are wanted, and these are {out.dtype}")
    expect(not np.array_equal(~out[2:], np.isin(np.arange(2, 30), PRIMES)),
           told + "the other way round: True for primes")
    expect(not out[4], told + "4 is still there: does the loop go on with the array that "
           "the update returned?")
    expect(not out[0] and not out[1], told + "0 and 1 are no primes")
    expect(out[2], told + "2 is a prime, and is struck out: begin with its multiple 4")
    expect(np.flatnonzero(out).tolist() == PRIMES, told + "for each number from 2 on, strike out "
           "its multiples")
    steps = len(jax.make_jaxpr(sieve)().eqns)
    expect(steps < 30, f"right, but a program of {steps} equations: Python's loop was unrolled; "
           "let `lax.fori_loop` run it")


exercise(
    "sieve", chapter=CHAPTER, grade=grade_sieve,
    given="def multiples(i):\n    return i * jnp.arange(2, 30)\n",
    solution="""
def sieve():
    def strike(i, prime):
        return prime.at[multiples(i)].set(False, mode="drop")
    prime = jnp.ones(30, bool).at[:2].set(False)
    return lax.fori_loop(2, 30, strike, prime)
""",
    wrong=[
        ("def sieve():\n    prime = jnp.ones(30, bool).at[:2].set(False)\n"
         "    for i in range(2, 30):\n        prime = prime.at[multiples(i)].set(False)\n"
         "    return prime", "unrolled"),
        ("def sieve():\n    return lax.fori_loop(\n"
         "        2, 30, lambda i, p: p.at[multiples(i)].set(False), jnp.ones(30, bool))",
         "no primes"),
        ("def sieve():\n    def strike(i, p):\n        p.at[multiples(i)].set(False)\n"
         "        return p\n    return lax.fori_loop(2, 30, strike, jnp.ones(30, bool))",
         "4 is still there"),
        ("def sieve():\n    return lax.fori_loop(\n        2, 30,\n"
         "        lambda i, p: p.at[multiples(i)].set(True), jnp.zeros(30, bool))",
         "other way round"),
    ],
    afterthought="in the loop tree there is one array, and no copy in the loop",
    hints=["the body takes a number and the array, and returns the array"])


def grade_slopes_of_mixed(answer: Any) -> None:
    answer = jnp.asarray(answer)
    expect(jnp.shape(answer) == (3,), "three numbers, one for each of y")
    expect(not near(answer, [2.0, 14.0, 10.0]) and not near(answer, [6.0, 14.0, 10.0]),
           "two values are written to place 0; which of them stays?")
    expect(not near(answer, [0.0, 4.0, 6.0]), "that would be without the second update")
    expect(not near(answer, [0.0, 4.0, 10.0]), "place 0 also goes into place 2: its slope has "
           "two parts")
    expect(near(answer[0], 0.0), "two values are written to place 0; the first of them is lost")
    expect(near(answer, [0.0, 14.0, 10.0]), "write down `x` after both updates, as a formula, "
           "and differentiate the sum of its squares")


exercise(
    "slopes_of_mixed", chapter=CHAPTER, grade=grade_slopes_of_mixed,
    solution="[0.0, 14.0, 10.0]",
    wrong=[
        ("[0.0, 4.0, 6.0]", "without the second update"),
        ("[0.0, 4.0, 10.0]", "two parts"),
        ("[2.0, 14.0, 10.0]", "which of them stays"),
        ("[1.0, 2.0, 3.0]", "is lost"),
        ("[0.0, 14.0, 6.0]", "as a formula"),
        ("24.0", "three numbers"),
    ],
    hints=["after the first update x is [y1, 0, y2]"])
