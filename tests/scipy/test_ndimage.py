"""Arrays between their elements are JAX's."""

import jax.scipy.ndimage  # noqa: F401
import pytest

PLACES = "jnp.array([-2.7, -.5, .2, 1., 1.5, 2.2, 6.4])"


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("mode", ["constant", "nearest", "wrap", "mirror", "reflect"])
@pytest.mark.parametrize("array", ["i", "c", "t[0]"])
def test_map_coordinates(agrees_with_jax, array, mode, order):
    agrees_with_jax(f"jax.scipy.ndimage.map_coordinates({array}, [{PLACES}, {PLACES}[::-1]], "
                    f"{order}, mode='{mode}', cval=2.)", 1e-5)


@pytest.mark.parametrize("expression", [
    "map_coordinates(f, [v], 1)", "map_coordinates(v, [v], 2)", "map_coordinates(v, [v], 1, 'no')",
    "map_coordinates(v, [w], 1)", "map_coordinates(v, [w], 0)", "map_coordinates(v, [[.5]], 1)",
])
def test_arguments(agrees_with_jax, expression):
    agrees_with_jax("jax.scipy.ndimage." + expression)


@pytest.mark.parametrize("expression", [
    "jax.grad(lambda p: jnp.sum(jax.scipy.ndimage.map_coordinates(v, [p], 1)))(g[0])",
    "jax.vmap(lambda p: jax.scipy.ndimage.map_coordinates(v, [p], 1))(g)",
])
def test_transformed(agrees_with_jax, expression):
    agrees_with_jax(expression)
