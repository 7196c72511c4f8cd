"""The sanitiser is silent on what is right, and finds each mistake planted in the planner."""

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.compiler import builder, memory, nests, schedule
from minijax.compiler.loops import For
from minijax.compiler.lowered import Lowered
from tests import sanitiser
from tests.compiler.test_fusion import lowered as random_program

X = np.arange(6, dtype=np.float32).reshape(2, 3)
ONE = np.array([3], np.float32)


def twice(f):
    """What is doubled, and a part of it: two readers."""
    return lambda x, *i: (lambda v: (v, f(v, *i)))(x * 2)


def stacked(x):
    return jnp.stack([x, x * 2, x * 3], 1)


def scanned_and_sliced(x):
    s = stacked(x)
    rows = lax.scan(lambda c, r: ((), r + 1), (), s[:, :2][None])[1]
    return jnp.concatenate([rows[0], s[:, 2:]], 1)


def moved(x):
    return x.at[jnp.array([0])].set(x[::-1][jnp.array([0])])


def updated_in_a_branch(x, i):
    def then(v):
        return lax.dynamic_update_slice(v, v[:1] * 2, (i,))
    return lax.cond(x.sum() > 0, then, lambda v: v * 3, x).sum()


# A value with several readers: asked at a computed place of an axis of length one, sliced out of
# a stack, overwritten beside its last reader.
SEVERAL_READERS = {
    "a computed slice of one element": (
        twice(lambda v, i: lax.dynamic_slice(v, (i,), (1,))), ONE, 0),
    "a gathered element of one": (twice(lambda v: v[jnp.array([0])]), ONE),
    "a gathered element of one, batched": (
        jax.vmap(twice(lambda v: v[jnp.array([0])])), X[:, :1]),
    "a slice of a sum of one element": (
        lambda x: (lambda v: (v, lax.dynamic_slice(v, (0, 0), (1, 1))))(x.sum(keepdims=True)), X),
    "slices of a stack": (scanned_and_sliced, X),
    "slices of a stack, mapped": (
        lambda x: (lambda s: (lax.map(jnp.sin, s[:, :2][None]), s[:, 2:]))(stacked(jnp.sin(x))), X),
    "an update in its own derivative": (
        lambda v: jax.jvp(moved, (v,), (jnp.cos(v),))[1], ONE),
    "a stack mapped in batches": (
        jax.vmap(lambda x: lax.map(lambda r: r + 1, jnp.stack([x, x * 2, x * 3]),
                                   batch_size=2).sum(0)), X),
    "an update in a branch, batched": (
        jax.vmap(jax.grad(updated_in_a_branch), (0, None)), X, 1),
    "an outer product row by row": (
        lambda x, y: jnp.einsum(",ij->ij", x, y), np.float32(2), np.ones((40, 30), np.float32)),
    "a gradient of a product with itself": (jax.grad(lambda x: x @ x), np.ones(1500, np.float32)),
}


@pytest.mark.parametrize("name", SEVERAL_READERS)
def test_values_with_several_readers_are_there_when_they_are_read(name):
    f, *args = SEVERAL_READERS[name]
    sanitiser.check(f, *args)
    with jax.disable_jit():
        wanted = f(*map(jnp.asarray, args))
    found = jax.jit(f)(*args)
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5)


@pytest.mark.parametrize("seed", range(60))
def test_random_programs_read_what_was_written(seed):
    program, arrays = random_program(seed, 12)
    sanitiser.run(sanitiser.kernel_of(program), arrays, seed)


def test_a_row_of_an_output_is_not_taken_for_the_whole():
    def f(x):
        def body(c, k):
            v = jnp.linspace(0, 1, 2)
            _, w = lax.map(lambda a: (v - v, v - 1), x)
            return c, [v, w]
        return lax.scan(body, x, jnp.arange(2.))
    sanitiser.check(f, ONE)


def test_what_was_loaded_may_outlive_its_place():
    def body(c, k):
        return c, jax.checkpoint(lambda x: (lambda v: [v, v])(jnp.argsort(x, 0)))(c + k)
    sanitiser.check(lambda x: lax.scan(body, x, jnp.arange(2.)), ONE)


def always(*args):
    return True


def without_one_read(nests_so_far, task, honest=nests.Fusion.earliest):
    reads = dict(task.reads)
    try:
        if len(reads) > 1:
            del task.reads[next(iter(reads))]
        return honest(nests_so_far, task)
    finally:
        task.reads = reads


def first_uses(body, clock, honest=memory._live_ranges):
    return {temp: (begin, begin) for temp, (begin, _) in honest(body, clock).items()}


# Each with the first seed to try, so that it is found soon; all are found from 0 on too.
PLANTED = {
    "a value is believed to be there before its loop has run": (20, [
        (nests, "_aligned", always)]),
    "a temp is given away after its first use": (0, [
        (memory, "_live_ranges", first_uses)]),
    "temps share memory though both are needed": (0, [
        (memory, "_first_gap", lambda *_: 0)]),
    "a carry is overwritten while somebody reads it": (160, [
        (schedule.Lowering, "_safe_in_place", always)]),
    "what was read before a store is used after it": (180, [
        (builder.Builder, "invalidate", lambda self, buffer: None)]),
    "a loop moves before another that it reads from": (40, [
        (nests.Fusion, "earliest", without_one_read)]),
    "a temp is as small as its maker's loop allows": (195, [
        (schedule, "_common", lambda x, y: x)]),
}


def run_from(seed):
    for s in range(seed, seed + 400):
        program, arrays = random_program(s, 12)
        sanitiser.run(sanitiser.kernel_of(program), arrays, s)


@pytest.mark.of_tests
@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_mistake_is_found(name, monkeypatch):
    seed, changes = PLANTED[name]
    for owner, attribute, wrong in changes:
        monkeypatch.setattr(owner, attribute, wrong)
    with pytest.raises(sanitiser.Found):
        run_from(seed)


def test_turns_that_depend_on_each_other_are_found():
    x = np.ones(9, np.float32)
    closed = jax.make_jaxpr(lambda x: lax.fori_loop(0, 4, lambda i, y: y.at[i + 1].set(y[i]), x))(x)
    kernel = sanitiser.kernel_of(Lowered(closed, "f"))
    [loop] = [s for s in kernel.body if isinstance(s, For) and s.stop.value == 4]
    sanitiser.run(kernel, [x])
    object.__setattr__(loop, "vectorize", "parallel")
    with pytest.raises(sanitiser.Found, match="written by turn"):
        sanitiser.run(kernel, [x])


def test_an_error_names_the_equation_and_the_place(monkeypatch):
    def f(x):
        return lax.fori_loop(0, 2, lambda i, y: jnp.sin(y) + y[::-1], x)
    monkeypatch.setattr(schedule.Lowering, "_safe_in_place", always)
    monkeypatch.setattr(sanitiser._Machine, "same_turn", always)
    message = r"wanted element \d of a carry of turn 1, found element \d of 'add' .*test_sanitiser"
    with pytest.raises(sanitiser.Found, match=message):
        for seed in range(9):
            sanitiser.check(f, X[0], seed=seed)
