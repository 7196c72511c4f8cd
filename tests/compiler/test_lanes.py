"""Sums in lanes: one order of additions, whatever LLVM does with the loop."""

import numpy as np
import pytest

from minijax import config, disable_jit, jit, numpy as jnp, tree
from tests.compiler.test_llvm import accumulation, run

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)


def total(op, x, lanes):
    """The reduction of an array in lanes, by NumPy."""
    combine, start = {"add": (np.add, 0), "mul": (np.multiply, 1)}[op]
    partials = np.full(max(lanes, 1), start, x.dtype)
    for first in range(0, x.size, partials.size):
        row = x[first:first + partials.size]
        partials[:row.size] = combine(partials[:row.size], row)
    while partials.size > 1:
        partials = combine(*np.split(partials, 2))
    return combine(x.dtype.type(0), partials[0])


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("op, dtype, size, lanes", [
    ("add", F32, 15, 0), ("add", F32, 16, 16), ("add", F32, 63, 16), ("add", F32, 64, 32),
    ("add", F32, 1000, 32), ("add", F64, 1000, 16), ("add", F64, 17, 8)])
def test_a_sum_has_the_order_of_its_lanes(op, dtype, size, lanes, quick):
    x = np.random.default_rng(size).normal(size=size).astype(dtype)
    with config.disable_most_optimizations(quick):
        _, [result] = run(accumulation(op, dtype, size, "reduce"), x)
    assert result.tobytes() == total(op, x, lanes).tobytes()


def test_sums_in_other_orders_differ():
    x = np.random.default_rng(1000).normal(size=1000).astype(F32)
    assert len({total("add", x, lanes).tobytes() for lanes in (0, 8, 16, 32)}) > 2


@pytest.mark.parametrize("n", [3, 16, 20, 64, 100, 1000])
@pytest.mark.parametrize("f", [
    lambda y: (y > .9).any(), lambda y: (y < 2).all(), lambda y: (y * 50).astype("int8").max(),
    lambda y: (y * 50).astype("int16").sum(), lambda y: y.astype("float16").max(),
    lambda y: ((y > .9).any(), y.sum())])
def test_terms_may_be_narrower_than_the_functions_that_they_come_from(f, n):
    x = jnp.linspace(-8, 9, n)
    for g in (jnp.sin, jnp.exp):  # a called one, and one that is inlined
        with disable_jit():
            expected = f(g(x))
        for found, wanted in zip(*map(tree.leaves, (jit(lambda x, g=g: f(g(x)))(x), expected)),
                                 strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
