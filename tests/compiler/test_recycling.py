"""Memory of large results: used again, but never while anybody sees it."""

import gc
import threading
import tracemalloc

import numpy as np

import minijax
from minijax.compiler import recycling

F32 = np.dtype(np.float32)
SHAPE = (300, 301)


def address(x):
    return x.__array_interface__["data"][0]


def test_what_a_dead_array_leaves_serves_the_next():
    x = recycling.empty(SHAPE, F32)
    first = address(x)
    assert first % 64 == 0
    del x
    assert address(recycling.empty(SHAPE, F32)) == first


def test_a_view_keeps_the_memory():
    x = recycling.empty(SHAPE, F32)
    x[:] = 7
    view, first = x[5:].T.view(np.int32)[1:], address(x)
    del x
    gc.collect()
    other = recycling.empty(SHAPE, F32)
    assert address(other) != first
    other[:] = 0
    assert (view == np.float32(7).view(np.int32)).all()


def test_what_is_donated_serves_later_results():
    step = minijax.jit(lambda x: x * 2 + 1, donate_argnums=0)
    places, x = [], step(minijax.numpy.ones(SHAPE))
    for _ in range(6):
        places.append(address(np.asarray(x)))
        x = step(x)
    assert len(set(places)) == 2 and places[0] == places[2] == places[4]


def test_what_is_donated_while_a_view_of_it_is_alive_stays_as_it_is():
    step = minijax.jit(lambda x: x * 2 + 1, donate_argnums=0)
    x = step(minijax.numpy.ones(SHAPE))
    view = np.asarray(x)[5:].T
    for _ in range(4):
        x = step(x)
    gc.collect()
    assert (view == 3).all() and not np.shares_memory(view, np.asarray(x))


def test_a_numpy_array_outlives_the_result_it_was_taken_from():
    f = minijax.jit(lambda x: x * 2)
    x = np.ones(SHAPE, np.float32)
    taken = np.asarray(f(x))
    for k in range(5):
        f(x * k)
    assert (taken == 2).all()


def test_small_arrays_are_numpys_own():
    assert recycling.empty((3, 4), F32).base is None


def test_not_too_much_is_held(monkeypatch):
    monkeypatch.setattr(recycling, "_free", {})
    monkeypatch.setattr(recycling, "MAX_HELD", 4 * recycling.MIN_POOLED + 1000)
    sizes = [recycling.MIN_POOLED] * 9 + [5 * recycling.MIN_POOLED, 2 * recycling.MIN_POOLED]
    arrays = [recycling.empty((n,), np.dtype(np.uint8)) for n in sizes]
    while arrays:
        del arrays[0]
        assert recycling.held_bytes() <= recycling.MAX_HELD
    assert recycling.held_bytes() >= 3 * recycling.MIN_POOLED  # what came last, and what still fits


def test_a_thousand_sizes_are_few(monkeypatch):
    """Nothing is kept for each size there ever was."""
    monkeypatch.setattr(recycling, "_free", {})
    for n in range(1000):
        recycling.empty((recycling.MIN_POOLED + 1000 * n,), np.dtype(np.uint8))
    assert len(recycling._free) < 30


def test_workspaces_are_given_back(monkeypatch):
    monkeypatch.setattr(recycling, "_free", {})
    monkeypatch.setattr(recycling, "MAX_HELD", 1 << 20)
    f = minijax.jit(lambda x: minijax.lax.cumsum(minijax.lax.sort(x @ x.T, dimension=1), axis=1))
    x = np.ones((1000, 30), np.float32)
    workspace = f.lower(x)._lowered.kernel.workspace_size
    assert workspace > 2 << 20
    f(x)
    tracemalloc.start()
    try:
        threads = [threading.Thread(target=f, args=(x,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] < workspace
        assert tracemalloc.get_traced_memory()[1] > workspace
    finally:
        tracemalloc.stop()
    assert recycling.held_bytes() <= recycling.MAX_HELD


def test_no_two_threads_have_the_same_memory():
    failures = []

    def work(mark):
        for turn in range(300):
            x = recycling.empty((recycling.MIN_POOLED + 4096 * (turn % 3),), np.dtype(np.uint8))
            x[::4096] = mark
            y = recycling.empty((recycling.MIN_POOLED,), np.dtype(np.uint8))
            y[::4096] = mark
            if (x[::4096] != mark).any() or (y[::4096] != mark).any():
                failures.append(mark)

    threads = [threading.Thread(target=work, args=(mark,)) for mark in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == [] and recycling.held_bytes() <= recycling.MAX_HELD


def test_the_time_of_freeing_memory_does_not_grow_with_what_is_held(monkeypatch):
    sums, held_bytes = [], recycling.held_bytes
    monkeypatch.setattr(recycling, "_free", {n: [] for n in range(99)})
    monkeypatch.setattr(recycling, "held_bytes", lambda: sums.append(held_bytes()) or sums[-1])
    x = recycling.empty(SHAPE, F32)
    del x
    assert len(sums) == 1
