"""Function splitting: no function grows with the program, and nothing else changes."""

import functools

import jax
import numpy as np
import pytest

import minijax
from minijax.compiler import function_splitting
from minijax.compiler.loops import For, walk
from tests.generated.programs import generate
from tests.generated.running import check
from tests.compiler.test_outlining import X, assembly, longest, network

def lengths(text):
    """The lines of each function."""
    return [part.count("\n") for part in text.split("\ndefine ")]


# -- kernels ---------------------------------------------------------------------------------------


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


# -- loops -----------------------------------------------------------------------------------------


def short(monkeypatch, most=1, part=3):
    """Loops are cut that have more statements, into parts of not many more."""
    monkeypatch.setattr(function_splitting, "MIN_SPLIT", most)
    monkeypatch.setattr(function_splitting, "MAX_PART", part)


def line(lib, size, x):
    """The gradient of so many operations, one after the other."""
    kinds = (lambda x: x * 0.5, lib.numpy.tanh, lambda x: x + 0.5,
             lambda x: lib.numpy.where(x > 0, x, -x), lambda x: 1 - x)
    return lib.grad(lambda x: functools.reduce(
        lambda x, k: kinds[k % 5](x), range(size), x).sum())(x)


def kernel(f, *args):
    return minijax.jit(f).lower(*args)._lowered.kernel


@pytest.mark.parametrize("size", [1, 15, 16, 1000, 1009, 70_000])
def test_a_loop_that_is_cut_gives_the_same_bits(monkeypatch, size):
    x = np.linspace(-1, 1, size, dtype=np.float32)
    f = functools.partial(line, minijax, 30)
    whole = np.asarray(minijax.jit(f)(x))
    monkeypatch.setattr(function_splitting, "STRIP_BYTES", 1 << 12)
    short(monkeypatch, 1, 20)
    if size > 15:
        assert sum(isinstance(each, For) for each in walk(kernel(f, x).body)) > 4
    minijax.clear_caches()
    np.testing.assert_array_equal(minijax.jit(f)(x), whole)


def test_functions_and_what_is_handed_over_stay_short_however_long_the_line(monkeypatch):
    short(monkeypatch, 500, 200)
    texts = {size: assembly(functools.partial(line, minijax, size), X) for size in (400, 800)}
    few, more = map(lengths, texts.values())
    assert len(few) < len(more) < 2.2 * len(few) and max(more) < 1.1 * max(few)
    assert len(texts[800]) < 2.2 * len(texts[400])
    for size in texts:
        temps = kernel(functools.partial(line, minijax, size), np.zeros(1 << 20, np.float32)).temps
        assert sum(x.nbytes for x in temps) <= 2 * function_splitting.STRIP_BYTES


def test_sums_and_what_is_long_before_them_go_in_blocks_too(monkeypatch):
    x = np.linspace(-1, 1, 5000, dtype=np.float32)

    def f(lib, x):
        y = lib.numpy.cos(lib.numpy.sin(x) * x + lib.numpy.exp(x))
        return lib.numpy.sum(y * y), lib.numpy.max(y - x)
    short(monkeypatch)
    ours = kernel(functools.partial(f, minijax), x)
    assert any(x.name.startswith("handed") for x in ours.temps)
    for a, b in zip(minijax.jit(functools.partial(f, minijax))(x), f(jax, x), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


@pytest.mark.parametrize("seed", range(24))
def test_programs_whose_loops_are_all_cut_give_the_same_numbers(monkeypatch, seed):
    short(monkeypatch)
    assert check(generate(seed), "eager") is None


@pytest.mark.of_tests
def test_the_law_finds_a_number_that_is_taken_from_the_row_of_another(monkeypatch):
    short(monkeypatch)
    honest = function_splitting.substituted

    def swapped(statement, names):
        return honest(statement, dict(zip(names, [*list(names.values())[:1], *list(
            names.values())[:0:-1]], strict=True)))
    monkeypatch.setattr(function_splitting, "substituted", swapped)
    assert any(check(generate(seed), "eager") for seed in range(24))
