"""Bessel functions agree with SciPy."""

import numpy as np
import pytest
import scipy.special

import minijax
from minijax import lax

X = np.concatenate([np.linspace(-9, 9, 101), np.geomspace(8, 1e9, 50), -np.geomspace(8, 1e9, 50)])


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-6), (np.float64, 2e-14)])
@pytest.mark.parametrize("name", ["i0e", "i1e"])
def test_values(name, dtype, tolerance):
    x = X.astype(dtype)
    with minijax.enable_x64(dtype == np.float64):
        f = getattr(lax, f"bessel_{name}")
        for found in (f(x), minijax.jit(f)(x)):
            assert found.dtype == dtype
            np.testing.assert_allclose(found, getattr(scipy.special, name)(x.astype(float)),
                                       rtol=tolerance, atol=1e-30)
