"""The exercises of chapter 07, *Reverse derivatives*."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax.core import Primitive
from minijax.core.vmap import BatchTracer
from minijax.notebook.checks import agree, exercise, expect, instead_of, near, shown

from .ways import FIVES, declared, unchanged, without

CHAPTER = "07_reverse_derivatives"


def _random(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).uniform(-3, 3, shape).round(1)


# -- numbers_kept ----------------------------------------------------------------------------------

def grade_numbers_kept(answer: Any) -> None:
    expect(isinstance(answer, int), "a whole number")
    expect(answer != 2, "the product needs both of its factors: x, and sin(exp(x))")
    expect(answer != 3, "one for the sine, one for the exponential, and for the product?")
    expect(answer == 4, "exp keeps its result, sin a cosine, and the product two factors")


exercise("numbers_kept", chapter=CHAPTER, grade=grade_numbers_kept, solution="4",
         wrong=[("2", "both of its factors"), ("3", "for the product"), ("6", "keeps its result"),
                ('"4"', "a whole number")])


# -- cotangents ------------------------------------------------------------------------------------

def grade_cotangents(answer: Any) -> None:
    expect(isinstance(answer, tuple | list) and len(answer) == 2, "a pair: of x, and of y")
    expect(not near(answer, (6, 8)), "the other way round: x changes z by as much as y is")
    expect(not near(answer, (4, 3)), "that is for a cotangent of 1; here it is 2")
    expect(near(answer, (8, 6)), "each factor gets the cotangent times the other factor")


exercise("cotangents", chapter=CHAPTER, grade=grade_cotangents, solution="(8, 6)",
         wrong=[("(6, 8)", "the other way round"), ("(4, 3)", "here it is 2"),
                ("(2, 2)", "the other factor"), ("8", "a pair")])


# -- cumsum_back -----------------------------------------------------------------------------------

def grade_cumsum_back(cumsum_back: Callable) -> None:
    for ct in (*(_random(n, n) for n in range(3, 7)), [1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [2.0]):
        x = np.array(ct)
        given = x.copy()
        result = cumsum_back(given)
        unchanged(f"the cotangents {shown(x)}", x, given)
        agree(f"the cotangents {shown(x)}", result, np.cumsum(x[::-1])[::-1],
              (near(result, np.cumsum(x)), "that is the operation itself: element 0 is in every "
               "result, and the last one in one result only"),
              (near(result, np.cumsum(x[::-1])), "the right numbers, from the last to the first"),
              (near(result, np.diff(x, prepend=0.0)), "a transpose is not an inverse: what turns "
               "running sums into elements again is another matrix"),
              "element k gets the cotangents of all results in which it takes part",
              what="what comes back to the elements")


exercise(
    "cumsum_back", chapter=CHAPTER, grade=grade_cumsum_back,
    solution="""
def cumsum_back(ct):
    return np.cumsum(ct[::-1])[::-1]
""",
    wrong=[("def cumsum_back(ct):\n    return np.cumsum(ct)", "the operation itself"),
           ("def cumsum_back(ct):\n    return np.cumsum(ct[::-1])", "from the last to the first"),
           ("def cumsum_back(ct):\n    for k in range(len(ct) - 2, -1, -1):\n"
            "        ct[k] += ct[k + 1]\n    return ct", "make a new one"),
           ("def cumsum_back(ct):\n    return np.diff(ct, prepend=0.0)", "not an inverse"),
           ("def cumsum_back(ct):\n    return np.full(len(ct), ct.sum())", "takes part")],
    hints=["element k takes part in result k, and in all that follow"])


# -- cumsum_p --------------------------------------------------------------------------------------

def grade_cumsum_p(cumsum_p: Any) -> None:
    from minijax.notebook.library import library
    mini = library.module
    expect(callable(getattr(cumsum_p, "impl", None)), "`mini.cumsum_p` is a Primitive with `impl`")
    for n in (3, 1, 5):
        x, way, weights = _random(n, 3, n)
        result = cumsum_p.impl(x)
        expect(isinstance(result, list), f"for {shown(x)} a list of one array is expected, and "
               f"your `impl` gives {shown(result)}: a rule gives a list")
        agree(f"x = {shown(x)}", result[0], np.cumsum(x), what="the result of `impl`")
        expect(callable(getattr(cumsum_p, "jvp", None)),
               "now the rule `jvp`: what becomes of a tangent?")
        result = cumsum_p.jvp([x], [way])
        expect(isinstance(result, tuple) and [*map(type, result)] == [list, list],
               f"for {shown(x)} and the tangent {shown(way)} a pair of lists is expected, of "
               f"results and of tangents, and your `jvp` gives {result}")
        agree(f"the tangent {shown(way)}", mini.jvp(cumsum_p, (x,), (way,))[1], np.cumsum(way),
              "the operation is linear: what happens to a value happens to its tangent",
              what="the tangent of the result")
        expect(callable(getattr(cumsum_p, "transpose", None)), "now the rule `transpose`")
        result = cumsum_p.transpose([weights], mini.Undefined(mini.get_aval(x)))
        expect(isinstance(result, list), f"for the cotangents [{shown(weights)}] a list of one "
               f"array is expected, and your `transpose` gives {shown(result)}")
        agree(f"running sums weighted by {shown(weights)}",
              mini.grad(lambda x, w=weights: mini.sum(cumsum_p(x) * w))(x),
              np.cumsum(weights[::-1])[::-1],
              "the transpose is given the weights; what does each element get of them?",
              what="the gradient")
        with instead_of(TypeError, "Tracer", "the gradient is right, and a gradient of it is not: "
                        "there the cotangent is a tracer, which NumPy does not know; use "
                        "operations of `mini`"):
            twice = mini.grad(lambda x, w=weights: mini.sum(mini.grad(
                lambda x: mini.sum(cumsum_p(x) * cumsum_p(x)))(x) * w))(x)
        lower = np.tril(np.ones((n, n)))
        agree(f"squared running sums, weighted by {shown(weights)}", twice,
              2 * lower.T @ lower @ weights, what="the gradient of a gradient")


_CUMSUM = """
def cumsum_jvp(primals, tangents):
    [x], [t] = primals, tangents
    return [cumsum_p(x)], [{tangent}]

def cumsum_transpose(cotangents, x):
    [ct] = cotangents
    turn = np.eye(ct.shape[0])[::-1]
    return [{back}]

cumsum_p = Primitive("cumsum", impl=lambda x: {impl}, jvp=cumsum_jvp{rest})
"""


def _cumsum_text(tangent: str = "zero if t is zero else cumsum_p(t)",
                 back: str = "dot(turn, cumsum_p(dot(turn, ct)))", impl: str = "[np.cumsum(x)]",
                 rest: str = ", transpose=cumsum_transpose") -> str:
    return _CUMSUM.format(tangent=tangent, back=back, impl=impl, rest=rest)


exercise(
    "cumsum_p", chapter=CHAPTER, grade=grade_cumsum_p, given="%mini begin 07",
    solution=_cumsum_text(),
    wrong=[(_cumsum_text(impl="np.cumsum(x)"), "a rule gives a list"),
           (_cumsum_text("t"), "the tangent of the result"),
           (_cumsum_text(back="cumsum_p(ct)"), "does each element get"),
           (_cumsum_text(back="np.cumsum(ct[::-1])[::-1]"), "which NumPy does not know"),
           (_cumsum_text().replace("return [cumsum_p(x)], ", "return [cumsum_p(x)] + "),
            "a pair of lists"),
           (_cumsum_text().replace("return [dot(", "return (dot(").replace("ct)))]", "ct))))"),
            "a list of one array"),
           (_cumsum_text(rest=""), "now the rule `transpose`")])


# -- descend ---------------------------------------------------------------------------------------

def _valley(x: Any) -> Any:
    return jnp.sum((x - 1.0) ** 2)


def grade_descend(descend: Callable) -> None:
    for seed, (rate, steps) in enumerate([(0.25, 1), (0.25, 2), (0.1, 3), (0.25, 0), (0.5, 4),
                                           (1.5, 2)]):
        start = _random(seed, 2) if seed > 1 else np.array([3.0, -1.0])
        expected, up = 1 + (start - 1) * np.array([[1 - 2 * rate], [1 + 2 * rate]]) ** steps
        result = descend(_valley, jnp.array(start), rate, steps)
        agree(f"the sum of (x - 1)² from {shown(start)}, with rate {rate} and {steps} steps",
              result, expected,
              (near(result, up) and rate < 1, "that goes uphill"),
              (rate > 1, "a step that is too long leads away, and it is still the place where you "
               "end"),
              (near(result, 1 + (start - 1) * (1 - 2 * rate * steps)), "each step needs the "
               "gradient where it starts; yours is the one of the first start"),
              (near(result, 1 + (start - 1) * (1 - 2 * rate) ** (steps + 1)), "one step too many"),
              (near(result, 1 + (start - 1) * (1 - 2 * rate) ** min(steps, 1)), "only the first "
               "step is made: is the `return` in the loop?"), what="the place reached")
    weights = jnp.array([2.0, -1.0, 0.5])
    agree("f(x) = (2 x₀ - x₁ + x₂ / 2)² / 2 from [1, 1, 1], with rate 0.1 and 1 steps",
          descend(lambda x: jnp.sum(weights * x) ** 2 / 2, jnp.ones(3), 0.1, 1), 1 - 0.15 * weights,
          "f is a function of all of x at once, and so is its gradient", what="the place reached")
    mine = start.copy()
    descend(_valley, mine, 0.25, 2)
    expect(near(mine, start), f"the places are right; but after a call with NumPy's {shown(start)} "
           f"the caller's own array is {shown(mine)}: `x -= …` writes into it")


_DESCEND = """
def descend(f, x, rate, steps):
    for _ in range({rounds}):
        x = x {sign} rate * jax.grad(f)(x)
    return x
"""


exercise(
    "descend", chapter=CHAPTER, grade=grade_descend,
    solution=_DESCEND.format(rounds="steps", sign="-"),
    wrong=[("def descend(f, x, rate, steps):\n    places = [x]\n    for _ in range(steps):\n"
            "        places.append(places[-1] - rate * jax.grad(f)(places[-1]))\n"
            "    return min(places, key=f)", "leads away"),
           (_DESCEND.format(rounds="steps", sign="+"), "uphill"),
           ("def descend(f, x, rate, steps):\n    g = jax.grad(f)(x)\n"
            "    return x - steps * rate * g", "where it starts"),
           (_DESCEND.format(rounds="steps + 1", sign="-"), "one step too many"),
           ("def descend(f, x, rate, steps):\n    for _ in range(steps):\n"
            "        x = x - rate * jax.vmap(jax.grad(f))(x)\n    return x", "all of x at once"),
           ("def descend(f, x, rate, steps):\n    for _ in range(steps):\n"
            "        x = x - rate * jax.grad(f)(x)\n        return x\n    return x",
            "only the first step"),
           ("def descend(f, x, rate, steps):\n    for _ in range(steps):\n"
            "        x -= rate * np.asarray(jax.grad(f)(x))\n    return x", "writes into it")])


# -- impostor --------------------------------------------------------------------------------------

def _pairs() -> dict[str, tuple[Callable, Callable]]:
    """Linear functions of three numbers, and candidates for their transposes."""
    return {"double": (lambda t: 2 * t, lambda c: 2 * c),
            "flip": (lambda t: t[::-1], lambda c: c[::-1]),
            "shift": (lambda t: np.roll(t, 1), lambda c: np.roll(c, 1)),
            "differences": (lambda t: t[1:] - t[:-1],
                            lambda c: np.concatenate([[-c[0]], c[:-1] - c[1:], [c[-1]]])),
            "total": (lambda t: t.sum(keepdims=True), lambda c: np.repeat(c, 3))}


def grade_impostor(answer: Any) -> None:
    pairs = _pairs()
    expect(isinstance(answer, str) and answer in pairs, f"one of the names {', '.join(pairs)}, as "
           "text")
    f, back = pairs[answer]
    t = np.array([1.0, 2.0, 4.0])
    c = np.array([5.0, 3.0, 1.0])[:len(f(t))]
    expect(answer == "shift", f"for {answer}, t = {shown(t)} and c = {shown(c)}, c · f(t) is "
           f"{shown(c @ f(t))} and back(c) · t is {shown(back(c) @ t)}: this one is right")


exercise("impostor", chapter=CHAPTER, grade=grade_impostor, solution='"shift"',
         wrong=[('"flip"', "this one is right"), ('"differences"', "this one is right"),
                ('"total"', "this one is right"), ("2", "one of the names")],
         afterthought="what went one place to the right comes back one place to the left")


# -- both_ways -------------------------------------------------------------------------------------

def _bend(x: Any) -> Any:
    return jnp.stack([x[0] * x[1], jnp.sin(x[2]), x[1] ** 2 + x[2]])


def grade_both_ways(both_ways: Callable) -> None:
    for seed in range(4):
        x, t, c = map(jnp.array, _random(seed, 3, 3))
        with instead_of(TypeError, "tuple", "the function that `vjp` gives returns a tuple: one "
                        "cotangent for each argument"):
            result = both_ways(_bend, x, t, c)
        expect(isinstance(result, tuple | list) and len(result) == 2, "a pair of numbers is asked "
               f"for, and yours is {result}")
        expect(all(np.shape(part) == () for part in result), "each is one number, the sum of the "
               f"products of two vectors; the shapes of yours are {[*map(np.shape, result)]}")
        expected = float(c @ jax.jvp(_bend, (x,), (t,))[1])
        inputs = f"f(x) = (x0 x1, sin x2, x1² + x2), x = {shown(x)}, t = {shown(t)}, c = {shown(c)}"
        agree(inputs, result[0], expected, (near(result[0], c @ _bend(t)), "that is c · f(t); "
              "where is A, the derivative at x?"), what="the first, by jvp,", tolerance=1e-3)
        agree(inputs, result[1], expected, "the cotangents go in at the end: is it c that you pull "
              "back?", what="the second, by vjp,", tolerance=1e-3)
    inputs = "f(x) = 3 x, of which somebody has said that its transpose is 2 x,"
    with instead_of(NotImplementedError, "Batching rule", f"for {inputs} yours makes the whole "
                    "matrix, with a `vmap`: one `jvp` and one `vjp` are enough"):
        first, second = both_ways(_tripled(), x, t, c)
    agree(inputs, first, 3 * float(c @ t), "the first is `jvp`'s", what="the first, by jvp,")
    agree(inputs, second, 2 * float(c @ t), "the test must find that the two differ: the second "
          "is `vjp`'s", what="the second, by vjp,")


def _tripled() -> Callable:
    """A linear operation with a wrong transpose."""
    p: Primitive = Primitive(
        "tripled", impl=lambda x: [3 * x], abstract_eval=lambda x: [x],
        jvp=lambda xs, ts: ([p.bind(*xs)], [p.bind(*ts)]), transpose=lambda cts, x: [2 * cts[0]])
    return p.bind


_BOTH = "def both_ways(f, x, t, c):\n    return {}, {}"
_JVP, _VJP = "c @ jax.jvp(f, (x,), (t,))[1]", "jax.vjp(f, x)[1](c)"

exercise(
    "both_ways", chapter=CHAPTER, grade=grade_both_ways,
    solution="""
def both_ways(f, x, t, c):
    _, back = jax.vjp(f, x)
    return c @ jax.jvp(f, (x,), (t,))[1], back(c)[0] @ t
""",
    wrong=[(f"def both_ways(f, x, t, c):\n    return {_JVP}", "a pair of numbers"),
           (_BOTH.format(_JVP, f"{_VJP} @ t"), "returns a tuple"),
           (_BOTH.format(_JVP.replace("@", "*"), f"{_VJP}[0] * t"), "each is one number"),
           (_BOTH.format(_JVP, "jax.vjp(f, x)[1](t)[0] @ c"), "the second, by vjp"),
           (_BOTH.format(_JVP, _JVP), "the two differ"),
           (_BOTH.format(f"{_VJP}[0] @ t", _JVP), "the first is"),
           (_BOTH.format("c @ f(t)", f"{_VJP}[0] @ t"), "the derivative at x"),
           (_BOTH.format("c @ jax.jacfwd(f)(x) @ t", f"{_VJP}[0] @ t"), "the whole matrix")])


# -- jacobian --------------------------------------------------------------------------------------

def _only_backwards() -> Callable:
    """A sine that can be differentiated in the reverse direction only."""
    f = jax.custom_vjp(jnp.sin)
    f.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (ct * jnp.cos(x),))
    return f


def grade_jacobian(jacobian: Callable) -> None:
    for inputs, results in ((2, 4), (3, 2), (3, 3), (1, 2)):
        w, x = _random(inputs, results, inputs), _random(results, inputs)
        seen: list[Any] = []

        def f(x: Any, w: Any = w, seen: Any = seen) -> Any:
            seen.append(x)
            return jnp.sin(w @ x)

        with (instead_of(ValueError, "argument to VJP function", "a cotangent has the shape of the "
                         f"result, here of {results} numbers: so how large is the `eye`?"),
              without(jax, "jacrev", why="write it yourself, with `jax.vjp`")):
            result = jacobian(f, jnp.array(x))
        expected = np.cos(w @ x)[:, None] * w
        expect(not isinstance(result, tuple) and np.ndim(result) != 3,
               "the function that `vjp` gives returns a tuple: one cotangent for each argument")
        expect(np.shape(result) != (inputs, results) or inputs == results, f"for {results} results "
               f"of {inputs} inputs you give the shape {np.shape(result)}, a row for each input; a "
               "row for each result is expected")
        expect(np.shape(result) == (results, inputs), f"for {results} results of {inputs} inputs "
               f"the shape is {(results, inputs)}, and yours is {np.shape(result)}")
        agree(f"sin(w @ x) with w = {shown(w)} and x = {shown(x)}", result, expected,
              (near(result, expected.T), "rows and columns are exchanged"),
              "row k is what comes back when the cotangent is 1 at k, and 0 elsewhere",
              tolerance=1e-3)
        expect(not isinstance(getattr(seen[0], "tangent", None), BatchTracer), "the matrix is "
               "right, but its columns were made forwards, a run for each input")
        with instead_of(TypeError, "forward-mode", "the matrix is right, but its columns were made "
                        "forwards, and of a function that has a rule for the way back alone yours "
                        "gives an error: `jax.vjp` goes backwards"):
            jacobian(_only_backwards(), jnp.array(x))
        expect(len(seen) == 1, f"the matrix is right, but f was run {len(seen)} times for "
               f"{results} results: `jax.vjp` runs it once, and its function gives all rows")


_JACOBIAN = """
def jacobian(f, x):
    out, back = jax.vjp(f, x)
    return {}
"""

exercise(
    "jacobian", chapter=CHAPTER, grade=grade_jacobian,
    solution=_JACOBIAN.format("jax.vmap(back)(jnp.eye(len(out)))[0]"),
    wrong=[(_JACOBIAN.format("jax.vmap(back)(jnp.eye(len(x)))[0]"), "how large is"),
           (_JACOBIAN.format("jax.vmap(back)(jnp.eye(len(out)))"), "returns a tuple"),
           (_JACOBIAN.format("jax.vmap(back)(jnp.eye(len(out)))[0].T"), "a row for each result"),
           (_JACOBIAN.format("back(jnp.ones(len(out)))[0]"), "the shape is (4, 2)"),
           ("def jacobian(f, x):\n    return jax.jacfwd(f)(x)", "made forwards"),
           ("def jacobian(f, x):\n    return jax.jacrev(f)(x)", "write it yourself"),
           ("def jacobian(f, x):\n    return jax.vmap(jax.linearize(f, x)[1], out_axes=1)("
            "jnp.eye(len(x)))", "goes backwards"),
           ("def jacobian(f, x):\n    return jnp.stack([jax.grad(lambda x: f(x)[k])(x) "
            "for k in range(len(f(x)))])", "runs it once"),
           (_JACOBIAN.format("jax.vmap(back)(2 * jnp.eye(len(out)))[0]"), "when the cotangent is")])


# -- curving ---------------------------------------------------------------------------------------

def grade_curving(curving: Callable) -> None:
    for seed in range(4):
        n = seed + 2
        w, x, v = _random(seed, 3, n)
        expected = w * np.sum(w * v) * -np.sin(w @ x)

        def f(x: Any, w: Any = w) -> Any:
            return jnp.sin(jnp.dot(w, x))

        result = curving(f, jnp.array(x), jnp.array(v))
        inputs = f"sin(w · x) with w = {shown(w)} at x = {shown(x)}, along v = {shown(v)}"
        expect(not isinstance(result, tuple), f"for {inputs} one vector is expected, and you give "
               f"a {len(result) if isinstance(result, tuple) else 0}-tuple: which part is it?")
        agree(inputs, result, expected,
              (np.shape(result) == (), "one number is the bending along v alone; how does the "
               "*whole gradient* change?"),
              (near(result, w * np.cos(w @ x), 1e-3), "that is the gradient; how fast does it "
               "change?"),
              "what `jvp` should differentiate is the gradient of f", what="H v", tolerance=1e-3)
    at, along = jnp.array([0.5, -1.0]), jnp.array([2.0, 3.0])
    twice = declared(jnp.cos, FIVES)  # of which the gradient is FIVES, whose slope is 5
    expect(near(curving(lambda x: jnp.sum(twice(x)), at, along), 5 * along), "right, as far as "
           "differences are: of a gradient for which somebody has declared a slope of 5, yours "
           "takes another one. `jvp` differentiates the gradient without differences")
    size = 37
    closed = jax.make_jaxpr(lambda x, v: curving(lambda x: jnp.sum(jnp.sin(x)), x, v))(
        jnp.ones(size), jnp.ones(size))
    expect(f"[{size},{size}]" not in str(closed), "the numbers are right. But for "
           f"{size} inputs your program makes an array of {size} by {size}; for a million "
           "it would fit nowhere")


exercise(
    "curving", chapter=CHAPTER, grade=grade_curving,
    solution="""
def curving(f, x, v):
    return jax.jvp(jax.grad(f), (x,), (v,))[1]
""",
    wrong=[("def curving(f, x, v):\n    return jax.jacfwd(jax.grad(f))(x) @ v", "an array of"),
           ("def curving(f, x, v):\n    s = lambda x: jax.jvp(f, (x,), (v,))[1]\n"
            "    return jax.jvp(s, (x,), (v,))[1]", "bending along v alone"),
           ("def curving(f, x, v):\n    return jax.jvp(jax.grad(f), (x,), (v,))[0]",
            "that is the gradient"),
           ("def curving(f, x, v):\n    return jax.jvp(jax.grad(f), (x,), (v,))",
            "which part is it"),
           ("def curving(f, x, v):\n    return jax.jvp(jax.grad(f), (x,), (jnp.ones_like(x),))[1]",
            "the gradient of f"),
           ("def curving(f, x, v):\n    g, h = jax.grad(f), 1e-3\n"
            "    return (g(x + h * v) - g(x - h * v)) / (2 * h)", "without differences")],
    right=["def curving(f, x, v):\n    return jax.grad(lambda y: jnp.vdot(jax.grad(f)(y), v))(x)"],
    afterthought="for the price of a few gradients, however many inputs",
    hints=["the gradient is a function of x; how does it change along v?"])
