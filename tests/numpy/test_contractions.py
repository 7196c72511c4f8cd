"""Products of vectors and matrices agree with JAX."""

import pytest

@pytest.mark.parametrize("expression", [
    "jnp.dot(v, v)", "jnp.dot(f, v)", "jnp.dot(f, f.T)", "jnp.dot(t, t[0].T)", "jnp.dot(i, w)",
    "jnp.dot(2, 3.5)", "jnp.dot(f, 2)", "jnp.dot(h, h.T)", "jnp.dot(f, w)",
    "jnp.dot(b[0], b[0])", "jnp.dot(c, c.T)", "jnp.matmul(f, v)", "jnp.matmul(v, f.T)",
    "jnp.matmul(f, f.T)", "jnp.matmul(t, t[0].T)", "jnp.matmul(t, jnp.swapaxes(t, 1, 2))",
    "jnp.matmul(t[:, None], jnp.swapaxes(t, 1, 2)[None])", "jnp.matmul(f, jnp.ones((5, 3, 2)))",
    "jnp.matmul(t, jnp.ones(4))", "jnp.matmul(jnp.ones(3), t)",
    "jnp.matmul(t[:1], jnp.swapaxes(t, 1, 2))", "jnp.matmul(i, i.T)", "jnp.matmul(e, f.T)",
    "jnp.matmul(f, f.T, preferred_element_type='float16')", "jnp.vdot(f, f)", "jnp.vdot(c, c)",
    "jnp.vecdot(f, v)", "jnp.vecdot(t, t, axis=1)", "jnp.vecdot(c, c)", "jnp.inner(f, f)",
    "jnp.inner(v, 2)", "jnp.outer(v, w)", "jnp.outer(f, v)", "jnp.tensordot(t, t, 3)",
    "jnp.tensordot(f, f.T, 1)", "jnp.tensordot(t, t, axes=((0, 1), (0, 1)))",
    "jnp.tensordot(v, w, 0)", "jnp.kron(m, m)", "jnp.kron(v, f)", "jnp.cross(v, w)",
    "jnp.cross(f, v)", "jnp.cross(m, m[::-1])", "jnp.cross(v[:2], w)",
    "jnp.cross(f.T, f.T, axis=0)", "jnp.trace(m)", "jnp.trace(f, offset=1)",
    "jnp.trace(t, axis1=0, axis2=2)", "jnp.trace(p[:, None] * p)", "jnp.matvec(f, v)",
    "jax.grad(lambda x: jnp.dot(x, v).sum())(f)", "jax.grad(lambda x: (x @ x.T).sum())(f)",
    "jax.grad(lambda x: jnp.matmul(t, x).sum())(jnp.ones((4, 2)))",
    "jax.vmap(jnp.dot, (0, None))(f, v)", "jax.vmap(jnp.dot)(f, f)",
    "jax.vmap(jnp.matmul, (0, None))(t, jnp.ones((4, 2)))", "jax.jit(jnp.matmul)(f, v)",
    "jax.jit(jnp.cross)(v, w)", "jax.jit(jnp.outer)(v, v)",
])
def test_products(agrees_with_jax, expression):
    agrees_with_jax(expression, rtol=1e-05)


@pytest.mark.parametrize("expression", [
    "jnp.dot(v, jnp.ones(4))", "jnp.matmul(f, f)", "jnp.matmul(f, 2)", "jnp.matmul(2, f)",
    "jnp.matmul(jnp.ones((2, 2, 2)), jnp.ones((3, 2, 2)))", "jnp.dot([1, 2], v)",
    "jnp.tensordot(f, f, 3)", "jnp.tensordot(f, f, ((0,), (0, 1)))",
    "jnp.cross(jnp.ones(4), jnp.ones(4))", "jnp.inner(f, jnp.ones(4))",
])
def test_refusals(agrees_with_jax, expression):
    agrees_with_jax(expression)
