"""What JAXopt's documentation does: solvers, projections, losses."""

import jax
import jax.numpy as jnp
import jaxopt

jax.config.update("jax_enable_x64", True)
KEY = jax.random.key(1)
X = jax.random.normal(KEY, (12, 3))
Y = X @ jnp.array([1.0, 0.0, -2.0]) + 0.01 * jnp.cos(jnp.arange(12))


def ridge(w, l2=0.1):
    return jnp.mean((X @ w - Y) ** 2) + 0.5 * l2 * jnp.sum(w**2)


def gradient_descent_finds_a_minimum():
    solver = jaxopt.GradientDescent(ridge, maxiter=60, tol=1e-9)
    return solver.run(jnp.zeros(3), l2=0.2).params


def quasi_newton_finds_it_sooner():
    return (jaxopt.LBFGS(ridge, maxiter=10).run(jnp.zeros(3)).params,
            jaxopt.BFGS(ridge, maxiter=10).run(jnp.zeros(3)).params)


def projections_stay_inside():
    solver = jaxopt.ProjectedGradient(ridge, jaxopt.projection.projection_simplex,
                                      maxiter=100)
    return (solver.run(jnp.ones(3) / 3).params,
            jaxopt.projection.projection_l2_ball(jnp.array([3.0, 4.0]), 1.0),
            jaxopt.projection.projection_box(jnp.array([-1.0, 4.0]), (0.0, 1.0)))


def a_lasso_is_sparse():
    solver = jaxopt.ProximalGradient(jaxopt.objective.least_squares, jaxopt.prox.prox_lasso,
                                     maxiter=100)
    return solver.run(jnp.zeros(3), hyperparams_prox=0.3, data=(X, Y)).params


def roots_and_fixed_points():
    bisection = jaxopt.Bisection(lambda x: x**3 - 2, 0.0, 2.0, tol=1e-12, maxiter=60)
    fixed = jaxopt.FixedPointIteration(jnp.cos, maxiter=80, tol=1e-12)
    return bisection.run().params, fixed.run(jnp.array(1.0)).params


def losses_and_updates_by_hand():
    solver = jaxopt.GradientDescent(ridge, stepsize=0.1, acceleration=False)
    params = jnp.zeros(3)
    state = solver.init_state(params)
    for _ in range(3):
        params, state = solver.update(params, state)
    return params, jaxopt.loss.binary_logistic_loss(1, 0.3), jaxopt.loss.huber_loss(1.0, 3.0)
