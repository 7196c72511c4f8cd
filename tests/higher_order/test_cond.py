"""Branches: values, derivatives, batches and refusals are JAX's."""

import jax
import numpy as np
import pytest

import minijax

X = np.array([0.5, -0.3, 1.2], np.float32)


def both(f):
    return f(minijax), f(jax)


def same(f, rtol=1e-5):
    ours, theirs = both(f)
    for a, b in zip(minijax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert (a.dtype, a.weak_type) == (b.dtype, b.weak_type)
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-6)


def choose(lib):
    jnp = lib.numpy
    return lambda x: lib.lax.cond(x > 0, lambda v: jnp.sin(v) * 2, lambda v: v * v, x)


@pytest.mark.parametrize("x", [0.7, -0.7])
@pytest.mark.parametrize("transform", [
    lambda lib, f: f, lambda lib, f: lib.jit(f), lambda lib, f: lib.grad(f),
    lambda lib, f: lib.jit(lib.grad(lib.grad(f))),
    lambda lib, f: lambda x: lib.linearize(f, x)[1](2.0),
    lambda lib, f: lambda x: lib.vmap(f)(lib.numpy.stack([x, -x]))],
    ids=["eval", "jit", "grad", "jit grad grad", "linearize", "vmap"])
def test_a_branch_under_every_transformation(transform, x):
    same(lambda lib: transform(lib, choose(lib))(x))


def test_a_batched_choice_selects_for_each_example():
    same(lambda lib: lib.vmap(lib.grad(choose(lib)))(X))
    same(lambda lib: lib.vmap(lambda i, x: lib.lax.switch(
        i, [lib.numpy.sin, lib.numpy.cos, lambda v: v], x))(np.array([0, 2, 7]), X))


def test_a_batched_branch_that_is_not_taken_cannot_spoil_a_derivative():
    x = np.array([0.0, 2.0, -2.0], np.float32)
    same(lambda lib: lib.grad(lambda x: lib.vmap(lambda v: lib.lax.cond(
        v > 0, lib.numpy.log, lambda v: 0.0, v))(x).sum())(x))
    same(lambda lib: lib.grad(lambda x: lib.vmap(lambda i, v: lib.lax.switch(
        i, [lambda v: 0.0 * v, lib.numpy.log, lib.numpy.sqrt], v))(
            np.array([0, 1, 7]), x * x).sum())(x))


@pytest.mark.parametrize("index", [-3, 0, 1, 2, 9])
def test_an_index_is_clamped_to_the_branches(index):
    same(lambda lib: lib.lax.switch(index, [lambda x: x, lambda x: x * 10, lambda x: -x], 2.0))


def test_branches_may_close_over_different_values():
    def f(lib):
        a, b = lib.numpy.float32(2), lib.numpy.ones(3)
        return lib.grad(lambda x: lib.lax.cond(x > 0, lambda: (a * x * b).sum(),
                                               lambda: x * a))(1.5)
    same(f)


def test_weak_types_give_way():
    same(lambda lib: lib.lax.cond(True, lambda: 1.0, lambda: np.float32(2)))
    same(lambda lib: lib.lax.cond(True, lambda: 1.0, lambda: 2.0))


def test_old_and_keyword_forms():
    same(lambda lib: lib.lax.cond(True, lambda x: x, lambda x: -x, operand=3.0))
    same(lambda lib: lib.lax.cond(np.float32(2.0), lambda: 1, lambda: 2))


CALLS = {
    "operand=None is an operand": lambda lib: lib.lax.cond(
        True, lambda x: 1.0 if x is None else 2.0, lambda x: 3.0, operand=None),
    "operand=None of switch": lambda lib: lib.lax.switch(
        1, [lambda x: 3.0, lambda x: 1.0 if x is None else 2.0], operand=None),
    "operand= of switch": lambda lib: lib.lax.switch(0, [abs, abs], operand=-2.0),
    "an operand for each": lambda lib: [lib.lax.cond(
        p, (1.0, 2.0), lambda x: x[0] + x[1], 5.0, lambda x: x) for p in (True, False)],
    "nothing for each": lambda lib: lib.lax.cond(True, None, lambda x: 1.0, None, lambda x: 2.0),
    "functions by keyword": lambda lib: lib.lax.cond(
        pred=0, true_fun=lambda x: x, false_fun=lambda x: -x, operand=4.0),
    "a tuple of branches": lambda lib: lib.lax.switch(1, (abs, lambda x: x), -1.0),
    "weak and strong": lambda lib: [
        lib.lax.cond(True, *fs) for one in (lambda: 1, lambda: np.int32(2))
        for fs in ((one, lambda: 1), (one, lambda: np.int32(2)))],
    "weak and strong of switch": lambda lib: lib.lax.switch(
        1, [lambda: 1.0, lambda: np.float32(2)]),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "disable_jit"])
def test_every_form_of_call_means_what_it_means_in_jax(name, compiled):
    with minijax.disable_jit(not compiled), jax.disable_jit(not compiled):
        ours, theirs = both(CALLS[name])
    for a, b in zip(minijax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert float(a) == float(b)
        assert getattr(a, "weak_type", type(a)) == getattr(b, "weak_type", type(b))


BAD = {
    "operand=None and another": lambda lib: lib.lax.cond(
        True, lambda x: x, lambda x: x, 1.0, operand=None),
    "both kinds of operand of switch": lambda lib: lib.lax.switch(
        0, [lambda x: x], 1.0, operand=2.0),
    "a complex predicate": lambda lib: lib.lax.cond(1j, lambda: 1, lambda: 2),
    "a weak type that would change": lambda lib: lib.lax.cond(True, lambda: 1, lambda: np.int8(1)),
    "no scalar": lambda lib: lib.lax.cond(X, lambda: 1, lambda: 2),
    "no callable": lambda lib: lib.lax.cond(True, lambda x: x, 3, 1),
    "no number": lambda lib: lib.lax.cond("a", lambda: 1, lambda: 2),
    "no array": lambda lib: lib.lax.cond(True, lambda x: x, lambda x: x, "a"),
    "other dtypes": lambda lib: lib.lax.cond(True, lambda: np.float32(1), lambda: np.int32(2)),
    "other shapes": lambda lib: lib.lax.cond(True, lambda: (1, X), lambda: (1, X[:2])),
    "float index": lambda lib: lib.lax.switch(1.0, [lambda: 1, lambda: 2]),
    "no branches": lambda lib: lib.lax.switch(1, []),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_in_jaxs_words(name, refused_alike):
    refused_alike(BAD[name])


def test_branches_of_different_trees_are_named_with_their_lines():
    one, two = (lambda: (1, 2)), (lambda: 1)
    with pytest.raises(TypeError, match="same pytree structure") as caught:
        minijax.lax.cond(True, one, two)
    assert str(caught.value).count("test_cond.py:") == 2
