"""Sequences agree with JAX: differences, slopes, interpolation, convolution; windows with NumPy.
"""

import numpy as np
import pytest

import minijax.numpy as jnp


@pytest.mark.parametrize("expression", [
    "jnp.diff(v)", "jnp.diff(f, axis=0)", "jnp.diff(f, 2)", "jnp.diff(i, prepend=0)",
    "jnp.diff(f, 0, prepend=1)", "jnp.trapezoid(t, dx=t[:, 1:], axis=1)",
    "jnp.trapezoid(t, t, axis=0)", "jnp.trapezoid(t, dx=t[0, :1], axis=1)",
    "jnp.trapezoid(t, v, axis=1)", "jnp.diff(b)", "jnp.diff(v, append=v)", "jnp.ediff1d(f)",
    "jnp.ediff1d(v, to_end=1.0, to_begin=w)", "jnp.gradient(v)", "jnp.gradient(t, axis=1)",
    "jnp.gradient(v, 2.0)", "jnp.interp(0.5, jnp.arange(3.0), v)",
    "jnp.gradient(v, jnp.array([0.0, 1.0, 3.0]))", "jnp.gradient(f)", "jnp.gradient(v, v[:2])",
    "jnp.interp(f, jnp.arange(3.0), v, left='extrapolate', right='extrapolate')",
    "jnp.interp(f, jnp.arange(3.0), v, period=3.0)", "jnp.interp(f, jnp.arange(3.0), v)",
    "jnp.interp(f, jnp.arange(3.0), v, left=-7, right=9)", "jnp.trapezoid(f)",
    "jnp.trapezoid(v, jnp.array([0.0, 1.0, 3.0]))", "jnp.trapezoid(f, dx=0.5, axis=0)",
    "jnp.convolve(v, w)", "jnp.convolve(v, jnp.ones(2), mode='same')",
    "jnp.convolve(v, jnp.ones(2), mode='valid')",
    "jnp.convolve(jnp.arange(7), jnp.array([1, 2, 3]), mode='same')", "jnp.polyval(v, 2)",
    "jnp.polyval(w, f)", "jax.jit(jnp.diff)(v)",
    "jax.grad(lambda x: jnp.interp(x, jnp.arange(3.0), v))(0.5)",
    "jax.grad(lambda x: jnp.trapezoid(x))(v)", "jnp.diff(v, -1)", "jnp.diff(3)",
    "jnp.convolve(f, v)",
])
def test_sequences(agrees_with_jax, expression):
    agrees_with_jax(expression, rtol=1e-05)


@pytest.mark.parametrize("expression", [
    "jnp.gradient(i, 0.5)", "jnp.gradient(w, 2)", "jnp.gradient(w)", "jnp.gradient(b, 0.5)",
    "jnp.gradient(w, w)", "jnp.gradient(w, np.float32(.5))", "jnp.gradient(h, 0.5)",
    "jnp.gradient(h[0], v)", "jnp.gradient(c, 2)", "jnp.gradient(v, 2j)", "jnp.gradient(p)",
    "jnp.interp(w, w, w)", "jnp.interp(2, k, k)", "jnp.interp(v, jnp.arange(3), c[0])",
    "jnp.interp(v, v, v, period=np.float64(2.))", "jnp.interp(v, w, w, left=1, right=2.5)",
    "jnp.interp(c, v, v)", "jnp.interp(v, jnp.arange(3), c[0], period=2)",
])
def test_slopes_and_lines_have_jaxs_types(agrees_with_jax, agrees_with_64_bits, expression):
    agrees_with_jax(expression)
    agrees_with_64_bits(expression)


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
