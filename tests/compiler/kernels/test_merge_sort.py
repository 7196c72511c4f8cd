"""Merge sort for a GPU: blocks sort tiles, launches merge runs; on the emulator, against NumPy."""

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.compiler.kernels import merge_sort
from minijax.compiler.loops import For, Launch, Store, walk
from minijax.compiler.targets import launches
from tests.compiler.targets.test_launches import kernel, run

DRAW = np.random.default_rng(0)


@pytest.fixture(autouse=True, params=[1 << 10, 1 << 16])
def small_blocks(request, monkeypatch):
    monkeypatch.setattr(launches, "WIDE", request.param)
    for name, value in (("MAX_TILE", 64), ("MIN_TILE", 16), ("MIN_TILED_ROW", 8)):
        monkeypatch.setattr(merge_sort, name, value)


def numbers(*shape):
    x = DRAW.integers(-9, 9, shape).astype(np.float32)
    x.flat[::7], x.flat[3:9:5] = -0.0, np.nan
    return x


@pytest.mark.parametrize("shape,axis", [((700,), 0), ((6, 100), 1), ((100, 6), 0), ((5, 7), 1),
                                        ((9, 1), 1), ((0, 4), 0), ((2, 30, 5), 1), ((3, 64), 1)])
def test_rows_and_columns_are_sorted(shape, axis):
    x = numbers(*shape)
    [found], _ = run(lambda x: jnp.sort(x, axis), x)
    np.testing.assert_array_equal(found, np.sort(x, axis))


@pytest.mark.parametrize("shape", [(700,), (6, 100), (5, 7)])
def test_of_equals_the_first_stands_first(shape):
    x = DRAW.integers(0, 4, shape)
    [found], _ = run(jnp.argsort, x)
    np.testing.assert_array_equal(found, np.argsort(x, -1, kind="stable"))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "bfloat16", "float16", "uint32"])
def test_numbers_of_each_kind_have_their_order(dtype):
    x = (DRAW.integers(0, 90, (3, 90)) * 3).astype(jnp.dtype(dtype))
    [found], _ = run(jnp.sort, x)
    np.testing.assert_array_equal(found, np.sort(x, -1))


def test_several_keys_decide_one_after_the_other():
    first, second = DRAW.integers(0, 4, 200), DRAW.integers(0, 9, 200).astype(np.float32)
    found, _ = run(lambda *x: jax.lax.sort(x, num_keys=2), first, second, np.arange(200))
    order = np.lexsort([second, first])
    for x, expected in zip(found, (first[order], second[order], order), strict=True):
        np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("k", [1, 5, 60])
def test_the_largest_are_those_of_each_block_and_then_of_these(k):
    x = DRAW.integers(0, 99, (2, 500)).astype(np.float32)
    [values, places], _ = run(lambda x: jax.lax.top_k(x, k), x)
    order = np.argsort(-x, -1, kind="stable")[:, :k]
    np.testing.assert_array_equal(places, order)
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, -1))


def test_where_all_are_alike_the_first_are_the_largest():
    [_, places], _ = run(lambda x: jax.lax.top_k(x, 3), np.full(500, -np.inf, np.float32))
    np.testing.assert_array_equal(places, [0, 1, 2])


@pytest.mark.parametrize("f", [jnp.sort, jnp.argsort, lambda x: jax.lax.top_k(x, 9)])
def test_nothing_large_is_one_blocks(monkeypatch, f):
    monkeypatch.undo()
    made = launches.scheduled(kernel(f, np.empty(1 << 20, np.float32)))
    assert len(made.body) <= 16 and max(each.blocks for each in made.body[:2]) >= 16
    for launch in made.body:
        assert isinstance(launch, Launch)
        assert launch.blocks > 1 or not any(
            isinstance(each, Store) for each in walk(launch.body)) or all(
                (each.trip_count or 0) < 1 << 12
                for each in walk(launch.body) if isinstance(each, For))
