"""Programs of many equations that repeat: what tracing and compiling them takes."""

import jax
import jax.numpy as jnp
from jax import grad, jit, lax

from tests.bench._row import Row, normal, uniform


@jit
def update(params, slopes):
    return jax.tree.map(lambda p, g: p - 0.1 * g / (jnp.sqrt(g) + 1e-8), params, slopes)


def convolved(x, w):
    return lax.conv_general_dilated(x, w, (1, 1), "SAME",
                                    dimension_numbers=("NHWC", "HWIO", "NHWC"))


def residual(params, x):
    for first, second in params:
        h = jax.nn.relu(convolved(x, first))
        h = (h - h.mean((0, 1, 2))) / jnp.sqrt(h.var((0, 1, 2)) + 1e-5)
        x = x + convolved(h, second)
    return jnp.mean(x * x)


@jit
def transforms(x):
    for k in range(30):
        x = jnp.fft.ifft(jnp.fft.fft(x) * (1 + k / 100)).real
    return x


LEAVES = [uniform(0.1, 1, 4 + k % 7) for k in range(1000)]
BLOCKS = [(normal(3, 3, 8, 8, scale=0.1), normal(3, 3, 8, 8, scale=0.1)) for _ in range(12)]

ROWS = [
    Row("update of 1000 leaves", update, [LEAVES, LEAVES]),
    Row("12 residual blocks", jit(residual), [BLOCKS, normal(2, 16, 16, 8)]),
    Row("12 residual blocks, gradient", jit(grad(residual)), [BLOCKS, normal(2, 16, 16, 8)]),
    Row("30 pairs of transforms", transforms, [normal(256)]),
]
