"""Context variables: ours are as they were after a call, the user's are as the call left them."""

import contextvars

import jax
import numpy as np
import pytest

import minijax
from minijax import core
from minijax.util.context import with_values
from minijax.sharp_bits import findings

X = np.array([0.5, -0.3, 1.2], np.float32)
seen: contextvars.ContextVar[int] = contextvars.ContextVar("seen", default=0)


def custom_jvp(lib, f):
    wrapped = lib.custom_jvp(lambda x: x)

    @wrapped.defjvp
    def rule(primals, tangents):
        return f(primals[0]), tangents[0]
    return lambda x: lib.jvp(wrapped, (x,), (x,))


def custom_vjp(lib, f):
    wrapped = lib.custom_vjp(lambda x: x)
    wrapped.defvjp(lambda x: (x, x), lambda x, ct: (f(ct),))
    return lib.grad(lambda x: wrapped(x).sum())


RUNS = {
    "jit": lambda lib, f: lib.jit(f),
    "grad": lambda lib, f: lib.grad(lambda x: f(x).sum()),
    "vmap": lambda lib, f: lib.vmap(f),
    "jvp": lambda lib, f: lambda x: lib.jvp(f, (x,), (x,)),
    "vjp": lambda lib, f: lambda x: lib.vjp(f, x)[1](x),
    "linearize": lambda lib, f: lambda x: lib.linearize(f, x)[1](x),
    "linear_transpose": lambda lib, f: lambda x: lib.linear_transpose(f, x)(x),
    "hessian": lambda lib, f: lib.hessian(lambda x: f(x).sum()),
    "grad of jit of vmap": lambda lib, f: lib.grad(lambda x: lib.jit(lib.vmap(f))(x).sum()),
    "make_jaxpr": lambda lib, f: lib.make_jaxpr(f),
    "eval_shape": lambda lib, f: lambda x: lib.eval_shape(f, x),
    "checkpoint": lambda lib, f: lib.grad(lambda x: lib.checkpoint(f)(x).sum()),
    "scan": lambda lib, f: lambda x: lib.lax.scan(lambda c, y: (c, f(y)), 0, x),
    "cond": lambda lib, f: lambda x: lib.lax.cond(True, f, lambda x: x, x),
    "while_loop": lambda lib, f: lambda x: lib.lax.while_loop(lambda x: x[0] > 9, f, x),
    "custom_jvp": custom_jvp,
    "custom_vjp": custom_vjp,
}


def left_by(lib, run):
    """What a function that counts its runs in a variable, and undoes the last, leaves there."""
    tokens = []

    def f(x):
        tokens.append(seen.set(seen.get() + 1))
        return x * 2

    def call():
        run(lib, f)(X)
        left = seen.get()
        seen.reset(tokens[-1])  # fails in any other context than that of `set`
        return left > 0, seen.get() == left - 1
    return contextvars.copy_context().run(call)


@pytest.mark.parametrize("name", RUNS)
def test_what_a_users_function_sets_stays_set_as_in_jax(name):
    assert left_by(minijax, RUNS[name]) == left_by(jax, RUNS[name]) == (True, True)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("name", RUNS)
def test_an_exception_leaves_no_trace_of_the_transformation(name, error):
    def f(x):
        seen.set(1)
        raise error

    def call():
        with pytest.raises(error):
            RUNS[name](minijax, f)(X)
        assert seen.get() == 1
        assert core.current_trace.get() is core.base_trace
        assert core.current_source.get() is None
        assert findings.current_steps.get() == ()
    contextvars.copy_context().run(call)


def test_a_variable_holds_its_value_for_the_time_of_the_call_alone():
    assert with_values({seen: 3}, lambda more: (seen.get(), more), 4) == (3, 4)
    with pytest.raises(ZeroDivisionError):
        with_values({seen: 3}, lambda: 1 / 0)
    assert seen.get() == 0
