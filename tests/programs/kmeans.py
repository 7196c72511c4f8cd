"""k-means: points to the nearest centre, centres to the mean of their points, until they rest."""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax, random


def distances(points, centres):
    return jnp.sum((points[:, None, :] - centres[None, :, :]) ** 2, axis=-1)


def assign(points, centres):
    return jnp.argmin(distances(points, centres), axis=1)


def means(points, labels, centres):
    k = len(centres)
    counts = jnp.zeros(k).at[labels].add(1.0)
    sums = jnp.zeros_like(centres).at[labels].add(points)
    return jnp.where(counts[:, None] > 0, sums / jnp.maximum(counts, 1.0)[:, None], centres)


@partial(jax.jit, static_argnames=("k",))
def kmeans(key, points, k):
    first = random.choice(key, points, (k,), replace=False)

    def moving(state):
        centres, before, _ = state
        return jnp.any(jnp.abs(centres - before) > 1e-5)

    def move(state):
        centres, _, rounds = state
        return means(points, assign(points, centres), centres), centres, rounds + 1

    centres, _, rounds = lax.while_loop(moving, move, (first, first + 1.0, 0))
    order = jnp.argsort(centres[:, 0])
    centres = centres[order]
    inertia = jnp.sum(jnp.min(distances(points, centres), axis=1))
    return centres, assign(points, centres), inertia, rounds


def main():
    keys = random.split(random.key(11), 4)
    corners = jnp.array([[0.0, 0.0], [4.0, 1.0], [2.0, 5.0]])
    points = corners[random.randint(keys[0], (150,), 0, 3)] + random.normal(keys[1], (150, 2))
    centres, labels, inertia, rounds = kmeans(keys[2], points, k=3)
    return {"centres": centres, "labels": labels, "inertia": inertia, "rounds": rounds,
            "sizes": jnp.bincount(labels, length=3)}


if __name__ == "__main__":
    print(main())
