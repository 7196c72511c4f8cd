"""Norms, factors, equations and determinants agree with JAX."""

import jax
import numpy as np
import pytest

import minijax
from tests.oracle import assert_agree


@pytest.mark.parametrize("expression", [
    "norm(v)", "norm(f)", "norm(f, axis=1)", "norm(f, axis=1, keepdims=True)", "norm(v, 1)",
    "norm(v, jnp.inf)", "norm(v, -jnp.inf)", "norm(v, 3)", "norm(v, 0)", "norm(m, 'fro')",
    "norm(m, 1)", "norm(m, jnp.inf)", "norm(m, -1)", "norm(c)", "norm(i)", "norm([1, 2])",
    "norm(t, axis=(0, 2))", "norm(v, 'fro')", "norm(m, 2)", "norm(m, -2)", "norm(m, 'nuc')",
    "norm(t, 2, axis=(0, 2), keepdims=True)", "norm(m, 3)", "norm(m, 'x')", "norm(t, 2)",
    "norm(m, axis=(0, 0))", "norm(e)", "norm(t, ord=-jnp.inf, axis=(1, 0))", "vector_norm(f)",
    "vector_norm(f, keepdims=True)", "vector_norm(t, axis=(0, 2), ord=3)", "vector_norm(c, ord=1)",
    "vector_norm(v, ord='fro')", "matrix_norm(t)", "matrix_norm(v)", "matrix_norm(m, ord=2)",
    "matrix_norm(t, keepdims=True, ord='nuc')", "cond(m)", "cond(m, 1)", "cond(m, -2)",
    "cond(f, 1)", "cond(v)", "cond(jnp.ones((0, 0)), 1)", "cond(jnp.ones((0, 3)), 1)",
    "cond(jnp.ones((2, 0, 0)), 'fro')", "cond(jnp.ones((0, 2, 2)), 1)", "trace(t)",
    "diagonal(t)", "diagonal(t, offset=1)", "outer(v, w)", "outer(m, v)",
    "cross(f, g)", "cross(m, m)", "vecdot(f, g)", "matrix_transpose(t)",
    "matrix_power(m, 5)", "matrix_power(m, 0)", "matrix_power(m, -2)", "matrix_power(f, 2)",
    "matrix_power(v, 2)", "matrix_power(m, 1.5)", "multi_dot([f, t[0], t[1].T])",
])
def test_norms_and_products(agrees_with_jax, expression):
    agrees_with_jax("jnp.linalg." + expression, rtol=1e-5)


@pytest.mark.parametrize("expression", [
    "solve(m, f)", "solve(m, v[:2])", "solve(i[:, :2], w[:2])", "solve(m, jnp.stack([m, 2 * m]))",
    "solve(jnp.stack([m, 2 * m]), v[:2])", "solve(jnp.stack([m, 2 * m]), f)", "solve(f, f)",
    "solve(m, t[0])", "solve(m, 1.0)", "solve(jnp.stack([m, m]), f[:, :2])", "solve(v, v)",
    "solve(jnp.zeros((2, 2)), v[:2])", "solve(c[:, :2], v[:2])", "solve(m, v)", "inv(m)",
    "inv(jnp.stack([m, 2 * m]))", "inv(f)", "inv(v)", "inv(i[:, :2])", "inv(jnp.zeros((2, 2)))",
    "inv(jnp.zeros((0, 0)))", "inv(m.astype('float16'))", "inv(c[:, :2])",
    "tensorsolve(jnp.eye(6).reshape(2, 3, 6) + 1, f)", "tensorsolve(m, v)",
    "tensorinv(jnp.eye(6).reshape(2, 3, 6) + 1)", "tensorinv(m, 0)", "tensorinv(m, 2)",
    "det(m)", "det(i[:, :2])", "det(f)", "det(v)", "det(c[:, :2])", "det(m[:1, :1])",
    "det(jnp.zeros((0, 0)))", "det(jnp.zeros((2, 0, 0)))", "det(jnp.eye(3) + t[:, :, :3])",
    "det(jnp.eye(4)[::-1] + t[0, 0])", "det(jnp.zeros((4, 4)))", "slogdet(m)", "slogdet(c[:, :2])",
    "slogdet(jnp.eye(4)[::-1] + t[0, 0])", "slogdet(jnp.zeros((2, 2)))", "slogdet(f)",
    "slogdet(jnp.stack([m, 2 * m]))", "slogdet(m, method='x')", "slogdet(m * jnp.nan)",
    "slogdet(c[:, :2] * jnp.nan)", "slogdet(m[:1, :1] * jnp.nan)",
    "slogdet(jnp.full((4, 4), jnp.nan))", "slogdet(jnp.diag(jnp.array([-1., 2., jnp.nan])))",
    "slogdet(jnp.diag(jnp.array([1., 0., jnp.nan])))",
    "pinv(f)", "pinv(t)",
    "pinv(jnp.ones((2, 3)))", "pinv(m, rtol=0.9)", "pinv(c)", "pinv(m, hermitian=True)",
    "matrix_rank(jnp.ones((2, 3)))", "matrix_rank(t)", "matrix_rank(v)", "matrix_rank(m, tol=3.)",
    "matrix_rank(m, rtol=0.9)", "matrix_rank(i)", "lstsq(f.T, v)", "lstsq(f, v[:2])",
    "lstsq(f.T, jnp.eye(3))", "lstsq(jnp.ones((3, 2)), v)[:3]", "lstsq(f.T, v, numpy_resid=True)",
    "lstsq(f, v[:2], numpy_resid=True)", "lstsq(f.T, v[:2])", "lstsq(v, v)",
    "lstsq(f.T, v, rcond=0.5)",
])
def test_equations_and_determinants(agrees_with_jax, expression):
    tolerance = 1e-3 if "tensor" in expression or "pinv(t" in expression else 2e-5
    agrees_with_jax("jnp.linalg." + expression, rtol=tolerance)


@pytest.mark.parametrize("expression", [
    "cholesky(m @ m.T)", "cholesky(m)", "cholesky(m @ m.T, upper=True)", "cholesky(f)",
    "cholesky(jnp.stack([m @ m.T, m]))", "cholesky(v)", "cholesky(jnp.zeros((0, 0)))",
    "cholesky(jnp.eye(2, dtype=int) * 4)", "cholesky(m.astype('bfloat16'))",
    "cholesky(m @ m.T + 1j * jnp.array([[0, 1], [-1, 0]]))",
    "cholesky(jnp.array([[4., 9.], [2., 5.]]), symmetrize_input=False)", "eigh(m)", "eigh(f)",
    "eigh(m, UPLO='U')", "eigh(m, UPLO='X')", "eigh(m, symmetrize_input=False)",
    "eigh(m, 'U', symmetrize_input=False)", "eigh(jnp.stack([m, m.T]))", "eigh(m * jnp.nan)",
    "eigvals(m)", "eigvals(c[:, :2])", "eigvals(jnp.stack([m, m.T]))", "eigvals(f)", "eigvals(v)",
    "eigvals(m * jnp.nan)", "eig(m * jnp.nan)",
    "eig(c[:, :2] * jnp.nan)", "eigvals(jnp.zeros((0, 0)))", "eig(m)[0]",
    "eigvalsh(m)", "eigvalsh(c[:, :2])", "eigvalsh(m.astype('float16'))", "qr(m)", "qr(f)",
    "qr(f.T)", "qr(f.T, mode='complete')", "qr(f.T, mode='r')", "qr(f.T, mode='raw')",
    "qr(f, mode='raw')", "qr(t[:, :2] ** 2, mode='raw')", "qr(c, mode='raw')",
    "qr(f.T, mode='full')",
    "qr(f, mode='x')",
    "qr(t[:, :2, :2] ** 2)",
    "qr(v)", "qr(c)", "svd(m)", "svd(f)", "svd(f.T, full_matrices=False)", "svd(t)[1]",
    "svd(f, compute_uv=False)", "svd(m + m.T, hermitian=True)", "svd(v)", "svdvals(i)",
    "svd(m + m.T, compute_uv=False, hermitian=True)", "svd(m * jnp.nan)", "svd(c)[1]",
])
def test_factors(agrees_with_jax, expression):
    agrees_with_jax("jnp.linalg." + expression, rtol=2e-5)


MATRIX = np.float32([[5, 1, .5, 2], [-1, 4, .25, 1], [.5, 2, 3, -1], [1, -.5, 1, 6]])
STACK = np.stack([MATRIX, 2 * MATRIX.T])
TALL = MATRIX[:, :2].copy()
SINGULAR = MATRIX.copy()
SINGULAR[3] = SINGULAR[0] + SINGULAR[1]
DERIVATIVES = {
    "solve": (lambda la, x: la.solve(x, x[..., :2] + 1), MATRIX),
    "solve a stack": (lambda la, x: la.solve(x, x[0, :, 0]), STACK),
    "inv": (lambda la, x: la.inv(x), MATRIX),
    "det": (lambda la, x: la.det(x), STACK),
    "det of three": (lambda la, x: la.det(x[:3, :3]), MATRIX),
    "det of two": (lambda la, x: la.det(x[:2, :2]), MATRIX),
    "det of one": (lambda la, x: la.det(x[:1, :1]), MATRIX),
    "det of a singular matrix": (lambda la, x: la.det(x), SINGULAR),
    "slogdet": (lambda la, x: la.slogdet(x)[1], STACK),
    "pinv": (lambda la, x: la.pinv(x), TALL),
    "lstsq": (lambda la, x: la.lstsq(x, x[:, 0] * x[0, 1] - x[:, 1] ** 2)[0], TALL),
    "cholesky": (lambda la, x: la.cholesky(x @ x.T), MATRIX),
    # Squares, since LAPACK may choose the sign of each vector.
    "eigh": (lambda la, x: [y * y for y in la.eigh(x)], MATRIX + MATRIX.T),
    "eigvalsh": (lambda la, x: la.eigvalsh(x), MATRIX),
    "qr": (lambda la, x: [y * y for y in la.qr(x)], TALL),
    "svd": (lambda la, x: [y * y for y in la.svd(x, full_matrices=False)], TALL),
    "svdvals": (lambda la, x: la.svdvals(x), TALL),
    "norm": (lambda la, x: la.norm(x, 2), MATRIX),
    "nuclear norm": (lambda la, x: la.norm(x, "nuc"), MATRIX),
    "matrix_power": (lambda la, x: la.matrix_power(x, -3), MATRIX / 2),
}


def weighted(top, f):
    """A number that depends on every element of the result in its own way."""
    def loss(x):
        leaves = top.tree.leaves(f(top.numpy.linalg, x))
        return sum((leaf * top.numpy.arange(1., 1 + leaf.size).reshape(leaf.shape)).sum()
                   for leaf in leaves)
    return loss


@pytest.mark.parametrize("name", DERIVATIVES)
def test_gradients(name, jax_says):
    f, x = DERIVATIVES[name]
    wanted = np.asarray(jax_says(lambda: jax.jit(jax.grad(weighted(jax, f)))(x)))
    bound = 1e-4 * np.abs(wanted).max()
    gradient = minijax.grad(weighted(minijax, f))
    for found in (gradient(x), minijax.jit(gradient)(x),
                  minijax.vmap(gradient)(np.stack([x, x]))[1]):
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=bound)


@pytest.mark.parametrize("name", ["solve", "det", "slogdet", "inv"])
def test_second_derivatives(name, jax_says):
    f, x = DERIVATIVES[name]
    x = x[0] if x.ndim == 3 else x
    wanted = np.asarray(jax_says(lambda: jax.jit(jax.hessian(weighted(jax, f)))(x)))
    found = minijax.hessian(weighted(minijax, f))(x)
    np.testing.assert_allclose(found, wanted, rtol=1e-2, atol=1e-4 * np.abs(wanted).max())


@pytest.mark.parametrize("name", DERIVATIVES)
def test_values_compiled_and_mapped(name, jax_says):
    f, x = DERIVATIVES[name]
    wanted = jax_says(lambda: jax.jit(lambda x: jax.tree.leaves(f(jax.numpy.linalg, x)))(x))
    call = lambda x: minijax.tree.leaves(f(minijax.numpy.linalg, x))
    mapped = [y[1] for y in minijax.vmap(call)(np.stack([x, x]))]
    for found in (minijax.jit(call)(x), mapped):
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)


NOT_SYMMETRIC = np.float32([[2, 1, 0], [.5, 3, 1], [0, 2, -1]])


def test_eigenvectors_turn_no_further_than_their_values_say():
    for a in (NOT_SYMMETRIC, np.float32([[0, 1], [-1, 0]]), NOT_SYMMETRIC + 1j):
        values, vectors = minijax.jit(minijax.numpy.linalg.eig)(a)
        np.testing.assert_allclose(a @ np.asarray(vectors), vectors * values, atol=1e-5)
        assert_agree("eig(a)", (values, vectors), tuple(jax.numpy.linalg.eig(a)))
        largest = np.take_along_axis(vectors, np.argmax(np.abs(vectors), 0)[None], 0)
        np.testing.assert_allclose(np.imag(largest), 0, atol=1e-6)  # as LAPACK turns them


def test_eigenvalues_in_batches_and_their_derivatives_are_those_of_jax(beside_jax):
    stack = np.stack([NOT_SYMMETRIC, NOT_SYMMETRIC.T * 2])

    def results(lib):
        eigvals = lib.numpy.linalg.eigvals
        slope = lib.jvp(eigvals, (NOT_SYMMETRIC,), (NOT_SYMMETRIC ** 2,))[1]
        return lib.vmap(eigvals)(stack), slope, lib.grad(
            lambda a: lib.numpy.abs(eigvals(a)).sum())(NOT_SYMMETRIC)
    for x, y in zip(*beside_jax(results), strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-4, atol=1e-4)
    with pytest.raises(NotImplementedError, match="Derivatives of non-symmetric eigenvectors"):
        minijax.grad(lambda a: abs(minijax.numpy.linalg.eig(a)[1]).sum())(NOT_SYMMETRIC)


@pytest.mark.parametrize("shape", [(2, 1), (2, 2), (1, 2)])
def test_the_shortest_solution_of_a_zero_matrix_is_zero(shape):
    for lib in (minijax, jax):
        x, residual, rank, s = lib.numpy.linalg.lstsq(np.zeros(shape), np.ones(shape))
        assert not np.any(x) and not np.any(s) and rank == 0
        np.testing.assert_allclose(residual, [shape[0]] * shape[1], 1e-6)


def test_one_name_of_a_tolerance_is_taken():
    for lib in (minijax, jax):
        with pytest.raises(ValueError, match="matrix_rank: only one of tol or rtol may be"):
            lib.numpy.linalg.matrix_rank(np.eye(2), rtol=0.1, tol=0.1)
        with pytest.raises(ValueError, match="pinv: only one of rtol and rcond may be"):
            lib.numpy.linalg.pinv(np.eye(2), rtol=0.1, rcond=0.1)


@pytest.mark.parametrize("lib", [minijax, jax])
def test_under_the_strict_flag_a_tolerance_has_the_dtype_of_singular_values(lib):
    a = lib.numpy.eye(2, dtype="complex64")
    with lib.numpy_dtype_promotion("strict"):
        assert lib.numpy.linalg.pinv(a).dtype == lib.numpy.linalg.pinv(a, np.float32(0.1)).dtype
        for refused in (lib.numpy.linalg.pinv, lambda a, rtol: lib.numpy.linalg.lstsq(a, a, rtol)):
            with pytest.raises(Exception, match="promotion=strict"):
                refused(a, np.complex64(0.1))
