"""Windows are NumPy's."""

import numpy as np
import pytest

import minijax.numpy as jnp


@pytest.mark.parametrize("size", [0, 1, 2, 5, 8])
@pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming", "hanning"])
def test_a_window_is_numpys(name, size):
    np.testing.assert_allclose(getattr(jnp, name)(size), getattr(np, name)(size), atol=1e-6)


@pytest.mark.parametrize("expression", [
    f"jnp.{name}({size})" for name, size in zip(
        ("bartlett", "blackman", "hamming", "hanning", "hanning", "hanning", "hanning", "hanning"),
        ("3.5", "4.9", "np.float32(3.5)", "True", "-1", "jnp.array(3.5)", "[3]", "None"),
        strict=True)] + ["jnp.kaiser(3.5, 1.)", "jnp.kaiser(True, 1)",
                         "jax.jit(jnp.hanning)(3)", "jnp.hanning(float('inf'))"])
def test_of_a_size_the_integer_part_counts_as_in_jax(agrees_with_jax, expression):
    agrees_with_jax(expression)
