"""Loops over neighbouring axes are one loop."""

from dataclasses import replace
from functools import reduce

import numpy as np
import pytest

from minijax import jit, nn, numpy as jnp
from minijax.compiler.builder import Builder
from minijax.compiler.index_set_splitting import split_loops
from minijax.compiler.loop_coalescing import coalesce_loops, delinearize
from minijax.compiler.loops import Buffer, For, Let, walk
from tests.running_text import run_text


def rows(*shape):
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def kernels(f, *args):
    """The kernel of a function, before and after."""
    kernel = jit(f).lower(*args)._lowered.kernel
    return kernel, replace(kernel, body=coalesce_loops(split_loops(kernel.body)))


def counts(kernel):
    """The trip counts of the outermost loops."""
    return [each.trip_count for each in kernel.body if isinstance(each, For)]


@pytest.mark.parametrize("shape", [(6, 5, 4), (6, 5, 2, 4), (6, 1, 5, 4), (6, 5, 1, 1, 4)])
def test_a_softmax_over_the_last_axis_has_one_loop_over_all_rows(shape):
    x = rows(*shape)
    before, after = kernels(nn.softmax, x)
    assert counts(before) == [6] and counts(after) == [np.prod(shape[:-1])]
    [expected] = run_text(before, [x])
    np.testing.assert_allclose(jit(nn.softmax)(x), expected, rtol=1e-6)


@pytest.mark.parametrize("f, args", [
    (lambda x, y: jnp.exp(x + y).sum(-1), (rows(6, 5, 4), rows(5, 4))),
    (lambda x, y: jnp.exp(x + y[:, None]).sum(-1), (rows(6, 5, 4), rows(6, 4))),
    (lambda x, y: jnp.exp(jnp.swapaxes(x, 0, 1) + y).sum(-1), (rows(6, 5, 4), rows(5, 6, 4))),
    (lambda x, y: nn.softmax(x) / x.sum((1, 2), keepdims=True) + y, (rows(6, 5, 4), rows(6, 5, 4))),
    (lambda x, y: jnp.exp(x).sum(-1) * jnp.arange(6)[:, None] + y, (rows(6, 5, 4), rows(6, 5)))])
def test_loops_stay_where_an_access_skips_an_axis_or_an_index_is_a_number(f, args):
    before, after = kernels(f, *args)
    assert counts(before)[-1] == counts(after)[-1] in (5, 6)


def test_rows_of_a_part_of_an_array_are_one_stretch():
    x = rows(40, 20, 3)
    f = lambda x: jnp.pad(x, ((0, 0), (2, 3), (0, 0)))  # noqa: E731
    before, after = kernels(f, x)
    [loop] = (each for each in after.body if isinstance(each, For))
    assert [each.trip_count for each in loop.body if isinstance(each, For)] == [6, 60, 9]
    np.testing.assert_array_equal(jit(f)(x), np.pad(x, ((0, 0), (2, 3), (0, 0))))


@pytest.mark.parametrize("mode", ["edge", "reflect", "symmetric", "wrap"])
def test_images_are_padded_as_by_numpy(mode):
    x, widths = rows(40, 20, 3), ((1, 2), (3, 4), (0, 0))
    np.testing.assert_array_equal(jit(lambda x: jnp.pad(x, widths, mode))(x),
                                  np.pad(x, widths, mode))


# -- delinearization -------------------------------------------------------------------------------

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


def nests(f):
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
    before, after = nests(MERGED[name])
    assert divisions(before) and not divisions(after)
    [found], [wanted] = run_text(after, [X, Y]), run_text(before, [X, Y])
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", MERGED)
def test_the_numbers_are_those_of_numpy(name):
    f = MERGED[name]
    np.testing.assert_allclose(jit(lambda x, y: f(jnp, x, y))(X, Y), f(np, X, Y), rtol=1e-6)


@pytest.mark.parametrize("trip_counts, n, sizes", [
    ([5, 12], 60, [12]), ([61], 61, [12]), ([20], 60, [3]), ([60], 60, [60]), ([60], 60, [12, 10])])
def test_it_is_one_size_that_divides_the_trip_count(trip_counts, n, sizes):
    b, out = Builder(), Buffer("out", np.dtype(np.int64), (n,), "output")
    with b.loop(n, vectorize="parallel") as i:
        b.store(out, (i,), reduce(b.add, (b.div(i, size) for size in sizes)))
    loops = [each for each in walk(delinearize(b.scopes[0].statements)) if isinstance(each, For)]
    assert [loop.trip_count for loop in loops] == trip_counts
