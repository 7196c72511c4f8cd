"""The exercises of chapter 08, *jit*."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax.notebook.checks import exercise, expect, instead_of, near

CHAPTER = "08_jit"


def _agrees(found: Any, wanted: Any, given: str) -> None:
    expect(near(found, wanted), f"for {given} the answer is {np.round(wanted, 4).tolist()}, "
           f"and yours {np.round(np.asarray(found, float), 4).tolist()}")


def grade_lines(answer: Any) -> None:
    expect(isinstance(answer, int), "a whole number")
    expect(answer != 5, "the second call finds the program that the first has left")
    expect(answer != 2, "the last call is with an integer: is that the type of 1.0?")
    expect(answer == 3, "count the different types among the arguments")


exercise("lines", chapter=CHAPTER, grade=grade_lines, solution="3",
         wrong=[("5", "the first has left"), ("2", "with an integer"), ("4", "different types"),
                ('"3"', "a whole number")])


def grade_writings(writings: Callable) -> None:
    calls = [(1.0,), (2.0,), (jnp.zeros(3),), (3,), (jnp.ones(3),), (jnp.ones(4),)]

    def f(x: Any) -> Any:
        return x + x

    found = writings(f, *calls)
    expect(isinstance(found, int), "a whole number is asked for")
    expect(found != len(calls), "that is the number of calls; how often does the body run?")
    expect(found == 4, "for 1.0, 2.0, zeros(3), 3, ones(3), ones(4) there are 4 programs, "
           f"and you count {found}")
    expect(writings(lambda x, y: x * y, (1.0, 2.0), (2.0, 1.0)) == 1,
           "for two calls with two numbers each there is 1 program")


_WRITINGS = """
def writings(f, *calls):
    seen = []
    def told(*args):
        seen.append({what})
        return f(*args)
    fast = {fast}
    for args in calls:
        fast(*args)
    return {result}
"""


def _writings_text(what: str = "1", fast: str = "jax.jit(told)", result: str = "len(seen)") -> str:
    return _WRITINGS.format(what=what, fast=fast, result=result)


exercise(
    "writings", chapter=CHAPTER, grade=grade_writings, solution=_writings_text(),
    wrong=[(_writings_text(fast="told"), "the number of calls"),
           (_writings_text(result="seen"), "a whole number"),
           (_writings_text("jnp.shape(args[0])", result="len(set(seen))"), "4 programs")])


def grade_source(source: Callable) -> None:
    x = np.arange(12).reshape(4, 3)
    y = x.T[::-1]
    for i, j in np.ndindex(y.shape):
        found = source(i, j)
        expect(isinstance(found, tuple) and len(found) == 2, "a pair of indices is asked for")
        expect(0 <= found[0] < 4 and 0 <= found[1] < 3,
               f"for y[{i}, {j}] you give x[{found[0]}, {found[1]}], and x has 4 rows of 3")
        expect(x[found] == y[i, j], f"y[{i}, {j}] is {y[i, j]}, and x[{found[0]}, {found[1]}] is "
               f"{x[found]}")


exercise(
    "source", chapter=CHAPTER, grade=grade_source,
    solution="def source(i, j):\n    return j, 2 - i",
    wrong=[("def source(i, j):\n    return j, i", "y[0, 0] is"),
           ("def source(i, j):\n    return i, j", "y[0, 0] is"),
           ("def source(i, j):\n    return j, 3 - i", "rows of 3"),
           ("def source(i, j):\n    return 4 * i + j", "a pair")],
    hints=["first undo the reversal, then the transposition"])


def grade_arrays_made(answer: Any) -> None:
    expect(isinstance(answer, int), "a whole number")
    expect(answer != 1, "`a` is read twice; would you compute a sine twice?")
    expect(answer != 4, "who reads `b`, and how often?")
    expect(answer == 2, "what is read twice is stored, and so is what is returned")


exercise("arrays_made", chapter=CHAPTER, grade=grade_arrays_made, solution="2",
         wrong=[("1", "read twice"), ("4", "how often"), ("3", "so is what is returned"),
                ('"2"', "a whole number")])


def grade_sqrt(sqrt: Any) -> None:
    from minijax.notebook.library import library
    mini = library.module
    x = np.array([1.0, 4.0, 9.0])
    expect(callable(sqrt), "`mini.sqrt` is a function")
    _agrees(sqrt(x), np.sqrt(x), "[1, 4, 9]")
    _agrees(mini.grad(lambda x: mini.sum(sqrt(x)))(x), 0.5 / np.sqrt(x),
            "the gradient at [1, 4, 9]")
    expect("sqrt" in mini.TEXT, 'now the text: `TEXT["sqrt"] = "…"`')
    with instead_of(Exception, "nopython", "Numba cannot compile the text; it knows `math` and "
                    "`np`, so look how the others in `TEXT` name their functions"):
        found = mini.jit(sqrt)(x)
    _agrees(found, np.sqrt(x), "the compiled root of [1, 4, 9]")


_MINI = """
from minijax.notebook.library import library
library.begin("08")
from mini import TEXT, elementwise
"""
_SQRT = 'sqrt = elementwise("sqrt", {impl}, lambda t, y, x: {slope})\n{text}'


def _sqrt_text(impl: str = "np.sqrt", slope: str = "t / (2.0 * y)",
               text: str = 'TEXT["sqrt"] = "math.sqrt({0})"') -> str:
    return _SQRT.format(impl=impl, slope=slope, text=text)


exercise(
    "sqrt", chapter=CHAPTER, grade=grade_sqrt, given=_MINI, solution=_sqrt_text(),
    wrong=[(_sqrt_text(slope="t / (2.0 * x)"), "the gradient"),
           (_sqrt_text("np.square"), "[1, 4, 9]"),
           (_sqrt_text(text='TEXT["sqrt"] = "sqrt({0})"'), "Numba cannot compile"),
           (_sqrt_text(text='TEXT.pop("sqrt", None)'), "now the text"),
           (_sqrt_text(text='TEXT["sqrt"] = "math.exp({0})"'), "the compiled root")])


def grade_fused(fused: Callable) -> None:
    x, y = np.array([1.0, -2.0, 0.0, 3.0]), np.array([2.0, 5.0, 7.0, -1.0])
    before, wanted = (x.copy(), y.copy()), np.maximum(x, 0) * y - x
    found = fused(x, y)
    expect(found is not None, "return the new array")
    _agrees(found, wanted, "x = [1, -2, 0, 3], y = [2, 5, 7, -1]")
    expect(near(x, before[0]) and near(y, before[1]) and found is not x and found is not y,
           "the arguments must stay as they are: write into a new array")
    text = inspect.getsource(fused) if _has_source(fused) else "for"
    expect("for" in text, "write a loop over the elements")


def _has_source(f: Callable) -> bool:
    try:
        inspect.getsource(f)
    except (OSError, TypeError):
        return False
    return True


_FUSED = """
def fused(x, y):
    out = {out}
    for i in range(len(x)):
        out[i] = {element}
    return {result}
"""


def _fused_text(out: str = "np.empty_like(x)", element: str = "max(x[i], 0.0) * y[i] - x[i]",
                result: str = "out") -> str:
    return _FUSED.format(out=out, element=element, result=result)


exercise(
    "fused", chapter=CHAPTER, grade=grade_fused, solution=_fused_text(),
    wrong=[(_fused_text(out="x"), "the arguments must stay"),
           (_fused_text(element="max(x[i], 0.0) * y[i]"), "the answer is"),
           (_fused_text(result="None"), "return the new array")])


def grade_static(answer: Any) -> None:
    answer = answer[0] if isinstance(answer, tuple) and len(answer) == 1 else answer
    expect(isinstance(answer, int) and not isinstance(answer, bool),
           "the number of an argument, counted from 0")
    expect(answer != 1, "x is an array, and changes from call to call; what must Python know?")
    expect(answer == 0, "arguments are counted from 0")


exercise("static", chapter=CHAPTER, grade=grade_static, solution="0",
         wrong=[("1", "what must Python know"), ('"n"', "the number of an argument"),
                ("2", "counted from 0")])


def grade_faster(answer: Any) -> None:
    expect(answer in ("outside", "inside"), 'the answer is `"outside"` or `"inside"`')
    expect(answer == "outside", "how many compiled programs are called for one gradient, and what "
           "runs in Python in between?")


exercise("faster", chapter=CHAPTER, grade=grade_faster, solution='"outside"',
         wrong=[('"inside"', "in between"), ('"both"', "the answer is"), ("1", "the answer is")])
