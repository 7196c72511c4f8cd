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
def test_values_in_short_floats_and_at_the_edges_are_those_of_jax(name, beside_jax):
    for dtype in (np.float32, np.float16):
        a, x = (np.array(v, dtype) for v in ([.5, 2, 3, 3, 0, -1, np.nan, 1],
                                             [.2, 3, 0, -1, 1, 1, 1, np.nan]))
        found, wanted = beside_jax(lambda j: getattr(j.lax, name)(a, x))
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
    for name in ("zeta", "igamma_grad_a"):
        for lib in (jax, minijax):
            with pytest.raises(NotImplementedError,
                               match=f"Differentiation rule for '{name}' not impl"):
                lib.grad(getattr(lib.lax, name))(2., 3.)


def test_a_program_has_one_equation_for_each_as_in_jax(refused_alike, beside_jax):
    for name, args in (("igamma", (2., 1.)), ("igammac", (np.ones(2), 1.)),
                       ("igamma_grad_a", (2., 1.)), ("betainc", (2., 3., .5))):
        ours, wanted = beside_jax(lambda lib: str(lib.make_jaxpr(getattr(lib.lax, name))(*args)))
        assert ours == wanted
    refused_alike(lambda lib: lib.lax.betainc(1, 2, 3))


def test_a_nan_is_said_to_come_from_the_whole_operation():
    with minijax.debug_nans(True), pytest.raises(FloatingPointError, match="countered in igamma"):
        lax.igamma(-1., 2.)


def test_derivatives_in_the_last_argument_are_those_of_jax(beside_jax):
    for args, f in (((2., 3., .3), "betainc"), ((1., 2.5), "polygamma")):
        found, wanted = beside_jax(lambda lib: lib.grad(getattr(lib.lax, f), len(args) - 1)(*args))
        np.testing.assert_allclose(found, wanted, rtol=1e-5)


@pytest.mark.parametrize("x64", [False, True])
def test_large_shapes_end_and_are_exact(x64):
    """The series would go on for the root of the shape, or, where that stays as one is added to
    it, for ever: in JAX it does.
    """
    with minijax.enable_x64(x64):
        dtype, tolerance = (np.float64, 1e-13) if x64 else (np.float32, 3e-6)
        a = np.array([1e4, 1.2e4, 1e6, 1e8, 1e30]).astype(dtype)[:, None]
        if x64:
            a = a[2:]
        x = (a + np.sqrt(a) * np.array([-3, -1, 0, .5, 2])).astype(dtype)
        wide_a, wide_x = (np.broadcast_to(v, x.shape).astype(np.float64) for v in (a, x))
        for ours, exact in ((lax.igamma, scipy.special.gammainc),
                            (lax.igammac, scipy.special.gammaincc)):
            np.testing.assert_allclose(ours(*map(dtype, (wide_a, wide_x))), exact(wide_a, wide_x),
                                       rtol=tolerance)
        ratio = (wide_x - wide_a) / wide_a  # a gamma number moves as it would in the limit
        safe = np.where(ratio == 0, 1, ratio)
        moved = (1 + ratio) * np.where(abs(ratio) < 1e-7, 1, np.log1p(safe) / safe)
        np.testing.assert_allclose(lax.random_gamma_grad(*map(dtype, (wide_a, wide_x))), moved,
                                   rtol=2e-5)


def test_the_derivatives_of_special_values_end():
    values = np.array([0, 1e-45, .5, 1, 10, 1e5, 1e30, np.inf, -.5, -1, -1e30, -np.inf, np.nan],
                      np.float32)
    a, x = (v.ravel() for v in np.meshgrid(values, values))
    for f in (lax.igamma, lax.igammac):
        for place in (0, 1):
            minijax.vmap(minijax.grad(f, place))(a, x)
    kinds = [~(a >= 0) | ~(x >= 0) | (a == 0) & (x == 0), (a > 0) & (x == 0)]
    found = np.asarray(lax.igamma(a, x))
    assert np.isnan(found[kinds[0]]).all() and (found[kinds[1]] == 0).all()


def test_gamma_numbers_have_second_derivatives(beside_jax):
    a, x = np.float32([.7, 1.3, 4.]), np.float32([.3, 2., 3.])
    found, wanted = beside_jax(lambda lib: lib.jacfwd(lib.jacfwd(lib.lax.random_gamma_grad))(a, x))
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)
