"""The exercises of chapter 09, *Control flow*."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax.notebook.checks import exercise, expect, instead_of, near

CHAPTER = "09_control_flow"


def _agrees(found: Any, wanted: Any, given: str) -> None:
    expect(near(found, wanted), f"for {given} the answer is {np.asarray(wanted).tolist()}, "
           f"and yours {np.asarray(found).tolist()}")


def _uses(primitive: str, f: Callable, *args: Any) -> bool:
    """Whether a function's program has this operation in it."""
    return any(eqn.primitive.name == primitive for eqn in jax.make_jaxpr(f)(*args).eqns)


def grade_outer_equations(answer: Any) -> None:
    expect(isinstance(answer, int), "a whole number")
    expect(answer not in (50, 51, 100), "the rounds are not written one by one")
    expect(answer == 1, "the loop is one operation, and nothing stands beside it")


exercise("outer_equations", chapter=CHAPTER, grade=grade_outer_equations, solution="1",
         wrong=[("50", "one by one"), ("2", "nothing stands beside it"), ('"1"', "a whole number")])


def grade_polynomial(polynomial: Callable) -> None:
    for cs, x in (([2.0, 0.0, 1.0], 3.0), ([1.0, -1.0], 5.0), ([4.0], 2.0)):
        found = polynomial(jnp.array(cs), x)
        expect(not isinstance(found, tuple),
               "`scan` gives two things, the last carry and the rows; which one is the answer?")
        expect(np.shape(found) == (), "the answer is one number, the last carry")
        _agrees(found, np.polyval(cs, x), f"the coefficients {cs} at {x}")
    expect(_uses("scan", polynomial, jnp.ones(3), 2.0), "use `lax.scan`")


_POLYNOMIAL = """
def polynomial(cs, x):
    return lax.scan(lambda value, c: ({carry}, None), {init}, {rows}){part}
"""


def _polynomial_text(carry: str = "value * x + c", init: str = "0.0", rows: str = "cs",
                     part: str = "[0]") -> str:
    return _POLYNOMIAL.format(carry=carry, init=init, rows=rows, part=part)


exercise(
    "polynomial", chapter=CHAPTER, grade=grade_polynomial, solution=_polynomial_text(),
    wrong=[(_polynomial_text(rows="cs[::-1]"), "the answer is"),
           (_polynomial_text(carry="value + c * x"), "the answer is"),
           (_polynomial_text(init="1.0"), "the answer is"),
           (_polynomial_text(part=""), "gives two things"),
           ("def polynomial(cs, x):\n    return jnp.polyval(cs, x) + 0 * x", "use `lax.scan`")])


def grade_running_max(running_max: Callable) -> None:
    for xs in ([1.0, 3.0, 2.0, 5.0], [-3.0, -4.0, -1.0], [2.0]):
        found = running_max(jnp.array(xs))
        expect(np.shape(found) == (len(xs),), f"for {len(xs)} numbers the answer has {len(xs)}, "
               f"not the shape {np.shape(found)}")
        _agrees(found, np.maximum.accumulate(xs), f"{xs}")
    expect(_uses("scan", running_max, jnp.ones(3)), "use `lax.scan`")


_RUNNING = """
def running_max(xs):
    def round(largest, x):
        largest = jnp.maximum(largest, x)
        return largest, {row}
    return lax.scan(round, {init}, xs)[{part}]
"""


def _running_text(row: str = "largest", init: str = "xs[0]", part: str = "1") -> str:
    return _RUNNING.format(row=row, init=init, part=part)


exercise(
    "running_max", chapter=CHAPTER, grade=grade_running_max, solution=_running_text(),
    wrong=[(_running_text(init="0.0"), "the answer is"), (_running_text(row="x"), "the answer is"),
           (_running_text(part="0"), "not the shape"),
           ("def running_max(xs):\n    return jnp.stack([xs[:k + 1].max() "
            "for k in range(len(xs))])", "use `lax.scan`")])


def _collatz(n: int) -> int:
    steps = 0
    while n != 1:
        n, steps = (n // 2 if n % 2 == 0 else 3 * n + 1), steps + 1
    return steps


def grade_collatz_steps(collatz: Callable) -> None:
    for n in (1, 2, 6, 27):
        found = collatz(n)
        expect(not isinstance(found, tuple), "the answer is one number, and not the whole carry")
        _agrees(found, _collatz(n), f"{n}")
    with instead_of(TypeError, "boolean", "right for a number, but under vmap it is a tracer: "
                    "Python's `if` and `while` cannot look at it; use `lax.while_loop` and "
                    "`jnp.where`"):
        several = jax.vmap(collatz)(jnp.array([1, 2, 6, 27]))
    _agrees(several, [_collatz(n) for n in (1, 2, 6, 27)], "a batch of 1, 2, 6 and 27")


_COLLATZ = """
def collatz_steps(n):
    def step(carry):
        n, steps = carry
        return {n}, steps + 1
    return lax.while_loop(lambda carry: carry[0] != {end}, step, (n, 0)){part}
"""


def _collatz_text(n: str = "jnp.where(n % 2 == 0, n // 2, 3 * n + 1)", end: str = "1",
                  part: str = "[1]") -> str:
    return _COLLATZ.format(n=n, end=end, part=part)


exercise(
    "collatz_steps", chapter=CHAPTER, grade=grade_collatz_steps, solution=_collatz_text(),
    wrong=[(_collatz_text(part="[0]"), "the answer is"),
           (_collatz_text(n="n // 2 if n % 2 == 0 else 3 * n + 1"), "your answer raised"),
           (_collatz_text(n="jnp.where(n % 2 == 0, n // 2, n - 1)"), "the answer is"),
           (_collatz_text(part=""), "not the whole carry")])


def grade_needed(answer: Any) -> None:
    expect(answer in ("cond", "while_loop", "scan"), "one of the three names, as text")
    expect(answer != "cond", "a cond runs once; here something goes round")
    expect(answer != "scan", "how many rows would you give it? forwards, there is another way")
    expect(answer == "while_loop", "what goes round until a test says no?")


exercise("needed", chapter=CHAPTER, grade=grade_needed, solution='"while_loop"',
         wrong=[('"scan"', "how many rows"), ('"cond"', "runs once"),
                ('"fori_loop"', "one of the three")])


def grade_who(answer: Any) -> None:
    expect(answer in ("none", "some", "all"), '`"none"`, `"some"` or `"all"`')
    expect(answer != "none", "both branches are computed for every example")
    expect(answer != "all", "for 2 the logarithm is an ordinary one")
    expect(answer == "some", "which examples are negative?")


exercise("who", chapter=CHAPTER, grade=grade_who, solution='"some"',
         wrong=[('"none"', "for every example"), ('"all"', "an ordinary one"),
                ("2", '`"none"`')])


def grade_repeat(repeat: Callable) -> None:
    from minijax.notebook.library import library
    mini = library.module
    with instead_of(TypeError, "takes 1 positional argument but 2",
                    "the body of `fori_loop` is given the number of the round, too"):
        found = repeat(lambda x: x * 2.0, 5, 1.0)
    _agrees(found, 32, "doubling 1, five times")
    _agrees(repeat(lambda x: x + 1.0, 0, 7.0), 7, "no round at all, from 7")
    program = mini.make_jaxpr(lambda x: repeat(mini.sin, 30, x))(1.0)
    loops = [eqn for eqn in program.eqns if eqn.primitive.name in ("scan", "while")]
    expect(len(loops) == 1 and len(program.eqns) < 10, "one operation is asked for, and your "
           f"program has {len(program.eqns)} equations")
    expect(loops[0].primitive.name == "scan",
           "a `while` has no gradient; how many rounds there are is known")
    _agrees(mini.grad(lambda x: repeat(lambda x: x * x, 3, x))(1.5), 8 * 1.5 ** 7,
            "the gradient of squaring three times, at 1.5,")


_MINI = """
from minijax.notebook.library import library
library.begin("09")
from mini import fori_loop, scan, while_loop
"""

exercise(
    "repeat", chapter=CHAPTER, grade=grade_repeat, given=_MINI,
    solution="def repeat(f, n, x):\n    return fori_loop(0, n, lambda k, x: f(x), x)",
    wrong=[("def repeat(f, n, x):\n    for _ in range(n):\n        x = f(x)\n    return x",
            "one operation is asked for"),
           ("def repeat(f, n, x):\n    return fori_loop(0, n, f, x)", "the number of the round"),
           ("def repeat(f, n, x):\n    return fori_loop(0, n + 1, lambda k, x: f(x), x)",
            "five times"),
           ("def repeat(f, n, x):\n    return while_loop(lambda c: c[0] < n, "
            "lambda c: (c[0] + 1.0, f(c[1])), (0.0, x))[1]", "has no gradient")])


def grade_fibonacci(fibonacci: Callable) -> None:
    for n, wanted in ((6, [1, 1, 2, 3, 5, 8]), (1, [1]), (2, [1, 1])):
        found = fibonacci(n)
        expect(np.shape(found) == (n,), f"the answer has {n} numbers, not the shape "
               f"{np.shape(found)}")
        _agrees(found, wanted, f"n = {n}")
    expect(_uses("scan", lambda x: fibonacci(5) + x, 0), "use one `lax.scan`")


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
    wrong=[(_fibonacci_text(row="b"), "the answer is"), (_fibonacci_text(init="(0, 1)"), "n = 6"),
           (_fibonacci_text(pair="(b, b + b)"), "the answer is"),
           (_fibonacci_text(row="(a, b)"), "not the shape")])
