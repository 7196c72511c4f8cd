"""Lengths that fill no vector, and axes that a reshape merges: what powers of two do not show."""

import jax.numpy as jnp
from jax import jit, nn

from tests.bench._row import Row, below, normal


@jit
def heads(x):
    return jnp.transpose(x, (0, 2, 1, 3)).reshape(8, 65, 256) * 2


@jit
def patches(x):
    return jnp.transpose(x.reshape(4, 8, 7, 8, 7, 3), (0, 1, 3, 2, 4, 5)).reshape(4, 64, 147)


ROWS = [
    Row("sum 3003×333, last", jit(lambda x: jnp.sum(x, 1)), [normal(3003, 333)]),
    Row("softmax 21276×47", jit(lambda x: nn.softmax(x, 1)), [normal(21276, 47)]),
    Row("variance 21276×47", jit(lambda x: jnp.var(x, 1)), [normal(21276, 47)]),
    Row("scatter-add of rows, 5k of 47", jit(lambda x, at, y: x.at[at].add(y)),
        [normal(1000, 47), below(1000, 5000), normal(5000, 47)]),
    Row("tile 101×33 by 3×5", jit(lambda x: jnp.tile(x, (3, 5)) * 2), [normal(101, 33)]),
    Row("repeat 301×33 by 7", jit(lambda x: jnp.repeat(x, 7, axis=1) + 1), [normal(301, 33)]),
    Row("kron 33×17, 13×11", jit(jnp.kron), [normal(33, 17), normal(13, 11)]),
    Row("merged heads, 8×4×65×64", heads, [normal(8, 4, 65, 64)]),
    Row("patches of 7×7, 4×56×56×3", patches, [normal(4, 56, 56, 3)]),
]
