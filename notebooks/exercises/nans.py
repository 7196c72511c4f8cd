"""The exercises of chapter 19, *NaNs*."""

from __future__ import annotations

import contextlib
import copy
import io
from collections.abc import Callable
from typing import Any

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax import core, lax
from minijax.notebook.checks import agree, exercise, expect, near, numbers, shown, wanting

CHAPTER = "19_nans"


def _letters(answer: Any, last: str) -> set[str]:
    """An answer that is a string of letters, as a set."""
    expect(isinstance(answer, str), 'a string of letters is expected, such as "abc", and yours is '
           f"{answer!r}")
    letters = set(answer.lower()) - set(" ,")
    expect(all("a" <= letter <= last for letter in letters), f"the letters are a to {last}, and "
           f"yours is {answer!r}")
    return letters


# Each is a question, its answer, and what to think of
QUESTIONS: dict[str, tuple[str, str, str]] = {
    "b": ("1 / zero", "inf", "b is infinite, which is a number one can compare"),
    "e": ("jnp.log(zero)", "-inf", "e goes down without end as its operand goes to zero: which "
          "way?"),
    "f": ("jnp.exp(-inf)", "0.0", "f has an answer, whichever large number you take"),
    "g": ("inf * inf", "inf", "g has an answer, whichever large numbers you take"),
    "h": ("jnp.where(False, jnp.nan, 1.0)", "1.0", "h passes on only what it chooses"),
    "a": ("zero / zero", "nan", "a: what would you multiply by zero to get zero?"),
    "c": ("inf - inf", "nan", "c: one infinity may be larger than the other; by how much?"),
    "d": ("zero * inf", "nan", "d: is it nearer to zero, or to infinity?")}


def grade_undefined(answer: Any) -> None:
    letters = _letters(answer, "h")
    for letter, (text, gives, why) in QUESTIONS.items():
        says = "is nan" if letter in letters else "is not"
        expect((letter in letters) == (gives == "nan"),
               f"for {letter}, `{text}`, the answer is {gives}, and you say it {says}\n{why}")


exercise(
    "undefined", chapter=CHAPTER, grade=grade_undefined, solution='"acd"',
    wrong=[
        ('"abcd"', "b is infinite"),
        ('"acde"', "which way"),
        ('"ac"', "nearer to zero"),
        ('"acdg"', "whichever large numbers"),
        ('"acdh"', "only what it chooses"),
    ],
    hints=["those without an answer, not those with a large one"])


VALUES = [np.nan, 0.0, 1.0, np.inf]
PAIRS = [[x, y] for x in VALUES for y in VALUES]
LARGEST = float(np.finfo(np.float32).max)
SENTINELS = [*range(-12, 13), 0.5, -0.5, *(sign * x for sign in (1, -1) for x in (
    42, 99, 100, 123, 999, 1000, 1234, 9999, 12345, 99999, 1e5, 1e6, 1e8, 1e9, 1e10, 1e12, 1e20,
    1e30, 1e38, 1e-6, 1e-9, 1e-10, 1e-12, 1e-30, LARGEST))]  # what might stand for a nan


def grade_same_values(same_values: Callable) -> None:
    compiled = jax.jit(same_values)
    near_one = [1.0, np.float32(1.0) + np.float32(1e-6)]
    for a, b in [([1.0, 2.0], [1.0, 2.0]), ([1.0, np.nan], [1.0, np.nan]), ([1.0, np.nan], [1, 2]),
                 ([1.0, 1.0], near_one), ([0.0, 1.0], [-0.0, 1.0]), ([np.nan, 2.0], [-np.nan, 2.0]),
                 *((a, b) for a in PAIRS for b in PAIRS),
                 *([[np.nan, 2.0], [x, 2.0]][::way] for x in SENTINELS for way in (1, -1)),
                 ([np.inf, -np.inf], [LARGEST, -np.inf]), ([np.inf, -np.inf], [np.inf, -LARGEST])]:
        x, y = np.array(a, np.float32), np.array(b, np.float32)
        expected = np.array_equal(x, y, equal_nan=True)
        inputs = f"a = {x.tolist()} and b = {y.tolist()}"
        with wanting(inputs, expected, (jax.errors.ConcretizationTypeError, "it should work under "
                     "jit, where a Python `if` or `and` cannot look at the numbers"), (ValueError,
                     "Python's `and` and `or` are for one boolean; place by place it is & and |")):
            out = numbers(compiled(x, y))
        agree(inputs, out, expected,
              (np.shape(out) != (), "one answer for the whole arrays is expected"),
              (expected and 0.0 in x, "0.0 == -0.0, though their bits differ"),
              (expected, "a nan is not equal to itself: where do both have one?"),
              (b is near_one, "close is not equal"),
              (np.isnan(x).tolist() != np.isnan(y).tolist(), "a nan is the same as another nan, "
               "and as nothing else"),
              (LARGEST in y or -LARGEST in y, "infinity is above the largest number, and not equal "
               "to it"), "compare place by place")


exercise(
    "same_values", chapter=CHAPTER, grade=grade_same_values,
    solution="""
def same_values(a, b):
    both_nan = jnp.isnan(a) & jnp.isnan(b)
    return jnp.all((a == b) | both_nan)
""",
    wrong=[
        ("def same_values(a, b):\n    return jnp.all(a == b)", "is not equal to itself"),
        ("def same_values(a, b):\n    return jnp.all((a == b) | (a == jnp.nan) & (b == jnp.nan))",
         "is not equal to itself"),
        ("def same_values(a, b):\n    return jnp.all((a == b) | jnp.isnan(a))", "as nothing else"),
        ("def same_values(a, b):\n    equal = jnp.nan_to_num(a) == jnp.nan_to_num(b)\n"
         "    return jnp.all(equal & (jnp.isnan(a) == jnp.isnan(b)))", "the largest number"),
        ("def same_values(a, b):\n"
         "    return jnp.all(jnp.nan_to_num(a, nan=-1.0) == jnp.nan_to_num(b, nan=-1.0))",
         "as nothing else"),
        ("def same_values(a, b):\n    return jnp.all(jnp.nan_to_num(a) == jnp.nan_to_num(b))",
         "as nothing else"),
        ("def same_values(a, b):\n    return jnp.allclose(a, b, equal_nan=True)", "close is not"),
        ("def same_values(a, b):\n    return (a == b) | (jnp.isnan(a) & jnp.isnan(b))",
         "one answer for the whole"),
        ("def same_values(a, b):\n    return jnp.all(a.view(jnp.int32) == b.view(jnp.int32))",
         "their bits differ"),
        ("def same_values(a, b):\n    return a == b or jnp.isnan(a) and jnp.isnan(b)",
         "place by place it is"),
    ],
    hints=["jnp.isnan says where the nans are, for a and for b"])

READINGS = np.array([1.0, np.nan, 2.0, np.nan], np.float32)


def _downhill(w: Any, i: Any) -> Any:
    return w - jnp.sqrt(w)


def _with_gaps(w: Any, i: Any) -> Any:
    reading = jnp.asarray(READINGS)[i]
    return w + jnp.where(jnp.isnan(reading), 0.0, reading)


def _hidden(w: Any, i: Any) -> Any:
    return w - jnp.where(jnp.log(w) > 0.0, 1.0, 0.5)


def _growing(w: Any, i: Any) -> Any:
    return w * 1e30


def _nan_then_infinity(w: Any, i: Any) -> Any:
    made = jnp.log(-w)
    return jnp.where(jnp.isnan(made), w, made) + 0.0 * jnp.minimum(w * 3e38 * 3e38, 1.0)


# In words, the function, where it starts, the first step that makes a nan, and a hint
STEPS: list[tuple[str, Callable, float, int | None, str]] = [
    ("w - sqrt(w)", _downhill, 3.5, 3, "steps are counted from 0; which one *makes* the nan?"),
    ("w - sqrt(w)", _downhill, 9.0, None, "if no nan is made, the answer is None"),
    ("w - sqrt(w)", _downhill, -1.0, 0, "step 0 makes it: 0 is a number of a step, and not None, "
     "though Python takes both for false"),
    ("w plus a reading, or plus 0 where that is nan", _with_gaps, 0.0, None,
     "the nan was in the data, and no step made it: which of the two switches lets nans be data?"),
    ("w - where(log(w) > 0, 1, 0.5)", _hidden, 1.25, 2, "the nan was compared, and is not in w: do "
     "not look at w, let the check look at each operation"),
    ("w * 1e30", _growing, 1.0, None, "an infinity is a finding as well, and is not a nan: look at "
     "the `kind` of what was found"),
    ("w, beside log(-w) and a number that is too large", _nan_then_infinity, 1.0, 0, "the nan is "
     "found, and then something else: look at each finding")]


def grade_first_bad_step(first_bad_step: Callable) -> None:
    for text, step, start, expected, hint in STEPS:
        inputs = f"a step of {text}, from w = {start}, four times"
        began: list[Any] = []

        def listening(w: Any, i: Any, step: Callable = step, began: list = began) -> Any:
            began.append(w)
            return step(w, i)
        with wanting(inputs, expected, (FloatingPointError, hint)):
            result = first_bad_step(listening, jnp.float32(start), 4)
        if len(began) > 1 and all(w is began[0] for w in began):
            hint = "each step of yours begins with the first w; which w has the step before left?"
        expect(result is None or isinstance(result, int | np.integer),
               f"for {inputs}, the answer is {expected}, and yours is {result!r}\n"
               "the number of a step is expected, or None")
        expect(result is expected
               or (expected is not None and result is not None and result == expected),
               f"for {inputs}, the answer is {expected}, and yours is {result}\n{hint}")
    for steps, expected in ((5, None), (6, 5)):
        result = first_bad_step(_downhill, jnp.float32(9.0), steps)
        expect(result == expected, f"for a step of w - sqrt(w), from w = 9.0, {steps} times, the "
               f"answer is {expected}, and yours is {result}\n"
               f"the steps are number 0 to {steps - 1}")


def _watching(body: str, before: str = "", after: str = "return None") -> str:
    return (f"def first_bad_step(step, w, steps):\n{before}    for i in range(steps):\n{body}"
            f"    {after}\n")


exercise(
    "first_bad_step", chapter=CHAPTER, grade=grade_first_bad_step,
    solution="""
def first_bad_step(step, w, steps):
    for i in range(steps):
        with jax.checking_sharp_bits(collect=True) as findings:
            w = step(w, i)
        if any(found.kind == "debug_nans" for found in findings):
            return i
    return None
""",
    wrong=[
        (_watching("        w = step(w, i)\n        if jnp.isnan(w):\n            return i\n"),
         "do not look at w"),
        (_watching("        try:\n            with jax.debug_nans(True):\n"
                   "                w = step(w, i)\n        except FloatingPointError:\n"
                   "            return i\n"), "lets nans be data"),
        (_watching("        with jax.debug_nans(True):\n            w = step(w, i)\n"),
         "counted from 0"),
        (_watching("        with jax.checking_sharp_bits(collect=True) as findings:\n"
                   "            w = step(w, i)\n        if findings:\n            return i\n"),
         "is not a nan"),
        (_watching("        with jax.checking_sharp_bits(collect=True) as findings:\n"
                   "            w = step(w, i)\n        if findings:\n            return i + 1\n"),
         "counted from 0"),
        (_watching("        with jax.checking_sharp_bits(collect=True) as findings:\n"
                   "            w = step(w, i)\n        if findings:\n            return findings"
                   "\n"),
         "the number of a step"),
        (_watching("        with jax.checking_sharp_bits(collect=True) as findings:\n"
                   "            w = step(w, i)\n"
                   "        if any(found.kind == 'debug_nans' for found in findings):\n"
                   "            return i or None\n"), "0 is a number of a step"),
        (_watching("        with jax.checking_sharp_bits(collect=True) as findings:\n"
                   "            step(w, i)\n"
                   "        if any(found.kind == 'debug_nans' for found in findings):\n"
                   "            return i\n"), "begins with the first w"),
        (_watching("        with jax.checking_sharp_bits(collect=True) as findings:\n"
                   "            w = step(w, i)\n"
                   "        if findings and findings[-1].kind == 'debug_nans':\n"
                   "            return i\n"), "look at each finding"),
        (_watching("        with jax.checking_sharp_bits(collect=True) as findings:\n"
                   "            w = step(w, i)\n"
                   "        if any(found.kind == 'debug_nans' for found in findings):\n"
                   "            return i\n").replace("range(steps)", "range(steps + 1)"),
         "number 0 to 4"),
    ],
    hints=["a `with` around each step, and then look at the list",
           'the kind of a nan is "debug_nans"'])


def _told(findings: Any) -> str:
    """The first finding, on one line."""
    return findings[0].message.removeprefix("invalid value ") if findings else ""


def grade_length(length: Callable) -> None:
    random = np.random.default_rng(0)
    for values in ([3, 4, 0], [-3, -4, 0], [-1, -2, -2], *random.integers(-9, 10, (4, 3)).tolist(),
                   [3e-5, 4e-5, 0], [3e-14, 4e-14, 0], [2, 1, 4, -2], [-5]):
        v = np.array(values, np.float32)
        expected = np.sqrt(np.sum(v * v))
        out = np.asarray(numbers(length(jnp.asarray(v))))
        scale = 1 if expected >= 1 else 1e5 if expected > 1e-5 else 1e14
        agree(f"v = {values}" + f", times {scale:g}," * (scale > 1), out * scale, expected * scale,
              (scale > 1, "nothing may be added to a small length, and it is not zero"),
              (len(v) != 3, "right for three numbers, and a vector may have more, or fewer"),
              "it is the root of the sum of the squares")
        agree(f"v = {values}", jax.grad(length)(jnp.asarray(v)), v / expected, "it is v / length",
              what="the gradient")
    zero = jnp.zeros(3)
    with wanting("v = [0, 0, 0] under jit", 0.0, (jax.errors.ConcretizationTypeError, "a Python "
                 "`if` cannot look at the numbers: choose with jnp.where")):
        at_zero = jax.jit(length)(zero)
    agree("v = [0, 0, 0]", at_zero, 0.0)
    expect(float(at_zero) == 0, f"for v = [0, 0, 0] the answer is 0, and yours is {at_zero!r}: "
           "nothing may be added to it")
    slope = jax.grad(length)(zero)
    agree("v = [0, 0, 0]", slope, np.zeros(3),
          (np.isnan(slope).any(), "what is the operand of the root there, also where its result is "
           "not chosen? And is something divided by 0?"), "it should be zeros there",
          what="the gradient")
    with jax.checking_sharp_bits(collect=True) as findings:
        jax.jit(jax.grad(length))(jnp.zeros(3))
    expect(not findings, "for v = [0, 0, 0] the gradient is right; it should be so without a nan "
           f"or an infinity on the way, and yours has {_told(findings)}")


exercise(
    "length", chapter=CHAPTER, grade=grade_length,
    solution="""
def length(v):
    square = jnp.sum(v * v)
    is_zero = square == 0
    root = jnp.sqrt(jnp.where(is_zero, 1.0, square))
    return jnp.where(is_zero, 0.0, root)
""",
    wrong=[
        ("def length(v):\n    return jnp.sqrt(jnp.sum(v * v))", "operand of the root"),
        ("def length(v):\n    square = jnp.sum(v * v)\n"
         "    return jnp.where(square == 0, 0.0, jnp.sqrt(square))", "also where its result"),
        ("def length(v):\n    return jnp.sqrt(jnp.sum(v * v) + 1e-12)", "nothing may be added"),
        ("def length(v):\n    return jnp.sqrt(jnp.sum(v * v) + 1e-24)", "nothing may be added"),
        ("def length(v):\n    return jnp.sqrt(jnp.maximum(jnp.sum(v * v), 1e-30))",
         "nothing may be added"),
        ("def length(v):\n    square = jnp.sum(v * v)\n    if square == 0:\n        return square\n"
         "    return jnp.sqrt(square)", "cannot look at the numbers"),
        ("def length(v):\n    square = jnp.sum(v * v)\n    is_zero = square < 1e-6\n"
         "    root = jnp.sqrt(jnp.where(is_zero, 1.0, square))\n"
         "    return jnp.where(is_zero, 0.0, root)", "it is not zero"),
        ("def length(v):\n    square = v[0]**2 + v[1]**2 + v[2]**2\n    is_zero = square == 0\n"
         "    root = jnp.sqrt(jnp.where(is_zero, 1.0, square))\n"
         "    return jnp.where(is_zero, 0.0, root)", "more, or fewer"),
    ],
    hints=["choose twice: before the root and after it"])


# A function, its slope at 0 in words, and what to think of
SLOPES: dict[str, tuple[str, str]] = {
    "a": ("jnp.sqrt(x)", "the root rises without bound there: 0.5 / sqrt(0)"),
    "b": ("x * jnp.sqrt(x)", "by the rule for products, x stands before the slope of the root: 0 "
          "times what?"),
    "c": ("jnp.sqrt(jnp.where(x > 0, x, 1.0))", "the operand of the root is 1, and its slope 0.5"),
    "d": ("jnp.sqrt(x * x)", "the slope of the root at 0, times the slope of the square there"),
    "e": ("jnp.abs(x)", "a corner has no slope, and one of the two sides is taken"),
    "f": ("jnp.where(x > 0, x * jnp.log(x), 0.0)", "what is not chosen gets the slope 0, and hands "
          "it on, times what?"),
    "g": ("lax.cond(x > 0, jnp.sqrt, lambda x: 0 * x, x)", "a `cond` runs one branch alone, also "
          "backwards"),
    "h": ("jnp.sqrt(x * x + 1e-12)", "the operand of the root is small, and not 0"),
}


def grade_nan_slopes(answer: Any) -> None:
    letters = _letters(answer, "h")
    for letter, (text, why) in SLOPES.items():
        f = eval(f"lambda x: {text}", {"jnp": jnp, "lax": lax})
        slope = float(jax.grad(f)(jnp.float32(0.0)))
        says = "is nan" if letter in letters else "is not"
        expect((letter in letters) == np.isnan(slope), f"for {letter}, `{text}`, the slope at 0 is "
               f"{slope:.3g}, and you say it {says}\n{why}")


exercise(
    "nan_slopes", chapter=CHAPTER, grade=grade_nan_slopes, solution='"bdf"',
    wrong=[
        ('"abdf"', "rises without bound"),
        ('"df"', "0 times what?"),
        ('"bf"', "the slope of the square"),
        ('"bd"', "what is not chosen"),
        ('"bdef"', "a corner has no slope"),
        ('"bdfg"', "one branch alone"),
        ('"bdfz"', "letters are a to h"),
    ],
    hints=["0 times infinity: which of them have both?"])


def _line(w: Any, example: Any) -> Any:
    x, y = example
    return (w["slope"] * x + w["height"] - y) ** 2


def _root_of_square(w: Any, example: Any) -> Any:
    x, y = example
    return jnp.sqrt((w["slope"] * x - y) ** 2) + w["height"] ** 2


def _guarded(w: Any, example: Any) -> Any:
    return w["height"] + jnp.sum(jnp.where(example > 0, w["slope"] * jnp.sqrt(example), 0.0))


def _steep(w: Any, example: Any) -> Any:
    return jnp.sqrt(w["slope"]) * example + w["height"]


def _of_vectors(w: Any, example: Any) -> Any:
    return jnp.sum(w["height"]) + jnp.linalg.norm(w["slope"] * example)


def _steep_both_ways(w: Any, example: Any) -> Any:
    return (jnp.sqrt(w["up"]) - jnp.sqrt(w["down"])) * example


def _of_tables(w: Any, example: Any) -> Any:
    return jnp.sum(jnp.sqrt((w["table"] * example - 1.0) ** 2))


# In words, the loss of one example, weights, examples, and a hint
LOSSES: list[tuple[str, Callable, Any, Any, str]] = [
    ("(slope x + height - y)²", _line, {"slope": 1.0, "height": 0.0},
     (np.array([1.0, np.nan, 3.0]), np.array([1.0, 2.0, 3.0])), "the gradient of each example by "
     "itself is expected: `vmap` of `grad`"),
    ("sqrt((slope x - y)²) + height²", _root_of_square, {"slope": 2.0, "height": 1.0},
     (np.array([1.0, 2.0, 3.0]), np.array([2.0, 5.0, 6.0])), "each loss is a good number; its "
     "gradient is not, and only one of the leaves of the gradient shows it"),
    ("height + slope sqrt(x) where x > 0", _guarded, {"slope": 1.0, "height": 0.0},
     np.array([4.0, -1.0, 9.0]), "only examples whose gradient is nan are bad"),
    ("sqrt(slope) x + height, with the slope 0", _steep, {"slope": 0.0, "height": 1.0},
     np.array([1.0, 0.0, 2.0]), "an infinity is not a nan"),
    ("height[0] + height[1] + norm(slope x), for vectors", _of_vectors,
     {"slope": np.ones(2, np.float32), "height": np.ones(2, np.float32)},
     np.array([[1.0, 2.0], [3.0, 4.0], [0.0, 0.0], [1.0, 0.0]]), "a gradient may have several "
     "numbers for each example: the first axis counts the examples"),
    ("(sqrt(up) - sqrt(down)) x, with both 0", _steep_both_ways, {"up": 0.0, "down": 0.0},
     np.array([1.0, 0.0, 2.0]), "infinity less infinity is nan: add nothing up, look at each "
     "number"),
    ("the sum of sqrt((table x - 1)²), for tables", _of_tables,
     {"table": np.ones((2, 2), np.float32)},
     np.array([[[1.0, 2.0], [3.0, 4.0]], [[2.0, 2.0], [3.0, 0.0]], [[0.0, 5.0], [5.0, 1.0]]]),
     "one nan among all the numbers of a gradient is enough")]


def grade_bad_examples(bad_examples: Callable) -> None:
    for text, loss, weights, batch, hint in LOSSES:
        batch = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), batch)
        of_each = jax.vmap(jax.grad(loss), (None, 0))(weights, batch)
        count = len(jax.tree.leaves(batch)[0])
        expected = [i for i in range(count)
                  if any(np.isnan(np.asarray(leaf)[i]).any() for leaf in jax.tree.leaves(of_each))]
        data = " and ".join(shown(leaf) for leaf in jax.tree.leaves(batch))
        inputs = f"a loss of {text}, and the batch {data},"
        with wanting(inputs, expected,
                     (ValueError, "what do you do with a leaf that has one number for each "
                     "example, and with one that has more?"), hint):
            result = bad_examples(loss, copy.deepcopy(weights), batch)
            expect(result is not None, "your function gave None: does each way through it end in "
                   "`return`?")
            listed = np.asarray(result).tolist()
        expect(np.asarray(result).dtype.kind != "b", f"for {inputs} the answer is {expected}, and "
               f"yours is {listed}\nthe indices of the bad ones are wanted")
        expect(listed == expected,
               f"for {inputs} the answer is {expected}, and yours is {listed}\n{hint}")


exercise(
    "bad_examples", chapter=CHAPTER, grade=grade_bad_examples,
    solution="""
def bad_examples(loss, weights, batch):
    gradients = jax.vmap(jax.grad(loss), (None, 0))(weights, batch)
    bad = [jnp.isnan(leaf).reshape(len(leaf), -1).any(axis=1)
           for leaf in jax.tree.leaves(gradients)]
    return [i for i, is_bad in enumerate(np.any(bad, axis=0)) if is_bad]
""",
    wrong=[
        ("def bad_examples(loss, weights, batch):\n"
         "    losses = jax.vmap(loss, (None, 0))(weights, batch)\n"
         "    return np.flatnonzero(jnp.isnan(losses)).tolist()", "each loss is a good number"),
        ("def bad_examples(loss, weights, batch):\n"
         "    g = jax.vmap(jax.grad(loss), (None, 0))(weights, batch)\n"
         "    first = jax.tree.leaves(g)[0]\n"
         "    return np.flatnonzero(jnp.isnan(first)).tolist()", "one of the leaves"),
        ("def bad_examples(loss, weights, batch):\n"
         "    mean = lambda w: jnp.mean(jax.vmap(loss, (None, 0))(w, batch))\n"
         "    g = jax.tree.leaves(jax.grad(mean)(weights))\n"
         "    return [i for i, leaf in enumerate(g) if jnp.isnan(leaf).any()]",
         "of each example by itself"),
        ("def bad_examples(loss, weights, batch):\n"
         "    g = jax.vmap(jax.grad(loss), (None, 0))(weights, batch)\n"
         "    bad = sum(jnp.isnan(leaf) for leaf in jax.tree.leaves(g))\n"
         "    return np.flatnonzero(bad).tolist()", "first axis counts the examples"),
        ("def bad_examples(loss, weights, batch):\n"
         "    g = jax.vmap(jax.grad(loss), (None, 0))(weights, batch)\n"
         "    bad = [~jnp.isfinite(x).reshape(len(x), -1).all(1) for x in jax.tree.leaves(g)]\n"
         "    return np.flatnonzero(np.any(bad, axis=0)).tolist()", "is not a nan"),
        ("def bad_examples(loss, weights, batch):\n"
         "    g = jax.vmap(jax.grad(loss), (None, 0))(weights, batch)\n"
         "    bad = sum(jnp.isnan(x).any(axis=1) for x in jax.tree.leaves(g))\n"
         "    return np.flatnonzero(bad).tolist()", "one number for each example"),
        ("def bad_examples(loss, weights, batch):\n"
         "    g = jax.vmap(jax.grad(loss), (None, 0))(weights, batch)\n"
         "    bad = [jnp.isnan(x).reshape(len(x), -1).all(1) for x in jax.tree.leaves(g)]\n"
         "    return np.flatnonzero(np.any(bad, axis=0)).tolist()", "is enough"),
        ("def bad_examples(loss, weights, batch):\n"
         "    g = jax.vmap(jax.grad(loss), (None, 0))(weights, batch)\n"
         "    bad = [jnp.isnan(x).any(axis=-1) if x.ndim > 1 else jnp.isnan(x)\n"
         "           for x in jax.tree.leaves(g)]\n"
         "    return np.flatnonzero(np.any(bad, axis=0)).tolist()", "is enough"),
        ("def bad_examples(loss, weights, batch):\n"
         "    g = jax.vmap(jax.grad(loss), (None, 0))(weights, batch)\n"
         "    total = sum(x.reshape(len(x), -1).sum(axis=1) for x in jax.tree.leaves(g))\n"
         "    return np.flatnonzero(jnp.isnan(total)).tolist()", "add nothing up"),
        ("def bad_examples(loss, weights, batch):\n"
         "    g = jax.vmap(jax.grad(loss), (None, 0))(weights, batch)\n"
         "    bad = [jnp.isnan(x).reshape(len(x), -1).any(1) for x in jax.tree.leaves(g)]\n"
         "    return np.any(bad, axis=0)", "the indices of"),
    ],
    hints=["first the gradients of all examples, and then: which of them hold a nan?",
           "an example is bad if any array of its gradient has a nan anywhere"])

# A call, and what to think of; `measured` holds a nan, `negative` a number below zero
UNDER_THE_FLAG: dict[str, tuple[str, str]] = {
    "a": ("measured + 1", "an operation that passes on a nan raises as well"),
    "b": ("1 / jnp.zeros(2)", "infinities are looked for by another flag"),
    "c": ("jnp.nansum(measured)", "a function of the package counts as one operation, and its "
          "result is good"),
    "d": ("jnp.where(negative > 0, jnp.sqrt(negative), 0.0)", "without jit, the root is an "
          "operation by itself, and looked at before `where` chooses"),
    "e": ("jax.jit(lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0))(negative)", "compiled, it is one "
          "step, and only its result is looked at"),
    "f": ("jax.grad(lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0))(0.0)", "the backward pass is "
          "looked at, too"),
    "g": ("jax.jit(lambda x: jnp.sqrt(x) > 1)(negative)", "what comes out is a boolean: no trace "
          "is left of the nan"),
    "h": ("jax.jit(lambda x: jnp.log(jnp.sqrt(x)))(negative)", "the nan reaches the result of the "
          "compiled function"),
}


def grade_raising_calls(answer: Any) -> None:
    letters = _letters(answer, "h")
    names = {"jax": jax, "jnp": jnp, "measured": jnp.array([1.5, np.nan, 2.5]),
             "negative": jnp.array([-1.0, 4.0])}
    for letter, (text, why) in UNDER_THE_FLAG.items():
        happens, raises = "raises nothing", False
        with jax.debug_nans(True), contextlib.redirect_stdout(io.StringIO()):
            try:
                eval(text, names)
            except FloatingPointError:
                happens, raises = "raises", True
        says = "it does" if letter in letters else "it does not"
        expect((letter in letters) == raises,
               f"for {letter}, `{text}`, the call {happens}, and you say {says}\n{why}")


exercise(
    "raising_calls", chapter=CHAPTER, grade=grade_raising_calls, solution='"adfh"',
    wrong=[
        ('"dfh"', "passes on a nan raises"),
        ('"abdfh"', "by another flag"),
        ('"acdfh"', "counts as one operation"),
        ('"afh"', "before `where` chooses"),
        ('"adefh"', "only its result"),
        ('"adh"', "backward pass"),
        ('"adfgh"', "no trace is left"),
        ('"adf"', "reaches the result"),
    ],
    hints=["what is looked at: the result of each operation, or of the whole function?"])


def grade_logmeanexp(logmeanexp: Callable) -> None:
    random = np.random.default_rng(0)
    inputs = [[0, 1, 2], [2, 0.5], [0, 1, 2, 1, -1], [3], [1000, 1000, 1000],
             [-1000, -1000, -1000], [-500, 0, 600], *random.integers(-800, 800, (4, 3)).tolist()]
    for values in inputs:
        x = np.array(values, np.float32)
        expected = np.max(x) + np.log(np.mean(np.exp(x.astype(float) - np.max(x))))
        with jax.checking_sharp_bits(collect=True) as findings:
            result = numbers(logmeanexp(jnp.asarray(x)))
        finite = np.isfinite(result).all()
        agree(f"x = {values}", result, expected,
              (not finite and min(values) == max(values), "take something out of the exponentials "
               "before they are computed"),
              (not finite, "which of the numbers should be taken out?"),
              (near(result, expected + np.log(len(x))) and len(x) > 1, "it is a mean, and not a "
               "sum"),
              "the result lies between the least and the largest number", tolerance=1e-6)
        expect(not findings, f"for x = {values} the answer is right; it should be so without a nan "
               f"or an infinity on the way, and yours has {_told(findings)}")


exercise(
    "logmeanexp", chapter=CHAPTER, grade=grade_logmeanexp,
    solution="""
def logmeanexp(x):
    largest = jnp.max(x)
    return largest + jnp.log(jnp.mean(jnp.exp(x - largest)))
""",
    wrong=[
        ("def logmeanexp(x):\n    return jnp.log(jnp.mean(jnp.exp(x)))", "take something out"),
        ("def logmeanexp(x):\n    return jnp.log(jnp.mean(jnp.exp(jnp.clip(x, -80, 80))))",
         "yours is 80"),
        ("def logmeanexp(x):\n    m = jnp.mean(x)\n"
         "    return m + jnp.log(jnp.mean(jnp.exp(x - m)))", "which of the numbers"),
        ("def logmeanexp(x):\n    m = jnp.max(x)\n    return m + jnp.log(jnp.sum(jnp.exp(x - m)))",
         "not a sum"),
        ("def logmeanexp(x):\n    return jax.nn.logsumexp(x) - np.log(3)", "x = [2, 0.5]"),
    ],
    hints=["exp(a + b) is exp(a) times exp(b)"])

TANKS = """
levels = jnp.array([9.0, 4.0, 7.0, 8.0, 5.0, 6.0])
holes = jnp.array([0.15, 0.1, 0.125, 0.3, 0.11, 0.12])
"""


def _levels() -> np.ndarray:
    """The level of each tank at the start of each second, and at the end."""
    level, hole = (np.array(x, np.float32) for x in (
        [9.0, 4.0, 7.0, 8.0, 5.0, 6.0], [0.15, 0.1, 0.125, 0.3, 0.11, 0.12]))
    every = [level]
    with np.errstate(invalid="ignore"):
        for _ in range(20):
            every.append(every[-1] - hole * np.sqrt(every[-1]))
    return np.array(every)


def grade_dry(answer: Any) -> None:
    expect(isinstance(answer, tuple | list) and len(answer) == 3,
           f"a tuple of three numbers is expected: tank, second, level; yours is {answer!r}")
    tank, second, level = answer
    expect((tank, second) != (17, 3), "there are six tanks, and yours is number 17: the tank comes "
           "first, then the second")
    expect(tank in range(6) and second in range(20), "tanks are numbered from 0 to 5 and seconds "
           f"from 0 to 19, and yours are {tank!r} and {second!r}")
    levels = _levels()
    expect(np.isnan(levels[-1, tank]), f"for tank {tank} the last level is "
           f"{shown(levels[-1, tank])}, and you say that it went wrong; the last level of which "
           "tank is nan? The first tank is number 0")
    begins = f"for second {second} tank {tank} begins with the level {shown(levels[second, tank])}"
    expect(not np.isnan(levels[second, tank]), f"{begins}, and you say that the trouble begins "
           "there: seconds are counted from 0, as in the message")
    expect(np.isnan(levels[second + 1, tank]), f"{begins}, which has a root, and ends with "
           f"{shown(levels[second + 1, tank])}: nothing was nan yet; which iteration does the "
           "message name?")
    expect(not np.isnan(level), "the level is nan after that second, and you say before it: what "
           "was it then?")
    expect(near(level, levels[second, tank], 1e-3), f"the tank and the second are right, and the "
           f"level was not {shown(level)}: the message has the operand of the root")


exercise(
    "dry", chapter=CHAPTER, grade=grade_dry, solution="(3, 17, -0.0130463)",
    wrong=[
        ("(17, 3, -0.013)", "tank comes first"),
        ("(3, 18, -0.013)", "counted from 0"),
        ("(3, 16, 0.3)", "nothing was nan yet"),
        ("(3, 17, float('nan'))", "what was it then"),
        ("(3, 17, 0.013)", "operand of the root"),
        ("(4, 17, -0.013)", "number 0"),
        ("(3, 17)", "three numbers"),
    ],
    hints=["with jax.debug_nans(True): drain(levels, holes)"])


def _scaled(x: Any) -> Any:
    return jnp.sin(x * 2.0) / (x - x) + 1.0


def _rooted(x: Any) -> Any:
    return jnp.cos(jnp.sqrt(x))


def _times_numbers(x: Any) -> Any:
    return jnp.log(x * np.array([1.0, -1.0], np.float32))


def _less(x: Any) -> Any:
    return jnp.subtract(1.0, x)


def _and_a_log(x: Any) -> Any:
    return x + jnp.sum(lax.log_p.bind(np.array([-1.0, -2.0], np.float32)))


def _log_and_root(x: Any) -> Any:
    return jnp.log(x) * jnp.sqrt(x)


def _inverse(x: Any) -> Any:
    return 1.0 / x


def _log_times_0(x: Any) -> Any:
    return jnp.log(x) * 0.0


def _largest_log(x: Any) -> Any:
    return lax.top_k(jnp.log(x), 1)[0]


_two_logs_p = core.Primitive(
    "two_logs", impl=lambda x: [np.log(np.abs(x)), np.log(x)], abstract_eval=lambda x: [x, x],
    multiple_results=True)


def _two_logs(x: Any) -> Any:
    return tuple(_two_logs_p.bind_list(x))


# Functions in words, arguments, the name of the first primitive that makes a nan, and a hint
PROGRAMS: list[tuple[str, Callable, Any, str | None, str]] = [
    ("sin(2 x) / (x - x) + 1", _scaled, 0.0, "div", "the first one is expected, not the last"),
    ("sin(2 x) / (x - x) + 1", _scaled, np.nan, None, "if the argument is nan, nobody makes one: "
     "look at the operands as well"),
    ("1 - x", _less, np.nan, None, "look at all operands of an operation, not at the first alone"),
    ("log(x) * 0", _log_times_0, 0.0, "mul", "infinity is not nan; infinity times 0 is"),
    ("cos(sqrt(x))", _rooted, -1.0, "sqrt", "the root makes it, and the cosine passes it on"),
    ("log(x) * sqrt(x)", _log_and_root, -1.0, "log", "two operations make one: which is first?"),
    ("1 / x", _inverse, [0.0, -0.0], None, "infinity and minus infinity are no nan, and their sum "
     "is: look at each element"),
    ("cos(sqrt(x))", _rooted, 1.0, None, "if all is well, the answer is None"),
    ("log(x * numbers)", _times_numbers, [1.0, 1.0], "log", "a program has constants as well: its "
     "`jaxpr.constvars` are variables, and their values are in `consts`"),
    ("x + log(-numbers), with numbers = 1, 2", _and_a_log, np.nan, "log", "an operation that does "
     "not look at x makes one, even if x is nan"),
    ("top_k(log(x), 1)[0]", _largest_log, [1.0, 1.0], None, "an equation may have several outputs: "
     "every one of its outvars gets its value"),
    ("top_k(log(x), 1)[0]", _largest_log, [1.0, -1.0], "log", "look at all elements of an array"),
    ("two_logs(x), which are log(abs(x)) and log(x),", _two_logs, -1.0, "two_logs", "an equation "
     "may have several outputs, and the nan is in the second: look at all of them")]


def grade_first_nan(first_nan: Callable) -> None:
    for text, f, argument, expected, hint in PROGRAMS:
        x = np.array(argument, np.float32)
        inputs = f"the program of {text} and x = {shown(x)}"
        with wanting(inputs, expected, hint):
            result = first_nan(jax.make_jaxpr(f)(x), x)
        expect(result is None or isinstance(result, str), f"for {inputs} the answer is "
               f"{expected!r}, a string or None, and yours is {result!r}, of type "
               f"{type(result).__name__}")
        if f is _times_numbers:  # whoever has read the constants is here
            hint = "one of the two numbers is a nan, and the other is not: that is enough"
        expect(result == expected,
               f"for {inputs} the answer is {expected!r}, and yours is {result!r}\n{hint}")
    program = jax.make_jaxpr(lambda x, y: x * jnp.log(y))(1.0, -1.0)
    with wanting("the program of x * log(y), x = 1 and y = -1", "log", "a program may have several "
                 "arguments"):
        result = first_nan(program, np.float32(1), np.float32(-1))
    expect(result == "log", "for the program of x * log(y), x = 1 and y = -1 the answer is 'log', "
           f"and yours is {result!r}\na program may have several arguments")


_FIRST_NAN = """
def first_nan(program, *args):
    values = dict(zip(program.jaxpr.constvars, program.consts))
    values.update(zip(program.jaxpr.invars, args))
    for eqn in program.eqns:
        operands = [v.value if hasattr(v, 'value') else values[v] for v in eqn.invars]
        outs = eqn.primitive.bind_list(*operands, **eqn.params)
        if {}:
            return {}
        values.update(zip(eqn.outvars, outs))
"""

exercise(
    "first_nan", chapter=CHAPTER, grade=grade_first_nan,
    solution="""
def first_nan(program, *args):
    values = dict(zip(program.jaxpr.constvars, program.consts))
    values.update(zip(program.jaxpr.invars, args))

    def has_nan(arrays):
        return any(bool(jnp.isnan(x).any()) for x in arrays)

    for eqn in program.eqns:
        operands = [v.value if hasattr(v, "value") else values[v] for v in eqn.invars]
        outs = eqn.primitive.bind_list(*operands, **eqn.params)
        if has_nan(outs) and not has_nan(operands):
            return eqn.primitive.name
        values.update(zip(eqn.outvars, outs))
    return None
""",
    wrong=[
        ("def first_nan(program, *args):\n"
         "    values = dict(zip(program.jaxpr.constvars, program.consts))\n"
         "    values.update(zip(program.jaxpr.invars, args))\n"
         "    for eqn in program.eqns:\n"
         "        operands = [v.value if hasattr(v, 'value') else values[v] for v in eqn.invars]\n"
         "        outs = eqn.primitive.bind_list(*operands, **eqn.params)\n"
         "        if any(bool(jnp.isnan(x).any()) for x in outs):\n"
         "            return eqn.primitive.name\n"
         "        values.update(zip(eqn.outvars, outs))", "look at the operands"),
        ("def first_nan(program, *args):\n"
         "    values, found = dict(zip(program.jaxpr.invars, args)), None\n"
         "    for eqn in program.eqns:\n"
         "        operands = [v.value if hasattr(v, 'value') else values[v] for v in eqn.invars]\n"
         "        outs = eqn.primitive.bind_list(*operands, **eqn.params)\n"
         "        if any(bool(jnp.isnan(x).any()) for x in outs):\n"
         "            found = eqn.primitive.name\n"
         "        values.update(zip(eqn.outvars, outs))\n"
         "    return found", "not the last"),
        ("def first_nan(program, *args):\n"
         "    values = dict(zip(program.jaxpr.invars, args))\n"
         "    for eqn in program.eqns:\n"
         "        operands = [v.value if hasattr(v, 'value') else values[v] for v in eqn.invars]\n"
         "        outs = eqn.primitive.bind_list(*operands, **eqn.params)\n"
         "        nan = [bool(jnp.isnan(x).any()) for x in (outs[0], *operands)]\n"
         "        if nan[0] and not any(nan[1:]):\n"
         "            return eqn.primitive.name\n"
         "        values.update(zip(eqn.outvars, outs))", "has constants as well"),
        ("def first_nan(program, *args):\n"
         "    values = dict(zip(program.jaxpr.constvars, program.consts))\n"
         "    values.update(zip(program.jaxpr.invars, args))\n"
         "    for eqn in program.eqns:\n"
         "        operands = [v.value if hasattr(v, 'value') else values[v] for v in eqn.invars]\n"
         "        outs = eqn.primitive.bind_list(*operands, **eqn.params)\n"
         "        nan = [bool(jnp.isnan(x).any()) for x in (outs[0], *operands)]\n"
         "        if nan[0] and not any(nan[1:]):\n"
         "            return eqn.primitive.name\n"
         "        values.update(zip(eqn.outvars, outs))", "the nan is in the second"),
        *((_FIRST_NAN.format(f"any(bool({bad}) for x in outs) and not any(\n"
                             f"                bool({bad}) for x in {operands})", out), words)
          for bad, operands, out, words in (
              ("jnp.isnan(x).any()", "operands[:1]", "eqn.primitive.name",
               "not at the first alone"),
              ("(~jnp.isfinite(x)).any()", "operands", "eqn.primitive.name", "is not nan"),
              ("jnp.isnan(x).all()", "operands", "eqn.primitive.name", "that is enough"),
              ("jnp.isnan(jnp.sum(x))", "operands", "eqn.primitive.name", "look at each element"),
              ("jnp.isnan(x).any()", "operands", "eqn.primitive", "a string or None"))),
        (_FIRST_NAN.format("any(bool(jnp.isnan(x).any()) for x in outs) and not any(\n"
                           "                bool(jnp.isnan(x).any()) for x in operands)",
                           "eqn.primitive.name").replace("return eqn", "last = eqn").replace(
            "    for eqn", "    last = None\n    for eqn") + "    return last", "which is first"),
        ("def first_nan(program, *args):\n    if any(bool(jnp.isnan(x).any()) for x in args):\n"
         "        return None\n"
         + _FIRST_NAN.format("any(bool(jnp.isnan(x).any()) for x in outs)", "eqn.primitive.name")
         .partition("args):\n")[2], "does not look at x"),
        (_FIRST_NAN.format("any(bool(jnp.isnan(x).any()) for x in outs) and not any(\n"
                           "                bool(jnp.isnan(x).any()) for x in operands)",
                           "eqn.primitive.name").replace("invars, args", "invars, args[:1]"),
         "several arguments"),
    ],
    hints=["a dict from variables to values, filled as the program runs",
           "jnp.isnan(x).any() of each output, and of each operand"])
