"""The incomplete gamma functions beside SciPy's and JAX's."""

import jax
import numpy as np
import pytest
import scipy.special

import minijax
from minijax import lax

A, X = np.meshgrid(np.float64([.1, .5, 1, 2, 5, 50, 300]), np.float64([.01, .3, 1, 4, 60, 280]))


@pytest.mark.parametrize(("name", "truth"), [("igamma", scipy.special.gammainc),
                                             ("igammac", scipy.special.gammaincc)])
def test_values_are_those_of_scipy(name, truth):
    with minijax.enable_x64(True):
        found = np.asarray(getattr(lax, name)(A, X))
    np.testing.assert_allclose(found, truth(A, X), rtol=2e-12, atol=1e-300)


@pytest.mark.parametrize("name", ["igamma", "igammac", "igamma_grad_a", "random_gamma_grad"])
def test_values_in_short_floats_and_at_the_edges_are_those_of_jax(name):
    for dtype in (np.float32, np.float16):
        a, x = (np.array(v, dtype) for v in ([.5, 2, 3, 3, 0, -1, np.nan, 1],
                                             [.2, 3, 0, -1, 1, 1, 1, np.nan]))
        found, wanted = (getattr(j.lax, name)(a, x) for j in (minijax, jax))
        assert found.dtype == wanted.dtype
        rough = 1e-5 if dtype == np.float32 else 2e-3
        np.testing.assert_allclose(np.asarray(found, float), np.asarray(wanted, float),
                                   rtol=rough, atol=rough)


def test_slopes_are_those_of_differences():
    with minijax.enable_x64(True):
        step = 1e-5
        for name in ("igamma", "igammac"):
            f = getattr(lax, name)
            for slope, before, after in (
                    (minijax.grad(f)(2.5, 1.7), f(2.5 - step, 1.7), f(2.5 + step, 1.7)),
                    (minijax.grad(f, 1)(2.5, 1.7), f(2.5, 1.7 - step), f(2.5, 1.7 + step))):
                np.testing.assert_allclose(float(slope), float(after - before) / 2 / step,
                                           rtol=1e-7)


def test_what_is_no_float_is_refused_in_jaxs_words():
    errors = []
    for j in (minijax, jax):
        with pytest.raises(TypeError) as caught:
            j.lax.igamma(1, 2)
        errors.append(str(caught.value))
    assert errors[0] == errors[1]
