"""Picking elements by arrays of places agrees with JAX, out of bounds too."""

import numpy as np
import pytest

import minijax.numpy as jnp


@pytest.mark.parametrize("expression", [
    "jnp.take(v, 1)", "jnp.take(v, k)", "jnp.take(f, k, axis=1)",
    "jnp.take(f, jnp.array([[0, 1], [1, 0]]), axis=0)", "jnp.take(v, jnp.array([5, -1, -9]))",
    "jnp.take(w, jnp.array([5, -1]))", "jnp.take(u, 99)",
    "jnp.take(v, jnp.array([5, -9]), mode='clip')",
    "jnp.take(v, jnp.array([5, -9]), mode='wrap')", "jnp.take(v, 9, fill_value=7)",
    "jnp.take(b, 99)", "jnp.take(f, 2, axis=0)", "jnp.take_along_axis(f, jnp.argsort(f, 1), 1)",
    "jnp.take_along_axis(f, jnp.array([[2, 0]]), axis=1)",
    "jnp.take_along_axis(f, jnp.array([[1, 0, 1]]), axis=0)",
    "jnp.take_along_axis(f, jnp.array([[9], [-1]]), axis=1)",
    "jnp.take_along_axis(f, jnp.array([5, 0]), axis=None)",
    "jnp.take_along_axis(t, jnp.argmax(t, 1, keepdims=True), 1)",
    "jnp.take_along_axis(f, jnp.array([[9], [-1]]), axis=1, mode='clip')",
    "jnp.compress(b[0], v)", "jnp.compress(b[0], f, axis=1)", "jnp.extract(b, f)",
    "jax.jit(lambda x, i: jnp.take(x, i, axis=1))(f, k)",
    "jax.grad(lambda x: jnp.take(x, k).sum())(v)", "jax.vmap(jnp.take, (0, None))(f, k)",
    "jax.vmap(jnp.take)(f, jnp.array([0, 2]))",
    "jax.grad(lambda x: jnp.take_along_axis(x, jnp.array([[2, 2]]), 1).sum())(f)",
    "jax.vmap(lambda x, i: jnp.take_along_axis(x, i, 0))(f, jnp.array([[0, 2], [1, 1]]))",
    "jnp.take(f, v)", "jnp.take([1, 2], 0)", "jnp.take_along_axis(f, v, 0)",
    "jnp.take_along_axis(f, k, 0)", "jnp.take(f, 0, axis=5)",
])
def test_gathering(agrees_with_jax, expression):
    agrees_with_jax(expression)


@pytest.mark.parametrize("name", ["take", "take_along_axis"])
def test_a_list_of_places_is_refused_at_its_position(name):
    with pytest.raises(TypeError, match=f"{name} requires .* <class 'list'> at position 1"):
        getattr(jnp, name)(np.ones(2, np.float32), [0])
