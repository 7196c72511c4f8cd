"""Blocks in which programs are traced another way, or bear a name."""

import jax
import numpy as np
import pytest

import minijax


@pytest.mark.parametrize("transform", ["jit", "grad", "vmap"])
def test_known_numbers_are_there_at_once_in_a_function_that_is_traced(transform):
    def results(lib):
        def f(x):
            with lib.ensure_compile_time_eval():
                known = lib.numpy.sin(lib.numpy.arange(3.)).sum()
                assert float(known) > 1.7  # a tracer has no digits
                traced = lib.numpy.sin(x)
            return (known * traced * lib.numpy.cos(x)).sum()
        x = np.float32([1, 2]) if transform == "vmap" else 2.
        return getattr(lib, transform)(f)(x)
    ours, theirs = (np.asarray(results(lib)) for lib in (minijax, jax))
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_after_an_error_inside_nothing_is_left():
    def f(x):
        with minijax.ensure_compile_time_eval():
            raise KeyError("mine")
    with pytest.raises(KeyError):
        minijax.jit(f)(1.)
    assert float(minijax.jit(lambda x: x + 1)(1.)) == 2.


def test_names_change_no_program():
    def f(lib):
        @lib.named_scope("outer")
        def g(x):
            with lib.named_scope("inner"):
                return lib.numpy.sin(x)
        return lib.make_jaxpr(lib.named_call(g, name="mine"))(1.)
    assert str(f(minijax)) == str(f(jax))
    for lib in (minijax, jax):
        with pytest.raises(TypeError, match="named_scope name argument must be a string"):
            lib.named_scope(3)


def test_a_function_is_traced_for_each_value_of_a_users_context():
    for lib in (minijax, jax):
        context, traces = lib.make_user_context(1.0), []

        def f(x, traces=traces):
            traces.append(x)
            return x
        jitted = lib.jit(f)
        jitted(1.0)
        with context(2.0):
            assert jitted(1.0) == jitted(1.0)
            with context(3.0):
                jitted(1.0)
        jitted(1.0)
        assert len(traces) == 3
        context.set_global(4.0)
        jitted(1.0)
        assert context.get_global() == 4.0 and len(traces) == 4


def test_nothing_runs_without_execution():
    for lib in (minijax, jax):
        f = lib.jit(lib.numpy.sin)
        assert f(0.0) == 0.0
        with lib.no_execution():
            assert "sin" in str(lib.make_jaxpr(f)(1.0))
            f.lower(1.0).compile()
            with pytest.raises(RuntimeError, match="the no_execution config option is set"):
                f(1.0)
            with pytest.raises(RuntimeError, match="the no_execution config option is set"):
                lib.numpy.cos(1.0)
        assert f(0.0) == 0.0
