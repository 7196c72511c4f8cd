"""A network of stax layers with dropout, trained by adam: as the examples of the early days do."""

import itertools

import jax.numpy as jnp
from jax import grad, jit, random
from jax.example_libraries import optimizers, stax
from jax.example_libraries.stax import Dense, Dropout, FanInSum, FanOut, Identity, LogSoftmax, Tanh

init_random_params, predict = stax.serial(
    Dense(16), Tanh,
    FanOut(2), stax.parallel(stax.serial(Dense(16), Tanh), Identity),
    FanInSum, Dropout(0.9), Dense(3), LogSoftmax)


def loss(params, batch, key):
    inputs, targets = batch
    return -jnp.mean(jnp.sum(predict(params, inputs, rng=key) * targets, axis=1))


def accuracy(params, batch, key):
    inputs, targets = batch
    guesses = jnp.argmax(predict(params, inputs, rng=key), axis=1)
    return jnp.mean(guesses == jnp.argmax(targets, axis=1))


def rings(key, count):
    """Points on three rings, and which ring each is on."""
    keys = random.split(key, 3)
    label = random.randint(keys[0], (count,), 0, 3)
    angle = random.uniform(keys[1], (count,), maxval=2 * jnp.pi)
    radius = 1 + label + 0.2 * random.normal(keys[2], (count,))
    points = jnp.stack([radius * jnp.cos(angle), radius * jnp.sin(angle)], axis=1)
    return points, jnp.array(label[:, None] == jnp.arange(3), jnp.float32)


def main():
    data_key, init_key, key = random.split(random.PRNGKey(9), 3)
    batch = rings(data_key, 128)
    opt_init, opt_update, get_params = optimizers.adam(
        optimizers.inverse_time_decay(0.02, 10, 0.1))

    @jit
    def update(i, opt_state, batch, key):
        grads = optimizers.clip_grads(grad(loss)(get_params(opt_state), batch, key), 1.0)
        return opt_update(i, grads, opt_state)

    output_shape, params = init_random_params(init_key, (-1, 2))
    opt_state = opt_init(params)
    itercount = itertools.count()
    *step_keys, loss_key, accuracy_key = random.split(key, 42)
    for step_key in step_keys:
        opt_state = update(next(itercount), opt_state, batch, step_key)
    params = get_params(opt_state)
    return {"output size": output_shape[-1], "params": params,
            "loss": loss(params, batch, loss_key),
            "accuracy": accuracy(params, batch, accuracy_key)}


if __name__ == "__main__":
    print(main())
