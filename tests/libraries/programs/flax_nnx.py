"""What Flax' documentation of NNX does: modules with references, filters, transformations."""

import jax
import jax.numpy as jnp
import optax
from flax import nnx

X = jax.random.normal(jax.random.key(0), (4, 3))


class Perceptron(nnx.Module):
    """Two layers."""

    def __init__(self, width, rngs):
        self.first = nnx.Linear(3, width, rngs=rngs)
        self.second = nnx.Linear(width, 1, rngs=rngs)

    def __call__(self, x):
        return self.second(nnx.relu(self.first(x)))


def a_model_is_made_and_called():
    model = Perceptron(4, nnx.Rngs(0))
    return model(X), nnx.state(model)


def a_model_is_trained():
    model = Perceptron(4, nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(0.1), wrt=nnx.Param)

    @nnx.jit
    def step(model, optimizer):
        value, grads = nnx.value_and_grad(lambda m: jnp.mean(m(X) ** 2))(model)
        optimizer.update(model, grads)
        return value
    return [step(model, optimizer) for _ in range(3)], nnx.state(model)


def a_model_is_split_and_merged():
    model = Perceptron(2, nnx.Rngs(1))
    graph, params, rest = nnx.split(model, nnx.Param, ...)
    doubled = jax.tree.map(lambda x: 2 * x, params)
    merged = jax.jit(lambda s: nnx.merge(graph, s, rest)(X))
    return nnx.merge(graph, doubled, rest)(X), merged(params)


def statistics_and_dropout_have_state():
    norm, drop = nnx.BatchNorm(3, rngs=nnx.Rngs(0)), nnx.Dropout(0.5, rngs=nnx.Rngs(2))
    out = norm(X)
    return out, norm.mean[...], drop(X), norm(X, use_running_average=True)


def a_counter_is_a_variable():
    class Count(nnx.Variable):
        """How often."""

    class Counter(nnx.Module):
        def __init__(self):
            self.count = Count(jnp.array(0))

        def __call__(self, x):
            self.count[...] += 1
            return x * self.count[...]

    counter = Counter()
    f = nnx.jit(lambda m, x: m(x))
    return f(counter, 2.0), f(counter, 2.0), counter.count[...]


def models_are_mapped_and_scanned():
    @nnx.split_rngs(splits=3)
    @nnx.vmap(in_axes=(0,), out_axes=0)
    def make(rngs):
        return nnx.Linear(3, 3, rngs=rngs)

    stack = make(nnx.Rngs(0))

    @nnx.scan(in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)
    def forward(x, layer):
        return nnx.tanh(layer(x))
    return forward(X, stack)


def weights_are_saved_and_restored():
    model = Perceptron(2, nnx.Rngs(0))
    saved = nnx.to_pure_dict(nnx.state(model))
    other = Perceptron(2, nnx.Rngs(5))
    state = nnx.state(other)
    nnx.replace_by_pure_dict(state, saved)
    nnx.update(other, state)
    return other(X), saved


def layers_in_a_row():
    model = nnx.Sequential(nnx.Linear(3, 4, rngs=nnx.Rngs(0)), nnx.gelu,
                           nnx.LayerNorm(4, rngs=nnx.Rngs(0)))
    cell = nnx.GRUCell(3, 4, rngs=nnx.Rngs(0))
    carry, out = cell(jnp.zeros((4, 4)), X)
    return model(X), out, nnx.Embed(5, 2, rngs=nnx.Rngs(0))(jnp.array([1, 3]))
