"""The exercises of chapter 10, *Your own rules and checkpointing*."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax.notebook.checks import agree, exercise, expect, instead_of, near, wanting

CHAPTER = "10_your_own_rules"


def _numbers(count: int = 6) -> list[float]:
    return np.random.default_rng(0).uniform(-3, 3, count).round(2).tolist()


_VALUE_WITHOUT_RULE = ("the value that the rule gives has no such rule: let it be that of the "
                       "function with the rule")


def _has_rule(f: Any, kind: type, needs: str) -> None:
    expect(isinstance(f, kind), f"the function should stay a `jax.{kind.__name__}`, and yours is "
           f"of the type {type(f).__name__}")
    rule = "jvp" if kind is jax.custom_jvp else "fwd"
    expect(getattr(f, rule) is not None, f"it has no rule yet: `{needs}`")


def _forwards(f: Callable, inputs: str, args: tuple, tangents: tuple) -> tuple[Any, Any]:
    """The result of jvp; a hint where the rule returns something of the wrong form."""
    with (instead_of(TypeError, "<class 'tuple'>", "a rule is given two tuples, primals and "
                     "tangents, with one entry for each argument: yours computes with a whole "
                     "tuple"),
          instead_of(TypeError, "must produce a pair", f"for {inputs} the rule should return two "
                     "things, a value and its tangent, and yours does not"),
          instead_of(TypeError, "equal container", f"for {inputs} the value that your rule returns "
                     "and its tangent have different forms: is one of them still in its tuple?")):
        return jax.jvp(f, args, tangents)


def _backwards(f: Callable, inputs: str, *args: Any) -> tuple[Any, Callable]:
    """The value of fwd and the cotangents of bwd; a hint where one returns the wrong form."""
    with instead_of(TypeError, "must produce a pair", f"for {inputs}, `fwd` should return a pair: "
                    "the result, and what is saved for `bwd` (None, if nothing is)"):
        value, back = jax.vjp(f, *args)

    def pulled(ct: float) -> tuple:
        with (instead_of(TypeError, "tuple", f"for {inputs} and a cotangent of {ct}, `bwd` should "
                         "return a tuple with one cotangent for each argument of the function, "
                         f"{len(args)} here, and yours does not"),
              instead_of(TypeError, "positional argument", "`bwd` is called with two things: what "
                         "`fwd` has saved, and the cotangent of the result"),
              instead_of(TypeError, "NoneType", "`bwd` is given first what `fwd` has saved, and "
                         "then the cotangent: yours computes with a None")):
            return back(ct)
    return value, pulled


# ── straight_round ───────────────────────────────────────────────────────────────────────────

def grade_straight_round(f: Any) -> None:
    _has_rule(f, jax.custom_jvp, "@straight_round.defjvp")
    for x in [0.2, 2.7, 0.5, 2.5, 1.5, -0.5, *_numbers()]:
        agree(f"x = {x}", f(x), np.round(x), (near(f(x), x), "it is not rounded"),
              (x % 1 == 0.5, "halfway between two numbers `jnp.round` takes the even one"),
              what="the value")
        inputs = f"x = {x} and a tangent of 3"
        value, tangent = _forwards(f, inputs, (x,), (3.0,))
        agree(inputs, value, np.round(x), "the function rounds, and its rule does not: a rule "
              "gives the value once more", what="the value that the rule gives")
        agree(inputs, tangent, 3.0, (near(tangent, 1.0), "1 is the slope; the tangent of the "
              "result is the slope times that of x"), (near(tangent, 0.0), "that is the slope of "
              "rounding itself: the rule should pretend another"), (near(tangent, 3.0 * x), "this "
              "is the rule of a square, or of x times something"), what="the tangent")
    agree("x = [0.2, 2.7]", jax.vmap(jax.grad(f))(jnp.array([0.2, 2.7])), [1.0, 1.0],
          what="the gradient")
    agree("the square of your function at 2.3", jax.grad(jax.grad(lambda x: f(x) ** 2))(2.3), 2.0,
          _VALUE_WITHOUT_RULE, what="the second derivative")


_STRAIGHT = """
@jax.custom_jvp
def straight_round(x):
    return {value}

@straight_round.defjvp
def straight_round_jvp(primals, tangents):
    [x], [t] = primals, tangents
    return {out}
"""


def _straight_text(value: str = "jnp.round(x)", out: str = "straight_round(x), t") -> str:
    return _STRAIGHT.format(value=value, out=out)


exercise(
    "straight_round", chapter=CHAPTER, grade=grade_straight_round, solution=_straight_text(),
    wrong=[(_straight_text(out="straight_round(x), 1.0"), "1 is the slope"),
           (_straight_text(out="straight_round(x), 0.0 * t"), "slope of rounding itself"),
           (_straight_text(value="x"), "it is not rounded"),
           (_straight_text(value="jnp.floor(x + 0.5)"), "takes the even one"),
           (_straight_text(value="jnp.ceil(x - 0.5)"), "takes the even one"),
           (_straight_text(out="x, t"), "gives the value once more"),
           (_straight_text(out="jnp.round(x), t"), "has no such rule"),
           (_straight_text(out="straight_round(primals), t"), "computes with a whole tuple"),
           (_straight_text(out="straight_round(x), tangents"), "still in its tuple"),
           (_straight_text(out="t"), "return two things"),
           ("straight_round = jax.custom_jvp(lambda x: jnp.round(x))", "no rule yet"),
           ("def straight_round(x):\n    return jnp.round(x)", "should stay")],
    hints=["`slope_of_softplus` above has the shape that is expected"])


# ── with_slope ───────────────────────────────────────────────────────────────────────────────

def grade_with_slope(with_slope: Callable) -> None:
    cases: list[tuple[str, Callable, Callable]] = [
        ("f = sin, df(x) = 10 x", jnp.sin, lambda x: 10.0 * x),
        ("f(x) = x², df = cos", lambda x: x * x, jnp.cos)]
    for names, f, df in cases:
        with instead_of(AttributeError, "'function' object has no attribute 'defjvp'", "`defjvp` "
                        "belongs to what `jax.custom_jvp(f)` gives, and not to `f`"):
            g = with_slope(f, df)
        expect(callable(g), f"the answer is a function, and yours is {g!r}: return the one that "
               "has the rule")
        for x in _numbers(3):
            inputs = f"{names}, at {x}"
            with instead_of(TypeError, "missing 1 required positional argument", f"for {inputs}, a "
                            "function of two arguments came back: is it the rule itself?"):
                value = g(x)
            agree(inputs, value, f(x), "the values are those of f", what="the value")
            inputs += " and a tangent of 2"
            value, tangent = _forwards(g, inputs, (x,), (2.0,))
            slope = jax.grad(f)(x)
            agree(inputs, value, f(x), "the rule should give the value, too",
                  what="the value that the rule gives")
            agree(inputs, tangent, 2.0 * df(x), (near(tangent, 2.0 * slope), "that is the slope of "
                  "f: is what you return the function that has the rule?"),
                  (near(tangent, df(x)), "that is the slope; the tangent of the result is the "
                   "slope times that of x"),
                  (near(tangent, df(2.0)), "the slope is expected at x, not at the tangent"),
                  (near(tangent, 2.0 * df(x) * slope), "the slope of f is in it, too"),
                  what="the tangent")
        twice = jax.grad(jax.grad(lambda x, g=g: g(x) ** 2))(1.0)
        agree(f"{names}: the square of your function at 1", twice,
              2 * df(1.0) ** 2 + 2 * f(1.0) * jax.grad(df)(1.0), _VALUE_WITHOUT_RULE,
              what="the second derivative", tolerance=1e-3)
    g = with_slope(jnp.sin, jnp.sin)
    with_slope(jnp.exp, jnp.exp)
    agree("f = sin, df = sin, at 2, if another function got its slope in between,",
          jax.grad(g)(2.0), np.sin(2.0), "each function has a slope of its own, in no global",
          what="the slope")


_WITH_SLOPE = """
def with_slope(f, df):
    g = jax.custom_jvp(f)

    @{owner}.defjvp
    def rule(primals, tangents):
        [x], [t] = primals, tangents
        return {out}, {tangent}
    return {answer}
"""


def _slope_text(out: str = "g(x)", tangent: str = "df(x) * t", answer: str = "g",
                owner: str = "g") -> str:
    return _WITH_SLOPE.format(out=out, tangent=tangent, answer=answer, owner=owner)


exercise(
    "with_slope", chapter=CHAPTER, grade=grade_with_slope, solution=_slope_text(),
    wrong=[("def with_slope(f, df):\n    global value, slope\n    value, slope = f, df\n"
            "    @jax.custom_jvp\n    def g(x):\n        return value(x)\n    @g.defjvp\n"
            "    def rule(primals, tangents):\n"
            "        return g(*primals), slope(*primals) * tangents[0]\n    return g",
            "a slope of its own"),
           (_slope_text(tangent="df(x)"), "that is the slope; the tangent"),
           (_slope_text(tangent="df(t)"), "not at the tangent"),
           (_slope_text(tangent="df(x) * jax.jvp(f, (x,), (t,))[1]"), "is in it, too"),
           (_slope_text(answer="rule"), "is it the rule itself"),
           (_slope_text(out="x"), "should give the value, too"),
           (_slope_text(answer="f"), "that is the slope of f"),
           ("def with_slope(f, df):\n    return lambda x: jax.lax.stop_gradient(f(x)) + "
            "jax.lax.stop_gradient(df(x)) * (x - jax.lax.stop_gradient(x))",
            "the second derivative"),
           (_slope_text(owner="f"), "and not to `f`")],
    hints=["make the function with the rule inside of `with_slope`, and return it"])


# ── the_rule ─────────────────────────────────────────────────────────────────────────────────

def grade_the_rule(answer: Any) -> None:
    expect(answer in ("a", "b", "c"), f'one of `"a"`, `"b"` and `"c"` is expected, not {answer!r}')
    expect(answer != "a", "for x = 2, y = 3, s = 1, t = 0 the tangent is 3, the slope along x, and "
           "this gives 0. And twice the speeds give four times the answer: that is not linear")
    expect(answer != "c", "for x = 2, y = 3 and s = t = 1 the tangent is 5, and this gives 6; for "
           "s = t = 2 it gives 14, which is not twice as much: a term of two tangents is not "
           "linear")


exercise("the_rule", chapter=CHAPTER, grade=grade_the_rule, solution='"b"',
         wrong=[('"a"', "four times"), ('"c"', "not twice"), ("2", "is expected, not 2")],
         hints=["which of them doubles when s and t double?"])


# ── turned_back ──────────────────────────────────────────────────────────────────────────────

def grade_turned_back(f: Any) -> None:
    _has_rule(f, jax.custom_vjp, "turned_back.defvjp(fwd, bwd)")
    for x in _numbers():
        agree(f"x = {x}", f(x), x, what="the value")
        inputs = f"x = {x}"
        value, back = _backwards(f, inputs, x)
        agree(inputs, value, x, (near(value, -x), "only the way back changes sign"),
              what="the value that fwd gives")
        [result] = back(2.0)
        agree(f"{inputs} and a cotangent of 2", result, -2.0,
              (near(result, 2.0), "it comes back as it went"),
              (near(result, -1.0), "-1 is the factor, by which the cotangent should be multiplied"),
              (near(result, -x), "that is minus x: `bwd` is given first what was saved, and then "
               "the cotangent"), what="the cotangent of x")
        [result] = back(-0.7)
        agree(f"{inputs} and a cotangent of -0.7", result, 0.7,
              (near(result, -0.7), "it comes back as it went"), what="the cotangent of x")
    _, back = _backwards(f, "x = [1, 1]", jnp.ones(2))
    inputs, expected = "x = [1, 1] and the cotangent [3, -2]", [-3.0, 2.0]
    with wanting(inputs, expected, "each number of it changes its sign, by itself"):
        [result] = back(jnp.array([3.0, -2.0]))
    agree(inputs, result, expected, what="the cotangent of x")


_TURNED = """
@jax.custom_vjp
def turned_back(x):
    return x

turned_back.defvjp(lambda x: {fwd}, lambda {names}: {bwd})
"""


def _turned_text(fwd: str = "(x, None)", bwd: str = "(-ct,)", names: str = "_, ct") -> str:
    return _TURNED.format(fwd=fwd, bwd=bwd, names=names)


exercise(
    "turned_back", chapter=CHAPTER, grade=grade_turned_back, solution=_turned_text(),
    wrong=[(_turned_text(bwd="-ct"), "should return a tuple"),
           (_turned_text(bwd="(ct,)"), "comes back as it went"),
           (_turned_text(bwd="(-1.0,)"), "-1 is the factor"),
           (_turned_text(bwd="(-jnp.sum(ct),)"), "by itself"),
           (_turned_text(fwd="x"), "should return a pair"),
           (_turned_text(bwd="(-abs(ct),)"), "it comes back as it went"),
           (_turned_text(fwd="(-x, None)"), "only the way back"),
           (_turned_text(names="ct"), "is called with two things"),
           (_turned_text(names="ct, _"), "first what `fwd` has saved"),
           (_turned_text(fwd="(x, x)", names="ct, _"), "that is minus x"),
           ("turned_back = jax.custom_vjp(lambda x: x)", "no rule yet")],
    hints=["nothing need be saved; what does `fwd` return then?"])


# ── cube_back ────────────────────────────────────────────────────────────────────────────────

def grade_cube_back(cube_back: Callable) -> None:
    cases = np.random.default_rng(2).uniform(-3, 3, (5, 2)).round(2).tolist()
    for x, ct in ((1.0, 1.0), (2.0, 1.0), (0.0, 3.0), (-1.5, -2.0), *cases):
        inputs = f"x = {x}, ct = {ct}"
        result = cube_back(x, ct)
        expect(not isinstance(result, tuple), f"for {inputs} one cotangent is expected, and yours "
               f"is the tuple {result!r}")
        slope = 3 * x ** 2 + 1
        agree(inputs, result, ct / slope, (near(result, ct * slope), "that is how a moves with x; "
              "how does x move with a?"), (near(result, 1 / slope), "the slope alone does not know "
              "the cotangent"), (x and near(result, ct / (slope - 1)), "both terms of x³ + x have "
              "a slope"), (near(result, ct / (x ** 3 + x or 1)), "that is divided by the value, "
              "not by the slope"), "take the derivative of both sides of x³ + x = a",
              what="the cotangent of a")


exercise(
    "cube_back", chapter=CHAPTER, grade=grade_cube_back,
    solution="def cube_back(x, ct):\n    return ct / (3 * x ** 2 + 1)",
    afterthought="from x³ + x = a follows (3 x² + 1) dx = da",
    wrong=[("def cube_back(x, ct):\n    return ct * (3 * x ** 2 + 1)", "how does x move with a"),
           ("def cube_back(x, ct):\n    return 1 / (3 * x ** 2 + 1)", "does not know"),
           ("def cube_back(x, ct):\n    return ct / (3 * x ** 2)", "both terms"),
           ("def cube_back(x, ct):\n    return ct / (x ** 3 + x)", "not by the slope"),
           ("def cube_back(x, ct):\n    return (ct / (3 * x ** 2 + 1),)", "one cotangent")],
    hints=["for the square root it was 2x dx = da"])


# ── gentle ───────────────────────────────────────────────────────────────────────────────────

def grade_gentle(gentle: Any) -> None:
    _has_rule(gentle, jax.custom_vjp, "gentle.defvjp(fwd, bwd)")
    random = np.random.default_rng(3).uniform(0.5, 4, (4, 3)).round(2).tolist()
    for x, limit, ct in ((2.0, 1.0, 5.0), (2.0, 1.0, -5.0), (-3.0, 1.0, 0.5), (0.5, 4.0, 3.0),
                         (0.5, 4.0, -3.0), *random):
        inputs = f"x = {x}, limit = {limit}"
        agree(inputs, gentle(x, limit), x, "only the way back is cut off", what="the value")
        value, back = _backwards(gentle, inputs, x, limit)
        agree(inputs, value, x, "only the way back is cut off", what="the value that fwd gives")
        result, of_limit = back(ct)
        inputs += f" and a cotangent of {ct}"
        agree(inputs, result, np.clip(ct, -limit, limit),
              (ct > 0 and near(result, ct), "it is not cut off"),
              (near(result, ct), "a negative cotangent can be too long, too"),
              (near(result, max(-abs(x), min(ct, abs(x)))), "it is cut off at x: what has `fwd` "
               "saved?"),
              (ct < 0, "the range goes from -limit to limit"), what="the cotangent of x")
        agree(inputs, of_limit, 0.0, "the value does not depend on the limit",
              what="the cotangent of limit")
    ct = jnp.array([4.0, 0.5, -3.0])
    agree("x = [1, 1, 1], limit = 1 and the cotangent [4, 0.5, -3]",
          jax.vjp(lambda x: gentle(x, 1.0), jnp.ones(3))[1](ct)[0], [1.0, 0.5, -1.0],
          "each number of it is clipped by itself", what="the cotangent of x")
    inputs = "x = 2 and the limits [1, 4], under vmap, and a cotangent of 3"
    slopes = jax.vmap(jax.grad(lambda x, limit: 3.0 * gentle(x, limit)), (None, 0))
    with wanting(inputs, [1.0, 3.0], "the limit may be a tracer, too: save it as it is"):
        result = slopes(2.0, jnp.array([1.0, 4.0]))
    agree(inputs, result, [1.0, 3.0], what="the cotangent of x")


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
    wrong=[("@jax.custom_vjp\ndef gentle(x, limit):\n    return x\n"
            "gentle.defvjp(lambda x, limit: (x, limit),\n"
            "              lambda limit, ct: (jnp.clip(ct, -1, limit), None))",
            "from -limit to limit"),
           (_gentle_text(bwd="(jnp.clip(ct, -limit, limit),)"), "for each argument"),
           (_gentle_text(bwd="(jnp.minimum(ct, limit), None)"), "a negative cotangent"),
           (_gentle_text(fwd="(jnp.clip(x, -limit, limit), limit)"), "only the way back"),
           (_gentle_text(bwd="(ct, None)"), "it is not cut off"),
           (_gentle_text(bwd="(ct * jnp.minimum(1.0, limit / jnp.sqrt(jnp.sum(ct * ct) + 1e-12)), "
                             "None)"), "clipped by itself"),
           (_gentle_text(fwd="(x, x)"), "it is cut off at x"),
           (_gentle_text(fwd="(x, float(limit))"), "save it as it is"),
           (_gentle_text(bwd="(jnp.clip(ct, -limit, limit), ct)"), "does not depend"),
           ("gentle = jax.custom_vjp(lambda x, limit: x)", "no rule yet")],
    hints=["`bwd` needs the limit: `fwd` has to save it"])


# ── best_size ────────────────────────────────────────────────────────────────────────────────

def grade_best_size(answer: Any) -> None:
    expect(isinstance(answer, int), f"a whole number of operations is expected, not {answer!r}")
    expect(0 < answer <= 400, f"a block has between 1 and 400 operations, not {answer}")
    at_once = f"blocks of {answer} keep {400 / answer:g} arguments, and {answer} in the open block"
    expect(answer != 400, f"{at_once}: 401 at once. That is one more than without a checkpoint")
    expect(answer != 1, f"{at_once}: 401 at once. Every argument is kept, as without a checkpoint")
    expect(answer == 20, f"{at_once}: {400 / answer + answer:g} at once. Is there a better one?")


exercise("best_size", chapter=CHAPTER, grade=grade_best_size, solution="20",
         wrong=[("400", "one more than without"), ("1", "Every argument is kept"),
                ("10", "50 at once"), ("200", "202 at once"), ("20.5", "a whole number")],
         right=["20.0", "np.int64(20)"],
         hints=["two numbers of which the product is 400: when is their sum least?"])


# ── blocks ───────────────────────────────────────────────────────────────────────────────────

def grade_blocks(blocks: Callable) -> None:
    from minijax.notebook.library import library
    mini = library.module
    for n, size in ((6, 2), (7, 3), (3, 5), (4, 1), (0, 2), *np.random.default_rng(1).integers(
            1, 12, (4, 2)).tolist()):
        f, inputs = blocks(mini.sin, n, size), f"the sine, n = {n} and size = {size}"
        expect(callable(f), f"for {inputs} a function is expected, and yours is {f!r}")
        chain, calls = [1.0], -(-n // size)
        for _ in range(n + size):
            chain.append(float(np.sin(chain[-1])))
        result = f(1.0)
        times = next((k for k, x in enumerate(chain) if near(x, result, 1e-9)), None)
        agree(inputs + ", at 1,", result, chain[n], (times is not None, f"that is the sine {times} "
              f"times; {n} are expected. Is the last block a full one?"), what="the value",
              tolerance=1e-9)
        eqns = mini.make_jaxpr(f)(1.0).eqns
        names = [eqn.primitive.name for eqn in eqns]
        agree(inputs, names.count("checkpoint"), calls, (not names.count("checkpoint"), "nothing "
              "is in a checkpoint"), (names.count("checkpoint") == 1, "there is one around all; "
              "each block needs its own"), (names.count("checkpoint") == n, "there is one around "
              "each single call"), what="the number of checkpoints")
        expect(len(names) == calls, f"for {inputs}, these operations of the program are expected: "
               f"{['checkpoint'] * calls}, and yours are {names}\nsomething stands outside "
               "all checkpoints")
        sizes = [len(eqn.params["programs"][0].eqns) for eqn in eqns]
        expected = [min(size, n - start) for start in range(0, n, size)]
        expect(sizes == expected, f"for {inputs} the blocks have {expected} sines, and yours "
               f"{sizes}: `size` in each, and the rest in the last")


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
    "blocks", chapter=CHAPTER, grade=grade_blocks, given="%mini begin 10",
    solution=_blocks_text(),
    wrong=[("def blocks(f, n, size):\n    count = -(-n // size)\n"
            "    parts = [n // count + (k < n % count) for k in range(count)]\n    def g(x):\n"
            "        for part in parts:\n            def block(x, part=part):\n"
            "                for _ in range(part):\n                    x = f(x)\n"
            "                return x\n            x = checkpoint(block)(x)\n        return x\n"
            "    return g", "and the rest in the last"),
           (_blocks_text(block="g"), "nothing is in a checkpoint"),
           (_blocks_text(times="size"), "that is the sine 9 times; 7 are expected"),
           (_blocks_text(answer="run(1.0)"), "a function is expected"),
           (_blocks_text(answer="checkpoint(run)"), "there is one around all"),
           (_BLOCKS.replace("range(times)", "range(times - 1)").replace(
               "repeated({times})(x)", "f(repeated({times})(x))").format(
                   block="checkpoint(g)", times="min(size, n - start)", answer="run"),
            "outside all checkpoints"),
           ("def blocks(f, n, size):\n    def run(x):\n        for _ in range(n):\n"
            "            x = checkpoint(f)(x)\n        return x\n    return run",
            "around each single call"),
           ("def blocks(f, n, size):\n    def run(x):\n        for _ in range(n // size):\n"
            "            x = checkpoint(lambda x: [x := f(x) for _ in range(size)][-1])(x)\n"
            "        return x\n    return run", "that is the sine 6 times; 7 are expected")],
    hints=["write a function that applies `f` some times, and give it to `checkpoint`"])


# ── times_moving ─────────────────────────────────────────────────────────────────────────────

def grade_times_moving(f: Any) -> None:
    _has_rule(f, jax.custom_jvp, "@times_moving.defjvp")
    for c, x, by_c, by_x in np.random.default_rng(4).uniform(-3, 3, (6, 4)).round(2).tolist():
        inputs = f"c = {c}, x = {x}"
        agree(inputs, f(c, x), c * x, what="the value")
        inputs += f" and the tangents {by_c} and {by_x}"
        value, result = _forwards(f, inputs, (c, x), (by_c, by_x))
        agree(inputs, value, c * x, "a rule gives the value, too",
              what="the value that the rule gives")
        agree(inputs, result, by_c * x + c * by_x,
              (near(result, c * by_x), "c moves as well, now that it is an argument: where is its "
               "term?"),
              (near(result, by_c * x), "only the term of c is there"),
              (near(result, by_c * c + x * by_x), "each tangent is multiplied by the *other* "
               "argument"),
              (near(result, by_c * by_x), "a term of two tangents is not linear"),
              (near(result, by_c + by_x), "the slopes are missing"), what="the tangent")
    xs = jnp.array([2.0, -1.0])
    agree("c = 3 and x = [2, -1]", f(3.0 * jnp.ones(2), xs), [6.0, -3.0], "of arrays it is the "
          "product of each pair of elements", what="the value")
    slope = jax.grad(lambda c: f(c, 2.0))(3.0)
    agree("f(c, 2.0) at c = 3", slope, 2.0, what="the gradient")


_TIMES = """
@jax.custom_jvp
def times_moving(c, x):
    return c * x

@times_moving.defjvp
def times_moving_jvp(primals, tangents):
    [c, x], [dc, dx] = primals, tangents
    return {out}
"""

exercise(
    "times_moving", chapter=CHAPTER, grade=grade_times_moving,
    solution=_TIMES.format(out="times_moving(c, x), dc * x + c * dx"),
    wrong=[(_TIMES.format(out="times_moving(c, x), c * dx"), "where is its term"),
           (_TIMES.format(out="times_moving(c, x), dc * x"), "only the term of c"),
           (_TIMES.format(out="times_moving(c, x), dc * c + x * dx"), "the *other* argument"),
           (_TIMES.format(out="times_moving(c, x), dc + dx"), "the slopes are missing"),
           (_TIMES.format(out="times_moving(c, x), jnp.sum(dc * x + c * dx)").replace(
               "return c * x", "return jnp.sum(c * x)"), "each pair of elements"),
           (_TIMES.format(out="dc * x + c * dx"), "return two things"),
           ("times_moving = jax.custom_jvp(lambda c, x: c * x)", "no rule yet")],
    afterthought="`jax.grad(lambda c: times_moving(c, 2.0))(3.0)` is 2, where the function that "
                 "closes over c has raised an error",
    hints=["primals and tangents have two entries each now"])
