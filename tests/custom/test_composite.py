"""Operations that a user names, beside JAX: programs, attributes, what they refuse."""

from functools import partial

import jax
import numpy as np
import pytest

import minijax

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def made(lib):
    @partial(lib.lax.composite, name="my.sum", version=3)
    def summed(x, y=None, /, *, axis=0, scale=None):
        """A sum."""
        total = lib.numpy.sin(x).sum(axis)
        return total if scale is None else (total * scale, x)
    return summed


CALLS = {
    "plain": lambda f, x: f(x), "an attribute": lambda f, x: f(x, axis=1),
    "several": lambda f, x: f(x, axis=1, scale=2.0), "None": lambda f, x: f(x, scale=None),
    "an array": lambda f, x: f(x, axis=0, scale=np.float32([1, 2, 3])),
    "no argument": lambda f, x: f(x, None)}


@pytest.mark.parametrize("call", CALLS)
def test_equations_are_those_of_jax(call, beside_jax):
    def equation(lib):
        eqn, = lib.make_jaxpr(lambda x: CALLS[call](made(lib), x))(X).eqns
        params = dict(eqn.params)
        inside = [e.primitive.name for e in params.pop("jaxpr").eqns]
        return str(eqn.primitive), inside, {name: str(x) for name, x in params.items()}
    ours, theirs = beside_jax(equation)
    assert ours == theirs


@pytest.mark.parametrize("call", CALLS)
def test_values_are_those_of_jax(call, beside_jax):
    found, wanted = beside_jax(
        lambda lib: jax.tree_util.tree_leaves(CALLS[call](made(lib), lib.numpy.asarray(X))))
    compiled = minijax.tree_util.tree_leaves(minijax.jit(
        lambda x: CALLS[call](made(minijax), x))(X))
    for x, y, z in zip(found, wanted, compiled, strict=True):
        np.testing.assert_allclose(x, y, 1e-5)
        np.testing.assert_allclose(z, y, 1e-5)


def test_what_is_closed_over_goes_in_first(beside_jax):
    def names(lib):
        scale = lib.numpy.arange(3.0)
        program = lib.make_jaxpr(lib.lax.composite(lambda x: x * scale, "scaled"))(X)
        eqn, = program.eqns
        return [(v.aval.shape, str(v.aval.dtype)) for v in eqn.invars], len(program.jaxpr.constvars)
    ours, theirs = beside_jax(names)
    assert ours == theirs


def test_equal_attributes_of_other_types_are_told_apart():
    f = minijax.lax.composite(lambda x, *, by: x * by, "times")
    assert [str(f(2, by=by).dtype) for by in (1, 1.0, True)] == ["int32", "float32", "int32"]
    assert [float(minijax.numpy.copysign(1, f(2.0, by=by))) for by in (0.0, -0.0)] == [1, -1]
    array = np.float32([1, 2])
    first = f(2.0, by=array)
    array[0] = 5
    np.testing.assert_array_equal(first, [2, 4])
    np.testing.assert_array_equal(f(2.0, by=array), [10, 4])


def test_a_second_call_traces_nothing():
    calls = []
    f = minijax.lax.composite(lambda x, *, axis: (calls.append(axis), x.sum(axis))[1], "sum")
    for axis in (0, 1, 0, 1):
        f(X, axis=axis)
    assert calls == [0, 1]


REFUSED = {
    "jvp": lambda lib, f: lib.jvp(f, (X,), (X,)), "grad": lambda lib, f: lib.grad(
        lambda x: f(x).sum())(X),
    "vmap": lambda lib, f: lib.vmap(f)(X),
    "transpose": lambda lib, f: lib.linear_transpose(lib.lax.composite(
        lambda x: 2 * x, "double"), X)(X),
    "a tracer as attribute": lambda lib, f: lib.jit(lambda x: f(x, scale=x))(X),
    "a tracer closed over": lambda lib, f: lib.jit(lambda x: lib.lax.composite(
        lambda y: x + y, "sum")(X))(X),
    "a text": lambda lib, f: f("text"),
    "no hash": lambda lib, f: lib.jit(lambda x: f(x, scale={1, 2}))(X)}


@pytest.mark.parametrize("program", REFUSED)
def test_what_jax_refuses_is_refused(program):
    found, wanted = [], []
    for lib, errors in ((minijax, found), (jax, wanted)):
        with pytest.raises((ValueError, TypeError, NotImplementedError,
                            lib.errors.UnexpectedTracerError)) as error:
            REFUSED[program](lib, made(lib))
        errors.append(error.value)
    name = type(wanted[0]).__name__
    assert name in [kind.__name__ for kind in type(found[0]).__mro__]
    if name != "TypeError":
        assert str(found[0])[:40] == str(wanted[0])[:40]


def test_own_rules_go_around_it():
    def slope(lib):
        f = lib.custom_jvp(lib.lax.composite(lambda x: lib.numpy.sin(x), "sine"))
        f.defjvp(lambda primals, tangents: (f(*primals), 3 * tangents[0]))
        return lib.grad(f)(1.0)
    assert float(slope(minijax)) == float(slope(jax)) == 3.0


def test_it_goes_by_the_name_of_the_function():
    f = made(minijax)
    assert (f.__name__, f.__doc__) == ("summed", "A sum.")
