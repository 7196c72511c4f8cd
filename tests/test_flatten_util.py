"""A tree as one vector and back agrees with JAX, for each mixture of dtypes."""

import jax
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree as jax_ravel_pytree

import minijax
import minijax.numpy as jnp
from minijax.flatten_util import ravel_pytree

TREES = {
    "one dtype": {"w": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.float32([1, 2])},
    "floats and integers": [np.float32(1.5), np.arange(3, dtype=np.int32)],
    "Python numbers": (1.0, 2, {"x": True}),
    "halves and bools": [np.float16([1, 2]), np.bool_([True, False])],
    "bfloat16 and float16": [jnp.bfloat16(1), np.float16(2)],
    "complex and real": [np.complex64(1 + 2j), np.float32([3, 4])],
    "8 bits": [np.int8([-1, 2]), np.uint8([3])],
    "sizes of nothing": [np.zeros((0, 3), np.float32), np.ones((), np.float32), None],
    "nothing": {},
}


def same(ours, theirs):
    assert jax.tree.structure(theirs) == jax.tree.structure(
        minijax.tree.unflatten(minijax.tree.structure(ours), minijax.tree.leaves(ours)))
    for x, y in zip(minijax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert (x.dtype, x.shape, x.weak_type) == (y.dtype, y.shape, y.weak_type)
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


@pytest.mark.parametrize("name", TREES)
def test_it_goes_there_and_back_as_in_jax(name):
    ours, back = ravel_pytree(TREES[name])
    theirs, jax_back = jax_ravel_pytree(jax.tree.map(np.asarray, TREES[name])
                                        if name != "Python numbers" else TREES[name])
    same(ours, theirs)
    same(back(ours), jax_back(theirs))
    same(minijax.jit(back)(2 * ours), jax.jit(jax_back)(2 * theirs))


@pytest.mark.parametrize("vector", [np.ones(3, np.float32), np.ones(4, np.int32),
                                    np.ones((4, 1), np.float32)], ids=str)
@pytest.mark.parametrize("name", ["floats and integers", "complex and real"])
def test_another_vector_is_taken_or_refused_as_in_jax(name, vector):
    def outcome(lib, ravel):
        _, back = ravel(TREES[name])
        try:
            return [np.asarray(x).tolist() for x in lib.tree.leaves(back(lib.numpy.array(vector)))]
        except (TypeError, ValueError) as error:
            return type(error), str(error)
    assert outcome(minijax, ravel_pytree) == outcome(jax, jax_ravel_pytree)


def test_gradients_go_through_it():
    tree = {"w": jnp.ones((2, 3)), "b": jnp.arange(2.0)}
    flat, back = ravel_pytree(tree)
    slopes = minijax.grad(lambda v: (back(v)["w"] ** 2).sum() + back(v)["b"][1])(flat)
    np.testing.assert_array_equal(slopes, [0, 1, 2, 2, 2, 2, 2, 2])
    rows = minijax.vmap(lambda t: ravel_pytree(t)[0])({"x": jnp.ones((4, 2)), "y": jnp.zeros(4)})
    assert rows.shape == (4, 3)
