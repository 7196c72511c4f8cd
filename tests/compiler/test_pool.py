"""Loops shared by threads: always the same result, whoever takes part."""

import os
import re
import subprocess
import sys
import threading

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax.compiler import cache, cpu, interrupts, library, pool
from minijax.compiler.outlining import shared_loops

N = 1 << 18


def numbers(*shape):
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


PROGRAMS = {
    "elementwise": (lambda x: jnp.tanh(x) * 2, (numbers(N),)),
    "odd size": (lambda x: jnp.exp(x), (numbers(N + 13),)),
    "rows": (lambda x: jnp.exp(x - x.max(1, keepdims=True)) / jnp.exp(x).sum(1, keepdims=True),
             (numbers(517, 1000),)),
    "columns": (lambda x: jnp.sum(jnp.cos(x), 0), (numbers(700, 1100),)),
    "sum": (lambda x: jnp.sum(jnp.sin(x)), (numbers(3 * N + 5),)),
    "sum over two axes": (lambda x: jnp.sum(jnp.sin(x)), (numbers(700, 900),)),
    "few sums in many blocks": (lambda x: jnp.var(x, (0, 2)), (numbers(N // 2, 3, 2),)),
    "transpose": (lambda x: jnp.sin(x).T + 1, (numbers(600, 1000),)),
    "product": (lambda x, y: x @ y, (numbers(200, 300), numbers(300, 170))),
    "product of few rows": (lambda x, y: x @ y, (numbers(70, 300), numbers(300, 290))),
    "convolution": (lambda x, w: minijax.lax.conv_general_dilated(x, w, (1, 1), "SAME"),
                    (numbers(8, 32, 40, 40), numbers(32, 32, 3, 3))),
    "factorisations": (lambda x: minijax.lax.linalg.qr(x)[1] + minijax.lax.linalg.lu(x)[0],
                       (numbers(64, 16, 16),)),
    "map": (lambda x: minijax.lax.map(lambda row: jnp.sin(row).sum(), x), (numbers(400, 1000),)),
    "rows added at repeated places": (
        lambda x, at, y: x.at[at].add(y),
        (numbers(512, 64), np.arange(4096) % 7 * 73, numbers(4096, 64))),
    "in a loop": (lambda x: minijax.lax.fori_loop(
        0, 5, lambda i, y: jnp.sin(y) + i, x), (numbers(N),)),
    "bools and captured scalars": (lambda x, c: jnp.where(c, jnp.sin(x) + x[0], x) > 0,
                                   (numbers(N), np.True_)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_result_is_the_same_each_time(name):
    f, args = PROGRAMS[name]
    run = minijax.jit(f)
    expected = np.asarray(run(*args))
    for _ in range(5):
        np.testing.assert_array_equal(np.asarray(run(*args)), expected)


NUMBERED = """if True:
    import _thread
    import hashlib
    import time
    import numpy as np
    import minijax as jax
    import minijax.numpy as jnp
    from minijax.compiler import pool
    from tests.compiler.test_pool import PROGRAMS
    x = np.random.default_rng(0).normal(size=(517, 1000)).astype(np.float32)
    found = [jax.jit(f)(*args) for f, args in PROGRAMS.values()] + [
        jax.jit(f)(x) for f in (jax.nn.softmax, lambda x: jnp.cumsum(x, 0).T, lambda x: x @ x.T)]
    print(hashlib.sha256(b"".join(np.asarray(y).tobytes() for y in found)).hexdigest())
    while _thread._count() != pool.thread_count() - 1:  # those that compiled end
        time.sleep(0.01)
"""


def test_one_thread_two_and_eight_give_the_same_bits():
    found = {subprocess.run([sys.executable, "-c", NUMBERED], check=True, text=True, timeout=300,
                            env={**os.environ, "MINIJAX_NUM_THREADS": count}, capture_output=True
                            ).stdout for count in ("1", "2", "8")}
    assert len(found) == 1


@pytest.mark.parametrize("name", PROGRAMS)
def test_these_programs_have_a_loop_to_share(name):
    f, args = PROGRAMS[name]
    assert shared_loops(minijax.jit(f).lower(*args)._lowered.kernel)


def test_short_loops_are_not_shared():
    assert not shared_loops(minijax.jit(jnp.sin).lower(numbers(1000))._lowered.kernel)


def test_a_loop_that_calls_into_python_is_not_shared():
    def f(x):
        minijax.debug.callback(lambda y: None, x[0])
        return x
    kernel = minijax.jit(lambda x: minijax.lax.map(f, x)).lower(numbers(400, 1000))._lowered.kernel
    assert not any(loop.vectorize == "" for loop in shared_loops(kernel))


def test_many_threads_share_at_once(strikes):
    run = minijax.jit(PROGRAMS["rows"][0])
    x = PROGRAMS["rows"][1][0]
    expected, failures = np.asarray(run(x)), []

    def work():
        for _ in range(strikes(20)):
            if not np.array_equal(np.asarray(run(x)), expected):
                failures.append("differs")

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_the_setting_of_numpys_blas_is_as_before():
    import ctypes

    minijax.jit(jnp.matmul)(numbers(200, 300), numbers(300, 170))
    setting = library.thread_setting()
    if not setting:
        pytest.skip("this BLAS has no such setting")
    get, put = setting.values()
    get, put = ctypes.CFUNCTYPE(ctypes.c_int)(get), ctypes.CFUNCTYPE(None, ctypes.c_int)(put)
    before = get()
    try:
        for wanted in (1, 2):
            put(wanted)
            minijax.jit(jnp.matmul)(numbers(200, 300), numbers(300, 170))
            assert get() == wanted
    finally:
        put(before)


def test_a_setting_that_the_program_changes_during_a_product_stays():
    import ctypes

    setting = library.thread_setting()
    if not setting:
        pytest.skip("this BLAS has no such setting")
    get, put = setting.values()
    get, put = ctypes.CFUNCTYPE(ctypes.c_int)(get), ctypes.CFUNCTYPE(None, ctypes.c_int)(put)
    enter = cpu.undisturbed(lambda: pool.symbols(cache.linked))["minijax_blas"]
    change = ctypes.CFUNCTYPE(None, ctypes.c_int64)(enter)
    before = get()
    try:
        put(2)
        for meanwhile, after in ((None, 2), (3, 3)):
            change(1)
            change(1)  # a second product at the same time
            assert get() == 1
            if meanwhile:
                put(meanwhile)
            change(-1)
            change(-1)
            assert get() == after
    finally:
        put(before)


FORKING = """if True:
    import os
    import numpy as np
    import minijax
    from minijax.compiler import pool
    run = minijax.jit(lambda x: minijax.numpy.tanh(x).sum(1))
    x = np.ones((517, 1000), np.float32)
    expected = np.asarray(run(x))
    child = os.fork()
    right = np.array_equal(np.asarray(run(x)), expected)
    if child == 0:
        again = np.asarray(minijax.jit(lambda x: minijax.numpy.tanh(x).sum(1) + 1)(x))
        awake = not pool.asleep and np.array_equal(again, expected + 1)
        os._exit(0 if right and awake else 1)
    assert right and os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_computes_rightly():
    subprocess.run([sys.executable, "-c", FORKING], check=True, timeout=120)


SMALL_STACK = """if True:
    import sys, threading
    import numpy as np
    import minijax as jax
    import minijax.numpy as jnp
    from minijax.compiler import outlining

    wide = np.random.default_rng(0).normal(size=(200, 20_000)).astype(np.float32)
    square = wide[:100, :100]
    programs = [
        (jax.nn.softmax, wide), (lambda x: x @ x.T, wide[:, :300]),
        (lambda x: jnp.linalg.eigh(x + x.T)[0], square), (lambda xs: xs[0] + xs[-1], list(wide)),
        (lambda x: (jax.debug.callback(lambda y: None, x), x + 1)[1], square)]
    kernel = jax.jit(jax.nn.softmax).lower(wide)._lowered.kernel
    assert any(how.private for how in outlining.shared_loops(kernel).values())
    known = [(jax.jit(f), x) for f, x in programs]
    expected = [jax.tree.leaves(f(x)) for f, x in known]
    found = []

    def work():
        found.append([jax.tree.leaves(f(x)) for f, x in known])
        found.append([jax.tree.leaves(jax.jit(f)(x)) for f, x in programs])  # traced here

    threading.stack_size(65_536)
    for _ in range(int(sys.argv[1])):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert len(found) == 2 * int(sys.argv[1])
    for each in found:
        jax.tree.map(np.testing.assert_array_equal, each, expected)
"""


def test_kernels_run_in_threads_with_a_small_stack(strikes):
    subprocess.run([sys.executable, "-X", "faulthandler", "-c", SMALL_STACK, str(strikes(1))],
                   check=True, timeout=900)


def test_the_number_of_threads_can_be_given(monkeypatch):
    monkeypatch.setenv("MINIJAX_NUM_THREADS", "3")
    assert pool.thread_count() == 3
    monkeypatch.setenv("MINIJAX_NUM_THREADS", "many")
    assert pool.thread_count() >= 1


def test_the_text_uses_the_fields_that_there_are():
    used = set(re.findall(r"\bpool\.(\w+)", interrupts.RUNTIME + pool.SHARE + pool.BLAS))
    assert used == pool._state.keys() | {"raised"}
    found = cpu.undisturbed(lambda: pool.symbols(cache.linked))
    assert all(found[name] for name in pool.NAMES)
