"""What Equinox's documentation does: modules as trees, filtered transformations, state."""

import equinox as eqx
import jax
import jax.numpy as jnp

KEY = jax.random.key(0)
X = jax.random.normal(KEY, (8, 2))
Y = jnp.sum(X, 1, keepdims=True)


class Linear(eqx.Module):
    """A layer by hand."""

    weight: jax.Array
    bias: jax.Array
    name: str = eqx.field(static=True, default="linear")

    def __call__(self, x):
        return self.weight @ x + self.bias


def a_layer_of_ones_own_is_trained():
    model = Linear(jnp.ones((1, 2)), jnp.zeros(1))

    @eqx.filter_jit
    @eqx.filter_value_and_grad
    def loss(model, x, y):
        return jnp.mean((jax.vmap(model)(x) - y) ** 2)

    values = []
    for _ in range(3):
        value, grads = loss(model, X, Y)
        model = eqx.apply_updates(model, jax.tree.map(lambda g: -0.1 * g, grads))
        values.append(value)
    return values, model


def a_perceptron_is_differentiated():
    model = eqx.nn.MLP(2, 1, 4, 1, key=KEY)
    params, static = eqx.partition(model, eqx.is_inexact_array)

    @jax.jit
    def loss(params):
        return jnp.mean((jax.vmap(eqx.combine(params, static))(X) - Y) ** 2)
    return loss(params), jax.tree.leaves(jax.grad(loss)(params)), eqx.tree_equal(model, model)


def a_part_is_replaced():
    model = eqx.nn.Linear(2, 3, key=KEY)
    changed = eqx.tree_at(lambda m: m.bias, model, jnp.arange(3.0))
    mask = jax.tree.map(lambda _: False, model)
    mask = eqx.tree_at(lambda m: m.weight, mask, True)
    learned, frozen = eqx.partition(changed, mask)
    return changed(X[0]), len(jax.tree.leaves(learned)), len(jax.tree.leaves(frozen))


def recurrent_cells_are_scanned():
    cell = eqx.nn.GRUCell(2, 3, key=KEY)

    @eqx.filter_jit
    def run(cell, xs):
        return jax.lax.scan(lambda h, x: (cell(x, h), None), jnp.zeros(3), xs)[0]
    return run(cell, X)


def layers_normalise_drop_and_attend():
    norm, drop = eqx.nn.LayerNorm(2), eqx.nn.Dropout(0.5)
    attention = eqx.nn.MultiheadAttention(2, 2, key=KEY)
    embedding = eqx.nn.Embedding(4, 2, key=KEY)
    return (jax.vmap(norm)(X), drop(X, key=KEY), eqx.nn.inference_mode(drop)(X),
            attention(X, X, X), jax.vmap(embedding)(jnp.arange(3)))


def state_goes_through():
    norm, state = eqx.nn.make_with_state(eqx.nn.BatchNorm)(2, axis_name="batch", mode="batch")
    out, state = jax.vmap(norm, axis_name="batch", in_axes=(0, None), out_axes=(0, None))(X, state)
    return out


def an_ensemble_is_mapped():
    keys = jax.random.split(KEY, 3)

    @eqx.filter_vmap
    def make(key):
        return eqx.nn.Linear(2, 1, key=key)

    models = make(keys)
    return eqx.filter_vmap(lambda m, x: m(x), in_axes=(eqx.if_array(0), None))(models, X[0])


def a_custom_rule_takes_trees():
    @eqx.filter_custom_vjp
    def double(x):
        return x["a"] * 2

    @double.def_fwd
    def _(perturbed, x):
        return double(x), None

    @double.def_bwd
    def _(residuals, grad, perturbed, x):
        return {"a": grad * 5, "b": None}
    return eqx.filter_grad(lambda x: double(x))({"a": jnp.array(3.0), "b": "text"})["a"]


def what_is_wrong_at_run_time_is_raised():
    @eqx.filter_jit
    def halved(x):
        def body(x):
            x = eqx.error_if(x, x > 9, "x must stay below 9")
            return x / 2
        return jax.lax.while_loop(lambda x: x > 1, body, x)

    def told(x):
        try:
            return halved(x)
        except RuntimeError as error:
            return str(error).partition("equinox.EquinoxRuntimeError: ")[2].splitlines()[0]
    return halved(jnp.array(8.0)), told(jnp.array(16.0)), halved(jnp.array(0.0))
