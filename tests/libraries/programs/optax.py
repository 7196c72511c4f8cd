"""What Optax's documentation does: optimisers, schedules, masks, clipping, losses."""

import jax
import jax.numpy as jnp
import optax

KEY = jax.random.key(0)
X = jax.random.normal(KEY, (16, 3))
Y = X @ jnp.array([1.0, -2.0, 0.5]) + 0.3


def loss(params, x=X, y=Y):
    return jnp.mean((x @ params["w"] + params["b"] - y) ** 2)


def trained(optimizer, steps=8):
    params = {"w": jnp.zeros(3), "b": jnp.zeros(())}
    state = optimizer.init(params)

    @jax.jit
    def step(params, state):
        value, grads = jax.value_and_grad(loss)(params)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    values = []
    for _ in range(steps):
        params, state, value = step(params, state)
        values.append(value)
    return params, values


def adam_fits_a_line():
    return trained(optax.adam(0.1), 20)


def a_chain_clips_then_scales():
    return trained(optax.chain(optax.clip_by_global_norm(0.5), optax.scale_by_adam(),
                               optax.add_decayed_weights(1e-2), optax.scale(-0.05)))


def a_schedule_warms_up_and_decays():
    schedule = optax.warmup_cosine_decay_schedule(0.0, 0.1, 4, 10)
    return [schedule(i) for i in range(12)], trained(optax.sgd(schedule, momentum=0.9))


def parts_are_trained_differently():
    labels = {"w": "fast", "b": "slow"}
    return trained(optax.partition({"fast": optax.sgd(0.1), "slow": optax.sgd(0.01)}, labels)), \
        trained(optax.masked(optax.sgd(0.1), {"w": True, "b": False}))


def gradients_are_accumulated():
    return trained(optax.MultiSteps(optax.adam(0.1), every_k_schedule=3))


def many_optimizers_take_a_step():
    return {make.__name__: trained(make(0.02), 2)[0] for make in (
        optax.adagrad, optax.adamax, optax.lion, optax.radam, optax.yogi, optax.novograd)}


def lbfgs_searches_a_line():
    solver, params = optax.lbfgs(), {"w": jnp.zeros(3), "b": jnp.zeros(())}

    @jax.jit
    def run(params):
        ask = optax.value_and_grad_from_state(loss)

        def step(carry):
            params, state, i = carry
            value, grad = ask(params, state=state)
            updates, state = solver.update(grad, state, params, value=value, grad=grad,
                                           value_fn=loss)
            return optax.apply_updates(params, updates), state, i + 1
        return jax.lax.while_loop(lambda c: c[2] < 4, step, (params, solver.init(params), 0))[0]
    return run(params)


def losses_of_a_classifier():
    logits, labels = jax.random.normal(KEY, (4, 5)), jnp.array([0, 2, 1, 4])
    return (optax.softmax_cross_entropy_with_integer_labels(logits, labels),
            optax.softmax_cross_entropy(logits, optax.smooth_labels(jax.nn.one_hot(labels, 5), .1)),
            optax.sigmoid_binary_cross_entropy(logits, logits > 0), optax.huber_loss(logits),
            optax.cosine_similarity(logits, logits[::-1]), optax.l2_loss(logits),
            optax.ctc_loss(logits[None], jnp.zeros((1, 4)), jnp.array([[1, 2]]), jnp.zeros((1, 2))))


def averages_and_norms_of_trees():
    params = {"w": jnp.arange(3.0), "b": jnp.ones(())}
    ema = optax.ema(0.9)
    out, state = ema.update(params, ema.init(params))
    return (out, optax.global_norm(params), optax.tree.norm(params),
            optax.incremental_update(params, out, 0.1), optax.projections.projection_simplex(
                jnp.array([0.3, 2.0, -1.0])), optax.tree.add_scale(params, 2.0, out))
