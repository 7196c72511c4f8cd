"""The exercises of chapter 03, *Forward derivatives*."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import minijax.numpy as jnp
from minijax import core
from minijax.api import make_jaxpr
from minijax.notebook.checks import exercise, expect, near

DUAL = """
class Dual:
    def __init__(self, primal, tangent):
        self.primal, self.tangent = primal, tangent
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
           "only one of them is asked for")
    expect(not near(out, [2.0, 6.0, 1.0]), "that is the value; its change is the second result")
    expect(jnp.shape(out) == (3,), "a column has one number for each result, here 3")
    expect(not near(out, [3.0, 5.0, 1.0]), "that is the sum of all columns: let one input move, "
           "and the others stand still")
    expect(not near(out, matrix[1]), "that is a row: the slopes of one result along all inputs")
    for j in range(3):
        expect(near(column(_turn, at, j), [row[j] for row in matrix]),
               f"wrong for j = {j} of the function (xy, yz, x) at (1, 2, 3)")


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
    expect(near(newton(f, 1.0, 2), 17 / 12), "one step is right, two are not: does the second "
           "start where the first has ended, with the value and the slope there?")
    expect(near(newton(f, 1.0, 0), 1.0), "no steps should not move at all")


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
        ("def newton(f, x, steps):\n    for _ in range(steps):\n"
         "        v, s = jax.jvp(f, (x,), (1.0,))\n        x = x + v / s\n    return x",
         "its sign"),
        ("def newton(f, x, steps):\n    for _ in range(steps):\n"
         "        v, s = jax.jvp(f, (x,), (1.0,))\n        x = x - s / v\n    return x",
         "divide the value by the slope"),
        ("def newton(f, x, steps):\n    v, s = jax.jvp(f, (x,), (1.0,))\n    return x - v / s",
         "same place"),
        ("def newton(f, x, steps):\n    for _ in range(steps):\n"
         "        v, s = jax.jvp(f, (x,), (1.0,))\n        x = x - v / s\n    return x, v",
         "return one number"),
    ],
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
    expect(not isinstance(out, tuple) and jnp.shape(out) == (),
           "return one number: of each `jvp`, only the second result is wanted")
    expect(not near(out, 9.0), "that is the slope; how fast does the slope change?")
    expect(not near(out, 14.0), "the slope is to be taken along v both times")
    expect(near(out, 24.0), "try f(x, y) = x²y at (1, 2) along (2, 1): on that line it is "
           "(1 + 2s)² (2 + s), and its second derivative at s = 0 is 24")
    expect(near(bending(lambda x: x * x * x, 2.0, 1.0), 12.0),
           "right for a vector, but it should take a number too")


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
        ("def bending(f, x, v):\n    s = lambda x: jax.jvp(f, (x,), (jnp.ones_like(x),))[1]\n"
         "    return jax.jvp(s, (x,), (v,))[1]", "both times"),
        ("def bending(f, x, v):\n    s = lambda x: jax.jvp(f, (x,), (v,))\n"
         "    return jax.jvp(s, (x,), (v,))[1]", "return one number"),
    ],
    hints=["write the slope along v as a function of x, and take the slope of that"])
