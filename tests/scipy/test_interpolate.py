"""Functions known on a grid are JAX's between its points."""

import jax.scipy.interpolate  # noqa: F401
import pytest

MADE = "jax.scipy.interpolate.RegularGridInterpolator"
GRID = "(jnp.array([0., 1., 3.]), jnp.array([0., 2., 4., 5.]))"
POINTS = "jnp.array([[.5, 1.], [1., 2.], [2.9, 4.9], [-1., 0.], [4., 9.]])"


@pytest.mark.parametrize("fill", ["jnp.nan", "2.", "None"])
@pytest.mark.parametrize("method", ["linear", "nearest"])
@pytest.mark.parametrize("values", ["t.reshape(4, 6)[:3, :4]", "t.reshape(3, 4, 2)"])
def test_values(agrees_with_jax, values, method, fill):
    made = f"{MADE}({GRID}, {values}, {method!r}, fill_value={fill})"
    agrees_with_jax(f"{made}({POINTS})", 1e-5)
    agrees_with_jax(f"{made}((v, jnp.array(1.5)))", 1e-5)


@pytest.mark.parametrize("expression", [
    f"{MADE}({GRID}, v)", f"{MADE}((v,), v, 'cubic')", f"{MADE}((v,), v, bounds_error=True)",
    f"{MADE}((w,), i[0])(1.)", f"{MADE}((w,), i[0])(v)", f"{MADE}((w,), i[0])(v, 'none')",
    f"{MADE}({GRID}, t.reshape(3, 4, 2))(f)", f"{MADE}((v,), [1.])", f"{MADE}((v,), w, 'linear', "
    "False, 2j)",
])
def test_arguments(agrees_with_jax, expression):
    agrees_with_jax(expression)


@pytest.mark.parametrize("expression", [
    f"jax.grad(lambda x: {MADE}((jnp.arange(3.),), x)(g[0]).sum())(v)",
    f"jax.jit(lambda f, x: f(x))({MADE}((jnp.arange(3.),), v), g[0])",
    f"jax.vmap({MADE}((jnp.arange(3.),), v))(g)",
])
def test_transformed(agrees_with_jax, expression):
    agrees_with_jax(expression)
