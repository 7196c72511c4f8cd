"""Rounding and the floats next to a float, as JAX has them."""

import jax
import ml_dtypes
import numpy as np
import pytest

import minijax
from minijax import lax

FLOATS = np.float32([0., -0., 1., -1.5, 2.5, -2.5, .5, 1e-3, 2e34, np.inf, -np.inf, np.nan])
HALVES = np.array([0, 1, -1.5, 2.5, 300, -.001], ml_dtypes.bfloat16)


def pairs(x):
    one, two = np.meshgrid(x, x)
    return np.ascontiguousarray(one).ravel(), np.ascontiguousarray(two).ravel()


@pytest.mark.parametrize("x", [FLOATS, HALVES, np.int32([1])], ids=lambda x: str(x.dtype))
@pytest.mark.parametrize("name", ["floor", "ceil", "round", "is_finite"])
def test_rounding_is_as_in_jax(name, x, agrees_closely):
    agrees_closely(lambda lax: getattr(lax, name)(x))


def test_rounding_takes_halves_away_from_zero_or_to_even(agrees_closely):
    x = np.float32([.5, 1.5, 2.5, -.5, -2.5, .49999997, 8388609., -.2])
    agrees_closely(lambda lax: lax.round(x))
    agrees_closely(lambda lax: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN))


def test_the_next_float_is_as_in_jax(agrees_closely):
    agrees_closely(lambda lax: lax.nextafter(*pairs(FLOATS)))
    one, two = pairs(FLOATS)
    np.testing.assert_array_equal(np.asarray(minijax.jit(lax.nextafter)(one, two)),
                                  np.asarray(jax.lax.nextafter(one, two)))


def test_integers_have_no_next_float(agrees_closely):
    agrees_closely(lambda lax: lax.nextafter(1, 2))


NEAR = np.float32([0, -0., 1, 1.2345678, -1.2345678, 65504, 65519.9, 65520, 6.1e-5, 6e-8, -3e-8,
                   1e-40, 3e38, np.inf, -np.inf, np.nan])


@pytest.mark.parametrize("bits", [(5, 10), (8, 7), (8, 23), (2, 1), (1, 0), (11, 52), (5, 23)])
@pytest.mark.parametrize("dtype", ["float32", "float16", ml_dtypes.bfloat16])
def test_numbers_of_fewer_bits_are_those_of_jax(bits, dtype):
    with np.errstate(over="ignore"):
        x = NEAR.astype(dtype)
    wanted = np.asarray(jax.lax.reduce_precision(x, *bits))
    for found in (lax.reduce_precision(x, *bits),
                  minijax.jit(lax.reduce_precision, static_argnums=(1, 2))(x, *bits)):
        np.testing.assert_array_equal(np.asarray(found).view("uint8"), wanted.view("uint8"))


def test_numbers_without_bits_are_refused(agrees):
    agrees(lambda lax: lax.reduce_precision(1., 0, 3))
    agrees(lambda lax: lax.reduce_precision(1., 3, -1))
    agrees(lambda lax: lax.reduce_precision(1, 3, 3))
