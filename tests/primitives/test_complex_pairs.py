"""Formulas of real and imaginary parts: evaluated and compiled, they are one."""

import itertools

import numpy as np
import pytest

from minijax import debug_nans, jit, lax, nn, numpy as jnp

SPECIAL = 0., -0., 1.5, -2., np.inf, -np.inf, np.nan, 1e30, -1e30, 1e-30, 100.
POINTS = np.array([complex(*x) for x in itertools.product(SPECIAL, repeat=2)], np.complex64)
FUNCTIONS = {name: getattr(jnp, name) for name in (
    "exp exp2 expm1 log log1p log2 log10 sqrt sin cos tan arcsin arccos arctan sinh cosh tanh "
    "arcsinh arccosh arctanh square reciprocal sign sinc").split()} | {
    "rsqrt": lax.rsqrt, "cube": lambda z: z ** 3, "inverse square": lambda z: z ** -2,
    "logistic": nn.sigmoid, "power": lambda z: z ** (.5 - 1.25j),
    "quotient": lambda z: z / jnp.roll(z, 7)}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_evaluated_and_compiled_functions_have_the_same_infinities(name):
    f = FUNCTIONS[name]
    for found, wanted in zip((part(f(jnp.asarray(POINTS))) for part in (jnp.real, jnp.imag)),
                             (part(jit(f)(POINTS)) for part in (jnp.real, jnp.imag)), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=1e-38)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_a_formula_does_not_choose_is_no_nan_for_the_check(name):
    with debug_nans(True):
        out = FUNCTIONS[name](jnp.array([.5 + .2j, 1 + 2j, -3 - 1j, 1e-3j, 2]))
    assert jnp.isfinite(out).all()
