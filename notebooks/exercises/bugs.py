"""The exercises of chapter 33, *Find the bug*."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax.notebook.checks import (agree, exercise, expect, instead_of, near, numbers,
                                     shown, wanting)

from exercises.errors import maps

from .ways import ending_within

CHAPTER = "33_find_the_bug"


def _random(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-3, 3, shape).round(1).astype(np.float32)


def _array(values: Any) -> np.ndarray:
    return np.array(values, np.float32)


# -- 1: decayed ------------------------------------------------------------------------------------

def grade_decayed(decayed: Callable) -> None:
    compiled = jax.jit(decayed)
    for w, rate in ((1.0, 0.1), (1.0, 0.5), (4.0, 0.25), (2.0, 0.5), (2.0, 0.1)):
        expected = w - rate * w
        with wanting(f"w = {w} and rate = {rate}", expected, (
                jax.errors.ConcretizationTypeError, "under `jit` the rate is a tracer, and no "
                "Python number: is a conversion needed?")):
            result = numbers(compiled(w, rate))
        agree(f"w = {w} and rate = {rate}", result, expected,
              (near(result, rate * w), "that is what decays, and not what is left"),
              (near(result, w - 0.1 * w), "whose rate is that? Use the argument"),
              "that is w less rate times w", what="what is left")


_DECAYED = "def decayed(w, rate):\n    return {}"

exercise("decayed", chapter=CHAPTER, grade=grade_decayed, given="rate = 0.1",
         solution=_DECAYED.format("w - rate * w"),
         wrong=[(_DECAYED.format("w - globals()['rate'] * w"), "whose rate"),
                (_DECAYED.format("w - float(rate) * w"), "is a tracer"),
                (_DECAYED.format("rate * w"), "what is left"),
                (_DECAYED.format("w * jnp.exp(-rate)"), "less rate times w"),
                ("def decayed(w, new_rate):\n    return w - rate * w", "whose rate")],
         right=["@jax.jit\ndef decayed(w, rate):\n    return w * (1 - rate)"])


# -- 2: two_noises ---------------------------------------------------------------------------------

def grade_two_noises(two_noises: Callable) -> None:
    pairs: list[tuple] = []
    for seed in (0, 7, 0):
        inputs = f"key({seed}) and n = 2000"
        with jax.checking_sharp_bits(collect=True) as findings:
            pair = two_noises(jax.random.key(seed), 2000)
        expect(np.shape(pair) == (2, 2000), f"for {inputs} two arrays of 2000 numbers are "
               f"wanted, and yours is {shown(pair)}")
        scale, zero = map(np.asarray, pair)
        pairs.append((scale, zero))
        for name, each in (("first", scale), ("second", zero)):
            expect(abs(each.std() - 1) < 0.1 and abs(each.mean()) < 0.1, f"for {inputs} the {name} "
                   f"has the mean {each.mean():.2f} and the deviation {each.std():.2f}, and normal "
                   "numbers have 0 and 1")
        related = abs(np.corrcoef(scale, zero)[0, 1])
        expect(related < 0.1, f"for {inputs} the correlation of the two is {related:.2f}: one "
               "follows from the other")
        shared = np.intersect1d(abs(scale), abs(zero)).size
        expect(shared < 20, f"{shared} numbers of the first are in the second as well, elsewhere "
               "or with another sign")
        expect(not any(each.kind == "debug_key_reuse" for each in findings), "the numbers look "
               "right, and `checking_sharp_bits` says that a key is consumed twice")
    expect(near(pairs[0], pairs[2]), "for key(0) twice, the numbers differ: they should be those "
           "of the key")
    for name, one, other in zip(("first", "second"), *pairs[:2], strict=True):
        expect(not near(one, other), f"key(0) and key(7) give the same numbers for the {name} "
               "array")


_NOISES = """
def two_noises(key, n):
    {keys}
    return {first}, {second}
"""


def _noises_text(keys: str = "first, second = jax.random.split(key)",
                 first: str = "jax.random.normal(first, (n,))",
                 second: str = "jax.random.normal(second, (n,))") -> str:
    return _NOISES.format(keys=keys, first=first, second=second)


exercise("two_noises", chapter=CHAPTER, grade=grade_two_noises, solution=_noises_text(),
         wrong=[(_noises_text("first = second = key"), "follows from the other"),
                (_noises_text(second="-jax.random.normal(first, (n,))"), "follows from the other"),
                (_noises_text(second="jax.random.normal(first, (n,))[::-1]"), "in the second as"),
                ("def two_noises(key, n):\n    x = jax.random.normal(key, (n + 1,))\n"
                 "    return x[1:], x[:-1]", "in the second as well"),
                (_noises_text("first, second = jax.random.split(jax.random.key(0))"),
                 "give the same numbers"),
                (_noises_text(second="np.random.normal(size=n)"), "the numbers differ"),
                (_noises_text(second="jax.random.normal(jax.random.key(1), (n,))"),
                 "for the second array"),
                (_noises_text("first, second = key, jax.random.split(key)[0]"), "consumed twice")],
         right=["def two_noises(key, n):\n    return tuple(jax.random.normal(key, (2, n)))"])


# -- 3: rises --------------------------------------------------------------------------------------

def grade_rises(rises: Callable) -> None:
    for x in ([1.0, 4.0, 9.0, 16.0], [5.0, 3.0], *(_random(n, n).tolist() for n in (3, 6, 8))):
        expected = np.diff(_array(x))
        inputs = f"x = {shown(x)}"
        with wanting(inputs, expected):
            result = numbers(jax.jit(rises)(jnp.array(x)))
        agree(inputs, result, expected,
              (np.shape(result) == np.shape(x), "the last element has no next one: the result is "
               "one shorter"),
              (near(result, -expected), "the later one minus the earlier one"),
              "from each element to the next one", what="the array of rises")
    with jax.checking_sharp_bits(collect=True) as findings:
        rises(jnp.array([1.0, 4.0, 9.0]))
    expect(not findings, "the numbers are right, but an element outside is still read, though not "
           "returned: make the indices end earlier")


_RISES = "def rises(x):\n    return {}"

exercise("rises", chapter=CHAPTER, grade=grade_rises, solution=_RISES.format("x[1:] - x[:-1]"),
         wrong=[("def rises(x):\n    i = jnp.arange(x.size)\n    return x[i + 1] - x[i]",
                 "one shorter"),
                ("def rises(x):\n    i = jnp.arange(x.size)\n    return (x[i + 1] - x[i])[:-1]",
                 "is still read"),
                (_RISES.format("x[:-1] - x[1:]"), "minus the earlier"),
                (_RISES.format("jnp.roll(x, -1) - x"), "one shorter"),
                (_RISES.format("(x - jnp.roll(x, 1))[:-1]"), "to the next one")],
         right=[_RISES.format("jnp.diff(x)"),
                "def rises(x):\n    i = jnp.arange(x.size - 1)\n    return x[i + 1] - x[i]"])


# -- 4: scores_of ----------------------------------------------------------------------------------

def grade_scores_of(scores_of: Callable) -> None:
    tables = [_array([[1, 7, 2], [2, 7, 2], [6, 7, 5]]), _array([[1, 2], [3, 8], [5, 2]]),
              _array([[4, 4], [4, 4]]),
              _array([[0.1, 1], [0.3, 1]]), _random(2, 4, 3),
              _array([[1e-5, 2], [2e-5, 3], [4e-5, 7]]),
              _array([[7.7, 1], [7.7, 2], [7.7, 6]]), _array([[1e-9, 2], [2e-9, 3], [4e-9, 7]])]
    tables[4][:, 1] = -1.0
    for table in tables:
        deviation, varies = table.std(axis=0), np.ptp(table, axis=0) > 0
        parts = varies * (table - table.mean(axis=0)) / np.where(varies, deviation, 1)
        expected, inputs = parts.sum(axis=1), f"the table {shown(table)}"
        with wanting(inputs, expected):
            result = numbers(jax.jit(scores_of)(jnp.array(table)))
        agree(inputs, result, expected,
              (np.shape(result) != np.shape(expected), "one score for each row"),
              (bool(np.isnan(result).any()), "0 / 0 is nan: which column has the deviation 0?"),
              (table[0, 0] == np.float32(7.7), "the mean of equal numbers may be rounded, and then "
               "their deviation is tiny, and not 0: compare the numbers themselves"),
              (table[0, 0] < 1e-4, "the first column is small, and counts like the others: nothing "
               "may be added to a deviation, and none is too small"),
              (near(result, 0.0 * expected), "the scores are gone as well, together with the nan: "
               "mend the column, and not the sum"),
              "the other columns count as before", what="the array of scores")


_SCORES = """
def scores_of(table):
    varies = table.max(axis=0) > table.min(axis=0)
    deviation = table.std(axis=0)
    {safe}
    return {result}
"""


def _scores_text(safe: str = "safe = jnp.where(varies, deviation, 1.0)",
                 result: str = "jnp.where(varies, (table - table.mean(axis=0)) / safe, 0.0)"
                               ".sum(axis=1)") -> str:
    return _SCORES.format(safe=safe, result=result)


_OF_ALL = "((table - table.mean(axis=0)) / safe).sum(axis=1)"

exercise("scores_of", chapter=CHAPTER, grade=grade_scores_of, solution=_scores_text(),
         wrong=[(_scores_text(safe="safe = deviation", result=_OF_ALL), "which column"),
                (_scores_text(safe="safe = deviation", result=f"jnp.nan_to_num({_OF_ALL})"),
                 "mend the column"),
                (_scores_text(safe="safe = deviation + 0.01"), "count as before"),
                (_scores_text(safe="varies = deviation > 1e-6\n    safe = jnp.where(varies, "
                                   "deviation, 1.0)"), "none is too small"),
                (_scores_text(safe="safe = deviation + 1e-6", result=_OF_ALL), "nothing may be"),
                (_scores_text(result=_OF_ALL.replace("axis=1", "axis=0")), "array of scores"),
                (_scores_text(safe="safe = jnp.where(deviation > 1, deviation, 1.0)"),
                 "count as before"),
                (_scores_text(safe="safe = jnp.where(deviation > 0, deviation, 1.0)",
                              result=_OF_ALL), "may be rounded"),
                (_scores_text(safe="safe = deviation", result=(
                    "jnp.nansum((table - table.mean(axis=0)) / safe, axis=1)")),
                 "may be rounded")],
         right=[_scores_text(result=_OF_ALL),
                "def scores_of(table):\n    same = (table == table[0]).all(axis=0)\n"
                "    parts = (table - table.mean(axis=0)) / table.std(axis=0)\n"
                "    return jnp.where(same, 0.0, parts).sum(axis=1)"])


# -- 5: smooth_maxima ------------------------------------------------------------------------------

def grade_smooth_maxima(smooth_maxima: Callable) -> None:
    compiled = jax.jit(smooth_maxima)
    for x in ([0.0, 8.0, 0.0, 0.0], [1.0, 5.0], [-7.0, -1.0, -4.0],
              *(_random(seed, 6).tolist() for seed in (5, 6))):
        smoothed, maxima = _array(x), []
        for _ in range(3):
            smoothed = (smoothed + np.roll(smoothed, 1)) / 2
            maxima.append(float(smoothed.max()))
        inputs = f"x = {shown(x)}"
        with wanting(inputs, maxima, (
                jax.errors.ConcretizationTypeError, "a maximum is a tracer here, and no Python "
                "number"), what="the list of maxima"), instead_of(
                jax.errors.TracerLeakError, "", "a tracer is kept in something that outlives the "
                "function: make the list inside of it"), jax.checking_leaks():
            result = compiled(jnp.array(x))
        expect(isinstance(result, tuple | list) and len(result) == 2,
               f"for {inputs} a pair is wanted, the array and the maxima, and yours is {result}")
        expect(np.shape(result[1]) == (3,), f"for {inputs} three maxima are wanted, and yours are "
               f"{shown(result[1])}")
        agree(inputs, result[0], smoothed, what="the smoothed array")
        agree(inputs, result[1], maxima, (near(result[1][1:], maxima[:2]), "each maximum is that "
              "*after* a round"), what="the list of maxima")


_MAXIMA = """
{before}
def smooth_maxima(x):
    {inside}
    for _ in range(3):
        x = (x + jnp.roll(x, 1)) / 2
        {keep}
    return {result}
"""


def _maxima_text(before: str = "", inside: str = "maxima = []",
                 keep: str = "maxima.append(x.max())", result: str = "x, maxima") -> str:
    return _MAXIMA.format(before=before, inside=inside, keep=keep, result=result)


exercise("smooth_maxima", chapter=CHAPTER, grade=grade_smooth_maxima, solution=_maxima_text(),
         wrong=[(_maxima_text("maxima = []", inside="maxima.clear()"), "outlives the function"),
                (_maxima_text(result="x"), "a pair is wanted"),
                (_maxima_text(keep="maxima.append(float(x.max()))"), "no Python number"),
                (_maxima_text(keep="maxima = [x.max()]"), "three maxima"),
                (_maxima_text(keep="maxima.append(2 * x.mean())"), "the list of maxima")],
         right=[_maxima_text(result="x, jnp.stack(maxima)")])


# -- 6: without_mean -------------------------------------------------------------------------------

def grade_without_mean(without_mean: Callable) -> None:
    for values in ([1.0, 2.0, 6.0], [-5.0, -8.0], _random(9, 5).tolist(), [[1.0, 2.0], [3.0, 8.0]]):
        for make in (np.array, jnp.array):
            x, expected = make(values), np.array(values) - np.mean(values)
            inputs = f"{'an array of NumPy' if make is np.array else 'an array of minijax'}, " \
                     f"{shown(values)},"
            with wanting(inputs, expected):
                result = numbers(without_mean(x))
            agree(inputs, result, expected, (np.ndim(values) == 2, "the mean is that of all "
                  "numbers of the matrix"), what="the array without its mean")
            expect(near(x, values), f"{inputs} is {shown(x)} after the call: make a new array")
    x = np.array([0.1, 0.7])
    x.flags.writeable = False
    with wanting("an array of NumPy that may not be written to, [0.1, 0.7],", x - x.mean(),
                 "it is written to, if only for a while: make a new array"):
        without_mean(x)
    for make in (np.array, jnp.array):
        x = make([1, 2, 6, 1])
        with wanting(f"x = {shown(x)}, integers,", x - 2.5, "an array of integers has a mean, too, "
                     "and cannot hold what is left: make a new array"):
            agree(f"x = {shown(x)}, integers,", without_mean(x), x - 2.5,
                  "the mean of integers is no integer")


_MEAN = "def without_mean(x):\n    {}\n    return {}"

exercise("without_mean", chapter=CHAPTER, grade=grade_without_mean,
         solution="def without_mean(x):\n    return x - x.mean()",
         wrong=[(_MEAN.format("x -= x.mean()", "jnp.asarray(x)"), "make a new array"),
                (_MEAN.format("y = x; y -= x.mean()", "y"), "make a new array"),
                (_MEAN.format("y = np.asarray(x); y -= y.mean()", "y"), "after the call"),
                (_MEAN.format("y = x[:]; y -= y.mean()", "y"), "make a new array"),
                (_MEAN.format("y = x - x.sum()", "y"), "without its mean"),
                (_MEAN.format("n = len(x)", "x - x.sum() / n"), "that of all numbers"),
                (_MEAN.format("m = x.mean(axis=0)", "x - m"), "that of all numbers"),
                (_MEAN.format("x = x.copy(); x -= x.mean()", "x"), "cannot hold"),
                (_MEAN.format("m = x.mean(); x -= m; y = jnp.array(x); x += m", "y"),
                 "if only for a while")],
         right=[_MEAN.format("x = jnp.array(x)", "x - x.mean()"),
                _MEAN.format("x = x.astype('float32'); x -= x.mean()", "x")])


# -- 7: change_of ----------------------------------------------------------------------------------

def grade_change_of(change_of: Callable) -> None:
    random = np.random.default_rng(12)
    pairs: list[Any] = [
        (np.full((2, 2), 10), np.full((2, 2), 20)), (np.full((2, 2), 20), np.full((2, 2), 10)),
        (np.array([[0, 255]]), np.array([[255, 0]])),
        *(random.integers(0, 256, (2, 3, 2)) for _ in range(4))]
    for a, b in pairs:
        expected = np.abs(a - b).mean()
        inputs = f"the pictures {shown(a)} and {shown(b)}"
        with wanting(inputs, expected):
            result = numbers(change_of(jnp.array(a, jnp.uint8), jnp.array(b, jnp.uint8)))
        expect(np.ndim(result) == 0, f"for {inputs} one number is wanted, the mean of all, and "
               f"yours is {shown(result)}")
        agree(inputs, result, expected,
              (near(result, abs(np.mean(a - b))), "take the absolute value of each difference, "
               "and then the mean"),
              (near(result, np.mean(a - b)), "take the absolute value of each difference"),
              (near(result, np.mean((a - b) % 256)), "the difference is made in `uint8`: convert "
               "before you subtract"),
              (near(result, np.mean(abs(a.astype(np.int8) - b.astype(np.int8)))), "int8 ends at "
               "127, and below 0 uint8 begins again at 255"),
              (near(result, np.sqrt(np.mean((a - b) ** 2.0))), "that is the root of the mean of "
               "the squares"),
              (abs(result - expected) < 1 and float(result).is_integer(), "a mean need not be "
               "whole"),
              "how large do the differences become, and their sum? Has the dtype room for it?",
              what="the change")


_CHANGE = "def change_of(a, b):\n    return {}"

exercise("change_of", chapter=CHAPTER, grade=grade_change_of,
         solution=_CHANGE.format("jnp.abs(a.astype(jnp.float32) - b.astype(jnp.float32)).mean()"),
         wrong=[(_CHANGE.format("jnp.minimum(a - b, b - a).mean()"), "begins again"),
                (_CHANGE.format("jnp.abs(a - b).mean()"), "before you subtract"),
                (_CHANGE.format("jnp.abs((a - b).astype(jnp.float32)).mean()"), "before you"),
                (_CHANGE.format("jnp.abs(a.astype(jnp.int8) - b.astype(jnp.int8)).mean()"),
                 "ends at 127"),
                (_CHANGE.format("(a.astype(jnp.float32) - b).mean()"), "absolute value"),
                (_CHANGE.format("(jnp.maximum(a, b) - jnp.minimum(a, b)).sum(dtype=a.dtype)"
                                " / a.size"), "and their sum"),
                (_CHANGE.format("jnp.sqrt(((a.astype(float) - b) ** 2).mean())"), "the root of"),
                (_CHANGE.format("jnp.abs(a.astype(float) - b).mean(axis=0)"), "the mean of all"),
                (_CHANGE.format("jnp.abs(a.astype(int) - b).mean().astype(jnp.uint8)"),
                 "need not be whole"),
                (_CHANGE.format("jnp.abs(a.astype(jnp.float32).mean() - b.mean())"),
                 "each difference")],
         right=[_CHANGE.format("jnp.abs(a.astype(int) - b).mean()"),
                _CHANGE.format("(jnp.maximum(a, b) - jnp.minimum(a, b)).mean()")])


# -- 8: steps_to_one -------------------------------------------------------------------------------

def grade_steps_to_one(steps_to_one: Callable) -> None:
    for h, expected in ((0.25, 4), (0.5, 2), (1.0, 1), (2.0, 1), (0.3, 4), (0.7, 2), (0.15, 7),
                        (0.45, 3), (0.06, 17), (0.011, 91), (0.0101, 100)):
        with ending_within(1.0, f"for h = {h} the answer is {expected}, and yours has not ended "
                            "after a second: is the position ever equal to 1?"), jax.disable_jit():
            result = numbers(steps_to_one(jnp.float32(h)))
        agree(f"h = {h}", result, expected,
              (near(result, expected - 1), "the last step leads to 1 or beyond it: is it counted?"),
              (near(result, expected + 1), "that is a step too many"),
              "go on while the position is below 1", what="the number of steps", tolerance=0)


_STEPS = """
def steps_to_one(h):
    def goes_on(state):
        return {test}

    def one_more(state):
        return state[0] + h, state[1] + 1

    return lax.while_loop(goes_on, one_more, ({start}, 0))[1]
"""

exercise("steps_to_one", chapter=CHAPTER, grade=grade_steps_to_one,
         solution=_STEPS.format(test="state[0] < 1.0", start="0.0"),
         wrong=[(_STEPS.format(test="state[0] != 1.0", start="0.0"), "ever equal to 1"),
                (_STEPS.format(test="state[0] <= 1.0", start="0.0"), "too many"),
                (_STEPS.format(test="state[0] < 1.0", start="h"), "is it counted"),
                ("def steps_to_one(h):\n    return jnp.round(1.0 / h)", "is it counted"),
                (_STEPS.format(test="(state[0] < 1.0) & (state[1] < 50)", start="0.0"),
                 "h = 0.011"),
                (_STEPS.format(test="abs(state[0] - 1.0) > 0.01", start="0.0"), "ever equal")],
         right=["def steps_to_one(h):\n    return jnp.ceil(1.0 / h)"])


# -- 9: path ---------------------------------------------------------------------------------------

def grade_path(path: Callable) -> None:
    for seed, n in ((1, 3), (2, 1), (3, 0), (4, 6)):
        v = jnp.array(_random(seed, 2))
        rows = [np.asarray(v)]
        for _ in range(n):
            rows.append(_array([-rows[-1][1], rows[-1][0]]) * _array(0.9))
        inputs = f"v = {shown(rows[0])} and n = {n}"
        with wanting(inputs, rows, (RuntimeError, "a donated array is read later: which step takes "
                     "it, and does it have to be donated?")):
            result = numbers(path(v, n))
        expect(isinstance(result, jax.Array | np.ndarray), f"for {inputs} an array of {n + 1} rows "
               f"is wanted, and yours is a {type(result).__name__}")
        expect(not v.is_deleted(), f"for {inputs} the caller's v is deleted after the call: the "
               "first step is handed something else, or donates nothing")
        agree(inputs, result, rows,
              (len(result) == n, f"there are {n + 1} rows, and v is the first of them"),
              "each row is one step after the row before", what="the path")


_TURNED = """
def turned(v):
    return jnp.stack([-v[1], v[0]]) * 0.9

step = jax.jit(turned, donate_argnums=0)
"""
_PATH = """
def path(v, n):
    rows = {start}
    for _ in range(n):
        {one}
    return jnp.stack(rows)
"""

exercise("path", chapter=CHAPTER, grade=grade_path, given=_TURNED,
         solution=_PATH.format(start="[v]", one="rows.append(turned(rows[-1]))"),
         wrong=[(_PATH.format(start="[v]", one="rows.append(step(rows[-1]))"), "read later"),
                (_PATH.format(start="[v.copy()]", one="v = step(v); rows.append(v.copy())"),
                 "the caller's v"),
                (_PATH.format(start="[]", one="v = turned(v); rows.append(v)"), "is the first"),
                (_PATH.format(start="[v]", one="rows.append(turned(v))"), "one step after"),
                (_PATH.format(start="[v]", one="rows.append(turned(rows[-1]))").replace(
                    "jnp.stack(rows)", "rows"), "yours is a list")],
         right=[_PATH.format(start="[v]", one="rows.append(step(rows[-1].copy()))"),
                _PATH.format(start="[v]", one="rows.append(jax.jit(turned)(rows[-1]))")])


# -- 10: Settings ----------------------------------------------------------------------------------

def grade_settings(settings: Callable) -> None:
    traces = []

    def scaled(x: Any, s: Any) -> Any:
        traces.append(s)
        return x * s.factor

    fast = jax.jit(scaled, static_argnums=1)
    for factor, count in ((2.0, 1), (2.0, 1), (3.0, 2), (2.0, 2), (0.5, 3), (3.0, 3), (2.5, 4),
                          (2.0625, 5), (-1.0, 6), (-2.0, 7),  # their hashes are equal
                          (2.0 + 2.0**-22, 8)):
        inputs = f"Settings({factor})"
        with wanting(inputs, factor, (ValueError, "a static argument has a hash: what has Python "
                     "done with yours, now that there is an `__eq__`?"), what="the product with 1"):
            result = fast(1.0, settings(factor))
        agree(inputs, result, factor, "that is the program of other settings: when are two of "
              "yours equal?", what="the product with 1")
        expect(len(traces) >= count, f"after a call with {inputs} there are {len(traces)} programs "
               f"for {count} settings: two that differ by little are different, too")
        expect(len(traces) == count, f"after a call with {inputs} the function has been traced "
               f"{len(traces)} times, and {count} would do: equal settings should be equal by "
               "`==`, and have one hash")


_SETTINGS = """
class Settings:
    def __init__(self, factor):
        self.factor = factor
"""
_EQUAL = "\n    def __eq__(self, other):\n        return {}\n"
_HASH = "\n    def __hash__(self):\n        return {}\n"
_SAME = _EQUAL.format("self.factor == other.factor")

exercise("Settings", chapter=CHAPTER, grade=grade_settings,
         solution="from typing import NamedTuple\n\nclass Settings(NamedTuple):\n    factor: float",
         wrong=[(_SETTINGS, "have one hash"),
                (_SETTINGS + _SAME, "what has Python"),
                (_SETTINGS + _HASH.format("hash(self.factor)"), "have one hash"),
                (_SETTINGS + _EQUAL.format("True") + _HASH.format("0"), "of other settings"),
                (_SETTINGS + _EQUAL.format("int(self.factor) == int(other.factor)")
                 + _HASH.format("int(self.factor)"), "of other settings"),
                (_SETTINGS + _SAME + _HASH.format("id(self)"), "have one hash"),
                (_SETTINGS + _EQUAL.format("abs(self.factor - other.factor) < 1e-6")
                 + _HASH.format("1"), "differ by little"),
                (_SETTINGS + _EQUAL.format("str(self.factor)[:3] == str(other.factor)[:3]")
                 + _HASH.format("hash(str(self.factor)[:3])"), "of other settings"),
                (_SETTINGS + _EQUAL.format("hash(self) == hash(other)")
                 + _HASH.format("hash(self.factor)"), "of other settings")],
         right=[_SETTINGS + _SAME + _HASH.format("hash(self.factor)"),
                "from dataclasses import dataclass\n\n@dataclass(frozen=True)\nclass Settings:\n"
                "    factor: float"])


# -- 11: per_sensor --------------------------------------------------------------------------------

def grade_per_sensor(per_sensor: Callable) -> None:
    random = np.random.default_rng(6)
    tables = [_array([[1, 10], [2, 40]]), *(
        random.integers(1, 9, shape).astype(np.float32) for shape in ((3, 3), (2, 4), (4, 1))),
        _array([[-8, 2], [4, -1], [1, -6]])]
    for table in tables:
        expected, inputs = table / table.max(axis=0), f"the table {shown(table)}"
        with wanting(inputs, expected):
            result = numbers(per_sensor(jnp.array(table)))
        agree(inputs, result, expected,
              (near(result, table / table.max(axis=1, keepdims=True)), "that divides each *row* by "
               "its largest number"),
              (near(result, table / table.max()), "that divides all by one number"),
              (np.shape(result) == expected.T.shape and near(result, expected.T), "the numbers are "
               "right, and rows and columns are exchanged: where do the results lie?"),
              (bool((table < 0).any()), "-8 is large in size, and is not the largest number"),
              "each column by its own largest number", what="the table")
    expect(maps(per_sensor, jnp.ones((2, 3))), "the table is right, and this time `vmap` should "
           "make it")


_SENSOR = "def per_sensor(table):\n    return {}"

exercise("per_sensor", chapter=CHAPTER, grade=grade_per_sensor,
         given="def relative(v):\n    return v / v.max()",
         solution=_SENSOR.format("jax.vmap(relative, in_axes=1, out_axes=1)(table)"),
         wrong=[(_SENSOR.format("jax.vmap(relative)(table)"), "each *row*"),
                (_SENSOR.format("jax.vmap(relative, in_axes=1)(table)"), "are exchanged"),
                (_SENSOR.format("relative(table)"), "by one number"),
                (_SENSOR.format("table / table.max(axis=0)"), "`vmap` should make it"),
                (_SENSOR.format("jax.vmap(lambda v: v / jnp.abs(v).max(), 1, 1)(table)"),
                 "large in size"),
                (_SENSOR.format("jax.vmap(relative, out_axes=1)(table)"), "column by its own")],
         right=[_SENSOR.format("jax.vmap(relative)(table.T).T")])


# -- 12: norm_of -----------------------------------------------------------------------------------

def grade_norm_of(norm_of: Callable) -> None:
    for x in (_array([3, 4]), np.zeros(2, np.float32), _array([1e-3, 0]), _array([-3, -4]),
              np.zeros(3, np.float32), _random(8, 4), _array([3e-14, 4e-14])):
        length = float(np.sqrt((x * x).sum()))
        scale = 1e14 if 0 < length < 1e-6 else 1
        slope = x / length if length else 0 * x
        inputs = f"x = {shown(x)}"
        with wanting(inputs, length):
            result = numbers(norm_of(jnp.array(x)))
        agree(inputs + ", times 1e14," * (scale > 1), np.asarray(result) * scale, length * scale,
              (near(result, length ** 2) and scale == 1 and length, "the root is missing"),
              (length == 0, "the length of zeros is 0: nothing may be added to it"),
              (scale > 1, "nothing may be added to a small length, and it is not zero"),
              "the length is the root of the sum of the squares", what="the length",
              tolerance=1e-6 if length else 0)
        with wanting(inputs, slope):
            gradient = jax.jit(jax.grad(norm_of))(jnp.array(x))
        agree(inputs, gradient, slope,
              (bool(np.isnan(gradient).any()), "the branch that is not chosen has a slope as well, "
               "and 0 times infinity is nan: what does the root see?"),
              (length > 0, "where x is not 0, nothing should be changed"), what="the gradient")


_NORM = """
def norm_of(x):
    squares = jnp.sum(x * x)
    {safe}
    return {result}
"""

exercise("norm_of", chapter=CHAPTER, grade=grade_norm_of,
         solution=_NORM.format(safe="safe = jnp.where(squares > 0, squares, 1.0)",
                               result="jnp.where(squares > 0, jnp.sqrt(safe), 0.0)"),
         wrong=[("def norm_of(x):\n"
                 "    return jnp.sqrt(jnp.sum(jnp.where(x == 0, 1e-12, x * x)))", "be added to it"),
                (_NORM.format(safe="", result="jnp.where(squares > 0, jnp.sqrt(squares), 0.0)"),
                 "what does the root see"),
                (_NORM.format(safe="", result="jnp.sqrt(squares + 1e-4)"), "the length"),
                (_NORM.format(safe="", result="jnp.sqrt(jnp.maximum(squares, 1e-30))"),
                 "the length of zeros"),
                (_NORM.format(safe="there = jnp.any(x > 0)\n"
                                   "    safe = jnp.where(there, squares, 1.0)",
                              result="jnp.where(there, jnp.sqrt(safe), 0.0)"),
                 "sum of the squares"),
                (_NORM.format(safe="", result="jnp.sqrt(squares + 1e-24)"), "nothing may be added"),
                (_NORM.format(safe="safe = jnp.maximum(squares, 1e-6)",
                              result="jnp.where(squares > 1e-6, jnp.sqrt(safe), 0.0)"),
                 "it is not zero"),
                (_NORM.format(safe="safe = jnp.where(squares > 0, squares, 1.0)",
                              result="jnp.sqrt(safe)"), "the length"),
                (_NORM.format(safe="", result="jnp.nan_to_num(jnp.sqrt(squares))"),
                 "what does the root see"),
                (_NORM.format(safe="", result="squares"), "the root is missing")])
