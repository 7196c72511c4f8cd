"""The nearest of given points is the one that JAX finds."""

import jax.scipy.cluster.vq  # noqa: F401
import pytest

@pytest.mark.parametrize("expression", [
    "vq(f, g)", "vq(v, g[0])", "vq(i, f)", "vq(v, f)", "vq(t, t)", "vq(i, i[:1])", "vq([1.], v)",
    "vq(c, c[::-1])", "vq(h, h)",
])
def test_vq(agrees_with_jax, expression):
    agrees_with_jax("jax.scipy.cluster.vq." + expression)


def test_transformed(agrees_with_jax):
    agrees_with_jax("jax.vmap(lambda x: jax.scipy.cluster.vq.vq(x, f)[1])(t[:, :, :3])")
    agrees_with_jax("jax.jit(jax.scipy.cluster.vq.vq)(f, g)")
