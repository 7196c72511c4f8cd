"""Solutions of equations are differentiated by the equation, as in JAX."""

import jax
import numpy as np
import pytest

import minijax

A = np.array([[4.0, 1.0, 0.5], [0.2, 3.0, 1.0], [0.1, 0.3, 2.0]], np.float32)
B = np.array([1.0, -2.0, 0.5], np.float32)


def solved(lib, a, b, **options):
    jnp = lib.numpy

    def solve(matvec, b):
        return jnp.linalg.solve(lib.jacobian(matvec)(b), b)
    return lib.lax.custom_linear_solve(lambda x: a @ x, b, solve, solve, **options)


def symmetric(lib, a, b):
    return lib.lax.custom_linear_solve(
        lambda x: (a + a.T) @ x, b, lambda matvec, b: lib.numpy.linalg.solve(a + a.T, b),
        symmetric=True)


def root(lib, a, b):
    def solve(f, x):
        return lib.lax.fori_loop(0, 20, lambda _, x: x - f(x) / lib.jvp(f, (x,), (1.0,))[1], x)
    found = lib.lax.custom_root(lambda x: x ** 3 + a[0, 0] * x - b[0], b[0], solve,
                                lambda g, y: y / g(1.0))
    return found * b


FUNCTIONS = {"solve": solved, "symmetric": symmetric, "root": root}
MADE = {
    "value": lambda lib, f: f,
    "compiled": lambda lib, f: lib.jit(f),
    "jvp": lambda lib, f: lambda a, b: lib.jvp(f, (a, b), (a * a, b + 1)),
    "gradient": lambda lib, f: lib.grad(lambda a, b: f(a, b).sum(), (0, 1)),
    "compiled gradient": lambda lib, f: lib.jit(lib.grad(lambda a, b: f(a, b).sum(), (0, 1))),
    "second derivatives": lambda lib, f: lib.hessian(lambda b, a: (f(a, b) ** 2).sum()),
    "batch": lambda lib, f: lambda a, b: lib.vmap(f, (None, 0))(a, lib.numpy.stack([b, 2 * b])),
    "batch of gradients": lambda lib, f: lambda a, b: lib.vmap(
        lib.grad(lambda a, b: f(a, b).sum(), (0, 1)), (0, None))(lib.numpy.stack([a, 2 * a]), b),
}


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_solution_is_jaxs_under_every_transformation(function, made, beside_jax):
    def found(lib):
        f = MADE[made](lib, lambda a, b: FUNCTIONS[function](lib, a, b))
        args = (B, A) if made == "second derivatives" else (A, B)
        return lib.tree.leaves(f(*map(lib.numpy.asarray, args)))
    for ours, theirs in zip(*beside_jax(found), strict=True):
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=1e-5)


def test_what_is_linear_can_be_transposed_and_has_constant_aux():
    f = lambda b: minijax.lax.custom_linear_solve(lambda x: 2 * x, b, lambda mv, b: (b / 2, mv(b)),
                                                  lambda mv, b: (b / 2, mv(b)), has_aux=True)
    (x, aux), (dx, daux) = minijax.jvp(f, (3.0,), (1.0,))
    assert (x, aux, dx, daux) == (1.5, 6.0, 0.5, 0.0)
    assert minijax.linear_transpose(lambda b: f(b)[0], 1.0)(3.0) == (1.5,)


def test_linear_call_is_transposed_by_the_function_that_is_given(beside_jax):
    def f(lib, r, x):
        return lib.custom_derivatives.linear_call(
            lambda r, x: {"y": x * r}, lambda r, ct: 10.0 * ct["y"] * r, r, x)["y"]

    def found(lib):
        x = lib.numpy.asarray(B)
        return [f(lib, 2.0, x), *lib.jvp(lambda x: f(lib, 2.0, x), (x,), (x,)),
                lib.linear_transpose(lambda x: f(lib, 2.0, x), x)(x)[0],
                lib.jit(lib.grad(lambda x: f(lib, 2.0, x).sum()))(x)]
    for ours, theirs in zip(*beside_jax(found), strict=True):
        np.testing.assert_allclose(ours, theirs)
    np.testing.assert_allclose(minijax.vmap(lambda r, x: f(minijax, r, x))(B, B), B * B)
    with pytest.raises(NotImplementedError, match="linear arguments only"):
        minijax.grad(lambda r: f(minijax, r, 1.0))(2.0)


REFUSED = {
    "tree of matvec": lambda lib: lib.lax.custom_linear_solve(
        lambda x: {"a": x}, 1.0, lambda m, b: b),
    "shape of matvec": lambda lib: lib.lax.custom_linear_solve(
        lambda x: lib.numpy.ones(3), 1.0, lambda m, b: b),
    "shape of solve": lambda lib: lib.lax.custom_linear_solve(
        lambda x: x, 1.0, lambda m, b: lib.numpy.ones(3)),
    "text of solve": lambda lib: lib.lax.custom_linear_solve(lambda x: x, 1.0, lambda m, b: "a"),
    "text of the root": lambda lib: lib.lax.custom_root(
        lambda x: x - 1, 1.0, lambda f, x: "a", lambda g, y: y),
    "no transpose": lambda lib: lib.grad(lambda b: lib.lax.custom_linear_solve(
        lambda x: 2 * x, b, lambda m, b: b / 2))(1.0),
    "tree of the root": lambda lib: lib.lax.custom_root(
        lambda x: x - 1, 1.0, lambda f, x: (x, x), lambda g, y: y),
    "tree of the function": lambda lib: lib.lax.custom_root(
        lambda x: (x - 1,), 1.0, lambda f, x: x, lambda g, y: y),
    "tree of the step": lambda lib: lib.lax.custom_root(
        lambda x: x - 1, 1.0, lambda f, x: x, lambda g, y: (y, y)),
    "tree of the transpose": lambda lib: lib.jit(lib.grad(
        lambda x: lib.custom_derivatives.linear_call(
            lambda r, x: x * r, lambda r, ct: (ct, ct), 2.0, x)))(1.0),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_refused_in_jaxs_words(case):
    with pytest.raises((TypeError, ValueError)) as theirs:
        REFUSED[case](jax)
    with pytest.raises(theirs.type) as ours:
        REFUSED[case](minijax)
    assert str(ours.value).split("\n")[0] == str(theirs.value).split("\n")[0]
