"""Loops as launches: the emulator, which refuses what GPUs would get wrong, gives their numbers."""


import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.compiler.builder import Builder
from minijax.compiler.loops import (Barrier, For, Launch, Shuffle, Store, accessed, accesses,
                                    walk)
from minijax.compiler.schedule import lower_to_kernel
from minijax.compiler.targets import launches, ptx
from minijax.compiler.targets.emulator import Emulator
from minijax.compiler.targets.programs import Memory, Program, emulate
from minijax.compiler.targets.thread_block import has_own_part
from tests import running_text

X = np.linspace(-2, 3, 6000, dtype=np.float32).reshape(60, 100)


def kernel(f, *args):
    """The loops that are made for a GPU."""
    lowered = jax.jit(f).lower(*args)._lowered
    return lower_to_kernel(lowered.jaxpr, lowered.name, on_gpu=True)


def run(f, *args, seed=0):
    """The results of a function on the emulator, and its launches."""
    source = kernel(f, *args)
    made = launches.scheduled(source)
    given = [running_text.laid_out(np.asarray(x), buffer)
             for x, buffer in zip(jax.tree.leaves(args), source.inputs, strict=True)]
    return emulate(made, given, seed), made


PROGRAMS = {
    "a chain": lambda x: jnp.tanh(x) * 2 + 1,
    "a sum over all": jnp.sum,
    "a maximum down the columns": lambda x: x.max(0),
    "a place along the rows": lambda x: x.argmax(1),
    "softmax of rows": lambda x: jax.nn.softmax(x, -1),
    "softmax of columns": lambda x: jax.nn.softmax(x, 0),
    "the normal form of a layer": lambda x: (x - x.mean(1)[:, None]) / x.std(1)[:, None],
    "a transpose": lambda x: x.T + 1,
    "a running total": lambda x: jnp.cumsum(x.ravel()) / 6000,
    "a sort": lambda x: jnp.sort(x, 1),
    "rows by their number": lambda x: x[jnp.arange(59, -1, -2)],
    "what is scattered": lambda x: jnp.zeros(9).at[jnp.arange(60) % 9].add(x[:, 0]),
    "random numbers": lambda x: jax.random.normal(jax.random.key(0), (500,)) + x[0, 0],
    "a loop": lambda x: jax.lax.fori_loop(0, 5, lambda i, y: jnp.sin(y) + y.sum(), x),
    "a loop until": lambda x: jax.lax.while_loop(
        lambda y: y.sum() < 1e5, lambda y: y * 2 + 1, x),
    "a branch": lambda x: jax.lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x),
    "a scan": lambda x: jax.lax.scan(lambda c, row: (c + row, c.sum()), x[0], x),
    "a product": lambda x: jnp.tanh(x @ x.T) + 1,
    "a gradient": jax.grad(lambda x: (jnp.tanh(x[:, :50] @ x[:50]) ** 2).mean()),
}


@pytest.mark.parametrize("wide", [64, launches.WIDE])
@pytest.mark.parametrize("name", PROGRAMS)
def test_launches_give_the_numbers_of_the_loops(monkeypatch, name, wide):
    monkeypatch.setattr(launches, "WIDE", wide)
    found, _ = run(PROGRAMS[name], X)
    for a, b in zip(found, jax.tree.leaves(PROGRAMS[name](X)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("f", [jnp.sum, lambda x: jax.nn.softmax(x, -1), lambda x: x.max(0)])
def test_the_same_bits_in_whatever_order_blocks_run(f):
    first, *others = [run(f, X, seed=seed)[0][0] for seed in range(3)]
    for other in others:
        np.testing.assert_array_equal(first, other)


def test_a_thread_takes_a_few_turns_and_a_block_a_row():
    wide = np.zeros((4000, 1024), np.float32)
    [chain] = launches.scheduled(kernel(lambda x: jnp.tanh(x) + 1, wide)).body
    assert chain.blocks * chain.threads * launches.UNROLLED == wide.size and not any(
        isinstance(each, For | Barrier) for each in walk(chain.body))
    [rows] = launches.scheduled(kernel(lambda x: jax.nn.softmax(x, -1), wide)).body
    assert rows.blocks == 4000 and any(isinstance(each, Shuffle) for each in walk(rows.body))


@pytest.mark.parametrize("shape", [(8, 16, 300), (8, 300, 20)])
def test_a_tile_is_as_long_along_one_axis_as_the_other_is_short(shape):
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    [found], made = run(lambda x: x.transpose(0, 2, 1) + 1, x)
    np.testing.assert_array_equal(found, x.transpose(0, 2, 1) + 1)
    [launch] = made.body
    assert any(isinstance(each, Barrier) for each in launch.body)
    assert launch.blocks * 1024 <= 2 * x.size


def test_a_block_reduces_some_rows_whose_results_are_reduced():
    wide = np.zeros((4000, 1024), np.float32)
    [made] = launches.scheduled(kernel(lambda x: x.max(1).sum(), wide)).body
    assert made.blocks >= 250 and made.threads == launches.THREADS


def test_rows_whose_scratch_is_used_again_are_blocks_still():
    def weights_and_their_terms(x):
        terms = jnp.exp(x - x.max(-1, keepdims=True))
        return (terms / terms.sum(-1, keepdims=True)) @ jnp.ones((256, 4)), terms.T * 2
    x = np.linspace(-2, 3, 96 * 1024, dtype=np.float32).reshape(2, 192, 256)
    found, made = run(jax.vmap(weights_and_their_terms), x)
    assert all(each.blocks == x.size // 256 for each in walk(made.body)
               if isinstance(each, Launch) and any(isinstance(y, Shuffle) for y in walk(each.body)))
    for a, b in zip(found, jax.vmap(weights_and_their_terms)(x), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


@pytest.mark.parametrize("f, count", [
    (jnp.sum, 1), (jnp.argmax, 2), (lambda x: jnp.tanh(x / jnp.sum(x)).max(), 2)])
def test_what_one_block_does_at_the_end_is_done_by_the_last_one(f, count):
    x = np.linspace(-2, 3, 1 << 20, dtype=np.float32)
    for seed in range(3):
        [found], made = run(f, x, seed=seed)
        np.testing.assert_allclose(found, f(x), rtol=1e-4)
    assert [each.blocks for each in made.body] == [1024] * count
    assert [x.value for x in made.constants if x.name == "turns"] == [0] * count


def test_the_last_block_takes_no_long_launch(monkeypatch):
    monkeypatch.setattr(launches, "MAX_JOINED", 10)
    parts, rest = launches.scheduled(kernel(jnp.sum, np.zeros(1 << 20, np.float32))).body
    assert parts.blocks == 1024 and rest.blocks == 1


@pytest.mark.parametrize("n", [1, 70, 1024, 1030, 5000])
@pytest.mark.parametrize("op", ["cumsum", "cummax", "cumprod"])
def test_a_scan_takes_whole_turns_and_a_last_one(op, n):
    x = np.random.default_rng(0).integers(1, 3, (2, n)).astype(np.int32)
    for reverse in (False, True):
        f = lambda x, reverse=reverse: getattr(jax.lax, op)(x, axis=1, reverse=reverse)
        np.testing.assert_array_equal(run(f, x)[0][0], f(x))


def test_borrowed_memory_is_aligned():
    device, x = Emulator(), np.arange(9, dtype=np.float32)
    owner = Memory.of(device, x)
    for start in (0, 1, 4):
        memory = Memory.borrowed(device, owner.address + 4 * start, 16, owner)
        assert memory.address % 16 == 0 and (memory.owner is None) is (start == 1)
        np.testing.assert_array_equal(memory.read((4,), np.float32), x[start:start + 4])


def test_a_program_runs_again_with_the_same_counters():
    x = np.arange(1 << 17, dtype=np.float32)
    device = Emulator()
    program = Program(launches.scheduled(kernel(lambda x: (x % 2).sum(), x)), device)
    assert len(program.constants) == 1
    for _ in range(3):
        [out] = program(Memory.of(device, x))
        assert out.read((), np.float32) == 1 << 16


def test_scratch_of_a_block_that_is_done_with_is_taken_again(monkeypatch):
    def normal_form(x):
        centred = x - x.mean(1, keepdims=True)
        return centred / jnp.sqrt((centred ** 2).mean(1, keepdims=True) + 1e-5)
    f = jax.grad(lambda x: (normal_form(x) ** 3).sum())
    monkeypatch.setattr(launches, "MIN_ITERATIONS", 1)
    monkeypatch.setattr(launches, "WIDE", 64)
    x = np.linspace(-2, 3, 64 * 300, dtype=np.float32).reshape(64, 300) ** 2
    [found], made = run(f, x)
    np.testing.assert_allclose(found, f(x), rtol=1e-3, atol=1e-2)
    [launch] = made.body
    rows = {y for y in accesses(walk(launch.body)) if y.role == "shared" and y.size == 300}
    assert len(rows) == 2 and not made.temps


def test_scratch_is_taken_where_each_iteration_has_loaded_before_it_stores():
    def hosts(second):
        b = Builder()
        x, y, z = (b.temp((9,), np.float32, name) for name in "xyz")
        with b.loop(9, vectorize="parallel") as i:
            b.store(y, (i,), 1.)
        with b.loop(9, vectorize="parallel") as i:
            second(b, i, x, y)
        with b.loop(9, vectorize="parallel") as i:
            b.store(z, (i,), b.load(x, (i,)))
        return launches.recycled(b.scopes[0].statements, [x, y, z])[x]
    name = lambda second: hosts(second).name
    assert name(lambda b, i, x, y: b.store(x, (i,), b.load(y, (i,)))) == "y"
    assert name(lambda b, i, x, y: b.store(x, (i,), b.load(y, (b.sub(8, i),)))) == "x"
    assert name(lambda b, i, x, y: b.store(x, (b.sub(8, i),), b.load(y, (i,)))) == "x"
    assert name(lambda b, i, x, y: (b.store(x, (i,), 2.), b.load(y, (i,)))) == "x"


def test_what_a_loop_carries_stays_on_the_device():
    body = launches.scheduled(kernel(PROGRAMS["a loop until"], X)).body
    assert [type(each) for each in body] == [Launch]


def test_only_what_calls_a_library_goes_back_to_the_host():
    def f(x):
        return jax.lax.fori_loop(0, 3, lambda i, y: jnp.linalg.inv(y) + 1, x)
    [*_, loop] = [each for each in launches.scheduled(kernel(f, np.eye(8) + 1)).body
                  if isinstance(each, For)]
    assert any(isinstance(each, Launch) for each in loop.body)


def test_what_a_function_of_the_host_raises_is_raised_between_launches():
    def refuse(x):
        raise ValueError("no such number")

    def f(x):
        jax.lax.cond(x.sum() > 0, lambda: jax.debug.callback(refuse, x), lambda: None)
        return x
    x = -np.ones(3, np.float32)
    np.testing.assert_array_equal(run(f, x)[0][0], x)
    with pytest.raises(RuntimeError, match="no such number"):
        run(f, np.ones(3, np.float32))


def test_temps_of_one_launch_have_each_a_place_of_their_own():
    for f in PROGRAMS.values():
        _, made = run(f, X)
        for launch in ptx.launches_of(made.body):
            temps = {x for each in walk(launch.body) for x in accessed(each) if x in made.offsets}
            ends = sorted((made.offsets[x], made.offsets[x] + x.nbytes) for x in temps)
            assert all(a[1] <= b[0] for a, b in zip(ends, ends[1:], strict=False))


def test_what_is_stored_by_one_thread_is_seen_behind_a_barrier():
    _, made = run(PROGRAMS["a loop"], X)
    stores = [each for each in walk(made.body) if isinstance(each, Store)]
    assert stores and any(isinstance(each, Barrier) for each in walk(made.body))


@pytest.mark.parametrize("own", [True, False])
def test_a_buffer_with_a_linear_index_too_has_no_part_for_each_iteration(own):
    b = Builder()
    buffer = b.temp((4, 2), np.float32)
    with b.loop(4) as i:
        b.store(buffer, (i, 0), 1.0)
        b.store(buffer, (i, 1) if own else (3,), b.load(buffer, (i, 0)))
    [loop] = b.scopes[0].statements
    assert has_own_part(loop, buffer) == own
