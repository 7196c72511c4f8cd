"""Sorting, and random numbers."""

import jax.numpy as jnp
from jax import jit, lax, random

from tests.bench._row import MILLION, Row, key, normal

ROWS = [
    Row("sort, 1M", jit(jnp.sort), [normal(MILLION)]),
    Row("sort 1024², last", jit(lambda x: jnp.sort(x, axis=1)), [normal(1024, 1024)]),
    Row("argsort, 1M", jit(jnp.argsort), [normal(MILLION)]),
    Row("top 32 of 1M", jit(lambda x: lax.top_k(x, 32)), [normal(MILLION)]),
    Row("top 8 of rows, 1024²", jit(lambda x: lax.top_k(x, 8)), [normal(1024, 1024)]),
    Row("random normal, 1M", jit(lambda key: random.normal(key, (MILLION,))), [key], draws=True),
    Row("random gamma, 1M", jit(lambda key: random.gamma(key, 2., (MILLION,))), [key], draws=True),
    Row("random poisson, 1M", jit(lambda key: random.poisson(key, 4., (MILLION,))), [key],
        draws=True),
    Row("random bits, 1M", jit(lambda key: random.bits(key, (MILLION,))), [key], draws=True),
]
