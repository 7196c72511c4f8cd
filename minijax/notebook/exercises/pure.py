"""The exercises of chapter 12, *Pure functions*."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from typing import Any

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax import config
from minijax.notebook.checks import agree, exercise, expect, near, numbers, shown

CHAPTER = "12_pure_functions"


def grade_said(answer: Any) -> None:
    expect(isinstance(answer, list | tuple) and len(answer) == 4, "a list of four numbers")
    answer = [float(x) for x in answer]
    expect(answer != [10.0, 20.0, 20.0, 20.0], "that is what Python does; and the compiled "
           "function?")
    expect(answer[0] == 10.0, "the first call traces, and `factor` is 10 then")
    expect(answer[1] == 10.0, "the second call has an argument of the same type: it runs the "
           "program of the first")
    expect(answer[2] == 20.0, "the third argument has another shape, so there is no program for "
           "it yet: the function is traced again, and reads `factor` as it is now")
    expect(answer[3] == 10.0, "the last argument has the type of the first: there are two programs "
           "now, each with its own constant")


exercise(
    "said", chapter=CHAPTER, grade=grade_said,
    solution="[10.0, 10.0, 20.0, 10.0]",
    wrong=[
        ("[10.0, 20.0, 20.0, 20.0]", "what Python does"),
        ("[10.0, 10.0, 10.0, 10.0]", "another shape"),
        ("[10.0, 10.0, 20.0, 20.0]", "two programs"),
        ("[20.0, 20.0, 20.0, 20.0]", "the first call traces"),
        ("10.0", "a list of four numbers"),
    ],
    hints=["which of the four calls run the Python of `multiplied`?"])


def grade_tick(tick: Callable) -> None:
    step, calls = jax.jit(tick), [(0, 3.0), (5, -2.0), (41, 0.5), (1000, 7.0)]
    pair = tick(*calls[0])
    expect(isinstance(pair, tuple | list) and len(pair) == 2,
           f"for count = 0 and x = 3.0 the answer is (1, 9.0), and yours is {shown(pair)}\n"
           "return two things: the new count and the square")
    results = [step(*call) for call in calls]
    counts = [int(count) for count, _ in results]
    expect(len(set(counts)) > 1, "for the counts 0, 5, 41 and 1000 the new ones are 1, 6, 42 and "
           f"1001, and yours is {counts[0]} each time\nwhere does each call find the count of the "
           "one before?")
    for (count, x), found in zip(calls, results, strict=True):
        agree(f"count = {count} and x = {x}", found, (count + 1, x * x),
              (not near(found[1], x * x), "the second result is the square of x"),
              (near(found[0], count), "the count that comes back is the one that went in: return "
               "the new one"), "the new count is one more than the old one")
    with config.debug_purity(True):
        jax.jit(tick)(0, 1.0)


exercise(
    "tick", chapter=CHAPTER, grade=grade_tick,
    given="total = 0\n",
    solution="""
def tick(count, x):
    return count + 1, x * x
""",
    wrong=[
        ("def tick(count, x):\n    count += 1\n    return x * x", "return two things"),
        ("def tick(count, x):\n    return count, x * x", "the one that went in"),
        ("def tick(count, x):\n    global total\n    total += 1\n    return total, x * x",
         "where does each call find"),
        ("def tick(count, x):\n    return count + 1, x", "the square of x"),
        ("def tick(count, x, seen=[]):\n    seen.append(1)\n    return count + 1, x * x",
         "ImpureFunctionError"),
    ],
    hints=["what it changes is a result, and the caller hands it in again"])


def grade_alternating(alternating: Callable) -> None:
    random = np.random.default_rng(0)
    generated = random.integers(-9, 10, (4, 3)).tolist()
    for values in ([1, 2, 3, 4], [0, 1, 2, 3, 4], [5, 3], *generated):
        v = np.array(values, np.float32)
        signs = np.where(np.arange(len(v)) % 2 == 0, 1.0, -1.0)
        found = numbers(jax.jit(lambda v: alternating(v))(v))
        agree(f"v = {values}", found, np.sum(signs * v),
              (np.shape(found) != (), "one number is wanted"),
              (near(found, np.sum(v)), "this is the plain sum: the sign that the body took first "
               "is used in every step"),
              (near(found, -np.sum(v)), "every term was taken away: a sign that is taken in the "
               "body is taken once"),
              (near(found, -np.sum(signs * v)), "the first term is added, the second taken away"),
              "add the elements at even places, and take away those at odd ones")
    with config.debug_purity(True):
        jax.jit(lambda v: alternating(v))(jnp.arange(5.0))


exercise(
    "alternating", chapter=CHAPTER, grade=grade_alternating,
    given="import itertools\nfrom minijax import lax\n",
    solution="""
def alternating(v):
    signs = 1.0 - 2.0 * (jnp.arange(len(v)) % 2)
    return lax.fori_loop(0, len(v), lambda i, total: total + signs[i] * v[i], 0.0)
""",
    wrong=[
        ("def alternating(v):\n    signs = itertools.cycle([1.0, -1.0])\n"
         "    return lax.fori_loop(0, len(v), lambda i, t: t + next(signs) * v[i], 0.0)",
         "in every step"),
        ("def alternating(v):\n    signs = itertools.cycle([-1.0, 1.0])\n"
         "    return lax.fori_loop(0, len(v), lambda i, t: t + next(signs) * v[i], 0.0)",
         "taken once"),
        ("def alternating(v):\n    signs = jnp.arange(len(v)) % 2 * 2.0 - 1.0\n"
         "    return jnp.sum(signs * v)", "the first term is added"),
        ("def alternating(v):\n    return v * (1.0 - 2.0 * (jnp.arange(len(v)) % 2))",
         "one number"),
        ("def alternating(v):\n    return jnp.sum(v[::2]) - v[1] - v[3]", "those at odd ones"),
    ],
    afterthought="jnp.sum(signs * v) needs no loop at all",
    hints=["an array of signs, made before the loop, has no state",
           "the remainder of a division by 2 tells even places from odd ones"])


def grade_talking(talking: Callable) -> None:
    f, numbers, said = jax.jit(talking), (1.0, 2.0, -0.5), []
    for x in numbers:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            y = f(x)
        said.append(out.getvalue().strip())
        agree(f"x = {x}", y, 2 * x, "the result is twice the argument")
    wanted = [f"x is {x}" for x in numbers]
    shown_lines = f"three calls, with 1.0, 2.0 and -0.5, should print {wanted}, and yours {said}\n"
    expect(any(said), shown_lines + "nothing was printed")
    expect(not any("Traced" in text for text in said), shown_lines + "this prints the tracer, "
           "once: the numbers are not there yet when Python prints")
    expect(all(said), shown_lines + "the first call printed, and the others did not")
    expect(said == wanted, shown_lines + "mind the words")


exercise(
    "talking", chapter=CHAPTER, grade=grade_talking,
    solution="""
def talking(x):
    jax.debug.print("x is {}", x)
    return 2 * x
""",
    wrong=[
        ('def talking(x):\n    print("x is", x)\n    return 2 * x', "prints the tracer"),
        ('def talking(x):\n    print("x is 1.0")\n    return 2 * x', "the others did not"),
        ("def talking(x):\n    return 2 * x", "nothing was printed"),
        ('def talking(x):\n    jax.debug.print("{}", x)\n    return 2 * x', "mind the words"),
        ('def talking(x):\n    jax.debug.print("x is {}", x)', "twice the argument"),
    ],
    hints=["look for a print among the functions of `jax.debug`"])


def grade_impure(answer: Any) -> None:
    expect(isinstance(answer, list | tuple | set), "a list of names")
    answer = set(answer)
    right = {"f_total", "f_log", "f_next"}
    missed = {"f_total": "`f_total` adds to a global: a second trace would add again",
              "f_log": "`f_log` makes its list longer at each trace",
              "f_next": "`f_next` takes the next item, and another one at a second trace"}
    for name, why in missed.items():
        expect(name in answer, why)
    expect("f_table" not in answer, "`f_table` writes, too; but a second trace finds the table "
           "there, and writes nothing")
    expect("f_local" not in answer, "the list of `f_local` is its own, made and lost in each trace")
    expect(answer == right, "there are five functions, f_total, f_log, f_next, f_table, f_local")


exercise(
    "impure", chapter=CHAPTER, grade=grade_impure,
    solution='["f_total", "f_log", "f_next"]',
    wrong=[
        ('["f_total", "f_log", "f_next", "f_table"]', "finds the table"),
        ('["f_total", "f_log"]', "takes the next item"),
        ('["f_total", "f_log", "f_next", "f_local"]', "is its own"),
        ('["f_log", "f_next"]', "adds to a global"),
        ('"f_log"', "a list of names"),
    ],
    hints=["ask of each: would a second trace change something again?"])

