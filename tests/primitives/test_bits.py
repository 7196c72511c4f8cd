"""Bits of integers, counted as JAX counts them."""

import numpy as np
import pytest

import minijax
from minijax import lax

VALUES = [0, 1, 2, 3, 7, 8, 100, 127]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
@pytest.mark.parametrize("name", ["population_count", "clz"])
def test_bits_are_counted_as_in_jax_compiled_or_not(name, dtype, agrees_closely):
    limits = np.iinfo(dtype)
    x = np.array([*VALUES, limits.min, limits.max, limits.max - 5], dtype)
    agrees_closely(lambda lax: getattr(lax, name)(x))
    np.testing.assert_array_equal(minijax.jit(getattr(lax, name))(x), getattr(lax, name)(x))


def test_floats_have_no_bits_to_count(agrees_closely):
    agrees_closely(lambda lax: lax.population_count(1.))
