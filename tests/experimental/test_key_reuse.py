"""Signatures of functions of random keys, and the keys that they consume twice, are JAX's."""

import importlib

import numpy as np
import pytest


def cores():
    """JAX's module of signatures and ours, with the package of each."""
    return [(importlib.import_module(f"{lib}.experimental.key_reuse._core"),
             importlib.import_module(lib)) for lib in ("jax", "minijax")]


def test_the_module_about_keys_that_are_used_twice_has_no_names():
    for lib in ("jax", "minijax"):
        found = vars(importlib.import_module(f"{lib}.experimental.key_reuse"))
        assert not [name for name in found if not name.startswith("_")]


FUNCTIONS = {
    "a draw": lambda jax, core: jax.random.normal,
    "gamma": lambda jax, core: lambda key: jax.random.gamma(key, 1.0),
    "split": lambda jax, core: jax.random.split,
    "fold_in": lambda jax, core: lambda key: jax.random.fold_in(key, 1),
    "clone": lambda jax, core: lambda key: (core.consume(key), jax.random.clone(key)),
    "the same": lambda jax, core: lambda key: (key[None], key),
    "one of two": lambda jax, core: lambda key: jax.random.split(key)[1],
    "two together": lambda jax, core: lambda key: jax.lax.concatenate([
        jax.random.split(key), jax.random.split(jax.random.clone(key))], 0),
    "no key": lambda jax, core: lambda key: jax.random.key(0),
    "a branch": lambda jax, core: lambda key: jax.lax.cond(
        True, lambda k: (jax.random.bits(k), k), lambda k: (jax.numpy.uint32(0), k), key),
    "scan": lambda jax, core: lambda key: jax.lax.scan(
        lambda k, _: tuple(jax.random.split(k)), key, None, length=3),
    "map": lambda jax, core: lambda key: jax.lax.map(jax.random.bits, jax.random.split(key, 3)),
    "while": lambda jax, core: lambda key: jax.lax.while_loop(
        lambda c: c[0] < 3, lambda c: (c[0] + 1, jax.random.split(c[1])[0]), (0, key)),
    "checkpoint": lambda jax, core: lambda key: jax.grad(jax.checkpoint(
        lambda x: x * jax.random.normal(key)))(1.0),
    "vmap": lambda jax, core: lambda key: jax.vmap(jax.random.bits)(jax.random.split(key)),
    "twice": lambda jax, core: lambda key: (jax.random.bits(key), jax.random.bits(key)),
    "twice in jit": lambda jax, core: lambda key: (jax.random.normal(key), jax.random.split(key)),
    "after a reshape": lambda jax, core: lambda key: (
        jax.random.bits(key[None].reshape(())), jax.random.bits(key)),
    "after a branch": lambda jax, core: lambda key: (
        jax.lax.cond(True, jax.random.bits, lambda k: jax.numpy.uint32(0), key),
        jax.random.bits(key)),
    "after a part": lambda jax, core: lambda key: (lambda keys: (
        jax.random.bits(keys[0]), jax.random.bits(keys[1])))(jax.random.split(key)),
    "a constant of a scan": lambda jax, core: lambda key: jax.lax.scan(
        lambda c, _: (c, jax.random.bits(key)), None, None, length=3),
    "a carry of a scan": lambda jax, core: lambda key: jax.lax.scan(
        lambda k, _: (k, jax.random.bits(k)), key, None, length=3),
    "a test of a while": lambda jax, core: lambda key: jax.lax.while_loop(
        lambda c: jax.random.uniform(c) < 0.5, lambda c: c, key),
    "a body of a while": lambda jax, core: lambda key: jax.lax.while_loop(
        lambda c: c < 3, lambda c: c + jax.random.uniform(key), 0.0),
    "both of a while": lambda jax, core: lambda key: jax.lax.while_loop(
        lambda c: jax.random.uniform(c) < 0.5, lambda c: jax.random.split(c)[0], key),
    "not as expected": lambda jax, core: lambda key: core.assert_consumed(
        jax.random.split(key), np.array([True, False])),
}


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_signatures_are_those_of_jax(function):
    def answer(core, lib):
        try:
            return str(core.function_type_signature(function(lib, core), lib.random.key(0)))
        except (lib.errors.KeyReuseError, AssertionError) as error:
            return type(error).__name__, str(error)[:45]
    theirs, ours = (answer(*each) for each in cores())
    assert ours == theirs


def test_parts_of_signatures_compare_as_those_of_jax():
    def answers(core):
        mixed = np.array([True, False])
        parts = [core.Source(0), core.Source(0, np.ones(2, bool)), core.Source(0, False),
                 core.Source(0, np.zeros(0, bool)), core.Source(0, mixed), core.Source(1),
                 core.Sink(0), core.Sink(0, mixed), core.Sink(0, np.bool_(True)),
                 core.Forward(0, 1)]
        with pytest.raises(ValueError, match="Sink is immutable"):
            parts[-2].idx = 1
        equal = [[bool(x == y) for y in parts] for x in parts]
        return equal, repr(core.KeyReuseSignature(parts[-3], parts[-1], parts[4], core.Sink(1)))
    theirs, ours = (answers(core) for core, _ in cores())
    assert ours == theirs
