"""Whatever line of the package an exception strikes, the next call is right."""

import pathlib
import random
import sys

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import config, core, lax

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
