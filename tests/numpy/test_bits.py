"""A number's parts and divisors are NumPy's, in every dtype."""

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp

NUMBERS = np.float32([0., -0., 1., -2.5, 1e-40, -1e-45, 3.4e38, np.inf, -np.inf, np.nan])


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_frexp_and_spacing_are_numpys(dtype):
    with np.errstate(all="ignore"):
        x = NUMBERS.astype(dtype)
        for ours, theirs in zip(jnp.frexp(x), np.frexp(x), strict=True):
            known = np.isfinite(x)
            np.testing.assert_array_equal(np.asarray(ours)[known], theirs[known])
        x = x[x != -np.inf]  # JAX: inf in float16
        np.testing.assert_array_equal(np.abs(jnp.spacing(x)), np.abs(np.spacing(x)))


def test_frexp_has_the_slope_of_its_power():
    assert float(minijax.grad(lambda x: jnp.frexp(x)[0])(3.0)) == 0.25


def test_bits_packed_and_unpacked_are_the_same():
    bits = np.random.default_rng(0).integers(0, 2, (3, 16), np.uint8)
    for order in ("big", "little"):
        packed = jnp.packbits(bits, 1, order)
        np.testing.assert_array_equal(packed, np.packbits(bits, 1, order))
        np.testing.assert_array_equal(jnp.unpackbits(packed, 1, None, order), bits)


def test_divisors_are_numpys():
    x, y = np.meshgrid(np.arange(-6, 7), np.arange(-6, 7))
    np.testing.assert_array_equal(jnp.gcd(x, y), np.gcd(x, y))
    np.testing.assert_array_equal(jnp.lcm(x, y), np.lcm(x, y))


@pytest.mark.parametrize("expression", [
    "jnp.gcd(u, jnp.uint8(6))", "jnp.lcm(u[1] % 7, jnp.uint8([2, 4, 6]))", "jnp.gcd(b, 2)",
    "jnp.gcd(b, b)", "jnp.gcd(2, w)", "jnp.lcm(w, 6)", "jnp.gcd(jnp.uint32(6), w)",
    "jnp.lcm(b, 2)", "jnp.gcd(4, 6)", "jnp.lcm(lax.full((2,), 4), 6)", "jnp.gcd(f, 2)",
])
def test_divisors_of_all_integers_are_jaxs(agrees_with_jax, agrees_with_64_bits, expression):
    agrees_with_jax(expression)
    agrees_with_64_bits(expression)
