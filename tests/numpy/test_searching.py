"""Where things are, and how many, agrees with JAX."""

import pytest

@pytest.mark.parametrize("expression", [
    "jnp.where(b, f, 0)", "jnp.where(b, 1, 2)", "jnp.where(b, i, 2.5)", "jnp.where(True, f, 0)",
    "jnp.where(i, f, g)", "jnp.where(b[:, :1], v, f)", "jnp.where(b, v, 1j)", "jnp.where(b)",
    "jnp.where(b, size=2)", "jnp.where(b, size=5, fill_value=-1)",
    "jnp.where(f > 0, f, jnp.nan)", "jnp.where(b, h, 1)", "jnp.nonzero(f)",
    "jnp.nonzero(v, size=2)", "jnp.nonzero(f, size=8)",
    "jnp.nonzero(f, size=8, fill_value=(7, 9))", "jnp.nonzero(e)", "jnp.nonzero(f, size=0)",
    "jnp.flatnonzero(f)", "jnp.flatnonzero(f, size=3)", "jnp.argwhere(f)",
    "jnp.argwhere(b, size=4, fill_value=-1)", "jnp.bincount(jnp.array([1, 1, 3]))",
    "jnp.bincount(jnp.array([1, 1, 3]), weights=v)",
    "jnp.bincount(jnp.array([1, 1, 3]), minlength=6)",
    "jnp.bincount(jnp.array([1, 1, 3]), length=2)", "jnp.bincount(w)", "jnp.digitize(f, v[::2])",
    "jnp.digitize(f, jnp.array([0.0, 1.0, 2.0]), right=True)",
    "jnp.digitize(v, jnp.array([2.0, 1.0, 0.0]))", "jnp.histogram(f)", "jnp.histogram(f, 3)",
    "jnp.histogram(g, 4, range=(0, 1))", "jnp.histogram(f, jnp.array([-2.0, 0.0, 3.0]))",
    "jnp.histogram(v, 3, weights=v)", "jnp.histogram(f, 3, density=True)",
    "jnp.histogram(jnp.ones(3), 2)", "jnp.histogram_bin_edges(f, 4)",
    "jax.jit(lambda x: jnp.where(x > 1, x, 0).sum())(jnp.arange(4))",
    "jax.jit(lambda x: jnp.nonzero(x, size=2))(v)",
    "jax.vmap(lambda x: jnp.nonzero(x, size=2)[0])(f)",
    "jax.grad(lambda x: jnp.where(x > 0, x ** 2, 0).sum())(f)",
    "jax.grad(lambda x: jnp.where(x > 0, jnp.log(x), 0).sum())(f)",
    "jax.jit(lambda x: jnp.bincount(x, length=4))(k)",
])
def test_searching(agrees_with_jax, expression):
    agrees_with_jax(expression, rtol=1e-05)


@pytest.mark.parametrize("expression", [
    "jnp.where(b, f)", "jnp.where([True], 1, 2)", "jnp.where(b, v, jnp.ones(4))",
    "jnp.nonzero(3)", "jnp.where(b, f, g, size=3)", "jnp.bincount(f)", "jnp.bincount(v)",
    "jax.jit(jnp.nonzero)(v)", "jax.jit(lambda x: jnp.where(x < 0))(v)",
    "jax.jit(jnp.bincount)(k)", "jnp.nonzero([1])",
])
def test_refusals(agrees_with_jax, expression):
    agrees_with_jax(expression)


def test_places_under_jit_are_refused_as_the_page_of_errors_says():
    import minijax
    import minijax.numpy as jnp

    with pytest.raises(minijax.errors.ConcretizationTypeError,
                       match=r"The error arose in jnp\.nonzero\."):
        minijax.jit(lambda x: jnp.where(x < 0))(jnp.arange(4))
