"""The exercises of chapter 15, *Non-array inputs*."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax.notebook.checks import agree, exercise, expect, near, shown

CHAPTER = "15_non_array_inputs"


def grade_taken(answer: Any) -> None:
    expect(isinstance(answer, str), 'a string of letters is wanted, such as "abc"')
    letters = set(answer) - set(" ,")
    expect(letters <= set("abcdefgh"), "the letters are a to h")
    lists = sorted(letters & set("bd"))
    expect(not lists, f"{' and '.join(lists)} stand for arrays in NumPy only: what kind of "
           "container is it?")
    expect("g" not in letters, "g is full of arrays, and yet it is no array itself")
    expect("f" not in letters, "f is a sequence, too, like a list")
    expect({"a", "c"} <= letters, "a number is taken, Python's or NumPy's")
    expect("h" in letters, "is h a number? Try `False + 1` in Python")
    expect("e" in letters, "NumPy's arrays are taken")


exercise(
    "taken", chapter=CHAPTER, grade=grade_taken, solution='"aceh"',
    wrong=[
        ('"abcdefgh"', "what kind of container"),
        ('"acegh"', "no array itself"),
        ('"ace"', "is h a number"),
        ('"eh"', "a number is taken"),
        ("['a', 'c', 'e', 'h']", "a string of letters"),
    ],
    hints=["try those that you are not sure of"])


def grade_traces(answer: Any) -> None:
    expect(isinstance(answer, int), "a whole number is wanted")
    expect(answer != 8, "a compiled program is used again for other values of the same types")
    expect(answer != 6, "NumPy's array is float64; which dtype does it have when it arrives?")
    expect(answer != 4, "close: look at the numbers again, or at list and tuple; both pairs differ")
    expect(answer != 3, "a list is no array, a tuple is no list, and a NumPy scalar is not weak")
    expect(answer == 5, "go through the calls one by one: is there an earlier one with the same "
           "tree, shapes, dtypes and weakness?")


exercise(
    "traces", chapter=CHAPTER, grade=grade_traces, solution="5",
    wrong=[
        ("8", "other values of the same types"),
        ("6", "which dtype does it have"),
        ("4", "both pairs differ"),
        ("3", "is not weak"),
        ("5.0", "whole number"),
    ],
    hints=["three of the eight find the program of an earlier call"])


def grade_window(window: Any) -> None:
    expect(isinstance(window, type), "a class is wanted, and this is not one")
    one, same, other = window(3, "flat"), window(3, "flat"), window(5, "flat")
    expect(one.width == 3 and one.kind == "flat", "the fields are `width` and `kind`")
    traced: list[int] = []

    def smooth(x: Any, how: Any) -> Any:
        traced.append(how.width)
        return x * how.width

    jitted = jax.jit(smooth, static_argnums=1)
    try:
        jitted(1.0, one)
    except ValueError:
        expect(False, "it cannot be hashed: what compares by its fields, and can change, has no "
               "hash")
    agree("1.0 and Window(5, 'flat'), where the function multiplies by the width,",
          jitted(1.0, other), 5.0, "two different windows share a program")
    jitted(1.0, same)
    expect(traced == [3, 5], "for Window(3, 'flat'), Window(5, 'flat') and Window(3, 'flat') the "
           f"function should be traced with the widths [3, 5], and was with {traced}\n"
           "two windows with equal fields were traced twice: by default, an object is equal to "
           "itself only")
    try:
        one.width = 100
    except (AttributeError, TypeError):
        return
    expect(False, "a window can still be changed, and the compiled program would not notice")


HASHED = """
class Window:
    def __init__(self, width, kind):
        self.width, self.kind = width, kind

    def __eq__(self, other):
        return (self.width, self.kind) == (other.width, other.kind)

    def __hash__(self):
        return hash((self.width, self.kind))
"""

exercise(
    "Window", chapter=CHAPTER, grade=grade_window, given="import dataclasses",
    solution="""
@dataclasses.dataclass(frozen=True)
class Window:
    width: int
    kind: str
""",
    wrong=[
        ("class Window:\n    def __init__(self, width, kind):\n"
         "        self.width, self.kind = width, kind", "equal to itself only"),
        ("@dataclasses.dataclass\nclass Window:\n    width: int\n    kind: str",
         "cannot be hashed"),
        (HASHED, "can still be changed"),
        ("{'width': 3, 'kind': 'flat'}", "a class is wanted"),
    ],
    hints=["dataclasses can be frozen"])


def grade_dense(dense: Callable) -> None:
    def wanted(weight: Any, bias: Any, mask: Any, x: Any) -> Any:
        y = weight @ x if bias is None else weight @ x + bias
        return y if mask is None else y * mask

    weight, x = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32), np.ones(2, np.float32)
    some: list[Any] = [None, jnp.array([10.0, 20.0]), jnp.zeros(2), 0.0, 5.0]
    for f in (dense, jax.jit(dense)):
        for bias in some:
            for mask in (None, jnp.array([0.0, 1.0]), *some[2:4]):
                out = f(weight, bias, mask, x)
                answer = wanted(weight, bias, mask, x)
                agree(f"weight @ x = [3, 7], bias = {_name(bias)} and mask = {_name(mask)}", out,
                      answer,
                      (mask is not None and near(out, weight @ x * mask + (
                          0 if bias is None else bias)), "the bias comes first"),
                      (mask is not None and near(mask, 0.0) and near(out, wanted(
                          weight, bias, None, x)), "a mask that is the number 0 is no missing "
                       "mask: ask whether it is there, not what it is worth"),
                      "add the bias if it is there, then multiply by the mask if it is there")
    slopes = jax.grad(lambda w: jnp.sum(dense(w, None, np.array([0.0, 1.0]), x)))(weight)
    agree("the mask (0, 1)", slopes, [[0.0, 0.0], [1.0, 1.0]], "right, but not under grad",
          what="the gradient of the sum")


def _name(x: Any) -> str:
    return "None" if x is None else shown(x)


exercise(
    "dense", chapter=CHAPTER, grade=grade_dense,
    solution="""
def dense(weight, bias, mask, x):
    y = weight @ x
    if bias is not None:
        y = y + bias
    return y if mask is None else y * mask
""",
    wrong=[
        ("def dense(weight, bias, mask, x):\n    y = weight @ x\n    if bias:\n"
         "        y = y + bias\n    return y * mask if mask else y", "truth value"),
        ("def dense(weight, bias, mask, x):\n    return (weight @ x + bias) * mask",
         "unsupported operand"),
        ("def dense(weight, bias, mask, x):\n    y = weight @ x\n"
         "    y = y + (0.0 if bias is None else bias)\n"
         "    return y * mask if isinstance(mask, jnp.ndarray) else y", "no missing mask"),
        ("def dense(weight, bias, mask, x):\n    y = weight @ x\n"
         "    y = y if mask is None else y * mask\n"
         "    return y if bias is None else y + bias", "the bias comes first"),
    ],
    hints=["`x is None` is known while tracing, `bool(x)` is not"])


def grade_spread(spread: Callable) -> None:
    asked: list[Any] = []
    real = spread.__globals__.get("deviation")

    def listening(x: Any) -> Any:
        asked.append(x)
        return real(x)  # type: ignore[misc]

    random = np.random.default_rng(0)
    spread.__globals__["deviation"] = listening
    try:
        for readings in ([1.0, 2.0, 6.0], *random.integers(0, 9, (3, 3)).astype(float).tolist()):
            asked.clear()
            out = spread(readings)
            agree(f"readings = {readings}", out, np.std(readings), "it is the deviation of all of "
                  "them, as `deviation` computes it")
            expect(asked, "let `deviation` do the work")
            expect(len(asked) == 1, f"`deviation` should be called once, and was {len(asked)} "
                   "times")
            expect(not isinstance(asked[0], list | tuple), "`deviation` was given a list, and "
                   "compiled for as many inputs: make an array of it first")
            expect(isinstance(out, float), f"a Python float is wanted, and for {readings} yours is "
                   f"{type(out).__name__}")
    finally:
        spread.__globals__["deviation"] = real


exercise(
    "spread", chapter=CHAPTER, grade=grade_spread,
    given="""
@jax.jit
def deviation(x):
    x = jnp.array(x)
    return jnp.sqrt(jnp.mean((x - jnp.mean(x)) ** 2))
""",
    solution="""
def spread(readings):
    return float(deviation(jnp.array(readings)))
""",
    wrong=[
        ("def spread(readings):\n    return float(deviation(readings))", "was given a list"),
        ("def spread(readings):\n    return deviation(jnp.array(readings))", "Python float"),
        ("def spread(readings):\n    return float(np.std(readings))", "do the work"),
        ("def spread(readings):\n    return float(sum(deviation(r) for r in readings))",
         "of all of them"),
        ("def spread(readings):\n    deviation(readings[0])\n"
         "    return float(deviation(jnp.array(readings)))", "called once"),
    ],
    hints=["convert outside of the compiled function"])
