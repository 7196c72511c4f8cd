"""A small convolutional network, its convolutions by einsum over patches, tells shapes apart."""

import jax
import jax.numpy as jnp
from jax import jit, random, value_and_grad

CLASSES = 3


def patches(images, size):
    """(n, h, w, c) to (n, h - size + 1, w - size + 1, size, size, c)."""
    height, width = images.shape[1] - size + 1, images.shape[2] - size + 1
    rows = jnp.arange(height)[:, None] + jnp.arange(size)
    columns = jnp.arange(width)[:, None] + jnp.arange(size)
    return images[:, rows[:, None, :, None], columns[None, :, None, :]]


def convolve(images, kernel, bias):
    return jnp.einsum("nhwijc,ijco->nhwo", patches(images, kernel.shape[0]), kernel) + bias


def max_pool(x):
    n, h, w, c = x.shape
    return x.reshape(n, h // 2, 2, w // 2, 2, c).max(axis=(2, 4))


def init_params(key):
    k1, k2, k3 = random.split(key, 3)
    he = jax.nn.initializers.he_normal()
    return {"conv1": (random.normal(k1, (3, 3, 1, 6)) * 0.4, jnp.zeros(6)),
            "conv2": (random.normal(k2, (3, 3, 6, 8)) * 0.2, jnp.zeros(8)),
            "dense": (he(k3, (2 * 2 * 8, CLASSES)), jnp.zeros(CLASSES))}


def predict(params, images):
    x = max_pool(jax.nn.relu(convolve(images, *params["conv1"])))
    x = max_pool(jax.nn.relu(convolve(x, *params["conv2"])))
    weights, bias = params["dense"]
    return x.reshape(len(x), -1) @ weights + bias


def loss(params, images, labels):
    wanted = jax.nn.one_hot(labels, CLASSES)
    return -jnp.mean(jnp.sum(wanted * jax.nn.log_softmax(predict(params, images)), axis=-1))


@jit
def update(params, images, labels):
    value, grads = value_and_grad(loss)(params, images, labels)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value


def shapes(key, count):
    """Pictures of a bar, a column or a diagonal in noise, 14 by 14."""
    label_key, place_key, noise_key = random.split(key, 3)
    labels = random.randint(label_key, (count,), 0, CLASSES)
    place = random.randint(place_key, (count, 1, 1), 2, 12)
    row, column = jnp.indices((14, 14))
    drawn = jnp.stack([row == place, column == place, (row + column) % 14 == place], axis=1)
    images = jnp.take_along_axis(drawn, labels[:, None, None, None], axis=1)[:, 0]
    return images[..., None] + 0.2 * random.normal(noise_key, (count, 14, 14, 1)), labels


def main():
    init_key, data_key = random.split(random.PRNGKey(6))
    images, labels = shapes(data_key, 48)
    params = init_params(init_key)
    values = []
    for _ in range(12):
        params, value = update(params, images, labels)
        values.append(value)
    logits = predict(params, images)
    return {"losses": jnp.stack(values), "params": params, "logits": logits,
            "accuracy": jnp.mean(jnp.argmax(logits, -1) == labels)}


if __name__ == "__main__":
    print(main())
