"""The exercises of chapter 03, *Forward derivatives*."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax import core, lax
from minijax.core.vmap import BatchTracer
from minijax.transforms.api import make_jaxpr
from minijax.transforms.derivatives import jvp
from minijax.transforms.gradients import grad
from minijax.notebook.checks import Hint, exercise, expect, instead_of, near, trouble

from .ways import FIVES, declared


def _shown(x: Any) -> str:
    try:
        array = np.asarray(x, float)
    except (TypeError, ValueError):
        return repr(x)
    return (f"{float(array):.4g}" if array.ndim == 0 else
            np.array2string(array, precision=4, separator=", ").replace("\n", ""))


def _agrees(result: Any, expected: Any, inputs: str) -> None:
    told = [_shown(expected), _shown(result)]
    if told[0] == told[1]:  # they differ in digits that are not shown
        told = [repr(np.asarray(x).tolist()) for x in (expected, result)]
    expect(near(result, expected), f"for {inputs} the answer is {told[0]}, and yours {told[1]}")


DUAL = """
class Dual:
    def __init__(self, primal, tangent):
        self.primal, self.tangent = primal, tangent

    def __mul__(self, other):
        return Dual(self.primal * other.primal,
                    self.tangent * other.primal + self.primal * other.tangent)
"""


def grade_divide(divide: Callable) -> None:
    dual = divide.__globals__.get("Dual", SimpleNamespace)
    out = divide(dual(6.0, 2.0), dual(3.0, 1.0))
    expect(hasattr(out, "tangent"), "return a Dual: the quotient has a primal and a tangent")
    expect(near(out.primal, 2.0), "the primal is the quotient of the primals")
    expect(not near(out.tangent, 2.0), "a quotient does not move like the quotient of the speeds: "
           "start from x = q * y, and the rule for products")
    by_x = divide(dual(6.0, 1.0), dual(3.0, 0.0)).tangent
    by_y = divide(dual(6.0, 0.0), dual(3.0, 1.0)).tangent
    example = (f"for 6 / 3 the tangent is 1/3 if the 6 grows at speed 1, and -2/3 if the 3 does; "
               f"yours are {float(by_x):.4g} and {float(by_y):.4g}. ")
    expect(not near(by_x, -1 / 3), example + "The two terms have each other's sign")
    expect(not (near(by_x, 1.0) and near(by_y, -2 / 3)), example + "In a - b / c only b is "
           "divided: parentheses?")
    expect(not (near(by_x, 3.0) and near(by_y, -6.0)), example + "a / b * b divides, and then "
           "multiplies again: parentheses?")
    expect(not (near(by_x, 1 / 3) and near(by_y, -2.0)), example + "The term of y lacks a "
           "division by y, which the other has")
    expect(near(by_x, 1 / 3), example + "If y stands still, dividing by it is multiplying by a "
           "constant; which?")
    expect(not near(by_y, 0.0), example + "The quotient gets smaller if y moves, too")
    expect(not near(by_y, 2 / 3), example + "A larger y makes a smaller quotient: look at the "
           "sign of the second term")
    expect(near(by_y, -2 / 3), example + "It is right if only x moves")
    expect(near(out.tangent, 0.0), "right if one of them moves, but not if both do")
    random = np.random.default_rng(0)
    signed = random.uniform(0.5, 3, (8, 4)).round(2) * random.choice([-1, 1], (8, 4))
    for a, da, b, db in signed.tolist():
        one, two = dual(a, da), dual(b, db)
        out, inputs = divide(one, two), f"Dual({a}, {da}) / Dual({b}, {db})"
        after = (one.primal, one.tangent, two.primal, two.tangent)
        expect(after == (a, da, b, db), f"after {inputs} the two are Dual{after[:2]} and "
               f"Dual{after[2:]}: make a new Dual, and leave the arguments as they are")
        _agrees(out.primal, a / b, f"{inputs}, the primal,")
        _agrees(out.tangent, da / b - a * db / b**2, f"{inputs}, the tangent,")


exercise(
    "divide", chapter="03_forward_derivatives", grade=grade_divide, given=DUAL,
    solution="""
def divide(x, y):
    q = x.primal / y.primal
    return Dual(q, (x.tangent - q * y.tangent) / y.primal)
""",
    wrong=[
        ("def divide(x, y):\n    return Dual(x.primal / y.primal, x.tangent / y.tangent)",
         "quotient of the speeds"),
        ("def divide(x, y):\n    q = x.primal / y.primal\n"
         "    return Dual(q, (x.tangent + q * y.tangent) / y.primal)", "the sign"),
        ("def divide(x, y):\n    q = x.primal / y.primal\n"
         "    return Dual(q, x.tangent - q * y.tangent)", "y stands still"),
        ("def divide(x, y):\n    return x.primal / y.primal", "return a Dual"),
        ("def divide(x, y):\n    x.primal /= y.primal\n"
         "    x.tangent = (x.tangent - x.primal * y.tangent) / y.primal\n    return x",
         "make a new Dual"),
        ("def divide(x, y):\n    return Dual(x.primal / y.primal, x.tangent / y.primal - x.primal "
         "* y.tangent / abs(y.primal) / y.primal)", "the tangent, the answer is"),
        ("def divide(x, y):\n    return Dual(x.primal / y.primal, x.tangent / y.primal)",
         "y moves, too"),
        ("def divide(x, y):\n    q = x.primal / y.primal\n"
         "    return Dual(q, x.tangent - q * y.tangent / y.primal)", "only b is divided"),
        ("def divide(x, y):\n    return Dual(x.primal / y.primal, (x.tangent * y.primal - "
         "x.primal * y.tangent) / y.primal * y.primal)", "multiplies again"),
        ("def divide(x, y):\n    q = x.primal / y.primal\n"
         "    return Dual(q, x.tangent / y.primal - q * y.tangent)", "lacks a division"),
        ("def divide(x, y):\n    q = x.primal / y.primal\n"
         "    return Dual(q, (q * y.tangent - x.tangent) / y.primal)", "each other's sign"),
    ],
    right=["def divide(x, y):\n    return x * Dual(1 / y.primal, -y.tangent / y.primal ** 2)"],
    afterthought="`Dual.__truediv__ = divide` teaches the class",
    hints=["solve the rule for products, dx = dq * y + q * dy, for dq"])


def _turn(v: Any) -> Any:
    x, y, z = v
    return jnp.array([x * y, y * z, x])


def grade_column(column: Callable) -> None:
    at = jnp.array([1.0, 2.0, 3.0])
    matrix = [[2.0, 1.0, 0.0], [0.0, 3.0, 2.0], [1.0, 0.0, 0.0]]
    out = column(_turn, at, 1)
    expect(not isinstance(out, tuple), "`jvp` returns two things: the value, and how it moves; "
           "only one of them is expected")
    expect(not near(out, [2.0, 6.0, 1.0]), "that is the value; its change is the second result")
    expect(jnp.shape(out) == (3,), "a column has one number for each result, here 3")
    expect(not near(out, [3.0, 5.0, 1.0]), "that is the sum of all columns: let one input move, "
           "and the others stand still")
    expect(not near(out, matrix[1]), "that is a row: the slopes of one result along all inputs")
    seen = []

    def watched(x: Any) -> Any:
        seen.append(x)
        return _turn(x)
    column(watched, at, 1)
    expect(not isinstance(getattr(seen[0], "tangent", None), BatchTracer), "the numbers are right, "
           "but a run along every input has made them, as in `jacfwd`: one run of `jvp` is enough")
    runs = sum(hasattr(x, "tangent") for x in seen)
    expect(runs <= 1, f"the numbers are right, but `jvp` ran f {runs} times, and one run is enough")
    with instead_of(ValueError, "Reverse-mode", "the numbers are right, but they were made "
                    "backwards, a run for each result: one run of `jvp` is enough"):
        column(lambda x: lax.while_loop(lambda y: y[0] < 9.0, lambda y: 2.0 * y, x), at, 1)
    for j in range(3):
        expect(near(column(_turn, at, j), [row[j] for row in matrix]),
               f"wrong for j = {j} of the function (xy, yz, x) at (1, 2, 3)")
    expect(near(column(FIVES, at, 1), [0.0, 5.0, 0.0]), "right, as far as differences of values "
           "are: of a function for which somebody has declared a slope of 5, yours takes another "
           "one. `jvp` gives the column without differences")
    random = np.random.default_rng(1)
    for n in (1, 2, 4):
        w, x = random.normal(size=(3, n)).round(2), random.normal(size=n).round(2)
        for j in range(n):
            _agrees(column(lambda x, w=w: jnp.sin(w @ x + 1), jnp.array(x), j),
                    np.cos(w @ x + 1) * w[:, j],
                    f"sin(w @ x + 1) with w = {w.tolist()}, x = {x.tolist()} and j = {j}")


exercise(
    "column", chapter="03_forward_derivatives", grade=grade_column,
    solution="""
def column(f, x, j):
    direction = jnp.zeros_like(x).at[j].set(1.0)
    return jax.jvp(f, (x,), (direction,))[1]
""",
    wrong=[
        ("def column(f, x, j):\n    return jax.jvp(f, (x,), (jnp.ones_like(x),))[1]",
         "sum of all columns"),
        ("def column(f, x, j):\n    return jax.jacfwd(f)(x)[j]", "that is a row"),
        ("def column(f, x, j):\n    x = abs(x)\n    d = jnp.zeros_like(x).at[j].set(1.0)\n"
         "    return jax.jvp(f, (x,), (d,))[1]", "for sin(w @ x + 1)"),
        ("def column(f, x, j):\n    e = jnp.zeros_like(x).at[j].set(1e-3)\n"
         "    return (f(x + e) - f(x - e)) / 2e-3", "without differences"),
        ("def column(f, x, j):\n    return jax.jacfwd(f)(x)[:, j]", "along every input"),
        ("def column(f, x, j):\n    return jax.jacrev(f)(x)[:, j]", "made backwards"),
        ("def column(f, x, j):\n    return [jax.jvp(f, (x,), (e,))[1] for e in jnp.eye(len(x))][j]",
         "one run is enough"),
        ("def column(f, x, j):\n    d = jnp.zeros_like(x).at[j].set(1.0)\n"
         "    return jax.jvp(f, (x,), (d,))", "two things"),
        ("def column(f, x, j):\n    d = jnp.zeros_like(x).at[j].set(1.0)\n"
         "    return jax.jvp(f, (x,), (d,))[0]", "that is the value"),
        ("def column(f, x, j):\n    d = jnp.zeros_like(x).at[j].set(1.0)\n"
         "    return jax.jvp(f, (x,), (d,))[1][j]", "one number for each result"),
    ],
    hints=["which direction moves input j alone?"])


def grade_newton(newton: Callable) -> None:
    def f(x: Any) -> Any:
        return x * x - 2.0

    once = newton(f, 1.0, 1)
    expect(jnp.shape(once) == (), "return one number: where the last step ends")
    expect(not near(once, 0.5), "the step goes away from the zero: look at its sign")
    expect(not near(once, 3.0), "the slope is below the line: divide the value by the slope")
    expect(near(once, 1.5), "one step for x² - 2 from x = 1: the value is -1 and the slope 2; "
           "where does that line meet zero?")
    expect(not near(newton(f, 1.0, 2), 1.5), "one step is right; two steps end in the same place")
    expect(not near(newton(f, 1.0, 2), 13 / 9), "the tangent should be 1, and not x: the slope is "
           "how fast the value changes where x moves at speed 1")
    expect(near(newton(f, 1.0, 2), 17 / 12), "one step is right, two are not: does the second "
           "start where the first has ended, with the value and the slope there?")
    expect(near(newton(f, 1.0, 0), 1.0), "no steps should not move at all")
    _agrees(newton(lambda x: 2.0 - x * x, 1.0, 1), 1.5, "2 - x², whose slope is negative, from 1 "
            "in 1 steps")
    _agrees(newton(lambda x: 1e-12 * f(x), 1.0, 2), 17 / 12, "(x² - 2) / 10¹², which is small "
            "everywhere, from 1 in 2 steps")
    _agrees(newton(f, -1.0, 1), -1.5, "x² - 2 from -1 in 1 steps")
    _agrees(newton(lambda x: x**3 - 2.0 * x + 2.0, 0.0, 3), 1.0, "x³ - 2 x + 2, where Newton's "
            "steps go to and fro, from 0 in 3 steps")
    for a, x in np.random.default_rng(2).uniform(1, 3, (5, 2)).round(2).tolist():
        expected = x
        for steps in range(1, 4):
            expected -= (expected**3 - a) / (3 * expected**2)
            _agrees(newton(lambda x, a=a: x**3 - a, x, steps), expected,
                    f"x³ - {a} from {x} in {steps} steps")
    expect(near(newton(FIVES, 2.0, 1), 2.0 - np.sin(2.0) / 5.0), "right, as far as differences of "
           "values are: of a function for which somebody has declared a slope of 5, yours takes "
           "another one. `jvp` gives the slope without differences")


exercise(
    "newton", chapter="03_forward_derivatives", grade=grade_newton,
    solution="""
def newton(f, x, steps):
    for _ in range(steps):
        value, slope = jax.jvp(f, (x,), (1.0,))
        x = x - value / slope
    return x
""",
    wrong=[
        ("def newton(f, x, steps):\n    before = None\n    for _ in range(steps):\n"
         "        y, slope = jax.jvp(f, (x,), (1.0,))\n"
         "        if before is not None and abs(y) > before:\n            break\n"
         "        before, x = abs(y), x - y / slope\n    return x", "go to and fro"),
        ("def newton(f, x, steps):\n    for _ in range(steps):\n"
         "        v, s = jax.jvp(f, (x,), (1.0,))\n        x = x + v / s\n    return x",
         "its sign"),
        ("def newton(f, x, steps):\n    for _ in range(steps):\n"
         "        v, s = jax.jvp(f, (x,), (1.0,))\n        x = x - s / v\n    return x",
         "divide the value by the slope"),
        ("def newton(f, x, steps):\n    v, s = jax.jvp(f, (x,), (1.0,))\n    return x - v / s",
         "same place"),
        ("def newton(f, x, steps):\n    for _ in range(steps):\n"
         "        v, s = jax.jvp(f, (x,), (1.0,))\n        x = abs(x - v / s)\n    return x",
         "from -1 in 1 steps"),
        ("def newton(f, x, steps):\n    for _ in range(steps):\n"
         "        v, s = jax.jvp(f, (x,), (1.0,))\n        x = x - v / abs(s)\n    return x",
         "whose slope is negative"),
        ("def newton(f, x, steps):\n    for _ in range(steps):\n"
         "        v, s = jax.jvp(f, (x,), (1.0,))\n        x = x if abs(v) < 1e-3 else x - v / s\n"
         "    return x", "small everywhere"),
        ("def newton(f, x, steps):\n    for _ in range(steps):\n"
         "        v, s = jax.jvp(f, (x,), (1.0,))\n        x = x - v / s\n    return x, v",
         "return one number"),
        ("def newton(f, x, steps):\n    for _ in range(steps):\n"
         "        v, s = jax.jvp(f, (x,), (x,))\n        x = x - v / s\n    return x",
         "the tangent should be 1"),
        ("def newton(f, x, steps):\n    for _ in range(steps):\n"
         "        x = x - f(x) / ((f(x + 1e-3) - f(x - 1e-3)) / 2e-3)\n    return x",
         "without differences"),
    ],
    right=["def newton(f, x, steps):\n    return x if steps == 0 else newton(f, x - f(x) / "
           "jax.grad(f)(float(x)), steps - 1)"],
    afterthought="from 1, four steps give the square root of 2 to all digits of a float32",
    hints=["at speed 1, one run of `jvp` gives the value and the slope together"])


def grade_length_jvp(length_jvp: Callable) -> None:
    x, y = core.as_value(3.0), core.as_value(4.0)
    one, two = core.as_value(1.0), core.as_value(2.0)
    zero = core.Zero(x.aval)
    results = length_jvp([x, y], [one, two])
    expect(isinstance(results, tuple | list) and len(results) == 2
           and all(isinstance(part, list | tuple) and len(part) == 1 for part in results),
           "return two lists of one: ([result], [tangent])")
    [out], [tangent] = results
    expect(near(out, 5.0), "the first list holds the length itself")
    expect(not near(tangent, 11.0), "twice as long a vector does not grow twice as fast: "
           "something is missing below the line")
    expect(near(tangent, 2.2), "of (3, 4), moving at (1, 2), the length grows at (3 + 8) / 5")
    try:
        [along_x], [along_y] = (length_jvp([x, y], [one, zero])[1],
                                length_jvp([x, y], [zero, one])[1])
    except (TypeError, AttributeError, ValueError):
        expect(False, "a tangent may be a core.Zero, which cannot be computed with: find out "
               "which of the two move, with isinstance")
    expect(near(along_x, 0.6) and near(along_y, 0.8), "right if both move, wrong if one does")
    for a, b, da, db in np.random.default_rng(3).uniform(-3, 3, (6, 4)).round(2).tolist():
        [[out], [tangent]] = length_jvp(*([core.as_value(v) for v in pair]
                                          for pair in ((a, b), (da, db))))
        _agrees([out, tangent], [np.hypot(a, b), (a * da + b * db) / np.hypot(a, b)],
                f"({a}, {b}), moving at ({da}, {db}),")
    xs, ys = np.array([3.0, 5.0], np.float32), np.array([4.0, 12.0], np.float32)
    [[out], [tangent]] = length_jvp([jnp.array(xs), jnp.array(ys)], [jnp.ones(2), zero])
    _agrees(out, [5.0, 13.0], "x = [3, 5] and y = [4, 12], as under vmap, the lengths of (3, 4) "
            "and (5, 12),")
    _agrees(tangent, xs / np.hypot(xs, ys), "x = [3, 5], moving at [1, 1], and y = [4, 12],")
    try:
        make_jaxpr(lambda x, y: length_jvp([x, y], [x, y])[1][0])(x, y)
    except TypeError:
        expect(False, "right for numbers, but there may be tracers in their place: NumPy cannot "
               "compute with those, `length_p.bind` and jnp can")


exercise(
    "length_jvp", chapter="03_forward_derivatives", grade=grade_length_jvp,
    given="""
from minijax import core
length_p = core.Primitive(
    "length",
    impl=lambda x, y: [np.hypot(x, y)],
    abstract_eval=lambda x, y: [x])
""",
    solution="""
def length_jvp(primals, tangents):
    r = length_p.bind(*primals)
    terms = [p * t for p, t in zip(primals, tangents) if not isinstance(t, core.Zero)]
    return [r], [sum(terms) / r]
""",
    wrong=[
        ("def length_jvp(primals, tangents):\n    x, y = primals\n    dx, dy = tangents\n"
         "    r = length_p.bind(x, y)\n    return [r], [(x * dx + y * dy) / r]",
         "may be a core.Zero"),
        ("def length_jvp(primals, tangents):\n    r = length_p.bind(*primals)\n"
         "    terms = [p * t for p, t in zip(primals, tangents) if not isinstance(t, core.Zero)]\n"
         "    return [r], [sum(terms)]", "below the line"),
        ("def length_jvp(primals, tangents):\n    r = jnp.linalg.norm(jnp.stack(primals))\n"
         "    terms = [p * t for p, t in zip(primals, tangents) if not isinstance(t, core.Zero)]\n"
         "    return [r], [sum(terms) / r]", "as under vmap"),
        ("def length_jvp(primals, tangents):\n    r = length_p.bind(*primals)\n"
         "    terms = [p * t for p, t in zip(primals, tangents) if not isinstance(t, core.Zero)]\n"
         "    return r, sum(terms) / r", "two lists of one"),
        ("def length_jvp(primals, tangents):\n    r = np.hypot(*primals)\n"
         "    terms = [p * t for p, t in zip(primals, tangents) if not isinstance(t, core.Zero)]\n"
         "    return [r], [sum(terms) / r]", "there may be tracers"),
    ],
    afterthought="set `length_p.jvp = length_jvp`, and take its second derivative",
    hints=["make a list of the products x * dx of those that move, and add it up"])


def grade_bending(bending: Callable) -> None:
    def f(p: Any) -> Any:
        return p[0] ** 2 * p[1]

    at, way = jnp.array([1.0, 2.0]), jnp.array([2.0, 1.0])
    out = bending(f, at, way)
    expect(isinstance(out, tuple) or jnp.shape(out) != jnp.shape(at), "return one number: your "
           "vector is the change of the whole gradient; how much of it is along v?")
    expect(not isinstance(out, tuple) and jnp.shape(out) == (),
           "return one number: of each `jvp`, only the second result is expected")
    expect(not near(out, 9.0), "that is the slope; how fast does the slope change?")
    expect(not near(out, 14.0), "the slope should be taken along v both times")
    expect(near(out, 24.0), "try f(x, y) = x²y at (1, 2) along (2, 1): on that line it is "
           "(1 + 2s)² (2 + s), and its second derivative at s = 0 is 24")
    expect(near(bending(lambda x: x * x * x, 2.0, 1.0), 12.0),
           "right for a vector, but it should take a number too")
    _agrees(bending(lambda x: x * x * x, 2.0, -3.0), 108.0, "x³ at 2.0 along -3.0")
    for x, v in np.random.default_rng(4).uniform(-2, 2, (6, 2, 2)).round(2):
        _agrees(bending(lambda p: jnp.sin(p[0]) * p[1], jnp.array(x), jnp.array(v)),
                -np.sin(x[0]) * x[1] * v[0]**2 + 2 * np.cos(x[0]) * v[0] * v[1],
                f"sin(x)·y at {x.tolist()} along {v.tolist()}")
    twice = declared(jnp.cos, FIVES)  # of which the slope is FIVES, whose slope is 5
    expect(near(bending(twice, 0.5, 2.0), 20.0), "right, as far as differences are: of a slope for "
           "which somebody has declared a slope of 5, yours takes another one. `jvp` gives the "
           "slope of a slope without differences")


exercise(
    "bending", chapter="03_forward_derivatives", grade=grade_bending,
    solution="""
def bending(f, x, v):
    def slope(x):
        return jax.jvp(f, (x,), (v,))[1]
    return jax.jvp(slope, (x,), (v,))[1]
""",
    wrong=[
        ("def bending(f, x, v):\n    return jax.jvp(f, (x,), (v,))[1]", "that is the slope"),
        ("def bending(f, x, v):\n    s = lambda x: jax.jvp(f, (x,), (v,))[1]\n    return jax.jvp("
         "s, (x,), (v if jnp.ndim(x) else 1.0,))[1]", "x³ at 2.0 along -3.0"),
        ("def bending(f, x, v):\n    s = lambda x: jax.jvp(f, (x,), (v,))[1]\n    h = 5e-3\n"
         "    return (s(x + h * v) - s(x - h * v)) / (2 * h)", "without differences"),
        ("def bending(f, x, v):\n    s = lambda x: jax.jvp(f, (x,), (jnp.ones_like(x),))[1]\n"
         "    return jax.jvp(s, (x,), (v,))[1]", "both times"),
        ("def bending(f, x, v):\n    return jax.jvp(jax.grad(f), (x,), (v,))[1]",
         "of the whole gradient"),
        ("def bending(f, x, v):\n    s = lambda x: jax.jvp(f, (x,), (v,))\n"
         "    return jax.jvp(s, (x,), (v,))[1]", "return one number"),
    ],
    hints=["write the slope along v as a function of x, and take the slope of that"])


# ---------------------------------------------------------------- the reader's library


def grade_power(power: Any) -> None:
    from minijax.notebook.library import library
    mini = library.module
    expect(callable(getattr(power, "impl", None)),
           "`mini.power` is a Primitive; `elementwise` makes one")

    def slope(f: Callable) -> Callable:
        return lambda x: mini.jvp(f, (x,), (1.0,))[1]

    points = np.random.default_rng(5).uniform(0.5, 3, (5, 2)).round(2).tolist()
    with np.errstate(all="ignore"):
        for x, y in [(2.0, 3.0), *points]:
            _agrees(power(x, y), x**y, f"power({x}, {y})")
            _agrees(slope(lambda x, y=y: power(x, y))(x), y * x**(y - 1),
                    f"power({x}, {y}), the slope with respect to x,")
            _agrees(slope(lambda y, x=x: power(x, y))(y), x**y * np.log(x),
                    f"power({x}, {y}), the slope with respect to y,")
            tangent = mini.jvp(power, (x, y), (3.0, 2.0))[1]
            _agrees(tangent, 3 * y * x**(y - 1) + 2 * x**y * np.log(x),
                    f"power({x}, {y}), moving at (3.0, 2.0),")
            try:
                twice = (slope(slope(lambda x, y=y: power(x, y)))(x),
                         slope(slope(lambda y, x=x: power(x, y)))(y),
                         slope(lambda x, y=y: slope(lambda y: power(x, y))(y))(x))
            except (TypeError, AttributeError) as error:
                raise Hint(f"{trouble(error)}\nThe first derivative is right. In the second the "
                           "arguments of your formulas are tracers: write them with what `mini` has"
                           ) from error
            _agrees(twice, (y * (y - 1) * x**(y - 2), x**y * np.log(x)**2,
                            x**(y - 1) * (y * np.log(x) + 1)),
                    f"power({x}, {y}), the second derivatives with respect to x, y, and both,")
        _agrees(power(-2.0, 3.0), -8.0, "power(-2.0, 3.0)")
        _agrees(slope(lambda x: power(x, 3.0))(-2.0), 12.0,
                "power(-2.0, 3.0), the slope with respect to x,")
        expect(near(slope(lambda x: power(x, 2.0))(0.0), 0.0),
               "for power(0.0, 2.0), the slope with respect to x, the answer is 0, and yours is "
               f"{_shown(slope(lambda x: power(x, 2.0))(0.0))}: does a formula divide by x?")


_POWER = """
power = elementwise("power", np.power,
                    lambda t, z, x, y: {by_x},
                    lambda t, z, x, y: {by_y})
"""


def _power(by_x: str = "t * y * power(x, y - 1.0)", by_y: str = "t * z * log(x)") -> str:
    return _POWER.format(by_x=by_x, by_y=by_y)


exercise(
    "power", chapter="03_forward_derivatives", grade=grade_power, given="%mini begin 03",
    solution=_power(),
    wrong=[
        ('power = elementwise("power", np.power, lambda t, z, x, y: t * y * power(x, y - 1.0))',
         "the slope with respect to y, the answer is 5.545, and yours 0"),
        (_power("t * z * log(x)", "t * y * power(x, y - 1.0)"), "the slope with respect to x, "
                                                                "the answer is 12"),
        (_power("y * power(x, y - 1.0)", "z * log(x)"), "moving at (3.0, 2.0)"),
        (_power(by_x="y * power(x, y - 1.0)"), "moving at (3.0, 2.0)"),
        (_power(by_y="t * z * np.log(x)"), "are tracers"),
        (_power(by_x="t * y * x ** (y - 1.0)"), "are tracers"),
        (_power("t * y * z / x"), "does a formula divide by x"),
        (_power().replace("np.power", "lambda x, y: np.exp(y * np.log(x))"), "the answer is -8"),
        ('power = Primitive("power", impl=lambda x, y: [np.power(x, y)])', "your answer raised"),
        ("power = np.power", "`elementwise` makes one"),
    ],
    hints=["in a formula t is the tangent of its argument, and z the result, x to the power of y"])


# ---------------------------------------------------------------- paths, levels, programs


def grade_sinc(sinc: Callable) -> None:
    def slope(f: Callable) -> Callable:
        return lambda x: jvp(f, (x,), (1.0,))[1]

    drawn = np.random.default_rng(6).uniform(1, 4, 4).round(2).tolist()
    points = [1.0, -2.0, 0.8, 0.45, 0.3, *drawn, 0.0]
    derivatives: list[Callable] = [
        lambda x: np.sin(x) / x if x else 1.0,
        lambda x: np.cos(x) / x - np.sin(x) / x**2 if x else 0.0,
        lambda x: -np.sin(x) / x - 2 * np.cos(x) / x**2 + 2 * np.sin(x) / x**3 if x else -1 / 3]
    mine = sinc
    for name, expected in zip(("value", "slope", "second derivative"), derivatives, strict=True):
        for x in points:
            result = mine(x)
            expect(near(result, expected(x), 1e-5 if mine is sinc else 1e-3), f"for x = {x} the "
                   f"{name} is {_shown(expected(x))}, and yours {_shown(result)}")
        mine = slope(mine)
    expect(near(grad(sinc)(0.0), 0.0), "right by `jvp`; but by `jax.grad` the slope at 0 is nan, "
           "since `jnp.where` also computes the side that it does not choose: use an `if`")


_SINC = """
def sinc(x):
    if x == 0:
        return {}
    return jnp.sin(x) / x
"""

exercise(
    "sinc", chapter="03_forward_derivatives", grade=grade_sinc,
    solution=_SINC.format("1.0 - x * x / 6"),
    wrong=[
        (_SINC.format("1.0"), "the second derivative is -0.3333, and yours 0"),
        (_SINC.format("1.0 + 0.0 * x"), "the second derivative is -0.3333, and yours 0"),
        (_SINC.format("1.0 - x / 6"), "the slope is 0, and yours -0.1667"),
        ("def sinc(x):\n    return jnp.sin(x) / x", "the value is 1, and yours nan"),
        ("def sinc(x):\n    x = x + 1e-4\n    return jnp.sin(x) / x", "the value is"),
        ("def sinc(x):\n    return jnp.where(x == 0, 1 - x * x / 6, jnp.sin(x) / x)",
         "use an `if`"),
        ("def sinc(x):\n    if abs(x) < 0.5:\n        return 1.0 - x * x / 6\n"
         "    return jnp.sin(x) / x", "for x = 0.45 the"),
        ("def sinc(x):\n    if abs(x) < 1:\n        return 1.0 - x * x / 6\n"
         "    return jnp.sin(x) / x", "for x = 0.8 the value"),
    ],
    afterthought="0 is one point; for many, `jnp.where` chooses point by point",
    hints=["what is returned at 0 should move as its neighbours do"])


def grade_confused(answer: Any) -> None:
    expect(isinstance(answer, tuple | list) and len(answer) == 2, "a pair is expected: the right "
           "slope, and what `Dual` says")
    expect(not near(answer, (7, 12)), "the other way round: the right slope first")
    expect(near(answer[0], 12), "the derivative of x * y * y with respect to y is 2 * x where y is "
           "1. What does that make of g?")
    expect(not near(answer[1], 12), "`Dual` mixes two speeds up: in the inner product, x and y are "
           "both Duals with the tangent 1")
    expect(not near(answer[1], 6), "6 is what the inner derivative should be; `Dual` adds a term")
    expect(near(answer[1], 7), "the inner product is Dual(3, 1) * Dual(1, 1) * Dual(1, 1); its "
           "tangent is a plain number, by which x is multiplied")


exercise(
    "confused", chapter="03_forward_derivatives", grade=grade_confused, solution="(12, 7)",
    wrong=[("(7, 12)", "the other way round"), ("(12, 12)", "mixes two speeds up"),
           ("(6, 7)", "What does that make of g"), ("(12, 6)", "adds a term"),
           ("(12, 21)", "is a plain number"), ("12", "a pair")],
    afterthought="run it: `slope_by_hand(lambda x: x * slope_by_hand(lambda y: x * y * y, 1.0), "
                 "3.0)`",
    hints=["go through the inner product by hand, with its rule"])


def grade_places(answer: Any) -> None:
    expect(isinstance(answer, tuple | list) and len(answer) == 2,
           "a pair is expected: how many inputs, and how many outputs")
    inputs, outputs = answer
    expect(inputs != 6, "only an input that moves has a tangent beside it, and only one moves")
    expect(inputs == 4, "the three inputs are still there; what comes in besides?")
    expect(outputs != 6, "a result that depends on nothing that moves has no tangent")
    expect(outputs != 3, "tangents come out, too")
    expect(outputs == 4, "which of the three results depend on x?")


exercise(
    "places", chapter="03_forward_derivatives", grade=grade_places, solution="(4, 4)",
    wrong=[("(6, 6)", "only one moves"), ("(4, 6)", "has no tangent"), ("(3, 3)", "still there"),
           ("(4, 3)", "come out, too"), ("(4, 5)", "depend on x"), ("8", "a pair")],
    afterthought="`forward.jvp_jaxpr` of that program, `jax.make_jaxpr(…)(1.0, 2.0, 3)`, shows it",
    hints=["the numbers of `jvp_jaxpr(closed, [True, False])` above are 3 and 3"])
