"""Flags that forbid promotion forbid what the user writes, as in JAX, and nothing inside of it.

Every public function, with the arguments of its table: where JAX has a result, so has minijax, and
the numbers are those without the flag. What JAX refuses is recorded: a word for each flag and case.
`LARGE=1` computes the numbers of all cases; otherwise those of one function in some.
"""

import itertools
import os
import warnings
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
    plain = [staged(lib, f, case) for case in chosen]

    def word(result: Any, before: Any) -> str:
        return "?" if isinstance(before, Refused) else (
            result.kinds[0] if isinstance(result, Refused) else "-")

    def under(flag: Callable) -> list[str]:
        with flag(lib):
            return [word(staged(lib, f, case), before)
                    for case, before in zip(chosen, plain, strict=True)]
    return " ".join(itertools.chain(*map(under, FLAGS.values())))


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
    row for row in NAMES if LARGE or zlib.crc32(".".join(row).encode()) % 16 == 0],
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
