"""Scatters for a GPU: sorted by target, then reduced; on the emulator, against the CPU."""

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.compiler.kernels import merge_sort, scattering
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
    "none of two to one place": (lambda x, i: x.at[i].add(1., unique_indices=True), X,
                                 np.arange(49, 0, -3)),
}


@pytest.mark.parametrize("wide", [1 << 10, 1 << 16])
@pytest.mark.parametrize("name", PROGRAMS)
def test_updates_come_to_their_places(monkeypatch, name, wide):
    monkeypatch.setattr(launches, "WIDE", wide)
    monkeypatch.setattr(scattering, "SEGMENT_STEP", 3 if wide < 1 << 16 else 32)
    for each, value in (("MAX_TILE", 64), ("MIN_TILE", 16), ("MIN_TILED_ROW", 8)):
        monkeypatch.setattr(merge_sort, each, value)
    f, *args = PROGRAMS[name]
    [found], _ = run(f, *args)
    np.testing.assert_allclose(found, f(*map(jnp.asarray, args)), rtol=1e-5, atol=1e-5)


def test_sums_at_one_place_have_the_same_bits_in_whatever_order_blocks_run(monkeypatch):
    monkeypatch.setattr(launches, "WIDE", 1 << 10)
    first, *others = [run(*PROGRAMS["added to one place"], seed=seed)[0][0] for seed in range(3)]
    for other in others:
        np.testing.assert_array_equal(first, other)


def test_many_updates_of_few_places_are_many_threads():
    def f(x, i):
        return jnp.zeros(100).at[i].add(x)
    n = 1 << 20
    body = launches.scheduled(kernel(f, np.empty(n, np.float32), np.empty(n, np.int32))).body
    assert len(body) < 20 and sum(each.blocks * each.threads >= n for each in body) > 10
