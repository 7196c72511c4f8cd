"""Loop unswitching: a test that a loop does not change is made before it."""

from dataclasses import replace

import numpy as np
import pytest

from minijax import jit, lax, numpy as jnp
from minijax.compiler.loop_unswitching import unswitch_loops
from minijax.compiler.loops import For, If, walk
from tests.running_text import run_text


X = np.linspace(-3, 3, 200, dtype=np.float32)
PROGRAMS = {
    "a costly side": lambda flag, x: jnp.where(flag, jnp.tanh(jnp.sin(x)), x),
    "the other side": lambda flag, x: jnp.where(flag, x, jnp.exp(x) / x),
    "two of them": lambda flag, x: jnp.where(flag, jnp.sin(x), x) * jnp.where(~flag, 2, x / 3),
    "a nan where nobody looks": lambda flag, x: jnp.where(flag, x, jnp.sqrt(jnp.log(x))),
}


def kernels(f, *args):
    """The kernel of a function, before and after."""
    kernel = jit(f).lower(*args)._lowered.kernel
    return kernel, replace(kernel, body=unswitch_loops(kernel.body))


def choices(kernel):
    """The most choices that a loop makes in an iteration."""
    return max(sum(isinstance(each, If) or getattr(each, "op", "") == "select"
                   for each in walk(loop.body)) for loop in walk(kernel.body)
               if isinstance(loop, For))


@pytest.mark.parametrize("flag", [True, False])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_loop_has_the_numbers_of_the_side_that_is_taken(name, flag):
    f = PROGRAMS[name]
    whole, unswitched = kernels(f, flag, X)
    assert choices(unswitched) < choices(whole)
    given = [np.array(flag), X]
    np.testing.assert_array_equal(run_text(unswitched, given), run_text(whole, given))
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(jit(f)(flag, X), f(jnp.asarray(flag), X), rtol=1e-6)


@pytest.mark.parametrize("f", [
    lambda flag, x: jnp.where(flag, x, x + 1),  # both sides cost little
    lambda flag, x: jnp.where(x > 0, jnp.tanh(jnp.sin(x)), x)])  # it differs between elements
def test_other_loops_stay_whole(f):
    whole, same = kernels(f, True, X)
    assert [*walk(same.body)] == [*walk(whole.body)]


def test_a_flag_that_changes_between_rounds_is_asked_in_each():
    def f(x):
        def step(k, x):
            return jnp.where(x[k] > 0, jnp.tanh(jnp.sin(x * 3)), x)
        return lax.fori_loop(0, 200, step, x)
    wanted = X
    for k in range(200):
        wanted = np.tanh(np.sin(wanted * 3)) if wanted[k] > 0 else wanted
    np.testing.assert_allclose(jit(f)(X), wanted, rtol=1e-4)
