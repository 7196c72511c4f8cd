"""Running totals and their derivatives, as JAX has them."""

import jax
import numpy as np
import pytest

import minijax
from minijax import lax

X = np.random.default_rng(1).standard_normal((3, 5, 2)).astype(np.float32)
NAMES = ["cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("name", NAMES)
def test_running_totals_are_those_of_jax(name, axis, reverse):
    ours, theirs = (np.asarray(getattr(m, name)(X, axis, reverse)) for m in (lax, jax.lax))
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
    compiled = minijax.jit(lambda x: getattr(lax, name)(x, axis, reverse))(X)
    np.testing.assert_allclose(np.asarray(compiled), theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_derivatives_of_running_totals_are_those_of_jax(name, reverse):
    weights = np.cos(np.arange(5, dtype=np.float32))
    for x in (X[0, :, 0], np.float32([1, 0, 2, 0, 3]), np.float32([1, 3, 2, 5, 4])):
        def loss(m, x):
            total = getattr(m.lax, name)(x, 0, reverse)
            return m.lax.reduce_sum(m.lax.mul(total, weights), (0,))
        ours, theirs = (m.grad(lambda x, m=m: loss(m, x))(x) for m in (minijax, jax))
        np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("call", [
    lambda lax: lax.cumsum(X, 3), lambda lax: lax.cumsum(X, -1), lambda lax: lax.cumsum(X > 0),
    lambda lax: lax.cummax(1.), lambda lax: lax.cummax(X > 0),
    lambda lax: lax.cummax(np.float32([1, np.nan, 2])), lambda lax: lax.cumsum(np.arange(4)),
    lambda lax: lax.cumsum(np.full(3, 100, np.uint8)),
    lambda lax: lax.cumprod(np.zeros((0, 2), np.float32))])
def test_types_and_refusals_are_those_of_jax(call, agrees_closely):
    agrees_closely(call, 1e-6)


def test_log_sums_of_infinities_are_infinite_and_not_nan():
    x = np.float32([-np.inf, -np.inf, 1, np.inf, np.inf])
    np.testing.assert_allclose(np.asarray(lax.cumlogsumexp(x)), np.asarray(jax.lax.cumlogsumexp(x)))
