"""Short rows, lengths that fill no vector, and merged axes: what powers of two do not show."""

import jax.numpy as jnp
from jax import grad, jit, nn, random

from tests.bench._row import Row, below, normal


@jit
def heads(x):
    return jnp.transpose(x, (0, 2, 1, 3)).reshape(8, 65, 256) * 2


@jit
def patches(x):
    return jnp.transpose(x.reshape(4, 8, 7, 8, 7, 3), (0, 1, 3, 2, 4, 5)).reshape(4, 64, 147)


def loss(x, labels):
    return -jnp.mean(jnp.take_along_axis(nn.log_softmax(x), labels[:, None], 1))


def normalized(x):
    return (x - x.mean(1, keepdims=True)) / jnp.sqrt(x.var(1, keepdims=True) + 1e-5)


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
    Row("maximum 15625×64, last", jit(lambda x: jnp.max(x, 1)), [normal(15625, 64)]),
    Row("logsumexp down 3 columns", jit(lambda x: nn.logsumexp(x, 0)), [normal(10_000, 3)]),
    Row("logsumexp 15625×64", jit(lambda x: nn.logsumexp(x, 1)), [normal(15625, 64)]),
    Row("any and all, 1000×1000", jit(lambda x: (jnp.any(x > 4), jnp.all(x < 4, 1))),
        [normal(1000, 1000)]),
    Row("softmax 100k×10", jit(nn.softmax), [normal(100000, 10)]),
    Row("loss of ten classes, gradient", jit(grad(loss)), [normal(100000, 10), below(10, 100000)]),
    Row("accuracy of ten classes", jit(lambda x, labels: jnp.mean(jnp.argmax(x, 1) == labels)),
        [normal(100000, 10), below(10, 100000)]),
    Row("unit vectors 300k×3", jit(lambda x: x / jnp.linalg.norm(x, axis=1, keepdims=True)),
        [normal(300000, 3)]),
    Row("one of four actions, 250k", jit(lambda x: random.categorical(random.PRNGKey(0), x)),
        [normal(250000, 4)], draws=True),
    Row("layer norm 2000×512, without scale", jit(normalized), [normal(2000, 512)]),
    Row("patches of 7×7, 4×56×56×3", patches, [normal(4, 56, 56, 3)]),
]
