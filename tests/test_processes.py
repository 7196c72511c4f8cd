"""Forks and interrupts at any moment: nothing hangs, nothing crashes, the next call is right.

`STRIKES=500 pytest tests/test_processes.py` strikes that often; the default is a few.
"""

import os
import subprocess
import sys

import pytest

STRIKES = int(os.environ.get("STRIKES", "2"))
SECONDS = 60 + 2 * STRIKES  # far more than is needed: a program that takes longer hangs


def run_program(text, *arguments, **environment):
    """Run a Python program to its end; what it asserts, and that it ends, is the test."""
    found = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", text, *map(str, arguments)], text=True,
        timeout=SECONDS, capture_output=True, env={**os.environ, **environment})
    assert found.returncode == 0, f"{found.returncode}\n{found.stdout}\n{found.stderr}"


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")

# Programs that differ by a constant are compiled anew, as nothing is kept on disk.
FORKING = """if True:
    import itertools, os, random, signal, sys, threading, time
    import numpy as np
    import minijax as jax
    import minijax.numpy as jnp

    count, numbers = int(sys.argv[1]), itertools.count(2)
    small, large = np.ones((3, 4), np.float32), np.ones((600, 1000), np.float32)

    def compile_and_run(x):
        k = float(next(numbers))
        f = jax.jit(lambda v: (jnp.tanh(v) * k).sum(-1) + (v @ v.T).sum() * 0)
        assert np.allclose(f(x), np.tanh(1) * k * x.shape[1], rtol=1e-4), f(x)

    def work():
        while not stop:
            compile_and_run(random.choice([small, large]))

    stop, choose = [], random.Random(0)
    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    if sys.argv[2] == "warm":
        compile_and_run(large)
    try:
        for strike in range(count):
            time.sleep(choose.random() * 0.05)
            child = os.fork()
            if child == 0:
                signal.alarm(30)
                try:
                    compile_and_run(choose.choice([small, large]))
                    os._exit(0)
                finally:
                    os._exit(1)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            assert status == 0, (strike, status)
    finally:
        stop.append(True)
    for thread in threads:
        thread.join()
    compile_and_run(large)
"""


@needs_fork
@pytest.mark.parametrize("start", ["warm", "cold"])
def test_a_process_forked_while_threads_compile_and_run_compiles_and_runs(start):
    run_program(FORKING, STRIKES if start == "warm" else 1, start, MINIJAX_CACHE_DIR="")


INTERRUPTED = """if True:
    import gc, itertools, random, signal, sys, threading, time
    import numpy as np
    import minijax as jax
    import minijax.numpy as jnp

    count, kind, numbers = int(sys.argv[1]), sys.argv[2], itertools.count(2)
    x = np.ones((600, 1000), np.float32)
    held = jax.jit(lambda v: jnp.tanh(v) * 3)

    def compiled(k):
        return jax.jit(lambda v: jnp.cos(v[0]) * k)

    def compile_and_drop():
        k = float(next(numbers))
        assert np.allclose(compiled(k)(x), np.cos(1) * k)

    def load_and_drop():  # the same few: from the disk
        assert np.allclose(compiled(7.0)(x), np.cos(1) * 7)

    def call():
        for _ in range(50):
            assert np.allclose(held(x)[0, 0], np.tanh(1) * 3)

    def unload():
        dropped = [compiled(k) for k in (2.0, 3.0, 4.0, 5.0)]
        for f in dropped:
            f(x)
        del dropped, f
        gc.collect()

    work = globals()[kind]
    work()
    begun = time.perf_counter()
    work()
    lasts = time.perf_counter() - begun

    def strike(after):
        time.sleep(after)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored in the background
    choose, struck = random.Random(kind), 0
    for turn in range(count):
        striker = threading.Thread(target=strike, args=(choose.random() * lasts,))
        try:
            striker.start()
            work()
            striker.join()
        except KeyboardInterrupt:
            struck += 1
        while True:
            try:
                striker.join()
                time.sleep(1e-4)  # an interrupt that is on its way arrives
                break
            except KeyboardInterrupt:
                struck += 1
        compile_and_drop()
        call()
    assert struck >= count // 10, struck  # Python drops those that hit a destructor
"""


@pytest.mark.parametrize("kind", ["compile_and_drop", "load_and_drop", "call", "unload"])
def test_an_interrupt_at_any_moment_leaves_the_next_call_right(kind, tmp_path):
    place = "" if kind == "compile_and_drop" else str(tmp_path)
    run_program(INTERRUPTED, STRIKES, kind, MINIJAX_CACHE_DIR=place)


# What is held after more of the same work, beside what was held before it.
MEMORY = """if True:
    import gc, itertools, sys
    import numpy as np
    import minijax as jax
    import minijax.numpy as jnp
    from minijax.compiler import cpu

    count, numbers = int(sys.argv[1]), itertools.count(2)
    small, large = jnp.ones(3), jnp.ones((300, 300))
    held, product = jax.jit(lambda x: x + 1), jax.jit(lambda x: jnp.tanh(x @ x))

    def resident():
        gc.collect()
        cpu.undisturbed(lambda: None)  # what has died is unloaded
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    def calls():
        for _ in range(count * 20):
            held(small)
        for _ in range(count // 5):
            product(large)

    def traces():  # two kernels in turn, from memory or disk
        for k in range(count // 16):
            f = jax.jit(lambda x: jnp.sin(x) * (k % 2))
            f(small)
            jax.vmap(jax.grad(f))(small)

    def kernels():  # each another one
        for _ in range(count // 16):
            k = float(next(numbers))
            jax.jit(lambda x: jnp.sin(x) * k)(small)

    for work, most in ((calls, 1), (traces, 1), (kernels, 1)):
        work()
        grown, loaded = [], len(cpu._linked)
        for _ in range(2):  # a thread that begins before another has ended grows once
            before = resident()
            work()
            grown.append((resident() - before) / 1e6)
        grown = min(grown)
        print(work.__name__, grown)
        assert grown < most + count // 16 * 8e-3, (work.__name__, grown)
        assert len(cpu._linked) <= loaded
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="no way to see the memory")
def test_calls_traces_and_dropped_functions_leave_nothing_behind(tmp_path):
    run_program(MEMORY, 200 + 20 * STRIKES, MINIJAX_CACHE_DIR=str(tmp_path))
