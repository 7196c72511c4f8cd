"""Matrices made by their places agree with JAX."""

import pytest

@pytest.mark.parametrize("expression", [
    "jax.jit(lambda k: jnp.eye(3, 4, k))(1)", "jax.jit(lambda k: jnp.tri(3, 2, k))(-1)",
    "jax.vmap(lambda k: jnp.tri(3, k=k))(k)", "jax.vmap(lambda k: jnp.eye(3, k=k))(p)",
    "jax.vmap(lambda k: jnp.trace(f, k))(k)", "jax.jit(lambda k: jnp.tri(3, k=k))(1.5)",
    "jnp.eye(3)", "jnp.eye(2, 3)", "jnp.eye(3, k=1, dtype=int)", "jnp.eye(3, k=-1)",
    "jnp.eye(0)", "jnp.identity(2)", "jnp.tri(3)", "jnp.tri(2, 4, 1)", "jnp.tril(f)",
    "jnp.tril(t, -1)", "jnp.triu(f, 1)", "jnp.triu(i)", "jnp.tril_indices(3)",
    "jnp.triu_indices(3, 1)", "jnp.diag_indices(2)", "jnp.diagonal(f)",
    "jnp.diagonal(t, 1, 0, 2)", "jnp.diagonal(f, -1)", "jnp.diag(v)", "jnp.diag(v, 1)",
    "jnp.diag(v, -2)", "jnp.diag(f)", "jnp.diagflat(f)",
    "jnp.fill_diagonal(jnp.zeros((4, 4)), v[:2], inplace=False)",
    "jnp.fill_diagonal(m, 7, inplace=False)", "jnp.fill_diagonal(m, v[:2], inplace=False)",
    "jnp.meshgrid(v, w)", "jnp.meshgrid(v, w, indexing='ij')", "jnp.meshgrid(v, w, sparse=True)",
    "jnp.meshgrid(v, w, jnp.arange(2))", "jnp.indices((2, 3))",
    "jnp.indices((2, 3), sparse=True)", "jnp.vander(v)", "jnp.vander(w, 2, increasing=True)",
    "jax.grad(lambda x: (jnp.diag(x) * jnp.ones((3, 3))).sum())(v)",
    "jax.grad(lambda x: jnp.tril(x).sum())(f)", "jax.vmap(jnp.diag)(f)", "jax.jit(jnp.tril)(f)",
])
def test_matrices(agrees_with_jax, expression):
    agrees_with_jax(expression)


@pytest.mark.parametrize("expression", [
    "jnp.eye(-1)", "jnp.tril(v)", "jnp.diagonal(v)", "jnp.diag(t)", "jnp.meshgrid(f)",
    "jnp.meshgrid(v, w, indexing='ab')", "jnp.fill_diagonal(m, 1)", "jax.jit(jnp.eye)(3)",
    "jnp.vander(f)", "jnp.vander(2)",
])
def test_refusals(agrees_with_jax, expression):
    agrees_with_jax(expression)


@pytest.mark.parametrize("expression", [
    "jnp.triu_indices(3.5)", "jnp.tril_indices(3.5)", "jnp.tril_indices(3, 1.5)",
    "jnp.triu_indices(3, m=2.5)", "jnp.tril_indices(-1)", "jnp.triu_indices(2, m=-1)",
    "jnp.triu_indices(True)", "jnp.tril_indices(np.int8(2))", "jnp.tril_indices(2, True)",
    "jnp.eye(2.5)", "jnp.eye(True)", "jnp.eye(2, k=1.5)", "jnp.tri(2.5)", "jnp.tri(-1)",
    "jnp.tri(2, k=1.5)", "jnp.diag_indices(-2)", "jnp.diag_indices(3, -1)",
    "jnp.diag_indices(3, True)", "jnp.diag_indices(2.5)", "jnp.indices(3)",
    "jnp.indices(np.int8([2, 2]))", "jnp.indices((2.5,))", "jnp.vander(v, 2.5)",
    "jnp.vander(v, -1)", "jnp.trace(f, 1.5)", "jnp.trace(f, np.int8(1))", "jnp.diag(v, 1.5)",
    "jnp.mask_indices(3.5, jnp.triu)",
])
def test_sizes_are_integers_as_in_jax(agrees_with_jax, expression):
    agrees_with_jax(expression)
