"""Factorisations by LAPACK on the host, and their composites, agree with JAX."""

import pytest

A = "(jnp.cos(jnp.arange(16.) ** 1.4).reshape(4, 4) + 2 * jnp.eye(4))"


@pytest.mark.parametrize("expression", [
    "eig(a)", "eig(a, compute_left_eigenvectors=False)", "eig(jnp.stack([a, a * jnp.nan]))",
    "eig(a + 1j * a.T, compute_right_eigenvectors=False)", "eig(a[:2])", "schur(a)",
    "schur(c[:, 1:])", "schur(a, compute_schur_vectors=False)", "schur(a, sort_eig_vals=True)",
    "hessenberg(a)", "hessenberg(jnp.stack([a, a]) * 1j)", "hessenberg(a[:1, :1])",
    "tridiagonal(a + a.T)", "tridiagonal(a + a.T, lower=False)", "tridiagonal(a[:1, :1])",
    "tridiagonal(a + a.T + 1j * (a - a.T))", "householder_product(a[:, :2], v[:2] / 3)",
    "householder_product(a, v)", "householder_product(a[:2], v)", "householder_product(a, v * 1j)",
    "householder_product(jnp.stack([a, a]), f)", "ormqr(a[:, :2], v[:2], a)",
    "ormqr(a[:, :3], v, a[:2], left=False)", "ormqr(a[:, :2], v[:2], a, transpose=True)",
    "ormqr(a * 1j, v * (1 + 1j), a * (1 + 0j), left=False, transpose=True)",
    "ormqr(a, v, a[:3])", "symmetric_product(a, a)", "symmetric_product(a[:, :2], a, alpha=2.)",
    "symmetric_product(a, a, beta=1., symmetrize_output=True)", "symmetric_product(a, a[:2])",
    "cholesky_update(m, v[:2])", "cholesky_update(m * 0, v[:2])", "cholesky_update(m, v)",
    "cholesky_update(jnp.stack([m, m]), v[:2])", "tridiagonal_solve(v, v, v, f.T)",
    "tridiagonal_solve(g, f, g, t[:, :3])", "tridiagonal_solve(v, v * 0 + k, v, f.T)",
    "tridiagonal_solve(v * 1j, v * 1j, v * 1j, f.T * 1j)", "tridiagonal_solve(v, v, f[0, :2], m)",
])
def test_factors(agrees_with_jax, expression):
    full = expression.replace("(a", "(" + A).replace(" a", " " + A).replace("[a", "[" + A)
    agrees_with_jax("jax.lax.linalg." + full, rtol=1e-4, atol=5e-6)
