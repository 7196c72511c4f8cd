"""Prefix sums for a GPU, in parts; on the emulator, against NumPy."""

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.compiler.kernels import prefix_sums
from minijax.compiler.loops import Shuffle, walk
from minijax.compiler.targets import launches
from tests.compiler.targets.test_launches import kernel, run

DRAW = np.random.default_rng(0)


@pytest.fixture(params=[(64, 1 << 10), (64, 1 << 16), (1 << 13, 1 << 10)])
def sizes(request, monkeypatch):
    monkeypatch.setattr(prefix_sums, "ROW", request.param[0])
    monkeypatch.setattr(launches, "WIDE", request.param[1])


@pytest.mark.parametrize("op", ["add", "minimum"])
@pytest.mark.parametrize("shape,axis", [((3000,), 0), ((6, 500), 1), ((300, 6), 0), ((3, 50, 9), 1),
                                        ((7,), 0), ((65, 33), 1)])
def test_each_step_of_a_reduction_is_kept(sizes, shape, axis, op):
    x = DRAW.uniform(0.9, 1.1, shape).astype(np.float32)
    f = getattr(jax.lax, {"add": "cumsum",
                          "minimum": "cummin"}[op])
    [found, back], _ = run(lambda x: (f(x, axis), f(x, axis, reverse=True)), x)
    steps = getattr(np, op).accumulate
    np.testing.assert_allclose(found, steps(x.astype(float), axis), rtol=1e-5)
    back = np.flip(back, axis)
    np.testing.assert_allclose(back, steps(np.flip(x, axis).astype(float), axis), rtol=1e-5)


@pytest.mark.parametrize("dtype", ["int8", "uint32", "bfloat16"])
def test_numbers_are_added_up_as_on_the_cpu(sizes, dtype):
    x = DRAW.integers(0, 3, (2, 700)).astype(jnp.dtype(dtype))
    [found], _ = run(lambda x: jax.lax.cumsum(x, 1), x)
    np.testing.assert_array_equal(found, jax.lax.cumsum(x, 1))


def test_the_same_bits_in_whatever_order_blocks_run(sizes):
    x = DRAW.standard_normal(3000).astype(np.float32)
    first, *others = [run(jnp.cumsum, x, seed=seed)[0][0] for seed in range(3)]
    for other in others:
        np.testing.assert_array_equal(first, other)


def test_a_long_vector_takes_two_launches_and_a_row_one():
    parts, rest = launches.scheduled(kernel(jnp.cumsum, np.empty(1 << 22, np.float32))).body
    assert parts.blocks == rest.blocks == 512
    [launch] = launches.scheduled(kernel(lambda x: jnp.cumsum(x, 1), np.empty(
        (4096, 4096), np.float32))).body
    assert launch.blocks == 4096 and any(isinstance(each, Shuffle) for each in walk(launch.body))


@pytest.mark.parametrize("n", [255, 1024, 1025, 2300])
def test_a_block_has_several_chunks_of_a_row_in_flight(n):
    x = DRAW.integers(-9, 9, (2, n)).astype(np.float32)
    [sums, least], _ = run(lambda x: (jnp.cumsum(x, 1), jax.lax.cummin(x, 1, reverse=True)), x)
    np.testing.assert_array_equal(sums, np.cumsum(x, 1))
    np.testing.assert_array_equal(least, np.minimum.accumulate(x[:, ::-1], 1)[:, ::-1])
