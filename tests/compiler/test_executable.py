"""Calls of machine code: as straight text, and in loops where there are many arrays."""

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax.compiler import executable


def program(x, y):
    """With a constant array, a workspace, a large result and a Python callback."""
    known = minijax.pure_callback(lambda a: a + 1, minijax.ShapeDtypeStruct((3,), np.float32), y)
    square = jnp.sort(x @ x.T, axis=0) + np.arange(300, dtype=np.float32)
    return square, jnp.cumsum(square) @ jnp.ones((90_000, 2)), known


def test_calls_in_loops_give_the_same(monkeypatch):
    x, y = np.linspace(-1, 1, 900, dtype=np.float32).reshape(300, 3), np.ones(3, np.float32)
    straight = minijax.jit(lambda *args: program(*args))(x, y)
    monkeypatch.setattr(executable, "WIDE", 0)
    looping = minijax.jit(lambda *args: program(*args))
    for _ in range(2):
        for a, b in zip(looping(x, y), straight, strict=True):
            np.testing.assert_array_equal(a, b)


def test_errors_leave_calls_in_loops(monkeypatch):
    monkeypatch.setattr(executable, "WIDE", 0)

    def fail(_):
        raise ValueError("refused")
    with pytest.raises(minijax.errors.JaxRuntimeError, match="refused"):
        minijax.jit(lambda x: minijax.pure_callback(fail, x, x))(jnp.ones(3))
