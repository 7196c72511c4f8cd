"""Analytic functions: close to JAX everywhere, special values included, eager and compiled."""

import math

import ml_dtypes
import numpy as np
import pytest

import minijax

X = np.float32([0., -0., 1., -1., .5, -.5, 1.5, -3., 1e-4, 20., -20., 90., -110., 1e4, np.inf,
                -np.inf, np.nan])
NAMES = ["exp", "exp2", "log", "log1p", "expm1", "tanh", "logistic", "sin", "cos", "tan", "asin",
         "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "erf", "erfc", "erf_inv"]
# XLA flushes or approximates where these differ by more than a few units in the last place.
LOOSE = {"exp2": 5e-6, "erfc": 3e-5, "asinh": 1e-4, "acosh": 1e-6, "atanh": 1e-6, "tan": 1e-6,
         "acos": 1e-6, "sinh": 2e-6, "cosh": 2e-6, "log1p": 1e-6, "erf_inv": 1e-6, "exp": 1e-6,
         "expm1": 1e-6}


@pytest.mark.parametrize("name", NAMES)
def test_values_are_those_of_jax(name, agrees_closely):
    agrees_closely(lambda lax: getattr(lax, name)(X), LOOSE.get(name, 5e-7))


@pytest.mark.parametrize("name", NAMES)
def test_compiled_values_are_those_of_jax(name, agrees_closely):
    from minijax import lax as ours
    agrees_closely(lambda lax: (minijax.jit(getattr(lax, name)) if lax is ours
                                else getattr(lax, name))(X), LOOSE.get(name, 5e-7))


BETWEEN = {"log": (.1, 9), "log1p": (-.9, 9), "acosh": (1.1, 9),
           **dict.fromkeys(("asin", "acos", "atanh"), (-.99, .99))}


@pytest.mark.parametrize("name", ["exp", "log", "log1p", "expm1", "tan", "sinh", "cosh", "tanh",
                                  "asin", "acos", "atan", "asinh", "acosh", "atanh"])
def test_an_evaluated_float32_is_the_nearest_number(name):
    x = np.random.default_rng(0).uniform(*BETWEEN.get(name, (-3, 3)), 1000).astype(np.float32)
    expected = [getattr(math, name)(each) for each in x.tolist()]
    np.testing.assert_array_equal(getattr(minijax.lax, name)(x), np.float32(expected))


def test_an_evaluated_power_and_angle_are_the_nearest_number():
    x, y = np.random.default_rng(0).uniform(.1, 3, (2, 1000)).astype(np.float32)
    for ours, theirs in ((minijax.lax.pow, math.pow), (minijax.lax.atan2, math.atan2)):
        expected = list(map(theirs, x.tolist(), y.tolist()))
        np.testing.assert_array_equal(ours(x, y), np.float32(expected))


@pytest.mark.parametrize("name", NAMES)
def test_bfloat16_is_rounded_once(name, agrees_closely):
    agrees_closely(lambda lax: getattr(lax, name)(X[:9].astype(ml_dtypes.bfloat16)), 1e-2)


@pytest.mark.parametrize("name", NAMES)
def test_integers_are_refused(name, agrees_closely):
    agrees_closely(lambda lax: getattr(lax, name)(1))


def test_the_angle_of_a_point_has_the_quadrants_of_jax(agrees_closely):
    y, x = (a.ravel() for a in np.meshgrid(X, X))
    agrees_closely(lambda lax: lax.atan2(y, x), 5e-7)


def test_complex_numbers_are_computed_without_jit(agrees_closely):
    z = np.complex64([1 + 2j, -.5j, .25])
    for name in ["exp", "log", "sin", "tanh", "sqrt"]:
        agrees_closely(lambda lax, name=name: getattr(lax, name)(z), 1e-5)


@pytest.mark.parametrize("name", "arcsin arccos arctan arcsinh arccosh arctanh".split())
def test_compiled_inverses_of_infinite_and_unknown_parts_are_numpys(name):
    parts = np.inf, -np.inf, np.nan
    z = np.array([complex(x, y) for x in parts for y in parts], np.complex64)
    compiled = np.asarray(minijax.jit(getattr(minijax.numpy, name))(z))
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(z)
    np.testing.assert_allclose(compiled.real, expected.real, rtol=1e-6)
    np.testing.assert_allclose(abs(compiled.imag), abs(expected.imag), rtol=1e-6)
