"""Flags that forbid promotion forbid what the user writes, as in JAX, and nothing inside of it.

Every public function, with the arguments of its table: where JAX has a result, so has minijax, and
the numbers are those without the flag. What JAX refuses is recorded: a word for each flag and case.
`LARGE=1` computes the numbers of all cases; otherwise those of one function in some.
"""

import importlib
import itertools
import os
import re
import zlib
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import minijax
import minijax.image
import minijax.scipy.cluster.vq
import minijax.scipy.linalg
import minijax.scipy.stats
from tests import flag_expressions
from tests.recorded import Refused
from tests.test_public_functions import NAMES, SOURCES, TABLE, attempt, cases, function_of, leaves

LARGE = bool(os.environ.get("LARGE"))
FLAGS: dict[str, Callable] = {"rank": lambda lib: lib.numpy_rank_promotion("raise"),
                              "dtype": lambda lib: lib.numpy_dtype_promotion("strict")}

# Where JAX refuses its own promotion, of arguments that promise none.
REFUSED_INSIDE_JAX = {"numpy.trapezoid": "dx of one axis times values of two",
                      "scipy.special.hyp1f1": "a bool and a number",
                      "scipy.special.sph_harm_y": "whole numbers and angles, which must differ"}
REFUSED_INSIDE_JAX |= {f"nn.{name}": "of integers, which it divides by floats" for name in (
    "celu elu hard_sigmoid hard_silu hard_swish hard_tanh leaky_relu log1mexp log_softmax mish "
    "relu6 selu sparse_plus sparse_sigmoid squareplus").split()}
REFUSED_INSIDE_JAX |= {f"random.{name}": "parameters of fewer axes than the shape" for name in (
    "bernoulli double_sided_maxwell lognormal pareto t truncated_normal").split()}


def staged(lib: Any, f: Callable, case: Any) -> Any:
    """The types of a result: what is refused is refused before any number is computed."""
    return attempt(lambda: lib.eval_shape(
        lambda *xs: leaves(lib, case.run(f, case.with_arrays(xs), lib)), *case.arrays()))


def words(lib: Any, f: Callable, chosen: list) -> str:
    """For each flag and case: the class of the error, - where there is none, ? without the flag."""
    def word(flag: Callable, case: Any) -> str:
        with flag(lib):
            result = staged(lib, f, case)
        if not isinstance(result, Refused):
            return "-"
        return "?" if isinstance(staged(lib, f, case), Refused) else result.kinds[0]
    return " ".join(itertools.starmap(word, itertools.product(FLAGS.values(), chosen)))


def agree(ours: str, theirs: str, name: str) -> bool:
    return all(x == y or "?" in (x, y) or (name in REFUSED_INSIDE_JAX and x == "-")
               for x, y in zip(ours.split(), theirs.split(), strict=True))


@pytest.mark.parametrize(("module", "name"), NAMES, ids=map(".".join, NAMES))
def test_the_flags_refuse_what_they_refuse_in_jax(module, name, answers):
    chosen = cases(module, name, TABLE[module][name])
    ours = words(minijax, function_of(minijax, module, name), chosen)

    def compare(theirs: str) -> None:
        assert agree(ours, theirs, f"{module}.{name}"), (ours, theirs, chosen)
    answers.check(answers.key(SOURCES, "flags", module, name, chosen), compare,
                  lambda: words(jax, function_of(jax, module, name), chosen))


def same(x: Any, y: Any) -> None:
    """The same to the bit, type and all."""
    for one, other in zip(leaves(minijax, x), leaves(minijax, y), strict=True):
        assert getattr(one, "aval", type(one)) == getattr(other, "aval", type(other))
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


@pytest.mark.parametrize(("module", "name"), [
    row for row in NAMES if LARGE or zlib.crc32(".".join(row).encode()) % 48 == 0],
    ids=str)
def test_a_result_under_a_flag_is_that_without(module, name):
    f = function_of(minijax, module, name)
    for case in cases(module, name, TABLE[module][name]):
        plain = attempt(lambda case=case: leaves(minijax, case.run(f, case.args, minijax)))
        for flag in FLAGS.values():
            with flag(minijax):
                result = attempt(lambda case=case: leaves(minijax, case.run(f, case.args, minijax)))
            if not isinstance(result, Refused):
                same(result, plain)


# ── What is in no table, and transformed functions ───────────────────────────────────────────

GRID = "jnp.cos(jnp.arange(24.)).reshape(2, 3, 4)"
ATTENTION = "jnp.cos(jnp.arange(48.)).reshape(1, 3, 4, 4)"
def module_of(lib: Any, name: str) -> Any:
    name = name if name in flag_expressions.OTHERS else f"scipy.stats.{name}"
    return importlib.import_module(f"{lib.__name__}.{name}")


# Where JAX promotes its own numbers, as in the tables above; and what only one of both takes.
INSIDE_JAX = re.compile(
    r"poisson: entropy|uniform\(v\)\(key,\(2,3\)\)|solve\(b,v\)|trapezoid\(w,v\)|"
    r"map_coordinates\(i|RegularGridInterpolator\(\(n|fweights|standardize\(i\)")


@pytest.mark.parametrize("name", flag_expressions.MODULES)
def test_functions_without_a_table(name, answers):
    calls = flag_expressions.expressions(minijax, name)

    def words(lib: Any) -> list[str]:
        """For each call: - or the class of the error, for each flag; ? where one has no flag."""
        module = module_of(lib, name)
        known: dict[str, Any] = {"jax": lib, "jnp": lib.numpy}
        exec(flag_expressions.ARRAYS, known)
        known = {x: getattr(module, x) for x in dir(module) if x[0] != "_"} | known

        def word(call: str) -> str:
            def result() -> Any:
                return attempt(lambda: lib.eval_shape(
                    lambda a: leaves(lib, eval(call, known)), known["a"]))
            if isinstance(result(), Refused):
                return "?"
            out = []
            for flag in FLAGS.values():
                with flag(lib):
                    out.append(result())
            return " ".join(x.kinds[0] if isinstance(x, Refused) else "-" for x in out)
        return list(map(word, calls))
    ours = words(minijax)

    def compare(theirs: list[str]) -> None:
        different = [(f"{name}: {call}", x, y) for call, x, y in zip(
            calls, ours, theirs, strict=True) if x != y and "?" not in (x, y)]
        assert not [row for row in different if not INSIDE_JAX.search(row[0])], different
        assert all(x == "- -" for _, x, _ in different), different
    answers.check(answers.key("flags", name, calls), compare, lambda: words(jax))


EXPRESSIONS = [
    *(f"jax.image.resize({GRID}, (2, 5, 2), '{method}')" for method in (
        "nearest", "linear", "lanczos3", "cubic", "cubic-pytorch", "area")),
    f"jax.image.scale_and_translate({GRID}, (2, 3, 6), (1, 2), jnp.array([.7, 1.5]), "
    "jnp.array([.3, 0.]), 'cubic')",
    f"jax.nn.dot_product_attention(*[{ATTENTION}] * 3, is_causal=True)",
    f"jax.nn.dot_product_attention(*[{ATTENTION}] * 3, bias=jnp.ones((3, 3)))",
    f"jax.nn.dot_product_attention(*[{ATTENTION}] * 3, mask=jnp.ones((3, 3), bool))",
    "jax.grad(lambda x: jax.nn.dot_product_attention(x, x, x, is_causal=True).sum())("
    f"{ATTENTION})",
    "jnp.quantile(jnp.arange(6.).reshape(2, 3), .3, 1, weights=jnp.array([1., 2., 3.]), "
    "method='inverted_cdf')",
    "jnp.polyfit(jnp.arange(5.), jnp.arange(5.) ** 2, 2, w=jnp.arange(5.), cov=True)",
    "jnp.gradient(jnp.arange(12.).reshape(3, 4) ** 2, jnp.array([0., 1., 3.]), axis=0)",
    "jax.vmap(jnp.unpackbits)(jnp.arange(6, dtype='uint8').reshape(2, 3))",
    "jnp.add.reduceat(jnp.arange(6).reshape(3, 2), jnp.array([0, 2]))",
    "jax.scipy.cluster.vq.vq(jnp.arange(6.).reshape(3, 2), jnp.arange(4.).reshape(2, 2))",
    "jax.scipy.linalg.rsf2csf(*jax.scipy.linalg.schur(jnp.cos(jnp.arange(9.)).reshape(3, 3)))",
    "jax.scipy.linalg.sqrtm(jnp.cos(jnp.arange(9.)).reshape(3, 3) + 3 * jnp.eye(3))",
    "jax.vmap(jax.lax.linalg.tridiagonal_solve, (0, None, 0, None))("
    "jnp.arange(6.).reshape(2, 3), jnp.ones(3) * 9, jnp.arange(6.).reshape(2, 3), "
    "jnp.ones((3, 1)))",
    "jax.nn.initializers.orthogonal()(jax.random.key(3), (4, 3))",
    "jax.nn.initializers.delta_orthogonal()(jax.random.key(3), (3, 2, 3))",
    "jnp.place(jnp.arange(4.), jnp.array([1, 0, 1, 0]), jnp.array([8., 9.]), inplace=False)",
    "jax.scipy.stats.gaussian_kde(jnp.array([-1., 0., 2., 2.5])).logpdf(jnp.arange(3.))",
    "jax.scipy.special.owens_t(jnp.arange(3), jnp.arange(3))",
    "jax.jit(jnp.cross)(jnp.arange(3), jnp.arange(3.))", "jax.vmap(jnp.add)(jnp.ones(2), 1 > 0)",
    "jax.vmap(jnp.dot)(jnp.ones((2, 3)), jnp.arange(6).reshape(2, 3))",
    "jax.grad(lambda x: (x * jnp.ones((2, 3))).sum())(jnp.ones(3))",
    "jnp.vectorize(lambda x, y: x * y)(jnp.ones((2, 3)), jnp.ones(3))",
    "jnp.concatenate([jnp.arange(2), jnp.ones(2)], dtype=float)",
    "jnp.ones(3).at[0].set(jnp.int32(1))", "jnp.ones((2, 3)) + jnp.ones(3)",
    "jnp.linalg.solve(jnp.stack([jnp.eye(2)] * 2), jnp.ones(2))",
    "jax.jacfwd(lambda x: x[0])([jnp.ones(2), jnp.ones(2, 'float16')])",
    "jax.jacrev(lambda x: [x, x.astype('float16')])(jnp.ones(2))",
]


def evaluated(lib: Any, expression: str) -> Any:
    return attempt(lambda: leaves(lib, eval(expression, {"jax": lib, "jnp": lib.numpy})))


@pytest.mark.parametrize("flag", FLAGS)
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expressions(expression, flag, answers):
    def word(lib: Any) -> str:
        with FLAGS[flag](lib):
            result = evaluated(lib, expression)
        if lib is minijax and not isinstance(result, Refused):
            same(result, evaluated(lib, expression))
        return result.kinds[0] if isinstance(result, Refused) else "-"
    ours = word(minijax)

    def compare(theirs: str) -> None:
        assert ours == theirs
    answers.check(answers.key("flags", flag, expression), compare, lambda: word(jax))


@pytest.mark.parametrize("expression", ["jax.image.resize(x, (2, 5, 2), 'cubic')",
                                        "jnp.unwrap(x, axis=1)", "jax.nn.softmax(x)",
                                        "jnp.gradient(x, axis=1)", "jnp.quantile(x, .3, axis=1)",
                                        "jnp.linalg.norm(x, axis=(0, 1))", "jnp.var(x, 1)"])
def test_derivatives_and_batches_under_the_flags_are_those_without(expression):
    x = minijax.numpy.cos(minijax.numpy.arange(24.0).reshape(2, 3, 4))
    f = eval(f"lambda x: {expression}", {"jax": minijax, "jnp": minijax.numpy})
    def transformed() -> list:
        return [minijax.vmap(f)(minijax.numpy.stack([x, x + 1])),
                minijax.jvp(f, (x,), (x,)), minijax.vjp(f, x)[1](f(x))]
    plain = transformed()
    for flag in FLAGS.values():
        with flag(minijax):
            same(transformed(), plain)
