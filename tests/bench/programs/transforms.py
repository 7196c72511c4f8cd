"""Fourier transforms: of many rows, of a long one, of lengths with other primes, of planes."""

import jax.numpy as jnp
from jax import jit

from tests.bench._row import Row, normal

SHAPES = [(4096, 64), (512, 1024), (128, 4096), (512, 1000), (1, 1 << 20), (1, 1000003)]


@jit
def fft(x):
    return jnp.fft.fft(x)


@jit
def rfft(x):
    return jnp.fft.rfft(x)


@jit
def fft2(x):
    return jnp.fft.fft2(x)


def waves(*shape):
    """Complex numbers around 0."""
    draw = normal(*shape)
    return lambda rng: (draw(rng) + 1j * draw(rng)).astype("complex64")


PASSES = "passes over data in the cache, one for each factor of the length"

ROWS = [
    *(Row(f"fft of {rows} × {n}", fft, [waves(rows, n)], limit=PASSES) for rows, n in SHAPES),
    Row("fft2 of 8 × 256 × 256", fft2, [waves(8, 256, 256)], limit=PASSES),
    Row("fft2 of 8 × 240 × 250", fft2, [waves(8, 240, 250)], limit=PASSES),
    Row("rfft of 512 × 1024", rfft, [normal(512, 1024)], limit=PASSES),
]
