"""The Mandelbrot set by fori_loop: after how many steps each point escapes."""

import jax
import jax.numpy as jnp
from jax import lax


def escape_times(cx, cy, limit=40):
    def step(_, state):
        x, y, count = state
        inside = x * x + y * y <= 4.0
        new_x = jnp.where(inside, x * x - y * y + cx, x)
        new_y = jnp.where(inside, 2 * x * y + cy, y)
        return new_x, new_y, count + inside

    zeros = jnp.zeros_like(cx)
    _, _, count = lax.fori_loop(0, limit, step, (zeros, zeros, jnp.zeros(cx.shape, jnp.int32)))
    return count


@jax.jit
def mandelbrot():
    cx, cy = jnp.meshgrid(jnp.linspace(-2.0, 0.6, 60), jnp.linspace(-1.2, 1.2, 41))
    return escape_times(cx, cy)


def one_orbit(cx, cy, steps):
    """The orbit of one point, its number of steps traced: the loop becomes a while."""
    def step(i, state):
        x, y = state
        return x * x - y * y + cx, 2 * x * y + cy
    return lax.fori_loop(0, steps, step, (0.0, 0.0))


def main():
    count = mandelbrot()
    picture = jnp.searchsorted(jnp.array([2, 4, 8, 16, 32]), count)
    return {"count": count, "picture": picture,
            "orbit": jax.jit(one_orbit)(-0.1, 0.65, 12)}


if __name__ == "__main__":
    print("\n".join("".join(" .:+*#"[int(i)] for i in row) for row in main()["picture"]))
