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


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("expression", [
    "jax.grad(lambda x: jax.nn.logsumexp(x, where=np.arange(3) < 2))(jnp.array([0., 0, 100]))",
    "jax.nn.logsumexp(jnp.array([0., 1, 2 + 1j]), where=np.array([True, False, True]))",
    "jax.nn.logsumexp(jnp.array([0., 1]), where=np.array([False, False]))",
    "jnp.std(np.ones(3), ddof=1, correction=0)", "jnp.var(np.arange(3.), ddof=0, correction=1)",
    "jnp.var(np.ones(3, 'c8'), dtype='f4')", "jnp.nanvar(np.ones(3, 'c8'), dtype='f4')",
    "jnp.var(np.ones(3, 'c8'), dtype='c8')", "jnp.cov(np.arange(3.), dtype=int)",
    "jnp.corrcoef(np.arange(3.), dtype=int)", "jnp.cov(np.arange(3.), dtype='bfloat16')",
    "jax.scipy.stats.rankdata(np.ones((2, 3, 0)), axis=-1)",
    "jax.scipy.special.sph_harm_y(np.array([1, 1, 2]), np.array([1, -1, 1]), "
    "np.array([-2., -1, .5]), np.array([.1, .2, .3]), n_max=2)"])
def test_masks_names_of_the_correction_and_dtypes(expression):
    def value(lib):
        try:
            return eval(expression, {"jax": lib, "jnp": lib.numpy, "np": np})
        except ValueError as error:
            return str(error).partition(" got ")[0]
    ours, theirs = map(value, (minijax, jax))
    if isinstance(theirs, str):
        assert ours == theirs
    else:
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), 1e-6)
