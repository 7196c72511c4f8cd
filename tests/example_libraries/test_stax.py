"""Every layer against JAX's: shapes, parameters, outputs, and the keys they use."""

import jax
import jax.example_libraries.stax as theirs
import numpy as np
import pytest

import minijax
from minijax.example_libraries import stax as ours

ELEMENTWISE = ["Tanh", "Relu", "Exp", "LogSoftmax", "Softmax", "Softplus", "Sigmoid", "Elu",
               "LeakyRelu", "Selu", "Gelu", "Identity", "Flatten"]

NETWORKS = {
    "dense": lambda stax: stax.Dense(5),
    "deep": lambda stax: stax.serial(stax.Dense(8), stax.Relu, stax.Dense(3), stax.LogSoftmax),
    "residual": lambda stax: stax.serial(
        stax.FanOut(2), stax.parallel(stax.serial(stax.Dense(4), stax.Tanh), stax.Identity),
        stax.FanInSum),
    "concatenated": lambda stax: stax.serial(
        stax.FanOut(3), stax.parallel(stax.Dense(2), stax.Identity, stax.Dense(1)),
        stax.FanInConcat()),
    "normed": lambda stax: stax.serial(stax.Dense(6), stax.BatchNorm(axis=0), stax.Sigmoid),
    "normed, no shift": lambda stax: stax.BatchNorm(axis=(0,), center=False),
    "normed, no scale": lambda stax: stax.BatchNorm(axis=0, scale=False, epsilon=1e-3),
    "dropout": lambda stax: stax.serial(stax.Dense(50), stax.Dropout(0.7), stax.Dense(2)),
    "dropout of nothing": lambda stax: stax.Dropout(0.5, mode="test"),
    "shape dependent": lambda stax: stax.shape_dependent(lambda s: stax.Dense(s[-1] * 2)),
    "other weights": lambda stax: stax.Dense(3, W_init=stax.randn(), b_init=stax.ones),
}


def same(mine, jaxs):
    pairs = zip(jax.tree.leaves(mine), jax.tree.leaves(jaxs), strict=True)
    for one, other in pairs:
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        np.testing.assert_allclose(one, other, rtol=2e-6, atol=2e-6)


def built(library, stax, make, x, wrap=lambda f: f):
    init, apply = make(stax)
    shape, params = init(library.random.key(1), (-1, *x.shape[1:]))

    def loss(p):
        return library.numpy.sum(apply(p, x, rng=library.random.key(2)) ** 2)

    result = library.jit(apply)(params, x, rng=library.random.key(2))
    return shape, params, result, wrap(library.grad(loss))(params)


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_agree_with_jax(name):
    x = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)
    shape, *arrays = built(minijax, ours, NETWORKS[name], x)
    their_shape, *their_arrays = built(jax, theirs, NETWORKS[name], x, jax.jit)
    assert shape == their_shape
    assert str(minijax.tree.structure(arrays)) == str(jax.tree.structure(their_arrays))
    same(arrays, their_arrays)


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_layers_without_parameters_agree_with_jax(name):
    x = np.linspace(-3, 3, 24, dtype=np.float32).reshape(2, 3, 4)
    (init, apply), (their_init, their_apply) = getattr(ours, name), getattr(theirs, name)
    assert init(None, (-1, 3, 4)) == their_init(None, (-1, 3, 4))
    same(apply((), minijax.numpy.asarray(x)), their_apply((), jax.numpy.asarray(x)))


def test_batch_norm_takes_pictures_by_default():
    x = np.random.default_rng(0).normal(size=(2, 3, 3, 5)).astype(np.float32)
    _, *arrays = built(minijax, ours, lambda stax: stax.BatchNorm(), x)
    same(arrays, built(jax, theirs, lambda stax: stax.BatchNorm(), x)[1:])


@pytest.mark.parametrize("library", [ours, theirs], ids=["ours", "theirs"])
def test_dropout_without_a_key_is_refused_in_jaxs_words(library):
    with pytest.raises(ValueError, match="Dropout layer requires apply_fun to be called with a"):
        library.Dropout(0.5)[1]((), np.ones(3))


IMAGES = np.random.default_rng(1).normal(size=(2, 5, 6, 3)).astype(np.float32)


@pytest.mark.parametrize("layer", [
    lambda stax: stax.Conv(4, (3, 2), (2, 1), "SAME"),
    lambda stax: stax.GeneralConv(("NHWC", "OIHW", "NCHW"), 4, (3, 3)),
    lambda stax: stax.ConvTranspose(4, (3, 3), (2, 2), "SAME"),
    lambda stax: stax.MaxPool((2, 2), (2, 1)), lambda stax: stax.SumPool((2, 3), spec="NHWC"),
    lambda stax: stax.AvgPool((2, 2), padding="SAME")])
def test_convolutions_and_pools_agree_with_jax(layer):
    found, wanted = (jax.tree.leaves(built(library, stax, layer, IMAGES)[1:])
                     for library, stax in ((minijax, ours), (jax, theirs)))
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
