"""The exercises of chapter 21, *The errors, one by one*."""

from __future__ import annotations

from typing import Any

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax.notebook.checks import exercise, expect, near

CHAPTER = "21_errors"

KINDS = {"a": "TracerBoolConversionError", "b": "TracerIntegerConversionError",
         "c": "TracerArrayConversionError", "d": "NonConcreteBooleanIndexError",
         "e": "ConcretizationTypeError", "f": "none"}


SOLUTION = "{" + ",\n ".join(f'"{letter}": "{kind}"' for letter, kind in KINDS.items()) + "}"


def grade_kinds(kinds: Any) -> None:
    expect(isinstance(kinds, dict) and set(kinds) == set(KINDS),
           "a dict with the letters a to f as its keys")
    kinds = {letter: getattr(kind, "__name__", kind) for letter, kind in kinds.items()}
    for kind in kinds.values():
        expect(kind in KINDS.values(), f"no function here raises {kind}; where nothing is raised, "
               "write 'none'")
    expect(kinds["f"] == "none", "in f, what is a tracer? A shape is known while tracing")
    expect(kinds["a"] == KINDS["a"], "a: Python's max compares, and looks at the answer with bool")
    expect(kinds["b"] == KINDS["b"], "b: a list wants an integer to index it")
    expect(kinds["c"] == KINDS["c"], "c: whose function is asked here, NumPy's or ours?")
    expect(kinds["d"] == KINDS["d"], "d: what is the index, and what is its dtype?")
    expect(kinds["e"] == KINDS["e"], "e: jnp.nonzero has a size that depends on values, "
           "and no index is involved")


exercise(
    "kinds", chapter=CHAPTER, grade=grade_kinds, solution=SOLUTION,
    wrong=[
        (repr({**KINDS, "a": "ConcretizationTypeError"}), "with bool"),
        (repr({**KINDS, "c": "TracerIntegerConversionError"}), "NumPy's or ours"),
        (repr({**KINDS, "f": "TracerIntegerConversionError"}), "known while tracing"),
        (repr({**KINDS, "d": "TracerBoolConversionError"}), "its dtype"),
        (repr(list(KINDS.values())), "a dict"),
    ],
    afterthought="run them, and see their messages")


def grade_smoothed(smoothed: Any) -> None:
    expect(hasattr(smoothed, "lower"), "the answer is the function under jit")
    x = np.array([1.0, 2.0, 6.0, 3.0], np.float32)
    try:
        found = smoothed(x, 2)
    except TypeError as error:
        expect("concrete values of integer type" not in str(error),
               "the width still decides the shape of an array, and is still traced")
        raise
    expect(near(found, np.convolve(x, np.ones(2) / 2, "same")), "compute what the question does")
    traces = []
    smoothed(x + 1, 2)
    size = smoothed._cache_size()
    smoothed(x + 1, 3)
    traces.append(smoothed._cache_size() - size)
    smoothed(x * 2, 3)
    traces.append(smoothed._cache_size() - size)
    expect(traces == [1, 1], "one trace for each width, and none for new numbers in x")


MOVING = '''
def moving_average(x, width):
    weights = jnp.ones(width) / width
    return jnp.convolve(x, weights, mode="same")
'''

exercise(
    "smoothed", chapter=CHAPTER, grade=grade_smoothed, given=MOVING,
    solution="jax.jit(moving_average, static_argnums=1)",
    wrong=[
        ("jax.jit(moving_average)", "still traced"),
        ("moving_average", "under jit"),
        ("jax.jit(lambda x, width: jnp.convolve(x, jnp.ones(3) / 3, mode='same'))",
         "what the question does"),
    ],
    hints=["which of the two arguments decides a shape?"])


def grade_halvings(halvings: Any) -> None:
    found = jax.jit(halvings)(jnp.int32(8))
    expect(np.shape(found) == (), "give the number of steps, not the whole state")
    expect(near(found, 3), "8, 4, 2, 1 are three steps")
    expect(near(jax.jit(halvings)(jnp.int32(9)), 3), "9 // 2 is 4: with whole numbers, 9 takes "
           "three steps, too")
    program = str(jax.make_jaxpr(halvings)(jnp.int32(8)))
    expect("while" in program, "keep the loop a lax.while_loop")
    expect(near(jax.jit(halvings)(jnp.int32(7)), 2), "7, 3, 1 are two steps: rounding down, half "
           "of 7 is 3")
    expect(near(jax.jit(halvings)(jnp.int32(1)), 0), "1 takes no step at all")


BROKEN = '''
def broken(n):
    def is_larger(state):
        return state[0] > 1

    def halve(state):
        n, steps = state
        return n / 2, steps + 1

    return lax.while_loop(is_larger, halve, (n, 0))[1]
'''

exercise(
    "halvings", chapter=CHAPTER, grade=grade_halvings, given=BROKEN,
    solution="""
def halvings(n):
    def is_larger(state):
        return state[0] > 1

    def halve(state):
        n, steps = state
        return n // 2, steps + 1

    return lax.while_loop(is_larger, halve, (n, 0))[1]
""",
    wrong=[
        ("broken", "carry"),
        ("lambda n: lax.while_loop(lambda s: s[0] > 1, lambda s: (s[0] // 2, s[1] + 1), (n, 0))",
         "not the whole state"),
        ("lambda n: lax.while_loop(lambda s: s[0] > 1, lambda s: (s[0] / 2, s[1] + 1), "
         "(n * 1.0, 0))[1]", "whole numbers"),
        ("lambda n: lax.while_loop(lambda s: s[0] > 1, lambda s: (jnp.round(s[0] / 2), s[1] + 1), "
         "(n * 1.0, 0))[1]", "rounding down"),
        ("lambda n: jnp.asarray(3 if n.ndim == 0 else 0)", "while_loop"),
        ("lambda n: lax.while_loop(lambda s: s[0] > 0, lambda s: (s[0] // 2, s[1] + 1), "
         "(n, 0))[1]", "three steps"),
    ],
    hints=["the message names the two types; which operation made a float of an integer?"])


def grade_depends_on(depends_on: Any) -> None:
    def f(x: Any, y: Any, z: Any) -> tuple:
        a = x * 2
        b = jnp.sin(y) + a
        return a, b, z * 0 + 1, 7.0

    program = jax.make_jaxpr(f)(1.0, 2.0, 3.0)
    found = [depends_on(program, place) for place in range(3)]
    expect(all(isinstance(each, set) for each in found), "the answer is a set of places")
    expect(found[0] != {0, 1, 2}, "not every argument is needed for every result")
    expect(found[0] == {0}, "the first result is computed from the first argument alone")
    expect(found[1] == {0, 1}, "what does the second result need, by way of `a`, too?")
    expect(found[2] == {2}, "z * 0 depends on z, for all a program knows")

    def long(x: Any, y: Any) -> Any:
        for _ in range(20):
            x = x + 1
        return x

    expect(depends_on(jax.make_jaxpr(long)(1.0, 2.0), 0) == {0}, "go through all the equations")
    expect(depends_on(jax.make_jaxpr(lambda x, y: y)(1.0, 2.0), 0) == {1},
           "a result may be an argument itself, with no equation between")


exercise(
    "depends_on", chapter=CHAPTER, grade=grade_depends_on,
    solution="""
def depends_on(program, place):
    jaxpr = program.jaxpr
    reached = {id(jaxpr.outvars[place])}
    for eqn in reversed(jaxpr.eqns):
        if any(id(v) in reached for v in eqn.outvars):
            reached |= {id(v) for v in eqn.invars}
    return {i for i, v in enumerate(jaxpr.invars) if id(v) in reached}
""",
    wrong=[
        ("lambda program, place: set(range(len(program.jaxpr.invars)))", "not every argument"),
        ("def depends_on(program, place):\n"
         "    jaxpr = program.jaxpr\n"
         "    reached = {id(jaxpr.outvars[place])}\n"
         "    for eqn in jaxpr.eqns:\n"
         "        if any(id(v) in reached for v in eqn.outvars):\n"
         "            reached |= {id(v) for v in eqn.invars}\n"
         "    return {i for i, v in enumerate(jaxpr.invars) if id(v) in reached}",
         "by way of `a`"),
        ("def depends_on(program, place):\n"
         "    jaxpr = program.jaxpr\n"
         "    last = [e for e in jaxpr.eqns if jaxpr.outvars[place] in e.outvars]\n"
         "    return {i for i, v in enumerate(jaxpr.invars) for e in last if v in e.invars}",
         "by way of `a`"),
        ("lambda program, place: [0]", "a set"),
    ],
    hints=["go through the equations from the last to the first, and keep what is needed so far",
           "a literal cannot be put into a set; its `id` can"])
