"""Transpose folding: products read and write transposed sides."""

import itertools

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp


def primitives(f, *args):
    return [str(eqn.primitive) for eqn in
            minijax.jit(f).lower(*args)._lowered.simplified.jaxpr.eqns]


def whole(*shape):
    return np.random.default_rng(1).integers(-4, 5, shape).astype(np.float32)


@pytest.mark.parametrize("left, right, out", list(itertools.product([False, True], repeat=3)))
def test_transposes_around_a_product_disappear(left, right, out):
    def f(x, y):
        z = (x.T if left else x) @ (y.T if right else y)
        return z.T if out else z
    x, y = whole(*(20, 30)[::-1 if left else 1]), whole(*(30, 40)[::-1 if right else 1])
    assert primitives(f, x, y) == ["dot_general"]
    np.testing.assert_array_equal(minijax.jit(f)(x, y), np.asarray(f(x, y)))


def test_batches_stay_in_front():
    def f(x, y):
        return jnp.swapaxes(jnp.swapaxes(x, 1, 2) @ y, 1, 2)
    x, y = whole(3, 12, 10), whole(3, 12, 11)
    assert primitives(f, x, y) == ["dot_general"]
    np.testing.assert_array_equal(minijax.jit(f)(x, y), np.asarray(f(x, y)))


def test_a_transpose_that_is_more_than_that_stays():
    def f(x, y):
        return jnp.transpose(jnp.tensordot(x, y, 1), (1, 0, 2))
    x, y = whole(4, 5, 10), whole(10, 6)
    assert "transpose" in primitives(f, x, y)
    np.testing.assert_array_equal(minijax.jit(f)(x, y), np.asarray(f(x, y)))


def test_a_product_that_others_read_is_not_computed_twice():
    def f(x, y):
        z = x @ y
        return z, z.T
    assert primitives(f, whole(10, 10), whole(10, 10)) == ["dot_general", "transpose"]
