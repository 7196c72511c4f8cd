"""A sink keeps what it is given, through every transformation, as in JAX."""

import jax
import pytest

import minijax


def kept(lib, x):
    lib.lax.dce_sink(lib.numpy.sin(x))
    return x * x


PROGRAMS = {
    "itself": lambda lib: lib.lax.dce_sink,
    "a tree": lambda lib: lambda x: lib.lax.dce_sink({"a": x, "b": 1.0}, prevent_mlir_dce=True),
    "no leaves": lambda lib: lambda x: lib.lax.dce_sink(None),
    "a value": lambda lib: lambda x: kept(lib, x),
    "jvp": lambda lib: lambda x: lib.jvp(lambda x: kept(lib, x), (x,), (x,)),
    "grad": lambda lib: lib.grad(lambda x: kept(lib, x)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_are_those_of_jax(name):
    found, wanted = (str(lib.make_jaxpr(PROGRAMS[name](lib))(1.5)) for lib in (minijax, jax))
    assert found == wanted


def test_no_pass_drops_it():
    def count(f, *args):
        return str(minijax.make_jaxpr(f)(*args)).count("dce_sink")
    f = lambda x: kept(minijax, x)
    lax, x = minijax.lax, minijax.numpy.ones(3)
    assert count(minijax.vmap(f), x) == 1
    assert count(minijax.jit(f), 1.0) == 1
    assert count(lambda x: lax.scan(lambda c, x: (f(c), None), 1.0, x)[0], x) == 1
    assert count(lambda x: lax.cond(x > 0, f, lambda x: x, x), 1.0) == 1
    assert count(minijax.grad(minijax.checkpoint(f)), 1.0) >= 1


def test_values_and_derivatives_are_as_without():
    f = lambda x: kept(minijax, x)
    assert minijax.jit(f)(3.0) == 9.0
    assert minijax.jit(minijax.grad(minijax.jit(f)))(3.0) == 6.0
    assert minijax.hessian(f)(3.0) == 2.0
    assert minijax.linearize(f, 3.0)[1](1.0) == 6.0
    assert minijax.linear_transpose(lambda x: (minijax.lax.dce_sink(3 * x), 2 * x)[1], 1.0)(
        1.0) == (2.0,)
    assert minijax.jit(minijax.lax.dce_sink)(minijax.random.key(0)) is None


def test_what_is_no_array_is_refused():
    for lib in (minijax, jax):
        with pytest.raises(TypeError, match="passed to dce_sink at position 0"):
            lib.lax.dce_sink("x")
