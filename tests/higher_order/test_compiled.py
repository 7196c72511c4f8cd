"""Programs are compiled once, and under `log_compiles` they say so."""

import logging
import re

import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import config
from minijax.higher_order.compiled import backend


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


def test_an_unknown_backend_is_refused_with_those_there_are():
    with config.platforms("tpu"), pytest.raises(RuntimeError, match="Platforms present are: cpu"):
        backend()
