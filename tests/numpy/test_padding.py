"""Margins agree with JAX in every mode."""

import pytest


@pytest.mark.parametrize("expression", [
    "jnp.pad(v, 1)", "jnp.pad(f, ((1, 0), (0, 2)))", "jnp.pad(v, (1, 2), constant_values=9)",
    "jnp.pad(v, (1, 2), constant_values=(8, 9))", "jnp.pad(f, 1, constant_values=((1, 2), (3, 4)))",
    "jnp.pad(i, 1, constant_values=2.5)", "jnp.pad(f, 1, mode='edge')", "jnp.pad(e, 1)",
    "jnp.pad(f, 1, mode='reflect')", "jnp.pad(v, 2, mode='symmetric')", "jnp.pad(2.0, ())",
    "jnp.pad(v, 4, mode='wrap')", "jnp.pad(f, 2, mode='mean')", "jnp.pad(i, 1, mode='mean')",
    "jnp.pad(f, 1, mode='maximum')", "jnp.pad(f, (1, 2), mode='minimum', stat_length=2)",
    "jnp.pad(f, 1, mode='median')", "jnp.pad(f, (2, 3), mode='linear_ramp')",
    "jnp.pad(v, 2, mode='linear_ramp', end_values=(5, -5))", "jnp.pad(f, 1, mode='empty') * 0",
    "jnp.pad(v, 2, lambda x, width, axis, kw: x.at[:width[0]].set(7))",
    "jax.jit(lambda x: jnp.pad(x, 1))(f)", "jax.vmap(lambda x: jnp.pad(x, (0, 2)))(f)",
    "jax.grad(lambda x: (jnp.pad(x, 1, mode='edge') ** 2).sum())(v)",
])
def test_padding_agrees_with_jax(agrees_with_jax, expression):
    agrees_with_jax(expression)


@pytest.mark.parametrize("expression", [
    "jnp.pad(v, -1)", "jnp.pad(v, 1, mode='magic')", "jnp.pad([1], 1)", "jnp.pad(f, (1, 2, 3))",
    "jax.jit(lambda n: jnp.pad(v, n))(1)",
])
def test_refusals(agrees_with_jax, expression):
    agrees_with_jax(expression)
