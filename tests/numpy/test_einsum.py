"""Sums of products named by letters agree with JAX."""

import pytest

@pytest.mark.parametrize("expression", [
    "jnp.einsum('ij,kj->ik', f, f)", "jnp.einsum('ij,jk', f, f.T)", "jnp.einsum('ij->ji', f)",
    "jnp.einsum('ij->', f)", "jnp.einsum('ij->j', f)", "jnp.einsum('ii', m)",
    "jnp.einsum('ii->i', m)", "jnp.einsum('i,i', v, v)", "jnp.einsum('i,j->ij', v, w)",
    "jnp.einsum('ij,j', f, v)", "jnp.einsum('bij,bjk->bik', t, jnp.swapaxes(t, 1, 2))",
    "jnp.einsum('...ij,...jk->...ik', t, jnp.swapaxes(t, 1, 2))",
    "jnp.einsum('...j,j', t, jnp.ones(4))", "jnp.einsum('...->...', f)",
    "jnp.einsum('ij...->ji...', t)", "jnp.einsum('i...->...', t)",
    "jnp.einsum('i...,i...->i', t, t)", "jnp.einsum('...i->i', t)", "jnp.einsum('...->', t)",
    "jnp.einsum('i...j,i...->j', t, t[:, :, 0])", "jnp.einsum('...,...->', f, v)",
    "jnp.einsum('ij,jk,kl->il', f, f.T, f)", "jnp.einsum('ij,jk,k->i', f, f.T, jnp.ones(2))",
    "jnp.einsum('a,b,c->abc', v, v, v)", "jnp.einsum('ijk,ijk->i', t, t)",
    "jnp.einsum('ijk,kj->i', t, jnp.ones((4, 3)))", "jnp.einsum('iij->j', jnp.ones((2, 2, 3)))",
    "jnp.einsum('ij,ij->ij', f, g)", "jnp.einsum(' i j , j k -> i k ', f, f.T)",
    "jnp.einsum(f, [0, 1], f, [2, 1], [0, 2])", "jnp.einsum(f, [0, 1], v, [1])",
    "jnp.einsum('ij,jk', i, i.T)", "jnp.einsum('ij,jk', h, h.T)", "jnp.einsum('ij,j', f, w)",
    "jnp.einsum('bqhd,bkhd->bhqk', jnp.ones((2, 3, 2, 4)), jnp.ones((2, 5, 2, 4)))",
    "jax.grad(lambda x: jnp.einsum('ij,kj->', x, f))(f)",
    "jax.jit(lambda x: jnp.einsum('ij,kj->ik', x, x))(f)",
    "jax.vmap(lambda x: jnp.einsum('i,j->ij', x, x))(f)",
])
def test_einsum(agrees_with_jax, expression):
    agrees_with_jax(expression, rtol=1e-05)


@pytest.mark.parametrize("expression", [
    "jnp.einsum('ij,jk', f, f)", "jnp.einsum('ij', f, f)", "jnp.einsum('ijk', f)",
    "jnp.einsum('ij->ik', f)", "jnp.einsum('ij,jk', [[1]], f)",
])
def test_refusals(agrees_with_jax, expression):
    agrees_with_jax(expression)
