"""cholesky and triangular_solve: what they read, what they refuse, and their slopes."""

import functools
import itertools

import jax
import numpy as np
import pytest

import minijax
from minijax import config, lax
from minijax.primitives.linalg import nonsingular, symmetric

CHOLESKY, EIGH = lax.linalg.cholesky_p, lax.linalg.eigh_p


@pytest.mark.parametrize("size", [1, 5, 64, 65, 130, 200])
def test_a_factor_multiplied_by_itself_is_the_matrix(size):
    x = symmetric(size, size) + size * np.eye(size)
    with config.enable_x64(True):
        for factor in (lax.linalg.cholesky(x), minijax.jit(lax.linalg.cholesky)(x)):
            np.testing.assert_allclose(factor @ factor.T, x, rtol=1e-10, atol=1e-10)
            assert not np.triu(np.asarray(factor), 1).any()


def test_where_there_is_no_factor_there_is_nan_below_the_diagonal():
    x = np.stack([symmetric(3, 3), -symmetric(3, 3)]).astype(np.float32)
    for f in (lax.linalg.cholesky, minijax.jit(lax.linalg.cholesky)):
        good, bad = np.asarray(f(x))
        assert np.isfinite(good).all()
        assert np.isnan(bad[np.tril_indices(3)]).all()
        assert not bad[np.triu_indices(3, 1)].any()


def test_without_symmetrizing_one_triangle_is_read():
    x = symmetric(4, 4, dtype=np.float32)
    garbage = x + np.triu(np.full((4, 4), np.nan, np.float32), 1)
    for wrap in (lambda f: f, minijax.jit):
        f = wrap(lambda x: lax.linalg.cholesky(x, symmetrize_input=False))
        np.testing.assert_allclose(f(garbage), lax.linalg.cholesky(x), rtol=1e-6)
        g = wrap(lambda x: lax.linalg.eigh(x, symmetrize_input=False)[1])
        np.testing.assert_allclose(g(garbage), lax.linalg.eigh(x)[1], rtol=1e-5)


@pytest.mark.parametrize("p, params", [(CHOLESKY, {}), (EIGH, {"lower": True})])
def test_the_jvp_is_the_slope_along_symmetric_changes(p, params):
    """What the laws test along any change, which here is not what is meant."""
    with config.enable_x64(True):
        x = symmetric(4, 4)
        t, u = (np.cos(np.arange(16.) * k).reshape(4, 4) for k in (1.7, 2.3))
        t, u, step = t + t.T, u + u.T, 1e-6
        f = lambda x: p.bind_list(x, **params)
        slopes = minijax.jvp(f, (x,), (t,))[1]
        for slope, ahead, behind in zip(slopes, f(x + step * t), f(x - step * t), strict=True):
            np.testing.assert_allclose(slope, (ahead - behind) / (2 * step), rtol=1e-6, atol=1e-7)
        twice = lambda t, u: minijax.jvp(lambda x: minijax.jvp(f, (x,), (t,))[1], (x,), (u,))[1]
        for one, other in zip(twice(t, u), twice(u, t), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("shape", [(3, 2), (3, 1), (70, 5), (2, 70, 3)])
@pytest.mark.parametrize("flags", list(itertools.product([False, True], repeat=4)))
def test_solutions_solve(shape, flags):
    left_side, lower, transpose_a, unit_diagonal = flags
    size = shape[-2]
    a = nonsingular(*shape[:-2], size, size) + size * np.eye(size)
    b = nonsingular(*shape) if left_side else nonsingular(*shape).swapaxes(-1, -2).copy()
    t = np.tril(a) if lower else np.triu(a)
    t = t * (1 - np.eye(size)) + np.eye(size) if unit_diagonal else t
    scale = np.abs(t).sum(-1).max()
    a, t = (a / scale, t / scale * (1 - np.eye(size)) + np.eye(size)) if unit_diagonal else (a, t)
    t = t.swapaxes(-1, -2) if transpose_a else t
    with config.enable_x64(True):
        f = lambda a, b: lax.linalg.triangular_solve(
            a, b, left_side=left_side, lower=lower, transpose_a=transpose_a,
            unit_diagonal=unit_diagonal)
        for x in (f(a, b), minijax.jit(f)(a, b)):
            product = t @ x if left_side else x @ t
            np.testing.assert_allclose(product, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("f, error, words", [
    (lambda m, x: m.cholesky(x[0]), TypeError, "permutation"),
    (lambda m, x: m.cholesky(x[:2]), TypeError, "add got incompatible shapes for broadcasting"),
    (lambda m, x: m.cholesky(x.astype(np.float16)), NotImplementedError, "Unsupported dtype"),
    (lambda m, x: m.triangular_solve(x[:2], x), ValueError,
     r"The first input to triangular_solve must be a square matrix\. Got shape \(2, 3\)\."),
    (lambda m, x: m.triangular_solve(x, x[:2], left_side=True), ValueError,
     r"Incompatible shapes for arguments to triangular_solve: \(3, 3\) and \(2, 3\)\."),
    (lambda m, x: m.triangular_solve(x, x.astype(np.float16)), TypeError, "same dtypes"),
    (lambda m, x: m.triangular_solve(x.astype(int), x.astype(int)), TypeError,
     "triangular_solve does not accept dtype int32 at position 0"),
    (lambda m, x: m.lu(x[0]), TypeError, "Input 0 to lu must have rank at least 2"),
    (lambda m, x: m.qr(x[0]), TypeError, "Input 0 to qr must have rank at least 2"),
    (lambda m, x: m.svd(x[0]), TypeError, "Input 0 to svd must have rank at least 2"),
])
def test_what_is_refused(f, error, words):
    with pytest.raises(error, match=words):
        f(lax.linalg, np.eye(3, dtype=np.float32))


def test_a_matrix_for_a_whole_batch_is_not_repeated():
    a, b = np.eye(3, dtype=np.float32), np.ones((5, 3, 2), np.float32)
    program = minijax.make_jaxpr(minijax.vmap(
        lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True), (None, 0)))(a, b)
    assert "f32[5,3,3]" not in str(program)
    assert "f32[3,10]" in str(program)


def test_16_bit_floats_are_solved_in_float32():
    a, b = np.float16([[2, 0], [1, 4]]), np.float16([[2], [9]])
    x = lax.linalg.triangular_solve(a, b, left_side=True, lower=True)
    assert x.dtype == np.float16
    np.testing.assert_array_equal(x, [[1], [2]])


@pytest.mark.parametrize("name", ["cholesky", "triangular_solve", "lu", "qr", "eigh", "svd"])
def test_compiled_code_stays_inside_its_buffers(name, guards):
    p = getattr(lax.linalg, name + "_p")
    for number, example in enumerate(p.examples()):
        with config.enable_x64(example.args[0].dtype == np.float64):
            f = lambda *args, number=number, e=example: p.bind_list(*args, **e.params)
            minijax.jit(f)(*example.args)
    assert guards.calls


@pytest.mark.parametrize("n", [2, 16, 17, 70])
@pytest.mark.parametrize("left_side", [False, True])
def test_compiled_substitution_solves_few_equations_and_many(n, left_side):
    draw = np.random.default_rng(n)
    a = draw.normal(size=(2, n, n)) + 2 * n * np.eye(n)
    b = draw.normal(size=(2, n, 3) if left_side else (2, 3, n))
    for lower, turned, unit in itertools.product([False, True], repeat=3):
        f = functools.partial(lax.linalg.triangular_solve, left_side=left_side, lower=lower,
                              transpose_a=turned, unit_diagonal=unit)
        with config.enable_x64(True):
            x = np.asarray(minijax.jit(f)(a / n, b))
        triangle = (np.tril if lower else np.triu)(a / n)
        if unit:
            triangle = triangle * (1 - np.eye(n)) + np.eye(n)
        op = triangle.swapaxes(-1, -2) if turned else triangle
        np.testing.assert_allclose(op @ x if left_side else x @ op, b, atol=1e-9 * np.abs(x).max())


@pytest.mark.parametrize("strong", [(), (0,), (1,), (0, 1)])
def test_a_solution_is_weak_where_both_sides_are(strong):
    def is_weak(lib):
        a, b = (lib.numpy.eye(2, dtype="float32") if i in strong
                else lib.numpy.broadcast_to(1.0, (2, 2)) for i in range(2))
        return lib.lax.linalg.triangular_solve(a, b, left_side=True, lower=True).weak_type
    assert is_weak(minijax) == is_weak(jax) == (not strong)
