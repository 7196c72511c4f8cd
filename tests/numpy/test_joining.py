"""Joining, cutting and repeating agree with JAX."""
import numpy as np
import pytest

import minijax
from minijax import numpy as jnp


@pytest.mark.parametrize("expression", [
    "jnp.concatenate([v, v])", "jnp.concatenate([f, i], axis=1)",
    "jnp.concatenate([f, f], axis=None)", "jnp.concatenate([v, w], dtype=int)",
    *(f"jnp.{call}" for call in (
        "concatenate(t)", "concatenate(t, 1)", "concatenate(t, -1)", "concatenate(t, None)",
        "concatenate(i, dtype=float)", "stack(t, 1)", "stack(t, axis=-1)", "stack(i, dtype=float)",
        "vstack(v)", "vstack(f)", "vstack(t)", "hstack(v)", "hstack(f)", "hstack(t)", "dstack(v)",
        "dstack(f)", "dstack(t)", "column_stack(v)", "column_stack(f)", "column_stack(t)",
        "concatenate(e)", "concatenate(np.ones((2, 0)))", "stack(np.ones((0, 2)))", "stack(t, 5)",
        "concatenate(t, 2)", "vstack(np.ones((0, 2)))", "hstack(np.ones((0, 2)))")),
    "jnp.concatenate(f)", "jnp.concatenate((f, e))", "jnp.stack([v, w])",
    "jnp.stack([v, v], axis=1)", "jnp.stack([s, s])", "jnp.stack(f)", "jnp.vstack([v, v])",
    "jnp.vstack([f, v])", "jnp.hstack([v, v])", "jnp.hstack([f, f])", "jnp.dstack([v, v])",
    "jnp.column_stack([v, w])", "jnp.append(v, 3)", "jnp.append(f, f, axis=0)",
    "jnp.split(f, 3, axis=1)", "jnp.split(v, [1])", "jnp.split(v, [1, 2])",
    "jnp.split(t, 2, -1)", "jnp.split(v, [-1])", "jnp.split(v, [5])",
    "jnp.array_split(jnp.arange(7), 3)", "jnp.vsplit(f, 2)", "jnp.hsplit(f, 3)",
    "jnp.dsplit(t, 2)", "jnp.unstack(f)", "jnp.unstack(t, axis=1)", "jnp.unstack(s)",
    "lax.split(f, (1, 2), 1)", "lax.split(f, (1, 1), -1)", "lax.split(f, (-1, 3))",
    "jax.make_jaxpr(jax.vmap(lambda x: jnp.split(x, [1])))(f)",
    "jax.make_jaxpr(jax.vmap(jnp.unstack, 1))(f)", "jax.jit(jnp.unstack)(f)",
    "jax.grad(lambda x: jnp.array_split(jnp.broadcast_to(x, (5, 2)), 2)[0].sum())"
    "(jnp.asarray(0.5)).weak_type",
    "jax.jacobian(lambda x: jnp.unstack(jnp.sin(x), axis=1)[1])(f)",
    "jax.jit(jax.vmap(lambda x, y: jnp.concatenate(jnp.split(x * y, [1, 1])[::-1])))(f, f)",
    "jnp.delete(f, jnp.array([-1, 0]), axis=1, assume_unique_indices=True)",
    "jax.jit(lambda i: jnp.delete(v, i, assume_unique_indices=True))(k[:2])", "jnp.delete(v, 1)",
    "jnp.delete(f, jnp.array([0, 2]), axis=1)", "jnp.delete(f, slice(0, 1), axis=0)",
    "jnp.tile(v, 2)", "jnp.tile(f, (2, 1, 2))", "jnp.tile(v, (2, 2))", "jnp.repeat(v, 2)",
    "jnp.repeat(f, 2, axis=1)", "jnp.repeat(v, jnp.array([1, 0, 2]))",
    "jnp.repeat(f, np.array([2, 1]), axis=0)",
    "jnp.repeat(v, jnp.array([1, 0, 2]), total_repeat_length=5)",
    "jnp.repeat(v, 2, total_repeat_length=4)", "jnp.repeat(5, 3)",
    "jax.jit(lambda n: jnp.repeat(v, n, total_repeat_length=4))(k)",
    "jax.vmap(lambda x: jnp.concatenate([x, x]))(f)",
    "jax.grad(lambda x: (jnp.stack([x, 2 * x]) ** 2).sum())(v)",
    "jax.grad(lambda x: (jnp.pad(x, 1, mode='edge') ** 2).sum())(v)",
    "jax.vmap(lambda x: jnp.split(x, 3))(f)",
])
def test_joining_and_cutting(agrees_with_jax, expression):
    agrees_with_jax(expression)


@pytest.mark.parametrize("expression", [
    "jnp.concatenate([])", "jnp.concatenate([f, v])", "jnp.concatenate([f, jnp.ones((2, 4))])",
    "jnp.concatenate([1, 2])", "jnp.stack([])", "jnp.stack([v, f])", "jnp.split(v, 2)",
    "jax.jit(lambda n: jnp.repeat(v, n))(k)", "jnp.tile([1], 2)", "jnp.concatenate([[1], [2]])",
])
def test_refusals(agrees_with_jax, expression):
    agrees_with_jax(expression)


@pytest.mark.parametrize("expression", [
    "jnp.pad(v, 1, 'edge', constant_values=3)", "jnp.pad(v, 1, 'empty', stat_length=3)",
    "jnp.pad(v, 1, 'mean', end_values=3)", "jnp.pad(v, 2, 'reflect', reflect_type='odd')",
    "jnp.pad(v, (7, 9), 'symmetric', reflect_type='odd')",
    "jnp.pad(f, (5, 6), 'reflect', reflect_type='odd')",
    "jnp.pad(w[:1], 2, 'reflect', reflect_type='odd')",
    "jnp.pad(v, 1)", "jnp.pad(f, ((1, 0), (0, 2)))", "jnp.pad(v, (1, 2), constant_values=9)",
    "jnp.pad(v, (1, 2), constant_values=(8, 9))", "jnp.pad(f, 1, constant_values=((1, 2), (3, 4)))",
    "jnp.pad(i, 1, constant_values=2.5)", "jnp.pad(f, 1, mode='edge')", "jnp.pad(e, 1)",
    "jnp.pad(f, 1, mode='reflect')", "jnp.pad(v, 2, mode='symmetric')", "jnp.pad(2.0, ())",
    "jnp.pad(v, 4, mode='wrap')", "jnp.pad(f, 2, mode='mean')", "jnp.pad(i, 1, mode='mean')",
    "jnp.pad(f, 1, mode='maximum')", "jnp.pad(f, (1, 2), mode='minimum', stat_length=2)",
    "jnp.pad(f, 1, mode='median')", "jnp.pad(f, (2, 3), mode='linear_ramp')",
    "jnp.pad(v, 2, mode='linear_ramp', end_values=(5, -5))", "jnp.pad(f, 1, mode='empty') * 0",
    "jnp.pad(v, 2, lambda x, width, axis, kw: x.at[:width[0]].set(7))",
    "jax.jit(lambda x: jnp.pad(x, 1))(f)", "jax.vmap(lambda x: jnp.pad(x, (0, 2)))(f)",
    "jax.grad(lambda x: (jnp.pad(x, 1, mode='edge') ** 2).sum())(v)",
])
def test_padding_agrees_with_jax(agrees_with_jax, expression):
    agrees_with_jax(expression)


@pytest.mark.parametrize("expression", [
    "jnp.pad(v, -1)", "jnp.pad(v, 1, mode='magic')", "jnp.pad([1], 1)", "jnp.pad(f, (1, 2, 3))",
    "jax.jit(lambda n: jnp.pad(v, n))(1)", "jnp.pad(v, 1.5)", "jnp.pad(v, {0: 1})",
    "jnp.pad(v, 1, mode='mean', stat_length=0)",
])
def test_refusals_of_padding(agrees_with_jax, expression):
    agrees_with_jax(expression)


@pytest.mark.parametrize("places", [2, [1], [0, 2, 3]])
def test_the_shapes_of_parts_are_python_integers(places):
    for part in jnp.array_split(jnp.ones((4, 3)), places):
        assert [type(n) for n in part.shape] == [int, int]


@pytest.mark.parametrize("expression", [
    "jnp.split(f, 2.5)", "jnp.split(f, 2.0)", "jnp.array_split(v, 2.5)", "jnp.hsplit(f, 3.5)",
    "jnp.array_split(v, True)", "jnp.split(v, [1.5])", "jnp.split(v, [True])",
    "jnp.split(v, np.uint8([1, 2]))", "jnp.split(v, jnp.array([2.]))", "jnp.split(v, [2, 1])",
    "jnp.array_split(v, 0)", "jnp.array_split(v, -2)", "jnp.linspace(0, 1, True)",
    "jnp.linspace(0, 1, 2.5)", "jnp.linspace(0, 1, jnp.array(3))", "jnp.geomspace(1, 2, True)",
    "jnp.repeat(v, True)", "jnp.repeat(v, jnp.array([[1, 2, 3]]))", "jnp.repeat(v, [1, 2, 3])",
    "jnp.repeat(v, np.array([[2]]))", "jnp.repeat(f, jnp.array([[1, 2]]), axis=0)",
    "jnp.repeat(v, jnp.array([[1, 2, 3]]), total_repeat_length=5)", "jnp.repeat(v, 2.5)",
    "jnp.repeat(f, jnp.array([[1, 0, 2], [0, 2, 1]]))", "nn.one_hot(w, 3.5)",
    "nn.one_hot(w, True)", "nn.one_hot(w, np.int8(3))",
])
def test_counts_are_taken_as_in_jax(agrees_with_jax, expression):
    agrees_with_jax(expression)


def test_counts_of_every_integer_dtype():
    with minijax.enable_x64(True):
        for dtype in (np.uint8, np.uint64, np.int64):
            out = minijax.numpy.repeat(np.arange(2), minijax.numpy.array([2, 1], dtype))
            assert out.tolist() == [0, 0, 1]


@pytest.mark.parametrize("axis", [None, 0])
def test_as_many_repeats_as_elements_are_asked_for_in_jaxs_words(axis, refused_alike):
    refused_alike(lambda lib: lib.numpy.repeat(np.arange(3), np.array([1, 2]), axis))
