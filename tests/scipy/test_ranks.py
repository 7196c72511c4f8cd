"""What samples say of themselves is what JAX says of them."""

import jax.scipy.stats  # noqa: F401
import pytest


@pytest.mark.parametrize("expression", [
    "mode(i)", "mode(i, None)", "mode(u, 1, keepdims=True)", "mode(x)", "mode(n, axis=1)",
    "mode(jnp.array([3, 1, 4, 1, 3]))", "mode(jnp.array([2., jnp.nan, jnp.nan, 2., jnp.nan]))",
    "mode(b, 1)", "mode(t, -2)", "mode(e)", "mode(e, 1)", "mode(s)", "mode(f, 2)", "mode(h)",
    "mode(f, nan_policy='omit')", "mode(f, nan_policy='raise')", "mode(f, nan_policy='none')",
    "mode(f, None, keepdims=True)",
])
def test_the_commonest_value(agrees_with_jax, expression):
    agrees_with_jax("tuple(jax.scipy.stats." + expression + ")")


@pytest.mark.parametrize("method", ["average", "min", "max", "dense", "ordinal", "other"])
@pytest.mark.parametrize("values", [
    "jnp.array([1, 3, 2, 3, 3, 1])", "t % 5, axis=1", "x", "u, axis=0", "t % 3"])
def test_ranks(agrees_with_jax, method, values):
    array, _, axis = values.partition(", ")
    agrees_with_jax(f"jax.scipy.stats.rankdata({array}, '{method}', {axis})")


@pytest.mark.parametrize("expression", [
    "rankdata(e)", "rankdata(s)", "rankdata(f, axis=3)", "rankdata(f, nan_policy='omit')",
    "rankdata(n, axis=1)", "rankdata(b, 'min')"])
def test_ranks_of_other_arrays(agrees_with_jax, expression):
    agrees_with_jax("jax.scipy.stats." + expression)


@pytest.mark.parametrize("expression", [
    "sem(f)", "sem(f, None)", "sem(f, 1, ddof=0, keepdims=True)", "sem(i)", "sem(n)",
    "sem(n, nan_policy='omit')", "sem(n, 1, nan_policy='omit', keepdims=True)", "sem(c)",
    "sem(f, nan_policy='raise')", "sem(f, 2)", "sem(h)",
    "sem(jnp.array([1., jnp.nan, 4.]), nan_policy='omit')"])
def test_how_exact_a_mean_is(agrees_with_jax, expression):
    agrees_with_jax("jax.scipy.stats." + expression, 1e-2 if "(h" in expression else 1e-5)
