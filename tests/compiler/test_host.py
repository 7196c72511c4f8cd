"""The way from machine code back into Python."""

import gc
import threading
import weakref

import numpy as np
import pytest

import minijax
from minijax.compiler import host


def test_the_function_lives_as_long_as_its_table():
    def function(x):
        pass

    table, dead = host.table(function, [((2,), np.dtype(np.float32))], 1), weakref.ref(function)
    function.leads_back = table
    view = np.asarray(table)
    del function, table
    gc.collect()
    assert dead() is not None
    del view
    gc.collect()
    assert dead() is None


def test_arrays_arrive_as_copies_of_the_right_shape():
    seen = []
    x = np.arange(6, dtype=np.int16).reshape(2, 3)

    @minijax.jit
    def f(a, b, c):
        minijax.debug.callback(lambda *arrays: seen.extend(arrays), a, b, c)
        return a
    f(x, np.float32(2.5), np.zeros((0, 4), np.float32))
    np.testing.assert_array_equal(seen[0], x)
    assert seen[1].shape == () and seen[1] == 2.5 and seen[2].shape == (0, 4)
    assert not any(np.shares_memory(a, x) for a in seen)


def test_the_text_form_calls_the_function_too():
    seen = []
    lowered = minijax.jit(lambda x: (minijax.debug.callback(seen.append, x * 2), x)[1]).lower(1.5)
    assert "host_call(" in lowered.as_text("source")
    from tests.running_text import run_text
    kernel = lowered._lowered.kernel
    run_text(kernel, [np.array(1.5, np.float32)])
    assert [float(v) for v in seen] == [3.0]


def test_an_error_is_raised_once():
    host.raised[threading.get_ident()] = RuntimeError("late")
    with pytest.raises(RuntimeError, match="late"):
        host.reraise()
    assert not host.raised


def test_a_loop_that_would_never_end_ends_when_the_function_raises():
    def stop(i):
        if i == 5:
            raise KeyboardInterrupt

    @minijax.jit
    def forever(x):
        def body(i):
            minijax.debug.callback(stop, i)
            return i + 1
        return minijax.lax.while_loop(lambda i: i >= 0, body, x)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            forever(0)
    assert forever(-1) == -1
