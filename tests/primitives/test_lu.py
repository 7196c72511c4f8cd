"""lu gives JAX's factors; solve: also what has no solution, and linear in the right side."""

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


@pytest.mark.parametrize("size", [1, 3, 16, 65])
@pytest.mark.parametrize("number", [np.nan, np.inf, 0])
def test_what_is_no_number_is_exchanged_as_jax_does(size, number):
    whole, one = np.full((size, size), number, np.float32), np.eye(size, dtype=np.float32)
    one[size // 2, size // 3] = number
    for x in (whole, one):
        found, wanted = minijax.jit(lax.linalg.lu)(x), jax.lax.linalg.lu(x)
        np.testing.assert_array_equal(found[1], wanted[1])
        np.testing.assert_array_equal(found[2], wanted[2])
        np.testing.assert_allclose(found[0], wanted[0], rtol=1e-6)


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


@pytest.mark.parametrize("size, columns", [(3, 1), (5, 4), (80, 3)])
def test_solutions_solve(size, columns):
    a = np.random.default_rng(1).normal(size=(2, size, size)).astype(np.float32)
    b = np.ones((2, size, columns), np.float32)
    for f in (minijax.numpy.linalg.solve, minijax.jit(minijax.numpy.linalg.solve)):
        np.testing.assert_allclose(a @ f(a, b), b, atol=2e-3)


def test_where_a_matrix_is_singular_the_result_shows_it():
    a, b = np.float32([[1, 1], [0, 0]]), np.float32([[1], [2]])
    for f in (minijax.numpy.linalg.solve, minijax.jit(minijax.numpy.linalg.solve)):
        np.testing.assert_array_equal(f(a, b), jax.numpy.linalg.solve(a, b))


def test_it_can_be_transposed_in_the_right_side():
    a = np.float32([[2, 1], [0, 4]])
    f = lambda b: minijax.numpy.linalg.solve(a, b)
    [back] = minijax.linear_transpose(f, np.ones(2, np.float32))(np.float32([1, 0]))
    np.testing.assert_allclose(back, np.linalg.solve(a.T, [1, 0]), rtol=1e-6)
