"""Elements moved: gathered, scattered, turned, joined."""

import jax.numpy as jnp
from jax import grad, jit, nn, ops

from tests.bench._row import MILLION, Row, below, normal


@jit
def gather(x, at):
    return x[at]


@jit
def scatter_add(x, at, y):
    return x.at[at].add(y)


@jit
def segment_sum(x, segment):
    return ops.segment_sum(x, segment, num_segments=1024)


@jit
def one_hot(labels):
    return nn.one_hot(labels, 128)


@jit
def frame(x):
    return jnp.pad(x, 1) * 2


EMBEDDING = [normal(32768, 64), below(32768, 16384)]

ROWS = [
    Row("gather, 1M", gather, [normal(MILLION), below(MILLION, MILLION)]),
    Row("gather of rows, 16k of 64", gather, EMBEDDING),
    Row("gather of rows, gradient", jit(grad(lambda x, at: jnp.sum(x[at] ** 2))), EMBEDDING),
    Row("scatter-add, 1M", scatter_add,
        [normal(MILLION), below(MILLION, MILLION), normal(MILLION)]),
    Row("scatter-add of rows, 16k of 64", scatter_add, [*EMBEDDING, normal(16384, 64)]),
    Row("segment_sum of rows, 64k×32", segment_sum, [normal(65536, 32), below(1024, 65536)]),
    Row("one-hot, 16k×128", one_hot, [below(128, 16384)]),
    Row("transpose 2048²", jit(jnp.transpose), [normal(2048, 2048)]),
    Row("transpose (0,2,1) 64×256×256", jit(lambda x: jnp.transpose(x, (0, 2, 1))),
        [normal(64, 256, 256)]),
    Row("transpose (1,0,2) 256×256×64", jit(lambda x: jnp.transpose(x, (1, 0, 2))),
        [normal(256, 256, 64)]),
    Row("concatenate, reversed", jit(lambda x: jnp.concatenate([x, x[::-1]])), [normal(MILLION)]),
    Row("concatenate, strided", jit(lambda x: jnp.concatenate([x[::2], x[1::2]])),
        [normal(MILLION)]),
    Row("roll, 1M", jit(lambda x: jnp.roll(x, 333)), [normal(MILLION)]),
    Row("concatenate, first", jit(lambda x, y: jnp.concatenate([x * 2, y + 1])),
        [normal(1024, 1024), normal(1024, 1024)]),
    Row("concatenate, last", jit(lambda x, y: jnp.concatenate([x * 2, y + 1], axis=1)),
        [normal(1024, 1024), normal(1024, 1024)]),
    Row("pad 2048² by 1", frame, [normal(2048, 2048)]),
]
