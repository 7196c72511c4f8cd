"""Functions of a whole row agree with JAX: values, derivatives, masks, infinities."""

import pytest


@pytest.mark.parametrize("expression", [
    "nn.softmax(f)", "nn.softmax(f, axis=0)", "nn.softmax(t, axis=(0, 2))", "nn.softmax(i)",
    "nn.softmax(f, where=b)", "nn.softmax(h)", "nn.softmax(e)", "nn.softmax(f * 1e30)",
    "nn.softmax(jnp.array([-jnp.inf, 0.0]))", "nn.log_softmax(f)", "nn.log_softmax(f, axis=0)",
    "nn.log_softmax(f, where=b)", "nn.log_softmax(i)", "nn.log_softmax(jnp.array([0.0, 1e4]))",
    "nn.logsumexp(f)", "nn.logsumexp(f, axis=1)", "nn.logsumexp(f, axis=1, keepdims=True)",
    "nn.logsumexp(f, b=g)", "nn.logsumexp(f, b=f)", "nn.logsumexp(f, b=f, return_sign=True)",
    "nn.logsumexp(f, axis=0, where=b)", "nn.logsumexp(i)", "nn.logsumexp(2.0)",
    "nn.logsumexp(jnp.array([-jnp.inf, -jnp.inf]))", "nn.logsumexp(jnp.array([jnp.inf, 1.0]))",
    "nn.logsumexp(jnp.array([1000.0, 1000.0]))", "nn.logsumexp(f, return_sign=True)",
    "nn.logmeanexp(f)", "nn.logmeanexp(f, axis=1, where=b)",
    "nn.standardize(f)", "nn.standardize(f, axis=0)", "nn.standardize(f, where=b)",
    "nn.standardize(f + 1000, algorithm='stable')", "nn.standardize(f, algorithm='slow')",
    "nn.standardize(f, where=b, mean=1.0, algorithm='stable')",
    "nn.standardize(f, mean=0.0, variance=1.0)", "nn.standardize(f, epsilon=0.1)",
    "nn.one_hot(k, 3)", "nn.one_hot(k, 4, dtype=int)", "nn.one_hot(w, 3)", "nn.one_hot(1, 3)",
    "nn.one_hot(k, 3, axis=0)", "nn.one_hot(i, 9)", "nn.one_hot(v, 3)", "nn.one_hot([0, 2], 3)",
    "nn.one_hot(k, 0)",
])
def test_a_row_agrees_with_jax(agrees_with_jax, expression):
    agrees_with_jax(expression, rtol=2e-2 if "h" in expression.split("(")[1] else 1e-5)


@pytest.mark.parametrize("expression", [
    "jax.grad(lambda x: (nn.softmax(x) * f).sum())(g)",
    "jax.grad(lambda x: nn.log_softmax(x)[0, 1])(f)",
    "jax.grad(nn.logsumexp)(f)", "jax.jacobian(nn.softmax)(v)", "jax.hessian(nn.logsumexp)(v)",
    "jax.grad(nn.logsumexp)(jnp.array([-jnp.inf, 1.0]))",
    "jax.vmap(nn.softmax)(f)", "jax.jit(nn.log_softmax)(f)", "jax.jit(jax.vmap(nn.logsumexp))(f)",
    "jax.grad(lambda x: nn.standardize(x)[0, 0])(f)", "jax.vmap(lambda x: nn.one_hot(x, 3))(k)",
    "jax.jit(lambda n: nn.one_hot(k, n))(3)", "nn.softmax([1.0])", "nn.softmax(f, axis=2)",
])
def test_transformations_and_refusals(agrees_with_jax, expression):
    agrees_with_jax(expression, rtol=2e-5)


def test_softmax_is_a_handful_of_equations():
    import minijax
    import minijax.numpy as jnp

    jaxpr = minijax.make_jaxpr(minijax.nn.softmax)(jnp.ones((3, 4))).jaxpr
    names = [eqn.primitive.name for eqn in jaxpr.eqns]
    assert names[0] == "reduce_max" and names[-1] == "div" and len(names) <= 8
