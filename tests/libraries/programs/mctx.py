"""What Mctx does: tree searches that are compiled, over batches."""

import functools

import jax
import jax.numpy as jnp
import mctx

KEY = jax.random.key(3)
ROOT = mctx.RootFnOutput(prior_logits=jnp.array([[0.1, 0.5, -0.2], [0.0, 0.0, 1.0]]),
                         value=jnp.array([0.3, -0.1]), embedding=jnp.array([1.0, 2.0]))


def recurrent(params, key, action, embedding):
    embedding = embedding * 0.9 + action
    return mctx.RecurrentFnOutput(
        reward=jnp.sin(embedding), discount=jnp.full(2, 0.9), value=jnp.cos(embedding),
        prior_logits=jnp.stack([embedding, -embedding, embedding * 0.5], 1)), embedding


def a_policy_of_muzero():
    policy = jax.jit(functools.partial(mctx.muzero_policy, recurrent_fn=recurrent,
                                       num_simulations=6))
    out = policy((), KEY, ROOT)
    return out.action, out.action_weights, out.search_tree.summary().qvalues


def a_policy_of_gumbel():
    out = mctx.gumbel_muzero_policy(
        (), KEY, ROOT, recurrent, num_simulations=5, max_num_considered_actions=3,
        qtransform=functools.partial(mctx.qtransform_completed_by_mix_value,
                                     use_mixed_value=False))
    return out.action, out.action_weights, out.search_tree.node_visits
