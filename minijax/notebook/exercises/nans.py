"""The exercises of chapter 19, *NaNs*."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.notebook.checks import agree, exercise, expect, near, numbers, shown

CHAPTER = "19_nans"


def grade_undefined(answer: Any) -> None:
    expect(isinstance(answer, str), 'a string of letters is wanted, such as "abc"')
    letters = set(answer.lower()) - set(" ,")
    expect(letters <= set("abcdefgh"), "the letters are a to h")
    expect("b" not in letters, "b is infinite, which is a number one can compare")
    expect("e" not in letters, "e goes down without end as its operand goes to zero: which way?")
    expect(not letters & set("fg"), "f and g have an answer, whichever large numbers you take")
    expect("h" not in letters, "h hands on only what it chooses")
    expect("a" in letters, "a: what would you multiply by zero to get zero?")
    expect("c" in letters, "c: one infinity may be larger than the other; by how much?")
    expect("d" in letters, "d: is it nearer to zero, or to infinity?")


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


def grade_length(length: Callable) -> None:
    random = np.random.default_rng(0)
    for values in ([3, 4, 0], *random.integers(-9, 10, (4, 3)).tolist(), [3e-5, 4e-5, 0]):
        v = np.array(values, np.float32)
        wanted = np.sqrt(np.sum(v * v))
        out = np.asarray(numbers(length(jnp.asarray(v))))
        scale = 1e5 if wanted < 1 else 1
        agree(f"v = {values}" + ", times 100000," * (scale > 1), out * scale, wanted * scale,
              (scale > 1, "nothing may be added to a small length, and it is not zero"),
              "it is the root of the sum of the squares")
        agree(f"v = {values}", jax.grad(length)(jnp.asarray(v)), v / wanted, "it is v / length",
              what="the gradient")
    zero = jnp.zeros(3)
    try:
        at_zero = jax.jit(length)(zero)
    except jax.errors.ConcretizationTypeError:
        expect(False, "under jit a Python `if` cannot look at the numbers: choose with jnp.where")
    agree("v = [0, 0, 0]", at_zero, 0.0)
    slope = jax.grad(length)(zero)
    agree("v = [0, 0, 0]", slope, np.zeros(3),
          (np.isnan(slope).any(), "what is the operand of the root there, also where its result is "
           "not chosen?"), "it should be zeros there", what="the gradient")
    with jax.checking_sharp_bits(collect=True) as findings:
        jax.jit(jax.grad(length))(jnp.zeros(3))
    expect(not findings, "right, but a nan or an infinity is made on the way")


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
        ("def length(v):\n    square = jnp.sum(v * v)\n    if square == 0:\n        return square\n"
         "    return jnp.sqrt(square)", "cannot look at the numbers"),
        ("def length(v):\n    square = jnp.sum(v * v)\n    is_zero = square < 1e-6\n"
         "    root = jnp.sqrt(jnp.where(is_zero, 1.0, square))\n"
         "    return jnp.where(is_zero, 0.0, root)", "it is not zero"),
    ],
    hints=["choose twice: before the root and after it"])


def grade_logmeanexp(logmeanexp: Callable) -> None:
    random = np.random.default_rng(0)
    given = [[0, 1, 2], [1000, 1000, 1000], [-1000, -1000, -1000], [-500, 0, 600],
             *random.integers(-800, 800, (4, 3)).tolist()]
    for values in given:
        x = np.array(values, np.float32)
        wanted = np.max(x) + np.log(np.mean(np.exp(x.astype(float) - np.max(x))))
        with jax.checking_sharp_bits(collect=True) as findings:
            found = numbers(logmeanexp(jnp.asarray(x)))
        finite = np.isfinite(found).all()
        agree(f"x = {values}", found, wanted,
              (not finite and min(values) == max(values), "take something out of the exponentials "
               "before they are computed"),
              (not finite, "which of the numbers is to be taken out?"),
              (near(found, wanted + np.log(3)), "it is a mean, and not a sum"),
              "the result lies between the least and the largest number", tolerance=1e-6)
        expect(not findings, f"for x = {values} the result is right, but on the way there is a nan "
               "or an infinity")


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
    ],
    hints=["exp(a + b) is exp(a) times exp(b)"])

TANKS = """
levels = jnp.array([9.0, 4.0, 7.0, 8.0, 5.0, 6.0])
holes = jnp.array([0.15, 0.1, 0.125, 0.3, 0.11, 0.12])
"""


def grade_dry(answer: Any) -> None:
    expect(isinstance(answer, tuple | list) and len(answer) == 3,
           "a tuple of three numbers is wanted: tank, second, level")
    tank, second, level = answer
    expect((tank, second) != (17, 3), "the tank comes first, then the second")
    expect(tank == 3, "the last level of which tank is nan? The first tank is number 0")
    expect(second != 16, "in second 16 too much flowed out, and nothing was nan yet")
    expect(second != 18, "seconds are counted from 0, as in the message")
    expect(second == 17, "run it with jax.debug_nans(True): the message names the iteration")
    expect(not np.isnan(level), "the level is nan after that second; what was it before?")
    expect(near(level, -0.0130463, 1e-2), "the message has the operand of the root")


exercise(
    "dry", chapter=CHAPTER, grade=grade_dry, solution="(3, 17, -0.0130463)",
    wrong=[
        ("(17, 3, -0.013)", "tank comes first"),
        ("(3, 18, -0.013)", "counted from 0"),
        ("(3, 16, 0.3)", "nothing was nan yet"),
        ("(3, 17, float('nan'))", "what was it before"),
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


def _largest_log(x: Any) -> Any:
    return lax.top_k(jnp.log(x), 1)[0]


# Functions in words, arguments, the name of the first primitive that makes a nan, and a hint
PROGRAMS: list[tuple[str, Callable, Any, str | None, str]] = [
    ("sin(2 x) / (x - x) + 1", _scaled, 0.0, "div", "the first one is wanted, not the last"),
    ("sin(2 x) / (x - x) + 1", _scaled, np.nan, None, "if the argument is nan, nobody makes one: "
     "look at the operands as well"),
    ("cos(sqrt(x))", _rooted, -1.0, "sqrt", "the root makes it, and the cosine hands it on"),
    ("cos(sqrt(x))", _rooted, 1.0, None, "where all is well the answer is None"),
    ("log(x * numbers)", _times_numbers, [1.0, 1.0], "log", "a program has constants as well: its "
     "`jaxpr.constvars` are variables, and their values are in `consts`"),
    ("top_k(log(x), 1)[0]", _largest_log, [1.0, 1.0], None, "an equation may have several outputs: "
     "every one of its outvars gets its value"),
    ("top_k(log(x), 1)[0]", _largest_log, [1.0, -1.0], "log", "look at all elements of an array")]


def grade_first_nan(first_nan: Callable) -> None:
    for text, f, argument, wanted, hint in PROGRAMS:
        x = np.array(argument, np.float32)
        found = first_nan(jax.make_jaxpr(f)(x), x)
        expect(found == wanted, f"for the program of {text} and x = {shown(x)} the answer is "
               f"{wanted!r}, and yours is {found!r}\n{hint}")


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
         "        values.update(zip(eqn.outvars, outs))", "raised KeyError"),
    ],
    hints=["a dict from variables to values, filled as the program runs",
           "jnp.isnan(x).any() of each output, and of each operand"])
