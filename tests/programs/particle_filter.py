"""A particle filter follows a hidden number through noise: scan, random numbers, resampling."""

import jax
import jax.numpy as jnp
from jax import lax, random, vmap
from jax.nn import logsumexp

PARTICLES = 200


def move(x, t, noise):
    return 0.5 * x + 25 * x / (1 + x ** 2) + 8 * jnp.cos(1.2 * t) + noise


def observe(x):
    return x ** 2 / 20


def simulate(key, steps):
    def step(x, inputs):
        t, k = inputs
        k1, k2 = random.split(k)
        x = move(x, t, random.normal(k1))
        return x, (x, observe(x) + random.normal(k2))
    times = jnp.arange(steps, dtype=jnp.float32)
    return lax.scan(step, 0.1, (times, random.split(key, steps)))[1]


def systematic(key, weights):
    """Indices of the survivors: each particle as often as its weight says."""
    places = (jnp.arange(PARTICLES) + random.uniform(key)) / PARTICLES
    return jnp.clip(jnp.searchsorted(jnp.cumsum(weights), places), 0, PARTICLES - 1)


@jax.jit
def particle_filter(key, observations):
    def step(carry, inputs):
        particles, log_likelihood = carry
        t, y, k = inputs
        move_key, resample_key = random.split(k)
        noise = random.normal(move_key, (PARTICLES,))
        particles = vmap(move, in_axes=(0, None, 0))(particles, t, noise)
        log_weights = -0.5 * (y - observe(particles)) ** 2
        total = logsumexp(log_weights)
        weights = jnp.exp(log_weights - total)
        mean = jnp.sum(weights * particles)
        effective = 1 / jnp.sum(weights ** 2)
        particles = particles[systematic(resample_key, weights)]
        return (particles, log_likelihood + total - jnp.log(PARTICLES)), (mean, effective)

    start_key, key = random.split(key)
    steps = len(observations)
    start = (random.normal(start_key, (PARTICLES,)), 0.0)
    times = jnp.arange(steps, dtype=jnp.float32)
    return lax.scan(step, start, (times, observations, random.split(key, steps)))


def main():
    data_key, filter_key = random.split(random.PRNGKey(1))
    hidden, observations = simulate(data_key, 30)
    (particles, log_likelihood), (means, effective) = particle_filter(filter_key, observations)
    return {"hidden": hidden, "observations": observations, "particles": particles,
            "log likelihood": log_likelihood, "means": means, "effective": effective}


if __name__ == "__main__":
    print(main())
