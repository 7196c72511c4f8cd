"""Programs are compiled once, and under `log_compiles` they say so."""

import logging
import re

import pytest

import minijax as jax
import minijax.numpy as jnp


def log_of(program, caplog):
    with jax.log_compiles(True), caplog.at_level(logging.WARNING):
        program()
    return [re.sub(r"[\d.]+ sec", "… sec", record.message) for record in caplog.records]


def test_what_is_traced_and_compiled_is_logged_with_its_time(caplog):
    def halved(x):
        return x / 2
    f = jax.jit(halved)

    def program():
        f(jnp.ones(3))
        f(jnp.ones(3))
    assert log_of(program, caplog) == [
        "Finished tracing halved for jit in … sec",
        "Compiling jit(halved) with global shapes and types (ShapedArray(float32[3])).",
        "Finished compilation of jit(halved) in … sec"]


def test_a_function_that_fails_is_not_finished(caplog):
    def program():
        with pytest.raises(ZeroDivisionError):
            jax.jit(lambda x: x + 1 / 0)(1.0)
    assert log_of(program, caplog) == []


def test_without_the_flag_nothing_is_logged(caplog):
    with caplog.at_level(logging.WARNING):
        jax.jit(lambda x: x / 3)(1.0)
    assert not caplog.records


@pytest.mark.parametrize("call", [
    lambda f: jax.jit(f)(1.0), lambda f: jax.jit(f).lower(1.0).compile(),
    lambda f: jax.lax.scan(lambda c, _: (f(c), None), 1.0, length=2),
    lambda f: jax.vmap(jax.grad(jax.jit(f)))(jnp.ones(2))],
    ids=["jit", "lower", "scan", "vmap of grad"])
def test_a_mistake_of_the_compiler_says_whose_it_is_and_what_to_do(call, monkeypatch):
    def broken(*_):
        raise IndexError("list index out of range")

    def half(x):
        return x * 0.5
    monkeypatch.setattr("minijax.lowering.lowered.lower_to_kernel", broken)
    with pytest.raises(jax.errors.JaxRuntimeError, match="INTERNAL: the compiler") as caught:
        call(half)
    assert "IndexError: list index out of range" in str(caught.value)
    assert isinstance(caught.value.__cause__, IndexError)
    assert any("disable_jit" in note and "report" in note for note in caught.value.__notes__)
    with jax.disable_jit():
        assert half(1.0) == 0.5


def test_what_the_compiler_says_to_users_is_left_as_it_is(monkeypatch):
    def refuses(*_):
        raise NotImplementedError("it cannot be compiled")
    monkeypatch.setattr("minijax.lowering.lowered.lower_to_kernel", refuses)
    with pytest.raises(NotImplementedError, match="it cannot be compiled"):
        jax.jit(lambda x: x * 0.25)(1.0)
