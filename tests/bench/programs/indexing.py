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

LATENCY = "the latency of lines of memory in no order"
SHUFFLES = "shuffles of elements inside of tiles, and two lines touched for each"
PARTS = "parts that are loops of their own, after one another"

ROWS = [
    Row("gather, 1M", gather, [normal(MILLION), below(MILLION, MILLION)], limit=LATENCY),
    Row("gather of rows, 16k of 64", gather, EMBEDDING, limit=LATENCY),
    Row("gather of rows, gradient", jit(grad(lambda x, at: jnp.sum(x[at] ** 2))), EMBEDDING),
    Row("scatter-add, 1M", scatter_add,
        [normal(MILLION), below(MILLION, MILLION), normal(MILLION)],
        limit="updates of one target in their order, on one thread"),
    Row("scatter-add of rows, 16k of 64", scatter_add, [*EMBEDDING, normal(16384, 64)],
        limit="updates of one target in their order, on one thread"),
    Row("segment_sum of rows, 64k×32", segment_sum, [normal(65536, 32), below(1024, 65536)],
        limit="sums of each thread, added up at the end"),
    Row("one-hot, 16k×128", one_hot, [below(128, 16384)], limit="comparisons, and stores alone"),
    Row("transpose 2048²", jit(jnp.transpose), [normal(2048, 2048)], limit=SHUFFLES),
    Row("transpose (0,2,1) 64×256×256", jit(lambda x: jnp.transpose(x, (0, 2, 1))),
        [normal(64, 256, 256)], limit=SHUFFLES),
    Row("transpose (1,0,2) 256×256×64", jit(lambda x: jnp.transpose(x, (1, 0, 2))),
        [normal(256, 256, 64)], limit="rows of 256 bytes, each at another page"),
    Row("concatenate, reversed", jit(lambda x: jnp.concatenate([x, x[::-1]])), [normal(MILLION)],
        limit=PARTS),
    Row("concatenate, strided", jit(lambda x: jnp.concatenate([x[::2], x[1::2]])),
        [normal(MILLION)], limit=PARTS),
    Row("roll, 1M", jit(lambda x: jnp.roll(x, 333)), [normal(MILLION)], limit=PARTS),
    Row("concatenate, first", jit(lambda x, y: jnp.concatenate([x * 2, y + 1])),
        [normal(1024, 1024), normal(1024, 1024)], limit=PARTS),
    Row("concatenate, last", jit(lambda x, y: jnp.concatenate([x * 2, y + 1], axis=1)),
        [normal(1024, 1024), normal(1024, 1024)], limit=PARTS),
    Row("pad 2048² by 1", frame, [normal(2048, 2048)], limit="rows that begin inside a vector"),
]
