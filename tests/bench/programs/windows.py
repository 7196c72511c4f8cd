"""What slides: convolutions and pools; what runs along: scans that may be joined in any order."""

import numpy as np
from jax import grad, jit, lax, numpy as jnp

from tests.bench._row import Row, normal

LAST = ("NHWC", "HWIO", "NHWC")


@jit
def convolved(x, w):
    return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=LAST)


@jit
def convolved_first(x, w):
    return lax.conv_general_dilated(x, w, (1, 1), "SAME")


@jit
def convolved_each(x, w):
    return lax.conv_general_dilated(x, w, (1, 1), "SAME", feature_group_count=x.shape[1])


@jit
def convolved_up(x, w):
    return lax.conv_transpose(x, w, (2, 2), "SAME")


@jit
def filtered(x, w):
    return jnp.convolve(x, w, "same")


@jit
def wave(u):
    def step(state, _):
        u, v = state
        v = v + .1 * jnp.zeros_like(u).at[1:-1].set(u[2:] - 2 * u[1:-1] + u[:-2])
        return (u + .1 * v, v), None
    return lax.scan(step, (u, u * 0), None, length=200)[0]


@jit
def slopes(x, y):
    return jnp.gradient(jnp.outer(x, y), axis=0)


@jit
def gradients(x, w):
    return grad(lambda x, w: (convolved(x, w) ** 2).sum(), (0, 1))(x, w)


@jit
def largest(x):
    return lax.reduce_window(x, -np.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


@jit
def averaged(x):
    return lax.reduce_window(x, 0., lax.add, (1, 3, 3, 1), (1, 1, 1, 1), "SAME") / 9


@jit
def added_up(x):
    return lax.associative_scan(lax.add, x)


@jit
def recurrence(a, b):
    def join(first, second):
        return first[0] * second[0], first[1] * second[0] + second[1]
    return lax.associative_scan(join, (a, b))


COPIED = "windows that are copied to matrices first"

ROWS = [
    Row("convolution 8x56x56x64, 3x3", convolved, [normal(8, 56, 56, 64), normal(3, 3, 64, 64)],
        2 * 9 * 8 * 56 ** 2 * 64 ** 2, limit=COPIED),
    Row("convolution 8x3x32x32, 7x7", convolved_first, [normal(8, 3, 32, 32), normal(64, 3, 7, 7)],
        2 * 49 * 8 * 32 ** 2 * 3 * 64, limit=COPIED),
    Row("convolution 8x32x64x64, 3x3", convolved_first,
        [normal(8, 32, 64, 64), normal(32, 32, 3, 3)], 2 * 9 * 8 * 64 ** 2 * 32 ** 2, limit=COPIED),
    Row("convolution of each feature", convolved_each,
        [normal(8, 64, 28, 28), normal(64, 1, 3, 3)]),
    Row("blur 512x512, 15x15", convolved_first, [normal(1, 1, 512, 512), normal(1, 1, 15, 15)],
        2 * 15 ** 2 * 512 ** 2),
    Row("grad of a convolution", gradients, [normal(8, 28, 28, 32), normal(3, 3, 32, 32)],
        3 * 2 * 9 * 8 * 28 ** 2 * 32 ** 2, limit=COPIED),
    Row("grad of a first convolution", gradients, [normal(64, 32, 32, 3), normal(3, 3, 3, 16)],
        3 * 2 * 9 * 64 * 32 ** 2 * 3 * 16, limit=COPIED),
    Row("grad of a convolution with 8 features", gradients, [
        normal(32, 28, 28, 8), normal(3, 3, 8, 16)],
        3 * 2 * 9 * 32 * 28 ** 2 * 8 * 16, limit=COPIED),
    Row("transposed convolution", convolved_up, [normal(8, 16, 16, 32), normal(4, 4, 32, 16)],
        limit=COPIED),
    Row("convolve 1M by 101", filtered, [normal(1_000_000), normal(101)], 2 * 101 * 10 ** 6),
    Row("wave of 2000 points, 200 steps", wave, [normal(2000)]),
    Row("gradient of an outer product", slopes, [normal(1000), normal(1000)]),
    Row("max pool 32x56x56x32", largest, [normal(32, 56, 56, 32)],
        limit="a row of 32 features at a time"),
    Row("mean pool 32x56x56x32", averaged, [normal(32, 56, 56, 32)]),
    Row("associative_scan add 1M", added_up, [normal(1_000_000)]),
    Row("associative_scan recurrence 1M", recurrence, [normal(1_000_000), normal(1_000_000)],
        limit="the latency of a serial recurrence"),
]
