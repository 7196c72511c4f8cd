"""slice, pad, concatenate and split agree with JAX, and refuse what it refuses."""

import itertools

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import lax

X = np.arange(12, dtype=np.float32).reshape(3, 4)
V = np.arange(5, dtype=np.int32)
ZERO, NINE = np.float32(0), np.int32(9)


@pytest.mark.parametrize("f", [
    lambda lax: lax.slice(X, (0, 1), (3, 4)),
    lambda lax: lax.slice(X, (0, 1), (3, 4), (2, 3)),
    lambda lax: lax.slice(V, (5,), (5,)),
    lambda lax: lax.slice_in_dim(X, 1, -1, axis=1),
    lambda lax: lax.slice_in_dim(X, None, None, 2),
    lambda lax: lax.index_in_dim(X, -1, 1),
    lambda lax: lax.index_in_dim(X, 2, 0, keepdims=False),
    lambda lax: lax.pad(X, ZERO, [(1, 2, 0), (0, 0, 1)]),
    lambda lax: lax.pad(V, NINE, [(-1, 2, 1)]),
    lambda lax: lax.pad(V, NINE, [(2, -3, 3)]),
    lambda lax: lax.pad(V[:0], NINE, [(1, 1, 5)]),
    lambda lax: lax.concatenate([X, X[:, :1]], 1),
    lambda lax: lax.concatenate([V], 0),
    lambda lax: lax.split(V, (1, 0, 4)),
    lambda lax: lax.split(X, (3, 1), -1),
])
def test_results_are_those_of_jax(agrees, f):
    agrees(f)


@pytest.mark.parametrize("f", [
    lambda lax: lax.index_in_dim(X, 7),
    lambda lax: lax.pad(X, 1, [(0, 0, 0)] * 2),
    lambda lax: lax.pad(V, NINE, [(-9, 0, 0)]),
    lambda lax: lax.pad(V, NINE, [(0, 0, -1)]),
    lambda lax: lax.pad(V, NINE, []),
    lambda lax: lax.concatenate([], 0),
    lambda lax: lax.concatenate([X, V], 0),
    lambda lax: lax.concatenate([X, X], 2),
    lambda lax: lax.concatenate([X, X[:, :1]], 0),
    lambda lax: lax.concatenate([X, X.astype(np.int32)], 0),
    lambda lax: lax.split(V, (1, 2)),
    lambda lax: lax.split(V, (7, -2)),
])
def test_errors_are_those_of_jax(agrees, f):
    agrees(f)


@pytest.mark.parametrize(("starts", "limits", "strides", "message"), [
    ((0,), (9,), None, "limit_indices must be less than or equal to operand shape"),
    ((3,), (1,), None, "limit_indices must be greater than or equal to start_indices"),
    ((-1,), (1,), None, "start_indices must have every element be nonnegative"),
    ((0,), (1,), (0,), "strides must be positive"),
    ((0, 0), (1, 1), None, "start_indices must have length equal"),
])
def test_bounds_of_a_slice_must_fit(starts, limits, strides, message):
    with pytest.raises(TypeError, match=message):
        lax.slice(V, starts, limits, strides)


def test_the_gradient_of_a_slice_pads_and_that_of_a_pad_slices():
    x = np.arange(5, dtype=np.float32)
    jaxpr = str(minijax.make_jaxpr(minijax.vjp(lambda v: lax.slice(v, (1,), (5,), (2,)), x)[1])(
        np.ones(2, np.float32)))
    assert "pad[padding_config=((1, 1, 1),)]" in jaxpr


@pytest.mark.parametrize("config", list(itertools.product((-2, 0, 1), (-1, 0, 2), (0, 2))))
def test_padding_compiled_equals_padding_by_numpy(config):
    got = minijax.jit(lambda x: lax.pad(x, NINE, [config]))(V)
    np.testing.assert_array_equal(np.asarray(got), np.asarray(lax.pad(V, NINE, [config])))


def test_any_number_of_operands_is_joined():
    """Which operand an element is of is asked by halves: a thousand need ten questions, not all."""
    parts = [np.full((k % 4, 2), k, np.float32) for k in range(60)]
    joined = minijax.jit(lambda *xs: lax.concatenate(xs, 0))(*parts)
    np.testing.assert_array_equal(np.asarray(joined), np.concatenate(parts))
    many = minijax.jit(lambda *xs: jnp.stack(xs)).lower(*[np.float32(k) for k in range(1000)])
    text = many.as_text("source")
    assert max(len(line) - len(line.lstrip()) for line in text.splitlines()) < 60
