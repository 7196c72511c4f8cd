"""Long kernels are many functions: equal loops are compiled once, and nothing else changes."""

import re

import jax
import numpy as np
import pytest

import minijax
from minijax.lowering import llvm, outlined

X = np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8)


def network(lib, weights, x):
    def loss(weights):
        y = x
        for w in weights:
            y = lib.numpy.tanh(y @ w)
        return (y * y).sum()
    return lib.grad(loss)(weights)


def in_a_loop(lib, x):
    """A long body: loops that need its index, its carry, and memory that others had before."""
    def step(i, y):
        for k in range(4):
            rows = lib.lax.dynamic_index_in_dim(y, (i + k) % 4, keepdims=False)
            y = lib.numpy.tanh(y @ (y.T @ y) * 0.1) + rows * 0.5 + (x > rows).sum(0) * 0.1
        return y
    return lib.lax.fori_loop(0, 3, step, x)


def scalars_between(lib, x):
    y = x
    for _ in range(6):
        total = lib.numpy.sin(y.mean())
        y = lib.numpy.where(x > 0, y * 0.5 + total, lib.numpy.cos(y) - total)
    return y, lib.numpy.sort(y, axis=1), lib.numpy.cumsum(y, 0)


def assembly(f, *args):
    lowered = minijax.jit(f).lower(*args)._lowered
    return llvm.assembly(lowered.kernel)


def functions(text):
    return re.findall(r"define internal void (@loop[\w.]*)\(", text)


@pytest.mark.parametrize("program", [in_a_loop, scalars_between])
@pytest.mark.parametrize("longest", [12, 60])
def test_a_long_kernel_computes_what_it_would_in_one_piece(monkeypatch, program, longest):
    whole, theirs = minijax.jit(lambda x: program(minijax, x)), jax.jit(lambda x: program(jax, x))
    monkeypatch.setattr(outlined, "LONG", 10 ** 9)
    assert not functions(assembly(whole, X))
    wanted = minijax.tree.leaves(whole(X))
    monkeypatch.setattr(outlined, "LONG", longest)
    assert functions(assembly(lambda x: program(minijax, x), X))
    ours = minijax.tree.leaves(minijax.jit(lambda x: program(minijax, x))(X))
    for a, b, c in zip(ours, wanted, jax.tree.leaves(theirs(X)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(a, c, rtol=1e-4, atol=1e-5)


def test_equal_layers_are_one_function():
    texts = [assembly(lambda ws: network(minijax, ws, X), [np.eye(8, dtype=np.float32)] * n)
             for n in (12, 24)]
    fewer, more = (functions(text) for text in texts)
    assert len(fewer) == len(set(fewer)) and sorted(more) == sorted(fewer)
    assert len(texts[1]) < 2 * len(texts[0])
    calls = [len(re.findall(r"call void @loop", text)) for text in texts]
    assert calls[1] >= 2 * calls[0] - 12 > len(fewer)


def test_the_gradient_of_many_layers_is_jaxs():
    weights = [np.eye(8, dtype=np.float32) * (1 + k / 40) for k in range(12)]
    for a, b in zip(minijax.jit(lambda ws: network(minijax, ws, X))(weights),
                    jax.jit(lambda ws: network(jax, ws, X))(weights), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_a_short_kernel_is_one_function():
    assert not functions(assembly(lambda x: minijax.numpy.tanh(x) @ x.T, X))


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
    monkeypatch.setattr(outlined, "LONG", 12)

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
    monkeypatch.setattr(outlined, "LONG", 12)
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
