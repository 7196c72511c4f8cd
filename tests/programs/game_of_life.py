"""Conway's game of life on a torus, by rolls: a glider travels, a random soup settles."""

import jax
import jax.numpy as jnp
from jax import lax, random


def step(board):
    neighbours = sum(jnp.roll(board, (dy, dx), axis=(0, 1))
                     for dy in (-1, 0, 1) for dx in (-1, 0, 1) if (dy, dx) != (0, 0))
    return ((neighbours == 3) | ((board == 1) & (neighbours == 2))).astype(board.dtype)


@jax.jit
def population(board):
    def body(board, _):
        return step(board), jnp.sum(board)
    return lax.scan(body, board, length=40)


def main():
    glider = jnp.zeros((16, 16), jnp.int32).at[jnp.array([0, 1, 2, 2, 2]),
                                               jnp.array([1, 2, 0, 1, 2])].set(1)
    travelled = lax.fori_loop(0, 16, lambda _, board: step(board), glider)
    soup = random.bernoulli(random.PRNGKey(4), 0.35, (32, 32)).astype(jnp.uint8)
    settled, counts = population(soup)
    several = jax.vmap(step)(jnp.stack([jnp.roll(glider, n, axis=0) for n in range(3)]))
    return {"travelled": travelled, "is shifted": jnp.array_equal(
                travelled, jnp.roll(glider, (4, 4), (0, 1))),
            "settled": settled, "counts": counts, "several": several}


if __name__ == "__main__":
    print(main())
