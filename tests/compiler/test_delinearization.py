"""Delinearization: a loop over merged axes is a nest of loops, without divisions inside."""

from dataclasses import replace
from functools import reduce

import numpy as np
import pytest

from minijax import jit, numpy as jnp
from minijax.compiler.builder import Builder
from minijax.compiler.delinearization import delinearize
from minijax.compiler.loops import Buffer, For, Let, walk
from tests.running_text import run_text

X, Y = (np.random.default_rng(n).normal(size=(n, n + 2)).astype(np.float32) for n in (6, 9))
MERGED = {
    "kron": lambda np, x, y: np.kron(x, y),
    "tile": lambda np, x, y: np.tile(y, (2, 3)) * 2,
    "repeat": lambda np, x, y: np.repeat(x, 5, axis=1) + 1,
    "pairs": lambda np, x, y: np.stack([x, x * 2], -1).reshape(6, 16) + 1,
    "triples": lambda np, x, y: np.repeat(y, 3, axis=1) * 2,
    "outer": lambda np, x, y: np.outer(x, y).reshape(-1) - 1,
    "heads": lambda np, x, y: np.transpose(y.reshape(9, 11), (1, 0)).reshape(11, 9) * np.ones(11)[
        :, None],
    "patches": lambda np, x, y: np.transpose(
        y[:8, :10].reshape(2, 4, 2, 5), (0, 2, 1, 3)).reshape(4, 20) * 3,
}


def kernels(f):
    """The kernel of a function, before and after."""
    kernel = jit(lambda x, y: f(jnp, x, y)).lower(X, Y)._lowered.kernel
    return kernel, replace(kernel, body=delinearize(kernel.body))


def divisions(kernel):
    """The divisions in innermost loops."""
    return [each for loop in walk(kernel.body) if isinstance(loop, For)
            and not any(isinstance(each, For) for each in walk(loop.body))
            for each in loop.body if isinstance(each, Let) and each.op in ("div", "rem")
            and each.target.dtype == np.int64]


@pytest.mark.parametrize("name", sorted(set(MERGED) - {"heads"}))
def test_quotient_and_remainder_become_indices_of_loops(name):
    before, after = kernels(MERGED[name])
    assert divisions(before) and not divisions(after)
    [found], [wanted] = run_text(after, [X, Y]), run_text(before, [X, Y])
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", MERGED)
def test_the_numbers_are_those_of_numpy(name):
    f = MERGED[name]
    found = jit(lambda x, y: f(jnp, x, y))(X, Y)
    np.testing.assert_allclose(found, f(np, X, Y), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("trip_counts, n, sizes", [
    ([5, 12], 60, [12]), ([61], 61, [12]), ([20], 60, [3]), ([60], 60, [60]), ([60], 60, [12, 10])])
def test_it_is_one_size_that_divides_the_trip_count(trip_counts, n, sizes):
    b, out = Builder(), Buffer("out", np.dtype(np.int64), (n,), "output")
    with b.loop(n, vectorize="parallel") as i:
        b.store(out, (i,), reduce(b.add, (b.div(i, size) for size in sizes)))
    loops = [each for each in walk(delinearize(b.scopes[0].statements)) if isinstance(each, For)]
    assert [loop.trip_count for loop in loops] == trip_counts


@pytest.mark.parametrize("size, trip_counts", [(8, [64]), (32, [2, 32])])
def test_functions_keep_remainders_by_less_than_a_vector(size, trip_counts):
    b = Builder()
    x, y, out = (Buffer(name, np.dtype(np.float32), (n,), role) for name, n, role in (
        ("x", 64, "input"), ("y", size, "input"), ("out", 64, "output")))
    with b.loop(64, vectorize="parallel") as i:
        b.store(out, (i,), b.exp(b.sub(b.load(x, (i,)), b.load(y, (b.rem(i, size),)))))
    loops = [each for each in walk(delinearize(b.scopes[0].statements)) if isinstance(each, For)]
    assert [loop.trip_count for loop in loops] == trip_counts
