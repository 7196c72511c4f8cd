"""A recurrent network learns to add the numbers that were marked, by a gradient through a scan."""

import jax
import jax.numpy as jnp
from jax import jit, lax, random, value_and_grad, vmap

HIDDEN = 24


def init_params(key):
    k1, k2, k3 = random.split(key, 3)
    return {"in": random.normal(k1, (2, HIDDEN)) / 2,
            "again": 0.9 * jnp.eye(HIDDEN) + 0.05 * random.normal(k2, (HIDDEN, HIDDEN)),
            "bias": jnp.zeros(HIDDEN),
            "out": random.normal(k3, (HIDDEN,)) / 5}


def run(params, sequence):
    def cell(hidden, x):
        hidden = jnp.tanh(x @ params["in"] + hidden @ params["again"] + params["bias"])
        return hidden, hidden @ params["out"]
    return lax.scan(cell, jnp.zeros(HIDDEN), sequence)


def loss(params, sequences, targets):
    _, outputs = vmap(run, in_axes=(None, 0))(params, sequences)
    return jnp.mean((outputs[:, -1] - targets) ** 2)


def problems(key, count, length=20):
    values_key, marks_key = random.split(key)
    values = random.uniform(values_key, (count, length))
    marks = random.bernoulli(marks_key, 0.2, (count, length)).astype(jnp.float32)
    return jnp.stack([values, marks], axis=-1), jnp.sum(values * marks, axis=1)


@jit
def step(params, sequences, targets):
    value, grads = value_and_grad(loss)(params, sequences, targets)
    length = jnp.sqrt(sum(jnp.sum(g ** 2) for g in jax.tree.leaves(grads)))
    shrink = 0.05 * jnp.minimum(1.0, 1.0 / length)
    return jax.tree.map(lambda p, g: p - shrink * g, params, grads), value


def main():
    init_key, data_key = random.split(random.PRNGKey(5))
    params = init_params(init_key)
    sequences, targets = problems(data_key, 32)
    values = []
    for _ in range(30):
        params, value = step(params, sequences, targets)
        values.append(value)
    hidden, outputs = run(params, sequences[0])
    return {"losses": jnp.stack(values), "params": params, "hidden": hidden, "outputs": outputs}


if __name__ == "__main__":
    print(main())
