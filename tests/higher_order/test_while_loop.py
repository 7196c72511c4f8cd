"""Loops of unknown length: values, derivatives, batches and refusals are JAX's."""

import jax
import numpy as np
import pytest

import minijax

X = np.array([0.5, 0.3, 1.2], np.float32)


def same(f, rtol=1e-5):
    ours, theirs = f(minijax), f(jax)
    for a, b in zip(minijax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert (a.dtype, a.weak_type) == (b.dtype, b.weak_type)
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-6)


def newton(lib):
    """The cube root: stops when the step is small."""
    def root(a):
        def far(state):
            x, step = state
            return lib.numpy.abs(step) > 1e-4

        def step(state):
            x, _ = state
            delta = (x ** 3 - a) / (3 * x ** 2)
            return x - delta, delta
        return lib.lax.while_loop(far, step, (a, lib.numpy.float32(1)))[0]
    return root


TRANSFORMED = {
    "eval": lambda lib, f: f(np.float32(2)),
    "jit": lambda lib, f: lib.jit(f)(np.float32(2)),
    "jvp": lambda lib, f: lib.jvp(f, (np.float32(2),), (np.float32(1),)),
    "linearize": lambda lib, f: lib.linearize(f, np.float32(2))[1](np.float32(3)),
    "jacfwd": lambda lib, f: lib.jit(lib.jacfwd(f))(np.float32(2)),
    "vmap": lambda lib, f: lib.vmap(f)(X),
    "vmap jvp": lambda lib, f: lib.vmap(lambda a: lib.jvp(f, (a,), (a,))[1])(X),
    "jvp jvp": lambda lib, f: lib.jvp(lambda a: lib.jvp(f, (a,), (a,))[1], (X[0],), (X[1],)),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_newton_under_every_transformation(name):
    same(lambda lib: TRANSFORMED[name](lib, newton(lib)), rtol=1e-4)


def test_each_example_of_a_batch_stops_in_its_own_time():
    def count(lib):
        return lambda x: lib.lax.while_loop(lambda c: c[0] < 10, lambda c: (c[0] * 2, c[1] + 1),
                                            (x, 0))
    same(lambda lib: lib.vmap(count(lib))(X))


def test_a_loop_that_never_starts_returns_its_start():
    same(lambda lib: lib.lax.while_loop(lambda x: x > 10, lambda x: x + 1, 3))


@pytest.mark.parametrize("bounds", [(0, 5), (2, 2), (5, 1), (-3, 3), (np.int8(0), np.int8(4))])
def test_a_counted_loop_counts(bounds):
    same(lambda lib: lib.lax.fori_loop(*bounds, lambda i, x: x + i * 2, np.int32(1)))
    same(lambda lib: lib.jit(lambda lo, hi: lib.lax.fori_loop(
        lo, hi, lambda i, x: x + i * 2, np.int32(1)))(*bounds))


def test_a_counted_loop_with_known_bounds_can_be_differentiated_in_reverse():
    same(lambda lib: lib.grad(lambda x: lib.lax.fori_loop(
        0, 4, lambda i, c: lib.numpy.sin(c) * x + i, x))(1.5))


def test_a_counted_loop_with_unknown_bounds_is_a_while_loop():
    text = str(minijax.make_jaxpr(lambda n, x: minijax.lax.fori_loop(
        0, n, lambda i, c: c * i, x))(3, 1.0))
    assert "while[" in text and "scan[" not in text


def test_without_jit_a_loop_runs_in_python_unless_its_condition_is_mapped():
    def powers(lib):
        return lambda y: lib.lax.while_loop(lambda x: x < y, lambda x: x * 2, np.float32(1))

    for lib in (jax, minijax):
        with lib.disable_jit():
            assert powers(lib)(5) == 8
            np.testing.assert_array_equal(lib.vmap(powers(lib))(np.arange(6)), [1, 1, 2, 4, 4, 8])


BAD = {
    "no boolean": lambda lib: lib.lax.while_loop(lambda c: c, lambda c: c, 0.0),
    "a tree": lambda lib: lib.lax.while_loop(lambda c: (True,), lambda c: c, 0.0),
    "type changes": lambda lib: lib.lax.while_loop(
        lambda c: c[0] < 3, lambda c: (c[0], c[0]), (0, 1.0)),
    "bounds of two types": lambda lib: lib.lax.fori_loop(0, 3.0, lambda i, x: x, 0),
    "no callable": lambda lib: lib.lax.while_loop(3, 4, 0),
    "reverse derivative": lambda lib: lib.grad(lambda x: lib.lax.while_loop(
        lambda c: c < 3, lambda c: c * 2, x))(1.0),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_in_jaxs_words(name, refused_alike):
    refused_alike(BAD[name])


@pytest.mark.parametrize("compiled", [True, False], ids=["in a program", "at once"])
def test_the_counter_of_a_loop_has_the_type_it_has_in_jax(compiled):
    bounds = [1, 1.0, True, np.int8(1), np.int32(1), np.uint8(1), np.float32(1)]

    def types(lib, one, two):
        seen = []

        def loop(lower, upper):
            def step(i, c):
                seen.append((str(i.dtype), i.weak_type))
                return c
            return lib.lax.fori_loop(lower, upper, step, lib.numpy.zeros(()))
        try:
            (lib.jit(loop) if compiled else loop)(one, two)
        except TypeError as error:
            return str(error)
        return seen[0]
    for one in bounds:
        for two in bounds:
            assert types(minijax, one, two) == types(jax, one, two), (one, two)


def test_what_an_unroll_may_be(refused_alike):
    refused_alike(lambda lib: lib.jit(lambda n: lib.lax.fori_loop(
        0, n, lambda i, c: c, 0.0, unroll=2))(3))
    refused_alike(lambda lib: lib.lax.scan(lambda c, x: (c, x), 0, np.ones(3), unroll=-1))


HANDED_ON = {
    "a carry": lambda x: lambda s: (s[0] + 1, s[1], x * s[1]),
    "two that change places": lambda x: lambda s: (s[0] + 1, s[2], s[1]),
    "one into two": lambda x: lambda s: (s[0] + 1, s[1], s[1]),
}


@pytest.mark.parametrize("body", HANDED_ON.values(), ids=HANDED_ON.keys())
def test_a_carry_that_is_handed_on_is_a_constant_of_the_loop(body):
    def program(lib):
        def f(x, y):
            return lib.lax.while_loop(lambda s: s[0] < 3, body(x), (0, x, y))
        return f
    ours, theirs = (str(lib.make_jaxpr(program(lib))(2., 3.)) for lib in (minijax, jax))
    assert ours == theirs
    same(lambda lib: lib.jit(lambda *xs: lib.jvp(program(lib), xs, xs)[0])(X[0], X[1]))
    same(lambda lib: lib.jit(lib.vmap(program(lib)))(X, X))


def test_what_is_handed_on_has_a_reverse_derivative():
    same(lambda lib: lib.grad(lambda x: lib.lax.while_loop(
        lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1]), (0, x))[1] ** 2)(np.float32(2)))
    same(lambda lib: lib.jit(lib.grad(lambda x, n: lib.lax.fori_loop(
        0, n, lambda i, s: (s[0], s[1] + 1), (x, 1))[0]))(np.float32(2), 3))


def test_what_the_condition_reads_is_no_constant():
    def f(lib):
        return lib.make_jaxpr(lambda x: lib.lax.while_loop(
            lambda s: s[0] < s[1], lambda s: (s[0] + 1, s[1]), (0., x)))(2.)
    assert str(f(minijax)) == str(f(jax))


def test_a_python_number_that_is_handed_on_comes_back_as_it_is():
    for lib in (minijax, jax):
        assert type(lib.lax.fori_loop(0, 5, lambda i, x: x, 2.)) is float
