"""Loops with nothing between them, over neighbouring axes, are one loop."""

import numpy as np
import pytest

from minijax import jit, nn, numpy as jnp
from minijax.compiler.loop_coalescing import coalesced
from minijax.compiler.loops import For, Load, Store, walk


def outermost(f, *args):
    """The last loop of a function, before and after."""
    *_, loop = (x for x in jit(f).lower(*args)._lowered.kernel.body if isinstance(x, For))
    return loop, coalesced(loop)


def rows(*shape):
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("shape", [(6, 5, 4), (6, 5, 2, 4), (6, 1, 5, 4), (6, 5, 1, 1, 4)])
def test_a_softmax_over_the_last_axis_has_one_loop_over_all_rows(shape):
    _, after = outermost(nn.softmax, rows(*shape))
    assert after.trip_count == np.prod(shape[:-1])
    indices = {each.index for each in walk(after.body) if isinstance(each, Load | Store)
               and len(each.buffer.shape) == len(shape)}
    assert {index[0] for index in indices} == {after.index}


@pytest.mark.parametrize("f, args", [
    (lambda x, y: jnp.exp(x + y).sum(-1), (rows(6, 5, 4), rows(5, 4))),
    (lambda x, y: jnp.exp(x + y[:, None]).sum(-1), (rows(6, 5, 4), rows(6, 4))),
    (lambda x, y: jnp.exp(jnp.swapaxes(x, 0, 1) + y).sum(-1), (rows(6, 5, 4), rows(5, 6, 4)))])
def test_loops_stay_where_an_access_skips_one_of_the_axes(f, args):
    before, after = outermost(f, *args)
    assert after is before and after.trip_count in (5, 6)


def test_loops_stay_where_something_stands_between_them():
    before, after = outermost(lambda x: nn.softmax(x) / x.sum((1, 2), keepdims=True), rows(6, 5, 4))
    assert after is before


def test_one_loop_stays_as_it_is():
    before, after = outermost(nn.softmax, rows(6, 4))
    assert after is before
