"""qr, eigh and svd: with JAX's signs, eager and compiled; what has no derivative says so."""

import jax
import numpy as np
import pytest

import minijax
from minijax import lax


def random(*shape):
    return np.random.default_rng(3).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("name, shape, params", [
    ("qr", (5, 5), {}), ("qr", (2, 6, 4), {}), ("qr", (4, 6), {}),
    ("qr", (40, 30), {"full_matrices": False}), ("eigh", (9, 9), {}), ("eigh", (2, 30, 30), {}),
    ("eigh", (5, 5), {"lower": False}), ("svd", (9, 9), {}), ("svd", (5, 3), {}),
    ("svd", (3, 5), {}), ("svd", (2, 20, 7), {"full_matrices": False}),
    ("svd", (6, 9), {"compute_uv": False})])
def test_the_factors_are_jaxs_signs_included(name, shape, params):
    x = random(*shape)
    wanted = jax.tree.leaves(getattr(jax.lax.linalg, name)(x, **params))
    f = lambda x: minijax.tree.leaves(getattr(lax.linalg, name)(x, **params))
    for found in (f(x), minijax.jit(f)(x)):
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0)])
def test_empty_matrices(shape):
    x = np.zeros(shape, np.float32)
    for name in ("qr", "svd"):
        wanted = jax.tree.leaves(getattr(jax.lax.linalg, name)(x))
        f = lambda x, name=name: minijax.tree.leaves(getattr(lax.linalg, name)(x))
        for found in (f(x), minijax.jit(f)(x)):
            for one, other in zip(found, wanted, strict=True):
                np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", ["eigh", "svd"])
def test_nan_has_no_spectrum(name):
    x = np.full((3, 3), np.nan, np.float32)
    f = lambda x: minijax.tree.leaves(getattr(lax.linalg, name)(x))
    for found in (f(x), minijax.jit(f)(x)):
        assert all(np.isnan(y).all() for y in found)


def test_singular_vectors_that_are_not_unique_have_no_derivative():
    x = random(4, 2)
    with pytest.raises(NotImplementedError, match="JVP not implemented for full matrices"):
        minijax.jvp(lax.linalg.svd, (x,), (x,))


@pytest.mark.parametrize("name", ["cholesky", "lu", "qr", "eigh", "svd"])
def test_the_factors_of_weak_matrices_are_weak(name):
    found = []
    for m in (minijax, jax):
        factored = getattr(m.lax.linalg, name)
        factors = m.eval_shape(lambda x, m=m, f=factored: f(m.lax.broadcast(x, (2, 2))), 1.0)
        found.append([x.weak_type for x in m.tree.leaves(factors)])
    assert found[0] == found[1]
