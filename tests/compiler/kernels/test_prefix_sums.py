"""Prefix sums for a GPU, in parts; on the emulator, against NumPy."""

from dataclasses import replace

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.compiler.kernels import prefix_sums
from minijax.compiler.loops import BOOL, Atomic, Constant, For, Launch, Shuffle, While, walk
from minijax.compiler.targets import launches, look_back
from minijax.compiler.targets.emulator import Emulator, Refused
from minijax.compiler.targets.programs import Memory, Program, emulate
from tests.compiler.targets.ptx_machine import run_ptx
from tests.compiler.targets.test_emulator import rewritten
from tests.compiler.targets.test_launches import kernel, run

DRAW = np.random.default_rng(0)


@pytest.fixture(params=[(256, 1 << 10), (256, 1 << 16), (1 << 13, 1 << 10)])
def sizes(request, monkeypatch):
    monkeypatch.setattr(prefix_sums, "ROW", request.param[0])
    monkeypatch.setattr(launches, "WIDE", request.param[1])


@pytest.mark.parametrize("op", ["add", "minimum"])
@pytest.mark.parametrize("shape,axis", [((1200,), 0), ((3, 500), 1), ((300, 6), 0), ((3, 50, 9), 1),
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
    x = DRAW.standard_normal(1000).astype(np.float32)
    first, *others = [run(jnp.cumsum, x, seed=seed)[0][0] for seed in range(3)]
    for other in others:
        np.testing.assert_array_equal(first, other)


def test_a_vector_takes_one_launch_whether_long_or_short():
    [launch] = launches.scheduled(kernel(jnp.cumsum, np.empty(1 << 22, np.float32))).body
    assert launch.blocks == 512
    [launch] = launches.scheduled(kernel(lambda x: jnp.cumsum(x, 1), np.empty(
        (4096, 4096), np.float32))).body
    assert launch.blocks == 4096 and any(isinstance(each, Shuffle) for each in walk(launch.body))


def test_a_loop_of_the_host_launches_scans_and_sorts(monkeypatch):
    for module, name, value in ((prefix_sums, "ROW", 64), (launches, "WIDE", 64)):
        monkeypatch.setattr(module, name, value)
    x = DRAW.integers(-3, 4, 500).astype(np.float32)
    f = lambda x: jax.lax.fori_loop(0, 3, lambda i, y: jnp.cumsum(y) % 17 + jnp.sort(y), x)
    [found], made = run(f, x)
    np.testing.assert_array_equal(found, jax.jit(f)(x))
    [loop] = (each for each in made.body if isinstance(each, For))
    assert sum(isinstance(each, Launch) and look_back.waits(each) for each in loop.body) == 1


@pytest.fixture
def many_blocks(monkeypatch):
    """A scheduled sum of 20 blocks in two rows and six groups, and its argument."""
    for module, name, value in ((prefix_sums, "ROW", 64), (launches, "WIDE", 64),
                                (look_back, "GROUP", 4)):
        monkeypatch.setattr(module, name, value)
    x = DRAW.standard_normal((2, 640)).astype(np.float32)
    made = launches.scheduled(kernel(lambda x: jnp.cumsum(x, 1), x))
    assert [each.blocks for each in made.body] == [20]
    return made, x


def test_blocks_that_look_back_add_in_one_order_in_every_launch(many_blocks):
    made, x = many_blocks
    device = Emulator(seed=1)
    program, given = Program(made, device), Memory.of(device, x)
    first, *others = [program(given)[0].read(x.shape, x.dtype) for _ in range(3)]
    np.testing.assert_allclose(first, np.cumsum(x.astype(float), 1), rtol=1e-4, atol=1e-4)
    for other in (*others, *run_ptx(made, [x])):
        np.testing.assert_array_equal(first, other)


def unordered(s):
    return replace(s, ordered=0) if isinstance(s, Atomic) else s


def not_awaited(s):
    return replace(s, condition=(), test=Constant(np.False_, BOOL)) if isinstance(s, While) else s


def never_raised(s):
    return replace(s, value=Constant(np.uint64(0), s.value.dtype)) if (
        isinstance(s, Atomic) and s.op == "max") else s


@pytest.mark.parametrize("change", [unordered, not_awaited, never_raised])
def test_blocks_that_look_back_without_waiting_are_refused(many_blocks, change):
    made, x = many_blocks
    with pytest.raises(Refused, match="a race for totals|all blocks wait|has been stored"):
        emulate(rewritten(made, lambda s: (change(s),)), [x])


@pytest.mark.parametrize("n", [255, 1024, 1025, 2300])
def test_a_block_has_several_chunks_of_a_row_in_flight(n):
    x = DRAW.integers(-9, 9, (2, n)).astype(np.float32)
    [sums, least], _ = run(lambda x: (jnp.cumsum(x, 1), jax.lax.cummin(x, 1, reverse=True)), x)
    np.testing.assert_array_equal(sums, np.cumsum(x, 1))
    np.testing.assert_array_equal(least, np.minimum.accumulate(x[:, ::-1], 1)[:, ::-1])
