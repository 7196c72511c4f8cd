"""What BlackJAX's documentation does: samplers of a density, their adaptation, and diagnostics."""

import blackjax
import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)
KEY = jax.random.key(3)


def log_density(x):
    return -0.5 * jnp.sum((x["a"] - 1) ** 2) - 0.5 * (x["b"] / 2) ** 2


START = {"a": jnp.zeros(2), "b": jnp.ones(())}


def samples(algorithm, count=6):
    @jax.jit
    def step(state, key):
        state, info = algorithm.step(key, state)
        return state, (state.position, getattr(info, "acceptance_rate", 0.0))
    return jax.lax.scan(step, algorithm.init(START), jax.random.split(KEY, count))[1]


def hamiltonian_monte_carlo_samples():
    return samples(blackjax.hmc(log_density, 0.3, jnp.ones(3), 5))


def a_random_walk_samples():
    return samples(blackjax.additive_step_random_walk(
        log_density, blackjax.mcmc.random_walk.normal(jnp.ones(3) * 0.5)))


def langevin_samples():
    return samples(blackjax.mala(log_density, 0.2))


def an_ellipse_is_sliced():
    sampler = blackjax.elliptical_slice(lambda x: -0.5 * jnp.sum((x - 1) ** 2), mean=jnp.zeros(2),
                                        cov=jnp.eye(2))
    state = sampler.init(jnp.zeros(2))
    return jax.lax.scan(lambda s, k: (lambda new: (new, new.position))(sampler.step(k, s)[0]),
                        state, jax.random.split(KEY, 5))[1]


def chains_are_judged():
    draws = jax.random.normal(KEY, (4, 20, 2)).cumsum(1)
    return (blackjax.diagnostics.potential_scale_reduction(draws),
            blackjax.diagnostics.effective_sample_size(draws))


def stochastic_gradients_walk():
    data = jax.random.normal(KEY, (8, 2)) + 1
    gradient = blackjax.sgmcmc.gradients.grad_estimator(
        lambda x: -0.5 * jnp.sum(x**2), lambda x, d: -0.5 * jnp.sum((d - x) ** 2), 8)
    sampler = blackjax.sgld(gradient)
    step = jax.jit(sampler.step)
    x = sampler.init(jnp.zeros(2))
    for i, key in enumerate(jax.random.split(KEY, 3)):
        x = step(key, x, data[i:i + 4], 1e-2)
    return x
