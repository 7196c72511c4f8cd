"""Long runs of calls are tables: the text has each function once, and a few words for each call."""

import re

import jax
import numpy as np
import pytest

import minijax
from minijax.compiler import tables
from tests.compiler.test_outlining import X, assembly, functions, in_a_loop, longest, network


def step(lib, params, slopes):
    return lib.tree.map(lambda p, g: p - 0.1 * g / (lib.numpy.sqrt(g) + 1e-8), params, slopes)


def leaves(n):
    return [np.linspace(1, 2, 4 + k % 7, dtype=np.float32) for k in range(n)]


@pytest.mark.parametrize("n", [70, 140])
def test_loops_over_arrays_of_equal_shapes_are_one_function(n):
    text = assembly(lambda p, g: step(minijax, p, g), leaves(n), leaves(n))
    assert len(functions(text)) == 7
    assert len(re.findall(r"ptrtoint \(ptr @loop", text)) == n
    assert text.count("\ndefine ") < 12  # no more than for half as many


def test_many_leaves_are_updated_as_in_jax():
    params = leaves(60)
    ours = minijax.jit(lambda p, g: step(minijax, p, g))(params, params)
    theirs = jax.jit(lambda p, g: step(jax, p, g))(params, params)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


@pytest.mark.parametrize("run", [1, 2, 10 ** 9])
@pytest.mark.parametrize("most", [12, 60])
def test_a_table_calls_what_instructions_would(monkeypatch, run, most):
    monkeypatch.setattr(tables, "MIN_CALLS", run)
    longest(monkeypatch, most)
    weights = [np.eye(8, dtype=np.float32) * (1 + k / 40) for k in range(12)]
    programs = [lambda lib, ws: network(lib, ws, X),
                lambda lib, ws: in_a_loop(lib, X + ws[0][0, 0]),
                lambda lib, ws: lib.numpy.fft.ifft(lib.numpy.fft.fft(X) * ws[0][0]).real]
    for f in programs:
        ours = minijax.jit(lambda ws: f(minijax, ws))(weights)  # noqa: B023
        theirs = jax.jit(lambda ws: f(jax, ws))(weights)  # noqa: B023
        for a, b in zip(minijax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    assert ("@table" in assembly(lambda ws: network(minijax, ws, X), weights)) == (run < 9)


def test_what_differs_in_a_number_or_in_memory_that_is_shared_is_another_function(monkeypatch):
    longest(monkeypatch, 12)

    def f(xs):
        return [x * 2.0 if k % 2 else x * -0.0 for k, x in enumerate(xs)]
    xs = [np.ones(5, np.float32)] * 8
    assert len(functions(assembly(f, xs))) == 2
    for k, x in enumerate(minijax.jit(f)(xs)):
        np.testing.assert_array_equal(x, xs[k] * (2.0 if k % 2 else -0.0), strict=True)


def test_transforms_of_one_shape_are_compiled_once():
    def pairs(n):
        def f(x):
            for _ in range(n):
                x = minijax.numpy.fft.ifft(minijax.numpy.fft.fft(x)).real
            return x
        return assembly(f, np.ones((16, 64), np.float32))
    few, more = pairs(4), pairs(12)
    assert functions(few) == functions(more) and more.count("\ndefine ") == few.count("\ndefine ")
