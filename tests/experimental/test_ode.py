"""Solutions of differential equations and their derivatives are those that JAX finds."""

from types import SimpleNamespace

import jax
import jax.experimental.ode
import numpy as np
import pytest

import minijax
import minijax.experimental.ode

BOTH = [SimpleNamespace(jax=library, jnp=library.numpy, odeint=ode.odeint) for library, ode in (
    (minijax, minijax.experimental.ode), (jax, jax.experimental.ode))]
Y, TIMES = np.float32([1., .2]), np.linspace(0, 5, 7).astype(np.float32)
LIMITS = {"rtol": 1e-5, "atol": 1e-5}


def agree(found, rtol=1e-4, atol=1e-5):
    mine, other = (m.jax.tree.leaves(found(m)) for m in BOTH)
    for a, b in zip(mine, other, strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)
        assert a.dtype == b.dtype


def pendulum(m):
    return lambda y, t, a, b: m.jnp.array([y[1], -a * m.jnp.sin(y[0]) - b * m.jnp.sin(t) * y[1]])


def test_solution():
    agree(lambda m: m.odeint(pendulum(m), m.jnp.array(Y), m.jnp.array(TIMES), 2., .3, **LIMITS))


def test_derivatives():
    def found(m):
        def loss(*args):
            return m.jnp.sum(m.odeint(pendulum(m), *args, **LIMITS) ** 2)
        return m.jax.grad(loss, argnums=(0, 1, 2, 3))(
            m.jnp.array(Y), m.jnp.array(TIMES), 2., .3)
    agree(found, 1e-3)


def test_derivative_by_what_is_closed_over():
    agree(lambda m: m.jax.grad(lambda w: m.odeint(
        lambda y, t: -w * y, m.jnp.array(Y), m.jnp.array(TIMES), **LIMITS).sum())(1.5), 1e-3)


def test_trees_and_jit():
    def found(m):
        def solved(y):
            return m.odeint(lambda y, t: {"a": -y["a"], "b": y["b"] * t}, y, m.jnp.array(TIMES[:3]),
                            **LIMITS)
        return m.jax.jit(solved)({"a": m.jnp.array(Y), "b": m.jnp.float32(.1)})
    agree(found)


def test_vmap():
    agree(lambda m: m.jax.vmap(lambda a: m.odeint(
        lambda y, t: -a * y, m.jnp.array(Y), m.jnp.array(TIMES), **LIMITS))(
            m.jnp.array([1., 2.])))


def test_complex():
    agree(lambda m: m.odeint(lambda y, t: 1j * y, m.jnp.array(Y.astype(np.complex64)),
                             m.jnp.array(TIMES), **LIMITS))


def test_limits_of_steps():
    for limits, times in ({"hmax": .1}, TIMES), ({"mxstep": 4}, TIMES[:2] / 2):
        agree(lambda m, limits=limits, times=times: m.odeint(
            lambda y, t: -y, m.jnp.array(Y), m.jnp.array(times), **LIMITS, **limits))


@pytest.mark.parametrize("times, args", [([0, 1], ()), ([0., 1.], ("a",))])
def test_refused(times, args):
    told = []
    for m in BOTH:
        with pytest.raises(TypeError) as error:
            m.odeint(lambda y, t, *_: y, m.jnp.array(Y), m.jnp.array(times), *args)
        told.append(str(error.value))
    assert told[0] == told[1]


@pytest.mark.parametrize("start", [1, True, {"a": np.arange(2)}])
def test_a_start_that_no_step_can_change_is_refused(start):
    for m in BOTH:
        with pytest.raises(TypeError):
            m.odeint(lambda y, t: y, start, m.jnp.array([0., 1.]))


def test_a_start_of_nothing_or_with_an_integer_beside_a_float_is_not_refused():
    for start in ({}, {"a": 1., "n": 2}):
        ours, theirs = (m.odeint(lambda y, t: y, start, m.jnp.array([0., 1.])) for m in BOTH)
        assert str(ours.get("n")) == str(theirs.get("n"))
