"""Memory of large results: used again, but never while anybody sees it."""

import gc

import numpy as np

import minijax
from minijax.lowering import recycling

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
    monkeypatch.setattr(recycling, "MOST", 4 * recycling.LARGE)
    arrays = [recycling.empty((recycling.LARGE,), np.dtype(np.uint8)) for _ in range(9)]
    del arrays
    gc.collect()
    held = sum(x.nbytes for each in recycling._free.values() for x in each)
    assert held <= 4 * recycling.LARGE + 9 * recycling.ALIGNMENT
