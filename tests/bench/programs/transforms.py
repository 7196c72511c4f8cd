"""Fourier transforms: many short rows, one long one, a prime number of numbers, real ones."""

import jax.numpy as jnp
from jax import jit

from tests.bench._row import Row, normal

SHAPES = [(4096, 64), (512, 1024), (128, 4096), (1, 1 << 20), (1, 1000003)]


@jit
def fft(x):
    return jnp.fft.fft(x)


@jit
def rfft(x):
    return jnp.fft.rfft(x)


def waves(*shape):
    """Complex numbers around 0."""
    draw = normal(*shape)
    return lambda rng: (draw(rng) + 1j * draw(rng)).astype("complex64")


ROWS = [
    *(Row(f"fft of {rows} × {n}", fft, [waves(rows, n)]) for rows, n in SHAPES),
    Row("rfft of 512 × 1024", rfft, [normal(512, 1024)]),
]
