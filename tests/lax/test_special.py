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


MANY = np.random.default_rng(0)
SHAPES, BETAS = MANY.uniform(.05, 60, (2, 2000)).astype(np.float32)
PLACES, PARTS = (SHAPES * MANY.uniform(.2, 3, 2000)).astype(np.float32), MANY.uniform(
    0, 1, 2000).astype(np.float32)


@pytest.mark.parametrize(("name", "truth", "args", "tolerance"), [
    ("igamma", scipy.special.gammainc, (SHAPES, PLACES), 1e-4),
    ("igammac", scipy.special.gammaincc, (SHAPES, PLACES), 1e-4),
    ("betainc", scipy.special.betainc, (SHAPES, BETAS, PARTS), 5e-4)])
def test_one_of_many_is_not_rounded_on_while_others_go_on(name, truth, args, tolerance):
    found, wanted = getattr(lax, name)(*args), truth(*(x.astype(np.float64) for x in args))
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=1e-30)


def test_the_incomplete_beta_function_is_scipys_and_at_its_ends_jaxs():
    a, b, x = np.meshgrid([.1, 1, 3, 40, 300.], [.2, 1, 5, 60.], [1e-6, .1, .5, .9, .999])
    with minijax.enable_x64(True):
        np.testing.assert_allclose(lax.betainc(a, b, x), scipy.special.betainc(a, b, x),
                                   rtol=2e-11, atol=1e-300)
    ends = [0, 1, -1, np.inf, np.nan, 2]
    a, b, x = (np.float32(v) for v in np.meshgrid(ends, ends, [0, 1, .3, -1, 2, np.nan]))
    np.testing.assert_allclose(lax.betainc(a, b, x), np.asarray(jax.lax.betainc(a, b, x)),
                               rtol=1e-5)


def test_derivatives_that_are_not_known_are_refused_in_jaxs_words(refused_alike):
    refused_alike(lambda lib: lib.grad(lib.lax.betainc)(2., 3., .5))
    refused_alike(lambda lib: lib.grad(lib.lax.polygamma)(2., 3.))
    for lib in (jax, minijax):
        with pytest.raises(NotImplementedError, match="Differentiation rule for 'zeta' not impl"):
            lib.grad(lib.lax.zeta)(2., 3.)


def test_derivatives_in_the_last_argument_are_those_of_jax():
    for args, f in (((2., 3., .3), "betainc"), ((1., 2.5), "polygamma")):
        found, wanted = (lib.grad(getattr(lib.lax, f), len(args) - 1)(*args)
                         for lib in (minijax, jax))
        np.testing.assert_allclose(found, wanted, rtol=1e-5)
