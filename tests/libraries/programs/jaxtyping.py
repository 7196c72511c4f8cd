"""What jaxtyping's documentation does: shapes and dtypes in annotations, checked at run time."""

import dataclasses

import jax
import jax.numpy as jnp
from jaxtyping import (Array, Bool, Complex, Float, Float32, Inexact, Int, Integer, Key, Num,
                       PRNGKeyArray, PyTree, Scalar, Shaped, jaxtyped)


def arrays_are_instances_of_their_types():
    x, i, b = jnp.ones((2, 3)), jnp.arange(3), jnp.array([True])
    kinds = [Float[Array, "2 3"], Float[Array, "a b"], Float[Array, "a a"], Float32[Array, "..."],
             Int[Array, "n"], Integer[Array, "3"], Bool[Array, "1"], Num[Array, "*s"],
             Shaped[Array, "_ _"], Inexact[Array, "2 *rest"], Complex[Array, ""], Scalar]
    return [[isinstance(v, kind) for kind in kinds] for v in (x, i, b, jnp.float32(2), x + 1j)]


def names_of_axes_must_agree():
    def product(x: Float[Array, "a b"], y: Float[Array, "b c"]) -> Float[Array, "a c"]:
        with jaxtyped("context"):
            assert isinstance(x, Float[Array, "a b"])
            if not isinstance(y, Float[Array, "b c"]):
                return "axes differ"
            return x @ y
    return product(jnp.ones((2, 3)), jnp.ones((3, 4))), product(jnp.ones((2, 3)), jnp.ones((2, 4)))


def types_are_seen_while_tracing():
    seen = []

    @jax.jit
    def f(x):
        seen.append([isinstance(x, Float[Array, "n"]), isinstance(x, Float[Array, ""]),
                     isinstance(x, Int[Array, "n"])])
        return x * 2
    return f(jnp.arange(3.0)), jax.vmap(f)(jnp.ones((2, 2))), seen


def trees_have_types():
    tree = {"w": jnp.ones((2, 2)), "b": [jnp.zeros(3)]}
    return [isinstance(tree, PyTree[Float[Array, "..."]]),
            isinstance(tree, PyTree[Int[Array, "..."]]), isinstance((1, 2), PyTree[int]),
            isinstance({"a": 1.0}, PyTree[int]),
            isinstance(tree, PyTree), isinstance([1, [2]], PyTree[int, "T"])]


def keys_have_types():
    key, old = jax.random.key(0), jax.random.PRNGKey(0)
    return [isinstance(key, PRNGKeyArray), isinstance(key, Key[Array, ""]),
            isinstance(jax.random.split(key, 3), Key[Array, "3"]), isinstance(old, Key[Array, ""]),
            isinstance(old, PRNGKeyArray)]


def fields_are_annotated():
    @dataclasses.dataclass
    class Batch:
        images: Float[Array, "batch size"]
        labels: Int[Array, "batch"]

    batch = Batch(jnp.ones((2, 3)), jnp.arange(2))
    types = {f.name: f.type for f in dataclasses.fields(Batch)}
    return [isinstance(getattr(batch, name), kind) for name, kind in types.items()]


def sizes_are_computed():
    def both(x, y):
        with jaxtyped("context"):
            return isinstance(x, Float[Array, "n"]) and isinstance(y, Float[Array, "n+1"])
    return both(jnp.ones(2), jnp.ones(3)), both(jnp.ones(2), jnp.ones(2))
