"""The places of extrema, as JAX finds them."""

import numpy as np
import pytest

import minijax
from minijax import lax

X = np.random.default_rng(0).standard_normal((3, 4, 5)).astype(np.float32)
INTS = (X * 100).astype(np.int32)


@pytest.mark.parametrize("x", [X, INTS // 50, X > 0, np.where(X > 1, np.nan, X)],
                         ids=["float", "int with ties", "bool", "nan"])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_the_first_extremum_is_found_compiled_or_not(name, x, agrees_closely):
    for axis in range(3):
        agrees_closely(lambda lax, axis=axis: getattr(lax, name)(x, axis, np.int32))
        f = lambda x, axis=axis: getattr(lax, name)(x, axis, np.int32)
        np.testing.assert_array_equal(minijax.jit(f)(x), f(x))


@pytest.mark.parametrize("call", [
    lambda lax: lax.argmax(X, 3, int), lambda lax: lax.argmax(X, -1, int),
    lambda lax: lax.argmax(X[:, :0], 1, int), lambda lax: lax.argmax(X, 1, float),
    lambda lax: lax.argmax(1., 0, int), lambda lax: lax.argmax(X * 1j, 0, int),
    lambda lax: lax.argmin(X > 0, 2, np.int8),
    lambda lax: lax.argmin(np.float32([1, -0., 0.]), 0, int)])
def test_types_and_refusals_are_those_of_jax(call, agrees_closely):
    agrees_closely(call)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_the_ends_of_every_integer_type_are_in_order(name):
    for dtype in (np.int8, np.int16, np.int32, np.uint8, np.uint16, np.uint32):
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        x = np.array([[low, high // 2 + 1, high - 1], [high // 2, low + 1, high],
                      [high, low, low]], dtype)
        for axis in (0, 1):
            f = lambda x, axis=axis: getattr(lax, name)(x, axis, np.int32)
            expected = getattr(np, name)(x, axis)
            np.testing.assert_array_equal(f(x), expected)
            np.testing.assert_array_equal(minijax.jit(f)(x), expected)
