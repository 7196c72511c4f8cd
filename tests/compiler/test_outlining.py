"""Outlining: long kernels are many functions, equal loops are compiled once, nothing else changes.
"""

import re
from dataclasses import replace

import jax
import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax.compiler import cpu, index_set_splitting, llvm, outlining
from minijax.compiler.loops import Call, For, walk

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


def longest(monkeypatch, statements):
    """From here on no function is much longer."""
    for module in (outlining, llvm):
        monkeypatch.setattr(module, "MAX_FUNCTION", statements)


def functions(text):
    return re.findall(r"define internal void (@loop[\w.]*)\(", text)


def calls(text):
    """How many calls of such functions a kernel makes: one by one, or by tables."""
    tables = re.findall(r"^@calls\.\d+\.table = internal constant \[(\d+) x", text, re.MULTILINE)
    return sum(map(int, tables)) + len(
        re.findall(r"(?:call void|ptrtoint \(ptr) @loop[.\d]+\(ptr %(?!captures)", text))


@pytest.mark.parametrize("program", [in_a_loop, scalars_between])
@pytest.mark.parametrize("most", [12, 60])
def test_a_long_kernel_computes_what_it_would_in_one_piece(monkeypatch, program, most):
    whole, theirs = minijax.jit(lambda x: program(minijax, x)), jax.jit(lambda x: program(jax, x))
    longest(monkeypatch, 10 ** 9)
    assert not functions(assembly(whole, X))
    wanted = minijax.tree.leaves(whole(X))
    longest(monkeypatch, most)
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
    assert len(texts[1]) < 1.2 * len(texts[0])
    assert calls(texts[1]) >= 2 * calls(texts[0]) - 12 > len(fewer)


def test_the_gradient_of_many_layers_is_jaxs():
    weights = [np.eye(8, dtype=np.float32) * (1 + k / 40) for k in range(12)]
    for a, b in zip(minijax.jit(lambda ws: network(minijax, ws, X))(weights),
                    jax.jit(lambda ws: network(jax, ws, X))(weights), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def step(lib, params, slopes):
    return lib.tree.map(lambda p, g: p - 0.1 * g / (lib.numpy.sqrt(g) + 1e-8), params, slopes)


def leaves(n):
    return [np.linspace(1, 2, 4 + k % 7, dtype=np.float32) for k in range(n)]


@pytest.mark.parametrize("n", [70, 140])
def test_loops_over_arrays_of_equal_shapes_are_one_function(n):
    text = assembly(lambda p, g: step(minijax, p, g), leaves(n), leaves(n))
    assert len(functions(text)) == 7
    assert calls(text) == n


def test_many_leaves_are_updated_as_in_jax():
    params = leaves(60)
    ours = minijax.jit(lambda p, g: step(minijax, p, g))(params, params)
    theirs = jax.jit(lambda p, g: step(jax, p, g))(params, params)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


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
    assert functions(pairs(4)) == functions(pairs(12))


def test_a_short_kernel_is_one_function():
    assert not functions(assembly(lambda x: minijax.numpy.tanh(x) @ x.T, X))


@pytest.mark.parametrize("program", [
    lambda np, x: np.concatenate([x, x[::-1]]), lambda np, x: np.roll(x, 300_001),
    lambda np, x: np.pad(x, (999_999, 1_000_001))], ids=["concatenate", "roll", "pad"])
def test_every_part_of_a_split_loop_is_shared_between_threads(program):
    """A loop split at its conditions is several, of which all but the first start late."""
    x = np.linspace(-1, 1, 1_000_003, dtype=np.float32)
    f = minijax.jit(lambda x: program(minijax.numpy, x))
    np.testing.assert_array_equal(f(x), program(np, x))
    body = index_set_splitting.split_loops(f.lower(x)._lowered.kernel.body)
    loops = [each for each in body if isinstance(each, For)]
    shared = outlining.shared_loops(replace(f.lower(x)._lowered.kernel, body=body))
    assert len(loops) > 1 and shared.keys() == set(loops)


@pytest.mark.parametrize("number", [0, 1], ids=["by images", "by places"])
def test_the_products_of_a_convolution_are_shared_between_threads(number):
    """Their operands are only read, and each writes its own part of the result."""
    def f(x, w):
        return jnp.sum(minijax.lax.conv_general_dilated(
            x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))
    x, w = np.ones((8, 16, 16, 32), np.float32), np.ones((3, 3, 32, 32), np.float32)
    kernel = minijax.jit(minijax.grad(f, number)).lower(x, w)._lowered.kernel
    calls, shared = (sum(isinstance(each, Call) for each in walk(body))
                     for body in (kernel.body, outlining.shared_loops(kernel)))
    assert calls and shared == calls


# -- parts of a kernel -----------------------------------------------------------------------------


def lengths(text):
    """The lines of each function."""
    return [part.count("\n") for part in text.split("\ndefine ")]


def test_no_function_grows_with_the_number_of_layers():
    few, more = (assembly(lambda ws: network(minijax, ws, X), [np.eye(8, dtype=np.float32)] * n)
                 for n in (24, 96))
    assert calls(more) > 3 * calls(few)
    assert max(lengths(more)) <= 1.2 * max(lengths(few))


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
