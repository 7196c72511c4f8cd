"""The exercises of chapter 18, *Dynamic shapes*."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.notebook.checks import agree, exercise, expect, near, numbers, shown, wanting

CHAPTER = "18_dynamic_shapes"

# A line of x, whether jit refuses it, and what to think of where an answer says otherwise
LINES: dict[str, tuple[str, str]] = {
    "a": ("x[jnp.argmax(x)]", "which element it is depends on a value; how many it is does not"),
    "b": ("x[:jnp.argmax(x)]", "how many elements stand before the largest?"),
    "c": ("jnp.sort(x)[-2:]", "two is two, whatever x contains"),
    "d": ("jnp.linspace(0, jnp.max(x), 5)", "the end of the line is a value, and five is written "
          "there"),
    "e": ("x[np.arange(5) > 2]", "NumPy knows nothing about the trace: its mask is an array with "
          "numbers"),
    "f": ("x[jnp.arange(5) > 2]", "under jit, what `jnp` computes is written down, and has no "
          "numbers yet"),
    "g": ("jnp.zeros(jnp.count_nonzero(x))", "a count is one number, and here a shape is made of "
          "it"),
    "h": ("jnp.where(x > 0, x, 0)", "with three arguments it takes nothing out"),
}


def grade_refused_lines(answer: Any) -> None:
    expect(isinstance(answer, str), 'a string of letters is expected, such as "abc", and yours is '
           f"{answer!r}")
    letters = set(answer.lower()) - set(" ,")
    expect(letters <= set(LINES), f"the letters are a to h, and yours are {shown(answer)}")
    for letter, (text, why) in LINES.items():
        f = eval(f"lambda x: {text}", {"jnp": jnp, "np": np})
        try:
            happens = f"gives {jax.jit(f)(jnp.ones(5)).aval.str_short(True)}"
            is_refused = False
        except (TypeError, IndexError) as error:
            happens, is_refused = f"raises {type(error).__name__}", True
        says = "have it refused" if letter in letters else "let it pass"
        expect((letter in letters) == is_refused, f"for {letter}, `{text}`, with five elements in "
               f"x, jit {happens}, and you {says}\n{why}")


exercise(
    "refused_lines", chapter=CHAPTER, grade=grade_refused_lines, solution='"bfg"',
    wrong=[
        ('"befg"', "its mask is an array with numbers"),
        ('"abfg"', "how many it is does not"),
        ('"bg"', "has no numbers yet"),
        ('"bf"', "a shape is made of it"),
        ('"bdfg"', "five is written there"),
        ('"bfgh"', "takes nothing out"),
        ('["b", "f"]', "a string of letters"),
    ],
    hints=["of each line ask: does the length of the result depend on what is in x?"])


def grade_square_grid(square_grid: Callable) -> None:
    compiled = jax.jit(square_grid)
    for n in (4, 1, 2, 3, 5, 7, 9, 12, 15, 16, 17, 20):
        x, side = np.arange(1, n + 1, dtype=np.float32), int(np.ceil(np.sqrt(n)))
        expected = np.pad(x, (0, side * side - n)).reshape(side, side)
        inputs = f"the numbers from 1 to {n}"
        with wanting(inputs, expected, (jax.errors.ConcretizationTypeError, "`x.size` was known; "
                     "which function made a traced value of it?"),
                     ((IndexError, ValueError), "which side has room for all of them?"),
                     (TypeError, "the shape must be a Python number: what is the side computed "
                      "with?")):
            out = numbers(compiled(x))
        agree(inputs, out, expected,
              (np.shape(out) == (side + 1, side + 1), "a smaller square has room for all of them"),
              (np.size(out) < n, "not all of them have room"),
              "row by row, and zeros for what is missing")
    x = np.array([0.5, -1.5, 2.25], np.float32)
    agree(f"x = {x.tolist()}", compiled(x), np.pad(x, (0, 1)).reshape(2, 2), "elements need not be "
          "whole: of which dtype are the zeros?")
    nothing = np.zeros((0, 0), np.float32)
    with wanting("no numbers", nothing, "as it was given, it makes a square of nothing"):
        agree("no numbers", compiled(nothing.reshape(0)), nothing,
              "as it was given, it makes a square of nothing")


exercise(
    "square_grid", chapter=CHAPTER, grade=grade_square_grid, given="import math",
    solution="""
def square_grid(x):
    side = math.ceil(math.sqrt(x.size))
    return jnp.zeros(side * side).at[:x.size].set(x).reshape(side, side)
""",
    wrong=[
        ("def square_grid(x):\n    side = jnp.ceil(jnp.sqrt(x.size)).astype(int)\n"
         "    return jnp.zeros(side * side).at[:x.size].set(x).reshape(side, side)",
         "a Python number"),
        ("def square_grid(x):\n    side = int(jnp.ceil(jnp.sqrt(x.size)))\n"
         "    return jnp.zeros(side * side).at[:x.size].set(x).reshape(side, side)",
         "made a traced value"),
        ("def square_grid(x):\n    side = math.isqrt(x.size) + 1\n"
         "    return jnp.zeros(side * side).at[:x.size].set(x).reshape(side, side)",
         "a smaller square"),
        ("def square_grid(x):\n    side = math.isqrt(x.size)\n"
         "    return x[:side * side].reshape(side, side)", "not all of them"),
        ("def square_grid(x):\n    side = round(x.size ** 0.5)\n"
         "    return jnp.pad(x, (0, side * side - x.size)).reshape(side, side)",
         "room for all of them"),
        ("def square_grid(x):\n    side = math.isqrt(x.size - 1) + 1\n"
         "    return jnp.zeros(side * side).at[:x.size].set(x).reshape(side, side)",
         "square of nothing"),
        ("def square_grid(x):\n    side = math.ceil(math.sqrt(x.size))\n"
         "    y = jnp.zeros(side * side, int).at[:x.size].set(x.astype(int))\n"
         "    return y.reshape(side, side)", "need not be whole"),
    ],
    hints=["`x.size` is a Python number; `math` computes with such numbers"])


def grade_mean_of_positive(mean_of_positive: Callable) -> None:
    compiled, random = jax.jit(mean_of_positive), np.random.default_rng(0)
    inputs = [[4, -3, 1, -2, 2], [1, -5, 3, 0, 5], [0.5, -0.5, 0.25, -3, 1],
              *random.integers(-5, 6, (5, 5)).tolist(), [2, -np.inf, 4, 0, -1],
              [1e-9, 3, -1, 0, 5]]
    for values in inputs:
        x = np.array(values, np.float32)
        if not (x > 0).any():
            continue
        total, count = x[x > 0].sum(), (x > 0).sum()
        with wanting(f"x = {values}", total / count, (jax.errors.NonConcreteBooleanIndexError,
                     "keep all five, and make those harmless that do not count")):
            out = numbers(compiled(x))
        agree(f"x = {values}", out, total / count,
              (np.shape(out) != (), "one number is expected"),
              (near(out, total / 5), "the sum is right, and it was divided by 5: how many are "
               "positive?"),
              (bool(np.isnan(out).any()), "minus infinity times 0 is nan: choose by `jnp.where`"),
              (near(out, total), "that is the sum"),
              (near(out, total / (x >= 0).sum()), "0 is not positive, and was counted"),
              "take the sum of the positive ones, and divide by how many there are")
        agree(f"x = {values}", jax.grad(mean_of_positive)(x), np.where(x > 0, 1 / count, 0),
              "the mean is right; its gradient should be 0 where x is not positive, also at 0",
              what="the gradient")
    agree("x = [[1, -2, 3], [5, 0, -1]]", compiled(jnp.array([[1.0, -2, 3], [5, 0, -1]])), 3.0,
          "right for five elements in a row, and x may have any shape")


exercise(
    "mean_of_positive", chapter=CHAPTER, grade=grade_mean_of_positive,
    solution="""
def mean_of_positive(x):
    positive = x > 0
    return jnp.sum(jnp.where(positive, x, 0.0)) / jnp.sum(positive)
""",
    wrong=[
        ("def mean_of_positive(x):\n    return jnp.mean(x[x > 0])",
         "NonConcreteBooleanIndexError"),
        ("def mean_of_positive(x):\n    return jnp.mean(jnp.where(x > 0, x, 0.0))",
         "divided by 5"),
        ("def mean_of_positive(x):\n    return jnp.mean(x, where=x > 1e-6)", "how many there are"),
        ("def mean_of_positive(x):\n    return jnp.sum(x, where=x > 0)", "that is the sum"),
        ("def mean_of_positive(x):\n    return jnp.mean(x, where=x >= 0)", "0 is not positive"),
        ("def mean_of_positive(x):\n    return jnp.sum(x * (x > 0)) / jnp.sum(x > 0)",
         "is nan: choose by"),
        ("def mean_of_positive(x):\n    return jnp.maximum(x, 0).sum() / (x > 0).sum()",
         "also at 0"),
        ("def mean_of_positive(x):\n    n = jnp.sum(x > 0)\n"
         "    return jnp.cumsum(jnp.sort(x)[::-1])[n] / n", "divide by how many"),
        ("def mean_of_positive(x):\n"
         "    return jnp.sum(jnp.where(x >= 1, x, 0.0)) / jnp.sum(x > 0)", "divide by how many"),
        ("def mean_of_positive(x):\n"
         "    return 5 * jnp.mean(jnp.where(x > 0, x, 0.0)) / jnp.sum(x > 0)", "any shape"),
    ],
    hints=["how many are positive is a sum, too"])


def grade_padded_softmax(padded_softmax: Callable) -> None:
    compiled, random = jax.jit(padded_softmax), np.random.default_rng(0)
    inputs = [([1.0, 1.0, 0.0, 0.0], 2), ([1.0, 2.0, 3.0, 0.0], 3), ([-2.0, -1.0, 0.0, 0.0], 2),
             ([2.0, 1.0, 9.0, -9.0], 2), ([0.5, 1.0, np.nan, np.nan], 2), ([3.0, 1.0, 2.0, 0.0], 4),
             ([0.0, 1.0, 1000.0, 0.0], 2), ([1000.0, 1001.0, 0.0, 0.0], 2),
             ([-1000.0, -1001.0, 0.0, 0.0], 2), ([-300.0, 300.0, 0.0, 0.0], 2),
             *((random.normal(size=4).round(2).tolist(), n) for n in (1, 2, 3, 4)),
             ([1.0, 2.0, 0.0, 1.5, 3.0, 0.5], 5), ([2.0], 1)]
    for values, n in inputs:
        x = np.array(values, np.float32)
        e = np.exp(x[:n] - np.max(x[:n]))
        expected = np.append(e / e.sum(), np.zeros(len(x) - n))
        telling = f"x = {values} and n = {n}"
        with wanting(telling, expected, (IndexError, "a slice up to a traced n has no length: keep "
                     "all four"), "x need not have four elements"):
            out = numbers(compiled(x, n))
        expect(np.shape(out) == x.shape, f"for {telling} the answer is {shown(expected)}, and "
               f"yours is {shown(out)}\nas many are expected as x has")
        counts, large = np.arange(len(x)) < n, np.max(x[:n])
        with np.errstate(all="ignore"):
            zeroed = np.exp(np.where(counts, x, 0.0) - large)
            every = np.exp(x - large)
            zeroed, every = zeroed / zeroed.sum(), every / every.sum()
        agree(telling, out, expected,
              (np.isnan(out).any() and not np.isnan(x).any(), "the exponentials of large numbers "
               "are infinite, and of very negative ones 0: take out the largest of those that "
               "count, or let `jax.nn.softmax` do it"),
              (near(out, zeroed), "a zero in the padding counts as exp(0), "
               "which is 1"),
              (near(out, np.where(counts, zeroed, 0)) and out.any(), "the sum below the "
               "line has the padding in it: exp(0) is 1"),
              (near(out, np.where(counts, every, 0)), "the sum below the "
               "line has the padding in it"),
              (np.isnan(out).any(), "it does not matter what the padding contains, even nan: "
               "replace it before anything is computed"),
              "the n that count add up to 1, and the others are 0")
        expect(not np.any(np.asarray(out)[n:]), f"for {telling} the last {len(x) - n} are 0, and "
               f"yours are {np.asarray(out)[n:].tolist()}: replace the others by minus infinity")


exercise(
    "padded_softmax", chapter=CHAPTER, grade=grade_padded_softmax,
    solution="""
def padded_softmax(x, n):
    counts = jnp.arange(x.size) < n
    return jax.nn.softmax(jnp.where(counts, x, -jnp.inf))
""",
    wrong=[
        ("def padded_softmax(x, n):\n    counts = jnp.arange(x.size) < n\n"
         "    return jax.nn.softmax(jnp.where(counts, x, 0.0))", "counts as exp(0)"),
        ("def padded_softmax(x, n):\n    counts = jnp.arange(x.size) < n\n"
         "    return jnp.where(counts, jax.nn.softmax(x), 0.0)", "has the padding in it"),
        ("def padded_softmax(x, n):\n    return jax.nn.softmax(x[:n])", "has no length"),
        ("def padded_softmax(x, n):\n    counts = jnp.arange(x.size) < n\n"
         "    x = jnp.where(counts, x, 0.0)\n"
         "    e = jnp.where(counts, jnp.exp(x - jnp.sum(x) / n), 0.0)\n    return e / e.sum()",
         "take out the largest"),
        ("def padded_softmax(x, n):\n    e = jnp.exp(x) * (jnp.arange(x.size) < n)\n"
         "    return e / jnp.sum(e)", "even nan"),
        ("def padded_softmax(x, n):\n    e = jnp.where(jnp.arange(x.size) < n, jnp.exp(x), 0.0)\n"
         "    return e / e.sum()", "of large numbers are infinite"),
        ("def padded_softmax(x, n):\n    counts = jnp.arange(x.size) < n\n"
         "    e = jnp.where(counts, jnp.exp(x - jnp.nanmax(x)), 0.0)\n"
         "    return e / e.sum()", "the largest of those that count"),
        ("def padded_softmax(x, n):\n    counts = jnp.arange(x.size) < n\n"
         "    low = jnp.min(jnp.where(counts, x, jnp.inf)) - 50\n"
         "    return jax.nn.softmax(jnp.where(counts, x, low))", "by minus infinity"),
        ("def padded_softmax(x, n):\n"
         "    return jax.nn.softmax(jnp.where(jnp.arange(4) < n, x, -jnp.inf))",
         "need not have four"),
    ],
    hints=["of which number is the exponential 0?"])


def grade_count_different(count_different: Callable) -> None:
    compiled, random = jax.jit(count_different), np.random.default_rng(0)
    inputs = [[3, 1, 3, 2, 1], [4, 4, 4, 4, 4], [0, 5, 0, -1, 2],
             *random.integers(-2, 4, (8, 5)).tolist(), [n % 11 for n in range(40)]]
    for values in inputs:
        expected = len(set(values))
        with wanting(f"x = {values}", expected, (jax.errors.ConcretizationTypeError, "its length "
                     "would depend on the values; sort, and count where something new begins")):
            out = numbers(compiled(np.array(values, np.int32)))
        agree(f"x = {values}", out, expected,
              (np.shape(out) != (), "one number is expected"),
              (near(out, expected - 1) and 0 in values, "is any number treated as special?"),
              (near(out, len({*map(abs, values)})), "a number and its negative are two numbers"),
              (near(out, expected - 1), "one is missing: the first is new as well"),
              (near(out, len(values)), "that is how many there are; how many are different?"),
              "sort, and count where something new begins")
    for floats, why in (
            ([np.inf, 1, np.inf, -np.inf, 1, -np.inf], "infinity less infinity is nan: compare "
             "the neighbours, do not subtract them"),
            ([1.0, np.nextafter(np.float32(1), np.float32(2)), 1.0, 1e-9, 0.0], "two numbers that "
             "are near each other are different, too")):
        x = np.array(floats, np.float32)
        agree(f"x = {[float(v) for v in x]}", compiled(x), len(set(x.tolist())), why)
    ends = [2**31 - 1, -2**31, 2**31 - 1, -2**31 + 1]
    agree(f"x = {ends}", compiled(np.array(ends, np.int32)), 3, "the difference of two int32s may "
          "be no int32: compare them, do not subtract")


exercise(
    "count_different", chapter=CHAPTER, grade=grade_count_different,
    solution="""
def count_different(x):
    x = jnp.sort(x)
    return 1 + jnp.sum(x[1:] != x[:-1])
""",
    wrong=[
        ("def count_different(x):\n    return jnp.unique(x).size", "ConcretizationTypeError"),
        ("def count_different(x):\n    return jnp.unique(x, size=x.size).size",
         "how many there are"),
        ("def count_different(x):\n    x = jnp.sort(x)\n    return jnp.sum(x[1:] != x[:-1])",
         "the first is new"),
        ("def count_different(x):\n"
         "    return jnp.sum(jnp.unique(x, size=x.size, fill_value=0) != 0)", "special"),
        ("def count_different(x):\n    return 1 + jnp.sum(jnp.diff(jnp.sort(x)) != 0)",
         "do not subtract"),
        ("def count_different(x):\n    x = jnp.sort(jnp.abs(x))\n"
         "    return 1 + jnp.sum(x[1:] != x[:-1])", "its negative"),
        ("def count_different(x):\n    return 1 + jnp.sum(jnp.diff(jnp.sort(x)) > 0)",
         "may be no int32"),
        ("def count_different(x):\n    x = jnp.sort(x)\n"
         "    return 1 + jnp.sum(~jnp.isclose(x[1:], x[:-1]))", "are near each other"),
    ],
    hints=["after sorting, compare each with its neighbour: x[1:] and x[:-1]"])


def grade_first_few(first_few: Callable) -> None:
    compiled, random = jax.jit(first_few, static_argnums=2), np.random.default_rng(0)
    x = np.array([7, -5, 9, 6, -8], np.float32)
    masks = [[False, True, False, True, True], *(random.random((5, 5)) < 0.5).tolist()]
    for k in (4, 2, 7):
        for mask in masks:
            m = np.array(mask)
            expected = np.append(x[m], np.full(k, np.nan))[:k]
            inputs = f"x = {shown(x)}, k = {k} and the mask {shown(m.astype(int))}"
            with wanting(inputs, expected, (jax.errors.NonConcreteBooleanIndexError, "how many are "
                         "true is not known; how many you want is: k")):
                out = numbers(compiled(x, m, k))
            filled = [np.where(np.isnan(expected), value, expected) for value in (x[0], x[-1])]
            agree(inputs, out, expected,
                  (np.shape(out) != (k,), "k elements are expected, whatever the mask, and also "
                   "if x has fewer" if k > 5 else "k elements are expected, whatever the mask"),
                  (near(out, filled[0]), "the missing ones were filled with place 0, and are "
                   "x[0]"),
                  (near(out, filled[1]), "the missing ones are the last element of x: -1 counts "
                   "from the end, and a place beyond the end is moved inside, unless `mode` says "
                   "what to do"),
                  (near(out, np.where(m, x, np.nan)[:k]), "the unwanted ones should "
                   "go, not leave a gap"),
                  "first those where the mask is true, in their order, and then nan")
    agree("x = [1, nan, 3], k = 3 and the mask [0, 1, 1]",
          compiled(np.array([1, np.nan, 3], np.float32), np.array([False, True, True]), 3),
          [np.nan, 3.0, np.nan], "a nan of x is an element like any other: ask the mask")
    long = np.arange(128, dtype=np.float32)
    agree("x = 0, 1, … 127, k = 3 and a mask that is true at 2 and 120",
          compiled(long, (long == 2) | (long == 120), 3), [2.0, 120.0, np.nan],
          "x may have any length: which place does not exist in this one?")


exercise(
    "first_few", chapter=CHAPTER, grade=grade_first_few,
    solution="""
def first_few(x, mask, k):
    places = jnp.nonzero(mask, size=k, fill_value=x.size)[0]
    return x.at[places].get(mode="fill", fill_value=jnp.nan)
""",
    wrong=[
        ("def first_few(x, mask, k):\n    return x[mask][:k]", "NonConcreteBooleanIndexError"),
        ("def first_few(x, mask, k):\n    return x[jnp.nonzero(mask, size=k)[0]]", "place 0"),
        ("def first_few(x, mask, k):\n"
         "    return x[jnp.nonzero(mask, size=k, fill_value=x.size)[0]]", "last element"),
        ("def first_few(x, mask, k):\n    return jnp.where(mask, x, jnp.nan)[:k]", "leave a gap"),
        ("def first_few(x, mask, k):\n    return jnp.sort(jnp.where(mask, x, jnp.nan))[:k]",
         "in their order"),
        ("def first_few(x, mask, k):\n    order = jnp.argsort(~mask, stable=True)[:k]\n"
         "    return jnp.where(mask[order], x[order], jnp.nan)", "if x has fewer"),
        ("def first_few(x, mask, k):\n    y = jnp.where(mask, x, jnp.nan)\n"
         "    order = jnp.argsort(jnp.isnan(y), stable=True)\n"
         "    return jnp.concatenate([y[order], jnp.full(k, jnp.nan)])[:k]", "ask the mask"),
        ("def first_few(x, mask, k):\n    places = jnp.nonzero(mask, size=k, fill_value=99)[0]\n"
         "    return x.at[places].get(mode='fill', fill_value=jnp.nan)", "any length"),
    ],
    hints=["`nonzero` with a size, filled with a place that does not exist"])


def grade_window(window: Callable) -> None:
    compiled = jax.jit(window)
    x = np.array([1, 2, -3, 4, -5], np.float32)
    for start in (1, 3, 0, 2, 4, 5, 9):
        expected = np.append(x, np.zeros(12))[start:start + 3]
        inputs, moved = f"x = {shown(x)} and start = {start}", x[min(start, 2):min(start, 2) + 3]
        with wanting(inputs, expected, (IndexError, "Python's slice cannot know that it is always "
                     "three long")):
            out = numbers(compiled(x, start))
        agree(inputs, out, expected,
              (np.shape(out) != (3,), "three elements are expected"),
              (near(out, moved), "the window was moved back until it fits; it should stay, and "
               "show zeros"),
              (near(out, x[np.minimum(start + np.arange(3), 4)]), "beyond the end the last element "
               "is repeated"),
              (start > 3, "right from place 3, but not further on"),
              (start < 3, "all three are elements of x: which is the first?"),
              "beyond the end there are zeros")
    for some, start in (([7.0], 0), ([7.0, 8.0], 1), ([7.0, 8.0], 0), ([7.0], 2),
                        (list(map(float, range(20))), 18)):
        expected = np.append(some, np.zeros(5))[start:start + 3]
        inputs = f"x = {some} and start = {start}"
        why = f"x may have {'more' if some[5:] else 'fewer'} elements than the window"
        with wanting(inputs, expected, why):
            agree(inputs, compiled(np.array(some, np.float32), start), expected, why)
    agree("x = [1, 2, inf] and start = 2", compiled(np.array([1, 2, np.inf], np.float32), 2),
          [np.inf, 0.0, 0.0], "infinity times 0 is nan: say what stands beyond the end, do not "
          "multiply")
    whole = np.array([1, 2, 2**24 + 1], np.int32)
    out = numbers(compiled(whole, 2))
    expect(getattr(out, "dtype", None) == np.int32, "for an x of int32s the window has the dtype "
           f"{getattr(out, 'dtype', None)}\nits elements are those of x: of which dtype are the "
           "zeros?")
    expect(np.array_equal(out, [2**24 + 1, 0, 0]), f"for x = {whole.tolist()} and start = 2 yours "
           f"is {np.asarray(out).tolist()}: the elements were floats on the way")


exercise(
    "window", chapter=CHAPTER, grade=grade_window,
    solution="""
def window(x, start):
    return x.at[start + jnp.arange(3)].get(mode="fill", fill_value=0.0)
""",
    wrong=[
        ("def window(x, start):\n    return x[start:start + 3]", "raised IndexError"),
        ("def window(x, start):\n    return lax.dynamic_slice_in_dim(x, start, 3)",
         "moved back"),
        ("def window(x, start):\n    return x[start + jnp.arange(3)]", "is repeated"),
        ("def window(x, start):\n"
         "    return lax.dynamic_slice_in_dim(jnp.append(x, 0.0), start, 3)", "not further on"),
        ("def window(x, start):\n    i = start + jnp.arange(3)\n    return x[i] * (i < x.size)",
         "is nan: say"),
        ("def window(x, start):\n    i = start + jnp.arange(3)\n"
         "    return jnp.where(i < x.size, jnp.roll(x, -start)[:3], 0)", "than the window"),
        ("def window(x, start):\n"
         "    return lax.dynamic_slice(jnp.pad(x, (0, 8 - x.size)), (start,), (3,))",
         "x may have more"),
    ],
    right=["def window(x, start):\n"
           "    return lax.dynamic_slice(jnp.pad(x, (0, 3)), (start,), (3,))"],
    hints=["which three places? They may lie beyond the end, if you say what stands there"])


def _of_three(start: Any) -> Any:
    return lax.dynamic_slice_in_dim(jnp.arange(10.0), start, 3)


def _of_five(start: Any) -> Any:
    return lax.dynamic_slice_in_dim(jnp.arange(8.0), start, 5)


def _one(start: Any) -> Any:
    return jnp.arange(4.0)[start]


def _rooted(start: Any) -> Any:
    return jnp.sqrt(_of_three(start) - 1.0)


def _after_a_root(start: Any) -> Any:
    return jnp.sqrt(jnp.float32(start) - 100.0), _of_three(start)


def _before_a_root(start: Any) -> Any:
    return _of_three(start), jnp.sqrt(jnp.float32(start) - 100.0)


def _two(start: Any) -> Any:
    return _of_five(start), _of_three(start)


# In words, what reads, the first place too far, and a hint
READERS: list[tuple[str, Callable, int, str]] = [
    ("three of ten", jax.jit(_of_three), 8, "a window of three has room up to place 7"),
    ("five of eight", jax.jit(_of_five), 4, "where a window is moved depends on what is in `read`: "
     "let the check find it"),
    ("one of four", _one, 4, "look at what was found after each start by itself"),
    ("the roots of three of ten, less one", _rooted, 8, "the root of -1 at start 0 is a finding, "
     "too, and nothing was moved: look at its `kind`"),
    ("a root of a negative number, and then of three of ten", _after_a_root, 8, "the root is found "
     "first, and then the window: look at each finding"),
    ("three of ten, and then of a root of a negative number", _before_a_root, 8, "the window is "
     "found first, and then the root: look at each finding"),
    ("five of eight, and three of ten", _two, 4, "a start is in the list once, however much is "
     "found after it")]


def grade_moved_starts(moved_starts: Callable) -> None:
    for text, read, end, hint in READERS:
        for starts in ([1, 2, 9, 3, 11], [0, 1], list(range(10)), [12, 5, 9, 2]):
            inputs, expected = f"a `read` of {text} and starts = {starts}", [s for s in starts
                                                                          if s >= end]
            with wanting(inputs, expected, (IndexError, "collect what is found, so that the loop "
                         "goes on"), (FloatingPointError, "collect what is found, so that the loop "
                         "goes on")):
                out = moved_starts(read, starts)
                expect(isinstance(out, list | tuple | np.ndarray), f"for {inputs} the answer is "
                       f"{expected}, and yours is {out!r}\na list of starts is expected")
                out = list(out)
            why = hint
            if expected[1:] and out == expected[:1]:
                why = ("within one `with`, what one line does again and again is one finding: "
                        "a `with` for each start")
            elif sorted(out) == sorted(expected):
                why = "in the order of `starts`"
            elif expected and set(out) > set(expected) and text in ("three of ten", "one of four"):
                why = "look at what was found after each start by itself"
            expect(out == expected,
                   f"for {inputs} the answer is {expected}, and yours is {out}\n{why}")


exercise(
    "moved_starts", chapter=CHAPTER, grade=grade_moved_starts,
    solution="""
def moved_starts(read, starts):
    moved = []
    for start in starts:
        with jax.checking_sharp_bits(collect=True) as findings:
            read(start)
        if any(found.kind == "debug_out_of_bounds" for found in findings):
            moved.append(start)
    return moved
""",
    wrong=[
        ("def moved_starts(read, starts):\n    return [s for s in starts if s > 7]",
         "let the check find it"),
        ("def moved_starts(read, starts):\n    moved = []\n    for s in starts:\n"
         "        with jax.checking_sharp_bits():\n            read(s)\n"
         "            moved.append(s)\n    return moved", "collect what is found"),
        ("def moved_starts(read, starts):\n"
         "    with jax.checking_sharp_bits(collect=True) as findings:\n"
         "        for s in starts:\n            read(s)\n"
         "    return starts if findings else []", "after each start"),
        ("def moved_starts(read, starts):\n    moved = []\n    for s in starts:\n"
         "        with jax.checking_sharp_bits(collect=True) as findings:\n"
         "            read(s)\n        if findings:\n            moved.append(s)\n"
         "    return moved", "look at its `kind`"),
        ("def moved_starts(read, starts):\n    moved = []\n"
         "    with jax.checking_sharp_bits(collect=True) as findings:\n"
         "        for s in starts:\n            before = len(findings)\n            read(s)\n"
         "            if len(findings) > before:\n                moved.append(s)\n"
         "    return moved", "is one finding"),
        ("def moved_starts(read, starts):\n"
         "    with jax.checking_sharp_bits(collect=True) as findings:\n"
         "        for s in starts:\n            read(s)\n    return len(findings)",
         "a list of starts"),
        *((f"def moved_starts(read, starts):\n    moved = []\n    for s in starts:\n"
           "        with jax.checking_sharp_bits(collect=True) as findings:\n"
           f"            read(s)\n        {step}\n    return {out}", words)
          for step, out, words in (
              ("moved += [s] * (findings[:1] != [] and findings[0].kind == 'debug_out_of_bounds')",
               "moved", "look at each finding"),
              ("moved += [s] * (findings != [] and findings[-1].kind == 'debug_out_of_bounds')",
               "moved", "look at each finding"),
              ("moved += [s for found in findings if found.kind == 'debug_out_of_bounds']",
               "moved", "is in the list once"),
              ("moved += [s] * any(f.kind == 'debug_out_of_bounds' for f in findings)",
               "sorted(moved)", "in the order of"))),
    ],
    hints=["one `with` for each start, and then look at the list"])

# Calls one after the other of one jitted function, and why one is traced or is not
CALLS: dict[str, tuple[str, str]] = {
    "a": ("jnp.ones(3)", "nothing was kept yet"),
    "b": ("jnp.zeros(3)", "other values, and the same shape and dtype"),
    "c": ("jnp.ones((3, 1))", "three numbers as well; in the same shape?"),
    "d": ("np.ones(3, np.float32)", "to the key, a NumPy array is one like any other"),
    "e": ("jnp.arange(3)", "the shape is an old one; the dtype?"),
    "f": ("jnp.arange(5)[:3]", "how it was made does not matter, only what it is"),
    "g": ("2.0", "its shape is (), which was not there before"),
    "h": ("7.0", "a Python number is an argument like an array: its value is not in the key"),
}


def grade_traced_calls(answer: Any) -> None:
    expect(isinstance(answer, str), 'a string of letters is expected, such as "abc", and yours is '
           f"{answer!r}")
    letters = set(answer.lower()) - set(" ,")
    expect(letters <= set(CALLS), f"the letters are a to h, and yours are {shown(answer)}")
    twice = jax.jit(lambda x: 2 * x)
    for letter, (text, why) in CALLS.items():
        before = twice._cache_size()
        twice(eval(text, {"jnp": jnp, "np": np}))
        is_traced = twice._cache_size() > before
        happens = "is traced" if is_traced else "is not traced"
        says = "yes" if letter in letters else "no"
        expect((letter in letters) == is_traced,
               f"for {letter}, `twice({text})`, the call {happens}, and you say {says}\n{why}")


exercise(
    "traced_calls", chapter=CHAPTER, grade=grade_traced_calls, solution='"aceg"',
    wrong=[
        ('"abceg"', "other values, and the same shape"),
        ('"aeg"', "in the same shape?"),
        ('"acdeg"', "a NumPy array is one like any other"),
        ('"acg"', "the dtype?"),
        ('"acegh"', "its value is not in the key"),
        ('"acefg"', "only what it is"),
        ("4", "a string of letters"),
    ],
    afterthought="`twice._cache_size()` is 4",
    hints=["the key holds shape, dtype and weakness: write them down for each call"])


def grade_largest(largest: Callable) -> None:
    expect(callable(largest), f"a function is expected, and yours is {largest!r}")
    expect(hasattr(largest, "__globals__"), "for the lengths 1 to 64, 7 programs are enough, and "
           "yours, jitted, has one for each length: pad outside `jit`, in a plain function")
    real, shapes = largest.__globals__.get("masked_max"), []

    def listening(x: Any, n: Any) -> Any:
        expect(not isinstance(x, jax.core.Tracer), "`masked_max` is called inside of another "
               "`jit`, which makes a program of its own: call it from a plain function")
        shapes.append(np.shape(x))
        return real(x, n)  # type: ignore[misc]

    largest.__globals__["masked_max"] = listening
    try:
        for n in range(1, 65):
            expected = -10.0 ** (n % 30)
            values = (expected * np.arange(1, n + 1)[::(-1) ** n]).astype(np.float32)
            inputs = f"the numbers from {values[0]:g} to {values[-1]:g}"
            with wanting(inputs, expected, "`masked_max` takes an array, and how many of it count"):
                out = largest(values)
            agree(inputs, out, expected,
                  (out < expected, "are all of the numbers in the array?"),
                  "how many of the numbers in the array count?")
            expect(len(shapes) == n and len(shapes[-1]) == 1, f"for {inputs} `masked_max` should "
                   f"be called once, with a vector, and you called it {len(shapes) - n + 1} times: "
                   "let `masked_max` do the work")
            expect(shapes[-1][0] <= 2 * n, f"for {inputs} the vector has at most {2 * n}, and "
                   f"yours has {shapes[-1][0]}, more than twice as many")
        count = len(set(shapes))
        for n in (65, 100, 128, 1000):
            with wanting(f"the numbers from -1 to {-n}", -1.0, "any length from 1 on is asked for"):
                agree(f"the numbers from -1 to {-n}", largest(-1.0 - np.arange(n, dtype="f4")),
                      -1.0, "any length from 1 on is asked for")
    finally:
        largest.__globals__["masked_max"] = real
    expect(count <= 7, f"for the lengths 1 to 64, 7 programs are enough, and yours need {count}\n"
           "the numbers are right; pad to few sizes")


exercise(
    "largest", chapter=CHAPTER, grade=grade_largest,
    given="""
@jax.jit
def masked_max(x, n):
    return jnp.max(jnp.where(jnp.arange(x.size) < n, x, -jnp.inf))
""",
    solution="""
def largest(values):
    n = len(values)
    size = 1 << (n - 1).bit_length()
    return masked_max(np.pad(values, (0, size - n)), n)
""",
    wrong=[
        ("def largest(values):\n    return masked_max(values, len(values))", "pad to few sizes"),
        ("def largest(values):\n    n = len(values)\n"
         "    return masked_max(np.pad(values, (0, 64 - n)), n)", "more than twice"),
        ("def largest(values):\n    size = 1 << (len(values) - 1).bit_length()\n"
         "    padded = np.pad(values, (0, size - len(values)))\n"
         "    return masked_max(padded, size)", "how many of the numbers"),
        ("def largest(values):\n    return np.max(values)", "do the work"),
        ("def largest(values):\n    size = 1 << (len(values).bit_length() - 1)\n"
         "    return masked_max(values[:size], size)", "are all of the numbers"),
        ("@jax.jit\ndef largest(values):\n    n = len(values)\n"
         "    size = 1 << (n - 1).bit_length()\n"
         "    return masked_max(jnp.pad(values, (0, size - n)), n)", "pad outside"),
        ("def largest(values):\n    n = len(values)\n    size = 1 << (n - 1).bit_length()\n"
         "    return jax.jit(lambda x: masked_max(x, n))(np.pad(values, (0, size - n)))",
         "inside of another"),
        ("def largest(values):\n    n = len(values)\n"
         "    size = next(k for k in (1, 2, 4, 8, 16, 32, 64) if k >= n)\n"
         "    return masked_max(np.pad(values, (0, size - n)), n)", "any length from 1 on"),
        ("def largest(values):\n    n = len(values)\n    size = 1 << (n - 1).bit_length()\n"
         "    padded = np.pad(values, (0, size - n), constant_values=-1e9)\n"
         "    return masked_max(padded, size)", "how many of the numbers"),
    ],
    afterthought="after this, all lengths up to 64 are compiled",
    hints=["the next power of two: 1 << (n - 1).bit_length()"])
