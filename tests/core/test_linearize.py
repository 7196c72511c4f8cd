"""Linearization: primal work is done once, the derivative is a linear program."""

import numpy as np

import minijax
import minijax.numpy as jnp
from minijax import core, lax
from minijax.core.linearize import linearize_flat

X = np.array([0.5, -0.3, 1.2], np.float32)


def at(f, *args):
    return linearize_flat(lambda *xs: [f(*xs)], [core.as_value(x) for x in args])


def test_the_derivative_program_holds_no_primal_work():
    _, derivative = at(lambda x: jnp.sin(x) * jnp.exp(x), X)
    names = {eqn.primitive.name for eqn in derivative.closed.eqns}
    assert names <= {"mul", "add_any"}


def test_it_agrees_with_jvp():
    f = lambda x: jnp.tanh(x) * x.sum()  # noqa: E731
    _, derivative = at(f, X)
    np.testing.assert_allclose(derivative(X)[0], minijax.jvp(f, (X,), (X,))[1], rtol=1e-6)


def test_the_function_runs_once():
    calls = []

    def f(x):
        calls.append(1)
        return jnp.sin(x)
    _, derivative = at(f, X)
    derivative(X)
    derivative(X)
    assert calls == [1]


def test_integers_take_no_part():
    _, derivative = at(lambda x, n: x * n, X, 3)
    assert derivative.in_has_tangent == (True, False)


def test_a_loop_of_unknown_length_can_be_linearized():
    f = lambda x: lax.while_loop(lambda c: c.sum() < 50, lambda c: c * 2, x)  # noqa: E731
    y, derivative = minijax.linearize(f, X)
    np.testing.assert_allclose(derivative(X), minijax.jvp(f, (X,), (X,))[1])
