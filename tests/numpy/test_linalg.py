"""Norms and powers of matrices agree with JAX."""

import pytest

@pytest.mark.parametrize("expression", [
    "jnp.linalg.norm(v)", "jnp.linalg.norm(f)", "jnp.linalg.norm(f, axis=1)",
    "jnp.linalg.norm(f, axis=1, keepdims=True)", "jnp.linalg.norm(v, 1)",
    "jnp.linalg.norm(v, jnp.inf)", "jnp.linalg.norm(v, -jnp.inf)", "jnp.linalg.norm(v, 3)",
    "jnp.linalg.norm(v, 0)", "jnp.linalg.norm(m, 'fro')", "jnp.linalg.norm(m, 1)",
    "jnp.linalg.norm(m, jnp.inf)", "jnp.linalg.norm(m, -1)", "jnp.linalg.norm(c)",
    "jnp.linalg.norm(i)", "jnp.linalg.norm(t, axis=(0, 2))", "jnp.linalg.trace(t)",
    "jnp.linalg.diagonal(t)", "jnp.linalg.vector_norm(t)", "jnp.linalg.vector_norm(t, axis=1)",
    "jnp.linalg.matrix_power(m, 5)", "jnp.linalg.matrix_power(m, 0)", "jnp.linalg.outer(v, w)",
    "jax.grad(jnp.linalg.norm)(f)", "jax.jit(jnp.linalg.norm)(v)", "jnp.linalg.norm([1, 2])",
    "jnp.linalg.norm(v, 'fro')",
])
def test_linalg(agrees_with_jax, expression):
    agrees_with_jax(expression, rtol=1e-05)
