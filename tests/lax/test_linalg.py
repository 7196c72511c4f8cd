"""Factorisations by LAPACK on the host, and their composites, agree with JAX."""

import functools
import re

import jax
import numpy as np
import pytest

import minijax

MATRIX = (np.cos(np.arange(16.) ** 1.4).reshape(4, 4) + 2 * np.eye(4)).astype(np.float32)
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
    "tridiagonal_solve(v * 0, v * 0, v * 0, f.T)",
    "tridiagonal_solve(v, v, v, f.T, perturb_singular=True)",
    *(f"tridiagonal_solve(v * {low}, v * 0 + {mid}, v * {high}, f.T, perturb_singular=True)"
      for low, mid, high in ((0, "k", 0), (1, 1, 1), ("1j", "1j", "1j"))),
    "qr(a, pivoting=True)", "qr(a[:2], pivoting=True)", "qr(a[:, :2] * 1j, pivoting=True)",
    "qr(a[:, :2], pivoting=True, full_matrices=False)", "qr(jnp.stack([a, a.T]), pivoting=True)",
    "qr(a * jnp.nan, pivoting=True)", "qr(a[0], pivoting=True)", "qr(i[:, :2], pivoting=True)",
    "qr(a, use_magma=True)", "qdwh(a)", "qdwh(a[:, :2])", "qdwh(a + 1j * a.T)", "qdwh(a[:0, :0])",
    "qdwh(a[:2])", "qdwh(i[:, :2])", "qdwh(a * 0)", "qdwh(a * jnp.nan)", "qdwh(v)",
    "qdwh(a, max_iterations=0)", "qdwh(a, max_iterations=1)", "qdwh(a, max_iterations=3)",
    "qdwh(a, eps=.1)", "qdwh(a, eps=1.)", "qdwh(a, eps=0)", "qdwh(a, dynamic_shape=(3, 2))",
    "qdwh(a * 10. ** -jnp.arange(0., 12., 3.))[2:]",
])
def test_factors(agrees_with_jax, expression):
    agrees_with_jax("jax.lax.linalg." + re.sub(r"\ba\b", A, expression), rtol=1e-4, atol=5e-6)


@pytest.mark.parametrize("call", [
    *(lambda top, option=option: top.lax.linalg.eigh(MATRIX, **option(top)) for option in (
        lambda top: {"implementation": top.lax.linalg.EighImplementation.JACOBI},
        lambda top: {"implementation": top.lax.linalg.EighImplementation.QDWH},
        lambda top: {"subset_by_index": (0, 3)})),
    *(lambda top, option=option: top.lax.linalg.svd(MATRIX, **option(top)) for option in (
        lambda top: {"algorithm": top.lax.linalg.SvdAlgorithm.JACOBI},
        lambda top: {"algorithm": top.lax.linalg.SvdAlgorithm.POLAR},
        lambda top: {"subset_by_index": (0, 3)},
        lambda top: {"subset_by_index": (0, 3), "full_matrices": False})),
    lambda top: top.numpy.linalg.svd(MATRIX, subset_by_index=(0, 3), full_matrices=False),
    lambda top: top.numpy.linalg.svd(MATRIX, subset_by_index=(0, 3), hermitian=True)])
def test_what_a_cpu_has_not_is_refused(refused_alike, call):
    refused_alike(call)


def test_what_a_cpu_has_changes_no_value():
    linalg = minijax.lax.linalg
    for found, wanted in (
            (linalg.eigh(MATRIX, implementation=linalg.EighImplementation.QR), linalg.eigh(MATRIX)),
            (linalg.eigh(MATRIX, subset_by_index=(0, 4)), linalg.eigh(MATRIX)),
            (linalg.svd(MATRIX, algorithm=linalg.SvdAlgorithm.QR), linalg.svd(MATRIX)),
            (linalg.svd(MATRIX, subset_by_index=(0, 4)), linalg.svd(MATRIX))):
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one, other)
    for name in ("EighImplementation", "SvdAlgorithm", "EigImplementation"):
        assert ([(x.name, x.value) for x in getattr(linalg, name)]
                == [(x.name, x.value) for x in getattr(jax.lax.linalg, name)])


def pivoted(shape, **options):
    m, n = shape
    return lambda top, x: top.lax.linalg.qr(x[:m, :n], pivoting=True, **options)[:2]


def vectors(**options):
    return lambda top, x: top.lax.linalg.eig(x, enable_eigvec_derivs=True, **options)


DERIVATIVES = {
    "pivoted": pivoted((4, 4)), "tall": pivoted((4, 2), full_matrices=False),
    "whole": pivoted((4, 2)), "column": pivoted((4, 1)),
    "complex": lambda top, x: top.lax.linalg.qr((x + 1j * x.T)[:, :2]),
    "polar": lambda top, x: top.lax.linalg.qdwh(x)[:2], "eig": vectors(),
    "left": vectors(compute_right_eigenvectors=False),
    "complex eig": lambda top, x: vectors()(top, x + 1j * x.T)}


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives(name, jax_says):
    def slopes(top):
        f = functools.partial(DERIVATIVES[name], top)
        batch = np.stack([MATRIX**2, MATRIX[::-1]])
        return top.vmap(lambda t: top.jvp(f, (MATRIX,), (t,)))(batch)
    theirs = jax_says(lambda: jax.tree.leaves(slopes(jax)))
    for found, wanted in zip(minijax.tree.leaves(slopes(minijax)), theirs, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=2e-4)


def test_derivatives_of_what_is_wider_than_high_are_those_of_its_columns_in_order():
    """JAX takes the columns of the tangent as they came: finite differences say what is right."""
    with minijax.enable_x64(True):
        x, t = MATRIX[:2].astype(np.float64), MATRIX[2:].astype(np.float64)
        f = lambda x: minijax.lax.linalg.qr(x, pivoting=True)[1]
        assert list(minijax.lax.linalg.qr(x, pivoting=True)[2]) != list(range(4))
        wanted = (f(x + 1e-6 * t) - f(x - 1e-6 * t)) / 2e-6
        np.testing.assert_allclose(minijax.jvp(f, (x,), (t,))[1], wanted, rtol=1e-6)


def test_eigenvectors_have_derivatives_where_they_are_asked_for(refused_alike):
    refused_alike(lambda top: top.jvp(top.lax.linalg.eig, (MATRIX,), (MATRIX,)))
    refused_alike(lambda top: top.grad(lambda x: top.lax.linalg.qdwh(x)[1].sum())(MATRIX))
