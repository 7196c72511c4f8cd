"""The different elements agree with JAX."""

import pytest

@pytest.mark.parametrize("expression", [
    "jnp.unique(i)",
    "jnp.unique(jnp.array([3, 1, 3]), return_index=True, return_inverse=True, return_counts=True)",
    "jnp.unique(f, return_inverse=True)", "jnp.unique(n)", "jnp.unique(n, equal_nan=False)",
    "jnp.unique(b)", "jnp.unique(jnp.array([3, 1, 3]), size=2)",
    "jnp.unique(jnp.array([3, 1, 3]), size=4)",
    "jnp.unique(jnp.array([3, 1, 3]), size=4, fill_value=-1)",
    "jnp.unique(jnp.array([3, 1, 3]), size=4, return_counts=True, return_index=True)",
    "jnp.unique(jnp.array([3, 1, 3]), size=1, return_counts=True)",
    "jnp.unique(jnp.array([[1, 2], [0, 5], [1, 2]]), axis=0)",
    "jnp.unique(jnp.array([[1, 2], [0, 5], [1, 2]]), axis=0, return_counts=True)",
    "jnp.unique(jnp.array([[2, 1, 2], [0, 5, 0]]), axis=1, return_index=True)", "jnp.unique(e)",
    "jnp.unique(3)", "jax.jit(lambda x: jnp.unique(x, size=2))(jnp.array([3, 1, 3]))",
    "jax.jit(jnp.unique)(v)", "jnp.isin(i, jnp.array([3, 5]))", "jnp.isin(2, w)",
    "jnp.isin(i, w, invert=True)", "jnp.unique([1, 2])",
])
def test_sets(agrees_with_jax, expression):
    agrees_with_jax(expression)
