"""The gradient of every example by itself; clipped, averaged and blurred: private learning."""

import jax
import jax.numpy as jnp
from jax import grad, jit, random, vmap


def predict(params, x):
    hidden = jax.nn.relu(x @ params["hidden"]["w"] + params["hidden"]["b"])
    return (hidden @ params["out"]["w"] + params["out"]["b"])[0]


def loss(params, x, y):
    return jnp.logaddexp(0.0, -y * predict(params, x))


per_example = jit(vmap(grad(loss), in_axes=(None, 0, 0)))


def norm(tree):
    return jnp.sqrt(sum(jnp.vdot(x, x) for x in jax.tree.leaves(tree)))


@jit
def private_step(params, key, xs, ys, limit=0.5, noise=0.1, step_size=0.2):
    grads = vmap(grad(loss), in_axes=(None, 0, 0))(params, xs, ys)
    norms = vmap(norm)(grads)
    scales = jnp.minimum(1.0, limit / norms)
    clipped = jax.tree.map(lambda g: jnp.einsum("i,i...->...", scales, g) / len(xs), grads)
    leaves, treedef = jax.tree.flatten(clipped)
    keys = random.split(key, len(leaves))
    noisy = [g + noise * limit / len(xs) * random.normal(k, g.shape)
             for g, k in zip(leaves, keys, strict=True)]
    noisy = jax.tree.unflatten(treedef, noisy)
    return jax.tree.map(lambda p, g: p - step_size * g, params, noisy), norms


def main():
    keys = random.split(random.PRNGKey(7), 5)
    xs = random.normal(keys[0], (32, 5))
    ys = jnp.sign(xs[:, 0] * xs[:, 1])
    params = {"hidden": {"w": random.normal(keys[1], (5, 16)) / 2, "b": jnp.zeros(16)},
              "out": {"w": random.normal(keys[2], (16, 1)) / 4, "b": jnp.zeros(1)}}
    first = per_example(params, xs, ys)
    one_by_one = [grad(loss)(params, x, y) for x, y in zip(xs[:3], ys[:3], strict=True)]
    for key in random.split(keys[3], 15):
        params, norms = private_step(params, key, xs, ys)
    return {"first": first, "one by one": one_by_one, "norms": norms, "params": params}


if __name__ == "__main__":
    print(main())
