"""lgamma, digamma and polygamma agree with SciPy to a few units in the last place."""

import numpy as np
import pytest
import scipy.special

import minijax
from minijax import config, lax
from minijax.primitives.gamma import polygamma

X = np.concatenate([np.linspace(.01, 30, 300), [100, 1e4, 1e8, -.5, -1.3, -2.7, -10.2, 1e-5]])


@pytest.mark.parametrize("dtype, tolerance", [(np.float32, 3e-6), (np.float64, 1e-13)])
def test_values(dtype, tolerance):
    x = X.astype(dtype)
    with config.enable_x64(dtype == np.float64):
        for f, g in ((lax.lgamma, scipy.special.gammaln), (lax.digamma, scipy.special.digamma)):
            wanted = g(x.astype(np.float64))
            for found in (f(x), minijax.jit(f)(x)):
                assert found.dtype == dtype
                np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)
        for n in (1, 2, 3):
            wanted = scipy.special.polygamma(n, x[x > 0].astype(np.float64))
            np.testing.assert_allclose(polygamma(n, x[x > 0]), wanted, rtol=tolerance)


def test_poles():
    x = np.float32([0, -1, -2, np.inf, -np.inf])
    np.testing.assert_array_equal(lax.lgamma(x), np.full(5, np.inf))
    assert np.isnan(np.asarray(lax.digamma(x))[:3]).all()


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 2e-6), (np.float64, 1e-14)])
def test_zeta(dtype, tolerance):
    s, q = np.random.default_rng(0).uniform([[1.01], [.01]], [[12], [40]], (2, 2000)).astype(dtype)
    with config.enable_x64(dtype == np.float64):
        np.testing.assert_allclose(lax.zeta(s, q), scipy.special.zeta(
            s.astype(np.float64), q.astype(np.float64)), rtol=tolerance)
