"""Scatters for a GPU: by atomic operations, or sorted by target and reduced; on the emulator,
against the CPU.
"""

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.compiler.kernels import merge_sort, scattering
from minijax.compiler.loops import Atomic, walk
from minijax.compiler.targets import launches
from tests.compiler.targets.test_launches import kernel, run

DRAW = np.random.default_rng(0)
X = DRAW.standard_normal(50).astype(np.float32)
ROWS = DRAW.standard_normal((20, 7)).astype(np.float32)
PLACES = DRAW.integers(-60, 60, 400)
NEW = DRAW.standard_normal(400).astype(np.float32)
WINDOWS = DRAW.integers(0, 47, (30, 1)), DRAW.standard_normal((30, 3)).astype(np.float32)
OVERLAPPING = jax.lax.ScatterDimensionNumbers((1,), (), (0,))

PROGRAMS = {
    "added": (lambda x, i, u: x.at[i].add(u), X, PLACES, NEW),
    "added inside": (lambda x, i, u: x.at[i].add(u, mode="clip"), X, PLACES, NEW),
    "added to one place": (lambda x, i, u: x.at[i].add(u), X, PLACES * 0 + 7, NEW),
    "set, the last one stays": (lambda x, i, u: x.at[i].set(u), X, PLACES, NEW),
    "the largest": (lambda x, i, u: x.at[i].max(u), X, PLACES, NEW),
    "multiplied": (lambda x, i, u: x.at[i].multiply(1 + u / 9), X, PLACES, NEW),
    "whole rows": (lambda x, i: x.at[i].add(x[::-1]), ROWS, DRAW.integers(0, 9, 20)),
    "columns": (lambda x, i: x.at[:, i].add(x), ROWS, DRAW.integers(0, 7, 7)),
    "windows that overlap": (lambda x, *u: jax.lax.scatter_add(x, *u, OVERLAPPING), X, *WINDOWS),
    "set where windows overlap": (lambda x, *u: jax.lax.scatter(x, *u, OVERLAPPING), X, *WINDOWS),
    "one by one, complex": (lambda x, i: jnp.abs(jnp.ones(9, jnp.complex64).at[i].multiply(
        x * 1j + 1)), X, DRAW.integers(0, 9, 50)),
    "a derivative": (jax.grad(lambda x, i: (x[i] ** 2).sum()), X, DRAW.integers(0, 9, 50)),
    "counted": (lambda x, i: jnp.bincount(i, length=9), X, DRAW.integers(0, 9, 50)),
    "a row each": (jax.vmap(lambda x, i: jax.lax.dynamic_update_slice(x, jnp.ones(3), (i,))),
                   ROWS, np.arange(20) % 9),
    "sorted": (lambda x, i, u: x.at[i].add(u, indices_are_sorted=True), X, np.sort(PLACES % 50),
               NEW),
    "numbers that are whole": (lambda x, i: jnp.zeros(50, jnp.uint32).at[i].max(
        i.astype(jnp.uint32) % 7).at[i].add(3), X, PLACES),
    "the least": (lambda x, i: jnp.zeros(50, jnp.int32).at[i].min(-i), X, PLACES),
    "few of many": (lambda x, i: jnp.zeros(999).at[i].set(x[:9]), X, PLACES[:9]),
    "none of two to one place": (lambda x, i: x.at[i].add(1., unique_indices=True), X,
                                 np.arange(49, 0, -3)),
}


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("wide", [1 << 10, 1 << 16])
@pytest.mark.parametrize("name", PROGRAMS)
def test_updates_come_to_their_places(monkeypatch, name, wide, deterministic):
    monkeypatch.setattr(launches, "WIDE", wide)
    monkeypatch.setattr(scattering, "SEGMENT_STEP", 3 if wide < 1 << 16 else 32)
    for each, value in (("MAX_TILE", 64), ("MIN_TILE", 16), ("MIN_TILED_ROW", 8)):
        monkeypatch.setattr(merge_sort, each, value)
    f, *args = PROGRAMS[name]
    with jax.config.deterministic_ops(deterministic):
        [found], _ = run(f, *args)
    np.testing.assert_allclose(found, f(*map(jnp.asarray, args)), rtol=1e-5, atol=1e-5)


def sums(program, seeds=range(3)):
    """The bits of a program in several orders of the threads."""
    return {run(*program, seed=seed)[0][0].tobytes() for seed in seeds}


def test_sums_have_the_same_bits_each_time_where_that_is_asked_for(monkeypatch):
    monkeypatch.setattr(launches, "WIDE", 1 << 10)
    with jax.config.deterministic_ops(True):
        assert len(sums(PROGRAMS["added to one place"])) == 1
    assert len(sums(PROGRAMS["added to one place"])) > 1
    for name in ("sorted", "numbers that are whole", "set, the last one stays", "counted"):
        assert len(sums(PROGRAMS[name])) == 1


def atomics(f, *args):
    """The atomic operations, but those by which a sort counts digits."""
    made = launches.scheduled(kernel(f, *args))
    return [each.op for each in walk(made.body) if isinstance(each, Atomic)
            and each.buffer.role in ("output", "temp") and each.buffer.name != "counts"]


def test_atomic_operations_only_where_two_updates_may_meet():
    x, i, u = np.zeros(1 << 16, np.float32), np.zeros(1 << 16, np.int32), np.zeros(1 << 16)
    add = lambda **promise: lambda x, i, u: x.at[i].add(u, **promise)
    assert atomics(add(), x, i, u) == ["add"]
    assert not atomics(add(indices_are_sorted=True), x, i, u)
    assert not atomics(add(unique_indices=True), x, i, u)
    assert atomics(lambda x, i, u: x.at[i].set(u), x, i, u) == ["max"]
    assert not atomics(add(), x.astype(np.float16), i, u.astype(np.float16))
    with jax.config.deterministic_ops(True):
        assert not atomics(add(), x, i, u) and atomics(add(), i, i, i) == ["add"]


def test_many_updates_of_few_places_are_many_threads():
    def f(x, i):
        return jnp.zeros(100).at[i].add(x)
    n = 1 << 20
    with jax.config.deterministic_ops(True):
        made = launches.scheduled(kernel(f, np.empty(n, np.float32), np.empty(n, np.int32)))
    body = made.body
    assert len(body) < 12 and sum(each.blocks * each.threads >= n // 32 for each in body) > 5
