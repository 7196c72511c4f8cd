"""What Diffrax' documentation does: ordinary, stochastic and controlled differential equations."""

import diffrax
import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)


def solved(solver, y0=1.0, rate=0.5, controller=None, saveat=None, adjoint=None, dt0=0.1):
    term = diffrax.ODETerm(lambda t, y, args: -args * y)
    return diffrax.diffeqsolve(
        term, solver, 0.0, 2.0, dt0, jnp.asarray(y0), args=rate,
        saveat=saveat or diffrax.SaveAt(t1=True),
        stepsize_controller=controller or diffrax.ConstantStepSize(),
        adjoint=adjoint or diffrax.RecursiveCheckpointAdjoint())


def decay_at_some_times():
    return solved(diffrax.Tsit5(), saveat=diffrax.SaveAt(ts=jnp.linspace(0, 2, 5))).ys


def steps_adapt():
    solution = solved(diffrax.Dopri5(), controller=diffrax.PIDController(rtol=1e-6, atol=1e-8),
                      dt0=None)
    return solution.ys, solution.stats["num_accepted_steps"]


def simple_solvers():
    return [solved(s).ys for s in (diffrax.Euler(), diffrax.Heun(), diffrax.Midpoint())]


def a_solution_is_differentiated():
    def final(rate):
        return solved(diffrax.Heun(), rate=rate).ys[0]
    return jax.grad(final)(0.5)


def derivatives_run_forwards():
    def final(rate):
        return solved(diffrax.Heun(), rate=rate, adjoint=diffrax.ForwardMode()).ys[0]
    return jax.jvp(final, (0.5,), (1.0,))


def a_stiff_equation_is_implicit():
    return solved(diffrax.Kvaerno3(), rate=20.0, dt0=None,
                  controller=diffrax.PIDController(rtol=1e-5, atol=1e-7)).ys


def noise_drives():
    drift = diffrax.ODETerm(lambda t, y, args: -y)
    brownian = diffrax.VirtualBrownianTree(0.0, 1.0, tol=1e-2, shape=(), key=jax.random.key(0))
    terms = diffrax.MultiTerm(drift, diffrax.ControlTerm(lambda t, y, args: 0.1, brownian))
    return diffrax.diffeqsolve(terms, diffrax.EulerHeun(), 0.0, 1.0, 0.1, jnp.array(1.0)).ys


def an_event_stops():
    term = diffrax.ODETerm(lambda t, y, args: jnp.array([y[1], -9.8]))
    event = diffrax.Event(lambda t, y, args, **kwargs: y[0] < 0)
    return diffrax.diffeqsolve(term, diffrax.Tsit5(), 0.0, 5.0, 0.05, jnp.array([1.0, 0.0]),
                               event=event).ts


def dense_output_is_interpolated():
    solution = solved(diffrax.Tsit5(), saveat=diffrax.SaveAt(dense=True))
    path = diffrax.LinearInterpolation(jnp.arange(3.0), jnp.array([0.0, 2.0, 1.0]))
    return solution.evaluate(0.73), path.evaluate(1.5), path.derivative(0.5)
