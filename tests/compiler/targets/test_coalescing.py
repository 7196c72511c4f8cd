"""Memory coalescing: neighbouring threads access neighbouring elements."""

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.compiler.loops import For, If, Launch, Load, Store, walk
from minijax.compiler.targets import coalescing, launches
from minijax.compiler.targets.programs import emulate
from tests.compiler.targets.test_launches import kernel

SECTOR, WARP = 32, 32  # bytes of memory that are moved together; threads that ask together
ROWS = np.linspace(-2, 3, 96 * 320, dtype=np.float32).reshape(96, 320)
BATCH = np.linspace(-2, 3, 3 * 64 * 96, dtype=np.float32).reshape(3, 64, 96)


def sectors(f, *args):
    """How many sectors warps touch in the memory of the GPU, for each that they had to.

    Accesses to one buffer by several statements are one, until a statement runs again.
    """
    touched = needed = 0
    rows = {}  # of each block and buffer

    def watch(statement, block, threads, places):
        row = rows.setdefault((block, statement.buffer, type(statement)), {})
        if statement in row:
            count(row)
        if statement.buffer.role != "shared":
            row[statement] = threads, places

    def count(row):
        nonlocal touched, needed
        size = next(iter(row)).buffer.dtype.itemsize
        threads, places = map(np.concatenate, zip(*row.values(), strict=True))
        for warp in np.unique(threads // WARP):
            own = places[threads // WARP == warp]
            touched += len(np.unique(own * size // SECTOR))
            needed += -(-len(np.unique(own)) * size // SECTOR)
        row.clear()
    made = launches.scheduled(kernel(f, *args))
    found = emulate(made, [np.asarray(x) for x in args], watch=watch)
    for row in filter(None, rows.values()):
        count(row)
    return touched / needed, found


PROGRAMS = {
    "a chain": (lambda x: jnp.tanh(x) * 2 + 1, ROWS),
    "a row for each": (lambda x, w: x * w + 1, ROWS, ROWS[0]),
    "a column for each": (lambda x, w: x * w[:, None] + 1, ROWS, ROWS[:, 0]),
    "an axis between": (lambda x, w: x * w[:, None], BATCH, BATCH[0, :, 0]),
    "softmax of rows": (lambda x: jax.nn.softmax(x, -1), ROWS),
    "softmax of columns": (lambda x: jax.nn.softmax(x, 0), ROWS),
    "the normal form of a layer": (lambda x: (x - x.mean(1)[:, None]) / x.std(1)[:, None], ROWS),
    "sums of rows": (lambda x: x.sum(1), ROWS),
    "sums of columns": (lambda x: x.sum(0), ROWS),
    "sums between": (lambda x: x.sum(1), BATCH),
    "a sum over all": (jnp.sum, ROWS),
    "a place along the rows": (lambda x: x.argmax(1), ROWS),
    "a transpose": (lambda x: x.T + 1, ROWS),
    "transposes": (lambda x: x.transpose(0, 2, 1) * 2, BATCH),
    "axes turned": (lambda x: x.transpose(1, 2, 0) * 2, ROWS.reshape(64, 5, 96)),
    "arrays one behind the other": (lambda x: jnp.concatenate([x, x * 2], 1), ROWS),
    "running totals of rows": (lambda x: jnp.cumsum(x, 1), ROWS),
    "running totals of columns": (lambda x: jnp.cumsum(x, 0), ROWS),
    "rows by their number": (lambda x: x[jnp.arange(59, -1, -2)], ROWS),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_warp_touches_few_more_sectors_than_it_must(monkeypatch, name):
    monkeypatch.setattr(launches, "WIDE", 1 << 12)
    f, *args = PROGRAMS[name]
    ratio, found = sectors(f, *args)
    assert ratio < 1.3
    for a, b in zip(found, jax.tree.leaves(f(*args)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-4)


def test_the_measure_sees_threads_that_go_down_the_columns(monkeypatch):
    monkeypatch.setattr(coalescing, "uncoalesced", lambda *_: 0.0)
    monkeypatch.setattr(launches, "uncoalesced", lambda *_: 0.0)
    assert sectors(lambda x: x.sum(0), np.ones((1024, 32), np.float32))[0] > 3


def scheduled(f, *args):
    return launches.scheduled(kernel(f, *args)).body


def test_nests_are_one_loop_with_a_thread_for_each_turn():
    x = np.empty((64, 128, 100), np.float32)
    [launch] = scheduled(lambda x, w: x * w[:, None] + w.sum(), x, x[0, :, 0])[-1:]
    assert launch.blocks * launch.threads * launches.UNROLLED == x.size
    assert not any(isinstance(each, For) for each in walk(launch.body))


def test_few_rows_that_are_long_are_shared_by_many_blocks():
    long = scheduled(lambda x: x.sum(1), np.empty((8, 1 << 20), np.float32))
    assert all(isinstance(each, Launch) for each in long) and long[0].blocks >= 1024


def test_a_branch_with_wide_loops_is_taken_by_the_host():
    x = np.empty((1024, 1024), np.float32)
    body = scheduled(lambda x: jax.lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, x), x)
    sides = [side for each in body if isinstance(each, If) for side in (each.then, each.orelse)]
    assert all(each.blocks >= 1024 for side in sides for each in side) and any(sides)


def test_columns_are_joined_by_threads_side_by_side_and_few_launches():
    body = scheduled(lambda x: x.sum(0), np.empty((4096, 4096), np.float32))
    assert len(body) <= 3 and body[0].blocks * body[0].threads >= 1 << 16


@pytest.mark.parametrize("size", [4096, 4099, 100])
def test_threads_that_have_little_to_do_take_several_turns_a_block_apart(monkeypatch, size):
    for name, value in (("WIDE", 64), ("MIN_MEMORY_BOUND", 64)):
        monkeypatch.setattr(launches if name == "WIDE" else coalescing, name, value)
    x = np.linspace(-2, 3, size, dtype=np.float32)
    ratio, [found] = sectors(lambda x, y: x * y + 1, x, x)
    assert ratio < 1.1
    np.testing.assert_allclose(found, x * x + 1, rtol=1e-6)
    [launch] = scheduled(lambda x, y: x * y + 1, x, x)
    assert launch.blocks == -(-size // (4 * launches.THREADS))
    kinds = [type(each) for each in walk(launch.body) if isinstance(each, Load | Store)]
    assert kinds[:12] == [Load] * 8 + [Store] * 4
