"""What Flashbax does: buffers of experience, written and sampled inside of jit."""

import flashbax as fbx
import jax
import jax.numpy as jnp

KEY = jax.random.key(3)
STEP = {"obs": jnp.zeros(2), "reward": jnp.zeros(())}


def steps(count, start=0):
    numbers = jnp.arange(count, dtype=jnp.float32) + start
    return {"obs": jnp.stack([numbers, -numbers], 1), "reward": numbers**2}


def an_item_buffer_wraps_around():
    buffer = fbx.make_item_buffer(max_length=6, min_length=2, sample_batch_size=4,
                                  add_sequences=True, add_batches=False)
    state, add = buffer.init(STEP), jax.jit(buffer.add)
    for start in (0, 4):
        state = add(state, steps(4, start))
    return state.experience, buffer.can_sample(state), buffer.sample(state, KEY).experience


def trajectories_are_sampled_by_priority():
    buffer = fbx.make_prioritised_trajectory_buffer(
        add_batch_size=1, sample_batch_size=3, sample_sequence_length=2, period=1,
        min_length_time_axis=2, max_size=8)
    state = buffer.add(buffer.init(STEP), jax.tree.map(lambda x: x[None], steps(5)))
    batch = buffer.sample(state, KEY)
    state = buffer.set_priorities(state, batch.indices, batch.probabilities + 2)
    return batch.experience, batch.probabilities, buffer.sample(state, KEY).probabilities
