"""Comparisons, truth and bits agree with JAX."""

import numpy as np
import pytest

import minijax

NAMES = "equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor"
BITS = "bitwise_and bitwise_or bitwise_xor left_shift right_shift"


@pytest.mark.parametrize("pair", ["f, v", "i, 2.5", "b, True", "c, c.real", "2, 3"])
@pytest.mark.parametrize("name", NAMES.split())
def test_a_comparison_agrees_with_jax(agrees_with_jax, name, pair):
    agrees_with_jax(f"jnp.{name}({pair})")


@pytest.mark.parametrize("pair", ["i, k", "u, 3", "p, k", "i, 40"])
@pytest.mark.parametrize("name", BITS.split())
def test_bits_agree_with_jax(agrees_with_jax, name, pair):
    agrees_with_jax(f"jnp.{name}({pair})")


@pytest.mark.parametrize("expression", [
    "jnp.bitwise_and(b, True)", "jnp.bitwise_not(i)", "jnp.invert(b)", "jnp.logical_not(f)",
    "jnp.isclose(f, f + 1e-7)", "jnp.isclose(n, n)", "jnp.isclose(n, n, equal_nan=True)",
    "jnp.isclose(i, 3)", "jnp.isclose(c, c)", "jnp.isclose(f, 2, atol=1)", "jnp.allclose(f, f)",
    "jnp.allclose(n, n, equal_nan=True)", "jnp.array_equal(f, f)", "jnp.array_equal(f, v)",
    "jnp.array_equal(n, n)", "jnp.array_equal(n, n, equal_nan=True)",
    "jnp.array_equiv(jnp.ones((2, 3)), 1)", "jnp.array_equiv(f, v)",
    "jnp.array_equiv(t, f)", "jnp.array_equiv([1, 2], [[1, 2], [1, 2]])",
    "jax.jit(jnp.isclose)(f, 2.0)", "jax.vmap(jnp.array_equal)(f, f)", "jnp.bitwise_and(f, 1)",
    "jnp.left_shift(f, 1)", "jnp.equal(f, [1])", "jnp.less(f, jnp.ones(4))",
    "jnp.logical_and(f, None)", "jnp.allclose(jax.random.key(0), jax.random.key(1))",
    "jnp.isclose(jax.random.split(jax.random.key(0)), jax.random.split(jax.random.key(0), 3)[:2])",
    "jnp.isclose(jax.random.key(0), 1)",
])
def test_the_rest_agrees_with_jax(agrees_with_jax, expression):
    agrees_with_jax(expression)


def test_equality_of_complex_numbers_is_one_operation():
    [eqn] = minijax.make_jaxpr(lambda z: z == z)(np.complex64([1j, 2])).eqns
    assert eqn.primitive.name == "eq"
