"""Equal nests: with duplicates and without, a program has the same loops, and the same results."""

import functools

import jax
import numpy as np
import pytest

import minijax
from minijax.compiler import equal_nests, llvm, schedule
from minijax.compiler.duplicates import expanded
from minijax.compiler.interrupts import line_of, sites
from minijax.compiler.loops import Duplicate, For
from minijax.compiler.text import kernel_text
from tests.checker import each_nest_by_itself, loops_of

X = np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8)
IMAGE = np.linspace(-1, 1, 2 * 6 * 6 * 4, dtype=np.float32).reshape(2, 6, 6, 4)
FILTER = np.linspace(-.1, .1, 3 * 3 * 4 * 4, dtype=np.float32).reshape(3, 3, 4, 4)


def normalized(np, x):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


def attention(lib, x):
    scores = lib.nn.softmax(x @ x.T / 3, axis=-1)
    return normalized(lib.numpy, x + scores @ x)


def block(lib, x):
    y = lib.lax.conv_general_dilated(lib.nn.relu(x), FILTER, (1, 1), "SAME",
                                     dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return x + y / lib.numpy.sqrt(y.var((0, 1, 2)) + 1e-5)


def repeated(f, n=5):
    return lambda lib, x: functools.reduce(lambda y, _: f(lib, y), range(n), x)


def gradient_of(f):
    return lambda lib, x: lib.grad(lambda x: (f(lib, x) ** 2).sum())(x)


def adam(lib, grads):
    first = lib.tree.map(lambda g: .1 * g, grads)
    second = lib.tree.map(lambda g: .001 * g * g, grads)
    return lib.tree.map(lambda m, v: m / (lib.numpy.sqrt(v) + 1e-8), first, second)


def in_turn(f, n=4):
    return lambda lib, x: functools.reduce(lambda y, k: f(lib.numpy, y, k), range(n), x)


PROGRAMS = {
    "attention": (repeated(attention), X),
    "gradient of attention": (gradient_of(repeated(attention)), X),
    "convolutions": (repeated(block), IMAGE),
    "gradient of convolutions": (gradient_of(repeated(block)), IMAGE),
    "Adam": (adam, [X[0, :3 + k % 3] * k for k in range(1, 9)]),
    "transforms": (repeated(lambda lib, x: lib.numpy.fft.ifft(lib.numpy.fft.fft(x) * 2).real), X),
    "sorts": (repeated(lambda lib, x: lib.numpy.sort(lib.numpy.sin(x), axis=0)), X),
    "constants that differ": (in_turn(lambda np, x, k: np.exp(x - x.max(0) - k)), X),
    "shifts that differ": (in_turn(lambda np, x, k: np.roll(x, k, 0) - x.max(0)), X),
    "axes that differ": (in_turn(lambda np, x, k: np.cumsum(x, k % 2)), X),
    "results inside": (lambda lib, x: [y for k in range(3) for y in (
        x + k, lib.nn.softmax(x + k), (x + k).max(0))], X),
    "in place": (repeated(lambda lib, x: x.at[1].set(x[0] * 2).at[:, 2].add(1.)), X),
    "a scalar for all": (lambda lib, x: in_turn(
        lambda np, y, k: np.tanh(y * x[0, 0]) - y.max(0))(lib, x), X),
    "totals": (in_turn(lambda np, x, k: x / np.sqrt((x * x).sum())), X),
    "loops": (repeated(lambda lib, x: lib.lax.fori_loop(0, 3, lambda i, y: y + x * i, x)), X),
}


def kernels(program, x, on_gpu=False):
    """The loops of a program, by duplicates, and with each nest lowered by itself."""
    lowered = minijax.jit(lambda x: program(minijax, x)).trace(x).lower()._lowered.program
    made = schedule.lower_to_kernel(lowered, "f", on_gpu)
    with each_nest_by_itself():
        return made, schedule.lower_to_kernel(lowered, "f", on_gpu)


@pytest.mark.parametrize("on_gpu", [False, True], ids=["CPU", "GPU"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_loops_are_those_of_a_program_whose_nests_are_lowered_one_by_one(name, on_gpu):
    made, apart = kernels(*PROGRAMS[name], on_gpu)
    assert not any(isinstance(x, Duplicate) for x in expanded(made).body)
    assert loops_of(made) == loops_of(apart)


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_jaxs(name):
    program, x = PROGRAMS[name]
    ours = minijax.tree.leaves(minijax.jit(lambda x: program(minijax, x))(x))
    theirs = jax.tree.leaves(jax.jit(lambda x: program(jax, x))(x))
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("name", ["attention", "gradient of convolutions", "Adam"])
def test_layers_are_duplicates_with_the_names_of_their_own_variables(name):
    made, apart = kernels(*PROGRAMS[name])
    assert sum(isinstance(x, Duplicate) for x in made.body) > len(made.body) // 3
    ours, theirs = ([x for x in kernel_text(kernel).splitlines() if "#" not in x]
                    for kernel in (expanded(made), apart))
    assert ours == theirs


@pytest.mark.parametrize("name", ["attention", "gradient of attention", "convolutions"])
def test_an_interrupt_in_a_duplicate_names_its_line(name):
    shared, apart = (llvm.transformed(kernel, once) for kernel, once in zip(
        kernels(*PROGRAMS[name]), (True, False), strict=True))
    lines = [(line_of(shared, sites(shared)[x]), line_of(apart, sites(apart)[y]))
             for x, y in zip(shared.body, apart.body, strict=True) if isinstance(y, For)]
    assert all(ours == theirs and ours for ours, theirs in lines)


@pytest.mark.parametrize("name,forgotten", [
    ("constants that differ", "value"), ("axes that differ", "canonical")])
def test_what_the_key_forgets_is_seen_in_the_loops(name, forgotten, monkeypatch):
    if forgotten == "canonical":
        monkeypatch.setattr(equal_nests, "canonical", lambda x: None)
    else:
        honest = getattr(equal_nests.NestKey, forgotten)
        monkeypatch.setattr(equal_nests.NestKey, forgotten, lambda *args: honest(*args) and None)
    made, apart = kernels(*PROGRAMS[name])
    assert loops_of(made) != loops_of(apart)


def test_many_calls_in_a_row_are_one_table():
    """Of functions of few and of many buffers: arguments, constants and temps."""
    def program(lib, xs):
        sizes = [lib.numpy.tanh(x) * table[:x.size] for x in xs]
        return [y + y[::-1] * x + x[::-1] for x, y in zip(xs, sizes, strict=True)]
    table = np.linspace(1, 2, 60, dtype=np.float32)
    xs = [np.linspace(0, 1, 50 + k % 3, dtype=np.float32) for k in range(1, 42)]
    text = llvm.assembly(minijax.jit(lambda xs: program(minijax, xs)).lower(xs)._lowered.compact)
    assert "@calls.1.table" in text and text.count("ptr %captures, i64 0)") < 20
    for a, b in zip(minijax.jit(lambda xs: program(minijax, xs))(xs), program(jax, xs),
                    strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
