"""A multilayer perceptron learns two spirals, by stochastic gradient descent with momentum."""

import jax
import jax.numpy as jnp
from jax import grad, jit, random, value_and_grad, vmap

SIZES = [2, 32, 32, 2]


def spirals(key, count):
    """Points of two spiral arms, and which arm each is on."""
    angle_key, noise_key = random.split(key)
    label = jnp.arange(count) % 2
    angle = 6 * jnp.sqrt(random.uniform(angle_key, (count,))) + 0.3
    turned = angle + jnp.pi * label
    points = jnp.stack([angle * jnp.cos(turned), angle * jnp.sin(turned)], axis=1)
    return points / 4 + 0.05 * random.normal(noise_key, (count, 2)), label


def init_params(key):
    keys = random.split(key, len(SIZES) - 1)
    return [{"w": random.normal(k, (m, n)) * jnp.sqrt(2 / m), "b": jnp.zeros(n)}
            for k, m, n in zip(keys, SIZES[:-1], SIZES[1:], strict=True)]


def predict(params, x):
    for layer in params[:-1]:
        x = jnp.tanh(x @ layer["w"] + layer["b"])
    return x @ params[-1]["w"] + params[-1]["b"]


def loss(params, points, labels):
    log_probabilities = jax.nn.log_softmax(predict(params, points))
    return -jnp.mean(log_probabilities[jnp.arange(len(labels)), labels])


@jit
def update(params, velocity, points, labels, step_size=0.1, momentum=0.9):
    value, grads = value_and_grad(loss)(params, points, labels)
    velocity = jax.tree.map(lambda v, g: momentum * v - step_size * g, velocity, grads)
    params = jax.tree.map(lambda p, v: p + v, params, velocity)
    return params, velocity, value


def main():
    data_key, init_key = random.split(random.PRNGKey(0))
    points, labels = spirals(data_key, 256)
    params = init_params(init_key)
    first_gradient = grad(loss)(params, points, labels)
    velocity = jax.tree.map(jnp.zeros_like, params)
    losses = []
    for step in range(80):
        batch = slice(64 * (step % 4), 64 * (step % 4 + 1))
        params, velocity, value = update(params, velocity, points[batch], labels[batch])
        losses.append(value)
    guesses = vmap(lambda x: jnp.argmax(predict(params, x)))(points)
    return {"losses": jnp.stack(losses), "params": params,
            "first gradient": first_gradient,
            "accuracy": jnp.mean(guesses == labels)}


if __name__ == "__main__":
    print(main())
