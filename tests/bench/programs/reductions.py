"""Sums and their kin over each axis; what normalises rows, and its gradients; cumulations."""

import jax.numpy as jnp
from jax import grad, jit, nn

from tests.bench._row import MILLION, Row, normal, uniform


def layer_norm(x):
    centred = x - jnp.mean(x, axis=-1, keepdims=True)
    return centred / jnp.sqrt(jnp.mean(centred ** 2, axis=-1, keepdims=True) + 1e-5)


def variance(x):
    return jnp.var(x, axis=-1)


def logsumexp(x):
    return nn.logsumexp(x, axis=-1)


def gradient(f):
    return jit(grad(lambda x: jnp.sum(f(x) ** 3)))


def over(reduce, axis):
    return jit(lambda x: reduce(x, axis=axis))


OF_ROWS = {"softmax": nn.softmax, "log-softmax": nn.log_softmax, "layer norm": layer_norm,
           "logsumexp": logsumexp, "variance": variance}
REDUCTIONS = {"sum": jnp.sum, "prod": jnp.prod, "max": jnp.max}
CUBE, TALL, WIDE = (128, 256, 128), (MILLION, 8), (8, MILLION)
CASES = {"4M, all": (CUBE, None), "128×256×128, first": (CUBE, 0),
         "128×256×128, middle": (CUBE, 1), "128×256×128, last": (CUBE, 2),
         "1M×8, first": (TALL, 0), "1M×8, last": (TALL, 1),
         "8×1M, first": (WIDE, 0), "8×1M, last": (WIDE, 1)}

CACHED = "several passes over a row in the cache, and exponentials"
ORDER = "the order of its terms, in blocks that any number of threads may take"

ROWS = [
    *(Row(f"{name} 1024²", jit(f), [normal(1024, 1024)], limit=CACHED)
      for name, f in OF_ROWS.items()),
    *(Row(f"{name} 1024², gradient", gradient(f), [normal(1024, 1024)], limit=CACHED)
      for name, f in OF_ROWS.items()),
    Row("softmax 4096²", jit(nn.softmax), [normal(4096, 4096)], limit=CACHED),
    Row("sum, 1M", jit(jnp.sum), [uniform(0, 1, MILLION)]),
    Row("sum, 16M", jit(jnp.sum), [uniform(0, 1, 16 * MILLION)], limit=ORDER),
    *(Row(f"{name} {case}", over(reduce, axis), [uniform(0.9985, 1.0015, *shape)], tolerance=3e-3,
          limit=ORDER)
      for name, reduce in REDUCTIONS.items() for case, (shape, axis) in CASES.items()),
    Row("mean (0, 1) of a reshape, 1M", jit(lambda x: x.reshape(128, 64, 128).mean((0, 1))),
        [normal(1024, 1024)]),
    Row("argmax, 1M", jit(jnp.argmax), [normal(MILLION)]),
    Row("argmax 1024², last", over(jnp.argmax, 1), [normal(1024, 1024)]),
    Row("argmax 1024², first", over(jnp.argmax, 0), [normal(1024, 1024)]),
    Row("cumsum, 1M", jit(jnp.cumsum), [normal(MILLION)]),
    Row("cumsum 1024², last", over(jnp.cumsum, 1), [normal(1024, 1024)]),
    Row("cumsum 1024², first", over(jnp.cumsum, 0), [normal(1024, 1024)]),
]
