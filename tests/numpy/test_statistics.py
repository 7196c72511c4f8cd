"""Running sums, reductions that skip nan, and order statistics agree with JAX."""

import pytest

NAMES = "nansum nanprod nanmax nanmin nanmean nanvar nanstd nanargmax nanargmin"


@pytest.mark.parametrize("arguments", ["n", "n, 0", "n, 1", "i", "jnp.full((2, 2), jnp.nan), 0"])
@pytest.mark.parametrize("name", NAMES.split())
def test_a_reduction_that_skips_nan_agrees_with_jax(agrees_with_jax, name, arguments):
    agrees_with_jax(f"jnp.{name}({arguments})", rtol=1e-5)


@pytest.mark.parametrize("expression", [
    "jnp.nansum(n, where=b)", "jnp.nanmax(n, initial=0, where=b)",
    "jnp.nanmean(n, axis=0, where=b)", "jnp.nanvar(n, where=b)", "jnp.cumsum(f)",
    "jnp.cumsum(f, 0)", "jnp.cumsum(p)", "jnp.cumsum(b)", "jnp.cumsum(i, axis=-1, dtype=float)",
    "jnp.cumsum(3)", "jnp.cumprod(f, 1)", "jnp.cumprod(i)", "jnp.cumprod(b, 0)",
    "jnp.nancumsum(n, 1)", "jnp.median(f)", "jnp.median(f, axis=0)", "jnp.median(i, axis=1)",
    "jnp.median(n, axis=1)", "jnp.median(t, axis=(0, 2))", "jnp.median(f, keepdims=True)",
    "jnp.quantile(f, 0.3)", "jnp.quantile(f, jnp.array([0.1, 0.9]), axis=1)",
    "jnp.quantile(f, 0.3, method='lower')", "jnp.quantile(f, 0.3, method='higher')",
    "jnp.quantile(f, 0.3, method='nearest')", "jnp.quantile(f, 0.3, method='midpoint')",
    "jnp.quantile(f, 0.5, axis=0, keepdims=True)", "jnp.percentile(f, 25)",
    "jnp.percentile(i, jnp.array([25, 75]))", "jax.jit(lambda x: jnp.cumsum(x, 0))(f)",
    "jax.grad(lambda x: (jnp.cumsum(x) * jnp.arange(6)).sum())(f)",
    "jax.grad(lambda x: jnp.median(x))(v)", "jax.vmap(jnp.median)(f)", "jax.vmap(jnp.cumsum)(f)",
    "jnp.cumsum([1, 2])", "jnp.cumsum(f, 2)", "jnp.quantile(f, 0.3, method='magic')",
])
def test_running_sums_and_quantiles(agrees_with_jax, expression):
    agrees_with_jax(expression, rtol=1e-05)
