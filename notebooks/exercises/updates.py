"""The exercises of chapter 13, *In-place updates*."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax.core import jaxpr
from minijax.notebook.checks import Hint, agree, exercise, expect, near, numbers, shown

from .ways import equations, of_dtype

CHAPTER = "13_in_place_updates"

_TROUBLE: tuple[tuple[type[Exception], str, str], ...] = (  # an error, words in it, what to say
    (TypeError, "item assignment", "one of our arrays cannot be written to; `.at` makes a new one"),
    (TypeError, "non-tuple sequence", "a list that is the whole index should be made an array"),
    (IndexError, "static integers", "the ends of a slice cannot depend on a traced number; single "
     "places can"),
    (jax.errors.NonConcreteBooleanIndexError, "", "under `jit` nobody knows how many places a mask "
     "has, so it cannot be an index"),
    (jax.errors.TracerArrayConversionError, "", "NumPy cannot work on what `jit` traces; `.at` "
     "can"),
    (jax.errors.TracerIntegerConversionError, "", "a traced number cannot index a Python "
     "list, but it can index one of our arrays"),
    (jax.errors.TracerBoolConversionError, "", "Python's `if` cannot ask a traced number"),
)


def _called(f: Callable, *args: Any, inputs: str, expected: Any) -> Any:
    """The result of an answer; where it raises one of the usual errors, a hint for that."""
    try:
        return numbers(f(*args))
    except Exception as error:
        for kind, words, hint in _TROUBLE:
            if isinstance(error, kind) and words in str(error):
                raise Hint(f"for {inputs} the answer is {shown(expected)}, and yours raises "
                           f"{type(error).__name__}: {hint}") from None
        raise


def grade_framed(framed: Callable) -> None:
    random = np.random.default_rng(0)
    for shape in ((3, 3), (4, 5), (1, 4), (2, 2), (5, 1)):
        x = (random.integers(2, 10, shape) * random.choice([-1, 1], shape)).astype(np.float32)
        expected = np.ones(shape, np.float32)
        expected[1:-1, 1:-1] = x[1:-1, 1:-1]
        edge = np.ones(shape, bool)
        edge[1:-1, 1:-1] = False
        for f in (framed, jax.jit(framed)):
            inputs = f"x = {shown(x)}"
            out = _called(f, jnp.asarray(x), inputs=inputs, expected=expected)
            agree(inputs, out, expected,
                  (np.shape(out) != shape, "return the whole matrix, in its size, which may be a "
                   "single row or column"),
                  (near(out, x), "this is the matrix as it was: an update returns a new one, so "
                   "give it a name"),
                  (near(out, np.ones(shape)), "the inside should stay as it was"),
                  (np.shape(out) == shape and near(np.where(edge, out, 1), np.ones(shape)),
                   "the edges are right, and the inside should stay as it was"),
                  "look at the edges one by one: the first and last row, the first and last "
                  "column")
    agree("a 3 by 3 matrix of nan", framed(jnp.full((3, 3), jnp.nan)),
          [[1, 1, 1], [1, jnp.nan, 1], [1, 1, 1]], "nan times 0 is nan: set the edge, whatever was "
          "there")
    dtype = getattr(framed(jnp.full((3, 3), 7)), "dtype", None)
    expect(dtype == jnp.int32, f"a matrix of int32 becomes one of {dtype}: it should "
           "keep its dtype")


exercise(
    "framed", chapter=CHAPTER, grade=grade_framed,
    solution="""
def framed(x):
    ends = jnp.array([0, -1])
    return x.at[ends].set(1).at[:, ends].set(1)
""",
    wrong=[
        ("def framed(x):\n    x.at[0].set(1.0)\n    x.at[-1].set(1.0)\n    return x",
         "give it a name"),
        ("def framed(x):\n    return x.at[jnp.array([0, -1])].set(1.0)", "one by one"),
        ("def framed(x):\n    x[0] = 1.0\n    return x", "cannot be written to"),
        ("def framed(x):\n    inside = jnp.zeros_like(x).at[1:-1, 1:-1].set(1)\n"
         "    return x * inside + (1 - inside)", "whatever was there"),
        ("def framed(x):\n    return jnp.ones_like(x).at[1:-1, 1:-1].set(0)",
         "the edges are right, and the inside"),
        ("def framed(x):\n    inside = jnp.zeros(x.shape, bool).at[1:-1, 1:-1].set(True)\n"
         "    return jnp.maximum(jnp.where(inside, x, 0), jnp.where(inside, 0, 1))",
         "the edges are right, and the inside"),
        ("def framed(x):\n    return jnp.ones_like(x)", "stay as it was"),
        ("def framed(x):\n    return jnp.pad(x, 1, constant_values=1.0)", "whole matrix"),
        ("def framed(x):\n    return jnp.pad(x[1:-1, 1:-1], 1, constant_values=1)",
         "a single row"),
        ("def framed(x):\n    return jnp.ones(x.shape).at[1:-1, 1:-1].set(x[1:-1, 1:-1])",
         "keep its dtype"),
    ],
    hints=["an index may be a list of places, as in x.at[jnp.array([0, -1])]"])


def grade_exchanged(exchanged: Callable) -> None:
    x, compiled = np.array([5.0, -6.0, 7.0, -8.0], np.float32), jax.jit(exchanged)
    pairs = [(i, j) for i in range(4) for j in range(4)]
    for f, swaps in ((exchanged, pairs[1:4]), (compiled, pairs)):
        for i, j in swaps:
            expected, once, twice = x.copy(), x.copy(), x.copy()
            expected[[i, j]] = x[[j, i]]
            once[i], twice[j] = x[j], x[i]
            inputs = f"x = {shown(x)}, i = {i}, j = {j}"
            out = _called(f, jnp.asarray(x), i, j, inputs=inputs, expected=expected)
            agree(inputs, out, expected,
                  (np.shape(out) != (4,), "return the whole vector"),
                  (near(out, x), "this is the vector as it was"),
                  (near(out, once) or near(out, twice), "one of the two values is there twice "
                   "now, and the other is lost: which `x` is read for the second update?"),
                  "only the elements at i and j change")
    whole = exchanged(jnp.array([5, 2**24 + 1, 7]), 0, 1)
    of_dtype("x = [5, 6, 7], i = 0, j = 1", whole, np.int32, "an update keeps the dtype of x")
    agree("the whole numbers x = [5, 16777217, 7], i = 0, j = 1", whole, [2**24 + 1, 5, 7], "a "
          "float32 on the way has no room for all digits", tolerance=0)
    x = np.array([5.0, 6e8], np.float32)
    agree(f"x = {shown(x)}, i = 0, j = 1", exchanged(jnp.asarray(x), 0, 1), x[::-1], "a difference "
          "is rounded, and what is added to it does not come out whole: move the elements "
          "themselves", tolerance=0)


exercise(
    "exchanged", chapter=CHAPTER, grade=grade_exchanged,
    solution="""
def exchanged(x, i, j):
    return x.at[i].set(x[j]).at[j].set(x[i])
""",
    wrong=[
        ("def exchanged(x, i, j):\n    x = x.at[i].set(x[j])\n    x = x.at[j].set(x[i])\n"
         "    return x", "which `x` is read"),
        ("def exchanged(x, i, j):\n    return x.at[[i, j]].set(x[[j, i]])",
         "should be made an array"),
        ("def exchanged(x, i, j):\n    x[i], x[j] = x[j], x[i]\n    return x",
         "cannot be written to"),
        ("def exchanged(x, i, j):\n    return x.at[jnp.array([i, j])].set(x[jnp.array([j, i])])"
         ".astype(jnp.float32)", "keeps the dtype of x"),
        ("def exchanged(x, i, j):\n    return x.at[jnp.array([i, j])].set("
         "x[jnp.array([j, i])].astype(jnp.float32))", "no room for all digits"),
        ("def exchanged(x, i, j):\n    x.at[i].set(x[j])\n    x.at[j].set(x[i])\n    return x",
         "as it was"),
        ("def exchanged(x, i, j):\n    y = np.array(x)\n    y[[i, j]] = y[[j, i]]\n"
         "    return jnp.asarray(y)", "NumPy cannot work"),
        ("def exchanged(x, i, j):\n    y = [*x]\n    y[i], y[j] = y[j], y[i]\n"
         "    return jnp.stack(y)", "cannot index a Python list"),
        ("def exchanged(x, i, j):\n    d = x[j] - x[i]\n    return x.at[i].add(d).at[j].add(-d)",
         "a difference is rounded"),
    ],
    hints=["the old array is still there after an update"])


def grade_group_means(group_means: Callable) -> None:
    jitted = jax.jit(lambda v, g: group_means(v, g, 3))
    random = np.random.default_rng(0)
    for trial in range(6):
        groups = random.permutation([0, 1, 2, *random.integers(0, 3, 3)])
        values = random.integers(-30, 30, 6).astype(np.float32)
        members = [values[groups == k] for k in range(3)]
        sums, sizes = np.array([m.sum() for m in members]), np.array([len(m) for m in members])
        f = jitted if trial else lambda v, g: group_means(v, g, 3)
        inputs = f"the values {shown(values)} in the groups {shown(groups)}"
        out = _called(f, jnp.asarray(values), jnp.asarray(groups), inputs=inputs,
                      expected=sums / sizes)
        agree(inputs, out, sums / sizes,
              (np.shape(out) != (3,), "one number for each group is expected"),
              (near(out, [m[-1] for m in members]), "these are the last values of each group: a "
               "later `set` overwrites an earlier one"),
              (near(out, sums), "these are the sums; how many values does each group have?"),
              (near(out, sizes), "these are the numbers of values; what is their sum?"),
              (near(out, np.zeros(3)), "nothing has arrived: an update that is not returned is "
               "lost"),
              (near(out, sums // sizes), "these are the means, rounded down"),
              "each sum should be divided by the number of values in its own group")
    result = group_means(jnp.array([1, 2, 4]), jnp.array([0, 0, 1]), 2)
    agree("the whole numbers [1, 2, 4] in the groups [0, 0, 1]", result, [1.5, 4.0],
          (np.shape(result) != (2,), "here `count` is 2, and not 3"), "a mean of whole "
          "numbers need not be whole")
    agree("the values [200, 100, 7], of uint8, in the groups [0, 0, 1]",
          group_means(jnp.array([200, 100, 7], jnp.uint8), jnp.array([0, 0, 1]), 2), [150.0, 7.0],
          "the sum of a group may be too large for the dtype of its values")
    agree("the values [0.5, 0.25, 2.5] in the groups [1, 0, 1]",
          group_means(jnp.array([0.5, 0.25, 2.5]), jnp.array([1, 0, 1]), 2), [0.25, 1.5], "the "
          "values need not be whole")


exercise(
    "group_means", chapter=CHAPTER, grade=grade_group_means,
    solution="""
def group_means(values, groups, count):
    zeros = jnp.zeros(count)
    return zeros.at[groups].add(values) / zeros.at[groups].add(1.0)
""",
    wrong=[
        ("def group_means(values, groups, count):\n"
         "    sums = jnp.zeros(count, values.dtype).at[groups].add(values)\n"
         "    return sums / jnp.zeros(count).at[groups].add(1.0)", "too large for the dtype"),
        ("def group_means(values, groups, count):\n"
         "    return jnp.zeros(count).at[groups].set(values)", "overwrites"),
        ("def group_means(values, groups, count):\n"
         "    return jnp.zeros(count).at[groups].add(values)", "these are the sums"),
        ("def group_means(values, groups, count):\n"
         "    return jnp.zeros(count).at[groups].add(values) / len(values)", "in its own group"),
        ("def group_means(values, groups, count):\n"
         "    return jnp.zeros(count).at[groups].add(values / count)", "in its own group"),
        ("def group_means(values, groups, count):\n    zeros = jnp.zeros(count)\n"
         "    return zeros.at[groups].add(values) // zeros.at[groups].add(1.0)", "rounded down"),
        ("def group_means(values, groups, count):\n    zeros = jnp.zeros(count, values.dtype)\n"
         "    means = zeros.at[groups].add(values) / zeros.at[groups].add(1)\n"
         "    return means.astype(values.dtype)", "need not be whole"),
        ("def group_means(values, groups, count):\n    sums = jnp.zeros(count, int).at[groups].add("
         "values.astype(int))\n    return sums / jnp.zeros(count).at[groups].add(1)",
         "the values need not be whole"),
        ("def group_means(values, groups, count):\n    sums = jnp.zeros(count)\n"
         "    sums.at[groups].add(values)\n    return sums", "nothing has arrived"),
        ("def group_means(values, groups, count):\n"
         "    return jnp.stack([values[groups == k].mean() for k in range(count)])",
         "cannot be an index"),
    ],
    afterthought="an empty group would give 0 / 0, which is nan (chapter 19)",
    hints=["two additions into zeros: one of the values, one of ones"])


PRIMES = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29]


def grade_sieve(sieve: Callable) -> None:
    out = numbers(sieve())
    expect(jnp.shape(out) == (30,), "an array of thirty booleans, one for each number below 30")
    out = np.asarray(out)
    message = (f"the primes below 30 are {PRIMES}, and yours are "
            f"{np.flatnonzero(out).tolist()}\n")
    expect(out.dtype == bool, f"booleans are expected, and these are {out.dtype}")
    expect(not np.array_equal(~out[2:], np.isin(np.arange(2, 30), PRIMES)),
           message + "the other way round: True for primes")
    expect(not out[4], message + "4 is still there, a multiple of 2: does the loop begin with 2, "
           "and go on with the array that the update returned?")
    expect(not out[0] and not out[1], message + "0 and 1 are not primes")
    expect(np.flatnonzero(out).tolist() != PRIMES[:-1], message + "29 was struck out: a multiple "
           "that is too large should be dropped, and not moved inside")
    expect(out[2], message + "2 is a prime, and is struck out: begin with its multiple 4")
    expect(np.flatnonzero(out).tolist() == PRIMES, message + "for each number from 2 on, strike "
           "out its multiples")
    names = [eqn.primitive.name for eqn in equations(jax.make_jaxpr(sieve)())]
    expect(len(names) < 30, f"right, but a program of {len(names)} equations: Python's loop was "
           "unrolled; let `lax.fori_loop` run it")
    expect({*names} & {"scan", "while"}, f"right, but a program of {names} has no loop in "
           "it: let `lax.fori_loop` strike out")


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
        ("def sieve():\n"
         "    return jnp.array([n > 1 and all(n % d for d in range(2, n)) for n in "
         "range(30)])", "has no loop in it"),
        ("def sieve():\n    prime = jnp.ones(30, bool).at[:2].set(False)\n"
         "    for i in range(2, 30):\n        prime = prime.at[multiples(i)].set(False)\n"
         "    return prime", "unrolled"),
        ("@jax.jit\ndef sieve():\n    prime = jnp.ones(30, bool).at[:2].set(False)\n"
         "    for i in range(2, 30):\n        prime = prime.at[multiples(i)].set(False)\n"
         "    return prime", "unrolled"),
        ("def sieve():\n    return lax.fori_loop(\n"
         "        2, 30, lambda i, p: p.at[multiples(i)].set(False), jnp.ones(30, bool))",
         "not primes"),
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
    expect(jnp.shape(answer) == (3,), f"three numbers are expected, one for each of y, and yours "
           f"is {shown(answer)}")
    for place, (result, expected, why) in enumerate(zip(answer, (0.0, 14.0, 10.0), (
            "two values are written to place 0, and this one is lost",
            "this value stays in place 0, and goes into place 2, too: its slope has two parts",
            "place 2 holds more than this value when it is squared"), strict=True)):
        agree(f"y[{place}]", result, expected, why, what="the slope")


exercise(
    "slopes_of_mixed", chapter=CHAPTER, grade=grade_slopes_of_mixed,
    solution="[0.0, 14.0, 10.0]",
    wrong=[
        ("[0.0, 4.0, 6.0]", "goes into place 2"),
        ("[0.0, 4.0, 10.0]", "two parts"),
        ("[2.0, 14.0, 10.0]", "this one is lost"),
        ("[6.0, 14.0, 10.0]", "this one is lost"),
        ("[0.0, 14.0, 6.0]", "holds more"),
        ("24.0", "three numbers"),
    ],
    hints=["after the first update x is [y1, 0, y2]",
           "write down the function as a formula of y0, y1 and y2"])


# -- three_labels ----------------------------------------------------------------------------------

def grade_three_labels(answer: Any) -> None:
    expect(isinstance(answer, list | tuple) and len(answer) == 3 and
           all(np.shape(one) == (3,) for one in answer),
           f"three lists of three numbers are expected, for a, b and c, and yours is {answer!r}")
    a, b, c = answer
    agree("`a`", a, [1, 0, 2],
          (near(a[1], 5.0), "the line with 5 computes a new array, and gives it no name"),
          "three lines begin with `a =`, and each moves the label", what="the array")
    agree("`b`", b, [0, 0, 0], "`b` is a label on the zeros, and no array changes",
          what="the array")
    agree("`c`", c, [1, 0, 0],
          (near(c, a), "the last line moves the label `a` alone"),
          "`c` stays on the array that was called `a` at that moment", what="the array")


exercise(
    "three_labels", chapter=CHAPTER, grade=grade_three_labels,
    solution="[[1, 0, 2], [0, 0, 0], [1, 0, 0]]",
    wrong=[
        ("[[1, 5, 2], [1, 5, 2], [1, 5, 2]]", "gives it no name"),
        ("[[1, 0, 2], [1, 0, 2], [1, 0, 2]]", "no array changes"),
        ("[[1, 0, 2], [0, 0, 0], [1, 0, 2]]", "label `a` alone"),
        ("[[1, 0, 2], [0, 0, 0], [0, 0, 0]]", "at that moment"),
        ("[[0, 0, 0], [0, 0, 0], [0, 0, 0]]", "moves the label"),
        ("[1, 0, 2]", "three lists"),
    ],
    hints=["draw the arrays as boxes, and move one label with each line that has a `=`"])


# -- forgotten -------------------------------------------------------------------------------------

_PROGRAMS = (  # in a reader's words, how many updates are lost, a hint
    ("x.at[0].set(1.0)\nreturn x", 1, "nobody reads the result of the update"),
    ("return x.at[0].set(1.0)", 0, "what the function returns is read, by its caller"),
    ("x.at[0].set(1.0)\nreturn x.at[1].set(2.0)", 1, "the second update is returned, the first is "
     "not"),
    ("y = x.at[0].set(1.0)\nreturn y.at[1].set(2.0)", 0, "the second update reads the first"),
    ("x.at[1].add(2.0)\nx.at[2].multiply(3.0)\nreturn x + 1.0", 2, "there are other updates "
     "than `set`: their names are scatter-add, scatter-mul and so on"),
    ("jnp.sin(x)\nreturn x.at[0].max(2.0)", 0, "the sine is forgotten, but it is not an update"),
    ("y = x.at[0].set(1.0)\nreturn x * jnp.sum(y)", 0, "the sum reads it"),
    ("for i in range(3):\n    x.at[i].set(0.0)\nreturn x", 3, "one in each round"),
    ("y = x.at[0].set(1.0)\ny.at[1].set(2.0)\nreturn x", 1, "the first is read, by the second: "
     "only the second is lost"),
)


def grade_forgotten(forgotten: Callable) -> None:
    x = jnp.arange(4.0)
    for body, expected, why in _PROGRAMS:
        names: dict[str, Any] = {"jnp": jnp}
        lines = "".join(f"    {line}\n" for line in body.splitlines())
        exec(compile(f"def f(x):\n{lines}", "<an example>", "exec"), names)
        result = forgotten(names["f"], x)
        agree("the function " + "; ".join(map(str.strip, body.splitlines())), result, expected,
              (np.shape(result) != (), "one number is expected"),
              (isinstance(result, bool) and result == (expected > 0), "how many are lost, and not "
               "only whether"), why,
              what="the number of lost updates", tolerance=0)


_FORGOTTEN = """
def forgotten(f, *args):
    program = jax.make_jaxpr(f)(*args).jaxpr
    read = set(program.outvars)
    for eqn in program.eqns:
        read.update(eqn.invars)
    return sum(eqn.primitive.name.startswith("scatter") and eqn.outvars[0] not in read
               for eqn in program.eqns)
"""

exercise(
    "forgotten", chapter=CHAPTER, grade=grade_forgotten, solution=_FORGOTTEN,
    wrong=[
        (_FORGOTTEN.replace("set(program.outvars)", "set()"), "is read, by its caller"),
        (_FORGOTTEN.replace("        read.update(eqn.invars)", "        pass"),
         "reads the first"),
        (_FORGOTTEN.replace('.startswith("scatter")', ' == "scatter"'), "than `set`"),
        (_FORGOTTEN.replace('eqn.primitive.name.startswith("scatter") and ', ""),
         "it is not an update"),
        (_FORGOTTEN.replace(" and eqn.outvars[0] not in read", ""), "by its caller"),
        (_FORGOTTEN.replace("return sum(", "return any("), "not only whether"),
        ("def forgotten(f, *args):\n    program = jax.make_jaxpr(f)(*args).jaxpr\n"
         "    needed, lost = set(program.outvars), 0\n    for eqn in reversed(program.eqns):\n"
         "        if eqn.outvars[0] in needed:\n            needed.update(eqn.invars)\n"
         "        else:\n            lost += eqn.primitive.name.startswith('scatter')\n"
         "    return lost", "only the second is lost"),
        ("def forgotten(f, *args):\n    return f(*args)", "one number"),
    ],
    afterthought="a program is data, so a check for a trap of your own takes a few lines",
    hints=["collect the variables that some equation reads, or that are the results",
           "an update is lost if its own variable is not among them"])


# -- last_seen -------------------------------------------------------------------------------------

def grade_last_seen(last_seen: Callable) -> None:
    random = np.random.default_rng(0)
    lists = [[1, 0, 0, 1, 0], [2, 2, 2], *random.integers(0, 4, (5, 6)).tolist()]
    for items in lists:
        expected, first = np.full(4, -1), np.full(4, -1)
        for place, item in enumerate(items):
            expected[item] = place
            first[item] = place if first[item] < 0 else first[item]
        counts = np.bincount(items, minlength=4)
        for f in (lambda items: last_seen(items, 4), jax.jit(lambda items: last_seen(items, 4))):
            inputs = f"items = {items} and count = 4"
            result = _called(f, jnp.array(items), inputs=inputs, expected=expected)
            agree(inputs, result, expected,
                  (near(result, first), "these are the first places"),
                  (near(result, np.maximum(expected, 0)), "an item that never occurs has -1: where "
                   "do you begin?"),
                  (near(result, counts), "these are the counts"),
                  (np.shape(result) == (4,) and near(np.where(expected < 0, -1, result), expected),
                   "an item that never occurs has -1"),
                  (near(result, np.where(expected < 0, 0, expected + 1)) or
                   near(result, np.where(expected < 0, -1, expected + 1)), "the first place is 0"),
                  (np.shape(result) != (4,), "one number for each of the four items is expected"),
                  (len(items) != 5 and bool((np.asarray(result) >= len(items)).any()),
                   f"there are {len(items)} items here, and no place beyond the last"),
                  "the places of one item are all written to one element; the largest should stay",
                  tolerance=0)
    agree("items = [6, 0, 6] and count = 7", last_seen(jnp.array([6, 0, 6]), 7),
          [1, -1, -1, -1, -1, -1, 2], "there may be any number of items", tolerance=0)
    of_dtype(inputs, result, np.int32, "a place is a whole number, as an index must be")
    program = jax.make_jaxpr(lambda items: last_seen(items, 4))(jnp.array([0, 1, 0]))
    expect(not _sets_many(program), "for items = [0, 1, 0] the answer is [2, 1, -1, -1], and so is "
           "yours, here\nbut one `set` writes 0 and 2 to one element, and JAX leaves the order "
           "open: take an update whose order does not matter")


def _sets_many(closed: Any) -> bool:
    """Whether a program, or one inside it, sets several elements at once."""
    return any(eqn.primitive.name == "scatter" and eqn.invars[2].aval.size > 1
               or any(map(_sets_many, jaxpr.subjaxprs(eqn.params))) for eqn in closed.eqns)


_LAST_SEEN = """
def last_seen(items, count):
    places = jnp.arange(len(items))
    return jnp.full(count, -1).at[items].max(places)
"""

exercise(
    "last_seen", chapter=CHAPTER, grade=grade_last_seen, solution=_LAST_SEEN,
    wrong=[
        ("def last_seen(items, count):\n    places = jnp.arange(len(items))\n"
         "    return jnp.full(5, -1).at[items].max(places)[:count]", "any number of items"),
        ("def last_seen(items, count):\n"
         "    back = items[::-1][None, :] == jnp.arange(count)[:, None]\n"
         "    return len(items) - 1 - jnp.argmax(back, axis=1)",
         "an item that never occurs has -1"),
        (_LAST_SEEN.replace(".max(", ".set("), "leaves the order open"),
        (_LAST_SEEN.replace(".max(", ".add("), "the largest should stay"),
        (_LAST_SEEN.replace("-1)", "-1.0)"), "as an index must be"),
        (_LAST_SEEN.replace("jnp.full(count, -1)", "jnp.zeros(count, int)"), "where do you begin"),
        (_LAST_SEEN.replace("-1", "9").replace(".max(", ".min("), "the largest should stay"),
        (_LAST_SEEN.replace("jnp.arange(len(items))", "1 + jnp.arange(len(items))"),
         "the first place is 0"),
        (_LAST_SEEN.replace("jnp.full(count, -1).at[items].max(places)",
                            "jnp.zeros(count, int).at[items].add(1)"), "these are the counts"),
        ("def last_seen(items, count):\n    return jnp.stack([jnp.arange(len(items))[items == k]"
         ".max(initial=-1) for k in range(count)])", "cannot be an index"),
    ],
    hints=["which of the eight methods of `.at` keeps the larger of two numbers?"])


# -- cleared_from ----------------------------------------------------------------------------------

def grade_cleared_from(cleared_from: Callable) -> None:
    for n in (5, 2):
        x = np.array([1.0, -2.0, 3.0, -4.0, 5.0], np.float32)[:n]
        for f, how in ((cleared_from, ""), (jax.jit(cleared_from), ", under jit")):
            for i in range(n + 1):
                expected, clamped, one = x.copy(), x.copy(), x.copy()
                expected[i:i + 2] = 0.0
                clamped[min(i, n - 2):][:2] = 0.0
                one[i:i + 1] = 0.0
                inputs = f"x = {shown(x)} and i = {i}{how}"
                result = _called(f, jnp.asarray(x), i, inputs=inputs, expected=expected)
                agree(inputs, result, expected,
                      (near(result, x), "this is `x` as it was"),
                      (near(result, clamped), "`dynamic_update_slice` moves a start that is too "
                       "near the end, so that all of the update is inside"),
                      (near(result, one), "two elements should be cleared, if there are two"),
                      (np.shape(result) != x.shape, "return the whole vector"),
                      (i >= n - 1 and near(result[0], 0.0), "a place beyond the end is not the "
                       "first one"),
                      "clear the elements i and i + 1, if they exist")
    x = np.array([1.0, np.nan, np.inf, 4.0], np.float32)
    agree("x = [1, nan, inf, 4] and i = 1", cleared_from(jnp.asarray(x), 1), [1.0, 0.0, 0.0, 4.0],
          "nan times 0 is nan: choose, or set, in place of multiplying")
    of_dtype("x = [1, 2, 3] and i = 1", cleared_from(jnp.array([1, 2, 3]), 1), np.int32,
             "the zero should have the dtype of x")


_CLEARED = """
def cleared_from(x, i):
    return x.at[i + jnp.arange(2)].set(0.0, mode="drop")
"""

exercise(
    "cleared_from", chapter=CHAPTER, grade=grade_cleared_from, given="from minijax import lax\n",
    solution=_CLEARED,
    wrong=[
        ("def cleared_from(x, i):\n    return lax.dynamic_update_slice(x, jnp.zeros(2), (i,))",
         "moves a start"),
        ("def cleared_from(x, i):\n    return x.at[i:i + 2].set(0.0)", "the ends of a slice"),
        ("def cleared_from(x, i):\n    return x.at[(i + jnp.arange(2)) % len(x)].set(0.0)",
         "is not the first one"),
        ("def cleared_from(x, i):\n    return x.at[i].set(0.0)", "two elements"),
        (_CLEARED.replace("drop", "clip"), "if they exist"),
        ("def cleared_from(x, i):\n    k = jnp.arange(len(x))\n"
         "    return jnp.where((k == i) | (k == i + 1), 0.0, x)", "the dtype of x"),
        ("def cleared_from(x, i):\n    k = jnp.arange(len(x))\n"
         "    return x.at[(k >= i) & (k < i + 2)].set(0.0)", "cannot be an index"),
        ("def cleared_from(x, i):\n    k = jnp.arange(len(x)) - i\n"
         "    return x * ((k != 0) & (k != 1))", "nan times 0"),
    ],
    afterthought="`jnp.where` over all places does it, too",
    hints=["the places i and i + 1 as an array: its size is known, its numbers need not be"])


# -- copies ----------------------------------------------------------------------------------------

_COPYING = """
def own(x):
    y = 2 * x
    return y.at[1].set(7.0)

def given(x):
    return x.at[1].set(7.0)

def chain(x):
    return x.at[0].set(7.0).at[1].set(8.0).at[2].set(9.0)

def before(x):
    y = 2 * x
    first = y[0]
    return y.at[1].set(first)

def after(x):
    y = jnp.exp(x)
    z = y.at[1].set(7.0)
    return z + y[1]
"""


def _whole_copies(f: Callable) -> int:
    """The number of loops of the compiled function that only copy an array."""
    source = jax.jit(f).lower(jnp.ones(6)).as_text("source")
    return len(re.findall(r"^ +\w+\[i\] = \w+\[i\]$", source, re.MULTILINE))


def grade_copies(answer: Any) -> None:
    expect(isinstance(answer, list | tuple) and len(answer) == 5,
           f"five numbers are expected, one for each function, and yours is {answer!r}")
    functions: dict[str, Any] = {"jnp": jnp}
    exec(_COPYING, functions)
    why = {
        "own": "nobody else has a label on what `2 * x` made",
        "given": "`x` belongs to the caller, and must not change",
        "chain": "the first update copies `x`; the next two write into the copy, which nobody else "
                 "reads",
        "before": "`y[0]` is read before the update, and then the old `y` is not needed any more",
        "after": "the old `y` is read after the update, so it must still be there"}
    for (name, hint), result in zip(why.items(), answer, strict=True):
        agree(f"`{name}`", result, _whole_copies(functions[name]), hint,
              what="the number of copies", tolerance=0)


exercise(
    "copies", chapter=CHAPTER, grade=grade_copies, solution="[0, 1, 1, 0, 1]",
    wrong=[
        ("[1, 1, 3, 1, 1]", "nobody else has a label"),
        ("[0, 0, 0, 0, 0]", "belongs to the caller"),
        ("[0, 1, 3, 0, 1]", "write into the copy"),
        ("[0, 1, 1, 1, 1]", "is not needed any more"),
        ("[0, 1, 1, 0, 0]", "must still be there"),
        ("2", "five numbers"),
    ],
    hints=["an array is copied if it is read after the update, or is not the program's own"])
