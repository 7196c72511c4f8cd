"""Complex systems in compiled code: factors, pivots and solutions are those of JAX."""

import itertools

import jax
import numpy as np
import pytest

import minijax

FLAGS = "left_side", "lower", "transpose_a", "conjugate_a", "unit_diagonal"


def drawn(*shape, dtype=np.complex64):
    draw = np.random.default_rng(0)
    return (draw.normal(size=shape) + 1j * draw.normal(size=shape)).astype(dtype)


def all_of(f, *args):
    """What compiled code, evaluation, and JAX make of arguments."""
    return [list(map(np.asarray, run(*args))) for run in (
        minijax.jit(lambda *xs: f(minijax.lax.linalg, *xs)),
        lambda *xs: f(minijax.lax.linalg, *xs), lambda *xs: f(jax.lax.linalg, *xs))]


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (5, 5), (3, 7, 7), (6, 3), (2, 3, 6), (40, 40),
                                   (0, 0), (2, 0)])
def test_factors_and_pivots_of_complex_matrices_are_those_of_jax(shape):
    compiled, evaluated, theirs = all_of(lambda lib, x: lib.lu(x), drawn(*shape))
    for found in (compiled, evaluated):
        for x, y in zip(found, theirs, strict=True):
            assert x.dtype == y.dtype
            np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-4)


def test_elimination_goes_on_after_a_column_of_zeros():
    x = drawn(4, 4)
    x[:, 1] = 0
    compiled, evaluated, theirs = all_of(lambda lib, x: lib.lu(x), x)
    for x, y, z in zip(compiled, evaluated, theirs, strict=True):
        np.testing.assert_allclose(x, z, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(y, z, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("flags", [*itertools.product([False, True], repeat=5)], ids=lambda flags:
                         " ".join(itertools.compress(FLAGS, flags)) or "none")
def test_complex_triangular_systems_have_the_solutions_of_jax(flags):
    options = dict(zip(FLAGS, flags, strict=True))
    a = drawn(2, 5, 5) * 0.3 + 2 * np.eye(5, dtype=np.complex64)
    b = drawn(2, 5, 3) if options["left_side"] else drawn(2, 3, 5)
    compiled, evaluated, theirs = all_of(
        lambda lib, a, b: [lib.triangular_solve(a, b, **options)], a, b)
    for found in (compiled, evaluated):
        np.testing.assert_allclose(found[0], theirs[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_quotients_by_very_small_and_large_pivots_stay_finite(scale):
    a = (drawn(4, 4) + 4 * np.eye(4)).astype(np.complex64) * np.float32(scale)
    b = drawn(4, 2) * np.float32(scale)
    found = minijax.jit(minijax.numpy.linalg.solve)(a, b)
    expected = np.linalg.solve(a.astype(complex), b.astype(complex))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
