"""Loop unrolling: the same numbers by copies of a short loop's body."""

import numpy as np
import pytest

from minijax import jit, numpy as jnp
from minijax.compiler.builder import Builder
from minijax.compiler.loop_unrolling import MAX_COPIED, MAX_ITERATIONS, unroll_loops
from minijax.compiler.loops import Buffer, For, Kernel, walk
from tests.running_text import run_text

F32 = np.dtype(np.float32)
X = np.random.default_rng(0).normal(size=(40,)).astype(F32)


def summed(count, terms=1):
    """A kernel that adds up so many elements, and the same with short loops unrolled."""
    b = Builder()
    x, y = Buffer("x", F32, (40,), "input"), Buffer("y", F32, (), "output")
    total = b.variable(b.const(0., F32))
    with b.loop(count, 2) as i:
        for k in range(terms):
            value = b.load(x, (b.add(i, k),))
            with b.when(b.gt(value, 0.)):
                b.assign(total, b.add(b.read(total), value))
    b.store(y, (), b.read(total))
    body = tuple(b.scopes[0].statements)
    return [Kernel("k", (x,), (y,), (), (), 0, {}, each) for each in (body, unroll_loops(body))]


@pytest.mark.parametrize("count, terms, is_unrolled", [
    (4, 1, True), (MAX_ITERATIONS + 2, 1, True), (MAX_ITERATIONS + 3, 1, False),
    (12, 1, True), (12, MAX_COPIED // 10, False)])
def test_a_short_loop_becomes_copies_of_its_body(count, terms, is_unrolled):
    whole, unrolled = summed(count, terms)
    assert any(isinstance(each, For) for each in walk(unrolled.body)) != is_unrolled
    np.testing.assert_array_equal(run_text(unrolled, [X]), run_text(whole, [X]))
    total = F32.type(0)
    for i in range(2, count):
        for value in X[i:i + terms]:
            total += max(value, F32.type(0))
    np.testing.assert_array_equal(run_text(unrolled, [X]), [total])


@pytest.mark.parametrize("rows", [2, 3, 8])
def test_short_sums_inside_of_a_loop_are_those_of_numpy(rows):
    x = np.random.default_rng(rows).normal(size=(rows, 1000)).astype(F32)
    np.testing.assert_allclose(jit(lambda x: (x * 2).sum(0))(x), (x * 2).sum(0), rtol=1e-6)
    np.testing.assert_array_equal(jit(lambda x: x.T.max(1))(x), x.max(0))
    np.testing.assert_array_equal(jit(lambda x: jnp.argmax(x, 0))(x), x.argmax(0))
