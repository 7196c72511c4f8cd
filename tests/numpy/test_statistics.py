"""Covariances and correlations beside JAX."""

import jax
import numpy as np
import pytest

import minijax

X = np.float32([[1, 2, 4, 8], [3, 1, 0, 2], [0, 0, 1, 5]])
Y = np.float32([5, 1, 2, 2])
OFTEN, MUCH = np.int32([1, 2, 0, 3]), np.float32([.5, 1, 2, 1])


def outcome(lib, name, args, options):
    try:
        return np.asarray(getattr(lib.numpy, name)(*args, **options))
    except Exception as error:
        return type(error).__name__, str(error)


@pytest.mark.parametrize(("args", "options"), [
    ((X,), {}), ((X, Y), {}), ((X, X[:2]), {}), ((X.T,), {"rowvar": False}), ((Y,), {}),
    ((X,), {"bias": True}), ((X,), {"ddof": 2}), ((X,), {"fweights": OFTEN}),
    ((X,), {"aweights": MUCH}), ((X,), {"fweights": OFTEN, "aweights": MUCH}),
    ((X,), {"aweights": MUCH, "ddof": 0}), ((X.astype(int),), {}), ((X + 1j * X[::-1],), {}),
    ((X[:0],), {}), ((X[None],), {}), ((X,), {"fweights": MUCH}), ((X,), {"fweights": OFTEN[:2]}),
    ((X,), {"aweights": MUCH[:, None]}), ((X[:, :0],), {}), ((Y[:0],), {}), ((X[0, :1],), {}),
    ((X[:0],), {"rowvar": False}), ((X[:, :0],), {"rowvar": False}), ((X[:, :0],), {"ddof": 0}),
    ((X[:, :0],), {"bias": True}), ((X[:, :0], X[:1, :0]), {}), ((X[:, :0] * 1j,), {}),
    ((X[:0] * 1j,), {}), ((X[:0].astype("float16"),), {}), ((X[:, :0],), {"dtype": "float16"}),
    ((X[:0], X[:2]), {}), ((X[:2], X[:0]), {}), ((X[:, :0],), {"aweights": MUCH}),
    ((X[:, :0],), {"fweights": OFTEN[:0]})])
def test_covariances(args, options):
    found, wanted = (outcome(lib, "cov", args, options) for lib in (minijax, jax))
    if isinstance(wanted, tuple):
        assert found == wanted
        return
    assert found.shape == wanted.shape and found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("args", [
    (X,), (X, Y), (Y,), (X + 1j * X[::-1],), (X[:0],), (X[:, :0],), (Y[:0],), (Y[:1],)])
def test_correlations(args):
    found, wanted = (outcome(lib, "corrcoef", args, {}) for lib in (minijax, jax))
    assert found.shape == wanted.shape and found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
