"""Reshaping, reordering and broadcasting agree with JAX."""

import pytest

@pytest.mark.parametrize("expression", [
    "jnp.reshape(t, (4, 6))", "jnp.reshape(t, (-1, 3))", "jnp.reshape(t, 24)",
    "jnp.reshape(t, (2, -1), order='F')", "jnp.reshape(e, (3, 0))", "jnp.reshape(2.5, (1, 1))",
    "jnp.ravel(f)", "jnp.ravel(f, order='F')", "jnp.squeeze(t[:1])",
    "jnp.squeeze(t[:1, :, :1], 0)", "jnp.expand_dims(f, 0)", "jnp.expand_dims(f, (0, -1))",
    "jnp.atleast_1d(3)", "jnp.atleast_2d(v)", "jnp.atleast_3d(v)", "jnp.atleast_3d(f)",
    "jnp.atleast_2d(v, 3.0)", "jnp.transpose(t)", "jnp.transpose(t, (1, 0, 2))",
    "jnp.transpose(t, (-1, 0, 1))", "jnp.permute_dims(t, (1, 0, 2))", "jnp.matrix_transpose(t)",
    "jnp.swapaxes(t, 0, -1)", "jnp.moveaxis(t, 0, -1)", "jnp.moveaxis(t, (0, 1), (-1, 0))",
    "jnp.rollaxis(t, 2)", "jnp.rollaxis(t, 0, 3)", "jnp.broadcast_to(v, (2, 3))",
    "jnp.broadcast_to(1, (2, 2))", "jnp.broadcast_to(f[:, :1], (4, 2, 3))",
    "jnp.broadcast_arrays(v, f, 1)", "jnp.broadcast_shapes((2, 1), (3,), ())", "jnp.flip(f)",
    "jnp.flip(t, (0, 2))", "jnp.fliplr(f)", "jnp.flipud(f)", "jnp.rot90(f)", "jnp.rot90(f, 2)",
    "jnp.rot90(t, -1, (1, 2))", "jnp.roll(v, 1)", "jnp.roll(f, 2)", "jnp.roll(f, -1, 1)",
    "jnp.roll(f, (1, 2), (0, 1))", "jnp.roll(v, 7, 0)", "jnp.roll(v, jnp.array(-4))",
    "jnp.roll(e, 1)", "jax.jit(jnp.roll)(v, -1)", "jax.jit(jnp.roll)(f, jnp.array(4))",
    "jax.jit(lambda x: jnp.roll(x, 1, 0))(f)", "jax.vmap(jnp.flip)(f)",
    "jax.grad(lambda x: (jnp.reshape(x, (3, 2)).T * f).sum())(f)", "jax.vmap(lambda x: x.T)(t)",
])
def test_shapes(agrees_with_jax, expression):
    agrees_with_jax(expression)


@pytest.mark.parametrize("expression", [
    "jnp.reshape(f, (4, 2))", "jnp.reshape(f, (-1, -1))", "jnp.reshape(f, (-1, 4))",
    "jnp.reshape([1, 2], (2, 1))", "jnp.squeeze(f, 0)", "jnp.expand_dims(f, 5)",
    "jnp.transpose(t, (0, 1))", "jnp.transpose(t, (0, 0, 1))", "jnp.moveaxis(t, 5, 0)",
    "jnp.moveaxis(t, (0, 1), 0)", "jnp.broadcast_to(f, (2,))", "jnp.broadcast_to(f, (2, 2))",
    "jnp.broadcast_arrays(v, jnp.ones(2))", "jnp.flip(f, 3)", "jnp.fliplr(v)",
    "jnp.matrix_transpose(v)", "jax.jit(lambda x: x.reshape(x[0]))(w)",
    "jax.jit(lambda n: jnp.broadcast_to(1, n))(3)",
])
def test_refusals(agrees_with_jax, expression):
    agrees_with_jax(expression)
