"""SciPy's names for factors and equations agree with JAX, derivatives included."""

import jax
import jax.scipy.linalg
import numpy as np
import pytest

import minijax
import minijax.scipy


@pytest.mark.parametrize("expression", [
    "cholesky(m @ m.T)", "cholesky(m @ m.T, lower=True)", "cholesky(m, lower=True)",
    "cholesky(c[:, :2] + 4 * jnp.eye(2))", "cho_factor(m @ m.T)", "cho_factor(m @ m.T, True)",
    "cho_solve((m, True), v[:2])", "cho_solve((m, False), f)", "cho_solve((m, True), v)",
    "cho_solve((m, True), jnp.stack([m, m]))", "cho_solve((f, True), f)",
    "cho_solve((c[:, :2], True), f)", "solve_triangular(m, v[:2])", "solve_triangular(m, f)",
    "solve_triangular(m, f, trans='T', lower=True)", "solve_triangular(m, f, trans=2)",
    "solve_triangular(c[:, :2], f, trans='C')", "solve_triangular(m, f, unit_diagonal=True)",
    "solve_triangular(m, f, trans='X')", "solve_triangular(i[:, :2], w[:2])",
    "solve_triangular(f, f)", "solve_triangular(jnp.stack([m, m]), f)", "solve(m, f)",
    "solve(m @ m.T, f, assume_a='pos')", "solve(m @ m.T, f, assume_a='pos', lower=True)",
    "solve(m, f, assume_a='x')", "inv(m)", "det(m)", "lu(m)", "lu(f)", "lu(f.T)",
    "lu(f, permute_l=True)", "lu_factor(m)", "lu_factor(jnp.stack([m, m.T]))",
    "lu_solve(jax.scipy.linalg.lu_factor(m), f)", "lu_solve(jax.scipy.linalg.lu_factor(m), v[:2])",
    "lu_solve(jax.scipy.linalg.lu_factor(m), f, trans=1)",
    "lu_solve(jax.scipy.linalg.lu_factor(c[:, :2]), f, trans=2)",
    "lu_solve(jax.scipy.linalg.lu_factor(m), f, trans=3)", "eigh(m)", "eigh(m, eigvals_only=True)",
    "eigh(m, lower=False)", "eigh(m, m)", "eigh(m, type=2)", "qr(f.T)", "qr(f.T, mode='r')",
    "qr(f.T, mode='economic')", "qr(f, mode='x')", "svd(m)", "svd(f, full_matrices=False)",
    "svd(f, compute_uv=False)", "expm(m)", "expm(m * 20)", "expm(jnp.stack([m, m / 10]))",
    "expm(f)", "expm(jnp.triu(m), upper_triangular=True)", "expm(m * 1e9)", "expm(i[:, :2])",
])
def test_functions(agrees_with_jax, expression):
    agrees_with_jax("jax.scipy.linalg." + expression, rtol=2e-4 if "expm" in expression else 2e-5)


@pytest.mark.parametrize("expression", [
    "schur(s4)", "schur(m, output='complex')", "schur(m, output='x')", "schur(i[:, :2])",
    "schur(jnp.stack([m, m.T]))", "hessenberg(s4)", "hessenberg(s4, calc_q=True)",
    "hessenberg(jnp.stack([s4, s4.T]) * (1 + 1j), calc_q=True)", "hessenberg(f)",
    "eigh_tridiagonal(v, v[:2], eigvals_only=True)", "eigh_tridiagonal(v, v)",
    "eigh_tridiagonal(v, v[:2], eigvals_only=True, select='i', select_range=(1, 2))",
    "eigh_tridiagonal(v, v[:2], select='v')", "eigh_tridiagonal(v, v[:2], select='i')",
    "eigh_tridiagonal(v, w[:2])", "expm_frechet(m, m.T)", "expm_frechet(m, f)",
    "expm_frechet(m, m.T, compute_expm=False)", "sqrtm(s4 @ s4.T)", "sqrtm(m)",
    "sqrtm(m * (1 + 2j))", "sqrtm(i[:, :2])", "sqrtm(m, 2)", "solve_sylvester(s4, m, s4[:, :2])",
    "solve_sylvester(m, -m, m)", "solve_sylvester(m, i[:, :2], m, method='eigen')",
    "solve_sylvester(jnp.stack([m, m.T]), m, m * 1j)", "solve_sylvester(m, m, f)",
    "solve_sylvester(m, m, m, method='x')", "polar(m)", "polar(f.T)", "polar(f, side='left')",
    "polar(f)", "polar(f, method='svd')", "polar(c.T)", "polar(jnp.stack([m, m.T]))",
    "polar(m, side='x')", "polar(m, method='x')", "polar(i[:, :2])", "polar(m, max_iterations=1)",
    "qr(f, pivoting=True)", "qr(f.T, mode='r', pivoting=True)", "qr(m, mode='economic')",
    "qr_multiply(s4, s4)", "qr_multiply(s4, s4, 'left')", "qr_multiply(s4[:, :2], s4)",
    "qr_multiply(s4[:, :2], s4[:2], 'left')", "qr_multiply(s4[:, :2], s4, 'left')",
    "qr_multiply(f, m)", "qr_multiply(f, m, 'left')", "qr_multiply(s4, s4[0])",
    "qr_multiply(s4[:, :2], m[0], 'left')", "qr_multiply(s4, v)", "qr_multiply(s4, s4, 'x')",
    "qr_multiply(s4, s4, pivoting=True)", "qr_multiply(s4 * (1 + 1j), s4, conjugate=True)",
    "qr_multiply(m, jnp.stack([m, m.T]))", "qr_multiply(jnp.stack([m, m.T]), v[:2], 'left')",
    "qr_multiply(i[:, :2], m)", "qr_multiply(s4[:0], s4[:, :0])",
    "rsf2csf(*jax.scipy.linalg.schur(c4))", "rsf2csf(jnp.triu(s4), s4)", "rsf2csf(s4, m)",
    "rsf2csf(f, m)", "rsf2csf(m, f)", "rsf2csf(m[:1, :1], m[:1, :1])",
    "rsf2csf(*map(jnp.stack, zip(*map(jax.scipy.linalg.schur, (c4, s4)))))",
    "rsf2csf(jnp.stack([c4 * 0 + jnp.eye(4)] * 2), c4)", "rsf2csf(i[:, :2], i[:, :2])",
    "funm(s4, jnp.exp)", "funm(c4, jnp.cos, disp=False)", "funm(s4 * 1j, jnp.sin)",
    "funm(jnp.eye(3), jnp.exp, False)", "funm(jnp.eye(3) + jnp.eye(3, k=1), jnp.exp, False)",
    "funm(m[:1, :1], jnp.exp)", "funm(f, jnp.exp)", "funm(i[:, :2], jnp.exp)",
    "funm(m * jnp.nan, jnp.exp, False)", "funm(m, lambda x: 1)",
])
def test_triangular_forms(agrees_with_jax, expression):
    c4 = "jnp.cos(jnp.arange(16.) ** 1.4).reshape(4, 4)"
    full = expression.replace("s4", "(c4 + 2 * jnp.eye(4))").replace("c4", c4)
    agrees_with_jax("jax.scipy.linalg." + full, rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize("expression", [
    "eigh_tridiagonal(v, v[:2], eigvals_only=True)", "eigh_tridiagonal(v[:1], v[:0])",
    "eigh_tridiagonal(v[:0], v[:0], eigvals_only=True)",
    "eigh_tridiagonal(v, v[:2], eigvals_only=True, tol=.2)",
    "eigh_tridiagonal(v, v[:2], eigvals_only=True, tol=20.)",
    "eigh_tridiagonal(v, v[:2], eigvals_only=True, select='i', select_range=(0, 5))",
    "eigh_tridiagonal(v, v[:2], select='i', select_range=(2, 1))",
    "eigh_tridiagonal(v * 1j, v[:2] * (1 + 1j), eigvals_only=True)",
    "eigh_tridiagonal(v * 0 + 2, v[:2] * 0, eigvals_only=True)",
    "eigh_tridiagonal(v * jnp.nan, v[:2], eigvals_only=True)",
    "eigh_tridiagonal(i[0], i[0, :2])", "eigh_tridiagonal(v, v[:2] * 1j)",
    "eigh_tridiagonal(v.astype('bfloat16'), v[:2].astype('bfloat16'))",
    "eigh_tridiagonal(jnp.cos(jnp.arange(90.)), jnp.sin(jnp.arange(89.)), eigvals_only=True)",
])
def test_bisection(agrees_with_jax, expression):
    agrees_with_jax("jax.scipy.linalg." + expression, rtol=1e-6, atol=1e-6)


def test_eigenvalues_by_bisection_have_the_derivatives_of_the_whole_matrix():
    top, d, e = minijax.numpy, np.float32([1, 2, 3, 4]), np.float32([1, .5, .25])
    f = lambda d, e: minijax.scipy.linalg.eigh_tridiagonal(d, e, eigvals_only=True)
    g = lambda d, e: top.linalg.eigvalsh(top.diag(d) + top.diag(e, 1) + top.diag(e, -1))
    twice = lambda f, at: minijax.jit(minijax.hessian(f, at))
    for slopes in (minijax.jacrev, minijax.jacfwd, twice):
        for found, wanted in zip(*(minijax.tree.leaves(slopes(h, (0, 1))(d, e)) for h in (f, g)),
                                 strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4)


def test_the_derivative_of_the_complex_form_and_of_products_with_q():
    t, z = map(np.asarray, jax.scipy.linalg.schur(np.cos(np.arange(16.) ** 1.4).reshape(4, 4)))

    def slopes(top):
        f = lambda t: top.numpy.abs(top.scipy.linalg.rsf2csf(t, z)[0]).sum()
        return top.vmap(top.grad(f))(np.stack([t, t * 2]))
    np.testing.assert_allclose(slopes(minijax), slopes(jax), rtol=1e-3, atol=1e-4)
    f = lambda x: minijax.scipy.linalg.qr_multiply(x, x)[0]  # of which JAX has none
    g = lambda x: x @ jax.numpy.linalg.qr(x).Q
    np.testing.assert_allclose(minijax.jacrev(f)(z), jax.jacrev(g)(z), rtol=1e-3, atol=1e-4)


POINTS = np.float32([[0., 1.], [.5, -1.], [2., .25], [1.5, 1.]])
TARGETS = np.float32([1., -.5, .25, 2.])


def log_likelihood(top):
    """Of a Gaussian process: the two ways of solving with a Cholesky factor, and a determinant."""
    jnp, linalg = top.numpy, top.scipy.linalg

    def loss(length, noise):
        gaps = jnp.sum((POINTS[:, None] - POINTS[None]) ** 2, -1)
        kernel = jnp.exp(-gaps / (2 * length ** 2)) + noise * jnp.eye(4)
        factor = linalg.cho_factor(kernel, lower=True)
        weights = linalg.cho_solve(factor, TARGETS)
        half = linalg.solve_triangular(factor[0], TARGETS, lower=True)
        return TARGETS @ weights + half @ half + jnp.sum(jnp.log(jnp.diag(factor[0])))
    return loss


def test_a_gaussian_process_and_its_derivatives(jax_says, beside_jax):
    args = np.float32(.8), np.float32(.1)
    f, g = beside_jax(log_likelihood)
    value, slopes, curves = jax_says(lambda: [jax.jit(h)(*args) for h in (
        g, jax.grad(g, (0, 1)), jax.hessian(g, (0, 1)))])
    for wrap in (lambda f: f, minijax.jit):
        np.testing.assert_allclose(wrap(f)(*args), value, rtol=1e-5)
        np.testing.assert_allclose(wrap(minijax.grad(f, (0, 1)))(*args), slopes, rtol=1e-4)
        np.testing.assert_allclose(wrap(minijax.hessian(f, (0, 1)))(*args), curves, rtol=1e-3)


MATRIX = np.float32([[5, 1, .5], [1, 4, .25], [.5, .25, 3]])


@pytest.mark.parametrize("f", [
    lambda top, x: top.scipy.linalg.cholesky(x),
    lambda top, x: top.scipy.linalg.cholesky(x, lower=True),
    lambda top, x: top.scipy.linalg.cho_solve((x, True), x[0]),
    lambda top, x: top.scipy.linalg.lu_solve(top.scipy.linalg.lu_factor(x), x[:, 0] ** 2),
    lambda top, x: top.scipy.linalg.lu(x)[1] @ top.scipy.linalg.lu(x)[2] ** 2,
    lambda top, x: top.scipy.linalg.eigh(x)[1],
    lambda top, x: top.scipy.linalg.expm(x),
    lambda top, x: top.scipy.linalg.solve(x, x[:, :2] ** 2, assume_a="pos"),
])
def test_gradients(f, jax_says):
    def loss(top):
        weights = np.cos(np.arange(9.)).astype(np.float32)
        return lambda x: (f(top, x).ravel() * weights[:f(top, x).size]).sum()
    wanted = np.asarray(jax_says(lambda: jax.jit(jax.grad(loss(jax)))(MATRIX)))
    for wrap in (lambda f: f, minijax.jit):
        found = wrap(minijax.grad(loss(minijax)))(MATRIX)
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4 * np.abs(wanted).max())


@pytest.mark.parametrize("x", [
    np.eye(2), np.diag([1, 1j]), np.float32([[0, 3], [-3, 0]]), np.cos(np.arange(6.)).reshape(3, 2),
    np.float32([[1, 0], [0, 1], [0, 0]])])
def test_the_polar_factors_vary_as_in_jax_where_singular_values_are_alike(x, beside_jax):
    x = x.astype(np.complex64 if x.dtype.kind == "c" else np.float32)
    t = np.sin(np.arange(x.size)).reshape(x.shape).astype(x.dtype) * (x[0, 0] + 2)

    def slopes(top, side="right"):
        f = lambda x: top.scipy.linalg.polar(x, side)
        given = (x, t) if side == "right" else (x.conj().T, t.conj().T)
        return top.jit(lambda x, t: top.jvp(f, (x,), (t,)))(*given)
    for side in ("right", "left")[:1 + (len(x) > 2)]:  # JAX takes no square ones from the left
        both = beside_jax(lambda top: minijax.tree.leaves(slopes(top, side)))
        for found, wanted in zip(*both, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("matrix", [np.diag([0., 4, 0]), np.diag([0., 0, 0, 9]), np.zeros((2, 2)),
                                    [[0., 1], [0, 0]], [[4., 1, 2], [0, 0, 0], [0, 0, 9]]])
def test_square_roots_of_singular_matrices(matrix):
    ours, theirs = (np.asarray(lib.scipy.linalg.sqrtm(np.float32(matrix)))
                    for lib in (minijax, jax))
    np.testing.assert_allclose(ours, theirs, 1e-6)
