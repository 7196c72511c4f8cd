"""The exercises of chapter 10, *Your own rules and checkpointing*."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax.notebook.checks import exercise, expect, instead_of, near

CHAPTER = "10_your_own_rules"


def _agrees(found: Any, wanted: Any, given: str, what: str = "value") -> None:
    expect(near(found, wanted), f"for {given} the {what} is {np.asarray(wanted).tolist()}, "
           f"and yours is {np.asarray(found).tolist()}")


def _numbers(count: int = 6) -> list[float]:
    return np.random.default_rng(0).uniform(-3, 3, count).round(2).tolist()


def _has_rule(f: Any, kind: type, needs: str) -> None:
    expect(isinstance(f, kind), f"the function is to stay a `jax.{kind.__name__}`")
    rule = "jvp" if kind is jax.custom_jvp else "fwd"
    expect(getattr(f, rule) is not None, f"it has no rule yet: `{needs}`")


# ── 1. straight_round ────────────────────────────────────────────────────────────────────────

def grade_straight_round(f: Any) -> None:
    _has_rule(f, jax.custom_jvp, "@straight_round.defjvp")
    for x in [0.2, 2.7, *_numbers()]:
        _agrees(f(x), np.round(x), f"x = {x}")
        with instead_of(TypeError, "tuple", "a rule is given two tuples, with one entry for each "
                        "argument: take x out of the first, and t out of the second"):
            value, slope = jax.jvp(f, (x,), (3.0,))
        _agrees(value, np.round(x), f"x = {x}", "value that the rule gives")
        _agrees(slope, 3.0, f"x = {x}, and a tangent of 3", "tangent")
    _agrees(jax.vmap(jax.grad(f))(jnp.array([0.2, 2.7])), [1.0, 1.0], "x = [0.2, 2.7]", "gradient")


_STRAIGHT = """
@jax.custom_jvp
def straight_round(x):
    return {value}

@straight_round.defjvp
def straight_round_jvp(primals, tangents):
    [x], [t] = primals, tangents
    return {out}, {tangent}
"""


def _straight_text(value: str = "jnp.round(x)", out: str = "straight_round(x)",
                   tangent: str = "t") -> str:
    return _STRAIGHT.format(value=value, out=out, tangent=tangent)


exercise(
    "straight_round", chapter=CHAPTER, grade=grade_straight_round, solution=_straight_text(),
    wrong=[(_straight_text(tangent="1.0"), "a tangent of 3"),
           (_straight_text(value="x"), "the value is"),
           (_straight_text(out="x"), "value that the rule gives"),
           (_straight_text(out="straight_round(primals)"), "take x out"),
           ("straight_round = jax.custom_jvp(lambda x: jnp.round(x))", "no rule yet"),
           ("def straight_round(x):\n    return jnp.round(x)", "is to stay")])


_FWD = "`fwd` gives a pair: the result, and what is saved for `bwd` (None, if nothing is)"
_BWD = "`bwd` gives a tuple, with one cotangent for each argument of the function"


# ── 2. turned_back ───────────────────────────────────────────────────────────────────────────

def grade_turned_back(f: Any) -> None:
    _has_rule(f, jax.custom_vjp, "turned_back.defvjp(fwd, bwd)")
    for x in _numbers():
        _agrees(f(x), x, f"x = {x}")
        with instead_of(TypeError, "pair", _FWD):
            value, back = jax.vjp(f, x)
        _agrees(value, x, f"x = {x}", "value that fwd gives")
        with instead_of(TypeError, "tuple", _BWD):
            [found] = back(2.0)
        _agrees(found, -2.0, f"x = {x}, and a cotangent of 2", "cotangent")


_TURNED = """
@jax.custom_vjp
def turned_back(x):
    return x

turned_back.defvjp(lambda x: {fwd}, lambda _, ct: {bwd})
"""


def _turned_text(fwd: str = "(x, None)", bwd: str = "(-ct,)") -> str:
    return _TURNED.format(fwd=fwd, bwd=bwd)


exercise(
    "turned_back", chapter=CHAPTER, grade=grade_turned_back, solution=_turned_text(),
    wrong=[(_turned_text(bwd="-ct"), "gives a tuple"),
           (_turned_text(bwd="(ct,)"), "a cotangent of 2"),
           (_turned_text(bwd="(-1.0,)"), "a cotangent of 2"),
           (_turned_text(fwd="x"), "gives a pair"),
           (_turned_text(fwd="(-x, None)"), "value that fwd gives"),
           ("turned_back = jax.custom_vjp(lambda x: x)", "no rule yet")])


# ── 3. best_size ─────────────────────────────────────────────────────────────────────────────

def grade_best_size(answer: Any) -> None:
    expect(isinstance(answer, int), "a whole number of operations")
    expect(0 < answer <= 400, "a block has between 1 and 400 operations")
    expect(answer != 400, "one block keeps one argument, and all 400 once it is opened")
    expect(answer != 1, "blocks of one keep 400 arguments")
    expect(answer == 20, f"blocks of {answer} keep {400 / answer:g} arguments, and {answer} in the "
           f"open block: {400 / answer + answer:g} at once. Is there a better one?")


exercise("best_size", chapter=CHAPTER, grade=grade_best_size, solution="20",
         wrong=[("400", "once it is opened"), ("1", "400 arguments"), ("10", "50 at once"),
                ("200", "202 at once"), ("20.0", "a whole number")])


# ── 4. with_slope ────────────────────────────────────────────────────────────────────────────

def grade_with_slope(with_slope: Callable) -> None:
    cases: list[tuple[str, Callable, Callable]] = [
        ("sin", jnp.sin, lambda x: 10.0 * x), ("a square", lambda x: x * x, jnp.cos)]
    for name, f, df in cases:
        g = with_slope(f, df)
        expect(callable(g), "the answer is a function, and yours gives "
               f"{type(g).__name__}: return the function that has the rule")
        for x in _numbers(3):
            _agrees(g(x), f(x), f"f = {name} at {x}")
            value, tangent = jax.jvp(g, (x,), (2.0,))
            _agrees(value, f(x), f"f = {name} at {x}", "value that the rule gives")
            _agrees(tangent, 2.0 * df(x), f"f = {name} at {x}, and a tangent of 2", "tangent")


_WITH_SLOPE = """
def with_slope(f, df):
    g = jax.custom_jvp(f)

    @g.defjvp
    def rule(primals, tangents):
        [x], [t] = primals, tangents
        return {out}, {tangent}
    return {answer}
"""


def _slope_text(out: str = "g(x)", tangent: str = "df(x) * t", answer: str = "g") -> str:
    return _WITH_SLOPE.format(out=out, tangent=tangent, answer=answer)


exercise(
    "with_slope", chapter=CHAPTER, grade=grade_with_slope, solution=_slope_text(),
    wrong=[(_slope_text(tangent="df(x)"), "a tangent of 2"),
           (_slope_text(tangent="df(t)"), "a tangent of 2"),
           (_slope_text(answer="rule"), "your answer raised"),
           (_slope_text(out="x"), "value that the rule gives"),
           (_slope_text(answer="f"), "a tangent of 2")])


# ── 5. the_rule ──────────────────────────────────────────────────────────────────────────────

def grade_the_rule(answer: Any) -> None:
    expect(answer in ("a", "b", "c"), '`"a"`, `"b"` or `"c"`')
    expect(answer != "a", "with s = 1, t = 0 it gives 0, for the slope along x. And twice the "
           "speeds give four times the answer: that is not linear")
    expect(answer != "c", "with s = t = 1 it gives y + x + 1, with s = t = 2 it gives "
           "2 y + 2 x + 4, which is not twice as much: a term of two tangents is not linear")
    expect(answer == "b", "which one doubles when s and t double?")


exercise("the_rule", chapter=CHAPTER, grade=grade_the_rule, solution='"b"',
         wrong=[('"a"', "four times"), ('"c"', "not twice"), ("2", '`"a"`')])


# ── 6. cube_back ─────────────────────────────────────────────────────────────────────────────

def grade_cube_back(cube_back: Callable) -> None:
    for x, ct in ((1.0, 1.0), (2.0, 1.0), (0.0, 3.0), (-1.5, -2.0)):
        found = cube_back(x, ct)
        expect(not isinstance(found, tuple), "one cotangent is asked for, not a tuple")
        _agrees(found, ct / (3 * x ** 2 + 1), f"x = {x}, ct = {ct}", "cotangent of a")


exercise(
    "cube_back", chapter=CHAPTER, grade=grade_cube_back,
    solution="def cube_back(x, ct):\n    return ct / (3 * x ** 2 + 1)",
    afterthought="from x³ + x = a follows (3 x² + 1) dx = da",
    wrong=[("def cube_back(x, ct):\n    return ct * (3 * x ** 2 + 1)", "the cotangent of a is"),
           ("def cube_back(x, ct):\n    return 1 / (3 * x ** 2 + 1)", "x = 0.0, ct = 3.0"),
           ("def cube_back(x, ct):\n    return ct / (3 * x ** 2)", "the cotangent of a is"),
           ("def cube_back(x, ct):\n    return (ct / (3 * x ** 2 + 1),)", "not a tuple")])


# ── 7. blocks ────────────────────────────────────────────────────────────────────────────────

def grade_blocks(blocks: Callable) -> None:
    from minijax.notebook.library import library
    mini = library.module
    for n, size in ((6, 2), (7, 3), (3, 5), (4, 1), (0, 2), *np.random.default_rng(1).integers(
            1, 12, (4, 2)).tolist()):
        f = blocks(mini.sin, n, size)
        expect(callable(f), f"`blocks` gives a function, not {type(f).__name__}")
        wanted, calls = 1.0, -(-n // size)
        for _ in range(n):
            wanted = np.sin(wanted)
        _agrees(f(1.0), wanted, f"the sine {n} times from 1, in blocks of {size},")
        names = [eqn.primitive.name for eqn in mini.make_jaxpr(f)(1.0).eqns]
        expect(names.count("checkpoint") == calls, f"{n} times in blocks of {size} make {calls} "
               f"checkpoints, and yours {names.count('checkpoint')}")
        expect(len(names) == calls, f"for {n} times in blocks of {size}, something stands outside "
               f"of all checkpoints: {names}")


_MINI = """
from minijax.notebook.library import library
library.begin("10")
from mini import checkpoint
"""
_BLOCKS = """
def blocks(f, n, size):
    def repeated(times):
        def g(x):
            for _ in range(times):
                x = f(x)
            return x
        return {block}

    def run(x):
        for start in range(0, n, size):
            x = repeated({times})(x)
        return x
    return {answer}
"""


def _blocks_text(block: str = "checkpoint(g)", times: str = "min(size, n - start)",
                 answer: str = "run") -> str:
    return _BLOCKS.format(block=block, times=times, answer=answer)


exercise(
    "blocks", chapter=CHAPTER, grade=grade_blocks, given=_MINI, solution=_blocks_text(),
    wrong=[(_blocks_text(block="g"), "checkpoints, and yours 0"),
           (_blocks_text(times="size"), "in blocks of 3"),
           (_blocks_text(answer="run(1.0)"), "gives a function"),
           (_blocks_text(answer="checkpoint(run)"), "checkpoints, and yours 1"),
           ("def blocks(f, n, size):\n    def run(x):\n        for _ in range(n // size):\n"
            "            x = checkpoint(lambda x: [x := f(x) for _ in range(size)][-1])(x)\n"
            "        return x\n    return run", "in blocks of 3")])


# ── 8. gentle ────────────────────────────────────────────────────────────────────────────────

def grade_gentle(gentle: Any) -> None:
    _has_rule(gentle, jax.custom_vjp, "gentle.defvjp(fwd, bwd)")
    for x, limit, ct in ((2.0, 1.0, 5.0), (2.0, 1.0, -5.0), (-3.0, 1.0, 0.5), (0.5, 4.0, 3.0)):
        with instead_of(TypeError, "pair", _FWD):
            value, back = jax.vjp(gentle, x, limit)
        _agrees(value, x, f"x = {x}, limit = {limit}", "value that fwd gives")
        _agrees(gentle(x, limit), x, f"x = {x}, limit = {limit}")
        with instead_of(TypeError, "tuple", _BWD):
            found, of_limit = back(ct)
        given = f"limit = {limit} and a cotangent of {ct}"
        _agrees(found, np.clip(ct, -limit, limit), given, "cotangent of x")
        _agrees(of_limit, 0.0, given, "cotangent of limit")


_GENTLE = """
@jax.custom_vjp
def gentle(x, limit):
    return x

gentle.defvjp(lambda x, limit: {fwd}, lambda limit, ct: {bwd})
"""


def _gentle_text(fwd: str = "(x, limit)", bwd: str = "(jnp.clip(ct, -limit, limit), None)") -> str:
    return _GENTLE.format(fwd=fwd, bwd=bwd)


exercise(
    "gentle", chapter=CHAPTER, grade=grade_gentle, solution=_gentle_text(),
    wrong=[(_gentle_text(bwd="(jnp.clip(ct, -limit, limit),)"), "for each argument"),
           (_gentle_text(bwd="(jnp.minimum(ct, limit), None)"), "a cotangent of -5.0"),
           (_gentle_text(fwd="(jnp.clip(x, -limit, limit), limit)"), "value that fwd gives"),
           (_gentle_text(bwd="(ct, None)"), "a cotangent of 5.0"),
           (_gentle_text(fwd="(x, x)"), "a cotangent of 5.0"),
           ("gentle = jax.custom_vjp(lambda x, limit: x)", "no rule yet")])
