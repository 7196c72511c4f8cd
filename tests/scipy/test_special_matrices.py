"""Matrices that a few numbers determine agree with JAX; known ones with exact numbers."""

import numpy as np
import pytest
import scipy.linalg

import minijax
from minijax.scipy import linalg


@pytest.mark.parametrize("expression", [
    "block_diag(m, f, 1)", "block_diag()", "block_diag(v, i)", "block_diag(t)", "toeplitz(v, w)",
    "toeplitz(c[0])", "toeplitz(f, w[:2])", "toeplitz(2)", "toeplitz(e[0:0, 0])", "hankel(f, v)",
    "hankel(v, 1)", "hankel(c)", "circulant(i)", "circulant(c[0])", "circulant(2.)",
    "companion(w)", "companion(f + 4)", "companion(v[:1])", "companion(c[0])",
    "convolution_matrix(v, 4, 'same')", "convolution_matrix(v, 4, 'valid')",
    "convolution_matrix(i, 2, mode='valid')", "convolution_matrix(c, 1)",
    "convolution_matrix(v, 0)", "convolution_matrix(v, 2, 'x')", "convolution_matrix(1., 2)",
    "convolution_matrix(e[:, :0], 2)", "leslie(f, g[:, :2])", "leslie(v, v)", "leslie(v[:1], v)",
    "fiedler(i)", "fiedler(c)", "fiedler(2)", "fiedler_companion(jnp.arange(1, 7))",
    "fiedler_companion(f + 4)", "fiedler_companion(v[:2])", "fiedler_companion(v[:1])",
    "fiedler_companion(2)", "fiedler_companion(v[:0])", "hilbert(4)", "hilbert(0)",
    "pascal(4, 'lower')", "pascal(4, 'upper')", "pascal(4)", "pascal(3, 'x')", "invpascal(3)",
    "invpascal(4, 'lower')", "invpascal(4, 'upper')", "invpascal(2, 'x')", "invhilbert(3)",
    "helmert(4)", "helmert(4, full=True)", "helmert(1)", "helmert(0)", "hadamard(1)",
    "hadamard(4, 'float32')", "hadamard(3)", "dft(5, 'n')", "dft(5, scale='sqrtn')", "dft(3, 'x')",
    "dft(3, dtype='complex64')", "dft(3, dtype='float32')",
])
def test_matrices(agrees_with_jax, expression):
    agrees_with_jax("jax.scipy.linalg." + expression, rtol=2e-5)


@pytest.mark.parametrize("name, n", [
    ("invhilbert", 7), ("pascal", 9), ("invpascal", 7), ("hilbert", 8)])
def test_known_numbers_are_exact(name, n):
    wanted = getattr(scipy.linalg, name)(n)
    found = getattr(linalg, name)(n)
    np.testing.assert_array_equal(found, wanted.astype(found.dtype))


def test_they_are_differentiated_and_batched():
    def f(x):
        return linalg.toeplitz(x) @ linalg.hankel(x[::-1])
    x = np.float32([[1, 2, 3], [4, 5, 6]])
    np.testing.assert_array_equal(minijax.jit(minijax.vmap(f))(x), [f(row) for row in x])
    slope = minijax.jvp(lambda c: linalg.companion(c).sum(), (x[0],), (np.float32([1, 0, 0]),))[1]
    np.testing.assert_allclose(slope, 5)
