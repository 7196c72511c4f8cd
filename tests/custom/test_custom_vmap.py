"""A function's own batching rule is used by every transformation, as in JAX."""

import jax
import numpy as np
import pytest

import minijax

X = np.array([0.5, -1.0, 2.0], np.float32)


def with_rule(lib):
    f = lib.custom_batching.custom_vmap(lambda x, y: lib.numpy.sin(x) + y)

    @f.def_vmap
    def rule(axis_size, in_batched, xs, ys):
        return axis_size * xs * ys, True
    return f


PROGRAMS = {
    "value": lambda lib, f: f(X, 2.0),
    "batch": lambda lib, f: lib.vmap(f)(X, X),
    "compiled": lambda lib, f: lib.jit(lib.vmap(f, (0, None)))(X, 2.0),
    "by keywords": lambda lib, f: lib.vmap(lambda x: f(y=2.0, x=x))(lib.numpy.asarray(X)),
    "batch of batches": lambda lib, f: lib.vmap(lib.vmap(f, (0, None)), (None, 0))(X, X),
    "jvp": lambda lib, f: lib.jvp(f, (X, X), (X, X)),
    "jvp of batch": lambda lib, f: lib.jvp(lib.vmap(f), (X, X), (X, X)),
    "jvp of a half": lambda lib, f: lib.jvp(lambda x: lib.vmap(f)(x, X), (X,), (X,)),
    "in a loop": lambda lib, f: lib.vmap(
        lambda x: lib.lax.fori_loop(0, 3, lambda _, c: f(c, x), x))(X),
    "one by one": lambda lib, f: lib.vmap(lib.custom_batching.sequential_vmap(
        lambda x, y: (x * y, y)), (0, None))(X, 2.0),
    "one by one, compiled": lambda lib, f: lib.jit(lib.vmap(
        lib.custom_batching.sequential_vmap(lambda x, y: lib.numpy.sin(x) * y)))(X, X),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_rule_gives_what_it_gives_in_jax(program, beside_jax):
    ours, theirs = beside_jax(lambda lib: lib.tree.leaves(PROGRAMS[program](lib, with_rule(lib))))
    for a, b in zip(ours, theirs, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-6)


def with_honest_rule(lib):
    f = lib.custom_batching.custom_vmap(lambda x, y: lib.numpy.sin(x) + y)
    f.def_vmap(lambda axis_size, batched, xs, ys: (10 * xs * ys, any(batched)))
    return f


@pytest.mark.parametrize("primal", [2.0, X])
def test_a_batch_of_tangents_alone_leaves_the_rule_to_the_primals(primal, beside_jax):
    ours, theirs = beside_jax(lambda lib: lib.vmap(lambda x, t: lib.jvp(
        with_honest_rule(lib), (x, 3.0), (t, 0.5)), (0 if primal is X else None, 0))(primal, X))
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_a_result_with_two_batch_axes_is_their_diagonal():
    f = with_honest_rule(minijax)
    out, tangent = minijax.vmap(lambda t: minijax.jvp(f, (t, 3.0), (t, t)))(X)
    np.testing.assert_allclose(out, 30 * X, rtol=1e-6)
    np.testing.assert_allclose(tangent, 10 * X * (3 + X), rtol=1e-6)


def test_what_a_function_closes_over_may_be_traced():
    def f(c):
        g = minijax.custom_batching.custom_vmap(lambda x: c * x)
        g.def_vmap(lambda size, batched, xs: (10 * xs, True))
        return minijax.vmap(g)(X).sum() + g(X[0])
    assert minijax.jvp(f, (3.0,), (1.0,))[1] == X[0]


def bad(lib, rule):
    f = lib.custom_batching.custom_vmap(lambda x: x)
    if rule:
        f.def_vmap(rule)
    return lib.vmap(f)(X)


REFUSED = {
    "no rule": lambda lib: bad(lib, None),
    "flags": lambda lib: bad(lib, lambda size, batched, x: (x, [True])),
    "tree": lambda lib: bad(lib, lambda size, batched, x: ((x, x), (True, True))),
    "reverse": lambda lib: lib.grad(with_rule(lib))(1.0, 2.0),
}


@pytest.mark.parametrize("case", REFUSED)
def test_mistakes_are_refused_in_jaxs_words(case):
    with pytest.raises((AttributeError, ValueError)) as theirs:
        REFUSED[case](jax)
    with pytest.raises(theirs.type) as ours:
        REFUSED[case](minijax)
    assert str(ours.value).split("\n")[0] == str(theirs.value).split("\n")[0]


def test_rules_of_the_function_inside_are_defined_through_the_outer_one():
    for lib in (minijax, jax):
        f = lib.custom_batching.custom_vmap(lib.custom_jvp(lambda x: 2.0 * x))
        f.defjvp(lambda primals, tangents: (2.0 * primals[0], 5.0 * tangents[0]))
        f.def_vmap(lambda axis_size, in_batched, x: (3.0 * x, True))
        assert float(lib.vmap(f)(np.ones(2, np.float32))[1]) == 3.0
        assert float(lib.grad(f.fun)(1.0)) == 5.0
        g = lib.custom_vjp(lib.custom_batching.custom_vmap(lambda x: x))
        assert g.def_vmap(abs) is abs
        with pytest.raises(AttributeError):
            _ = g.undefined


def test_a_sequential_vmap_has_its_rule_inside_of_the_loop():
    def programs(lib):
        f = lib.custom_batching.sequential_vmap(lambda x: x + 1.0)
        return lib.make_jaxpr(lib.vmap(f))(X), lib.make_jaxpr(lambda x: lib.lax.map(f, x))(X)
    for lib in (minijax, jax):
        of_vmap, of_map = programs(lib)
        assert str(of_vmap) == str(of_map) and "custom_vmap_call" in str(of_map)


def test_nothing_is_computed_of_the_tangent_of_an_integer_result():
    def least(x):
        places = minijax.custom_batching.sequential_vmap(
            lambda row: minijax.numpy.argmax(row, 1))(x)
        return minijax.vmap(lambda k: minijax.lax.pmin(k, "k"), axis_name="k")(places)
    x = np.ones((2, 3), np.float32)
    for f in (least, minijax.jit(least)):
        value, tangent = minijax.jvp(f, (x,), (x,))
        assert value.tolist() == [0, 0] and tangent.dtype == minijax.dtypes.float0
