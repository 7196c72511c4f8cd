"""The exercises of chapter 19, *NaNs*."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.notebook.checks import exercise, expect, near

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
    v = jnp.array([3.0, 4.0])
    expect(near(length(v), 5.0), "the length of [3, 4] is 5")
    expect(near(jax.grad(length)(v), [0.6, 0.8]), "the gradient at [3, 4] is [0.6, 0.8]")
    try:
        at_zero = jax.jit(length)(jnp.zeros(3))
    except jax.errors.ConcretizationTypeError:
        expect(False, "under jit a Python `if` cannot look at the numbers: choose with jnp.where")
    expect(near(at_zero, 0.0), f"the length of zeros is 0, not {at_zero}")
    slope = jax.grad(length)(jnp.zeros(3))
    expect(not np.isnan(slope).any(), "the gradient at zeros is nan still: what is the operand of "
           "the root there, also where its result is not chosen?")
    expect(near(slope, np.zeros(3)), f"the gradient at zeros should be zeros, not {slope}")
    small = jnp.array([3e-5, 4e-5])
    expect(near(length(small) * 1e5, 5.0), "right for zeros; now [0.00003, 0.00004] has length "
           "0.00005: nothing may be added to it")
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
        ("def length(v):\n    return jnp.sqrt(jnp.sum(v * v))", "nan still"),
        ("def length(v):\n    square = jnp.sum(v * v)\n"
         "    return jnp.where(square == 0, 0.0, jnp.sqrt(square))", "also where its result"),
        ("def length(v):\n    return jnp.sqrt(jnp.sum(v * v) + 1e-12)", "nothing may be added"),
        ("def length(v):\n    square = jnp.sum(v * v)\n    if square == 0:\n        return square\n"
         "    return jnp.sqrt(square)", "cannot look at the numbers"),
        ("def length(v):\n    square = jnp.sum(v * v)\n    is_zero = square < 1e-6\n"
         "    root = jnp.sqrt(jnp.where(is_zero, 1.0, square))\n"
         "    return jnp.where(is_zero, 0.0, root)", "right for zeros"),
    ],
    hints=["choose twice: before the root and after it"])


def grade_logmeanexp(logmeanexp: Callable) -> None:
    expect(near(logmeanexp(jnp.array([0.0, 1.0])), np.log((1 + np.e) / 2)),
           "of [0, 1] it is 0.6201")
    for same in (1000.0, -1000.0):
        found = logmeanexp(jnp.array([same, same]))
        expect(np.isfinite(found), f"of [{same}, {same}] it is {found}: take something out of the "
               "exponentials before they are computed")
        expect(near(found, same), f"of [{same}, {same}] it is {same}, not {found}")
    wide = jnp.array([-500.0, 0.0, 600.0])
    with jax.checking_sharp_bits(collect=True) as findings:
        found = logmeanexp(wide)
    expect(near(found, 600.0 - np.log(3)), "right for equal numbers; of [-500, 0, 600] it is "
           f"598.9014, not {found}: which of the numbers is to be taken out?")
    expect(not findings, "the results are right, but on the way there is a nan or an infinity")


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
         "not 80"),
        ("def logmeanexp(x):\n    m = jnp.mean(x)\n"
         "    return m + jnp.log(jnp.mean(jnp.exp(x - m)))", "which of the numbers"),
        ("def logmeanexp(x):\n    m = jnp.max(x)\n    return m + jnp.log(jnp.sum(jnp.exp(x - m)))",
         "0.6201"),
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


def grade_first_nan(first_nan: Callable) -> None:
    program = jax.make_jaxpr(_scaled)(0.0)
    expect(first_nan(program, jnp.float32(0.0)) == "div",
           "in sin(2 x) / (x - x) + 1 at 0 it is the division, 'div'")
    expect(first_nan(program, jnp.float32(np.nan)) is None,
           "if the argument is nan, nobody makes one: look at the operands as well")
    program = jax.make_jaxpr(_rooted)(0.0)
    expect(first_nan(program, jnp.float32(-1.0)) == "sqrt",
           "in cos(sqrt(x)) at -1 it is the root: the first one, not the last")
    expect(first_nan(program, jnp.float32(1.0)) is None, "where all is well the answer is None")
    numbers = jnp.array([1.0, -1.0])
    program = jax.make_jaxpr(lambda x: jnp.log(x * numbers))(numbers)
    expect(first_nan(program, jnp.ones(2)) == "log", "a program has constants as well: its "
           "`jaxpr.constvars` are variables, and their values are in `consts`")
    program = jax.make_jaxpr(lambda x: lax.top_k(jnp.log(x), 1)[0])(numbers)
    expect(first_nan(program, jnp.ones(2)) is None and first_nan(program, numbers) == "log",
           "an equation may have several outputs: every one of its outvars gets its value")


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
         "    return found", "it is the division"),
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
