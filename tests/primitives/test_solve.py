"""solve: equations, also those without a solution, and linear in the right side."""

import jax
import numpy as np
import pytest

import minijax
from minijax.primitives.solve import solve


@pytest.mark.parametrize("size, columns", [(3, 1), (5, 4), (80, 3)])
@pytest.mark.parametrize("turned", [False, True])
def test_solutions_solve(size, columns, turned):
    a = np.random.default_rng(1).normal(size=(2, size, size)).astype(np.float32)
    b = np.ones((2, size, columns), np.float32)
    f = lambda a, b: solve(minijax.numpy.asarray(a), minijax.numpy.asarray(b), turned)
    for x in (f(a, b), minijax.jit(f)(a, b)):
        np.testing.assert_allclose((a.swapaxes(-1, -2) if turned else a) @ x, b, atol=2e-3)


def test_where_a_matrix_is_singular_the_result_shows_it():
    a, b = np.float32([[1, 1], [0, 0]]), np.float32([[1], [2]])
    for f in (minijax.numpy.linalg.solve, minijax.jit(minijax.numpy.linalg.solve)):
        np.testing.assert_array_equal(f(a, b), jax.numpy.linalg.solve(a, b))


def test_it_can_be_transposed_in_the_right_side():
    a = np.float32([[2, 1], [0, 4]])
    f = lambda b: minijax.numpy.linalg.solve(a, b)
    [back] = minijax.linear_transpose(f, np.ones(2, np.float32))(np.float32([1, 0]))
    np.testing.assert_allclose(back, np.linalg.solve(a.T, [1, 0]), rtol=1e-6)
