"""What Haiku's documentation does: functions with parameters and state, made pure."""

import haiku as hk
import jax
import jax.numpy as jnp

KEY = jax.random.key(3)
X = jnp.linspace(-1, 1, 12).reshape(4, 3)


def a_classifier_is_trained():
    network = hk.without_apply_rng(hk.transform(lambda x: hk.nets.MLP([5, 2])(x)))
    params, label = network.init(KEY, X), jnp.array([0, 1, 1, 0])

    def loss(params):
        return -jnp.mean(jax.nn.log_softmax(network.apply(params, X))[jnp.arange(4), label])

    @jax.jit
    def step(params):
        return jax.tree.map(lambda p, g: p - 0.5 * g, params, jax.grad(loss)(params))
    return loss(params), step(step(params))


def statistics_are_state():
    @hk.transform_with_state
    def f(x, is_training):
        x = hk.BatchNorm(True, True, 0.9)(x, is_training)
        return hk.dropout(hk.next_rng_key(), 0.5, x)
    params, state = f.init(KEY, X, True)
    y, state = f.apply(params, state, KEY, X, True)
    return y, state, f.apply(params, state, KEY, X, False)[0]


def a_recurrent_core_is_unrolled():
    @hk.transform
    def f(xs):
        core = hk.LSTM(4)
        return hk.dynamic_unroll(core, xs, core.initial_state(None))
    return jax.jit(f.apply)(f.init(KEY, X), None, X)


def its_modules_are_told():
    f = hk.transform(lambda x: hk.Linear(2, name="last")(jax.nn.relu(hk.Conv1D(3, 2)(x))))
    params = f.init(KEY, X[None])
    return jax.tree.map(jnp.shape, params), hk.experimental.tabulate(f)(X[None])
