"""What Pgx does: games as compiled functions on batches."""

import jax
import jax.numpy as jnp
import pgx

KEY = jax.random.key(3)


def noughts_and_crosses_are_played():
    env = pgx.make("tic_tac_toe")
    state, step = jax.vmap(env.init)(jax.random.split(KEY, 3)), jax.jit(jax.vmap(env.step))
    for i in range(6):
        action = jnp.argmax(state.legal_action_mask * jnp.roll(jnp.arange(9), i), axis=1)
        state = step(state, action)
    return (state.current_player, state.rewards, state.terminated, state.observation,
            state.legal_action_mask)


def four_in_a_row():
    env = pgx.make("connect_four")
    state, step = env.init(KEY), jax.jit(env.step)
    for column in (3, 2, 3, 2, 3, 2, 3):
        state = step(state, column)
    return state.terminated, state.rewards, state.observation
