"""The exercises of chapter 21, *The errors, one by one*."""

from __future__ import annotations

from typing import Any

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax.notebook.checks import agree, exercise, expect

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
        smoothed(x, 2)
    except TypeError as error:
        expect("concrete values of integer type" not in str(error),
               "the width still decides the shape of an array, and is still traced")
        raise
    random = np.random.default_rng(0)
    for width in (2, 3, 1):
        for values in (x, random.integers(0, 9, 4).astype(np.float32)):
            agree(f"x = {values.tolist()} and width = {width}", smoothed(values, width),
                  np.convolve(values, np.ones(width) / width, "same"),
                  "compute what `moving_average` does")
    traces = []
    smoothed(x + 1, 2)
    size = smoothed._cache_size()
    smoothed(x + 1, 4)
    traces.append(smoothed._cache_size() - size)
    smoothed(x * 2, 4)
    traces.append(smoothed._cache_size() - size)
    expect(traces == [1, 1], "a call with a new width, and one with new numbers in x, should make "
           f"1 trace, and made {traces[-1]}\none trace for each width, and none for new numbers")


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
         "what `moving_average` does"),
    ],
    hints=["which of the two arguments decides a shape?"])


def grade_halvings(halvings: Any) -> None:
    compiled = jax.jit(halvings)
    for n in (8, 9, 7, *range(1, 40), 1000, 2**31 - 1):
        found, wanted = compiled(np.int32(n)), n.bit_length() - 1
        agree(f"n = {n}", found, wanted,
              (isinstance(found, tuple), "give the number of steps, not the whole state"),
              (n == 1, "1 takes no step at all"),
              (n == 8, "8, 4, 2, 1 are three steps"),
              (n == 9, "9 // 2 is 4: with whole numbers, 9 takes three steps, too"),
              "rounding down, half of 7 is 3", tolerance=0)
        if n == 7:
            program = str(jax.make_jaxpr(halvings)(np.int32(8)))
            expect("while" in program, "keep the loop a lax.while_loop")


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
        ("lambda n: jnp.floor(jnp.log2(n)).astype(int)", "while_loop"),
        ("lambda n: lax.while_loop(lambda s: s[0] > 0, lambda s: (s[0] // 2, s[1] + 1), "
         "(n, 0))[1]", "three steps"),
    ],
    hints=["the message names the two types; which operation made a float of an integer?"])


def _several(x: Any, y: Any, z: Any) -> tuple:
    a = x * 2
    b = jnp.sin(y) + a
    return a, b, z * 0 + 1, 7.0, y


def _long(x: Any, y: Any) -> Any:
    for _ in range(20):
        x = x + 1
    return x


def _crossed(x: Any, y: Any, z: Any) -> tuple:
    a, b = x + y, y * z
    return a * b, b - z, jnp.cos(a)


def grade_depends_on(depends_on: Any) -> None:
    cases: list[tuple[str, Any, int, list[set[int]], list[str]]] = [
        ("a = x * 2; b = sin(y) + a; (a, b, z * 0 + 1, 7, y)", _several, 3,
         [{0}, {0, 1}, {2}, set(), {1}],
         ["it is computed from x alone: not every argument is needed for every result",
          "what does it need, by way of `a`, too?", "z * 0 depends on z, for all a program knows",
          "a number that is written needs no argument",
          "a result may be an argument itself, with no equation between"]),
        ("twenty times x = x + 1; x", _long, 2, [{0}], ["go through all the equations"]),
        ("a = x + y; b = y * z; (a * b, b - z, cos(a))", _crossed, 3,
         [{0, 1, 2}, {1, 2}, {0, 1}], ["by way of `a` and `b`"] * 3)]
    for text, f, count, answers, hints in cases:
        program = jax.make_jaxpr(f)(*map(float, range(count)))
        for place, (wanted, hint) in enumerate(zip(answers, hints, strict=True)):
            found = depends_on(program, place)
            told = f"for the program of {text!r} and result {place} the answer is "
            told += f"{sorted(wanted)}, and yours is {found}\n"
            expect(isinstance(found, set), told + "the answer is a set of numbers")
            expect(found == wanted, told + hint)


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
