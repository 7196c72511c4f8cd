"""Loops over neighbouring axes are one loop."""

from dataclasses import replace

import numpy as np
import pytest

from minijax import jit, nn, numpy as jnp
from minijax.compiler.index_set_splitting import split_loops
from minijax.compiler.loop_coalescing import coalesce_loops
from minijax.compiler.loops import For
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
