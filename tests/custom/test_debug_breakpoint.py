"""A breakpoint says of the values and lines of a compiled program what JAX's says."""

import functools
import io

import jax
import numpy as np
import pytest

import minijax

pytestmark = pytest.mark.filterwarnings("ignore:Python iterable:DeprecationWarning")

X = np.array([0.5, -1.0, 2.0], np.float32)


def typed(lib, commands, program, *args):
    """What a breakpoint in a program says to these commands, and what the program returns.

    It knows three frames: JAX loses room for calls over what it finds in pytest's (`conftest.py`).
    """
    out = io.StringIO()
    stop = functools.partial(lib.debug.breakpoint, num_frames=3, stdout=out,
                             stdin=io.StringIO("\n".join(commands) + "\n"))
    result = program(lib, stop)(*args)
    lib.effects_barrier()
    return out.getvalue(), np.asarray(result)


def compiled(lib, stop):
    @lib.jit
    def f(x):
        y, names = lib.numpy.sin(x), {"twice": (2 * x, "text")}
        z = inner(y)
        return z + names["twice"][0]

    def inner(value):
        shift = 3
        stop()
        return value + shift
    return f


def as_it_is(lib, stop):
    def f(x):
        y = x * 2
        stop(num_frames=1)
        return y
    return f


def in_a_loop(lib, stop):
    def body(i, x):
        stop(ordered=True)
        return x + i
    return lib.jit(lambda x: lib.lax.fori_loop(0, 2, body, x))


def with_a_token(lib, stop):
    @lib.jit
    def f(x):
        return stop(token=x * 2) + 1
    return f


def differentiated(lib, stop):
    def f(x):
        y = x * x
        stop()
        return y.sum()
    return lib.grad(f)


PROMPTS = {
    "values": (compiled, ["value.shape, shift", "p shift + 1", "pp shift", "nothing", "1 / 0",
                          "c"]),
    "lines": (compiled, ["l", "u", "p names['twice'][1], y.dtype", "d", "d", "cont"]),
    "no jit": (as_it_is, ["up", "p float(y[2])", "c"]),
    "loop": (in_a_loop, ["p int(i)", "c", "p int(i)", "continue"]),
    "token": (with_a_token, ["p x.shape", "c"]),
    "grad": (differentiated, ["p y.shape", "c"])}


@pytest.mark.parametrize("name", PROMPTS)
def test_a_prompt_answers_as_jaxs(name):
    program, commands = PROMPTS[name]
    (ours, result), (theirs, wanted) = (typed(lib, commands, program, X) for lib in (minijax, jax))
    assert ours == theirs and "jdb" in ours
    np.testing.assert_allclose(result, wanted, rtol=1e-6)


def test_all_frames_are_listed():
    said, _ = typed(minijax, ["bt", "c"], compiled, X)
    lines = [line.strip() for line in said.splitlines()]
    assert "Traceback:" in lines[1] and lines[2].startswith('File "')
    found = [line for line in lines if line in ("z = inner(y)", "stop()")]
    assert found == ["z = inner(y)", "stop()"]


def test_one_quits():
    for lib in (minijax, jax):
        with pytest.raises(SystemExit):
            typed(lib, ["q"], as_it_is, X)


def test_a_token_has_no_order():
    for lib in (minijax, jax):
        with pytest.raises(ValueError, match="mutually exclusive"):
            lib.debug.breakpoint(ordered=True, token=1.0)
