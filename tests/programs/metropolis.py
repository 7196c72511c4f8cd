"""Metropolis-Hastings in one scan, four chains at once: samples from a banana."""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax, random, vmap


def log_density(x):
    return -0.5 * (x[0] ** 2 / 4 + (x[1] - 0.5 * x[0] ** 2 + 2) ** 2)


def metropolis_step(log_density, width, state, key):
    x, log_p = state
    propose_key, accept_key = random.split(key)
    proposal = x + width * random.normal(propose_key, x.shape)
    log_q = log_density(proposal)
    accept = jnp.log(random.uniform(accept_key)) < log_q - log_p
    x = jnp.where(accept, proposal, x)
    return (x, jnp.where(accept, log_q, log_p)), (x, accept)


@partial(jax.jit, static_argnums=(2,))
def sample(key, start, steps):
    step = partial(metropolis_step, log_density, 0.9)
    _, (path, accepted) = lax.scan(step, (start, log_density(start)), random.split(key, steps))
    return path, jnp.mean(accepted)


def main():
    keys = random.split(random.PRNGKey(42), 4)
    starts = jnp.array([[0.0, 0.0], [1.0, -1.0], [-1.0, 2.0], [3.0, 3.0]])
    paths, rates = vmap(lambda key, start: sample(key, start, 300))(keys, starts)
    kept = paths[:, 50:]
    centred = (kept - kept.mean(axis=(0, 1))).reshape(-1, 2)
    return {"paths": paths, "rates": rates, "mean": jnp.mean(kept, axis=(0, 1)),
            "covariance": centred.T @ centred / (len(centred) - 1),
            "quantiles": jnp.quantile(kept, jnp.array([0.1, 0.5, 0.9]), axis=(0, 1))}


if __name__ == "__main__":
    print(main())
