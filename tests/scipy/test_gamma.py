"""What is made of the gamma function agrees with JAX and SciPy."""

import jax
import jax.scipy.special  # noqa: F401
import numpy as np
import pytest
import scipy.special

import minijax
import minijax.scipy


@pytest.mark.parametrize("expression", [
    "comb(5, 2)", "comb(5., 2)", "comb(w, w[::-1])", "comb(g, 2)", "comb(-1., 1)", "comb(2, 3)",
    "comb(5, 2, repetition=True)", "comb(0, 0, repetition=True)", "comb(w, w, repetition=True)",
    "comb([1], 2)", "comb(3 + 1j, 2)", "poch(2., 3.)", "poch(2, 3)", "poch(g, f)", "poch(0., 0.)",
    "poch(1j, 2.)", "poch([1], 2)", "bernoulli(0)", "bernoulli(1)", "bernoulli(-1)",
    "bernoulli(2.5)", "bernoulli(20)", "boxcox1p(g, 0.)", "boxcox1p(g, f)", "boxcox1p(1., 2.)",
])
def test_functions(agrees_with_jax, expression):
    agrees_with_jax("jax.scipy.special." + expression, rtol=1e-5)


@pytest.mark.parametrize(("name", "args"), [("poch", [2.5, 1.5]), ("comb", [5.5, 2.5]),
                                            ("boxcox1p", [.5, .7]), ("boxcox1p", [.5, 1e-3])])
def test_derivatives(name, args, beside_jax):
    found, wanted = beside_jax(
        lambda top: top.grad(getattr(top.scipy.special, name), (0, 1))(*args))
    np.testing.assert_allclose(found, wanted, 1e-5)


def test_bernoulli_numbers_are_exact():
    with minijax.enable_x64(True):
        found = np.asarray(minijax.scipy.special.bernoulli(262))
    np.testing.assert_allclose(found[:200], scipy.special.bernoulli(199), 1e-11)
    assert np.isfinite(found[258]) and found[260] == -np.inf and found[262] == np.inf


def test_pochhammer_symbols_of_large_numbers():
    z, m = np.random.default_rng(0).uniform(-10, 50, (2, 500))
    with minijax.enable_x64(True):
        found = minijax.scipy.special.poch(z, m)
    np.testing.assert_allclose(found, scipy.special.poch(z, m), 2e-12)


def test_the_gamma_function_of_complex_numbers():
    z = np.complex64([0, -1, -5, -.5, .5 + 1j, .5 - 1j, -2.5 + 1e-12j, 3 + 4j, np.nan, -10.5 + .3j])
    ours, theirs = (np.asarray(lib.scipy.special.gamma(z)) for lib in (minijax, jax))
    assert ours.dtype == theirs.dtype
    np.testing.assert_array_equal(np.isnan(ours.imag), np.isnan(theirs.imag))
    np.testing.assert_allclose(ours, theirs, 1e-5, 1e-6)
