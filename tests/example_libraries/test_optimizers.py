"""Every optimizer and schedule against JAX's, over trees, eager and compiled."""

import jax
import jax.example_libraries.optimizers as theirs
import numpy as np
import pytest

import minijax
from minijax.example_libraries import optimizers as ours

OPTIMIZERS = {
    "sgd": (0.1,), "momentum": (0.1, 0.9), "nesterov": (0.1, 0.9), "adagrad": (0.1,),
    "adagrad without momentum": (0.1, 0.0), "rmsprop": (0.1,), "rmsprop_momentum": (0.1,),
    "adam": (0.1,), "adam with other rates": (0.1, 0.5, 0.9, 1e-4), "adamax": (0.1,),
    "sgd with a schedule": (lambda i: 0.5 / (1 + i),),
}
SCHEDULES = {
    "constant": (0.3,), "exponential_decay": (0.3, 10, 0.5),
    "inverse_time_decay": (0.3, 10, 0.5), "inverse_time_decay in stairs": (0.3, 10, 0.5, True),
    "polynomial_decay": (0.3, 10, 0.1), "polynomial_decay squared": (0.3, 10, 0.1, 2.0),
    "piecewise_constant": ([3, 7], [0.3, 0.2, 0.1]),
}
PARAMS = {"w": np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3),
          "b": (np.array([0.5, -2.0, 0.0], np.float32),)}


def named(library, name):
    return getattr(library, name.split()[0])


def same(ours_tree, theirs_tree):
    pairs = zip(jax.tree.leaves(ours_tree), jax.tree.leaves(theirs_tree), strict=True)
    for mine, jaxs in pairs:
        assert (mine.dtype, mine.shape) == (jaxs.dtype, jaxs.shape)
        assert getattr(mine, "weak_type", False) == getattr(jaxs, "weak_type", False)
        np.testing.assert_allclose(mine, jaxs, rtol=2e-6, atol=1e-6)


def trained(library, optimizers, name, arguments, compiled):
    """The parameters and the state after five steps down a bowl."""
    init, update, get_params = named(optimizers, name)(*arguments)
    np_of = library.numpy

    def step(i, state):
        grads = library.grad(lambda p: np_of.sum((p["w"] - 1) ** 2) + np_of.sum(p["b"][0] ** 4))
        return update(i, grads(get_params(state)), state)

    step = library.jit(step) if compiled else step
    state = init(library.tree.map(np_of.asarray, PARAMS))
    for i in range(5):
        state = step(i, state)
    return get_params(state), state.packed_state


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_agree_with_jax(name, compiled):
    arguments = OPTIMIZERS[name]
    mine = trained(minijax, ours, name, arguments, compiled)
    same(mine, trained(jax, theirs, name, arguments, compiled))


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_sm3_takes_the_steps_of_jaxs_and_compiles_too(compiled):
    # JAX keeps the shape of the parameters among the arrays of the state, so jit refuses it
    mine, _ = trained(minijax, ours, "sm3", (0.1,), compiled)
    same(mine, trained(jax, theirs, "sm3", (0.1,), compiled=False)[0])


def test_sm3_takes_a_scalar():
    def after_three_steps(library, optimizers):
        init, update, get_params = optimizers.sm3(0.1)
        state = init(library.numpy.float32(2))
        for i in range(3):
            state = update(i, library.numpy.float32(5), state)
        return get_params(state)

    same(after_three_steps(minijax, ours), after_three_steps(jax, theirs))


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_agree_with_jax(name):
    mine = named(ours, name)(*SCHEDULES[name])
    jaxs = named(theirs, name)(*SCHEDULES[name])
    for i in (0, 1, 3, 4, 10, 25):
        np.testing.assert_allclose(mine(i), jaxs(i), rtol=1e-6)
        compiled, jitted = minijax.jit(mine)(i), jax.jit(jaxs)(i)
        np.testing.assert_allclose(compiled, jitted, rtol=1e-6)
        assert (compiled.dtype, compiled.weak_type) == (jitted.dtype, jitted.weak_type)


@pytest.mark.parametrize("limit", [0.1, 100.0])
def test_lengths_and_clipped_gradients_agree_with_jax(limit):
    mine = minijax.tree.map(minijax.numpy.asarray, PARAMS)
    same(ours.clip_grads(mine, limit), theirs.clip_grads(PARAMS, limit))
    same(ours.l2_norm(mine), theirs.l2_norm(PARAMS))


def test_a_state_is_a_tree_of_the_arrays_in_it():
    init, _, _ = ours.adam(0.1)
    state = init(PARAMS)
    assert len(minijax.tree.leaves(state)) == 6
    doubled = minijax.tree.map(lambda x: 2 * x, state)
    assert isinstance(doubled, ours.OptimizerState) and doubled.tree_def == state.tree_def


def test_a_state_that_was_unpacked_is_packed_again():
    init, update, get_params = ours.momentum(0.1, 0.9)
    state = update(0, PARAMS, init(PARAMS))
    unpacked = ours.unpack_optimizer_state(state)
    assert isinstance(unpacked["w"], ours.JoinPoint)
    again = ours.pack_optimizer_state(unpacked)
    assert again.tree_def == state.tree_def and again.subtree_defs == state.subtree_defs
    same(get_params(again), get_params(state))
    with pytest.raises(TypeError, match="JoinPoint"):
        ours.pack_optimizer_state({"w": 1})


@pytest.mark.parametrize("library", [ours, theirs], ids=["ours", "theirs"])
def test_what_does_not_fit_is_refused_in_jaxs_words(library):
    init, update, _ = library.sgd(0.1)
    with pytest.raises(TypeError, match="gradient tree that did not match the parameter tree"):
        update(0, {"w": 1.0}, init(PARAMS))
    init, update, _ = library.optimizer(
        lambda: (lambda x: x, lambda i, g, x: (x, g), lambda x: x))()
    with pytest.raises(TypeError, match="output structure that did not match its input"):
        update(0, PARAMS, init(PARAMS))
    with pytest.raises(ValueError, match="must be sequences"):
        library.piecewise_constant(1.0, [1.0, 2.0])
    with pytest.raises(ValueError, match="boundaries length must be one shorter"):
        library.piecewise_constant([1.0], [1.0])
    with pytest.raises(TypeError):
        library.make_schedule(np.ones(2))
