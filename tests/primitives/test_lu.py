"""lu: the factors are those of the matrix with its rows exchanged, and those of JAX."""

import jax
import numpy as np
import pytest

import minijax
from minijax import lax

SHAPES = [(3, 3), (2, 4, 4), (5, 3), (3, 5), (64, 64), (65, 65), (100, 130), (130, 100)]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_factors_and_the_exchanges_are_jaxs(shape):
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    wanted = jax.lax.linalg.lu(x)
    for found in (lax.linalg.lu(x), minijax.jit(lax.linalg.lu)(x)):
        np.testing.assert_array_equal(found[1], wanted[1])
        np.testing.assert_array_equal(found[2], wanted[2])
        np.testing.assert_allclose(found[0], wanted[0], rtol=1e-2, atol=1e-3)


def test_elimination_goes_on_after_a_zero():
    x = np.float32([[0, 1], [0, 2]])
    for f in (lax.linalg.lu, minijax.jit(lax.linalg.lu)):
        np.testing.assert_array_equal(f(x)[0], jax.lax.linalg.lu(x)[0])


def test_exchanges_as_a_permutation():
    for pivots, size in (([2, 2, 2], 3), ([1, 3], 4), ([[0, 1], [1, 1]], 2)):
        x = np.int32(pivots)
        wanted = jax.lax.linalg.lu_pivots_to_permutation(x, size)
        np.testing.assert_array_equal(lax.linalg.lu_pivots_to_permutation(x, size), wanted)


@pytest.mark.parametrize("pivots, error", [(np.int32([2, 2, 2]), ValueError),
                                           (np.float32([1]), TypeError)])
def test_what_is_no_exchange_is_refused_in_jaxs_words(pivots, error):
    with pytest.raises(error) as ours:
        lax.linalg.lu_pivots_to_permutation(pivots, 2)
    with pytest.raises(error) as theirs:
        jax.lax.linalg.lu_pivots_to_permutation(pivots, 2)
    assert str(theirs.value).split("\n")[0] in str(ours.value)
