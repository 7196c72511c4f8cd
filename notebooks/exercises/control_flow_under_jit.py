"""The exercises of chapter 17, *Control flow under jit*."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax import errors, lax
from minijax.notebook.checks import Hint, agree, exercise, expect, near, numbers, shown

from .ways import ending_within, equations

CHAPTER = "17_control_flow_under_jit"
NO_VALUE = (errors.ConcretizationTypeError, errors.TracerIntegerConversionError)


@contextlib.contextmanager
def _traced(inputs: str, expected: Any, hint: str, kinds: Any = NO_VALUE, *,
           what: str = "the answer") -> Iterator[None]:
    """Raise a hint where an answer needs the value of a tracer."""
    try:
        yield
    except kinds as error:
        raise Hint(f"for {inputs} {what} is {shown(expected)}, and yours raised "
                   f"{type(error).__name__}\n{hint}") from None


# -- mean_or_zero ----------------------------------------------------------------------------------

def grade_mean_or_zero(mean_or_zero: Callable) -> None:
    random = np.random.default_rng(0)
    for shape in ((4,), (0,), (2, 3), (2, 0), (), (0, 5), (1,), (3, 1, 2)):
        x = random.integers(-9, 10, shape).astype(np.float32)
        expected = x.mean() if x.size else 0.0
        inputs = f"x = {shown(x)} of shape {shape}, under jit,"
        with _traced(inputs, expected, "a number has no length; each array has a `size`",
                    TypeError), \
                _traced(inputs, expected, "the number of elements is known, their sum is not: an "
                       "`if` may ask for the shape"):
            result = jax.jit(mean_or_zero)(jnp.asarray(x))
        agree(inputs, numbers(result), expected,
              (np.shape(result) == () and np.isnan(result), "the mean of nothing is 0 / 0: ask "
               "first whether there is anything"),
              (x.size == 0, "nothing is in it: ask for its `size`"))
    agree("x = [1, nan]", mean_or_zero(jnp.array([1.0, jnp.nan])), np.nan, "the mean of nothing is "
          "0, and that of a nan is not")
    whole = random.integers(-9, 10, (3, 5))
    for values in (np.array([1, 2, 2, 5]), whole, whole > 0):
        x = jnp.asarray(values)
        agree(f"x = {shown(values)}, of dtype {x.dtype},", numbers(mean_or_zero(x)), values.mean(),
              "the mean of whole numbers need not be whole")
    program = jax.make_jaxpr(mean_or_zero)(jnp.zeros(4))
    kept = [name for eqn in equations(program) if (name := eqn.primitive.name) == "cond"
            or "select" in name]
    kept += ["a `where`"] * ("_where" in str(program))
    expect(not kept, "right, but the program for four numbers should ask nothing, and yours has "
           f"{', '.join(kept)}\nthe answer is known while tracing: Python's `if` costs nothing")


exercise(
    "mean_or_zero", chapter=CHAPTER, grade=grade_mean_or_zero,
    solution="""
def mean_or_zero(x):
    if x.size == 0:
        return 0.0
    return x.mean()
""",
    wrong=[
        ("def mean_or_zero(x):\n    return x.mean()", "the mean of nothing"),
        ("def mean_or_zero(x):\n    if x.sum() == 0:\n        return 0.0\n    return x.mean()",
         "may ask for the shape"),
        ("def mean_or_zero(x):\n    return x.mean() if len(x) else 0.0", "the mean of nothing"),
        ("def mean_or_zero(x):\n    if x.shape == (0,):\n        return 0.0\n"
         "    return x.sum() / len(x)", "of shape (2, 3)"),
        ("def mean_or_zero(x):\n    if x.ndim == 0:\n        return x\n"
         "    return x.mean() if len(x) else 0.0", "the mean of nothing"),
        ("def mean_or_zero(x):\n    return x.mean() if x.shape[0] else 0.0", "the mean of nothing"),
        ("def mean_or_zero(x):\n    return jnp.nan_to_num(x.mean())", "that of a nan is not"),
        ("def mean_or_zero(x):\n    return jnp.where(x.size == 0, 0.0, x.mean())",
         "costs nothing"),
        ("@jax.jit\ndef mean_or_zero(x):\n"
         "    return lax.cond(x.size > 0, jnp.mean, lambda x: 0.0, x)", "yours has cond"),
        ("def mean_or_zero(x):\n    n = max(x.size, 1)\n    whole = x.dtype != jnp.float32\n"
         "    return x.sum() // n if whole else x.sum() / n", "need not be whole"),
    ],
    hints=["an array knows its `size`, the number of its elements, whatever its shape"])


# -- unrolls ---------------------------------------------------------------------------------------

def _total(x: Any) -> Any:
    y = 0.0
    for i in range(x.shape[0]):
        y = y + x[i]
    return y


def _multiplied(x: Any) -> Any:
    y = 1.0
    for i in range(x.shape[0]):
        y = y * x[i]
    return y


def _doubled_often(x: Any) -> Any:
    for _ in range(40):
        x = 2 * x
    return x


_LOOPS: dict[str, tuple[Callable, bool]] = {
    "total": (_total, True),
    "jnp.sum": (jnp.sum, False),
    "lambda x: 2 * x, forty times": (_doubled_often, False),
    "jit(total)": (jax.jit(_total), True),
    "lambda x: jnp.stack([v + 1 for v in x])": (lambda x: jnp.stack([v + 1 for v in x]), True),
    "lambda x: lax.map(jnp.sin, x)": (lambda x: lax.map(jnp.sin, x), False),
    "lambda x: jnp.tile(jnp.tile(x, 5), 7)": (lambda x: jnp.tile(jnp.tile(x, 5), 7), False),
    "lambda x: jnp.outer(jnp.tile(x, 3), x)": (lambda x: jnp.outer(jnp.tile(x, 3), x), False),
    "a program that shrinks as x grows": (
        lambda x: _doubled_often(x) if len(x) < 15 else 2 * x, False),
    "lambda x: total(x[::4])": (lambda x: _total(x[::4]), True),
    "the product of all elements, one by one": (_multiplied, True),
    "lambda x: total(x[::10])": (lambda x: _total(x[::10]), True),
    "lambda x: lax.fori_loop(0, 9, lambda i, y: y + total(x), 0.0)":
        (lambda x: lax.fori_loop(0, 9, lambda i, y: y + _total(x), 0.0), True)}


def grade_unrolls(unrolls: Callable) -> None:
    for text, (f, expected) in _LOOPS.items():
        result = unrolls(f)
        hint = ("the program of 40 equations is long, and stays as long for more elements"
                if "forty" in text else
                f"it grows by an element in {'ten' if '10' in text else 'four'}: the lengths that "
                "you compare are too near each other" if "::" in text else
                "its equations are of any kind" if "product" in text else
                "an equation for each element is growth, however slow beside the others: compare "
                "lengths that lie far apart" if text == "total" else
                "its one equation holds a program, and that one grows: `str` of a jaxpr shows all"
                if expected else
                "it has fewer equations for more elements" if "shrinks" in text else
                "the shapes in the text differ, and the number of its equations does not")
        expect(isinstance(result, bool | np.bool_), f"unrolls({text}) should be {expected}, and "
               f"yours is {result!r}: True or False is expected")
        expect(bool(result) == expected,
               f"unrolls({text}) should be {expected}, and yours is {result}\n{hint}")


_UNROLLS = """
def unrolls(f):
    few, many = (jax.make_jaxpr(f)(jnp.zeros(n)) for n in (10, 20))
    return {}
"""

exercise(
    "unrolls", chapter=CHAPTER, grade=grade_unrolls,
    solution="""
def unrolls(f):
    def lines(n):
        return len(str(jax.make_jaxpr(f)(jnp.zeros(n))).splitlines())
    return lines(20) > lines(10)
""",
    wrong=[
        (_UNROLLS.format("len(many.eqns) > len(few.eqns)"), "and that one grows"),
        (_UNROLLS.format("str(many) != str(few)"), "of its equations does not"),
        (_UNROLLS.format("len(few.eqns) > 20"), "program of 40 equations"),
        (_UNROLLS.format("len(str(few).splitlines()) > 15"), "program of 40 equations"),
        (_UNROLLS.format("len(many.eqns) - len(few.eqns)"), "True or False"),
        ("def unrolls(f):\n    def lines(n):\n"
         "        return len(str(jax.make_jaxpr(f)(jnp.zeros(n))).splitlines())\n"
         "    return lines(2) > lines(1)", "too near each other"),
        (_UNROLLS.format("len(str(many)) > len(str(few))"), "of its equations does not"),
        (_UNROLLS.format("len(str(many).splitlines()) != len(str(few).splitlines())"),
         "fewer equations for more elements"),
        (_UNROLLS.format("str(many).count(' add ') > str(few).count(' add ')"), "of any kind"),
        ("def unrolls(f):\n    def lines(n):\n"
         "        return len(str(jax.make_jaxpr(f)(jnp.zeros(n))).splitlines())\n"
         "    return lines(9) > lines(8)", "an element in ten"),
    ],
    hints=["make the jaxpr for two lengths, and compare",
           "a jaxpr has one line for each equation, those of inner programs included"])


# -- nth_power -------------------------------------------------------------------------------------

def grade_nth_power(nth_power: Callable) -> None:
    compiled = jax.jit(nth_power, static_argnums=1)
    some = np.random.default_rng(0).integers(128, 1000, 4).tolist()
    for n in (5, 1, 0, *range(2, 14), 100, 128, *some):
        for x in (1.5, -2.0) if n < 100 else (1.01 if n < 500 else -1.001,):
            inputs = f"x = {x} and n = {n}"
            with _traced(inputs, x**n, "x has no value while tracing, and n has: ask n alone"), \
                    _traced(inputs, x**n, "where does it end? For n = 0 the power is 1",
                           RecursionError):
                result = compiled(x, n)
            agree(inputs, numbers(result), x**n, (n == 0, "the power is 1 if n is 0"),
                  (n == 1, "for n = 1 it is x itself"), tolerance=1e-3)
    agree("x = inf and n = 0", numbers(compiled(np.inf, 0)), 1.0, "the power is 1 if n is 0, for "
          "every x: infinity times 0 is nan")
    program = jax.make_jaxpr(nth_power, static_argnums=1)(1.01, 100)
    names = ["mul" if eqn.params.get("y") == 2 else eqn.primitive.name
             for eqn in equations(program)]
    others = sorted(set(names) - {"mul", "square", "convert_element_type"})
    expect(not others, "the program for n = 100 should have products alone, and yours has "
           f"{', '.join(others)}\nright, but Python can do this loop, since n is static")
    expect(len(names) <= 14, f"the program for n = 100 needs no more than 14 products, and yours "
           f"has {len(names)}\nright, but the power of 100 is the square of that of 50: compute "
           "that one once")


exercise(
    "nth_power", chapter=CHAPTER, grade=grade_nth_power,
    solution="""
def nth_power(x, n):
    if n == 0:
        return 1.0
    half = nth_power(x, n // 2)
    return half * half * x if n % 2 else half * half
""",
    wrong=[
        ("def nth_power(x, n):\n    y = 1.0\n    for _ in range(n):\n        y = y * x\n"
         "    return y", "no more than 14 products, and yours has 100"),
        ("def nth_power(x, n):\n    if n == 0:\n        return 1.0\n    if n == 1:\n"
         "        return x\n    return nth_power(x, n // 2) * nth_power(x, n - n // 2)",
         "compute that one once"),
        ("def nth_power(x, n):\n    half = nth_power(x, n // 2)\n"
         "    return half * half * x if n % 2 else half * half", "where does it end"),
        ("def nth_power(x, n):\n    if n == 1:\n        return x\n"
         "    half = nth_power(x, n // 2)\n"
         "    return half * half * x if n % 2 else half * half", "where does it end"),
        ("def nth_power(x, n):\n    if x == 0:\n        return x\n    return x ** n",
         "ask n alone"),
        ("def nth_power(x, n):\n    if n == 0:\n        return 1.0\n"
         "    half = nth_power(x, n // 2)\n    return half * half", "for x = 1.5 and n = 5"),
        ("def nth_power(x, n):\n    return lax.fori_loop(0, n, lambda i, y: y * x, 1.0)",
         "Python can do this loop"),
        ("def nth_power(x, n):\n    return x ** n", "products alone"),
        ("def nth_power(x, n):\n    y = 1.0\n    for bit in range(7):\n"
         "        if n >> bit & 1:\n            y = y * x\n        x = x * x\n    return y",
         "n = 128"),
        ("def nth_power(x, n):\n    if n == 0:\n        return 0 * x + 1.0\n"
         "    half = nth_power(x, n // 2)\n"
         "    return half * half * x if n % 2 else half * half", "infinity times 0"),
    ],
    right=["@functools.partial(jax.jit, static_argnums=1)\ndef nth_power(x, n):\n    if n == 0:\n"
           "        return 1.0\n    half = nth_power(x, n // 2)\n"
           "    return half * half * x if n % 2 else half * half"],
    given="import functools",
    afterthought="100 equations have become 9, and no loop is left in the program",
    hints=["x to the 13th is the square of x to the 6th, times x",
           "Python's `if n % 2` is fine: n is part of the program"])


# -- in_ring ---------------------------------------------------------------------------------------

def grade_in_ring(in_ring: Callable) -> None:
    points = [(1.5, 0.0), (0.0, 0.0), (0.5, 0.5), (2.0, 2.0), (0.0, 3.0), (3.0, 0.0), (1.0, 0.0),
              (0.0, -2.0),
              (1e-3, 0.0), (0.0, -1e-9),
              *np.random.default_rng(0).uniform(-2.5, 2.5, (20, 2)).round(1).tolist()]
    for x, y in points:
        r = x * x + y * y
        expected = 1 < r < 4 or r == 0
        inputs = f"x = {x}, y = {y}, under jit,"
        with _traced(inputs, expected, "`&` and `|` bind more strongly than `<` and `==`: put each "
                    "comparison into brackets", TypeError), \
                _traced(inputs, expected, "`and`, `or`, `not` and `a < r < b` ask for one answer "
                       "at once: write them with `&`, `|`, `~`"):
            result = jax.jit(in_ring)(x, y)
        agree(inputs, numbers(result), expected,
              (r == 0, "the centre belongs to it"), (r == 9, "the centre is one point: there, both "
               "numbers are 0"), (r in (1, 4), "the two circles do not belong "
               "to it"), (r < 1e-3, "what is near the centre is not exactly there"),
              f"x² + y² is {r:.3g}")
    x, y = np.array(points, np.float32).T
    expected = (x * x + y * y > 1) & (x * x + y * y < 4) | ((x == 0) & (y == 0))
    agree("arrays of the same points", in_ring(jnp.asarray(x), jnp.asarray(y)), expected,
          "right for single points, but not for arrays")


_IN_RING = "def in_ring(x, y):\n    r = x * x + y * y\n    return {}"

exercise(
    "in_ring", chapter=CHAPTER, grade=grade_in_ring,
    solution=_IN_RING.format("(1 < r) & (r < 4) | (r == 0)"),
    wrong=[
        (_IN_RING.format("1 < r < 4 or r == 0"), "one answer at once"),
        (_IN_RING.format("(1 < r and r < 4) | (r == 0)"), "one answer at once"),
        (_IN_RING.format("(1 < r < 4) | (r == 0)"), "one answer at once"),
        (_IN_RING.format("(1 < r) & (r < 4) | r == 0"), "put each comparison into brackets"),
        (_IN_RING.format("1 < r & r < 4 | r == 0"), "put each comparison into brackets"),
        (_IN_RING.format("(1 < r) & (r < 4) & (r == 0)"), "for x = 1.5, y = 0.0"),
        (_IN_RING.format("(1 < r) & (r < 4)"), "the centre belongs to it"),
        (_IN_RING.format("(1 <= r) & (r <= 4) | (r == 0)"), "do not belong"),
        (_IN_RING.format("(1 < r) & (r < 4) | (r < 1e-3)"), "is not exactly there"),
        (_IN_RING.format("(1 < r) & (r < 4) | jnp.isclose(r, 0)"), "is not exactly there"),
    ],
    hints=["`&` is *and*, `|` is *or*, element by element",
           "three comparisons, each in brackets"])


# -- calculator ------------------------------------------------------------------------------------

def grade_calculator(calculator: Callable) -> None:
    operations: list[Callable] = [lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b,
                                  lambda a, b: a / b]
    compiled = jax.jit(calculator)
    numbers_of = np.random.default_rng(0).integers(1, 10, (12, 2)).tolist()
    for place, (a, b) in enumerate([(6, 3), *numbers_of, (5, 0), (-2, 0), (np.inf, 2)]):
        for op in (0, 1, 2, 3, 4, 7, -1, -4, 8, -8, 1000):
            a, b = float(a), float(b)
            with np.errstate(divide="ignore"):
                expected = operations[op](np.float32(a), np.float32(b)) if 0 <= op < 4 else np.nan
            inputs = f"op = {op}, a = {a}, b = {b}, under jit,"
            with _traced(inputs, expected, "all functions of a `switch` must return the same type: "
                        "a float, as the others do", TypeError), \
                    _traced(inputs, expected, "a Python list, or an `if`, needs to know the number "
                           "while tracing: `lax.switch` does not"):
                result = compiled(op, a, b)
            agree(inputs, numbers(result), expected,
                  (op < 0 and near(result, a + b), "a number below 0 takes the first function"),
                  (op >= 4 and b and near(result, a / b), "a number that is too large takes the "
                   "last function"), (op < 4 and (not b or np.isinf(a)) and
                                      np.isnan(result), "0 times infinity is nan: "
                   "choose one of the answers, do not add them all up"),
                  "0 is +, 1 is -, 2 is *, 3 is /, and all others are nan")
        if not place:
            agree("the ops [0, 3, 4] and a = 6.0, b = 3.0, under vmap,",
                  jax.vmap(calculator, (0, None, None))(jnp.array([0, 3, 4]), 6.0, 3.0),
                  [9.0, 2.0, np.nan], "right for one op, but not for a batch")


_CALCULATOR = """
def calculator(op, a, b):
    steps = [lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a / b{}]
    return {}
"""
_NAN = ",\n             lambda a, b: jnp.nan"

exercise(
    "calculator", chapter=CHAPTER, grade=grade_calculator,
    solution=_CALCULATOR.format(_NAN,
                                "lax.switch(jnp.where((op < 0) | (op > 3), 4, op), steps, a, b)"),
    wrong=[
        (_CALCULATOR.format("", "steps[op](a, b)"), "`lax.switch` does not"),
        (_CALCULATOR.format("", "steps[op](a, b) if 0 <= op < 4 else jnp.nan"),
         "`lax.switch` does not"),
        (_CALCULATOR.format("", "lax.switch(op, steps, a, b)"), "takes the last function"),
        (_CALCULATOR.format(_NAN, "lax.switch(op, steps, a, b)"), "takes the first function"),
        (_CALCULATOR.format(",\n             lambda a, b: 0",
                            "lax.switch(jnp.where(op < 0, 4, op), steps, a, b)"),
         "must return the same type"),
        (_CALCULATOR.format("", """jnp.where((op >= 0) & (op < 4),
                     (op == 0) * (a + b) + (op == 1) * (a - b) + (op == 2) * (a * b)
                     + (op == 3) * (a / b), jnp.nan)"""),
         "0 times infinity is nan"),
        (_CALCULATOR.format("", """jnp.select([op == k for k in range(4)],
                      [a + b, a - b, a * b, a / jnp.where(b == 0, 1, b)], jnp.nan)"""),
         "b = 0.0"),
        (_CALCULATOR.format("", "lax.switch(op % 8, steps + 4 * [lambda a, b: jnp.nan], a, b)"),
         "op = 8"),
    ],
    hints=["a fifth function can give nan", "send all numbers that mean nothing to the fifth"])


# -- both_sides ------------------------------------------------------------------------------------

def _branched(x: Any) -> Any:
    return lax.cond(x < 3, lambda x: 3.0 * x ** 2, lambda x: -4 * x, x)


def _both_sides() -> dict[str, tuple[Callable, tuple, str]]:
    x = jnp.array([1.0, 2.0, 4.0])
    return {
        "a": (_branched, (2.0,), "one question, one answer, and one side runs"),
        "b": (jax.vmap(_branched), (x,), "each example has an answer of its own, so both sides are "
              "run on all"),
        "c": (lambda x: lax.map(_branched, x), (x,), "`lax.map` is a loop, and each round asks "
              "once"),
        "d": (jax.grad(_branched), (2.0,), "grad asks once, and goes back through the side that "
              "was taken"),
        "e": (lambda flag, x: jax.vmap(lambda v: lax.cond(flag, jnp.sin, jnp.cos, v))(x), (True, x),
              "the question is the same for all examples, so it is asked once"),
        "f": (lambda x: jnp.where(x < 3, 3.0 * x ** 2, -4 * x), (2.0,), "the arguments of a "
              "function are computed before it is called"),
        "g": (jax.vmap(jax.grad(_branched)), (x,), "the vmap outside decides: a question for each "
              "example")}


def grade_both_sides(answer: Any) -> None:
    expect(isinstance(answer, str), f'a string of letters is expected, such as "abc", and yours is '
           f"{answer!r}")
    letters = set(answer) - set(" ,")
    expect(letters <= set("abcdefg"), f"the letters are a to g, and yours has "
           f"{', '.join(sorted(letters - set('abcdefg')))}")
    for letter, (f, args, why) in _both_sides().items():
        runs_both = "cond[" not in str(jax.make_jaxpr(f)(*args))
        expect((letter in letters) == runs_both,
               f"you say that {letter} computes {'both sides' if letter in letters else 'one side'}"
               f", and its program has {'no' if runs_both else 'a'} `cond`\n{why}")


exercise(
    "both_sides", chapter=CHAPTER, grade=grade_both_sides, solution='"bfg"',
    wrong=[
        ('"b"', "computed before it is called"),
        ('"bf"', "the vmap outside decides"),
        ('"befg"', "the same for all examples"),
        ('"bcfg"', "each round asks once"),
        ('"fg"', "each example has an answer"),
        ('"bdfg"', "the side that was taken"),
        ('["b"]', "a string of letters"),
    ],
    afterthought="`lax.map` saves the work of one side, and pays with a loop",
    hints=["how often is the question asked: once, or for each example?"])


# -- runs ------------------------------------------------------------------------------------------

_RUNS: dict[str, tuple[Callable, str]] = {
    "b": (lambda x, n: x[0] if x[0] > 0 else 1.0, "b asks for a value: x[0] > 0 is either"),
    "c": (lambda x, n: sum(x[i] for i in range(n)), "in c Python's range needs a number, and n is "
          "traced"),
    "e": (lambda x, n: x.sum() or 1.0, "is there a question hidden in e? Think of what `or` must "
          "know"),
    "h": (lambda x, n: sorted(x, key=float), "sorting in Python compares values, and float(v) asks "
          "for one"),
    "a": (lambda x, n: x if x.ndim == 1 else x[0], "a asks for the number of dimensions, which is "
          "known"),
    "f": (lambda x, n: [v + 1 for v in x], "how many rounds does the loop in f have? The shape "
          "knows"),
    "d": (lambda x, n: jnp.where(n > 2, x, -x), "d asks no question while tracing: the choice is "
          "in the program"),
    "g": (lambda x, n: lax.fori_loop(0, n, lambda i, y: y + i, 0), "g asks no question while "
          "tracing: the loop is in the program")}


def grade_runs(answer: Any) -> None:
    expect(isinstance(answer, str), f'a string of letters is expected, such as "abc", and yours is '
           f"{answer!r}")
    letters = set(answer) - set(" ,")
    expect(letters <= set("abcdefgh"), f"the letters are a to h, and yours has "
           f"{', '.join(sorted(letters - set('abcdefgh')))}")
    for letter, (f, why) in _RUNS.items():
        try:
            out, raised = jax.jit(f)(jnp.array([3.0, 1.0, 2.0]), 3), ""
        except NO_VALUE as error:
            out, raised = None, type(error).__name__
        if letter in letters:
            expect(not raised, f"you say that {letter} runs, and for x = [3, 1, 2], n = 3 it "
                   f"raises {raised}\n{why}")
        else:
            message = [v.item() for v in out] if isinstance(out, list) else shown(out)
            expect(raised, f"you say that {letter} does not run, and for x = [3, 1, 2], n = 3 it "
                   f"gives {message}\n{why}")


exercise(
    "runs", chapter=CHAPTER, grade=grade_runs, solution='"adfg"',
    wrong=[
        ('"abdfg"', "asks for a value"),
        ('"adefg"', "what `or` must know"),
        ('"acdfg"', "needs a number"),
        ('"adg"', "The shape knows"),
        ('"af"', "the choice is in the program"),
        ('["a"]', "a string of letters"),
    ],
    hints=["what needs a number now, and what can wait until the program runs?"])


def _collatz(n: int) -> int:
    count = 0
    while n > 1:
        n, count = (n // 2 if n % 2 == 0 else 3 * n + 1), count + 1
    return count


def grade_collatz(collatz: Callable) -> None:
    compiled = jax.jit(collatz)
    for n in (7, *range(1, 30), 97):
        expected = _collatz(n)
        with _traced(f"n = {n}, under jit,", expected, "Python's `while` and `if` ask for a value; "
                    "what does `lax` have instead?"), \
                ending_within(8.0, f"for n = {n} the answer is {expected}, and yours does not "
                              "end: does each way lead to 1?"):
            out = compiled(n)
        out = out if isinstance(out, tuple) else numbers(out)
        agree(f"n = {n}", out, expected,
              (np.shape(out) != () or isinstance(out, tuple), "one number is expected: if the "
               "carry is a pair, take the count"),
              (n == 7 and near(out, 1), "that is where it ends; how many steps was it?"),
              (near(out, expected + 1) or near(out, expected - 1), "one too many, or one too few: "
               "from 1 it takes no step, from 2 it takes one"),
              "halve an even number, make 3 n + 1 of an odd one, and count until it is 1",
              tolerance=1e-6)
    try:
        strong = compiled(np.int32(27))
    except TypeError:
        expect(False, "for n = np.int32(27), under jit, the answer is 111, and yours raised "
                      "TypeError\nright for Python's 7, but an int32 must stay an int32: `/` makes "
                      "a float")
    agree("n = np.int32(27)", strong, 111)
    agree("n = 60975", compiled(60975), _collatz(60975), "it takes many steps, through numbers "
          "above 2 to the 24th, which no float32 holds exactly")


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
         "    return count", "what does `lax` have instead"),
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
        ("def collatz(n):\n    def step(c):\n        n, k = c\n"
         "        return jnp.where(n % 2 == 0, n // 2, 3 * n - 1), k + 1\n"
         "    return lax.while_loop(lambda c: c[0] > 1, step, (n, 0))[1]", "does not end"),
        ("def collatz(n):\n    def step(i, c):\n        n, k = c\n"
         "        new = jnp.where(n % 2 == 0, n // 2, 3 * n + 1)\n"
         "        return jnp.where(n > 1, new, n), k + (n > 1)\n"
         "    return lax.fori_loop(0, 200, step, (n, 0))[1]", "many steps"),
        ("def collatz(n):\n    def step(c):\n        n, k = c\n"
         "        return jnp.where(n % 2 == 0, n / 2, 3 * n + 1), k + 1\n"
         "    start = jnp.float32(n), 0\n"
         "    return lax.while_loop(lambda c: c[0] > 1, step, start)[1]", "no float32"),
    ],
    afterthought="the whole loop is machine code; try it on 77031, and then on 837799, "
                 "whose numbers grow beyond an int32 (chapter 20)",
    hints=["carry the number and the count together, as a pair"])


def grade_highest(highest: Callable) -> None:
    random = np.random.default_rng(0)
    for values in ([-3, -5, 2, 1, 7, 0], *random.integers(-9, 10, (5, 6)).tolist(),
                   [-3e38, -1e38, -2e38], [-np.inf, -np.inf, -7, np.inf, 0]):
        x = np.array(values, np.float32)
        expected = np.maximum.accumulate(x)
        out = highest(jnp.asarray(x))
        expect(not isinstance(out, tuple), f"for x = {values} the answer is {shown(expected)}, and "
               f"yours is {out}\n`scan` returns two things: the last carry, and all that was given "
               "out; one of them is expected")
        agree(f"x = {values}", numbers(out), expected,
              (np.shape(out) != x.shape, "one number for each place is expected"),
              (near(out, np.maximum(expected, 0)), f"the largest of ({values[0]},) is {values[0]}: "
               "where does the carry start?"),
              (near(np.ravel(out)[1:], expected[:-1]), "each place should count itself: give out "
               "the new carry"),
              (max(values) < -1e30 or values[0] == -np.inf, "all floats may come, even those far "
               "below 0: where does the carry start?"),
              "each place has the largest of all up to it", tolerance=0)
    names = [eqn.primitive.name for eqn in equations(jax.make_jaxpr(highest)(jnp.zeros(50)))]
    expect(len(names) < 20, "the program for 50 numbers should be one `scan`, and yours has "
           f"{len(names)} equations\nright, but the loop was unrolled")
    expect("scan" in names, "the program for 50 numbers should be one `scan`, and yours has "
           f"{', '.join(sorted(set(names)))}\nright; but do it with `lax.scan` this time")
    expect(names.count("scan") == 1, "the program for 50 numbers should be one `scan`, and yours "
           f"has {names.count('scan')}\nright, but one pass is enough")


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
        ("def highest(x):\n    s = lambda c, v: (jnp.maximum(c, v), jnp.maximum(c, v))\n"
         "    return lax.scan(s, -1e9, x)[1]", "far below 0"),
        ("def highest(x):\n    s = lambda c, v: (jnp.maximum(0.999999 * c, v),) * 2\n"
         "    return lax.scan(s, x[0], x)[1]", "of all up to it"),
        ("def highest(x):\n    s = lambda c, v: (jnp.maximum(c, v), jnp.maximum(c, v))\n"
         "    least = lax.scan(lambda c, v: (jnp.minimum(c, v), None), jnp.inf, x)[0]\n"
         "    return lax.scan(s, least, x)[1]", "one pass"),
    ],
    right=["@jax.jit\ndef highest(x):\n    s = lambda c, v: (jnp.maximum(c, v),) * 2\n"
           "    return lax.scan(s, -jnp.inf, x)[1]"],
    hints=["the body gets (carry, value) and returns (carry, what to give out)"])


def grade_log_or_zero(log_or_zero: Callable) -> None:
    compiled, slope = jax.jit(log_or_zero), jax.jit(jax.grad(log_or_zero))
    numbers = [1.0, np.e, 0.0, -2.0, 2.0, 1e-3, 40.0, -1e-3, 1e-8, 3e-37, 1e30]
    for x in (*numbers, np.inf):
        for f in (compiled, log_or_zero):
            expected = np.log(x) if x > 0 else 0.0
            with _traced(f"x = {x:.4g}, under jit,", expected, "`if` asks for a value, and there "
                        "are many: choose with `jnp.where`"):
                result = f(x)
            agree(f"x = {x:.4g}", result, expected,
                  (x > 0, "for positive numbers it is the logarithm"), "for 0 and below it is 0",
                  tolerance=1e-5)
    for x in numbers:
        result = slope(x)
        scale = x if x > 1e6 else 1.0  # the slope of a large number is small, and not 0
        agree(f"x = {x:.4g}" + f", times {scale:g}" * (scale != 1), result * scale,
              scale / x if x > 0 else 0.0, (x > 0, "the slope of the logarithm is 1 / x"),
              (np.isnan(result), "the logarithm of 0 is computed too, and its slope is infinite"),
              "where it is 0, it should be flat", what="the slope")
    x = jnp.array([0.0, 2.0, -2.0])
    for f in (log_or_zero, jax.vmap(log_or_zero)):
        out = jax.grad(lambda x, f=f: jnp.sum(f(x)))(x)
        agree("the batch [0, 2, -2]", out, [0.0, 0.5, 0.0],
              "right for one number, but not for a batch", what="the gradient")
        agree("the batch [0, 2, -2]", f(x), [0.0, np.log(2), 0.0],
              "right for one number, but not for a batch")


exercise(
    "log_or_zero", chapter=CHAPTER, grade=grade_log_or_zero,
    solution="""
def log_or_zero(x):
    safe = jnp.where(x > 0, x, 1.0)
    return jnp.where(x > 0, jnp.log(safe), 0.0)
""",
    wrong=[
        ("def log_or_zero(x):\n    return jnp.log(x) if x > 0 else 0.0",
         "choose with `jnp.where`"),
        ("def log_or_zero(x):\n    return jnp.where(x > 0, jnp.log(x), 0.0)",
         "is computed too"),
        ("def log_or_zero(x):\n    return jnp.log(jnp.where(x > 0, x, 1e-6))", "for 0 and below"),
        ("def log_or_zero(x):\n"
         "    return lax.cond(jnp.all(x > 0), jnp.log, jnp.zeros_like, x)", "not for a batch"),
        ("def log_or_zero(x):\n    return lax.stop_gradient(jnp.where(x > 0, jnp.log(x), 0.0))",
         "is 1 / x"),
        ("def log_or_zero(x):\n    return jnp.log(jnp.maximum(x, 1e-30))", "for 0 and below"),
        ("def log_or_zero(x):\n    return jnp.nan_to_num(jnp.log(jnp.where(x > 0, x, jnp.nan)))",
         "for x = inf"),
        ("def log_or_zero(x):\n    return jnp.where(x > 0, jnp.log(jnp.maximum(x, 1e-6)), 0.0)",
         "it is the logarithm"),
        ("def log_or_zero(x):\n    return 0.6931 * jnp.log2(jnp.where(x > 0, x, 1.0))",
         "it is the logarithm"),
    ],
    hints=["give the logarithm a harmless number where x is not positive"])


def _halved(x: float) -> tuple[float, float]:
    slope = 1.0
    while x > 1.0:
        x, slope = x / 2, slope / 2
    return x, slope


def grade_halved_bounded(halved_bounded: Callable) -> None:
    above = [float(np.nextafter(np.float32(2.0 ** k), np.float32(np.inf))) for k in (0, 3, 11, 19)]
    numbers = [12.0, 0.3, 1.0, -5.0, 1.5, 1000.0, 2.0 ** 20, 0.0, *above]
    for x in numbers:
        agree(f"x = {x}", halved_bounded(x), _halved(x)[0],
              (x <= 1, "it is not above 1, and should stay"),
              (x == 2.0 ** 20, "too few rounds for 2 to the 20th"),
              (x in above, "that is a little more than a power of 2, and its logarithm is rounded"),
              "halve it until it is not above 1, and stop there", tolerance=1e-6)
    with _traced("x = 12.0", 1 / 16, "a `while_loop` still: the number of rounds must be known "
                "beforehand", ValueError, what="the slope"):
        slope = jax.grad(halved_bounded)(12.0)
    agree("x = 12.0", slope, 1 / 16, "it was halved four times", what="the slope")
    for x in numbers[1:]:
        with _traced(f"x = {x}, under jit,", _halved(x)[0], "Python's `while` asks for a value; "
                    "how many rounds are enough?"):
            slope = jax.jit(jax.grad(halved_bounded))(x)
        agree(f"x = {x}", slope, _halved(x)[1],
              "each halving halves the slope", what="the slope under jit", tolerance=1e-6)


exercise(
    "halved_bounded", chapter=CHAPTER, grade=grade_halved_bounded,
    given="def halved(x):\n    return lax.while_loop(lambda x: x > 1.0, lambda x: x / 2, x)",
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
         "how many rounds are enough"),
        ("def halved_bounded(x):\n    k = jnp.ceil(jnp.log2(jnp.maximum(x, 1.0)))\n"
         "    return x / 2 ** k", "its logarithm is rounded"),
        ("def halved_bounded(x):\n    return lax.fori_loop(\n"
         "        0, 10, lambda i, x: jnp.where(x > 1.0, x / 2, x), x)", "too few"),
        ("def halved_bounded(x):\n    return x * lax.stop_gradient(halved(x) / x)",
         "it is not above 1"),
    ],
    right=["def halved_bounded(x):\n    above = lax.stop_gradient(jnp.maximum(x, 1.0))\n"
           "    return x * (halved(above) / above)"],
    hints=["a round in which nothing should be done returns x as it is"])
