"""The exercises of chapter 09, *Control flow*."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax.notebook.checks import agree, exercise, expect, instead_of, near, shown

from .ways import ending_within, equations, unchanged, without

CHAPTER = "09_control_flow"


def _random(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).uniform(-2, 2, shape).round(1)


def _uses(primitive: str, f: Callable, *args: Any) -> None:
    """Check that a function's program has this operation."""
    result = [eqn.primitive.name for eqn in equations(jax.make_jaxpr(f)(*args))]
    expect(primitive in result, f"the numbers are right. But among the {len(result)} equations of "
           f"your program there is no `{primitive}`")


# -- outer_equations -------------------------------------------------------------------------------

def grade_outer_equations(answer: Any) -> None:
    expect(isinstance(answer, int), "a whole number")
    expect(answer not in (50, 51, 100), "the rounds are not written one by one")
    expect(answer == 1, "the loop is one operation, and nothing stands beside it")


exercise("outer_equations", chapter=CHAPTER, grade=grade_outer_equations, solution="1",
         wrong=[("50", "one by one"), ("2", "nothing stands beside it"), ('"1"', "a whole number")])


# -- seen_by_log -----------------------------------------------------------------------------------

def grade_seen_by_log(answer: Any) -> None:
    expect(isinstance(answer, list | tuple), "a list of numbers")
    seen = sorted(answer)
    expect(seen != [2], "there is no choice between programs left: both branches are computed for "
           "every example")
    expect(seen != [-3, -1], "those whose logarithm nobody needs; but that of 2 is computed, too")
    expect(seen == [-3, -1, 2], "which numbers are there, and for which of them is a branch run?")


exercise("seen_by_log", chapter=CHAPTER, grade=grade_seen_by_log, solution="[-1, 2, -3]",
         wrong=[("[2]", "for every example"), ("[-1, -3]", "is computed, too"), ("2", "a list"),
                ("[]", "which numbers are there")],
         afterthought="nobody sees the two nans, as `where` does not choose them")


# -- rounds ----------------------------------------------------------------------------------------

def grade_rounds(answer: Any) -> None:
    expect(isinstance(answer, tuple | list) and len(answer) == 2, "a pair of whole numbers")
    rounds, bodies = answer
    expect(rounds != 10, "the three do not take turns: a round of the loop is one for all")
    expect(rounds != 1, "1 needs more rounds than 99; does it wait?")
    expect(rounds == 7, "the loop goes on for as long as one of them needs a further round: 1, "
                        "2, 4, 8 …")
    expect(bodies != 10, "those that are done stay as they are, but their body is computed, and "
           "thrown away")
    expect(bodies != 7, "in each round, the body is computed for a batch: how many examples?")
    expect(bodies == 21, "all three in each round")


exercise("rounds", chapter=CHAPTER, grade=grade_rounds, solution="(7, 21)",
         wrong=[("(7, 10)", "thrown away"), ("(10, 10)", "take turns"), ("(7, 7)", "for a batch"),
                ("(1, 3)", "does it wait"), ("7", "a pair")],
         hints=["which of the three needs the most rounds, and how many?"])


# -- divisor ---------------------------------------------------------------------------------------

def grade_divisor(divisor: Callable) -> None:
    pairs = [(a, b) for a in range(9) for b in range(9)] + [(84, 36), (1071, 462), (46368, 28657)]
    for a, b in pairs[:12] + pairs[-3:]:
        with without(jnp, "gcd", why="write the loop yourself"), ending_within(
                5.0, f"for {a} and {b} the answer is {math.gcd(a, b)}, and yours does not end: "
                "which pair follows, and when is its second number 0?"):
            result = divisor(a, b)
        expect(not isinstance(result, tuple), f"for {a} and {b} one number is expected, and yours "
               f"is {result}: that is the whole carry")
        agree(f"{a} and {b}", result, math.gcd(a, b),
              (near(divisor(8, 4), 0), "0 is where the loop stops; what stands beside it?"),
              "the loop goes on until the second number is 0; the new pair is made of the old one",
              tolerance=0)
    with instead_of(Exception, "traced", "right for two numbers. Under `vmap` they are tracers, "
                    "and Python's `while` and `if` cannot look at them; `lax.while_loop` can"):
        result = jax.vmap(divisor)(*map(jnp.array, zip(*pairs, strict=True)))
    for k, (a, b) in enumerate(pairs):
        agree(f"{a} and {b} in a batch", result[k], math.gcd(a, b), tolerance=0)
    large = 2**24 + 1
    agree(f"{3 * large} and {2 * large}", divisor(3 * large, 2 * large), large, "a float32 on the "
          "way has no room for all digits: whole numbers stay whole numbers", tolerance=0)
    _uses("while", divisor, 84, 36)


_DIVISOR = """
def divisor(a, b):
    def step(pair):
        return {step}
    return lax.while_loop(lambda pair: {goes_on}, step, (a, b)){part}
"""


def _divisor_text(goes_on: str = "pair[1] != 0", step: str = "(pair[1], pair[0] % pair[1])",
                  part: str = "[0]") -> str:
    return _DIVISOR.format(goes_on=goes_on, step=step, part=part)


exercise(
    "divisor", chapter=CHAPTER, grade=grade_divisor, solution=_divisor_text(),
    wrong=[("def divisor(a, b):\n    while b:\n        a, b = b, a % b\n    return a",
            "Under `vmap` they are tracers"),
           (_divisor_text(part=""), "the whole carry"),
           (_divisor_text(part="[1]"), "stands beside"),
           (_divisor_text().replace("step, (a, b)", "step, (1.0 * a, 1.0 * b)"),
            "no room for all digits"),
           (_divisor_text("pair[1] > 1"), "until the second number"),
           ("def divisor(a, b):\n    def step(i, pair):\n        a, b = pair\n"
            "        return jnp.where(b == 0, a, b), jnp.where(b == 0, 0, a % jnp.maximum(b, 1))\n"
            "    return lax.fori_loop(0, 10, step, (a, b))[0]", "until the second number"),
           ("def divisor(a, b):\n    return jnp.gcd(a, b)", "write the loop yourself"),
           ("@jax.jit\ndef divisor(a, b):\n    return jnp.gcd(a, b)", "write the loop yourself"),
           ("def divisor(a, b):\n    g = jnp.gcd(a, b)\n" + _divisor_text()[1:].replace(
               "def divisor(a, b):\n", "").replace("(a, b)", "(g, 0 * g)"),
            "write the loop yourself")],
    hints=["the carry is a pair; what is the test, and which part is the answer?"])


# -- polynomial ------------------------------------------------------------------------------------

def grade_polynomial(polynomial: Callable) -> None:
    for n, x in ((3, 3.0), (2, 5.0), (1, 2.0), (5, -1.5), (4, 0.0)):
        cs = _random(n, n)
        result, expected = polynomial(jnp.array(cs), x), np.polyval(cs, x)
        inputs = f"the coefficients {shown(cs)} and x = {x}"
        expect(not isinstance(result, tuple), f"for {inputs} one number is expected, and yours is "
               "a pair: `scan` gives two things, the last carry and the rows; which is the answer?")
        expect(result is not None and np.ndim(result) == 0, f"for {inputs} one number is expected: "
               "the last carry, which is the first of the two things that `scan` gives")
        agree(inputs, result, expected,
              (near(result, np.polyval(cs[::-1], x)), "the highest power stands first"),
              (near(result, expected + x**n), "what is the value before the first coefficient?"),
              "in each round, what is there is multiplied by x, and the next one is added")
    _uses("scan", polynomial, jnp.ones(3), 2.0)


_POLYNOMIAL = """
def polynomial(cs, x):
    return lax.scan(lambda value, c: ({carry}, None), {init}, {rows}){part}
"""


def _polynomial_text(carry: str = "value * x + c", init: str = "0.0", rows: str = "cs",
                     part: str = "[0]") -> str:
    return _POLYNOMIAL.format(carry=carry, init=init, rows=rows, part=part)


exercise(
    "polynomial", chapter=CHAPTER, grade=grade_polynomial, solution=_polynomial_text(),
    wrong=[(_polynomial_text(rows="cs[::-1]"), "stands first"),
           (_polynomial_text(carry="value + c * x"), "is multiplied by x"),
           (_polynomial_text(init="1.0"), "before the first"),
           (_polynomial_text(part=""), "gives two things"),
           (_polynomial_text(part="[1]"), "last carry"),
           ("def polynomial(cs, x):\n    return jnp.polyval(cs, x) + 0 * x", "no `scan`")])


# -- fibonacci -------------------------------------------------------------------------------------

def grade_fibonacci(fibonacci: Callable) -> None:
    numbers = [1, 1]
    while len(numbers) < 46:
        numbers.append(numbers[-1] + numbers[-2])
    for n in (6, 1, 2, 3, 12, 46, 0):
        with instead_of(ValueError, "negative dimensions", f"for n = {n} there are {n} numbers, "
                        "and yours raises: how many rounds are there?"):
            result = fibonacci(n)
        expect(np.shape(result) == (n,), f"for n = {n} the shape is ({n},), and yours is "
               f"{np.shape(result)}: each round gives one number as its row")
        agree(f"n = {n}", result, numbers[:n],
              (near(result, numbers[:n]), "they are nearly right: what is computed with fractions "
               "is rounded, a sum of whole numbers is not"),
              (near(result, numbers[:n][::-1]), "the right numbers, from the last to the first"),
              (near(result, numbers[1:n + 1]), "the first 1 is missing: which of the two "
               "does a round give?"),
              (near(result, [0, *numbers][:n]), "with which pair do you start?"),
              (bool((np.asarray(result) < 0).any()), f"a number has no room in {result.dtype}, and "
               "has wrapped around"),
              "the next pair is made of both numbers of the old one", tolerance=0)
        expect(np.asarray(result).dtype.kind in "iu", f"for n = {n} the numbers are right, and "
               f"their dtype is {result.dtype}: whole numbers begin with 1, and not with 1.0")
    _uses("scan", lambda x: fibonacci(5) + x, 0)


_FIBONACCI = """
def fibonacci(n):
    def round(pair, _):
        a, b = pair
        return {pair}, {row}
    return lax.scan(round, {init}, None, length=n)[1]
"""


def _fibonacci_text(pair: str = "(b, a + b)", row: str = "a", init: str = "(1, 1)") -> str:
    return _FIBONACCI.format(pair=pair, row=row, init=init)


exercise(
    "fibonacci", chapter=CHAPTER, grade=grade_fibonacci, solution=_fibonacci_text(),
    wrong=[("def fibonacci(n):\n    step = lambda p, _: ((p[1], p[0] + p[1]), p[1])\n"
            "    rest = lax.scan(step, (1, 1), None, length=n - 1)[1]\n"
            "    return jnp.concatenate([jnp.array([1]), rest])", "how many rounds are there"),
           (_fibonacci_text(row="b"), "is missing"), (_fibonacci_text(init="(0, 1)"), "which pair"),
           (_fibonacci_text(pair="(b, b + b)"), "of the old one"),
           (_fibonacci_text(init="(1.0, 1.0)"), "and not with 1.0"),
           (_fibonacci_text(row="(a, b)"), "as its row"),
           (_fibonacci_text().rstrip() + "[::-1]", "from the last to the first"),
           (_fibonacci_text(init="(jnp.int8(1), jnp.int8(1))"), "has wrapped around"),
           ("def fibonacci(n):\n    g = (1 + 5 ** 0.5) / 2\n    _, k = lax.scan(lambda k, _: "
            "(k + 1, k), 1, None, length=n)\n    return jnp.round(g ** k / 5 ** 0.5).astype(int)",
            "is rounded")])


# -- backwards -------------------------------------------------------------------------------------

def grade_backwards(backwards: Callable) -> None:
    for n in (3, 1, 2, 5):
        xs, start, ct = _random(n, n), 1.5, 2.0
        before = start * np.concatenate([[1.0], np.cumprod(xs)])[:n]
        after = ct * np.cumprod(np.concatenate([[1.0], xs[::-1]]))[:n][::-1]
        first, rows = ct * np.prod(xs), after * before
        given = xs.copy()
        result = backwards(start, given, ct)
        inputs = f"c₀ = {start}, xs = {shown(xs)} and the cotangent {ct} of the last carry"
        expect(isinstance(result, tuple | list) and len(result) == 2, f"for {inputs} a pair is "
               f"expected, the cotangents of c₀ and of xs, and yours is {result}")
        unchanged(inputs, xs, given)
        expect(hasattr(result[1], "shape"), f"for {inputs} the cotangents of the xs should be an "
               f"array, and yours is a {type(result[1]).__name__}")
        agree(inputs, result[0], first, "going back over a round multiplies by its x",
              what="the cotangent of c₀")
        expect(np.shape(result[1]) == (n,), f"for {inputs} there are {n} cotangents of the xs, and "
               f"the shape of yours is {np.shape(result[1])}")
        agree(inputs, result[1], rows,
              (near(result[1], rows[::-1]), "the right numbers, from the last to the first"),
              (near(result[1], after * before * xs), "each factor is the carry as it *came into* "
               "the round; yours is as it went out"),
              (near(result[1], before), "each has to be multiplied by the cotangent of what the "
               "round gave"),
              "the cotangent of x is that of the carry after the round, times the carry before it",
              what="the cotangents of xs")
        expect(near(result[1], rows, 1e-10), f"for {inputs} the cotangents of xs are right to the "
               "7 digits of float32, and NumPy's have 16: write the two loops with NumPy, without "
               "`grad`")


_BACKWARDS = """
def backwards(c, xs, ct):
    kept = []
    for x in xs:
        {keep}
    cts = np.zeros(len(xs))
    for k in {order}:
        {rows}
        ct = ct * xs[k]
    return {result}
"""


def _backwards_text(keep: str = "kept.append(c); c = c * x",
                    order: str = "reversed(range(len(xs)))",
                    rows: str = "cts[k] = ct * kept[k]", result: str = "ct, cts") -> str:
    lines = keep.replace("; ", "\n        ")
    return _BACKWARDS.format(keep=lines, order=order, rows=rows, result=result)


exercise(
    "backwards", chapter=CHAPTER, grade=grade_backwards, solution=_backwards_text(),
    wrong=[(_backwards_text(keep="c = c * x; kept.append(c)"), "came into"),
           (_backwards_text(order="range(len(xs))"), "times the carry before it"),
           (_backwards_text(result="ct, cts[::-1]"), "from the last to the first"),
           (_backwards_text(rows="cts[k] = kept[k]"), "what the round gave"),
           (_backwards_text(result="cts"), "a pair is expected"),
           (_backwards_text(result="ct, cts.tolist()"), "should be an array"),
           ("def backwards(c, xs, ct):\n    kept = []\n    for x in xs:\n"
            "        kept.append(c)\n        c = c * x\n    for k in reversed(range(len(xs))):\n"
            "        x, xs[k] = xs[k], ct * kept[k]\n        ct = ct * x\n    return ct, xs",
            "make a new one"),
           (_backwards_text(result="1.0, cts"), "multiplies by its x"),
           ("def backwards(c, xs, ct):\n    one, rows = jax.grad(lambda c, xs: ct * c * "
            "jnp.prod(xs), (0, 1))(c, xs)\n    return one, np.asarray(rows)", "without `grad`")],
    hints=["two loops: one forwards, which keeps the carry of each round, and one backwards"])


# -- discounted ------------------------------------------------------------------------------------

def grade_discounted(discounted: Callable) -> None:
    for n, rate in ((3, 0.5), (1, 0.9), (2, 0.0), (6, 0.9)):
        rewards = _random(n, n)
        expected = [sum(r * rate**k for k, r in enumerate(rewards[start:])) for start in range(n)]
        forwards = [sum(r * rate**k for k, r in enumerate(rewards[stop::-1])) for stop in range(n)]
        result = discounted(jnp.array(rewards), rate)
        inputs = f"the rewards {shown(rewards)} and the rate {rate}"
        expect(not isinstance(result, tuple), f"for {inputs} one array is expected, and yours is a "
               "pair: the last carry, and the rows")
        expect(np.shape(result) == (n,), f"for {inputs} the answer has {n} numbers, and the shape "
               f"of yours is {np.shape(result)}")
        agree(inputs, result, expected,
              (near(result, expected[::-1]), "a scan with `reverse=True` puts each row where its "
               "input stands: there is nothing to reverse"),
              (near(result, forwards), "each of yours has what came before; what comes after is "
               "asked for"),
              "what comes later counts rate times as much; today's reward counts in full")
    _uses("scan", discounted, jnp.ones(3), 0.5)
    scans = [eqn for eqn in equations(jax.make_jaxpr(discounted)(jnp.ones(3), 0.5))
             if eqn.primitive.name == "scan"]
    expect(all(eqn.params["reverse"] for eqn in scans), "the numbers are right, and your scan goes "
           "forwards: with `reverse=True` no array need be turned round")


_DISCOUNTED = """
def discounted(rewards, rate):
    def round(later, reward):
        worth = {worth}
        return worth, worth
    return lax.scan(round, 0.0, rewards{how}){part}
"""


def _discounted_text(worth: str = "reward + rate * later", how: str = ", reverse=True",
                     part: str = "[1]") -> str:
    return _DISCOUNTED.format(worth=worth, how=how, part=part)


exercise(
    "discounted", chapter=CHAPTER, grade=grade_discounted, solution=_discounted_text(),
    wrong=[(_discounted_text(how=""), "what came before"),
           (_discounted_text(part="[1][::-1]"), "nothing to reverse"),
           (_discounted_text(how="[::-1]", part="[1][::-1]"), "your scan goes forwards"),
           (_discounted_text(worth="rate * (reward + later)"), "counts in full"),
           (_discounted_text(part=""), "yours is a pair"),
           (_discounted_text(part="[0]"), "the shape of yours")],
    right=["@jax.jit" + _discounted_text()])


# -- repeat ----------------------------------------------------------------------------------------

def grade_repeat(repeat: Callable) -> None:
    from minijax.notebook.library import library
    mini = library.module
    for n, x in ((5, 1.0), (0, 7.0), (1, 3.0), (4, -2.0)):
        with instead_of(TypeError, "takes 1 positional argument but 2",
                        "the body of `fori_loop` is given the number of the round, too"):
            result = repeat(lambda x: x * 2.0, n, x)
        agree(f"doubling, n = {n} and x = {x}", result, x * 2.0**n,
              (n > 0 and near(result, x * 2.0 ** (n + 1)), "one round too many"))
    program = mini.make_jaxpr(lambda x: repeat(mini.sin, 30, x))(1.0)
    names = [eqn.primitive.name for eqn in program.eqns]
    loops = [name for name in names if name in ("scan", "while")]
    expect(len(loops) == 1 and len(names) < 10, "one operation is expected, a loop; for n = 30 "
           f"your program has {len(names)} equations, and {len(loops)} of them are loops")
    expect(loops[0] == "scan", "your program has a `while`, which has no gradient; but how many "
           "rounds there are is known")
    for x in (1.5, -0.5):
        agree(f"squaring three times at {x}", mini.grad(lambda x: repeat(
            lambda x: x * x, 3, x))(x), 8 * x**7, what="the gradient")


exercise(
    "repeat", chapter=CHAPTER, grade=grade_repeat, given="%mini begin 09",
    solution="def repeat(f, n, x):\n    return fori_loop(0, n, lambda k, x: f(x), x)",
    wrong=[("def repeat(f, n, x):\n    for _ in range(n):\n        x = f(x)\n    return x",
            "one operation is expected"),
           ("def repeat(f, n, x):\n    return fori_loop(0, n, f, x)", "the number of the round"),
           ("def repeat(f, n, x):\n    return fori_loop(0, n + 1, lambda k, x: f(x), x)",
            "one round too many"),
           ("def repeat(f, n, x):\n    return while_loop(lambda c: c[0] < n, "
            "lambda c: (c[0] + 1.0, f(c[1])), (0.0, x))[1]", "has no gradient")])


# -- moving_mean -----------------------------------------------------------------------------------

def grade_moving_mean(moving_mean: Callable) -> None:
    for n in (4, 1, 2, 6):
        xs = np.random.default_rng(n).integers(-50, 50, n)
        expected, mean = [], float(xs[0])
        for x in xs:
            mean = 0.75 * mean + 0.25 * float(x)
            expected.append(mean)
        with instead_of(TypeError, "carry", f"for the integers {shown(xs)} the carry goes in as "
                        "int32[], and comes out as float32[]: what should it be at the start?"):
            result = moving_mean(jnp.array(xs))
        agree(f"the integers {shown(xs)}", result, expected,
              (near(result, expected, 5e-3), "they are near, but not all digits of a float32 are "
               "there"),
              (near(result, xs), "those are the readings: what does a round give?"),
              (near(result, np.trunc(result)), "the means are cut to whole numbers: can the type "
               "of the carry hold them?"),
              (np.shape(result) == (), "that is the last mean; all of them are wanted"),
              (np.shape(result) == (n - 1,), "the first reading has a mean, too"),
              (np.shape(result) == (n,) and n > 1 and near(
                  np.ravel(result)[1], 0.25 * xs[0] + 0.75 * xs[1]), "the old mean counts three "
               "times as much as the reading"),
              (np.shape(result) == (n,) and near(np.ravel(result)[0], expected[0]), "the first "
               "mean is right; each further one is three quarters of the old mean and a quarter of "
               "the reading"),
              "the first mean starts from the first reading")
    for dtype in ("int8", "uint8", "float32"):
        xs = np.array([3, 5, 4], dtype)
        with instead_of(TypeError, "carry", f"for {shown(xs)} of {dtype} the carry goes in with "
                        "one type, and comes out with another: there are other integers than "
                        "int32"):
            result = moving_mean(jnp.array(xs))
        agree(f"{shown(xs)} of {dtype}", result, [3, 3.5, 3.625], tolerance=1e-3)
    _uses("scan", moving_mean, jnp.arange(4))


_MOVING_MEAN = """
def moving_mean(xs):
    def round(mean, x):
        mean = {mean}
        return mean, mean
    return lax.scan(round, {init}, xs)[1]
"""


def _moving_mean_text(init: str = "xs[0].astype(float)",
                      mean: str = "0.75 * mean + 0.25 * x") -> str:
    return _MOVING_MEAN.format(init=init, mean=mean)


exercise(
    "moving_mean", chapter=CHAPTER, grade=grade_moving_mean, solution=_moving_mean_text(),
    wrong=[("def moving_mean(xs):\n    if xs.dtype == jnp.int32:\n"
            "        xs = xs.astype(float)\n    def round(mean, x):\n"
            "        mean = 0.75 * mean + 0.25 * x\n        return mean, mean\n"
            "    return lax.scan(round, xs[0], xs)[1]", "other integers than"),
           (_moving_mean_text("xs[0]"), "at the start"),
           (_moving_mean_text("xs[0]", "(0.75 * mean + 0.25 * x).astype(int)"), "cut to whole"),
           (_moving_mean_text("0.0"), "from the first reading"),
           (_moving_mean_text("xs[0].astype(jnp.float16)").replace("25 * x", "25 * x.astype("
            "jnp.float16)"), "not all digits"),
           (_moving_mean_text("1.0 * xs[0]", "0.5 * mean + 0.5 * x"), "three quarters"),
           (_moving_mean_text("1.0 * xs[0]", "0.25 * mean + 0.75 * x"), "three times as much"),
           (_moving_mean_text("1.0 * xs[0]").replace("xs)[1]", "xs)[0]"), "the last mean"),
           ("def moving_mean(xs):\n    out, mean = [], xs[0]\n    for x in xs:\n"
            "        mean = 0.75 * mean + 0.25 * x\n        out.append(mean)\n"
            "    return jnp.stack(out)", "no `scan`")])
