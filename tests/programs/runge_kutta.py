"""Foxes and rabbits: a differential equation by RK4 in a scan, and its rates fitted through it."""

import jax
import jax.numpy as jnp
from jax import jit, lax


def lotka_volterra(state, rates):
    prey, predators = state
    born, eaten, fed, dead = rates
    return jnp.array([born * prey - eaten * prey * predators,
                      fed * prey * predators - dead * predators])


def rk4_step(f, y, dt, *args):
    k1 = f(y, *args)
    k2 = f(y + dt / 2 * k1, *args)
    k3 = f(y + dt / 2 * k2, *args)
    k4 = f(y + dt * k3, *args)
    return y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def integrate(f, y0, dt, steps, *args):
    def step(y, _):
        y = rk4_step(f, y, dt, *args)
        return y, y
    return lax.scan(step, y0, None, length=steps)


START = jnp.array([2.0, 1.0])
TRUE = jnp.array([1.1, 0.4, 0.1, 0.4])


def loss(log_rates, observed):
    _, path = integrate(lotka_volterra, START, 0.1, 80, jnp.exp(log_rates))
    return jnp.mean((path[::10] - observed) ** 2)


@jit
def descend(log_rates, observed):
    value, slope = jax.value_and_grad(loss)(log_rates, observed)
    return log_rates - 0.002 * slope, value


def main():
    last, path = jit(lambda rates: integrate(lotka_volterra, START, 0.1, 80, rates))(TRUE)
    observed = path[::10]
    log_rates = jnp.log(jnp.array([1.0, 0.5, 0.15, 0.5]))
    values = []
    for _ in range(20):
        log_rates, value = descend(log_rates, observed)
        values.append(value)
    sensitivity = jax.jacfwd(lambda rates: integrate(lotka_volterra, START, 0.1, 80, rates)[0])
    return {"last": last, "path": path, "rates": jnp.exp(log_rates),
            "losses": jnp.stack(values), "sensitivity": sensitivity(TRUE)}


if __name__ == "__main__":
    print(main())
