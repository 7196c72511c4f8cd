"""Choosing by masks and limits agrees with JAX."""

import pytest

@pytest.mark.parametrize("expression", [
    "jnp.clip(f, 0, 2)", "jnp.clip(f, min=0)", "jnp.clip(f, max=v)", "jnp.clip(i, -1.5, 2.5)",
    "jnp.clip(f)", "jnp.clip(n, -1, 1)", "jnp.clip(2, 3, 4)",
    "jnp.select([f < 0, f > 2], [f, i], 7)", "jnp.select([b, ~b], [1, 2.5])",
    "jnp.select([b], [f])", "jnp.piecewise(f, [f < 0, f > 2], [lambda x: -x, 1])",
    "jnp.piecewise(f, [f < 0, f > 2], [lambda x: -x, 1, lambda x: x * 2])",
    "jnp.piecewise(v, [v < 0], [5])", "jax.grad(lambda x: jnp.clip(x, 0, 2).sum())(f)",
    "jax.jit(lambda x: jnp.clip(x, 0, 1))(f)",
    "jax.jit(lambda x: jnp.piecewise(x, [x < 0], [0, lambda x: x]))(v)", "jnp.select([], [])",
    "jnp.select([b], [f, f])", "jnp.clip([1], 0)", "jnp.clip(c, 0, 1)",
])
def test_selection(agrees_with_jax, expression):
    agrees_with_jax(expression)
