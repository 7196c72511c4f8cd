"""Next to no work: what a call costs, compiled or not."""

import jax.numpy as jnp
from jax import grad, jit

from tests.bench._row import Row, normal, number


@jit
def add_one(x):
    return x + 1


@jit
def first_and_last(*xs):
    return xs[0] + xs[-1]


@jit
def new_tree(tree):
    return {name: (x + 1, y) for name, (x, y) in tree.items()}


def plus(x, y):
    return x + y


eager_gradient = grad(lambda x: jnp.sum(jnp.sin(x) * x))

CALL = "the reading of arguments, and the making of arrays"

ROWS = [
    Row("dispatch f(x)", add_one, [number(1)], limit=CALL),
    Row("dispatch, 100 arguments", first_and_last, [number(k) for k in range(100)], limit=CALL),
    Row("dispatch, tree of 10", new_tree,
        [{f"layer{k}": (number(k), number(1)) for k in range(5)}], limit=CALL),
    Row("eager x + y", plus, [normal(100), normal(100)]),
    Row("eager grad", eager_gradient, [normal(100)]),
]
