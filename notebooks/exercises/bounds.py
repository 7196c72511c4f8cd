"""The exercises of chapter 14, *Out-of-bounds indexing*."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax import config, lax
from minijax.notebook.checks import (agree, chosen, exercise, expect, instead_of, near, numbers,
                                     shown, wanting)

from .ways import without

CHAPTER = "14_out_of_bounds"


def quiet(f: Callable, *args: Any) -> bool:
    """Whether the compiled `f` has no findings with the check turned on."""
    with jax.checking_sharp_bits(False, collect=True) as result, jax.debug_out_of_bounds(True):
        jax.jit(f)(*args)
    return not result


# ---------------------------------------------------------------- a read without errors


def grade_read_at(read_at: Callable) -> None:
    random = np.random.default_rng(0)
    for n in (3, 1, 2, 5):
        x = random.permutation(90)[:n] - 45
        for i in (*range(n + 3), *range(-1, -n - 4, -1), 1000, -1000):
            inputs, expected = f"x = {shown(x)} and i = {i}", x[np.clip(i, -n, n - 1)]
            outside = ("a negative index can be outside, too: it lies before the first element"
                       if i < 0 else "NumPy refuses the index: it must be moved before it reads")
            with (wanting(inputs, expected, (IndexError, outside)), without(
                    jnp, "array", "asarray", "take", why="here NumPy and Python are to do it")):
                out = numbers(read_at(x.copy(), i))
            agree(inputs, out, expected,
                  (i < 0 and near(out, x[0]), "a negative index counts from the end, and only what "
                   "is still outside is moved"),
                  (near(out, x[i % n]), "the nearest element is expected, and this is one from "
                   "the other end"),
                  "first count a negative index from the end, then move it inside")
            kind = np.asarray(out).dtype.kind
            expect(kind == x.dtype.kind, f"for {inputs} the answer is the whole number {expected}, "
                   f"and yours is {out!r}: an element, as it stands there")


_READ = "def read_at(x, i):\n    return {}"

exercise(
    "read_at", chapter=CHAPTER, grade=grade_read_at,
    solution="""
def read_at(x, i):
    n = len(x)
    if i < 0:
        i = i + n
    return x[min(max(i, 0), n - 1)]
""",
    wrong=[
        (_READ.format("x[i]"), "must be moved before it reads"),
        (_READ.format("x[min(i, len(x) - 1)]"), "before the first element"),
        (_READ.format("x[np.clip(i, 0, len(x) - 1)]"), "counts from the end"),
        (_READ.format("x[i % len(x)]"), "from the other end"),
        (_READ.format("x[np.clip(i, -len(x), len(x) - 1) if i > -99 else -1]"), "i = -1000"),
        (_READ.format("float(x[max(-len(x), min(i, len(x) - 1))])"), "as it stands there"),
        (_READ.format("jnp.asarray(x)[i]"), "NumPy and Python"),
        (_READ.format("x[i] if -len(x) <= i < len(x) else x[-1]"), "from the other end"),
    ],
    hints=["it is the line with minimum and maximum, and the line before it"])


# ---------------------------------------------------------------- what to do outside


def grade_votes(votes: Callable) -> None:
    def counted(ballots: np.ndarray) -> np.ndarray:
        return np.bincount(ballots, minlength=3)[:3]

    random, compiled = np.random.default_rng(0), jax.jit(lambda b: votes(b, 3))
    inputs = [np.array([0, 2, 2, 7, -1, 2, 1]), *random.integers(-5, 9, (4, 7))]
    for b in inputs:
        low, high = b < 0, b > 2
        valid, from_end = b[~low & ~high], b[~high & (b >= -3)] % 3
        message = f"the ballots {shown(b)} and 3 candidates"
        with wanting(message, counted(valid), (
                jax.errors.NonConcreteBooleanIndexError, "under jit a mask cannot choose how many "
                "there are: let the update leave the others out")):
            out = numbers(compiled(b))
        agree(message, out, counted(valid),
              (np.shape(out) != (3,), "one count for each of the three candidates is expected"),
              (near(out, counted(np.clip(np.where(low, b + 3, b), 0, 2))), "what is too large was "
               "moved inside, and what is negative counted from the end"),
              (near(out, counted(np.clip(b, 0, 2))), "those that are outside were moved inside"),
              (near(out, counted(from_end)), "candidate 2 has one vote too many: what is -1?"),
              (near(out, counted(np.maximum(b[~high], 0))), "candidate 0 has one vote too many: -1 "
               "was moved inside"),
              (np.asarray(out).dtype == bool, "a boolean cannot count: of which dtype are the "
               "zeros that you begin with?"),
              (near(out, np.minimum(counted(valid), 1)), "each has one vote at "
               "most: are they counted? `set` writes, and does not count"),
              "count those from 0 to 2")
    agree("the ballots [4, 0, 4, 5] and 5 candidates", votes(jnp.array([4, 0, 4, 5]), 5),
          [1, 0, 0, 0, 2], "there are not always 3 candidates")
    many = np.arange(1200) % 4
    agree("1200 ballots, of which 300 are for each of 0, 1, 2 and 3, and 3 candidates,",
          compiled(many), [300, 300, 300], "the counts have too small a dtype")
    expect(quiet(lambda b: votes(b, 3), jnp.asarray(inputs[0])),
           f"for the ballots {shown(inputs[0])} the counts are right; but no mode says that the "
           "invalid ones are meant to be left out")


_VOTES = "def votes(ballots, candidates):\n    return {}"

exercise(
    "votes", chapter=CHAPTER, grade=grade_votes,
    solution="""
def votes(ballots, candidates):
    counts = jnp.zeros(candidates, int)
    return counts.at[ballots].add(1, mode="drop", wrap_negative_indices=False)
""",
    wrong=[
        ("def votes(ballots, candidates):\n"
         "    places = jnp.where(ballots < 0, candidates, ballots)\n"
         "    return jnp.zeros(3, int).at[places].add(1, mode=\"drop\")",
         "not always 3 candidates"),
        (_VOTES.format("jnp.zeros(candidates, int).at[ballots].add(1)"), "what is -1"),
        (_VOTES.format("jnp.zeros(candidates, int).at[ballots].add(1, mode='clip', "
                       "wrap_negative_indices=False)"), "were moved inside"),
        (_VOTES.format("jnp.zeros(candidates, int).at[ballots].add(1, mode='clip')"),
         "counted from the end"),
        (_VOTES.format("jnp.zeros(candidates, int).at[ballots].set(1, mode='drop', "
                       "wrap_negative_indices=False)"), "does not count"),
        (_VOTES.format("jnp.bincount(ballots, length=candidates)"), "candidate 0 has"),
        (_VOTES.format("jnp.zeros(candidates, bool).at[ballots].add(1, mode='drop', "
                       "wrap_negative_indices=False)"), "a boolean cannot count"),
        (_VOTES.format("jnp.zeros(candidates, jnp.int8).at[ballots].add(1, mode='drop', "
                       "wrap_negative_indices=False)"), "too small a dtype"),
        (_VOTES.format("jnp.zeros(candidates, int).at[ballots].add(1, "
                       "wrap_negative_indices=False)"), "no mode says"),
        (_VOTES.format("jnp.zeros(candidates, int).at[ballots[(ballots >= 0) & "
                       "(ballots < candidates)]].add(1)"), "a mask cannot choose"),
    ],
    hints=["say what may be left out, and what a negative index means"])


def grade_window_start(window_start: Callable) -> None:
    for n in (10, 4, 1):
        for size in sorted(range(1, n + 1), key=lambda size: size != 4):
            for start in (8, *range(n + 2), *range(-1, -n - 4, -1)):
                from_front = start + n if start < 0 else start
                expected = min(max(from_front, 0), n - size)
                out = numbers(window_start(n, size, start))
                agree(f"n = {n}, size = {size} and start = {start}", out, expected,
                      (start < 0 and near(out, 0), "a negative start counts from the end, here "
                       "too; only then is the window moved"),
                      (near(out, from_front), "there the window sticks out, at one end or the "
                       "other"),
                      (near(out, n - size + 1), "one too far: a window as long as the array begins "
                       "at 0"),
                      "count a negative start from the end, then move the window until it fits",
                      what="the window's first place")


_START = "def window_start(n, size, start):\n    return {}"

exercise(
    "window_start", chapter=CHAPTER, grade=grade_window_start,
    solution="""
def window_start(n, size, start):
    if start < 0:
        start = start + n
    return min(max(start, 0), n - size)
""",
    wrong=[
        (_START.format("max(0, min(start, n - size))"), "counts from the end"),
        (_START.format("start + n if start < 0 else start"), "sticks out"),
        (_START.format("min(max(start + n * (start < 0), 0), n - 1)"), "sticks out"),
        (_START.format("min(max(start + n * (start < 0), 0), n - size + 1)"), "one too far"),
        (_START.format("min(start + n * (start < 0), n - size)"), "sticks out"),
    ],
    afterthought="so a window of the last three frames, from t - 2 on, is at t = 0 the *end* of "
                 "the film",
    hints=["the last place at which a window of `size` fits is n - size"])


def grade_five_results(five_results: Any) -> None:
    expect(isinstance(five_results, (list, tuple)) and len(five_results) == 5,
           f"a list of five numbers is expected, and yours is {five_results!r}")
    x = jnp.array([10.0, 20.0, 30.0])
    one, two, three, four, five = five_results
    agree("x[7]", one, x[7], "a read is moved to the nearest element")
    agree("x.at[7].set(5.0).sum()", two, x.at[7].set(5.0).sum(), "an update outside is left out")
    agree("jnp.take(x, 7)", three, jnp.take(x, 7), (near(three, 30.0), "take does not clip, unless "
          "it is told to"), "take gives a value that you will notice")
    agree("x[-3]", four, x[-3], "is -3 outside three elements? -1 is the last one")
    agree("lax.dynamic_slice(x, (2,), (2,)).sum()", five, 50.0, (near(five, 30.0), "a window is "
          "never cut short"), "the whole window of two is moved, until it fits")


exercise(
    "five_results", chapter=CHAPTER, grade=grade_five_results,
    solution="""
[30.0, 60.0, float("nan"), 10.0, 50.0]
""",
    wrong=[
        ("[10.0, 60.0, float('nan'), 10.0, 50.0]", "moved to the nearest element"),
        ("[30.0, 65.0, float('nan'), 10.0, 50.0]", "left out"),
        ("[30.0, 60.0, 30.0, 10.0, 50.0]", "unless it is told to"),
        ("[30.0, 60.0, 0.0, 10.0, 50.0]", "that you will notice"),
        ("[30.0, 60.0, float('nan'), 30.0, 50.0]", "is -3 outside"),
        ("[30.0, 60.0, float('nan'), 10.0, 30.0]", "cut short"),
        ("[30.0, 60.0, float('nan'), 10.0, 60.0]", "until it fits"),
    ],
    hints=["each is one line of the tables above"])


# ---------------------------------------------------------------- gradients


def grade_interpolate(interpolate: Callable) -> None:
    random = np.random.default_rng(0)
    tables: list[list[float]] = [[1.0, 4.0, 2.0], *random.integers(-9, 10, (2, 5)).tolist()]
    for values in tables:
        table, n = np.array(values, np.float32), len(values)
        for places in ([0.5, 1.25], [-0.5, 0.25], [-2.0, n - 1.0], [n - 0.5, n + 3.0],
                       (random.uniform(-2, n + 1, 4)).round(2).tolist()):
            x = np.array(places, np.float32)
            expected = np.interp(x, np.arange(n), table)
            inner, left = np.clip(x, 0, n - 1), np.clip(np.floor(x), 0, n - 2).astype(int)
            inputs = f"table = {shown(table)} and x = {places}"
            out = numbers(interpolate(jnp.asarray(table), jnp.asarray(x)))
            low, high = places[0] < 0, places[-1] > n - 1
            agree(inputs, out, expected,
                  (np.shape(out) != x.shape, "one value for each number of x is expected"),
                  (np.isnan(np.asarray(out)).any(), "there is a nan: next to the last entry there "
                   "is none, and it was read with mode='fill'"),
                  (low and near(numbers(interpolate(jnp.asarray(table), jnp.asarray(x[1:]))),
                                expected[1:]), "before the first entry the curve goes on level; "
                   "the floor of -0.5 is -1, and that place counts from the end"),
                  (low or high, "outside the table the curve goes on level"),
                  "between two entries go from the left one towards the right one")
            slopes = np.zeros(n)
            np.add.at(slopes, left, 1 - (inner - left))
            np.add.at(slopes, left + 1, inner - left)
            result = jax.grad(lambda t, x=x: jnp.sum(interpolate(t, jnp.asarray(x))))(
                jnp.asarray(table))
            agree(inputs, result, slopes, "the values are right. Whatever is read with an index "
                  "outside has no gradient, unless a mode says which element is meant",
                  what="the gradient of the sum, with respect to table,")
    expect(quiet(interpolate, jnp.array([1.0, 4.0, 2.0]), jnp.array([-1.0, 0.5, 2.0, 9.0])),
           "for x = [-1, 0.5, 2, 9] the values are right, but an index is outside for which no "
           "mode is given")


_INTERPOLATE = """
def interpolate(table, x):
    {}
    i = jnp.floor(x).astype(int)
    left, right = {}
    return left + (x - i) * (right - left)
"""
_CLIPPED = "x = jnp.clip(x, 0, table.size - 1)"

exercise(
    "interpolate", chapter=CHAPTER, grade=grade_interpolate,
    solution=_INTERPOLATE.format(_CLIPPED,
                                 '(table.at[k].get(mode="clip") for k in (i, i + 1))'),
    wrong=[
        (_INTERPOLATE.format("x = jnp.maximum(x, 0)", "table[i], table[i + 1]"),
         "has no gradient"),
        (_INTERPOLATE.format("", "table[i], table[i + 1]"), "that place counts from the end"),
        (_INTERPOLATE.format(_CLIPPED, "(table.at[k].get(mode='fill') for k in (i, i + 1))"),
         "there is a nan"),
        (_INTERPOLATE.format("", "table[jnp.clip(i, 0, table.size - 2)], "
                             "table[jnp.clip(i + 1, 1, table.size - 1)]"), "goes on level"),
        (_INTERPOLATE.format(_CLIPPED, "table[i], table[i + 1]"), "no mode is given"),
        ("def interpolate(table, x):\n    return table.at[jnp.round(x).astype(int)].get("
         "mode='clip')", "towards the right one"),
    ],
    hints=["bring x into the table first; then there is one place left that can be outside"])


# ---------------------------------------------------------------- under the switch


def grade_strict(strict: Callable) -> None:
    before = config.debug_out_of_bounds.value
    try:
        _grade_strict(strict)
        expect(config.debug_out_of_bounds.value == before, "after a call of strict(f), x[9] should "
               "give the last element again, and it raises: the switch stays on")
        jax.config.update("debug_out_of_bounds", True)
        strict(jnp.sin)(1.0)
        expect(config.debug_out_of_bounds.value, "where the switch was on before a call of "
               "strict(f), it should be on after it, and is off")
    finally:
        jax.config.update("debug_out_of_bounds", before)


def _grade_strict(strict: Callable) -> None:
    x = jnp.arange(4.0)

    def reads(x: Any, i: Any) -> Any:
        return 2 * x[i]

    def writes(x: Any, i: Any) -> Any:
        return x.at[i].add(1.0).sum()

    def smooth(x: Any, i: Any) -> Any:
        return lax.fori_loop(0, 3, lambda k, total: total + x[k + i], 0.0)

    compiled = jax.jit(reads)
    cases = [(name, f, {i: f(x, i) for i in (1, 0, 7, -9)}) for name, f in (
        ("2 * x[i]", reads), ("x.at[i].add(1.0).sum()", writes),
        ("the sum of x[i], x[i + 1] and x[i + 2]", smooth),
        ("a compiled 2 * x[i], called before,", compiled))]
    for name, f, expected in cases:
        mine = strict(f)
        expect(callable(mine), f"strict(f) should be a function, and yours is {shown(mine)}: "
               "define one inside, and return it")
        for i in expected:
            inputs = f"f = {name} with x = [0, 1, 2, 3] and i = {i}"
            try:
                out, said = mine(x, i), None
            except jax.errors.OutOfBoundsError as error:
                out, said = None, str(error).splitlines()[0]
            if i in (1, 0):
                agree(inputs, out, expected[i], (said, f"every index is inside, and yours raised: "
                      f"{said}"), (out is None, "pass on what f returns"),
                      "strict(f) returns what f returns")
            else:
                expect(said, f"for {inputs} an OutOfBoundsError is expected, and yours returns "
                       f"{shown(out)}\nthe switch must be on while f runs, not while it is "
                       "wrapped, and the finding must be raised")

    def logarithm(x: Any, i: Any) -> Any:
        return jnp.log(x[i] - 5.0)

    inputs = "f = log(x[i] - 5) with x = [0, 1, 2, 3] and i = 1"
    with instead_of(Exception, "nan", f"for {inputs} the answer is nan, and yours raises: only an "
                    "index outside should, so turn on one check, not all of them"):
        agree(inputs, strict(logarithm)(x, 1), np.nan)

    def either(x: Any, i: Any) -> Any:
        return x[i] if x[0] == 0 else x[0]

    inputs = "f = (x[i] if x[0] == 0 else x[0]) with x = [0, 1, 2, 3] and i = 1"
    with instead_of(jax.errors.TracerBoolConversionError, "", f"for {inputs} the answer is 1, and "
                    "yours raises: `jit` cannot trace every f; call f as it is"):
        agree(inputs, strict(either)(x, 1), 1.0)
    pair = strict(lambda x, i: (x[i], "name"))(x, 2)
    expect(isinstance(pair, tuple) and pair[1] == "name", "for an f that returns a tuple, of x[2] "
           f"and a name, the same is expected, and yours is {pair!r}")


_STRICT = "def strict(f):\n    def checked(*args):\n{}\n    return checked"

exercise(
    "strict", chapter=CHAPTER, grade=grade_strict,
    solution="""
def strict(f):
    def checked(*args):
        with jax.debug_out_of_bounds(True):
            return f(*args)
    return checked
""",
    wrong=[
        ("def strict(f):\n    def careful(*args):\n"
         "        with jax.debug_out_of_bounds(True):\n            result = f(*args)\n"
         "        return result + 0\n    return careful", "raised TypeError"),
        ("def strict(f):\n    def g(*args):\n        with jax.debug_out_of_bounds(True):\n"
         "            return jax.jit(f)(*args)\n    return g", "call f as it is"),
        ("def strict(f):\n    def g(*args, **options):\n"
         "        with jax.checking_sharp_bits():\n            return f(*args, **options)\n"
         "    return g", "not all of them"),
        ("def strict(f):\n    with jax.debug_out_of_bounds(True):\n        return f",
         "not while it is wrapped"),
        ("def strict(f):\n    with jax.debug_out_of_bounds(True):\n        return jax.jit(f)",
         "not while it is wrapped"),
        (_STRICT.format("        with jax.debug_out_of_bounds(True):\n            f(*args)"),
         "pass on what f returns"),
        (_STRICT.format("        with jax.checking_sharp_bits(collect=True):\n"
                        "            return f(*args)"), "must be raised"),
        (_STRICT.format("        jax.config.update('debug_out_of_bounds', True)\n"
                        "        return f(*args)"), "stays on"),
        ("def strict(f):\n    with jax.debug_out_of_bounds(True):\n"
         "        return f(jnp.arange(4.0), 1)", "should be a function"),
        (_STRICT.format("        jax.config.update('debug_out_of_bounds', True)\n        try:\n"
                        "            return f(*args)\n        finally:\n"
                        "            jax.config.update('debug_out_of_bounds', False)"),
         "it should be on after it"),
    ],
    afterthought="with `functools.wraps(f)` over it, it would keep f's name, too",
    hints=["a function that calls f inside a with block"])


def grade_neighbours(neighbours: Callable) -> None:
    random = np.random.default_rng(0)
    for values in ([1, 2, 4, 8], [7], [3, 5], *random.integers(-50, 50, (3, 6)).tolist()):
        x = np.array(values, np.float32)
        left, right = np.append(0, x[:-1]), np.append(x[1:], 0)
        out = numbers(neighbours(jnp.asarray(x)))
        agree(f"x = {values}", out, left + right,
              (np.shape(out) != x.shape, "a sum for each of the elements is expected"),
              (near(np.ravel(out)[:1], (right + x[-1])[:1]), "the first element takes the last one "
               "for its neighbour: an index of -1 counts from the end"),
              (near(out, np.append(x[0], x[:-1]) + right)
               or near(out, np.append(x[0], x[:-1]) + np.append(x[1:], x[-1])), "the ends are "
               "their own neighbours here: that is what moving an index inside does"),
              (np.isnan(np.asarray(out)).any(), "there is a nan: the fill value is yours to "
                                                "choose"),
              (near(out, left + x + right), "an element is no neighbour of its own"),
              "the sum of the one before and the one after; outside there are zeros")
    agree("x = [nan, 1, 2, inf]", neighbours(jnp.array([np.nan, 1.0, 2.0, np.inf])),
          [1.0, np.nan, np.inf, 2.0], "nan times 0 is nan, and so is infinity: make the zeros of "
          "nothing")
    expect(quiet(neighbours, jnp.arange(4.0)), "for x = [0, 1, 2, 3] the sums are right; but the "
           "check finds an index for which no mode is given")
    dtype = getattr(neighbours(jnp.arange(4)), "dtype", None)
    expect(dtype == jnp.int32, f"for whole numbers, of int32, the sums have the dtype {dtype}: of "
           "which dtype are your zeros?")


exercise(
    "neighbours", chapter=CHAPTER, grade=grade_neighbours,
    solution="""
def neighbours(x):
    i = jnp.arange(x.size)
    options = dict(mode="fill", fill_value=0.0, wrap_negative_indices=False)
    return x.at[i - 1].get(**options) + x.at[i + 1].get(**options)
""",
    wrong=[
        ("def neighbours(x):\n    before = jnp.concatenate([x[:1] * 0, x[:-1]])\n"
         "    after = jnp.concatenate([x[1:], x[-1:] * 0])\n    return before + after",
         "make the zeros of nothing"),
        ("def neighbours(x):\n    i = jnp.arange(x.size)\n    return x[jnp.maximum(i - 1, 0)] + "
         "x[i + 1]", "their own neighbours"),
        ("def neighbours(x):\n    return jnp.roll(x, 1) + jnp.roll(x, -1)", "counts from the end"),
        ("def neighbours(x):\n    p = jnp.pad(x, 1)\n    return p[:-2] + p[1:-1] + p[2:]",
         "no neighbour of its own"),
        ("def neighbours(x):\n    i = jnp.arange(x.size)\n    return x.at[i - 1].get(mode='fill', "
         "wrap_negative_indices=False) + x.at[i + 1].get(mode='fill')", "yours to choose"),
        ("def neighbours(x):\n    i = jnp.arange(x.size)\n    right = jnp.where(i + 1 < x.size, "
         "x[i + 1], 0.0)\n    return right + jnp.where(i > 0, x[i - 1], 0.0)",
         "no mode is given"),
        ("def neighbours(x):\n    z = jnp.zeros(1)\n    return jnp.concatenate([z, x[:-1]]) + "
         "jnp.concatenate([x[1:], z])", "your zeros"),
    ],
    right=["def neighbours(x):\n    out = jnp.zeros_like(x).at[1:].add(x[:-1])\n"
           "    return out.at[:-1].add(x[1:])"],
    afterthought="`jnp.pad` and two slices do it, too, and need no mode",
    hints=["x.at[i].get takes mode, fill_value and wrap_negative_indices"])


def grade_pasted(pasted: Callable) -> None:
    patch, image = np.array([[1, -2, 3], [-4, 5, 6]]), np.zeros((4, 5), int)
    compiled = jax.jit(pasted)
    for row in (0, 3, -1, 2, -2, 1, 4, -5):
        for column in (1, 3, -2, 4, -1, 0, 9, -4):
            large = np.zeros((24, 25), int)
            large[row + 10:row + 12, column + 10:column + 13] = patch
            inputs, expected = f"row = {row} and column = {column}", large[10:14, 10:15]
            with wanting(inputs, expected, what="the image"):
                out = numbers(compiled(image, patch, row, column))
            agree(inputs, out, expected,
                  (np.shape(out) != image.shape, "an image as large as the one given is expected"),
                  (near(out, _moved(image, patch, row, column)), "the window was moved, and the "
                   "patch with it"),
                  (near(out, _moved(image, patch, max(row, 0), max(column, 0))), "the corner was "
                   "moved inside, and the patch with it"),
                  (np.any(out) and near(out, large[10 + row - column:14 + row - column,
                                   10 + column - row:15 + column - row]), "the row and the column "
                   "are exchanged"),
                  ((row < 0 or column < 0) and np.count_nonzero(out) > np.count_nonzero(expected),
                   "what leaves on one side comes in on the other: a negative index counts from "
                   "the end"),
                  (np.count_nonzero(out) == np.count_nonzero(expected), "elements outside were "
                   "moved to the border, and overwrite what is there"),
                  "write each element of the patch at a place of its own, and leave out those that "
                  "are outside", what="the image")
    nines = np.full((3, 3), 9)
    agree("an image of nines, row = 1 and column = 0", compiled(nines, patch, 1, 0),
          [[9, 9, 9], *patch], "the patch takes the place of what was there",
          what="the image")
    agree("an image of nines, a patch of zeros, row = 1 and column = 0",
          compiled(nines, 0 * patch, 1, 0), [[9, 9, 9], [0, 0, 0], [0, 0, 0]], "a zero in the "
          "patch is an element like any other", what="the image")
    expect(quiet(pasted, jnp.asarray(image), jnp.asarray(patch), 3, 4), "for row = 3 and column = "
           "4 the image is right; but the check finds an index for which no mode is given")


def _moved(image: np.ndarray, patch: np.ndarray, row: int, column: int) -> Any:
    return lax.dynamic_update_slice(jnp.asarray(image), jnp.asarray(patch), (row, column))


_PASTED = """
def pasted(image, patch, row, column):
    rows = row + jnp.arange(patch.shape[0])[:, None]
    columns = column + jnp.arange(patch.shape[1])
    return image.at[rows, columns].set(patch{})
"""

exercise(
    "pasted", chapter=CHAPTER, grade=grade_pasted,
    solution=_PASTED.format(', mode="drop", wrap_negative_indices=False'),
    wrong=[
        ("def pasted(image, patch, row, column):\n"
         "    rows = row + jnp.arange(patch.shape[0])[:, None]\n"
         "    columns = column + jnp.arange(patch.shape[1])\n"
         "    canvas = jnp.zeros_like(image).at[rows, columns].set(\n"
         "        patch, mode=\"drop\", wrap_negative_indices=False)\n"
         "    return jnp.where(canvas != 0, canvas, image)", "an element like any other"),
        ("def pasted(image, patch, row, column):\n"
         "    return lax.dynamic_update_slice(image, patch, (row, column))", "with it"),
        (_PASTED.format(""), "comes in on the other"),
        (_PASTED.format(", mode='drop'"), "comes in on the other"),
        (_PASTED.format(", mode='drop', wrap_negative_indices=False").replace(".set(", ".add("),
         "takes the place of"),
        (_PASTED.format(", mode='clip', wrap_negative_indices=False"), "moved to the border"),
        (_PASTED.format(", wrap_negative_indices=False"), "no mode is given"),
        ("def pasted(image, patch, row, column):\n    return lax.dynamic_update_slice(image, "
         "patch, (jnp.maximum(row, 0), jnp.maximum(column, 0)))", "with it"),
        ("def pasted(image, patch, row, column):\n    h, w = patch.shape\n"
         "    big = jnp.pad(image, ((h, h), (w, w)))\n"
         "    big = lax.dynamic_update_slice(big, patch, (row + h, column + w))\n"
         "    return big[h:-h, w:-w]", "counts from the end"),
    ],
    afterthought="a patch may even be larger than the image",
    hints=["the rows are row + jnp.arange(…), as a column; the columns are a row"])


# ---------------------------------------------------------------- which are found


LOUD = {
    "a": ("x[-10]", "-10 is the first of ten elements, counted from the end"),
    "b": ("x[5:30]", "a slice with fixed ends is cut, as in Python: no index of it is outside"),
    "c": ("jnp.where(i < 10, x[i], 0.0)", "both sides of a where are computed: x[i] is read"),
    "d": ("lax.cond(i < 10, lambda: x[i], lambda: 0.0)", "the branch that reads is not taken"),
    "e": ("lax.dynamic_slice(x, (7,), (4,))", "does a window of 4 fit from place 7 on?"),
    "f": ("jnp.take(x, i)", "that nan is given does not make it meant: no mode says so"),
    "g": ('x.at[i].add(1.0, mode="drop")', "the mode says that it may be left out"),
    "h": ("x[i] * 0", "the value is of no use, but x[i] is read"),
}


def grade_loud(loud: Any) -> None:
    x, cases = jnp.arange(10.0), {}
    for letter, (text, hint) in LOUD.items():
        f = eval(f"lambda x, i: {text}", {"jnp": jnp, "lax": lax})
        cases[letter] = (text, not quiet(f, x, 30), hint)
    chosen(loud, cases, "raises", "is silent")


exercise(
    "loud", chapter=CHAPTER, grade=grade_loud, solution='"cefh"',
    wrong=[
        ('"acefh"', "counted from the end"),
        ('"bcefh"', "is cut, as in Python"),
        ('"efh"', "both sides of a where"),
        ('"cdefh"', "is not taken"),
        ('"cfh"', "does a window of 4 fit"),
        ('"ceh"', "does not make it meant"),
        ('"cefgh"', "may be left out"),
        ('"cef"', "is of no use"),
        ("['c', 'e', 'f', 'h']", "a string of letters"),
    ],
    hints=["go through them one by one: is an index outside, is it used, and is a mode given?"])


def grade_last_of(last_of: Callable) -> None:
    random, compiled = np.random.default_rng(0), jax.jit(last_of)
    for lengths in ([4, 1, 2], [4, 0, 2], *random.integers(0, 5, (4, 3)).tolist()):
        rows, n = random.integers(-99, 99, (3, 4)).astype(np.float32), np.array(lengths)
        last = rows[np.arange(3), n - 1]
        inputs = f"the rows {shown(rows)} and the lengths {lengths}"
        expected = np.where(n > 0, last, 0)
        with wanting(inputs, expected):
            out = numbers(compiled(rows, n))
        agree(inputs, out, expected,
              (np.shape(out) != (3,), "one number for each row is expected"),
              (near(out, rows[np.arange(3), np.minimum(n, 3)]), "a row of 1 has its last element "
               "at place 0"),
              (near(out, last), "of a row of no elements this is the element at -1, from the end"),
              ((n == 0).any() and not near(np.asarray(out)[n == 0], 0 * n[n == 0]), "a row of no "
               "elements has no last one: there 0 is expected"),
              (near(out, np.maximum(expected, 0)), "an element may be negative, and then 0 is "
               "larger"),
              (near(np.abs(out), abs(expected)), "an element may be negative, and keeps its sign"),
              (near(out, np.where(n > 0, rows[:, -1], 0)), "that is the last column; a row of 1 "
               "ends at place 0"),
              "a row of n elements has its last one at place n - 1")
    rows = np.array([[1.0, 2.0, np.nan], [np.nan, 3.0, np.inf]], np.float32)
    n = jnp.array([2, 0])
    agree(f"the rows {shown(rows)} and the lengths [2, 0]", last_of(rows, n), [2, 0], "what comes "
          "after the end may be a nan, and nan times 0 is nan: choose in place of multiplying")
    rows = random.integers(10, 99, (3, 4)).astype(np.float32)
    expect(quiet(last_of, rows, jnp.array([4, 0, 2])), "for the lengths [4, 0, 2] the numbers are "
           "right; but the check finds an index outside: it does not know that you throw away what "
           "is read there")


exercise(
    "last_of", chapter=CHAPTER, grade=grade_last_of,
    solution="""
def last_of(rows, lengths):
    def one(row, n):
        return row.at[n - 1].get(mode="fill", fill_value=0.0, wrap_negative_indices=False)
    return jax.vmap(one)(rows, lengths)
""",
    wrong=[
        ("def last_of(rows, lengths):\n    return jax.vmap(lambda row, n: row[n])(rows, lengths)",
         "at place 0"),
        ("def last_of(rows, lengths):\n    return jax.vmap(lambda row, n: row[n - 1])(rows, "
         "lengths)", "from the end"),
        ("def last_of(rows, lengths):\n    return rows[jnp.arange(3), jnp.maximum(lengths - 1, 0)]",
         "has no last one"),
        ("def last_of(rows, lengths):\n"
         "    hit = jnp.arange(rows.shape[1]) + 1 == lengths[:, None]\n"
         "    return jnp.max(jnp.where(hit, rows, 0.0), axis=1)", "may be negative"),
        ("def last_of(rows, lengths):\n    hit = jnp.arange(rows.shape[1]) + 1 == "
         "lengths[:, None]\n    return jnp.sum(jnp.where(hit, abs(rows), 0.0), axis=1)",
         "keeps its sign"),
        ("def last_of(rows, lengths):\n    return jnp.where(lengths > 0, rows[:, -1], 0.0)",
         "that is the last column"),
        ("def last_of(rows, lengths):\n    return rows.at[jnp.arange(len(rows)), lengths].get("
         "mode='fill', fill_value=0.0)", "at place n - 1"),
        ("def last_of(rows, lengths):\n    return jax.vmap(lambda row, n: jnp.where(n > 0, "
         "row[jnp.where(n > 0, n - 1, 9)], 0.0))(rows, lengths)", "throw away"),
        ("def last_of(rows, lengths):\n"
         "    hit = jnp.arange(rows.shape[1]) + 1 == lengths[:, None]\n"
         "    return jnp.sum(rows * hit, axis=1)", "nan times 0"),
    ],
    right=["def last_of(rows, lengths):\n    last = rows[jnp.arange(len(rows)), lengths - 1]\n"
           "    return jnp.where(lengths > 0, last, 0.0)"],
    hints=["write it for one row, with jax.vmap around"])
