"""The exercises of chapter 07, *Reverse derivatives*."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax.notebook.checks import exercise, expect, instead_of, near

CHAPTER = "07_reverse_derivatives"


def _shown(x: Any) -> str:
    return np.array2string(np.asarray(x), precision=4, separator=", ").replace("\n", "")


def _agrees(found: Any, wanted: Any, given: str) -> None:
    expect(near(found, wanted),
           f"for {given} the answer is {_shown(wanted)}, and yours {_shown(found)}")


def grade_cotangents(answer: Any) -> None:
    expect(isinstance(answer, tuple | list) and len(answer) == 2, "a pair: of x, and of y")
    expect(not near(answer, (6, 8)), "the other way round: x changes z by as much as y is")
    expect(not near(answer, (4, 3)), "that is for a cotangent of 1; here it is 2")
    expect(near(answer, (8, 6)), "each factor gets the cotangent times the other factor")


exercise("cotangents", chapter=CHAPTER, grade=grade_cotangents, solution="(8, 6)",
         wrong=[("(6, 8)", "the other way round"), ("(4, 3)", "here it is 2"),
                ("(2, 2)", "the other factor"), ("8", "a pair")])


def grade_cheaper(answer: Any) -> None:
    expect(answer in ("forward", "reverse"), 'the answer is `"forward"` or `"reverse"`')
    expect(answer == "forward", "forwards is a run for each input, backwards one for each result: "
           "how many are there of each?")


exercise("cheaper", chapter=CHAPTER, grade=grade_cheaper, solution='"forward"',
         wrong=[('"reverse"', "how many are there"), ('"jacfwd"', "the answer is"),
                ("True", "the answer is")])


def grade_cumsum_back(cumsum_back: Callable) -> None:
    for ct in ([1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [1.0, 10.0, 100.0], [2.0]):
        x = np.array(ct)
        _agrees(cumsum_back(x), np.cumsum(x[::-1])[::-1], f"the cotangents {ct}")


exercise(
    "cumsum_back", chapter=CHAPTER, grade=grade_cumsum_back,
    solution="""
def cumsum_back(ct):
    return np.cumsum(ct[::-1])[::-1]
""",
    wrong=[("def cumsum_back(ct):\n    return np.cumsum(ct)", "the answer is"),
           ("def cumsum_back(ct):\n    return np.cumsum(ct[::-1])", "the answer is"),
           ("def cumsum_back(ct):\n    return np.diff(ct, prepend=0.0)", "the answer is")],
    hints=["element k takes part in result k, and in all that follow"])


def grade_cumsum_p(cumsum_p: Any) -> None:
    from minijax.notebook.library import library
    mini = library.module
    expect(callable(getattr(cumsum_p, "impl", None)), "`mini.cumsum_p` is a Primitive with `impl`")
    x = np.array([1.0, -2.0, 0.5])
    found = cumsum_p.impl(x)
    expect(isinstance(found, list), "a rule gives a list, here of one array")
    _agrees(found[0], np.cumsum(x), "impl of [1, -2, 0.5]")
    expect(callable(getattr(cumsum_p, "jvp", None)),
           "now the rule `jvp`: what becomes of a tangent?")
    way = np.array([1.0, 1.0, 2.0])
    _agrees(mini.jvp(cumsum_p, (x,), (way,))[1], np.cumsum(way), "the tangent [1, 1, 2]")
    expect(callable(getattr(cumsum_p, "transpose", None)), "now the rule `transpose`")
    weights = np.array([1.0, 10.0, 100.0])
    _agrees(mini.grad(lambda x: mini.sum(cumsum_p(x) * weights))(x), [111, 110, 100],
            "the gradient of the running sums, weighted by 1, 10 and 100,")
    with instead_of(TypeError, "Tracer", "the gradient is right, and a gradient of it is not: "
                    "there the cotangent is a tracer, which NumPy does not know; use operations "
                    "of `mini`"):
        twice = mini.grad(lambda x: mini.sum(mini.grad(
            lambda x: mini.sum(cumsum_p(x) * cumsum_p(x)))(x) * weights))(x)
    lower = np.tril(np.ones((3, 3)))
    _agrees(twice, 2 * lower.T @ lower @ weights, "a gradient of a gradient")


_MINI = """
from minijax.notebook.library import library
library.begin("07")
from mini import Primitive, dot, zero
"""
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
    "cumsum_p", chapter=CHAPTER, grade=grade_cumsum_p, given=_MINI, solution=_cumsum_text(),
    wrong=[(_cumsum_text(impl="np.cumsum(x)"), "a list"), (_cumsum_text("t"), "the tangent"),
           (_cumsum_text(back="cumsum_p(ct)"), "the gradient of the running sums"),
           (_cumsum_text(back="np.cumsum(ct[::-1])[::-1]"), "which NumPy does not know"),
           (_cumsum_text(rest=""), "now the rule `transpose`")])


def _bend(x: Any) -> Any:
    return jnp.stack([x[0] * x[1], jnp.sin(x[2]), x[1] ** 2 + x[2]])


def grade_both_ways(both_ways: Callable) -> None:
    x, t, c = (jnp.array(v) for v in ([1.0, 2.0, 0.5], [1.0, -1.0, 2.0], [2.0, 1.0, -1.0]))
    with instead_of(TypeError, "tuple", "the function that `vjp` gives returns a tuple: one "
                    "cotangent for each argument"):
        found = both_ways(_bend, x, t, c)
    expect(isinstance(found, tuple | list) and len(found) == 2, "a pair of numbers is asked for")
    expect(all(np.shape(part) == () for part in found),
           "each is one number: the sum of the products of two vectors")
    wanted = float(c @ jax.jvp(_bend, (x,), (t,))[1])
    _agrees(found[0], wanted, "the first, by jvp,")
    _agrees(found[1], wanted, "the second, by vjp,")


exercise(
    "both_ways", chapter=CHAPTER, grade=grade_both_ways,
    solution="""
def both_ways(f, x, t, c):
    _, back = jax.vjp(f, x)
    return c @ jax.jvp(f, (x,), (t,))[1], back(c)[0] @ t
""",
    wrong=[("def both_ways(f, x, t, c):\n    return jax.jvp(f, (x,), (t,))[1] @ c",
            "a pair of numbers"),
           ("def both_ways(f, x, t, c):\n    return c @ jax.jvp(f, (x,), (t,))[1], "
            "jax.vjp(f, x)[1](c) @ t", "returns a tuple"),
           ("def both_ways(f, x, t, c):\n    return c * jax.jvp(f, (x,), (t,))[1], "
            "jax.vjp(f, x)[1](c)[0] * t", "each is one number"),
           ("def both_ways(f, x, t, c):\n    return c @ jax.jvp(f, (x,), (t,))[1], "
            "jax.vjp(f, x)[1](t)[0] @ c", "the second, by vjp"),
           ("def both_ways(f, x, t, c):\n    return c @ f(t), jax.vjp(f, x)[1](c)[0] @ t",
            "the first, by jvp")])


def grade_jacobian(jacobian: Callable) -> None:
    def f(x: Any) -> Any:
        return jnp.stack([x[0] * x[1], x[1] ** 2, jnp.sin(x[0]), x[0]])

    x = jnp.array([2.0, 3.0])
    with instead_of(ValueError, "argument to VJP function", "a cotangent has the shape of a "
                    "result, here of 4 numbers: so how large is the `eye`?"):
        found = jacobian(f, x)
    wanted = jax.jacfwd(f)(x)
    expect(not isinstance(found, tuple) and np.ndim(found) != 3,
           "the function that `vjp` gives returns a tuple: one cotangent for each argument")
    expect(np.shape(found) != (2, 4),
           "that is a row for each input; a row for each result is wanted")
    expect(np.shape(found) == (4, 2), f"for 4 results of 2 inputs the shape is (4, 2), "
           f"not {np.shape(found)}")
    _agrees(found, wanted, "a function of 2 inputs at [2, 3]")


exercise(
    "jacobian", chapter=CHAPTER, grade=grade_jacobian,
    solution="""
def jacobian(f, x):
    out, back = jax.vjp(f, x)
    return jax.vmap(back)(jnp.eye(len(out)))[0]
""",
    wrong=[("def jacobian(f, x):\n    out, back = jax.vjp(f, x)\n"
            "    return jax.vmap(back)(jnp.eye(len(x)))[0]", "how large is"),
           ("def jacobian(f, x):\n    out, back = jax.vjp(f, x)\n"
            "    return jax.vmap(back)(jnp.eye(len(out)))", "returns a tuple"),
           ("def jacobian(f, x):\n    out, back = jax.vjp(f, x)\n"
            "    return jax.vmap(back)(jnp.eye(len(out)))[0].T", "a row for each result"),
           ("def jacobian(f, x):\n    out, back = jax.vjp(f, x)\n"
            "    return back(jnp.ones(len(out)))[0]", "the shape is (4, 2)"),
           ("def jacobian(f, x):\n    out, back = jax.vjp(f, x)\n"
            "    return jax.vmap(back)(2 * jnp.eye(len(out)))[0]", "the answer is")])


def grade_numbers_kept(answer: Any) -> None:
    expect(isinstance(answer, int), "a whole number")
    expect(answer != 2, "the product needs both of its factors: x, and sin(exp(x))")
    expect(answer != 3, "one for the sine, one for the exponential, and for the product?")
    expect(answer == 4, "exp keeps its result, sin a cosine, and the product two factors")


exercise("numbers_kept", chapter=CHAPTER, grade=grade_numbers_kept, solution="4",
         wrong=[("2", "both of its factors"), ("3", "for the product"), ("6", "keeps its result"),
                ('"4"', "a whole number")])


def grade_descend(descend: Callable) -> None:
    def f(x: Any) -> Any:
        return jnp.sum((x - 1.0) ** 2)

    start = jnp.array([3.0, -1.0])
    one = descend(f, start, 0.25, 1)
    expect(not near(one, [4.0, -2.0]), "that goes uphill: subtract the gradient")
    _agrees(one, [2.0, 0.0], "(x - 1)², from [3, -1] with rate 0.25, after one step")
    _agrees(descend(f, start, 0.25, 2), [1.5, 0.5], "the same after two steps")
    _agrees(descend(f, start, 0.25, 0), start, "no step at all")


exercise(
    "descend", chapter=CHAPTER, grade=grade_descend,
    solution="""
def descend(f, x, rate, steps):
    for _ in range(steps):
        x = x - rate * jax.grad(f)(x)
    return x
""",
    wrong=[("def descend(f, x, rate, steps):\n    for _ in range(steps):\n"
            "        x = x + rate * jax.grad(f)(x)\n    return x", "uphill"),
           ("def descend(f, x, rate, steps):\n    g = jax.grad(f)(x)\n"
            "    return x - steps * rate * g", "after two steps"),
           ("def descend(f, x, rate, steps):\n    for _ in range(steps + 1):\n"
            "        x = x - rate * jax.grad(f)(x)\n    return x", "after one step")])
