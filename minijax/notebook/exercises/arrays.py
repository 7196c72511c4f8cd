"""The exercises of chapter 01, *Arrays, dtypes and weak types*."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax.notebook.checks import exercise, expect, near

CHAPTER = "01_arrays_dtypes_and_weak_types"
EXPRESSIONS = ("x + 1", "x + jnp.arange(2)", "x + np.float64(1)", "jnp.int8(1) + jnp.uint8(1)",
               "jnp.arange(2) / 2")


def grade_outcomes(outcomes: Any) -> None:
    expect(isinstance(outcomes, list | tuple) and len(outcomes) == 5,
           "a list of five names is wanted, one for each line")
    names = [str(np.dtype(name)) for name in outcomes]
    expect(names[0] == "bfloat16", "x + 1: does a written number change an array's dtype?")
    expect(names[1] != "float32", "x + jnp.arange(2): follow the arrows from int32 and from "
           "bfloat16; the road goes through float*")
    expect("64" not in "".join(names), "nothing has 64 bits here, unless the flag is on")
    expect(names[2] != "bfloat16", "x + np.float64(1): is that a written number, or a made one?")
    expect(names[4] not in ("int32", "bfloat16"), "jnp.arange(2) / 2: what does NumPy make of a "
           "quotient of integers? And what is cut to size?")
    right = ["bfloat16", "bfloat16", "float32", "int16", "float32"]
    for expression, name, wanted in zip(EXPRESSIONS, names, right, strict=True):
        expect(name == wanted, f"{expression}: find both in the picture, and the first place "
                               "where they can meet")


exercise(
    "outcomes", chapter=CHAPTER, grade=grade_outcomes,
    solution='["bfloat16", "bfloat16", "float32", "int16", "float32"]',
    wrong=[
        ('["float32", "bfloat16", "float32", "int16", "float32"]', "written number"),
        ('["bfloat16", "float32", "float32", "int16", "float32"]', "through float*"),
        ('["bfloat16", "bfloat16", "float64", "int16", "float32"]', "64 bits"),
        ('["bfloat16", "bfloat16", "float32", "int8", "float32"]', "jnp.int8(1)"),
        ('["bfloat16", "bfloat16", "bfloat16", "int16", "float32"]', "a made one"),
        ('["bfloat16", "bfloat16", "float32", "int16", "int32"]', "quotient of integers"),
        ('["bfloat16"]', "five names"),
    ],
    hints=["a NumPy number is a made number, not a written one"])

SHIRTS = {"S": ["M"], "M": ["L", "M-long"], "L": ["L-long"], "M-long": ["L-long"], "L-long": []}
# From b, going up step by step passes w before z, which is where b and c meet.
DETOUR = {"a": ["b", "c"], "b": ["w", "z"], "c": ["z"], "w": ["y"], "z": ["y"], "y": []}
# From a there are fewer steps to t than to m, which is where a and b meet.
SHORT_CUT = {"a": ["s", "p"], "s": ["t"], "p": ["q"], "q": ["m"], "m": ["t"], "t": [], "b": ["m"]}


def _above(name: str, steps: dict) -> set[str]:
    return {name}.union(*(_above(high, steps) for high in steps[name]))


def _lowest(a: str, b: str, steps: dict) -> str | None:
    """Where two meet; None where they share no place that is below all others."""
    common = _above(a, steps) & _above(b, steps)
    return next((name for name in common if common <= _above(name, steps)), None)


def _generated(count: int = 30) -> list[dict[str, list[str]]]:
    """Orders of a few names, the small ones first: each name with those just above it."""
    random, orders = np.random.default_rng(0), []
    for k in range(count):
        names = "abcdefgh"[:3 + k // 6]
        steps: dict[str, list[str]] = {}
        for place in reversed(range(len(names))):
            higher = random.permutation(list(names[place + 1:]))[:random.integers(1, 4)].tolist()
            steps[names[place]] = [one for one in higher if not any(
                one in _above(other, steps) for other in higher if other != one)]
        orders.append({name: steps[name] for name in random.permutation(list(names)).tolist()})
    return orders


def grade_meet(meet: Callable) -> None:
    found = meet("M", "M", SHIRTS)
    expect(not isinstance(found, set | frozenset | list | tuple),
           "one place is wanted, not several")
    expect(found == "M", "two of the same meet where they are: begin with "
           "the place itself, not with those above it")
    expect(meet("S", "L", SHIRTS) == "L" and meet("L", "S", SHIRTS) == "L",
           "L is above S, so S and L meet in L, whichever comes first")
    expect(meet("L", "M-long", SHIRTS) == "L-long", "L and M-long: neither is above the other, "
           "both are below L-long")
    expect(meet("S", "M", SHIRTS) == "M", "S and M can meet in three places above M, too; the "
           "lowest is wanted")
    for steps in (DETOUR, SHORT_CUT, *_generated()):
        for a in steps:
            for b in steps:
                wanted = _lowest(a, b, steps)
                if wanted is not None:
                    found = meet(a, b, steps)
                    expect(found == wanted, f"right for shirts; but in {steps} {a} and {b} meet in "
                           f"{wanted}, and yours gives {found}")


exercise(
    "meet", chapter=CHAPTER, grade=grade_meet, given=f"shirts = {SHIRTS!r}",
    solution="""
def meet(a, b, steps):
    def above(name):
        return {name}.union(*(above(high) for high in steps[name]))
    common = above(a) & above(b)
    return next(name for name in common if common <= above(name))
""",
    wrong=[
        ("def meet(a, b, steps):\n    while a != b:\n        b = steps[b][0]\n    return a",
         "raised IndexError"),
        ("def meet(a, b, steps):\n    def above(n):\n"
         "        return set(steps[n]).union(*(above(h) for h in steps[n]))\n"
         "    common = above(a) & above(b)\n"
         "    return next((n for n in common if common <= above(n) | {n}), None)",
         "meet where they are"),
        ("def meet(a, b, steps):\n    def above(n):\n"
         "        return {n}.union(*(above(h) for h in steps[n]))\n"
         "    common = above(a) & above(b)\n"
         "    return next(n for n in common if not steps[n])", "meet where they are"),
        ("def meet(a, b, steps):\n    def above(n):\n"
         "        return {n}.union(*(above(h) for h in steps[n]))\n"
         "    return above(a) & above(b)", "not several"),
        ("def meet(a, b, steps):\n    def above(n):\n"
         "        return {n}.union(*(above(h) for h in steps[n]))\n"
         "    level = [a]\n    while not any(n in above(b) for n in level):\n"
         "        level = [h for n in level for h in steps[n]]\n"
         "    return next(n for n in level if n in above(b))", "and yours gives t"),
        ("def meet(a, b, steps):\n    if a == b or a in steps[b]:\n        return a\n"
         "    return b", "L is above S"),
    ],
    hints=["write a function that gives the set of all at or above one",
           "of those above both, the lowest has all others above it"])


def grade_gelu(gelu: Callable) -> None:
    import minijax as jax
    at = np.array([-1.0, 0.0, 0.5, 2.0], np.float32)
    exact = 0.5 * at * (1 + np.tanh(np.sqrt(2 / np.pi) * (at + 0.044715 * at**3)))
    out = gelu(jnp.array(at))
    expect(near(out, exact), "the values of a float32 have changed; only constants should be "
           "written differently")
    small = gelu(jnp.array(at, dtype=jnp.bfloat16))
    expect(small.dtype == jnp.bfloat16, f"a bfloat16 comes out as {small.dtype}: which constants "
           "are arrays or NumPy numbers?")
    expect(gelu(jnp.array(at, dtype=jnp.float16)).dtype == jnp.float16,
           "right for bfloat16, but a float16 should stay one, too")
    program = str(jax.make_jaxpr(gelu)(jnp.array(at, dtype=jnp.bfloat16)))
    expect("f32[4]" not in program, "the result is small, but on the way there are float32 arrays: "
           "do not cast, change the constants")


exercise(
    "gelu", chapter=CHAPTER, grade=grade_gelu,
    solution="""
def gelu(x):
    c = float(np.sqrt(2 / np.pi))
    cubic = x + 0.044715 * x * x * x
    return 0.5 * x * (1.0 + jnp.tanh(c * cubic))
""",
    wrong=[
        ("def gelu(x):\n    c = np.sqrt(2 / np.pi)\n    cubic = x + 0.044715 * x * x * x\n"
         "    return 0.5 * x * (1.0 + jnp.tanh(c * cubic))", "which constants"),
        ("def gelu(x):\n    c = float(np.sqrt(2 / np.pi))\n"
         "    cubic = x + jnp.array([0.044715]) * x * x * x\n"
         "    return 0.5 * x * (1.0 + jnp.tanh(c * cubic))", "which constants"),
        ("def gelu(x):\n    c = np.sqrt(2 / np.pi)\n    cubic = x + 0.044715 * x * x * x\n"
         "    return (0.5 * x * (1.0 + jnp.tanh(c * cubic))).astype(x.dtype)", "do not cast"),
        ("def gelu(x):\n    c = jnp.bfloat16(np.sqrt(2 / np.pi))\n"
         "    cubic = x + 0.044715 * x * x * x\n"
         "    return 0.5 * x * (1.0 + jnp.tanh(c * cubic))", "values of a float32"),
        ("def gelu(x):\n    c = float(np.sqrt(2 / np.pi))\n    cubic = x + 0.044715 * x * x\n"
         "    return 0.5 * x * (1.0 + jnp.tanh(c * cubic))", "values of a float32"),
    ],
    afterthought="ask `jax.make_jaxpr(gelu)(x)`: no array of f32 in it")


def grade_total(total: Callable) -> None:
    out = total(jnp.ones(1000, dtype=jnp.bfloat16))
    expect(not near(out, 256.0), "it got stuck at 256: in which dtype is the running sum?")
    expect(getattr(out, "dtype", None) == jnp.bfloat16,
           f"the result should be a bfloat16, not {getattr(out, 'dtype', type(out).__name__)}")
    expect(near(out, 1000.0), "a thousand ones should give a thousand")
    many = total(jnp.array([0.5, 0.25, 8.0], dtype=jnp.bfloat16))
    expect(near(many, 8.75), "right for ones, but not for [0.5, 0.25, 8]")


exercise(
    "total", chapter=CHAPTER, grade=grade_total,
    solution="""
def total(xs):
    so_far = jnp.float32(0)
    for x in xs:
        so_far = so_far + x
    return so_far.astype(jnp.bfloat16)
""",
    wrong=[
        ("def total(xs):\n    s = jnp.bfloat16(0)\n    for x in xs:\n        s = s + x\n"
         "    return s", "stuck at 256"),
        ("def total(xs):\n    s = 0.0\n    for x in xs:\n        s = s + x\n    return s",
         "stuck at 256"),
        ("def total(xs):\n    s = jnp.float32(0)\n    for x in xs:\n        s = s + x\n"
         "    return s", "should be a bfloat16"),
        ("def total(xs):\n    return jnp.bfloat16(len(xs))", "not for [0.5"),
    ],
    hints=["a made number wins against a smaller one"])
