"""Radix sort for a GPU: in a block, and in passes of all blocks; on the emulator, against NumPy."""

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.compiler.kernels import radix_sort
from minijax.compiler.loops import Atomic, accesses, walk
from minijax.compiler.targets import launches
from tests.compiler.kernels.test_merge_sort import (  # noqa: F401  here with small tiles
    test_numbers_of_each_kind_have_their_order, test_several_keys_decide_one_after_the_other)
from tests.compiler.targets.ptx_machine import run_ptx
from tests.compiler.targets.test_launches import kernel, run

DRAW = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    for name, value in (("TILE_BYTES", 1 << 10), ("MIN_ROW", 8), ("MIN_TILE", 64)):
        monkeypatch.setattr(radix_sort, name, value)
    monkeypatch.setattr(launches, "WIDE", 1 << 10)


def numbers(*shape):
    x = DRAW.standard_normal(shape).astype(np.float32)
    x.flat[::7], x.flat[3:9:5], x.flat[5:99:9] = -0.0, np.nan, np.inf
    return x


@pytest.mark.parametrize("shape, axis", [
    ((1,), 0), ((512,), 0), ((513,), 0), ((2, 600), 1), ((5, 30), 1), ((60, 2), 0)])
def test_rows_and_columns_are_sorted(shape, axis):
    x = numbers(*shape)
    [found], _ = run(lambda x: jnp.sort(x, axis), x)
    np.testing.assert_array_equal(found, np.sort(x, axis))


@pytest.mark.parametrize("n", [90, 300])
def test_of_equals_the_first_stands_first(n):
    x = DRAW.integers(-4, 4, (2, n))
    [found], _ = run(jnp.argsort, x)
    np.testing.assert_array_equal(found, np.argsort(x, -1, kind="stable"))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "bool"])
def test_numbers_of_a_byte_are_their_digit_as_it_is(dtype):
    x = DRAW.integers(-128, 128, 600).astype(dtype)
    np.testing.assert_array_equal(run(jnp.sort, x)[0][0], np.sort(x))


def test_blocks_look_back_over_all_that_are_not_done_in_ptx_too():
    x = DRAW.integers(0, 99, 600).astype(np.uint8)
    source = kernel(jnp.argsort, x)
    [found] = run_ptx(launches.scheduled(source), [x])
    np.testing.assert_array_equal(found, np.argsort(x, kind="stable"))


def test_numbers_of_64_bits_take_twice_as_many_passes():
    with jax.enable_x64():
        x = DRAW.standard_normal(200) * 1e200
        np.testing.assert_array_equal(run(jnp.sort, x)[0][0], np.sort(x))


def test_a_long_row_takes_four_passes_and_a_short_one_a_launch(monkeypatch):
    monkeypatch.undo()
    made = launches.scheduled(kernel(jnp.sort, np.empty(1 << 24, np.float32)))
    assert len(made.body) == 4 + 2 and sum(
        isinstance(each, Atomic) and each.buffer.role == "shared" for each in walk(made.body)) == 8
    [rows] = launches.scheduled(kernel(jnp.sort, np.empty((4096, 4096), np.float32))).body
    assert rows.blocks == 4096 and {x.role for x in accesses(walk(rows.body))} == {
        "input", "output", "shared"}
