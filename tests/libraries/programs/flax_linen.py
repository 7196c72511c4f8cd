"""What Flax' documentation of Linen does: modules, state, random streams, scans, files."""

import flax.linen as nn
import jax
import jax.numpy as jnp
from flax import serialization, struct, traverse_util
from flax.training import train_state

KEY = jax.random.key(0)
X = jax.random.normal(KEY, (4, 3))


class Perceptron(nn.Module):
    """Two dense layers."""

    width: int

    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.Dense(self.width)(x))
        return nn.Dense(1)(x)


def a_model_is_initialised_and_applied():
    model = Perceptron(5)
    params = model.init(KEY, X)
    return params, jax.jit(model.apply)(params, X)


def a_state_is_trained():
    import optax
    model = Perceptron(4)
    state = train_state.TrainState.create(apply_fn=model.apply, params=model.init(KEY, X)["params"],
                                          tx=optax.sgd(0.1))

    @jax.jit
    def step(state):
        def loss(params):
            return jnp.mean(state.apply_fn({"params": params}, X) ** 2)
        value, grads = jax.value_and_grad(loss)(state.params)
        return state.apply_gradients(grads=grads), value
    values = []
    for _ in range(3):
        state, value = step(state)
        values.append(value)
    return values, state.params, state.step


def a_model_is_saved_and_restored():
    params = Perceptron(3).init(KEY, X)
    data = serialization.to_bytes(params)
    empty = jax.tree.map(jnp.zeros_like, params)
    flat = traverse_util.flatten_dict(params, sep="/")
    return serialization.from_bytes(empty, data), sorted(flat)


class Normed(nn.Module):
    """With statistics and dropout."""

    @nn.compact
    def __call__(self, x, train):
        x = nn.BatchNorm(use_running_average=not train, momentum=0.9)(x)
        return nn.Dropout(0.5, deterministic=not train)(nn.LayerNorm()(x))


def statistics_and_dropout_have_state():
    model = Normed()
    variables = model.init({"params": KEY, "dropout": KEY}, X, train=False)
    out, updates = model.apply(variables, X, train=True, mutable=["batch_stats"],
                               rngs={"dropout": jax.random.key(1)})
    return out, updates, model.apply({**variables, **updates}, X, train=False)


def a_recurrent_cell_is_scanned():
    scanned = nn.RNN(nn.LSTMCell(4))
    params = scanned.init(KEY, X[None])
    return scanned.apply(params, X[None]), nn.scan if False else len(jax.tree.leaves(params))


class Block(nn.Module):
    """A layer that a scan repeats."""

    @nn.compact
    def __call__(self, x, _):
        return nn.tanh(nn.Dense(3)(x)), None


def layers_are_lifted():
    deep = nn.scan(Block, variable_axes={"params": 0}, split_rngs={"params": True}, length=3)()
    params = deep.init(KEY, X, None)
    many = nn.vmap(nn.Dense, variable_axes={"params": 0}, split_rngs={"params": True},
                   in_axes=0, axis_size=4)(2)
    return deep.apply(params, X, None)[0], many.apply(many.init(KEY, X), X)


def images_are_convolved():
    image = jax.random.normal(KEY, (1, 6, 6, 1))
    layer = nn.Conv(2, (3, 3))
    return nn.max_pool(layer.apply(layer.init(KEY, image), image), (2, 2), strides=(2, 2))


def attention_and_embedding():
    layer = nn.MultiHeadDotProductAttention(num_heads=1, qkv_features=4)
    embed = nn.Embed(5, 3)
    table = embed.init(KEY, jnp.arange(2))
    return layer.apply(layer.init(KEY, X, X), X, X), embed.apply(table, jnp.array([1, 4]))


def shapes_are_told_and_records_are_trees():
    @struct.dataclass
    class Record:
        x: jax.Array
        name: str = struct.field(pytree_node=False)

    shapes = jax.eval_shape(Perceptron(2).init, KEY, X)
    record = jax.jit(lambda r: r.replace(x=r.x + 1))(Record(jnp.zeros(2), "r"))
    return [str(s.shape) for s in jax.tree.leaves(shapes)], record
