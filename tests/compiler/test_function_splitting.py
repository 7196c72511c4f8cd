"""Function splitting: no function grows with the program, and nothing else changes."""

import jax
import numpy as np
import pytest

import minijax
from minijax.compiler import cpu
from tests.compiler.test_outlining import X, assembly, longest, network


def lengths(text):
    """The lines of each function."""
    return [part.count("\n") for part in text.split("\ndefine ")]


def test_no_function_grows_with_the_number_of_layers():
    few, more = (assembly(lambda ws: network(minijax, ws, X), [np.eye(8, dtype=np.float32)] * n)
                 for n in (24, 96))
    assert more.count("i32 @stretch.") > 2 * few.count("i32 @stretch.") > 4
    # but for the one that calls the others
    assert sorted(lengths(more))[-2] <= 1.2 * sorted(lengths(few))[-1]


def test_a_name_is_known_in_the_whole_stretch_that_needs_it(monkeypatch):
    longest(monkeypatch, 12)

    def f(lib, x):
        total, parts = lib.numpy.sum(x), []
        for k in range(6):
            x = lib.numpy.sort(lib.numpy.cos(x) * total, axis=k % 2)
            parts.append(x.max())
        return parts, total
    for a, b in zip(jax.tree.leaves(jax.jit(lambda x: f(jax, x))(X)),
                    minijax.tree.leaves(minijax.jit(lambda x: f(minijax, x))(X)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_what_fails_in_one_stretch_ends_all(monkeypatch):
    longest(monkeypatch, 12)
    seen = []

    def told(number):
        def call(x):
            seen.append(number)
            if number == 3:
                raise ValueError("three")
        return call

    def f(x):
        for number in range(6):
            minijax.debug.callback(told(number), x)
            x = minijax.numpy.sort(minijax.numpy.tanh(x @ (x.T @ x)), 0)
        return x
    compiled = minijax.jit(f).lower(X).compile()
    assert "stretch.4" in assembly(f, X)
    with pytest.raises(Exception, match="three"):
        minijax.block_until_ready(compiled(X))
    assert seen[-1] == 3


def test_a_very_long_function_is_compiled_without_optimising(monkeypatch):
    text = assembly(lambda x: minijax.numpy.tanh(x) * 2 + 1, X)
    optimised, quick = (cpu.compile(text, level=level) for level in (1, 0))
    assert optimised != quick
    monkeypatch.setattr(cpu, "LONGEST", 100)
    assert cpu.compile(text, level=1) == quick
