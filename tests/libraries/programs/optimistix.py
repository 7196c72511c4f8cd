"""What Optimistix' documentation does: roots, minima, fixed points."""

import jax
import jax.numpy as jnp
import optimistix as optx

jax.config.update("jax_enable_x64", True)


def a_root_is_found():
    def f(y, args):
        return jnp.array([jnp.tanh(y[0]) + y[1] - args, y[0] - y[1] ** 3])
    return optx.root_find(f, optx.Newton(rtol=1e-8, atol=1e-8), jnp.zeros(2), 0.5).value


def a_root_is_bracketed():
    return optx.root_find(lambda y, a: y**3 - a, optx.Bisection(rtol=1e-8, atol=1e-8), 1.0, 2.0,
                          options={"lower": 0.0, "upper": 3.0}).value


def rosenbrock(y, args):
    return jnp.sum(100 * (y[1:] - y[:-1] ** 2) ** 2 + (1 - y[:-1]) ** 2)


def a_minimum_is_found():
    return (optx.minimise(rosenbrock, optx.BFGS(rtol=1e-7, atol=1e-7), jnp.zeros(2)).value,
            optx.minimise(rosenbrock, optx.NonlinearCG(rtol=1e-5, atol=1e-5), jnp.zeros(2),
                          max_steps=20, throw=False).value)


def a_fixed_point_and_its_derivative():
    def found(a):
        solver = optx.FixedPointIteration(rtol=1e-10, atol=1e-10)
        return optx.fixed_point(lambda y, a: jnp.cos(a * y), solver, jnp.array(0.5), a).value
    return found(1.0), jax.grad(found)(1.0)


def a_chord_is_drawn():
    return optx.root_find(lambda y, a: jnp.exp(y) - a, optx.Chord(rtol=1e-9, atol=1e-9), 0.5, 2.0,
                          max_steps=64).value


def gradients_descend():
    solver = optx.GradientDescent(learning_rate=0.1, rtol=1e-6, atol=1e-6)
    return optx.minimise(lambda y, a: jnp.sum((y - a) ** 2), solver, jnp.zeros(2), 3.0).value
