"""Whatever line of the package an exception strikes, and wherever in machine code an interrupt
comes, the next call is right.
"""

import contextlib
import os
import pathlib
import random
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import config, core, lax
from minijax.compiler import host

PACKAGE = str(pathlib.Path(jax.__file__).parent)
X = np.array([0.5, -0.3, 1.2], np.float32)


class Struck(Exception):
    """The exception that is thrown from outside."""


def differentiate():
    return jax.vmap(jax.grad(lambda v: jnp.sin(v) * v))(X)


def trace_and_compile():
    return jax.jit(lambda v: jnp.tanh(v) * 2.0 + v)(X)


@jax.jit
def known(v):
    return jnp.cos(v) + 1.0


def call_compiled():
    return known(X)


def loop_backwards():
    def total(v):
        return lax.scan(lambda c, y: (c * 0.5 + y * v[0], None), v[1], v)[0]
    return jax.grad(total)(jnp.asarray(X))


def with_flags():
    with jax.enable_x64(True), jax.disable_jit():
        return jax.jit(lambda v: v * 2.0)(jnp.asarray(X, jnp.float32)).astype(jnp.float32)


WORKLOADS = [differentiate, trace_and_compile, call_compiled, loop_backwards, with_flags]


class Striker:
    """Counts the lines run inside the package, and raises at one of them."""

    def __init__(self, at: int | None, error: type[BaseException]):
        self.at, self.error, self.lines = at, error, 0

    def __call__(self, frame, event, arg):
        return self.line if frame.f_code.co_filename.startswith(PACKAGE) else None

    def line(self, frame, event, arg):
        if event == "line":
            self.lines += 1
            if self.lines == self.at:
                sys.settrace(None)
                raise self.error(f"{frame.f_code.co_filename}:{frame.f_lineno}")
        return self.line

    def run(self, workload):
        before = sys.gettrace()
        sys.settrace(self)
        try:
            return workload()
        finally:
            sys.settrace(before)


@pytest.mark.parametrize("error", [Struck, KeyboardInterrupt])
@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: w.__name__)
def test_a_strike_at_any_line_leaves_the_next_call_right(workload, error, strikes):
    expected = np.asarray(workload())
    counter = Striker(None, error)
    counter.run(workload)
    choose = random.Random(workload.__name__)
    for at in choose.sample(range(1, counter.lines + 1), min(strikes(50), counter.lines)):
        striker = Striker(at, error)
        try:
            striker.run(workload)
        except error:
            pass
        except Exception as other:  # the strike may be reported by what it struck
            assert isinstance(other.__cause__ or other.__context__, error), other
        assert core.current_trace.get() is core.base_trace
        assert not config.enable_x64.value and not config.disable_jit.value
        np.testing.assert_array_equal(np.asarray(workload()), expected)


# Interrupts inside of compiled loops. Each program would run for minutes, or for ever: that it ends
# is what is tested.

LARGE, MANY = np.linspace(-1, 1, 1 << 19, dtype=np.float32), 2_000_000_000
MATRIX = np.random.default_rng(0).normal(size=(700, 700)).astype(np.float32) / 30


def times(f):
    """A function that is applied n times to x."""
    return jax.jit(lambda n, x: lax.fori_loop(0, n, lambda i, y: f(y), x))


PROGRAMS = {
    "while": (jax.jit(lambda n, x: lax.while_loop(
        lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 0.5 + x), (0, x))[1]),
        (MANY, np.float32(1)), (3, np.float32(1))),
    "endless while": (jax.jit(lambda n, x: lax.while_loop(lambda c: n >= c, lambda c: c * x, 0)),
                      (0, 3), (-1, 3)),
    "while of each example": (jax.jit(jax.vmap(lambda n, x: lax.while_loop(
        lambda c: c < n, lambda c: c * x, np.float32(1)))),
        (np.full(9, 2, np.float32), np.ones(9, np.float32)),
        (np.full(9, 2, np.float32), np.full(9, 1.5, np.float32))),
    "while in while": (jax.jit(lambda n, x: lax.while_loop(
        lambda c: c[0] < n, lambda c: (c[0] + 1, lax.while_loop(
            lambda d: d[0] < 3, lambda d: (d[0] + 1, d[1] * 0.5 + x), (0, c[1]))[1]), (0, x))[1]),
        (MANY, np.float32(1)), (3, np.float32(1))),
    "scan": (times(lambda y: lax.scan(
        lambda c, row: (c * 0.5 + row, None), y[0], y)[0] + y), (MANY, LARGE), (2, LARGE)),
    "fori_loop of known length": (
        jax.jit(lambda n, x: lax.cond(n > 2, lambda y: lax.fori_loop(
            0, MANY, lambda i, c: jnp.sin(c) + i, y), jnp.cos, x)),
        (3, np.float32(1)), (2, np.float32(1))),
    "threads, elementwise": (times(lambda y: jnp.tanh(y) * 1.5), (MANY, LARGE), (2, LARGE)),
    "threads, product": (times(lambda y: y @ MATRIX), (MANY, MATRIX), (2, MATRIX)),
    "sort": (times(lambda y: jnp.sort(-y * 0.5)), (MANY, LARGE), (2, LARGE)),
    "running sum": (times(lambda y: jnp.cumsum(y) * 1e-3), (MANY, LARGE), (2, LARGE)),
    "transform": (times(lambda y: jnp.fft.fft(y).real * 1e-3), (MANY, LARGE), (2, LARGE)),
    "factorisation": (times(lambda y: jnp.linalg.qr(y)[0]), (MANY, MATRIX[:90, :90]),
                      (2, MATRIX[:90, :90])),
    "callback": (times(lambda y: jax.pure_callback(
        lambda v: v * np.float32(0.5), jax.ShapeDtypeStruct((), np.float32), y) + 1),
        (MANY, np.float32(1)), (2, np.float32(1))),
    "not compiled": (lambda n, x: lax.while_loop(
        lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 0.5 + x), (0, x))[1],
        (MANY, np.float32(1)), (3, np.float32(1))),
}


@contextlib.contextmanager
def interrupt_after(seconds, signum=signal.SIGINT):
    """Send a signal to this process while something runs."""
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signum))
    timer.start()
    try:
        yield timer
    finally:
        timer.cancel()
        timer.join()


def interrupted(f, *args, after=0.02):
    with pytest.raises(KeyboardInterrupt) as raised, interrupt_after(after):
        f(*args)
    return raised.value


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_interrupt_ends_a_compiled_loop_and_the_next_call_is_right(name, strikes):
    f, long, short = PROGRAMS[name]
    expected = np.asarray(f(*short))
    choose = random.Random(name)
    for _ in range(strikes(3)):
        interrupted(f, *long, after=choose.uniform(0.001, 0.15))
        np.testing.assert_array_equal(np.asarray(f(*short)), expected)
    assert not host.raised


def endless(x):
    return lax.while_loop(lambda c: c[0] >= 0, lambda c: (c[0], c[1] + 1.5), (x, 0.0))


def test_the_interrupt_names_the_users_loop_and_says_how_many_turns_it_made():
    error = interrupted(jax.jit(endless), 1, after=0.2)
    line = endless.__code__.co_firstlineno + 1
    said, where = str(error).split(" turns: ")
    assert int(said.removeprefix("interrupted in a loop after ").replace(",", "")) > 0
    assert where.startswith("return lax.while_loop(")
    assert where.endswith(f"test_interrupts.py:{line}")


def test_a_loop_around_what_threads_share_is_the_users():
    f, long, short = PROGRAMS["threads, elementwise"]
    f(*short)
    assert "fori_loop" in str(interrupted(f, *long, after=0.3))


@contextlib.contextmanager
def handling(signum, handler):
    before = signal.signal(signum, handler)
    try:
        yield
    finally:
        signal.signal(signum, before)


def test_a_loop_goes_on_after_a_handler_that_does_not_raise():
    f, _, short = PROGRAMS["while"]
    come = []
    with handling(signal.SIGINT, lambda *_: come.append(len(come))):
        with interrupt_after(0.02):
            total = f(100_000_000, np.float32(1))
        assert come == [0] and total == 2
    assert f(*short) == 1.875


def test_an_ignored_interrupt_does_nothing():
    with handling(signal.SIGINT, signal.SIG_IGN), interrupt_after(0.02):
        assert PROGRAMS["while"][0](100_000_000, np.float32(1)) == 2


class Late(Exception):
    """What a handler of another signal raises."""


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="no alarms")
def test_any_signals_handler_can_end_a_loop():
    def late(*_):
        raise Late("too long")
    with (handling(signal.SIGALRM, late), pytest.raises(Late, match="too long") as raised,
          interrupt_after(0.05, signal.SIGALRM)):
        jax.jit(endless)(1)
    assert any("interrupted in a loop" in note for note in raised.value.__notes__)


def test_a_handler_may_run_a_program_whose_loops_threads_share():
    f, long, short = PROGRAMS["threads, elementwise"]
    expected, seen = np.asarray(f(*short)), []

    def handler(*_):
        seen.append(np.asarray(f(*short)))
        raise KeyboardInterrupt
    with handling(signal.SIGINT, handler):
        interrupted(f, *long, after=0.1)
    np.testing.assert_array_equal(seen[0], expected)
    np.testing.assert_array_equal(np.asarray(f(*short)), expected)


def test_an_interrupt_reaches_the_main_thread_while_another_runs_a_long_loop():
    f, _, short = PROGRAMS["while"]
    found, started = [], threading.Event()

    def work():
        started.set()
        found.append(f(300_000_000, np.float32(1)))
    thread = threading.Thread(target=work)
    thread.start()
    started.wait()
    assert "while_loop" in str(interrupted(f, MANY, np.float32(1)))
    thread.join()
    assert found == [2] and f(*short) == 1.875


def test_what_was_donated_to_a_call_that_is_interrupted_is_still_there():
    f = jax.jit(PROGRAMS["threads, elementwise"][0], donate_argnums=1)
    x = jnp.asarray(LARGE)
    interrupted(f, MANY, x, after=0.1)
    np.testing.assert_array_equal(np.asarray(x), LARGE)


def test_an_interrupt_ends_launches_on_an_emulated_gpu_and_the_next_are_right():
    from minijax.compiler.targets.programs import emulate
    f, long, short = PROGRAMS["while"]
    kernel = f.lower(*short)._lowered.launches
    interrupted(lambda: emulate(kernel, list(map(np.asarray, long))), after=0.2)
    assert emulate(kernel, list(map(np.asarray, short)))[0] == 1.875


AS_A_NOTEBOOK_DOES = """if True:
    import asyncio, os, signal, threading
    import minijax as jax
    from tests.test_interrupts import endless

    f = jax.jit(endless)
    f(-1)

    async def cell():
        signal.signal(signal.SIGINT, signal.default_int_handler)
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            f(1)
        except KeyboardInterrupt as error:
            return str(error)
    assert "while_loop" in asyncio.run(cell())
    assert f(-1)[1] == 0
"""


def test_a_notebooks_cell_is_interrupted_within_its_event_loop():
    subprocess.run([sys.executable, "-c", AS_A_NOTEBOOK_DOES], check=True, timeout=300)
